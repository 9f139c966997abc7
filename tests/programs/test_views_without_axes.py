# SPDX-License-Identifier: Apache-2.0
"""Views without axes, `x[..., k]` of an array with one axis: a write into the array is seen in them, wherever they are.

Each program has the derivative of what NumPy computes, or is refused.
"""
import numpy as np
import pytest
from programs.checks import differences
from rule_calls import from_text

import gradscribe as gs

X = np.array([0.5, 0.7, 0.9, 1.2, 1.1])


def first_three(x):
    """A list of unknown length: a while loop makes it."""
    k = 0
    items = []
    while k < 3:
        items.append(x[..., k])
        k += 1
    return items


def squared(x):
    x = x.copy()
    k = 0
    while k < 3:
        a = x[..., k]
        x[k] = a * a * x[k + 1]
        k += 1
    return np.sum(x)


def kept_in_a_list(x):
    x = x.copy()
    k = 0
    items = []
    while k < 3:
        items.append(x[..., k])
        x[k] = x[k] * x[..., k + 1] * x[k + 1]
        k += 1
    return np.sum(x) + items[0] * items[1]


def saved_by_the_loop(x):
    x = x.copy()
    k = 0
    y = 1.0
    while k < 3:
        y = y * np.exp(-x[..., k]*x[0])
        x[..., k] = x[..., k] * x[..., k + 1] * y
        k += 1
    return np.sum(x)


def read_after_a_write(x):
    x = x.copy()
    a = x[..., 0]
    x[0] = 3 * x[1]
    return a * x[1]


def in_each_pass(x):
    x = x.copy()
    s = 0.0
    for k in range(3):
        a = x[..., k]
        x[k] = x[k] * x[k + 1]
        s += a * a
    return s


def after_an_assignment(x):
    x = x.copy()
    a = x[..., 0]
    x *= 2
    return a * x[1]


def listed(x):
    x = x.copy()
    items = [x[..., 0], x[..., 1]]
    x[0] = 3 * x[1]
    return items[0] * items[1] * items[0]


def in_a_dict(x):
    x = x.copy()
    d = {"a": x[..., 0]}
    x[0] = 3 * x[1]
    return d["a"] ** 2


def reshaped(x):
    x = x.copy()
    y = np.reshape(x[:1], ())
    x[0] = 3 * x[1]
    return y ** 2


def squeezed(x):
    x = x.copy()
    y = x[:1].squeeze()
    x[0] = 3 * x[1]
    return y ** 2


def reshaped_in_a_loop(x):
    x = x.copy()
    k = 0
    while k < 3:
        y = x[k:k + 1].reshape(())
        x[k] = np.sin(y) * y * x[k + 1]
        k += 1
    return np.sum(x)


def list_then_write(x):
    x = x.copy()
    items = first_three(x)
    x[0] = x[1] * x[2]
    return np.sum(x) + np.sum(items[0] * items[1])


def list_of_reshaped(x):
    x = x.copy()
    k = 0
    items = []
    while k < 3:
        items.append(np.reshape(x[k:k + 1], ()))
        k += 1
    x[0] = x[1] * x[2]
    return np.sum(x) + np.sum(items[0] * items[1])


def one_of_two(x):
    x = x.copy()
    a = x[..., 0] if x[0] > 0 else x[..., 1]
    x[0] = x[1] * x[2]
    return np.sum(x) + a * x[1]


def carried(x):
    x = x.copy()
    a = x[..., 0]
    k = 0
    while k < 3:
        b = a
        a = x[..., k]
        x[k] = x[k] * x[k + 1]
        x[0] = x[0] + b * a
        k += 1
    return np.sum(x) + a * x[1]


def carried_in_a_counted_loop(x):
    x = x.copy()
    a = x[..., 0]
    b = a
    for k in range(3):
        a = x[..., k]
        x[k] = x[k] * x[k + 1]
        x[0] = x[0] + b * a
        b = a
    return np.sum(x) + a * x[1]


def tuple_of_them(x):
    x = x.copy()
    a = tuple(x[..., k] for k in range(len(x)))
    x[0] = x[1] * 3
    return sum(a) * x[2]


def gone_through(x):
    x = x.copy()
    s = 0.0
    for k in range(3):
        for a in (x[..., 0], x[..., k]):
            x[k] = x[1]*a
            s += a * a
    return s


def of_rows(x):
    A = np.outer(x, x)
    a = [v[..., 0] for v in A]
    A[0] = A[1] * 3
    return a[0] * x[2]


def in_tuples(x):
    x = x.copy()
    a = []
    for k in range(len(x)):
        a.append((k, x[..., k]))
    x[0] = x[1] * 3
    return a[0][1] + a[1][1] * x[2]


def extended(x):
    x = x.copy()
    a = []
    for k in range(len(x)):
        a.extend([x[..., k], x[..., 0]])
    x[0] = x[1] * 3
    return a[0] + a[-1] * x[2]


def mapped(x):
    x = x.copy()
    a = list(map(lambda k: x[..., k], range(len(x))))
    x[0] = x[1] * 3
    return a[0] + a[-1] * x[2]


def tuple_of_views(x):
    x = x.copy()
    a = tuple(x[k:k + 1] for k in range(len(x)))
    x[0] = x[1] * 3
    return np.sum(a[0]) * x[2]


def tuple_of_rows(x):
    A = np.outer(x, x)
    a = tuple(v for v in A)
    A[0] = A[1] * 3
    return np.sum(a[0]) * x[2]


def part_of_a_list(x):
    x = x.copy()
    items = first_three(x)
    u = items[:2]
    x[0] = x[1] * 3
    return np.sum(u[0]) * x[2]


def taken_from_a_list(x):
    x = x.copy()
    items = first_three(x)
    u = items[0]
    x[0] = x[1] * 3
    return u * x[2]


def taken_off_in_a_loop(x):
    x = x.copy()
    items = first_three(x)
    s = 0.0
    while items:
        v = items.pop()
        x[0] = x[1] * 3
        s += v
    return s * x[2]


def taken_off(x):
    x = x.copy()
    items = first_three(x)
    v = items.pop()
    v = items.pop()
    v = items.pop()
    x[0] = x[1] * 3
    return v * x[2]


def row_taken_from_a_list(x):
    x = x.copy()
    k = 0
    items = []
    while k < 3:
        items.append(x[k:k + 1])
        k += 1
    v = items[0]
    x[0] = x[1] * 3
    return np.sum(v * x[2])


ALL = [squared, kept_in_a_list, saved_by_the_loop, read_after_a_write, in_each_pass, after_an_assignment, listed,
       in_a_dict, reshaped, squeezed, reshaped_in_a_loop, list_then_write, list_of_reshaped, one_of_two, carried,
       carried_in_a_counted_loop, tuple_of_them, gone_through, of_rows, in_tuples, extended, mapped, tuple_of_views,
       tuple_of_rows, part_of_a_list, taken_from_a_list, taken_off_in_a_loop, taken_off, row_taken_from_a_list]
MAY_BE_REFUSED = {
    kept_in_a_list, list_then_write, list_of_reshaped, one_of_two, carried, tuple_of_them, of_rows,
    in_tuples, extended, tuple_of_views, tuple_of_rows, part_of_a_list, taken_from_a_list,
    taken_off_in_a_loop, taken_off, row_taken_from_a_list}


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_right_or_refused(f, wrap):
    want, refused = differences(f, X), 0
    for derivative in (lambda: wrap(gs.grad(f))(X.copy()), lambda: [wrap(gs.jvp_of(f))(X, e)[1] for e in np.eye(5)]):
        try:
            np.testing.assert_allclose(derivative(), want, rtol=1e-6, atol=1e-8)
        except gs.TransformError:
            refused += 1
    assert not refused or f in MAY_BE_REFUSED


@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_an_array_in_a_list_of_lists_stays_when_it_is_written(wrap):
    """The first `y` that the inner loop saves is `a` itself, which is written after both loops."""
    def f(a, t):
        v = np.array([[0.3, 0.2], [0.1, 0.4]]) * a[0]
        for _ in range(2):
            y = a
            y[0] = v[1, -1]
            while np.sum(v) < t:
                v[0] = np.sin(y) + v[0]
                y = np.tanh(y)
        a[-1] = 0.7
        return np.sum(a) + np.sum(v)

    x = np.array([0.95, 0.3])
    for t in (0.0, 4.0):
        want = differences(lambda z, t=t: f(z.copy(), t), x)
        np.testing.assert_allclose(wrap(gs.grad(f))(x, t), want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("f, x, seed", [
    (np.atleast_1d, np.float64(2.0), np.ones(1)), (lambda x: np.reshape(x, (1, 1)), 2.0, np.ones((1, 1))),
    (np.squeeze, np.array([2.0]), np.float64(1.0)), (lambda x: x[None], np.array(2.0), np.ones(1)),
    (lambda x: (x[..., 0], x), np.array([2.0, 1.0]), (1.0, np.ones(2)))])
def test_results_without_axes_are_in_memory_of_their_own(f, x, seed):
    y, pullback = gs.vjp(f, x)
    dx, = pullback(seed)
    values, tangents = gs.jvp(f, (x,), (x,))
    assert np.array_equal(dx, [2.0, 1.0] if isinstance(y, tuple) else np.ones(np.shape(x)))
    assert isinstance(dx, np.ndarray) == (np.ndim(x) > 0)
    for results in (y, values, tangents):
        for r in results if isinstance(results, tuple) else (results,):
            assert not np.may_share_memory(r, x) and not np.may_share_memory(dx, seed[1] if isinstance(
                seed, tuple) else seed)


def as_array(x):
    s = np.asarray(x[0])
    t = s
    s *= 2
    return s * t


def covariance(x):
    s = np.cov(x)
    t = s
    s += 1
    return s * t


def along_an_axis(x):
    s = np.apply_along_axis(np.sum, 0, x**2)
    t = s
    s *= 2
    return s * t


def vectorized(x):
    s = np.vectorize(lambda a: a * a)(x[0])
    t = s
    s *= 2
    return s * t


def piecewise(x):
    s = np.piecewise(x[0], [x[0] < 0, x[0] >= 0], [lambda v: -v, lambda v: v**2])
    t = s
    s *= 2
    return s * t


def in_a_list(x):
    t = np.asarray(x.sum())
    h = [t]
    t += 1.0
    h.append(t)
    return h[0] * h[1]


def not_shown(x):
    s = np.asarray(x[0] * x[1])
    s *= 2
    s += x[2]
    return s * s


@pytest.mark.parametrize("f", [as_array, covariance, along_an_axis, vectorized, piecewise, in_a_list, not_shown])
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_arrays_without_axes_that_functions_make(f, wrap):
    """An augmented assignment changes them in place, and what else has their name: refused, as a number would not."""
    try:
        np.testing.assert_allclose(wrap(gs.grad(f))(X), differences(f, X), rtol=1e-6)
        assert f is not_shown
    except gs.TransformError:
        assert f is not not_shown


def test_a_number_that_a_function_returns_is_no_view():
    """The derivative of what the function does not read is 0.0, in the function beside that of its caller."""
    def beside(x, y):
        return y + 0.4

    def f(a):
        return np.sum(beside(a[1, -1], np.sqrt(a.shape))) * np.sum(beside(a[0, -1], np.sqrt(a.shape)))

    assert gs.grad(f)(np.ones((3, 2))).tolist() == [[0, 0]] * 3


# --- every way to come from a view without axes to another -----------------------------------------------------------

WAYS = [
    "np.atleast_1d(float(p))",
    "np.atleast_1d(p.item())",
    "np.atleast_1d(p[None][0])",
    "p[None,None]",
    "p[...,None]",
    "p[None][None]",
    "np.transpose(p)",
    "p.T",
    "np.squeeze(x[:1])",
    "np.squeeze(x[:1]).T",
    "np.reshape(x[:1], ())",
    "x[:1].reshape(())",
    "p[()]",
    "p[...]",
    "np.asarray(p)",
    "np.real(p)",
    "np.ravel(p)[0]",
    "np.ravel(p)[...,0]",
    "np.broadcast_to(p, ())",
    "np.expand_dims(p, 0)[0]",
    "np.expand_dims(p, 0)[..., 0]",
    "np.atleast_1d(p)",
    "np.atleast_2d(p)[0]",
    "np.atleast_1d(np.squeeze(x[:1]))",
    "np.atleast_1d(p.T)",
    "np.atleast_1d(np.transpose(p))",
    "np.atleast_1d(np.reshape(x[:1], ()))",
    "np.reshape(p, (1,))",
    "np.reshape(p.T, (1,))",
    "np.broadcast_to(p, (2,))",
    "np.broadcast_to(p.T, (2,))",
    "np.moveaxis(x[:1, None], 0, 1)[..., 0, 0]",
    "p.copy()",
    "+p",
    "p[None]",
    "p[None][0]",
    "p[None][..., 0]",
    "np.array(p)",
    "np.array(p, copy=False)",
    "np.atleast_1d(x[0])",
    "np.atleast_1d(p[()])",
    "np.reshape(p[()], (1,))",
    "np.swapaxes(x[:1,None],0,1)[0,...,0]",
    "x[0,...]",
    "x[..., 0][..., None]",
    "np.broadcast_arrays(p, x)[0]",
    "np.broadcast_arrays(x[0], x)[0]",
    "np.diagonal(np.diag(x))[...,0]",
    "np.split(x,3)[0][...,0]",
    "np.atleast_1d(np.split(x,3)[0][...,0])",
    "x.T[...,0]",
    "x.flat[0]",
    "x.reshape(3,1)[0][...,0]",
    "np.asarray(x[0])",
    "np.asarray(p)[()]",
    "np.squeeze(p)",
    "np.atleast_1d(np.squeeze(p))",
    "np.atleast_1d(np.asarray(p))",
    "np.ravel(np.squeeze(p))",
    "np.ravel(p.real)",
    "np.ravel(np.real(p))",
    "p.real",
    "np.require(p)",
    "np.flip(p)",
    "np.flip(np.atleast_1d(p))",
    "np.atleast_3d(p)[0,0]",
    "np.lib.stride_tricks.sliding_window_view(x,1)[0][...,0]",
    "np.reshape(np.sum(x),(1,))",
    "np.atleast_1d(max(x[0],x[1]))",
    "np.atleast_1d(x[0] if x[0]>0 else p)",
    "np.atleast_1d(p if x[0]>0 else x[0])",
    "np.atleast_1d([p][0])",
    "np.atleast_1d([x[0]][0])",
    "np.atleast_1d([x[0],p][1])",
    "np.atleast_1d((lambda q: q)(x[0]))",
    "np.atleast_1d((lambda q: q)(p))",
    "np.atleast_1d((lambda q: q[0])(x))",
    "np.atleast_1d((lambda q: q[...,0])(x))",
    "np.atleast_1d(next(iter(x)))",
    "np.atleast_1d(x.item(0))",
    "np.atleast_1d(float(x[0]))",
    "np.atleast_1d(np.float64(x[0]))",
    "np.atleast_1d(np.take(x,0))",
    "np.atleast_1d(np.where(x[0]>0,x[0],p))",
    "np.atleast_1d(np.select([x[0]>0],[x[0]]))",
    "np.atleast_1d(np.nan_to_num(p,copy=False))",
    "np.atleast_1d(np.float64(p))",
    "np.atleast_1d(abs(p))",
    "np.atleast_1d(p+0)",
    "np.atleast_1d(np.clip(p,None,None))",
    "p.astype(float)",
    "p.astype(float, copy=False)",
    "np.astype(p, float)",
    "np.array(p, dtype=float)",
    "np.asarray(p, dtype=float)",
    "np.add(p,0.)",
    "np.positive(p, dtype=float)",
    "np.copy(p)",
    "np.nan_to_num(p)",
    "np.sort(x[:1])[...,0]",
    "p.view()",
    "np.array(p, copy=None)",
    "np.array(p,ndmin=1)",
    "np.array(p,ndmin=1,copy=False)",
    "p.conj()",
    "np.conj(p)",
    "p.clip(None,9.)",
    "np.abs(p)",
    "p.squeeze()",
    "p.item()",
    "p.sum()",
    "p.max()",
    "p.mean()",
    "np.sum(p)",
    "np.max(p)",
    "np.cumsum(p)",
    "p.ravel()",
    "p.flatten()",
    "p.reshape(1)",
    "p.reshape(-1)",
    "p.reshape(())",
    "p.transpose()",
    "p.repeat(1)",
    "p.take(0)",
    "np.take(p,[0,0])",
    "p.astype(complex).real",
    "np.tile(p,1)",
    "np.trim_zeros(p.reshape(1))",
    "np.where(True,p,p)",
    "max(p,-9.)",
    "sum([p])",
    "abs(p)",
    "-(-p)",
    "p*1",
    "p**1",
    "p/1",
    "p+0",
    "np.float_power(p,1)",
    "np.multiply(p,1.)",
    "np.stack([p])",
    "np.concatenate([p[None]])",
    "np.mean([p])",
    "np.hstack([p])",
    "np.array([p])",
    "np.einsum('->',p)",
    "np.linalg.norm(p.reshape(1))",
    "np.imag(1j*p)",
    "np.vectorize(lambda t: t)(p)",
    "np.broadcast_to(p,())",
    "np.broadcast_arrays(p)[0]",
    "np.squeeze(p[None])",
    "(p,)[0]",
    "[p][0]",
    "{'a':p}['a']",
    "(lambda t: t)(p)",
    "p if p>0 else p",
    "np.maximum(p,p)",
]
USES = {            # p is the view, or an array without axes of its own
    "read": "x[0] = 5.0 * x[1]; return np.sum(v * 3) + np.sum(x)",
    "set": "v[...] = 3.0 * x[1]; return np.sum(v ** 2) + np.sum(x ** 2)",
    "written": "v *= 2.0; return np.sum(v * 3) + np.sum(x)",
    "held": "u = [v]; x[:] = x[::-1] * 2.0; return np.sum(u[0] * 3) + np.sum(x)",
}
MAY_NOT_BE_KNOWN = {way for way in WAYS if " if x[0]" in way or "copy=False" in way or way == "max(p,-9.)"}


@pytest.mark.filterwarnings("ignore:Numpy has detected")      # that what np.broadcast_arrays gives is written
@pytest.mark.parametrize("way", WAYS)
def test_what_a_way_shows(way):
    """Each is the array's own memory or its own, as NumPy has it; where a test decides, it is refused."""
    programs = {use: f"x = x * 1.0; p = x[..., 0]; v = {way}; {rest}" for use, rest in USES.items()}
    programs["of its own"] = (f"x = x * 1.0; q = np.asarray(x[1]); p = q; v = {way}; v *= 2.0; "
                              "return np.sum(v * 3) + np.sum(x) + q ** 2")
    tried = 0
    for use, text in programs.items():
        lines = "".join(f"    {line}\n" for line in text.split("; "))
        f = from_text(f"def f(x):\n{lines}", "f", {"np": np})
        try:
            want = differences(f, X[:3])
        except (TypeError, ValueError):         # a number is not written, nor what NumPy locks
            continue
        tried += 1
        try:
            np.testing.assert_allclose(gs.grad(f)(X[:3]), want, rtol=1e-7, atol=1e-8, err_msg=use)
        except gs.TransformError as error:
            assert use in ("set", "written", "of its own") or way in MAY_NOT_BE_KNOWN, error
    assert tried >= 2               # what NumPy locks is read, and held
