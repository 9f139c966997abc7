"""What a call is made on, where reading its arguments changes it or goes two ways: it is the same object still."""
import functools

import numpy as np
import pytest

import gradscribe as gs


class Cell:
    def __init__(self, rate):
        self.rate = rate
        self.child = self

    def get(self, k=1):
        if self.rate[0] > 0:
            return 3.0 * k
        return 2.0

    def touch(self, k=1.0):
        if self.rate[0] > 0:
            self.rate = self.rate * 3.0
            return k
        self.rate = self.rate * 2.0
        return 2 * k

    def idx(self):
        return 1 if self.rate[0] > 0 else 2

    def update(self, by):
        self.rate = self.rate * by

    def __call__(self, by):
        self.rate = self.rate * by
        return self.rate[0]

    def __add__(self, by):
        self.rate = self.rate + by
        return self

    def __iadd__(self, by):
        self.rate = self.rate + by
        return self

    def __getitem__(self, k):
        return self.rate[k]

    def __setitem__(self, k, v):
        self.rate[k] = v

    @property
    def scale(self):
        return self.rate[1]

    @scale.setter
    def scale(self, by):
        self.rate = self.rate * by


class Sub(Cell):
    def update(self, by):
        super().update(self.touch(by))


class Two:
    def __init__(self, rate):
        self.a = Cell(rate)
        self.b = self.a

    def touch(self):
        if self.a.rate[0] > 0:
            self.b.rate = self.b.rate * 2
            return 2.0
        return 1.0


def scale(cell, by):
    cell.rate = cell.rate * by


def made(s, kind=Cell):
    return kind(s * np.arange(1.0, 4.0))


def end(cell):
    return np.sum(np.tanh(0.02 * cell.rate) * np.arange(1.0, 4.0))


CALLS = {
    "a method, given what a method says": lambda c: c.update(c.get()),
    "a method, given what a method changes": lambda c: c.update(c.touch()),
    "a call of the object": lambda c: c(c.get()),
    "a call of the object that changes": lambda c: c(c.touch()),
    "twice": lambda c: c.update(c.touch() + c.touch(0.5)),
    "of a built-in": lambda c: c.update(max(c.touch(), c.touch(0.5))),
    "by getattr": lambda c: getattr(c, "update")(c.touch()),  # noqa: B009 (what getattr gives is tested)
    "of the class": lambda c: Cell.update(c, c.touch()),
    "of what it holds": lambda c: c.child.update(c.touch()),
    "an operator": lambda c: c + c.touch(),
    "an entry": lambda c: c[c.idx()] * c.touch(),
    "a function with arguments given": lambda c: functools.partial(scale, c)(c.touch()),
    "a function, by words": lambda c: scale(by=c.touch(), cell=c),
    "in a list": lambda c: [c.update(c.touch()) for _ in range(2)],
    "an array's method": lambda c: c.update(c.rate.dot(c.touch() * c.rate)),
    "written by NumPy": lambda c: np.multiply(c.rate, c.touch(), out=c.rate),
}


def kept_method(s):
    c = made(s)
    update = c.update
    update(c.touch())
    return end(c)


def changed_between(s):
    c = made(s)
    update = c.update
    if s > 0:
        c.rate = c.rate * 2
    update(1.5)
    return end(c)


def set_entry(s):
    c = made(s)
    c[c.idx()] = c.touch()
    return end(c)


def added(s):
    c = made(s)
    c += c.touch()
    c.rate += c.touch()
    c.rate[c.idx()] += c.touch()
    c.scale = c.touch()
    c.scale += c.touch()
    return end(c)


def by_super(s):
    c = made(s, Sub)
    c.update(c.touch())
    return end(c)


def shared(s):
    two = made(s, Two)
    two.a.update(two.touch() + two.touch())
    return end(two.b)


def side_by_side(s):
    c = made(s)
    x, c.rate = c.touch(), c.rate * 2
    y = c.rate[0] if c.touch() > 1.5 else c.rate[1]
    return x * end(c) + y


def in_closures(s):
    c = made(s)
    def scaled(by, cell=c):
        cell.rate = cell.rate * by
    scaled(c.touch())
    (lambda by: c.update(by))(c.touch())
    return end(c)


def check(f):
    for s in (0.3, -0.3):
        expected, slope = f(s), (f(s + 1e-5) - f(s - 1e-5)) / 2e-5
        for derived in (gs.value_and_grad(f), gs.jit(gs.value_and_grad(f))):
            value, ds = derived(s)
            np.testing.assert_allclose(value, expected, rtol=1e-12)
            np.testing.assert_allclose(ds, slope, rtol=1e-6, atol=1e-7)
        value, ds = gs.jvp(f, (s,), (1.0,))
        np.testing.assert_allclose([value, ds], [expected, slope], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    call = CALLS[name]

    def f(s):
        c = made(s)
        call(c)
        return end(c)
    check(f)


@pytest.mark.parametrize("f", [kept_method, changed_between, set_entry, added, by_super, shared, side_by_side,
                               in_closures])
def test_statements(f):
    check(f)
