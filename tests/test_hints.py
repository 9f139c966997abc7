"""Functions that another file calls say what they take and give; mypy (`make types`) checks what they say."""
import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = "gradscribe", "ast_transform", "codegen", "runtime"
# whose functions are text for the compiler, or for Numba: records and their parts, the runtime, stubs
TEXTS = {"runtime", "rules", "shared_memory.py"}


def name_of(file):
    parts = file.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "gradscribe" else ("gradscribe", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(f): f for folder in FOLDERS for f in sorted((ROOT / folder).rglob("*.py"))}
TREES = {name: ast.parse(file.read_text()) for name, file in FILES.items()}


def used():
    """(module, function) of all that a file has of another by its name."""
    for tree in TREES.values():
        modules = {}
        for n in ast.walk(tree):
            for a in n.names if isinstance(n, ast.ImportFrom) and n.module in TREES else ():
                if f"{n.module}.{a.name}" in TREES:
                    modules[a.asname or a.name] = f"{n.module}.{a.name}"
                else:
                    yield n.module, a.name
        for n in ast.walk(tree):
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id in modules:
                yield modules[n.value.id], n.attr


def is_hinted(function):
    a = function.args
    given = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    return function.returns is not None and all(g.annotation is not None for g in given)


def test_what_other_files_call_has_hints():
    wanted = set(used())
    bare = [f"{FILES[name].relative_to(ROOT)}:{f.lineno} {f.name}" for name, tree in TREES.items()
            if TEXTS.isdisjoint(FILES[name].parts) for f in tree.body
            if isinstance(f, ast.FunctionDef) and (name, f.name) in wanted and not is_hinted(f)]
    assert not bare
    assert len(wanted) > 1000
