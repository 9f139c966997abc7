"""What is checked of a program of the memory family: each oracle alone, so that a refusal by one hides nothing."""
import copy
import re

import numpy as np
from fuzz_checks import Wrong, brief, expect, same_structure, structure, untouched
from fuzz_programs import compiled, register
from fuzz_reference import Kink, flat, gradient, leaves_of, like, unflat


class Program:
    """A program, what it gives in NumPy, and its gradient by differences."""

    def __init__(self, case):
        self.case, self.args, self.argnums = case, case.args, case.argnums
        self.space = compiled(case)
        self.f = self.space["f"]
        self.rng = np.random.default_rng(case.seed + 1)
        given = copy.deepcopy(self.args)
        self.value = copy.deepcopy(self.f(*given))
        self.clean = same(given, self.args)                 # NumPy leaves the arguments alone
        self.seeds = [np.asarray(np.ones(np.shape(v)) if self.scalar else self.rng.standard_normal(np.shape(v)),
                                 dtype=np.asarray(v).dtype)[()] for v in leaves_of(self.value)]
        self.coarse = "float32" in case.source
        if self.coarse and re.search(r"copy=False|asarray\(\w+, dtype|require", case.source):
            raise Kink                                      # the reference, in float64, would share other memory
        x = flat(self.args)
        reference = case._replace(source=case.source.replace("float32", "float64"), seed=f"{case.seed}, in float64")
        f, g = (compiled(reference, numpy=n)["f"] for n in (np, complex_numpy()))
        self.of_a_vector = lambda v: self.weighed((g if np.iscomplexobj(v) else f)(*copy.deepcopy(unflat(self.args,
                                                                                                         v))))
        try:
            self.want, self.tolerance = gradient(self.of_a_vector, x, [flat(a).size for a in self.args], self.rng)
        except ValueError:                                  # a step away the results have other shapes
            raise Kink from None
        self.scale = 1 + np.max(np.abs(self.want), initial=0)
        if self.coarse:
            self.tolerance = 1e-3 * self.scale
            here, there = flat(self.value), flat(f(*copy.deepcopy(self.args)))
            if here.shape != there.shape or not np.allclose(here, there, rtol=1e-3, atol=1e-3):
                raise Kink                                  # rounding decides what the program does
        self.space.update(gs_weights=self.seeds)
        self.total = self.f if self.scalar else self.made_scalar()

    @property
    def scalar(self):
        return not isinstance(self.value, (list, tuple, dict)) and np.ndim(self.value) == 0

    def weighed(self, value):
        return sum(np.sum(v * s) for v, s in zip(leaves_of(value), self.seeds))

    def made_scalar(self):
        names = ", ".join(f"x{k}" for k in range(len(self.args)))
        terms = " + ".join(f"np.sum({path} * gs_weights[{k}])" for k, path in enumerate(spelled(self.value, "found")))
        text = f"def total({names}):\n    found = f({names})\n    return {terms}\n"
        exec(register(text, f"<total {self.case.seed}>"), self.space)
        return self.space["total"]

    def given(self):
        return copy.deepcopy(self.args)

    def constants(self):
        return {k: copy.deepcopy(v) for k, v in self.space.items() if k == "gs_weights" or isinstance(v, np.ndarray)}


def complex_numpy():
    from fuzz_programs import ComplexBuffers
    return ComplexBuffers()


def spelled(tree, text):
    if isinstance(tree, dict):
        return [x for k, t in tree.items() for x in spelled(t, f"{text}[{k!r}]")]
    if isinstance(tree, (list, tuple)):
        return [x for k, t in enumerate(tree) for x in spelled(t, f"{text}[{k}]")]
    return [text]


def same(a, b):
    return structure(a) == structure(b) and all(np.array_equal(p, q) for p, q in zip(leaves_of(a), leaves_of(b)))


def kinds(tree):
    return [str(np.asarray(leaf).dtype) for leaf in leaves_of(tree)]


def equal(got, want, what, tolerance):
    """The structure, the dtypes and the numbers of a result."""
    if structure(got) != structure(want):
        raise Wrong(f"{what}: structure {structure(got)}, expected {structure(want)}")
    if kinds(got) != kinds(want):
        raise Wrong(f"{what} dtypes: {kinds(got)}, expected {kinds(want)}")
    for one, other in zip(leaves_of(got), leaves_of(want)):
        off = np.max(np.abs(np.asarray(one) - np.asarray(other)), initial=0)
        if not off <= tolerance * (1 + np.max(np.abs(other), initial=0)):
            raise Wrong(f"{what}: off by {off:.2g}, got {brief(one)}, expected {brief(other)}", off)


def spoil(tree):
    """Every array of a result is written into, as its owner may."""
    for leaf in leaves_of(tree):
        if isinstance(leaf, np.ndarray) and leaf.size:
            if not leaf.flags.writeable:
                raise Wrong("owned: a result that may not be written into")
            leaf *= 0
            leaf += 7


def owned(p, function, what, apart):
    """A result belongs to the caller: it may be written into, and nothing else changes, nor what comes next."""
    given, before = p.given(), p.constants()
    got = function(*given)
    kept, held = copy.deepcopy(got), copy.deepcopy(given)
    leaves = [leaf for leaf in leaves_of(got) if isinstance(leaf, np.ndarray) and leaf.size]
    if apart and any(np.shares_memory(a, b) for k, a in enumerate(leaves) for b in leaves[:k]):
        raise Wrong(f"owned: parts of the result of {what} share memory")
    spoil(got)
    if not same(given, held):
        raise Wrong(f"owned: the result of {what} is an argument")
    changed = [k for k, v in before.items() if not same(v, p.space[k])]
    p.space.update({k: before[k] for k in changed})
    if changed:
        raise Wrong(f"owned: the result of {what} is a constant of the program")
    equal(function(*p.given()), kept, f"owned: {what}, called again", 1e-12)


def check_grad(gs, p):
    value = p.total(*p.given())
    got = untouched(gs.grad(p.total, p.argnums), p.args, {}, "grad")
    same_structure(got, p.args, "grad")
    expect(got, p.want, p.tolerance, "grad")
    if kinds(got) != kinds(tuple(p.args)):
        raise Wrong(f"grad dtypes: {kinds(got)}, the arguments have {kinds(tuple(p.args))}")
    found, again = gs.value_and_grad(p.total, p.argnums)(*p.given())
    equal(found, value, "value_and_grad's value", 1e-5 if p.coarse else 1e-9)
    expect(again, p.want, p.tolerance, "value_and_grad")


def check_owned(gs, p):
    owned(p, gs.grad(p.total, p.argnums), "grad", True)


def check_vjp(gs, p):
    given = p.given()
    value, pull = gs.vjp(p.f, *given)
    equal(value, p.value, "vjp's value", 1e-5 if p.coarse else 1e-9)
    seed = like(p.value, iter(copy.deepcopy(p.seeds)))
    first = pull(seed)
    if not same(seed, like(p.value, iter(p.seeds))):
        raise Wrong("vjp: the seed was changed")
    expect(first, p.want, p.tolerance, "vjp")
    kept = copy.deepcopy(first)
    if kinds(kept) != kinds(tuple(p.args)):
        raise Wrong(f"vjp dtypes: {kinds(kept)}, the arguments have {kinds(tuple(p.args))}")
    equal(pull(like(p.value, iter(copy.deepcopy(p.seeds)))), kept, "vjp's second call", 1e-12)
    spoil(first)
    if not same(seed, like(p.value, iter(p.seeds))):
        raise Wrong("owned: the adjoints are the seed")
    equal(pull(like(p.value, iter(copy.deepcopy(p.seeds)))), kept, "owned: vjp's third call", 1e-12)


def check_jvp(gs, p):
    if "custom_vjp" in p.case.source:                       # has no forward mode
        return
    x = flat(p.args)
    v = p.rng.standard_normal(x.size)
    given = p.given()
    value, dot = gs.jvp(p.f, tuple(given), tuple(unflat(p.args, v)))
    if p.clean and not same(given, p.args):
        raise Wrong("jvp: the arguments were changed")
    equal(value, p.value, "jvp's value", 1e-5 if p.coarse else 1e-9)
    if structure(dot) != structure(p.value) or kinds(dot) != kinds(p.value):
        raise Wrong(f"jvp: tangent {structure(dot)} {kinds(dot)}, the value has {structure(p.value)} {kinds(p.value)}")
    weight = 1 + np.sum(np.abs(v))
    expect(p.weighed(dot), p.want @ v, p.tolerance * weight, "jvp")
    back = flat(gs.grad(p.total, p.argnums)(*p.given()))
    expect(p.weighed(dot), back @ v, (1e-4 if p.coarse else 1e-11) * p.scale * weight, "jvp against vjp")


def check_vmap(gs, p):
    examples = [[leaf_moved(a, 0.02 * k, p.rng) for a in p.args] for k in range(3)]
    batch = [like(a, iter([np.stack(c) for c in zip(*(leaves_of(e[k]) for e in examples))])) for k,
             a in enumerate(p.args)]

    def loop(function):
        try:
            rows = [copy.deepcopy(function(*copy.deepcopy(e))) for e in examples]
            return like(rows[0], iter([np.stack(c) for c in zip(*(leaves_of(row) for row in rows))]))
        except gs.TransformError:
            raise
        except Exception:                                   # an example that the program itself does not take
            raise Kink from None

    tolerance = 1e-4 if p.coarse else 1e-9
    want = loop(p.f)
    equal(loose(gs.vmap(p.f), p, batch, "vmap"), want, "vmap", tolerance)
    if p.case.seed % 2:
        dh = gs.grad(p.total, p.argnums)
        want = loop(dh)
        equal(loose(gs.vmap(dh), p, batch, "vmap of grad"), want, "vmap of grad", tolerance)


def loose(function, p, batch, what):
    return untouched(function, batch, {}, what) if p.clean else function(*copy.deepcopy(batch))


def leaf_moved(a, size, rng):
    moved = [leaf + size * rng.standard_normal(np.shape(leaf)) for leaf in leaves_of(a)]
    return like(a, iter([float(v) if np.ndim(v) == 0 else v for v in moved]))


def check_lengths(gs, p):
    """The same transformed function takes arrays that are longer by one, and gives what a new one gives."""
    n = len(p.args[0])
    grown = [np.ndim(a) == 1 and len(a) == n for a in p.args]
    longer = [np.append(a, 0.3) if more else a for a, more in zip(p.args, grown)]
    try:
        value = p.total(*copy.deepcopy(longer))
    except Exception:                                       # the program is for one length
        return
    if not np.all(np.isfinite(flat(value))) or np.ndim(value):
        return
    used, fresh = gs.grad(p.total, p.argnums), gs.grad(Program.total_of(p.case, p), p.argnums)
    used(*p.given())
    got, want = (outcome(gs, function, longer) for function in (used, fresh))
    if isinstance(got, str) or isinstance(want, str):
        if got != want:
            raise Wrong(f"lengths: {str(got)[:70]}, a new function gives {str(want)[:70]}")
        return
    equal(got, want, "lengths", 1e-12)


def outcome(gs, function, args):
    try:
        return function(*copy.deepcopy(args))
    except gs.TransformError as e:
        return f"{type(e).__name__}: {str(e).splitlines()[0]}"


def check_float32(gs, p):
    single = [np.float32(a) if np.ndim(a) == 0 else a.astype(np.float32) for a in p.args]
    try:
        value = p.total(*copy.deepcopy(single))
        result = p.f(*copy.deepcopy(single))
    except (TypeError, ValueError):
        return
    if abs(value - p.total(*p.given())) > 1e-3 * (1 + abs(value)):
        return
    df = gs.grad(p.total, p.argnums)
    x = flat(single).astype(float)
    for _ in range(3):                                      # a place where rounding decides
        near = flat(df(*unflat(p.args, x * (1 + 1e-5 * p.rng.standard_normal(x.size)))))
        if np.max(np.abs(near - p.want), initial=0) > 1e-3 * p.scale:
            return
    got = df(*copy.deepcopy(single))
    if kinds(got) != kinds(tuple(single)):
        raise Wrong(f"float32 dtypes: gradient {kinds(got)}, arguments have {kinds(tuple(single))}")
    expect(flat(got).astype(float), p.want, 2e-3 * p.scale, "float32")
    if "custom_vjp" in p.case.source:
        return
    dots = tuple(like(a, iter([np.ones_like(v) for v in leaves_of(a)])) for a in single)
    primal, dot = gs.jvp(p.f, tuple(copy.deepcopy(single)), dots)
    if kinds(primal) != kinds(result) or kinds(dot) != kinds(result):
        raise Wrong(f"float32 jvp dtypes: {kinds(primal)} and {kinds(dot)}, NumPy gives {kinds(result)}")


def check_jit(gs, p):
    tolerance = 1e-4 if p.coarse else 1e-9
    fast = gs.jit(p.f)
    equal(loose(fast, p, p.args, "jit"), p.value, "jit", tolerance)
    df = gs.grad(p.total, p.argnums)
    eager, fast = df(*p.given()), gs.jit(df)
    equal(untouched(fast, p.args, {}, "jit of grad"), eager, "jit of grad", tolerance)
    if p.clean:
        owned(p, gs.jit(p.f), "jit", False)
    owned(p, fast, "jit of grad", True)


def total_of(case, p):
    other = Program.__new__(Program)
    other.__dict__.update(p.__dict__)
    other.space = compiled(case)
    other.space.update(gs_weights=p.seeds)
    other.f = other.space["f"]
    return other.f if p.scalar else other.made_scalar()


Program.total_of = staticmethod(total_of)
ORACLES = {"grad": check_grad, "vjp": check_vjp, "jvp": check_jvp, "vmap": check_vmap, "lengths": check_lengths,
           "float32": check_float32,
           "owned": check_owned,
           "jit": check_jit}


def examine_memory(gs, case, names, stage):
    """Runs the oracles; raises the worst that any of them finds."""
    p = Program(case)
    found = []
    for name in names:
        stage[0] = name
        try:
            ORACLES[name](gs, p)
        except Kink:
            pass
        except Exception as e:
            rank = 0 if isinstance(e, Wrong) else 2 if isinstance(e, gs.TransformError) else 1
            found.append((rank, len(found), name, e))
    if any("needs a real result" in str(e) for *_, e in found) and not any(map(np.iscomplexobj, leaves_of(p.value))):
        found = [item for item in found if "complex128" not in str(item[-1]) or item[0]]    # complex on another path
    if found:
        _, _, stage[0], error = min(found, key=lambda item: item[:2])
        raise error
