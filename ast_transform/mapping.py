# SPDX-License-Identifier: Apache-2.0
"""vmap as a transformation: reads in_axes and out_axes, and places the batch axis of arguments and results.

How statements are batched is in passes/vmap/.
"""
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gradscribe.ast_transform.core.children import children_of, name_of, registered
from gradscribe.ast_transform.core.form import USER, Const, Function, Pack, Var, copied, substituted
from gradscribe.ast_transform.core.kinds import Array, Length, Sequence, spell, unify, unknown
from gradscribe.ast_transform.passes.described import AS_ARRAY, fact_of
from gradscribe.ast_transform.passes.overlap import compressed, overlapped
from gradscribe.ast_transform.passes.vmap.varies import all_of
from gradscribe.ast_transform.reader.derivatives import _parameters, apart_block, to_value
from gradscribe.ast_transform.reader.draws import as_parameter
from gradscribe.ast_transform.reader.dynamic_lists import no_open_list
from gradscribe.ast_transform.reader.operands import as_operand, as_struct, settle
from gradscribe.ast_transform.reader.registered import as_children, as_seen_by_caller
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.reader.values import Struct
from gradscribe.ast_transform.requirements import caller_of, fact_of_value, place_of, place_of_result
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.ast_transform.transforms import Transform, identity, label_of, parameter_names, read_plainly


class OnDevices(NamedTuple):
    """The settings of `on_devices`."""
    sizes: dict[Any, int]               # the number of devices on each axis, by name
    overlap: bool = False               # sums over devices run while the program continues
    compress: bool = False              # sums in double precision are sent in single precision


def on_devices(sizes: Mapping[Any, int], overlap: bool = False, compress: bool = False) -> Transform:
    """The function as one device runs it, with named axes of devices; the settings are those of `OnDevices`."""
    return replace(identity(), settings=OnDevices(dict(sizes), overlap, compress), reads=read_on_devices)


def read_on_devices(reader, transform, base, args, words):
    """The value of base(*args, **words) on one device."""
    settings, axes = transform.settings, reader.context.axes
    reader.arrangements = [*([compressed] if settings.compress else []), *([overlapped] if settings.overlap else [])]
    reader.context.axes = {**axes, **{name: Length(None, n) for name, n in settings.sizes.items()}}
    try:
        return read_plainly(reader, transform, base, args, words)
    finally:
        reader.context.axes = axes


class Vmap(NamedTuple):
    """The settings of vmap."""
    in_axes: Any = 0
    out_axes: Any = 0
    axis_name: Any = None
    axis_size: int | None = None
    strategy: str = "auto"
    static: tuple[int, ...] = ()        # positions of arguments that are the same for all, whatever in_axes says


def vmap(*settings: Any, **more: Any) -> Transform:
    """The function over a batch: the mapped axes of the arguments become one batch axis of the results."""
    return Transform("vmap", Vmap(*settings, **more), reads=read_batch)


def read_batch(reader, transform, base, args, words):
    """The value of vmap(base)(*args, **words)."""
    call, axes = Batched(reader, transform.settings, base), transform.settings.in_axes
    static = transform.settings.static
    axes = tuple(axes) if isinstance(axes, list) else axes
    if any(k < len(args) for k in static) and not isinstance(axes, tuple):
        axes = (axes,) * len(args)
    if isinstance(axes, tuple) and len(axes) == len(args):
        axes = tuple(None if k in static else axis for k, axis in enumerate(axes))
    return call.value(axes, args, words, lambda node, place: call.outputs(node, call.settings.out_axes, place))


def read_differing(reader: Reader, in_axes: tuple, base: Any, args: list) -> tuple[Any, list[bool]]:
    """(value of vmap(base)(*args), whether each leaf of it differs between the examples).

    The batch axis is the first of each leaf that differs, and no other leaf has one.
    """
    flags: list[bool] = []

    def outputs(node, place):
        if isinstance(node, Pack):
            return Pack(node.kind, tuple(outputs(n, place) for n in node.items), node.keys, node.cls)
        mapped, value = place(node, None)
        flags.append(mapped)
        return value
    return Batched(reader, Vmap(), base).value(in_axes, args, {}, outputs), flags


class Batched:
    """A call of a function over a batch.

    env: the operand for each parameter of the function of one example; mapped: the parameters that differ between the
    examples; lengths: (name, fact, length of the mapped axis) of each argument that is mapped
    """

    def __init__(self, reader, settings, base):
        self.reader, self.settings, self.base, self.caller = reader, settings, base, caller_of(reader)
        self.env, self.mapped, self.lengths = {}, {}, []

    def value(self, axes, args, words, outputs):
        """The value of the call; outputs(node, place): a result with the batch axis in its place."""
        reader, settings, names = self.reader, self.settings, parameter_names(self.base, len(args))
        if isinstance(axes, tuple) and len(axes) != len(args):
            self.refuse(f"in_axes has {len(axes)} entr{'ies' if len(axes) != 1 else 'y'}, and {len(args)} positional "
                        f"argument{'s are' if len(args) != 1 else ' is'} given", None,
                        "Give one for each; those given by keyword are mapped along axis 0.")
        args, words = (
            list(map(partial(as_children, reader), args)),
            {k: as_children(reader, v) for k, v in words.items()},
        )
        outer, origin = reader.build.block, reader.build.origin
        inner = [self.enter(a, axes[k] if isinstance(axes, tuple) else axes, n)
                 for k, (a, n) in enumerate(zip(args, names))]
        inner_words = {k: self.enter(v, 0, k) for k, v in words.items()}
        length = self.common()
        numbers = {v for v in self.mapped if isinstance(v.fact, Array) and not v.fact.dims}
        axes = reader.context.axes
        reader.context.axes = axes if settings.axis_name is None else {**axes, settings.axis_name: length}
        try:
            body, result = apart_block(reader, self.base, inner, inner_words, self.env, numbers)
            no_open_list(reader, result, "vmap")
            function = Function(label_of(self.base), _parameters(self.env), body, result, self.base, {})
            reader.build.block = []
            made = reader.engine.batch(function, self.mapped, length, f"vmap_{function.label}", outputs,
                                       settings.strategy, settings.axis_name)
        finally:
            reader.build.block, reader.build.origin, reader.context.axes = outer, origin, axes
        env = {p.value: operand for p, operand in zip(made.params, self.env.values())}
        body = copied(made.body, env)
        reader.build.made.update({t: s.value for s in body if hasattr(s, "targets") for t in s.targets})
        outer += body
        reader.context.label = made.label
        return as_seen_by_caller(reader, to_value(reader, substituted(made.result, env)))

    def refuse(self, reason, name, advice):
        raise KindError(reason, place_of(self.base, name, self.caller), advice)

    def enter(self, value, axis, name):
        """The part of an argument that one example has."""
        value = settle(self.reader, value)
        if axis is None:
            return as_parameter(self.reader, value, False, self.env)
        if isinstance(value, Struct):
            if value.whole is not None and value.version == 0 and axis == 0 and type(axis) is int:
                return self.enter_whole(value, name)
            return Struct(value.kind, [self.enter(v, a, f"{name}[{k!r}]") for v, a, k in zip(
                value.items, self.parts(value, axis, name), value.keys or range(len(value.items)))],
                value.keys, value.cls)
        if isinstance(value, Const) and value.value is None:
            return value
        if not isinstance(axis, int) or isinstance(axis, bool):
            self.refuse(f"in_axes for {name} is {axis!r}, and {name} is {spell(fact_of(value))}", name,
                        "Give an int, or None for what is the same for all examples.")
        fact = fact_of(value)
        rank = fact.rank if isinstance(fact, Array) else None
        if rank is None or not -rank <= axis < rank:
            self.refuse(f"in_axes maps axis {axis} of {name}, which is {spell(fact)}", name,
                        AS_ARRAY if isinstance(getattr(fact, "value", None), np.ndarray) else
                        "Give an axis that it has, or None for what is the same for all examples.")
        axis %= rank
        if axis:
            value = self.reader.build.apply(np.moveaxis, value, Const(axis), Const(0), hint=value.hint)
        dims = fact.dims[:axis] + fact.dims[axis + 1:]
        var = Var(getattr(value, "hint", "x"), _example(fact, dims), USER)
        self.env[var], self.mapped[var] = value, True
        self.lengths.append((name, fact, fact.dims[axis]))
        return var

    def enter_whole(self, value, name):
        def one(fact, path):
            if isinstance(fact, Sequence):
                keys = fact.keys if fact.kind in ("dict", "record") else range(len(fact.elements))
                return replace(fact, elements=tuple(one(e, f"{path}[{k!r}]") for e, k in zip(fact.elements, keys)))
            if not isinstance(fact, Array):
                return fact
            if not fact.rank:
                self.refuse(f"in_axes maps axis 0 of {path}, which is {spell(fact)}", name,
                            "Give None for what is the same for all examples.")
            self.lengths.append((path, fact, fact.dims[0]))
            return _example(fact, fact.dims[1:])
        operand = as_operand(self.reader, value)
        if not isinstance(operand, Var):
            return Struct(value.kind, [self.enter(v, 0, f"{name}[{k!r}]")
                                       for k, v in zip(value.keys or range(len(value.items)), value.items)],
                          value.keys, value.cls)
        var = Var(operand.hint, one(operand.fact, name), USER)
        self.env[var], self.mapped[var] = operand, all_of(var.fact)
        return as_struct(self.reader, var)

    def parts(self, value, axis, name):
        """The entries of in_axes for the parts of a container: one for all, or one for each."""
        if isinstance(axis, int) and not isinstance(axis, bool):
            return [axis] * len(value.items)
        if value.kind == "dict" and isinstance(axis, dict) and set(axis) == set(value.keys):
            return [axis[k] for k in value.keys]
        if registered(type(axis)) is not None:
            axis = children_of(axis)
        fields = isinstance(axis, tuple) and hasattr(axis, "_fields")
        if value.kind in ("tuple", "list") and isinstance(axis, (tuple, list)) and len(axis) == len(value.items) or \
                value.kind == "record" and fields and len(axis) == len(value.items):
            return list(axis)
        self.refuse(f"in_axes for {name} is {axis!r}, and {name} is {self.spelled(value)}", name,
                    "Give an int, None, or a container of the same structure.")

    @staticmethod
    def spelled(value):
        if value.kind == "dict":
            return f"a dict of {', '.join(map(str, value.keys))}"
        return f"a {value.kind if value.kind != 'record' else name_of(value.cls)} of {len(value.items)}"

    def common(self):
        """The common length of all mapped axes."""
        size = self.settings.axis_size
        if not self.lengths:
            if size is None:
                self.refuse("vmap maps no argument: every entry of in_axes is None", None,
                            "Map one, or give axis_size.")
            return Length(None, size)
        name, fact, length = self.lengths[0]
        for other, shape, n in self.lengths[1:]:
            if not unify(length, n):
                self.refuse(f"vmap: the mapped axes have different lengths: {length.size} in {name}, {spell(fact)}; "
                            f"{n.size} in {other}, {spell(shape)}", None, "Map axes of one length.")
        if size is not None and not unify(length, Length(None, size)):
            self.refuse(f"axis_size is {size}, and the mapped axis of {name}, {spell(fact)}, has length "
                        f"{length.size}", None, "Leave axis_size out.")
        return length

    def outputs(self, node, axes, place):
        """The result with the batch axis where out_axes puts it."""
        if isinstance(node, Pack):
            if isinstance(axes, int) or axes is None:
                axes = [axes] * len(node.items)
            elif isinstance(axes, dict) and node.kind == "dict" and set(axes) == set(node.keys):
                axes = [axes[k] for k in node.keys]
            elif not (isinstance(axes, (tuple, list)) and len(axes) == len(node.items)):
                raise KindError(f"out_axes is {axes!r}, and the result is {spell(fact_of_value(node))}",
                                place_of_result(self.base, self.caller), "Give an int, or one for each part.")
            return Pack(node.kind, tuple(self.outputs(n, a, place) for n, a in zip(node.items, axes)),
                        node.keys, node.cls)
        if axes is not None and (not isinstance(axes, int) or isinstance(axes, bool)):
            raise KindError(f"out_axes is {axes!r}, and the result is {spell(fact_of(node))}",
                            place_of_result(self.base, self.caller), "Give an int.")
        fact = fact_of(node)
        if axes is not None and isinstance(fact, Array) and not -fact.rank - 1 <= axes <= fact.rank:
            raise KindError(f"out_axes is {axes}, and the result of one example is {spell(fact)}",
                            place_of_result(self.base, self.caller),
                            f"Give an axis from {-fact.rank - 1} to {fact.rank}.")
        mapped, value = place(node, axes)
        if mapped and axes is None:
            raise KindError("out_axes is None for a result that differs between the examples",
                            place_of_result(self.base, self.caller), "Give an axis for the examples.")
        return value


def _example(fact, dims):
    """The fact of one example of an array; an integer may be any length."""
    dtype = np.dtype(fact.dtype)
    return Array(dtype, dims, unknown("?int") if not dims and dtype.kind in "iu" else None)
