# SPDX-License-Identifier: Apache-2.0
"""The picture of docs/howto/taylor.md: Taylor polynomials of a function, and the steps along an orbit.

python docs/pictures/taylor.py        writes taylor.png beside this file; needs Matplotlib
"""
from pathlib import Path

import matplotlib as mpl
import numpy as np

import gradscribe as gs
from gradscribe.experimental import ode

mpl.use("Agg")
import matplotlib.pyplot as plt


def f(x):
    return np.tanh(2 * x) * np.cos(3 * x)


def kepler(u, t):
    r2 = u[0] * u[0] + u[1] * u[1]
    r3 = r2 * np.sqrt(r2)
    return np.array([u[2], u[3], -u[0] / r3, -u[1] / r3])


def polynomials(axes):
    x0, x = 0.4, np.linspace(-1, 1.6, 400)
    value, terms = gs.jet(f, (x0,), ((1.0,) + 7 * (0.0,),), factorial_scaled=False)
    axes.plot(x, f(x), color="black", label="f")
    for order, color in ((1, "#c6dbef"), (2, "#9ecae1"), (4, "#4292c6"), (8, "#08519c")):
        axes.plot(x, np.polyval([*terms[:order][::-1], value], x - x0), color=color, label=f"order {order}")
    axes.plot([x0], [value], "o", color="black")
    axes.set(ylim=(-1.5, 1.5), xlabel="x", title="gs.jet: Taylor polynomials at 0.4")
    axes.legend(frameon=False)


def orbit(axes):
    u, t, order, tol = np.array([0.5, 0.0, 0.0, np.sqrt(3.0)]), 0.0, 10, 1e-10
    made, places = ode.solution_of(kepler, order), [u]
    while t < 6.2:
        terms = np.stack(made(u, t))
        last = [np.max(np.abs(terms[k])) ** (-1 / (k + 1)) for k in (-1 % order, -2 % order)]
        h = min(last) * np.exp(-0.7 / (order - 1)) * tol ** (1 / order)
        for s in np.linspace(0, h, 8)[1:]:
            part = u + s ** np.arange(1, order + 1) @ terms
            axes.plot(*zip(places[-1][:2], part[:2]), color="#4292c6")
            places.append(part)
        u, t = places[-1], t + h
        axes.plot(*u[:2], "o", color="#08519c", markersize=4)
    axes.plot(0, 0, "*", color="#d94801", markersize=12)
    axes.set(aspect="equal", title="ode.taylor: steps of order 10 along an orbit")


if __name__ == "__main__":
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    polynomials(left)
    orbit(right)
    figure.tight_layout()
    figure.savefig(Path(__file__).with_name("taylor.png"), dpi=80)
