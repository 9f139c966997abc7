# SPDX-License-Identifier: Apache-2.0
"""bfloat16: its dtype and values come in; those of float16 come out, which represents bfloat16 in facts.

NumPy has no promotion rules for bfloat16, so those of float16 are used, with JAX's promotion.  A program may pass
`x.dtype` on; numbers of that dtype are made at run time.  A program that names float16 itself, or asks for its range,
would mean the other format and is refused.
"""
from typing import Any

import gast
import numpy as np

from gradscribe.ast_transform.reader.frames import fail
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.source.diagnose import RuleError

HALF = np.dtype(np.float16)
SPELLED = {"float16", "half", "f2", "<f2", "=f2", ">f2", "|f2"}
ALIKE = {"kind", "type", "itemsize", "ndim", "shape"}       # attributes of a dtype that both formats share


class Bfloat16(Exception):
    """Raised where a program for a device uses bfloat16, and float16 does not represent it yet."""


def names_bfloat16(value):
    """Whether a value is the scalar type ml_dtypes.bfloat16, or its NumPy dtype.

    >>> names_bfloat16(np.float16), names_bfloat16(np.dtype(float))
    (False, False)
    """
    return isinstance(value, np.dtype) and value.name == "bfloat16" or isinstance(value, type) and \
        value.__name__ == "bfloat16" and issubclass(value, np.generic)


def in_bfloat16(reader: Reader) -> bool:
    return reader.engine is not None and reader.engine.half == "bfloat16"


def as_bfloat16(reader: Reader, value: Any, node: gast.AST | None = None) -> Any:
    """A value of the program, with float16 in place of bfloat16; float16 itself is refused."""
    if names_bfloat16(value) and reader.engine is not None and reader.engine.platform == "cuda":
        if not in_bfloat16(reader):
            raise Bfloat16
        return HALF if isinstance(value, np.dtype) else np.float16
    if not in_bfloat16(reader) or reader.context.rule_depth:
        return value
    if value is np.float16 or isinstance(value, (np.dtype, np.generic, np.ndarray)) and getattr(
            value, "dtype", value) == HALF or type(value) is str and value in SPELLED:
        fail(reader, RuleError, "np.float16 and bfloat16 do not meet in one function", node,
             "Write x.dtype for the dtype of an array; give arrays of one of the two formats.")
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype.name == "bfloat16" or \
            type(value) is str and value == "bfloat16":
        fail(reader, RuleError, "bfloat16 comes into a function by its arguments", node,
             "Give the array to the function; write ml_dtypes.bfloat16, or x.dtype, for the dtype.")
    return value


def of_dtype(reader: Reader, dtype: Any, name: str, node: gast.AST | None) -> str:
    """The name of an attribute of a dtype, which is refused if the two formats differ in it."""
    if in_bfloat16(reader) and dtype == HALF and name not in ALIKE:
        fail(reader, RuleError, f"the {name} of bfloat16 is not known to NumPy", node,
             "Write the number, or compute it in single precision: x.astype(np.float32).")
    return name


def check_finfo(reader: Reader, dtype: Any, node: gast.AST | None) -> None:
    """Refuse np.finfo of bfloat16."""
    if in_bfloat16(reader) and np.dtype(dtype) == HALF:
        fail(reader, RuleError, "np.finfo knows nothing of bfloat16", node,
             "Write the number: its eps is 2 ** -7, its largest number is 3.39e38.")
