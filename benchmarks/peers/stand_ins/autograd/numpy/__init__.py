"""NumPy, and one function that autograd adds to it."""
import numpy

from autograd.numpy import linalg

__all__ = ["linalg", "make_diagonal"]


def __getattr__(name):
    return getattr(numpy, name)


def make_diagonal(D, offset=0, axis1=0, axis2=1):
    """Matrices with the last axis of D on their diagonals."""
    if (offset, axis1, axis2) != (0, -1, -2):
        raise NotImplementedError("only offset=0, axis1=-1, axis2=-2")
    return D[..., None] * numpy.eye(D.shape[-1])
