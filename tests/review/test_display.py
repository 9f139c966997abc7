"""The user's text and the emitted one side by side: which lines are tied, and what a browser makes of it."""
import html.parser
import shutil

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.display import side_by_side

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def helper(a):
    return np.sin(a) * a


def f(x, n):
    y = helper(x)
    for _ in range(n):
        if y > 0.5:
            y = y * x   # <scaled> & "quoted"
        else:
            y = y - x
    return y * 2


class Lines(html.parser.HTMLParser):
    """(text, tie) of each line of a page."""

    def __init__(self, text):
        super().__init__()
        self.lines, self.open, self.other = [], False, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "code":
            self.lines.append(["", dict(attrs).get("data-from")])
            self.open = True
        self.other.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        self.open = self.open and tag != "code"

    def handle_data(self, data):
        if self.open:
            self.lines[-1][0] += data


def tied(page, text):
    """The lines of a page that light up with one."""
    lines = Lines(page).lines
    ties = next(set(t.split()) for line, t in lines if line.strip() == text)
    return [line.strip() for line, t in lines if t and ties & set(t.split())]


def page(**words):
    g = gs.grad(f)
    g(0.3, 4)
    return side_by_side(g, **words)


def test_lines_are_tied():
    choice = "y = y * x if y > 0.5 else y - x"
    assert tied(page(), "y = y - x") == ["y = y - x", choice, "# y = y - x", "dx -= dy"]
    assert tied(page(), "return np.sin(a) * a") == ["return np.sin(a) * a", "sin_a = np.sin(x)", "y = sin_a * x",
                                                    "return dy * x * np.cos(x) + dy * sin_a + dx"]


def test_the_whole_text_is_there():
    """Also without scripts, styles and colours."""
    lines = [line for line, _ in Lines(page()).lines]
    g = gs.grad(f)
    g(0.3, 4)
    emitted = [line or " " for line in g.source.rstrip("\n").splitlines()]
    assert lines[-len(emitted):] == emitted
    assert "            y = y * x   # <scaled> & \"quoted\"" in lines and "def helper(a):" in lines


def test_nothing_is_loaded():
    for tag, attrs in Lines(page()).other:
        assert not {"src", "href"} & attrs.keys(), tag
    assert "http" not in page()


def test_what_a_notebook_shows():
    g = gs.grad(f)
    assert g._repr_html_() is None
    g(0.3, 4)
    assert "data-from" in g._repr_html_()
    assert gs.jit(f)._repr_html_() is None


def test_source_map():
    g = gs.grad(f)
    found = gs.source_map(g, 0.3, 4)
    lines = g.source_for(0.3, 4).splitlines()
    start = f.__code__.co_firstlineno
    assert [lines[k - 1].strip() for k in found.emitted(start + 6, __file__)] == [
        "y = y * x if y > 0.5 else y - x", "# y = y - x", "dx -= dy"]
    assert found[lines.index("    y = sin_a * x") + 1] == [(__file__, helper.__code__.co_firstlineno + 1, "helper")]
    assert found[1] == []


@pytest.mark.parametrize("fn", [f, gs.grad(f), gs.jit(f)], ids=["plain", "not called", "compiled"])
def test_refusals(fn):
    if isinstance(fn, type(gs.jit(f))):
        fn(0.3, 4)
    with pytest.raises(gs.KindError):
        gs.source_map(fn)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
@pytest.mark.parametrize("theme, lit", [("light", (255, 243, 191)), ("dark", (69, 58, 9))])
def test_in_a_browser(theme, lit, tmp_path):
    """A hovered line lights up with those it went to, in the theme's colour."""
    playwright = pytest.importorskip("playwright.sync_api")
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{page(theme=theme)}", encoding="utf-8")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1000, "height": 600})
        view.goto(file.as_uri())
        assert view.locator("code.on").count() == 0
        view.hover("text=else: >> nth=0")
        view.hover("text=y = y - x >> nth=0")
        lines = [t.strip() for t in view.locator("code.on").all_text_contents()]
        assert lines == ["y = y - x", "y = y * x if y > 0.5 else y - x", "# y = y - x", "dx -= dy"]
        colour = view.locator("code.on").first.evaluate("e => getComputedStyle(e).backgroundColor")
        assert colour == f"rgb{lit}"
        view.locator("text=y = y - x >> nth=0").click()
        view.mouse.move(990, 590)
        assert view.locator("code.on").count() == 4         # held by the click
        view.screenshot(path=tmp_path / f"{theme}.png")
        assert (tmp_path / f"{theme}.png").stat().st_size > 5000
        browser.close()
