# SPDX-License-Identifier: Apache-2.0
"""Writes a module for a device: each statement of a lowered text goes into a kernel, or is a line of the host's."""
import ast
import re
from typing import NamedTuple

from gradscribe.codegen.cuda.by_columns import Columns
from gradscribe.codegen.cuda.by_rows import Rows
from gradscribe.codegen.cuda.host import BUILTIN, OnHost
from gradscribe.codegen.cuda.kernels import (
    NAMED,
    Kernel,
    OnDevice,
    along_lanes,
    copied,
    identity,
    loaded,
    spread,
    stops,
    stored,
    text_of,
)
from gradscribe.codegen.cuda.order import read_before_set
from gradscribe.codegen.cuda.sorting import Sorting, list_call
from gradscribe.codegen.cuda.trees import names_in, walk
from gradscribe.codegen.cuda.waiting import Waiting, begun, freed, set_in_order, written
from gradscribe.codegen.targets.cuda.thread_memory import NotPrivate

THREADS = 256                           # of a block
SHORT = ("bfloat16", "short")
PASSED = {"wrong"}                      # what kernels are given beside the text's names


class Made(NamedTuple):
    """text: of the module; label: of its function; origins: of each line; returned: the names of its results; held:
    numbers on the device.
    """
    text: str
    label: str
    origins: list
    returned: list
    held: set


class Options(NamedTuple):
    """graph: calls of equal shapes become CUDA graphs; deterministic: all sums have one order; check_bounds: indices
    that are data are checked; tf32: factors of products in single precision are rounded to 10 bits; bfloat16: what
    is said to be float16 is bfloat16; single: nothing is in double precision, so that elementary functions need not be.
    """
    graph: bool = False
    deterministic: bool = False
    check_bounds: bool = True
    tf32: bool = False
    bfloat16: bool = False
    single: bool = False


USUAL = Options()


def is_half(value):
    """Whether a value is a number's in half precision."""
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "np.float16"


class Writer:
    """private: what threads have for themselves; brief: numbers of which one thread's work is the beginning and the
    end, as an earlier writer has found.
    """

    def __init__(self, function, kinds, private, brief=frozenset(), options=USUAL):
        self.check_bounds, self.tf32, self.single = options.check_bounds, options.tf32, options.single
        self.function, self.kinds, self.label = function, kinds, function.name
        self.bfloat16 = options.bfloat16
        self.private, self.private_loops = private.made, private.loops
        self.sorting = Sorting(function, kinds, self.private)
        self.sorting.brief = brief
        self.sorting.held -= brief
        self.private_made = list(self.private.values())
        self.parts = []                 # [the statements of one thread's work]
        self.held, self.order = self.sorting.held, self.sorting.order
        self.lines, self.kernels, self.waiting, self.used, self.functions = [], [], [], set(), set()
        self.names = stored([function]) | {a.arg for a in function.args.args}
        self.places, self.returned = False, []

    def module(self):
        self.block(self.function.body, 1)
        given = ", ".join(a.arg for a in self.function.args.args)
        arguments = {a.arg for a in self.function.args.args}
        head = [(1, f"{n} = cp.empty(1, np.{self.kinds[n].dtype})", None)
                for n in set_in_order(self.function) if n in self.held and n not in arguments]
        head += [(1, f"{n} = cp.full(1, {n}, np.{self.kinds[n].dtype})", None) for n in sorted(arguments & self.held)]
        if self.places:
            head.append((1, "wrong = cp.zeros(1, np.int64)", None))
        self.lines = freed(self.lines, {n for n, k in self.kinds.items() if k.rank} - arguments)
        lines = []
        for kernel in self.kernels:
            lines += [("", None), ("", None), *((self.in_short(line, "short"), o) for line, o in kernel.lines())]
        lines += [("", None), ("", None), (f"def {self.label}({given}):", None)]
        lines += [("    " * level + self.in_short(line, "bfloat16"), origin)
                  for level, line, origin in [*head, *self.lines]]
        words = set(re.findall(r"[A-Za-z_]\w*", "\n".join(line for line, _ in lines)))
        self.imported = self.functions - BUILTIN | words & {
            "cp", "cuda", "host", "math", "np", *PASSED & self.names, *SHORT * self.bfloat16}
        functions = sorted(self.imported - PASSED)
        first = f"from gradscribe.runtime.device import {', '.join(functions)}" if functions else "# only what is given"
        return Made("\n".join([first, *(line for line, _ in lines)]) + "\n", self.label,
                    [None, *(origin for _, origin in lines)], self.returned, self.held)

    def in_short(self, line, rounded):
        """A line with bfloat16 in the place of float16; rounded: what makes such a number."""
        return line if not self.bfloat16 else line.replace("np.float16(", f"{rounded}(").replace(
            "np.float16", "bfloat16")

    def brief(self):
        """Numbers that stay on the device, and that one part of one thread's work sets and reads alone."""
        places = {}
        for k, part in enumerate(self.parts):
            sums = {w.name for w in part if w.op}
            nodes = [w.node for w in part if not w.op]
            early = read_before_set(nodes)
            for n in loaded(nodes) + list(stored(nodes)) + list(sums):
                places.setdefault(n, set()).add(k if n not in early | sums else None)
        inside = {id(n) for part in self.parts for w in part if not w.op for n in walk(w.node)}
        outside = {n.id for n in walk(self.function) if isinstance(n, ast.Name) and id(n) not in inside}
        arguments = {a.arg for a in self.function.args.args}
        return {n for n in self.held - outside - arguments if len(places.get(n, ())) == 1 and None not in places[n]}

    def fresh(self, name):
        made, k = name, 1
        while made in self.used | self.names:
            k += 1
            made = f"{name}_{k}"
        self.used.add(made)
        return made

    def say(self, level, line, origin=None):
        self.lines.append((level, line, origin))

    # the host

    def block(self, body, level):
        for node in body:
            if node in self.private_made:
                continue
            kind = self.sorting.of(node)
            if kind == "kernel":
                self.kernel(node, level)
            elif kind == "serial":
                self.waiting.append(self.what(node))
            else:
                self.host(node, level)
        self.flush(level)

    def what(self, node):
        """A statement that waits for a thread."""
        return Waiting(node, set(loaded([node])) | read_before_set([node]), stored([node]) | written([node]))

    def host(self, node, level):
        origin = getattr(node, "origin", None)
        if isinstance(node, (ast.For, ast.While, ast.If)):
            self.flush(level)
            if isinstance(node, ast.For) and node.target.id in self.held:
                at = self.fresh(f"{node.target.id}_at")
                self.functions.add("one")
                self.say(level, f"for {at} in {self.on_host(node.iter)}:", origin)
                self.say(level + 1, f"{node.target.id} = one({at})", origin)
            elif isinstance(node, ast.For):
                self.say(level, f"for {ast.unparse(node.target)} in {self.on_host(node.iter)}:", origin)
            else:
                word = "if" if isinstance(node, ast.If) else "while"
                self.say(level, f"{word} {self.on_host(node.test)}:", origin)
            self.inner(node.body, level + 1)
            if node.orelse:
                self.say(level, "else:", origin)
                self.inner(node.orelse, level + 1)
            return
        if any(isinstance(n, ast.Name) and n.id in self.private for n in walk(node)):
            raise NotPrivate(next(n.id for n in walk(node) if isinstance(n, ast.Name) and n.id in self.private))
        self.before(self.what(node), level)
        if isinstance(node, ast.Return):
            self.flush(level)
            if self.places:
                self.functions.add("check_places")
                self.say(level, "check_places(wrong)")
            given = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            self.returned = [getattr(v.args[0] if is_half(v) else v, "id", None) for v in given]
            parts = [self.result(v) for v in given]
            self.say(level, f"return ({', '.join(parts)}{',' * (len(parts) == 1)})", origin)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and \
                node.targets[0].id in self.held:
            value = self.on_host(node.value)
            if list_call(node.value) is None:
                self.functions.add("one")
                value = f"one({value})"
            self.say(level, f"{node.targets[0].id} = {value}", origin)
        else:
            for line in ast.unparse(self.host_tree(node)).splitlines():
                self.say(level, line, origin)
            for n in [n.id for t in getattr(node, "targets", ()) for n in walk(t) if isinstance(n, ast.Name)]:
                if n in self.held:
                    self.functions.add("one")
                    self.say(level, f"{n} = one({n})", origin)

    def inner(self, body, level):
        before = len(self.lines)
        self.block(body, level)
        if len(self.lines) == before:
            self.say(level, "pass")

    def result(self, value):
        if isinstance(value, ast.Name) and value.id in self.held:
            return f"{value.id}[0]"
        if is_half(value) and getattr(value.args[0], "id", None) in self.held:
            return f"{value.args[0].id}[0].astype(np.float16)"
        return self.on_host(value)

    def on_host(self, node):
        return ast.unparse(self.host_tree(node))

    def host_tree(self, node):
        tree = OnHost(self.sorting, self.tf32)
        made = tree.visit(copied(node))
        self.functions |= tree.functions
        return made

    # threads

    def before(self, what, level):
        """One thread's work is done before a statement that needs it, or that it must not see."""
        if any(self.clash(w, what) for w in self.waiting):
            self.flush(level)

    def clash(self, a, b):
        return any(self.same(w, n) for w in a.writes for n in b.reads | b.writes) or \
            any(self.same(w, n) for w in b.writes for n in a.reads)

    def same(self, a, b):
        if a == b:
            return True
        ranks = self.sorting.rank(a), self.sorting.rank(b)
        return bool(ranks[0] and ranks[1]) and not self.order.apart(a, b)

    def flush(self, level):
        """One thread does what waits."""
        waiting, self.waiting = begun(self.waiting), []
        if not waiting:
            return
        self.parts.append(waiting)
        given, lines, sums = {}, [], []
        device = OnDevice(self.held, self.kinds, (), self.check_bounds, self.single)
        for w in waiting:
            if not w.op:
                lines += text_of(device.block([w.node]), 0)
                continue
            total = self.fresh(f"{w.name}_all")
            function = f"{NAMED[w.op]}_of"
            self.functions.add(function)
            sums.append((1, f"{total} = {function}({w.parts})", None))
            given.setdefault(w.parts)
            text = {"+": f"{w.name}[0] += {total}", "*": f"{w.name}[0] *= {total}", "=": f"{w.name}[0] = {total}"}.get(
                w.begins or w.op, f"{w.name}[0] = {w.op}({w.name}[0], {total})")
            if w.op not in "+*":
                self.functions.add(w.op)
            lines.append((0, text, None))
        self.functions |= device.functions
        local = set().union(*(w.writes for w in waiting if not w.op)) - self.held
        for w in waiting:
            for n in [*loaded([w.node] if w.node is not None else []), *sorted(w.writes)]:
                if self.is_given(n, local):
                    given.setdefault(n)
        given = self.with_places(device, given)
        if sums:
            body = [*sums, (1, "if cuda.threadIdx.x == 0:", None)]
        else:
            body = []
        body[:0] = self.own([w.node for w in waiting if not w.op])
        body += [(1 + bool(sums) + k, line, origin) for k, line, origin in lines]
        origin = next((o for _, _, o in lines if o is not None), None)
        body = self.rounded_before(given, body)
        kernel = Kernel(self.named(), list(given), body, origin)
        self.kernels.append(kernel)
        self.functions.add("one_block")
        values = ", ".join(v or k for k, v in given.items())
        self.say(level, f"{kernel.name}[one_block({THREADS if sums else 1})]({values})", origin)

    def named(self):
        return self.fresh(f"{self.label}_{len(self.kernels) + 1}")

    def is_given(self, name, local):
        return (name in self.kinds or name in self.held) and name not in self.private and (
            name not in local or bool(self.sorting.rank(name)))

    def own(self, nodes):
        """The lines that make what a thread has for itself; a whole loop that it is made in must be there."""
        inside = {id(n) for s in nodes for n in walk(s)}
        for n in [*loaded(nodes), *sorted(written(nodes))]:
            if n in self.private and not any(id(loop) in inside for loop in self.private_loops[n]):
                raise NotPrivate(n)
        return [(1, f"{n} = cuda.local.array({ast.unparse(self.private[n].value.args[0])}, "
                    f"{ast.unparse(self.private[n].value.args[1])})", None)
                for n in dict.fromkeys([*loaded(nodes), *sorted(written(nodes))]) if n in self.private]

    def with_places(self, device, given):
        if device.places:
            self.places = True
            given = {**given, "wrong": None}
        return given

    def kernel(self, loop, level):
        nest = self.sorting.nest(loop)
        origin = getattr(loop, "origin", None)
        numbers = {n: op for n, op in nest.free.numbers.items() if op not in ("True", "False")}
        local = (stored([loop]) - nest.free.numbers.keys()) - {n for n in self.kinds if self.sorting.rank(n)}
        what = self.what(loop)
        started = {n for n, op in numbers.items() if op not in "+*"}
        what = what._replace(reads=(what.reads - local - numbers.keys()) | started,
                             writes=what.writes - local - numbers.keys())
        self.before(what, level)
        device = OnDevice(self.held - local - numbers.keys(), self.kinds, nest.free.atomic, self.check_bounds,
                          self.single)
        columns = Columns(nest, loop, self.sorting, self.fresh)
        if columns.inner is not None:
            self.columns_of(loop, columns, what, device, level)
            return
        rows = Rows(nest, self.sorting)
        if rows.inner is not None:
            body = rows.lines(device, self.names)
        else:
            nest, crossed = along_lanes(nest)
            body = spread(nest, device, self.names)
        given, before, after, parts = {}, [], [], []
        of_rows = "row_" if rows.inner is not None else ""
        stop = [self.on_host(ast.parse(s, mode="eval").body) for s in (
            (rows.count(), rows.length()) if of_rows else stops(nest))]
        held = [n for s in stops(nest) for n in names_in(ast.parse(s)) if n in self.held]
        written_here = [n for n in loaded([loop]) if n in what.writes] + sorted(what.writes)
        for n in [*(n for n in [*loaded([loop]), *held] if n not in what.writes), *written_here]:
            if n not in numbers and self.is_given(n, local):
                given.setdefault(n)
        for n, op in numbers.items():
            dtype = self.kinds[n].dtype
            part = self.fresh(f"{n}_parts")
            if op in "+*":
                before.append((1, f"{n} = {identity(op, dtype)}", None))
            else:
                start = self.fresh(f"{n}_start")
                before.append((1, f"{n} = {start}[0]", None))
                given[start] = n
            if rows.inner is not None:
                after += rows.parts(n, op, part)
            else:
                self.functions.add(f"block_{NAMED[op]}")
                after.append((1, f"block_{NAMED[op]}({part}, {n})", None))
            self.functions.add(f"{of_rows}blocks")
            given[part] = None
            self.say(level, f"{part} = cp.empty({of_rows}blocks({', '.join(stop)}), np.{dtype})", origin)
            parts.append(Waiting(None, {n, part}, {n}, n, op, part))
        given = self.with_places(device, given)
        body = self.rounded_before(given, body)
        kernel = Kernel(self.named(), list(given), [*self.own([loop]), *before, *body, *after], origin)
        self.kernels.append(kernel)
        values = ", ".join(v or k for k, v in given.items())
        grid = "tile_grid" if not of_rows and crossed and not numbers else f"{of_rows}grid"
        self.functions |= {grid} | device.functions | rows.functions
        self.say(level, f"{kernel.name}[{grid}({', '.join(stop)})]({values})", origin)
        self.waiting += parts


    def rounded_before(self, given, body):
        """A kernel's lines, and in `given` the values, where numbers in double precision that threads take in single
        alone are rounded before they are given.
        """
        text = "\n".join(line for _, line, _ in body)
        for n in [n for n, value in given.items() if value is None and n in self.kinds and n not in self.held]:
            inside = rf"np\.float32\({n}\)"
            if self.kinds[n] == ("float64", 0) and re.search(inside, text) and not re.search(
                    rf"\b{n}\b", re.sub(inside, "", text)):
                given[n] = f"np.float32({n})"
                body = [(level, re.sub(inside, n, line), origin) for level, line, origin in body]
        return body

    def columns_of(self, loop, columns, what, device, level):
        """The two kernels of a nest that has sums into columns."""
        origin = getattr(loop, "origin", None)
        count, length = (self.on_host(ast.parse(n, mode="eval").body) for n in (columns.count(), columns.length()))
        sizes, sums = f"{count}, {length}", columns.sums
        self.functions |= {"column_blocks", "column_grid", "column_sum", "grid"}
        for s in sums:
            self.say(level, f"{s.parts} = cp.empty((column_blocks({sizes}), {count}), np.{s.dtype})", origin)
        both = [("column_grid", sizes, columns.rows(device, self.names)),
                ("grid", count, columns.together(device, self.names))]
        for grid, lengths, lines in both:
            tree = ast.parse("def f():\n" + "\n".join("    " * k + line for k, line, _ in lines)).body[0].body
            made = {s.parts for s in sums}
            names = [n for n in loaded(tree) if n in made or self.is_given(n, stored(tree))]
            given = dict.fromkeys([n for n in names if n not in made and n not in what.writes] +
                                  [n for n in names if n in made or n in what.writes])
            if "wrong" in loaded(tree):
                given = self.with_places(device, given)
            lines = self.rounded_before(given, lines)
            kernel = Kernel(self.named(), list(given), lines, origin)
            self.kernels.append(kernel)
            values = ", ".join(v or k for k, v in given.items())
            self.say(level, f"{kernel.name}[{grid}({lengths})]({values})", origin)
        self.functions |= device.functions
