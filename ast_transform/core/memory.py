# SPDX-License-Identifier: Apache-2.0
"""The words by which a record says what an operation does to memory, and what else it may do than give a result.

    FRESH       a new array
    VIEW        a view of all entries of the first array: the record's adjoint puts them back where they were
    PART        a view of some of the entries
    LOCKED      a view that NumPy does not let be written
    CONTIGUOUS  a view where the entries lie side by side in the order that is asked for, a copy elsewhere
    ALIAS       may share memory with the first array, or be it
    ALIASES     may share memory with any operand: what is said of an operation that no record describes
    UPDATES     the first operand after a write into it
    HOLDS       a container that holds its operands, or the first operand after a change of what it holds

A record says one of them (`memory=FRESH`), or has a part `memory` where the arguments decide: it is given their values,
the types of arrays, and UNKNOWN for what is known only when running, of which nothing may be asked.
"""
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Memory:
    name: str
    shares: str = ""            # which operands the result may share memory with: none, the first, or all
    certain: bool = False       # it does share it

    def __repr__(self):
        return self.name


FRESH = Memory("FRESH")
VIEW, PART, LOCKED = Memory("VIEW", "first", True), Memory("PART", "first", True), Memory("LOCKED", "first", True)
CONTIGUOUS, ALIAS, ALIASES = Memory("CONTIGUOUS", "first"), Memory("ALIAS", "first"), Memory("ALIASES", "all")
UPDATES, HOLDS = Memory("UPDATES", "first"), Memory("HOLDS", "all", True)


class Undecided(Exception):
    """A record's memory depends on a value that is known only when running."""


class _Unknown:
    """The value of an argument that is known only when running."""

    def _ask(self, *_):
        raise Undecided

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _ask
    __bool__ = __len__ = __iter__ = __index__ = __contains__ = __getitem__ = _ask
    __hash__: Any = None

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise Undecided


UNKNOWN = _Unknown()
