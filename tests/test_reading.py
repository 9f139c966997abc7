"""What shows an emitted function: inspect, tracebacks, debuggers, profilers, repr, dumped files."""
import bdb
import inspect
import linecache
import pathlib
import re
import subprocess
import sys
import traceback

import numpy as np

import gradscribe as gs

X = np.array([0.5, 1.5])


def loss(x):
    y = np.tanh(x)
    z = y * x
    return np.sum(z / (y - x))


def failing(x, k):
    y = np.sin(x)
    return y[k] * x[0]


def test_getsource():
    df = gs.grad(loss)
    emitted = df.emitted_for(X)
    text = inspect.getsource(emitted)
    assert text.startswith("def grad_loss(x):\n") and text in df.source
    assert inspect.getsourcelines(emitted)[1] == df.source.splitlines().index("def grad_loss(x):") + 1


def test_traceback_shows_the_emitted_line():
    df = gs.grad(failing)
    df(X, 1)
    try:
        df(X, 7)
    except IndexError as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
    assert re.fullmatch(r"<gradscribe grad_failing( \d+)?>", last.filename)
    assert last.line in df.source and "[k]" in last.line


class Stepper(bdb.Bdb):
    """Steps through everything and writes down the emitted lines."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def user_line(self, frame):
        file = frame.f_code.co_filename
        if file.startswith("<gradscribe"):
            self.seen.append((linecache.getline(file, frame.f_lineno).strip(), dict(frame.f_locals)))
        self.set_step()


def test_a_debugger_steps_through_emitted_lines():
    df = gs.grad(loss)
    df(X)
    stepper = Stepper()
    stepper.runcall(df, X)
    lines = [line for line, _ in stepper.seen]
    body = [line.strip() for line in df.source.splitlines() if line.startswith("    ")]
    assert lines == [line for line in body if not line.startswith("#")]
    assert np.array_equal(stepper.seen[-1][1]["y"], np.tanh(X))        # the user's names hold the user's values


def test_a_line_profiler_sees_emitted_lines():
    df = gs.grad(loss)
    df(X)
    hits = {}

    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith("<gradscribe"):
            return None
        if event == "line":
            hits[frame.f_lineno] = hits.get(frame.f_lineno, 0) + 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        df(X)
        df(X)
    finally:
        sys.settrace(before)
    assert set(hits.values()) == {2}
    assert "return" in df.source.splitlines()[max(hits) - 1]


def test_repr():
    df = gs.grad(loss)
    assert repr(df) == "<grad_loss(x)>"
    df(X)
    df(1.5)
    assert repr(df) == "<grad_loss(x), 2 versions>"


def test_a_dumped_file_runs_without_gradscribe(tmp_path):
    df = gs.grad(loss)
    path = gs.dump(df, tmp_path / "loss_gradient.py", X)
    text = pathlib.Path(path).read_text(encoding="utf-8")
    assert set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)) <= {"numpy", "math"}
    code = ("import sys; sys.modules['gradscribe'] = None\n"
            "import loss_gradient, numpy as np\nprint(repr(loss_gradient.grad_loss(np.array([0.5, 1.5])).tolist()))")
    out = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert eval(out.stdout) == df(X).tolist()
