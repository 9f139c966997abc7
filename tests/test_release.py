# SPDX-License-Identifier: Apache-2.0
"""The release script: versions from tags, archives of the same bytes, a user's mistakes, and the conda recipe."""
import configparser
import doctest
import hashlib
import importlib.util
import io
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("release_build", ROOT / "release" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_doctests(build):
    assert doctest.testmod(build) == (0, 1)


@pytest.mark.parametrize("tags, version",
                         [(["v1.2.0"], "1.2.0"), (["good", "v0.3.1rc2"], "0.3.1rc2"), ([], "0.1.0.dev9")])
def test_versions(build, tags, version):
    assert build.version_of(tags, True, "0.1.0", "9") == version


@pytest.mark.parametrize("tags, why", [
    ([], "no tag: git tag v0.1.0"), (["v1"], r"no tag of the commit \(v1\) is a version"),
    (["v1.0.0", "v1.0.0rc1"], "several versions: 1.0.0, 1.0.0rc1; git tag -d")])
def test_no_version(build, tags, why):
    with pytest.raises(build.Unreleasable, match=why):
        build.version_of(tags, False, "0.1.0", "9")


def archive(path, names, time, owner):
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            made = tarfile.TarInfo(name)
            made.size, made.mtime, made.uname = len(name), time, owner
            tar.addfile(made, io.BytesIO(name.encode()))


def test_source_archives_have_the_same_bytes(build, tmp_path):
    first, second = tmp_path / "a.tar.gz", tmp_path / "b.tar.gz"
    archive(first, ["one", "two"], 5, "me")
    archive(second, ["two", "one"], 6, "you")
    for path in (first, second):
        build.normalise(path, 1_700_000_000)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as tar:
        assert [(m.name, m.mtime, tar.extractfile(m).read()) for m in tar] == \
            [(n, 1_700_000_000, n.encode()) for n in ("one", "two")]


def test_the_conda_recipe_needs_what_setup_cfg_needs():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    wanted = {re.sub(r"\s", "", r) for r in config["options"]["install_requires"].split()}
    text = (ROOT / "release/recipe.yaml").read_text(encoding="utf-8")
    run = text.split("  run:\n")[1].split("\n\n")[0]
    found = {re.sub(r"\s", "", line.strip("- ")) for line in run.splitlines()}
    assert found - {"python>=${{python_min}}"} == wanted
    assert f'python_min: "{config["options"]["python_requires"].removeprefix(">=")}"' in text


def test_the_conda_recipe_is_filled_in(build):
    text = (ROOT / "release/recipe.yaml").read_text(encoding="utf-8")
    made = build.filled(text, "1.2.3", "ab" * 32)
    assert 'version: "1.2.3"' in made and f'sha256: "{"ab" * 32}"' in made and "000" not in made
    with pytest.raises(build.Unreleasable, match="not one version"):
        build.filled(text.replace("sha256", "md5"), "1.2.3", "ab" * 32)


def test_rattler_build_reads_the_conda_recipe(build, tmp_path):
    pytest.importorskip("rattler_build")            # 80 MB: `make release` installs it, `make test` does not
    source, template = tmp_path / "gradscribe-1.2.3.tar.gz", (ROOT / "release/recipe.yaml").read_text(encoding="utf-8")
    source.write_bytes(b"an archive")
    assert hashlib.sha256(b"an archive").hexdigest() in build.recipe(template, "1.2.3", source).read_text("utf-8")
    with pytest.raises(build.Unreleasable, match="noarch"):
        build.recipe(template.replace("noarch: python", "noarch: snake"), "1.2.3", source)


def test_the_version_is_in_one_place():
    text = (ROOT / "gradscribe/version.py").read_text(encoding="utf-8")
    version = re.search(r'__version__ = "(.*)"', text)[1]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'  version: "{version}"\n' in (ROOT / "release/recipe.yaml").read_text(encoding="utf-8")


@pytest.fixture
def clone(build, tmp_path, monkeypatch):
    """A repository with one commit and the tag v0.1.0; what takes time or the network is replaced."""
    folder = tmp_path / "clone"
    for name in ("gradscribe/version.py", "CITATION.cff", "setup.cfg", "release/recipe.yaml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())

    def built(exported, out, epoch):
        out.mkdir()
        names = ["gradscribe-0.1.0-py3-none-any.whl", "gradscribe-0.1.0.tar.gz"]
        for name in names:
            (out / name).write_text((exported / "gradscribe/version.py").read_text(encoding="utf-8"), "utf-8")
        return [out / name for name in names]

    def beside(name):
        return lambda *words: Path(shutil.copy(words[-1], words[-1].with_name(name)))
    monkeypatch.setattr(build, "ROOT", folder)
    monkeypatch.setattr(build, "TOOLS", ())
    monkeypatch.setattr(build, "built", built)
    monkeypatch.setattr(build, "components", beside("components.json"))
    monkeypatch.setattr(build, "recipe", beside("recipe.yaml"))
    monkeypatch.setattr(build, "tried", lambda archive, python, exported: "1 passed")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"],
                  ["tag", "v0.1.0"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def program(path, text):
    """A program in the place of an interpreter."""
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_release(build, clone, capsys):
    assert build.main(["--out", str(clone / "dist"), "--try", sys.executable]) == 0
    names = {p.name for p in (clone / "dist").iterdir()}
    assert names == {"gradscribe-0.1.0-py3-none-any.whl", "gradscribe-0.1.0.tar.gz", "components.json", "recipe.yaml"}
    version = "%d.%d.%d" % sys.version_info[:3]
    assert f"gradscribe-0.1.0.tar.gz, Python {version}, 1 passed" in capsys.readouterr().out


def test_the_version_is_that_of_the_commit(build, clone):
    path = clone / "gradscribe/version.py"
    path.write_text(path.read_text(encoding="utf-8").replace("0.1.0", "9.9.9"), "utf-8")
    subprocess.run(["git", "tag", "-d", "v0.1.0"], cwd=clone, check=True, capture_output=True)
    assert build.main(["--dev", "--out", str(clone / "dist")]) == 0
    assert '__version__ = "0.1.0.dev1"' in (clone / "dist/gradscribe-0.1.0.tar.gz").read_text(encoding="utf-8")


def no_git(clone):
    shutil.rmtree(clone / ".git")


def no_tag(clone):
    subprocess.run(["git", "tag", "-d", "v0.1.0"], cwd=clone, check=True, capture_output=True)


def two_tags(clone):
    subprocess.run(["git", "tag", "v0.2.0"], cwd=clone, check=True)


def a_change(clone):
    (clone / "setup.cfg").write_text("", encoding="utf-8")


def a_new_file(clone):
    (clone / "new.py").write_text("", encoding="utf-8")


@pytest.mark.parametrize("mistake, why", [
    (no_git, "not a git repository"), (no_tag, "no tag: git tag v0.1.0, or build with --dev"),
    (two_tags, "several versions: 0.1.0, 0.2.0"), (a_change, "not in the archives: setup.cfg; commit"),
    (a_new_file, "not in the archives: new.py; commit")])
def test_a_repository_that_is_no_release(build, clone, mistake, why, monkeypatch, capsys):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(clone.parent))
    mistake(clone)
    assert build.main(["--out", str(clone.parent / "dist")]) == 1
    told = capsys.readouterr()
    assert told.err.startswith("no release: ") and why in told.err and not told.out
    assert not (clone.parent / "dist").exists()


def test_a_build_for_developers_says_what_it_leaves_out(build, clone, capsys):
    a_new_file(clone)
    assert build.main(["--dev", "--out", str(clone.parent / "dist")]) == 0
    assert capsys.readouterr().err == "not in the commit, so not in the archives: new.py\n"


@pytest.mark.parametrize("text, why", [
    (None, "there is no interpreter"), ("echo 3.8.1", "is Python 3.8.1, and Gradscribe needs 3.11"),
    ("echo no module named ensurepip >&2; exit 1", "makes no environments:\nno module named ensurepip")])
def test_an_interpreter_that_cannot_try(build, clone, tmp_path, text, why, capsys):
    python = program(tmp_path / "python", text) if text else str(tmp_path / "python3.99")
    assert build.main(["--out", str(tmp_path / "dist"), "--try", sys.executable, python]) == 1
    told = capsys.readouterr()
    assert python in told.err and why in told.err and not told.out and not (tmp_path / "dist").exists()


def test_an_archive_that_is_not_installed(build, tmp_path):
    """As without a network."""
    pip = program(tmp_path / "pip", "echo cannot connect >&2; exit 1")
    python = program(tmp_path / "python", f'mkdir -p "$3/bin" && cp "{pip}" "$3/bin/python"')
    with pytest.raises(build.Unreleasable, match="does not install one.whl:\ncannot connect"):
        build.environment(tmp_path / "venv", python, str(tmp_path / "one.whl"))


def test_nothing_is_written_unless_all_tests_pass(build, clone, monkeypatch, capsys):
    def tried(archive, python, exported):
        if archive.suffix == ".gz":
            raise build.Unreleasable("tests fail")
        return "1 passed"
    monkeypatch.setattr(build, "tried", tried)
    assert build.main(["--out", str(clone.parent / "dist"), "--try", sys.executable]) == 1
    assert "tests fail" in capsys.readouterr().err and not (clone.parent / "dist").exists()


def test_a_file_in_the_place_of_the_folder(build, clone, tmp_path, capsys):
    (tmp_path / "dist").write_text("", encoding="utf-8")
    assert build.main(["--out", str(tmp_path / "dist")]) == 1
    assert "cannot write to" in capsys.readouterr().err


def test_a_missing_tool(build, clone, monkeypatch, capsys):
    monkeypatch.setattr(build, "TOOLS", ("sys", "no_such_tool"))
    assert build.main(["--out", str(clone.parent / "dist")]) == 1
    assert capsys.readouterr().err == 'no release: no_such_tool not found: pip install ".[release]"\n'


def test_a_wrong_command(build, capsys):
    with pytest.raises(SystemExit) as stopped:
        build.main(["--try"])
    assert stopped.value.code == 2 and "--try" in capsys.readouterr().err


def test_a_command_that_is_not_there(build):
    with pytest.raises(build.Unreleasable, match="git tag failed: No such file or directory: no-such-git"):
        build.run(["no-such-git", "tag"], "git tag failed")


def test_commands_do_not_see_this_folder(build, monkeypatch):
    """An archive that lacks a module must not find it in the clone."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert build.run([sys.executable, "-c", "import os; print(os.environ.get('PYTHONPATH'))"], "it failed") == "None"
