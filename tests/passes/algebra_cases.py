"""Simplification of generated arithmetic: sums, products, reductions, transposes."""
import numpy as np
from passes.cases import Case, as_generated, gradient, new_body, new_body_and_result, then_cleaned

from gradscribe.ast_transform.passes.algebra import axes_kept, in_normal_form, turned_products, without_zeros
from gradscribe.ast_transform.passes.peephole import by_identities
from gradscribe.ast_transform.passes.products import divided_once, numbers_to_rows, rows_first

CASES = {
    by_identities: Case(
        given=lambda: as_generated("""
            def f(x, w):
                y = np.exp(x) + -w
                return y / -x
            """, np.ones(3), np.ones(3)),
        before="""
            f(x, w):
                exp_x = np.exp(x)
                z = -(w)
                y = exp_x + z
                z_1 = -(x)
                z_2 = y / z_1
                return z_2
            """,
        after="""
            f(x, w):
                exp_x = np.exp(x)
                y = exp_x - w
                z = -(x)
                z_1 = y / z
                return z_1
            """,
        change=then_cleaned(new_body(by_identities)),
    ),
    in_normal_form: Case(
        given=lambda: gradient("""
            def f(x, w):
                z = x - 1
                return np.sum(w * (0.5 * z ** 2))
            """, np.ones(3), np.ones(3)),
        before="""
            grad_f(x, w):
                z = x - 1
                dz = 0.5 * w
                z_1 = 2 * z
                dz_1 = dz * z_1
                return dz_1
            """,
        after="""
            grad_f(x, w):
                z = x - 1
                dz = w * z
                return dz
            """,
        change=then_cleaned(new_body(in_normal_form)),
    ),
    without_zeros: Case(
        given=lambda: gradient("""
            def f(x):
                m = np.max(x)
                return m + np.log(np.sum(np.exp(x - m)))
            """, np.ones(3)),
        before="""
            grad_f(x):
                m = np.max(x)
                z = x - m
                exp_z = np.exp(z)
                sum_exp_z = np.sum(exp_z)
                dexp_z = 1 / sum_exp_z
                dx = dexp_z * exp_z
                t = np.sum(dx)
                dm = 1 - t
                z_1 = eq(x, m)
                z_2 = astype(z_1, np.float64)
                sum_z = np.sum(z_2)
                t_1 = dm / sum_z
                z_3 = t_1 * z_2
                dx_1 = z_3 + dx
                return dx_1
            """,
        after="""
            grad_f(x):
                m = np.max(x)
                z = x - m
                exp_z = np.exp(z)
                sum_exp_z = np.sum(exp_z)
                dexp_z = 1 / sum_exp_z
                dx = dexp_z * exp_z
                return dx
            """,
        change=then_cleaned(new_body_and_result(without_zeros)),
    ),
    axes_kept: Case(
        given=lambda: gradient("""
            def f(x):
                return np.sum(np.exp(x) / np.sum(x, axis=1)[:, None])
            """, np.ones((3, 2))),
        before="""
            grad_f(x):
                exp_x = np.exp(x)
                sum_x = np.sum(x, axis=1)
                sum_x_1 = sum_x[(slice(None, None, None), None)]
                z = exp_x / sum_x_1
                dexp_x = 1 / sum_x_1
                z_1 = z / sum_x_1
                t = np.sum(z_1, axis=1, keepdims=True)
                dsum_x = t[(slice(None, None, None), 0)]
                dsum_x_1 = -(dsum_x)
                dx = dsum_x_1[(slice(None, None, None), None)]
                z_2 = dexp_x * exp_x
                dx_1 = z_2 + dx
                return dx_1
            """,
        after="""
            grad_f(x):
                exp_x = np.exp(x)
                sum_x = np.sum(x, axis=1)
                sum_x_1 = sum_x[(slice(None, None, None), None)]
                z = exp_x / sum_x_1
                dexp_x = 1 / sum_x_1
                z_1 = z / sum_x_1
                dsum_x = np.sum(z_1, axis=1)
                dsum_x_1 = dsum_x[(slice(None, None, None), None)]
                dx = -(dsum_x_1)
                z_2 = dexp_x * exp_x
                dx_1 = z_2 + dx
                return dx_1
            """,
        change=then_cleaned(new_body(axes_kept)),
    ),
    turned_products: Case(
        given=lambda: gradient("""
            def f(A, B):
                return np.sum(np.sin(B @ A.T))
            """, np.ones((3, 2)), np.ones((4, 2))),
        before="""
            grad_f(A, B):
                transpose_A = np.transpose(A)
                z = B @ transpose_A
                dz = np.cos(z)
                transpose_B = np.transpose(B)
                dtranspose_A = transpose_B @ dz
                dA = np.transpose(dtranspose_A)
                return dA
            """,
        after="""
            grad_f(A, B):
                transpose_A = np.transpose(A)
                z = B @ transpose_A
                dz = np.cos(z)
                transpose_dz = np.transpose(dz)
                dA = transpose_dz @ B
                return dA
            """,
        change=then_cleaned(new_body(turned_products)),
    ),
    rows_first: Case(
        given=lambda: gradient("""
            def f(m, x, Q):
                return np.sum(np.sin((x - m) @ Q))
            """, np.ones(3), np.ones((4, 3)), np.ones((3, 2))),
        before="""
            grad_f(m, x, Q):
                z = x - m
                z_1 = z @ Q
                dz = np.cos(z_1)
                transpose_Q = np.transpose(Q)
                dz_1 = dz @ transpose_Q
                t = np.sum(dz_1, axis=0)
                dm = -(t)
                return dm
            """,
        after="""
            grad_f(m, x, Q):
                z = x - m
                z_1 = z @ Q
                dz = np.cos(z_1)
                transpose_Q = np.transpose(Q)
                t = np.sum(dz, axis=0)
                t_1 = t @ transpose_Q
                dm = -(t_1)
                return dm
            """,
        change=then_cleaned(new_body(rows_first)),
    ),
    divided_once: Case(
        given=lambda: gradient("""
            def f(a, b):
                y = a / b
                return np.sum(np.sin(y))
            """, np.ones(3), np.ones(3), wrt=(0, 1)),
        before="""
            grad_f(a, b):
                y = a / b
                dy = np.cos(y)
                da = dy / b
                z = y / b
                z_1 = dy * z
                db = -(z_1)
                return (da, db)
            """,
        after="""
            grad_f(a, b):
                y = a / b
                dy = np.cos(y)
                da = dy / b
                z = da * y
                db = -(z)
                return (da, db)
            """,
        change=then_cleaned(new_body(divided_once)),
    ),
    numbers_to_rows: Case(
        given=lambda: gradient("""
            def f(x):
                return np.sum(np.sqrt(np.sum(x ** 2, axis=1)))
            """, np.ones((3, 2))),
        before="""
            grad_f(x):
                z = x ** 2
                sum_z = np.sum(z, axis=1)
                sqrt_sum_z = np.sqrt(sum_z)
                z_1 = 2 * sqrt_sum_z
                dsum_z = 1 / z_1
                dz = dsum_z[(slice(None, None, None), None)]
                z_2 = 2 * x
                dx = dz * z_2
                return dx
            """,
        after="""
            grad_f(x):
                z = x ** 2
                sum_z = np.sum(z, axis=1)
                sqrt_sum_z = np.sqrt(sum_z)
                z_1 = 2 * sqrt_sum_z
                dsum_z = 1 / z_1
                dsum_z_1 = 2 * dsum_z
                dz = dsum_z_1[(slice(None, None, None), None)]
                dx = dz * x
                return dx
            """,
        change=then_cleaned(new_body(numbers_to_rows)),
    ),
}
