# SPDX-License-Identifier: Apache-2.0
"""Objects of the user's classes: construction, attributes, methods and operators come in; values come out.

An object that the function makes is a container of its attributes (Struct of kind "object").  Its class defines its
methods, properties and operators, whose bodies are read in place of their calls.
"""
import contextlib
import copy
import dataclasses
import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, dataclass, replace
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.described import fact_of, is_of_a_library
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.container_aliases import same_object
from gradscribe.ast_transform.reader.containers import changing
from gradscribe.ast_transform.reader.dispatch import SPECIAL
from gradscribe.ast_transform.reader.dynamic_lists import copied_list
from gradscribe.ast_transform.reader.filling import set_entries
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.list_of_tuples import copied_rows
from gradscribe.ast_transform.reader.memory import refuse_write
from gradscribe.ast_transform.reader.names import lift
from gradscribe.ast_transform.reader.operands import python_value, settle, spelled_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Bound, Grown, Method, Part, Rows, Struct
from gradscribe.ast_transform.reader.views import is_array, may_be_cell
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError, ShapeError

OPERATORS = {
    operator.add: "add", operator.sub: "sub", operator.mul: "mul", operator.truediv: "truediv",
    operator.floordiv: "floordiv", operator.mod: "mod", operator.pow: "pow", operator.matmul: "matmul",
    operator.and_: "and", operator.or_: "or", operator.xor: "xor", operator.lshift: "lshift",
    operator.rshift: "rshift",
}
COMPARISONS = {
    operator.eq: ("__eq__", "__eq__"), operator.ne: ("__ne__", "__ne__"), operator.lt: ("__lt__", "__gt__"),
    operator.le: ("__le__", "__ge__"), operator.gt: ("__gt__", "__lt__"), operator.ge: ("__ge__", "__le__"),
}
ASKED = {len: "__len__", abs: "__abs__", bool: "__bool__", float: "__float__", int: "__int__", round: "__round__"}
UNARY = {operator.neg: "__neg__", operator.pos: "__pos__", operator.invert: "__invert__", abs: "__abs__"}
WATCHED = ("__getattr__", "__getattribute__", "__setattr__", "__delattr__")     # methods that intercept attributes
NAMED_TUPLE = ("_replace", "_asdict", "_fields", "_make", "index", "count")


@dataclass(eq=False, slots=True)
class Super:
    """super(): an object, seen as an instance of the classes after a given one in its method resolution order."""
    value: Any
    after: type
    cls: type


def python_new(cls):
    """The __new__ of a class if it is written in Python, else None."""
    new = inspect.getattr_static(cls, "__new__")
    return new.__func__ if isinstance(new, staticmethod) and isinstance(new.__func__, types.FunctionType) else None


def construct(reader: Reader, cls: type, args: list, words: dict[str, Any], node: gast.AST | None) -> Any:
    """The value of a call of a class: named tuples and dataclasses are containers, NumPy's scalar types convert."""
    if issubclass(cls, np.generic) and len(args) == 1:
        value = settle(reader, args[0])
        value = reader.build.item(value, Const(())) if may_be_cell(reader, value) else value  # a number, not an array
        return dispatch.converted(reader, value, np.dtype(cls), node)
    if issubclass(cls, functools.partial):
        return dispatch.call_partial(reader, cls, args, words, node)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        fields, defaults = cls._fields, cls._field_defaults    # type: ignore[attr-defined]  # a named tuple
        plain_class(reader, cls, node, tuple)
    elif made_by_dataclass(cls) is cls and not hasattr(cls, "__post_init__") and not python_new(cls) and not any(
            f.default_factory is not MISSING or not f.init or f.kw_only for f in fields_of(cls)):
        plain_class(reader, cls, node)
        fields = tuple(f.name for f in fields_of(cls))
        defaults = {f.name: f.default for f in fields_of(cls) if f.default is not MISSING}
    elif issubclass(cls, BaseException):
        return Const(cls)
    else:
        return construct_object(reader, cls, args, words, node)
    given = {**dict(zip(fields, args)), **words}
    if len(args) > len(fields) or set(given) - set(fields):
        fail(reader, ShapeError, f"{cls.__name__} has the fields {', '.join(fields)}", node)
    for k in fields:
        if k not in given:
            if k not in defaults:
                fail(reader, KindError, f"{cls.__name__} needs a value for {k}", node)
            given[k] = lift(reader, defaults[k], k)
    return Struct("record", [given[k] for k in fields], fields, cls)


def construct_object(reader: Reader, cls, args, words, node):
    """cls(*args, **words) for a class written in Python."""
    new = python_new(cls)
    if new is None:
        plain_class(reader, cls, node)
        made = Struct("object", [], (), cls)
    else:
        made = settle(reader, dispatch.call_known(reader, new, [Const(cls), *args], words, node))
        if not isinstance(made, Struct) or not issubclass(class_of(reader, made), cls):
            return made
    if made_by_dataclass(cls) is not None:
        fill_fields(reader, made, made_by_dataclass(cls), args, words, node)
    elif isinstance(cls.__init__, types.FunctionType):
        guard_class_attribute(reader, cls, "__init__")
        dispatch.call_known(reader, cls.__init__, [made, *args], words, node)
    elif new is None and (args or words):
        fail(reader, ShapeError, f"{cls.__name__} takes no arguments", node)
    return made


def call_new(reader: Reader, function, args, words, node):
    """object.__new__(cls): an object without attributes."""
    cls = python_value(reader, args[0], node) if len(args) == 1 and not words else None
    if not isinstance(cls, type):
        fail(reader, ShapeError, "object.__new__ takes a class", node)
    plain_class(reader, cls, node)
    return Struct("object", [], (), cls)


def plain_class(reader: Reader, cls, node, of=object):
    """Refuse classes whose instances hold more than their attributes."""
    for base in cls.__mro__[:cls.__mro__.index(of)]:
        if base is typing.Generic or of is tuple and "_fields" in vars(base):
            continue
        frozen = "__dataclass_params__" in vars(base) and base.__dataclass_params__.frozen
        hidden = [n for n in (*WATCHED, *(["__new__"] if of is tuple else []), "__init_subclass__") if n in vars(
            base) and not (
            frozen and n in ("__setattr__", "__delattr__"))]
        if type(cls).__call__ is not type.__call__:
            hidden = ["__call__ of their own"]
        if hidden or not base.__flags__ & (1 << 9) or base.__module__ == "builtins":
            why = f"define {hidden[0]}" if hidden else "are not written in Python"
            fail(reader, LanguageError, f"objects of class {cls.__name__} are not differentiated: its classes {why}",
                 node, "Named tuples, dataclasses and plain classes are; so are dictionaries.")


def fill_fields(reader: Reader, made, cls, args, words, node):
    """Set the fields of an object as the __init__ of its dataclass does."""
    fields = [f for f in fields_of(cls, True) if f.init]
    names = [f.name for f in fields]
    given = {**dict(zip([f.name for f in fields if not f.kw_only], args)), **words}
    if len(args) > len(fields) or set(given) - set(names):
        fail(reader, ShapeError, f"{cls.__name__} has the fields {', '.join(names)}", node)
    late = []
    for f in fields_of(cls, True):
        if f.name not in given or not f.init:
            if f.default is not MISSING:
                given[f.name] = lift(reader, f.default, f.name)
            elif f.default_factory is not MISSING:
                given[f.name] = dispatch.call_known(reader, f.default_factory, [], {}, node)
            elif f.init:
                fail(reader, KindError, f"{cls.__name__} needs a value for {f.name}", node)
            else:
                continue
        if f._field_type is dataclasses._FIELD:         # type: ignore[attr-defined]  # no public name: not an InitVar
            put_attribute(made, f.name, given[f.name])
        else:
            late.append(given[f.name])
    after = inspect.getattr_static(made.cls, "__post_init__", None)
    if after is not None:
        dispatch.call_known(reader, after, [made, *late], {}, node)


def call_filled(reader: Reader, function, args, words, node):
    """super().__init__(...), if a dataclass generated that method."""
    fill_fields(reader, settle(reader, args[1]), python_value(reader, args[0], node), args[2:], words, node)
    return Const(None)


def class_of(reader: Reader, value: Any) -> type:
    if isinstance(value, (Grown, Rows)):
        return list
    cls = value.cls or {"list": list, "tuple": tuple, "dict": dict}[value.kind]
    return vars(cls).get("mark_rows_as_elements", cls)


def has_attribute(reader: Reader, value: Any, name: str) -> bool:
    return isinstance(value, Struct) and value.kind in ("object", "record") and name in value.keys or \
        inspect.getattr_static(class_of(reader, value), name, None) is not None


def iterated_value(reader: Reader, value: Any, node: gast.AST | None) -> Any:
    """The value over which a loop over this value iterates: for an object, the result of its __iter__."""
    value = settle(reader, value) if isinstance(value, Part) else value
    if not isinstance(value, Struct) or value.kind != "object" and (
            value.kind != "record" or issubclass(value.cls, tuple)):
        return value
    method = dunder(reader, value, "__iter__")
    if method is None:
        fail(reader, LanguageError, f"{spelled_value(reader, value)} has no __iter__ to go through", node,
             "Go through one of its attributes.")
    found = settle(reader, dispatch.call_known(reader, method, [value], {}, node))
    return found if found is not value else fail(reader,
        LanguageError, f"{spelled_value(reader, value)} is an iterator, which is not understood", node, "Use a list.")


def equal_objects(reader: Reader, a: Any, b: Any) -> bool | None:
    """a == b for objects whose class may define __eq__; None if that is not known."""
    for x, y in ((a, b), (b, a)):
        if dunder(reader, x, "__eq__") is not None:
            found = settle(reader, dispatch.call_known(reader, dunder(reader, x, "__eq__"), [x, y], {}, None))
            return bool(found.value) if isinstance(found, Const) and found.value is not NotImplemented else None
    if all(v.kind in ("tuple", "record") and (v.cls is None or issubclass(v.cls, tuple)) for v in (a, b)):
        return dispatch.is_equal(reader, *(Struct("tuple", v.items) for v in (a, b)))
    if a.cls is b.cls and "__dataclass_params__" in dir(a.cls) and a.cls.__dataclass_params__.eq:
        names = [f.name for f in fields_of(a.cls) if f.compare]
        return dispatch.is_equal(
            reader, *(Struct("tuple", [object_attribute(reader, v, n, None) for n in names]) for v in (a, b))
        )
    return same_object(reader, a, b)


def equal_to_outside(reader: Reader, made: Any, known: Any) -> bool | None:
    """made == known, for an object that the function makes and a captured value; None if that is not known."""
    method = dunder(reader, made, "__eq__")
    if method is not None:
        found = settle(reader, dispatch.call_known(reader, method, [made, known], {}, None))
        return bool(found.value) if isinstance(found, Const) and found.value is not NotImplemented else None
    return False if isinstance(known.value, (str, bytes, type(None), int, float, complex)) else None


def call_copy(reader: Reader, function, args, words, node):
    """copy.copy and copy.deepcopy"""
    value, deep = settle(reader, args[0]), function is copy.deepcopy
    if any(dunder(reader, value, n) is not None for n in ("__copy__", "__deepcopy__", "__reduce__", "__getstate__")):
        fail(
            reader,
            LanguageError,
            f"{spelled_value(reader, value)} says how it is copied, which is not understood",
            node,
            "Make a new object of its attributes.",
        )
    return copied_object(reader, value, deep, {}, node)


def copied_object(reader: Reader, value, deep, memo, node):
    if is_array(value):
        if value not in memo:
            memo[value] = dispatch.rule_call(reader, np.copy, [value], {}, node)
        return memo[value]
    if isinstance(value, Rows) and not deep:
        return copied_rows(reader, value)
    if isinstance(value, Grown):
        if deep and value.element.dims:
            fail(reader, LanguageError, "a deep copy of a list of arrays whose length is known only when running",
                 node, "Make an array of it: np.array(items).")
        return copied_list(reader, value)
    if isinstance(value, (Var, Const)):
        return value
    if not isinstance(value, Struct) or value.kind == "iterator":
        fail(reader, LanguageError, f"a copy of {spelled_value(reader, value)} is not understood", node,
             "Make a list of it first: list(values).")
    if id(value) not in memo:
        made = memo[id(value)] = Struct(value.kind, value.items, value.keys, value.cls)
        if deep:
            made.items = [copied_object(reader, settle(reader, i), deep, memo, node) for i in value.items]
    return memo[id(value)]


def object_attribute(reader: Reader, value: Any, name: str, node: gast.AST | None) -> Any:
    """An attribute of an object or a record: from the instance, or from its class."""
    if name in value.keys:
        return settle(reader, value.items[value.keys.index(name)])
    if name == "__class__":
        return Const(value.cls)
    if value.cls is None or value.kind == "record" and issubclass(value.cls, tuple) and name in NAMED_TUPLE:
        return Method(value, name)
    return of_class(reader, value, value.cls, value.cls.__mro__, name, node)


def of_class(reader: Reader, value: Any, cls: type, classes: tuple, name: str, node: gast.AST | None) -> Any:
    owner: Any = next((c for c in classes if name in vars(c)), None)
    found = None if owner is None else vars(owner)[name]
    if found is None:
        fail(reader, LanguageError, f"{cls.__name__!r} object has no attribute {name!r}".replace("'", ""), node,
             python=AttributeError)
    guard_class_attribute(reader, cls if classes is cls.__mro__ else owner, name)
    if isinstance(found, property):
        return dispatch.call_known(reader, found.fget, [value], {}, node)
    if isinstance(found, functools.cached_property):
        made = dispatch.call_known(reader, found.func, [value], {}, node)
        if isinstance(value, Struct):
            put_attribute(value, name, made)
            reader.memory.writes += 1
        return made
    if isinstance(found, staticmethod):
        return Const(found.__func__)
    if isinstance(found, classmethod):
        return Bound(Const(found.__func__), [Const(cls)], {})
    if name == "__init__" and isinstance(value, Struct):
        maker = next(c for c in classes if name in vars(c))
        if made_by_dataclass(maker) is maker:
            return Bound(Const(_filled), [Const(maker), value], {})
    if isinstance(found, types.FunctionType):
        return Bound(Const(found), [value], {})
    if hasattr(type(found), "__get__"):
        fail(reader, LanguageError, f"the descriptor {name} of {cls.__name__} is not understood", node,
             "Use a property or a method.")
    return lift(reader, found, name)


def guard_object(reader: Reader, value: Any, ask: Callable | None = None) -> None:
    """Guard the attributes of a captured object about which Python itself was asked.

    ask: a function of the object whose answer is compared at each call
    """
    held = value.value
    if reader.context.rule_depth or is_of_a_library(type(held)) and (
            callable(held) or isinstance(held, types.ModuleType) or not hasattr(held, "__dict__")):
        return
    if hasattr(held, "__dict__"):
        reader.environment.guards.append((held, "__dict__", vars(held)))
    if ask is not None and not isinstance(held, type):
        with contextlib.suppress(Exception):
            answer = ask(held)
            reader.environment.kind_guards.append(lambda: _same_answer(ask(held), answer))


def guard_class_attribute(reader: Reader, cls: type, name: str) -> None:
    """Guard an attribute of a user's class, such as a method, which may be replaced."""
    found = getattr(cls, name, None)
    if not reader.context.rule_depth and not isinstance(found, types.MethodType) and not is_of_a_library(cls):
        reader.environment.guards.append((cls, name, found))


def super_attribute(reader: Reader, value: Any, name: str, node: gast.AST | None) -> Any:
    classes = value.cls.__mro__
    classes = classes[classes.index(value.after) + 1:]
    if name == "__init__" and not any(name in vars(c) for c in classes[:-1]):
        return Const(_nothing)
    return of_class(reader, value.value, value.cls, classes, name, node)


def call_super(reader: Reader, function, args, words, node):
    """super() in a method."""
    if args or words:
        after, value = python_value(reader, args[0], node), settle(reader, args[1])
    else:
        frame = reader.environment.frame
        while frame.source.function is None and frame.outer is not None:
            frame = frame.outer
        after = frame.source.scope.lookup("__class__")
        value = next(iter(frame.env.values()))
    cls = value.cls if isinstance(value, Struct) else value.value if isinstance(value.value, type) \
        else type(value.value)
    return Super(value, after, cls)


def call_nothing(reader: Reader, function, args, words, node):
    return Const(None)


def put_attribute(holder: Any, name: str, value: Any) -> None:
    if name in holder.keys:
        holder.items[holder.keys.index(name)] = value
    else:
        holder.keys += (name,)
        holder.items.append(value)
    holder.version += 1


def assign_attribute(reader: Reader, target: gast.AST, value: Any, holder: Any = None) -> Any:
    holder = settle(reader, dispatch.evaluate(reader, target.value)) if holder is None else holder
    if isinstance(holder, Const) and not isinstance(fact_of(holder), Array):
        return dispatch.write_state(reader, holder.value, target, value)
    if is_array(holder):
        return set_entries(reader, holder, target.attr, value, target)
    if not isinstance(holder, Struct) or holder.kind not in ("object", "record") or \
            holder.kind == "record" and issubclass(holder.cls, tuple):
        refuse_write(reader, target)
    if target.attr in ("__class__", "__dict__"):
        fail(reader, LanguageError, f"setting {target.attr} of an object is not understood", target,
             "Make a new object of the other class.")
    found = inspect.getattr_static(holder.cls, target.attr, None)
    if isinstance(found, property):
        if found.fset is None:
            fail(reader, LanguageError, f"the property {target.attr} of {holder.cls.__name__} cannot be set", target,
                 python=AttributeError)
        dispatch.call_known(reader, found.fset, [holder, value], {}, target)
        return
    if hasattr(type(found), "__set__") and not isinstance(found, types.MemberDescriptorType):
        fail(reader, LanguageError, f"the descriptor {target.attr} of {holder.cls.__name__} is not understood", target,
             "Use a property.")
    if getattr(holder.cls, "__dataclass_params__", None) and holder.cls.__dataclass_params__.frozen:
        fail(reader, LanguageError, f"{holder.cls.__name__} is a frozen dataclass", target,
             "Use dataclasses.replace.")
    put_attribute(changing(reader, holder, target), target.attr, value)


def dunder(reader: Reader, value: Any, name: str | None) -> Any:
    """The special method of an object's class, if it is written in Python."""
    if not isinstance(value, Struct) or value.cls is None or name is None:
        return None
    found = inspect.getattr_static(value.cls, name, None)
    if not isinstance(found, types.FunctionType) or found.__code__.co_filename == "<string>":   # generated by dataclass
        return None
    guard_class_attribute(reader, value.cls, name)
    return found


def by_class(reader: Reader, function: Callable, left: Any, right: Any, node: gast.AST | None) -> Any:
    """A binary operator or comparison that a class defines; None if neither side does."""
    name, back = COMPARISONS.get(function, (f"__{OPERATORS.get(function)}__", f"__r{OPERATORS.get(function)}__"))
    if comes_first(reader, right, left, back):         # Python tries the reflected method of a subclass first
        found = dispatch.call_known(reader, dunder(reader, right, back), [right, left], {}, node)
        if not (isinstance(found, Const) and found.value is NotImplemented):
            return found
    method = dunder(reader, left, name)
    if method is not None:
        found = dispatch.call_known(reader, method, [left, right], {}, node)
        if not (isinstance(found, Const) and found.value is NotImplemented):
            return found
    method = dunder(reader, right, back)
    if method is None:
        if function is operator.ne and (dunder(reader, left, "__eq__") or dunder(reader, right, "__eq__")):
            same = by_class(reader, operator.eq, left, right, node)
            return None if same is None else dispatch.negated(reader, dispatch.truth_value(reader, same, node))
        return None
    if isinstance(left, Var) and isinstance(left.fact, Array) and not left.fact.weak:
        fail(reader, LanguageError, f"a NumPy number or array {name.strip('_')} an object goes element by element",
             node, "Put the object first.")
    return dispatch.call_known(reader, method, [right, left], {}, node)


def comes_first(reader: Reader, right, left, back):
    """Whether the right operand's class is a subclass of the left one's with a reflected method of its own."""
    method = dunder(reader, right, back)
    return method is not None and isinstance(left, Struct) and left.cls is not None and \
        right.cls is not left.cls and issubclass(right.cls, left.cls) and \
        inspect.getattr_static(left.cls, back, None) is not method


def call_wraps(reader: Reader, function, args, words, node):
    return Const(_same)


def call_same(reader: Reader, function, args, words, node):
    return args[0]


def call_replace(reader: Reader, function, args, words, node):
    """dataclasses.replace"""
    value = settle(reader, args[0])
    if not isinstance(value, Struct) or value.kind not in ("record", "object"):
        fail(reader, LanguageError, "dataclasses.replace needs a dataclass", node)
    given = dict(zip(value.keys, value.items))
    return dispatch.call_value(reader, Const(value.cls), [], {**given, **words}, node)


def made_by_dataclass(cls):
    """The class whose dataclass decorator generated the __init__ of cls, if any."""
    maker = next((c for c in cls.__mro__ if "__init__" in vars(c)), object)
    init = vars(maker)["__init__"]
    made = "__dataclass_fields__" in vars(maker) and getattr(init, "__code__", made_by_dataclass.__code__
                                                             ).co_filename == "<string>"
    return None if not made else cls if fields_of(cls, True) == fields_of(maker, True) else maker


def fields_of(cls, init=False):
    """The fields of a dataclass; init: also those that are passed to __post_init__ only."""
    kinds = (dataclasses._FIELD, dataclasses._FIELD_INITVAR) if init else (dataclasses._FIELD,)
    return [f for f in cls.__dataclass_fields__.values() if f._field_type in kinds]


def _filled(cls: type, *args: Any, **words: Any) -> Any:
    """A marker for the __init__ that a dataclass generates."""


def _same(function: Any) -> Any:
    """A marker for the decorator functools.wraps(f), which does not change what a function computes."""
    return function


def _nothing(*args: Any, **words: Any) -> None:
    """A marker for object.__init__."""


def _same_answer(now, then):
    """Whether two answers of a captured object agree: the same elements, or equal values."""
    if isinstance(now, list) and isinstance(then, list):
        return len(now) == len(then) and all(map(_same_answer, now, then))
    if now is then:
        return True
    same = type(now) is type(then) and now == then
    return same if isinstance(same, bool) else False


SPECIAL.update({
    object.__new__: call_new,
    copy.copy: call_copy,
    copy.deepcopy: call_copy,
    _filled: call_filled,
    super: call_super,
    _nothing: call_nothing,
    replace: call_replace,
    functools.wraps: call_wraps,
    _same: call_same,
})
