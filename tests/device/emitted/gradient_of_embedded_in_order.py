from gradscribe.runtime.device import block_sum, blocks, check_places, cp, cuda, grid, host, np, one_block, place_in, sum_of, tanh


# return np.sum(np.tanh(w[k]) ** 2)
@cuda.jit
def value_and_grad_embedded_1(n_3, n_2, w, k, n_1, tanh_w, wrong):
    column, row = cuda.grid(2)
    columns, rows = cuda.gridsize(2)
    i = row
    while i < n_3:
        j = column
        while j < n_2:
            tanh_w[i, j] = tanh(w[place_in(k[i], n_1, wrong), j])
            j += columns
        i += rows


# return np.sum(np.tanh(w[k]) ** 2)
@cuda.jit
def value_and_grad_embedded_2(n_3, n_2, tanh_w, sum_4_parts):
    sum_4 = 0.0
    column, row = cuda.grid(2)
    columns, rows = cuda.gridsize(2)
    i = row
    while i < n_3:
        j = column
        while j < n_2:
            sum_4 += tanh_w[i, j] * tanh_w[i, j]
            j += columns
        i += rows
    block_sum(sum_4_parts, sum_4)


# return np.sum(np.tanh(w[k]) ** 2)
@cuda.jit
def value_and_grad_embedded_3(n_1, n_2, dw):
    column, row = cuda.grid(2)
    columns, rows = cuda.gridsize(2)
    i = row
    while i < n_1:
        j = column
        while j < n_2:
            dw[i, j] = 0.0
            j += columns
        i += rows


# return np.sum(np.tanh(w[k]) ** 2)
@cuda.jit
def value_and_grad_embedded_4(n_3, n_2, k, n_1, dw_length, tanh_w, dw_keys, dw_added, wrong):
    column, row = cuda.grid(2)
    columns, rows = cuda.gridsize(2)
    i = row
    while i < n_3:
        j = column
        while j < n_2:
            dw_keys[i, j] = place_in(k[i], n_1, wrong) * dw_length + j
            dw_added[i, j] = 2 * tanh_w[i, j] * (1 - tanh_w[i, j] * tanh_w[i, j])
            j += columns
        i += rows


# return np.sum(np.tanh(w[k]) ** 2)
@cuda.jit
def value_and_grad_embedded_5(dw_count, dw_keys_line, dw_order, dw_added_line, dw_length, dw):
    dw_first = cuda.grid(1)
    while dw_first < dw_count:
        dw_key = dw_keys_line[dw_order[0, dw_first]]
        if dw_key >= 0 and (dw_first == 0 or dw_keys_line[dw_order[0, dw_first - 1]] != dw_key):
            dw_sum = dw_added_line[dw_order[0, dw_first]]
            dw_next = dw_first + 1
            while dw_next < dw_count and dw_keys_line[dw_order[0, dw_next]] == dw_key:
                dw_sum += dw_added_line[dw_order[0, dw_next]]
                dw_next += 1
            cuda.atomic.add(dw, (dw_key // dw_length, dw_key % dw_length), dw_sum)
        dw_first += cuda.gridsize(1)


# return np.sum(np.tanh(w[k]) ** 2)
@cuda.jit
def value_and_grad_embedded_6(sum_4_parts, sum_4, sum_z):
    sum_4_all = sum_of(sum_4_parts)
    if cuda.threadIdx.x == 0:
        sum_4[0] = sum_4_all
        sum_z[0] = sum_4[0]


# value_and_grad_embedded_1 moves 16 * n_3 * n_2 + 8 * n_3 bytes, or more
# value_and_grad_embedded_2 moves 8 * n_3 * n_2 bytes, or more
# value_and_grad_embedded_3 moves 8 * n_1 * n_2 bytes, or more
# value_and_grad_embedded_4 moves 24 * n_3 * n_2 + 8 * n_3 bytes, or more
# value_and_grad_embedded_5 moves 40 * dw_count bytes, or more
def value_and_grad_embedded(w, k):
    sum_4 = cp.empty(1, np.float64)
    sum_z = cp.empty(1, np.float64)
    wrong = cp.zeros(1, np.int64)
    n_1 = w.shape[0]
    n_2 = w.shape[1]
    n_3 = k.shape[0]
    tanh_w = cp.empty((n_3, n_2), np.float64)
    value_and_grad_embedded_1[grid(n_3, n_2)](n_3, n_2, w, k, n_1, tanh_w, wrong)
    sum_4_parts = cp.empty(blocks(n_3, n_2), np.float64)
    value_and_grad_embedded_2[grid(n_3, n_2)](n_3, n_2, tanh_w, sum_4_parts)
    dw = cp.empty((n_1, n_2), np.float64)
    value_and_grad_embedded_3[grid(n_1, n_2)](n_1, n_2, dw)
    dw_length = dw.shape[1]
    dw_keys = cp.full((n_3, n_2), -1, np.int64)
    dw_added = cp.empty((n_3, n_2), np.float64)
    value_and_grad_embedded_4[grid(n_3, n_2)](n_3, n_2, k, n_1, dw_length, tanh_w, dw_keys, dw_added, wrong)
    del tanh_w
    dw_count = n_3 * n_2
    dw_keys_line = dw_keys.reshape((dw_count,))
    del dw_keys
    dw_added_line = dw_added.reshape((dw_count,))
    del dw_added
    dw_order = host.argsort_lines(dw_keys_line.reshape((1, dw_count)))
    value_and_grad_embedded_5[grid(dw_count)](dw_count, dw_keys_line, dw_order, dw_added_line, dw_length, dw)
    value_and_grad_embedded_6[one_block(256)](sum_4_parts, sum_4, sum_z)
    check_places(wrong)
    return (sum_z[0], dw)
