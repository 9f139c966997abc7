"""Iterators whose elements change something: gone through at once, or refused; lists are made where they stand."""
import itertools

import numpy as np
import pytest

import gradscribe as gs


def seen(values):
    return sum(v * k for k, v in enumerate(values))


AT_ONCE = {
    "sum": lambda put, s: sum(put(k) for k in range(3)),
    "list": lambda put, s: seen(list(put(k) for k in range(3))),  # noqa: C400 (the generator is what is tested)
    "max": lambda put, s: max((put(k) for k in range(3)), default=0.0),
    "starred": lambda put, s: max(*(put(k) for k in range(3)), 0.1),
    "in a list": lambda put, s: seen([1.0, *(put(k) for k in range(3))]),
    "list of map": lambda put, s: seen(list(map(put, range(3)))),
    "any of a list": lambda put, s: s * any([put(k) > 0.5 for k in range(3)]),  # noqa: C419 (a list, which is made before any is asked)
    "zip of lists": lambda put, s: sum(a * b for a, b in zip([put(k) for k in range(3)], [1, 2])),
}
ONE_BY_ONE = {
    "loop": lambda put, s: [put(v) for v in (put(k) for k in range(3))],
    "loop over map": lambda put, s: [put(v) for v in map(put, range(3))],
    "any": lambda put, s: any(put(k) > 0.5 for k in range(3)),
    "all": lambda put, s: all(put(k) < 0.5 for k in range(3)),
    "zip": lambda put, s: [a * b for a, b in zip((put(k) for k in range(3)), [1, 2])],
    "enumerate": lambda put, s: [put(k) for k, _ in enumerate(put(k) for k in range(3))],
    "islice": lambda put, s: list(itertools.islice((put(k) for k in range(9)), 2)),
    "in": lambda put, s: 2 in (put(k) and k for k in range(5)),
    "next": lambda put, s: next(put(k) for k in range(3)),
    "filter": lambda put, s: [put(k) for k in filter(lambda k: put(k) is not None and k > 0, range(3))],
}


def made(call):
    def f(s):
        kept = [s]

        def put(k):
            kept.append(k * s)
            return k * s
        result = call(put, s)
        return (sum(result) if isinstance(result, list) else result * 1.0) + seen(kept)
    return f


@pytest.mark.parametrize("name", AT_ONCE)
def test_at_once(name):
    f = made(AT_ONCE[name])
    for s in (0.3, 1.2):
        for derived in (gs.value_and_grad(f), gs.jit(gs.value_and_grad(f))):
            value, ds = derived(s)
            np.testing.assert_allclose(value, f(s), rtol=1e-12)
            np.testing.assert_allclose(ds, (f(s + 1e-5) - f(s - 1e-5)) / 2e-5, rtol=1e-6)


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_one_by_one(name):
    with pytest.raises(gs.TransformError, match="changes something when it is gone through"):
        gs.grad(made(ONE_BY_ONE[name]))(0.3)


def test_given_to_a_function():
    def total(values, kept):
        kept.append(5.0)
        return sum(values)

    def f(s):
        kept = [s]
        return total((kept.append(k * s) or k * s for k in range(3)), kept) + seen(kept)
    with pytest.raises(gs.TransformError, match="changes something when it is gone through"):
        gs.grad(f)(0.3)


def test_what_changes_nothing_is_not_asked():
    def f(s):
        x = np.array([s, 2 * s, 3 * s])
        out = 0.0
        for a, b in zip((v * v for v in x), map(lambda v: v + s, [1.0, s])):
            out += a * b
        return out * any(v > 0.1 for v in x) + next(v for v in x if True)
    np.testing.assert_allclose(gs.grad(f)(0.4), (f(0.4 + 1e-6) - f(0.4 - 1e-6)) / 2e-6, rtol=1e-7)


def test_rng_in_a_comprehension():
    def f(s, rng):
        return sum(rng.standard_normal() * s for _ in range(3)) + sum([rng.standard_normal() for _ in range(2)]) * s
    expected = f(1.0, np.random.default_rng(3))
    np.testing.assert_allclose(gs.grad(f)(2.0, np.random.default_rng(3)), expected, rtol=1e-12)


def test_the_truth_of_a_range():
    """A range without numbers is false; the length of the array decides."""
    def f(x, n):
        inner = range(1, len(x) - n)
        total = x[0] if inner else 3.0 * x[1]
        return total if not range(0) else 0.0
    x = np.array([1.0, 2.0, 4.0])
    assert np.array_equal(gs.grad(lambda x: f(x, 1))(x), [1.0, 0.0, 0.0])
    assert np.array_equal(gs.grad(lambda x: f(x, 2))(x), [0.0, 3.0, 0.0])
    assert np.array_equal(gs.grad(f)(x, 5), [0.0, 3.0, 0.0])
    assert np.array_equal(gs.jit(gs.grad(f))(x, 1), [1.0, 0.0, 0.0])


def test_the_length_of_a_range():
    def f(x, n):
        return np.sum(x ** 2) * len(range(2, n, 3)) + x[0] * len(range(9, 0, -2))
    x = np.array([1.0, 2.0])
    assert np.array_equal(gs.grad(f)(x, 9), [11.0, 12.0])       # 3 numbers, and 5
    assert np.array_equal(gs.grad(f)(x, 1), [5.0, 0.0])
