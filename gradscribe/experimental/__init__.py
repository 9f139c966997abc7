# SPDX-License-Identifier: Apache-2.0
"""Parts whose names and arguments may still change."""
from gradscribe.experimental import ode

__all__ = ["ode"]
