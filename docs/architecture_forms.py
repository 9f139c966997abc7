# SPDX-License-Identifier: Apache-2.0
"""One function in the forms that the compiler gives it; `python docs/architecture_forms.py` prints them.

ARCHITECTURE.md shows them under the heading `HEADING`, a block each.  tests/test_architecture.py compares the blocks
with what is printed now; `--rewrite-golden` writes them anew.
"""
import inspect
import re

import numpy as np

import gradscribe as gs
from gradscribe.ast_transform.examples import form, show

HEADING = "## One function in all its forms"
BLOCK = re.compile(r"(?<=^```)(\w+)\n.*?(?=^```$)", re.DOTALL | re.MULTILINE)


def heat(u, steps):
    for _ in range(steps):
        u[1:] += 0.1 * (u[:-1] - u[1:])
    return u @ u


def forms() -> list[tuple[str, str]]:
    """(language, text) of each form of `heat`: its source, array form, emitted gradient, and that in the loop form."""
    text, u, steps = inspect.getsource(heat), np.ones(30), 4
    gradient = gs.grad(heat)
    return [("python", text), ("text", show(form(text, u, steps)) + "\n"),
            ("python", gradient.source_for(u, steps).rstrip() + "\n"),
            ("python", gs.jit(gradient).source_for(u, steps).rstrip() + "\n")]


def with_forms(page: str) -> str:
    """The page with the blocks under the heading replaced by the forms."""
    before, heading, after = page.partition(HEADING)
    shown, following, rest = after.partition("\n## ")
    made = iter(forms())
    shown = BLOCK.sub(lambda _: "{}\n{}".format(*next(made)), shown)
    if (left := len(list(made))):
        raise ValueError(f"no block for {left} of the forms under {HEADING}")
    return before + heading + shown + following + rest


if __name__ == "__main__":
    print("\n".join(text for _, text in forms()))
