# SPDX-License-Identifier: Apache-2.0
"""Lowering of scipy.special: SciPy's own C functions for single entries, and loops for functions along axes."""
import math

import numpy as np
from scipy import special

from gradscribe.codegen.array_forms import STEPS, axes_of, each, entrywise, reduce
from gradscribe.codegen.foreign import NAMES, PREFIX, variants
from gradscribe.codegen.loops.build import ZERO, entry, quoted
from gradscribe.codegen.lowered import Lazy, lazily
from gradscribe.codegen.scalar_forms import FORMS, Operand, cast, in_loops
from gradscribe.codegen.shape_forms import dropped
from gradscribe.runtime import parameters

# --- elementwise ------------------------------------------------------------------------------------------------------

def called(name, args):
    """(call of SciPy's function for these operands, dtype of its result), or None if it has no such variant."""
    known = variants(name)
    kinds = "".join("z" if a.exact.kind == "c" else "d" for a in args)
    if kinds not in known:
        kinds = "z" * len(args)
    if kinds not in known:
        return None
    given = [cast(a, np.complex128 if k == "z" else np.float32 if a.exact == np.float32 else np.float64)
             for a, k in zip(args, kinds)]
    return quoted("{}({*})", PREFIX + name, given), np.complex128 if known[kinds][0][0] == "z" else np.float64


def _exported(name):
    def make(args, out):
        found = called(name, args)
        return None if found is None else cast(Operand(*found), out)
    return make


for _name in sorted(n.removeprefix(PREFIX) for n in NAMES):
    if isinstance(getattr(special, _name, None), np.ufunc) and getattr(special, _name).nout == 1:
        FORMS[getattr(special, _name)] = _exported(_name)


for _name in ("erf", "erfc", "gammaln", "psi", "ndtr"):
    in_loops(_name, FORMS[getattr(special, _name)])


def _own(function, template):
    """Registers a function of runtime/special.py as a form, by a template of its call."""
    def make(args, out):
        if any(a.exact.kind == "c" for a in args):
            return None
        return _of_doubles(template, args, out)
    FORMS[function] = make


def _of_doubles(template, args, out, *more):
    """A template of operands in double precision, converted to a dtype."""
    return cast(Operand(quoted(template, *[cast(a, np.float64) for a in args], *more), np.dtype(float)), out)


for _function, _template in ((special.expit, "expit({})"), (special.log_expit, "log_expit({})"),
                             (special.logit, "logit({})"), (special.entr, "entr({})"),
                             (special.rel_entr, "rel_entr({}, {})"), (special.kl_div, "kl_div({}, {})")):
    _own(_function, _template)
in_loops("logistic", FORMS[special.expit])
_own(special.polygamma, "polygamma({0}, {1}, scipy_psi({1}))")
_own(parameters.gammainc_in_a, "gammainc_slope({0}, {1}, scipy_psi({0}))")
_own(parameters.zeta_in_x, "zeta_slope({0}, {1})")


@lazily(special.zeta)
def _zeta(lowering, node):
    b = lowering.bound(node)
    args = [lowering.lazy(b[n]) for n in ("x", "q") if not (n == "q" and getattr(b[n], "value", 0) is None)]
    if any(a.exact.kind == "c" for a in args):
        lowering.no_form(special.zeta, " for complex numbers")
    template = "hurwitz({}, {})" if len(args) == 2 else "scipy_zetac({}) + 1.0"
    return _entries(lowering, template, args, lowering.fact(node).dtype)


def _entries(lowering, template, args, out, *more):
    return lowering.entries(lambda given, dtype: _of_doubles(template, given, dtype, *more), args, out)


@lazily(special.factorial)
def _factorial(lowering, node):
    b, dtype = lowering.bound(node), lowering.fact(node).dtype
    if lowering.static(b["exact"]):
        lowering.no_form(special.factorial, " with exact=True")
    return _entries(lowering, "factorial({0}, scipy_gamma({0} + 1.0))", [lowering.lazy(b["n"])], dtype)


@lazily(special.comb)
def _comb(lowering, node):
    b, dtype = lowering.bound(node), lowering.fact(node).dtype
    if lowering.static(b["exact"]):
        lowering.no_form(special.comb, " with exact=True")
    template = "comb({0}, {1}, scipy_binom({0}, {1}))"
    if lowering.static(b["repetition"]):
        template = "comb({0} + {1} - 1.0, {1}, scipy_binom({0} + {1} - 1.0, {1}))"
    return _entries(lowering, template, [lowering.lazy(b["N"]), lowering.lazy(b["k"])], dtype)


@lazily(special.multigammaln)
def _multigammaln(lowering, node):
    b = lowering.bound(node)
    d = lowering.static(b["d"], "the dimension")
    return _entries(lowering, "multigammaln({}, {})", [lowering.lazy(b["a"])], lowering.fact(node).dtype, int(d))


@lazily(special.sph_harm_y)
def _harmonic(lowering, node):
    b = lowering.bound(node)
    def harmonic(given, dtype):
        places = [cast(a, kind) for a, kind in zip(given, (np.int64, np.int64, float, float))]
        return cast(Operand(quoted("spherical_harmonic({*})", places), np.dtype(complex)), dtype)
    args = [lowering.lazy(b[n]) for n in ("n", "m", "theta", "phi")]
    return lowering.entries(harmonic, args, lowering.fact(node).dtype)


@lazily(special.sici, special.fresnel)
def _two_results(lowering, node):
    x, name = lowering.lazy(node.args[0]), node.function.__name__
    x = lowering.array(x) if x.cost else x
    def result(k):
        def make(args, dtype):
            call, kind = called(name, args)
            return cast(Operand(entry(call, k), np.dtype(kind)), dtype)
        return make
    return [lowering.entries(result(k), [x], fact.dtype) for k, fact in enumerate(lowering.fact(node).elements)]


@lazily(special.bernoulli)
def _bernoulli(lowering, node):
    return lowering.constant(special.bernoulli(lowering.static(node.args[0], "how many Bernoulli numbers")))


# --- along axes -------------------------------------------------------------------------------------------------------

STEPS["peak"] = (-math.inf, each("maximum({}, {})"))


def _stored(lowering, x):
    return lowering.array(x) if x.cost and x.rank else x


def _peak(lowering, x, axes):
    """The maximum along axes, which are kept; 0 where it is infinite or NaN."""
    dtype = np.dtype(x.exact.char.lower()) if x.exact.kind == "c" else x.exact
    real = entrywise(lowering, np.real, dtype, x) if x.exact.kind == "c" else x
    peak = reduce(lowering, real, axes, True, "peak", dtype)
    return _settled(lowering, entrywise(lowering, np.where, dtype, entrywise(lowering, np.isfinite, bool, peak), peak,
                                        Lazy([], int, ZERO, 0, literal=0)), x.dims)


def _settled(lowering, x, dims):
    return lowering.array(x) if any(d.kind != "one" for d in x.dims) else lowering.settled(x, dims)


def _exponentials(lowering, x, axes, dtype):
    peak = _peak(lowering, x, axes)
    return entrywise(lowering, np.exp, dtype, entrywise(lowering, np.subtract, dtype, x, peak)), peak


@lazily(special.logsumexp)
def _logsumexp(lowering, node):
    b, fact = lowering.bound(node), lowering.fact(node)
    signs = lowering.static(b["return_sign"], "return_sign")
    dtype = np.dtype((fact.elements[0] if signs else fact).dtype)
    x, factor = lowering.lazy(b["a"]), None
    full = np.result_type(x.exact, np.float32) if x.exact.kind in "fc" else np.dtype(float)
    if getattr(b["b"], "value", 0) is not None:
        factor = _stored(lowering, lowering.lazy(b["b"]))
        full = np.result_type(full, factor.exact)
        none = Lazy([], float, quoted("-np.inf"), 0, literal=-math.inf)
        x = entrywise(lowering, np.where, full, factor, x, none)
    x = _stored(lowering, entrywise(lowering, np.positive, full, x))
    axes = axes_of(lowering, lowering.static(b["axis"], "axis"), x.rank)
    terms, peak = _exponentials(lowering, x, axes, full)
    if factor is not None:
        terms = entrywise(lowering, np.multiply, full, terms, factor)
    total = reduce(lowering, terms, axes, True, "sum", full)
    if signs:
        total = _settled(lowering, total, x.dims)
    size = entrywise(lowering, np.abs, full, total) if signs else total
    results = [entrywise(lowering, np.add, dtype, entrywise(lowering, np.log, dtype, size), peak)]
    if signs:
        results.append(entrywise(lowering, np.sign, np.dtype(fact.elements[1].dtype), total))
    if not lowering.static(b["keepdims"]):
        results = [dropped(r, set(axes)) for r in results]
    return results if signs else results[0]


@lazily(special.softmax, log=False)
@lazily(special.log_softmax, log=True)
def _softmax(lowering, node, log):
    b, dtype = lowering.bound(node), np.dtype(lowering.fact(node).dtype)
    x = _stored(lowering, entrywise(lowering, np.positive, dtype, b["x"]))
    axes = axes_of(lowering, lowering.static(b["axis"], "axis"), x.rank)
    terms, peak = _exponentials(lowering, x, axes, dtype)
    if not log:
        terms = _stored(lowering, terms)
        total = _settled(lowering, reduce(lowering, terms, axes, True, "sum", dtype), x.dims)
        return entrywise(lowering, np.divide, dtype, terms, total)
    total = reduce(lowering, terms, axes, True, "sum", dtype)
    shift = entrywise(lowering, np.add, dtype, entrywise(lowering, np.log, dtype, total), peak)
    return entrywise(lowering, np.subtract, dtype, x, _settled(lowering, shift, x.dims))
