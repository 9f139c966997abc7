"""D-LSTM (ADBench objective 4): LSTM with diagonal weight matrices, character-level log-loss.

main_params (2l, 4b): row 2i = weights, 2i+1 = biases of layer i in order forget|in|out|change;
extra_params (3,b): input weight, output weight, output bias; state (2l,b): hidden, cell per layer;
sequence (c,b) of 0/1 character bits.  b = 14.
"""
import os

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
SOURCE = "ADBench data/lstm/lstm_l{2,4}_c{1024,4096}.txt"
argnums = (0, 1)
static_argnums = ()
sizes = {"S": dict(l=2, c=64), "M": dict(l=2, c=1024), "L": dict(l=4, c=4096)}


def make_inputs(size, seed=0):
    s = sizes[size]
    z = np.load(f"{DATA}/lstm_l{s['l']}_c{max(s['c'], 1024)}.npz")
    main, extra, state = z["main_params"], z["extra_params"], z["state"]
    if seed:
        rng = np.random.default_rng(seed)
        main, extra, state = (rng.random(v.shape) for v in (main, extra, state))
    return main, extra, state, z["sequence"][:s["c"]].astype(np.float64)


# ---------------------------------------------------------------- plain NumPy
def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def objective_numpy(main_params, extra_params, state, sequence):
    layers = main_params.shape[0] // 2
    c, b = sequence.shape
    hidden = np.zeros((layers, b))
    cell = np.zeros((layers, b))
    for i in range(layers):
        hidden[i] = state[2 * i]
        cell[i] = state[2 * i + 1]
    loss = 0.0
    for t in range(c - 1):
        x = sequence[t] * extra_params[0]
        for i in range(layers):
            W = main_params[2 * i]
            B = main_params[2 * i + 1]
            forget = sigmoid(x * W[:b] + B[:b])
            ingate = sigmoid(hidden[i] * W[b:2 * b] + B[b:2 * b])
            outgate = sigmoid(x * W[2 * b:3 * b] + B[2 * b:3 * b])
            change = np.tanh(hidden[i] * W[3 * b:] + B[3 * b:])
            cell[i] = cell[i] * forget + ingate * change
            hidden[i] = outgate * np.tanh(cell[i])
            x = hidden[i]
        ypred = x * extra_params[1] + extra_params[2]
        lse = np.log(np.sum(np.exp(ypred)) + 2.0)
        loss += np.sum(sequence[t + 1] * (ypred - lse))
    return -loss / ((c - 1) * b)


variants = {"numpy": objective_numpy}


# ---------------------------------------------------------------- JAX (expert)
def _scan_jax(main_params, extra_params, state, sequence, remat=False, unroll=1):
    import jax
    import jax.numpy as jnp
    layers = main_params.shape[0] // 2
    c, b = sequence.shape
    W = main_params[0::2].reshape(layers, 4, b)
    B = main_params[1::2].reshape(layers, 4, b)

    def step(carry, inp):
        hidden, cell = carry
        x_t, y_t = inp
        x = x_t * extra_params[0]
        hs, cs = [], []
        for i in range(layers):
            h = hidden[i]
            forget = jax.nn.sigmoid(x * W[i, 0] + B[i, 0])
            ingate = jax.nn.sigmoid(h * W[i, 1] + B[i, 1])
            outgate = jax.nn.sigmoid(x * W[i, 2] + B[i, 2])
            change = jnp.tanh(h * W[i, 3] + B[i, 3])
            cc = cell[i] * forget + ingate * change
            x = outgate * jnp.tanh(cc)
            hs.append(x)
            cs.append(cc)
        return (tuple(hs), tuple(cs)), x

    init = (tuple(state[2 * i] for i in range(layers)), tuple(state[2 * i + 1] for i in range(layers)))
    # only the recurrence is sequential; the output layer is batched outside the scan
    _, xs = jax.lax.scan(jax.checkpoint(step) if remat else step, init, (sequence[:-1], sequence[1:]), unroll=unroll)
    ypred = xs * extra_params[1] + extra_params[2]
    lse = jnp.log(jnp.sum(jnp.exp(ypred), axis=1, keepdims=True) + 2.0)
    return -jnp.sum(sequence[1:] * (ypred - lse)) / ((c - 1) * b)


def objective_jax(main_params, extra_params, state, sequence):
    return _scan_jax(main_params, extra_params, state, sequence)


def objective_jax_remat(main_params, extra_params, state, sequence):
    return _scan_jax(main_params, extra_params, state, sequence, remat=True)


def objective_jax_unroll4(main_params, extra_params, state, sequence):
    return _scan_jax(main_params, extra_params, state, sequence, unroll=4)


def objective_autograd(main_params, extra_params, state, sequence):
    import autograd.numpy as anp

    def sg(z):
        return 1.0 / (1.0 + anp.exp(-z))
    layers = main_params.shape[0] // 2
    c, b = sequence.shape
    hidden = [state[2 * i] for i in range(layers)]
    cell = [state[2 * i + 1] for i in range(layers)]
    loss = 0.0
    for t in range(c - 1):
        x = sequence[t] * extra_params[0]
        for i in range(layers):
            W = main_params[2 * i]
            B = main_params[2 * i + 1]
            forget = sg(x * W[:b] + B[:b])
            ingate = sg(hidden[i] * W[b:2 * b] + B[b:2 * b])
            outgate = sg(x * W[2 * b:3 * b] + B[2 * b:3 * b])
            change = anp.tanh(hidden[i] * W[3 * b:] + B[3 * b:])
            cell[i] = cell[i] * forget + ingate * change
            hidden[i] = outgate * anp.tanh(cell[i])
            x = hidden[i]
        ypred = x * extra_params[1] + extra_params[2]
        lse = anp.log(anp.sum(anp.exp(ypred)) + 2.0)
        loss = loss + anp.sum(sequence[t + 1] * (ypred - lse))
    return -loss / ((c - 1) * b)


def objective_torch(main_params, extra_params, state, sequence):
    import torch
    layers = main_params.shape[0] // 2
    c, b = sequence.shape
    Ws = [main_params[2 * i].reshape(4, b) for i in range(layers)]
    Bs = [main_params[2 * i + 1].reshape(4, b) for i in range(layers)]
    hidden = [state[2 * i] for i in range(layers)]
    cell = [state[2 * i + 1] for i in range(layers)]
    xs = []
    for t in range(c - 1):
        x = sequence[t] * extra_params[0]
        for i in range(layers):
            W, B = Ws[i], Bs[i]
            fo = torch.sigmoid(x * W[0::2] + B[0::2])
            ingate = torch.sigmoid(hidden[i] * W[1] + B[1])
            change = torch.tanh(hidden[i] * W[3] + B[3])
            cell[i] = cell[i] * fo[0] + ingate * change
            hidden[i] = fo[1] * torch.tanh(cell[i])
            x = hidden[i]
        xs.append(x)
    ypred = torch.stack(xs) * extra_params[1] + extra_params[2]
    lse = torch.log(torch.exp(ypred).sum(1, keepdim=True) + 2.0)
    return -(sequence[1:] * (ypred - lse)).sum() / ((c - 1) * b)
