"""Rays through a lens: skew rays through spherical surfaces, and how far they are spread on the image plane."""
import numpy as np

SOURCE = "W. T. Welford, Aberrations of Optical Systems (1986), 4.3: finite raytracing"
argnums = (0, 1)
static_argnums = ()
sizes = {"S": dict(rays=100, surfaces=6), "M": dict(rays=4000, surfaces=10)}


def make_inputs(size, seed=0):
    s = sizes[size]
    rng = np.random.default_rng(101 + seed)
    n, m = s["rays"], s["surfaces"]
    curvature = 0.02 * (-1.0) ** np.arange(m) * (0.5 + rng.random(m))
    distance = 2.0 + rng.random(m + 1)
    index = np.where(np.arange(m + 1) % 2 == 0, 1.0, 1.5 + 0.2 * rng.random(m + 1))
    start = np.column_stack([rng.uniform(-3, 3, n), rng.uniform(-3, 3, n)])
    tilt = np.column_stack([rng.uniform(-0.02, 0.02, n), rng.uniform(-0.02, 0.02, n)])
    return curvature, distance, index, start, tilt


def objective_numpy(curvature, distance, index, start, tilt):
    n = start.shape[0]
    image = np.zeros((n, 2))
    for ray in range(n):
        x, y, z = start[ray, 0], start[ray, 1], 0.0
        L, M = tilt[ray, 0], tilt[ray, 1]
        N = np.sqrt(1.0 - L * L - M * M)
        for k in range(curvature.shape[0]):
            c = curvature[k]
            t = (distance[k] - z) / N
            x, y = x + L * t, y + M * t
            F = c * (x * x + y * y)
            G = N - c * (L * x + M * y)
            cos_in = np.sqrt(G * G - c * F)
            step = F / (G + cos_in)
            x, y, z = x + L * step, y + M * step, N * step
            n1, n2 = index[k], index[k + 1]
            cos_out = np.sqrt(n2 * n2 - n1 * n1 * (1.0 - cos_in * cos_in)) / n2
            K = c * (n2 * cos_out - n1 * cos_in)
            L = (n1 * L - K * x) / n2
            M = (n1 * M - K * y) / n2
            N = (n1 * N - K * z + n2 * cos_out - n1 * cos_in) / n2
        t = (distance[-1] - z) / N
        image[ray, 0] = x + L * t
        image[ray, 1] = y + M * t
    centre = np.mean(image, axis=0)
    return np.sum((image - centre) ** 2) / n


def objective_vec(curvature, distance, index, start, tilt):
    x, y = start[:, 0], start[:, 1]
    z = np.zeros_like(x)
    L, M = tilt[:, 0], tilt[:, 1]
    N = np.sqrt(1.0 - L * L - M * M)
    for k in range(len(curvature)):
        c = curvature[k]
        t = (distance[k] - z) / N
        x, y = x + L * t, y + M * t
        F = c * (x * x + y * y)
        G = N - c * (L * x + M * y)
        cos_in = np.sqrt(G * G - c * F)
        step = F / (G + cos_in)
        x, y, z = x + L * step, y + M * step, N * step
        n1, n2 = index[k], index[k + 1]
        cos_out = np.sqrt(n2 * n2 - n1 * n1 * (1.0 - cos_in * cos_in)) / n2
        K = c * (n2 * cos_out - n1 * cos_in)
        L, M, N = (n1 * L - K * x) / n2, (n1 * M - K * y) / n2, (n1 * N - K * z + n2 * cos_out - n1 * cos_in) / n2
    t = (distance[-1] - z) / N
    x, y = x + L * t, y + M * t
    return np.mean((x - np.mean(x)) ** 2) + np.mean((y - np.mean(y)) ** 2)


variants = {"numpy": objective_numpy, "vec": objective_vec}


def _surface(ray, at):
    import jax.numpy as jnp
    x, y, z, L, M, N = ray
    c, d, n1, n2 = at
    t = (d - z) / N
    x, y = x + L * t, y + M * t
    F = c * (x * x + y * y)
    G = N - c * (L * x + M * y)
    cos_in = jnp.sqrt(G * G - c * F)
    step = F / (G + cos_in)
    x, y, z = x + L * step, y + M * step, N * step
    cos_out = jnp.sqrt(n2 * n2 - n1 * n1 * (1.0 - cos_in * cos_in)) / n2
    K = c * (n2 * cos_out - n1 * cos_in)
    return x, y, z, (n1 * L - K * x) / n2, (n1 * M - K * y) / n2, (n1 * N - K * z + n2 * cos_out - n1 * cos_in) / n2


def _spot(ray, distance):
    x, y, z, L, M, N = ray
    t = (distance[-1] - z) / N
    x, y = x + L * t, y + M * t
    return ((x - x.mean()) ** 2).mean() + ((y - y.mean()) ** 2).mean()


def _rays(start, tilt):
    import jax.numpy as jnp
    L, M = tilt[:, 0], tilt[:, 1]
    return start[:, 0], start[:, 1], jnp.zeros(len(start), start.dtype), L, M, jnp.sqrt(1.0 - L * L - M * M)


def objective_jax(curvature, distance, index, start, tilt):
    ray = _rays(start, tilt)
    for k in range(len(curvature)):
        ray = _surface(ray, (curvature[k], distance[k], index[k], index[k + 1]))
    return _spot(ray, distance)


def objective_jax_scan(curvature, distance, index, start, tilt):
    import jax
    ray, _ = jax.lax.scan(lambda ray, at: (_surface(ray, at), None), _rays(start, tilt),
                          (curvature, distance[:-1], index[:-1], index[1:]))
    return _spot(ray, distance)
