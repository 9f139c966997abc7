"""Programs on four devices, written once: with PMAP_SIDE=jax in the environment np, lax and the rest are JAX's."""
import os
from dataclasses import dataclass, field

import numpy as plain

if os.environ.get("PMAP_SIDE") == "jax":
    import jax as side
    import jax.numpy as np
    from jax import lax
else:
    import numpy as np

    import gradscribe as side
    from gradscribe import lax

rng = plain.random.default_rng(7)
draw = rng.standard_normal
X, NUMBERS, TWO, MATRIX = draw((4, 3)), draw(4), draw((4, 2, 3)), draw((3, 2))
SQUARES, WIDE, CUBE = draw((4, 4, 3)), draw((4, 8, 4)), draw((4, 4, 4, 2))
COMPLEX = draw((4, 3)) + 1j * draw((4, 3))
INTS, BOOLS = rng.integers(-9, 9, (4, 3)), rng.integers(0, 2, (4, 3)) > 0
SINGLE, PARAMS = X.astype(plain.float32), {"w": draw((3, 2)), "b": draw(2)}
RING, SHUFFLE = [(0, 1), (1, 2), (2, 3), (3, 0)], [2, 0, 3, 1]


@dataclass
class Program:
    """A function, what it is called with, and how it is mapped; `seen`: which of WAYS it is looked at in."""

    function: object
    args: tuple
    options: dict = field(default_factory=dict)
    words: dict = field(default_factory=dict)
    seen: str = "value"
    argument: int = 0                   # what derivatives are for


PROGRAMS: dict[str, Program] = {}
ALL = "value inside outside tangent across beside jit"


def program(*args, seen=ALL, words=None, argument=0, again=(), **options):
    """The function as a program; `again`: other arguments for it."""
    def add(function):
        for k, own in enumerate([args, *again]):
            name = function.__name__ + (f"_{k}" if k else "")
            PROGRAMS[name] = Program(function, own, {"axis_name": "i", **options}, words or {}, seen, argument)
        return function
    return add


DERIVED = "value inside outside tangent jit"    # the arguments are not one array, or are mapped in a way of their own
VALUES = "value jit"


# --- reductions -------------------------------------------------------------------------------------------------------

@program(X, again=[(NUMBERS,)])
def total(x):
    return x / lax.psum(np.exp(x), "i")


@program(X, again=[(NUMBERS,)])
def centred(x):
    return (x - lax.pmean(x, "i")) ** 2


@program(X)
def normalised(x):
    mean = lax.pmean(x, "i")
    return (x - mean) / np.sqrt(lax.pmean((x - mean) ** 2, "i") + 1e-3)


@program(X)
def of_a_tree(x):
    sums = lax.psum({"a": x, "b": (x ** 2, 2.0)}, "i")
    return x * sums["a"] + sums["b"][0] / sums["b"][1]


@program(X)
def of_a_list(x):
    a, b = lax.pmean([x, np.sum(x)], "i")
    return a * x + b


@program(X)
def of_a_number(x):
    return x * lax.psum(3.0, "i") + lax.pmean(2.0, "i")


@program(X)
def counted(x):
    return x ** 2 / lax.psum(1, "i")


@program(X)
def of_a_sum(x):
    """The loss is the same on all devices: its gradient inside counts once for each."""
    return lax.psum(np.sum(x ** 3), "i")


@program(X)
def sum_of_a_sum(x):
    return lax.psum(lax.psum(x ** 2, "i") * x, "i")


@program(X, seen=VALUES + " across beside", again=[(NUMBERS,), (INTS,)])
def largest(x):
    return x - lax.pmax(x, "i")


@program(X, seen=VALUES + " across beside", again=[(NUMBERS,), (INTS,)])
def smallest(x):
    return 2 * x - lax.pmin(x, "i")


@program(X)
def soft_maximum(x):
    """A softmax whose entries lie on several devices."""
    top = lax.pmax(lax.stop_gradient(np.max(x)), "i")
    e = np.exp(x - top)
    return e / lax.psum(np.sum(e), "i")


@program(TWO)
def product(x):
    return lax.psum(x @ MATRIX, "i") @ x[:, :2] + lax.pmean(x.T @ x, "i")[:2, :2]


# --- what is moved ----------------------------------------------------------------------------------------------------

@program(X)
def gathered(x):
    return np.sum(lax.all_gather(x, "i") ** 2, axis=0) * x


@program(NUMBERS)
def gathered_numbers(x):
    return lax.all_gather(np.sin(x), "i") * x


@program(X)
def gathered_behind(x):
    return lax.all_gather(x * x, "i", axis=1) @ np.arange(4.0)


@program(TWO)
def gathered_between(x):
    return lax.all_gather(np.tanh(x), "i", axis=1)[:, ::-1] * 2.0


@program(X)
def gathered_in_a_row(x):
    return np.sum(np.sin(lax.all_gather(x, "i", axis=0, tiled=True)).reshape(4, 3), axis=0) * x


@program(TWO)
def gathered_beside(x):
    return lax.all_gather(x ** 2, "i", axis=1, tiled=True)[:, 1:-1]


@program(X)
def indexed_row(x):
    return lax.all_gather(x, "i")[lax.axis_index("i") - 1] * x


@program(SQUARES)
def scattered(x):
    return lax.psum_scatter(np.sin(x), "i") ** 2


@program(draw((4, 2, 3, 4)))
def scattered_behind(x):
    return lax.psum_scatter(x ** 2, "i", scatter_dimension=2)


@program(WIDE)
def scattered_shares(x):
    return lax.psum_scatter(x ** 3, "i", scatter_dimension=0, tiled=True)


@program(WIDE)
def scattered_shares_behind(x):
    return lax.psum_scatter(np.cos(x), "i", scatter_dimension=1, tiled=True) * x[:, :1]


@program(draw((4, 4)))
def scattered_numbers(x):
    return lax.psum_scatter(x, "i") * 2.0


@program(WIDE)
def reduced_in_two_steps(x):
    """psum as psum_scatter and all_gather."""
    own = lax.psum_scatter(x ** 2, "i", tiled=True)
    return lax.all_gather(own, "i", tiled=True) - lax.psum(x, "i")


@program(CUBE)
def exchanged(x):
    return lax.all_to_all(x ** 2, "i", 0, 1)


@program(SQUARES)
def exchanged_in_place(x):
    return lax.all_to_all(np.sin(x), "i", 0, 0)


@program(CUBE)
def exchanged_forward(x):
    return lax.all_to_all(x ** 2, "i", 1, 0) * np.arange(2.0)


@program(WIDE)
def exchanged_shares(x):
    return lax.all_to_all(x ** 2, "i", 0, 1, tiled=True)


@program(WIDE)
def exchanged_shares_back(x):
    return lax.all_to_all(lax.all_to_all(np.sin(x), "i", 0, 1, tiled=True) * 2.0, "i", 1, 0, tiled=True)


@program(X, again=[(NUMBERS,)])
def ring(x):
    return lax.ppermute(x ** 2, "i", RING) * x


@program(X)
def shifted(x):
    """The first gets zeros."""
    return lax.ppermute(np.exp(x), "i", [(0, 1), (1, 2), (2, 3)]) + x


@program(X)
def neighbours(x):
    left, right = lax.ppermute((x, 2.0 * x), "i", RING), lax.ppermute(x, "i", [(b, a) for a, b in RING])
    return left[0] - 2.0 * x + right + np.sin(left[1])


@program(X)
def shuffled(x):
    return lax.pshuffle(x ** 2, "i", SHUFFLE) * x


# --- where a device is ------------------------------------------------------------------------------------------------

@program(X, again=[(NUMBERS,)])
def indexed(x):
    return np.sin(x) * lax.axis_index("i")


@program(X)
def of_the_first(x):
    """What device 0 has, on all."""
    return lax.psum(np.where(lax.axis_index("i") == 0, x ** 2, 0.0), "i") * x


@program(NUMBERS)
def running_sum(x):
    """The sum of what devices up to this one have."""
    return np.sum(np.where(np.arange(4) <= lax.axis_index("i"), lax.all_gather(x ** 2, "i"), 0.0))


@program(X, seen=VALUES)
def numbers_of_devices(x):
    return lax.axis_index("i"), lax.psum(lax.axis_index("i"), "i"), lax.psum(1, "i")


# --- loops and branches -----------------------------------------------------------------------------------------------

@program(X)
def in_a_loop(x):
    for _ in range(3):
        x = np.tanh(x + lax.pmean(x, "i"))
    return x


@program(X)
def round_the_ring(x):
    """All others' entries, one after the other."""
    held, result = x, x
    for k in range(3):
        held = lax.ppermute(held, "i", RING)
        result = result + (k + 2.0) * held ** 2
    return result


@program(X)
def in_a_scan(x):
    def step(carry, scale):
        carry = np.sin(carry * scale) + lax.pmean(carry, "i")
        return carry, lax.psum(carry[0], "i")
    last, sums = lax.scan(step, x, np.array([0.5, 1.0, 1.5]))
    return last * sums


@program(X)
def in_a_branch_for_all(x):
    """A condition on a sum over the devices is the same on all."""
    positive = lax.psum(np.sum(x), "i") > 0.0
    return lax.cond(positive, lambda x: x * lax.pmean(x ** 2, "i"), lambda x: np.sin(x) - lax.psum(x, "i"), x)


@program(X, True, in_axes=(0, None), static_broadcasted_argnums=1, seen=DERIVED, again=[(X, False)])
def by_a_flag(x, flag):
    if flag:
        return x + lax.psum(x ** 2, "i")
    return x * lax.axis_index("i")


@program(X, "mean", 3, in_axes=(0, None, None), static_broadcasted_argnums=(1, 2), seen=DERIVED)
def by_two_constants(x, kind, count):
    for _ in range(count):
        x = x + (lax.pmean(x, "i") if kind == "mean" else lax.psum(x, "i")) * 0.5
    return x


# --- arguments and results --------------------------------------------------------------------------------------------

@program(MATRIX, X, in_axes=(None, 0), seen=DERIVED)
def for_all(w, x):
    return np.tanh(x @ w) * lax.pmean(np.sum(x), "i")


@program(PARAMS, TWO, in_axes=(None, 0), seen=DERIVED)
def layer(params, x):
    y = np.tanh(x @ params["w"] + params["b"])
    return lax.pmean(np.mean(y ** 2), "i"), y


@program((X, X.T), {"a": NUMBERS, "b": 2.0}, in_axes=((0, 1), {"a": 0, "b": None}), seen=DERIVED)
def of_trees(pair, numbers):
    return pair[0] * lax.psum(pair[1], "i") * numbers["a"] + numbers["b"]


@program(X.T, in_axes=1, out_axes=1, seen=DERIVED)
def columns(x):
    return x * lax.psum(x ** 2, "i")


@program(draw((2, 3, 4)), in_axes=2, out_axes=1, seen=DERIVED)
def last_axis(x):
    return np.cos(x) + lax.pmean(x, "i")


@program(X, out_axes=(1, {"whole": None, "own": 0}), seen=VALUES)
def results_of_all_kinds(x):
    return x ** 2, {"whole": lax.psum(x, "i"), "own": np.sum(x)}


@program(X, out_axes=None, seen=VALUES)
def the_same_for_all(x):
    return lax.psum(x, "i"), lax.pmax(np.max(x), "i")


@program(X, words={"scale": NUMBERS, "shift": X}, seen=VALUES)
def by_keyword(x, *, scale, shift):
    return x * scale + lax.psum(shift, "i")


@program(NUMBERS, X, argument=1, seen=DERIVED)
def second_argument(scale, x):
    return x ** 2 * lax.psum(scale, "i") / (1.0 + scale ** 2)


@program(X, axis_name="devices of the run")
def another_name(x):
    return x - lax.pmean(x, "devices of the run")


# --- other dtypes -----------------------------------------------------------------------------------------------------

@program(SINGLE)
def single_precision(x):
    return x * lax.psum(x, "i") + lax.pmean(x ** 2, "i")


@program(SINGLE, seen=VALUES)
def single_precision_moved(x):
    return lax.all_gather(x, "i"), lax.ppermute(x, "i", RING), lax.pmin(x, "i"), lax.psum(1, "i") * x


@program(COMPLEX, seen="value inside outside across beside jit")
def complex_numbers(x):
    return x * lax.psum(x, "i") + lax.pmean(np.conj(x), "i")


@program(COMPLEX, seen="value inside outside jit")
def complex_moved(x):
    return lax.ppermute(x, "i", RING) * x + np.sum(lax.all_gather(x, "i"), 0)


@program(INTS, seen=VALUES)
def whole_numbers(x):
    return lax.psum(x, "i"), lax.all_gather(x, "i", axis=1), lax.ppermute(x, "i", RING), lax.psum(x * x, "i") // 3


@program(INTS, seen=VALUES)
def mean_of_whole_numbers(x):
    return lax.pmean(x, "i"), lax.pmax(x, "i") - lax.pmin(x, "i")


@program(INTS.astype(plain.int32), seen=VALUES)
def short_whole_numbers(x):
    return lax.psum(x, "i"), lax.pmax(x, "i"), lax.all_gather(x, "i")


@program(BOOLS, seen=VALUES)
def truth_values(x):
    return lax.psum(x, "i"), lax.all_gather(x, "i"), lax.ppermute(x, "i", RING)


@program(BOOLS, X, seen=VALUES)
def by_truth_values(chosen, x):
    return lax.psum(np.where(chosen, x, 0.0), "i") / lax.psum(chosen, "i")


# --- the ways that a program is looked at -----------------------------------------------------------------------------

def loss_of(value):
    """A number, from a tree of results."""
    if isinstance(value, (tuple, list)):
        result = 0.0
        for v in value:
            result = result + loss_of(v)
        return result
    if np.iscomplexobj(value):
        return np.sum(np.real(value) ** 2 + np.sin(np.imag(value)))
    return np.sum(np.sin(value))


def direction(x):
    return plain.cos(plain.arange(x.size)).reshape(x.shape).astype(x.dtype)


def static_of(p):
    given = p.options.get("static_broadcasted_argnums", ())
    return (given,) if isinstance(given, int) else given


def inside(p):
    f = p.function

    def loss(*args):
        return loss_of(f(*args))
    return side.pmap(side.grad(loss, p.argument), **p.options)(*p.args)


def outside(p):
    mapped = side.pmap(p.function, **p.options)
    free = [k for k in range(len(p.args)) if k not in static_of(p)]

    def loss(*given):
        args, given = list(p.args), list(given)
        for place, k in enumerate(free):
            args[k] = given[place]
        return loss_of(mapped(*args))
    return side.grad(loss, p.argument)(*[p.args[k] for k in free])


def tangent(p):
    """Of the argument that derivatives are for, in a direction that is one of the arguments."""
    f, k, axes = p.function, p.argument, p.options.get("in_axes", 0)
    axes = axes if isinstance(axes, tuple) else (axes,) * len(p.args)
    x = p.args[k]
    if isinstance(x, dict):
        dx = {n: direction(v) for n, v in x.items()}
    else:
        dx = tuple(map(direction, x)) if isinstance(x, tuple) else direction(x)

    def push(dx, *args):
        def of_one(x):
            return f(*args[:k], x, *args[k + 1:])
        return side.jvp(of_one, (args[k],), (dx,))
    options = {**p.options, "in_axes": (axes[k], *axes)}
    if static_of(p):
        options["static_broadcasted_argnums"] = tuple(n + 1 for n in static_of(p))
    return side.pmap(push, **options)(dx, *p.args)


def across(p):
    """vmap inside pmap."""
    stack = plain.stack([p.args[0], 2 * p.args[0]], 1)
    return side.pmap(side.vmap(p.function), **p.options)(stack)


def beside(p):
    """vmap of pmap."""
    stack = plain.stack([p.args[0], 2 * p.args[0]])
    return side.vmap(side.pmap(p.function, **p.options))(stack)


WAYS = {
    "value": lambda p: side.pmap(p.function, **p.options)(*p.args, **p.words),
    "inside": inside, "outside": outside, "tangent": tangent, "across": across, "beside": beside,
    "jit": lambda p: side.jit(side.pmap(p.function, **p.options), static_argnums=static_of(p))(*p.args, **p.words),
}
CASES = [(name, way) for name, p in PROGRAMS.items() for way in p.seen.split()]
