from gradscribe.runtime.device import cp, cuda, exp_32, log_32, np, one_block, tanh_32


# return np.sum(s * (1 / (1 + np.exp(-d))) - k * np.tanh(d))
# d = (np.log(s / k) + 0.5) / 0.3
@cuda.jit
def value_and_grad_black_scholes_1(s, k, dk, t_2, sum_z):
    sum_1 = np.float32(0.0)
    for i in range(5):
        z = s[i] / k[i]
        d = (log_32(z) + np.float32(0.5)) / np.float32(0.3)
        exp_z = exp_32(-d)
        z_1 = np.float32(1.0) + exp_z
        z_2 = np.float32(1.0) / z_1
        tanh_d = tanh_32(d)
        sum_1 += s[i] * z_2 - k[i] * tanh_d
        dd = s[i] * (z_2 / z_1) * exp_z - k[i] * (np.float32(1.0) - tanh_d * tanh_d)
        z_3 = np.float32(3.3333333333333335) * dd / z / k[i]
        dk[i] = -(z_3 * z) - tanh_d
        t_2[i] = z_3 + z_2
    sum_z[0] = sum_1


def value_and_grad_black_scholes(s, k):
    sum_z = cp.empty(1, np.float32)
    if s.shape[0] != 5 or k.shape[0] != 5:
        raise ValueError('operands could not be broadcast together: lengths of arguments differ')
    dk = cp.empty((5,), np.float32)
    t_2 = cp.empty((5,), np.float32)
    value_and_grad_black_scholes_1[one_block(1)](s, k, dk, t_2, sum_z)
    return (sum_z[0], t_2, dk)
