# SPDX-License-Identifier: Apache-2.0
"""Five posteriors with known means by the No-U-Turn sampler: regressions, the eight schools, hares, a Gaussian process.

    python examples/posteriors.py [--quick] [--no-jit] [--seed N] [--out FOLDER]

posteriordb publishes data, models and reference draws by Stan, with the Monte Carlo errors of their means.  Here each
model is a log density in plain NumPy, over parameters without bounds (log sigma for sigma).  One sampler, samplers.py,
serves them all: it takes the gradient of the density, through the solver of the differential equation and the
factorisation of the covariance, and a draw is compiled as a whole.  Beside it, trajectories of a fixed length.
"""
import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import samplers
import shown

import gradscribe as gs

DATA = Path(__file__).resolve().parent / "data" / "posteriors.json"
QUICK = ("eight_schools-eight_schools_noncentered", "hudson_lynx_hare-lotka_volterra")
STEPS = 8                               # of the solver in a year


class Found(NamedTuple):
    """What was found for one posterior; rows of `off` are means and mean squares, in combined standard errors."""
    names: list
    mean: np.ndarray
    reference: np.ndarray
    off: np.ndarray
    effective: np.ndarray               # bulk effective sample sizes
    r_hat: np.ndarray
    chain: samplers.Chain               # with a leading axis for the chain
    parameters: np.ndarray              # (chain, draw, parameter)
    per_gradient: tuple                 # the least effective size of a mean or mean square: of this, of fixed lengths
    seconds: float


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


def hares(z, alpha, beta, gamma, delta):
    """The growth of hares and lynxes.  A. Lotka, Elements of Physical Biology (1925); V. Volterra (1926)."""
    return np.stack([(alpha - beta * z[1]) * z[0], (delta * z[0] - gamma) * z[1]])


def lotka_volterra(q, data):
    """Pelts of hares and lynxes in 1900-1920, with errors of their logarithms; q: logarithms of all parameters.

    B. Carpenter, Predator-prey population dynamics: the Lotka-Volterra model in Stan (2018).  Solved by Runge and
    Kutta's method.
    """
    positive = np.exp(q)
    alpha, beta, gamma, delta = positive[0], positive[1], positive[2], positive[3]
    z, sigma, observed, h = positive[4:6], positive[6:], data["y"], 1.0 / STEPS
    off = (np.log(data["y_init"]) - q[4:6]) / sigma
    density = -0.5 * np.sum(off ** 2)
    for year in range(len(observed)):
        for _ in range(STEPS):
            k_1 = hares(z, alpha, beta, gamma, delta)
            k_2 = hares(z + 0.5 * h * k_1, alpha, beta, gamma, delta)
            k_3 = hares(z + 0.5 * h * k_2, alpha, beta, gamma, delta)
            k_4 = hares(z + h * k_3, alpha, beta, gamma, delta)
            z = z + h / 6.0 * (k_1 + 2.0 * k_2 + 2.0 * k_3 + k_4)
        off = (np.log(observed[year]) - np.log(z)) / sigma
        density -= 0.5 * np.sum(off ** 2)
    density -= (len(observed) + 1) * np.sum(q[6:])
    density -= 0.5 * (((alpha - 1.0) / 0.5) ** 2 + ((gamma - 1.0) / 0.5) ** 2)
    density -= 0.5 * (((beta - 0.05) / 0.05) ** 2 + ((delta - 0.05) / 0.05) ** 2)
    density -= 0.5 * np.sum((q[6:] + 1.0) ** 2) + 0.5 * np.sum((q[4:6] - np.log(10.0)) ** 2)
    return density + np.sum(q[:4])      # theta has its density, sigma and z_init those of their logarithms


def factor(q, data):
    """The factor of the covariance of f, by the length rho and the height alpha: q[0] and q[1] are their logarithms."""
    x = data["x"]
    squares = ((x[:, None] - x[None, :]) / np.exp(q[0])) ** 2
    return np.linalg.cholesky(np.exp(2.0 * q[1] - 0.5 * squares) + 1e-10 * np.eye(len(x)))


def gaussian_process(q, data):
    """Counts k ~ poisson(exp(f)), f a Gaussian process of x; rho ~ gamma(25, 4), alpha ~ normal(0, 2).

    Where rho or alpha is above 54, at the end of steps that are too long, the covariance is singular to rounding; the
    priors leave less than 1e-60 of the probability there.
    """
    if not (q[0] < 4.0 and q[1] < 4.0):
        return -np.inf
    f = factor(q, data) @ q[2:]
    counts = np.sum(data["k"] * f - np.exp(f))
    priors = 25.0 * q[0] - 4.0 * np.exp(q[0]) - 0.125 * np.exp(2.0 * q[1]) + q[1]
    return counts + priors - 0.5 * np.sum(q[2:] ** 2)


def process_parameters(q, data):
    """rho, alpha, f from draws (..., 2 + points)."""
    flat = q.reshape(-1, q.shape[-1])
    f = np.stack([factor(row, data) @ row[2:] for row in flat])
    return np.concatenate([np.exp(flat[:, :2]), f], axis=1).reshape(q.shape)


# a log density, the published parameters from those of the density, a start
MODELS = {
    "eight_schools-eight_schools_noncentered": (eight_schools, lambda q, _: schools_parameters(q), np.zeros(10)),
    "earnings-logearn_height": (log_earnings, lambda q, _: last_is_log(q), np.array([9.0, 0.0, 0.0])),
    "kidiq-kidscore_momhsiq": (kid_scores, lambda q, _: last_is_log(q), np.array([80.0, 0.0, 0.0, 3.0])),
    "hudson_lynx_hare-lotka_volterra": (lotka_volterra, lambda q, _: np.exp(q),
                                        np.log([0.5, 0.03, 0.8, 0.03, 30.0, 6.0, 0.3, 0.3])),
    "gp_pois_regr-gp_pois_regr": (gaussian_process, process_parameters, np.concatenate([[1.8, 0.5], np.zeros(11)])),
}


# --- the draws ----------------------------------------------------------------------

def read(given):
    """The data of a posterior as arrays."""
    return {name: np.array(values, float) for name, values in given["data"].items()}


def chains_of(sample, start, keys, warmup, draws, data, what):
    """Chains from near the start, the seconds that they took, without compilation."""
    sample(keys[0], start, 2, 2, data)
    begun = time.perf_counter()
    found = []
    for key in shown.progress(list(keys), what):
        of_start, of_chain = gs.random.split(key, 2)
        moved = start + 0.1 * np.asarray(gs.random.normal(of_start, start.shape)) * np.maximum(1e-2, abs(start))
        found.append(sample(of_chain, moved, warmup, draws, data))
    return samplers.together(found), time.perf_counter() - begun


def sizes_of(values):
    """The effective sample size of each mean of values (chain, draw, parameter)."""
    return np.array([samplers.effective_size(values[:, :, k]) for k in range(values.shape[2])])


def least_size(values):
    """The least effective sample size of the means and mean squares."""
    return float(min(np.min(sizes_of(values)), np.min(sizes_of(values ** 2))))


def posterior(name, given, key, warmup, draws, number, jit):
    """The draws for one posterior, and what is known of it."""
    log_density, parameters, start = MODELS[name]
    data = read(given)
    keys = gs.random.split(key, number)
    chain, seconds = chains_of(samplers.sampler(log_density, jit=jit), start, keys, warmup, draws, data, "chain")
    fixed, _ = chains_of(samplers.sampler(log_density, samplers.fixed_length, jit), start, keys, warmup, draws, data,
                         "chain of fixed length")
    values = parameters(chain.draws, data)
    off = []
    for power, mean, error in ((1, "mean", "mean_error"), (2, "mean_square", "mean_square_error")):
        powers = values ** power
        own = powers.std(axis=(0, 1)) / np.sqrt(sizes_of(powers))
        off.append((powers.mean(axis=(0, 1)) - given[mean]) / np.hypot(own, given[error]))
    per_gradient = (least_size(values) / chain.gradients.sum(),
                    least_size(parameters(fixed.draws, data)) / fixed.gradients.sum())
    by_parameter = [values[:, :, k] for k in range(values.shape[2])]
    return Found(given["names"], values.mean(axis=(0, 1)), np.array(given["mean"]), np.array(off),
                 np.array([samplers.bulk_size(v) for v in by_parameter]),
                 np.array([samplers.r_hat(v) for v in by_parameter]), chain, values, per_gradient, seconds)


# --- what the user sees --------------------------------------------------------------

def show(name, found):
    chain = found.chain
    print(f"{chain.draws.shape[0]} chains of {chain.draws.shape[1]} draws in {found.seconds:.2f} s, acceptance "
          f"{100 * chain.chances.mean():.0f}%, {chain.gradients.mean():.1f} gradients a draw, "
          f"{chain.diverged.sum()} divergences")
    print(f"{'':12}{'mean':>12}{'reference':>12}{'off by':>9}{'of squares':>12}{'effective':>11}{'R-hat':>8}")
    for k, label in enumerate(found.names):
        print(f"{label:12}{found.mean[k]:12.4f}{found.reference[k]:12.4f}{found.off[0, k]:9.2f}{found.off[1, k]:12.2f}"
              f"{found.effective[k]:11.0f}{found.r_hat[k]:8.3f}")
    print("Effective draws per 1,000 gradients, the least of any mean or mean square: "
          f"{1e3 * found.per_gradient[0]:.1f}; with trajectories of a fixed length {1e3 * found.per_gradient[1]:.1f}.")


def draw(results, folder):
    drawn = shown.figure(13, 4)
    if drawn is None:
        return
    for axes, (name, found) in zip(drawn.subplots(1, len(results)), results.items()):
        places = np.arange(len(found.names))
        axes.axvspan(-2, 2, color="0.93")
        axes.plot(found.off[0], places, "o", label="mean")
        axes.plot(found.off[1], places, "x", label="mean square")
        axes.set(title=name.partition("-")[0], xlim=(-4.5, 4.5))
        axes.set_yticks(places, found.names)
        axes.invert_yaxis()
    drawn.supxlabel("off by so many standard errors")
    drawn.legend(*axes.get_legend_handles_labels(), loc="outside lower right", ncols=2)
    shown.save(drawn, folder, "posteriors.png")


def main(words=None):
    given = shown.options(__doc__).parse_args(words)
    warmup, draws, number = (300, 500, 2) if given.quick else (1000, 2000, 4)
    if given.no_jit:
        warmup, draws, number = 50, 50, 2
    known = json.loads(DATA.read_text(encoding="utf-8"))
    results = {}
    for name in QUICK if given.quick else MODELS:
        shown.title(name)
        key = gs.random.fold_in(gs.random.key(given.seed), list(MODELS).index(name))
        results[name] = posterior(name, known[name], key, warmup, draws, number, not given.no_jit)
        show(name, results[name])
    worst = max(np.max(np.abs(found.off)) for found in results.values())
    shown.title("all")
    print(f"No mean is off by more than {worst:.2f} of its standard errors.")
    draw(results, given.out)
    return results


if __name__ == "__main__":
    main()
