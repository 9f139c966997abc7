# SPDX-License-Identifier: Apache-2.0
"""A lowered text as a module for a device: kernels, and the function of the host that launches them.

>>> text = '''def f(x, w):
...     n = x.shape[0]
...     total = 0.0
...     z = np.empty((n,), np.float64)
...     for i in range(n):
...         z[i] = x[i] * w
...         total += z[i]
...     mean = total / float(n)
...     return (mean, z)
... '''
>>> import numpy as np
>>> print(module_of(text, [None] * 9, "f", [(np.dtype("f8"), 1), (np.dtype("f8"), 0)]).text)
from gradscribe.runtime.device import block_sum, blocks, cp, cuda, grid, np, one_block, sum_of
<BLANKLINE>
<BLANKLINE>
@cuda.jit
def f_1(n, x, w, z, total_parts):
    total = 0.0
    i = cuda.grid(1)
    while i < n:
        z[i] = x[i] * w
        total += z[i]
        i += cuda.gridsize(1)
    block_sum(total_parts, total)
<BLANKLINE>
<BLANKLINE>
@cuda.jit
def f_2(total_parts, total, n, mean):
    total_all = sum_of(total_parts)
    if cuda.threadIdx.x == 0:
        total[0] = total_all
        mean[0] = total[0] / float(n)
<BLANKLINE>
<BLANKLINE>
def f(x, w):
    total = cp.empty(1, np.float64)
    mean = cp.empty(1, np.float64)
    n = x.shape[0]
    z = cp.empty((n,), np.float64)
    total_parts = cp.empty(blocks(n), np.float64)
    f_1[grid(n)](n, x, w, z, total_parts)
    f_2[one_block(256)](total_parts, total, n, mean)
    return (mean[0], z)
<BLANKLINE>
"""
import ast

from gradscribe.codegen.cuda.inferred import inferred
from gradscribe.codegen.cuda.scans import Scans
from gradscribe.codegen.cuda.segments import Segments
from gradscribe.codegen.cuda.tidy import named, tidy
from gradscribe.codegen.cuda.writer import USUAL, Writer
from gradscribe.codegen.loops.trees import from_tree, to_tree, with_types
from gradscribe.codegen.loops.webs import webs_apart
from gradscribe.codegen.targets.cuda.lists import name_appended
from gradscribe.codegen.targets.cuda.thread_memory import NotPrivate, Private, privatize


def module_of(text, origins, label, kinds, options=USUAL):
    """The module of a lowered text; kinds: (dtype, rank) of each parameter."""
    without = set()                     # loops that do not become kernels after all, though their passes looked alone
    while True:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            node.origin = origins[node.lineno - 1] if getattr(node, "lineno", 0) else None
        tidy(tree.body[0])
        named(tree.body[0], lambda text: {n: k.rank for n, k in inferred(text, label, kinds).items()})
        tree.body[0], private = with_own_memory(tree.body[0], label, kinds, without)
        try:
            return Modules(tree, label, kinds, private, options).made()
        except NotPrivate as found:
            more = {private.numbers[loop] for loop in private.loops[found.name] if loop in private.numbers} - without
            if not more:
                raise
            without |= more


def with_own_memory(tree, label, kinds, without):
    """A tree in which uses of a name that have nothing to do with each other have names of their own, and threads have
    memory of their own, and the Private of it; without: the numbers of loops that are left alone.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            node.origin = node.lineno, getattr(node, "origin", None)
    function = from_tree(tree, {})
    webs_apart(function, loops_own=True)
    function = with_types(function, inferred(ast.unparse(ast.fix_missing_locations(to_tree(function))), label, kinds))
    private = privatize(function, without)
    name_appended(function)
    made = to_tree(function)
    nodes = {node.of: node for node in ast.walk(made) if isinstance(node, ast.stmt) and node is not made}
    for node in nodes.values():
        node.lineno, node.origin = node.origin or (1, None)
    made.lineno, made.origin = tree.origin
    return ast.fix_missing_locations(made), Private(
        {name: nodes[s] for name, s in private.made.items()},
        {name: [nodes[s] for s in loops] for name, loops in private.loops.items()},
        {nodes[s]: k for s, k in private.numbers.items()})


class Modules:
    """The writers of a module: one for what is brief, one for what must have another name, and the one that counts."""

    def __init__(self, tree, label, kinds, private, options):
        self.tree, self.label, self.kinds, self.private, self.brief = tree, label, kinds, private, frozenset()
        self.options = options

    def made(self):
        Scans(self.tree.body[0], self.writer().sorting).run()
        if self.options.deterministic:
            Segments(self.tree.body[0], self.writer().sorting).run()
        first = self.writer()
        first.module()
        self.brief = first.brief()
        writer = self.writer()
        made = writer.module()
        if self.apart(writer.imported | {*self.private.made}):
            made = self.writer().module()
        return made

    def writer(self):
        function = self.tree.body[0]
        found = inferred(ast.unparse(self.tree), self.label, self.kinds)
        return Writer(function, found, self.private, self.brief, self.options)

    def apart(self, imported):
        """Whether names of the text, or its own, had to change because the module calls something by them."""
        function = self.tree.body[0]
        nodes = [n for n in ast.walk(function) if isinstance(n, (ast.Name, ast.arg))]

        def name(n):
            return n.id if isinstance(n, ast.Name) else n.arg
        taken = {*map(name, nodes), *imported}
        stored_here = {name(n) for n in nodes if isinstance(n, ast.arg) or isinstance(n.ctx, ast.Store)}
        other = {}
        for old in sorted((stored_here - self.private.made.keys()) & imported):
            other[old] = f"{old}_"
            while other[old] in taken:
                other[old] += "_"
            taken.add(other[old])
        for n in nodes:
            if name(n) in other:
                setattr(n, "id" if isinstance(n, ast.Name) else "arg", other[name(n)])
        if self.label in imported:
            self.label = function.name = f"{self.label}_"
            return True
        return bool(other)
