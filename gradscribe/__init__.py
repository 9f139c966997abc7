# SPDX-License-Identifier: Apache-2.0
"""Gradscribe: gradients of plain NumPy functions, written out as Python source."""
import importlib as _importlib
import os as _os
import typing as _typing

if not _os.path.isdir(_os.path.join(__path__[0], "runtime")):       # in a clone, it is beside this folder
    __path__.append(_os.path.dirname(__path__[0]))

from gradscribe import checkpoint_policies, custom_batching, custom_derivatives, rule, tree, tree_util
from gradscribe import containers_known as _containers_known
from gradscribe.api import (
    fwd_and_bwd,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    jvp_of,
    linear_transpose,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
    vjp_of,
    vmap,
)
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError, RuleError, ShapeError, TransformError
from gradscribe.at import at
from gradscribe.checkpoint import checkpoint, checkpoint_name
from gradscribe.containers import register_container
from gradscribe.custom import custom_gradient, custom_jvp, custom_vjp
from gradscribe.decorate import function
from gradscribe.drawing import draw
from gradscribe.editing import insert_grad_of
from gradscribe.errors import digits, error_bound
from gradscribe.explain import Explanation, explain
from gradscribe.export import Library, export
from gradscribe.files import check, dump
from gradscribe.ir import make_ir
from gradscribe.jax_names import missing as _missing
from gradscribe.jet import jet, jet_of
from gradscribe.jit import jit
from gradscribe.machine import device_count, devices, local_device_count, process_count, process_index
from gradscribe.map_over import MapError, WorkerLost, map_over
from gradscribe.pmap import pmap
from gradscribe.runtime.derivatives import closure_convert
from gradscribe.shapes import ShapeDtypeStruct, eval_shape
from gradscribe.sharding import Mesh, P, PartitionSpec, shard_map
from gradscribe.source_map import source_map
from gradscribe.torch import to_torch
from gradscribe.version import __version__

_containers_known.announce()                # pandas, xarray, pint: imported by nobody but the user
jacobian, remat = jacrev, checkpoint        # JAX's second names

if _typing.TYPE_CHECKING:
    from gradscribe import distributed, example_libraries, lax, nn, optim, random, sparse, testing

__all__ = [
    "Explanation",
    "KindError",
    "LanguageError",
    "Library",
    "MapError",
    "Mesh",
    "P",
    "PartitionSpec",
    "RuleError",
    "ShapeDtypeStruct",
    "ShapeError",
    "TransformError",
    "WorkerLost",
    "__version__",
    "at",
    "check",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "closure_convert",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "device_count",
    "devices",
    "digits",
    "distributed",
    "draw",
    "dump",
    "error_bound",
    "eval_shape",
    "example_libraries",
    "explain",
    "export",
    "function",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "hvp",
    "insert_grad_of",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jet",
    "jet_of",
    "jit",
    "jvp",
    "jvp_of",
    "lax",
    "linear_transpose",
    "linearize",
    "local_device_count",
    "make_ir",
    "map_over",
    "nn",
    "optim",
    "pmap",
    "process_count",
    "process_index",
    "random",
    "register_container",
    "remat",
    "rule",
    "shard_map",
    "source_map",
    "sparse",
    "stop_gradient",
    "testing",
    "to_torch",
    "tree",
    "tree_util",
    "value_and_grad",
    "vjp",
    "vjp_of",
    "vmap",
]


_LATER = (                              # subpackages that are imported at first use
    "distributed", "example_libraries", "lax", "nn", "optim", "random", "sparse", "testing",
)


def __getattr__(name):
    if name in _LATER:
        return _importlib.import_module(f"gradscribe.{name}")
    raise _missing(__name__, name)


def __dir__():
    return sorted({*globals(), *_LATER})


def load_ipython_extension(shell):
    """%load_ext gradscribe"""
    from gradscribe import magic  # imported in notebooks only
    magic.load(shell)
