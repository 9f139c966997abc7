"""The pictures of the README, by a headless browser.

    python docs/pictures/make.py        writes side_by_side_light.png and side_by_side_dark.png beside this file

Needs playwright, and Chromium installed as `chromium`.
"""
import shutil
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import gradscribe as gs
from gradscribe.display import side_by_side

HERE = Path(__file__).resolve().parent


def heat(u, k, steps):
    for _ in range(steps):
        flow = k * (u[1:] - u[:-1])
        u = u.copy()
        u[:-1] += flow
        u[1:] -= flow
    return np.sum(u**2)


def main():
    gradient = gs.grad(heat, argnums=1)
    gradient(np.linspace(0.0, 1.0, 8), np.full(7, 0.1), 20)
    with sync_playwright() as p, tempfile.TemporaryDirectory() as folder:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for theme, ground in (("light", "#ffffff"), ("dark", "#0d1117")):
            page = Path(folder) / f"{theme}.html"
            page.write_text(f"<!doctype html><meta charset=utf-8><body style='margin:8px;background:{ground}'>"
                            f"<div id=box>{side_by_side(gradient, theme=theme)}</div>", encoding="utf-8")
            view = browser.new_page(viewport={"width": 700, "height": 620}, device_scale_factor=1.5)
            view.goto(page.as_uri())
            view.hover("text=u[:-1] += flow >> nth=0")
            view.locator("#box").screenshot(path=HERE / f"side_by_side_{theme}.png")
        browser.close()


if __name__ == "__main__":
    main()
