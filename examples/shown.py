# SPDX-License-Identifier: Apache-2.0
"""What the examples show themselves with: titles, a bar for progress, and figures if Matplotlib is installed."""
import argparse
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

try:
    from tqdm import tqdm
except ImportError:
    tqdm = None
try:
    from matplotlib.figure import Figure
except ImportError:
    Figure = None


def options(description: str | None) -> argparse.ArgumentParser:
    """The options that every example has."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small size, to see that it works")
    parser.add_argument("--no-jit", action="store_true", help="run everything as plain NumPy")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    parser.add_argument("--out", type=Path, default=Path("generated"), help="folder for the picture")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")        # a terminal without the characters of the text
    return parser


def title(text: str) -> None:
    print(f"\n--- {text} " + "-" * max(0, 100 - len(text)))


def progress(steps: Sequence, what: str) -> Iterator:
    """The steps one after the other, with a bar in a terminal if tqdm is installed, else with up to five lines."""
    if tqdm is not None and sys.stderr.isatty():
        yield from tqdm(steps, desc=what, leave=False)
        return
    for i, step in enumerate(steps, 1):
        yield step
        if 5 * i // len(steps) > 5 * (i - 1) // len(steps):
            print(f"{what} {i}/{len(steps)}", flush=True)


def figure(width: float, height: float) -> Any:
    """An empty figure of so many inches, or None, with a word, where Matplotlib is not installed."""
    if Figure is None:
        print("\nNo picture: Matplotlib is not installed (pip install matplotlib).")
        return None
    return Figure(figsize=(width, height), layout="constrained")


def save(drawn: Any, folder: Path, name: str) -> Path:
    """Writes the figure into the folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    drawn.savefig(path, dpi=120)
    print(f"\nThe picture: {path}")
    return path
