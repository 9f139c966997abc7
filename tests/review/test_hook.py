# SPDX-License-Identifier: Apache-2.0
"""The hook for pre-commit: its command as the hook's file has it, and from a tag where pre-commit is installed."""
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gradscribe as gs

ROOT = Path(__file__).resolve().parent.parent.parent
MODULE = "import numpy as np\n\n\ndef loss(w, x):\n    return np.sum((w * x) ** 2)\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a module and a file that was written from it."""
    name = f"project_{abs(hash(tmp_path)) % 10 ** 9}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    gs.dump(gs.grad(__import__(name).loss), tmp_path / "generated", 2.0, 3.0)
    return tmp_path, tmp_path / f"{name}.py"


def hook():
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    entry, args = (re.search(rf"^  {key}: (.*)$", text, re.M)[1] for key in ("entry", "args"))
    assert "pass_filenames: false" in text
    return [*shlex.split(entry), *args.strip("[]").split(", ")]


def test_the_command_of_the_hook(project):
    folder, module = project
    program, *rest = hook()
    assert program == "gradscribe"
    command = [sys.executable, "-m", "gradscribe", *rest]
    given = {"cwd": folder, "capture_output": True, "text": True,
             "env": {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}}
    done = subprocess.run(command, **given)
    assert not done.returncode, done.stdout + done.stderr
    module.write_text(MODULE.replace("** 2", "** 4"))
    done = subprocess.run(command, **given)
    assert done.returncode == 1 and "differs" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("GRADSCRIBE_PRE_COMMIT") or shutil.which("pre-commit") is None,
                    reason="needs pre-commit, and GRADSCRIBE_PRE_COMMIT=1 as it installs packages")
@pytest.mark.timeout(1200)
def test_pre_commit_from_a_tag(project):
    """As docs/review.md has it: a change of the function alone, not of the written file, stops the commit."""
    folder, module = project

    def run(*words, cwd=folder):
        return subprocess.run(words, cwd=cwd, capture_output=True, text=True,
                              env={**os.environ, "PRE_COMMIT_HOME": str(folder.parent / "cache")})
    source = folder.parent / "source"
    assert not run("git", "clone", "--quiet", str(ROOT), str(source)).returncode
    run("git", "tag", "--force", "v0.1.0", cwd=source)
    listed = re.search(r"^    (- repo:(?:.*\n)(?:    .*\n)+)", (ROOT / "docs" / "review.md").read_text(), re.M)[1]
    config = "repos:\n" + listed.replace("\n    ", "\n").replace("<where this repository is>", str(source))
    (folder / ".pre-commit-config.yaml").write_text(config)
    run("git", "init", "--quiet")
    run("git", "add", ".")
    done = run("pre-commit", "run", "--all-files")
    assert not done.returncode, done.stdout + done.stderr
    module.write_text(MODULE.replace("** 2", "** 4"))
    run("git", "add", ".")
    done = run("pre-commit", "run")
    assert done.returncode == 1 and "differs" in done.stdout
