# SPDX-License-Identifier: Apache-2.0
"""What the text of a pullback becomes in a kernel: loops, what is saved, comments, names that nobody reads."""
import ast
import re

from gradscribe.codegen.cuda.kernels import copied
from gradscribe.codegen.cuda.trees import parts_of, walk


class NoKernel(Exception):
    """What a pullback does that a kernel does not."""

    def __init__(self, reason, advice="Work entry by entry, in loops over ranges."):
        super().__init__(reason)
        self.advice = advice


class Steps(ast.NodeTransformer):
    """Loops as kernels have them: over ranges, forwards or backwards by numbers."""

    def visit_For(self, node):
        self.generic_visit(node)
        call = node.iter
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "reversed":
            inner = call.args[0]
            if not (isinstance(inner, ast.Call) and ast.unparse(inner.func) == "range" and len(inner.args) < 3):
                raise NoKernel(f"a loop over {ast.unparse(call)}")
            start, stop = ["0", *map(ast.unparse, inner.args)][-2:]
            node.iter = ast.parse(f"range({minus_one(stop)}, {minus_one(start)}, -1)", mode="eval").body
        elif isinstance(call, ast.Call) and ast.unparse(call.func) == "enumerate":
            start, _, step = ["0", *map(ast.unparse, call.args[0].args), "1"][-3:] if len(
                call.args[0].args) < 3 else map(ast.unparse, call.args[0].args)
            k, value = node.target.elts
            node.target = k
            node.body[:0] = ast.parse(f"{value.id} = {start} + {step} * {k.id}").body
            node.iter = ast.parse(f"range(len({ast.unparse(call.args[0])}))", mode="eval").body
        return node


def minus_one(text):
    return str(int(text) - 1) if re.fullmatch(r"\d+", text) else f"{text} - 1"


class Buffers(ast.NodeTransformer):
    """Entries of what is saved for all threads: the thread's place comes last."""

    def __init__(self, names, place):
        self.names, self.place = names, place

    def visit_all(self, body):
        for s in body:
            self.visit(s)

    def visit_Subscript(self, node):
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self.names:
            node.slice = ast.Tuple([*parts_of(node), ast.Name(self.place, ast.Load())], ast.Load())
        return node


def place_lines(place, axes):
    """Lines that say which thread of all this is."""
    count = max("xyz".index(a) for a in axes) + 1
    if count == 1:
        return [f"{place} = cuda.grid(1)"]
    names = [f"{place}_{a}" for a in "xyz"[:count]]
    text, size = names[-1], ["cuda.gridDim.{0} * cuda.blockDim.{0}".format(a) for a in "xyz"]
    for k in reversed(range(count - 1)):
        text = f"{names[k]} + {size[k]} * " + (text if text == names[-1] else f"({text})")
    return [f"{', '.join(names)} = cuda.grid({count})", f"{place} = {text}"]


def copy_of(value):
    """The name of the array that a value is, or is a copy of; None otherwise."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "copy":
        value = value.func.value
    return value.id if isinstance(value, ast.Name) else None


def uncast(value):
    """What a thread has of an adjoint, which is added in the dtype of the array."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "astype":
        value = value.func.value
    return value


def is_zeros(value):
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "np.zeros_like"


def is_made_here(value):
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("np.empty", "np.zeros", "np.ones")


def copied_head(s):
    made = type(s)(**{f: copied(v) if f not in ("body", "orelse") else [] for f, v in ast.iter_fields(s)})
    return made


def pruned(body):
    """Statements without the names that nothing reads."""
    while True:
        read = {n.id for s in body for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        kept = without(body, read)
        if ast.dump(ast.Module(kept, [])) == ast.dump(ast.Module(body, [])):
            return kept
        body = kept


def last_return_out(body):
    """Statements without a return or a continue after which nothing would come."""
    while body and isinstance(body[-1], (ast.Return, ast.Continue)):
        body = body[:-1]
    if body and isinstance(body[-1], ast.If):
        last = body[-1]
        last.body, last.orelse = last_return_out(last.body) or [ast.Pass()], last_return_out(last.orelse)
    return body


def without(body, read):
    out = []
    for s in body:
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and s.targets[0].id not in read:
            continue
        if isinstance(s, (ast.For, ast.While, ast.If)):
            made = copied_head(s)
            made.body, made.orelse = without(s.body, read), without(s.orelse, read)
            if hasattr(s, "comments"):
                made.comments = s.comments
            if not made.body and not made.orelse and not isinstance(s, ast.While):
                continue
            made.body = made.body or [ast.Pass()]
            s = made
        out.append(s)
    return out


def attach_comments(text, tree):
    """Each line of comment stands before the statement that follows it."""
    lines = text.splitlines()
    statements = sorted((n for n in ast.walk(tree) if isinstance(n, ast.stmt)), key=lambda n: (n.lineno, n.col_offset))
    for k, line in enumerate(lines):
        if line.strip().startswith("#"):
            after = next((n for n in statements if n.lineno > k + 1), None)
            if after is not None:
                after.comments = [*getattr(after, "comments", []), line.strip()]


def with_comments(made, s):
    if hasattr(s, "comments"):
        made.comments = s.comments
    return made


def show(body, level, out):
    """The lines of statements, each under its comments."""
    for s in body:
        out += ["    " * level + c for c in getattr(s, "comments", [])]
        if isinstance(s, (ast.For, ast.While, ast.If)):
            out.append("    " * level + ast.unparse(ast.fix_missing_locations(with_pass(s))).splitlines()[0])
            show(s.body, level + 1, out)
            if s.orelse:
                out.append("    " * level + "else:")
                show(s.orelse, level + 1, out)
        else:
            out += ["    " * level + line for line in ast.unparse(ast.fix_missing_locations(s)).splitlines()]


def with_pass(s):
    made = copied_head(s)
    made.body = [ast.Pass()]
    return made
