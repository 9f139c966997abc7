# SPDX-License-Identifier: Apache-2.0
"""The picture of the guide to sparse derivatives.

python docs/pictures/sparse.py writes sparse.png beside this file.
"""
from pathlib import Path

import matplotlib
import numpy as np

import gradscribe as gs

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def laplacian(w):
    return np.roll(w, 1, 0) + np.roll(w, -1, 0) + np.roll(w, 1, 1) + np.roll(w, -1, 1) - 4 * w


def brusselator(u):
    x, y = u[0], u[1]
    return np.stack([1.0 + x * x * y - 4.4 * x + 10.0 * laplacian(x), 3.4 * x - x * x * y + 10.0 * laplacian(y)])


def main():
    u = np.random.default_rng(0).uniform(size=(2, 6, 6))
    jacobian = gs.sparse.jacfwd(brusselator, compile=False)
    pattern, found = jacobian.pattern(u).tocoo(), jacobian.coloring(u)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4.6), width_ratios=[72, 24], layout="constrained")
    color = found.colors[pattern.col]
    for axes, column, title in ((left, pattern.col, "72 columns"), (right, color, f"{found.count} products")):
        axes.scatter(column, pattern.row, c=color, cmap="tab20", s=7, marker="s")
        axes.set(title=title, xlim=(-1, column.max() + 1), ylim=(72, -1), yticks=[], xticks=[])
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
