"""What each notebook shows, in a browser: its plots, its drawings, its texts side by side."""
import ast
import io
import json
import linecache
import shutil
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb"))
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SHOWN = {                           # how many figures, and how many pages or drawings of our own
    "01_derivative_programs": (0, 1), "02_a_network_twice": (2, 1), "03_batches": (1, 0),
    "04_how_the_compiler_works": (0, 1), "05_speed": (2, 0), "06_fitting_a_simulator": (2, 0),
}


def shown(path):
    """(figures, pages): what a reader of an executed notebook sees, as SVG and HTML."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    namespace, figures, pages = {"__name__": "__main__"}, [], []
    for k, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        text, file = "".join(cell["source"]), f"<pictures {path.stem} {k}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        tree = ast.parse(text)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, file, "exec"), namespace)
        value = last and eval(compile(ast.Expression(last.value), file, "eval"), namespace)
        for number in plt.get_fignums():
            out = io.StringIO()
            plt.figure(number).savefig(out, format="svg")
            figures.append(out.getvalue())
        plt.close("all")
        for form in ("_repr_html_", "_repr_svg_"):
            page = getattr(type(value), form, lambda v: None)(value)
            if page:
                pages.append(page)
                break
    return figures, pages


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no browser")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[p.stem for p in NOTEBOOKS])
def test_in_a_browser(path, tmp_path):
    """Each takes its place on the page, and is not of one colour."""
    playwright, image = pytest.importorskip("playwright.sync_api"), pytest.importorskip("matplotlib.image")
    figures, pages = shown(path)
    assert (len(figures), len(pages)) == SHOWN[path.stem]
    file = tmp_path / "page.html"
    boxes = "".join(f"<div class=box style='display:inline-block'>{text}</div>" for text in [*figures, *pages])
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{boxes}", encoding="utf-8")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1200, "height": 800})
        view.goto(file.as_uri())
        for k, box in enumerate(view.locator(".box").all()):
            place = box.bounding_box()
            assert place["width"] > 200 and place["height"] > 60
            box.screenshot(path=tmp_path / f"{k}.png")
            pixels = image.imread(tmp_path / f"{k}.png")[..., :3]
            assert len({tuple(c) for c in (pixels[::3, ::3].reshape(-1, 3) * 255).astype(int)}) > 3
        browser.close()
