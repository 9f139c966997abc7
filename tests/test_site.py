"""The site that `make docs` built, as a reader finds it; GRADSCRIBE_SITE names its folder."""
import html.parser
import json
import os
import re
from pathlib import Path

import pytest

import gradscribe as gs

ROOT = Path(__file__).resolve().parent.parent
SITE = Path(os.environ.get("GRADSCRIBE_SITE", ROOT / "no site"))
pytestmark = pytest.mark.skipif(not SITE.is_dir(), reason="`make docs` builds the site, and runs this")
PARTS = {"checkpoint_policies", "custom_batching", "custom_derivatives", "distributed", "example_libraries", "lax",
         "nn", "optim", "random", "rule", "sparse", "testing", "tree", "tree_util"}
INTERNAL = {"internal", "decisions", "seeds", "scaling"}


class Page(html.parser.HTMLParser):
    """The links and the text of a page; those of its menu apart."""

    def __init__(self, name):
        super().__init__()
        self.links, self.menu, self.text, self.inside = [], [], "", 0
        self.raw = (SITE / name).read_text(encoding="utf-8")
        self.feed(self.raw)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "div" and (self.inside or "sidebar-tree" in attrs.get("class", "")):
            self.inside += 1
        if tag == "a" and "href" in attrs:
            self.links.append(attrs["href"])
            if self.inside:
                self.menu.append(attrs["href"])

    def handle_endtag(self, tag):
        if tag == "div" and self.inside:
            self.inside -= 1

    def handle_data(self, data):
        self.text += data


def test_the_front_page_shows_a_function_beside_its_gradient():
    page = Page("index.html")
    assert '<h4>energy</h4>' in page.raw and '<h4>grad_energy</h4>' in page.raw
    assert "def grad_energy(x, k):" in page.text and page.raw.count("data-from") > 8


def test_the_menu_begins_with_the_install_page_and_has_no_internal_page():
    menu = Page("index.html").menu
    assert menu[:3] == ["install.html", "tutorial.html", "gallery.html"] and "changelog.html" in menu
    assert not [link for link in menu if INTERNAL & set(re.split(r"\W", link))]
    assert not [p for p in SITE.rglob("*.html") if INTERNAL & {p.stem, p.parent.name} and "_modules" not in p.parts]


@pytest.mark.parametrize("name", sorted(set(gs.__all__) - PARTS - {"__version__", "P", "jacobian", "remat"}))
def test_each_name_has_a_page_with_its_parameters(name):
    """Of a function: what it takes by name, with the words of its docstring."""
    page = Page(f"api/gradscribe.{name}.html")
    assert f'id="gradscribe.{name}"' in page.raw
    assert f"api/gradscribe.{name}.html" in " ".join(Page("reference.html").links)


@pytest.mark.parametrize("name", sorted(PARTS - {"tree"}))
def test_each_part_of_the_library_has_a_page(name):
    assert f"library/{name}.html" in Page("reference.html").links
    assert Page(f"library/{name}.html").raw.count('<dt class="sig sig-object py"') > 2


def test_parameters_are_listed():
    text = " ".join(Page("api/gradscribe.grad.html").text.split())
    assert re.search(r"argnums ?\(.*?\) . the positional arguments to differentiate, an int or a sequence", text)
    assert re.search(r"holomorphic ?\(.*?\) . argument and result are complex", text)
    assert "argnums: the positional" not in text


def test_names_are_links():
    """In pages and in docstrings."""
    assert "api/gradscribe.grad.html#gradscribe.grad" in Page("jax.html").links
    assert any(link.startswith("gradscribe.source_map.html") for link in Page("api/gradscribe.source_map.html").links +
               Page("api/gradscribe.Explanation.html").links)


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebooks_are_shown_with_their_outputs(path):
    page = Page(f"notebooks/{path.stem}.html")
    outputs = [o for c in json.loads(path.read_text(encoding="utf-8"))["cells"] for o in c.get("outputs", ())]
    figures = sum("image/png" in o.get("data", ()) for o in outputs)
    sides = sum("data-from" in str(o.get("data", "")) for o in outputs)
    assert page.raw.count("_images/") >= figures and page.raw.count('class="gs auto"') == sides
    assert "no answer yet" in page.text and "\x1b" not in page.raw


def test_the_gallery_has_each_notebook_and_example():
    page = Page("gallery.html")
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"notebooks/{path.stem}.html" in page.links
    for name in ("springs", "hmc", "allconv"):
        assert f"python examples/{name}.py" in page.text
    assert page.raw.count("<img ") >= 9


def test_every_link_leads_to_a_file():
    for path in SITE.rglob("*.html"):
        for link in Page(path.relative_to(SITE)).links:
            target = link.partition("#")[0]
            if target and not re.match(r"[a-z]+:", target):
                assert (path.parent / target).exists(), f"{path.name}: {link}"
