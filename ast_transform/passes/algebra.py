# SPDX-License-Identifier: Apache-2.0
"""A normal form of generated arithmetic: sums of products of factors, with one coefficient each.

A sum of products is a list of terms; a term is a coefficient, the factors of its numerator and those of its
denominator.  Signs and numbers are collected, like terms are added up, and the arithmetic is written again if that is
shorter, small factors first.  Only statements that a transformation made, and that have one reader, are rewritten.

>>> from gradscribe.ast_transform.examples import gradient, show
>>> from gradscribe.ast_transform.passes.simplify import drop_dead
>>> made = gradient("def f(x, w):\\n    z = x - 1\\n    return np.sum(w * (0.5 * z ** 2))", np.ones(3), np.ones(3))
>>> made.body = drop_dead(made.body, made.result)
>>> print(show(made))
grad_f(x, w):
    z = x - 1
    dz = 0.5 * w
    z_1 = 2 * z
    dz_1 = dz * z_1
    return dz_1
>>> made.body = drop_dead(in_normal_form(made), made.result)
>>> print(show(made))
grad_f(x, w):
    z = x - 1
    dz = w * z
    return dz

Results may differ in the last bits: 0.5 * (2 * z) no longer overflows, and a * (b / c) may round differently.  What is
zero in exact arithmetic becomes zero, even where it was NaN before.

Source: sums of products as the canonical form of polynomials, e.g. Geddes, Czapor and Labahn, Algorithms for Computer
Algebra (1992), chapter 3.
"""
import math
import operator
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.analysis.regions import whole
from gradscribe.ast_transform.core.alias import aliased, filled_with, parts_of, raised, reads, record_of, role, updates
from gradscribe.ast_transform.core.form import (
    ADJOINT,
    TANGENT,
    TEMPORARY,
    USER,
    Apply,
    Const,
    Effect,
    For,
    Function,
    If,
    Let,
    Var,
    While,
    all_reads,
    blocks,
    is_application,
    operands,
    read_counts,
    rebuilt,
    replaced,
    same_operand,
    substituted,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes import types
from gradscribe.ast_transform.passes.anf import describe
from gradscribe.ast_transform.reader.views import axes_undone
from gradscribe.ast_transform.rules.identities import IDENTITIES, bindings, written

SUMS, PRODUCTS = {"sum", "difference"}, {"product", "quotient"}
ARITHMETIC = SUMS | PRODUCTS | {"negation"}
NUMBERS = (int, float)
TERMS = 12                          # the most in one sum: longer ones are not rewritten
DEEP = 12                           # the deepest nesting of operations: anything deeper counts as a factor
MEAN = "np.sum(a) / len(a) = np.mean(a)"
FAR = 64                            # the most dependents of a value that are examined


class Term(NamedTuple):
    """coefficient / divisor * above / below"""
    coefficient: float
    above: tuple = ()
    below: tuple = ()
    divisor: float = 1

    def times(self, other):
        return Term(_short(self.coefficient, other.coefficient), self.above + other.above, self.below + other.below,
                    _short(self.divisor, other.divisor)).reduced()

    def over(self, other):
        return Term(_short(self.coefficient, other.divisor), self.above + other.below, self.below + other.above,
                    _short(self.divisor, other.coefficient)).reduced()

    def left_by(self, common):
        """This term divided by factors that it has."""
        return self._replace(above=tuple((Counter(self.above) - Counter(common.above)).elements()),
                             below=tuple((Counter(self.below) - Counter(common.below)).elements()))

    def negated(self):
        return self._replace(coefficient=-self.coefficient)

    def plus(self, other):
        """The sum of two like terms."""
        if self.divisor == other.divisor:
            return self._replace(coefficient=self.coefficient + other.coefficient).reduced()
        return self._replace(coefficient=self.coefficient / self.divisor + other.coefficient / other.divisor, divisor=1)

    def reduced(self):
        """The term without its divisor where the quotient is exact: an integer, or the divisor a power of two."""
        p, q = self.coefficient, self.divisor
        if q < 0:
            p, q = -p, -q
        if q and all(math.isfinite(n) and float(n).is_integer() for n in (p, q)):
            common = math.gcd(int(p), int(q))
            p, q = p / common, q / common
        if q and math.isfinite(p) and math.isfinite(q) and (p / q * q == p) and (
                math.frexp(q)[0] == 0.5 or float(p / q).is_integer()):
            p, q = p / q, 1
        return self._replace(coefficient=p, divisor=q)

    def without(self, above, below=None):
        """The term with one factor less in the numerator, and in the denominator."""
        sides = list(self.above), list(self.below)
        sides[0].remove(above)
        if below is not None:
            sides[1].remove(below)
        return self._replace(above=tuple(sides[0]), below=tuple(sides[1]))

    def with_factor(self, factor):
        return self._replace(above=(*self.above, factor))

    def key(self):
        return tuple(sorted(map(id, self.above))), tuple(sorted(map(id, self.below)))


def in_normal_form(function: Function) -> list:
    """The body of a function with its generated arithmetic in normal form, where that is shorter.

    notes["factored"] is set to whether a factor was taken out of a sum: then a second run may find more.
    """
    counts = read_counts(function)
    env: dict = {}
    radicands = {s.targets[0]: r for s in walk(function.body) if isinstance(s, Let) and role(
        s.value) == "root" and _is_float(r := s.value.args[0]) and (r.kind != TEMPORARY or counts.get(r, 0) > 1)}

    again = False

    def block(body):
        nonlocal again
        found = _Block(list(body), counts, env, radicands)
        body = found.rewritten(block)
        again |= found.again
        return body

    function.body = block(function.body)
    if env:
        function.result = substituted(function.result, env)
        function.body = replaced(function.body, env)
    function.notes["factored"] = again
    return function.body


def is_generated(step: Let | For | While | If | Effect) -> bool:
    """Whether a statement sets one value by an operation that a transformation made."""
    return isinstance(step, Let) and len(step.targets) == 1 and isinstance(step.value, Apply) and \
        step.origin is not None and bool(step.origin.generated) and not raised(step)


def updated_in(step: Let | For | While | If | Effect) -> Iterator[Var]:
    """The arrays that a statement, or one inside it, changes in place."""
    if isinstance(step, Let) and updates(step.value):
        yield from operands(step.value.args[0])
    for inner in blocks(step):
        for s in inner:
            yield from updated_in(s)


class _Block:
    """The statements of one block, and the arithmetic among them."""

    def __init__(self, body, counts, env, radicands):
        self.body, self.counts, self.env = body, counts, env
        self.radicands = radicands
        self.values = {s.targets[0]: s.value for s in body if isinstance(s, Let) and len(s.targets) == 1}
        self.quotients = {s.value.args: k for k, s in enumerate(body) if isinstance(s, Let) and is_application(
            s.value, operator.truediv) and not s.value.kwargs and (not is_generated(s) or counts.get(
                s.targets[0], 0) > 1) and all(isinstance(a, Var) for a in s.value.args)}
        self.kinds = (TEMPORARY, ADJOINT)       # of values that may be absorbed into a statement
        self.again = False                      # whether a factor was taken out, which may now be one of a product
        self.depth = 0                          # of the operation that is being expanded
        self.reads: dict = {}                   # how often the statement reads a value: twice in x + x
        self.place = {s.targets[0]: k for k, s in enumerate(body) if isinstance(s, Let) and len(s.targets) == 1 and
                      isinstance(s.value, Apply) and not raised(s)}
        self.chosen_from = {v for s in body if isinstance(s, Let) and _chooses(s.value) for v in operands(s.value)}
        self.changed = [(k, set(updated_in(s))) for k, s in enumerate(body)]
        self.changed = [(k, found) for k, found in self.changed if found]

    def rewritten(self, inner):
        out = []
        for k, step in enumerate(self.body):
            step = self.body[k] = rebuilt(step, self.env, inner)
            made = None
            if is_generated(step) and _is_arithmetic(step):
                made = self.shorter(step, k)
            elif is_generated(step) and role(step.value) in ("total", "average"):
                made = self.number_first(step, k)
            out += [step] if made is None else made
        return out

    def number_first(self, step, at):
        """2 * np.sum(a * b) for np.sum(2 * a * b), and likewise for np.mean; None for other operations."""
        (v, *others), (target,) = step.value.args, step.targets
        self.reads, self.kinds, absorbed = {}, (TEMPORARY, ADJOINT, TANGENT), []
        if others or not isinstance(v, Var) or not _is_float(v) or not _is_float(target):
            return None
        (term,) = self.one(v, at, absorbed)
        if not absorbed or not _moves_exactly(term.coefficient) or not term.above:
            return None
        writer = _Writer(step, self.is_call)
        rest = writer.product(term._replace(coefficient=1))
        if not isinstance(rest, Var) or not _alike(rest.fact, v.fact):
            return None
        total = writer.total(step.value, rest)
        self.again = True
        return writer.statements(writer.apply(operator.mul, Const(_plain(term.coefficient)), total))

    def shorter(self, step, at):
        """The statements that replace one, or None if they are no shorter."""
        absorbed = []
        self.reads = Counter(a for a in step.value.args if isinstance(a, Var)) if role(step.value) in SUMS else {}
        self.kinds = (TEMPORARY,) if len(self.reads) > 1 else (TEMPORARY, ADJOINT)
        terms = self.sum_of(step.value, at, absorbed)
        if terms is None:
            return None
        writer, (target,) = _Writer(step, self.is_call), step.targets
        for a in absorbed:
            if (origin := self.body[self.place[a]].origin) is not None:
                writer.rules += origin.rules
                writer.identities += origin.identities
        before = [_without_roots(t, self.radicands) for t in terms]
        terms = before
        if target not in self.chosen_from:
            terms = [self.by_identities(t, writer) for t in terms]
        better = [self.with_what_is_there(self.with_means(t, writer), at) for t in terms]
        changed = any(t is not b for t, b in zip(before, better))
        if not (absorbed or changed or any(isinstance(a, Const) for a in step.value.args) or len(set(
                step.value.args)) < len(step.value.args)):
            return None
        calls, together = len(writer.made), _together(better)
        total = writer.sum(together)
        if isinstance(total, Const) and target.fact.kind == "f" and not target.fact.dims:
            self.env[target] = Const(float(total.value))
            return []
        saved = self.size(step.value, set(absorbed)) + (len(together) < len(better)) - len(writer.made) + calls
        if not isinstance(total, Var) or saved < 0 or not saved and not _has_number_inside(step.value, terms) or \
                not _alike(total.fact, target.fact):
            return None
        if not writer.made:
            self.env[target] = total
            return []
        self.again |= writer.factored
        return writer.statements(total)

    # rewriting factors

    def by_identities(self, term, writer):
        """A term with a factor and a divisor of it replaced by an identity of rules/identities.py.

        Not used where np.where selects from the result: an identity holds where the primal is defined, and may raise
        elsewhere.
        """
        for v in term.above:
            for w in term.below:
                for identity in IDENTITIES if isinstance(v, Var) and isinstance(w, Var) else ():
                    above, below = identity.left.args if identity.is_of_factors else (None, None)
                    bound: dict = {}
                    if above and None not in (bindings(above, v, self.taken_apart, bound), bindings(
                            below, w, self.taken_apart, bound)) and all(identity.holds_for(
                                x.fact.kind, x.fact.rank) for x in bound.values()):
                        made = written(identity.right, bound, writer.apply)
                        writer.identities.append(identity.text)
                        return term.without(v, w).with_factor(made)
        return term

    def taken_apart(self, v, function):
        value = self.values.get(v)
        return value.args if is_application(value, function) and not value.kwargs else None

    def with_means(self, term, writer):
        """A term with np.mean in the place of a sum that is divided by the number of its entries."""
        for v in term.above:
            value = self.values.get(v)
            if role(value) != "total" or self.counts.get(v) != 1 or len(value.args) != 1 or not isinstance(
                    value.args[0], Var):
                continue
            words = axis_and_keepdims(value)
            if words is None:
                continue
            dims, axes = value.args[0].fact.dims, words.get("axis")
            axes = range(len(dims)) if axes is None else (axes,) if type(axes) is int else axes
            lengths = [dims[k].normal() for k in axes]
            for w in term.below if len(lengths) == 1 else ():
                if type(w.fact) is Array and w.fact.length is not None and w.fact.length.same(lengths[0]):
                    writer.identities.append(MEAN)
                    return term.without(v, w).with_factor(writer.mean(value))
            number = math.prod(n.offset for n in lengths)
            if number > 1 and all(n.symbol is None for n in lengths) and term.divisor == number:
                writer.identities.append(MEAN)
                return term.without(v)._replace(divisor=1).with_factor(writer.mean(value))
        return term

    def with_what_is_there(self, term, at):
        """A term with xhat in the place of z / sd, where xhat = z / sd is computed before and has other readers."""
        for v in term.above:
            for w in term.below:
                k = self.quotients.get((v, w))
                if k is not None and k < at and not any(
                        k < place < at and self.body[k].targets[0] in found for place, found in self.changed):
                    return term.without(v, w).with_factor(self.body[k].targets[0])
        return term

    def size(self, value, absorbed):
        """The number of operations in a value, with those that it absorbs."""
        return 1 + sum(self.size(self.body[self.place[a]].value, absorbed) if a in absorbed else 0
                       for a in value.args if isinstance(a, Var))

    def definition(self, v, at):
        """The operation that makes a value with this one reader, if it may as well be computed here; or None."""
        k = self.place.get(v) if self.depth < DEEP and isinstance(v, Var) and v.kind in self.kinds and self.counts.get(
            v) in (1, self.reads.get(v)) else None
        if k is None or not _is_arithmetic(self.body[k]):
            return None
        value = self.body[k].value
        read = set(operands(value))
        read |= {o for v in read if v.fact.dims and isinstance(made := self.made(v), Apply) for o in aliased(made)}
        if any(k < place < at and not read.isdisjoint(found) for place, found in self.changed):
            return None
        return value

    def filled_with(self, v):
        """The number that all entries of an array with this one reader are; None if they are not known to be one."""
        read_here = isinstance(v, Var) and v.kind in self.kinds and self.counts.get(v) in (1, self.reads.get(v))
        return filled_with(self.made(v)) if read_here else None

    def is_call(self, v):
        made = self.made(v) if isinstance(v, Var) and v.kind == TEMPORARY and self.counts.get(v) == 1 else None
        return made is not None and reads(made) != "part" and getattr(made.function, "__module__", "") != "_operator"

    def made(self, v):
        k = self.place.get(v)
        return None if k is None else self.body[k].value

    def sum_of(self, value, at, absorbed):
        """The terms of a value; None if there are too many."""
        self.depth += 1
        try:
            return self.terms(value, at, absorbed)
        finally:
            self.depth -= 1

    def terms(self, value, at, absorbed):
        if role(value) in SUMS:
            found = []
            for a, sign in zip(value.args, (1, 1 if role(value) == "sum" else -1)):
                terms = self.terms_of(a, at, absorbed)
                found += terms if sign > 0 else [t.negated() for t in terms]
            return found if len(found) <= TERMS else None
        if role(value) == "negation":
            return [t.negated() for t in self.terms_of(value.args[0], at, absorbed)]
        return [self.product(value, at, absorbed)]

    def terms_of(self, a, at, absorbed):
        """The terms of an operand of a sum, which may be a sum itself."""
        inner = self.definition(a, at)
        if inner is not None and role(inner) in SUMS | {"negation"}:
            before = len(absorbed)
            absorbed.append(a)
            terms = self.sum_of(inner, at, absorbed)
            if terms is not None:
                return terms
            del absorbed[before:]       # too many
            return [Term(1, (a,))]
        return self.one(a, at, absorbed)

    def one(self, a, at, absorbed):
        """The single term of an operand that is a factor or a product of factors, in a list."""
        if _is_number(a):
            return [Term(a.value)]
        if (number := self.filled_with(a)) is not None:
            absorbed.append(a)
            return [Term(number)]
        inner = self.definition(a, at)
        if inner is None or role(inner) in SUMS:
            return [Term(1, (a,))]
        absorbed.append(a)
        if role(inner) == "negation":
            (term,) = self.one(inner.args[0], at, absorbed)
            return [term.negated()]
        return [self.product(inner, at, absorbed)]

    def product(self, value, at, absorbed):
        self.depth += 1
        try:
            return self.factors(value, at, absorbed)
        finally:
            self.depth -= 1

    def factors(self, value, at, absorbed):
        combine = Term.times if role(value) == "product" else Term.over
        before = len(absorbed)
        (left,), (right,) = (self.one(a, at, absorbed) for a in value.args)
        found = combine(left, right)
        if math.isnan(found.coefficient) or math.isnan(found.divisor):      # the numbers are not multiplied
            del absorbed[before:]
            (left,), (right,) = ([Term(a.value)] if _is_number(a) else [Term(1, (a,))] for a in value.args)
            found = combine(left, right)
        return found


def _without_roots(term, radicands):
    """A term with r in the place of np.sqrt(r) * np.sqrt(r), if another root is left: it is NaN for a negative r."""
    for side in ("above", "below"):
        factors = list(getattr(term, side))
        for v in dict.fromkeys(factors):
            if v in radicands and factors.count(v) > 2:
                factors.remove(v)
                factors[factors.index(v)] = radicands[v]
        term = term._replace(**{side: tuple(factors)})
    return term


def _has_number_inside(value, terms):
    """Whether a value is a product like a * (2 * b), which reads better as 2 * a * b."""
    return role(value) == "product" and not any(map(_is_number, value.args)) and len(terms) == 1 and \
        _moves_exactly(terms[0].coefficient) and terms[0].divisor == 1 and not terms[0].below


def _moves_exactly(number):
    """Whether a factor of a product may stand elsewhere in it without another rounding: a power of two, but not 1."""
    return abs(number) != 1 and math.frexp(abs(number))[0] == 0.5


def _common_factors(terms):
    """The factors that all terms share, as a term with coefficient 1; None if there are none."""
    if len(terms) < 2:
        return None
    sides = []
    for side in ("above", "below"):
        common = Counter(getattr(terms[0], side))
        for t in terms[1:]:
            common &= Counter(getattr(t, side))
        sides.append(tuple(common.elements()))
    return Term(1, *sides) if any(sides) else None


def _together(terms):
    """The terms with like ones added up, without those that cancel."""
    found = {}
    for t in terms:
        kept = found.get(t.key())
        found[t.key()] = t if kept is None else kept.plus(t)
    return [t for t in found.values() if t.coefficient != 0]


class _Writer:
    """The statements of a sum of terms."""

    def __init__(self, step, is_call):
        """is_call: whether a factor will be printed as a call of a function"""
        self.step, self.made, self.factored, self.is_call = step, [], False, is_call
        self.rules, self.identities = [], []        # that explain the statements

    def sum(self, terms):
        """The operand that holds the sum; None if there is no term, or a coefficient is not finite."""
        if not terms or not all(math.isfinite(t.coefficient) and math.isfinite(t.divisor) and t.divisor for t in terms):
            return None
        common = _common_factors(terms)
        if common is not None:          # a * b - a * c is a * (b - c)
            inner = self.sum([t.left_by(common) for t in terms])
            if isinstance(inner, Var):
                self.factored = True
                self.identities.append("a * b + a * c = a * (b + c)")
                return self.product(common.times(Term(1, (inner,))))
        flip = all(t.coefficient < 0 for t in terms)
        first = next(k for k, t in enumerate(terms) if (t.coefficient > 0) != flip)
        total = None
        for t in [terms[first], *terms[:first], *terms[first + 1:]]:
            written = self.product(t._replace(coefficient=abs(t.coefficient)))
            minus = (t.coefficient < 0) != flip
            total = written if total is None else self.apply(operator.sub if minus else operator.add, total, written)
        return self.apply(operator.neg, total) if flip else total

    def product(self, term):
        """The operand that holds a term: small factors are multiplied first, and divided as soon as possible."""
        groups, total = {}, None if term.coefficient == 1 else Const(_plain(term.coefficient))
        below = [] if term.divisor == 1 else [Const(_plain(term.divisor))]
        for v, side in [(v, 0) for v in term.above] + [(v, 1) for v in term.below]:
            groups.setdefault(_extent(v), ([], []))[side].append(v)
        for _, (above, under) in sorted(groups.items()):
            for v in sorted(above, key=self.is_call) if total is not None else above:       # 2 * x * np.sin(x)
                total = v if total is None else self.apply(operator.mul, total, v)
            below += under
            if total is not None and below and above:
                total, below = self.divided(total, below), []
        return self.divided(Const(1) if total is None else total, below) if below else Const(1) if total is None \
            else total

    def divided(self, total, below):
        divisor = below[0]
        for v in below[1:]:
            divisor = self.apply(operator.mul, divisor, v)
        return self.apply(operator.truediv, total, divisor)

    def apply(self, function, *args):
        var = Var("t", types.infer(function, args), TEMPORARY)
        self.made.append(Let((var,), Apply(function, args), self.step.origin))
        return var

    def total(self, value, of):
        var = Var("sum", types.infer(value.function, (of,), value.kwargs), TEMPORARY)
        self.made.append(Let((var,), Apply(value.function, (of,), value.kwargs), self.step.origin))
        return var

    def mean(self, value):
        var = Var("mean", types.infer(np.mean, value.args, value.kwargs), TEMPORARY)
        self.made.append(Let((var,), Apply(np.mean, value.args, value.kwargs), self.step.origin))
        return var

    def statements(self, total):
        """The statements that were made; the last one sets the target of the original statement."""
        origin = self.step.origin.shortened(self.identities, self.rules)
        for step in self.made:
            step.targets[0].hint, step.origin = describe(step.value.function, step.value.args), origin
        if self.made[-1].targets[0] is not total:
            return [*self.made, Let(self.step.targets, total, origin)]
        last = self.made.pop()
        return [*self.made, Let(self.step.targets, last.value, origin)]


def _short(a, b):
    """a * b; NaN, which stops the rewriting, if the product has more digits than both: 0.1 * 0.1."""
    product = a * b
    if a in (1, -1) or b in (1, -1):
        return product
    lost = not math.isfinite(product) or not product and a and b        # too large, or too small, for a number
    return math.nan if lost or len(repr(float(product))) >= len(repr(float(a)) + repr(float(b))) else product


def _plain(number):
    """2.0 as 2: a Python number does not change the dtype of a floating-point operand."""
    return int(number) if float(number).is_integer() and abs(number) < 2 ** 53 else number


def _extent(v):
    """The number of axes of a value that are not of length one."""
    return sum(not d.is_unit for d in v.fact.dims) if isinstance(v, Var) else 0


def _is_number(a):
    return isinstance(a, Const) and type(a.value) in NUMBERS and math.isfinite(a.value)


def _is_arithmetic(step):
    """Whether a statement is arithmetic on floating-point values and Python numbers."""
    value = step.value
    return role(value) in ARITHMETIC and not value.kwargs and _is_float(step.targets[0]) and all(
        _is_float(a) or _is_number(a) or role(value) in PRODUCTS and _is_count(a) for a in value.args)


def _alike(a, b):
    return np.dtype(a.dtype) == np.dtype(b.dtype) and a.rank == b.rank and all(x.same(y) for x, y in zip(
        a.dims, b.dims))


def _is_count(v):
    """Whether an operand is an integer whose products do not overflow."""
    return isinstance(v, Var) and whole(v)


def _chooses(value):
    """Whether an operation selects entries of its operands by a condition, as np.where does."""
    record = record_of(value.function) if isinstance(value, Apply) else None
    return record is not None and "masks" in record.options


def _is_float(v):
    return isinstance(v, Var) and type(v.fact) is Array and v.fact.kind in "fc"


# --- what loops carry ------------------------------------------------------------------------------------------------

def constant_carries(function: Function) -> list:
    """The body of a function without scalars that loops carry and never change, through branches and inner loops.

    It is optimistic constant propagation: all carries are assumed to keep their first value, until one is found that
    does not.  Source: Wegman and Zadeck, Constant propagation with conditional branches, TOPLAS 13 (1991).
    """
    carries = [c for s in walk(function.body) for c in getattr(s, "carries", ()) if _is_float_number(c.inner)]
    joins = [j for s in walk(function.body) for j in getattr(s, "joins", ()) if _is_float_number(j.var)]
    kept = list(carries)
    while kept:
        env = {v: c.init for c in kept for v in (c.inner, c.outer)}

        def of(v, env=env):
            while isinstance(v, Var) and v in env:
                v = env[v]
            return v

        grown = True
        while grown:                    # joins of which both arms give one value
            found = {j.var: j.then for j in joins if j.var not in env and same_operand(of(j.then), of(j.orelse))}
            env.update(found)
            grown = bool(found)
        lost = [c for c in kept if not same_operand(of(c.next), of(c.init))]
        if not lost:
            break
        kept = [c for c in kept if c not in lost]
    if not kept:
        return function.body
    gone = {id(c) for c in kept}
    env = {v: of(v) for v in env}
    env = {v: w for v, w in env.items() if v is not w}
    for step in walk(function.body):
        if getattr(step, "carries", ()):
            step.carries = [c for c in step.carries if id(c) not in gone]
        for j in list(getattr(step, "joins", ())):
            if j.var in env:
                step.joins.remove(j)
    function.result = substituted(function.result, env)
    return replaced(function.body, env)


def _is_float_number(v):
    return type(v.fact) is Array and not v.fact.dims and v.fact.kind in "fc" and v.kind != USER


# --- transposes of products ------------------------------------------------------------------------------------------

def turned_products(function: Function) -> list:
    """The body of a function with B.T @ A for (A.T @ B).T, if that has fewer transposes, and np.outer(b, a) for
    np.outer(a, b).T.
    """
    counts = read_counts(function)

    def block(body):
        found = [s if isinstance(s, Let) else rebuilt(s, {}, block) for s in body]
        values = {s.targets[0]: s for s in found if isinstance(s, Let) and len(s.targets) == 1}
        changed = [(k, set(updated_in(s))) for k, s in enumerate(found)]
        place, out = {id(s): k for k, s in enumerate(found)}, []

        def once(v, at):
            """The operation that makes a value with this one reader, if its operands have not changed; or None."""
            made = values.get(v)
            if made is None or counts.get(v) != 1 or not is_generated(made) or any(
                    place[id(made)] < k < at and not names.isdisjoint(operands(made.value)) for k, names in changed):
                return None
            return made.value

        def turned(v):
            """The matrix of which a value is the transpose, or None."""
            made = values.get(v)
            return made.value.args[0] if made is not None and _is_transpose(made.value) else None

        for k, step in enumerate(found):
            if not (is_generated(step) and _is_transpose(step.value)):
                out.append(step)
                continue
            inner, flip = once(step.value.args[0], k), False
            if inner is not None and role(inner) == "negation":
                flip, inner = True, once(inner.args[0], k)
            made = None
            if inner is not None and role(inner) == "outer product" and not inner.kwargs:
                made = Apply(inner.function, inner.args[::-1])
            elif inner is not None and role(inner) == "matrix product" and all(
                    isinstance(a, Var) and a.fact.rank == 2 for a in inner.args):
                before = 1 + sum(turned(a) is not None and counts.get(a) == 1 for a in inner.args)
                if sum(turned(a) is None for a in inner.args) < before:
                    sides = []
                    for a in inner.args[::-1]:
                        side = turned(a)
                        if side is None:
                            value = Apply(step.value.function, (a,))
                            side = Var(describe(value.function, value.args), types.infer(value.function, value.args))
                            out.append(Let((side,), value, step.origin))
                        sides.append(side)
                    made = Apply(inner.function, tuple(sides))
            if made is not None and flip:
                product = Var("z", step.targets[0].fact)
                out.append(Let((product,), made, step.origin))
                made = Apply(operator.neg, (product,))
            out.append(step if made is None else Let(step.targets, made, step.origin))
        return out
    return block(function.body)


def _is_transpose(value):
    return role(value) == "transpose" and len(value.args) == 1 and not value.kwargs and isinstance(
        value.args[0], Var) and value.args[0].fact.rank == 2


def axis_and_keepdims(value):
    """The keywords of a reduction, {"axis": an int, a tuple of ints or None, "keepdims": a bool}; None if there are
    other keywords, or values that are not known.
    """
    words = {k: a.value if isinstance(a, Const) else NotImplemented for k, a in value.kwargs}
    axis, kept = words.get("axis"), words.get("keepdims", False)
    known = axis is None or type(axis) is int or type(axis) is tuple and all(type(k) is int for k in axis)
    return words if known and type(kept) is bool and set(words) <= {"axis", "keepdims"} else None


# --- axes of length one ----------------------------------------------------------------------------------------------

def axes_kept(function: Function) -> list:
    """The body of a function where reductions keep their axis, or do not, as their only reader uses it.

    np.sum(a, axis=1)[:, None] becomes np.sum(a, axis=1, keepdims=True); a reduction with keepdims=True that is read by
    [:, 0] loses both.  An index moves into arithmetic with a number: (1 / s)[:, None] is 1 / s[:, None].
    """
    counts = read_counts(function)

    def block(body):
        body = [s if isinstance(s, Let) else rebuilt(s, {}, block) for s in body]
        place = {s.targets[0]: k for k, s in enumerate(body) if isinstance(s, Let) and len(s.targets) == 1 and
                 isinstance(s.value, Apply) and counts.get(s.targets[0]) == 1 and s.targets[0].kind == TEMPORARY}
        for k in range(len(body) - 1, -1, -1):
            step = body[k]
            while is_generated(step) and reads(step.value) == "part" and step.value.args[0] in place:
                source, index = step.value.args
                inner = body[place[source]]
                arrays = [a for a in inner.value.args if isinstance(a, Var)]
                kept = _with_its_axes(inner.value, index, source.fact)
                if kept is not None:
                    step.value = kept
                elif role(inner.value) in PRODUCTS | {"negation"} and len(arrays) == 1 and is_generated(inner) \
                        and axes_undone(index, source.fact.dims) is not None:
                    fact = types.item(arrays[0].fact, index)
                    moved = Var(arrays[0].hint, fact, TEMPORARY)
                    counts[moved] = 1
                    inner.targets, inner.value, (factors, whole) = (moved,), Apply(
                        operator.getitem, (arrays[0], index)), (inner.value.args, inner.value.function)
                    step.value = Apply(whole, tuple(moved if a is arrays[0] else a for a in factors))
                    place[moved] = place.pop(source)
                    at = place[moved]
                    if arrays[0] in place and reads(body[at].value) == "part":
                        again = _with_its_axes(body[place[arrays[0]]].value, index, arrays[0].fact)
                        if again is not None:
                            inner.value = again
                break
        return body
    return block(function.body)


def _with_its_axes(value, index, fact):
    """The reduction that an index of a reduction of one axis is, with keepdims or without; None if it is neither."""
    record = record_of(value.function)
    if record is None or "keepdims" not in record.signature.parameters or len(value.args) != 1:
        return None                     # not a reduction
    words, rank = axis_and_keepdims(value), value.args[0].fact.rank if isinstance(value.args[0], Var) else 0
    if words is None or type(axis := words.get("axis")) is not int:
        return None
    undone = axes_undone(index, fact.dims)
    if undone is None:
        return None
    parts, axis = [getattr(p, "value", None) for p in parts_of(index)], axis % rank
    if words.get("keepdims"):
        wanted = [slice(None)] * axis + [0]
        if parts not in (wanted, [slice(None)] * axis + [-1]):
            return None
        return Apply(value.function, value.args, (("axis", Const(words["axis"])),))
    wanted = [slice(None)] * axis + [None]
    if parts[:axis + 1] != wanted or any(p != slice(None) for p in parts[axis + 1:]):
        return None
    return Apply(value.function, value.args, (("axis", Const(words["axis"])), ("keepdims", Const(True))))


# --- sums that are zero ----------------------------------------------------------------------------------------------

class _Polynomials:
    """Values as polynomials in entries of arrays, and in sums of these over an axis, with an index for each axis.

    A polynomial is {monomial: coefficient}; a monomial is a set of ((atom, its indices), exponent).  A factor that does
    not depend on the index of a sum is moved out of it; the rest of the sum is an atom, compared by its text.  So two
    sums are equal if they differ in the names of their indices only.  An index is the number of the value's axis, -1
    along an axis of length one.
    """

    def __init__(self, function):
        self.made = {s.targets[0]: s.value for s in walk(function.body) if isinstance(s, Let) and len(s.targets) == 1}
        self.waiting = [v for v in self.made if _is_float(v)]
        self.found, self.opaque = {}, set()     # opaque: not a polynomial in their operands

    def of(self, v):
        """The polynomial of an operand.  The first call computes those of all values, in their order."""
        if self.waiting:
            waiting, self.waiting = self.waiting, ()
            for made in waiting:
                self.of(made)
        if isinstance(v, Const):
            if not _is_number(v):
                raise _Unknown
            return {frozenset(): v.value} if v.value else {}
        if v not in self.found:
            self.found[v] = self.atom(v)        # until it is known: a value that depends on itself is an atom
            try:
                self.found[v] = self.computed(v)
            except _Unknown:
                self.opaque.add(v)
        return self.found[v]

    def atom(self, v):
        indices = tuple(-1 if d.is_unit else k for k, d in enumerate(v.fact.dims))
        return {frozenset([((v, indices), 1)]): 1}

    def computed(self, v):
        value = self.made.get(v)
        if not isinstance(value, Apply) or not _is_float(v):
            raise _Unknown
        kind, args = role(value), value.args
        if kind in SUMS and not value.kwargs:
            a, b = (self.along(x, v) for x in args)
            return _added(a, b, 1 if kind == "sum" else -1)
        if kind == "negation" and not value.kwargs:
            return _added({}, self.of(args[0]), -1)
        if kind == "product" and not value.kwargs:
            return self.multiplied(*(self.along(x, v) for x in args))
        if kind == "quotient" and not value.kwargs:
            a, b = (self.along(x, v) for x in args)
            return self.multiplied(a, self.inverse(b, args[1], v))
        if kind == "total":
            return self.summed(value)
        if reads(value) == "part" and isinstance(args[0], Var) and type(args[0].fact) is Array:
            return self.turned(*args)
        raise _Unknown

    def along(self, x, v):
        """The polynomial of an operand, broadcast to the axes of a value."""
        found = self.of(x)
        shift = v.fact.rank - (x.fact.rank if isinstance(x, Var) else 0)
        if isinstance(x, Var):
            for k, d in enumerate(x.fact.dims):
                if not d.is_unit and not d.same(v.fact.dims[k + shift]):
                    raise _Unknown          # it may be of length one
        return _with_indices(found, lambda k: k + shift) if shift else found

    def multiplied(self, a, b):
        if len(a) * len(b) > TERMS:
            raise _Unknown
        total = {}
        for m, c in a.items():
            for n, d in b.items():
                key = self.product_of(m, n)
                if not c * d or not math.isfinite(c * d):
                    raise _Unknown          # underflow or overflow
                total[key] = total.get(key, 0) + c * d
        return {m: c for m, c in total.items() if c}

    def inverse(self, b, x, v):
        if len(b) == 1:
            ((m, c),) = b.items()
            return {frozenset((factor, -power) for factor, power in m): 1 / c}
        if not isinstance(x, Var):
            raise _Unknown
        shift = v.fact.rank - x.fact.rank
        return {frozenset((factor, -1) for factor, _ in m): 1 for m in _with_indices(self.atom(x), lambda k: k + shift)}

    def summed(self, value):
        words = axis_and_keepdims(value)
        if len(value.args) != 1 or not isinstance(value.args[0], Var) or words is None:
            raise _Unknown
        rank, axes = value.args[0].fact.rank, words.get("axis")
        axes = range(rank) if axes is None else (axes,) if type(axes) is int else axes
        axes = sorted({k % rank for k in axes})
        total = self.of(value.args[0])
        for k in axes:
            if not value.args[0].fact.dims[k].is_unit:
                total = self.over_an_axis(total, k, value.args[0].fact.dims[k].normal())
        if words.get("keepdims"):
            return total
        return _with_indices(total, lambda k: k - sum(j < k for j in axes))

    def over_an_axis(self, polynomial, axis, length):
        """The sum of a polynomial over one index."""
        total = {}
        for m, c in polynomial.items():
            inside = {f for f in m if axis in f[0][1]}
            free = sorted({k for f in inside for k in f[0][1]} - {axis, -1})
            names = {axis: "over", -1: -1, **{k: n for n, k in enumerate(free)}}
            if inside:
                text = frozenset(((atom, tuple(names[k] for k in indices)), power) for (atom, indices), power in inside)
                summed = ("sum", text), tuple(free)
            else:
                summed = ("length", (), length.symbol, length.offset), ()
            key = self.product_of(m - inside, frozenset([(summed, 1)]))
            total[key] = total.get(key, 0) + c
        return {m: c for m, c in total.items() if c}

    def product_of(self, m, n):
        """The product of two monomials; what cancels must not be 0."""
        powers = dict(m)
        for factor, power in n:
            powers[factor] = powers.get(factor, 0) + power
            if not powers[factor]:
                if not self.is_positive(factor[0]):
                    raise _Unknown
                del powers[factor]
        return frozenset(powers.items())

    def turned(self, x, index):
        if axes_undone(index, x.fact.dims) is None:
            raise _Unknown
        new, old, moved = 0, 0, {}
        for p in [getattr(p, "value", None) for p in parts_of(index)] + [slice(None)] * x.fact.rank:
            if p is None:
                new += 1
            elif old < x.fact.rank:
                if isinstance(p, slice):
                    moved[old] = new
                    new += 1
                old += 1
        return _with_indices(self.of(x), moved.__getitem__)

    def is_positive(self, atom):
        """Whether the entries of an atom are positive: exponentials, and sums of products of positive ones."""
        if isinstance(atom, Var):
            return role(self.made.get(atom)) == "exponential" and atom.fact.kind == "f"
        kind, inner = atom[:2]
        return kind == "length" or all(self.is_positive(factor[0]) for factor, _ in inner)


class _Unknown(Exception):
    """Raised for a value that is not a polynomial in its operands: it is an atom."""


def _added(a, b, sign):
    total = dict(a)
    for m, c in b.items():
        total[m] = total.get(m, 0) + sign * c
    if len(total) > TERMS:
        raise _Unknown
    return {m: c for m, c in total.items() if c}


def _with_indices(polynomial, of):
    return {frozenset(((atom, tuple(k if k < 0 else of(k) for k in indices)), power)
                      for (atom, indices), power in m): c for m, c in polynomial.items()}


def without_zeros(function: Function) -> tuple:
    """The body and the result of a function without terms of generated sums that are proved to be zero.

    The adjoint of the shift in log-sum-exp is one: its terms add up to 0.

    >>> from gradscribe.ast_transform.examples import gradient, show
    >>> from gradscribe.ast_transform.passes.simplify import drop_dead
    >>> text = "def f(x):\\n    m = np.max(x)\\n    return m + np.log(np.sum(np.exp(x - m)))"
    >>> made = gradient(text, np.ones(3))
    >>> made.body, made.result = without_zeros(made)
    >>> made.body = drop_dead(made.body, made.result)
    >>> print(show(made))
    grad_f(x):
        m = np.max(x)
        z = x - m
        exp_z = np.exp(z)
        sum_exp_z = np.sum(exp_z)
        dexp_z = 1 / sum_exp_z
        dx = dexp_z * exp_z
        return dx
    """
    body, result = _without_terms(function, _Polynomials(function))
    function = Function(function.label, function.params, body, result, function.about, function.notes)
    for v in _without_influence(function):
        known = _Polynomials(function)
        known.found[v] = {}
        body, result = _without_terms(function, known)
        if v not in live_values(body, result):
            function.body, function.result = body, result
    return function.body, function.result


def _without_terms(function, known):
    """The body and the result without terms that are zero."""
    env, proved = {}, []

    def block(body):
        out = []
        for step in body:
            step = rebuilt(step, env, block)
            if is_generated(step) and role(step.value) in SUMS and not step.value.kwargs:
                a, b = step.value.args
                proved.extend((step.origin, v) for v in (a, b) if is_zero(v))
                (target,) = step.targets
                kept = a if is_zero(b) else b if role(step.value) == "sum" and is_zero(a) else None
                if isinstance(kept, Var) and _alike(kept.fact, target.fact):
                    env[target] = kept
                    continue
                if role(step.value) == "difference" and is_zero(a) and _is_float(b) and _alike(b.fact, target.fact):
                    step.value = Apply(operator.neg, (b,))
            out.append(step)
        return out

    def is_zero(v):
        return isinstance(v, Var) and _is_float(v) and v in known.made and not known.of(v)

    body = block(function.body)
    for step in walk(body) if proved else ():       # the user's statement explains why its adjoint has no line
        if isinstance(step, Let) and step.origin is not None and not step.origin.generated:
            step.origin = step.origin.shortened([
                f"the adjoint of {step.targets[0].hint} is zero: its terms sum to 0" if o.generated == 1 else
                f"{v.hint} is zero: its terms sum to 0" for o, v in proved if o.same_statement(step.origin)])
    return replaced(body, env), substituted(function.result, env)


def _without_influence(function):
    """Generated values that others are computed from, though none of these depends on them.

    The tangent of the shift in log-sum-exp is one.  Each path from such a value ends in a polynomial without it.
    """
    known = _Polynomials(function)
    if not any(role(value) == "total" for value in known.made.values() if isinstance(value, Apply)):
        return []                       # only the terms of a sum cancel
    readers = _readers(function)
    found = [s.targets[0] for s in walk(function.body) if is_generated(s) and _is_float(s.targets[0])]
    for v in found[:1]:
        known.of(v)
    candidates = [v for v in found if v in known.opaque and len(readers.get(v, ())) > 1]
    return [v for v in candidates if (after := _computed_from(v, readers)) is not None and
            _influence_ends(v, after, known, readers)]


def _readers(function):
    """{value: the operations that read it, and None for each other reader}."""
    readers = {}
    for step in walk(function.body):
        if isinstance(step, Let) and isinstance(step.value, Apply):
            for v in operands(step.value):
                readers.setdefault(v, []).append(step)
        else:
            for v in all_reads(step):
                readers.setdefault(v, []).append(None)
    for v in operands(function.result):
        readers.setdefault(v, []).append(None)
    return readers


def _computed_from(v, readers):
    """All values that are computed from one; None where there are more than FAR."""
    found = {v}
    for u in (queue := [v]):
        more = [t for s in readers.get(u, ()) if s is not None for t in s.targets if t not in found]
        found.update(more)
        queue += more
        if len(found) > FAR:
            return None
    return found


def _influence_ends(v, after, known, readers):
    """Whether each path from a value ends in a generated value whose polynomial has none of the values `after`."""
    queue, seen = [v], {v}
    for u in queue:
        for step in readers.get(u, ()):
            if step is None or not is_generated(step) or not _is_float(t := step.targets[0]):
                return False
            polynomial = known.of(t)
            if t in known.opaque:
                return False
            if t not in seen and _has(polynomial, after):
                seen.add(t)
                queue.append(t)
    return True


def _has(polynomial, values):
    """Whether a polynomial contains one of some values, as an atom or inside a sum."""
    def within(factors):
        return any(a in values or isinstance(a, tuple) and a[0] == "sum" and within(a[1]) for (a, _), _ in factors)
    return any(map(within, polynomial))


def live_values(body: list, result: Any, without: Iterable[Let] = ()) -> set[Var]:
    """The values that a result, or a statement other than an operation, depends on; the operations `without` are left
    out.
    """
    left_out = set(map(id, without))
    made = {t: s.value for s in walk(body) if isinstance(s, Let) and id(s) not in left_out for t in s.targets}
    queue = [*operands(result), *(v for s in walk(body) if not isinstance(s, Let) for v in _own_reads(s))]
    found = set(queue)
    for v in queue:
        more = [o for o in operands(made[v]) if o not in found] if v in made else []
        found.update(more)
        queue += more
    return found


def _own_reads(step):
    """The values that a loop or branch itself reads, without those that statements inside it read."""
    inside = {id(s) for block in blocks(step) for s in walk(block)}
    yield from all_reads(step) if not inside else (
        v for v in all_reads(rebuilt(step, {}, lambda _: [])))
