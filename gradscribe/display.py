# SPDX-License-Identifier: Apache-2.0
"""A transformed function as HTML: the user's text and the emitted one side by side, their lines tied together."""
import html
import itertools
import re

from gradscribe.frames import public
from gradscribe.recipes import users_function
from gradscribe.source_map import blocks, source_map, version_of

_numbers = itertools.count(1)

STYLE = """
.gs{display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start;color:#24292f;background:#fff;padding:.6em .8em;
font:13px/1.5 ui-monospace,Menlo,Consolas,monospace}
.gs>div{min-width:18em;max-width:100%;overflow-x:auto}
.gs h4{font:600 12px/1.6 system-ui,sans-serif;margin:0 0 .3em;color:#57606a}
.gs pre{margin:0 0 .8em;background:none;color:inherit;font:inherit;white-space:pre;padding:0;border:0}
.gs code{display:block;font:inherit;color:inherit;background:none;padding:0 .5em;border-left:3px solid transparent;
min-height:1.5em;white-space:pre}
.gs code[data-from]{cursor:pointer}
.gs code.on{background:#fff3bf;border-left-color:#e67700}
.gs .k{color:#8250df}.gs .n{color:#0550ae}.gs .s{color:#0a6640}.gs .c{color:#6e7781;font-style:italic}
@media (prefers-color-scheme:dark){.gs.auto{color:#e6edf3;background:#0d1117}.gs.auto h4{color:#9198a1}
.gs.auto code.on{background:#453a09;border-left-color:#f0b72f}
.gs.auto .k{color:#d2a8ff}.gs.auto .n{color:#79c0ff}.gs.auto .s{color:#7ee787}.gs.auto .c{color:#9198a1}}
body[data-jp-theme-light=false] .gs,.vscode-dark .gs,.gs.dark{color:#e6edf3;background:#0d1117}
body[data-jp-theme-light=false] .gs h4,.vscode-dark .gs h4,.gs.dark h4{color:#9198a1}
body[data-jp-theme-light=false] .gs code.on,.vscode-dark .gs code.on,.gs.dark code.on{background:#453a09;
border-left-color:#f0b72f}
body[data-jp-theme-light=false] .gs .k,.gs.dark .k{color:#d2a8ff}
body[data-jp-theme-light=false] .gs .n,.gs.dark .n{color:#79c0ff}
body[data-jp-theme-light=false] .gs .s,.gs.dark .s{color:#7ee787}
body[data-jp-theme-light=false] .gs .c,.gs.dark .c{color:#9198a1}
@media print{.gs{color:#000;background:#fff}.gs code.on{background:none}}
"""
SCRIPT = """
(function(root){if(!root)return;var held=null;
function light(from){var on=from===null?[]:from.split(' ');
root.querySelectorAll('code[data-from]').forEach(function(c){
c.classList.toggle('on',c.dataset.from.split(' ').some(function(k){return on.indexOf(k)>=0;}));});}
function of(e){var c=e.target.closest?e.target.closest('code[data-from]'):null;return c?c.dataset.from:null;}
root.addEventListener('mouseover',function(e){var f=of(e);light(f===null?held:f);});
root.addEventListener('mouseleave',function(){light(held);});
root.addEventListener('click',function(e){var f=of(e);held=f===held?null:f;light(held);});
})(document.getElementById('%s'));
"""


@public
def side_by_side(fn, *args, theme: str = "auto", **kwargs) -> str:
    """The HTML of a transformed function: the user's functions left, the emitted text right.

    Hovering a line lights up the lines that it came from or went to; a click holds them.  theme: "auto" (as the page
    or the notebook is), "light" or "dark".  Nothing is loaded from elsewhere; without scripts and styles, as on GitHub,
    the two texts remain.  Arguments as for `source_map`.
    """
    version = version_of(fn, args, kwargs)
    found, name = source_map(fn, *args, **kwargs), f"gs-{next(_numbers)}"
    places = [p for _, several in sorted(found.lines.items()) for p in several]
    keys = {(p.file, p.line): k for k, p in enumerate(dict.fromkeys(p._replace(function="") for p in places))}
    left = []
    for b in blocks(users_function(fn), places):
        left.append(rows(b.lines, [{keys[b.file, line]} if (b.file, line) in keys else ()
                                   for line in range(b.start, b.start + len(b.lines))]))
    text = version.text.rstrip("\n").splitlines()
    right = rows(text, [{keys[p.file, p.line] for p in found[k]} for k in range(1, len(text) + 1)])
    base = html.escape(getattr(users_function(fn), "__name__", "function"))
    return (f'<style>{STYLE}</style><div class="gs {theme}" id="{name}"><div><h4>{base}</h4>{"".join(left)}</div>'
            f"<div><h4>{html.escape(fn.__name__)}</h4>{right}</div></div><script>{SCRIPT % name}</script>")


def rows(text, ties):
    """Lines as HTML, each with the numbers that tie it to others."""
    out = []
    for shown, numbers in zip(colours(text), ties):
        tie = f' data-from="{" ".join(map(str, sorted(numbers)))}"' if numbers else ""
        out.append(f"<code{tie}>{shown or ' '}</code>")
    return f"<pre>{''.join(out)}</pre>"


def colours(lines):
    """Lines with their tokens marked, if Pygments is there, as it is in notebooks."""
    try:
        from pygments.lexers import PythonLexer
        from pygments.token import Comment, Keyword, Number, Operator, String
    except ImportError:
        return [html.escape(line) for line in lines]
    marks = ((Comment, "c"), (String, "s"), (Number, "n"), (Keyword, "k"), (Operator.Word, "k"))
    out = [""]
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens("\n".join(lines)):
        mark = next((m for t, m in marks if kind in t), None)
        for k, part in enumerate(re.split("\n", text)):
            if k:
                out.append("")
            if part:
                escaped = html.escape(part)
                out[-1] += f'<span class="{mark}">{escaped}</span>' if mark else escaped
    return out
