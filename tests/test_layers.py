"""Imports point one way: gradscribe -> codegen -> ast_transform -> runtime; and a file has one job.

Inside `ast_transform`: pipeline -> transforms -> passes -> rules, analysis -> core, source.  An import inside a
function hides an arrow, so it is allowed only for packages that are slow to import or optional, named below.
"""
import ast
import graphlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ["runtime", "ast_transform", "codegen", "gradscribe"]               # the lowest first
INNER = {"core": 0, "source": 0, "rules": 1, "analysis": 1, "passes": 2, "reader": 2,         # inside ast_transform
         "transforms": 3, "mapping": 4, "pipeline": 5}
LAZY = {"numba", "llvmlite", "scipy", "IPython", "rich", "pygments", "tqdm", "torch",         # imported when needed
        "mpi4py", "cuda", "numba_cuda_mlir"}
LAZY_PARTS = {"gradscribe.codegen.jit_cpu", "gradscribe.codegen.targets.cuda.build",
              "gradscribe.codegen.shared_library", "gradscribe.adjoint_kernel", "gradscribe.display",
              "gradscribe.magic"}       # the lowering, HTML
ONE_FILE = {"astor": "codegen/emit.py"}                                      # used by one file only
LINES_OF_A_FUNCTION, ATTRIBUTES_OF_A_CLASS = 61, 15
LICENCE = "# SPDX-License-Identifier: Apache-2.0"

FILES = sorted(p for layer in LAYERS for p in (ROOT / layer).rglob("*.py"))
NAMES = [p.relative_to(ROOT).as_posix() for p in FILES]


def module_name(path):
    """`codegen/emit.py` is imported as gradscribe.codegen.emit, `gradscribe/api.py` as gradscribe.api."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] != "gradscribe":
        parts.insert(0, "gradscribe")
    if parts[-1] == "__init__":
        parts.pop()
    return parts


MODULES = {".".join(module_name(p)) for p in FILES}


def layer_of(parts):
    """(layer, inner) of a dotted name's parts; the face is what is under gradscribe and in no other folder."""
    if len(parts) < 2 or parts[1] not in LAYERS[:-1]:
        return "gradscribe", None
    inner = parts[2] if parts[1] == "ast_transform" and len(parts) > 2 else None
    return parts[1], inner


def imported(path, text, hints=False):
    """(parts, line, inside a function) of each module that a file imports; hints: as those, what is for hints only."""
    tree = ast.parse(text)
    here = module_name(path)
    package = here if path.name == "__init__.py" else here[:-1]
    in_function = {id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                   for n in ast.walk(f)}
    in_function |= {id(n) for f in ast.walk(tree) if isinstance(f, ast.If) and "TYPE_CHECKING" in ast.unparse(f.test)
                    for n in ast.walk(f)} if hints else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [a.name.split(".") for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else []
            stem = base + (node.module.split(".") if node.module else [])
            targets = [stem + [a.name] if ".".join(stem + [a.name]) in MODULES else stem for a in node.names]
        else:
            continue
        for parts in targets:
            yield parts, node.lineno, id(node) in in_function


def faults(path, text):
    here = module_name(path)
    layer, inner = layer_of(here)
    for parts, line, hidden in imported(path, text):
        where = f"{path.relative_to(ROOT)}:{line}"
        name = ".".join(parts)
        if hidden and parts[0] not in LAZY and name not in LAZY_PARTS:
            yield f"{where}: imports {name} inside a function"
        if parts[0] in ONE_FILE and path.relative_to(ROOT).as_posix() != ONE_FILE[parts[0]]:
            yield f"{where}: only {ONE_FILE[parts[0]]} imports {parts[0]}"
        if parts[0] in LAYERS[:-1]:
            yield f"{where}: {name} is installed as gradscribe.{name}"
        if parts[0] != "gradscribe":
            continue
        other, other_inner = layer_of(parts)
        if LAYERS.index(other) > LAYERS.index(layer):
            yield f"{where}: {layer} imports {name}, which stands above it"
        if layer == other == "ast_transform" and inner in INNER and other_inner in INNER:
            if INNER[other_inner] > INNER[inner]:
                yield f"{where}: {inner} imports {name}, which stands above it"


def test_imports_point_down():
    found = [fault for path in FILES for fault in faults(path, path.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


def test_an_arrow_that_points_up_is_found():
    for name, text, count in [
        ("runtime/__init__.py", "import gradscribe.codegen.emit", 1),
        ("ast_transform/core/rule.py", "from ..passes import anf", 1),
        ("ast_transform/core/rule.py", "def f():\n    import json", 1),
        ("codegen/__init__.py", "import astor", 1),
        ("codegen/__init__.py", "from gradscribe.api import grad", 1),
        ("codegen/jit_cpu.py", "from ast_transform.core import form", 1),
        ("codegen/jit_cpu.py", "from ..ast_transform.core import form\ndef f():\n    import numba", 0),
    ]:
        assert len(list(faults(ROOT / name, text))) == count


def test_modules_do_not_import_each_other():
    """The graph of imports has no cycle; what a function imports when it is called is no edge."""
    edges = {}
    for path in FILES:
        here = ".".join(module_name(path))
        edges[here] = {".".join(parts) for parts, _, hidden in imported(path, path.read_text(encoding="utf-8"), True)
                       if not hidden and ".".join(parts) in MODULES} - {here}
    order = graphlib.TopologicalSorter({name: {other for other in others if not name.startswith(f"{other}.")}
                                        for name, others in edges.items()})
    order.prepare()         # raises CycleError, which names the cycle


def test_the_architecture_has_a_paragraph_for_every_folder():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = sorted({p.parent.relative_to(ROOT).as_posix() for p in FILES})
    assert not [folder for folder in folders if f"**`{folder}/`**" not in text]


def test_files_functions_and_classes():
    """Each file has its licence, each function fits one screen, and each class holds what a person can keep in mind."""
    for path, name in zip(FILES, NAMES):
        text = path.read_text(encoding="utf-8")
        assert text.splitlines()[0] == LICENCE, name
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno - node.lineno < LINES_OF_A_FUNCTION, f"{name}: {node.name} is long"
            elif isinstance(node, ast.ClassDef):
                assert len(attributes(node)) <= ATTRIBUTES_OF_A_CLASS, f"{name}: {node.name} has many attributes"


def attributes(node):
    """What the methods of a class set on `self`, and its annotated fields."""
    return {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
            and isinstance(n.value, ast.Name) and n.value.id == "self"} | {
                n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}


def test_functions_are_known_by_their_records():
    """What is true of one function stands in its record: tests of functions by name elsewhere may only become fewer."""
    function = r"(np|operator|math|builtins)\.[a-z]"
    asked = re.compile(rf"\bis (not )?{function}|\bis_application\([^()]*(\([^()]*\))?[^()]*, {function}")
    found = sum(len(asked.findall(path.read_text(encoding="utf-8"))) for path, name in zip(FILES, NAMES)
                if "rules/" not in name)
    assert found <= 99
