# SPDX-License-Identifier: Apache-2.0
"""Arithmetic that a decision reads is NumPy's to the last bit.

Fast mathematics rounds in another way: a product and a sum become one operation, a quotient a product with the
reciprocal.  A number that is stored may differ in its last bit; a comparison of such a number comes out the other way
where NumPy finds a tie, and then a mask, a branch or the number of passes of a loop is another.  So the operations that
reach a comparison, a test, a rounding or an order (a backward slice over names) are marked, and their instructions
carry no flags.  Sums over the passes of a loop are not followed: their order is free, as it is from one build of NumPy
to the next.  Nor are powers and elementary functions NumPy's to the last bit.

In another order only such sums are added up: their additions are marked, too, and have the flags for that.  Elsewhere
`(x + h) - x` is not `h`, and a compensated sum keeps what it compensates.

>>> tree = ast.parse('''def f(x, a, n):
...     m = a * n
...     t = m / 3.0
...     s = 0.0
...     for i in range(x.shape[0]):
...         y = x[i] * a + 1.0
...         if x[i] * 2.0 < t:
...             s += y * a
...     return (s,)''')
>>> mark(tree.body[0])
>>> print(ast.unparse(called(tree)))
def f(x, a, n):
    m = exact_mul_(a, n)
    t = exact_truediv_(m, 3.0)
    s = 0.0
    for i in range(x.shape[0]):
        y = x[i] * a + 1.0
        if exact_mul_(x[i], 2.0) < t:
            s = summed_add_(s, y * a)
    return (s,)

Source: M. Weiser, Program Slicing, 1984.
"""
import ast
import functools
import inspect
import operator
from typing import NamedTuple

from gradscribe.codegen.loops.analysis.effects import ELEMENTARY
from gradscribe.codegen.texts import CASTS, parents_of, parts_of, walk

ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
              ast.USub: operator.neg}
ROUNDED = {ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,     # decisions that compute
           ast.RShift: operator.rshift}
EXACT = ARITHMETIC | ROUNDED
SUMS = {op: ARITHMETIC[op] for op in (ast.Add, ast.Sub, ast.Mult)}
IN_ANY_ORDER = ("reassoc", "contract", "nsz")
# functions of numbers that choose nothing by what they are given; any other may
SMOOTH = ELEMENTARY - {"arctan2"} | {n for n in CASTS if n.startswith(("float", "complex"))} | {
    "float", "complex", "abs", "square", "sqrt", "conj", "sinc", "squared_size", "complex_quotient"}
SUMMED = {"dot"}                        # sums whose order is free: what goes into them is not followed
FLOATS = {"fadd", "fsub", "fmul", "fdiv", "frem", "fcmp"}
WRAPPING = {"add", "sub", "mul"}        # Numba tells LLVM that whole numbers never overflow; NumPy's do: x + 1 < x


def mark(function):
    """Marks the operations of a function's text that decisions read: `exact` is True there."""
    Slice(function).run()


class Slice:
    """defined: {name: the values and the statements that set it or its entries}"""

    def __init__(self, function):
        self.function, self.parents = function, parents_of(function)
        self.defined, self.seen, self.waiting = {}, set(), []
        self.stored = set()             # names whose entries are set
        self.definitions()
        self.whole = self.whole_names()

    def run(self):
        for node in walk(self.function):
            self.site(node)
            if isinstance(node, (ast.Assign, ast.AugAssign)) and self.is_sum(node) and not self.of_threads(node):
                for operation in added(node).operations:
                    operation.summed = True
        while self.waiting:
            self.needed(self.waiting.pop())

    # what sets a name

    def definitions(self):
        statements = list(walk(self.function))
        for s in statements:
            for target in s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(
                    s, ast.AugAssign) else []:
                if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    self.stored.add(target.value.id)
        for s in statements:
            if isinstance(s, ast.Assign):
                for target in s.targets:
                    self.define(target, s.value)
            elif isinstance(s, ast.AugAssign):
                self.define(s.target, s)
            elif isinstance(s, ast.For):
                self.define(s.target, s.iter)
            elif isinstance(s, ast.Call) and isinstance(s.func, ast.Attribute) and is_name(s.func.value):
                for a in s.args:        # a list that is appended to
                    self.define(s.func.value, a)

    def define(self, target, value):
        if isinstance(target, ast.Tuple):
            pairs = zip(target.elts, value.elts) if isinstance(value, ast.Tuple) and len(value.elts) == len(
                target.elts) else ((t, value) for t in target.elts)
            for t, v in pairs:
                self.define(t, v)
            return
        root = root_of(target)
        if root is None:
            return
        self.defined.setdefault(root, []).append(value)
        if isinstance(target, ast.Name) and target.id in self.stored and (base := root_of(value)):
            self.defined.setdefault(base, []).append(target)        # what is written by one name is read by another

    def whole_names(self):
        """Names that stand for whole numbers, which are exact in any case."""
        found = set(self.defined) - self.stored
        while True:
            wrong = {n for n in found if not all(self.is_whole(v, found) for v in self.defined[n])}
            if not wrong:
                return found
            found -= wrong

    def is_whole(self, node, names=None):
        names = self.whole if names is None else names
        if isinstance(node, ast.Constant):
            return type(node.value) in (int, bool)
        if isinstance(node, ast.Name):
            return node.id in names
        if isinstance(node, ast.Subscript):
            return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        if isinstance(node, ast.Attribute):
            return node.attr in ("shape", "size")
        if isinstance(node, ast.Call):
            called = name_of(node.func)
            return called in ("range", "prange", "len", "int", "place", "meet") or called in CASTS and "int" in called
        if isinstance(node, (ast.BinOp, ast.AugAssign)):
            parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.value]
            return not isinstance(node.op, ast.Div) and all(self.is_whole(p, names) for p in parts)
        if isinstance(node, ast.UnaryOp):
            return self.is_whole(node.operand, names)
        if isinstance(node, ast.IfExp):
            return self.is_whole(node.body, names) and self.is_whole(node.orelse, names)
        return isinstance(node, (ast.Compare, ast.BoolOp))

    # decisions

    def site(self, node):
        """Asks for what a node decides by."""
        if isinstance(node, ast.Compare):
            self.waiting += [node.left, *node.comparators]
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            self.waiting.append(node.test)
        elif isinstance(node, ast.BoolOp):
            self.waiting += node.values
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.waiting.append(node.operand)
        elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in ROUNDED:
            node.exact = not self.is_whole(node)
            self.waiting += [node.left, node.right] if isinstance(node, ast.BinOp) else [node.target, node.value]
        elif isinstance(node, ast.Call) and decides(node):
            self.waiting += node.args

    def needed(self, node):
        if node in self.seen:
            return
        self.seen.add(node)
        statement = node if isinstance(node, ast.AugAssign) else self.parents.get(node)
        if isinstance(statement, (ast.Assign, ast.AugAssign)) and self.is_sum(statement):
            return                      # its order is free
        if isinstance(node, ast.Name):
            self.waiting += self.defined.get(node.id, ())
        elif isinstance(node, ast.BinOp):
            node.exact = type(node.op) in EXACT and not self.is_whole(node)
            self.waiting += [node.left, node.right]
        elif isinstance(node, ast.AugAssign):
            node.exact = type(node.op) in EXACT and not self.is_whole(node.target)
            self.waiting += [node.target, node.value]
        elif isinstance(node, ast.UnaryOp):     # LLVM gives a quotient the flags of its negation
            node.exact = isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant) and \
                not self.is_whole(node)
            self.waiting.append(node.operand)
        elif isinstance(node, ast.IfExp):
            self.waiting += [node.body, node.orelse]
        elif isinstance(node, ast.Subscript):
            self.waiting.append(node.value)
        elif isinstance(node, ast.Attribute):
            if node.attr not in ("shape", "size"):
                self.waiting.append(node.value)
        elif isinstance(node, (ast.Tuple, ast.List)):
            self.waiting += node.elts
        elif isinstance(node, ast.Call) and name_of(node.func) not in SUMMED:
            self.waiting += node.args
            if isinstance(node.func, ast.Attribute):
                self.waiting.append(node.func.value)

    def is_sum(self, s):
        """Whether a statement adds over the passes of a loop in which nothing else reads what has been added."""
        target, node = getattr(added(s), "target", None), s
        root = None if target is None else root_of(target)
        if root is None or self.is_whole(target):
            return False
        while node in self.parents:
            node = self.parents[node]
            if not isinstance(node, (ast.For, ast.While)):
                continue
            sets = {n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            if isinstance(target, ast.Subscript) and any(
                    isinstance(n, ast.Name) and n.id in sets for p in parts_of(target) for n in walk(p)):
                continue
            alike = [a.held for n in walk(node) if isinstance(n, (ast.Assign, ast.AugAssign)) and (
                a := added(n)) is not None and a.like(added(s))]
            held = {m for nodes in alike for n in nodes for m in walk(n)}
            return not any(isinstance(n, ast.Name) and n.id == root and n not in held for n in walk(node))
        return False

    def of_threads(self, s):
        """Whether a loop whose passes threads share adds to a name from before it: Numba reads such a sum itself."""
        target, node = added(s).target, s
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and name_of(node.iter.func) == "prange":
                sums = [a.held[0] for n in walk(node) if isinstance(n, (ast.Assign, ast.AugAssign)) and (
                    a := added(n)) is not None]
                return isinstance(target, ast.Name) and all(
                    n in sums for n in walk(node) if isinstance(n, ast.Name) and n.id == target.id and isinstance(
                        n.ctx, ast.Store))
        return False


class Added(NamedTuple):
    """A statement that adds to what its target holds: s += v, s = s + v - w; or multiplies it."""
    target: ast.expr
    operations: list                # the statement itself, or the operations from its value down to the target
    held: list                      # where the target stands

    def like(self, other):
        """Whether another adds to the same, too."""
        return ast.unparse(self.target) == ast.unparse(other.target) and \
            (type(self.operations[0].op) is ast.Mult) == (type(other.operations[0].op) is ast.Mult)


def added(s):
    """How a statement adds to its target, or None."""
    if isinstance(s, ast.AugAssign):
        return Added(s.target, [s], [s.target]) if type(s.op) in SUMS else None
    target, node, operations = s.targets[0], s.value, []
    if len(s.targets) > 1 or not isinstance(target, ast.Name):
        return None
    while isinstance(node, ast.BinOp) and type(node.op) in SUMS and (
            not operations or (type(node.op) is ast.Mult) == (type(operations[0].op) is ast.Mult)):
        operations.append(node)
        for side in [node.left] if isinstance(node.op, ast.Sub) else [node.left, node.right]:
            if isinstance(side, ast.Name) and side.id == target.id:
                return Added(target, operations, [target, side])
        node = node.left
    return None


def is_name(node):
    return isinstance(node, ast.Name) and node.id not in ("np", "math")


def name_of(function):
    """The last part of what is called, of NumPy, of Python, or of the runtime."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)


def root_of(node):
    """The name of an entry, of a view or of itself, or None."""
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Call)):
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute):
                return None
            node = node.func
        node = node.value
    return node.id if is_name(node) else None


def decides(call):
    """Whether what a function gives may jump; methods of arrays and of lists hand on what they hold."""
    if isinstance(call.func, ast.Attribute) and not (isinstance(call.func.value, ast.Name) and not is_name(
            call.func.value)):
        return False
    return name_of(call.func) not in SMOOTH | SUMMED


# --- instructions -----------------------------------------------------------------------------------------------------

def called(tree):
    """The tree with calls of exact operations where a text is left to Numba."""
    return _Called().visit(tree)


class _Called(ast.NodeTransformer):
    def visit_BinOp(self, node):
        self.generic_visit(node)
        marked = getattr(node, "exact", False) or getattr(node, "summed", False)
        return operation(node, node.left, node.right) if marked else node

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return operation(node, node.operand) if getattr(node, "exact", False) else node

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        if not getattr(node, "exact", False) and not getattr(node, "summed", False):
            return node
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        for n in walk(read):
            ast.copy_location(n, node)
        return ast.copy_location(ast.Assign([node.target], operation(node, read, node.value)), node)


def operation(node, *operands):
    name = f"{'exact' if getattr(node, 'exact', False) else 'summed'}_{EXACT[type(node.op)].__name__}_"
    return ast.copy_location(ast.Call(ast.copy_location(ast.Name(name, ast.Load()), node), list(operands), []), node)


@functools.cache
def exact_functions():
    """The functions that `called` calls, for Numba."""
    exact = {name: _exact(name, f, without_flags) for f in EXACT.values() for name in [f"exact_{f.__name__}_"]}
    return exact | {name: _exact(name, f, in_any_order) for f in SUMS.values() for name in [f"summed_{f.__name__}_"]}


def _exact(name, function, flags):
    from numba.core import types
    from numba.extending import intrinsic

    def typed(context, *given):
        kind = context.resolve_value_type(function)
        signature = context.resolve_function_type(kind, tuple(map(types.unliteral, given)), {})
        if signature is None:
            return None

        def emit(context, builder, own, values):
            values = [context.cast(builder, v, t, u) for v, t, u in zip(values, own.args, signature.args)]
            with flags(builder):
                return context.get_function(kind, signature)(builder, values)
        return signature.return_type(*given), emit
    form = (lambda context, a: typed(context, a)) if len(inspect.signature(function).parameters) == 1 else (
        lambda context, a, b: typed(context, a, b))
    form.__name__ = form.__qualname__ = name
    return intrinsic(form)


class without_flags:
    """Instructions that are written meanwhile are given no flags, then or later."""

    def __init__(self, builder):
        self.builder = builder

    def __enter__(self):
        self.block, self.blocks = self.builder.block, len(self.builder.function.blocks)
        self.first, self.known = len(self.block.instructions), len(self.builder.module.globals)

    def __exit__(self, *error):
        if error[0] is None:
            for n in self.block.instructions[self.first:]:
                self.change(n)
            blocks = self.builder.function.blocks[self.blocks:]
            if len(self.builder.module.globals) > self.known:       # Numba's quotients are functions of their own
                for made in list(self.builder.module.globals.values())[self.known:]:
                    blocks += getattr(made, "blocks", ())
            for block in blocks:
                for n in block.instructions:
                    self.change(n)

    def change(self, instruction):
        if instruction.opname in FLOATS:
            instruction.flags = NoFlags()
        elif instruction.opname in WRAPPING:
            instruction.flags = []


class in_any_order(without_flags):
    """Instructions that are written meanwhile add up what may be added in another order."""

    def change(self, instruction):
        if instruction.opname in FLOATS:
            instruction.flags = list(IN_ANY_ORDER)


class NoFlags(list):
    """Flags of an instruction to which Numba adds none."""

    def append(self, flag):
        pass
