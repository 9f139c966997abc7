"""Helpers that the cases call, in a file of their own: a message shows both places."""
import dataclasses

import numpy as np


def normalised(x):
    return x / np.real_if_close(x)


def scaled(x, by=2.0):
    return x * by


def product(W, x):
    return W @ x


def outermost(W, x):
    return np.sum(product(W, x) ** 2)


def twice_down(x, n):
    if n < 1:
        return x
    return twice_down(x, n - 1) * twice_down(x, n - 2)

def endless(x):
    return endless(x * 0.5) * np.sum(x)


class Plain:
    pass


@dataclasses.dataclass
class Pair:
    a: float
    b: float

    def __post_init__(self):
        self.whole = self.a + self.b

    @property
    def size(self):
        return self.a * self.b


@dataclasses.dataclass(frozen=True)
class Fixed:
    a: float

    def __post_init__(self):
        pass


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: float


class Handed:
    """Says itself how it is copied."""

    def __init__(self, w):
        self.w = w

    def __copy__(self):
        return Handed(self.w)


class Walker:
    """Goes through itself."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return self

    def __next__(self):
        return self.items.pop()


class Doubled:
    def __get__(self, instance, owner):
        return 2 * instance.w


class Described:
    twice = Doubled()

    def __init__(self, w):
        self.w = w
