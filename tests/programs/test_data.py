"""Programs that keep values in lists, dictionaries and iterators.

Each is checked against differences: gradient, jvp, second derivative; some compiled; the argument stays as it was.
"""
import collections
import functools
import itertools
import operator
from typing import NamedTuple

import numpy as np
import pytest
from programs import checks

import gradscribe as gs

POINTS = [np.array([0.9, 0.3, 0.7]), np.array([0.3, 0.7, 0.9])]
WEIGHTS = {"b": 2.0, "a": 3.0, "c": 5.0}
BY_WEIGHT = operator.itemgetter(1)


class Pair(NamedTuple):
    name: str
    value: float


# dictionaries

def dict_update(x):
    d = {"a": x[0]}
    d.update(b=x[1] ** 2)
    d.update({"a": x[2], "c": x[0]})
    d.update([("d", x[1] * x[0])])
    return d["a"] * d["b"] + d["c"] * d["d"]


def dict_update_in_a_branch(x):
    d = {"a": x[0], "b": x[1]}
    if x[0] > 0.5:
        d.update(a=x[1] ** 2)
    else:
        d["a"] = 3 * x[2]
    return d["a"] * d["b"]


def dict_setdefault(x):
    d = {"a": x[0]}
    d.setdefault("a", x[1])
    d.setdefault("b", []).append(x[2])
    d.setdefault("b", []).append(x[1] ** 2)
    return d["a"] * d["b"][0] + d["b"][1] + len(d["b"])


def dict_pop(x):
    d = {"a": x[0], "b": x[1], "c": x[2]}
    k, last = d.popitem()
    y = d.pop("a") * d.pop("z", 2.0) + d.pop("y", x[1] * x[2])
    return y * last + len(d) * d["b"] if k == "c" else 0.0


def dict_copy_is_another(x):
    d = {"a": x[0]}
    e, f = d.copy(), d
    e["a"] = x[1] ** 2
    f["b"] = x[2]
    return d["a"] * e["a"] + d["b"] * len(d) + len(e)


def dict_clear(x):
    d = {"a": x[0]}
    e = d
    d.clear()
    e["z"] = x[1] ** 2
    return d["z"] * (1 + len(d)) + d.get("a", x[0] * x[2])


def dict_delete(x):
    d = {"a": x[0], "b": x[1] ** 2, "c": x[2]}
    del d["a"]
    return sum(d[k] for k in d) * len(d)


def dict_fromkeys(x):
    d = dict.fromkeys(["a", "b"], x[0] ** 2)
    e = dict.fromkeys("pq")
    d["a"] = x[1]
    return d["a"] * d["b"] if e["p"] is None else x[0]


def dict_union(x):
    d = {"a": x[0], "b": x[1]}
    e = d | {"b": x[2] ** 2, "c": x[0]}
    f = d
    d |= {"a": x[1] ** 2}
    return e["a"] * e["b"] + f["a"] * d["b"] + e["c"]


def dict_order(x):
    d = {"b": x[0], "a": x[1]}
    d["c"] = x[2]
    total = 0.0
    for n, k in enumerate(reversed(d)):
        total += (n + 1) * d[k] ** 2
    for n, (_, v) in enumerate(reversed(d.items())):
        total += (n + 2) * v
    for n, k in enumerate(sorted(d)):
        total *= 1 + n * d[k]
    return total


def dict_sorted_items(x):
    d = {"b": x[0], "a": x[1], "c": x[2]}
    t = 0.0
    for k, (name, v) in enumerate(sorted(d.items(), reverse=True)):
        t += (k + 1) * v ** 2 * (name in d) * ("z" not in d)
    for k, (_, v) in enumerate(sorted(d.items(), key=lambda item: WEIGHTS[item[0]])):
        t += (k + 1) * v
    return t


def dict_views_are_live(x):
    d = {"a": x[0]}
    values, items = d.values(), d.items()
    d["b"] = x[1] ** 2
    d["a"] = x[2]
    return sum(values) * len(items)


def dict_of_lists(x):
    d = {"a": [x[0]], "b": [x[1]]}
    same = d["a"]
    d["a"] += [x[2] ** 2]
    d["b"] *= 2
    return same[1] * sum(d["b"]) + len(same)


def dict_changed_while_read(x):
    d = {"a": x[0], "b": x[1], "c": x[2]}
    for k in d:
        d[k] = d[k] ** 2
    for k in list(d):
        if k != "b":
            del d[k]
    return d["b"] * len(d)


def dict_comprehended(x):
    d = {k: v ** 2 for k, v in zip("aba", [x[0], x[1], x[2]])}
    return d["a"] * d["b"] * len(d)


def default_dict(x):
    groups = collections.defaultdict(list)
    for k, v in zip("aba", [x[0], x[1], x[2]]):
        groups[k].append(v)
    sums = collections.defaultdict(float)
    for k, vs in groups.items():
        for v in vs:
            sums[k] += v * len(vs)
    seen = sums["none"]
    return sums["a"] ** 2 + sums["b"] + len(sums) * seen + len(sums) * x[0]


def counter(x):
    n = collections.Counter("abracadabra")
    n.update("cc")
    (first, most), (second, _) = n.most_common(2)
    return x[0] ** 2 * n["a"] + x[1] * most + (x[2] if (first, second) == ("a", "c") else 0.0) * (n["z"] + n.total())


def ordered_dict(x):
    d = collections.OrderedDict([("a", x[0]), ("b", x[1])], c=x[2])
    d.move_to_end("a")
    _, first = d.popitem(last=False)
    return first ** 2 * list(d.values())[0] + list(d.values())[1]


# lists and tuples

def list_insert_and_pop(x):
    v = [x[0], x[1]]
    v.insert(0, x[2] * 2)
    v.insert(-1, 3.0)
    w = v
    y = v.pop(1) ** 2
    return y * w[0] + w[1] * w[-1] + len(w)


def list_places(x):
    names, v = ["a", "b", "a"], [x[0], x[1], x[2]]
    names.remove("a")
    same = v[1]
    v.remove(v[0])
    t = (1, 2, 2)
    return v[names.index("b")] ** 2 * names.count("a") + v.index(same) + v[1] * t.index(2) * t.count(2) * ("b" in names)


def list_reverse_and_extend(x):
    v = [x[0], x[1]]
    w = v.copy()
    v.extend([x[2] ** 2])
    v.extend(k * x[0] for k in range(2))
    v.reverse()
    w.clear()
    return v[0] * 2 + v[1] * 3 + v[2] * v[3] + v[4] ** 2 + len(w)


def list_delete(x):
    v = [x[0], x[1], x[2], x[0] * x[1], x[1] ** 2]
    del v[1]
    del v[-2:]
    return v[0] ** 2 * v[-1] + len(v)


def list_slices(x):
    v = [x[0], x[1], x[2]]
    w = v
    v[1:2] = [x[0] * 2, x[1] ** 2]
    v[::2] = (x[2], x[2] ** 2)
    return w[0] * w[1] + w[2] * w[3] + len(w)


def list_arithmetic(x):
    v = [x[0]] * 2 + [x[1] ** 2] + 2 * [x[2]]
    w = v
    v *= 2
    t = (x[0],) * 2 + (x[1],)
    return sum(k * e for k, e in enumerate(w)) * t[1] + t[-1] + len(w)


def list_compared(x):
    a, b = [1, "a", x[0]], [1, "a", x[0]]
    b[2] = a[2]
    y = x[0] ** 2 if a == b else x[1]
    z = x[1] if [1, 2] < [1, 3] and (1, "a") != (1, "b") and [x[0]] != [] else x[2]
    return y * z


def list_sort(x):
    pairs = [("b", x[0]), ("a", x[1]), ("c", x[2])]
    pairs.sort(key=lambda p: p[0], reverse=True)
    words = sorted(["bb", "a", "cc"], key=len)
    twice = sorted([("b", x[0]), ("a", x[1])])
    stable = sorted([(1, x[0]), (0, x[1]), (1, x[2])], key=operator.itemgetter(0), reverse=True)
    return pairs[0][1] ** 2 * pairs[1][1] + words.index("cc") * twice[0][1] + stable[0][1] * stable[1][1] ** 2


def list_walked_and_changed(x):
    v = [x[0], x[1], x[2]]
    for k, e in enumerate(v):
        v[k] = e ** 2
    for e in list(v):
        v.append(e * x[0])
    for k in range(1, len(v)):
        v[k] += v[k - 1]
    return v[-1]


def lists_walked_and_changed(x):
    a, b, t = [x[0]], [x[1]], 0.0
    for v in [a, b]:
        v[0] = v[0] ** 2
        if x[2] > 0.8:
            t = t + v[0]
        else:
            v.append(v[0]) if False else None
    return a[0] * b[0] + t


def list_changed_by_a_closure(x):
    held = [x[0]]

    def put(v):
        held[0] = held[0] * v

    if x[0] > 0.5:
        put(x[1])
    put(x[2])
    return held[0] ** 2


def lists_chosen_by_a_branch(x):
    push = None
    if x[0] > 0.5:
        out = [x[0] ** 2]
    else:
        out = [x[1]]
    out.append(x[2])
    push = out.append
    for k in range(2):
        t = x[k] if x[k] > 0.5 else 1.0
        if x[k] > 0.5:
            t = t * x[k]
        push(t)
    return out[0] * out[1] + out[2] * out[3]


def list_and_a_call_with_a_branch(x):
    bend = lambda v, k=2: v * k if v > 0.5 else v ** 2            # noqa: E731
    v, d = [], {}
    for k in range(3):
        v.append(bend(x[k], k=3))
        d["same"] = {"list": v, "bent": bend(x[k])}
    v[0] = v[0] * 2
    return d["same"]["list"][0] * v[1] + d["same"]["bent"]


def deque_queue(x):
    q = collections.deque([x[0], x[1]])
    q.appendleft(x[2])
    q.append(x[0] ** 2)
    q.rotate(1)
    y = q.popleft() * q.pop()
    return y + q[0] * 3 + len(q)


def records(x):
    p = Pair("a", x[0])._replace(value=x[1] ** 2)
    d = p._asdict()
    best = max([p, Pair("b", x[2])], key=operator.attrgetter("name"))
    return d["value"] * best.value * len(p)


# texts

def texts_are_known(x):
    k, name, scale = 1, "a", 2.5
    d = {f"{name}_{k}": x[0], f"{name!r:>5}|{scale:.2f}": x[1] ** 2, "%s-%03d" % (name, k): x[2]}       # noqa: UP031
    d["{}{n:+d}".format("k", n=k)] = x[0] * x[1]
    d[", ".join(f"{n}" for n in range(2))] = 3.0
    y = d["a_1"] * d["  'a'|2.50"] + d["a-001"] * d["k+1"]
    return y * len(f"{len(d)}{k == 1}") * d["0, 1"]


def texts_ask(x):
    names = "w1,b1,w2".split(",")
    total = 0.0
    for k, name in enumerate(names):
        if name.startswith("w") and name.upper().endswith(("1", "2")) and name[1:].isdigit():
            total += x[k] ** 2 * int(name[1]) * (ord(name[0]) - ord("v"))
    return total * len(str(12) + repr("a") + chr(97)) + x[1] * "abcab".count("a") * "abc".index("c")


# builtins

def builtin_extremes_by_key(x):
    a = max([x[0], x[1], x[2]], key=lambda v: -v)
    name, v = min([("b", x[0]), ("a", x[1])], key=lambda p: WEIGHTS[p[0]])
    loss, w = min(((v - 0.5) ** 2, v) for v in [x[0], x[1], x[2]])if False else (x[0], x[1])
    return a ** 2 * v + loss * w * len(name) + max([], default=x[2])


def builtin_choice_of_pairs(x):
    pairs = [((x[k] - 0.65) ** 2, x[k] * (k + 1)) for k in range(3)]
    loss, value = min(pairs, key=lambda p: p[0])
    return loss * 3 + value ** 2


def builtin_sums(x):
    return sum([x[0], x[1]], 0.5) + sum(v ** 2 for v in [x[1], x[2]]) + sum([[x[0]], [x[2]]], [])[1] * sum([])


def builtin_tests(x):
    v = [x[0], x[1]]
    if any(e > 100 for e in v) or not all([e > -100 for e in v]) or any([]):
        return x[0] * 0.0
    return x[0] * x[1] ** 2 if all(k in WEIGHTS for k in "abc") else x[0]


def builtin_numbers(x):
    q, r = divmod(7, 3)
    whole, rest = divmod(x[0] * 3, 0.5)
    return x[0] * q + x[1] * r * round(2.6) + pow(x[2], 3) + rest ** 2 + whole * x[1] + abs(-x[0]) * pow(7, 2, 5) + \
        round(3.14159, 2) * x[1] + round(x[0] * 4) * x[2]


def builtin_iterators(x):
    it = iter([x[0], x[1]])
    a, b = next(it), next(it)
    rest = iter((x[2], x[0]))
    first = next(rest)
    return a * b ** 2 + next(it, 3.0) * first + sum(rest)


def builtin_zips(x):
    v = [x[0], x[1], x[2]]
    t = 0.0
    for (i, a), b in zip(enumerate(v, start=2), reversed(v), strict=True):
        t += i * a * b
    pairs = zip(v, "abc")
    w, names = zip(*pairs)
    return t * w[0] + len(names)


def builtin_maps(x):
    a = list(map(lambda p, q: p * q, [x[0], x[1]], [x[2], x[0], x[1]]))
    b = [v for v in filter(None, ["a", "", "b"])]
    c = list(filter(lambda v: v is not None, [x[0], None, x[1] ** 2]))
    u, v = map(operator.mul, a, c)
    return u * v + len(b) + sum(map(operator.neg, a))


def builtin_iterators_in_branches(x):
    it = iter([x[0], x[1], x[2]])
    square = (v * v for v in [x[0], x[1]])
    if x[0] > 0.5:
        t = next(it) ** 2
    else:
        t = next(it)
    return t * next(it) + next(square) * sum(square) + max({"a": 1, "b": 2}, key={"a": 3, "b": 4}.get).count("b")


def builtin_membership(x):
    n = len(x)
    y = x[0] if n in (1, 3) and 2 in range(3) and 5 not in range(0, 9, 2) else x[1]
    return y ** 2 * (3 in range(n + 1)) * isinstance({}, dict) * (len([1]) in [1])


def builtin_round_the_types(x):
    return x[0] ** 2 * isinstance([], list) * isinstance((1,), tuple) * isinstance("a", (int, str)) * callable(len)


def builtin_dict_methods_as_functions(x):
    names = list(map(str.upper, ["a", "b"]))
    v = []
    list.append(v, x[0] ** 2)
    return v[0] * x[1] * (names == ["A", "B"])


# itertools, operator

def series_products(x):
    t = 0.0
    for a, b in itertools.product([x[0], x[1]], [x[2], 2.0]):
        t += a * b ** 2
    for i, j in itertools.product(range(3), repeat=2):
        t += x[i] * x[j] * (i - j)
    for i, j in itertools.product(range(len(x)), range(2)):
        t += x[i] ** 2 * x[j]
    return t


def series_choices(x):
    v = [x[0], x[1], x[2]]
    t = sum(a * b for a, b in itertools.combinations(v, 2)) * sum(a - b * b for a, b in itertools.permutations(v, 2))
    return t + sum(a * b for a, b in itertools.combinations_with_replacement(v, r=2))


def series_chains(x):
    v, w = [x[0], x[1]], (x[2],)
    a = list(itertools.chain(v, w, [2.0]))
    b = list(itertools.chain.from_iterable([v, w]))
    c = [p * q for p, q in itertools.zip_longest(v, w, fillvalue=x[0] ** 2)]
    d = list(itertools.islice(a, 1, None, 2))
    return a[2] * b[0] * c[1] + d[0] * d[1]


def series_running(x):
    a = list(itertools.accumulate([x[0], x[1], x[2]], lambda p, q: p * q))
    b = list(itertools.accumulate([x[0], x[1]], initial=2.0))
    c = [q - p * p for p, q in itertools.pairwise([x[0], x[1], x[2]])]
    d = list(itertools.starmap(lambda p, q: p ** q, [(x[0], 2), (x[1], 3)]))
    return a[2] + a[1] * b[2] + c[0] * c[1] + d[0] * d[1] + functools.reduce(operator.mul, [x[0], x[1]], x[2])


def series_without_end(x):
    t = 0.0
    for k, v, w, c in zip(itertools.count(1, 2), [x[0], x[1], x[2]], itertools.cycle([x[0], 2.0]), itertools.repeat(3)):
        t += k * v * w * c
    for v, k in zip(x, itertools.count(5)):
        t += v ** 2 * k
    return t + sum(itertools.repeat(x[1], 3)) * sum(itertools.islice(itertools.count(2), 1, 4))


def series_by_key(x):
    t = 0.0
    rows = [("a", x[0]), ("a", x[1]), ("b", x[2])]
    for k, group in itertools.groupby(rows, key=BY_NAME):
        t += sum(v ** 2 for _, v in group) * ord(k)
    head = itertools.takewhile(lambda r: r[0] == "a", rows)
    tail = itertools.dropwhile(lambda r: r[0] == "a", rows)
    return t * 1e-2 + next(head)[1] * next(tail)[1]


BY_NAME = operator.itemgetter(0)


def operators(x):
    third = operator.itemgetter(2)
    get = operator.methodcaller("sum")
    both = operator.itemgetter("b", "a")({"a": x[0], "b": x[1] ** 2})
    return third(x) * get(x) + operator.pow(x[0], 2) * operator.truediv(x[1], x[2]) + both[0] * both[1] + \
        operator.getitem(x, 1) * operator.lt(1, 2)


# counted loops

def counted_indices(x):
    m, t = np.outer(x, x[:2]), 0.0
    for i, j in np.ndindex(m.shape):
        t += m[i, j] ** 2 * (i + 2 * j)
    for i, j, k in np.ndindex(2, 3, 2):
        t += x[j] * m[i, k]
    return t


def counted_indices_left_early(x):
    m, t = np.outer(x, x), 0.0
    for i, j in np.ndindex(m.shape):
        if i == j:
            continue
        if t > 0.9:
            break
        t += m[i, j] ** 2 + x[i]
    return t


def counted_entries(x):
    m, t = np.outer(x, x[:2]), 0.0
    for (i, j), v in np.ndenumerate(m):
        t += v ** 2 * (i + 1) * (j + 2)
    for (i,), v in np.ndenumerate(x):
        t += v * i
    return t


def counted_entries_that_are_written(x):
    m, t = np.outer(x, x), 0.0
    for (i, j), v in np.ndenumerate(m):
        if i + 1 < 3:
            m[i + 1, j] += v * x[j]
        t += v * (j + 1)
    return t


def counted_index_as_a_whole(x):
    m = np.outer(x, x)
    y = np.zeros((3, 3))
    for place in np.ndindex(m.shape):
        y[place] = m[place] ** 2
    return np.sum(y * np.arange(9.0).reshape(3, 3))


KINDS = ("dict", "default_", "counter", "ordered_", "list", "deque", "records", "texts_", "builtin_", "series_",
         "operators", "counted_")
PROGRAMS = {name: f for name, f in globals().items() if name.startswith(KINDS) and callable(f)}
COMPILED = """
    dict_update_in_a_branch dict_order default_dict list_slices lists_walked_and_changed list_changed_by_a_closure
    texts_are_known builtin_choice_of_pairs builtin_zips series_products series_without_end counted_indices
    counted_indices_left_early counted_entries counted_entries_that_are_written counted_index_as_a_whole
""".split()


def differences(f, x):
    """Central differences of a number or an array."""
    columns = [(np.asarray(f(x + 1e-6 * v)) - np.asarray(f(x - 1e-6 * v))) / 2e-6 for v in np.eye(x.size)]
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("point", checks.some_fast(range(len(POINTS)), len(POINTS)))
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(name, point):
    f, x = PROGRAMS[name], POINTS[point]
    kept, t = x.copy(), np.array([0.1, 0.2, 0.5])
    want = differences(f, x)
    df = gs.grad(f)
    np.testing.assert_allclose(df(x), want, atol=2e-6, rtol=1e-7)
    value, dot = gs.jvp(f, (x,), (t,))
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    np.testing.assert_allclose(dot, want @ t, atol=5e-6, rtol=1e-7)
    assert np.array_equal(x, kept)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives(name):
    f, x = PROGRAMS[name], POINTS[0]
    np.testing.assert_allclose(gs.hessian(f)(x), differences(gs.grad(f), x), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name):
    f = PROGRAMS[name]
    for x in POINTS:
        np.testing.assert_allclose(gs.jit(gs.grad(f))(x), gs.grad(f)(x), rtol=1e-12, atol=1e-13)
