# SPDX-License-Identifier: Apache-2.0
"""The corpus and the benchmark problems on target="cuda", on a device or where there is none: what is right, what not.

    python benchmarks/simulated.py [--backend cuda|mlir|simulator|twin|plain] [--only hmm,corpus] [--single]

Without a word for it, on the device where there is one, else in Numba's simulator, where each thread of a block is a
thread of Python's.  Problems are of size S, their values and gradients held against those that are not compiled.  Ends
with 1 if anything is wrong; what is refused is counted by itself.
"""
import argparse
import importlib
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
CANCELS = {"lse": 1.0}                  # what is subtracted there for the largest entry's derivative is near 1


def variants():
    """(problem, variant) of all problems."""
    from suite import PROBLEMS
    return [(name, variant) for name in PROBLEMS for variant in importlib.import_module(f"problems.{name}").variants]


def cast(value, dtype):
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(dtype)
    if isinstance(value, (list, tuple)):
        return type(value)(cast(v, dtype) for v in value)
    return value


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in leaves(v)]
    return [np.asarray(value.get() if hasattr(value, "get") else value)]


def error_of(name, variant, dtype):
    """The largest difference of a problem's value and gradient from the uncompiled ones, over the largest entry of
    each; infinite where shapes or dtypes differ.
    """
    import gradscribe as gs
    module = importlib.import_module(f"problems.{name}")
    args = cast(module.make_inputs("S"), dtype)
    f = gs.value_and_grad(module.variants[variant], module.argnums)
    expected, found = leaves(f(*args)), leaves(gs.jit(f, target="cuda")(*args))
    pairs = list(zip(found, expected))
    if len(found) != len(expected) or any(a.shape != b.shape or a.dtype != b.dtype for a, b in pairs):
        return np.inf
    return max(float(np.max(np.abs(a - b), initial=0) / CANCELS.get(name, np.max(np.abs(b), initial=1e-300)))
               for a, b in pairs)


def allowed(dtype):
    return 1e-11 if dtype is np.float64 else 2e-5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=["cuda", "mlir", "simulator", "twin", "plain"])
    parser.add_argument("--only", default="", help="problems, or corpus, with commas between")
    parser.add_argument("--single", action="store_true", help="problems in single precision")
    options = parser.parse_args()
    from gradscribe.runtime import device  # which does not import Numba
    options.backend = options.backend or ("cuda" if device.has_device() else "simulator")
    os.environ["GRADSCRIBE_CUDA"], os.environ["GRADSCRIBE_CACHE"] = options.backend, "off"
    if options.backend == "simulator":
        os.environ["NUMBA_ENABLE_CUDASIM"] = "1"            # Numba looks at it when it is imported
    warnings.simplefilter("ignore")
    sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "corpus")]
    assert device.chosen() == options.backend
    only, wrong = set(filter(None, options.only.split(","))), 0
    dtype = np.float32 if options.single else np.float64
    for name, variant in variants():
        if only and name not in only:
            continue
        begin = time.perf_counter()
        error = error_of(name, variant, dtype)
        right = error <= allowed(dtype)
        wrong += not right
        print(f"{name:14} {variant:6} {'right' if right else 'WRONG'} {error:8.0e} "
              f"{time.perf_counter() - begin:6.1f} s", flush=True)
    print(f"problems: {wrong} wrong, {options.backend}, {np.dtype(dtype)}", flush=True)
    if not only or "corpus" in only:
        import check
        rows = HERE.parent / "build" / "corpus_on_device.json"
        rows.parent.mkdir(exist_ok=True)
        check.main([str(HERE / "corpus_tool_device.py"), "--timeout", "600", "--json", str(rows)])
        wrong += sum(r["status"] not in ("pass", "skip") and "LanguageError" not in r["detail"]
                     for r in json.loads(rows.read_text())["cases"])
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
