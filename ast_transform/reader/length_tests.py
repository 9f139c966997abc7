# SPDX-License-Identifier: Apache-2.0
"""Tests of lengths: the arm of a branch that the lengths of the example choose.

A test such as `x.shape == y.shape` is made when running, so that one version serves all lengths.  Where an arm has no
meaning for the lengths of the example, as x + y has none for unequal ones, the test decides which arm is read, and the
version serves only calls whose lengths give the same answer.
"""
import operator
from collections.abc import Callable
from typing import Any

from gradscribe.ast_transform.core.form import Const, Var
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
    if made is None or made.function not in ANSWERS:
        return False
    if ANSWERS[made.function] in COMPARISONS:
        return None not in map(length_of, made.args)
    return any(compares_lengths(reader, a) for a in made.args)


def answer_of(reader: Reader, test: Any) -> bool | None:
    """The answer of a test of lengths, to which the version is then restricted; None if it is not known."""
    if isinstance(test, Const):
        return bool(test.value)
    made = reader.build.definition(test)
    answer = None if made is None else ANSWERS.get(made.function)
    if made is None or answer is None:
        return None
    if answer in COMPARISONS:
        return answer(are_equal(*map(length_of, made.args)))
    return answer(*(answer_of(reader, a) for a in made.args))


def same(equal: bool | None) -> bool | None:
    return equal


def opposite(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def unequal(equal: bool | None) -> bool | None:
    return opposite(equal)


def all_of(*answers: bool | None) -> bool | None:
    return False if False in answers else None if None in answers else True


def any_of(*answers: bool | None) -> bool | None:
    return opposite(all_of(*map(opposite, answers)))


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


COMPARISONS = (same, unequal)
ANSWERS: dict[Callable, Callable] = {operator.eq: same, operator.ne: unequal, operator.not_: opposite, both: all_of,
                                     either: any_of}
