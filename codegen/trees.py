"""Short names for the nodes that are printed."""
import gast


def name(identifier, ctx=None):
    return gast.Name(identifier, ctx or gast.Load(), None, None)


def const(value):
    return gast.Constant(value, None)


def assign(target, value):
    return gast.Assign([target], value, None)


def dotted(text):
    head, *rest = text.split(".")
    node = name(head)
    for part in rest:
        node = gast.Attribute(node, part, gast.Load())
    return node


def as_index(node):
    """A slice outside square brackets."""
    if isinstance(node, gast.Slice):
        return gast.Call(name("slice"), [p or const(None) for p in (node.lower, node.upper, node.step)], [])
    return node


def method_call(target, method, *args):
    return gast.Call(gast.Attribute(name(target), method, gast.Load()), list(args), [])
