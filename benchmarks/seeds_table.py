# SPDX-License-Identifier: Apache-2.0
"""What the founding documents show, and the test that stands for each row: writes docs/internal/seeds.md.

    python benchmarks/seeds_table.py           write the page
    python benchmarks/seeds_table.py --check   only say whether the page is what would be written now

A test belongs to a row by its name, test_sNN_...; what is expected to fail there, by its mark, is listed as open.
"""
import argparse
import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "internal" / "seeds.md"
TESTS = ROOT / "tests" / "seeds"

ROWS = {
    "S01": "Rows of a large array normalised, plain and compiled",
    "S02": "The gradient of a square, its source, compiled",
    "S03": "A neuron's error: gradients for a batch of examples, `vmap(grad(g), in_axes=(None, 0, 0))`",
    "S04": "Writes into arrays, as assignments and by `gs.at`",
    "S05": "A step of a recurrent network: state passed as a value, and state kept on `self`",
    "S06": "Auxiliary results, `has_aux`",
    "S07": "Random keys: the same key gives the same numbers, jax.random's",
    "S08": "functorch's examples: `grad` of `grad`, `vmap` of a model",
    "S09": "A module with weights, whose methods are transformed",
    "S10": "Layers, optimizers, solvers, checks of derivatives; reinforcement learning; a graph network",
    "S11": "Square and sum of squares: `grad`, `vmap`, `jit`",
    "S12": "The typed normal form of functions with branches, loops and functions inside",
    "S13": "Functions as arguments; a branch on a length",
    "S14": "`cond`, `while_loop`, `scan`, `fori_loop` beside Python's own statements",
    "S15": "A multilayer perceptron over a list of parameters; gradients for each example; updates",
    "S16": "Four kinds of fusion, by sweeps over arrays",
    "S17": "Truncated Newton-CG, compiled as a whole: a quadratic, a hidden Markov model, a logistic regression",
    "S18": "A step of an all-convolutional network",
    "S19": "One batch spread over cores and chips",
    "S20": "`melu`: its gradient, plain and compiled",
    "S21": "Lengths that depend on values, `if` on values, indices out of bounds, all compiled",
    "S22": "A network of layers, trained by Adam",
    "S23": "Trees: containers, user classes, maps over them",
    "S24": "Side effects under `jit`: printing, counting",
    "S25": "Derivatives with respect to one argument and several, up to the third",
    "S26": "`value_and_grad`, `has_aux`, `stop_gradient`",
    "S27": "The spectral radius and its gradient, real and complex",
    "S28": "Normal numbers by a compiled function with static arguments",
    "S29": "What is compiled again, and what is not",
    "S30": "Compiled functions called from C",
    "S31": "A sum over a range, for which the compiler finds the closed form",
    "S32": "A transformed function as a PyTorch function",
    "S33": "Norms of 15 edges in five ways; spectral radii of 128 matrices: looped, compiled, mapped",
    "S34": "`pmap`, means over devices, a distributed training program",
    "S35": "A network that learns spectral radii: the loss falls from 1.6 to 0.4 in a thousand steps",
    "S36": "Start of a distributed run; memory of a GPU",
    "S37": "All texts of a run in a folder, `GRADSCRIBE_DUMP`",
    "S38": "Arrays of other packages, without a copy",
    "S39": "Derivatives through messages between processes",
    "S40": "Loops, branches, recursion, closures: first and second derivatives in both modes",
    "S41": "A function with a side effect: it happens, and the source shows it",
    "S42": "Examples of autograd",
    "S43": "Debuggers and tracing tools see the emitted lines",
}
ON_A_GPU = {"S18", "S36"}                # what of a row needs one is not there yet
MEASURED = {"S16": "fusion.py", "S19": "devices.py", "S17": "newton_cg.py", "S35": "spectral_training.py"}


def open_marks(file):
    """Of each test in a file, the reasons of its marks that expect a failure."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    values = {t.id: n.value for n in tree.body if isinstance(n, ast.Assign) for t in n.targets
              if isinstance(t, ast.Name)}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and re.match(r"test_s\d\d_", node.name):
            reasons = [r for d in node.decorator_list for r in reasons_in(d, values)]
            yield node.name, list(dict.fromkeys(reasons))


def reasons_in(node, values):
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in values:
            yield from reasons_in(values[part.id], {})
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "xfail":
            yield from (k.value.value for k in part.keywords if k.arg == "reason")


def found():
    """(file, test, reasons) of each row."""
    rows = {row: [] for row in ROWS}
    for file in sorted(TESTS.glob("test_*.py")):
        for name, reasons in open_marks(file):
            rows[f"S{name[6:8]}"].append((file.name, name, reasons))
    return rows


def page():
    lines = ["# What the founding documents show", "",
             "Five documents on JAX set the aims of this project. Each feature that they show is a row, with its tests "
             "in `tests/seeds`,", "which check the figures of the documents where there are any. "
             "`benchmarks/seeds_table.py` writes this page.", "", None, "",
             "| row | what | tests | state |", "|---|---|---|---|"]
    whole = 0
    for row, tests in found().items():
        state = "; ".join(dict.fromkeys(r for _, _, reasons in tests for r in reasons))
        state = f"open: {state}" if state else "holds" if tests else ""
        if row in ON_A_GPU:
            state = "; ".join(filter(None, [state, "on a GPU: later"]))
        if row in MEASURED:
            state += f"; measured by `benchmarks/{MEASURED[row]}`"
        whole += state.startswith("holds")
        cells = ", ".join(f"`{name}`" for _, name, _ in tests)
        lines.append(f"| {row} | {ROWS[row]} | {cells} | {state} |")
    lines[lines.index(None)] = f"{len(ROWS)} rows, of which {whole} hold in full."
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        if PAGE.read_text(encoding="utf-8") != page():
            sys.exit("docs/internal/seeds.md is not what benchmarks/seeds_table.py writes")
        return
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
