# SPDX-License-Identifier: Apache-2.0
"""GRADSCRIBE_DUMP=folder: every text that a run emits or compiles, in a file each, with a page that lists them."""
import html
import itertools
import os
from pathlib import Path

_count = itertools.count(1)


def recording() -> bool:
    """Whether a run is written down."""
    return bool(os.environ.get("GRADSCRIBE_DUMP"))


def record(label: str, text: str, compiled: bool) -> None:
    """Write a text to the folder that GRADSCRIBE_DUMP names; nothing where it names none."""
    wanted = os.environ.get("GRADSCRIBE_DUMP", "")
    if not wanted:
        return
    folder = Path(wanted)
    folder.mkdir(parents=True, exist_ok=True)
    file = f"{os.getpid()}_{next(_count):04}_{label}{'.lowered' * compiled}.py"
    (folder / file).write_text(text, encoding="utf-8")
    rows = "\n".join(f'<tr><td><a href="{html.escape(f.name)}">{html.escape(f.name)}</a></td>'
                     f"<td>{'compiled by Numba' if '.lowered.' in f.name else 'emitted'}</td>"
                     f"<td>{len(f.read_text(encoding='utf-8').splitlines())} lines</td></tr>"
                     for f in sorted(folder.glob("*.py")))
    page = folder / "index.html"
    temporary = page.with_suffix(f".{os.getpid()}.part")
    temporary.write_text(f"<!doctype html><meta charset='utf-8'><title>Gradscribe</title>"
                         f"<style>body{{font:15px sans-serif;margin:2em}}td{{padding:.2em 1em .2em 0}}</style>"
                         f"<h1>What this run has written</h1><table>\n{rows}\n</table>\n", encoding="utf-8")
    os.replace(temporary, page)
