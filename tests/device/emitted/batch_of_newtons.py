from gradscribe.runtime.device import block_max, blocks, cp, cuda, grid, max_of, np, one_block


# while np.abs(y * y - a) > 1e-9:
@cuda.jit
def grad_lambda_1(y_saved_1_most):
    y_saved_1_most[0] = 0


# while np.abs(y * y - a) > 1e-9:
# y = 0.5 * (y + a / y)
@cuda.jit
def grad_lambda_2(n_1, x, y_saved_1_most_start, y_saved_1_most_parts):
    y_saved_1_most = y_saved_1_most_start[0]
    b = cuda.grid(1)
    while b < n_1:
        x_1_ = x[b]
        y_saved_1_size = 0
        y_1_ = 1.0
        while True:
            if not abs(y_1_ * y_1_ - x_1_) > 1e-09:
                break
            y_saved_1_size += 1
            y_1_ = 0.5 * (y_1_ + x_1_ / y_1_)
        y_saved_1_most = max(y_saved_1_most, y_saved_1_size)
        b += cuda.gridsize(1)
    block_max(y_saved_1_most_parts, y_saved_1_most)


@cuda.jit
def grad_lambda_3(y_saved_1_most_parts, y_saved_1_most):
    y_saved_1_most_all = max_of(y_saved_1_most_parts)
    if cuda.threadIdx.x == 0:
        y_saved_1_most[0] = max(y_saved_1_most[0], y_saved_1_most_all)


# while np.abs(y * y - a) > 1e-9:
# y = 0.5 * (y + a / y)
@cuda.jit
def grad_lambda_4(n_1, x, y_saved_1_kept, y_saved_1_sizes, y):
    b = cuda.grid(1)
    while b < n_1:
        x_1_ = x[b]
        y_saved_1_size = 0
        y_1_ = 1.0
        while True:
            if not abs(y_1_ * y_1_ - x_1_) > 1e-09:
                break
            y_saved_1_kept[y_saved_1_size, b] = y_1_
            y_saved_1_size += 1
            y_1_ = 0.5 * (y_1_ + x_1_ / y_1_)
        y_saved_1_sizes[b] = y_saved_1_size
        y[b] = y_1_
        b += cuda.gridsize(1)


# return gs.grad(lambda x, *others: np.sum(gs.vmap(function, (0, *axes))(x, *others) ** 2))
# while np.abs(y * y - a) > 1e-9:
@cuda.jit
def grad_lambda_5(n_1, dx):
    i = cuda.grid(1)
    while i < n_1:
        dx[i] = 0.0
        i += cuda.gridsize(1)


# while np.abs(y * y - a) > 1e-9:
# y = 0.5 * (y + a / y)
@cuda.jit
def grad_lambda_6(n_1, y_saved_1_sizes, y, x, y_saved_1_kept, dx):
    b = cuda.grid(1)
    while b < n_1:
        y_saved_1_1_size = y_saved_1_sizes[b]
        dy_1_ = 2 * y[b]
        x_1__1 = x[b]
        dx_1_ = 0.0
        while True:
            if not y_saved_1_1_size > 0:
                break
            dt = 0.5 * dy_1_
            y_saved_1_1_size -= 1
            y_1__1 = y_saved_1_kept[y_saved_1_1_size, b]
            t = dt / y_1__1
            dx_1_ = t + dx_1_
            dy_1_ = dt - t * (x_1__1 / y_1__1)
        dx[b] = dx_1_
        b += cuda.gridsize(1)


# grad_lambda_2 moves 8 * n_1 bytes, or more
# grad_lambda_4 moves 32 * n_1 bytes, or more
# grad_lambda_5 moves 8 * n_1 bytes, or more
# grad_lambda_6 moves 40 * n_1 bytes, or more
def grad_lambda(x):
    y_saved_1_most = cp.empty(1, np.int64)
    n_1 = x.shape[0]
    y = cp.empty((n_1,), np.float64)
    y_saved_1_sizes = cp.empty((n_1,), np.int64)
    grad_lambda_1[one_block(1)](y_saved_1_most)
    y_saved_1_most_parts = cp.empty(blocks(n_1), np.int64)
    grad_lambda_2[grid(n_1)](n_1, x, y_saved_1_most, y_saved_1_most_parts)
    grad_lambda_3[one_block(256)](y_saved_1_most_parts, y_saved_1_most)
    y_saved_1_kept = cp.empty((y_saved_1_most.item(), n_1), np.float64)
    grad_lambda_4[grid(n_1)](n_1, x, y_saved_1_kept, y_saved_1_sizes, y)
    dx = cp.empty((n_1,), np.float64)
    grad_lambda_5[grid(n_1)](n_1, dx)
    grad_lambda_6[grid(n_1)](n_1, y_saved_1_sizes, y, x, y_saved_1_kept, dx)
    return (dx,)
