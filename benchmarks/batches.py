"""Every rule's whole-batch form against a loop over the examples.

python benchmarks/batches.py                all names: how many forms, how many loops, every difference
python benchmarks/batches.py sort np.pad    some of them
"""
import argparse
import collections
import functools
import sys
import warnings

import numpy as np
from rule_calls import call_of, leaves, samples_of

import gradscribe as gs
from gradscribe.ast_transform.core.rule import RULES

SIZES = (3, 1, 0, 7)
Outcome = collections.namedtuple("Outcome", "name sample mapped kind detail")      # kind: form, loop, refused, wrong


def moved(value, n, rng):
    """A batch of arguments near a value, in its dtype: orders and signs stay, so that ties and domains do."""
    value = np.asarray(value)
    if value.dtype.kind in "fc":
        scale = 1 + 0.01 * rng.uniform(-1, 1, size=(n, *[1] * value.ndim))
        return (value * scale).astype(value.dtype)
    return np.broadcast_to(value, (n, *value.shape)).copy()


def ways(count):
    """Which arguments are mapped: each alone, and all."""
    found = [tuple(0 if j == k else None for j in range(count)) for k in range(count)]
    return found + [(0,) * count] if count > 1 else found


@functools.lru_cache(64)
def mapped(rule, k, axes, twice):
    """A sample's call, its arguments, and the call mapped: one transformation answers batches of all sizes."""
    args, kwargs = samples_of(rule)[k]
    function, given = call_of(rule.function, args, kwargs)
    transformed = gs.vmap(function, axes)
    return function, given, gs.vmap(transformed, axes) if twice else transformed


def check(rule, k, axes, n, twice=False):
    function, given, transformed = mapped(rule, k, axes, twice)
    rng = np.random.default_rng(k)
    batch = [moved(v, n, rng) if a == 0 else v for v, a in zip(given, axes)]
    if twice:
        batch = [np.stack([b, b[::-1]]) if a == 0 else b for b, a in zip(batch, axes)]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = transformed(*batch)
    except gs.TransformError as error:
        return "refused", str(error).splitlines()[0]
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"

    def one(*index):
        part = [b[index] if a == 0 else b for b, a in zip(batch, axes)]
        return [np.asarray(v) for v in leaves(function(*part))]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [one(*i) for i in np.ndindex(*((2, n) if twice else (n,)))]
    got = [np.asarray(v) for v in leaves(got)]
    kind = "loop" if "one example at a time" in transformed.source else "form"
    if not rows:
        return (kind, "") if all(v.shape[int(twice)] == 0 for v in got) else ("wrong", "a batch of none")
    wanted = [np.stack(column) for column in zip(*rows)]
    if len(got) != len(wanted):
        return "wrong", f"{len(got)} results for {len(wanted)}"
    for a, b in zip(got, wanted):
        b = b.reshape((2, n, *b.shape[1:])) if twice else b
        if rule.options.get("complex_result") and a.dtype.kind == "c":      # whatever the values: one dtype for all
            b = b.astype(np.result_type(b, np.complex64))
        if a.shape != b.shape or a.dtype != b.dtype:
            return "wrong", f"{a.dtype}{a.shape} for {b.dtype}{b.shape}"
        tight = 1e-4 if a.dtype in (np.float32, np.complex64) else 1e-10
        if not np.allclose(a, b, rtol=tight, atol=tight, equal_nan=True):
            return "wrong", f"{a} for {b}".replace("\n", "")[:160]
    return kind, ""


def outcomes(rule, sizes=SIZES, twice=True):
    for k in range(len(samples_of(rule))):
        args, kwargs = samples_of(rule)[k]
        count = len(call_of(rule.function, args, kwargs)[1])
        for axes in ways(count):
            for n in sizes:
                yield Outcome(rule.label, k, axes, *check(rule, k, axes, n))
            if twice:
                yield Outcome(rule.label, k, axes, *check(rule, k, axes, 3, True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sizes", default="3,1,0,7")
    options = parser.parse_args()
    sizes = tuple(map(int, options.sizes.split(",")))
    total, kinds, by_name = 0, collections.Counter(), collections.defaultdict(collections.Counter)
    for rule in dict.fromkeys(RULES.values()):
        if rule.samples is None or options.names and rule.label not in options.names:
            continue
        for o in outcomes(rule, sizes, len(sizes) > 1):
            total += 1
            kinds[o.kind] += 1
            by_name[o.name][o.kind] += 1
            if o.kind in ("wrong", "refused") or options.names and o.kind == "loop":
                print(*o)
    forms = [n for n, c in by_name.items() if c["form"] and not c["loop"]]
    mixed = [n for n, c in by_name.items() if c["form"] and c["loop"]]
    loops = [n for n, c in by_name.items() if not c["form"]]
    print(f"{len(by_name)} names: {len(forms)} with a form, {len(mixed)} with a form for some calls "
          f"({', '.join(mixed)}), {len(loops)} by a loop ({', '.join(loops)})")
    print(f"{total} comparisons: {dict(kinds)}")
    return bool(kinds["wrong"])


if __name__ == "__main__":
    sys.exit(main())
