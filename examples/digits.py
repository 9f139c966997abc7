"""A network learns to read handwritten digits, and the code that computes its gradient is yours to read.

    python examples/digits.py [--epochs N] [--no-jit] [--seed N] [--out FOLDER]

The loss below is plain NumPy.  The program prints the source of its gradient, writes it to a file, compiles it with
Numba and trains the network on 1,438 images; 359 others, fixed beforehand, say how well it reads.
"""
import argparse
import inspect
import io
import sys
import time
from pathlib import Path

import numpy as np

import gradscribe as gs

HERE = Path(__file__).resolve().parent
SIZES = (64, 256, 128, 10)
BATCH = 32


# --- the network: what a user writes -----------------------------------------

def loss(params, x, target):
    """Mean cross-entropy of the softmax of a tanh network; params is a list of (W, b)."""
    for W, b in params[:-1]:
        x = np.tanh(x @ W + b)
    W, b = params[-1]
    scores = x @ W + b
    scores = scores - np.max(scores, axis=1, keepdims=True)
    log_p = scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))
    return -np.mean(np.sum(target * log_p, axis=1))


def predict(params, x):
    for W, b in params[:-1]:
        x = np.tanh(x @ W + b)
    W, b = params[-1]
    return np.argmax(x @ W + b, axis=1)


def first_params(rng):
    return [(rng.standard_normal((m, n)) / np.sqrt(m), np.zeros(n)) for m, n in zip(SIZES, SIZES[1:])]


# --- the data ----------------------------------------------------------------

def read_digits():
    """Training and test images (rows of 64 numbers around 0) with their labels; every run has the same split."""
    with np.load(HERE / "data" / "digits.npz") as data:
        x = (data["images"].reshape(-1, 64) / 16.0 - 0.3) / 0.35
        labels = data["labels"].astype(np.int64)
    order = np.random.default_rng(0).permutation(len(x))
    test, train = order[:len(x) // 5], order[len(x) // 5:]
    return x[train], labels[train], x[test], labels[test]


def soft_targets(labels):
    """One-hot rows, of which a fifth is spread over all digits (label smoothing: less sure, it errs less)."""
    return 0.8 * np.eye(10)[labels] + 0.02


# --- Adam, on lists of tuples of arrays ---------------------------------------

def each(f, *trees):
    """f applied to arrays that stand at the same place."""
    return [tuple(f(*leaves) for leaves in zip(*layers)) for layers in zip(*trees)]


class Adam:
    """Kingma and Ba 2015 (arXiv:1412.6980), with a rate that falls to zero along a cosine."""

    def __init__(self, params, steps, rate=2e-3):
        self.mean = each(np.zeros_like, params)
        self.square = each(np.zeros_like, params)
        self.steps, self.rate, self.k = steps, rate, 0

    def step(self, params, gradient):
        self.k += 1
        self.mean = each(lambda m, g: 0.9 * m + 0.1 * g, self.mean, gradient)
        self.square = each(lambda s, g: 0.999 * s + 0.001 * g * g, self.square, gradient)
        rate = 0.5 * self.rate * (1 + np.cos(np.pi * self.k / self.steps))
        rate *= np.sqrt(1 - 0.999**self.k) / (1 - 0.9**self.k)
        return each(lambda p, m, s: p - rate * m / (np.sqrt(s) + 1e-8), params, self.mean, self.square)


# --- what the user sees --------------------------------------------------------

def title(text):
    print(f"\n--- {text} " + "-" * max(0, 100 - len(text)))


def bar(done, total, width=32):
    full = round(width * done / total)
    return "█" * full + "░" * (width - full)


def progress(epoch, epochs, mean_loss, seconds):
    """One line, drawn over in a terminal; elsewhere a line now and then."""
    line = f"epoch {epoch:3}/{epochs} {bar(epoch, epochs)} loss {mean_loss:.4f}  {seconds:5.1f} s"
    if sys.stdout.isatty():
        print("\r" + line, end="" if epoch < epochs else "\n", flush=True)
    elif epoch in (1, epochs) or epoch % 5 == 0:
        print(line, flush=True)


def draw_curve(losses, path):
    """The loss of each epoch as an SVG picture, on a logarithmic axis above the lowest value."""
    width, height, edge = 640, 320, 48
    low, high = np.log(min(losses)), np.log(max(losses))
    span = (high - low) or 1.0
    points = [(edge + (width - 2 * edge) * i / max(1, len(losses) - 1),
               height - edge - (height - 2 * edge) * (np.log(v) - low) / span) for i, v in enumerate(losses)]
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    frame = f"M{edge},{edge} V{height - edge} H{width - edge}"
    path.write_text(f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
  font-family="sans-serif" font-size="13">
<rect width="{width}" height="{height}" fill="white"/>
<path d="{frame}" fill="none" stroke="#888"/>
<polyline points="{line}" fill="none" stroke="#1f6fb4" stroke-width="2"/>
<text x="{edge - 6}" y="{edge + 4}" text-anchor="end">{max(losses):.2f}</text>
<text x="{edge - 6}" y="{height - edge + 4}" text-anchor="end">{min(losses):.2f}</text>
<text x="{width / 2}" y="{height - 16}" text-anchor="middle">epoch, 1 to {len(losses)}</text>
<text x="{width / 2}" y="28" text-anchor="middle">training loss of each epoch (logarithmic)</text>
</svg>
""", encoding="utf-8")


def show_digits(x, labels, found, count=8):
    """The first test images as characters, with what the network read."""
    shades = " .:-=+*#%@"
    level = np.clip((x - x.min()) / (x.max() - x.min()) * 9.99, 0, 9).astype(int).reshape(-1, 8, 8)
    for row in range(8):
        print("  " + "   ".join("".join(shades[v] for v in level[i, row]) for i in range(count)))
    marks = ["✓" if found[i] == labels[i] else "✗" for i in range(count)]
    print("  " + "   ".join(f"read {found[i]} {marks[i]}" for i in range(count)))


def train(step_gradient, params, x, target, epochs, rng):
    per_epoch = len(x) // BATCH
    optimiser, losses, start = Adam(params, epochs * per_epoch), [], time.perf_counter()
    for epoch in range(1, epochs + 1):
        order, total = rng.permutation(len(x)), 0.0
        for i in range(per_epoch):
            batch = order[i * BATCH:(i + 1) * BATCH]
            value, gradient = step_gradient(params, x[batch], target[batch])
            params = optimiser.step(params, gradient)
            total += value
        losses.append(total / per_epoch)
        progress(epoch, epochs, losses[-1], time.perf_counter() - start)
    return params, losses


def main():
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--epochs", type=int, default=40)
    options.add_argument("--seed", type=int, default=0, help="of the first weights and of the order of the images")
    options.add_argument("--no-jit", action="store_true", help="run the gradient as plain NumPy")
    options.add_argument("--out", type=Path, default=Path("generated"), help="folder for the gradient and the curve")
    given = options.parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")        # a terminal without the characters of the bar

    x, labels, x_test, labels_test = read_digits()
    target = soft_targets(labels)
    rng = np.random.default_rng(given.seed)
    params = first_params(rng)

    title("the loss, as a user writes it")
    print(inspect.getsource(loss).rstrip())

    dloss = gs.value_and_grad(loss)
    batch = params, x[:BATCH], target[:BATCH]
    title("its value and gradient, as Gradscribe writes them for these arguments")
    print(dloss.source_for(*batch).rstrip())

    given.out.mkdir(parents=True, exist_ok=True)
    written = given.out / "digits_gradient.py"
    dloss(*batch)
    gs.dump(dloss, written)
    print(f"\nThe same text is now in {written}: open it. It imports NumPy and nothing else.")

    step_gradient = dloss
    if not given.no_jit:
        start = time.perf_counter()
        step_gradient = gs.jit(dloss)
        step_gradient(*batch)
        print(f"Compiled with Numba in {time.perf_counter() - start:.1f} s; the next run finds it on disk.")

    title(f"training on {len(x)} images, {'plain NumPy' if given.no_jit else 'compiled'}")
    params, losses = train(step_gradient, params, x, target, given.epochs, rng)

    found = predict(params, x_test)
    right = int(np.sum(found == labels_test))
    curve = given.out / "digits_loss.svg"
    draw_curve(losses, curve)
    title(f"{len(x_test)} images that it has not seen")
    show_digits(x_test, labels_test, found)
    print(f"\nTest accuracy: {100 * right / len(x_test):.2f}% ({right} of {len(x_test)})")
    print(f"The gradient: {written}    the loss curve: {curve}")


if __name__ == "__main__":
    main()
