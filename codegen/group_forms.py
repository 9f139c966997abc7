# SPDX-License-Identifier: Apache-2.0
"""What the call of a group (groups.py) stands for: types first, then instructions.

Each operation has the type and the instructions that Numba has for it; what is asked of Numba is asked once for each
operation and kinds of operands.  Numbers are values of LLVM's; those that a loop or a branch changes have a place on
the stack.  A name has the type of what it was given last, as in Numba, and one common to both where two ways meet.
"""
import ast
import math
import operator
import weakref
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from gradscribe.codegen.decisions import in_any_order, without_flags
from gradscribe.codegen.groups import Flow
from gradscribe.codegen.texts import parts_of

OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge}
BUILTIN = {"float": float, "int": int, "complex": complex, "bool": bool, "abs": abs, "min": min, "max": max}
_asked: dict = {}                       # (operation, types): Numba's function and signature
_written = weakref.WeakKeyDictionary()  # {context: {(function, types): what writes it}}


class Typed(NamedTuple):
    """A value: what Numba says of it, and LLVM's name for it; counted: it is not negative."""
    type: Any
    value: Any
    counted: bool = False


class Entries(NamedTuple):
    """An array: where it begins, its lengths, and the steps of its axes, in entries or, of other layouts, in bytes."""
    type: Any
    data: Any
    lengths: list
    steps: list


def for_numba(group, space):
    """The function of a group; space: what the names of functions in it stand for."""
    from numba.core import types
    from numba.extending import intrinsic

    def typed(context, *given):
        given = [types.unliteral(t) for t in given]
        found = Types(context, space, group.statements)
        out = found.run(dict(zip(group.params, given)))
        results = [types.unliteral(found.name(out, n)) for n in group.results]
        whole = types.none if not results else results[0] if len(results) == 1 else types.Tuple(results)

        def emit(context, builder, signature, values):
            form = Form(context, builder, found)
            ends = form.run({n: Typed(t, v) for n, t, v in zip(group.params, given, values)}, group.statements)
            made = [form.cast(ends[n], t) for n, t in zip(group.results, results)]
            if len(made) > 1:
                return context.make_tuple(builder, signature.return_type, made)
            return made[0] if made else context.get_dummy_value()
        return whole(*given), emit

    names = ", ".join(f"a{k}" for k in range(len(group.params)))
    form = eval(f"lambda context, {names}: typed(context, {names})", {"typed": typed})
    form.__name__ = form.__qualname__ = group.name
    return intrinsic(form)


def function_of(node, space):
    """What a call calls."""
    if isinstance(node, ast.Attribute):
        return getattr(np if node.value.id == "np" else math, node.attr)
    return space[node.id] if node.id in space else BUILTIN[node.id]


def is_exact(node):
    """Whether decisions.py has marked an operation."""
    return getattr(node, "exact", False)


def flags_of(node):
    """How the instructions of an operation are written."""
    if is_exact(node):
        return without_flags
    return in_any_order if getattr(node, "summed", False) else nullcontext


def refused(message):
    from numba.core import errors
    return errors.TypingError(message)


class Types:
    """The types of a group's expressions: `of` by node, `calls` what Numba calls there, `merged` where ways meet."""

    def __init__(self, context, space, statements):
        from numba.core import types
        self.context, self.space, self.statements, self.types = context, space, statements, types
        self.of, self.calls, self.merged, self.changed = {}, {}, {}, {}

    def run(self, names):
        self.block(self.statements, names)
        return names

    def name(self, names, name):
        if name not in names:
            raise refused(f"{name} may not be set")
        return names[name]

    # statements

    def block(self, body, names):
        for s in body:
            if isinstance(s, ast.Assign):
                value = self.value(s.value, names)
                self.set(s.targets[0], value, names)
            elif isinstance(s, ast.AugAssign):
                first = self.value(s.target, names)
                value = self.call(s, OPERATORS[type(s.op)], [first, self.value(s.value, names)])
                self.set(s.target, value, names)
            elif isinstance(s, ast.For):
                self.loop(s, names)
            elif isinstance(s, ast.If):
                self.truth(s.test, names)
                ends = [dict(names), dict(names)]
                self.block(s.body, ends[0])
                self.block(s.orelse, ends[1])
                self.merged[s] = {n: self.common(ends[0][n], ends[1][n]) for n in sorted(self.sets(s))
                                  if n in ends[0] and n in ends[1]}
                for n in self.sets(s):
                    names.pop(n, None)
                names.update(self.merged[s])
            elif isinstance(s, ast.Expr):
                self.value(s.value, names)

    def sets(self, s):
        if s not in self.changed:
            self.changed[s] = Flow([s]).sets
        return self.changed[s]

    def set(self, target, value, names):
        if isinstance(target, ast.Name):
            names[target.id] = self.types.unliteral(value)
            return
        entry = self.entry(target, names)
        if not self.of[target.value].mutable or self.context.can_convert(value, entry) is None:
            raise refused(f"no {value} is written into {self.of[target.value]}")

    def loop(self, s, names):
        for a in s.iter.args:
            if self.types.unliteral(self.value(a, names)) != self.types.intp:
                raise refused("a loop counts by other numbers")
        carried = sorted(self.sets(s) & names.keys())
        while True:
            inner = {**names, s.target.id: self.types.intp}
            self.block(s.body, inner)
            merged = {n: self.common(names[n], inner[n]) for n in carried}
            if all(merged[n] == names[n] for n in carried):
                break
            names.update(merged)
        self.merged[s] = merged
        names.pop(s.target.id, None)

    def common(self, a, b):
        unliteral = self.types.unliteral
        found = unliteral(a) if a == b else self.context.unify_types(unliteral(a), unliteral(b))
        if found is None:
            raise refused(f"{a} and {b} have no common type")
        return found

    # expressions

    def value(self, node, names):
        found = self.of[node] = self.value_(node, names)
        return found

    def value_(self, node, names):
        if isinstance(node, ast.Constant):
            return self.types.maybe_literal(node.value) or self.context.resolve_value_type(node.value)
        if isinstance(node, ast.Name):
            return self.name(names, node.id)
        if isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Attribute):
                self.array(node.value.value, names)
                return self.types.intp
            return self.entry(node, names)
        if isinstance(node, ast.Attribute):
            found = self.context.resolve_getattr(self.value(node.value, names), node.attr)
            if found is None:
                raise refused(f"no {node.attr}")
            return found
        if isinstance(node, ast.IfExp):
            self.truth(node.test, names)
            return self.common(self.value(node.body, names), self.value(node.orelse, names))
        if isinstance(node, ast.BoolOp):
            if {self.types.unliteral(self.value(n, names)) for n in node.values} != {self.types.boolean}:
                raise refused("and, or of numbers")
            return self.types.boolean
        if isinstance(node, ast.Call):
            return self.call(node, function_of(node.func, self.space), [self.value(a, names) for a in node.args])
        parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.operand] if isinstance(
            node, ast.UnaryOp) else [node.left, node.comparators[0]]
        op = node.ops[0] if isinstance(node, ast.Compare) else node.op
        return self.call(node, OPERATORS[type(op)], [self.value(n, names) for n in parts])

    def call(self, node, function, given):
        asked = _asked.get((function, *given))
        if asked is None:
            kind = self.context.resolve_value_type(function)
            signature = self.context.resolve_function_type(kind, tuple(given), {})
            if signature is None or signature.recvr or isinstance(kind, self.types.ExternalFunction) or len(
                    signature.args) != len(given) and not self.packs(signature, given):
                raise refused(f"no {function} of {given}")
            asked = _asked[(function, *given)] = kind, signature
        self.calls[node] = asked
        return asked[1].return_type

    def packs(self, signature, given):
        """Whether a function takes its arguments as one tuple, as max does."""
        return len(signature.args) == 1 and isinstance(signature.args[0], self.types.StarArgTuple | (
            self.types.StarArgUniTuple)) and len(signature.args[0]) == len(given)

    def truth(self, node, names):
        found = self.value(node, names)
        if self.types.unliteral(found) != self.types.boolean:
            self.call((node, "truth"), bool, [found])

    def array(self, node, names):
        found = self.of[node] = self.name(names, node.id)
        if not isinstance(found, self.types.Array):
            raise refused(f"{node.id} is no array")
        return found

    def entry(self, node, names):
        array = self.array(node.value, names)
        given = [self.types.unliteral(self.value(p, names)) for p in parts_of(node)]
        if len(given) != array.ndim or not all(isinstance(t, self.types.Integer) for t in given):
            raise refused("an index that is no whole number")
        return array.dtype


class Form:
    """Writes a group's instructions."""

    def __init__(self, context, builder, found):
        self.context, self.builder, self.found, self.types = context, builder, found, found.types
        self.written = _written.setdefault(context, {})

    def run(self, names, statements):
        names = {n: self.array(t) if isinstance(t.type, self.types.Array) else t for n, t in names.items()}
        self.block(statements, names)
        return names

    def array(self, given):
        """Its parts, taken once at the start."""
        kind, rank = given.type, given.type.ndim
        names = self.context.data_model_manager[kind]._fields
        take = self.builder.extract_value
        shape = take(given.value, names.index("shape"))
        lengths = [take(shape, k) for k in range(rank)]
        if kind.layout in "CF":
            steps, order = [None] * rank, range(rank - 1, -1, -1) if kind.layout == "C" else range(rank)
            step = self.number(1)
            for k in order:
                steps[k] = step
                step = self.builder.mul(step, lengths[k])
        else:
            strides = take(given.value, names.index("strides"))
            steps = [take(strides, k) for k in range(rank)]
        return Entries(kind, take(given.value, names.index("data")), lengths, steps)

    def number(self, n):
        return self.context.get_constant(self.types.intp, n)

    def cast(self, given, kind):
        return self.context.cast(self.builder, given.value, given.type, kind)

    # statements

    def block(self, body, names):
        for s in body:
            if isinstance(s, ast.Assign):
                value = self.value(s.value, names)
                self.set(s.targets[0], value, names)
            elif isinstance(s, ast.AugAssign):
                first = self.value(s.target, names)
                self.set(s.target, self.call(s, [first, self.value(s.value, names)]), names)
            elif isinstance(s, ast.For):
                self.loop(s, names)
            elif isinstance(s, ast.If):
                self.branch(s, names)
            elif isinstance(s, ast.Expr):
                self.value(s.value, names)

    def set(self, target, value, names):
        if isinstance(target, ast.Name):
            names[target.id] = Typed(self.types.unliteral(value.type), value.value, value.counted)
            return
        from numba.np.arrayobj import store_item
        kind = self.found.of[target.value]
        value = self.cast(value, kind.dtype)
        store_item(self.context, self.builder, kind, value, self.place(target, names))

    def places(self, merged):
        from numba.core import cgutils
        return {n: cgutils.alloca_once(self.builder, self.context.get_value_type(t), name=n)
                for n, t in merged.items()}

    def keep(self, places, merged, names):
        for n, place in places.items():
            self.builder.store(self.cast(names[n], merged[n]), place)

    def kept(self, places, merged, names):
        names.update({n: Typed(merged[n], self.builder.load(place)) for n, place in places.items()})

    def loop(self, s, names):
        from numba.core import cgutils
        merged = self.found.merged[s]
        places = self.places(merged)
        ends = [self.cast(self.value(a, names), self.types.intp) for a in s.iter.args]
        step = 1
        if len(ends) == 3:
            step = ast.literal_eval(s.iter.args[2])
            counted = cgutils.for_range_slice(self.builder, *ends, inc=step > 0)
        else:
            counted = cgutils.for_range(self.builder, ends[0])
        self.keep(places, merged, names)
        with counted as found:
            inner = dict(names)
            self.kept(places, merged, inner)
            # upwards from 0, or down to it
            sure = len(ends) == 1 or step < 0 and ast.unparse(s.iter.args[1]) == "-1"
            inner[s.target.id] = Typed(self.types.intp, found[0], sure)
            self.block(s.body, inner)
            self.keep(places, merged, inner)
        self.kept(places, merged, names)
        for n in self.found.sets(s) - merged.keys() | {s.target.id}:
            names.pop(n, None)

    def branch(self, s, names):
        merged = self.found.merged[s]
        places = self.places(merged)
        with self.builder.if_else(self.truth(s.test, names)) as arms:
            for arm, body in zip(arms, (s.body, s.orelse)):
                with arm:
                    inner = dict(names)
                    self.block(body, inner)
                    self.keep(places, merged, inner)
        for n in self.found.sets(s):
            names.pop(n, None)
        self.kept(places, merged, names)

    # expressions

    def value(self, node, names):
        kind = self.types.unliteral(self.found.of[node])
        if isinstance(node, ast.Constant):
            counted = type(node.value) is int and node.value >= 0
            return Typed(kind, self.context.get_constant_generic(self.builder, kind, node.value), counted)
        if isinstance(node, ast.Name):
            return names[node.id]
        if isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Attribute):
                return Typed(kind, names[node.value.value.id].lengths[node.slice.value], True)
            from numba.np.arrayobj import load_item
            return Typed(kind, load_item(self.context, self.builder, self.found.of[node.value],
                                         self.place(node, names)))
        if isinstance(node, ast.Attribute):
            of = self.value(node.value, names)
            made = self.context.get_getattr(of.type, node.attr)
            return Typed(kind, made(self.context, self.builder, of.type, of.value, node.attr))
        if isinstance(node, ast.IfExp):
            return self.chosen(self.truth(node.test, names), node.body, node.orelse, kind, names)
        if isinstance(node, ast.BoolOp):
            stops = isinstance(node.op, ast.Or)
            out = self.value(node.values[0], names)
            for other in node.values[1:]:
                end = Typed(kind, self.context.get_constant(kind, stops))
                out = self.chosen(out.value, end if stops else other, other if stops else end, kind, names)
            return out
        parts = node.args if isinstance(node, ast.Call) else [node.left, node.right] if isinstance(
            node, ast.BinOp) else [node.operand] if isinstance(node, ast.UnaryOp) else [
                node.left, node.comparators[0]]
        given = [self.value(n, names) for n in parts]
        made = self.power(node, given[0]) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) else None
        made = made or self.call(node, given)
        grows = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and made.type == self.types.intp
        return made._replace(counted=grows and all(g.counted for g in given))

    def chosen(self, test, body, orelse, kind, names):
        """One of two, of which the other is not computed."""
        ends = []
        with self.builder.if_else(test) as arms:
            for arm, node in zip(arms, (body, orelse)):
                with arm:
                    value = node if isinstance(node, Typed) else self.value(node, names)
                    ends.append((self.cast(value, kind), self.builder.block))
        out = self.builder.phi(ends[0][0].type)
        for value, block in ends:
            out.add_incoming(value, block)
        return Typed(kind, out)

    def truth(self, node, names):
        value = self.value(node, names)
        return self.call((node, "truth"), [value]).value if (node, "truth") in self.found.calls else value.value

    def call(self, node, given):
        kind, signature = self.found.calls[node]
        key = kind, signature
        if key not in self.written:
            self.written[key] = self.context.get_function(kind, signature)
        if len(signature.args) != len(given):
            whole = signature.args[0]
            values = [self.context.make_tuple(self.builder, whole, [self.cast(g, t) for g, t in zip(given, whole)])]
        else:
            values = [self.cast(g, t) for g, t in zip(given, signature.args)]
        with flags_of(node)(self.builder):
            out = self.written[key](self.builder, values)
        return Typed(signature.return_type, self.context.get_dummy_value() if out is None else out)

    def power(self, node, base):
        """With an exponent that is written out: Numba multiplies."""
        if not isinstance(node.right, ast.Constant) or type(node.right.value) is not int:
            return None
        from numba.core import errors
        kind, signature = self.found.calls[node]
        try:
            static = kind.get_call_type(self.context.typing_context, (
                base.type, self.types.literal(node.right.value)), {})
            if not isinstance(static.args[1], self.types.IntegerLiteral):
                return None
            made = self.context.get_function(kind, static)
            out = Typed(static.return_type, made(self.builder, (base.value, node.right.value)))
        except (errors.TypingError, NotImplementedError):
            return None
        return Typed(signature.return_type, self.cast(out, signature.return_type))

    def place(self, node, names):
        """Where an entry is."""
        from numba.core import cgutils
        array, at = names[node.value.id], None
        for part, length, step in zip(parts_of(node), array.lengths, array.steps):
            index = self.value(part, names)
            signed = index.type.signed
            value = self.cast(index, self.types.intp if signed else self.types.uintp)
            if signed and not index.counted:
                below = self.builder.icmp_signed("<", value, self.number(0))
                value = self.builder.select(below, self.builder.add(value, length), value)
            offset = self.builder.mul(value, step)
            at = offset if at is None else self.builder.add(at, offset)
        if array.type.layout in "CF":
            return self.builder.gep(array.data, [at])
        return cgutils.pointer_add(self.builder, array.data, at)
