# SPDX-License-Identifier: Apache-2.0
"""The collectives of gs.lax over a named axis of examples or devices: the functions that users call.

gs.vmap replaces them by operations on its axis; over an axis of devices they communicate (groups.py).  The names,
arguments and values are those of jax.lax.
"""
import functools
import inspect

from gradscribe.runtime import groups


def over_an_axis(function):
    """The function with plain Python calls carried out over axes of devices that are bound in this thread."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def asked(*args, **kwargs):
        given = dict(signature.bind(*args, **kwargs).arguments)
        names, x = given.pop("axis_name"), given.pop("x", None)
        names = names if isinstance(names, tuple) else (names,)
        for name in names:
            if name not in groups.bound():
                raise NameError(f"no axis is named {name!r}: call it inside gs.vmap(..., axis_name={name!r})")
        return groups.performed(function.__name__, x, names, given)
    return asked


@over_an_axis
def psum(x, axis_name):
    """The sum of x over all examples of an axis, which each of them gets.

    x: a number, an array or a tree of them; axis_name: a name, or a tuple of names.

    >>> import numpy as np, gradscribe as gs
    >>> gs.vmap(lambda x: x / gs.lax.psum(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([0.25, 0.75])
    """


@over_an_axis
def pmean(x, axis_name):
    """The mean of x over an axis.  Arguments as for psum.

    >>> import numpy as np, gradscribe as gs
    >>> gs.vmap(lambda x: x - gs.lax.pmean(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """


@over_an_axis
def pmax(x, axis_name):
    """The maximum of x over an axis, entry by entry; not differentiable inside the axis, as in JAX.

    >>> import numpy as np, gradscribe as gs
    >>> gs.vmap(lambda x: gs.lax.pmax(x, "i") - x, axis_name="i")(np.array([1.0, 3.0]))
    array([2., 0.])
    """


@over_an_axis
def pmin(x, axis_name):
    """The minimum of x over an axis, entry by entry; as pmax.

    >>> import numpy as np, gradscribe as gs
    >>> gs.vmap(lambda x: x - gs.lax.pmin(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([0., 2.])
    """


@over_an_axis
def psum_start(x, axis_name):
    """Starts a non-blocking psum, in emitted code; psum_done of its value waits for the sum."""


@over_an_axis
def psum_done(x, axis_name):
    """The sum that psum_start started."""


@over_an_axis
def pmean_start(x, axis_name):
    """Starts a non-blocking pmean, in emitted code; pmean_done of its value waits for the mean."""


@over_an_axis
def pmean_done(x, axis_name):
    """The mean that pmean_start started."""


@over_an_axis
def axis_index(axis_name):
    """The number of this example along the axis, from 0.

    >>> import numpy as np, gradscribe as gs
    >>> gs.vmap(lambda x: x * gs.lax.axis_index("i"), axis_name="i")(np.array([5.0, 7.0, 9.0]))
    array([ 0.,  7., 18.])
    """


@over_an_axis
def axis_size(axis_name):
    """The number of examples along the axis.

    >>> import numpy as np, gradscribe as gs
    >>> gs.vmap(lambda x: x / gs.lax.axis_size("i"), axis_name="i")(np.array([6.0, 9.0, 3.0]))
    array([2., 3., 1.])
    """


@over_an_axis
def all_gather(x, axis_name, *, axis=0, tiled=False):
    """The x of all examples, stacked along a new axis; with `tiled`, concatenated along an existing axis.

    >>> import numpy as np, gradscribe as gs
    >>> gs.vmap(lambda x: np.sum(gs.lax.all_gather(x, "i") ** 2) - x, axis_name="i")(np.array([1.0, 2.0]))
    array([4., 3.])
    """


@over_an_axis
def psum_scatter(x, axis_name, *, scatter_dimension=0, tiled=False):
    """The sum over an axis, of which each example gets its own entry along scatter_dimension; that dimension has one
    entry for each example.  With `tiled`, each example gets an equal slice.

    >>> import numpy as np, gradscribe as gs
    >>> gs.vmap(lambda x: gs.lax.psum_scatter(x, "i"), axis_name="i")(np.array([[1.0, 2.0], [10.0, 20.0]]))
    array([11., 22.])
    """


@over_an_axis
def all_to_all(x, axis_name, split_axis, concat_axis, *, tiled=False):
    """Each example sends its entry k along split_axis to example k, which stacks what it gets along concat_axis.

    >>> import numpy as np, gradscribe as gs
    >>> gs.vmap(lambda x: gs.lax.all_to_all(x, "i", 0, 0), axis_name="i")(np.array([[1.0, 2.0], [10.0, 20.0]]))
    array([[ 1., 10.],
           [ 2., 20.]])
    """


@over_an_axis
def ppermute(x, axis_name, perm):
    """The x of other examples: perm lists pairs (source, destination); zeros where nothing is sent.

    >>> import numpy as np, gradscribe as gs
    >>> gs.vmap(lambda x: gs.lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(np.array([1.0, 2.0, 3.0]))
    array([0., 1., 2.])
    """


@over_an_axis
def pshuffle(x, axis_name, perm):
    """The x of other examples: example k gets that of example perm[k].

    >>> import numpy as np, gradscribe as gs
    >>> gs.vmap(lambda x: gs.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(np.array([1.0, 2.0, 3.0]))
    array([3., 1., 2.])
    """
