"""A shallow-water model in eight functions: its gradient is a set of functions that read like their originals."""
import numpy as np

import gradscribe as gs


class Grid:
    def __init__(self, nx, ny, dx, dy):
        self.nx, self.ny, self.dx, self.dy = nx, ny, dx, dy

def ddx(f, grid):
    out = np.empty_like(f)
    out[:, 1:-1] = (f[:, 2:] - f[:, :-2]) / (2 * grid.dx)
    out[:, 0] = (f[:, 1] - f[:, -1]) / (2 * grid.dx)
    out[:, -1] = (f[:, 0] - f[:, -2]) / (2 * grid.dx)
    return out

def ddy(f, grid):
    out = np.empty_like(f)
    out[1:-1, :] = (f[2:, :] - f[:-2, :]) / (2 * grid.dy)
    out[0, :] = (f[1, :] - f[-1, :]) / (2 * grid.dy)
    out[-1, :] = (f[0, :] - f[-2, :]) / (2 * grid.dy)
    return out

def laplacian(f, grid):
    return ((np.roll(f, 1, axis=1) - 2 * f + np.roll(f, -1, axis=1)) / grid.dx ** 2
            + (np.roll(f, 1, axis=0) - 2 * f + np.roll(f, -1, axis=0)) / grid.dy ** 2)

def viscosity(f, nu, grid):
    strength = nu * np.sqrt(1.0 + ddx(f, grid) ** 2 + ddy(f, grid) ** 2)
    smooth = strength * laplacian(f, grid)
    return smooth

def tendency(h, u, v, nu, grid):
    g, f0 = 9.81, 1e-4
    dh = -ddx(h * u, grid) - ddy(h * v, grid)
    du = -u * ddx(u, grid) - v * ddy(u, grid) + f0 * v - g * ddx(h, grid) + viscosity(u, nu, grid)
    dv = -u * ddx(v, grid) - v * ddy(v, grid) - f0 * u - g * ddy(h, grid) + viscosity(v, nu, grid)
    return dh, du, dv

def rk2(h, u, v, nu, dt, grid):
    dh, du, dv = tendency(h, u, v, nu, grid)
    h1, u1, v1 = h + 0.5 * dt * dh, u + 0.5 * dt * du, v + 0.5 * dt * dv
    dh, du, dv = tendency(h1, u1, v1, nu, grid)
    return h + dt * dh, u + dt * du, v + dt * dv

def energy(h, u, v):
    kinetic = 0.5 * h * (u ** 2 + v ** 2)
    potential = 0.5 * 9.81 * h ** 2
    return np.sum(kinetic + potential)

def misfit(h, u, v, nu, observed, grid, dt, steps):
    loss = 0.0
    for k in range(steps):
        h, u, v = rk2(h, u, v, nu, dt, grid)
        loss = loss + np.sum((h - observed[k]) ** 2)
    return loss + 1e-3 * energy(h, u, v)


RNG = np.random.default_rng(0)
NORMAL = RNG.normal
ARGS = (1 + 0.01 * NORMAL(size=(6, 8)), 0.01 * NORMAL(size=(6, 8)), 0.01 * NORMAL(size=(6, 8)), 0.01,
        1 + 0.01 * NORMAL(size=(4, 6, 8)), Grid(8, 6, 0.1, 0.1), 0.001, 4)


def test_values():
    gradient = gs.grad(misfit, argnums=(0, 1, 2, 3))(*ARGS)
    for k in range(3):
        step = NORMAL(size=(6, 8))
        moved = [misfit(*ARGS[:k], ARGS[k] + s * 1e-6 * step, *ARGS[k + 1:]) for s in (1, -1)]
        np.testing.assert_allclose(np.sum(gradient[k] * step), (moved[0] - moved[1]) / 2e-6, rtol=1e-5, atol=1e-8)
    moved = [misfit(*ARGS[:3], 0.01 + s * 1e-6, *ARGS[4:]) for s in (1, -1)]
    np.testing.assert_allclose(gradient[3], (moved[0] - moved[1]) / 2e-6, rtol=1e-5)


def test_text():
    text = gs.grad(misfit, argnums=(0, 1, 2, 3)).source_for(*ARGS)
    assert len(text.splitlines()) <= 190
    functions = ["ddx", "ddy", "laplacian", "viscosity", "tendency", "rk2"]
    assert all(text.count(f"def {name}(") == 1 for name in functions)
    assert all(text.count(f"def vjp_{name}(") == 1 for name in ("ddx", "ddy", "laplacian", "tendency", "rk2", "energy"))
    assert "    dh = -ddx(h * u) - ddy(h * v)\n" in text and "h, u, v = rk2(h, u, v, nu, dt)" in text
