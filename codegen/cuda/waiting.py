# SPDX-License-Identifier: Apache-2.0
"""What the function of the host leaves to one thread until something needs it, and what it lets go of when it can.

>>> lines = ["a = cp.empty((n,), np.float64)", "f_1[grid(n)](a)", "b = cp.dot(a, a)", "c = cp.dot(b, b)", "return (c,)"]
>>> [line for _, line, _ in freed([(1, line, None) for line in lines], {"a", "b", "c"})][2:]
['b = cp.dot(a, a)', 'del a', 'c = cp.dot(b, b)', 'return (c,)']
"""
import ast
import re
from typing import NamedTuple

from gradscribe.codegen.cuda.kernels import is_zero, standing
from gradscribe.codegen.cuda.trees import walk

SMALL = re.compile(r"= cp\.\w+\(\(?[\d, ]+\)?, np\.\w+\)")           # of lengths that are written there


class Waiting(NamedTuple):
    """What one thread has to do, or one block that puts parts together (`parts` is their name)."""
    node: object
    reads: set
    writes: set
    name: str = ""
    op: str = ""
    parts: str = ""
    begins: str = ""                    # '=' where the number was nothing before


def begun(waiting):
    """What waits, without the zeros that sums begin with."""
    out = []
    for w in waiting:
        if w.op == "+":
            k = next((k for k in reversed(range(len(out))) if w.name in out[k].reads | out[k].writes), None)
            if k is not None and is_zero(out[k].node, w.name):
                del out[k]
                w = w._replace(begins="=")
        out.append(w)
    return out


def set_in_order(function):
    """Names in the order in which they are first set."""
    return dict.fromkeys(n.id for n in standing(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def written(nodes):
    """Arrays of which entries are set."""
    return {n.value.id for s in nodes for n in walk(s)
            if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name)}


def freed(lines, arrays):
    """The lines of the host with `del` of arrays that nothing below needs, where something is allocated below.

    What a name stood for goes back to the pool, unless another name stands for it, and is used again.
    """
    last, allocated, certain = {}, 0, set()
    top = [k for k, (level, line, _) in enumerate(lines) if level == 1 and not line.startswith((" ", "else:", "elif "))]
    ends = dict(zip(top, [*top[1:], len(lines)]))           # where the statement ends that begins at a line
    for k in top:
        text = "\n".join(line for _, line, _ in lines[k:ends[k]])
        last |= dict.fromkeys(arrays & set(re.findall(r"[A-Za-z_]\w*", text)), ends[k] - 1)
        if re.fullmatch(r"\w+ = \w+", text):             # another name for what is there
            last.pop(text.split(" = ")[1], None)
        set_here = re.match(r"(\w+) = ", text)
        if re.search(r"= (?:cp|host)\.", text) and not SMALL.search(text):
            allocated = k
            certain |= {set_here[1]} if set_here else set()
    out = []
    for k, line in enumerate(lines):
        out.append(line)
        gone = sorted(n for n, at in last.items() if at == k < allocated and n in certain)
        if gone:
            out.append((1, f"del {', '.join(gone)}", None))
    return out
