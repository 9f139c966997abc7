# SPDX-License-Identifier: Apache-2.0
"""A pass's list of lists as one list of all entries, and one of how many each has: what a thread can have.

Lists are filled at their end and emptied from there, so that one after the other they may as well be one.

>>> tree = ast.parse('''def f(x):
...     kept = []
...     for b in range(n):
...         outer = []
...         for k in range(5):
...             inner = []
...             inner.append(x[b])
...             outer.append(inner)
...         kept.append(outer)
...     for b in range(n - 1, -1, -1):
...         mine = kept.pop()
...         for k in range(5):
...             last = mine.pop()
...             while len(last) > 0:
...                 x[b] += last.pop()''')
>>> flatten(tree.body[0])
>>> print(ast.unparse(tree))
def f(x):
    kept = []
    kept_counts = []
    for b in range(n):
        outer = []
        outer_counts = []
        for k in range(5):
            inner_count = 0
            outer.append(x[b])
            inner_count += 1
            outer_counts.append(inner_count)
        kept.append(outer)
        kept_counts.append(outer_counts)
    for b in range(n - 1, -1, -1):
        mine = kept.pop()
        mine_counts = kept_counts.pop()
        for k in range(5):
            last_count = mine_counts.pop()
            while last_count > 0:
                last_count -= 1
                x[b] += mine.pop()
            while last_count > 0:
                last_count -= 1
                last_left = mine.pop()
"""
import ast
from typing import NamedTuple

from gradscribe.codegen.cuda.lists import is_list, statement
from gradscribe.codegen.cuda.sorting import list_call
from gradscribe.codegen.cuda.trees import block_of, names_in, parents_of, walk


class Nested(NamedTuple):
    """inner, outer: a list of a pass's inner loop, and the one that has it; holder: the list of the outer ones, if any;
    mine: {the outer one, or a name for what the holder gives: the names for what that gives}.
    """
    inner: str
    outer: str
    holder: str | None
    mine: dict


def flatten(function):
    """Changes a function."""
    while True:
        found = next(filter(None, (nested(function, n) for n in walk(function))), None)
        if found is None:
            break
        Flat(function, found).run()
    ast.fix_missing_locations(function)


def nested(function, put):
    """The Nested of `outer.append(inner)`, None where lists are used otherwise."""
    if not isinstance(put, ast.Expr) or list_call(put.value) != "append" or not isinstance(
            put.value.args[0], ast.Name):
        return None
    names, parents = names_in(function), parents_of(function)
    outer, inner = put.value.func.value.id, put.value.args[0].id

    def uses(name):
        """What is done with a name: {kind: the statements, or names}; None where it is something else."""
        found = {"made": [], "puts": [], "put in": [], "pops": [], "set to": []}
        for n in names[name]:
            parent = parents[n]
            call = parents.get(parent)
            if is_list(parent, name) and parent.targets[0] is n:
                found["made"].append(parent)
            elif isinstance(n.ctx, ast.Store) and isinstance(parent, ast.Assign) and list_call(parent.value) == "pop":
                found["set to"].append(parent.value.func.value.id)
            elif isinstance(parent, ast.Attribute) and list_call(call) == "append":
                found["puts"].append(call.args[0])
            elif isinstance(parent, ast.Attribute) and list_call(call) == "pop":
                target = parents[call]
                found["pops"].append(target.targets[0].id if isinstance(target, ast.Assign) and isinstance(
                    target.targets[0], ast.Name) else None)
            elif list_call(parent) == "append" and n in parent.args:
                found["put in"].append(parent.func.value.id)
            elif not (isinstance(parent, ast.Call) and ast.unparse(parent.func) == "len"):
                return None
        return found
    of_inner, of_outer = uses(inner), uses(outer)
    if None in (of_inner, of_outer) or [len(of_inner[k]) for k in ("made", "put in", "pops", "set to")] != [
            1, 1, 0, 0] or [len(of_outer[k]) for k in ("made", "puts", "set to")] != [1, 1, 0] or block_of(
            put, parents) is not block_of(of_inner["made"][0], parents):
        return None
    holder, mine = next(iter(of_outer["put in"]), None), {outer: of_outer["pops"]}
    if holder is None and parents[of_outer["made"][0]] is function or holder is not None and (
            of_outer["pops"] or len(of_outer["put in"]) > 1):
        return None
    if holder is not None:
        of_holder, mine = uses(holder), {}
        if of_holder is None or [len(of_holder[k]) for k in ("made", "puts", "put in", "set to")] != [1, 1, 0, 0]:
            return None
        for name in of_holder["pops"]:
            found = uses(name) if name else None
            if found is None or any(found[k] for k in ("made", "puts", "put in")) or found["set to"] != [holder]:
                return None
            mine[name] = found["pops"]
    for name, each in mine.items():
        for last in each:
            taken = uses(last) if last else None
            if taken is None or any(taken[k] for k in ("made", "puts", "put in")) or taken["set to"] != [name]:
                return None
    return Nested(inner, outer, holder, mine)


class Flat(ast.NodeTransformer):
    def __init__(self, function, found):
        self.function, self.found = function, found
        self.taken = {n.id for n in walk(function) if isinstance(n, ast.Name)} | {a.arg for a in function.args.args}
        self.counts = {n: self.fresh(f"{n}_counts") for n in dict.fromkeys(
            [found.holder, found.outer, *found.mine]) if n}
        self.count = {n: self.fresh(f"{n}_count") for n in (found.inner, *(last for m in found.mine.values()
                                                                           for last in m))}
        self.of = {last: name for name, each in found.mine.items() for last in each}

    def fresh(self, name):
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def run(self):
        self.function.body = self.block(self.function.body)

    def block(self, body):
        out, left = [], []
        for s in body:
            out += self.statement(s, left)
        for last in left:               # entries that nothing took
            rest = statement(f"while {self.count[last]} > 0:\n    {self.count[last]} -= 1\n    "
                             f"{self.fresh(f'{last}_left')} = {self.of[last]}.pop()", body[-1])
            out.insert(-1 if isinstance(out[-1], (ast.Break, ast.Continue, ast.Return)) else len(out), rest)
        return out

    def statement(self, s, left):
        found, counts = self.found, self.counts
        for name in (found.holder, found.outer):
            if name and is_list(s, name):
                return [s, statement(f"{counts[name]} = []", s)]
        if is_list(s, found.inner):
            return [statement(f"{self.count[found.inner]} = 0", s)]
        if isinstance(s, ast.Expr) and list_call(s.value) == "append":
            to, value = s.value.func.value.id, s.value.args[0]
            if to == found.inner:
                s.value.func.value.id = found.outer
                return [s, statement(f"{self.count[to]} += 1", s)]
            if to == found.outer:
                return [statement(f"{counts[to]}.append({self.count[found.inner]})", s)]
            if to == found.holder:
                return [s, statement(f"{counts[to]}.append({counts[value.id]})", s)]
        if isinstance(s, ast.Assign) and list_call(s.value) == "pop":
            source, target = s.value.func.value.id, s.targets[0].id
            if source == found.holder:
                return [s, statement(f"{counts[target]} = {counts[source]}.pop()", s)]
            if source in found.mine:
                left.append(target)
                return [statement(f"{self.count[target]} = {counts[source]}.pop()", s)]
        if isinstance(s, (ast.For, ast.While, ast.If)):
            for field in ("iter", "test"):
                if hasattr(s, field):
                    setattr(s, field, self.visit(getattr(s, field)))
            s.body, s.orelse = self.block(s.body), self.block(s.orelse)
            return [s]
        popped = [n.func.value.id for n in walk(s) if list_call(n) == "pop" and n.func.value.id in self.of]
        return [*(statement(f"{self.count[n]} -= 1", s) for n in popped), self.visit(s)]

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "len" and isinstance(node.args[0], ast.Name):
            name = node.args[0].id
            if name in self.count:
                return ast.Name(self.count[name], ast.Load())
            if name in self.counts:
                return ast.Call(node.func, [ast.Name(self.counts[name], ast.Load())], [])
        if list_call(node) == "pop" and node.func.value.id in self.of:
            node.func.value.id = self.of[node.func.value.id]
        return node
