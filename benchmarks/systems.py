"""Stacks of small systems and eigenvalues, compiled, against NumPy's own functions: microseconds a call.

    python benchmarks/systems.py [solve inv det slogdet cholesky eigvalsh eigvals]

Both run in turns; a time is the least of five rounds.  One thread.
"""
import os
import sys
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np  # noqa: E402

import gradscribe as gs  # noqa: E402

FUNCTIONS = {
    "solve": lambda a, b: np.linalg.solve(a, b),
    "inv": lambda a, b: np.linalg.inv(a),
    "det": lambda a, b: np.linalg.det(a),
    "slogdet": lambda a, b: np.linalg.slogdet(a)[1],
    "cholesky": lambda a, b: np.linalg.cholesky(a @ np.swapaxes(a, -1, -2) + np.eye(a.shape[-1])),
    "eigvalsh": lambda a, b: np.linalg.eigvalsh(a),
    "eigvals": lambda a, b: np.linalg.eigvals(a),
}


def least(functions, args):
    best = [float("inf")] * len(functions)
    for _ in range(5):
        for k, f in enumerate(functions):
            n, start = 0, time.perf_counter()
            while time.perf_counter() - start < 0.02:
                f(*args)
                n += 1
            best[k] = min(best[k], (time.perf_counter() - start) / n)
    return best


def main():
    rng = np.random.default_rng(0)
    print(f"{'':10}{'rows':>6}{'matrices':>10}{'NumPy us':>11}{'ours us':>10}{'NumPy/ours':>12}")
    for name in sys.argv[1:] or FUNCTIONS:
        f, compiled = FUNCTIONS[name], gs.jit(FUNCTIONS[name])
        for n in (3, 6, 10, 16, 32):
            for count in (1, 128):
                args = rng.normal(size=(count, n, n)), rng.normal(size=(count, n, 1))
                a, b = least((f, compiled), args) if np.allclose(f(*args), compiled(*args)) or name == "eigvals" else (
                    float("nan"), float("nan"))
                print(f"{name:10}{n:6}{count:10}{a * 1e6:11.1f}{b * 1e6:10.1f}{a / b:12.1f}", flush=True)


if __name__ == "__main__":
    main()
