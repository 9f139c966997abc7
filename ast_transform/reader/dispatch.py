# SPDX-License-Identifier: Apache-2.0
"""Tables of the reader's functions: by kind of node, by the function that is called, and by name for late binding.

Reading a tree is mutually recursive: an expression contains calls, and a call reads a function's expressions.  Modules
of this folder import each other in one direction; calls in the other direction go through this module.

- `EXECUTE`, `EVALUATE`, `FITS`: by the class of a statement, an expression, a pattern
- `SPECIAL`: by the function that is called, if the reader handles its calls specially
- the functions listed below: by name; the module that defines one marks it with `late`

>>> from gradscribe.ast_transform.reader import calls, dispatch
>>> dispatch.call_value is calls.call_value, len in dispatch.SPECIAL
(True, True)
"""
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

EXECUTE: dict[str, Callable[..., Any]] = {}
EVALUATE: dict[str, Callable[..., Any]] = {}
FITS: dict[str, Callable[..., Any]] = {}
SPECIAL: dict[Any, Callable[..., Any]] = {}

about_to_change: Callable[..., Any]
append_to: Callable[..., Any]
array_attribute: Callable[..., Any]
array_of: Callable[..., Any]
array_of_grown: Callable[..., Any]
as_parameter: Callable[..., Any]
binary: Callable[..., Any]
call_known: Callable[..., Any]
call_method: Callable[..., Any]
call_now: Callable[..., Any]
call_partial: Callable[..., Any]
call_value: Callable[..., Any]
compare: Callable[..., Any]
comprehension: Callable[..., Any]
containers_held: Callable[..., Any]
converted: Callable[..., Any]
copied_list: Callable[..., Any]
effect: Callable[..., Any]
element_of: Callable[..., Any]
elements_at: Callable[..., Any]
elements_of: Callable[..., Any]
evaluate: Callable[..., Any]
execute: Callable[..., Any]
execute_for: Callable[..., Any]
filter_keeps: Callable[..., Any]
grown_item: Callable[..., Any]
grown_list: Callable[..., Any]
grown_method: Callable[..., Any]
hashed: Callable[..., Any]
is_equal: Callable[..., Any]
item_of: Callable[..., Any]
join_containers: Callable[..., Any]
join_values: Callable[..., Any]
known_part: Callable[..., Any]
lift: Callable[..., Any]
list_as_index: Callable[..., Any]
negated: Callable[..., Any]
one_fact: Callable[..., Any]
operands_as_parameters: Callable[..., Any]
operation: Callable[..., Any]
place_of: Callable[..., Any]
pop_from: Callable[..., Any]
python_sum: Callable[..., Any]
quoted_tree: Callable[..., Any]
read_attribute: Callable[..., Any]
read_block: Callable[..., Any]
read_index: Callable[..., Any]
renamed_choices: Callable[..., Any]
report_effect: Callable[..., Any]
rule_call: Callable[..., Any]
run: Callable[..., Any]
shown_by_dict_view: Callable[..., Any]
sorted_items: Callable[..., Any]
truth_value: Callable[..., Any]
understood: Callable[..., Any]
unroll_for_conflict: Callable[..., Any]
unrolled_loop: Callable[..., Any]
updated_arrays: Callable[..., Any]
walk_over: Callable[..., Any]
write_state: Callable[..., Any]


def late(function: Function) -> Function:
    """Register the definition of one of the functions declared above."""
    assert function.__name__ in inspect.get_annotations(sys.modules[__name__]), function.__name__
    globals()[function.__name__] = function
    return function


def executes(name: str) -> Callable[[Function], Function]:
    """A decorator that registers the function for statements of this class."""
    return _entered(EXECUTE, name)


def evaluates(name: str) -> Callable[[Function], Function]:
    """A decorator that registers the function for expressions of this class."""
    return _entered(EVALUATE, name)


def fits(name: str) -> Callable[[Function], Function]:
    """A decorator that registers the function for patterns of this class."""
    return _entered(FITS, name)


def _entered(table, name):
    def enter(function):
        table[name] = function
        return function
    return enter
