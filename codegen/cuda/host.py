# SPDX-License-Identifier: Apache-2.0
"""Statements of the host: arrays are the device's, and numbers of them are waited for."""
import ast
import builtins

from gradscribe.codegen.cuda.kernels import is_type
from gradscribe.codegen.cuda.sorting import list_call
from gradscribe.codegen.loops.analysis.effects import OF_NUMBERS

BUILTIN = set(vars(builtins))


class OnHost(ast.NodeTransformer):
    """Statements of the host: arrays are the device's, single numbers of them are waited for.

    tf32: factors of products in single precision are rounded to 10 bits.
    """

    def __init__(self, sorting, tf32=False):
        self.sorting, self.tf32, self.functions = sorting, tf32, set()

    def visit_Name(self, node):
        if node.id in self.sorting.held and isinstance(node.ctx, ast.Load):
            return ast.Call(ast.Attribute(node, "item", ast.Load()), [], [])
        return node

    def visit_Subscript(self, node):
        entry = isinstance(node.ctx, ast.Load) and self.sorting.is_entry(node)
        self.generic_visit(node)
        return ast.Call(ast.Attribute(node, "item", ast.Load()), [], []) if entry else node

    def visit_Call(self, node):
        function = node.func
        if list_call(node) == "append" and function.value.id in self.sorting.held_lists:
            node.args = [ast.Call(ast.Attribute(node.args[0], "copy", ast.Load()), [], [])]
            return node
        node.args = [self.visit(a) for a in node.args]
        for k in node.keywords:
            k.value = self.visit(k.value)
        if isinstance(function, ast.Name):
            if function.id not in BUILTIN:
                node.func = ast.Attribute(ast.Name("host", ast.Load()), self.product(function.id), ast.Load())
        elif isinstance(function, ast.Attribute):
            root = function
            while isinstance(root, ast.Attribute):
                last, root = root, root.value
            if ast.unparse(function) == "math.ldexp":
                node.args[1] = ast.Call(ast.Name("int", ast.Load()), [node.args[1]], [])     # it takes no other
            if ast.unparse(function) == "np.dot":
                node.func = ast.Attribute(ast.Name("host", ast.Load()), self.product("dot"), ast.Load())
            elif isinstance(root, ast.Name) and root.id == "np" and not (
                    last.attr in OF_NUMBERS and (last is not function or is_type(last.attr) or not any(
                        self.sorting.is_whole(a) for a in node.args))):
                last.value = ast.Name("cp", ast.Load())
            elif not (isinstance(root, ast.Name) and root.id in ("np", "math", "cp")):
                function.value = self.visit(function.value)
        return node

    def product(self, name):
        """The host's name for a function: products may be of factors that are rounded to 10 bits."""
        return f"{name}_tf32" if self.tf32 and name in ("dot", "product") else name
