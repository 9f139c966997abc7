# SPDX-License-Identifier: Apache-2.0
"""The adjoint of a user's kernel: the pullback of one thread's work, lowered and written as a kernel.

- A thread adds to adjoints in arrays that the launcher passes, atomically where other threads may add to an entry.
- The adjoint array of an array that the kernel writes is read as the cotangent of the array after the kernel, and left
  as that of the array before it.
- Values saved for the backward sweep are in thread-local memory if they are few and their number is constant, else in
  rows of an array with a column for each thread; a first kernel counts the lengths of saved lists.

>>> from types import SimpleNamespace
>>> from gradscribe.codegen.loops.trees import block_of, from_tree
>>> pullback = from_tree(ast.parse('''def vjp_squares(i, x, out):
...     dx = given_adjoint(x)
...     dout = given_adjoint(out)
...     dt = dout[place(i, out.shape[0])]
...     dout[place(i, out.shape[0])] = 0.0
...     dx[place(i, x.shape[0])] += dt * (2 * x[place(i, x.shape[0])])
...     return (dx, dout)''').body[0], dict.fromkeys(["x", "out", "dx", "dout"], ("float64", 1)) | {"i": ("int64", 0)})
>>> thread = SimpleNamespace(label="squares", places=["i"], names=["x", "out"], head=block_of("i = cuda.grid(1)"),
...                          loops=[], written={"out": True}, axes={"x": {"grid"}}, own={"i"})
>>> kinds = {"x": (np.dtype("f8"), 1), "out": (np.dtype("f8"), 1)}
>>> print(Writer(pullback, set(), thread, kinds, ["x", "out"], "squares_adjoint").written().text)
from gradscribe.runtime.device import cuda
<BLANKLINE>
<BLANKLINE>
@cuda.jit
def squares_adjoint(x, out, dx, dout):
    i = cuda.grid(1)
    dt = dout[i]
    dout[i] = 0.0
    dx[i] += dt * (2 * x[i])
<BLANKLINE>
"""
import ast
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gradscribe.ast_transform.source.diagnose import RuleError
from gradscribe.ast_transform.source.origin import Origin
from gradscribe.codegen.jit_cpu import in_loops
from gradscribe.codegen.kernels.given import NoKernel, given_adjoint
from gradscribe.codegen.kernels.thread import Thread
from gradscribe.codegen.loops.analysis.slices import backward_slice
from gradscribe.codegen.loops.build import entry, node, quoted, statement
from gradscribe.codegen.loops.copies import propagate_copies
from gradscribe.codegen.loops.form import (
    Alloc,
    Call,
    Const,
    For,
    Function,
    If,
    Items,
    Length,
    Let,
    Load,
    Method,
    Name,
    Slice,
    Store,
    Type,
    Unpack,
    all_blocks,
    all_names,
    change,
    children,
    copied,
    expressions,
    names_in,
    names_read,
    rebuilt,
    renamed,
    set_by,
    set_in,
    statements,
    unused,
    walk,
)
from gradscribe.codegen.loops.readable import call_by, shorten, tidy, with_temporaries_inside
from gradscribe.codegen.loops.trees import written
from gradscribe.codegen.loops.types import type_of
from gradscribe.codegen.loops.view_elimination import eliminate_views
from gradscribe.codegen.targets.cuda.form import called_in
from gradscribe.codegen.targets.cuda.host import BUILTIN
from gradscribe.codegen.targets.cuda.printing import lines
from gradscribe.codegen.targets.cuda.stacks import Stacks
from gradscribe.codegen.targets.cuda.threads import ThreadCode

MOST = 64                               # entries of an array in thread-local memory
GRID = quoted("cuda.grid(1)")


class Adjoint(NamedTuple):
    """text: the module's; label: the kernel's; buffers: {array with saved values of all threads: (texts of its lengths
    in terms of the kernel's parameters and of `sizes`, dtype)}, further parameters in their order; counting: the label
    of the kernel that counts these lengths, "" if they are known; sizes: the arrays that it sets; plain: whether there
    are additions without atomics.
    """
    text: str
    label: str
    buffers: dict
    counting: str
    sizes: tuple
    plain: bool


class Additions(NamedTuple):
    """atomic: the adjoints that several threads may add to; plain: whether there are others."""
    atomic: set
    plain: bool


def adjoint_of(pullback: Callable[[], tuple], thread: Thread, kinds: dict, wanted: list, label: str,
               origin: Origin | None) -> Adjoint:
    """The Adjoint of a kernel.

    pullback: returns the thread's pullback by `of_kernel` and the captured arrays; kinds: {parameter: (dtype, rank)};
    wanted: the parameters whose adjoints the pullback returns; origin: the place that errors show.
    """
    try:
        form, captured = pullback()
        program, _ = in_loops(form, captured, for_threads=True, words=True)
        return Writer(program.loops, program.temporaries, thread, kinds, wanted, label).written()
    except NoKernel as found:
        raise RuleError(f"{thread.label} has no adjoint that is a kernel: {found}", origin, found.advice) from None


class Writer:
    """Writes the adjoint kernel of a pullback.

    adjoints: {array: the parameter whose adjoint it is}; named: {parameter: its adjoint}; arrays: {array that a thread
    makes: (its lengths, dtype)}.
    """

    def __init__(self, function, temporaries, thread, kinds, wanted, label):
        self.function, self.temporaries, self.thread = function, temporaries, thread
        self.kinds, self.wanted, self.label = kinds, wanted, label
        self.types, self.adjoints, self.arrays, self.buffers = function.types, {}, {}, {}

    def written(self):
        function, own = self.function, [*self.thread.places, *self.thread.names]
        call_by(function, {n: p for n, p in zip(function.params, own) if n != p})
        propagate_copies(function)
        eliminate_views(function)
        propagate_copies(function)
        with_temporaries_inside(function, self.temporaries)
        tidy(function)
        self.result = function.block.pop().value.items
        self.take_adjoints()
        self.taken = {*all_names(function), *own}
        self.name_adjoints()
        for p, value in zip(self.wanted, self.result, strict=True):
            if not self.kinds[p][1]:
                self.give_back(value, entry(self.named[p], 0))
        stacks = Stacks(function, self.fresh)
        self.find_numbers()
        for rows, (dtype, shape) in stacks.rows.items():
            self.arrays[rows] = (Name(stacks.sizes[rows]), *shape), dtype
        for block in list(all_blocks(function)):
            block[:] = [m for s in block for m in self.of_arrays(s)]
        function.block = backward_slice(function.block, set(self.named.values()))
        left = names_read(function.block)
        stacks.leave(left)
        self.arrays = {n: a for n, a in self.arrays.items() if n in left}
        for name, (shape, dtype) in self.arrays.items():
            if name in stacks.rows:
                self.buffers[name] = [stacks.sizes[name], *self.on_host(shape[1:], name)], dtype
            elif not all(isinstance(n, Const) for n in shape) or math.prod(n.value for n in shape) > MOST:
                self.buffers[name] = self.on_host(shape, name), dtype
        for name in sorted(left & set(function.params) - set(own)):
            raise NoKernel(f"it reads {name}, an array from outside", "Give it to the kernel.")
        self.check()
        return self.module(stacks)

    def fresh(self, name):
        return unused(name, self.taken)

    # adjoints

    def take_adjoints(self):
        for s in list(self.function.block):
            if isinstance(s, Let) and isinstance(s.value, Call) and s.value.function == given_adjoint.__name__:
                self.adjoints[s.name] = s.value.args[0].id
                self.function.block.remove(s)
        for p, value in zip(self.wanted, self.result, strict=True):
            if self.kinds[p][1] and (not isinstance(value, Name) or self.adjoints.get(value.id) != p):
                raise NoKernel(f"the adjoint of {p} is wanted before and after a change")

    def name_adjoints(self):
        """Names the adjoint parameters, and renames variables of the function that have such a name."""
        self.named = {p: n for n, p in self.adjoints.items()}
        for p in self.wanted:
            if p not in self.named:
                name = f"d{p}" if f"d{p}" not in {*self.thread.names, *self.thread.places} else self.fresh(f"d{p}")
                if name in self.taken:
                    change_name = {name: self.fresh(f"{name}_")}
                    call_by(self.function, change_name)
                    self.result = tuple([renamed(e, change_name) for e in self.result])
                self.named[p] = name
                self.taken.add(name)
                self.types[name] = Type(self.kinds[p][0].name, 1)

    def give_back(self, value, place):
        """Adds the adjoint of a scalar to the entry that is given for it, on each path through the function."""
        if isinstance(value, Name):
            self.added_in(self.function.block, value.id, place)
        elif not is_zero(value):
            self.function.block.append(Store(place, value, "+"))

    def added_in(self, block, name, place):
        k = next((k for k in reversed(range(len(block))) if name in set_in([block[k]])), None)
        s = None if k is None else block[k]
        if isinstance(s, If):
            self.added_in(s.block, name, place)
            self.added_in(s.orelse, name, place)
        elif isinstance(s, Let) and is_zero(s.value):
            pass
        elif isinstance(s, Let) and name not in names_read(self.function.block) and sum(
                name in names_in(e) for e in self.result) == 1:
            block[k] = Store(place, s.value, "+", s.origin)
        else:
            block.insert(0 if k is None else k + 1, Store(place, Name(name), "+", getattr(s, "origin", None)))

    def check(self):
        """Checks that arrays are only accessed entry by entry, and that adjoints are only added to, unless they are
        those of arrays that the kernel writes.
        """
        sets = {n for n, is_set in self.thread.written.items() if is_set}
        for s in statements(self.function.block):
            if isinstance(s, Store) and s.entry.array.id in self.adjoints:
                p = self.adjoints[s.entry.array.id]
                if p not in sets and (s.op not in ("+", "-") or p in self.thread.written):
                    raise NoKernel(f"the adjoint of {p} is reached by several threads")
            for e in expressions(s):
                self.check_use(e, isinstance(s, Store) and e is s.entry)

    def check_use(self, e, stored=False):
        if isinstance(e, Load) and isinstance(e.array, Name):
            p, rank = self.adjoints.get(e.array.id), self.types[e.array.id].rank
            if p is not None and p not in self.thread.written and not stored:
                raise NoKernel(f"the adjoint of {p} is read on the way back")
            if len(e.index) != rank or any(isinstance(i, Slice) for i in e.index):
                raise NoKernel(f"{self.spelled(e.array.id)} is used as a whole")
            for i in e.index:
                self.check_use(i)
        elif isinstance(e, Name) and self.types.get(e.id, Type(None, 0)).rank:
            raise NoKernel(f"{self.spelled(e.id)} is used as a whole")
        else:
            for part in children(e):
                self.check_use(part)

    def spelled(self, name):
        return f"the adjoint of {self.adjoints[name]}" if name in self.adjoints else \
            "an array that is made on the way" if name in self.temporaries else name

    # arrays that a thread makes

    def find_numbers(self):
        """Collects the integers that are set once and depend only on lengths and parameters: the host knows them."""
        sets, self.numbers = [n for s in statements(self.function.block) for n in set_by(s)], {}
        for s in statements(self.function.block):
            if isinstance(s, Let) and sets.count(s.name) == 1 and self.types[s.name] == Type("int64", 0):
                value = renamed(s.value, self.numbers)
                if self.is_known(value):
                    self.numbers[s.name] = value

    def is_known(self, e):
        """Whether a number depends only on the kernel's parameters."""
        if isinstance(e, Length):
            return e.array in self.thread.names
        if isinstance(e, Name):
            return e.id in self.thread.names and e.id not in self.thread.written
        return not isinstance(e, (Load, Method)) and (not isinstance(e, Call) or e.function in (
            "len", "range", "min", "max")) and all(map(self.is_known, children(e)))

    def on_host(self, lengths, name):
        """The texts of lengths in terms of the kernel's parameters."""
        known = [renamed(n, self.numbers) for n in lengths]
        if not all(map(self.is_known, known)):
            raise NoKernel(f"how much is saved in {name} depends on the thread",
                           "Use loops whose lengths are numbers, or depend on the kernel's parameters only.")
        return [ast.unparse(written(n)) for n in known]

    def of_arrays(self, s):
        """The statements that replace one: operations on whole arrays of the thread become loops over entries."""
        made = [s]
        value = getattr(s, "value", None)
        if isinstance(s, Unpack) and isinstance(value, Items) and any(
                isinstance(v, Name) and v.id in self.arrays for v in value.items):
            held = [self.fresh(f"{v.id}_held" if isinstance(v, Name) else "held") for v in value.items]
            self.types.update((h, type_of(v, self.types)) for h, v in zip(held, value.items))
            moved = [*map(Let, held, value.items), *(Let(t.id, Name(h)) for t, h in zip(s.targets.items, held))]
            return [m for one in moved for m in self.of_arrays(one)]
        if isinstance(value, Method) and value.name == "copy" and not value.args:
            value = value.owner
        if isinstance(s, Alloc):
            self.make(s.name, s.shape, s.dtype)
            fill = {"empty": None, "zeros": node(0.0), "ones": node(1.0)}.get(s.how, s.rest[0] if s.rest else None)
            made = [] if fill is None else self.each(s.shape, lambda index: Store(entry(s.name, *index), fill))
        elif isinstance(s, Let) and isinstance(value, Name) and value.id in self.arrays:
            if s.name in self.temporaries:      # an alias, through which the other array may be written
                raise NoKernel(f"{value.id} is used as a whole")
            self.make(s.name, *self.arrays[value.id])
            made = self.each(self.arrays[s.name][0], lambda index: Store(entry(s.name, *index), entry(value, *index)))
        elif isinstance(s, Let) and self.is_row(value):
            row = self.arrays[value.array.id]
            self.make(s.name, row[0][len(value.index):], row[1])
            made = self.each(self.arrays[s.name][0], lambda index: Store(
                entry(s.name, *index), entry(value.array, *value.index, *index)))
        elif isinstance(s, Store) and self.is_row(s.entry) and isinstance(value, Name) and value.id in self.arrays:
            made = self.each(self.arrays[value.id][0], lambda index: Store(
                entry(s.entry.array, *s.entry.index, *index), entry(value, *index)))
        for m in statements(made if made != [s] else []):
            m.origin = s.origin
        return made

    def is_row(self, e):
        return isinstance(e, Load) and isinstance(e.array, Name) and e.array.id in self.arrays and len(e.index) < len(
            self.arrays[e.array.id][0]) and not any(isinstance(i, Slice) for i in e.index)

    def make(self, name, shape, dtype):
        """Records an array that the thread makes."""
        if self.arrays.setdefault(name, (tuple(shape), dtype)) != (tuple(shape), dtype):
            raise NoKernel("an array of a thread's own has more than one shape")

    def each(self, shape, made):
        """A loop nest over the entries of a shape, with the statement made(index)."""
        names = [self.fresh(f"at_{k}") for k in range(len(shape))]
        self.types.update(dict.fromkeys(names, Type("int64", 0)))
        block = [made(list(map(Name, names)))]
        for name, n in zip(reversed(names), reversed(shape)):
            block = [For(name, (n,), block)]
        self.taken -= set(names)
        return block

    # the module

    def module(self, stacks):
        function, count = self.function, []
        self.additions = self.found_additions()
        sizes = tuple(stacks.sizes.values())
        if sizes:
            count = backward_slice(stacks.before_taking(list(map(copied, function.block))), set(sizes))
            self.types.update(dict.fromkeys(sizes, Type("int64", 1)))
        given = [self.named[p] for p in self.wanted]
        given = [*self.thread.names, *given, *self.buffers]
        kernels = [self.kernel(self.label, given, self.buffers, function.block, ())]
        if sizes:
            kernels.append(self.kernel(f"{self.label}_sizes", [*self.thread.names, *sizes], sizes, count, sizes))
        text = []
        used = {"cuda"}
        for kernel in kernels:
            used |= called_in(kernel.block) - BUILTIN
            text += ["", "", "@cuda.jit", f"def {kernel.name}({', '.join(kernel.params)}):", *lines(kernel.block)]
        head = f"from gradscribe.runtime.device import {', '.join(sorted(used))}"
        return Adjoint("\n".join([head, *text]) + "\n", self.label, self.buffers, kernels[1].name if sizes else "",
                       sizes, self.additions.plain)

    def found_additions(self):
        """The Additions: they are atomic unless an axis is always indexed by the thread's position."""
        reached = {}
        for s in statements(self.function.block):
            for e in expressions(s):
                for part in walk(e):
                    if isinstance(part, Load) and part.array.id in self.named.values():
                        reached.setdefault(part.array.id, []).append(part.index)
        apart = {n for n, indices in reached.items() if self.thread.written.get(self.adjoints.get(n)) or any(
            len(set(on_axis)) == 1 and getattr(on_axis[0], "id", None) in self.thread.own for on_axis in zip(*indices))}
        return Additions(reached.keys() - apart, bool(apart))

    def kernel(self, label, given, columns, block, zeros):
        """A kernel's function; columns: arrays whose last axis has an entry for each thread; zeros: those of them that
        begin with 0.
        """
        thread, device = self.thread, ThreadCode((), self.types, self.additions.atomic)
        block = list(map(device.statement, block))
        head = list(map(copied, thread.head))
        if columns:
            place = next((s.name for s in head if isinstance(s, Let) and s.value == GRID), None)
            begin = []
            if place is None:
                place = self.fresh("thread")
                begin = self.place_of_thread(place)
            for s in statements(block):
                change(s, lambda e: in_column(e, columns, place))
            begin += [statement("{} = 0", entry(n, 0, place)) for n in zeros]
        else:
            begin = []
        for loop in reversed(thread.loops):
            block = [For(loop.index, loop.range, block)]
        read, own = names_read([*begin, *block]), []
        for s in reversed(head):
            if set_in([s]) & read:
                own.insert(0, s)
                read |= names_read([s])
        local = [Let(n, quoted("cuda.local.array({}, {})", one_or_items(shape), np.dtype(dtype)))
                 for n, (shape, dtype) in self.arrays.items() if n not in self.buffers and n in read]
        made = Function(label, given, self.types, [*own, *local, *begin, *block])
        shorten(made)
        taken = (called_in(made.block) | {"range"}) & {*set_in(made.block), *given}
        call_by(made, {n: self.fresh(f"{n}_") for n in sorted(taken)})
        return made

    def place_of_thread(self, place):
        """The statements that number the threads of a grid of several axes."""
        count = max("xyz".index(a) for a in self.thread.axes) + 1
        if count == 1:
            return [Let(place, GRID)]
        names = [self.fresh(f"{place}_{a}") for a in "xyz"[:count]]
        at = node(names[-1])
        for name, axis in reversed(list(zip(names[:-1], "xyz"))):
            at = quoted("{name} + cuda.gridDim.{axis} * cuda.blockDim.{axis} * {at}", name=name, axis=axis, at=at)
        return [Unpack(Items(tuple(map(Name, names))), quoted("cuda.grid({})", count)), Let(place, at)]


def one_or_items(parts):
    return parts[0] if len(parts) == 1 else Items(tuple(parts))


def is_zero(e):
    """Whether an expression is 0 of any float dtype."""
    while isinstance(e, Call) and len(e.args) == 1 and e.function.startswith("np.float"):
        e = e.args[0]
    return isinstance(e, Const) and e.value == 0 and type(e.value) is not bool


def in_column(e, columns, place):
    """An expression in which arrays of `columns` get the thread's number as last index."""
    e = rebuilt(e, lambda part: in_column(part, columns, place))
    return Load(e.array, (*e.index, Name(place))) if isinstance(e, Load) and e.array.id in columns else e
