# SPDX-License-Identifier: Apache-2.0
"""gs.optim: optimizers as pairs of functions, and solvers."""
from gradscribe.optim.base import *  # noqa: F403
from gradscribe.optim.least_squares import *  # noqa: F403
from gradscribe.optim.line_search import *  # noqa: F403
from gradscribe.optim.linear import *  # noqa: F403
from gradscribe.optim.minimize import *  # noqa: F403
from gradscribe.optim.moments import *  # noqa: F403
from gradscribe.optim.newton import *  # noqa: F403
from gradscribe.optim.ode import *  # noqa: F403
from gradscribe.optim.optimizers import *  # noqa: F403
from gradscribe.optim.quasi_newton import *  # noqa: F403
from gradscribe.optim.results import *  # noqa: F403
from gradscribe.optim.roots import *  # noqa: F403
from gradscribe.optim.scaling import *  # noqa: F403
from gradscribe.optim.schedules import *  # noqa: F403
from gradscribe.optim.trees import global_norm  # noqa: F401
