"""One spelling for each meaning, on the user's tree.

Statements after an early return move into the branch that goes on, those after a break or continue likewise; a break
sets a flag that the loop's test asks, a return from inside a loop another one that is asked after it; a loop's else
follows the loop; an annotated assignment is an assignment.

>>> print(show("def f(x):\\n    if x > 0:\\n        return x\\n    return -x"))
if x > 0:
    return x
else:
    return -x
"""
import ast

import gast


class Exits:
    """How a loop is left other than by its end: the names of the flags that say so, and which are needed.

    The names end in blanks, so that no name of the user's is one of them; they are printed without.
    """

    def __init__(self, depth):
        blanks = " " * (depth + 1)
        self.stop, self.returned, self.value = f"stop{blanks}", f"returned{blanks}", f"value{blanks}"
        self.stops = self.returns = False


def desugar(body, loop=None, depth=0):
    """A body in which every return ends its path; `loop` is told how it is left."""
    out = []
    for k, node in enumerate(body):
        rest = body[k + 1:]
        if isinstance(node, gast.AnnAssign):
            if node.value is not None:
                out.append(gast.copy_location(gast.Assign([node.target], node.value, None), node))
        elif isinstance(node, (gast.For, gast.While)):
            new = type(node)(**{f: getattr(node, f, None) for f in node._fields})
            gast.copy_location(new, node)
            exits = Exits(depth)
            new.body, new.orelse = desugar(node.body, exits, depth + 1), []
            new.exits = exits if exits.stops else None
            out.append(new)
            after = [_if(node, _name(exits.returned, node), [_at(node, gast.Return(_name(exits.value, node)))])] \
                if exits.returns else []
            if node.orelse and exits.stops:
                after.append(_if(node, _at(node, gast.UnaryOp(gast.Not(), _name(exits.stop, node))), node.orelse))
            else:
                after += node.orelse
            if after:
                return out + desugar(after + rest, loop, depth)
        elif isinstance(node, gast.If):
            new = gast.copy_location(gast.If(node.test, node.body, node.orelse), node)
            if _leaves(node, loop is not None):
                new.body = desugar(node.body if _ends(node.body) else node.body + rest, loop, depth)
                new.orelse = desugar(node.orelse if _ends(node.orelse) else node.orelse + rest, loop, depth)
                return [*out, new]
            new.body, new.orelse = desugar(node.body, loop, depth), desugar(node.orelse, loop, depth)
            out.append(new)
        elif isinstance(node, gast.Continue):
            break
        elif isinstance(node, gast.Break):
            loop.stops = True
            out.append(_set(loop.stop, node))
            break
        elif isinstance(node, gast.Return) and loop is not None:
            loop.stops = loop.returns = True
            value = node.value if node.value is not None else _at(node, gast.Constant(None, None))
            out.append(_at(node, gast.Assign([_name(loop.value, node, gast.Store())], value, None)))
            out += [_set(loop.returned, node), _set(loop.stop, node)]
            break
        else:
            out.append(node)
            if isinstance(node, (gast.Return, gast.Raise)):
                break
    return out


def _at(place, node):
    return gast.copy_location(node, place)


def _name(name, place, context=None):
    return _at(place, gast.Name(name, context or gast.Load(), None, None))


def _set(name, place):
    return _at(place, gast.Assign([_name(name, place, gast.Store())], _at(place, gast.Constant(True, None)), None))


def _if(place, test, body):
    return _at(place, gast.If(test, body, []))


def _leaves(node, in_loop):
    """A return of this function, or a break or continue of this loop, stands inside."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, gast.Return) or in_loop and isinstance(inner, (gast.Break, gast.Continue)):
            return True
        if isinstance(inner, (gast.FunctionDef, gast.Lambda)):
            continue
        if isinstance(inner, gast.stmt) and _leaves(inner, in_loop and not isinstance(inner, (gast.For, gast.While))):
            return True
    return False


def _ends(body):
    """No path leads past the end of the block."""
    if not body:
        return False
    last = body[-1]
    return isinstance(last, (gast.Return, gast.Raise, gast.Break, gast.Continue)) or \
        isinstance(last, gast.If) and _ends(last.body) and _ends(last.orelse)


def show(text):
    """The desugared body of a function given as text."""
    tree = gast.parse(text).body[0]
    module = gast.Module(desugar(tree.body), [])
    return ast.unparse(ast.fix_missing_locations(gast.gast_to_ast(module)))
