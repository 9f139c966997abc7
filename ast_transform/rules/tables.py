"""All tables; importing this fills RULES."""
from gradscribe.ast_transform.rules import (  # noqa: F401
    applying,
    arranging,
    batched,
    constants,
    elementwise,
    fft,
    linalg,
    padding,
    products,
    reductions,
    sets,
    shapes,
    stores,
)
