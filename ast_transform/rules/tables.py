# SPDX-License-Identifier: Apache-2.0
"""All tables of records; importing this fills RULES.  SciPy's tables are loaded when SciPy has been imported."""
import math

from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.rules import collectives, records, rounding  # noqa: F401  (each fills RULES)

RULES.wait_for("scipy.linalg", "gradscribe.ast_transform.rules.scipy_linalg")
RULES.wait_for("scipy.special", "gradscribe.ast_transform.rules.special", (math.gamma, math.lgamma))
RULES.wait_for("scipy.stats", "gradscribe.ast_transform.rules.distributions")
RULES.wait_for("scipy.signal", "gradscribe.ast_transform.rules.scipy_signal")
RULES.wait_for("scipy.spatial.distance", "gradscribe.ast_transform.rules.distances")
RULES.wait_for("scipy.integrate", "gradscribe.ast_transform.rules.scipy_integrate")
