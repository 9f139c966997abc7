"""All tables; importing this fills RULES."""
from gradscribe.ast_transform.rules import (  # noqa: F401
    arranging,
    constants,
    elementwise,
    fft,
    linalg,
    padding,
    products,
    reductions,
    shapes,
    stores,
)
