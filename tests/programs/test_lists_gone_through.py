# SPDX-License-Identifier: Apache-2.0
"""Lists of unknown length that change while a loop goes through them, or before an iterator of theirs is read.

Python's iterators read a list as it is in each pass: such programs are right or refused, however the loop is spelled.
"""
import linecache

import numpy as np
import pytest

import gradscribe as gs

B = np.arange(1.0, 5.0)
BEGIN = """def f(b):
    e, s = [], 0.0
    for i in range(b.shape[0]):
        e.append(b * i)
"""
END = """    return s + np.sum(e)
"""
OVER = {
    "itself": "v in e", "zip": "v, _ in zip(e, e)", "zip with a range": "v, _ in zip(e, range(9))",
    "zip with an array": "v, _ in zip(e, np.sin(b))", "enumerate": "_, v in enumerate(e)",
    "reversed": "v in reversed(e)", "iter": "v in iter(e)", "map": "v in map(np.sin, e)",
    "a generator": "v in (np.sin(r) for r in e)", "a generator by places": "v in (e[k] for k in range(2))",
    "filter": "v in filter(lambda w: True, e)", "enumerate of zip": "_, (v, w) in enumerate(zip(e, e[1:]))",
    "another name": "v in d['k']", "its slice": "v in e[1:]", "a copy": "v in list(e)", "an array": "v in np.array(e)",
    "sorted": "v in sorted(e, key=np.sum)", "a function's": "v, _ in zip((lambda w: w)(e), e)",
}
CHANGES = {
    "append": "e.append(b)", "pop": "e.pop()", "pop the first": "e.pop(0)", "insert": "e.insert(0, b)",
    "reverse": "e.reverse()", "extend": "e.extend([b, b])", "+=": "e += [b]", "the last": "e[-1] = b * 5",
    "the first": "e[0] = b * 5", "in a function": "change()",
}


def program(text):
    file = f"<lists {abs(hash(text))}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"np": np, "__name__": "lists"}
    exec(compile(text, file, "exec"), space)
    return space["f"]


def before(over, change):
    return ("    d = {'k': e}\n" if over == "another name" else "") + (
        "    def change():\n        e.pop()\n" if change == "in a function" else "")


def right_or_refused(f, transform=gs.grad):
    wanted = [(f(B + 1e-6 * v) - f(B - 1e-6 * v)) / 2e-6 for v in np.eye(4)]
    try:
        found = transform(f)(B)
    except gs.TransformError:
        return False
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)
    return True


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("over", OVER)
def test_changed_in_the_loop(over, change):
    text = f"""{BEGIN}{before(over, change)}
    for {OVER[over]}:
        if len(e) < 9 and len(e) > 1:
            {CHANGES[change]}
        s = s + np.sum(v ** 2)
{END}"""
    right = right_or_refused(program(text))
    assert right or over not in ("a copy", "an array", "sorted")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("over", OVER)
def test_changed_before_the_loop(over, change):
    target, made = OVER[over].split(" in ", 1)
    text = f"""{BEGIN}{before(over, change)}
    made = {made}
    {CHANGES[change]}
    for {target} in made:
        s = s + np.sum(v ** 2)
{END}"""
    right = right_or_refused(program(text))
    assert right or over not in ("itself", "a copy", "an array", "sorted", "its slice", "another name")


@pytest.mark.parametrize("body", ["for k, v in enumerate(e):\n        e[k] = v * 2",
                                  "for k, (v, w) in enumerate(zip(e, b)):\n        e[k] = v * w",
                                  "for k in range(len(e)):\n        e[k] = e[k] * e[k]",
                                  "made = map(np.sin, e)\n    s = sum(v[0] for v in made)\n    e = [v * 2 for v in e]",
                                  "for v in e[:]:\n        e.append(v)",
                                  "for v in [*e]:\n        e.pop()"])
@pytest.mark.parametrize("compiled", [False, True])
def test_what_python_reads_first_is_differentiated(body, compiled):
    f = program(f"{BEGIN}    {body}\n{END}")
    assert right_or_refused(f, (lambda f: gs.jit(gs.grad(f))) if compiled else gs.grad)
