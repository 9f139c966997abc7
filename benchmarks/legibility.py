"""Is the emitted source as short as a gradient written by hand, right, free of helpers, and always the same text?

    python benchmarks/legibility.py [--show NAME ...]

The functions and the gradients written by hand are in tests/golden/targets.py.  Size is the number of nodes in the
syntax trees of the function bodies, without doc strings; functions of the user that the text repeats are not counted.
Exit status 1 when a bar is missed.
"""
import argparse
import ast
import builtins
import importlib.util
import inspect
import json
import math
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from reading import PLAIN

import gradscribe as gs

ROOT = Path(__file__).resolve().parent.parent
EACH, MEAN = 1.15, 1.03             # bars: emitted nodes for one node written by hand
OTHERS = {"more_targets": (1.2, 1.08), "ten_targets": (1.3, 1.1)}       # and of other pairs: the largest, the mean


def load_targets():
    spec = importlib.util.spec_from_file_location("targets", ROOT / "tests" / "golden" / "targets.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["targets"] = module
    spec.loader.exec_module(module)
    return module


targets = load_targets()
USERS = {name: f for name, f in vars(targets).items()
         if inspect.isfunction(f) and not name.startswith(("grad_", "vjp_", "jvp_", "vmap_", "_"))}


@dataclass(frozen=True)
class Case:
    name: str
    function: str
    args: tuple
    argnums: tuple | int
    hand: tuple                     # the functions written by hand that the emitted text stands for
    forward: bool = False
    axes: tuple = ()                # in_axes, where the text is that of the function over a batch
    data: tuple = ()                # names and values that the function finds outside, if `function` makes it from them

    @property
    def user(self):
        """The user's function."""
        found = getattr(targets, self.function)
        return found(*dict(self.data).values()) if self.data else found


def make_cases():
    rng = np.random.default_rng(0)
    n, d, h, k = 5, 3, 4, 2
    W1, b1, W2, b2 = (rng.standard_normal(s) for s in [(d, h), h, (h, k), k])
    x, y = rng.standard_normal((n, d)), rng.standard_normal((n, k))
    W, b = rng.standard_normal((d, d)), rng.standard_normal(d)
    layers = [(W1, b1), (W2, b2)]
    mlp = (W1, b1, W2, b2, x, y)
    return [
        Case("poly", "poly", (1.3,), 0, ("grad_poly",)),
        Case("mlp_loss", "mlp_loss", mlp, (0, 1, 2, 3), ("grad_mlp_loss",)),
        Case("rollout", "rollout", (0.9, 1.1, 20), (0, 1), ("grad_rollout",)),
        Case("newton_sqrt", "newton_sqrt", (2.0,), 0, ("grad_newton_sqrt",)),
        Case("huber_inside", "huber", (0.4, 1.0), 0, ("grad_huber",)),
        Case("huber_outside", "huber", (-3.0, 1.0), 0, ("grad_huber",)),
        Case("huber_early_inside", "huber_early", (0.4, 1.0), 0, ("grad_huber_early",)),
        Case("huber_early_outside", "huber_early", (-3.0, 1.0), 0, ("grad_huber_early",)),
        Case("heat_energy", "heat_energy", (np.sin(np.linspace(0, 3, 9)), 0.2, 9), (0, 1), ("grad_heat_energy",)),
        Case("two_layers", "two_layers", (x, W, b), (0, 1, 2), ("grad_two_layers", "vjp_layer")),
        Case("network_loss", "network_loss", (layers, x, y), 0, ("grad_network_loss",)),
        Case("jvp_mlp_loss", "mlp_loss_on", mlp[:4], (0, 1, 2, 3), ("jvp_mlp_loss",), True, (), (("x", x), ("y", y))),
        Case("vmap_predict", "predict", (W1.T, b1, x), (), ("vmap_predict",), axes=(None, None, 0)),
        Case("vmap_escape_time", "escape_time", (x[:, 0] + 1j * x[:, 1], 50), (), ("vmap_escape_time",),
             axes=(0, None)),
    ]


CASES = {case.name: case for case in make_cases()}


def directions(case):
    """A random direction for each argument that the derivative is taken in; None for the others."""
    rng = np.random.default_rng(1)
    wrt = case.argnums if isinstance(case.argnums, tuple) else (case.argnums,)
    return tuple(random_like(a, rng) if i in wrt else None for i, a in enumerate(case.args))


def emitted(name):
    """The specialised source that Gradscribe writes for the case."""
    case = CASES[name]
    if case.axes:
        return gs.vmap(case.user, case.axes).source_for(*case.args)
    if case.forward:
        return gs.jvp_of(case.user).source_for(*case.args, *directions(case))
    return gs.grad(case.user, case.argnums).source_for(*case.args)


# --- size ---------------------------------------------------------------------

def functions_of(source):
    return [s for s in ast.parse(textwrap.dedent(source)).body if isinstance(s, ast.FunctionDef)]


def is_users(function):
    """Is this a function of the user, repeated unchanged?"""
    if function.name not in USERS:
        return False
    written = functions_of(inspect.getsource(USERS[function.name]))[0]
    return [ast.dump(s) for s in written.body] == [ast.dump(s) for s in function.body]


def count(source):
    """Nodes of the bodies of the functions in source."""
    total = 0
    for function in functions_of(source):
        if is_users(function):
            continue
        for statement in function.body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue
            total += sum(not isinstance(n, ast.expr_context) for n in ast.walk(statement))
    return total


def size_by_hand(case):
    return sum(count(inspect.getsource(getattr(targets, g))) for g in case.hand)


# --- right --------------------------------------------------------------------

def leaves(tree):
    return [leaf for t in tree for leaf in leaves(t)] if isinstance(tree, list | tuple) else [tree]


def random_like(tree, rng):
    if isinstance(tree, list | tuple):
        return type(tree)(random_like(t, rng) for t in tree)
    return rng.standard_normal(np.shape(tree)) if np.ndim(tree) else float(rng.standard_normal())


def moved(tree, step, size):
    if isinstance(tree, list | tuple):
        return type(tree)(moved(t, s, size) for t, s in zip(tree, step))
    return tree + size * step


def entry(source, data=()):
    """The emitted function, run on its own: its names are NumPy's, math's, the user's functions and data."""
    space = {"np": np, "math": math, **USERS, **dict(data)}
    exec(compile(source, "<emitted>", "exec"), space)
    own = [f.name for f in functions_of(source) if not is_users(f)]
    marked = [n for n in own if n.startswith(("grad_", "jvp_", "vmap_"))] or own
    return space[marked[-1]]


def is_right(case, source):
    if case.axes:
        rows = [case.user(*(a if k is None else a[n] for a, k in zip(case.args, case.axes)))
                for n in range(len(case.args[case.axes.index(0)]))]
        return bool(np.allclose(entry(source)(*case.args), rows))
    f, steps, size = case.user, directions(case), 1e-6
    at = [f(*(a if s is None else moved(a, s, sign * size) for a, s in zip(case.args, steps))) for sign in (1, -1)]
    expected = (at[0] - at[1]) / (2 * size)
    active = [s for s in steps if s is not None]
    if case.forward:
        value, found = entry(source, case.data)(*case.args, *active)
        return bool(np.allclose(value, f(*case.args)) and np.allclose(found, expected, rtol=1e-6, atol=1e-8))
    got = entry(source)(*case.args)
    got = leaves(got if isinstance(case.argnums, tuple) else (got,))
    wanted = leaves(active)
    same_shape = len(got) == len(wanted) and all(np.shape(g) == np.shape(s) for g, s in zip(got, wanted))
    found = sum(np.sum(g * s) for g, s in zip(got, wanted))
    return same_shape and bool(np.allclose(found, expected, rtol=1e-6, atol=1e-8))


# --- free of helpers -------------------------------------------------------------

def helpers(source):
    """Calls of anything but NumPy, math, builtins, methods of local values, functions of the text or of the user."""
    tree = ast.parse(source)
    known = {f.name for f in functions_of(source)} | set(USERS)
    local = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    local |= {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    found = [ast.unparse(n) for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)
             and ast.unparse(n) not in ("import numpy as np", "import math")]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        root = node.func
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
            root = root.func if isinstance(root, ast.Call) else root.value
        name = getattr(root, "id", None)
        if isinstance(node.func, ast.Name):
            fine = name in known or hasattr(builtins, name)
        else:
            fine = name in ("np", "math", None) or name in local or hasattr(builtins, name)
        if not fine:
            found.append(ast.unparse(node.func))
    return found


# --- the same text in every process ---------------------------------------------

def sources_elsewhere(seed):
    """The sources that another process with another seed of string hashes writes."""
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run([sys.executable, __file__, "--json"], env=environment, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def pairs(module):
    """(function, gradient by hand, arguments, which of them) of one of the other files of pairs."""
    sys.path.insert(0, str(ROOT / "tests" / "golden"))
    found = importlib.import_module(module)
    if hasattr(found, "cases"):
        return found.cases()
    rng = np.random.default_rng(0)
    normal = rng.standard_normal
    F, H, A = np.eye(4) + 0.1 * normal((4, 4)), normal((2, 4)), normal((3, 3))
    given = {
        "mixture": ((normal(3), normal(3), normal(6)), (0, 1)),
        "layer_norm": ((normal((4, 5)), normal(5), normal(5), normal((4, 5))), (0, 1, 2)),
        "kalman": ((normal((6, 2)), F, H, np.eye(4), np.eye(2), normal(4), np.eye(4)), (1, 3, 4)),
        "normal_nll": ((A @ A.T + np.eye(3), normal(3)), (0, 1)),
        "pair_energy": ((normal((6, 3)), normal(6), 4.0), (0, 1)),
        "bubble_sort": ((normal(6), normal(6)), (0,)),
        "epidemic": ((0.5, 0.2, np.array([0.9, 0.1, 0.0]), 0.1, normal(20)), (0, 1)),
        "fall_time": ((3.0, 0.02, 0.01), (0, 1))}
    return [(getattr(found, f), getattr(found, f"grad_{f}"), *rest) for f, rest in given.items()]


def others(module):
    """{function: (emitted nodes, nodes by hand, whether the two gradients agree, names that say nothing)}"""
    found = {}
    for f, hand, args, wrt in pairs(module):
        gradient = gs.grad(f, argnums=wrt)
        text = gradient.source_for(*args)
        by_hand = hand(*args)
        by_hand = by_hand if isinstance(by_hand, tuple) else (by_hand,)
        agree = all(np.allclose(a, b, rtol=1e-10, atol=1e-12) for a, b in zip(gradient(*args), by_hand, strict=True))
        names = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name) and PLAIN.fullmatch(n.id)}
        found[f.__name__] = count(text), count(inspect.getsource(hand)), bool(agree), len(names)
    return found


def attempt(name):
    try:
        return emitted(name)
    except Exception as error:      # one function that fails must not hide the others
        return f"raise RuntimeError({str(error)!r})"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--show", nargs="*", default=[], help="print these sources; no name: all", metavar="NAME")
    options.add_argument("--json", action="store_true", help="only print all sources, as JSON")
    given = options.parse_args()
    here = {name: attempt(name) for name in CASES}
    if given.json:
        print(json.dumps(here))
        return 0
    elsewhere = [sources_elsewhere(seed) for seed in (1, 4321)]
    ratios, fine = [], True
    print(f"{'function':14} {'emitted':>8} {'by hand':>8} {'ratio':>6}   right  no helper  same bytes")
    for name, source in here.items():
        case = CASES[name]
        if given.show == [] and "--show" in sys.argv or name in given.show:
            print(f"\n{source.rstrip()}\n")
        if not functions_of(source):
            print(f"{name:14} FAILED: {source[:200]}")
            fine = False
            continue
        try:
            right, why = is_right(case, source), ""
        except Exception as error:
            right, why = False, f"   {type(error).__name__}: {error}"
        ours, hand, calls = count(source), size_by_hand(case), helpers(source)
        same = all(other.get(name) == source for other in elsewhere)
        ratios.append(ours / hand)
        fine &= right and same and not calls and ratios[-1] <= EACH
        words = ["yes" if right else "NO", "yes" if not calls else "CALLS", "yes" if same else "NO"]
        print(f"{name:14} {ours:8} {hand:8} {ratios[-1]:6.2f}   {words[0]:5}  {words[1]:9}  {words[2]}{why}"
              + (f"   {', '.join(calls)}" if calls else "") + ("   TOO LONG" if ratios[-1] > EACH else ""))
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.inf
    fine &= mean <= MEAN
    print(f"\ngeometric mean {mean:.3f} (bar {MEAN}), largest {max(ratios, default=math.inf):.2f} (bar {EACH}): "
          + ("all bars held" if fine else "MISSED"))
    for module, (each, mean) in OTHERS.items():
        found = others(module)
        print(f"\n{module}.py")
        for name, (ours, hand, agree, plain) in found.items():
            print(f"{name:14} {ours:8} {hand:8} {ours / hand:6.2f}   {'yes' if agree else 'NO':5}  "
                  f"{plain} names such as t")
        sizes = [ours / hand for ours, hand, _, _ in found.values()]
        held = math.exp(sum(map(math.log, sizes)) / len(sizes)) <= mean and max(sizes) <= each
        held &= all(agree for _, _, agree, _ in found.values())
        print(f"geometric mean {math.exp(sum(map(math.log, sizes)) / len(sizes)):.3f} (bar {mean}), largest "
              f"{max(sizes):.2f} (bar {each}): " + ("all bars held" if held else "MISSED"))
        fine &= held
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
