# SPDX-License-Identifier: Apache-2.0
"""Summaries of the runtime's functions: which arguments they write into, and whether the result may alias one.

They are computed from the source of the functions: which parameters a name may be a part of, what is stored into, what
is returned, and the summaries of the functions called (interprocedural side-effect analysis).  An unknown function is
taken to write all its arguments.

>>> summary_of("transform_lines"), summary_of("put_line").written
(Summary(written=frozenset(), shown=False, added=frozenset(), \
stores=True), frozenset({0}))
>>> leaves_arguments("cholesky"), leaves_arguments("unheard_of")
(True, False)

Source: K. Cooper, K. Kennedy, Interprocedural side-effect analysis in linear time, 1988.
"""
import ast
import builtins
import functools
import inspect
from typing import NamedTuple

import numpy as np

from gradscribe.runtime.modules import RUNTIME

FRESH = {"empty", "empty_like", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "eye", "arange",
         "array", "linspace", "dot", "where", "concatenate", "argsort", "sort", "nonzero", "cumsum", "copy"}
NUMBERS = {"len", "range", "abs", "min", "max", "float", "int", "complex", "bool", "enumerate", "zip", "round"}
LEFT = {"asarray", "ascontiguousarray", "reshape", "ravel", "transpose", "diag", "max", "min", "sum", "any", "all",
        "mean", "prod", "searchsorted", "array_equal", "iinfo", "finfo", "conj", "flip", "roll", "outer", "trace"}
READING = {"copy", "astype", "sum", "max", "min", "any", "all", "mean", "conj", "item", "argmax", "argmin", "prod",
           "tobytes"}
SHOWING = {"reshape", "ravel", "transpose", "view", "T"}
NONE: frozenset = frozenset()


class Summary(NamedTuple):
    """written: the numbers of the parameters whose memory may be changed; shown: whether the result may be a parameter
    or a view of one; added: the numbers of the parameters with a `name += value`, which changes arrays only; stores:
    whether it sets entries of any array, its own included.
    """
    written: frozenset
    shown: bool
    added: frozenset = frozenset()
    stores: bool = False


EVERY = frozenset(range(100))
EVERYTHING = Summary(EVERY, True, EVERY, True)          # the summary of an unknown function


def leaves_arguments(name: str) -> bool:
    """Whether a function neither changes nor returns an argument."""
    found = summary_of(name)
    return found is not None and not found.written and not found.added and not found.shown


def sets_no_entries(name: str) -> bool:
    """Whether a function that is inlined by the compiler sets no entries, not even of its own arrays; it may add to
    arguments that are numbers, and return them.
    """
    found = summary_of(name)
    return found is not None and not found.stores and not hasattr(getattr(_modules()[name], name), "whole")


@functools.cache
def summary_of(name: str) -> Summary | None:
    """The summary of a function of the runtime; None for any other."""
    texts, new = {}, {name}
    while new:                          # the function and those that it calls
        one = new.pop()
        text = text_of(one)
        if text is not None:
            texts[one] = text
            new |= {n.func.id for n in ast.walk(text) if isinstance(n, ast.Call) and isinstance(
                n.func, ast.Name)} - texts.keys()
    if name not in texts:
        return None
    found, before = dict.fromkeys(texts, Summary(NONE, False)), None        # from the least summaries to a fixpoint
    while found != before:
        before, found = found, {n: _Function(text, found).summary() for n, text in texts.items()}
    return found[name]


def text_of(name: str) -> ast.FunctionDef | None:
    """The definition of a function of the runtime that compiled code calls; None for any other."""
    return _texts(_modules().get(name)).get(name)


@functools.cache
def _modules():
    """{name of a function of the runtime that compiled code calls: its module}"""
    return {n: module for module in RUNTIME for n, f in vars(module).items()
            if inspect.isfunction(f) and f.__module__ == module.__name__ and not hasattr(f, "calls_python")}


@functools.cache
def _texts(module):
    """{name: definition} of the functions of a module."""
    if module is None:
        return {}
    return {n.name: n for n in ast.parse(inspect.getsource(module)).body if isinstance(n, ast.FunctionDef)}


class _Function:
    """parts: {name: the parameters that it may be a part of}."""

    def __init__(self, text, summaries):
        self.text, self.summaries = text, summaries
        self.parts = {a.arg: frozenset([k]) for k, a in enumerate(text.args.args)}
        self.every = [n for s in text.body for n in ast.walk(s)]

    def summary(self):
        if isinstance(self.text.body[-1], ast.Raise):       # a placeholder for what compiled code has
            return EVERYTHING
        if any(isinstance(n, (ast.Yield, ast.Global, ast.Nonlocal, ast.With, ast.FunctionDef, ast.Lambda))
               for n in self.every):
            return EVERYTHING
        self.find_parts()
        written, added, shown, stores = NONE, NONE, False, False
        for n in self.every:
            if isinstance(n, (ast.Assign, ast.AugAssign, ast.Delete)):
                for target in n.targets if not isinstance(n, ast.AugAssign) else [n.target]:
                    written |= self.stored(target)
                    stores = stores or any(isinstance(t, ast.Subscript) for t in ast.walk(target) if isinstance(
                        getattr(t, "ctx", None), ast.Store))
                if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
                    added |= self.part_of(n.target)
            elif isinstance(n, ast.Call):
                written |= self.written_by(n)
                added |= self.added_by(n)
                called = self.summaries.get(n.func.id) if isinstance(n.func, ast.Name) else None
                stores = stores or called is not None and called.stores
            elif isinstance(n, ast.Return) and n.value is not None:
                shown = shown or bool(self.part_of(n.value))
        return Summary(written, shown, added, stores)

    def find_parts(self):
        """Follow assignments until no name may be a part of more parameters."""
        before = None
        while self.parts != before:
            before = dict(self.parts)
            for n in self.every:
                if isinstance(n, ast.Assign):
                    for target in n.targets:
                        self.given(target, n.value)
                elif isinstance(n, (ast.For, ast.comprehension)):
                    self.given(n.target, n.iter)
                elif isinstance(n, ast.NamedExpr):
                    self.given(n.target, n.value)

    def given(self, target, value):
        """Record that names may alias what the value assigned to them may."""
        if isinstance(target, ast.Name):
            self.parts[target.id] = self.parts.get(target.id, NONE) | self.part_of(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            for k, t in enumerate(target.elts):
                self.given(t, value.elts[k] if same else value)

    def part_of(self, e):
        """The parameters that a value may be a part of."""
        if isinstance(e, ast.Name):
            return self.parts.get(e.id, NONE)
        if isinstance(e, (ast.Subscript, ast.Starred)):
            return self.part_of(e.value)
        if isinstance(e, ast.Attribute):
            return NONE if e.attr in ("shape", "size", "dtype", "ndim") else self.part_of(e.value)
        if isinstance(e, (ast.Tuple, ast.List)):
            return NONE.union(*map(self.part_of, e.elts))
        if isinstance(e, ast.IfExp):
            return self.part_of(e.body) | self.part_of(e.orelse)
        if isinstance(e, ast.Call):
            return self.part_of_call(e)
        if isinstance(e, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.JoinedStr)):
            return NONE
        return NONE.union(*(self.parts.get(n.id, NONE) for n in ast.walk(e) if isinstance(n, ast.Name)))

    def part_of_call(self, e):
        given = NONE.union(*map(self.part_of, e.args))
        if isinstance(e.func, ast.Name):
            if e.func.id in self.summaries:
                return given if self.summaries[e.func.id].shown else NONE
            return NONE if e.func.id in NUMBERS else given
        if not isinstance(e.func, ast.Attribute):
            return given
        if isinstance(e.func.value, ast.Name) and e.func.value.id in ("np", "math"):
            return NONE if e.func.attr in FRESH or e.func.value.id == "math" or _is_ufunc(e.func.attr) else given
        if _module(e.func.value):
            return NONE                 # np.linalg.eigvals(a): new arrays
        return NONE if e.func.attr in READING else given | self.part_of(e.func.value)

    def written_by(self, e):
        """The parameters whose memory a call may change."""
        out = NONE.union(*(self.part_of(k.value) for k in e.keywords if k.arg == "out"))
        given = list(map(self.part_of, e.args))
        if isinstance(e.func, ast.Name):
            if e.func.id in self.summaries:
                return out.union(*(given[k] for k in self.summaries[e.func.id].written if k < len(given)))
            return out if e.func.id in NUMBERS or e.func.id in vars(builtins) else out.union(*given)
        if not isinstance(e.func, ast.Attribute):
            return out.union(*given)
        name, owner = e.func.attr, e.func.value
        if _module(owner):
            known = isinstance(owner, ast.Attribute) or owner.id == "math" or \
                name in FRESH | LEFT or _is_ufunc(name)
            return out.union(*given[2:]) if name == "dot" else out if known else out.union(*given)
        return out if name in READING | SHOWING else out.union(*given, self.part_of(owner))

    def added_by(self, e):
        """The parameters of which the called function does `name += value`."""
        found = self.summaries.get(e.func.id) if isinstance(e.func, ast.Name) else None
        return NONE.union(*(self.part_of(e.args[k]) for k in found.added if k < len(e.args))) if found else NONE

    def stored(self, target):
        if isinstance(target, ast.Subscript):
            return self.part_of(target.value)
        if isinstance(target, (ast.Tuple, ast.List)):
            return NONE.union(*map(self.stored, target.elts))
        return NONE


def _module(e):
    """np, math, np.linalg."""
    return isinstance(e, ast.Name) and e.id in ("np", "math") or isinstance(e, ast.Attribute) and isinstance(
        e.value, ast.Name) and e.value.id == "np" and e.attr == "linalg"


@functools.cache
def _is_ufunc(name):
    return isinstance(getattr(np, name, None), (np.ufunc, type))
