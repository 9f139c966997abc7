"""NumPy, and the short floating-point types of ml_dtypes."""
import ml_dtypes
import numpy


def __getattr__(name):
    return getattr(numpy if hasattr(numpy, name) else ml_dtypes, name)
