"""Batches of a random program against loops over the examples."""
import copy
import functools

import numpy as np
from fuzz_checks import expect, untouched
from fuzz_programs import compiled, register
from fuzz_reference import Kink, flat, leaves_of, like


def examine_batches(gs, case, jit, stage):
    """vmap of a program, of its gradient, and the gradient of its vmap: what each example gives alone."""
    f, args, argnums = compiled(case)["f"], case.args, case.argnums
    rng = np.random.default_rng(case.seed + 2)
    shared = [k for k in range(1, len(args)) if rng.random() < 0.25]
    h = functools.partial(f, **case.extra) if case.extra else f
    examples, batch, axes = [list(copy.deepcopy(args)) for _ in range(1 + case.seed % 4)], [], []
    for k, arg in enumerate(args):
        if k in shared:
            batch.append(copy.deepcopy(arg))
            axes.append(None)
            continue
        leaves = [[leaf + 0.3 * n * rng.standard_normal(np.shape(leaf)) for leaf in leaves_of(arg)]
                  for n in range(len(examples))]
        for one, own in zip(examples, leaves):
            one[k] = like(arg, iter([float(v) if np.ndim(v) == 0 else v for v in own]))
        axis = 1 if case.seed % 3 == 1 and isinstance(arg, np.ndarray) and np.ndim(arg) else 0
        batch.append(like(arg, iter([np.stack(column, axis) for column in zip(*leaves)])))
        axes.append(axis)

    def each(function):
        """What a function gives for each example, and whether that is certain: no branch is near its border."""
        found = []
        for one in examples:
            value = function(*copy.deepcopy(one))
            near = [function(*like(one, iter([leaf * (1 + 1e-9) for leaf in leaves_of(one)]))) for _ in range(2)]
            size = 1 + np.max(np.abs(flat(value)), initial=0)
            if not np.all(np.isfinite(flat(value))) or any(
                    np.max(np.abs(flat(v) - flat(value)), initial=0) > 1e-5 * size for v in near):
                raise Kink
            found.append(flat(value))
        return np.array(found)

    def compare(got, want, what):
        rows = np.concatenate([np.reshape(leaf, (len(examples), -1)) for leaf in leaves_of(got)], axis=1)
        scale = 1 + np.max(np.abs(want), initial=0)
        expect(rows, want, 1e-9 * scale, what)

    stage[0] = "vmap"
    try:
        want = each(h)
    except Exception:                                       # an example that the program itself does not take
        raise Kink from None
    batched = gs.vmap(h, tuple(axes))
    compare(untouched(batched, batch, {}, "vmap"), want, "vmap")
    stage[0] = "vmap of grad"
    dh = gs.grad(h, argnums)
    want = each(dh)
    compare(untouched(gs.vmap(dh, tuple(axes)), batch, {}, "vmap of grad"), want, "vmap of grad")
    stage[0] = "grad of vmap"
    names = [f"x{k}" for k in range(len(args))]
    local = {"np": np, "batched": batched}
    exec(register(f"def total({', '.join(names)}):\n    return np.sum(batched({', '.join(names)}))\n",
                  f"<total {case.seed}>"), local)
    got = untouched(gs.grad(local["total"], argnums), batch, {}, "grad of vmap")
    sizes = np.cumsum([flat(a).size for a in args])[:-1]
    for k, (part, own) in enumerate(zip(got, np.split(want, sizes, axis=1))):
        scale = 1 + np.max(np.abs(own), initial=0)
        if axes[k] is None:
            expect(part, own.sum(axis=0), 1e-9 * scale * len(examples), f"grad of vmap in argument {k}")
            continue
        rows = [np.reshape(np.moveaxis(leaf, axes[k], 0), (len(examples), -1)) for leaf in leaves_of(part)]
        expect(np.concatenate(rows, axis=1), own, 1e-9 * scale, f"grad of vmap in argument {k}")
    if jit:
        stage[0] = "jit of vmap"
        compare(untouched(gs.jit(gs.vmap(dh, tuple(axes))), batch, {}, "jit of vmap"), want, "jit of vmap of grad")
