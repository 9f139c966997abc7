# SPDX-License-Identifier: Apache-2.0
"""The rule record: all that is known of one NumPy function.

A record is a class whose parts are ordinary functions.  Parts are known by name and so are their parameters: `y` is the
result, `dy` its adjoint, `x_dot` the tangent of `x`; every other parameter is an argument of the function.

    primal(x, axis=None)        the call in its canonical form; its signature says which arguments are understood
    partial_x(...)              elementwise: the derivative of each entry with respect to the entry of x
    vjp_x(dy, ...)              the adjoint of x, or something that broadcasts to it (constant along the other axes)
    jvp_x(x_dot, ...)           the contribution of x to the tangent of the result
    batch(...)                  the call where operands have an axis of examples in front (rules/batching.py)
    scalar(x)                   elementwise: one entry in compiled code, by numbers (codegen/entry_forms.py)
    compiled(x, axis=None)      what compiled code computes in place of the call
    wider(x, axis=None, ...)    the call with arguments that primal lacks, by other functions; read in place of the call
    memory(x, axis=None)        what the result has to do with memory (core/memory.py), where the arguments decide
    written(x, y)               the array, of which the result shows a part, after that part has become y

Options say what a list or tuple is where an argument is one, at any depth.  An argument with a derivative is an array.

    arrays=("q",)               an array too: np.quantile(x, [0.1, t])
    sequence=("arrays",)        arrays one after the other, each of them perhaps a list: np.concatenate([x, [t]])
    as_given=("range",)         neither: the parts of the record take it apart
    joins=True                  the first argument is joined to one array: of one array its rows are, by the part wider

Options say what can be certain of a call, of operands as core/kinds.py describes them.

    fact=f                      dtype and lengths of the result; None, or without it: the function is asked (probing.py)
    lengths=f                   pairs of lengths that must be equal, of operands by name; pairs of tuples broadcast

    algebra="sum"               what it is where sums of products are rewritten (passes/algebra.py): sum, difference,
                                product, quotient, negation, total (over axes), root, exponential, transpose,
                                matrix product, outer product
    word="diff"                 the name of a temporary that it gives, in source that is read (passes/words.py)

    numba=True                  Numba has the function for numbers: compiled code calls it as it stands

Options say what a backward loop needs to know of an operation that it reads the result of.

    cheap=True                  it is made again rather than saved, as views are, and lengths; or a function of operands
    reads="part"                of its first operand, an array, it reads the entries of an index; "shape": none
    jumps=True                  the last bit of a number decides what it gives: it is saved; "order": not against 0
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
    """A table by function.

    What is said of a package that a program need not have is read when the program has imported it: at the first
    function that is not found.  So no package is imported for its rules.  A function whose derivative needs such a
    package is read with it, when it is first met.
    """

    def __init__(self):
        super().__init__()
        self.waiting = {}               # package -> module that adds to the table
        self.elsewhere = {}             # function -> the module that says what it is

    def wait_for(self, package, module, functions=()):
        self.waiting[package] = module
        self.elsewhere.update(dict.fromkeys(functions, module))

    def complete(self):
        """Read what waits for packages that are there now."""
        for package in [p for p in self.waiting if p in sys.modules]:
            module = self.waiting.pop(package, None)        # None: read meanwhile, by the import of another
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


RULES: Table = Table()              # of Rules, by the function itself
OPERATIONS: dict[Any, "Operation"] = {}     # those that no rule is needed for, in the same way
STATIC: set[Any] = set()            # functions that rule parts call while transforming


@functools.cache
def signature_of(part: Callable[..., Any]) -> inspect.Signature:
    """The parameters of a part of a record."""
    return inspect.signature(part)


class ByExample(Exception):
    """A call has no form for a whole batch: each example needs a call of its own.  The text says why."""


ARRAY, SEQUENCE, AS_GIVEN = "arrays", "sequence", "as_given"
STATIC_ARGUMENTS = set("""
    axis axes keepdims ddof dtype axisa axisb axisc axis1 axis2 offset mode source destination order subscripts
    full_matrices UPLO norm ord endpoint indexing side kind compute_uv hermitian decimals window_shape
""".split())                            # what must be known when transforming, whatever it is an argument of
PACKAGES = ("numpy", "scipy", "gradscribe")         # whose functions the tables are of
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
    memory: Memory | None = None    # None: the part `memory` says it, or nothing does and it may alias every operand.
                                    # What a ufunc of each entry makes is FRESH
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
        """What an argument is taken for: ARRAY, SEQUENCE of arrays, AS_GIVEN, or nothing that the record says.

        A function of the user's is given the list that it is called with.
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
        """Whether the record is of a function of the user's, which may cost anything."""
        return inspect.isfunction(self.function) and self.function.__module__.split(".")[0] not in PACKAGES


@dataclass(eq=False)
class Operation:
    """The record of an operation that the passes know a derivative of themselves, or that has none."""
    function: Any
    memory: Memory | None
    changes: bool = False           # its first operand is changed: the result is that operand afterwards
    raises: bool = True
    parts: dict[str, Callable] = field(default_factory=dict)
    options: dict = field(default_factory=dict)

    @property
    def signature(self):
        return signature_of(self.parts["memory"])


def operation(*functions: Any, memory: Any = None, changes: bool = False, raises: bool = True, **options: Any) -> None:
    """Put records of operations without a rule into the table; `memory` may be a function of the arguments."""
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
        """Put a record into the table; `active` names the arguments with a derivative, in order."""
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
    """A helper of rule parts that is called while transforming, on ranks and literal arguments."""
    STATIC.add(function)
    return function
