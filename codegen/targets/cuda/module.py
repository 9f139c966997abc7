# SPDX-License-Identifier: Apache-2.0
"""Writes a function of the loop form as a module for a device: kernels, and a host function that launches them.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree
>>> tree = ast.parse('''def f(x, w):
...     n = x.shape[0]
...     total = 0.0
...     z = np.empty((n,), np.float64)
...     for i in range(n):
...         z[i] = x[i] * w
...         total += z[i]
...     mean = total / float(n)
...     return (mean, z)
... ''')
>>> print(module_of(from_tree(tree.body[0], {"x": ("float64", 1), "w": ("float64", 0)})).text)
from gradscribe.runtime.device import block_sum, blocks, cp, cuda, grid, np, one_block, sum_of
<BLANKLINE>
<BLANKLINE>
@cuda.jit
def f_1(n, x, w, z, total_parts):
    total = 0.0
    i = cuda.grid(1)
    while i < n:
        z[i] = x[i] * w
        total += z[i]
        i += cuda.gridsize(1)
    block_sum(total_parts, total)
<BLANKLINE>
<BLANKLINE>
@cuda.jit
def f_2(total_parts, total, n, mean):
    total_all = sum_of(total_parts)
    if cuda.threadIdx.x == 0:
        total[0] = total_all
        mean[0] = total[0] / float(n)
<BLANKLINE>
<BLANKLINE>
# f_1 moves 16 * n bytes, or more
def f(x, w):
    total = cp.empty(1, np.float64)
    mean = cp.empty(1, np.float64)
    n = x.shape[0]
    z = cp.empty((n,), np.float64)
    total_parts = cp.empty(blocks(n), np.float64)
    f_1[grid(n)](n, x, w, z, total_parts)
    f_2[one_block(256)](total_parts, total, n, mean)
    return (mean[0], z)
<BLANKLINE>
"""
import ast
import operator
from typing import Any, NamedTuple

import numpy as np

from gradscribe.codegen.loops.analysis.equivalence import shape_of
from gradscribe.codegen.loops.analysis.liveness import Flow
from gradscribe.codegen.loops.analysis.traffic import bytes_moved
from gradscribe.codegen.loops.build import ZERO, node, quoted, statement
from gradscribe.codegen.loops.form import (
    Attribute,
    Call,
    Compare,
    Const,
    Do,
    Expr,
    For,
    Function,
    If,
    Items,
    Length,
    Let,
    Load,
    Logic,
    Name,
    Nothing,
    Op,
    Return,
    Select,
    Statement,
    Store,
    Type,
    While,
    all_blocks,
    all_names,
    blocks,
    change,
    children,
    copied,
    expressions,
    names_in,
    names_of,
    names_read,
    rebuilt,
    renamed,
    set_by,
    set_in,
    statements,
    stored_by,
    unused,
    walk,
)
from gradscribe.codegen.loops.lists import list_call, name_appended
from gradscribe.codegen.loops.privatize import NotPrivate, Private, privatize
from gradscribe.codegen.loops.trees import written
from gradscribe.codegen.loops.types import type_of
from gradscribe.codegen.loops.verify import WrongForm
from gradscribe.codegen.loops.webs import webs_apart
from gradscribe.codegen.targets.cuda.columns import Columns
from gradscribe.codegen.targets.cuda.form import (
    MODULES,
    Kernel,
    Launch,
    call,
    called_in,
    lines_of,
    names_in_order,
)
from gradscribe.codegen.targets.cuda.host import BUILTIN, HostCode, freed
from gradscribe.codegen.targets.cuda.placement import Nest, Placement
from gradscribe.codegen.targets.cuda.rows import Rows
from gradscribe.codegen.targets.cuda.scans import in_parallel
from gradscribe.codegen.targets.cuda.segments import in_one_order
from gradscribe.codegen.targets.cuda.threads import (
    OF_BLOCKS,
    ThreadCode,
    along_lanes,
    identity,
    is_zero,
    spread,
    stops,
)

THREADS = 256                           # of a block
WRONG = "wrong"                         # the parameter in which kernels report failed checks


class Options(NamedTuple):
    """graph: calls with equal shapes are recorded as CUDA graphs; deterministic: the order of all sums is fixed;
    check_bounds: whether indices from data are checked; tf32: factors of single-precision products are rounded to 10
    bits; bfloat16: float16 means bfloat16; single: nothing is in double precision, so elementary functions need not be.
    """
    graph: bool = False
    deterministic: bool = False
    check_bounds: bool = True
    tf32: bool = False
    bfloat16: bool = False
    single: bool = False


USUAL = Options()


class Made(NamedTuple):
    """text: the module's; label: its function's; origins: that of each line; returned: the names of the results; held:
    scalars that stay on the device.
    """
    text: str
    label: str
    origins: list
    returned: list
    held: set


class Waiting(NamedTuple):
    """Work that waits for a kernel of one thread, or of one block if it combines partial results (array `parts`)."""
    statement: Any
    reads: set
    writes: set
    name: str = ""
    op: str = ""
    parts: str = ""
    begins: str = ""                    # '=' if the result replaces the scalar instead of being added to it


def module_of(function: Function, options: Options = USUAL) -> Made:
    """The module of a function, which is not changed."""
    without: frozenset = frozenset()    # loops that cannot be kernels, though their passes seemed independent
    while True:
        made = copy_of(function)
        tidy(made)
        named_results(made)
        webs_apart(made, loops_own=True)
        private = privatize(made, without)
        try:
            return module_with(made, private, options)
        except NotPrivate as found:
            more = {private.numbers[loop] for loop in private.loops[found.name] if loop in private.numbers} - without
            if not more:
                raise
            without |= more


def module_with(function: Function, private: Private, options: Options) -> Made:
    """The module of a function, which is changed; private: the arrays that each thread has for itself."""
    name_appended(function)
    in_parallel(function, private.made)
    if options.deterministic:
        in_one_order(function, private.made)
    brief = Writer(function, private, frozenset(), options).brief()
    writer = Writer(function, private, brief, options)
    made = writer.module()
    other = names_apart(function, writer.imported)
    if other:
        private = private._replace(**{part: {other.get(n, n): value for n, value in getattr(private, part).items()}
                                      for part in ("made", "loops")})
        made = Writer(function, private, frozenset(other.get(n, n) for n in brief), options).module()
    return made


def tidy(function: Function) -> None:
    """Removes dead code of lowering: tests whose result is known, scalars that are not read.

    >>> from gradscribe.codegen.loops.trees import block_of
    >>> function = Function("f", ["x"], {}, block_of("n = x.shape[0]\\nm = n * 3\\nif 6 == 0:\\n    m = 2\\nreturn x"))
    >>> tidy(function)
    >>> print(*(line for line, _ in lines_of(function.block)), sep="\\n")
        return x
    """
    changed = True
    while changed:
        changed = False
        read = names_read(function.block)
        for block in all_blocks(function):
            kept = [s for s in block if not (isinstance(s, If) and not s.orelse and is_false(s.test) or isinstance(
                s, Let) and s.name not in read and is_number(s.value))]
            changed = changed or len(kept) < len(block)
            block[:] = kept
        for s in statements(function.block):
            if blocks(s) and not s.block:
                s.block.append(Nothing())


def is_false(e: Expr) -> bool:
    """Whether a test of constants is false."""
    if isinstance(e, Logic):
        return (any if e.op == "and" else all)(map(is_false, e.items))
    return isinstance(e, Compare) and all(isinstance(i, Const) for i in e.items) and not all(
        SIGNS_OF[o](a.value, b.value) for o, a, b in zip(e.ops, e.items, e.items[1:]))


def is_number(e: Expr) -> bool:
    """Whether a value is computed from scalars and lengths without side effects; a division may raise."""
    if isinstance(e, Op) and e.op not in ("+", "-", "*", "neg", "not", "~"):
        return False
    return isinstance(e, (Const, Name, Length, Op, Compare, Logic, Select)) and all(map(is_number, children(e)))


def named_results(function: Function) -> None:
    """Gives names to scalars that are computed in the return statement, so that they may stay on the device.

    >>> from gradscribe.codegen.loops.trees import block_of
    >>> function = Function("f", ["x", "n"], {"x": Type("float64", 2), "n": Type("int64", 0), "s": Type("float64", 0)},
    ...                     block_of("s = x[0, 1] * 2\\nreturn (s / n, x.T, n)"))
    >>> named_results(function)
    >>> print(*(line for line, _ in lines_of(function.block)), sep="\\n")
        s = x[0, 1] * 2
        value = s / n
        return (value, x.T, n)
    """
    last, taken = function.block[-1], all_names(function)
    if not isinstance(last, Return) or not isinstance(last.value, Items):
        return
    items = list(last.value.items)
    for k, whole in enumerate(items):
        value = number_of(whole)
        if isinstance(value, Op) and len(value.args) == 2 and all(
                function.types[n].rank == 0 for n in names_in(value) - {"np", "math"}):
            name = unused("value", taken)
            function.types[name] = type_of(value, function.types)
            function.block.insert(-1, Let(name, value, last.origin))
            items[k] = Name(name) if whole is value else Call(whole.function, (Name(name),))
    last.value = Items(tuple(items))


def names_apart(function: Function, imported: set) -> dict[str, str]:
    """Renames a function and its variables where its module imports something of that name; returns {old: new}."""
    taken = all_names(function) | imported
    own = set_in(function.block) | set(function.params)
    other = {old: unused(f"{old}_", taken) for old in sorted(own & imported)}
    for s in statements(function.block):
        rename(s, other)
    function.params = [other.get(p, p) for p in function.params]
    function.types |= {new: function.types[old] for old, new in other.items()}
    if function.name not in imported:
        return other
    function.name, old = f"{function.name}_", function.name
    return {old: function.name} | other


def rename(s: Statement, names: dict) -> None:
    """Renames variables in a statement, but not in its blocks: {old: new}."""
    change(s, lambda e: renamed(e, names))
    for field in ("name", "index"):
        if getattr(s, field, None) in names:
            setattr(s, field, names[getattr(s, field)])


def copy_of(function: Function) -> Function:
    """A copy of a function, with the types of the names that occur in it."""
    left = all_names(function)
    return Function(function.name, function.params, {n: t for n, t in function.types.items() if n in left},
                    list(map(copied, function.block)), function.filled)


class Kernels:
    """The kernels of a module."""

    def __init__(self) -> None:
        self.made: list = []
        self.known: dict = {}           # {shape(kernel): kernel}
        self.parts: list = []           # the Waiting of each kernel of one thread
        self.moves: list = []           # comments with the kernels' memory traffic
        self.places = False             # whether one reports failed checks


class Writer:
    """Writes the module of a function.

    private: arrays that each thread has for itself; brief: scalars that live only in one kernel of one thread, found by
    an earlier writer.  Raises NotPrivate if a private array is used elsewhere.
    """

    def __init__(self, function: Function, private: Private, brief: frozenset, options: Options):
        self.function, self.types, self.options = function, function.types, options
        self.private = private
        self.placement = Placement(function, private.made, brief)
        self.held = self.placement.held
        self.on_host = HostCode(self.placement, options.tf32)
        self.kernels = Kernels()
        self.waiting: list = []
        self.used: set = set()
        self.names = all_names(function)
        self.returned: list = []
        self.body = self.block(function.block)

    def module(self) -> Made:
        function, params = self.function, set(self.function.params)
        set_first = dict.fromkeys(n for s in statements(function.block) for n in set_by(s))
        head = [statement("{} = cp.empty(1, {})", n, self.dtype(n)) for n in set_first
                if n in self.held and n not in params]
        head += [statement("{} = cp.full(1, {}, {})", n, n, self.dtype(n)) for n in sorted(params & self.held)]
        if self.kernels.places:
            head.append(statement("{} = cp.zeros(1, np.int64)", WRONG))
        body = head + freed(self.body, {n for n, t in self.types.items() if t.rank} - params)
        self.check(body, function.params)
        for kernel in self.kernels.made:
            kernel.block = self.in_short(kernel.block, "short")
        body = self.in_short(body, "bfloat16")
        words = set().union(*map(called_in, [body, *(k.block for k in self.kernels.made)])) - BUILTIN
        self.imported = words | ({"cuda"} if self.kernels.made else set())
        if self.options.bfloat16 and any(Name("bfloat16") in walk(e) for s in statements(body) for e in expressions(s)):
            self.imported.add("bfloat16")
        functions = sorted(self.imported)
        lines = [(f"from gradscribe.runtime.device import {', '.join(functions)}" if functions else
                  "# only what is given", None)]
        for kernel in self.kernels.made:
            lines += [("", None), ("", None), *kernel.lines()]
        lines += [("", None), ("", None), *((line, None) for line in self.kernels.moves)]
        lines.append((f"def {function.name}({', '.join(function.params)}):", None))
        lines += lines_of(body)
        if WRONG in self.names:
            self.imported.add(WRONG)
        return Made("\n".join(line for line, _ in lines) + "\n", function.name, [o for _, o in lines], self.returned,
                    self.held)

    def dtype(self, name):
        """The dtype of a scalar as an expression, np.float64."""
        return node(np.dtype(self.types[name].dtype))

    def in_short(self, block, rounded):
        """Statements with bfloat16 in place of float16; rounded: the function that rounds to it."""
        def new(e):
            if e == HALF:
                return Name("bfloat16")
            e = rebuilt(e, new)
            return Call(rounded, e.args) if isinstance(e, Call) and e.function == "np.float16" else e
        for s in statements(block) if self.options.bfloat16 else ():
            change(s, new)
        return block

    def brief(self) -> frozenset:
        """The scalars held on the device that only a single kernel of one thread sets and reads."""
        places: dict = {}
        for k, part in enumerate(self.kernels.parts):
            sums, own = {w.name for w in part if w.op}, [w.statement for w in part if not w.op]
            shared = Flow(own).read | sums
            for n in {*names_in_order(own), *set_in(own), *sums}:
                places.setdefault(n, set()).add(None if n in shared else k)
        inside = {i for part in self.kernels.parts for w in part if not w.op for i in statements([w.statement])}
        outside = {n for s in statements(self.function.block) if s not in inside for n in (*names_of(s), *set_by(s))}
        return frozenset(n for n in self.held - outside - set(self.function.params)
                         if len(places.get(n, ())) == 1 and None not in places[n])

    def fresh(self, name):
        made, k = name, 1
        while made in self.used | self.names:
            k += 1
            made = f"{name}_{k}"
        self.used.add(made)
        return made

    # the host

    def block(self, block) -> list:
        """The host's statements for a block."""
        out: list = []
        for s in block:
            if any(s is made for made in self.private.made.values()):
                continue
            kind = self.placement.of(s)
            if kind == "kernel":
                self.kernel(s, out)
            elif kind == "serial":
                self.waiting.append(self.as_waiting(s))
            else:
                self.host(s, out)
        self.flush(out)
        return out

    def as_waiting(self, s):
        """A statement as Waiting, with what it reads and writes."""
        return Waiting(s, set(names_in_order([s])) | Flow([s]).read, set_in([s]) | arrays_set([s]))

    def host(self, s, out):
        if isinstance(s, (For, While, If)):
            self.flush(out)
            parts = [self.block(inner) or [Nothing()] * (k == 0) for k, inner in enumerate(blocks(s))]
            if isinstance(s, For):
                made = For(s.index, tuple(map(self.on_host.expression, s.range)), parts[0], s.kind, s.origin)
                if s.index in self.held:
                    made.index = self.fresh(f"{s.index}_at")
                    made.block.insert(0, Let(s.index, call("one", made.index), s.origin))
            else:
                made = type(s)(self.on_host.expression(s.test), *parts, s.origin)
            out.append(made)
            return
        for n in sorted((names_of(s) | {*set_by(s)}) & self.private.made.keys()):
            raise NotPrivate(n)
        self.flush_before(self.as_waiting(s), out)
        if isinstance(s, Return):
            self.flush(out)
            if self.kernels.places:
                out.append(Do(call("check_places", WRONG)))
            given = s.value.items if isinstance(s.value, Items) else (s.value,)
            self.returned = [getattr(number_of(v), "id", None) for v in given]
            out.append(Return(Items(tuple(map(self.result, given))), s.origin))
            return
        made = self.on_host.statement(copied(s))
        out.append(made)
        for n in set_by(s):
            if n in self.held and isinstance(s, Let):
                made.value = made.value if list_call(s.value) else call("one", made.value)
            elif n in self.held:
                out.append(Let(n, call("one", n), s.origin))

    def result(self, value):
        if isinstance(value, Name) and value.id in self.held:
            return Load(value, (ZERO,))
        inner = number_of(value)
        if inner is not value and getattr(inner, "id", None) in self.held:
            return quoted("{}[0].astype(np.float16)", inner)
        return self.on_host.expression(value)

    # threads

    def flush_before(self, what, out):
        """Launches the waiting work before a statement that conflicts with it."""
        if any(self.clash(w, what) for w in self.waiting):
            self.flush(out)

    def clash(self, a, b):
        return any(self.same(w, n) for w in a.writes for n in b.reads | b.writes) or \
            any(self.same(w, n) for w in b.writes for n in a.reads)

    def same(self, a, b):
        ranks = self.placement.rank(a), self.placement.rank(b)
        return a == b or bool(ranks[0] and ranks[1]) and not self.placement.order.apart(a, b)

    def flush(self, out):
        """Launches a kernel of one thread, or one block, for the waiting work."""
        waiting, self.waiting = begun(self.waiting), []
        if not waiting:
            return
        self.kernels.parts.append(waiting)
        given: dict = {}
        sums, work = [], []
        device = self.code(self.held)
        for w in waiting:
            if not w.op:
                work += device.block([w.statement])
                continue
            total = self.fresh(f"{w.name}_all")
            sums.append(Let(total, call(f"{OF_BLOCKS[w.op]}_of", w.parts)))
            given.setdefault(w.parts)
            entry, how = Load(Name(w.name), (ZERO,)), w.begins or w.op
            value = Name(total) if how in "+*=" else Call(w.op, (entry, Name(total)))
            work.append(Store(entry, value, how if how in "+*" else None))
        local = set().union(*(w.writes for w in waiting if not w.op)) - self.held
        for w in waiting:
            for n in [*names_in_order([w.statement] if w.statement is not None else []), *sorted(w.writes)]:
                if self.is_given(n, local):
                    given.setdefault(n)
        block = self.own([w.statement for w in waiting if not w.op])
        block += [*sums, If(quoted("cuda.threadIdx.x == 0"), work, [])] if sums else work
        origin = next((s.origin for s in statements(work) if s.origin is not None), None)
        self.launch(given, device, block, origin, call("one_block", THREADS if sums else 1), out)

    def launch(self, given, device, block, origin, grid, out):
        """Makes a kernel, or finds an equal one, and adds the host's statement that launches it; returns its name."""
        if device.places:
            self.kernels.places, given = True, {**given, WRONG: None}
        block = self.rounded_before(given, block)
        self.check(block, given)
        kernel = self.kernels.known.setdefault(self.shape(block, given), Kernel("", list(given), block, origin))
        if not kernel.name:
            kernel.name = self.fresh(f"{self.function.name}_{len(self.kernels.made) + 1}")
            self.kernels.made.append(kernel)
        elif kernel.block is not block:
            kernel.others.append(block)
        out.append(Do(Launch(kernel.name, grid, tuple(v or Name(k) for k, v in given.items())), origin))
        return kernel.name

    def shape(self, block, given):
        """A key that is equal for kernels that are equal up to names: statements, types, the order of parameters."""
        key, names = shape_of(block)
        return key, tuple([(n if n in MODULES else self.types.get(n), n in given and [*given].index(n)) for n in names])

    def check(self, block, given):
        """Raises WrongForm, an internal error, if statements read names that are neither set nor given."""
        missing = names_read(block) - set_in(block) - {*given} - MODULES - {WRONG, "bfloat16"}
        if missing:
            raise WrongForm(f"{self.function.name} reads {', '.join(sorted(missing))}, which nothing sets there")

    def code(self, held, atomic=()):
        return ThreadCode(held, self.types, atomic, self.options.check_bounds, self.options.single)

    def is_given(self, name, local):
        return name in self.types and name not in self.private.made and (
            name not in local or bool(self.placement.rank(name)))

    def own(self, block):
        """The allocations of a thread's private arrays; raises NotPrivate unless their loops are inside the block."""
        inside = set(statements(block))
        for n in (names_read(block) | arrays_set(block)) & self.private.made.keys():
            if inside.isdisjoint(self.private.loops[n]):
                raise NotPrivate(n)
        return [Let(n, Call("cuda.local.array", (Items(s.shape), s.rest[-1])))
                for n in dict.fromkeys([*names_in_order(block), *sorted(arrays_set(block))])
                for s in [self.private.made.get(n)] if s is not None]

    def kernel(self, loop, out):
        nest = self.placement.nest(loop)
        numbers = {n: op for n, op in nest.free.numbers.items() if op not in ("True", "False")}
        local = {n for n in set_in([loop]) - nest.free.numbers.keys() if not self.placement.rank(n)}
        what, started = self.as_waiting(loop), {n for n, op in numbers.items() if op not in "+*"}
        what = what._replace(reads=(what.reads - local - numbers.keys()) | started,
                             writes=what.writes - local - numbers.keys())
        self.flush_before(what, out)
        device = self.code(self.held - local - numbers.keys(), nest.free.atomic)
        columns = Columns(nest, loop, self.placement, self.fresh)
        if columns.inner is not None:
            self.columns_of(loop, columns, what, device, out)
            return
        rows, crossed = Rows(nest, self.placement), False
        of_rows = "row_" if rows.inner is not None else ""
        if of_rows:
            block = rows.block(device, self.names)
        else:
            nest, crossed = along_lanes(nest)
            block = spread(nest, device, self.names)
        sizes = [self.on_host.expression(e) for e in ((rows.count(), rows.length()) if of_rows else stops(nest))]
        given, before, after, parts = self.given_to(loop, nest, numbers, local, what), [], [], []
        for n, op in numbers.items():
            part = self.fresh(f"{n}_parts")
            if op in "+*":
                before.append(Let(n, identity(op, self.types[n].dtype)))
            else:
                start = self.fresh(f"{n}_start")
                before.append(statement("{} = {}[0]", n, start))
                given[start] = Name(n)
            after += rows.parts(n, op, part) if of_rows else [Do(call(f"block_{OF_BLOCKS[op]}", part, n))]
            given[part] = None
            out.append(Let(part, call("cp.empty", Call(f"{of_rows}blocks", tuple(sizes)), self.dtype(n)), loop.origin))
            parts.append(Waiting(None, {n, part}, {n}, n, op, part))
        grid = "tile_grid" if not of_rows and crossed and not numbers else f"{of_rows}grid"
        block = [*self.own([loop]), *before, *block, *after]
        self.say_bytes(loop, self.launch(given, device, block, loop.origin, Call(grid, tuple(sizes)), out))
        self.waiting += parts

    def given_to(self, loop, nest: Nest, numbers, local, what):
        """{parameter of a kernel: None}, in order: first those that it only reads, then those that it writes."""
        read = names_in_order([loop])
        held = [n for e in stops(nest) for n in sorted(names_in(e)) if n in self.held]
        order = [*(n for n in [*read, *held] if n not in what.writes), *(n for n in read if n in what.writes),
                 *sorted(what.writes)]
        return dict.fromkeys(n for n in order if n not in numbers and self.is_given(n, local))

    def rounded_before(self, given, block):
        """A kernel's statements, in which double-precision scalars that are only used in single precision are rounded
        by the host; their values are put into `given`.
        """
        for n in [n for n, value in given.items() if value is None and self.types.get(n) == DOUBLE
                  and n not in self.held]:
            single = Call("np.float32", (Name(n),))
            uses = [e for s in statements(block) for whole in expressions(s) for e in around(whole, Name(n))]
            if uses and all(e == single for e in uses):
                given[n] = single
                for s in statements(block):
                    change(s, lambda e, old=single: replaced(e, old, old.args[0]))
        return block

    def say_bytes(self, loop, name):
        """Adds the comment with the least number of bytes that the kernel of a loop moves."""
        types = {n: t for n, t in self.types.items() if n not in self.private.made}
        moved = bytes_moved([loop], types)
        if moved != ZERO:
            line = f"# {name} moves {ast.unparse(written(moved))} bytes, or more"
            self.kernels.moves += [line] if line not in self.kernels.moves else []

    def columns_of(self, loop, columns, what, device, out):
        """Launches the two kernels of a nest with column sums."""
        count, length = map(self.on_host.expression, (columns.count(), columns.length()))
        for s in columns.sums:
            shape = Items((call("column_blocks", count, length), count))
            out.append(Let(s.parts, call("cp.empty", shape, node(np.dtype(s.dtype))), loop.origin))
        made = [s.parts for s in columns.sums]
        for grid, block in ((call("column_grid", count, length), columns.rows(device, self.names)),
                            (call("grid", count), columns.sum_of_parts(device, self.names))):
            names = [n for n in names_in_order(block) if n in made or self.is_given(n, set_in(block))]
            last = {*made, *what.writes}
            given = dict.fromkeys([n for n in names if n not in last] + [n for n in names if n in last])
            name = self.launch(given, device, block, loop.origin, grid, out)
            if grid.function == "column_grid":
                self.say_bytes(loop, name)


SIGNS_OF = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
            ">=": operator.ge}
DOUBLE = Type("float64", 0)
HALF = Attribute(Name("np"), "float16")


def begun(waiting):
    """The waiting work without the initial zeros of sums."""
    out: list = []
    for w in waiting:
        if w.op == "+":
            k = next((k for k in reversed(range(len(out))) if w.name in out[k].reads | out[k].writes), None)
            if k is not None and is_zero(out[k].statement, w.name):
                del out[k]
                w = w._replace(begins="=")
        out.append(w)
    return out


def arrays_set(block: list) -> set:
    """The arrays whose entries statements set."""
    return {e.array.id for s in statements(block) for e in stored_by(s) if isinstance(e.array, Name)}


def around(e, inner):
    """The parts of an expression that have `inner` as a direct part."""
    for part in children(e):
        if part == inner:
            yield e
        yield from around(part, inner)


def replaced(e, old, new):
    """An expression in which each part that equals `old` is replaced."""
    return new if e == old else rebuilt(e, lambda part: replaced(part, old, new))


def number_of(value):
    """The expression inside a rounding to half precision; any other value unchanged."""
    return value.args[0] if isinstance(value, Call) and value.function == "np.float16" else value
