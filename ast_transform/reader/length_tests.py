# SPDX-License-Identifier: Apache-2.0
"""Tests of lengths: the arm of a branch that the lengths of the example choose.

A test such as `x.shape == y.shape` is made when running, so that one version serves all lengths.  Where an arm has no
meaning for the lengths of the example, as x + y has none for unequal ones, the test decides which arm is read, and the
version serves only calls whose lengths give the same answer.
"""
import operator
from collections.abc import Callable
from typing import Any

from gradscribe.ast_transform.core.form import Const, Var, is_application
from gradscribe.ast_transform.core.kinds import Array, Length, set_apart, unify
from gradscribe.ast_transform.core.operations import both, either
from gradscribe.ast_transform.reader.container_aliases import restore, snapshot
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.source.diagnose import ShapeError


def by_lengths(reader: Reader, test: Any, read: Callable[[], Any], arms: tuple[Callable, Callable]) -> Any:
    """read(), which reads both arms of a branch; if that fails, the arm that the lengths of the example choose."""
    if not compares_lengths(reader, test):
        return read()
    before, block = snapshot(reader), list(reader.build.block)
    try:
        return read()
    except ShapeError:
        restore(before)
        reader.build.block[:] = block
        answer = answer_of(reader, test)
        if answer is None:
            raise
        return arms[0]() if answer else arms[1]()


def compares_lengths(reader: Reader, test: Any) -> bool:
    """Whether a test is a comparison of lengths, or holds one."""
    made = reader.build.definition(test)
    if any(is_application(made, f) for f in (operator.not_, both, either)):
        return any(compares_lengths(reader, a) for a in made.args)
    return any(is_application(made, f) for f in (operator.eq, operator.ne)) and \
        None not in map(length_of, made.args)


def answer_of(reader: Reader, test: Any) -> bool | None:
    """The answer of a test of lengths, to which the version is then restricted; None if it is not known."""
    if isinstance(test, Const):
        return bool(test.value)
    made = reader.build.definition(test)
    if is_application(made, operator.not_):
        answer = answer_of(reader, made.args[0])
        return None if answer is None else not answer
    if is_application(made, both) or is_application(made, either):
        answers = [answer_of(reader, a) for a in made.args]
        decisive = made.function is either
        return decisive if decisive in answers else None if None in answers else not decisive
    if is_application(made, operator.eq) or is_application(made, operator.ne):
        same = are_equal(*map(length_of, made.args))
        return None if same is None else same == (made.function is operator.eq)
    return None


def are_equal(a: Length | None, b: Length | None) -> bool | None:
    """Whether two lengths are equal in the example, to which the version is then restricted; None if not known."""
    if a is None or b is None or a.size is None or b.size is None:
        return None
    if a.size == b.size:
        return True if unify(a, b) else None
    return False if set_apart(a, b) else None


def length_of(operand: Any) -> Length | None:
    """The length that an integer is."""
    if isinstance(operand, Var):
        return operand.fact.length if isinstance(operand.fact, Array) and not operand.fact.dims else None
    return Length(None, operand.value) if isinstance(operand, Const) and type(operand.value) is int else None
