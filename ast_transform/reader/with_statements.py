# SPDX-License-Identifier: Apache-2.0
"""`with`: its items and body come in; the statements of the body, under the known contexts, come out."""
import contextlib
import warnings

import gast
import numpy as np

from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.assignments import assign
from gradscribe.ast_transform.reader.dispatch import executes
from gradscribe.ast_transform.reader.exceptions import ERRORS, OUTSIDE, REPORTS
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.operands import known_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.source.diagnose import LanguageError


@executes("Context")
def execute_context(reader: Reader, node):
    """Read the items of a with statement; the statements of its body follow."""
    for item in node.items:
        call = item.context_expr
        function = dispatch.evaluate(reader, call.func) if isinstance(call, gast.Call) else None
        made = function.value if isinstance(function, Const) else None
        if made is np.errstate:
            quiet(reader, call, node.lines)
        elif made is contextlib.nullcontext:
            value = dispatch.evaluate(reader, call.args[0]) if call.args else Const(None)
            if item.optional_vars is not None:
                assign(reader, item.optional_vars, value)
        elif made is not warnings.catch_warnings or item.optional_vars is not None:
            fail(reader, LanguageError, "only np.errstate, warnings.catch_warnings and contextlib.nullcontext are "
                 "understood after with", call, OUTSIDE)


def quiet(reader: Reader, call, lines):
    modes = {}
    for k in call.keywords:
        mode = known_value(reader, dispatch.evaluate(reader, k.value), "the mode of np.errstate", k.value)
        if k.arg not in ("all", *ERRORS) or mode not in ("ignore", "raise", *REPORTS):
            fail(reader, LanguageError, "np.errstate: only 'ignore', 'raise' and what reports are understood", call,
                 OUTSIDE)
        if mode == "ignore":
            reader.context.errstate[k.arg] = mode
        modes[k.arg] = mode
    modes = {**dict.fromkeys(ERRORS, modes.pop("all", None)), **modes}
    reader.environment.frame.errors[lines] = {k: mode for k, mode in modes.items() if mode is not None}
    if call.args:
        fail(reader, LanguageError, "np.errstate takes keywords only", call, 'Write np.errstate(all="ignore").')


@executes("Outermost")
def execute_outermost(reader: Reader, node):
    if reader.context.tries:
        fail(reader, LanguageError, "a try inside another, left by return, break or continue, whose handlers raise",
             node, "Set a name in it, and leave after it.")
