# SPDX-License-Identifier: Apache-2.0
"""Error bounds of floating-point results, and the digits that they leave."""
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.error_bounds import ROUNDED
from gradscribe.ast_transform.error_bounds import error_bound as error_bound_transform
from gradscribe.ast_transform.reader.operands import known_value, settle
from gradscribe.ast_transform.reader.values import Derived, Struct
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public
from gradscribe.transformed import Transformed
from gradscribe.tree_util import tree_map


@public
def error_bound(fun: Callable, inputs: Any = None) -> Transformed:
    """The function with a bound of its rounding error: (value, bound).

    The bound has the structure, shapes and dtypes of the value.  |value - exact| <= bound to first order in the unit
    roundoff u (2 ** -53 in double precision), where `exact` is what the same operations give in exact arithmetic on the
    same numbers.  inputs: the relative error of the arguments, if they are not exact: a number, "rounded" (u in the
    dtype of each), or a tuple with one of these, or None, for each positional argument.

    Assumed: + - * / and sqrt are rounded correctly, other elementary functions are accurate to 4 units in the last
    place, nothing overflows or underflows.  Sums and products of matrices may add in any order.  Comparisons, floor,
    argmax, sort and the number of passes of a loop are taken as they are computed: the bound is for that path.

    Raises TransformError, which shows the line, for operations without a bound (complex numbers, FFT, determinants,
    eigenvalues, functions of SciPy); KindError for complex arguments and for inputs that are not as above.

    Running error analysis: N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, SIAM 2002, 3.3.

    >>> import numpy as np, gradscribe as gs
    >>> value, bound = gs.error_bound(lambda x: (1.0 - np.cos(x)) / x ** 2)(1e-4)
    >>> bool(abs(value - 0.5) < bound), round(float(gs.digits(value, bound)), 1)
    (True, 6.7)
    """
    if not callable(fun):
        raise KindError(f"a function is needed, not {fun!r}")
    for given in inputs if isinstance(inputs, (tuple, list)) else [inputs]:
        number = isinstance(given, (int, float)) and not isinstance(given, bool) and 0 <= given < np.inf
        if not (given is None or given == ROUNDED or number):
            raise KindError(f"inputs is {given!r}", None,
                            'Give a relative error, "rounded", None, or a tuple of these for the arguments.')
    return Transformed(fun, error_bound_transform(tuple(inputs) if isinstance(inputs, list) else inputs))


def digits(value: Any, bound: Any) -> Any:
    """The number of significant decimal digits of a value that hold by a bound of its error.

    -log10(bound / |value|) for each entry, not below 0; at most what the dtype has (15.95 in double precision).  A
    bound of NaN leaves 0.  value, bound: numbers, arrays, or containers of equal structure, as gs.error_bound returns.

    >>> import gradscribe as gs
    >>> float(gs.digits(2.0, 2e-6)), float(gs.digits(1.0, 3.0)), round(float(gs.digits(0.1, 0.0)), 2)
    (6.0, 0.0, 15.95)
    """
    def of(v, e):
        v, e = np.abs(np.asarray(v)), np.asarray(e)
        most = -np.log10(np.finfo(v.dtype if v.dtype.kind == "f" else float).eps / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(e == 0, most, -np.log10(e / v))
        return np.where(np.isnan(found), 0.0, np.clip(found, 0.0, most))[()]
    return tree_map(of, value, bound)


def _read(reader, args, words, node):
    given = {**dict(zip(("fun", "inputs"), args)), **words}
    base, inputs = given["fun"], settle(reader, given.get("inputs", Const(None)))
    many = isinstance(inputs, Struct)
    known = [known_value(reader, v, "inputs of error_bound", node) for v in (inputs.items if many else [inputs])]
    made = error_bound(_nothing, tuple(known) if many else known[0])
    return Derived(made.transform, base.value if isinstance(base, Const) else base)


def _nothing(x):
    return x


cast(Any, error_bound).normal_form_ = _read
