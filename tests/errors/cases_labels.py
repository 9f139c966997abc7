"""Arrays with labels or units: what means something else for them, and labels and units that do not fit."""
import numpy as np
from errors.cases import refused

import gradscribe as gs
from gradscribe import KindError


class Track:
    """Heights with a name, whose operators and methods are its own."""

    def __init__(self, heights, name):
        self.heights, self.name = heights, name

    def __mul__(self, other):
        if other.name != self.name:
            raise ValueError(f"{self.name} and {other.name} do not align")
        return Track(self.heights * other.heights, self.name)

    def sum(self):
        return self.heights.sum()

    def std(self):
        return self.heights.std(ddof=1)


class Length:
    """A number of some unit, a power of the metre."""

    def __init__(self, number, power):
        self.number, self.power = number, power

    def __mul__(self, other):
        return Length(self.number * other.number, self.power + other.power)

    def __pow__(self, exponent):
        return Length(self.number ** exponent, self.power * exponent)


gs.register_container(Track, lambda t: t.heights, lambda t: t.name, lambda name, heights: Track(heights, name),
                      along=(lambda t, axis: (t.heights[0], t.name), lambda a, b: a == b,
                             lambda name, y, heights, axis: Track(heights, name)))
gs.register_container(Length, lambda x: x.number, lambda x: x.power, lambda power, number: Length(number, power),
                      derivative=lambda x, y, dy: (y or 0) + (dy or 0) - (x or 0))
NORTH, SOUTH = Track(np.array([0.5, 1.5, 2.5]), "north"), Track(np.array([1.0, 1.0, 2.0]), "south")


@refused(KindError)
def container_of_no_class():
    gs.register_container(3, len, len, len)


@refused(KindError)
def method_that_means_something_else_for_labels():
    def f(t):
        return t.std()
    gs.grad(f)(NORTH)


@refused(KindError)
def labels_that_do_not_align():
    def f(s, t):
        return (s * t).sum()
    gs.grad(f)(NORTH, SOUTH)


@refused(KindError)
def tangent_without_a_unit():
    def f(x):
        return x * x
    gs.jvp(f, (Length(2.0, 1),), (1.0,))


@refused(KindError)
def tangent_with_other_labels():
    def f(t):
        return t * t
    gs.jvp(f, (NORTH,), (SOUTH,))


@refused(KindError)
def adjoint_with_other_labels():
    def f(t):
        return t * t
    gs.vjp(f, NORTH)[1](SOUTH)


@refused(KindError)
def batch_of_quantities():
    def f(x):
        return x * x
    gs.vmap(f)(Length(np.array([1.0, 2.0]), 1))


@refused(KindError)
def labels_on_many_devices():
    def f(t):
        return t * 2
    gs.pmap(f)(NORTH)


@refused(KindError)
def batch_whose_labels_do_not_align():
    def f(s, t):
        return s * t
    gs.vmap(f)(NORTH, SOUTH)


@refused(KindError)
def unit_of_the_result_that_depends_on_the_argument():
    def f(x, n):
        return x ** n
    gs.grad(f, argnums=1)(Length(2.0, 1), 3.0)
