# SPDX-License-Identifier: Apache-2.0
"""GRADSCRIBE_DUMP=folder: each text that a run emits or compiles is written to a file, with a page that lists them."""
import html
import itertools
import os
from pathlib import Path

ENDS = {"function": ".function.py", "emitted": ".py", "lowered": ".lowered.py", "llvm": ".ll"}
TOLD = {".function.py": "the user's function", ".lowered.py": "compiled by Numba", ".ll": "what LLVM made of it",
        ".py": "emitted"}
_count = itertools.count(1)
_written: set[tuple[str, str, str, str]] = set()    # texts that have a file


def recording() -> bool:
    """Whether GRADSCRIBE_DUMP is set."""
    return bool(os.environ.get("GRADSCRIBE_DUMP"))


def record(label: str, text: str, stage: str) -> None:
    """Write a text to the folder GRADSCRIBE_DUMP, if that is set.

    stage: function (the user's), emitted, lowered (for Numba) or llvm.
    """
    wanted = os.environ.get("GRADSCRIBE_DUMP", "")
    if not wanted or (wanted, label, text, stage) in _written:
        return
    _written.add((wanted, label, text, stage))
    folder = Path(wanted)
    folder.mkdir(parents=True, exist_ok=True)
    file = f"{os.getpid()}_{next(_count):04}_{label}{ENDS[stage]}"
    (folder / file).write_text(text, encoding="utf-8")
    rows = "\n".join(f'<tr><td><a href="{html.escape(f.name)}">{html.escape(f.name)}</a></td>'
                     f"<td>{next(told for end, told in TOLD.items() if f.name.endswith(end))}</td>"
                     f"<td>{len(f.read_text(encoding='utf-8').splitlines())} lines</td></tr>"
                     for f in sorted([*folder.glob("*.py"), *folder.glob("*.ll")]))
    page = folder / "index.html"
    temporary = page.with_suffix(f".{os.getpid()}.part")
    temporary.write_text(f"<!doctype html><meta charset='utf-8'><title>Gradscribe</title>"
                         f"<style>body{{font:15px sans-serif;margin:2em}}td{{padding:.2em 1em .2em 0}}</style>"
                         f"<h1>What this run has written</h1><table>\n{rows}\n</table>\n", encoding="utf-8")
    os.replace(temporary, page)
