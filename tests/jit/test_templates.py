"""Templates of the loop form: what holes take, and that no text is put together for them."""
import ast
from pathlib import Path

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import codegen
from gradscribe.codegen.loops.build import ZERO, entry, joined, let, node, quoted, statement
from gradscribe.codegen.loops.form import Alloc, Const, Items, Length, Name, Op, Store, Unpack, Update
from gradscribe.codegen.loops.trees import read, to_statements

TEXTS = {
    "a * (b + c) ** 2": lambda: quoted("{} * {} ** 2", "a", quoted("{} + {}", "b", "c")),
    "-(x[0, i] - 1) % n": lambda: quoted("-{} % n", quoted("{} - 1", entry("x", 0, "i"))),
    "f(-1, 2.5, True, None, np.float32)": lambda: quoted("f({*})", [-1, 2.5, True, None, np.float32]),
    "np.sqrt(x).astype(np.bool_)": lambda: quoted("{}({}).astype({})", "np.sqrt", "x", bool),
    "x.T.shape[1]": lambda: quoted("{}.shape[{}]", node("x.T"), 1),
    "x.shape[1]": lambda: quoted("{x}.shape[{k}]", k=1, x="x"),
    "a if x != x or x <= b else np.int8(x)": lambda: quoted(
        "a if {x} != {x} or {x} {sign} b else np.{kind}({x})", x="x", sign="<=", kind="int8"),
    "f(x, n, y=[m for _ in range(0)], z=(a,))": lambda: quoted(
        "f({*}, y=[{m} for _ in range(0)], z={})", ["x", "n"], ["a"], m="m"),
    "a + b + c": lambda: joined("+", ["a", "b", "c"]),
    "a or b": lambda: joined("or", ["a", "b"]),
}


@pytest.mark.parametrize("text", TEXTS)
def test_an_expression_is_what_its_text_would_be_read_as(text):
    assert TEXTS[text]() == read(ast.parse(text, mode="eval").body)


def test_statements():
    assert isinstance(statement("{} = {}", entry("x", ZERO), 1), Store)
    assert isinstance(statement("{} = f({})", ["a", "b"], 1), Unpack)
    assert isinstance(statement("{} = {}", "z", quoted("np.zeros({}, {})", ["n"], int)), Alloc)
    assert isinstance(let("z", quoted("np.full({}, 2.0)", [Length("x", 0)])), Alloc)
    assert isinstance(statement("{} {} 1", "n", "+="), Update)
    assert isinstance(statement("{} += 1", entry("x", "i")), Store)
    branch, loop = statement("if {} < 0:", "x"), statement("for {} in range({} - 1, -1, -1):", "i", "n")
    assert branch.block == branch.orelse == loop.block == [] and loop.count == Name("n")
    assert statement("if {} < 0:", "x").block is not branch.block
    assert [ast.unparse(s) for s in to_statements([branch.__class__(branch.test, [statement("pass")], [])])] == [
        "if x < 0:\n    pass"]


def test_nodes():
    assert node(-0.0) == Op("neg", (Const(0.0),)) and node(np.int64(3)) == Const(3) and type(node(True).value) is bool
    assert node([1, "a"]) == Items((Const(1), Name("a")))


def test_templates_are_constants():
    """The first argument of these functions is a constant, or a name that stands for one of several."""
    texts = [path.read_text(encoding="utf-8") for path in Path(codegen.__file__).parent.rglob("*.py")]
    texts = [text for text in texts if "from gradscribe.codegen.loops.build import" in text]
    assert len(texts) > 15
    for text in texts:
        for call in ast.walk(ast.parse(text)):
            called = getattr(call, "func", None)
            if (getattr(called, "id", "") in ("quoted", "statement") or getattr(called, "attr", "") in (
                    "say", "inside")) and call.args:
                template = call.args[0]
                several = [template.body, template.orelse] if isinstance(template, ast.IfExp) else [template]
                assert all(isinstance(t, (ast.Constant, ast.Name)) for t in several), ast.unparse(call)


def test_words_of_messages_are_no_names():
    """The variable is called as a word of the error's message is that stands before it."""
    def f(x):
        array = np.array([np.max(x), 1.0])
        return array * 2.0
    g = gs.jit(f)
    np.testing.assert_array_equal(g(np.array([1.0, 3.0])), [6.0, 2.0])
    assert "stacked" not in g.lowered
