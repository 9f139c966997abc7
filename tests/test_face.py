"""Transformed functions in use: from many threads, pickled, copied, changed in place, of all kinds of callables."""
import copy
import functools
import linecache
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import kinds

X = np.array([0.3, -0.5, 0.7])


# --- what other processes import from here ----------------------------------------------------------------------------

def loss(x, by=2.0):
    return np.sum(np.sin(x) * x) * by


def slope(x, by=2.0):
    return (np.cos(x) * x + np.sin(x)) * by


@gs.grad
def decorated(x):
    return np.sum(x ** 3)


@gs.jit
def compiled(x):
    return np.sum(x ** 3)


@gs.custom_vjp
def clipped(x):
    return x * 1.0


clipped.defvjp(lambda x: (x * 1.0, None), lambda res, dy: (np.clip(dy, -1, 1),))


class Scaled:
    """A callable object with a method."""

    def __init__(self, by):
        self.by = by

    def loss(self, x):
        return np.sum(x ** 2) * self.by

    def __call__(self, x):
        return self.loss(x)

    __hash__ = None


def refused(x):
    return np.sum(np.real_if_close(x))


def at_ones(fn):
    return fn(np.ones(3))


# --- threads ----------------------------------------------------------------------------------------------------------

def from_threads(calls):
    """The results of calls that begin at the same time."""
    gate, out = threading.Barrier(len(calls)), [None] * len(calls)

    def go(k):
        gate.wait()
        try:
            out[k] = calls[k]()
        except Exception as error:
            out[k] = error
    threads = [threading.Thread(target=go, args=(k,)) for k in range(len(calls))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return out


def test_first_calls_from_many_threads():
    """In a new process, where nothing has been read yet, not even the rules."""
    code = ("import sys; sys.path.insert(0, %r)\nimport numpy as np, gradscribe as gs, test_face as t\n"
            "g, j = gs.grad(t.loss), gs.jit(gs.grad(t.loss))\n"
            "for v in t.from_threads([lambda: g(t.X)] * 6 + [lambda: j(t.X)] * 3):\n"
            "    np.testing.assert_allclose(v, t.slope(t.X))\n") % os.path.dirname(__file__)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_kinds_of_arguments_from_many_threads():
    fn = gs.jit(gs.grad(loss))
    given = [np.float64(0.3), X, X[:2], X.astype(np.float32), np.ones((2, 3)), [0.5][0]]
    for x, g in zip(given * 2, from_threads([functools.partial(fn, x) for x in given * 2])):
        np.testing.assert_allclose(g, slope(x), rtol=1e-6)


def test_numbers_that_must_be_known_from_many_threads():
    fn, A = gs.grad(lambda x, n: np.sum(np.sum(x, axis=n) ** 2)), np.array([[0.5, 0.2], [0.1, 0.4]])
    axes = [0, 1, -1, -2] * 2
    for n, g in zip(axes, from_threads([functools.partial(fn, A, n) for n in axes])):
        np.testing.assert_allclose(g, np.broadcast_to(2 * np.sum(A, axis=n, keepdims=True), A.shape))


def test_a_process_that_was_forked_while_something_was_transformed():
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    from gradscribe import making
    code = ("import sys; sys.path.insert(0, %r)\nimport os, numpy as np, gradscribe as gs, test_face as t\n"
            "from gradscribe import making\nmaking._lock.acquire()\n"
            "pid = os.fork()\n"
            "if not pid:\n    os._exit(0 if np.allclose(gs.grad(t.loss)(t.X), t.slope(t.X)) else 1)\n"
            "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n") % os.path.dirname(__file__)
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)
    assert not making._lock.locked()


# --- functions that change --------------------------------------------------------------------------------------------

def inner(x):
    return x * x


def outer(x):
    return np.sum(inner(x))


def test_code_that_is_replaced():
    """As a session does that loads a changed module again: functions stay, their code is another's."""
    def f(x):
        return x * x

    def other(x):
        return x ** 3
    g, j, pull = gs.grad(f), gs.jit(f), gs.vjp(f, 3.0)[1]
    assert (g(3.0), j(3.0), pull(1.0)) == (6.0, 9.0, (6.0,))
    f.__code__ = other.__code__
    assert (g(3.0), j(3.0)) == (27.0, 27.0)
    assert pull(1.0) == (6.0,)          # of the call of gs.vjp, as jax.vjp has it
    assert gs.vjp(f, 3.0)[1](1.0) == (27.0,)


def test_code_of_a_called_function_that_is_replaced():
    was, fns = inner.__code__, [gs.grad(outer), gs.jit(gs.grad(outer)), gs.grad(gs.checkpoint(outer))]
    try:
        for fn in fns:
            np.testing.assert_allclose(fn(X), 2 * X)
        inner.__code__ = (lambda x: x ** 3).__code__
        for fn in fns:
            np.testing.assert_allclose(fn(X), 3 * X ** 2)
    finally:
        inner.__code__ = was
    for fn in fns:
        np.testing.assert_allclose(fn(X), 2 * X)


def test_defaults_that_are_replaced():
    def f(x, by=2.0, *, plus=1.0, factors=(1.0, [1.0])):
        return x * x * by * factors[1][0] + x * plus
    g, j = gs.grad(f), gs.jit(f)
    assert (g(3.0), j(3.0)) == (13.0, 21.0)
    f.__defaults__ = (10.0,)
    assert (g(3.0), j(3.0)) == (61.0, 93.0)
    f.__kwdefaults__["factors"][1][0] = 0.0
    assert (g(3.0), j(3.0)) == (1.0, 3.0)
    f.__kwdefaults__["plus"] = 5.0
    assert (g(3.0), j(3.0)) == (5.0, 15.0)


def test_a_method_that_is_replaced():
    class Model:
        def __call__(self, x):
            return x * x
    g = gs.grad(Model())
    assert g(3.0) == 6.0
    Model.__call__.__code__ = (lambda self, x: x ** 3).__code__
    assert g(3.0) == 27.0


def test_a_rule_that_is_set_again():
    @gs.custom_vjp
    def f(x):
        return x * 1.0
    f.defvjp(lambda x: (x * 1.0, None), lambda res, dy: (2.0 * dy,))
    g = gs.grad(f)
    assert g(3.0) == 2.0
    f.defvjp(lambda x: (x * 1.0, None), lambda res, dy: (5.0 * dy,))
    assert g(3.0) == 5.0


# --- pickles and copies -----------------------------------------------------------------------------------------------

PICKLED = {
    "grad": (lambda: gs.grad(loss), slope), "jit": (lambda: gs.jit(loss), loss),
    "jit of grad": (lambda: gs.jit(gs.grad(loss)), slope),
    "partial": (lambda: functools.partial(gs.grad(loss), by=3.0), lambda x: slope(x, 3.0)),
    "jit of a partial": (lambda: gs.jit(functools.partial(loss, by=3.0)), lambda x: loss(x, 3.0)),
    "of a method": (lambda: gs.jit(gs.grad(Scaled(3.0).loss)), lambda x: 6 * x),
    "of an object": (lambda: gs.grad(Scaled(3.0)), lambda x: 6 * x),
    "decorated": (lambda: decorated, lambda x: 3 * x ** 2), "compiled": (lambda: compiled, lambda x: np.sum(x ** 3)),
    "jit of decorated": (lambda: gs.jit(decorated), lambda x: 3 * x ** 2),
    "own rule": (lambda: clipped, lambda x: x), "pmap": (lambda: gs.pmap(np.sin), np.sin),
    "gradient of an own rule": (lambda: gs.jacrev(clipped), lambda x: np.eye(len(x))),
    "checkpoint": (lambda: gs.checkpoint(loss), loss),
    "pullback": (lambda: gs.vjp(clipped, X)[1], lambda x: (np.clip(x, -1, 1),)),
}


@pytest.mark.compiled
@pytest.mark.parametrize("name", PICKLED)
@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("again", [lambda fn: pickle.loads(pickle.dumps(fn)), copy.copy, copy.deepcopy],
                         ids=["pickle", "copy", "deepcopy"])
def test_pickles_and_copies(name, used, again):
    make, right = PICKLED[name]
    x = X[:1] if name == "pmap" else X
    fn = make()
    if used:
        fn(x)
    for made in (again(fn), fn):
        np.testing.assert_allclose(made(x), right(x))


def test_static_arguments_are_pickled():
    fn = pickle.loads(pickle.dumps(gs.jit(loss, static_argnames="by")))
    assert fn(X, 2.0) == pytest.approx(loss(X, 2.0)) and fn(X, 3.0) == pytest.approx(loss(X, 3.0))
    assert fn.given_static == (1, "by") or set(fn.given_static) == {1, "by"}


def test_in_a_pool_of_processes():
    fns = [gs.grad(loss), gs.jit(loss), decorated]
    before = [np.asarray(at_ones(fn)) for fn in fns]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for got, want in zip(pool.map(at_ones, fns), before):
            np.testing.assert_allclose(got, want)
        with pytest.raises(gs.TransformError, match="real_if_close") as caught:
            pool.apply(at_ones, (gs.grad(refused),))
    assert caught.value.origin.function == "refused"


# --- functions of all kinds -------------------------------------------------------------------------------------------

def test_callables_that_have_no_hash():
    model = Scaled(3.0)
    np.testing.assert_allclose(gs.jvp(model, (X,), (X,))[1], 6 * np.sum(X * X))
    np.testing.assert_allclose(gs.vjp(model.loss, X)[1](1.0)[0], 6 * X)
    np.testing.assert_allclose(gs.hvp(model, (X,), (X,)), 6 * X)
    assert "by differences" in str(gs.explain(model, X))
    assert "by differences" in str(gs.explain(functools.partial(loss, by=3.0), X))


def test_explanation_of_star_arguments():
    found = gs.explain(lambda x, *args: np.sum(x * args[0]) * args[1], X, np.ones(3), 2.0)
    assert [name for name, *_ in found.differences] == ["x", "args_0", "args_1"]
    np.testing.assert_allclose(found.gradient["args_0"], 2 * X)


def test_keys_of_all_kinds():
    key = object()
    assert gs.jit(lambda d: {k: v * v for k, v in d.items()})({key: 2.0, (1, "a"): 3.0}) == {key: 4.0, (1, "a"): 9.0}
    assert gs.grad(lambda d: d[None] * d[1, "a"])({None: 2.0, (1, "a"): 3.0}) == {None: 3.0, (1, "a"): 2.0}


def test_a_function_without_a_source():
    space = {"np": np}
    exec("def f(x):\n    return np.sum(x * x)\n", space)
    for make in (gs.grad, gs.jit, gs.vmap):
        with pytest.raises(gs.TransformError, match="not available"):
            make(space["f"])(X)


# --- the cache --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("home", ["unknown", "not writable"])
def test_no_home(home, tmp_path):
    """Compiled code that cannot be kept is compiled."""
    lines = ["import pathlib, sys", f"sys.path.insert(0, {os.path.dirname(__file__)!r})",
             "import numpy as np, gradscribe as gs, test_face as t", "from gradscribe.codegen import cache"]
    if home == "unknown":
        lines[1:1] = ["def unknown(*_): raise RuntimeError('no home')", "pathlib.Path.home = classmethod(unknown)"]
    (tmp_path / "file").write_text("")         # nothing can be made below it
    lines += ["assert cache.folder() is None", "print(gs.jit(t.inner)(3.0))"]
    env = {k: v for k, v in os.environ.items() if k not in ("GRADSCRIBE_CACHE", "XDG_CACHE_HOME")}
    out = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=120,
                         env={**env, "HOME": str(tmp_path / "file")}, check=True)
    assert float(out.stdout) == 9.0


# --- what is long and deep --------------------------------------------------------------------------------------------

def defined(text):
    """The function f of a text that has a place."""
    file = f"<face {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"np": np}
    exec(compile(text, file, "exec"), space)
    return space["f"]


def test_a_long_sum():
    f = defined("def f(x):\n    return " + " + ".join(["x"] * 1200) + "\n")
    limit = sys.getrecursionlimit()
    assert gs.grad(f)(1.5) == 1200.0
    assert gs.jvp(f, (1.5,), (1.0,)) == (1800.0, 1200.0)
    np.testing.assert_array_equal(gs.vmap(f)(np.array([1.0, 2.0])), [1200.0, 2400.0])
    assert sys.getrecursionlimit() == limit


def test_a_long_product():
    f = defined("def f(x):\n    return " + " * ".join(["x"] * 150) + "\n")
    assert gs.grad(f)(1.01) == pytest.approx(150 * 1.01 ** 149)
    assert gs.jit(f)(1.01) == pytest.approx(1.01 ** 150)


def test_calls_inside_one_another():
    f = defined("def f(x):\n    return " + "np.sin(" * 90 + "x" + ")" * 90 + "\n")
    y, want = 0.7, 1.0
    for _ in range(90):
        want, y = want * np.cos(y), np.sin(y)
    assert gs.grad(f)(0.7) == pytest.approx(want)
    assert gs.jit(f)(0.7) == pytest.approx(y)


def test_many_arguments():
    given = [float(v) for v in range(300)]
    assert gs.jit(lambda *a: sum(a))(*given) == sum(given)
    got = gs.grad(lambda *a: sum(v * v for v in a), argnums=tuple(range(300)))(*given)
    np.testing.assert_array_equal(got, 2 * np.array(given))


def test_lines_of_emitted_code_are_not_very_deep():
    text = gs.grad(lambda *a: sum(a) ** 2).source_for(*[1.0] * 200)
    assert max(line.count(" + ") for line in text.splitlines()) <= 40


# --- dtypes -----------------------------------------------------------------------------------------------------------

SWAPPED = X.astype(X.dtype.newbyteorder())


@pytest.mark.parametrize("make", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_another_order_of_bytes(make):
    g = make(gs.grad(lambda x: np.sum(x ** 3)))(SWAPPED)
    np.testing.assert_allclose(g, 3 * X ** 2)
    assert g.dtype == np.float64
    np.testing.assert_allclose(make(gs.grad(lambda x: np.sum(x * SWAPPED)))(X), X)
    tangent = make(lambda x, v: gs.jvp(lambda x: x * x, (x,), (v,))[1])
    np.testing.assert_allclose(tangent(X, SWAPPED), 2 * X * X)
    picked = make(gs.vmap(lambda x, i: x[i], (None, 0)))(SWAPPED, np.array([2, 0], ">i4"))
    np.testing.assert_array_equal(picked, X[[2, 0]])


def test_another_order_of_bytes_that_is_written_into():
    def write(x):
        x[0] = 5.0
        return np.sum(x)
    x = SWAPPED.copy()
    assert gs.jit(write)(x) == pytest.approx(5.2)
    assert x[0] == 5.0


@pytest.mark.parametrize("how", ["read-only", "unaligned", "strided", "in a file"])
def test_arrays_that_lie_otherwise(how, tmp_path):
    x = X.copy()
    if how == "read-only":
        x.flags.writeable = False
    elif how == "unaligned":
        x = np.ndarray((3,), float, bytearray(25), 1)
        x[:] = X
    elif how == "strided":
        x = np.repeat(X, 2)[::2]
    else:
        x = np.memmap(tmp_path / "x", float, "w+", shape=(3,))
        x[:] = X
    for fn in (gs.grad(loss), gs.jit(gs.grad(loss))):
        np.testing.assert_allclose(fn(x), slope(X))


# --- a rule that looks along a named axis -----------------------------------------------------------------------------

@gs.custom_jvp
def placed(x):
    return x * (1.0 + gs.lax.axis_index("i"))


placed.defjvp(lambda p, t: (placed(p[0]), 10 * t[0] * (1.0 + gs.lax.axis_index("i"))))


@gs.custom_vjp
def centred(x):
    return x - gs.lax.pmean(x, "i")


centred.defvjp(lambda x: (centred(x), None), lambda res, dy: (10 * dy * (1.0 + gs.lax.axis_index("i")),))


@pytest.mark.parametrize("make", [lambda f: f, gs.jit], ids=["plain", "compiled"])
def test_rules_that_look_along_an_axis(make):
    steps = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(make(gs.vmap(placed, axis_name="i"))(X), X * steps)
    np.testing.assert_allclose(make(gs.vmap(gs.grad(placed), axis_name="i"))(X), 10 * steps)
    np.testing.assert_allclose(make(gs.vmap(centred, axis_name="i"))(X), X - np.mean(X))
    np.testing.assert_allclose(make(gs.vmap(gs.grad(centred), axis_name="i"))(X), 10 * steps)
    both = make(gs.vmap(gs.vmap(placed, axis_name="j"), axis_name="i"))(np.stack([X, X]))
    np.testing.assert_allclose(both, [X, 2 * X])


# --- files ------------------------------------------------------------------------------------------------------------

def run_file(fn, folder, *args):
    space = {}
    path = gs.dump(fn, Path(folder) / "made.py", *args)
    exec(compile(path.read_text(), str(path), "exec"), space)
    return space[fn.__name__](*args)


def test_a_file_holds_what_its_helpers_call(tmp_path):
    fn, S = gs.grad(lambda S: np.log(np.linalg.det(S)) + np.linalg.det(S)), np.array([[2.0, 1.0], [1.0, 2.0]])
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    path = gs.dump(fn, tmp_path / "made.py", S)
    space = {}
    exec(path.read_text(), space)
    np.testing.assert_allclose(space["grad_lambda"](S), np.linalg.inv(S).T * (1 + np.linalg.det(S)))
    det = gs.grad(lambda S: np.linalg.det(S) * 1.0)
    np.testing.assert_allclose(run_file(det, tmp_path, singular), [[4.0, -2.0], [-2.0, 1.0]], atol=1e-12)


def test_every_helper_of_the_runtime_stands_alone():
    import inspect

    from gradscribe.codegen.standing import Module, unbound
    from gradscribe.runtime import broadcasting, derivatives, indexing, matrices, parameters
    for module in (broadcasting, derivatives, indexing, matrices, parameters):
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                made = Module()
                made.add(name, function)
                assert not unbound(made.text('"""A helper."""', ""))


LIMITS = Scaled
TABLE = np.array([np.nan, np.inf, -np.inf, 9.0])
WAVES = np.array([complex(np.inf, -1.0), 2j])


def test_a_file_has_numbers_that_are_not_finite(tmp_path):
    f = gs.grad(lambda x: np.sum(np.where(x < TABLE, x * x, x)) + np.sum(np.abs(x * WAVES)) * 0)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(run_file(f, tmp_path, 2.0), f(2.0))
    from gradscribe.codegen.standing import Module
    for value in (TABLE, WAVES, np.zeros((0, 3)), np.zeros((2, 0), np.float32), SWAPPED, np.array(2.0), float("-inf"),
                  np.float32(0.1), np.dtype(">f4"), slice(1, None), {"a": (1.0, [2])}, {1, 2}, frozenset("a"), 2j,
                  range(3), np.array(["a", "b"]), np.float64("nan"), functools.partial(max, 1)):
        made, space = Module(), {}
        made.add("value", value)
        exec(made.text('"""A value."""', ""), space)
        if isinstance(value, functools.partial):
            assert space["value"](0) == 1
            continue
        np.testing.assert_array_equal(space["value"], value)
        assert type(space["value"]) is type(value) and getattr(space["value"], "shape", 0) == getattr(value, "shape", 0)
        assert getattr(space["value"], "dtype", 0) == getattr(value, "dtype", 0)


# --- functions with a record ------------------------------------------------------------------------------------------

BY = [2.0]


def recorded(x):
    return x * x * BY[0]


@gs.rule.elementwise(recorded)
class recorded_rule:
    def partial_x(x):
        return 4 * x


def test_what_a_function_with_a_record_reads():
    """Compiled from its own source, it is compiled again when what it reads has changed."""
    fn = gs.jit(lambda x: np.sum(recorded(x)))
    assert fn(np.ones(3)) == 6.0
    BY[0] = 5.0
    assert fn(np.ones(3)) == 15.0
    BY[0] = 2.0


def test_a_decorated_method_is_a_method():
    class Scaled:
        def __init__(self, by):
            self.by = by

        @gs.function
        def apply(self, x):
            return self.by * x ** 2

    scaled = Scaled(3.0)
    assert scaled.apply(2.0) == 12.0
    assert gs.grad(lambda x: scaled.apply(x))(2.0) == 12.0


def test_shapes_of_what_has_a_shape_and_a_dtype():
    class Described:
        def __init__(self, shape, dtype):
            self.shape, self.dtype = shape, dtype

    found = gs.eval_shape(lambda p, x: p["A"] @ x + p["b"], {"A": Described((3, 4), np.float32), "b": np.float32(1.0)},
                          Described((4, 5), "float32"))
    assert found == gs.ShapeDtypeStruct((3, 5), np.float32)


def test_kinds_of_arguments_that_end_too_early():
    with pytest.raises(gs.KindError, match="not kinds of arguments"):
        kinds.example("1) + (2")
