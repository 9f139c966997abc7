"""What a loop goes through is made in its passes, as in Python: map and generators over what the loop changes.

An iterator that stands elsewhere is made where it stands: it is refused once what its elements are made of has changed.
"""
import itertools

import numpy as np
import pytest
from programs.checks import differences

import gradscribe as gs

X = np.array([0.3, 0.4, 0.5])


def change(v):
    v[1:] *= -0.4
    return np.sum(v)


def an_array_of_the_list_is_written(p):
    p = [p * 1.0, p * 2.0]
    s = 0.0
    for _j, h in enumerate(map(np.sin, p)):
        s = s + np.sum(h)
        p[1][1:] *= -0.4
    return s


def a_function_writes(p):
    p = [p * 1.0, p * 2.0]
    s = 0.0
    for h in map(np.sin, p):
        s = s + np.sum(h) * change(p[1])
    return s


def a_generator(p):
    p = [p * 1.0, p * 2.0]
    s = 0.0
    for h in (np.sin(q) for q in p):
        s = s + np.sum(h) * change(p[1])
    return s


def by_another_name(p):
    q = p * 1.0
    r = p * 2.0
    s = 0.0
    for h in map(np.sin, [q, r]):
        s = s + np.sum(h) * change(r)
    return s


def entries_of_an_array(p):
    q = p * 1.0
    s = 0.0
    for h in map(np.sin, q):
        s = s + h * change(q)
    return s


def values_of_a_dict(p):
    p = {'a': p * 1.0, 'b': p * 2.0}
    s = 0.0
    for h in map(np.sin, p.values()):
        s = s + np.sum(h) * change(p['b'])
    return s


def a_list_of_them(p):
    p = [p * 1.0, p * 2.0]
    s = 0.0
    for h in [np.sin(q) for q in p]:
        s = s + np.sum(h) * change(p[1])
    return s


def a_generator_reads_what_is_written(p):
    q = p * 1.0
    k = [q]
    s = 0.0
    for h in (np.sin(k[0]) * t for t in (1.0, 2.0)):
        s = s + np.sum(h)
        change(k[0])
    return s


def a_function_reads_what_is_written(p):
    q = p * 1.0
    c = {'w': q}
    s = 0.0
    g = lambda t: np.sin(c['w']) * t      # noqa: E731 (the program's own form)
    for h in map(g, (1.0, 2.0)):
        s = s + np.sum(h)
        change(c['w'])
    return s


def written_beside(p):
    q = p * 1.0
    out = np.zeros(3)
    for k, h in enumerate(map(np.sin, q)):
        out[k] = h * 2
    return np.sum(out * q)


def put_into_a_list(p):
    q = [p * 1.0, p * 2.0]
    out = []
    for _k, h in enumerate(map(np.sin, q)):
        out.append(h * 2)
    return np.sum(out[0] * out[1])


def elements_replaced_after_a_list_was_made(p):
    q = [p * 1.0, p * 2.0]
    for k, h in enumerate(list(map(np.sin, q))):
        q[k] = h * 2
    return np.sum(q[0] * q[1])


def what_is_handed_on_alone(p):
    q = [p * 1.0, p * 2.0]
    it = iter(q)
    a = next(it)
    a[0] = 5 * p[1]
    b = next(it)
    b[1] *= 2
    return np.sum(q[0] * q[1])


def a_list_of_numbers(p):
    q = p * 1.0
    for h in list(map(np.sin, q)):
        q[0] += h
    return np.sum(q * q)


def beside_a_generator(p):
    q = [p * 1.0, p * 2.0]
    r = np.zeros(3)
    for a, b in zip(q, (np.sin(v) for v in q)):
        r[0] += np.sum(a * b)
        r[1:] *= 0.5
    return np.sum(r * r + r)


def written_before(p):
    q = [p * 1.0, p * 2.0]
    q[0][1] = 7 * p[0]
    return sum((np.sum(v) for v in map(lambda u: u * u, q)))


def in_a_loop(p):
    q = p * 1.0
    s = 0.0
    for i in range(3):
        s += sum(map(lambda v: v * v, q))
        q[i] *= 2.0
    return s


def again_in_each_pass(p):
    q = [p * 1.0, p * 2.0]
    s = 0.0
    for _i in range(3):
        for h in map(np.sin, q):
            s = s + np.sum(h)
        q[0] = q[0] * 1.5
        q[1][0] *= 2.0
    return s


def numbered_with_tests(p):
    q = p * 1.0
    s = 0.0
    for _k, h in enumerate((v * v for v in q)):
        if h > 0.1:
            s += h
        else:
            s -= h * 2
    return s


def a_dict_that_the_function_reads(p):
    q = [p * 1.0, p * 2.0]
    w = {'k': 2.0}
    s = 0.0

    def f(v):
        return v * w['k']
    for h in map(f, q):
        s += np.sum(h)
        w['k'] = w['k'] * s
    return s


def a_number_that_the_function_reads(p):
    q = [p * 1.0, p * 2.0]
    k = 2.0
    s = 0.0

    def f(v):
        return v * k
    for h in map(f, q):
        s += np.sum(h)
        k = k * s
    return s


def accumulated(p):
    q = [p * 1.0, p * 2.0, p * 3.0]
    s = 0.0
    for h in itertools.accumulate(q, lambda a, b: a * b):
        s += np.sum(h)
    return s


def two_lists_and_a_break(p):
    s = 0.0
    for i, (a, b) in enumerate(map(lambda u, v: (u * v, u + v), [p, p * 2], [p * 3, p])):
        if i == 1:
            break
        s += np.sum(a * b)
    return s


def a_continue_and_an_else(p):
    s = 0.0
    for a in (v * v for v in p):
        if a > 0.2:
            continue
        s += a
    else:
        s *= 2
    return s


def one_in_another_and_a_return(p):
    s = 0.0
    for a in map(np.sum, [p[:2], p]):
        for b in map(lambda t: t * a, p):
            s += b * a
            if s > 100:
                return s * 2
    return s


def a_name_of_the_generator(p):
    s = 0.0
    v = 3.0
    for h in (v * p[0] for v in p):
        s += h * v
    return s * v


def the_last_element(p):
    s = 0.0
    h = 7.0
    for h in map(lambda t: t * 2, p):
        s += h
    return s * h


def a_map_of_the_users(p):
    map = lambda f, x: [f(x)]      # noqa: E731 (the program's own form)
    s = 0.0
    for h in map(np.sin, p):
        s += np.sum(h)
    return s


def numbered_from_one(p):
    s = 0.0
    for k, h in enumerate(map(np.sin, p), 1):
        s += k * h
    return s * k


def rows_through_a_function(p):
    rows = np.outer(p, p)
    for r in map(lambda v: v, rows):
        r *= 2.0
    return np.sum(rows * rows)


def parts_of_rows(p):
    rows = np.outer(p, p)
    for k, r in enumerate((v[1:] for v in rows)):
        r *= p[k]
    return np.sum(rows * rows)


def nothing_to_go_through(p):
    s = 0.0
    for v in map(lambda u: u * p[0], p[:0]):
        s += v
    return s + np.sum(p)


def lists_of_two_lengths(p):
    s = 0.0
    for n, v in enumerate(map(lambda a, b: a * b, p, [1.0, 2.0])):
        s += v * n + v
    return s + np.sum(p)


def zipped(p):
    p = [p * 1.0, p * 2.0]
    s = 0.0
    for h, g in zip(map(np.sin, p), p):
        g[0] *= 2.0
        p[1][1] *= 2.0
        s = s + np.sum(h * g)
    return s


def next_of_it(p):
    p = [p * 1.0, p * 2.0]
    s = 0.0
    it = map(np.sin, p)
    s += np.sum(next(it))
    change(p[1])
    s += np.sum(next(it))
    return s


def summed_later(p):
    p = [p * 1.0, p * 2.0]
    it = (np.sin(q) for q in p)
    change(p[1])
    return sum((np.sum(q) for q in it))


def products_so_far(p):
    q = [p * 1.0, p * 2.0, p * 3.0]
    s = 0.0
    for h in itertools.accumulate(q, lambda a, b: a * b):
        s += np.sum(h)
        q[2] = q[2] * 5.0
    return s


def starred(p):
    q = [p * 1.0, p * 2.0]
    s = 0.0
    for h in itertools.starmap(lambda a, b: a * b, zip(q, q)):
        s += np.sum(h)
        q[1][0] *= 5.0
    return s


def it_puts_into_a_list(p):
    items = []
    for v in (items.append(k) or k for k in (p[0], p[1])):
        items.append(v * p[2])
    return items[0] * items[1] + items[2] * items[3]


def one_after_another(p):
    q = p * 1.0
    doubled = (v * 2 for v in q)
    more = (v + 1 for v in doubled)
    q[0] = 9 * p[1]
    return sum(more)


class Factor:
    def __init__(self, value):
        self.value = value


factor = Factor(2.0)


def times_the_factor(v):
    return v * factor.value


def a_function_that_reads_an_object(p):
    factor.value = 2.0
    products = map(times_the_factor, [p[0], p[1]])
    factor.value = p[2]
    return sum(products)


def an_attribute_set_between_passes(p):
    factor.value = 2.0
    s = 0.0
    for h, w in zip(map(lambda v: v * factor.value, [p[0], p[1], p[2]]), [1.0, 2.0, 3.0]):
        s += h * w
        factor.value = factor.value * p[0]
    return s


def an_array_in_an_object(p):
    held = Factor([p * 1.0, p * 2.0])
    products = map(lambda v: v * held.value[0][0], p[:2] * 1.0)
    held.value[0][0] = p[2]
    return sum(products)


RIGHT = [it_puts_into_a_list, an_array_of_the_list_is_written, a_function_writes, a_generator, by_another_name,
         entries_of_an_array,
         values_of_a_dict, a_list_of_them, a_generator_reads_what_is_written, a_function_reads_what_is_written,
         written_beside, put_into_a_list, elements_replaced_after_a_list_was_made, what_is_handed_on_alone,
         a_list_of_numbers, beside_a_generator, written_before, in_a_loop, again_in_each_pass, numbered_with_tests,
         a_dict_that_the_function_reads, a_number_that_the_function_reads, accumulated, two_lists_and_a_break,
         a_continue_and_an_else, one_in_another_and_a_return, a_name_of_the_generator, the_last_element,
         a_map_of_the_users, numbered_from_one, rows_through_a_function, parts_of_rows, nothing_to_go_through,
         lists_of_two_lengths]
LATE = [zipped, next_of_it, summed_later, products_so_far, one_after_another, starred,
        a_function_that_reads_an_object, an_attribute_set_between_passes, an_array_in_an_object]


@pytest.mark.parametrize("f", RIGHT)
@pytest.mark.parametrize("wrap", [lambda g: g, gs.jit], ids=["eager", "compiled"])
def test_values_and_gradients(f, wrap):
    value, gradient = wrap(gs.value_and_grad(f))(X.copy())
    np.testing.assert_allclose(value, f(X.copy()), rtol=1e-13)
    np.testing.assert_allclose(gradient, differences(f, X), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("f", LATE)
def test_what_has_changed_since_is_refused(f):
    for transformed in (gs.grad(f), gs.jit(f), gs.jacfwd(f)):
        with pytest.raises(gs.TransformError, match="has changed|before q changed|changes something"):
            transformed(X.copy())
