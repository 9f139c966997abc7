# SPDX-License-Identifier: Apache-2.0
"""The picture of the guide to error bounds: the bound and the true error of (1 - cos x) / x^2 and of its derivative.

python docs/pictures/error_bounds.py writes error_bounds.png beside this file.
"""
from pathlib import Path

import matplotlib
import mpmath
import numpy as np

import gradscribe as gs

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def f(x):
    return (1.0 - np.cos(x)) / x ** 2


def stable(x):
    s = np.sin(0.5 * x)
    return 0.5 * (s / (0.5 * x)) ** 2


def exact(x):
    return (1 - mpmath.cos(x)) / x ** 2


def slope(x):
    return mpmath.sin(x) / x ** 2 - 2 * (1 - mpmath.cos(x)) / x ** 3


def main():
    x = np.logspace(-7, 0.5, 400)
    figure, panels = plt.subplots(1, 3, figsize=(10, 3.4), sharex=True, layout="constrained")
    for axes, made, true, title in zip(panels, (f, gs.vmap(gs.grad(f)), stable), (exact, slope, exact), (
            r"$(1 - \cos x) / x^2$", "its gradient", r"$\sin(x/2)^2 / (x^2/2)$")):
        value, bound = gs.error_bound(made)(x)
        with mpmath.workdps(60):
            error = [float(abs(mpmath.mpf(v) - true(mpmath.mpf(t)))) for v, t in zip(value, x)]
        axes.loglog(x, bound, color="tab:red", label="bound")
        axes.loglog(x, error, ".", color="tab:blue", markersize=3, label="true error")
        axes.loglog(x, np.abs(value), color="0.6", linewidth=1, label="value")
        axes.set(title=title, xlabel="x")
        axes.grid(alpha=0.3)
    panels[0].legend()
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
