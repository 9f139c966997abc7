# SPDX-License-Identifier: Apache-2.0
"""Arguments for the tests of scipy.special along axes."""
import numpy as np

from gradscribe.ast_transform.rules.array_samples import _call, _complex


def log_sums(rng):
    x, b = rng.standard_normal, rng.random
    masked = np.array([[0.5, -np.inf, 2.0], [-1.0, 0.0, -np.inf]])
    return [_call(x(5)), _call(x(1)), _call(x((3, 4))), _call(x((3, 4)), 0), _call(x((3, 4)), axis=1),
            _call(x((3, 4)), axis=-1, keepdims=True), _call(x((2, 3, 4)), axis=(0, 2)), _call(x((1, 4)), axis=0),
            _call(x((3, 1)), axis=1), _call(x((0, 4)), axis=1), _call(20 * x((3, 4)), axis=1), _call(masked, axis=1),
            _call(x((3, 4)), b=1 + b((3, 4))), _call(x((3, 4)), axis=1, b=1 + b((3, 4))),
            _call(x((3, 4)), axis=0, b=1 + b(4)), _call(x((3, 4)), axis=1, b=1 + b((3, 1)), keepdims=True),
            _call(x(4), b=np.array([2.0, -3.0, 0.5, -1.0]), return_sign=True),
            _call(x((3, 4)), axis=1, return_sign=True), _call(x((3, 4)), axis=1, b=x((3, 4)), return_sign=True),
            _call(x(4), axis=0, b=1 + b((3, 4))), _call(x(4), axis=-1, b=1 + b((3, 1))),
            _call(x(4), axis=0, b=1 + b((1, 4))), _call(np.asarray(x()), b=1 + b(4)),
            _call(_complex(rng, (2, 3)), axis=1)]


def along_axes(rng):
    x = rng.standard_normal
    return [_call(x(5)), _call(x(1)), _call(x((3, 4))), _call(x((3, 4)), 0), _call(x((3, 4)), axis=1),
            _call(x((3, 4)), axis=-1), _call(x((2, 3, 4)), axis=(0, 2)), _call(x((1, 4)), axis=0),
            _call(x((3, 1)), axis=1), _call(x((0, 4)), axis=1), _call(20 * x((3, 4)), axis=1)]


def positives(rng):
    return [_call(0.3 + rng.random(s)) for s in ((3,), (2, 3), (1,), (0,), (2, 1, 3))] + [_call(_complex(rng, (3,)))]


def analytic(rng):
    x = rng.standard_normal
    return [_call(x(s)) for s in ((3,), (2, 3), (1,), (0,), (2, 1, 3))] + [_call(_complex(rng, (3,)))]


def counts(rng):
    return [_call(n) for n in (0, 1, 5)]
