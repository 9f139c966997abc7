# SPDX-License-Identifier: Apache-2.0
"""A derivative in two halves: what the primals settle, done once, and what is left for each tangent or cotangent.

`gs.vjp` and `gs.linearize` give linear functions that are called many times at one point.  The statements of the
derivative that read no tangent are run at the first call, and their values kept; a call runs the others alone.  Of a
loop that carries a tangent along, all is left for each call.

What is kept is read-only, so a statement that would write into it fails, and the derivative is run as a whole again.

Source: R. Frostig, M. Johnson, D. Maclaurin, A. Paszke and A. Radul, Decomposing reverse-mode automatic
differentiation (2021): linearisation as partial evaluation.
"""
import copy
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.draw import draws_elsewhere
from gradscribe.ast_transform.core.form import Apply, Const, Function, Let, Pack, Param, all_reads, made, operands
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.check import check
from gradscribe.ast_transform.passes.renest import renest
from gradscribe.ast_transform.requirements import place_of
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError
from gradscribe.codegen.build import build
from gradscribe.codegen.emit import emit
from gradscribe.given import as_numpy, with_objects
from gradscribe.making import alone

ALLOCATIONS = (np.zeros, np.zeros_like, np.empty, np.empty_like, np.full, np.full_like, np.ones, np.ones_like, np.copy)


class Halves:
    """The two halves of a normal form; `tangents`: which of its parameters differ from call to call.

    Attributes: once (the primals to what is kept), each (the tangents, then what is kept, to the result), and their
    texts, once_source and each_source.  `found` is False where there is nothing to do once.
    """

    def __init__(self, form, reader, tangents):
        late = {v for k in tangents for v in operands(form.params[k].value)}
        given_back = set(operands(form.result))         # each call gives arrays of its own
        body = [[s, any(v in late for v in all_reads(s)) or any(v in given_back for v in made(s))] for s in form.body]
        self.spread(body, late)
        early = {v for s, is_late in body if not is_late for v in made(s)}
        wanted = [v for s, is_late in body if is_late for v in all_reads(s)] + list(operands(form.result))
        kept = [v for v in dict.fromkeys(wanted) if v in early]
        primals = [p for k, p in enumerate(form.params) if k not in tangents]
        read = set(wanted)
        passed = [p for p in primals if any(v in read for v in operands(p.value))]
        self.found = bool(kept) and not reader.writes_arguments and all(
            isinstance(v, Const) or isinstance(v.fact, Array) for v in [*kept, *(p.value for p in passed)])
        if not self.found:
            return
        once = Function(f"{form.label}_once", primals, [s for s, is_late in body if not is_late],
                        Pack("tuple", tuple(kept)), form.about, dict(form.notes))
        given = [*(form.params[k] for k in tangents), *passed, *(Param(v.hint, v) for v in kept)]
        names = unlike([p.name for p in given])
        given = [Param(n, p.value, p.keyword) for n, p in zip(names, given)]
        each = Function(form.label, given, [s for s, is_late in body if is_late], form.result, form.about,
                        dict(form.notes))
        self.passed = [primals.index(p) for p in passed]
        self.once, self.once_source = built(once, reader)
        self.each, self.each_source = built(each, reader)

    def spread(self, body, late):
        """Marks what reads a tangent, however far; and allocations that such a statement goes on with."""
        again = True
        while again:
            again = False
            continued = set()
            for entry in body:
                s, is_late = entry
                if not is_late and any(v in late for v in all_reads(s)):
                    entry[1] = is_late = again = True
                if is_late:
                    late.update(made(s))
                    continued.update(all_reads(s))
            for entry in body:
                s, is_late = entry
                if not is_late and isinstance(s, Let) and isinstance(s.value, Apply) and \
                        s.value.function in ALLOCATIONS and continued & set(s.targets):
                    entry[1] = again = True
                    late.update(s.targets)


def unlike(names):
    """The names, numbered where they come again."""
    out, taken = [], set()
    for name in names:
        k, n = 1, name
        while n in taken:
            n, k = f"{name}_{k}", k + 1
        taken.add(n)
        out.append(n)
    return out


def built(form, reader):
    emitted = emit(check(renest(form), "renest"), form.label, reader.captured, reader.errstate)
    text = emitted.source()
    return build(text, form.label, emitted.namespace), text


class LinearMap:
    """What gs.vjp and gs.linearize give: a linear function with its `source`.

    source: what was done once, and what each call does; where nothing can be done once, the derivative as a whole.
    """

    def __init__(self, again, made, first, count):
        self.again, self.made, self.first, self.count = again, made, first, count

    def __call__(self, *tangents):
        if len(tangents) != self.count:
            arguments = f"{self.count} argument{'s' * (self.count != 1)}"
            raise KindError(f"the derivative takes {arguments}, {len(tangents)} given", None,
                            "Give the adjoint of the result." if self.first else "Give a tangent for each primal.")
        return with_objects(self.again(self.made, *as_numpy(tangents), first=self.first))

    @property
    def source(self) -> str:
        linear = self.again.linear.get(self.made)
        if linear is None:
            return "# not called yet"
        last = linear.last
        if last is None:
            return self.made.source
        return last.once_source + "\n\n" + last.each_source.removeprefix("import numpy as np\n\n\n")


class Again:
    """Calls derivatives at primals that were given once."""

    def __init__(self, fun, kept, streams):
        self.fun, self.kept, self.streams, self.linear = fun, kept, streams, {}

    def __call__(self, made, *tangents, first):
        """first: whether the tangents come before the primals."""
        primals = copy.deepcopy(self.kept) if self.streams else self.kept
        given = [*tangents, *primals] if first else [*primals, *tangents]
        name = draws_elsewhere(made.version_for(given, {}).normal_form)
        if name:
            raise LanguageError(
                f"the function is evaluated again, and {name} would not give the numbers that it gave before",
                place_of(self.fun), "Pass the generator as an argument, or draw outside the function.")
        if self.streams:
            return made(*given)
        if made not in self.linear:
            self.linear[made] = Linear(made, self.kept, first)
        return self.linear[made](*tangents)

    def __reduce__(self):               # what was done once is done again where it is needed
        return Again, (self.fun, self.kept, self.streams)


class Linear:
    """A derivative at fixed primals, of which each call runs the second half."""

    def __init__(self, made, primals, first):
        """first: whether the tangents come before the primals."""
        self.made, self.first, self.halves = made, first, {}
        self.last = None                        # the halves of the last call
        self.primals, self.fixed = primals, [read_only(p) for p in primals]

    def __call__(self, *tangents):
        given = [*tangents, *self.primals] if self.first else [*self.primals, *tangents]
        version = self.made.version_for(given, {})
        found = self.halves.get(version)
        if found is None:
            found = self.halves[version] = self.start(given, len(tangents))
        halves, kept = found
        self.last = halves
        if halves is None or version.convert:
            return self.made(*given)
        try:
            return halves.each(*tangents, *(self.fixed[k] for k in halves.passed), *kept)
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            self.halves[version], self.last = (None, ()), None
            return self.made(*given)

    @alone
    def start(self, given, count):
        n = len(self.primals)
        places = range(count) if self.first else range(n, n + count)
        names = self.made.parameter_names(len(given))
        facts, words = self.made._described(given, {}, names)
        form, pipeline = self.made.normal_form(names, facts, words, nested=False)
        halves = Halves(form, pipeline.reader, list(places))
        if not halves.found:
            return None, ()
        return halves, [read_only(v) for v in halves.once(*self.primals)]


def read_only(value: Any):
    """A value that no statement can write into: arrays as views that are not writable."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value
