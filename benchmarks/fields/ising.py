"""Mean-field magnetisations of spins: each takes the field of the others as they are by then, and the free energy."""
import numpy as np

SOURCE = "D. J. C. MacKay, Information Theory, Inference, and Learning Algorithms (2003), 33.2"
argnums = (0, 1)
static_argnums = (3,)
sizes = {"S": dict(n=30, sweeps=8), "M": dict(n=120, sweeps=20)}


def make_inputs(size, seed=0):
    s = sizes[size]
    rng = np.random.default_rng(127 + seed)
    J = rng.normal(size=(s["n"], s["n"])) / s["n"]
    J = 0.5 * (J + J.T)
    np.fill_diagonal(J, 0.0)
    return J, 0.3 * rng.normal(size=s["n"]), 1.2, s["sweeps"]


def objective_numpy(J, h, beta, sweeps):
    n = len(h)
    m = np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            m[i] = np.tanh(beta * (J[i] @ m + h[i]))
    energy = -0.5 * (m @ J @ m) - h @ m
    up, down = 0.5 * (1.0 + m), 0.5 * (1.0 - m)
    entropy = -np.sum(up * np.log(up) + down * np.log(down))
    return beta * energy - entropy


variants = {"numpy": objective_numpy}


def _free_energy(J, h, beta, sweeps, unroll):
    import jax
    import jax.numpy as jnp
    n = len(h)

    def spin(m, i):
        return m.at[i].set(jnp.tanh(beta * (J[i] @ m + h[i]))), None

    def sweep(m, _):
        return jax.lax.scan(spin, m, jnp.arange(n), unroll=unroll)[0], None

    m, _ = jax.lax.scan(sweep, jnp.zeros(n, h.dtype), None, length=sweeps)
    up, down = 0.5 * (1.0 + m), 0.5 * (1.0 - m)
    return beta * (-0.5 * (m @ J @ m) - h @ m) + (up * jnp.log(up) + down * jnp.log(down)).sum()


def objective_jax(J, h, beta, sweeps):
    return _free_energy(J, h, beta, sweeps, 1)


def objective_jax_unrolled(J, h, beta, sweeps):
    return _free_energy(J, h, beta, sweeps, 6)
