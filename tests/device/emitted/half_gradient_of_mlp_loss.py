from gradscribe.runtime.device import block_sum, blocks, column_blocks, column_grid, column_sum, cp, cuda, grid, host, np, one_block, sum_of, tanh_32


# h = np.tanh(x @ W1 + b1)
@cuda.jit
def value_and_grad_mlp_loss_1(n_4, n_2, product_5, b1, h):
    column, row = cuda.grid(2)
    columns, rows = cuda.gridsize(2)
    i = row
    while i < n_4:
        j = column
        while j < n_2:
            h[i, j] = np.float16(tanh_32(np.float32(product_5[i, j]) + np.float32(b1[j])))
            j += columns
        i += rows


# p = h @ W2 + b2
# return np.sum((p - y) ** 2)
@cuda.jit
def value_and_grad_mlp_loss_2(n_4, n_3, product_6, b2, y, dp, sum_7_parts):
    sum_7 = np.float32(0)
    column, row = cuda.grid(2)
    columns, rows = cuda.gridsize(2)
    i = row
    while i < n_4:
        j = column
        while j < n_3:
            p = np.float32(np.float16(np.float32(product_6[i, j]) + np.float32(b2[j])))
            z = np.float32(np.float16(p - np.float32(y[i, j])))
            sum_7 += z * z
            dp[i, j] = np.float16(np.float32(2.0) * z)
            j += columns
        i += rows
    block_sum(sum_7_parts, sum_7)


# p = h @ W2 + b2
# h = np.tanh(x @ W1 + b1)
@cuda.jit
def value_and_grad_mlp_loss_3(n_3, n_4, dp, db2_parts):
    j, row = cuda.grid(2)
    rows = cuda.gridsize(2)[1]
    db2_part = np.float32(0)
    if j < n_3:
        i = row
        while i < n_4:
            db2_part += np.float32(dp[i, j])
            i += rows
    column_sum(db2_parts, j, db2_part)


# p = h @ W2 + b2
# h = np.tanh(x @ W1 + b1)
@cuda.jit
def value_and_grad_mlp_loss_4(n_3, db2_parts, db2):
    j = cuda.grid(1)
    while j < n_3:
        for k in range(db2_parts.shape[0]):
            db2[j] += db2_parts[k, j]
        j += cuda.gridsize(1)


# h = np.tanh(x @ W1 + b1)
@cuda.jit
def value_and_grad_mlp_loss_5(n_4, n_2, dh, h, dz):
    column, row = cuda.grid(2)
    columns, rows = cuda.gridsize(2)
    i = row
    while i < n_4:
        j = column
        while j < n_2:
            dz[i, j] = np.float16(np.float32(dh[i, j]) * (np.float32(1.0) - np.float32(h[i, j]) * np.float32(h[i, j])))
            j += columns
        i += rows


# return np.sum((p - y) ** 2)
@cuda.jit
def value_and_grad_mlp_loss_6(sum_7_parts, sum_7, sum_z):
    sum_7_all = sum_of(sum_7_parts)
    if cuda.threadIdx.x == 0:
        sum_7[0] = sum_7_all
        sum_z[0] = sum_7[0]


# value_and_grad_mlp_loss_1 moves 4 * n_4 * n_2 + 2 * n_2 bytes, or more
# value_and_grad_mlp_loss_2 moves 6 * n_4 * n_3 + 2 * n_3 bytes, or more
# value_and_grad_mlp_loss_3 moves 2 * n_4 * n_3 + 8 * n_3 bytes, or more
# value_and_grad_mlp_loss_5 moves 6 * n_4 * n_2 bytes, or more
# value_and_grad_mlp_loss_3 moves 2 * n_4 * n_2 + 8 * n_2 bytes, or more
def value_and_grad_mlp_loss(W1, b1, W2, b2, x, y):
    sum_7 = cp.empty(1, np.float32)
    sum_z = cp.empty(1, np.float32)
    n_1 = W1.shape[0]
    n_2 = W1.shape[1]
    n_3 = W2.shape[1]
    n_4 = x.shape[0]
    if b1.shape[0] != n_2 or W2.shape[0] != n_2 or b2.shape[0] != n_3 or (x.shape[1] != n_1) or (y.shape[0] != n_4) or (y.shape[1] != n_3):
        raise ValueError('operands could not be broadcast together: lengths of arguments differ')
    product_5 = host.dot(x, W1)
    h = cp.empty((n_4, n_2), np.float16)
    value_and_grad_mlp_loss_1[grid(n_4, n_2)](n_4, n_2, product_5, b1, h)
    del product_5
    product_6 = host.dot(h, W2)
    dp = cp.empty((n_4, n_3), np.float16)
    sum_7_parts = cp.empty(blocks(n_4, n_3), np.float32)
    value_and_grad_mlp_loss_2[grid(n_4, n_3)](n_4, n_3, product_6, b2, y, dp, sum_7_parts)
    del product_6
    db2 = cp.zeros((n_3,), np.float32)
    db2_parts = cp.empty((column_blocks(n_3, n_4), n_3), np.float32)
    value_and_grad_mlp_loss_3[column_grid(n_3, n_4)](n_3, n_4, dp, db2_parts)
    value_and_grad_mlp_loss_4[grid(n_3)](n_3, db2_parts, db2)
    dh = host.dot(dp, W2.T)
    dW2 = host.dot(h.T, dp)
    del dp
    dz = cp.empty((n_4, n_2), np.float16)
    value_and_grad_mlp_loss_5[grid(n_4, n_2)](n_4, n_2, dh, h, dz)
    del dh, h
    db1 = cp.zeros((n_2,), np.float32)
    db1_parts = cp.empty((column_blocks(n_2, n_4), n_2), np.float32)
    value_and_grad_mlp_loss_3[column_grid(n_2, n_4)](n_2, n_4, dz, db1_parts)
    value_and_grad_mlp_loss_4[grid(n_2)](n_2, db1_parts, db1)
    dW1 = host.dot(x.T, dz)
    value_and_grad_mlp_loss_6[one_block(256)](sum_7_parts, sum_7, sum_z)
    return (sum_z[0].astype(np.float16), dW1, db1.astype(np.float16), dW2, db2.astype(np.float16))
