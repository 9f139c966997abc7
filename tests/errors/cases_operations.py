"""Single operations of NumPy with arguments that are not understood."""
import itertools
import math

import numpy as np
from errors.cases import emitted, refused
from scipy import stats

import gradscribe as gs
from gradscribe import LanguageError, RuleError, ShapeError

X = np.array([1.0, 2.0, 3.0])


@refused(RuleError)
def require_that_may_copy():
    def f(x):
        y = np.require(x, requirements=["O", "W"])
        return np.sum(y)
    emitted(f, X)


@refused(ShapeError)
def windows_of_too_many_axes():
    def f(x):
        return np.sum(np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=0))
    emitted(f, X)


@refused(RuleError)
def errstate_that_raises_in_compiled_code():
    def f(x):
        with np.errstate(invalid="raise"):
            return np.sum(np.sqrt(x))
    gs.jit(gs.grad(f))(X)


@refused(LanguageError)
def truth_values_of_python_and_of_numpy():
    def f(x):
        return ((x[0] > 0 and True) + True) * x[0]
    emitted(f, X)


class Plain:
    def __init__(self, v):
        self.v = v


class Other(Plain):
    pass


@refused(LanguageError)
def an_object_given_another_class():
    def f(x):
        p = Plain(x[0])
        p.__class__ = Other
        return p.v * x[1]
    emitted(f, X)


@refused(ShapeError)
def written_where_it_may_hold_whole_numbers():
    def f(x):
        d = np.zeros(2, int) if x[0] > 0 else np.zeros(2)
        d[0] = x[1]
        return d[0] * x[1]
    emitted(f, X)


@refused(LanguageError)
def the_type_of_what_may_be_an_array_without_axes():
    def f(x):
        t = np.where(x[0] > 0, x[1], x[2])
        return t * 2 if isinstance(t, np.ndarray) else t
    emitted(f, X)


@refused(LanguageError)
def the_type_of_a_function():
    def f(x):
        def g(v):
            return v * 2
        return x[0] if type(g) is float else g(x[1])
    emitted(f, X)


@refused(LanguageError)
def a_pattern_for_a_list_of_unknown_length():
    def f(x):
        items = [v * v for v in x]
        match items:
            case [first, *_]:
                return first
            case _:
                return x[0]
    emitted(f, X)


READ = np.ones(3)


@refused(LanguageError)
def an_argument_that_is_read_from_outside():
    def f(x):
        x[0] = 5.0
        return np.sum(x * READ)
    gs.grad(f)(READ)


@refused(LanguageError)
def a_generator_over_an_array_read_twice():
    def f(x):
        squares = (v * v for v in x)
        return sum(squares) + max(squares)
    emitted(f, X)


@refused(LanguageError)
def what_a_handler_raises_again_when_running():
    def f(x):
        count = 0
        for i in range(2):
            try:
                try:
                    count += 1 // i
                except ZeroDivisionError:
                    count += 10
                    raise
            except ArithmeticError:
                pass
        return count * x[0]
    emitted(f, X)


@refused(LanguageError)
def a_try_inside_another_that_is_left_in_its_middle():
    def f(x):
        def first(values, k):
            try:
                if k > 5:
                    return x[0]
                return values[k]
            except KeyError:
                raise ValueError(k)
        try:
            return first({0: x[1]}, 2)
        except ValueError:
            return x[2]
    emitted(f, X)


@refused(LanguageError)
def views_of_dictionaries_compared():
    def f(x):
        d = {"a": x[0]}
        return x[0] if d.keys() == ["a"] else x[1]
    emitted(f, X)


@refused(LanguageError)
def an_array_compared_with_none():
    def f(x):
        return np.sum(x != None) * x[0]  # noqa: E711 (entry by entry)
    emitted(f, X)


OUTSIDE = iter([1.0, 2.0])


@refused(LanguageError)
def an_iterator_from_outside():
    def f(x):
        return sum(OUTSIDE) * x[0]
    emitted(f, X)


@refused(LanguageError)
def an_iterator_without_an_end_read_again():
    def f(x):
        count, s = itertools.count(), 0.0
        for v, k in zip([x[0], x[1]], count):
            s = s + k * v
        for v, k in zip([x[1], x[2]], count):
            s = s + k * v
        return s
    emitted(f, X)


@refused(LanguageError)
def a_name_set_in_a_generator():
    def f(x):
        last = x[0]
        return x[1] if any((last := v) > 2.0 for v in x) else last
    emitted(f, X)


@refused(LanguageError)
def alternatives_that_bind_names():
    def f(x):
        match (int(x[0] * 10), x[1]):
            case (21, b) | (b, 21):
                return b * 2
            case _:
                return x[2]
    emitted(f, X)


class NotNegative:
    def __get__(self, held, owner=None):
        return held._w

    def __set__(self, held, value):
        held._w = max(value, 0.0)


class WithADescriptor:
    w = NotNegative()

    def __init__(self, w):
        self.w = w


@refused(LanguageError)
def a_descriptor_that_is_set():
    emitted(lambda x: WithADescriptor(x[0]).w * x[1], X)


@refused(RuleError)
def a_mean_in_whole_numbers():
    emitted(lambda x: np.mean(x, dtype=int) * x[0], X)


@refused(RuleError)
def an_average_along_axes_out_of_order():
    emitted(lambda x: np.sum(np.average(x.reshape(1, 3, 1), axis=(1, 0), weights=np.ones((3, 1)))), X)


Z = np.array([0.5 + 1.0j, 1.5, 2.5j])


@refused(RuleError)
def a_histogram_of_complex_numbers():
    emitted(lambda x: np.sum(np.histogram(Z * x, 3, weights=x)[0] ** 2), X)


@refused(RuleError)
def a_plane_of_complex_numbers():
    emitted(lambda x: np.sum(np.histogram2d(Z, X, 3, weights=x)[0] ** 2), X)


@refused(RuleError)
def a_product_of_rows():
    emitted(lambda x: np.sum(math.prod(np.reshape(x, (3, 1)))), X)


@refused(RuleError)
def an_axis_of_a_number():
    emitted(lambda x: np.sum(x[0], axis=0) * x[1], X)


@refused(RuleError)
def a_quantile_along_no_axis():
    emitted(lambda x: np.sum(np.quantile(x, 0.5, axis=())), X)


@refused(RuleError)
def a_density_of_complex_numbers():
    emitted(lambda x: np.sum(np.real(stats.norm.logpdf(Z * x))), X)


class Counted:
    n = 1.0


COUNTED = Counted()


@refused(LanguageError)
def a_jacobian_of_what_counts_its_calls():
    def f(x):
        COUNTED.n = COUNTED.n + 1.0
        return x * COUNTED.n
    gs.jacfwd(f)(X)


@refused(gs.KindError)
def an_adjoint_with_fewer_axes():
    f = gs.custom_vjp(lambda x: np.sum(x ** 2))
    f.defvjp(lambda x: (np.sum(x ** 2), x), lambda x, dy: (np.sum(2 * x * dy),))
    gs.grad(lambda x: f(x))(X)


@refused(gs.KindError)
def a_tangent_of_another_shape():
    f = gs.custom_jvp(lambda x: np.sum(x ** 2))
    f.defjvp(lambda primals, tangents: (np.sum(primals[0] ** 2), 2 * primals[0] * tangents[0]))
    gs.grad(lambda x: f(x))(X)


@refused(gs.KindError)
def a_forward_half_of_another_shape():
    f = gs.custom_vjp(lambda x: np.sum(x ** 2))
    f.defvjp(lambda x: (x ** 2, x), lambda x, dy: (2 * x * dy,))
    gs.grad(lambda x: f(x))(X)


@refused(LanguageError)
def numbers_in_an_array_of_objects():
    def f(x):
        held = np.empty(2, dtype=object)
        held[0] = x[1]
        return np.sum(x) * held[0]
    gs.grad(lambda x: f(x))(X)


@refused(LanguageError)
def numbers_as_objects():
    gs.grad(lambda x: np.sum(x.astype(object) ** 2))(X)


@refused(LanguageError)
def numbers_in_a_new_array_of_objects():
    gs.grad(lambda x: x[0] * float(np.full(2, x[1], dtype=object)[0]))(X)


@refused(ShapeError)
def keys_in_another_order():
    def f(x):
        d = {"a": x[0], "b": 2 * x[1]}
        if x[1] > 1.0:
            d = {"b": x[0] * x[1], "a": x[2]}
        return sum(k * v for k, v in zip((1.0, 2.0), d.values()))
    gs.grad(f)(X)


@refused(gs.KindError)
def whole_number_beside_what_is_differentiated():
    gs.grad(lambda p: p["w"] ** p["n"])({"w": 2.0, "n": 3})


RATE = 2.0
CHOSEN = {1.0, 2.0}


@refused(gs.KindError)
def pullback_of_what_has_changed():
    global RATE
    RATE = 2.0
    _, pull = gs.vjp(lambda x: RATE * x[0], X)
    RATE = 3.0
    gs.grad(lambda t: pull(t)[0][0])(1.0)


@refused(LanguageError)
def value_in_the_place_of_a_class():
    gs.grad(lambda x: x * 2 if issubclass(x, float) else x)(2.0)


@refused(LanguageError)
def value_looked_for_in_a_set():
    gs.grad(lambda x: x * 2 if np.sum(x) in CHOSEN else x)(2.0)
