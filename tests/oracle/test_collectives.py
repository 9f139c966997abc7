"""Functions over a named axis inside vmap, against jax.lax: values, derivatives inside the axis and of the whole."""
import functools

import numpy as np
import pytest

import gradscribe as gs

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(5)
X = rng.standard_normal((4, 3))
SQUARES = rng.standard_normal((4, 4, 3))
WIDE = rng.standard_normal((4, 8, 4))
NUMBERS = rng.standard_normal(4)


def total(lax, np, x):
    return x / lax.psum(np.exp(x), "i")


def centred(lax, np, x):
    return (x - lax.pmean(x, "i")) ** 2


def normalised(lax, np, x):
    mean = lax.pmean(x, "i")
    return (x - mean) / np.sqrt(lax.pmean((x - mean) ** 2, "i") + 1e-3)


def of_a_tree(lax, np, x):
    sums = lax.psum({"a": x, "b": (x ** 2, 2.0)}, "i")
    return x * sums["a"] + sums["b"][0] / sums["b"][1]


def of_a_number(lax, np, x):
    return x * lax.psum(3.0, "i") + lax.pmean(2, "i")


def counted(lax, np, x):
    return x / lax.psum(1, "i")


def indexed(lax, np, x):
    return np.sin(x) * lax.axis_index("i")


def gathered(lax, np, x):
    return np.sum(lax.all_gather(x, "i") ** 2, axis=0) * x


def gathered_behind(lax, np, x):
    return lax.all_gather(x * x, "i", axis=1) @ np.arange(4.0)


def gathered_in_a_row(lax, np, x):
    return np.sum(np.sin(lax.all_gather(x, "i", axis=0, tiled=True)).reshape(4, 3), axis=0) * x


def scattered(lax, np, x):
    return lax.psum_scatter(np.sin(x), "i") ** 2


def scattered_behind(lax, np, x):
    return lax.psum_scatter(x ** 2, "i", scatter_dimension=2)


def scattered_shares(lax, np, x):
    return lax.psum_scatter(x ** 3, "i", scatter_dimension=0, tiled=True)


def exchanged(lax, np, x):
    return lax.all_to_all(x ** 2, "i", 0, 1)


def exchanged_in_place(lax, np, x):
    return lax.all_to_all(np.sin(x), "i", 0, 0)


def exchanged_shares(lax, np, x):
    return lax.all_to_all(x ** 2, "i", 0, 1, tiled=True)


def ring(lax, np, x):
    return lax.ppermute(x ** 2, "i", [(0, 1), (1, 2), (2, 3), (3, 0)]) * x


def shuffled(lax, np, x):
    return lax.pshuffle(x ** 2, "i", [2, 0, 3, 1]) * x


def in_a_loop(lax, np, x):
    for _ in range(3):
        x = np.tanh(x + lax.pmean(x, "i"))
    return x


def in_a_branch(lax, np, x, flag=True):
    if flag:
        x = x + lax.psum(x ** 2, "i")
    return x


def largest(lax, np, x):
    return np.exp(x - lax.pmax(x, "i"))


def smallest(lax, np, x):
    return lax.pmin(x, "i") + 0 * x


def several(lax, np, x):
    return lax.psum(x, "i") * lax.pmean(x ** 2, "i") + lax.psum(lax.psum(x, "i"), "i")


def indexed_row(lax, np, x):
    return lax.all_gather(x, "i")[lax.axis_index("i") - 1] * x


PROGRAMS = [
    (total, X), (total, NUMBERS), (centred, X), (normalised, X), (of_a_tree, X), (of_a_number, X), (counted, X),
    (indexed, X), (indexed, NUMBERS), (gathered, X), (gathered_behind, X), (gathered_in_a_row, X), (scattered, SQUARES),
    (scattered_behind, rng.standard_normal((4, 2, 3, 4))), (scattered_shares, WIDE), (exchanged, SQUARES),
    (exchanged_in_place, SQUARES), (exchanged_shares, WIDE), (ring, X), (ring, NUMBERS), (shuffled, X),
    (in_a_loop, X), (in_a_branch, X), (several, X), (indexed_row, X), (largest, X), (smallest, X),
]
IDS = [f"{f.__name__}-{x.ndim}" for f, x in PROGRAMS]
ONLY_VALUES = {largest, smallest}           # as in JAX, these have no derivative inside the axis


def ours(program):
    return functools.partial(program, gs.lax, np)


def theirs(program):
    return functools.partial(program, jax.lax, jax.numpy)


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("program, x", PROGRAMS, ids=IDS)
def test_value(program, x):
    want = jax.vmap(theirs(program), axis_name="i")(x)
    close(gs.vmap(ours(program), axis_name="i")(x), want)
    close(gs.jit(gs.vmap(ours(program), axis_name="i"))(x), want)


@pytest.mark.parametrize("program, x", PROGRAMS, ids=IDS)
def test_derivative_inside(program, x):
    """grad inside the axis: the adjoint of psum is psum."""
    def loss(m, program, x):
        return m.sum(program(x) ** 2)
    if program in ONLY_VALUES:
        with pytest.raises(gs.TransformError, match="no derivative inside its axis"):
            gs.vmap(gs.grad(functools.partial(loss, np, ours(program))), axis_name="i")(x)
        return
    if program is exchanged:                # JAX's transpose of all_to_all has the wrong shape there
        other = functools.partial(loss, np, ours(exchanged))
        close(gs.vmap(gs.grad(other), axis_name="i")(x), 4 * x ** 3)
        return
    want = jax.vmap(jax.grad(functools.partial(loss, jax.numpy, theirs(program))), axis_name="i")(x)
    close(gs.vmap(gs.grad(functools.partial(loss, np, ours(program))), axis_name="i")(x), want)


@pytest.mark.parametrize("program, x", PROGRAMS, ids=IDS)
def test_derivative_of_the_whole(program, x):
    if program in ONLY_VALUES:
        pytest.skip("JAX has none")

    def loss(m, batched, x):
        return m.sum(m.sin(batched(x)))
    got = gs.grad(functools.partial(loss, np, gs.vmap(ours(program), axis_name="i")))(x)
    close(got, jax.grad(functools.partial(loss, jax.numpy, jax.vmap(theirs(program), axis_name="i")))(x))


@pytest.mark.parametrize("program, x", PROGRAMS, ids=IDS)
def test_tangent(program, x):
    if program in ONLY_VALUES:
        pytest.skip("JAX has none")
    dot = np.cos(np.arange(x.size)).reshape(x.shape)
    got = gs.jvp(gs.vmap(ours(program), axis_name="i"), (x,), (dot,))
    want = jax.jvp(jax.vmap(theirs(program), axis_name="i"), (x,), (dot,))
    close(got[0], want[0])
    close(got[1], want[1])


@pytest.mark.parametrize("program, x", PROGRAMS, ids=IDS)
@pytest.mark.parametrize("place", ["inside", "outside"])
def test_beside_another_axis(program, x, place):
    """A vmap without a name, or with another, around it and inside it."""
    stack = np.stack([x, 2 * x])
    if place == "outside":
        want = jax.vmap(jax.vmap(theirs(program), axis_name="i"))(stack)
        close(gs.vmap(gs.vmap(ours(program), axis_name="i"), axis_name="j")(stack), want)
    else:
        want = jax.vmap(jax.vmap(theirs(program)), 1, 1, axis_name="i")(stack)
        close(gs.vmap(gs.vmap(ours(program), axis_name="j"), 1, 1, axis_name="i")(stack), want)


def two_names(lax, np, x):
    return x / lax.psum(x, ("i", "j")) + lax.pmean(x, "j") * lax.axis_index("i") + lax.pmax(x, ("j", "i"))


def test_two_names():
    x = np.exp(SQUARES[0])
    want = jax.vmap(jax.vmap(theirs(two_names), axis_name="j"), axis_name="i")(x)
    close(gs.vmap(gs.vmap(ours(two_names), axis_name="j"), axis_name="i")(x), want)


def test_nothing_mapped():
    want = jax.vmap(lambda: jax.lax.axis_index("i") * 2, axis_name="i", axis_size=3)()
    close(gs.vmap(lambda: gs.lax.axis_index("i") * 2, axis_name="i", axis_size=3)(), want)
