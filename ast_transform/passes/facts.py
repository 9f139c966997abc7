"""What an operation makes, from what it is given: dtype and dims of results.

Broadcasting and matrix products unify lengths here.  For every other function the answer is asked of the function
itself: it runs on two sets of small arrays whose lengths differ, and a length of the result is certain where both
answers are explained by the same length of an argument (docs/decisions/0002-facts-by-probing.md).
"""
import itertools
import operator
import warnings

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Pack, Slice, Var
from gradscribe.ast_transform.core.kinds import (
    UNIT,
    Array,
    Length,
    Opaque,
    Sequence,
    Stack,
    Symbol,
    spell,
    unify,
    unknown,
)
from gradscribe.ast_transform.core.operations import add_at, put, put_add
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.runtime.broadcasting import broadcast_like, unbroadcast

FIRST, SECOND = (5, 7, 11, 16, 23, 31, 37, 43), (13, 8, 17, 14, 26, 33, 47, 41)
THIRD = (29, 19, 9, 6, 3, 4, 10, 12)        # where two lengths leave more than one explanation
_cache = {}


class Unfit(Exception):
    """Operands that the function refuses; the words are NumPy's or ours."""


def fact_of(node):
    """The fact of an operand."""
    if isinstance(node, Var):
        return node.fact
    if isinstance(node, Const):
        return constant_fact(node.value)
    if isinstance(node, Pack):
        return Sequence(node.kind, tuple(map(fact_of, node.items)), node.keys, node.cls)
    return Opaque(node)


def constant_fact(value):
    if type(value) is bool or isinstance(value, (float, complex)) and type(value) in (float, complex):
        return Array(type(value))
    if type(value) is int:
        return Array(int, (), Length(None, value))
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return Array(value.dtype, (), Length(None, int(value)) if value.dtype.kind in "iu" else None)
    if isinstance(value, np.ndarray):
        return Array(value.dtype, tuple(UNIT if n == 1 else Length(Symbol("?", True, n)) for n in value.shape))
    return Opaque(value)


def describe(value, label="x"):
    """The fact of an example argument: what a signature holds."""
    if type(value) in (bool, float, complex):
        return Array(type(value))
    if type(value) is int:
        return Array(int, (), Length(Symbol(label, False, value)))
    if isinstance(value, np.generic):
        length = Length(Symbol(label, False, int(value))) if value.dtype.kind in "iu" else None
        return Array(value.dtype, (), length)
    if isinstance(value, np.ndarray):
        return Array(value.dtype, tuple(
            UNIT if n == 1 else Length(Symbol(f"{label}.shape[{k}]", True, n)) for k, n in enumerate(value.shape)))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return Sequence("record", tuple(describe(v, f"{label}.{k}") for k, v in zip(value._fields, value)),
                        value._fields, type(value))
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return Sequence(type(value).__name__, tuple(describe(v, f"{label}[{k}]") for k, v in enumerate(value)))
    if type(value) is dict:
        return Sequence("dict", tuple(describe(v, f"{label}[{k!r}]") for k, v in value.items()), tuple(value))
    if hasattr(type(value), "__dataclass_fields__"):
        names = tuple(type(value).__dataclass_fields__)
        return Sequence("record", tuple(describe(getattr(value, k), f"{label}.{k}") for k in names), names, type(value))
    return Opaque(value)


# --- broadcasting -----------------------------------------------------------------------------------------------------

def broadcast(shapes):
    """The dims of operands that meet, lengths unified where they must be equal."""
    rank = max(map(len, shapes), default=0)
    out = []
    for k in range(-rank, 0):
        lengths = [s[k] for s in shapes if len(s) >= -k]
        rest = [n for n in lengths if not n.is_unit]
        if not rest:
            out.append(UNIT)
            continue
        certain = [n for n in rest if n.many]
        for n in certain[1:]:
            if not unify(certain[0], n):
                raise Unfit("shapes " + " and ".join(_shape(s) for s in shapes) + " do not broadcast")
        if certain:
            out.append(certain[0])
        elif all(n.same(rest[0]) for n in rest):
            out.append(rest[0])
        else:
            out.append(unknown("?broadcast"))
    return tuple(out)


def _shape(dims):
    sizes = ["?" if d.size is None else str(d.size) for d in dims]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


# --- the answer of a function -----------------------------------------------------------------------------------------

def infer(function, args, kwargs=()):
    """The fact of function(*args, **kwargs); a tuple of facts where it returns several results."""
    rule = _rule(function)
    if (rule is not None and (rule.kind == "elementwise" or rule.options.get("elementwise"))) or \
            isinstance(function, np.ufunc) and function.signature is None or function in _ELEMENTWISE:
        return _elementwise(function, args, kwargs)
    if function in _PRODUCTS and len(args) == 2:
        _contract(function, *(fact_of(a) for a in args))
    if function is np.reshape:
        return _reshape(args, dict(kwargs))
    if function in (put, put_add, add_at):
        fact = fact_of(args[0])
        return Array(np.dtype(fact.dtype), fact.dims)
    if function in (unbroadcast, broadcast_like):
        return Array(np.dtype(fact_of(args[0]).dtype), fact_of(args[1]).dims)
    if function is np.broadcast_to:
        return _broadcast_to(args, dict(kwargs))
    meet = _MEETINGS.get(function) if rule is not None else None
    if meet is not None:
        meet(args, dict(kwargs))
    return probe(function, args, kwargs)


def _rule(function):
    try:
        return RULES.get(function)
    except TypeError:
        return None


_ELEMENTWISE = {
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.neg,
    operator.pos,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.invert,
    operator.lshift,
    operator.rshift,
    np.where,
    np.clip,
    np.real,
    np.imag,
    np.copy,
    np.conj,
    abs,
}
_PRODUCTS = {operator.matmul, np.matmul, np.dot, np.inner}


def _elementwise(function, args, kwargs):
    facts = [fact_of(a) for a in args]
    words = [(k, fact_of(a)) for k, a in kwargs]
    for f in [*facts, *(f for _, f in words)]:
        if isinstance(f, (Sequence, Stack)):
            raise Unfit(f"an array is needed, {spell(f)} is given")
        if isinstance(f, Opaque) and f.value is not None and not isinstance(f.value, (np.dtype, type)):
            raise Unfit(f"an array is needed, {spell(f)} is given")
    arrays = [f for f in [*facts, *(f for _, f in words)] if isinstance(f, Array)]
    dims = broadcast([f.dims for f in arrays])
    literal = (
        tuple(a.value for a in [*args, *(v for _, v in kwargs)] if isinstance(a, Const) and type(a.value) is int)
        if function in (operator.pow, np.power)
        else ()
    )
    key = (function, tuple(_dtype_key(f) for f in facts), tuple((k, _dtype_key(f)) for k, f in words), literal)
    dtype = _cache.get(key)
    if dtype is None:
        dtype = _cache[key] = _dtype_of_elementwise(function, args, facts, kwargs, words)
    if dims and isinstance(dtype, type):
        dtype = np.dtype(dtype)
    length = None
    if not dims and Array(dtype).kind in "iu":
        length = _counted(function, facts) or unknown("?int")
    return Array(dtype, dims, length)


def _dtype_key(fact):
    return (fact.weak, fact.dtype, bool(fact.dims)) if isinstance(fact, Array) else (None, repr(fact.value))


def _dtype_of_elementwise(function, args, facts, kwargs, words):
    def sample(node, fact):
        if not isinstance(fact, Array):
            return fact.value
        if isinstance(node, Const) and not isinstance(node.value, np.ndarray) and type(node.value) is not bool \
                and not fact.dims and fact.kind in "iu" and node.value > 0:
            return node.value
        if fact.weak:
            return {bool: True, int: 1, float: 0.5, complex: 0.5 + 0.5j}[fact.dtype]
        one = fact.dtype.type(1)
        return np.full(1, one) if fact.dims else one
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = function(*map(sample, args, facts), **{k: sample(a, f) for (k, a), (_, f) in zip(kwargs, words)})
        except Exception as error:
            raise Unfit(str(error)) from None
    return type(value) if type(value) in (bool, int, float, complex) else np.asarray(value).dtype


def _counted(function, facts):
    """The value of an integer sum, as a length."""
    if function in (operator.add, operator.sub) and len(facts) == 2 and all(f.length is not None for f in facts):
        a, b = (f.length.normal() for f in facts)
        if b.symbol is None:
            return a.plus(b.offset if function is operator.add else -b.offset)
        if a.symbol is None and function is operator.add:
            return b.plus(a.offset)
    return None


def _contract(function, a, b):
    if not (isinstance(a, Array) and isinstance(b, Array)) or not a.rank or not b.rank:
        return
    place = -1 if function is np.inner or b.rank == 1 else -2
    m, n = a.dims[-1], b.dims[place]
    if not unify(m, n):
        raise Unfit(f"shapes {_shape(a.dims)} and {_shape(b.dims)} do not multiply: {m.size} and {n.size} differ")
    if function in (operator.matmul, np.matmul) and a.rank > 2 and b.rank > 2:
        broadcast([a.dims[:-2], b.dims[:-2]])


def _reshape(args, words):
    """Lengths given as numbers are certain; -1 is the rest, certain where one length can be divided out."""
    fact = fact_of(args[0])
    shape = args[1] if len(args) > 1 else words.get("shape", words.get("newshape"))
    parts = shape.items if isinstance(shape, Pack) else shape.value if isinstance(shape, Const) else (shape,)
    if not isinstance(parts, (tuple, list)):
        parts = (parts,)
    given = [fact_of(p if isinstance(p, (Var, Const)) else Const(p)) for p in parts]
    if not isinstance(fact, Array) or any(not isinstance(g, Array) or g.length is None for g in given):
        raise Unfit("a reshape to a shape that is not known when transforming")
    dims = []
    for g in given:
        n = g.length.normal()
        dims.append(None if n.symbol is None and n.offset == -1 else n)
    if None in dims:
        dims = [_rest(fact.dims, [d for d in dims if d is not None]) if d is None else d for d in dims]
    return Array(_strong(fact.dtype), tuple(dims))


def _broadcast_to(args, words):
    fact = fact_of(args[0])
    shape = args[1] if len(args) > 1 else words["shape"]
    parts = shape.items if isinstance(shape, Pack) else shape.value if isinstance(shape, Const) else (shape,)
    parts = parts if isinstance(parts, (tuple, list)) else (parts,)
    given = [fact_of(p if isinstance(p, (Var, Const)) else Const(p)) for p in parts]
    if any(not isinstance(g, Array) or g.length is None for g in given) or len(given) < fact.rank:
        raise Unfit("a broadcast to a shape that is not known when transforming")
    dims = tuple(g.length.normal() for g in given)
    for d, e in zip(reversed(fact.dims), reversed(dims)):
        if not d.is_unit and d.many and not unify(d, e):
            raise Unfit(f"shape {_shape(fact.dims)} does not broadcast to {_shape(dims)}")
    return Array(np.dtype(fact.dtype), dims)


def _same_shapes(args, words):
    """np.stack: all shapes are one."""
    facts = [f for f in map(fact_of, args[0].items if isinstance(args[0], Pack) else ()) if isinstance(f, Array)]
    for f in facts[1:]:
        if f.rank == facts[0].rank:
            for d, e in zip(facts[0].dims, f.dims):
                _one(d, e)


def _joined_shapes(args, words):
    """np.concatenate: all lengths but those along the axis are one."""
    axis = args[1] if len(args) > 1 else words.get("axis", Const(0))
    facts = [f for f in map(fact_of, args[0].items if isinstance(args[0], Pack) else ()) if isinstance(f, Array)]
    for f in facts[1:]:
        if f.rank == facts[0].rank and f.rank and axis.value is not None:
            for k, (d, e) in enumerate(zip(facts[0].dims, f.dims)):
                if k != axis.value % f.rank:
                    _one(d, e)


def _labelled(args, words):
    """np.einsum: lengths with one label are one."""
    if not isinstance(args[0], Const) or "." in str(args[0].value):
        return
    labels = {}
    for term, a in zip(str(args[0].value).replace(" ", "").split("->")[0].split(","), args[1:]):
        fact = fact_of(a)
        if isinstance(fact, Array) and len(term) == fact.rank:
            for c, d in zip(term, fact.dims):
                if not d.is_unit:
                    if c in labels:
                        _one(labels[c], d)
                    labels.setdefault(c, d)


def _contracted(args, words):
    """np.tensordot: lengths that are summed together are one."""
    a, b = map(fact_of, args[:2])
    axes = args[2] if len(args) > 2 else words.get("axes", Const(2))
    axes = _literal(axes)
    if isinstance(axes, int):
        pairs = [(a.rank - axes + k, k) for k in range(axes)]
    else:
        left, right = (p if isinstance(p, (tuple, list)) else (p,) for p in axes)
        pairs = list(zip(left, right))
    for i, j in pairs:
        _one(a.dims[i], b.dims[j])


def _square(args, words):
    a = fact_of(args[0])
    if isinstance(a, Array) and a.rank >= 2:
        _one(a.dims[-1], a.dims[-2])
    if len(args) > 1:
        b = fact_of(args[1])
        if isinstance(b, Array) and b.rank:
            _one(a.dims[-1], b.dims[0] if b.rank == 1 else b.dims[-2])


def _along(args, words):
    """np.take_along_axis: lengths other than the axis's are one."""
    a, i = map(fact_of, args[:2])
    axis = args[2] if len(args) > 2 else words.get("axis", Const(-1))
    if isinstance(axis, Const) and axis.value is not None and a.rank == i.rank:
        for k, (d, e) in enumerate(zip(a.dims, i.dims)):
            if k != axis.value % a.rank and not d.is_unit and not e.is_unit:
                _one(d, e)


def _one(a, b):
    if not unify(a, b):
        raise Unfit(f"lengths {a.size} and {b.size} must be equal")


def _literal(node):
    if isinstance(node, Const):
        return node.value
    return tuple(map(_literal, node.items))


_MEETINGS = {
    np.stack: _same_shapes,
    np.concatenate: _joined_shapes,
    np.einsum: _labelled,
    np.tensordot: _contracted,
    np.linalg.solve: _square,
    np.linalg.inv: _square,
    np.linalg.det: _square,
    np.linalg.slogdet: _square,
    np.linalg.cholesky: _square,
    np.linalg.eigh: _square,
    np.linalg.eigvalsh: _square,
    np.linalg.eigvals: _square,
    np.linalg.matrix_power: lambda args, words: _square(args[:1], words),
    np.take_along_axis: _along,
}


def _rest(whole, given):
    """The length that -1 stands for."""
    whole = [d.normal() for d in whole if not d.is_unit]
    given = [d for d in given if not d.is_unit]
    if all(d.symbol is None for d in [*whole, *given]):
        return Length(None, int(np.prod([d.offset for d in whole]) // max(1, np.prod([d.offset for d in given]))))
    for d in given:
        match = next((k for k, e in enumerate(whole) if e.same(d)), None)
        if match is None:
            return unknown("?reshape")
        del whole[match]
    return UNIT if not whole else whole[0] if len(whole) == 1 else unknown("?reshape", any(d.many for d in whole))


def _strong(dtype):
    return np.dtype(dtype)


class _Probe:
    """One run of a function on small arrays: symbols become numbers."""

    def __init__(self, sizes):
        self.sizes, self.chosen = iter(sizes), {}

    def length(self, length):
        n = length.normal()
        if n.symbol is None:
            return n.offset
        if n.symbol not in self.chosen:
            try:
                self.chosen[n.symbol] = next(self.sizes)
            except StopIteration:
                raise Unfit("too many lengths at once") from None
        return self.chosen[n.symbol] + n.offset

    def value(self, node):
        if isinstance(node, Const):
            return node.value
        if isinstance(node, Pack):
            items = [self.value(i) for i in node.items]
            return tuple(items) if node.kind == "tuple" else items
        if isinstance(node, Slice):
            return slice(*(None if p is None else self.value(p) for p in (node.start, node.stop, node.step)))
        return self.sample(fact_of(node))

    def sample(self, fact):
        if isinstance(fact, Array):
            if not fact.dims:
                if fact.length is not None:
                    n = self.length(fact.length)
                    return n if fact.weak else fact.dtype.type(n % 100)
                if fact.weak:
                    return {bool: True, int: 2, float: 0.5, complex: 0.5 + 0.5j}[fact.dtype]
                return fact.dtype.type(1) if fact.kind in "biu" else fact.dtype.type(0.5)
            shape = tuple(self.length(d) for d in fact.dims)
            if any(n < 0 for n in shape):
                raise Unfit("a length would be negative")
            return _filled(shape, fact.dtype)
        if isinstance(fact, Sequence):
            items = [self.sample(e) for e in fact.elements]
            if fact.kind == "dict":
                return dict(zip(fact.keys, items))
            return tuple(items) if fact.kind == "tuple" else items if fact.kind == "list" else fact.cls(*items)
        if isinstance(fact, Opaque):
            return fact.value
        raise Unfit(f"an array is needed, {spell(fact)} is given")


def _filled(shape, dtype):
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    if dtype.kind in "iu":
        return np.zeros(shape, dtype)
    if len(shape) >= 2 and shape[-1] == shape[-2]:
        square = 2.0 * np.eye(shape[-1]) + 0.1 + 0.5 * np.diag(np.arange(shape[-1]) / max(1, shape[-1]))
        return np.broadcast_to(square, shape).astype(dtype)
    return np.full(shape, 0.5, dtype)


def probe(function, args, kwargs=()):
    """Ask the function itself, twice, with different lengths."""
    facts = [_facts_in(a) for a in [*args, *(a for _, a in kwargs)]]
    symbols = list(
        dict.fromkeys(n.symbol for f in itertools.chain(*facts) for n in _lengths(f) if n.symbol is not None)
    )
    number = {s: k for k, s in enumerate(symbols)}
    try:
        key = (function, tuple(_key(a, number) for a in args), tuple((k, _key(a, number)) for k, a in kwargs))
        known = _cache.get(key)
    except TypeError:
        key = known = None
    if known is None:
        known = _ask(function, args, kwargs, symbols)
        if key is not None and not isinstance(known, _Again):
            _cache[key] = known
    return _decode(known, symbols)


def _facts_in(node):
    if isinstance(node, (Pack,)):
        return list(itertools.chain(*map(_facts_in, node.items)))
    if isinstance(node, Slice):
        return list(itertools.chain(*(_facts_in(p) for p in (node.start, node.stop, node.step) if p is not None)))
    if isinstance(node, Const) and not isinstance(node.value, np.ndarray):
        return []
    return [fact_of(node)]


def _lengths(fact):
    if isinstance(fact, Array):
        for d in fact.dims:
            yield d.normal()
        if fact.length is not None:
            yield fact.length.normal()
    elif isinstance(fact, Sequence):
        for e in fact.elements:
            yield from _lengths(e)


def _key(node, number):
    if isinstance(node, Const):
        if isinstance(node.value, np.ndarray):
            raise TypeError
        hash(node.value)
        return ("=", type(node.value), node.value)
    if isinstance(node, Pack):
        return (node.kind, tuple(_key(i, number) for i in node.items))
    if isinstance(node, Slice):
        return ("slice", tuple(p is None or _key(p, number) for p in (node.start, node.stop, node.step)))
    return _fact_key(fact_of(node), number)


def _fact_key(fact, number):
    if isinstance(fact, Array):
        def at(length):
            n = length.normal()
            return (number.get(n.symbol), n.offset, n.many)
        return (fact.weak, fact.dtype, tuple(map(at, fact.dims)), None if fact.length is None else at(fact.length))
    if isinstance(fact, Sequence):
        return (fact.kind, tuple(_fact_key(e, number) for e in fact.elements))
    hash(getattr(fact, "value", None))
    return repr(fact)


def _ask(function, args, kwargs, symbols):
    answers = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sizes in (FIRST, SECOND):
            run = _Probe(sizes)
            for s in symbols:
                run.length(Length(s))
            try:
                value = function(*map(run.value, args), **{k: run.value(a) for k, a in kwargs})
            except Unfit:
                raise
            except Exception as error:
                return _by_example(function, args, kwargs, symbols, error)
            answers.append((_structure(value), run.chosen))
        known = _explain(*zip(*answers), symbols)
        if not _same_lengths(known):
            run = _Probe(THIRD)
            for s in symbols:
                run.length(Length(s))
            try:
                value = function(*map(run.value, args), **{k: run.value(a) for k, a in kwargs})
                answers.append((_structure(value), run.chosen))
            except Exception as error:
                raise Unfit(f"the result's shape is not certain: {error}") from None
            known = _explain(*zip(*answers), symbols)
    return known


def _by_example(function, args, kwargs, symbols, error):
    """Lengths that must agree make a probe fail; those that agree in the example are made one: it is asked again."""
    sizes = {}
    for s in symbols:
        if s.size is None:
            raise Unfit(str(error))
        sizes.setdefault(s.size, []).append(s)
    run = _Probe(())
    run.chosen = {s: s.size for s in symbols}
    try:
        function(*map(run.value, args), **{k: run.value(a) for k, a in kwargs})
    except Exception as own:
        raise Unfit(str(own)) from None
    joined = False
    for group in sizes.values():
        for other in group[1:]:
            joined = True
            unify(Length(group[0]), Length(other))
    if not joined:                      # the function asks for these very lengths (np.cross for 3): they become numbers
        if not symbols:
            raise Unfit(str(error))
        for s in symbols:
            unify(Length(s), Length(None, s.size))
    return _Again()


class _Again(Exception):
    pass


def _structure(value):
    if isinstance(value, np.ndarray):
        return ("array", value.dtype, value.shape)
    if type(value) in (bool, int, float, complex):
        return ("scalar", type(value), value if type(value) is int else None)
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return ("scalar", value.dtype, int(value) if value.dtype.kind in "iu" else None)
    if isinstance(value, (tuple, list)):
        return ("several", "tuple" if isinstance(value, tuple) else "list", tuple(map(_structure, value)))
    return ("opaque", value, None)


def _explain(results, sizes, symbols):
    """What the results of all probes have in common."""
    kind, dtype, detail = results[0]
    if any(r[0] != kind for r in results):
        raise Unfit("the kind of the result depends on lengths")
    details = [r[2] for r in results]
    if kind == "several":
        if any(len(d) != len(detail) for d in details):
            raise Unfit("the number of results depends on lengths")
        return ("several", dtype, tuple(_explain(parts, sizes, symbols) for parts in zip(*details)))
    if kind == "array":
        if any(len(d) != len(detail) for d in details):
            raise Unfit("the rank of the result depends on lengths")
        return ("array", dtype, tuple(_length(found, sizes, symbols) for found in zip(*details)))
    if kind == "scalar":
        return (kind, dtype, None if detail is None else _length(details, sizes, symbols))
    return results[0]


def _length(found, sizes, symbols):
    """(position of the symbol, offset), a number, or what is known of a length that nothing explains."""
    for k, s in enumerate(symbols):
        if all(n == chosen[s] for n, chosen in zip(found, sizes)):
            return (k, 0)
    if len(set(found)) == 1:
        return found[0]
    for k, s in enumerate(symbols):
        offset = found[0] - sizes[0][s]
        if abs(offset) <= 4 and all(n - chosen[s] == offset for n, chosen in zip(found, sizes)):
            return (k, offset)
    for (i, s), (j, t) in itertools.combinations(enumerate(symbols), 2):
        if all(n == chosen[s] * chosen[t] for n, chosen in zip(found, sizes)):
            return ("product", i, j)
    return "unknown"


def _same_lengths(known):
    """Every length of a result is that of an argument, or nothing is claimed of it."""
    kind, _, detail = known
    if kind == "several":
        return all(map(_same_lengths, detail))
    if kind == "array":
        return all(d == "unknown" or isinstance(d, tuple) and d[1] == 0 and d[0] != "product" for d in detail)
    return True


def _decode(known, symbols):
    if isinstance(known, _Again):
        raise known
    kind, dtype, detail = known
    if kind == "several":
        return Sequence(dtype, tuple(_decode(d, symbols) for d in detail))
    def length(d):
        if isinstance(d, tuple) and d[0] == "product":
            return unknown("?product", symbols[d[1]].many or symbols[d[2]].many)
        if isinstance(d, tuple):
            return Length(symbols[d[0]], d[1])
        return unknown("?") if d == "unknown" else Length(None, d)
    if kind == "array":
        return Array(dtype, tuple(map(length, detail)))
    if kind == "scalar":
        return Array(dtype, (), None if detail is None else length(detail))
    return Opaque(dtype)


_asked = probe


def probe(function, args, kwargs=()):               # noqa: F811  asks again once lengths were made one
    for _ in range(3):
        try:
            return _asked(function, args, kwargs)
        except _Again:
            continue
    raise Unfit("the result's shape is not certain")


# --- reading elements -------------------------------------------------------------------------------------------------

def item(fact, index):
    """The fact of x[index]; the index is an operand."""
    if isinstance(fact, Stack):
        return fact.element
    if isinstance(fact, Sequence):
        key = static_key(index)
        if isinstance(key, slice):
            return Sequence(fact.kind, fact.elements[key])
        return fact.elements[fact.keys.index(key) if fact.kind == "dict" else key]
    parts = list(index.items) if isinstance(index, Pack) else \
        [Const(p) for p in index.value] if isinstance(index, Const) and isinstance(index.value, tuple) else [index]
    used = sum(_axes_used(p) for p in parts)
    if used > fact.rank:
        raise Unfit(f"{used} indices for an array of rank {fact.rank}")
    at = next((k for k, p in enumerate(parts) if isinstance(p, Const) and p.value is Ellipsis), None)
    if at is None:
        parts.append(Const(Ellipsis))
        at = len(parts) - 1
    parts[at:at + 1] = [Const(slice(None))] * (fact.rank - used)
    dims, source, gathers, place, apart = [], list(fact.dims), [], None, False
    for p in parts:
        if isinstance(p, Const) and p.value is None:
            dims.append(UNIT)
            continue
        if isinstance(p, Slice) or isinstance(p, Const) and isinstance(p.value, slice):
            dims.append(sliced(source.pop(0), p))
            continue
        f = fact_of(p)
        if not isinstance(f, Array) or f.kind not in "biu":
            raise Unfit(f"an index is an integer, a slice, None or an array of integers, not {spell(f)}")
        if f.kind == "b":
            if not f.dims:
                raise Unfit("an index that is a truth value")
            del source[:f.rank]
            gathers.append((unknown("?mask"),))
        else:
            source.pop(0)
            if not f.dims:
                if any(isinstance(q, Var) and fact_of(q).dims for q in parts):
                    gathers.append(())
                    if place is None:
                        place = len(dims)
                    elif place != len(dims):
                        apart = True
                continue
            gathers.append(f.dims)
        if place is None:
            place = len(dims)
        elif place != len(dims):
            apart = True
    if gathers:
        met = broadcast(gathers)
        place = 0 if apart else place
        dims[place:place] = met
    dtype = np.dtype(fact.dtype)
    return Array(dtype, tuple(dims), unknown("?int") if not dims and dtype.kind in "iu" else None)


def _axes_used(part):
    if isinstance(part, Const) and (part.value is None or part.value is Ellipsis):
        return 0
    f = fact_of(part)
    return f.rank if isinstance(f, Array) and f.kind == "b" else 1


def sliced(length, part):
    """The length of x[start:stop:step] as far as it is certain."""
    if isinstance(part, Const):
        part = Slice(*(None if v is None else Const(v) for v in (part.value.start, part.value.stop, part.value.step)))
    def number(p, default):
        return default if p is None or isinstance(p, Const) and p.value is None else \
            p.value if isinstance(p, Const) and isinstance(p.value, (int, np.integer)) else Ellipsis
    start, stop, step = number(part.start, 0), number(part.stop, None), number(part.step, 1)
    n = length.normal()
    if step == -1 and start == 0 and stop is None and part.start is None:
        return length
    if Ellipsis in (start, stop, step):
        return unknown("?slice")
    if n.symbol is None:
        return Length(None, len(range(n.offset)[slice(None if part.start is None else start, stop, step)]))
    if step != 1:
        return unknown("?slice")
    if start >= 0 and stop is None:
        return length if start == 0 else Length(n.symbol, n.offset - start)
    if start >= 0 and stop < 0:
        return Length(n.symbol, n.offset - start + stop)
    if start == 0 and stop == 1 and n.many or start == -1 and stop is None and n.many:
        return UNIT
    if start == 0 and stop is not None and stop >= 2 or start <= -2 and stop is None:
        return unknown("?slice", n.many)
    return unknown("?slice")


def static_key(index):
    """A literal index as a Python value."""
    if isinstance(index, Const):
        return index.value
    if isinstance(index, Slice):
        return slice(*(None if p is None else p.value for p in (index.start, index.stop, index.step)))
    raise Unfit("a container is indexed by a value that is not known when transforming")


def infer_apply(value: Apply):
    return infer(value.function, value.args, value.kwargs)
