# SPDX-License-Identifier: Apache-2.0
"""State in containers: lists, dicts, deques, tuples, classes, across loops and branches."""
import functools
import itertools
from collections import defaultdict, deque, namedtuple
from dataclasses import dataclass, replace

import numpy as np

R = np.random.default_rng(23)
CASES = []


def add(*args):
    def kept(f):
        CASES.append((f, args))
        return f
    return kept


@add(R.normal(size=4), 5)
def chebyshev_list(c, order):
    x = np.tanh(c)
    T = [np.ones(4), x]
    while len(T) < order:
        T.append(2 * x * T[-1] - T[-2])
    return sum(np.sum(t[0] * t) for t in T)


@add(R.normal(size=(3, 3)), 4)
def matrix_powers_list(A, n):
    powers = [np.eye(3)]
    for k in range(n):
        powers.append(powers[-1] @ A / (k + 1))
    series = np.sum(powers, axis=0)
    return np.trace(series) + powers[0][0] @ powers[1][0] + powers[-1][2, 1]


@add(R.normal(size=3), R.normal(size=(5, 3)))
def history_list_of_vectors(x0, U):
    xs = [np.array([1.0, 0.0, -1.0])]
    for u in U:
        prev = xs[-1]
        nxt = 0.8 * prev + x0 * u
        nxt[1:] -= 0.1 * prev[:-1]
        xs.append(nxt)
    X = np.stack(xs)
    return np.sum(X[::2] ** 2) + xs[0] @ xs[2]


@add(R.normal(size=6))
def deque_moving_average(x):
    window = deque([0.0, 0.0], maxlen=3)
    out = []
    for v in x:
        window.append(v)
        out.append(sum(window) / len(window))
    return np.dot(out, out)


@add(R.normal(size=(4, 2)))
def deque_rotate(P):
    q = deque(P)
    total = 0.0
    for k in range(5):
        q.rotate(1)
        head = q.popleft()
        total += (k + 1) * head[0] * head[1]
        q.append(head * 0.9)
    return total


@add({"mass": 1.2, "pos": R.normal(size=2), "vel": R.normal(size=2)}, 0.1)
def dict_state_update(body, dt):
    hist = {"energy": [], "x": []}
    s = {**body}
    for _ in range(6):
        r = np.linalg.norm(s["pos"])
        acc = -s["pos"] / r ** 3
        s["vel"] = s["vel"] + dt * acc
        s["pos"] = s["pos"] + dt * s["vel"]
        hist["energy"].append(0.5 * s["mass"] * s["vel"] @ s["vel"] - s["mass"] / r)
        hist["x"].append(s["pos"][0])
    return np.std(hist["energy"]) + hist["x"][-1]


@add([R.normal(size=(3, 4)), R.normal(size=(4, 4)), R.normal(size=(4, 1))], R.normal(size=(5, 3)))
def list_of_layers_with_skips(Ws, X):
    acts = [X]
    for i, W in enumerate(Ws):
        z = acts[-1] @ W
        if i < len(Ws) - 1:
            z = np.tanh(z)
        if len(acts) > 1 and acts[-1].shape == z.shape:
            z = z + acts[-1]
        acts.append(z)
    return np.mean(acts[-1] ** 2) + 0.1 * sum(np.abs(a).mean() for a in acts[1:-1])

Params = namedtuple("Params", "w b scale")


@add(Params(R.normal(size=3), R.normal(size=3), 0.7), R.normal(size=3))
def namedtuple_replace(p, x):
    for k in range(3):
        y = p.w * x + p.b
        p = p._replace(b=p.b * 0.9 + 0.1 * y, scale=p.scale * 1.1)
        if k == 1:
            p = Params(*[v * 1.01 for v in p])
    w, b, s = p
    return s * np.sum(w * b)


@dataclass(frozen=True)
class State:
    q: np.ndarray
    p: np.ndarray
    t: float = 0.0


@add(R.normal(size=2), R.normal(size=2))
def frozen_dataclass_leapfrog(q, p):
    s = State(q, p)
    def step(s, h):
        ph = s.p - h / 2 * np.sin(s.q)
        qn = s.q + h * ph
        return replace(s, q=qn, p=ph - h / 2 * np.sin(qn), t=s.t + h)
    states = [s]
    for _ in range(4):
        states.append(step(states[-1], 0.2))
    return sum(st.p @ st.p + st.t * st.q.sum() for st in states)


class Network:
    def __init__(self, sizes, params):
        self.layers = []
        start = 0
        for a, b in zip(sizes[:-1], sizes[1:]):
            W = params[start:start + a * b].reshape(a, b)
            start += a * b
            bias = params[start:start + b]
            start += b
            self.layers.append((W, bias))
    def __call__(self, x):
        for i, (W, b) in enumerate(self.layers):
            x = x @ W + b
            if i + 1 < len(self.layers):
                x = np.maximum(x, 0.1 * x)
        return x


@add(R.normal(size=3 * 4 + 4 + 4 * 2 + 2), R.normal(size=(6, 3)), np.array([0, 1, 1, 0, 1, 0]))
def flat_parameter_network(theta, X, y):
    net = Network([3, 4, 2], theta)
    z = net(X)
    z = z - z.max(axis=1)[:, None]
    p = np.exp(z) / np.exp(z).sum(1)[:, None]
    return -np.sum(np.log(p[range(len(y)), y]))


class Account:
    rate = 0.02
    def __init__(self, balance):
        self.balance = balance
        self.log = [balance]
    def deposit(self, v):
        self.balance += v
        self.log.append(self.balance)
        return self
    def accrue(self):
        self.balance *= 1 + self.rate
        return self


class Premium(Account):
    rate = 0.05
    def accrue(self):
        super().accrue()
        if self.balance > 12:
            self.balance -= 0.5
        return self


@add(10.0, R.uniform(0, 2, size=4))
def bank_accounts(b0, flows):
    accounts = [Account(b0), Premium(b0 / 2)]
    for k, f in enumerate(flows):
        a = accounts[k % 2]
        a.deposit(f).accrue()
        accounts[1 - k % 2].deposit(-f / 2)
    return sum(a.balance ** 2 for a in accounts) + accounts[0].log[1] * accounts[1].log[-1]


@add(R.normal(size=5))
def memoised_recursion(x):
    memo = {}
    def best(i):
        if i < 0:
            return 0.0
        if i in memo:
            return memo[i]
        memo[i] = max(best(i - 1), best(i - 2) + x[i])
        return memo[i]
    return best(4) ** 2


@add(R.normal(size=(3, 4)))
def lists_of_lists(A):
    grid = [[A[i, j] for j in range(4)] for i in range(3)]
    for i in range(1, 3):
        for j in range(1, 4):
            grid[i][j] += 0.5 * grid[i - 1][j] + 0.25 * grid[i][j - 1]
    t = [list(col) for col in zip(*grid)]
    t[0], t[-1] = t[-1], t[0]
    return sum(sum(row) ** 2 * (k + 1) for k, row in enumerate(t))


@add(R.normal(size=(3, 4)))
def shared_rows(A):
    row = [A[0, 0], A[0, 1]]
    rows = [row] * 3
    rows[1][0] = A[1, 1] * 2
    rows[2] = list(rows[0])
    rows[2][1] = 5.0
    a = A[1].copy()
    arrs = [a, a, A[2]]
    arrs[0][1] = 7 * arrs[1][0]
    arrs[1] *= 2
    return sum(sum(r) for r in rows) * arrs[0].sum() + arrs[2] @ arrs[1]


@add(R.uniform(0.5, 1.5, size=6))
def stack_machine(x):
    program = [("push", 0), ("push", 1), ("mul", None), ("push", 2), ("add", None), ("dup", None), ("mul", None), ("push", 3), ("sub", None)]
    stack = []
    for op, arg in program:
        if op == "push":
            stack.append(x[arg])
        elif op == "dup":
            stack.append(stack[-1])
        else:
            b, a = stack.pop(), stack.pop()
            stack.append({"add": a + b, "mul": a * b, "sub": a - b}[op])
    return stack.pop() ** 2


@add(R.uniform(0.5, 1.5, size=5), R.uniform(0.5, 1.5, size=5))
def queue_simulation(inter, service):
    t_arrive, free_at, waits = 0.0, 0.0, []
    for ia, s in zip(inter, service):
        t_arrive += ia
        start = max(t_arrive, free_at)
        waits.append(start - t_arrive)
        free_at = start + s
    return np.mean(waits) + free_at * np.max(waits)


@add(R.normal(size=8))
def merge_sort_iterative(x):
    runs = [[v] for v in x]
    while len(runs) > 1:
        merged = []
        for a, b in zip(runs[::2], runs[1::2]):
            out, i, j = [], 0, 0
            while i < len(a) and j < len(b):
                if a[i] <= b[j]:
                    out.append(a[i]); i += 1
                else:
                    out.append(b[j]); j += 1
            out += a[i:] + b[j:]
            merged.append(out)
        runs = merged
    return sum((k + 1) * v for k, v in enumerate(runs[0]))


@add(R.normal(size=7))
def bubble_sort(x):
    a = x.copy()
    n = len(a)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                swapped = True
        if not swapped:
            break
    return a @ np.arange(n) ** 2


@add(R.normal(size=7))
def insertion_sort(x):
    a = x.copy()
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return np.sum(a * np.arange(7) ** 2)


@add(R.normal(size=6))
def prefix_suffix_products(x):
    n = len(x)
    left, right = [1.0] * n, [1.0] * n
    for i in range(1, n):
        left[i] = left[i - 1] * x[i - 1]
    for i in range(n - 2, -1, -1):
        right[i] = right[i + 1] * x[i + 1]
    return sum(l * r for l, r in zip(left, right))


@add(R.normal(size=(5, 2)))
def convex_hull_perimeter(P):
    order = np.lexsort((P[:, 1], P[:, 0]))
    pts = [P[k] for k in order]
    def cross(o, a, b):
        return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])
    lower = []
    for p in pts:
        while len(lower) >= 2 and cross(lower[-2], lower[-1], p) <= 0:
            lower.pop()
        lower.append(p)
    total = 0.0
    for a, b in zip(lower[:-1], lower[1:]):
        total += np.hypot(*(b - a))
    return total


@add(R.uniform(1, 2, size=(4, 4)))
def bellman_ford_edges(W):
    edges = [(i, j) for i in range(4) for j in range(4) if i != j]
    dist = {v: np.inf for v in range(4)}
    dist[0] = 0.0
    for _ in range(3):
        changed = False
        for i, j in edges:
            if dist[i] + W[i, j] < dist[j]:
                dist[j] = dist[i] + W[i, j]
                changed = True
        if not changed:
            break
    return sum(dist[v] * (v + 1) for v in dist)


@add(R.normal(size=(6,)), R.normal(size=(3,)))
def defaultdict_accumulate(x, w):
    groups = defaultdict(list)
    sums = defaultdict(float)
    for k, v in enumerate(x):
        groups[k % 3].append(v)
        sums["even" if k % 2 == 0 else "odd"] += v ** 2
    return sum(w[k] * np.prod(vs) for k, vs in groups.items()) + sums["even"] * sums["odd"]


@add(R.normal(size=4))
def tuple_state_reduce(x):
    def fold(state, v):
        s, p, n = state
        return s + v, p * (1 + v), n + 1
    s, p, n = functools.reduce(fold, x, (0.0, 1.0, 0))
    acc = list(itertools.accumulate(x, lambda a, b: a * 0.5 + b))
    return s * p / n + acc[-1] ** 2 + sum(a * b for a, b in itertools.product(x[:2], x[2:]))


@add(R.normal(size=(3, 3)))
def permutations_determinant(A):
    total = 0.0
    for perm in itertools.permutations(range(3)):
        sign = 1
        for i in range(3):
            for j in range(i):
                if perm[j] > perm[i]:
                    sign = -sign
        term = sign
        for i, p in enumerate(perm):
            term *= A[i, p]
        total += term
    return total


@add(R.normal(size=(4, 4)))
def laplace_expansion_recursive(A):
    def det(rows, cols):
        if len(rows) == 1:
            return A[rows[0], cols[0]]
        r, rest = rows[0], rows[1:]
        return sum((-1) ** k * A[r, c] * det(rest, cols[:k] + cols[k + 1:]) for k, c in enumerate(cols))
    return det((0, 1, 2, 3), (0, 1, 2, 3))


@add(R.normal(size=5), 3)
def recursion_tree_depth(x, depth):
    def build(lo, hi, d):
        if d == 0 or hi - lo <= 1:
            return np.sum(x[lo:hi])
        mid = (lo + hi) // 2
        return build(lo, mid, d - 1) * 2 - build(mid, hi, d - 1) ** 2
    return build(0, 5, depth)


@add(R.normal(size=8))
def running_best_with_none(x):
    best = None
    for v in x:
        s = np.sin(v) * v
        if best is None or s > best:
            best = s
    return best ** 2


@add(R.normal(size=8))
def argmax_loop_with_index(x):
    best_i, best = 0, x[0]
    for i in range(1, len(x)):
        if x[i] > best:
            best_i, best = i, x[i]
    return best * x[best_i - 1] + best_i * x[0]


@add(R.normal(size=4), R.normal(size=4))
def alias_then_rebind(x, y):
    a = x
    b = a
    a = a + 1
    a[0] = y[0]
    c = b * 2
    d = c
    c += y
    c = c * 1.0
    c[1] = 0.0
    return (a * b).sum() + d @ c


@add(R.normal(size=(4, 3)))
def rows_as_views_in_list(A):
    A = A.copy()
    rows = [A[i] for i in range(4)]
    rows[0] += rows[1]
    rows[2][:] = rows[0] * A[3]
    for r in rows[1:]:
        r[0] *= 2
    A[1] = 1.0
    return A.sum() + rows[1] @ rows[2]


@add(R.normal(size=6))
def closure_over_mutable(x):
    state = {"n": 0, "sum": 0.0}
    log = []
    def push(v):
        state["n"] += 1
        state["sum"] += v / state["n"]
        log.append(state["sum"])
    for v in x:
        push(v * v)
    push(x[0])
    return log[-1] * log[2] + state["n"]


@add(R.normal(size=(5,)))
def list_of_arrays_resized(x):
    parts = []
    k = len(x)
    while k > 0:
        parts.append(np.cumsum(x[:k]))
        k -= 2
    longest = max(parts, key=len)
    return sum(p[-1] * len(p) for p in parts) + longest @ x


@add(R.normal(size=(3, 2)))
def enumerate_zip_reversed_nested(A):
    s = 0.0
    for i, (row, w) in enumerate(zip(A, (1.0, 2.0, 3.0)), start=1):
        for j, v in reversed(list(enumerate(row))):
            s = s * 0.9 + v ** i * w * (j + 1)
    for a, b, c in zip(A[:, 0], reversed(A[:, 1]), range(3)):
        s += a * b * c
    return s


@add(R.normal(size=(6,)))
def copy_semantics(x):
    import copy
    a = [x[0], [x[1], x[2]]]
    b = list(a)
    c = copy.deepcopy(a)
    b[1][0] = 10 * x[3]
    b[0] = x[4]
    c[1][1] = x[5] ** 2
    d = dict(u=a, v=c)
    e = dict(d)
    e["u"] = b
    return d["u"][0] * d["u"][1][0] + c[1][1] * c[0] + e["u"][0]
