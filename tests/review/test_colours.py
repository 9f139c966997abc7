"""`print(f.source)` in a terminal, and everywhere else."""
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import gradscribe as gs
from gradscribe.colours import in_colours

pytest.importorskip("pygments")
ROOT = Path(__file__).resolve().parent.parent.parent
FIRST = """import gradscribe as gs
text = gs.grad(lambda x: x ** 3).source
"""
PLAIN = gs.grad(lambda x: x ** 3).source
KEYWORD, NUMBER, COMMENT, END = "\x1b[35m", "\x1b[36m", "\x1b[90m", "\x1b[0m"


def printed(code, tmp_path, terminal=True, **environment):
    """What a program writes to its standard output, a terminal or a pipe."""
    file = tmp_path / "program.py"
    file.write_text(FIRST + code, encoding="utf-8")
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    env = {**kept, "TERM": "xterm", "PYTHONPATH": str(ROOT), **environment}
    if not terminal:
        return subprocess.run([sys.executable, file], env=env, capture_output=True, text=True, check=True).stdout
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, file], env=env, stdout=theirs, stdin=theirs, cwd=tmp_path) as program:
        os.close(theirs)
        out = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:             # the other end is closed
                break
            if not part:
                break
            out += part
        assert program.wait(60) == 0
    os.close(ours)
    return out.decode().replace("\r\n", "\n")


def test_a_terminal_shows_colours(tmp_path):
    assert printed("print(text)", tmp_path).splitlines() == [
        f"{COMMENT}# x: float{END}", f"{KEYWORD}import{END} numpy {KEYWORD}as{END} np", "", "",
        f"{KEYWORD}def{END} grad_lambda(x):",
        f"    {KEYWORD}return{END} {NUMBER}3{END} * x ** {NUMBER}2{END}", ""]


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=lambda e: next(iter(e)))
def test_not_where_no_colours_are_wanted(environment, tmp_path):
    assert printed("print(text)", tmp_path, **environment) == PLAIN + "\n"


def test_a_pipe_gets_plain_text(tmp_path):
    assert printed("print(text)", tmp_path, terminal=False) == PLAIN + "\n"


@pytest.mark.parametrize("code", [
    "print(text, file=open('other', 'w'))\nprint(open('other').read(), end='')",
    "print(str(text))", "print(f'{text}')", "print('%s' % text)", "print(*[str(text)])",
    "import sys; sys.stdout.write(text + '\\n')",
    "import logging; logging.basicConfig(stream=__import__('sys').stdout, format='%(message)s'); logging.error(text)",
    "import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()) as out:\n    print(text)\n"
    "print(out.getvalue(), end='')",
    "from builtins import print as say\ndef print(words): say(str(words))\nprint(text)",
], ids=["file", "str", "format", "percent", "star", "write", "log", "redirected", "another print"])
def test_only_print_to_the_terminal_is_coloured(code, tmp_path):
    """A file that was written while a terminal was there has no escapes."""
    assert printed(code, tmp_path) == PLAIN + "\n"


def test_in_other_words(tmp_path):
    """In a function, over several lines, with others."""
    out = printed("def show():\n    print(\n        'the gradient:',\n        text,\n    )\nshow()", tmp_path)
    assert out == f"the gradient: {in_colours(PLAIN)}\n" and KEYWORD in out


def test_it_is_a_str_like_any_other():
    text = gs.grad(lambda x: x ** 3).source
    assert text == PLAIN and hash(text) == hash(str(PLAIN)) and repr(text) == repr(str(PLAIN))
    assert type(pickle.loads(pickle.dumps(text))) is str and type(str(text)) is str
    assert compile(text, "<emitted>", "exec").co_names == ("numpy", "np", "grad_lambda")
