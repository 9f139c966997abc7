"""Pullbacks and pushforwards of functions of one argument, and the spaces of values."""
import gradscribe as gs
from autograd.extend import primitive
from autograd.spaces import vspace

__all__ = ["make_jvp", "make_vjp", "primitive", "primitive_vjps", "vspace"]
primitive_vjps = {}


def make_vjp(fun, x):
    """(pullback, value); the pullback is zero where the value is a truth value or a whole number."""
    y, pull = gs.vjp(fun, x)
    return (lambda dy: pull(dy)[0]), y


def make_jvp(fun, x):
    """v -> (value, derivative in the direction v)."""
    return lambda v: gs.jvp(fun, (x,), (v,))
