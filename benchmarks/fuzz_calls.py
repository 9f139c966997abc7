# SPDX-License-Identifier: Apache-2.0
"""Random calls of single functions: samples of records with other words, shapes and dtypes, against NumPy's results.

    python benchmarks/fuzz_calls.py --count 5000                all functions with a record
    python benchmarks/fuzz_calls.py cumsum average --jit 20     some of them; 20 per cent are compiled, too
    python benchmarks/fuzz_calls.py --seed-only 1234            one call, shown

A call that the function itself refuses is drawn again.  Of each: values, shapes and dtypes; tangents against
differences, adjoints against tangents; batches against one call for each example; arguments that stay as they are;
compiled against plain.  Near a kink, where differences of two steps disagree, derivatives are not compared.
"""
import argparse
import collections
import copy
import importlib
import importlib.util
import inspect
import os
import re
import resource
import sys
import warnings

import numpy as np
from rule_calls import call_of, from_text, leaves

import gradscribe as gs
from gradscribe.ast_transform.core.rule import RULES

AXES = (None, 0, 1, -1, -2, (0,), (0, 1), (-1, 0), ())
FLAGS = (True, False)
DTYPES = (float, np.float32, complex, int, np.int32)
WORDS = {
    "axis": AXES, "axes": (None, (0, 1), (1, 0), 1, 2), "keepdims": FLAGS, "dtype": DTYPES, "ddof": (0, 1, 2),
    "initial": (0.5, -1.0, 2), "side": ("left", "right"), "right": (True, False, 2.5), "left": (-1.5,),
    "period": (2.0,), "mode": ("raise", "wrap", "clip", "full", "same", "valid", "edge", "reflect", "constant"),
    "endpoint": FLAGS, "order": ("C", "F"), "norm": ("ortho", "forward", "backward"), "n": (0, 1, 2, 3, 5),
    "k": (-1, 0, 1, 2), "decimals": (0, 1, -1), "equal_nan": FLAGS, "assume_unique": FLAGS, "invert": FLAGS,
    "bias": FLAGS, "rowvar": FLAGS, "density": FLAGS, "num": (0, 1, 2, 5), "base": (2.0, 10.0), "offset": (-1, 0, 1),
    "indexing": ("xy", "ij"), "sparse": FLAGS, "copy": FLAGS, "nan": (0.0, 1.5), "posinf": (9.0,), "neginf": (-9.0,),
    "lower": FLAGS, "compute_uv": FLAGS, "full_matrices": FLAGS, "hermitian": FLAGS, "UPLO": ("L", "U"),
    "retstep": FLAGS, "minlength": (0, 3, 9), "edge_order": (1, 2),
    "method": ("linear", "lower", "higher", "midpoint"), "shift": (0, 1, -2, (1, 0)), "repeats": (0, 1, 2),
    "reps": (1, 2, (2, 1)), "include_initial": FLAGS, "axis1": (0, 1, -1), "axis2": (0, 1, -2),
    "source": (0, -1, (0, 1)), "destination": (0, -1, (1, 0)), "return_index": FLAGS, "return_inverse": FLAGS,
    "return_counts": FLAGS, "rtol": (1e-5,), "ord": (1, 2, np.inf, 3), "correction": (0, 1), "descending": FLAGS,
    "stable": FLAGS, "kind": ("stable", "quicksort"), "trim": ("f", "b", "fb"), "increasing": FLAGS, "N": (2, 4),
    "M": (2, 4), "shape": (None,), "fill_value": (0.0, 2, -1.5), "s": ((2, 3), (4,)), "prepend": (0.5,),
    "append": (1.5,), "to_begin": (0.5,), "to_end": (1.5,), "dx": (0.5, 2), "scale": (0.5, 2.0), "loc": (0.5,),
    "trans": (0, 1, "T"), "unit_diagonal": FLAGS, "return_sign": FLAGS, "max_rank": (None,),
}
MASKS = ("where",)
IN_ORDER = {np.interp, np.searchsorted, np.digitize, np.trapezoid, np.gradient}
UP_TO_A_PHASE = {"svd", "eigh", "eig"}            # of complex matrices: any phase is as good, and so its derivative
TOLERANCE = {np.dtype(np.float32): 3e-4, np.dtype(np.complex64): 3e-4}


OPEN = {"unique_values", "unpackbits"}      # NumPy leaves the order open, or what is beyond the end


class Again(Exception):
    """A call that is not made, or says nothing."""


class Wrong(Exception):
    """What differs from NumPy."""


def is_ours(function):
    return (getattr(function, "__module__", None) or "").startswith("gradscribe")


def parameters(function):
    """The names that a call may use for words."""
    if isinstance(function, np.ufunc):
        return ["where", "dtype"]
    try:
        return [p.name for p in inspect.signature(function).parameters.values() if p.kind in (
            p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    except (TypeError, ValueError):
        return []


def positions(function):
    """The names of the arguments that stand before any `*args`."""
    names = []
    for p in inspect.signature(function).parameters.values():
        if p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            break
        names.append(p.name)
    return names


def other_array(rng, x):
    """An array of another shape, dtype or layout."""
    kind = rng.integers(14)
    axis = int(rng.integers(x.ndim)) if x.ndim else 0
    if kind == 0 and x.ndim:
        return np.take(x, [0], axis=axis) if x.shape[axis] else x
    if kind == 1 and x.ndim:
        return np.take(x, [], axis=axis)
    if kind == 2:
        return x[None]
    if kind == 3 and x.ndim and x.shape[0]:
        return x[0]
    if kind == 4:
        return np.stack([x, x + 0.25]) if x.dtype.kind in "fc" else np.stack([x, x])
    if kind == 5 and x.dtype.kind in "fc":
        return x.astype(np.float32 if x.dtype.kind == "f" else np.complex64)
    if kind == 6 and x.dtype.kind == "f" and np.all(np.isfinite(x)):
        return np.round(3 * x).astype(int)
    if kind == 7 and x.dtype.kind == "f":
        return np.round(2 * x) / 2              # entries that are equal
    if kind == 8 and x.dtype.kind == "f":
        return x + 1j * rng.standard_normal(x.shape)
    if kind == 9 and x.dtype.kind == "f":
        return x > 0
    if kind == 10 and x.ndim:
        return x[::-1]
    if kind == 11 and x.ndim > 1:
        return np.asfortranarray(x)
    if kind == 12 and x.dtype.kind == "i":
        return x.astype(rng.choice([np.int8, np.int32, np.uint8])) if (x >= 0).all() else x.astype(np.int32)
    if kind == 13 and x.ndim:
        return np.moveaxis(x, 0, -1)
    raise Again


def other_number(rng, x):
    kind = rng.integers(5)
    if kind == 0 and isinstance(x, float):
        return np.float64(x)
    if kind == 1 and isinstance(x, float):
        return np.float32(x)
    if kind == 2 and isinstance(x, float):
        return int(np.round(x))
    if kind == 3:
        return np.array(x)
    if kind == 4 and isinstance(x, float):
        return np.full(3, x)
    raise Again


def altered(rng, rule, args, kwargs):
    """One place of a call is another."""
    function = rule.function
    names = [n for n in parameters(function) if n in WORDS or n in MASKS]
    if names and rng.random() < 0.6:
        name = names[rng.integers(len(names))]
        order = [] if isinstance(function, np.ufunc) else positions(function)
        if name in order and order.index(name) < len(args):
            at = order.index(name)
            if name in WORDS:
                return [*args[:at], WORDS[name][rng.integers(len(WORDS[name]))], *args[at + 1:]], kwargs
            raise Again
        if name in MASKS:
            first = next((a for a in args if isinstance(a, np.ndarray)), None)
            if first is None:
                raise Again
            value = rng.random(first.shape) < 0.6 if rng.random() < 0.8 else bool(rng.integers(2))
        else:
            value = WORDS[name][rng.integers(len(WORDS[name]))]
        return args, {**kwargs, name: value}
    places = [k for k, a in enumerate(args) if isinstance(a, (np.ndarray, float, np.floating))] + [
        k for k, a in kwargs.items() if isinstance(a, (np.ndarray, float))]
    if not places:
        raise Again
    if function in IN_ORDER:            # what must be in order stays so
        places = [k for k in places if k == 0]
        if not places:
            raise Again
    at = places[rng.integers(len(places))]
    held = kwargs if isinstance(at, str) else args
    value = other_array(rng, held[at]) if isinstance(held[at], np.ndarray) else other_number(rng, held[at])
    if np.iscomplexobj(value) and getattr(function, "__module__", "") == "math":
        raise Again                     # NumPy's complex numbers are cut to floats, with a warning
    held = copy.copy(held)
    held[at] = value
    return (args, held) if isinstance(at, str) else (held, kwargs)


def drawn(seed, rules):
    """A call that its function takes: (rule, args, kwargs)."""
    rng = np.random.default_rng(seed)
    while True:
        rule = rules[rng.integers(len(rules))]
        samples = rule.samples(rng)
        args, kwargs = samples[rng.integers(len(samples))]
        args = list(args)
        try:
            for _ in range(rng.integers(1, 4)):
                args, kwargs = altered(rng, rule, args, kwargs)
            if rule.label in OPEN or True in (kwargs.get("assume_unique"), *args[2:]):
                continue                        # entries that are said to differ
            call, given = call_of(rule.function, args, kwargs)
            call.label = rule.label
            results = numbers(call(*copy.deepcopy(given)))
            if given and results and all(np.size(r) < 400 for r in results) and not any(
                    isinstance(g, (str, bytes)) for g in given):
                return rule, call, given, args, kwargs
        except Exception:               # the function itself refuses the call, or it is one that is not made
            continue


def numbers(value):
    """The leaves of a result; Again where one is no number."""
    found = list(leaves(value))
    if any(np.asarray(v).dtype.kind not in "biufc" for v in found):
        raise Again
    return found


def weighed(call, given, rng):
    """A number made of all results that are not whole numbers, and its text's namespace; None where there are none."""
    results = call(*copy.deepcopy(given))
    if isinstance(results, (tuple, list)) and any(isinstance(r, (tuple, list)) for r in results):
        raise Again
    parts = list(results) if isinstance(results, (tuple, list)) else [results]
    space, terms = {"call": call}, []
    for k, part in enumerate(parts):
        part = np.asarray(part)
        if part.dtype.kind not in "fc":
            continue
        if not np.all(np.isfinite(part)):
            raise Again
        w = rng.uniform(0.5, 1.5, part.shape).astype(np.zeros(0, part.dtype).real.dtype)
        space[f"w{k}"] = w if part.dtype.kind == "f" else (w * (1 + 0.5j)).astype(part.dtype)
        held = f"y[{k}]" if isinstance(results, (tuple, list)) else "y"
        terms.append(f"np.sum(np.real(w{k} * {held}))")
    if not terms:
        return None
    names = ", ".join(f"a{k}" for k in range(len(given)))
    text = f"def total({names}):\n    y = call({names})\n    return {' + '.join(terms)}\n"
    return from_text(text, "total", space)


def same(got, want, what, tight=1e-9):
    got, want = list(leaves(got)), list(leaves(want))
    if len(got) != len(want):
        raise Wrong(f"{what}: {len(got)} results for {len(want)}")
    for a, b in zip(got, want):
        x, y = np.asarray(a), np.asarray(b)
        if x.shape != y.shape:
            raise Wrong(f"{what}: shape {x.shape}, NumPy's {y.shape}")
        if x.dtype != y.dtype:
            raise Wrong(f"{what}: dtype {x.dtype}, NumPy's {y.dtype}")
        near = TOLERANCE.get(x.dtype, tight)
        if not np.allclose(x, y, rtol=near, atol=near, equal_nan=True):
            at = np.unravel_index(np.argmax(~np.isclose(x, y, rtol=near, atol=near, equal_nan=True)), x.shape)
            raise Wrong(f"{what}: {x[at]} for {y[at]} at {tuple(map(int, at))}")


def is_active(value):
    return np.asarray(value).dtype.kind in "fc" and not isinstance(value, bool)


def moved(given, direction, step):
    return [g if v is None else g + step * v for g, v in zip(given, direction)]


def derivatives(call, given, rng, compiled):
    """Tangents against differences, adjoints against tangents."""
    total = weighed(call, given, rng)
    active = [k for k, g in enumerate(given) if is_active(g)]
    if call.label in UP_TO_A_PHASE and any(np.iscomplexobj(g) for g in given):
        raise Again
    if total is None or not active:
        return
    value = total(*copy.deepcopy(given))
    got, gradient = gs.value_and_grad(total, tuple(active))(*copy.deepcopy(given))
    same(got, value, "value beside a gradient")
    for k, g in zip(active, gradient):
        if np.asarray(g).dtype != np.asarray(given[k]).dtype or np.shape(g) != np.shape(given[k]):
            raise Wrong(f"gradient of a{k}: {np.asarray(g).dtype}{np.shape(g)} of "
                        f"{np.asarray(given[k]).dtype}{np.shape(given[k])}")
    if compiled:
        again = gs.jit(gs.value_and_grad(total, tuple(active)))(*copy.deepcopy(given))
        same(again[1], gradient, "compiled gradient", 1e-7)
    if any(np.asarray(g).dtype in TOLERANCE for g in given if is_active(g)):
        return precise(total, given, active, gradient)
    direction = [(rng.uniform(-1, 1, np.shape(g)) + 1j * rng.uniform(-1, 1, np.shape(g)) * np.iscomplexobj(g)).astype(
        np.asarray(g).dtype)[()] if k in active else None for k, g in enumerate(given)]
    try:
        steps = [(total(*moved(given, direction, h)) - total(*moved(given, direction, -h))) / (2 * h)
                 for h in (1e-5, 3e-6)]
        sides = [(total(*moved(given, direction, h)) - value) / h for h in (1e-7, -1e-7)]
    except ValueError:                  # the length of a result depends on values
        raise Again from None
    scale = 1 + abs(steps[0])
    if not np.all(np.isfinite(steps)) or abs(steps[0] - steps[1]) > 1e-5 * scale or abs(
            sides[0] - sides[1]) > 1e-4 * scale:
        raise Again
    slope = sum(np.real(np.sum(np.asarray(g) * direction[k])) for k, g in zip(active, gradient))
    if not abs(slope - steps[1]) <= 3e-5 * scale:
        raise Wrong(f"gradient along a direction: {slope}, by differences {steps[1]}")
    tangents = tuple(direction[k] for k in active)
    def along(*parts):
        inner = list(given)
        for k, p in zip(active, parts):
            inner[k] = p
        return total(*inner)
    if active == list(range(len(given))) and all(map(np.size, given)):
        tangent = gs.jvp(total, tuple(copy.deepcopy(given)), tangents)[1]
        if not abs(tangent - slope) <= (1e-8 if np.asarray(value).dtype.itemsize == 8 else 1e-5) * scale:
            raise Wrong(f"tangent {tangent}, by the gradient {slope}")


def second(call, given, rng):
    """The change of a gradient along a direction, against the difference of two gradients."""
    total = weighed(call, given, rng)
    active = [k for k, g in enumerate(given) if is_active(g) and np.size(g)]
    kinds = {np.asarray(given[k]).dtype for k in active}
    if total is None or not active or kinds != {np.dtype(float)}:
        return
    gradient = gs.grad(total, tuple(active))
    direction = [np.asarray(rng.uniform(-1, 1, np.shape(g)))[()] if k in active else None for k, g in enumerate(given)]
    def along(*parts):
        inner = list(given)
        for k, p in zip(active, parts):
            inner[k] = p
        return gradient(*inner)
    before = [np.asarray(given[k])[()] for k in active]
    wanted, here = [], along(*before)
    for h in (1e-4, 3e-5):
        try:
            pair = [along(*[b + s * h * direction[k] for k, b in zip(active, before)]) for s in (1, -1)]
        except (ValueError, IndexError):        # the length of a result depends on values
            raise Again from None
        if any(np.max(np.abs(np.asarray(a) - c), initial=0) > 0.1 * (1 + np.max(np.abs(c), initial=0))
               for moved in pair for a, c in zip(moved, here)):
            raise Again                         # a jump
        wanted.append([(np.asarray(a) - np.asarray(b)) / (2 * h) for a, b in zip(*pair)])
    changes = gs.jvp(along, tuple(before), tuple(direction[k] for k in active))[1]
    scale = 1 + max(np.max(np.abs(w), initial=0) for w in wanted[0])
    if not np.isfinite(scale) or any(np.max(np.abs(a - b), initial=0) > 1e-4 * scale for a, b in zip(*wanted)):
        raise Again
    for k, change, want in zip(active, changes, wanted[1]):
        if not np.allclose(change, want, rtol=0, atol=1e-3 * scale):
            raise Wrong(f"second derivative of a{k}: {np.ravel(change)[:4]}, by differences {np.ravel(want)[:4]}")


def precise(total, given, active, gradient):
    """A gradient in single precision against that in double precision."""
    wide = [np.asarray(g).astype(np.result_type(g, float))[()] if k in active else g for k, g in enumerate(given)]
    try:
        value, wanted = gs.value_and_grad(total, tuple(active))(*wide)
    except gs.TransformError:
        raise Again from None
    if np.all([np.all(np.isfinite(w)) for w in wanted]):
        scale = 1 + max(np.max(np.abs(w), initial=0) for w in wanted)
        for k, g, w in zip(active, gradient, wanted):
            if not np.allclose(g, w, rtol=0, atol=2e-3 * scale):
                raise Wrong(f"gradient of a{k} in single precision: {g}, in double {w}"[:300])


def beside(g, rng):
    """Another example of an argument, of the same kind."""
    x = np.asarray(g)
    return x * 1.01 if x.dtype.kind in "fc" else x


def batches(call, given, rng):
    arrays = [k for k, g in enumerate(given) if isinstance(g, (np.ndarray, np.generic))]
    mapped = [k for k in arrays if rng.random() < 0.6] or arrays[:1]
    if not mapped:
        return
    other = [beside(g, rng).astype(np.asarray(g).dtype) if k in mapped else g for k, g in enumerate(given)]
    first = [np.asarray(g)[()] if k in mapped else g for k, g in enumerate(given)]
    other = [np.asarray(g)[()] if k in mapped else g for k, g in enumerate(other)]
    try:
        want = [list(leaves(call(*copy.deepcopy(a)))) for a in (first, other)]
    except Exception:                   # the function itself refuses the other example
        raise Again from None
    if any(np.shape(a) != np.shape(b) or np.asarray(a).dtype != np.asarray(b).dtype for a, b in zip(*want)):
        raise Again
    axes = tuple(0 if k in mapped else None for k in range(len(given)))
    stacked = [np.stack([a, b]) if k in mapped else a for k, (a, b) in enumerate(zip(first, other))]
    got = gs.vmap(call, in_axes=axes)(*stacked)
    same(got, [np.stack([a, b]) for a, b in zip(*want)], f"vmap with in_axes={axes}")


def check(seed, rules, jit):
    rule, call, given, args, kwargs = drawn(seed, rules)
    rng = np.random.default_rng(seed)
    compiled = rng.random() * 100 < jit
    said = f"{rule.label}{shown(args, kwargs)}"
    outcomes = collections.Counter()
    want = call(*copy.deepcopy(given))

    def values():
        held = copy.deepcopy(given)
        tangents = tuple(np.zeros_like(g) for g in given)
        got = gs.jvp(call, tuple(held), tangents)[0] if all(map(is_active, given)) else gs.jit(call)(
            *held) if compiled else want
        same(got, want, "value")
        if compiled:
            same(gs.jit(call)(*copy.deepcopy(given)), want, "compiled value")
        for a, b in zip(held, given):
            if not np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind in "fc"):
                raise Wrong("an argument has changed")
    for part in (values, lambda: derivatives(call, given, rng, compiled), lambda: batches(call, given, rng),
                 lambda: second(call, given, rng)):
        try:
            part()
            outcomes["right"] += 1
        except Again:
            outcomes["not compared"] += 1
        except gs.TransformError as error:
            outcomes["refused", re.sub(r"\d+", "N", str(error).splitlines()[0])] += 1
        except Wrong as error:
            outcomes["wrong"] += 1
            print(f"WRONG seed {seed}: {said}: {error}")
        except Exception as error:
            outcomes["failed"] += 1
            print(f"FAILED seed {seed}: {said}: {type(error).__name__}: {error}"[:600])
    return outcomes


def shown(args, kwargs):
    def one(v):
        return f"{v.dtype}{list(v.shape)}" if isinstance(v, np.ndarray) else repr(v)
    return "(" + ", ".join([*map(one, args), *(f"{k}={one(v)}" for k, v in kwargs.items())])[:400] + ")"


def sampled(names=()):
    """The records whose samples are altered, those of packages that a program need not have among them."""
    for package in list(RULES.waiting):
        if importlib.util.find_spec(package.partition(".")[0]) is not None:
            importlib.import_module(package)
    RULES.complete()
    return [r for r in dict.fromkeys(RULES.values()) if r.samples is not None and not is_ours(r.function) and (
        not names or r.label in names)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed-only", type=int)
    parser.add_argument("--jit", type=float, default=0, help="per cent of the calls that are compiled, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    rules = sampled(options.names)
    seeds = range(options.start, options.start + options.count) if options.seed_only is None else [options.seed_only]
    total = collections.Counter()
    with np.errstate(all="ignore"):
        for seed in seeds:
            total += check(seed, rules, options.jit)
            if sys.stderr.isatty():
                print(f"\r{seed}", end="", file=sys.stderr, flush=True)
    refused = {k[1]: n for k, n in total.items() if isinstance(k, tuple)}
    for why, n in sorted(refused.items(), key=lambda item: -item[1])[:30]:
        print(f"{n:6} refused: {why}")
    print(f"{total['right']} right, {sum(refused.values())} refused ({len(refused)} reasons), {total['wrong']} wrong, "
          f"{total['failed']} failed, {total['not compared']} not compared")
    return bool(total["wrong"] or total["failed"])


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
