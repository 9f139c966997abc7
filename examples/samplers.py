# SPDX-License-Identifier: Apache-2.0
"""The No-U-Turn sampler and its diagnostics, in plain NumPy: what hmc.py and posteriors.py share.

    sample = sampler(log_density)
    chain = sample(key, start, warmup, draws, *data)

`log_density(q, *data)` is a plain function over parameters q without bounds; gs.value_and_grad makes its slope.  A
draw, `no_u_turn`, is one function of loops and without recursion, so that gs.jit compiles it with the density inside.

A draw follows the trajectory of a particle on the surface -log_density.  It doubles the trajectory, forward or backward
in time, until the trajectory turns back, and takes one of its points.  While warming up, dual averaging finds the
length of a step, and windows of draws the scale of each parameter.

M. Hoffman, A. Gelman, The No-U-Turn sampler (2014): doubling, dual averaging (section 3.2), the first step (algorithm
4).  M. Betancourt, A conceptual introduction to Hamiltonian Monte Carlo (2017), appendix A: points drawn by their
weights, the criterion by sums of momenta.  Stan Development Team, Stan reference manual, on MCMC sampling: windows,
regularised variances.  A. Vehtari and others, Rank-normalization, folding, and localization (2021): R-hat and effective
sample sizes.
"""
from typing import Any, NamedTuple

import numpy as np
import scipy.special

import gradscribe as gs

DEPTH = 10                              # a trajectory has at most 2 ** DEPTH steps
TARGET = 0.8                            # of the acceptance
LOST = 1000.0                           # an error of the energy from which on a trajectory has diverged
FAST, SLOW, LAST = 75, 25, 50           # windows of the warm-up: the first, the first with variances, the last
LENGTH = np.pi / 2                      # of a trajectory of the fixed-length sampler, in standard deviations


class Chain(NamedTuple):
    """What a chain of draws returns."""
    draws: Any                          # (draw, parameter)
    chances: Any                        # of each draw: the mean chance of acceptance over its trajectory
    gradients: Any                      # of each draw: how many gradients it took
    diverged: Any                       # of each draw: whether its trajectory diverged
    step: float                         # the length of a step, in units of `scale`
    scale: np.ndarray                   # standard deviations of the parameters, from the warm-up


# --- transitions -----------------------------------------------------------------

def leapfrog(f, q, p, slope, step, variance, data):
    """One step of a trajectory: its point and momentum, the height and the slope there."""
    p = p + 0.5 * step * slope
    q = q + step * variance * p
    height, slope = f(q, *data)
    return q, p + 0.5 * step * slope, height, slope


def comes_back(first, last, total, variance):
    """Whether stretches of a trajectory (..., parameters) come nearer to an end: their momenta there and the sums."""
    way = variance * total
    return (np.sum(way * first, axis=-1) <= 0.0) | (np.sum(way * last, axis=-1) <= 0.0)


def turned_joined(a_first, a_last, a_total, b_first, b_last, b_total, variance):
    """Whether two neighbouring stretches, a before b, come back, as one or each with the nearest point of the other."""
    return (comes_back(a_first, b_last, a_total + b_total, variance)
            | comes_back(a_first, b_first, a_total + b_first, variance)
            | comes_back(a_last, b_last, a_last + b_total, variance))


def has_turned(momenta, sums, n, variance):
    """Whether a part that ends at step n of a stretch has turned: a part of the recursion by halves.

    Those have lengths 2, 4, 8... and start at multiples of them.  sums[n] is the sum of the momenta before step n.
    """
    half = 2 ** np.arange(DEPTH)
    start, middle = np.maximum(n + 1 - 2 * half, 0), np.maximum(n + 1 - half, 0)
    turned = turned_joined(momenta[start], momenta[np.maximum(middle - 1, 0)], sums[middle] - sums[start],
                           momenta[middle], momenta[n], sums[n + 1] - sums[middle], variance)
    return np.any(turned & ((n + 1) % (2 * half) == 0))


def no_u_turn(f, key, q, height, slope, step, variance, data):
    """A draw after q: its point, height and slope; mean chance of acceptance, gradients taken, whether it diverged."""
    of_momentum, of_choices, of_points = gs.random.split(key, 3)
    p = gs.random.normal(of_momentum, q.shape) / np.sqrt(variance)
    u = gs.random.uniform(of_choices, (DEPTH, 2))
    start = height - 0.5 * p @ (variance * p)
    points, ends, slopes = np.stack((q, q)), np.stack((p, p)), np.stack((slope, slope))     # backward, forward
    momenta, sums = np.zeros((2 ** DEPTH // 2, len(q))), np.zeros((2 ** DEPTH // 2 + 1, len(q)))
    total, log_weight, chances, gradients, diverged, turned, depth, length = p, 0.0, 0.0, 0, False, False, 0, 1
    while depth < DEPTH and not turned and not diverged:
        side = 1 if u[depth, 0] < 0.5 else 0
        q_end, p_end, slope_end = points[side].copy(), ends[side].copy(), slopes[side].copy()
        near, far = p_end, ends[1 - side].copy()
        n, log_new, q_new, height_new, slope_new = 0, -np.inf, q, height, slope
        while n < length and not turned and not diverged:
            q_end, p_end, height_end, slope_end = leapfrog(f, q_end, p_end, slope_end, step * (2 * side - 1), variance,
                                                           data)
            gain = height_end - 0.5 * p_end @ (variance * p_end) - start
            gradients += 1
            diverged = not -LOST < gain < np.inf
            if not diverged:
                chances += np.exp(min(0.0, gain))
                log_new = np.logaddexp(log_new, gain)
                if np.log(gs.random.uniform(gs.random.fold_in(of_points, gradients))) < gain - log_new:
                    q_new, height_new, slope_new = q_end, height_end, slope_end
            momenta[n], sums[n + 1] = p_end, sums[n] + p_end
            turned = has_turned(momenta, sums, n, variance)
            n += 1
        if not turned and not diverged:
            if np.log(u[depth, 1]) < log_new - log_weight:
                q, height, slope = q_new, height_new, slope_new
            turned = turned_joined(far, near, total, momenta[0], p_end, sums[n], variance)
            total, log_weight = total + sums[n], np.logaddexp(log_weight, log_new)
            points[side], ends[side], slopes[side] = q_end, p_end, slope_end
        depth, length = depth + 1, 2 * length
    return q, height, slope, chances / gradients, gradients, diverged


def fixed_length(f, key, q, height, slope, step, variance, data):
    """A draw as no_u_turn makes one, at the end of a trajectory of a length that is random between 0.5 and 1.5 LENGTH.

    R. Neal, MCMC using Hamiltonian dynamics (2011).
    """
    of_momentum, of_choices = gs.random.split(key, 2)
    p = gs.random.normal(of_momentum, q.shape) / np.sqrt(variance)
    start = height - 0.5 * p @ (variance * p)
    u = gs.random.uniform(of_choices, (2,))
    q_new, height_new, slope_new, gradients, gain = q, height, slope, 0, 0.0
    for _ in range(min(2 ** DEPTH, max(1, int(LENGTH * (0.5 + u[0]) / step)))):
        q_new, p, height_new, slope_new = leapfrog(f, q_new, p, slope_new, step, variance, data)
        gradients += 1
        gain = height_new - 0.5 * p @ (variance * p) - start
        if not -LOST < gain < np.inf:
            gain = -np.inf
            break
    chance = np.exp(min(0.0, gain))
    if u[1] < chance:
        q, height, slope = q_new, height_new, slope_new
    return q, height, slope, chance, gradients, gain == -np.inf


# --- the chain -------------------------------------------------------------------

class StepLength:
    """The length of a step by dual averaging, so that the acceptance is TARGET on average."""

    def __init__(self, first):
        self.centre, self.tried, self.lack, self.log_mean = np.log(10.0 * first), 0, 0.0, np.log(first)

    def after(self, chance):
        """The next length to try, after a draw with this chance of acceptance."""
        self.tried += 1
        self.lack += (TARGET - chance - self.lack) / (self.tried + 10)
        log_step = self.centre - np.sqrt(self.tried) / 0.05 * self.lack
        weight = self.tried ** -0.75
        self.log_mean = weight * log_step + (1.0 - weight) * self.log_mean
        return np.exp(log_step)

    def final(self):
        return np.exp(self.log_mean)


def first_step(f, key, q, height, slope, step, variance, data):
    """A step that is accepted about as often as TARGET says, by doubling or halving the given one."""
    p, growing = np.asarray(gs.random.normal(key, q.shape)) / np.sqrt(variance), 0
    start = height - 0.5 * p @ (variance * p)
    for _ in range(50):
        with np.errstate(over="ignore", invalid="ignore"):      # of a step that is far too long
            _, p_new, height_new, _ = leapfrog(f, q, p, slope, step, variance, data)
            now = 1 if height_new - 0.5 * p_new @ (variance * p_new) - start > np.log(TARGET) else -1
        if growing == -now:
            break
        step, growing = step * 2.0 ** now, now
    return step


def windows(warmup):
    """(begin, end) of the windows of the warm-up whose draws give variances: each twice as long as the one before."""
    first, width, last = (FAST, SLOW, LAST) if warmup >= FAST + SLOW + LAST else \
        (15 * warmup // 100, warmup - 15 * warmup // 100 - warmup // 10, warmup // 10)
    found, begin, finish = [], first, warmup - last
    while begin < finish:
        end = begin + width if begin + 3 * width <= finish else finish
        found.append((begin, end))
        begin, width = end, 2 * width
    return found


def sampler(log_density, transition=no_u_turn, jit=True):
    """The function sample(key, q, warmup, draws, *data), which runs a chain from q and returns a Chain."""
    f = gs.value_and_grad(log_density)

    def draw(key, q, height, slope, step, variance, *data):
        return transition(f, key, q, height, slope, step, variance, data)
    if jit:
        f, draw = gs.jit(f), gs.jit(draw)

    def sample(key, q, warmup, draws, *data):
        variance, ends = np.ones(len(q)), dict(map(reversed, windows(warmup)))
        of_step, of_draws = gs.random.split(key, 2)
        height, slope = f(q, *data)
        step = first_step(f, of_step, q, height, slope, 1.0, variance, data)
        length, made = StepLength(step), Chain([], [], [], [], step, variance)
        for i, of_draw in enumerate(gs.random.split(of_draws, warmup + draws), 1):
            q, height, slope, chance, gradients, diverged = draw(of_draw, q, height, slope, step, variance, *data)
            for kept, value in zip(made, (q, chance, gradients, diverged)):
                kept.append(value)
            if i < warmup:
                step = length.after(chance)
            elif i == warmup:
                length.after(chance)
                step = length.final()
            if i in ends and i - ends[i] > 1:
                n, found = i - ends[i], np.var(made.draws[ends[i]:], axis=0, ddof=1)
                variance = (n * found + 5e-3) / (n + 5.0)
                step = first_step(f, of_draw, q, height, slope, step, variance, data)
                length = StepLength(step)
        return Chain(*(np.array(kept[warmup:]) for kept in made[:4]), step, np.sqrt(variance))
    return sample


# --- diagnostics -----------------------------------------------------------------

def halves(chains):
    """Chains (chain, draw) cut into halves: twice as many."""
    n = chains.shape[1] // 2
    return np.concatenate([chains[:, :n], chains[:, -n:]])


def rank_normalised(chains):
    """Normal quantiles of the ranks of the draws, in the shape of the chains; equal draws share the mean rank."""
    _, place, many = np.unique(chains, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(many) - 0.5 * (many - 1))[place].reshape(chains.shape)
    return scipy.special.ndtri((ranks - 0.375) / (chains.size + 0.25))


def spread_ratio(chains):
    """The standard deviation of all draws over that within chains."""
    within = np.mean(np.var(chains, axis=1, ddof=1))
    n = chains.shape[1]
    return np.sqrt((n - 1) / n + np.var(np.mean(chains, axis=1), ddof=1) / within)


def r_hat(chains):
    """The rank-normalised split R-hat of chains (chain, draw): near 1, at most 1.01, if they agree."""
    cut = halves(chains)
    return max(spread_ratio(rank_normalised(cut)), spread_ratio(rank_normalised(np.abs(cut - np.median(cut)))))


def effective_size(chains):
    """How many independent draws say as much of the mean as chains (chain, draw) do.

    Vehtari and others (2021), section 3.2, with C. Geyer's sums of pairs.
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


def bulk_size(chains):
    """The effective sample size of the bulk of the distribution, by ranks: 400 and more for four chains."""
    return effective_size(rank_normalised(halves(chains)))


def together(found: list[Any]) -> Chain:
    """The arrays of several chains, with a leading axis for the chain."""
    return Chain(*(np.stack(parts) for parts in zip(*found)))
