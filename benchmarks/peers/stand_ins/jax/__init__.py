# ruff: noqa: F401
"""JAX's words in terms of gradscribe's, as far as JAX's own tests use them.

    python benchmarks/peers/jax_suite.py

`jax.numpy` and `jax.scipy` are NumPy and SciPy themselves, in double precision; an array is NumPy's.  What concerns
devices, or when code is traced and compiled, does nothing.  A part of JAX itself raises `Inside` where it is used.
"""
import contextlib as _contextlib
import os as _os
import sys as _sys

import numpy as _np
import scipy.linalg as _scipy_linalg
import scipy.special as _scipy_special

import gradscribe as gs
from gradscribe import (
    ShapeDtypeStruct,
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    device_count,
    devices,
    eval_shape,
    fwd_and_bwd,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    local_device_count,
    pmap,
    process_count,
    process_index,
    shard_map,
    tree,
    value_and_grad,
    vjp,
    vmap,
)
from jax.inside import Absent as _Absent
from jax.inside import Module as _Module
from jax.inside import install as _install

__version__ = "0.11.1"
_install()


def _module(name, **names):
    """A part of JAX: the names that have a counterpart, and no others."""
    made = _sys.modules[f"jax.{name}"] = _Module(f"jax.{name}")
    made.__path__ = []
    vars(made).update(names)
    parent, _, last = f"jax.{name}".rpartition(".")
    setattr(_sys.modules[parent], last, made)
    return made


class _jit(gs.function):
    """Runs as it is, and is read with what calls it; the runner's --compile makes it gs.jit."""

    def __init__(self, fun):
        if not callable(fun):
            raise TypeError(f"Expected a callable value, got {fun!r}")
        super().__init__(fun)


def _jitted(fun=None, **options):
    if fun is None:
        return lambda f: _jitted(f, **options)
    return _jit(fun)


_jitted.normal_form_ = gs.jit.normal_form_
jit = gs.jit if _os.environ.get("PEERS_COMPILE") else _jitted
Array, float0 = _np.ndarray | _np.generic, _np.dtype([("float0", _np.void, 0)])


class _Policies:
    """Functions that say which values a checkpoint keeps."""

    def __getattr__(self, name):
        return _policy_of if name.startswith(("save_", "offload_")) else _policy


def _policy(*args, **kwargs):
    return False


def _policy_of(*names, **options):
    return _policy


checkpoint_policies = _Policies()


def checkpoint(fun=None, *, policy=None, **options):
    """All values are computed again, whatever the policy: it changes no value."""
    if fun is None:
        return lambda f: checkpoint(f, policy=policy, **options)
    return gs.checkpoint(fun, **options)


checkpoint.normal_form_ = lambda reader, args, words, node: gs.checkpoint.normal_form_(
    reader, args, {name: value for name, value in words.items() if name != "policy"}, node)
remat = checkpoint


def _dft(n, scale=None, dtype=None):
    return _scipy_linalg.dft(n, scale) if dtype is None else _scipy_linalg.dft(n, scale).astype(dtype)


def _solve_sylvester(a, b, q, *, method=None, tol=None):
    return _scipy_linalg.solve_sylvester(a, b, q)


def _expm(a, *, upper_triangular=False, max_squarings=16):
    return _scipy_linalg.expm(a)


def device_put(x, device=None, **options):
    return x


def device_get(x):
    return x


def block_until_ready(x):
    return x


def named_call(fun, *, name=None):
    return fun


def default_backend():
    return "cpu"


@_contextlib.contextmanager
def _nothing(*args, **kwargs):
    """A setting without a counterpart, as a context or as a decorator."""
    yield


checking_leaks = check_tracer_leaks = disable_jit = named_scope = _nothing
numpy_rank_promotion = numpy_dtype_promotion = _nothing
default_matmul_precision = legacy_prng_key = debug_key_reuse = enable_checks = default_prng_impl = _nothing
default_device = debug_infs = debug_nans = ensure_compile_time_eval = allow_f16_reductions = _nothing

from jax import _src, lax, nn, numpy, random, tree_util  # noqa: E402
from jax._src import config  # noqa: E402

_module("scipy", special=_scipy_special)
_module("scipy.linalg", **{name: getattr(_scipy_linalg, name) for name in _scipy_linalg.__all__} | {
    "dft": _dft, "expm": _expm, "solve_sylvester": _solve_sylvester})
_sys.modules.update({"jax.scipy.special": _scipy_special, "jax.tree": tree})
_module("flatten_util", ravel_pytree=gs.tree_util.ravel_pytree)
_module("test_util", check_grads=_src.test_util.check_grads, check_jvp=_src.test_util.check_jvp,
        check_vjp=_src.test_util.check_vjp)
_module("ad_checkpoint", checkpoint=checkpoint)
for _part in (gs.custom_derivatives, gs.custom_batching):
    _module(_part.__name__.rpartition(".")[2], **{name: getattr(_part, name) for name in _part.__all__})
_module("dtypes", canonicalize_dtype=_np.dtype, float0=float0, issubdtype=_np.issubdtype, result_type=_np.result_type)
_module("lib", __version__="0.11.1")
_module("ops", **{f"segment_{name}": getattr(gs.lax, f"segment_{name}") for name in ("max", "min", "prod", "sum")})
for _name in ("errors", "interpreters", "sharding", "experimental"):
    _module(_name)
_module("core", Tracer=type("Tracer", (), {}))      # SciPy asks whether an array is one
_module("_src.api", device_get=device_get, device_put=device_put, eval_shape=eval_shape, fwd_and_bwd=fwd_and_bwd,
        grad=grad, jacfwd=jacfwd, jacrev=jacrev, jit=jit, jvp=jvp, linear_transpose=linear_transpose,
        linearize=linearize, named_call=named_call, value_and_grad=value_and_grad, vjp=vjp, vmap=vmap,
        ShapeDtypeStruct=ShapeDtypeStruct, disable_jit=_nothing)
_module("_src.lax")
_module("_src.random")
_module("_src.random.prng", prngs={"threefry2x32": "threefry2x32"})
_module("_src.lax.linalg", **{name: getattr(gs.lax.linalg, name) for name in gs.lax.linalg.__all__})
_module("_src.lib", cuda_versions=None)
_module("_src.tree_util", **{name: value for name, value in vars(tree_util).items() if not name.startswith("__")})
_module("_src.util", safe_map=_src.safe_map, safe_zip=_src.safe_zip, unzip2=_src.unzip2, split_list=_src.split_list)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Absent(f"jax.{name}")
