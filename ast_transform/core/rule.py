# SPDX-License-Identifier: Apache-2.0
"""The rule record: everything that the compiler knows about one NumPy function.

A record is a class whose parts are ordinary functions.  The names of parts and of their parameters have a meaning: `y`
is the result, `dy` its adjoint, `x_dot` the tangent of `x`; every other parameter is an argument of the function.

    primal(x, axis=None)        the call in its canonical form; its signature says which arguments are supported
    partial_x(...)              elementwise: the derivative of each entry with respect to the entry of x
    vjp_x(dy, ...)              the adjoint of x, or something that broadcasts to it (constant along the other axes)
    jvp_x(x_dot, ...)           the contribution of x to the tangent of the result
    batch(...)                  the call if operands have a batch axis in front (rules/batching.py)
    scalar(x)                   elementwise: one entry in compiled code, by numbers (codegen/entry_forms.py)
    compiled(x, axis=None)      what compiled code computes in place of the call
    wider(x, axis=None, ...)    the call with arguments that primal lacks, by other functions; inlined
    memory(x, axis=None)        how the result relates to memory (core/memory.py), if that depends on the arguments
    taylor_x(...)               elementwise: another form of partial_x, for Taylor mode (passes/series.py)
    stacks(a, b)                of a product whose terms are added up: whether the result keeps an axis that two
                                operands share, as the product of two stacks does; None for calls that are no product
    times(y, b)                 what the result solves: times(y, b) = a, with solves=("a", "b"); linear in each
    error(...), rounding(...), residual(...)    bounds of rounding errors, added by rules/rounding.py
    written(x, y)               x after a write of y into its part that the result is a view of

Some options say how a list or tuple is taken as an argument, at any depth.  An argument with a derivative is an array.

    arrays=("q",)               as an array, too: np.quantile(x, [0.1, t])
    sequence=("arrays",)        as a sequence of arrays, each of which may be a list: np.concatenate([x, [t]])
    as_given=("range",)         unchanged: the parts of the record take it apart
    joins=True                  the sequence is joined to one array; one array instead is taken as its rows, by `wider`

Others give facts (core/kinds.py) and roles of a call.

    fact=f                      dtype and lengths of the result; None, or without it: by a trial call (probing.py)
    lengths=f                   pairs of lengths that must be equal, of operands by name; pairs of tuples broadcast

    algebra="sum"               its role where sums of products are rewritten (passes/algebra.py): sum, difference,
                                product, quotient, negation, total (over axes), average, root, exponential,
                                transpose, matrix product, outer product
    entries=0                   all entries of its result, a new array: a number, or the argument that has it
    by_shape=np.zeros           with reads="shape": the function that makes the same from a tuple of lengths
    word="diff"                 the name of a temporary that holds its result, in printed source (passes/words.py)

    numba=True                  Numba has the function for numbers: compiled code calls it as it stands

Others help a backward loop that reads a result to choose between saving it and computing it again.

    cheap=True                  it is computed again rather than saved, as views and lengths; or a function of operands
    reads="part"                it reads only the entries at an index of its first operand, an array; "shape": none
    jumps=True                  rounding may change the result by a jump, so it is saved; "order": not against 0
"""
import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.memory import FRESH, Memory


class Table(dict):
    """A table by function, which loads the rules for optional packages only when they are needed.

    The rules for a package are loaded once the program has imported it, when a function is not found.  So no package is
    imported for its rules.  Rules of a function whose derivative needs such a package are loaded at its first use.
    """

    def __init__(self):
        super().__init__()
        self.waiting = {}               # package -> module that adds its rules
        self.elsewhere = {}             # function -> module that adds its rule

    def wait_for(self, package, module, functions=()):
        self.waiting[package] = module
        self.elsewhere.update(dict.fromkeys(functions, module))

    def complete(self):
        """Loads the rules for packages that have been imported since."""
        for package in [p for p in self.waiting if p in sys.modules]:
            module = self.waiting.pop(package, None)        # None: loaded meanwhile, by the import of another
            if module is not None:
                importlib.import_module(module)

    def get(self, function, default=None):
        found = super().get(function)
        return found if found is not None else self[function] if function in self else default

    def __contains__(self, function):
        if super().__contains__(function):
            return True
        if function in self.elsewhere:
            importlib.import_module(self.elsewhere.pop(function))
        self.complete()
        return super().__contains__(function)

    def __missing__(self, function):
        if function in self:
            return self[function]
        raise KeyError(function)


RULES: Table = Table()              # function -> Rule
OPERATIONS: dict[Any, "Operation"] = {}     # function -> Operation, for those that need no rule
STATIC: set[Any] = set()            # functions that rule parts call when transforming


@functools.cache
def signature_of(part: Callable[..., Any]) -> inspect.Signature:
    """The parameters of a part of a record."""
    return inspect.signature(part)


class ByExample(Exception):
    """A call has no whole-batch form: each example needs its own call.  The text says why."""


ARRAY, SEQUENCE, AS_GIVEN = "arrays", "sequence", "as_given"
STATIC_ARGUMENTS = set("""
    axis axes keepdims ddof dtype axisa axisb axisc axis1 axis2 offset mode source destination order subscripts
    full_matrices UPLO norm ord endpoint indexing side kind compute_uv hermitian decimals window_shape
""".split())                            # arguments that must be static, in all functions
PACKAGES = ("numpy", "scipy", "gradscribe")         # packages whose functions have rules here
_DIFFERENTIATING = ("partial_", "vjp_", "jvp_")


@dataclass(eq=False)
class Rule:
    kind: str                       # elementwise, linear, bilinear, general, constant
    functions: tuple                # the functions that share the record, the canonical one first
    label: str
    parts: dict[str, Callable]
    active: tuple[str, ...]         # arguments with a derivative
    signature: inspect.Signature
    samples: Callable | None = None
    special: tuple = ()
    options: dict = field(default_factory=dict)
    memory: Memory | None = None    # None: the part `memory` decides; without one, the result may alias every operand.
                                    # Elementwise ufuncs are FRESH
    raises: bool | str = False      # whether it may raise; "numbers": for Python's numbers, not for arrays
    changes = False

    @property
    def function(self):
        return self.functions[0]

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(self.signature.parameters)

    def has_derivative(self) -> bool:
        return self.kind != "constant" and bool(self.active)

    def takes(self, argument) -> str:
        """How a list is taken as an argument: ARRAY, SEQUENCE, AS_GIVEN, or "" if the record does not say.

        A user's function gets the list that it is called with.
        """
        for what in (SEQUENCE, AS_GIVEN, ARRAY):
            if argument in self.options.get(what, ()):
                return what
        if argument in STATIC_ARGUMENTS:
            return AS_GIVEN
        entrywise = self.kind == "elementwise" or self.options.get("elementwise")
        if entrywise or argument in self.active:
            return ARRAY
        return AS_GIVEN if self.is_of_a_user() else ""

    def is_of_a_user(self) -> bool:
        """Whether the record is for a user's function, whose cost is unknown."""
        return inspect.isfunction(self.function) and self.function.__module__.split(".")[0] not in PACKAGES


@dataclass(eq=False)
class Operation:
    """The record of an operation whose derivative is built into the passes, or that has none."""
    function: Any
    memory: Memory | None
    changes: bool = False           # it changes its first operand, which is the result
    raises: bool = True
    parts: dict[str, Callable] = field(default_factory=dict)
    options: dict = field(default_factory=dict)

    @property
    def signature(self):
        return signature_of(self.parts["memory"])


def operation(*functions: Any, memory: Any = None, changes: bool = False, raises: bool = True, **options: Any) -> None:
    """Adds records of operations without a rule to the table; `memory` may be a function of the arguments."""
    part = {} if memory is None or isinstance(memory, Memory) else {"memory": memory}
    for each in functions:
        OPERATIONS[each] = Operation(each, None if part else memory, changes, raises, part, options)


def _signature(kind, function, parts, active):
    if "primal" in parts:
        return inspect.signature(parts["primal"])
    names = active or ("x",)
    parameter = inspect.Parameter
    return inspect.Signature([parameter(n, parameter.POSITIONAL_OR_KEYWORD) for n in names])


def _kind(kind):
    def declare(function, *active, alias=(), samples=None, special=(), memory=None, raises=False,
                **options):
        """Adds a record to the table; `active` names the arguments with a derivative, in order."""
        def record(cls):
            parts = {n: p for n, p in vars(cls).items() if inspect.isfunction(p)}
            stems = [n.split("_", 1)[1] for n in parts if n.startswith(_DIFFERENTIATING)]
            names = active or tuple(dict.fromkeys(stems))
            functions = (function, *alias)
            made = FRESH if kind == "elementwise" and any(isinstance(f, np.ufunc) for f in functions) else None
            rule = Rule(kind, functions, cls.__name__, parts, names, _signature(kind, function, parts, names),
                        samples, tuple(special), options, memory or (None if "memory" in parts else made), raises)
            for each in functions:
                if each in RULES:
                    raise ValueError(f"{each!r} has two records: {RULES[each].label} and {cls.__name__}")
                RULES[each] = rule
            return cls
        return record
    return declare


elementwise, linear, bilinear, general, constant = map(
    _kind, ("elementwise", "linear", "bilinear", "general", "constant"))


def static(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a helper of rule parts that is called when transforming, with ranks and literal arguments."""
    STATIC.add(function)
    return function
