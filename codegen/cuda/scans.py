# SPDX-License-Identifier: Apache-2.0
"""Running sums and places of extremes, which a loop finds one pass after another, by all threads.

A loop that carries a sum from pass to pass, and does with it what has to do with its own entries only, is three: terms,
their running sums by a library, what is done with them.  The place of the largest is the first at which the largest
stands, which are two loops whose passes have no order.

Source: G. Blelloch, Prefix sums and their applications, 1990.

>>> from gradscribe.codegen.cuda.inferred import inferred, np
>>> from gradscribe.codegen.cuda.sorting import Sorting
>>> text = '''def f(x, n):
...     y = np.zeros((n,), np.float64)
...     s = 0.0
...     for i in range(n):
...         s = s + x[i]
...         y[i] = s * s
...     best = x[0]
...     at = 0
...     for i in range(n):
...         v = x[i]
...         if v > best or (v != v and best == best):
...             best = v
...             at = i
...     return (y, at)'''
>>> function = ast.parse(text).body[0]
>>> Scans(function, Sorting(function, inferred(text, "f", [(np.dtype("f8"), 1), (np.dtype("i8"), 0)]))).run()
>>> print(ast.unparse(function))
def f(x, n):
    y = np.zeros((n,), np.float64)
    s = 0.0
    s_terms = np.empty((n,), np.float64)
    for i in range(n):
        s_terms[i] = x[i]
    s_sums = running_sum(s_terms)
    for i in range(n):
        y[i] = s_sums[i] * s_sums[i]
    best = x[0]
    at = 0
    best_rank = ranked(x[0])
    for i in range(n):
        best_rank = max(best_rank, ranked(x[i]))
    best = unranked(best_rank)
    at = n
    for i in range(n):
        v = x[i]
        if v == best or (v != v and best != best):
            at = min(at, i)
    return (y, at)
"""
import ast

from gradscribe.codegen.cuda.kernels import copied, enclosed, identity, is_zero, other
from gradscribe.codegen.cuda.order import Order, put_together
from gradscribe.codegen.cuda.reach import Reach
from gradscribe.codegen.cuda.sorting import is_range
from gradscribe.codegen.cuda.trees import counted_down, names_in, walk

RUNNING = {"+": "running_sum", "*": "running_product"}
RANKS = {"float64": ("{}", "unranked({})"), "float32": ("{}32", "unranked32({})")}
WHOLE = {"int64", "int32"}


class Scans:
    """Rewrites the body of a function in place; sorting: of it, as it is until then."""

    def __init__(self, function, sorting):
        self.function, self.sorting = function, sorting
        self.taken = {n.id for n in walk(function) if isinstance(n, ast.Name)} | {a.arg for a in function.args.args}

    def run(self):
        self.block(self.function.body)

    def block(self, body):
        at = 0
        while at < len(body):
            node = body[at]
            if isinstance(node, ast.For) and self.sorting.of(node) != "kernel" and not self.sorting.is_short(node) and (
                    is_range(node) or counted_down(node) is not None):
                made = self.extreme(node, body[:at]) or self.running(node, body, at)
                if made:
                    body[at:at + 1] = made
                    at += len(made)
                    continue
            if isinstance(node, (ast.For, ast.While, ast.If)) and self.sorting.of(node) == "host":
                self.block(node.body)
                self.block(node.orelse)
            at += 1

    def fresh(self, name):
        made = other(name, self.taken)
        self.taken.add(made)
        return made

    def read(self, text, origin):
        """Statements of a text, as of the user's line."""
        body = ast.parse(text).body
        for n in (n for b in body for n in walk(b)):
            n.origin, n.lineno = origin, 0
        return body

    # places of extremes

    def extreme(self, loop, before):
        """What stands for a loop that finds where the largest is, or the smallest; None where it does not."""
        if not is_range(loop) or len(loop.body) != 2 or not is_set(loop.body[0]) or not isinstance(
                loop.body[1], ast.If) or loop.body[1].orelse or len(loop.body[1].body) != 2 or len(before) < 2:
            return None
        (first, then), index, value = loop.body, loop.target.id, loop.body[0].targets[0].id
        if not all(map(is_set, then.body)):
            return None
        best, at = (s.targets[0].id for s in then.body)
        sign = next((s for s in "><" if ast.unparse(then.test) ==
                     f"{value} {s} {best} or ({value} != {value} and {best} == {best})"), None)
        start = ast.unparse(Renamed({index: "0"}).visit(copied(first.value)))
        dtype = self.sorting.kinds[value].dtype if value in self.sorting.kinds else None
        if sign is None or [ast.unparse(s) for s in then.body] != [f"{best} = {value}", f"{at} = {index}"] or \
                [ast.unparse(s) for s in before[-2:]] != [f"{best} = {start}", f"{at} = 0"] or \
                dtype not in RANKS.keys() | WHOLE:
            return None
        choice, rank = ("max", self.fresh(f"{best}_rank")) if sign == ">" else ("min", self.fresh(f"{best}_rank"))
        ranked, back = RANKS.get(dtype, ("", "{}"))
        ranked = ranked.format("ranked" if sign == ">" else "ranked_low")
        term, count = ast.unparse(first.value), ast.unparse(loop.iter.args[0])
        return self.read("\n".join([
            f"{rank} = {ranked}({start})" if ranked else f"{rank} = {start}",
            f"for {index} in range({count}):",
            f"    {rank} = {choice}({rank}, {ranked}({term}))" if ranked else f"    {rank} = {choice}({rank}, {term})",
            f"{best} = {back.format(rank)}",
            f"{at} = {count}",
            f"for {index} in range({count}):",
            f"    {value} = {term}",
            f"    if {value} == {best} or ({value} != {value} and {best} != {best}):",
            f"        {at} = min({at}, {index})"]), loop.origin if hasattr(loop, "origin") else None)

    # running sums

    def running(self, loop, block, at):
        """What stands for a loop that carries a sum; None where it does more."""
        given, self.was = loop.iter.args, set(self.taken)
        down = counted_down(loop) is not None
        if down:
            loop.iter.args = [counted_down(loop)]
        made = self.written_out(loop, down) or self.carried(loop, down, block[:at])
        if made:
            block[at:at + 1] = made
            loops = [s for s in made if isinstance(s, ast.For)]
            order = Order(self.function, self.sorting.order.dtypes, self.sorting.order.private)
            free = [order.free(n) for n in loops]
            block[at:at + len(made)] = [loop]
            if None not in free and not any(f.atomic for f in free):
                return made
        loop.iter.args, self.taken = given, self.was
        return None

    def written_out(self, loop, down):
        """Of a loop whose entries are the sums themselves."""
        index, count, found = loop.target.id, ast.unparse(loop.iter.args[0]), []
        for s in loop.body:
            if down or not isinstance(s, ast.Assign) or not isinstance(s.targets[0], ast.Subscript) or not isinstance(
                    s.value, ast.IfExp) or ast.unparse(s.value.test) != f"{index} == 0" or not isinstance(
                    s.value.orelse, ast.BinOp):
                return None
            name, term = ast.unparse(s.targets[0].value), s.value.body
            sign = {ast.Add: "+", ast.Mult: "*"}.get(type(s.value.orelse.op))
            if ast.unparse(s.targets[0]) != f"{name}[{index}]" or sign is None or ast.unparse(
                    s.value.orelse.left) != f"{name}[{index} - 1]" or ast.dump(s.value.orelse.right) != ast.dump(
                    term) or name not in self.sorting.kinds:
                return None
            found.append((name, sign, term, getattr(s, "origin", None)))
        if any(name in names_in(term) for name, *_ in found for _, _, term, _ in found):
            return None
        out = []
        for name, sign, term, origin in found:
            terms, sums = self.fresh(f"{name}_terms"), self.fresh(f"{name}_{'sums' if sign == '+' else 'products'}")
            out += self.read("\n".join([
                *self.made(terms, count, self.sorting.kinds[name].dtype, index),
                f"    {terms}[{index}] = {ast.unparse(term)}",
                f"{sums} = {RUNNING[sign]}({terms})",
                f"for {index} in range({count}):", f"    {name}[{index}] = {sums}[{index}]"]), origin)
        return out

    def made(self, name, count, dtype, index):
        return [f"{name} = np.empty(({count},), np.{dtype})", f"for {index} in range({count}):"]

    def carried(self, loop, down, before):
        """Of a loop in which a number is added to, and read above or below that.

        Products stay in their order: in another, what has come to be 0 could meet what is infinite.
        """
        index, body = loop.target.id, Reach(*loop.body)
        inner = {n.target.id for n in walk(loop) if isinstance(n, ast.For)}
        names = [n for n in sorted(body.sets & body.names - inner) if put_together(n, loop) is None]
        entries = self.sorting.order.entries(loop)
        if not body.known or len(names) != 1 or entries is None or entries:
            return None
        name = names[0]
        sets = [k for k, s in enumerate(loop.body) if any(isinstance(n, ast.Name) and n.id == name and isinstance(
            n.ctx, ast.Store) for n in walk(s))]
        kind = self.sorting.kinds.get(name)
        if len(sets) != 1 or kind is None or kind.dtype not in RANKS.keys() | WHOLE:
            return None
        first, update, last = loop.body[:sets[0]], loop.body[sets[0]], loop.body[sets[0] + 1:]
        early, lost = [], {name}        # what wants the sum without this pass's term
        for s in first:
            if lost & names_in(s).keys():
                early.append(s)
                lost |= {n.id for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        first = [s for s in first if s not in early]
        sign, term = update_of(update, name)
        if sign != "+" or not any(name in names_in(s) for s in [*early, *last]) or (
                lost - {name}) & names_in(update).keys():
            return None
        moved, stays = Reach(*early), Reach(*first, update)
        if moved.writes.keys() & (stays.reads.keys() | stays.writes.keys()) or stays.writes.keys() & moved.reads.keys():
            return None
        again, kept = again_of(first, [*early, *last], body.writes.keys())
        certain = {s.targets[0].id for s in first if is_set(s)}
        if not all(n in certain and n in self.sorting.kinds and not self.sorting.kinds[n].rank for n in kept):
            return None
        kept = {n: self.fresh(f"{n}_kept") for n in kept}
        terms, sums = self.fresh(f"{name}_terms"), self.fresh(f"{name}_sums")
        count, origin = ast.unparse(loop.iter.args[0]), getattr(loop, "origin", None)
        zero = any(is_zero(s, name) for s in before[-1:])
        here = f"{sums}[{index}]" if zero else f"{name} + {sums}[{index}]"
        head = self.read("\n".join([*self.made(terms, count, kind.dtype, index),
                                    f"    {terms}[{index}] = {term}"]), getattr(update, "origin", origin))
        head[1].body[:0] = copied(first)
        head[1].body += self.read("\n".join(f"{a}[{index}] = {n}" for n, a in kept.items()), origin)
        head[:0] = self.read("\n".join(f"{a} = np.empty(({count},), np.{self.sorting.kinds[n].dtype})"
                                       for n, a in kept.items()), origin)
        middle = self.read(f"{sums} = {'running_sum_back' if down else 'running_sum'}({terms})", origin)
        tail = self.read(f"for {index} in range({count}):\n    pass", origin)
        before_it = f"{sums}[{index} + 1] if {index} < {count} - 1" if down else f"{sums}[{index} - 1] if {index} > 0"
        without = f"{before_it} else {identity('+', kind.dtype)}"
        without = f"({without})" if zero else f"{name} + ({without})"
        given = self.read("\n".join(f"{n} = {a}[{index}]" for n, a in kept.items()), origin)
        tail[0].body = [*given, *copied(again), *(Renamed({name: without}).visit(s) for s in copied(early)),
                        *(Renamed({name: here}).visit(s) for s in copied(last))]
        after = []
        if sum(n.id == name and isinstance(n.ctx, ast.Load) for n in walk(self.function) if isinstance(
                n, ast.Name)) > sum(n.id == name and isinstance(n.ctx, ast.Load) for n in walk(loop) if isinstance(
                n, ast.Name)):
            end = "0" if down else f"{enclosed(loop.iter.args[0])} - 1"
            after = self.read(f"if {count} > 0:\n    {name} = {name} + {sums}[{end}]", origin)
        return [*head, *middle, *tail, *after]


class Renamed(ast.NodeTransformer):
    """Names that are read become texts."""

    def __init__(self, texts):
        self.texts = texts

    def visit_Name(self, node):
        if node.id in self.texts and isinstance(node.ctx, ast.Load):
            return ast.parse(self.texts[node.id], mode="eval").body
        return node


def is_set(s):
    """name = value."""
    return isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)


def update_of(s, name):
    """The sign and the text of what a number gets in a statement; (None, None) where it gets something else."""
    if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
        op, sides = s.op, [None, s.value]
    elif is_set(s) and isinstance(s.value, ast.BinOp):
        op, sides = s.value.op, [s.value.left, s.value.right]
        if isinstance(sides[1], ast.Name) and sides[1].id == name and not isinstance(op, ast.Sub):
            sides.reverse()
        if not (isinstance(sides[0], ast.Name) and sides[0].id == name):
            return None, None
    else:
        return None, None
    if name in names_in(sides[1]):
        return None, None
    text = ast.unparse(sides[1])
    return {ast.Add: ("+", text), ast.Sub: ("+", f"-({text})")}.get(type(op), (None, None))


def again_of(first, later, written):
    """The statements above an update that what comes later does once more, and the names that it must be given: those
    that hang on entries which the loop sets.
    """
    sets, again, kept = {}, [], set()
    for s in first:
        for n in walk(s):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                sets.setdefault(n.id, []).append(s)
    needed = {n for s in later for n in names_in(s)} & sets.keys()
    for s in reversed(first):
        mine = {n for n in needed if s in sets[n]}
        if mine and is_set(s) and all(len(sets[n]) == 1 for n in mine) and not names_in(s.value).keys() & written:
            again.insert(0, s)
            needed |= names_in(s.value).keys() & sets.keys()
        else:
            kept |= mine
    return again, sorted(kept)
