"""The rules against JAX: value, tangent, adjoint and second derivative on every sample.

    python benchmarks/oracle.py                 all names; the number of comparisons and every difference
    python benchmarks/oracle.py sinc np.pad     some of them

JAX is the other party and no judge: a difference is a fault of ours, or has a line in docs/kinks.md (KNOWN below).
"""
import argparse
import collections
import concurrent.futures
import os
import sys
import warnings

import numpy as np
from rule_calls import call_of, from_text, leaves, names, samples_of

import gradscribe as gs
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.activity import rule_of

TOLERANCE = 1e-10
# What differs, and the heading in docs/kinks.md that says why: (name, what), the second None for all.
KNOWN = {
    **{(n, None): "Inverse hyperbolic cosines left of the imaginary axis" for n in ("np.arccosh", "np.acosh")},
    **{(n, "second"): "Powers of zero" for n in ("np.pow", "np.power", "operator.pow")},
    ("np.sinc", None): "np.sinc near zero",
    **{(n, None): "Sets" for n in (
        "np.setdiff1d", "np.setxor1d", "np.union1d", "np.intersect1d", "np.unique", "np.unique_values", "np.unique_all",
        "np.unique_counts", "np.unique_inverse")},
    **{(n, None): "At kinks and edges" for n in (
        "np.nanstd", "np.maximum.accumulate", "np.vander", "np.std", "scipy.special.spence")},
    **{(n, None): "Box-Cox transforms near the logarithm" for n in ("scipy.special.boxcox", "scipy.special.boxcox1p")},
    ("scipy.special.bernoulli", "value"): "Bernoulli's numbers",
    **{(f"scipy.stats.{n}", None): "Distributions of scipy.stats" for n in (
        "binom.logpmf", "binom.pmf", "poisson.cdf", "poisson.logpmf", "poisson.pmf")},
}
ONE_TRIANGLE = {"np.linalg.cholesky", "np.linalg.eigh", "np.linalg.eigvalsh"}
KINDS = ("value", "vjp", "jvp", "second")

Found = collections.namedtuple("Found", "name sample what got want")


def table():
    """-> {name: (rule, function, JAX's function)} for what has samples and a counterpart."""
    import scipy.linalg
    import scipy.signal
    import scipy.special
    import scipy.stats  # noqa: F401  (their tables are read)
    RULES.complete()
    found = {}
    for name, (function, theirs) in names().items():
        rule = None if function is None else rule_of(function)
        if rule is not None and theirs is not None and rule.samples is not None:
            found[name] = rule, function, of_one_triangle(theirs) if name in ONE_TRIANGLE else theirs
    return found


def of_one_triangle(theirs):
    """JAX's function, given the matrix that NumPy means, which reads one triangle; JAX takes the mean of both."""
    def call(a, *rest, **words):
        import jax.numpy as jnp
        upper = words.get("upper") or "U" in (*rest, words.get("UPLO"))
        half, strict = (jnp.triu(a), jnp.triu(a, 1)) if upper else (jnp.tril(a), jnp.tril(a, -1))
        return theirs(half + jnp.conj(jnp.swapaxes(strict, -1, -2)), *rest, **words)
    return call


def exact():
    """JAX in double precision."""
    import jax
    jax.config.update("jax_enable_x64", True)


def unknown(differences):
    return [d for d in differences if (d.name, d.what) not in KNOWN and (d.name, None) not in KNOWN]


def random_like(value, rng):
    value = np.asarray(value)
    out = rng.standard_normal(value.shape)
    if value.dtype.kind == "c":
        out = out + 1j * rng.standard_normal(value.shape)
    return out.astype(value.dtype)[()]


def differentiable(value):
    return np.asarray(value).dtype.kind in "fc"


def rebuilt(tree, each):
    """The tree with another value for each leaf, taken in order."""
    if isinstance(tree, (tuple, list)):
        items = [rebuilt(t, each) for t in tree]
        return tuple(items) if hasattr(tree, "_fields") else type(tree)(items)
    return next(each)


def different(got, want):
    """(text of ours, text of theirs) of each result that differs."""
    got, want = [np.asarray(v) for v in leaves(got)], [np.asarray(v) for v in leaves(want)]
    if len(got) != len(want):
        yield f"{len(got)} results", f"{len(want)} results"
        return
    for a, b in zip(got, want):
        if a.shape != b.shape:
            yield f"shape {a.shape}", f"shape {b.shape}"
        elif a.size:
            scale = 1 + np.max(np.abs(b), initial=0, where=np.isfinite(b))
            if not np.allclose(a, b, rtol=0, atol=TOLERANCE * scale, equal_nan=True):
                yield text(a), text(b)


def compare(name, k, rule, function, theirs):
    """-> (comparisons made, differences found, what JAX would not take, what we refuse)."""
    import jax
    args, kwargs = samples_of(rule)[k]
    ours, given = call_of(function, args, kwargs)
    other, same = call_of_jax(function, theirs, args, kwargs)
    rng = np.random.default_rng(k)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = other(*same)
    except Exception as error:
        return 0, [], f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", ""
    made, differences = 0, []

    def say(what, got, want):
        nonlocal made
        made += 1
        differences.extend(Found(name, k, what, *both) for both in different(got, want))

    with np.errstate(all="ignore"):
        try:
            value = ours(*given)
        except TypeError:                               # a sample of the record that math's function does not take
            return 0, [], "", ""
        say("value", value, wanted)
        active = [n for n, v in enumerate(given) if differentiable(v)]
        outputs = [v for v in leaves(value)]
        if not rule.has_derivative() and not rule.options.get("rewrite") or not active or not any(
                map(differentiable, outputs)):
            return made, differences, "", ""
        dots = [random_like(given[n], rng) for n in active]
        seeds = [random_like(v, rng) if differentiable(v) else None for v in outputs]

        def part(*some):
            full = list(same)
            for n, v in zip(active, some):
                full[n] = v
            return [v for v in leaves_of_jax(other(*full)) if np.dtype(v.dtype).kind in "fc"]

        points = [jax.numpy.asarray(given[n]) for n in active]
        smooth = part(*points)
        if [v.shape for v in smooth] != [np.shape(s) for s in seeds if s is not None]:
            return made, differences, "other kinds of results", ""
        cotangents = [jax.numpy.asarray(s, v.dtype) for s, v in zip([s for s in seeds if s is not None], smooth)]
        try:
            dy = rebuilt(value, iter(seeds))
            text_of = ", ".join(f"a{n}" for n in range(len(given)))
            few = from_text(f"def few({', '.join(f'a{n}' for n in active)}):\n    return call({text_of})\n", "few",
                            {"call": ours, **{f"a{n}": v for n, v in enumerate(given) if n not in active}})
            moved = tuple(given[n] for n in active)
            say("vjp", gs.vjp_of(few)(dy, *moved), jax.vjp(part, *points)[1](cotangents))
            tangent = [v for v, s in zip(leaves(gs.jvp(few, moved, tuple(dots))[1]), seeds) if s is not None]
            theirs_dots = tuple(map(jax.numpy.asarray, dots))
            say("jvp", tangent, jax.jvp(part, tuple(points), theirs_dots)[1])
            pull = from_text(f"def pulled({', '.join(f'a{n}' for n in active)}):\n    return pull(dy, "
                             f"{', '.join(f'a{n}' for n in active)})\n", "pulled", {"pull": gs.vjp_of(few), "dy": dy})
            say("second", gs.jvp(pull, moved, tuple(dots))[1],
                jax.jvp(lambda *p: jax.vjp(part, *p)[1](cotangents), tuple(points), theirs_dots)[1])
        except gs.TransformError as error:
            return made, differences, "", str(error).splitlines()[0]
        except (NotImplementedError, TypeError) as error:
            return made, differences, f"{type(error).__name__}: {str(error).splitlines()[0]}", ""
        except ValueError as error:
            told = str(error).splitlines()[0]
            if told.startswith("Reverse-mode differentiation does not work"):
                return made, differences, told, ""
            differences.append(Found(name, k, KINDS[min(made, 3)], told, ""))
        except Exception as error:
            told = f"{type(error).__name__}: {error}".splitlines()[0]
            differences.append(Found(name, k, KINDS[min(made, 3)], told, ""))
    return made, differences, "", ""


def leaves_of_jax(value):
    import jax
    return jax.tree_util.tree_leaves(value)


def call_of_jax(function, theirs, args, kwargs):
    call, given = call_of(function, args, kwargs)
    import jax.numpy as jnp
    space = call.__globals__.copy()
    space["function"] = theirs
    other = type(call)(call.__code__, space)
    return other, [jnp.asarray(g) for g in given]


def text(a):
    with np.printoptions(precision=12, threshold=6, edgeitems=3):
        return np.array2string(a).replace("\n", "")


def one_name(name):
    exact()
    rule, function, theirs = table()[name]
    made, differences, untaken, refused = 0, [], [], []
    for k in range(len(samples_of(rule))):
        n, found, why, ours = compare(name, k, rule, function, theirs)
        made, differences = made + n, differences + found
        untaken += [(k, why)] if why else []
        refused += [(k, ours)] if ours else []
    return name, made, differences, untaken, refused


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    wanted = [n for n in table() if not options.names or n in options.names or n.rpartition(".")[2] in options.names]
    total, found, untaken, ours = 0, [], 0, 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for n, (name, made, differences, without, refused) in enumerate(pool.map(one_name, wanted)):
            total, found, untaken, ours = total + made, found + differences, untaken + len(without), ours + len(refused)
            for k, why in without:
                print(f"{name} sample {k}: JAX: {why}")
            for k, why in refused:
                print(f"{name} sample {k}: refused: {why}")
            for d in differences:
                print(f"{d.name} sample {d.sample}: {d.what}: {d.got}, JAX: {d.want}")
            if sys.stderr.isatty():
                print(f"\r{n + 1} of {len(wanted)}", end="", file=sys.stderr, flush=True)
    other = unknown(found)
    print(f"{len(wanted)} names, {total} comparisons, {len(found)} differences, {len(found) - len(other)} of them in "
          f"docs/kinks.md; {untaken} samples that JAX does not take, {ours} whose derivative is refused")
    return bool(other)


if __name__ == "__main__":
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    sys.exit(main())
