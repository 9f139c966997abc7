# SPDX-License-Identifier: Apache-2.0
"""A user's CUDA kernel as a function of one thread, with a proof that threads do not conflict.

The function takes the thread's position and the kernel's parameters, and returns the floating-point arrays that the
kernel writes.  It is differentiated like any other function.  The adjoints of threads may run in parallel if no two
threads access the same entry, unless all of them add to it.  Threads access different entries if the index on some axis
is the thread's position in the grid plus a value that is equal in all threads, or the variable of a grid-stride loop
from there.

Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd edition (2008), 3.3; the adjoint of a program of
independent parts is the adjoints of the parts in any order, as they only add to shared adjoints.
"""
import copy
from collections import Counter
from collections.abc import Callable, Container
from types import FunctionType
from typing import Any, NamedTuple

import gast
import numpy as np

from gradscribe.ast_transform.source.diagnose import LanguageError, RuleError
from gradscribe.ast_transform.source.live import mark_live
from gradscribe.ast_transform.source.read import from_tree, read, unwrap
from gradscribe.codegen.kernels.indices import SAME, TOKENS, Indices, is_length, root
from gradscribe.codegen.kernels.places import AXES, ContinueToReturn, Places, Returns
from gradscribe.codegen.loops.form import Let

SAME_FOR_ALL = ("width", "count", "step")
ALONE = "Each thread must set entries of its own: index an axis with cuda.grid(1), or with the variable of a loop " \
    "from\nthere in steps of cuda.gridsize(1). Use cuda.atomic.add where several threads add to one entry."


class Thread(NamedTuple):
    """A kernel as the work of one thread.

    label: the kernel's name; function: of one thread; places: its parameters before the kernel's, in order; names: the
    kernel's parameters; head: the kernel's first statements, which compute the thread's position; loops: the heads of
    grid-stride loops around a thread's work, outermost first, both in the loop form; written: {array: whether its
    entries are set, not only added to}; axes: {axis of the grid: how it is used}; own: the positions that are unique to
    a thread.
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


def thread_of(function: Callable[..., Any], ranks: dict[str, int] | None = None,
              floating: Container[str] | None = None) -> Thread:
    """The Thread of a kernel's Python function.

    ranks: of its parameters, where they are known; floating: the names of its floating-point arrays; the function
    returns those of them that are written (by default, all that are written).
    Raises TransformError if threads may conflict, or if a thread works together with others.
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
        self.values = {}                # {name that is set once: its value}
        self.running = {}               # {loop variable: (start, step)}

    def thread(self, floating):
        self.tree.decorator_list = []
        places = Places(self)
        places.visit(self.tree)
        self.used = places.used
        body = [s for s in self.tree.body if not (isinstance(s, gast.Expr) and isinstance(s.value, gast.Constant))]
        nodes = every(body)
        self.collect(nodes)
        self.check_calls(nodes)
        written = self.written(nodes)
        head, loops, body = self.peeled(body)
        outs = [n for n in written if floating is None or n in floating]
        needed = {n.id for n in every(body) if isinstance(n, gast.Name)}
        given = [n for n in [*set_by(head), *[v for v, _ in loops]] if n in needed]
        tokens = sorted((needed & places.names.keys()) - set(given))
        head = [*(Let(t, places.names[t]) for t in tokens), *map(places.before, head)]
        result = gast.Tuple([gast.Name(n, gast.Load(), None, None) for n in outs], gast.Load())
        Returns(result).visit_all(body)
        body = [*body, gast.Return(result)]
        tree = self.tree
        tree.body, tree.returns = body, None
        tree.args.args = [gast.Name(n, gast.Param(), None, None) for n in [*tokens, *given, *self.names]]
        gast.fix_missing_locations(tree)
        function = from_tree(tree, self.source, {"np": np})
        of_all = [("grid", a) for a in self.used] if len(self.used) == 1 else []
        own = {n for n in [*tokens, *given] if self.place_of(n) in of_all}
        return Thread(tree.name, function, [*tokens, *given], self.names, head,
                      [places.before(loop) for _, loop in loops], written, self.used, own)

    def check_calls(self, nodes):
        """Checks that functions that take arrays only read them."""
        for n in (n for n in nodes if isinstance(n, gast.Call)):
            given = next((a for a in n.args if isinstance(a, gast.Name) and self.ranks.get(a.id)), None)
            if given is not None and writes(n.func, self.source.scope):
                raise LanguageError(f"{given.id} is given to a function that may write into it", self.place(n),
                                    "Write into the kernel's parameters in the kernel itself.")

    # names

    def collect(self, nodes):
        """Collects the values of names that are set once, and the start and step of loop variables."""
        count = Counter(n.id for n in nodes if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Store))
        self.set_here = set(count)
        self.once = once = {n for n, k in count.items() if k == 1 and n not in self.names}
        for n in nodes:
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

    # arrays

    def written(self, nodes):
        """{parameter that is written: whether its entries are set}; raises if threads may conflict in one."""
        accesses, kinds = {}, {}
        inside = {id(n.target) for n in nodes if isinstance(n, gast.AugAssign)}
        for n in nodes:
            if isinstance(n, gast.Subscript) and isinstance(n.value, gast.Name):
                accesses.setdefault(n.value.id, []).append(n)
            if isinstance(n, gast.AugAssign) and isinstance(n.target, gast.Subscript):
                kinds.setdefault(root(n.target), []).append("added" if hasattr(n, "atomic") else "set")
            elif isinstance(n, gast.Subscript) and isinstance(n.ctx, gast.Store) and id(n) not in inside:
                kinds.setdefault(root(n), []).append("set")
        self.indices = Indices(self.values, self.running, self.names, set(self.names) - kinds.keys(), self.set_here)
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
        for n in nodes:
            if isinstance(n, gast.Assign) and getattr(n.value, "id", None) in written:
                raise LanguageError(f"{n.value.id}, which is written, gets an alias here", self.place(n),
                                    "Write into the parameter itself.")
        return written

    def prove(self, name, accesses):
        """Proves that only one thread accesses each entry of an array; raises RuleError otherwise."""
        indices = [[self.indices.polynomial(i) for i in (
            n.slice.elts if isinstance(n.slice, gast.Tuple) else [n.slice])] for n in accesses]
        covered = {self.indices.belongs(first) for first, *others in zip(*indices) if all(o == first for o in others)}
        covered -= {None, SAME}
        for axis in AXES:
            used, own = self.used.get(axis, set()) - set(SAME_FOR_ALL), {t for t, a in covered if a == axis}
            if used and "grid" not in own and not {"thread", "block"} <= own and used != own:
                others = [n for n, i in zip(accesses, indices) if not any(map(self.indices.belongs, i))] or accesses
                raise RuleError(f"several threads may access one entry of {name}", self.place(others[0]), ALONE)

    def place_of(self, name):
        """The positions that a name distinguishes (Indices.belongs)."""
        return self.indices.belongs(self.indices.polynomial(gast.Name(name, gast.Load(), None, None)))

    def place(self, node):
        return self.source.origin(node, node) if node is not None else self.source.header()

    # what surrounds a thread's work

    def peeled(self, body):
        """(the statements that compute the thread's position, the grid-stride loops, the statements inside)."""
        head, loops = [], []
        while True:
            while body and self.is_index(body[0]):
                head.append(body[0])
                body = body[1:]
            last = body[-1] if body else None
            if not (isinstance(last, gast.For) and isinstance(last.target, gast.Name) and not last.orelse and
                    last.target.id in self.running and self.place_of(last.target.id) and
                    self.head_only(last.iter, head) and all(map(is_plain, body[:-1])) and not self.carried(last) and
                    not any(map(ends, last.body))):
                return head, loops, body
            loops.append((last.target.id, last))
            body = [*body[:-1], *map(ContinueToReturn().visit, last.body)]

    def head_only(self, node, head):
        known = {*set_by(head), *self.names, *TOKENS, "range", "len", "min", "max"}
        return all(n.id in known for n in gast.walk(node) if isinstance(n, gast.Name))

    def carried(self, loop):
        """Whether a loop carries a value from one pass to the next."""
        alone = copy.copy(self.tree)
        vars(alone).pop("marked", None)
        alone.body = [copy.deepcopy(loop)]
        mark_live(alone)
        return not alone.body[0].live.isdisjoint(set_by(loop.body))

    def is_index(self, s):
        """Whether a statement only sets names to positions, lengths and integers computed from these."""
        if not (isinstance(s, gast.Assign) and len(s.targets) == 1):
            return False
        return all(isinstance(t, gast.Name) and t.id in self.once and self.is_whole_number(v)
                   for t, v in pairs(s.targets[0], s.value))

    def is_whole_number(self, node):
        if isinstance(node, gast.Constant):
            return type(node.value) is int
        if isinstance(node, gast.Name):
            return node.id in TOKENS or node.id in self.values and self.is_whole_number(self.values[node.id])
        if isinstance(node, gast.BinOp):
            return isinstance(node.op, (gast.Add, gast.Sub, gast.Mult, gast.FloorDiv, gast.Mod)) and \
                self.is_whole_number(node.left) and self.is_whole_number(node.right)
        return is_length(node, self.names)


def every(statements):
    """All nodes of statements."""
    return [n for s in statements for n in gast.walk(s)]


def set_by(statements):
    return [n.id for n in every(statements) if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Store)]


def pairs(target, value):
    """(target, value) of an assignment, element by element if both sides are tuples."""
    if isinstance(target, gast.Tuple) and isinstance(value, gast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def is_new(value):
    return isinstance(value, gast.Call) and isinstance(value.func, gast.Attribute) and value.func.attr in (
        "empty", "zeros", "ones", "full")


def writes(called, scope, depth=8):
    """Whether a called function may write into arrays."""
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
        writes(n.func, source.scope, depth - 1)
        for n in every([source.tree.body] if isinstance(source.tree, gast.Lambda) else source.tree.body))


def ends(node, inside=False):
    """Whether a statement may end the thread, or the loop that contains it."""
    if isinstance(node, gast.Return) or isinstance(node, gast.Break) and not inside:
        return True
    inside = inside or isinstance(node, (gast.For, gast.While))
    return any(ends(n, inside) for n in gast.iter_child_nodes(node))


def is_plain(s):
    """Whether a statement only assigns to names, and makes no array."""
    return isinstance(s, gast.Assign) and all(isinstance(t, gast.Name) for t in s.targets) and not any(
        is_new(n) for n in gast.walk(s))


def range_of(node):
    """(start, step) of a range with three arguments; None for any other node."""
    if isinstance(node, gast.Call) and isinstance(node.func, gast.Name) and node.func.id == "range" and \
            len(node.args) == 3:
        return node.args[0], node.args[2]
    return None
