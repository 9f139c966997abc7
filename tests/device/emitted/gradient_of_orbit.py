from gradscribe.runtime.device import block_max, blocks, cp, cuda, grid, max_of, np, one_block


# y[0] = a
@cuda.jit
def vmap_grad_orbit_1(n_1, a, y):
    i = cuda.grid(1)
    while i < n_1:
        y[i, 0] = a[i]
        i += cuda.gridsize(1)


# while t < end:
@cuda.jit
def vmap_grad_orbit_2(y_saved_most, value_saved_most):
    y_saved_most[0] = 0
    value_saved_most[0] = 0


# while t < end:
# k = np.array([y[1], -y[0], y[2] * a])
# h = 0.1 if np.sum(k * k) > 1 else 0.2
# y = y + h * k
# t += h
@cuda.jit
def vmap_grad_orbit_3(n_1, a, y, end, value_saved_most_start, value_saved_most_parts, y_saved_most_start, y_saved_most_parts):
    y_1_ = cuda.local.array((3,), np.float64)
    t_9 = cuda.local.array((3,), np.float64)
    value_saved_most = value_saved_most_start[0]
    y_saved_most = y_saved_most_start[0]
    b = cuda.grid(1)
    while b < n_1:
        y_saved_size = 0
        value_saved_size = 0
        a_1_ = a[b]
        t = 0.0
        y_1_[0] = y[b, 0]
        y_1_[1] = y[b, 1]
        y_1_[2] = y[b, 2]
        while True:
            if not t < end:
                break
            y_2_ = y_1_[2]
            y_saved_size += 1
            k_0 = y_1_[1]
            k_1 = -y_1_[0]
            k_2 = y_2_ * a_1_
            sum_8 = 0.0
            sum_8 += k_0 * k_0
            sum_8 += k_1 * k_1
            sum_8 += k_2 * k_2
            if sum_8 > 1:
                value = 0.1
            else:
                value = 0.2
            value_saved_size += 1
            t_9[0] = y_1_[0] + value * k_0
            t_9[1] = y_1_[1] + value * k_1
            t_9[2] = y_1_[2] + value * k_2
            t = t + value
            y_1_[0] = t_9[0]
            y_1_[1] = t_9[1]
            y_1_[2] = t_9[2]
        y_saved_most = max(y_saved_most, y_saved_size)
        value_saved_most = max(value_saved_most, value_saved_size)
        b += cuda.gridsize(1)
    block_max(value_saved_most_parts, value_saved_most)
    block_max(y_saved_most_parts, y_saved_most)


@cuda.jit
def vmap_grad_orbit_4(value_saved_most_parts, y_saved_most_parts, value_saved_most, y_saved_most):
    value_saved_most_all = max_of(value_saved_most_parts)
    y_saved_most_all = max_of(y_saved_most_parts)
    if cuda.threadIdx.x == 0:
        value_saved_most[0] = max(value_saved_most[0], value_saved_most_all)
        y_saved_most[0] = max(y_saved_most[0], y_saved_most_all)


# while t < end:
# k = np.array([y[1], -y[0], y[2] * a])
# h = 0.1 if np.sum(k * k) > 1 else 0.2
# y = y + h * k
# t += h
# return np.sum(y * y)
@cuda.jit
def vmap_grad_orbit_5(n_1, a, y, end, y_saved_kept, value_saved_kept, dy, da):
    y_1_ = cuda.local.array((3,), np.float64)
    t_9 = cuda.local.array((3,), np.float64)
    b = cuda.grid(1)
    while b < n_1:
        y_saved_size = 0
        value_saved_size = 0
        a_1_ = a[b]
        t = 0.0
        y_1_[0] = y[b, 0]
        y_1_[1] = y[b, 1]
        y_1_[2] = y[b, 2]
        while True:
            if not t < end:
                break
            y_2_ = y_1_[2]
            y_saved_kept[y_saved_size, b] = y_2_
            y_saved_size += 1
            k_0 = y_1_[1]
            k_1 = -y_1_[0]
            k_2 = y_2_ * a_1_
            sum_8 = 0.0
            sum_8 += k_0 * k_0
            sum_8 += k_1 * k_1
            sum_8 += k_2 * k_2
            if sum_8 > 1:
                value = 0.1
            else:
                value = 0.2
            value_saved_kept[value_saved_size, b] = value
            value_saved_size += 1
            t_9[0] = y_1_[0] + value * k_0
            t_9[1] = y_1_[1] + value * k_1
            t_9[2] = y_1_[2] + value * k_2
            t = t + value
            y_1_[0] = t_9[0]
            y_1_[1] = t_9[1]
            y_1_[2] = t_9[2]
        dy_1__0 = 2 * y_1_[0]
        dy_1__1 = 2 * y_1_[1]
        dy_1__2 = 2 * y_1_[2]
        da_1_ = 0.0
        while True:
            if not y_saved_size > 0:
                break
            value_saved_size -= 1
            value_1 = value_saved_kept[value_saved_size, b]
            dk_0 = dy_1__0 * value_1
            dk_1 = dy_1__1 * value_1
            dk_2 = dy_1__2 * value_1
            dt = dk_2
            y_saved_size -= 1
            y_2__1 = y_saved_kept[y_saved_size, b]
            da_1_ = dt * y_2__1 + da_1_
            t_10 = dt * a_1_
            dy_1__2 += t_10
            t_11 = -dk_1
            dy_1__0 += t_11
            dy_1__1 += dk_0
        dy[b, 0] = dy_1__0
        dy[b, 1] = dy_1__1
        dy[b, 2] = dy_1__2
        da[b] = da_1_
        b += cuda.gridsize(1)


# y[0] = a
@cuda.jit
def vmap_grad_orbit_6(n_1, dy, da, t_14):
    i = cuda.grid(1)
    while i < n_1:
        t_14[i] = dy[i, 0] + da[i]
        i += cuda.gridsize(1)


# vmap_grad_orbit_1 moves 16 * n_1 bytes, or more
# vmap_grad_orbit_3 moves 16 * n_1 bytes, or more
# vmap_grad_orbit_5 moves 48 * n_1 bytes, or more
# vmap_grad_orbit_6 moves 24 * n_1 bytes, or more
def vmap_grad_orbit(a, end):
    y_saved_most = cp.empty(1, np.int64)
    value_saved_most = cp.empty(1, np.int64)
    n_1 = a.shape[0]
    y = cp.zeros((n_1, 3), np.float64)
    vmap_grad_orbit_1[grid(n_1)](n_1, a, y)
    dy = cp.empty((n_1, 3), np.float64)
    da = cp.empty((n_1,), np.float64)
    vmap_grad_orbit_2[one_block(1)](y_saved_most, value_saved_most)
    value_saved_most_parts = cp.empty(blocks(n_1), np.int64)
    y_saved_most_parts = cp.empty(blocks(n_1), np.int64)
    vmap_grad_orbit_3[grid(n_1)](n_1, a, y, end, value_saved_most, value_saved_most_parts, y_saved_most, y_saved_most_parts)
    vmap_grad_orbit_4[one_block(256)](value_saved_most_parts, y_saved_most_parts, value_saved_most, y_saved_most)
    y_saved_kept = cp.empty((y_saved_most.item(), n_1), np.float64)
    value_saved_kept = cp.empty((value_saved_most.item(), n_1), np.float64)
    vmap_grad_orbit_5[grid(n_1)](n_1, a, y, end, y_saved_kept, value_saved_kept, dy, da)
    del value_saved_kept, y, y_saved_kept
    t_14 = cp.empty((n_1,), np.float64)
    vmap_grad_orbit_6[grid(n_1)](n_1, dy, da, t_14)
    return (t_14,)
