"""HAND / HT, simple variant (ADBench objective 3): linear-blend-skinned hand, 26 pose parameters.

theta (26) -> 22 bone transforms -> skinned vertices (3,M) -> residual points_i - V[:, corr_i].
Task "grad": 0.5*||residuals||^2.  Task "jac": dense (3N x 26) Jacobian (forward mode is the right mode).
"""
import os

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
SOURCE = "ADBench data/hand/simple_{small,big}"
argnums = (0,)
static_argnums = (1,)
sizes = {"S": dict(model="small", file="hand_simple_small_hand1_t26_c100"),
         "M": dict(model="small", file="hand_simple_small_hand6_t26_c1600"),
         "L": dict(model="big", file="hand_simple_big_hand8_t26_c6400")}


def make_inputs(size, seed=0):
    s = sizes[size]
    md = np.load(f"{DATA}/hand_model_{s['model']}.npz")
    z = np.load(f"{DATA}/{s['file']}.npz")
    theta = z["theta"].copy()
    if seed:
        theta += 0.1 * np.random.default_rng(seed).normal(size=theta.shape)
    return (theta, md["parents"], md["base_relatives"], md["inverse_base_absolutes"],
            md["base_positions"], md["weights"], z["points"], z["correspondences"])


def jax_args(args):
    return (args[0], tuple(int(p) for p in args[1])) + tuple(args[2:])


# ---------------------------------------------------------------- plain NumPy
def angle_axis_to_rotation(v):
    R = np.eye(3)
    norm = np.sqrt(v[0] ** 2 + v[1] ** 2 + v[2] ** 2)
    if norm < 0.0001:
        return R
    x = v[0] / norm
    y = v[1] / norm
    z = v[2] / norm
    s = np.sin(norm)
    c = np.cos(norm)
    R[0, 0] = x * x + (1 - x * x) * c
    R[0, 1] = x * y * (1 - c) - z * s
    R[0, 2] = x * z * (1 - c) + y * s
    R[1, 0] = x * y * (1 - c) + z * s
    R[1, 1] = y * y + (1 - y * y) * c
    R[1, 2] = y * z * (1 - c) - x * s
    R[2, 0] = x * z * (1 - c) - y * s
    R[2, 1] = z * y * (1 - c) + x * s
    R[2, 2] = z * z + (1 - z * z) * c
    return R


def euler_to_rotation(tx, tz, ty):
    Rx = np.eye(3)
    Rx[1, 1] = np.cos(tx)
    Rx[2, 1] = np.sin(tx)
    Rx[1, 2] = -Rx[2, 1]
    Rx[2, 2] = Rx[1, 1]
    Ry = np.eye(3)
    Ry[0, 0] = np.cos(ty)
    Ry[0, 2] = np.sin(ty)
    Ry[2, 0] = -Ry[0, 2]
    Ry[2, 2] = Ry[0, 0]
    Rz = np.eye(3)
    Rz[0, 0] = np.cos(tz)
    Rz[1, 0] = np.sin(tz)
    Rz[0, 1] = -Rz[1, 0]
    Rz[1, 1] = Rz[0, 0]
    return Rz @ Ry @ Rx


def pose_angles(theta, n_bones):
    angles = np.zeros((n_bones, 3))
    k = 6
    bone = 2
    for finger in range(5):
        for i in range(3):
            angles[bone, 0] = theta[k]
            k += 1
            if i == 0:
                angles[bone, 1] = theta[k]
                k += 1
            bone += 1
        bone += 1
    return angles


def vertices_numpy(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights):
    n_bones = parents.shape[0]
    # finger i: bones 2+4i .. 4+4i move (bone 0 wrist, bone 1+4i is the finger base, last bone is the forearm)
    angles = pose_angles(theta, n_bones)
    absolutes = np.zeros((n_bones, 4, 4))
    V = np.zeros((3, base_positions.shape[1]))
    for b in range(n_bones):
        tr = np.eye(4)
        tr[:3, :3] = euler_to_rotation(angles[b, 0], angles[b, 1], angles[b, 2])
        rel = base_relatives[b] @ tr
        if parents[b] == -1:
            absolutes[b] = rel
        else:
            absolutes[b] = absolutes[parents[b]] @ rel
        T = absolutes[b] @ inverse_base_absolutes[b]
        V += weights[b] * (T @ base_positions)[:3]
    R = angle_axis_to_rotation(theta[:3])
    V = R @ V
    for i in range(3):
        V[i] += theta[3 + i]
    return V


def residuals_numpy(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights, points, corr):
    V = vertices_numpy(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights)
    err = np.zeros(points.shape)
    for i in range(points.shape[0]):
        for j in range(3):
            err[i, j] = points[i, j] - V[j, corr[i]]
    return err


def objective_numpy(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights, points, corr):
    err = residuals_numpy(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights,
                          points, corr)
    return 0.5 * np.sum(err ** 2)


variants = {"numpy": objective_numpy}


# ---------------------------------------------------------------- JAX (expert)
def _angle_index(n_bones):
    src = np.full((n_bones, 3), -1)
    k, bone = 6, 2
    for _ in range(5):
        for i in range(3):
            src[bone, 0] = k
            k += 1
            if i == 0:
                src[bone, 1] = k
                k += 1
            bone += 1
        bone += 1
    return src


def vertices_jax(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights):
    import jax
    import jax.numpy as jnp
    n_bones = len(parents)
    src = _angle_index(n_bones)
    angles = jnp.where(src >= 0, theta[np.maximum(src, 0)], 0.0)
    tx, tz, ty = angles[:, 0], angles[:, 1], angles[:, 2]
    o, l = jnp.zeros_like(tx), jnp.ones_like(tx)
    mk = lambda *r: jnp.stack([jnp.stack(x, -1) for x in r], -2)
    cx, sx, cy, sy, cz, sz = (jnp.cos(tx), jnp.sin(tx), jnp.cos(ty), jnp.sin(ty), jnp.cos(tz), jnp.sin(tz))
    Rx = mk((l, o, o), (o, cx, -sx), (o, sx, cx))
    Ry = mk((cy, o, sy), (o, l, o), (-sy, o, cy))
    Rz = mk((cz, -sz, o), (sz, cz, o), (o, o, l))
    R = Rz @ Ry @ Rx
    tr = jnp.zeros((n_bones, 4, 4), theta.dtype).at[:, :3, :3].set(R).at[:, 3, 3].set(1.0)
    rel = base_relatives @ tr
    absolutes = []
    for b in range(n_bones):
        absolutes.append(rel[b] if parents[b] == -1 else absolutes[parents[b]] @ rel[b])
    T = (jnp.stack(absolutes) @ inverse_base_absolutes)[:, :3]
    # sum_b w_bv T_b p_v  ==  [T_0 .. T_B] @ (w (x) p): one GEMM
    wp = (weights[:, None, :] * base_positions[None]).reshape(n_bones * 4, -1)
    V = T.transpose(1, 0, 2).reshape(3, n_bones * 4) @ wp
    v = theta[:3]
    norm = jnp.sqrt(v @ v)
    x, y, z = v / norm
    s, c = jnp.sin(norm), jnp.cos(norm)
    Rg = jnp.array([[x * x + (1 - x * x) * c, x * y * (1 - c) - z * s, x * z * (1 - c) + y * s],
                    [x * y * (1 - c) + z * s, y * y + (1 - y * y) * c, y * z * (1 - c) - x * s],
                    [x * z * (1 - c) - y * s, z * y * (1 - c) + x * s, z * z + (1 - z * z) * c]])
    return Rg @ V + theta[3:6, None]


def residuals_jax(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights, points, corr):
    V = vertices_jax(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights)
    return points - V[:, corr].T


def objective_jax(*args):
    import jax.numpy as jnp
    err = residuals_jax(*args)
    return 0.5 * jnp.sum(err ** 2)


def jacobian_jax(*args):
    import jax
    return jax.jacfwd(residuals_jax)(*args)
