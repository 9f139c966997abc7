# SPDX-License-Identifier: Apache-2.0
"""Taylor mode for users: higher derivatives along a curve, in one pass."""
from collections.abc import Callable, Sequence
from typing import Any, cast

from gradscribe.api import _base, _kept
from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.jets import jet as jet_transform
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.operands import known_value, settle
from gradscribe.ast_transform.reader.values import Struct
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public
from gradscribe.transformed import Transformed
from gradscribe.tree_util import tree_map

MATCH = "Give each primal a series, all of one length."


@public
def jet(fun: Callable, primals: Sequence[Any], series: Sequence[Sequence[Any]], factorial_scaled: bool = True) -> tuple:
    """The value of a function and its derivatives along a curve: (fun(*primals), series of the result).

    Each argument is a function of a number t, of which `primals` has the value at t = 0 and `series` the derivatives of
    the orders 1, 2, ..., K there, each of the shape and dtype of its primal.  The result has the derivatives of
    fun(...) in t: for each array in it, a list of K terms.  factorial_scaled=False: both series are Taylor
    coefficients, that is, derivatives divided by the factorials of their orders.  Name and meaning are those of
    jax.experimental.jet.jet.

    For the derivatives of a function of one number, give the curve x + t: the series (1.0, 0.0, ..., 0.0).  The cost
    grows with K**2, that of gs.jvp nested K times with 2**K.  The source is that of gs.jet_of(fun, K).

    Raises KindError, a TypeError, for series that do not fit; TransformError, which shows the line, for what cannot be
    differentiated, as functions with a custom rule.

    Taylor mode: Griewank and Walther, Evaluating Derivatives, 2nd edition, SIAM 2008, chapter 13.

    >>> import gradscribe as gs
    >>> gs.jet(lambda x: x ** 3, (2.0,), ((1.0, 0.0, 0.0),))
    (8.0, [12.0, 12.0, 6.0])
    """
    order = checked(primals, series)
    if order == 0:
        y = fun(*primals)
        return y, tree_map(lambda _: [], y)
    return jet_of(fun, order, bool(factorial_scaled))(*primals, *(tuple(terms) for terms in series))


def checked(primals: Any, series: Any) -> int:
    """The number of terms of each series; KindError unless it is one number."""
    if not isinstance(primals, (tuple, list)) or not isinstance(series, (tuple, list)):
        raise KindError("primals and series must be tuples or lists", None, "Write gs.jet(f, (x,), ((1.0, 0.0),)).")
    if len(primals) != len(series):
        raise KindError(f"{len(primals)} primals and {len(series)} series are given", None, MATCH)
    for terms in series:
        if not isinstance(terms, (tuple, list)):
            raise KindError(f"a series must be a tuple or list of terms, not {terms!r}", None, MATCH)
    lengths = {len(terms) for terms in series}
    if len(lengths) != 1:
        raise KindError(f"the series have different lengths: {', '.join(str(len(t)) for t in series)}" if lengths else
                        "no primal is given", None, MATCH)
    return lengths.pop()


@public
@_kept
def jet_of(fun: Callable, order: int, factorial_scaled: bool = True) -> Transformed:
    """The function (x, ..., series of x, ...) -> (y, series of y), with its `source`: Taylor mode.

    order: the number of terms of each series.  factorial_scaled: as for gs.jet.

    >>> import gradscribe as gs
    >>> f = gs.jet_of(lambda x: x * x, 2)
    >>> f(3.0, (1.0, 0.0))
    (9.0, [6.0, 2.0])
    """
    if not isinstance(order, int) or isinstance(order, bool) or order < 1:
        raise KindError(f"order must be a positive integer, not {order!r}")
    return Transformed(fun, jet_transform(order, not factorial_scaled))


def _read_jet(reader, args, words, node):
    given = {**dict(zip(("fun", "primals", "series", "factorial_scaled"), args)), **words}
    primals, series = (settle(reader, given[k]).items for k in ("primals", "series"))
    scaled = not known_value(reader, given.get("factorial_scaled", Const(True)), "factorial_scaled of jet", node)
    held = [settle(reader, s) for s in series]
    lengths = {len(s.items) if isinstance(s, Struct) else 0 for s in held}
    if len(primals) != len(series) or len(lengths) != 1 or 0 in lengths:
        fail(reader, KindError, "primals and series do not fit", node, MATCH)
    return jet_transform(lengths.pop(), scaled).read(reader, _base(given["fun"]), [*primals, *held], {})


cast(Any, jet).normal_form_ = _read_jet
