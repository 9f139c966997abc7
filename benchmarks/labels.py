# SPDX-License-Identifier: Apache-2.0
"""What a call with pandas', xarray's and pint's objects costs, beside one with arrays: medians in microseconds.

Run: python benchmarks/labels.py
"""
import statistics
import time

import numpy as np
import pandas as pd
import pint
import xarray as xr

import gradscribe as gs

ROUNDS, CALLS = 15, 50


def squares(x):
    return np.sum(x ** 2)


def misfit(w, X, y):
    return np.mean((X @ w - y) ** 2)


def by_turns(functions):
    """The median time of each function, called by turns."""
    for function in functions:
        function()
    times = [[] for _ in functions]
    for _ in range(ROUNDS):
        for function, found in zip(functions, times):
            begun = time.perf_counter()
            for _ in range(CALLS):
                function()
            found.append(1e6 * (time.perf_counter() - begun) / CALLS)
    return [statistics.median(found) for found in times]


def main():
    numbers = np.linspace(0.0, 1.0, 1000)
    series, array = pd.Series(numbers), xr.DataArray(numbers, dims="t")
    unit = pint.UnitRegistry()
    quantity = unit.Quantity(numbers, "m")
    slope, fit = gs.grad(squares), gs.grad(misfit)
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(1000, 10)), columns=list("abcdefghij"))
    y, w = pd.Series(numbers), pd.Series(np.ones(10), index=X.columns)
    plain = w.to_numpy(), X.to_numpy(), y.to_numpy()
    cases = {
        "sum of squares, Series": (lambda: slope(numbers), lambda: slope(series),
                                   lambda: pd.Series(slope(series.to_numpy()), index=series.index),
                                   lambda: squares(series)),
        "sum of squares, DataArray": (lambda: slope(numbers), lambda: slope(array),
                                      lambda: array.copy(data=slope(array.values)), lambda: squares(array)),
        "sum of squares, Quantity": (lambda: slope(numbers), lambda: slope(quantity),
                                     lambda: unit.Quantity(slope(quantity.magnitude), quantity.units),
                                     lambda: squares(quantity)),
        "least squares, DataFrame": (lambda: fit(*plain), lambda: fit(w, X, y),
                                     lambda: pd.Series(fit(w.to_numpy(), X.to_numpy(), y.to_numpy()), index=w.index),
                                     lambda: misfit(w, X, y)),
    }
    for name, functions in cases.items():
        print(f"| {name} | {' | '.join(f'{t:.0f}' for t in by_turns(functions))} |")


if __name__ == "__main__":
    main()
