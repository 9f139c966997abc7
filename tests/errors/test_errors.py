"""What is refused: the class, and the whole message, as golden/<case>.txt has it."""
import difflib
import re
from pathlib import Path

import pytest
from errors import cases, every

from gradscribe import KindError, TransformError

GOLDEN = Path(__file__).resolve().parent / "golden"
FILES = {m.__file__ for m in every.MODULES}
PLACELESS = {"empty_argnums",                        # there is no line of the user's function to show
    "custom_gradient_of_no_function", "values_of_what_a_forward_half_is_not_given",
    "source_not_available", "lambda_not_available", "changed_file", "function_made_under_another_name",
    "target_that_there_is_not", "cores_for_a_device", "graph_for_the_processor", "one_order_for_the_processor",
    "no_checks_on_the_processor", "fewer_bits_for_the_processor",
    "platform_that_there_is_not", "platform_without_a_function",
    "builtin_function", "ufunc_itself", "class_as_function", "number_as_function",
    "argnums_float", "argnums_string", "argnums_bool", "argnames_number",
    "argnums_with_a_float", "static_argnums_of_a_name", "custom_derivative_of_a_number",
    "dump_of_a_plain_function", "dump_before_a_call", "dump_of_a_compiled_function", "dump_of_a_large_constant",
    "jvp_counts_differ", "jvp_of_bare_values", "hvp_counts_differ", "linearize_counts_differ",
    "checkpoint_of_another_policy", "vmap_by_another_strategy", "vmap_over_a_name",
    "container_of_no_class", "labels_on_many_devices",
    "check_of_a_function_without_a_rule", "dump_of_what_a_local_class_made", "dump_of_what_has_no_text",
    "error_bound_of_a_number", "inputs_below_zero",
    "jet_at_a_bare_number", "jet_with_a_series_too_few", "jet_with_a_bare_derivative",
    "jet_with_series_of_different_lengths", "jet_of_no_order", "primal_without_a_series", "budget_of_unknown_units",
    "offload_to_the_host", "offload_of_a_saved_name", "offload_to_another_machine", "policy_for_one_text_as_names",
    "both_of_a_policy_that_offloads", "both_of_a_function", "offload_from_another_machine",
    "sparse_jacobian_of_a_number", "sparse_jacobian_with_two_argnums",
    "hessian_with_half_a_pattern", "hessian_by_columns", "coloring_of_another_partition", "coloring_of_text",
    "star_coloring_of_what_is_not_symmetric", "sparse_jacobian_by_a_truth_value", "pattern_of_one_row",
    "coloring_in_an_order_that_there_is_not", "coloring_in_an_order_of_too_few",
}
# what is asked of a file or on the command line has no place in a function
PLACELESS |= {name for name, (_, case) in cases.CASES.items()
              if case.__module__.endswith(("cases_review", "cases_devices", "cases_gpus", "cases_live"))} - {
                  "shard_map_inside", "half_of_a_sum"}

# gs.map_over's engines and examples have none either; some of the functions that it maps have
PLACELESS |= {name for name, (_, case) in cases.CASES.items()
              if case.__module__.endswith("cases_sweeps") and not name.startswith("mapped_function_")}
PLACELESS |= {"mapped_function_without_text"}


def raised(name):
    with pytest.raises(TransformError) as caught:
        cases.CASES[name][1]()
    return caught.value


@pytest.mark.golden
@pytest.mark.parametrize("name", cases.CASES)
def test_message(name, request):
    error = raised(name)
    text = f"{type(error).__name__}: {error}\n"
    path = GOLDEN / f"{name}.txt"
    if request.config.getoption("--rewrite-golden"):
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    assert path.exists(), f"no golden file {path.name}: run `make golden` and look at what it shows"
    expected = path.read_text(encoding="utf-8")
    change = "\n".join(difflib.unified_diff(expected.splitlines(), text.splitlines(), "golden", "now", lineterm=""))
    assert text == expected, f"{name} is not what it was:\n{change}"


@pytest.mark.parametrize("name", cases.CASES)
def test_class_and_place(name):
    error = raised(name)
    assert type(error) is cases.CASES[name][0]
    assert isinstance(error, TypeError) == isinstance(error, KindError)
    if name in PLACELESS:
        assert error.origin is None
        return
    place = error.origin
    while place.caller is not None:         # the first place is in the case itself
        place = place.caller
    code = cases.CASES[name][1].__code__
    last = max(line for *_, line in code.co_lines() if line)
    inside = place.file in FILES and code.co_firstlineno <= place.line <= last
    assert inside or place.file.endswith(("helpers.py", "deep.py"))
    assert re.search(r"^ +\^+$", str(error), re.MULTILINE)


def test_no_orphans():
    assert {p.stem for p in GOLDEN.glob("*")} == set(cases.CASES)


def test_how_many():
    assert len(cases.CASES) >= 45
