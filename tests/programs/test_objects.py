"""Programs that make objects of plain classes and dataclasses, and change them.

Each is checked against differences: gradient, jvp, second derivative; some compiled; the argument stays as it was.
"""

import copy
import dataclasses
import functools
from dataclasses import InitVar, dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from programs import checks
from programs.checks import POINTS

import gradscribe as gs


class Total:
    k = 2.0

    def __init__(self, t=0.0):
        self.t = t
        self.n = 0

    def add(self, v):
        self.t = self.t + v * v
        self.n += 1
        return self

    @property
    def mean(self):
        return self.t / self.n

    @property
    def twice(self):
        return self.t * 2

    @twice.setter
    def twice(self, v):
        self.t = v / 2


class Held:
    def __init__(self, x):
        self.a = x[0]
        self.b = x[1]
        self.held = [x[2], x[3]]

    def __iter__(self):
        return iter(self.held)


class Doubled:
    def __init__(self, x):
        self.x = x
        self.z = 1.0

    def __getitem__(self, k):
        return self.x[k] * 2

    def __len__(self):
        return len(self.x)


@dataclass
class Point:
    a: float
    b: float = 2.0


class FromArray(Point):
    def __init__(self, x):
        self.a = x[0] ** 2
        self.b = x[1]


@dataclass
class Squared:
    a: float

    def __init__(self, q):
        self.a = q * q


class Box(NamedTuple):
    a: float
    b: float

    def area(self):
        return self.a * self.b


@dataclass
class Kept:
    a: float
    held: list = field(default_factory=list)

    def __post_init__(self):
        self.c = self.a**2

    def push(self, v):
        self.held.append(v)
        return self


@dataclass
class WithConstant:
    a: float
    c: ClassVar[float] = 3.0
    b: float = 2.0


@dataclass
class WithInit:
    a: float
    s: InitVar[float]
    b: float = 1.0

    def __post_init__(self, s):
        self.b = self.a * s


@dataclass
class KeywordOnly:
    a: float
    b: float = field(default=2.0, kw_only=True)
    held: list = field(default_factory=lambda: [1.0], init=False)


@dataclass(slots=True)
class Slotted:
    a: float
    b: float = 2.0

    def up(self, v):
        self.a += v * v


@dataclass(frozen=True)
class Frozen:
    a: float
    b: float = 2.0

    def __post_init__(self):
        object.__setattr__(self, "b", self.a**2)


@dataclass
class Linear:
    w: float

    def out(self, x):
        return self.w * x


@dataclass
class Affine(Linear):
    b: float = 1.0

    def out(self, x):
        return super().out(x) + self.b


class Plain(Linear):
    def __init__(self, w, e):
        super().__init__(w)
        self.e = e


class Top:
    def __init__(s, x):
        s.v = x
        s.log = ["A"]

    def go(s, x):
        return s.v * x


class Left(Top):
    def __init__(s, x):
        super().__init__(x * 2)
        s.log.append("B")

    def go(s, x):
        return super().go(x) + 1


class Right(Top):
    def __init__(s, x):
        super().__init__(x**2)
        s.log.append("C")

    def go(s, x):
        return super().go(x) * 3


class Bottom(Left, Right):
    def __init__(s, x):
        super().__init__(x + 1)
        s.log.append("D")

    def go(s, x):
        return super().go(x) ** 2


class Number:
    w = 2.0
    tbl = {"a": 3.0}

    @classmethod
    def make(cls, v):
        return cls(v * cls.w)

    @staticmethod
    def sq(v):
        return v * v

    def __init__(s, v):
        s.v = v

    def __call__(s, u):
        return s.v * u

    def __matmul__(s, o):
        return s.v * o.v

    def __rmul__(s, o):
        return Number(s.v * o)

    def __mul__(s, o):
        return Number(s.v * (o.v if isinstance(o, Number) else o))

    def __neg__(s):
        return Number(-s.v)

    def __iadd__(s, o):
        s.v = s.v + o
        return s

    def __abs__(s):
        return abs(s.v)

    def __eq__(s, o):
        return s.v == o.v

    def __lt__(s, o):
        return s.v < o.v

    def __bool__(s):
        return bool(s.v > 0)

    def __float__(s):
        return float(s.v)

    def __getitem__(s, k):
        return s.v * k

    def __setitem__(s, k, v):
        s.v = s.v + k * v

    def __contains__(s, v):
        return v > s.v

    def __enter__(s):
        s.v = s.v * 2
        return s

    def __exit__(s, *a):
        s.v = s.v + 1

    @functools.cached_property
    def cube(s):
        return s.v**3


class Node:
    def __init__(s, v, held=None, r=None):
        s.v = v
        s.held = held
        s.r = r

    def tot(s):
        return s.v + (0.0 if s.held is None else s.held.tot() * 2) + (0.0 if s.r is None else s.r.tot() ** 2)


class Linked:
    def __init__(s, v, parent=None):
        s.v = v
        s.parent = parent
        s.kids = []
        if parent is not None:
            parent.kids.append(s)


class Model:
    def __init__(s, w):
        s.w = w
        s.h = []

    def loss(s, v):
        return s.w * v**3

    def fit(s, x):
        for v in x:
            s.w = s.w - 0.1 * gs.grad(lambda w: (w * v - 1) ** 2)(s.w)  # noqa: B023
        return s


class Vector:
    def __init__(s, v):
        s.v = v

    def __add__(s, o):
        return Vector(s.v + o.v)

    def __radd__(s, o):
        return Vector(s.v + o)

    def __str__(s):
        return f"V({s.v})"

    def __repr__(s):
        return "V"

    def __format__(s, spec):
        return "v"

    def __hash__(s):
        return 3

    def __eq__(s, o):
        return isinstance(o, Vector) and s.v == o.v


class Scaled:
    scale = 3.0
    tbl = np.array([1.0, 2.0])

    def __init__(s, w):
        s.w = w
        s.scale = s.scale * 2
        s.q = s.tbl * w

    def chain(s, v):
        s.w = s.w * v
        return s


class State(NamedTuple):
    p: float
    q: float


@dataclass
class Pose:
    p: float
    q: float

    def step(self, v):
        return Pose(self.p + v * self.q, self.q * 0.9)

    def step_(self, v):
        self.p, self.q = self.p + v * self.q, self.q * 0.9


class Sum:
    def __init__(s, t):
        s.t = t

    def add(s, v):
        s.t = s.t + v


# methods as values


def bound_method_in_a_loop(x):
    a = Total()
    add = a.add
    for v in x:
        add(v)
    return a.t * a.n


def bound_method_in_a_branch(x):
    a = Total()
    add = a.add
    if x[0] > 0.5:
        add(x[1])
    else:
        add(x[2] * 3)
    return a.t


def bound_methods_in_a_list(x):
    a = Total()
    fs = [a.add, a.add]
    for v in x:
        for g in fs:
            g(v)
    return a.t


def partial_of_a_list(x):
    held = [0.0]

    def put(held, v):
        held[0] = held[0] + v * v

    p = functools.partial(put, held)
    for v in x:
        p(v)
    return held[0]


def partial_in_a_branch(x):
    held = [x[0]]

    def put(held, v):
        held[0] = held[0] * v

    p = functools.partial(put, held)
    if x[0] > 0.5:
        p(x[1])
    return held[0]


def closure_over_an_object(x):
    a = Total()

    def add(v):
        a.add(v)

    for v in x:
        add(v)
    return a.t * a.mean


def object_as_a_default(x):
    a = Total()

    def add(v, a=a):
        return a.t * v

    s = 0.0
    for v in x:
        s = s + add(v)
        a.add(v)
    return s


def lambda_that_changes_an_object(x):
    a = Total()
    g = lambda v: a.add(v)  # noqa: E731
    for v in x:
        g(v)
    return a.t


def method_of_the_class(x):
    a = Total(x[0])
    Total.add(a, x[1])
    return a.t


def mapped_method(x):
    a = Total()
    list(map(a.add, [x[0], x[1]]))
    return a.t


def partial_with_an_object(x):
    import functools

    a = Sum(x[0])

    def g(v, a=None):
        a.add(v)
        return a.t

    h = functools.partial(g, a=a)
    s = 0.0
    for v in x:
        s = s + h(v)
    return s * a.t


def function_in_an_attribute(x):
    a = Sum(x[0])
    a.act = lambda u: u * a.t
    s = 0.0
    for v in x:
        s = s + a.act(v)
        a.t = a.t * 0.5
    return s


def method_in_an_attribute(x):
    a = Sum(x[0])
    b = Sum(x[1])
    a.cb = b.add
    for v in x:
        a.cb(v * v)
    if x[0] > 0.5:
        a.cb(x[2])
    return b.t**2


# equality, identity, copies


def equality_is_identity(x):
    a = Total(1.0)
    b = Total(1.0)
    return x[0] ** 2 if a == b else x[1] ** 3


def inequality_is_identity(x):
    a = Total(1.0)
    b = Total(1.0)
    return x[0] ** 2 if a != b else x[1] ** 3


def membership_is_identity(x):
    a = Total(1.0)
    b = Total(1.0)
    return x[0] ** 2 if a in [b] else x[1] ** 3


def identity(x):
    a = Total(1.0)
    b = Total(1.0)
    c = a
    return (x[0] ** 2 if a is b else x[1] ** 3) * (x[2] if a is c else x[3])


def shallow_copy(x):
    a = Total(x[0])
    b = copy.copy(a)
    b.add(x[1])
    return a.t * b.t


def deep_copy(x):
    a = Held(x)
    b = copy.deepcopy(a)
    b.held.append(x[0])
    return sum(a.held) * sum(b.held)


def shallow_copy_shares_a_list(x):
    a = Held(x)
    b = copy.copy(a)
    b.held.append(x[0] ** 2)
    b.a = 3.0
    return sum(a.held) * sum(b.held) * a.a


def equality_of_dataclasses(x):
    return x[0] ** 2 if Point(1.0) == Point(1.0) else x[1]


def equality_of_dataclasses_with_more(x):
    return x[0] ** 2 if Kept(1.0) == Kept(1.0) else x[1]


# the protocols of containers


def loop_over_an_object(x):
    s = 0.0
    for v in Held(x):
        s = s + v * v
    return s


def list_of_an_object(x):
    return sum(list(Held(x))) * x[0]


def unpacked_object(x):
    a, b = Held(x)
    return a * a * b


def starred_object(x):
    return np.sum(np.array([*Held(x)]) ** 2)


def comprehension_over_an_object(x):
    return sum(v * v for v in Held(x))


def membership_by_iteration(x):
    return x[0] if 5.0 in Held(x) else x[1] ** 2


def object_with_items(x):
    q = Doubled(x)
    s = 0.0
    for k in range(len(q)):
        s += q[k] ** 2
    return s * q[-1] + np.sum(q[1:])


def operators(x):
    a = Number.make(x[0])
    b = 2.0 * a * x[1]
    c = a
    a += x[2]
    a[2] = x[3]
    return (a @ (-b)) + c(x[0]) + Number.sq(a.v) + abs(b) + float(a) + a[3] * a.tbl["a"]


def comparisons_and_truth(x):
    a = Number(x[0])
    b = Number(x[1])
    s = 0.0
    if a == b:
        s = s + 1
    if a < b:
        s = s + a.v
    if a:
        s = s + b.v**2
    if 0.5 in a:
        s = s + a.v * b.v
    return s * max(a.v, b.v)


def cached_property_stays(x):
    a = Number(x[0])
    c = a.cube
    a.v = x[1]
    return c * a.cube


def sum_of_objects(x):
    return sum([Vector(x[0]), Vector(x[1])], Vector(0.0)).v ** 2 + sum([Vector(x[0]), Vector(x[1])]).v


# attributes


def property_that_writes(x):
    a = Total(x[0])
    a.twice = x[1]
    a.twice += x[2] * a.twice
    return a.t**2


def property_that_writes_in_a_loop(x):
    a = Total(x[0])
    for v in x:
        a.twice = a.twice * v
    return a.t**2


def class_attribute_under_an_own_one(x):
    a = Total(x[0])
    a.k *= x[1]
    b = Total()
    return a.k * b.k * a.t


def attributes_by_name(x):
    a = Number(x[0])
    setattr(a, "q", x[1])  # noqa: B010
    return (
        getattr(a, "q")  # noqa: B009
        * getattr(a, "zz", 3.0)
        * (x[2] if hasattr(a, "v") else 1.0)
        * (1.0 if hasattr(a, "nope") else x[3])
    )


def types_of_objects(x):
    a = Bottom(x[0])
    return (
        x[1] ** 2
        if type(a) is Bottom and isinstance(a, Right) and not isinstance(a, Number) and issubclass(type(a), Left)
        else x[2]
    )


def attributes_set_by_name(x):
    a = Total()
    for k, n in enumerate(["p", "q", "r"]):
        setattr(a, n, x[k] ** 2)
    return a.p * a.q + getattr(a, "r")  # noqa: B009


def class_attributes(x):
    a = Scaled(x[0])
    b = Scaled(x[1])
    return a.w * b.w * Scaled.scale


def array_of_the_class(x):
    a = Scaled(x[0])
    a.q[0] = x[1] ** 2
    return np.sum(a.q) * a.scale


def chained_methods(x):
    a = Scaled(x[0]).chain(x[1]).chain(x[2])
    b = a.chain(x[3])
    return a.w * b.w


def chained_methods_in_a_loop(x):
    a = Scaled(x[0])
    for v in x:
        a = a.chain(v)
    return a.w


def swapped_attributes(x):
    a = Total(x[0])
    a.u = x * 1.0
    a.v = np.zeros(4)
    for k in range(3):  # noqa: B007
        a.v[1:] = a.u[:-1] * 0.5
        a.u, a.v = a.v, a.u
    return np.sum(a.u**2) + np.sum(a.v)


def view_of_an_attribute(x):
    a = Total()
    a.u = x * 1.0
    v = a.u[1:]
    for w in x:
        v[0] = w * a.u[0]
        a.u[2] = a.u[2] + v[0]
    return np.sum(a.u**2) + v[1]


def array_in_an_attribute(x):
    h = Total()
    h.w = np.zeros(4)
    w = h.w
    for k in range(len(x)):
        h.w[k] = x[k] ** 2
        w += x
    return np.sum(h.w**2)


def augmented_array_in_an_attribute(x):
    h = Total()
    h.w = x * 1.0
    w = h.w
    h.w += x
    h.w *= w
    return np.sum(w)


def augmented_array_in_an_attribute_in_a_loop(x):
    h = Total()
    h.w = x * 1.0
    w = h.w
    for v in x:
        h.w *= v
        w[0] += v
    return np.sum(h.w * w)


def argument_in_an_attribute(x):
    h = Total()
    h.w = x
    h.w[0] = 2.0
    return np.sum(x**2)


def object_in_an_attribute(x):
    a = Total(x[0])
    h = Total()
    h.inner = a
    for v in x:
        h.inner.add(v)
        a.t = a.t * 0.5
    return a.t


# dataclasses and named tuples


def subclass_with_its_own_init(x):
    d = FromArray(x)
    return d.a * d.b


def dataclass_with_its_own_init(x):
    return Squared(x[0]).a * x[1]


def named_tuple_replaced_in_a_loop(x):
    q = Box(1.0, x[0])
    for v in x:
        q = q._replace(a=q.a + v * q.b)
    return q.area()


def named_tuple_made_anew_in_a_loop(x):
    q = Box(1.0, x[0])
    for v in x:
        q = Box(q.b * v, q.a)
    return q.area() + sum(q)


def dataclass_changed_in_a_loop(x):
    d = Point(x[0])
    e = d
    for v in x:
        d.a = d.a * v + d.b
    return e.a


def default_factory(x):
    d = Kept(x[0])
    d.push(x[1]).push(x[2])
    e = Kept(x[3])
    e.push(d.c)
    return sum(d.held) * sum(e.held) * e.c


def default_factory_in_a_loop(x):
    d = Kept(x[0])
    for v in x:
        d.push(v * d.a)
    return sum(d.held) * d.c


def class_variable(x):
    d = WithConstant(x[0], x[1])
    return d.a * d.b**2 * d.c


def variable_of_post_init(x):
    d = WithInit(x[0], x[1])
    return d.b**2 * d.a


def keyword_only_field(x):
    d = KeywordOnly(x[0], b=x[1])
    d.held[0] = x[2]
    return d.a * d.b**2 * d.held[0]


def slots(x):
    d = Slotted(x[0])
    for v in x:
        d.up(v)
    return d.a * d.b


def frozen_with_post_init(x):
    d = Frozen(x[0])
    return d.b * x[1]


def inherited_dataclass(x):
    c = Affine(x[0], x[1])
    return c.out(x[2]) ** 2


def plain_class_on_a_dataclass(x):
    p = Plain(x[0], x[1])
    return p.out(x[2]) * p.e


def diamond(x):
    d = Bottom(x[0])
    assert d.log == ["A", "C", "B", "D"]
    return d.go(x[1])


def named_tuple_and_a_list(x):
    s = State(x[0], x[1])
    h = []
    for v in x:
        s = s._replace(p=s.p * 0.5 + v * s.q)
        h.append(s.p)
    return s.p * s.q + sum(h)


def dataclass_made_anew_in_a_loop(x):
    s = Pose(x[0], x[1])
    for v in x:
        s = s.step(v)
    return s.p * s.q


def dataclass_changed_through_an_alias(x):
    s = Pose(x[0], x[1])
    r = s
    for v in x:
        s.step_(v)
    return r.p * r.q


def dataclasses_replace(x):
    s = Pose(x[0], x[1])
    r = dataclasses.replace(s, p=x[2])
    for v in x:
        s = dataclasses.replace(s, q=s.q * v)
    return s.p * s.q * r.p


def best_of_a_while_loop(x):
    s = Pose(x[0], x[1])
    k = 0
    best = s
    while k < 4:
        s = s.step(x[k])
        k += 1
        if s.p > best.p:
            best = s
    return best.p * best.q


# aliases, loops and branches


def swapped_objects(x):
    a = Total(x[0])
    b = Total(x[1])
    for v in x:
        a.t = a.t * v
        a, b = b, a
    return a.t + 2 * b.t


def replaced_object(x):
    a = Total(x[0])
    c = a
    for v in x:
        a = Total(a.t * v)
    return a.t + c.t**2


def replaced_object_that_was_shared(x):
    a = Total(x[0])
    b = a
    for v in x:
        a = Total(a.t + v * b.t)
        b.t = b.t * v
    return a.t + b.t


def objects_in_a_dictionary(x):
    d = {"a": Total(x[0]), "b": Total(x[1])}
    for v in x:
        d["a"].add(v)
        for k in d:
            d[k].t = d[k].t * 1.1
    return d["a"].t * d["b"].t * d["a"].n


def object_in_a_list_and_by_name(x):
    a = Total(x[0])
    held = [a, Total(x[1]), a]
    for v in x:
        held[0].add(v)
        held[2].t *= 0.9
        a.t = a.t + held[1].t
    return held[2].t


def objects_from_a_helper(x):
    def mk(v):
        q = Total(v)
        q.add(v)
        return q

    a = mk(x[0])
    b = mk(x[1])
    b.add(a.t)
    return a.t * b.t


def tree(x):
    t = Node(x[0], Node(x[1]), Node(x[2], Node(x[3])))
    return t.tot()


def tree_changed_in_a_loop(x):
    t = Node(x[0], Node(x[1]), Node(x[2], Node(x[3])))
    for v in x:
        t.held.v = t.held.v * v
        t.r.held.v += t.held.v
    return t.tot()


def objects_that_know_their_parent(x):
    r = Linked(x[0])
    a = Linked(x[1], r)  # noqa: F841
    b = Linked(x[2], r)  # noqa: F841
    return sum(k.v * k.parent.v for k in r.kids)


def parents_in_a_branch(x):
    r = Linked(x[0])
    a = Linked(x[1], r)
    if x[0] > 0.5:
        a.v = x[2]
    else:
        r.kids[0].v = x[3]
    return a.v * a.parent.v


def shared_before_a_loop(x):
    a = Total(x[0])
    b = a
    s = 0.0
    for v in x:
        b.t = b.t * v
        s = s + a.t
        a = Total(a.t + v)
    return s


def shared_before_a_loop_and_changed(x):
    a = Total(x[0])
    b = a
    s = 0.0
    for v in x:
        a.t = a.t * v
        s = s + b.t
        a = Total(v)
    return s


def list_shared_before_a_loop(x):
    a = [x[0]]
    b = a
    s = 0.0
    for v in x:
        b[0] = b[0] * v
        s = s + a[0]
        a = [v]
    return s


def shared_after_a_branch(x):
    a = Total(x[0])
    c = Total(x[1])
    if x[0] > 0.5:
        c = a
    else:
        a = c
    c.add(x[2])
    return a.t


def list_of_objects(x):
    held = []
    for k in range(4):
        held.append(Total(x[k]))
    for a in held:
        a.add(2.0)
    held[0].add(held[1].t)
    return sum(a.t * a.n for a in held)


def changed_before_a_break(x):
    a = Total()
    for v in x:
        a.add(v)
        if a.t > 0.5:
            break
        a.t = a.t * 1.5
    return a.t * a.n


def changed_before_a_return(x):
    a = Total()
    for v in x:
        a.add(v)
        if a.t > 0.5:
            return a.t * v
    return a.t


def while_loop_with_three_exits(x):
    a = Total()
    k = 0
    while True:
        a.add(x[k])
        k += 1
        if k == 4:
            break
        if a.t > 0.7:
            a.t = a.t * 2
            break
        if k == 2:
            continue
        a.t = a.t + x[0]
    return a.t * a.mean


def changed_in_both_arms(x):
    a = Total(x[0])
    b = a
    if x[1] > 0:
        a.add(x[1])
    else:
        b.t = b.t * x[2]
        a.n += 5
    return a.t * a.n + b.t


def attribute_set_in_both_arms(x):
    a = Total(x[0])
    if x[1] > 0:
        a.q = x[1]
    else:
        a.q = x[2] * 2
    return a.q


def recursion_with_an_object(x):
    def go(a, k):
        if k == 0:
            return a
        a.add(x[k])
        return go(a, k - 1)

    return go(Total(x[0]), 3).t


def loops_without_passes(x):
    a = Total(x[0])
    for v in x[4:]:
        a.add(v)
    for k in range(0):  # noqa: B007
        a.add(x[1])
    return a.t**2


def gradient_inside(x):
    a = Total(x[0])

    def g(v):
        b = Total(v)
        for w in x:
            b.add(w * v)
        return b.t

    return gs.grad(g)(x[1]) * a.t


def gradient_of_a_method(x):
    m = Model(x[0])
    return gs.grad(m.loss)(x[1]) * m.w


def descent_in_a_method(x):
    return Model(x[0]).fit(x).w


def best_of_a_loop(x):
    best = Total(-10.0)
    for v in x:
        a = Total(v)
        if a.t > best.t:
            best = a
    return best.t**2


def best_of_a_loop_that_changes(x):
    best = Total(-10.0)
    a = Total(x[0])
    for v in x:
        a.t = a.t * 1.5 + v
        if a.t > best.t:
            best = a
    return best.t**2


def particles(x):
    ps = [Total(x[k]) for k in range(3)]
    for s in range(3):  # noqa: B007
        for p in ps:
            p.t = p.t * 0.9
        for i in range(3):
            for j in range(i):
                ps[i].t = ps[i].t + 0.1 * ps[j].t
    return sum(p.t**2 for p in ps)


def particles_in_a_while_loop(x):
    ps = [Total(x[k]) for k in range(3)]
    k = 0
    while k < len(x):
        for p in ps:
            p.add(x[k])
        k += 1
    return sum(p.t * p.n for p in ps)


# what is no number and changes in a loop


def text_that_changes(x):
    s = 0.0
    mode = "a"
    for v in x:
        if mode == "a":
            s = s + v
        else:
            s = s + v * v
        mode = "b"
    return s


def function_that_changes(x):
    def f1(v):
        return v

    def f2(v):
        return v * v

    s = 0.0
    op = f1
    for v in x:
        s = s + op(v)
        op = f2
    return s


def numpy_function_that_changes(x):
    s = 0.0
    op = np.sin
    for v in x:
        s = s + op(v)
        op = np.cos
    return s * op(x[0])


def none_at_first(x):
    s = 0.0
    last = None
    for v in x:
        if last is not None:
            s = s + v * last
        last = v
    return s


def text_read_after_the_loop(x):
    s = x[0]
    r = None
    for v in x:
        s = s * v
        r = "done"
    return s if r is None else s * 2


def text_in_an_attribute(x):
    k = Sum(0.0)
    k.mode = "a"
    for v in x:
        k.t = k.t + (v if k.mode == "a" else v * v)
        k.mode = "b"
    return k.t


def text_in_a_dictionary(x):
    k = {"t": 0.0, "mode": "a"}
    for v in x:
        k["t"] = k["t"] + (v if k["mode"] == "a" else v * v)
        k["mode"] = "b"
    return k["t"]


def function_in_a_tuple(x):
    p = (np.sin, 0.0)
    for v in x:
        p = (np.cos, p[1] + p[0](v))
    return p[1]


def flag(x):
    m = True
    s = 0.0
    for v in x:
        s = s + (v if m else v * v)
        m = False
    return s


HELPERS = ()
PROGRAMS = [
    f
    for f in list(globals().values())
    if getattr(f, "__module__", "") == __name__ and hasattr(f, "__code__") and f.__name__ not in HELPERS
]
COMPILED = [
    bound_method_in_a_loop,
    operators,
    comparisons_and_truth,
    array_in_an_attribute,
    dataclass_changed_in_a_loop,
    default_factory_in_a_loop,
    object_in_a_list_and_by_name,
    tree_changed_in_a_loop,
    while_loop_with_three_exits,
    particles,
    descent_in_a_method,
    text_that_changes,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("point", checks.some_fast(range(2)))
def test_derivatives(f, point):
    checks.derivatives(f, POINTS[point])


@pytest.mark.slow
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_second_derivative(f):
    checks.second_derivative(f, POINTS[0])


@pytest.mark.slow
@pytest.mark.parametrize("f", COMPILED, ids=lambda f: f.__name__)
def test_compiled(f):
    checks.compiled(f)


@pytest.mark.slow
@pytest.mark.parametrize("f", COMPILED, ids=lambda f: f.__name__)
def test_float32(f):
    checks.float32(f)


@dataclasses.dataclass
class Spring:
    stretch: float
    STIFFNESS: ClassVar[float] = 2.0


def test_a_field_of_the_class_is_no_part_of_an_object():
    def energy(spring):
        return spring.stretch ** 2 * spring.STIFFNESS

    for gradient in (gs.grad(energy), gs.jit(gs.grad(energy))):
        assert gradient(Spring(3.0)) == Spring(12.0)
    assert gs.grad(lambda x: energy(Spring(2 * x)))(3.0) == 48.0
