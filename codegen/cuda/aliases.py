# SPDX-License-Identifier: Apache-2.0
"""Where another name for an array may as well be a copy of it, as threads have short arrays.

>>> loop = ast.parse('''while True:
...     n = np.empty((2,), np.float64)
...     n[0] = old[1]
...     old = v
...     v = n
...     v[0] = 1.0
...     w = v
...     v[1] = 2.0''').body[0]
>>> assigns = [s for s in loop.body if isinstance(s.targets[0], ast.Name)]
>>> aliases = Aliases(loop, assigns, {})
>>> [ast.unparse(s) for s in assigns if isinstance(s.value, ast.Name) and aliases.is_copy(s)]
['old = v', 'v = n']
"""
import ast

from gradscribe.codegen.cuda.trees import walk


class Aliases:
    """Of a loop's own arrays; assigns: the statements that give them their names; rows: names of rows of others."""

    def __init__(self, loop, assigns, rows):
        self.loop, self.assigns, self.rows = loop, assigns, rows

    def is_copy(self, alias):
        """Whether another name may be a copy: what it is another name for is not touched before it is made anew."""
        source, name = alias.value.id, alias.targets[0].id
        if source in self.rows:
            return not stores(self.loop, name)
        if self.settled(source) and not stores(self.loop, name):
            return True
        if self.is_last(source, alias):
            return True
        made = [n for n in self.assigns if n.targets[0].id == source]
        block = next((b for b in self.blocks() if alias in b), None)
        if block is None or len(made) != 1 or made[0] not in block:
            return False
        first, last = block.index(made[0]), block.index(alias)
        inside = {id(n) for s in block[first:last + 1] for n in walk(s)}
        return first < last and all(id(n) in inside for n in walk(self.loop) if isinstance(n, ast.Name)
                                    and n.id == source)

    def is_last(self, source, alias):
        """Whether an array has the next of its own before anything else is done with it by its first name."""
        node, parents = alias, {c: p for p in walk(self.loop) for c in ast.iter_child_nodes(p)}
        while node is not self.loop:
            holder = parents[node]
            block = next(b for b in (holder.body, holder.orelse) if node in b)
            anew = made_anew(source, block[block.index(node) + 1:])
            if anew is not None:
                return anew
            if not isinstance(holder, ast.If) and made_anew(source, holder.body) is False:
                return False            # the next pass finds it as this one leaves it
            node = holder
        return True

    def settled(self, name):
        """Whether entries of an array are set, if at all, before it gets other names."""
        if not stores(self.loop, name):
            return True
        made = [n for n in self.assigns if n.targets[0].id == name]
        if len(made) != 1:
            return False
        block = next(b for b in self.blocks() if made[0] in b)
        after = block[block.index(made[0]) + 1:]
        named = {id(n) for n in self.assigns if isinstance(n.value, ast.Name) and n.value.id == name or isinstance(
            n.value, ast.Subscript) and getattr(n.value.value, "id", None) == name}
        first = next((k for k, s in enumerate(after) if any(id(n) in named for n in walk(s))), len(after))
        return sum(stores(s, name) for s in after[:first]) == stores(self.loop, name)

    def blocks(self):
        return [b for n in walk(self.loop) for b in (getattr(n, "body", None), getattr(n, "orelse", None))
                if isinstance(b, list)]


def made_anew(name, body):
    """Whether the first thing that statements do with a name is to give it another array; None if they do nothing."""
    for s in body:
        if not any(isinstance(n, ast.Name) and n.id == name for n in walk(s)):
            continue
        if isinstance(s, ast.Assign):
            return not any(isinstance(n, ast.Name) and n.id == name for n in walk(s.value)) and \
                isinstance(s.targets[0], ast.Name)
        if not isinstance(s, (ast.For, ast.While, ast.If)) or any(
                isinstance(n, ast.Name) and n.id == name for n in walk(s.iter if isinstance(s, ast.For) else s.test)):
            return False
        arms = made_anew(name, s.body), made_anew(name, s.orelse)
        if False in arms or isinstance(s, ast.If) and None in arms:
            return False
        if isinstance(s, ast.If):
            return True
    return None


def entries(node):
    return [n for n in walk(node) if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)]


def stores(node, name):
    return sum(isinstance(e.ctx, ast.Store) and e.value.id == name for e in entries(node))
