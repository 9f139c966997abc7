# SPDX-License-Identifier: Apache-2.0
"""A kernel of rows: one block takes a pass of one loop or of several, its threads the passes of the loops inside.

A row is read where it lies, and stays near for the loops that read it again.  What is between the loops, each thread
computes for itself; a sum goes over the threads of the block, and each of them has it.  A sum over all rows is each
thread's own until the end, when the block's goes to its place among the parts.
"""
import ast

from gradscribe.codegen.cuda.kernels import (
    NAMED,
    enclosed,
    identity,
    is_zero,
    other,
    places_of,
    strided,
    text_of,
)
from gradscribe.codegen.cuda.reach import Reach
from gradscribe.codegen.cuda.trees import names_in, walk

SIZES = ("float64", "float32", "int64", "int32")


class Rows:
    """sorting: as in module.py.  Attribute inner: the loops of a pass, with their numbers; None where it has others."""

    def __init__(self, nest, sorting):
        self.nest, self.sorting = nest, sorting
        self.inner = None if nest.free.atomic or not self.has_form(nest.free.numbers) else self.found()
        self.functions = set()

    def has_form(self, numbers):
        """Whether a block has a function that puts numbers together."""
        return set(numbers.values()) <= NAMED.keys() and all(self.sorting.kinds[n].dtype in SIZES for n in numbers)

    def found(self):
        """{loop: its numbers} of a pass whose loops all have passes in any order."""
        inner, places = {}, {n.target.id for n in self.nest.loops}
        for s in self.nest.body:
            if isinstance(s, ast.For):
                free = self.sorting.order.free(s)
                if free is None or free.atomic or names_in(s.iter).keys() & places or self.sorting.is_short(s) or \
                        not self.has_form(free.numbers):
                    return None
                inner[s] = {n: op for n, op in free.numbers.items() if n not in self.nest.free.numbers}
            elif self.is_part(s):
                continue
            elif not isinstance(s, ast.Assign) or not isinstance(s.targets[0], ast.Name):
                if not (isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Subscript)):
                    return None
        set_here = {n.id for s in self.nest.body if s not in inner for n in walk(s) if isinstance(n, ast.Name)
                    and isinstance(n.ctx, ast.Store)}
        for k, s in enumerate(self.nest.body):          # all threads set such an entry: none may have to read it before
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Subscript) and \
                    s.targets[0].value.id in arrays_read(self.nest.body[:k + 1]):
                return None
        if not inner or any(names_in(s.iter).keys() & set_here for s in inner) or any(
                names_in(s).keys() & set(self.sorting.order.private) for s in self.nest.body):
            return None
        return inner

    def count(self):
        """The text of the number of rows."""
        return " * ".join(enclosed(n.iter.args[0]) if len(self.nest.loops) > 1 else ast.unparse(n.iter.args[0])
                          for n in self.nest.loops)

    def lines(self, device, taken):
        """The kernel's lines; device: writes statements as threads run them; taken: names of others."""
        loops, out = self.nest.loops, []
        read = set()                    # since the threads of the block have waited for each other
        for s in self.nest.body:
            if s in self.inner and Reach(*s.body).writes.keys() & read:
                out.append((0, "cuda.syncthreads()", None))
                read = set()
            read |= arrays_read([s])
            if self.is_part(s):
                out.append((0, "if cuda.threadIdx.x == 0:", getattr(s, "origin", None)))
                out += text_of(device.block([s]), 1)
                continue
            if s not in self.inner:
                out += text_of(device.block([s]), 0)
                if isinstance(s.targets[0], ast.Subscript):
                    out.append((0, "cuda.syncthreads()", None))
                continue
            out += self.threads(s, device)
        at = loops[0].target.id
        if len(loops) > 1:
            at = other("place", taken)
            out = [(0, line, None) for line in places_of(loops, at)] + out
        stop = device.text(ast.parse(self.count(), mode="eval").body)
        out = strided(at, "cuda.blockIdx.x", stop, "cuda.gridDim.x", out, loops[0])
        return [(1 + level, line, o) for level, line, o in out]

    def threads(self, loop, device):
        """A loop of a pass, by the threads of the block."""
        out, after = [], []
        for name, op in self.inner[loop].items():
            function = f"row_{NAMED[op]}_{self.sorting.kinds[name].dtype}"
            self.functions.add(function)
            if op == "+" and self.begins_with_zero(name, loop):
                after.append((0, f"{name} = {function}({name})", None))
            elif op in "+*":
                before = f"{name}_before"
                while before in self.sorting.kinds:
                    before += "_"
                out += [(0, f"{before} = {name}", None),
                        (0, f"{name} = {identity(op, self.sorting.kinds[name].dtype)}", None)]
                after.append((0, f"{name} = {before} {op} {function}({name})", None))
            else:
                after.append((0, f"{name} = {function}({name})", None))
        out += strided(loop.target.id, "cuda.threadIdx.x", device.text(loop.iter.args[0]), "cuda.blockDim.x",
                       text_of(device.block(loop.body), 0), loop)
        if Reach(*loop.body).writes or not Reach(*loop.body).known:
            after.append((0, "cuda.syncthreads()", None))
        return out + after

    def is_part(self, s):
        """Whether a statement of a pass puts something to a number of all rows."""
        target = s.target if isinstance(s, ast.AugAssign) else s.targets[0] if isinstance(s, ast.Assign) else None
        return isinstance(target, ast.Name) and target.id in self.nest.free.numbers

    def parts(self, name, op, part):
        """The lines that put what a block has of a number among the parts."""
        function = f"row_{NAMED[op]}_{self.sorting.kinds[name].dtype}"
        self.functions.add(function)
        return [(1, f"{name} = {function}({name})", None), (1, "if cuda.threadIdx.x == 0:", None),
                (2, f"{part}[cuda.blockIdx.x] = {name}", None)]

    def begins_with_zero(self, name, loop):
        """Whether a sum is set to zero above its loop, and not touched since."""
        above = self.nest.body[:self.nest.body.index(loop)]
        touched = [s for s in above if any(isinstance(n, ast.Name) and n.id == name for n in walk(s))]
        return bool(touched) and is_zero(touched[-1], name)

    def length(self):
        """The text of the length of a row."""
        return ast.unparse(next(iter(self.inner)).iter.args[0])


def arrays_read(body):
    """Arrays of which statements read entries."""
    return {n.value.id for s in body for n in walk(s) if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)
            and isinstance(n.ctx, ast.Load)} | {n.target.value.id for s in body for n in walk(s) if isinstance(
                n, ast.AugAssign) and isinstance(n.target, ast.Subscript)}
