"""The two halves of a derivative, against the derivative as a whole."""
import copy
import functools

import numpy as np
from fuzz_checks import Wrong, expect, same_structure, structure
from fuzz_programs import compiled
from fuzz_reference import Kink, flat, leaves_of, unflat


def examine_halves(gs, case, jit, stage):
    """gs.vjp and gs.linearize of a program, and gs.vjp of its gradient: each call as if it were the only one."""
    f, args, argnums = compiled(case)["f"], case.args, case.argnums
    rng = np.random.default_rng(case.seed + 3)
    h = functools.partial(f, **copy.deepcopy(case.extra)) if case.extra else f
    value = h(*copy.deepcopy(args))
    stage[0] = "grad"
    df = gs.grad(h, argnums)
    want = df(*copy.deepcopy(args))
    if not np.all(np.isfinite(flat(want))):
        raise Kink

    stage[0] = "vjp"
    y, pull = called(gs.vjp, h, args)
    expect(y, value, 0, "value")
    calls(pull, [np.float64(1), 1.0, np.float64(2)], [want, want, doubled(want)], args, "pullback")

    stage[0] = "linearize"
    directions = [unflat(args, rng.standard_normal(flat(args).size)) for _ in range(2)]
    dots = [gs.jvp(h, tuple(copy.deepcopy(args)), tuple(copy.deepcopy(v)))[1] for v in directions]
    y, push = called(gs.linearize, h, args)
    expect(y, value, 0, "value")
    for v, dot in [*zip(directions, dots)] * 2:
        given = copy.deepcopy(v)
        expect(push(*given), dot, 1e-12 * (1 + abs(dot)), "pushforward")
        expect(flat(given), flat(v), 0, "the tangents afterwards")

    if case.seed % 3 == 0:
        stage[0] = "vjp of grad"
        y, pull = called(gs.vjp, df, args)
        expect(flat(y), flat(want), 0, "value of the gradient")
        seeds = [tuple(v) for v in directions]
        alone = [gs.vjp(df, *copy.deepcopy(args))[1].made(copy.deepcopy(v), *copy.deepcopy(args)) for v in seeds]
        calls(pull, [*seeds, seeds[0]], [*alone, alone[0]], args, "pullback of grad")


def called(transformation, f, args):
    """What a transformation gives, where the caller changes the arguments afterwards."""
    given = copy.deepcopy(args)
    y, linear = transformation(f, *given)
    for leaf in leaves_of(given):
        if isinstance(leaf, np.ndarray):
            leaf[...] = np.nan
    return y, linear


def calls(pull, cotangents, wants, args, what):
    """Each cotangent gives its result, though the caller writes into what came before."""
    for k, (cotangent, want) in enumerate(zip(cotangents, wants)):
        given = copy.deepcopy(cotangent)
        got = pull(given)
        same_structure(got, args, what)
        expect(got, flat(want), 1e-12 * (1 + np.max(np.abs(flat(want)), initial=0)), f"{what}, call {k + 1}")
        if structure(given) != structure(cotangent) or not np.array_equal(flat(given), flat(cotangent)):
            raise Wrong(f"{what}: the cotangent was changed")
        for leaf in leaves_of(got):
            if isinstance(leaf, np.ndarray) and leaf.flags.writeable:
                leaf[...] = np.nan


def doubled(tree):
    return 2 * flat(tree)
