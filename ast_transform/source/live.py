# SPDX-License-Identifier: Apache-2.0
"""Liveness analysis of a function's names: which may be read before they are set again.

A loop carries the names that are live at the start of a pass; a name that every path sets first is a temporary of the
pass.  Backward data flow over the tree (Aho, Lam, Sethi, Ullman, Compilers, section 9.2.5).  Names that inner
functions and generator expressions read are live everywhere.

>>> tree = gast.parse('''def f(x, n):
...     y = z = x
...     for k in range(n):
...         y = k * x
...         x = x + y
...         z = z + 1
...     return x''').body[0]
>>> mark_live(tree)
>>> sorted(tree.body[1].live)
['x', 'z']
"""
import gast

from gradscribe.ast_transform.source.trees import nodes

LATER = (gast.FunctionDef, gast.Lambda, gast.GeneratorExp, gast.ClassDef)


def mark_live(tree: gast.FunctionDef) -> None:
    """Sets `live` on each loop of a function: the names that are live where a pass begins or the loop ends."""
    if hasattr(tree, "marked"):
        return
    tree.marked = True
    always = {n.id for later in nodes(tree) if isinstance(later, LATER) and later is not tree
              for n in nodes(later) if isinstance(n, gast.Name)}
    always |= {n for s in nodes(tree) if isinstance(s, (gast.Global, gast.Nonlocal)) for n in s.names}
    _Liveness(frozenset(always)).block(tree.body, frozenset(always))


class _Liveness:
    def __init__(self, always):
        self.always = always
        self.after_break = self.after_continue = self.after_raise = frozenset()     # live where these lead

    def block(self, body, out):
        for node in reversed(body):
            out = self.after_raise | self.before(node, out)
        return out

    def inside(self, body, out, **jumps):
        """The live names before a block; `jumps`: the live names where break, continue or a raise lead."""
        held = {name: getattr(self, name) for name in jumps}
        vars(self).update(jumps)
        try:
            return self.block(body, out)
        finally:
            vars(self).update(held)

    def before(self, node, out):
        if isinstance(node, gast.Return):
            return self.always | _read(node)
        if isinstance(node, gast.Raise):
            return self.always | self.after_raise | _read(node)
        if isinstance(node, gast.Break):
            return self.after_break
        if isinstance(node, gast.Continue):
            return self.after_continue
        if isinstance(node, gast.If):
            return _read(node.test) | self.block(node.body, out) | self.block(node.orelse, out)
        if isinstance(node, (gast.For, gast.While)):
            return self.loop(node, out)
        if isinstance(node, gast.With):
            items = frozenset().union(*map(_read, node.items))
            return out | items | self.inside(node.body, out, after_raise=self.after_raise | out)
        if isinstance(node, gast.Try):
            return self.tried(node, out)
        if isinstance(node, gast.Match):
            cases = [self.block(c.body, out) | (_read(c.guard) if c.guard else frozenset()) | _read(c.pattern)
                     for c in node.cases]
            return _read(node.subject) | out.union(*cases)
        return _read(node) | (out - (_set(node) - self.always))

    def loop(self, node, out):
        after, head = self.block(node.orelse, out), frozenset()
        target = _names(node.target) if isinstance(node, gast.For) else frozenset()
        test = frozenset() if isinstance(node, gast.For) else _read(node.test)
        while True:
            body = self.inside(node.body, head, after_break=out, after_continue=head)
            new = head | after | out | test | (body - (target - self.always))
            if new == head:
                break
            head = new
        node.live = head
        return head | (_read(node.iter) if isinstance(node, gast.For) else frozenset())

    def tried(self, node, out):
        last = self.block(node.finalbody, out)
        jumps = {"after_break": self.after_break | last, "after_continue": self.after_continue | last}
        handled = last.union(*(self.inside(h.body, last, after_raise=self.after_raise | last, **jumps) |
                               (_read(h.type) if h.type else frozenset()) for h in node.handlers))
        after = self.inside(node.orelse, last, after_raise=self.after_raise | last, **jumps)
        return handled | self.inside(node.body, after, after_raise=self.after_raise | handled, **jumps)


def _read(node):
    """Names that a statement or an expression reads, or deletes."""
    found = {n.id for n in nodes(node) if isinstance(n, gast.Name) and not isinstance(n.ctx, gast.Store)}
    return frozenset(found | {n.target.id for n in nodes(node) if isinstance(n, gast.AugAssign) and
                              isinstance(n.target, gast.Name)})


def _set(node):
    """Names that a statement certainly sets."""
    targets = node.targets if isinstance(node, gast.Assign) else [node.target] if isinstance(
        node, gast.AnnAssign) and node.value is not None else []
    return frozenset().union(*map(_names, targets))


def _names(target):
    if isinstance(target, gast.Name):
        return frozenset({target.id})
    if isinstance(target, gast.Starred):
        return _names(target.value)
    return frozenset().union(*map(_names, target.elts)) if isinstance(target, (gast.Tuple, gast.List)) else frozenset()
