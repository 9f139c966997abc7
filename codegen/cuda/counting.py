# SPDX-License-Identifier: Apache-2.0
"""What is left of a loop that is gone through only to count: what its way hangs on, and nothing else."""
import ast

from gradscribe.codegen.cuda.trees import names_in, walk


def asked(trees):
    """Names on which the way through some statements hangs, and those that these are made of.

    >>> tree = ast.parse('''while v > 0:
    ...     w = v * 2
    ...     y = w * w
    ...     v = v - u''')
    >>> sorted(asked([tree]))
    ['u', 'v']
    """
    found = set()
    for s in (n for t in trees for n in walk(t)):
        for part in (getattr(s, "test", None), getattr(s, "iter", None), s if isinstance(s, ast.Expr) else None):
            found |= names_in(part).keys() if part is not None else set()
    return made_of(trees, found)


def made_of(trees, found):
    """Some names, and those that they are made of."""
    found = set(found)
    while True:
        more = {n for t in trees for s in walk(t) if isinstance(s, (ast.Assign, ast.AugAssign)) and set_by(s) & found
                for n in names_in(s)} - found
        if not more:
            return found
        found |= more


def set_by(s):
    """The names of what an assignment sets."""
    targets = s.targets if isinstance(s, ast.Assign) else [s.target]
    parts = [t.value if isinstance(t, ast.Subscript) else t for t in targets]
    return {n.id for p in parts for n in walk(p) if isinstance(n, ast.Name)}


def only(body, names, own):
    """Statements without those that set what nobody asks for; names: what is wanted beside; own: the arrays whose
    entries may be set.

    >>> tree = ast.parse('''k = 0
    ... while v > 0:
    ...     w = v * 2
    ...     z[k] = w
    ...     k += 1
    ...     v = v - u''')
    >>> print(ast.unparse(ast.Module(only(tree.body, {"k"}, set()), [])))
    k = 0
    while v > 0:
        k += 1
        v = v - u
    """
    while True:
        needed = made_of(body, names | asked(body))
        before = sum(1 for s in body for _ in walk(s))
        body = without(body, needed, own)
        if sum(1 for s in body for _ in walk(s)) == before:
            return body


def without(body, needed, own):
    kept = []
    for s in body:
        for field in ("body", "orelse"):
            if getattr(s, field, None):
                setattr(s, field, without(getattr(s, field), needed, own) or ([ast.Pass()] if field == "body" else []))
        idle = isinstance(s, (ast.For, ast.If)) and all(isinstance(m, ast.Pass) for m in [*s.body, *s.orelse])
        if isinstance(s, (ast.Assign, ast.AugAssign)):
            target = s.targets[0] if isinstance(s, ast.Assign) else s.target
            idle = isinstance(target, ast.Subscript) and set_by(s).isdisjoint(own) or not set_by(s) & needed
        if not idle:
            kept.append(s)
    return kept
