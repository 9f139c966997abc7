"""What a function reads from outside may be something else at the next call: a version is made for what it is then."""
import collections
import enum
import functools
import types

import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs
from gradscribe import transformed
from gradscribe.ast_transform.source.read import from_text

X = np.array([0.3, 0.4, 0.5])


class Settings:
    scale = 2.0

    @staticmethod
    def scaled(p):
        return np.sum(p) * Settings.scale

    @classmethod
    def doubled(cls, p):
        return np.sum(p) * cls.scale * 2


class Layer:
    def __init__(self):
        self.weights, self.times, self.activation = np.array([1.0, 2.0, 3.0]), 2, np.sin

    def __call__(self, p):
        return np.sum(self.activation(p * self.weights)) * self.times


class Kind(enum.Enum):
    LINEAR = 1
    SQUARE = 2


module = types.ModuleType("of_the_users")
module.scale = 2.0
module.function = lambda p: np.sum(p)
layer = Layer()
activation = np.tanh
functions = [np.sin]
kind = Kind.LINEAR
magnitude = abs
weighted = functools.partial(lambda k, p: np.sum(p) * k[0], [2.0])
named = functools.partial(lambda p, k: np.sum(p) * k["a"], k={"a": 2.0})


def rebind(name, value):
    globals()[name] = value


CHANGES = {
    "attribute of a class": (lambda p: np.sum(p) * Settings.scale, Settings, "scale", 5.0),
    "in a static method": (lambda p: Settings.scaled(p), Settings, "scale", 5.0),
    "in a class method": (lambda p: Settings.doubled(p), Settings, "scale", 5.0),
    "attribute of a module": (lambda p: np.sum(p) * module.scale, module, "scale", 5.0),
    "function of a module": (lambda p: module.function(p), module, "function", lambda p: np.sum(p * p)),
    "function of an object": (lambda p: layer(p), layer, "activation", np.cos),
    "number of an object": (lambda p: layer(p), layer, "times", 3),
    "array of an object": (lambda p: layer(p), layer, "weights", np.ones(3)),
    "the object itself": (layer, layer, "activation", np.cos),
    "a function of NumPy by a name": (lambda p: np.sum(activation(p)), None, "activation", np.sin),
    "a function of Python by a name": (lambda p: magnitude(p[0] - 1) * p[1], None, "magnitude", float),
    "a function in a list": (lambda p: np.sum(functions[0](p)), functions, 0, np.cos),
    "a member of an enumeration": (lambda p: np.sum(p) if kind is Kind.LINEAR else np.sum(p * p), None, "kind",
                                   Kind.SQUARE),
    "a list given beforehand": (lambda p: weighted(p), weighted.args[0], 0, 6.0),
    "a partial itself": (weighted, weighted.args[0], 0, 6.0),
    "a dictionary given beforehand": (named, named.keywords["k"], "a", 6.0),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_the_next_call_sees_it(what, wrap):
    f, holder, name, new = CHANGES[what]
    made = wrap(gs.value_and_grad(f))

    def put(value):
        if holder is None:
            rebind(name, value)
        elif isinstance(holder, (list, dict)):
            holder[name] = value
        else:
            setattr(holder, name, value)

    def check():
        value, gradient = made(X.copy())
        np.testing.assert_allclose(value, f(X.copy()), rtol=1e-13)
        np.testing.assert_allclose(gradient, differences(f, X), rtol=1e-6, atol=1e-8)

    old = globals()[name] if holder is None else holder[name] if isinstance(holder, (list, dict)) else getattr(
        holder, name)
    check()
    try:
        put(new)
        check()
    finally:
        put(old)
    check()


class Later:
    pass


class Base:
    def __init__(self, k):
        self.k = k

    def act(self, v):
        return v * self.k

    def __call__(self, v):
        return v + self.k


class Derived(Base):
    pass


LATER, QUEUE, HELD = Later(), collections.deque([2.0]), Derived(2.0)
TABLE = {"a": 2.0}
SHOWN = types.MappingProxyType(TABLE)


@pytest.mark.parametrize("f, change", [
    (lambda x: x[0] * getattr(LATER, "scale", 2.0), lambda: setattr(LATER, "scale", 5.0)),
    (lambda x: x[0] * (3.0 if hasattr(LATER, "more") else 2.0), lambda: setattr(LATER, "more", 1)),
    (lambda x: x[0] * QUEUE[0], lambda: QUEUE.appendleft(5.0)),
    (lambda x: x[0] * len(QUEUE), lambda: QUEUE.append(5.0)),
    (lambda x: x[0] * SHOWN["a"], lambda: TABLE.update(a=5.0)),
    (lambda x: HELD.act(x[0]), lambda: setattr(Derived, "act", lambda self, v: v * 9)),
    (lambda x: HELD(x[0]) ** 2, lambda: setattr(Derived, "__call__", lambda self, v: v + 9)),
    (lambda x: Base(x[0]).act(2.0), lambda: setattr(Base, "__init__", lambda self, k: setattr(self, "k", 9 * k))),
], ids=["getattr", "hasattr", "front", "length", "shown", "method", "call", "init"])
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_what_is_new_or_replaced(f, change, wrap):
    x = np.array([0.5, 0.7])
    g = wrap(gs.grad(f))
    g(x)
    init = Base.__init__
    try:
        change()
        np.testing.assert_allclose(g(x), differences(f, x), rtol=1e-7, atol=1e-9)
    finally:
        Base.__init__ = init
        for holder, name in ((LATER, "scale"), (LATER, "more"), (Derived, "act"), (Derived, "__call__")):
            if name in vars(holder):
                delattr(holder, name)
        QUEUE.clear()
        QUEUE.append(2.0)
        TABLE["a"] = 2.0


class Asked:
    """What Python's own functions ask depends on attributes."""

    def __init__(self):
        self.n, self.rows = 2, [2.0, 3.0]

    def __len__(self):
        return self.n

    def __getitem__(self, k):
        return self.rows[k]

    def __contains__(self, k):
        return k < self.n

    def __eq__(self, other):
        return self.n == other

    def __hash__(self):
        return 1

    def __float__(self):
        return float(self.n)


@pytest.mark.parametrize("f", [
    lambda x, asked: x[0] * len(asked()),
    lambda x, asked: x[0] * asked()[0],
    lambda x, asked: x[0] * (2.0 if 3 in asked() else 3.0),
    lambda x, asked: x[0] * (2.0 if asked() == 2 else 3.0),
    lambda x, asked: x[0] * float(asked()),
], ids=["len", "item", "in", "equal", "float"])
def test_what_python_asks_an_object(f):
    held = Asked()
    g = gs.grad(lambda x: f(x, lambda: held))
    x = np.array([0.5, 0.7])
    g(x)
    held.n = 5
    held.rows[0] = 7.0
    np.testing.assert_allclose(g(x), differences(lambda x: f(x, lambda: held), x), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("wrap", [gs.grad, lambda f: gs.jit(gs.grad(f))], ids=["eager", "compiled"])
def test_names_of_libraries_and_builtins_that_a_module_gives_another_meaning(wrap):
    text = "def f(x):\n    return sum(np.sin(x) * cos(x)) + len(x)"
    f = from_text(text, {"np": np, "cos": np.cos}, "<module>")
    module, df, x = f.__globals__, wrap(f), np.array([0.3, 0.4])
    for change, want in [({}, np.cos(2 * x)), ({"sum": lambda v: 2 * v[0]}, [2 * np.cos(0.6), 0.0]),
                         ({"cos": lambda v: v}, [2 * (np.cos(0.3) * 0.3 + np.sin(0.3)), 0.0]),
                         ({"np": types.SimpleNamespace(sin=np.square)}, [6 * 0.09, 0.0])]:
        module.update(change)
        np.testing.assert_allclose(df(x), want, rtol=1e-12)
    del module["sum"]
    np.testing.assert_allclose(df(x), 3 * x**2, rtol=1e-12)


class Doubling:
    def m(self, v):
        return v * 2

    def through(self, v):
        return self.m(v)

    @classmethod
    def of_the_class(cls, v):
        return v * 3


class Ninefold:
    def m(self, v):
        return v * 9


@pytest.mark.parametrize("wrap", [gs.grad, lambda f: gs.jit(gs.grad(f))], ids=["eager", "compiled"])
def test_a_method_that_an_object_gets_of_its_own(wrap):
    c = Doubling()
    of_object, of_argument = wrap(lambda x: c.m(x) + c.through(x) + c.of_the_class(x)), wrap(lambda x, o: o.m(x))
    assert of_object(0.5) == 7 and of_argument(0.5, c) == 2
    c.m = lambda v: v * 100
    assert of_object(0.5) == 203 and of_argument(0.5, c) == 100 and of_argument(0.5, Doubling()) == 2
    vars(c).update(m=lambda v: v * 10, of_the_class=lambda v: v)
    assert of_object(0.5) == 21 and of_argument(0.5, c) == 10
    del c.m
    assert of_object(0.5) == 5 and of_argument(0.5, c) == 2
    del c.of_the_class
    d = Doubling()
    of_object = wrap(lambda x: d.m(x))
    assert of_object(0.5) == 2
    d.__class__ = Ninefold
    assert of_object(0.5) == 9


class Slotted:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 1

    def __len__(self):
        return self.n

    def __getitem__(self, k):
        return self.n * (k + 1)

    def __iter__(self):
        return iter([self.n, 2])

    def __contains__(self, k):
        return k == self.n

    def __float__(self):
        return float(self.n)

    def __bool__(self):
        return self.n > 2

    def __lt__(self, other):
        return self.n < other


ELSEWHERE = Slotted()


class Elsewhere:
    """Its special methods read another object."""

    def __len__(self):
        return len(ELSEWHERE)

    def __getitem__(self, k):
        return ELSEWHERE[k]

    def __iter__(self):
        return iter(ELSEWHERE)

    def __contains__(self, k):
        return k in ELSEWHERE

    def __float__(self):
        return float(ELSEWHERE)

    def __bool__(self):
        return bool(ELSEWHERE)

    def __lt__(self, other):
        return ELSEWHERE < other


@pytest.mark.parametrize("cls", [Slotted, Elsewhere])
@pytest.mark.parametrize("wrap", [gs.grad, lambda f: gs.jit(gs.grad(f))], ids=["eager", "compiled"])
def test_what_python_is_asked_of_an_object_is_asked_again(cls, wrap):
    held = ELSEWHERE if cls is Slotted else Elsewhere()
    functions = [lambda x: x * len(held), lambda x: x * held[3], lambda x: x * sum(v for v in held),
                 lambda x: x * (1 if 1 in held else 5), lambda x: x * float(held), lambda x: x * 2 if held else x * 3,
                 lambda x: x * max(held), lambda x: x * 2 if held < 2 else x * 3]
    made = [wrap(f) for f in functions]
    for n in (1, 3, 1):
        ELSEWHERE.n = n
        assert [df(1.0) for df in made] == [f(1.0) for f in functions]


def test_the_text_of_an_object_is_made_again():
    held = types.SimpleNamespace(v=1)
    made = [gs.grad(lambda x: x * len(f"{held}")), gs.grad(lambda x: x * len(str(held)))]
    for held.v in (1, 77777):
        assert [df(1.0) for df in made] == [len(str(held))] * 2


FACTORS = (2.0, (3.0, 4.0))
STEPS = [1.0, 2.0]


def scaled(x):
    return x * FACTORS[1][0] + STEPS[0]


def shifted(x):
    return x + STEPS[0] * FACTORS[0]


def test_a_name_that_is_read_often_is_checked_once(monkeypatch):
    """Functions of one module read the same names; a tuple of numbers cannot change in place."""
    checked, make = [], transformed._guard

    def counted(holder, name, value):
        checked.append(name)
        return make(holder, name, value)
    monkeypatch.setattr(transformed, "_guard", counted)

    def f(x):
        for _ in range(3):
            x = scaled(shifted(scaled(scaled(x))))
        return shifted(scaled(x))

    made = gs.grad(f)
    assert made(1.0) == 3.0 ** 10
    assert sorted(set(checked)) == sorted(checked)
    assert {"FACTORS", "STEPS", "scaled"} <= set(checked)
    value = gs.value_and_grad(scaled)
    assert value(1.0) == (4.0, 3.0)
    STEPS[0] = 5.0
    try:
        assert value(1.0) == (8.0, 3.0)
    finally:
        STEPS[0] = 1.0
    monkeypatch.setitem(globals(), "FACTORS", (2.0, (7.0, 4.0)))
    assert value(1.0) == (8.0, 7.0) and made(1.0) == 7.0 ** 10
