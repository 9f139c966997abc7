"""Gradients of sums over batches, of functions whose loops end by themselves: two loops over the examples each."""
import numpy as np

import gradscribe as gs

RNG = np.random.default_rng(7)
X = np.abs(RNG.standard_normal(60)) + 0.2


def orbit(x, e):
    """Steps of a length of their own, kept vectors, and a branch that gives other names."""
    t, h = 0.0, 0.1
    v = np.array([x, 0.3])
    while t < 2.0:
        k = np.array([v[1], -e * v[0]])
        n = v + h * k
        if np.abs(h * k[0]) < 0.3:
            v = n
            t = t + h
            h = h * 1.2
        else:
            h = h * 0.5
    return v[0] * v[1]


def inner_loops(x):
    s = x
    for k in range(5):
        n = 0
        while s > 1.0 and n < 6:
            s = s * 0.7 if s < 4 else np.sqrt(s)
            n += 1
        s = s + x * k
    return s


def deeper_loops(x):
    s = x
    for k in range(3):
        for j in range(2):
            while s > 1.0:
                s = s * 0.6 - 0.1 * x * j
        s = s + x * k
    return s


def thrice(x):
    s = x
    m = 0
    while m < 3:
        while s < 5.0:
            s = s * 1.5 + 0.1
        s = s / (3.0 + m)
        m += 1
    return s


def newton(a):
    y = 1.0
    while np.abs(y * y - a) > 1e-9:
        y = 0.5 * (y + a / y)
    return y


def grown(x):
    y = x
    while np.sum(y * y) < 10.0:
        y = y + np.sin(y) * 0.5 + 0.1
    return np.sum(y ** 3)


def two_numbers(x):
    a, b = x, 1.0
    while a * b < 20:
        a = a * b + 0.5
        b = b * 1.1 + a * 0.1
    return a * b


def branches(x):
    y = np.exp(x) if x > 0 else x * x
    while y > 1:
        y = y * 0.5 * x if x > 0.5 else y * 0.6
    return y


def gone_through(x):
    total = 0.0
    for i in range(len(x)):
        total += newton(x[i])
    return total


def swapped(x):
    """Each pass gives both vectors the other's name, and then one of them new entries."""
    a = np.array([x, 1.0])
    b = np.array([0.5, x])
    while a[0] < 4.0:
        c = a * 1.2 + b
        a, b = c, a
    return np.sum(a * b)


def mixed_names(x):
    """An array of the last pass goes on under one name or another."""
    v, u, k = np.array([x, 1.0, x * x]), np.zeros(3), 0
    while np.sum(v) < 30 and k < 8:
        w = np.zeros(3)
        for i in range(3):
            w[i] = v[i] + u[(i + 1) % 3] + 0.5
        if w[0] > 2:
            u = v
            v = w
        else:
            v = w
        w[0] += 0.25
        k += 1
    return np.sum(v * v) + u[1]


def rows_of_a_matrix(x):
    m = np.array([[x, 1.0], [0.5, x]])
    r, k = m[0], 0
    while m[0, 0] < 6 and k < 7:
        r = m[1]
        m = m @ np.array([[1.1, 0.2], [0.1, 0.8]]) + 0.3
        k += 1
    return np.sum(r) * m[1, 1]


def entries_set(x):
    """A vector of the pass before is read while one entry of the next is set."""
    v, k = np.array([x, 1.0]), 0
    while k < 4 and v[0] < 9:
        a = v
        w = v * 1.1
        w[0] = a[1] + x
        v = w
        v[1] = v[1] + a[0]
        k += 1
    return v[0] * v[1]


def best_kept(x):
    v, k = np.array([x, 2.0]), 0
    best = v
    while k < 6 and v[1] < 40:
        v = v * np.array([1.2, 1.5])
        if v[0] * v[1] > 5 and v[0] < 3:
            best = v
        v[0] = v[0] - 0.1 * best[1]
        k += 1
    return best[0] * best[1] + v[0]


def with_weights(x, w, b):
    """Weights that all examples share, in each step of each."""
    h, t, dt = np.tanh(x), 0.0, 0.3
    while t < 1.5:
        k = np.tanh(w @ h + b)
        if np.sum(k * k) > 0.5:
            dt = dt * 0.9
        h = h + dt * k
        t = t + dt
    return np.sum(h * h)


def weighted(n, width):
    """What is asked of the gradient for so many examples and so wide a layer."""
    arrays = [RNG.standard_normal(s) * 0.5 for s in ((n, width), (width, width), (width,))]
    return gs.value_and_grad(lambda x, w, b: np.sum(gs.vmap(with_weights, (0, None, None))(x, w, b)), (0, 1, 2)), arrays


def gradient_of(function, *axes):
    return gs.grad(lambda x, *others: np.sum(gs.vmap(function, (0, *axes))(x, *others) ** 2))


BATCHES = {
    "batch of orbits": (gradient_of(orbit, None), (X, 2.0)),
    "few orbits": (gradient_of(orbit, None), (X[:5], 2.0)),
    "batch of inner loops": (gradient_of(inner_loops), (X,)),
    "gradients of inner loops": (gs.vmap(gs.grad(inner_loops)), (X,)),
    "batch of deeper loops": (gradient_of(deeper_loops), (X,)),
    "batch of loops in loops": (gradient_of(thrice), (X,)),
    "batch of newtons": (gradient_of(newton), (X,)),
    "batch of one": (gradient_of(newton), (X[:1],)),
    "batch of none": (gradient_of(newton), (X[:0],)),
    "batch of vectors": (gradient_of(grown), (RNG.standard_normal((60, 3)),)),
    "batch in single precision": (gradient_of(two_numbers), (X.astype(np.float32),)),
    "batch of branches": (gradient_of(branches), (X - 0.8,)),
    "shared weights": weighted(50, 3),
    "shared weights, wide": weighted(20, 9),
    "shared weights, one": weighted(1, 2),
    "shared weights, none": weighted(0, 2),
    "batch by a loop": (gs.grad(gone_through), (X,)),
    "batch of swaps": (gradient_of(swapped), (X,)),
    "batch of mixed names": (gradient_of(mixed_names), (X,)),
    "gradients of mixed names": (gs.vmap(gs.grad(mixed_names)), (X,)),
    "batch of rows of a matrix": (gradient_of(rows_of_a_matrix), (X,)),
    "gradients of rows of a matrix": (gs.vmap(gs.grad(rows_of_a_matrix)), (X,)),
    "batch of entries set": (gradient_of(entries_set), (X,)),
    "gradients of entries set": (gs.vmap(gs.grad(entries_set)), (X,)),
    "batch of best kept": (gradient_of(best_kept), (X,)),
    "gradients of best kept": (gs.vmap(gs.grad(best_kept)), (X,)),
}
