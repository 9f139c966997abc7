# SPDX-License-Identifier: Apache-2.0
"""Definition-use chains: where each name of a function is set and used, and where statements stand.

>>> from gradscribe.codegen.loops.trees import block_of
>>> function = Function("f", ["x"], {}, block_of("s = 0.0\\nfor i in range(3):\\n    s += x[i]"))
>>> found = DefUse(function)
>>> [type(s).__name__ for s in found.sets["s"]], [use.role for use in found.uses["x"]]
(['Let', 'Update'], ['entry'])

Source: S. S. Muchnick, Advanced Compiler Design and Implementation, 1997, section 8.10 (du-chains).
"""
from gradscribe.codegen.loops.analysis.arrays import uses_in
from gradscribe.codegen.loops.form import For, Function, Statement, While, all_blocks, holders, set_by, statements
from gradscribe.codegen.loops.shapes import around


class DefUse:
    """sets, uses: {name: the statements that set it, its uses}; at: {statement: its position in the text}; blocks:
    {statement: the block that holds it}; above: the result of holders().
    """

    def __init__(self, function: Function):
        self.above, self.blocks = holders(function), {s: block for block in all_blocks(function) for s in block}
        self.at = {s: k for k, s in enumerate(statements(function.block))}
        self.sets: dict = {}
        self.uses: dict = {}
        for s in self.at:
            for name in set_by(s):
                self.sets.setdefault(name, []).append(s)
            for use in uses_in(s):
                self.uses.setdefault(use.name, []).append(use)

    def users(self, name: str) -> list[Statement]:
        """The statements that set or use a name, once for each occurrence."""
        return [*self.sets.get(name, ()), *(use.statement for use in self.uses.get(name, ()))]

    def outermost(self, s: Statement) -> For | While | None:
        """The outermost loop around a statement, itself included."""
        loops = [a for a in (s, *around(s, self.above)) if isinstance(a, (For, While))]
        return loops[-1] if loops else None
