"""All tables; importing this fills RULES.  Those of SciPy are read when a program has imported it."""
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.rules import (  # noqa: F401
    calculus,
    constants,
    elementwise,
    fft,
    histograms,
    linalg,
    numbers,
    polynomials,
    products,
    reductions,
    shapes,
    statistics,
    stores,
    ufuncs,
)

RULES.wait_for("scipy.linalg", "gradscribe.ast_transform.rules.scipy_linalg")
