"""Passes over arrays that are written in place: views, writes, and who owns an array."""
import numpy as np
from passes.cases import (
    Case,
    form,
    gradient,
    new_body,
    new_body_and_result,
    raw_gradient,
    then_cleaned,
)

from gradscribe.ast_transform.passes.carried_views import carried_views
from gradscribe.ast_transform.passes.dead_writes import without_dead_writes
from gradscribe.ast_transform.passes.entries import entries
from gradscribe.ast_transform.passes.first_writes import first_writes, listed
from gradscribe.ast_transform.passes.handed_on import handed_on
from gradscribe.ast_transform.passes.inner_writes import inner_writes
from gradscribe.ast_transform.passes.results import owned_results
from gradscribe.ast_transform.passes.simplify import simplify
from gradscribe.ast_transform.passes.through_views import through_views
from gradscribe.ast_transform.passes.vjp.expansion import length_of
from gradscribe.ast_transform.passes.vjp.overwritten import forgotten

CASES = {
    through_views: Case(
        given=lambda: form("""
            def f(a, v):
                b = a[1:]
                b[0] = v
                return a
            """, np.ones(4), 2.0),
        before="""
            f(a, v):
                b = a[slice(1, None, None)]
                b_1 = put(b, 0, v)
                a_1 = put(a, slice(1, None, None), b_1)
                b_2 = a_1[slice(1, None, None)]
                return a_1
            """,
        after="""
            f(a, v):
                b = a[slice(1, None, None)]
                a_1 = put(a, 1, v)
                b_1 = a_1[slice(1, None, None)]
                return a_1
            """,
        change=through_views,
    ),
    carried_views: Case(
        given=lambda: form("""
            def f(x, n):
                y = x.reshape(2, 3)
                for i in range(n):
                    y[0, i] = 2.0
                return x
            """, np.ones(6), 3),
        before="""
            f(x, n):
                y = np.reshape(x, (2, 3))
                enter x_1 = x
                for i in range(n):
                    y_1 = np.reshape(x_1, (2, 3))
                    y_2 = put(y_1, (0, i), 2.0)
                    n_0 = shape_of(x_1, 0)
                    reshape_y = np.reshape(y_2, (n_0))
                    x_2 = reshape_y
                    x_3 = x_2
                    y_3 = np.reshape(x_3, (2, 3))
                    next x_1 = x_3
                leave x_4 = x_1
                y_4 = np.reshape(x_4, (2, 3))
                return x_4
            """,
        after="""
            f(x, n):
                n_0 = shape_of(x, 0)
                y = np.reshape(x, (2, 3))
                enter y_1 = y
                for i in range(n):
                    y_2 = y_1
                    y_3 = put(y_2, (0, i), 2.0)
                    next y_1 = y_3
                leave y_4 = y_1
                x_1 = np.reshape(y_4, (n_0))
                return x_1
            """,
        change=then_cleaned(carried_views),
    ),
    entries: Case(
        given=lambda: form("""
            def f(x, k):
                x = x.copy()
                y = x[..., k]
                x[k] = 2.0
                return x * y
            """, np.ones(3), 1),
        before="""
            f(x, k):
                x_1 = np.copy(x)
                y = x_1[(Ellipsis, k)]
                x_2 = put(x_1, k, 2.0)
                y_1 = x_2[(Ellipsis, k)]
                z = x_2 * y_1
                return z
            """,
        after="""
            f(x, k):
                x_1 = np.copy(x)
                y = x_1[k]
                x_2 = put(x_1, k, 2.0)
                y_1 = x_2[k]
                z = x_2 * y_1
                return z
            """,
        change=entries,
    ),
    first_writes: Case(
        given=lambda: gradient("""
            def f(x):
                return x[0] * x[1]
            """, np.ones(3)),
        before="""
            grad_f(x):
                x_1 = x[0]
                x_2 = x[1]
                dx = np.zeros_like(x)
                dx_1 = put_add(dx, 1, x_1)
                dx_2 = put_add(dx_1, 0, x_2)
                return dx_2
            """,
        after="""
            grad_f(x):
                x_1 = x[0]
                x_2 = x[1]
                dx = np.zeros_like(x)
                dx_1 = put(dx, 1, x_1)
                dx_2 = put(dx_1, 0, x_2)
                return dx_2
            """,
        change=first_writes,
    ),
    listed: Case(
        given=lambda: first_writes(gradient("""
            def f(x):
                a, b = x
                return a * b
            """, np.ones(2))),
        before="""
            grad_f(x):
                a = x[0]
                b = x[1]
                dx = np.zeros_like(x)
                dx_1 = put(dx, 1, a)
                dx_2 = put(dx_1, 0, b)
                return dx_2
            """,
        after="""
            grad_f(x):
                a = x[0]
                b = x[1]
                dx = np.array([b, a])
                return dx
            """,
        change=listed,
    ),
    inner_writes: Case(
        given=lambda: raw_gradient("""
            def f(m):
                row = m[0]
                return row[1] * 2
            """, np.ones((3, 2))),
        before="""
            grad_f(m):
                row = m[0]
                drow = np.zeros_like(row)
                drow_1 = put_add(drow, 1, 2)
                dm = np.zeros_like(m)
                dm_1 = put_add(dm, 0, drow_1)
                return dm_1
            """,
        after="""
            grad_f(m):
                dm = np.zeros_like(m)
                dm_1 = put_add(dm, (0, 1), 2)
                return dm_1
            """,
        change=then_cleaned(new_body(lambda f: inner_writes(f.body, f.result))),
    ),
    without_dead_writes: Case(
        given=lambda: raw_gradient("""
            def f(x):
                y = np.zeros_like(x)
                y[0] = x[0]
                y[0] = np.sin(y[0])
                return np.sum(y)
            """, np.ones(3)),
        before="""
            grad_f(x):
                y = np.zeros_like(x)
                x_1 = x[0]
                y_1 = put(y, 0, x_1)
                y_2 = y_1[0]
                sin_y = np.sin(y_2)
                y_3 = put(y_1, 0, sin_y)
                dy = np.ones_like(y_3)
                dsin_y = dy[0]
                dy_1 = put(dy, 0, 0.0)
                cos_y = np.cos(y_2)
                dy_2 = dsin_y * cos_y
                dy_3 = put_add(dy_1, 0, dy_2)
                dx = dy_3[0]
                dx_1 = np.zeros_like(x)
                dx_2 = put_add(dx_1, 0, dx)
                return dx_2
            """,
        after="""
            grad_f(x):
                y = np.zeros_like(x)
                x_1 = x[0]
                y_1 = put(y, 0, x_1)
                y_2 = y_1[0]
                sin_y = np.sin(y_2)
                y_3 = put(y_1, 0, sin_y)
                dy = np.ones_like(y_3)
                dsin_y = dy[0]
                cos_y = np.cos(y_2)
                dy_1 = dsin_y * cos_y
                dy_2 = put(dy, 0, dy_1)
                dx = dy_2[0]
                dx_1 = np.zeros_like(x)
                dx_2 = put_add(dx_1, 0, dx)
                return dx_2
            """,
        change=then_cleaned(new_body_and_result(
            lambda f: without_dead_writes(f.body, f.result, [p.value for p in f.params]))),
    ),
    forgotten: Case(
        given=lambda: form("""
            def f(x, k):
                k = k.copy()
                k[0] = x[0]
                k[1:] = x[1:]
                return k
            """, np.ones(3), np.ones(3)),
        before="""
            f(x, k):
                k_1 = np.copy(k)
                x_1 = x[0]
                k_2 = put(k_1, 0, x_1)
                x_2 = x[slice(1, None, None)]
                k_3 = put(k_2, slice(1, None, None), x_2)
                return k_3
            """,
        after="""
            f(x, k):
                x_1 = x[0]
                k_1 = np.empty_like(k)
                k_2 = put(k_1, 0, x_1)
                x_2 = x[slice(1, None, None)]
                k_3 = put(k_2, slice(1, None, None), x_2)
                return k_3
            """,
        change=then_cleaned(new_body(lambda f: forgotten(f, lambda length: length_of(f, length), ()))),
    ),
    handed_on: Case(
        given=lambda: simplify(gradient("""
            def f(u, n):
                v = np.zeros_like(u)
                for t in range(n):
                    v[1:] = u[:-1]
                    u, v = v, u
                return np.sum(u)
            """, np.ones(4), 3)),
        before="""
            grad_f(u, n):
                v = np.zeros_like(u)
                enter u_1 = u
                enter v_1 = v
                for t in range(n):
                    u_2 = u_1[slice(None, -1, None)]
                    v_2 = put(v_1, slice(1, None, None), u_2)
                    next u_1 = v_2
                    next v_1 = u_1
                leave u_3 = u_1
                leave v_3 = v_1
                du = np.ones_like(u_3)
                dv = np.zeros_like(v_3)
                enter du_1 = du
                enter dv_1 = dv
                for t_1 in reversed range(n):
                    du_2 = du_1[slice(1, None, None)]
                    du_3 = np.copy(du_2)
                    dv_2 = put(du_1, slice(1, None, None), 0.0)
                    du_4 = put_add(dv_1, slice(None, -1, None), du_3)
                    next du_1 = du_4
                    next dv_1 = dv_2
                leave du_5 = du_1
                leave dv_3 = dv_1
                return du_5
            """,
        after="""
            grad_f(u, n):
                v = np.zeros_like(u)
                enter u_1 = u
                enter v_1 = v
                for t in range(n):
                    u_2 = u_1[slice(None, -1, None)]
                    v_2 = put(v_1, slice(1, None, None), u_2)
                    next u_1 = v_2
                    next v_1 = u_1
                leave u_3 = u_1
                leave v_3 = v_1
                du = np.ones_like(u_3)
                dv = np.zeros_like(v_3)
                enter du_1 = du
                enter dv_1 = dv
                for t_1 in reversed range(n):
                    du_2 = du_1[slice(1, None, None)]
                    du_3 = np.copy(du_2)
                    dv_2 = du_1
                    dv_3 = put(dv_2, slice(1, None, None), 0.0)
                    du_4 = dv_1
                    du_5 = put_add(du_4, slice(None, -1, None), du_3)
                    next du_1 = du_5
                    next dv_1 = dv_3
                leave du_6 = du_1
                leave dv_4 = dv_1
                return du_6
            """,
        change=handed_on,
    ),
    owned_results: Case(
        given=lambda: form("""
            def f(x):
                return x, x * 2
            """, np.ones(3)),
        before="""
            f(x):
                z = x * 2
                return (x, z)
            """,
        after="""
            f(x):
                z = x * 2
                x_1 = np.copy(x)
                return (x_1, z)
            """,
        change=owned_results,
    ),
}
