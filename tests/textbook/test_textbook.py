# SPDX-License-Identifier: Apache-2.0
"""Programs of many fields as textbooks have them, written before any was tried: value, gradient, tangent, batch.

The derivative along a direction is compared with Richardson's extrapolation of differences, which says itself how far
it may be trusted.  A program that is refused has its name in REFUSED; it may not be wrong either.
"""
import copy
import importlib.util
from pathlib import Path

import numpy as np
import pytest

import gradscribe as gs

REFUSED = set("""
    views_of_views ravel_alias_and_transposed_ravel fft_radix2_recursive matrix_chain_strassen bootstrap_curve
    otsu_soft_threshold ray_sphere_shading ragged_segments
    groupby_bincount generator_state operator_overloads duplicate_index_add zero_dim_arrays fft_zoo list_operations
    bank_accounts merge_sort_iterative defaultdict_accumulate list_of_arrays_resized reshape_view_or_copy
    scalars_of_all_kinds nested_functions_shadowing scipy_integrate_rules dijkstra_heap
""".split())
NO_COMPILED_FORM = {"batchnorm_dropout", "sorting_zoo"}
SINGLE = {"float32_state"}              # differences say nothing of its last digits


def programs() -> list:
    """(function, arguments) of each program."""
    found = []
    for path in sorted((Path(__file__).parent / "programs").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"textbook_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += module.CASES
    return found


PROGRAMS = {f.__name__: (f, args) for f, args in programs()}


def is_real(value) -> bool:
    return isinstance(value, float) or isinstance(value, np.ndarray) and value.dtype.kind == "f"


def mapped(function, value, *more):
    """function of the leaves of containers that have one structure."""
    if isinstance(value, dict):
        return {k: mapped(function, v, *(m[k] for m in more)) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [mapped(function, *each) for each in zip(value, *more)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return function(value, *more)


def leaves(value) -> list:
    found = []
    mapped(found.append, value)
    return found


def places(args) -> tuple:
    """The arguments that are differentiated."""
    return tuple(k for k, a in enumerate(args) if all(map(is_real, leaves(a))) and leaves(a))


def direction(args, wrt, seed=0):
    rng = np.random.default_rng(seed)
    return {k: mapped(lambda v: rng.normal(size=v.shape) if isinstance(v, np.ndarray) else float(rng.normal()), args[k])
            for k in wrt}


def moved(args, along, step) -> list:
    """The arguments moved along a direction; a Python number remains one."""
    return [mapped(lambda v, d: v + step * d, a, along[k]) if k in along else copy.deepcopy(a)
            for k, a in enumerate(args)]


def slope(f, args, along, step=1e-3):
    """(derivative along a direction, bound of its error), by Richardson's extrapolation of central differences."""
    row = [(float(f(*moved(args, along, h))) - float(f(*moved(args, along, -h)))) / (2 * h)
           for h in (step / 2 ** k for k in range(4))]
    rows = [row]
    for order in (4, 16, 64):
        rows.append([(order * b - a) / (order - 1) for a, b in zip(rows[-1], rows[-1][1:])])
    return rows[3][0], abs(rows[3][0] - rows[2][1]) + 0.05 * abs(rows[2][1] - rows[2][0])


def value_and_grad(name):
    """(function, its arguments, places, value, gradient); skips a program that is known to be refused."""
    f, args = PROGRAMS[name]
    args, wrt = list(args), places(args)
    try:
        value, gradient = gs.value_and_grad(f, wrt)(*copy.deepcopy(args))
    except gs.TransformError:
        if name not in REFUSED:
            raise
        pytest.skip("refused")
    return f, args, wrt, value, gradient


def assert_alike(made, want, rtol=1e-10):
    for a, b in zip(leaves(made), leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * (1e-3 + np.max(np.abs(b), initial=0)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name):
    f, args, wrt, value, gradient = value_and_grad(name)
    np.testing.assert_allclose(value, f(*copy.deepcopy(args)), rtol=1e-13)
    along = direction(args, wrt)
    terms = [np.asarray(g) * d for g, d in zip(leaves(gradient), leaves([along[k] for k in wrt]), strict=True)]
    made, size = sum(map(np.sum, terms)), sum(np.sum(np.abs(t)) for t in terms)
    if name not in SINGLE:
        want, error = slope(f, args, along)
        assert abs(made - want) <= 50 * error + 1e-8 * size
    if len(wrt) == len(args) and name not in SINGLE:
        tangents = tuple(along[k] for k in wrt)
        y, y_dot = gs.jvp(f, tuple(copy.deepcopy(args)), tangents)
        np.testing.assert_allclose(y, value, rtol=1e-12)
        assert abs(y_dot - made) <= 1e-9 * size + 1e-13


@pytest.mark.parametrize("name", [n for n in list(PROGRAMS)[::9] if n not in NO_COMPILED_FORM])
def test_compiled(name):
    f, args, wrt, value, gradient = value_and_grad(name)
    form = gs.jit(gs.value_and_grad(f, wrt))
    for _ in range(2):
        assert_alike(form(*copy.deepcopy(args)), (value, gradient))


@pytest.mark.parametrize("name", list(PROGRAMS)[::4])
def test_batches(name):
    f, args, wrt, _, _ = value_and_grad(name)
    points = [moved(args, direction(args, wrt, k), 1e-3) for k in range(2)]
    want = [gs.grad(f, wrt)(*copy.deepcopy(p)) for p in points]
    batch = [mapped(lambda *v: np.stack(v), *(p[k] for p in points)) if k in wrt else a for k, a in enumerate(args)]
    made = gs.vmap(gs.grad(f, wrt), in_axes=tuple(0 if k in wrt else None for k in range(len(args))))(*batch)
    assert_alike(made, mapped(lambda *v: np.stack(v), *want), rtol=1e-9)
