# SPDX-License-Identifier: Apache-2.0
"""The release script: versions from tags, archives of the same bytes, and a conda recipe that agrees with setup.cfg."""
import configparser
import importlib.util
import io
import re
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


@pytest.mark.parametrize("tags, version",
                         [(["v1.2.0"], "1.2.0"), (["good", "v0.3.1rc2"], "0.3.1rc2"), ([], "0.1.0.dev9")])
def test_versions(build, tags, version):
    assert build.version_of(tags, True, "0.1.0", "9") == version


@pytest.mark.parametrize("tags, why", [([], "no tag"), (["v1"], "no tag"), (["v1.0.0", "v1.0.1"], "several versions")])
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
    run = (ROOT / "release/meta.yaml").read_text(encoding="utf-8").split("  run:\n")[1].split("\n\n")[0]
    found = {re.sub(r"\s", "", line.strip("- ")) for line in run.splitlines()}
    assert found - {"python>={{python_min}}"} == wanted


def test_the_version_is_in_one_place():
    text = (ROOT / "gradscribe/version.py").read_text(encoding="utf-8")
    version = re.search(r'__version__ = "(.*)"', text)[1]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'{{% set version = "{version}" %}}' in (ROOT / "release/meta.yaml").read_text(encoding="utf-8")
