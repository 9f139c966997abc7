# SPDX-License-Identifier: Apache-2.0
"""Texts that hold all they read: .source and files, run where neither Gradscribe nor the user's module is."""
import subprocess
import sys

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.command import main

MODULE = '''import dataclasses
import enum
import functools
import typing
import typing as t
from typing import ClassVar, NamedTuple

import numpy as np

import gradscribe as gs

SCALE = 2.5
TABLE = np.array([1.0, 2.0, 4.0])


@dataclasses.dataclass
class Params:
    w: "np.ndarray"
    b: float

    def norm(self) -> "Params":
        return np.sum(self.w ** 2) * SCALE


class Pair(NamedTuple):
    w: gs.lax.platform_dependent
    b: float


class Base(ValueError):
    pass


class Refused(Base):
    """Not for negative numbers."""


class Kind(enum.Enum):
    SMALL = 1


@dataclasses.dataclass
class Spring:
    """What is no field stays none."""
    k: float
    whole: typing.ClassVar[float] = 2.0
    short: t.ClassVar[float] = 1.5
    bare: ClassVar[float] = 0.5
    text: "typing.ClassVar[float]" = 4.0

    def energy(self, x: "t.Any"):
        return self.k * x ** 2 * (self.whole + self.short + self.bare + self.text)


def energy(spring, x):
    return np.sum(spring.energy(x))


def described(x):
    return f"{others(x)} {Kind.SMALL.name}"


def others(x, *, words=("x", "is")):
    return " ".join(words) + f" {short(x)}"


short = lambda x: round(float(x), 3)


def loss(p, x):
    return np.sum(p.w * x * TABLE) * p.b * SCALE


def guarded(x):
    if x < 0:
        raise Refused(described(x))
    assert x < 9.0, described(x)
    return x ** 3


def made(x):
    return Params(x * x, 2.0 * np.sum(x))


@gs.jit
def compiled(x):
    return x * SCALE


def told(x):
    assert np.all(x > 0), compiled(1.0)
    return np.sum(x * x)


def listed(x):
    print("got", others(x))
    return x * x
'''

ALONE = """
import importlib.util, pathlib, sys
import numpy as np
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("gradscribe", "numba", %r):
            raise ImportError(name)
sys.meta_path.insert(0, Refused())
space = {"__name__": "alone"}
module = type(sys)("alone")
sys.modules["alone"] = module
exec(pathlib.Path(sys.argv[1]).read_text(), vars(module))
globals().update(vars(module))
print(%s)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A module of its own name, imported."""
    name = f"standing_{abs(hash(tmp_path)) % 10 ** 9}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path, __import__(name)


def alone(place, text, expression):
    """What an expression gives after a text, in an interpreter that has NumPy alone."""
    folder, module = place
    (folder / "alone_text.txt").write_text(text)
    done = subprocess.run([sys.executable, "-c", ALONE % (module.__name__, expression), str(folder / "alone_text.txt")],
                          capture_output=True, text=True, cwd=folder)
    assert not done.returncode, done.stderr
    return done.stdout.strip()


W, X = np.array([0.5, 1.0, 2.0]), np.array([3.0, -1.0, 0.5])
GIVEN = "np.array([0.5, 1.0, 2.0])"
CASES = {
    "dataclass": (lambda m: gs.grad(m.loss), lambda m: (m.Params(W, 3.0), X),
                  "grad_loss(Params(np.array([0.5, 1.0, 2.0]), 3.0), np.array([3.0, -1.0, 0.5]))",
                  "Params(w=array([ 22.5, -15. ,  15. ]), b=8.75)"),
    "namedtuple": (lambda m: gs.grad(m.loss), lambda m: (m.Pair(W, 3.0), X),
                   "grad_loss(Pair(np.array([0.5, 1.0, 2.0]), 3.0), np.array([3.0, -1.0, 0.5])).w.tolist()",
                   "[22.5, -15.0, 15.0]"),
    "raised class, functions": (lambda m: gs.grad(m.guarded), lambda m: (2.0,), "grad_guarded(2.0)", "12.0"),
    "compiled helper": (lambda m: gs.grad(m.told), lambda m: (W,), f"grad_told({GIVEN}).tolist()", "[1.0, 2.0, 4.0]"),
    "class variables": (lambda m: gs.grad(m.energy), lambda m: (m.Spring(2.0), X),
                        "[f.name for f in dataclasses.fields(Spring)], float(grad_energy(Spring(2.0), "
                        "np.array([3.0, -1.0, 0.5])).k)", "['k'] 82.0"),
    "effect": (lambda m: gs.grad(m.listed), lambda m: (1.5,), "grad_listed(1.5)", "got x is 1.5\n3.0"),
}


@pytest.mark.parametrize("case", CASES)
def test_source_and_file_run_alone(place, case):
    make, args, expression, wanted = CASES[case]
    folder, module = place
    fn = make(module)
    fn(*args(module))
    assert alone(place, fn.source, expression).replace("np.float64(8.75)", "8.75") == wanted
    file = gs.dump(fn, folder / "out", *args(module))
    text = file.read_text()
    assert module.__name__ not in text.split('"""')[2] and "gradscribe" not in text.split('"""')[2]
    assert "verified: the same numbers in a fresh interpreter without Gradscribe, for the arguments given" in text
    assert alone(place, text, expression).replace("np.float64(8.75)", "8.75") == wanted
    assert [c.state for c in gs.check(folder / "out")] == ["same"]


def test_messages_are_those_of_the_functions(place):
    fn = gs.grad(place[1].guarded)
    fn(2.0)
    said = "[(type(e).__name__, type(e).__mro__[1].__name__, str(e)) for e in [caught(-1.0)]]"
    text = fn.source + "\n\ndef caught(x):\n    try:\n        grad_guarded(x)\n"
    text += "    except Refused as e:\n        return e\n"
    assert alone(place, text, said) == "[('Refused', 'Base', 'x is -1.0 SMALL')]"


def test_partial_eval_name_what_they_read(place):
    table = np.array([2.0, 3.0])
    _, pullback = gs.vjp(lambda x: np.sum(np.sin(x) * table), np.ones(2))
    pullback(1.0)
    assert pullback.source.count("table = np.array([2., 3.], dtype=np.float64)") == 1
    assert pullback.source.count("import numpy as np") == 1


def test_what_cannot_be_written_out_is_named_in_the_source():
    large = np.ones(10_000)
    fn = gs.grad(lambda x: np.sum(x * large))
    fn(2.0)
    assert "# large: float64[10000], from outside\n" in fn.source


def test_a_file_that_would_need_gradscribe_is_not_written(place):
    folder, module = place
    (folder / "needs.py").write_text("import gradscribe as gs\n\n\ndef told(x):\n    return gs.device_count()\n\n\n"
                                     "def f(x):\n    assert x > 0, told(x)\n"
                                      "    return x * x\n")
    import needs
    with pytest.raises(gs.KindError, match="gradscribe is not there"):
        gs.dump(gs.grad(needs.f), folder / "none", 2.0)
    assert not (folder / "none").exists()
    del sys.modules["needs"]


def test_a_file_that_gives_other_numbers_is_not_written(place):
    """A name that means something else there."""
    folder, _ = place
    (folder / "counts.py").write_text("import sys\n\n\ndef told(x, n=len(sys.argv)):\n    return 1 // (3 - n)\n\n\n"
                                      "def f(x):\n    assert x < 0, told(x)\n"
                                      "    return x * x\n")
    before, sys.argv = sys.argv, ["one"]
    try:
        import counts
        with pytest.raises(gs.KindError, match="raises ZeroDivisionError"):
            gs.dump(gs.grad(counts.f), folder / "none", 2.0)
    finally:
        sys.argv = before
        del sys.modules["counts"]
    assert not (folder / "none").exists()


def test_the_last_call_has_an_example_or_is_refused(place):
    folder, module = place
    fn = gs.grad(module.guarded)
    fn(2.0)
    assert "for an example of these kinds" in gs.dump(fn, folder / "last").read_text()
    drawn = gs.grad(lambda x, rng: x * rng.normal())
    drawn(2.0, np.random.default_rng(0))
    with pytest.raises(gs.KindError, match="have no example"):
        gs.dump(drawn, folder / "drawn")
    assert "verified: the same numbers" in gs.dump(drawn, folder / "drawn", 2.0, np.random.default_rng(0)).read_text()


def test_a_function_that_raises_does_so_in_the_file(place):
    folder, module = place
    text = gs.dump(gs.grad(module.guarded), folder / "out", -2.0).read_text()
    assert "verified: the same Refused in a fresh interpreter" in text


# --- what check exits with --------------------------------------------------------------------------------------------

def test_nothing_to_check_is_no_success(place, capsys):
    (place[0] / "empty").mkdir()
    assert main(["check", "empty"]) == 2
    assert "nothing to check" in capsys.readouterr().out
    assert main(["check", "empty", "--allow-unchecked"]) == 0


def test_unchecked_files_are_no_success(place, capsys):
    folder, module = place
    gs.dump(gs.grad(lambda x: x * x), folder / "out" / "one.py", 2.0)
    gs.dump(gs.grad(module.guarded), folder / "out" / "two.py", 2.0)
    assert main(["check", "out"]) == 2
    assert "2 files, 0 no longer match, 1 unchecked" in capsys.readouterr().out
    assert main(["check", "out", "--allow-unchecked"]) == 0
    assert main(["check", "out/two.py"]) == 0


def test_a_module_that_is_not_there_is_unchecked_and_not_drift(place, capsys):
    folder, module = place
    file = gs.dump(gs.grad(module.guarded), folder / "out", 2.0)
    file.write_text(file.read_text().replace(module.__name__, "module_that_is_nowhere"))
    assert main(["check", "out"]) == 2
    assert "is not imported" in capsys.readouterr().out


def test_drift_of_a_helper_in_the_file(place, capsys):
    """What the user's text says of a class is part of the file."""
    folder, module = place
    gs.dump(gs.grad(module.loss), folder / "out", module.Params(W, 3.0), X)
    assert main(["check", "out"]) == 0
    source = folder / f"{module.__name__}.py"
    source.write_text(MODULE.replace("    b: float\n\n    def norm", "    b: float = 1.0\n\n    def norm"))
    stamp = source.stat().st_mtime + 5
    __import__("os").utime(source, (stamp, stamp))
    del sys.modules[module.__name__]
    assert main(["check", "out"]) == 1
    assert "+    b: float = 1.0" in capsys.readouterr().out


def test_another_module_by_the_name_np(tmp_path, monkeypatch):
    """What stands in the user's text means his module, what is emitted NumPy."""
    name = f"like_numpy_{abs(hash(tmp_path)) % 10 ** 9}"
    (tmp_path / f"{name}.py").write_text("import numpy\nfrom numpy import sum\n\n\ndef allclose(x, y):\n"
                                         "    return 'own'\n\n\ndef exp(x):\n    return numpy.exp(2 * x)\n")
    (tmp_path / f"of_{name}.py").write_text(f"import {name} as np\n\n\ndef f(x):\n    print(np.allclose(x, x))\n"
                                            "    assert np.allclose(x, x) == 'own'\n    return np.sum(np.exp(x))\n")
    monkeypatch.syspath_prepend(tmp_path)
    fn = gs.grad(__import__(f"of_{name}").f)
    np.testing.assert_allclose(fn(X), 2 * np.exp(2 * X), rtol=1e-14)
    assert "import numpy as np\n" in fn.source and f"import {name} as np_1\n" in fn.source
