# SPDX-License-Identifier: Apache-2.0
"""Assignment conversion: a variable that inner functions set, by `nonlocal`, becomes a list of one element (a box).

So the passes need no treatment of such variables beyond that of lists shared by functions (Kranz et al., ORBIT: an
optimizing compiler for Scheme, 1986, section 4).  Names of boxes end in a blank, unlike any name of the user's.

>>> tree = gast.parse('''def f(x):
...     n = 0
...     def count(v):
...         nonlocal n
...         n += 1
...         return v * n
...     return count(x) + n''').body[0]
>>> import ast
>>> print(ast.unparse(gast.gast_to_ast(converted(tree))))
def f(x):
    n  = [None]
    n [0] = 0
<BLANKLINE>
    def count(v):
        n [0] += 1
        return v * n [0]
    return count(x) + n [0]
"""
import gast

from gradscribe.ast_transform.source.trees import nodes

FUNCTIONS = gast.FunctionDef, gast.Lambda
COMPREHENSIONS = gast.ListComp, gast.GeneratorExp, gast.DictComp, gast.SetComp


def converted(tree: gast.AST) -> gast.AST:
    """The tree with boxes; a variable of a function outside of the tree stays `nonlocal`."""
    return _Boxes().visit(tree) if any(isinstance(n, gast.Nonlocal) for n in nodes(tree)) else tree


def is_box(node: gast.AST) -> bool:
    """Whether an expression is the box of a variable."""
    return isinstance(node, gast.Name) and is_name_of_box(node.id)


def is_name_of_box(name: str) -> bool:
    return name.endswith(" ")


class _Boxes(gast.NodeTransformer):
    def __init__(self):
        self.boxed = frozenset()        # variables that are boxes at the current node

    def inside(self, node, boxed, fields):
        before, self.boxed = self.boxed, boxed
        for field in fields:
            value = getattr(node, field)
            if isinstance(value, list):
                setattr(node, field, [n for n in map(self.visit, value) if n is not None])
            else:
                setattr(node, field, self.visit(value))
        self.boxed = before

    def visit_FunctionDef(self, node):
        self.inside(node, self.boxed, ["decorator_list"])
        node.args.defaults = list(map(self.visit, node.args.defaults))
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        own = _own_names(node)
        boxes = own & _set_inside(node, own)
        self.inside(node, self.boxed - own | boxes, ["body"])
        given = {a.id for a in nodes(node.args) if isinstance(a, gast.Name) and isinstance(a.ctx, gast.Param)}
        node.body = node.body or [gast.copy_location(gast.Pass(), node)]
        node.body[:0] = [_at(node.body[0], gast.Assign([gast.Name(f"{n} ", gast.Store(), None, None)], gast.List(
            [gast.Name(n, gast.Load(), None, None) if n in given else gast.Constant(None, None)], gast.Load()), None))
            for n in sorted(boxes)]
        return node

    def visit_Lambda(self, node):
        node.args.defaults = list(map(self.visit, node.args.defaults))
        self.inside(node, self.boxed - _own_names(node), ["body"])
        return node

    def comprehension(self, node):
        bound = {n.id for g in node.generators for n in nodes(g.target) if isinstance(n, gast.Name)}
        node.generators[0].iter = self.visit(node.generators[0].iter)
        first, before, self.boxed = node.generators[0].iter, self.boxed, self.boxed - bound
        node.generators[0].iter = gast.Constant(None, None)
        self.generic_visit(node)
        node.generators[0].iter, self.boxed = first, before
        return node

    visit_ListComp = visit_GeneratorExp = visit_DictComp = visit_SetComp = comprehension

    def visit_Nonlocal(self, node):
        node.names = [n for n in node.names if n not in self.boxed]
        return node if node.names else None

    def visit_Name(self, node):
        if node.id not in self.boxed:
            return node
        return _at(node, gast.Subscript(gast.Name(f"{node.id} ", gast.Load(), None, None), gast.Constant(0, None),
                                        node.ctx))


def _at(place, node):
    for part in nodes(node):
        gast.copy_location(part, place)
    return node


def _statements(function):
    """The nodes of a function, without those of the functions inside it."""
    queue = list(function.body) if isinstance(function, gast.FunctionDef) else [function.body]
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, FUNCTIONS):
            queue += gast.iter_child_nodes(node)


def _own_names(function):
    """The names of a function's own variables."""
    found = {a.id for a in nodes(function.args) if isinstance(a, gast.Name) and isinstance(a.ctx, gast.Param)}
    others = set()
    targets = {n for c in _statements(function) if isinstance(c, COMPREHENSIONS) for g in c.generators
               for n in nodes(g.target)}
    for node in _statements(function):
        if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Store) and node not in targets:
            found.add(node.id)
        elif isinstance(node, gast.Nonlocal | gast.Global):
            others.update(node.names)
    return found - others


def _set_inside(function, own):
    """The variables of a function that functions inside it set, without those that cannot be boxes."""
    found, unfit = set(), set()
    for node in _statements(function):
        if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Del):
            unfit.add(node.id)
        elif isinstance(node, gast.NamedExpr):
            unfit.add(node.target.id)
        elif isinstance(node, gast.FunctionDef):
            unfit.add(node.name)
            found |= _sets(node, own)
        elif isinstance(node, gast.Lambda):
            found |= _sets(node, own)
    return found - unfit


def _sets(function, names):
    """The outer variables that a function, or one inside it, sets, without those that cannot be boxes."""
    names = names - _own_names(function)
    found = {n for node in _statements(function) if isinstance(node, gast.Nonlocal) for n in node.names} & names
    found -= {node.target.id for node in _statements(function) if isinstance(node, gast.NamedExpr)}
    found -= {n.id for n in _statements(function) if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Del)}
    return found.union(*(_sets(node, names) for node in _statements(function) if isinstance(node, FUNCTIONS)))
