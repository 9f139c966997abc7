# SPDX-License-Identifier: Apache-2.0
"""Arrays on the disk for compiled code."""
import numpy as np

from gradscribe.runtime import offload
from gradscribe.runtime.streams import objmode


def entries_on_disk(count, dtype):
    """An array of one axis in a temporary file, which is deleted with the array and its views."""
    return bytes_on_disk(count * np.empty(0, dtype).itemsize).view(dtype)


def bytes_on_disk(size):
    """The same for bytes."""
    with objmode(mapped="uint8[::1]"):
        mapped = offload.on_disk(size, np.uint8)
    return mapped


entries_on_disk.calls_python = True     # type: ignore[attr-defined]  # set on a function: it holds the GIL
bytes_on_disk.calls_python = True       # type: ignore[attr-defined]
