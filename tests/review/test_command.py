"""The command line, as it is typed: what is printed, and the number it exits with."""
import os
import re
import subprocess
import sys

import pytest

from gradscribe.command import main

MODULE = '''import numpy as np

SCALE = 2.0


def cubed(r):
    """A helper."""
    return r * r * r * SCALE


def loss(w, b, x, y):
    return np.mean(cubed(x @ w + b - y))


def number(x: float):
    return x ** 3
'''
KINDS = "float64[3], float, float64[n, 3], float64[n]"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a module of its own name, in which commands are run."""
    name = f"module_of_{abs(hash(tmp_path)) % 10 ** 9}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path, name


def again(place, old, new):
    """Change the module, as another run would find it."""
    folder, name = place
    file = folder / f"{name}.py"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    stamp = os.stat(file).st_mtime + 5
    os.utime(file, (stamp, stamp))
    sys.modules.pop(name, None)


def dumped(place, *options):
    folder, name = place
    assert main(["dump", f"{name}:loss", *(options or ("--grad", "w,b")), "--args", KINDS, "-o", "out"]) == 0
    return next((folder / "out").glob("*.py"))


def test_dump_and_check(place, capsys):
    file = dumped(place)
    text = file.read_text()
    assert f"function: {place[1]}:loss" in text
    assert "transformation: grad(f, argnums=(0, 1))" in text
    assert f"arguments: {KINDS}" in text
    assert re.search(r"^source: [0-9a-f]{16}$", text, re.M)
    assert main(["check", "out"]) == 0
    assert capsys.readouterr().out.endswith("same\n1 file, 0 no longer match\n")


@pytest.mark.parametrize("old, new", [
    ("r * r * r", "r * r"), ("SCALE = 2.0", "SCALE = 2.5"), ("np.mean", "np.sum"),
    ("def loss(w, b", "def loss(w, c, b"), ("def loss", "def other"),
], ids=["helper", "constant", "function", "parameters", "gone"])
def test_check_finds_what_has_changed(place, capsys, old, new):
    file = dumped(place)
    again(place, old, new)
    if "w, c" in new:
        again(place, "x @ w + b", "x @ w + b + c")
    assert main(["check", str(file)]) == 1
    out = capsys.readouterr().out
    assert "differs" in out and ("\n-" in out or "cannot be made again" in out)


@pytest.mark.parametrize("old, new", [('    """A helper."""\n', '    """Another text."""\n'),
                                      ("SCALE = 2.0", "SCALE = 2.0  # two"), ("r * r * r", "r*r * r"),
                                      ("\n\ndef number", "\n\n\nUNREAD = 3\n\n\ndef number")],
                         ids=["docstring", "comment", "spaces", "elsewhere"])
def test_check_raises_no_false_alarm(place, old, new):
    dumped(place)
    again(place, old, new)
    assert main(["check", "out"]) == 0


def test_another_numpy_is_no_alarm(place):
    file = dumped(place)
    file.write_text(re.sub(r"numpy [\d.]+", "numpy 1.0.0", file.read_text()))
    assert main(["check", "out"]) == 0


def test_an_edited_file(place, capsys):
    file = dumped(place)
    file.write_text(file.read_text().replace("dw = ", "dw = 2 * "))
    assert main(["check", "out"]) == 1
    assert "-    dw = 2 * " in capsys.readouterr().out


def test_other_files_are_left_out(place, capsys):
    (place[0] / "out").mkdir()
    (place[0] / "out" / "mine.py").write_text("x = 1\n")
    assert main(["check", "out"]) == 2
    assert capsys.readouterr().out == "nothing to check: no file that gradscribe dump wrote\n"


def test_transformations_in_order(place):
    text = dumped(place, "--grad", "w", "--vmap", "None,None,0,0").read_text()
    assert "transformation: vmap(grad(f, argnums=0), in_axes=(None, None, 0, 0))" in text
    assert main(["check", "out"]) == 0


def test_show(place, capsys):
    assert main(["show", f"{place[1]}:number"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("def number(x: float):\n    return x ** 3\n")
    assert "    return 3 * x ** 2\n" in out


@pytest.mark.parametrize("words, told", [
    (["show", "{}:nothing"], "has no nothing"), (["show", "no_such_module:f"], "is not imported"),
    (["show", "{}"], "names no function"), (["show", "{}:loss", "--grad", "q"], "has no argument q"),
    (["bench", "{}:loss"], "needs --args"), (["dump", "{}:loss", "--args", "float63"], "is not a kind of argument"),
    (["dump", "{}:loss", "--args", "float64[n"], "are not kinds of arguments"),
    (["check", "nowhere"], "does not exist"), (["show", "{}:loss", "--vmap", "a"], "does not name axes"),
], ids=lambda v: v if isinstance(v, str) else " ".join(v))
def test_wrong_commands(place, capsys, words, told):
    assert main([w.format(place[1]) for w in words]) == 2
    assert told in capsys.readouterr().err


def test_kinds_that_are_not_given(place, capsys):
    """The simplest that fit, with lengths that must be equal equal."""
    assert main(["dump", f"{place[1]}:loss", "--grad", "w", "-o", "out"]) == 0
    text = next((place[0] / "out").glob("*.py")).read_text()
    assert "arguments: float64[n], float, float64[n], float\n" in text
    assert main(["check", "out"]) == 0


def test_doctor(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for name in ("numpy", "numba", "BLAS", "threads", "CUDA", "MPI", "cache"):
        assert re.search(rf"^{name} +\S", out, re.M), name


@pytest.mark.slow
def test_bench(place, capsys):
    assert main(["bench", f"{place[1]}:loss", "--grad", "w", "--args", KINDS]) == 0
    assert capsys.readouterr().out.count("ms") == 8


def test_as_a_program(place):
    done = subprocess.run([sys.executable, "-m", "gradscribe", "show", f"{place[1]}:number"], capture_output=True,
                          text=True, cwd=place[0], check=True)
    assert "def grad_number(x):" in done.stdout and "\x1b" not in done.stdout


def test_every_text_of_a_run(place):
    folder, name = place
    program = f"import gradscribe as gs, {name} as m\ng = gs.grad(m.number)\ng(2.0)\ngs.jit(g)(2.0)\n"
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True,
                   env={**os.environ, "GRADSCRIBE_DUMP": "texts", "GRADSCRIBE_CACHE": "off"})
    files = sorted(f.name.split("_", 1)[1] for f in (folder / "texts").glob("*.py"))
    assert files == ["0001_number.function.py", "0002_grad_number.py", "0003_grad_number.lowered.py"]
    intermediate, = (folder / "texts").glob("*_0004_grad_number.ll")
    assert "define" in intermediate.read_text() and "double" in intermediate.read_text()
    page = (folder / "texts" / "index.html").read_text()
    assert page.count("<a href=") == 4


def test_every_stage_of_a_compiled_gradient(place):
    """Also where the gradient is not called by itself, and the machine code comes from the disk."""
    folder, name = place
    program = f"import gradscribe as gs, {name} as m\ngs.jit(gs.grad(m.number))(2.0)\n"
    for texts in ("first", "second"):
        subprocess.run([sys.executable, "-c", program], cwd=folder, check=True,
                       env={**os.environ, "GRADSCRIBE_DUMP": texts, "GRADSCRIBE_CACHE": str(folder / "cache")})
        files = sorted((f.name.split("_", 2)[2], f) for f in (folder / texts).glob("*_*"))
        assert [n for n, _ in files] == ["grad_number.ll", "grad_number.lowered.py", "grad_number.py",
                                         "number.function.py"]
        for (_, file), word in zip(files, ("define", "def grad_number(", "return 3 * x ** 2", "return x ** 3")):
            assert word in file.read_text()
