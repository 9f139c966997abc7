# SPDX-License-Identifier: Apache-2.0
"""A user's CUDA kernel as a function of one thread, and the proof that threads do not meet.

The function takes where the thread is, then the kernel's parameters, and returns the arrays of floating-point numbers
that the kernel writes: what is differentiated like any other function.  That one thread's adjoint may run beside the
others' wants that no two threads have to do with one entry, unless all of them add to it.  An axis of an array belongs
to a thread where its index is the thread's place in the grid, with something added that is the same for all; so does
the variable of a loop that goes on from there by the size of the grid.

Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd edition (2008), 3.3; of a program of independent parts the
adjoint is the parts' adjoints in any order, as each only adds to what the others add to.
"""
import copy
from types import FunctionType
from typing import NamedTuple

import gast
import numpy as np

from gradscribe.ast_transform.source.diagnose import LanguageError, RuleError
from gradscribe.ast_transform.source.live import mark_live
from gradscribe.ast_transform.source.read import from_tree, read, unwrap
from gradscribe.codegen.loops.form import Let
from gradscribe.codegen.targets.cuda.places import AXES, PLACES, Goes, Places, Returns, unparsed

SAME_FOR_ALL = ("width", "count", "step")
ALONE = "An array that threads set belongs to them by an axis: index it with cuda.grid(1), or with the variable of a " \
    "loop from\nthere by cuda.gridsize(1). What several threads add to is for cuda.atomic.add."


class Thread(NamedTuple):
    """A kernel, thread by thread.

    label: the kernel's name; function: of one thread; places: its parameters before the kernel's, in order; names: the
    kernel's parameters; head: the kernel's first statements, which say where a thread is; loops: those around what a
    thread does, from the outside, both in the loop form; written: {array: whether its entries are set, not only added
    to}; axes: {axis of the grid: how it is used}; own: the places that are others in each thread.
    """
    label: str
    function: object
    places: list
    names: list
    head: list
    loops: list
    written: dict
    axes: dict
    own: set


def thread_of(function, ranks=None, floating=None):
    """The Thread of a kernel's Python function.

    ranks: of its parameters, where they are known; floating: the names of its arrays of floating-point numbers: of
    those, the ones that are written are returned (all that are written, if not given).
    Raises TransformError where threads may meet, and for what a thread does not do alone.
    """
    return Reader(function, ranks or {}).thread(floating)


class Reader:
    def __init__(self, function, ranks):
        self.source, self.ranks = read(function), ranks
        self.tree = copy.deepcopy(self.source.tree)
        self.names = [a.id for a in self.tree.args.args]
        arguments = self.tree.args
        if arguments.defaults or arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs:
            raise LanguageError("a kernel's parameters are plain names, without defaults", self.source.header(),
                                "Name each one.")
        self.used, self.local = {}, set()
        self.values = {}                # of names that are set once
        self.running = {}               # loop variables: (start, step)

    def thread(self, floating):
        self.tree.decorator_list = []
        places = Places(self)
        places.visit(self.tree)
        self.used = places.used
        body = [s for s in self.tree.body if not (isinstance(s, gast.Expr) and isinstance(s.value, gast.Constant))]
        self.collect(body)
        self.check_calls(body)
        written = self.written(body)
        head, loops, body = self.peeled(body)
        outs = [n for n in written if floating is None or n in floating]
        given = [*self.set_by(head), *[v for v, _ in loops]]
        left = {n.id for s in body for n in gast.walk(s) if isinstance(n, gast.Name)} & places.names.keys()
        needed = {n.id for s in body for n in gast.walk(s) if isinstance(n, gast.Name)}
        given = [n for n in given if n in needed]
        tokens = sorted(left - set(given))
        head = [*(Let(t, places.names[t]) for t in tokens), *map(places.before, head)]
        result = gast.Tuple([gast.Name(n, gast.Load(), None, None) for n in outs], gast.Load())
        Returns(result).visit_all(body)
        body = [*body, gast.Return(result)]
        tree = self.tree
        tree.body, tree.returns = body, None
        tree.args.args = [gast.Name(n, gast.Param(), None, None) for n in [*tokens, *given, *self.names]]
        gast.fix_missing_locations(tree)
        function = from_tree(tree, self.source, {"np": np})
        of_all = [frozenset([("grid", a)]) for a in self.used] if len(self.used) == 1 else []
        own = {n for n in [*tokens, *given] if self.belongs(gast.Name(n, gast.Load(), None, None)) in of_all}
        return Thread(tree.name, function, [*tokens, *given], self.names, head,
                      [places.before(loop) for _, loop in loops], written, self.used, own)

    def check_calls(self, body):
        """Arrays are given to functions that only read them."""
        for n in (n for s in body for n in gast.walk(s) if isinstance(n, gast.Call)):
            given = next((a for a in n.args if isinstance(a, gast.Name) and self.ranks.get(a.id)), None)
            if given is not None and writes(n.func, self.source.scope):
                raise LanguageError(f"{given.id} is given to a function that may write into it", self.place(n),
                                    "Write into the kernel's parameters in the kernel itself.")

    # names

    def collect(self, body):
        """What names stand for that are set once; of loop variables, where they begin and how they go on."""
        count = {}
        for s in body:
            for n in gast.walk(s):
                if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Store):
                    count[n.id] = count.get(n.id, 0) + 1
        once = {n for n, k in count.items() if k == 1 and n not in self.names}
        self.once = once
        for s in body:
            for n in gast.walk(s):
                if isinstance(n, gast.Assign) and len(n.targets) == 1:
                    for target, value in pairs(n.targets[0], n.value):
                        if isinstance(target, gast.Name) and target.id in once:
                            self.values[target.id] = value
                        if isinstance(target, gast.Name) and is_new(value):
                            self.local.add(target.id)
                elif isinstance(n, gast.For) and isinstance(n.target, gast.Name) and n.target.id in once:
                    found = range_of(n.iter)
                    if found is not None:
                        self.running[n.target.id] = found

    def set_by(self, statements):
        return [n.id for s in statements for n in gast.walk(s) if isinstance(n, gast.Name)
                and isinstance(n.ctx, gast.Store)]

    # what belongs to a thread

    def belongs(self, node, seen=()):
        """The places that an index tells apart: a set, empty where it is the same for all threads; None: not known."""
        if isinstance(node, gast.Constant):
            return frozenset()
        if isinstance(node, gast.Name):
            if node.id in seen:
                return None
            if node.id in self.running:
                return self.belongs_to_loop(*self.running[node.id], (*seen, node.id))
            if node.id in self.values:
                return self.belongs(self.values[node.id], (*seen, node.id))
            token, _, axis = node.id.partition("_")
            if node.id in self.token_names:
                return frozenset() if token in SAME_FOR_ALL else frozenset([(token, axis)])
            return frozenset() if node.id in self.names and node.id not in self.written_names else None
        if is_length(node, self.names):
            return frozenset()
        if isinstance(node, gast.BinOp):
            whole = self.whole_place(node, seen)
            if whole is not None:
                return whole
            left, right = self.belongs(node.left, seen), self.belongs(node.right, seen)
            if left is None or right is None:
                return None
            if not left and not right:
                return frozenset()
            if isinstance(node.op, (gast.Add, gast.Sub)) and not (left and right):
                return left or right
            constant = next((s for s in (node.left, node.right) if isinstance(s, gast.Constant) and s.value), None)
            return (left or right) if isinstance(node.op, gast.Mult) and constant is not None else None
        if isinstance(node, gast.Call) and isinstance(node.func, gast.Name) and node.func.id in ("len", "min", "max"):
            return frozenset() if node.func.id == "len" or all(self.belongs(a, seen) == frozenset()
                                                               for a in node.args) else None
        return None

    def belongs_to_loop(self, start, step, seen):
        """A loop from a thread's place by the size of the grid."""
        begin = self.belongs(start, seen)
        if not begin:
            return None
        (token, axis), *more = begin
        wanted = {"grid": {f"step_{axis}", f"count_{axis} * width_{axis}", f"width_{axis} * count_{axis}"},
                  "thread": {f"width_{axis}"}, "block": {f"count_{axis}"}}[token]
        return None if more or self.text(step) not in wanted else begin

    def whole_place(self, node, seen):
        """blockIdx.x * blockDim.x + threadIdx.x"""
        if isinstance(node.op, gast.Add):
            for axis in AXES:
                block, thread = {f"block_{axis} * width_{axis}", f"width_{axis} * block_{axis}"}, f"thread_{axis}"
                left, right = self.text(node.left), self.text(node.right)
                if left in block and right == thread or right in block and left == thread:
                    return frozenset([("grid", axis)])
        return None

    def text(self, node):
        """An index in terms of places and parameters."""
        def put(n, seen):
            if isinstance(n, gast.Name) and n.id in self.values and n.id not in seen:
                return put(self.values[n.id], (*seen, n.id))
            if isinstance(n, gast.AST):
                return type(n)(**{f: put(v, seen) for f, v in gast.iter_fields(n)})
            return [put(v, seen) for v in n] if isinstance(n, list) else n
        return unparsed(put(node, ()))

    # arrays

    def written(self, body):
        """{array: whether its entries are set}, of parameters; raises where threads may meet in one."""
        self.token_names = {f"{t}_{a}" for t in (*PLACES.values(), "grid", "step") for a in AXES} - set(self.names)
        accesses, kinds = {}, {}
        inside = {id(n.target) for s in body for n in gast.walk(s) if isinstance(n, gast.AugAssign)}
        for s in body:
            for n in gast.walk(s):
                if isinstance(n, gast.Subscript) and isinstance(n.value, gast.Name):
                    accesses.setdefault(n.value.id, []).append(n)
                if isinstance(n, gast.AugAssign) and isinstance(n.target, gast.Subscript):
                    kinds.setdefault(root(n.target), []).append("added" if hasattr(n, "atomic") else "set")
                elif isinstance(n, gast.Subscript) and isinstance(n.ctx, gast.Store) and id(n) not in inside:
                    kinds.setdefault(root(n), []).append("set")
        self.written_names = set(kinds)
        for name in kinds:
            if name in self.local:
                continue
            first = next((n for n in accesses.get(name, ()) if isinstance(n.ctx, gast.Store)), None)
            if name not in self.names:
                raise LanguageError(f"{name} is written, which is no parameter and no array of the thread's own",
                                    self.place(first), "Write into the parameter itself.")
        written = {n: "set" in kinds[n] for n in self.names if n in kinds}
        for name, is_set in written.items():
            found = accesses[name]
            if not is_set:
                reads = [n for n in found if id(n) not in inside]
                if reads:
                    raise RuleError(f"{name} is read here, and other threads add to it", self.place(reads[0]),
                                    "What is read and what is added to are two arrays.")
                continue
            self.prove(name, found)
        for name in written:
            for s in body:
                for n in gast.walk(s):
                    if isinstance(n, gast.Assign) and isinstance(n.value, gast.Name) and n.value.id == name:
                        raise LanguageError(f"{name}, which is written, gets another name here", self.place(n),
                                            "Write into the parameter itself.")
        return written

    def prove(self, name, accesses):
        """One thread alone has to do with each entry."""
        covered = set()
        indices = [n.slice.elts if isinstance(n.slice, gast.Tuple) else [n.slice] for n in accesses]
        for k in range(min(map(len, indices))):
            found = [self.belongs(i[k]) for i in indices]
            if found[0] and all(f == found[0] for f in found) and len({self.text(i[k]) for i in indices}) == 1:
                covered |= found[0]
        for axis in AXES:
            used, own = self.used.get(axis, set()) - set(SAME_FOR_ALL), {t for t, a in covered if a == axis}
            if used and "grid" not in own and not {"thread", "block"} <= own and used != own:
                others = [n for n, i in zip(accesses, indices) if not any(self.belongs(e) for e in i)] or accesses
                raise RuleError(f"several threads may have to do with an entry of {name}", self.place(others[0]), ALONE)

    def place(self, node):
        return self.source.origin(node, node) if node is not None else self.source.header()

    # what stands around a thread's work

    def peeled(self, body):
        """(the lines that say where a thread is, loops over the grid, what is inside)."""
        head, loops = [], []
        while True:
            while body and self.is_index(body[0]):
                head.append(body[0])
                body = body[1:]
            last = body[-1] if body else None
            if not (isinstance(last, gast.For) and isinstance(last.target, gast.Name) and not last.orelse and
                    last.target.id in self.running and self.belongs(last.target) and
                    self.head_only(last.iter, head) and all(map(is_plain, body[:-1])) and not self.carried(last) and
                    not any(map(ends, last.body))):
                return head, loops, body
            loops.append((last.target.id, last))
            body = [*body[:-1], *map(Goes().visit, last.body)]

    def head_only(self, node, head):
        known = {*self.set_by(head), *self.names, *self.token_names, "range", "len", "min", "max"}
        return all(n.id in known for n in gast.walk(node) if isinstance(n, gast.Name))

    def carried(self, loop):
        """Whether a pass of a loop finds what the one before has left."""
        alone = copy.copy(self.tree)
        alone.body, alone.marked = [copy.deepcopy(loop)], None
        del alone.marked
        mark_live(alone)
        return not alone.body[0].live.isdisjoint(self.set_by(loop.body))

    def is_index(self, s):
        """A line that says where a thread is, or how long something is."""
        if not (isinstance(s, gast.Assign) and len(s.targets) == 1):
            return False
        return all(isinstance(t, gast.Name) and t.id in self.once and self.is_whole_number(v)
                   for t, v in pairs(s.targets[0], s.value))

    def is_whole_number(self, node):
        if isinstance(node, gast.Constant):
            return type(node.value) is int
        if isinstance(node, gast.Name):
            return node.id in self.token_names or node.id in self.values and self.is_whole_number(self.values[node.id])
        if isinstance(node, gast.BinOp):
            return isinstance(node.op, (gast.Add, gast.Sub, gast.Mult, gast.FloorDiv, gast.Mod)) and \
                self.is_whole_number(node.left) and self.is_whole_number(node.right)
        return is_length(node, self.names)


def pairs(target, value):
    """(name, value) of an assignment, of its parts where both sides have parts."""
    if isinstance(target, gast.Tuple) and isinstance(value, gast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def root(node):
    while isinstance(node, (gast.Subscript, gast.Attribute)):
        node = node.value
    return node.id if isinstance(node, gast.Name) else None


def is_new(value):
    return isinstance(value, gast.Call) and isinstance(value.func, gast.Attribute) and value.func.attr in (
        "empty", "zeros", "ones", "full")


def is_length(node, names):
    """x.shape[0], x.size, len(x)"""
    if isinstance(node, gast.Subscript):
        node = node.value
        return isinstance(node, gast.Attribute) and node.attr == "shape" and root(node) in names
    if isinstance(node, gast.Call):
        return isinstance(node.func, gast.Name) and node.func.id == "len" and root(node.args[0]) in names
    return isinstance(node, gast.Attribute) and node.attr in ("size", "ndim") and root(node) in names


def writes(called, scope, depth=8):
    """Whether a function that is called by a name may write into arrays."""
    parts = []
    while isinstance(called, gast.Attribute):
        parts.append(called.attr)
        called = called.value
    try:
        value = scope.lookup(called.id)
        for part in reversed(parts):
            value = getattr(value, part)
    except (NameError, AttributeError):
        return True
    value = unwrap(value)
    if (getattr(value, "__module__", None) or "").split(".")[0] in ("builtins", "math", "numpy") or isinstance(
            value, np.ufunc):
        return value in (setattr, exec, eval)
    if not isinstance(value, FunctionType):
        return True
    source = read(value)
    return depth == 0 or any(
        isinstance(n, gast.Subscript) and isinstance(n.ctx, gast.Store) or isinstance(n, gast.Call) and
        writes(n.func, source.scope, depth - 1) for n in in_body(source.tree))


def ends(node, inside=False):
    """Whether a statement ends the thread, or the loop that it stands in."""
    if isinstance(node, gast.Return) or isinstance(node, gast.Break) and not inside:
        return True
    inside = inside or isinstance(node, (gast.For, gast.While))
    return any(ends(n, inside) for n in gast.iter_child_nodes(node))


def in_body(function):
    body = [function.body] if isinstance(function, gast.Lambda) else function.body
    return (n for s in body for n in gast.walk(s))


def is_plain(s):
    """A line that only gives numbers names."""
    return isinstance(s, gast.Assign) and all(isinstance(t, gast.Name) for t in s.targets) and not any(
        is_new(n) for n in gast.walk(s))


def range_of(node):
    """(start, step) of a range with three arguments."""
    if isinstance(node, gast.Call) and isinstance(node.func, gast.Name) and node.func.id == "range" and \
            len(node.args) == 3:
        return node.args[0], node.args[2]
    return None
