# SPDX-License-Identifier: Apache-2.0
"""Rows of arrays: names for them become indices, and what is copied into one is made there."""
import ast
import copy

from gradscribe.codegen.bounds import shape_entry
from gradscribe.codegen.texts import (
    dtype_of,
    in_order,
    names_in,
    parents_of,
    parts_of,
    place_in,
    replace,
    shape_of,
    statement_of,
    take_out,
    walk,
)
from gradscribe.codegen.versions import is_made


class Rows:
    """Works on `self.function`; `made`, `again` and `own` are found by fusion."""

    def rows(self):
        """A name for a view becomes indices into what it shows; views of views as well."""
        self.taken = {n.id for n in walk(self.function) if isinstance(n, ast.Name)} | set(self.arrays)
        self.shorter = {}
        while True:
            parents = parents_of(self.function)
            made, sets, uses = {}, {}, {}
            for node in walk(self.function):
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
            self.name_lengths(shapes, sets, uses, parents)
            views = [(n, parents[found[0]]) for n, found in sets.items() if len(found) == 1]
            if not any([self.shown_by_entries(n, v, shapes, sets, uses, parents) for n, v in views]):
                return

    def name_lengths(self, shapes, sets, uses, parents):
        """Lengths of arrays by the names that they were made with, or that come before any other use."""
        read = set()
        for s in self.function.body:
            before = set(read)
            read |= {shape_entry(n) for n in walk(s)}
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and len(sets[s.targets[0].id]) == 1:
                place = shape_entry(s.value)
                if place is not None and place[0] in self.arrays and place[0] in shapes and place not in before:
                    shapes[place[0]].elts[place[1]] = ast.Name(s.targets[0].id, ast.Load())
        lengths = dict(shapes)
        for name in [n for n in shapes if n in self.arrays]:
            self.name_length(name, lengths[name], sets, uses, parents)
        for s in in_order(self.function):               # what is made of what is made before it
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and len(sets[s.targets[0].id]) == 1:
                name = s.targets[0].id
                if name not in lengths:
                    lengths[name] = shape_of_call(s.value, lengths)
                if lengths[name] is None:
                    del lengths[name]
                else:
                    self.name_length(name, lengths[name], sets, uses, parents)

    def name_length(self, name, shape, sets, uses, parents):
        for u in list(uses.get(name, ())):
            entry = parents.get(parents[u])
            if shape_entry(entry) is None or entry.value.value is not u:
                continue
            length, holder = shape.elts[entry.slice.value], parents[entry]
            if isinstance(length, ast.Constant) or isinstance(length, ast.Name) and len(
                    sets.get(length.id, ())) == 1 and not (
                    isinstance(holder, ast.Assign) and isinstance(holder.targets[0], ast.Name) and
                    holder.targets[0].id == length.id):
                new = copy.deepcopy(length)
                replace(holder, entry, new)
                entered(new, holder, uses, parents)
                uses[name].remove(u)

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
        lengths = [view_length(p, d) or self.less(p, d, sets) for p, d, a in zip(parts, shape, axes) if a is not None]
        slices = [p for p, a in zip(parts, axes) if a is not None]
        at = block.index(view)
        fixed = {n.id for p, a in zip(parts, axes) if a is None for n in walk(p) if isinstance(n, ast.Name)}
        fixed |= {n.id for d in shape for n in walk(d) if isinstance(n, ast.Name)} - {whole}
        if any(place_in(block, s, parents) >= at for n in fixed for s in sets.get(n, ())):
            return False
        for u in uses.get(name, ()):
            if place_in(block, u, parents) < at or not (
                    row_use(u, parents, len(lengths)) or view_use(u, parents, slices)):
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
        take_out(block, view)
        return True

    def less(self, part, length, sets):
        """The length of x[a:-b], by a name that is set where that of x is known; None where that is not certain."""
        if part.upper is not None and not isinstance(part.upper, ast.UnaryOp):
            return None
        gone = (part.lower.value if part.lower is not None else 0) + (part.upper.operand.value if part.upper else 0)
        text, top = ast.unparse(length), self.function.body
        if (text, gone) in self.shorter:
            return ast.Name(self.shorter[text, gone], ast.Load())
        place = 0
        if isinstance(length, ast.Name):
            made = [k for k, s in enumerate(top) if isinstance(s, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == length.id for t in s.targets)]
            if len(sets.get(length.id, ())) != 1 or len(made) != 1:
                return None
            place = made[0] + 1
        elif not isinstance(length, ast.Subscript) or length.value.value.id not in self.arrays or \
                length.value.value.id in sets:
            return None
        value = f"max({text} - {gone}, 0)"
        named = [s for s in top if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)]
        known = next((s.targets[0].id for s in named if len(sets[s.targets[0].id]) == 1 and
                      ast.unparse(s.value) == value), None)
        if known is not None:           # as lowering has named it
            self.shorter[text, gone] = known
            return ast.Name(known, ast.Load())
        name = self.shorter[text, gone] = self.free(f"{length.id if isinstance(length, ast.Name) else 'n'}_less_{gone}")
        statement = ast.parse(f"{name} = {value}").body[0]
        sets[name] = [statement.targets[0]]
        top.insert(place, statement)
        return ast.Name(name, ast.Load())

    def free(self, name):
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def fill_in_place(self):
        """An array that is made, filled, and then copied whole into a row of another: the row is filled."""
        parents, names, found = parents_of(self.function), names_in(self.function), False
        while any([self.filled_in_place(n, parents, names) for n in sorted(self.own)]):
            found = True
        if found:
            self.find_own()

    def filled_in_place(self, name, parents, names):
        made = self.made[name]
        block = getattr(parents[made], "body", ())
        if made.value.func.attr != "empty" or made not in block:
            return False
        holders = {s: None for n in names[name] if (s := statement_of(n, block, parents))}
        copies = [s for s in holders if isinstance(s, ast.For) and copied_row(s, name)]
        if len(copies) != 1:
            return False
        ranges, entry, lead = copied_row(copies[0], name)
        whole = entry.value.id
        shown = self.shown_as(whole, parents, names)
        if whole == name or not shown or dtype_of(self.made[whole]) != dtype_of(made) or \
                [ast.unparse(d) for d in shape_of(made)] != ranges:
            return False
        first, last = block.index(made), block.index(copies[0])
        def between(n):
            return first <= place_in(block, n, parents) < last
        uses = [n for n in names[name] if n is not made.targets[0]]
        if not all(isinstance(p, (ast.Name, ast.Constant)) for p in lead) or sum(map(between, uses)) != len(
                uses) - 1 or not all(row_use(u, parents, len(ranges)) and isinstance(parents[u], ast.Subscript)
                                     for u in uses):
            return False
        fixed = {p.id for p in lead if isinstance(p, ast.Name)}
        if any(between(n) for other in shown for n in names.get(other, ())) or any(
                isinstance(n.ctx, ast.Store) and between(n) for other in fixed for n in names[other]):
            return False
        for u in uses:
            if between(u):
                u.id = whole
                parents[u].slice = ast.Tuple([*copy.deepcopy(lead), *parts_of(parents[u])], ast.Load())
                names[whole].append(u)
                for n in walk(parents[u].slice):
                    parents.update((child, n) for child in ast.iter_child_nodes(n))
                    if isinstance(n, ast.Name) and n not in names[n.id]:
                        names[n.id].append(n)
                parents[parents[u].slice] = parents[u]
        gone = {id(n) for s in (made, copies[0]) for n in walk(s)}
        for other in {name, *(n.id for n in walk(copies[0]) if isinstance(n, ast.Name))}:
            names[other] = [n for n in names[other] if id(n) not in gone]
        take_out(block, made)
        take_out(block, copies[0])
        del self.made[name]
        self.own.discard(name)
        return True

    def shown_as(self, name, parents, names):
        """The names by which an array that is made once may be reached: its own and its rows'; none where unknown."""
        if name not in self.made or name in self.again:
            return set()
        ranks = {name: len(shape_of(self.made[name]))}
        for shown in (queue := [name]):
            for n in names.get(shown, ()):
                if not isinstance(n.ctx, ast.Load):
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
    for n in walk(node):
        parents.update((child, n) for child in ast.iter_child_nodes(n))
        if isinstance(n, ast.Name) and n not in uses.setdefault(n.id, []):
            uses[n.id].append(n)


def shape_of_call(node, shapes):
    """The shape of a product of arrays whose shapes are known, or of an array that is given another; or None."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if ast.unparse(node.func) == "np.dot":
        found = []
        for a in node.args:
            turned = isinstance(a, ast.Attribute) and a.attr == "T"
            a = a.value if turned else a
            if not isinstance(a, ast.Name) or a.id not in shapes:
                return None
            found.append(shapes[a.id].elts[::-1] if turned else shapes[a.id].elts)
        first, second = found
        kept = [*first[:-1], *(second[1:] if len(second) > 1 else [])]
        return ast.Tuple(kept, ast.Load()) if kept else None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "reshape" and len(node.args) == 1 and isinstance(
            node.args[0], ast.Tuple):
        return node.args[0]
    return None


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
    if part.step is not None or not natural(part.lower) or not (natural(part.upper) or from_end(part.upper)):
        return "other"
    return part.lower.value if part.lower is not None else 0


def natural(end):
    return end is None or isinstance(end, ast.Constant) and type(end.value) is int and end.value >= 0


def from_end(end):
    """-k, for k > 0."""
    return isinstance(end, ast.UnaryOp) and isinstance(end.op, ast.USub) and isinstance(end.operand, ast.Constant) and \
        type(end.operand.value) is int and end.operand.value > 0


def view_length(part, length):
    """The length of an axis of a view, if it is known."""
    if not isinstance(part, ast.Slice):
        return None
    if part.lower is None and part.upper is None:
        return length
    if not isinstance(length, ast.Constant):
        return None
    first, last = (
        None if e is None else -e.operand.value if from_end(e) else e.value for e in (part.lower, part.upper)
    )
    return ast.Constant(len(range(length.value)[first:last]))


def inside(part, slice_, offset):
    """An index or a slice of a slice, as one of the whole."""
    if not isinstance(part, ast.Slice):
        if isinstance(part, ast.Constant):
            return ast.Constant(part.value + offset)
        return ast.BinOp(part, ast.Add(), ast.Constant(offset)) if offset else part
    first = offset + (part.lower.value if part.lower is not None else 0)
    lower = ast.Constant(first) if first else None
    if from_end(slice_.upper) or from_end(part.upper):
        gone = sum(e.operand.value for e in (slice_.upper, part.upper) if e is not None)
        return ast.Slice(lower, ast.UnaryOp(ast.USub(), ast.Constant(gone)))
    ends = [e for e in (slice_.upper and slice_.upper.value, part.upper and part.upper.value + offset) if e is not None]
    return ast.Slice(lower, ast.Constant(min(ends)) if ends else None)


def view_use(node, parents, parts):
    """A use of a view by another view, of literal slices; `parts`: the view's own slices."""
    parent = parents[node]
    if not isinstance(parent, ast.Subscript) or parent.value is not node or not isinstance(
            parents[parent], ast.Assign) or not isinstance(parents[parent].targets[0], ast.Name):
        return False
    more = parts_of(parent)
    return len(more) <= len(parts) and all(
        is_index(p) or offset_of(p) not in (None, "other") and joins(own, p) for own, p in zip(parts, more))


def joins(first, second):
    """A slice of a slice is one slice: both end counted from the end, or neither."""
    ends = [e for e in (first.upper, second.upper) if e is not None]
    return len({from_end(e) for e in ends}) < 2


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
