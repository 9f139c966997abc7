# SPDX-License-Identifier: Apache-2.0
"""Loops that count down count up where the order of their passes does not matter.

Backward loops run the forward ones in reverse.  Where a pass touches only its own entries, and numbers are summed, any
order will do; entries in the order of memory are read twice as fast, and such a loop may be joined with others.

>>> tree = ast.parse('''def f(x, y):
...     n = x.shape[0]
...     z = np.empty((n,), np.float64)
...     for j in range(n - 1, -1, -1):
...         t = 2.0 * x[j]
...         z[j] += t
...     for j in range(n - 1, -1, -1):
...         z[j + 1] = z[j]''')
>>> upward(tree.body[0], {"z"})
>>> print(ast.unparse(tree))
def f(x, y):
    n = x.shape[0]
    z = np.empty((n,), np.float64)
    for j in range(n):
        t = 2.0 * x[j]
        z[j] += t
    for j in range(n - 1, -1, -1):
        z[j + 1] = z[j]
"""
import ast

from gradscribe.codegen.reach import Reach
from gradscribe.codegen.texts import children, names_in, walk
from gradscribe.codegen.versions import is_made


def upward(function, own):
    """Changes a function's loops in place; own: arrays that are known by one name only."""
    for loop in walk(function):
        if isinstance(loop, ast.For):
            count = counted_down(loop)
            if count is not None and any_order(loop, own, function):
                loop.iter.args = [count]


def counted_down(loop):
    """n of range(n - 1, -1, -1)."""
    if not isinstance(loop.target, ast.Name) or loop.orelse or not isinstance(loop.iter, ast.Call) or \
            ast.unparse(loop.iter.func) != "range" or len(loop.iter.args) != 3:
        return None
    first, *rest = loop.iter.args
    if list(map(ast.unparse, rest)) != ["-1", "-1"] or not isinstance(first, ast.BinOp) or not isinstance(
            first.op, ast.Sub) or ast.unparse(first.right) != "1" or not isinstance(first.left, ast.Name):
        return None
    return first.left


def any_order(loop, own, function, kind=Reach):
    """Whether the passes of a loop may be taken in any order."""
    index, body = loop.target.id, kind(*loop.body)
    if not body.known or index in body.sets or body.writes.keys() & body.whole or not body.writes.keys() <= own:
        return False
    own_places = {index, *moved(loop)}
    private = {n.targets[0].id for n in walk(loop) if is_made(n)}           # a pass makes them for itself
    for name, written in body.writes.items():
        if name in private:
            continue
        found = [*written, *body.reads.get(name, ())]
        if not any(found[0][k] in own_places and all(i[k] == found[0][k] for i in found)
                   for k in range(min(map(len, found)))):
            return False
    inner = {n.target.id for n in walk(loop) if isinstance(n, ast.For)}
    carried = body.sets & body.names - inner
    names = names_in(loop)
    return all(summed(v, loop, names[v], less=True) for v in carried) and not left(
        function, loop, (body.sets - carried) | inner | {index})


def moved(loop):
    """Names that a pass sets once, to the loop's index and a number from outside: another one in each pass."""
    sets = [n.id for n in walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    for s in loop.body:
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and sets.count(s.targets[0].id) == 1 and \
                isinstance(s.value, ast.BinOp) and isinstance(s.value.op, (ast.Add, ast.Sub)):
            sides = s.value.left, s.value.right
            for one, other in (sides, sides[::-1]):
                if isinstance(one, ast.Name) and one.id == loop.target.id and (
                        isinstance(other, ast.Constant) or isinstance(other, ast.Name) and other.id not in sets):
                    yield s.targets[0].id


def summed(name, loop, uses, less=False):
    """Whether a loop does nothing with a number but add to it; less: or take away, as `name = name - v`."""
    adds = 0
    for s in walk(loop):
        if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name) and s.target.id == name:
            if not isinstance(s.op, (ast.Add, ast.Sub)):
                return False
            adds += 1
        elif isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and s.targets[0].id == name:
            value = s.value
            sides = [value.left, value.right] if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) else \
                [value.left] if less and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub) else []
            if not any(isinstance(side, ast.Name) and side.id == name for side in sides):
                return False
            adds += 2
    return adds == len(uses)


def set_first(body):
    """Names that a block sets whatever happens, before anything reads them."""
    found, read = set(), set()
    for s in body:
        if isinstance(s, (ast.Break, ast.Continue, ast.Return, ast.Raise)):
            break
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name):
            read |= {n.id for n in walk(s.value) if isinstance(n, ast.Name)}
            found |= {s.targets[0].id} - read
        else:
            read |= {n.id for n in walk(s) if isinstance(n, ast.Name)}
    return found


def left(function, loop, names):
    """Whether what a pass leaves in these names is read after the loop."""
    inside = set(map(id, walk(loop)))
    if not any(isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load) and id(n) not in inside
               for n in walk(function)):
        return False

    def read(node, fresh):
        """`fresh`: names that the loops around set in each pass before they read them."""
        if isinstance(node, ast.Name):
            return isinstance(node.ctx, ast.Load) and node.id in names and node.id not in fresh and \
                id(node) not in inside
        if node is loop:
            return False
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            reach = Reach(*node.body)
            own = {node.target.id} | (reach.sets - reach.names if reach.known else set_first(node.body))
            return read(node.iter, fresh) or any(read(s, fresh | own) for s in node.body)
        return any(read(inner, fresh) for inner in children(node))
    return any(read(s, frozenset()) for s in function.body)
