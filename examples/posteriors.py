# SPDX-License-Identifier: Apache-2.0
"""Three posteriors with known means, sampled by Hamiltonian Monte Carlo: the eight schools and two regressions.

    python examples/posteriors.py [--quick] [--no-jit] [--seed N] [--out FOLDER]

posteriordb publishes data, models and reference draws by Stan, with the Monte Carlo errors of their means.  Here each
model is a log density in plain NumPy, over parameters without bounds (log sigma for sigma).  The sampler is the same
for all of them: it takes the gradient of the density and is compiled as a whole.  A Laplace approximation, from
gs.optim and gs.hessian, gives the first scales; a first run of draws gives the final ones.
"""
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import shown
from hmc import effective_size

import gradscribe as gs

DATA = Path(__file__).resolve().parent / "data" / "posteriors.json"
LENGTH, TARGET = 1.6, 0.8               # of a trajectory in standard deviations, on average; of the acceptance
FIRST = 0.3                             # length of the first step


class Found(NamedTuple):
    """What was found for one posterior; rows of `off` are means and mean squares, in combined standard errors."""
    names: list
    mean: np.ndarray
    reference: np.ndarray
    off: np.ndarray
    effective: np.ndarray
    acceptance: float
    seconds: float
    chains: np.ndarray                  # (chain, draw, parameter)


# --- the models: what a user writes ----------------------------------------------

def cauchy(x, scale):
    return -np.log1p((x / scale) ** 2)


def eight_schools(q, data):
    """Effects theta = mu + tau z of eight schools.  D. Rubin, Estimation in parallel randomized experiments (1981)."""
    z, mu, log_tau = q[:8], q[8], q[9]
    tau = np.exp(log_tau)
    theta = mu + tau * z
    observed = np.sum(-0.5 * ((data["y"] - theta) / data["sigma"]) ** 2)
    return observed - 0.5 * np.sum(z * z) - 0.5 * (mu / 5.0) ** 2 + cauchy(tau, 5.0) + log_tau


def schools_parameters(q):
    """theta, mu, tau from draws (..., 10)."""
    tau = np.exp(q[..., 9:])
    return np.concatenate([q[..., 8:9] + tau * q[..., :8], q[..., 8:9], tau], axis=-1)


def log_earnings(q, data):
    """log earn ~ normal(beta_1 + beta_2 height, sigma).  A. Gelman, J. Hill, Data Analysis Using Regression (2006)."""
    sigma = np.exp(q[2])
    residuals = np.log(data["earn"]) - q[0] - q[1] * data["height"]
    return np.sum(-0.5 * (residuals / sigma) ** 2) - len(residuals) * q[2] + q[2]


def kid_scores(q, data):
    """score ~ normal(beta_1 + beta_2 mom_hs + beta_3 mom_iq, sigma), sigma ~ cauchy(0, 2.5).  Gelman and Hill."""
    sigma = np.exp(q[3])
    residuals = data["kid_score"] - q[0] - q[1] * data["mom_hs"] - q[2] * data["mom_iq"]
    return np.sum(-0.5 * (residuals / sigma) ** 2) - len(residuals) * q[3] + cauchy(sigma, 2.5) + q[3]


def last_is_log(q):
    """Parameters of which the last one is sampled as its logarithm."""
    return np.concatenate([q[..., :-1], np.exp(q[..., -1:])], axis=-1)


MODELS = {
    "eight_schools-eight_schools_noncentered": (eight_schools, schools_parameters, np.zeros(10)),
    "earnings-logearn_height": (log_earnings, last_is_log, np.array([9.0, 0.0, 0.0])),
    "kidiq-kidscore_momhsiq": (kid_scores, last_is_log, np.array([80.0, 0.0, 0.0, 3.0])),
}


# --- the sampler -------------------------------------------------------------------

def sampler(log_density):
    """A function that runs a chain for a density over q = centre + factor z, with steps in z.

    R. Neal, MCMC using Hamiltonian dynamics (2011), with trajectories of random length; the step by dual averaging,
    M. Hoffman and A. Gelman, The no-U-turn sampler (2014), section 3.2.
    """
    def of_z(z, centre, factor, data):
        return log_density(centre + factor @ z, data)

    height_and_slope = gs.value_and_grad(of_z)

    def sample(key, z, centre, factor, warmup, draws, data):
        """The draws of q (draws, parameters), and the mean chance of acceptance."""
        height, slope = height_and_slope(z, centre, factor, data)
        kept = np.zeros((draws, len(z)))
        accepted, log_step, log_mean, lack = 0.0, np.log(FIRST), 0.0, 0.0
        for i in range(warmup + draws):
            key, of_momentum, of_choices = gs.random.split(key, 3)
            p = gs.random.normal(of_momentum, z.shape)
            u = gs.random.uniform(of_choices, (2,))
            step = np.exp(log_step)
            z_new, p_new, height_new, slope_new = z, p, height, slope
            for _ in range(min(200, max(1, int(LENGTH * (0.5 + u[0]) / step)))):
                p_new = p_new + 0.5 * step * slope_new
                z_new = z_new + step * p_new
                height_new, slope_new = height_and_slope(z_new, centre, factor, data)
                p_new = p_new + 0.5 * step * slope_new
            gain = height_new - height - 0.5 * (p_new @ p_new - p @ p)
            chance = np.exp(min(0.0, gain)) if np.isfinite(gain) else 0.0
            if u[1] < chance:
                z, height, slope = z_new, height_new, slope_new
            if i < warmup:
                lack += (TARGET - chance - lack) / (i + 11)
                log_step = np.log(10 * FIRST) - np.sqrt(i + 1) / 0.05 * lack
                weight = (i + 1) ** -0.75
                log_mean = weight * log_step + (1 - weight) * log_mean
                if i == warmup - 1:
                    log_step = log_mean
            else:
                kept[i - warmup] = centre + factor @ z
                accepted += chance / draws
        return kept, accepted
    return sample


def laplace(log_density, start, data):
    """The mode of a density, and a factor of the inverse of minus the Hessian there."""
    found = gs.optim.minimize(lambda q, data: -log_density(q, data), start, (data,), method="Newton-CG", tol=1e-8)
    return found.x, np.linalg.cholesky(np.linalg.inv(-gs.hessian(log_density)(found.x, data)))


def posterior(name, given, key, warmup, draws, number, jit):
    """The draws for one posterior, and what is known of it."""
    log_density, parameters, start = MODELS[name]
    data = {k: np.array(v, float) for k, v in given["data"].items()}
    centre, factor = laplace(log_density, start, data)
    sample: Any = sampler(log_density)
    run = gs.jit(sample) if jit else sample
    first, *keys = gs.random.split(key, 1 + number)
    rough, _ = run(first, np.zeros(len(centre)), centre, factor, warmup, 2 * warmup, data)
    centre, factor = rough.mean(axis=0), np.linalg.cholesky(np.cov(rough.T))
    begun = time.perf_counter()
    found = [run(k, np.zeros(len(centre)), centre, factor, warmup, draws, data) for k in keys]
    seconds = time.perf_counter() - begun
    chains = parameters(np.stack([kept for kept, _ in found]))

    off, effective = [], []
    for power, mean, error in ((1, "mean", "mean_error"), (2, "mean_square", "mean_square_error")):
        values = chains ** power
        sizes = np.array([effective_size(values[:, :, k]) for k in range(values.shape[2])])
        own = values.std(axis=(0, 1)) / np.sqrt(sizes)
        off.append((values.mean(axis=(0, 1)) - given[mean]) / np.hypot(own, given[error]))
        effective.append(sizes)
    return Found(given["names"], chains.mean(axis=(0, 1)), np.array(given["mean"]), np.array(off), effective[0],
                 float(np.mean([a for _, a in found])), seconds, chains)


# --- what the user sees --------------------------------------------------------------

def show(name, found):
    shown.title(name)
    print(f"{found.chains.shape[0]} chains of {found.chains.shape[1]} draws in {found.seconds:.2f} s, acceptance "
          f"{100 * found.acceptance:.0f}%, {found.effective.min() / found.seconds:,.0f} effective draws a second")
    print(f"{'':12}{'mean':>12}{'reference':>12}{'off by':>9}{'of squares':>12}{'effective':>11}")
    for k, label in enumerate(found.names):
        print(f"{label:12}{found.mean[k]:12.4f}{found.reference[k]:12.4f}{found.off[0, k]:9.2f}{found.off[1, k]:12.2f}"
              f"{found.effective[k]:11.0f}")


def draw(results, folder):
    drawn = shown.figure(11, 3.5)
    if drawn is None:
        return
    for axes, (name, found) in zip(drawn.subplots(1, len(results)), results.items()):
        places = np.arange(len(found.names))
        axes.axvspan(-2, 2, color="0.93")
        axes.plot(found.off[0], places, "o", label="mean")
        axes.plot(found.off[1], places, "x", label="mean square")
        axes.set(title=name.partition("-")[0], xlim=(-4.5, 4.5), xlabel="off by so many standard errors")
        axes.set_yticks(places, found.names)
        axes.invert_yaxis()
    axes.legend()
    shown.save(drawn, folder, "posteriors.png")


def main(words=None):
    given = shown.options(__doc__).parse_args(words)
    warmup, draws, number = (300, 1000, 2) if given.quick else (500, 5000, 4)
    if given.no_jit:
        warmup, draws = 100, 200
    known = json.loads(DATA.read_text(encoding="utf-8"))
    results = {}
    for name, key in zip(MODELS, gs.random.split(gs.random.key(given.seed), len(MODELS))):
        results[name] = posterior(name, known[name], key, warmup, draws, number, not given.no_jit)
        show(name, results[name])
    worst = max(np.max(np.abs(found.off)) for found in results.values())
    shown.title("all")
    print(f"No mean is off by more than {worst:.2f} of its standard errors.")
    draw(results, given.out)
    return results


if __name__ == "__main__":
    main()
