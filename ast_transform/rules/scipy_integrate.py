# SPDX-License-Identifier: Apache-2.0
"""Rules for scipy.integrate, loaded if the program has imported it: sums over samples; solvers are refused."""
import numpy as np
import scipy.integrate

from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.rule import general, static
from gradscribe.ast_transform.rules import numeric_samples as samples
from gradscribe.ast_transform.rules.calculus import _along_the_axis


@static
def no_solver(name, call):
    raise ValueError(f"scipy.integrate.{name} has no derivative rule: its steps are not read",
                     f"Solve with {call}, by steps that are.")


@general(scipy.integrate.trapezoid, samples=samples.trapezoids, rewrite=True, arrays=("y", "x"),
         lengths=_along_the_axis, memory=FRESH)
class trapezoid:
    def primal(y, x=None, dx=1.0, axis=-1):
        return np.trapezoid(y, x, dx, axis)


@general(scipy.integrate.odeint, rewrite=True, memory=FRESH)
class odeint:
    def primal(*args, **words):
        return no_solver("odeint", "gs.optim.odeint(func, y0, t, *args)")


@general(scipy.integrate.solve_ivp, rewrite=True, memory=FRESH)
class solve_ivp:
    def primal(*args, **words):
        return no_solver("solve_ivp", "gs.optim.odeint(lambda y, t: fun(t, y), y0, times)")
