# SPDX-License-Identifier: Apache-2.0
"""What the site has beyond Markdown: gradients beside their functions, links of names, parameters of docstrings."""
import contextlib
import inspect
import io
import linecache
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

BLOCK = re.compile(r"(<!-- (?:not run|printed) -->\n+)?^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"gs\.([A-Za-z_][\w.]*)(\(.*\))?")


class Shown(SphinxDirective):
    """`{shown} expression`: a transformed function beside what it was made from, as in a notebook.

    The page's blocks of Python above it are run first.
    """
    required_arguments, final_argument_whitespace = 1, True

    def run(self):
        page = Path(self.env.doc2path(self.env.docname)).read_text(encoding="utf-8")
        above = "\n".join(page.splitlines()[:self.lineno - 1]) + "\n"
        text = "\n\n".join(block for skipped, block in BLOCK.findall(above) if not skipped)
        file, space = f"<{self.env.docname}>", {"__name__": "__main__"}
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, file, "exec"), space)
        shown = eval(self.arguments[0], space)._repr_html_()
        return [nodes.raw("", shown, format="html")]


class Names(SphinxTransform):
    """`gs.grad` in a page is a link to its entry in the reference."""
    default_priority = 400              # before references are resolved

    def apply(self, **kwargs):
        for literal in list(self.document.findall(nodes.literal)):
            match = NAME.fullmatch(literal.astext())
            if match and not isinstance(literal.parent, (nodes.reference, nodes.title, addnodes.pending_xref)):
                link = addnodes.pending_xref("", refdomain="py", reftype="obj", refwarn=False,
                                             reftarget=f"gradscribe.{match[1]}", refdoc=self.env.docname)
                literal.replace_self(link)
                link += literal


def parameters(app, what, name, thing, options, lines):
    """A docstring's words on its parameters, `name: words` from a sentence's beginning, become fields.

    Sentences are parted by two spaces or a line's end.  Docstrings are plain text: a star is no emphasis.  Of what is
    another package's, the first paragraph is shown: the rest has its own links.
    """
    if not (getattr(thing, "__module__", None) or name).startswith("gradscribe"):
        lines[:] = "\n".join(lines).strip().split("\n\n")[0].splitlines()
    try:
        known = dict.fromkeys(inspect.signature(thing).parameters, "")
    except (TypeError, ValueError):
        known = {}
    kept = []
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines)):
        if paragraph.lstrip().startswith(">>>"):
            kept.append(paragraph)
            continue
        rest = []
        for sentence in re.split(r"(?<=[.;])(?:  |\n)", re.sub(r"[*|]", r"\\\g<0>", paragraph)):
            match = re.match(r"((?:\\\*)*\w+(?:, (?:\\\*)*\w+)*): (.*)", sentence.strip(), re.DOTALL)
            names = match[1].replace("\\*", "").split(", ") if match else []
            if names and known.keys() >= set(names):
                known.update(dict.fromkeys(names, " ".join(match[2].split())))
            else:
                rest.append(sentence)
        if any(sentence.strip() for sentence in rest):
            kept.append("\n".join(rest))
    fields = [f":param {each}: {words}" for each, words in known.items()] if any(known.values()) else []
    lines[:] = "\n\n".join([*kept, "\n".join(fields)]).splitlines() + [""]


def links(app, docname, source):
    """The notebooks lie under the site's folder when it is built: a link to one leads to its page."""
    source[0] = source[0].replace("](../notebooks/", "](notebooks/")


def setup(app):
    app.add_directive("shown", Shown)
    app.add_transform(Names)
    app.connect("source-read", links)
    app.connect("autodoc-process-docstring", parameters)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
