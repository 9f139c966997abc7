# SPDX-License-Identifier: Apache-2.0
"""Comprehensions and generator expressions: a tree comes in; a container of its elements comes out."""
import gast

from gradscribe.ast_transform.core.form import Const
from gradscribe.ast_transform.reader import dispatch
from gradscribe.ast_transform.reader.assignments import assign
from gradscribe.ast_transform.reader.branches import listed_walk, truth_value
from gradscribe.ast_transform.reader.comparisons import hashed
from gradscribe.ast_transform.reader.containers import put_all
from gradscribe.ast_transform.reader.dispatch import evaluates, late
from gradscribe.ast_transform.reader.dynamic_lists import (
    as_generator,
    comprehension_scope,
    unrolled_or_loop,
    while_iterated,
)
from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.iterators import (
    checked_iterator,
    iterator,
    names_read,
    read_later,
    record_lists_read,
)
from gradscribe.ast_transform.reader.memory import pending_values
from gradscribe.ast_transform.reader.operands import passed_value
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Struct
from gradscribe.ast_transform.source.diagnose import LanguageError


@evaluates("ListComp")
def evaluate_list_comp(reader: Reader, node):
    return unrolled_or_loop(reader, node, lambda items: Struct("list", items))


@evaluates("GeneratorExp")
def evaluate_generator_exp(reader: Reader, node):
    if any(isinstance(n, gast.NamedExpr) for n in gast.walk(node)):
        fail(reader, LanguageError, "a name is set in a generator, which is read as far as it is asked", node,
             "Write a loop, or a list.")
    writes = reader.memory.writes
    made = unrolled_or_loop(reader, node, lambda items: iterator(reader, items, late=node))
    found = checked_iterator(reader, made, writes, node)
    reads, _ = names_read(reader, node)
    if not isinstance(as_generator(reader, found), Struct):
        read_later(reader, found, (), node)
    return record_lists_read(reader, found, [v for _, _, v in reads])


@evaluates("DictComp")
def evaluate_dict_comp(reader: Reader, node):
    out = Struct("dict", [])
    pairs = comprehension(
        reader,
        node.generators,
        lambda: Struct("tuple", [dispatch.evaluate(reader, node.key), dispatch.evaluate(reader, node.value)]),
        node,
    )
    put_all(out, [(hashed(reader, p.items[0], node), p.items[1]) for p in pairs])
    return out


@late
def comprehension(reader: Reader, generators, element, node):
    """The elements of a comprehension over values that are known while reading."""
    if not generators:
        return [element()]
    first, *rest = generators
    value = dispatch.evaluate(reader, first.iter)
    walk = dispatch.walk_over(reader, value, first.iter)
    if walk.static is None:
        walk = listed_walk(reader, walk, first.iter, any(s is v for _, _, s in walk.items
                                                         for v, _ in reader.environment.captured.values()))
    with (
        comprehension_scope(reader, [first], node),
        pending_values(reader, []) as out,
        pending_values(reader, list(walk.static)) as values,
        while_iterated(reader, value, walk),
    ):
        for k in range(len(values)):
            assign(reader, first.target, passed_value(reader, values[k]))
            keep = True
            for test in first.ifs:
                known_test = truth_value(reader, dispatch.evaluate(reader, test), test) if keep else test
                if keep and not isinstance(known_test, Const):
                    fail(reader,
                        LanguageError,
                        "a comprehension whose length depends on values is not differentiated yet",
                        test,
                        "Write it as a loop that adds to a sum, or appends to a list.",
                    )
                keep = keep and known_test.value
            if keep:
                out += comprehension(reader, rest, element, node)
        return out
