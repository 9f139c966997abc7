"""Many devices teach one network: the spectral radius of a matrix, from batches that each device has a part of.

    python examples/spectral.py                                         the cores of this process, as threads
    mpiexec -n 2 python -m gradscribe.run examples/spectral.py          processes, by MPI

    --steps 1000   --batch 64   --every 100   --folder DIR (go on from the last state saved there)   --plot FILE

The one line that makes it a program for many devices is the mean of the gradients over them (A. Sergeev, M. Del Balso,
Horovod, arXiv:1802.05799).  All devices then take the same step: their parameters stay the same.
"""
import argparse

import numpy as np

import gradscribe as gs
from gradscribe import nn, optim

SIZES = (64, 64, 64)


def network():
    init, model = nn.serial(nn.Flatten, *[layer for n in SIZES for layer in (nn.Dense(n), nn.Relu)], nn.Dense(1))
    _, params = init(gs.random.key(1), (-1, 2, 2))
    return model, params


def steps_of(model, adam):
    def loss(params, batch):
        targets = np.max(np.abs(np.linalg.eigvals(batch)), axis=-1)
        return np.mean(np.abs(model(params, batch)[:, 0] - targets))

    def step(params, state, batch):
        value, gradient = gs.value_and_grad(loss)(params, batch)
        value, gradient = gs.lax.pmean((value, gradient), "batch")
        updates, state = adam.update(gradient, state)
        return optim.apply_updates(params, updates), state, value
    return gs.pmap(step, "batch", in_axes=(None, None, 0), out_axes=None)


def train(steps=1000, batch=64, every=100, folder=None, say=print):
    """The losses of the steps and the final parameters."""
    devices = gs.device_count()
    model, params = network()
    adam = optim.adam(3e-4)
    step, key, state, losses, begin = steps_of(model, adam), gs.random.key(0), adam.init(params), [], 0

    @gs.jit
    def draw(key):
        key, now = gs.random.split(key)
        return key, gs.random.normal(now, (batch, 2, 2))

    if folder is not None:
        found = gs.distributed.restore(folder, (key, params, state))
        if found is not None:
            begin, (key, params, state) = found
            say(f"goes on from step {begin}")
    for k in range(begin, steps):
        key, examples = draw(key)
        params, state, value = step(params, state, examples.reshape(devices, -1, 2, 2))
        losses.append(float(value))
        if k % every == 0:
            say(f"step {k:6d}  loss {losses[-1]:.6f}")
        if folder is not None and (k + 1) % every == 0:
            gs.distributed.save(folder, k + 1, (key, params, state))
    return losses, params


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--folder")
    parser.add_argument("--plot")
    parser.add_argument("--save", help="a file for the final parameters")
    options = parser.parse_args()
    first = gs.process_index() == 0
    say = print if first else (lambda text: None)
    kind = "processes" if gs.process_count() > 1 else "threads"
    say(f"training on {gs.device_count()} {kind}")
    losses, params = train(options.steps, options.batch, options.every, options.folder, say)
    if losses:
        say(f"the last hundred steps: {np.mean(losses[-100:]):.6f}")
    if options.save and first:
        np.savez(options.save, *gs.tree_util.tree_leaves(params), losses=np.array(losses))
    if options.plot and first:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        plt.semilogy(losses)
        plt.xlabel("step")
        plt.ylabel("mean error of the spectral radius")
        plt.savefig(options.plot, bbox_inches="tight")
        say(f"wrote {options.plot}")


if __name__ == "__main__":
    main()
