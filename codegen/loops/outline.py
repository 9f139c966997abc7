# SPDX-License-Identifier: Apache-2.0
"""Outlining: statements that occur more than once in a function, up to renaming, become a function that it calls.

So the layer of a network is compiled once and called for each layer, whether the copies come from one function of the
user's, from its derivative, or were written out.

>>> import ast
>>> from gradscribe.codegen.loops.trees import from_tree, to_tree
>>> tree = ast.parse('''def f(x, w, v):
...     h = np.dot(x, w)
...     for i in range(h.shape[0]):
...         h[i] = tanh(h[i])
...     k = np.dot(h, v)
...     for j in range(k.shape[0]):
...         k[j] = tanh(k[j])
...     return k''').body[0]
>>> function = from_tree(tree, {"x": ("float64", 1), "w": ("float64", 2), "v": ("float64", 2)})
>>> for made in (*outline(function, least=3), function):
...     print(ast.unparse(to_tree(made)))
def rows_1_(x, w):
    h = np.dot(x, w)
    for i in range(h.shape[0]):
        h[i] = tanh(h[i])
    return (h,)
def f(x, w, v):
    h, = rows_1_(x, w)
    k, = rows_1_(h, v)
    return k

Source: the idea is LLVM's IROutliner; equal rows are neighbours in a suffix array (U. Manber and G. Myers,
Suffix arrays: a new method for on-line string searches, SIAM J. Comput. 22, 1993); names are compared afterwards.
"""
from collections import Counter
from collections.abc import Container
from typing import NamedTuple

from gradscribe.codegen.loops import form
from gradscribe.codegen.loops.analysis.equivalence import shape_of
from gradscribe.codegen.loops.analysis.liveness import Flow
from gradscribe.codegen.loops.form import (
    Break,
    Call,
    Continue,
    Do,
    For,
    Function,
    Items,
    Name,
    Return,
    Unpack,
    While,
    names_of,
    set_by,
    statements,
)

LEAST = 12                              # statements: to compile them takes longer than thousands of calls


class Row(NamedTuple):
    """Consecutive statements of a block; in_loop: whether the block is in a loop."""
    block: list
    first: int
    length: int
    in_loop: bool

    @property
    def statements(self):
        return self.block[self.first:self.first + self.length]


def outline(function: Function, short: Container = (), least: int = LEAST) -> list:
    """Outline the rows that occur more than once, in place; the new functions, each of which calls only later ones.

    short: arrays on the function's stack, which stay there; least: the minimum number of statements of a row.
    """
    made: list = []
    todo = [function]
    while todo:
        here = todo.pop()
        while (found := most_repeated(here, short, least)) is not None:
            made.append(put_out(here, *found, f"rows_{len(made) + 1}_"))
            todo.append(made[-1])
    return made


def most_repeated(function, short, least) -> tuple[list, list, list] | None:
    """(rows, params, results): the copies of the row that saves the most statements, and the names that it takes and
    returns, each by its position among the row's names; None where there is none.
    """
    places, words = [], []              # all statements of all blocks; words: a number for each shape
    keys: dict = {}
    for block, in_loop in form.blocks_in_loops(function.block):
        places += [(block, k, in_loop) for k in range(len(block))] + [None]
        words += [keys.setdefault(shape_of([s]).key, len(keys)) if may_go(s, short) else None for s in block] + [None]
    words = [-1 - k if word is None else word for k, word in enumerate(words)]
    weights = [0 if place is None else sum(1 for _ in statements([place[0][place[1]]])) for place in places]
    order = sorted(range(len(words)), key=lambda k: words[k:])
    tried, found, most = set(), None, 0
    for one, other in map(sorted, zip(order, order[1:])):
        length = alike(places, words, one, other)
        row = tuple(words[one:one + length])
        if sum(weights[one:one + length]) < least or row in tried:
            continue
        tried.add(row)
        rows = copies(places, words, one, length)
        gain = sum(weights[one:one + length]) * (len(rows) - 1)
        if gain > most and (names := given_and_returned(function, rows)) is not None:
            found, most = (rows, *names), gain
    return found


def may_go(s, short, inside=False):
    """Whether a statement may be in another function: it does not jump out of it and uses no array on the stack."""
    if isinstance(s, Return) or isinstance(s, (Break, Continue)) and not inside:
        return False
    if any(n in short for n in (*names_of(s), *set_by(s))):
        return False
    inside = inside or isinstance(s, (For, While))
    return all(may_go(i, short, inside) for b in form.blocks(s) for i in b)


def row_at(places, first, length):
    block, k, in_loop = places[first]
    return Row(block, k, length, in_loop)


def alike(places, words, one, other):
    """How many statements from two places on are equal up to renaming, without overlap."""
    length = 0
    while one + length < other and other + length < len(words) and 0 <= words[one + length] == words[other + length]:
        length += 1
    low, high = 0, length               # bisection: prefixes of equal rows are equal
    while low < high:
        middle = (low + high + 1) // 2
        if same(row_at(places, one, middle), row_at(places, other, middle)):
            low = middle
        else:
            high = middle - 1
    return low


def same(row, other):
    return shape_of(row.statements).key == shape_of(other.statements).key


def copies(places, words, first, length):
    """The rows that are equal to one up to renaming, without overlap."""
    row, found, k = words[first:first + length], [row_at(places, first, length)], first + length
    while k + length <= len(words):
        if words[k:k + length] == row and same(found[0], row_at(places, k, length)):
            found.append(row_at(places, k, length))
            k += length
        else:
            k += 1
    return found


def given_and_returned(function, rows):
    """(params, results) of rows, as positions among their names; None if one of them cannot be a function."""
    reads = Counter(n for s in statements(function.block) for n in names_of(s))
    own, given, returned = form.set_in(function.block) | set(function.params), set(), set()
    for row in rows:
        inner, names, flow = list(statements(row.statements)), shape_of(row.statements).names, Flow(row.statements)
        if row.in_loop and not any(isinstance(s, (For, While)) for s in inner):
            return None                 # a call would cost as much as the row itself
        inside = Counter(n for s in inner for n in names_of(s))
        given |= {names.index(n) for n in flow.read & own}
        out = {n for n in flow.sets if reads[n] > inside[n] or row.in_loop and n in flow.read}
        if not out <= flow.certain | flow.read:
            return None                 # a result may be unset
        returned |= {names.index(n) for n in out}
    return sorted(given), sorted(returned)


def put_out(function, rows, given, returned, name):
    """Replace rows by calls of one function, and return this."""
    first = rows[0].statements
    made = None
    for row in reversed(rows):          # from the end of a block, so that earlier positions stay valid
        names, place = shape_of(row.statements).names, row.statements[0]
        call = Call(name, tuple(Name(names[k]) for k in given))
        results = Items(tuple(Name(names[k]) for k in returned))
        made = Unpack(results, call) if returned else Do(call)
        made.origin, made.line = place.origin, place.line
        row.block[row.first:row.first + row.length] = [made]
    return Function(name, [n.id for n in call.args], dict(function.types), [*first, Return(results)])
