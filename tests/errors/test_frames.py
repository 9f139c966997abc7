"""The traceback of a refusal shows the user's frames alone; that of a fault of ours shows everything."""
import linecache
import os
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
from errors import cases, every  # noqa: F401  (all files of cases are read)
from errors.test_errors import FILES, raised

import gradscribe as gs
from gradscribe.ast_transform.reader import dispatch

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(f"{ROOT / folder}{os.sep}" for folder in ("gradscribe", "ast_transform", "codegen", "runtime"))
X = np.array([0.5, 1.5, 2.5])
# these call what stands behind the command line, the live page and the bridge to PyTorch themselves
DIRECT = {
    "bench_without_kinds", "axes_that_are_words", "an_argument_that_is_not_there", "a_function_without_a_colon",
    "a_module_that_is_not_there", "a_function_that_is_not_there", "a_length_that_is_a_sum", "a_kind_that_is_not_known",
    "kinds_that_are_no_expression", "a_kind_of_an_object", "a_kind_of_dates",
    "a_class_that_is_not_there", "a_heading_with_another_call",
    "a_recipe_for_compiled_code", "tensor_on_a_device",
    "field_of_a_batch_of_parts", "field_of_a_class_that_is_not_named", "field_of_a_function_alone",
    "field_of_a_thousand_transformations", "field_of_an_unfinished_transformation", "field_of_another_name",
    "field_of_arrays_that_are_too_large", "field_of_too_many_kinds", "kinds_with_more_entries_than_are_allowed",
    "live_page_of_a_module_that_is_not_there", "live_page_on_a_port_beyond_the_last",
    "live_page_on_a_port_of_the_system", "live_page_on_a_port_that_is_taken",
}


def frames(error):
    return traceback.extract_tb(error.__traceback__)


def ours(error):
    return [f for f in frames(error) if f.filename.startswith(OURS)]


@pytest.mark.parametrize("name", sorted(cases.CASES.keys() - DIRECT))
def test_each_refusal(name):
    error = raised(name)
    assert not ours(error)
    assert any(f.filename in FILES for f in frames(error))
    for before in (error.__cause__, error.__context__):         # what was raised in lines of the case is shown
        assert before is None or frames(before) and not ours(before)


def refused(x):
    return np.sum(open(x))


def failing(x):
    if x[0] > 0:
        raise ValueError("not today")
    return np.sum(x)


def names(error):
    return [f.name for f in frames(error)]


PROGRAM = """
import numpy as np
import gradscribe as gs

def f(x):
    return np.sum(open(x))

def main():
    return gs.grad(f)(np.ones(3))

main()
"""


@pytest.mark.parametrize("setting", ["", "full"])
def test_what_python_prints(tmp_path, setting):
    path = tmp_path / "model.py"
    path.write_text(PROGRAM)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "GRADSCRIBE_TRACEBACK": setting})
    assert done.returncode == 1
    if setting:
        assert done.stderr.count(str(ROOT)) > 10
        return
    assert done.stderr == f"""Traceback (most recent call last):
  File "{path}", line 11, in <module>
    main()
  File "{path}", line 9, in main
    return gs.grad(f)(np.ones(3))
           ^^^^^^^^^^^^^^^^^^^^^^
gradscribe.RuleError: open has no derivative rule
  model.py:6, in f
    return np.sum(open(x))
                  ^^^^^^^
  To add a rule: docs/rules.md
"""


@pytest.mark.parametrize("call", [
    lambda f: gs.grad(f)(X),
    lambda f: gs.jit(f)(X),
    lambda f: gs.jit(gs.grad(f))(X),
    lambda f: gs.grad(gs.grad(f))(X),
    lambda f: gs.vmap(gs.grad(f))(np.ones((2, 3))),
    lambda f: gs.jvp(f, (X,), (X,)),
    lambda f: gs.hvp(f, (X,), (X,)),
    lambda f: gs.hessian(f)(X),
    lambda f: gs.function(f).grad(X),
    lambda f: gs.grad(f).source_for(X),
    lambda f: gs.explain(f, X),
    lambda f: gs.eval_shape(f, X),
    lambda f: gs.make_ir(f)(X),
    lambda f: gs.pmap(f)(np.ones((1, 3))),
])
def test_each_way_in(call):
    with pytest.raises(gs.TransformError) as caught:
        call(refused)
    assert names(caught.value) == ["test_each_way_in", "<lambda>"]


def test_wrong_arguments():
    for wrong in (lambda: gs.grad(3), lambda: gs.vmap(refused, strategy="fast"), lambda: gs.jit(refused, target="tpu"),
                  lambda: gs.jvp(refused, X, X), lambda: gs.grad(refused, argnums="x")):
        with pytest.raises(gs.KindError) as caught:
            wrong()
        assert names(caught.value) == ["test_wrong_arguments", "<lambda>"]


def test_what_runs_shows_the_emitted_lines():
    """An error of the user's own, raised where emitted code runs."""
    with pytest.raises(ValueError, match="not today") as caught:
        gs.grad(failing)(X)
    assert names(caught.value) == ["test_what_runs_shows_the_emitted_lines", "grad_failing"]
    assert frames(caught.value)[1].line == "raise ValueError('not today')"


def test_compiled_code_that_raises():
    f = gs.jit(failing)
    for _ in range(2):                  # by the general way and by the short one
        with pytest.raises(ValueError, match="not today") as caught:
            f(X)
        assert not ours(caught.value)
        assert names(caught.value)[0] == "test_compiled_code_that_raises"


def test_a_user_s_function_that_is_called():
    """gs.vjp runs the function as it is: its frames stay."""
    with pytest.raises(ValueError, match="not today") as caught:
        gs.vjp(failing, X)
    assert names(caught.value) == ["test_a_user_s_function_that_is_called", "failing"]


def test_what_the_user_was_handling_stays():
    with pytest.raises(gs.RuleError) as caught:
        try:
            failing(X)
        except ValueError:
            gs.grad(refused)(X)
    before = caught.value.__context__
    assert type(before) is ValueError
    assert names(before) == ["test_what_the_user_was_handling_stays", "failing"]


def test_a_cause_that_is_the_user_s_stays():
    with pytest.raises(RuntimeError) as caught:
        try:
            gs.grad(refused)(X)
        except gs.RuleError as error:
            raise RuntimeError("no gradient") from error
    assert type(caught.value.__cause__) is gs.RuleError
    assert names(caught.value.__cause__) == ["test_a_cause_that_is_the_user_s_stays"]


def test_in_a_generator():
    def each():
        yield gs.grad(refused)(X)
    with pytest.raises(gs.RuleError) as caught:
        list(each())
    assert names(caught.value) == ["test_in_a_generator", "each"]


def test_what_needs_a_large_stack():
    """Such a function is transformed in a thread of its own."""
    space = {"np": np}
    text = "def deep(x):\n    return " + "(" * 150 + "x" + " + x)" * 150 + " + open(x)\n"
    linecache.cache["<deep>"] = (len(text), None, text.splitlines(True), "<deep>")
    exec(compile(text, "<deep>", "exec"), space)
    with pytest.raises(gs.RuleError) as caught:
        gs.grad(space["deep"])(2.0)
    assert names(caught.value) == ["test_what_needs_a_large_stack"]


def test_a_fault_of_ours_shows_everything(monkeypatch):
    def broken(reader, node):
        raise KeyError("a fault")
    monkeypatch.setitem(dispatch.EVALUATE, "BinOp", broken)
    with pytest.raises(KeyError) as caught:
        gs.grad(lambda x: x * x)(2.0)
    assert len(ours(caught.value)) > 5


def test_all_frames(monkeypatch):
    monkeypatch.setenv("GRADSCRIBE_TRACEBACK", "full")
    with pytest.raises(gs.RuleError) as caught:
        gs.grad(refused)(X)
    assert len(ours(caught.value)) > 5
