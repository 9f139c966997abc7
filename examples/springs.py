# SPDX-License-Identifier: Apache-2.0
"""A chain of masses and springs is fitted to noisy measurements, through the loop that simulates it.

    python examples/springs.py [--quick] [--no-jit] [--seed N] [--out FOLDER]

The simulator is a loop of explicit steps that writes into its arrays.  Four numbers are not known: the stiffness of the
springs and how they harden, the damping, and how far the first masses were pulled aside.  Three sensors are read 200
times, with noise.  `fit` finds the numbers by Levenberg and Marquardt's method, with the Jacobian by forward mode
through the simulator; all of it is compiled as one function.  Simulated measurements, fitted again, say whether the
standard errors are right.
"""
import time
from typing import NamedTuple

import numpy as np
import shown

import gradscribe as gs

NAMES = ("stiffness", "hardening", "damping", "pull")
TRUE = np.array([4.0, 1.5, 0.15, 1.2])
START = np.array([2.0, 0.5, 0.5, 0.8])
MASSES, PULLED = 16, 5
SENSORS = np.array([3, 8, 14])
STEP, EVERY = 0.02, 10              # seconds; steps between two readings
NOISE = 0.05


class Result(NamedTuple):
    fitted: np.ndarray
    errors: np.ndarray              # standard errors, by the Jacobian
    spread: np.ndarray              # standard deviations of the repeated fits
    chi2: float
    readings: int
    first_call: float               # seconds
    later_call: float


# --- the simulator and the fit: what a user writes -----------------------------

def simulate(theta, readings):
    """Displacements at the sensors, (readings, 3): the springs' force is k e + h e³, the damping's -c v.

    The semi-implicit Euler method.  Both ends of the chain are fixed.
    """
    stiffness, hardening, damping, pull = theta
    u = np.zeros(MASSES + 2)
    v = np.zeros(MASSES + 2)
    u[1:PULLED + 1] = pull * np.arange(1, PULLED + 1) / PULLED
    seen = np.zeros((readings, len(SENSORS)))
    for step in range(readings * EVERY):
        stretch = u[1:] - u[:-1]
        force = stiffness * stretch + hardening * stretch**3
        v[1:-1] += STEP * (force[1:] - force[:-1] - damping * v[1:-1])
        u[1:-1] += STEP * v[1:-1]
        if (step + 1) % EVERY == 0:
            seen[step // EVERY] = u[SENSORS]
    return seen


def residual(theta, data):
    """What is measured and not explained, in units of the noise."""
    return ((simulate(theta, len(data)) - data) / NOISE).ravel()


def fit(theta, data):
    return gs.optim.levenberg_marquardt(residual, theta, (data,), gtol=1e-4)


# --- what the user sees ----------------------------------------------------------

def draw(data, fitted, folder):
    drawn = shown.figure(9, 6)
    if drawn is None:
        return
    t = STEP * EVERY * np.arange(1, len(data) + 1)
    for k, axes in enumerate(drawn.subplots(len(SENSORS), 1, sharex=True)):
        axes.plot(t, data[:, k], ".", color="0.5", markersize=4, label="measured")
        axes.plot(t, simulate(START, len(data))[:, k], ":", color="tab:orange", label="first guess")
        axes.plot(t, simulate(fitted, len(data))[:, k], color="tab:blue", label="fitted")
        axes.set_ylabel(f"mass {SENSORS[k]}")
        if k == 0:
            axes.legend(ncols=3, loc="upper right")
            axes.set_title("displacements of a chain of masses and springs")
        if k == len(SENSORS) - 1:
            axes.set_xlabel("time, s")
    shown.save(drawn, folder, "springs.png")


def main(words=None):
    given = shown.options(__doc__).parse_args(words)
    readings, repeats = (75, 20) if given.quick else (200, 100)
    rng = np.random.default_rng(given.seed)
    data = simulate(TRUE, readings) + NOISE * rng.standard_normal((readings, len(SENSORS)))

    shown.title(f"{data.size} measurements of {MASSES} masses, {readings * EVERY} steps of simulation")
    solve = fit if given.no_jit else gs.jit(fit)
    start = time.perf_counter()
    solve(START, data)
    first_call = time.perf_counter() - start
    start = time.perf_counter()
    found = solve(START, data)
    later_call = time.perf_counter() - start
    print(f"{found.nit} steps of Levenberg and Marquardt, success: {found.success}")
    print(f"First call {first_call:.2f} s{'' if given.no_jit else ' with compilation'}, "
          f"later {1e3 * later_call:.1f} ms: {1e3 * later_call / found.nfev:.2f} ms a step, Jacobian included.")

    J = gs.jacfwd(residual)(found.x, data)
    errors = np.sqrt(np.diag(np.linalg.inv(J.T @ J)))
    clean, again = simulate(found.x, readings), []
    for _ in shown.progress(range(repeats), "fits of measurements simulated with the fitted numbers"):
        again.append(solve(found.x, clean + NOISE * rng.standard_normal(data.shape)).x)
    spread = np.std(again, axis=0, ddof=1)

    chi2 = 2.0 * float(found.fun)
    shown.title("what was found")
    print(f"{'':12}{'true':>10}{'fitted':>10}{'± J':>10}{'± again':>10}{'off by':>12}")
    for name, *numbers in zip(NAMES, TRUE, found.x, errors, spread, (found.x - TRUE) / errors):
        print(f"{name:12}" + "".join(f"{v:10.4f}" for v in numbers[:4]) + f"{numbers[4]:9.2f} sd")
    print(f"chi² {chi2:.1f} for {data.size - len(TRUE)} degrees of freedom")
    draw(data, found.x, given.out)
    return Result(found.x, errors, spread, chi2, data.size, first_call, later_call)


if __name__ == "__main__":
    main()
