# SPDX-License-Identifier: Apache-2.0
"""A release: wheel, source archive, conda recipe, list of components, and both archives tried in empty environments.

    python release/build.py                         of the commit that is checked out, which has a tag such as v0.1.0
    python release/build.py --dev                   without a tag: version 0.1.0.dev<number of commits>
    python release/build.py --try python3.11 python3.14     then installs and tests them with these interpreters

The version comes from the tag.  The archives hold what the commit holds, not what lies in the folder, and their times
are the commit's, so two builds have the same bytes; the list of components names the versions of the day.  Needs
`pip install ".[release]"`; writes to dist/ if all tests pass.  The exit code is 1 if there is no release, 2 if the
command is wrong.
"""
import argparse
import configparser
import gzip
import hashlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TAG = re.compile(r"v(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)")
BACKEND = "setuptools==84.2.1"          # another version writes other bytes
TOOLS = ("build", "cyclonedx_py", "rattler_build")
TESTED = ["tests", "benchmarks", "examples", "docs", "notebooks", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md",
          "CHANGELOG.md", "setup.cfg", "pyproject.toml", "ruff.toml", "Makefile"]
FAST = ["tests/programs", "tests/library", "tests/passes"]


class Unreleasable(Exception):
    """Why there is no release."""


def run(words: list, failure: str, cwd: Path | None = None, **variables: str) -> str:
    """What a command prints; Unreleasable, with `failure` and the end of its output, if it cannot run or fails.

    Python's own variables are left out: PYTHONPATH would put this folder before what is installed.
    """
    env = {n: v for n, v in os.environ.items() if not n.startswith("PYTHON")} | variables
    try:
        done = subprocess.run([str(w) for w in words], cwd=cwd or ROOT, env=env, umask=0o022, text=True,
                              capture_output=True)
    except OSError as why:
        raise Unreleasable(f"{failure}: {why.strerror}: {words[0]}") from None
    if done.returncode:
        ends = [text.strip()[-3000:] for text in (done.stdout, done.stderr)]
        raise Unreleasable("\n".join([f"{failure}:", *filter(None, ends)]))
    return done.stdout.strip()


def git(*words: str) -> str:
    """What git says about the repository."""
    return run(["git", *words], f"git {words[0]} failed")


def check_tools() -> None:
    """Unreleasable if a package that builds a release is missing."""
    missing = [name for name in TOOLS if importlib.util.find_spec(name) is None]
    if missing:
        raise Unreleasable(f'{", ".join(missing)} not found: pip install ".[release]"')


def check_clean(dev: bool) -> None:
    """Unreleasable if the folder differs from the commit, which alone is built; with --dev that is only said."""
    changed = git("status", "--porcelain").splitlines()
    if changed:
        what = f"not in the commit, so not in the archives: {', '.join(line[2:].strip() for line in changed[:5])}"
        what += f" and {len(changed) - 5} more" * (len(changed) > 5)
        if not dev:
            raise Unreleasable(f"{what}; commit or remove them")
        print(what, file=sys.stderr)


def interpreter(name: str) -> tuple[str, str]:
    """(path, version) of an interpreter that can try the archives; Unreleasable for one that cannot."""
    found = shutil.which(name)
    if found is None:
        raise Unreleasable(f"there is no interpreter {name}")
    python = os.path.abspath(found)
    printed = run([python, "-c", "import ensurepip, venv, sys; print('%d.%d.%d' % sys.version_info[:3])"],
                  f"{python} makes no environments")
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    lowest = config["options"]["python_requires"].removeprefix(">=")
    if tuple(map(int, printed.split("."))) < tuple(map(int, lowest.split("."))):
        raise Unreleasable(f"{python} is Python {printed}, and Gradscribe needs {lowest}")
    return python, printed


def version_in_commit() -> str:
    """The version in the commit's source, before that of the tag is written."""
    found = re.search(r'__version__ = "(.*)"', git("show", "HEAD:gradscribe/version.py"))
    if found is None:
        raise Unreleasable("gradscribe/version.py has no version")
    return found[1]


def version_of(tags: list[str], dev: bool, base: str, commits: str) -> str:
    """The version for the tags of a commit.

    >>> version_of(["v1.2.0", "good"], False, "0.1.0", "7"), version_of([], True, "0.1.0", "7")
    ('1.2.0', '0.1.0.dev7')
    """
    found = [m[1] for m in map(TAG.fullmatch, tags) if m]
    if len(found) > 1:
        raise Unreleasable(f"the commit has several versions: {', '.join(found)}; git tag -d deletes a tag")
    if found:
        return found[0]
    if not dev:
        has = f"no tag of the commit ({', '.join(tags)}) is a version" if tags else "the commit has no tag"
        raise Unreleasable(f"{has}: git tag v{base}, or build with --dev")
    return f"{base}.dev{commits}"


def export(folder: Path, version: str) -> None:
    """Writes the files of the commit to a folder, with this version."""
    folder.mkdir()
    packed = folder.with_suffix(".tar")
    git("archive", "-o", str(packed), "HEAD")
    with tarfile.open(packed) as tar:
        tar.extractall(folder, filter="data")
    for name, pattern, text in (("gradscribe/version.py", r'__version__ = ".*"', f'__version__ = "{version}"'),
                                ("CITATION.cff", r"(?m)^version: .*$", f"version: {version}")):
        path = folder / name
        changed, count = re.subn(pattern, text, path.read_text(encoding="utf-8"))
        if count != 1:
            raise Unreleasable(f"{name} has no version")
        path.write_text(changed, encoding="utf-8")


def built(folder: Path, out: Path, epoch: str) -> list[Path]:
    """The wheel and the source archive of a folder, by `python -m build` with one version of setuptools."""
    pins = folder.with_suffix(".txt")
    pins.write_text(f"{BACKEND}\n", encoding="utf-8")
    run([sys.executable, "-m", "build", "--outdir", out, folder], "python -m build failed",
        SOURCE_DATE_EPOCH=epoch, PIP_CONSTRAINT=str(pins))
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    normalise(source, int(epoch))
    return [wheel, source]


def normalise(path: Path, epoch: int) -> None:
    """Writes a source archive again with one time, one owner and sorted names."""
    with tarfile.open(path) as tar:
        entries = [(m, tar.extractfile(m).read() if m.isfile() else b"") for m in tar.getmembers()]
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, epoch) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member, content in sorted(entries, key=lambda e: e[0].name):
            made = tarfile.TarInfo(member.name)
            made.type, made.size, made.mtime = member.type, len(content), epoch
            made.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            tar.addfile(made, io.BytesIO(content))


def environment(folder: Path, python: str, what: str) -> Path:
    """The interpreter of a new environment with an archive installed."""
    run([python, "-m", "venv", folder], f"{python} makes no environment")
    inside = folder / "bin" / "python"
    run([inside, "-m", "pip", "install", "-q", what], f"{python} does not install {Path(what).name}")
    return inside


def components(wheel: Path) -> Path:
    """The list of components of an environment with the wheel alone, as CycloneDX (ECMA-424), beside the wheel."""
    path = wheel.with_name(f"{'-'.join(wheel.name.split('-')[:2])}.cdx.json")
    with tempfile.TemporaryDirectory() as folder:
        inside = environment(Path(folder) / "venv", sys.executable, str(wheel))
        run([sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--of", "JSON", "-o", path,
             inside], "there is no list of components")
    path.write_text(path.read_text(encoding="utf-8").replace(f"{wheel.parent.resolve().as_uri()}/", ""), "utf-8")
    return path


def filled(template: str, version: str, digest: str) -> str:
    """The conda recipe with the version and the SHA-256 of a source archive."""
    text, versions = re.subn(r'(?m)^  version: ".*"$', f'  version: "{version}"', template)
    text, digests = re.subn(r'(?m)^  sha256: ".*"$', f'  sha256: "{digest}"', text)
    if (versions, digests) != (1, 1):
        raise Unreleasable("release/recipe.yaml has not one version and one sha256")
    return text


def recipe(template: str, version: str, source: Path) -> Path:
    """The conda recipe of a source archive, beside it, after rattler-build has read and rendered it."""
    from rattler_build import RattlerBuildError, Stage0Recipe
    path = source.with_name("recipe.yaml")
    path.write_text(filled(template, version, hashlib.sha256(source.read_bytes()).hexdigest()), encoding="utf-8")
    try:
        (rendered,) = Stage0Recipe.from_file(path).render()
    except RattlerBuildError as why:
        raise Unreleasable(f"release/recipe.yaml: {why}") from None
    package = rendered.recipe.to_dict()["package"]
    if package != {"name": "gradscribe", "version": version}:
        raise Unreleasable(f"release/recipe.yaml is one of {package}")
    return path


def tried(archive: Path, python: str, export_folder: Path) -> str:
    """Installs an archive in an empty environment, and runs the fast tests there; versions and last line of output."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inside = environment(folder / "venv", python, f"{archive}[test]")
        for part in TESTED:
            copy = shutil.copytree if (export_folder / part).is_dir() else shutil.copy
            copy(export_folder / part, folder / part)
        versions = run([inside, "-c", "import importlib.metadata as m; print(*(f'{p} {m.version(p)}' for p in "
                        "('numpy', 'scipy', 'numba')), sep=', ')"], "the environment is incomplete", folder)
        printed = run([inside, "-m", "pytest", "-n", "2", "--sample", "0", "-m", "not slow", *FAST],
                      f"tests fail with {python}", folder)
        return f"{versions}: {printed.splitlines()[-1]}"


def release(options: argparse.Namespace) -> None:
    """Builds, tries and writes what the options say; Unreleasable if something is in the way."""
    check_tools()
    version = version_of(git("tag", "--points-at", "HEAD").split(), options.dev, version_in_commit(),
                         git("rev-list", "--count", "HEAD"))
    check_clean(options.dev)
    pythons = [interpreter(name) for name in options.pythons]
    epoch = git("log", "-1", "--format=%ct")
    with tempfile.TemporaryDirectory() as name:
        folder, made = Path(name) / "source", Path(name) / "made"
        export(folder, version)
        archives = built(folder, made, epoch)
        template = (folder / "release" / "recipe.yaml").read_text(encoding="utf-8")
        files = [*archives, components(archives[0]), recipe(template, version, archives[1])]
        for path in files:
            print(hashlib.sha256(path.read_bytes()).hexdigest(), path.name, flush=True)
        for python, which in pythons:
            for archive in archives:
                print(f"{archive.name}, Python {which}, {tried(archive, python, folder)}", flush=True)
        try:
            options.out.mkdir(parents=True, exist_ok=True)
            for path in files:
                shutil.copy(path, options.out)
        except OSError as why:
            raise Unreleasable(f"cannot write to {options.out}: {why.strerror}") from None


def main(words: list[str] | None = None) -> int:
    """The command; 1 if there is no release."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dev", action="store_true", help="build a commit without a tag")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where to write; default: dist/")
    parser.add_argument("--try", dest="pythons", nargs="+", default=[], metavar="PYTHON",
                        help="interpreters to try the archives with")
    try:
        release(parser.parse_args(words))
    except Unreleasable as why:
        print(f"no release: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
