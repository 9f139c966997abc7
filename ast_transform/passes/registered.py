# SPDX-License-Identifier: Apache-2.0
"""Objects of registered classes: made of their children where a function is entered, taken apart where it is left.

Both are done by reading the functions that the class was registered with, as if the user's function called them.
"""
from gradscribe.ast_transform.core.children import MADE, REGISTRY, children_class, registered
from gradscribe.ast_transform.core.kinds import Sequence
from gradscribe.ast_transform.passes.values import Part, Struct
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError


def stands_for_objects(value) -> bool:
    """Whether a value of the reader, or a fact, is or holds children that stand for an object."""
    if isinstance(value, Part):
        value = value.fact
    if isinstance(value, Struct):
        return value.cls in MADE or any(map(stands_for_objects, value.items))
    return isinstance(value, Sequence) and (value.cls in MADE or any(map(stands_for_objects, value.elements)))


class RegisteredClasses:
    def objects(self, value):
        """A value as the user's function sees it: objects in the place of their children."""
        return self.unflattened(self.own_parts(value)) if stands_for_objects(value) else value

    def seen(self, value):
        """What a transformation gives, as the function that calls it sees it."""
        return self.objects(value) if self.stack else value

    def unflattened(self, value):
        if not stands_for_objects(value):
            return value
        items = [self.unflattened(i) for i in value.items]
        if value.cls in MADE:
            cls, data = MADE[value.cls]
            given = [self.lift(data, "data"), Struct("tuple", items)]
            made = self.settle(self.call_known(REGISTRY[cls].unflatten, given, {}, None))
        else:
            made = Struct(value.kind, items, value.keys, value.cls)
        if isinstance(made, Struct):
            self.callers.add(made.mark)
        return made

    def children(self, value):
        """A value as emitted code has it: children in the place of the objects that they stand for."""
        if not isinstance(value, Struct):
            return value
        if value.kind in ("object", "record") and registered(value.cls) is not None:
            return self.flattened(value)
        items = [self.children(i) for i in value.items]
        if all(a is b for a, b in zip(items, value.items)):
            return value
        return Struct(value.kind, items, value.keys, value.cls)

    def flattened(self, value):
        name = value.cls.__name__
        pair = self.settle(self.call_known(REGISTRY[value.cls].flatten, [value], {}, None))
        if not isinstance(pair, Struct) or pair.kind != "tuple" or len(pair.items) != 2:
            raise KindError(f"the flatten function of {name} gives {self.spell(pair)}", self.build.origin,
                            "Return (children, data).")
        try:
            data = self.python(pair.items[1], None)
        except LanguageError:
            raise KindError(f"what the flatten function of {name} gives beside the children is known only when running",
                            self.build.origin, "Make it one of the children.") from None
        items = [self.children(self.settle(i)) for i in self.listed(pair.items[0], None)]
        cls = children_class(value.cls, data, len(items))
        return Struct("record", items, cls._fields, cls)
