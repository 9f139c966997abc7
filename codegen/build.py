# SPDX-License-Identifier: Apache-2.0
"""Executes emitted text; its source stays visible to tracebacks, debuggers, profilers and inspect."""
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

_count: dict = {}


def build(source: str, label: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """Executes a module's text and returns its function `label`.

    The text is registered under a unique file name, so that tracebacks, pdb and inspect.getsource show it.
    """
    number = _count[label] = _count.get(label, 0) + 1
    file = f"<gradscribe {label}>" if number == 1 else f"<gradscribe {label} {number}>"
    space = {"np": np, "__name__": f"gradscribe.emitted.{label}", **namespace}
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), space)
    function = space[label]
    return function
