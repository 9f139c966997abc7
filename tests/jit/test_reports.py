# SPDX-License-Identifier: Apache-2.0
"""print, warnings.warn and loggers in compiled code: what the plain function tells, at the same places."""
import logging
import os
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

import gradscribe as gs

pytestmark = pytest.mark.compiled

log = logging.getLogger("tests.reports")
X = np.array([0.5, -1.5, 2.0])


def told(x, n):
    log.info("begins with %s, %d passes", x, n)
    s = 0.0
    for i in range(n):
        s = s + np.sum(x * x) * (i + 1)
        if i % 2 == 0:
            log.debug("pass %d: %.3f %s", i, s, (x[:2] * i, [s, "text"], {"n": n}))
    log.log(logging.WARNING, "ends with %s and %r", s, n)
    logging.error("of the root: %s", x > 0)
    return s


def records(caplog, call):
    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        result = call()
    mine = [r for r in caplog.records if r.name in ("tests.reports", "root")]
    return result, [(r.name, r.levelno, r.getMessage()) for r in mine], mine


@pytest.mark.parametrize("n", [0, 1, 4])
def test_records_are_those_of_the_plain_function(n, caplog):
    result, plain, _ = records(caplog, lambda: told(X, n))
    compiled, found, kept = records(caplog, lambda: gs.jit(told)(X, n))
    assert found == plain and len(plain) == 3 + (n + 1) // 2
    assert abs(compiled - result) < 1e-12
    assert {r.filename for r in kept} == {"test_reports.py"} and kept[0].lineno == told.__code__.co_firstlineno + 1
    assert {r.funcName for r in kept} == {"told"}


def test_records_of_a_gradient(caplog):
    plain = records(caplog, lambda: told(X, 3))[1]
    eager, of_eager, _ = records(caplog, lambda: gs.grad(told)(X, 3))
    compiled, of_compiled, _ = records(caplog, lambda: gs.jit(gs.grad(told))(X, 3))
    assert of_eager == of_compiled == plain
    step = 1e-6
    central = [(told(X + step * e, 3) - told(X - step * e, 3)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(eager, central, rtol=1e-8)
    np.testing.assert_allclose(compiled, central, rtol=1e-8)


def test_levels_are_those_of_the_time_of_the_call(caplog):
    made = gs.jit(told)
    made(X, 1)
    with caplog.at_level(logging.ERROR):
        caplog.clear()
        made(X, 1)
    assert [r.levelname for r in caplog.records if r.name in ("tests.reports", "root")] == ["ERROR"]


def test_what_a_handler_keeps_is_its_own(caplog):
    def f(x):
        y = np.zeros(20)
        for i in range(3):
            y[i] = x[i] * i
            log.warning("%s", y)
        return np.sum(y)
    with caplog.at_level(logging.DEBUG):
        gs.jit(f)(X)
    kept = [r.args[0] for r in caplog.records if r.name == "tests.reports"]
    assert [y[:3].tolist() for y in kept] == [[0, 0, 0], [0, -1.5, 0], [0, -1.5, 4.0]]


def printed(x, on):
    for k, v in enumerate(x):
        print(f"{k}: {v:.2f} {v!r:>12}", end=";")
    print()
    print(on, x.shape, x > 0, x[::2], 1j * x[0], sep=" | ")
    return x.sum()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_printed_as_by_the_plain_function(dtype, capsys):
    x = X.astype(dtype)
    printed(x, True)
    wanted = capsys.readouterr().out
    gs.jit(printed)(x, True)
    assert capsys.readouterr().out == wanted
    assert wanted.startswith("0: 0.50 ")


def test_warnings():
    def f(x):
        warnings.warn(f"of {x:.1f}", RuntimeWarning, stacklevel=1)
        return x * x
    made = gs.jit(f)
    with pytest.warns(RuntimeWarning, match=r"^of 3\.0$") as caught:
        assert made(3.0) == 9.0
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match=r"^of 4\.0$"):
            made(4.0)
    with pytest.warns(RuntimeWarning):
        assert made(5.0) == 25.0


def test_nothing_is_told_twice_before_an_exception(capsys):
    def f(x):
        print("at", x)
        assert x < 3, f"{x} is large"
        if x < 0:
            raise ValueError(f"{x} is negative")
        return x * x
    made = gs.jit(f)
    for x, error in ((5.0, AssertionError), (-1.0, ValueError)):
        with pytest.raises(error, match=f"^{x} is "):
            made(x)
        assert capsys.readouterr().out == f"at {x}\n"
    assert made(2.0) == 4.0


def collected(x):
    held, rows = [], []
    while len(held) < x[2]:
        held.append(x[0] * len(held))
        rows.append(x[:2] * len(held))
        print("now", held, rows, held[-1], len(held))
    return np.sum(np.array(held)) + rows[-1][0]


def test_lists_whose_length_is_known_only_when_running(capsys):
    collected(X)
    wanted = capsys.readouterr().out
    for f in (gs.grad(collected), gs.jit(collected), gs.jit(gs.grad(collected))):
        f(X)
        assert capsys.readouterr().out == wanted


def test_for_each_example(capsys):
    def f(x):
        if x > 0:
            print("positive:", x)
        return x * x
    np.testing.assert_array_equal(gs.jit(gs.vmap(f))(X), X * X)
    assert capsys.readouterr().out == "positive: 0.5\npositive: 2.0\n"


PROGRAM = textwrap.dedent("""
    import logging, sys
    import numpy as np
    import gradscribe as gs
    logging.basicConfig(format="%(name)s: %(message)s", stream=sys.stdout)
    def maker(log):
        def f(x):
            log.warning("the sum of %s is %s", x, np.sum(x))
            return np.sum(x)
        return gs.jit(f)
    one, two = maker(logging.getLogger("one")), maker(logging.getLogger("two"))
    two(np.ones(2)), one(np.zeros(2)), two(np.ones(3))
""")


@pytest.mark.slow
def test_code_from_the_disk_tells_whom_it_is_to(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    for _ in range(2):
        done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, check=True,
                              env={**os.environ, "GRADSCRIBE_CACHE": str(tmp_path / "cache")})
        assert done.stdout.splitlines() == ["two: the sum of [1. 1.] is 2.0", "one: the sum of [0. 0.] is 0.0",
                                            "two: the sum of [1. 1. 1.] is 3.0"]
