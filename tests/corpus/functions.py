"""Small plain-NumPy functions whose gradients must be right.

Each case is ordinary NumPy code that returns one real number:

    add(category, function, args, argnums=0, order=1, expect=None)

`python check.py TOOL.py` runs a tool against it (see check.py).
"""
import collections
import functools
import math

import numpy as np

grad = None  # set by the checker

CASES = []
Case = collections.namedtuple('Case', 'category name func args argnums order expect')

def add(category, func, args, argnums=0, order=1, expect=None, name=None):
    CASES.append(Case(category, name or func.__name__, func, tuple(args), argnums, order, expect))

_rng = np.random.RandomState(20240611)

def V(*shape):
    """Well-scaled random array (fixed stream)."""
    return _rng.uniform(-1.0, 1.0, size=shape)


def P(*shape):
    """Positive random array, away from 0."""
    return _rng.uniform(0.4, 1.6, size=shape)


def SPD(n):
    a = _rng.uniform(-1.0, 1.0, size=(n, n))
    return a @ a.T + n * np.eye(n)


def sl_quotient(x):
    top = x * x + 1.0
    bottom = 3.0 - x
    return top / bottom


def sl_hyperbolic(x):
    return np.sinh(x) - np.cosh(0.5 * x) * np.tanh(x)


def sl_arctan2_hypot(x, y):
    return np.arctan2(y, x) + np.hypot(x, y)

add('straight-line', sl_quotient, (0.8,))
add('straight-line', sl_hyperbolic, (0.6,))
add('straight-line', sl_arctan2_hypot, (0.7, -1.1), argnums=(0, 1))

def as_augmented_scalar(x):
    total = x
    total += x * 3.0
    total *= x
    total -= 1.0 / x
    total /= 2.0
    total **= 2
    return total


def as_swap(a, b):
    a, b = b, a
    a, b = a + b, a - b
    return a * a * b

add('assignment', as_augmented_scalar, (1.2,))
add('assignment', as_swap, (1.1, 0.4), argnums=(0, 1))

def iw_overwrite_same_cell(x):
    buf = np.zeros(3)
    buf[0] = x[0] * 2.0
    buf[1] = buf[0] * x[1]
    buf[0] = buf[1] + x[2]
    return buf[0] * buf[1]


def iw_augmented_element(x):
    acc = np.zeros(2)
    for i in range(x.shape[0]):
        acc[i % 2] += x[i] * x[i]
    return acc[0] * acc[1]


def iw_scan_recurrence(a, u):
    n = u.shape[0]
    h = np.zeros(n + 1)
    for t in range(n):
        h[t + 1] = np.tanh(a * h[t] + u[t])
    return np.sum(h[1:])


def iw_empty_like(x):
    out = np.empty_like(x)
    out[:] = x
    out[1] = out[1] * out[0]
    return np.sum(out)

add('index-write', iw_overwrite_same_cell, (V(3),))
add('index-write', iw_augmented_element, (V(5),))
add('index-write', iw_scan_recurrence, (0.7, V(5)), argnums=(0, 1))
add('index-write', iw_empty_like, (V(4),))

def fl_range_start_stop_step(x):
    s = 0.0
    for k in range(1, 10, 3):
        s = s + x ** k / k
    return s


def fl_over_rows(m):
    s = 0.0
    for row in m:
        s = s + np.sum(row) ** 2
    return s


def fl_enumerate_zip(a, b):
    s = 0.0
    for i, (p, q) in enumerate(zip(a, b)):
        s += p * q ** i
    return s


def fl_over_list_of_arrays(w0, w1, x):
    h = x
    for w in [w0, w1]:
        h = np.tanh(np.dot(w, h))
    return np.sum(h)


def fl_else_clause(x):
    for i in range(3):
        x = x * 1.5
    else:
        x = x + x ** 2
    return x

add('for-loop', fl_range_start_stop_step, (0.9,))
add('for-loop', fl_over_rows, (V(3, 2),))
add('for-loop', fl_enumerate_zip, (V(3), P(3)), argnums=(0, 1))
add('for-loop', fl_over_list_of_arrays, (V(3, 2), V(2, 3), V(2)), argnums=(0, 1, 2))
add('for-loop', fl_else_clause, (0.6,))

def wl_counter(x, n):
    i = 0
    acc = x
    while i < n:
        acc = acc * x + i
        i += 1
    return acc


def wl_compound_condition(x):
    i = 0
    while i < 20 and x < 10.0:
        x = x * 1.7 + 0.1
        i = i + 1
    return x

add('while-loop', wl_counter, (0.9, 4))
add('while-loop', wl_compound_condition, (0.6,))

def br_elif_ladder(x):
    if x < -1.0:
        y = x
    elif x < 0.0:
        y = x ** 2
    elif x < 1.0:
        y = x ** 3
    else:
        y = np.log(x)
    return 2.0 * y


def br_return_in_loop(x):
    s = 0.0
    for i in range(10):
        s = s + x
        if s > 2.0:
            return s * s
    return s


def br_chained_compare(x):
    if 0.0 < x <= 1.0:
        return x ** 4
    return -x


def br_none_default(x, w=None):
    if w is None:
        w = np.ones(x.shape[0])
    return np.sum(w * x * x)

add('branch', br_elif_ladder, (0.4,))
add('branch', br_return_in_loop, (0.6,))
add('branch', br_chained_compare, (0.7,))
add('branch', br_none_default, (V(4),))

def bc_continue_negative(x):
    s = 0.0
    for v in x:
        if v < 0:
            continue
        s = s + np.sqrt(v)
    return s


def bc_break_else(x):
    y = x
    for k in range(5):
        y = y * 2.0
        if y > 5.0:
            break
    else:
        y = y * 100.0
    return y * x

add('break-continue', bc_continue_negative, (np.array([0.5, -0.4, 1.3, -0.1]),))
add('break-continue', bc_break_else, (0.7,))

def ct_unpack_array(x):
    a, b, c = x
    return a * b ** 2 - c


def ct_list_append(x):
    hs = []
    h = x[0]
    for i in range(4):
        h = np.tanh(h + x[1] * i)
        hs.append(h)
    return hs[0] * hs[-1] + hs[2]


def ct_filtered_comprehension(x):
    return sum([np.exp(v) for v in x if v > 0])


def ct_dict_items_loop(x):
    params = {'w': x[0], 'v': x[1]}
    s = 0.0
    for key, val in params.items():
        s += val ** 2 if key == 'w' else 3.0 * val
    return s


def ct_multiple_return_helper(x):
    s, c = _sin_and_cos(x)
    return s * 2.0 + c * s


def _sin_and_cos(t):
    return np.sin(t), np.cos(t)

add('container', ct_unpack_array, (V(3),))
add('container', ct_list_append, (V(2),))
add('container', ct_filtered_comprehension, (V(5),))
add('container', ct_dict_items_loop, (V(2),))
add('container', ct_multiple_return_helper, (0.5,))

def sa_list_of_layers(layers, x):
    for w, b in layers:
        x = np.tanh(np.dot(w, x) + b)
    return np.sum(x)

add('struct-arg', sa_list_of_layers, ([(V(3, 2), V(3)), (V(2, 3), V(2))], V(2)))

def sr_finite_difference(x):
    d = x[1:] - x[:-1]
    return np.sum(d * d)


def sr_newaxis_ellipsis(x):
    outer = x[:, np.newaxis] * x[np.newaxis, :]
    return np.sum(outer[..., 0] ** 2) + np.sum(outer[0, ...])


def sr_slice_object(x):
    s = slice(1, None, 2)
    return np.prod(x[s])

add('slice-read', sr_finite_difference, (V(5),))
add('slice-read', sr_newaxis_ellipsis, (V(3),))
add('slice-read', sr_slice_object, (P(6),))

def _affine(x, scale, shift=0.0):
    return scale * x + shift


def _poly(x, *coeffs):
    s = 0.0
    for i, c in enumerate(coeffs):
        s = s + c * x ** i
    return s


def _power_rec(x, n):
    if n == 0:
        return 1.0
    return x * _power_rec(x, n - 1)


def cl_helper_keyword(x):
    return _affine(shift=x * x, x=x, scale=3.0)


def cl_star_call(x):
    cs = (0.1, 0.2, 0.3)
    return _poly(x, *cs)


def cl_recursion(x):
    return _power_rec(x, 4)


def cl_inner_function(x):
    def square_plus(y):
        return y * y + x
    return square_plus(x) * square_plus(2.0)


def cl_lambda_in_list(x):
    fs = [np.sin, np.cos, lambda t: t ** 2]
    y = x
    for g in fs:
        y = g(y)
    return y


def cl_reduce(x):
    return functools.reduce(lambda a, b: a * 0.5 + b ** 2, x)


def _make_loss(data):
    n = data.shape[0]

    def loss_closure(theta):
        r = data @ theta - 1.0
        return np.sum(r * r) / n
    return loss_closure

add('call', cl_helper_keyword, (0.8,))
add('call', cl_star_call, (0.7,))
add('call', cl_recursion, (1.1,))
add('call', cl_inner_function, (0.7,))
add('call', cl_lambda_in_list, (0.8,))
add('call', cl_reduce, (V(4),))
add('closure', _make_loss(V(5, 3)), (V(3),))
add('closure', functools.partial(_affine, scale=4.0), (0.3,), name='partial_object',
    expect=lambda x: 4.0)

def st_builtin_abs_max_min(x, y):
    return abs(x) * max(x, y) + min(x, y) ** 2

add('stdlib', st_builtin_abs_max_min, (-0.7, 1.2), argnums=(0, 1))

def rd_sum_keepdims(m):
    return np.sum(m / np.sum(m, axis=1, keepdims=True) * np.arange(3.0))


def rd_var_std(m):
    return np.sum(np.var(m, axis=0)) + np.std(m)


def rd_prod_axis(m):
    return np.sum(np.prod(m, axis=0))


def rd_logsumexp_stable(x):
    m = np.max(x)
    return m + np.log(np.sum(np.exp(x - m)))


def rd_diff(x):
    return np.sum(np.diff(x, n=2) ** 2)


def rd_median(x):
    return np.median(x) ** 2

add('reduction', rd_sum_keepdims, (P(2, 3),))
add('reduction', rd_var_std, (V(4, 2),))
add('reduction', rd_prod_axis, (P(3, 2),))
add('reduction', rd_logsumexp_stable, (V(4),))
add('reduction', rd_diff, (V(6),))
add('reduction', rd_median, (V(5),))

def bd_scalar_array(a, x):
    return np.sum(a * x + x / a - a)


def bd_size_one_axis(a, b):
    return np.sum(np.maximum(a, b) * (a - b))

add('broadcast', bd_scalar_array, (0.7, V(4)), argnums=(0, 1))
add('broadcast', bd_size_one_axis, (V(3, 1), V(1, 4)), argnums=(0, 1))

def pr_dot_matrix_vector(m, v):
    return np.sum(np.sin(np.dot(m, v)))


def pr_matmul_batched(a, b):
    return np.sum(np.matmul(a, b) ** 2)


def pr_tensordot(a, b):
    return np.sum(np.tensordot(a, b, axes=([1, 2], [0, 1])) ** 2)


def pr_einsum_trace_diag(m):
    return np.einsum('ii->', m) ** 2 + np.sum(np.einsum('ii->i', m) ** 3)


def pr_cross(a, b):
    return np.sum(np.cross(a, b) ** 2)

add('product', pr_dot_matrix_vector, (V(3, 4), V(4)), argnums=(0, 1))
add('product', pr_matmul_batched, (V(2, 3, 4), V(2, 4, 2)), argnums=(0, 1))
add('product', pr_tensordot, (V(2, 3, 2), V(3, 2, 4)), argnums=(0, 1))
add('product', pr_einsum_trace_diag, (V(3, 3),))
add('product', pr_cross, (V(3), V(3)), argnums=(0, 1))

def sh_reshape_minus_one(m):
    return np.sum(m.reshape(-1)[::2] ** 3)


def sh_concatenate(a, b):
    c = np.concatenate([a, b, a * b])
    return np.sum(c ** 2 * np.arange(9.0))


def sh_vstack_hstack(a, b):
    return np.sum(np.vstack([a, b])[1] ** 2) + np.sum(np.hstack([a, b]) ** 3)


def sh_flip_roll(x):
    return np.sum(np.flip(x, 0) * np.roll(x, 2) * x)


def sh_diag_tril(m):
    return np.sum(np.diag(m) ** 2) + np.sum(np.tril(m) ** 3) + np.sum(np.triu(m, 1))


def sh_meshgrid_grid(x):
    gx, gy = np.meshgrid(x, x * 2.0)
    return np.sum(np.sin(gx * gy))

add('shape', sh_reshape_minus_one, (V(2, 3),))
add('shape', sh_concatenate, (V(3), V(3)), argnums=(0, 1))
add('shape', sh_vstack_hstack, (V(3), V(3)), argnums=(0, 1))
add('shape', sh_flip_roll, (V(5),))
add('shape', sh_diag_tril, (V(3, 3),))
add('shape', sh_meshgrid_grid, (V(3),))

def se_maximum_minimum(x, y):
    return np.sum(np.maximum(x, y) ** 2 - np.minimum(x, 0.3 * y))


def se_huber(r):
    a = np.abs(r)
    return np.sum(np.where(a < 0.5, 0.5 * r ** 2, 0.5 * (a - 0.25)))


def se_piecewise_select(x):
    return np.sum(np.select([x < -0.3, x < 0.3], [x ** 2, 2.0 * x], default=x ** 3))

add('select', se_maximum_minimum, (V(5), V(5)), argnums=(0, 1))
add('select', se_huber, (V(6),))
add('select', se_piecewise_select, (V(6),))

def la_solve(m, b):
    return np.sum(np.linalg.solve(m, b) ** 2)


def la_slogdet(m):
    sign, logdet = np.linalg.slogdet(m)
    return logdet


def la_eigh_projector(m):
    s = 0.5 * (m + m.T)
    w, v = np.linalg.eigh(s)
    p = np.outer(v[:, 0], v[:, 0])
    return np.sum(p * np.arange(9.0).reshape(3, 3)) + w[-1]


def la_norm_axis(m):
    return np.sum(np.linalg.norm(m, axis=1))


def la_svd_low_rank(m):
    u, s, vt = np.linalg.svd(m, full_matrices=False)
    best = s[0] * np.outer(u[:, 0], vt[0])
    return np.sum(best * np.arange(6.0).reshape(3, 2))


def la_matrix_power(m):
    return np.sum(np.linalg.matrix_power(m, 3))


def la_gaussian_logpdf(x, mu, cov):
    d = x - mu
    chol = np.linalg.cholesky(cov)
    z = np.linalg.solve(chol, d)
    return -0.5 * np.dot(z, z) - np.sum(np.log(np.diag(chol)))

add('linalg', la_solve, (V(3, 3) + 2.0 * np.eye(3), V(3)), argnums=(0, 1))
add('linalg', la_slogdet, (V(3, 3) + 2.0 * np.eye(3),))
add('linalg', la_eigh_projector, (SPD(3) + np.diag([0.0, 2.0, 5.0]),))
add('linalg', la_norm_axis, (V(3, 2),))
add('linalg', la_svd_low_rank, (V(3, 2),))
add('linalg', la_matrix_power, (V(3, 3),))
add('linalg', la_gaussian_logpdf, (V(3), V(3), SPD(3)), argnums=(0, 1))

def fi_gather_argument_index(x, idx):
    return np.prod(x[idx])


def fi_mask_augmented(x):
    y = x * 1.0
    m = y > 0
    y[m] *= x[m]
    return np.sum(y)


def fi_two_index_arrays(m):
    r = np.array([0, 1, 2])
    c = np.array([2, 0, 0])
    return np.sum(m[r, c] ** 3)


def fi_argsort_weights(x):
    order = np.argsort(x)
    return np.sum(x[order] * np.arange(1.0, 6.0))


def fi_nonzero_loop(x):
    s = 0.0
    for i in np.nonzero(x > 0)[0]:
        s += x[i] ** 3
    return s

add('fancy-index', fi_gather_argument_index, (P(5), np.array([1, 1, 4])))
add('fancy-index', fi_mask_augmented, (V(5),))
add('fancy-index', fi_two_index_arrays, (V(3, 3),))
add('fancy-index', fi_argsort_weights, (V(5),))
add('fancy-index', fi_nonzero_loop, (V(6),))

def cx_real_imag(x):
    z = (x + 2.0j) ** 3
    return np.real(z) + 2.0 * np.imag(z)


def cx_fft_power(x):
    f = np.fft.fft(x)
    return np.sum(np.abs(f) ** 2 * np.arange(4.0))

add('complex', cx_real_imag, (0.6,))
add('complex', cx_fft_power, (V(4),))

def ho_sin_cubed(x):
    return np.sin(x) ** 3


def ho_loop_power(x):
    y = 1.0
    for _ in range(5):
        y = y * x
    return y


def ho_while_power(x):
    y = x
    while y < 8.0:
        y = y * x
    return y

add('higher-order', ho_sin_cubed, (0.6,), order=3, name='ho_sin_cubed_3',
    expect=lambda x: 6 * np.cos(x) ** 3 - 21 * np.sin(x) ** 2 * np.cos(x))
add('higher-order', ho_loop_power, (1.2,), order=3, name='ho_loop_power_3',
    expect=lambda x: 60 * x ** 2)
add('higher-order', ho_while_power, (1.7,), order=2, name='ho_while_power_2',
    expect=lambda x: 12 * x ** 2)

def rn_legacy_global_seed(x):
    np.random.seed(3)
    noise = np.random.normal(size=4)
    return np.sum(np.tanh(x * noise))

add('random', rn_legacy_global_seed, (V(4),))

def mt_chained_methods(x):
    return x.reshape(2, 3).T.dot(np.ones(2)).sum() ** 2 + x.prod()


def mt_min_max_clip(x):
    return x.max() * x.min() + x.clip(-0.5, 0.5).sum()


def mt_flatten_transpose_swap(t):
    return (t.transpose(1, 0, 2).flatten()[:4] ** 2).sum() + t.swapaxes(0, 2)[1].sum()

add('method', mt_chained_methods, (P(6),))
add('method', mt_min_max_clip, (V(5),))
add('method', mt_flatten_transpose_swap, (V(2, 3, 2),))

def al_alias_name(x):
    y = x * 1.0
    z = y
    z[0] = x[1] * 5.0
    return np.sum(y * x)


def al_helper_mutates(x):
    buf = x * 1.0
    _scale_in_place(buf, x[0])
    return np.sum(buf)


def _scale_in_place(a, s):
    for i in range(len(a)):
        a[i] = a[i] * s

add('aliasing', al_alias_name, (V(3),))
add('aliasing', al_helper_mutates, (V(3),))

def en_prod_with_zero(x):
    return np.prod(x)


def en_softplus_large(x):
    return np.sum(np.logaddexp(0.0, x))


def en_cumprod_with_zero(x):
    return np.sum(np.cumprod(x))

add('edge-numerics', en_prod_with_zero, (np.array([2.0, 0.0, 3.0]),))
add('edge-numerics', en_softplus_large, (np.array([-30.0, 0.2, 40.0]),))
add('edge-numerics', en_cumprod_with_zero, (np.array([1.5, 0.0, 2.0, 0.7]),))

class _Spring(object):
    def __init__(self, k, rest):
        self.k = k
        self.rest = rest

    def energy(self, q):
        return 0.5 * self.k * (q - self.rest) ** 2


def ob_parameter_in_attribute(k):
    s = _Spring(k, 0.2)
    s.rest = k * 0.1
    return s.energy(1.0)

add('object', ob_parameter_in_attribute, (1.7,))
add('object', _Spring(1.5, 0.3).energy, (0.8,), name='ob_bound_method')

def mi_raise_guard(x):
    if x < 0:
        raise ValueError('negative: {}'.format(x))
    return x * np.log(x)


def mi_fstring_and_del(x):
    label = f'value of shape {x.shape}'
    tmp = x * 2.0
    n = len(label)
    y = tmp * tmp
    del tmp
    return np.sum(y) * (1.0 if n > 0 else 0.0)


def mi_unused_and_constant(x):
    unused = np.ones(3) * 17.0
    c = 4
    flag = True
    return c * x if flag else unused[0]

add('misc-statement', mi_raise_guard, (1.4,))
add('misc-statement', mi_fstring_and_del, (V(3),))
add('misc-statement', mi_unused_and_constant, (0.7,))

def sc_rnn(wx, wh, xs):
    h = np.zeros(wh.shape[0])
    for t in range(xs.shape[0]):
        h = np.tanh(np.dot(wx, xs[t]) + np.dot(wh, h))
    return np.sum(h * h)


def sc_lu_logdet(a):
    lu = a.copy()
    n = lu.shape[0]
    s = 0.0
    for k in range(n):
        s += np.log(np.abs(lu[k, k]))
        for i in range(k + 1, n):
            f = lu[i, k] / lu[k, k]
            for j in range(k, n):
                lu[i, j] -= f * lu[k, j]
    return s


def sc_hmm_forward(log_trans, log_emit):
    steps, states = log_emit.shape
    alpha = log_emit[0] - np.log(states)
    for t in range(1, steps):
        prev = alpha[:, None] + log_trans
        m = np.max(prev, axis=0)
        alpha = m + np.log(np.sum(np.exp(prev - m), axis=0)) + log_emit[t]
    m = np.max(alpha)
    return m + np.log(np.sum(np.exp(alpha - m)))


def sc_nbody_energy(pos, mass):
    e = 0.0
    n = pos.shape[0]
    for i in range(n):
        for j in range(i + 1, n):
            d = pos[i] - pos[j]
            e -= mass[i] * mass[j] / np.sqrt(np.sum(d * d) + 0.01)
    return e


def sc_attention(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    scores = scores - np.max(scores, axis=-1, keepdims=True)
    e = np.exp(scores)
    p = e / np.sum(e, axis=-1, keepdims=True)
    return np.sum((p @ v) ** 2)

add('program', sc_rnn, (V(3, 2), V(3, 3), V(4, 2)), argnums=(0, 1))
add('program', sc_lu_logdet, (V(3, 3) + 2.0 * np.eye(3),))
add('program', sc_hmm_forward, (V(3, 3), V(4, 3)), argnums=(0, 1))
add('program', sc_nbody_energy, (V(4, 2), P(4)), argnums=(0, 1))
add('program', sc_attention, (V(2, 3), V(4, 3), V(4, 2)), argnums=(0, 1, 2))
