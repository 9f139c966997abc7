"""A smaller program that has the same outcome."""
import ast
import copy
import re
import time
import warnings

import numpy as np
from fuzz_programs import compiled, deadline
from fuzz_reference import steady


def smaller(source, place, statements):
    """Programs with one part less, at a place of the tree; a derivative that is given goes whole or stays."""
    for how in (2,) if statements else range(4):
        tree = ast.parse(source)
        nodes = list(ast.walk(tree))
        ruled = {n.id for top in tree.body if isinstance(top, ast.ClassDef) for n in ast.walk(top)
                 if isinstance(n, ast.Name)}
        given = {n for top in tree.body if is_given(top) or getattr(top, "name", "") in ruled for n in ast.walk(top)}
        if place >= len(nodes) or nodes[place] in given or statements and not isinstance(nodes[place], ast.stmt):
            return
        if cut(nodes[place], how, tree):
            try:
                text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            except Exception:           # what is left is no Python
                continue
            if text != source and len(text) < len(source):
                yield text


def is_given(statement):
    return isinstance(statement, (ast.ClassDef, ast.Expr)) or bool(getattr(statement, "decorator_list", ()))


def without_a_function(source):
    tree = ast.parse(source)
    for name in [top.name for top in tree.body if isinstance(top, ast.FunctionDef) and top.name != "f"]:
        rest = [top for top in tree.body if not (getattr(top, "name", "") == name or is_given(top) and name in {
            n.id for n in ast.walk(top) if isinstance(n, ast.Name)})]
        yield ast.unparse(ast.Module(rest, [])) + "\n"


def cut(node, how, tree):
    if isinstance(node, (ast.For, ast.While, ast.If)) and how < 2:
        parent, field = owner(tree, node)
        body = node.body if how == 0 else node.orelse
        at = field.index(node)
        field[at:at + 1] = body
        return bool(field)
    if isinstance(node, ast.stmt) and how == 2:
        parent, field = owner(tree, node)
        if field is None or (len(field) == 1 and isinstance(parent, (ast.FunctionDef, ast.Module))):
            return False
        field.remove(node)
        if not field and getattr(parent, "body", None) is field:
            field.append(ast.Pass())
        return True
    if isinstance(node, (ast.List, ast.Tuple)) and how == 2 and len(node.elts) > 1:
        node.elts.pop()
        return True
    if isinstance(node, ast.expr):
        parts = {ast.BinOp: lambda n: [n.left, n.right], ast.UnaryOp: lambda n: [n.operand],
                 ast.Call: lambda n: n.args[:2],
                 ast.IfExp: lambda n: [n.body, n.orelse], ast.Subscript: lambda n: [n.value],
                 ast.BoolOp: lambda n: n.values[:2], ast.List: lambda n: n.elts[:2], ast.Tuple: lambda n: n.elts[:2],
                 ast.Attribute: lambda n: [n.value]}.get(type(node), lambda n: [])(node)
        if how < len(parts):
            swap(tree, node, parts[how])
            return True
        if how == 3 and isinstance(node, (ast.BinOp, ast.Call, ast.Subscript)):
            swap(tree, node, ast.Constant(0.7))
            return True
    return False


def owner(tree, node):
    for parent in ast.walk(tree):
        for name in ("body", "orelse"):
            field = getattr(parent, name, None)
            if isinstance(field, list) and any(n is node for n in field):
                return parent, field
    return None, None


def swap(tree, old, new):
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list):
                value[:] = [new if v is old else v for v in value]


def shrink(case, check, seconds=240):
    first = check(case)
    if first.kind not in ("wrong", "failed", "refused"):
        return case, first
    mark, until = signature(first), time.time() + seconds

    def better(text):
        """The case of a text and its outcome, if it has the same."""
        smaller_case = case._replace(source=text)
        try:
            with deadline(10), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                value = compiled(smaller_case)["f"](*copy.deepcopy(case.args), **case.extra)
            if not steady(value) or case.family != "memory" and np.ndim(value):
                return None
        except Exception:               # what is left does not run in NumPy
            return None
        outcome = check(smaller_case)
        return (smaller_case, outcome) if signature(outcome) == mark else None

    def passed(texts):
        """Whether one of the texts will do: it is the case from then on."""
        nonlocal case, first
        for text in texts:
            found = better(text) if time.time() < until else None
            if found:
                case, first = found
                return True
        return False

    again, statements = True, True
    while (again or statements) and time.time() < until:    # whole statements first, the last before the others
        before, statements = case.source, statements and again
        passed(without_a_function(case.source))
        for place in reversed(range(sum(1 for _ in ast.walk(ast.parse(case.source))))):
            while passed(smaller(case.source, place, statements)):
                pass
        again = case.source != before or statements
        statements = statements and case.source != before
    return case, first


def signature(outcome):
    detail = re.sub(r"off by.*|at \w+\.py:\d+|[\d.]+", "", outcome.detail)
    return outcome.kind, detail[:60] if outcome.kind != "wrong" else outcome.detail.split(":")[0]
