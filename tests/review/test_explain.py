"""What explain tells: differences, arguments without influence, bytes that are kept."""
import numpy as np
import pytest

import gradscribe as gs


def several(w, b, x, level, k, unused, like):
    s = 0.0
    for i in range(x.shape[0]):
        z = np.tanh(w * x[i] + b)
        if z + s > level:
            s = s + z * z
    return s + np.floor(k) + np.sum(np.zeros_like(like))


def net(params, x, y):
    h = x
    for W, b in params:
        h = np.tanh(h @ W + b)
    return np.mean((h - y) ** 2)


ARGS = 0.3, 0.1, np.linspace(0, 1, 5), 0.2, 1.5, 2.5, np.ones(3)


def test_arguments_that_never_matter():
    assert gs.explain(several, *ARGS).unused == {
        "level": "it is only compared", "k": "it is only given to floor, which is constant in pieces",
        "unused": "it is not read", "like": "only its shape is read"}


def test_what_is_kept():
    assert gs.explain(several, *ARGS).saved == {"test_z_saved": 5}
    rng = np.random.default_rng(0)
    params = [(rng.normal(size=(3, 4)), rng.normal(size=4)), (rng.normal(size=(4, 2)), rng.normal(size=2))]
    found = gs.explain(net, params, rng.normal(size=(7, 3)), rng.normal(size=(7, 2)))
    assert found.saved == {"h_saved": 7 * 4 * 8, "h": 7 * 2 * 8}        # the first h is the argument
    assert found.bytes_saved == 336 and not found.unused


def test_differences_agree():
    for _, exact, near in gs.explain(several, *ARGS).differences:
        assert abs(exact - near) < 1e-8


def test_arguments_stay_as_they_are():
    def f(x):
        x[0] = x[1] * 2
        return np.sum(x * x)
    x = np.array([1.0, 2.0, 3.0])
    gs.explain(f, x)
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_as_text_and_as_html():
    found = gs.explain(several, *ARGS)
    text = str(found)
    assert text.startswith("def several(") and "def grad_several(" in text and "kept for the backward sweep: 5" in text
    assert "data-from" in found._repr_html_() and "it is only compared" in found._repr_html_()


@pytest.mark.parametrize("f, args", [(gs.grad(net), (1.0,)), (lambda n: n * n, (3,))], ids=["transformed", "integers"])
def test_refusals(f, args):
    with pytest.raises(gs.KindError):
        gs.explain(f, *args)


def test_cell_magic():
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    gs.load_ipython_extension(shell)
    shell.run_cell("import numpy as np")
    cell = "def cubes(x, y):\n    z = x ** 3\n    return np.sum(z * y)\n"
    shown = shell.run_cell_magic("gradscribe", '--grad x,y --args "float64[n], float64[n]"', cell)
    assert "dy = " in repr(shown) or "return" in repr(shown)
    page = shown._repr_html_()
    assert page.count("<code data-from=") >= 4 and "cubes" in page
    with pytest.raises(gs.KindError):
        shell.find_cell_magic("gradscribe")("", "x = 1\n")
