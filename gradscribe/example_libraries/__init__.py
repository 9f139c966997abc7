# SPDX-License-Identifier: Apache-2.0
"""gs.example_libraries: the layers and optimizers of JAX's tutorials, under the same names."""
from gradscribe.example_libraries import optimizers, stax

__all__ = ["optimizers", "stax"]
