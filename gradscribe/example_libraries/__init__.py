# SPDX-License-Identifier: Apache-2.0
"""gs.example_libraries: the layers and optimizers that JAX's tutorials are written with, under their names there."""
from gradscribe.example_libraries import optimizers, stax

__all__ = ["optimizers", "stax"]
