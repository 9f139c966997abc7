# SPDX-License-Identifier: Apache-2.0
"""Prints a function in normal form as Python source.

The tree is built with gast, printed by astor, parsed again and compared (parse-back verification).  Statements that the
backward sweep adds are printed in groups, each below a comment with the user's statement that it belongs to.
"""
import ast
import copy
import itertools
import math
import operator
import types
from collections import Counter
from typing import Any, NamedTuple

import astor
import gast
import numpy as np

from gradscribe.ast_transform.core.alias import may_give_a_cell, raised, reads, updates
from gradscribe.ast_transform.core.draw import is_draw
from gradscribe.ast_transform.core.form import (
    SAVED,
    TANGENT,
    UNDEFINED,
    USER,
    Apply,
    Const,
    Function,
    If,
    Let,
    Pack,
    Undefined,
    Var,
    is_application,
    operands,
    read_counts,
    walk,
)
from gradscribe.ast_transform.core.kinds import Array, Sequence
from gradscribe.ast_transform.core.operations import (
    ANSWER,
    Quoted,
    add_at,
    pop,
    pop_front,
    push,
    push_front,
    put,
    put_add,
    run_length,
    shape_of,
    unpacked,
)
from gradscribe.ast_transform.passes.coalescing import unset_values
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.out_of_ssa import coalesce, summed_up
from gradscribe.ast_transform.passes.types import nested
from gradscribe.ast_transform.passes.verify import verified
from gradscribe.ast_transform.source.trees import nodes
from gradscribe.codegen.came_from import applies, origins, origins_in, parts_of
from gradscribe.codegen.exits import Exits
from gradscribe.codegen.expressions import Expressions, _hashable
from gradscribe.codegen.line_breaking import broken
from gradscribe.codegen.standing import Module, unbound
from gradscribe.codegen.trees import as_index, as_test, assign, const, dotted, method_call, name

MARK = "__note__"


class Emitted:
    """The text of one or more functions, and the globals that they read."""
    known: dict                         # {a text, or the function that is emitted: its name}

    def __init__(self, label):
        self.label, self.texts, self.namespace = label, [], {"np": np}
        self.parameters, self.outside = set(), {}       # of all its functions; {captured array: its name}
        self.home = ""                  # the module of the function that was transformed
        self.whole = None               # the cached result of source()
        self.places = []                # of each text: {line, from 1: the user's statements}

    def body(self):
        return "\n\n".join(self.texts)

    def origins(self, source=None):
        """{line of a source, from 1: the user's statements that it comes from}"""
        source = self.source() if source is None else source
        found, start = {}, len(source.splitlines()) - len(self.body().splitlines())
        for text, lines in zip(self.texts, self.places):
            found.update({start + k: came_from for k, came_from in lines.items()})
            start += len(text.splitlines()) + 1
        return found

    def read(self):
        """(name, object) of the globals that the texts read."""
        names = set(unbound(self.body())) if len(self.namespace) > 1 else ()
        return [(n, v) for n, v in self.namespace.items() if isinstance(v, types.ModuleType) or n in names]

    def running(self):
        """The text that is executed; it imports modules, and its other globals, the user's objects, are passed in."""
        made = Module(to_read=True)
        for identifier, value in self.namespace.items():
            if isinstance(value, types.ModuleType):
                made.add(identifier, value)
        return made.text("", self.body())

    def source(self):
        """The text shown to the user, with a line for each global that it reads."""
        if self.whole is None:
            self.whole = source_of([self], self.home)
        return self.whole

    def standalone(self, heading):
        """The text of a self-contained file; KindError if an object has no text."""
        made = Module(self.home)
        for identifier, value in self.read():
            made.add(identifier, value)
        return made.text(heading, self.body())


def source_of(emitted: list[Emitted], home: str) -> str:
    """The text shown to the user for several emitted functions together."""
    made = Module(home, to_read=True)
    for each in emitted:
        for identifier, value in each.read():
            made.reading(identifier, value)
    return made.text("", "\n\n".join(each.body() for each in emitted))


def emit(function: Function, label: str | None = None, captured: dict | None = None,
         errstate: dict[str, str] | None = None) -> Emitted:
    """The text of a function and of those it calls; `errstate`: arguments of np.errstate around it."""
    out = Emitted(label or function.label)
    out.parameters = {p.name for f in _called(function, {}) for p in f.params}
    for v, value in (captured or {}).values():
        out.outside[v] = provided(out, v.hint, value, {*out.parameters, out.label})
    out.known = {function: out.label}           # reserves the name
    _functions(function, out.label, out, {}, captured or {})
    if errstate:
        out.texts[-1] = f"@np.errstate({', '.join(f'{k}={v!r}' for k, v in errstate.items())})\n{out.texts[-1]}"
        out.places[-1] = {k + 1: came_from for k, came_from in out.places[-1].items()}
    return out


def _called(function, found):
    """The functions that a function calls, directly or not, and itself."""
    if function not in found:
        found[function] = True
        for callee in callees_of(function):
            _called(callee, found)
    return found


def callees_of(function):
    """The functions that a function calls, in the order of its text."""
    for step in walk(function.body):
        for value in _printed_in(step):
            yield from (inner.function for inner in applies(value) if isinstance(inner.function, Function))
    yield from (inner.function for inner in applies(function.result) if isinstance(inner.function, Function))


def _printed_in(step):
    """The values that a statement prints, without those of the statements inside it."""
    yield from (getattr(step, field, None) for field in ("value", "test", "count"))
    yield from (source for _, source in getattr(step, "items", ()))
    for c in getattr(step, "carries", ()):
        yield from (c.init, c.next)
    for j in getattr(step, "joins", ()):
        yield from (j.then, j.orelse)


def provided(out, hint, value, taken):
    """A name for a global object, the same in all functions of a text; `taken`: names of locals."""
    identifier, k = hint, 0
    while identifier in taken or identifier in out.namespace and out.namespace[identifier] is not value:
        k += 1
        identifier = f"{hint}_{k}"
    out.namespace[identifier] = value
    return identifier


def _functions(function, label, out, names, captured):
    """Emits callees first; equal texts become one function."""
    if function in names:
        return names[function]
    for callee in callees_of(function):
        _functions(callee, callee.label, out, names, captured)
    own, texts = function.notes.get("text"), out.known
    texts.pop(function, None)
    if own is not None and label not in out.namespace and label not in texts.values():
        return _in_users_text(function, own, label, out, names)
    writer = _Writer(function, names, captured, out)
    text, lines = writer.text("\0")
    if text in texts:
        names[function] = texts[text]
        return texts[text]
    name, k = label, 0
    while name in texts.values():
        k += 1
        name = f"{label}_{k}"
    texts[text] = names[function] = name
    out.texts.append(text.replace("\0", name))
    out.places.append(lines)
    return name


def _in_users_text(function, text, label, out, names):
    """Emits a function of the user's in the user's own text."""
    out.known[text] = names[function] = label
    out.texts.append(text)
    out.places.append({})
    if "math." in text:
        out.namespace["math"] = math
    return label


def is_tuple_of(result, variables):
    """Whether a result is a tuple of these variables."""
    return isinstance(result, Pack) and result.kind == "tuple" and len(result.items) == len(variables) and all(
        a is b for a, b in zip(result.items, variables))


class _Part(NamedTuple):
    """A statement that takes an entry of a value, which may be part of an unpacking."""
    whole: gast.AST                 # the value
    place: int
    number: int                     # of its entries
    together: Any                   # equal for statements to be joined: the user's statement, or the array of a shape

    def is_with(self, other):
        same = getattr(self.together, "same_statement", self.together.__eq__)
        return type(self.together) is type(other.together) and same(other.together)


class _Unset(NamedTuple):
    """values: those that may be unset when they are read; names: those that are set to None at the beginning."""
    values: set
    names: set


class _Passes(NamedTuple):
    """numbers: {variable: how a number of passes is computed}; assignments: those that the text sets such variables by,
    which are not needed where a loop is over range(start, stop).
    """
    numbers: dict
    assignments: list


class _Writer(Exits, Expressions):
    def __init__(self, function, callees, captured, out):
        self.exits, self.leaving = {}, []       # {id of a For: its Exit}; the Exits of the loops being printed
        self.function, self.callees, self.out = function, callees, out
        self.captured = {v: (v.hint, value) for v, value in captured.values()}
        self.naming = verified(function, coalesce(function, {*callees.values(), *out.namespace}, words=True))
        self.naming.names.update(out.outside)
        self.errors = ()                # floating-point errors that raise at the current statement
        self.heading = None             # the statement that the current comment shows
        self.counts, self.without_axes = read_counts(function), self.arrays_without_axes()
        times: Counter = Counter()
        for v, n in self.counts.items():
            times[self.naming.names.get(v)] += n
        arrays = {n for v, n in self.naming.names.items() if not isinstance(v.fact, Array) or v.fact.dims}
        self.numbers_read_once = {n for n, k in times.items() if k == 1} - arrays
        kinds = {}
        for v, n in self.naming.names.items():
            kinds.setdefault(n, set()).add(v.fact.kind if type(v.fact) is Array else "")
        self.signed = {n for n, found in kinds.items() if found <= set("ifc")}
        unset = unset_values(function.body, by_reads=True)
        self.unset = _Unset(unset, self.copied_unset(unset))
        self.passes = _Passes({s.targets[0]: s.value for s in walk(function.body) if isinstance(s, Let) and isinstance(
            s.value, Apply) and s.value.function in (run_length, min)}, [])

    def arrays_without_axes(self):
        """Values that may be 0-d arrays that alias others, such as arguments: += would change these in place."""
        steps = list(walk(self.function.body))
        lets = [s for s in steps if isinstance(s, Let) and isinstance(s.targets[0].fact, Array)
                and not s.targets[0].fact.dims]
        found = {p.value for p in self.function.params if isinstance(p.value, Var) and isinstance(p.value.fact, Array)
                 and not (p.value.fact.dims or p.value.fact.weak)}
        found.update(s.targets[0] for s in lets if isinstance(s.value, Apply) and may_give_a_cell(s.value))
        pairs = [(s.targets[0], s.value) for s in lets] + [pair for s in steps for pair in _moves(s)]
        before = -1
        while len(found) > before:
            before = len(found)
            found.update(var for var, value in pairs if value in found)
        return found

    def copied_unset(self, maybe_unset):
        """Names that the text copies where they may be unbound; they are set to None, so that the copy cannot fail."""
        unset, found = {UNDEFINED}, True
        pairs = [pair for step in walk(self.function.body) for pair in _moves(step)]
        while found:
            found = {var for var, value in pairs if value in unset and var not in unset}
            unset |= found
        names = self.naming.names
        kept = {names[v] for step in walk(self.function.body) if isinstance(step, Let) and isinstance(step.value, Apply)
                and step.value.function is push for v in step.value.args[1:] if v in unset and v in names}
        kept |= {names[c.init] for step in walk(self.function.body) for c in getattr(step, "carries", ())
                 if (id(c), "init") in self.naming.copied_in and c.inner in maybe_unset}
        return kept | {names[v] for var, v in pairs if isinstance(v, Var) and v in unset and v in names and var in names
                       and names[v] != names[var]}

    def provide(self, hint, value):
        """A name for a global object."""
        taken = {n for v, n in self.naming.names.items() if v not in self.out.outside}
        same = {p.name for p in self.function.params if isinstance(p.value, Const) and p.value.value is value}
        return provided(self.out, hint, value, {*taken, *self.out.parameters, *self.callees.values()} - same)

    # the function

    def text(self, label):
        function = self.function
        body, early = self.body(function)
        read = {n.id for s in body for n in nodes(s) if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Load)}
        body = without(body, [n for n in self.passes.assignments if n.targets[0].id not in read])
        defaults = []
        params = [name(p.name, gast.Param()) for p in function.params]
        arguments = gast.arguments(params, [], None, [], [], None, defaults)
        tree = gast.FunctionDef("__label__", arguments, body, [], None, None, [])
        source = "\n".join(map(broken, _printed(tree).splitlines())) + "\n"
        lines = []
        for line in source.splitlines():
            indent, words = line[:len(line) - len(line.lstrip())], line.strip()
            if words.startswith(MARK):
                note = ast.literal_eval(words[len(MARK) + 3:])
                if len(note.splitlines()) > 1:
                    raise AssertionError("a comment of several lines")
                lines.append(f"{indent}# {note}".rstrip() if note else "")
            else:
                lines.append(line)
        text = "\n".join(lines) + "\n"
        return text.replace("def __label__(", f"def {label}(", 1), origins(tree, source)

    def body(self, function):
        steps = function.body
        split = self.boundary(steps)
        if steps and isinstance(steps[-1], If) and self.returns_early(steps[-1]):
            out = self.block(steps[:split]) if split < len(steps) else self.block(steps[:-1])
            rest = steps[split:-1] if split < len(steps) else []
            if rest:
                out += ([_note("")] if out else []) + self.block(rest)
            return out + self.early(steps[-1]), True
        last, result = steps[-1] if steps else None, function.result
        if isinstance(last, Let) and len(last.targets) > 1 and is_tuple_of(result, last.targets) and isinstance(
                last.value, Apply) and isinstance(last.value.function, Function) and not self.errors_in(last):
            steps, result = steps[:-1], last.value      # return f(x), which gives all of them
        out = self.block(steps[:split])
        tail = self.block(steps[split:])
        if out and tail:
            out.append(_note(""))
        out += tail
        out.append(gast.Return(self.expression(result)))
        out[-1].came_from = list(origins_in(result))
        return out, False

    def boundary(self, steps):
        """The position where the backward sweep begins."""
        last = 0
        for k, step in enumerate(steps):
            if not _is_backward(step):
                last = k + 1
        return last

    def returns_early(self, step):
        """Whether the result consists of the values that the last branch joins."""
        wanted = list(operands(self.function.result))
        joined = {j.var for j in step.joins}
        return bool(wanted) and all(v in joined for v in wanted) and self.flat(self.function.result) and \
            len(set(wanted)) == len(wanted)

    def flat(self, node):
        return isinstance(node, (Var, Const)) or isinstance(node, Pack) and all(self.flat(i) for i in node.items)

    def early(self, step):
        out = []
        arms = []
        for arm in ("then", "orelse"):
            env = {j.var: getattr(j, arm) for j in step.joins}
            block, result = list(getattr(step, arm)), self.function.result
            block, result = self.inlined(block, _replace(result, env))
            if any(isinstance(v, Const) and isinstance(v.value, Undefined) for v in _atoms(result)):
                arms.append(self.block(block))
            else:
                arms.append([*self.block(block), gast.Return(self.expression(result))])
        first, second = arms
        if says_the_same(first, second):
            return first
        if not first:
            return [gast.If(self.negation(step.test), second, [])]
        out.append(gast.If(self.test(step.test), first, []))
        return out + second

    def inlined(self, block, result):
        """(block, result) with results that the last statements compute as expressions in the result."""
        from_counts = {}
        for v in operands(result):
            from_counts[v] = from_counts.get(v, 0) + 1
        while block and isinstance(block[-1], Let) and len(block[-1].targets) == 1 and \
                from_counts.get(block[-1].targets[0]) == 1 and self.counts.get(block[-1].targets[0], 0) <= 1 and \
                isinstance(block[-1].value, Apply) and not is_draw(block[-1].value) and \
                not updates(block[-1].value) and not self.errors_in(block[-1]):
            step = block.pop()
            result = _replace(result, {step.targets[0]: step.value})
        return block, result

    # statements

    def block(self, steps):
        out, heading, around_it = [], self.heading, self.heading
        for step in steps:
            if step.origin is not None and step.origin.generated == 1 and of_one_statement(step):
                if heading is None or not heading.same_statement(step.origin):
                    heading = step.origin
                    if heading.statement:
                        out.append(_note(heading.statement))
                        out[-1].came_from = [heading.heading()]
            elif step.origin is not None:
                heading = None
            if getattr(step, "note", ""):
                out.append(_note(step.note))
            errors, around = self.errors_in(step), self.errors
            self.errors, self.heading = errors or around, heading
            made = getattr(self, "step_" + type(step).__name__)(step)
            self.errors, self.heading = around, around_it
            for node in made:
                if not hasattr(node, "came_from"):
                    node.came_from = [step.origin, *parts_of(step)]
            if errors and errors != around and made:
                made = self.raising(errors, made, out)
            elif made and step.origin is not None and step.origin.raised() and not errors and \
                    getattr(out[-1] if out else None, "errors", None) == step.origin.raised():
                made = self.raising(step.origin.raised(), made, out)
            out += made
            self.exchange(out)
            self.unpack(step, out)
        return out

    def unpack(self, step, out):
        """n, d = x.shape for n = x.shape[0]; d = x.shape[1], and likewise a, b = x in one statement of the user's."""
        value = step.value if isinstance(step, Let) and len(step.targets) == 1 and step.targets[0].kind in (
            USER, TANGENT) else None
        of_shape = is_application(value, shape_of)
        taken = isinstance(value, Apply) and len(value.args) == 2 and (of_shape or reads(value) == "part")
        asked, place = value.args if taken else (None, None)
        if not isinstance(asked, Var) or type(asked.fact) is not Array or not asked.fact.dims or not isinstance(
                place, Const) or type(place.value) is not int or not out or step.origin is None:
            return
        whole, first = self.expression(asked), asked.fact.dims[0].normal()
        if of_shape:
            whole, number = gast.Attribute(whole, "shape", gast.Load()), asked.fact.rank
        else:
            number = first.offset if first.symbol is None else 1
        wanted = gast.Subscript(whole, const(place.value), gast.Load())
        if number < 2 or not isinstance(out[-1], gast.Assign) or not isinstance(out[-1].targets[0], gast.Name) or \
                gast.dump(out[-1].value) != gast.dump(wanted):
            return
        out[-1].part = _Part(whole, place.value, number, gast.dump(whole) if of_shape else step.origin)
        if place.value == number - 1:
            self.together(out)

    @staticmethod
    def together(out):
        """Joins the last statements, which unpack values in one statement of the user's, into one for each value."""
        last = out[-1].part
        run = list(itertools.takewhile(lambda s: hasattr(s, "part") and s.part.is_with(last), reversed(out)))[::-1]
        values, names = {}, {s.targets[0].id for s in run}
        for s in run:
            values.setdefault(gast.dump(s.part.whole), []).append(s)
        if not all([s.part.place for s in found] == list(range(found[0].part.number)) for found in values.values()) or \
                any(isinstance(n, gast.Name) and n.id in names for s in run for n in nodes(s.part.whole)):
            return
        out[len(out) - len(run):] = made = [
            assign(gast.Tuple([s.targets[0] for s in found], gast.Store()), found[0].part.whole)
            for found in values.values()]
        for node, found in zip(made, values.values()):
            node.came_from = [o for s in found for o in s.came_from]

    def exchange(self, out):
        """a, b = b, a for t = a; a = b; b = t, where a and b are scalar entries and t is not read elsewhere."""
        if len(out) < 3 or not all(isinstance(s, gast.Assign) and len(s.targets) == 1 for s in out[-3:]):
            return
        (kept, first, second), places = out[-3:], [s.targets[0] for s in out[-2:]]
        if not isinstance(kept.targets[0], gast.Name) or not isinstance(second.value, gast.Name) or \
                second.value.id != kept.targets[0].id or second.value.id not in self.numbers_read_once or not all(
                    isinstance(p, gast.Subscript) for p in places):
            return
        if gast.dump(_loaded(places[0])) == gast.dump(kept.value) and gast.dump(_loaded(places[1])) == gast.dump(
                first.value):
            node = assign(gast.Tuple(places, gast.Store()), gast.Tuple([first.value, kept.value], gast.Load()))
            node.came_from = [o for s in out[-3:] for o in s.came_from]
            out[-3:] = [node]

    def errors_in(self, step):
        """The floating-point errors that raise in a statement and in all statements inside it."""
        found = {raised(s) for s in walk([step]) if not isinstance(s, Let) or raised(s) or not
                 s.origin or not s.origin.raised()}
        return found.pop() if len(found) == 1 else ()

    @staticmethod
    def raising(errors, made, out):
        """Puts statements into a `with np.errstate`, or into the one before if that has the same errors."""
        if out and getattr(out[-1], "errors", None) == errors:
            out[-1].body += made
            return []
        modes = ["all"] if len(errors) == 4 else errors
        call = gast.Call(dotted("np.errstate"), [], [gast.keyword(k, const("raise")) for k in modes])
        block = gast.With([gast.withitem(call, None)], made, None)
        block.errors, block.came_from = errors, made[0].came_from
        return [block]

    def target(self, var):
        return name(self.naming[var], gast.Store())

    def step_Let(self, step):
        value = step.value
        if isinstance(value, Apply):
            special = _STATEMENTS.get(value.function) if _hashable(value.function) else None
            if special is not None:
                return getattr(self, special)(step)
            if isinstance(value.function, Quoted) and isinstance(value.function.tree, gast.stmt):
                return [self.quoted(value, self.naming[step.targets[0]])]
        node = self.expression(value)
        if step.origin is not None and step.origin.generated:
            node = minus_first(node, self.signed)
        if is_draw(value) and not any(self.counts.get(t) for t in step.targets) and step.targets[0].kind != USER:
            return [gast.Expr(node)]
        if step.targets[0] in self.passes.numbers and step.targets[0].kind != USER:
            self.passes.assignments.append(assign(self.target(step.targets[0]), node))
            return self.passes.assignments[-1:]
        if len(step.targets) == 1:
            target = self.naming[step.targets[0]]
            if isinstance(node, gast.Name) and node.id == target:
                return []
            return [self.augmented(step, target, node)]
        return [assign(gast.Tuple([self.target(t) for t in step.targets], gast.Store()), node)]

    def augmented(self, step, target, node):
        """Prints dx = dx + v as dx += v, unless dx may be a 0-d array that aliases another."""
        fact = step.targets[0].fact
        if isinstance(step.value, Apply) and any(v in self.without_axes for v in operands(step.value)):
            return assign(name(target, gast.Store()), node)
        ours = step.origin is not None and (step.origin.generated or step.targets[0].kind == SAVED)
        if isinstance(fact, Array) and fact.dims:
            ours = any(self.naming.names.get(v) == target for v in summed_up(step) if (id(step), v) in
                       self.naming.in_place)
        made = update_of(name(target, gast.Store()), node, (gast.Add, gast.Sub)) if ours and isinstance(
            fact, Array) else None
        return made or assign(name(target, gast.Store()), node)

    def base_of(self, step):
        """(statements that copy the base of an update if others read it, its name)."""
        base, target = step.value.args[0], self.naming[step.targets[0]]
        if id(step) not in self.naming.copies:
            return [], target
        node = self.expression(base)
        if isinstance(base, Var) and isinstance(base.fact, Array):
            node = gast.Call(gast.Attribute(node, "copy", gast.Load()), [], [])
        elif isinstance(base, Var):
            node = gast.Call(name("list"), [node], [])
        return [assign(name(target, gast.Store()), node)], target

    def step_put(self, step):
        before, target = self.base_of(step)
        _, index, value = step.value.args
        place = gast.Subscript(name(target), self.expression(index), gast.Store())
        value = self.expression(value)
        if step.origin is not None and step.origin.generated:
            value = minus_first(value, self.signed)
        if step.value.function is put:
            fact = step.targets[0].fact         # in a list, += would change the list's elements in place
            numbers = type(fact) is Array and fact.kind in "fc"     # NumPy refuses /= on integers
            made = update_of(place, value, (gast.Add, gast.Sub, gast.Mult, gast.Div)) if numbers else None
            return [*before, made or assign(place, value)]
        flip, value = sign_of(value)
        return [*before, gast.AugAssign(place, gast.Sub() if flip else gast.Add(), value)]

    def step_add_at(self, step):
        before, target = self.base_of(step)
        _, index, value = step.value.args
        index = self.expression(index)
        if isinstance(index, gast.Tuple):
            index.elts = [as_index(e) for e in index.elts]
        call = gast.Call(dotted("np.add.at"), [name(target), as_index(index), self.expression(value)], [])
        return [*before, gast.Expr(call)]

    def step_push(self, step):
        before, target = self.base_of(step)
        return [*before, gast.Expr(method_call(target, "append", self.expression(step.value.args[1])))]

    def step_push_front(self, step):
        before, target = self.base_of(step)
        return [*before, gast.Expr(method_call(target, "insert", const(0), self.expression(step.value.args[1])))]

    def step_pop(self, step):
        before, target = self.base_of(step)
        return [*before, assign(self.target(step.targets[1]), method_call(target, "pop"))]

    def step_pop_front(self, step):
        before, target = self.base_of(step)
        return [*before, assign(self.target(step.targets[1]), method_call(target, "pop", const(0)))]

    def step_Effect(self, step):
        node = self.quoted(step.value)
        return [node if isinstance(node, gast.stmt) else gast.Expr(node)]

    def quoted(self, value, answer=""):
        """A piece of the user's tree with the names of this text; answer: the name for a statement's result."""
        quote = value.function
        tree = copy.deepcopy(quote.tree)
        wanted = dict(zip(quote.names, value.args))
        writer = self
        class Rename(gast.NodeTransformer):
            def visit_Name(self, node):
                if node.id == ANSWER:
                    return name(answer, node.ctx)
                if node.id in wanted:
                    return writer.expression(wanted[node.id])
                if quote.lookup is not None and isinstance(node.ctx, gast.Load):
                    try:
                        found = quote.lookup(node.id)
                    except NameError:
                        return node
                    if not (hasattr(__builtins__, "get") and __builtins__.get(node.id) is found or
                            getattr(__builtins__, node.id, None) is found):
                        return name(writer.provide(node.id.strip(), found))     # placeholders have blanks
                return node
        return Rename().visit(tree)

    def step_If(self, step):
        then = self.block(step.then) + self.copies([(j.var, j.then) for j in step.joins])
        orelse = self.block(step.orelse) + self.copies([(j.var, j.orelse) for j in step.joins])
        if says_the_same(then, orelse):
            return [] if all(map(_is_note, then)) else then
        then, orelse = ([] if all(map(_is_note, arm)) else arm for arm in (then, orelse))
        if not then and not orelse:
            return []
        ternary = self.ternary(then, orelse, step.test)
        if ternary is not None:
            ternary.came_from = [step.origin, *(o for s in (*then, *orelse) for o in getattr(s, "came_from", ()))]
            return [ternary]
        if not then:
            return [gast.If(self.negation(step.test), orelse, [])]
        return [gast.If(self.test(step.test), then, orelse)]

    def ternary(self, then, orelse, test):
        if (
            len(then) == len(orelse) == 1
            and all(isinstance(s, gast.Assign) and isinstance(s.targets[0], gast.Name) for s in (*then, *orelse))
            and then[0].targets[0].id == orelse[0].targets[0].id
        ):
            if sum(1 for s in (*then, *orelse) for _ in gast.walk(s.value)) <= 16:
                return assign(then[0].targets[0], gast.IfExp(self.test(test), then[0].value, orelse[0].value))
        return None

    def test(self, test):
        return as_test(self.expression(test))

    def negation(self, test):
        node = self.test(test)
        if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not):
            return node.operand
        return gast.UnaryOp(gast.Not(), node)

    def copies(self, pairs):
        """Parallel assignments, in order: a tuple where one would overwrite what another reads."""
        moves = []
        for var, value, *copied in pairs:
            target = self.naming.names.get(var)
            if isinstance(value, Const) and isinstance(value.value, Undefined) and target not in self.unset.names:
                continue
            node = self.expression(value)
            if copied and copied[0]:
                copy = gast.Call(gast.Attribute(node, "copy", gast.Load()), [], [])
                node = gast.IfExp(gast.Compare(node, [gast.Is()], [const(None)]), const(None), copy) \
                    if var in self.unset.values else copy
            if target is None or isinstance(node, gast.Name) and node.id == target:
                continue
            if target in [t for t, _ in moves]:
                continue
            moves.append((target, node))
        out = []
        while moves:
            free = next((k for k, (t, _) in enumerate(moves) if not any(
                _reads(n, t) for j, (_, n) in enumerate(moves) if j != k)), None)
            if free is None:
                out.append(assign(gast.Tuple([name(t, gast.Store()) for t, _ in moves], gast.Store()),
                                  gast.Tuple([n for _, n in moves], gast.Load())))
                break
            target, node = moves.pop(free)
            out.append(assign(name(target, gast.Store()), node))
        return out

    def step_For(self, step):
        used = self.index_used(step)
        before = self.copies([(c.inner, c.init, (id(c), "init") in self.naming.copied_in) for c in step.carries])
        steps = list(step.body)
        items = [(v, s) for v, s in step.items]
        start = []
        targets, sources = [], []
        for v, source in items:
            pattern = None
            if (
                isinstance(v.fact, Sequence)
                and steps
                and isinstance(steps[0], Let)
                and isinstance(steps[0].value, Apply)
                and steps[0].value.function is unpacked
                and steps[0].value.args[0] is v
                and self.counts.get(v, 0) == 1
            ):
                pattern = gast.Tuple([self.target(t) for t in steps[0].targets], gast.Store())
                steps = steps[1:]
            targets.append(pattern or self.target(v))
            sources.append(source)
        count = self.passes.numbers.get(step.count, step.count) if isinstance(step.count, Var) else step.count
        whole = all(_covers(s, step.count) for s in sources) or len(step.items) > 1 and not step.reverse and \
            _ends_with_shortest(sources, count)
        listed = bool(items) and whole and all(_is_listed(s) for s in sources)
        index = (
            name(self.naming[step.index], gast.Store()) if step.index in self.naming.names else name("_", gast.Store())
        )
        if not items or not whole or step.reverse and (used or not listed) or not listed and used and len(items) > 1:
            place = name(index.id)
            iterator = gast.Call(name("range"), [self.expression(step.count)], [])
            for (_, source), target in zip(items, targets):
                start.append(assign(target, self.element(source, place)))
            target = index if used or items else name("_", gast.Store())
        else:
            nodes = [self.expression(s) for s in sources]
            iterator = nodes[0] if len(nodes) == 1 else gast.Call(name("zip"), nodes, [])
            target = targets[0] if len(targets) == 1 else gast.Tuple(targets, gast.Store())
            if used:
                iterator = gast.Call(name("enumerate"), [iterator], [])
                target = gast.Tuple([index, target], gast.Store())
            if step.reverse and len(nodes) > 1:
                iterator = gast.Call(name("zip"), [gast.Call(name("reversed"), [n], []) for n in nodes], [])
        if step.reverse and not (isinstance(iterator, gast.Call) and getattr(iterator.func, "id", "") == "zip"):
            iterator = gast.Call(name("reversed"), [iterator], [])
        if id(step) in self.exits:
            body = self.left_pass(self.exits[id(step)], step.carries, start)
        else:
            body = start + self.block(steps) + self.next_pass(step.carries)
        loop = gast.For(target, iterator, _with_a_statement(body), [], None)
        return [*before, loop, *self.copies([(c.outer, c.inner) for c in step.carries])]

    def element(self, source, index):
        if isinstance(source, Apply) and source.function is range:
            start, _, step = source.args
            back = isinstance(step, Const) and step.value < 0
            by = Const(-step.value) if back else step
            one = isinstance(by, Const) and by.value == 1
            moved = index if one else gast.BinOp(self.expression(by), gast.Mult(), index)
            if isinstance(start, Const) and start.value == 0:
                return gast.UnaryOp(gast.USub(), moved) if back else moved
            return gast.BinOp(self.expression(start), gast.Sub() if back else gast.Add(), moved)
        return gast.Subscript(self.expression(source), index, gast.Load())

    def index_used(self, step):
        found = self.exits.get(id(step))
        return self.index_used_in(found) if found is not None else self.counts.get(step.index, 0) > 0

    def while_loop(self, step):
        """A while loop that tests before each pass."""
        before = self.copies([(c.inner, c.init, (id(c), "init") in self.naming.copied_in) for c in step.carries])
        head = self.block(step.head)
        flag = first_pass_apart(step, self.counts) if not head else None
        if flag is not None:
            return self.peeled_loop(step, flag, before)
        body = self.block(step.body) + self.next_pass(step.carries)
        if head:
            stop = gast.If(self.negation(step.test), [gast.Break()], [])
            loop = gast.While(const(True), [*head, stop, *body], [])
        else:
            loop = gast.While(self.test(step.test), _with_a_statement(body), [])
        return [*before, loop, *self.copies([(c.outer, c.inner) for c in step.carries])]

    def peeled_loop(self, step, flag, before):
        """A while loop that begins with one arm of a branch in its first pass, and with the other in later passes.

        The first arm is printed before the loop, which tests before the other one.
        """
        carries = [c for c in step.carries if c is not flag]
        at = next(k for k, s in enumerate(step.body) if isinstance(s, If))
        branch, rest = step.body[at], [*self.block(step.body[at + 1:]), *self.next_pass(carries)]
        first, later = ([*self.block(step.body[:at]), *self.block(getattr(branch, side)), *self.copies([
            (j.var, getattr(j, side)) for j in branch.joins])] for side in ("then", "orelse"))
        if rest:
            loop = gast.While(const(True), [*rest, gast.If(self.negation(step.test), [gast.Break()], []), *later], [])
        else:
            loop = gast.While(self.test(step.test), _with_a_statement(later), [])
        gone = self.naming[flag.inner]
        before = [s for s in before if getattr(s.targets[0], "id", None) != gone and not is_set_first(s, first)]
        return [*before, *first, loop, *self.copies([(c.outer, c.inner) for c in carries])]


def first_pass_apart(loop, counts):
    """The carry that says whether a pass is the first, if a loop begins with a branch on it; else None.

    At most one statement may precede the branch, since it is printed twice.
    """
    branch = next((s for s in loop.body[:2] if isinstance(s, If)), None) if loop.policy == "entered" else None
    return next((c for c in loop.carries if branch is not None and branch.test is c.inner and counts.get(
        c.inner) == 1 and not counts.get(c.outer) and isinstance(c.init, Const) and isinstance(c.next, Const) and
        c.init.value is True and c.next.value is False), None)


def is_set_first(statement, block):
    """Whether a block overwrites the name that a statement sets to a constant, before reading it."""
    if not isinstance(statement.value, gast.Constant) or not isinstance(statement.targets[0], gast.Name):
        return False
    wanted = statement.targets[0].id
    for s in block:
        simple = isinstance(s, gast.Assign)
        if not simple or any(isinstance(n, gast.Name) and n.id == wanted for n in nodes(s.value)):
            return False
        if any(isinstance(t, gast.Name) and t.id == wanted for t in s.targets):
            return True
    return False


_STATEMENTS = {
    put: "step_put",
    put_add: "step_put",
    add_at: "step_add_at",
    push: "step_push",
    push_front: "step_push_front",
    pop: "step_pop",
    pop_front: "step_pop_front",
}


def update_of(place, value, operators):
    """place += v for place = place + v, and so on; None if the value is no update of the place."""
    if not isinstance(value, gast.BinOp) or not isinstance(value.op, operators):
        return None
    here = gast.dump(gast.Subscript(place.value, place.slice, gast.Load()) if isinstance(
        place, gast.Subscript) else name(place.id))
    if gast.dump(value.left) == here:
        flip, right = sign_of(value.right) if isinstance(value.op, (gast.Add, gast.Sub)) else (False, value.right)
        turned = {gast.Add: gast.Sub, gast.Sub: gast.Add}
        return gast.AugAssign(place, turned[type(value.op)]() if flip else value.op, right)
    if isinstance(value.op, (gast.Add, gast.Mult)) and gast.dump(value.right) == here:
        return gast.AugAssign(place, value.op, value.left)
    return None


def minus_first(node, signed):
    """-a * b for the equal -(a * b), in every part of an expression.

    signed: the names that may be negated: NumPy refuses that for booleans.
    """
    for n in nodes(node):
        for field, value in gast.iter_fields(n):
            if isinstance(value, gast.AST):
                setattr(n, field, _moved_in(value, signed))
            elif isinstance(value, list):
                value[:] = [_moved_in(v, signed) if isinstance(v, gast.AST) else v for v in value]
    return _moved_in(node, signed)


def _moved_in(node, signed):
    """A negated product with the minus at its first factor, if that is a number, a name, or an entry of a name."""
    if not (isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.USub) and isinstance(
            node.operand, gast.BinOp) and isinstance(node.operand.op, (gast.Mult, gast.Div))):
        return node
    product = last = node.operand
    while isinstance(last.left, gast.BinOp) and isinstance(last.left.op, (gast.Mult, gast.Div)):
        last = last.left
    first = last.left
    while isinstance(first, gast.Subscript):
        first = first.value
    if not (isinstance(first, gast.Name) and first.id in signed or isinstance(first, gast.Constant) and type(
            first.value) in (int, float)):
        return node
    last.left = gast.UnaryOp(gast.USub(), last.left)
    return product


def sign_of(node):
    """(whether an expression begins with a minus, the expression without it)."""
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.USub):
        return True, node.operand
    if isinstance(node, gast.BinOp) and isinstance(node.op, (gast.Mult, gast.Div)):
        flip, left = sign_of(node.left)
        return flip, gast.BinOp(left, node.op, node.right) if flip else node
    return False, node


def _loaded(place):
    return gast.Subscript(place.value, place.slice, gast.Load())


def _moves(step):
    """(variable, value) of the joins and carries of a statement."""
    for j in getattr(step, "joins", ()):
        yield from ((j.var, j.then), (j.var, j.orelse))
    for c in getattr(step, "carries", ()):
        yield from ((c.inner, c.init), (c.inner, c.next), (c.outer, c.inner))


def _reads(node, identifier):
    return any(isinstance(n, gast.Name) and n.id == identifier for n in nodes(node))


def _is_listed(source):
    """Whether a source is a container or a range, which reversed() takes."""
    return isinstance(fact_of(source), Sequence) if isinstance(source, Var) else \
        is_application(source, range) or isinstance(_place_in(source)[1], slice)


def _place_in(node):
    """(container, place) of container[place] where the place is a constant, an index or a slice; else (None, None)."""
    known = is_application(node, operator.getitem) and isinstance(node.args[1], Const)
    return (node.args[0], node.args[1].value) if known else (None, None)


def without(body, left_out):
    """Statements without some of them, in inner blocks too."""
    for s in body:
        for field in ("body", "orelse"):
            if getattr(s, field, None) and isinstance(s, (gast.For, gast.While, gast.If)):
                setattr(s, field, without(getattr(s, field), left_out) or [gast.Pass()])
    return [s for s in body if not any(s is n for n in left_out)]


def _elements(source):
    """The number of elements of a container, a slice of one or a container inside one; None for any other value."""
    def held(node):
        if isinstance(node, Var):
            return node.fact
        container, key = _place_in(node)
        whole = held(container) if container is not None else None
        if not isinstance(whole, Sequence):
            return None
        if isinstance(key, slice):
            return Sequence(whole.kind, whole.elements[key])
        return whole.elements[whole.keys.index(key) if whole.kind == "dict" else key]
    found = held(source)
    return len(found.elements) if isinstance(found, Sequence) else None


def _covers(source, count):
    """Whether a loop of `count` passes iterates over the whole of its source."""
    if isinstance(source, Apply):
        if source.function is range:
            return not (isinstance(count, Apply) and count.function is min) and not (
                isinstance(count, Var) and count.hint.startswith("min"))
    held = _elements(source)
    if held is not None:
        return isinstance(count, Const) and count.value == held
    length = fact_of(count).length if isinstance(count, (Var, Const)) else None
    if isinstance(count, Apply) and count.function is shape_of and isinstance(count.args[0], Var):
        length = count.args[0].fact.dims[count.args[1].value]
    return length is not None and length.same(nested(source).dims[0])


def _ends_with_shortest(sources, count):
    """Whether zip of sources, none of them shorter than the loop, ends with the loop."""
    lengths = count.args if is_application(count, min) else (count,)
    return all(any(_covers(s, n) for s in sources) for n in lengths)


def _is_backward(step):
    return step.origin is not None and step.origin.generated == 1


def _replace(node, env):
    from_env = env.get(node) if isinstance(node, Var) else None
    if from_env is not None:
        return from_env
    if isinstance(node, Pack):
        return Pack(node.kind, tuple(_replace(i, env) for i in node.items), node.keys, node.cls)
    return node


def _atoms(node):
    if isinstance(node, Pack):
        for i in node.items:
            yield from _atoms(i)
    else:
        yield node


def says_the_same(one, other) -> bool:
    """Whether two blocks of printed statements are equal, apart from comments."""
    return [gast.dump(s) for s in one if not _is_note(s)] == [gast.dump(s) for s in other if not _is_note(s)]


def of_one_statement(step) -> bool:
    """Whether all statements in a step come from one statement of the user's, as in the loop of a rule."""
    return all(s.origin is not None and s.origin.generated == 1 and s.origin.same_statement(step.origin)
               for s in walk([step]))


def _is_note(statement) -> bool:
    return isinstance(statement, gast.Assign) and getattr(statement.targets[0], "id", None) == MARK


def _with_a_statement(body) -> list:
    """The body of a loop, with a `pass` if it has only comments."""
    return [*body, gast.Pass()] if all(map(_is_note, body)) else body


def _note(words):
    return assign(name(MARK, gast.Store()), const(words))


def _printed(tree):
    node = gast.gast_to_ast(tree)
    return astor.to_source(node, pretty_source=_joined_lines, pretty_string=_plain_string).strip() + "\n"


def _joined_lines(parts):
    return "".join(parts)


def _plain_string(text, *args, **kwargs):
    return repr(text)

