"""Kinds of arguments from annotations, for the source before any call."""
import inspect
import re

import numpy as np

from gradscribe.ast_transform.core.kinds import Array, Length, Symbol
from gradscribe.ast_transform.source.diagnose import LanguageError

_DTYPES = {"Float": np.float64, "Float64": np.float64, "Float32": np.float32, "Int": np.int64, "Complex": np.complex128,
           "Bool": np.bool_}


def annotated_facts(transformed):
    """(name, fact) for each parameter; LanguageError where the annotations do not say."""
    base = transformed.base
    while hasattr(base, "base"):
        base = base.base
    out = []
    for p in inspect.signature(base).parameters.values():
        if p.default is not p.empty and p.annotation is p.empty:
            continue
        fact = _fact(p.name, p.annotation)
        if fact is None:
            raise LanguageError(
                f"the kind of {p.name} is not known before a call",
                None,
                'Call the function, use source_for(*args), or annotate: x: float, x: Float[np.ndarray, "n d"].',
            )
        out.append((p.name, fact))
    return out


def _fact(name, annotation):
    if annotation in (float, int, complex, bool):
        length = Length(Symbol(name)) if annotation is int else None
        return Array(annotation, (), length)
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "") or str(annotation)
    if text in ("float", "int", "complex", "bool"):
        return _fact(name, {"float": float, "int": int, "complex": complex, "bool": bool}[text])
    found = re.match(r"^(?:jaxtyping\.)?(\w+)\[[^,]+,\s*['\"]([^'\"]*)['\"]\]$", text)
    if found is None and hasattr(annotation, "dim_str"):
        kind, dims = type(annotation).__name__, annotation.dim_str
        kind = text.split("[")[0]
    elif found is not None:
        kind, dims = found.groups()
    else:
        return None
    if kind not in _DTYPES:
        return None
    symbols = [
        Length(None, int(d)) if d.isdigit() else Length(Symbol(f"{name}.shape[{k}]", True))
        for k, d in enumerate(dims.split())
    ]
    return Array(np.dtype(_DTYPES[kind]), tuple(symbols))
