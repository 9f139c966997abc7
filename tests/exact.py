# SPDX-License-Identifier: Apache-2.0
"""NumPy programs in 60 digits: arrays of `Real` numbers, which NumPy's functions compute with by their methods."""
import mpmath
import numpy as np

PRECISION = 400                     # bits; some examples lose hundreds


class Real:
    """A number of mpmath, with the methods that NumPy's functions look for in an array of objects."""
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value if isinstance(value, mpmath.mpf) else mpmath.mpf(float(value))

    def __float__(self):
        return float(self.value)

    def __hash__(self):
        return hash(self.value)

    def __bool__(self):
        return bool(self.value)

    def __repr__(self):
        return mpmath.nstr(self.value, 20)


def _number(x):
    return x.value if isinstance(x, Real) else mpmath.mpf(float(x))


def _add(name, function):
    def forward(self, other):
        return Real(function(self.value, _number(other)))

    def backward(self, other):
        return Real(function(_number(other), self.value))
    setattr(Real, f"__{name}__", forward)
    setattr(Real, f"__r{name}__", backward)


for _name, _function in (("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("mul", lambda a, b: a * b),
                         ("truediv", lambda a, b: a / b), ("pow", lambda a, b: a ** b)):
    _add(_name, _function)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Real, f"__{_name}__", lambda a, b, _n=f"__{_name}__": getattr(a.value, _n)(_number(b)))


def _method(function):
    return lambda a: Real(function(a.value))


for _name, _function in {
    **{n: getattr(mpmath, n) for n in ("sin", "cos", "tan", "exp", "log", "sqrt", "tanh", "sinh", "cosh", "expm1",
                                       "log1p", "cbrt", "log10", "floor", "ceil", "sign")},
    "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan, "arcsinh": mpmath.asinh,
    "arccosh": mpmath.acosh, "arctanh": mpmath.atanh, "log2": lambda x: mpmath.log(x, 2), "rint": mpmath.nint,
    "exp2": lambda x: mpmath.mpf(2) ** x, "square": lambda x: x * x, "reciprocal": lambda x: 1 / x,
}.items():
    setattr(Real, _name, _method(_function))
for _name, _function in (("arctan2", mpmath.atan2), ("hypot", mpmath.hypot)):
    setattr(Real, _name, lambda a, b, _f=_function: Real(_f(a.value, _number(b))))
Real.conjugate = lambda a: a
Real.__neg__ = lambda a: Real(-a.value)
Real.__pos__ = lambda a: a
Real.__abs__ = lambda a: Real(abs(a.value))


def exact(x):
    """A number or an array of floating-point numbers as Reals; other arguments unchanged."""
    if isinstance(x, (float, np.floating)):
        return Real(x)
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        return np.vectorize(Real, otypes=[object])(x) if x.size else x.astype(object)
    return x


def evaluated(function, *args):
    """The leaves of a function's result in high precision, as arrays of mpmath's numbers; `function` is plain NumPy."""
    with mpmath.workprec(PRECISION):
        found = function(*map(exact, args))
        parts = found if isinstance(found, tuple) else (found,)
        return [np.vectorize(_number, otypes=[object])(np.asarray(p, dtype=object)) for p in parts]


def from_source(made, *args):
    """The function in the emitted source of a transformed function, for arguments like these."""
    made(*args)
    space = {}
    exec(made.source, space)
    return space[made.__name__]


def ratios(value, bound, true):
    """(largest |value - true| / bound, largest |value - true|) over all entries; 0 / 0 counts as 0."""
    with mpmath.workprec(PRECISION):
        worst, largest = 0.0, 0.0
        for v, e, t in zip(value, bound, true, strict=True):
            v, e = np.asarray(v), np.asarray(e)
            assert v.shape == e.shape == t.shape and e.dtype == v.dtype, (v, e, t)
            for a, b, c in zip(v.flat, e.flat, t.flat):
                error = abs(mpmath.mpf(float(a)) - c)
                if error:
                    worst = max(worst, float(error / mpmath.mpf(float(b))) if b else np.inf)
                largest = max(largest, float(error))
        return worst, largest
