# SPDX-License-Identifier: Apache-2.0
"""View elimination: views become indices into their arrays, and an array copied into a row is computed there.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x):
...     n = x.shape[0]
...     m = x.shape[1]
...     s = 0.0
...     for i in range(n):
...         row = x[i]
...         inner = row[1:-1]
...         for j in range(inner.shape[0]):
...             s += inner[j]
...     return (s,)''')
>>> function = from_tree(tree.body[0], {"x": ("float64", 2)})
>>> eliminate_views(function)
>>> print(ast.unparse(to_tree(function)))
def f(x):
    n = x.shape[0]
    m = x.shape[1]
    m_less_2 = max(m - 2, 0)
    s = 0.0
    for i in range(n):
        for j in range(m_less_2):
            s += x[i, j + 1]
    return (s,)

Source: the composition of access functions in P. Feautrier, Dataflow analysis of array and scalar references, 1991.
"""
from typing import Any, NamedTuple, cast

from gradscribe.codegen.loops.analysis.arrays import Arrays, uses_in
from gradscribe.codegen.loops.analysis.lengths import is_product
from gradscribe.codegen.loops.analysis.ranges import Ranges
from gradscribe.codegen.loops.form import (
    Alloc,
    Attribute,
    Call,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Items,
    Length,
    Let,
    Load,
    Logic,
    Method,
    Name,
    Op,
    Raise,
    Slice,
    Statement,
    Store,
    Type,
    all_blocks,
    all_names,
    change,
    names_in,
    names_of,
    place_in,
    rebuilt,
    set_by,
    set_in,
    statements,
    unused,
)
from gradscribe.codegen.loops.shapes import entries_changed, take_out

OTHER = "other"                         # a part of an index that is neither an integer nor a slice by literals


class Span(NamedTuple):
    """A slice: its start, a number or an expression; its length, None where that is not known; its step."""
    start: Any
    length: Expr | None
    step: int = 1


def eliminate_views(function: Function) -> None:
    """Replace views, and views of views, by indices into their arrays.  Changes a function in place."""
    views = _Views(function)
    while views.once():
        pass


class _Views:
    """sets, uses: {name: the statements that set it, its uses}; shorter: {(length, number): the name of their
    difference}.  Methods pass shapes on: {array: its known lengths}.
    """

    def __init__(self, function):
        self.function, self.shorter = function, {}
        self.given = [p for p in function.params if function.types[p].rank is not None]
        self.taken = all_names(function)

    def read(self):
        self.sets, self.uses = {}, {}
        for s in statements(self.function.block):
            for name in set_by(s):
                self.sets.setdefault(name, []).append(s)
            for use in uses_in(s):
                self.uses.setdefault(use.name, []).append(use)

    def once(self):
        """Eliminate the views that are possible now; whether there was one."""
        self.read()
        made = {}
        for s in statements(self.function.block):
            if isinstance(s, Alloc):
                made.setdefault(s.name, []).append(s)
        shapes = {n: [Length(n, k) for k in range(self.function.types[n].rank)] for n in self.given
                  if n not in self.sets}
        once = {n: found[0] for n, found in made.items() if len(found) == len(self.sets[n]) == 1}
        shapes |= {n: list(alloc.shape) for n, alloc in once.items()}
        if self.name_lengths(shapes):
            self.read()
        found, self.ranges = False, Ranges(self.function)
        for name, sets in list(self.sets.items()):
            if len(sets) == 1 and self.eliminate(name, sets[0], shapes):
                found = True            # an array as long as the view was made with the view's lengths
                shapes |= {n: list(alloc.shape) for n, alloc in once.items()
                           if any(name in names_in(d) for d in shapes[n])}
        return found

    # names of lengths

    def name_lengths(self, shapes):
        """Replace lengths of arrays by the names or numbers that the arrays were made with, that are set to them before
        any other use, or that a check has found equal to them; whether there were any.
        """
        checks, lengths, named = self.lengths_of_parameters(shapes), dict(shapes), {}
        for name in [n for n in shapes if n in self.given]:
            self.name_length(name, lengths[name], named)
        self.lengths_of_made(lengths, named)
        fixed = {n for n, found in self.sets.items() if len(found) == 1 and found[0] in self.function.block}
        fixed |= set(self.function.params) - self.sets.keys()
        for name, shape in carried_lengths(self.sets, lengths, fixed).items():
            self.name_length(name, shape, named)
        if not named:
            return False

        def new(e):
            return named.get(e, e) if isinstance(e, Length) else rebuilt(e, new)
        for s in statements(self.function.block):
            if isinstance(s, Let) and isinstance(s.value, Length) and named.get(s.value) == Name(s.name):
                continue
            if s not in checks and any(u.role == "length" for u in uses_in(s)):
                change(s, new)
        return True

    def lengths_of_parameters(self, shapes):
        """Add what assignments and checks at the top say of the lengths of parameters; return those checks."""
        read, checks = set(), set()
        for s in self.function.block:
            before = set(read)
            read |= {u.parent for i in statements([s]) for u in uses_in(i) if u.role == "length"}
            if isinstance(s, Let) and len(self.sets[s.name]) == 1 and isinstance(s.value, Length):
                place = s.value
                if place.array in self.given and place.array in shapes and place not in before:
                    shapes[place.array][place.axis] = Name(s.name)
            for place, length in agreed(s):
                if place.array in self.given and place.array in shapes and place not in before:
                    shapes[place.array][place.axis] = length
                    checks.add(s)
        return checks

    def lengths_of_made(self, lengths, named):
        """Add the lengths of arrays that are made once, in the order of the text: from those of earlier arrays."""
        for s in statements(self.function.block):
            if not isinstance(s, (Let, Alloc)) or len(self.sets[s.name]) != 1:
                continue
            if s.name not in lengths:
                found = shape_of_call(s.value, lengths) if isinstance(s, Let) else None
                if found is None:
                    continue
                lengths[s.name] = found
            lengths[s.name] = [lengths[d.array][d.axis] if isinstance(d, Length) and d.axis < len(
                lengths.get(d.array, ())) and len(self.sets.get(d.array, ())) < 2 else d for d in lengths[s.name]]
            self.name_length(s.name, lengths[s.name], named)

    def name_length(self, name, shape, named):
        for use in self.uses.get(name, ()):
            if use.role == "length" and use.parent.axis < len(shape):
                length = shape[use.parent.axis]
                if isinstance(length, Const) or isinstance(length, Name) and len(self.sets.get(length.id, ())) == (
                        length.id not in self.function.params):
                    named[use.parent] = length

    # one view

    def eliminate(self, name, view, shapes):
        """Replace the entries of a view by entries of the array that it shows; whether that was possible."""
        found = self.access(view, shapes)
        if found is None:
            return False
        whole, parts, spans = found
        block = next(b for b in all_blocks(self.function) if view in b)
        at = block.index(view)
        fixed = {n for p in parts for n in names_in(p)} | {n for d in shapes[whole] for n in names_in(d)} - {whole}
        if any(place_in(block, s) >= at for n in fixed for s in self.sets.get(n, ())):
            return False
        lengths = [span.length for span in spans if span]
        uses = [u for s in statements(self.function.block) if name in names_of(s) for u in uses_in(s) if u.name == name]
        slices = [p for p, span in zip(parts, spans) if span]
        plain = all(span.step == 1 for span in spans if span)
        for u in uses:
            replaceable = row_use(u, len(lengths)) or plain and operand_use(u) or view_use(u, slices)
            if place_in(block, u.statement) < at or not replaceable:
                return False
            if u.role == "length" and lengths[u.parent.axis] is None:
                return False
        block[at:at] = self.named_parts(name, view, parts, spans, lengths, uses)
        self.replace_uses(name, Load(Name(whole), tuple(parts)), spans, lengths, uses)
        take_out(block, view)
        return True

    def access(self, view, shapes):
        """(array, the index or slice for each axis, the Span of each slice) of a view; None where that is not known."""
        if not isinstance(view, Let) or not isinstance(view.value, Load) or not isinstance(
                view.value.array, Name) or view.value.array.id not in shapes:
            return None
        whole, parts = view.value.array.id, list(view.value.index)
        shape = shapes[whole]
        if len(parts) > len(shape) or not any(view in b for b in all_blocks(self.function)):
            return None
        parts += [Slice(None, None, None)] * (len(shape) - len(parts))
        if not any(isinstance(p, Slice) for p in parts) or not all(isinstance(p, Slice) or is_index(p) for p in parts):
            return None
        spans = [self.span(p, d, view) if isinstance(p, Slice) else None for p, d in zip(parts, shape)]
        if any(span is None for p, span in zip(parts, spans) if isinstance(p, Slice)):
            return None
        return whole, parts, spans

    def named_parts(self, name, view, parts, spans, lengths, uses):
        """Name the indices and lengths that are computed, so that each is computed once; return the assignments."""
        before = []
        for k, (p, span) in enumerate(zip(parts, spans)):
            if span is None and not isinstance(p, (Name, Const)):
                parts[k] = self.named_number(f"at_{name}", p, view, before)
        asked = {u.parent.axis for u in uses if u.role == "length"}
        for k, length in enumerate(lengths):
            if k in asked and not isinstance(length, (Name, Const, Length)):
                lengths[k] = self.named_number(f"n_{name}", length, view, before)
        return before

    def replace_uses(self, name, shown, spans, lengths, uses):
        """Replace the uses of a view: operands of products, lengths and entries; shown: the part that the view is."""
        def operand(e):
            e = rebuilt(e, operand)
            return Call(e.function, tuple([shown if a == Name(name) else a for a in e.args])) if is_product(e) else e

        def length(e):
            if isinstance(e, Length):
                return lengths[e.axis] if e.array == name else e
            return rebuilt(e, length)

        def entry(e):
            own = iter([*e.index, *(Slice(None, None, None) for _ in lengths)])
            return Load(shown.array, tuple([p if span is None else inside(next(own), p, span)
                                            for p, span in zip(shown.index, spans)]))
        for role, new in (("value", operand), ("length", length)):
            for s in {u.statement: None for u in uses if u.role == role}:
                change(s, new)
        entries_changed(self.function.block, name, entry)

    def named_number(self, name, value, view, before):
        """A new name for a whole number; its assignment, at the place of the view, is added to `before`."""
        new = self.free(name)
        self.function.types[new] = Type("int64", 0)
        before.append(Let(new, value, view.origin))
        return Name(new)

    def span(self, part, length, view):
        """The Span of a slice; None where that is not certain."""
        start = offset_of(part)
        if start != OTHER:
            known = view_length(part, length) or self.less(part, length)
            if known is None and isinstance(part.upper, Const):
                stop = Call("min", (part.upper, length))
                known = Call("max", (Op("-", (stop, Const(start))), Const(0))) if start else stop
            return Span(start, known)
        step = 1 if part.step is None else part.step.value if isinstance(part.step, Const) else 0
        if type(step) is not int or step < 1 or from_end(part.lower):
            return None
        lower = part.lower or Const(0)
        if not self.ranges.at_least(lower, 0, view):
            return None
        stop = length
        if from_end(part.upper):
            stop = Op("-", (length, part.upper.args[0]))
        elif part.upper is not None:
            if not self.ranges.at_least(part.upper, 0, view):
                return None
            inside_it = self.ranges.at_least(Op("-", (length, part.upper)), 0, view)
            stop = part.upper if inside_it else Call("min", (part.upper, length))
        start, left = 0 if lower == Const(0) else lower, stop
        if start != 0 or from_end(part.upper):
            left = Op("-", (stop, lower))
            left = left if self.ranges.at_least(left, 0, view) else Call("max", (left, Const(0)))
        return Span(start, left if step == 1 else Op("//", (Op("+", (left, Const(step - 1))), Const(step))), step)

    def less(self, part, length):
        """The length of x[a:-b] as a name, set once the length of x is known; None where that is not certain."""
        if part.upper is not None and not from_end(part.upper):
            return None
        gone = (part.lower.value if part.lower is not None else 0) + (part.upper.args[0].value if part.upper else 0)
        top, value = self.function.block, Call("max", (Op("-", (length, Const(gone))), Const(0)))
        if (length, gone) in self.shorter:
            return Name(self.shorter[length, gone])
        place = 0
        if isinstance(length, Name):
            made = [k for k, s in enumerate(top) if length.id in set_by(s)]
            if len(self.sets.get(length.id, ())) != 1 or len(made) != 1:
                return None
            place = made[0] + 1
        elif not isinstance(length, Length) or length.array not in self.given or length.array in self.sets:
            return None
        known = next((s.name for s in top if isinstance(s, Let) and s.value == value and
                      len(self.sets[s.name]) == 1), None)
        if known is None:               # named as lowering names it
            known = self.free(f"{length.id if isinstance(length, Name) else 'n'}_less_{gone}")
            self.function.types[known] = Type("int64", 0)
            made = Let(known, value)
            self.sets[known] = [made]
            top.insert(place, made)
        self.shorter[length, gone] = known
        return Name(known)

    def free(self, name):
        return unused(name, self.taken)


# --- parts and uses of views ------------------------------------------------------------------------------------------

def agreed(s: Statement):
    """(length of an array, what it equals) after a check that raises where they differ.

    >>> from gradscribe.codegen.loops.trees import block_of
    >>> list(agreed(block_of('''if x.shape[0] != n or y.shape[1] != 3:
    ...     raise ValueError('lengths')''')[0]))
    [(Length(array='x', axis=0), Name(id='n')), (Length(array='y', axis=1), Const(value=3))]
    """
    if isinstance(s, If) and len(s.block) == 1 and isinstance(s.block[0], Raise) and not s.orelse:
        tests = s.test.items if isinstance(s.test, Logic) and s.test.op == "or" else [s.test]
        for test in tests:
            if isinstance(test, Compare) and test.ops == ("!=",) and isinstance(test.items[0], Length):
                yield test.items


def carried_lengths(sets: dict, known: dict, fixed: set) -> dict:
    """{array: lengths} of arrays that are set at several places, always to one shape, and of arrays made with their
    lengths; sets: {name: the statements that set it}; known: the lengths of arrays that are set once; fixed: names of
    numbers that never change.

    Optimistic: the shape at the first place is assumed, and arrays for which another place contradicts it are dropped
    until a fixpoint.  So an array that a loop carries keeps the shape that its passes assume.
    """
    several = {n: found for n, found in sets.items()
               if len(found) > 1 and all(isinstance(s, (Let, Alloc)) for s in found)}
    taken: dict = {}

    def in_full(length):
        if isinstance(length, Length) and length.array in taken and length.axis < len(taken[length.array]):
            return taken[length.array][length.axis]
        return length

    def shape_of(s):
        if isinstance(s, Alloc):
            return [in_full(d) for d in s.shape]
        source = s.value.id if isinstance(s.value, Name) else None
        return taken.get(source) or known.get(source) and [in_full(d) for d in known[source]]

    for _ in range(2):                  # some shapes in a loop follow from those that it carries
        for name, (first, *_) in several.items():
            shape = None if name in taken else shape_of(first)
            if shape and all(isinstance(d, Const) or isinstance(d, Name) and d.id in fixed for d in shape):
                taken[name] = shape
    while wrong := [n for n in taken if any(shape_of(s) != taken[n] for s in several[n])]:
        for name in wrong:
            del taken[name]
    made = {n: [in_full(d) for d in shape] for n, shape in known.items()} if taken else {}
    return taken | {n: shape for n, shape in made.items() if shape != known[n]}


def shape_of_call(e: Expr, shapes: dict):
    """The shape of a reshaped array or of a product of arrays of known shapes; None of anything else."""
    if isinstance(e, Method) and e.name == "reshape" and not e.keywords and len(e.args) == 1 and isinstance(
            e.args[0], Items):
        return list(e.args[0].items)
    if not isinstance(e, Call) or e.keywords or e.function != "np.dot":
        return None
    found = []
    for a in e.args:
        turned = isinstance(a, Attribute) and a.name == "T"
        a = a.owner if turned else a
        if not isinstance(a, Name) or a.id not in shapes:
            return None
        found.append(shapes[a.id][::-1] if turned else shapes[a.id])
    first, second = found
    return [*first[:-1], *(second[1:] if len(second) > 1 else [])] or None


def is_index(e: Expr) -> bool:
    """Whether it is an integer index: a name, a literal, or a lookup with a check."""
    return isinstance(e, Name) or isinstance(e, Const) and type(e.value) is int or \
        isinstance(e, Call) and e.function == "place"


def offset_of(part: Expr):
    """The start of a slice by literals; None for an index, OTHER for anything else."""
    if not isinstance(part, Slice):
        return OTHER if isinstance(part, Const) and part.value is None else None
    if part.step is not None or not natural(part.lower) or not (natural(part.upper) or from_end(part.upper)):
        return OTHER
    return cast(Const, part.lower).value if part.lower is not None else 0


def natural(end) -> bool:
    return end is None or isinstance(end, Const) and type(end.value) is int and end.value >= 0


def from_end(end) -> bool:
    """-k, for k > 0."""
    return isinstance(end, Op) and end.op == "neg" and isinstance(end.args[0], Const) and \
        type(end.args[0].value) is int and end.args[0].value > 0


def view_length(part: Slice, length: Expr):
    """The length of a slice by literals, if it is known."""
    if part.lower is None and part.upper is None:
        return length
    if not isinstance(length, Const):
        return None
    ends: tuple[Any, Any] = part.lower, part.upper
    first, last = (None if e is None else -e.args[0].value if from_end(e) else e.value for e in ends)
    return Const(len(range(length.value)[first:last]))


def inside(part: Expr, slice_: Slice, span: Span) -> Expr:
    """An index or slice into a slice, as one into the whole axis."""
    offset = span.start
    if span.step > 1:
        part = Const(part.value * span.step) if isinstance(part, Const) else Op("*", (part, Const(span.step)))
    if isinstance(offset, Expr):
        return offset if part == Const(0) else Op("+", (part, offset))
    if not isinstance(part, Slice):
        if isinstance(part, Const):
            return Const(part.value + offset)
        return Op("+", (part, Const(offset))) if offset else part
    start: Any = part.lower
    first = offset + (start.value if start is not None else 0)
    lower = Const(first) if first else None
    outer: Any = slice_.upper
    upper: Any = part.upper
    if from_end(outer) or from_end(upper):
        gone = sum(e.args[0].value for e in (outer, upper) if e is not None)
        return Slice(lower, Op("neg", (Const(gone),)), None)
    ends = [e for e in (outer and outer.value, upper and upper.value + offset) if e is not None]
    return Slice(lower, Const(min(ends)) if ends else None, None)


def row_use(use, rank: int) -> bool:
    """Whether it uses an entry or a length of a row."""
    if use.role == "length":
        return True
    return use.role == "entry" and len(use.parent.index) == rank and not any(
        isinstance(p, Slice) for p in use.parent.index)


def operand_use(use) -> bool:
    """Whether it uses a matrix or vector as an operand of a product, which takes any layout."""
    return use.role == "value" and is_product(use.parent)


def view_use(use, slices: list) -> bool:
    """Whether it is a view of the view by literal slices; slices: the view's own."""
    if use.role != "entry" or len(use.around) > 1 or not isinstance(use.statement, Let):
        return False
    more = use.parent.index
    return len(more) <= len(slices) and not any(offset_of(own) == OTHER for own in slices) and all(
        is_index(p) or offset_of(p) not in (None, OTHER) and joins(own, p) for own, p in zip(slices, more))


def joins(first: Slice, second: Slice) -> bool:
    """Whether a slice of a slice is one slice: both ends are counted from the end, or neither."""
    ends = [e for e in (first.upper, second.upper) if e is not None]
    return len({from_end(e) for e in ends}) < 2


# --- rows that are filled ---------------------------------------------------------------------------------------------

def fill_in_place(function: Function) -> None:
    """Fill a row directly where an array is made, filled, and then copied whole into the row."""
    again = True
    while again:
        copied = {copied_array(s) for s in statements(function.block) if isinstance(s, For)} - {None}
        arrays: Any = Arrays(function) if copied else None
        again = any([_filled_in_place(function, n, arrays) for n in sorted(copied) if n in arrays.own])


def _filled_in_place(function, name, arrays):
    made = arrays.made[name]
    block = next((b for b in all_blocks(function) if made in b), None)
    if made.how != "empty" or block is None:
        return False
    copies = [s for s in block if isinstance(s, For) and copied_row(s, name)]
    if len(copies) != 1:
        return False
    lengths, entry, lead = copied_row(copies[0], name)
    whole = entry.array.id
    aliases = aliases_of(function, whole, arrays)
    if whole == name or not aliases or arrays.made[whole].dtype != made.dtype or made.shape != lengths:
        return False
    first, last = block.index(made), block.index(copies[0])
    between = block[first:last]
    uses = [u for s in statements(function.block) if name in names_of(s) for u in uses_in(s) if u.name == name]
    held = {i for s in between for i in statements([s])}
    if not all(isinstance(p, (Name, Const)) for p in lead) or sum(u.statement in held for u in uses) != len(uses) - 1 \
            or not all(u.role == "entry" and row_use(u, len(lengths)) for u in uses):
        return False
    fixed = {p.id for p in lead if isinstance(p, Name)}
    if any(aliases & (names_of(s) | set(set_by(s))) for s in held) or fixed & set_in(between):
        return False
    entries_changed(between, name, lambda e: Load(Name(whole), (*lead, *e.index)))
    take_out(block, made)
    take_out(block, copies[0])
    arrays.own.discard(name)
    return True


def copied_array(loop):
    """The array that a nest of loops copies, if it does nothing else."""
    while isinstance(loop, For) and len(loop.block) == 1:
        loop = loop.block[0]
    value = getattr(loop, "value", None)
    return value.array.id if isinstance(loop, Store) and isinstance(value, Load) and isinstance(
        value.array, Name) else None


def copied_row(loop, name):
    """(lengths, entry, leading indices) of loops that only do entry[.., i, j] = name[i, j]; None of others."""
    lengths, indices = [], []
    while isinstance(loop, For) and len(loop.block) == 1 and len(loop.range) == 1:
        lengths.append(loop.range[0])
        indices.append(Name(loop.index))
        loop = loop.block[0]
    indices = tuple(indices)
    if not indices or not isinstance(loop, Store) or loop.op is not None or not isinstance(
            loop.entry.array, Name) or loop.value != Load(Name(name), indices):
        return None
    parts = loop.entry.index
    lead = parts[:len(parts) - len(indices)]
    return (tuple(lengths), loop.entry, lead) if lead and parts[len(lead):] == indices else None


def aliases_of(function, name, arrays):
    """The aliases of an array that is made once: its own name and those of its rows; empty where unknown."""
    if name not in arrays.made or name in arrays.again:
        return set()
    ranks = {name: len(arrays.made[name].shape)}
    for shown in (queue := [name]):
        for s in statements(function.block):
            if shown not in names_of(s):
                continue
            for u in uses_in(s):
                if u.name != shown or u.role == "length":
                    continue
                if u.role != "entry":
                    if isinstance(u.parent, Attribute) and u.parent.name == "shape":
                        continue
                    return set()
                left, slices = ranks[shown] - len(u.parent.index), any(isinstance(p, Slice) for p in u.parent.index)
                if left == 0 and not slices:
                    continue
                if not isinstance(s, Let) or len(u.around) > 1 or left <= 0 or slices or \
                        ranks.setdefault(s.name, left) != left:
                    return set()
                if s.name not in queue:
                    queue.append(s.name)
    return set(ranks)
