"""A queue before several servers: customers come one by one, and the server that is free first serves each of them."""
import numpy as np

SOURCE = "J. Kiefer and J. Wolfowitz, On the theory of queues with many servers (1955)"
argnums = (0, 1)
static_argnums = (2,)
sizes = {"S": dict(n=500, servers=3), "M": dict(n=20_000, servers=6)}


def make_inputs(size, seed=0):
    s = sizes[size]
    rng = np.random.default_rng(103 + seed)
    return rng.exponential(1.0, s["n"]), rng.exponential(0.9 * s["servers"], s["n"]), s["servers"]


def objective_numpy(gaps, service, servers):
    free = np.zeros(servers)
    now, waited = 0.0, 0.0
    for i in range(len(gaps)):
        now += gaps[i]
        k = np.argmin(free)
        start = max(now, free[k])
        waited += (start - now) ** 2
        free[k] = start + service[i]
    return waited / len(gaps)


variants = {"numpy": objective_numpy}


def objective_jax(gaps, service, servers):
    import jax
    import jax.numpy as jnp

    def customer(state, given):
        free, now = state
        gap, work = given
        now = now + gap
        k = jnp.argmin(free)
        start = jnp.maximum(now, free[k])
        return (free.at[k].set(start + work), now), (start - now) ** 2

    _, waited = jax.lax.scan(customer, (jnp.zeros(servers, gaps.dtype), jnp.zeros((), gaps.dtype)), (gaps, service))
    return waited.mean()


def objective_jax_sorted(gaps, service, servers):
    """The servers in the order in which they are free: the first one is taken, and comes back where it belongs."""
    import jax
    import jax.numpy as jnp

    def customer(free, given):
        now, work = given
        start = jnp.maximum(now, free[0])
        return jnp.sort(free.at[0].set(start + work)), (start - now) ** 2

    _, waited = jax.lax.scan(customer, jnp.zeros(servers, gaps.dtype), (jnp.cumsum(gaps), service), unroll=4)
    return waited.mean()
