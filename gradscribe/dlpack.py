# SPDX-License-Identifier: Apache-2.0
"""Arrays of other packages as arguments, by DLPack: taken as NumPy's without a copy.

Results are NumPy's arrays, which the other packages take by the same protocol: `torch.from_dlpack(result)`.

Source: the DLPack protocol, https://dmlc.github.io/dlpack/latest/python_spec.html.
"""
from typing import Any

import numpy as np

from gradscribe.ast_transform.source.diagnose import KindError


class Foreign(Exception):
    """Raised where an argument is an array of another package."""


def is_foreign(value: Any) -> bool:
    """Whether an argument is, or a list, tuple or dict of it holds, another package's array."""
    if isinstance(value, (list, tuple)):
        return any(map(is_foreign, value))
    if isinstance(value, dict):
        return any(map(is_foreign, value.values()))
    return hasattr(type(value), "__dlpack__") and not isinstance(value, (np.ndarray, np.generic))


def as_numpy(value: Any) -> Any:
    """An argument with NumPy's arrays in the place of others', over the same memory."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(as_numpy, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(as_numpy, value))
    if isinstance(value, dict):
        return {k: as_numpy(v) for k, v in value.items()}
    if not is_foreign(value):
        return value
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise KindError(f"NumPy does not take this {type(value).__name__}: {error}", None,
                        "Move it to the host's memory, and detach it from its own gradient.") from error
