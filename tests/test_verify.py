"""The check of emitted texts against their normal forms: a copy that is left out, or a name that is taken, is seen."""
import copy
import functools
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.ast_transform.core.form import Apply, Pack, Slice
from gradscribe.ast_transform.passes.check import Broken
from gradscribe.ast_transform.passes.verify import verify
from gradscribe.codegen import writer

X = np.array([0.4, 0.9, 1.3])


def read_after_a_write(x):
    a = x * 1.0
    b = np.sin(a)
    a[0] = 2.0 * b[1]
    return np.sum(a * b)


def argument_written(x):
    x[1] = x[0] * x[2]
    return np.sum(x ** 2)


def view_kept_while_written(x):
    a = x * 2.0
    for i in range(2):
        c = a.copy()
        a[i] *= np.sum(c)
    return np.sum(a * c)


def lists_in_a_loop(x):
    rows = []
    for v in x:
        rows.append(v * x)
        x = x * 0.5
    return np.sum(np.array(rows))


def read_and_then_written_by_a_loop(x):
    for k in range(len(x)):
        a = x * k
    b, out = a, np.sin(a)
    for _ in range(3):
        b = b * a
        b[0] = 3.0
    return np.sum(out) + np.sum(a * b)


def exchanged(x):
    old, new = x * 1.0, np.zeros_like(x)
    for _ in range(3):
        new[1:] = 0.5 * old[:-1]
        old, new = new, old
    return np.sum(old * x)


PROGRAMS = [read_after_a_write, argument_written, view_kept_while_written, lists_in_a_loop,
            read_and_then_written_by_a_loop, exchanged]


@functools.cache                # a gradient is made once
def texts(f):
    """The normal forms that are printed for the gradient of f, each with its naming."""
    found, coalesce = [], writer.coalesce

    def noted(function, taken, **words):
        naming = coalesce(function, taken, **words)
        found.append((function, naming))
        return naming
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "coalesce", noted)
        gs.grad(f)(X.copy())
    return found


@pytest.mark.parametrize("f", PROGRAMS)
def test_texts_are_those_of_their_normal_forms(f):
    for function, naming in texts(f):
        verify(function, naming)


@pytest.mark.parametrize("f", [f for f in PROGRAMS if f is not exchanged])     # of two arrays in turn one is copied
def test_a_copy_that_is_left_out_is_seen(f):
    for function, naming in texts(f):
        for copies in (naming.copies, naming.copied_in):
            for place in list(copies):
                copies.remove(place)
                with pytest.raises(Broken):
                    verify(function, naming)
                copies.add(place)


def test_programs_need_copies():
    """The test above has something to leave out."""
    made = [naming for f in PROGRAMS for _, naming in texts(f)]
    assert sum(len(n.copies) + len(n.copied_in) for n in made) >= 4


def test_a_name_that_is_taken_is_seen():
    """All adjoints under one name: each text reads a value that its name does not hold any more."""
    seen = 0
    for f in PROGRAMS:
        for function, naming in texts(f):
            other = copy.copy(naming)
            other.names = {v: "d" if name.startswith("d") else name for v, name in naming.names.items()}
            try:
                verify(function, other)
            except Broken:
                seen += 1
    assert seen >= 4


@pytest.mark.parametrize("node, field", [(Apply(np.sin, ()), "args"), (Pack("tuple", ()), "items"),
                                         (Slice(None, None, None), "step")])
def test_expressions_are_frozen(node, field):
    """Statements belong to the pass that has copied them; what they compute may be shared, and is never changed."""
    with pytest.raises(FrozenInstanceError):
        setattr(node, field, ())
