"""One bad input each.  A message shows lines of this file: add new cases at the end, then `make golden`.

A case asks for the emitted source where it can, so that nothing is run: what is refused is refused when transforming.
"""
import cmath
import math
import runpy
import tempfile
import types
from pathlib import Path
from typing import NamedTuple

import numpy as np
from errors import helpers

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import KindError, LanguageError, RuleError, ShapeError

CASES = {}
X, LONG = np.array([0.5, 1.5, 2.5]), np.linspace(0.1, 0.9, 40)         # loops over LONG are not written out
A, TALL = np.arange(1.0, 7.0).reshape(2, 3), np.arange(80.0).reshape(40, 2)
N = np.array([1, 2, 3])
Z = np.array([1.0 + 1.0j, 2.0 - 1.0j])
TOTAL = 0.0
SEEN = [1.0]
TABLE = {"w": 2.0}


class Layer:
    def __init__(self, w):
        self.w = w

    def __rmul__(self, other):
        return Layer(self.w * other)


class Watched(Layer):
    def __getattr__(self, name):
        return 0.0


class Point(NamedTuple):
    x: float
    y: float


def refused(error):
    """A case whose call must raise this class."""
    def add(case):
        CASES[case.__name__] = (error, case)
        return case
    return add


def emitted(f, *args, **kwargs):
    return gs.grad(f).source_for(*args, **kwargs)


# source that cannot be had

@refused(LanguageError)
def source_not_available():
    space = {"np": np}
    exec("def f(x):\n    return np.sum(x)", space)
    emitted(space["f"], X)


@refused(LanguageError)
def lambda_not_available():
    emitted(eval("lambda x: x ** 2"), 2.0)


@refused(LanguageError)
def two_lambdas_on_one_line():
    both = [lambda x: x * 2, lambda x: x * 2.0]
    code = both[0].__code__.replace(co_linetable=b"")                  # as under python -X no_debug_ranges
    emitted(types.FunctionType(code, globals()), 2.0)


@refused(LanguageError)
def changed_file():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "changing.py"
        path.write_text("def f(x):\n    return x ** 2\n")
        space = runpy.run_path(str(path))
        path.write_text("def f(x):\n    return x ** 3\n")
        emitted(space["f"], 2.0)


@refused(LanguageError)
def function_made_under_another_name():
    def f(x):
        return x ** 2
    emitted(types.FunctionType(f.__code__.replace(co_name="h"), globals(), "h"), 2.0)


@refused(LanguageError)
def builtin_function():
    emitted(cmath.sqrt, 2.0)


@refused(LanguageError)
def ufunc_itself():
    emitted(np.isnat, 2.0)


@refused(LanguageError)
def class_as_function():
    emitted(Layer, 2.0)


@refused(KindError)
def number_as_function():
    gs.grad(3.0)


# functions without a rule

@refused(RuleError)
def no_rule():
    def f(x):
        return np.sum(np.real_if_close(x))
    emitted(f, X)


@refused(LanguageError)
def random_state_is_read():
    def f(x):
        np.random.get_state()
        return np.sum(x)
    emitted(f, X)


@refused(RuleError)
def no_rule_random_bits():
    def f(x):
        return np.sum(x * np.random.get_bit_generator().random_raw())
    emitted(f, X)


@refused(RuleError)
def no_rule_builtin():
    def f(x):
        return sum(x) + hash(x)
    emitted(f, X)


@refused(RuleError)
def no_rule_through_a_helper():
    def f(x):
        y = x * 2
        return np.sum(helpers.normalised(y))
    emitted(f, X)


@refused(RuleError)
def unknown_keyword_where():
    def f(x, m):
        return np.cumsum(x, where=m)[0]
    emitted(f, X, X > 1)


@refused(RuleError)
def unknown_keyword_of_elementwise():
    def f(x):
        return np.sum(np.exp(x, casting="no"))
    emitted(f, X)


@refused(RuleError)
def misspelled_keyword():
    def f(x):
        return np.sum(np.mean(x, axes=0))
    emitted(f, X)


@refused(RuleError)
def missing_argument_of_numpy():
    def f(x):
        return np.sum(np.dot(x))
    emitted(f, X)


@refused(RuleError)
def array_attribute_without_rule():
    def f(x):
        return np.sum(x.base)
    emitted(f, X)


@refused(LanguageError)
def no_such_numpy_function():
    def f(x):
        return np.sum(np.sinus(x))
    emitted(f, X)


@refused(RuleError)
def complex_to_float():
    def f(z):
        return float(np.sum(z))
    emitted(f, Z)


@refused(RuleError)
def complex_astype_float():
    def f(z):
        return np.sum(z.astype(float))
    emitted(f, Z)


# statements outside the language

@refused(LanguageError)
def generator_function():
    def f(x):
        for v in x:
            yield v
    emitted(f, X)


@refused(LanguageError)
def generator_helper():
    def squares(x):
        for v in x:
            yield v * v

    def f(x):
        return sum(squares(x))
    emitted(f, X)


@refused(LanguageError)
def asynchronous_function():
    async def f(x):
        return x
    emitted(f, 2.0)


@refused(LanguageError)
def yield_inside_expression():
    def f(x):
        y = yield x
        return y
    emitted(f, 2.0)


@refused(LanguageError)
def global_write():
    def f(x):
        global TOTAL
        TOTAL = x * 2
        return TOTAL
    emitted(f, 2.0)


@refused(LanguageError)
def nonlocal_write():
    calls = 0

    def f(x):
        nonlocal calls
        calls += 1
        return x * calls
    emitted(f, 2.0)


@refused(LanguageError)
def attribute_write():
    def f(x):
        p = Point(x, x)
        p.x = x * 2
        return p.x
    emitted(f, 2.0)


@refused(LanguageError)
def class_definition():
    def f(x):
        class Pair:
            pass
        return x
    emitted(f, 2.0)


@refused(LanguageError)
def object_of_a_class():
    def f(x):
        layer = Watched(x)
        return layer.w * 2
    emitted(f, 2.0)


@refused(LanguageError)
def attribute_set_to_a_list():
    def f(x, layer):
        layer.w = [x]
        return x
    emitted(f, 2.0, Layer(1.0))


@refused(LanguageError)
def attribute_of_a_module():
    def f(x):
        math.scale = x
        return x
    emitted(f, 2.0)


@refused(LanguageError)
def attribute_set_in_an_inner_gradient():
    layer = Layer(1.0)

    def g(x):
        layer.w = x
        return x * x

    def f(x):
        return gs.grad(g)(x)
    emitted(f, 2.0)


@refused(LanguageError)
def gradient_of_the_name_of_a_list():
    def f(x):
        items = [x]
        with gs.insert_grad_of(items) as d:
            d = d
        return x
    emitted(f, 2.0)


@refused(LanguageError)
def gradient_of_an_expression():
    def f(x):
        with gs.insert_grad_of(x * x) as d:
            d = 2 * d
        return x
    emitted(f, 2.0)


@refused(LanguageError)
def try_statement():
    def f(x):
        try:
            assert np.linalg.inv(x @ x.T)[0, 0] > 0
        except ValueError:
            return 0.0
    emitted(f, A)


@refused(LanguageError)
def with_statement():
    def f(x):
        with open("log.txt") as file:
            return np.sum(1 / x) + len(file)
    emitted(f, X)


@refused(LanguageError)
def match_statement():
    def f(x):
        match Layer(x):
            case Layer(w):
                return w
    emitted(f, 2.0)


@refused(LanguageError)
def errstate_that_calls():
    def f(x):
        with np.errstate(divide="call"):
            return np.sum(1 / x)
    emitted(f, X)


@refused(LanguageError)
def handler_that_goes_on():
    def f(x):
        try:
            x[0], *_ = x[math.floor(x[0])], 1.0
        except IndexError:
            x = -x
        return np.sum(x)
    emitted(f, X)


@refused(LanguageError)
def handler_that_reads_its_exception():
    def f(x):
        try:
            y = np.sin(x)
        except ValueError as error:
            y = len(str(error))
        return y
    emitted(f, 2.0)


@refused(LanguageError)
def object_as_a_result():
    def f(x):
        return Layer(x)
    gs.jvp(f, (2.0,), (1.0,))


@refused(LanguageError)
def attribute_that_is_not_there():
    def f(x):
        return Layer(x).bias
    emitted(f, 2.0)


@refused(LanguageError)
def array_times_an_object():
    def f(x):
        return np.sum((x * Layer(x)).w)
    emitted(f, X)


@refused(LanguageError)
def set_literal():
    def f(x):
        return sum({x, 2 * x})
    emitted(f, 2.0)


@refused(LanguageError)
def set_comprehension():
    def f(x):
        return sum({k * x for k in range(3)})
    emitted(f, 2.0)


@refused(LanguageError)
def deleted_element():
    def f(x):
        items = x * 2
        del items[0]
        return items[0]
    emitted(f, X)


@refused(LanguageError)
def decorator_that_is_no_function():
    def f(x):
        @(3)
        def g(y):
            return y ** 2
        return g(x)
    emitted(f, 2.0)


@refused(LanguageError)
def star_of_unknown_length():
    def f(x):
        return max(*x[x > 0])
    emitted(f, X)


@refused(LanguageError)
def dictionary_of_unknown_length():
    def f(x):
        return sum({k: x[k] for k in range(len(x))}.values())
    emitted(f, X)


@refused(LanguageError)
def list_that_grows_with_lists():
    def f(x):
        pairs = []
        for v in x:
            pairs.append(list((v, v * v)))
        return pairs[0][0]
    emitted(f, LONG)


@refused(ShapeError)
def list_that_grows_with_two_dtypes():
    def f(x):
        out = []
        for v in x:
            out.append(v)
            out.append(np.float32(1.0))
        return out[0]
    emitted(f, LONG)


@refused(LanguageError)
def list_that_shows_what_is_written_later():
    def f(x):
        rows, row = [], np.zeros(2)
        for v in x:
            row[0] = v
            rows.append(row)
        return np.sum(np.array(rows))
    emitted(f, LONG)


@refused(LanguageError)
def list_that_grows_and_is_returned():
    def f(x):
        out = []
        for v in x:
            out.append(v)
        return out
    gs.jvp(f, (X,), (X,))


@refused(LanguageError)
def method_of_a_list_that_grows():
    def f(x):
        out = []
        for v in x:
            out.append(v)
            out.sort()
        return out[0]
    emitted(f, LONG)


@refused(LanguageError)
def comprehension_with_a_test_on_values():
    def f(x):
        return sum({k: v for k, v in enumerate((x, 2 * x)) if v > 1}.values())
    emitted(f, 2.0)


@refused(LanguageError)
def while_with_a_constant_test():
    def f(x):
        while True:
            x = x * 0.5
        return x
    emitted(f, 2.0)


@refused(LanguageError)
def recursion_without_an_end():
    emitted(helpers.endless, X)


@refused(LanguageError)
def recursion_too_deep():
    def f(x):
        return helpers.twice_down(x, x)
    emitted(f, 2.0)


@refused(LanguageError)
def membership_in_an_array():
    def f(x):
        return np.sum(x) if 1.5 in x else np.sum(x ** 2)
    emitted(f, X)


@refused(LanguageError)
def identity_of_arrays():
    def f(x, y):
        return np.sum(x) if x is y else np.sum(x * y)
    emitted(f, X, X)


@refused(LanguageError)
def undefined_name():
    def f(x):
        return np.sum(x) * scale                                        # noqa: F821
    emitted(f, X)


@refused(LanguageError)
def missing_import():
    def f(x):
        return jnp.sum(x)                                               # noqa: F821
    emitted(f, X)


@refused(LanguageError)
def numpy_not_imported():
    def f(x):
        return numpy.sum(x)                                             # noqa: F821
    emitted(f, X)


@refused(LanguageError)
def read_before_set():
    def f(x):
        y = y + x                                                       # noqa: F821
        return y
    emitted(f, 2.0)


@refused(LanguageError)
def deleted_then_read():
    def f(x):
        y = x * 2
        del y
        return y                                                        # noqa: F821
    emitted(f, 2.0)


@refused(LanguageError)
def calling_a_number():
    def f(x):
        return x(2.0)
    emitted(f, 2.0)


@refused(LanguageError)
def static_argument_is_an_array():
    def f(x, k):
        return np.sum(np.sum(x, axis=k))
    emitted(f, A, N)


@refused(ShapeError)
def index_that_is_a_float():
    def f(x, k):
        return [np.sum(x), 2.0][k]
    emitted(f, X, 1.0)


@refused(LanguageError)
def attribute_of_an_object():
    def f(x, layer):
        return x * layer.weight
    emitted(f, 2.0, Layer(1.0))


# shapes

@refused(ShapeError)
def shapes_do_not_broadcast():
    def f(x, y):
        return np.sum(x + y)
    emitted(f, X, np.ones(4))


@refused(ShapeError)
def matmul_mismatch():
    def f(W, x):
        h = np.tanh(W @ x)
        return np.sum(h)
    emitted(f, A, np.ones(2))


@refused(ShapeError)
def matmul_mismatch_two_calls_deep():
    def f(W, x):
        return helpers.outermost(W, x)
    emitted(f, A, np.ones(2))


@refused(ShapeError)
def concatenate_mismatch():
    def f(x, W):
        return np.sum(np.concatenate([W, x], axis=0))
    emitted(f, X, A)


@refused(ShapeError)
def concatenate_of_other_lengths():
    def f(W, V):
        return np.sum(np.concatenate([W, V], axis=1))
    emitted(f, A, np.ones((3, 3)))


@refused(ShapeError)
def stack_mismatch():
    def f(x, y):
        return np.sum(np.stack([x, y]))
    emitted(f, X, np.ones(4))


@refused(ShapeError)
def too_many_indices():
    def f(x):
        return x[0, 1]
    emitted(f, X)


@refused(ShapeError)
def axis_out_of_range():
    def f(x):
        return np.sum(np.sum(x, axis=1))
    emitted(f, X)


@refused(ShapeError)
def einsum_mismatch():
    def f(W, x):
        return np.sum(np.einsum("ij,j->i", W, x))
    emitted(f, A, np.ones(2))


@refused(ShapeError)
def inverse_of_a_matrix_that_is_not_square():
    def f(W):
        return np.sum(np.linalg.inv(W))
    emitted(f, A)


@refused(ShapeError)
def truth_of_an_array():
    def f(x):
        if x > 0:
            return np.sum(x)
        return np.sum(x ** 2)
    emitted(f, X)


@refused(ShapeError)
def set_in_one_branch_only():
    def f(x):
        if np.sum(x) > 0:
            y = "mean"
        return np.sum(x) if y == "mean" else x[0]
    emitted(f, X)


@refused(ShapeError)
def branches_of_different_kinds():
    def f(x):
        if np.sum(x) > 0:
            y = x
        else:
            y = 0.0
        return np.sum(y * x)
    emitted(f, X)


@refused(ShapeError)
def ternary_of_different_kinds():
    def f(x):
        y = x if np.sum(x) > 0 else (x, x)
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def returns_of_different_kinds():
    def f(x):
        if np.sum(x) > 0:
            return np.sum(x)
        return x
    emitted(f, X)


@refused(ShapeError)
def return_on_one_path_only():
    def f(x):
        if x > 0:
            return x * 2
    emitted(f, 2.0)


@refused(LanguageError)
def loop_that_changes_the_rank():
    def f(x):
        y = x
        for _ in range(len(x)):
            y = y[:, None] * x
        return np.sum(y)
    emitted(f, LONG)


@refused(LanguageError)
def while_that_grows_a_dictionary():
    def f(x):
        items = {}
        k = 0
        while x < 10:
            x = x * 2
            items[k] = x
            k += 1
        return items[0]
    emitted(f, 2.0)


@refused(ShapeError)
def unpack_too_many():
    def f(p):
        a, b = p
        return a * b
    emitted(f, (1.0, 2.0, 3.0))


@refused(ShapeError)
def unpack_rows():
    def f(x):
        a, b = x
        return a * b
    emitted(f, X)


@refused(ShapeError)
def unpack_a_number():
    def f(x):
        a, b = x
        return a * b
    emitted(f, 2.0)


@refused(ShapeError)
def missing_key():
    def f(p):
        return p["weight"] * 2
    emitted(f, {"w": 2.0})


@refused(ShapeError)
def list_index_out_of_range():
    def f(p):
        return p[2]
    emitted(f, [1.0, 2.0])


@refused(KindError)
def too_many_arguments_to_a_helper():
    def f(x):
        return np.sum(helpers.scaled(x, 2.0, 3.0))
    emitted(f, X)


@refused(KindError)
def too_few_arguments_to_a_helper():
    def f(x):
        return np.sum(helpers.product(x))
    emitted(f, X)


@refused(KindError)
def unknown_keyword_of_a_helper():
    def f(x):
        return np.sum(helpers.scaled(x, factor=3.0))
    emitted(f, X)


@refused(KindError)
def argument_given_twice():
    def f(x):
        return np.sum(helpers.scaled(x, 2.0, by=3.0))
    emitted(f, X)


@refused(ShapeError)
def fields_of_a_named_tuple():
    def f(x):
        return Point(x, x, x).x
    emitted(f, 2.0)


@refused(ShapeError)
def range_of_a_float():
    def f(x, n):
        for _ in range(n):
            x = x * 2
        return x
    emitted(f, 2.0, 3.0)


@refused(ShapeError)
def length_of_a_number():
    def f(x):
        return x * len(x)
    emitted(f, 2.0)


@refused(ShapeError)
def iterating_over_a_number():
    def f(x):
        y = 0.0
        for v in x:
            y = y + v
        return y
    emitted(f, 2.0)


@refused(ShapeError)
def augmented_assignment_of_a_higher_rank():
    def f(x, W):
        y = x * 2
        y += W
        return np.sum(y)
    emitted(f, X, A)


@refused(KindError)
def wrong_number_of_arguments():
    def f(x, y):
        return x * y
    emitted(f, 2.0)


@refused(KindError)
def unknown_keyword_of_the_function():
    def f(x, y=1.0):
        return x * y
    emitted(f, 2.0, z=3.0)


# kinds of arguments and results

@refused(KindError)
def output_not_scalar():
    def f(x):
        return x * 2
    emitted(f, X)


@refused(KindError)
def output_of_one_element():
    def f(x):
        return np.sum(x, keepdims=True)
    emitted(f, X)


@refused(KindError)
def output_none():
    def f(x):
        np.sum(x)
    emitted(f, X)


@refused(KindError)
def output_integer():
    def f(x):
        return np.argmax(x)
    emitted(f, X)


@refused(KindError)
def output_bool():
    def f(x):
        return np.all(x > 0)
    emitted(f, X)


@refused(KindError)
def output_tuple():
    def f(x):
        return np.sum(x), x
    emitted(f, X)


@refused(KindError)
def output_string():
    def f(x):
        return "loss"
    emitted(f, X)


@refused(KindError)
def output_complex():
    def f(z):
        return np.sum(z * z)
    emitted(f, Z)


@refused(KindError)
def holomorphic_of_a_real_input():
    def f(x):
        return np.sum(x * 1j)
    gs.grad(f, holomorphic=True).source_for(X)


@refused(KindError)
def holomorphic_of_a_real_output():
    def f(z):
        return np.sum(np.abs(z))
    gs.grad(f, holomorphic=True).source_for(Z)


@refused(KindError)
def input_integer():
    def f(x):
        return np.sum(x * 2.0)
    emitted(f, N)


@refused(KindError)
def input_bool():
    def f(x):
        return x * 2.0
    emitted(f, True)


@refused(KindError)
def input_bool_array():
    def f(x):
        return np.sum(x * 2.0)
    emitted(f, X > 1)


@refused(KindError)
def input_string():
    def f(x):
        return 1.0
    emitted(f, "x")


@refused(KindError)
def input_object():
    def f(layer):
        return layer.w
    emitted(f, Layer(2.0))


@refused(KindError)
def input_integer_in_a_container():
    def f(p):
        return np.sum(p["layers"][1] * 2.0)
    emitted(f, {"layers": [X, N]})


@refused(KindError)
def input_array_of_objects():
    def f(x):
        return np.sum(x)
    emitted(f, np.array([1.0, "a"], dtype=object))


@refused(KindError)
def argnums_out_of_range():
    def f(x, y):
        return x * y
    gs.grad(f, argnums=2).source_for(1.0, 2.0)


@refused(KindError)
def argnums_negative_out_of_range():
    def f(x, y):
        return x * y
    gs.grad(f, argnums=-3).source_for(1.0, 2.0)


@refused(KindError)
def argnums_float():
    def f(x):
        return x
    gs.grad(f, argnums=1.0)


@refused(KindError)
def argnums_string():
    def f(x):
        return x
    gs.grad(f, argnums="x")


@refused(KindError)
def argnums_bool():
    def f(x):
        return x
    gs.grad(f, argnums=True)


@refused(KindError)
def argnums_twice():
    def f(x, y):
        return x * y
    gs.grad(f, argnums=(0, -2)).source_for(1.0, 2.0)


@refused(KindError)
def argnames_unknown():
    def f(x, y):
        return x * y
    gs.grad(f, argnames="z").source_for(1.0, 2.0)


@refused(KindError)
def argnames_number():
    def f(x, y):
        return x * y
    gs.grad(f, argnames=1).source_for(1.0, 2.0)


@refused(KindError)
def no_arguments():
    def f():
        return 1.0
    emitted(f)


@refused(KindError)
def aux_without_a_pair():
    def f(x):
        return np.sum(x)
    gs.grad(f, has_aux=True).source_for(X)


@refused(KindError)
def aux_of_three():
    def f(x):
        return np.sum(x), x, x
    gs.value_and_grad(f, has_aux=True).source_for(X)


# forward mode and pullbacks

@refused(KindError)
def jvp_counts_differ():
    def f(x, y):
        return x * y
    gs.jvp(f, (1.0, 2.0), (1.0,))


@refused(KindError)
def jvp_of_bare_values():
    def f(x):
        return x * 2
    gs.jvp(f, 1.0, 1.0)


@refused(ShapeError)
def jvp_shapes_differ():
    def f(x):
        return x * 2
    gs.jvp(f, (X,), (np.ones(4),))


@refused(ShapeError)
def jvp_tangent_is_a_scalar():
    def f(x):
        return x * 2
    gs.jvp(f, (X,), (1.0,))


@refused(KindError)
def jvp_dtypes_differ():
    def f(x):
        return x * 2
    gs.jvp(f, (X,), (1j * X,))


@refused(KindError)
def jvp_tangent_is_an_integer():
    def f(x):
        return x * 2
    gs.jvp(f, (X,), (N,))


@refused(KindError)
def jvp_structures_differ():
    def f(p):
        return p[0] * p[1]
    gs.jvp(f, ((1.0, 2.0),), ([1.0, 2.0, 3.0],))


@refused(KindError)
def jvp_keys_differ():
    def f(p):
        return p["a"] * p["b"]
    gs.jvp(f, ({"a": 1.0, "b": 2.0},), ({"a": 1.0, "c": 2.0},))


@refused(KindError)
def jvp_tangent_is_a_list():
    def f(x):
        return np.sum(x)
    gs.jvp(f, (X,), ([1.0, 2.0, 3.0],))


@refused(ShapeError)
def vjp_shapes_differ():
    def f(x):
        return x * 2
    gs.vjp(f, X)[1](np.ones(4))


@refused(ShapeError)
def vjp_adjoint_is_a_scalar():
    def f(x):
        return x * 2
    gs.vjp(f, X)[1](1.0)


@refused(KindError)
def vjp_structures_differ():
    def f(x):
        return x * 2, np.sum(x)
    gs.vjp(f, X)[1](np.ones(3))


@refused(KindError)
def vjp_structure_of_other_keys():
    def f(x):
        return {"a": x, "b": x}
    gs.vjp(f, X)[1]({"a": X, "c": X})


@refused(KindError)
def vjp_dtypes_differ():
    def f(x):
        return x * 2
    gs.vjp(f, X)[1](1j * X)


@refused(KindError)
def hvp_counts_differ():
    def f(x, y):
        return x * y
    gs.hvp(f, (1.0, 2.0), (1.0,))


@refused(ShapeError)
def hvp_shapes_differ():
    def f(x):
        return np.sum(x ** 2)
    gs.hvp(f, (X,), (np.ones(2),))


@refused(ShapeError)
def linearize_shapes_differ():
    def f(x):
        return x ** 2
    gs.linearize(f, X)[1](np.ones(2))


@refused(KindError)
def linearize_counts_differ():
    def f(x, y):
        return x * y
    gs.linearize(f, 1.0, 2.0)[1](1.0)


# transformed functions inside others

@refused(KindError)
def inner_gradient_of_an_array():
    def f(x):
        return np.sum(gs.grad(lambda y: y * 2)(x))
    emitted(f, X)


@refused(RuleError)
def inner_gradient_without_a_rule():
    def g(y):
        return np.sum(np.sort(y) * np.real_if_close(y))

    def f(x):
        return np.sum(gs.grad(g)(x) ** 2)
    emitted(f, X)


# containers and defaults that outlive the call

@refused(LanguageError)
def changed_list_of_the_module():
    def f(x):
        SEEN.append(np.sum(x))
        return SEEN[-1] * 2
    emitted(f, X)


@refused(LanguageError)
def changed_dict_of_the_module():
    def f(x):
        TABLE["w"] = np.sum(x)
        return TABLE["w"] * 2
    emitted(f, X)


@refused(LanguageError)
def changed_default():
    def f(x, seen=[]):                                                  # noqa: B006
        seen.append(x)
        return np.sum(seen[0])
    emitted(f, X)


@refused(LanguageError)
def changed_list_of_the_module_by_another_name():
    def f(x):
        seen = SEEN
        if np.sum(x) > 0:
            x = x * 2
        seen[0] = np.sum(x)
        return SEEN[0]
    emitted(f, X)


@refused(LanguageError)
def comparison_of_a_text_made_when_running():
    def f(x, n):
        name = f"layer {n}"
        return np.sum(x) if name == "layer 1" else x[0]
    emitted(f, X, 1)


# what Python itself would not take

@refused(LanguageError)
def builtin_without_its_argument():
    def f(x):
        return x * len()
    emitted(f, 2.0)


@refused(ShapeError)
def maximum_of_nothing():
    def f(x):
        return x * max([])
    emitted(f, 2.0)


@refused(LanguageError)
def text_plus_a_number():
    def f(x):
        return x if "layer" + 1 == "layer1" else x ** 2
    emitted(f, 2.0)


@refused(LanguageError)
def membership_that_depends_on_a_value():
    def f(x):
        return np.sum(x) if 1.0 in [x, 2.0] else x[0] ** 2
    emitted(f, X)


@refused(LanguageError)
def unknown_dtype():
    def f(x):
        return np.sum(x.astype("float99"))
    emitted(f, X)


@refused(ShapeError)
def popping_too_far():
    def f(x):
        return [x].pop(5)
    emitted(f, 2.0)


@refused(ShapeError)
def range_without_an_end():
    def f(x):
        for _ in range(0, 3, 0):
            x = x * 2
        return x
    emitted(f, 2.0)


@refused(LanguageError)
def local_read_before_it_is_set():
    def f(x):
        y = X_OF_MODULE * x                 # noqa: F821  Python: a local everywhere in f
        X_OF_MODULE = y                     # noqa: F841
        return y
    emitted(f, 2.0)


@refused(KindError)
def empty_argnums():
    gs.grad(lambda x: x, argnums=())


@refused(ShapeError)
def contraction_over_too_many_axes():
    def f(x):
        return np.tensordot(x, x, axes=2)
    emitted(f, X)


# --- writes -----------------------------------------------------------------------------------------------------------

@refused(LanguageError)
def write_into_an_array_of_the_module():
    def f(x):
        X[0] = x[1]
        return np.sum(X)
    emitted(f, np.ones(3))


@refused(ShapeError)
def read_of_what_may_have_changed():
    def f(x):
        y = x.ravel()
        y[0] = 2.0
        return np.sum(x * y)
    emitted(f, X)


@refused(ShapeError)
def write_of_too_many_axes():
    def f(x):
        y = np.zeros(3)
        y[0] = x[:2] * np.ones((2, 2))
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def write_of_a_complex_number():
    def f(x):
        y = np.zeros(3)
        y[0] = 1j * x[0]
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def write_at_too_many_indices():
    def f(x):
        y = np.zeros(3)
        y[0, 1] = x[0]
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def write_into_a_number():
    def f(x):
        y = x[0]
        y[0] = 1.0
        return y
    emitted(f, X)


@refused(LanguageError)
def two_arguments_of_one_storage():
    def g(a, b):
        a[0] = 2.0
        return np.sum(a * b)

    def f(x):
        return np.sum(gs.grad(g)(x, x))
    emitted(f, X)


@refused(LanguageError)
def list_made_longer_that_another_name_shows():
    def f(x):
        h = [0.0]
        for v in x:
            g = h
            h = h + [v * g[0]]
        return np.sum(np.array(h))
    emitted(f, LONG)


@refused(LanguageError)
def write_in_the_test_of_a_loop():
    def lowered(y):
        y *= 0.5
        return np.sum(y)

    def f(x):
        y = x.copy()
        while lowered(y) > 0.1:
            pass
        return np.sum(y)
    emitted(f, X)


@refused(LanguageError)
def setflags_in_place():
    def f(x):
        y = x.copy()
        y.setflags(1)
        return y[0]
    emitted(f, X)


@refused(RuleError)
def put_in_another_mode():
    def f(x):
        y = x.copy()
        np.put(y, [0, 4], x[:2], mode="around")
        return np.sum(y)
    emitted(f, X)


# random numbers

G = np.random.default_rng(0)


@refused(RuleError)
def draw_with_an_active_rate():
    def f(x, rng):
        return np.sum(x * rng.poisson(x))
    gs.grad(f).source_for(X, G)


@refused(RuleError)
def draw_with_an_active_shape():
    def f(x, rng):
        return np.sum(rng.gamma(x, 2.0))
    gs.grad(f).source_for(X, G)


@refused(RuleError)
def choice_with_active_probabilities():
    def f(x, rng):
        return rng.choice(x, p=x / np.sum(x))
    gs.grad(f).source_for(X, G)


@refused(KindError)
def generator_is_differentiated():
    def f(x, rng):
        return np.sum(x) * rng.random()
    gs.grad(f, argnums=1).source_for(X, G)


@refused(LanguageError)
def draw_with_an_unknown_word():
    def f(x, rng):
        return np.sum(x * rng.normal(0.0, 1.0, shape=3))
    gs.grad(f).source_for(X, G)


@refused(LanguageError)
def draw_into_an_array():
    def f(x, rng):
        noise = np.zeros(3)
        rng.standard_normal(out=noise)
        return np.sum(x * noise)
    gs.grad(f).source_for(X, G)


@refused(ShapeError)
def draw_of_another_size():
    def f(x, rng):
        return np.sum(rng.normal(x, 1.0, size=2))
    gs.grad(f).source_for(X, G)


@refused(LanguageError)
def state_of_a_generator():
    def f(x, rng):
        state = rng.bit_generator.state
        return np.sum(x) * len(state)
    gs.grad(f).source_for(X, G)


@refused(LanguageError)
def bytes_are_drawn():
    def f(x):
        return np.sum(x) * len(np.random.bytes(3))
    emitted(f, X)


@refused(LanguageError)
def shuffle_of_a_list():
    def f(x, rng):
        items = [x[0], x[1]]
        rng.shuffle(items)
        return items[0]
    gs.grad(f).source_for(X, G)


@refused(LanguageError)
def draw_in_an_assertion():
    def f(x, rng):
        assert rng.random() < 2.0
        return np.sum(x)
    gs.grad(f).source_for(X, G)


@refused(LanguageError)
def draw_in_a_text():
    def f(x, rng):
        print(len(f"{rng.random()}"))
        text = f"{rng.random()}"
        return np.sum(x) * len(text)
    gs.grad(f).source_for(X, G)


@refused(LanguageError)
def jacobian_of_a_draw():
    def f(x, rng):
        return x * rng.random(3)
    gs.jacrev(f).source_for(X, G)


@refused(LanguageError)
def vjp_of_a_draw_inside():
    def noisy(x, rng):
        return x * rng.random(3)

    def f(x, rng):
        y, pull = gs.vjp(noisy, x, rng)
        return np.sum(pull(y)[0])
    gs.grad(f).source_for(X, G)


@refused(LanguageError)
def compiled_legacy_draw():
    def f(x):
        return np.sum(x * np.random.rand(3))
    gs.jit(gs.grad(f)).source_for(X)


@refused(LanguageError)
def compiled_generators_of_one_stream():
    def f(x):
        bits = np.random.PCG64(3)
        first, second = np.random.Generator(bits), np.random.Generator(bits)
        return np.sum(x * first.random(3)) * second.random()
    gs.jit(f).source_for(X)


@refused(LanguageError)
def generator_on_the_device():
    def f(x):
        rng = np.random.default_rng(3)
        return np.sum(x * rng.random(3))
    gs.jit(f, target="cuda").source_for(X)


@refused(LanguageError)
def compiled_legacy_generator():
    def f(x, rng):
        return np.sum(x * rng.rand(3))
    gs.jit(f).source_for(X, np.random.RandomState(0))


@refused(LanguageError)
def compiled_draw_with_other_numbers():
    def f(x, rng):
        return np.sum(x * rng.gamma(2.0, size=3))
    gs.jit(f).source_for(X, G)


@refused(LanguageError)
def compiled_draw_of_arrays():
    def f(x, rng):
        return np.sum(x * rng.normal(np.arange(3.0), 1.0))
    gs.jit(gs.grad(f)).source_for(X, G)


# data

@refused(LanguageError)
def sorted_by_running_values():
    def f(x):
        s = sorted([x, 2 * x, -x])
        return s[0][0] * 2 + s[2][0]
    emitted(f, X)


@refused(LanguageError)
def sorted_with_a_running_key():
    def f(x):
        rows = [(x[0], 1), (x[1], 2)]
        rows.sort(key=lambda row: row[1] * x)
        return rows[0][0]
    emitted(f, X)


@refused(LanguageError)
def index_of_a_running_value():
    def f(x):
        return [x[0], x[1]].index(x[2] * 2) * x[0]
    emitted(f, X)


@refused(ShapeError)
def update_in_a_branch():
    def f(x):
        d = {"a": x[0]}
        if x[0] > 0:
            d.update(b=x[1])
        return sum(d.values())
    emitted(f, X)


@refused(ShapeError)
def new_key_in_some_passes():
    def f(x):
        d = {"a": x[0]}
        for v in x:
            if v > 1:
                d.update(b=v * d["a"])
        return d["a"]
    emitted(f, X)


@refused(LanguageError)
def container_that_is_an_argument_changed_in_compiled_code():
    def f(p):
        p["w"] = p["w"] * 2
        return np.sum(p["w"])
    gs.jit(f)({"w": X})


@refused(LanguageError)
def list_that_changes_while_walked():
    def f(x):
        items = [x[0], x[1], x[2]]
        for k, v in enumerate(items):
            if k < 2:
                items[k + 1] = items[k + 1] + v
        return items[2]
    emitted(f, X)


@refused(LanguageError)
def iterator_read_twice():
    def f(x):
        pairs = zip([1.0, 2.0], [x[0], x[1]])
        return sum(a * b for a, b in pairs) + sum(b for a, b in pairs)
    emitted(f, X)


@refused(ShapeError)
def iterator_of_an_array_read_twice():
    def f(x):
        pairs = zip(x, x * 2)
        t = 0.0
        for a, b in pairs:
            t += a * b
        for a, b in pairs:
            t += a - b
        return t
    emitted(f, X)


@refused(LanguageError)
def next_past_the_end():
    def f(x):
        it = iter([x[0]])
        return next(it) * next(it)
    emitted(f, X)


@refused(LanguageError)
def list_that_an_iterator_shows():
    def f(x):
        items = [x[0], x[1]]
        it = iter(items)
        items[1] = x[2]
        return next(it) * next(it)
    emitted(f, X)


@refused(LanguageError)
def iterator_without_an_end():
    def f(x):
        import itertools
        t = 0.0
        for k in itertools.count():
            t += k * x[0]
            if k > 2:
                break
        return t
    emitted(f, X)


@refused(LanguageError)
def filter_of_running_values():
    def f(x):
        return sum(filter(lambda v: v > 1, [x[0], x[1]]))
    emitted(f, X)


@refused(ShapeError)
def strict_zip_of_lists():
    def f(x):
        return sum(a * b for a, b in zip([x[0], x[1]], (1, 2, 3), strict=True))
    emitted(f, X)


@refused(ShapeError)
def deleted_key_that_is_not_there():
    def f(x):
        d = {"a": x}
        del d["b"]
        return d["a"]
    emitted(f, 2.0)


@refused(LanguageError)
def update_of_a_dict_of_the_module():
    def f(x):
        TABLE.update(w=x)
        return TABLE["w"]
    emitted(f, 2.0)


@refused(LanguageError)
def format_of_a_running_value():
    def f(x):
        return x * len("{:.2f}".format(x))
    emitted(f, 2.0)


@refused(ShapeError)
def slices_of_different_lengths():
    def f(x):
        items = [x[0], x[1], x[2]]
        items[::2] = [x[0]]
        return items[0]
    emitted(f, X)


@refused(LanguageError)
def choice_among_lists():
    def f(x):
        return max([[x[0]], [x[1]]], key=lambda row: row[0])[0]
    emitted(f, X)


@refused(LanguageError)
def generator_made_before_a_change():
    def f(x):
        k = 2.0
        values = (v * k for v in [x[0], x[1]])
        k = 3.0
        return sum(values) * k
    emitted(f, X)


@refused(LanguageError)
def list_that_a_branch_has_chosen():
    def f(x):
        a, b = [x[0]], [x[1]]
        if x[2] > 0:
            chosen = a
        else:
            chosen = b
        chosen[0] = chosen[0] * 3
        return a[0] * b[0]
    emitted(f, X)


@refused(LanguageError)
def deque_as_a_result():
    import collections

    def f(x):
        return collections.deque([x, x * 2])
    gs.jvp(f, (2.0,), (1.0,))


# filling

@refused(LanguageError)
def out_without_axes():
    def f(x):
        y = np.zeros(())
        np.mean(x, out=y)
        return y
    emitted(f, X)


@refused(LanguageError)
def write_through_a_diagonal():
    def f(x):
        y = np.diag(np.outer(x, x))
        y[0] = 2.0
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def out_of_a_lower_kind():
    def f(x):
        y = np.zeros(3, dtype=int)
        np.multiply(x, x, out=y)
        return np.sum(y * x)
    emitted(f, X)


@refused(LanguageError)
def out_of_a_reduction_in_another_precision():
    def f(x):
        y = np.zeros(3, dtype=np.float32)
        np.sum(np.outer(x, x), axis=0, out=y)
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def out_that_is_too_small():
    def f(x):
        y = np.zeros(1)
        np.exp(x, y)
        return np.sum(y)
    emitted(f, X)


@refused(LanguageError)
def ufunc_at_that_may_repeat():
    def f(x):
        y = np.ones(3)
        np.maximum.at(y, [0, 0, 1], x)
        return np.sum(y)
    emitted(f, X)


@refused(LanguageError)
def write_through_a_broadcast():
    def f(x):
        y = np.broadcast_to(x, (2, 3))
        y[0, 0] = 1.0
        return np.sum(y)
    emitted(f, X)


@refused(LanguageError)
def write_through_a_diagonal_by_einsum():
    def f(x):
        A = np.outer(x, x)
        np.einsum("ii->i", A)[0] = x[1]
        return np.sum(A)
    emitted(f, X)


@refused(LanguageError)
def place_with_a_mask_of_other_axes():
    def f(x):
        y = np.outer(x, x)
        np.place(y, x > 1, x)
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def fill_of_the_diagonal_of_a_vector():
    def f(x):
        y = np.zeros(3)
        np.fill_diagonal(y, x)
        return np.sum(y)
    emitted(f, X)


@refused(RuleError)
def put_along_no_axis():
    def f(x):
        y = x.copy()
        np.put_along_axis(y, np.array([0]), 1.0, axis=None)
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def read_after_a_write_into_a_piece():
    def f(a):
        first, *rest = np.split(a.reshape(-1), 3)
        first[0] = 2.0
        return np.sum(a)
    emitted(f, A)


@refused(ShapeError)
def read_after_a_write_through_a_reshape():
    def f(a):
        b = a * 2.0
        b.reshape(-1)[0] = 1.0
        return np.sum(b)
    emitted(f, A)


@refused(LanguageError)
def write_through_an_array_without_axes():
    def f(x):
        s = np.zeros(())
        v = s[None]
        v[0] = x[0]
        return s
    emitted(f, X)


@refused(LanguageError)
def resize_in_place():
    def f(x):
        y = x.copy()
        y.resize(5)
        return np.sum(y)
    emitted(f, X)


@refused(LanguageError)
def write_into_a_view_of_an_array_from_outside():
    def f(x):
        v = X.reshape(3, 1)
        v[0] = x[0]
        return np.sum(v)
    emitted(f, A[0])


@refused(LanguageError)
def augmented_array_without_axes():
    def f(x):
        s = np.zeros(())
        t = s
        s += x[0]
        return t * x[1]
    emitted(f, X)


# indexing and assignment

@refused(ShapeError)
def index_past_the_end_of_results():
    def f(x):
        return np.sum(np.linalg.qr(np.outer(x, x))[2])
    emitted(f, X)


@refused(ShapeError)
def augmented_item_of_a_lower_kind():
    def f(x):
        counts = np.zeros(3, dtype=int)
        counts[0] *= x[0]
        return np.sum(counts * x)
    emitted(f, X)


@refused(LanguageError)
def write_into_a_text():
    def f(x):
        name = "loss"
        name[0] = "L"
        return x * len(name)
    emitted(f, 2.0)


@refused(LanguageError)
def write_into_a_range():
    def f(x):
        places = range(3)
        places[0] = 1
        return x * len(places)
    emitted(f, 2.0)


@refused(LanguageError)
def attribute_of_a_number_is_written():
    def f(x):
        x.scale = 2.0
        return x
    emitted(f, 2.0)


@refused(ShapeError)
def unpacked_function():
    def f(x):
        a, b = lambda v: (v, v)
        return a * b * x
    emitted(f, 2.0)


# calls and attributes

@refused(LanguageError)
def attribute_of_a_function():
    def f(x):
        def g(v):
            return v * 2
        return g.scale(x)
    emitted(f, 2.0)


@refused(LanguageError)
def attribute_of_a_number():
    def f(x):
        return (2.0).scale * x
    emitted(f, 2.0)


@refused(LanguageError)
def keywords_of_an_array():
    def f(x):
        return np.sum(helpers.scaled(x, **x))
    emitted(f, X)


@refused(ShapeError)
def dictionary_where_an_array_is_needed():
    def f(x):
        return np.sum(np.vstack({"a": x, "b": x}))
    emitted(f, X)


@refused(RuleError)
def function_where_an_array_is_needed():
    def f(x):
        return np.sum(np.exp(lambda v: v * x))
    emitted(f, X)


# contexts

@refused(LanguageError)
def errstate_with_an_argument():
    def f(x):
        with np.errstate("ignore"):
            return np.sum(1 / x)
    emitted(f, X)


@refused(LanguageError)
def warnings_that_raise():
    import warnings

    def f(x):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.sum(1 / x)
    emitted(f, X)


# data

@refused(LanguageError)
def membership_in_a_range():
    def f(x):
        return x[0] if x[1] in range(3) else x[2]
    emitted(f, X)


@refused(LanguageError)
def key_that_is_a_list():
    def f(x):
        table = {[1, 2]: x}
        return x * len(table)
    emitted(f, 2.0)


@refused(LanguageError)
def list_minus_a_list():
    def f(x):
        items = [x, 2 * x] - [x]
        return items[0]
    emitted(f, 2.0)


@refused(LanguageError)
def method_of_a_deque():
    import collections

    def f(x):
        items = collections.deque([x, 2 * x])
        items.sort()
        return items[0]
    emitted(f, 2.0)


@refused(LanguageError)
def method_of_a_list_with_too_much():
    def f(x):
        items = [x]
        items.append(x, 2.0)
        return items[0]
    emitted(f, 2.0)


@refused(ShapeError)
def index_of_what_is_not_there():
    def f(x):
        return x * ["weight", "bias"].index("scale")
    emitted(f, 2.0)


@refused(ShapeError)
def pop_from_an_empty_list():
    def f(x):
        items = []
        return x * items.pop()
    emitted(f, 2.0)


@refused(ShapeError)
def remove_of_what_is_not_there():
    def f(x):
        names = ["weight", "bias"]
        names.remove("scale")
        return x * len(names)
    emitted(f, 2.0)


@refused(ShapeError)
def dictionary_of_triples():
    def f(x):
        table = dict([("a", x, 1), ("b", x, 2)])
        return table["a"]
    emitted(f, 2.0)


@refused(ShapeError)
def popitem_of_an_empty_dictionary():
    def f(x):
        table = {}
        return x * len(table.popitem())
    emitted(f, 2.0)


# custom derivatives

@gs.custom_vjp
def cubed(x):
    return x ** 3


cubed.defvjp(lambda x: (x ** 3, x), lambda x, dy: (3 * x ** 2 * dy,))


@gs.custom_vjp
def half_a_pair(x):
    return x ** 3


half_a_pair.defvjp(lambda x: x ** 3, lambda x, dy: (dy,))


@gs.custom_vjp
def two_adjoints(x):
    return x ** 3


two_adjoints.defvjp(lambda x: (x ** 3, x), lambda x, dy: (dy, dy))


@gs.custom_vjp
def without_halves(x):
    return x ** 3


@gs.custom_jvp
def without_rule(x):
    return x ** 3


@refused(KindError)
def custom_derivative_by_keyword():
    def f(x):
        return with_keyword_only(x, n=2)
    emitted(f, 2.0)


@refused(KindError)
def custom_forward_half_without_residuals():
    def f(x):
        return half_a_pair(x)
    emitted(f, 2.0)


@refused(KindError)
def custom_backward_half_with_too_many():
    def f(x):
        return two_adjoints(x)
    emitted(f, 2.0)


@refused(KindError)
def custom_vjp_without_its_halves():
    def f(x):
        return without_halves(x)
    emitted(f, 2.0)


@refused(KindError)
def custom_jvp_without_its_rule():
    def f(x):
        return without_rule(x)
    emitted(f, 2.0)


@refused(KindError)
def custom_derivative_of_a_number():
    gs.custom_vjp(3.0)


@refused(RuleError)
def forward_mode_of_a_reverse_rule():
    def f(x):
        return cubed(x)
    gs.jvp(f, (2.0,), (1.0,))


# random numbers

@refused(LanguageError)
def attribute_of_a_bit_generator():
    def f(x, bits):
        return x * bits.cipher
    emitted(f, 2.0, np.random.PCG64(0))


@refused(LanguageError)
def generator_of_a_random_state():
    def f(x, state):
        rng = np.random.default_rng(state)
        return x * rng.random()
    emitted(f, 2.0, np.random.RandomState(0))


@refused(RuleError)
def draw_of_a_text():
    def f(x, rng):
        return x * rng.normal("zero", 1.0)
    emitted(f, 2.0, G)


@refused(LanguageError)
def print_of_a_call_after_a_draw():
    def f(x, rng):
        y = x * rng.random()
        shown = print(abs(-1))
        return y if shown is None else x
    emitted(f, 2.0, G)


@refused(LanguageError)
def draw_in_what_is_written_into():
    def f(x, rng):
        y = x.copy()
        items = [y, y]
        items[rng.integers(2)][0] += 1.0
        return np.sum(y * x)
    emitted(f, X, G)


# filling

@refused(RuleError)
def ufunc_with_too_many_arrays():
    def f(x):
        y, z = np.zeros(3), np.zeros(3)
        np.exp(x, y, z)
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def where_that_is_no_mask():
    def f(x):
        y = np.zeros(3)
        np.exp(x, out=y, where=x)
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def copy_of_a_text_into_an_array():
    def f(x):
        y = np.zeros(3)
        np.copyto(y, "one", where=x > 1)
        return np.sum(y * x)
    emitted(f, X)


@refused(RuleError)
def ufunc_at_without_values():
    def f(x):
        y = np.zeros(3)
        np.add.at(y, [0, 1])
        return np.sum(y * x)
    emitted(f, X)


@refused(ShapeError)
def ufunc_at_of_a_number():
    def f(x):
        total = 0.0
        np.add.at(total, 0, x)
        return total
    emitted(f, X)


@refused(LanguageError)
def subtraction_of_truth_values_at():
    def f(x):
        y = np.ones(3)
        np.subtract.at(y, [0, 0, 1], x > 1)
        return np.sum(y * x)
    emitted(f, X)


@refused(RuleError)
def sort_in_place_by_fields():
    def f(x):
        y = x.copy()
        y.sort(order="name")
        return y[0]
    emitted(f, X)


@refused(RuleError)
def fill_with_two_values():
    def f(x):
        y = x.copy()
        y.fill(1.0, 2.0)
        return np.sum(y)
    emitted(f, X)


@refused(RuleError)
def copyto_with_a_casting():
    def f(x):
        y = np.zeros(3)
        np.copyto(y, x, casting="unsafe")
        return np.sum(y)
    emitted(f, X)


@refused(RuleError)
def putmask_without_values():
    def f(x):
        y = x.copy()
        np.putmask(y, x > 1)
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def putmask_of_a_text():
    def f(x):
        y = x.copy()
        np.putmask(y, x > 1, "one")
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def copyto_of_a_number():
    def f(x):
        total = 0.0
        np.copyto(total, x, where=x > 1)
        return total
    emitted(f, X)


@refused(ShapeError)
def copyto_where_a_text():
    def f(x):
        y = np.zeros(3)
        np.copyto(y, x, where="all")
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def copyto_of_more_axes():
    def f(x):
        y = np.zeros(3)
        np.copyto(y, np.outer(x, x), where=x > 1)
        return np.sum(y)
    emitted(f, X)


@refused(LanguageError)
def nan_to_num_in_place_of_a_number():
    def f(x):
        y = x[0] * x
        np.nan_to_num(y[0], copy=False)
        return np.sum(y)
    emitted(f, X)


# tests and loops

@refused(LanguageError)
def test_of_a_generator():
    def f(x, rng):
        return x if rng else 2 * x
    emitted(f, 2.0, G)


@refused(LanguageError)
def or_of_a_list():
    def f(x):
        items = x > 1 and [x]
        return x * len(items)
    emitted(f, 2.0)


@refused(LanguageError)
def iterating_over_none():
    def f(x):
        y = 0.0
        for k in None:
            y = y + x * k
        return y
    emitted(f, 2.0)


@refused(LanguageError)
def iterating_over_a_generator():
    def f(x, rng):
        y = 0.0
        for k in rng:
            y = y + x * k
        return y
    emitted(f, 2.0, G)


@refused(LanguageError)
def loop_that_always_raises():
    def f(x):
        y = 0.0
        for v in x:
            y = y + v
            raise ValueError("not yet")
        return y
    emitted(f, LONG)


# lists whose length is known only when running

@refused(ShapeError)
def list_that_grows_with_two_ranks():
    def f(x):
        rows = []
        for v in x:
            rows.append(v)
            rows.append(x)
        return rows[0]
    emitted(f, LONG)


@refused(ShapeError)
def list_that_grows_with_another_dtype_later():
    def f(x):
        out = []
        for v in x:
            out.append(v)
        out.append(1j)
        return out[0]
    emitted(f, X)


@refused(LanguageError)
def stack_of_a_list_that_grows_along_another_axis():
    def f(x):
        rows = []
        for v in x:
            rows.append(v * x)
        return np.sum(np.stack(rows, axis=1)[0])
    emitted(f, X)


@refused(LanguageError)
def column_stack_of_a_list_that_grows():
    def f(x):
        rows = []
        for v in x:
            rows.append(v * x)
        return np.sum(np.column_stack(rows))
    emitted(f, X)


# iterators, sorting, functions as values

@refused(LanguageError)
def next_of_a_counter():
    import itertools

    def f(x):
        numbers = itertools.count()
        return x * next(numbers)
    emitted(f, 2.0)


@refused(LanguageError)
def next_of_a_list():
    def f(x):
        items = [x, 2 * x]
        return next(items)
    emitted(f, 2.0)


@refused(RuleError)
def zip_with_an_unknown_word():
    def f(x):
        return sum(a * b for a, b in zip(x, x, strictly=True))
    emitted(f, X)


@refused(LanguageError)
def strict_zip_with_a_counter():
    import itertools

    def f(x):
        return sum(a * k for a, k in zip([x, x], itertools.count(), strict=True))
    emitted(f, 2.0)


@refused(LanguageError)
def map_over_a_counter():
    import itertools

    def f(x):
        return next(map(lambda k: k * x, itertools.count()))
    emitted(f, 2.0)


@refused(RuleError)
def maximum_with_an_unknown_word():
    def f(x):
        return max([x, 2 * x], reverse=True)
    emitted(f, 2.0)


@refused(ShapeError)
def maximum_of_arrays():
    def f(x, y):
        return np.sum(max(x, y))
    emitted(f, X, X)


@refused(LanguageError)
def maximum_by_keys_of_several_values():
    def f(x):
        rows = [(x[0], "a"), (x[1], "b")]
        return max(rows)[0]
    emitted(f, X)


@refused(LanguageError)
def sorted_by_a_comparison():
    def f(x):
        items = sorted([3, 1, 2], lambda a, b: a - b)
        return items[0] * x
    emitted(f, 2.0)


@refused(LanguageError)
def methodcaller_with_arguments():
    import operator

    def f(x):
        total = operator.methodcaller("sum", 0)
        return total(x)
    emitted(f, X)


@refused(LanguageError)
def methodcaller_with_words():
    import operator
    total = operator.methodcaller("sum", axis=0)

    def f(x):
        return total(x)
    emitted(f, X)


@refused(ShapeError)
def insertion_into_a_full_deque():
    import collections

    def f(x):
        last = collections.deque([x, 2 * x], maxlen=2)
        return last.insert(0, x)
    emitted(f, 2.0)


# forward mode

@refused(RuleError)
def forward_mode_of_a_complex_number():
    def f(z):
        return z * np.sign(z)
    gs.jvp(f, (Z,), (Z,))


@refused(RuleError)
def forward_mode_of_another_argument():
    def f(x):
        return np.arange(0.0, x, 0.5)
    gs.jvp(f, (2.0,), (1.0,))


# the language

@refused(LanguageError)
def awaited_value():
    async def g(x):
        return x

    async def f(x):
        return await g(x)
    emitted(f, 2.0)


@refused(LanguageError)
def except_star():
    def f(x):
        try:
            y = 1 / x
        except* ZeroDivisionError:
            y = x
        return y
    emitted(f, 2.0)


@refused(LanguageError)
def yield_from():
    def f(x):
        return (yield from x)
    emitted(f, X)


# loops

@refused(LanguageError)
def loop_over_what_it_may_change():
    def f(x):
        y = x * 2.0
        for v in y.ravel():
            y[0, 0] = y[0, 0] + v
        return np.sum(y)
    emitted(f, A)


@refused(LanguageError)
def list_of_arrays_beside_what_is_chosen():
    def f(x):
        total = 0.0
        for a, b in zip([x, 2.0 * x], x[x > 0.6]):
            total += a[0] * b
            if total > 3:
                break
        return total
    emitted(f, X)


# methods

@refused(RuleError)
def astype_with_a_device():
    def f(x):
        return np.sum(x.astype(float, device="cpu"))
    emitted(f, X)


@refused(LanguageError)
def method_of_an_array_unknown():
    def f(x):
        return np.sum(x.tolist() * x)
    emitted(f, X)


@refused(ShapeError)
def item_of_a_vector():
    def f(x):
        return x.item()
    emitted(f, X)


@refused(LanguageError)
def array_of_a_function_with_a_dtype():
    def f(x):
        return np.sum(np.asarray(f, dtype=float) * x)
    emitted(f, X)


@refused(LanguageError)
def length_of_a_generator():
    def f(x, rng):
        return x * len(rng)
    emitted(f, 2.0, G)


@refused(LanguageError)
def length_of_an_iterator():
    def f(x):
        it = iter([x, 2 * x])
        return x * len(it)
    emitted(f, 2.0)


@refused(LanguageError)
def reversed_iterator():
    def f(x):
        it = iter([x, 2 * x])
        return sum(reversed(it))
    emitted(f, 2.0)


@refused(LanguageError)
def reversed_enumeration():
    def f(x):
        total = 0.0
        for k, v in reversed(enumerate(x)):
            total = total * k + v
        return total
    emitted(f, X)


@refused(LanguageError)
def isinstance_of_a_text_made_when_running():
    def f(x):
        name = f"{x:.2f}"
        return x if isinstance(name, str) else 2 * x
    emitted(f, 2.0)


@refused(ShapeError)
def shape_of_a_function():
    def f(x):
        return x * len(np.shape(f))
    emitted(f, 2.0)


@refused(RuleError)
def size_along_an_axis():
    def f(x):
        return np.sum(x) / np.size(x, 0)
    emitted(f, X)


@refused(RuleError)
def array_with_an_order():
    def f(x):
        return np.sum(np.asarray(x, order="F"))
    emitted(f, A)


@refused(LanguageError)
def array_of_the_flat_entries():
    def f(x):
        return np.sum(np.asarray(x.flat) ** 2)
    emitted(f, A)


@refused(LanguageError)
def array_of_none():
    def f(x):
        return np.sum(np.array(None) * x)
    emitted(f, X)


@refused(LanguageError)
def array_of_a_dictionary():
    def f(x):
        return np.sum(np.array({"a": x, "b": x}))
    emitted(f, X)


@refused(LanguageError)
def array_of_texts():
    def f(x):
        names = np.array(["weight", "bias"])
        return x * len(names)
    emitted(f, 2.0)


@refused(LanguageError)
def array_of_a_text_and_a_number():
    def f(x):
        pair = np.array([x, "weight"])
        return x * len(pair)
    emitted(f, 2.0)


@refused(ShapeError)
def float_of_a_text():
    def f(x):
        return x * float("two")
    emitted(f, 2.0)


@refused(LanguageError)
def float_of_a_list():
    def f(x):
        return float([x])
    emitted(f, 2.0)


@refused(ShapeError)
def float_of_a_vector():
    def f(x):
        return float(x)
    emitted(f, X)


@refused(RuleError)
def einsum_with_a_word():
    def f(x):
        return np.einsum("i,i", x, x, order="C")
    emitted(f, X)


# objects

@refused(KindError)
def named_tuple_with_too_few():
    def f(x):
        return Point(x).x
    emitted(f, 2.0)


@refused(ShapeError)
def object_with_too_many():
    def f(x):
        p = helpers.Plain(x)
        p.x = x
        return p.x
    emitted(f, 2.0)


@refused(ShapeError)
def dataclass_with_too_many():
    def f(x):
        return helpers.Pair(x, x, x).whole
    emitted(f, 2.0)


@refused(KindError)
def dataclass_with_too_few():
    def f(x):
        return helpers.Pair(x).whole
    emitted(f, 2.0)


@refused(LanguageError)
def property_that_is_set():
    def f(x):
        p = helpers.Pair(x, x)
        p.size = 2 * x
        return p.a
    emitted(f, 2.0)


@refused(LanguageError)
def frozen_dataclass_that_is_written():
    def f(x):
        p = helpers.Fixed(x)
        p.a = 2 * x
        return p.a
    emitted(f, 2.0)


@refused(ShapeError)
def replaced_field_that_is_not_there():
    def f(x):
        return Point(x, x)._replace(z=x).x
    emitted(f, 2.0)


@refused(LanguageError)
def replace_of_a_list():
    import dataclasses

    def f(x):
        return dataclasses.replace([x], a=2 * x)[0]
    emitted(f, 2.0)


# draws with parameters

@refused(RuleError)
def draw_around_a_complex_number():
    def f(z, rng):
        return np.real(np.sum(rng.normal(np.real(z) + z, 1.0)))
    emitted(f, Z, G)


# itertools

@refused(LanguageError)
def product_of_too_much():
    import itertools

    def f(x):
        return x * len(list(itertools.combinations([1, 2, 3], 2, 3)))
    emitted(f, 2.0)


@refused(LanguageError)
def islice_of_a_named_iterator():
    import itertools

    def f(x):
        it = iter([x, 2 * x, 3 * x])
        return sum(itertools.islice(it, 2))
    emitted(f, 2.0)


@refused(LanguageError)
def product_of_many():
    import itertools

    def f(x):
        return sum(a * x for a, *_ in itertools.product([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], repeat=4))
    emitted(f, 2.0)


@refused(ShapeError)
def ndindex_of_a_float():
    def f(x):
        return sum(x[k] for k, in np.ndindex(3.0))
    emitted(f, X)


@refused(ShapeError)
def ndenumerate_of_a_number():
    def f(x):
        total = 0.0
        for _, v in np.ndenumerate(x):
            total += v
        return total
    emitted(f, 2.0)


# expressions

@refused(LanguageError)
def dictionary_of_the_items_of_an_array():
    def f(x):
        table = {"a": 1.0, **x}
        return table["a"] * np.sum(x)
    emitted(f, X)


@refused(ShapeError)
def starred_index():
    def f(x, place):
        return x[(*place, *place)]
    emitted(f, A, (0, 1))


@refused(LanguageError)
def index_of_an_iterator():
    def f(x):
        pairs = zip([1.0, 2.0], [x, x])
        return pairs[0][1]
    emitted(f, 2.0)


@refused(ShapeError)
def text_past_its_end():
    def f(x):
        return x if "abc"[5] == "a" else 2 * x
    emitted(f, 2.0)


@refused(LanguageError)
def index_of_a_function():
    def f(x):
        def g(v):
            return v * 2
        return g[x]
    emitted(f, 2.0)


# writes

@refused(ShapeError)
def text_written_into_an_array():
    def f(x):
        y = x.copy()
        y[0] = "zero"
        return np.sum(y)
    emitted(f, X)


@refused(LanguageError)
def text_that_changes_a_list():
    def f(x):
        items = [x, 2 * x]
        name = f"{x + items.pop()}"
        return items[0] * len(name)
    emitted(f, 2.0)


# values that may be missing

@refused(LanguageError)
def shape_that_changes_before_it_is_set():
    def f(x):
        for k in range(len(x)):
            if x[k] > 1:
                y = x[:k + 1] * 2
            x = x * 1.5
        return np.sum(y)
    emitted(f, X)


@refused(LanguageError)
def value_that_the_first_pass_does_not_have():
    def f(x):
        t = 0.0
        if x[0] > 1:
            y = x * 2
        for k in range(len(x)):
            if x[k] > 1:
                t = t + np.sum(y * y)
            y = np.sin(x * x[k])
        return t
    gs.jit(gs.grad(f))(X)


@refused(RuleError)
def sign_of_a_complex_number():
    def f(z):
        return np.real(np.sum(np.sign(z)))
    emitted(f, Z)


@refused(RuleError)
def end_of_a_range_of_numbers():
    def f(x):
        return np.sum(np.arange(0.0, x, 0.5))
    emitted(f, 2.0)


@refused(LanguageError)
def function_where_a_number_is_known():
    import itertools

    def f(x):
        return x * len(list(itertools.combinations([1, 2, 3], lambda k: k)))
    emitted(f, 2.0)


@refused(LanguageError)
def value_of_the_pass_before_the_first():
    def f(x):
        for k in range(3):
            z = y * 2 if k > 0 else y                                   # noqa: F821
            y = z * x
        return y
    emitted(f, 2.0)


@refused(LanguageError)
def range_in_an_operation():
    def f(x):
        return np.sum(x * range(3))
    emitted(f, X)


@refused(LanguageError)
def function_as_a_result():
    def f(x):
        return x, [lambda v: v * x]
    gs.jvp(f, (2.0,), (1.0,))


@refused(LanguageError)
def array_of_objects_of_the_module():
    items = np.array([1.0, None], dtype=object)

    def f(x):
        return x * items[0]
    emitted(f, 2.0)


@refused(LanguageError)
def number_of_none():
    def f(x):
        return x * np.float64(None)
    emitted(f, 2.0)


@refused(LanguageError)
def frozen_record_that_is_written():
    def f(x):
        p = helpers.Frozen(x)
        p.a = 2 * x
        return p.a
    emitted(f, 2.0)


# rules

@refused(RuleError)
def matrix_power_of_a_float():
    def f(x):
        return np.sum(np.linalg.matrix_power(np.outer(x, x), 2.0))
    emitted(f, X)


@refused(RuleError)
def complete_qr():
    def f(x):
        q, r = np.linalg.qr(x.T, mode="complete")
        return np.sum(r)
    emitted(f, A)


@refused(ShapeError)
def einsum_of_too_few_operands():
    def f(x):
        return np.einsum("i,i,i", x, x)
    emitted(f, X)


@refused(ShapeError)
def einsum_of_another_rank():
    def f(x):
        return np.sum(np.einsum("ij->i", x))
    emitted(f, X)


@refused(RuleError)
def cross_product_in_the_plane():
    def f(x):
        return np.sum(np.linalg.cross(x, np.array([1.0, 2.0])))
    emitted(f, X[:2])


@refused(ShapeError)
def convolution_in_an_unknown_mode():
    def f(x):
        return np.sum(np.convolve(x, x, mode="circular"))
    emitted(f, X)


@refused(RuleError)
def correlation_of_the_same_length():
    def f(x):
        return np.sum(np.correlate(x, x, mode="same"))
    emitted(f, X)


@refused(ShapeError)
def repeat_along_an_axis_that_is_not_there():
    def f(x):
        return np.sum(np.repeat(x, 2, axis=3))
    emitted(f, X)


@refused(RuleError)
def difference_along_an_inner_axis():
    def f(x):
        return np.sum(np.diff(x, axis=2))
    emitted(f, np.ones((2, 2, 2, 2)))


@refused(RuleError)
def reshape_by_the_memory():
    def f(x):
        return np.sum(np.reshape(x, 6, order="A")[:2])
    emitted(f, A)


@refused(RuleError)
def split_at_negative_places():
    def f(x):
        first, last = np.split(x, [-1])
        return np.sum(first) * np.sum(last)
    emitted(f, X)


@refused(RuleError)
def insert_a_mask():
    def f(x):
        return np.sum(np.insert(x, np.array([True, False, True]), 1.0))
    emitted(f, X)


@refused(RuleError)
def pad_of_a_running_width():
    def f(x, n):
        return np.sum(np.pad(x, (np.sum(n), 1)))
    emitted(f, X, N)


@refused(RuleError)
def pad_with_nothing():
    def f(x):
        return np.sum(np.pad(x, 1, mode="empty"))
    emitted(f, X)


@refused(RuleError)
def meshgrid_of_matrices():
    def f(x):
        a, b = np.meshgrid(x, x)
        return np.sum(a * b)
    emitted(f, A)


# the face

@refused(KindError)
def argnums_with_a_float():
    def f(x, y):
        return x * y
    gs.grad(f, argnums=(0, 1.0)).source_for(1.0, 2.0)


@refused(KindError)
def jacobian_of_a_text():
    def f(x):
        return "loss"
    gs.jacrev(f).source_for(X)


@refused(KindError)
def jacobian_of_a_complex_result():
    def f(x):
        return x * 1j
    gs.jacrev(f).source_for(X)


@refused(LanguageError)
def source_without_a_hint():
    def f(params, k):
        return params["w"][k]
    gs.grad(f).source                                                   # noqa: B018


@refused(LanguageError)
def vjp_of_a_draw_from_the_global_stream():
    def f(x):
        return x * np.random.rand(3)
    gs.vjp(f, X)[1](X)


@refused(KindError)
def jvp_inside_with_counts_that_differ():
    def g(x, y):
        return x * y

    def f(x):
        y, y_dot = gs.jvp(g, (x, x), (x,))
        return y * y_dot
    emitted(f, 2.0)


@refused(KindError)
def dump_of_a_plain_function():
    def f(x):
        return x
    gs.dump(f, tempfile.gettempdir())


@refused(KindError)
def dump_before_a_call():
    def f(x):
        return x
    gs.dump(gs.grad(f), tempfile.gettempdir())


@refused(KindError)
def dump_of_a_compiled_function():
    def f(x):
        return x
    gs.dump(gs.jit(f), tempfile.gettempdir(), 2.0)


@refused(KindError)
def dump_of_a_large_constant():
    table = np.ones(100_000)

    def f(x):
        return np.sum(x * table)
    with tempfile.TemporaryDirectory() as folder:
        gs.dump(gs.grad(f), folder, 2.0)


@refused(KindError)
def static_argnums_of_a_name():
    def f(x, k):
        return x * k
    gs.jit(f, static_argnums=("k",))


@refused(LanguageError)
def two_arrays_that_share_memory():
    def f(x, y):
        y[0] = 2.0
        return np.sum(x * y)
    gs.grad(f)(X, X)


@refused(LanguageError)
def axis_from_the_entries_of_an_argument():
    def f(x, options):
        return np.sum(np.sum(x, axis=options["axis"] + 0))
    emitted(f, A, {"axis": 0})


# compiled

@refused(RuleError)
def compiled_largest_of_complex_numbers():
    def f(z):
        return abs(np.max(z))
    gs.jit(f).source_for(Z)


@refused(RuleError)
def compiled_half_precision():
    def f(x):
        return x.astype(np.float16)
    gs.jit(f).source_for(X)


@refused(RuleError)
def compiled_constant_of_half_precision():
    def f(x):
        return np.sum(x) * np.float16(2.0)
    gs.jit(f).source_for(X)


@refused(RuleError)
def compiled_argument_of_half_precision():
    def f(x):
        return x
    gs.jit(f).source_for(X.astype(np.float16))


@refused(RuleError)
def compiled_argument_that_is_a_bit_generator():
    def f(x, bits):
        return x * 2
    gs.jit(f).source_for(2.0, np.random.PCG64(0))


@refused(LanguageError)
def compiled_draw_by_a_method():
    def f(x, rng):
        return x * rng.standard_exponential(3, method="inv")
    gs.jit(f).source_for(X, G)


@refused(RuleError)
def compiled_join_of_a_vector():
    def f(x):
        return np.concatenate(x)
    gs.jit(f).source_for(np.ones(20))


@refused(RuleError)
def compiled_unique_lines_of_complex():
    def f(z):
        return np.unique(z, axis=0)
    gs.jit(f).source_for(np.stack((Z, Z)))


@refused(RuleError)
def compiled_text():
    def f(x):
        name = f"loss {x}"
        print(name)
        return x
    gs.jit(f).source_for(2.0)


@refused(RuleError)
def print_of_a_list_on_a_device():
    def f(x, items):
        print(items)
        return x
    gs.jit(f, target="cuda")(X, [1.0, 2.0])


@refused(RuleError)
def compiled_reshape_by_the_memory():
    def f(x):
        return np.reshape(x, 6, order="A")
    gs.jit(f).source_for(A)


@refused(LanguageError)
def tuples_of_unknown_number_as_a_result():
    def f(x):
        return [(v, v) for v in x]
    gs.jvp_of(f).source_for(X, X)


@refused(RuleError)
def compiled_choice_of_generators():
    def f(x, one, two):
        rng = one if x > 1 else two
        return x * rng.random()
    gs.jit(f).source_for(2.0, G, G)


@refused(RuleError)
def compiled_generator_as_a_result():
    def f(x, rng):
        return x, rng
    gs.jit(f).source_for(2.0, G)


@refused(RuleError)
def compiled_argument_in_half_precision():
    def f(x):
        return x * 2
    gs.jit(f).source_for(X.astype(np.float16))


@refused(RuleError)
def compiled_operation_in_half_precision():
    """NumPy gives the root of a whole number of eight bits in half precision."""
    def f(x):
        return np.sqrt(x)
    gs.jit(f).source_for(np.ones(3, np.int8))


@refused(LanguageError)
def compiled_loop_that_changes_the_kind():
    def f(x, n):
        y = None
        for _ in range(n):
            y = x if y is None else y * 2
        return y
    gs.jit(f).source_for(2.0, 40)


@refused(LanguageError)
def axis_that_is_drawn():
    def f(x):
        return np.sum(np.sum(x, axis=np.random.randint(2)))
    emitted(f, A)


@refused(ShapeError)
def list_of_whole_numbers_that_is_given_a_number():
    def f(x):
        out = []
        for v in x:
            if v > 1:
                out.append(1)
        out.append(x[0])
        return out[-1]
    emitted(f, X)


def written(folder, expression):
    """A function that returns an expression, in a file of its own."""
    path = Path(folder) / "deep.py"
    path.write_text(f"def f(x):\n    return {expression}\n")
    return runpy.run_path(str(path))["f"]


@refused(RuleError)
def compiled_choice_among_a_hundred():
    with tempfile.TemporaryDirectory() as folder:
        gs.jit(written(folder, "".join(f"x * {k} if x < {k} else (\n " for k in range(99)) + "x" + ")" * 99))(2.5)


@refused(LanguageError)
def number_of_combinations_of_a_value():
    import itertools

    def f(x):
        return x * len(list(itertools.combinations([1, 2, 3], int(x))))
    emitted(f, 2.0)


@refused(LanguageError)
def generator_inside():
    def f(x):
        def halves(v):
            while v > 0.1:
                yield v
                v = v / 2
        return sum(halves(x))
    emitted(f, 2.0)


@refused(LanguageError)
def asynchronous_function_inside():
    def f(x):
        async def g(v):
            return v
        return x
    emitted(f, 2.0)


# what does not fit, in the words of the facts

@refused(LanguageError)
def truth_value_that_becomes_a_number():
    def f(x):
        found = False
        while x < 10:
            found = x
            x = x * 2
        return x * found
    emitted(f, 2.0)


@refused(ShapeError)
def draw_of_a_size_that_is_no_integer():
    def f(x, rng):
        return np.sum(rng.normal(x, 1.0, size=2.5))
    emitted(f, X, G)


@refused(ShapeError)
def draw_around_a_mean_that_is_a_number():
    def f(x, rng):
        return np.sum(rng.multivariate_normal(1.0, np.eye(3)) * x)
    emitted(f, X, G)


@refused(ShapeError)
def draw_with_a_covariance_of_another_length():
    def f(x, rng):
        return np.sum(rng.multivariate_normal(x, np.eye(2)))
    emitted(f, X, G)


@refused(ShapeError)
def permutation_along_an_axis_that_is_not_there():
    def f(x, rng):
        return np.sum(rng.permutation(x, axis=2))
    emitted(f, X, G)


@refused(ShapeError)
def permutation_of_a_fraction():
    def f(x, rng):
        return np.sum(rng.permutation(2.5) * x)
    emitted(f, X, G)


@refused(ShapeError)
def reshape_to_a_running_shape():
    def f(x, shape):
        return np.sum(x.reshape(shape))
    emitted(f, A, np.array([3, 2]))


@refused(ShapeError)
def broadcast_to_a_running_shape():
    def f(x, shape):
        return np.sum(np.broadcast_to(x, shape))
    emitted(f, X, np.array([2, 3]))


@refused(ShapeError)
def broadcast_to_another_length():
    def f(x):
        return np.sum(np.broadcast_to(x, (2, 4)))
    emitted(f, X)


@refused(ShapeError)
def index_that_is_a_function():
    def f(x):
        return np.sum(x[np.argmax])
    emitted(f, X)


@refused(ShapeError)
def index_that_is_a_truth_value():
    def f(x):
        return np.sum(x[x[0] > 1])
    emitted(f, X)


@refused(ShapeError)
def tile_of_running_counts():
    def f(x, n):
        return np.sum(np.tile(x, n))
    emitted(f, X, N)


@refused(ShapeError)
def split_at_running_places():
    def f(x, places):
        return np.sum(np.array_split(x, places)[0])
    emitted(f, X, np.array([1, 2]))


@refused(ShapeError)
def set_in_some_passes_only():
    def f(x):
        for v in x:
            if v > 1:
                name = "large"
        return x[0] if name == "large" else x[1]
    emitted(f, X)


@refused(ShapeError)
def part_of_another_length_in_each_branch():
    def f(x):
        if x[0] > 0:
            p = {"a": [x[0]]}
        else:
            p = {"a": [x[0], x[1]]}
        return p["a"][0]
    emitted(f, X)


@refused(ShapeError)
def text_set_inside_a_loop():
    def f(x):
        while x < 10:
            name = "larger"
            x = x * 2
        return x * len(name)
    emitted(f, 2.0)


@refused(ShapeError)
def view_that_an_earlier_pass_may_have_changed():
    def f(x):
        y = x * 1.0
        z = y.reshape(-1)
        t = 0.0
        for _ in range(len(x)):
            t += z[0]
            y[0, 0] = 2.0 * t
        return t
    emitted(f, TALL)


@refused(ShapeError)
def view_in_a_list_that_the_loop_may_have_changed():
    def f(x):
        y = x * 1.0
        items = [y.reshape(-1)]
        for k in range(len(x)):
            y[0, 0] = k * x[0, 0]
        return np.sum(items[0])
    emitted(f, TALL)


@refused(LanguageError)
def item_that_changes_its_shape():
    def f(x):
        d = {"a": 1.0}
        while x < 10:
            d["a"] = np.ones(2) * d["a"]
            x = x * 2
        return np.sum(d["a"]) * x
    emitted(f, 2.0)


@refused(LanguageError)
def item_that_becomes_a_number():
    def f(x):
        best = {"x": None}
        while x < 10:
            best["x"] = x
            x = x * 2
        return best["x"]
    emitted(f, 2.0)


@refused(ShapeError)
def item_of_an_argument_or_another():
    def f(x, p):
        if x > 1:
            p = {"a": [x]}
        return p["a"][0]
    emitted(f, 2.0, {"a": [1.0, 2.0]})


class Counter:
    def __init__(self, t=0.0):
        self.t = t

    def add(self, v):
        self.t = self.t + v
        return self.t

    def __lt__(self, other):
        return self.t < other.t


class Doubling(Point):
    def __new__(cls, x):
        return super().__new__(cls, x, 2 * x)


@refused(LanguageError)
def object_made_in_a_pass_and_shared():
    def f(x):
        for v in x:
            a = Counter(v)
            b = a
        b.add(x[0])
        return a.t
    emitted(f, X)


@refused(LanguageError)
def object_shared_in_the_next_pass():
    def f(x):
        a, b, s = Counter(x[0]), Counter(x[1]), 0.0
        for v in x:
            b.t = b.t + v
            s = s + a.t * v
            b = a
        return s
    emitted(f, LONG)


@refused(LanguageError)
def identity_in_the_first_pass():
    def f(x):
        a, s = Counter(x[0]), 0.0
        b = a
        for v in x:
            if a is b:
                s = s + v
            a = Counter(v)
        return s
    emitted(f, LONG)


@refused(ShapeError)
def text_set_in_some_passes():
    def f(x):
        mode, s = None, 0.0
        for v in x:
            s = s + (v if mode is None else v * v)
            if v > 0.5:
                mode = "seen"
        return s
    emitted(f, X)


@refused(LanguageError)
def object_that_a_generator_shows():
    def f(x):
        a = Counter(x[0])
        g = (v * a.t for v in [x[1], x[2]])
        a.add(x[1])
        return sum(g)
    emitted(f, X)


@refused(LanguageError)
def iterator_over_what_has_changed():
    def f(x):
        rows = [x * 1.0, x * 2.0]
        sines = map(np.sin, rows)
        total = np.sum(next(sines))
        rows[1][0] = total
        return total + np.sum(next(sines))
    emitted(f, X)


@refused(LanguageError)
def map_that_changes_an_object():
    def f(x):
        a = Counter(x[0])
        m = map(a.add, [x[1], x[2]])
        t = a.t
        return sum(m) * t
    emitted(f, X)


@refused(LanguageError)
def loop_over_a_generator_that_changes_a_list():
    def f(x):
        items = []
        for v, w in zip((items.append(k) or k for k in (x[0], x[1])), x):
            items.append(v * w)
        return sum(items)
    emitted(f, X)


@refused(LanguageError)
def generator_over_any_length_that_changes_an_array():
    def f(x):
        y = np.zeros(3)
        def put(v):
            y[0] += v
            return v
        return any(put(v) > 1 for v in x) * y[0]
    emitted(f, X)


@refused(LanguageError)
def report_that_changes_a_list():
    def f(x):
        items = [x[0], x[1]]
        print(items.pop())
        return sum(items)
    emitted(f, X)


@refused(LanguageError)
def assertion_that_changes_a_list():
    def f(x):
        items = [x[0], x[1]]
        assert items.pop() > 0
        return sum(items)
    emitted(f, X)


@refused(ShapeError)
def exception_in_one_branch_of_a_try():
    def f(x):
        try:
            if x[0] > 0.5:
                y = {}["k"]
            else:
                y = x[0]
        except KeyError:
            y = x[1]
        return y
    emitted(f, X)


@refused(LanguageError)
def comprehension_that_hides_a_variable():
    def f(x):
        v = x[0]

        def scaled(w):
            return v * w
        return np.sum(np.array([scaled(2.0) for v in x]))
    emitted(f, X)


@refused(LanguageError)
def loop_over_an_object():
    def f(x):
        return sum(v for v in Counter(x[0]))
    emitted(f, X)


@refused(LanguageError)
def named_tuple_with_its_own_new():
    def f(x):
        p = Doubling(x[0])
        return p.x * p.y
    emitted(f, X)


@refused(LanguageError)
def object_as_a_key():
    def f(x):
        a, b = Counter(1.0), Counter(1.0)
        d = {}
        d[a] = x[0]
        d[b] = x[1]
        return d[a]
    emitted(f, X)


@refused(LanguageError)
def list_changed_while_a_loop_goes_through_it():
    def f(x):
        items, s = [x[0]], 0.0
        for v in x:
            items.append(v)
        for v in items:
            s = s + v
            if len(items) < 8:
                items.append(v * 0.5)
        return s
    emitted(f, X)


@refused(LanguageError)
def element_of_a_list_written():
    def f(x):
        rows = []
        for v in x:
            rows.append(v * x)
        row = rows[0]
        row[1] = 5.0
        return np.sum(np.array(rows))
    emitted(f, X)


@refused(ShapeError)
def array_taken_off_a_list_written():
    def f(x):
        b = x * 2.0
        rows = [b]
        for v in x:
            rows.append(v * x)
        for _ in range(len(x)):
            rows.pop()
        c = rows.pop()
        c[0] = 7.0
        return np.sum(b)
    emitted(f, LONG)


@refused(ShapeError)
def name_of_a_pattern_whose_guard_fails():
    def f(x):
        y = x[2]
        match (x[0], x[1]):
            case (0.0, y) if y > 1:
                z = y
            case _:
                z = y * y
        return z
    emitted(f, X)


@refused(LanguageError)
def write_into_a_chosen_element():
    def f(x, items, k):
        items[k][0] = x[0]
        return np.sum(items[0])
    emitted(f, X, [np.ones(3), np.zeros(3)], 1)


@refused(ShapeError)
def name_of_a_pattern_whose_guard_may_fail():
    def f(x):
        match [x, 2 * x]:
            case [a, b] if a > 1:
                return a * b
        return a
    emitted(f, 2.0)


@refused(LanguageError)
def return_in_the_middle_of_a_try():
    def f(x):
        try:
            if x > 1:
                return 1 / x
            y = math.log(x)
        except ValueError:
            y = 0.0
        return y
    emitted(f, 2.0)


@refused(LanguageError)
def while_that_may_raise_in_a_try():
    def f(x, n):
        try:
            while x > 1:
                x = x / n
        except ZeroDivisionError:
            x = -x
        x = x * 3
        return x * x
    emitted(f, 2.0, 3)


@refused(LanguageError)
def name_set_in_a_print():
    def f(x):
        print(y := x * x)
        return y
    emitted(f, 2.0)


@refused(LanguageError)
def print_that_takes_an_item_away():
    def f(x):
        items = [x, x * x]
        print(items.pop())
        return items[0]
    emitted(f, 2.0)


@refused(LanguageError)
def compiled_gradient_beside_a_set_attribute():
    def f(x, layer):
        layer.w = x * 2
        return gs.grad(lambda v: v * v)(x)
    gs.jit(f).source_for(2.0, Layer(2.0))


@refused(LanguageError)
def random_number_in_a_text():
    def f(x, rng):
        name = f"{rng.random():.2f}"
        return x * len(name)
    emitted(f, 2.0, G)


@refused(LanguageError)
def edited_gradient_that_is_returned():
    def f(x):
        y = x * x
        with gs.insert_grad_of(y) as dy:
            return dy * 2
        return y
    emitted(f, 2.0)


@refused(LanguageError)
def edited_gradient_without_a_name():
    def f(x):
        y = x * x
        with gs.insert_grad_of(y):
            pass
        return y
    emitted(f, 2.0)


@refused(LanguageError)
def compiled_list_of_selected_entries():
    def f(x):
        items = []
        for v in x:
            items.append(x[x > v])
        return sum([np.sum(i) for i in items])
    gs.jit(f).source_for(LONG)


@refused(LanguageError)
def append_to_the_list_that_the_loop_goes_through():
    def f(x):
        items = []
        for v in x:
            items.append(v)
        for v in items:
            if v > 1:
                items.append(v * 0.5)
        return sum(items)
    emitted(f, X)


@refused(LanguageError)
def comprehension_that_names_what_a_function_reads():
    def f(x):
        k = 2.0

        def g(v):
            return k * v
        items = [g(k) for k in x if k > 1]
        return sum(items)
    emitted(f, X)


@refused(LanguageError)
def slice_of_a_grown_list_that_is_replaced():
    def f(x):
        items = []
        for v in x:
            items.append(v * v)
        items[:2] = [1.0, 2.0]
        return sum(items)
    emitted(f, X)


@refused(LanguageError)
def hasattr_of_a_function():
    def f(x):
        def g(v):
            return v * v
        return g(x) if hasattr(g, "scale") else x
    emitted(f, 2.0)


@refused(LanguageError)
def copy_of_an_object_that_says_how():
    def f(x):
        import copy
        layer = helpers.Handed(x)
        return copy.copy(layer).w * x
    emitted(f, 2.0)


@refused(LanguageError)
def copy_of_an_iterator():
    def f(x):
        import copy
        items = iter([x, x * x])
        return next(copy.copy(items))
    emitted(f, 2.0)


@refused(LanguageError)
def loop_over_an_object_that_is_its_iterator():
    def f(x):
        total = 0.0
        for v in helpers.Walker([x, x * x]):
            total += v
        return total
    emitted(f, 2.0)


@refused(LanguageError)
def descriptor_of_a_class():
    def f(x):
        return helpers.Described(x).twice
    emitted(f, 2.0)


@refused(LanguageError)
def assertion_that_takes_an_item_away():
    def f(x):
        items = [x, x * x]
        assert items.pop() > 0
        return items[0]
    emitted(f, 2.0)


@refused(LanguageError)
def row_of_a_grown_list_that_is_written():
    def f(x):
        items = []
        for row in x:
            items.append(row * row)
        items[0][0] = 1.0
        return np.sum(items[0])
    emitted(f, A)


@refused(KindError)
def checkpoint_of_another_policy_inside():
    def f(x):
        return gs.checkpoint(cubed, policy="few")(x)
    emitted(f, 2.0)


@refused(KindError)
def checkpoint_of_another_policy():
    gs.checkpoint(cubed, policy="few")


@refused(LanguageError)
def objects_that_hold_each_other():
    def f(x):
        first = Layer(x)
        second = Layer(first)
        first.other = second
        while x < 10:
            first = Layer(x)
            second = Layer(first)
            first.other = second
            x = x * 2
        return first.w
    emitted(f, 2.0)


@refused(LanguageError)
def compiled_argument_that_a_loop_may_have_changed():
    def f(x, y):
        for _ in range(3):
            if x[0] > 0:
                y[0] = x[0]
            else:
                y = y * 2
                x[0] = 1.0
                break
        return np.sum(x)
    gs.jit(f).source_for(X, X + 1)


@refused(LanguageError)
def deep_copy_of_an_object_with_a_list_of_rows():
    def f(x):
        import copy
        items = []
        for row in x:
            if row[0] > 1:
                items.append(row * row)
        layer = copy.deepcopy(Layer(items))
        return np.sum(layer.w[0])
    emitted(f, A)


@refused(RuleError)
def order_of_a_bessel_function():
    from scipy import special

    def f(x):
        return np.sum(special.jv(x, 2.0))
    emitted(f, X)


@refused(RuleError)
def digamma_of_a_complex_number():
    from scipy import special

    def f(x):
        return np.sum(np.real(special.digamma(x + 1j)))
    emitted(f, X)


@refused(LanguageError)
def dimension_of_the_gamma_function_that_is_computed():
    from scipy import special

    def f(x, d):
        return np.sum(special.multigammaln(x, int(d[0])))
    emitted(f, X + 3, N)


@refused(RuleError)
def sign_of_a_complex_sum_of_exponentials():
    from scipy import special

    def f(x):
        size, sign = special.logsumexp(x * (1 + 1j), return_sign=True)
        return np.real(size)
    emitted(f, X)


@refused(ShapeError)
def read_in_an_expression_that_writes_into_a_piece():
    def first_set(y):
        first, *rest = np.split(y.reshape(-1), 3)
        first[0] = 2.0
        return 1

    def f(a):
        return a[first_set(a)]
    emitted(f, A)


@refused(ShapeError)
def squeeze_of_a_length_that_is_not_known():
    def f(x):
        return np.sum(np.squeeze(x[x > 0.0]) ** 2)
    emitted(f, X)


@refused(LanguageError)
def loop_that_may_raise_in_a_try():
    def f(x):
        try:
            for y in (x @ x.T, x.T):
                y = np.linalg.cholesky(y @ y.T)
        except np.linalg.LinAlgError:
            y = x @ x.T
        return np.sum(y)
    emitted(f, A)


@refused(LanguageError)
def handler_of_an_error_that_errstate_makes():
    def f(x):
        try:
            with np.errstate(invalid="raise"):
                y = np.sqrt(x)
        except FloatingPointError:
            y = x
        return np.sum(y)
    emitted(f, X)


@refused(RuleError)
def a_try_that_is_compiled():
    def f(x):
        try:
            y = np.linalg.inv(x @ x.T)
        except np.linalg.LinAlgError:
            y = x @ x.T
        return np.sum(y)
    gs.jit(f)(A)


@gs.custom_vjp
def with_keyword_only(x, *, n=3):
    return x ** n


with_keyword_only.defvjp(lambda x: (x ** 3, x), lambda x, dy: (3 * x ** 2 * dy,))


@refused(LanguageError)
def array_attribute_of_jax():
    def f(x):
        return np.sum(x.at[0].set(1.0))
    emitted(f, X)


@refused(KindError)
def linear_transpose_inside():
    def f(x):
        return gs.linear_transpose(lambda v: 2 * v, x)(x)[0]
    emitted(f, 2.0)
