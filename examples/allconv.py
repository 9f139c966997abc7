# SPDX-License-Identifier: Apache-2.0
"""A network of convolutions alone learns to read handwritten digits.

    python examples/allconv.py [--quick] [--epochs N] [--no-jit] [--seed N] [--out FOLDER]

As in J. Springenberg et al., Striving for simplicity: the all convolutional net (2015), in small: kernels of 3 × 3,
steps of two where others pool, and the mean over what is left of the image instead of a dense layer.  The 1,797 images
of 8 × 8 are those of examples/digits.py; 359 of them, fixed beforehand, say how well the network reads.
"""
import os
import time
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")      # products this small are slower on two threads; before NumPy

import numpy as np
import shown

import gradscribe as gs
from gradscribe import nn, optim

DATA = Path(__file__).resolve().parent / "data" / "digits.npz"
BATCH, RATE = 32, 4e-3


class Result(NamedTuple):
    losses: list[float]             # of each epoch
    errors: list[float]             # of each epoch: the share of the held-out images that is misread
    accuracy: float
    first_call: float               # seconds
    later_call: float


# --- the network: what a user writes ---------------------------------------------

def convolution(channels, window=3, stride=1):
    return nn.Conv(channels, (window, window), (stride, stride), padding="SAME", W_init=nn.initializers.he_normal())


init_network, network = nn.serial(
    convolution(16), nn.Relu,
    convolution(32, stride=2), nn.Relu,         # 8 × 8 to 4 × 4
    convolution(32, stride=2), nn.Relu,         # to 2 × 2
    convolution(10, window=1))


def scores(params, images):
    """A number for each digit: the mean over the image of the last layer's channels."""
    return np.mean(network(params, images), axis=(1, 2))


def loss(params, images, labels):
    return np.mean(nn.softmax_cross_entropy_with_integer_labels(scores(params, images), labels))


# --- the data ----------------------------------------------------------------------

def read_digits():
    """Training and held-out images (n, 8, 8, 1) around 0 with their labels; every run has the same split."""
    with np.load(DATA) as data:
        images = (data["images"][..., np.newaxis] / 16.0 - 0.3) / 0.35
        labels = data["labels"].astype(np.int64)
    order = np.random.default_rng(0).permutation(len(images))
    test, train = order[:len(images) // 5], order[len(images) // 5:]
    return images[train], labels[train], images[test], labels[test]


# --- what the user sees ------------------------------------------------------------

def train(step_gradient, params, data, epochs, rng, folder=None):
    """Adam over so many epochs; with a folder, each epoch's end is saved there, and the next run goes on from it."""
    images, labels, test_images, test_labels = data
    per_epoch = len(images) // BATCH
    optimiser = optim.adam(optim.cosine_decay_schedule(RATE, epochs * per_epoch))
    state = optimiser.init(params)
    losses, errors, begin = np.zeros(epochs), np.zeros(epochs), 0
    saved = None if folder is None else gs.distributed.restore(folder, (params, state, losses, errors))
    if saved is not None:
        begin, (params, state, losses, errors) = saved
        for _ in range(begin):
            rng.permutation(len(images))                # as they were drawn
        print(f"Goes on after epoch {begin}.", flush=True)
    for epoch in shown.progress(range(begin, epochs), "epoch"):
        order, total = rng.permutation(len(images)), 0.0
        for i in range(per_epoch):
            batch = order[i * BATCH:(i + 1) * BATCH]
            value, gradient = step_gradient(params, images[batch], labels[batch])
            updates, state = optimiser.update(gradient, state, params)
            params = optim.apply_updates(params, updates)
            total += value
        losses[epoch] = total / per_epoch
        errors[epoch] = np.mean(np.argmax(scores(params, test_images), axis=1) != test_labels)
        if folder is not None:
            gs.distributed.save(folder, epoch + 1, (params, state, losses, errors))
    return params, losses.tolist(), errors.tolist()


def draw(kernels, losses, errors, folder):
    drawn = shown.figure(11, 4.5)
    if drawn is None:
        return
    left, right = drawn.subfigures(1, 2, width_ratios=(3, 2))
    axes = left.subplots()
    epochs = range(1, len(losses) + 1)
    axes.semilogy(epochs, losses, label="training loss")
    axes.semilogy(epochs, np.maximum(errors, 1e-3), label="held-out images misread")
    axes.set(xlabel="epoch")
    axes.legend()
    right.suptitle("kernels of the first layer")
    limit = np.max(np.abs(kernels))
    for k, axes in enumerate(right.subplots(4, 4).ravel()):
        axes.imshow(kernels[:, :, 0, k], cmap="RdBu", vmin=-limit, vmax=limit)
        axes.set_axis_off()
    shown.save(drawn, folder, "allconv.png")


def main(words=None):
    parser = shown.options(__doc__)
    parser.add_argument("--epochs", type=int, help="20, or 6 with --quick")
    parser.add_argument("--folder", help="where each epoch's state is saved; a run that was stopped goes on from there")
    given = parser.parse_args(words)
    epochs = given.epochs or (6 if given.quick else 20)
    data = read_digits()
    shape, params = init_network(gs.random.key(given.seed), (-1, 8, 8, 1))
    size = sum(p.size for p in gs.tree_util.tree_leaves(params))

    shown.title(f"{size:,} parameters, {len(data[0]):,} images, {'plain NumPy' if given.no_jit else 'compiled'}")
    step_gradient = gs.value_and_grad(loss)
    if not given.no_jit:
        step_gradient = gs.jit(step_gradient)
    start = time.perf_counter()
    step_gradient(params, data[0][:BATCH], data[1][:BATCH])
    first_call = time.perf_counter() - start
    print(f"First gradient {first_call:.2f} s{'' if given.no_jit else ' with compilation'}.", flush=True)
    start = time.perf_counter()
    params, losses, errors = train(step_gradient, params, data, epochs, np.random.default_rng(given.seed),
                                   given.folder)
    later_call = (time.perf_counter() - start) / (epochs * (len(data[0]) // BATCH))
    print(f"{1e3 * later_call:.1f} ms a step of {BATCH} images; the loss fell from {losses[0]:.2f} to {losses[-1]:.4f}")

    found = np.argmax(scores(params, data[2]), axis=1)
    accuracy = float(np.mean(found == data[3]))
    shown.title(f"{len(found)} images that it has not seen")
    print(f"Test accuracy: {100 * accuracy:.2f}% ({np.sum(found == data[3])} of {len(found)})")
    for k in np.flatnonzero(found != data[3]):
        print(f"image {k} is a {data[3][k]}, and was read as {found[k]}")
    draw(params[0][0], losses, errors, given.out)
    return Result(losses, errors, accuracy, first_call, later_call)


if __name__ == "__main__":
    main()
