# SPDX-License-Identifier: Apache-2.0
"""The conversion of Python's syntax trees to the loop form and back.

>>> function = from_tree(ast.parse('''def f(x):
...     n = x.shape[0]
...     z = np.empty((n,), np.float64)
...     for i in range(n):
...         z[i] = 2.0 * x[i]
...     return (z,)''').body[0], {"x": ("float64", 1)})
>>> function.types["z"], function.block[2].block
(Type(dtype='float64', rank=1), [Store(entry=Load(array=Name(id='z'), index=(Name(id='i'),)), value=Op(op='*', \
args=(Const(value=2.0), Load(array=Name(id='x'), index=(Name(id='i'),)))), op=None, origin=None, line=0)])
>>> print(ast.unparse(to_tree(function)))
def f(x):
    n = x.shape[0]
    z = np.empty((n,), np.float64)
    for i in range(n):
        z[i] = 2.0 * x[i]
    return (z,)
"""
import ast
import operator
from typing import Any, cast

from gradscribe.codegen.loops.form import (
    Alloc,
    Assert,
    Attribute,
    Break,
    Call,
    Compare,
    Const,
    Continue,
    Do,
    EmptyList,
    For,
    Function,
    If,
    Items,
    Keyword,
    Length,
    Let,
    ListOf,
    Load,
    Logic,
    Method,
    Name,
    Nothing,
    Op,
    Raise,
    Return,
    Select,
    Slice,
    Statement,
    Store,
    Type,
    Unpack,
    Update,
    While,
)
from gradscribe.codegen.loops.types import inferred, read_definitions_by

MADE = {"np.empty": "empty", "np.zeros": "zeros", "np.ones": "ones", "np.full": "full"}
MODULES = {"np", "math"}
BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
          ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@"}
UNARY = {ast.USub: "neg", ast.Not: "not", ast.Invert: "~", ast.UAdd: "pos"}
COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
            ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}
SIGNS: dict[str, Any] = {word: kind for table in (BINARY, COMPARED) for kind, word in table.items()}
SIGNS_OF_ONE = {word: kind for kind, word in UNARY.items()}
FUNCTIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "neg": operator.neg,
             "//": operator.floordiv, "%": operator.mod, ">>": operator.rshift}
LOAD, STORE = ast.Load(), ast.Store()


# --- from trees -------------------------------------------------------------------------------------------------------

def from_tree(tree: ast.FunctionDef, arrays: dict) -> Function:
    """The function of a tree; arrays: the dtype and rank of each parameter, and of other names where known."""
    return with_types(Function(tree.name, [a.arg for a in tree.args.args], {}, _block(tree.body)), arrays)


def with_types(function: Function, arrays: dict) -> Function:
    """The function with its inferred types; arrays: the dtype and rank of each parameter, and of others where known."""
    function.types = inferred(function, {n: Type(*about) for n, about in arrays.items()})
    return function


def block_of(text: str) -> list:
    """The statements of a source text."""
    return _block(ast.parse(text).body)


def _block(body):
    return [statement_of(s) for s in body]


def statement_of(s: ast.stmt) -> Statement:
    """The statement of a tree's statement."""
    made = READERS[type(s)](s)
    made.origin = getattr(s, "origin", None)
    return made


def _assign(s):
    (target,), value = s.targets, s.value
    if isinstance(target, ast.Name):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.keywords and \
                isinstance(value.args[0] if value.args else None, ast.Tuple):
            how = MADE.get(_dotted(value.func))
            if how is not None:
                return Alloc(target.id, how, tuple(map(read, value.args[0].elts)), tuple(map(read, value.args[1:])))
        return Let(target.id, read(value))
    if isinstance(target, ast.Subscript):
        return Store(read(target), read(value))
    return Unpack(read(target), read(value))


def _augmented(s):
    op = BINARY[type(s.op)]
    if isinstance(s.target, ast.Name):
        return Update(s.target.id, op, read(s.value))
    return Store(read(s.target), read(s.value), op)


def _for(s):
    return For(s.target.id, tuple(map(read, s.iter.args)), _block(s.body), s.iter.func.id)


READERS = {
    ast.Assign: _assign,
    ast.AugAssign: _augmented,
    ast.For: _for,
    ast.While: lambda s: While(read(s.test), _block(s.body)),
    ast.If: lambda s: If(read(s.test), _block(s.body), _block(s.orelse)),
    ast.Expr: lambda s: Do(read(s.value)),
    ast.Return: lambda s: Return(read(s.value)),
    ast.Raise: lambda s: Raise(read(s.exc)),
    ast.Assert: lambda s: Assert(read(s.test), s.msg and read(s.msg)),
    ast.Break: lambda s: Break(),
    ast.Continue: lambda s: Continue(),
    ast.Pass: lambda s: Nothing(),
}


def _dotted(node):
    """The dotted name of a function: exp, np.x, math.x, np.linalg.x; None of a method."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or names and node.id not in MODULES:
        return None
    return ".".join([node.id, *reversed(names)])


def read(node: Any) -> Any:
    """The expression of a tree's expression."""
    return EXPRESSIONS[type(node)](node)


def _read_subscript(node):
    owner, index = node.value, node.slice
    if isinstance(owner, ast.Attribute) and owner.attr == "shape" and isinstance(owner.value, ast.Name) and \
            isinstance(index, ast.Constant):
        return Length(owner.value.id, cast(int, index.value))
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return Load(read(owner), tuple(map(read, parts)))


def _read_call(node):
    args, keywords = tuple(map(read, node.args)), tuple([Keyword(k.arg, read(k.value)) for k in node.keywords])
    name = _dotted(node.func)
    if name is not None:
        return Call(name, args, keywords)
    return Method(read(node.func.value), node.func.attr, args, keywords)


EXPRESSIONS: dict = {
    ast.Name: lambda e: Name(e.id),
    ast.Constant: lambda e: Const(e.value),
    ast.BinOp: lambda e: Op(BINARY[type(e.op)], (read(e.left), read(e.right))),
    ast.UnaryOp: lambda e: Op(UNARY[type(e.op)], (read(e.operand),)),
    ast.Subscript: _read_subscript,
    ast.Call: _read_call,
    ast.Attribute: lambda e: Attribute(read(e.value), e.attr),
    ast.Compare: lambda e: Compare(tuple(COMPARED[type(o)] for o in e.ops), tuple(map(read, (e.left, *e.comparators)))),
    ast.BoolOp: lambda e: Logic("and" if isinstance(e.op, ast.And) else "or", tuple(map(read, e.values))),
    ast.IfExp: lambda e: Select(read(e.test), read(e.body), read(e.orelse)),
    ast.Slice: lambda e: Slice(*[part and read(part) for part in (e.lower, e.upper, e.step)]),
    ast.ListComp: lambda e: EmptyList(read(e.elt)),
    ast.Tuple: lambda e: Items(tuple(map(read, e.elts))),
    ast.List: lambda e: ListOf(tuple(map(read, e.elts))),
}


read_definitions_by(from_tree)


# --- to trees ---------------------------------------------------------------------------------------------------------

def to_tree(function: Function) -> ast.FunctionDef:
    """The tree of a function; `of` of each of its statements is the statement of the loop form it was made from."""
    args = ast.arguments([], [ast.arg(p) for p in function.params], None, [], [], None, [])
    return ast.FunctionDef(function.name, args, to_statements(function.block), [], None, None, lineno=1)


def to_statements(block: list) -> list:
    """The tree's statements for a block."""
    out = []
    for s in block:
        made = WRITERS[type(s)](s)
        made.origin, made.of, made.col_offset, made.end_col_offset = s.origin, s, 0, 0
        made.lineno = made.end_lineno = s.line or 1
        out.append(made)
    return out


def _assigned(target, value):
    return ast.Assign([target], value, lineno=0)


def _written_alloc(s):
    args = [ast.Tuple(list(map(written, s.shape)), LOAD), *map(written, s.rest)]
    return _assigned(ast.Name(s.name, STORE), ast.Call(_from_dotted(f"np.{s.how}"), args, []))


def _written_store(s):
    target = written(s.entry, STORE)
    if s.op is None:
        return _assigned(target, written(s.value))
    return _added(target, s)


def _added(target, s):
    if " " in s.op:
        return _assigned(target, _marked(s.op, written(s.entry) if isinstance(s, Store) else ast.Name(s.name, LOAD),
                                         written(s.value)))
    return ast.AugAssign(target, SIGNS[s.op](), written(s.value))


def _marked(op, *operands):
    """An operation marked EXACT or SUMMED, as a call."""
    how, sign = op.split(" ")
    return ast.Call(ast.Name(f"{how}_{FUNCTIONS[sign].__name__}_", LOAD), list(operands), [])


def _written_for(s):
    loop = ast.Call(ast.Name(s.kind, LOAD), list(map(written, s.range)), [])
    return ast.For(ast.Name(s.index, STORE), loop, to_statements(s.block), [], lineno=0)


WRITERS = {
    Let: lambda s: _assigned(ast.Name(s.name, STORE), written(s.value)),
    Unpack: lambda s: _assigned(written(s.targets, STORE), written(s.value)),
    Alloc: _written_alloc,
    Store: _written_store,
    Update: lambda s: _added(ast.Name(s.name, STORE), s),
    For: _written_for,
    While: lambda s: ast.While(written(s.test), to_statements(s.block), []),
    If: lambda s: ast.If(written(s.test), to_statements(s.block), to_statements(s.orelse)),
    Do: lambda s: ast.Expr(written(s.value)),
    Return: lambda s: ast.Return(written(s.value)),
    Raise: lambda s: ast.Raise(written(s.value), None),
    Assert: lambda s: ast.Assert(written(s.test), s.message and written(s.message)),
    Break: lambda s: ast.Break(),
    Continue: lambda s: ast.Continue(),
    Nothing: lambda s: ast.Pass(),
}

def _from_dotted(text):
    head, *rest = text.split(".")
    node = ast.Name(head, LOAD)
    for part in rest:
        node = ast.Attribute(node, part, LOAD)
    return node


def written(e: Any, ctx: ast.expr_context = LOAD) -> ast.expr:
    """The tree of an expression."""
    make = TARGETS.get(type(e))
    return WRITTEN[type(e)](e) if make is None else make(e, ctx)


def _written_load(e, ctx):
    index = list(map(written, e.index))
    return ast.Subscript(written(e.array), index[0] if len(index) == 1 else ast.Tuple(index, LOAD), ctx)


def _written_op(e):
    if " " in e.op:
        return _marked(e.op, *map(written, e.args))
    if len(e.args) == 1:
        return ast.UnaryOp(SIGNS_OF_ONE[e.op](), written(e.args[0]))
    return ast.BinOp(written(e.args[0]), SIGNS[e.op](), written(e.args[1]))


def _written_empty_list(e):
    none = ast.Call(ast.Name("range", LOAD), [ast.Constant(0)], [])
    return ast.ListComp(written(e.of), [ast.comprehension(ast.Name("_", STORE), none, [], 0)])


TARGETS = {                             # expressions that may stand to the left of =
    Name: lambda e, ctx: ast.Name(e.id, ctx),
    Load: _written_load,
    Length: lambda e, ctx: ast.Subscript(
        ast.Attribute(ast.Name(e.array, LOAD), "shape", LOAD), ast.Constant(e.axis), ctx),
    Items: lambda e, ctx: ast.Tuple([written(part, ctx) for part in e.items], ctx),
    ListOf: lambda e, ctx: ast.List([written(part, ctx) for part in e.items], ctx),
}
WRITTEN: dict = {                       # all others; a target adds the expressions that only it has
    Const: lambda e: ast.Constant(e.value),
    Op: _written_op,
    Call: lambda e: ast.Call(_from_dotted(e.function), list(map(written, e.args)), _keywords(e)),
    Method: lambda e: ast.Call(
        ast.Attribute(written(e.owner), e.name, LOAD), list(map(written, e.args)), _keywords(e)),
    Attribute: lambda e: ast.Attribute(written(e.owner), e.name, LOAD),
    Compare: lambda e: ast.Compare(written(e.items[0]), [SIGNS[o]() for o in e.ops], list(map(written, e.items[1:]))),
    Logic: lambda e: ast.BoolOp(ast.And() if e.op == "and" else ast.Or(), list(map(written, e.items))),
    Select: lambda e: ast.IfExp(written(e.test), written(e.then), written(e.orelse)),
    Slice: lambda e: ast.Slice(*[part and written(part) for part in (e.lower, e.upper, e.step)]),
    EmptyList: _written_empty_list,
}


def _keywords(e):
    return [ast.keyword(k.name, written(k.value)) for k in e.keywords]


def printed(body: list, level: int, lines: list) -> None:
    """Append the lines of a tree's block, each with its origin, and set each statement's line, from 2 on."""
    for node in body:
        origin = getattr(node, "origin", None)
        if hasattr(node, "of"):
            node.of.line = len(lines) + 2
        if not isinstance(node, (ast.For, ast.While, ast.If)):
            lines += [("    " * level + line, origin) for line in ast.unparse(node).splitlines()]
            continue
        if isinstance(node, ast.For):
            head = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}:"
        else:
            head = f"{'if' if isinstance(node, ast.If) else 'while'} {ast.unparse(node.test)}:"
        lines.append(("    " * level + head, origin))
        printed(node.body, level + 1, lines)
        if node.orelse:
            lines.append(("    " * level + "else:", origin))
            printed(node.orelse, level + 1, lines)
