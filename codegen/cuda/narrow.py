# SPDX-License-Identifier: Apache-2.0
"""Arrays in half precision on a device: stored so, computed in single precision.

A function is lowered as if what is float16 were float32.  What its variables say of arrays is then said of its loops:
those are allocated as float16, entries are rounded before they are stored and widened where they are read.  Every entry
that is stored is rounded also where its number is used without being read again, so that both are the same number.
Sums, products and numbers are not rounded before they are results; arrays that are added into stay single.
"""
import operator

import numpy as np

from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    Effect,
    For,
    Function,
    If,
    Let,
    Pack,
    Param,
    Slice,
    Var,
    While,
    all_made,
    copied,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Sequence, Stack
from gradscribe.ast_transform.core.operations import astype
from gradscribe.ast_transform.source.diagnose import RuleError, ShapeError
from gradscribe.codegen.cuda.stored import HALF, MADE
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import node, quoted
from gradscribe.codegen.lowered import Core, Lazy, lazily
from gradscribe.codegen.lowering import leaves
from gradscribe.codegen.settled import is_view

SINGLE = np.dtype("float32")
DOUBLES = (np.dtype("float64"), np.dtype("complex128"))
OF_DTYPE = {np.nextafter, np.spacing, np.frexp}         # their values hang on the dtype that numbers have
PRODUCTS = {np.dot, np.matmul, operator.matmul, np.inner, np.tensordot, np.einsum}
SPELLED = {"float16", "half", "f2", "<f2"}
LARGEST = {"float16": 65504.0, "bfloat16": float.fromhex("0x1.FEp+127")}


def in_half(x):
    """Numbers in single precision that half precision has."""
    return np.asarray(x).astype(HALF).astype(SINGLE)[()]


@lazily(in_half)
def _in_half(lowering, node):
    x = lowering.lazy(node.args[0])
    return Lazy(x.dims, SINGLE, lambda index: quoted("np.float16({})", x.cast(index, SINGLE)), x.cost + 1)


def is_half(fact):
    return isinstance(fact, Array) and not fact.weak and np.dtype(fact.dtype) == HALF


def wide(fact):
    """A fact with single precision in the place of half."""
    if is_half(fact):
        return type(fact)(SINGLE, fact.dims, fact.length)
    if isinstance(fact, Stack):
        return Stack(wide(fact.element))
    if isinstance(fact, Sequence):
        return Sequence(fact.kind, tuple(map(wide, fact.elements)), fact.keys, fact.cls)
    return fact


def is_single(function, captured):
    """Whether nothing in a function is in double precision, but numbers of Python's, which take what they meet."""
    told = Core(None, set())

    def doubles(value):
        if isinstance(value, Apply):
            return told.fact(value), *(f for a in value.args for f in doubles(a))
        return (value.fact,) if isinstance(value, Var) else ()
    found = [p.value.fact for p in function.params if isinstance(p.value, Var)]
    found += [v.fact for v in (*(v for v, _ in captured.values()), *all_made(function.body))]
    try:
        for value in (*leaves(function.result), *(getattr(s, "value", None) for s in walk(function.body))):
            found += doubles(value)
    except ShapeError:                  # it is said where the function is lowered
        return False
    return not any(isinstance(f, Array) and not f.weak and np.dtype(f.dtype) in DOUBLES for f in found)


class Widened:
    """A function, and the arrays it reads from outside, in single precision where they are in half.

    Attributes: function, captured (as compile_function takes them), given (dtype of each parameter), results (dtype of
    each leaf of the result that is an array or a number, else None), some (whether there is anything in half).
    """

    def __init__(self, function, captured, bfloat16=False):
        self.function, self.captured = function, captured
        self.largest = LARGEST["bfloat16" if bfloat16 else "float16"]
        self.given = [getattr(p.value.fact, "dtype", None) for p in function.params if isinstance(p.value, Var)]
        self.told, self.own = Core(None, set()), []
        self.results = [getattr(self.told.fact(leaf), "dtype", None) for leaf in leaves(function.result)]
        outside = {v for v, _ in captured.values()}
        made = [*(p.value for p in function.params if isinstance(p.value, Var)), *outside, *all_made(function.body)]
        self.some = any(wide(v.fact) != v.fact for v in made)
        if self.some:
            self.widen(outside)

    def widen(self, outside):
        function = self.function
        env = {p.value: p.value.like() for p in function.params if isinstance(p.value, Var)}
        env |= {v: v.like() for v in outside}
        body = copied(function.body, env)
        body = self.apart(body)
        result = substituted(function.result, env)
        values = [*(getattr(s, "value", None) for s in walk(body)), *leaves(result)]
        self.limited = {id(n) for value in values for n in applies(value) if n.function is np.nan_to_num and is_half(
            self.told.fact(n))}
        self.half = {new for new in [*env.values(), *self.own] if is_half(new.fact) and new.fact.dims}
        for new in [*env.values(), *self.own]:
            new.fact = wide(new.fact)
        for step in walk(body):
            self.statement(step)
        params = [Param(p.name, env[p.value] if isinstance(p.value, Var) else p.value) for p in function.params]
        self.captured = {k: (env[v], value) for k, (v, value) in self.captured.items()}
        self.function = Function(function.label, params, body, self.value(result), function.about)

    def apart(self, block):
        """A block in which what is made to be a factor of a product has a name, and so a dtype."""
        out = []
        for step in block:
            for field in ("head", "body", "then", "orelse"):
                if hasattr(step, field):
                    setattr(step, field, self.apart(getattr(step, field)))
            if isinstance(step, Let):
                step.value = self.factors(step.value, out, step.origin)
            out.append(step)
        return out

    def factors(self, node, before, origin):
        if not isinstance(node, Apply):
            return node
        args = [self.factors(a, before, origin) for a in node.args]
        if node.function in PRODUCTS:
            for k, a in enumerate(args):
                if isinstance(a, Apply) and not is_view(a) and is_half(self.told.fact(a)):
                    self.own.append(Var("factor", self.told.fact(a)))
                    before.append(Let((self.own[-1],), a, origin))
                    args[k] = self.own[-1]
        return Apply(node.function, tuple(args), node.kwargs, node.origin)

    def statement(self, step):
        """Dtypes and constants of a statement."""
        self.origin = step.origin
        if isinstance(step, (Let, Effect)):
            step.value = self.value(step.value)
        if isinstance(step, For):
            step.count = self.value(step.count)
            step.items = tuple((v, self.value(s)) for v, s in step.items)
        if isinstance(step, (If, While)):
            step.test = self.value(step.test)
        for c in getattr(step, "carries", ()):
            c.init, c.next = self.value(c.init), self.value(c.next)
        for j in getattr(step, "joins", ()):
            j.then, j.orelse = self.value(j.then), self.value(j.orelse)

    def value(self, node):
        if isinstance(node, Const):
            return constant(node)
        if isinstance(node, Apply):
            if node.function is astype and isinstance(node.args[1], Const) and np.dtype(node.args[1].value) == HALF:
                return Apply(in_half, (self.value(node.args[0]),), (), node.origin)
            if node.function in OF_DTYPE:
                raise RuleError(f"np.{node.function.__name__} hangs on the precision of numbers, which is single on a "
                                "device where arrays are in half", node.origin or self.origin,
                                "Compute it in single precision: x.astype(np.float32).")
            words = tuple((k, self.value(a)) for k, a in node.kwargs)
            if id(node) in self.limited:
                words = self.finite(len(node.args), words)
            return Apply(node.function, tuple(map(self.value, node.args)), words, node.origin)
        if isinstance(node, Pack):
            return Pack(node.kind, tuple(map(self.value, node.items)), node.keys, node.cls)
        if isinstance(node, Slice):
            return Slice(*(p if p is None else self.value(p) for p in (node.start, node.stop, node.step)))
        return node

    def finite(self, given, words):
        """Keywords of np.nan_to_num with the largest numbers of the format, where none are given."""
        known = {**dict.fromkeys(("x", "copy", "nan", "posinf", "neginf")[:given]), **dict(words)}
        return words + tuple((k, Const(v)) for k, v in (("posinf", self.largest), ("neginf", -self.largest)) if (
            k not in known or isinstance(known[k], Const) and known[k].value is None))

    def dtypes(self, results):
        """Those of the leaves that the text returns."""
        return [d for d, (kind, _) in zip(self.results, results) if kind != "literal"]

    def results_as(self, results, short=HALF):
        """What each leaf of the result is, with the dtypes that the function gives; short: of those in half."""
        return [(kind, (short.type(what) if kind == "literal" else short) if dtype == HALF else what)
                for dtype, (kind, what) in zip(self.results, results)]

    def narrow(self, lowering):
        """Arrays in half precision are allocated as such, and what is stored in them is rounded."""
        renamed, named = lowering.function.notes["renamed"], {}
        half = {renamed[v] for v in self.half}
        known = set(renamed.values())
        for v, name in lowering.naming.names.items():
            if v in known and isinstance(v.fact, Array) and v.fact.dims:
                named.setdefault(name, []).append(v in half)
        made = list(loops.statements(lowering.body))
        stores = [s for s in made if isinstance(s, loops.Store) and isinstance(s.entry.array, loops.Name)]
        results = zip(made[-1].value.items, self.dtypes(lowering.results))
        short = {n for n, found in named.items() if all(found)}         # arrays of a single name are the lowering's own
        short |= {e.id for e, dtype in results if dtype == HALF and isinstance(e, loops.Name)} - named.keys()
        for s in made:
            if isinstance(s, loops.Let) and isinstance(s.value, loops.Name) and s.name in short:
                short |= {s.value.id} - named.keys()
        short -= {s.entry.array.id for s in stores if s.op is not None}
        for s in made:
            if isinstance(s, (loops.Alloc, loops.Let)) and s.name in short:
                in_half_made(s)
        for s in stores:
            if s.entry.array.id in short:
                s.value = rounded(s.value)


def in_half_made(s):
    """An array in single precision is allocated in half."""
    def new(e):
        if e == node(SINGLE):
            return node(HALF)
        return loops.rebuilt(e, new) if isinstance(e, loops.Call) and e.function in MADE else e
    if getattr(s, "how", None) != "full":
        loops.change(s, new)


def rounded(e):
    """np.float16 of a value in single precision."""
    if is_cast(e, "float16"):
        return e
    inner = e.args[0] if is_cast(e, "float32") and isinstance(e.args[0], loops.Const) else e
    return quoted("np.float16({})", inner)


def is_cast(e, name):
    return isinstance(e, loops.Call) and e.function == f"np.{name}" and len(e.args) == 1


def applies(value):
    """The calls in a value, itself among them."""
    if isinstance(value, Apply):
        yield value
        for a in (*value.args, *(a for _, a in value.kwargs)):
            yield from applies(a)


def constant(node):
    value = node.value
    if isinstance(value, np.dtype) and value == HALF:
        return Const(SINGLE)
    if value is np.float16 or isinstance(value, str) and value in SPELLED:
        return Const(np.float32)
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype == HALF:
        return Const(value.astype(SINGLE))
    return node
