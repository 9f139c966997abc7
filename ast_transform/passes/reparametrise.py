# SPDX-License-Identifier: Apache-2.0
"""The reparametrisation trick: a draw with active parameters becomes a standard draw of the same stream and arithmetic.

NumPy computes a draw of a family with a location and a scale as loc + scale * standard draw; a choice from an array
and a permutation of one are its entries at drawn indices.  Where an argument is active, these are written out.  A draw
of another family with an active parameter is an error.

>>> from gradscribe.ast_transform.examples import form, show
>>> made = form("def f(s, rng):\\n    y = rng.normal(1.0, s)\\n    return y", 2.0, np.random.default_rng(0))
>>> s = made.params[0].value
>>> from gradscribe.ast_transform.reader.states import Reader
>>> made.body = reparametrised(Reader(), made.body, {s})
>>> print(show(made))
f(s, rng):
    noise = standard_normal(rng)
    t = s * noise
    y = 1.0 + t
    return y
"""
import operator
from typing import TYPE_CHECKING

import numpy as np

from gradscribe.ast_transform.core.draw import Draw, draw
from gradscribe.ast_transform.core.form import USER, Apply, Const, Let, Pack, Var, operands, rebuilt, walk
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.reader.draws import LITERAL, STATE, arguments, result_fact
from gradscribe.ast_transform.source.diagnose import RuleError

if TYPE_CHECKING:
    from gradscribe.ast_transform.reader.states import Reader

LOCATED = {"normal": ("loc", "scale", "standard_normal"), "laplace": ("loc", "scale", "laplace"),
           "logistic": ("loc", "scale", "logistic"), "gumbel": ("loc", "scale", "gumbel"),
           "lognormal": ("mean", "sigma", "standard_normal"), "exponential": (None, "scale", "standard_exponential"),
           "rayleigh": (None, "scale", "rayleigh")}
DEFAULTS = {"loc": 0.0, "mean": 0.0, "scale": 1.0, "sigma": 1.0, "low": 0.0, "high": 1.0}


def reparametrised(reader: "Reader", body: list, active: set[Var]) -> list:
    """The block with draws that have no active parameters; their results depend on these through arithmetic."""
    if not any(v in active for v in _given(body)):
        return body
    out = []
    for step in body:
        step = rebuilt(step, {}, lambda b: reparametrised(reader, b, active))
        if isinstance(step, Let) and _is_drawn(step.value) and any(v in active for v in operands(step.value)):
            out += Rewritten(reader, step, active).steps()
        else:
            out.append(step)
    return out


def _is_drawn(value):
    return isinstance(value, Apply) and isinstance(value.function, Draw)


def _given(body):
    """The operands of draws."""
    for step in walk(body):
        if isinstance(step, Let) and _is_drawn(step.value):
            yield from operands(step.value)


class Rewritten:
    """The statements in place of one draw; the last of `steps` sets its result."""

    def __init__(self, reader, step, active):
        self.build, self.step, self.active = reader.build, step, active
        self.function, self.target = step.value.function, step.targets[0]
        self.name, self.bound = self.function.name, arguments(step.value)
        self.holder = () if self.function.owner is None else (step.value.args[0],)
        self.wanted = [k for k, v in self.bound.items() if any(o in active for o in operands(v))]

    def steps(self):
        outer, origin = self.build.block, self.build.origin
        self.build.block, self.build.origin = [], self.step.origin
        try:
            out = self.value()
            block = self.build.block
            last = block[-1]
            assert last.targets[0] is out
            block[-1] = Let(self.step.targets, last.value, self.step.origin)
            self.build.made[self.target] = last.value
        finally:
            self.build.block, self.build.origin = outer, origin
        return block

    def value(self):
        name = self.name
        if name in LOCATED:
            loc, scale, standard = LOCATED[name]
            words = {} if standard != name else {"size": self.size()}
            size = () if words or self.size() is None else (self.size(),)
            noise = self.drawn(standard, size, {k: v for k, v in words.items() if v is not None})
            out = self.located(None if loc is None else self.double(loc), self.double(scale), noise)
            return self.python(self.build.apply(np.exp, out)) if name == "lognormal" else out
        if name == "uniform":
            low, high = self.double("low"), self.double("high")
            noise = self.drawn("random", () if self.size() is None else (self.size(),), {})
            width = high if _is(low, 0.0) else self.build.apply(operator.sub, high, low)
            return self.located(low, width, noise)
        if name == "gamma" and self.wanted == ["scale"]:
            size = () if self.size() is None else (self.size(),)
            noise = self.drawn("standard_gamma", (self.bound["shape"], *size), {})
            return self.located(None, self.double("scale"), noise)
        if name == "multivariate_normal" and self.wanted == ["mean"]:
            mean, rest = self.bound["mean"], {k: v for k, v in self.bound.items() if k not in ("mean", "cov")}
            centre = self.build.apply(np.zeros_like, mean)
            noise = self.again("multivariate_normal", (centre, self.bound["cov"]), rest, self.target.fact)
            return self.build.apply(operator.add, mean, noise)
        if name == "choice" and self.wanted == ["a"]:
            return self.gathered("a", {k: v for k, v in self.bound.items() if k not in ("a", "axis")})
        if name == "permutation":
            return self.gathered("x", {})
        if name == "permuted":
            return self.permuted()
        handled = {"gamma": "scale", "multivariate_normal": "mean", "choice": "a"}.get(name)
        refused = next(k for k in self.wanted if k != handled)
        raise RuleError(
            f"{self.function.label} has no derivative with respect to {refused}", self.step.origin,
            "Draw standard numbers and transform them; or take gs.stop_gradient of the parameter, where its\n"
            "derivative is meant to be zero.")

    # operands

    def double(self, parameter):
        """A parameter in double precision, as NumPy converts it: an array, or a Python float."""
        x = self.bound.get(parameter, Const(DEFAULTS[parameter]))
        if isinstance(x, Pack):
            return self.build.apply(np.array, x)
        fact = fact_of(x)
        if fact.kind == "c":
            raise RuleError(f"{self.function.label} of a complex number has no derivative rule", self.step.origin,
                            "Draw the real and the imaginary part.")
        if fact.dims:
            return x if fact.kind in "biu" or fact.dtype == np.float64 else self.build.cast(x, np.dtype(np.float64))
        return x if fact.weak else self.build.let(getattr(x, "hint", "t"), Apply(float, (x,)), Array(float))

    def located(self, loc, scale, noise):
        out = noise if _is(scale, 1.0) else self.build.apply(operator.mul, scale, noise)
        return out if loc is None or _is(loc, 0.0) else self.build.apply(operator.add, loc, out)

    def python(self, out):
        """The result as a Python number if NumPy's draw is one."""
        return out if not self.target.fact.weak else self.build.let("t", Apply(float, (out,)), Array(float))

    def size(self):
        """The size of the standard draw; None for a single number."""
        given = self.bound.get("size")
        if given is not None and not (isinstance(given, Const) and given.value is None):
            return given
        dims = self.target.fact.dims
        if not dims:
            return None
        if getattr(self, "lengths", None) is None:
            self.lengths = [self.length(d, k - len(dims)) for k, d in enumerate(dims)]
        return self.lengths[0] if len(dims) == 1 else Pack("tuple", tuple(self.lengths))

    def length(self, length, k):
        for name, v in self.bound.items():
            fact = fact_of(v)
            if name not in LITERAL and isinstance(v, Var) and isinstance(fact, Array) and fact.rank >= -k and \
                    fact.dims[k].same(length):
                return self.build.length(v, fact.rank + k)
        n = length.normal()
        if n.symbol is None:
            return Const(n.offset)
        raise RuleError(f"{self.function.label}: the shape of the result is not known when transforming",
                        self.step.origin, "Give the size.")

    # draws

    def drawn(self, name, args, words):
        fact = Array(float) if self.target.fact.weak else Array(np.dtype(np.float64), self.target.fact.dims)
        return self.again(name, args, words, fact)

    def again(self, name, args, words, fact, hint="noise"):
        return self.build.let(hint, Apply(draw(self.function.owner, name), (*self.holder, *args), tuple(words.items())),
                              fact, USER)

    def axis(self, x):
        return self.bound.get("axis", Const(0)).value % x.fact.rank

    def gathered(self, parameter, words):
        """The entries of an array at drawn indices."""
        x = self.bound[parameter]
        axis = self.axis(x)
        count = self.build.length(x, axis)
        bound = {("a" if self.name == "choice" else "x"): count, **words}
        fact = result_fact(self.function.owner or STATE, self.name, bound)
        index = self.again(self.name, (count,), words, fact, "order" if self.name == "permutation" else "chosen")
        return self.build.item(x, index if not axis else Pack("tuple", (*[Const(slice(None))] * axis, index)))

    def permuted(self):
        x, axis = self.bound["x"], self.bound.get("axis", Const(None)).value
        if axis is None:
            flat = self.build.apply(np.ravel, x)
            count = self.build.length(flat, 0)
            order = self.again("permutation", (count,), {}, Array(np.dtype(np.int64), flat.fact.dims), "order")
            shape = Pack("tuple", tuple(self.build.length(x, k) for k in range(x.fact.rank)))
            return self.build.apply(np.reshape, self.build.item(flat, order), shape)
        axis %= x.fact.rank
        places = self.build.apply(np.arange, self.build.length(x, axis))
        if axis < x.fact.rank - 1:
            ends = tuple(range(1, x.fact.rank - axis))
            places = self.build.apply(np.expand_dims, places, Const(ends if len(ends) > 1 else 1))
        shape = Pack("tuple", tuple(self.build.length(x, k) for k in range(x.fact.rank)))
        rows = self.build.apply(np.broadcast_to, places, shape)
        order = self.again("permuted", (rows,), {"axis": Const(axis)}, Array(np.dtype(np.int64), x.fact.dims), "order")
        return self.build.apply(np.take_along_axis, x, order, Const(axis))


def _is(x, number):
    return isinstance(x, Const) and type(x.value) in (int, float) and x.value == number

