"""The cost model: what operations take, and what passes make of it."""
import numpy as np
import pytest

import gradscribe as gs
from gradscribe.codegen.loops import threads
from gradscribe.codegen.loops.analysis import costs
from gradscribe.codegen.loops.trees import block_of

X = np.linspace(0.5, 2.0, 40)


def value_of(text):
    return block_of(f"y = {text}")[0].value


@pytest.mark.parametrize(("text", "expected"), [
    ("x[i]", 0), ("x[i] + y[i]", 1), ("-x[i]", 1), ("x[i] * y[i] + x[i]", 1), ("x[i] - 2.0 * y[i]", 1),
    ("abs(x[i])", 1), ("x[i] if x[i] > y[i] else y[i]", 2), ("x[i] ** 2", 2), ("float(k)", 0), ("x.shape[0]", 0)])
def test_operations(text, expected):
    assert costs.arithmetic(value_of(text)) == pytest.approx(expected * costs.MACHINE.operation)


def test_others():
    machine = costs.MACHINE
    assert costs.arithmetic(value_of("x[i] / y[i]")) == machine.division
    assert costs.arithmetic(value_of("np.sqrt(x[i])")) == machine.root
    assert costs.arithmetic(value_of("unheard_of(x[i])")) == machine.call
    assert costs.arithmetic(value_of("x[i] ** y[i]")) == costs.of_function("power")


def test_functions_cost_what_their_texts_are_made_of():
    ordered = ["square", "np.sqrt", "exp", "tanh", "sin", "power", "gammaln"]
    assert sorted(ordered, key=costs.of_function) == ordered
    assert costs.of_function("np.sin") == costs.of_function("sin")


def test_of_pass():
    block = block_of("for i in range(n):\n    z[i] += x[i] * a\n    s += x[i]")
    machine = costs.MACHINE
    assert costs.of_pass(block) == pytest.approx(machine.store + 3 * machine.load + 3 * machine.operation)


def divided(x):
    """Its gradient divides by what the sum gave, entry by entry, for two loops."""
    z = x * 0.5
    s = np.sum(z)
    y = z / s
    return np.sum(y * y)


def twice(x):
    z = np.exp(x)
    return np.sum(z / np.sum(z))


@pytest.mark.parametrize("operation", [0.025, 1.0])
def test_rematerialisation_asks(monkeypatch, operation):
    """Products are computed again where they are cheaper than an array, and kept where they are not; exponentials are
    kept.
    """
    monkeypatch.setattr(costs, "MACHINE", costs.MACHINE._replace(operation=operation))
    compiled = gs.jit(divided)
    assert compiled(X) == pytest.approx(divided(X), rel=1e-14)
    assert ("z = np.empty" in compiled.lowered) == (operation == 1.0)
    compiled = gs.jit(twice)
    assert compiled(X) == pytest.approx(twice(X), rel=1e-14)
    assert compiled.lowered.count("exp(") == 1


def repeated(x, steps):
    s = 0.0
    for _t in range(steps):
        for i in range(x.shape[0]):
            s += np.exp(x[i])
    return s


@pytest.mark.parametrize(("load", "expected"), [(0.1, True), (1.0, False)])
def test_tables_ask(monkeypatch, load, expected):
    monkeypatch.setattr(costs, "MACHINE", costs.MACHINE._replace(load=load))
    compiled = gs.jit(repeated, static_argnums=1)
    assert compiled(X, 3) == pytest.approx(repeated(X, 3), rel=1e-13)
    assert ("table" in compiled.lowered) == expected


def test_threads_ask(monkeypatch):
    nest = block_of("for i in range(n):\n    z[i] = np.sin(x[i])")[0]
    before = threads.enough(nest).items[1].value
    monkeypatch.setattr(costs, "MACHINE", costs.MACHINE._replace(threads=4 * costs.MACHINE.threads))
    assert threads.enough(nest).items[1].value == 4 * before
