"""Rows of arrays: names for them become indices, and what is copied into one is made there."""
import ast
import copy

from gradscribe.codegen.texts import dtype_of, parents_of, parts_of, replace, shape_of
from gradscribe.codegen.versions import is_made


class Rows:
    """Works on `self.function`; `made`, `again` and `own` are found by fusion."""

    def rows(self):
        """A name for a view becomes indices into what it shows; views of views as well."""
        self.taken = {n.id for n in ast.walk(self.function) if isinstance(n, ast.Name)} | set(self.arrays)
        while True:
            parents = parents_of(self.function)
            made, sets, uses = {}, {}, {}
            for node in ast.walk(self.function):
                if is_made(node):
                    made.setdefault(node.targets[0].id, []).append(node)
                if isinstance(node, ast.Name):
                    (sets if isinstance(node.ctx, ast.Store) else uses).setdefault(node.id, []).append(node)
            shapes = {
                n: ast.Tuple([length_of(n, k) for k in range(rank)], ast.Load())
                for n, (_, rank) in self.arrays.items()
                if n not in sets
            }
            shapes |= {n: found[0].value.args[0] for n, found in made.items() if len(found) == len(sets[n]) == 1}
            views = [(n, parents[found[0]]) for n, found in sets.items() if len(found) == 1]
            if not any([self.shown_by_entries(n, v, shapes, sets, uses, parents) for n, v in views]):
                return

    def shown_by_entries(self, name, view, shapes, sets, uses, parents):
        """Whether a view's name has gone: its entries are those of what it shows."""
        if not isinstance(view, ast.Assign) or not isinstance(view.value, ast.Subscript) or not isinstance(
                view.value.value, ast.Name) or view.value.value.id not in shapes:
            return False
        whole, block = view.value.value.id, getattr(parents[view], "body", ())
        if view not in block:
            block = getattr(parents[view], "orelse", ())
        parts, shape = parts_of(view.value), shapes[whole].elts     # as they are now
        if len(parts) > len(shape) or view not in block:
            return False
        parts = [*parts, *(ast.Slice() for _ in range(len(shape) - len(parts)))]
        axes = [offset_of(p) for p in parts]                # None: an index
        if all(a is None for a in axes) or "other" in axes or not all(
                is_index(p) for p, a in zip(parts, axes) if a is None):
            return False
        lengths = [view_length(p, d) for p, d, a in zip(parts, shape, axes) if a is not None]
        below = {n for s in block[block.index(view):] for n in ast.walk(s)}
        fixed = {n.id for p, a in zip(parts, axes) if a is None for n in ast.walk(p) if isinstance(n, ast.Name)}
        fixed |= {n.id for d in shape for n in ast.walk(d) if isinstance(n, ast.Name)} - {whole}
        if any(s in below for n in fixed for s in sets.get(n, ())):
            return False
        for u in uses.get(name, ()):
            if u not in below or not row_use(u, parents, len(lengths)) and not view_use(u, parents, len(lengths)):
                return False
            if isinstance(parents[u], ast.Attribute) and lengths[parents[parents[u]].slice.value] is None:
                return False
        for k, (p, a) in enumerate(zip(parts, axes)):       # an index that is looked up is looked up once
            if a is None and not isinstance(p, (ast.Name, ast.Constant)):
                at = ast.Name(self.free(f"at_{name}"), ast.Store())
                lookup = ast.Assign([at], p, lineno=0)
                lookup.origin = getattr(view, "origin", None)
                block.insert(block.index(view), lookup)
                parts[k] = ast.Name(at.id, ast.Load())
        for u in uses.get(name, ()):
            entry = parents[u]
            if isinstance(entry, ast.Attribute):
                shown, length = parents[entry], copy.deepcopy(lengths[parents[entry].slice.value])
                replace(parents[shown], shown, length)
                entered(length, parents[shown], uses, parents)
                continue
            own = iter([*parts_of(entry), *(ast.Slice() for _ in lengths)])
            u.id = whole
            index = [copy.deepcopy(p) if a is None else inside(next(own), p, a) for p, a in zip(parts, axes)]
            entry.slice = index[0] if len(index) == 1 else ast.Tuple(index, ast.Load())
            uses.setdefault(whole, []).append(u)
            entered(entry.slice, entry, uses, parents)
        block.remove(view)
        return True

    def free(self, name):
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

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
                parents[u].slice = ast.Tuple([*copy.deepcopy(lead), *parts_of(parents[u])], ast.Load())
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


def entered(node, parent, uses, parents):
    """A new part of the tree joins the names that are used and the nodes above."""
    parents[node] = parent
    for n in ast.walk(node):
        parents.update((child, n) for child in ast.iter_child_nodes(n))
        if isinstance(n, ast.Name) and n not in uses.setdefault(n.id, []):
            uses[n.id].append(n)


def length_of(name, k):
    return ast.Subscript(ast.Attribute(ast.Name(name, ast.Load()), "shape", ast.Load()), ast.Constant(k), ast.Load())


def is_index(node):
    """An integer that is known before, or looked up and checked."""
    return isinstance(node, ast.Name) or isinstance(node, ast.Constant) and type(node.value) is int or \
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "place"


def offset_of(part):
    """Where a slice by literals starts; None for an index, "other" for what is neither."""
    if not isinstance(part, ast.Slice):
        return "other" if isinstance(part, ast.Constant) and part.value is None else None
    ends = [part.lower, part.upper]
    if part.step is not None or not all(e is None or isinstance(e, ast.Constant) for e in ends) or not positive(part):
        return "other"
    return part.lower.value if part.lower is not None else 0


def view_length(part, length):
    """The length of an axis of a view, if it is known."""
    if not isinstance(part, ast.Slice):
        return None
    if part.lower is None and part.upper is None:
        return length
    if not isinstance(length, ast.Constant):
        return None
    first, last = (e.value if e is not None else None for e in (part.lower, part.upper))
    return ast.Constant(len(range(length.value)[first:last]))


def inside(part, slice_, offset):
    """An index or a slice of a slice, as one of the whole."""
    if not isinstance(part, ast.Slice):
        if isinstance(part, ast.Constant):
            return ast.Constant(part.value + offset)
        return ast.BinOp(part, ast.Add(), ast.Constant(offset)) if offset else part
    first = offset + (part.lower.value if part.lower is not None else 0)
    ends = [e for e in (slice_.upper and slice_.upper.value, part.upper and part.upper.value + offset) if e is not None]
    return ast.Slice(ast.Constant(first) if first else None, ast.Constant(min(ends)) if ends else None)


def view_use(node, parents, rank):
    """A use of a view by another view, of literal slices."""
    parent = parents[node]
    return isinstance(parent, ast.Subscript) and parent.value is node and len(parts_of(parent)) <= rank and \
        isinstance(parents[parent], ast.Assign) and isinstance(parents[parent].targets[0], ast.Name) and \
        all(is_index(p) or offset_of(p) not in (None, "other") and positive(p) for p in parts_of(parent))


def positive(part):
    return all(e is None or type(e.value) is int and e.value >= 0 for e in (part.lower, part.upper))


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
