"""Passes for text that is read, for compiled code, for devices, and before a mode."""
import numpy as np
from passes.cases import Case, form, gradient, new_body, on_body, transformed

from gradscribe.ast_transform.mapping import on_devices
from gradscribe.ast_transform.passes.accumulators import summed_in_numbers
from gradscribe.ast_transform.passes.callees import without_calls
from gradscribe.ast_transform.passes.factorisations import factored_once
from gradscribe.ast_transform.passes.nesting import renest
from gradscribe.ast_transform.passes.nonnegative import Naturals
from gradscribe.ast_transform.passes.overlap import compressed, overlapped
from gradscribe.ast_transform.passes.own_indices import by_own_index
from gradscribe.ast_transform.passes.reparametrise import reparametrised
from gradscribe.ast_transform.passes.simplify import simplify
from gradscribe.ast_transform.passes.triangles import by_substitution
from gradscribe.ast_transform.passes.vjp.segments import segmented
from gradscribe.ast_transform.passes.zero_arms import in_other_arm
from gradscribe.ast_transform.reader.states import Reader
from gradscribe.ast_transform.transforms import identity

CASES = {
    renest: Case(
        given=lambda: gradient("""
            def f(x):
                return np.sum(np.sin(x) ** 2)
            """, np.ones(3)),
        before="""
            grad_f(x):
                sin_x = np.sin(x)
                dsin_x = 2 * sin_x
                cos_x = np.cos(x)
                dx = dsin_x * cos_x
                return dx
            """,
        after="""
            grad_f(x):
                pass
                return 2 * np.sin(x) * np.cos(x)
            """,
        change=renest,
    ),
    by_own_index: Case(
        given=lambda: simplify(gradient("""
            def f(x, n):
                for t in range(1, n):
                    x = np.sin(x)
                return x
            """, 1.0, 3)),
        before="""
            grad_f(x, n):
                run_length_n = run_length(1, n, 1)
                x_saved = np.empty(run_length_n)
                enter x_1 = x
                enter x_saved_1 = x_saved
                for i in range(run_length_n):
                    x_saved_2 = put(x_saved_1, i, x_1)
                    x_2 = np.sin(x_1)
                    next x_1 = x_2
                    next x_saved_1 = x_saved_2
                leave x_3 = x_1
                leave x_saved_3 = x_saved_1
                enter dx = 1.0
                for i_1 in reversed range(run_length_n):
                    x_4 = x_saved_3[i_1]
                    cos_x = np.cos(x_4)
                    dx_1 = dx * cos_x
                    next dx = dx_1
                leave dx_2 = dx
                return dx_2
            """,
        after="""
            grad_f(x, n):
                run_length_n = run_length(1, n, 1)
                length = max(n, 0)
                x_saved = np.empty(length)
                enter x_1 = x
                enter x_saved_1 = x_saved
                for number in range(run_length_n), i of range(1, n, 1):
                    x_saved_2 = put(x_saved_1, i, x_1)
                    x_2 = np.sin(x_1)
                    next x_1 = x_2
                    next x_saved_1 = x_saved_2
                leave x_3 = x_1
                leave x_saved_3 = x_saved_1
                enter dx = 1.0
                for number_1 in reversed range(run_length_n), i_1 of range(1, n, 1):
                    x_4 = x_saved_3[i_1]
                    cos_x = np.cos(x_4)
                    dx_1 = dx * cos_x
                    next dx = dx_1
                leave dx_2 = dx
                return dx_2
            """,
        change=by_own_index,
    ),
    in_other_arm: Case(
        given=lambda: gradient("""
            def f(x, k):
                r = x[0] * k
                return np.sqrt(r) if r > k else 0.0
            """, np.ones(2), 1.0),
        before="""
            grad_f(x, k):
                x_1 = x[0]
                r = x_1 * k
                t = r > k
                if t:
                    sqrt_r = np.sqrt(r)
                else:
                    pass
                join sqrt_r_1 = sqrt_r | undefined
                if t:
                    t_1 = 2 * sqrt_r_1
                    dr = 1 / t_1
                else:
                    pass
                join dr_1 = dr | 0.0
                dx = dr_1 * k
                dx_1 = np.zeros_like(x)
                dx_2 = put_add(dx_1, 0, dx)
                return dx_2
            """,
        after="""
            grad_f(x, k):
                x_1 = x[0]
                r = x_1 * k
                t = r > k
                if t:
                    sqrt_r = np.sqrt(r)
                else:
                    pass
                join sqrt_r_1 = sqrt_r | undefined
                dx = np.zeros_like(x)
                if t:
                    t_1 = 2 * sqrt_r_1
                    dr = 1 / t_1
                    dx_1 = dr * k
                    dx_2 = put_add(dx, 0, dx_1)
                else:
                    pass
                join dx_3 = dx_2 | dx
                return dx_3
            """,
        change=in_other_arm,
    ),
    summed_in_numbers: Case(
        given=lambda: simplify(gradient("""
            def f(x, c):
                y = x[0]
                for i in range(len(c)):
                    y = y + c[i] * x[0]
                return y
            """, np.ones(3), np.ones(3))),
        before="""
            grad_f(x, c):
                n_0 = shape_of(c, 0)
                dx = np.zeros_like(x)
                enter dx_1 = dx
                for i in reversed range(n_0):
                    c_1 = c[i]
                    dx_2 = put_add(dx_1, 0, c_1)
                    next dx_1 = dx_2
                leave dx_3 = dx_1
                dx_4 = put_add(dx_3, 0, 1.0)
                return dx_4
            """,
        after="""
            grad_f(x, c):
                n_0 = shape_of(c, 0)
                dx = np.zeros_like(x)
                enter dx_0 = 0.0
                for i in reversed range(n_0):
                    c_1 = c[i]
                    dx_0_1 = dx_0 + c_1
                    next dx_0 = dx_0_1
                leave dx_0_2 = dx_0
                dx_1 = put_add(dx, 0, dx_0_2)
                dx_2 = put_add(dx_1, 0, 1.0)
                return dx_2
            """,
        change=summed_in_numbers,
    ),
    by_substitution: Case(
        given=lambda: form("""
            def f(K, y):
                L = np.linalg.cholesky(K)
                return np.linalg.solve(L, y)
            """, np.eye(9), np.ones(9)),
        before="""
            f(K, y):
                L = np.linalg.cholesky(K)
                solve_L = np.linalg.solve(L, y)
                return solve_L
            """,
        after="""
            f(K, y):
                L = np.linalg.cholesky(K)
                solve_L = solved_by_triangle(L, y, True, False)
                return solve_L
            """,
        change=by_substitution,
    ),
    factored_once: Case(
        given=lambda: form("""
            def f(A, b):
                x = np.linalg.solve(A, b)
                return np.linalg.solve(A.T, x)
            """, np.eye(9), np.ones(9)),
        before="""
            f(A, b):
                x = np.linalg.solve(A, b)
                transpose_A = np.transpose(A)
                solve_transpose_A = np.linalg.solve(transpose_A, x)
                return solve_transpose_A
            """,
        after="""
            f(A, b):
                factors_A, order_A = factors(A)
                x = solved_by(A, factors_A, order_A, b)
                transpose_A = np.transpose(A)
                solve_transpose_A = solved_across(A, factors_A, order_A, x)
                return solve_transpose_A
            """,
        change=factored_once,
    ),
    overlapped: Case(
        given=lambda: transformed("""
            def f(x, y):
                a = np.sin(x)
                b = np.cos(y)
                return gs.lax.psum(a, 'i') + b
            """, on_devices({"i": 2}), np.ones(3), np.ones(3)),
        before="""
            f(x, y):
                a = np.sin(x)
                b = np.cos(y)
                total = psum(a, ('i',))
                z = total + b
                return z
            """,
        after="""
            f(x, y):
                a = np.sin(x)
                a_sent = psum_start(a, ('i',))
                b = np.cos(y)
                total = psum_done(a_sent, ('i',))
                z = total + b
                return z
            """,
        change=overlapped,
    ),
    compressed: Case(
        given=lambda: transformed("""
            def f(x):
                return gs.lax.psum(x, 'i')
            """, on_devices({"i": 2}), np.ones(3)),
        before="""
            f(x):
                total = psum(x, ('i',))
                return total
            """,
        after="""
            f(x):
                x_32 = astype(x, np.float32)
                total_32 = psum(x_32, ('i',))
                total = astype(total_32, np.float64)
                return total
            """,
        change=compressed,
    ),
    without_calls: Case(
        given=lambda: form("""
            def f(x):
                return g(x) * 2


            def g(x):
                y = np.sin(x)
                z = y * x
                w = z + 1
                return w
            """, 1.0),
        before="""
            f(x):
                g = g(x)
                t = g * 2
                return t
            """,
        after="""
            f(x):
                y = np.sin(x)
                z = y * x
                w = z + 1
                g = w
                t = g * 2
                return t
            """,
        change=on_body(without_calls),
    ),
    reparametrised: Case(
        given=lambda: form("""
            def f(s, rng):
                return rng.normal(1.0, s)
            """, 2.0, np.random.default_rng(0)),
        before="""
            f(s, rng):
                normal = normal(rng, 1.0, s)
                return normal
            """,
        after="""
            f(s, rng):
                noise = standard_normal(rng)
                t = s * noise
                normal = 1.0 + t
                return normal
            """,
        change=new_body(
            lambda f: reparametrised(Reader(), f.body, {f.params[0].value})),
    ),
    segmented: Case(
        given=lambda: transformed("""
            def f(x, n):
                return gs.checkpoint(loop)(x, n)


            def loop(x, n):
                for i in range(n):
                    x = np.sin(x)
                return x
            """, identity(), 1.0, 9),
        before="""
            f(x, n):
                enter x_1 = x
                for i in range(n):
                    x_2 = np.sin(x_1)
                    next x_1 = x_2
                leave x_3 = x_1
                return x_3
            """,
        after="""
            f(x, n):
                passes = max(n, 0)
                t = passes ** 0.5
                t_1 = int(t)
                size = t_1 + 1
                t_2 = passes + size
                t_3 = t_2 - 1
                segments = floordiv(t_3, size)
                enter x_1 = x
                for segment in range(segments):
                    start = segment * size
                    t_4 = passes - start
                    count = min(t_4, size)
                    enter x_2 = x_1
                    for j in range(count):
                        i = start + j
                        x_3 = np.sin(x_2)
                        next x_2 = x_3
                    leave x_4 = x_2
                    next x_1 = x_4
                leave x_5 = x_1
                return x_5
            """,
        change=on_body(lambda body: segmented(body, Naturals(body), lambda length: None)),
    ),
}
