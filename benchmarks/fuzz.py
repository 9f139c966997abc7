"""Random programs of the accepted language: their gradients must be right.

    python benchmarks/fuzz.py --count 5000 --jobs 2 --jit 5
    python benchmarks/fuzz.py --seed-only 17 -v         the program, what is emitted, the outcome
    python benchmarks/fuzz.py --shrink 17               a smaller program that fails in the same way
    python benchmarks/fuzz.py --wide --count 5000       another family: writes, aliases and views, exits of loops
    python benchmarks/fuzz.py --full --count 5000       objects, containers, growing lists, draws, `out=`, ... as well
    python benchmarks/fuzz.py --memory --count 5000     short programs: shared memory, sequences in sequences, dtypes
    python benchmarks/fuzz.py --memory --only grad      one check of fuzz_oracles.py; --all: every one, compiled too
    python benchmarks/fuzz.py --loops --count 5000      short programs whose loops change the rows they go over
    python benchmarks/fuzz.py --regions --count 5000    tables written in place: entries, rows, blocks by loop indices
    python benchmarks/fuzz.py --mixed --count 5000      the families in turn, all but regions: seed % 5
    python benchmarks/fuzz.py --mixed --gradients       the gradient of each program only
    python benchmarks/fuzz.py --mixed --vmap            batches of each program against loops over the examples
    python benchmarks/fuzz.py --mixed --vjp             gs.vjp and gs.linearize against the whole derivative

Each program is checked six ways: gradient against complex step (or differences), jvp, jvp of the gradient, gradient
of the gradient times a vector, float32, structure; and, for a share of them, compiled. Those of the memory family are
checked by fuzz_oracles.py: gradient, vjp, jvp, vmap, other lengths, float32, who owns the results. A program near a
kink is discarded, one refused by a TransformError is counted with its cause, everything else is a fault of ours.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import copy
import functools
import os
import random
import re
import sys
import time
import traceback
import warnings

import numpy as np
from fuzz_batches import examine_batches
from fuzz_checks import Wrong, expect, largest_number, same_structure, untouched
from fuzz_halves import examine_halves
from fuzz_memory import OWN
from fuzz_oracles import ORACLES, examine_memory
from fuzz_plain import HOSTILE, NAMES
from fuzz_programs import WRITERS, compiled, deadline, family_of, make, of_a_vector, register
from fuzz_reference import Kink, difference, flat, gradient, leaves_of, like, unflat
from fuzz_shrink import shrink

os.environ.setdefault("GRADSCRIBE_VERIFY", "1")

# -- one program, six checks ---------------------------------------------------------------------------------

Outcome = collections.namedtuple("Outcome", "kind detail seconds")
SLOW = 20                                                   # seconds of processor time for all checks of a program


CHECKS = {"": lambda *given: examine(*given), "grad": lambda *given: examine(*given, only="grad"),
          "jit": lambda *given: examine(*given, only="jit"),
          "vmap": examine_batches, "vjp": examine_halves}


def check(case, jit=False, what=""):
    """-> Outcome; kinds: right, refused, discarded, wrong, failed.  what: one of CHECKS, or of ORACLES."""
    import gradscribe as gs
    start, stage = time.process_time(), ["reference"]

    def once():
        with deadline(120), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if case.family == "memory":
                names = [what] if what else [name for name in ORACLES if name != "jit"]
                examine_memory(gs, case, list(dict.fromkeys([*names, *["jit"] * bool(jit)])), stage)
            else:
                CHECKS[what](gs, case, jit, stage)

    try:
        try:
            once()
        except Wrong as e:
            if lost_digits(e, once):
                raise Kink from None
            raise
        kind, detail = "right", ""
    except Kink:
        kind, detail = "discarded", "near a kink"
    except gs.TransformError as e:
        kind, detail = "refused", reason(e, stage[0])
    except Wrong as e:
        kind, detail = "wrong", str(e)
    except Exception as e:
        at = traceback.extract_tb(e.__traceback__)[-1]
        line = (str(e).strip().splitlines() or [""])[0][:150]
        place = f"{os.path.basename(at.filename)}:{at.lineno}"
        kind, detail = "failed", f"{stage[0]}: {type(e).__name__}: {line} at {place}"
    return Outcome(kind, detail, time.process_time() - start)


def lost_digits(error, once):
    """Whether a result is off by no more than the rounding of the largest number on the way to it."""
    with largest_number() as found, contextlib.suppress(Exception):
        once()
    return bool(np.isfinite(error.off)) and error.off <= 1e-14 * found[0]


def examine(gs, case, jit, stage, only=""):
    """only: "grad" leaves out all but the gradient, "jit" what is neither that nor compiled."""
    space = compiled(case)
    f, args, argnums = space["f"], case.args, case.argnums
    rng = np.random.default_rng(case.seed + 1)
    x = flat(args)
    scalar = of_a_vector(case)
    sizes = [flat(a).size for a in args]
    want, tolerance = gradient(scalar, x, sizes, rng)
    v = rng.standard_normal(x.size)
    tangents = unflat(args, v)
    h = functools.partial(f, **case.extra) if case.extra else f

    stage[0] = "grad"
    df = gs.grad(f, argnums)
    got = untouched(df, args, case.extra, "grad")
    same_structure(got, args, "grad")
    expect(got, want, tolerance, "grad")
    if only == "grad":
        return

    def first(vector):
        return flat(df(*unflat(args, vector), **case.extra))

    if not only:
        stage[0] = "jvp"
        value, dot = gs.jvp(h, tuple(copy.deepcopy(args)), tuple(tangents))
        expect(value, scalar(x), 1e-9 * (1 + abs(scalar(x))), "jvp's value")
        expect(dot, want @ v, tolerance * (1 + np.sum(np.abs(v))), "jvp")
        examine_twice(gs, case, f, stage, (want, tolerance), first, x, v)

    if case.dtype == "float32":
        stage[0] = "float32"
        single = [like(a,
                       iter([np.float32(leaf)
                             if np.ndim(leaf) == 0 else leaf.astype(np.float32) for leaf in leaves_of(a)]))
                  for a in args]
        if case.seed % 3 == 0:                              # some arguments only, and plain floats
            single = [a if k % 2 else b for k, (a, b) in enumerate(zip(args, single))]
        rounded = flat(single).astype(float)
        try:
            values = [float(np.real(f(*copy.deepcopy(a), **copy.deepcopy(case.extra)))) for a in (args, single)]
        except (TypeError, ValueError):
            raise Kink from None
        if abs(values[0] - values[1]) > 1e-2 * (1 + abs(values[0])):        # the program asks for the dtype
            raise Kink
        got = untouched(df, single, case.extra, "grad in float32")
        same_structure(got, single, "grad in float32")
        scale = 1 + np.max(np.abs(want), initial=0)
        near = [first(rounded * (1 + 1e-5 * rng.standard_normal(x.size))) for _ in range(4)]
        if any(np.max(np.abs(g - want), initial=0) > 1e-3 * scale for g in near):
            raise Kink
        expect(flat(got).astype(float), want, 2e-3 * scale, "grad in float32")
        kinds = [np.asarray(leaf).dtype for leaf in leaves_of(got)], [np.asarray(leaf).dtype
                                                                      for leaf in leaves_of(single)]
        if kinds[0] != kinds[1]:
            got, given = ([str(k) for k in ks] for ks in kinds)
            raise Wrong(f"float32: gradient dtypes {got}, arguments have {given}")
        if not only:
            dots = [like(t, iter([np.asarray(d, dtype=np.asarray(leaf).dtype)[()] for d,
                                  leaf in zip(leaves_of(t), leaves_of(one))]))
                    for t, one in zip(tangents, single)]
            value, dot = gs.jvp(h, tuple(copy.deepcopy(single)), tuple(dots))
            expect(np.float64(dot), want @ v, 2e-3 * scale * (1 + np.sum(np.abs(v))), "jvp in float32")

    if jit:
        stage[0] = "jit"
        got = untouched(gs.jit(gs.grad(f, argnums)), args, case.extra, "jit")
        same_structure(got, args, "jit")
        expect(got, want, tolerance + 1e-9 * (1 + np.max(np.abs(want), initial=0)), "jit")
        if case.dtype == "float32":
            eager, fast = df(*copy.deepcopy(single), **case.extra), untouched(gs.jit(gs.grad(f, argnums)), single,
                                                                              case.extra, "jit in float32")
            expect(flat(fast).astype(float), flat(eager).astype(float), 2e-3 * scale, "jit in float32")


def examine_twice(gs, case, f, stage, expected, first, x, v):
    """Second derivatives along v; expected: the gradient and its tolerance; `first`: it as a function of one vector."""
    args, argnums, tangents, (want, tolerance) = case.args, case.argnums, unflat(case.args, v), expected
    h = functools.partial(f, **case.extra) if case.extra else f
    stage[0] = "jvp of grad"
    hvp, error = difference(first, x, v)
    loose = 1e-6 * (1 + np.max(np.abs(hvp), initial=0)) + 20 * error
    dh = gs.grad(h, argnums)
    value, dot = gs.jvp(dh, tuple(copy.deepcopy(args)), tuple(tangents))
    expect(value, want, tolerance, "value of the jvp of grad")
    expect(dot, hvp, loose, "jvp of grad")

    stage[0] = "grad of grad"
    names = [f"x{k}" for k in range(len(args))]
    terms, consts = [], []
    for k, (arg, tangent) in enumerate(zip(args, tangents)):
        for path in spelled(arg, f"d[{k}]"):
            terms.append(f"np.sum({path} * v[{len(terms)}])")
        consts += leaves_of(tangent)
    text = f"def dotted({', '.join(names)}):\n    d = df({', '.join(names)})\n    return {' + '.join(terms)}\n"
    local = {"np": np, "df": dh, "v": tuple(consts)}
    exec(register(text, f"<dotted {case.seed}>"), local)
    got = gs.grad(local["dotted"], argnums)(*copy.deepcopy(args))
    expect(got, hvp, loose, "grad of grad")


def spelled(tree, text):
    """The expression of each leaf."""
    if isinstance(tree, dict):
        return [x for k, t in tree.items() for x in spelled(t, f"{text}[{k!r}]")]
    if isinstance(tree, (list, tuple)):
        return [x for k, t in enumerate(tree) for x in spelled(t, f"{text}[{k}]")]
    return [text]


def reason(error, stage):
    """The first line of a message, without the names and numbers of this program."""
    line = (str(error).strip().splitlines() or [""])[0]
    names = NAMES + HOSTILE + OWN + ("a", "b", "c", "d", "s", "params", r"n\d+", "i+", "j", "k", r"step_\d+")
    line = re.sub(r"\b(" + "|".join(names) + r")(_\d+)?\b", "_", line)
    line = re.sub(r"\d+", "N", line)[:110]
    return f"{type(error).__name__} {line}" if stage == "grad" else f"{stage}: {type(error).__name__} {line}"

# -- many programs -------------------------------------------------------------------------------------------

def run(seed, percent, family="plain", what=""):
    case = make(seed, family)
    return seed, check(case, random.Random(seed * 7 + 1).random() * 100 < percent, what)


def outcomes(seeds, jobs, percent, family="plain", what=""):
    if jobs == 1:
        yield from (run(seed, percent, family, what) for seed in seeds)
        return
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        given = [pool.submit(run, seed, percent, family, what) for seed in seeds]
        for done in concurrent.futures.as_completed(given):
            yield done.result()


def show(case, outcome):
    import gradscribe as gs
    print(case.source)
    print("arguments:", {k: v for k, v in zip("abscp", case.args)}, case.extra, case.dtype, "\n")
    try:
        print(gs.grad(compiled(case)["f"], case.argnums).source_for(*copy.deepcopy(case.args), **case.extra))
    except Exception:
        traceback.print_exc(limit=-4)
    print(outcome.kind.upper(), outcome.detail, f"({outcome.seconds:.2f} s)")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed-only", type=int)
    parser.add_argument("--shrink", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--wide", action="store_true", help="programs that write into arrays and leave loops")
    parser.add_argument("--full", action="store_true", help="programs of the whole language")
    parser.add_argument("--memory", action="store_true", help="short programs about what shares memory with what")
    parser.add_argument("--loops", action="store_true", help="short programs whose loops change the rows they go over")
    parser.add_argument("--regions", action="store_true", help="programs that write tables in place, region by region")
    parser.add_argument("--mixed", action="store_true", help="plain, wide, full, memory, loops in turn")
    parser.add_argument("--only", choices=list(ORACLES), help="one check of the programs of the memory family")
    parser.add_argument("--all", action="store_true", help="every check of every program, compiled ones too")
    parser.add_argument("--jit", type=float, default=0, help="per cent of the programs that are compiled, too")
    parser.add_argument("--vmap", action="store_true", help="batches of the programs instead")
    parser.add_argument("--vjp", action="store_true", help="the halves of gs.vjp and gs.linearize instead")
    parser.add_argument("--compiled", action="store_true", help="only gradients, compiled ones too")
    parser.add_argument("--gradients", action="store_true", help="only the gradient of each program")
    parser.add_argument("--generator", action="store_true", help="only check the programs and their reference")
    parser.add_argument("-v", action="store_true", help="show the program and what is emitted")
    options = parser.parse_args(argv)
    family = next((name for name in (*WRITERS, "mixed") if getattr(options, name, False)), "plain")
    chosen = {"vmap": options.vmap, "vjp": options.vjp, "grad": options.gradients, "jit": options.compiled}
    what = options.only or next((name for name, asked in chosen.items() if asked), "")
    options.jit = 100 if options.all or options.compiled else options.jit
    if options.only and family != "memory":
        parser.error("--only is for --memory")
    if options.generator:
        return generator(range(options.start, options.start + options.count), options.v, family)
    if options.shrink is not None:
        again = functools.partial(check, jit=options.jit > 0, what=what)
        case = make(options.shrink, family)
        if case.family == "memory" and not what:            # the check that fails is enough, and quicker
            found = again(case).detail
            again.keywords["what"] = next((name for name in ORACLES if found.startswith(name)), "grad")
        case, outcome = shrink(case, again)
        show(case, outcome)
        return 1
    if options.seed_only is not None:
        case = make(options.seed_only, family)
        outcome = check(case, options.jit > 0, what)
        if options.v:
            show(case, outcome)
        print(outcome.kind, outcome.detail)
        return outcome.kind in ("wrong", "failed")
    tally, reasons, examples, start = collections.Counter(), collections.Counter(), {}, time.time()
    seeds = range(options.start, options.start + options.count)
    for done, (seed, outcome) in enumerate(outcomes(seeds, options.jobs, options.jit, family, what), 1):
        tally[outcome.kind] += 1
        if outcome.kind == "refused":
            reasons[outcome.detail] += 1
            examples[outcome.detail] = min(seed, examples.get(outcome.detail, seed))
        if outcome.kind in ("wrong", "failed") or options.v and outcome.kind == "refused":
            print(f"{outcome.kind.upper()} seed {seed} ({family_of(seed, family)}): {outcome.detail}", flush=True)
        if outcome.seconds > SLOW:
            print(f"SLOW seed {seed} ({family_of(seed, family)}): {outcome.seconds:.0f} s", flush=True)
        if done % 500 == 0:
            print(f"  {done} programs, {time.time() - start:.0f} s, {dict(tally)}", flush=True)
    for text, n in reasons.most_common():
        print(f"  {n:5} refused ({100 * n / options.count:.1f}%, seed {examples[text]}): {text}")
    print(f"{tally['right']} right, {tally['refused']} refused ({len(reasons)} reasons), {tally['wrong']} wrong, "
          f"{tally['failed']} failed, {tally['discarded']} near a kink, {time.time() - start:.0f} s")
    return bool(tally["wrong"] + tally["failed"])


def generator(seeds, verbose, family="plain"):
    tally = collections.Counter()
    for seed in seeds:
        case = make(seed, family)
        if verbose:
            print(case.source)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                sizes = [flat(a).size for a in case.args]
                g, tolerance = gradient(of_a_vector(case), flat(case.args), sizes, np.random.default_rng(1))
            tally["complex step" if tolerance <= 1e-9 * (1 + np.max(np.abs(g), initial=0)) else "differences"] += 1
            tally["zero gradient"] += not np.any(g)
        except Kink:
            tally["kink"] += 1
    print(dict(tally))
    return 0


if __name__ == "__main__":
    sys.exit(main())
