"""Arrays that each pass of a loop makes, writes entry by entry and hands on to the next, by one name or several."""
import numpy as np
import pytest

import gradscribe as gs


def changed_by_both_names(x, n):
    v = x.copy()
    for _t in range(n):
        w = np.zeros(x.shape[0])
        for j in range(x.shape[0]):
            w[j] = v[j] * 0.9 + 0.1 * v[j - 1]
        v = w
        v[0] = v[0] * 2
        w[1] = w[1] + v[0]
    return np.sum(v * v)


def handed_on_twice(x, n):
    a = x.copy()
    b = x * 2
    for _t in range(n):
        w = np.zeros(x.shape[0])
        for j in range(x.shape[0]):
            w[j] = np.sin(a[j]) + b[j - 1]
        a = w
        b = w
        a[0] = a[0] * 0.5
    return np.sum(a * b)


def new_or_old(x, n):
    v = x.copy()
    for t in range(n):
        if t % 2 == 0:
            w = np.zeros(x.shape[0])
        else:
            w = v
        for j in range(x.shape[0]):
            w[j] = w[j] + 0.5 * v[j - 1]
        v = w
    return np.sum(v * v)


def kept_in_a_list(x, n):
    v = x.copy()
    hist = []
    for _t in range(n):
        w = np.zeros(x.shape[0])
        for j in range(x.shape[0]):
            w[j] = v[j] * 0.9 + 0.1 * v[j - 1]
        hist.append(w)
        v = w
        v[0] = v[0] + 1.0
    return np.sum(v * v) + sum((np.sum(q * q) for q in hist))


def two_passes_before(x, n):
    v = x.copy()
    u = x.copy()
    for _t in range(n):
        w = np.zeros(x.shape[0])
        for j in range(x.shape[0]):
            w[j] = v[j] * 0.9 + 0.1 * u[j - 1]
        u = v
        v = w
    return np.sum(v * u)


def old_one_changes(x, n):
    v = x.copy()
    old = v
    for _t in range(n):
        w = v * 1.0
        for j in range(x.shape[0]):
            w[j] = w[j] + 0.1 * old[j]
            old[j] = old[j] * 0.9
        old = v
        v = w
    return np.sum(v * old)


def rows_of_one(x, n):
    v = x.copy()
    for _t in range(n):
        w = np.zeros((2, x.shape[0]))
        r = w[0]
        for j in range(x.shape[0]):
            r[j] = v[j] * 0.9
            w[1, j] = r[j - 1]
        v = w[1]
        r[0] = 5.0
    return np.sum(v * v)


def ends_early(x, n):
    v = x.copy()
    s = 0.0
    for _t in range(n):
        w = np.zeros(x.shape[0])
        j = 0
        while j < x.shape[0]:
            w[j] = v[j] * 0.9 + 0.1 * v[j - 1]
            if w[j] > 3.0:
                break
            j += 1
        s += w[0] * v[0]
        v = w
    return s + np.sum(v * v)


def best_so_far(x, n):
    v = x.copy()
    best = v
    for _t in range(n):
        w = np.zeros(x.shape[0])
        for j in range(x.shape[0]):
            w[j] = np.cos(v[j]) + 0.3 * v[j - 1]
        if np.sum(w) > np.sum(best):
            best = w
        w[0] = w[0] * 0.5
        v = w
    return np.sum(best * v)


def empty_at_first(x, n):
    v = x.copy()
    keep = np.zeros(x.shape[0])
    for _t in range(n):
        w = np.empty(x.shape[0])
        for j in range(x.shape[0]):
            w[j] = np.cos(v[j]) + 0.3 * keep[j]
        keep = v
        v = w
        keep[0] = keep[0] * 0.5
    return np.sum(keep * v)


def in_two_loops(x, n):
    v = x.copy()
    for _t in range(n):
        for q in range(2):
            w = np.zeros(x.shape[0])
            for j in range(x.shape[0]):
                w[j] = np.cos(v[j]) + 0.1 * v[j - 1] * q
            v = w
        v[1] = v[1] * 0.3
    return np.sum(v * v)


def exchanged_with_a_new_one(x, n):
    v = x.copy()
    w = x * 3
    for _t in range(n):
        z = w
        w = np.zeros(x.shape[0])
        for j in range(x.shape[0]):
            w[j] = np.cos(v[j]) + 0.1 * z[j]
        v = z
        z[0] = z[0] * 0.5
    return np.sum(v * w)


FUNCTIONS = [changed_by_both_names, handed_on_twice, new_or_old, kept_in_a_list, two_passes_before, old_one_changes,
             rows_of_one, ends_early, best_so_far, empty_at_first, in_two_loops,
             exchanged_with_a_new_one]


def differences(f, x, n):
    step = 1e-6
    return np.array([(f(x + step * e, n) - f(x - step * e, n)) / (2 * step) for e in np.eye(len(x))])


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients(f, n):
    x = np.random.default_rng(n).normal(size=9)
    expected = differences(f, x, n)
    given = x.copy()
    for function in (gs.grad(f), gs.jit(gs.grad(f))):
        np.testing.assert_allclose(function(given, n), expected, rtol=1e-5, atol=1e-6 * np.max(np.abs(expected)))
    np.testing.assert_array_equal(given, x)
    assert gs.jit(f)(given, n) == pytest.approx(f(x, n), rel=1e-13)


@pytest.mark.parametrize("f", [changed_by_both_names, two_passes_before, in_two_loops, exchanged_with_a_new_one])
def test_entries_are_written_in_place(f):
    """No copy of an array for each of its entries, forward or backward: those in inner loops stand twelve spaces in."""
    text = gs.grad(f).source_for(np.ones(40), 20)
    deep = [line for line in text.splitlines() if line.startswith(" " * 12)]
    assert not any("copy()" in line or "np.copy(" in line for line in deep), text
