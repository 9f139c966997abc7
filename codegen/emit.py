# SPDX-License-Identifier: Apache-2.0
"""Prints a function in normal form as Python source.

The tree is built with gast, printed by astor, parsed again and compared (parse-back verification).
"""
import ast
import math
import types
import warnings

import gast
import numpy as np

from gradscribe.ast_transform.core.alias import updates
from gradscribe.ast_transform.core.draw import is_draw
from gradscribe.ast_transform.core.form import Apply, Const, Function, If, Let, Pack, Undefined, Var, operands, walk
from gradscribe.ast_transform.source.trees import nodes
from gradscribe.codegen import loop_statements  # noqa: F401  (it fills the table of statements)
from gradscribe.codegen.came_from import applies, origins, origins_in
from gradscribe.codegen.expressions import expression
from gradscribe.codegen.line_breaking import broken
from gradscribe.codegen.standing import Module, unbound
from gradscribe.codegen.statements import MARK, comment, errors_in, negation, says_the_same, statements_of, test_of
from gradscribe.codegen.trees import name
from gradscribe.codegen.writer import Writer, provided

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)     # astor 0.8.1 looks for nodes that Python 3.12 deprecates
    import astor


class Emitted:
    """The text of one or more functions, and the globals that they read."""
    known: dict                         # {a text, or the function that is emitted: its name}

    def __init__(self, label):
        self.label, self.texts, self.namespace = label, [], {"np": np}
        self.parameters, self.outside = set(), {}       # of all its functions; {captured array: its name}
        self.home = ""                  # the module of the function that was transformed
        self.whole = None               # the cached result of source()
        self.places = []                # of each text: {line, from 1: the user's statements}

    def body(self):
        return "\n\n".join(self.texts)

    def origins(self, source=None):
        """{line of a source, from 1: the user's statements that it comes from}"""
        source = self.source() if source is None else source
        found, start = {}, len(source.splitlines()) - len(self.body().splitlines())
        for text, lines in zip(self.texts, self.places):
            found.update({start + k: came_from for k, came_from in lines.items()})
            start += len(text.splitlines()) + 1
        return found

    def read(self):
        """(name, object) of the globals that the texts read."""
        names = set(unbound(self.body())) if len(self.namespace) > 1 else ()
        return [(n, v) for n, v in self.namespace.items() if isinstance(v, types.ModuleType) or n in names]

    def running(self):
        """The text that is executed; it imports modules, and its other globals, the user's objects, are passed in."""
        made = Module(to_read=True)
        for identifier, value in self.namespace.items():
            if isinstance(value, types.ModuleType):
                made.add(identifier, value)
        return made.text("", self.body())

    def source(self):
        """The text shown to the user, with a line for each global that it reads."""
        if self.whole is None:
            self.whole = source_of([self], self.home)
        return self.whole

    def standalone(self, heading):
        """The text of a self-contained file; KindError if an object has no text."""
        made = Module(self.home)
        for identifier, value in self.read():
            made.add(identifier, value)
        return made.text(heading, self.body())


def source_of(emitted: list[Emitted], home: str) -> str:
    """The text shown to the user for several emitted functions together."""
    made = Module(home, to_read=True)
    for each in emitted:
        for identifier, value in each.read():
            made.reading(identifier, value)
    return made.text("", "\n\n".join(each.body() for each in emitted))


def emit(function: Function, label: str | None = None, captured: dict | None = None,
         errstate: dict[str, str] | None = None) -> Emitted:
    """The text of a function and of those it calls; `errstate`: arguments of np.errstate around it."""
    out = Emitted(label or function.label)
    out.parameters = {p.name for f in _called(function, {}) for p in f.params}
    for v, value in (captured or {}).values():
        out.outside[v] = provided(out, v.hint, value, {*out.parameters, out.label})
    out.known = {function: out.label}           # reserves the name
    _functions(function, out.label, out, {})
    if errstate:
        out.texts[-1] = f"@np.errstate({', '.join(f'{k}={v!r}' for k, v in errstate.items())})\n{out.texts[-1]}"
        out.places[-1] = {k + 1: came_from for k, came_from in out.places[-1].items()}
    return out


def _called(function, found):
    """The functions that a function calls, directly or not, and itself."""
    if function not in found:
        found[function] = True
        for callee in callees_of(function):
            _called(callee, found)
    return found


def callees_of(function):
    """The functions that a function calls, in the order of its text."""
    for step in walk(function.body):
        for value in _printed_in(step):
            yield from (inner.function for inner in applies(value) if isinstance(inner.function, Function))
    yield from (inner.function for inner in applies(function.result) if isinstance(inner.function, Function))


def _printed_in(step):
    """The values that a statement prints, without those of the statements inside it."""
    yield from (getattr(step, field, None) for field in ("value", "test", "count"))
    yield from (source for _, source in getattr(step, "items", ()))
    for c in getattr(step, "carries", ()):
        yield from (c.init, c.next)
    for j in getattr(step, "joins", ()):
        yield from (j.then, j.orelse)


def _functions(function, label, out, names):
    """Emits callees first; equal texts become one function."""
    if function in names:
        return names[function]
    for callee in callees_of(function):
        _functions(callee, callee.label, out, names)
    own, texts = function.notes.get("text"), out.known
    texts.pop(function, None)
    if own is not None and label not in out.namespace and label not in texts.values():
        return _in_users_text(function, own, label, out, names)
    printed, lines = text(Writer(function, names, out), "\0")
    if printed in texts:
        names[function] = texts[printed]
        return texts[printed]
    name, k = label, 0
    while name in texts.values():
        k += 1
        name = f"{label}_{k}"
    texts[printed] = names[function] = name
    out.texts.append(printed.replace("\0", name))
    out.places.append(lines)
    return name


def _in_users_text(function, text, label, out, names):
    """Emits a function of the user's in the user's own text."""
    out.known[text] = names[function] = label
    out.texts.append(text)
    out.places.append({})
    if "math." in text:
        out.namespace["math"] = math
    return label


def is_tuple_of(result, variables):
    """Whether a result is a tuple of these variables."""
    return isinstance(result, Pack) and result.kind == "tuple" and len(result.items) == len(variables) and all(
        a is b for a, b in zip(result.items, variables))


def text(writer, label):
    """(the text of the function under a name, {its line: the user's statements that it comes from})"""
    function = writer.function
    body = body_of(writer, function)
    read = {n.id for s in body for n in nodes(s) if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Load)}
    body = without(body, [n for n in writer.passes.assignments if n.targets[0].id not in read])
    arguments = gast.arguments([name(p.name, gast.Param()) for p in function.params], [], None, [], [], None, [])
    tree = gast.FunctionDef("__label__", arguments, body, [], None, None, [])
    source = "\n".join(map(broken, _printed(tree).splitlines())) + "\n"
    lines = []
    for line in source.splitlines():
        indent, words = line[:len(line) - len(line.lstrip())], line.strip()
        if words.startswith(MARK):
            note = ast.literal_eval(words[len(MARK) + 3:])
            if len(note.splitlines()) > 1:
                raise AssertionError("a comment of several lines")
            lines.append(f"{indent}# {note}".rstrip() if note else "")
        else:
            lines.append(line)
    text = "\n".join(lines) + "\n"
    return text.replace("def __label__(", f"def {label}(", 1), origins(tree, source)


def body_of(writer, function):
    steps = function.body
    split = boundary(steps)
    if steps and isinstance(steps[-1], If) and returns_early(writer, steps[-1]):
        out, rest = statements_of(writer, steps[:min(split, len(steps) - 1)]), steps[split:-1]
        if rest:
            out += ([comment("")] if out else []) + statements_of(writer, rest)
        return out + early(writer, steps[-1])
    last, result = steps[-1] if steps else None, function.result
    if isinstance(last, Let) and len(last.targets) > 1 and is_tuple_of(result, last.targets) and isinstance(
            last.value, Apply) and isinstance(last.value.function, Function) and not errors_in(last):
        steps, result = steps[:-1], last.value      # return f(x), which gives all of them
    out = statements_of(writer, steps[:split])
    tail = statements_of(writer, steps[split:])
    if out and tail:
        out.append(comment(""))
    out += tail
    out.append(gast.Return(expression(writer, result)))
    out[-1].came_from = list(origins_in(result))
    return out


def boundary(steps):
    """The position where the backward sweep begins."""
    return max((k + 1 for k, step in enumerate(steps) if not _is_backward(step)), default=0)


def returns_early(writer, step):
    """Whether the result consists of the values that the last branch joins."""
    wanted = list(operands(writer.function.result))
    joined = {j.var for j in step.joins}
    return bool(wanted) and all(v in joined for v in wanted) and flat(writer.function.result) and \
        len(set(wanted)) == len(wanted)


def flat(node):
    return isinstance(node, (Var, Const)) or isinstance(node, Pack) and all(flat(i) for i in node.items)


def early(writer, step):
    arms = []
    for arm in ("then", "orelse"):
        env = {j.var: getattr(j, arm) for j in step.joins}
        block, result = list(getattr(step, arm)), writer.function.result
        block, result = inlined(writer, block, _replace(result, env))
        if any(isinstance(v, Const) and isinstance(v.value, Undefined) for v in _atoms(result)):
            arms.append(statements_of(writer, block))
        else:
            arms.append([*statements_of(writer, block), gast.Return(expression(writer, result))])
    first, second = arms
    if says_the_same(first, second):
        return first
    if not first:
        return [gast.If(negation(writer, step.test), second, [])]
    return [gast.If(test_of(writer, step.test), first, []), *second]


def inlined(writer, block, result):
    """(block, result) with results that the last statements compute as expressions in the result."""
    from_counts = {}
    for v in operands(result):
        from_counts[v] = from_counts.get(v, 0) + 1
    while block and isinstance(block[-1], Let) and len(block[-1].targets) == 1 and \
            from_counts.get(block[-1].targets[0]) == 1 and writer.counts.get(block[-1].targets[0], 0) <= 1 and \
            isinstance(block[-1].value, Apply) and not is_draw(block[-1].value) and \
            not updates(block[-1].value) and not errors_in(block[-1]):
        step = block.pop()
        result = _replace(result, {step.targets[0]: step.value})
    return block, result


def without(body, left_out):
    """Statements without some of them, in inner blocks too."""
    for s in body:
        for field in ("body", "orelse"):
            if getattr(s, field, None) and isinstance(s, (gast.For, gast.While, gast.If)):
                setattr(s, field, without(getattr(s, field), left_out) or [gast.Pass()])
    return [s for s in body if not any(s is n for n in left_out)]


def _is_backward(step):
    return step.origin is not None and step.origin.generated == 1


def _replace(node, env):
    from_env = env.get(node) if isinstance(node, Var) else None
    if from_env is not None:
        return from_env
    if isinstance(node, Pack):
        return Pack(node.kind, tuple(_replace(i, env) for i in node.items), node.keys, node.cls)
    return node


def _atoms(node):
    if isinstance(node, Pack):
        for i in node.items:
            yield from _atoms(i)
    else:
        yield node


def _printed(tree):
    node = gast.gast_to_ast(tree)
    return astor.to_source(node, pretty_source=_joined_lines, pretty_string=_plain_string,
                           source_generator_class=_Printer).strip() + "\n"


class _Printer(astor.SourceGenerator):
    """astor's printer with f-strings of its own: those of astor 0.8.1 need `ast.Str`, which left Python in 3.14."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self.write("f" + repr(_inside(node.values)))


def _inside(parts: list) -> str:
    """The text between the quotes of an f-string.

    >>> _inside(ast.parse("f'{{{x + 1!r:>{n}}'", mode="eval").body.values)
    '{{{x + 1!r:>{n}}'
    """
    text = ""
    for part in parts:
        if isinstance(part, ast.FormattedValue):
            conversion = f"!{chr(part.conversion)}" if part.conversion != -1 else ""
            spec = f":{_inside(part.format_spec.values)}" if isinstance(part.format_spec, ast.JoinedStr) else ""
            text += f"{{{ast.unparse(part.value)}{conversion}{spec}}}"
        else:
            text += part.value.replace("{", "{{").replace("}", "}}")
    return text


def _joined_lines(parts):
    return "".join(parts)


def _plain_string(text, *args, **kwargs):
    return repr(text)
