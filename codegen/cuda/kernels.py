# SPDX-License-Identifier: Apache-2.0
"""The text of kernels: a set of passes spread over threads, and what one block does after it.

Passes are spread over a grid of one to three axes, the innermost loop along the threads that are next to each other, so
that what they read lies together; each thread takes a pass, and then the one that is as far on as there are threads.
A sum goes over the passes of a thread, the threads of a block in pairs, and the blocks in order: it is the same from
call to call, whatever the machine.
"""
import ast

import numpy as np

from gradscribe.ast_transform.source.diagnose import TransformError
from gradscribe.codegen.cuda.trees import children, names_in, parts_of, walk
from gradscribe.codegen.loops.analysis.effects import CHECKS
from gradscribe.codegen.loops.trees import printed
from gradscribe.runtime.device_functions import NOTING
from gradscribe.runtime.on_device import OF_LIBDEVICE, OF_MATH

FIRST = {1: ("thread",), 2: ("column", "row"), 3: ("column", "row", "plane")}      # where a thread begins
TOLD = 6                                # statements of the user's above a kernel
STEPS = {1: ("threads",), 2: ("columns", "rows"), 3: ("columns", "rows", "planes")}
OF_COMPLEX = frozenset(f"np.{n}" for n in """conj conjugate exp log sqrt sin cos tan sinh cosh tanh arcsin arccos
    arctan arcsinh arccosh arctanh power square reciprocal expm1 log1p log2 log10 exp2""".split()) | {"square"}
ELEMENTARY = (OF_MATH.keys() | OF_LIBDEVICE.keys()) - {"power"}
NAMED = {"+": "sum", "*": "prod", "max": "max", "min": "min", "maximum": "maximum", "minimum": "minimum",
         "fmax": "fmax", "fmin": "fmin"}


class Kernel:
    """A kernel's text, under the statements that it is of; `given`: its parameters in their order."""

    def __init__(self, name, given, body, origin=None):
        self.name, self.given, self.body, self.origin = name, given, body, origin

    def lines(self):
        out = [("    " * level + line, origin) for level, line, origin in self.body]
        said = list(dict.fromkeys(o.statement.strip() for _, _, o in self.body if o is not None and o.statement))
        told = said if len(said) <= TOLD else [*said[:TOLD - 1], f"... and {len(said) - TOLD + 1} more"]
        above = [(f"# {s}", None) for s in told]
        return [*above, ("@cuda.jit", None), (f"def {self.name}({', '.join(self.given)}):", self.origin), *out]


def is_zero(node, name):
    """Whether a statement sets a number to zero."""
    if not isinstance(node, ast.Assign) or ast.unparse(node.targets[0]) != name:
        return False
    value = node.value
    while isinstance(value, ast.Call) and len(value.args) == 1:
        value = value.args[0]
    return isinstance(value, ast.Constant) and value.value == 0 and type(value.value) is not bool


def identity(op, dtype):
    """The text of what an operation leaves as it is."""
    value = {"+": "0", "*": "1"}[op]
    if dtype == "float64":
        return value + ".0"
    if dtype == "int64":
        return value
    return f"complex({value}.0, 0.0)" if dtype == "complex128" else f"np.{dtype}({value})"


class OnDevice(ast.NodeTransformer):
    """Statements as threads run them: numbers that stay on the device are entries of their arrays."""

    def __init__(self, held, kinds, atomic=(), check_bounds=True, single=False):
        self.held, self.kinds, self.atomic, self.check_bounds = held, kinds, set(atomic), check_bounds
        self.single = single
        self.functions, self.places = set(), False

    def visit_Name(self, node):
        if node.id in self.held:
            return ast.Subscript(ast.Name(node.id, ast.Load()), ast.Constant(0), node.ctx)
        return node

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "len" and is_plain_range(node.args[0]):
            begin, end = node.args[0].args[:2]          # as numba-cuda-mlir compiles it, too
            node = ast.Call(ast.Name("max", ast.Load()), [ast.BinOp(end, ast.Sub(), begin), ast.Constant(0)], [])
        if self.single and is_rounded(node):
            node = ast.Call(node.func, [ast.Call(node.args[0].func, [a.args[0] for a in node.args[0].args], [])], [])
        of_complex = any(self.is_complex(a) for a in node.args)
        node.args = [self.visit(a) for a in node.args]
        if isinstance(node.func, ast.Name):
            if of_complex and node.func.id.startswith("scipy_"):
                name = node.func.id.removeprefix("scipy_")
                raise TransformError(f"the device has no {name} of complex numbers", None,
                                     "Compute it on the processor, by gs.jit(f).")
            if node.func.id == "place" and not self.check_bounds:
                node.func = ast.Name("place_of", ast.Load())
            elif node.func.id == "place" or node.func.id in NOTING:
                self.places, node.func = True, ast.Name(f"{node.func.id}_in", ast.Load())
                node.args.append(ast.Name("wrong", ast.Load()))
            self.functions.add(node.func.id)
        elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and \
                node.func.value.id in ("np", "math"):
            name = node.func.attr
            if node.func.value.id == "math":
                self.functions.add("math")
            elif not is_type(name):
                node.func = ast.Name(f"complex_{name}" if of_complex else name, ast.Load())
                self.functions.add(node.func.id)
        else:
            node.func = self.visit(node.func)
        return node

    def is_complex(self, node):
        """Whether a value is a complex number, as far as its text says."""
        if isinstance(node, ast.Attribute):
            return False
        if isinstance(node, ast.Name):
            return self.kinds[node.id].dtype.startswith("complex") if node.id in self.kinds else False
        if isinstance(node, ast.Subscript):
            return self.is_complex(node.value)
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            return "complex" in name or name in OF_COMPLEX and any(map(self.is_complex, node.args))
        if isinstance(node, ast.Compare):
            return False
        if isinstance(node, ast.Constant):
            return isinstance(node.value, complex)
        return any(map(self.is_complex, children(node)))

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        if isinstance(node.target, ast.Subscript) and isinstance(node.target.value, ast.Name) and \
                node.target.value.id in self.atomic:
            value = node.value if isinstance(node.op, ast.Add) else ast.UnaryOp(ast.USub(), node.value)
            add = ast.Attribute(ast.Attribute(ast.Name("cuda", ast.Load()), "atomic", ast.Load()), "add", ast.Load())
            made = ast.Expr(ast.Call(add, [node.target.value, node.target.slice, value], []))
            made.origin, made.lineno = getattr(node, "origin", None), 0
            return made
        return node

    def visit_Expr(self, node):
        if not self.check_bounds and is_check(node) and node.value.func.id == "reaches":
            return ast.Pass()
        return self.generic_visit(node)

    def block(self, body):
        return guarded([self.visit(copied(s)) for s in body])

    def text(self, value):
        return ast.unparse(self.visit(copied(value)))


def is_rounded(node):
    """Whether a call is an elementary function in double precision, of and for numbers in single: devices have both."""
    inner = node.args[0] if ast.unparse(node.func) == "np.float32" and len(node.args) == 1 else None
    return isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id in ELEMENTARY and all(
        isinstance(a, ast.Call) and ast.unparse(a.func) == "np.float64" and len(a.args) == 1 for a in inner.args)


def guarded(body, loop=False):
    """Statements of which those after a check are done where nothing is wrong; loop: whether they are a loop's."""
    for k, s in enumerate(body):
        inside = loop or isinstance(s, (ast.For, ast.While))
        for block in (getattr(s, f, []) for f in ("body", "orelse")):
            block[:] = guarded(block, inside)
        if is_check(s) and body[k + 1:] and not is_check(body[k + 1]):
            rest = ast.If(ast.parse("wrong[0] == 0", mode="eval").body, guarded(body[k + 1:], loop),
                          [ast.Break()] if loop else [])
            rest.origin = getattr(s, "origin", None)
            return [*body[:k + 1], rest]
    return body


def is_check(s):
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and isinstance(
        s.value.func, ast.Name) and s.value.func.id.removesuffix("_in") in CHECKS


def is_plain_range(node):
    """range(begin, end), or with a step of one."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "range" and (len(node.args) == 2 or len(
        node.args) == 3 and isinstance(node.args[2], ast.Constant) and node.args[2].value == 1)


def is_type(name):
    return isinstance(getattr(np, name, None), type)


def copied(node):
    """A copy of a tree that keeps where its statements come from."""
    if isinstance(node, list):
        return [copied(n) for n in node]
    if not isinstance(node, ast.AST):
        return node
    made = type(node)(**{field: copied(value) for field, value in ast.iter_fields(node)})
    for field in ("origin", "lineno"):
        if hasattr(node, field):
            setattr(made, field, getattr(node, field))
    return made


def text_of(body, level):
    """(level, line, origin) of each line of a block."""
    lines = []
    printed(body, 0, lines)
    return [(level, line, origin) for line, origin in lines]


def along_lanes(nest):
    """(a nest whose innermost loop is the one that most arrays have as their last index, whether others have another).

    Neighbours of a warp take neighbouring passes of that loop.  Where others have the loop around it last, a block of
    eight warps takes a tile, so that the entries that a warp loads beside its own are the block's.
    """
    if len(nest.loops) < 2:
        return nest, False
    outer, inner = (n.target.id for n in nest.loops[-2:])
    lasts = [parts_of(n)[-1] for s in nest.body for n in walk(s) if isinstance(n, ast.Subscript) and isinstance(
        n.value, ast.Name) and {outer, inner} <= names_in(n).keys()]
    of_outer, of_inner = (sum(name in names_in(i) for i in lasts) for name in (outer, inner))
    if of_outer > of_inner:
        nest = nest._replace(loops=[*nest.loops[:-2], nest.loops[-1], nest.loops[-2]])
    return nest, bool(of_outer and of_inner)


def spread(nest, device, taken):
    """The lines of a nest over the grid; device: writes statements as threads run them; taken: names of others.

    The two innermost loops lie along axes of their own, so that neighbours are next to each other, and the others along
    the third: a place there says which pass of each it is.
    """
    count = min(len(nest.loops), 3)
    first, steps = ([other(n, taken) for n in names[count]] for names in (FIRST, STEPS))
    if count == 1:
        head = []
        where = [("cuda.grid(1)", "cuda.gridsize(1)")]
    else:
        head = [(1, f"{', '.join(first)} = cuda.grid({count})", None),
                (1, f"{', '.join(steps)} = cuda.gridsize({count})", None)]
        where = list(zip(first, steps))
    outer, body = nest.loops[:-2] if len(nest.loops) > 3 else [], text_of(device.block(nest.body), 0)
    for axis, n in enumerate(reversed(nest.loops[len(outer):])):
        body = strided(n.target.id, where[axis][0], device.text(n.iter.args[0]), where[axis][1], body, n)
    if outer:
        at, stop = other("place", taken), ast.parse(stops(nest)[0], mode="eval").body
        body = [(0, line, None) for line in places_of(outer, at)] + body
        body = strided(at, where[2][0], device.text(stop), where[2][1], body, outer[0])
    return head + [(1 + level, line, o) for level, line, o in body]


def strided(name, begin, stop, step, body, loop):
    """The lines of a loop from a place on, in steps: `range` would find the number of its passes by a division."""
    return [(0, f"{name} = {begin}", None), (0, f"while {name} < {stop}:", getattr(loop, "origin", None)),
            *((level + 1, line, o) for level, line, o in body), (1, f"{name} += {step}", None)]


def other(name, taken):
    while name in taken:
        name += "_"
    return name


def places_of(loops, at):
    """The lines that say which pass of each loop a place of all of them is."""
    lengths = [enclosed(n.iter.args[0]) for n in loops]
    lines = []
    for k, n in enumerate(loops):
        inside = " * ".join(lengths[k + 1:])
        text = f"{at} // ({inside})" if " * " in inside else f"{at} // {inside}" if inside else at
        lines.append(f"{n.target.id} = {text}" + (f" % {lengths[k]}" if k else ""))
    return lines


def enclosed(node):
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, (ast.BinOp, ast.IfExp)) else text


def stops(nest):
    """The texts of the lengths of the grid, outermost first."""
    loops, outer = nest.loops, nest.loops[:-2] if len(nest.loops) > 3 else []
    return [" * ".join(enclosed(n.iter.args[0]) for n in outer)] * bool(outer) + [
        ast.unparse(n.iter.args[0]) for n in loops[len(outer):]]


def loaded(nodes):
    """Names that statements read, in the order in which they stand."""
    return list(dict.fromkeys(n.id for s in nodes for n in standing(s)
                              if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)))


def standing(node):
    """A tree's nodes in the order of the text."""
    yield node
    for inner in children(node):
        yield from standing(inner)


def stored(nodes):
    return {n.id for s in nodes for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
