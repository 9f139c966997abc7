"""The way back of a batch is one thread an example, as the way there is."""
import re

import numpy as np
import pytest
from device.batches import BATCHES

import gradscribe as gs
from gradscribe.codegen.cuda.lists import handed_on
from gradscribe.runtime import device as backends


@pytest.mark.parametrize("name", [n for n in BATCHES if n != "batch of inner loops"])
def test_no_loops_of_the_host(name):
    function, args = BATCHES[name]
    with backends.using("plain"):
        compiled = gs.jit(function, target="cuda")
        compiled(*args)
    host = compiled.lowered.split("\ndef ")[-1]
    assert not re.findall(r"^\s+(?:for|while) .*", host, re.M)


@pytest.mark.golden
def test_text(golden):
    function, args = BATCHES["batch of newtons"]
    with backends.using("plain"):
        compiled = gs.jit(function, target="cuda")
        compiled(*args)
    golden("batch_of_newtons.py", compiled.lowered)


TEXT = """
kept = []
for b in range(n):
    saved = []
    saved.append(a[b])
    kept.append(saved)
for b in range(n - 1, -1, -1):
    mine = kept.pop()
    while len(mine) > 0:
        a[b] += mine.pop()
"""


@pytest.mark.parametrize("change", [
    ("for b in range(n):", "for b in range(m):"),                  # of another length
    ("range(n - 1, -1, -1)", "range(n)"),                           # the last list is the first pass's
    ("    kept.append(saved)", "    if b: kept.append(saved)"),     # not in each pass
    ("    saved = []", "    saved = other"),
    ("kept = []\n", "kept = list(given)\n"),
    ("    mine = kept.pop()", "    if b: mine = kept.pop()"),
    ("mine.pop()", "mine.pop(0)\n        again = mine"),            # has another name
    ("    while len", "    print(len(kept))\n    while len"),
    (TEXT, TEXT + "x = kept\n")])
def test_other_uses_stay(change):
    import ast
    assert change[0] in TEXT
    body = ast.parse(TEXT).body
    assert len(handed_on(body[1], body, lambda name: name)) == 1
    body = ast.parse(TEXT.replace(*change)).body
    assert not handed_on(body[1], body, lambda name: name)


def test_numbers_of_a_batch():
    """Against the gradient of each example by itself."""
    function, args = BATCHES["batch of orbits"]
    with backends.using("plain"):
        dx = gs.jit(function, target="cuda")(*args)
    for k in range(0, 60, 7):
        np.testing.assert_allclose(dx[k], function(args[0][k:k + 1], 2.0)[0], rtol=1e-12)
