# SPDX-License-Identifier: Apache-2.0
"""Arrays in half precision on a device: stored in half, computed in single precision.

A function is lowered as if float16 were float32.  Afterwards its loops allocate as float16 the arrays whose variables
are float16, round entries before they store them, and widen entries where they read them.  A stored entry is rounded
also where its value is used without being read again, so that both uses see the same number.  Sums, products and
scalars are rounded only as results; arrays that are accumulated into stay in single precision.
"""
import operator

import numpy as np

from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    Function,
    Let,
    Pack,
    Param,
    Slice,
    Var,
    all_made,
    copied,
    rebuilt,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Sequence, Stack
from gradscribe.ast_transform.core.operations import astype
from gradscribe.ast_transform.passes.described import describe
from gradscribe.ast_transform.source.diagnose import RuleError, ShapeError
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import quoted
from gradscribe.codegen.loops.half_storage import HALF, SINGLE, allocate_in_half, store_in_half
from gradscribe.codegen.lowered import Lazy, Lowering, lazily
from gradscribe.codegen.lowering import leaves
from gradscribe.codegen.phi_types import is_view

DOUBLES = (np.dtype("float64"), np.dtype("complex128"))
OF_DTYPE = {np.nextafter, np.spacing, np.frexp}         # whose values depend on the dtype
PRODUCTS = {np.dot, np.matmul, operator.matmul, np.inner, np.tensordot, np.einsum}
SPELLED = {"float16", "half", "f2", "<f2"}
LARGEST = {"float16": 65504.0, "bfloat16": float.fromhex("0x1.FEp+127")}


def in_half(x):
    """Rounds to half precision; the result is in single precision."""
    return np.asarray(x).astype(HALF).astype(SINGLE)[()]


@lazily(in_half)
def _in_half(lowering, node):
    x = lowering.lazy(node.args[0])
    return Lazy(x.dims, SINGLE, lambda index: quoted("np.float16({})", x.cast(index, SINGLE)), x.cost + 1)


def is_half(fact):
    return isinstance(fact, Array) and not fact.weak and np.dtype(fact.dtype) == HALF


def wide(fact):
    """A fact with single precision in place of half."""
    if is_half(fact):
        return type(fact)(SINGLE, fact.dims, fact.length)
    if isinstance(fact, Stack):
        return Stack(wide(fact.element))
    if isinstance(fact, Sequence):
        return Sequence(fact.kind, tuple(map(wide, fact.elements)), fact.keys, fact.cls)
    return fact


def is_single(function: Function, captured: dict) -> bool:
    """Whether nothing in a function is in double precision, apart from Python's weak scalars."""
    told, found = Lowering(None, set()), [v.fact for v in variables(function, captured)]
    try:
        for value in (*leaves(function.result), *(getattr(s, "value", None) for s in walk(function.body))):
            found += [told.fact(call) for call in calls(value)]
    except ShapeError:                  # raised again where the function is lowered
        return False
    return not any(isinstance(f, Array) and not f.weak and np.dtype(f.dtype) in DOUBLES for f in found)


def variables(function, captured):
    """All variables of a function, parameters and captured arrays first."""
    yield from (p.value for p in function.params if isinstance(p.value, Var))
    yield from {v: None for v, _ in captured.values()}
    yield from all_made(function.body)


def calls(value):
    """The calls in a value, including itself."""
    if isinstance(value, Apply):
        yield value
        for a in (*value.args, *(a for _, a in value.kwargs)):
            yield from calls(a)


class Widened:
    """A function and its captured arrays with half precision replaced by single.

    Attributes: function, captured (as compile_function takes them), given (dtype of each parameter), results (dtype of
    each leaf of the result that is an array or a number, else None), some (whether anything is in half).
    """

    def __init__(self, function: Function, captured: dict, bfloat16: bool = False):
        self.function, self.captured = function, captured
        self.largest = LARGEST["bfloat16" if bfloat16 else "float16"]
        self.widening = "single" if bfloat16 else "np.float32"          # what widens a number
        self.given = [getattr(p.value.fact, "dtype", None) for p in function.params if isinstance(p.value, Var)]
        self.told = Lowering(None, set())
        self.results = [getattr(self.told.fact(leaf), "dtype", None) for leaf in leaves(function.result)]
        self.some = any(wide(v.fact) != v.fact for v in variables(function, captured))
        if self.some:
            self.widen()

    def widen(self):
        function = self.function
        env = {v: v.like() for v in variables(function, self.captured)}
        body = copied(self.factors_named(function.body), env, self.value)
        self.half = {new for v, new in env.items() if is_half(v.fact) and v.fact.dims}
        for v, new in env.items():
            new.fact = wide(v.fact)
        params = [Param(p.name, env[p.value] if isinstance(p.value, Var) else p.value) for p in function.params]
        self.captured = {k: (env[v], value) for k, (v, value) in self.captured.items()}
        self.function = Function(function.label, params, body, self.value(function.result, env), function.about)

    def factors_named(self, block):
        """A block in which factors of products that are computed in place have names, and so a dtype."""
        out = []
        for step in block:
            out.append(Let(step.targets, self.with_names(step.value, out, step.origin), step.origin) if isinstance(
                step, Let) else rebuilt(step, {}, self.factors_named))
        return out

    def with_names(self, node, before, origin):
        """A value whose factors are names, assigned in `before`; its calls have an origin."""
        if not isinstance(node, Apply):
            return node
        args = [self.with_names(a, before, origin) for a in node.args]
        for k, a in enumerate(args) if node.function in PRODUCTS else ():
            if isinstance(a, Apply) and not is_view(a) and is_half(self.told.fact(a)):
                args[k] = Var("factor", self.told.fact(a))
                before.append(Let((args[k],), a, origin))
        return Apply(node.function, tuple(args), node.kwargs, node.origin or origin)

    def value(self, node, env):
        """A value with the variables of `env`, and with dtypes and constants in single precision instead of half."""
        if isinstance(node, Const):
            return constant(node)
        if isinstance(node, Apply):
            if node.function in OF_DTYPE:
                raise RuleError(f"np.{node.function.__name__} depends on the precision of numbers, which is single on "
                                "a device where arrays are in half", node.origin,
                                "Compute it in single precision: x.astype(np.float32).")
            args = tuple([self.value(a, env) for a in node.args])
            if node.function is astype and isinstance(node.args[1], Const) and np.dtype(node.args[1].value) == HALF:
                return Apply(in_half, args[:1], (), node.origin)
            words = tuple([(k, self.value(a, env)) for k, a in node.kwargs])
            if node.function is np.nan_to_num and is_half(self.told.fact(node)):
                words = self.finite(len(args), words)
            return Apply(node.function, args, words, node.origin)
        if isinstance(node, Pack):
            return Pack(node.kind, tuple([self.value(a, env) for a in node.items]), node.keys, node.cls)
        if isinstance(node, Slice):
            return Slice(*(p if p is None else self.value(p, env) for p in (node.start, node.stop, node.step)))
        return env.get(node, node)

    def finite(self, given, words):
        """Keywords of np.nan_to_num, by default with the largest numbers of the half format."""
        known = {**dict.fromkeys(("x", "copy", "nan", "posinf", "neginf")[:given]), **dict(words)}
        return words + tuple((k, Const(v)) for k, v in (("posinf", self.largest), ("neginf", -self.largest)) if (
            k not in known or isinstance(known[k], Const) and known[k].value is None))

    def results_as(self, results: list, short: np.dtype) -> list:
        """The kinds of the result's leaves with the function's own dtypes; short: the dtype of those in half."""
        return [(kind, (short.type(what) if kind == "literal" else short) if dtype == HALF else what)
                for dtype, (kind, what) in zip(self.results, results)]

    def allocate(self, lowering) -> None:
        """Has a lowering allocate in half precision the arrays whose variables are in half."""
        named: dict = {}
        for v, settled in lowering.program.function.notes["renamed"].items():
            if settled in lowering.naming.names and isinstance(v.fact, Array) and v.fact.dims:
                named.setdefault(lowering.naming.names[settled], []).append(v in self.half)
        made = list(loops.statements(lowering.body))
        self.returned = [d for d, (kind, _) in zip(self.results, lowering.program.results) if kind != "literal"]
        half = {n for n, found in named.items() if all(found)}
        own = {e.id for e, dtype in zip(made[-1].value.items, self.returned) if dtype == HALF and isinstance(
            e, loops.Name)} - named.keys()                  # no variable's, but arrays that the lowering made
        own |= {s.value.id for s in made if isinstance(s, loops.Let) and isinstance(s.value, loops.Name) and
                s.name in half | own} - named.keys()
        added = {s.entry.array.id for s in made if isinstance(s, loops.Store) and s.op is not None and isinstance(
            s.entry.array, loops.Name)}
        allocate_in_half(lowering.body, (half | own) - added)
        inputs = zip(lowering.program.inputs, self.given)
        self.stored = {p.name for p, dtype in inputs if dtype == HALF and p.value.fact.dims}
        self.stored |= {v.hint for v, value in self.captured.values() if is_half(describe(value)) and v.fact.dims}

    def store(self, function: loops.Function) -> None:
        """Has the loops store in half precision what is in half, after all passes."""
        if self.some:
            store_in_half(function, self.stored, self.returned, self.widening)


def constant(node):
    value = node.value
    if isinstance(value, np.dtype) and value == HALF:
        return Const(SINGLE)
    if value is np.float16 or isinstance(value, str) and value in SPELLED:
        return Const(np.float32)
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype == HALF:
        return Const(value.astype(SINGLE))
    return node
