# SPDX-License-Identifier: Apache-2.0
"""Rewrites the CUDA parts of a kernel as plain Python: thread positions as names, atomics as sums, bare returns."""
import ast
import copy

import gast
import numpy as np

from gradscribe.ast_transform.source.diagnose import LanguageError
from gradscribe.codegen.loops.build import quoted
from gradscribe.codegen.loops.trees import statement_of

AXES = "xyz"
PLACES = {"threadIdx": "thread", "blockIdx": "block", "blockDim": "width", "gridDim": "count"}


class Places(gast.NodeTransformer):
    """Replaces cuda.grid(1), cuda.threadIdx.x and the like by names, and atomic sums by augmented assignments.

    Attributes: names: {name: its expression in the loop form}; used: {axis: the kinds of positions that are read}.
    """

    def __init__(self, reader):
        self.reader, self.names, self.used, self.first = reader, {}, {}, {}

    def before(self, statement):
        """The user's original statement in the loop form; for a loop, its head."""
        made = Canonical(self).visit(copy.deepcopy(self.first.get(id(statement), statement)))
        if isinstance(made, gast.For):
            made.body = []
        return statement_of(gast.gast_to_ast(made))

    def visit(self, node):
        if isinstance(node, (gast.Assign, gast.For)):
            self.first[id(node)] = copy.deepcopy(node)
        return super().visit(node)

    def dotted(self, node):
        """The rest of a dotted name that begins with the module cuda, else None."""
        parts = []
        while isinstance(node, gast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not parts or not isinstance(node, gast.Name):
            return None
        scope = self.reader.source.scope
        try:
            value = scope.lookup(node.id)
        except NameError:
            return None
        while parts and type(value).__name__ == "module" and not is_cuda(value):
            value = getattr(value, parts.pop(), None)
        return ".".join(reversed(parts)) if is_cuda(value) else None

    def token(self, kind, axis, text, node):
        name = f"{kind}_{axis}"
        if name in self.reader.names:
            raise LanguageError(f"a parameter is called {name}", self.reader.source.header(), "Rename it.")
        self.names[name] = quoted(text)
        self.used.setdefault(axis, set()).add(kind)
        return gast.copy_location(gast.Name(name, gast.Load(), None, None), node)

    def visit_Attribute(self, node):
        text = self.dotted(node)
        if text is None:
            return self.generic_visit(node)
        what, _, axis = text.partition(".")
        if what in PLACES and axis and axis in AXES:
            return self.token(PLACES[what], axis, f"cuda.{text}", node)
        self.refuse(node, text)

    def refuse(self, node, text):
        raise LanguageError(
            f"cuda.{text} has no adjoint: each thread is differentiated by itself", self.reader.place(node),
            "Let each thread work alone, with cuda.atomic.add where several add to one entry; sums over blocks are\n"
            "for gs.jit(f, target=\"cuda\").")

    def visit_Call(self, node):
        text = self.dotted(node.func)
        if text in ("grid", "gridsize") and len(node.args) == 1 and isinstance(node.args[0], gast.Constant):
            count = node.args[0].value
            kind = {"grid": "grid", "gridsize": "step"}[text]
            made = [self.token(kind, AXES[k], f"cuda.{text}({count})" + f"[{k}]" * (count > 1), node)
                    for k in range(count)]
            return made[0] if count == 1 else gast.copy_location(gast.Tuple(made, gast.Load()), node)
        if text == "local.array":
            given: list = [*node.args, *(k.value for k in node.keywords)]
            shape, dtype = given
            function = gast.Attribute(gast.Name("np", gast.Load(), None, None), "empty", gast.Load())
            of = gast.Attribute(gast.Name("np", gast.Load(), None, None), self.dtype(dtype), gast.Load())
            return located(gast.Call(function, [shape, of], []), node)
        if text is not None:
            self.refuse(node, text)
        return self.generic_visit(node)

    def dtype(self, node):
        try:
            value = eval(unparsed(node), dict(self.reader.source.scope.namespace), dict(
                zip(self.reader.source.scope.cells, (c.cell_contents for c in
                                                     self.reader.source.scope.cells.values()))))
            return np.dtype(getattr(value, "name", value)).name
        except Exception:
            raise LanguageError("a local array's dtype must be known", self.reader.place(node), "") from None

    def visit_Expr(self, node):
        call = node.value
        text = self.dotted(call.func) if isinstance(call, gast.Call) else None
        if text in ("atomic.add", "atomic.sub") and len(call.args) == 3 and isinstance(call.args[0], gast.Name):
            array, index, value = (self.visit(a) for a in call.args)
            target = gast.copy_location(gast.Subscript(array, index, gast.Store()), call)
            made = gast.copy_location(gast.AugAssign(
                target, gast.Add() if text == "atomic.add" else gast.Sub(), value), node)
            made.atomic = True
            return made
        return self.generic_visit(node)


class Canonical(gast.NodeTransformer):
    """Renames the CUDA module to `cuda`, its name in emitted kernels."""

    def __init__(self, places):
        self.places = places

    def visit_Attribute(self, node):
        text = self.places.dotted(node)
        if text is None:
            return self.generic_visit(node)
        made = gast.Name("cuda", gast.Load(), None, None)
        for part in text.split("."):
            made = gast.Attribute(made, part, gast.Load())
        return made


class ContinueToReturn(gast.NodeTransformer):
    """Replaces `continue` by `return`, where a function does one pass of a loop."""

    def visit_Continue(self, node):
        return gast.copy_location(gast.Return(None), node)

    def visit_For(self, node):
        return node

    visit_While = visit_For


class Returns(gast.NodeTransformer):
    """Has bare returns return the result of a thread's function."""

    def __init__(self, result):
        self.result = result

    def visit_all(self, body):
        for s in body:
            self.visit(s)

    def visit_Return(self, node):
        node.value = copy.deepcopy(self.result)
        return located(node, node)


def is_cuda(value):
    """Whether a module is Numba's CUDA, or the runtime's replacement of it."""
    name = getattr(value, "__name__", type(value).__module__)
    of_numba = name.split(".")[0] in ("numba", "numba_cuda", "numba_cuda_mlir") and "cuda" in name
    return hasattr(value, "jit") and (of_numba or type(value).__module__.startswith("gradscribe.runtime."))


def located(made, node):
    for n in gast.walk(made):
        if not hasattr(n, "lineno") and hasattr(node, "lineno"):
            gast.copy_location(n, node)
    return made


def unparsed(node: gast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(gast.gast_to_ast(copy.deepcopy(node))))
