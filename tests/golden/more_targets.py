"""More of what emitted source should read like: programs where the first version of the compiler was 1.4 to 3 times as
long as the gradient that a careful person writes.

What a careful person does here that a mechanical sweep does not:
  - keeps no value that one or two operations make again from values that are there (kalman: three stores, not twelve);
  - writes no forward loop whose passes only save what the backward pass can make again (pair_energy);
  - cancels what is zero: the shift in log-sum-exp has no adjoint, since what it gets sums to zero (mixture);
  - takes factors out of sums and puts like terms together (layer_norm);
  - uses the identity of the field: the adjoint of log(det(S)) is inv(S).T (kalman, normal_nll);
  - saves a decision, not the value that decides (bubble_sort), and one decision for one question;
  - never computes an array to read its shape;
  - gives a name that says what a value is: dS, dresid, inv_S; not z_1, t_2.
`python more_targets.py` checks every pair against central differences.
"""
# ruff: noqa: E741
import numpy as np
from targets import _check

# --- log-sum-exp with a shift: the shift has no adjoint ---------------------------------------------------------------

def mixture(log_weights, means, x):
    """x (n,), means (k,), log_weights (k,)"""
    score = log_weights - 0.5 * (x[:, None] - means) ** 2
    top = np.max(score, axis=1, keepdims=True)
    return np.sum(top[:, 0] + np.log(np.sum(np.exp(score - top), axis=1)))


def grad_mixture(log_weights, means, x):
    score = log_weights - 0.5 * (x[:, None] - means) ** 2
    top = np.max(score, axis=1, keepdims=True)
    exp_score = np.exp(score - top)
    sum_exp = np.sum(exp_score, axis=1, keepdims=True)

    # return np.sum(top[:, 0] + np.log(np.sum(np.exp(score - top), axis=1)))
    dscore = exp_score / sum_exp
    # score = log_weights - 0.5 * (x[:, None] - means) ** 2
    dlog_weights = np.sum(dscore, axis=0)
    dmeans = np.sum(dscore * (x[:, None] - means), axis=0)
    return dlog_weights, dmeans


# --- normalisation: factors out of sums, like terms together --------------------------------------------------------

def layer_norm(x, scale, shift, w):
    """x (n, d), scale (d,), shift (d,), w (n, d)"""
    mu = np.mean(x, axis=1, keepdims=True)
    sd = np.sqrt(np.var(x, axis=1, keepdims=True) + 1e-5)
    xhat = (x - mu) / sd
    return np.sum(w * np.tanh(xhat * scale + shift))


def grad_layer_norm(x, scale, shift, w):
    mu = np.mean(x, axis=1, keepdims=True)
    sd = np.sqrt(np.var(x, axis=1, keepdims=True) + 1e-5)
    xhat = (x - mu) / sd
    t = np.tanh(xhat * scale + shift)

    # return np.sum(w * np.tanh(xhat * scale + shift))
    dz = w * (1 - t * t)
    dshift = np.sum(dz, axis=0)
    dscale = np.sum(dz * xhat, axis=0)
    dxhat = dz * scale
    # xhat = (x - mu) / sd
    mean_dxhat = np.mean(dxhat, axis=1, keepdims=True)
    mean_dxhat_xhat = np.mean(dxhat * xhat, axis=1, keepdims=True)
    dx = (dxhat - mean_dxhat - xhat * mean_dxhat_xhat) / sd
    return dx, dscale, dshift


# --- a filter: few stores, the rest is made again; log(det) -----------------------------------------------------------

def kalman(z, F, H, Q, R, x, P):
    """z (n, m); states of 4 numbers, say"""
    nll = 0.0
    for k in range(z.shape[0]):
        x = F @ x
        P = F @ P @ F.T + Q
        y = z[k] - H @ x
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        nll += 0.5 * (y @ np.linalg.solve(S, y) + np.log(np.linalg.det(S)))
        x = x + K @ y
        P = P - K @ H @ P
    return nll


def grad_kalman(z, F, H, Q, R, x, P):
    n = z.shape[0]
    x_saved = np.empty((n, x.shape[0]))
    P_saved = np.empty((n, P.shape[0], P.shape[1]))
    for k in range(n):
        x_saved[k] = x
        P_saved[k] = P
        x = F @ x
        P = F @ P @ F.T + Q
        y = z[k] - H @ x
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ y
        P = P - K @ H @ P

    dF = np.zeros_like(F)
    dQ = np.zeros_like(Q)
    dR = np.zeros_like(R)
    dx = np.zeros_like(x)
    dP = np.zeros_like(P)
    for k in reversed(range(n)):
        x0 = x_saved[k]
        P0 = P_saved[k]
        P = F @ P0 @ F.T + Q
        y = z[k] - H @ (F @ x0)
        inv_S = np.linalg.inv(H @ P @ H.T + R)
        K = P @ H.T @ inv_S
        v = inv_S @ y
        # P = P - K @ H @ P
        dK = -dP @ P.T @ H.T
        dP = dP - (K @ H).T @ dP
        # x = x + K @ y
        dK += np.outer(dx, y)
        dy = K.T @ dx
        # nll += 0.5 * (y @ np.linalg.solve(S, y) + np.log(np.linalg.det(S)))
        dS = 0.5 * (inv_S.T - np.outer(inv_S.T @ y, v))
        dy += 0.5 * (v + inv_S.T @ y)
        # K = P @ H.T @ np.linalg.inv(S)
        dP += dK @ inv_S.T @ H
        dS -= K.T @ dK @ inv_S.T
        # S = H @ P @ H.T + R
        dP += H.T @ dS @ H
        dR += dS
        # y = z[k] - H @ x
        dx = dx - H.T @ dy
        # P = F @ P @ F.T + Q
        dF += dP @ F @ P0.T + dP.T @ F @ P0
        dQ += dP
        dP = F.T @ dP @ F
        # x = F @ x
        dF += np.outer(dx, x0)
        dx = F.T @ dx
    return dF, dQ, dR


# --- log density by slogdet and solve -------------------------------------------------------------------------------

def normal_nll(S, r):
    return 0.5 * (r @ np.linalg.solve(S, r) + np.linalg.slogdet(S)[1])


def grad_normal_nll(S, r):
    inv_S = np.linalg.inv(S)
    v = inv_S @ r

    # return 0.5 * (r @ np.linalg.solve(S, r) + np.linalg.slogdet(S)[1])
    u = inv_S.T @ r
    dS = 0.5 * (inv_S.T - np.outer(u, v))
    dr = 0.5 * (u + v)
    return dS, dr


# --- a loop that carries nothing but sums: no forward loop ----------------------------------------------------------

def pair_energy(x, charge, cutoff):
    """x (n, 3), charge (n,)"""
    e = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            d = x[i] - x[j]
            r2 = d @ d
            if r2 < cutoff:
                e += charge[i] * charge[j] / np.sqrt(r2)
    return e


def grad_pair_energy(x, charge, cutoff):
    dx = np.zeros_like(x)
    dcharge = np.zeros_like(charge)
    for i in range(x.shape[0]):
        for j in range(i):
            d = x[i] - x[j]
            r2 = d @ d
            if r2 < cutoff:
                # e += charge[i] * charge[j] / np.sqrt(r2)
                r = np.sqrt(r2)
                dcharge[i] += charge[j] / r
                dcharge[j] += charge[i] / r
                dd = -charge[i] * charge[j] / (r2 * r) * d
                # d = x[i] - x[j]
                dx[i] += dd
                dx[j] -= dd
    return dx, dcharge


# --- decisions are saved, not values ----------------------------------------------------------------------------------

def bubble_sort(x, weights):
    x = x.copy()
    n = len(x)
    for i in range(n):
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return x @ weights


def grad_bubble_sort(x, weights):
    x = x.copy()
    n = len(x)
    swapped = np.zeros((n, n), dtype=np.bool_)
    for i in range(n):
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                swapped[i, j] = True
                x[j], x[j + 1] = x[j + 1], x[j]

    # return x @ weights
    dx = weights.copy()
    for i in reversed(range(n)):
        for j in reversed(range(n - 1 - i)):
            if swapped[i, j]:
                # x[j], x[j + 1] = x[j + 1], x[j]
                dx[j], dx[j + 1] = dx[j + 1], dx[j]
    return dx


# --- an epidemic: what is made again costs less than what is saved --------------------------------------------------

def epidemic(beta, gamma, y, dt, observed):
    loss = 0.0
    for k in range(observed.shape[0]):
        S, I, R = y
        infected = beta * S * I
        recovered = gamma * I
        y = y + dt * np.array([-infected, infected - recovered, recovered])
        loss += (y[1] - observed[k]) ** 2
    return loss


def grad_epidemic(beta, gamma, y, dt, observed):
    n = observed.shape[0]
    y_saved = np.empty((n + 1, 3))
    y_saved[0] = y
    for k in range(n):
        S, I, R = y
        infected = beta * S * I
        recovered = gamma * I
        y = y + dt * np.array([-infected, infected - recovered, recovered])
        y_saved[k + 1] = y

    dy = np.zeros_like(y)
    dbeta = 0.0
    dgamma = 0.0
    for k in reversed(range(n)):
        # loss += (y[1] - observed[k]) ** 2
        dy[1] += 2 * (y_saved[k + 1, 1] - observed[k])
        # y = y + dt * np.array([-infected, infected - recovered, recovered])
        dinfected = dt * (dy[1] - dy[0])
        drecovered = dt * (dy[2] - dy[1])
        S, I, R = y_saved[k]
        # recovered = gamma * I
        dgamma += drecovered * I
        # infected = beta * S * I
        dbeta += dinfected * S * I
        dy[1] += drecovered * gamma + dinfected * beta * S
        dy[0] += dinfected * beta * I
    return dbeta, dgamma


# --- a loop that is left from inside ----------------------------------------------------------------------------------

def fall_time(v, drag, dt):
    h = 10.0
    t = 0.0
    while True:
        v = v - dt * (9.81 + drag * v * abs(v))
        if h + dt * v <= 0.0:
            return t - h / v
        h = h + dt * v
        t += dt


def grad_fall_time(v, drag, dt):
    h = 10.0
    v_saved = []
    while True:
        v_saved.append(v)
        v = v - dt * (9.81 + drag * v * abs(v))
        if h + dt * v <= 0.0:
            break
        h = h + dt * v

    # return t - h / v
    dh = -1 / v
    dv = h / v ** 2
    ddrag = 0.0
    while True:
        v = v_saved.pop()
        # v = v - dt * (9.81 + drag * v * abs(v))
        ddrag -= dt * dv * v * abs(v)
        dv = dv * (1 - 2 * dt * drag * abs(v))
        if not v_saved:
            break
        # h = h + dt * v
        dv += dt * dh
    return dv, ddrag


def main():
    rng = np.random.default_rng(0)
    N = rng.standard_normal
    F, H = np.eye(4) + 0.1 * N((4, 4)), N((2, 4))
    A = N((3, 3))
    S = A @ A.T + np.eye(3)
    cases = [
        (mixture, grad_mixture, (N(3), N(3), N(6)), (0, 1)),
        (layer_norm, grad_layer_norm, (N((4, 5)), N(5), N(5), N((4, 5))), (0, 1, 2)),
        (kalman, grad_kalman, (N((6, 2)), F, H, np.eye(4), np.eye(2), N(4), np.eye(4)), (1, 3, 4)),
        (normal_nll, grad_normal_nll, (S, N(3)), (0, 1)),
        (pair_energy, grad_pair_energy, (N((6, 3)), N(6), 4.0), (0, 1)),
        (bubble_sort, grad_bubble_sort, (N(6), N(6)), (0,)),
        (epidemic, grad_epidemic, (0.5, 0.2, np.array([0.9, 0.1, 0.0]), 0.1, N(20)), (0, 1)),
        (fall_time, grad_fall_time, (3.0, 0.02, 0.01), (0, 1)),
    ]
    ok = [_check(f.__name__, f, g, args, wrt, rng) for f, g, args, wrt in cases]
    print(f"{sum(ok)} passed, {len(ok) - sum(ok)} failed")


if __name__ == "__main__":
    main()
