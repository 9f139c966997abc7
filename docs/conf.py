"""The documentation as a site: `make docs` writes it to build/site, and stops at any warning."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gradscribe.version import __version__  # noqa: E402

project, author, release = "Gradscribe", "The Gradscribe authors", __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["conf.py"]
myst_heading_anchors = 3                        # links to headings
html_theme = "furo"
html_title = "Gradscribe"
html_show_sphinx = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
nitpicky = True                                 # a reference that leads nowhere is a warning
nitpick_ignore_regex = [("py:class", ".*")]     # types of signatures: collections.abc and the like
default_role = "code"                           # `name` in a docstring


def setup(app):
    app.connect("autodoc-process-docstring", plain_stars)


def plain_stars(app, what, name, thing, options, lines):
    """Docstrings are plain text: *args is no emphasis."""
    lines[:] = [line if line.lstrip().startswith(">>>") else line.replace("*", r"\*") for line in lines]
