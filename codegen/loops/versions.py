# SPDX-License-Identifier: Apache-2.0
"""Renaming of arrays: a name that is bound to several arrays is split into versions, within straight-line code.

Lowering keeps the user's names, so an array that each pass of a loop allocates has the name of the previous one.  With
one array per name it is easy to see what may be fused; what a loop carries becomes `name = array` at the end of a pass.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x):
...     s = np.empty((3,), np.float64)
...     for i in range(4):
...         t = np.empty((3,), np.float64)
...         t[0] = s[0]
...         s = t
...         s = np.empty((3,), np.float64)
...         s[0] = x[i]
...     return s''')
>>> function = from_tree(tree.body[0], {})
>>> named_apart(function)
>>> print(ast.unparse(to_tree(function)))
def f(x):
    s_1 = np.empty((3,), np.float64)
    s = s_1
    for i in range(4):
        t = np.empty((3,), np.float64)
        t[0] = s[0]
        s_2 = np.empty((3,), np.float64)
        s_2[0] = x[i]
        s = s_2
    return s
"""
import itertools

from gradscribe.codegen.loops.analysis.liveness import Liveness
from gradscribe.codegen.loops.form import (
    Alloc,
    Attribute,
    Break,
    Call,
    Continue,
    For,
    Function,
    If,
    Length,
    Let,
    Load,
    Method,
    Name,
    Nothing,
    Return,
    Store,
    Update,
    While,
    blocks,
    change,
    expressions,
    names_of,
    renamed,
    set_by,
    set_in,
    statements,
    walk,
)

COMPOUND = (For, While, If)


def named_apart(function: Function) -> None:
    """Change a function in place."""
    _Versions(function).run()
    without_unread_names(function)


class _Versions:
    """taken: all names; sets: {name: how often it is set}; entered: names with entries; single: arrays set once."""

    def __init__(self, function):
        self.function, self.count = function, itertools.count(1)
        self.taken, self.sets = set(function.params), dict.fromkeys(function.params, 1)
        every = list(statements(function.block))
        for s in every:
            self.taken.update(names_of(s))
            for name in set_by(s):
                self.taken.add(name)
                self.sets[name] = self.sets.get(name, 0) + 1
        self.entered = {name for s in every for e in expressions(s) for part in walk(e)
                        for name in entered_by(part)}
        self.single = {s.name for s in every if self.is_new(s) and self.sets[s.name] == 1}

    def is_new(self, s):
        """Whether it makes an array: an allocation, a view name = x[..], or a product."""
        return isinstance(s, Alloc) or isinstance(s, Let) and s.name in self.entered and (
            isinstance(s.value, (Load, Length)) or isinstance(s.value, Call) and s.value.function == "np.dot")

    def run(self):
        self.function.block = self.block(self.function.block, False)

    def block(self, block, inner):
        """A block with versions; inner: names may be live after it."""
        out, now, said = [], {}, set()

        def say(names, origin):
            out.extend(Let(v, Name(now[v]), origin) for v in sorted(names))

        for s in block:
            if isinstance(s, (Let, Alloc)):
                _rename(s, now)
                now.pop(s.name, None)
                said.discard(s.name)
                if isinstance(s, Let) and isinstance(s.value, Name) and s.value.id in self.single:
                    now[s.name] = s.value.id
                    continue
                if self.is_new(s) and self.sets[s.name] > 1:
                    now[s.name] = s.name = self.fresh(s.name)
                out.append(s)
                continue
            lost = set_in([s]) & now.keys()
            if isinstance(s, (*COMPOUND, Update)) or isinstance(s, Store) and s.op is not None:
                say(lost - said, s.origin)
            else:                       # a, b = b, a reads both before it sets them
                _rename(s, now)
            for v in lost:
                del now[v]
            if inner and any(isinstance(i, (Break, Continue, Return)) for i in statements([s])):
                say(now.keys() - said, s.origin)
                said |= now.keys()
            _rename(s, now)
            if isinstance(s, COMPOUND):
                for field in ("block", "orelse"):
                    if hasattr(s, field):
                        setattr(s, field, self.block(getattr(s, field), True))
            out.append(s)
        if inner:
            say(now.keys() - said, block[-1].origin if block else None)
        return out

    def fresh(self, name):
        new = next(n for k in self.count if (n := f"{name}_{k}") not in self.taken)
        self.taken.add(new)
        self.single.add(new)
        self.function.types[new] = self.function.types[name]
        return new


def entered_by(e):
    """The names whose entries, lengths, attributes or methods an expression itself uses."""
    if isinstance(e, Length):
        yield e.array
    owner = e.array if isinstance(e, Load) else e.owner if isinstance(e, (Attribute, Method)) else None
    if isinstance(owner, Name):
        yield owner.id


def _rename(statement, now):
    if now:
        for s in statements([statement]):
            change(s, lambda e: renamed(e, now))


def without_unread_names(function: Function) -> None:
    """Remove aliases `name = array` that nothing reads afterwards."""
    unread = Liveness(function.block).unread

    def kept(block, needed):
        found = [s for s in block if s not in unread]
        for s in found:
            for k, inner in enumerate(blocks(s)):
                inner[:] = kept(inner, not k)
        return found or ([Nothing()] if needed else [])
    function.block = kept(function.block, True)
