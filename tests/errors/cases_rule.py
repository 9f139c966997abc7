"""Rules of one's own."""
from errors.cases import refused

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import KindError


@refused(KindError)
def check_of_a_function_without_a_rule():
    def f(x):
        return x
    gs.rule.check(f)
