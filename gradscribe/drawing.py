# SPDX-License-Identifier: Apache-2.0
"""gs.draw: the computation graph of a small function as a picture, each operation with its value and its adjoint."""
import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.form import USER, Apply, Const, Pack, Slice, Var
from gradscribe.ast_transform.core.operations import Quoted
from gradscribe.ast_transform.passes.anf import spelled
from gradscribe.ast_transform.passes.callees import without_calls
from gradscribe.ast_transform.passes.described import describe
from gradscribe.ast_transform.passes.simplify import simplify
from gradscribe.ast_transform.pipeline import Pipeline
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.ast_transform.transforms import parameter_names
from gradscribe.frames import public
from gradscribe.making import alone

MOST, ENTRIES = 60, 8               # limits: operations of a picture, entries of an array
STEP = 1e-5                         # of the finite differences for the adjoints, which are shown to four digits
WIDE, HIGH, ACROSS, DOWN = 132, 50, 44, 22
CONTAINERS = {"tuple": tuple, "list": list}


class Node:
    """One operation of a run, an argument, or a constant (which is not drawn)."""

    def __init__(self, value, label="", inputs=(), number=None, given=False):
        """given: an argument, or an entry of one that is a container."""
        self.value, self.label, self.inputs, self.number, self.adjoint = value, label, list(inputs), number, None
        self.given = given


class Run:
    """One run of a normal form.  nudge: (number of a node, a perturbation of its value)."""

    def __init__(self, form, args, nudge=(None, 0.0)):
        self.nodes, self.env, self.nudge = [], {}, nudge
        for p, value in zip(form.params, args):
            self.env[p.value] = self.node(value, p.name, (), True) if is_number(value) else Node(value, given=True)
        self.block(without_calls(form.body))
        self.result = self.of(form.result)

    def node(self, value, label, inputs=(), given=False):
        """A new node of the graph, whose value is perturbed if it is the one to be nudged."""
        number = len(self.nodes)
        if number > 50 * MOST:
            raise KindError("the run has too many operations to be drawn", None, "Draw it for fewer passes.")
        if number == self.nudge[0]:
            value = value + self.nudge[1]
        self.nodes.append(Node(value, label, inputs, number, given))
        return self.nodes[-1]

    def of(self, node) -> Any:
        """The node of an expression."""
        if isinstance(node, Var):
            return self.env[node]
        if isinstance(node, Const):
            return Node(node.value)
        if isinstance(node, Pack):
            items = [self.of(i) for i in node.items]
            values = [i.value for i in items]
            if node.kind == "record":
                value = node.cls(**dict(zip(node.keys, values)))
            else:
                value = dict(zip(node.keys, values)) if node.kind == "dict" else CONTAINERS[node.kind](values)
            return Node(value, "", [n for i in items for n in own(i)])
        if isinstance(node, Slice):
            return Node(slice(*(None if p is None else self.of(p).value for p in (node.start, node.stop, node.step))))
        args, words = [self.of(a) for a in node.args], {k: self.of(a) for k, a in node.kwargs}
        if isinstance(node.function, Quoted):           # text for the user, as in an assertion
            return Node(None)
        with np.errstate(all="ignore"):
            value = node.function(*(a.value for a in args), **{k: a.value for k, a in words.items()})
        return Node(value, spelled(node.function), [n for a in (*args, *words.values()) for n in own(a)],
                    given=any(a.given and a.number is None for a in args))

    def block(self, body):
        """Run statements."""
        for step in body:
            getattr(self, f"step_{type(step).__name__}")(step)

    def step_Let(self, step):
        """Run an assignment."""
        made = self.of(step.value)
        if len(step.targets) > 1:
            for t, v in zip(step.targets, made.value):
                self.env[t] = self.node(v, t.hint, own(made), made.given) if is_number(v) else \
                    Node(v, "", own(made), given=made.given)
            return
        target = step.targets[0]
        if isinstance(step.value, Apply):
            label = f"{target.hint} = {made.label}" if target.kind == USER else made.label
            made = self.node(made.value, label, made.inputs, made.given) if is_number(made.value) else \
                Node(made.value, "", made.inputs, given=made.given)
        self.env[target] = made

    def step_Effect(self, step):
        """Skip an effect, which has no value."""
        pass

    def step_If(self, step):
        """Run the arm of an `if` that its test selects."""
        arm = "then" if self.of(step.test).value else "orelse"
        self.block(getattr(step, arm))
        self.env.update([(j.var, self.of(getattr(j, arm))) for j in step.joins
                         if not isinstance(getattr(j, arm), Var) or getattr(j, arm) in self.env])

    def enter(self, step):
        """Set the carries of a loop to their initial values."""
        self.env.update([(c.inner, self.of(c.init)) for c in step.carries])

    def again(self, step):
        """Set the carries to their values for the next pass."""
        self.env.update([(c.inner, self.of(c.next)) for c in step.carries])

    def leave(self, step):
        """Set the results of a loop to its carries' last values."""
        self.env.update([(c.outer, self.env[c.inner]) for c in step.carries])

    def step_For(self, step):
        """Run all passes of a `for` loop."""
        self.enter(step)
        passes = range(self.of(step.count).value)
        sources = [(v, self.of(source)) for v, source in step.items]
        for k in reversed(passes) if step.reverse else passes:
            self.env[step.index] = Node(k)
            for v, source in sources:
                value, given = source.value[k], source.given and source.number is None
                self.env[v] = self.node(value, f"{v.hint} = [{k}]", own(source), given) if is_number(value) else \
                    Node(value, "", own(source), given=given)
            self.block(step.body)
            self.again(step)
        self.leave(step)

    def step_While(self, step):
        """Run a `while` loop until its test fails."""
        self.enter(step)
        while True:
            self.block(step.head)
            if not self.of(step.test).value:
                break
            self.block(step.body)
            self.again(step)
        self.leave(step)


def own(node):
    """The drawn nodes that a value comes from."""
    return [node] if node.number is not None else node.inputs


class Drawing:
    """An SVG picture that notebooks show and `save` writes.  nodes: its operations, with value and adjoint."""

    def __init__(self, nodes):
        self.nodes = nodes

    def _repr_svg_(self):
        return svg(self.nodes)

    def save(self, path) -> Path:
        """Write the picture to an SVG file, and return its path."""
        path = Path(path)
        path.write_text(svg(self.nodes), encoding="utf-8")
        return path


@alone
def read_whole(f, names, facts):
    """The normal form of a scalar function that is drawn."""
    return simplify(Pipeline().normal_form(f, names, facts, {}, "f"))


@public
def draw(f: Callable, *args: Any) -> Drawing:
    """The computation graph of one run of a scalar function: each operation with its value and, in red, its adjoint.

    Loops are drawn pass by pass, and calls are inlined.  Operations that do not depend on a real argument, or on which
    the result does not depend, are left out.  Adjoints are central differences, independent of `gs.grad`, shown to four
    digits.  At most 60 operations and arrays of at most 8 entries; KindError for more.

    >>> import numpy as np, gradscribe as gs
    >>> picture = gs.draw(lambda x, y: np.sin(x * y) + x, 0.5, 2.0)
    >>> [(n.label, round(float(n.adjoint), 3)) for n in picture.nodes]
    [('x', 2.081), ('y', 0.27), ('*', 0.54), ('np.sin', 1.0), ('+', 1.0)]
    """
    f = getattr(f, "fun", f)
    names = parameter_names(f, len(args))
    form = read_whole(f, names, [describe(a, n) for a, n in zip(args, names)])
    run = Run(form, args)
    if np.size(run.result.value) != 1 or not is_real(run.result.value):
        raise KindError("the function does not return a real number", None, "Draw a scalar function.")
    shown = between(run)
    if len(shown) > MOST:
        raise KindError(f"{len(shown)} operations are too many to be drawn", None, "Draw it for fewer passes.")
    for n in shown:
        if np.size(n.value) > ENTRIES:
            raise KindError(f"{n.label} has {np.size(n.value)} entries, too many to be drawn", None,
                            "Use short arrays.")
        n.adjoint = adjoint(form, args, n)
    return Drawing(shown)


def is_number(value):
    """Whether a value is a number or an array."""
    return isinstance(value, (bool, int, float, complex, np.ndarray, np.generic))


def is_real(value):
    """Whether a value is a real number or an array of real numbers."""
    return isinstance(value, float) or isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "f"


def between(run):
    """The nodes on a path from a real argument to the result, in order."""
    first = {n.number for n in run.nodes if n.given and is_real(n.value)}
    for n in run.nodes:
        if is_real(n.value) and any(i.number in first for i in n.inputs):
            first.add(n.number)
    needed, queue = set(), own(run.result)
    while queue:
        n = queue.pop()
        if n.number not in needed and n.number in first:
            needed.add(n.number)
            queue += n.inputs
    return [n for n in run.nodes if n.number in needed]


def adjoint(form, args, node):
    """The derivative of the result with respect to a node's value, by central differences."""
    value = np.asarray(node.value, float)
    out = np.zeros(value.shape)
    for place in np.ndindex(value.shape):
        ends = []
        for sign in (1.0, -1.0):
            move = np.zeros(value.shape)
            move[place] = sign * STEP * max(1.0, abs(value[place]))
            ends.append(float(Run(form, args, (node.number, move if value.ndim else float(move))).result.value))
        out[place] = (ends[0] - ends[1]) / (2 * STEP * max(1.0, abs(value[place])))
    return out


# --- the picture ------------------------------------------------------------------------------------------------------

def svg(nodes):
    """The picture: a node's column is the length of the longest path to it."""
    depth = {}
    for n in nodes:
        depth[n.number] = 1 + max((depth[i.number] for i in n.inputs if i.number in depth), default=-1)
    columns = {}
    for n in nodes:
        columns.setdefault(depth[n.number], []).append(n)
    tallest = max(map(len, columns.values()))
    at = {}
    for d, column in columns.items():
        top = (tallest - len(column)) * (HIGH + DOWN) / 2
        for k, n in enumerate(column):
            at[n.number] = 10 + d * (WIDE + ACROSS), 10 + top + k * (HIGH + DOWN)
    width, height = 20 + len(columns) * (WIDE + ACROSS) - ACROSS, 20 + tallest * (HIGH + DOWN) - DOWN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    for n in nodes:
        for i in n.inputs:
            if i.number in at:
                (x, y), (u, v) = at[i.number], at[n.number]
                a, b, c, d = x + WIDE, y + HIGH / 2, u, v + HIGH / 2
                parts.append(f'<path d="M{a} {b} C{a + ACROSS} {b} {c - ACROSS} {d} {c} {d}" fill="none" '
                             'stroke="#8a94a0" stroke-width="1.4"/>')
    for n in nodes:
        x, y = at[n.number]
        fill = "#e8f1fb" if not n.inputs else "#f6f8fa"
        parts.append(f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="6" fill="{fill}" stroke="#57606a"/>')
        for line, (text, colour) in enumerate(((n.label, "#24292f"), (words(n.value), "#0550ae"),
                                               (words(n.adjoint), "#b3421d"))):
            weight = ' font-weight="600"' if not line else ""
            parts.append(f'<text x="{x + 8}" y="{y + 15 + 15 * line}" fill="{colour}"{weight}>'
                         f"<title>{html.escape(text)}</title>{html.escape(clipped(text))}</text>")
    return "\n".join([*parts, "</svg>\n"])


def words(value):
    """A value as short text, with the entries of an array."""
    if np.ndim(value) == 0:
        return f"{float(value):.4g}"
    return "[" + ", ".join(f"{v:.3g}" for v in np.ravel(value)) + "]"


def clipped(text, most=20):
    """A text, shortened to at most `most` characters."""
    return text if len(text) <= most else text[:most - 1] + "…"
