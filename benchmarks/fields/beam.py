"""A beam of finite elements: each element's stiffness is added to the beam's, which is solved; the compliance."""
import numpy as np

SOURCE = "T. J. R. Hughes, The Finite Element Method (2000), 1.16: Euler-Bernoulli beams, Hermite cubics"
argnums = (0, 1)
static_argnums = ()
sizes = {"S": dict(n=16), "M": dict(n=100)}


def make_inputs(size, seed=0):
    n = sizes[size]["n"]
    rng = np.random.default_rng(137 + seed)
    return 1.0 + 0.5 * rng.random(n), 1.0 / n * (0.7 + 0.6 * rng.random(n)), rng.normal(size=n)


def objective_numpy(stiffness, lengths, load):
    n = len(stiffness)
    K = np.zeros((2 * n + 2, 2 * n + 2))
    f = np.zeros(2 * n + 2)
    for e in range(n):
        h = lengths[e]
        k = stiffness[e] / h ** 3
        ke = k * np.array([[12.0, 6.0 * h, -12.0, 6.0 * h],
                           [6.0 * h, 4.0 * h ** 2, -6.0 * h, 2.0 * h ** 2],
                           [-12.0, -6.0 * h, 12.0, -6.0 * h],
                           [6.0 * h, 2.0 * h ** 2, -6.0 * h, 4.0 * h ** 2]])
        K[2 * e:2 * e + 4, 2 * e:2 * e + 4] += ke
        f[2 * e] += 0.5 * h * load[e]
        f[2 * e + 1] += h ** 2 / 12.0 * load[e]
        f[2 * e + 2] += 0.5 * h * load[e]
        f[2 * e + 3] -= h ** 2 / 12.0 * load[e]
    u = np.linalg.solve(K[2:, 2:], f[2:])
    return f[2:] @ u


variants = {"numpy": objective_numpy}


def objective_jax(stiffness, lengths, load):
    import jax.numpy as jnp
    n, h = len(stiffness), lengths
    k, one = stiffness / h ** 3, jnp.ones_like(h)
    ke = jnp.array([[12.0 * one, 6.0 * h, -12.0 * one, 6.0 * h],
                    [6.0 * h, 4.0 * h ** 2, -6.0 * h, 2.0 * h ** 2],
                    [-12.0 * one, -6.0 * h, 12.0 * one, -6.0 * h],
                    [6.0 * h, 2.0 * h ** 2, -6.0 * h, 4.0 * h ** 2]]) * k
    at = 2 * jnp.arange(n)[:, None] + jnp.arange(4)
    K = jnp.zeros((2 * n + 2, 2 * n + 2), h.dtype).at[at[:, :, None], at[:, None, :]].add(ke.transpose(2, 0, 1))
    fe = jnp.stack([0.5 * h, h ** 2 / 12.0, 0.5 * h, -h ** 2 / 12.0], axis=1) * load[:, None]
    f = jnp.zeros(2 * n + 2, h.dtype).at[at].add(fe)
    return f[2:] @ jnp.linalg.solve(K[2:, 2:], f[2:])
