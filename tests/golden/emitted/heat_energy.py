import numpy as np


def grad_heat_energy(u, kappa, steps):
    u = u.copy()
    u_saved = np.empty((steps, u.shape[0]))
    for i in range(steps):
        u_saved[i] = u
        u[1:-1] += kappa * (u[2:] - 2 * u[1:-1] + u[:-2])

    # return np.sum(u**2)
    du = 2 * u
    dkappa = 0.0
    for i in reversed(range(steps)):
        # u[1:-1] += kappa * (u[2:] - 2 * u[1:-1] + u[:-2])
        dz = du[1:-1]
        u = u_saved[i]
        dkappa += np.sum(dz * (u[2:] - 2 * u[1:-1] + u[:-2]))
        du_1 = dz * kappa
        du[:-2] += du_1
        du[1:-1] -= 2 * du_1
        du[2:] += du_1
    return du, dkappa
