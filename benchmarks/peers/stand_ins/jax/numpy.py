"""NumPy, and the short floating-point types of ml_dtypes.

Some functions of JAX's take words that say how a device computes, which change nothing here.
"""
import functools
import sys

import ml_dtypes
import numpy as np

import gradscribe as gs
from jax.inside import Module


class _Along:
    """A reduction of NumPy's whose axes may be a list."""

    def __init__(self, fun):
        self.fun = fun
        functools.update_wrapper(self, fun)

    def __call__(self, a, axis=None, *rest, **words):
        return self.fun(a, tuple(axis) if isinstance(axis, list) else axis, *rest, **words)

    def normal_form_(self, reader, args, words, node):
        from gradscribe.ast_transform.reader import dispatch
        return dispatch.call_known(reader, self.fun, args, words, node)


sum, prod, max, min, mean = map(_Along, (np.sum, np.prod, np.max, np.min, np.mean))


def dot(a, b, *, precision=None, preferred_element_type=None):
    return np.dot(a, b)


def matmul(a, b, *, precision=None, preferred_element_type=None):
    return np.matmul(a, b)


def tensordot(a, b, axes=2, *, precision=None, preferred_element_type=None):
    return np.tensordot(a, b, axes)


def vecdot(a, b, *, axis=-1, precision=None, preferred_element_type=None):
    return np.vecdot(a, b, axis=axis)


def einsum(subscripts, *operands, out=None, optimize="auto", precision=None, preferred_element_type=None):
    return np.einsum(subscripts, *operands)


def cholesky(a, *, upper=False, symmetrize_input=True):
    made = gs.lax.linalg.cholesky(a, symmetrize_input=symmetrize_input)
    return np.matrix_transpose(made).conj() if upper else made


def multi_dot(arrays, *, precision=None):
    return np.linalg.multi_dot(arrays)


def slogdet(a, *, method=None):
    return np.linalg.slogdet(a)


def lstsq(a, b, rcond=None, *, numpy_resid=False):
    return np.linalg.lstsq(a, b, rcond)


linalg = sys.modules["jax.numpy.linalg"] = Module("jax.numpy.linalg")
vars(linalg).update({name: getattr(np.linalg, name) for name in np.linalg.__all__})
vars(linalg).update({f.__name__: f for f in (cholesky, lstsq, matmul, multi_dot, slogdet, tensordot, vecdot)})


def __getattr__(name):
    return getattr(np if hasattr(np, name) else ml_dtypes, name)
