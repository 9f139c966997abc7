# SPDX-License-Identifier: Apache-2.0
"""One of several functions, by what the program is compiled for."""
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
    """What the function for this platform gives for args: `cpu=` or `cuda=`, else `default=`.

    A call that is not compiled, or is by `gs.jit(f)`, runs on the processor; `gs.jit(f, target="cuda")` takes the other
    one.  All of them are to give the same: which one it was is not known by kind or shape.

    Raises KindError where there is none for a platform, or a platform that there is not.

    >>> import numpy as np
    >>> platform_dependent(np.ones(2), cuda=lambda x: x * 2, default=lambda x: x + 1)
    array([2., 2.])
    """
    return chosen("cpu", default, per_platform)(*args)


def chosen(platform, default, per_platform):
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
