# SPDX-License-Identifier: Apache-2.0
"""A release: wheel, source archive, list of components, and both archives tried in empty environments.

    python release/build.py                         of the commit that is checked out, which has a tag such as v0.1.0
    python release/build.py --dev                   without a tag: version 0.1.0.dev<number of commits>
    python release/build.py --try python3.11 python3.13     then installs and tests them with these interpreters

The version comes from the tag.  The archives hold what the commit holds, not what lies in the folder, and their times
are the commit's, so two builds have the same bytes.  Needs `pip install ".[release]"`; writes to dist/.
"""
import argparse
import gzip
import hashlib
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
TESTED = ["tests", "benchmarks", "examples", "docs", "notebooks", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md",
          "CHANGELOG.md", "setup.cfg", "pyproject.toml", "ruff.toml", "Makefile"]
FAST = ["tests/programs", "tests/library", "tests/passes"]


class Unreleasable(Exception):
    """Why there is no release."""


def git(*words: str) -> str:
    """What git says about the repository."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Unreleasable(done.stderr.strip() or f"git {' '.join(words)} failed")
    return done.stdout.strip()


def version_of(tags: list[str], dev: bool, base: str, commits: str) -> str:
    """The version for the tags of a commit.

    >>> version_of(["v1.2.0", "good"], False, "0.1.0", "7"), version_of([], True, "0.1.0", "7")
    ('1.2.0', '0.1.0.dev7')
    >>> version_of(["good"], False, "0.1.0", "7")
    Traceback (most recent call last):
    Unreleasable: the commit has no tag such as v0.1.0: git tag v0.1.0, or build with --dev
    """
    found = [m[1] for m in map(TAG.fullmatch, tags) if m]
    if len(found) > 1:
        raise Unreleasable(f"the commit has several versions: {', '.join(found)}")
    if found:
        return found[0]
    if not dev:
        raise Unreleasable(f"the commit has no tag such as v{base}: git tag v{base}, or build with --dev")
    return f"{base}.dev{commits}"


def export(folder: Path, version: str) -> None:
    """Writes the files of the commit to a folder, with this version."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    for name, pattern, text in (("gradscribe/version.py", r'__version__ = ".*"', f'__version__ = "{version}"'),
                                ("CITATION.cff", r"(?m)^version: .*$", f"version: {version}")):
        path = folder / name
        changed, count = re.subn(pattern, text, path.read_text(encoding="utf-8"))
        if count != 1:
            raise Unreleasable(f"{name} has no version")
        path.write_text(changed, encoding="utf-8")


def built(folder: Path, out: Path, epoch: str) -> list[Path]:
    """The wheel and the source archive of a folder, by `python -m build`."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    done = subprocess.run([sys.executable, "-m", "build", "--outdir", str(out), str(folder)], env=env,
                          capture_output=True, text=True)
    if done.returncode:
        raise Unreleasable(f"python -m build failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
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
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    inside = folder / "bin" / "python"
    done = subprocess.run([str(inside), "-m", "pip", "install", "-q", what], capture_output=True, text=True)
    if done.returncode:
        raise Unreleasable(f"{python} does not install {what}:\n{done.stderr[-2000:]}")
    return inside


def components(wheel: Path, out: Path) -> Path:
    """The list of components of an environment with the wheel alone, as CycloneDX (ECMA-424)."""
    with tempfile.TemporaryDirectory() as folder:
        inside = environment(Path(folder) / "venv", sys.executable, str(wheel))
        path = out / f"{'-'.join(wheel.name.split('-')[:2])}.cdx.json"
        subprocess.run([sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--of", "JSON",
                        "-o", str(path), str(inside)], check=True, capture_output=True)
    path.write_text(path.read_text(encoding="utf-8").replace(f"{wheel.parent.resolve().as_uri()}/", ""), "utf-8")
    return path


def tried(archive: Path, python: str, export_folder: Path) -> str:
    """Installs an archive in an empty environment, and runs the fast tests there; the last line of their output."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inside = environment(folder / "venv", python, f"{archive}[test]")
        for part in TESTED:
            copy = shutil.copytree if (export_folder / part).is_dir() else shutil.copy
            copy(export_folder / part, folder / part)
        done = subprocess.run([str(inside), "-m", "pytest", "-n", "2", "--sample", "0", "-m", "not slow", *FAST],
                              cwd=folder, capture_output=True, text=True)
        last = (done.stdout.strip().splitlines() or [""])[-1]
        if done.returncode:
            raise Unreleasable(f"tests fail with {python}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
        return last


def main(words: list[str] | None = None) -> int:
    """The command; 1 if there is no release."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dev", action="store_true", help="build a commit without a tag")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where to write; default: dist/")
    parser.add_argument("--try", dest="pythons", nargs="*", default=[], help="interpreters to try the archives with")
    options = parser.parse_args(words)
    base = re.search(r'__version__ = "(.*)"', (ROOT / "gradscribe/version.py").read_text(encoding="utf-8"))[1]
    try:
        version = version_of(git("tag", "--points-at", "HEAD").split(), options.dev, base,
                             git("rev-list", "--count", "HEAD"))
        epoch = git("log", "-1", "--format=%ct")
        with tempfile.TemporaryDirectory() as name:
            folder, made = Path(name) / "source", Path(name) / "made"
            export(folder, version)
            archives = built(folder, made, epoch)
            options.out.mkdir(parents=True, exist_ok=True)
            archives = [Path(shutil.copy(a, options.out)) for a in archives]
            for path in [*archives, components(archives[0], options.out)]:
                print(hashlib.sha256(path.read_bytes()).hexdigest(), path.name, flush=True)
            for python in options.pythons:
                for archive in archives:
                    print(f"{archive.name} with {python}: {tried(archive, python, folder)}", flush=True)
    except Unreleasable as why:
        print(why, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
