# SPDX-License-Identifier: Apache-2.0
"""Arrays on the disk, for saved values that need not stay in memory."""
import tempfile

import numpy as np


def on_disk(shape, dtype=np.float64):
    """An array in a temporary file, which is deleted with the array; its pages can leave memory."""
    lengths = shape if isinstance(shape, tuple) else (shape,)
    if 0 in lengths:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype, "w+", shape=shape).view(np.ndarray)
