"""Arrays of 16 bits on a device: stored so, computed in single precision."""
import ast
import dataclasses
import types

import ml_dtypes
import numpy as np
import pytest
from device.batches import BATCHES, best_kept, grown, weighted
from device.programs import PROGRAMS, leaves, softmax, standardised

import gradscribe as gs
from gradscribe.codegen.loops.half_storage import store_in_half
from gradscribe.codegen.loops.trees import from_tree, to_tree
from gradscribe.runtime import device as backends
from gradscribe.runtime import on_device

HALF = np.float16
RNG = np.random.default_rng(11)
SHORT = np.dtype(ml_dtypes.bfloat16)
WITHIN = {HALF: 4e-3, SHORT: 3.2e-2}    # of the largest entry: four roundings of the format


def normal(*shape):
    return RNG.standard_normal(shape).astype(HALF)


def cast(value, dtype):
    if isinstance(value, np.ndarray) and value.dtype.kind in "fV":
        return value.astype(dtype)
    return value.copy() if isinstance(value, np.ndarray) else value


def squares(x, w):
    y = np.tanh(x * w)
    return np.sum(y * y)


def ties(x, w):
    y = x * w
    m = np.max(y)
    return m * np.sum(y)


def scatter(x, i):
    z = np.zeros(4, x.dtype)
    for k in range(len(i)):
        z[i[k]] += x[k]
    return z


def passes(x):
    s = x
    for _ in range(3):
        s = np.tanh(s) * x
    return s


def smoothed(x):
    z = np.zeros(len(x), x.dtype)
    z[0] = x[0]
    for k in range(1, len(x)):
        z[k] = z[k - 1] * x.dtype.type(0.5) + x[k]
    return z


def until(x):
    s = x[0]
    n = 0
    while s < 3.0 and n < 50:
        s = s + s * s * x.dtype.type(0.1) + x.dtype.type(0.1)
        n += 1
    return s * x


def joined(x, flag):
    y = np.exp(x) if flag > 0 else x
    y[1:3] = y[1:3] * y[0]
    return y, y.T, y[1:], y.copy()


weights, wide = weighted(20, 3), weighted(9, 9)
OWN = {
    "kinds": (lambda x: (x[0], x[1:], x.T, x.copy(), x.dtype.type(2), x.astype(np.float64), x > 0, np.argmax(x),
                         np.sort(x)), (normal(4, 4),)),
    "squares": (gs.value_and_grad(squares, (0, 1)), (normal(30), normal(30))),
    "ties": (gs.grad(ties), (normal(50), normal(50))),
    "scatter": (scatter, (normal(9), RNG.integers(0, 4, 9))),
    "gradient of scatter": (gs.grad(lambda x, i: np.sum(scatter(x, i) ** 2)), (normal(9), RNG.integers(0, 4, 9))),
    "passes": (gs.value_and_grad(lambda x: np.sum(passes(x))), (normal(9),)),
    "smoothed": (gs.grad(lambda x: np.sum(smoothed(x) ** 2)), (normal(9),)),
    "until": (gs.vmap(until), (np.abs(normal(5, 3)),)),
    "gradient of until": (gs.grad(lambda x: np.sum(gs.vmap(until)(x))), (np.abs(normal(5, 3)),)),
    "weights": (weights[0], [a.astype(HALF) for a in weights[1]]),
    "wide weights": (wide[0], [a.astype(HALF) for a in wide[1]]),
    "kept vectors": (gs.grad(lambda x: np.sum(gs.vmap(grown)(x))), (normal(20, 3),)),
    "kept names": (gs.grad(lambda x: np.sum(gs.vmap(best_kept)(x))), (np.abs(normal(20)),)),
    "joined": (joined, (normal(6, 2), np.array(1.0))),
    "not joined": (joined, (normal(6, 2), np.array(-1.0))),
    "stacks": (lambda x, y: np.einsum("bij,bjk->bik", x, y), (normal(2, 3, 4), normal(2, 4, 5))),
    "mixed": (lambda x, w: (x * w, x @ w), (normal(4, 4), normal(4, 4).astype(np.float32))),
    "no rows": (standardised, (normal(0, 4),)),
    "one entry": (gs.grad(lambda x: np.sum(standardised(x) ** 3)), (normal(1, 1),)),
}
OTHERS = {n: (f, tuple(cast(a, HALF) for a in args)) for n, (f, args) in PROGRAMS.items() if any(
    isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in args) and n not in (
    *BATCHES,                           # loops until differences are smaller than half precision has any
    "systems",                          # NumPy's linear algebra has no half precision
    "gradient of rotated")}             # zero, but for roundings


IN_DOUBLE = {"weights", "wide weights", "kept vectors", "kept names"}


def wrong(function, args, short=HALF):
    """Results of other kinds than NumPy's, or further than WITHIN from those of double precision; short: the format
    that arrays of half precision are given in, for which float16 says the kinds.
    """
    given = [cast(a, short if a.dtype == HALF else a.dtype) if isinstance(a, np.ndarray) else a for a in args]
    with np.errstate(all="ignore"):
        kinds = leaves(function(*[cast(a, a.dtype) if isinstance(a, np.ndarray) else a for a in args]))
    exact = leaves(function(*[cast(a, np.float64) for a in given]))
    found = leaves(gs.jit(function, target="cuda")(*given))
    out = []
    for a, kind, b in zip(found, kinds, exact, strict=True):
        a, kind, b = map(np.asarray, (a, kind, b))
        if a.dtype != (short if kind.dtype == HALF else kind.dtype) or a.shape != kind.shape:
            out.append((a.dtype, kind.dtype))
        elif a.dtype.kind in "fcV":
            if not np.allclose(a.astype(b.dtype), b, rtol=0, atol=WITHIN[short] * np.max(np.abs(b), initial=1e-3)):
                out.append((a, b))
        elif not np.array_equal(a, kind):
            out.append((a, kind))
    return out


@pytest.fixture(autouse=True)
def plain():
    with backends.using("plain"):
        yield


@pytest.mark.parametrize("short", WITHIN, ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", OWN)
def test_own(name, short):
    assert not wrong(*OWN[name], short)


@pytest.mark.slow
@pytest.mark.parametrize("short", WITHIN, ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", OTHERS)
def test_others(name, short):
    assert not wrong(*OTHERS[name], short)


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_beside_compiled_functions(name):
    with backends.using("twin"):
        assert not wrong(*OWN[name])


LOOPS = """def f(x, w, k):
    z = np.empty((4,), np.float16)
    total = np.zeros((4,), np.float16)
    lines = []
    for i in range(4):
        z_i = np.float16(x[i] * w)
        z[i] = z_i
        total[i] += z_i
        seen = x[i]
        x[i] += seen
    lines.append(z)
    taken = lines.pop()
    view = taken[1:]
    either = x if k > 0 else total
    number = len(lines)
    ordered = sort_lines(view, number)
    return (view.T, total, either, ordered, x[0], w)"""


def test_loops_and_their_types():
    """A last pass says of every array whether it is half: of what is added into not, of what may be either nothing."""
    function = from_tree(ast.parse(LOOPS).body[0], {
        "x": ("float32", 1), "w": ("float32", 0), "k": ("int64", 0), "taken": ("float32", 1)})
    half = np.dtype(HALF)
    store_in_half(function, {"x"}, [half] * 6)
    assert ast.unparse(to_tree(function)) == """def f(x, w, k):
    z = np.empty((4,), np.float16)
    total = np.zeros((4,), np.float32)
    lines = []
    for i in range(4):
        z_i = np.float32(np.float16(np.float32(x[i]) * w))
        z[i] = np.float16(z_i)
        total[i] += z_i
        seen = np.float32(x[i])
        x[i] = np.float16(np.float32(x[i]) + seen)
    lines.append(z)
    taken = lines.pop()
    view = taken[1:]
    either = x if k > 0 else total
    number = len(lines)
    ordered = sort_lines(view.astype(np.float32), number)
    return (view.T, total.astype(np.float16), either.astype(np.float16), ordered.astype(np.float16), \
np.float16(x[0]), np.float16(w))"""
    assert {n: t.dtype for n, t in function.types.items()} == {
        "x": "float16", "w": "float32", "k": "int64", "z": "float16", "total": "float32", "lines": None, "i": "int64",
        "z_i": "float32", "seen": "float32", "taken": "float16", "view": "float16", "either": None, "number": "int64",
        "ordered": None}


def test_what_is_stored_is_what_is_used():
    """A largest entry is found again among the rounded ones, though it was found before they were stored."""
    x, w = normal(400), normal(400)
    y = (x * w).astype(float)
    dx = gs.jit(gs.grad(ties), target="cuda")(x, w).astype(float)
    top = np.argmax(y)
    expected = np.full(400, np.max(y))
    expected[top] += np.sum(y)
    np.testing.assert_allclose(dx, expected * w.astype(float), rtol=4e-3)


def test_sums_are_single():
    """4096 and ones: half precision would stay at 4096, and a sum of squares would be infinite."""
    ones = np.ones(1000, HALF)
    assert gs.jit(lambda x: np.sum(x) + 4096, target="cuda")(ones) == HALF(5096)
    assert gs.jit(lambda x: np.sqrt(np.sum(x * x)), target="cuda")(ones * HALF(100)) == HALF(np.sqrt(1e7))


def test_adjoints_of_shared_weights_are_single_until_they_are_results():
    """Of 5000 examples each adds 1: half precision would stay at 2048."""
    def steps(w, x):
        s = 0.0
        while s < 0.5:
            s = s + np.sum(w * x)
        return s
    w, x = np.full(2, 0.5, HALF), np.ones((5000, 2), HALF)
    compiled = gs.jit(gs.grad(lambda w, x: np.sum(gs.vmap(steps, (None, 0))(w, x))), target="cuda")
    np.testing.assert_array_equal(compiled(w, x), np.full(2, 5000, HALF))


def test_arrays_that_are_kept_are_half():
    text = _text(*PROGRAMS["gradient of mlp_loss"])
    assert "np.float16)" in text and ".astype(np.float32)" not in text      # all factors of products are half
    text = _text(softmax, (normal(5, 40),))
    assert text.count("np.float16)") >= 1 and "np.float64" not in text


def _text(function, args, short=HALF):
    compiled = gs.jit(function, target="cuda")
    compiled(*[cast(a, short) for a in args])
    return compiled.lowered


@pytest.mark.golden
@pytest.mark.parametrize("name", ["squares", "gradient of mlp_loss"])
def test_text(name, golden):
    function, args = {**PROGRAMS, **OWN}[name]
    golden(f"half_{name.replace(' ', '_')}.py", _text(function, args))


@pytest.mark.golden
def test_text_of_bfloat16(golden):
    golden("short_squares.py", _text(*OWN["squares"], SHORT))


def stored(weights, x):
    """Products of bfloat16, sums and what comes of them single: how networks are trained."""
    h = np.tanh(x.astype(SHORT) @ weights["w"].astype(SHORT)).astype(np.float32)
    return np.mean((h @ weights["v"]) ** 2)


def test_bfloat16_by_its_name():
    """ml_dtypes.bfloat16 in a function of arrays in single precision."""
    weights = {"w": RNG.standard_normal((30, 20)).astype("f"), "v": RNG.standard_normal(20).astype("f")}
    x = RNG.standard_normal((17, 30)).astype("f")
    step = gs.jit(gs.value_and_grad(stored), target="cuda")

    def plain(weights, x):
        return np.mean((np.tanh(x @ weights["w"]) @ weights["v"]) ** 2)
    for _ in range(2):
        value, dw = step(weights, x)
        exact, expected = gs.value_and_grad(plain)(weights, x)
        assert value.dtype == dw["w"].dtype == dw["v"].dtype == np.float32
        np.testing.assert_allclose(value, exact, rtol=1e-2)
        for n in "wv":
            np.testing.assert_allclose(dw[n], expected[n], rtol=0, atol=2e-2 * np.max(np.abs(expected[n])))
    assert "host.dot" in step.lowered and "bfloat16)" in step.lowered and "float16(" not in step.lowered


def test_numbers_that_float16_has_not():
    """Numbers of the dtype are made when running, and reach as far as those of single precision."""
    x = np.array([0.0, 1.0, np.inf, -np.inf, np.nan], SHORT)
    least = gs.jit(lambda x: x[:2] + x.dtype.type(1e-30) * x.dtype.type(1e30), target="cuda")(x)
    np.testing.assert_array_equal(least.astype(float), [1, 2])
    found = gs.jit(lambda x: np.nan_to_num(x), target="cuda")(x)
    np.testing.assert_array_equal(found, np.array([0, 1, *2 * [ml_dtypes.finfo(SHORT).max], 0], SHORT) * np.array(
        [1, 1, 1, -1, 1], SHORT))
    half = np.array([np.inf, -np.inf, np.nan, 3], HALF)
    np.testing.assert_array_equal(gs.jit(lambda x: np.nan_to_num(x), target="cuda")(half), np.nan_to_num(half))
    assert gs.jit(lambda x: x * 1e4, target="cuda")(np.array([3e30], SHORT))[0] > 1e34


OUTSIDE = np.ones(3, SHORT)
REFUSED = {
    "np.float16": lambda x: x.astype(np.float16), "another word": lambda x: x + np.zeros(3, "half"),
    "a number": lambda x: x * HALF(2), "eps": lambda x: x + np.finfo(x.dtype).eps, "name": lambda x: x.dtype.name,
    "words for it": lambda x: x if x.dtype == "bfloat16" else -x, "from outside": lambda x: x + OUTSIDE,
    "neighbours": lambda x: np.nextafter(x, x)}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_tell_the_two_apart_is_refused(name):
    with pytest.raises(gs.RuleError, match="bfloat16|precision"):
        gs.jit(REFUSED[name], target="cuda")(np.ones(3, SHORT))


def test_the_two_do_not_meet():
    both = gs.jit(lambda x, y: x + y["z"], target="cuda")
    with pytest.raises(gs.KindError, match="float16 and of bfloat16"):
        both(np.ones(3, SHORT), {"z": np.ones(3, HALF)})
    for dtypes in ((SHORT, SHORT), (HALF, HALF), (SHORT, np.float32), (SHORT, SHORT)):
        x, y = (np.ones(3, d) for d in dtypes)
        assert both(x, {"z": y}).dtype == (dtypes[1])
    with pytest.raises(gs.KindError, match=r"x is bfloat16\[3\]"):
        gs.grad(lambda x: np.sum(x))(np.ones(3, SHORT))
    with pytest.raises(gs.TransformError, match="bfloat16"):
        gs.jit(lambda x: x * 2)(np.ones(3, SHORT))


@dataclasses.dataclass
class Layer:
    w: object
    b: object


def test_containers_of_bfloat16():
    layer, x = Layer(normal(4, 3).astype(SHORT), normal(3).astype(SHORT)), normal(6, 4).astype(SHORT)
    exact = {n: getattr(layer, n).astype(float) for n in "wb"}

    def of_record(layer, x):
        return np.sum(np.tanh(x @ layer.w + layer.b) ** 2)

    def of_others(p, x):
        return np.sum(np.tanh(x @ p["w"] + p["b"][0]) ** 2)
    expected = of_others({"w": exact["w"], "b": [exact["b"]]}, x.astype(float))
    for value in (gs.jit(of_record, target="cuda")(layer, x),
                  gs.jit(of_others, target="cuda")({"w": layer.w, "b": [layer.b]}, x)):
        assert value.dtype == SHORT
        np.testing.assert_allclose(float(value), expected, rtol=3e-2)
    step = gs.jit(gs.grad(of_others), target="cuda", graph=True)
    assert step({"w": layer.w, "b": [layer.b]}, x)["b"][0].dtype == SHORT


def test_numbers_and_empty_arrays_of_bfloat16():
    doubled = gs.jit(lambda x: x * 2, target="cuda")
    for x in (SHORT.type(1.5), np.array(1.5, SHORT), np.ones(0, SHORT), np.ones((0, 3), SHORT)):
        assert doubled(x).dtype == SHORT and np.shape(doubled(x)) == np.shape(x)
    assert gs.jit(lambda x, k: x * k, target="cuda", static_argnums=1)(np.ones(3, SHORT), 2).dtype == SHORT


def test_bits():
    """What kernels do by whole numbers is what ml_dtypes does, of every number of 16 bits and of what is between."""
    space = {"np": np, "libdevice": types.SimpleNamespace(
        int_as_float=lambda b: np.int32(b).view(np.float32), float_as_int=lambda x: int(x.view(np.int32)))}
    for name, text in on_device.OF_BFLOAT16.items():
        exec(f"def {name}(x):\n{text}", space)
    bits = np.arange(2 ** 16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        wide = bits.view(SHORT).astype(np.float32)
        for b, x in zip(bits.tolist(), wide):
            assert x != x or space["single"](np.uint32(b).astype(np.int32)) == x
        for extra in (0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
            between = ((bits.astype(np.uint32) << 16) | extra).view(np.float32)
            found = np.array([space["short"](x) for x in between[::7]], np.uint16).view(SHORT)
            np.testing.assert_array_equal(found.astype(np.float32), between[::7].astype(SHORT).astype(np.float32))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("short", WITHIN, ids=["float16", "bfloat16"])
def test_assembled(short):
    """No spills, and nothing in double precision but numbers of Python's in loops, and sines of large angles."""
    pytest.importorskip("numba_cuda")
    pytest.importorskip("cuda.bindings.nvjitlink")
    from gradscribe.runtime.assembled import reports
    with backends.using("ptx"):
        reports.clear()
        for name in OWN.keys() - {"kinds"}:
            before = len(reports)
            assert not wrong(*OWN[name], short)
            assert not [r for r in reports[before:] if r.spills or r.doubles and name not in IN_DOUBLE]
    assert len(reports) > 20
