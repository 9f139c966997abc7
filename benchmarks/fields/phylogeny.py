"""The likelihood of an alignment on a tree: partial likelihoods from the leaves to the root, F81's substitutions."""
import numpy as np

SOURCE = "J. Felsenstein, Evolutionary trees from DNA sequences: a maximum likelihood approach (1981)"
argnums = (0, 1)
static_argnums = ()
sizes = {"S": dict(leaves=8, sites=60), "M": dict(leaves=32, sites=1500)}


def make_inputs(size, seed=0):
    s = sizes[size]
    rng = np.random.default_rng(113 + seed)
    n, sites = s["leaves"], s["sites"]
    children, roots = np.zeros((n - 1, 2), int), list(range(n))
    for node in range(n - 1):
        a, b = rng.choice(len(roots), 2, replace=False)
        children[node] = roots[a], roots[b]
        roots = [r for k, r in enumerate(roots) if k not in (a, b)] + [n + node]
    return 0.05 + 0.3 * rng.random(2 * n - 2), 0.3 * rng.normal(size=4), children, rng.integers(0, 4, (n, sites))


def objective_numpy(lengths, logits, children, letters):
    leaves, sites = letters.shape
    pi = np.exp(logits) / np.sum(np.exp(logits))
    beta = 1.0 / (1.0 - np.sum(pi ** 2))
    partial = np.zeros((leaves + len(children), sites, 4))
    for i in range(leaves):
        for site in range(sites):
            partial[i, site, letters[i, site]] = 1.0
    loglik = 0.0
    for node in range(len(children)):
        left, right = children[node]
        stay_left = np.exp(-beta * lengths[left])
        stay_right = np.exp(-beta * lengths[right])
        for site in range(sites):
            a = stay_left * partial[left, site] + (1.0 - stay_left) * (pi @ partial[left, site])
            b = stay_right * partial[right, site] + (1.0 - stay_right) * (pi @ partial[right, site])
            product = a * b
            scale = np.max(product)
            partial[leaves + node, site] = product / scale
            loglik += np.log(scale)
    for site in range(sites):
        loglik += np.log(pi @ partial[-1, site])
    return -loglik / sites


def objective_vec(lengths, logits, children, letters):
    leaves, sites = letters.shape
    pi = np.exp(logits) / np.sum(np.exp(logits))
    beta = 1.0 / (1.0 - np.sum(pi ** 2))
    partial = np.zeros((leaves + len(children), sites, 4))
    partial[:leaves] = np.eye(4)[letters]
    loglik = 0.0
    for node in range(len(children)):
        product = np.ones((sites, 4))
        for child in children[node]:
            stay = np.exp(-beta * lengths[child])
            product = product * (stay * partial[child] + (1.0 - stay) * (partial[child] @ pi)[:, None])
        scale = np.max(product, axis=1)
        partial[leaves + node] = product / scale[:, None]
        loglik += np.sum(np.log(scale))
    loglik += np.sum(np.log(partial[-1] @ pi))
    return -loglik / sites


variants = {"numpy": objective_numpy, "vec": objective_vec}


def _prune(lengths, logits, children, letters, unrolled):
    import jax
    import jax.numpy as jnp
    leaves, sites = letters.shape
    pi = jax.nn.softmax(logits)
    stay = jnp.exp(-lengths / (1.0 - (pi ** 2).sum()))
    start = jax.nn.one_hot(letters, 4, dtype=lengths.dtype)
    table = jnp.concatenate([start, jnp.zeros((len(children), sites, 4), lengths.dtype)])

    def joined(table, pair):
        product = 1.0
        for child in (pair[0], pair[1]):
            product = product * (stay[child] * table[child] + (1.0 - stay[child]) * (table[child] @ pi)[:, None])
        scale = product.max(axis=1)
        return product / scale[:, None], jnp.log(scale).sum()

    def step(table, given):
        node, pair = given
        made, scale = joined(table, pair)
        return table.at[leaves + node].set(made), scale

    if unrolled:
        scales = []
        for node in range(len(children)):
            made, scale = joined(table, children[node])
            table = table.at[leaves + node].set(made)
            scales.append(scale)
        scales = jnp.stack(scales)
    else:
        table, scales = jax.lax.scan(step, table, (jnp.arange(len(children)), children))
    return -(scales.sum() + jnp.log(table[-1] @ pi).sum()) / sites


def objective_jax(lengths, logits, children, letters):
    return _prune(lengths, logits, children, letters, False)


def objective_jax_unrolled(lengths, logits, children, letters):
    return _prune(lengths, logits, children, letters, True)
