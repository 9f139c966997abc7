"""Derivatives against central differences, in one random direction; bounds and steps are autograd's."""
import itertools

from autograd.core import make_jvp, make_vjp, vspace
from autograd.wrap_util import get_name, unary_to_nary

TOL = RTOL = EPS = 1e-6


def scalar_close(a, b):
    return abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL


def _difference(f, x, v):
    """The derivative of f in the direction v, by central differences."""
    X, Y = vspace(x), vspace(f(x))
    above, below = f(X.add(x, X.scalar_mul(v, EPS / 2))), f(X.add(x, X.scalar_mul(v, -EPS / 2)))
    return Y.scalar_mul(Y.add(above, Y.scalar_mul(below, -1.0)), 1 / EPS)


def check_vjp(f, x):
    pull, y = make_vjp(f, x)
    X, Y = vspace(x), vspace(y)
    v, w = X.randn(), Y.randn()
    dx = X.covector(pull(Y.covector(w)))
    assert vspace(dx) == X, f"the adjoint lies in {vspace(dx)}, the argument in {X}"
    exact, numeric = X.inner_prod(v, dx), Y.inner_prod(w, _difference(f, x, v))
    assert scalar_close(exact, numeric), f"Derivative (VJP) check of {get_name(f)} failed at {x}: {exact}, {numeric}"


def check_jvp(f, x):
    v = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(v)[1], _difference(f, x, v))


def check_equivalent(x, y):
    X, Y = vspace(x), vspace(y)
    assert X == Y, f"{X} is not {Y}"
    v = X.randn()
    assert scalar_close(X.inner_prod(x, v), X.inner_prod(y, v)), f"{x} is not {y}"


@unary_to_nary
def check_grads(f, x, modes=("fwd", "rev"), order=2):
    modes = ("fwd", "rev") if modes is None else modes
    assert set(modes) <= {"fwd", "rev"}
    if "fwd" in modes:
        check_jvp(f, x)
        if order > 1:
            def forward(x, v):
                return make_jvp(f, x)(v)[1]
            forward.__name__ = f"jvp_{get_name(f)}"
            check_grads(forward, (0, 1), modes, order - 1)(x, vspace(x).randn())
    if "rev" in modes:
        check_vjp(f, x)
        if order > 1:
            def reverse(x, v):
                return make_vjp(f, x)[0](v)
            reverse.__name__ = f"vjp_{get_name(f)}"
            check_grads(reverse, (0, 1), modes, order - 1)(x, vspace(f(x)).randn())


def combo_check(fun, *choice, **options):
    """check_grads at every combination of the arguments and keyword arguments that are listed."""
    def check(*args, **kwargs):
        for given in itertools.product(*args):
            for words in itertools.product(*kwargs.values()):
                check_grads(fun, *choice, **options)(*given, **dict(zip(kwargs, words)))
    return check
