"""Control flow as functions, closures, shapes: what the library refuses."""
from functools import partial

from errors.cases import emitted, refused

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import LanguageError


@refused(LanguageError)
def closure_that_is_differentiated():
    @partial(gs.custom_vjp, nondiff_argnums=(0,))
    def root(f, x):
        return f(x)
    root.defvjp(lambda f, x: (f(x), ()), lambda f, kept, dy: (dy,))

    def f(a):
        return root(lambda x: x * a, 1.0)
    emitted(f, 2.0)
