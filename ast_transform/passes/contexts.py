# SPDX-License-Identifier: Apache-2.0
"""with, try and match: what is known of them when transforming.

A with that only changes how floating-point warnings are shown becomes a decorator of the emitted function; where it
makes them errors, the user's lines in it stand in such a with again.  A try is
read where its handlers only raise, where nothing in its body can raise when running, or where it is known now whether
something does; where assignments decide when running, emitted code tries each and then takes one arm or another.  A
match has become branches whose tests are patterns (desugar.py).

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x, k):\\n  match k:\\n    case 'a' | 'b':\\n      return x\\n    case _:\\n      return -x"
>>> print(show(form(text, 1.0, "b")))
f(x, 'b'):
    pass
    return x
"""
import contextlib
import copy
import logging
import operator
import types
import warnings

import gast
import numpy as np

from gradscribe.ast_transform.core import operations
from gradscribe.ast_transform.core.alias import may_raise
from gradscribe.ast_transform.core.form import (
    USER,
    Apply,
    Const,
    Effect,
    For,
    If,
    Let,
    Undefined,
    While,
    blocks,
)
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.core.operations import ANSWER, Quoted
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.values import Conflict, Grown, Rows, Struct
from gradscribe.ast_transform.source.diagnose import LanguageError, TransformError

REPORTS = ("warn", "print", "log")  # errors that are only told; emitted code tells them as its caller has it
ERRORS = ("divide", "invalid", "over", "under")
REPORT = "Do it in a statement of its own, and report its result."
OUTSIDE = "Open the context around the call of the transformed function."
BY_STRUCTURE = (KeyError, AttributeError, NameError)        # what no operation on numbers raises
OURS = (operations.__name__, "_operator", operator.__name__)
ASSIGNED = "Give what may raise a name in an assignment of its own; or test for the condition with if before."
TRY = "Test for the condition with if before the operation."


def _evaluated(statement):
    """An expression that raises what an assignment or a bare expression raises, and changes nothing; None of others."""
    if isinstance(statement, gast.Expr):
        return statement.value
    if isinstance(statement, gast.AugAssign):
        return gast.copy_location(gast.BinOp(_read(statement.target), statement.op, statement.value), statement)
    if not isinstance(statement, gast.Assign):
        return None
    targets = [n for t in statement.targets for n in (t.elts if isinstance(t, gast.Tuple) else [t])]
    places = [_read(n) for n in targets if isinstance(n, gast.Subscript)]
    if not all(isinstance(n, gast.Name | gast.Subscript) for n in targets) or places and len(targets) > 1:
        return None                     # what comes before the place that raises is set
    parts = [*([] if places and isinstance(statement.value, gast.Constant) else [statement.value]), *places]
    return parts[0] if len(parts) == 1 else gast.copy_location(gast.Tuple(parts, gast.Load()), statement)


def _read(target):
    new = copy.copy(target)
    new.ctx = gast.Load()
    return new


class Contexts:
    # with

    def exec_Context(self, node):
        """The items of a with; its body follows."""
        for item in node.items:
            call = item.context_expr
            function = self.eval(call.func) if isinstance(call, gast.Call) else None
            made = function.value if isinstance(function, Const) else None
            if made is np.errstate:
                self.quiet(call, node.lines)
            elif made is contextlib.nullcontext:
                value = self.eval(call.args[0]) if call.args else Const(None)
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, value)
            elif made is not warnings.catch_warnings or item.optional_vars is not None:
                self.fail(LanguageError, "only np.errstate, warnings.catch_warnings and contextlib.nullcontext are "
                          "understood after with", call, OUTSIDE)

    def quiet(self, call, lines):
        modes = {}
        for k in call.keywords:
            mode = self.static(self.eval(k.value), "the mode of np.errstate", k.value)
            if k.arg not in ("all", *ERRORS) or mode not in ("ignore", "raise", *REPORTS):
                self.fail(LanguageError, "np.errstate: only 'ignore', 'raise' and what reports are understood", call,
                          OUTSIDE)
            if mode == "ignore":
                self.errstate[k.arg] = mode
            modes[k.arg] = mode
        modes = {**dict.fromkeys(ERRORS, modes.pop("all", None)), **modes}
        self.frame.errors[lines] = {k: mode for k, mode in modes.items() if mode is not None}
        if call.args:
            self.fail(LanguageError, "np.errstate takes keywords only", call, 'Write np.errstate(all="ignore").')

    # reports

    def is_report(self, function):
        """A function whose call, as a statement, only tells somebody something."""
        f = function.value if isinstance(function, Const) else None
        if isinstance(f, types.MethodType) and isinstance(f.__self__, logging.Logger):
            return f.__name__ in ("debug", "info", "warning", "error", "critical", "exception", "log")
        return f is print or f is warnings.warn or \
            isinstance(f, types.FunctionType) and f.__module__ == "logging" and f.__name__ in (
                "debug", "info", "warning", "error", "critical", "log")

    def told(self, node, keep=None, what="a report"):
        """A report, an assertion or a raise, with the attributes of objects as values; it changes nothing."""
        if any(isinstance(n, gast.NamedExpr) for n in gast.walk(node)):
            self.fail(LanguageError, f"a name is set in {what}", node, REPORT)
        given, env = {}, self.frame.env

        def visit(part):
            root = part
            while isinstance(root, (gast.Attribute, gast.Subscript, gast.Call)):
                root = root.func if isinstance(root, gast.Call) else root.value
            named = self.in_scope(root.id) if isinstance(root, gast.Name) else None
            whole = isinstance(named, (Struct, Grown)) and (
                root is not part or isinstance(named, Grown) or named.kind == "object")
            if isinstance(part, gast.expr) and (whole or isinstance(part, gast.Call)):
                held = list(self.build.block)
                try:
                    value = self.settle(self.eval(part))
                except TransformError:
                    if whole:
                        raise
                if not whole:
                    self.build.block[:] = held
                else:
                    name = f"{part.attr if isinstance(part, gast.Attribute) else 'value'}{' ' * (len(given) + 1)}"
                    given[name] = self.grown_result(value) if isinstance(value, Grown) else value
                    return gast.copy_location(gast.Name(name, gast.Load(), None, None), part)
            new = copy.copy(part)
            for field in part._fields:
                inner = getattr(part, field, None)
                if isinstance(inner, list):
                    setattr(new, field, [visit(i) if isinstance(i, gast.AST) else i for i in inner])
                elif isinstance(inner, gast.AST):
                    setattr(new, field, visit(inner))
            return new

        before, writes, drawn = self.snapshot(), self.writes, self.drawn
        made = copy.copy(node)
        for field in [f for f in node._fields if f != "func"]:
            part = getattr(node, field, None)
            setattr(made, field, [visit(p) for p in part] if isinstance(part, list) else part and visit(part))
        if self.writes != writes:
            self.fail(LanguageError, f"{what} changes something", node, REPORT)
        if self.drawn != drawn:
            self.fail(LanguageError, f"{what} draws random numbers", node, "Draw them in a line of their own.")
        self.restore(before)
        env.update(given)
        (keep or self.effect)(made)
        for name in given:
            del env[name]

    def effect(self, node):
        """A statement that is kept as it stands."""
        self.build.block.append(Effect(self.as_it_stands(node), self.build.origin))

    def as_it_stands(self, node):
        """A piece of the user's tree as an operation, with the values that its names have."""
        lookup = self.frame.source.scope.lookup
        held = {n.id: self.in_scope(n.id) for n in gast.walk(node) if isinstance(n, gast.Name)}
        names = [n for n, value in held.items() if value is not None]
        known = {n: held[n].value for n in names if isinstance(held[n], Const) and not isinstance(
            held[n].value, (bool, int, float, complex, str, np.generic, Undefined, type(None)))}
        names = [n for n in names if n not in known]
        operands = [self.operand(self.read_name(n)) for n in names]
        return Apply(Quoted(node, tuple(names), lambda n: known[n] if n in known else lookup(n)), tuple(operands))

    def call_logger(self, function, args, words, node):
        return Const(function(*[self.static(a, "the name of a logger", node) for a in args]))

    def call_quiet(self, function, args, words, node):
        """warnings.simplefilter("ignore") inside warnings.catch_warnings(): NumPy's warnings are not shown."""
        if not args or self.static(args[0], "the action of a warning filter", node) != "ignore":
            self.fail(LanguageError, "only warnings that are ignored are understood", node,
                      "Set the filter around the call of the transformed function.")
        self.errstate["all"] = "ignore"
        return Const(None)

    # try

    def exec_Outermost(self, node):
        if self.tries:
            self.fail(LanguageError, "a try inside another, left by return, break or continue, whose handlers raise",
                      node, "Set a name in it, and leave after it.")

    def exec_Try(self, node):
        if node.only_raises and not node.leaves and not self.tries:
            return self.block(node.body) or self.block(node.orelse) or self.block(node.finalbody)
        if node.leaves:
            if node.handlers:
                self.fail(LanguageError, "a try that is left by return, break or continue, and whose handler goes on",
                          node, TRY)
            self.fail(LanguageError, "a try that is left by return, break or continue, and has a finally", node,
                      "Set a name in it, and leave after it.")
        block = self.build.block
        try:
            outcome = self.tried_with_handlers(node, block)
        except TransformError as error:
            if getattr(error, "python", None) and error.block is block:     # it raises for certain, to a try around it
                self.block(node.finalbody)
            raise
        return outcome or self.block(node.finalbody)

    def tried_with_handlers(self, node, block):
        size, before = len(block), self.snapshot()
        wanted = [self.caught(h) for h in node.handlers]
        handler = raised = None
        self.tries.append((block, wanted))
        try:
            outcome = self.block(node.body)
            by_structure = all(issubclass(e, BY_STRUCTURE) for w in wanted for e in (w if type(w) is tuple else (w,)))
            decided = bool(node.handlers) and not all(self.cannot_raise(s, by_structure) for s in block[size:])
            if decided:
                self.restore(before)
                del block[size:]
                outcome = self.decided_when_running(node, node.body, by_structure)
        except TransformError as error:
            raised = getattr(error, "python", None) if error.block is block else None
            handler = next((h for h, w in zip(node.handlers, wanted) if raised and issubclass(raised, w)), None)
            if handler is None:
                raise
        finally:
            self.tries.pop()
        if handler is None:
            return outcome if decided else outcome or self.block(node.orelse)
        self.handled.append(raised)
        try:
            return self.block(handler.body)
        finally:
            self.handled.pop()

    def decided_when_running(self, node, body, by_structure):
        """Each statement of a try that may raise is tried first, and what happens decides between the arms."""
        body = list(body)
        while body and not self.may_raise_in(body[:1], by_structure):
            del body[0]
        if not body:
            return self.block(node.orelse)
        tried, rest = body[0], body[1:]
        evaluated = _evaluated(tried)
        if not evaluated:
            self.fail(LanguageError, "a handler that goes on, where it is known only when running whether this raises",
                      tried, ASSIGNED)
        if self.here(tried).errors:
            self.fail(LanguageError, "a handler that goes on, of errors that np.errstate makes", tried, TRY)
        made, several = [], len(node.handlers) > 1

        def keep(statement):
            answers = [gast.parse(f"a = {k if several else bool(k)}").body for k in range(len(node.handlers) + 1)]
            for (answer,) in answers:
                answer.targets[0].id = ANSWER
            handlers = [gast.ExceptHandler(h.type, None, a) for h, a in zip(node.handlers, answers[1:])]
            tree = gast.Try([statement], handlers, answers[0], [])
            made.append(self.build.let("raised", self.as_it_stands(tree), Array(int if several else bool), USER))
        self.told(gast.copy_location(gast.Expr(evaluated), tried), keep, "what a try tries")

        def arm(handlers):
            if not handlers:
                return self.block([tried]) or self.decided_when_running(node, rest, by_structure)
            k, handler = handlers[0]
            test = made[0] if not several else self.compare(gast.Eq(), made[0], Const(k), node)
            return self.branch(test, lambda: self.block(handler.body), lambda: arm(handlers[1:]), node)
        return arm(list(enumerate(node.handlers, 1)))

    def may_raise_in(self, body, by_structure):
        """Whether statements may raise; they are read where they do not."""
        block, size, before = self.build.block, len(self.build.block), self.snapshot()
        self.block(body)
        if all(self.cannot_raise(s, by_structure) for s in block[size:]):
            return False
        self.restore(before)
        del block[size:]
        return True

    def raised_now(self, found, node):
        """A raise that a try around it is certain to see."""
        if any(b is self.build.block and any(issubclass(found, w) for w in wanted)
               for b, wanted in filter(None, self.tries)):
            self.fail(LanguageError, f"{found.__name__} is raised", node, TRY, python=found)

    def caught(self, handler):
        """The exceptions that a handler takes."""
        if handler.type is None:
            return BaseException
        found = self.python(self.eval(handler.type), handler.type)
        if handler.name is not None and any(isinstance(n, gast.Name) and n.id == handler.name.id
                                            for s in handler.body for n in gast.walk(s)):
            self.fail(LanguageError, "a handler that reads its exception is not understood", handler.type,
                      TRY)
        return found

    def cannot_raise(self, step, by_structure):
        """Operations on NumPy's numbers warn at most; Python's own raise, but no KeyError."""
        if isinstance(step, (For, While, If)):
            return all(self.cannot_raise(s, by_structure) for b in blocks(step) for s in b)
        if not isinstance(step, Let):
            return False
        if not by_structure and step.origin is not None and step.origin.errors:
            return False
        if by_structure and isinstance(step.value, Apply) and (
                step.value.function in RULES or getattr(step.value.function, "__module__", "") in OURS):
            return True
        if not isinstance(step.value, Apply):
            return True
        return not may_raise(step.value)

    # imports

    def exec_Import(self, node):
        for alias in node.names:
            module = self.tried(__import__, alias.name, node=node)
            self.frame.env[alias.asname or alias.name.split(".")[0]] = Const(
                __import__(alias.name, fromlist=["_"]) if alias.asname else module)

    def exec_ImportFrom(self, node):
        module = self.tried(lambda: __import__(node.module, fromlist=[a.name for a in node.names]), node=node)
        for alias in node.names:
            self.frame.env[alias.asname or alias.name] = Const(self.tried(getattr, module, alias.name, node=node))

    # match

    def eval_Matches(self, node):
        env = self.frame.env
        env.update({f"{n.id} before": env[n.id] for n in node.targets if n.id in env})
        fits = self.matches(self.settle(self.eval(node.subject)), node.pattern, node.subject)
        env["fits "] = Const(not isinstance(fits, Const) or bool(fits.value))
        return fits

    def exec_Tried(self, node):
        """A pattern that does not fit binds nothing."""
        env = self.frame.env
        fits = env.pop("fits ")
        for n in (t.id for t in node.targets):
            before = env.pop(f"{n} before", None)
            if node.fitted:
                continue
            if node.guarded and fits.value:
                env[n] = Conflict("bound by a pattern that may not fit", "Read it in the body of its case only.")
            elif before is None:
                env.pop(n, None)
            else:
                env[n] = before

    def matches(self, value, pattern, node):
        """Whether a value fits a pattern; the names of the pattern are bound."""
        return getattr(self, "fits_" + type(pattern).__name__)(value, pattern, node)

    def fits_MatchValue(self, value, pattern, node):
        return self.compare(gast.Eq(), value, self.settle(self.eval(pattern.value)), node)

    def fits_MatchSingleton(self, value, pattern, node):
        return self.identity(value, Const(pattern.value), True, node)

    def fits_MatchOr(self, value, pattern, node):
        found = Const(False)
        for other in pattern.patterns:
            if not isinstance(found, Const) and any(getattr(p, "name", None) for p in gast.walk(pattern)):
                self.fail(LanguageError, "a pattern of several, of which each names what it takes, where it is known "
                          "only when running which one fits", node, "Write a case for each.")
            found = self.either(found, lambda p=other: self.matches(value, p, node), node)
        return found

    def fits_MatchAs(self, value, pattern, node):
        fits = Const(True) if pattern.pattern is None else self.matches(value, pattern.pattern, node)
        if pattern.name is not None and not (isinstance(fits, Const) and not fits.value):
            self.bind(pattern.name, value)
        return fits

    def every(self, pairs, node):
        """All of the values fit their patterns."""
        found = Const(True)
        for value, pattern in pairs:
            found = self.both(found, lambda v=value, p=pattern: self.matches(self.settle(v), p, node), node)
        return found

    def fits_MatchSequence(self, value, pattern, node):
        if isinstance(value, (Grown, Rows)):
            self.fail(LanguageError, "a pattern for a list whose length is known only when running", node,
                      "Test len(items), and read its elements.")
        if not isinstance(value, Struct) or value.kind == "dict" or \
                value.kind == "record" and not issubclass(value.cls, tuple):
            return Const(False)
        patterns, items = pattern.patterns, value.items
        star = next((k for k, p in enumerate(patterns) if isinstance(p, gast.MatchStar)), None)
        if star is None:
            return self.every(zip(items, patterns), node) if len(items) == len(patterns) else Const(False)
        after = len(patterns) - star - 1
        if len(items) < len(patterns) - 1:
            return Const(False)
        if patterns[star].name is not None:
            self.bind(patterns[star].name, Struct("list", items[star:len(items) - after]))
        return self.every([*zip(items, patterns[:star]), *zip(items[len(items) - after:], patterns[star + 1:])], node)

    def fits_MatchMapping(self, value, pattern, node):
        if not isinstance(value, Struct) or value.kind != "dict":
            return Const(False)
        keys = [self.static(self.eval(k), "the key of a pattern", node) for k in pattern.keys]
        if not set(keys) <= set(value.keys):
            return Const(False)
        if pattern.rest is not None:
            rest = [k for k in value.keys if k not in keys]
            self.bind(pattern.rest, Struct("dict", [value.items[value.keys.index(k)] for k in rest], rest))
        return self.every([(value.items[value.keys.index(k)], p) for k, p in zip(keys, pattern.patterns)], node)

    def fits_MatchClass(self, value, pattern, node):
        cls = self.python(self.eval(pattern.cls), node)
        if not self.call_isinstance(isinstance, [value, Const(cls)], {}, node).value:
            return Const(False)
        itself = cls in (bool, int, float, str, bytes, list, tuple, dict)
        names = [*getattr(cls, "__match_args__", ())[:len(pattern.patterns)], *pattern.kwd_attrs]
        pairs = [(value, p) for p in pattern.patterns] if itself else [
            (self.attribute(value, n, node), p) for n, p in zip(names, [*pattern.patterns, *pattern.kwd_patterns])]
        if not itself and len(names) < len(pattern.patterns) + len(pattern.kwd_patterns):
            self.fail(LanguageError, f"{cls.__name__} has too few __match_args__ for this pattern", node,
                      f"Name the attributes: {cls.__name__}(name=...).")
        return self.every(pairs, node)
