# SPDX-License-Identifier: Apache-2.0
"""Bayesian logistic regression by Hamiltonian Monte Carlo: the whole sampler is one compiled function.

    python examples/hmc.py [--quick] [--no-jit] [--seed N] [--out FOLDER]

The data are the 23 flights of the space shuttle before its last in January 1986: the temperature at launch, and whether
an O-ring of the boosters showed thermal distress.  On that morning it was 31 °F.  `sample` runs a chain: random numbers
by keys, leapfrog steps along the gradient, acceptance, and the step's length found while warming up.  With two
parameters sums over a grid are exact, and say whether the draws are right; Laplace's approximation beside them is not.
"""
import time
from typing import NamedTuple

import numpy as np
import shown

import gradscribe as gs

# S. Dalal, E. Fowlkes, B. Hoadley, Risk analysis of the space shuttle: pre-Challenger prediction of failure, Journal of
# the American Statistical Association 84 (1989), table 1: temperatures of the joints in °F, thermal distress.
TEMPERATURE = np.array([66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58])
DISTRESS = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1.0])
NAMES = ("log-odds at 70 °F", "change with 10 °F")
COLD = 31.0
PRIOR = 5.0                             # standard deviation of both parameters
LENGTH, TARGET = 1.6, 0.8               # of a trajectory, on average; of the acceptance


class Result(NamedTuple):
    mle: np.ndarray                     # most likely parameters
    mean: np.ndarray                    # of the draws
    sd: np.ndarray
    error: np.ndarray                   # Monte Carlo standard errors of the means
    exact_mean: np.ndarray              # by sums over a grid
    exact_sd: np.ndarray
    acceptance: float
    effective: np.ndarray               # effective sample sizes
    draws: int
    cold: float                         # probability of distress at COLD
    first_call: float                   # seconds
    later_call: float


# --- the model and the sampler: what a user writes -----------------------------

def predictors(temperature):
    """Rows (1, tens of degrees above 70 °F)."""
    t = np.asarray(temperature, float)
    return np.stack([np.ones_like(t), (t - 70.0) / 10.0], axis=-1)


def log_likelihood(q, x, y):
    log_odds = x @ q
    return np.sum(y * log_odds - np.logaddexp(0.0, log_odds))


def log_posterior(q, x, y):
    return log_likelihood(q, x, y) - 0.5 * np.sum(q * q) / PRIOR**2


height_and_slope = gs.value_and_grad(log_posterior)


def leapfrog(q, p, slope, step, steps, x, y):
    """Where the trajectory from q with momentum p is after some steps; and the height and slope there."""
    height = 0.0
    for _ in range(steps):
        p = p + 0.5 * step * slope
        q = q + step * p
        height, slope = height_and_slope(q, x, y)
        p = p + 0.5 * step * slope
    return q, p, height, slope


def sample(key, q, warmup, draws, x, y):
    """A chain from q: the draws (draws, parameters), the chances of acceptance, the length of a step.

    Hamiltonian Monte Carlo after R. Neal, MCMC using Hamiltonian dynamics (2011), with trajectories of random length;
    the step by dual averaging, M. Hoffman and A. Gelman, The no-U-turn sampler (2014), section 3.2.
    """
    height, slope = height_and_slope(q, x, y)
    kept = np.zeros((draws, len(q)))
    chances = np.zeros(draws)
    log_step, log_mean, lack = np.log(0.1), 0.0, 0.0
    for i in range(warmup + draws):
        key, of_momentum, of_choices = gs.random.split(key, 3)
        p = gs.random.normal(of_momentum, q.shape)
        u = gs.random.uniform(of_choices, (2,))
        step = np.exp(log_step)
        steps = max(1, int(LENGTH * (0.5 + u[0]) / step))
        q_new, p_new, height_new, slope_new = leapfrog(q, p, slope, step, steps, x, y)
        chance = np.exp(min(0.0, height_new - height - 0.5 * (p_new @ p_new - p @ p)))
        if u[1] < chance:
            q, height, slope = q_new, height_new, slope_new
        if i < warmup:
            lack += (TARGET - chance - lack) / (i + 11)
            log_step = -np.sqrt(i + 1) / 0.05 * lack
            weight = (i + 1) ** -0.75
            log_mean = weight * log_step + (1 - weight) * log_mean
            if i == warmup - 1:
                log_step = log_mean
        else:
            kept[i - warmup] = q
            chances[i - warmup] = chance
    return kept, chances, np.exp(log_step)


# --- what is compared with --------------------------------------------------------

def highest(f, x, y):
    """The parameters at which f is largest."""
    return gs.optim.minimize(lambda q, x, y: -f(q, x, y), np.zeros(2), (x, y), method="Newton-CG", tol=1e-10).x


def laplace(x, y):
    """The mode of the posterior, and the inverse of minus the Hessian there."""
    mode = highest(log_posterior, x, y)
    return mode, np.linalg.inv(-gs.hessian(log_posterior)(mode, x, y))


def over_grid(mode, covariance, x, y, side=400):
    """Means and standard deviations by sums over a grid, of 12 standard deviations to either side of the mode."""
    axes = [m + s * np.linspace(-12.0, 12.0, side) for m, s in zip(mode, np.sqrt(np.diag(covariance)))]
    q = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    heights = gs.vmap(log_posterior, in_axes=(0, None, None))(q, x, y)
    weights = np.exp(heights - np.max(heights))
    weights /= np.sum(weights)
    mean = weights @ q
    return mean, np.sqrt(weights @ (q - mean) ** 2)


def effective_size(chains):
    """How many independent draws say as much of the mean as chains (chain, draw) do.

    A. Vehtari et al., Rank-normalization, folding, and localization (2021), section 3.2, with C. Geyer's sums of pairs.
    """
    m, n = chains.shape
    spectrum = np.fft.rfft(chains - chains.mean(axis=1, keepdims=True), 2 * n)
    covariances = np.fft.irfft(np.abs(spectrum) ** 2)[:, :n] / n
    within = np.mean(covariances[:, 0]) * n / (n - 1)
    total = within * (n - 1) / n + np.var(chains.mean(axis=1), ddof=1)
    correlations = 1.0 - (within - np.mean(covariances, axis=0)) / total
    correlations[0] = 1.0
    pairs = correlations[:n - n % 2].reshape(-1, 2).sum(axis=1)
    end = int(np.argmax(pairs < 0)) if np.any(pairs < 0) else len(pairs)
    return m * n / (2.0 * np.sum(np.minimum.accumulate(pairs[:end])) - 1.0)


# --- what the user sees ----------------------------------------------------------

def draw(chains, mode, covariance, folder):
    drawn = shown.figure(11, 7)
    if drawn is None:
        return
    for axes, k in zip(drawn.subplots(len(NAMES), 2, width_ratios=(3, 2)), range(len(NAMES))):
        for chain in chains[:, :500, k]:
            axes[0].plot(chain, linewidth=0.6)
        axes[0].set(title=f"{NAMES[k]}: the first draws of {len(chains)} chains", xlabel="draw")
        draws, sd = chains[:, :, k].ravel(), np.sqrt(covariance[k, k])
        low, high = np.quantile(draws, [0.0005, 0.9995])
        t = np.linspace(low, high, 200)
        axes[1].hist(draws, bins=60, range=(low, high), density=True, color="0.8", label="draws")
        axes[1].plot(t, np.exp(-0.5 * ((t - mode[k]) / sd) ** 2) / (sd * np.sqrt(2 * np.pi)), label="Laplace")
        axes[1].set(title=NAMES[k])
        axes[1].legend()
    shown.save(drawn, folder, "hmc.png")


def main(words=None):
    given = shown.options(__doc__).parse_args(words)
    warmup, draws, number = (300, 1000, 2) if given.quick else (1000, 20000, 8)
    if given.no_jit:
        warmup, draws = warmup // 5, draws // 20
    x, y = predictors(TEMPERATURE), DISTRESS
    mle = highest(log_likelihood, x, y)
    mode, covariance = laplace(x, y)

    shown.title(f"{number} chains of {draws} draws, after {warmup} to warm up")
    run = sample if given.no_jit else gs.jit(sample)
    start = time.perf_counter()
    run(gs.random.key(given.seed), mode, 1, 1, x, y)
    first_call = time.perf_counter() - start
    print(f"First call {first_call:.2f} s{'' if given.no_jit else ' with compilation'}.", flush=True)
    start = time.perf_counter()
    found = [run(key, mode, warmup, draws, x, y)
             for key in shown.progress(list(gs.random.split(gs.random.key(given.seed), number)), "chain")]
    later_call = (time.perf_counter() - start) / number
    chains = np.stack([kept for kept, _, _ in found])
    acceptance = float(np.mean([chances for _, chances, _ in found]))
    print(f"A chain takes {1e3 * later_call:.1f} ms, {1e6 * later_call / (warmup + draws):.2f} µs a draw; "
          f"steps of {np.mean([step for _, _, step in found]):.2f}, acceptance {100 * acceptance:.0f}%")

    mean, sd = chains.mean(axis=(0, 1)), chains.std(axis=(0, 1))
    effective = np.array([effective_size(chains[:, :, k]) for k in range(2)])
    error = sd / np.sqrt(effective)
    exact_mean, exact_sd = over_grid(mode, covariance, x, y)
    shown.title("the posterior")
    print(f"{'':20}{'most likely':>12}{'Laplace':>17}{'draws':>17}{'grid':>17}{'effective':>11}")
    pair = "{:9.3f} ±{:6.3f}".format
    for k, name in enumerate(NAMES):
        print(f"{name:20}{mle[k]:12.3f}{pair(mode[k], np.sqrt(covariance[k, k]))}{pair(mean[k], sd[k])}"
              f"{pair(exact_mean[k], exact_sd[k])}{effective[k]:11.0f}")
    cold = float(np.mean(1.0 / (1.0 + np.exp(-chains @ predictors(COLD)))))
    print(f"Means are off by {' and '.join(f'{v:.2f}' for v in (mean - exact_mean) / error)} of their standard errors.")
    print(f"Probability of distress at {COLD:.0f} °F: {100 * cold:.1f}%")
    draw(chains, mode, covariance, given.out)
    return Result(mle, mean, sd, error, exact_mean, exact_sd, acceptance, effective, number * draws, cold, first_call,
                  later_call)


if __name__ == "__main__":
    main()
