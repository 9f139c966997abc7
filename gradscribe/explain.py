# SPDX-License-Identifier: Apache-2.0
"""gs.explain: the text of a gradient, a numerical check, what it stores, and which arguments have no influence."""
import ast
import functools
import html
import inspect
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe import api
from gradscribe.ast_transform.core.form import Apply, Const, For, If, Let, Pack, Var, While, all_reads, operands, walk
from gradscribe.ast_transform.core.operations import shape_of, size_of
from gradscribe.ast_transform.passes.activity import rule_of
from gradscribe.ast_transform.passes.described import describe
from gradscribe.ast_transform.passes.simplify import simplify
from gradscribe.ast_transform.pipeline import Pipeline
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.ast_transform.transforms import parameter_names
from gradscribe.frames import public
from gradscribe.making import alone
from gradscribe.source_map import source_map, version_of
from gradscribe.transformed import is_transformed

STEP = 1e-6                         # relative step of the finite differences
COMPARISONS = {"gt", "lt", "ge", "le", "eq", "ne", "greater", "less", "greater_equal", "less_equal", "equal",
               "not_equal"}
COMPARED, SHAPE = "compared", "asked for its shape"


class Explanation:
    """The result of `explain`; printed as text, shown as HTML in notebooks.

    primal, derivative: the texts; gradient: its values; differences: [(argument, derivative in a random direction, the
    same by finite differences)]; unused: {argument: why it has no influence}; saved: {name: bytes} of what the forward
    sweep stores for the backward sweep; places: the `SourceMap` of the derivative's text, with reasons for its lines.
    """

    def __init__(self, fn, primal, derivative, gradient, differences, unused, saved, places):
        self.fn, self.primal, self.derivative, self.gradient = fn, primal, derivative, gradient
        self.differences, self.unused, self.saved, self.places = differences, unused, saved, places

    @public
    def line(self, number: int) -> str:
        """Where a line of the derivative's text, from 1, comes from: the user's lines, the rules, the identities.

        >>> import numpy as np, gradscribe as gs
        >>> def f(x):
        ...     return np.sum(np.tanh(x) ** 2)
        >>> print(gs.explain(f, np.array([0.3, 0.5])).line(8))
            dx = 2 * tanh_x * (1 - tanh_x * tanh_x)
        from line 2 of f: return np.sum(np.tanh(x) ** 2)
        rule of np.tanh: partial_x = 1 - y * y
        rule of **: partial_a
        """
        lines = self.derivative.splitlines()
        if not 1 <= number <= len(lines):
            raise KindError(f"the text has no line {number}", None, f"It has lines 1 to {len(lines)}.")
        came_from = dict.fromkeys(f"from line {p.line} of {p.function}: {linecache.getline(p.file, p.line).strip()}"
                                  for p in self.places[number])
        return "\n".join([lines[number - 1], *came_from, *self.places.reasons(number)])

    def identities(self):
        """(line of the text, identity that shortened it)"""
        for number, found in sorted(self.places.identities.items()):
            yield from ((number, identity) for identity in found)

    @property
    def bytes_saved(self) -> int:
        """The number of bytes that are saved for the backward sweep."""
        return sum(self.saved.values())

    def facts(self):
        """(heading, lines) of all parts that are not source."""
        yield "compared with differences, in a random direction", [
            f"{name}: {a:.10g}, by differences {b:.10g}" for name, a, b in self.differences]
        yield "arguments that never matter", [f"{name}: {why}" for name, why in self.unused.items()] or ["none"]
        yield f"kept for the backward sweep: {self.bytes_saved:,} bytes", [
            f"{name}: {n:,}" for name, n in self.saved.items()] or ["nothing"]
        yield "identities", [f"line {number}: {reason}" for number, reason in self.identities()] or ["none"]

    def __str__(self):
        parts = [self.primal.rstrip(), self.derivative.rstrip()]
        for heading, lines in self.facts():
            parts.append("\n".join([heading, *(f"  {line}" for line in lines)]))
        return "\n\n".join(parts) + "\n"

    __repr__ = __str__

    def _repr_html_(self):
        from gradscribe.display import side_by_side  # imported when it is shown
        told = "".join(f"<p><b>{html.escape(h)}</b><br>{'<br>'.join(map(html.escape, lines))}</p>"
                       for h, lines in self.facts())
        return side_by_side(self.fn) + told


@public
def explain(f: Callable, *args: Any) -> Explanation:
    """Explain the gradient of a scalar function at some arguments.

    All arguments that hold real numbers are differentiated.  The gradient is compared with central differences along
    one random direction for each argument (a relative error of about 1e-9 is usual).  `unused` names the arguments
    whose gradient is zero for all values: those that are not read, of which only the shape is read, or that are only
    compared or rounded.

    >>> import numpy as np, gradscribe as gs
    >>> def f(x, level, unused):
    ...     y = np.sin(x)
    ...     if y[0] > level:
    ...         y = y * y
    ...     return np.sum(y)
    >>> found = gs.explain(f, np.array([0.3, 0.5]), 0.1, 2.0)
    >>> found.unused
    {'level': 'it is only compared', 'unused': 'it is not read'}
    >>> found.saved
    {'y': 16}
    """
    if is_transformed(f):
        raise KindError("explain takes the function itself, and differentiates it", None, "As gs.explain(f, x).")
    f = getattr(f, "fun", f)
    names = parameter_names(f, len(args))
    places = tuple(k for k, a in enumerate(args) if _is_real(a))
    if not places:
        raise KindError("no argument holds real numbers", None, "Pass floats or arrays of floats.")
    fn = api.grad(f, places)
    gradient = fn(*args)
    version = version_of(fn, args, {})
    unused = {names[k]: _why(f, args, k) for i, k in enumerate(places)
              if _is_zero(version.normal_form, i)}
    return Explanation(fn, _text(f), version.text, dict(zip((names[k] for k in places), gradient)),
                       list(_differences(f, args, names, places, gradient)), unused, _saved(version, args),
                       source_map(fn, *args))


def _text(f):
    """The source of a user's function, of the function of a partial, or of an object's __call__."""
    while isinstance(f, functools.partial):
        f = f.func
    try:
        return inspect.getsource(f if inspect.isroutine(f) else type(f).__call__)
    except (OSError, TypeError):
        return repr(f)


def _is_real(value):
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_real, value))
    if isinstance(value, dict):
        return bool(value) and all(map(_is_real, value.values()))
    return isinstance(value, float) or isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "f"


# --- differences ------------------------------------------------------------------------------------------------------

def _differences(f, args, names, places, gradient):
    rng = np.random.default_rng(0)
    for k, g in zip(places, gradient):
        flat, direction = _leaves(args[k]), [rng.standard_normal(np.shape(v)) for v in _leaves(args[k])]
        exact = sum(float(np.sum(np.asarray(d) * v)) for d, v in zip(_leaves(g), direction))
        step = STEP * max(1.0, max((float(np.max(np.abs(v))) for v in flat if np.size(v)), default=1.0))
        ends = []
        for sign in (1, -1):
            moved = _like(args[k], [v + sign * step * d for v, d in zip(flat, direction)])
            given = [_copied(a) for a in args]
            given[k] = moved
            ends.append(float(np.real(f(*given))))
        yield names[k], exact, (ends[0] - ends[1]) / (2 * step)


def _leaves(value):
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in _leaves(v)]
    if isinstance(value, dict):
        return [x for k in value for x in _leaves(value[k])]
    return [value]


def _like(value, leaves) -> Any:
    """A value of the same structure, with leaves popped from a list."""
    if isinstance(value, (list, tuple)):
        items = [_like(v, leaves) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {k: _like(v, leaves) for k, v in value.items()}
    leaf = leaves.pop(0)
    return np.asarray(leaf, value.dtype) if isinstance(value, np.ndarray) else type(value)(leaf)


def _copied(value):
    return _like(value, [np.copy(v) if isinstance(v, np.ndarray) else v for v in _leaves(value)]) \
        if _is_real(value) else value


# --- arguments without influence --------------------------------------------------------------------------------------

def _is_zero(form, place):
    result = form.result.items[place] if isinstance(form.result, Pack) else form.result
    made = {t: s.value for s in walk(form.body) if isinstance(s, Let) for t in s.targets}
    while isinstance(result, Var) and isinstance(made.get(result), (Var, Const)):
        result = made[result]
    if isinstance(result, Const):
        return result.value == 0
    value = result if isinstance(result, Apply) else made.get(result)
    if isinstance(value, Apply) and value.function in (np.zeros_like, np.zeros):
        touched = [s for s in walk(form.body) if isinstance(s, Let) and result in list(all_reads(s))]
        return not touched
    return False


@alone
def _why(f, args, k):
    """Why an argument has no influence: what the function does with it and with values computed from it."""
    names = parameter_names(f, len(args))
    form = simplify(Pipeline().normal_form(f, names, [describe(a, n) for a, n in zip(args, names)], {}, "f"))
    ends, tainted = set(), {form.params[k].value}
    for _ in range(3):                  # values that loops carry need several rounds
        for step in walk(form.body):
            if isinstance(step, Let):
                if tainted.isdisjoint(operands(step.value)):
                    continue
                end = _end(step.value)
                if end is None:
                    tainted.update(step.targets)
                else:
                    ends.add(end)
            elif isinstance(step, If):
                ends |= {COMPARED} if not tainted.isdisjoint(operands(step.test)) else set()
                tainted |= {j.var for j in step.joins if not tainted.isdisjoint([j.then, j.orelse])}
            elif isinstance(step, (For, While)):
                tested = step.test if isinstance(step, While) else step.count
                ends |= {COMPARED} if not tainted.isdisjoint(operands(tested)) else set()
                for c in step.carries:
                    if not tainted.isdisjoint([c.init, c.next]):
                        tainted |= {c.inner, c.outer}
                tainted |= {v for v, source in getattr(step, "items", ()) if source in tainted}
    if not ends:
        return "it is not read"
    return f"it is only {' and '.join(sorted(ends))}" if ends - {SHAPE} else "only its shape is read"


def _end(value):
    """In words, why an operand's derivative is zero here; None where it may not be."""
    if not isinstance(value, Apply):
        return None
    name = getattr(value.function, "__name__", str(value.function))
    if value.function in (shape_of, size_of) or name in ("zeros_like", "ones_like", "empty_like"):
        return SHAPE
    if name in COMPARISONS:
        return COMPARED
    rule = rule_of(value.function)
    return f"given to {name}, which is constant in pieces" if rule is not None and not rule.has_derivative() else None


# --- what the forward sweep stores ------------------------------------------------------------------------------------

def _saved(version, args):
    """{name: bytes} of the arrays and lists that the backward sweep reads, without the arguments."""
    emitted, text = version.emitted, version.emitted.running()
    tree, came_from = ast.parse(text), emitted.origins(text)
    function = next(n for n in reversed(tree.body) if isinstance(n, ast.FunctionDef))
    at = next((k for k, s in enumerate(function.body) if any(
        o.generated == 1 for o in came_from.get(s.lineno, ()))), None)
    if at is None:
        return {}
    later = {n.id for s in function.body[at:] for n in ast.walk(s) if isinstance(n, ast.Name)}
    function.body.insert(at, ast.parse("__kept__(locals())").body[0])
    given, found = {a.arg for a in function.args.args}, {}

    def kept(values):
        arrays = [v for n in given for v in _leaves(values[n]) if isinstance(v, np.ndarray)]
        found.update({n: _size(v, arrays) for n, v in values.items() if n in later - given})
    space = {**emitted.namespace, "np": np, "__kept__": kept}
    exec(compile(ast.fix_missing_locations(tree), "<explained>", "exec"), space)
    with np.errstate(all="ignore"):
        space[function.name](*map(_copied, args))
    return {n: size for n, size in found.items() if size}


def _size(value, arrays):
    """Bytes of an array, or of the arrays of a list, without the arguments and views of them."""
    if isinstance(value, list):
        return sum(_size(v, arrays) if isinstance(v, np.ndarray) else np.asarray(v).nbytes for v in value)
    if not isinstance(value, np.ndarray) or not value.ndim or any(np.may_share_memory(value, a) for a in arrays):
        return 0
    return value.nbytes
