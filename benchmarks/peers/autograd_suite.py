"""autograd's own tests, with gradscribe behind autograd's words.

    python benchmarks/peers/autograd_suite.py                    fetch the tests, run them all, count by cause
    python benchmarks/peers/autograd_suite.py --suite PATH       the tests of a checkout or of a git directory
    python benchmarks/peers/autograd_suite.py --only linalg      those whose name contains a text; each failure whole

autograd itself takes no part: `stand_ins/autograd` is a package of the same name that says each of its words with
gradscribe's.  Nothing of the tests is kept in this repository; bounds and steps of their numerical checks are theirs.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = "1.9.1"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gradscribe" / "peers"

# What asks for autograd's insides, or for a refusal where there is a derivative; and why it has no meaning here.
GRAPH = "counts what a tracer records: nothing is traced"
WHERE = "autograd's np.where takes keywords and returns Python numbers; NumPy's does neither"
NOT_APPLICABLE = {
    "test_misc.test_const_graph": GRAPH,
    "test_misc.test_const_graph_args": GRAPH,
    "test_wrappers.test_custom_where": WHERE,
    "test_wrappers.test_custom_where_dtypes[int-True-1-2]": WHERE,
    "test_wrappers.test_custom_where_dtypes[float-True-3.0-4.0]": WHERE,
    "test_wrappers.test_custom_where_dtypes[float-False-1-2.0]": WHERE,
    "test_wrappers.test_custom_where_dtypes[list-True-x3-y3]": WHERE,
    "test_wrappers.test_wrapped_name_and_docs": "names and doc strings of autograd's own objects",
    "test_fft.test_rfftn_odd_not_implemented": "expects a refusal; an odd last axis has its derivative here",
    "test_graphs.test_assignment_raises_error": "expects a refusal; a write into an array has its derivative here",
}


def suite_of(path):
    """The folder of tests, copied out of a checkout or of a git directory, or downloaded."""
    if path is None:
        return downloaded()
    inside = Path(path) / "tests"
    if inside.is_dir():
        return inside
    folder = Path(tempfile.mkdtemp(prefix="autograd-"))
    archive = subprocess.run(["git", "--git-dir", path, "archive", "HEAD", "tests"], check=True, capture_output=True)
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "tests"


def downloaded():
    """The tests in the source archive of one version, from PyPI, kept in a cache folder."""
    folder = CACHE / f"autograd-{VERSION}"
    if not (folder / "tests").is_dir():
        print(f"downloading autograd {VERSION} (source archive, from PyPI) to {CACHE}", flush=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "pip", "-q", "download", f"autograd=={VERSION}", "--no-deps",
                        "--no-binary", "autograd", "-d", str(CACHE)], check=True)
        with tarfile.open(CACHE / f"autograd-{VERSION}.tar.gz") as archive:
            archive.extractall(CACHE, filter="data")
    return folder / "tests"


def run(tests, only, shown):
    """{name of a test: (outcome, first line of what it raised)}."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        paths = [str(HERE / "stand_ins"), str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")]
        command = [sys.executable, "-m", "pytest", ".", "-q", "-p", "no:cacheprovider", "-c", os.devnull,
                   "--rootdir", str(tests), f"--junitxml={report}", *(["-k", only] if only else ["--tb=line", "-q"])]
        subprocess.run(command, cwd=tests, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
                       stdout=None if shown else subprocess.DEVNULL)
        return dict(outcome(case) for case in xml.parse(report).iter("testcase"))


def outcome(case):
    name = f"{case.get('classname')}.{case.get('name')}"
    for kind in ("skipped", "failure", "error"):
        found = case.find(kind)
        if found is not None:
            return name, ("skipped" if kind == "skipped" else "failed", found.get("message"))
    return name, ("passed", "")


def cause(message):
    """The first line of a message without what differs from one test to the next."""
    line = message.strip().splitlines()[0].removeprefix("gradscribe.ast_transform.source.diagnose.")
    line = re.sub(r"[-+]?\d[\d.e+-]*", "#", line)
    return line[:110]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", help="a checkout of autograd, or a git directory")
    parser.add_argument("--only", help="tests whose name contains this, as pytest -k has it")
    parser.add_argument("--list", action="store_true", help="each test that did not pass, with its cause")
    given = parser.parse_args()
    found = run(suite_of(given.suite), given.only, bool(given.only))
    by = collections.defaultdict(list)
    for name, (kind, message) in found.items():
        by["not applicable" if name in NOT_APPLICABLE and kind == "failed" else kind].append((name, message))
    count = len(found) - len(by["skipped"])
    print(f"{len(by['passed'])} of {count} pass, {len(by['failed'])} fail, {len(by['not applicable'])} do not apply; "
          f"{len(by['skipped'])} more are skipped by the suite itself")
    for text, number in collections.Counter(cause(m) for _, m in by["failed"]).most_common():
        print(f"{number:5}  {text}")
    for name, _ in by["not applicable"]:
        print(f"    -  {name}: {NOT_APPLICABLE[name]}")
    if given.list:
        for name, message in by["failed"] + by["skipped"]:
            print(f"{name}: {cause(message)}")


if __name__ == "__main__":
    main()
