"""What the names of a loop or a branch carry: the operands in them, one by one, and who shares an array."""


from gradscribe.ast_transform.core.form import (
    USER,
    Apply,
    Const,
    Undefined,
    Var,
)
from gradscribe.ast_transform.core.kinds import (
    Array,
    Opaque,
)
from gradscribe.ast_transform.core.operations import VIEWS
from gradscribe.ast_transform.passes.described import fact_of
from gradscribe.ast_transform.passes.values import Method, Part, Struct, View


class NotALoop(Exception):
    """What the body does to containers differs from pass to pass."""



class Carries:
    # leaves of what a name carries

    def slot(self, n, value):
        """Paths to the operands in a value."""
        if isinstance(value, (Struct, Part)):
            value = self.frame.env[n] = self.taken_apart(value)
        return self.slot_of_item(value)

    def taken_apart(self, value):
        """A container whose parts are all read."""
        value = self.settle(value)
        if not isinstance(value, Struct):
            return value
        items = [self.taken_apart(i) for i in value.items]
        if value.whole is None:
            value.items[:] = items
            return value
        return Struct(value.kind, items, value.keys, value.cls)

    def slot_of_item(self, value):
        if isinstance(value, Struct):
            return {(k, *p): None for k, i in enumerate(value.items) for p in self.slot_of_item(i)}
        if (
            isinstance(value, Var)
            or isinstance(value, Const)
            and isinstance(fact_of(value), Array)
            and not isinstance(value.value, bool)
        ):
            return {(): None}
        if isinstance(value, Const) and isinstance(value.value, bool):
            return {(): None}
        return {}

    def leaf(self, value, path):
        for k in path:
            value = value.items[k]
        return value

    def entered(self, n, value, leaves, known, inner):
        """The value of a carried name inside the loop."""
        made = inner.setdefault(n, {})
        def visit(v, path):
            if isinstance(v, Struct):
                return Struct(v.kind, [visit(i, (*path, k)) for k, i in enumerate(v.items)], v.keys, v.cls)
            if path in leaves:
                fact = known.get((n, path)) or _loose(fact_of(v))
                var = made[path] = Var(n.strip(), fact, USER)
                if isinstance(v, Const) or not self.may_share(v) :
                    self.owned.add(var)
                return var
            return v
        return visit(value, ())

    def paired(self, n, made, value):
        """Each carried operand with what a pass makes of it."""
        pairs = {}
        for path, var in made.items():
            v = value
            for k in path:
                if not isinstance(v, Struct) or k >= len(v.items):
                    raise NotALoop(f"{n} changes its structure from pass to pass")
                v = v.items[k]
            v = self.settle(v)
            if (
                not isinstance(v, (Var, Const))
                or _undefined(v)
                or isinstance(v, Const)
                and isinstance(fact_of(v), Opaque)
            ):
                raise NotALoop(f"{n} changes its kind from pass to pass")
            pairs[path] = (var, v)
        if not made and isinstance(value, (Var,)):
            raise NotALoop(f"{n} changes its kind from pass to pass")
        return pairs

    def replaced_leaves(self, value, after, outers):
        def visit(v, path):
            if path in outers:
                return outers[path]
            if isinstance(v, Struct):
                return Struct(v.kind, [visit(i, (*path, k)) for k, i in enumerate(v.items)], v.keys, v.cls)
            return v
        if isinstance(value, Struct) and (not isinstance(after, Struct) or len(after.items) != len(value.items)):
            raise NotALoop("a container changes its structure from pass to pass")
        return visit(value, ())

    def versions(self, names):
        """The states of all containers that exist before a pass, and what names show that the loop does not set."""
        found, frame = {}, self.frame
        def visit(v):
            if isinstance(v, Struct) and id(v) not in found:
                found[id(v)] = (v, v.version)
                for i in v.items:
                    visit(i)
        shown = []
        for place in self.places():
            for name, v in place.env.items():
                visit(v)
                if isinstance(_container(v), Struct) and not (place is frame and name in names):
                    shown.append((place, name, _shape(v)))
        return list(found.values()), shown

    @staticmethod
    def same_versions(versions):
        containers, shown = versions
        return all(v.version == version for v, version in containers) and all(
            _shape(place.env.get(name)) == shape for place, name, shape in shown)

    # who shares an array

    def has_alias(self, var):
        """Another name, a container or a view may show the same array."""
        seen = 0
        def count(v):
            return sum(map(count, v.items)) if isinstance(v, Struct) else v is var
        for frame in self.stack:
            for value in frame.env.values():
                seen += count(value)
        return seen > 1 or self.may_share(var) or isinstance(var, Var) and any(
            v is not var and self.storages(v) & self.storages(var) for _, _, v in self.shown())

    def may_share(self, var):
        if not isinstance(var, Var) or var in self.owned or isinstance(var.fact, Array) and not var.fact.dims:
            return False
        made = self.build.made.get(var)
        return not isinstance(made, Apply) or getattr(made.function, "__name__", "") in VIEWS or \
            self.shown_by_view(var)

    def shown_by_view(self, var):
        """A view of the array is held by some name."""
        for frame in self.stack:
            for value in frame.env.values():
                made = self.build.made.get(value) if isinstance(value, Var) else None
                while isinstance(made, Apply) and getattr(made.function, "__name__", "") in VIEWS:
                    if made.args[0] is var:
                        return True
                    made = self.build.made.get(made.args[0]) if isinstance(made.args[0], Var) else None
        return False


def _loose(fact):
    """The fact of a carried value before its body is read: a literal's value may change."""
    if isinstance(fact, Array) and fact.length is not None:
        return Array(fact.dtype, fact.dims, fact.length)
    return fact


def _container(value):
    return value.value if isinstance(value, (Method, View)) else value


def _shape(value):
    """A container's structure and the values in it."""
    value = _container(value)
    return (value.kind, value.keys, tuple(map(_shape, value.items))) if isinstance(value, Struct) else value


def _undefined(value):
    return isinstance(value, Const) and isinstance(value.value, Undefined)
