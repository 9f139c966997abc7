"""Transformations of functions of several arguments."""
import numpy as np

import gradscribe as gs
from autograd import core
from autograd.wrap_util import unary_to_nary

make_vjp, make_jvp = unary_to_nary(core.make_vjp), unary_to_nary(core.make_jvp)


def grad(fun, argnum=0):
    return gs.grad(_scalar(fun), argnum)


def value_and_grad(fun, argnum=0):
    scalar = _scalar(fun)

    def both(*args, **kwargs):
        y = scalar(*args, **kwargs)
        return y, np.reshape(fun(*args, **kwargs), np.shape(y))

    def value_and_gradient(*args, **kwargs):
        (_, y), dx = gs.value_and_grad(both, argnum, has_aux=True)(*args, **kwargs)
        return y, dx
    return value_and_gradient


def _scalar(fun):
    """fun, whose result has one entry, with a result without axes."""
    def scalar(*args, **kwargs):
        y = fun(*args, **kwargs)
        if np.size(y) != 1:
            raise TypeError("grad is for functions with a result of one entry")
        return np.reshape(y, ())
    return scalar


def elementwise_grad(fun, argnum=0):
    return gs.grad(lambda *args, **kwargs: np.sum(fun(*args, **kwargs)), argnum)


@unary_to_nary
def deriv(fun, x):
    return gs.jvp(fun, (x,), (np.ones_like(x),))[1]


def jacobian(fun, argnum=0):
    return gs.jacrev(fun, argnum)


def hessian(fun, argnum=0):
    return jacobian(jacobian(fun, argnum), argnum)


def holomorphic_grad(fun, argnum=0):
    return grad(lambda *args, **kwargs: np.real(fun(*args, **kwargs)), argnum)


@unary_to_nary
def make_hvp(fun, x):
    return core.make_vjp(grad(fun), x)


def hessian_tensor_product(fun, argnum=0):
    def product(*args, **kwargs):
        return np.tensordot(grad(fun, argnum)(*args[:-1], **kwargs), args[-1], np.ndim(args[-1]))
    return grad(product, argnum)


def tensor_jacobian_product(fun, argnum=0):
    def product(*args, **kwargs):
        return np.tensordot(args[-1], fun(*args[:-1], **kwargs), np.ndim(args[-1]))
    return jacobian(product, argnum)


hessian_vector_product, vector_jacobian_product = hessian_tensor_product, tensor_jacobian_product


def make_ggnvp(f, g=lambda y: 0.5 * np.sum(y ** 2, axis=-1), f_argnum=0):
    @unary_to_nary
    def product_maker(f, x):
        y, pull = gs.vjp(f, x)

        def product(v):
            y_dot = gs.jvp(f, (x,), (v,))[1]
            return pull(gs.hvp(g, (y,), (y_dot,)))[0]
        return product
    return product_maker(f, f_argnum)


def grad_and_aux(fun, argnum=0):
    return gs.grad(fun, argnum, has_aux=True)


def checkpoint(fun):
    return gs.checkpoint(fun)
