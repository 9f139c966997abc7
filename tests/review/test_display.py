"""The user's text and the emitted one side by side: which lines are tied, and what a browser makes of it."""
import html.parser
import inspect
import re
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
                                                    "return dy * (x * np.cos(x) + sin_a) + dx"]


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


def test_lines_have_their_numbers_and_folds():
    """The user's are those of the file; what can be folded has a mark."""
    raw = page()
    start = f.__code__.co_firstlineno
    assert f'data-n="{start}"' in raw and f'data-n="{start + 7}"' in raw
    assert re.findall(r'data-n="(\d+)"><i></i>', raw)[:4] == [str(start + k) for k in (0, 2, 3, 5)]


def long(w, x, steps):
    """Eighty lines, one of them wide."""
    total = 0.0
    for k in range(steps):
        total += np.sum(np.tanh(w * x) * np.exp(-0.1 * k)) + np.sum(np.cos(w - x) ** 2) * np.sin(0.25 * k) + np.sum(w)
    return total


LINES = "".join(f"    y{k} = np.sin({'total' if k == 0 else f'y{k - 1}'} * {k}.5)\n" for k in range(75))


@pytest.fixture
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no browser")
    with playwright.sync_playwright() as p:
        made = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def eighty(tmp_path):
    """The display of a function of eighty lines, as a notebook's output has it."""
    file = tmp_path / "eighty.py"
    text = inspect.getsource(long).replace("    return total\n", LINES + "    return y74\n")
    file.write_text(text, encoding="utf-8")
    space = {"np": np}
    exec(compile(text, str(file), "exec"), space)
    gradient = gs.grad(space["long"])
    gradient(np.ones(3), np.ones(3), 4)
    return gradient._repr_html_()


def shown(browser, tmp_path, text, body="", width=1000, **words):
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body {body}>{text}", encoding="utf-8")
    view = browser.new_page(viewport={"width": width, "height": 700}, **words)
    view.goto(file.as_uri())
    return view


@pytest.mark.slow
def test_one_scroll_side_by_side(browser, tmp_path, eighty):
    """However long and wide the texts are: each has half of the width, and the box is no taller than the window."""
    view = shown(browser, tmp_path, eighty)
    left, right = [section.bounding_box() for section in view.locator(".gs section").all()]
    assert left["y"] == right["y"] and abs(left["width"] - right["width"]) < 2 and right["x"] > left["width"]
    box = view.locator(".gs > div").evaluate("e => [e.clientHeight, e.scrollHeight, e.scrollWidth - e.clientWidth]")
    assert box[0] <= 0.8 * 700 < box[1] and box[2] == 0
    sides = view.locator(".gs section").evaluate_all("es => es.map(e => [e.scrollWidth > e.clientWidth, "
                                                     "e.scrollHeight - e.clientHeight])")
    assert sides[0][0] and sides[1][0] and max(y for _, y in sides) <= 0
    assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")
    narrow = shown(browser, tmp_path, eighty, width=420)
    above, below = [section.bounding_box() for section in narrow.locator(".gs section").all()]
    assert above["x"] == below["x"] and below["y"] > above["y"] + above["height"]
    assert narrow.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_a_click_goes_to_the_other_text(browser, tmp_path, eighty):
    view = shown(browser, tmp_path, eighty)
    box = view.locator(".gs > div")
    line = view.locator(".gs section >> nth=0").locator("code", has_text="y3 = np.sin")
    line.click()
    assert box.evaluate("e => e.scrollTop") > 1000              # to its adjoint, far below
    seen = [c.inner_text().strip() for c in view.locator("section >> nth=1").locator("code.on").all()
            if box.bounding_box()["y"] < c.bounding_box()["y"] < box.bounding_box()["y"] + box.bounding_box()["height"]]
    assert any("dy" in text or "# y3 = np.sin" in text for text in seen)


@pytest.mark.slow
def test_lines_fold(browser, tmp_path):
    view = shown(browser, tmp_path, page())
    left = view.locator(".gs section >> nth=0").locator("pre >> nth=0")
    assert left.locator("code:visible").count() == 8
    left.locator("i").nth(2).click()                            # the `if`
    assert left.locator("code:visible").count() == 7
    left.locator("i").nth(1).click()                            # the loop around it
    assert left.locator("code:visible").count() == 4
    left.locator("i").nth(1).click()
    assert left.locator("code:visible").count() == 7            # the `if` is still folded
    assert left.locator("code.shut").all_text_contents() == ["        if y > 0.5:"]


DARK, LIGHT = "rgb(13, 17, 23)", "rgb(255, 255, 255)"


@pytest.mark.slow
@pytest.mark.parametrize("body, system, ground", [
    ("", "light", LIGHT), ("", "dark", DARK),
    ('data-jp-theme-light="true"', "dark", LIGHT), ('data-jp-theme-light="false"', "light", DARK),
    ('class="vscode-light"', "dark", LIGHT), ('class="vscode-dark"', "light", DARK),
    ('class="vscode-high-contrast"', "light", DARK),
    ('class="vscode-high-contrast vscode-high-contrast-light"', "dark", LIGHT),
    ('data-theme="light"', "dark", LIGHT), ('data-theme="dark"', "light", DARK), ('data-theme="auto"', "dark", DARK)])
def test_themes(body, system, ground, browser, tmp_path):
    """A page that says which theme it has decides, whatever the system says."""
    view = shown(browser, tmp_path, page(), body, color_scheme=system)
    assert view.locator(".gs").evaluate("e => getComputedStyle(e).backgroundColor") == ground
    forced = shown(browser, tmp_path, page(theme="dark"), body, color_scheme=system)
    assert forced.locator(".gs").evaluate("e => getComputedStyle(e).backgroundColor") == DARK


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
