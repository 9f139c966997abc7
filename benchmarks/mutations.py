"""Do the tests made from the rule table notice a wrong rule?  Parts are altered one place at a time, and tested.

    python benchmarks/mutations.py              all rules; how many alterations are caught, and those that survive
    python benchmarks/mutations.py svd norm     some of them
    python benchmarks/mutations.py --claims     only what records say of memory, layout, dtypes and effects

Alterations of formulas: a term is dropped, a sign is turned, operands of what does not commute are swapped, a product
becomes a quotient, a number or an axis is another, a function of NumPy is its neighbour, an arm of a branch is the
other.  The tests are those of tests/rules: tangents against differences, adjoints against tangents, precision.
What formulas call in the tables of rules is altered too, and the tests are those of all rules that call it.

Alterations of claims: memory that is said to be shared less than it is, or a view that is certain; an order of entries
that is wrong in some layout; what may be an array without axes said to be a number; what raises said not to; operands
that are changed said not to be; another dtype, rank or length than is inferred.  A record that only claims less is no
error and is not counted.  The tests are tests/rules/test_memory.py and test_effects.py.
"""
import argparse
import ast
import collections
import contextlib
import copy
import functools
import inspect
import itertools
import os
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np

from gradscribe.ast_transform.core.kinds import UNIT, Array, Length, Sequence
from gradscribe.ast_transform.core.memory import (
    ALIAS,
    ALIASES,
    CONTIGUOUS,
    FRESH,
    LOCKED,
    PART,
    VIEW,
)
from gradscribe.ast_transform.core.operations import pop, pop_front, push, push_front, put, put_add
from gradscribe.ast_transform.core.rule import OPERATIONS, RULES, STATIC
from gradscribe.ast_transform.passes import types
from gradscribe.ast_transform.passes.described import Unfit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
warnings.simplefilter("ignore")
np.seterr(all="ignore")

from rules import test_array_rules as arrays  # noqa: E402  (its folder is put on the path first)
from rules import test_effects as effects  # noqa: E402  (its folder is put on the path first)
from rules import test_memory as memories  # noqa: E402  (its folder is put on the path first)
from rules import test_standalone as entries  # noqa: E402  (its folder is put on the path first)

NEIGHBOURS = {"sin": "cos", "cos": "sin", "sinh": "cosh", "cosh": "sinh", "exp": "expm1", "log": "log1p", "sum": "mean",
              "cumsum": "cumprod", "triu": "tril", "tril": "triu", "maximum": "minimum", "minimum": "maximum",
              "zeros_like": "ones_like", "ones_like": "zeros_like", "sign": "abs", "real": "imag", "conj": "real"}
TURNED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
Mutant = collections.namedtuple("Mutant", "rule part what line")


def places(tree):
    """(what, change) for each alteration of a part; `change(tree)` makes it in a copy."""
    nodes = list(ast.walk(tree))
    chosen = {id(n) for test in nodes if isinstance(test, (ast.If, ast.IfExp)) for n in ast.walk(test.test)}
    chosen |= {id(n) for n in ast.walk(tree.args)}          # which form is taken, and defaults: not the formula
    for k, node in enumerate(nodes):
        if id(node) in chosen:
            continue
        def edit(change, k=k):
            def made(other):
                change(list(ast.walk(other))[k])
                return other
            return made
        if isinstance(node, ast.BinOp):
            if type(node.op) in TURNED:
                yield f"another sign in `{ast.unparse(node)}`", edit(_turn)
            if isinstance(node.op, (ast.Add, ast.Sub)):
                yield f"first term alone of `{ast.unparse(node)}`", edit(_first)
            if isinstance(node.op, (ast.Sub, ast.Div, ast.MatMult, ast.Pow)):
                yield f"operands swapped in `{ast.unparse(node)}`", edit(_swap)
        elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Tuple) and \
                not nothing(node.value):
            yield f"minus `{ast.unparse(node.value)}`", edit(_negate)
        elif isinstance(node, ast.keyword) and node.arg == "axis" and \
                isinstance(node.value, (ast.Constant, ast.UnaryOp)):
            yield f"another axis than `{ast.unparse(node)}`", edit(_axis)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in (0, 0.0):
            yield f"another number than {node.value}", edit(_number)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np" and \
                node.attr in NEIGHBOURS:
            yield f"np.{NEIGHBOURS[node.attr]} for np.{node.attr}", edit(_neighbour)


def nothing(node):
    """Zero, or a refusal."""
    text = ast.unparse(node)
    return text == "0" or text.startswith(("np.zeros", "no_derivative", "refuse"))


def _turn(node):
    node.op = TURNED[type(node.op)]()


def _first(node):
    node.op, node.right = ast.Mult(), ast.Constant(1)


def _swap(node):
    node.left, node.right = node.right, node.left


def _negate(node):
    node.value = ast.UnaryOp(ast.USub(), node.value)


def _axis(node):
    value = ast.literal_eval(node.value)
    node.value = ast.Constant({0: 1, 1: 0, -1: -2, -2: -1, None: 0}.get(value, 0))


def _number(node):
    node.value = node.value + 1


def _neighbour(node):
    node.attr = NEIGHBOURS[node.attr]


def mutants(rule):
    for name, part in rule.parts.items():
        if not name.startswith(("partial_", "vjp_", "jvp_")):
            continue
        for what, altered in alterations(part):
            yield Mutant(rule, name, what, part.__code__.co_firstlineno), altered


def alterations(part):
    """(what, function) for each alteration of a function."""
    try:
        source = textwrap.dedent(inspect.getsource(part))
    except OSError:
        return
    tree = ast.parse(source).body[0]
    if not isinstance(tree, ast.FunctionDef):
        return
    for what, change in places(tree):
        altered = change(copy.deepcopy(tree))
        if ast.unparse(altered) == ast.unparse(tree):
            continue
        module = ast.fix_missing_locations(ast.Module([altered], []))
        space = dict(part.__globals__)
        try:
            exec(compile(module, "<altered>", "exec"), space)
        except SyntaxError:
            continue
        yield what, space[part.__name__]


def shared(rules):
    """The functions of the tables that formulas call, those that run while transforming left out: {function: rules}."""
    found = {}
    for rule in rules:
        waiting = [p for n, p in rule.parts.items() if n.startswith(("partial_", "vjp_", "jvp_"))]
        seen = set(waiting)
        while waiting:
            part = waiting.pop()
            for called in map(part.__globals__.get, part.__code__.co_names):
                if inspect.isfunction(called) and called.__module__.startswith("gradscribe.ast_transform.rules") and \
                        called not in seen:
                    seen.add(called)
                    waiting.append(called)
                    if called not in STATIC and called.__closure__ is None:
                        found.setdefault(called, []).append(rule)
    return found


def tests_of(rule):
    """What must hold of a rule, as functions without arguments, quick ones first."""
    if rule in entries.TABLE:
        for k in range(len(rule.samples(np.random.default_rng(0)))):
            for test in (entries.test_jvp, entries.test_vjp, entries.test_single_precision):
                yield lambda test=test, k=k: test(rule, k)
        for case in entries.SPECIAL:
            if case.values[0] is rule:
                yield lambda case=case: entries.test_special_points(*case.values)
    elif rule in arrays.MINE and rule.samples is not None:
        for k in range(len(rule.samples(np.random.default_rng(0)))):
            for test in (arrays.test_jvp_is_the_difference, arrays.test_vjp_is_the_transpose_of_jvp,
                         arrays.test_single_precision_stays):
                yield lambda test=test, k=k: test(rule, k)
            if rule.options.get("partial"):
                yield lambda k=k: arrays.test_vjp_of_some_results(rule, k)


def caught(rule, checks):
    for check in checks:
        try:
            check()
        except Exception:                   # an assertion, or an alteration that does not run
            return True
    return False


def fine(rule, checks):
    """The checks that hold of the rule as it is."""
    return [c for c in checks if not caught(rule, [c])]


# --- what records say of memory, layout, dtypes and effects -----------------------------------------------------------

KINDS = {m.name: m for m in (FRESH, VIEW, PART, LOCKED, CONTIGUOUS, ALIAS, ALIASES)}
STRENGTH = {"all": 0, "first": 1, "": 2}
ORDERS = ("rows", "matrices", "operands", "first", "vector")


def unsafe(said, instead):
    """Whether one kind of memory claims what another does not: less that may be shared, or a view that is certain.

    A record that merely says more may be shared is no error.
    """
    if instead is said:
        return False
    views = {VIEW, PART, LOCKED, CONTIGUOUS}
    return STRENGTH[instead.shares] > STRENGTH[said.shares] or instead in views and said not in views or \
        instead is VIEW and said in (PART, LOCKED, CONTIGUOUS) or {said, instead} == {VIEW, LOCKED}


class Words(ast.NodeTransformer):
    """The k-th word of memory in a part is another; `swapped`: the arms of the k-th branch change places."""

    def __init__(self, k, word=None):
        self.k, self.word, self.seen, self.found = k, word, -1, None

    def visit_Name(self, node):
        if self.word is not None and node.id in KINDS:
            self.seen += 1
            if self.seen == self.k:
                self.found, node.id = node.id, self.word
        return node

    def visit_IfExp(self, node):
        self.generic_visit(node)
        if self.word is None:
            self.seen += 1
            if self.seen == self.k:
                self.found, node.body, node.orelse = "branch", node.orelse, node.body
        return node

    def visit_If(self, node):
        self.generic_visit(node)
        if self.word is None:
            self.seen += 1
            if self.seen == self.k:
                self.found, node.test = "branch", ast.UnaryOp(ast.Not(), node.test)
        return node


def altered_memory(rule):
    """(what, part) for a part `memory` with another word at one place, or the arms of a branch swapped."""
    part = rule.parts["memory"]
    tree = ast.parse(textwrap.dedent(inspect.getsource(part))).body[0]
    for word in (None, *KINDS):
        for k in range(20):
            change = Words(k, word)
            made = change.visit(copy.deepcopy(tree))
            if change.found is None:
                break
            if word is not None and not unsafe(KINDS[change.found], KINDS[word]):
                continue
            if word == "CONTIGUOUS" and change.found in ("FRESH", "ALIAS") and not claims_a_view(rule):
                continue
            space = {**part.__globals__, **KINDS}
            exec(compile(ast.fix_missing_locations(ast.Module([made], [])), "<altered>", "exec"), space)
            yield f"memory: {'the arms of branch' if word is None else word + ' for ' + change.found} {k}", \
                space[part.__name__]


@contextlib.contextmanager
def having(holder, name, value):
    """An attribute, or an entry of a dict, is another for a while."""
    held = isinstance(holder, dict)
    kept = holder.get(name, holder) if held else getattr(holder, name)
    if held:
        holder[name] = value
    else:
        setattr(holder, name, value)
    try:
        yield
    finally:
        if not held:
            setattr(holder, name, kept)
        elif kept is holder:
            del holder[name]
        else:
            holder[name] = kept


def other_facts(fact):
    """(what, fact): a result of another rank, dtype or length than it has."""
    if isinstance(fact, Sequence):
        for k, element in enumerate(fact.elements[:1]):
            for what, other in other_facts(element):
                elements = (*fact.elements[:k], other, *fact.elements[k + 1:])
                yield what, Sequence(fact.kind, elements, fact.keys, fact.cls)
    elif isinstance(fact, Array):
        dtype = np.dtype(fact.dtype)
        if fact.dims:
            yield "an axis fewer", Array(fact.dtype, fact.dims[1:])
            yield "a length of 97", Array(fact.dtype, (*fact.dims[:-1], Length(None, 97)))
        yield "an axis more", Array(dtype, (*fact.dims, UNIT))
        for other in ("float32", "float64", "int64", "complex128"):
            if np.dtype(other) != dtype:
                yield f"{other} for {dtype}", Array(np.dtype(other), fact.dims, fact.length)


def infers(kind):
    def other(*args, **words):
        found = types.infer(*args, **words)
        return dict(other_facts(found)).get(kind, found)
    return other


def widely(rule):
    """Every layout of every sample: axes in any order of memory, with gaps and backward, each operand on its own."""
    for function, args, words in effects.samples_of(rule):
        ways = [np.ascontiguousarray, np.asfortranarray, effects.strided, effects.backward]
        count = len(effects.arrays_of((args, list(words.values()))))
        for each in itertools.product(ways, repeat=min(count, 3)):
            def lay(a, k, each=each):
                return each[min(k, len(each) - 1)](a) if a.ndim else a
            yield function, effects.mapped(lay, args), effects.mapped(lay, words)
        for axes in itertools.permutations(range(3)):
            def turn(a, k, axes=axes):
                back = np.argsort(axes)
                return np.ascontiguousarray(a.transpose(axes)).transpose(back) if a.ndim == 3 else a
            yield function, effects.mapped(turn, args), effects.mapped(turn, words)


def false_order(rule):
    """Whether what the record says of the order of entries is wrong somewhere."""
    for function, args, words in widely(rule):
        result = effects.value_of(function, args, words)
        if isinstance(result, np.ndarray) and effects.rowwise(function, args, words, result) and \
                not result.flags.c_contiguous:
            return True
    return False


def meets(rule):
    """Whether operands and results are arrays with axes: others share no memory."""
    return any(any(a.ndim for a in effects.arrays_of((args, list(words.values())))) and any(
        r.ndim for r in effects.arrays_of((effects.value_of(function, args, words),)))
        for function, args, words in effects.samples_of(rule))


def claims_a_view(rule):
    """Whether any result would be taken for a view if the record said CONTIGUOUS: not of what has further arguments."""
    with having(rule, "memory", CONTIGUOUS):
        for function, args, words in effects.samples_of(rule):
            result = effects.value_of(function, args, words)
            if isinstance(result, np.ndarray) and result.ndim:
                try:
                    if effects.certain_view(function, args, words, result):
                        return True
                except IndexError:      # operands without names: no such record can be
                    continue
    return False


FAR = {"infinite": effects.numbers_of(np.inf), "large": effects.numbers_of(1e300), "small": effects.numbers_of(1e-320)}


def raised(rule):
    """Whether a function raises for any operands that a sample's may be: else its record is but careful."""
    with having(effects, "DEGENERATE", {**effects.DEGENERATE, **FAR}):
        return any(True for _ in effects.failures(rule)) or any(True for _ in by_hand(rule))


def claims(rule):
    """(kind, what, a context in which the record is wrong, checks that should notice)."""
    if rule not in effects.SAMPLED:     # rewritten before any pass asks
        return
    shares = [functools.partial(memories.test_records_say_what_results_share, rule),
              functools.partial(effects.test_memory_in_every_layout, rule)]
    for other in KINDS.values() if meets(rule) else ():
        if rule.memory is not None and rule.memory.name in KINDS and unsafe(rule.memory, other) and \
                (other is not CONTIGUOUS or claims_a_view(rule)):
            yield "memory", f"{other} for {rule.memory}", having(rule, "memory", other), shares
    if "memory" in rule.parts:
        for what, part in altered_memory(rule):
            yield "memory", what, having(rule.parts, "memory", part), shares
    typing = [functools.partial(effects.test_what_typing_says, rule)]
    for order in ORDERS:
        with having(rule.options, "order", order):
            wrong = false_order(rule)
        if wrong:                       # what is right is no error
            yield "order", f"order={order!r}", having(rule.options, "order", order), [
                functools.partial(effects.test_what_lies_row_by_row, rule)]
    if rule.options.get("cell"):
        yield "cell", "no cell", having(rule.options, "cell", False), [
            functools.partial(effects.test_what_may_be_a_cell, rule)]
    if rule.raises is True and raised(rule):
        yield "raises", "raises nothing", having(rule, "raises", False), [
            functools.partial(effects.test_what_raises_says_so, rule), *by_hand(rule)]
    for option in ("by_value", "counts", "complex_result", "fact"):
        if option in rule.options and (option == "fact" or "fact" not in rule.options):
            without = {k: v for k, v in rule.options.items() if k != option}
            yield "typing", f"no {option}=", having(rule, "options", without), typing
    known = rule.options.get("fact")
    for kind in kinds_of_facts(rule):
        if known is None:
            yield "typing", kind, having(effects, "infer", infers(kind)), typing
        else:
            def altered(*operands, kind=kind):
                found = known(*operands)
                return dict(other_facts(found)).get(kind, found)
            yield "typing", kind, having(rule.options, "fact", altered), typing


def by_hand(rule):
    for function, args in effects.RAISING:
        if RULES.get(function) is rule:
            yield functools.partial(effects.test_what_raises_for_these, function, args)


def kinds_of_facts(rule):
    """What may be altered in what is inferred of the first sample."""
    for function, args, words in effects.samples_of(rule)[:1]:
        try:
            yield from dict(other_facts(effects.typed(rule, function, args, words)))
        except Unfit:
            return


def operations():
    """(what, context): operations that change an operand, said to give a new one."""
    for function in (put, put_add):
        rule = RULES[function]
        for other in (FRESH, ALIAS):
            yield f"{rule.label}: {other} for {rule.memory}", having(rule, "memory", other)
    for function in (push, push_front, pop, pop_front):
        record = OPERATIONS[function]
        yield f"{function.__name__}: changes nothing", having(record, "changes", False)
        yield f"{function.__name__}: FRESH for HOLDS", having(record, "memory", FRESH)


def programs():
    return [functools.partial(effects.test_writes_are_seen_under_every_name, f) for f in effects.WRITTEN]


def holds(check, known={}):  # noqa: B006  (what was found out)
    """Whether a check holds of the records as they are."""
    key = check.func, *map(id, check.args)
    if key not in known:
        known[key] = not caught(None, [check])
        if not known[key]:
            print(f"fails without an alteration: {check.func.__name__} of {getattr(check.args[0], 'label', '')}")
    return known[key]


def of_claims(rules):
    """How many alterations there are of each kind, and those that no check notices."""
    counted, missed = collections.Counter(), []
    for rule in rules:
        for kind, what, context, checks in claims(rule):
            counted[kind] += 1
            checks = [c for c in checks if holds(c)]
            with context:
                if not caught(rule, checks):
                    missed.append((kind, f"{rule.label}: {what}"))
    return counted, missed


def of_operations():
    counted, missed = collections.Counter(), []
    for what, context in operations():
        counted["writes"] += 1
        with context:
            if not caught(None, programs()):
                missed.append(("writes", what))
    return counted, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--claims", action="store_true", help="only what records say of memory, layout and effects")
    options = parser.parse_args()
    RULES.complete()
    chosen = [r for r in dict.fromkeys(RULES.values()) if not options.names or r.label in options.names]
    counted, missed = of_claims([r for r in chosen if r.samples is not None])
    if not options.names:
        more, others = of_operations()
        counted, missed = counted + more, missed + others
    for _, what in missed:
        print(f"survives: {what}")
    survived = collections.Counter(kind for kind, _ in missed)
    for kind, n in counted.items():
        print(f"{kind}: {n - survived[kind]} of {n} alterations are caught")
    claimed, failed = sum(counted.values()), len(missed)
    if claimed:
        print(f"what records say: {claimed - failed} of {claimed} alterations are caught: {1 - failed / claimed:.1%}")
    formulas = not options.claims and of_formulas(options)
    return formulas or failed > 0.01 * claimed


def of_formulas(options):
    """Whether more than a few alterations of formulas survive."""
    total, survivors = 0, []
    records = [r for r in dict.fromkeys(RULES.values()) if r.has_derivative() and r.samples is not None]
    for n, rule in enumerate(records):
        if options.names and rule.label not in options.names:
            continue
        checks = fine(rule, list(tests_of(rule)))
        for mutant, part in mutants(rule):
            kept, rule.parts[mutant.part] = rule.parts[mutant.part], part
            try:
                total += 1
                if not caught(rule, checks):
                    survivors.append(mutant)
            finally:
                rule.parts[mutant.part] = kept
        if sys.stderr.isatty():
            print(f"\r{n + 1} of {len(records)}", end="", file=sys.stderr, flush=True)
    failed = counted("formulas", total, survivors, 0.01)
    chosen, total, survivors = [r for r in records if not options.names or r.label in options.names], 0, []
    for part, users in shared(chosen).items():
        checks = [(r, fine(r, list(tests_of(r)))) for r in users]
        for what, altered in alterations(part):
            kept, part.__code__ = part.__code__, altered.__code__       # whoever has imported it
            try:
                total += 1
                if not any(caught(r, c) for r, c in checks):
                    survivors.append(Mutant(users[0], part.__name__, what, kept.co_firstlineno))
            finally:
                part.__code__ = kept
    return counted("what formulas call", total, survivors, 0.03) or failed


def counted(what, total, survivors, most):
    """Tells the figure, and whether more survive than a share: some alterations change nothing, as a guard's number."""
    for m in survivors:
        print(f"survives: {m.rule.label}.{m.part}: {m.what}")
    if total:
        print(f"{what}: {total - len(survivors)} of {total} alterations are caught: {1 - len(survivors) / total:.1%}")
    return len(survivors) > most * total


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
