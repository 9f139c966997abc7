# SPDX-License-Identifier: Apache-2.0
"""The transformations that users call: each function chooses a transformation and wraps the user's function in it."""
import ast
import functools
import types
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast, overload

import numpy as np

from gradscribe.ast_transform import mapping, transforms
from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.jacobians import jacobian
from gradscribe.ast_transform.reader.draws import drawn_once
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.operands import as_operand, known_value, settle
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Derived, Struct
from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public
from gradscribe.in_kind import holds_objects, linear_in_kind
from gradscribe.kernels import adjoint_of_kernel
from gradscribe.linear_map import LinearMap, called
from gradscribe.runtime.derivatives import stop_gradient as _stop
from gradscribe.transformed import Transformed
from gradscribe.tree_util import tree_leaves, tree_map


def _decorator(make: Callable[[Callable], Any], fun: Callable | None) -> Any:
    """make(fun); where fun is None, a decorator."""
    if fun is None:
        return make
    if not callable(fun):
        raise KindError(f"a function is needed, not {fun!r}")
    return make(fun)


@overload
def grad(
    fun: Callable, argnums: int | Sequence[int] | None = None, has_aux: bool = False,
    holomorphic: bool = False, *, argnames: str | Sequence[str] | None = None
) -> Transformed: ...


@overload
def grad(
    fun: None = None, argnums: int | Sequence[int] | None = None, has_aux: bool = False,
    holomorphic: bool = False, *, argnames: str | Sequence[str] | None = None
) -> Callable[[Callable], Transformed]: ...


@public
def grad(fun: Callable | None = None, argnums: int | Sequence[int] | None = None, has_aux: bool = False,
         holomorphic: bool = False, *, argnames: str | Sequence[str] | None = None) -> Callable:
    """The gradient of a function that returns a scalar.

    argnums: the positional arguments to differentiate, an int or a sequence (default 0; a negative number counts from
    the end).  argnames: the same by name.  has_aux: the function returns (value, aux), and the gradient returns
    (gradient, aux).  holomorphic: argument and result are complex.  The gradient has the structure, shapes and dtypes
    of the arguments.

    Raises TransformError, which shows the line, for what cannot be differentiated; KindError, a TypeError, for a
    result that is not a real scalar or an argument that is not floating-point.

    Reverse mode: A. Griewank, A. Walther, Evaluating Derivatives, 2nd edition, SIAM 2008, chapter 3.

    >>> import numpy as np, gradscribe as gs
    >>> gs.grad(lambda x: np.sum(x ** 2))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    return _gradient(fun, argnums, argnames, False, has_aux, holomorphic)


@overload
def value_and_grad(
    fun: Callable, argnums: int | Sequence[int] | None = None, has_aux: bool = False,
    holomorphic: bool = False, *, argnames: str | Sequence[str] | None = None
) -> Transformed: ...


@overload
def value_and_grad(
    fun: None = None, argnums: int | Sequence[int] | None = None, has_aux: bool = False,
    holomorphic: bool = False, *, argnames: str | Sequence[str] | None = None
) -> Callable[[Callable], Transformed]: ...


@public
def value_and_grad(fun: Callable | None = None, argnums: int | Sequence[int] | None = None, has_aux: bool = False,
                   holomorphic: bool = False, *, argnames: str | Sequence[str] | None = None) -> Callable:
    """The value and the gradient of a function that returns a scalar.  Arguments as for gs.grad.

    >>> import gradscribe as gs
    >>> gs.value_and_grad(lambda x: x ** 3)(2.0)
    (8.0, 12.0)
    """
    return _gradient(fun, argnums, argnames, True, has_aux, holomorphic)


def _gradient(fun, argnums, argnames, value, has_aux, holomorphic):
    explicit, numbers = argnums is not None, 0 if argnums is None else _numbers(argnums)

    def make(f):
        made = transforms.grad(numbers, argnames, value, has_aux, holomorphic, explicit)
        return adjoint_of_kernel(f, argnums, value or has_aux or holomorphic or argnames) or Transformed(f, made)
    return _decorator(make, fun)


@public
def jvp(fun: Callable, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple:
    """The value of a function and its directional derivative: (fun(*primals), tangent of the result).

    primals, tangents: sequences of equal structure.  has_aux: the function returns (value, aux), and this returns
    (value, tangent, aux).
    Forward mode: Griewank and Walther, chapter 3.

    >>> import gradscribe as gs
    >>> gs.jvp(lambda x: x ** 3, (2.0,), (1.0,))
    (8.0, 12.0)
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise KindError("primals and tangents must be tuples or lists")
    if len(primals) != len(tangents):
        raise KindError(f"{len(primals)} primals and {len(tangents)} tangents are given")
    made = jvp_of(fun)
    if has_aux:
        (y, aux), (y_dot, _) = made(*primals, *tangents)
        return y, y_dot, aux
    return made(*primals, *tangents)


@overload
def vjp(fun: Callable, *primals: Any, has_aux: Literal[False] = False) -> tuple[Any, LinearMap]: ...


@overload
def vjp(fun: Callable, *primals: Any, has_aux: Literal[True]) -> tuple[Any, LinearMap, Any]: ...


@public
def vjp(fun: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """The value of a function and its pullback: (fun(*primals), dy -> adjoints of the primals).

    The pullback returns a tuple with one adjoint for each primal, None for an integer.  What depends on the primals
    alone is computed once, now, with the present values of the globals and closure variables that fun reads; the
    pullback's `source` shows that part and the part that each call runs.  With custom derivatives, the value is that
    of their forward functions.  has_aux: fun returns (value, aux), and this returns (value, pullback, aux).

    >>> import numpy as np, gradscribe as gs
    >>> y, pull = gs.vjp(lambda x: 3 * x, np.array([1.0, 2.0]))
    >>> pull(np.array([1.0, 0.0]))
    (array([3., 0.]),)
    """
    if holds_objects(primals):
        return linear_in_kind(vjp, vjp_of(fun, has_aux), fun, primals, has_aux)
    again, y = called(fun, primals)
    aux = None
    if has_aux:
        y, aux = y
    made = Transformed(fun, transforms.vjp(has_aux, True))
    pullback = LinearMap(again, made, True, 1, again.primals)
    y = pullback.begun(y, Transformed(fun, transforms.vjp(has_aux, True, True)), y)
    return (y, pullback, aux) if has_aux else (y, pullback)


@overload
def linearize(fun: Callable, *primals: Any, has_aux: Literal[False] = False) -> tuple[Any, LinearMap]: ...


@overload
def linearize(fun: Callable, *primals: Any, has_aux: Literal[True]) -> tuple[Any, LinearMap, Any]: ...


@public
def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """The value of a function and its derivative, a linear function of tangents.

    A call of the derivative runs only the statements that read a tangent and the loops that carry one; its `source`
    shows them.  The rest is computed now, with the present values of the globals and closure variables that fun reads.
    has_aux: fun returns (value, aux), and this returns (value, derivative, aux).

    >>> import gradscribe as gs
    >>> y, df = gs.linearize(lambda x: x ** 2, 3.0)
    >>> y, df(1.0)
    (9.0, 6.0)
    """
    if holds_objects(primals):
        return linear_in_kind(linearize, Transformed(fun, transforms.jvp(True, has_aux)), fun, primals, has_aux)
    made = Transformed(fun, transforms.jvp(True, has_aux, True))
    again, y = called(fun, primals)
    y, aux = y if has_aux else (y, None)
    derivative = LinearMap(again, made, False, len(primals), again.primals)
    y = derivative.begun(y, Transformed(fun, transforms.jvp(False, has_aux, True, True)), *again.primals)
    return (y, derivative, aux) if has_aux else (y, derivative)


@public
def linear_transpose(fun: Callable, *primals: Any) -> Callable:
    """The transpose of a linear function: dy -> a tuple of the adjoints of its arguments.

    primals: arguments of the right kind, or objects with a shape and a dtype (ShapeDtypeStruct); values do not matter.
    The pullback of a linear function is the same at all primals; this is checked at four points, entry by entry.

    Raises KindError if the pullbacks differ; TransformError for what cannot be differentiated.

    >>> import numpy as np, gradscribe as gs
    >>> A = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> gs.linear_transpose(lambda x: A @ x, np.zeros(2))(np.array([1.0, 0.0]))
    (array([1., 2.]),)
    """
    made, rng = vjp_of(fun), np.random.default_rng(0)

    def drawn(leaf, scale):
        leaf = leaf if hasattr(leaf, "dtype") else np.asarray(leaf)
        numbers = scale * rng.standard_normal(leaf.shape)
        if leaf.dtype.kind == "c":
            numbers = numbers + 1j * scale * rng.standard_normal(leaf.shape)
        return np.asarray(numbers, leaf.dtype) if leaf.shape else np.asarray(numbers, leaf.dtype)[()]

    def at(scale):
        return tree_map(lambda leaf: drawn(leaf, scale), list(primals))
    zeros = at(0.0)
    dy = tree_map(lambda leaf: drawn(leaf, 1.0), fun(*at(0.0)))
    first = tree_leaves(made(dy, *zeros))
    for scale in (1.0, -1e3, 1e-3):
        if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, tree_leaves(made(dy, *at(scale))))):
            raise KindError(f"{made.base.__name__} is not linear: its derivative depends on where it is taken",
                            place_of(fun),
                            "Of a function that is not, take the derivative where you want it: gs.vjp(f, x)[1].")

    def transposed(dy):
        return made(dy, *zeros)
    return transposed


@public
def fwd_and_bwd(fun: Callable, argnums: int | Sequence[int], has_aux: bool = False,
                jitted: bool = True) -> tuple[Callable, Callable]:
    """Two functions, (forward, backward): forward(*args) -> (value, pullback), backward(pullback, dy) -> adjoints.

    argnums: the arguments that get adjoints, as for gs.grad.  has_aux: fun returns (value, aux), and forward returns
    (value, pullback, aux).  jitted is accepted for compatibility with JAX and has no effect.

    >>> import gradscribe as gs
    >>> forward, backward = gs.fwd_and_bwd(lambda x, n: x ** n, 0)
    >>> y, pullback = forward(3.0, 2)
    >>> y, backward(pullback, 1.0)
    (9.0, 6.0)
    """
    numbers = _numbers(argnums)
    wanted = numbers if isinstance(numbers, tuple) else (numbers,)

    def forward(*args):
        places = [k % len(args) for k in wanted]

        def chosen(*some):
            given = list(args)
            for k, value in zip(places, some):
                given[k] = value
            return fun(*given)
        return vjp(chosen, *[args[k] for k in places], has_aux=has_aux)

    def backward(pullback, dy):
        adjoints = pullback(dy)
        return adjoints if isinstance(numbers, tuple) else adjoints[0]
    return forward, backward


def _kept(make: Callable[..., Any]) -> Callable[..., Any]:
    """A cached `make`: one transformed function for each function object; equal callables may be different ones."""
    known = functools.lru_cache(maxsize=1024)(lambda this, *args, **kwargs: make(this.function, *args, **kwargs))

    @functools.wraps(make)
    def found(fun, *args, **kwargs):
        return known(_Same(fun), *args, **kwargs)
    return found


class _Same:
    """A function as a key, compared by identity; a method by its function and its object."""

    def __init__(self, function):
        self.function = function
        self.parts = (function.__func__, function.__self__) if isinstance(function, types.MethodType) else (function,)

    def __hash__(self):
        return hash(tuple(map(id, self.parts)))

    def __eq__(self, other):
        return len(self.parts) == len(other.parts) and all(a is b for a, b in zip(self.parts, other.parts))


@_kept
def jvp_of(fun: Callable) -> Transformed:
    """The function (x, ..., x_dot, ...) -> (y, y_dot), with its `source`: forward mode."""
    return Transformed(fun, transforms.jvp())


@_kept
def vjp_of(fun: Callable, has_aux: bool = False) -> Transformed:
    """The function (dy, x, ...) -> adjoints of x, ..., with its `source`: reverse mode."""
    return Transformed(fun, transforms.vjp(has_aux))


@overload
def vmap(
    fun: Callable, in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None,
    axis_size: int | None = None, *, strategy: str = "auto"
) -> Transformed: ...


@overload
def vmap(
    fun: None = None, in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None,
    axis_size: int | None = None, *, strategy: str = "auto"
) -> Callable[[Callable], Transformed]: ...


@public
def vmap(
    fun: Callable | None = None, in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None,
    axis_size: int | None = None, *, strategy: str = "auto",
) -> Callable:
    """The function over a batch of examples, written as whole-batch NumPy where possible.

    in_axes: the axis of each positional argument that is mapped: an int, None for an argument that all examples share,
    or a container of these with the structure of the argument; one for all arguments, or a tuple with one for each.
    Keyword arguments are mapped along axis 0.  out_axes: the position of the batch axis in the result.  axis_name: a
    name for the batch axis, by which collectives (gs.lax.psum, pmean, axis_index, ...) refer to it.  axis_size: the
    number of examples, needed only where no argument is mapped.

    Control flow that differs between examples, and operations without a whole-batch form, become a loop over the
    examples, in which each runs its own branch and its own number of passes; comments in the source say where and why.
    strategy: "auto"; "loop" calls the function for each example; "rewrite" raises an error where a loop is needed.
    Arguments are not changed, even where the function writes into them.

    Raises KindError, a TypeError, for axes that do not fit the arguments; TransformError for what cannot be mapped.

    >>> import numpy as np, gradscribe as gs
    >>> W, x = np.ones((2, 3)), np.arange(12.0).reshape(4, 3)
    >>> f = gs.vmap(lambda W, x: W @ x, in_axes=(None, 0))
    >>> f(W, x).shape
    (4, 2)
    >>> print(f.source.split("return ")[1].strip())
    x @ W.T
    """
    if strategy not in ("auto", "loop", "rewrite"):
        raise KindError(f"strategy must be 'auto', 'loop' or 'rewrite', not {strategy!r}")
    return _decorator(lambda f: Transformed(f, mapping.vmap(in_axes, out_axes, axis_name, axis_size, strategy)), fun)


@public
def hvp(fun: Callable, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The product of a scalar function's Hessian at primals with tangents: forward over reverse, without the matrix.

    B. Pearlmutter, Fast exact multiplication by the Hessian, Neural Computation 6 (1994) 147-160.

    >>> import numpy as np, gradscribe as gs
    >>> gs.hvp(lambda x: np.sum(x ** 3), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
    array([ 6., 12.])
    """
    return hvp_of(fun, len(primals))(*primals, *tangents)


@_kept
def hvp_of(fun: Callable, count: int = 1) -> Transformed:
    """The function (x, x_dot) -> Hessian at x times x_dot, with its `source`."""
    gradient = transforms.grad(0 if count == 1 else tuple(range(count)))
    return Transformed(Transformed(fun, gradient), transforms.jvp(tangent_only=True))


@overload
def jacfwd(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False
) -> Transformed: ...


@overload
def jacfwd(
    fun: None = None, argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False
) -> Callable[[Callable], Transformed]: ...


@public
def jacfwd(
    fun: Callable | None = None, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable:
    """The Jacobian by forward mode, one tangent for each entry of the argument.

    Its shape is that of the function's result followed by that of the argument.  Arguments as for gs.grad.

    >>> import numpy as np, gradscribe as gs
    >>> gs.jacfwd(lambda x: x ** 2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return _decorator(lambda f: Transformed(f, jacobian(_numbers(argnums), True, has_aux, holomorphic)), fun)


@overload
def jacrev(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False
) -> Transformed: ...


@overload
def jacrev(
    fun: None = None, argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False
) -> Callable[[Callable], Transformed]: ...


@public
def jacrev(
    fun: Callable | None = None, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable:
    """The Jacobian by reverse mode, one cotangent for each entry of the result.

    Its shape is that of the function's result followed by that of the argument.  Arguments as for gs.grad.

    >>> import numpy as np, gradscribe as gs
    >>> gs.jacrev(lambda x: x ** 2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return _decorator(lambda f: Transformed(f, jacobian(_numbers(argnums), False, has_aux, holomorphic)), fun)


@overload
def hessian(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False
) -> Transformed: ...


@overload
def hessian(
    fun: None = None, argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False
) -> Callable[[Callable], Transformed]: ...


@public
def hessian(
    fun: Callable | None = None, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable:
    """The Hessian of a scalar function: forward mode over reverse mode.

    Arguments as for gs.grad.  has_aux: the function returns (value, aux), and this returns (Hessian, aux).

    >>> import numpy as np, gradscribe as gs
    >>> gs.hessian(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    return _decorator(lambda f: jacfwd(jacrev(f, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic), fun)


def _numbers(argnums):
    """argnums as an int or a tuple of ints; any integer type is accepted, bool is not."""
    several = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    if not all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in several):
        raise KindError(f"argnums must be an integer or a sequence of integers, not {argnums!r}")
    if not several:
        raise KindError("argnums is empty", None, "Name at least one argument.")
    return tuple(map(int, argnums)) if isinstance(argnums, (tuple, list)) else int(argnums)


def stop_gradient(x: Any) -> Any:
    """x, treated as a constant by derivatives.  x is a number, an array or a container of these.

    >>> import gradscribe as gs
    >>> gs.grad(lambda x: x * gs.stop_gradient(x))(3.0)
    3.0
    """
    return x


# What these functions mean inside a function that is being transformed.

def _read_gradient(value):
    def read(reader, args, words, node):
        names = ("fun", "argnums", "has_aux", "holomorphic")
        given = {**dict(zip(names, args)), **words}
        base = given.pop("fun")
        options = {k: known_value(reader, v, f"{k} of grad", node) for k, v in given.items()}
        made = _gradient(None, options.get("argnums"), options.get("argnames"), value, options.get("has_aux", False),
                         options.get("holomorphic", False))(_dummy)
        return Derived(made.transform, _base(base))
    return read


def _read_vmap(reader, args, words, node):
    given = {**dict(zip(("fun", "in_axes", "out_axes", "axis_name", "axis_size"), args)), **words}
    base = given.pop("fun")
    options = {k: _plain(reader, v, f"{k} of vmap", node) for k, v in given.items()}
    return Derived(vmap(_dummy, **options).transform, _base(base))


def _plain(reader: Reader, value: Any, what: str, node: ast.AST) -> Any:
    """A container of literals as a Python value."""
    value = settle(reader, value)
    if isinstance(value, Struct):
        items = [_plain(reader, v, what, node) for v in value.items]
        return dict(zip(value.keys, items)) if value.kind == "dict" else items if value.kind == "list" else tuple(items)
    return known_value(reader, value, what, node)


def _dummy(x: Any) -> Any:
    return x


def _base(value: Any) -> Any:
    return value.value if isinstance(value, Const) else value


def _read_jacobian(make):
    def read(reader, args, words, node):
        names = ("fun", "argnums", "has_aux", "holomorphic")
        given = {**dict(zip(names, args)), **words}
        base = given.pop("fun")
        options = {k: known_value(reader, v, f"{k} of a Jacobian", node) for k, v in given.items()}
        return make(_base(base), options)
    return read


def _jacobian(forward):
    def make(base, options):
        return Derived(jacobian(_numbers(options.get("argnums", 0)), forward, options.get("has_aux", False),
                                options.get("holomorphic", False)), base)
    return make


def _hessian(base, options):
    return _jacobian(True)(_jacobian(False)(base, options), options)


def _read_jvp(reader, args, words, node):
    given = {**dict(zip(("fun", "primals", "tangents"), args)), **words}
    primals, tangents = (settle(reader, given[k]).items for k in ("primals", "tangents"))
    if len(primals) != len(tangents):
        fail(reader, KindError, f"{len(primals)} primals and {len(tangents)} tangents are given", node)
    return transforms.jvp().read(reader, _base(given["fun"]), [*primals, *tangents], {})


def _read_hvp(reader, args, words, node):
    given = {**dict(zip(("fun", "primals", "tangents"), args)), **words}
    primals, tangents = (settle(reader, given[k]).items for k in ("primals", "tangents"))
    gradient = Derived(transforms.grad(0 if len(primals) == 1 else tuple(range(len(primals)))), _base(given["fun"]))
    return transforms.jvp(tangent_only=True).read(reader, gradient, [*primals, *tangents], {})


def _read_vjp(reader, args, words, node):
    has_aux = bool(words and known_value(reader, words.get("has_aux", Const(False)), "has_aux", node))
    base, primals, before = _base(args[0]), list(args[1:]), reader.draws.drawn
    y = settle(reader, transforms.value_only("vjp").read(reader, base, primals, {}))
    drawn_once(reader, before, "vjp inside a function")
    pull = Derived(_AtPrimals(transforms.vjp(has_aux), primals), base)
    return Struct("tuple", [*(y.items if has_aux else [y])[:1], pull, *(y.items[1:] if has_aux else [])])


def _read_linear_transpose(reader, args, words, node):
    fail(reader, KindError, "whether a function is linear is found by calling it", node,
         "Call gs.linear_transpose outside, or write gs.vjp(f, *primals)[1].")


def _read_linearize(reader, args, words, node):
    has_aux = bool(words and known_value(reader, words.get("has_aux", Const(False)), "has_aux", node))
    base, primals, before = _base(args[0]), list(args[1:]), reader.draws.drawn
    y = settle(reader, transforms.value_only("linearize").read(reader, base, primals, {}))
    drawn_once(reader, before, "linearize inside a function")
    push = Derived(_AtPrimals(transforms.jvp(True, has_aux), primals), base)
    return Struct("tuple", [y.items[0], push, y.items[1]] if has_aux else [y, push])


class _AtPrimals:
    """A derivative at given primals: adjoint of the result -> adjoints, or tangents -> tangent of the result."""

    def __init__(self, derivative, primals):
        self.derivative, self.primals = derivative, primals

    def read(self, reader, base, args, words):
        given = [*args, *self.primals] if self.derivative.prefix == "vjp" else [*self.primals, *args]
        return self.derivative.read(reader, base, given, words)


def _read_stop(reader, args, words, node):
    def visit(value):
        value = settle(reader, value)
        if isinstance(value, Struct):
            return Struct(value.kind, [visit(i) for i in value.items], value.keys, value.cls)
        if isinstance(value, Const):
            return value
        return reader.build.apply(_stop, operand := as_operand(reader, value), fact=operand.fact)
    return visit(args[0])


cast(Any, grad).normal_form_ = _read_gradient(False)
cast(Any, value_and_grad).normal_form_ = _read_gradient(True)
cast(Any, jacfwd).normal_form_ = _read_jacobian(_jacobian(True))
cast(Any, jacrev).normal_form_ = _read_jacobian(_jacobian(False))
cast(Any, hessian).normal_form_ = _read_jacobian(_hessian)
cast(Any, jvp).normal_form_ = _read_jvp
cast(Any, hvp).normal_form_ = _read_hvp
cast(Any, vmap).normal_form_ = _read_vmap
cast(Any, vjp).normal_form_ = _read_vjp
cast(Any, linearize).normal_form_ = _read_linearize
cast(Any, linear_transpose).normal_form_ = _read_linear_transpose
cast(Any, stop_gradient).normal_form_ = _read_stop
