# SPDX-License-Identifier: Apache-2.0
"""with gs.insert_grad_of(x) as dx: the body is read when the backward sweep comes to it.

In the normal form the edited value is another name for x, made by an Edit; its operands are x and what the body may
read of the function.
"""
import gast

from gradscribe.ast_transform.core.form import Apply, Const, Var
from gradscribe.ast_transform.core.kinds import Array
from gradscribe.ast_transform.passes.values import Frame, Struct
from gradscribe.ast_transform.source.diagnose import LanguageError


class Edit:
    """The body of an edit: statements, the name of the adjoint, and the names of the function as places of operands."""

    def __init__(self, body, name, names, source):
        self.body, self.name, self.names, self.source = body, name, names, source
        self.__name__ = "edited"

    def __call__(self, x, *others):
        return x


class Edits:
    def exec_EditGradient(self, node):
        """The edited value takes the place of x in every name."""
        call, target = node.call, node.target
        if len(call.args) != 1 or call.keywords or not isinstance(call.args[0], gast.Name):
            self.fail(LanguageError, "insert_grad_of takes the name of one variable", call,
                      "Give the value a name: y = ...; with gs.insert_grad_of(y) as dy:")
        if not isinstance(target, gast.Name):
            self.fail(LanguageError, "insert_grad_of needs a name for the adjoint", call,
                      "Write with gs.insert_grad_of(x) as dx:")
        x = self.settle(self.eval(call.args[0]))
        if not isinstance(x, Var) or not isinstance(x.fact, Array) or not x.fact.differentiable:
            self.fail(LanguageError, "insert_grad_of needs a number or an array that has a gradient, not "
                      f"{self.spell(x)}", call)
        read = dict.fromkeys(n.id for s in node.body for n in gast.walk(s) if isinstance(n, gast.Name))
        operands, names = [x], {}

        def place(value):
            if isinstance(value, Struct):
                return Struct(value.kind, [place(self.settle(i)) for i in value.items], value.keys, value.cls)
            if isinstance(value, Var):
                operands.append(value)
                return len(operands) - 1
            return value

        frame = self.frame
        for name in read:
            if name in frame.env and name != target.id:
                names[name] = place(self.settle(frame.env[name]))
        edit = Edit(node.body, target.id, names, frame.source)
        new = self.build.let(x.hint, Apply(edit, tuple(operands)), x.fact, x.kind)
        self.tokens[new] = self.storages(x)
        self.build.made.pop(new)
        for holder, key, value in list(self.every_value()):
            if value is x:
                holder[key] = new

    def every_value(self):
        """The variables of the functions being read and the items of their containers."""
        seen = set()

        def visit(holder, key, value):
            yield holder, key, value
            if isinstance(value, Struct) and id(value) not in seen:
                seen.add(id(value))
                for k, item in enumerate(value.items):
                    yield from visit(value.items, k, item)

        for frame in self.places():
            for name, value in list(frame.env.items()):
                yield from visit(frame.env, name, value)

    def edited(self, edit, operands, adjoint):
        """The adjoint that the body of an edit leaves."""
        def value_of(place):
            if isinstance(place, Struct):
                return Struct(place.kind, [value_of(i) for i in place.items], place.keys, place.cls)
            return operands[place] if type(place) is int else place

        env = {name: value_of(place) for name, place in edit.names.items()}
        env[edit.name] = adjoint
        frame = Frame(edit.source, env, None, None, False)
        self.stack.append(frame)
        try:
            for statement in edit.body:
                frame.statement = statement
                if self.execute(statement) is not None:
                    self.fail(LanguageError, "the body of insert_grad_of returns", statement,
                              "Assign to the adjoint.")
        finally:
            self.stack.pop()
        made = self.settle(frame.env[edit.name])
        return self.array_of(made, None) if isinstance(made, Struct) else made if isinstance(made, Var) else Const(
            made.value)
