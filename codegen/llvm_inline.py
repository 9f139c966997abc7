# SPDX-License-Identifier: Apache-2.0
"""Short functions of the runtime, written as LLVM instructions where they are called.

Numba takes 50 to 150 ms to compile a function, and an exponential consists of four.  The functions of runtime/vmath.py
and a few of runtime/compiled.py are straight-line arithmetic.  Their source is read once, and each call becomes a
sequence of instructions: LLVM has nothing to inline, and vectorises a loop that calls them.  A product and a sum may be
fused; other fast math is not allowed.
"""
import ast
import builtins
import functools
import inspect
import math
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from gradscribe.runtime import compiled, ranks, vmath, vmath32, vmath_gamma, vmath_roots

VMATH = vmath, vmath_roots, vmath_gamma, vmath32
FUSED = ("contract",)
COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
FLOATS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
WHOLE = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.LShift: "shl", ast.RShift: "ashr", ast.BitAnd: "and_",
         ast.BitOr: "or_", ast.BitXor: "xor"}


class Typed(NamedTuple):
    """An LLVM value and its kind: the name of a dtype, or `bool`."""
    value: Any
    kind: str


class NoFlags:
    """No fast-math flags of an instruction or a call, to which Numba cannot add any: the sign of a zero matters."""

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def add(self, flag):
        pass

    append = add


@functools.cache
def body_of(function):
    """The statements of a function without its docstring."""
    body = ast.parse(inspect.getsource(function)).body[0].body
    return body[1:] if isinstance(body[0], ast.Expr) else body


def _elementary():
    """The functions of vmath that return one number: {name: (function, kinds of arguments, kind of the result)}."""
    found = {}
    for module in VMATH:
        kind = "float32" if module is vmath32 else "float64"
        for name, function in vars(module).items():
            if isinstance(function, FunctionType) and not isinstance(body_of(function)[-1].value, ast.Tuple):
                found[name] = function, [kind] * function.__code__.co_argcount, kind
    return found


ELEMENTARY: dict[str, tuple[Any, Any, Any]] = _elementary()


def in_single(name: str | None) -> str | None:
    """The name of an elementary function's version in single precision; None if vmath32.py has none.

    >>> in_single("exp"), in_single("psi")
    ('exp_32', None)
    """
    short = f"{name}_32"
    return short if short in vars(vmath32) else None


STRAIGHT = ELEMENTARY | {
    "ranked": (ranks.ranked, ["float64"], "int64"),
    "ranked_low": (ranks.ranked_low, ["float64"], "int64"),
    "unranked": (ranks.unranked, ["int64"], "float64"),
    "ranked32": (ranks.ranked32, ["float32"], "int32"),
    "ranked_low32": (ranks.ranked_low32, ["float32"], "int32"),
    "unranked32": (ranks.unranked32, ["int32"], "float32"),
    "place": (compiled.place, ["int64", "int64"], "int64"),
    "same": (compiled.same, ["int64", "int64"], "int64"),
    "meet": (compiled.meet, ["int64", "int64"], "int64"),
    "is_length": (compiled.is_length, ["int64"], None),
    "not_one": (compiled.not_one, ["int64"], None),
    "fits": (compiled.fits, ["int64", "int64"], None),
    "reaches": (compiled.reaches, ["int64", "int64", "int64"], None),
}


CALLED = {f"{word}_{name}_" for word in ("apart", "shared") for name in ELEMENTARY}     # those that remain calls


@functools.cache
def straight() -> dict[str, Any]:
    """The functions of STRAIGHT as Numba intrinsics, by name."""
    return {name: _for_numba(name, *about) for name, about in STRAIGHT.items()}


def called_apart(name: str, function: FunctionType, kinds: list[str], result: str, lanes: int = 1) -> Any:
    """An elementary function for Numba that remains a call; lanes: the width of its variant for vectorised loops."""
    return _for_numba(name, function, kinds, result, lanes)


def _for_numba(name, function, kinds, result, lanes=0):
    from numba import types
    from numba.extending import intrinsic

    def typed(*given):
        def emit(context, builder, signature, values):
            if lanes != 1 and name in ELEMENTARY:
                widest(builder.function)
            if lanes:
                return builder.call(_function(builder.module, context, name, function, kinds, lanes), values)
            out = Writer(context, builder).call(function, list(map(Typed, values, kinds)))
            return context.get_dummy_value() if result is None else out.value
        of = types.none if result is None else getattr(types, result)
        return of(*[getattr(types, k) for k in kinds]), emit

    form = {1: lambda context, x: typed(), 2: lambda context, x, y: typed(),
            3: lambda context, x, y, z: typed()}[len(kinds)]
    form.__name__ = form.__qualname__ = name
    return intrinsic(form)


def _function(module, context, name, function, kinds, lanes):
    """An elementary function as a pure LLVM function that is not inlined.

    With lanes, it has a vector variant, which a vectorised loop calls.  Source: LLVM Language Reference,
    "vector-function-abi-variant"; names are mangled by the Vector Function ABI, with LLVM's own letters for the
    processor.
    """
    full = f"gradscribe.{'apart' if lanes == 1 else 'shared'}.{name}"
    if full in module.globals:
        return module.globals[full]
    made = _written(module, context, full, function, kinds)
    made.linkage = "internal"
    if lanes > 1:
        lanes *= 2 if kinds[0] == "float32" else 1
        wide = f"{full}.{lanes}"
        _written(module, context, wide, function, kinds, lanes).linkage = "weak_odr"
        set.add(made.attributes, f'"vector-function-abi-variant"="_ZGV_LLVM_N{lanes}{"v" * len(kinds)}_{full}({wide})"')
    return made


def _written(module, context, name, function, kinds, lanes=1):
    from llvmlite import ir
    builder = ir.IRBuilder()
    writer = Writer(context, builder, lanes)
    number = writer.number(kinds[0])
    made = ir.Function(module, ir.FunctionType(number, [number] * len(kinds)), name)
    for word in ("noinline", "nounwind", "readnone"):
        made.attributes.add(word)
    builder.position_at_end(made.append_basic_block("entry"))
    builder.ret(writer.call(function, list(map(Typed, made.args, kinds))).value)
    return made


@functools.cache
def lanes_of_host() -> int:
    """The number of doubles in a vector of this processor."""
    from llvmlite import binding
    features = binding.get_host_cpu_features()
    return 8 if features.get("avx512f") else 4 if features.get("avx") else 2


def widest(function):
    """Asks for the widest vectors, a third faster in loops that compute much: by default LLVM uses half of AVX-512."""
    set.add(function.attributes, '"prefer-vector-width"="512"')     # llvmlite's own check rejects this attribute


class Writer:
    """Writes the instructions of a call by evaluating its function; lanes: the length of its vectors."""

    def __init__(self, context, builder, lanes=1):
        self.context, self.builder, self.lanes = context, builder, lanes

    def call(self, function, values):
        names = dict(zip(inspect.signature(function).parameters, values))
        return self.block(body_of(function), names, function.__globals__)

    def block(self, statements, names, space):
        """The value that a block returns at its end, or None."""
        for k, s in enumerate(statements):
            if isinstance(s, ast.Return):
                return self.value(s.value, names, space)
            if isinstance(s, ast.If):
                test, inner = self.value(s.test, names, space), s.body[0]
                if isinstance(inner, ast.Raise):
                    with self.builder.if_then(test.value, likely=False):
                        self.context.call_conv.return_user_exc(
                            self.builder, getattr(builtins, inner.exc.func.id), (inner.exc.args[0].value,))
                elif isinstance(inner, ast.Return):
                    if any(isinstance(n, ast.Raise) for s in statements[k + 1:] for n in ast.walk(s)):
                        raise NotImplementedError("a raise after a conditional return would be unconditional")
                    return self.chosen(test, self.value(inner.value, names, space),
                                       self.block(statements[k + 1:], names, space))
                else:
                    name, op = inner.target.id, type(inner.op)
                    other = self.binary(op, names[name], self.value(inner.value, names, space))
                    names[name] = self.chosen(test, other, names[name])
                continue
            target, value = s.targets[0], self.value(s.value, names, space)
            if isinstance(target, ast.Tuple):
                names.update(zip([t.id for t in target.elts], value))
            else:
                names[target.id] = value

    def value(self, node, names, space):
        """The value of an expression: a Typed, a Python object, or a tuple of them."""
        def of(inner):
            return self.value(inner, names, space)

        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return names[node.id] if node.id in names else space.get(node.id, getattr(builtins, node.id, None))
        if isinstance(node, ast.Tuple):
            return tuple(map(of, node.elts))
        if isinstance(node, ast.Attribute):
            return getattr(of(node.value), node.attr)
        if isinstance(node, ast.BinOp):
            return self.binary(type(node.op), of(node.left), of(node.right))
        if isinstance(node, ast.UnaryOp):
            return self.negative(of(node.operand))
        if isinstance(node, ast.Compare):
            return self.compared(COMPARED, node, of)
        if isinstance(node, ast.BoolOp):
            join = self.builder.and_ if isinstance(node.op, ast.And) else self.builder.or_
            return Typed(functools.reduce(join, [self.truth(of(v)) for v in node.values]), "bool")
        if isinstance(node, ast.IfExp):
            return self.chosen(of(node.test), of(node.body), of(node.orelse))
        return self.called(node, of)

    def called(self, node, of):
        args = [of(a) for a in node.args]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "view":
            return self.viewed(of(node.func.value), args[0])
        function = of(node.func)
        if isinstance(function, FunctionType):
            return self.call(function, [self.typed(a, "float64") for a in args])
        if isinstance(function, type):
            return self.converted(args[0], np.dtype(function).name)
        if function in (min, max):
            a, b = self.alike(*args)
            first = self.builder.fcmp_ordered("<" if function is min else ">", b.value, a.value)
            return Typed(self.builder.select(first, b.value, a.value), a.kind)
        name = {abs: "fabs", math.copysign: "copysign", np.sqrt: "sqrt", np.floor: "floor"}[function]
        values = self.alike(*args)
        llvm = self.intrinsic(f"llvm.{name}", values[0].value.type, len(values))
        call = self.builder.call(llvm, [v.value for v in values])
        call.fastmath = NoFlags()
        return Typed(call, values[0].kind)

    def intrinsic(self, name, number, count):
        from llvmlite import ir
        module, of = self.builder.module, ir.FunctionType(number, [number] * count)
        if self.lanes == 1:
            return module.declare_intrinsic(name, [number], of)
        full = f"{name}.v{self.lanes}{'f64' if isinstance(number.element, ir.DoubleType) else 'f32'}"
        return module.globals.get(full) or ir.Function(module, of, full)

    # numbers

    def number(self, kind):
        """LLVM's type of a kind."""
        from llvmlite import ir
        made = {"float64": ir.DoubleType, "float32": ir.FloatType}.get(kind)
        one = made() if made else ir.IntType(int(kind.removeprefix("int")))
        return one if self.lanes == 1 else ir.VectorType(one, self.lanes)

    def typed(self, value, kind):
        """A Python number as a Typed of a kind."""
        if isinstance(value, Typed):
            return value
        if isinstance(value, np.generic):
            kind, value = value.dtype.name, value.item()
        return Typed(self.constant(self.number(kind), float(value) if kind.startswith("f") else int(value)), kind)

    def constant(self, number, value):
        return number(value) if self.lanes == 1 else number([value] * self.lanes)

    def alike(self, *values):
        """The values converted to one kind, that of the typed ones."""
        kind = next((v.kind if isinstance(v, Typed) else v.dtype.name for v in values
                     if isinstance(v, (Typed, np.generic))), "float64")
        values = [self.typed(v, kind) for v in values]
        if any(v.kind != values[0].kind for v in values):
            wide = next(v.kind for v in values if v.kind.startswith("f"))
            values = [self.converted(v, wide) for v in values]
        return values

    def binary(self, operation, a, b):
        if not isinstance(a, Typed) and not isinstance(b, Typed):
            return _computed(operation, a, b)
        a, b = self.alike(a, b)
        if a.kind.startswith("f"):
            return Typed(getattr(self.builder, FLOATS[operation])(a.value, b.value, flags=FUSED), a.kind)
        return Typed(getattr(self.builder, WHOLE[operation])(a.value, b.value), a.kind)

    def negative(self, value):
        return Typed(self.builder.fneg(value.value), value.kind) if isinstance(value, Typed) else -value

    def compared(self, signs, node, of):
        values, tests = [of(v) for v in (node.left, *node.comparators)], []
        for a, operation, b in zip(values, node.ops, values[1:]):
            a, b = self.alike(a, b)
            sign = signs[type(operation)]
            if not a.kind.startswith("f"):
                tests.append(self.builder.icmp_signed(sign, a.value, b.value))
            elif sign == "!=":
                tests.append(self.builder.fcmp_unordered(sign, a.value, b.value))
            else:
                tests.append(self.builder.fcmp_ordered(sign, a.value, b.value))
        return Typed(functools.reduce(self.builder.and_, tests), "bool")

    def truth(self, value):
        return value.value if value.kind == "bool" else self.builder.icmp_signed("!=", value.value, self.constant(
            value.value.type, 0))

    def chosen(self, test, a, b):
        test = self.truth(test)
        a, b = self.alike(a, b)
        return Typed(self.builder.select(test, a.value, b.value), a.kind)

    def viewed(self, value, dtype):
        value, kind = self.typed(value, "float64"), np.dtype(dtype).name
        return Typed(self.builder.bitcast(value.value, self.typed(0, kind).value.type), kind)

    def converted(self, value, kind):
        value = self.typed(value, kind)
        if value.kind == kind:
            return value
        to = self.typed(0, kind).value.type
        if value.kind.startswith("int") and kind.startswith("int"):
            cast = self.builder.sext if kind == "int64" else self.builder.trunc
        elif value.kind.startswith("int"):
            cast = self.builder.sitofp
        else:
            cast = self.builder.fpext if kind == "float64" else self.builder.fptrunc
        return Typed(cast(value.value, to), kind)


def _computed(operation, a, b):
    """The value of an operation on two Python numbers, computed when compiling."""
    return eval(compile(ast.fix_missing_locations(ast.Expression(
        ast.BinOp(ast.Name("a", ast.Load()), operation(), ast.Name("b", ast.Load())))), "<number>", "eval"),
        {"a": a, "b": b})
