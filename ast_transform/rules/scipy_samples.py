# SPDX-License-Identifier: Apache-2.0
"""Arguments for the tests of scipy.linalg; see array_samples.py."""
import numpy as np

from gradscribe.ast_transform.rules.array_samples import _call, _complex, _regular
from gradscribe.ast_transform.rules.linalg_samples import _definite, _hermitian, _spread, _unread


def regular(rng):
    return [_call(_regular(rng, 3, 3)), _call(_regular(rng, 1, 1)), _call(_regular(rng, 3, 3), check_finite=False),
            _call(_regular(rng, 2, 3, 3)), _call(_regular(rng, 2, 2) + 1j * rng.standard_normal((2, 2)))]


def singular(rng):
    x = rng.standard_normal
    return [_call(x((4, 3)), full_matrices=False), _call(x((3, 3))), _call(x((3, 4)), compute_uv=False),
            _call(x((3, 2)), True), _call(x((2, 3)), False)]


def matrices(rng):
    return [_call(rng.standard_normal(s)) for s in [(4, 3), (3, 3), (1, 1), (2, 4)]] + [_call(_complex(rng, (3, 2)))]


def matrices_to_turn(rng):
    return [*matrices(rng), _call(rng.standard_normal((4, 3)), side="left")]


def plain_symmetric_matrices(rng):
    return [_call(_hermitian(rng, 3, 3)), _call(_hermitian(rng, 1, 1)), _call(_hermitian(rng, 3, 3), lower=False),
            _call(_hermitian(rng, 2, 2), check_finite=False), _call(_hermitian(rng, 3, 3, kind=complex)),
            _call(_spread(rng, 3, 3)), _call(_spread(rng, 3, 3), lower=False)]


def eigenvalues_and_vectors(rng):
    """The phases of complex eigenvectors are not smooth."""
    return [*[_call(_hermitian(rng, *s)) for s in [(3, 3), (1, 1), (2, 2)]], _call(_hermitian(rng, 3, 3), lower=False),
            _call(_spread(rng, 3, 3)), _call(_spread(rng, 3, 3), lower=False), *eigenvalues_only(rng)]


def eigenvalues_only(rng):
    return [_call(_hermitian(rng, 3, 3), eigvals_only=True),
            _call(_hermitian(rng, 1, 1), eigvals_only=True),
            _call(_hermitian(rng, 3, 3), lower=False, eigvals_only=True),
            _call(_hermitian(rng, 2, 2), eigvals_only=True),
            _call(_hermitian(rng, 3, 3, kind=complex), eigvals_only=True),
            _call(_spread(rng, 3, 3), eigvals_only=True), _call(_spread(rng, 3, 3), lower=False, eigvals_only=True),
            _call(_spread(rng, 3, 3, kind=complex), lower=False, eigvals_only=True)]


def tall(rng):
    return [_call(rng.standard_normal(s), mode="economic") for s in [(4, 3), (3, 3), (1, 1), (5, 2)]] + [
        _call(_complex(rng, (3, 2)), mode="economic")]


def positive_definite(rng):
    return [_call(_definite(rng, 3, 3)), _call(_definite(rng, 3, 3), lower=True), _call(_definite(rng, 1, 1)),
            _call(_definite(rng, 3, 3, kind=complex), True), _call(_definite(rng, 2, 2, kind=complex)),
            _call(_unread(_definite(rng, 3, 3), np.tril)), _call(_unread(_definite(rng, 3, 3), np.triu), lower=True)]


def factored_systems(rng):
    x, low = rng.standard_normal, np.tril(_regular(rng, 3, 3))
    return [_call((low, True), x(3)), _call((low.T, False), x((3, 2))), _call((low, True), x((3, 1))),
            _call((low + 0j, True), _complex(rng, 3)), _call((low.T + 0j, False), _complex(rng, (3, 2)))]


def structured_systems(rng):
    x = rng.standard_normal
    return [_call(_regular(rng, 3, 3), x(3)), _call(_regular(rng, 3, 3), x((3, 2))),
            _call(_definite(rng, 3, 3), x(3), assume_a="pos"),
            _call(_definite(rng, 3, 3), x((3, 2)), True, assume_a="pos"),
            _call(_hermitian(rng, 3, 3), x(3), assume_a="sym"), _call(_regular(rng, 3, 3), x(3), transposed=True),
            _call(np.tril(_regular(rng, 3, 3)), x(3), assume_a="lower triangular"),
            _call(_regular(rng, 3, 3), x(3), assume_a="upper triangular", transposed=True),
            _call(_regular(rng, 3, 3), x(3), assume_a="sym", transposed=True),
            _call(_regular(rng, 3, 3), x((3, 2)), True, assume_a="symmetric"),
            _call(_regular(rng, 3, 3) + 1j * x((3, 3)), _complex(rng, 3), assume_a="sym"),
            _call(_regular(rng, 3, 3) + 1j * x((3, 3)), _complex(rng, 3), assume_a="her"),
            _call(_regular(rng, 3, 3) + 1j * x((3, 3)), _complex(rng, 3), True, assume_a="hermitian"),
            _call(_unread(_definite(rng, 3, 3), np.tril), x(3), assume_a="pos", transposed=True)]


def triangular_systems(rng):
    x = rng.standard_normal
    a = np.tril(_regular(rng, 3, 3))
    z = a + 1j * np.tril(x((3, 3)))
    return [_call(a.T, x(3)), _call(a, x(3), lower=True), _call(a, x((3, 2)), lower=True),
            _call(a.T, x((3, 2)), trans=1),
            _call(a, x(3), "T", True), _call(a, x(3), 2, lower=True), _call(a, x(3), lower=True, unit_diagonal=True),
            _call(a.T, x((3, 2)), 1, unit_diagonal=True), _call(z, _complex(rng, 3), lower=True),
            _call(z, _complex(rng, (3, 2)), "C", True), _call(z.T, _complex(rng, 3), "T"),
            _call(z.T, _complex(rng, 3), 2),
            _call(_regular(rng, 1, 1), x(1)), _call(_regular(rng, 3, 3), x(3), lower=True)]


def square(rng):
    return [_call(rng.standard_normal((n, n))) for n in (1, 2, 3, 4)] + [_call(_complex(rng, (3, 3)))]


def exponents(rng):
    x = rng.standard_normal
    return [_call(x((3, 3))), _call(x((1, 1))), _call(10 * x((3, 3))), _call(x((2, 3, 3))),
            _call(_complex(rng, (2, 2))), _call(np.zeros((2, 2))), _call(1e-3 * x((3, 3)))]


def exponents_and_directions(rng):
    x = rng.standard_normal
    return [_call(x((3, 3)), x((3, 3))), _call(x((3, 3)), x((3, 3)), compute_expm=False), _call(x((1, 1)), x((1, 1))),
            _call(np.zeros((2, 2)), x((2, 2))), _call(_complex(rng, (2, 2)), _complex(rng, (2, 2)))]


def sylvester(rng):
    x = rng.standard_normal
    return [_call(_regular(rng, 3, 3), _regular(rng, 2, 2), x((3, 2))),
            _call(_regular(rng, 2, 2), _regular(rng, 2, 2), x((2, 2))),
            _call(_regular(rng, 1, 1), _regular(rng, 3, 3), x((1, 3))),
            _call(_regular(rng, 1, 1), _regular(rng, 1, 1), x((1, 1))),
            _call(_regular(rng, 2, 2) + 1j * x((2, 2)), _regular(rng, 2, 2) + 0j, _complex(rng, (2, 2))),
            _call(np.stack([_regular(rng, 2, 2)] * 2), np.stack([_regular(rng, 2, 2)] * 2), x((2, 2, 2)))]


def with_square_roots(rng):
    """Matrices with real and complex roots: positive, conjugate and negative eigenvalues, and a triangular matrix."""
    x = rng.standard_normal
    half = x((3, 3))
    return [_call(half @ half.T + np.eye(3)), _call(np.array([[1.0, 2.0], [-2.0, 1.5]]) + 0.1 * x((2, 2))),
            _call(np.diag([-1.0, 2.0, 0.5]) + 0.1 * x((3, 3))), _call(np.triu(0.3 * x((3, 3))) + np.diag([1.0, 2, 3])),
            _call(_complex(rng, (3, 3)) + 2 * np.eye(3)), _call(np.array([[2.5]])),
            _call(np.stack([half @ half.T + np.eye(3), half.T @ half + 2 * np.eye(3)]))]


def banded_systems(rng):
    """Storage that also has numbers in entries outside the matrix, which are not read."""
    x = rng.standard_normal

    def system(below, above, *shape):
        ab = x((below + above + 1, shape[0]))
        ab[above] += 4
        return _call((below, above), ab, x(shape))
    return [system(1, 1, 4), system(1, 2, 5), system(2, 0, 4, 3), system(0, 1, 3, 1), system(0, 0, 3), system(1, 1, 2)]


def blocks(rng):
    x = rng.standard_normal
    return [_call(x((2, 3)), x((1, 2))), _call(x((2, 2))), _call(x((1, 1)), x(3), x((2, 1))),
            _call(x((0, 2)), x((2, 2))), _call(_complex(rng, (2, 2)), x((1, 2))), _call(x((1, 2)), np.asarray(x()))]


def vectors(rng):
    return [_call(rng.standard_normal(n)) for n in (1, 2, 3, 5)] + [_call(_complex(rng, 3))]


def first_columns(rng):
    x = rng.standard_normal
    return [_call(x(3)), _call(x(3), x(4)), _call(x(4), x(2)), _call(x(1), x(3)), _call(_complex(rng, 3)),
            _call(_complex(rng, 2), x(3))]
