"""A bank of second-order recursive filters: the energies of a signal's bands against those that are wanted."""
import numpy as np

SOURCE = "A. V. Oppenheim and R. W. Schafer, Discrete-Time Signal Processing (2010), 6.3: direct form II transposed"
argnums = (0,)
static_argnums = ()
sizes = {"S": dict(bands=4, n=1000), "M": dict(bands=12, n=10_000)}


def make_inputs(size, seed=0):
    s = sizes[size]
    rng = np.random.default_rng(107 + seed)
    bands, n = s["bands"], s["n"]
    frequency = np.linspace(0.1, 2.5, bands)
    radius = 0.9 + 0.05 * rng.random(bands)
    coefficients = np.column_stack([1.0 - radius, 0.1 * rng.normal(size=bands), radius - 1.0,
                                    -2.0 * radius * np.cos(frequency), radius ** 2])
    return coefficients, rng.normal(size=n), 0.1 + rng.random(bands)


def objective_numpy(coefficients, signal, wanted):
    loss = 0.0
    for band in range(len(coefficients)):
        b0, b1, b2, a1, a2 = coefficients[band]
        z1, z2, energy = 0.0, 0.0, 0.0
        for x in signal:
            y = b0 * x + z1
            z1 = b1 * x - a1 * y + z2
            z2 = b2 * x - a2 * y
            energy += y * y
        loss += (np.log(energy / len(signal)) - np.log(wanted[band])) ** 2
    return loss


def objective_vec(coefficients, signal, wanted):
    b0, b1, b2, a1, a2 = coefficients.T
    z1 = np.zeros(len(wanted))
    z2 = np.zeros(len(wanted))
    energy = np.zeros(len(wanted))
    for x in signal:
        y = b0 * x + z1
        z1 = b1 * x - a1 * y + z2
        z2 = b2 * x - a2 * y
        energy += y * y
    return np.sum((np.log(energy / len(signal)) - np.log(wanted)) ** 2)


variants = {"numpy": objective_numpy, "vec": objective_vec}


def _run(coefficients, signal, wanted, unroll):
    import jax
    import jax.numpy as jnp
    b0, b1, b2, a1, a2 = coefficients.T
    zero = jnp.zeros(len(wanted), signal.dtype)

    def sample(state, x):
        z1, z2, energy = state
        y = b0 * x + z1
        return (b1 * x - a1 * y + z2, b2 * x - a2 * y, energy + y * y), None

    (_, _, energy), _ = jax.lax.scan(sample, (zero, zero, zero), signal, unroll=unroll)
    return ((jnp.log(energy / len(signal)) - jnp.log(wanted)) ** 2).sum()


def objective_jax(coefficients, signal, wanted):
    return _run(coefficients, signal, wanted, 1)


def objective_jax_unrolled(coefficients, signal, wanted):
    return _run(coefficients, signal, wanted, 8)
