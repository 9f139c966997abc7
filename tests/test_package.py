"""What is built from the repository: a wheel that has every module, and works where it is unpacked."""
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"gradscribe": "gradscribe", "codegen": "gradscribe/codegen", "ast_transform": "gradscribe/ast_transform",
           "runtime": "gradscribe/runtime"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "copy"              # setuptools writes beside what it builds
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if names.returncode:
        pytest.skip("not a clone")
    for name in names.stdout.splitlines():
        if name.split("/")[0] in (*FOLDERS, "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(folder), str(copy)],
                          capture_output=True, text=True)
    if done.returncode and "setuptools" in done.stderr and "No matching distribution" in done.stderr:
        pytest.skip("setuptools is not to be had")
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.mark.slow
def test_the_source_archive_builds_the_same(wheel, tmp_path):
    """What is in the wheel can be built from the source archive alone."""
    copy = wheel.parent / "copy"
    pytest.importorskip("setuptools")
    done = subprocess.run([sys.executable, "-c", "import setuptools.build_meta as b; print(b.build_sdist(sys.argv[1]))"
                           .replace("import ", "import sys, ", 1), str(tmp_path)],
                          cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    archive, there = tmp_path / done.stdout.split()[-1], tmp_path / "unpacked"
    shutil.unpack_archive(archive, there, filter="data")
    (root,) = there.iterdir()
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(tmp_path), str(root)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = tmp_path.glob("*.whl")
    names = [sorted(n for n in zipfile.ZipFile(w).namelist() if not n.endswith("/RECORD")) for w in (wheel, made)]
    assert names[0] == names[1]


@pytest.mark.slow
def test_every_module_is_in_the_wheel(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"{place}/{p.relative_to(ROOT / folder).as_posix()}" for folder, place in FOLDERS.items()
              for p in (ROOT / folder).rglob("*.py")}
    assert wanted <= inside, wanted - inside
    assert "gradscribe/py.typed" in inside


@pytest.mark.slow
def test_the_wheel_works(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "there")
    (tmp_path / "cube.py").write_text("def cube(x):\n    return x ** 3\n")
    program = "import sys; sys.path[:0] = ['there', '.']\n" \
              "import gradscribe as gs, cube\n" \
              "print(gs.__file__, gs.grad(cube.cube)(2.0), gs.jit(gs.grad(cube.cube))(2.0))\n"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    file, *values = done.stdout.split()
    assert Path(tmp_path / file).is_relative_to(tmp_path / "there") and values == ["12.0", "12.0"]


def test_a_clone_that_is_not_installed(tmp_path):
    """Python started in a clone finds the four folders, whatever is installed."""
    (tmp_path / "cube.py").write_text("def cube(x):\n    return x ** 3\n")
    program = "import sys\n" \
              "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]\n" \
              f"sys.path[:0] = [{str(tmp_path)!r}]\n" \
              "import gradscribe as gs, cube\n" \
              "print(gs.__file__, gs.grad(cube.cube)(2.0))\n"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(ROOT / "gradscribe" / "__init__.py"), "12.0"]
