"""A drug in patients: absorption and two compartments by Runge and Kutta's method, residuals of log concentrations."""
import numpy as np

SOURCE = "J. Gabrielsson and D. Weiner, Pharmacokinetic and Pharmacodynamic Data Analysis (2006), 2.4"
argnums = (0, 1)
static_argnums = (4,)
sizes = {"S": dict(patients=6, samples=8, steps=6), "M": dict(patients=60, samples=20, steps=12)}


def make_inputs(size, seed=0):
    s = sizes[size]
    rng = np.random.default_rng(149 + seed)
    n, m = s["patients"], s["samples"]
    theta = np.log(np.array([1.2, 0.3, 2.0, 0.5, 3.0]))
    return (theta, 0.2 * rng.normal(size=(n, 5)), 50.0 + 100.0 * rng.random(n), rng.normal(size=(n, m)), s["steps"])


def rates(y, ka, CL, V1, Q, V2):
    gut, central, outer = y[0], y[1], y[2]
    dydt = np.empty(3)
    dydt[0] = -ka * gut
    dydt[1] = ka * gut - (CL + Q) / V1 * central + Q / V2 * outer
    dydt[2] = Q / V1 * central - Q / V2 * outer
    return dydt


def objective_numpy(theta, eta, dose, observed, steps):
    patients, samples = observed.shape
    h = 0.5 / steps
    loss = 0.5 * np.sum(eta ** 2)
    for i in range(patients):
        ka, CL, V1, Q, V2 = np.exp(theta + eta[i])
        y = np.array([dose[i], 0.0, 0.0])
        for j in range(samples):
            for _ in range(steps):
                k1 = rates(y, ka, CL, V1, Q, V2)
                k2 = rates(y + 0.5 * h * k1, ka, CL, V1, Q, V2)
                k3 = rates(y + 0.5 * h * k2, ka, CL, V1, Q, V2)
                k4 = rates(y + h * k3, ka, CL, V1, Q, V2)
                y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
            loss += 0.5 * (np.log(y[1] / V1) - observed[i, j]) ** 2
    return loss


variants = {"numpy": objective_numpy}


def objective_jax(theta, eta, dose, observed, steps):
    import jax
    import jax.numpy as jnp
    h = 0.5 / steps

    def patient(eta, dose, observed):
        ka, CL, V1, Q, V2 = jnp.exp(theta + eta)

        def rates(y):
            gut, central, outer = y
            return jnp.stack([-ka * gut, ka * gut - (CL + Q) / V1 * central + Q / V2 * outer,
                              Q / V1 * central - Q / V2 * outer])

        def step(y, _):
            k1 = rates(y)
            k2 = rates(y + 0.5 * h * k1)
            k3 = rates(y + 0.5 * h * k2)
            k4 = rates(y + h * k3)
            return y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4), None

        def sample(y, seen):
            y, _ = jax.lax.scan(step, y, None, length=steps)
            return y, 0.5 * (jnp.log(y[1] / V1) - seen) ** 2

        _, losses = jax.lax.scan(sample, jnp.zeros(3, dose.dtype).at[0].set(dose), observed)
        return losses.sum()

    return 0.5 * (eta ** 2).sum() + jax.vmap(patient)(eta, dose, observed).sum()


def objective_jax_axis(theta, eta, dose, observed, steps):
    """The patients as the last axis of all that there is."""
    import jax
    import jax.numpy as jnp
    h = 0.5 / steps
    ka, CL, V1, Q, V2 = jnp.exp(theta[:, None] + eta.T)

    def rates(gut, central, outer):
        return -ka * gut, ka * gut - (CL + Q) / V1 * central + Q / V2 * outer, Q / V1 * central - Q / V2 * outer

    def step(y, _):
        def at(k, w):
            return [a + w * h * b for a, b in zip(y, k)]

        k1 = rates(*y)
        k2 = rates(*at(k1, 0.5))
        k3 = rates(*at(k2, 0.5))
        k4 = rates(*at(k3, 1.0))
        return tuple(a + h / 6.0 * (b + 2.0 * c + 2.0 * d + e) for a, b, c, d, e in zip(y, k1, k2, k3, k4)), None

    def sample(y, seen):
        y, _ = jax.lax.scan(step, y, None, length=steps)
        return y, 0.5 * ((jnp.log(y[1] / V1) - seen) ** 2).sum()

    _, losses = jax.lax.scan(sample, (dose, jnp.zeros_like(dose), jnp.zeros_like(dose)), observed.T)
    return 0.5 * (eta ** 2).sum() + losses.sum()
