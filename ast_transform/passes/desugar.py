"""One spelling for each meaning, on the user's tree.

Statements after an early return move into the branch that goes on; a loop's else follows the loop (nothing breaks out
of it); an annotated assignment is an assignment.

>>> print(show("def f(x):\\n    if x > 0:\\n        return x\\n    return -x"))
if x > 0:
    return x
else:
    return -x
"""
import ast

import gast


def desugar(body):
    """A body in which every return ends its path."""
    out = []
    for k, node in enumerate(body):
        rest = body[k + 1:]
        if isinstance(node, gast.AnnAssign):
            if node.value is not None:
                out.append(gast.copy_location(gast.Assign([node.target], node.value, None), node))
            continue
        if isinstance(node, (gast.For, gast.While)):
            after = node.orelse
            node = type(node)(**{f: getattr(node, f, None) for f in node._fields})
            gast.copy_location(node, body[k])
            node.body, node.orelse = desugar(node.body), []
            out.append(node)
            if after:
                return out + desugar(after + rest)
            continue
        if isinstance(node, gast.If):
            new = gast.copy_location(gast.If(node.test, node.body, node.orelse), node)
            if _returns(node):
                new.body = desugar(node.body if _ends(node.body) else node.body + rest)
                new.orelse = desugar(node.orelse if _ends(node.orelse) else node.orelse + rest)
                return [*out, new]
            new.body, new.orelse = desugar(node.body), desugar(node.orelse)
            out.append(new)
            continue
        out.append(node)
        if isinstance(node, (gast.Return, gast.Raise)):
            break
    return out


def _returns(node):
    """A return of this function stands inside."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, gast.Return):
            return True
        if isinstance(inner, (gast.FunctionDef, gast.Lambda)):
            continue
        if isinstance(inner, gast.stmt) and _returns(inner):
            return True
    return False


def _ends(body):
    """No path leads past the end of the block."""
    if not body:
        return False
    last = body[-1]
    return isinstance(last, (gast.Return, gast.Raise)) or \
        isinstance(last, gast.If) and _ends(last.body) and _ends(last.orelse)


def show(text):
    """The desugared body of a function given as text."""
    tree = gast.parse(text).body[0]
    module = gast.Module(desugar(tree.body), [])
    return ast.unparse(ast.fix_missing_locations(gast.gast_to_ast(module)))
