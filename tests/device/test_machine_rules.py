"""Every function with a record, value and adjoint, by what Numba compiles for a device, run thread by thread."""
import inspect

import numpy as np
import pytest
from device.loopback import looped
from device.test_calls import of_host, there
from jit.test_rules import ALWAYS_COMPLEX, SAMPLED, call, not_compiled
from rule_calls import leaves
from scipy import special

import gradscribe as gs
from gradscribe.ast_transform.rules import distributions_samples

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
WITHOUT = [getattr(special, n) for n in """
    beta betainc betaincc betaln boxcox boxcox1p comb dawsn exp1 expi expn fresnel gammainc gammaincc gammasgn hyp1f1
    hyp2f1 i0 i0e i1 i1e iv ive j1 jv k0 k1 kv log_ndtr loggamma owens_t poch sici spence stdtr wofz y1 yn yv
    """.split()]                        # which kernels have not, or not for the sample, or not their derivatives
OF_MLIR = {"digamma", "gamma", "gammaln", "math_gamma", "math_lgamma", "polygamma", "zeta", "multigammaln", "psi"}


def of_seeds(y):
    """Adjoints of results."""
    rng = np.random.default_rng(5)
    dy = [np.asarray(rng.normal(size=np.shape(v)), dtype=np.asarray(v).dtype)[()] for v in leaves(y)]
    if hasattr(y, "_fields"):
        return type(y)(*dy)
    return type(y)(dy) if isinstance(y, (tuple, list)) else float(dy[0]) if type(y) is float else dy[0]


@pytest.mark.parametrize("backend", ["cuda", "mlir"])
@pytest.mark.parametrize("rule", SAMPLED, ids=lambda r: r.label)
def test_value_and_adjoint(rule, backend):
    pytest.importorskip("numba_cuda" if backend == "cuda" else "numba_cuda_mlir")
    k = len(rule.label) % len(rule.samples(np.random.default_rng(3)))
    if not_compiled(rule, k):
        pytest.skip("NumPy reads the other triangle")
    if backend == "mlir" and rule.label in OF_MLIR:
        pytest.skip("numba-cuda-mlir 0.6 has a fault in the derivative of psi")
    function, given = call(rule, k)
    with np.errstate(all="ignore"):
        y = function(*given)
        cases = [(function, given, y)]
        if given and not hasattr(y, "_fields"):
            back = gs.vjp_of(function)
            try:
                cases.append((back, (of_seeds(y), *given), back(of_seeds(y), *given)))
            except gs.TransformError:
                pass                    # it has none
    refused = False
    for called, args, expected in cases:
        try:
            with looped(backend, machine=True) as (cp, _):
                found = gs.jit(called, target="cuda")(*there(cp, tuple(args)))
        except gs.TransformError as error:
            assert "the device has no" in str(error), error
            refused = True
            continue
        for a, b in zip(map(of_host, leaves(found)), map(np.asarray, leaves(expected)), strict=True):
            assert a.shape == b.shape and (a.dtype == b.dtype or rule.label in ALWAYS_COMPLEX)
            single = b.dtype in (np.float32, np.complex64)
            np.testing.assert_allclose(a, b, rtol=1e-4 if single else 1e-8, atol=1e-4 if single else 1e-9)
    if inspect.getmodule(rule.samples) is not distributions_samples:        # those are made of others
        assert refused == any(f in WITHOUT for f in rule.functions)
