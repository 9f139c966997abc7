"""Written files, run where there is NumPy and nothing else: every function of the corpus that has a gradient."""
import copy
import importlib.util
import pickle
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import legibility
import numpy as np
import pytest

import gradscribe as gs
from gradscribe.ast_transform.mapping import on_devices
from gradscribe.runtime.groups import axes_bound
from gradscribe.runtime.teams import Grid
from gradscribe.transformed import Transformed

CORPUS = Path(__file__).resolve().parent.parent / "corpus" / "functions.py"
CHILD = """
import importlib.util, pickle, sys, warnings
import numpy as np
from pathlib import Path

ALONE = {"gradscribe", "numba", "llvmlite", "scipy", "gast", "astor", "jax"}

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ALONE:
            raise ImportError(name)

sys.meta_path.insert(0, Refused())
sys.path.insert(0, sys.argv[2])
warnings.simplefilter("ignore")
found = {}
for name, file, label, args in pickle.loads(Path(sys.argv[1]).read_bytes()):
    try:
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with np.errstate(all="ignore"):
            found[name] = getattr(module, label)(*args)
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"
sys.stdout.buffer.write(pickle.dumps(found))
"""


def leaves(value):
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in leaves(v)]
    if isinstance(value, dict):
        return [x for k in sorted(value) for x in leaves(value[k])]
    if hasattr(value, "__dataclass_fields__"):
        return [x for n in value.__dataclass_fields__ for x in leaves(getattr(value, n))]
    return [value]


def differing(jobs, want, folder, *paths):
    """What files give where there is NumPy alone, if it is not what was wanted.  jobs: (name, file, function, args)."""
    (folder / "jobs").write_bytes(pickle.dumps(jobs))
    done = subprocess.run([sys.executable, "-c", CHILD, str(folder / "jobs"), *paths], capture_output=True, check=True)
    found, wrong = pickle.loads(done.stdout), []
    for name, expected in want.items():
        a, b = leaves(found[name]), leaves(expected)
        if isinstance(found[name], str) or len(a) != len(b) or not all(
                np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b)):
            wrong.append(f"{name}: {found[name]}")
    return wrong


@pytest.mark.slow
def test_golden_functions_with_numpy_alone(tmp_path):
    jobs, want = [], {}
    for name, case in legibility.CASES.items():
        args = case.args
        if case.axes:
            fn = gs.vmap(case.user, case.axes)
        elif case.forward:
            fn, args = gs.jvp_of(case.user), (*case.args, *legibility.directions(case))
        else:
            fn = gs.grad(case.user, case.argnums)
        want[name] = fn(*copy.deepcopy(args))
        if case.data:
            continue                        # made of arrays from outside, which a file does not hold
        jobs.append((name, str(gs.dump(fn, tmp_path / f"{name}.py")), fn._last.emitted.label, args))
    want = {name: want[name] for name, *_ in jobs}
    assert not differing(jobs, want, tmp_path, str(CORPUS.parent)) and len(jobs) >= len(legibility.CASES) - 1


@pytest.mark.slow
def test_corpus_with_numpy_alone(tmp_path):
    spec = importlib.util.spec_from_file_location("functions", CORPUS)
    module = importlib.util.module_from_spec(spec)
    sys.modules["functions"] = module
    spec.loader.exec_module(module)
    jobs, want, refused = [], {}, []
    for case in module.CASES:
        args = copy.deepcopy(case.args)
        fn = gs.grad(case.func, case.argnums)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                np.random.seed(0)
                result = fn(*copy.deepcopy(args))
                file = gs.dump(fn, tmp_path / f"{case.name}.py")
            except gs.TransformError as error:
                refused.append(f"{case.name}: {error}")
                continue
        text = file.read_text()
        if "import scipy" in text or "from functions" in text or "np.random" in text:
            continue                        # it is not made of NumPy alone, or draws
        want[case.name] = result
        jobs.append((case.name, str(file), fn._last.emitted.label, args))
    wrong = differing(jobs, want, tmp_path, str(CORPUS.parent))
    assert not wrong, "\n".join(wrong)
    assert len(want) >= 80, (len(want), refused)


def test_a_function_over_devices_names_its_package(tmp_path):
    """Such a file has no copy of psum, which is nothing without the devices."""
    f = gs.vmap(lambda x: np.sum(gs.lax.psum(x, ("i", "j"))), axis_name="i")
    outer = gs.vmap(f, axis_name="j")
    text = gs.dump(outer, tmp_path / "whole.py", np.ones((2, 3, 4))).read_text()
    assert "without Gradscribe" in text and "psum" not in text
    on_device = Transformed(lambda x: gs.lax.psum(x, "i"), on_devices({"i": 2}))
    text = gs.dump(on_device, tmp_path / "device.py", np.ones(3)).read_text()
    assert "from gradscribe.runtime.collectives import psum\n" in text and "without Gradscribe" not in text
    ran = runpy.run_path(str(tmp_path / "device.py"))
    with axes_bound(Grid(["i"], [1]).members(0)):
        np.testing.assert_array_equal(ran[on_device._last.emitted.label](np.arange(3.0)), np.arange(3.0))
