# SPDX-License-Identifier: Apache-2.0
"""Which loops may have their passes taken by threads, in any order, and what the threads then put together.

>>> tree = ast.parse('''def f(x, k):
...     z = np.empty((9,), np.float64)
...     s = 0.0
...     for i in range(9):
...         z[i] = x[i] + s
...         z[k[i]] += x[i]
...     for i in range(9):
...         z[k[i]] += x[i]
...         s += x[i]
...     for i in range(9):
...         z[k[i]] = x[i]''')
>>> order = Order(tree.body[0])
>>> [order.free(loop) for loop in tree.body[0].body if isinstance(loop, ast.For)]
[None, Free(numbers={'s': '+'}, atomic={'z'}), None]
"""
import ast
import functools
import inspect
import textwrap
from typing import NamedTuple

from gradscribe.codegen.cuda.reach import CHECKS, PURE, Paths
from gradscribe.codegen.cuda.trees import children, is_counted, is_made, moved, names_in, parents_of, walk
from gradscribe.codegen.helpers import HELPERS
from gradscribe.runtime.device_functions import SCIPY

CHOICES = {"max", "min", "maximum", "minimum", "fmax", "fmin"}
OF_VIEWS = {"reshape", "transpose", "ravel", "view"}
ADDED = {"float64", "float32", "int64", "int32", "uint64", "uint32"}        # of these, CUDA adds entries at once


def writes(function):
    """Whether a function of the runtime sets entries of what it is given."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) for n in walk(tree))


@functools.cache
def short():
    """What a thread may call."""
    return PURE | {f"scipy_{n}" for n in SCIPY} | {
        n for n, f in HELPERS.items() if not hasattr(f, "whole") and n not in CHECKS and not writes(f)}


class Passes(Paths):
    """The reach of what threads run: an index that is out of bounds ends no loop there."""

    def call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in short() and not node.keywords:
            for a in node.args:
                self.value(a)
                if node.func.id not in PURE and not node.func.id.startswith("scipy_") and isinstance(a, ast.Name):
                    self.whole.add(a.id)
        else:
            super().call(node)


class Free(NamedTuple):
    """numbers: {name: how what two threads have is put together}; atomic: arrays whose entries several threads add to.
    """
    numbers: dict
    atomic: set


class Order:
    """dtypes: {array: the name of its dtype}, of those for which it is known; private: arrays that each thread has."""

    def __init__(self, function, dtypes=None, private=()):
        self.function, self.dtypes, self.private = function, dtypes, private
        self.roots = roots_of(function)
        self.parents, self.new = parents_of(function), {}

    def apart(self, a, b, loop=None):
        """Whether two names are of different memory for certain; in a loop, if one is given."""
        if loop is not None and (a in self.fresh(loop) or b in self.fresh(loop)):
            return True
        first, second = self.roots.get(a, {None}), self.roots.get(b, {None})
        return None not in first | second and not first & second and not (
            any(r.startswith("given ") for r in first) and any(r.startswith("given ") for r in second))

    def fresh(self, loop):
        """Arrays that were made above a loop, and have no other name yet when it begins."""
        if loop not in self.new:
            found, node = set(), loop
            while node in self.parents:
                holder, node = node, self.parents[node]
                block = next((b for b in (getattr(node, f, None) for f in ("body", "orelse"))
                              if isinstance(b, list) and holder in b), None)
                if block is not None:
                    found |= self.made_in(block[:block.index(holder)])
                    break
            self.new[loop] = found
        return self.new[loop]

    def made_in(self, block):
        """Arrays that statements have made, of which nothing else has been made since."""
        found = set()
        for s in block:
            found -= {n.id for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            if is_made(s):
                found.add(s.targets[0].id)
            elif not is_counted(s):
                found -= {n.id for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
                          and not isinstance(self.parents.get(n), ast.Subscript)}
        return found

    def entries(self, loop, at=None):
        """The arrays to whose entries several passes add; None where passes want each other's entries otherwise."""
        index, body = loop.target.id, Passes(*loop.body)
        if not body.known or index in body.sets or body.writes.keys() & body.whole:
            return None
        others = body.reads.keys() | body.writes.keys() | body.whole
        at = at or loop
        if any(not self.apart(a, b, at) for a in body.writes for b in others if a != b):
            return None
        own, atomic = Own(index, [*moved(loop), *self.stepped(loop)], body.sets), set()
        for name, written in body.writes.items():
            if name in self.private:
                continue
            found = [*written, *body.reads.get(name, ())]
            if any(found[0][k] in own and all(i[k] == found[0][k] for i in found)
                   for k in range(min(map(len, found)))):
                continue
            if not self.only_added(name, loop):
                return None
            atomic.add(name)
        return atomic

    def stepped(self, loop):
        """Names that a pass sets once, to the index as often as a number that is known, and one from outside."""
        sets = [n.id for n in walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        for s in loop.body:
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and isinstance(
                    s.value, ast.BinOp) and sets.count(s.targets[0].id) == 1:
                begin, times = (s.value.left, s.value.right) if isinstance(s.value.op, (ast.Add, ast.Sub)) else (
                    None, s.value)
                outside = begin is None or isinstance(begin, ast.Constant) or isinstance(
                    begin, ast.Name) and begin.id not in sets
                if outside and isinstance(times, ast.BinOp) and isinstance(times.op, ast.Mult) and ast.unparse(
                        times.left) == loop.target.id and self.constant(times.right):
                    yield s.targets[0].id

    def constant(self, node):
        """The whole number that an expression is, None where it is not known."""
        if isinstance(node, ast.Name):
            return self.numbers.get(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.constant(node.operand)
            return None if value is None else -value
        return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None

    @functools.cached_property
    def numbers(self):
        """{name: its value} of those that are set once, to a whole number."""
        sets = [n.id for n in walk(self.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self.numbers = {}
        found = [(s.targets[0].id, self.constant(s.value)) for s in walk(self.function) if isinstance(s, ast.Assign)
                 and isinstance(s.targets[0], ast.Name) and sets.count(s.targets[0].id) == 1]
        return {n: v for n, v in found if v is not None}

    def free(self, loop, whole=None):
        """How the passes of a loop are put together; None where they have an order.

        whole: the loops as they stand, where this one is not among them.
        """
        atomic, body = self.entries(loop, whole), Passes(*loop.body)
        if atomic is None or any(is_made(n) or isinstance(n, (ast.Break, ast.Continue)) and self.loop_of(n) is loop
                                 for n in walk(loop)):
            return None
        inner, numbers = {n.target.id for n in walk(loop) if isinstance(n, ast.For)}, {}
        for name in sorted(body.sets & body.names - inner):
            numbers[name] = put_together(name, loop)
            if numbers[name] is None:
                return None
        names = (body.sets - numbers.keys()) | inner
        if names & read_before_set(self.function.body, whole or loop, names):
            return None
        return Free(numbers, atomic)

    def loop_of(self, node):
        while not isinstance(node, (ast.For, ast.While)):
            node = self.parents[node]
        return node

    def only_added(self, name, loop):
        """Whether a loop does nothing with an array but add to its entries, of a dtype that can be added to at once."""
        if self.dtypes is not None and self.dtypes.get(name) not in ADDED:
            return False
        uses = sum(isinstance(n, ast.Name) and n.id == name for n in walk(loop))
        adds = sum(isinstance(s, ast.AugAssign) and isinstance(s.op, (ast.Add, ast.Sub)) and isinstance(
            s.target, ast.Subscript) and isinstance(s.target.value, ast.Name) and s.target.value.id == name
            for s in walk(loop))
        return adds == uses


class Own:
    """Texts of indices that are another in each pass: the loop's index, alone or with something added that stays."""

    def __init__(self, index, moved, sets):
        self.names, self.sets = {index, *moved}, sets | {index}

    def __contains__(self, text):
        if text in self.names:
            return True
        if not any(n in text for n in self.names):
            return False
        node = ast.parse(text, mode="eval").body
        while isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            stays = [not {n.id for n in walk(side) if isinstance(n, ast.Name)} & self.sets and not any(
                isinstance(n, ast.Call) or isinstance(n, ast.Subscript) and not isinstance(n.value, ast.Attribute)
                for n in walk(side)) for side in (node.left, node.right)]
            if stays == [False, True]:
                node = node.left
            elif stays == [True, False]:
                node = node.right
            else:
                return False
        return isinstance(node, ast.Name) and node.id in self.names


def roots_of(function):
    """{array: the memory that its name may stand for}; None is anything."""
    roots = {a.arg: {f"given {a.arg}"} for a in function.args.args}
    made, aliases = {}, []
    for node in walk(function):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name):
                source = view_of(node.value)
                if source is not None and not is_made(node):
                    aliases.append((target.id, source))
                elif is_made(node) or isinstance(node.value, ast.Call):
                    made.setdefault(target.id, set()).add(f"{target.id} {node.lineno}")
            elif isinstance(target, ast.Tuple):
                for n in target.elts:
                    if isinstance(n, ast.Name):
                        made.setdefault(n.id, set()).add(None)
    for name, found in made.items():
        roots[name] = roots.get(name, set()) | found
    for _ in range(len(aliases) + 1):
        before = {n: set(r) for n, r in roots.items()}
        for name, source in aliases:
            roots[name] = roots.get(name, set()) | roots.get(source, set())
        if before == roots:
            break
    return roots


def view_of(value):
    """The array that a value is another name or a view for, or may be."""
    while True:
        if isinstance(value, (ast.Subscript, ast.Attribute)):
            value = value.value
        elif isinstance(value, ast.Call) and ast.unparse(value.func) == "np.ascontiguousarray":
            value = value.args[0]
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in OF_VIEWS:
            value = value.func.value
        else:
            break
    return value.id if isinstance(value, ast.Name) and value.id not in ("np", "math") else None


def put_together(name, loop):
    """The operation by which what threads have of a number becomes one: +, *, a choice, or what it is set to."""
    found, uses = set(), 0
    for s in walk(loop):
        if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name) and s.target.id == name:
            found.add({ast.Add: "+", ast.Sub: "+", ast.Mult: "*"}.get(type(s.op)))
            uses += 1
        elif isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and s.targets[0].id == name:
            value = s.value
            uses += 1
            if isinstance(value, ast.Constant) and type(value.value) is bool:
                found.add(str(value.value))
                continue
            sides = []
            if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Mult, ast.Sub)):
                sides = [value.left] if isinstance(value.op, ast.Sub) else [value.left, value.right]
            if any(isinstance(side, ast.Name) and side.id == name for side in sides):
                found.add("*" if isinstance(value.op, ast.Mult) else "+")
                uses += 1
            elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in CHOICES and len(
                    value.args) == 2 and isinstance(value.args[0], ast.Name) and value.args[0].id == name:
                found.add(value.func.id)
                uses += 1
            else:
                return None
    if len(found) != 1 or None in found or uses != len(names_in(loop)[name]):
        return None
    return found.pop()


def way_to(wanted, node):
    """The nodes from one down to another that stands in it, both included; none where it does not."""
    if node is wanted:
        return [node]
    return next(([node, *way] for n in children(node) if (way := way_to(wanted, n))), [])


def read_before_set(body, lost=None, names=frozenset()):
    """The names that statements may read before they have set them; a loop that is `lost` leaves nothing in `names`."""
    found, around = set(), set()
    if lost is not None:
        around = {n for s in body for n in way_to(lost, s) if isinstance(n, (ast.For, ast.While))}

    def value(node, certain):
        found.update(n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
                     and n.id not in certain)

    def block(body, certain):
        for s in body:
            if s is lost:
                certain = certain - names
                continue
            if s in around:
                certain = certain - names
            if isinstance(s, ast.Assign):
                value(s.value, certain)
                for t in s.targets:
                    if isinstance(t, ast.Name):
                        certain = certain | {t.id}
                    elif isinstance(t, ast.Tuple) and all(isinstance(e, ast.Name) for e in t.elts):
                        certain = certain | {e.id for e in t.elts}
                    else:
                        value(t, certain)
            elif isinstance(s, ast.AugAssign):
                value(s.value, certain)
                if isinstance(s.target, ast.Name):
                    if s.target.id not in certain:
                        found.add(s.target.id)
                else:
                    value(s.target, certain)
            elif isinstance(s, ast.For):
                value(s.iter, certain)
                block(s.body, certain | {s.target.id})
            elif isinstance(s, ast.While):
                value(s.test, certain)
                block(s.body, certain)
            elif isinstance(s, ast.If):
                value(s.test, certain)
                certain = block(s.body, certain) & block(s.orelse, certain)
            else:
                value(s, certain)
        return certain
    block(body, frozenset())
    return found
