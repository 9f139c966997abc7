"""Who shares a container: the copies that branches and loops are read with, and what a name shows after a branch.

A container keeps its mark where it is copied for an arm, so the same list of both arms is told from two lists.  One
that may be either of two is not changed while another name shows one of them.
"""
import copy

from gradscribe.ast_transform.passes.values import Conflict, Grown, Method, Struct, View
from gradscribe.ast_transform.source.diagnose import LanguageError, ShapeError


class Sharing:
    def lend(self, containers):
        self.lent.update(containers)
        self.outside.update(containers)

    def snapshot(self):
        """The variables that can be reached; containers are copied, shared ones stay shared."""
        memo = {}
        def again(value):
            if isinstance(value, Struct) and value not in self.outside:
                if id(value) not in memo:
                    memo[id(value)] = new = copy.copy(value)
                    new.items = [again(i) for i in value.items]
                return memo[id(value)]
            if isinstance(value, Grown):
                if id(value) not in memo:
                    memo[id(value)] = copy.copy(value)
                return memo[id(value)]
            if isinstance(value, (Method, View)) and isinstance(value.value, (Struct, Grown)):
                return type(value)(again(value.value), value.name)
            return value
        return [(f, {k: again(v) for k, v in f.env.items()}) for f in self.places()]

    def places(self):
        """What has variables: functions being read, those that inner functions see, and what expressions hold."""
        return [*self.stack, *(f for f in self.enclosing if f not in self.stack), *self.pending]

    @staticmethod
    def restore(state):
        for frame, env in state:
            frame.env.clear()
            frame.env.update(env)

    def met(self, a, b, hint, joins, kind, memo=None):
        """A method or a view of a list is one of what the list has become."""
        memo = {} if memo is None else memo
        if isinstance(a, Grown) and isinstance(b, Grown) and a.mark is b.mark:
            key = (id(a), id(b))
            if key not in memo:
                memo[key] = Grown(super().met(a.value, b.value, a.value.hint, joins, kind, memo), a.element, a.mark)
            return memo[key]
        if a is not b and isinstance(a, (Method, View)) and type(a) is type(b) and a.name == b.name and \
                isinstance(a.value, Struct) and isinstance(b.value, Struct):
            value = self.met(a.value, b.value, hint, joins, kind, memo)
            return type(a)(value, a.name) if isinstance(value, Struct) else value
        return super().met(a, b, hint, joins, kind, memo)

    def met_structs(self, a, b, hint, joins, kind, memo):
        made = super().met_structs(a, b, hint, joins, kind, memo)
        given = [v for v in (a, b) if isinstance(v, Struct)]
        if len(given) == 2 and a.mark is b.mark and len(a.items) != len(b.items):
            self.uneven_lists[a.mark] = max(a.items, b.items, key=len)
        if isinstance(made, Struct) and not any(made is v for v in given):
            if len(given) == 2 and a.mark is b.mark:
                made.mark = a.mark
            else:
                self.origins[made.mark] = frozenset().union(*map(self.marks_of, given))
        return made

    def marks_of(self, container):
        """The containers that one may be."""
        return self.origins.get(container.mark) or frozenset({container.mark})

    def must_be_certain(self, holder, node):
        """No other name shows a container that may be this one, or may not."""
        if not self.origins:
            return
        marks, seen = self.marks_of(holder), set()

        def visit(value):
            if not isinstance(value, Struct) or id(value) in seen:
                return False
            seen.add(id(value))
            return value.mark is not holder.mark and bool(self.marks_of(value) & marks) or any(map(visit, value.items))

        if any(visit(v) for place in self.places() for v in place.env.values()):
            self.fail(LanguageError, f"changing a {holder.kind} that another name shows in one branch only", node,
                      "Change it inside the branch, or copy it there.")

    def certain(self, value, node):
        """What a container holds, as far as that is known."""
        if isinstance(value, Conflict):
            self.fail(ShapeError, f"what is held here is {value.reason}", node, value.advice)
        return value
