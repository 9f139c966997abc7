"""An American put on a binomial lattice: its value and the derivatives by price, volatility and rate."""
import numpy as np

SOURCE = "J. C. Cox, S. A. Ross and M. Rubinstein, Option pricing: a simplified approach (1979)"
argnums = (0, 1, 2)
static_argnums = (4,)
sizes = {"S": dict(steps=100), "M": dict(steps=1500)}


def make_inputs(size, seed=0):
    rng = np.random.default_rng(139 + seed)
    return 95.0 + 10.0 * rng.random(), 0.2 + 0.1 * rng.random(), 0.03 + 0.02 * rng.random(), 100.0, sizes[size]["steps"]


def objective_numpy(price, volatility, rate, strike, steps):
    dt = 1.0 / steps
    up = np.exp(volatility * np.sqrt(dt))
    down = 1.0 / up
    discount = np.exp(-rate * dt)
    p = (1.0 / discount - down) / (up - down)
    value = np.zeros(steps + 1)
    for j in range(steps + 1):
        value[j] = max(strike - price * up ** (2.0 * j - steps), 0.0)
    for i in range(steps - 1, -1, -1):
        for j in range(i + 1):
            hold = discount * (p * value[j + 1] + (1.0 - p) * value[j])
            value[j] = max(hold, strike - price * up ** (2.0 * j - i))
    return value[0]


def objective_vec(price, volatility, rate, strike, steps):
    dt = 1.0 / steps
    up = np.exp(volatility * np.sqrt(dt))
    down = 1.0 / up
    discount = np.exp(-rate * dt)
    p = (1.0 / discount - down) / (up - down)
    j = np.arange(steps + 1)
    value = np.maximum(strike - price * up ** (2.0 * j - steps), 0.0)
    for i in range(steps - 1, -1, -1):
        hold = discount * (p * value[1:i + 2] + (1.0 - p) * value[:i + 1])
        value[:i + 1] = np.maximum(hold, strike - price * up ** (2.0 * j[:i + 1] - i))
    return value[0]


variants = {"numpy": objective_numpy, "vec": objective_vec}


def objective_jax(price, volatility, rate, strike, steps):
    import jax
    import jax.numpy as jnp
    dt = 1.0 / steps
    up = jnp.exp(volatility * np.sqrt(dt))
    discount = jnp.exp(-rate * dt)
    p = (1.0 / discount - 1.0 / up) / (up - 1.0 / up)
    j = jnp.arange(steps + 1)
    value = jnp.maximum(strike - price * up ** (2.0 * j - steps), 0.0)

    def back(value, i):
        hold = discount * (p * jnp.append(value[1:], 0.0) + (1.0 - p) * value)
        return jnp.maximum(hold, strike - price * up ** (2.0 * j - i)), None

    value, _ = jax.lax.scan(back, value, jnp.arange(steps - 1, -1, -1))
    return value[0]


def objective_jax_logs(price, volatility, rate, strike, steps):
    """Powers as exponentials, which are cheaper there."""
    import jax
    import jax.numpy as jnp
    dt = 1.0 / steps
    s = volatility * np.sqrt(dt)
    up = jnp.exp(s)
    discount = jnp.exp(-rate * dt)
    p = (1.0 / discount - 1.0 / up) / (up - 1.0 / up)
    j = jnp.arange(steps + 1)
    value = jnp.maximum(strike - price * jnp.exp(s * (2.0 * j - steps)), 0.0)

    def back(value, i):
        hold = discount * (p * jnp.append(value[1:], 0.0) + (1.0 - p) * value)
        return jnp.maximum(hold, strike - price * jnp.exp(s * (2.0 * j - i))), None

    value, _ = jax.lax.scan(back, value, jnp.arange(steps - 1, -1, -1))
    return value[0]
