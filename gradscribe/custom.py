# SPDX-License-Identifier: Apache-2.0
"""Custom derivatives: gs.custom_vjp, gs.custom_jvp and gs.custom_gradient."""
import functools
from collections.abc import Callable, Sequence

from gradscribe.ast_transform.reader.derivatives import call_custom
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.custom_inside import inside
from gradscribe.frames import public
from gradscribe.named import number_of, reduced


class _Custom:
    __reduce_ex__ = reduced

    @public
    def __init__(self, fun: Callable, nondiff_argnums: int | Sequence[int] = (),
                 nondiff_argnames: str | Sequence[str] = ()):
        if not callable(fun):
            raise KindError(f"a function is needed, not {fun!r}")
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums
        names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else nondiff_argnames
        self.fun = fun
        named = [number_of(fun, n, "nondiff_argnames") for n in names]
        self.nondiff_argnums = tuple(sorted([*numbers, *[n for n in named if n not in numbers]]))
        functools.update_wrapper(self, fun, updated=())

    @public
    def __call__(self, *args, **kwargs):
        return self.fun(*args, **kwargs)

    def __getattr__(self, name):
        if name in ("defvjp", "defjvp", "defjvps", "def_vmap") and isinstance(vars(self).get("fun"), _Custom):
            return getattr(self.fun, name)      # with several custom rules, the outermost object has all methods
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    made_inside_ = classmethod(inside)

    def normal_form_(self, reader, args, words, node):
        self.check(reader.build.origin)
        reader.environment.guards += [(self, part, getattr(self, part)) for part in self.parts]
        return call_custom(reader, self, self.fun, args, words)


class custom_vjp(_Custom):
    """A function with its own rule for reverse mode.

    defvjp(fwd, bwd) sets the rule: fwd(*args) -> (value, residuals); bwd(*nondiff args, residuals, dy) -> tuple of
    adjoints, None for zero.  The arguments in nondiff_argnums or nondiff_argnames are not differentiated, and bwd gets
    them first, in the order of their positions.

    >>> import numpy as np, gradscribe as gs
    >>> @gs.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, ()), lambda res, dy: (np.clip(dy, -1, 1),))
    >>> float(gs.grad(lambda x: 10 * clipped(x))(2.0))
    1.0
    """
    mode, parts = "vjp", ("fwd", "bwd", "symbolic_zeros")
    fwd = bwd = None
    symbolic_zeros = False

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Set the forward and the backward function.

        symbolic_zeros: fwd gets each array as a gs.custom_derivatives.CustomVJPPrimal, with its `value` and `perturbed`
        (whether its adjoint is needed); bwd gets a gs.custom_derivatives.SymbolicZero for an adjoint that is zero, and
        may return one.  optimize_remat is accepted for compatibility with JAX and has no effect.
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def check(self, place):
        """Raise KindError if no rule is set."""
        if self.fwd is None:
            raise KindError(f"{self.__name__} has no rule yet", place, "Call its defvjp(fwd, bwd).")


class custom_jvp(_Custom):
    """A function with its own rule for forward mode, which reverse mode transposes.

    defjvp(rule) sets it: rule(*nondiff args, primals, tangents) -> (value, tangent), linear in the tangents.
    defjvps(*rules) sets one rule(tangent, value, *primals) for each argument, or None.

    >>> import numpy as np, gradscribe as gs
    >>> @gs.custom_jvp
    ... def f(x):
    ...     return np.sin(x)
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     return np.sin(primals[0]), 5.0 * tangents[0]
    >>> float(gs.grad(f)(0.3))
    5.0
    """
    mode, parts = "jvp", ("rule", "symbolic_zeros")
    rule = None
    symbolic_zeros = False

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Set the rule; usable as a decorator.

        symbolic_zeros: the tangent of an argument that is not differentiated is a gs.custom_derivatives.SymbolicZero,
        with a shape and a dtype, instead of zeros; the rule may return one.
        """
        self.rule, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *rules: Callable | None) -> None:
        """Set one rule for each argument; None for an argument without influence."""
        fun = self.fun

        def rule(primals, tangents):
            y = fun(*primals)
            y_dot = 0.0
            for each, x_dot in zip(rules, tangents):
                if each is not None:
                    y_dot = y_dot + each(x_dot, y, *primals)
            return y, y_dot
        self.defjvp(rule)

    def check(self, place):
        """Raise KindError if no rule is set."""
        if self.rule is None:
            raise KindError(f"{self.__name__} has no rule yet", place, "Call its defjvp(rule).")


@public
def custom_gradient(fun: Callable) -> custom_vjp:
    """A custom_vjp from one function that returns its value and its pullback.

    fun(*args) -> (value, pullback); pullback(dy) -> a tuple of the arguments' adjoints, or the adjoint itself for one
    argument.  The variables of fun that the pullback reads are its residuals.

    Raises KindError if fun is not callable; TransformError, under differentiation, for what cannot be differentiated.

    >>> import gradscribe as gs
    >>> @gs.custom_gradient
    ... def f(x):
    ...     return x ** 2, lambda dy: dy * 7.0
    >>> f(3.0), float(gs.grad(f)(3.0))
    (9.0, 7.0)
    """
    if not callable(fun):
        raise KindError(f"a function is needed, not {fun!r}")

    @functools.wraps(fun)
    def value(*args):
        return fun(*args)[0]

    def forward(*args):
        return fun(*args)

    def backward(pullback, dy):
        adjoints = pullback(dy)
        return adjoints if isinstance(adjoints, tuple) else (adjoints,)
    made = custom_vjp(value)
    made.defvjp(forward, backward)
    return made
