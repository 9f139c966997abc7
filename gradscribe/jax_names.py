# SPDX-License-Identifier: Apache-2.0
"""What to use instead of each public name of JAX 0.10, for the messages of AttributeErrors and docs/jax_names.md.

`make rules` writes the page.  A name without a row exists under the same name here.
"""
import importlib
import pathlib
from typing import NamedTuple


class Row(NamedTuple):
    """Names of JAX, the replacement (empty: none), and why or how."""

    names: str
    here: str
    remarks: str = ""


NO_DEVICE = "arrays are NumPy's, in the host's memory"
NO_TRACER = "emitted code is plain Python; there are no tracers"
SPREAD = "arrays are not spread out between calls"

TABLE = {
    "jax": [
        Row("block_until_ready copy_to_host_async effects_barrier", "", "nothing is asynchronous; leave it out"),
        Row("device_get device_put", "the array itself, or `np.asarray(x)`", NO_DEVICE),
        Row("Array", "`np.ndarray`", "arrays are NumPy's"),
        Row("Device Shard NamedSharding default_device local_devices live_arrays transfer_guard "
            "transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device memory "
            "sharding make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays "
            "array_garbage_collection_guard", "", NO_DEVICE + ", and put nowhere else; leave it out"),
        Row("default_backend", "`gs.jit(f, target=\"cuda\")`", "the processor, unless a function is compiled for CUDA"),
        Row("make_jaxpr", "`gs.make_ir`", "the typed normal form"),
        Row("ops", "`gs.lax`", "sums of segments"),
        Row("numpy", "`import numpy as np`", "NumPy itself; coverage.md lists what has rules"),
        Row("scipy", "`import scipy`", "SciPy itself; coverage.md lists what has rules"),
        Row("flatten_util", "`gs.tree_util.ravel_pytree`"),
        Row("test_util", "`gs.testing.check_grads`"),
        Row("softmax_custom_jvp", "`gs.nn.softmax`", "always with its own derivative"),
        Row("named_call named_scope", "", "the user's names are in what is emitted; leave it out"),
        Row("explain_cache_misses log_compiles", "`logging.getLogger('gradscribe')`",
            "tells of each version that is made"),
        Row("stages", "`gs.jit(f).lowered`, `gs.export`", "the text that was compiled, and a shared library"),
        Row("print_environment_info", "`gradscribe doctor`", "on the command line"),
        Row("debug", "`print`, `breakpoint`", NO_TRACER + ": both work, once a call"),
        Row("debug_infs debug_nans", "`with np.errstate(all=\"raise\")`", "NumPy's own check"),
        Row("checking_leaks check_tracer_leaks no_tracing no_execution ensure_compile_time_eval make_user_context "
            "thread_guard", "", NO_TRACER + "; leave it out"),
        Row("debug_key_reuse enable_checks", "", "keys are plain arrays, and emitted code is always checked; leave it "
            "out"),
        Row("disable_jit", "the function without `gs.jit`", "what is emitted without it is NumPy"),
        Row("monitoring profiler", "Python's profilers", "emitted code is Python"),
        Row("clear_caches", "", "a version is kept with its function; leave it out"),
        Row("config", "", "there are no settings: dtypes are NumPy's, float64 unless you say otherwise"),
        Row("enable_x64 default_matmul_precision numpy_dtype_promotion numpy_rank_promotion dtypes "
            "allow_f16_reductions", "NumPy's dtypes and promotion", "float64 unless you say otherwise"),
        Row("float0", "", "integers have no gradient; name other arguments by argnums"),
        Row("dlpack", "arguments with `__dlpack__` or `__array_interface__`", "results are NumPy's, which others take"),
        Row("ffi image", "", "not here"),
        Row("default_prng_impl enable_custom_prng legacy_prng_key", "`gs.random`", "there is one generator, Threefry"),
        Row("threefry_partitionable", "`with gs.random.threefry_partitionable(False):`",
            "or `gs.random.set_threefry_partitionable` for the whole process"),
        Row("process_indices host_count host_id host_ids", "`gs.process_count`, `gs.process_index`"),
        Row("smap set_mesh make_mesh reshard typeof auto_pcast remove_size_one_mesh_axis_from_type",
            "`gs.Mesh(shape, names)`, `gs.shard_map`", SPREAD),
        Row("Ref empty_ref new_ref free_ref freeze ref ds", "writes: `x[i] = v`", "arrays can be written into"),
        Row("pure_callback", "a call", "what has no rule is refused, or given one: `gs.rule`"),
        Row("ad api_util core interpreters lib errors typing experimental version jax2tf_associative_scan_reductions",
            "", "a part of JAX itself"),
    ],
    "jax.Array": [
        Row("at", "`gs.at(x)[i]`, or `x[i] = v`", "plain arrays have no such attribute"),
        Row("block_until_ready copy_to_host_async", "", "nothing is asynchronous, and plain arrays have no such "
            "method; leave it out"),
        Row("clone", "`x.copy()`"),
        Row("ptp", "`np.ptp(x)`"),
        Row("device_buffer device_buffers format is_ready platform traceback", "", "plain arrays have no such "
            "attribute; leave it out"),
        Row("addressable_data addressable_shards committed devices global_shards is_deleted is_fully_addressable "
            "is_fully_replicated on_device_size_in_bytes sharding delete", "", NO_DEVICE +
            ": plain arrays have no such attribute; leave it out"),
        Row("aval weak_type", "`x.dtype`, `x.shape`", "a NumPy array's dtype is never weak; a Python number's is"),
        Row("unsafe_buffer_pointer", "`x.ctypes.data`"),
    ],
    "jax.lax": [
        Row("pbroadcast pcast precv psend pswapaxes ragged_all_to_all with_sharding_constraint", "",
            "not yet: for several devices"),
        Row("scatter_apply", "`gs.at(x)[i].apply(f)`"),
        Row("conv_general_dilated_local conv_general_dilated_patches conv_general_permutations "
            "conv_general_shape_tuple conv_transpose_shape_tuple ConvGeneralDilatedDimensionNumbers",
            "`gs.lax.conv_general_dilated`, `np.lib.stride_tricks.sliding_window_view`"),
        Row("broadcast_shapes", "`np.broadcast_shapes`"),
        Row("empty", "`np.empty`"),
        Row("fft", "`np.fft`"),
        Row("broadcast_like broadcast_to_rank", "`np.broadcast_to`"),
        Row("random_gamma_grad", "`gs.grad` of `gs.random.gamma`"),
        Row("igamma_grad_a", "`gs.grad` of `scipy.special.gammainc`"),
        Row("DotDimensionNumbers DotAlgorithm DotAlgorithmPreset Precision PrecisionLike RaggedDotDimensionNumbers "
            "ragged_dot ragged_dot_general scaled_dot AccuracyMode Tolerance", "`@`, `np.einsum`, `np.tensordot`",
            "products are BLAS's, in full precision"),
        Row("clz mulhi shape_as_value", "", "NumPy has no name for it: written out, from shifts and shapes"),
        Row("reduce_precision", "`x.astype(np.float16)`"),
        Row("dtype", "`np.result_type`"),
        Row("GatherScatterMode", "`mode=\"clip\"`", "the modes are words"),
        Row("FftType", "`np.fft`", "a function for each"),
        Row("rng_bit_generator rng_uniform RandomAlgorithm", "`gs.random.bits`, `gs.random.uniform`"),
        Row("RoundingMethod", "`np.round`, `np.floor`"),
        Row("after_all composite create_token dce_sink optimization_barrier stage", "", "XLA's own; leave it out"),
    ],
    "jax.lax.linalg": [
        Row("EigImplementation EighImplementation SvdAlgorithm", "", "LAPACK's, by NumPy; leave it out"),
        Row("qdwh", "`scipy.linalg.polar`"),
        Row("hessenberg tridiagonal", "`scipy.linalg.hessenberg`"),
        Row("schur", "`scipy.linalg.schur`"),
        Row("ormqr", "`gs.lax.linalg.householder_product`, and `@`"),
    ],
    "jax.nn": [
        Row("get_scaled_dot_general_config scaled_dot_general scaled_matmul", "`@`", "products have all their bits"),
    ],
    "jax.nn.initializers": [],
    "jax.random": [Row("key_dtype", "`np.uint32`", "keys are plain arrays of two numbers")],
    "jax.tree_util": [
        Row("KeyEntry KeyPath", "", "kinds of values that checkers of types are told of"),
        Row("default_registry", "`gs.tree_util.register_pytree_node`", "there is one registry"),
    ],
    "jax.tree": [],
    "jax.custom_batching": [],
    "jax.custom_derivatives": [
        Row("linear_call", "`gs.custom_vjp`", "a linear function and its transpose are one with a reverse rule"),
        Row("custom_jvp_call_p custom_vjp_call_p remat_opt_p", "", "a part of JAX itself"),
    ],
    "jax.example_libraries.stax": [],
    "jax.example_libraries.optimizers": [
        Row("Array InitFn Params ParamsFn Schedule State Step UpdateFn Updates", "", "kinds of values that checkers of "
            "types are told of"),
    ],
}


def row_of(module: str, name: str) -> Row | None:
    """The row for a name of a module of JAX; None without one.

    >>> row_of("jax", "block_until_ready").remarks
    'nothing is asynchronous; leave it out'
    """
    return next((row for row in TABLE.get(module, ()) if name in row.names.split()), None)


def missing(module: str, name: str) -> AttributeError:
    """The error for an attribute that a module does not have; for a name of JAX it names the replacement.

    >>> print(missing("gradscribe", "block_until_ready"))
    module 'gradscribe' has no attribute 'block_until_ready': nothing is asynchronous; leave it out
    >>> print(missing("gradscribe.lax", "broadcast_shapes"))
    module 'gradscribe.lax' has no attribute 'broadcast_shapes': use np.broadcast_shapes
    """
    text = f"module {module!r} has no attribute {name!r}"
    row = row_of(module.replace("gradscribe", "jax", 1), name)
    if row is None:
        return AttributeError(text, name=name)
    instead = f"use {row.here}" if row.here else ""
    return AttributeError(f"{text}: {'; '.join(filter(None, (instead, row.remarks)))}".replace("`", ""))


def page() -> str:
    """The text of docs/jax_names.md."""
    out = [PREFACE]
    for module, rows in TABLE.items():
        ours = "gs" + module.removeprefix("jax")
        out += [f"## `{module}`", ""]
        same = _same(module)
        if same:
            out += [f"The same in `{ours}`: {', '.join(f'`{name}`' for name in same)}.", ""]
        if rows:
            out += ["| names | here | remarks |", "|---|---|---|"]
            out += [f"| {', '.join(f'`{n}`' for n in row.names.split())} | {row.here or 'none'} | {row.remarks} |"
                    for row in rows]
            out.append("")
    return "\n".join(out)


PREFACE = """# JAX's names

Every public name of the modules of JAX (0.10), and what stands in its place. An `AttributeError` says the same:
`gs.block_until_ready` is not there, because nothing is asynchronous. `jax.numpy` is NumPy itself:
[Coverage](coverage.md) lists what has rules, and [For JAX users](jax.md) what differs. Functions over an axis (`psum`,
...) mean the examples of `gs.vmap` or the devices of `gs.pmap`; `segment_sum` and its kin are those of `jax.ops`.
This page is written by `make rules`; a test compares it with the installed JAX.
"""


def _same(module):
    """The public names of a module here; a test checks that each of JAX's names is one of them or has a row."""
    if module == "jax.Array":
        return []
    ours = importlib.import_module("gradscribe" + module.removeprefix("jax"))
    return sorted({*ours.__all__} - (OWN if module == "jax" else set()))


OWN = {                             # names that JAX does not have
    "Explanation", "KindError", "LanguageError", "Library", "RuleError", "ShapeError", "TransformError",
       "__version__", "at", "check", "draw", "dump", "explain", "function", "hvp", "insert_grad_of", "jvp_of",
       "make_ir", "optim", "rule", "source_map",
    "stop_gradient", "testing", "to_torch", "vjp_of", "Mesh", "PartitionSpec"}


def write(path: str = "docs/jax_names.md") -> None:
    """Write the page."""
    pathlib.Path(path).write_text(page(), encoding="utf-8")
