"""Rows of arrays: names for them become indices, and what is copied into one is made there."""
import ast

from gradscribe.codegen.texts import dtype_of, parents_of, parts_of, replace, shape_of
from gradscribe.codegen.versions import is_made


class Rows:
    """Works on `self.function`; `made`, `again` and `own` are found by fusion."""

    def rows(self):
        """A name for a row of an array that is made here is the array at one more index."""
        parents = parents_of(self.function)
        made, sets, uses = {}, {}, {}
        for node in ast.walk(self.function):
            if is_made(node):
                made.setdefault(node.targets[0].id, []).append(node)
            if isinstance(node, ast.Name):
                (sets if isinstance(node.ctx, ast.Store) else uses).setdefault(node.id, []).append(node)
        for name, found in sets.items():
            row = parents[found[0]]
            if len(found) > 1 or not isinstance(row, ast.Assign) or not isinstance(row.value, ast.Subscript) or \
                    not isinstance(row.value.value, ast.Name):
                continue
            whole = row.value.value.id
            first = parts_of(row.value)
            if len(made.get(whole, ())) != 1 or len(sets[whole]) != 1 or not all(
                    isinstance(p, ast.Name) or isinstance(p, ast.Constant) and type(p.value) is int for p in first):
                continue
            rest = shape_of(made[whole][0])[len(first):]
            block = getattr(parents[row], "body", ())
            below = {n for s in block[block.index(row):] for n in ast.walk(s)} if row in block else set()
            fixed = {p.id for p in first if isinstance(p, ast.Name)} | {n.id for d in rest for n in ast.walk(d)
                                                                       if isinstance(n, ast.Name)}
            if not rest or any(s in below for n in fixed for s in sets.get(n, ())) or \
                    not all(u in below and row_use(u, parents, len(rest)) for u in uses.get(name, ())):
                continue
            for u in uses.get(name, ()):
                entry = parents[u]
                if isinstance(entry, ast.Attribute):
                    shown = parents[entry]
                    replace(parents[shown], shown, rest[shown.slice.value])
                    continue
                u.id = whole
                entry.slice = ast.Tuple([*first, *parts_of(entry)], ast.Load())
            block.remove(row)

    def fill_in_place(self):
        """An array that is made, filled, and then copied whole into a row of another: the row is filled."""
        found = True
        while found:
            parents, found = parents_of(self.function), False
            for name in sorted(self.own):
                if self.filled_in_place(name, parents):
                    found = True
                    self.find_own()
                    break

    def filled_in_place(self, name, parents):
        made = self.made[name]
        block = getattr(parents[made], "body", ())
        copies = [s for s in block if isinstance(s, ast.For) and copied_row(s, name)] if made in block else ()
        if len(copies) != 1 or made.value.func.attr != "empty":
            return False
        ranges, entry, lead = copied_row(copies[0], name)
        whole = entry.value.id
        shown = self.shown_as(whole, parents)
        if whole == name or not shown or dtype_of(self.made[whole]) != dtype_of(made) or \
                [ast.unparse(d) for d in shape_of(made)] != ranges:
            return False
        first, last = block.index(made), block.index(copies[0])
        between = [n for s in block[first:last] for n in ast.walk(s)]
        fixed = {n.id for p in lead for n in ast.walk(p) if isinstance(n, ast.Name)}
        uses = [n for n in ast.walk(self.function) if isinstance(n, ast.Name) and n.id == name and n is not
                made.targets[0]]
        if any(isinstance(n, ast.Name) and (n.id in shown or n.id in fixed and isinstance(n.ctx, ast.Store))
               for n in between) or not all(isinstance(p, (ast.Name, ast.Constant)) for p in lead):
            return False
        if sum(n in between for n in uses) != len(uses) - 1 or not all(
                row_use(u, parents, len(ranges)) and isinstance(parents[u], ast.Subscript) for u in uses):
            return False
        for u in uses:
            if u in between:
                u.id = whole
                parents[u].slice = ast.Tuple([*lead, *parts_of(parents[u])], ast.Load())
        block.remove(made)
        block.remove(copies[0])
        return True

    def shown_as(self, name, parents):
        """The names by which an array that is made once may be reached: its own and its rows'; none where unknown."""
        if name not in self.made or name in self.again:
            return set()
        ranks = {name: len(shape_of(self.made[name]))}
        for shown in (queue := [name]):
            for n in ast.walk(self.function):
                if not isinstance(n, ast.Name) or n.id != shown or not isinstance(n.ctx, ast.Load):
                    continue
                use = parents[n]
                if isinstance(use, ast.Attribute) and use.attr == "shape":
                    continue
                if not isinstance(use, ast.Subscript) or use.value is not n:
                    return set()
                left = ranks[shown] - len(parts_of(use))
                if left == 0 and not any(isinstance(p, ast.Slice) for p in parts_of(use)):
                    continue
                row = parents[use]
                if not isinstance(row, ast.Assign) or not isinstance(row.targets[0], ast.Name) or left <= 0 or any(
                        isinstance(p, ast.Slice) for p in parts_of(use)):
                    return set()
                target = row.targets[0].id
                if ranks.setdefault(target, left) != left:
                    return set()
                if target not in queue:
                    queue.append(target)
        return set(ranks)


def copied_row(loop, name):
    """(ranges, entry, leading indices) of loops that do nothing but entry[.., i, j] = name[i, j]; None if other."""
    ranges, indices = [], []
    while isinstance(loop, ast.For) and len(loop.body) == 1 and isinstance(loop.iter, ast.Call) and \
            len(loop.iter.args) == 1 and isinstance(loop.target, ast.Name):
        ranges.append(ast.unparse(loop.iter.args[0]))
        indices.append(loop.target.id)
        loop = loop.body[0]
    if not ranges or not isinstance(loop, ast.Assign) or not isinstance(loop.targets[0], ast.Subscript) or \
            not isinstance(loop.targets[0].value, ast.Name) or not isinstance(loop.value, ast.Subscript) or \
            ast.unparse(loop.value) != f"{name}[{', '.join(indices)}]":
        return None
    parts = parts_of(loop.targets[0])
    lead = parts[:len(parts) - len(indices)]
    if not lead or [ast.unparse(p) for p in parts[len(lead):]] != indices:
        return None
    return ranges, loop.targets[0], lead


def row_use(node, parents, rank):
    """A use of a row: an entry of it, or a length."""
    parent = parents[node]
    if isinstance(parent, ast.Attribute) and parent.attr == "shape":
        return isinstance(parents[parent], ast.Subscript) and isinstance(parents[parent].slice, ast.Constant)
    return isinstance(parent, ast.Subscript) and parent.value is node and len(parts_of(parent)) == rank and \
        not any(isinstance(p, (ast.Slice, ast.Starred)) for p in parts_of(parent))
