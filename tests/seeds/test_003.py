# SPDX-License-Identifier: Apache-2.0
"""Rows of the document with the spectral radii and the norms of edges: its programs, its figures."""
import functools
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import nn, optim
from gradscribe.random.inverse import erfinv
from gradscribe.random.threefry import threefry2x32

WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, gs.jit], ids=["plain", "jit"])


def randn(rng_key, shape, dtype=float):
    rng_key, subkey = gs.random.split(rng_key)
    rands = gs.random.normal(subkey, shape, dtype=dtype)
    return rng_key, rands


jit_randn = gs.jit(randn, static_argnums=(1, 2))


@pytest.mark.parametrize("randn", [randn, pytest.param(jit_randn, marks=pytest.mark.slow)], ids=["plain", "jit"])
def test_s28_randn(randn):
    """The figures are jax.random's of today, in single precision; those of the document are below."""
    rng_key = gs.random.PRNGKey(0)
    figures = [[[-2.4424558, -2.0356805, 0.20554423], [-0.3535502, -0.76197404, -1.1785518]],
               [[-1.2574776, -0.40160441, -1.1213601], [0.87837774, -0.86175485, 0.34651348]],
               [[-1.3877682, 0.77485436, 1.5404933], [1.8419101, -0.86293536, -0.80701631]]]
    rng_key, rands = randn(rng_key, (2, 3), np.float32)
    np.testing.assert_allclose(rands, figures[0], rtol=3e-7)
    _, rands = randn(rng_key, (2, 3), np.float32)
    rng_key, again = randn(rng_key, (2, 3), np.float32)
    np.testing.assert_array_equal(rands, again)
    np.testing.assert_allclose(again, figures[1], rtol=3e-7)
    rng_key, rands = randn(rng_key, (2, 3), np.float32)
    np.testing.assert_allclose(rands, figures[2], rtol=3e-7)
    rands = randn(rng_key, (100, 100))[1]
    assert rands.dtype == np.float64 and abs(np.mean(rands)) < 0.03 and abs(np.std(rands) - 1) < 0.03


def words_of_2021(key, n):
    """The words of a key as JAX made them until 2025: counters in two halves, with a zero at the end if n is odd."""
    counters = np.zeros(n + n % 2, np.uint32)
    counters[:n] = np.arange(n)
    half = len(counters) // 2
    return np.concatenate(threefry2x32(key[0], key[1], counters[:half], counters[half:]))[:n]


def randn_of_2021(rng_key, shape):
    rng_key, subkey = words_of_2021(rng_key, 4).reshape(2, 2)
    fraction = (words_of_2021(subkey, int(np.prod(shape))) >> np.uint32(9)) * np.float32(2.0 ** -23)
    low = np.float32(2.0**-24 - 1.0)
    uniform = np.maximum(fraction * (np.float32(1) - low) + low, low)
    return rng_key, np.float32(np.sqrt(2)) * erfinv(uniform).reshape(shape)


def edges_of_2021():
    rng_key = gs.random.PRNGKey(0)
    rng_key, _ = randn_of_2021(rng_key, (2, 3))
    return randn_of_2021(rng_key, (15, 3))[1]


@pytest.mark.parametrize("wrap", [lambda f: f, pytest.param(gs.jit, marks=pytest.mark.slow)], ids=["plain", "jit"])
def test_s07_figures_of_the_document(wrap):
    """They are those of the generator of its day, which is the same block function with other counters."""
    first_key = gs.random.PRNGKey(0)
    draw = wrap(lambda key: randn_of_2021(key, (2, 3)))
    rng_key, rands = draw(first_key)
    np.testing.assert_allclose(rands, [[-1.458, -2.047, -1.424], [1.168, -0.976, -1.272]], atol=5e-4)
    np.testing.assert_allclose(draw(rng_key)[1], [[0.932, -0.004, -0.74], [-1.427, 1.06, 0.929]], atol=5e-4)
    rng_key, rands = draw(rng_key)
    np.testing.assert_allclose(rands, [[0.932, -0.004, -0.74], [-1.427, 1.06, 0.929]], atol=5e-4)
    np.testing.assert_allclose(draw(rng_key)[1], [[1.169, 0.312, -0.571], [0.137, 0.742, 0.038]], atol=5e-4)


@WRAPS
def test_s04_figures_of_the_document(wrap):
    def mutated():
        x = np.eye(2)
        x[0, 0] = 2
        x[:, -1] *= -3
        return x

    def updated():
        x = gs.at(np.eye(2))[0, 0].set(2)
        return gs.at(x)[:, -1].multiply(-3)
    assert wrap(mutated)().tolist() == wrap(updated)().tolist() == [[2.0, 0.0], [0.0, -3.0]]


class Counter:
    count = 0

    @functools.partial(gs.jit, static_argnums=(0,))
    def inc(self):
        self.count += 1


class Told:
    count = 0

    @gs.jit
    def inc(self):
        self.count += 1


class Made:
    def __init__(self):
        self.count = 0

    @gs.jit
    def inc(self):
        self.count += 1


def counted(a, x):
    a.count += 1
    return a.count * x


class Plain:
    count = 0


def print_hello():
    print("Hello!")


@pytest.mark.compiled
@WRAPS
def test_s24_prints_on_every_call(wrap, capsys):
    hello = wrap(print_hello)
    for _ in range(3):
        hello()
    wrap(print_hello)()
    assert capsys.readouterr().out == 4 * "Hello!\n"


@pytest.mark.parametrize("cls", [Counter, Told, Made])
def test_s24_state_is_kept(cls):
    for _ in range(2):
        a, counts = cls(), []
        for _ in range(3):
            counts.append(a.count)
            a.inc()
        assert counts == [0, 1, 2] and getattr(cls, "count", 0) == 0


@pytest.mark.parametrize("f", [gs.jit(counted), gs.grad(counted, argnums=1)], ids=["jit", "grad"])
def test_s24_state_that_a_class_begins(f):
    a = Plain()
    assert [f(a, 1.0) for _ in range(3)] == [1.0, 2.0, 3.0]


def test_s24_closures_that_count():
    """What jit does not do it says; as Python, the transformed function counts on."""
    def create_counter():
        count = 0

        def inc():
            nonlocal count
            count += 1
            return count
        return inc
    counter = create_counter()
    assert [counter(), counter(), counter()] == [1, 2, 3]
    with pytest.raises(gs.LanguageError):
        gs.jit(counter)()


def expo_fn(x, y):
    return x**4 + 2**y + 3


@WRAPS
def test_s25_arguments_and_orders(wrap):
    x, y = 1.0, 2.0
    grad_x_fn = gs.grad(expo_fn)
    grad2_x_fn = gs.grad(grad_x_fn)
    grad3_x_fn = gs.grad(grad2_x_fn)
    assert [wrap(g)(x, y) for g in (grad_x_fn, grad2_x_fn, grad3_x_fn)] == [4.0, 12.0, 24.0]
    assert wrap(gs.grad(expo_fn, argnums=1))(x, y) == pytest.approx(2.772588722239781, rel=1e-15)
    assert wrap(gs.grad(expo_fn, argnums=(0, 1)))(x, y) == pytest.approx((4.0, 2.772588722239781), rel=1e-15)
    assert "4 * x ** 3" in grad_x_fn.source and "12 * x ** 2" in grad2_x_fn.source and "24 * x" in grad3_x_fn.source


def poly_fn_and_aux(x, y):
    aux_output = ({"y": y}, 1337)
    return x**4 + (y - 1)**2 + 3, aux_output


@WRAPS
def test_s26_values_and_auxiliary_results(wrap):
    assert wrap(gs.value_and_grad(expo_fn))(1.0, 2.0) == (8.0, 4.0)
    grad, aux = wrap(gs.grad(poly_fn_and_aux, has_aux=True))(1.0, 2.0)
    assert (grad, aux) == (4.0, ({"y": 2.0}, 1337))
    (result, aux), grad = wrap(gs.value_and_grad(poly_fn_and_aux, has_aux=True))(1.0, 2.0)
    assert (result, aux, grad) == (5.0, ({"y": 2.0}, 1337), 4.0)
    for stopped in (gs.stop_gradient, gs.lax.stop_gradient):
        assert wrap(gs.grad(lambda x, s=stopped: s(x ** 2) * x))(3.0) == 9.0


def test_s29_what_is_compiled_again():
    """Lengths are not what makes a version; dtypes, ranks and static values are."""
    def scaled(x, n):
        return x * n
    fast = gs.jit(scaled, static_argnums=1)
    x = np.arange(40.0)
    for n in (40, 30, 20, 19):
        np.testing.assert_array_equal(fast(x[:n], 2), 2 * x[:n])
    assert len(fast._versions) == 1
    assert fast(x[:20].astype(np.float32), 2).dtype == np.float32
    assert fast(x.reshape(20, 2), 2).shape == (20, 2)
    np.testing.assert_array_equal(fast(x, 3), 3 * x)
    assert len(fast._versions) == 4
    np.testing.assert_array_equal(fast(x, 2), 2 * x)
    assert len(fast._versions) == 4 and "4 versions" in repr(fast)


def test_s29_static_value_that_may_change():
    """An unhashable static value is an error."""
    with pytest.raises(gs.KindError, match="a static argument is a list"):
        gs.jit(lambda x, factors: x * factors[0], static_argnums=1)(4.0, [2.0, 3.0])
    assert gs.jit(lambda x, factors: x * factors[0], static_argnums=1)(4.0, (2.0, 3.0)) == 8.0


PROGRAM = """
#include <stdio.h>
#include "radius.h"
int main(void) {
    double a[4] = {3.0, 1.0, 1.0, 3.0}, w[2] = {2.0, -1.0}, value, slope[2];
    if (radius(w, 2, a, 2, 2, &value, slope) != 0) return 1;
    printf("%.17g %.17g %.17g\\n", value, slope[0], slope[1]);
    return 0;
}
"""


def form(w, a):
    return np.sqrt(w @ a @ w)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_s30_called_from_c(tmp_path):
    """A value and its gradient, compiled, in a program that knows nothing of Python."""
    w, a = np.array([2.0, -1.0]), np.array([[3.0, 1.0], [1.0, 3.0]])
    made = gs.export(gs.value_and_grad(form), w, a, path=tmp_path / "radius", name="radius")
    (tmp_path / "main.c").write_text(PROGRAM)
    subprocess.run(["cc", "main.c", str(made.library), "-o", "program"], cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout
    np.testing.assert_allclose(list(map(float, out.split())), [np.sqrt(11), 5 / np.sqrt(11), -1 / np.sqrt(11)],
                               rtol=1e-14)


def sum_up(limit):
    total = 0
    for i in range(limit):
        total += i
    return total


def test_s31_sum_in_closed_form():
    """A loop of three thousand million passes would be noticed."""
    fast = gs.jit(sum_up)
    assert fast(50000) == sum_up(50000) == 1249975000
    assert fast(3_000_000_000) == 3_000_000_000 * 2_999_999_999 // 2
    assert fast(0) == 0 and fast(1) == 0
    assert gs.jit(lambda limit: np.sum(np.arange(limit)))(50000) == 1249975000


def test_s32_a_function_of_torch():
    torch = pytest.importorskip("torch")
    rho = gs.to_torch(spectral_radius)
    a = torch.tensor([[1.0, -1.0], [1.0, 1.0]], dtype=torch.float64, requires_grad=True)
    value = rho(a)
    value.backward()
    assert value.item() == pytest.approx(2 ** 0.5, rel=1e-15)
    np.testing.assert_allclose(a.grad.numpy(), [[0.354, -0.354], [0.354, 0.354]], atol=5e-4)


def test_s32_complex_gradients_in_the_convention_of_torch():
    torch = pytest.importorskip("torch")
    z = torch.tensor([[1 + 1j, -1], [1, 1]], dtype=torch.complex128, requires_grad=True)
    gs.to_torch(spectral_radius)(z).backward()
    expected = [[0.38 + 0.616j, -0.38 + 0.235j], [0.38 - 0.235j, 0.145 + 0.235j]]
    np.testing.assert_allclose(z.grad.numpy(), expected, atol=1e-3)


def spectral_radius(a):
    return np.max(np.abs(np.linalg.eigvals(a)))


def edge_norm(x, i, j):
    return np.sqrt(np.sum((x[i] - x[j]) ** 2))


REAL = np.array([[1.0, -1.0], [1.0, 1.0]])
COMPLEX = np.array([[1 + 1j, -1], [1, 1]])


@WRAPS
def test_s27_spectral_radius(wrap):
    assert wrap(spectral_radius)(REAL) == pytest.approx(1.4142135623730951, rel=1e-15)
    np.testing.assert_allclose(wrap(gs.grad(spectral_radius))(REAL), [[0.354, -0.354], [0.354, 0.354]], atol=5e-4)
    assert wrap(spectral_radius)(COMPLEX) == pytest.approx(1.9021130800247192, rel=1e-7)
    expected = [[0.38 - 0.616j, -0.38 - 0.235j], [0.38 + 0.235j, 0.145 - 0.235j]]
    np.testing.assert_allclose(wrap(gs.grad(spectral_radius))(COMPLEX), expected, atol=1e-3)
    assert gs.grad(spectral_radius)(REAL).dtype == np.float64


def test_s33_norms_of_edges():
    x = np.random.default_rng(0).standard_normal((6, 3))
    i, j = np.triu_indices(6, 1)
    looped = np.array([edge_norm(x, a, b) for a, b in zip(i, j)])
    assert looped.shape == (15,)
    batched = gs.vmap(edge_norm, (None, 0, 0))
    jitted = gs.jit(edge_norm)
    for norms in (batched(x, i, j), gs.jit(batched)(x, i, j), np.array([jitted(x, a, b) for a, b in zip(i, j)]),
                  np.linalg.norm(x[i] - x[j], axis=1)):
        np.testing.assert_allclose(norms, looped, rtol=1e-14)
    assert "for" not in batched.source


def test_s33_spectral_radii():
    many = np.random.default_rng(1).standard_normal((128, 3, 3))
    looped = np.array([spectral_radius(a) for a in many])
    batched = gs.vmap(spectral_radius)
    for radii in (batched(many), gs.jit(batched)(many), np.max(np.abs(np.linalg.eigvals(many)), axis=1)):
        np.testing.assert_allclose(radii, looped, rtol=1e-12)
    assert "np.max(np.absolute(np.linalg.eigvals(a)), axis=1)" in batched.source
    np.testing.assert_allclose(gs.vmap(gs.grad(spectral_radius))(many), [gs.grad(spectral_radius)(a) for a in many],
                               rtol=1e-9, atol=1e-12)


def norms_looped(edges):
    norm_sum = 0
    for edge in edges:
        norm_sum += np.linalg.norm(edge)
    return norm_sum


def norms_generated(edges):
    return sum(np.linalg.norm(edge) for edge in edges)


def norms_listed(edges):
    return np.sum(np.array([np.linalg.norm(edge) for edge in edges]))


def norms_batched(edges):
    norms = np.linalg.norm(edges, axis=-1)
    return np.sum(norms)


def norms_mapped(edges):
    return np.sum(gs.vmap(np.linalg.norm)(edges))


@WRAPS
@pytest.mark.parametrize("f", [norms_looped, norms_generated, norms_listed, norms_batched, norms_mapped])
def test_s33_five_ways(f, wrap):
    """The figure of the document, of its own edges; and the gradient, which is the edges' directions."""
    edges = edges_of_2021()
    assert wrap(f)(edges) == pytest.approx(27.265522, rel=1e-6)
    edges = edges.astype(np.float64)
    directions = edges / np.linalg.norm(edges, axis=1, keepdims=True)
    np.testing.assert_allclose(wrap(gs.grad(f))(edges), directions, rtol=1e-12)


def looped_spectral_radius(batch):
    return list(map(spectral_radius, batch))


@pytest.mark.parametrize("f", [
    looped_spectral_radius,
    lambda batch: np.array(looped_spectral_radius(batch))], ids=["list", "array"])
def test_s33_looped_and_compiled(f):
    batch = np.random.default_rng(1).standard_normal((128, 3, 3))
    assert np.ndim(spectral_radius(batch)) == 0
    np.testing.assert_allclose(gs.jit(f)(batch), looped_spectral_radius(batch), rtol=1e-12)


def flatten():
    def init_fun(rng_key, input_shape):
        flattened_size = int(np.prod(np.array(list(input_shape))))
        return (flattened_size,), ()

    def apply_fun(params, inputs, **kwargs):
        return inputs.ravel()
    return init_fun, apply_fun


batched_spectral_radius = gs.vmap(spectral_radius)


def trained(steps, wrap):
    """The document's program: a network that learns spectral radii; the losses, the model and its parameters."""
    rng_key, subkey = gs.random.split(gs.random.PRNGKey(0))
    model_init, model = nn.serial(flatten(), nn.Dense(64), nn.Relu, nn.Dense(64), nn.Relu, nn.Dense(64), nn.Relu,
                                  nn.Dense(1))
    model = gs.vmap(model, in_axes=(None, 0))
    output_shape, params = model_init(subkey, (2, 2))
    assert output_shape == (1,)
    opt = optim.adam(3e-4)

    def batch_loss(params, batch):
        preds = model(params, batch)
        targets = batched_spectral_radius(batch)
        return np.mean(np.abs(preds - targets))

    @wrap
    def train_batch(params, opt_state, batch):
        loss, grad = gs.value_and_grad(batch_loss)(params, batch)
        grad = gs.tree_util.tree_map(np.conj, grad)
        updates, opt_state = opt.update(grad, opt_state)
        return optim.apply_updates(params, updates), opt_state, loss
    opt_state, losses = opt.init(params), []
    for _ in range(steps):
        rng_key, batch = randn(rng_key, (64, 2, 2), complex)
        params, opt_state, loss = train_batch(params, opt_state, batch)
        losses.append(loss)
    return losses, model, params


@pytest.mark.slow
def test_s35_network_that_learns_spectral_radii():
    """From about 1.6 to about 0.4 in a thousand steps; compiled, the steps are those of plain Python."""
    losses, model, params = trained(1001, gs.jit)
    np.testing.assert_allclose(losses[:5], trained(5, lambda f: f)[0], rtol=1e-9)
    assert 1.3 < losses[0] < 1.9
    assert 0.3 < np.mean(losses[-20:]) < 0.5
    value = model(params, np.expand_dims(REAL, 0).astype(complex))[0, 0]
    assert abs(value - 2 ** 0.5) < 0.5


def test_s37_every_text_of_a_run(tmp_path):
    (tmp_path / "program.py").write_text(
        "import gradscribe as gs\n\n\ndef f(x):\n    return x ** 3\n\n\ng = gs.grad(f)\ng(2.0)\ngs.jit(g)(2.0)\n")
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True,
                   env={**os.environ, "GRADSCRIBE_DUMP": "generated", "GRADSCRIBE_CACHE": "off"})
    (emitted,) = (tmp_path / "generated").glob("*_grad_f.py")
    (lowered,) = (tmp_path / "generated").glob("*_grad_f.lowered.py")
    space = {}
    exec(emitted.read_text(), space)
    assert space["grad_f"](2.0) == 12.0
    assert "def grad_f(x)" in lowered.read_text()


def foreign(values, *names):
    """An array of another package, of which only this is known."""
    return type("Foreign", (), {n: property(lambda self, n=n: getattr(values, n)) for n in names})()


def test_s38_nothing_is_copied():
    x = np.zeros(5)

    def write(x):
        x[1] = 2.0
    gs.jit(write)(foreign(x, "__dlpack__", "__dlpack_device__"))
    assert x.tolist() == [0.0, 2.0, 0.0, 0.0, 0.0]


@WRAPS
def test_s38_arrays_of_other_packages(wrap):
    x = np.linspace(0.0, 1.0, 5)
    f = wrap(gs.grad(lambda x: np.sum(np.sin(x))))
    there = foreign(x, "__dlpack__", "__dlpack_device__")
    np.testing.assert_array_equal(f(there), f(x))
    result = f(x)
    assert np.shares_memory(np.from_dlpack(result), result)         # what others take of ours is not copied


@WRAPS
def test_s38_by_the_array_interface(wrap):
    x = np.linspace(0.0, 1.0, 5)
    f = wrap(gs.grad(lambda x: np.sum(np.sin(x))))
    np.testing.assert_array_equal(f(foreign(x, "__array_interface__")), f(x))
