"""BA: bundle adjustment (ADBench objective 2).

cams (n,11) = [rodrigues rot 3, centre 3, focal 1, principal point 2, radial k1 k2], X (m,3), w (p,),
obs (p,2) int (camera, point), feats (p,2).
residuals: w_i * (proj(cam, X) - feat) (2 per obs) and 1 - w_i^2.
Task "grad": scalar f = 0.5 * sum(residuals^2).   Task "jac": the per-observation 2x15 blocks and d(w_err)/dw
(the non-zeros of ADBench's sparse (3p) x (11n+3m+p) Jacobian).
ADBench replicates ONE camera/point/feature; here each copy is jittered (seeded) so that no tool can exploit it.
"""
import os

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
SOURCE = "ADBench data/ba/ba{1,5}_*.txt sizes, jittered"
argnums = (0, 1, 2)
static_argnums = ()
sizes = {"S": dict(n=5, m=100, p=300, name="ba1_n49_m7776_p31843"),
         "M": dict(n=49, m=7776, p=31843, name="ba1_n49_m7776_p31843"),
         "L": dict(n=257, m=65132, p=225911, name="ba5_n257_m65132_p225911")}


def make_inputs(size, seed=0):
    s = sizes[size]
    v = np.load(f"{DATA}/ba.npz")[s["name"]]
    cam, X, w, feat = v[3:14], v[14:17], v[17], v[18:20]
    rng = np.random.default_rng(1234 + seed)
    n, m, p = s["n"], s["m"], s["p"]
    cams = cam * (1 + 0.01 * rng.normal(size=(n, 11)))
    Xs = X * (1 + 0.01 * rng.normal(size=(m, 3)))
    ws = w * (1 + 0.01 * rng.normal(size=p))
    i = np.arange(p)
    obs = np.stack([i % n, i % m], axis=1)
    feats = feat * (1 + 0.01 * rng.normal(size=(p, 2)))
    return cams, Xs, ws, obs, feats


# ---------------------------------------------------------------- plain NumPy
def residual_numpy(cam, X, w, feat):
    """One observation -> array of 3 residuals."""
    rot = cam[0:3]
    xo = X - cam[3:6]
    sqtheta = rot[0] ** 2 + rot[1] ** 2 + rot[2] ** 2
    xc = np.empty(3)
    if sqtheta != 0.0:
        theta = np.sqrt(sqtheta)
        c = np.cos(theta)
        s = np.sin(theta)
        v = rot / theta
        tmp = (v[0] * xo[0] + v[1] * xo[1] + v[2] * xo[2]) * (1.0 - c)
        xc[0] = xo[0] * c + (v[1] * xo[2] - v[2] * xo[1]) * s + v[0] * tmp
        xc[1] = xo[1] * c + (v[2] * xo[0] - v[0] * xo[2]) * s + v[1] * tmp
        xc[2] = xo[2] * c + (v[0] * xo[1] - v[1] * xo[0]) * s + v[2] * tmp
    else:
        xc[0] = xo[0] + rot[1] * xo[2] - rot[2] * xo[1]
        xc[1] = xo[1] + rot[2] * xo[0] - rot[0] * xo[2]
        xc[2] = xo[2] + rot[0] * xo[1] - rot[1] * xo[0]
    u = xc[0] / xc[2]
    t = xc[1] / xc[2]
    rsq = u * u + t * t
    L = 1.0 + cam[9] * rsq + cam[10] * rsq * rsq
    out = np.empty(3)
    out[0] = w * (u * L * cam[6] + cam[7] - feat[0])
    out[1] = w * (t * L * cam[6] + cam[8] - feat[1])
    out[2] = 1.0 - w * w
    return out


def objective_numpy(cams, X, w, obs, feats):
    total = 0.0
    for i in range(w.shape[0]):
        r = residual_numpy(cams[obs[i, 0]], X[obs[i, 1]], w[i], feats[i])
        total += 0.5 * (r[0] ** 2 + r[1] ** 2 + r[2] ** 2)
    return total


def objective_vec(cams, X, w, obs, feats):
    cam = cams[obs[:, 0]]
    xo = X[obs[:, 1]] - cam[:, 3:6]
    rot = cam[:, 0:3]
    theta = np.sqrt(np.sum(rot ** 2, axis=1))
    v = rot / theta[:, None]
    c = np.cos(theta)[:, None]
    s = np.sin(theta)[:, None]
    tmp = np.sum(v * xo, axis=1)[:, None] * (1.0 - c)
    xc = xo * c + np.cross(v, xo) * s + v * tmp
    p = xc[:, :2] / xc[:, 2:]
    rsq = np.sum(p ** 2, axis=1)
    L = 1.0 + cam[:, 9] * rsq + cam[:, 10] * rsq ** 2
    err = w[:, None] * (p * L[:, None] * cam[:, 6:7] + cam[:, 7:9] - feats)
    return 0.5 * np.sum(err ** 2) + 0.5 * np.sum((1.0 - w ** 2) ** 2)


variants = {"numpy": objective_numpy, "vec": objective_vec}


# ---------------------------------------------------------------- JAX (expert)
def residual_jax(cam, X, w, feat):
    import jax.numpy as jnp
    rot = cam[0:3]
    xo = X - cam[3:6]
    sq = rot @ rot
    theta = jnp.sqrt(sq)
    c, s = jnp.cos(theta), jnp.sin(theta)
    v = rot / theta
    xc = xo * c + jnp.cross(v, xo) * s + v * ((v @ xo) * (1.0 - c))
    p = xc[:2] / xc[2]
    rsq = p @ p
    L = 1.0 + cam[9] * rsq + cam[10] * rsq * rsq
    err = w * (p * L * cam[6] + cam[7:9] - feat)
    return jnp.concatenate([err, (1.0 - w * w)[None]])


def objective_jax(cams, X, w, obs, feats):
    # struct-of-arrays formulation: one fused loop over observations (3x faster on CPU than
    # vmap(residual_jax), whose (p,3)/(p,11) layouts defeat fusion)
    import jax.numpy as jnp
    ci, xi = obs[:, 0], obs[:, 1]
    ct = [cams[:, j][ci] for j in range(11)]
    xo = [X[:, j][xi] - ct[3 + j] for j in range(3)]
    theta = jnp.sqrt(ct[0] ** 2 + ct[1] ** 2 + ct[2] ** 2)
    c, s = jnp.cos(theta), jnp.sin(theta)
    v = [ct[j] / theta for j in range(3)]
    tmp = (v[0] * xo[0] + v[1] * xo[1] + v[2] * xo[2]) * (1.0 - c)
    x0 = xo[0] * c + (v[1] * xo[2] - v[2] * xo[1]) * s + v[0] * tmp
    x1 = xo[1] * c + (v[2] * xo[0] - v[0] * xo[2]) * s + v[1] * tmp
    x2 = xo[2] * c + (v[0] * xo[1] - v[1] * xo[0]) * s + v[2] * tmp
    u, t = x0 / x2, x1 / x2
    rsq = u * u + t * t
    L = 1.0 + ct[9] * rsq + ct[10] * rsq * rsq
    e0 = w * (u * L * ct[6] + ct[7] - feats[:, 0])
    e1 = w * (t * L * ct[6] + ct[8] - feats[:, 1])
    e2 = 1.0 - w * w
    return 0.5 * jnp.sum(e0 * e0 + e1 * e1 + e2 * e2)


def objective_jax_vmap(cams, X, w, obs, feats):
    import jax
    import jax.numpy as jnp
    r = jax.vmap(residual_jax)(cams[obs[:, 0]], X[obs[:, 1]], w, feats)
    return 0.5 * jnp.sum(r * r)


def jacobian_jax(cams, X, w, obs, feats):
    """(p,2,15) blocks [cam 11 | X 3 | w 1] and (p,) d w_err / d w."""
    import jax
    import jax.numpy as jnp

    def one(cam, x, wi, feat):
        jc, jx, jw = jax.jacrev(lambda a, b, c: residual_jax(a, b, c, feat)[:2], argnums=(0, 1, 2))(cam, x, wi)
        return jnp.concatenate([jc, jx, jw[:, None]], axis=1)
    return jax.vmap(one)(cams[obs[:, 0]], X[obs[:, 1]], w, feats), -2.0 * w


def objective_autograd(cams, X, w, obs, feats):
    import autograd.numpy as anp
    ci, xi = obs[:, 0], obs[:, 1]
    cam = cams[ci]
    xo = X[xi] - cam[:, 3:6]
    rot = cam[:, 0:3]
    theta = anp.sqrt(anp.sum(rot ** 2, axis=1))
    v = rot / theta[:, None]
    c = anp.cos(theta)[:, None]
    s = anp.sin(theta)[:, None]
    tmp = anp.sum(v * xo, axis=1)[:, None] * (1.0 - c)
    cross = anp.stack([v[:, 1] * xo[:, 2] - v[:, 2] * xo[:, 1], v[:, 2] * xo[:, 0] - v[:, 0] * xo[:, 2],
                       v[:, 0] * xo[:, 1] - v[:, 1] * xo[:, 0]], axis=1)
    xc = xo * c + cross * s + v * tmp
    p = xc[:, :2] / xc[:, 2:]
    rsq = anp.sum(p ** 2, axis=1)
    L = 1.0 + cam[:, 9] * rsq + cam[:, 10] * rsq ** 2
    err = w[:, None] * (p * L[:, None] * cam[:, 6:7] + cam[:, 7:9] - feats)
    return 0.5 * anp.sum(err ** 2) + 0.5 * anp.sum((1.0 - w ** 2) ** 2)
