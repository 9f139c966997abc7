# SPDX-License-Identifier: Apache-2.0
"""How the result of an operation relates to the memory of its operands, as records declare it.

    FRESH       a new array
    VIEW        a view of all entries of the first array: the record's adjoint puts them back where they were
    PART        a view of some of the entries
    LOCKED      a read-only view
    CONTIGUOUS  a view if the entries are contiguous in the requested order, else a copy
    ALIAS       may share memory with the first array, or be it
    ALIASES     may share memory with any operand: the default for an operation without a record
    UPDATES     the first operand after a write into it
    HOLDS       a container that holds its operands, or the first operand after a change of its contents

A record declares one of them (`memory=FRESH`), or has a function `memory` if it depends on the arguments.  The function
gets the values of static arguments, the facts of arrays, and for values that are known only when running UNKNOWN, on
which every operation raises Undecided.
"""
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Memory:
    name: str
    shares: str = ""            # which operands the result may share memory with: "" (none), "first" or "all"
    certain: bool = False       # whether it certainly does

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
