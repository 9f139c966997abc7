# SPDX-License-Identifier: Apache-2.0
"""The pictures of the README and of the gallery, by a headless browser and from the outputs of the notebooks.

    python docs/pictures/make.py        writes them beside this file

Needs playwright, JupyterLab, and Chromium installed as `chromium`.  Those of the examples are written by the examples:
`python examples/springs.py --out docs/pictures`.
"""
import base64
import inspect
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import gradscribe as gs
from gradscribe.display import side_by_side
from gradscribe.live import Page, Wanted

HERE = Path(__file__).resolve().parent


def heat(u, k, steps):
    for _ in range(steps):
        flow = k * (u[1:] - u[:-1])
        u = u.copy()
        u[:-1] += flow
        u[1:] -= flow
    return np.sum(u**2)


def of_notebooks():
    """The last figure of each notebook that has one; what gs.draw draws, for the one on the compiler."""
    for path in sorted((HERE.parent.parent / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        figures = [o["data"]["image/png"] for c in cells for o in c.get("outputs", ())
                   if "image/png" in o.get("data", ())]
        if figures:
            (HERE / f"{path.stem}.png").write_bytes(base64.b64decode("".join(figures[-1])))
    gs.draw(lambda x, y: np.sin(x * y) + x, 0.5, 2.0).save(HERE / "04_how_the_compiler_works.svg")


def side_by_side_pictures(browser, folder):
    gradient = gs.grad(heat, argnums=1)
    gradient(np.linspace(0.0, 1.0, 8), np.full(7, 0.1), 20)
    for theme, ground in (("light", "#ffffff"), ("dark", "#0d1117")):
        page = folder / f"{theme}.html"
        page.write_text(f"<!doctype html><meta charset=utf-8><body style='margin:8px;background:{ground}'>"
                        f"<div id=box>{side_by_side(gradient, theme=theme)}</div>", encoding="utf-8")
        view = browser.new_page(viewport={"width": 860, "height": 900}, device_scale_factor=1.5)
        view.goto(page.as_uri())
        view.hover("text=u[:-1] += flow >> nth=0")
        view.locator("#box").screenshot(path=HERE / f"side_by_side_{theme}.png")


def live_page(browser, folder):
    """The page of `gradscribe live` for `heat`, with times and one line lit up."""
    (folder / "rod.py").write_text(f"import numpy as np\n\n\n{inspect.getsource(heat)}", encoding="utf-8")
    sys.path.insert(0, str(folder))
    page = Page(Wanted(["rod:heat"], [("grad", "u,k")], "f64[10_000], f64[9_999], 20"))
    threading.Thread(target=page.serve, daemon=True).start()
    try:
        view = browser.new_page(viewport={"width": 1060, "height": 640})
        view.goto(page.address)
        view.get_by_label("Time each line").check()
        view.locator("#right .cm-heat .bar").first.wait_for()
        view.locator("#left .cm-line", has_text="u[:-1] += flow").first.click()
        view.mouse.move(1, 1)
        view.screenshot(path=HERE / "live_page.png")
    finally:
        page.server.shutdown()
        page.close()
        sys.path.remove(str(folder))


def first_gradient(browser, folder):
    """What JupyterLab shows of the first notebook, when its first cells have run."""
    shutil.copy(HERE.parent.parent / "notebooks" / "01_derivative_programs.ipynb", folder)
    (folder / "overrides.json").write_text('{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--ip=127.0.0.1",
         "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}", f"--LabApp.app_settings_dir={folder}"],
        env={**os.environ, "PYTHONPATH": str(HERE.parent.parent)}, stderr=subprocess.DEVNULL)
    try:
        view = browser.new_page(viewport={"width": 1100, "height": 720}, device_scale_factor=1.2)
        for _ in range(60):
            try:
                view.goto(f"http://127.0.0.1:{port}/doc/tree/01_derivative_programs.ipynb", timeout=60000)
                break
            except Exception:           # the server is still starting
                time.sleep(1)
        view.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for(timeout=120000, state="attached")
        view.locator(".jp-RenderedMarkdown h1", has_text="derivative program").first.click(timeout=120000)
        for _ in range(4):
            view.keyboard.press("Shift+Enter")
        view.wait_for_timeout(8000)
        view.mouse.move(1, 400)
        view.screenshot(path=HERE / "first_gradient.png")
    finally:
        server.terminate()
        server.wait()


def main():
    of_notebooks()
    with sync_playwright() as p, tempfile.TemporaryDirectory() as name:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        side_by_side_pictures(browser, Path(name))
        live_page(browser, Path(name))
        first_gradient(browser, Path(name))
        browser.close()


if __name__ == "__main__":
    main()
