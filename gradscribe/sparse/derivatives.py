# SPDX-License-Identifier: Apache-2.0
"""Sparse derivatives: a pattern, a colouring, one product for each colour, and the entries from the products."""
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np

from gradscribe.api import grad, jvp, vjp, vmap
from gradscribe.ast_transform.analysis.sparsity import sparsity
from gradscribe.ast_transform.core.form import Var, all_made
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.requirements import place_of, place_of_result
from gradscribe.ast_transform.source.diagnose import KindError, ShapeError
from gradscribe.ast_transform.transforms import identity
from gradscribe.frames import public
from gradscribe.jit import jit
from gradscribe.sparse.colouring import DEFAULT, Coloring, as_rows, check_symmetric, coloring, each
from gradscribe.sparse.recovery import places, substituted
from gradscribe.transformed import Transformed
from gradscribe.tree_util import tree_map

SHAPE = "A pattern has a row for each entry of the result, and a column for each entry of the argument."
AT_ONCE = 1 << 22           # entries of the directions of one call


class Side(NamedTuple):
    """Products with directions of one side: forward for the argument's, or not for the result's.

    colors: of the entries of a direction, -1 for none; shape, dtype: of a direction; first, number: the colours on this
    side.
    """
    forward: bool
    colors: np.ndarray
    shape: tuple
    dtype: np.dtype
    first: int
    number: int


class Found:
    """What is known of one kind of arguments: the pattern by rows, the colouring, its sides, where the entries are in
    the products, how exact these are (eps), and whether a product has confirmed the entries.
    """
    __slots__ = ("coloring", "confirmed", "eps", "outside", "pattern", "places", "sides")

    def __init__(self, pattern, outside, eps):
        self.pattern, self.outside, self.eps, self.coloring, self.places = pattern, outside, eps, None, None
        self.sides, self.confirmed = (), False


class SparseDerivative:
    """A function that returns a derivative as a scipy.sparse.csr_array; `pattern` and `coloring` show what it uses.

    Attributes: fun, the function that is differentiated; argnums, the argument.
    """

    def __init__(self, fun, argnums, partition, sparsity, order, compile_):
        if not callable(fun):
            raise KindError(f"a function is differentiated, not {type(fun).__name__}")
        if isinstance(argnums, bool) or not isinstance(argnums, (int, np.integer)):
            raise KindError(f"argnums must be the number of one argument, not {argnums!r}",
                            advice="Call it once for each argument.")
        each(order)
        self.fun, self.argnums, self.partition, self.order = fun, int(argnums), partition, order
        self.given = None if sparsity is None else as_rows(sparsity)
        self.inner = grad(fun, argnums) if partition in SYMMETRIC else fun
        self.read = Transformed(self.inner, identity())
        self.products = {}
        for forward, one in ((True, self.along), (False, self.across)):
            batched = vmap(one, in_axes=(0, None))
            self.products[forward] = jit(batched) if compile_ else batched
        self.known: dict = {}
        self.__name__ = self.__qualname__ = f"sparse_{getattr(fun, '__name__', 'function')}"

    def along(self, direction, args):
        """The derivative along a direction of the argument."""
        k = self.argnums % len(args)
        return jvp(lambda x: self.inner(*args[:k], x, *args[k + 1:]), (args[k],), (direction,))[1]

    def across(self, direction, args):
        """The gradient of the results' sum that a direction weighs."""
        k = self.argnums % len(args)
        return vjp(lambda x: self.inner(*args[:k], x, *args[k + 1:]), args[k])[1](direction)[0]

    @public
    def __call__(self, *args: Any) -> Any:
        """The derivative at arguments: shape (size of the result, size of the argument), rows and columns in C order.

        Raises KindError for arguments that are no arrays of real numbers, LanguageError if no pattern is found, and
        KindError if the first product does not agree with the pattern.
        """
        args, found = self.found(args)
        data = self.entries(args, found)
        if not found.confirmed:
            self.confirm(args, found, data)
        return matrix(found.pattern, data)

    @public
    def pattern(self, *args: Any) -> Any:
        """The sparsity pattern for such arguments: a scipy.sparse.csr_array of booleans."""
        found = self.found(args)[1]
        return matrix(found.pattern, np.ones(found.pattern.indices.size, bool))

    @public
    def coloring(self, *args: Any) -> Coloring:
        """The colouring for such arguments."""
        return self.found(args)[1].coloring

    def normal_form_(self, reader, args, words, node):
        """Raise KindError, as gs.sparse.jacfwd does."""
        _read(reader, args, words, node)

    # what is known of a kind of arguments

    def found(self, args):
        """(converted arguments, what is known of their kind)"""
        args = tuple(np.asarray(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in args)
        if not -len(args) <= self.argnums < len(args):
            raise KindError(f"argnums {self.argnums} is out of range: {len(args)} positional arguments given",
                            place_of(self.fun), "The first argument has the number 0.")
        x = np.asarray(args[self.argnums])
        if x.dtype.kind in "biu":
            x = x.astype(float)
        if x.dtype.kind != "f":
            raise KindError(f"a sparse derivative is taken by an array of real numbers, not of {x.dtype}",
                            place_of(self.fun), "Give the real and the imaginary parts as two rows of one array."
                            if x.dtype.kind == "c" else "Give an array of numbers.")
        k = self.argnums % len(args)
        args = (*args[:k], x, *args[k + 1:])
        version = self.read.version_for(*self.read.given(args, {}))
        key = (version, *map(fixed, args))
        found = self.known.get(key)
        if found is None or not all(map(np.array_equal, found.outside, arrays(version.outside))):
            found = self.known[key] = self.analysed(args, k, version)
        return args, found

    def analysed(self, args, k, version):
        """Find the pattern and the colouring for such arguments."""
        outside = [np.copy(a) for a in arrays(version.outside)]
        names = self.read.parameter_names(len(args))
        form, pipeline = self.read.normal_form(names, self.read._described(args, {}, names)[0], {}, nested=False)
        whole, pattern = check_result(form, self.fun), self.given
        if pattern is None:
            pattern = pattern_of(form, dict(pipeline.reader.environment.captured.values()), args, k)
        columns = np.size(args[k])
        if pattern.shape[1] != columns:
            raise ShapeError(f"the pattern has {pattern.shape[1]} columns; the argument has {columns} entries",
                             place_of(self.fun), SHAPE)
        found = Found(pattern, outside, precision(form))
        if whole:                                           # of whole numbers: no product, the derivative is zero
            found.pattern, found.confirmed = as_rows(pattern * 0), True
            pattern = found.pattern
        if self.partition in SYMMETRIC:
            if self.given is None:
                found.pattern = pattern = as_rows(pattern + pattern.T)
            check_symmetric(pattern, "Give all of it, above and below the diagonal.")
        found.coloring = coloring(pattern, self.partition, self.order)
        forward, backward = found.coloring.sides
        found.sides = ()
        if backward is None or forward is not None and forward.max(initial=-1) >= 0:
            found.sides = Side(True, forward, args[k].shape, args[k].dtype, 0, int(forward.max(initial=-1)) + 1),
        if len(found.sides) == 0 or backward is not None and backward.max(initial=-1) >= 0:
            result = np.asarray(self.read.run(version, copies(self.read.given(args, {})[0])))
            first = found.sides[0].number if found.sides else 0
            found.sides += Side(False, backward, result.shape, result.dtype, first, found.coloring.count - first),
        if self.partition != "acyclic":
            found.places = places(pattern, found.coloring)
        return found

    # products

    def entries(self, args, found):
        """The entries of the pattern, in the order of its rows."""
        parts = [np.ravel(self.product(side, seeds, args)) for side in found.sides
                 for seeds in directions(side)]
        if not parts:
            return np.zeros(0, args[self.argnums].dtype)
        products = np.concatenate(parts)
        if self.partition != "acyclic":
            return products[found.places]
        pattern = found.pattern
        return substituted(pattern.indptr, pattern.indices, found.coloring.colors,
                           np.ascontiguousarray(products.reshape(-1, pattern.shape[0]).T))

    def product(self, side, directions, args):
        """The products with directions, a row for each."""
        out = np.asarray(self.products[side.forward](directions.reshape(len(directions), *side.shape), args))
        return out.reshape(len(directions), -1)

    def confirm(self, args, found, data):
        """Raises KindError if the pattern lacks entries: a product with random numbers is not that of the matrix."""
        side, whole = found.sides[0], matrix(found.pattern, data)
        direction = np.random.default_rng(0).uniform(0.5, 1.5, side.colors.size).astype(side.dtype)
        there = self.product(side, direction[None], args)[0]
        here, size = (m @ direction if side.forward else m.T @ direction for m in (whole, abs(whole)))
        if here.shape != there.shape:
            raise ShapeError(f"the pattern has {whole.shape[0]} rows; the result has {there.size} entries",
                             place_of(self.fun), SHAPE)
        known = np.isfinite(here) & np.isfinite(there)
        here, there, size = here[known], there[known], size[known]
        if np.any(np.abs(here - there) > 1e3 * found.eps * (size + np.abs(there).max(initial=0))):
            advice = "Give the pattern: sparsity=." if self.given is None else "Leave sparsity out."
            raise KindError("the sparsity pattern lacks entries of the derivative", place_of(self.fun), advice)
        found.confirmed = bool(np.all(known))


SYMMETRIC = ("star", "acyclic")


def directions(side: Side) -> Iterator[np.ndarray]:
    """The sums of the colours of a side, as many at once as fit."""
    step = max(1, AT_ONCE // max(1, side.colors.size))
    for first in range(side.first, side.first + side.number, step):
        some = np.arange(first, min(side.first + side.number, first + step))
        yield (side.colors == some[:, None]).astype(side.dtype)


def fixed(value):
    """What a pattern depends on: lengths, and whole numbers, which count as constants."""
    if isinstance(value, dict):
        return tuple((k, fixed(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(fixed, value))
    if isinstance(value, (np.ndarray, np.generic)):
        return value.shape, value.dtype.str, b"" if value.dtype.kind in "fc" else value.tobytes()
    return type(value) if isinstance(value, (float, complex)) else repr(value)


def copies(args: Any) -> Any:
    """Arguments of their own, for a function that may write into them."""
    return tree_map(lambda a: a.copy() if isinstance(a, np.ndarray) else a, args)


def matrix(pattern: Any, data: np.ndarray) -> Any:
    """The sparse matrix of a pattern with these entries."""
    from scipy import sparse
    return sparse.csr_array((data, pattern.indices.copy(), pattern.indptr.copy()), pattern.shape)


def arrays(values):
    """The arrays and numbers among values from outside."""
    return [v for v in values if isinstance(v, (np.ndarray, np.generic, float, int, complex))]


def pattern_of(form, outside, args, k):
    """The pattern that the source of a function has."""
    from scipy import sparse
    values = {p.value: a for p, a in zip(form.params, args) if isinstance(p.value, Var)}
    indptr, indices = sparsity(form, values, form.params[k].value, outside)
    shape = indptr.size - 1, np.size(args[k])
    return as_rows(sparse.csr_array((np.ones(indices.size, bool), indices, indptr), shape))


def check_result(form, fun):
    """Whether a result is of whole numbers; KindError unless it is one array that a sparse matrix may have."""
    fact = fact_of(form.result)
    if not isinstance(fact, Array):
        raise KindError("a sparse derivative is of a function that returns one array", place_of_result(fun),
                        "Return np.concatenate of the parts.")
    if np.dtype(fact.dtype).kind == "c":
        raise KindError(f"a sparse derivative needs a real result, not {fact.dtype}", place_of_result(fun),
                        "Return np.stack of its real and its imaginary part.")
    if np.dtype(fact.dtype) == np.float16:
        raise KindError("scipy.sparse has no arrays of float16", place_of_result(fun), "Return float32.")
    return np.dtype(fact.dtype).kind != "f"


def precision(form):
    """The relative error of the coarsest numbers that a function computes with."""
    facts = [p.value.fact for p in form.params if isinstance(p.value, Var)]
    facts += [v.fact for v in all_made(form.body)]
    kinds = {np.dtype(f.dtype) for f in facts if isinstance(f, Array)}
    return max([float(np.finfo(d).eps) for d in kinds if d.kind in "fc"], default=float(np.finfo(float).eps))


@public
def jacfwd(fun: Callable, argnums: int = 0, *, sparsity: Any = None, order: Any = DEFAULT,
           compile: bool = True) -> SparseDerivative:
    """The Jacobian of fun as a sparse matrix, by forward mode: one product for each colour of its columns.

    fun: a function of arrays that returns one array.  argnums: the argument, of any shape.  sparsity: the pattern, a
    matrix whose zeros are certainly zeros of the derivative; by default, it is found from the source of fun.  order: of
    the colouring, as in `gs.sparse.coloring`.  compile: compiles the products.  Returns a function of fun's arguments
    whose result is a scipy.sparse.csr_array of shape (size of the result, size of the argument).  Its first call for a
    kind of arguments compares one product with the matrix.

    Raises KindError for arguments of other kinds and for a pattern that lacks entries; LanguageError where no pattern
    is found.

    >>> import numpy as np, gradscribe as gs
    >>> def heat(u):
    ...     return u[:-2] - 2.0 * u[1:-1] + u[2:]
    >>> jacobian = gs.sparse.jacfwd(heat)
    >>> print(jacobian(np.zeros(5)).toarray())
    [[ 1. -2.  1.  0.  0.]
     [ 0.  1. -2.  1.  0.]
     [ 0.  0.  1. -2.  1.]]
    >>> jacobian.coloring(np.zeros(5)).count
    3

    A. R. Curtis, M. J. D. Powell and J. K. Reid, On the estimation of sparse Jacobian matrices (1974).
    """
    return SparseDerivative(fun, argnums, "column", sparsity, order, compile)


@public
def jacrev(fun: Callable, argnums: int = 0, *, sparsity: Any = None, order: Any = DEFAULT,
           compile: bool = True) -> SparseDerivative:
    """The Jacobian of fun as a sparse matrix, by reverse mode: one product for each colour of its rows.

    It is the better choice where a row has few entries and a column many.  Arguments, result and errors are those of
    `gs.sparse.jacfwd`.

    >>> import numpy as np, gradscribe as gs
    >>> def f(x):
    ...     return np.array([np.sum(x ** 2), x[0]])
    >>> print(gs.sparse.jacrev(f)(np.array([1.0, 2.0, 3.0])).toarray())
    [[2. 4. 6.]
     [1. 0. 0.]]
    """
    return SparseDerivative(fun, argnums, "row", sparsity, order, compile)


@public
def jacobian(fun: Callable, argnums: int = 0, *, sparsity: Any = None, order: Any = DEFAULT,
             compile: bool = True) -> SparseDerivative:
    """The Jacobian of fun as a sparse matrix, by forward and reverse mode together, in the fewest products.

    Columns and rows are coloured at once: an entry comes from a product with columns by forward mode, or from one with
    rows by reverse mode.  It takes at most as many products as `gs.sparse.jacfwd` or `gs.sparse.jacrev`, and far fewer
    where a few rows and a few columns have many entries.  Arguments, result and errors are those of `gs.sparse.jacfwd`.

    >>> import numpy as np, gradscribe as gs
    >>> def arrow(x):
    ...     y = x[0] * x
    ...     y[0] = np.sum(x ** 2)
    ...     return y
    >>> x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> made = gs.sparse.jacobian(arrow)
    >>> print(made(x).toarray())
    [[ 2.  4.  6.  8. 10.]
     [ 2.  1.  0.  0.  0.]
     [ 3.  0.  1.  0.  0.]
     [ 4.  0.  0.  1.  0.]
     [ 5.  0.  0.  0.  1.]]
    >>> made.coloring(x).count, gs.sparse.jacfwd(arrow).coloring(x).count
    (3, 5)

    T. F. Coleman and A. Verma, The efficient computation of sparse Jacobian matrices using automatic differentiation
    (1998).
    """
    return SparseDerivative(fun, argnums, "both", sparsity, order, compile)


@public
def hessian(fun: Callable, argnums: int = 0, *, sparsity: Any = None, partition: str = "star",
            order: Any = DEFAULT, compile: bool = True) -> SparseDerivative:
    """The Hessian of a scalar function as a sparse symmetric matrix, by forward over reverse mode.

    partition: "star" (entries come directly from products) or "acyclic" (by substitution from fewer products).  The
    other arguments, the result and the errors are those of `gs.sparse.jacfwd`; the pattern must be symmetric.

    >>> import numpy as np, gradscribe as gs
    >>> def rosenbrock(x):
    ...     return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    >>> print(gs.sparse.hessian(rosenbrock)(np.ones(3)).toarray())
    [[ 802. -400.    0.]
     [-400. 1002. -400.]
     [   0. -400.  200.]]
    """
    if partition not in SYMMETRIC:
        raise KindError(f"partition must be 'star' or 'acyclic', not {partition!r}")
    return SparseDerivative(fun, argnums, partition, sparsity, order, compile)


def _read(reader, args, words, node):
    """Raise KindError: a pattern is found for arguments that are there."""
    raise KindError("gs.sparse inside a function that is transformed is not read", reader.build.origin,
                    "Entries are products with vectors: take gs.jvp, gs.vjp or gs.hvp.")


for _made in (jacfwd, jacrev, jacobian, hessian, coloring):
    cast(Any, _made).normal_form_ = _read
