"""Simplification: dead code, common subexpressions, loop invariants, branches, lengths."""
import numpy as np
from passes.cases import (
    Case,
    cleaned,
    form,
    gradient,
    in_place,
    new_body,
    on_body,
    then_cleaned,
    with_replacements,
)

from gradscribe.ast_transform.passes.algebra import constant_carries
from gradscribe.ast_transform.passes.simplify import (
    ask_entered,
    ask_latest,
    ask_named_values,
    drop_dead,
    hoist,
    merge_branches,
    merge_common,
    parts_first,
    simplify,
)

CASES = {
    simplify: Case(
        given=lambda: form("""
            def f(x, w, n):
                for i in range(n):
                    x = np.sin(x) * np.sin(w)
                return np.sum(x)
            """, np.ones(3), np.ones(3), 2),
        before="""
            f(x, w, n):
                enter x_1 = x
                for i in range(n):
                    sin_x = np.sin(x_1)
                    sin_w = np.sin(w)
                    x_2 = sin_x * sin_w
                    next x_1 = x_2
                leave x_3 = x_1
                sum_x = np.sum(x_3)
                return sum_x
            """,
        after="""
            f(x, w, n):
                sin_w = np.sin(w)
                enter x_1 = x
                for i in range(n):
                    sin_x = np.sin(x_1)
                    x_2 = sin_x * sin_w
                    next x_1 = x_2
                leave x_3 = x_1
                sum_x = np.sum(x_3)
                return sum_x
            """,
        change=simplify,
    ),
    drop_dead: Case(
        given=lambda: form("""
            def f(x):
                y = np.sin(x)
                return x * 2
            """, 1.0),
        before="""
            f(x):
                y = np.sin(x)
                t = x * 2
                return t
            """,
        after="""
            f(x):
                t = x * 2
                return t
            """,
        change=cleaned,
    ),
    constant_carries: Case(
        given=lambda: gradient("""
            def f(x):
                s = 0.0
                for i in range(len(x)):
                    s = s + np.sin(x[i])
                return s
            """, np.ones(3)),
        before="""
            grad_f(x):
                n_0 = shape_of(x, 0)
                dx = np.zeros_like(x)
                enter ds = 1.0
                enter dx_1 = dx
                for i in reversed range(n_0):
                    x_1 = x[i]
                    cos_x = np.cos(x_1)
                    dx_2 = ds * cos_x
                    dx_3 = put_add(dx_1, i, dx_2)
                    next ds = ds
                    next dx_1 = dx_3
                leave ds_1 = ds
                leave dx_4 = dx_1
                return dx_4
            """,
        after="""
            grad_f(x):
                n_0 = shape_of(x, 0)
                dx = np.zeros_like(x)
                enter dx_1 = dx
                for i in reversed range(n_0):
                    x_1 = x[i]
                    cos_x = np.cos(x_1)
                    dx_2 = 1.0 * cos_x
                    dx_3 = put_add(dx_1, i, dx_2)
                    next dx_1 = dx_3
                leave dx_4 = dx_1
                return dx_4
            """,
        change=new_body(constant_carries),
    ),
    merge_common: Case(
        given=lambda: gradient("""
            def f(x):
                y = np.cos(x)
                return np.sin(x) * y
            """, 1.0),
        before="""
            grad_f(x):
                y = np.cos(x)
                sin_x = np.sin(x)
                cos_x = np.cos(x)
                dx = y * cos_x
                sin_x_1 = np.sin(x)
                t = sin_x * sin_x_1
                dx_1 = dx - t
                return dx_1
            """,
        after="""
            grad_f(x):
                y = np.cos(x)
                sin_x = np.sin(x)
                dx = y * y
                t = sin_x * sin_x
                dx_1 = dx - t
                return dx_1
            """,
        change=with_replacements(merge_common),
    ),
    hoist: Case(
        given=lambda: form("""
            def f(x, w, n):
                for i in range(n):
                    x = x * np.sin(w)
                return x
            """, np.ones(3), np.ones(3), 2),
        before="""
            f(x, w, n):
                enter x_1 = x
                for i in range(n):
                    sin_w = np.sin(w)
                    x_2 = x_1 * sin_w
                    next x_1 = x_2
                leave x_3 = x_1
                return x_3
            """,
        after="""
            f(x, w, n):
                sin_w = np.sin(w)
                enter x_1 = x
                for i in range(n):
                    x_2 = x_1 * sin_w
                    next x_1 = x_2
                leave x_3 = x_1
                return x_3
            """,
        change=on_body(hoist),
    ),
    parts_first: Case(
        given=lambda: form("""
            def f(x, p, n):
                for i in range(n):
                    x = x * p[0]
                return x
            """, 1.0, (2.0, 3.0), 2),
        before="""
            f(x, p, n):
                enter x_1 = x
                for i in range(n):
                    p_1 = p[0]
                    x_2 = x_1 * p_1
                    next x_1 = x_2
                leave x_3 = x_1
                return x_3
            """,
        after="""
            f(x, p, n):
                p_1 = p[0]
                enter x_1 = x
                for i in range(n):
                    x_2 = x_1 * p_1
                    next x_1 = x_2
                leave x_3 = x_1
                return x_3
            """,
        change=on_body(parts_first),
    ),
    merge_branches: Case(
        given=lambda: form("""
            def f(x):
                positive = x > 0
                if positive:
                    y = np.sin(x)
                else:
                    y = x
                z = x * 2
                if positive:
                    z = z * y
                return z
            """, 1.0),
        before="""
            f(x):
                positive = x > 0
                if positive:
                    y = np.sin(x)
                else:
                    pass
                join y_1 = y | x
                z = x * 2
                if positive:
                    z_1 = z * y_1
                else:
                    pass
                join z_2 = z_1 | z
                return z_2
            """,
        after="""
            f(x):
                positive = x > 0
                z = x * 2
                if positive:
                    y = np.sin(x)
                    z_1 = z * y
                else:
                    pass
                join y_1 = y | x
                join z_2 = z_1 | z
                return z_2
            """,
        change=on_body(merge_branches),
    ),
    ask_entered: Case(
        given=lambda: form("""
            def f(x, n):
                for i in range(n):
                    x = np.sin(x) / len(x)
                return x
            """, np.ones(3), 2),
        before="""
            f(x, n):
                enter x_1 = x
                for i in range(n):
                    sin_x = np.sin(x_1)
                    n_0 = shape_of(x_1, 0)
                    x_2 = sin_x / n_0
                    next x_1 = x_2
                leave x_3 = x_1
                return x_3
            """,
        after="""
            f(x, n):
                enter x_1 = x
                for i in range(n):
                    sin_x = np.sin(x_1)
                    n_0 = shape_of(x, 0)
                    x_2 = sin_x / n_0
                    next x_1 = x_2
                leave x_3 = x_1
                return x_3
            """,
        change=on_body(ask_entered),
    ),
    ask_latest: Case(
        given=lambda: on_body(ask_entered)(form("""
            def f(x, n):
                y = x * 2
                for i in range(n):
                    y[i] = 1 / len(y)
                return y
            """, np.ones(3), 2)),
        before="""
            f(x, n):
                y = x * 2
                enter y_1 = y
                for i in range(n):
                    n_0 = shape_of(y, 0)
                    t = 1 / n_0
                    y_2 = put(y_1, i, t)
                    next y_1 = y_2
                leave y_3 = y_1
                return y_3
            """,
        after="""
            f(x, n):
                y = x * 2
                enter y_1 = y
                for i in range(n):
                    n_0 = shape_of(y_1, 0)
                    t = 1 / n_0
                    y_2 = put(y_1, i, t)
                    next y_1 = y_2
                leave y_3 = y_1
                return y_3
            """,
        change=ask_latest,
    ),
    ask_named_values: Case(
        given=lambda: gradient("""
            def f(p, y):
                return np.mean(p - y)
            """, np.ones(3), np.ones(3)),
        before="""
            grad_f(p, y):
                z = p - y
                n_0 = shape_of(z, 0)
                dp = 1.0 / n_0
                dp_1 = np.full_like(p, dp)
                return dp_1
            """,
        after="""
            grad_f(p, y):
                n_0 = shape_of(p, 0)
                dp = 1.0 / n_0
                dp_1 = np.full_like(p, dp)
                return dp_1
            """,
        change=then_cleaned(in_place(ask_named_values)),
    ),
}
