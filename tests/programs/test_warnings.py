"""Python's warnings: those of a user's file are given once, and the compiler adds none, also where each is an error."""
import subprocess
import sys
import warnings

import gradscribe as gs
from gradscribe.ast_transform.source.read import from_text

ODD = """def odd(x):
    label = "\\d"
    assert label
    return x ** 3
"""                                         # an escape that Python does not know: each compilation warns of it
OURS = """
import numpy as np
import gradscribe as gs
from gradscribe.ast_transform.source.read import from_text
f = from_text('''def f(x):
    if x[0] < 0:
        raise ValueError(f"{{{x[0]:.2f}}} is negative")
    return np.sum(x ** 2)
''', {"np": np}, "<f>")
print(gs.grad(f).source_for(np.ones(2)))
"""


def test_warnings_of_a_users_file_are_given_once():
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        odd = from_text(ODD, {}, "<odd>")
    assert [str(w.message) for w in given if "escape" in str(w.message)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gs.grad(odd)(2.0) == 12.0


def test_the_compiler_gives_no_warnings():
    done = subprocess.run([sys.executable, "-W", "error", "-c", OURS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "raise ValueError(f'{{{x[0]:.2f}}} is negative')" in done.stdout
