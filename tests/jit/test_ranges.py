"""Value ranges: what is proved of whole numbers, and what must not be, since a name has another value there."""
import pytest

from gradscribe.codegen.loops.analysis.ranges import Ranges
from gradscribe.codegen.loops.form import Function, statements
from gradscribe.codegen.loops.trees import block_of


def proved(text, least=0):
    """Whether `a`, the last number that a text sets, is at least a number."""
    block = block_of(text)
    last = [s for s in statements(block) if getattr(s, "name", "") == "a"][-1]
    return Ranges(Function("f", ["n", "x"], {}, block)).at_least(last.value, least, last)


@pytest.mark.parametrize("text", [
    "for i in range(n):\n    t = i + 1\n    a = n - t",
    "for i in range(n):\n    a = n - i - 1",
    "m = x.shape[0]\nfor i in range(m):\n    t = min(i + 1, n)\n    a = m - t",
    "m = max(n, 0)\na = m",
    "t = n - 2\nm = len(range(t, -1, -1))\nfor k in range(m):\n    i = t - k\n    a = i",
    # no array is made with a length below 0
    "m = n - 3\ny = np.empty((m, 2), np.float64)\na = m",
    "m = n - 3\nis_length(m)\na = m + 2",
    "m = n - 3\ny = np.empty((m,), np.float64)\nfor i in range(2):\n    a = i + 2 * m",
    "m = n - 3\nif n > 2:\n    y = np.empty((m,), np.float64)\n    for i in range(2):\n        a = m",
    # quotients round down
    "m = x.shape[0]\na = m - m // 2",
    "m = x.shape[0]\nt = m - 2\nq = t // 2\na = q + 1",
    "m = x.shape[0]\nq = -m // 2\na = -q",
    "m = x.shape[0]\nq = (4 * m + 6) // 2\na = q - 2 * m - 3",
    "m = x.shape[0]\nk = x.shape[1]\nt = max((-(-m // 2) - 1) * 2 + k - m, 0)\np = t + m\na = ((p - k) // 2 + 1) * 2",
])
def test_what_is_certain(text):
    assert proved(text)


@pytest.mark.parametrize("text", [
    "a = n",
    "for i in range(n):\n    a = n - i - 2",
    "k = 20\nfor i in range(n):\n    t = k + 3\n    k = k - 10\n    a = k - t + 15",  # k is another
    "t = 0\nfor i in range(n):\n    u = t + 1\n    t = (i * 7) % 5\n    a = u - t",   # of the pass before
    "y = x\nm = y.shape[0]\ny = y[1:]\na = y.shape[0] - m",  # y is another
    "for i in range(n):\n    if i > 2:\n        t = i + 1\n    a = t - 1",  # of before
    "for i in range(n):\n    n = 2\n    a = n - i",  # another n
    "m = max(n, 0)\nfor i in range(m):\n    a = n - i",
    "m = min(n, 0)\na = m",
    "m = n - 3\na = m\ny = np.empty((m,), np.float64)",     # made afterwards
    "m = n - 3\nif n > 2:\n    y = np.empty((m,), np.float64)\na = m",     # perhaps
    "m = n - 3\nfor i in range(n):\n    m = m + 1\n    y = np.empty((m,), np.float64)\n    m = m - 9\n    a = m",
    "m = n - 3\nif n > 2:\n    y = np.empty((m,), np.float64)\nelse:\n    a = m",     # in the other arm
    "m = n - 3\ny = np.empty((m,), np.float64)\na = m - 1",
    "m = n - 3\ny = np.empty((m,), np.float64)\na = 4 - m",
    "m = x.shape[0]\nt = m - 3\nq = t // 2\na = q + 1",
    "m = x.shape[0]\nq = m // 2\na = 2 * q - m",
    "m = x.shape[0]\nq = -m // 2\na = q + m",
])
def test_what_is_not(text):
    assert not proved(text)
