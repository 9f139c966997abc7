# SPDX-License-Identifier: Apache-2.0
"""Python's containers: a method or an operator on a value of known structure comes in; its result comes out.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x):\\n    d = {'a': x}\\n    d.update(b=2 * x)\\n    del d['a']\\n    return d.popitem()[1]"
>>> print(show(form(text, 1.0)))
f(x):
    t = 2 * x
    return t
"""
import collections
import operator
from collections.abc import Callable, Iterable
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.carries import containers_held
from gradscribe.ast_transform.reader.container_aliases import must_be_certain
from gradscribe.ast_transform.reader.dispatch import executes, late
from gradscribe.ast_transform.reader.dynamic_lists import element_of, grow, is_own_list, repeated_list, set_grown
from gradscribe.ast_transform.reader.frames import fail, here, tried
from gradscribe.ast_transform.reader.memory import NeedsParts, pending_values, refuse_write
from gradscribe.ast_transform.reader.names import read_name
from gradscribe.ast_transform.reader.operands import is_count, known_value, root_arguments, settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.ufuncs import operator_entry_by_entry
from gradscribe.ast_transform.reader.values import RangeValue, Struct, View
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError

UNDECIDED = object()                    # equality that is known only at run time
NOTHING, ZERO, ONE, LAST, FALSE, TRUE = (Const(v) for v in (None, 0, 1, -1, False, True))     # defaults of arguments
TEXTS = (str, bytes, type(None))


def is_place(index: Any) -> bool:
    """Whether an index is an integer that is known only at run time."""
    return isinstance(index, Var) and isinstance(index.fact, Array) and not index.fact.dims and index.fact.kind in "iu"


def binary_on_containers(reader: Reader, function: Callable, left: Any, right: Any, node: gast.AST | None) -> Any:
    if isinstance(left, Const) and isinstance(left.value, (str, bytes)):
        return Const(tried(reader, function, left.value, dispatch.known_part(reader, right, str, node), node=node))
    if not any(isinstance(v, Struct) and v.kind == "iterator" for v in (left, right)):
        if isinstance(left, Struct) and isinstance(right, Struct) and left.kind == right.kind:
            if function is operator.add and left.kind in ("list", "tuple"):
                return Struct(left.kind, [*left.items, *right.items])
            if function is operator.or_ and left.kind == "dict":
                new = Struct("dict", left.items, left.keys, left.cls)
                put_all(new, zip(right.keys, right.items))
                return new
        held, times = (left, right) if isinstance(left, Struct) else (right, left)
        if function is operator.mul and held.kind in ("list", "tuple") and is_count(times):
            if node is not None and held.kind == "list" and not all(is_count(v) for v in root_arguments(reader, times)):
                return repeated_list(reader, held, times, node)         # the length of an array
            times = Const(known_value(reader, times, "how often a list is repeated", node))
        if function is operator.mul and held.kind in ("list", "tuple") and isinstance(times, Const) and \
                isinstance(times.value, (int, np.integer)):
            return Struct(held.kind, held.items * times.value)
        made = operator_entry_by_entry(reader, function, left, right, node)
        if made is not None:
            return made
    both = f"{spelled_value(reader, left)} and {spelled_value(reader, right)}"
    fail(reader, LanguageError, f"{spelled(function)}: {both} are not combined", node,
         "Make arrays of lists of numbers: np.array(items).")


def changed_in_place(reader: Reader, function: Callable, old: Any, value: Any, node: gast.AST | None) -> bool:
    """old += value and the like, if old is a list or dictionary; False if the operator makes a new value."""
    value = settle(reader, value) if not isinstance(value, RangeValue) else value
    if old.kind == "list" and function is operator.add:
        extend_list(reader, old, value, node)
    elif old.kind == "list" and function is operator.mul:
        times = known_value(reader, value, "how often a list is repeated", node)
        changing(reader, old, node).items *= times
    elif old.kind == "dict" and function is operator.or_:
        dict_update(reader, changing(reader, old, node), node, value)
    else:
        return False
    return True


def changing(reader: Reader, value: Any, node: gast.AST | None) -> Any:
    """The container, recorded as changed; it must belong to the function and have no uncertain aliases."""
    must_be_own(reader, value, node)
    must_be_certain(reader, value, node)
    value.version += 1
    reader.memory.writes += value.mark not in reader.containers.own_lists
    reader.memory.written.append({value.mark})
    return value


def extend_list(reader: Reader, old, value, node):
    items = dispatch.elements_of(reader, value, node)
    changing(reader, old, node).items += items


def put_all(holder: Any, pairs: Iterable[tuple[Any, Any]]) -> None:
    for key, value in pairs:
        if key in holder.keys:
            holder.items[holder.keys.index(key)] = value
        else:
            holder.keys += (key,)
            holder.items.append(value)


def put_element(reader: Reader, holder: Any, key: Any, value: Any, node: gast.AST | None) -> Any:
    """holder[key] = value"""
    if holder.kind not in ("list", "dict"):
        refuse_write(reader, node)
    if is_place(key) and holder.items and is_own_list(reader, holder):
        return put_at_place(reader, holder, key, value, node)
    key = (
        dispatch.hashed(reader, key, node)
        if holder.kind == "dict"
        else known_value(reader, key, "the index of a container", node)
    )
    if holder.kind == "dict":
        put_all(changing(reader, holder, node), [(key, value)])
        return
    value = dispatch.elements_of(reader, value, node) if isinstance(key, slice) else value
    changing(reader, holder, node)
    try:
        holder.items[key] = value
    except (IndexError, TypeError, ValueError) as error:
        fail(reader, ShapeError, str(error), node)


def put_at_place(reader: Reader, holder, place, value, node):
    """holder[place] = value if the place is known only at run time: the list must be homogeneous."""
    changing(reader, holder, node)
    shown = containers_held(reader).get(holder.mark)
    with pending_values(reader, [holder]) as held:
        grow(reader, holder, element_of(reader, [*holder.items, value], node), shown[-1][0][1] if shown else "items")
        set_grown(reader, held[0], place, value, node)


@executes("Delete")
def execute_delete(reader: Reader, node):
    for target in node.targets:
        if isinstance(target, gast.Name):
            read_name(reader, target.id, target)
            reader.environment.frame.env.pop(target.id, None)
            continue
        holder = settle(reader, dispatch.evaluate(reader, target.value))
        if not isinstance(target, gast.Subscript) or not isinstance(holder, Struct) or \
                holder.kind not in ("list", "dict"):
            fail(reader, LanguageError, "only names and elements of lists and dictionaries are deleted", target,
                 "Make a new value without it: np.delete(x, k).")
        take_element(reader, holder, dispatch.read_index(reader, target.slice), target)


def take_element(reader: Reader, holder, index, node):
    """Remove an element or a slice from a container and return it."""
    if holder.kind == "dict":
        key = dispatch.hashed(reader, index, node)
        if key not in holder.keys:
            fail(reader, ShapeError, f"the dictionary has no key {key!r}", node)
        changing(reader, holder, node)
        k = holder.keys.index(key)
        holder.keys = holder.keys[:k] + holder.keys[k + 1:]
        return holder.items.pop(k)
    key = known_value(reader, index, "the index of a container", node)
    changing(reader, holder, node)
    try:
        found = holder.items[key]
        del holder.items[key]
    except (IndexError, TypeError) as error:
        fail(reader, ShapeError, str(error), node)
    return found


def container_method(reader: Reader, value: Any, name: str, args: list, words: dict[str, Any],
                     node: gast.AST | None) -> Any:
    kind = SPECIAL_KINDS.get(value.cls, value.kind)
    found: Any = METHODS_OF.get((kind, name)) or METHODS_OF.get((value.kind, name)) or [None] * 4
    handler, least, most, known = found
    if handler is None or kind == "deque" and name in NOT_OF_A_DEQUE:
        fail(
            reader,
            LanguageError,
            f"the method {name} of {spelled_value(reader, value)} is not differentiated yet",
            node,
            "Make a list of it first: list(items)." if kind == "deque" else "Write it with other methods.",
        )
    if not least <= len(args) <= most or known is not None and set(words) - set(known):
        fail(reader, LanguageError, f"{name}: these arguments are not understood", node)
    result = handler(reader, value, node, *args, **words)
    return Const(None) if result is None else result


def any_index(reader: Reader, value, node, item, start=ZERO, stop=NOTHING):
    first, last = (known_value(reader, v, "a bound of index", node) for v in (start, stop))
    first = slice(first, last).indices(len(value.items))[0]
    k = dispatch.place_of(reader, value.items[first:last], item, node)
    if k is None:
        fail(reader, ShapeError, "the value is not in the container", node)
    return Const(first + k)


def any_count(reader: Reader, value, node, item):
    return Const(
        sum(dispatch.place_of(reader, [i], item, node, "how often this value occurs") == 0 for i in value.items)
    )


def any_item(reader: Reader, value, node, key):
    return settle(reader, dispatch.item_of(reader, value, key, node))


def any_copy(reader: Reader, value, node):
    return Struct(value.kind, value.items, value.keys, value.cls)


def any_clear(reader: Reader, value, node):
    changing(reader, value, node)
    value.items.clear()
    value.keys = ()


def list_append(reader: Reader, value, node, item):
    changing(reader, value, node).items.append(settle(reader, item))


def list_extend(reader: Reader, value, node, items):
    extend_list(reader, value, items, node)


def list_insert(reader: Reader, value, node, place, item):
    k = known_value(reader, place, "the place of insert", node)
    changing(reader, value, node).items.insert(k, settle(reader, item))


def list_pop(reader: Reader, value, node, place=LAST):
    if not value.items:
        fail(reader, ShapeError, f"pop from an empty {value.kind}", node)
    return settle(reader, take_element(reader, value, place, node))


def list_remove(reader: Reader, value, node, item):
    k = dispatch.place_of(reader, value.items, item, node)
    if k is None:
        fail(reader, ShapeError, "the value is not in the list", node)
    take_element(reader, value, Const(k), node)


def list_reverse(reader: Reader, value, node):
    changing(reader, value, node).items.reverse()


def list_sort(reader: Reader, value, node, key=NOTHING, reverse=FALSE):
    key = None if isinstance(key, Const) and key.value is None else key
    new = dispatch.sorted_items(
        reader, value.items, key, bool(known_value(reader, reverse, "reverse of sort", node)), node
    )
    changing(reader, value, node).items[:] = new


def deque_appendleft(reader: Reader, value, node, item):
    changing(reader, value, node).items.insert(0, settle(reader, item))


def deque_popleft(reader: Reader, value, node):
    return list_pop(reader, value, node, Const(0))


def deque_extendleft(reader: Reader, value, node, items):
    changing(reader, value, node).items[:0] = dispatch.elements_of(reader, items, node)[::-1]


def deque_rotate(reader: Reader, value, node, steps=ONE):
    line = collections.deque(value.items)
    line.rotate(known_value(reader, steps, "the steps of rotate", node))
    changing(reader, value, node).items[:] = line


@late
def shown_by_dict_view(reader: Reader, view):
    """The current contents of a dictionary view."""
    keys, items = [Const(k) for k in view.value.keys], view.value.items
    shown = {"keys": keys, "values": items}.get(view.name)
    return Struct("list", [Struct("tuple", pair) for pair in zip(keys, items)] if shown is None else shown)


def dict_keys(reader: Reader, value, node):
    return View(value, "keys")


def dict_values(reader: Reader, value, node):
    return View(value, "values")


def dict_items(reader: Reader, value, node):
    return View(value, "items")


def dict_get(reader: Reader, value, node, key, default=NOTHING):
    key = dispatch.hashed(reader, key, node)
    return settle(reader, value.items[value.keys.index(key)]) if key in value.keys else default


def dict_setdefault(reader: Reader, value, node, key, default=NOTHING):
    if dispatch.hashed(reader, key, node) not in value.keys:
        put_element(reader, value, key, default, node)
    return dict_get(reader, value, node, key)


def dict_update(reader: Reader, value, node, other=None, /, **words):
    if value.cls is collections.Counter:
        count_into(reader, value, other, words, node)
        return
    pairs = [*pairs_of(reader, other, node), *words.items()]
    if pairs:
        put_all(changing(reader, value, node), pairs)


def pairs_of(reader: Reader, other, node):
    """The (key, value) pairs of a dictionary or of a sequence of pairs."""
    if other is None:
        return []
    other = settle(reader, other)
    if isinstance(other, Struct) and other.kind == "dict":
        return list(zip(other.keys, other.items))
    rows = [dispatch.elements_of(reader, row, node) for row in dispatch.elements_of(reader, other, node)]
    if any(len(row) != 2 for row in rows):
        fail(reader, ShapeError, "a dictionary is made of pairs of a key and a value", node)
    return [(dispatch.hashed(reader, k, node), settle(reader, v)) for k, v in rows]


def dict_pop(reader: Reader, value, node, key, default=None):
    if default is not None and dispatch.hashed(reader, key, node) not in value.keys:
        return default
    return settle(reader, take_element(reader, value, key, node))


def dict_popitem(reader: Reader, value, node, last=TRUE):
    if not value.keys:
        fail(reader, ShapeError, "popitem from an empty dictionary", node)
    key = Const(value.keys[-1 if known_value(reader, last, "last of popitem", node) else 0])
    return Struct("tuple", [key, settle(reader, take_element(reader, value, key, node))])


def dict_move_to_end(reader: Reader, value, node, key, last=TRUE):
    item, name = take_element(reader, value, key, node), dispatch.hashed(reader, key, node)
    k = len(value.items) if known_value(reader, last, "last of move_to_end", node) else 0
    value.keys, value.items[k:k] = (*value.keys[:k], name, *value.keys[k:]), [item]


def dict_fromkeys(reader: Reader, keys: Any, node: gast.AST | None, value: Any = NOTHING) -> Any:
    keys = tuple(dict.fromkeys(dispatch.hashed(reader, k, node) for k in dispatch.elements_of(reader, keys, node)))
    return Struct("dict", [value] * len(keys), keys)


def counter_most_common(reader: Reader, value, node, n=NOTHING):
    pairs = [Struct("tuple", [Const(k), v]) for k, v in zip(value.keys, value.items)]
    ordered = dispatch.sorted_items(reader, pairs, Const(operator.itemgetter(1)), True, node)
    return Struct("list", ordered[:known_value(reader, n, "n of most_common", node)])


def counter_total(reader: Reader, value, node):
    return dispatch.python_sum(reader, value.items, node)


def count_into(reader: Reader, value: Any, items: Any, words: dict[str, Any], node: gast.AST | None) -> Any:
    """Counter.update: counts are added."""
    given = {}
    if items is not None:
        items = settle(reader, items)
        if isinstance(items, Struct) and items.kind == "dict":
            given = dict(zip(items.keys, items.items))
        else:
            given = {k: Const(n) for k, n in collections.Counter(
                dispatch.hashed(reader, i, node) for i in dispatch.elements_of(reader, items, node)).items()}
    for key, n in {**given, **words}.items():
        held = dict(zip(value.keys, value.items))
        new = dispatch.binary(reader, operator.add, held[key], n, node) if key in held else n
        put_all(changing(reader, value, node), [(key, new)])


def default_for_missing(reader: Reader, holder: Any, key: str, node: gast.AST | None) -> Any:
    """The value that a defaultdict makes for a missing key; None for a plain dict."""
    if holder.cls is collections.Counter:
        return Const(0)
    factory = getattr(holder.cls, "factory", None)
    if factory is None or isinstance(factory, Const) and factory.value is None:
        return None
    value = settle(reader, dispatch.call_value(reader, factory, [], {}, node))
    put_all(changing(reader, holder, node), [(key, value)])
    return value


SPECIAL_KINDS = {collections.deque: "deque", collections.OrderedDict: "ordered", collections.Counter: "counter"}
NOT_OF_A_DEQUE = ("sort",)

def must_be_own(reader: Reader, holder, node):
    """Refuse to change a container that is an argument: it belongs to the caller."""
    advice = f"Make a new one: {'{**items}' if holder.kind == 'dict' else '[*items]'}."
    if holder in reader.containers.frozen:
        fail(reader, LanguageError, f"changing {'an' if holder.kind == 'object' else 'a'} {holder.kind} that an "
             "iterator shows", node,
             f"{advice} Or make the iterator a list.")
    if holder in reader.lists.row_lists:
        fail(reader, LanguageError, "changing a list that stands in a list of unknown length", node, advice)
    if holder.whole is not None and not reader.containers.apart:
        raise NeedsParts
    if holder.mark in reader.containers.given_marks:
        reader.containers.given_changed = reader.containers.given_changed or here(reader, node)
    elif holder.whole is not None or holder.mark in reader.containers.callers:
        fail(reader, LanguageError, "changing a container that is an argument is not differentiated yet", node, advice)
    if holder in reader.containers.outside:
        fail(reader,
            LanguageError,
            "changing a container from outside the function cannot be undone in the backward sweep",
            node,
            advice,
        )


def drop_beyond_maxlen(held: Any, at_left: bool = True) -> Any:
    """A deque with a maxlen drops elements from one end when it is longer."""
    most = getattr(held.cls, "most", None)
    if most is not None and len(held.items) > most:
        del held.items[slice(len(held.items) - most) if at_left else slice(most, None)]
    return held


def bounded_method(reader: Reader, value: Any, name: str, args: list, words: dict[str, Any],
                   node: gast.AST | None) -> Any:
    """A method of a deque with a maxlen: items added at one end drop out at the other."""
    if name == "insert" and len(value.items) == value.cls.most:
        fail(reader, ShapeError, "deque already at its maximum size", node, "Pop an element before.")
    result = container_method(reader, value, name, args, words, node)
    drop_beyond_maxlen(value, name not in ("appendleft", "extendleft"))
    return result


def made_of(reader: Reader, args: list, words: dict[str, Any], node: gast.AST | None) -> tuple[list, tuple]:
    """The items and keys of dict(*args, **words)."""
    new = Struct("dict", [])
    put_all(new, [*pairs_of(reader, args[0] if args else None, node), *words.items()])
    return new.items, new.keys


def record_replace(reader: Reader, value, node, /, **words):
    if set(words) - set(value.keys):
        fail(reader, ShapeError, f"{value.cls.__name__} has the fields {', '.join(value.keys)}", node)
    return Struct("record", [words.get(k, v) for k, v in zip(value.keys, value.items)], value.keys, value.cls)


def record_asdict(reader: Reader, value, node):
    return Struct("dict", value.items, value.keys)


METHODS_OF = {                          # (kind, name) -> handler, least and most arguments, words (None: any)
    ("list", "append"): (list_append, 1, 1, ()), ("list", "extend"): (list_extend, 1, 1, ()),
    ("list", "insert"): (list_insert, 2, 2, ()), ("list", "pop"): (list_pop, 0, 1, ()),
    ("list", "remove"): (list_remove, 1, 1, ()), ("list", "reverse"): (list_reverse, 0, 0, ()),
    ("list", "sort"): (list_sort, 0, 0, ("key", "reverse")),
    ("list", "copy"): (any_copy, 0, 0, ()), ("list", "clear"): (any_clear, 0, 0, ()),
    ("list", "index"): (any_index, 1, 3, ()),
    ("list", "count"): (any_count, 1, 1, ()),
    ("tuple", "index"): (any_index, 1, 3, ()),
    ("tuple", "count"): (any_count, 1, 1, ()),
    **dict.fromkeys([("list", "__getitem__"), ("dict", "__getitem__")], (any_item, 1, 1, ())),
    ("record", "index"): (any_index, 1, 3, ()),
    ("record", "count"): (any_count, 1, 1, ()),
    ("record", "_replace"): (record_replace, 0, 0, None),
    ("record", "_asdict"): (record_asdict, 0, 0, ()),
    ("deque", "appendleft"): (deque_appendleft, 1, 1, ()),
    ("deque", "popleft"): (deque_popleft, 0, 0, ()),
    ("deque", "pop"): (list_pop, 0, 0, ()),
    ("deque", "extendleft"): (deque_extendleft, 1, 1, ()),
    ("deque", "rotate"): (deque_rotate, 0, 1, ()),
    ("dict", "keys"): (dict_keys, 0, 0, ()),
    ("dict", "values"): (dict_values, 0, 0, ()),
    ("dict", "items"): (dict_items, 0, 0, ()),
    ("dict", "get"): (dict_get, 1, 2, ()),
    ("dict", "setdefault"): (dict_setdefault, 1, 2, ()),
    ("dict", "update"): (dict_update, 0, 1, None),
    ("dict", "pop"): (dict_pop, 1, 2, ()),
    ("dict", "popitem"): (dict_popitem, 0, 0, ()),
    ("ordered", "popitem"): (dict_popitem, 0, 1, ("last",)),
    ("dict", "copy"): (any_copy, 0, 0, ()), ("dict", "clear"): (any_clear, 0, 0, ()),
    ("ordered", "move_to_end"): (dict_move_to_end, 1, 2, ("last",)),
    ("counter", "most_common"): (counter_most_common, 0, 1, ("n",)),
    ("counter", "total"): (counter_total, 0, 0, ()),
}
