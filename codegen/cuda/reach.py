# SPDX-License-Identifier: Apache-2.0
"""What a statement of lowered text touches.

>>> reach = Reach(ast.parse("for i in range(n):\\n    z[i] = x[i] * s").body[0])
>>> sorted(reach.read), sorted(reach.written), reach.writes
(['n', 's', 'x'], ['i', 'z'], {'z': [('i',)]})
"""
import ast

from gradscribe.codegen.loops.analysis.effects import CHECKS, OF_NUMBERS, PURE


class Reach:
    """A statement's reach, or that of several.

    reads, writes: arrays by entry, {name: [index, ...]}; whole: arrays read as a whole; names: numbers read before they
    are set here; sets: names that are set; known: False where anything else may happen; counts: how often each array is
    reached by entry.
    """

    def __init__(self, *nodes):
        self.reads, self.writes, self.whole, self.names, self.sets, self.known = {}, {}, set(), set(), set(), True
        self.certain = set()            # what is set whatever the lengths are
        self.counts = {}
        for node in nodes:
            self.statement(node)

    def statement(self, node):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self.value(node.value)
            self.target(node.targets[0])
        elif isinstance(node, ast.AugAssign):
            self.value(node.value)
            if isinstance(node.target, ast.Name):
                self.name(node.target.id)
            else:
                self.entry(node.target, self.reads, 0)
            self.target(node.target)
        elif isinstance(node, ast.For) and not node.orelse and isinstance(node.target, ast.Name):
            self.value(node.iter)
            certain = set(self.certain)
            self.sets.add(node.target.id)
            self.certain.add(node.target.id)
            for inner in node.body:
                self.statement(inner)
            self.certain = certain
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and \
                isinstance(node.value.func, ast.Name) and node.value.func.id in CHECKS:
            for a in node.value.args:           # which of two errors is raised first does not matter
                self.value(a)
        elif not isinstance(node, ast.Pass):
            self.known = False

    def target(self, node):
        if isinstance(node, ast.Name):
            self.sets.add(node.id)
            self.certain.add(node.id)
        elif isinstance(node, ast.Subscript):
            self.entry(node, self.writes)
        else:
            self.known = False

    def name(self, name):
        if name not in self.certain:
            self.names.add(name)

    def entry(self, node, where, times=1):
        if not isinstance(node.value, ast.Name):
            self.known = False
            return
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            if isinstance(part, (ast.Slice, ast.Starred)) or isinstance(part, ast.Constant) and part.value is None:
                self.known = False
                return
            self.value(part)
        where.setdefault(node.value.id, []).append(tuple(map(ast.unparse, parts)))
        self.counts[node.value.id] = self.counts.get(node.value.id, 0) + times

    def value(self, node):
        if isinstance(node, ast.Name):
            self.name(node.id)
        elif isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
                self.value(node.value)
            else:
                self.entry(node, self.reads)
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in ("np", "math"):
                return
            if node.attr in ("shape", "size", "T", "real", "imag") or not isinstance(node.value, ast.Name):
                self.value(node.value)
            else:
                self.known = False
        elif isinstance(node, ast.Call):
            self.call(node)
        elif isinstance(node, (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.Constant)):
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.expr):
                    self.value(inner)
        else:
            self.known = False

    def call(self, node):
        function = node.func
        named = isinstance(function, ast.Name) and (function.id in PURE or function.id == "range" or ast.unparse(
            node).startswith("len(range("))
        of_module = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and \
            function.value.id in ("np", "math")
        if node.keywords or not (named or of_module):
            self.known = False
        for a in node.args:
            self.value(a)
            if of_module and function.attr not in OF_NUMBERS and isinstance(a, (ast.Name, ast.Attribute)):
                root = a.value if isinstance(a, ast.Attribute) else a
                if isinstance(root, ast.Name):
                    self.whole.add(root.id)

    def and_then(self, other):
        """The reach of two statements of which neither sets a number that the other reads."""
        for mine, more in ((self.reads, other.reads), (self.writes, other.writes)):
            for name, found in more.items():
                mine.setdefault(name, []).extend(found)
        for name, times in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + times
        for field in ("whole", "names", "sets", "certain"):
            getattr(self, field).update(getattr(other, field))
        self.known = self.known and other.known

    def foreign(self, own):
        """Whether an array is touched that may be seen under another name."""
        return bool((self.reads.keys() | self.writes.keys() | self.whole) - own)

    @property
    def read(self):
        return self.names | self.reads.keys() | self.whole

    @property
    def written(self):
        return self.sets | self.writes.keys()


class Paths(Reach):
    """The reach of statements with branches and while loops among them."""

    def statement(self, node):
        if isinstance(node, ast.If):
            self.value(node.test)
            before, ends = self.certain, []
            for arm in (node.body, node.orelse):
                self.certain = set(before)
                for s in arm:
                    self.statement(s)
                ends.append(self.certain)
            self.certain = ends[0] & ends[1]
        elif isinstance(node, ast.While) and not node.orelse:
            self.value(node.test)
            before = set(self.certain)
            for s in node.body:
                self.statement(s)
            self.certain = before
        elif not isinstance(node, (ast.Break, ast.Continue)):
            super().statement(node)
