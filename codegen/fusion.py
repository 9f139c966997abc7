# SPDX-License-Identifier: Apache-2.0
"""Loops over the same entries become one loop, and arrays that live within a pass become numbers.

Works on the text that lowering has written, a loop for each array statement.  A loop joins an earlier one of the same
length where no entry is needed before it is made: whatever one of them writes, both reach at the index of the loop.  On
the way up it passes statements that it has nothing to do with, and so do allocations.  Then the loops inside are joined
in the same way.  An array that is made empty and reached only at the current index needs no axis for it.

>>> print(fused('''def f(x, y):
...     n = x.shape[0]
...     z = np.empty((n,), np.float64)
...     for i in range(n):
...         z[i] = x[i] * y[i]
...     total = 0.0
...     for i in range(n):
...         total += exp(z[i])
...     return (total,)
... ''', [None] * 9, {"x": ("float64", 1), "y": ("float64", 1)})[0])
def f(x, y):
    n = x.shape[0]
    total = 0.0
    for i in range(n):
        z = x[i] * y[i]
        total += exp(z)
    return (total,)
<BLANKLINE>

Source: K. Kennedy, K. McKinley, Typed Fusion with Applications to Parallel and Sequential Code Generation, 1993; array
contraction after J. Warren, A Hierarchical Basis for Reordering Transformations, 1984.
"""
import ast

from gradscribe.codegen.ascending import left, upward
from gradscribe.codegen.bounds import Bounds
from gradscribe.codegen.buffers import Buffers
from gradscribe.codegen.elementary import in_loops
from gradscribe.codegen.heirs import Heirs
from gradscribe.codegen.invariants import Invariants
from gradscribe.codegen.lanes import Lanes
from gradscribe.codegen.reach import CHECKS, ELEMENTARY, Asked, Reach, reads_only
from gradscribe.codegen.recompute import Recompute
from gradscribe.codegen.rows import Rows
from gradscribe.codegen.small import Small
from gradscribe.codegen.texts import (
    KEPT,
    added_in_full,
    castable,
    depth,
    dtype_of,
    in_order,
    is_counted,
    is_double,
    is_fill,
    is_single,
    parents_of,
    parts_of,
    place_in,
    replace,
    shape_of,
    typed,
    walk,
)
from gradscribe.codegen.threads import spread
from gradscribe.codegen.versions import is_made, named_apart
from gradscribe.codegen.webs import webs_apart

ARRAYS = 16                             # so many that LLVM still tells them apart when it starts
LONGEST = 1000                            # statements of a loop's body
FAR = 60                                # statements that a loop passes


def fused(text, origins, arrays=None, threads=None, how=None):
    """The text with its loops joined; origins: the user's place of each line, kept in step.

    arrays: the dtype's name and the rank of each parameter.  threads: whether loops are spread over cores, and then
    whether those are that sum numbers; None: they are not.  how: what joins them.
    """
    tree = ast.parse(text)
    function = tree.body[0]
    for node in walk(function):
        node.origin = origins[node.lineno - 1] if getattr(node, "lineno", 0) else None
    webs_apart(function)
    Bounds(function).run()
    (how or Fusion)(function, arrays or {}, threads).run()
    lines = []
    printed(function.body, 1, lines)
    head = text.splitlines()[0]
    return "\n".join([head, *(line for line, _ in lines)]) + "\n", [origins[0], *(origin for _, origin in lines)]


def printed(body, level, lines):
    """The lines of a block, each with its origin."""
    for node in body:
        if not isinstance(node, (ast.For, ast.While, ast.If)):
            lines += [("    " * level + line, getattr(node, "origin", None)) for line in ast.unparse(node).splitlines()]
            continue
        if isinstance(node, ast.For):
            head = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}:"
        else:
            head = f"{'if' if isinstance(node, ast.If) else 'while'} {ast.unparse(node.test)}:"
        lines.append(("    " * level + head, node.origin))
        printed(node.body, level + 1, lines)
        if node.orelse:
            lines.append(("    " * level + "else:", node.origin))
            printed(node.orelse, level + 1, lines)


class Fusion(Rows):
    def __init__(self, function, arrays, threads=None):
        self.function, self.arrays, self.threads = function, arrays, threads
        self.touched, self.manners = {}, {}     # of each loop, as far as it has been joined
        self.doubles = {n for n, (dtype, _) in arrays.items() if dtype == "float64"}

    def run(self):
        named_apart(self.function)
        self.rows()
        Small(self.function, self.doubles).run()
        self.find_own()
        self.fill_in_place()
        upward(self.function, self.own)
        self.function.body = self.block(self.function.body)
        if Recompute(self.function, self.own, self.doubles).run():
            self.find_own()
            self.touched, self.manners = {}, {}
            self.function.body = self.block(self.function.body)
        self.contract()
        self.find_own()
        if self.threads is None:
            Lanes(self.function, self.own, self.arrays).run()
        Invariants(self.function, self.own, self.doubles, self.singles()).run()
        in_loops(self.function, self.doubles, self.singles())
        if self.threads is not None:
            spread(self.function, self.own, self.threads)
        Heirs(self.function, self.arrays).run()
        Buffers(self.function, self.arrays).run()

    # names


    def find_own(self):
        """Arrays that this function makes, once in its text, and that are known by one name only."""
        made, other, self.again = {}, set(), set()
        for node in walk(self.function):
            if is_made(node):
                name = node.targets[0].id
                if name in made:
                    other.add(name)
                    self.again.add(name)
                made[name] = node
            elif isinstance(node, ast.Assign):
                other |= {t.id for t in node.targets if isinstance(t, ast.Name)}
                other |= {n.id for t in node.targets if isinstance(t, ast.Tuple) for n in walk(t)
                          if isinstance(n, ast.Name)}
            elif isinstance(node, ast.For):
                other |= {n.id for n in walk(node.target) if isinstance(n, ast.Name)}
        parents = parents_of(self.function)
        self.entered = {}               # {array: the places where an entry of it is set}
        for n in walk(self.function):
            if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name):
                self.entered.setdefault(n.value.id, []).append(n)
        # what is read otherwise than by entry, in products and results, may be written by other names
        self.views = {n.id for n in walk(self.function)
                      if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and not harmless(n, parents)}
        self.made, self.uses = made, dict.fromkeys(made, 0)
        for node in walk(self.function):
            if isinstance(node, ast.Name) and node.id in made and isinstance(node.ctx, ast.Load):
                self.uses[node.id] += 1
                if not self.plain_use(node, parents):
                    other.add(node.id)
        self.own = made.keys() - other
        self.doubles |= {n for n in self.own if dtype_of(made[n]) == "float64"}
        values = self.values()
        for _ in range(3):
            self.doubles |= {n for n, found in values.items() if all(is_double(v, self.doubles) for v in found)}

    def values(self):
        """{name: the values that it is set to}"""
        values = {}
        for node in walk(self.function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                values.setdefault(node.targets[0].id, []).append(node.value)
        return values

    def singles(self):
        """Names of numbers and arrays in single precision."""
        found = {n for n, (dtype, _) in self.arrays.items() if dtype == "float32"}
        found |= {n for n in self.own if dtype_of(self.made[n]) in ("float32", "float16")}
        values = {n: v for n, v in self.values().items() if n not in self.arrays}
        while True:
            more = {n for n, v in values.items() if n not in found and all(is_single(x, found) for x in v)}
            if not more:
                return found
            found |= more

    def plain_use(self, node, parents):
        """A use that gives the array no second name: an entry, a length, an operand of a product, a result."""
        parent = parents[node]
        if isinstance(parent, ast.Subscript) and parent.value is node:
            parts = parts_of(parent)
            rank = len(shape_of(self.made[node.id]))
            return len(parts) == rank and not any(isinstance(p, ast.Slice) for p in parts)
        if isinstance(parent, ast.Attribute) and parent.attr == "T":
            node, parent = parent, parents[parent]
        elif isinstance(parent, ast.Attribute):
            return parent.attr in ("shape", "size")
        if isinstance(parent, ast.Tuple):
            return isinstance(parents[parent], ast.Return) or reads_only(parents[parent])
        if isinstance(parent, ast.Call):
            return reads_only(parent)
        return isinstance(parent, ast.Assign) and (isinstance(parent.targets[0], ast.Subscript) or isinstance(
            node, ast.Name) and self.handed_on(parent, node.id, parents))

    def handed_on(self, alias, name, parents):
        """other = name, after all that is written to the array, and nothing is ever written by the other name."""
        block, other = getattr(parents[alias], "body", ()), alias.targets[0]
        if alias not in block or self.made[name] not in block or not isinstance(other, ast.Name):
            return False
        at = block.index(alias)
        return block.index(self.made[name]) < at and other.id not in self.entered and other.id not in self.views and \
            not any(place_in(block, n, parents) >= at for n in self.entered.get(name, ()))

    # fusion

    def block(self, body):
        """A block with its loops joined, those inside as well."""
        loops = {s: s.body for s in body if is_counted(s)}
        for hoped in (self.used_alike(body), set()):
            self.hoped = hoped
            for s, inner in loops.items():
                s.body = list(inner)
            out = self.gathered(body)
            if not any(len(s.body) > len(loops[s]) and self.crowded(self.reach(s, "body")) for s in out if s in loops):
                break
            self.touched, self.manners = {}, {}
        for s in out:
            for field in ("body", "orelse"):
                inner = getattr(s, field, None)
                if inner and isinstance(s, (ast.For, ast.While, ast.If)):
                    setattr(s, field, self.block(inner))
        return out

    def gathered(self, body):
        out = []
        for s in body:
            if not (is_counted(s) and self.joined(s, out)):
                out.append(s)
        return out

    def used_alike(self, body):
        """Arrays that a block's loops with one and the same head use alone: they vanish if those become one loop."""
        heads = {}
        for s in body:
            if is_counted(s):
                head = f"{s.target.id} in {ast.unparse(s.iter)}"
                for name, times in self.reach(s, "body").counts.items():
                    found = heads.setdefault(name, {})
                    found[head] = found.get(head, 0) + times
        return {n for n, found in heads.items() if len(found) == 1 and n in self.own and
                self.made[n].value.func.attr == "empty" and self.uses[n] == sum(found.values())}

    def crowded(self, *bodies, hoped=frozenset()):
        """Whether so many arrays stay that LLVM does not tell them apart."""
        names = set().union(*(where.keys() - hoped for body in bodies for where in (body.reads, body.writes)))
        return len(names) > ARRAYS and sum(not self.vanishes(n, *bodies) for n in names) > ARRAYS

    def joined(self, loop, out):
        """Whether a loop went into an earlier one; what it waits for, allocations and numbers, goes before that."""
        reach, along = self.reach(loop), []
        for k in reversed(range(max(0, len(out) - FAR), len(out))):
            earlier, moving = out[k], [reach, *map(self.reach, along)]
            other = self.reach(earlier)
            if not other.known or not reach.known:
                return False
            if self.absorbed(earlier, loop, out[k + 1:]):
                out.remove(earlier)
                reach = self.reach(loop)
                continue
            if is_counted(earlier) and self.may_join(earlier, loop) and all(self.apart(m, other) for m in moving[1:]):
                other.and_then(reach)
                self.reach(earlier, "body").and_then(self.reach(loop, "body"))
                self.manners[earlier] = joined(self.manner(earlier), self.manner(loop))
                earlier.body += loop.body
                for s in along:
                    out.remove(s)
                out[k:k] = along
                return True
            check = is_check(earlier)           # goes before what it is for
            if check or not all(self.apart(m, other) for m in moving):
                if not (check or isinstance(earlier, ast.Assign) or is_fill(earlier)):
                    return False
                along.insert(0, earlier)
        return False

    def apart(self, a, b):
        """Two statements may change places; arrays that are not our own may be one."""
        if (a.writes.keys() | b.writes.keys()) - self.own and (a.foreign(self.own) and b.foreign(self.own)):
            return False
        return not (a.written & (b.read | b.written)) and not (b.written & a.read)

    def reach(self, node, part=None):
        """What a statement touches, or a loop's body; kept until the loop is joined by another."""
        key = node if part is None else (node, part)
        if key not in self.touched:
            asks = isinstance(node, ast.Assign) and reads_only(node.value)
            self.touched[key] = Asked(node) if asks else Reach(node) if part is None else Reach(*getattr(node, part))
        return self.touched[key]

    def manner(self, loop):
        if loop not in self.manners:
            self.manners[loop] = manner(loop)
        return self.manners[loop]

    def absorbed(self, fill, loop, between):
        """Whether a loop that fills an array went down into one that adds to it; it counts by that one's name then."""
        if not is_counted(fill) or not is_fill(fill) or ast.unparse(fill.iter) != ast.unparse(loop.iter):
            return False
        old, new, reach = fill.target.id, loop.target.id, self.reach(fill)
        waits = reach.writes.keys() | reach.names
        if not reach.known or not all(self.reach(s).known and not waits & self.reach(s).written and
                                      not reach.writes.keys() & self.reach(s).read for s in between):
            return False
        if old != new:
            if new in reach.read | reach.written or left(self.function, fill, {old}):
                return False
            for n in walk(fill):
                if isinstance(n, ast.Name) and n.id == old:
                    n.id = new
        keys = fill, (fill, "body"), loop, (loop, "body")
        for key in keys:
            self.touched.pop(key, None)
        if not self.may_join(fill, loop):
            return False
        loop.body = fill.body + loop.body
        for key in keys:
            self.touched.pop(key, None)
        self.manners.pop(loop, None)
        return True

    def may_join(self, first, second):
        if ast.unparse(first.iter) != ast.unparse(second.iter) or first.target.id != second.target.id:
            return False
        if len(first.body) + len(second.body) > LONGEST:
            return False
        a, b = self.reach(first, "body"), self.reach(second, "body")
        if not (a.known and b.known) or a.whole or b.whole or not alike(
                self.manner(first), self.manner(second)):
            return False
        index, sets = first.target.id, a.sets | b.sets
        arrays = a.reads.keys() | a.writes.keys() | b.reads.keys() | b.writes.keys()
        if not (a.writes.keys() | b.writes.keys()) <= self.own or self.crowded(a, b, hoped=self.hoped):
            return False
        counts = {n.id for n in walk(first.iter) if isinstance(n, ast.Name)}
        if sets & (counts | arrays | {index}) or a.sets & b.names or b.sets & a.names or arrays & (a.names | b.names):
            return False
        for name in a.writes.keys() & (b.reads.keys() | b.writes.keys()) | b.writes.keys() & a.reads.keys():
            found = [i for where in (a.reads, a.writes, b.reads, b.writes) for i in where.get(name, ())]
            if not any(all(i[k] == index for i in found) for k in range(len(found[0]))):
                return False
        return True

    def vanishes(self, name, *bodies):
        """Whether an array is made and used for these loops only."""
        return name in self.own and self.made[name].value.func.attr == "empty" and \
            self.uses[name] == sum(body.counts.get(name, 0) for body in bodies)

    # contraction

    def contract(self):
        """Arrays made empty lose the axes at which they are always reached at the current index."""
        parents = parents_of(self.function)
        entries, others = {}, set()
        for node in in_order(self.function):
            if isinstance(node, ast.Name) and node.id in self.own:
                parent = parents[node]
                if isinstance(parent, ast.Subscript) and parent.value is node:
                    entries.setdefault(node.id, []).append(parent)
                elif not is_made(parent):
                    others.add(node.id)
        for name in sorted(self.own):
            made = self.made[name]
            if name in others or name not in entries or made.value.func.attr != "empty" or not castable(made):
                continue
            first = entries[name][0]                    # a read would find what was in memory
            if not isinstance(first.ctx, ast.Store) or isinstance(parents[first], ast.AugAssign):
                continue
            lost, around = [], set()
            for axis in range(len(shape_of(made))):
                loops = {self.loop_of(e, axis, parents) for e in entries[name]}
                if len(loops) == 1 and None not in loops:
                    lost.append(axis)
                    around |= loops
            while around and not set_in_its_pass(made, first, entries[name], around, parents):
                inner = max((n for n in around if n != "first"), key=lambda n: depth(n, parents))
                around.remove(inner)                    # its axis stays
                lost = [k for k in lost if self.loop_of(first, k, parents) is not inner]
            if lost and stored_always(first, name, around, parents):
                self.shrink(name, made, entries[name], lost, parents)

    def loop_of(self, entry, axis, parents):
        """The loop whose index stands at an axis of an entry; the length's constant for an axis of one."""
        part = parts_of(entry)[axis]
        if isinstance(part, ast.Constant) and part.value == 0:
            return "first" if ast.unparse(shape_of(self.made[entry.value.id])[axis]) == "1" else None
        if not isinstance(part, ast.Name):
            return None
        node = entry
        while node in parents:
            node = parents[node]
            if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id == part.id:
                return node if is_counted(node) else None
        return None

    def shrink(self, name, made, entries, lost, parents):
        shape = shape_of(made)
        kept = [k for k in range(len(shape)) if k not in lost]
        for entry in entries:
            parts = parts_of(entry)
            if kept:
                left = [parts[k] for k in kept]
                entry.slice = left[0] if len(left) == 1 else ast.Tuple(left, ast.Load())
                continue
            number = ast.Name(name, entry.ctx)
            replace(parents[entry], entry, number)
            parents[number] = parents[entry]
            if isinstance(entry.ctx, ast.Store) and isinstance(parents[entry], ast.AugAssign) and dtype_of(
                    made) not in KEPT:
                added = parents[entry]
                whole, both = added_in_full(added, number, dtype_of(made), self.doubles)
                parents[added.value] = both
                parents |= {number: whole, both: whole.value, both.left: both, whole.value: whole}
                replace(parents[added], added, whole)
                parents[whole] = parents[added]
            elif isinstance(entry.ctx, ast.Store) and isinstance(parents[entry], ast.Assign):
                store = parents[entry]
                value = typed(store.value, dtype_of(made), self.doubles)
                if value is not store.value:
                    parents[value], parents[store.value] = store, value
                    store.value = value
        if kept:
            made.value.args[0] = ast.Tuple([shape[k] for k in kept], ast.Load())
        else:
            self.drop(made, parents)

    def drop(self, node, parents):
        holder = parents[node]
        for field in ("body", "orelse"):
            block = getattr(holder, field, None)
            if isinstance(block, list) and node in block:
                block.remove(node)
                if not block and field == "body":
                    block.append(ast.Pass())


def is_check(s):
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Name) and \
        s.value.func.id in CHECKS


# --- statements -------------------------------------------------------------------------------------------------------

def harmless(node, parents):
    """A use of an array by which nothing is written: an entry, a length, a product, a result, an operand of NumPy's."""
    parent = parents[node]
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return not any(isinstance(p, (ast.Slice, ast.Starred)) for p in parts_of(parent))
    if isinstance(parent, ast.Attribute):
        return parent.attr in ("shape", "size") or parent.attr == "T" and isinstance(parents[parent], ast.Call)
    if isinstance(parent, ast.Call):
        return reads_only(parent)
    return isinstance(parent, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.IfExp)) or isinstance(parent, ast.Tuple) and (
        isinstance(parents[parent], ast.Return) or reads_only(parents[parent]))


def alike(first, second):
    """Whether two loops gain by being one, by their manners.

    LLVM vectorises the innermost loops of which none gathers by an index that is looked up or makes a number of itself;
    one that it does not vectorise holds up the other.  An elementary function in a loop of its own is vectorised,
    around another loop it is not.
    """
    (plain, deep, dear), (plain_2, deep_2, dear_2) = first, second
    return plain == plain_2 and (deep == deep_2 or not (dear_2 if deep else dear))


def added(name, value):
    """What a value adds to the number of this name; the value itself if it does something else."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
        if isinstance(value.left, ast.Name) and value.left.id == name:
            return value.right
        if isinstance(value.op, ast.Add) and isinstance(value.right, ast.Name) and value.right.id == name:
            return value.left
    return value


def joined(first, second):
    """The manner of a loop of two."""
    return first[0] and second[0], first[1] or second[1], first[2] or second[2]


def manner(loop):
    """(vectorised, has loops inside, calls elementary functions)."""
    plain, deep, dear = True, False, False
    for node in walk(loop):
        if isinstance(node, ast.For) and node is not loop:
            deep = True
        elif isinstance(node, ast.Subscript):
            plain = plain and not any(isinstance(n, ast.Subscript) for n in walk(node.slice))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            read = walk(added(name, node.value))
            plain = plain and not any(isinstance(n, ast.Name) and n.id == name for n in read)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            dear = dear or node.func.id in ELEMENTARY
    return plain, deep, dear


def set_in_its_pass(made, first, entries, loops, parents):
    """Whether no entry of an array outlives the pass of the loops at whose indices it is always reached.

    It is reached in one pass only where nothing repeats these loops after the array is made; else it must be set in
    each pass before it is read there.
    """
    own = {n for n in loops if n != "first"}
    if not own:
        return True
    inner, holder = max(own, key=lambda n: depth(n, parents)), parents[made]
    node, again = inner, False
    while node is not holder:
        node = parents[node]
        if node is not holder:
            again = again or isinstance(node, ast.For | ast.While) and node not in own
    lengths = [ast.unparse(n) for n in shape_of(made)]
    return not again or set_first(inner.body, first.value.id, lengths, entries, {loop.target.id for loop in own}, {})


def set_first(block, name, lengths, entries, indices, whole):
    """Whether statements set every entry of an array that a pass reaches, before they read one.

    lengths: of its axes; indices: those of the pass; whole: those that go over all of an axis, and its length
    """
    def reads_it(node):
        return any(isinstance(n, ast.Name) and n.id == name for n in walk(node))

    for s in block:
        if not reads_it(s):
            continue
        if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Subscript) and \
                not reads_it(s.value):
            parts = [ast.unparse(p) for p in parts_of(s.targets[0])]
            kept = [(p, n) for p, n in zip(parts, lengths) if p not in indices and (p, n) != ("0", "1")]
            return len({p for p, _ in kept}) == len(kept) and all(whole.get(p) == n for p, n in kept)
        if isinstance(s, ast.If) and not reads_it(s.test):
            return set_first(s.body, name, lengths, entries, indices, whole) and set_first(
                s.orelse, name, lengths, entries, indices, whole)
        if is_counted(s):
            here = {ast.unparse(e.slice) for e in entries if any(e is n for n in walk(s))}
            return len(here) == 1 and set_first(s.body, name, lengths, entries, indices, {
                **whole, s.target.id: ast.unparse(s.iter.args[0])})
        return False
    return False


def stored_always(store, name, loops, parents):
    """Whether each pass of the loops around fills an array before it reads it, so that no entry outlives its pass."""
    kept = {p.id for p in parts_of(store) if isinstance(p, ast.Name)}
    node = parents[store]
    while node in parents and node not in loops:
        above = parents[node]
        if isinstance(above, ast.If):
            if not (stores(above.body, name, kept) and stores(above.orelse, name, kept)):
                return False
        elif isinstance(above, ast.While | ast.IfExp) or isinstance(above, ast.For) and above not in loops and not (
                isinstance(above.target, ast.Name) and above.target.id in kept):
            return False
        node = above
    return True


def stores(block, name, kept):
    """Whether statements fill an array on every path; kept: the indices of loops that fill an axis that is kept."""
    return any(
        isinstance(s, ast.Assign) and any(isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name) and
                                          t.value.id == name for t in s.targets)
        or isinstance(s, ast.If) and stores(s.body, name, kept) and stores(s.orelse, name, kept)
        or isinstance(s, ast.For) and isinstance(s.target, ast.Name) and s.target.id in kept and stores(
            s.body, name, kept) for s in block)
