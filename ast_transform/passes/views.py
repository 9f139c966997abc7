# SPDX-License-Identifier: Apache-2.0
"""Views of arrays: which operations certainly give one, and how the array is made anew from a written view.

What NumPy's memory layout decides is certain only where the layout is.  An argument may be strided or in Fortran's
order, and arithmetic keeps the order of its operands.  What is not certain may share memory or not: such an array is
one of its own here, and a write into it, or into what it was made from, leaves the other a Conflict.
"""
import operator

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, Function, Pack, Slice, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import VIEWS, add_at, astype, put, put_add
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.source.diagnose import LanguageError

CERTAIN = {np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.matrix_transpose, np.flip, np.flipud,
           np.fliplr, np.rot90, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.diagonal, np.broadcast_to}
READ_ONLY = {np.diagonal, np.diag, np.broadcast_to}             # so NumPy marks the view
PERHAPS = {np.reshape, np.ravel, np.ascontiguousarray, np.diff, np.linalg.matrix_power}      # a copy, or none
COPIED_FIRST = "Copy first, x = x.copy(), or index the array itself."

# Arrays that are made row by row whatever their operands are: NumPy allocates them in C's order.
ROWWISE = {np.zeros, np.ones, np.empty, np.full, np.eye, np.identity, np.arange, np.linspace, np.outer, np.ravel}
PRODUCTS = {np.dot, np.matmul, operator.matmul}                 # row by row where both operands have at most two axes
# Allocated by NumPy and no view of anything: of one axis, its entries lie side by side.
ALLOCATED = {np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.copy, astype, np.sum, np.mean, np.prod,
             np.cumsum, np.cumprod, np.concatenate, np.sort, np.array}

# Of no axes, what these make is an array still.
CELLS = (np.zeros, np.ones, np.empty, np.full, np.array, np.zeros_like, np.ones_like, np.empty_like, np.full_like,
         np.reshape, np.squeeze, np.copy, np.where, np.tensordot, np.select)


class Views:
    def made_as(self, var):
        return self.build.made.get(var) or self.walked.get(var)

    def is_view(self, var):
        """Whether an array is certainly a view of the first operand of what made it."""
        made = self.made_as(var)
        if not isinstance(made, Apply) or not made.args or not isinstance(made.args[0], Var):
            return False
        function, parent = made.function, made.args[0]
        if self.flats.get(parent):
            return False
        if not isinstance(parent.fact, Array):
            return getattr(function, "__name__", "") in VIEWS and function not in PERHAPS
        if function is operator.getitem:
            return not gathers(made.args[1])
        if function in CERTAIN:
            return True
        if function is np.diag:
            return parent.fact.rank == 2
        if function in (np.real, np.imag):
            return parent.fact.kind == "c" or function is np.real
        if function is np.ascontiguousarray:
            return parent.fact.rank > 0 and self.rowwise(parent)
        if function in (np.reshape, np.ravel):
            return var in self.flats or self.reshapes(function, made, parent)
        return getattr(function, "__name__", "") == "held"

    def reshapes(self, function, made, parent):
        """Whether reshape or ravel copies nothing.

        One axis can be cut into several whatever its stride is; ravel's result has its entries side by side.
        """
        if any(not isinstance(v, Const) or v.value not in ("C",) for k, v in made.kwargs if k == "order") or \
                len(made.args) > (2 if function is np.reshape else 1):
            return False
        return function is np.reshape and parent.fact.rank == 1 or self.rowwise(parent)

    def may_show(self, made):
        """The arrays that an operation's result may share memory with, where that is not certain."""
        function = made.function
        if isinstance(function, Function):
            return [] if function.notes.get("fresh") else [a for a in made.args if is_array(a)]
        if function is not operator.getitem and made.args and isinstance(made.args[0], Var) and \
                self.flats.get(made.args[0]) and getattr(function, "__name__", "") in VIEWS:
            return [made.args[0]]
        if function in PERHAPS or getattr(function, "__name__", "") == "stop_gradient" or \
                isinstance(function, type(np.split)) and function in SPLITS:
            return [a for a in made.args[:1] if is_array(a)]
        if function is np.einsum and len(made.args) == 2:       # einsum("ii->i", x) is a view
            return [a for a in made.args[1:] if is_array(a)]
        return []

    def base_path(self, var):
        """The array that a view is one of, and the operations that lead to the view."""
        path = []
        while self.is_view(var):
            made = self.made_as(var)
            path.append((made, var))
            var = made.args[0]
        return var, path[::-1]

    def again(self, path, root):
        """The same view of another array."""
        for made, view in path:
            root = self.build.let(view.hint, Apply(made.function, (root, *made.args[1:]), made.kwargs), view.fact,
                                  view.kind)
            if made.function in (np.reshape, np.ravel):
                self.flats[root] = self.flats.get(view, False)
        return root

    # layout

    def rowwise(self, var):
        """Whether an array certainly lies in memory row by row, without gaps (C's order)."""
        found = self.layouts.get(var)
        if found is None:
            made = self.made_as(var)
            if isinstance(made, Var):
                found = self.rowwise(made)
            else:
                found = isinstance(made, Apply) and isinstance(var.fact, Array) and self.made_rowwise(made, var)
            self.layouts[var] = found
        return found

    def made_rowwise(self, made, var):
        function, rank = made.function, var.fact.rank
        first = made.args[0] if made.args else None
        arrays = [a for a in [*made.args, *(v for _, v in made.kwargs)] if is_array(a)]
        if function in ROWWISE:
            return True
        if function in (put, put_add, add_at):
            return self.rowwise(first)
        if function in PRODUCTS:
            return all(a.fact.rank <= 2 for a in arrays)
        if not _hashable(function):
            return False
        rule = RULES.get(function)
        if rule is not None and rule.kind == "elementwise" and getattr(function, "__name__", "") not in VIEWS or \
                function is np.where and len(made.args) == 3:
            return rank == 1 or all(a.fact.rank <= 1 or self.rowwise(a) for a in arrays)    # else the operands' order
        if function in ALLOCATED and rank == 1:
            return True
        if function in (np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.copy, astype):
            return is_array(first) and self.rowwise(first)
        if function in (np.reshape, np.squeeze, np.expand_dims, np.atleast_1d, np.atleast_2d, np.atleast_3d,
                        np.ascontiguousarray):
            return is_array(first) and self.rowwise(first)
        if function is operator.getitem:
            return is_array(first) and _leading(made.args[1]) and self.rowwise(first)
        return False

    # back to the array

    def put_back(self, path, new, node):
        """The array that a view is one of, after the view has become `new`."""
        for made, _ in reversed(path):
            parent = made.args[0]
            if made.function is operator.getitem:
                new = self.build.let(parent.hint, Apply(put, (parent, made.args[1], new)), parent.fact, parent.kind)
            else:
                new = self.alias(self.undone(made, new, parent, node))      # an array, no view of the view
            self.tokens[new], self.layouts[new] = self.storages(parent), self.rowwise(parent)
        return new

    def undone(self, made, new, parent, node):
        """The array whose view, made by an operation that moves or renames axes, is `new`."""
        function, args, words = made.function, made.args[1:], dict(made.kwargs)
        name = getattr(function, "__name__", "")
        rank = parent.fact.rank
        if function is np.transpose and (args or words):
            axes = [a % rank for a in self.python(args[0] if args else words["axes"], node)]
            args, words = [Const(tuple(axes.index(k) for k in range(rank)))], {}
        elif function is np.moveaxis:
            args, words = args[::-1], {{"source": "destination", "destination": "source"}[k]: v
                                       for k, v in words.items()}
        elif function is np.rot90:
            given = {**dict(zip(("k", "axes"), args)), **words}
            args, words = [Const(-self.python(given.get("k", Const(1)), node))], {k: v for k, v in given.items()
                                                                                 if k == "axes"}
        elif function is np.squeeze:
            axis = self.python({**dict(zip(("axis",), args)), **words}.get("axis", Const(None)), node)
            if axis is None:
                axis = tuple(k for k, d in enumerate(parent.fact.dims) if d.is_unit)
            axis = tuple(a % rank for a in axis) if isinstance(axis, (tuple, list)) else axis % rank
            if axis == ():
                return new
            function, args, words = np.expand_dims, [Const(axis)], {}
        elif function is np.expand_dims:
            function, args, words = np.squeeze, [], {"axis": {**dict(zip(("axis",), args)), **words}["axis"]}
        elif function in (np.reshape, np.ravel):
            lengths = [self.build.length(parent, k) for k in range(rank)]
            shape = Const(tuple(n.value for n in lengths)) if all(isinstance(n, Const) for n in lengths) else \
                Pack("tuple", tuple(lengths))
            function, args, words = np.reshape, [shape if rank > 1 else lengths[0]], {}
        elif function in (np.atleast_2d, np.atleast_3d) and new.fact.rank > rank:
            places = [Const(0)] * new.fact.rank
            for k in range(rank):
                places[k + (rank == 1)] = Const(slice(None))
            index = Const(tuple(p.value for p in places))
            return self.build.let(parent.hint, Apply(operator.getitem, (new, index)), parent.fact, parent.kind)
        elif function in (np.atleast_1d, np.atleast_2d, np.atleast_3d, np.ascontiguousarray) or \
                function is np.real and parent.fact.kind != "c":
            return new
        elif function in (np.real, np.imag):
            self.fail(LanguageError, f"writing through {name} into a complex array is not differentiated", node,
                      "Write the complex numbers: z[i] = a + 1j * b.")
        elif function in READ_ONLY:
            self.fail(LanguageError, f"np.{name} gives a view that NumPy does not let be written", node,
                      "Copy first: .copy(); or index the array itself.")
        elif function not in (np.transpose, np.swapaxes, np.matrix_transpose, np.flip, np.flipud, np.fliplr):
            self.fail(LanguageError, f"writing through {name}, which may be a view or a copy", node,
                      "Copy first: .copy(); or index the array itself.")
        return self.build.call(function, (new, *args), words, parent.hint, parent.kind, parent.fact)

    def may_be_cell(self, var):
        """An array without axes, which is written in place, is no number: so made, or an argument."""
        if not isinstance(var, Var) or not isinstance(var.fact, Array) or var.fact.dims or var.fact.weak:
            return False
        made = self.made_as(var)
        if made is None:
            return var in self.entry_tokens
        return isinstance(made, Apply) and (made.function in CELLS or made.function is operator.getitem and any(
            isinstance(p, Const) and p.value is Ellipsis for p in parts_of(made.args[1])))

    def alias(self, value, tokens=None):
        """Another name for a value, as an array of its own or of given storages."""
        new = self.build.let(value.hint, value, value.fact)
        self.tokens[new] = frozenset({new}) if tokens is None else tokens
        self.layouts[new] = self.rowwise(value)
        return new


SPLITS = {np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit, *([np.unstack] if hasattr(np, "unstack") else [])}


def gathers(index):
    """An index with an array in it: what it reads is a copy."""
    for p in parts_of(index):
        fact = fact_of(p) if isinstance(p, (Var, Const)) and not is_slice(p) else None
        if isinstance(fact, Array) and (fact.dims or fact.kind == "b") or \
                isinstance(p, Const) and isinstance(p.value, (np.ndarray, list)):
            return True
    return False


def is_array(value):
    return isinstance(value, Var) and isinstance(value.fact, Array) and bool(value.fact.dims)


def is_slice(p):
    return isinstance(p, Slice) or isinstance(p, Const) and isinstance(p.value, slice)


def parts_of(index):
    if isinstance(index, Pack):
        return list(index.items)
    if isinstance(index, Const) and isinstance(index.value, tuple):
        return [Const(p) for p in index.value]
    return [index]


def _leading(index):
    """Integers, then at most one slice in steps of one: what is left of it lies side by side."""
    parts = parts_of(index)
    while parts and not is_slice(parts[0]):
        fact = fact_of(parts[0])
        if not isinstance(fact, Array) or fact.dims or fact.kind not in "iu":
            return False
        parts = parts[1:]
    steps = [p.step if isinstance(p, Slice) else p.value.step for p in parts[:1]]
    return len(parts) <= 1 and all(s is None or s == 1 or isinstance(s, Const) and s.value == 1 for s in steps)


def _hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True
