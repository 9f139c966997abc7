# SPDX-License-Identifier: Apache-2.0
"""Has a thread's pullback accumulate adjoints into arrays that the launcher passes, before the pullback is lowered.

The pullback of one thread's work returns a new array for each adjoint: zeros, or the seed, after some writes.  A kernel
is given that array by its launcher instead.  So the value that the chain of writes begins with is replaced by the given
array; if all writes can be made in place, no operation on whole arrays is left.

Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd edition (2008), 3.2: incremental adjoints, `dx += ...`.
"""
import functools
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.core.form import (
    ADJOINT,
    Apply,
    Function,
    Let,
    Pack,
    Var,
    entry_reads,
    rebuilt,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.memory import FRESH
from gradscribe.ast_transform.core.operations import add_at, astype, put, put_add, shape_of, size_of
from gradscribe.ast_transform.core.rule import RULES, operation
from gradscribe.ast_transform.passes.callees import EVERY, without_calls
from gradscribe.ast_transform.reader.derivatives import call_derived
from gradscribe.ast_transform.transforms import Transform, pullback, vjp
from gradscribe.codegen.loops.build import quoted
from gradscribe.codegen.lowered import Lazy, lazily

OF_SHAPE = {shape_of, size_of, len, np.shape, np.size, np.ndim, np.zeros_like}
ADVICE = "Work entry by entry, in loops over ranges."


class NoKernel(Exception):
    """The pullback does something that a kernel cannot do."""

    def __init__(self, reason, advice=ADVICE):
        super().__init__(reason)
        self.advice = advice


def given_adjoint(x: np.ndarray) -> np.ndarray:
    """The array that a kernel is given for the adjoint of x, to whose content the kernel adds."""
    return np.array(x)


operation(given_adjoint, memory=FRESH)


@lazily(given_adjoint)
def _given_adjoint(lowering, node):
    x = lowering.lazy(node.args[0])
    return Lazy(x.dims, x.dtype, lambda index: quoted("{}[{*}]", name, index), 0,
                name := lowering.result("given", "given_adjoint({})", x.name))


class OfKernel(NamedTuple):
    """The settings of the pullback of a thread, with adjoints in given arrays."""
    outs: list                          # the parameters that the thread's function returns
    written: Any                        # those that the kernel writes
    wanted: dict[str, int]              # position of each parameter whose adjoint the pullback returns


def of_kernel(outs: list, written: Any, wanted: dict[str, int]) -> Transform:
    """The pullback of a thread, whose finished form `in_given_arrays` takes."""
    return replace(vjp(), settings=OfKernel(outs, written, wanted), reads=read_thread, derived=thread_pullback)


def read_thread(reader, transform, base, args, words):
    reader.context.instead = keep_precision()
    return call_derived(reader, transform, base, args, words)


def thread_pullback(reader, settings, call):
    made, operands = pullback(reader, vjp().settings, call)
    made.result = Pack("tuple", tuple(made.result.items[k] for k in settings.wanted.values()))
    made.body = without_calls(made.body, EVERY)
    return made, operands


def in_given_arrays(function: Function, kernel: OfKernel) -> Function:
    """The finished pullback; raises NoKernel if an adjoint is not a chain of writes."""
    seed, primals = function.params[0], {p.name: p.value for p in function.params[1:]}
    for name in kernel.written:
        if is_read(primals[name], function.body):
            raise NoKernel(f"it writes into {name}, and the adjoint needs what was there before",
                           f"Write to another array than the one that is read, so that {name} stays as it was.")
    made, items = Definitions(function), []
    env: dict = {}
    begun = []
    for name, item in zip(kernel.wanted, function.result.items, strict=True):
        primal = primals[name]
        if not primal.fact.dims:
            items.append(item)
            continue
        given = Var(f"d{name}", primal.fact, ADJOINT)
        own = kernel.outs.index(name) if name in kernel.outs else None
        for leaf in made.initial_values(item, name, seed.value, own) if isinstance(item, Var) else ():
            if env.setdefault(leaf, given) is not given:
                raise NoKernel(f"the adjoint of {name} is that of {env[leaf].hint[1:]} as well")
        env |= {cast: env.get(source, source) for cast, source in reversed(made.casts.items())}
        begun.append(Let((given,), Apply(given_adjoint, (primal,))))
        items.append(item if isinstance(item, Var) else given)
    body = [*begun, *replaced(function.body, env)]
    return Function(function.label, function.params[1:], body, substituted(Pack("tuple", tuple(items)), env),
                    function.about, function.notes)


@functools.cache
def keep_precision():
    """{function of math: ufunc} of functions that keep single precision on a device, as NumPy's ufuncs do."""
    found = {f: next((u for u in rule.functions if isinstance(u, np.ufunc)), None) for f, rule in RULES.items()
             if getattr(f, "__module__", "") == "math"} | {math.log: np.log, math.hypot: np.hypot}
    return {f: u for f, u in found.items() if u is not None and gives_floats(f, u.nin)}


def gives_floats(function, count):
    """Whether a function of math returns a float for floats, not an int or a bool."""
    try:
        return type(function(*[0.5] * count)) is float
    except ValueError:                  # outside of its domain
        return True
    except TypeError:
        return False


class Definitions:
    """The definitions of the values of a function."""

    def __init__(self, function):
        self.lets, self.several, self.casts = {}, {}, {}
        for step in walk(function.body):
            if isinstance(step, Let):
                self.lets.update(dict.fromkeys(step.targets, step.value))
            for c in getattr(step, "carries", ()):
                self.several[c.inner] = self.several[c.outer] = (c.init, c.next)
            for j in getattr(step, "joins", ()):
                self.several[j.var] = (j.then, j.orelse)

    def initial_values(self, item, name, seed, own):
        """The values of an adjoint before the first write: zeros, or entry `own` of the pullback's seed."""
        found, seen, waiting = [], set(), [item]
        while waiting:
            v = waiting.pop()
            if v in seen:
                continue
            seen.add(v)
            value = self.lets.get(v)
            function = value.function if isinstance(value, Apply) else None
            if v in self.several:
                waiting += self.several[v]
            elif isinstance(value, Var):
                waiting.append(value)
            elif function is astype:
                self.casts[v] = value.args[0]
                waiting.append(value.args[0])
            elif function in (put_add, add_at) or function is put and own is not None:
                waiting.append(value.args[0])
            elif function is not None and value.args[:1] == (seed,) and value.args[1].value == own or \
                    function in (np.zeros_like, np.zeros) and own is None:
                found.append(v)
            else:
                raise NoKernel(f"the adjoint of {name} is made of whole arrays")
        return found


def is_read(var, block):
    """Whether a block reads more of an array than its lengths."""
    return any(var in set(entry_reads(s)) and not (isinstance(s, Let) and isinstance(s.value, Apply) and
                                                    s.value.function in OF_SHAPE) for s in walk(block))


def replaced(block, env):
    """Statements with the values of `env` replaced, and without the definitions of those."""
    return [rebuilt(step, env, lambda inner: replaced(inner, env)) for step in block
            if not (isinstance(step, Let) and step.targets[0] in env)]
