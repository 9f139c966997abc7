# SPDX-License-Identifier: Apache-2.0
"""`match`: a value and a pattern come in; whether it matches comes out, which must be known when transforming."""
import gast

from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.reader.assignments import bind_name
from gradscribe.ast_transform.reader.branches import logical_and, logical_or
from gradscribe.ast_transform.reader.dispatch import FITS, evaluates, executes, fits
from gradscribe.ast_transform.reader.draws import call_isinstance, read_attribute
from gradscribe.ast_transform.reader.expressions import compare, evaluate, identity
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.operands import known_value, python_value, settle
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Conflict, Grown, Rows, Struct
from gradscribe.ast_transform.source.diagnose import LanguageError


@evaluates("Matches")
def evaluate_matches(reader: Reader, node):
    env = reader.environment.frame.env
    env.update({f"{n.id} before": env[n.id] for n in node.targets if n.id in env})
    fits = matches(reader, settle(reader, evaluate(reader, node.subject)), node.pattern, node.subject)
    env["fits "] = Const(not isinstance(fits, Const) or bool(fits.value))
    return fits


@executes("Tried")
def execute_tried(reader: Reader, node):
    """Bind the names of a pattern that matched."""
    env = reader.environment.frame.env
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


def matches(reader: Reader, value, pattern, node):
    """Whether a value matches a pattern, whose names are then bound."""
    return FITS[type(pattern).__name__](reader, value, pattern, node)


@fits("MatchValue")
def fits_match_value(reader: Reader, value, pattern, node):
    return compare(reader, gast.Eq(), value, settle(reader, evaluate(reader, pattern.value)), node)


@fits("MatchSingleton")
def fits_match_singleton(reader: Reader, value, pattern, node):
    return identity(reader, value, Const(pattern.value), True, node)


@fits("MatchOr")
def fits_match_or(reader: Reader, value, pattern, node):
    found = Const(False)
    for other in pattern.patterns:
        if not isinstance(found, Const) and any(getattr(p, "name", None) for p in gast.walk(pattern)):
            fail(reader, LanguageError, "a pattern of several, of which each names what it takes, where it is known "
                 "only when running which one fits", node, "Write a case for each.")
        found = logical_or(reader, found, lambda p=other: matches(reader, value, p, node), node)
    return found


@fits("MatchAs")
def fits_match_as(reader: Reader, value, pattern, node):
    fits = Const(True) if pattern.pattern is None else matches(reader, value, pattern.pattern, node)
    if pattern.name is not None and not (isinstance(fits, Const) and not fits.value):
        bind_name(reader, pattern.name, value)
    return fits


def all_fit(reader: Reader, pairs, node):
    """Whether all values match their patterns."""
    found = Const(True)
    for value, pattern in pairs:
        found = logical_and(reader, found, lambda v=value, p=pattern: matches(reader, settle(reader, v), p, node), node)
    return found


@fits("MatchSequence")
def fits_match_sequence(reader: Reader, value, pattern, node):
    if isinstance(value, (Grown, Rows)):
        fail(reader, LanguageError, "a pattern for a list whose length is known only when running", node,
             "Test len(items), and read its elements.")
    if not isinstance(value, Struct) or value.kind == "dict" or \
            value.kind == "record" and not issubclass(value.cls, tuple):
        return Const(False)
    patterns, items = pattern.patterns, value.items
    star = next((k for k, p in enumerate(patterns) if isinstance(p, gast.MatchStar)), None)
    if star is None:
        return all_fit(reader, zip(items, patterns), node) if len(items) == len(patterns) else Const(False)
    after = len(patterns) - star - 1
    if len(items) < len(patterns) - 1:
        return Const(False)
    if patterns[star].name is not None:
        bind_name(reader, patterns[star].name, Struct("list", items[star:len(items) - after]))
    return all_fit(reader, [*zip(items, patterns[:star]), *zip(items[len(items) - after:], patterns[star + 1:])], node)


@fits("MatchMapping")
def fits_match_mapping(reader: Reader, value, pattern, node):
    if not isinstance(value, Struct) or value.kind != "dict":
        return Const(False)
    keys = [known_value(reader, evaluate(reader, k), "the key of a pattern", node) for k in pattern.keys]
    if not set(keys) <= set(value.keys):
        return Const(False)
    if pattern.rest is not None:
        rest = [k for k in value.keys if k not in keys]
        bind_name(reader, pattern.rest, Struct("dict", [value.items[value.keys.index(k)] for k in rest], rest))
    return all_fit(reader, [(value.items[value.keys.index(k)], p) for k, p in zip(keys, pattern.patterns)], node)


@fits("MatchClass")
def fits_match_class(reader: Reader, value, pattern, node):
    cls = python_value(reader, evaluate(reader, pattern.cls), node)
    if not call_isinstance(reader, isinstance, [value, Const(cls)], {}, node).value:
        return Const(False)
    itself = cls in (bool, int, float, str, bytes, list, tuple, dict)
    names = [*getattr(cls, "__match_args__", ())[:len(pattern.patterns)], *pattern.kwd_attrs]
    pairs = [(value, p) for p in pattern.patterns] if itself else [
        (read_attribute(reader, value, n, node), p) for n, p in zip(names, [*pattern.patterns, *pattern.kwd_patterns])]
    if not itself and len(names) < len(pattern.patterns) + len(pattern.kwd_patterns):
        fail(reader, LanguageError, f"{cls.__name__} has too few __match_args__ for this pattern", node,
             f"Name the attributes: {cls.__name__}(name=...).")
    return all_fit(reader, pairs, node)
