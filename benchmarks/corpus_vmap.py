"""The corpus over batches: vmap of the function, vmap of its gradient and the gradient of its vmap against loops.

python benchmarks/corpus_vmap.py            every function; how many agree, are refused, differ
python benchmarks/corpus_vmap.py --jit      the same, compiled
"""
import argparse
import collections
import copy
import sys
import warnings
from pathlib import Path

import numpy as np
from rule_calls import from_text

import gradscribe as gs

HERE = Path(__file__).resolve().parent
WIDTH = 3


def batched(value, axes):
    """A batch of arguments near a value, and where its axis is: numbers and arrays of floats are mapped."""
    if isinstance(value, (list, tuple)):
        pairs = [batched(v, axes) for v in value]
        if hasattr(value, "_fields"):
            return type(value)(*[p[0] for p in pairs]), type(value)(*[p[1] for p in pairs])
        return type(value)(p[0] for p in pairs), type(value)(p[1] for p in pairs)
    if isinstance(value, dict):
        pairs = {k: batched(v, axes) for k, v in value.items()}
        return {k: p[0] for k, p in pairs.items()}, {k: p[1] for k, p in pairs.items()}
    if isinstance(value, (float, complex)) or isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        value = np.asarray(value)
        scale = 1 + 0.002 * np.arange(WIDTH).reshape(WIDTH, *[1] * value.ndim)
        return (value * scale).astype(value.dtype), 0
    return value, None


def one(value, axis, k):
    if axis == 0 and isinstance(value, np.ndarray):
        return value[k].copy() if value.ndim > 1 else value[k].item()
    if isinstance(value, (list, tuple)) and isinstance(axis, (list, tuple)):
        items = [one(v, a, k) for v, a in zip(value, axis)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict) and isinstance(axis, dict):
        return {n: one(v, axis[n], k) for n, v in value.items()}
    return value


def flat(value):
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in flat(v)]
    if isinstance(value, dict):
        return [x for v in value.values() for x in flat(v)]
    if hasattr(value, "__dataclass_fields__"):
        return [x for n in value.__dataclass_fields__ for x in flat(getattr(value, n))]
    return [np.asarray(value)] if value is not None else []


def same(got, rows, what):
    got, rows = flat(got), [flat(r) for r in rows]
    assert all(len(got) == len(r) for r in rows), f"{what}: {len(got)} results for {len(rows[0])}"
    for k, a in enumerate(got):
        b = np.stack([r[k] for r in rows])
        assert a.shape == b.shape, f"{what}: shape {a.shape} for {b.shape}"
        assert np.allclose(a, b, rtol=1e-8, atol=1e-8, equal_nan=True), f"{what}: {a} for {b}"


def check(case, compiled):
    """-> {what: outcome}"""
    f, args, argnums = case.func, case.args, case.argnums
    wrap = gs.jit if compiled else lambda g: g
    pairs = [batched(a, None) for a in args]
    values, axes = [p[0] for p in pairs], tuple(p[1] for p in pairs)
    names = ", ".join(f"a{k}" for k in range(len(args)))
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    whole = from_text(f"def whole({names}):\n    return np.sum(g({names}))\n", "whole", {"g": gs.vmap(f, axes)})
    found = {}

    def loop(g):
        return [g(*(one(copy.deepcopy(v), a, k) for v, a in zip(values, axes))) for k in range(WIDTH)]

    def total():
        got = wrap(gs.grad(whole, numbers))(*copy.deepcopy(values))
        rows = loop(gs.grad(f, numbers))
        same(got, rows, "grad of vmap")
    for what, make in (("vmap", lambda: same(wrap(gs.vmap(f, axes))(*copy.deepcopy(values)), loop(f), "vmap")),
                       ("vmap of grad", lambda: same(wrap(gs.vmap(gs.grad(f, numbers), axes))(*copy.deepcopy(values)),
                                                     loop(gs.grad(f, numbers)), "vmap of grad")),
                       ("grad of vmap", total)):
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                make()
            found[what] = "right", ""
        except gs.TransformError as error:
            found[what] = "refused", " ".join(str(error).split())[:150]
        except AssertionError as error:
            found[what] = "wrong", str(error).replace("\n", " ")[:150]
        except Exception as error:
            found[what] = "failed", f"{type(error).__name__}: {error}".replace("\n", " ")[:150]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jit", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(HERE.parent / "tests" / "corpus"))
    import check as corpus
    (module,), cases = corpus.load_corpus("")
    module.grad = lambda f, argnums=0: gs.grad(f, argnums)
    counts = collections.defaultdict(collections.Counter)
    for case in cases:
        if options.names and case.name not in options.names:
            continue
        for what, (kind, detail) in check(case, options.jit).items():
            counts[what][kind] += 1
            if kind != "right":
                print(f"{case.name}: {what}: {kind}: {detail}")
    for what, count in counts.items():
        print(f"{what}: {dict(count)}")
    return any(c["wrong"] or c["failed"] for c in counts.values())


if __name__ == "__main__":
    sys.exit(main())
