"""A cloth: a sheet of masses and springs, held at two corners, falls; how far it ends from where it should."""
import numpy as np

SOURCE = "X. Provot, Deformation constraints in a mass-spring model to describe rigid cloth behavior (1995)"
argnums = (0, 1)
static_argnums = (3,)
sizes = {"S": dict(n=8, steps=30), "M": dict(n=32, steps=120)}


def make_inputs(size, seed=0):
    s = sizes[size]
    rng = np.random.default_rng(131 + seed)
    n = s["n"]
    return 0.1 * rng.normal(size=(n, n, 3)), np.array([400.0, 200.0, 0.8]), 0.3 * rng.normal(size=(n, n, 3)), s["steps"]


def spring(force, x, i, j, k, m, stiffness, rest):
    d = x[k, m] - x[i, j]
    length = np.sqrt(d[0] ** 2 + d[1] ** 2 + d[2] ** 2)
    pull = stiffness * (length - rest) / length
    force[i, j] += pull * d
    force[k, m] -= pull * d


def objective_numpy(velocity, material, target, steps):
    n = velocity.shape[0]
    dt, rest = 0.01, 1.0 / (n - 1)
    x = np.zeros((n, n, 3))
    for i in range(n):
        for j in range(n):
            x[i, j, 0] = i * rest
            x[i, j, 1] = j * rest
    v = velocity.copy()
    for _ in range(steps):
        force = -material[2] * v
        for i in range(n):
            for j in range(n):
                force[i, j, 2] -= 9.81
                if i + 1 < n:
                    spring(force, x, i, j, i + 1, j, material[0], rest)
                if j + 1 < n:
                    spring(force, x, i, j, i, j + 1, material[0], rest)
                if i + 1 < n and j + 1 < n:
                    spring(force, x, i, j, i + 1, j + 1, material[1], rest * np.sqrt(2.0))
        force[0, 0] = 0.0
        force[0, -1] = 0.0
        v = v + dt * force
        v[0, 0] = 0.0
        v[0, -1] = 0.0
        x = x + dt * v
    return np.sum((x - target) ** 2)


def objective_vec(velocity, material, target, steps):
    n = velocity.shape[0]
    dt, rest = 0.01, 1.0 / (n - 1)
    grid = np.arange(n) * rest
    x = np.zeros((n, n, 3))
    x[:, :, 0] = grid[:, None]
    x[:, :, 1] = grid
    v = velocity.copy()
    for _ in range(steps):
        force = -material[2] * v
        force[:, :, 2] -= 9.81
        d = x[1:] - x[:-1]
        length = np.sqrt(np.sum(d * d, axis=2, keepdims=True))
        f = material[0] * (length - rest) / length * d
        force[:-1] += f
        force[1:] -= f
        d = x[:, 1:] - x[:, :-1]
        length = np.sqrt(np.sum(d * d, axis=2, keepdims=True))
        f = material[0] * (length - rest) / length * d
        force[:, :-1] += f
        force[:, 1:] -= f
        d = x[1:, 1:] - x[:-1, :-1]
        length = np.sqrt(np.sum(d * d, axis=2, keepdims=True))
        f = material[1] * (length - rest * np.sqrt(2.0)) / length * d
        force[:-1, :-1] += f
        force[1:, 1:] -= f
        v = v + dt * force
        v[0, 0] = 0.0
        v[0, -1] = 0.0
        x = x + dt * v
    return np.sum((x - target) ** 2)


variants = {"numpy": objective_numpy, "vec": objective_vec}


def _fall(velocity, material, target, steps, remat):
    import jax
    import jax.numpy as jnp
    n = velocity.shape[0]
    dt, rest = 0.01, 1.0 / (n - 1)
    grid = jnp.arange(n, dtype=velocity.dtype) * rest
    x = jnp.stack(jnp.broadcast_arrays(grid[:, None], grid, jnp.zeros((), velocity.dtype)), axis=2)
    free = jnp.ones((n, n, 1), velocity.dtype).at[0, 0].set(0.0).at[0, -1].set(0.0)
    gravity = jnp.array([0.0, 0.0, 9.81], velocity.dtype)

    def pull(d, stiffness, rest):
        length = jnp.sqrt((d * d).sum(axis=2, keepdims=True))
        return stiffness * (length - rest) / length * d

    def step(state, _):
        x, v = state
        force = -material[2] * v - gravity
        f = pull(x[1:] - x[:-1], material[0], rest)
        force = force.at[:-1].add(f).at[1:].add(-f)
        f = pull(x[:, 1:] - x[:, :-1], material[0], rest)
        force = force.at[:, :-1].add(f).at[:, 1:].add(-f)
        f = pull(x[1:, 1:] - x[:-1, :-1], material[1], rest * np.sqrt(2.0))
        force = force.at[:-1, :-1].add(f).at[1:, 1:].add(-f)
        v = (v + dt * force) * free
        return (x + dt * v, v), None

    (x, _), _ = jax.lax.scan(jax.checkpoint(step) if remat else step, (x, velocity), None, length=steps)
    return ((x - target) ** 2).sum()


def objective_jax(velocity, material, target, steps):
    return _fall(velocity, material, target, steps, False)


def objective_jax_remat(velocity, material, target, steps):
    return _fall(velocity, material, target, steps, True)
