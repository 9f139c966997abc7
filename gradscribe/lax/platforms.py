# SPDX-License-Identifier: Apache-2.0
"""gs.lax.platform_dependent: a function chosen by the target of compilation."""
from collections.abc import Callable
from typing import Any

from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.reader.derivatives import enter
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public

PLATFORMS = ("cpu", "cuda")


@public
def platform_dependent(*args: Any, default: Callable | None = None, **per_platform: Callable) -> Any:
    """The result of the function for this platform, `cpu=` or `cuda=`, else of `default=`.

    The platform is "cuda" under gs.jit(f, target="cuda"), and otherwise "cpu".  All functions must return the same
    dtypes and shapes.

    Raises KindError if there is no function for the platform, and for an unknown platform.

    >>> import numpy as np
    >>> platform_dependent(np.ones(2), cuda=lambda x: x * 2, default=lambda x: x + 1)
    array([2., 2.])
    """
    return chosen("cpu", default, per_platform)(*args)


def chosen(platform, default, per_platform):
    """The function for a platform, or the default; KindError if there is none, or for an unknown platform."""
    unknown = sorted(per_platform.keys() - set(PLATFORMS))
    if unknown:
        raise KindError(f"platform_dependent knows {' and '.join(PLATFORMS)}, not {unknown[0]}")
    found = per_platform.get(platform, default)
    if found is None:
        raise KindError(f"platform_dependent has no function for {platform}, and no default")
    return found


def _read(reader, args, words, node):
    words = dict(words)
    try:
        function = chosen(reader.engine.platform, words.pop("default", None), words)
    except KindError as error:
        fail(reader, KindError, error.reason, node)
    return enter(reader, function.value if isinstance(function, Const) else function, list(args), {})


platform_dependent.normal_form_ = _read     # type: ignore[attr-defined]  # set on a function
