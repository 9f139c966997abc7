"""Compiled code on disk: found again, private, and never taken damaged."""
import os
import stat
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from gradscribe import doctor
from gradscribe.codegen import cache

PROGRAM = textwrap.dedent("""
    import sys, time
    import numpy as np
    from gradscribe.codegen import cache
    from gradscribe.codegen.jit_cpu import compiled_text
    found = []
    load = cache.load
    cache.load = lambda *a: found.append(load(*a)) or found[-1]
    text = "def f(x):\\n    return (maximum(x[0], 2.0 * x[1]),)\\n"
    f = compiled_text(text, "f", [(np.dtype(float), 1)], frozenset())
    print(found, f(np.array([1.0, 3.0])))
""")


def run(folder):
    env = {**os.environ, "GRADSCRIBE_CACHE": str(folder)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_second_process(tmp_path):
    folder = tmp_path / "cache"
    assert run(folder) == "[False, False] (6.0,)"
    assert run(folder) == "[True] (6.0,)"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (entry,) = folder.iterdir()
    assert entry.suffix == ".bin"
    whole = bytearray(entry.read_bytes())
    whole[len(whole) // 2] ^= 1
    entry.write_bytes(whole)
    assert run(folder) == "[False, False] (6.0,)"
    assert run(folder) == "[True] (6.0,)"
    entry.write_bytes(b"")
    assert run(folder) == "[False, False] (6.0,)"


TOGETHER = textwrap.dedent("""
    import sys, time
    import numpy as np
    import gradscribe as gs
    from gradscribe.codegen import helpers, jit_cpu
    compiled, found = jit_cpu.compiled_and_kept, []
    jit_cpu.compiled_and_kept = lambda *given: (found.append(1), time.sleep(1), compiled(*given))
    time.sleep(max(0.0, float(sys.argv[1]) - time.time()))
    print(gs.jit(lambda x: np.sum(x * 2.0))(np.arange(3.0)), len(found))
""")


@pytest.mark.slow
def test_processes_that_come_together_compile_once(tmp_path):
    env = {**os.environ, "GRADSCRIBE_CACHE": str(tmp_path / "cache")}
    path = tmp_path / "program.py"
    path.write_text(TOGETHER)
    command = [sys.executable, path, str(time.time() + 4.0)]
    runs = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = sorted(run.communicate(timeout=100)[0].strip() for run in runs)
    assert said == ["6.0 0", "6.0 0", "6.0 1"]
    assert [entry.suffix for entry in (tmp_path / "cache").iterdir()] == [".bin"]


def test_who_has_been_waited_for_too_long_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADSCRIBE_CACHE", str(tmp_path))
    tmp_path.chmod(0o700)
    monkeypatch.setattr(cache, "LONGEST", 0.05)
    with cache.one_at_a_time("k"), cache.one_at_a_time("other"):
        start = time.monotonic()
        with cache.one_at_a_time("k"):
            assert time.monotonic() - start >= 0.05
    assert list(tmp_path.iterdir()) == []


SEVERAL = textwrap.dedent("""
    import sys
    import numpy as np
    import gradscribe as gs
    from gradscribe.codegen import cache
    found = []
    load = cache.load

    def of_a_program(key, made, addressed):
        here = load(key, made, addressed)
        if made.py_func.__module__.startswith("gradscribe_compiled"):       # the runtime's functions are kept as well
            found.append(here)
        return here

    cache.load = of_a_program

    def products(a, b):
        return np.tanh(a @ b) @ b.T, a[0] @ b, a[0] @ a[1]

    def systems(a, b):
        w, v = np.linalg.eigh(a @ a.T)
        return np.linalg.solve(a, b), np.linalg.cholesky(a @ a.T), w, np.abs(np.linalg.eigvals(a))

    def draws(a, rng):
        return np.sum(a * rng.normal(size=a.shape))

    def waves(a):
        return np.abs(np.fft.fft(a[0])), np.sort(a[1]), np.exp(1j * a)

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4, 4))
    for f, args in [(products, (a, b)), (systems, (a, b)), (draws, (a, np.random.default_rng(1))), (waves, (a,))]:
        got = gs.jit(f)(*args)
        want = f(*[np.random.default_rng(1) if isinstance(x, np.random.Generator) else x for x in args])
        for x, y in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)
        found.append("|")
    assert gs.jit(lambda x: np.cumsum(np.sinh(x * SCALE)))(a[0]).shape == (4,)      # and what is new is compiled
    print(*found)
""")


@pytest.mark.slow
def test_several_in_a_second_process(tmp_path):
    """Code from the disk runs before anything has been compiled in the process."""
    told = []
    for scale in ("1.5", "2.5"):
        path = tmp_path / "program.py"
        path.write_text(SEVERAL.replace("SCALE", scale))
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True,
                              env={**os.environ, "GRADSCRIBE_CACHE": str(tmp_path / "kept")})
        told.append(done.stdout.split())
    assert told[0] == ["False", "False", "|"] * 4 + ["False"] * 2 and told[1] == ["True", "|"] * 4 + ["False"] * 2
    assert len(list((tmp_path / "kept").iterdir())) > 9


AFTER_ANOTHER = textwrap.dedent("""
    import sys
    import numpy as np
    import gradscribe as gs
    def by_numbers(x, y):
        return np.lexsort((y, x))
    def by_counts(x, k):
        return np.lexsort((k, x))
    x = np.array([0.3, -0.1, 0.3])
    if sys.argv[1] == "both":
        gs.jit(by_numbers)(x, np.array([2.0, 1.0, 0.0]))
    print(gs.jit(by_counts)(x, np.array([2, 1, 0])))
""")


@pytest.mark.slow
def test_what_was_compiled_after_another_calls_what_that_one_compiled(tmp_path):
    """A function of the runtime that both call is compiled once; the code on disk of each names what it calls."""
    file, kept = tmp_path / "program.py", str(tmp_path / "kept")
    file.write_text(AFTER_ANOTHER)
    for which in ("both", "the second"):
        done = subprocess.run([sys.executable, file, which], capture_output=True, text=True, check=True,
                              env={**os.environ, "GRADSCRIBE_CACHE": kept})
        assert done.stdout.strip() == "[1 2 0]"


def test_folder_of_others(tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("GRADSCRIBE_CACHE", str(shared))
    assert cache.folder() is None
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    monkeypatch.setenv("GRADSCRIBE_CACHE", str(link))
    assert cache.folder() is None


@pytest.mark.parametrize("word", ["off", "OFF", "0"])
def test_off(monkeypatch, word):
    monkeypatch.setenv("GRADSCRIBE_CACHE", word)
    assert cache.folder() is None


def test_key():
    kinds = [(np.dtype(float), 1)]
    keys = {
        cache.key_of("a", "f", kinds, ()),
        cache.key_of("b", "f", kinds, ()),
        cache.key_of("a", "f", [(np.dtype("f4"), 1)], ()),
        cache.key_of("a", "f", [(np.dtype(float), 2)], ()),
        cache.key_of("a", "f", kinds, {"reassoc"}),
    }
    assert len(keys) == 5


def test_oldest_go(tmp_path):
    for k in range(10):
        path = tmp_path / f"{k}.bin"
        path.write_bytes(b"x")
        os.utime(path, (k, k))
    cache.prune(tmp_path, most=8)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{k}.bin" for k in range(4, 10)]


def test_a_file_that_another_process_deletes(tmp_path):
    """It was listed and is gone when it is asked for: as a link to nothing is."""
    (tmp_path / "k.lock").symlink_to(tmp_path / "gone")
    (tmp_path / "k.bin").symlink_to(tmp_path / "gone")
    (tmp_path / "a.bin").write_bytes(b"xyz")
    (tmp_path / "folder").mkdir()
    assert [(path.name, about.st_size) for path, about in cache.files(tmp_path)] == [("a.bin", 3)]
    cache.prune(tmp_path, most=1)
    assert (tmp_path / "a.bin").exists()


def test_doctor_beside_a_process_that_deletes(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    (tmp_path / "k.lock").symlink_to(tmp_path / "gone")
    monkeypatch.setenv("GRADSCRIBE_CACHE", str(tmp_path))
    assert doctor.cached() == f"{tmp_path}: 0 files, 0.0 MB"
