from gradscribe.runtime.device import cp, cuda, grid, np, one_block


# y[0] = a
@cuda.jit
def vmap_grad_orbit_1(n_1, a, y):
    i = cuda.grid(1)
    while i < n_1:
        y[i, 0] = a[i]
        i += cuda.gridsize(1)


# while t < end:
@cuda.jit
def vmap_grad_orbit_2(t):
    t[0] = 0.0


# while t < end:
@cuda.jit
def vmap_grad_orbit_3(y_1_, y_saved_next):
    y_saved_next[0] = y_1_[2]


# k = np.array([y[1], -y[0], y[2] * a])
# h = 0.1 if np.sum(k * k) > 1 else 0.2
@cuda.jit
def vmap_grad_orbit_4(y_1_, k_0, k_1, a, b, k_2, value):
    k_0[0] = y_1_[1]
    k_1[0] = -y_1_[0]
    k_2[0] = y_1_[2] * a[b]
    sum_8 = 0.0
    sum_8 += k_0[0] * k_0[0]
    sum_8 += k_1[0] * k_1[0]
    sum_8 += k_2[0] * k_2[0]
    if sum_8 > 1:
        value[0] = 0.1
    else:
        value[0] = 0.2


# y = y + h * k
# t += h
@cuda.jit
def vmap_grad_orbit_5(t_9, y_1_, value, k_0, k_1, k_2, t):
    t_9[0] = y_1_[0] + value[0] * k_0[0]
    t_9[1] = y_1_[1] + value[0] * k_1[0]
    t_9[2] = y_1_[2] + value[0] * k_2[0]
    t[0] = t[0] + value[0]


# return np.sum(y * y)
# while t < end:
@cuda.jit
def vmap_grad_orbit_6(y_1_, dy_1__0, dy_1__1, dy_1__2, da_1_):
    dy_1__0[0] = 2 * y_1_[0]
    dy_1__1[0] = 2 * y_1_[1]
    dy_1__2[0] = 2 * y_1_[2]
    da_1_[0] = 0.0


# y = y + h * k
# k = np.array([y[1], -y[0], y[2] * a])
@cuda.jit
def vmap_grad_orbit_7(dy_1__0, value_1, dy_1__1, dy_1__2, y_2_, da_1_, a, b):
    dk_0 = dy_1__0[0] * value_1[0]
    dk_1 = dy_1__1[0] * value_1[0]
    dk_2 = dy_1__2[0] * value_1[0]
    da_1_[0] = dk_2 * y_2_[0] + da_1_[0]
    t_10 = dk_2 * a[b]
    dy_1__2[0] += t_10
    t_11 = -dk_1
    dy_1__0[0] += t_11
    dy_1__1[0] += dk_0


# while t < end:
@cuda.jit
def vmap_grad_orbit_8(dy, b, dy_1__0, dy_1__1, dy_1__2, da, da_1_):
    dy[b, 0] = dy_1__0[0]
    dy[b, 1] = dy_1__1[0]
    dy[b, 2] = dy_1__2[0]
    da[b] = da_1_[0]


# y[0] = a
@cuda.jit
def vmap_grad_orbit_9(n_1, dy, da, t_14):
    i = cuda.grid(1)
    while i < n_1:
        t_14[i] = dy[i, 0] + da[i]
        i += cuda.gridsize(1)


def vmap_grad_orbit(a, end):
    t = cp.empty(1, np.float64)
    y_saved_next = cp.empty(1, np.float64)
    k_0 = cp.empty(1, np.float64)
    k_1 = cp.empty(1, np.float64)
    k_2 = cp.empty(1, np.float64)
    value = cp.empty(1, np.float64)
    dy_1__0 = cp.empty(1, np.float64)
    dy_1__1 = cp.empty(1, np.float64)
    dy_1__2 = cp.empty(1, np.float64)
    da_1_ = cp.empty(1, np.float64)
    value_1 = cp.empty(1, np.float64)
    y_2_ = cp.empty(1, np.float64)
    n_1 = a.shape[0]
    y = cp.zeros((n_1, 3), np.float64)
    vmap_grad_orbit_1[grid(n_1)](n_1, a, y)
    dy = cp.empty((n_1, 3), np.float64)
    da = cp.empty((n_1,), np.float64)
    for b in range(n_1):
        y_1__1 = y[b]
        y_saved = []
        value_saved = []
        y_1_ = y_1__1
        vmap_grad_orbit_2[one_block(1)](t)
        while True:
            if not t.item() < end:
                break
            vmap_grad_orbit_3[one_block(1)](y_1_, y_saved_next)
            y_saved.append(y_saved_next.copy())
            vmap_grad_orbit_4[one_block(1)](y_1_, k_0, k_1, a, b, k_2, value)
            value_saved.append(value.copy())
            t_9 = cp.empty((3,), np.float64)
            vmap_grad_orbit_5[one_block(1)](t_9, y_1_, value, k_0, k_1, k_2, t)
            y_1_ = t_9
        vmap_grad_orbit_6[one_block(1)](y_1_, dy_1__0, dy_1__1, dy_1__2, da_1_)
        while True:
            if not len(y_saved) > 0:
                break
            value_1 = value_saved.pop()
            y_2_ = y_saved.pop()
            vmap_grad_orbit_7[one_block(1)](dy_1__0, value_1, dy_1__1, dy_1__2, y_2_, da_1_, a, b)
        vmap_grad_orbit_8[one_block(1)](dy, b, dy_1__0, dy_1__1, dy_1__2, da, da_1_)
    del y
    t_14 = cp.empty((n_1,), np.float64)
    vmap_grad_orbit_9[grid(n_1)](n_1, dy, da, t_14)
    return (t_14,)
