# SPDX-License-Identifier: Apache-2.0
"""A function's tree to normal form, for arguments of known kind.

The tree is read once, in the order of execution, with what is certain of each value at hand: methods and attributes
become the functions they mean, tests that are known choose their branch, containers of known structure are taken
apart, calls are followed.  What is not known becomes a statement of the normal form.

>>> from gradscribe.ast_transform.examples import form, show
>>> text = "def f(x):\\n    y = x.sum(axis=0)\\n    return [v * 2 for v in (y, 3)][-1] + len(y)"
>>> print(show(form(text, np.ones((2, 3)))))
f(x):
    y = np.sum(x, axis=0)
    z = y * 2
    n_0 = shape_of(y, 0)
    t = 6 + n_0
    return t
"""
import operator
import weakref
from contextlib import contextmanager
from dataclasses import replace

import gast
import numpy as np

from gradscribe.ast_transform.core.alias import holds_memory
from gradscribe.ast_transform.core.draw import STREAMS
from gradscribe.ast_transform.core.form import USER, Apply, Const, Pack, Param, Slice, Undefined, Var
from gradscribe.ast_transform.core.kinds import Array, Length, Opaque, Sequence
from gradscribe.ast_transform.core.operations import both, either
from gradscribe.ast_transform.passes.activity import is_foreign, rule_of
from gradscribe.ast_transform.passes.anf import Builder
from gradscribe.ast_transform.passes.applied import Applied
from gradscribe.ast_transform.passes.assignments import BINARY, Assignments
from gradscribe.ast_transform.passes.calls import WRITTEN_OUT, Calls
from gradscribe.ast_transform.passes.carries import Carries
from gradscribe.ast_transform.passes.collectives import Collectives
from gradscribe.ast_transform.passes.contexts import Contexts
from gradscribe.ast_transform.passes.data import Data, is_place
from gradscribe.ast_transform.passes.derive import Derive
from gradscribe.ast_transform.passes.described import fact_of, is_array, no_array
from gradscribe.ast_transform.passes.desugar import desugar, said
from gradscribe.ast_transform.passes.draws import Draws
from gradscribe.ast_transform.passes.dynamic_lists import Growing
from gradscribe.ast_transform.passes.edits import Edits
from gradscribe.ast_transform.passes.flow import RAISED, Flow, Raises, Returned
from gradscribe.ast_transform.passes.inlining import ENDLESS
from gradscribe.ast_transform.passes.iteration import Iteration
from gradscribe.ast_transform.passes.loops import Loops
from gradscribe.ast_transform.passes.methods import Methods
from gradscribe.ast_transform.passes.nonnegative import Naturals
from gradscribe.ast_transform.passes.objects import UNARY as OF_CLASS
from gradscribe.ast_transform.passes.objects import Objects
from gradscribe.ast_transform.passes.operands import Operands
from gradscribe.ast_transform.passes.registered import RegisteredClasses
from gradscribe.ast_transform.passes.sharing import Sharing
from gradscribe.ast_transform.passes.short import Short
from gradscribe.ast_transform.passes.state import State
from gradscribe.ast_transform.passes.storage import NotSetYet, Storage
from gradscribe.ast_transform.passes.subscripts import GRIDS, JOINS
from gradscribe.ast_transform.passes.targets import assigned
from gradscribe.ast_transform.passes.texts import Texts
from gradscribe.ast_transform.passes.values import (
    Conflict,
    FunctionValue,
    Grown,
    Part,
    Rows,
    Struct,
    View,
    Walk,
    is_function,
    variables_in,
)
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError, TooDeep
from gradscribe.ast_transform.source.live import mark_live
from gradscribe.ast_transform.source.read import Source, parts_of

_SET_BY: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()    # by the tree of a function: the names that it sets
UNARY = {gast.USub: operator.neg, gast.UAdd: operator.pos, gast.Invert: operator.invert, gast.Not: operator.not_}
COMPARE = {
    gast.Eq: operator.eq,
    gast.NotEq: operator.ne,
    gast.Lt: operator.lt,
    gast.LtE: operator.le,
    gast.Gt: operator.gt,
    gast.GtE: operator.ge,
}


def is_spelled(key):
    """Whether the key of a dict can be written out in emitted code."""
    return isinstance(key, (str, int, bytes, type(None))) or type(key) is float and abs(key) < np.inf or \
        type(key) is tuple and all(map(is_spelled, key))


def _made(function, operands):
    try:
        return function(*operands)
    except TypeError as error:          # NumPy has no difference of truth values
        return error


class Specialiser(Draws, Growing, Edits, Operands, Calls, Methods, Applied, Contexts, Objects, Data, Texts, Iteration,
                  RegisteredClasses, Sharing, State, Assignments, Flow, Loops, Carries, Storage, Collectives, Short,
                  Derive):
    """Reads functions; `unroll` takes containers apart entirely (what Numba compiles)."""

    def __init__(self, unroll=False, engine=None):
        self.build, self.unroll, self.engine = Builder(), unroll, engine
        self.build.to_read = not unroll
        self.stack, self.captured, self.guards = [], {}, []
        self.functions = {}             # of the user's that were read: code and defaults as they were, see read.py
        self.rule_depth, self.owned = 0, set()
        self.natural_indices = set()    # of loops: they are not negative
        self.late = {}                  # of a value that Python makes later, or its mark: what that reads
        self.within = ()                # the functions of jit and pmap that are being read, by name
        self.tokens, self.loops, self.entry_tokens, self.writes_arguments = {}, [], frozenset(), False
        self.within_derivative = False  # whose function is given its arguments' values, and writes none of them
        self.views_after = []           # what a loop leaves that shows what it leaves, see loops.py
        self.stood_for = {}             # by what a loop leaves: the storages that it may be in, of those before
        self.writes, self.layouts, self.flats, self.choices = 0, {}, {}, {}     # see storage.py, views.py, choices.py
        self.written = []               # what each write has changed: storages, or the mark of a container
        self.bound_names = 0            # names that expressions have set
        self.cells = set()              # what is one of several values, arrays without axes among them, see views.py
        self.put_in_lists = frozenset()         # the storages that lists of unknown length show
        self.ints_or_floats = set()     # arrays of floats that are ints on one path, see carries.py
        self.of_either_kind = set()     # truth values that are Python's on one path and NumPy's on another
        self.of_one_kind = set()        # parameters of functions derived or mapped inside: certainly not
        self.own_views = {}             # by call: how a function of the user's shows its argument, see views.py
        self.arm_only = set()           # arrays that have a value in one arm only, see choices.py
        self.ended, self.made_in = [], {}           # branches, and what their arms have made: the branch
        self.countable_loops = {}       # by place: (number of passes, the places of the loops around), see loops.py
        self.loops_around = []          # the places of the loops that are being read
        self.unrolled_loops = set()     # the places of those that are written out
        self.counted_loops = []         # numbers of passes that are computed from arguments
        self.from_source = None         # a function with a rule of the user's that is read all the same
        self.begun, self.seeded = {}, {}        # by draw, by generator: what was drawn when it began, see draws.py
        self.partly_read = set()        # names that were read where a path may have left them unset
        self.dtypes_by_path = False     # whether a value has another dtype on another path: conversions stay then
        self.partly = set()             # values that a path may leave unset
        self.walked = {}                # rows that loops walk over, as views of their source
        self.pending = []               # values that an expression holds while the rest of it is read
        self.gone_over = []             # the lists of unknown length that a loop being read goes through
        self.shown_lists = {}           # by iterator: those that Python reads later, by mark; see iterators.py
        self.tries = []                 # the block of each try that is read, and what its handlers take
        self.handled = []               # the exceptions whose handlers are read
        self.errstate = {}              # the warnings that the function does not show
        self.lifting = []               # containers of which an item is looked at
        self.outside = set()            # containers of the user's module and closures: never changed
        self.lent = set()               # those that an iterator shows as they were: not changed any more
        self.row_lists = set()          # those that stand in a list of unknown length
        self.origins = {}               # by mark: what a container may be that a branch has chosen
        self.uneven_lists = {}          # lists that a branch leaves in two lengths: by mark, what they hold
        self.stateful, self.state, self.state_names, self.kind_guards = [], {}, {}, []     # state.py
        self.lists_read, self.appended = set(), []
        self.state_inputs, self.state_outputs, self.argument_outputs = [], [], []
        self.returned_at = None         # the return statement that was read last
        self.own_lists = set()          # marks of lists that comprehensions fill: nobody else sees them change
        self.apart, self.given_marks = False, set()     # containers that are arguments are read at once; their marks
        self.given_changed = None       # where one of them is changed
        self.callers = set()            # marks of the containers that stand for objects of registered classes
        self.list_vars = set()          # carried lists of unknown length
        self.chosen_rows = set()        # arrays of which a row stands for an element of a list, chosen when running
        self.for_array = False          # what is read is given to np.array
        self.must_stay = True           # the loop that is read cannot be written out
        self.enclosing = []             # frames that inner functions see
        self.axes = {}                  # by name: how many examples the axes have that vmap has named
        self.without_rule = None        # a function whose own derivative a batch of it does not have, see vmap/batch.py
        self.arrangements = []          # what is done to the finished function: passes of their own
        self.instead = {}               # {function: the ufunc that is read where it is called}

    # entry

    def parameter(self, name, fact):
        if isinstance(fact, Opaque):
            return [Param(name, Const(fact.value))], Const(fact.value)
        if isinstance(fact, Sequence) and self.unroll:
            leaves = []
            value = self.leaves(name, fact, leaves)
            return leaves, value
        var = Var(name, fact, USER)
        if isinstance(fact, Sequence):
            return [Param(name, var)], self.whole(var)
        return [Param(name, var)], var

    def leaves(self, path, fact, out):
        if isinstance(fact, Sequence):
            labels = fact.keys if fact.kind in ("dict", "record") else range(len(fact.elements))
            items = [self.leaves(f"{path}_{k}", e, out) for k, e in zip(labels, fact.elements)]
            return Struct(fact.kind, items, fact.keys, fact.cls)
        if isinstance(fact, Opaque):
            return Const(fact.value)
        label = "".join(c if c.isalnum() else "_" for c in path)
        var = Var(label, fact, USER)
        out.append(Param(label, var))
        return var

    def whole(self, container):
        """A container held by an operand or Part, as a Struct of its parts."""
        fact = container.fact
        keys = fact.keys if fact.kind in ("dict", "record") else range(len(fact.elements))
        return Struct(
            fact.kind, [self.part(container, k, e) for k, e in zip(keys, fact.elements)], fact.keys, fact.cls, container
        )

    def part(self, container, key, fact):
        return Const(fact.value) if isinstance(fact, Opaque) else Part(container, Const(key), fact)

    def run(self, frame, entered=False):
        """Execute a frame's body and give its result; `entered`: the call is no expression of a function that is read.
        """
        tree, first = frame.source.tree, not self.stack and not self.rule_depth
        self.stack.append(frame)
        before = self.build.origin
        if frame.source.function is not None and (not self.rule_depth or is_foreign(frame.source.function)):
            self.functions.setdefault(frame.source.function, parts_of(frame.source.function))
        if first and self.apart:
            frame.env.update({n: self.own_parts(v) for n, v in frame.env.items()})
        if first and self.unroll:
            own = {getattr(a, "id", a) for a in (tree.args.vararg, tree.args.kwarg)}    # of *args and **named
            for n, value in frame.env.items():
                for held in value.items if n in own and isinstance(value, Struct) else [value]:
                    self.mark_given(held)
        if first:
            self.state_names.update((id(v.value), n) for n, v in frame.env.items() if isinstance(v, Const))
            self.begin_state()
        try:
            if entered:
                frame.env.update({n: self.objects(v) for n, v in frame.env.items()})
            if isinstance(tree, gast.Lambda):
                frame.statement = tree.body
                self.locate(tree.body)
                try:
                    value = self.eval(tree.body)
                except Raises as raised:
                    self.raised_by_call(raised, tree.body)
                    raise
            else:
                mark_live(tree)
                value = self.block(desugar(tree.body))
                value = value if value is RAISED else Const(None) if value is None else value.value
            if first:
                self.end_state()
                value = value if value is RAISED else self.children(value)
        except TooDeep:
            raise
        except RecursionError:
            raise TooDeep(self.too_deep(frame)) from None
        finally:
            self.stack.pop()
            self.build.origin = before
        if value is RAISED:
            raise Raises(self.build.block)
        return value

    def too_deep(self, frame):
        """What is said where Python's own limit was reached while reading."""
        again = [f for f in self.stack if f.source.function is not None and self.depth(f.source) > 2]
        if again:
            return LanguageError(f"the recursion of {again[-1].source.name} {ENDLESS[0]}", again[-1].caller, ENDLESS[1])
        return LanguageError(
            "an expression is nested too deeply to be read", self.build.origin, "Give its parts names."
        )

    def depth(self, source):
        """How often a function is being read already."""
        return sum(
            f.source.tree is source.tree or f.source.function is not None and f.source.function is source.function
            for f in self.stack
        )

    # places

    @property
    def frame(self):
        return self.stack[-1]

    def here(self, node):
        frame = self.frame
        origin = frame.source.origin(node, frame.statement, frame.caller)
        found = dict.fromkeys(frame.caller.errors, "raise") if frame.caller is not None else {}
        for lines, modes in frame.errors.items():
            found.update(modes if origin.line in lines else {})
        errors = tuple(sorted(k for k, mode in found.items() if mode == "raise"))
        return replace(origin, errors=errors, within=self.within) if errors or self.within else origin

    @contextmanager
    def inside(self, name):
        """What is read belongs to a function that jit or pmap has made."""
        outer, self.within = self.within, (*self.within, name)
        try:
            yield
        finally:
            self.within = outer

    def locate(self, node):
        if self.frame.plain:
            self.build.origin = self.here(node)

    def fail(self, kind, reason, node=None, advice="", python=None):
        """Refuse; `python` is the exception that Python itself would raise here for certain."""
        origin = self.here(node) if node is not None and self.frame.plain else self.build.origin
        error = kind(reason, origin, advice)
        error.python, error.block = python, self.build.block
        raise error

    # statements

    def block(self, body):
        for node in body:
            self.frame.statement = node
            self.locate(node)
            try:
                outcome = self.execute(node)
            except Raises as raised:
                outcome = self.raised_by_call(raised, node)
            if outcome is RAISED or isinstance(outcome, Returned):
                return outcome
        return None

    def execute(self, node):
        return getattr(self, "exec_" + type(node).__name__)(node)

    def exec_Pass(self, node):
        pass

    def exec_Return(self, node):
        value = Const(None) if node.value is None else self.eval(node.value)
        if len(self.stack) == 1:
            self.must_be_plain(value, node)
        self.returned_at = self.here(node) if self.frame.plain else self.returned_at
        return Returned(value)

    def exec_Expr(self, node):
        if isinstance(node.value, gast.Constant):
            return
        if isinstance(node.value, gast.Call):
            if self.appends_outside(node.value):
                return
            function = self.eval(node.value.func)
            if self.is_report(function):
                self.told(node.value)
                return
            self.call_node(node.value, function)
            return
        self.eval(node.value)

    def exec_Assert(self, node):
        writes = self.writes
        with self.undrawn("an assertion", node):
            test = self.eval(node.test)
        if self.writes != writes:
            self.fail(LanguageError, "an assertion changes something", node, "Assert its result.")
        if not (isinstance(test, Const) and test.value):
            certain = isinstance(test, Const)
            if certain:
                self.raised_now(AssertionError, node)
            self.told(node)
            return RAISED if certain else None
        return None

    def exec_Raise(self, node):
        cls = node.exc.func if isinstance(node.exc, gast.Call) else node.exc
        found = self.eval(cls) if isinstance(cls, gast.Name) else None
        if isinstance(found, Const) and isinstance(found.value, type):
            self.raised_now(found.value, node)
        if node.exc is None:
            if self.handled:
                self.raised_now(self.handled[-1], node)
            self.fail(LanguageError, "raise without an exception, where it is not known what is handled", node,
                      "Name it: raise ValueError(...).")
        self.told(node)
        return RAISED

    def exec_FunctionDef(self, node):
        value = self.inner_function(node)
        for decorator in reversed(node.decorator_list):
            value = self.call(self.eval(decorator), [value], {}, decorator)
        self.frame.env[node.name] = value

    def inner_function(self, node):
        defaults = [self.eval(d) for d in node.args.defaults]
        words = {a.id: self.eval(d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults) if d is not None}
        name = getattr(node, "name", "lambda")
        outer = self.frame.source
        if self.frame not in self.enclosing:
            self.enclosing.append(self.frame)
        return FunctionValue(node, self.frame, Source(node, outer.scope, outer.file, name, None), defaults, words)

    # expressions

    def eval(self, node):
        return getattr(self, "eval_" + type(node).__name__)(node)

    def eval_Constant(self, node):
        return Const(self.meant(node.value, node))

    def eval_Name(self, node):
        return self.read_name(node.id, node)

    def not_set(self, frame, name, node):
        """A name without a value; where an earlier pass of a loop may have set it, it is read once that is known."""
        loop = next((loop for loop in reversed(self.loops) if (frame, name) in loop.first_set), None)
        try:
            self.fail(LanguageError, f"{name.strip()} has no value here", node, "Set it before it is read.")
        except LanguageError as error:
            if loop is None:
                raise
            loop.read_partly.add((frame, name))
            raise NotSetYet(loop, name, error) from None

    def in_scope(self, name):
        """What a name stands for in the function that is read, or in one around it; None of what is outside of both."""
        frame = self.frame
        while frame is not None and name not in frame.env:
            frame = frame.outer
        return None if frame is None else frame.env[name]

    def read_name(self, name, node=None):
        frame = self.frame
        while frame is not None:
            if name in frame.env:
                value = frame.env[name]
                if isinstance(value, Conflict):
                    self.write_out(value, node)
                    self.fail(ShapeError, f"{said(name)} is {value.reason}", node, value.advice)
                if isinstance(value, Const) and isinstance(value.value, Undefined):
                    self.not_set(frame, name, node)
                if self.partly and any(v in self.partly for v in variables_in(value)):
                    self.partly_read.add(name)
                    for loop in self.loops:
                        loop.read_partly.add((frame, name))
                if isinstance(value, (Walk, Var, Grown)):
                    self.as_it_was(self.read_by(value), node)
                if isinstance(value, Walk):
                    frame.env[name] = Conflict("an iterator that has been read already")
                return value
            if name in self.set_by(frame.source):
                self.fail(LanguageError, f"{name} is read before it has a value", node,
                          "Python looks no further for a name that the function sets somewhere.")
            frame = frame.outer
        try:
            value = self.frame.source.scope.lookup(name)
        except NameError:
            advice = {
                "np": "Its module lacks import numpy as np.",
                "numpy": "Its module lacks import numpy.",
                "math": "Its module lacks import math.",
            }.get(name, "It is neither set before this line nor defined in the module.")
            self.fail(LanguageError, f"{name} is not defined", node, advice)
        if not self.rule_depth or is_foreign(self.frame.source.function):
            self.guards.append((self.frame.source.scope, name, value))
        return self.lift(value, name)

    def set_by(self, source):
        """The names that a function sets, parameters apart."""
        tree = source.tree
        if tree not in _SET_BY:
            _SET_BY[tree] = assigned(tree.body) if isinstance(tree.body, list) else {}
        return _SET_BY[tree]

    def lift(self, value, name):
        """A Python value from outside the function."""
        value = self.meant(value)
        if type(value) in STREAMS or is_array(value) and value.dtype.kind in "biufc":
            return self.capture(value, name)
        if isinstance(value, np.ndarray):
            return Const(value)
        if any(value is outer for outer in self.lifting):
            self.fail(LanguageError, f"{name} is from outside the function, and holds itself", None,
                      "Use a list without it.")
        if isinstance(value, (list, tuple, dict)):
            self.lifting.append(value)
            try:
                return self.lifted_container(value, name)
            finally:
                self.lifting.pop()
        return Const(value)

    def lifted_container(self, value, name):
        if type(value) in (list, tuple):
            self.lists_read.add(id(value))
            if any(value is owner for owner, *_ in self.appended):
                self.fail(LanguageError, f"{name} is from outside the function, which appends to it and reads it", None,
                          "Give it to the function as an argument, or return what is to be appended.")
            return self.lifted(
                Struct(type(value).__name__, [self.lift(v, f"{name}_{k}") for k, v in enumerate(value)], whole=None)
            )
        if type(value) is dict and all(map(is_spelled, value)):
            return self.lifted(Struct("dict", [self.lift(v, f"{name}_{k}") for k, v in value.items()], tuple(value)))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return Struct(
                "record",
                [self.lift(v, f"{name}_{k}") for k, v in zip(value._fields, value)],
                value._fields,
                type(value),
            )
        return Const(value)

    def lifted(self, container):
        self.outside.add(container)
        return container

    def capture(self, value, name):
        """An array that the function reads from outside: a name in the emitted module."""
        from_facts = self.captured.get(id(value))
        if from_facts is None:
            fact = fact_of(Const(value))
            from_facts = self.captured[id(value)] = (Var(name, fact, USER), value)
        return from_facts[0]

    def eval_BinOp(self, node):
        with self.waiting([self.eval(node.left)]) as held:
            right = self.eval(node.right)
        self.locate(node)
        return self.binary(BINARY[type(node.op)], held[0], right, node)

    def binary(self, function, left, right, node):
        left, right = self.settle(left), self.settle(right)
        if isinstance(left, Grown) and function is operator.add and getattr(right, "kind", None) == "list":
            made = self.copied_list(left)
            self.grown_method(made, "extend", [right], {}, node)
            return made
        text = isinstance(left, Const) and isinstance(left.value, (str, bytes)) and not isinstance(right, Const)
        if isinstance(left, Struct) or isinstance(right, Struct) or text:
            found = self.by_class(function, left, right, node)
            if found is not None:
                return found
            made = self.binary_on_containers(function, left, right, node)
            cls = next((v.cls for v in (left, right) if hasattr(getattr(v, "cls", None), "most")), None)
            return made if cls is None else self.kept_within(Struct("list", made.items, (), cls))
        if isinstance(left, Const) and isinstance(right, Const) and (
                isinstance(left.value, (str, bytes)) or isinstance(right.value, (str, bytes))):
            return Const(self.tried(function, left.value, right.value, node=node))
        return self.operation(function, [left, right], node)

    def tried(self, function, *values, node):
        """What Python makes of values that are known now."""
        try:
            return function(*values)
        except Exception as error:
            self.fail(LanguageError, str(error), node, python=type(error))

    def operation(self, function, operands, node):
        """An operation as the user or a rule wrote it."""
        for o in operands:
            if not isinstance(o, (Var, Const)):
                self.fail(LanguageError, f"{self.spell(o)} is not a number or an array", node,
                          "Make an array of it: np.array(list(values)).")
        if self.rule_depth:
            return self.fresh(self.build.arithmetic(function, operands), operands)
        self.one_kind_of_truth(function, operands, node)
        rule = rule_of(function)
        if rule is not None and rule.options.get("natural") and function is rule.function:
            operands = self.of_a_power(*operands)
        return self.build.apply(function, *operands)

    def one_kind_of_truth(self, function, operands, node):
        """True + True is 2, and NumPy's is True: arithmetic of truth values asks whose they are."""
        facts = [fact_of(o) for o in operands]
        if not all(isinstance(f, Array) and f.kind == "b" and not f.dims for f in facts) or not any(
                map(self.may_be_of_either_kind, operands)):
            return
        made = [_made(function, [kind(1)] * len(operands)) for kind in (bool, np.bool_)]
        if type(made[0]) is not type(made[1]) and not {type(m) for m in made} <= {bool, np.bool_}:
            self.fail(LanguageError, "arithmetic of truth values that may be Python's or NumPy's (True + True is 2, or "
                      "True)", node, "Count with int(...): int(a) + int(b).")

    def may_be_of_either_kind(self, value):
        if not isinstance(value, Var) or value in self.entry_tokens | self.of_one_kind or isinstance(
                value.fact, Array) and value.fact.dims:
            return False
        made = self.made_as(value)
        return value in self.of_either_kind or made is None or isinstance(
            made, Apply) and made.function in (both, either)

    def of_a_power(self, base, exponent):
        """An int to the power of an int is a float where the exponent is negative: a float where it may be."""
        facts = fact_of(base), fact_of(exponent)
        if any(not isinstance(f, Array) or f.dims or not f.weak or f.dtype is not int for f in facts) or isinstance(
                base, Const) and isinstance(exponent, Const):
            return base, exponent
        naturals = Naturals(())
        naturals.made, naturals.indices = self.build.made, self.natural_indices
        if naturals.holds(exponent):
            return base, exponent
        return Const(float(base.value)) if isinstance(base, Const) else self.build.apply(float, base), exponent

    def eval_UnaryOp(self, node):
        value = self.settle(self.eval(node.operand))
        self.locate(node)
        if isinstance(node.op, gast.Not):
            return self.negated(self.truth(value, node))
        method = self.dunder(value, OF_CLASS.get(UNARY[type(node.op)]))
        if method is not None:
            return self.call_known(method, [value], {}, node)
        return self.operation(UNARY[type(node.op)], [value], node)

    def eval_Compare(self, node):
        def from_here(left, rest):          # the next operand is evaluated where all before have held
            (op, comparator), *more = rest
            right = self.eval(comparator)
            self.locate(node)
            value = self.compare(op, left, right, node)
            if not more or isinstance(value, Const) and not value.value:
                return value
            return self.both(value, lambda: from_here(right, more), node)
        return from_here(self.eval(node.left), list(zip(node.ops, node.comparators)))

    def compare(self, op, left, right, node):
        if isinstance(op, (gast.Is, gast.IsNot)):
            return self.identity(left, right, isinstance(op, gast.Is), node)
        if not isinstance(op, (gast.In, gast.NotIn)) and (isinstance(left, View) or isinstance(right, View)):
            self.fail(LanguageError, "a view of a dictionary is compared", node, "Compare lists: list(d.keys()).")
        left, right = self.settle(left), self.settle(right)
        if isinstance(op, (gast.In, gast.NotIn)):
            found = self.contains(right, left, node)
            return found if isinstance(op, gast.In) else self.negated(found)
        function = COMPARE[type(op)]
        found = self.by_class(function, left, right, node)
        if found is not None:
            return found
        if function in (operator.eq, operator.ne) and self.are_numbers(left) and self.are_numbers(right):
            return self.same_numbers(left, right, function is operator.eq, node)
        if isinstance(left, Struct) or isinstance(right, Struct) or \
                all(isinstance(v, Const) and not isinstance(v.value, (np.ndarray, np.generic)) for v in (left, right)):
            return self.compared(function, left, right, node)
        words = [isinstance(v, Const) and isinstance(v.value, (str, bytes, type(None))) for v in (left, right)]
        if any(words) and function in (operator.eq, operator.ne):
            if any(isinstance(v, Var) and isinstance(v.fact, Opaque) for v in (left, right)):
                self.fail(LanguageError, "a text that is made when running is not known when transforming", node,
                          "Compare what it is made from.")
            if any(isinstance(v, Var) and isinstance(v.fact, Array) and v.fact.dims for v in (left, right)):
                self.fail(LanguageError, "an array is compared with what is no number, entry by entry", node,
                          "Write x is not None.")
            return Const(function is operator.ne)       # a number is no word
        return self.operation(function, [left, right], node)

    def identity(self, left, right, positive, node):
        if isinstance(left, Const) and isinstance(right, Const):
            return Const((left.value is right.value) == positive)
        if any(isinstance(v, Const) and (v.value is None or v.value is Ellipsis) for v in (left, right)):
            return Const(not positive)  # neither is computed
        if left is right:
            return Const(positive)
        if isinstance(left, Const) and is_function(right) or is_function(left) and isinstance(right, Const):
            return Const(not positive)  # one that is defined in what is read, and one that is not
        same = self.same_object(left, right)
        if same is not None:
            return Const(same == positive)
        self.fail(LanguageError, "identity of values is not known when transforming", node, "Compare with ==.")

    def eval_BoolOp(self, node):
        first, *rest = node.values
        value = self.eval(first)
        for other in rest:
            self.locate(node)
            join = self.both if isinstance(node.op, gast.And) else self.either
            value = join(value, lambda o=other: self.eval(o), node)
        return value

    def eval_IfExp(self, node):
        test = self.truth(self.eval(node.test), node.test)
        if isinstance(test, Const):
            return self.eval(node.body if test.value else node.orelse)
        return self.choose(test, lambda: self.eval(node.body), lambda: self.eval(node.orelse), node)

    def eval_Lambda(self, node):
        return self.inner_function(node)

    def eval_NamedExpr(self, node):
        value = self.eval(node.value)
        self.assign(node.target, value)
        self.bound_names += 1
        return value

    def eval_Tuple(self, node):
        return Struct("tuple", self.elements(node))

    def eval_List(self, node):
        items = self.elements(node)
        if len(items) == len(node.elts):
            for item, e in zip(items, node.elts):
                if isinstance(item, Struct):
                    item.alone = isinstance(e, WRITTEN_OUT)
        return Struct("list", items)

    def elements(self, node):
        with self.waiting([]) as items:
            for e in node.elts:
                items += self.listed(self.at_once(self.eval(e.value)), e, fixed=True) if isinstance(
                    e, gast.Starred) else [self.eval(e)]
        return items

    def eval_Dict(self, node):
        with self.waiting([Struct("dict", [])]) as held:
            for k, v in zip(node.keys, node.values):
                if k is None:
                    other = self.settle(self.eval(v))
                    if not isinstance(other, Struct) or other.kind != "dict":
                        self.fail(LanguageError, f"** needs a dictionary, {self.spell(other)} is given", v)
                    pairs = list(zip(other.keys, other.items))
                else:
                    pairs = [(self.hashed(self.eval(k), k), self.eval(v))]
                self.put_all(held[0], pairs)
            return held[0]

    def eval_ListComp(self, node):
        return self.or_grown(node, lambda items: Struct("list", items))

    def eval_GeneratorExp(self, node):
        if any(isinstance(n, gast.NamedExpr) for n in gast.walk(node)):
            self.fail(LanguageError, "a name is set in a generator, which is read as far as it is asked", node,
                      "Write a loop, or a list.")
        writes = self.writes
        found = self.made_since(self.or_grown(node, lambda items: self.iterator(items, late=node)), writes, node)
        reads, _ = self.names_read(node)
        if not isinstance(self.a_generator(found), Struct):
            self.read_later(found, (), node)
        return self.shows_lists(found, [v for _, _, v in reads])

    def eval_DictComp(self, node):
        out = Struct("dict", [])
        pairs = self.comprehension(
            node.generators, lambda: Struct("tuple", [self.eval(node.key), self.eval(node.value)]), node)
        self.put_all(out, [(self.hashed(p.items[0], node), p.items[1]) for p in pairs])
        return out

    def comprehension(self, generators, element, node):
        """The elements of a comprehension over values known now."""
        if not generators:
            return [element()]
        first, *rest = generators
        value = self.eval(first.iter)
        walk = self.walk(value, first.iter)
        if walk.static is None:
            walk = self.listed_walk(walk, first.iter, any(s is v for _, _, s in walk.items
                                                          for v, _ in self.captured.values()))
        with self.own_scope([first], node), self.waiting([]) as out, self.waiting(list(walk.static)) as values, \
                self.going_over(value, walk):
            for k in range(len(values)):
                self.assign(first.target, self.passed(values[k]))
                keep = True
                for test in first.ifs:
                    known_test = self.truth(self.eval(test), test) if keep else test
                    if keep and not isinstance(known_test, Const):
                        self.fail(
                            LanguageError,
                            "a comprehension whose length depends on values is not differentiated yet",
                            test,
                            "Write it as a loop that adds to a sum, or appends to a list.",
                        )
                    keep = keep and known_test.value
                if keep:
                    out += self.comprehension(rest, element, node)
            return out

    def eval_Attribute(self, node):
        value = self.settle(self.eval(node.value))
        self.locate(node)
        return self.attribute(value, node.attr, node)

    def eval_Subscript(self, node):
        with self.waiting([self.eval(node.value)]) as held:
            index = self.index(node.slice)
        self.locate(node)
        return self.settle(self.item_of(held[0], index, node))

    def index(self, node):
        """An index as an operand; slices of known ends are constants."""
        if isinstance(node, gast.Slice):
            parts = [None if p is None else self.settle(self.eval(p)) for p in (node.lower, node.upper, node.step)]
            if all(p is None or isinstance(p, Const) for p in parts):
                return Const(slice(*(None if p is None else p.value for p in parts)))
            return Slice(*parts)
        if isinstance(node, gast.Tuple):
            parts = [self.listed(self.eval(e.value), e) if isinstance(e, gast.Starred) else [self.index(e)]
                     for e in node.elts]
            return Pack("tuple", tuple(self.part_of_index(i, node) for part in parts for i in part))
        return self.as_index(self.settle(self.eval(node)), node)

    def as_index(self, value, node):
        if isinstance(value, Grown):
            return self.array_of_grown(value)
        if isinstance(value, Struct):
            if value.kind != "tuple":
                return self.list_as_index(value, node) if value.kind == "list" else value
            return Pack("tuple", tuple(self.part_of_index(i, node) for i in value.items))
        return value

    def list_as_index(self, value, node):
        """A list that is an index, as an array; one without entries names no place, and NumPy takes it as integers."""
        places = self.array_of(value, node)
        fact = fact_of(places)
        empty = fact.kind == "f" and any(d.same(Length(None, 0)) for d in fact.dims)
        return self.converted(places, np.dtype(int), node) if empty else places

    def part_of_index(self, value, node):
        """One of several indices: a tuple there is an array of places, as a list is."""
        if isinstance(value, Pack):
            value = Struct("tuple", value.items)
        return self.list_as_index(value, node) if isinstance(value, Struct) else self.as_index(value, node)

    def eval_Slice(self, node):
        return self.index(node)

    def item_of(self, value, index, node):
        if isinstance(value, Part) and isinstance(value.fact, Sequence):
            value = self.whole(value)
        value = self.settle(value) if isinstance(value, View) else value
        if isinstance(value, Grown):
            return self.grown_item(value, index, node)
        if isinstance(value, Rows):
            return self.row_item(value, index, node)
        if isinstance(value, Struct):
            method = self.dunder(value, "__getitem__")
            if method is not None:
                return self.call_known(method, [value, self.as_given(index)], {}, node)
            if value.kind == "iterator":
                self.fail(LanguageError, "an iterator is not indexed", node, "Make a list of it first.")
            if isinstance(index, Var):
                return self.chosen_item(value, index, node)
            key = self.static(index, "the index of a container", node)
            return self.certain(self.struct_item(value, key, node), node)
        value = self.settle(value)
        if isinstance(value, Const):
            if isinstance(value.value, JOINS | GRIDS):
                return self.in_brackets(value.value, index, node)
            if is_array(value.value):
                self.fail(LanguageError, "an array of objects is not differentiated", node, "Use a list.")
            if isinstance(value.value, np.ndarray):
                unfit = no_array(fact_of(value))
                self.fail(ShapeError, str(unfit), node, unfit.advice)
            key = self.static(index, "the index of a container", node)
            self.stays_as_it_is(value, lambda held: held[key])
            try:
                return self.lift(value.value[key], "item")
            except LanguageError:
                raise
            except Exception as error:
                self.fail(ShapeError, f"indexing: {error}", node)
        if not isinstance(value, Var):
            self.fail(LanguageError, f"{self.spell(value)} is not indexed", node)
        return self.build.item(value, index)

    @staticmethod
    def as_given(index):
        """An index as the argument of a method."""
        return Struct("tuple", index.items) if isinstance(index, Pack) else index

    def chosen_item(self, value, index, node):
        """[a, b][i] with i known only when running: a row of the stacked elements."""
        facts = self.facts_alike(value.items)
        known = self.entry_from_outside(index)
        if is_place(index) and facts and value.kind in ("list", "tuple"):
            try:
                rows = self.array_of(value, node)
            except ShapeError:
                if known is None:
                    raise
            else:
                self.stands_for(rows, value.items)
                return self.entry_as_it_was(self.build.item(rows, index), facts[0], node)
        if known is None:
            self.demand(index, "the index of a container", node)
        return self.certain(self.struct_item(value, self.static(index, "the index of a container", node), node), node)

    def stands_for(self, rows, items):
        """The rows of a new array stand for elements of a list: they are not written to, and change as those do."""
        self.chosen_rows.add(rows)
        self.tokens[rows] = self.storages(rows).union(*(self.storages(i) for i in items if holds_memory(i)))

    @staticmethod
    def facts_alike(items):
        """The facts of elements that one array can hold as they are, those of NumPy's first; None if none can."""
        facts = [fact_of(i) if isinstance(i, Const) else getattr(i, "fact", None) for i in items]
        alike = facts and all(isinstance(f, Array) for f in facts) and (
            not any(f.weak for f in facts) or len({np.dtype(f.dtype) for f in facts}) == 1)
        return sorted(facts, key=lambda f: f.weak) if alike else None

    def entry_as_it_was(self, entry, fact, node):
        """An entry of the array of a list; a number of Python's is one again, which meets float32 without widening."""
        return self.call_known(fact.dtype, [entry], {}, node) if fact.weak else entry

    def struct_item(self, value, key, node):
        if value.kind == "dict":
            if self.hashed(Const(key), node) not in value.keys:
                found = self.missing(value, key, node)
                if found is not None:
                    return found
                self.fail(ShapeError, f"the dictionary has no key {key!r}", node, python=KeyError)
            return value.items[value.keys.index(key)]
        try:
            found = value.items[key]
        except (IndexError, TypeError) as error:
            self.fail(ShapeError, str(error), node, python=type(error))
        if isinstance(key, slice):
            whole = None
            if value.whole is not None:
                whole = Part(value.whole, Const(key), Sequence(value.kind, tuple(value.whole.fact.elements[key])))
            return Struct(value.kind, found, whole=whole)
        if (
            isinstance(found, Part)
            and isinstance(key, int)
            and key < 0
            and value.whole is not None
            and value.version == 0
        ):
            return Part(value.whole, Const(key), found.fact)
        return found
