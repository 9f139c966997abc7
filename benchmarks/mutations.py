"""Do the tests made from the rule table notice a wrong rule?  Parts are altered one place at a time, and tested.

    python benchmarks/mutations.py              all rules; how many alterations are caught, and those that survive
    python benchmarks/mutations.py svd norm     some of them

Alterations: a term is dropped, a sign is turned, operands of what does not commute are swapped, a product becomes a
quotient, a number or an axis is another, a function of NumPy is its neighbour, an arm of a branch is the other.  The
tests are those of tests/rules: tangents against differences, adjoints against tangents, precision.
"""
import argparse
import ast
import collections
import copy
import inspect
import os
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
warnings.simplefilter("ignore")
np.seterr(all="ignore")

from rules import test_array_rules as arrays  # noqa: E402  (its folder is put on the path first)
from rules import test_standalone as entries  # noqa: E402

from gradscribe.ast_transform.core.rule import RULES  # noqa: E402

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
        try:
            source = textwrap.dedent(inspect.getsource(part))
        except OSError:
            continue
        tree = ast.parse(source).body[0]
        if not isinstance(tree, ast.FunctionDef):
            continue
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
            yield Mutant(rule, name, what, part.__code__.co_firstlineno), space[part.__name__]


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    RULES.complete()
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
    for m in survivors:
        print(f"survives: {m.rule.label}.{m.part}: {m.what}")
    if total:
        print(f"{total - len(survivors)} of {total} alterations are caught: {(1 - len(survivors) / total):.1%}")
    return total > 0 and len(survivors) > 0.03 * total


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
