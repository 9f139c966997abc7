"""A spectrogram: windowed frames of a signal, their transforms, and how far the log magnitudes are from others."""
import numpy as np

SOURCE = "J. B. Allen, Short term spectral analysis, synthesis, and modification by discrete Fourier transform (1977)"
argnums = (0,)
static_argnums = (2, 3)
sizes = {"S": dict(n=2_000, frame=128, hop=64), "M": dict(n=60_000, frame=512, hop=128)}


def make_inputs(size, seed=0):
    s = sizes[size]
    rng = np.random.default_rng(151 + seed)
    frames = (s["n"] - s["frame"]) // s["hop"] + 1
    time = np.arange(s["n"])
    signal = np.sin(0.05 * time + 1e-6 * time ** 2) + 0.1 * rng.normal(size=s["n"])
    return signal, rng.normal(size=(frames, s["frame"] // 2 + 1)), s["frame"], s["hop"]


def objective_numpy(signal, target, frame, hop):
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(frame) / frame)
    loss = 0.0
    for k in range(len(target)):
        part = signal[k * hop:k * hop + frame] * window
        spectrum = np.fft.rfft(part)
        power = spectrum.real ** 2 + spectrum.imag ** 2
        loss += np.sum((0.5 * np.log(power + 1e-6) - target[k]) ** 2)
    return loss / target.size


variants = {"numpy": objective_numpy}


def objective_jax(signal, target, frame, hop):
    import jax.numpy as jnp
    window = 0.5 - 0.5 * jnp.cos(2.0 * np.pi * jnp.arange(frame) / frame).astype(signal.dtype)
    at = hop * jnp.arange(len(target))[:, None] + jnp.arange(frame)
    spectrum = jnp.fft.rfft(signal[at] * window)
    power = spectrum.real ** 2 + spectrum.imag ** 2
    return ((0.5 * jnp.log(power + 1e-6) - target) ** 2).mean()


def objective_jax_map(signal, target, frame, hop):
    import jax
    import jax.numpy as jnp
    window = 0.5 - 0.5 * jnp.cos(2.0 * np.pi * jnp.arange(frame) / frame).astype(signal.dtype)

    def one(loss, given):
        k, wanted = given
        spectrum = jnp.fft.rfft(jax.lax.dynamic_slice(signal, (k * hop,), (frame,)) * window)
        power = spectrum.real ** 2 + spectrum.imag ** 2
        return loss + ((0.5 * jnp.log(power + 1e-6) - wanted) ** 2).sum(), None

    loss, _ = jax.lax.scan(one, jnp.zeros((), signal.dtype), (jnp.arange(len(target)), target))
    return loss / target.size
