# SPDX-License-Identifier: Apache-2.0
"""%%gradscribe: a notebook cell that shows the function that it defines beside its transformation.

    %load_ext gradscribe

    %%gradscribe --grad w --args "float64[3], float64[n, 3]"
    def f(w, x):
        return np.sum(np.tanh(x @ w))

The options are those of the command line.  Without --args, kinds come from annotations, or are the simplest that fit.
"""
import ast
import shlex
from typing import Any

from gradscribe import command
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public


@public
def gradscribe(line: str, cell: str, shell):
    """Run a cell, and return the HTML of the transformation of the last function that it defines."""
    result = shell.run_cell(cell)
    if not result.success:
        return None
    names = [n.name for n in ast.parse(cell).body if isinstance(n, ast.FunctionDef)]
    if not names:
        raise KindError("the cell defines no function", None, "Put a def into it.")
    options = command.parser().parse_args(["show", names[-1], *shlex.split(line)])
    fn = command.made(shell.user_ns[names[-1]], options)
    command.version(fn, options)
    return Shown(fn)


class Shown:
    """The output of the cell: HTML in a notebook, text elsewhere."""

    def __init__(self, fn):
        self.fn = fn

    def _repr_html_(self):
        return self.fn._repr_html_()

    def __repr__(self):
        return self.fn.source


def load(shell: Any) -> None:
    """Register the magic with IPython."""
    shell.register_magic_function(lambda line, cell: gradscribe(line, cell, shell), "cell", "gradscribe")
