# SPDX-License-Identifier: Apache-2.0
"""What the statements of lowered text are: entries, shapes, dtypes, loops."""
import ast

MADE = {"empty", "zeros", "ones", "full"}
PLAIN = frozenset("""ctx op ops id attr arg name names kind type_comment type_ignores level module
                   conversion simple is_async""".split())
_fields: dict = {ast.Constant: ()}


def fields_of(kind):
    """The names of the fields of a kind of node that hold nodes."""
    fields = _fields.get(kind)
    if fields is None:
        fields = _fields[kind] = tuple(f for f in kind._fields if f not in PLAIN)
    return fields


def children(node):
    """The nodes inside a node, operators and contexts left out."""
    found = []
    for field in fields_of(type(node)):
        inner = getattr(node, field, None)
        if type(inner) is list:
            found += inner
        elif inner is not None:
            found.append(inner)
    return found


def walk(tree):
    """A tree's nodes as ast.walk gives them, operators and contexts left out: five times as fast."""
    nodes, known = [tree], _fields
    for node in nodes:
        kind = type(node)
        for field in known[kind] if kind in known else fields_of(kind):
            inner = getattr(node, field, None)
            if type(inner) is list:
                nodes += inner
            elif inner is not None:
                nodes.append(inner)
        yield node


def in_order(node):
    """A tree's nodes in the order in which they are evaluated."""
    found = []

    def add(node):
        found.append(node)
        inner = children(node)
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            inner.remove(node.value)
            inner.insert(0, node.value)
        for n in inner:
            add(n)
    add(node)
    return found


def parents_of(tree):
    return {child: node for node in walk(tree) for child in children(node)}


def block_of(statement, parents):
    """The list of statements that one stands in."""
    holder = parents[statement]
    return next(b for b in (getattr(holder, f, None) for f in ("body", "orelse"))
                if isinstance(b, list) and statement in b)


def names_in(tree):
    """{id: its names in a tree}"""
    found = {}
    for node in walk(tree):
        if isinstance(node, ast.Name):
            found.setdefault(node.id, []).append(node)
    return found


def parts_of(entry):
    """The indices of x[i, j]."""
    return entry.slice.elts if isinstance(entry.slice, ast.Tuple) else [entry.slice]


def is_entry(node, rank):
    """One entry, not a view."""
    return len(parts_of(node)) == rank and not any(
        isinstance(p, (ast.Slice, ast.Starred, ast.Tuple)) or isinstance(p, ast.Constant) and type(p.value) is not int
        for p in parts_of(node))


def shape_of(made):
    return made.value.args[0].elts


def dtype_of(made):
    """The name of an array's dtype, as its allocation says it."""
    args = made.value.args
    return args[-1].attr if len(args) > 1 and isinstance(args[-1], ast.Attribute) else "float64"


def is_counted(node):
    """for name in range(count), upwards."""
    return isinstance(node, ast.For) and isinstance(node.target, ast.Name) and not node.orelse and \
        isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range" and \
        len(node.iter.args) == 1 and isinstance(node.iter.args[0], (ast.Name, ast.Constant))


def is_made(node):
    """name = np.empty((..), ..) and its kin."""
    return isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and \
        isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute) and \
        isinstance(node.value.func.value, ast.Name) and node.value.func.value.id == "np" and \
        node.value.func.attr in MADE and isinstance(node.value.args[0], ast.Tuple)


def counted_down(loop):
    """n of range(n - 1, -1, -1)."""
    if not isinstance(loop.target, ast.Name) or loop.orelse or not isinstance(loop.iter, ast.Call) or \
            ast.unparse(loop.iter.func) != "range" or len(loop.iter.args) != 3:
        return None
    first, *rest = loop.iter.args
    if list(map(ast.unparse, rest)) != ["-1", "-1"] or not isinstance(first, ast.BinOp) or not isinstance(
            first.op, ast.Sub) or ast.unparse(first.right) != "1" or not isinstance(first.left, ast.Name):
        return None
    return first.left


def moved(loop):
    """Names that a pass sets once, to the loop's index and a number from outside: another one in each pass."""
    sets = [n.id for n in walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    for s in loop.body:
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and sets.count(s.targets[0].id) == 1 and \
                isinstance(s.value, ast.BinOp) and isinstance(s.value.op, (ast.Add, ast.Sub)):
            sides = s.value.left, s.value.right
            for one, other in (sides, sides[::-1]):
                if isinstance(one, ast.Name) and one.id == loop.target.id and (
                        isinstance(other, ast.Constant) or isinstance(other, ast.Name) and other.id not in sets):
                    yield s.targets[0].id
