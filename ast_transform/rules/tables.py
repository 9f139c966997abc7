"""All tables; importing this fills RULES.  Those of SciPy are read when a program has imported it."""
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.rules import (  # noqa: F401
    applying,
    arranging,
    batched,
    batched_numeric,
    batched_products,
    calculus,
    constants,
    decompositions,
    elementwise,
    fft,
    histograms,
    linalg,
    norms,
    numbers,
    padding,
    polynomials,
    products,
    reductions,
    sets,
    shapes,
    solvers,
    statistics,
    stores,
    ufuncs,
)

RULES.wait_for("scipy.linalg", "gradscribe.ast_transform.rules.scipy_linalg")
RULES.wait_for("scipy.special", "gradscribe.ast_transform.rules.special")
