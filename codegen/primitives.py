# SPDX-License-Identifier: Apache-2.0
"""Allocation and matrix products for compiled text, written as LLVM instructions.

Numba compiles a function for `np.empty`, `np.zeros` and `np.dot` with each kind of arguments, which takes half a second
for a product.  The intrinsics here write the same in a few milliseconds: `in_place` replaces `np.dot` in the text by
them before it is compiled.  A product may be given the array that it is to be written into.

>>> import ast
>>> print(ast.unparse(in_place(ast.parse("z = np.dot(x, np.zeros((n, 2), np.float64))"))[0]))
z = dot_(x, zeros_((n, 2), np.float64))

A function begins with `no_estimates_()`, which forbids estimates of quotients and roots in single precision: the Newton
steps after an estimate turn 1 / sqrt(0) and 1 / sqrt(inf) into NaN.
"""
import ast
import functools
import hashlib
import math
import sys
from collections.abc import Container
from typing import Any

from gradscribe.codegen.internal_functions import called, without_estimates

NAMES = {"np.empty": "empty_", "np.zeros": "zeros_", "np.dot": "dot_", "add_dot": "add_dot_",
         "subtract_dot": "subtract_dot_"}
ALIGNMENT = 64                          # bytes: a cache line, and the widest vector
LARGE = 1 << 22                         # bytes from which an array asks for huge pages, as NumPy's arrays do
PAGE, HUGE_PAGES = 4096, 14             # bytes; MADV_HUGEPAGE
LARGEST = 2 ** 31 - 1                   # the largest length in BLAS
KINDS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def in_place(tree: ast.AST, on_stack: Container[str] = ()) -> tuple[ast.AST, dict[str, Any]]:
    """(the tree with calls of these intrinsics, the intrinsics by name).

    on_stack: names of short arrays of known length that are on the function's stack.
    """
    names = dict(primitives())
    for made in ast.walk(tree) if on_stack else ():
        if isinstance(made, ast.Assign) and getattr(made.targets[0], "id", None) in on_stack:
            call: Any = made.value
            name: Any = "_".join([call.func.attr, *(str(d.value) for d in call.args[0].elts), ""])
            names[name] = stacked(name)
            call.func = ast.copy_location(ast.Name(name, ast.Load()), call.func)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)) and not node.keywords and \
                len(node.args) > 1:
            name = NAMES.get(ast.unparse(node.func))
            if name == "dot_" and len(node.args) == 3:
                name = "dot_into_"
            if name and "dot_" in name and any(map(is_view, node.args[:2])):
                name += "of_views_"
            if name:
                node.func = ast.copy_location(ast.Name(name, ast.Load()), node.func)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            call = ast.Expr(ast.Call(ast.Name("no_estimates_", ast.Load()), [], []))
            node.body.insert(0, ast.fix_missing_locations(ast.copy_location(call, node.body[0])))
    return tree, names


def is_view(node):
    """Whether a factor is a slice like x[:, 1:], whose rows are contiguous where lowering writes it into a product."""
    return isinstance(node, ast.Subscript) and any(isinstance(n, ast.Slice) for n in ast.walk(node.slice))


@functools.cache
def primitives():
    """The intrinsics of the names in NAMES, and their variants."""
    from numba.extending import intrinsic
    made = {"empty_": intrinsic(_empty), "zeros_": intrinsic(_zeros), "no_estimates_": intrinsic(_no_estimates)}
    for by_rows in (False, True):
        views = "of_views_" if by_rows else ""
        made[f"dot_{views}"] = intrinsic(_dot(by_rows))
        for name, factors in (("dot_into_", (1.0, 0.0)), ("add_dot_", (1.0, 1.0)), ("subtract_dot_", (-1.0, 1.0))):
            made[name + views] = intrinsic(_dot_into(by_rows, *factors))
    return made


@functools.cache
def stacked(name):
    """The intrinsic of a name such as empty_3_2_: an array of three rows and two columns on the stack."""
    from numba.extending import intrinsic
    clear, *lengths = name.rstrip("_").split("_")
    return intrinsic(lambda context, shape, dtype: _made(shape, dtype, clear == "zeros", list(map(int, lengths))))


def _no_estimates(context):
    from numba import types

    def emit(context, builder, signature, values):
        without_estimates(builder.function)
        return context.get_dummy_value()
    return types.none(), emit


# --- allocation -------------------------------------------------------------------------------------------------------

def _empty(context, shape, dtype):
    return _made(shape, dtype, False)


def _zeros(context, shape, dtype):
    return _made(shape, dtype, True)


def _made(shape, dtype, clear, known=None):
    from numba import types
    from numba.core.typing.npydecl import parse_dtype, parse_shape
    rank, scalar = parse_shape(shape), parse_dtype(dtype)
    if rank is None or scalar is None:
        return None

    def emit(context, builder, signature, values):
        lengths = lengths_of(context, builder, shape, values[0]) if known is None else [
            context.get_constant(types.intp, n) for n in known]
        array = allocated(context, builder, signature.return_type, lengths, known)
        if clear:
            _cleared(builder, array)
        return array._getvalue()
    return types.Array(scalar, rank, "C")(shape, dtype), emit


def lengths_of(context, builder, shape, value):
    """The lengths in a shape, as intp values."""
    from numba.core import cgutils, types
    given = [(shape, value)] if isinstance(shape, types.Integer) else list(
        zip(shape, cgutils.unpack_tuple(builder, value)))
    return [context.cast(builder, n, kind, types.intp) for kind, n in given]


def allocated(context, builder, kind, lengths, known=None):
    """A new contiguous array, on the stack if its lengths are known."""
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.np.arrayobj import get_itemsize, make_array, populate_array
    array = make_array(kind)(context, builder)
    number = functools.partial(context.get_constant, types.intp)
    sizes, over = [number(get_itemsize(context, kind))], ir.Constant(ir.IntType(1), 0)
    entry, words = context.get_data_type(kind.dtype), context.get_value_type(types.intp)
    for n in reversed(lengths):
        both = builder.smul_with_overflow(sizes[-1], n)
        sizes.append(builder.extract_value(both, 0))
        over = builder.or_(over, builder.extract_value(both, 1))
    if known is None:
        below = functools.reduce(builder.or_, [builder.icmp_signed("<", n, number(0)) for n in lengths],
                                 ir.Constant(ir.IntType(1), 0))
        with builder.if_then(builder.or_(below, over), likely=False):
            with builder.if_then(below):
                context.call_conv.return_user_exc(builder, ValueError, ("negative dimensions not allowed",))
            context.call_conv.return_user_exc(builder, ValueError, ("array is too big",))
        memory = builder.call(new_memory(context, builder.module), sizes[-1:])
        with builder.if_then(cgutils.is_null(builder, memory), likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ("Allocation failed (probably too large).",))
        data = context.nrt.meminfo_data(builder, memory)
    else:
        sizes = [number(get_itemsize(context, kind) * math.prod(known[k:])) for k in range(len(known), -1, -1)]
        memory = None
        with builder.goto_entry_block():
            data = builder.alloca(ir.ArrayType(entry, max(math.prod(known), 1)))
            data.align = ALIGNMENT
    populate_array(
        array, data=builder.bitcast(data, entry.as_pointer()),
        shape=cgutils.pack_array(builder, lengths, ty=words), itemsize=sizes[0], meminfo=memory,
        strides=cgutils.pack_array(builder, sizes[-2::-1] if len(lengths) else [], ty=words))
    return array


def new_memory(context, module):
    """The module's function that allocates that many bytes with Numba's reference count, or returns null."""
    from llvmlite import ir
    from numba.core import cgutils, types
    name, size = "new_memory", context.get_value_type(types.intp)
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(cgutils.voidptr_t, [size]), name)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    memory = context.nrt.meminfo_alloc_aligned_unchecked(builder, function.args[0], ALIGNMENT)
    large = builder.icmp_signed(">=", function.args[0], size(LARGE))
    if sys.platform == "linux":
        with builder.if_then(builder.and_(large, cgutils.is_not_null(builder, memory)), likely=False):
            in_large_pages(builder, context.nrt.meminfo_data(builder, memory), function.args[0])
    builder.ret(memory)
    return function


def in_large_pages(builder, data, size):
    """Asks the system for pages of 2 MiB, so that new memory costs one page fault in place of 512.

    NumPy does so for its arrays; malloc does not.  Source: madvise(2), MADV_HUGEPAGE.
    """
    from llvmlite import ir
    from numba.core import cgutils
    whole = size.type
    begin = builder.ptrtoint(data, whole)
    start = builder.and_(builder.add(begin, whole(PAGE - 1)), whole(-PAGE))
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.IntType(32), [cgutils.voidptr_t, whole, ir.IntType(32)]), "madvise")
    builder.call(function, [builder.inttoptr(start, cgutils.voidptr_t),
                            builder.sub(size, builder.sub(start, begin)), ir.IntType(32)(HUGE_PAGES)])


def _cleared(builder, array):
    from numba.core import cgutils
    cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)


# --- products ---------------------------------------------------------------------------------------------------------

def _dot(by_rows):
    return lambda context, a, b: _multiplied(a, b, by_rows=by_rows)


def _dot_into(by_rows, alpha, beta):
    """The typing function of out = alpha * product + beta * out, where out is neither factor."""
    return lambda context, a, b, out: _multiplied(a, b, out, by_rows=by_rows, factors=(alpha, beta))


def _multiplied(a, b, *out, by_rows=False, factors=(1.0, 0.0)):
    """np.dot by BLAS of matrices and vectors that are contiguous in either order; by_rows: also of matrices whose rows
    are contiguous.
    """
    from numba import types
    given = (a, b, *out)
    if not all(isinstance(t, types.Array) and t.dtype == a.dtype and t.ndim in (1, 2) for t in given) or \
            str(a.dtype) not in KINDS or any(t.layout != "C" for t in out):
        return None
    rank = a.ndim + b.ndim - 2
    if out and out[0].ndim != rank or len(out) > (rank > 0):
        return None
    result = types.none if out else types.Array(a.dtype, rank, "C") if rank else a.dtype

    def emit(context, builder, signature, values):
        from numba.np.linalg import ensure_blas
        ensure_blas()
        name = f"product_{fingerprint(by_rows, factors, *signature.args)}"
        return called(context, builder, name, signature.args, signature.return_type, values,
                      lambda builder, values: written(context, builder, signature, values))

    def written(context, builder, signature, values):
        from numba.np.linalg import make_contiguous
        given = signature.args
        taken = [t.copy(layout="C") if by_rows and t.ndim == 2 and t.layout == "A" else t for t in given]
        with make_contiguous(context, builder, signature.replace(args=tuple(taken)), values) as (flat, values):
            kinds = [was if new is not was else t for t, was, new in zip(flat.args, given, taken)]
            return _Product(context, builder, flat.replace(args=tuple(kinds)), values, factors).emitted()
    return result(*given), emit


def fingerprint(*what: Any) -> str:
    """A hash of what a function is made from."""
    return hashlib.sha256(repr(what).encode()).hexdigest()[:16]


class _Product:
    """One product: BLAS is column-major, so it is given the transposes of the factors, the second one first.

    factors: (alpha, beta) of out = alpha * product + beta * out.
    """

    def __init__(self, context, builder, signature, values, factors):
        from numba.core import cgutils
        from numba.np.arrayobj import make_array
        self.context, self.builder, self.signature, self.values = context, builder, signature, values
        self.kinds, self.factors = signature.args, factors
        self.arrays = [make_array(t)(context, builder, v) for t, v in zip(self.kinds, values)]
        self.shapes = [cgutils.unpack_tuple(builder, x.shape) for x in self.arrays]

    def emitted(self):
        a, b = self.kinds[:2]
        inner = self.shapes[0][-1]
        self.check(inner, self.shapes[1][0], "incompatible array sizes for np.dot(a, b)")
        for n in (*self.shapes[0], *self.shapes[1]):
            self.check(n, self.number(LARGEST), "array size too large to fit in C int", ">", OverflowError)
        if a.ndim == b.ndim == 1:
            return self.inner_product(inner)
        lengths = [*self.shapes[0][:-1], *self.shapes[1][1:]]
        if len(self.arrays) == 3:
            for n, m in zip(self.shapes[2], lengths):
                self.check(n, m, "incompatible output array size for np.dot(a, b, out)")
            self.out = self.arrays[2]
        else:
            self.out = allocated(self.context, self.builder, self.signature.return_type, lengths)
        some = self.builder.icmp_signed("!=", inner, self.number(0))
        for n in lengths:
            some = self.builder.and_(some, self.builder.icmp_signed("!=", n, self.number(0)))
        with self.builder.if_else(some, likely=True) as (full, hollow):
            with full:
                self.product(a, b)
            with hollow:
                if self.factors[1] == 0:
                    _cleared(self.builder, self.out)
        return self.context.get_dummy_value() if len(self.arrays) == 3 else self.out._getvalue()

    def product(self, a, b):
        if a.ndim == b.ndim == 2:
            self.matrices()
        elif a.ndim == 2:
            self.matrix_and_vector(0, 1, a.layout != "F")
        else:
            self.matrix_and_vector(1, 0, b.layout == "F")

    # calls of Numba's wrappers of BLAS, by their C signatures

    def inner_product(self, n):
        from numba.core import cgutils
        out = cgutils.alloca_once(self.builder, self.context.get_value_type(self.kinds[0].dtype))
        self.call("numba_xxdot", self.letter("\0"), n, self.data(0), self.data(1), self.address(out))
        return self.builder.load(out)

    def matrix_and_vector(self, matrix, vector, transposed):
        kind, shape = self.kinds[matrix], self.shapes[matrix]
        first, second = shape if kind.layout == "F" else reversed(shape)
        alpha, beta = map(self.constant, self.factors)
        self.call("numba_xxgemv", self.letter("t" if transposed else "n"), first, second, alpha,
                  self.data(matrix), self.stride(matrix), self.data(vector), beta, self.address(self.out.data))

    def matrices(self):
        """A product of matrices; if one is a row or a column, gemv, which reads each entry once."""
        (m, k), (_, n) = self.shapes[:2]
        one = self.number(1)
        with self.builder.if_else(self.builder.icmp_signed("==", n, one)) as (column, wide):
            with column:
                self.matrix_and_vector(0, 1, self.kinds[0].layout != "F")
            with wide, self.builder.if_else(self.builder.icmp_signed("==", m, one)) as (row, whole):
                with row:
                    self.matrix_and_vector(1, 0, self.kinds[1].layout == "F")
                with whole:
                    alpha, beta = map(self.constant, self.factors)
                    self.call("numba_xxgemm", self.turned(1), self.turned(0), n, m, k, alpha, self.data(1),
                              self.stride(1), self.data(0), self.stride(0), beta, self.address(self.out.data), n)

    def turned(self, which):
        return self.letter("t" if self.kinds[which].layout == "F" else "n")

    def stride(self, which):
        """The number of entries from the start of one row, or column, to the next."""
        from numba.core import cgutils
        kind = self.kinds[which]
        if kind.layout == "A":
            rows = cgutils.unpack_tuple(self.builder, self.arrays[which].strides)[0]
            return self.builder.sdiv(rows, self.arrays[which].itemsize)
        return self.shapes[which][1 if kind.layout == "C" else 0]

    def call(self, name, *values):
        from llvmlite import ir
        from numba.core import cgutils
        from numba.np.linalg import check_blas_return
        values = [self.letter(KINDS[str(self.kinds[0].dtype)]), *values]
        kind = ir.FunctionType(ir.IntType(32), [v.type for v in values])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        check_blas_return(self.context, self.builder, self.builder.call(function, values))

    # values

    def number(self, n):
        from numba import types
        return self.context.get_constant(types.intp, n)

    def letter(self, text):
        from llvmlite import ir
        return ir.Constant(ir.IntType(8), ord(text))

    def address(self, pointer):
        from numba.core import cgutils
        return self.builder.bitcast(pointer, cgutils.voidptr_t)

    def data(self, which):
        return self.address(self.arrays[which].data)

    def constant(self, value):
        from numba.np.linalg import make_constant_slot
        return self.address(make_constant_slot(self.context, self.builder, self.kinds[0].dtype, value))

    def check(self, n, m, message, wrong="!=", error=ValueError):
        with self.builder.if_then(self.builder.icmp_signed(wrong, n, m), likely=False):
            self.context.call_conv.return_user_exc(self.builder, error, (message,))
