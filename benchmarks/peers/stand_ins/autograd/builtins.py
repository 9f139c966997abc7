"""Containers need no types of their own."""
from builtins import dict, isinstance, list, tuple, type

__all__ = ["dict", "isinstance", "list", "tuple", "type"]
