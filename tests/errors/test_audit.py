"""Every refusal in the code is shown by a case: each place that refuses is found in the sources, and all cases are run.

A place is named by its file, its function and the text of its message, so that lines may move.
"""
import ast
import functools
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from errors import cases, every  # noqa: F401  (all files of cases are read)

import gradscribe as gs
from gradscribe import RuleError, TransformError
from gradscribe.ast_transform.passes.language import REFUSED
from gradscribe.ast_transform.source.diagnose import LanguageError
from gradscribe.ast_transform.source.read import from_text

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("ast_transform", "codegen", "gradscribe")
CLASSES = {"LanguageError", "RuleError", "ShapeError", "KindError", "TransformError"}
RAISED = {"ValueError"}                                             # by rules
HELPERS = {"fail", "refuse"}                                        # what never comes back
CARRIED = {"Unfit", "Mismatch", "NotALoop", "Conflict"}             # what another place words as its message

NEWER = [((3, 12), "TypeAlias", "type Number = float"),               # nodes of newer versions of Python
         ((3, 14), "TemplateStr", "label = t'{x}'")]

UNSEEN = {                          # why no case shows it: file: function and message
    "Python's grammar: every node of today's is accepted or refused by name": {
        "ast_transform/passes/language.py": ["check.visit: {} is not in the accepted language"],
        "ast_transform/reader/memory.py": ["refuse_write: this assignment is not in the accepted language"],
    },
    "Python does not compile functions that are so deep": {
        "ast_transform/reader/entry.py": ["too_deep: an expression is nested too deeply to be read"],
        "ast_transform/source/read.py": ["_tree: an expression in {} is nested too deeply to be read"],
        "gradscribe/making.py": ["_with_room: an expression is nested too deeply to be transformed"],
    },
    "a loop carries whatever it writes into; what would be forgotten otherwise is refused": {
        "ast_transform/reader/loop_fixpoint.py": [
            "all_carried: the loop writes into {}, which it may show by another name"],
    },
    "the reader makes no operation of numbers without a record that any transformation is taken of": {
        "ast_transform/passes/errors.py": ["Errors.take"],
    },
    "it is refused before, by NumPy or where the call is read": {
        "ast_transform/rules/products.py": [
            "einsum_labels: np.einsum takes its subscripts as text here",
            "einsum_labels: np.einsum: {} terms for {} operands",
            "einsum_labels: np.einsum: the term {} is for rank {}, the operand has rank {}",
            "convolve_mode: np.convolve: mode {} is not 'full', 'same' or 'valid'"],
        "ast_transform/rules/reductions.py": ["positive: axis {} is out of bounds for an array of rank {}"],
        "codegen/index_forms.py": ["index_part: an index that is a single boolean has no Numba form"],
        "codegen/shape_forms.py": ["spread: an array is not broadcast to fewer axes"],
    },
    "the try around it takes it: its handler is read": {
        "ast_transform/reader/exceptions.py": ["raised_now: {} is raised"],
    },
    "a function without a rule is refused where it is called": {
        "ast_transform/passes/jvp.py": ["Forward.checked: {} has no derivative rule"],
        "ast_transform/passes/vjp/sweep.py": ["Sweep.by_rule: {} has no derivative rule"],
    },
    "no rule of ours is so; a rule that is added may be": {
        "ast_transform/passes/jvp.py": [
            "Forward.same_call: {} has no derivative with respect to {}",
            "Forward.part: {} has no rule for forward mode"],
    },
    "compiled code is made after containers were taken apart and every value was given its kind": {
        "codegen/reporting.py": ["part: this statement has no Numba form"],
        "codegen/loop_forms.py": [
            "empty_list: a list of containers has no Numba form",
            "copied_value: a list that is a constant has no Numba form",
            "copied_value: a number in one pass of a loop and an array in another has no Numba form"],
        "codegen/lowered.py": [
            "Lowering.fact", "Lowering.lazy: {} is not a value that Numba compiles",
            "Lowering.lazy: {} gives several results here",
            "Lowering.lazy_var: {} is {}, which Numba does not support", "Lowering.lazy_var: {} is {}: no Numba form",
            "Lowering.constant: {} is not a value that Numba compiles",
            "Lowering.scalar: an array where a number is needed",
            "Lowering.static: {} must be known when compiling"],
        "codegen/lowering.py": [
            "_let: a container that is kept has no Numba form",
            "stored: a list of containers has no Numba form"],
        "codegen/assignments.py": [
            "assign: a value that is no number and no array has no Numba form",
            "assign: {} has rank {}, its Numba form has {}"],
    },
    "what Numba itself refuses; what is known of that is refused before": {
        "codegen/jit_cpu.py": ["_explained: Numba does not compile this: {}"],
    },
    "pandas, xarray and pint are optional: tests/library/test_containers.py shows it": {
        "gradscribe/containers_known.py": [
            "_numbers: a DataArray{} of {} is given: it is not an array of numbers",
            "_column: a Series of {} is given: it is not one NumPy array of numbers",
            "_columns: a DataFrame is given that is not one NumPy array of numbers: see {} or a DataFrame is given "
            "with columns of numbers and of bool",
            "_pint.in_root: a quantity in {} is given, whose zero is not that of the quantity"],
    },
    "it enters the error of an example, which map_over raises as MapError: tests/library/test_map_over.py shows it": {
        "gradscribe/map_over.py": ["Run.again", "Run.failed"],
    },
    "a safeguard against wrong results: no program is known that comes here": {
        "codegen/join_forms.py": ["items_of: the parts to join must be known when compiling"],
        "ast_transform/reader/carries.py": [
            "changed_containers: a list changes its structure from pass to pass",
            "changed_containers: a container that another name holds changes from pass to pass",
            "same_precision: {} changes from pass to pass: {} before, {} after"],
        "ast_transform/passes/types.py": [
            "static_key: a container is indexed by a value that is not known when transforming"],
        "ast_transform/passes/probing.py": [
            "_Probe.__init__: too many lengths at once",
            "_Probe.sample: a length would be negative",
            "_ask: the result's shape is not certain: {}",
            "_explain: the kind of the result depends on lengths",
            "probe: the result's shape is not certain"],
        "ast_transform/reader/memory.py": [
            "refuse_write: writing into a list whose length is known only when running",
            "can_write: {} is written as it was before the loop, which changes it",
            "can_write: writing into an array inside a container that is an argument is not differentiated yet"],
        "ast_transform/passes/anf.py": ["Builder.item: the index is out of range"],
        "ast_transform/reader/loops.py": ["read_with_flag: a loop over this cannot be left early"],
        "ast_transform/reader/loop_fixpoint.py": [
            "ends_of_names: {} is another list from pass to pass",
            "read_until_stable: the kinds of what the loop carries do not come to rest"],
        "ast_transform/passes/reparametrise.py": [
            "Rewritten.length: {}: the shape of the result is not known when transforming"],
        "ast_transform/passes/vjp/control.py": [
            "zeros_again: {} may have no value before the loop, and its shape changes from pass to pass"],
        "ast_transform/passes/vmap/examples.py": ["example: a list differs between the examples"],
        "gradscribe/in_kind.py": [
            "paired: a {} does not have the structure of a {}, and would lose labels and units"],
        "gradscribe/files.py": ["written: {} has not ended after {} s on an example of its kinds"],
        "codegen/standing.py": [
            "Module.text: two things are named {} in one file",
            "Module.add: two things are named {} in one file",
            "Module.text: {} is read, but it is not defined"],
        "gradscribe/transformed.py": [
            "Transformed._specialise: too many values must be known when transforming"],
    },
}
EXEMPT = {f"{file} {each}" for files in UNSEEN.values() for file, them in files.items() for each in them}


def text_of(node):
    """The text of a message, with {} for what is filled in; "" where there is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return "".join(text_of(part) or "{}" for part in (node.left, node.right))
    if isinstance(node, ast.IfExp):
        return f"{text_of(node.body)} or {text_of(node.orelse)}"
    return ""


def named(node):
    return getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""


def refusals(tree, rules):
    """(function, node, message) of each place that refuses; the node is None where what is made is raised elsewhere."""
    def visit(node, function, inside):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}" if function else node.name
        raised = node.exc if isinstance(node, ast.Raise) else None
        call, place = (raised, node) if named(raised) in (CLASSES | RAISED if rules else CLASSES) else (None, None)
        if call is None and named(node) in HELPERS:
            call, place = node, node
        elif call is None and (named(node) in CLASSES and not inside or named(node) in CARRIED):
            call = node
        if call is not None:
            text = next(filter(None, map(text_of, call.args)), "")
            if place is not None or text.strip("{}: "):
                yield function, place, text
        for child in ast.iter_child_nodes(node):
            yield from visit(child, function, child is raised)

    return visit(tree, "", False)


@functools.cache
def sites():
    """name of the place -> (file, lines and columns) where an error's frames show it, or the pattern of its message."""
    found = {}
    for path in sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        for function, node, text in refusals(ast.parse(path.read_text(encoding="utf-8")), "/rules/" in file):
            name = f"{file} {function}: {text}".rstrip(": ")
            k = 1 + sum(other == name or other.startswith(f"{name} #") for other in found)
            found[name if k == 1 else f"{name} #{k}"] = re.compile(re.escape(text).replace(r"\{\}", ".*")) \
                if node is None else (str(path), (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset))
    return found


def passed(error):
    """Where the frames of an error stood, and those of what it was made of."""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        yield code.co_filename, list(code.co_positions())[trace.tb_lasti // 2]
        trace = trace.tb_next
    if error.__context__ is not None:
        yield from passed(error.__context__)


@functools.cache
def hits():
    """What `found` says, in a thread of its own: how deep a recursion gets does not depend on the caller's stack."""
    with mock.patch.dict(os.environ, GRADSCRIBE_TRACEBACK="full"), ThreadPoolExecutor(1) as pool:
        return pool.submit(found).result()


def found():
    """(the places where the cases are refused, the first lines of their messages)"""
    places = {where: name for name, where in sites().items() if isinstance(where, tuple)}
    patterns = {name: where for name, where in sites().items() if not isinstance(where, tuple)}
    seen, reasons = set(), set()
    for _, case in cases.CASES.values():
        try:
            case()
        except TransformError as error:
            reasons.add(error.reason)
            seen.update(places[where] for where in passed(error) if where in places)
            seen.update(name for name, pattern in patterns.items() if pattern.search(error.reason))
    return seen, reasons


def test_every_refusal_has_a_case():
    seen, _ = hits()
    missing = sorted(set(sites()) - seen - EXEMPT)
    print(*missing, sep="\n")
    assert not missing, f"{len(missing)} refusals have no case:\n" + "\n".join(missing)


def test_every_node_that_is_refused_has_a_case():
    _, reasons = hits()
    newer = {REFUSED[name][0] for _, name, _ in NEWER}
    assert {what for what, _ in REFUSED.values()} - newer <= reasons


def test_syntax_of_newer_versions_of_python():
    for since, name, line in NEWER:
        if sys.version_info >= since:
            function = from_text(f"def f(x):\n    {line}\n    return x\n", {}, f"<{name}>")
            with pytest.raises(LanguageError) as caught:
                gs.grad(function)(2.0)
            assert caught.value.reason == REFUSED[name][0] and f"    {line}\n" in str(caught.value)


def test_exemptions_are_needed():
    assert not EXEMPT - set(sites()), "there is no such place"
    assert not EXEMPT & hits()[0], "there is a case"


def of_real_arrays():
    """The functions whose rules refuse complex arrays."""
    texts = [p.read_text(encoding="utf-8") for p in sorted((ROOT / "ast_transform" / "rules").glob("*.py"))]
    return sorted({node.args[1].value for text in texts for node in ast.walk(ast.parse(text))
                   if named(node) == "refuse_complex"})


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("label", of_real_arrays())
def test_complex_arrays_are_refused(label, mode):
    function = functools.reduce(getattr, label.split(".")[1:], np)
    words = {"full_matrices": False} if label == "np.linalg.svd" else {}

    def f(z):
        y = function(z, **words)
        return np.real(np.sum(y[0] * y[1]) if isinstance(y, tuple) else np.sum(y))
    z = np.array([[2.0, 0.5j], [-0.5j, 3.0]])
    with pytest.raises(RuleError, match=f"^{label} of complex arrays has no derivative rule\n(.*\n)*  Take np.real"):
        gs.grad(f).source_for(z) if mode == "reverse" else gs.jvp(f, (z,), (z,))
