"""Writes docs/gallery/sources.md: each function of twenty.py, and what is made of it beside it.

python docs/gallery/twenty_page.py
"""
import inspect
from pathlib import Path

import twenty

HERE = Path(__file__).resolve().parent

HEAD = """# Twenty functions and what is made of them

Each function stands on the left as it was written; on the right is the text that Gradscribe emits for it, unchanged but
for its imports. `python docs/gallery/twenty_page.py` writes this page, a test keeps it as the compiler is.
"""


def functions_of(f):
    """The text of a function, and of those of its file that it calls."""
    names = [n for n in f.__code__.co_names if inspect.isfunction(getattr(twenty, n, None))]
    return "\n\n".join(inspect.getsource(getattr(twenty, n)).strip() + "\n" for n in [*names, f.__name__])


def page() -> str:
    parts = [HEAD]
    for f, transformed, args, _ in twenty.programs():
        emitted = transformed.source_for(*args).split("\n\n\n", 1)[1].strip() + "\n"
        cells = "\n".join(f"<td valign=\"top\">\n\n<!-- not run -->\n```python\n{text}```\n\n</td>"
                          for text in (functions_of(f), emitted))
        title = f.__name__.replace("_", " ").capitalize()
        parts.append(f"## {title}\n\n<table class=\"beside\">\n<tr>\n{cells}\n</tr>\n</table>\n")
    return "\n".join(parts)


if __name__ == "__main__":
    (HERE / "sources.md").write_text(page(), encoding="utf-8")
