"""The functions that have rules, and what is known of each: `python benchmarks/rules_table.py`."""
import importlib
import pkgutil
from collections import Counter

from gradscribe.ast_transform import rules
from gradscribe.ast_transform.core.rule import RULES

PARTS = ("partial_", "vjp_", "jvp_", "batch_", "shape")


def module_names():
    return sorted(m.name for m in pkgutil.iter_modules(rules.__path__))


def name_of(function):
    module = getattr(function, "__module__", None) or "builtins"
    module = {"builtins": "", "_operator": "operator"}.get(module, module)
    module = "np" + module[5:] if module.split(".")[0] == "numpy" else module
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", repr(function))
    if type(function).__name__ == "ufunc":
        module = "np"
    return f"{module}.{name}" if module else name


def main():
    for name in module_names():
        importlib.import_module(f"{rules.__name__}.{name}")
    records = {id(rule): rule for rule in RULES.values()}.values()
    rows = []
    for rule in records:
        names = ", ".join(sorted({name_of(f) for f in rule.functions}))
        written = [p.rstrip("_") for p in PARTS if any(n.startswith(p) for n in rule.parts)]
        rows.append((rule.kind, names, ", ".join(rule.active if rule.has_derivative() else ()), " ".join(written)))
    rows.sort()
    print(f"{'kind':12} {'function':48} {'derivatives in':20} written by hand")
    for kind, names, active, written in rows:
        print(f"{kind:12} {names:48} {active:20} {written}")
    kinds = Counter(r[0] for r in rows)
    print(f"\n{len(rows)} records for {len(RULES)} functions: "
          + ", ".join(f"{n} {k}" for k, n in sorted(kinds.items())))


if __name__ == "__main__":
    main()
