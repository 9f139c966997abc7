# SPDX-License-Identifier: Apache-2.0
"""Schedules: functions from the number of steps so far to a learning rate or another coefficient.

The first step uses schedule(0).  Values are Python numbers, so that scaling by them does not change a dtype.
"""
import math
from collections.abc import Callable, Mapping, Sequence

__all__ = ["constant_schedule", "cosine_decay_schedule", "exponential_decay", "join_schedules", "linear_schedule",
           "piecewise_constant_schedule", "polynomial_schedule", "warmup_constant_schedule",
           "warmup_cosine_decay_schedule", "warmup_exponential_decay_schedule"]

Schedule = Callable[[int], float]


def _check_steps(name, steps):
    if steps <= 0:
        raise ValueError(f"{name} must be positive, not {steps}")


def _check_begin(steps):
    if steps < 0:
        raise ValueError(f"transition_begin must not be negative, not {steps}")


def constant_schedule(value: float) -> Schedule:
    """The same value at every step.

    >>> constant_schedule(0.1)(7)
    0.1
    """
    def schedule(count):
        return value
    return schedule


def polynomial_schedule(init_value: float, end_value: float, power: float, transition_steps: int,
                        transition_begin: int = 0) -> Schedule:
    """From init_value to end_value as (1 - t)^power, t from 0 to 1 in transition_steps steps after transition_begin.

    Raises ValueError if transition_steps is not positive or transition_begin is negative.

    >>> [polynomial_schedule(1.0, 0.0, 2, 4)(count) for count in (0, 2, 4, 9)]
    [1.0, 0.25, 0.0, 0.0]
    """
    _check_steps("transition_steps", transition_steps)
    _check_begin(transition_begin)

    def schedule(count):
        passed = min(max(count - transition_begin, 0), transition_steps)
        return (init_value - end_value) * (1 - passed / transition_steps) ** power + end_value
    return schedule


def linear_schedule(init_value: float, end_value: float, transition_steps: int, transition_begin: int = 0) -> Schedule:
    """Linear from init_value to end_value in transition_steps steps after transition_begin.

    >>> [linear_schedule(1.0, 0.0, 4)(count) for count in (0, 1, 4, 9)]
    [1.0, 0.75, 0.0, 0.0]
    """
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def piecewise_constant_schedule(init_value: float, boundaries_and_scales: Mapping[int, float] | None = None,
                                ) -> Schedule:
    """init_value, multiplied by a scale from each boundary on.  Raises ValueError for a negative scale.

    >>> [piecewise_constant_schedule(1.0, {2: 0.5, 4: 0.1})(count) for count in (1, 2, 4)]
    [1.0, 0.5, 0.05]
    """
    steps = sorted(boundaries_and_scales.items()) if boundaries_and_scales is not None else []
    if any([scale < 0 for _, scale in steps]):
        raise ValueError("scales must not be negative")

    def schedule(count):
        value = init_value
        for boundary, scale in steps:
            if count >= boundary:
                value = value * scale
        return value
    return schedule


def exponential_decay(init_value: float, transition_steps: int, decay_rate: float, transition_begin: int = 0,
                      staircase: bool = False, end_value: float | None = None) -> Schedule:
    """init_value * decay_rate^(count / transition_steps) after transition_begin; with staircase, exponents are floored.

    end_value is a lower bound for a decay_rate below 1, else an upper bound.  Raises ValueError if transition_steps or
    decay_rate is not positive or transition_begin is negative.

    >>> [exponential_decay(1.0, 2, 0.25, end_value=0.1)(count) for count in (0, 1, 2, 9)]
    [1.0, 0.5, 0.25, 0.1]
    """
    _check_steps("transition_steps", transition_steps)
    _check_steps("decay_rate", decay_rate)
    _check_begin(transition_begin)

    def schedule(count):
        passed = max(count - transition_begin, 0) / transition_steps
        value = init_value * decay_rate ** (float(math.floor(passed)) if staircase else passed)
        if end_value is None:
            return value
        return max(value, end_value) if decay_rate < 1 else min(value, end_value)
    return schedule


def cosine_decay_schedule(init_value: float, decay_steps: int, alpha: float = 0.0, exponent: float = 1.0) -> Schedule:
    """From init_value to alpha * init_value along half a cosine, to a power, in decay_steps steps.

    I. Loshchilov and F. Hutter, SGDR: stochastic gradient descent with warm restarts (2017), equation 5.
    Raises ValueError if decay_steps is not positive.

    >>> [round(cosine_decay_schedule(1.0, 4)(count), 3) for count in (0, 1, 2, 4, 9)]
    [1.0, 0.854, 0.5, 0.0, 0.0]
    """
    _check_steps("decay_steps", decay_steps)

    def schedule(count):
        decayed = 0.5 * (1 + math.cos(math.pi * min(count, decay_steps) / decay_steps))
        return init_value * ((1 - alpha) * decayed ** exponent + alpha)
    return schedule


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Schedules in sequence: each begins at its boundary and counts from there.

    Raises ValueError unless there is one boundary less than there are schedules.

    >>> joined = join_schedules([constant_schedule(0.1), linear_schedule(1.0, 0.0, 4)], [3])
    >>> [joined(count) for count in (0, 2, 3, 5)]
    [0.1, 0.1, 1.0, 0.5]
    """
    if len(boundaries) != len(schedules) - 1:
        raise ValueError(f"{len(schedules)} schedules need {len(schedules) - 1} boundaries, not {len(boundaries)}")

    def schedule(count):
        value = schedules[0](count)
        for boundary, later in zip(boundaries, schedules[1:]):
            if count >= boundary:
                value = later(count - boundary)
        return value
    return schedule


def warmup_constant_schedule(init_value: float, peak_value: float, warmup_steps: int) -> Schedule:
    """Linear from init_value to peak_value, then constant."""
    return linear_schedule(init_value, peak_value, warmup_steps)


def warmup_cosine_decay_schedule(init_value: float, peak_value: float, warmup_steps: int, decay_steps: int,
                                 end_value: float = 0.0, exponent: float = 1.0) -> Schedule:
    """Linear from init_value to peak_value, then to end_value along half a cosine; decay_steps counts both.

    >>> schedule = warmup_cosine_decay_schedule(0.0, 1.0, 4, 12, end_value=0.5)
    >>> [schedule(count) for count in (0, 2, 4, 8, 12)]
    [0.0, 0.5, 1.0, 0.75, 0.5]
    """
    alpha = 0.0 if peak_value == 0 else end_value / peak_value
    decay = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)
    return join_schedules([linear_schedule(init_value, peak_value, warmup_steps), decay], [warmup_steps])


def warmup_exponential_decay_schedule(init_value: float, peak_value: float, warmup_steps: int, transition_steps: int,
                                      decay_rate: float, transition_begin: int = 0, staircase: bool = False,
                                      end_value: float | None = None) -> Schedule:
    """Linear from init_value to peak_value, then exponential_decay from there."""
    decay = exponential_decay(peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value)
    return join_schedules([linear_schedule(init_value, peak_value, warmup_steps), decay], [warmup_steps])
