# SPDX-License-Identifier: Apache-2.0
"""What Numba finds the names of a text to be, without compiling it.

>>> text = '''def f(x, w):
...     n = x.shape[0]
...     if n > 5:
...         raise ValueError("long")
...     s = 0.0
...     for i in range(n):
...         s += x[i] * w
...     view = x[1:]
...     return (s, view)'''
>>> for name, kind in sorted(inferred(text, "f", [(np.dtype("f4"), 1), (np.dtype("f8"), 0)]).items()):
...     print(name, kind)
i Kind(dtype='int64', rank=0)
n Kind(dtype='int64', rank=0)
s Kind(dtype='float64', rank=0)
view Kind(dtype='float32', rank=1)
w Kind(dtype='float64', rank=0)
x Kind(dtype='float32', rank=1)
"""
import ast
import functools
import math
from typing import NamedTuple

import numpy as np

from gradscribe.codegen import foreign
from gradscribe.codegen.helpers import HELPERS, helpers
from gradscribe.codegen.jit_cpu import numba_type
from gradscribe.runtime.compiled import Unsaid
from gradscribe.runtime.device_functions import SCIPY

SINGLE = np.dtype(np.float32)


class Kind(NamedTuple):
    """The name of a dtype; rank 0 is a number."""
    dtype: str
    rank: int


class _Quiet(ast.NodeTransformer):
    """What raises nothing, and has in single precision what is in half: Numba has no such numbers for a processor."""

    def visit_Raise(self, node):
        return ast.Pass()

    def visit_Attribute(self, node):
        self.generic_visit(node)
        node.attr = "float32" if node.attr == "float16" else node.attr
        return node


def inferred(text, label, kinds):
    """{name: its Kind}, of arrays and numbers; the texts of one module differ little, and most are asked for twice.

    Raises what Numba raises where it does not type the text.
    """
    return dict(_inferred(text, label, tuple(kinds)))


@functools.lru_cache(maxsize=16)
def _inferred(text, label, kinds):
    from numba.core import compiler, typed_passes, types
    from numba.core.registry import cpu_target
    tree = ast.fix_missing_locations(_Quiet().visit(ast.parse(text)))
    space = {"np": np, "math": math, "Unsaid": Unsaid}
    words = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    space |= {n: helpers()[n] for n in words & HELPERS.keys()}
    space |= foreign.functions(words & {f"scipy_{n}" for n in SCIPY})
    exec(compile(tree, "<types>", "exec"), space)
    about = compiler.run_frontend(space[label])
    typing, target = cpu_target.typing_context, cpu_target.target_context
    typing.refresh()
    target.refresh()
    signature = tuple(numba_type(SINGLE if dtype == np.float16 else dtype, rank) for dtype, rank in kinds)
    found = {}
    for name, kind in typed_passes.type_inference_stage(typing, target, about, signature, None).typemap.items():
        if name.startswith(("$", "arg.")):
            continue
        name = name.split(".")[0]
        if not name.isidentifier():
            continue
        if isinstance(kind, types.Array):
            found.setdefault(name, []).append(Kind(kind.dtype.name, kind.ndim))
        elif isinstance(kind, types.Literal):
            of = str(kind.literal_type)
            found.setdefault(name, []).append(Kind({"bool": "bool_", "int": "int64"}.get(of, of), 0))
        elif isinstance(kind, (types.Number, types.Boolean)):
            found.setdefault(name, []).append(Kind("bool_" if isinstance(kind, types.Boolean) else kind.name, 0))
    return {name: widest(kinds) for name, kinds in found.items()}


def widest(kinds):
    """The kind that holds all of several."""
    dtype = kinds[0].dtype
    for kind in kinds[1:]:
        dtype = np.result_type(np.dtype(dtype), np.dtype(kind.dtype)).name
    return Kind(dtype.replace("bool", "bool_").replace("__", "_"), kinds[0].rank)
