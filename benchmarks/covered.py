"""What is there of each function: `make rules` prints the table and writes docs/coverage.md.

    python benchmarks/covered.py               print, and write the file
    python benchmarks/covered.py --check       only say whether the file is what would be written now

Names are those with a counterpart in the installed JAX, and the methods and attributes of its arrays.  Each entry is
measured: a sample of the rule, or the line in PROBES, is transformed and run.
"""
import argparse
import collections
import functools
import sys
import warnings
from pathlib import Path

import batches
import numpy as np
from rule_calls import call_of, from_text, leaves, names, samples_of

import gradscribe as gs
from gradscribe.ast_transform.core.rule import RULES
from gradscribe.ast_transform.passes.activity import rule_of

FILE = Path(__file__).resolve().parent.parent / "docs" / "coverage.md"
COLUMNS = ("name", "kind", "value", "jvp", "vjp", "second", "batch", "Numba", "CUDA", "complex")
X, M = np.array([0.3, -0.6, 1.2, 0.8]), np.array([[1.5, 0.2, 0.1], [0.3, 1.1, -0.2], [0.0, 0.4, 2.0]])

# Names that a pass reads, or that are refused: what is run for them; m is a matrix, x a vector.
PROBES = {
    "np.array_repr": "return np.array_repr(x)",
    "np.array_str": "return np.array_str(x)",
    "np.astype": "return np.astype(x, np.float32)",
    "np.broadcast_shapes": "return x * np.ones(np.broadcast_shapes((4,), (1,)))",
    "np.can_cast": "return x * np.can_cast(x.dtype, np.float64)",
    "np.einsum_path": "return np.einsum_path('i,i', x, x)",
    "np.fill_diagonal": "y = m.copy()\n    np.fill_diagonal(y, x[0])\n    return y",
    "np.from_dlpack": "return np.from_dlpack(x)",
    "np.frombuffer": "return np.frombuffer(x)",
    "np.fromfile": "return np.fromfile('x')",
    "np.fromiter": "return np.fromiter((v * v for v in x), float)",
    "np.frompyfunc": "return np.frompyfunc(abs, 1, 1)(x)",
    "np.fromstring": "return np.fromstring('1 2', sep=' ') * x[0]",
    "np.get_printoptions": "return np.get_printoptions()",
    "np.isdtype": "return x * np.isdtype(x.dtype, 'real floating')",
    "np.isscalar": "return x * np.isscalar(2.0)",
    "np.issubdtype": "return x * np.issubdtype(x.dtype, np.floating)",
    "np.iterable": "return x * np.iterable(x)",
    "np.load": "return np.load('x')",
    "np.piecewise": "return np.piecewise(x, [x > 0.5], [lambda v: v * v, 0.0])",
    "np.place": "y = x.copy()\n    np.place(y, y > 0.5, [2.0])\n    return y",
    "np.polydiv": "return np.polydiv(x, x[:2])",
    "np.printoptions": "with np.printoptions(precision=3):\n        return x",
    "np.save": "np.save('x', x)\n    return x",
    "np.promote_types": "return x.astype(np.promote_types(np.float32, np.float64))",
    "np.put": "y = np.zeros(6)\n    np.put(y, np.array([0, 2, 3, 5]), x)\n    return y",
    "np.put_along_axis": "y = m.copy()\n    np.put_along_axis(y, np.array([[0], [2], [1]]), x[0], 1)\n    return y",
    "np.result_type": "return x.astype(np.result_type(np.float32, np.float64))",
    "np.savez": "np.savez('x', x)\n    return x",
    "np.set_printoptions": "np.set_printoptions(precision=3)\n    return x",
    "operator.getitem": "return operator.getitem(x, slice(1, None))",
    "ndarray.T": "return m.T @ x[:3]",
    "ndarray.all": "return x * (x > -9).all()",
    "ndarray.any": "return x * (x > 0).any()",
    "ndarray.argmax": "return x[x.argmax()]",
    "ndarray.argmin": "return x[x.argmin()]",
    "ndarray.argpartition": "return x[x.argpartition(1)]",
    "ndarray.argsort": "return x[x.argsort()]",
    "ndarray.astype": "return x.astype(np.float32)",
    "ndarray.byteswap": "return x.byteswap()",
    "ndarray.choose": "return np.array([0, 1]).choose([x[:2], x[2:4]])",
    "ndarray.clip": "return x.clip(-0.5, 1.0)",
    "ndarray.compress": "return x.compress(np.array([True, False, True, True]))",
    "ndarray.conj": "return x.conj()",
    "ndarray.conjugate": "return x.conjugate()",
    "ndarray.copy": "return x.copy()",
    "ndarray.cumprod": "return x.cumprod()",
    "ndarray.cumsum": "return x.cumsum()",
    "ndarray.device": "return x if x.device else x",
    "ndarray.diagonal": "return m.diagonal()",
    "ndarray.dot": "return m.dot(x[:3])",
    "ndarray.dtype": "return x.astype(x.dtype)",
    "ndarray.flat": "return x.flat[1:]",
    "ndarray.flatten": "return m.flatten()",
    "ndarray.imag": "return x.imag",
    "ndarray.item": "return x[1].item() * x",
    "ndarray.itemsize": "return x * x.itemsize",
    "ndarray.mT": "return m.mT @ x[:3]",
    "ndarray.max": "return m.max(axis=1)",
    "ndarray.mean": "return m.mean(axis=0)",
    "ndarray.min": "return m.min()",
    "ndarray.nbytes": "return x * x.nbytes",
    "ndarray.ndim": "return x * x.ndim",
    "ndarray.nonzero": "return x[(x > 0).nonzero()]",
    "ndarray.prod": "return x.prod()",
    "ndarray.ravel": "return m.ravel()",
    "ndarray.real": "return x.real",
    "ndarray.repeat": "return x.repeat(2)",
    "ndarray.reshape": "return x.reshape(2, 2)",
    "ndarray.round": "return x + x.round(1)",
    "ndarray.searchsorted": "return x[np.array([0.0, 1.0]).searchsorted(x)]",
    "ndarray.shape": "return x * x.shape[0]",
    "ndarray.size": "return x * x.size",
    "ndarray.sort": "y = x.copy()\n    y.sort()\n    return y",
    "ndarray.squeeze": "return x[None].squeeze()",
    "ndarray.std": "return x.std()",
    "ndarray.sum": "return m.sum(axis=-1)",
    "ndarray.swapaxes": "return m.swapaxes(0, 1)",
    "ndarray.take": "return x.take(np.array([1, 0]))",
    "ndarray.to_device": "return x.to_device('cpu')",
    "ndarray.trace": "return m.trace() * x",
    "ndarray.transpose": "return m.transpose()",
    "ndarray.var": "return m.var(axis=0)",
    "ndarray.view": "return x.view()",
}
Row = collections.namedtuple("Row", [c.lower() for c in COLUMNS])


def quietly(run):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()


def outcome(run):
    try:
        quietly(run)
    except gs.TransformError as error:
        return f"refused: {str(error).splitlines()[0]}"
    except Exception as error:
        return f"fails: {type(error).__name__}"
    return "yes"


def moving(function, given):
    """The function of its floating-point arguments alone, and these."""
    places = [k for k, v in enumerate(given) if np.asarray(v).dtype.kind in "fc"]
    inside = ", ".join(f"a{k}" for k in range(len(given)))
    text = f"def few({', '.join(f'a{k}' for k in places)}):\n    return call({inside})\n"
    space = {"call": function, **{f"a{k}": v for k, v in enumerate(given) if k not in places}}
    return from_text(text, "few", space), tuple(given[k] for k in places)


def like(value):
    if hasattr(value, "_fields") and type(value).__name__.startswith("Unique"):
        return type(value)(*map(like, value))
    return tuple(map(like, value)) if isinstance(value, tuple) else list(map(like, value)) \
        if isinstance(value, list) else None if value is None else np.ones_like(np.asarray(value))[()] \
        if np.asarray(value).dtype.kind in "fc" else None


def derivatives(function, given):
    """(jvp, vjp, second order) for arguments like these."""
    few, points = moving(function, given)
    if not points:
        return ("", "", "")
    value = quietly(lambda: few(*points))
    if not any(np.asarray(v).dtype.kind in "fc" for v in leaves(value)):
        return ("", "", "")
    dots = tuple(np.ones_like(np.asarray(p))[()] for p in points)
    dy = like(value)
    inside = ", ".join(f"b{k}" for k in range(len(points)))
    pull = from_text(f"def pulled({inside}):\n    return pull(dy, {inside})\n", "pulled",
                     {"pull": gs.vjp_of(few), "dy": dy})
    return (outcome(lambda: gs.jvp(few, points, dots)), outcome(lambda: gs.vjp_of(few)(dy, *points)),
            outcome(lambda: gs.jvp(pull, points, dots)))


def complexes(function, given):
    """Whether complex arguments have an adjoint; blank where NumPy has no complex values of it."""
    few, points = moving(function, given)
    points = tuple(np.asarray(p) * (1 + 0.1j) for p in points)
    try:
        value = quietly(lambda: few(*[p[()] for p in points]))
    except Exception:
        return ""
    if not points or not any(np.asarray(v).dtype.kind == "c" for v in leaves(value)):
        return ""
    found = outcome(lambda: gs.vjp_of(few)(like(value), *[p[()] for p in points]))
    return "yes" if found == "yes" else "no"


def compiles(function, rule):
    from gradscribe.codegen import lowering
    from gradscribe.codegen.entry_forms import form_of
    from gradscribe.codegen.lowered import LAZY
    if rule.options.get("rewrite") is True:
        return "yes"
    return "yes" if any(f in LAZY or form_of(f) or f in lowering.STATEMENTS for f in rule.functions) else "no"


def scalar_form(function, rule):
    from gradscribe.codegen.entry_forms import form_of
    return "scalar" if any(form_of(f) is not None for f in rule.functions) else ""


def short(text):
    return text.partition(":")[0]


def row(name, function):
    rule = None if function is None else rule_of(function)
    probe = PROBES.get(name)
    if rule is None or rule.samples is None and probe:
        return probed(name, probe, rule)
    if rule.samples is None:
        return Row(name, rule.kind, "yes", "", "", "", "", compiles(function, rule), scalar_form(function, rule), "")
    found = None
    for k in range(len(samples_of(rule))):
        try:
            call, given = call_of(function, *samples_of(rule)[k])
            quietly(functools.partial(call, *given))
        except Exception:
            continue                        # a sample of another function of the record
        found = k
        if any(np.size(v) > 1 for v in given):
            break
    if found is None:
        return Row(name, rule.kind, "fails", *[""] * 7)
    call, given = call_of(function, *samples_of(rule)[found])
    constant = rule.kind == "constant"
    jvp, vjp, second = ("", "", "") if constant else map(short, derivatives(call, given))
    count = len(given)
    batch = batched(rule, found, count)
    return Row(name, rule.kind, "yes", jvp, vjp, second, batch, compiles(function, rule), scalar_form(function, rule),
               "" if constant else complexes(call, given))


def batched(rule, k, count):
    """form: whichever arguments are mapped; some: for some of them, a loop for the others."""
    kinds = {batches.check(rule, k, axes, 3)[0] for axes in batches.ways(count)} if count else set()
    return "" if not kinds else kinds.pop() if len(kinds) == 1 else "some" if kinds == {"form", "loop"} else "wrong"


def probed(name, probe, rule):
    import operator
    if probe is None:
        return Row(name, "not known", "no", *[""] * 7)
    function = from_text(f"def probe(x, m):\n    {probe}\n", "probe", {"operator": operator})
    value = outcome(lambda: gs.vmap(function, (None, None), None, axis_size=1)(X, M))
    if value != "yes":
        return Row(name, value if value.startswith("refused") else "refused", "no", *[""] * 7)
    jvp, vjp, second = map(short, derivatives(function, (X, M)))
    rewritten = outcome(lambda: gs.vmap(function, strategy="rewrite")(np.stack([X] * 3), np.stack([M] * 3)))
    batch = "form" if rewritten == "yes" else "loop"
    numba = "yes" if outcome(lambda: gs.jit(function)(X, M)) == "yes" else "no"
    return Row(name, "read as a call" if rule is None else rule.kind, "yes", jvp, vjp, second, batch, numba, "", "")


def table():
    import scipy.linalg
    import scipy.signal
    import scipy.special
    import scipy.stats  # noqa: F401  (their tables are read)
    RULES.complete()
    return [row(name, function) for name, (function, _) in names().items()]


def totals(rows):
    known = [r for r in rows if r.value == "yes" or r.kind.startswith("refused")]
    active = [r for r in rows if r.vjp or r.jvp]
    yield f"{len(known)} of {len(rows)} names covered: {sum(r.value == 'yes' for r in rows)} understood, " \
          f"{sum(r.kind.startswith('refused') for r in rows)} refused with a reason"
    for column in ("jvp", "vjp", "second"):
        n = sum(getattr(r, column) == "yes" for r in active)
        yield f"{column}: {n} of {len(active)} with a derivative"
    understood = [r for r in rows if r.value == "yes"]
    yield f"Numba: {sum(r.numba == 'yes' for r in understood)} of {len(understood)}"
    batch = [r for r in understood if r.batch]
    yield f"batch: {sum(r.batch in ('form', 'some') for r in batch)} of {len(batch)} by a whole-batch form (of " \
          f"{sum(r.batch == 'some' for r in batch)}, where some arguments are the same for all), the rest by a loop"
    yield f"CUDA: {sum(bool(r.cuda) for r in rows)} by a scalar form; complex: {sum(r.complex == 'yes' for r in rows)}"


def text(rows):
    import jax
    lines = [
        "# What is covered", "",
        f"Written by `make rules`. The names are those of numpy, numpy.linalg, numpy.fft, math and scipy.special that "
        f"JAX {jax.__version__} has too,",
        "those of scipy.stats and scipy.signal that have a record, the methods and attributes of JAX's arrays,",
        "and the operators. A blank cell: there is no derivative.", "",
        *(f"- {line}" for line in totals(rows)), "",
        "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS),
        *("| " + " | ".join([f"`{r.name}`", *(v.replace("|", "\\|") for v in r[1:])]) + " |" for r in rows)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rows = table()
    if options.check:
        return FILE.read_text(encoding="utf-8") != text(rows)
    widths = [max(len(str(r[k])[:34]) for r in [COLUMNS, *rows]) for k in range(len(COLUMNS))]
    for r in [COLUMNS, *rows]:
        print("  ".join(str(v)[:34].ljust(w) for v, w in zip(r, widths)).rstrip())
    print(*totals(rows), sep="\n")
    FILE.write_text(text(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
