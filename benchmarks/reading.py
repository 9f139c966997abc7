"""What a reader stumbles over in emitted sources: counts over the corpus, the golden files, the benchmarks' programs.

    python benchmarks/reading.py [--show]

Counted in each text:

- names that say nothing: `t`, `z_2`, `dt_1`;
- comment lines that follow one that is the same, with no other comment between, in one block;
- values that are computed for their shape alone: `np.sum(x, axis=1).shape[0]`, or a name that nothing else reads;
- forward loops whose results are only saved: each statement in them stores into an array that is called `..._saved`.

--show prints each of them with the program that has it.
"""
import ast
import importlib
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np

import gradscribe as gs

ROOT = Path(__file__).resolve().parent.parent
PLAIN = re.compile(r"d?[tz](_saved)?(_\d+)?")


def sources():
    """(program, text of its gradient) of the corpus, of everyday and by_loops, and of the problems."""
    sys.path[:0] = [str(ROOT / "tests" / "corpus"), str(ROOT / "benchmarks")]
    check, everyday, by_loops = map(importlib.import_module, ("check", "everyday", "by_loops"))
    for case in check.load_corpus("_reading")[1]:
        yield case.name, lambda case=case: gs.grad(case.func, case.argnums).source_for(*case.args)
    everyday.rng = np.random.default_rng(0)
    for f, make in [*everyday.PROGRAMS.items(), *by_loops.PROGRAMS.items()]:
        args = make()
        wrt = tuple(k for k, a in enumerate(args) if isinstance(a, float) or isinstance(a, np.ndarray) and
                    a.dtype.kind == "f")
        yield f.__name__, lambda f=f, wrt=wrt, args=args: gs.grad(f, wrt).source_for(*args)
    for path in sorted((ROOT / "benchmarks" / "problems").glob("*.py")):
        problem = importlib.import_module(f"problems.{path.stem}")
        if not hasattr(problem, "objective_numpy"):
            continue
        yield path.stem, lambda p=problem: gs.grad(p.objective_numpy, p.argnums).source_for(*p.make_inputs("S"))


def golden():
    """(file, text) of the golden files of sources that are read; what is compiled is read by nobody."""
    for folder in ("golden", "programs", "seeds"):
        for path in sorted((ROOT / "tests" / folder / "emitted").rglob("*.py")):
            yield f"{folder}/{path.stem}", path.read_text()


def plain_names(tree, text):
    """Names that say nothing, each once."""
    return sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and
                   PLAIN.fullmatch(n.id)})


def repeated_comments(tree, text):
    """Comment lines that follow the same one in a block."""
    found, last = [], {}
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        if line.strip():
            last = {d: c for d, c in last.items() if d <= depth}
        if line.rstrip().endswith(":") and not line.lstrip().startswith("#"):
            last.pop(depth, None)       # a loop is a group of its own
        if line.lstrip().startswith("# "):
            if last.get(depth) == line:
                found.append(line.strip())
            last[depth] = line
    return found


def for_their_shape(tree, text):
    """Expressions, and names, that are computed and of which only the shape is read."""
    found = [ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr in ("shape", "size")
             and isinstance(n.value, ast.Call | ast.BinOp | ast.UnaryOp | ast.Compare)]
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        shown = Counter(n.value.id for n in ast.walk(function) if isinstance(n, ast.Attribute) and n.attr in (
            "shape", "size", "ndim", "dtype") and isinstance(n.value, ast.Name))
        read = Counter(n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        made = {n.targets[0].id for n in ast.walk(function) if isinstance(n, ast.Assign) and isinstance(
            n.targets[0], ast.Name) and isinstance(n.value, ast.Call | ast.BinOp)}
        found += [f"{name}.shape" for name in sorted(made) if shown[name] and shown[name] == read[name]]
    return found


def only_saved(tree, text):
    """Heads of loops that only store into what is saved."""
    found = []
    for loop in (n for n in ast.walk(tree) if isinstance(n, ast.For)):
        stores = [s.targets[0] if isinstance(s, ast.Assign) else None for s in loop.body]
        if all(isinstance(t, ast.Subscript) and ast.unparse(t.value).endswith("_saved") for t in stores):
            found.append(ast.unparse(loop).splitlines()[0])
    return found


COUNTS = {"names that say nothing": plain_names, "repeated comment lines": repeated_comments,
          "values for their shape": for_their_shape, "loops that only save": only_saved}


def counted(texts, show=False):
    """{what: how many} over texts, and how many texts there are."""
    total, number = Counter(dict.fromkeys(COUNTS, 0)), 0
    for name, text in texts:
        tree, number = ast.parse(text), number + 1
        for what, count in COUNTS.items():
            found = count(tree, text)
            total[what] += len(found)
            if show and found:
                print(f"{name}: {what}: {'; '.join(found)}")
    return dict(total), number


def main(show=False):
    def made():
        for name, text in sources():
            try:
                yield name, text()
            except gs.TransformError:       # what is refused has no text
                continue
    fine = True
    for title, texts in (("programs", made()), ("golden files", golden())):
        found, number = counted(texts, show)
        print(f"{number} {title}: " + ", ".join(f"{count} {what}" for what, count in found.items()))
        plain = found.pop("names that say nothing")
        print(f"    {plain / number:.2f} names that say nothing in each (bar 1)")
        fine &= plain < number and not any(found.values())
    return fine


if __name__ == "__main__":
    sys.exit(0 if main("--show" in sys.argv) else 1)
