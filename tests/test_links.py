"""Links of the documentation lead somewhere: files that are there, headings that they have."""
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [p for p in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")]]
LINK = re.compile(r"(?<!`)\[[^\]\n]*\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"")


def text_of(page):
    if page.suffix != ".ipynb":
        return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def anchors(page):
    """The headings of a page, as GitHub names them."""
    out = set()
    for heading in re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE):
        plain = re.sub(r"[`*_]|\]\([^)]*\)|\[", "", heading).strip().lower()
        out.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return out


@pytest.mark.parametrize("page", PAGES, ids=[p.relative_to(ROOT).as_posix() for p in PAGES])
def test_links(page):
    for match in LINK.finditer(text_of(page)):
        link = match[1] or match[2]
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT) and target.exists(), f"{page.name}: {link}"
        if anchor:
            assert target.suffix == ".md" and anchor in anchors(target), f"{page.name}: {link}"


def test_every_page_is_in_the_site():
    listed = set()
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            for line in tree.splitlines():
                if line and not line.startswith(":"):
                    listed |= set(page.parent.glob(f"{line}.md"))
    inside = {ROOT / "docs" / "decisions", ROOT / "docs" / "internal"}       # for who works on the compiler
    assert {p for p in (ROOT / "docs").rglob("*.md") if p.parent not in inside} - listed == {ROOT / "docs" / "index.md"}
    assert not {p.parent for p in listed} & inside
