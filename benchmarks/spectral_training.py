"""A network that learns spectral radii of complex matrices: Gradscribe against jax.jit of the same program.

    python benchmarks/spectral_training.py [--steps 1000] [--rounds 5]

4 to 64 to 64 to 64 to 1, Adam with 3e-4, batches of 64 random matrices of 2 by 2, made by each side from the same keys.
A step is a compiled function that makes the batch, the loss, its gradient and the update; both train in turns in one
process on one thread, in double precision, from the same parameters.  Printed: losses, the first call, milliseconds of
a step (median over rounds) and their ratio.
"""
import argparse
import os
import statistics
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1",
                  XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.example_libraries import optimizers, stax  # noqa: E402

import gradscribe as gs  # noqa: E402
from gradscribe import nn, optim  # noqa: E402

jax.config.update("jax_enable_x64", True)
SIZES = (64, 64, 64)


def ours():
    init, model = nn.serial(nn.Flatten, *[layer for n in SIZES for layer in (nn.Dense(n), nn.Relu)], nn.Dense(1))
    _, params = init(gs.random.key(1), (-1, 2, 2))
    adam = optim.adam(3e-4)

    def loss(params, batch):
        targets = np.max(np.abs(np.linalg.eigvals(batch)), axis=-1)
        return np.mean(np.abs(model(params, batch)[:, 0] - targets))

    @gs.jit
    def step(key, params, state):
        key, now = gs.random.split(key)
        batch = gs.random.normal(now, (64, 2, 2), complex)
        value, gradient = gs.value_and_grad(loss)(params, batch)
        updates, state = adam.update(gs.tree_util.tree_map(np.conj, gradient), state)
        return key, optim.apply_updates(params, updates), state, value
    return step, params, adam.init(params)


def jaxs(params):
    _, model = stax.serial(stax.Flatten, *[layer for n in SIZES for layer in (stax.Dense(n), stax.Relu)], stax.Dense(1))
    init, update, get = optimizers.adam(3e-4)

    def loss(params, batch):
        targets = jnp.max(jnp.abs(jnp.linalg.eigvals(batch)), axis=-1)
        return jnp.mean(jnp.abs(model(params, batch)[:, 0] - targets))

    @jax.jit
    def step(key, count, state):
        key, now = jax.random.split(key)
        batch = jax.random.normal(now, (64, 2, 2), complex)
        value, gradient = jax.value_and_grad(loss)(get(state), batch)
        return key, count + 1, update(count, jax.tree_util.tree_map(jnp.conj, gradient), state), value
    return step, init(params)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    step, params, state = ours()
    theirs, their_state = jaxs(params)
    key, their_key, count = gs.random.key(0), jax.random.PRNGKey(0), 0

    start = time.perf_counter()
    mine = [key, params, state]
    *mine, first = step(*mine)
    made = time.perf_counter()
    their_key, count, their_state, their_first = jax.block_until_ready(theirs(their_key, count, their_state))
    end = time.perf_counter()
    print(f"first loss {float(first):.12f} and JAX's {float(their_first):.12f}")
    print(f"first call {made - start:.2f} s and {end - made:.2f} s")
    times = []
    for _ in range(options.rounds):
        start = time.perf_counter()
        for _ in range(options.steps):
            *mine, value = step(*mine)
        made = time.perf_counter()
        for _ in range(options.steps):
            their_key, count, their_state, their_value = theirs(their_key, count, their_state)
        jax.block_until_ready(their_value)
        end = time.perf_counter()
        times.append(((made - start) / options.steps, (end - made) / options.steps))
        print(f"loss {float(value):.6f} and {float(their_value):.6f}; {1e3 * times[-1][0]:.3f} ms and "
              f"{1e3 * times[-1][1]:.3f}")
    a, b = (statistics.median(column) for column in zip(*times))
    ratio = statistics.median(theirs / ours for ours, theirs in times)
    print(f"a step {1e3 * a:.3f} ms, JAX {1e3 * b:.3f} ms, JAX/ours {ratio:.2f}")


if __name__ == "__main__":
    main()
