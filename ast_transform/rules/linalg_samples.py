# SPDX-License-Identifier: Apache-2.0
"""Arguments for the tests of linear algebra; see array_samples.py."""
import numpy as np

from gradscribe.ast_transform.rules.array_samples import _call, _complex, _regular


def _definite(rng, *shape, kind=float):
    a = rng.standard_normal(shape) if kind is float else _complex(rng, shape)
    return a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(shape[-1])


def _hermitian(rng, *shape, kind=float):
    a = rng.standard_normal(shape) if kind is float else _complex(rng, shape)
    return a + np.conj(np.swapaxes(a, -1, -2)) + np.diag(3.0 * np.arange(shape[-1]))


def _unread(m, other, by=0.7):
    """A matrix with other values in the triangle and the imaginary diagonal that are not read."""
    m = m + by * other(np.ones_like(m), 1 if other is np.triu else -1)
    return m + 0.5j * np.eye(m.shape[-1]) if m.dtype.kind == "c" else m


def _spread(rng, *shape, kind=float):
    """A matrix that is not symmetric; the Hermitian matrices of both triangles have distinct eigenvalues."""
    return (rng.standard_normal(shape) if kind is float else _complex(rng, shape)) + np.diag(5.0 * np.arange(shape[-1]))


def positive_definite(rng):
    return [*[_call(_definite(rng, *s)) for s in [(3, 3), (1, 1), (4, 3, 3), (0, 2, 2)]],
            _call(_definite(rng, 3, 3, kind=complex)), _call(_definite(rng, 3, 3), upper=True),
            _call(_definite(rng, 2, 3, 3, kind=complex), upper=True), _call(_unread(_definite(rng, 3, 3), np.triu)),
            _call(_unread(_definite(rng, 2, 3, 3), np.tril), upper=True),
            _call(_unread(_definite(rng, 2, 2, kind=complex), np.triu)),
            _call(_unread(_definite(rng, 3, 3, kind=complex), np.tril), upper=True)]


def symmetric_matrices(rng):
    return [*[_call(_hermitian(rng, *s)) for s in [(3, 3), (1, 1), (4, 3, 3), (0, 2, 2)]],
            _call(_hermitian(rng, 3, 3), "U"), _call(_hermitian(rng, 2, 2), UPLO="L"), _call(_spread(rng, 3, 3)),
            _call(_spread(rng, 2, 3, 3), "L"), _call(_hermitian(rng, 3, 3, kind=complex)),
            _call(_spread(rng, 2, 3, 3, kind=complex), "U")]


def hermitian_matrices(rng):
    return [*symmetric_matrices(rng),
            _call(_hermitian(rng, 2, 3, 3, kind=complex), "U"), _call(_spread(rng, 3, 3), "U"),
            _call(_spread(rng, 2, 3, 3, kind=complex)), _call(_spread(rng, 3, 3, kind=complex), UPLO="u")]


def any_matrices(rng):
    x = rng.standard_normal
    return [*[_call(x(s)) for s in [(4, 3), (3, 3), (5, 4, 2), (1, 1), (0, 3, 2), (2, 4)]],
            _call(_complex(rng, (3, 2)))]


def singular(rng):
    """Full matrices are included where they add only one vector, which is unique up to its sign."""
    x = rng.standard_normal
    return [_call(x(s), full_matrices=False) for s in [(4, 3), (3, 4), (3, 3), (5, 3, 2), (1, 1)]] + [
        _call(x((3, 4)), compute_uv=False), _call(x((5, 3, 2)), full_matrices=False, compute_uv=False),
        _call(x((3, 3))), _call(x((3, 2))), _call(x((2, 3))), _call(x((2, 4, 3)), True),
        _call(_complex(rng, (3, 4)), compute_uv=False), _call(_complex(rng, (3, 3)), False, False),
        _call(_complex(rng, (3, 3)), False), _call(_complex(rng, (4, 2)), False), _call(_complex(rng, (2, 4)), False),
        _call(_hermitian(rng, 3, 3), False, hermitian=True)]


def orthogonalised(rng):
    x = rng.standard_normal
    return [*[_call(x(s)) for s in [(4, 3), (3, 3), (5, 4, 2), (1, 1), (0, 3, 2)]], _call(_complex(rng, (4, 3))),
            _call(_complex(rng, (2, 3, 3))), _call(x((4, 2)), "r"), _call(x((2, 3, 3)), mode="r"),
            _call(_complex(rng, (3, 2)), "r")]


def full_ranks(rng):
    x = rng.standard_normal
    return [*[_call(x(s)) for s in [(3, 2), (2, 4), (3, 3), (5, 3, 2), (1, 2)]], _call(_complex(rng, (3, 2))),
            _call(_complex(rng, (2, 2, 3))), _call(x((3, 2)), 1e-10),
            _call(_hermitian(rng, 3, 3), hermitian=True), _call(_spread(rng, 3, 3), hermitian=True)]


# --- norms ------------------------------------------------------------------------------------------------------------

def norms(rng):
    x = rng.standard_normal
    z = _complex(rng, (2, 3))
    return [_call(x(4)), _call(x((2, 3))), _call(x((2, 3, 4))), _call(x((2, 3)), axis=1),
            _call(x((2, 3)), axis=0, keepdims=True), _call(x((2, 3)), "fro"), _call(x((2, 3)), keepdims=True),
            _call(x((2, 3, 4)), axis=(1, 2)), _call(x((2, 3, 4)), "fro", (0, 2)), _call(x(4), 2), _call(x(4), 1),
            _call(x((2, 3)), 1, 1), _call(x(4), np.inf), _call(x((2, 3)), -np.inf, axis=1), _call(x(4), 3),
            _call(np.array([1.0, -3.0, 3.0]), np.inf),
            _call(x((2, 3)), 2.5, axis=0), _call(x(4), 0), _call(x((2, 3)), 1), _call(x((2, 3)), np.inf),
            _call(x((2, 3)), -1, (1, 0)), _call(x((3, 3)), "nuc"), _call(x((2, 3)), 2), _call(x((2, 3)), -2),
            _call(x((2, 3)), np.inf, axis=1, keepdims=True), _call(x((0, 3)), axis=1), _call(_complex(rng, 3)),
            _call(x(1)), _call(x((2, 3)), -np.inf, (0, 1), True), _call(x(4), -1), _call(x(4), -2.5), _call(x(4), 0.5),
            _call(x((2, 3, 4)), 2, (1, 2)), _call(x((2, 3, 4)), "nuc", (2, 0)), _call(x((2, 3, 4)), -2, (0, 1), True),
            _call(x((2, 3, 4)), 1, (0, 2)), _call(x((2, 3, 4)), -np.inf, (-1, 0), True), _call(z[0], 1),
            _call(z, 3, axis=1), _call(z, np.inf, axis=0), _call(z[0], 0), _call(z, 1), _call(z, -np.inf), _call(z, 2),
            _call(z, "nuc"), _call(_complex(rng, (2, 2, 3)), -2, (0, 2), True), _call(_complex(rng, 3), -1),
            _call(np.array([[1.0, -2.0, 0.5], [2.0, 1.0, 0.5]]), 1)]


def vector_norms(rng):
    x = rng.standard_normal
    return [_call(x(4)), _call(x((2, 3))), _call(x((2, 3)), ord=1), _call(x((2, 3)), axis=1, ord=3),
            _call(x((2, 3, 4)), axis=0, keepdims=True), _call(x((2, 3, 4)), keepdims=True, ord=np.inf),
            _call(_complex(rng, (2, 3)), axis=-1), _call(x((2, 3, 4)), axis=(0, 2), ord=1)]


def matrix_norms(rng):
    x = rng.standard_normal
    return [_call(x((2, 3))), _call(x((4, 2, 3))), _call(x((2, 3)), ord="nuc"), _call(x((4, 2, 3)), ord=2),
            _call(x((2, 3)), ord=1, keepdims=True), _call(_complex(rng, (2, 3)), ord=-2)]


def conditions(rng):
    return [_call(_regular(rng, 3, 3)), _call(rng.standard_normal((3, 2))), _call(_regular(rng, 3, 3), 1),
            _call(_regular(rng, 2, 3, 3), "fro"), _call(_regular(rng, 3, 3), -2), _call(_regular(rng, 2, 3, 3), 1),
            _call(_regular(rng, 3, 3), -1), _call(_regular(rng, 2, 2, 2), p=2)]


# --- solutions --------------------------------------------------------------------------------------------------------

def least_squares(rng):
    """Sums of residuals are returned where there are more rows than columns."""
    x = rng.standard_normal
    return [_call(x((4, 2)), x(4)), _call(x((4, 2)), x((4, 3))), _call(x((5, 3)), x((5, 1))),
            _call(x((4, 2)), x(4), rcond=None), _call(x((5, 1)), x(5)), _call(_complex(rng, (4, 2)), _complex(rng, 4)),
            _call(x((2, 4)), x(2)), _call(x((2, 3)), x((2, 2))), _call(_complex(rng, (2, 3)), _complex(rng, 2))]


def tensor_inverses(rng):
    x = rng.standard_normal
    return [_call(x((4, 2, 2)), ind=1), _call(x((2, 3, 6))), _call(x((6, 2, 3)), 1), _call(x((2, 2, 4)), ind=2),
            _call(_regular(rng, 3, 3), 1)]


def tensor_systems(rng):
    x = rng.standard_normal
    return [_call(x((2, 3, 6)), x((2, 3))), _call(x((4, 2, 2)), x(4)), _call(_regular(rng, 3, 3), x(3)),
            _call(x((2, 3, 2, 3)), x((2, 3))), _call(x((2, 4, 2)), x(4), axes=(0,)), _call(_regular(rng, 1, 1), x(1))]


# --- aliases ----------------------------------------------------------------------------------------------------------

def products(rng):
    x = rng.standard_normal
    return [_call(x((2, 3)), x((3, 4))), _call(x((5, 2, 3)), x((3, 4))), _call(x(3), x(3)), _call(x((2, 3)), x(3)),
            _call(x(3), x((5, 3, 2)))]


def vectors(rng):
    x = rng.standard_normal
    return [_call(x(2), x(3)), _call(x(1), x(3)), _call(x(0), x(2)), _call(_complex(rng, 2), x(2)), _call(x(3), x(3))]


def spatial(rng):
    x = rng.standard_normal
    return [_call(x(3), x(3)), _call(x((4, 3)), x(3)), _call(x((3, 4)), x((3, 4)), axis=0), _call(x((1, 3)), x((5, 3))),
            _call(_complex(rng, 3), x(3))]


def pairs_of_vectors(rng):
    x = rng.standard_normal
    return [_call(x(3), x(3)), _call(x((4, 3)), x(3)), _call(x((3, 4)), x((3, 4)), axis=0),
            _call(_complex(rng, (2, 3)), _complex(rng, 3)), _call(x((1, 3)), x((5, 3)))]


def contractions(rng):
    x = rng.standard_normal
    return [_call(x((2, 3, 4)), x((3, 4, 2))), _call(x((2, 3)), x((3, 4)), axes=1), _call(x(2), x(3), axes=0),
            _call(x((2, 3)), x((4, 2)), axes=([0], [1])), _call(x((2, 3)), x((2, 4)), axes=(0, 0))]


def stacks(rng):
    x = rng.standard_normal
    return [_call(x((2, 3))), _call(x((4, 2, 3))), _call(x((1, 1))), _call(x((0, 2, 3))),
            _call(_complex(rng, (2, 2, 3)))]


def offset_stacks(rng):
    x = rng.standard_normal
    return [_call(x((3, 3))), _call(x((4, 3, 3))), _call(x((3, 4)), offset=1), _call(x((2, 4, 3)), offset=-1),
            _call(_complex(rng, (2, 3, 3)))]
