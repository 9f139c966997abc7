# SPDX-License-Identifier: Apache-2.0
"""The adjoint of a user's kernel: the pullback of what one thread does, as a kernel.

The pullback is emitted like any other (`vjp_f(dy, i, x, out)`), for arrays that come and go; a kernel has its own.  So

- what a thread adds to the adjoint of an array, it adds to the array that is given, at once where others may add too;
- the adjoint of an array that the kernel writes comes in that array, and goes out as the adjoint of what was there;
- what is saved for the way back is in the thread's own memory if it is short and its length a number, else in rows of
  an array with an entry for each thread; of lists, a first pass says how long they become.

>>> def pullback():
...     '''def vjp_squares(dy, i, x, out):
...     dout = dy[0]
...     # out[i] = x[i] ** 2
...     dt = dout[i]
...     dout = dout.copy()
...     dout[i] = 0.0
...     dx = np.zeros_like(x)
...     dx[i] += dt * (2 * x[i])
...     return dx, dout
... '''
>>> from types import SimpleNamespace
>>> thread = SimpleNamespace(label="squares", places=["i"], names=["x", "out"], head=["i = cuda.grid(1)"], loops=[],
...                          written={"out": True}, axes={"x": {"grid"}})
>>> kinds = {"x": (np.dtype("f8"), 1), "out": (np.dtype("f8"), 1)}
>>> print(adjoint_of(pullback.__doc__, thread, kinds, ["x", "out"], "squares_adjoint").text)
from gradscribe.runtime.device import cuda
<BLANKLINE>
<BLANKLINE>
@cuda.jit
def squares_adjoint(x, out, dx, dout):
    i = cuda.grid(1)
    # out[i] = x[i] ** 2
    dt = dout[i]
    dout[i] = 0.0
    dx[i] += dt * (2 * x[i])
<BLANKLINE>
"""
import ast
import builtins
import math
import re
from typing import NamedTuple

import numpy as np

from gradscribe.ast_transform.source.diagnose import RuleError
from gradscribe.codegen.cuda.kernels import OnDevice, copied
from gradscribe.codegen.cuda.pullbacks import (
    Buffers,
    NoKernel,
    Steps,
    attach_comments,
    copied_head,
    copy_of,
    is_made_here,
    is_zeros,
    last_return_out,
    place_lines,
    pruned,
    show,
    uncast,
    with_comments,
)
from gradscribe.codegen.cuda.saved import Saved
from gradscribe.codegen.cuda.single import in_single
from gradscribe.codegen.cuda.sorting import list_call
from gradscribe.codegen.cuda.trees import parts_of, walk

MOST = 64                               # entries of an array in a thread's own memory


class Adjoint(NamedTuple):
    """text: of the module; label: of the kernel; buffers: {what is saved for all threads: (the texts of its lengths in
    terms of the kernel's parameters and of `sizes`, dtype)}: further parameters, in their order; counting: the label of
    the kernel that says how long these become, "" where that is known; sizes: the arrays that it sets.
    """
    text: str
    label: str
    buffers: dict
    counting: str = ""
    sizes: tuple = ()


def adjoint_of(text, thread, kinds, wrt, label, wanted=None, origin=None):
    """The Adjoint of a kernel from the text of its thread's pullback.

    kinds: {parameter: (dtype, rank)}; wrt: the parameters for which the pullback returns adjoints, in its order;
    wanted: those of them that the kernel has adjoints for; origin: the place that errors show.
    """
    try:
        return Writer(text, thread, kinds, wrt, label, wrt if wanted is None else wanted).written()
    except NoKernel as found:
        raise RuleError(f"{thread.label} has no adjoint that is a kernel: {found}", origin, found.advice) from None


class Kind(NamedTuple):
    dtype: str


class Writer:
    def __init__(self, text, thread, kinds, wrt, label, wanted):
        self.thread, self.kinds, self.wrt, self.label = thread, kinds, wrt, label
        self.wanted = wanted
        self.single = all(dtype == np.float32 for dtype, _ in kinds.values() if dtype.kind == "f")
        tree = ast.parse(text)
        self.function = next(s for s in tree.body if isinstance(s, ast.FunctionDef))
        attach_comments(text, tree)
        self.used = {n.id for n in ast.walk(self.function) if isinstance(n, ast.Name)} | set(thread.names) | set(
            thread.places)
        self.outs = [n for n in thread.written if n in wrt]
        self.seed = self.function.args.args[0].arg
        self.adjoints = {}              # {name in the text: the parameter whose adjoint it is}
        self.dead = {}                  # {name in the text: the parameter it is the primal value of, written}
        self.arrays = {}                # {array of the thread's own: (its shape, dtype)}
        self.buffers, self.atomic = {}, set()

    def written(self):
        body = self.function.body
        self.numbers = {}               # names that are set once, to what the host can compute as well
        Steps().visit(self.function)
        self.lists = self.saved(body)
        body = self.function.body = [*self.lists.begun(), *self.lists.block(body)]
        for n in walk(self.function):
            if isinstance(n, ast.Return):
                items = n.value.elts if isinstance(n.value, ast.Tuple) else [n.value]
                found = [uncast(i) for i in items if ast.unparse(i) != "None"]      # which whole numbers have
                n.value = ast.Tuple(found, ast.Load())
        self.find_adjoints(body)
        self.named = {p: self.fresh(f"d{p}", {*self.thread.names, *self.thread.places}) for p in self.wrt}
        others = {n for n in self.used if n in self.named.values() and n not in self.adjoints} - {self.seed}
        self.other = {n: self.fresh(f"{n}_", self.used) for n in others}
        self.check(body)
        self.find_numbers(body)
        body = self.block(body, 0)
        return self.module(last_return_out(pruned(body)))

    def fresh(self, name, taken):
        while name in taken:
            name += "_"
        self.used.add(name)
        return name

    def saved(self, body):
        """The lists of a thread."""
        kinds = {n: dtype.kind for n, (dtype, _) in self.kinds.items()} | dict.fromkeys(self.thread.places, "i")
        made = Saved(body, kinds, lambda name: self.fresh(name, self.used), "float32" if self.single else "float64")
        for rows, dtype in made.dtypes.items():
            shape = [n.value if isinstance(n, ast.Constant) else ast.unparse(n) for n in made.shapes[rows]]
            texts = [str(n) if isinstance(n, int) else self.on_host(ast.parse(n, mode="eval").body) for n in shape]
            if None in texts:
                raise NoKernel(f"how much is saved in {rows} hangs on the thread")
            self.buffers[rows] = [made.sizes[rows], *texts], dtype
            if shape:
                self.arrays[rows] = [made.sizes[rows], *shape], dtype
        return made

    # what names stand for

    def find_adjoints(self, body):
        """Which names are the adjoints of parameters: those that come, copies of them, and those that are returned."""
        nodes = [n for s in body for n in walk(s)]
        assigns = [n for n in nodes if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)]
        for n in assigns:
            if isinstance(n.value, ast.Subscript) and ast.unparse(n.value.value) == self.seed:
                self.adjoints[n.targets[0].id] = self.outs[n.value.slice.value]
        for n in nodes:
            if isinstance(n, ast.Return):
                for p, item in zip(self.wrt, n.value.elts, strict=True):
                    if self.kinds[p][1] and isinstance(item, ast.Name):
                        if self.adjoints.setdefault(item.id, p) != p:
                            raise NoKernel(f"the adjoint of {p} is that of {self.adjoints[item.id]} as well")
        more = True
        while more:
            more = False
            for n in assigns:
                name, source = n.targets[0].id, copy_of(n.value)
                if source in self.adjoints and name not in self.adjoints:
                    self.adjoints[name] = self.adjoints[source]
                    more = True
                if name in self.adjoints and source is not None and source not in self.adjoints:
                    self.adjoints[source] = self.adjoints[name]
                    more = True
                if source in self.thread.written and name not in self.dead and name not in self.adjoints:
                    self.dead[name] = source

    def check(self, body):
        """Adjoints are added to, and only those of what the kernel writes are read and set."""
        parents = {c: n for s in body for n in walk(s) for c in ast.iter_child_nodes(n)}
        order = {id(n): k for k, n in enumerate(n for s in body for n in walk(s))}
        for n in (n for s in body for n in walk(s)):
            if not isinstance(n, ast.Name):
                continue
            parent = parents.get(n)
            if n.id in self.adjoints and self.kinds[self.adjoints[n.id]][1]:
                p = self.adjoints[n.id]
                entry = isinstance(parent, ast.Subscript) and parent.value is n
                if entry:
                    above = parents.get(parent)
                    added = isinstance(above, ast.AugAssign) and above.target is parent and isinstance(
                        above.op, (ast.Add, ast.Sub))
                    if not added and p not in self.outs:
                        raise NoKernel(f"the adjoint of {p} is read on the way back")
                    continue
                if isinstance(n.ctx, ast.Store):
                    value = parent.value if isinstance(parent, ast.Assign) else None
                    if value is None or copy_of(value) is None and not is_zeros(value) and \
                            ast.unparse(getattr(value, "value", value)) != self.seed:
                        raise NoKernel(f"the adjoint of {p} is made of whole arrays")
                    continue
                if isinstance(parent, (ast.Return, ast.Tuple)) or isinstance(parent, ast.Assign):
                    continue
                if isinstance(parent, ast.Attribute) and parent.attr in ("copy", "shape", "dtype", "size"):
                    continue
                if isinstance(parent, ast.Call) and is_zeros(parent):
                    continue
                raise NoKernel(f"the adjoint of {p} is used as a whole")
            elif n.id in self.thread.written and isinstance(parent, ast.Subscript) and parent.value is n and isinstance(
                    n.ctx, ast.Load) and isinstance(parent.ctx, ast.Load) or n.id in self.dead and isinstance(
                        parent, ast.Subscript) and isinstance(parent.ctx, ast.Load) and not isinstance(
                            parents.get(parent), ast.AugAssign):
                name = self.dead.get(n.id, n.id)
                raise NoKernel(f"it writes into {name}, and the adjoint needs what was there before",
                               f"Write to another array than the one that is read, so that {name} stays as it was.")
        for n in (n for s in body for n in walk(s) if isinstance(n, ast.Assign)):
            source = copy_of(n.value)
            if source is None or source not in self.adjoints or not isinstance(n.targets[0], ast.Name) or \
                    n.targets[0].id == source or self.adjoints[source] not in self.outs:
                continue
            later = [m for s in body for m in walk(s) if isinstance(m, ast.Name) and m.id == source
                     and order[id(m)] > order[id(n.value)] + 3 and not isinstance(parents.get(m), (ast.Return,
                                                                                                 ast.Tuple))]
            if later:
                raise NoKernel(f"the adjoint of {self.adjoints[source]} is wanted before and after a change")
        own = {}
        for n in (n for s in body for n in walk(s)):
            if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id in self.adjoints:
                own.setdefault(self.adjoints[n.value.id], []).append(n)
        for p, found in own.items():
            if not self.belongs(p, found):
                self.atomic.add(p)
                if self.thread.written.get(p):
                    raise NoKernel(f"the adjoint of {p} is reached by several threads")

    def belongs(self, p, found):
        """Whether a thread has entries of an adjoint for itself: they have its own place on some axis."""
        if self.thread.written.get(p):
            return True                 # as the kernel's own accesses were proven
        if p in self.thread.written:
            return False
        places = {n for n in self.thread.places if len(self.thread.axes) == 1}
        whole = [n for n in places if self.is_own(n)]
        indices = [[ast.unparse(i) for i in parts_of(n)] for n in found]
        return any(indices[0][k] == name and all(i[k] == name for i in indices)
                   for name in whole for k in range(min(map(len, indices))))

    def is_own(self, name):
        """Whether a place is another one in each thread: the kernel's first line says so, or a loop from there."""
        lines = [*self.thread.head, *self.thread.loops]
        return any(re.fullmatch(rf"{name} = cuda\.grid\(1\)", line) or re.match(
            rf"for {name} in range\(cuda\.grid\(1\), .*, cuda\.gridsize\(1\)\):", line) for line in lines)

    def find_numbers(self, body):
        """Whole numbers that hang on lengths and parameters alone, which the host knows too."""
        known = set(self.thread.names) - set(self.thread.written)
        count = {}
        for n in (n for s in body for n in walk(s)):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                count[n.id] = count.get(n.id, 0) + 1
        for n in (n for s in body for n in walk(s)):
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and count[n.targets[0].id] == 1 and \
                    self.on_host(n.value, known) is not None:
                self.numbers[n.targets[0].id] = self.on_host(n.value, known)

    def on_host(self, node, known=None):
        """The text of a number in terms of the kernel's parameters; None where it hangs on the thread."""
        known = known or set(self.thread.names)
        text = copied(node)

        class Put(ast.NodeTransformer):
            def visit_Name(_, n):
                return ast.parse(self.numbers[n.id], mode="eval").body if n.id in self.numbers else n
        text = Put().visit(text)
        for n in walk(text):
            if isinstance(n, ast.Name) and n.id not in known | {"len", "range", "min", "max"} or isinstance(
                    n, ast.Subscript) and not (isinstance(n.value, ast.Attribute) and n.value.attr == "shape"):
                return None
        return ast.unparse(text)

    # statements

    def block(self, body, depth):
        out, comments = [], []
        for s in body:
            made = self.statement(s, depth)
            comments += [c for c in getattr(s, "comments", []) if c not in comments]
            if made:
                made[0].comments, comments = comments, []
            out += made
        return out

    def statement(self, s, depth):
        if isinstance(s, (ast.For, ast.While, ast.If)):
            made = copied_head(s)
            made.body = self.block(s.body, depth + (not isinstance(s, ast.If)))
            made.orelse = self.block(s.orelse, depth)
            if isinstance(s, ast.If) and not made.body and not made.orelse:
                return []
            made.body = made.body or [ast.Pass()]
            return [made]
        if isinstance(s, ast.Return):
            return self.returned(s, depth)
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name):
            name, value = s.targets[0].id, s.value
            if name in self.adjoints or name in self.dead:
                return []
            if is_zeros(value) or is_made_here(value):
                return self.made(name, value)
            if isinstance(value, ast.Name) and value.id in self.arrays:
                return self.taken_over(name, value.id)
            if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and \
                    value.value.id in self.arrays and len(parts_of(value)) < len(self.arrays[value.value.id][0]):
                return self.row_read(name, value)
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Subscript):
            target = s.targets[0]
            if isinstance(target.value, ast.Name):
                if target.value.id in self.dead or target.value.id in self.thread.written:
                    return []
                if isinstance(s.value, ast.Name) and s.value.id in self.arrays and target.value.id in self.arrays:
                    return self.row_written(target, s.value.id)
        if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Subscript) and isinstance(
                s.target.value, ast.Name):
            name = s.target.value.id
            if name in self.dead or name in self.thread.written or self.adjoints.get(name, name) not in {
                    name, *self.wanted}:
                return []
        if isinstance(s, ast.Expr) and list_call(s.value) is not None:
            raise NoKernel("it has a list")
        return [self.renamed(s)]

    def returned(self, s, depth):
        out = []
        for p, item in zip(self.wrt, s.value.elts):
            if self.kinds[p][1] == 0 and p in self.wanted and not (isinstance(item, ast.Constant) and item.value == 0):
                value = ast.unparse(self.renamed(item))
                out.append(ast.parse(f"cuda.atomic.add({self.named[p]}, 0, {value})").body[0])
        if s is not self.function.body[-1]:
            if depth and self.thread.loops:
                raise NoKernel("a thread ends in a loop inside a loop over the grid")
            out.append(ast.Continue() if self.thread.loops else ast.Return(None))
        return out

    def made(self, name, value):
        """An array of the thread's own: short ones in its memory, others in rows of an array for all."""
        shape, dtype, fill = self.shape_of(value)
        if name in self.arrays and self.arrays[name] != (shape, dtype):
            raise NoKernel(f"{name} has more than one shape")
        self.arrays[name] = shape, dtype
        constant = all(isinstance(n, int) for n in shape)
        if not constant or math.prod(shape) > MOST:
            texts = [str(n) if isinstance(n, int) else self.on_host(ast.parse(n, mode="eval").body) for n in shape]
            if None in texts:
                raise NoKernel(f"how much is saved in {name} hangs on the thread",
                               "Use loops whose lengths are numbers, or hang on the kernel's parameters.")
            self.buffers[name] = texts, dtype
        return self.each(shape, lambda at: f"{name}[{at}] = {fill}") if fill is not None else []

    def shape_of(self, value):
        """(lengths, dtype, what it is filled with or None) of np.empty, np.zeros, np.zeros_like."""
        function, args = value.func.attr, value.args
        if function.endswith("_like"):
            if args[0].id not in self.arrays:
                raise NoKernel(f"an adjoint has the shape of {args[0].id}, a part of an array")
            shape, dtype = self.arrays[args[0].id]
            return shape, dtype, "0.0"
        lengths = args[0].elts if isinstance(args[0], ast.Tuple) else [args[0]]
        kinds = [*args[1:], *(k.value for k in value.keywords if k.arg == "dtype")]
        dtype = np.dtype(ast.unparse(kinds[0]).removeprefix("np.").strip("'")).name if kinds else \
            "float32" if self.single else "float64"
        fill = {"empty": None, "zeros": "0.0" if dtype.startswith("f") else "0", "ones": "1.0"}[function]
        return [n.value if isinstance(n, ast.Constant) else ast.unparse(n) for n in lengths], dtype, fill

    def each(self, shape, text, given=()):
        """A statement for each entry, by loops."""
        names = []
        for _ in shape:
            k = len(names)
            while f"at_{k}" in self.used:
                k += 1
            names.append(f"at_{k}")
            self.used.add(f"at_{k}")
        body = ast.parse(text(", ".join([*given, *names]))).body
        for name, n in zip(reversed(names), reversed(shape)):
            body = [ast.For(ast.Name(name, ast.Store()), ast.parse(f"range({n})", mode="eval").body, body, [])]
            self.used.discard(name)
        return [self.renamed(s) for s in body]

    def taken_over(self, name, source):
        shape, dtype = self.arrays[source]
        if self.arrays.setdefault(name, (shape, dtype)) != (shape, dtype):
            raise NoKernel(f"{name} has more than one shape")
        if source in self.buffers:
            self.buffers[name] = self.buffers[source]
        return self.each(shape, lambda at: f"{name}[{at}] = {source}[{at}]")

    def row_read(self, name, value):
        source, indices = value.value.id, [ast.unparse(i) for i in parts_of(value)]
        shape, dtype = self.arrays[source]
        self.arrays.setdefault(name, (shape[len(indices):], dtype))
        return self.each(shape[len(indices):],
                         lambda at: f"{name}[{at}] = {source}[{', '.join([*indices, at])}]")

    def row_written(self, target, source):
        indices = [ast.unparse(i) for i in parts_of(target)]
        return self.each(self.arrays[source][0],
                         lambda at: f"{target.value.id}[{', '.join([*indices, at])}] = {source}[{at}]")

    def renamed(self, s):
        made = copied(s)
        for n in walk(made):
            if isinstance(n, ast.Name) and n.id in self.adjoints:
                n.id = self.named[self.adjoints[n.id]]
            elif isinstance(n, ast.Name) and n.id in self.dead:
                n.id = self.dead[n.id]
            elif isinstance(n, ast.Name) and n.id in self.other:
                n.id = self.other[n.id]
        return made

    # the module

    def module(self, body):
        counted = OnDevice(set(), {n: Kind(k[0].name) for n, k in self.kinds.items()},
                           {self.named[p] for p in self.atomic})
        if self.single:
            single = {n for n, (_, dtype) in self.arrays.items() if dtype == "float32"} | {
                n for n, dtype in self.lists.dtypes.items() if dtype == "float32"}
            in_single(body, {*self.wrt, *self.named.values(), *single})
        body = [with_comments(counted.visit(s), s) for s in body]
        sizes = tuple(self.lists.sizes.values())
        count = self.lists.counted(body, self.arrays.keys() - self.buffers.keys()) if sizes else []
        adjoints = [self.named[p] for p in self.wanted]
        kernels = self.kernel(self.label, [*self.thread.names, *adjoints, *self.buffers], self.buffers, body, ())
        if sizes:
            kernels += ["", "", *self.kernel(f"{self.label}_sizes", [*self.thread.names, *sizes], sizes, count, sizes)]
        words = set(re.findall(r"[A-Za-z_]\w*", "\n".join(n for n in kernels if not n.strip().startswith("#"))))
        functions = sorted(counted.functions - vars(builtins).keys() | words & {"np", "math"} | {"cuda"})
        head = f"from gradscribe.runtime.device import {', '.join(functions)}"
        return Adjoint("\n".join([head, "", "", *kernels]) + "\n", self.label, self.buffers,
                       f"{self.label}_sizes" if sizes else "", sizes)

    def kernel(self, label, given, columns, body, zeros):
        """The lines of a kernel; columns: its arrays that have an entry for each thread, the last axis; zeros: those
        that begin with 0.
        """
        thread, lines_of_place = self.thread, []
        if columns:
            place = next((n for n in thread.places if f"{n} = cuda.grid(1)" in thread.head), None)
            if place is None:
                place = self.fresh("thread", self.used)
                lines_of_place = place_lines(place, thread.axes)
            Buffers(set(columns), place).visit_all(body)
            lines_of_place = [*lines_of_place, *(f"{n}[0, {place}] = 0" for n in zeros)]
        needed = {n.id for s in body for n in walk(s) if isinstance(n, ast.Name)} | {
            n for line in [*thread.head, *thread.loops] for n in re.findall(r"[A-Za-z_]\w*", line)}
        lines = ["@cuda.jit", f"def {label}({', '.join(given)}):"]
        lines += [f"    {line}" for line in thread.head
                  if set(re.findall(r"[A-Za-z_]\w*", line.partition("=")[0])) & needed]
        for name, (shape, dtype) in self.arrays.items():
            if name not in self.buffers and name in needed:
                lengths = ", ".join(map(str, shape))
                lines.append(f"    {name} = cuda.local.array({f'({lengths})' if len(shape) > 1 else lengths}, "
                             f"np.{dtype})")
        lines += [f"    {line}" for line in lines_of_place]
        level = 1
        for loop in thread.loops:
            lines.append("    " * level + loop)
            level += 1
        shown = []
        show(body or [ast.Pass()], level, shown)
        return lines + shown
