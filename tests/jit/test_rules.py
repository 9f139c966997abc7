"""Every function with a record, compiled: its value and its adjoint are those of plain Python."""
import inspect
import os

import numpy as np
import pytest
import scipy.linalg
import scipy.special  # noqa: F401
from fuzz_lowered import plain
from jit import support
from rule_calls import call_of, from_text, leaves

import gradscribe as gs
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.activity import is_own
from gradscribe.ast_transform.reader.named_axes import COLLECTIVES
from gradscribe.codegen import jit_cpu, lowering
from gradscribe.codegen.entry_forms import form_of
from gradscribe.codegen.lowered import LAZY

RULES.complete()
WITHOUT_A_FORM = {"argpartition", "digitize", "matrix_rank", "ravel_multi_index", "roots",
                  "sliding_window_view"}
SAMPLED = [r for r in dict.fromkeys(RULES.values()) if r.samples is not None and r.label not in WITHOUT_A_FORM]
NEVER_STATEMENTS = {"shape", "ndim", "range"}           # taken apart before
ALWAYS_COMPLEX = {"eig", "eigvals", "sqrtm"}     # compiled, of real matrices too; NumPy gives real results where it can


def not_compiled(rule, k):
    """Numba's eigh reads the lower triangle only; SciPy's signs are its own; hermitian=True has no form."""
    args, kwargs = rule.samples(np.random.default_rng(3))[k]
    return bool(kwargs.get("hermitian")) or rule.function is np.linalg.eigh and "U" in args[1:] or \
        rule.function is scipy.linalg.eigh and not kwargs.get("eigvals_only")


def cases(rules, every):
    found = []
    for rule in rules:
        count = len(rule.samples(np.random.default_rng(3)))
        chosen = range(count) if every else [len(rule.label) % count]
        found += [pytest.param(rule, k, id=f"{rule.label}-{k}") for k in chosen
                  if rule.label not in WITHOUT_A_FORM and not not_compiled(rule, k)]
    return found


def call(rule, k):
    args, kwargs = rule.samples(np.random.default_rng(3))[k]
    return call_of(rule.function, args, kwargs)


def compare_value(rule, k):
    function, given = call(rule, k)
    try:
        made = support.compiled(function, *given)
    except gs.TransformError as error:
        if "Numba" in str(error):
            raise
        pytest.skip(str(error).splitlines()[0])         # refused by the reader, eager too
    with np.errstate(all="ignore"):
        wanted = function(*given)
    if rule.label in ALWAYS_COMPLEX:
        wanted = [v.astype(np.result_type(v, np.complex64)) for v in leaves(wanted)]
    if rule.label == "eig":                             # vectors as they are: each has a sign of its own
        w, v = support.run(made, *given)
        np.testing.assert_allclose(given[0] @ v, v * w[..., None, :], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, rtol=1e-9)
        assert not support.same([w], wanted[:1])
        return
    found = support.same(support.run(made, *given), wanted)
    assert not found, f"{found}\n{made.source}"


def compare_adjoint(rule, k):
    function, given = call(rule, k)
    rng = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        y = function(*given) if given else None
    if y is None or hasattr(y, "_fields"):
        pytest.skip("nothing to differentiate")
    dy = [np.asarray(rng.normal(size=np.shape(v)), dtype=np.asarray(v).dtype)[()] for v in leaves(y)]
    dy = type(y)(dy) if isinstance(y, (tuple, list)) else float(dy[0]) if type(y) is float else dy[0]
    transformed = gs.vjp_of(function)
    try:
        with np.errstate(all="ignore"):
            wanted = transformed(dy, *given)
    except gs.TransformError as error:
        pytest.skip(str(error).splitlines()[0])
    made = support.transformed(transformed, dy, *given)
    found = support.same(support.run(made, dy, *given), wanted)
    assert not found, f"{found}\n{made.source}"


def end_of(function, index):
    def end(*given):
        return function(*given)[index]
    return end


@pytest.mark.slow
@pytest.mark.parametrize("rule, k", cases([r for r in SAMPLED if r.function in LAZY and LAZY[
    r.function].__module__.endswith(("shape_forms", "join_forms"))], every=False))
def test_first_and_last_entries(rule, k):
    """An entry of what is never an array: the index is a number, and no loop's."""
    function, given = call(rule, k)
    y = function(*given)
    if not isinstance(y, np.ndarray) or not y.size or not y.ndim:
        pytest.skip("no array with entries")
    for index in ((0,) * y.ndim, (Ellipsis, -1)):
        made = gs.jit(end_of(function, index))
        found = support.same([made(*given)], [y[index]])
        assert not found, f"{found}\n{made.source}"


def narrow(value):
    kind = np.asarray(value).dtype.kind
    if isinstance(value, (list, tuple)):
        return type(value)(map(narrow, value))
    return np.asarray(value).astype(np.float32 if kind == "f" else np.complex64)[()] if kind in "fc" else value


@pytest.mark.slow
@pytest.mark.parametrize("rule, k", cases([r for r in SAMPLED if r.active], every=False))
def test_single_precision(rule, k):
    """float32 and complex64 come out as they do of plain Python."""
    function, given = call(rule, k)
    try:
        with np.errstate(all="ignore"):
            wanted = function(*map(narrow, given))
        made = support.compiled(function, *map(narrow, given))
    except (gs.TransformError, TypeError, ValueError) as error:
        pytest.skip(str(error).splitlines()[0])
    if rule.label in ALWAYS_COMPLEX:
        return
    got = support.run(made, *map(narrow, given))
    for a, b in zip(got, leaves(wanted), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype, made.source


FIRST_OF = {id(r) for r in SAMPLED[::12]}       # what `make check` compiles


@pytest.mark.parametrize("rule, k", [p if id(p.values[0]) in FIRST_OF else pytest.param(
    *p.values, id=p.id, marks=pytest.mark.slow) for p in cases(SAMPLED, every=False)])
def test_value(rule, k):
    """One sample of each record, by Numba."""
    compare_value(rule, k)


TOGETHER = 8                            # samples in one function
COMPILED = os.environ.get("GRADSCRIBE_COMPILE_SAMPLES") == "1"      # all of them by Numba: `make samples`


@pytest.fixture
def text_as_it_is(monkeypatch):
    """What is compiled, run as plain Python: a hundredth of the time, and an entry beyond the end is an error."""
    if not COMPILED:
        monkeypatch.setattr(jit_cpu, "compiled_text", plain)


def groups(rules):
    """All samples, several of a record together."""
    found = []
    for rule in rules:
        chosen = [c.values[1] for c in cases([rule], every=True)]
        size = 1 if rule.label in ALWAYS_COMPLEX else TOGETHER
        found += [pytest.param(rule, chosen[k:k + size], id=f"{rule.label}-{chosen[k]}")
                  for k in range(0, len(chosen), size)]
    return found


def compare_together(rule, samples):
    """The values of several calls, made by one function."""
    given, calls, space = [], [], {}
    for k in samples:
        space[f"f{k}"], own = call(rule, k)
        names = [f"a{len(given) + n}" for n in range(len(own))]
        given += own
        calls.append(f"f{k}({', '.join(names)})")
    text = f"def together({', '.join(f'a{n}' for n in range(len(given)))}):\n    return ({', '.join(calls)},)\n"
    function = from_text(text, "together", space)
    made = support.compiled(function, *given)
    with np.errstate(all="ignore"):
        wanted = function(*given)
    found = support.same(support.run(made, *given), wanted)
    assert not found, f"{found}\n{made.source}"


@pytest.mark.slow
@pytest.mark.parametrize("rule, samples", groups(SAMPLED))
def test_value_on_every_sample(rule, samples, text_as_it_is):
    if len(samples) > 1:
        try:
            return compare_together(rule, samples)
        except Exception:               # one that is refused, or an error: each by itself says which
            pass
    skipped = []
    for k in samples:
        try:
            compare_value(rule, k)
        except pytest.skip.Exception as reason:
            skipped.append(f"sample {k}: {reason}")
    if len(skipped) == len(samples):
        pytest.skip("; ".join(skipped))


@pytest.mark.slow
@pytest.mark.parametrize("rule, k", cases([r for r in SAMPLED if r.active or r.options.get("rewrite")], every=False))
def test_adjoint(rule, k):
    compare_adjoint(rule, k)


@pytest.mark.compiled
@pytest.mark.parametrize("rule, k", cases([r for r in SAMPLED if r.kind == "elementwise"][::4], every=False))
def test_float32(rule, k):
    """The dtype is NumPy's."""
    function, given = call(rule, k)
    single = [a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype == np.float64 else a for a in given]
    with np.errstate(all="ignore"):
        wanted = function(*single)
    found = support.same(support.run(support.compiled(function, *single), *single), wanted)
    assert not found, found


def test_functions_without_a_form():
    """The table of what Numba compiles; what it lacks is known."""
    missing = set()
    for function, rule in RULES.items():
        if not is_own(function) and function not in COLLECTIVES and not (
            rule.options.get("rewrite") or function in LAZY or form_of(function) or function in lowering.STATEMENTS
        ):
            missing.add(getattr(function, "__name__", repr(function)))
    print(f"{len(RULES) - len(missing)} of {len(RULES)} functions have a Numba form; without: {sorted(missing)}")
    assert missing <= WITHOUT_A_FORM | NEVER_STATEMENTS


def test_forms_have_records():
    assert all(
        f in RULES
        or getattr(inspect.getmodule(f), "__name__", "").startswith("gradscribe")
        or f in (np.asarray, operator_getitem)
        for f in LAZY
    )


operator_getitem = next(f for f in LAZY if getattr(f, "__name__", "") == "getitem")
