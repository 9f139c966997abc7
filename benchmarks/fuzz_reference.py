"""Trees of numbers, and derivatives of a program by running it."""
import contextlib
import warnings

import numpy as np


def leaves_of(tree):
    if isinstance(tree, dict):
        return [leaf for k in tree for leaf in leaves_of(tree[k])]
    if isinstance(tree, (list, tuple)):
        return [leaf for t in tree for leaf in leaves_of(t)]
    return [tree]


def like(tree, leaves):
    """The tree with other leaves, taken from an iterator."""
    if isinstance(tree, dict):
        return {k: like(v, leaves) for k, v in tree.items()}
    if hasattr(tree, "_fields"):
        return type(tree)(*(like(v, leaves) for v in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(like(v, leaves) for v in tree)
    return next(leaves)


def flat(tree):
    parts = [np.ravel(np.asarray(leaf)) for leaf in leaves_of(tree)]
    return np.concatenate(parts) if parts else np.zeros(0)


def unflat(tree, vector):
    out, at = [], 0
    for leaf in leaves_of(tree):
        n = np.size(leaf)
        part = vector[at:at + n].reshape(np.shape(leaf))
        if np.ndim(leaf) == 0 and not isinstance(leaf, np.ndarray):
            part = part[()]
            part = float(part) if isinstance(leaf, float) and not np.iscomplexobj(part) else part
        out.append(part)
        at += n
    return like(tree, iter(out))


def steady(tree, bound=np.inf):
    """Real numbers, all finite."""
    leaves = [np.asarray(leaf) for leaf in leaves_of(tree)]
    return all(leaf.dtype.kind == "f" and np.all(np.isfinite(leaf)) and np.all(np.abs(leaf) < bound) for leaf in leaves)


class Kink(Exception):
    """Differences are not to be trusted here."""


@contextlib.contextmanager
def spreads_watched():
    """np.std of equal numbers is rounding, and so is its derivative: a Kink that no step of a difference sees."""
    std = np.std

    def watched(a, *args, **keywords):
        spread = std(a, *args, **keywords)
        if np.any(np.abs(spread) <= 1e-12 * np.max(np.abs(a), initial=0)):
            raise Kink
        return spread

    np.std = watched
    try:
        yield
    finally:
        np.std = std


@contextlib.contextmanager
def analytic():
    """NumPy's functions that go through the modulus of complex numbers, as analytic functions for a complex step."""
    def var(a, axis=None, ddof=0, keepdims=False):
        off = a - np.mean(a, axis=axis, keepdims=True)
        n = off.size // max(np.mean(off, axis=axis).size, 1)
        return np.sum(off * off, axis=axis, keepdims=keepdims) / (n - ddof)

    def std(a, *args, **keywords):
        return np.sqrt(var(a, *args, **keywords))

    def modulus(a):
        if np.any(np.abs(np.imag(a)) > 1e-15):          # no real number with a step: a complex one
            raise TypeError("the modulus of a complex number is not analytic")
        return np.where(np.real(a) < 0, -1, 1) * a
    def norm(a, *args, **keywords):
        if np.iscomplexobj(a):
            raise TypeError("the norm of complex numbers is not analytic")
        return size(a, *args, **keywords)
    size, np.linalg.norm = np.linalg.norm, norm
    own = {"var": var, "std": std, "abs": modulus, "absolute": modulus}
    before = {name: getattr(np, name) for name in own}
    for name, function in own.items():
        setattr(np, name, function)
    try:
        yield
    finally:
        np.linalg.norm = size
        for name, function in before.items():
            setattr(np, name, function)


def five_point(f, x, v, h):
    return (f(x - 2 * h * v) - 8 * f(x - h * v) + 8 * f(x + h * v) - f(x + 2 * h * v)) / (12 * h)


def difference(f, x, v):
    """Directional derivative and its error, from two steps; Kink where the second difference does not settle."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with spreads_watched():
            f0 = f(x)
        estimates = [five_point(f, x, v, h) for h in (2e-3, 1e-3, 2e-4)]
        bends = [(f(x + h * v) - 2 * f0 + f(x - h * v)) / h ** 2 for h in (2e-3, 1e-4, 1e-6)]
    scale = 1 + np.max(np.abs(estimates[-1]), initial=0)
    error = min(np.max(np.abs(estimates[0] - estimates[1]), initial=0),
                np.max(np.abs(estimates[1] - estimates[2]), initial=0))
    noise = 1e-14 * (1 + np.max(np.abs(f0), initial=0))
    if not np.all(np.isfinite(estimates)) or error > 1e-6 * scale:
        raise Kink
    for b, h in zip(bends[1:], (1e-4, 1e-6)):
        if np.max(np.abs(b), initial=0) > 8 * np.max(np.abs(bends[0]), initial=0) + 1e-2 * scale + 20 * noise / h ** 2:
            raise Kink
    best = 0 if np.max(np.abs(estimates[0] - estimates[1]), initial=0) <= np.max(np.abs(estimates[1] - estimates[2]),
                                                                                 initial=0) else 1
    return estimates[best + 1], error


def gradient(f, x, sizes, rng):
    """Gradient of a scalar function of a vector, and how far to trust it."""
    directions, at = [], 0
    for n in sizes:
        v = np.zeros(x.size)
        v[at:at + n] = rng.standard_normal(n)
        directions.append(v)
        at += n
    with warnings.catch_warnings(), np.errstate(all="ignore", over="raise"):
        warnings.simplefilter("ignore")
        try:
            f(x)
        except FloatingPointError:      # of what overflows, a derivative is zero times infinity
            raise Kink from None

    def beside(x):
        try:
            return f(x)
        except Exception:               # the program raises beside the point, not there
            raise Kink from None
    checks = [difference(beside, x, v) for v in directions if np.any(v)]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), analytic():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", np.exceptions.ComplexWarning)        # math.sin takes the real part
            g = np.array([np.imag(f(x + 1e-30j * e)) / 1e-30 for e in np.eye(x.size)]).reshape(x.size)
        scale = 1 + np.max(np.abs(g), initial=0)
        live = [v for v in directions if np.any(v)]
        apart = [abs(g @ v - d) for v, (d, _) in zip(live, checks)]
        if np.all(np.isfinite(g)) and all(a < 1e-8 * scale + 20 * err for a, (_, err) in zip(apart, checks)):
            return g, 1e-8 * scale + 20 * max(apart, default=0)     # a step that the program's own i meets
    except Exception:                                       # not made for complex numbers
        pass
    pairs = [difference(beside, x, e) for e in np.eye(x.size)]
    g = np.array([p[0] for p in pairs]).reshape(x.size)
    return g, 1e-7 * (1 + np.max(np.abs(g), initial=0)) + 20 * max((p[1] for p in pairs), default=0)
