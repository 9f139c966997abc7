# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site: `make docs` writes it to build/site, and stops at any warning."""
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

from gradscribe.version import __version__  # noqa: E402

project, author, release = "Gradscribe", "The Gradscribe authors", __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode", "site_parts"]
exclude_patterns = ["conf.py", "decisions", "internal"]        # those two are for who works on the compiler
myst_heading_anchors = 3                        # links to headings
nb_execution_mode = "off"                       # notebooks have their outputs: `make notebooks` writes them
html_theme = "furo"
html_title = "Gradscribe"
html_show_sphinx = html_show_copyright = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
autodoc_member_order = "bysource"
autodoc_typehints = "both"                      # in the signature, and with each parameter
autodoc_typehints_description_target = "all"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autosummary_generate = True
toc_object_entries_show_parents = "hide"
nitpicky = True                                 # a reference that leads nowhere is a warning
nitpick_ignore_regex = [("py:class", ".*"), ("py:obj", ".*"), ("py:exc", ".*")]     # types; `name` in a docstring
default_role = "py:obj"                         # `name` in a docstring: a link, where it is a name of ours

# Sphinx reads what lies under its folder.
shutil.copytree(ROOT / "notebooks", HERE / "notebooks", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.py", ".*"))
