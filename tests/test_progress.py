"""What takes long says so; Ctrl-C leaves nothing half done."""
import io
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gradscribe as gs
from gradscribe import making, progress
from gradscribe.ast_transform.reader import dispatch
from gradscribe.codegen import cache, jit_cpu
from gradscribe.codegen.interrupts import stopped_cleanly

pytestmark = pytest.mark.compiled

ROOT = Path(__file__).resolve().parent.parent
X = np.array([0.5, 1.5, 2.5])


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def at_once(monkeypatch):
    """A line is due at once."""
    monkeypatch.setattr(progress, "AFTER", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.01)
    monkeypatch.delenv("GRADSCRIBE_PROGRESS", raising=False)


def written(monkeypatch, stream, call):
    monkeypatch.setattr(sys, "stderr", stream)
    call()
    return stream.getvalue()


def new():
    def loss(x):
        y = np.sin(x) * np.exp(x)
        return np.sum(y * y)
    return loss


def test_a_line_on_a_terminal(monkeypatch, at_once):
    text = written(monkeypatch, Terminal(), lambda: gs.grad(new())(X))
    assert text.count("\n") == 1                                # one line, written over itself
    assert "\rgradscribe: transforming grad_loss: " in text
    assert text.rstrip().split("\r")[-1].strip().endswith(" statements, 0 s")


def test_a_line_without_tqdm(monkeypatch, at_once):
    monkeypatch.setitem(sys.modules, "tqdm", None)              # importing it fails
    text = written(monkeypatch, Terminal(), lambda: gs.grad(new())(X))
    assert text.count("\n") == 1
    assert text.startswith("\rgradscribe: transforming grad_loss: ")


def test_compiling(monkeypatch, at_once):
    monkeypatch.setenv("GRADSCRIBE_CACHE", "off")
    text = written(monkeypatch, Terminal(), lambda: gs.jit(new())(X))
    assert text.count("\n") == 2
    assert "gradscribe: transforming loss: " in text
    assert "gradscribe: compiling loss: 5 statements, " in text             # sin, exp, two products, a sum


def test_nothing_elsewhere(monkeypatch, at_once):
    assert written(monkeypatch, io.StringIO(), lambda: gs.grad(new())(X)) == ""
    monkeypatch.setenv("GRADSCRIBE_PROGRESS", "off")
    assert written(monkeypatch, Terminal(), lambda: gs.grad(new())(X)) == ""


def test_nothing_of_what_is_quick(monkeypatch):
    assert written(monkeypatch, Terminal(), lambda: gs.grad(new())(X)) == ""


def test_nothing_without_a_stream(monkeypatch, at_once):
    monkeypatch.setattr(sys, "stderr", None)
    assert gs.grad(lambda x: x * x)(3.0) == 6.0


def test_the_logger(monkeypatch, at_once, caplog):
    """It is told where no line is written, too."""
    monkeypatch.setenv("GRADSCRIBE_PROGRESS", "off")
    with caplog.at_level(logging.INFO, logger="gradscribe"):
        gs.grad(new())(X)
    first, last = [r.message for r in caplog.records if r.levelno == logging.INFO]
    assert first.startswith("transforming grad_loss: ")
    assert first.endswith(" so far")
    assert last.startswith("transforming grad_loss: ")
    assert last.endswith(", ended")


def test_no_thread_is_left(monkeypatch, at_once):
    written(monkeypatch, Terminal(), lambda: gs.grad(new())(X))
    assert not [t for t in threading.enumerate() if t.name == "gradscribe progress"]


def test_errors_pass(monkeypatch, at_once):
    with pytest.raises(gs.RuleError):
        written(monkeypatch, Terminal(), lambda: gs.grad(lambda x: open(x))(1.0))
    assert gs.grad(lambda x: x * x)(3.0) == 6.0


# Ctrl-C

def interrupted_once(monkeypatch, holder, name):
    """KeyboardInterrupt where this function is called for the first time."""
    before, calls = holder[name] if isinstance(holder, dict) else getattr(holder, name), []

    def now(*args, **kwargs):
        calls.append(name)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return before(*args, **kwargs)
    (monkeypatch.setitem if isinstance(holder, dict) else monkeypatch.setattr)(holder, name, now)


@pytest.mark.parametrize("holder, name", [
    (dispatch.EVALUATE, "BinOp"), (cache, "key_of"), (jit_cpu, "_put"), (jit_cpu, "compiled_and_kept"),
    (cache, "save"), (cache.os, "replace"), (cache, "prune"),
], ids=lambda v: v if isinstance(v, str) else "")
def test_an_interrupted_call_and_the_next(monkeypatch, tmp_path, holder, name):
    monkeypatch.setenv("GRADSCRIBE_CACHE", str(tmp_path / "cache"))
    f = gs.jit(gs.grad(new()))
    interrupted_once(monkeypatch, holder, name)
    with pytest.raises(KeyboardInterrupt):
        f(X)
    folder = tmp_path / "cache"
    assert not [p for p in folder.glob("*") if p.suffix != ".bin"]
    assert all(cache.entry_of(p.stem) is not None for p in folder.glob("*.bin"))
    y = np.sin(X) * np.exp(X)
    np.testing.assert_allclose(f(X), 2 * y * (np.sin(X) + np.cos(X)) * np.exp(X), rtol=1e-13)
    assert len(list(folder.glob("*.bin"))) >= 1


def test_an_interrupted_call_in_a_thread_of_its_own(monkeypatch):
    """What needs a large stack is made in another thread, which ends with the call."""
    begun = threading.Event()

    def long(*args):
        begun.set()
        while True:
            time.sleep(0.001)

    def join(self, timeout=None, joined=threading.Thread.join):
        if self.name == "gradscribe" and not hasattr(self, "was_interrupted"):
            self.was_interrupted = begun.wait(60)
            raise KeyboardInterrupt
        joined(self, timeout)
    monkeypatch.setattr(threading.Thread, "join", join)
    with pytest.raises(KeyboardInterrupt):
        making._with_room(long, (), {})
    assert not [t for t in threading.enumerate() if t.name == "gradscribe"]
    assert gs.grad(lambda x: x * x)(3.0) == 6.0


def amid_something(module, then):
    """A call inside a function of another module."""
    space = {"__name__": module, "then": then}
    exec("def inner():\n    return then()", space)
    return space["inner"]()


@pytest.mark.parametrize("module", ["llvmlite.binding.ffi", "numba.core.codegen", "importlib._bootstrap"])
def test_what_is_done_as_a_whole(module):
    done = []

    def stop():
        signal.raise_signal(signal.SIGINT)
        done.append("the rest")
    with pytest.raises(KeyboardInterrupt), stopped_cleanly():
        amid_something(module, stop)
    assert done == ["the rest"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_need_not_be_done_as_a_whole():
    done = []

    def stop():
        signal.raise_signal(signal.SIGINT)
        done.append("the rest")
    with pytest.raises(KeyboardInterrupt), stopped_cleanly():
        amid_something("numba.core.typeinfer", stop)
    assert not done


def test_it_is_tried_again():
    """What comes amid something stops a moment later, not at the end."""
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt), stopped_cleanly():
        amid_something("llvmlite.binding.ffi", lambda: signal.raise_signal(signal.SIGINT))
        while time.perf_counter() < begin + 60:
            time.sleep(0.001)
    assert time.perf_counter() < begin + 30


INTERRUPTED = textwrap.dedent("""
    import _thread, sys, threading, time
    import numpy as np
    import gradscribe as gs

    def loss(W, x):
        y = x
        for k in range(3):
            y = np.tanh(np.linalg.solve(W, y)) + y
        return np.sum(y ** 2)

    W, x = np.eye(4) + 0.1, np.ones(4)
    want = gs.grad(loss)(W, x)
    f, stopped = gs.jit(gs.grad(loss)), 0
    for delay in (0.05, 0.3, 0.7, 1.1):
        threading.Timer(delay, _thread.interrupt_main).start()
        try:
            f(W, x)
            time.sleep(delay + 1)
        except KeyboardInterrupt:
            stopped += 1
    print(stopped > 0, np.allclose(f(W, x), want))
""")


@pytest.mark.slow
def test_ctrl_c_at_any_time(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(INTERRUPTED)
    folder = tmp_path / "cache"
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=250, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "GRADSCRIBE_CACHE": str(folder)})
    assert done.stdout == "True True\n", done.stderr
    assert {p.suffix for p in folder.iterdir()} == {".bin"}


@pytest.mark.slow
def test_a_real_terminal(tmp_path):
    """A program whose stderr is a terminal."""
    pty = pytest.importorskip("pty")
    file = tmp_path / "program.py"
    file.write_text("import numpy as np\nimport gradscribe as gs\nfrom gradscribe import progress\n"
                    "progress.AFTER = 0.0\ndef loss(x):\n    return np.sum(np.sin(x))\n"
                    "print(gs.grad(loss)(np.zeros(2)))\n")
    master, end = pty.openpty()
    done = subprocess.run([sys.executable, file], stdout=subprocess.PIPE, stderr=end, text=True, timeout=100,
                          check=True, env={**os.environ, "PYTHONPATH": str(ROOT), "GRADSCRIBE_PROGRESS": ""})
    os.close(end)
    said = os.read(master, 10_000).decode()
    os.close(master)
    assert done.stdout == "[1. 1.]\n"
    assert "gradscribe: transforming grad_loss" in said
