# SPDX-License-Identifier: Apache-2.0
"""Bayesian logistic regression by the No-U-Turn sampler, beside trajectories of a fixed length and exact sums.

    python examples/hmc.py [--quick] [--no-jit] [--seed N] [--out FOLDER]

The data are the 23 flights of the space shuttle before its last in January 1986: the temperature at launch, and whether
an O-ring of the boosters showed thermal distress.  On that morning it was 31 °F.  The sampler is in samplers.py: one
compiled function makes a draw, with the gradient of the density inside.  With two parameters sums over a grid are
exact, and say whether the draws are right; Laplace's approximation beside them is not.
"""
import time
from typing import NamedTuple

import numpy as np
import samplers
import shown

import gradscribe as gs

# S. Dalal, E. Fowlkes, B. Hoadley, Risk analysis of the space shuttle: pre-Challenger prediction of failure, Journal of
# the American Statistical Association 84 (1989), table 1: temperatures of the joints in °F, thermal distress.
TEMPERATURE = np.array([66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58])
DISTRESS = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1.0])
NAMES = ("log-odds at 70 °F", "change with 10 °F")
COLD = 31.0
PRIOR = 5.0                             # standard deviation of both parameters


class Result(NamedTuple):
    mle: np.ndarray                     # most likely parameters
    mean: np.ndarray                    # of the draws
    sd: np.ndarray
    error: np.ndarray                   # Monte Carlo standard errors of the means
    exact_mean: np.ndarray              # by sums over a grid
    exact_sd: np.ndarray
    acceptance: float
    effective: np.ndarray               # bulk effective sample sizes
    r_hat: np.ndarray
    divergences: int
    per_gradient: tuple                 # the least effective size of a mean: of this sampler, of fixed lengths
    draws: int
    cold: float                         # probability of distress at COLD
    first_call: float                   # seconds
    later_call: float


# --- the model: what a user writes -----------------------------------------------

def predictors(temperature):
    """Rows (1, tens of degrees above 70 °F)."""
    t = np.asarray(temperature, float)
    return np.stack([np.ones_like(t), (t - 70.0) / 10.0], axis=-1)


def log_likelihood(q, x, y):
    log_odds = x @ q
    return np.sum(y * log_odds - np.logaddexp(0.0, log_odds))


def log_posterior(q, x, y):
    return log_likelihood(q, x, y) - 0.5 * np.sum(q * q) / PRIOR**2


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


def chains_of(transition, given, q, warmup, draws, number, data):
    """Chains from q, the seconds of the first call and those of all draws."""
    sample = samplers.sampler(log_posterior, transition, not given.no_jit)
    keys = gs.random.split(gs.random.key(given.seed), number)
    start = time.perf_counter()
    sample(keys[0], q, 1, 1, *data)
    first = time.perf_counter() - start
    found = [sample(key, q, warmup, draws, *data) for key in shown.progress(list(keys), "chain")]
    return samplers.together(found), first, time.perf_counter() - start - first


def main(words=None):
    given = shown.options(__doc__).parse_args(words)
    warmup, draws, number = (300, 1000, 2) if given.quick else (1000, 5000, 4)
    if given.no_jit:
        warmup, draws = 60, 200
    x, y = predictors(TEMPERATURE), DISTRESS
    mle = highest(log_likelihood, x, y)
    mode, covariance = laplace(x, y)

    shown.title(f"{number} chains of {draws} draws, after {warmup} to warm up")
    chain, first_call, seconds = chains_of(samplers.no_u_turn, given, mode, warmup, draws, number, (x, y))
    acceptance, divergences = float(chain.chances.mean()), int(chain.diverged.sum())
    later_call = seconds / number
    print(f"First call {first_call:.2f} s{'' if given.no_jit else ' with compilation'}; then a chain takes "
          f"{later_call:.2f} s, {1e6 * later_call / (warmup + draws):.0f} µs a draw")
    print(f"Steps of {np.mean(chain.step):.2f}, {chain.gradients.mean():.1f} gradients a draw, acceptance "
          f"{100 * acceptance:.0f}%, {divergences} divergences")
    fixed, _, _ = chains_of(samplers.fixed_length, given, mode, warmup, draws, number, (x, y))

    values = chain.draws
    mean, sd = values.mean(axis=(0, 1)), values.std(axis=(0, 1))
    sizes, theirs = ([samplers.effective_size(c.draws[:, :, k]) for k in range(2)] for c in (chain, fixed))
    per_gradient = min(sizes) / chain.gradients.sum(), min(theirs) / fixed.gradients.sum()
    effective = np.array([samplers.bulk_size(values[:, :, k]) for k in range(2)])
    r_hat = np.array([samplers.r_hat(values[:, :, k]) for k in range(2)])
    error = sd / np.sqrt(sizes)
    exact_mean, exact_sd = over_grid(mode, covariance, x, y)
    shown.title("the posterior")
    print(f"{'':20}{'most likely':>12}{'Laplace':>17}{'draws':>17}{'grid':>17}{'effective':>11}{'R-hat':>8}")
    pair = "{:9.3f} ±{:6.3f}".format
    for k, name in enumerate(NAMES):
        print(f"{name:20}{mle[k]:12.3f}{pair(mode[k], np.sqrt(covariance[k, k]))}{pair(mean[k], sd[k])}"
              f"{pair(exact_mean[k], exact_sd[k])}{effective[k]:11.0f}{r_hat[k]:8.3f}")
    cold = float(np.mean(1.0 / (1.0 + np.exp(-values @ predictors(COLD)))))
    print(f"Means are off by {' and '.join(f'{v:.2f}' for v in (mean - exact_mean) / error)} of their standard errors.")
    print(f"Effective draws per 1,000 gradients: {1e3 * per_gradient[0]:.0f}; with trajectories of a fixed length "
          f"{1e3 * per_gradient[1]:.0f}.")
    print(f"Probability of distress at {COLD:.0f} °F: {100 * cold:.1f}%")
    draw(values, mode, covariance, given.out)
    return Result(mle, mean, sd, error, exact_mean, exact_sd, acceptance, effective, r_hat, divergences, per_gradient,
                  number * draws, cold, first_call, later_call)


if __name__ == "__main__":
    main()
