# SPDX-License-Identifier: Apache-2.0
"""Compiles a scalar region (loops/scalar_regions.py), a run of statements on scalars, as one Numba intrinsic.

First the types of all expressions are inferred, then the instructions are written.  Both come from Numba's own tables,
which are queried once for each operation and types of operands.  Scalars are LLVM values; those that a loop or a branch
changes have a slot on the stack.  A name has the type of its last assignment, as in Numba; where control flow merges,
it has the common type of both sides.
"""
import math
import operator
import weakref
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from gradscribe.codegen.exact import in_any_order, without_flags
from gradscribe.codegen.internal_functions import called
from gradscribe.codegen.loops.analysis.liveness import Flow
from gradscribe.codegen.loops.form import (
    EXACT,
    ONE,
    SUMMED,
    Attribute,
    Call,
    Compare,
    Const,
    Do,
    For,
    If,
    Length,
    Let,
    Load,
    Logic,
    Name,
    Op,
    Select,
    Store,
    Update,
    sign_of,
    statements,
)
from gradscribe.codegen.loops.scalar_regions import DOWN, Region
from gradscribe.codegen.loops.uniform import few
from gradscribe.codegen.primitives import fingerprint

OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "neg": operator.neg, "pos": operator.pos, "~": operator.invert,
    "not": operator.not_, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge}
BUILTIN = {"float": float, "int": int, "complex": complex, "bool": bool, "abs": abs, "min": min, "max": max}
_asked: dict = {}                       # {(operation, types): Numba's function and signature}
_written: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()    # {context: {(function, types): its code writer}}


class Typed(NamedTuple):
    """A value: its Numba type and its LLVM value; counted: whether it is certainly not negative."""
    type: Any
    value: Any
    counted: bool = False


class Entries(NamedTuple):
    """An array: its struct, its data pointer, its lengths, and the steps of its axes, in entries if it is contiguous,
    else in bytes; scopes: {kind of LLVM metadata: the alias scopes of its memory}.
    """
    type: Any
    value: Any
    data: Any
    lengths: list
    steps: list
    scopes: dict


def for_numba(region: Region, space: dict[str, Any]) -> Any:
    """The intrinsic of a region; space: the functions that it calls, by name.

    Numba keeps an intrinsic for as long as the process lives: `release` frees what it was made of.
    """
    from numba.core import types
    from numba.extending import intrinsic
    made_of: dict[Any, Any] = {"region": region, "space": space}

    def typed(context, *given):
        region, space = made_of["region"], made_of["space"]
        given = [types.unliteral(t) for t in given]
        found = Types(context, space, region.statements)
        out = found.run(dict(zip(region.params, given)))
        results = [types.unliteral(found.name(out, n)) for n in region.results]
        made_of[tuple(given)] = found
        whole = types.none if not results else results[0] if len(results) == 1 else types.Tuple(results)

        def emit(context, builder, signature, values):
            region = made_of["region"]
            form = Form(context, builder, made_of[tuple(given)], region)
            names = {n: Typed(t, v, n in region.natural) for n, t, v in zip(region.params, given, values)}
            ends = form.run(names, region.statements)
            made = [form.cast(ends[n], t) for n, t in zip(region.results, results)]
            if len(made) > 1:
                return context.make_tuple(builder, signature.return_type, made)
            return made[0] if made else context.get_dummy_value()
        return whole(*given), emit

    names = ", ".join(f"a{k}" for k in range(len(region.params)))
    form = eval(f"lambda context, {names}: typed(context, {names})", {"typed": typed})
    form.__name__ = form.__qualname__ = region.name
    made = intrinsic(form)
    made.made_of = made_of      # type: ignore[attr-defined]  # for `release`
    return made


def release(space: dict[str, Any]) -> None:
    """Frees what the intrinsics of a function's regions were made of, when the function is compiled."""
    for made in space.values():
        getattr(made, "made_of", {}).clear()


def function_of(name, space):
    """The function that a call names."""
    head, _, last = name.rpartition(".")
    if head:
        return getattr(np if head == "np" else math, last)
    return space[name] if name in space else BUILTIN[name]


def flags_of(op):
    """The context manager that sets the fast-math flags of an operation's instructions."""
    return without_flags if op.startswith(EXACT) else in_any_order if op.startswith(SUMMED) else nullcontext


def refused(message):
    from numba.core import errors
    return errors.TypingError(message)


class Types:
    """The types of a region: `of`, by the ids of expressions; `calls`, Numba's functions there; `merged`, the types
    where control flow merges.

    No two expressions are one object, since a name may have another type in another place.
    """

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

    def block(self, block, names):
        for s in block:
            if isinstance(s, Let):
                self.set(s.name, self.value(s.value, names), names)
            elif isinstance(s, Update):
                first = self.name(names, s.name)
                self.set(s.name, self.call(s, operator_of(s.op), [first, self.value(s.value, names)]), names)
            elif isinstance(s, Store):
                self.store(s, names)
            elif isinstance(s, For):
                self.loop(s, names)
            elif isinstance(s, If):
                self.truth(s.test, names)
                ends = [dict(names), dict(names)]
                self.block(s.block, ends[0])
                self.block(s.orelse, ends[1])
                self.merged[s] = {n: self.common(ends[0][n], ends[1][n]) for n in sorted(self.sets(s))
                                  if n in ends[0] and n in ends[1]}
                for n in self.sets(s):
                    names.pop(n, None)
                names.update(self.merged[s])
            elif isinstance(s, Do):
                self.value(s.value, names)

    def sets(self, s):
        if s not in self.changed:
            self.changed[s] = Flow([s]).sets
        return self.changed[s]

    def set(self, name, value, names):
        names[name] = self.types.unliteral(value)

    def store(self, s, names):
        if s.op is None:
            value, entry = self.value(s.value, names), self.entry(s.entry, names)
        else:
            entry = self.value(s.entry, names)
            value = self.call(s, operator_of(s.op), [entry, self.value(s.value, names)])
        array = self.name(names, s.entry.array.id)
        if not array.mutable or self.context.can_convert(value, entry) is None:
            raise refused(f"no {value} is written into {array}")

    def loop(self, s, names):
        for a in s.range:
            if self.types.unliteral(self.value(a, names)) != self.types.intp:
                raise refused("a loop counts by other numbers")
        carried = sorted(self.sets(s) & names.keys())
        while True:
            inner = {**names, s.index: self.types.intp}
            self.block(s.block, inner)
            merged = {n: self.common(names[n], inner[n]) for n in carried}
            if all(merged[n] == names[n] for n in carried):
                break
            names.update(merged)
        self.merged[s] = merged
        names.pop(s.index, None)

    def common(self, a, b):
        unliteral = self.types.unliteral
        found = unliteral(a) if a == b else self.context.unify_types(unliteral(a), unliteral(b))
        if found is None:
            raise refused(f"{a} and {b} have no common type")
        return found

    # expressions

    def value(self, e, names):
        found = self.of[id(e)] = self.value_(e, names)
        return found

    def value_(self, e, names):
        if isinstance(e, Const):
            return self.types.maybe_literal(e.value) or self.context.resolve_value_type(e.value)
        if isinstance(e, Name):
            return self.name(names, e.id)
        if isinstance(e, Length):
            self.array(e.array, names)
            return self.types.intp
        if isinstance(e, Load):
            return self.entry(e, names)
        if isinstance(e, Attribute):
            found = self.context.resolve_getattr(self.value(e.owner, names), e.name)
            if found is None:
                raise refused(f"no {e.name}")
            return found
        if isinstance(e, Select):
            self.truth(e.test, names)
            return self.common(self.value(e.then, names), self.value(e.orelse, names))
        if isinstance(e, Logic):
            if {self.types.unliteral(self.value(n, names)) for n in e.items} != {self.types.boolean}:
                raise refused("and, or of numbers")
            return self.types.boolean
        given = [self.value(a, names) for a in (e.items if isinstance(e, Compare) else e.args)]
        if isinstance(e, Call):
            return self.call(e, function_of(e.function, self.space), given)
        return self.call(e, operator_of(e.ops[0] if isinstance(e, Compare) else e.op), given)

    def call(self, site, function, given):
        """The type of a call; site: an expression, a statement, or a pair of one and a word."""
        asked = _asked.get((function, *given))
        if asked is None:
            kind = self.context.resolve_value_type(function)
            signature = self.context.resolve_function_type(kind, tuple(given), {})
            if signature is None or signature.recvr or isinstance(kind, self.types.ExternalFunction) or len(
                    signature.args) != len(given) and not self.packs(signature, given):
                raise refused(f"no {function} of {given}")
            asked = _asked[(function, *given)] = kind, signature
        self.calls[key_of(site)] = asked
        return asked[1].return_type

    def packs(self, signature, given):
        """Whether a function takes its arguments as one tuple, as max does."""
        return len(signature.args) == 1 and isinstance(signature.args[0], self.types.StarArgTuple | (
            self.types.StarArgUniTuple)) and len(signature.args[0]) == len(given)

    def truth(self, e, names):
        found = self.value(e, names)
        if self.types.unliteral(found) != self.types.boolean:
            self.call((e, "truth"), bool, [found])

    def array(self, name, names):
        found = self.name(names, name)
        if not isinstance(found, self.types.Array):
            raise refused(f"{name} is no array")
        return found

    def entry(self, e, names):
        array = self.array(e.array.id, names)
        given = [self.types.unliteral(self.value(p, names)) for p in e.index]
        if len(given) != array.ndim or not all(isinstance(t, self.types.Integer) for t in given):
            raise refused("an index that is no whole number")
        return array.dtype


def key_of(site):
    """The key of a site: two equal expressions are two sites."""
    return (id(site[0]), site[1]) if isinstance(site, tuple) else id(site)


def operator_of(op):
    return OPERATORS[sign_of(op)]


class Form:
    """Writes a region's instructions."""

    def __init__(self, context, builder, found, region):
        self.context, self.builder, self.found, self.types = context, builder, found, found.types
        self.written, self.apart, self.natural = _written.setdefault(context, {}), region.apart, region.natural
        self.region, self.natural_places = region, region.places

    def run(self, names, statements):
        self.block(statements, names := self.taken_apart(names))
        return names

    def taken_apart(self, names):
        arrays = [n for n, t in names.items() if isinstance(t.type, self.types.Array)]
        scopes = self.scopes(arrays)
        return {n: self.array(t, scopes[n]) if n in scopes else t for n, t in names.items()}

    def scopes(self, arrays):
        """{array: its alias metadata}: an array in `apart` shares no memory with those of other names.

        In a region that is called for several rows, a name is another array in each.  Source: LLVM Language Reference,
        'noalias' and 'alias.scope' metadata.
        """
        from llvmlite import ir
        module = self.builder.module

        def listed(*parts):
            return module.add_metadata(list(parts))
        domain = listed(ir.MetaDataString(module, f"arrays of {module.name}"))
        apart = {self.apart[n] for n in arrays if n in self.apart}
        here = f" {len(module.metadata)}" if self.region.several else ""
        scope = {n: listed(ir.MetaDataString(module, n + here), domain) for n in (*sorted(apart), "")}
        found = {}
        for name in arrays:
            own = self.apart.get(name, "")
            others = [scope[n] for n in sorted(scope) if n != own]
            found[name] = {"alias.scope": listed(scope[own]), "noalias": listed(*others)} if others else {}
        return found

    def reached(self, array, reach):
        """Writes instructions that load or store entries of an array, and adds its alias metadata to them."""
        block = self.builder.block
        first = len(block.instructions)
        out = reach()
        for instruction in block.instructions[first:]:
            if instruction.opname in ("load", "store"):
                for kind, what in array.scopes.items():
                    instruction.set_metadata(kind, what)
        return out

    def loaded(self, array, place):
        from numba.np.arrayobj import load_item
        return self.reached(array, lambda: load_item(self.context, self.builder, array.type, place))

    def array(self, given, scopes):
        """The Entries of an array, extracted once at the start."""
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
        return Entries(kind, given.value, take(given.value, names.index("data")), lengths, steps, scopes)

    def number(self, n):
        return self.context.get_constant(self.types.intp, n)

    def cast(self, given, kind):
        return self.context.cast(self.builder, given.value, given.type, kind)

    # statements

    def block(self, block, names):
        for s in block:
            if isinstance(s, Let):
                self.set(s.name, self.value(s.value, names), names)
            elif isinstance(s, Update):
                self.set(s.name, self.call(s, [names[s.name], self.value(s.value, names)], s.op), names)
            elif isinstance(s, Store):
                self.store(s, names)
            elif isinstance(s, For):
                self.loop(s, names)
            elif isinstance(s, If):
                self.branch(s, names)
            elif isinstance(s, Do):
                self.value(s.value, names)

    def set(self, name, value, names):
        names[name] = Typed(self.types.unliteral(value.type), value.value, value.counted or name in self.natural)

    def store(self, s, names):
        from numba.np.arrayobj import store_item
        array = names[s.entry.array.id]
        value = self.value(s.value, names) if s.op is None else None
        place = self.place(s.entry, names)
        if value is None:
            first = Typed(array.type.dtype, self.loaded(array, place))
            value = self.call(s, [first, self.value(s.value, names)], s.op)
        value = self.cast(value, array.type.dtype)
        self.reached(array, lambda: store_item(self.context, self.builder, array.type, value, place))

    def places(self, merged):
        from numba.core import cgutils
        return {n: cgutils.alloca_once(self.builder, self.context.get_value_type(t), name=n)
                for n, t in merged.items()}

    def keep(self, places, merged, names):
        for n, place in places.items():
            self.builder.store(self.cast(names[n], merged[n]), place)

    def kept(self, places, merged, names):
        names.update({n: Typed(merged[n], self.builder.load(place), n in self.natural) for n, place in places.items()})

    def loop(self, s, names):
        from numba.core import cgutils
        if s in self.region.repeated:
            self.call_nest(s, self.region.repeated[s], names)
            return
        merged = self.found.merged[s]
        places = self.places(merged)
        ends = [self.cast(self.value(a, names), self.types.intp) for a in s.range]
        step = 1
        if len(ends) == 3:
            step = 1 if s.range[2] == ONE else -1
            counted = cgutils.for_range_slice(self.builder, *ends, inc=step > 0)
        else:
            counted = cgutils.for_range(self.builder, ends[0])
        self.keep(places, merged, names)
        with counted as found:
            inner = dict(names)
            self.kept(places, merged, inner)
            # up from 0, or down to 0
            sure = len(ends) == 1 or step < 0 and s.range[1] in DOWN
            inner[s.index] = Typed(self.types.intp, found[0], sure)
            self.block(s.block, inner)
            self.keep(places, merged, inner)
            end = self.builder.block
        self.forbid_unrolling(s, end)
        self.kept(places, merged, names)
        for n in self.found.sets(s) - merged.keys() | {s.index}:
            names.pop(n, None)

    def call_nest(self, s, nest, names):
        """Calls the internal function of a loop nest that occurs more than once; the first occurrence writes it."""
        merged = self.found.merged[s]
        nest = nest._replace(results=[n for n in nest.results if n in merged])
        given, results = [names[n] for n in nest.params], [merged[n] for n in nest.results]
        kinds, whole = [g.type for g in given], self.types.Tuple(results) if results else self.types.none
        # occurrences share a function if all that is known of them is equal
        known = (*nest.known, [nest.names.index(n) for n in nest.results], whole,
                 [(g.type, isinstance(g, Typed) and g.counted) for g in given])

        def write(builder, values):
            inner = Form(self.context, builder, self.found, self.region._replace(repeated={}))
            names = inner.taken_apart({n: Typed(g.type, v, isinstance(g, Typed) and g.counted)
                                       for n, g, v in zip(nest.params, given, values)})
            inner.loop(s, names)
            ends = [inner.cast(names[n], kind) for n, kind in zip(nest.results, results)]
            return self.context.make_tuple(builder, whole, ends) if ends else None
        made = called(self.context, self.builder, f"nest_{fingerprint(known)}", kinds, whole,
                      [g.value for g in given], write, stays=True)
        for k, (n, kind) in enumerate(zip(nest.results, results)):
            names[n] = Typed(kind, self.builder.extract_value(made, k), n in self.natural)

    def forbid_unrolling(self, s, end):
        """Forbids unrolling of a loop with a constant trip count if that is large, or if a loop inside is not unrolled.

        After unrolling an innermost loop, LLVM would vectorise the loop around it, with strided accesses; unrolling an
        outer one would copy the loops in it.  Source: LLVM Language Reference, 'llvm.loop' metadata.
        """
        from llvmlite import ir
        if not all(isinstance(e, Const) for e in s.range) or all(few(i) for i in statements([s]) if isinstance(i, For)):
            return
        module = self.builder.module
        word = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.disable")])
        loop = module.add_metadata([ir.MetaDataString(module, f"loop {len(module.metadata)}")])
        loop.operands = [loop, word]            # a self-reference makes it distinct
        end.terminator.set_metadata("llvm.loop", loop)

    def branch(self, s, names):
        merged = self.found.merged[s]
        places = self.places(merged)
        with self.builder.if_else(self.truth(s.test, names)) as arms:
            for arm, block in zip(arms, (s.block, s.orelse)):
                with arm:
                    inner = dict(names)
                    self.block(block, inner)
                    self.keep(places, merged, inner)
        for n in self.found.sets(s):
            names.pop(n, None)
        self.kept(places, merged, names)

    # expressions

    def value(self, e, names):
        kind = self.types.unliteral(self.found.of[id(e)])
        if isinstance(e, Const):
            counted = type(e.value) is int and e.value >= 0
            return Typed(kind, self.context.get_constant_generic(self.builder, kind, e.value), counted)
        if isinstance(e, Name):
            return names[e.id]
        if isinstance(e, Length):
            return Typed(kind, names[e.array].lengths[e.axis], True)
        if isinstance(e, Load):
            return Typed(kind, self.loaded(names[e.array.id], self.place(e, names)))
        if isinstance(e, Attribute):
            of = self.value(e.owner, names)
            made = self.context.get_getattr(of.type, e.name)
            return Typed(kind, made(self.context, self.builder, of.type, of.value, e.name))
        if isinstance(e, Select):
            return self.chosen(self.truth(e.test, names), e.then, e.orelse, kind, names)
        if isinstance(e, Logic):
            stops = e.op == "or"
            out = self.value(e.items[0], names)
            for other in e.items[1:]:
                end = Typed(kind, self.context.get_constant(kind, stops))
                out = self.chosen(out.value, end if stops else other, other if stops else end, kind, names)
            return out
        given = [self.value(a, names) for a in (e.items if isinstance(e, Compare) else e.args)]
        op = e.op if isinstance(e, Op) else ""
        made = (self.power(e, given[0]) if sign_of(op) == "**" else None) or self.call(e, given, op)
        grows = sign_of(op) == "+" and made.type == self.types.intp
        return made._replace(counted=grows and all(g.counted for g in given))

    def chosen(self, test, body, orelse, kind, names):
        """One of two values by a test; the other is not computed."""
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

    def truth(self, e, names):
        value = self.value(e, names)
        return self.call((e, "truth"), [value]).value if (id(e), "truth") in self.found.calls else value.value

    def call(self, site, given, op=""):
        kind, signature = self.found.calls[key_of(site)]
        key = kind, signature
        if key not in self.written:
            self.written[key] = self.context.get_function(kind, signature)
        if len(signature.args) != len(given):
            whole = signature.args[0]
            values = [self.context.make_tuple(self.builder, whole, [self.cast(g, t) for g, t in zip(given, whole)])]
        else:
            values = [self.cast(g, t) for g, t in zip(given, signature.args)]
        with flags_of(op)(self.builder):
            out = self.written[key](self.builder, values)
        return Typed(signature.return_type, self.context.get_dummy_value() if out is None else out)

    def power(self, e, base):
        """A power with a literal integer exponent, for which Numba multiplies; None for others."""
        exponent = e.args[1]
        if not isinstance(exponent, Const) or type(exponent.value) is not int:
            return None
        from numba.core import errors
        kind, signature = self.found.calls[id(e)]
        try:
            static = kind.get_call_type(self.context.typing_context, (
                base.type, self.types.literal(exponent.value)), {})
            if not isinstance(static.args[1], self.types.IntegerLiteral):
                return None
            made = self.context.get_function(kind, static)
            out = Typed(static.return_type, made(self.builder, (base.value, exponent.value)))
        except (errors.TypingError, NotImplementedError):
            return None
        return Typed(signature.return_type, self.cast(out, signature.return_type))

    def place(self, e, names):
        """The address of an entry."""
        from numba.core import cgutils
        array, at = names[e.array.id], None
        for part, length, step in zip(e.index, array.lengths, array.steps):
            index = self.value(part, names)
            signed = index.type.signed
            value = self.cast(index, self.types.intp if signed else self.types.uintp)
            if signed and not index.counted and id(part) not in self.natural_places:
                below = self.builder.icmp_signed("<", value, self.number(0))
                value = self.builder.select(below, self.builder.add(value, length), value)
            offset = self.builder.mul(value, step)
            at = offset if at is None else self.builder.add(at, offset)
        if array.type.layout in "CF":
            return self.builder.gep(array.data, [at])
        return cgutils.pointer_add(self.builder, array.data, at)
