# SPDX-License-Identifier: Apache-2.0
"""Functions that kernels call, for Numba's CUDA and for its simulator.

Elementary functions are the device's own (libdevice, with errors up to 2 units in the last place; powers 4, the normal
distribution 5); others are the processor's, compiled for threads.  Sums over a block are pairwise, first within each
warp by shuffles and then over the warps: the order is the same on every machine, and the block synchronises once.  With
numba-cuda-mlir, whose shuffles of 64-bit numbers keep only 32 bits, and in the simulator, which has no shuffles, they
use shared memory.

Source: NVIDIA's libdevice User's Guide; CUDA C++ Programming Guide, warp shuffle functions.
"""
import ast
import builtins
import cmath
import dis
import functools
import importlib
import inspect
import math
import re
import textwrap
from types import FunctionType

import numpy as np

from gradscribe.runtime import indices, ranks
from gradscribe.runtime.device_functions import PLAIN, ROWS, UFUNCS

THREADS = 256
SIMULATED = 32                          # threads of a block in Numba's simulator, where each is a Python thread
SHUFFLED = {"cuda"}                     # back ends with shuffles
OF_MATH = {"arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2", "arccosh": "acosh",
           "arcsinh": "asinh", "arctanh": "atanh", "gammaln": "lgamma", "fabs": "fabs", "power": "pow"} | {
    n: n for n in """sqrt exp expm1 log log10 log1p log2 sin cos tan sinh cosh tanh erf erfc hypot copysign isnan isinf
    isfinite fmod ldexp""".split()}
OF_LIBDEVICE = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "exp2": "exp2", "cbrt": "cbrt",
                "ndtr": "normcdf", "nextafter": "nextafter"}
OF_CMATH = {"exp": "exp", "log": "log", "sqrt": "sqrt", "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh",
            "cosh": "cosh", "tanh": "tanh", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh",
            "arccosh": "acosh", "arctanh": "atanh", "log10": "log10"}
OF_TEXT = {                             # functions expressed by those above
    "complex_conj": "x.conjugate()", "complex_conjugate": "x.conjugate()", "complex_absolute": "abs(x)",
    "complex_square": "x * x", "complex_reciprocal": "1 / x", "complex_power": "x ** y", "complex_isnan": "x != x",
    "complex_isfinite": "math.isfinite(x.real) and math.isfinite(x.imag)", "conj": "x", "conjugate": "x",
    "complex_isinf": "math.isinf(x.real) or math.isinf(x.imag)", "absolute": "abs(x)", "reciprocal": "1 / x",
    "signbit": "math.copysign(1.0, x) < 0", "remainder": "x % y", "floor_divide": "x // y",
    "float_power": "math.pow(x, y)", "negative": "-x", "positive": "x", "degrees": "x * (180 / math.pi)",
    "logaddexp2": "x if x == y and x - y != 0 else max(x, y) + math.log1p(math.pow(2.0, -abs(x - y))) / math.log(2.0)",
    "logaddexp": "x if x == y and x - y != 0 else max(x, y) + math.log1p(math.exp(-abs(x - y)))",
}
OF_MLIR = {                             # numba-cuda-mlir 0.6 declares libdevice's floor twice if there is a `//` too
    "floor": "np.floor(x)", "ceil": "-np.floor(-x)", "trunc": "math.copysign(np.floor(abs(x)), x)"}
OF_SCIPY = {                            # functions of scipy.special in kernels, in double precision
    "erf": "math.erf(x)", "erfc": "math.erfc(x)", "gammaln": "math.lgamma(x)", "gamma": "libdevice.tgamma(x)",
    "psi": "psi(x)", "ndtr": "0.5 * math.erfc(-0.7071067811865476 * x)", "ndtri": "libdevice.normcdfinv(x)",
    "log_ndtr": "math.log(0.5 * libdevice.erfcx(-0.7071067811865476 * x)) - 0.5 * x * x if x < -1.0 else "
                "math.log1p(-0.5 * math.erfc(0.7071067811865476 * x))",
    "xlogy": "x * math.log(y) if x != 0 or y != y else x * 1.0",
    "xlog1py": "x * math.log1p(y) if x != 0 or y != y else x * 1.0",
    "boxcox": "math.log(x) if abs(y) < 1e-19 else math.expm1(y * math.log(x)) / y",
    "boxcox1p": "math.log1p(x) if abs(y) < 1e-19 else math.expm1(y * math.log1p(x)) / y"} | {
    n: f"libdevice.{n}(x)" for n in ("erfinv", "erfcinv", "erfcx", "j0", "j1", "y0", "y1")}
_spaces: dict = {}


def function(name: str, cuda, backend: str):
    """The function that a kernel calls by a name."""
    space = _spaces.setdefault(backend, {"np": np, "math": math, "cuda": cuda, "THREADS": threads(backend)})
    if name not in space:
        made = _made(name, cuda, backend, space)
        space[name] = made
    return space[name]


def threads(backend):
    """The number of threads of a block."""
    return SIMULATED if backend == "simulator" else THREADS


def _made(name, cuda, backend, space):
    together = _of_threads(name, cuda, backend)
    if together is not None:
        return together
    plain = PLAIN[name]
    if backend == "simulator":
        return plain
    if name.startswith("scipy_"):
        return _of_scipy(name, cuda, backend)
    if name in vars(ranks):
        return _of_bits(name, plain, cuda, space, backend)
    text = _formula(name, plain, backend)
    if text is not None:
        return _text(text, name, cuda, backend)
    short = name.removesuffix("_32")        # Numba selects libdevice's function by the precision of the arguments
    if short in OF_LIBDEVICE:
        return _by_type(name, OF_LIBDEVICE[short], _count(plain), cuda, backend)
    if not isinstance(plain, FunctionType):
        raise AttributeError(f"kernels have no {name}")
    return _for_threads(name, plain, cuda, backend, space)


def _of_threads(name, cuda, backend):
    """A function for values that threads share, or of bfloat16; None for others."""
    # numba-cuda-mlir loses a shared array of a function unless the function is inlined
    shared = cuda.jit(device=True, **{"inline": "always"} if backend == "mlir" else {})
    if name in ROWS:
        of, dtype = ROWS[name]
        return shared(_filled(OF_ROW, name, of, cuda, backend, dtype))
    if name in ("below", "of_first"):
        return _shuffle(name, cuda, backend)
    if name == "column_sum":
        return shared(_filled(OF_COLUMN, name, "sum", cuda, backend))
    if name in OF_BFLOAT16 and backend != "simulator":
        return _of_bfloat16(name, cuda, backend)
    if name.startswith("block_"):
        return shared(_of_block(name.removeprefix("block_"), cuda, backend))
    if name.endswith("_of") and name.removesuffix("_of") in STEPS:
        return shared(_of_parts(name.removesuffix("_of"), cuda, backend))
    return None


def _formula(name, plain, backend):
    """The text of a function that is one expression; None for others."""
    short, of_complex = name.removesuffix("_32"), name.removeprefix("complex_")
    letters = ", ".join("xy"[:_count(plain)]) if callable(plain) else ""
    if name.startswith("complex_") and of_complex in OF_CMATH:
        return f"def {name}({letters}):\n    return cmath.{OF_CMATH[of_complex]}(x)"
    if short in OF_MATH:
        return f"def {name}({letters}):\n    return math.{OF_MATH[short]}({letters})"
    if name in OF_TEXT:
        return f"def {name}({letters}):\n    return {OF_TEXT[name]}"
    if backend == "mlir" and name in OF_MLIR:
        return f"def {name}(x):\n    return {OF_MLIR[name]}"
    return None


def _for_threads(name, plain, cuda, backend, space):
    """A plain function of the runtime, compiled for threads after the functions that it calls."""
    of_numpy = ufuncs_in(plain)
    found = {i.argval for i in dis.get_instructions(plain) if i.opname == "LOAD_GLOBAL"} | of_numpy
    for called in found:
        if called in PLAIN and called not in space and (not hasattr(builtins, called) or called in of_numpy):
            value = PLAIN[called]
            space[called] = function(called, cuda, backend) if callable(value) and called not in ("np", "math") \
                else value
    return cuda.jit(device=True)(as_taken(FunctionType(plain.__code__, space, name, plain.__defaults__), backend,
                                          of_numpy))


def ufuncs_in(plain):
    """The scalar functions of NumPy that a function of the runtime calls as `np.name`."""
    steps = list(dis.get_instructions(plain))
    return {b.argval for a, b in zip(steps, steps[1:]) if a.opname == "LOAD_GLOBAL" and a.argval == "np"
            and b.argval in UFUNCS}


def _count(plain):
    return plain.nin if isinstance(plain, np.ufunc) else plain.__code__.co_argcount


def _text(text, name, cuda, backend):
    space = {"math": math, "cmath": cmath, "np": np}
    exec(as_read(text, backend), space)
    return cuda.jit(device=True)(space[name])


def as_read(text, backend):
    """A function's text with Python's semantics on a back end: numba-cuda-mlir 0.6 evaluates NaN != NaN as false.

    >>> print(as_read("def f(x):\\n    return x != x", "mlir"))
    def f(x):
        return not x == x
    """
    return text if backend != "mlir" or "!=" not in text else ast.unparse(_Taken(backend).visit(ast.parse(text)))


def as_taken(function, backend, of_numpy=(), kernel=False):
    """A function for a back end's compiler with Python's semantics (as_read); line numbers are kept.

    of_numpy: names that the function takes from NumPy, to be replaced by a kernel's own functions; kernel: make its
    indices unsigned where possible (indices.py).
    """
    meant = backend != "mlir" or not any("!=" in i.argrepr for i in dis.get_instructions(function))
    if meant and not kernel and not of_numpy:
        return function
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    tree.body[0].decorator_list = []
    if kernel:
        indices.changed(tree)
    code = compile(ast.increment_lineno(ast.fix_missing_locations(_Taken(backend, of_numpy).visit(tree)), first - 1),
                   inspect.getfile(function), "exec")
    space = function.__globals__ | inspect.getclosurevars(function).nonlocals | {"np": np}
    exec(code, space)
    made = space[function.__name__]
    made.__defaults__ = function.__defaults__
    return made


class _Taken(ast.NodeTransformer):
    def __init__(self, backend, of_numpy=()):
        self.backend, self.of_numpy = backend, of_numpy

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if node.attr in self.of_numpy and getattr(node.value, "id", None) == "np":
            return ast.copy_location(ast.Name(node.attr, node.ctx), node)
        return node

    def visit_Compare(self, node):
        self.generic_visit(node)
        if self.backend != "mlir" or not any(isinstance(op, ast.NotEq) for op in node.ops):
            return node
        sides = [node.left, *node.comparators]
        pairs = [ast.UnaryOp(ast.Not(), ast.Compare(a, [ast.Eq()], [b])) if isinstance(op, ast.NotEq) else
                 ast.Compare(a, [op], [b]) for a, op, b in zip(sides, node.ops, sides[1:])]
        return ast.copy_location(pairs[0] if len(pairs) == 1 else ast.BoolOp(ast.And(), pairs), node)


def _of_bits(name, plain, cuda, space, backend):
    """A function of ranks.py, with libdevice's conversions to bits, since numba-cuda-mlir has no views of scalars."""
    libdevice = cuda.libdevice if backend == "mlir" else importlib.import_module("numba.cuda.libdevice")
    text = textwrap.dedent(inspect.getsource(plain))
    for form, function in (("np.float64(x).view(np.int64)", "double_as_longlong(x)"),
                           ("np.float32(x).view(np.int32)", "float_as_int(x)")):
        text = text.replace(form, f"libdevice.{function}")
    text = re.sub(r"np\.int64\((.*)\)\.view\(np\.float64\)", r"libdevice.longlong_as_double(\1)", text)
    text = re.sub(r"(np\.int32\(.*\))\.view\(np\.float32\)", r"libdevice.int_as_float(\1)", text)
    made = {"libdevice": libdevice, "np": np}
    exec(as_read(text, backend), made)
    return cuda.jit(device=True)(made[name])


OF_BFLOAT16 = {
    "single": "    return libdevice.int_as_float(np.int32(x) << 16)",
    "short": """
    bits = libdevice.float_as_int(np.float32(x))
    if bits & 0x7FFFFFFF > 0x7F800000:      # no number
        return np.uint16(0x7FC0)
    return np.uint16((bits + 0x7FFF + ((bits >> 16) & 1) >> 16) & 0xFFFF)"""}


def _of_bfloat16(name, cuda, backend):
    """A conversion from or to bfloat16, the upper half of a number in single precision, rounded to nearest."""
    libdevice = cuda.libdevice if backend == "mlir" else importlib.import_module("numba.cuda.libdevice")
    space = {"libdevice": libdevice, "np": np}
    exec(f"def {name}(x):\n{OF_BFLOAT16[name]}", space)
    return cuda.jit(device=True)(space[name])


def _of_scipy(name, cuda, backend):
    """A function of scipy.special, with its arguments converted to double."""
    text = OF_SCIPY[name.removeprefix("scipy_")]
    given = ", ".join(n for n in "xy" if re.search(rf"\b{n}\b", text))
    space = {"math": math, "libdevice": cuda.libdevice if backend == "mlir" else importlib.import_module(
        "numba.cuda.libdevice")}
    if "psi(" in text:
        space["psi"] = function("psi", cuda, backend)
    exec(as_read(f"def of_doubles({given}):\n    return {text}", backend), space)
    space["of_doubles"] = cuda.jit(device=True)(space["of_doubles"])
    exec(f"def {name}({given}):\n    return of_doubles({', '.join(f'float({n})' for n in given.split(', '))})", space)
    return cuda.jit(device=True)(space[name])


def _by_type(name, of_libdevice, count, cuda, backend):
    """A function of libdevice, in the precision of its arguments."""
    package = "numba_cuda_mlir" if backend == "mlir" else "numba"
    types = importlib.import_module(f"{package}.types")
    if backend == "mlir":
        extending, libdevice = importlib.import_module("numba_cuda_mlir.extending"), cuda.libdevice
        overload = functools.partial(extending.overload, typing_registry=extending.typing_registry)
    else:
        overload = importlib.import_module("numba.cuda.extending").overload
        libdevice = importlib.import_module("numba.cuda.libdevice")

    def given(*args):
        raise NotImplementedError
    space = {"single": getattr(libdevice, f"{of_libdevice}f"), "double": getattr(libdevice, of_libdevice)}
    letters = ", ".join("xyz"[:count])
    exec(f"def stub({letters}):\n    raise NotImplementedError\n"
         f"of_single = lambda {letters}: single({letters})\nof_double = lambda {letters}: double({letters})\n"
         f"of_whole = lambda {letters}: double({', '.join(f'float({n})' for n in letters.split(', '))})", space)

    def chosen(*args):
        if all(a == types.float32 for a in args):
            return space["of_single"]
        return space["of_double"] if all(a == types.float64 for a in args) else space["of_whole"]
    exec(f"def form({letters}):\n    return chosen({letters})", space | {"chosen": chosen}, space)
    space["form"].__globals__.update(chosen=chosen)
    overload(space["stub"])(space["form"])
    space["stub"].__name__ = name
    return space["stub"]


STEPS = {"sum": "{a} + {b}", "prod": "{a} * {b}"} | {n: n + "({a}, {b})" for n in (
    "max", "min", "maximum", "minimum", "fmax", "fmin")}
BY_SHUFFLES = """
    shared = cuda.shared.array(32, {kind})
    by = 16
    while by > 0:
        beyond = below(value, by)
        if k + by < count:
            value = {step}
        by //= 2
    lane = k % 32
    if lane == 0:
        shared[k // 32] = value
    cuda.syncthreads()
    value = shared[lane] if lane * 32 < count else shared[0]
    by = 16
    while by > 0:
        beyond = below(value, by)
        if (lane + by) * 32 < count:
            value = {step}
        by //= 2
"""
BY_SHARED = """
    shared = cuda.shared.array(THREADS, {kind})
    shared[k] = value
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if k < half and k + half < count:
            shared[k] = {step}
        cuda.syncthreads()
        half //= 2
    value = shared[0]
"""
THREAD = "cuda.threadIdx.x + cuda.blockDim.x * (cuda.threadIdx.y + cuda.blockDim.y * cuda.threadIdx.z)"
OF_BLOCK = f"""
def block_{{name}}(parts, value):
    k = {THREAD}
    count = THREADS
    {{halves}}
    if k == 0:
        at = cuda.blockIdx.x + cuda.gridDim.x * (cuda.blockIdx.y + cuda.gridDim.y * cuda.blockIdx.z)
        parts[at] = value
    cuda.syncthreads()
"""
OF_COLUMN = """
def column_sum(parts, column, value):
    shared = cuda.shared.array(THREADS, parts.dtype)
    k = cuda.threadIdx.x + cuda.blockDim.x * cuda.threadIdx.y
    shared[k] = value
    cuda.syncthreads()
    half = cuda.blockDim.y // 2
    while half > 0:
        if cuda.threadIdx.y < half:
            shared[k] += shared[k + half * cuda.blockDim.x]
        cuda.syncthreads()
        half //= 2
    if cuda.threadIdx.y == 0 and column < parts.shape[1]:
        parts[cuda.blockIdx.y, column] = shared[k]
    cuda.syncthreads()
"""
OF_PARTS = """
def {name}_of(parts):
    k = cuda.threadIdx.x
    count = min(parts.size, THREADS)
    value = parts[min(k, count - 1)]
    for j in range(k + THREADS, parts.size, THREADS):
        value = {longer}
    {halves}
    cuda.syncthreads()
    return value
"""
OF_ROW = """
def row_{name}_{dtype}(value):
    k = cuda.threadIdx.x
    count = cuda.blockDim.x
    {halves}
    value = {all}
    cuda.syncthreads()
    return value
"""


def _shuffle(name, cuda, backend):
    """below(value, by): the value of the thread `by` further on in the warp; of_first(value): that of its first thread.

    Numba's simulator has no warps; for tests, its threads exchange values by shared memory.
    """
    if backend == "simulator":
        text = BELOW if name == "below" else FIRST
        space = {"cuda": cuda, "THREADS": threads(backend), "np": np}
        if name == "of_first":
            space["below"] = function("below", cuda, backend)
        exec(compile(text, f"<{name}>", "exec"), space)
        return cuda.jit(device=True)(space[name])
    from numba import types
    from numba.cuda.extending import overload
    call = "cuda.shfl_down_sync(0xffffffff, {}, by)" if name == "below" else "cuda.shfl_sync(0xffffffff, {}, 0)"
    given = "value, by" if name == "below" else "value"
    space = {"cuda": cuda, "np": np}
    exec(f"def of_number({given}):\n    return {call.format('value')}\n"
         f"def of_complex({given}):\n    return complex({call.format('value.real')}, {call.format('value.imag')})\n"
         f"def of_short({given}):\n    return {call.format('np.int32(value)')}\n"
         f"def {name}({given}):\n    raise NotImplementedError\n", space)

    def chosen(value):
        if isinstance(value, types.Complex):
            return space["of_complex"]
        return space["of_number"] if getattr(value, "bitwidth", 8) >= 32 and not isinstance(value, types.Boolean) \
            else space["of_short"]
    exec(f"def form({given}):\n    return chosen(value)\n", {"chosen": chosen}, space)
    overload(space[name], target="cuda")(space["form"])
    return space[name]


BELOW = f"""
def below(value, by):
    if isinstance(value, int | np.integer):
        shared = cuda.shared.array(THREADS, np.int64)
    else:
        shared = cuda.shared.array(THREADS, np.complex128)
    k = {THREAD}
    shared[k] = value
    cuda.syncthreads()
    beyond = shared[k + by] if k % 32 + by < 32 else shared[k]
    cuda.syncthreads()
    return type(value)(beyond if np.iscomplexobj(value) else beyond.real)
"""
FIRST = """
def of_first(value):
    return below(value, -(cuda.threadIdx.x % 32))
"""


def _of_block(name, cuda, backend):
    return _filled(OF_BLOCK, f"block_{name}", name, cuda, backend)


def _of_parts(name, cuda, backend):
    return _filled(OF_PARTS, f"{name}_of", name, cuda, backend)


def _filled(form, made, name, cuda, backend, dtype=None):
    shuffled = backend in SHUFFLED
    first, second = ("value", "beyond") if shuffled else ("shared[k]", "shared[k + half]")
    space = {"cuda": cuda, "THREADS": threads(backend), "np": np}
    if name in PLAIN:
        space[name] = function(name, cuda, backend)
    if shuffled:
        space |= {n: function(n, cuda, backend) for n in ("below", "of_first")}
    halves = (BY_SHUFFLES if shuffled else BY_SHARED).format(step=STEPS[name].format(a=first, b=second), kind=(
        f"np.{dtype}" if dtype else "parts.dtype")).strip()
    text = form.format(name=name, halves=halves, longer=STEPS[name].format(a="value", b="parts[j]"), dtype=dtype,
                       all="of_first(value)" if shuffled else "value")
    exec(compile(text, f"<{made}>", "exec"), space)         # the simulator identifies shared arrays by file and line
    return space[made]
