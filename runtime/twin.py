# SPDX-License-Identifier: Apache-2.0
"""Kernels without a device: each block has one thread, and blocks run in sequence, the last one first.

It replaces `cuda` in an emitted module.  A kernel becomes a function with the thread's indices as further arguments,
compiled by Numba or run as plain Python.  The reversed order shows kernels that rely on an order of blocks.
"""
import ast
import functools
import inspect
import math
import sys
import textwrap
import warnings
from types import FunctionType

import numpy as np

ACROSS, DOWN = 3, 2                     # blocks along a grid's axes: few, and different numbers
BORROWED: list = [None]                 # a function that looks up SciPy's functions for compiled code
PLACES = {"threadIdx": "0", "blockDim": "1"}


def grid(*lengths):
    """Blocks of one thread each, the innermost along x.

    >>> grid(10), grid(2, 10)
    (((3,), (1,)), ((3, 2), (1, 1)))
    """
    counts = [max(1, min(int(n), most)) for n, most in zip(reversed(lengths), (ACROSS, DOWN, DOWN))]
    return tuple(counts), (1,) * len(counts)


def tile_grid(*lengths):
    return grid(*lengths)


def row_grid(count, length):
    """Blocks of one thread for rows."""
    return grid(count)


def row_blocks(count, length):
    return blocks(count)


def blocks(*lengths):
    return math.prod(grid(*lengths)[0])


def one_block(threads):
    """One block of one thread, however many threads are asked for."""
    return 1, 1


def column_grid(count, length):
    """Blocks of one thread for columns, along x."""
    return (max(int(count), 1), column_blocks(count, length)), (1, 1)


def column_blocks(count, length):
    return max(1, min(int(length), DOWN))


class Cuda:
    """compiled: whether Numba compiles kernels; observe(kernel): a function that takes its arguments before it runs."""

    def __init__(self, compiled=True, observe=None):
        self.compiled, self.observe = compiled, observe

    def jit(self, function=None, **options):
        if function is None:
            return functools.partial(self.jit, **options)
        if not options.get("device"):
            return Kernel(function, self.compiled, self.observe and self.observe(function))
        if not self.compiled:
            return function
        import numba
        return numba.njit(error_model="numpy")(function)


class Kernel:
    def __init__(self, function, compiled, before=None):
        self.function, self.compiled, self.made, self.before = function, compiled, None, before
        functools.update_wrapper(self, function)

    def __getitem__(self, config):
        blocks, threads = ((*(n if isinstance(n, tuple) else (n,)), 1, 1)[:3] for n in config[:2])
        if not {"grid", "gridsize", "blockDim"} & set(self.function.__code__.co_names):
            threads = (1, 1, 1)         # the work of one block, however many threads are asked for
        return functools.partial(self.run, *(a * b for a, b in zip(blocks, threads)))

    def __call__(self, *args):
        raise TypeError("a kernel has to be told how many blocks and threads there are: kernel[blocks, threads](...)")

    def run(self, x, y, z, *args):
        if self.before is not None:
            self.before(args)
        if self.made is None:
            self.made = built(self.function, self.compiled and not in_half(self.function, args))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for k in reversed(range(z)):
                for j in reversed(range(y)):
                    for i in reversed(range(x)):
                        self.made(i, j, k, x, y, z, *args)


def in_half(function, args):
    """Whether a kernel uses half precision, which Numba does not support on a processor."""
    return bool({"float16", "bfloat16", "short"} & {*function.__code__.co_names}) or any(
        str(getattr(a, "dtype", None)) in ("float16", "bfloat16") for a in args)


class Simulated:
    """A kernel of Numba's simulator, for NumPy arrays of any strides."""

    def __init__(self, kernel, array):
        self.kernel, self.array = kernel, array

    def __getitem__(self, config):
        launched = self.kernel[config]
        return lambda *args: launched(*[self.array(a) if isinstance(a, np.ndarray) else a for a in args])


class InKernel:
    """`cuda` for the runtime's functions in Numba's simulator: that of the running kernel.

    The simulator itself sets it in a function's module while a thread runs the function, but removes it when the first
    thread leaves; and two threads that ask for a shared array at the same time get two arrays.
    """

    def __getattr__(self, name):
        import numba.cuda
        from numba.cuda.simulator import kernel
        running = kernel._get_kernel_context()
        return getattr(numba.cuda if running is None else running, name)

    @property
    def shared(self):
        return self

    def array(self, shape, dtype):
        at = sys._getframe(1)
        asked = self.__getattr__("shared")._allocations
        return asked.setdefault((at.f_code.co_filename, at.f_lineno), np.empty(shape, dtype))


def built(function, compiled):
    """A kernel as a function of the indices of a block, the numbers of blocks, and the kernel's arguments."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    kernel = tree.body[0]
    kernel.decorator_list = []
    taken = {n.id for n in ast.walk(kernel) if isinstance(n, ast.Name)} | {a.arg for a in kernel.args.args}
    names = [f"{n}_" * (1 + (n in taken)) for n in ("at_x", "at_y", "at_z", "blocks_x", "blocks_y", "blocks_z")]
    kernel.args.args[:0] = [ast.arg(n) for n in names]
    InBlocks(names).visit(tree)
    space = function.__globals__ | inspect.getclosurevars(function).nonlocals
    exec(compile(ast.fix_missing_locations(tree), inspect.getfile(function), "exec"), space)
    made = space[kernel.name]
    if not compiled:
        return made
    import numba
    return numba.njit(error_model="numpy", fastmath={"contract"})(made)


class InBlocks(ast.NodeTransformer):
    def __init__(self, names):
        self.at, self.counts = names[:3], names[3:]

    def visit_Expr(self, node):
        self.generic_visit(node)
        call = node.value
        if not isinstance(call, ast.Call):
            return node
        text = ast.unparse(call.func)
        if text == "cuda.syncthreads":
            return ast.Pass()
        if text == "cuda.atomic.add":
            array, index, value = call.args
            return ast.AugAssign(ast.Subscript(array, index, ast.Store()), ast.Add(), value)
        if text == "column_sum":
            parts, column, value = call.args
            return ast.parse(f"if {ast.unparse(column)} < {ast.unparse(parts)}.shape[1]:\n    {ast.unparse(parts)}["
                             f"{self.at[1]}, {ast.unparse(column)}] = {ast.unparse(value)}").body[0]
        if text.startswith("block_") and len(call.args) == 2:
            (x, y, z), (across, down, _) = self.at, self.counts
            place = ast.parse(f"{x} + {across} * ({y} + {down} * {z})", mode="eval").body
            return ast.Assign([ast.Subscript(call.args[0], place, ast.Store())], call.args[1], lineno=0)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        text = ast.unparse(node.func)
        if text in ("cuda.grid", "cuda.gridsize"):
            names = (self.at if text == "cuda.grid" else self.counts)[:node.args[0].value]
            made = [ast.Name(n, ast.Load()) for n in names]
            return made[0] if len(made) == 1 else ast.Tuple(made, ast.Load())
        if text in ("cuda.local.array", "cuda.shared.array"):
            return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), "empty", ast.Load()), node.args, [])
        return node

    def visit_Attribute(self, node):
        self.generic_visit(node)
        text = ast.unparse(node)
        if not text.startswith("cuda.") or text.count(".") != 2:
            return node
        _, what, axis = text.split(".")
        if what in PLACES:
            return ast.Constant(int(PLACES[what]))
        if what in ("blockIdx", "gridDim"):
            names = self.at if what == "blockIdx" else self.counts
            return ast.Name(names["xyz".index(axis)], ast.Load())
        return node


@functools.cache
def _space(compiled):
    return {}


def function(name, plain, compiled):
    """A function of the runtime for twins of kernels."""
    if name.startswith("block_") or name == "column_sum":
        return None                     # a twin's blocks have one thread, whose value is that of the block
    if name in ("short", "single"):
        return plain[name]              # only plain Python calls these
    if name.startswith("scipy_") and compiled:
        return BORROWED[0](name)
    space = _space(compiled)
    if not space:
        space.update({"np": np, "math": math})
        for n, f in plain.items():
            space[n] = FunctionType(f.__code__, space, n, f.__defaults__) if isinstance(f, FunctionType) else f
        if compiled:
            import numba
            plain_ones = {n: f for n, f in space.items() if isinstance(f, FunctionType)}
            space.update({n: numba.njit(error_model="numpy")(f) for n, f in plain_ones.items()})
    return space[name]                  # if Numba cannot compile it, the error is raised at the call
