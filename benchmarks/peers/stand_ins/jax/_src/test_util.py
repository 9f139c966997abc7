"""The base class of JAX's tests, their random arrays, and derivatives against central differences.

Bounds and steps are JAX's, for double and for single precision.
"""
import contextlib
import functools
import io
import math
import re
import textwrap
import unittest
import warnings
import zlib

import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

import gradscribe as gs
from gradscribe.tree_util import tree_leaves, tree_map
from jax.inside import Absent, Inside

CASES = 10                              # of each product of parameters, drawn at random
TOLERANCE = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "float64": 1e-15, "complex64": 1e-6,
             "complex128": 1e-15}
GRADIENT = {"float16": 1e-2, "bfloat16": 1e-1, "float32": 2e-3, "float64": 1e-5, "complex64": 1e-3, "complex128": 1e-5}
default_gradient_tolerance = {np.dtype(getattr(ml_dtypes, name, None) or name): bound
                              for name, bound in GRADIENT.items()}
JaxTestLoader = absltest.TestLoader


class _Compiled(gs.function):
    _name = "jit"


JIT_IMPLEMENTATION = (_Compiled,)


def _dtype(x):
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def tolerance(dtype, given=None):
    if given is not None and not isinstance(given, dict):
        return given
    named = {np.dtype(key): bound for key, bound in (given or {}).items()}
    return named.get(np.dtype(dtype), TOLERANCE.get(np.dtype(dtype).name, 0))


def _compare(a, b, atol, rtol, message=""):
    wide = [x.astype(np.float32) if x.dtype.kind == "V" and x.dtype.names is None else x
            for x in (np.asarray(a), np.asarray(b))]
    bounds = {name: bound for name, bound in (("atol", atol), ("rtol", rtol)) if bound}
    np.testing.assert_allclose(*wide, **bounds, err_msg=message)


def _close(a, b, atol, rtol, message):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, f"shapes {a.shape} and {b.shape}"
    atol = max(tolerance(a.dtype, atol), tolerance(b.dtype, atol)) * a.size
    rtol = max(tolerance(a.dtype, rtol), tolerance(b.dtype, rtol)) * b.size
    _compare(a, b, atol, rtol, message)


def check_close(xs, ys, atol=None, rtol=None, err_msg=""):
    tree_map(lambda a, b: _close(a, b, atol, rtol, err_msg), xs, ys)


def check_eq(xs, ys, err_msg=""):
    tree_map(lambda a, b: np.testing.assert_array_equal(a, b, err_msg=err_msg), xs, ys)


def _check_dtypes_match(xs, ys):
    def same(x, y):
        assert _dtype(x) == _dtype(y), f"{_dtype(x)} is not {_dtype(y)}"
    tree_map(same, xs, ys)


# ---- derivatives

def _gradient_bound(given):
    if given is None or isinstance(given, dict):
        return default_gradient_tolerance | {np.dtype(key): bound for key, bound in (given or {}).items()}
    return given


def _like(rng, x):
    dtype = _dtype(x)
    made = np.asarray(rng.standard_normal(np.shape(x)), dtype)
    if dtype.kind == "c":
        made = made + np.asarray(1j * rng.standard_normal(np.shape(x)), dtype)
    return made.item() if isinstance(x, (int, float, complex)) and not isinstance(x, np.generic) else made[()]


def _moved(xs, vs, step):
    def moved(x, v):
        made = np.asarray(np.add(x, np.multiply(v, np.asarray(step, _dtype(v)))), _dtype(x))
        return made.item() if isinstance(x, (int, float, complex)) and not isinstance(x, np.generic) else made[()]
    return tree_map(moved, xs, vs)


def _difference(f, primals, tangents, step):
    above, below = f(*_moved(primals, tangents, step)), f(*_moved(primals, tangents, -step))

    def quotient(a, b):
        with np.errstate(invalid="ignore"):
            change = np.where(np.equal(a, b), np.zeros((), _dtype(a)), np.subtract(a, b, dtype=_dtype(a)))
        return np.asarray(change * np.asarray(0.5 / step, change.dtype), change.dtype)
    return tree_map(quotient, above, below)


def _product(xs, ys):
    return sum(np.real(np.dot(np.conj(np.ravel(x)), np.ravel(y)))
               for x, y in zip(tree_leaves(xs), tree_leaves(ys), strict=True))


STEP = 1e-4


def check_jvp(f, f_jvp, args, atol=None, rtol=None, eps=STEP, err_msg=""):
    atol, rtol = _gradient_bound(atol), _gradient_bound(rtol)
    tangents = tree_map(functools.partial(_like, np.random.RandomState(0)), args)
    value, tangent = f_jvp(args, tangents)
    _check_dtypes_match(value, tangent)
    expected = f(*args)
    _check_dtypes_match(value, expected)
    check_close(value, expected, atol, rtol, f"{err_msg} primal")
    check_close(tangent, _difference(f, args, tangents, eps or STEP), atol, rtol, f"{err_msg} tangent")


def check_vjp(f, f_vjp, args, atol=None, rtol=None, eps=STEP, err_msg=""):
    atol, rtol, rng = _gradient_bound(atol), _gradient_bound(rtol), np.random.RandomState(0)
    value, pull = f_vjp(*args)
    check_close(value, f(*args), atol, rtol, f"{err_msg} primal")
    tangents = tree_map(functools.partial(_like, rng), args)
    moved = _difference(f, args, tangents, eps or STEP)
    cotangent = tree_map(functools.partial(_like, rng), value)
    adjoints = pull(tree_map(np.conj, cotangent))
    check_close(_product(tangents, tree_map(np.conj, adjoints)), _product(moved, cotangent), atol, rtol,
                f"{err_msg} cotangent projection")


def check_grads(f, args, order, modes=("fwd", "rev"), atol=None, rtol=None, eps=None):
    """Derivatives of f up to an order, with respect to all its arguments, in each mode."""
    args, step = tuple(args), eps or STEP
    modes = (modes,) if isinstance(modes, str) else modes

    def check(f, args, order, message):
        if "fwd" in modes:
            check_jvp(f, lambda x, v: gs.jvp(f, x, v), args, atol, rtol, step, f"{message} jvp")
            if order > 1:
                check(lambda x, v: gs.jvp(f, x, v), (args, args), order - 1, f"{message} jvp")
        if "rev" in modes:
            check_vjp(f, lambda *x: gs.vjp(f, *x), args, atol, rtol, step, f"{message} vjp")
            if order > 1:
                def twice(*args):
                    value, pull = gs.vjp(f, *args)
                    return pull(value)
                check(twice, args, order - 1, f"{message} vjp")
    check(f, args, order, "")


# ---- parameters and random arrays

def sample_product_testcases(*groups, **grid):
    axes = [list(group) for group in groups] + [[{name: value} for value in values] for name, values in grid.items()]
    count = math.prod(map(len, axes))
    cases = []
    for number in np.random.RandomState(42).choice(count, size=min(count, CASES), replace=False):
        case = {}
        for axis in axes:
            number, place = divmod(int(number), len(axis))
            case |= axis[place]
        cases.append(case)
    return cases


def sample_product(*groups, **grid):
    return parameterized.parameters(*sample_product_testcases(*groups, **grid))


class _Shape:
    def __len__(self):
        return 0

    def __getitem__(self, place):
        raise IndexError(place)


NUMPY_SCALAR_SHAPE, PYTHON_SCALAR_SHAPE = _Shape(), _Shape()


def _dims(shape):
    return () if isinstance(shape, _Shape) else (shape,) if np.ndim(shape) == 0 else tuple(shape)


def _random(draw, shape, dtype, scale=1.0, post=lambda x: x):
    dtype = np.dtype(dtype)

    def drawn():
        numbers = scale * np.asarray(draw(*_dims(shape)))
        return np.asarray(abs(numbers) if dtype.kind == "u" else numbers).astype(dtype)
    made = np.asarray(post(drawn() + 1j * drawn() if dtype.kind == "c" else drawn()), dtype)
    return made[()] if shape is NUMPY_SCALAR_SHAPE else made.item() if shape is PYTHON_SCALAR_SHAPE else made


def rand_default(rng, scale=3):
    return functools.partial(_random, rng.randn, scale=scale)


def rand_nonzero(rng):
    return functools.partial(_random, rng.randn, scale=3, post=lambda x: np.where(x == 0, np.ones((), x.dtype), x))


def rand_positive(rng):
    return functools.partial(_random, rng.rand, scale=2, post=lambda x: x + 1)


def rand_small(rng):
    return functools.partial(_random, rng.randn, scale=1e-3)


def rand_uniform(rng, low=0.0, high=1.0):
    return functools.partial(_random, rng.rand, post=lambda x: x * (high - low) + low)


def rand_some_nan(rng):
    return functools.partial(_random, rng.randn, scale=3, post=lambda x: np.where(rng.rand(*x.shape) < 0.1, np.nan, x))


def rand_int(rng, low=0, high=None):
    return lambda shape, dtype: rng.randint(low, low + 100 if high is None else high, size=shape, dtype=dtype)


def rand_unique_int(rng, high=None):
    return lambda shape, dtype: rng.choice(np.arange(high or np.prod(shape), dtype=dtype), size=shape, replace=False)


class _Dtypes:
    floating, integer = [np.float32, np.float64], [np.int32, np.int64]
    unsigned, complex, boolean = [np.uint32, np.uint64], [np.complex64, np.complex128], [np.bool_]
    all_floating = [ml_dtypes.bfloat16, np.float16, np.float32, np.float64]
    all_integer = [np.int8, np.int16, np.int32, np.int64]
    all_unsigned = [np.uint8, np.uint16, np.uint32, np.uint64]
    custom_floats = [ml_dtypes.bfloat16]
    inexact, all_inexact = floating + complex, all_floating + complex
    numeric = floating + integer + unsigned + complex
    all = all_floating + all_integer + all_unsigned + complex + boolean

    def supported(self, dtypes):
        return [dtype for dtype in dtypes if dtype in set(self.all)]


dtypes = _Dtypes()


def format_shape_dtype_string(shape, dtype):
    return f"{np.dtype(dtype).name}[{','.join(map(str, _dims(shape)))}]"


# ---- where and how

def device_under_test():
    return "cpu"


def test_device_matches(kinds):
    return "cpu" in kinds


test_device_matches.__test__ = False


def _no(*args):
    return False


is_device_rocm = is_device_cuda = is_device_tpu = is_cuda_compute_capability_at_least = is_cuda_version_at_least = _no


def skip_on_devices(*kinds, skip_reason=None):
    return unittest.skip("not for the processor") if "cpu" in kinds else lambda test: test


def run_on_devices(*kinds, skip_reason=None):
    return (lambda test: test) if "cpu" in kinds else unittest.skip("not for the processor")


def _same(*args, **kwargs):
    return lambda test: test


with_config = skip_on_flag = thread_unsafe_test = thread_unsafe_test_class = _same


def device_supports_buffer_donation():
    return unittest.skip("buffers are never given away")


@contextlib.contextmanager
def ignore_warning(**options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", **options)
        yield


@contextlib.contextmanager
def strict_promotion_if_dtypes_match(dtypes):
    yield


def promote_like_jnp(fun, inexact=False):
    """NumPy's promotion is what is compared with."""
    return fun


def check_raises(thunk, kind, message):
    try:
        thunk()
    except kind as error:
        if not str(error).startswith(message):
            raise AssertionError(f'"{message}" does not match "{error}"') from error
    else:
        raise AssertionError(f"no {kind.__name__}")


def check_raises_regexp(thunk, kind, pattern):
    try:
        thunk()
    except kind as error:
        if not re.match(pattern, str(error)):
            raise AssertionError(f'"{pattern}" does not match "{error}"') from error
    else:
        raise AssertionError(f"no {kind.__name__}")


@contextlib.contextmanager
def capture_stdout():
    with contextlib.redirect_stdout(io.StringIO()) as text:
        yield text.getvalue


def parse_version(text):
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def numpy_version():
    return parse_version(np.__version__)


def jaxlib_version():
    return 0, 11, 1


class JaxTestCase(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.random_ = np.random.RandomState(zlib.adler32(self._testMethodName.encode()))

    def rng(self):
        return self.random_

    def assertEqual(self, first, second, msg=None):
        """unittest's own makes texts of the differences, in functions that a function that is read cannot call."""
        if not first == second:
            raise self.failureException(msg or f"{first!r} != {second!r}")

    def assertDtypesMatch(self, actual, desired, *, canonicalize_dtypes=True):
        self.assertEqual(_dtype(actual), _dtype(desired))

    def assertArraysEqual(self, actual, desired, *, check_dtypes=True, err_msg="", **options):
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        np.testing.assert_array_equal(np.asarray(actual), np.asarray(desired), err_msg=err_msg)

    def assertArraysAllClose(self, actual, desired, *, check_dtypes=True, atol=None, rtol=None, err_msg=""):
        self.assertEqual(np.shape(actual), np.shape(desired))
        kinds = _dtype(actual), _dtype(desired)
        _compare(actual, desired, max(tolerance(kind, atol) for kind in kinds),
                 max(tolerance(kind, rtol) for kind in kinds), err_msg)
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)

    def assertAllClose(self, actual, desired, *, check_dtypes=True, atol=None, rtol=None, canonicalize_dtypes=True,
                       err_msg=""):
        options = {"check_dtypes": check_dtypes, "atol": atol, "rtol": rtol, "err_msg": err_msg}
        if isinstance(actual, dict):
            self.assertEqual(set(actual), set(desired))
            for key in actual:
                self.assertAllClose(actual[key], desired[key], **options)
        elif isinstance(actual, (list, tuple)):
            self.assertIsInstance(desired, (list, tuple))
            self.assertEqual(len(actual), len(desired))
            for a, b in zip(actual, desired):
                self.assertAllClose(a, b, **options)
        elif hasattr(actual, "__array__") or np.isscalar(actual):
            self.assertTrue(hasattr(desired, "__array__") or np.isscalar(desired), f"an array, not {desired}")
            self.assertArraysAllClose(np.asarray(actual), np.asarray(desired), **options)
        else:
            self.assertEqual(actual, desired)

    def assertMultiLineStrippedEqual(self, expected, what):
        self.assertEqual(*(re.sub(r"\s*\n\s*", "\n", textwrap.dedent(text).strip()) for text in (expected, what)))

    @contextlib.contextmanager
    def assertNoWarnings(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    def _CompileAndCheck(self, fun, args_maker, *, check_dtypes=True, tol=None, rtol=None, atol=None,
                         check_cache_misses=True):
        import jax
        compiled = jax.jit(fun)
        for _ in range(2):
            args = args_maker()
            expected = fun(*args)
            self.assertAllClose(compiled(*args), expected, check_dtypes=check_dtypes, atol=atol or tol,
                                rtol=rtol or tol)

    def _CheckAgainstNumpy(self, numpy_op, lax_op, args_maker, check_dtypes=True, tol=None, atol=None, rtol=None,
                           canonicalize_dtypes=True):
        args = args_maker()
        self.assertAllClose(lax_op(*args), numpy_op(*args), check_dtypes=check_dtypes, atol=atol or tol,
                            rtol=rtol or tol)

    def assertCacheMisses(self, *args, **kwargs):
        raise Inside("counts what is compiled")


class BufferDonationTestCase(JaxTestCase):
    def assertDeleted(self, x):
        raise Inside("buffers that are given away")

    def assertNotDeleted(self, x):
        """Nothing is."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Absent(f"jtu.{name}")
