# SPDX-License-Identifier: Apache-2.0
"""Arrays in half precision on a device: stored so, computed in single precision.

A function is lowered as if what is float16 were float32.  What its variables say of arrays is then said in the text:
those are allocated as float16, entries are rounded before they are stored and widened where they are read.  Every entry
that is stored is rounded also where its number is used without being read again, so that both are the same number.
Sums, products and numbers are not rounded before they are results; arrays that are added into stay single.

>>> text = '''def f(x, w):
...     n = x.shape[0]
...     total = np.float32(0.0)
...     z = np.empty((n,), np.float16)
...     for i in range(n):
...         z_i = np.float16(x[i] * w)
...         z[i] = z_i
...         total += z_i
...     return (total, z)'''
>>> half = np.dtype("e")
>>> print(stored_short(text, [None] * 9, "f", [(half, 1), (np.dtype("f"), 0)], [half, half])[0])
def f(x, w):
    n = x.shape[0]
    total = np.float32(0.0)
    z = np.empty((n,), np.float16)
    for i in range(n):
        z_i = np.float32(np.float16(np.float32(x[i]) * w))
        z[i] = np.float16(z_i)
        total += z_i
    return (np.float16(total), z)
<BLANKLINE>
"""
import ast
import operator
import re

import numpy as np

from gradscribe.ast_transform.core.form import (
    Apply,
    Const,
    Effect,
    For,
    Function,
    If,
    Let,
    Pack,
    Param,
    Slice,
    Var,
    While,
    all_made,
    copied,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Sequence, Stack
from gradscribe.ast_transform.core.operations import astype
from gradscribe.ast_transform.source.diagnose import RuleError, ShapeError
from gradscribe.codegen.cuda.inferred import inferred
from gradscribe.codegen.fusion import printed
from gradscribe.codegen.lowered import Core, Lazy, lazily
from gradscribe.codegen.lowering import leaves
from gradscribe.codegen.settled import is_view
from gradscribe.codegen.texts import is_entry, parts_of
from gradscribe.codegen.texts import walk as nodes_of

HALF, SINGLE = np.dtype("float16"), np.dtype("float32")
DOUBLES = (np.dtype("float64"), np.dtype("complex128"))
OF_DTYPE = {np.nextafter, np.spacing, np.frexp}         # their values hang on the dtype that numbers have
PRODUCTS = {np.dot, np.matmul, operator.matmul, np.inner, np.tensordot, np.einsum}
MADE = {"np.empty", "np.zeros", "np.ones"}
SPELLED = {"float16", "half", "f2", "<f2"}
LARGEST = {"float16": 65504.0, "bfloat16": float.fromhex("0x1.FEp+127")}
KEEP = {"product"}                                      # functions of the host that take arrays in half precision


def in_half(x):
    """Numbers in single precision that half precision has."""
    return np.asarray(x).astype(HALF).astype(SINGLE)[()]


@lazily(in_half)
def _in_half(lowering, node):
    x = lowering.lazy(node.args[0])
    return Lazy(x.dims, SINGLE, lambda index: f"np.float16({x.cast(index, SINGLE)})", x.cost + 1)


def is_half(fact):
    return isinstance(fact, Array) and not fact.weak and np.dtype(fact.dtype) == HALF


def wide(fact):
    """A fact with single precision in the place of half."""
    if is_half(fact):
        return type(fact)(SINGLE, fact.dims, fact.length)
    if isinstance(fact, Stack):
        return Stack(wide(fact.element))
    if isinstance(fact, Sequence):
        return Sequence(fact.kind, tuple(map(wide, fact.elements)), fact.keys, fact.cls)
    return fact


def is_single(function, captured):
    """Whether nothing in a function is in double precision, but numbers of Python's, which take what they meet."""
    told = Core(None, set())

    def doubles(value):
        if isinstance(value, Apply):
            return told.fact(value), *(f for a in value.args for f in doubles(a))
        return (value.fact,) if isinstance(value, Var) else ()
    found = [p.value.fact for p in function.params if isinstance(p.value, Var)]
    found += [v.fact for v in (*(v for v, _ in captured.values()), *all_made(function.body))]
    try:
        for value in (*leaves(function.result), *(getattr(s, "value", None) for s in walk(function.body))):
            found += doubles(value)
    except ShapeError:                  # it is said where the function is lowered
        return False
    return not any(isinstance(f, Array) and not f.weak and np.dtype(f.dtype) in DOUBLES for f in found)


class Widened:
    """A function, and the arrays it reads from outside, in single precision where they are in half.

    Attributes: function, captured (as compile_function takes them), given (dtype of each parameter), results (dtype of
    each leaf of the result that is an array or a number, else None), some (whether there is anything in half).
    """

    def __init__(self, function, captured, bfloat16=False):
        self.function, self.captured = function, captured
        self.largest = LARGEST["bfloat16" if bfloat16 else "float16"]
        self.given = [getattr(p.value.fact, "dtype", None) for p in function.params if isinstance(p.value, Var)]
        self.told, self.own = Core(None, set()), []
        self.results = [getattr(self.told.fact(leaf), "dtype", None) for leaf in leaves(function.result)]
        outside = {v for v, _ in captured.values()}
        made = [*(p.value for p in function.params if isinstance(p.value, Var)), *outside, *all_made(function.body)]
        self.some = any(wide(v.fact) != v.fact for v in made)
        if self.some:
            self.widen(outside)

    def widen(self, outside):
        function = self.function
        env = {p.value: p.value.like() for p in function.params if isinstance(p.value, Var)}
        env |= {v: v.like() for v in outside}
        body = copied(function.body, env)
        body = self.apart(body)
        result = substituted(function.result, env)
        values = [*(getattr(s, "value", None) for s in walk(body)), *leaves(result)]
        self.limited = {id(n) for value in values for n in applies(value) if n.function is np.nan_to_num and is_half(
            self.told.fact(n))}
        self.half = {new for new in [*env.values(), *self.own] if is_half(new.fact) and new.fact.dims}
        for new in [*env.values(), *self.own]:
            new.fact = wide(new.fact)
        for step in walk(body):
            self.statement(step)
        params = [Param(p.name, env[p.value] if isinstance(p.value, Var) else p.value) for p in function.params]
        self.captured = {k: (env[v], value) for k, (v, value) in self.captured.items()}
        self.function = Function(function.label, params, body, self.value(result), function.about)

    def apart(self, block):
        """A block in which what is made to be a factor of a product has a name, and so a dtype."""
        out = []
        for step in block:
            for field in ("head", "body", "then", "orelse"):
                if hasattr(step, field):
                    setattr(step, field, self.apart(getattr(step, field)))
            if isinstance(step, Let):
                step.value = self.factors(step.value, out, step.origin)
            out.append(step)
        return out

    def factors(self, node, before, origin):
        if not isinstance(node, Apply):
            return node
        args = [self.factors(a, before, origin) for a in node.args]
        if node.function in PRODUCTS:
            for k, a in enumerate(args):
                if isinstance(a, Apply) and not is_view(a) and is_half(self.told.fact(a)):
                    self.own.append(Var("factor", self.told.fact(a)))
                    before.append(Let((self.own[-1],), a, origin))
                    args[k] = self.own[-1]
        return Apply(node.function, tuple(args), node.kwargs, node.origin)

    def statement(self, step):
        """Dtypes and constants of a statement."""
        self.origin = step.origin
        if isinstance(step, (Let, Effect)):
            step.value = self.value(step.value)
        if isinstance(step, For):
            step.count = self.value(step.count)
            step.items = tuple((v, self.value(s)) for v, s in step.items)
        if isinstance(step, (If, While)):
            step.test = self.value(step.test)
        for c in getattr(step, "carries", ()):
            c.init, c.next = self.value(c.init), self.value(c.next)
        for j in getattr(step, "joins", ()):
            j.then, j.orelse = self.value(j.then), self.value(j.orelse)

    def value(self, node):
        if isinstance(node, Const):
            return constant(node)
        if isinstance(node, Apply):
            if node.function is astype and isinstance(node.args[1], Const) and np.dtype(node.args[1].value) == HALF:
                return Apply(in_half, (self.value(node.args[0]),), (), node.origin)
            if node.function in OF_DTYPE:
                raise RuleError(f"np.{node.function.__name__} hangs on the precision of numbers, which is single on a "
                                "device where arrays are in half", node.origin or self.origin,
                                "Compute it in single precision: x.astype(np.float32).")
            words = tuple((k, self.value(a)) for k, a in node.kwargs)
            if id(node) in self.limited:
                words = self.finite(len(node.args), words)
            return Apply(node.function, tuple(map(self.value, node.args)), words, node.origin)
        if isinstance(node, Pack):
            return Pack(node.kind, tuple(map(self.value, node.items)), node.keys, node.cls)
        if isinstance(node, Slice):
            return Slice(*(p if p is None else self.value(p) for p in (node.start, node.stop, node.step)))
        return node

    def finite(self, given, words):
        """Keywords of np.nan_to_num with the largest numbers of the format, where none are given."""
        known = {**dict.fromkeys(("x", "copy", "nan", "posinf", "neginf")[:given]), **dict(words)}
        return words + tuple((k, Const(v)) for k, v in (("posinf", self.largest), ("neginf", -self.largest)) if (
            k not in known or isinstance(known[k], Const) and known[k].value is None))

    def dtypes(self, results):
        """Those of the leaves that the text returns."""
        return [d for d, (kind, _) in zip(self.results, results) if kind != "literal"]

    def results_as(self, results, short=HALF):
        """What each leaf of the result is, with the dtypes that the function gives; short: of those in half."""
        return [(kind, (short.type(what) if kind == "literal" else short) if dtype == HALF else what)
                for dtype, (kind, what) in zip(self.results, results)]

    def said(self, lowering):
        """Lines in which arrays in half precision are allocated as such, and what is stored in them is rounded."""
        renamed, named = lowering.function.notes["renamed"], {}
        half = {renamed[v] for v in self.half}
        known = set(renamed.values())
        for v, name in lowering.naming.names.items():
            if v in known and isinstance(v.fact, Array) and v.fact.dims:
                named.setdefault(name, []).append(v in half)
        added = {m[1] for _, text, _ in lowering.lines if (m := re.match(r"(\w+)\[.*\] [-+*/]= ", text))}
        returned = re.findall(r"\w+", lowering.lines[-1][1])[1:]        # arrays of a single name are the lowering's own
        short = {n for n, found in named.items() if all(found)}
        short |= {n for n, dtype in zip(returned, self.dtypes(lowering.results)) if dtype == HALF} - named.keys()
        for _, text, _ in lowering.lines:
            if (given := re.fullmatch(r"(\w+) = (\w+)", text)) and given[1] in short and given[2] not in named:
                short.add(given[2])
        short -= added
        out = []
        for level, text, origin in lowering.lines:
            start = re.match(r"\w*", text)[0]
            if start in short and re.fullmatch(rf"{start} = np\.(empty|zeros|ones)\(.*, np\.float32\)", text):
                text = text.replace("np.float32)", "np.float16)")
            elif start in short and text.startswith(f"{start}["):
                node = ast.parse(text).body[0]
                if isinstance(node, ast.Assign):
                    node.value = rounded(node.value)
                    text = ast.unparse(node)
            out.append((level, text, origin))
        return out


def applies(value):
    """The calls in a value, itself among them."""
    if isinstance(value, Apply):
        yield value
        for a in (*value.args, *(a for _, a in value.kwargs)):
            yield from applies(a)


def constant(node):
    value = node.value
    if isinstance(value, np.dtype) and value == HALF:
        return Const(SINGLE)
    if value is np.float16 or isinstance(value, str) and value in SPELLED:
        return Const(np.float32)
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype == HALF:
        return Const(value.astype(SINGLE))
    return node


# --- text -------------------------------------------------------------------------------------------------------------

def cast(name, value):
    return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), name, ast.Load()), [value], [])


def is_cast(node, name):
    return isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func) == f"np.{name}"


def rounded(value):
    """np.float16 of a value in single precision."""
    if is_cast(value, "float16"):
        return value
    if is_cast(value, "float32") and isinstance(value.args[0], ast.Constant):
        return cast("float16", value.args[0])
    return cast("float16", value)


def stored_short(text, origins, label, kinds, results, bfloat16=False):
    """A text, and where its lines come from, in which entries of arrays in half precision are widened when they are
    read; kinds, results: dtypes of parameters (with their ranks) and of what it returns.

    bfloat16: what is read is widened by `single`, since there the format is no dtype of Numba's.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        node.origin = origins[node.lineno - 1] if getattr(node, "lineno", 0) else None
    function = tree.body[0]
    ranks = {n: kind.rank for n, kind in inferred(text, label, kinds).items()}
    Stored(function, ranks, {a.arg for a, (dtype, rank) in zip(function.args.args, kinds) if dtype == HALF and rank},
           results, "single" if bfloat16 else None).run()
    lines = [(text.split("\n", 1)[0], None)]
    printed(ast.fix_missing_locations(function).body, 1, lines)
    return "\n".join(line for line, _ in lines) + "\n", [origin for _, origin in lines]


class Stored(ast.NodeTransformer):
    """ranks: of names; given: parameters in half precision; widening: the function that widens numbers, None for
    np.float32.
    """

    def __init__(self, function, ranks, given, results, widening=None):
        self.function, self.ranks, self.given, self.results = function, ranks, given, results
        self.widening = widening

    def run(self):
        self.find()
        while True:                     # what is added into is in single precision, with all that it is a view of
            added = {n.target.value.id for n in nodes_of(self.function) if isinstance(n, ast.AugAssign) and isinstance(
                n.target, ast.Subscript) and isinstance(n.target.value, ast.Name)}
            wrong = {b for n in added & self.half for b in self.bases(n)} & self.half
            changed = [n for n in nodes_of(self.function) if isinstance(n, ast.Assign) and getattr(
                n.targets[0], "id", None) in wrong and self.makes(n.value)]
            if not changed:
                break
            for n in changed:
                n.value = self.single(n.value)
            self.find()
        self.sure = self.certain()
        self.function.body = [self.visit(s) for s in self.function.body]
        for node in nodes_of(self.function) if self.widening else ():
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript) and self.reads_half(
                    node.targets[0]) and not self.reads_half(node.value) and not is_cast(node.value, "float16"):
                node.value = cast("float16", node.value)        # a constant: numbers of Numba's are not converted
            if is_cast(node, "float32") and (is_cast(node.args[0], "float16") or self.reads_half(node.args[0])):
                node.func = ast.Name(self.widening, ast.Load())

    def reads_half(self, value):
        """Whether a value is an entry of an array in half precision."""
        return isinstance(value, ast.Subscript) and self.is_number(value) and value.value.id in self.half

    def makes(self, value):
        """Whether a value is a new array in half precision, no view."""
        return self.is_half(value) and not self.base(value)

    def single(self, value):
        """What makes an array in half precision, as what makes one in single."""
        if isinstance(value, ast.Call) and ast.unparse(value.func) in MADE:
            value.args[-1] = dtype("float32")
            return value
        whole = value.func.value if ast.unparse(getattr(value, "func", value)).endswith(".copy") else value
        return ast.Call(ast.Attribute(whole, "astype", ast.Load()), [dtype("float32")], [])

    def find(self):
        """The names of arrays in half precision."""
        self.half, more = set(self.given), True
        self.values = {}
        for n in nodes_of(self.function):
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name):
                self.values.setdefault(n.targets[0].id, []).append(n.value)
            elif isinstance(n, ast.Call) and getattr(n.func, "attr", "") in ("append", "insert"):
                self.values.setdefault(n.func.value.id, []).append(n.args[-1])
        while more:
            found = {n for n, values in self.values.items() if self.ranks.get(n) != 0 and any(map(
                self.is_half, values))}
            more = not found <= self.half
            self.half |= found

    def certain(self):
        """Those that are in half precision whatever is done."""
        maybe = self.half
        while True:
            kept = {n for n in self.half if n in self.given or n in self.values and all(map(
                self.is_half, self.values[n]))}
            if kept == self.half:
                break
            self.half = kept
        self.half = maybe
        return kept

    def bases(self, name):
        """A name, and those that it may be a view of or another name for."""
        found, more = set(), {name}
        while more:
            found |= more
            more = {b for n in more for v in self.values.get(n, ()) if (b := self.base(v))} - found
        return found

    def base(self, value):
        while isinstance(value, (ast.Subscript, ast.Attribute)) or isinstance(value, ast.Call) and isinstance(
                value.func, ast.Attribute) and value.func.attr in ("reshape", "transpose", "ravel"):
            value = value.func.value if isinstance(value, ast.Call) else value.value
        return value.id if isinstance(value, ast.Name) and self.ranks.get(value.id) else None

    def is_half(self, value):
        """Whether an array is in half precision."""
        if isinstance(value, ast.Name):
            return value.id in self.half
        if isinstance(value, ast.Subscript):
            return self.is_half(value.value) and not self.is_number(value)
        if isinstance(value, ast.Attribute):
            return value.attr not in ("shape", "size", "ndim") and self.is_half(value.value)
        if isinstance(value, ast.IfExp):
            return self.is_half(value.body) or self.is_half(value.orelse)
        if not isinstance(value, ast.Call):
            return False
        name = ast.unparse(value.func)
        if name in MADE:
            return ast.unparse(value.args[-1]) == "np.float16"
        if name in ("np.dot", *KEEP):
            return all(map(self.is_half, value.args))
        if isinstance(value.func, ast.Attribute) and name.startswith("np."):
            return bool(value.args) and self.is_half(value.args[0])
        if isinstance(value.func, ast.Attribute):
            return value.func.attr != "astype" and self.is_half(value.func.value)
        return False

    def is_number(self, node):
        return isinstance(node.value, ast.Name) and is_entry(node, self.ranks.get(node.value.id, 0)) and not any(
            self.ranks.get(getattr(p, "id", None)) for p in parts_of(node))

    # reads and stores

    def visit_Subscript(self, node):
        read = isinstance(node.ctx, ast.Load) and self.reads_half(node)
        node.slice = self.visit(node.slice)
        return cast("float32", node) if read else node

    def visit_Assign(self, node):
        node.value, target = self.visit(node.value), node.targets[0]
        if isinstance(target, ast.Subscript):
            target.slice = self.visit(target.slice)
            if isinstance(target.value, ast.Name) and target.value.id in self.half and self.is_number(target):
                node.value = self.as_stored(node.value)
        return node

    def visit_AugAssign(self, node):
        node.value, target = self.visit(node.value), node.target
        if isinstance(target, ast.Subscript) and getattr(target.value, "id", None) in self.half:
            read = self.visit(ast.Subscript(target.value, target.slice, ast.Load()))
            return ast.copy_location(ast.Assign([target], self.as_stored(ast.BinOp(read, node.op, node.value))), node)
        return node

    def as_stored(self, value):
        """A value as an array in half precision takes it."""
        while is_cast(value, "float16") or is_cast(value, "float32") and not isinstance(value.args[0], ast.Constant):
            value = value.args[0]
        entry = isinstance(value, ast.Subscript) and getattr(value.value, "id", None) in self.half
        return value if entry or is_cast(value, "float32") else cast("float16", value)

    def visit_Call(self, node):
        if ast.unparse(node.func) in MADE:
            return node
        array = [self.is_half(a) and not (isinstance(a, ast.Name) and not self.ranks.get(a.id)) for a in node.args]
        whole = isinstance(node.func, ast.Name) and node.func.id not in KEEP
        if ast.unparse(node.func) == "np.dot" and len(node.args) == 3 and self.is_half(node.args[2]) != all(array[:2]):
            whole, array[2] = True, False
        node.args = [self.visit(a) for a in node.args]
        if whole:
            node.args = [ast.Call(ast.Attribute(a, "astype", ast.Load()), [dtype("float32")], []) if half else a
                         for a, half in zip(node.args, array)]
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        return self.widened(node) if is_cast(node, "float16") else node

    def widened(self, node):
        """np.float16(v) as a number in single precision."""
        value = node.args[0]
        if isinstance(value, ast.Constant):
            return cast("float32", ast.Constant(float(np.float16(value.value))))
        known = is_cast(value, "float32") and isinstance(value.args[0], ast.Subscript) and getattr(
            value.args[0].value, "id", None) in self.sure
        return value if known else cast("float32", node)

    def visit_Return(self, node):
        given = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        parts = []
        for value, kind in zip(given, self.results):
            half = self.is_half(value)
            sure = half and (not isinstance(value, ast.Name) or value.id in self.sure)
            number = not isinstance(value, ast.Name) or not self.ranks.get(value.id)
            if kind == HALF and not sure:
                value = cast("float16", value) if number else ast.Call(
                    ast.Attribute(value, "astype", ast.Load()), [dtype("float16")], [])
            elif kind != HALF and half:
                value = ast.Call(ast.Attribute(value, "astype", ast.Load()), [dtype("float32")], [])
            parts.append(value)
        node.value = ast.Tuple(parts, ast.Load())
        return node


def dtype(name):
    return ast.Attribute(ast.Name("np", ast.Load()), name, ast.Load())
