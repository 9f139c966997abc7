"""JAX's own tests, with gradscribe behind JAX's words.

    python benchmarks/peers/jax_suite.py                         fetch the tests, run them all, count by file and cause
    python benchmarks/peers/jax_suite.py --suite PATH           the tests of a checkout or of a git directory
    python benchmarks/peers/jax_suite.py --files nn linalg       those of some files
    python benchmarks/peers/jax_suite.py --only cond --list      those whose name contains a text; each failure
    python benchmarks/peers/jax_suite.py --compile             jax.jit is gs.jit, and not the function as it is

JAX itself takes no part: `stand_ins/jax` is a package of the same name that says each of its words with gradscribe's,
in double precision (`jax_enable_x64`), and `stand_ins/absl` writes out parameterized tests.  Nothing of the tests is
kept in this repository; their bounds and steps are theirs.  In the copies that are run, `x.at[i]` reads `_at(x)[i]`:
an array of NumPy has no such attribute.

A test does not apply where it asks for a part of JAX itself (it raises `Inside`), or where it fails and its text
matches a row of REASONS.
"""
import argparse
import ast
import collections
import importlib
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = "jax-v0.11.0"
ADDRESS = f"https://raw.githubusercontent.com/jax-ml/jax/{VERSION}/tests/"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gradscribe" / "peers" / VERSION
FILES = ["tree_util", "nn", "custom_api", "api", "lax_control_flow", "batching", "lax_numpy_indexing", "linalg",
         "random"]
KINDS = ["failed", "not applicable", "skipped", "passed"]
SECONDS = 60                            # of processor time, for one test

# Classes all of whose tests are about what has no meaning here, or the tests of another class over again.
AGAIN = "the tests of another class again, under a flag of JAX's"
CLASSES = {
    "CustomVJP3Test": AGAIN, "CustomJVPRemat3Test": AGAIN, "CustomVJP3Remat3Test": AGAIN, "CustomJVP3Test": AGAIN,
    "CustomJVP3Remat3Test": AGAIN, "Remat3Test": AGAIN,
    "JaxprTest": "the text of jaxprs", "DCETest": "jaxprs without dead code", "FlatTreeTest": "a class inside JAX",
    "EvalJaxprPrimitiveTest": "a primitive that runs jaxprs", "OverrideLoweringTest": "what is given to XLA",
    "BufferDonationTest": "buffers of a device", "BackendsTest": "which devices there are",
    "EnvironmentInfoTest": "JAX's report of itself", "AutodidaxTest": "a document of JAX's",
    "KeyArrayTest": "keys as a dtype of their own: they are plain arrays here",
    "JnpWithKeyArrayTest": "keys as a dtype of their own: they are plain arrays here",
    "VmappableTest": "user classes as batches, inside JAX", "IndexingStrategyTest": "which operation of XLA is chosen",
    "TracebackTest": "frames of JAX in a traceback", "GarbageCollectionTest": "buffers of a device",
    "CleanupTest": "caches of compiled code",
}
# Tests by the beginnings of their names.
TESTS = {
    "testLogMeanExp": "compares with jnp.mean(where=None), which NumPy's mean does not take",
}
# A test that fails does not apply if its text, or what it raised, says one of these.
REASONS = [
    (r"jaxpr", "jaxprs: nothing is traced"),
    (r"\b(core|ad|batching|mlir|pe|lu|dispatch|ad_internal|xla_bridge)\.\w|\blax\.\w+_p\b|lax_internal|\b_src\b",
     "parts of JAX itself"),
    (r"jtu\.count_|assert_num|CacheMisses|_cache_size|cache_info|cache_misses|\btrace_count|num_traces|[Tt]raced? ?once"
     r"|retracing|\beffects?\b|\bside(_effects?)? ?(\.append|= ?\[|\[:)|python_should_be_executing|\bcount(er)? \+= 1"
     r"|\b(called|count|counter|num_called|calls)\[?0?\]?\.?(append)?.*\+= 1",
     "counts what is traced or compiled"),
    (r"Tracer|Concretization|[Ll]eak|NonConcrete|\btrac(ed|ing|er)\b", "errors of tracing"),
    (r"weak_type|weakly|dtype_promotion\('strict|rank_promotion\('raise", "weak types and JAX's promotion"),
    (r"\.lower\(|\.trace\(|\.compile\(|as_text|\bhlo\b|HLO|xla_|compiler_options", "XLA's own forms"),
    (r"donate_|is_deleted|device_put|jax\.(local_)?devices\(|[sS]harding|Mesh\b|pmap\(|backend=|committed|copy_to_host"
     r"|live_arrays|unsafe_buffer_pointer|\.device\b", "devices, and where arrays lie"),
    (r"PjitFunction|__getstate__\(\)\[", "how JAX writes down what it compiles"),
    (r"float0", "float0, the dtype of a tangent of an integer"),
    (r"new_ref|\bRef\b|jax\.ref\b", "mutable references"),
    (r"bfloat16|float8|float4|\bint4\b|\bint2\b", "bfloat16, and numbers of eight bits and fewer"),
    (r"jax\.debug\.|debugging\.|named_scope|source_info|logging|assertLogs", "debugging of compiled code"),
    (r"deprecat|DeprecationWarning|assertWarns", "warnings of JAX's"),
    (r"prng_impl|\brbg\b|unsafe_rbg|key_impl", "generators other than Threefry"),
    (r"weakref|gc\.collect", "what the cache of compiled code keeps"),
]
WORDING = "the words of JAX's error messages"


# ---- the tests, fetched and made ready

def source_of(name, suite):
    """The text of a file of tests, out of a checkout or of a git directory, or downloaded and kept."""
    path = f"tests/{name}_test.py"
    if suite is None:
        kept = CACHE / f"{name}_test.py"
        if not kept.exists():
            print(f"downloading {ADDRESS}{kept.name}", flush=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            with urllib.request.urlopen(ADDRESS + kept.name) as answer:
                kept.write_bytes(answer.read())
        return kept.read_text()
    if (Path(suite) / path).exists():
        return (Path(suite) / path).read_text()
    return subprocess.run(["git", "--git-dir", suite, "show", f"{VERSION}:{path}"], check=True, capture_output=True,
                          text=True).stdout


def without_at(text):
    """The text with _at(x)[i] for x.at[i]; every line keeps its number."""
    lines, edits = text.encode().splitlines(keepends=True), []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "at":
            inner = node.value.value
            edits += [(inner.lineno, inner.col_offset, 0, b"_at("),
                      (node.value.end_lineno, node.value.end_col_offset - 3, 3, b")")]
    for number, column, length, put in sorted(edits, reverse=True):
        line = lines[number - 1]
        lines[number - 1] = line[:column] + put + line[column + length:]
    return b"".join(lines).decode().replace("\nimport jax\n", "\nimport jax; from gradscribe import at as _at\n", 1)


# ---- inside pytest: a limit of time, and a line for each test

def pytest_collection_modifyitems(config, items):
    skipped = [item for item in items if item.cls.__name__ in CLASSES]
    for item in skipped:
        _write({"name": item.name, "class": item.cls.__name__, "kind": "not applicable",
                "cause": CLASSES[item.cls.__name__]})
    items[:] = [item for item in items if item.cls.__name__ not in CLASSES]


def pytest_runtest_setup(item):
    importlib.import_module("jax.inside").RUNNING.append(item)

    def late(*args):
        raise TimeoutError(f"longer than {SECONDS} s")
    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed" and report.when == "setup":
        signal.setitimer(signal.ITIMER_PROF, 0)
        _write(report.peers)


def pytest_runtest_makereport(item, call):
    from _pytest.runner import pytest_runtest_makereport as make
    report = make(item, call)
    said = {"name": item.name, "class": item.cls.__name__, "kind": report.outcome, "cause": ""}
    if report.failed and call.excinfo is not None:
        error = call.excinfo.value
        said["cause"] = f"{type(error).__name__}: {error}"
        said |= judged(item.name, error, said["cause"], body_of(item.function))
    elif report.skipped:
        said["cause"] = str(report.longrepr[-1])
    report.peers = said
    return report


def body_of(function):
    """The text of a test below its decorators, and the parameters it was given."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body[0]
    tree.decorator_list = []
    return f"{ast.unparse(tree)} {getattr(function, 'parts', '')}"


def judged(name, error, cause, text):
    """Does a test that raised an error apply, and why not."""
    if type(error).__name__ == "Inside":
        module, _, name = str(error).rpartition(".")
        return {"kind": "not applicable", "cause": f"asks for {module if '_src' in module else error}"}
    if re.search(r'AssertionError: .*" does not match "', cause, re.DOTALL):
        return {"kind": "not applicable", "cause": WORDING}
    for start, reason in TESTS.items():
        if name.startswith(start):
            return {"kind": "not applicable", "cause": reason, "error": cause}
    for pattern, reason in REASONS:
        if re.search(pattern, text):
            return {"kind": "not applicable", "cause": reason, "error": cause}
    return {}


def _write(said):
    with open(os.environ["PEERS_REPORT"], "a") as file:
        file.write(json.dumps(said) + "\n")


# ---- outside: one process for each file

def run(name, folder, given):
    """What each test of a file came to."""
    report, copy = folder / f"{name}.jsonl", folder / f"{name}_test.py"
    copy.write_text(without_at(source_of(name, given.suite)))
    report.write_text("")
    paths = [str(HERE / "stand_ins"), str(HERE), str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, "-m", "pytest", copy.name, "-q", "-p", "no:cacheprovider", "-p", "jax_suite",
               "-c", os.devnull, "--rootdir", str(folder), "--tb=short", *(["-k", given.only] if given.only else [])]
    settings = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "PEERS_REPORT": str(report),
                "PEERS_COMPILE": "1" if given.compile else ""}
    with open(folder / f"{name}.log", "w") as log:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **settings}, stdout=log, stderr=log)
    if done.returncode not in (0, 1, 5):
        print((folder / f"{name}.log").read_text()[-3000:])
        sys.exit(f"{name}: the tests could not be read")
    said = collections.defaultdict(list)            # parts of one test are told one by one
    for each in map(json.loads, report.read_text().splitlines()):
        said[each["class"], each["name"]].append(each)
    return [min(parts, key=lambda part: KINDS.index(part["kind"])) for parts in said.values()]


def short(text):
    """The first line of a cause without what differs from one test to the next."""
    line = (text.strip().splitlines() or [""])[0]
    return re.sub(r"[-+]?\d[\d.e+-]*", "#", line)[:110]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", help="a checkout of JAX, or a git directory")
    parser.add_argument("--files", nargs="+", default=FILES, choices=FILES, metavar="NAME", help=", ".join(FILES))
    parser.add_argument("--only", help="tests whose name contains this, as pytest -k has it")
    parser.add_argument("--list", action="store_true", help="each test that did not pass, with its cause")
    parser.add_argument("--compile", action="store_true", help="jax.jit compiles")
    parser.add_argument("--keep", type=Path, help="a folder for the copies, reports and logs")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp(prefix="jax-"))
    folder.mkdir(parents=True, exist_ok=True)
    total, failed, aside, other = collections.Counter(), [], [], collections.Counter()
    for name in given.files:
        found = run(name, folder, given)
        kinds = collections.Counter(said["kind"] for said in found)
        total += kinds
        failed += [said for said in found if said["kind"] == "failed"]
        aside += [said for said in found if "error" in said]
        other.update(short(said["cause"]) for said in found if said["kind"] == "not applicable")
        print(line_of(name, kinds), flush=True)
    print(line_of("all", total))
    print("\ncauses of failures")
    for text, number in collections.Counter(short(said["cause"]) for said in failed).most_common():
        print(f"{number:5}  {text}")
    print("\nwhat does not apply")
    for text, number in other.most_common():
        print(f"{number:5}  {text}")
    if given.list:
        for said in failed:
            print(f"{said['class']}.{said['name']}: {short(said['cause'])}")
        for said in aside:
            print(f"({said['class']}.{said['name']}: {short(said['error'])}: {said['cause']})")


def line_of(name, kinds):
    return (f"{name:20} {kinds['passed']:5} of {kinds['passed'] + kinds['failed']:5} pass, "
            f"{kinds['not applicable']:5} do not apply, {kinds['skipped']:4} skipped by the suite")


if __name__ == "__main__":
    main()
