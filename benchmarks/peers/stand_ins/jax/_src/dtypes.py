"""Kinds of numbers, NumPy's and those of ml_dtypes."""
import ml_dtypes
import numpy as np

from jax.inside import Absent

float0, bfloat16 = np.dtype([("float0", np.void, 0)]), ml_dtypes.bfloat16
issubdtype, result_type, dtype = np.issubdtype, np.result_type, np.result_type


def canonicalize_dtype(dtype, allow_extended_dtype=False):
    return np.dtype(dtype)


def finfo(dtype):
    return ml_dtypes.finfo(dtype)


def iinfo(dtype):
    return np.iinfo(dtype)


def default_int_dtype():
    return np.dtype("int64")


def default_float_dtype():
    return np.dtype("float64")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Absent(f"jax._src.dtypes.{name}")
