"""Nothing is traced: no value is ever in a box."""
from autograd.extend import primitive

__all__ = ["getval", "isbox", "primitive"]


def isbox(value):
    return False


def getval(value):
    return value
