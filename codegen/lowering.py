# SPDX-License-Identifier: Apache-2.0
"""Lowers a function from the normal form to the loop form: assignments, writes, lists, effects and the result."""
import ast
import builtins
import copy
from collections.abc import Iterable, Iterator
from typing import Any

import gast

from gradscribe.ast_transform.core.alias import holds_memory
from gradscribe.ast_transform.core.draw import Draw
from gradscribe.ast_transform.core.form import Apply, Const, Let, Pack, Var, is_application, operands, walk
from gradscribe.ast_transform.core.kinds import Array, Stack
from gradscribe.ast_transform.core.operations import (
    Quoted,
    add_at,
    is_report,
    no_elements,
    nonempty,
    pop,
    pop_front,
    push,
    push_front,
    put,
    put_add,
)
from gradscribe.ast_transform.passes.results import Sources
from gradscribe.ast_transform.reader.named_axes import WRITTEN
from gradscribe.ast_transform.source.diagnose import RuleError
from gradscribe.codegen import (  # noqa: F401  (they fill the table of forms)
    arranging_forms,
    array_forms,
    index_forms,
    join_forms,
    linalg_forms,
    line_forms,
    numeric_forms,
    other_forms,
    product_forms,
    shape_forms,
)
from gradscribe.codegen.assignments import assign
from gradscribe.codegen.collectives import collective_statement
from gradscribe.codegen.draw_forms import draw_statement
from gradscribe.codegen.index_forms import write
from gradscribe.codegen.loop_forms import STEPS, empty_list, lower_block
from gradscribe.codegen.loops import form as loops
from gradscribe.codegen.loops.build import joined, let, node, quoted
from gradscribe.codegen.loops.form import change, rebuilt
from gradscribe.codegen.loops.trees import statement_of
from gradscribe.codegen.lowered import LAZY, Lazy, Lowering, Program, lazily, shifted
from gradscribe.codegen.phi_types import is_view
from gradscribe.codegen.reporting import report_statement, reports

LAZY.wait_for("scipy.linalg", "gradscribe.codegen.solver_forms")


def lower(function: Any, naming: Any, taken: Iterable[str], for_threads: bool = False) -> Lowering:
    """The lowering of a function that phi_types.settle has prepared; `taken`: names that are in use."""
    lowering = Lowering(naming, taken, for_threads, Program(function))
    lowering.program.pushed = {naming[s.targets[0]] for s in walk(function.body) if isinstance(s, Let) and (
        is_application(s.value, push) or is_application(s.value, push_front))}
    lowering.program.tells = reports(function.body)
    parameters(lowering)
    lower_block(lowering, function.body)
    finish(lowering)
    lowering.body[:0] = lowering.known.first.values()
    return lowering


def parameters(lowering):
    """Names the lengths of parameters; adds checks of those that the function assumes to be equal."""
    seen, tests = lowering.program.named_lengths, []
    for p in lowering.program.inputs:
        fact = p.value.fact
        if not isinstance(fact, Array):
            continue
        lengths = [(loops.Length(p.name, k), d) for k, d in enumerate(fact.dims)]
        if not fact.dims and fact.length is not None:
            lengths = [(node(p.name), fact.length)]
        keys, extents = [], []
        for length, d in lengths:
            n, name = d.normal(), None
            if n.symbol is None:
                keys.append((None, n.offset))
                if fact.dims and n.offset != 1:
                    tests.append(quoted("{} != {}", length, n.offset))
            elif n.symbol in seen:
                keys.append(shifted((n.symbol, 0), n.offset))
                other, offset = seen[n.symbol]
                gap = n.offset - offset
                least = quoted("{} {} {}", other, "+" if gap > 0 else "-", abs(gap)) if gap else other
                tests.append(quoted("{} != {}", length, least))
                name = other if not gap else None
            else:
                keys.append(shifted((n.symbol, 0), n.offset))
                name = length if not fact.dims else node(lowering.fresh("n"))
                seen[n.symbol] = (name, n.offset)
                if fact.dims:
                    lowering.known.locals.add(name.id)
                    lowering.known.first[name.id] = let(name, length)
            extents.append(name)
        if fact.dims:
            lowering.known.keys[p.value] = keys
            lowering.known.extents[p.value] = [e and lowering.stable(e) for e in extents]
        elif keys and keys[0][0] is not None:
            lowering.known.counts[p.value] = keys[0]
    if tests:
        lowering.raises("operands could not be broadcast together: lengths of arguments differ", "{}",
                    joined("or", tests))


def finish(lowering):
    """Returns the result: a flat tuple of its leaves without literals."""
    values = []
    shown = {p.value for p in lowering.program.inputs}
    for leaf in leaves(lowering.program.function.result):
        if isinstance(leaf, Const):
            lowering.program.results.append(("literal", leaf.value))
            continue
        fact = lowering.fact(leaf)
        made = getattr(lowering.program.maker.get(leaf), "origin", None)
        lowering.origin = getattr(leaf, "origin", None) or made or lowering.origin
        if not isinstance(fact, Array):
            lowering.refuse("a result that is no number and no array has no Numba form")
        if not fact.dims:
            values.append(lowering.scalar(leaf, fact.dtype))
            lowering.program.results.append(("scalar", fact.dtype))
            continue
        lazy = lowering.lazy(leaf)
        lazy = lowering.array(lazy, fact.dtype)
        base = leaf if isinstance(leaf, Var) else None
        fresh = base is None or base not in shown
        values.append(lazy.name if fresh else quoted("{}.copy()", lazy.name))
        lowering.program.results.append(("array", fact.dtype))
    lowering.add(loops.Return(node(values)))


def _let(lowering, step):
    lowering.program.start = len(lowering.body)
    if step.origin is not None and step.origin.raised():
        lowering.refuse("np.errstate that raises an error has no Numba form")
    value = step.value
    function = value.function if isinstance(value, Apply) else None
    try:
        special = STATEMENTS.get(function)
    except TypeError:
        special = None
    if special is not None:
        return special(lowering, step)
    if isinstance(function, Draw):
        return draw_statement(lowering, step)
    if len(step.targets) > 1:
        made = lowering.forms(value)
        if not isinstance(made, list) or len(made) != len(step.targets):
            lowering.no_form(function)
        ready = [m if m.literal is not None or m.name and not m.view else lowering.array(m, t.fact.dtype) if m.rank else
                 lowering.alone(m) for m, t in zip(made, step.targets)]
        for t, m in zip(step.targets, ready):
            assign(lowering, t, m, False)
        return
    target = step.targets[0]
    if target not in lowering.naming.names:
        return
    if isinstance(value, Pack) and value.kind in ("tuple", "list", "dict", "record") and not isinstance(
            target.fact, Array):
        lowering.refuse("a container that is kept has no Numba form")
    if isinstance(target.fact, Stack):
        given = lowering.naming[value] if isinstance(value, Var) else lowering.no_form(function)
        lowering.set(lowering.naming[target], given)
        return
    if not isinstance(target.fact, Array):
        lowering.refuse(f"{target.hint}, which is no array and is not known when compiling, has no Numba form")
    if function is not None and not target.fact.dims:
        key = lowering.length_key(value) if target.fact.length is not None else None
        if key is not None and key[0] is not None:
            lowering.known.counts[target] = key
    reads = {lowering.naming[v] for v in operands(value) if v in lowering.naming.names}
    lazy = lowering.lazy(value)
    view = isinstance(value, Var) or function is not None and is_view(value) and lazy.name
    if getattr(lazy.name, "id", None) in reads and not view:  # a new array, not an alias
        lazy = Lazy(lazy.dims, lazy.dtype, lazy.read, 1)
    assign(lowering, target, lazy, lowering.naming[target] in reads, bool(view))


def base_of(lowering, step):
    base, target = step.value.args[0], step.targets[0]
    name, fact = lowering.naming[target], target.fact
    if isinstance(fact, Stack):
        if id(step) in lowering.naming.copies:
            lowering.say("{} = {}.copy()", name, lowering.naming[base])
        return name
    if id(step) in lowering.naming.copies or not isinstance(base, Var):
        source = lowering.lazy(base)
        lowering.keep(target, source.dims)
        if isinstance(base, Var) and lowering.naming[base] == name:
            made = lowering.array(Lazy(source.dims, source.dtype, source.read, 1), fact.dtype)
            lowering.set(name, made.name)
        else:
            lowering.array(Lazy(source.dims, source.dtype, source.read, 1, literal=source.literal), fact.dtype, name)
        return name
    lowering.known.keys[target] = lowering.known.keys.get(base) or [(base, k) for k in range(fact.rank)]
    lowering.known.extents[target] = lowering.known.extents.get(base)
    if base in lowering.views:
        lowering.views[target] = lowering.views[base]
    return name


def _put(lowering, step):
    _, index, value = step.value.args
    shared, value = may_alias(lowering, value, step.value.args[0]), lowering.lazy(value)
    clash = lowering.naming[step.targets[0]]
    apart = not shared and isinstance(step.value.args[0], Var) and id(step) not in lowering.naming.copies
    plain = value.name and not value.cost and not value.view and value.name != node(clash)
    if value.rank and not apart and (shared or not plain):
        value = lowering.array(Lazy(value.dims, value.dtype, value.read, 1))
    base_of(lowering, step)
    how = {put: "set", put_add: "add", add_at: "at"}[step.value.function]
    write(lowering, lowering.lazy_var(step.targets[0]), index, value, how, shared, apart)


def may_alias(lowering, value, base):
    """Whether an expression may alias the array that is written."""
    read = [v for v in operands(value) if holds_memory(v)]
    if not read or not isinstance(base, Var):
        return False
    lowering.program.sources = lowering.program.sources or Sources(lowering.program.function)
    return any(not lowering.program.sources.of(base).isdisjoint(lowering.program.sources.of(v)) for v in read)


def stored(lowering, step):
    element = step.targets[0].fact.element
    if isinstance(element, Stack) and isinstance(step.value.args[1], Var):
        return lowering.naming[step.value.args[1]]          # a new list in each pass
    if not isinstance(element, Array):
        lowering.refuse("a list of containers has no Numba form")
    value = lowering.lazy(step.value.args[1])
    if not element.dims:
        return value.cast([], element.dtype)
    if value.name and not value.view:       # arrays in a list are not written any more (coalesce)
        return lowering.array(value, element.dtype).name
    return lowering.array(Lazy(value.dims, value.dtype, value.read, 1), element.dtype).name


def _push(lowering, step):
    value = stored(lowering, step)
    lowering.say("{}.append({})" if step.value.function is push else "{}.insert(0, {})", base_of(lowering, step), value)


def _pop(lowering, step):
    name, target = base_of(lowering, step), step.targets[1]
    value = quoted("{}.pop({*})", name, [] if step.value.function is pop else [0])
    if target in lowering.naming.names:
        lowering.set(lowering.naming[target], value)
    else:
        lowering.add(loops.Do(value))
    if target in lowering.naming.names and isinstance(target.fact, Array) and target.fact.dims:
        lowering.known.keys.pop(target, None)


def _no_elements(lowering, step):
    target = step.targets[0]
    name = lowering.naming[target]
    lowering.set(name, loops.ListOf(()) if name in lowering.program.pushed else empty_list(lowering, target.fact))


def _effect(lowering, step):
    quote = step.value.function
    if not isinstance(quote, Quoted):
        lowering.no_form(quote)
    tree = quote.tree
    if is_report(step.value) and not lowering.for_threads:
        report_statement(lowering, quote, step.value.args, step.origin)
        return
    if isinstance(tree, gast.Raise) and not _is_plain(tree, quote.lookup):
        raise_unsaid(lowering, quote, tree, step)
        return
    if is_report(step.value) and not (isinstance(tree.func, gast.Name) and tree.func.id == "print"):
        called = ast.unparse(gast.gast_to_ast(tree.func))
        raise RuleError(f"{called} has no form on a device: of reports, code for a device has print", step.origin,
                        f"Print it, or return what it tells and call {called} outside.")
    unsaid = isinstance(tree, gast.Assert) and tree.msg is not None and not isinstance(tree.msg, gast.Constant)
    wanted = dict(zip(quote.names, step.value.args))

    def known(e):
        if isinstance(e, loops.Name) and e.id in wanted:
            return quoted_value(lowering, wanted[e.id])
        return rebuilt(e, known)

    made = gast.gast_to_ast(copy.deepcopy(tree.test if unsaid else tree))
    made = statement_of(ast.Expr(made) if isinstance(made, ast.expr) else made)
    change(made, known)
    if not unsaid:
        lowering.add(made)
        return
    with lowering.inside("if not {}:", made.value):
        failed = gast.Call(gast.Name("AssertionError", gast.Load(), None, None), [tree.msg], [])
        raise_unsaid(lowering, quote, gast.copy_location(gast.Raise(failed, None), tree), step)


def quoted_value(lowering, operand):
    """An operand of a quoted statement."""
    fact = lowering.fact(operand)
    if isinstance(fact, Array):
        return lowering.array(operand).name if fact.dims else lowering.scalar(operand)
    if not isinstance(operand, Const):
        lowering.refuse("this statement has no Numba form")
    return literal_of(operand.value)


def raise_unsaid(lowering, quote, tree, step):
    """Raises Unsaid for an exception that compiled code cannot make, so that the plain function runs; if reports
    have been printed already, the process raises the exception itself.
    """
    if lowering.program.tells and not lowering.for_threads:
        report_statement(lowering, Quoted(tree, quote.names, quote.lookup), step.value.args, step.origin)
    lowering.say("raise Unsaid()")


def literal_of(value):
    """A constant, which may be a text or a container, in the loop form."""
    if isinstance(value, (tuple, list)):
        return (loops.Items if isinstance(value, tuple) else loops.ListOf)(tuple(map(literal_of, value)))
    return node(value) if isinstance(value, (int, float, complex)) else loops.Const(value)


def _is_plain(tree, lookup):
    """Whether a raise is of a builtin exception with literal arguments, the only kind that Numba supports."""
    made = tree.exc.func if isinstance(tree.exc, gast.Call) else tree.exc
    given = [*tree.exc.args, *tree.exc.keywords] if isinstance(tree.exc, gast.Call) else []
    return tree.cause is None and isinstance(made, gast.Name) and all(isinstance(a, gast.Constant) for a in given) \
        and lookup(made.id) is getattr(builtins, made.id, None)


def leaves(node: Any) -> Iterator[Any]:
    """The leaves of a result, in order."""
    if isinstance(node, Pack):
        for i in node.items:
            yield from leaves(i)
    else:
        yield node


@lazily(nonempty)
def _nonempty(lowering, node):
    name = lowering.naming[node.args[0]]
    return Lazy([], bool, quoted("len({}) > 0", name), 0)


STATEMENTS = {**dict.fromkeys(WRITTEN, collective_statement),
              put: _put, put_add: _put, add_at: _put, push: _push,
               push_front: _push, pop: _pop, pop_front: _pop,
               no_elements: _no_elements}

STEPS.update(Let=_let, Effect=_effect)
