# SPDX-License-Identifier: Apache-2.0
"""Extensions of the loop form for a device's module: kernels, launches and `del`; and how they are printed.

>>> from gradscribe.codegen.loops.form import Do
>>> from gradscribe.codegen.loops.trees import block_of
>>> kernel = Kernel("f_1", ["n", "x"], block_of("x[cuda.grid(1)] = n"))
>>> host = [Do(Launch("f_1", quoted("grid(n)"), (Name("n"), Name("x")))), Delete(("x",))]
>>> print(*(line for line, _ in [*kernel.lines(), *lines_of(host)]), sep="\\n")
@cuda.jit
def f_1(n, x):
    x[cuda.grid(1)] = n
    f_1[grid(n)](n, x)
    del x
"""
import ast
from typing import Any

from gradscribe.ast_transform.source.origin import Origin
from gradscribe.codegen.loops.build import node, quoted
from gradscribe.codegen.loops.form import (
    Attribute,
    Call,
    Expr,
    Length,
    Let,
    Method,
    Name,
    Statement,
    Update,
    While,
    children,
    expression,
    expressions,
    statement,
    statements,
    walk,
)
from gradscribe.codegen.loops.trees import WRITERS, WRITTEN, printed, to_statements, written

MODULES = {"cp", "cuda", "host", "math", "np"}
SHOWN = 6                               # the user's statements that are shown above a kernel


@expression
class Launch(Expr):
    """kernel[grid](*args)"""
    kernel: str
    grid: Expr
    args: tuple


@statement
class Delete(Statement):
    """del names"""
    names: tuple
    origin: Any = None
    line: int = 0


WRITTEN[Launch] = lambda e: ast.Call(ast.Subscript(ast.Name(e.kernel, ast.Load()), written(e.grid), ast.Load()), list(
    map(written, e.args)), [])
WRITERS[Delete] = lambda s: ast.Delete([ast.Name(n, ast.Del()) for n in s.names])


class Kernel:
    """A kernel, printed below the user's statements that it computes.

    given: its parameters, in order; others: further blocks that are equal to it up to names.
    """

    def __init__(self, name: str, given: list, block: list, origin=None):
        self.name, self.given, self.block, self.origin = name, given, block, origin
        self.others: list = []

    def lines(self) -> list:
        """(line, origin) of each line."""
        body = lines_of(self.block)
        origins = [o for _, o in body] + [s.origin for block in self.others for s in statements(block)]
        said = list(dict.fromkeys(o.statement.strip() for o in origins if o is not None and o.statement))
        shown = said if len(said) <= SHOWN else [*said[:SHOWN - 1], f"... and {len(said) - SHOWN + 1} more"]
        above = [(f"# {s}", None) for s in shown]
        return [*above, ("@cuda.jit", None), (f"def {self.name}({', '.join(self.given)}):", self.origin), *body]


def lines_of(block: list) -> list:
    """(line, origin) of each line of a block of a function."""
    lines: list = []
    printed(to_statements(block), 1, lines)
    return lines


def strided(index: str, begin: Expr, stop: Expr, step: Expr, block: list,
            origin: Origin | None) -> list:
    """A grid-stride loop, as a `while`: `range` with a step would compute its length by a division."""
    return [Let(index, begin), While(quoted("{} < {}", index, stop), [*block, Update(index, "+", step)], origin)]


def numbered(count: str, axis: int = 0, of: int = 1) -> Expr:
    """cuda.grid(1), cuda.gridsize(2)[1]"""
    made = call(f"cuda.{count}", of)
    return quoted("{}[{}]", made, axis) if of > 1 else made


def names_in_order(block: list) -> list:
    """The names that statements read, in the order of the text."""
    found: dict = {}

    def look(e):
        if isinstance(e, Name):
            found.setdefault(e.id)
        elif isinstance(e, Length):
            found.setdefault(e.array)
        for part in children(e):
            look(part)
    for s in statements(block):
        for e in expressions(s):
            look(e)
    return list(found)


def called_in(block: list) -> set:
    """The functions and modules that statements call, and the modules whose attributes they read."""
    parts = [e for s in statements(block) for whole in expressions(s) for e in walk(whole)]
    owners = {e.owner.id for e in parts if isinstance(e, (Attribute, Method)) and isinstance(e.owner, Name)}
    return {e.function.partition(".")[0] for e in parts if isinstance(e, Call)} | owners & MODULES


def call(function: str, *args: Any) -> Expr:
    """function(*args); arguments may be expressions, names or numbers."""
    return Call(function, tuple(map(node, args)))
