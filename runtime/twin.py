# SPDX-License-Identifier: Apache-2.0
"""Kernels without a device: each block is one thread, and blocks run one after the other, the last one first.

What `cuda` is to an emitted module.  A kernel's text is taken with each thread's place in it as arguments; compiled by
Numba, or as plain Python.  A kernel whose passes want an order that it does not keep gives other numbers here.
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

ACROSS, DOWN = 3, 2                     # blocks of a grid's axes: few, and not as many along each
BORROWED: list = [None]                 # what gives a function of SciPy's as compiled code calls it
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
    """Blocks of one thread that take rows."""
    return grid(count)


def row_blocks(count, length):
    return blocks(count)


def blocks(*lengths):
    return math.prod(grid(*lengths)[0])


def one_block(threads):
    """One block: its work is done once, whatever its threads are."""
    return 1, 1


def column_grid(count, length):
    """Blocks of one thread, one a column along x."""
    return (max(int(count), 1), column_blocks(count, length)), (1, 1)


def column_blocks(count, length):
    return max(1, min(int(length), DOWN))


class Cuda:
    """compiled: whether Numba compiles kernels."""

    def __init__(self, compiled=True):
        self.compiled = compiled

    def jit(self, function=None, **options):
        if function is None:
            return functools.partial(self.jit, **options)
        if not options.get("device"):
            return Kernel(function, self.compiled)
        if not self.compiled:
            return function
        import numba
        return numba.njit(error_model="numpy")(function)


class Kernel:
    def __init__(self, function, compiled):
        self.function, self.compiled, self.made = function, compiled, None
        functools.update_wrapper(self, function)

    def __getitem__(self, config):
        blocks, threads = ((*(n if isinstance(n, tuple) else (n,)), 1, 1)[:3] for n in config[:2])
        if not {"grid", "gridsize", "blockDim"} & set(self.function.__code__.co_names):
            threads = (1, 1, 1)         # one block's work, whatever its threads are
        return functools.partial(self.run, *(a * b for a, b in zip(blocks, threads)))

    def __call__(self, *args):
        raise TypeError("a kernel has to be told how many blocks and threads there are: kernel[blocks, threads](...)")

    def run(self, x, y, z, *args):
        if self.made is None:
            self.made = built(self.function, self.compiled and not in_half(self.function, args))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for k in reversed(range(z)):
                for j in reversed(range(y)):
                    for i in reversed(range(x)):
                        self.made(i, j, k, x, y, z, *args)


def in_half(function, args):
    """Whether a kernel has to do with half precision, which Numba has not on a processor."""
    return bool({"float16", "bfloat16", "short"} & {*function.__code__.co_names}) or any(
        str(getattr(a, "dtype", None)) in ("float16", "bfloat16") for a in args)


class Simulated:
    """A kernel of Numba's simulator, over NumPy's arrays of any strides."""

    def __init__(self, kernel, array):
        self.kernel, self.array = kernel, array

    def __getitem__(self, config):
        launched = self.kernel[config]
        return lambda *args: launched(*[self.array(a) if isinstance(a, np.ndarray) else a for a in args])


class InKernel:
    """What the runtime's functions for kernels call `cuda` in Numba's simulator: that of the kernel which runs.

    The simulator itself puts it into a function's module while a thread is in it, and takes it out as the first thread
    leaves; and it gives two threads that ask at once for a shared array an array each.
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
    """A kernel as a function of the place of a block, the numbers of blocks, and the kernel's arguments."""
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
    """A function of the runtime as twins of kernels call it."""
    if name.startswith("block_") or name == "column_sum":
        return None                     # a twin's blocks are of one thread: what it has is the block's
    if name in ("short", "single"):
        return plain[name]              # who calls these is plain Python
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
    return space[name]                  # one that Numba does not compile is told so where it is called
