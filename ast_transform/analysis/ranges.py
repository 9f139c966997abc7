# SPDX-License-Identifier: Apache-2.0
"""Range analysis of Python integers: which may outgrow 64 bits, so that no NumPy array can hold them.

An integer that a loop adds to is taken to stay small; one that it multiplies, or adds to itself, is not.

>>> from gradscribe.ast_transform.examples import form
>>> def held(text):
...     loop = f"def f(x, k):\\n    a = b = 1\\n    for i in range(40):\\n        {text}\\n    return x * a"
...     body = form(loop, np.ones(5), 3).body
...     return Ranges(body).fits(next(s for s in body if isinstance(s, For)).carries[0].inner)
>>> [held(t) for t in ("a = a + i", "a = a * 3", "a, b = b, a + b", "a = (5 * a + 1) % 97", "a = a // 2 + k")]
[True, False, False, True, True]

Source: widening of intervals, P. and R. Cousot, Abstract interpretation, POPL (1977): here an interval is a number of
bits, and a bound that grows in each pass is widened to infinity.
"""
import builtins
import math
import operator

import numpy as np

from gradscribe.ast_transform.core.form import Apply, Const, For, If, Let, Var, While, walk

WORD = 63               # bits of an integer in an array, without the sign
COUNT = 31              # bits that an unknown integer is taken to have: an argument, a length, an index


class Ranges:
    def __init__(self, body):
        self.made, self.joined, self.known, self.open = {}, {}, {}, set()
        for step in walk(body):
            if isinstance(step, Let):
                self.made.update((t, step.value) for t in step.targets if len(step.targets) == 1)
            elif isinstance(step, If):
                self.joined.update((j.var, (j.then, j.orelse)) for j in step.joins)
            elif isinstance(step, (For, While)):
                self.joined.update((v, (c.init, c.next)) for c in step.carries for v in (c.inner, c.outer))

    def fits(self, node):
        """Whether an integer fits into WORD bits, if unknown integers fit into COUNT bits."""
        return self.of(node)[0] <= WORD

    def of(self, node):
        """(number of bits, maybe infinite; the loop-carried values under analysis that it depends on)"""
        if isinstance(node, Const):
            return (int(node.value).bit_length() if isinstance(node.value, (int, np.integer)) else COUNT), frozenset()
        if node in self.open:
            return 0, frozenset([node])
        if node in self.known:
            return self.known[node]
        if node in self.joined:
            self.open.add(node)
            found = [self.of(source) for source in self.joined[node]]
            self.open.discard(node)
            found = max(bits for bits, _ in found), frozenset().union(*(grown for _, grown in found)) - {node}
        else:
            value = self.made.get(node)
            found = self.of_apply(value) if isinstance(value, Apply) else self.of(value) if isinstance(
                value, (Var, Const)) else (COUNT, frozenset())
        if not found[1]:
            self.known[node] = found
        return found

    def of_apply(self, value):
        bits, grown = zip(*map(self.of, value.args)) if value.args else ((COUNT,), (frozenset(),))
        rule = OF.get(value.function)
        if rule is None:
            return COUNT, frozenset()
        return rule(value.args, bits, grown)


def sum_(_, bits, grown):
    return (math.inf if all(grown) else max(bits) + 1 if not any(grown) else max(bits)), frozenset().union(*grown)


def product(_, bits, grown):
    return (math.inf if any(grown) and max(bits) > 1 else sum(bits)), frozenset().union(*grown)


def power(args, bits, grown):
    times = args[1].value if isinstance(args[1], Const) else math.inf
    return (bits[0] * times if not any(grown) else math.inf), frozenset().union(*grown)


def shifted(args, bits, grown):
    times = args[1].value if isinstance(args[1], Const) else math.inf
    return (bits[0] + times if not any(grown) else math.inf), frozenset().union(*grown)


def widest(_, bits, grown):
    return max(bits), frozenset().union(*grown)


def remainder(_, bits, grown):
    return (bits[1] if not grown[1] else math.inf), grown[1]


def first(_, bits, grown):
    return bits[0], grown[0]


def narrowest(_, bits, grown):
    return min(zip(bits, grown), key=lambda found: (found[0], len(found[1])))


OF = {
    operator.add: sum_, operator.sub: sum_, operator.mul: product, operator.pow: power, operator.lshift: shifted,
    operator.mod: remainder, operator.floordiv: first, operator.rshift: first, operator.neg: first, operator.pos: first,
    operator.invert: first, abs: first, int: first, operator.or_: widest, operator.xor: widest,
    operator.and_: narrowest, builtins.max: widest, builtins.min: widest,
}
