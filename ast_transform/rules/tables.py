"""All tables; importing this fills RULES."""
from gradscribe.ast_transform.rules import (  # noqa: F401
    calculus,
    constants,
    elementwise,
    fft,
    linalg,
    products,
    reductions,
    shapes,
    statistics,
    stores,
)
