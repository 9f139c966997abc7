# SPDX-License-Identifier: Apache-2.0
"""What JAX makes of the programs of on_device.py: the same text where there are no loops, else JAX's forms of loops."""
import types

import jax
import jax.numpy as jnp
import numpy as np
import on_device
from jax import lax

F = jnp.float32


class Scribe:
    """The transformations that the programs use, as JAX has them."""
    grad, value_and_grad, vmap = staticmethod(jax.grad), staticmethod(jax.value_and_grad), staticmethod(jax.vmap)


def of(function):
    """A function of on_device.py without loops, whose names mean JAX's."""
    space = {n: types.FunctionType(f.__code__, {}) for n, f in vars(on_device).items() if n in (
        "energy", "rows", "network", "normal", "option_prices", "trained", "chain")}
    names = {"np": jnp, "F": F, "gs": Scribe}
    made = {}
    for n in space:
        made[n] = types.FunctionType(getattr(on_device, n).__code__, names)
    names |= made
    return made[function.__name__]


def applied(params, x):
    """The all-convolutional network, whose layers are known by their parameters."""
    for p, step in zip(params, [1, None, 1, None, 2, None, 1, None, 1, None, 2, None, 1, None, 1, None, 1]):
        if step is None:
            x = jnp.maximum(x, 0)
        else:
            w, b = p
            x = lax.conv_general_dilated(x, w, (step, step), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + b
    return x


def image_loss(params, images, labels):
    scores = jnp.mean(applied(params, images), axis=(1, 2))
    return jnp.mean(jax.nn.logsumexp(scores, axis=1) - scores[jnp.arange(len(labels)), labels])


def escape(c):
    def going(state):
        n, z = state
        return (n < 256) & (z.real * z.real + z.imag * z.imag < 4)
    return lax.while_loop(going, lambda s: (s[0] + 1, s[1] * s[1] + c), (0, c * F(0)))[0]


def oscillator(damping, end):
    def step(state):
        x, v, t, h = state
        h = jnp.minimum(h, end - t)
        ax, av = v, damping * (1 - x * x) * v - x
        bx = v + h * av
        bv = damping * (1 - (x + h * ax) ** 2) * bx - (x + h * ax)
        error = F(0.5) * h * (abs(bx - ax) + abs(bv - av))
        taken = error < F(1e-3)
        x, v, t = (jnp.where(taken, a, b) for a, b in (
            (x + F(0.5) * h * (ax + bx), x), (v + F(0.5) * h * (av + bv), v), (t + h, t)))
        return x, v, t, h * jnp.minimum(F(2), jnp.maximum(F(0.2), F(0.9) * jnp.sqrt(F(1e-3) / (error + F(1e-12)))))
    return lax.while_loop(lambda s: s[2] < end, step, (F(2), F(0), F(0), F(0.01)))[0]


def with_weights(x, w, b):
    """A fixed number of masked steps: JAX has no way back through a loop that ends by itself."""
    def step(state, _):
        h, t, dt = state
        k = jnp.tanh(w @ h + b)
        on = t < F(1.5)
        dt = jnp.where(on & (jnp.sum(k * k) > F(0.5)), dt * F(0.9), dt)
        return (jnp.where(on, h + dt * k, h), jnp.where(on, t + dt, t), dt), None
    (h, _, _), _ = lax.scan(step, (jnp.tanh(x), F(0), F(0.3)), None, length=on_device.LONGEST)
    return jnp.sum(h * h)


def versions():
    """{program: JAX's function of the same arguments}; no entry where JAX has none."""
    greeks = jax.value_and_grad(of(on_device.option_prices), (0, 1, 2, 3, 4))
    images = jax.value_and_grad(image_loss)
    trained = of(on_device.trained)
    return {n: jax.jit(f) for n, f in {
        "elementwise, gradient": jax.value_and_grad(of(on_device.energy)),
        "elementwise, half": jax.value_and_grad(of(on_device.energy)),
        "rows": of(on_device.rows),
        "rows, gradient": jax.grad(lambda x: jnp.sum(of(on_device.rows)(x) ** 3)),
        "network, batch 128": trained, "network, batch 1024": trained, "network, half": trained,
        "images, batch 128": images, "images, batch 1024": images,
        "option prices, greeks": greeks,
        "mandelbrot": jax.vmap(escape),
        "adaptive steps": jax.vmap(oscillator, (0, None)),
        "shared weights, gradient": jax.value_and_grad(lambda x, w, b: jnp.sum(jax.vmap(with_weights, (0, None, None))(
            x, w, b)), (0, 1, 2)),
    }.items()}


def differences(name, args, result):
    """How far JAX's results are from ours, of the largest entry each; None where JAX has no such program."""
    function = versions().get(name)
    if function is None:
        return None
    theirs = jax.tree.leaves(function(*jax.tree.map(jnp.asarray, args)))
    ours = [np.asarray(a) for a in on_device.arrays_of(result)] if isinstance(result, (list, tuple)) else [
        np.asarray(result)]
    return max(float(np.max(np.abs(a.astype(np.float64) - np.asarray(b).astype(np.float64)), initial=0) / max(
        np.max(np.abs(np.asarray(b).astype(np.float64)), initial=0), 1e-6)) for a, b in zip(ours, theirs, strict=True))
