"""Files, the command line, notebooks and what explains a gradient."""
import colorsys
import tempfile
import types

import numpy as np
from errors.cases import refused

import gradscribe as gs
from gradscribe import command, kinds, magic, recipes, torch
from gradscribe.ast_transform.source.diagnose import KindError


def asked(*words):
    return command.transformed(command.parser().parse_args(["show", *words]))


@refused(KindError)
def a_function_without_a_colon():
    asked("colorsys.rgb_to_yiq")


@refused(KindError)
def a_module_that_is_not_there():
    asked("no_such_module_anywhere:f")


@refused(KindError)
def a_function_that_is_not_there():
    asked("this:f")


@refused(KindError)
def an_argument_that_is_not_there():
    asked("colorsys:rgb_to_yiq", "--grad", "r,q")


@refused(KindError)
def axes_that_are_words():
    asked("colorsys:rgb_to_yiq", "--vmap", "a")


@refused(KindError)
def bench_without_kinds():
    command.bench(command.parser().parse_args(["bench", "colorsys:rgb_to_yiq", "--vjp"]))


@refused(KindError)
def check_of_a_folder_that_is_not_there():
    gs.check("no/such/folder")


@refused(KindError)
def kinds_that_are_no_expression():
    kinds.example("float64[n")


@refused(KindError)
def a_kind_that_is_not_known():
    kinds.example("float63[n]")


@refused(KindError)
def a_length_that_is_a_sum():
    kinds.example("float64[n + 1]")


@refused(KindError)
def a_kind_of_an_object():
    kinds.spelled((object(),), {}, set())


@refused(KindError)
def a_kind_of_dates():
    kinds.spelled((np.array(["2020-01-01"], dtype="datetime64[D]"),), {}, set())


@refused(KindError)
def a_heading_with_another_call():
    recipes.cooked("open(f)", colorsys.rgb_to_yiq)


@refused(KindError)
def a_recipe_for_compiled_code():
    recipes.recipe(gs.jit(colorsys.rgb_to_yiq, target="cuda"))


@refused(KindError)
def a_cell_without_a_function():
    class Shell:
        def run_cell(self, cell):
            return type("Result", (), {"success": True})
    magic.gradscribe("", "x = 1\n", Shell())


@refused(KindError)
def explain_of_a_gradient():
    gs.explain(gs.grad(lambda x: x * x), 1.0)


@refused(KindError)
def a_line_that_a_text_has_not():
    gs.explain(lambda x: x * x, 1.0).line(9)


@refused(KindError)
def explain_without_real_numbers():
    gs.explain(lambda n: n * n, 3)


@refused(KindError)
def source_map_of_a_plain_function():
    gs.source_map(colorsys.rgb_to_yiq)


@refused(KindError)
def source_map_before_a_call():
    gs.source_map(gs.grad(lambda x: x * x))


@refused(KindError)
def source_map_of_compiled_code():
    compiled = gs.jit(lambda x: x * x)
    compiled(1.0)
    gs.source_map(compiled)




@refused(KindError)
def draw_of_many_passes():
    def f(x):
        for _ in range(100):
            x = x * 0.5
        return x
    gs.draw(f, 1.0)


@refused(KindError)
def draw_of_very_many_passes():
    def f(x):
        for _ in range(10000):
            x = x * 0.5
        return x
    gs.draw(f, 1.0)


@refused(KindError)
def draw_of_a_long_array():
    gs.draw(lambda x: np.sum(x * x), np.ones(9))


@refused(KindError)
def draw_of_a_vector():
    gs.draw(lambda x: x * x, np.ones(2))


class OnDevice:
    """An array of another package's, in memory that NumPy does not reach."""

    def __dlpack__(self, **words):
        raise BufferError("it is on another device")

    def __dlpack_device__(self):
        return 2, 0


@refused(KindError)
def an_array_on_another_device():
    gs.grad(lambda x: np.sum(x))(OnDevice())


class Listing:
    def __init__(self, x, names):
        self.x, self.names = x, names


gs.tree_util.register_pytree_node(Listing, lambda t: ((t.x,), t.names),
                                  lambda names, children: Listing(*children, names))


@refused(KindError)
def data_that_belong_to_no_kind():
    gs.grad(lambda p: np.sum(p.x))(Listing(np.ones(2), {"a"}))


@refused(KindError)
def an_array_interface_of_no_array():
    class Wrong:
        __array_interface__ = {"version": 3, "shape": (2,), "typestr": "<f8", "data": None}
    gs.grad(lambda x: np.sum(x))(Wrong())


@refused(gs.ShapeError)
def length_that_depends_on_values():
    gs.eval_shape(lambda x: x[x > 0], np.ones(3))


@refused(KindError)
def tensor_on_a_device():
    torch._array(types.SimpleNamespace(device=types.SimpleNamespace(type="cuda")))


def devices_told(x):
    return gs.device_count()


@refused(KindError)
def dump_of_what_would_need_gradscribe():
    def f(x):
        assert x > 0, devices_told(x)
        return x * x
    gs.dump(gs.grad(f), tempfile.mkdtemp(), 2.0)


@refused(KindError)
def dump_of_a_last_call_without_an_example():
    g = gs.grad(lambda x, rng: x * rng.normal())
    g(2.0, np.random.default_rng(0))
    gs.dump(g, tempfile.mkdtemp())


@refused(KindError)
def a_class_that_is_not_there():
    kinds.example("colorsys.Nothing(a=float)")


@refused(KindError)
def llvm_of_a_function_for_cuda():
    def f(x):
        return x * x
    _ = gs.jit(f, target="cuda").llvm
