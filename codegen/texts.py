# SPDX-License-Identifier: Apache-2.0
"""What the statements of lowered text are: entries, shapes, dtypes, loops."""
import ast

from gradscribe.codegen.loops.analysis.effects import ELEMENTARY

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


def in_loop(node, parents):
    """Whether a node stands in a loop."""
    while node in parents:
        node = parents[node]
        if isinstance(node, (ast.For, ast.While)):
            return True
    return False


def statement_of(node, block, parents):
    """The statement of a block that holds a node, though it may have been taken out; None if none does."""
    while node in parents:
        holder = parents[node]
        if getattr(holder, "body", None) is block or getattr(holder, "orelse", None) is block:
            return node
        node = holder
    return None


def place_in(block, node, parents):
    """The number of the statement of a block that holds a node; -1 if none does."""
    statement = statement_of(node, block, parents)
    return block.index(statement) if statement in block else -1


def block_of(statement, parents):
    """The list of statements that one stands in."""
    holder = parents[statement]
    return next(b for b in (getattr(holder, f, None) for f in ("body", "orelse"))
                if isinstance(b, list) and statement in b)


def take_out(block, statement):
    """Take a statement out of its block; a block of nothing says so."""
    block.remove(statement)
    if not block:
        block.append(ast.Pass())


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


CASTS = frozenset("""
    float64 float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool_ complex128 complex64""".split())


LITERALS = {"complex", "float", "int"} | {f"np.{n}" for n in CASTS}


def castable(made):
    return dtype_of(made) in CASTS


def replace(parent, old, new):
    for field, value in ast.iter_fields(parent):
        if value is old:
            setattr(parent, field, new)
        elif isinstance(value, list):
            setattr(parent, field, [new if v is old else v for v in value])


def typed(value, dtype, doubles):
    """A value as an array of that dtype holds it."""
    if dtype == "bool_":
        return value
    if dtype == "float64" and is_double(value, doubles) or isinstance(value, ast.Call) and isinstance(
            value.func, ast.Attribute) and value.func.attr == dtype:
        return value
    if isinstance(value, ast.Constant) and dtype == "float64" and type(value.value) in (int, float):
        return ast.Constant(float(value.value))
    name = {"float64": ast.Name("float", ast.Load()), "int64": ast.Name("int", ast.Load())}.get(dtype) or \
        ast.Attribute(ast.Name("np", ast.Load()), dtype, ast.Load())
    return ast.Call(name, [value], [])


def depth(node, parents):
    """How many statements are around a node."""
    found = 0
    while node in parents:
        node, found = parents[node], found + 1
    return found


KEPT = ("float64", "int64", "complex128")       # dtypes that a sum of two keeps, as Numba has it


def added_in_full(added, number, dtype, doubles):
    """number += value, of a dtype in which the sum of two is wider where it is computed, as a value of that dtype."""
    both = ast.BinOp(ast.Name(number.id, ast.Load()), added.op, added.value)
    value = ast.Call(ast.Name("bool", ast.Load()), [both], []) if dtype == "bool_" else typed(both, dtype, doubles)
    whole = ast.Assign([number], value, lineno=0)
    whole.origin = getattr(added, "origin", None)
    return whole, both


def is_double(value, doubles):
    """A value that is in double precision for certain."""
    if isinstance(value, ast.Constant):
        return type(value.value) is float
    if isinstance(value, ast.Name):
        return value.id in doubles
    if isinstance(value, ast.Subscript):
        return is_double(value.value, doubles)
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute):
            return value.func.attr == "float64" or value.func.attr in ELEMENTARY | {"sqrt"} and all(
                is_double(a, doubles) for a in value.args)
        name = value.func.id
        return name in ("float", "unranked") or name in ELEMENTARY and not name.endswith("32")
    if isinstance(value, ast.IfExp):
        return is_double(value.body, doubles) and is_double(value.orelse, doubles)
    if isinstance(value, ast.BinOp):
        return is_double(value.left, doubles) or is_double(value.right, doubles)
    return isinstance(value, ast.UnaryOp) and not isinstance(value.op, ast.Not) and is_double(value.operand, doubles)


def is_single(value, singles):
    """A value that is in single precision for certain."""
    if isinstance(value, ast.Name):
        return value.id in singles
    if isinstance(value, ast.Subscript):
        return is_single(value.value, singles)
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute):
            return ast.unparse(value.func) in ("np.float32", "np.float16")      # the latter as narrow.py has it
        name = value.func.id
        return name in ELEMENTARY and name.endswith("32") or name in ("abs", "min", "max", "square") and all(
            is_single(a, singles) for a in value.args)
    if isinstance(value, ast.IfExp):
        return is_single(value.body, singles) and is_single(value.orelse, singles)
    if isinstance(value, ast.BinOp):
        return not isinstance(value.op, ast.Pow) and is_single(value.left, singles) and is_single(value.right, singles)
    return isinstance(value, ast.UnaryOp) and not isinstance(value.op, ast.Not) and is_single(value.operand, singles)


def is_literal(value):
    """A number as it is written, of any dtype: 0.0, np.float32(0.0), complex(0.0, 0.0)."""
    if isinstance(value, ast.Call):
        return ast.unparse(value.func) in LITERALS and all(map(is_literal, value.args))
    return isinstance(value, ast.Constant) or isinstance(value, ast.UnaryOp) and isinstance(value.operand, ast.Constant)


def is_fill(s):
    """A loop, or nest, that sets each entry of an array to a constant."""
    while is_counted(s) and len(s.body) == 1:
        s = s.body[0]
    return isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Subscript) and is_literal(s.value)


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
