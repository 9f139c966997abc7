# SPDX-License-Identifier: Apache-2.0
"""A transformed function as HTML: the user's source and the emitted one side by side, with linked lines."""
import html
import itertools
from typing import Any

from gradscribe.colours import spans
from gradscribe.frames import public
from gradscribe.recipes import users_function
from gradscribe.source_map import blocks, source_map, version_of

_numbers = itertools.count(1)

DARK = ("color-scheme:dark;--ink:#e6edf3;--paper:#0d1117;--faint:#9198a1;--lit:#453a09;--edge:#f0b72f;--line:#30363d;"
        "--keyword:#d2a8ff;--number:#79c0ff;--string:#7ee787")
LIGHT = ("color-scheme:light;--ink:#24292f;--paper:#fff;--faint:#57606a;--lit:#fff3bf;--edge:#e67700;--line:#d0d7de;"
         "--keyword:#8250df;--number:#0550ae;--string:#0a6640")
# Pages that declare a theme: JupyterLab, VS Code, Sphinx.  Elsewhere the theme of the reader's system applies.
SAYS_LIGHT = 'body[data-jp-theme-light="true"],.vscode-light,.vscode-high-contrast-light,body[data-theme="light"]'
SAYS_DARK = ('body[data-jp-theme-light="false"],.vscode-dark,.vscode-high-contrast:not(.vscode-high-contrast-light),'
             'body[data-theme="dark"]')
STYLE = f"""
.gs{{{LIGHT};container-type:inline-size;contain-intrinsic-width:64em;color:var(--ink);background:var(--paper);
border:1px solid var(--line);border-radius:6px;text-align:left;
font:13px/1.5 ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}}
.gs.dark,:is({SAYS_DARK}) .gs.auto{{{DARK}}}
@media (prefers-color-scheme:dark){{body:not(:is({SAYS_LIGHT})) .gs.auto{{{DARK}}}}}
.gs>div{{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);max-height:min(80vh,44em);overflow-y:auto;
overscroll-behavior:contain}}
.gs.gs h4{{grid-row:1;position:sticky;top:0;z-index:2;font:600 12px/1.6 system-ui,sans-serif;margin:0;border-radius:0;
padding:.3em .8em;color:var(--faint);background:var(--paper);border-bottom:1px solid var(--line)}}
.gs.gs section{{grid-row:2;margin:0;padding:.3em 0;overflow-x:auto;overflow-y:hidden}}
.gs.gs h4:nth-of-type(2),.gs.gs section:nth-of-type(2){{border-left:1px solid var(--line)}}
.gs.gs pre{{margin:0 0 .8em;padding:0;border:0;background:none;color:inherit;font:inherit;white-space:pre;
overflow:visible}}
.gs.gs pre:last-child{{margin:0}}
.gs.gs code{{display:block;width:max-content;min-width:100%;box-sizing:border-box;padding:0 .8em 0 0;margin:0;border:0;
min-height:1.5em;font:inherit;color:inherit;background:var(--paper);white-space:pre}}
.gs.gs code::before{{content:attr(data-n);position:sticky;left:0;display:inline-block;box-sizing:border-box;width:4.4em;
padding-right:1.8em;margin-right:.4em;text-align:right;color:var(--faint);background:inherit;
border-left:3px solid transparent;user-select:none}}
.gs.gs i{{position:sticky;left:2.8em;display:inline-block;width:1.4em;margin:0 .2em 0 -1.6em;text-align:center;
font-style:normal;color:var(--faint);cursor:pointer;user-select:none}}
.gs.gs i::before{{content:"\\25be"}}.gs.gs .shut i::before{{content:"\\25b8"}}
.gs.gs .shut::after{{content:" \\2026";color:var(--faint)}}.gs.gs code[hidden]{{display:none}}
.gs.gs code[data-from]{{cursor:pointer}}
.gs.gs code.on{{background:var(--lit)}}.gs.gs code.on::before{{border-left-color:var(--edge)}}
.gs.gs .k{{color:var(--keyword)}}.gs.gs .n{{color:var(--number)}}.gs.gs .s{{color:var(--string)}}
.gs.gs .c{{color:var(--faint);font-style:italic}}
@container (max-width:44em){{.gs>div{{display:block}}.gs.gs h4:nth-of-type(2),.gs.gs section:nth-of-type(2){{
border-left:0}}.gs.gs h4:nth-of-type(2){{border-top:1px solid var(--line)}}}}
@media print{{.gs.gs.gs.gs{{{LIGHT}}}.gs>div{{max-height:none}}.gs.gs code.on{{background:none}}}}
"""
SCRIPT = """
(function(root){if(!root)return;var held=null,box=root.firstElementChild;
function lines(){return Array.from(root.querySelectorAll('code'));}
function ties(c){return c&&c.dataset.from?c.dataset.from.split(' '):[];}
function tied(a,b){var t=ties(a);return ties(b).some(function(k){return t.indexOf(k)>=0;});}
function light(c){lines().forEach(function(o){o.classList.toggle('on',tied(c,o)||tied(held,o));});}
function at(e){return e.target.closest?e.target.closest('code'):null;}
function depth(c){var t=c.textContent;return t.trim()?t.search(/\\S/):Infinity;}
function fold(pre){var limit=null;Array.from(pre.children).forEach(function(c){
if(limit!==null&&depth(c)<=limit)limit=null;c.hidden=limit!==null;
if(limit===null&&c.classList.contains('shut'))limit=depth(c);});}
function reveal(c){for(var p=c.previousElementSibling;p&&c.hidden;p=p.previousElementSibling)
if(p.classList.contains('shut')&&depth(p)<depth(c)){p.classList.remove('shut');fold(c.parentElement);}}
function seen(c){var r=c.getBoundingClientRect(),b=box.getBoundingClientRect();
return !c.hidden&&r.top>=b.top+24&&r.bottom<=b.bottom;}
function jump(c){var side=c.closest('section'),to=lines().filter(function(o){
return o.closest('section')!==side&&tied(c,o)&&!seen(o);})[0];if(!to)return;reveal(to);
box.scrollTop+=to.getBoundingClientRect().top-box.getBoundingClientRect().top-box.clientHeight/3;}
root.addEventListener('mouseover',function(e){light(at(e));});
root.addEventListener('mouseleave',function(){light(null);});
root.addEventListener('click',function(e){var c=at(e);if(!c)return;
if(e.target.tagName==='I'){c.classList.toggle('shut');fold(c.parentElement);return;}
if(String(getSelection()))return;held=c===held||!ties(c).length?null:c;light(c);if(held)jump(c);});
})(document.getElementById('%s'));
"""


@public
def side_by_side(fn: Any, *args: Any, theme: str = "auto", **kwargs: Any) -> str:
    """The HTML of a transformed function: the user's functions on the left, the emitted text on the right.

    Hovering over a line highlights the lines that it came from or became, and shows the rules and identities that made
    it.  A click keeps the highlight and scrolls to the first line out of sight.  The mark before a line folds its
    block.  theme: "auto" (that of the page or notebook), "light" or "dark".  The HTML loads nothing; without scripts
    and styles, as on GitHub, the two texts remain.  Other arguments as for `source_map`.
    """
    version = version_of(fn, args, kwargs)
    found, name = source_map(fn, *args, **kwargs), f"gs-{next(_numbers)}"
    places = [p for _, several in sorted(found.lines.items()) for p in several]
    keys = {(p.file, p.line): k for k, p in enumerate(dict.fromkeys(p._replace(function="") for p in places))}
    left = []
    for b in blocks(users_function(fn), places):
        left.append(rows(b.lines, [{keys[b.file, line]} if (b.file, line) in keys else ()
                                   for line in range(b.start, b.start + len(b.lines))], b.start))
    text = version.text.rstrip("\n").splitlines()
    right = rows(text, [{keys[p.file, p.line] for p in found[k]} for k in range(1, len(text) + 1)],
                 reasons=found.reasons)
    base = html.escape(getattr(users_function(fn), "__name__", "function"))
    return (f'<style>{STYLE}</style><div class="gs {theme}" id="{name}"><div><h4>{base}</h4>'
            f'<section>{"".join(left)}</section><h4>{html.escape(fn.__name__)}</h4><section>{right}</section></div>'
            f"</div><script>{SCRIPT % name}</script>")


def rows(text, ties, start=1, reasons=lambda line: []):
    """Lines as HTML, each with its number, its links to other lines, a mark to fold it, and its reasons as tooltip."""
    out = []
    for k, (shown, numbers) in enumerate(zip(spans(text), ties)):
        tie = f' data-from="{" ".join(map(str, sorted(numbers)))}"' if numbers else ""
        if made := reasons(start + k):
            tie += f' title="{html.escape(chr(10).join(made))}"'
        mark = "<i></i>" if _opens(text, k) else ""
        out.append(f'<code{tie} data-n="{start + k}">{mark}{shown or " "}</code>')
    return f"<pre>{''.join(out)}</pre>"


def _opens(lines, k):
    """Whether the next line that is not blank is indented more."""
    after = next((line for line in lines[k + 1:] if line.strip()), "")
    return bool(lines[k].strip()) and _indent(after) > _indent(lines[k])


def _indent(line):
    return len(line) - len(line.lstrip())
