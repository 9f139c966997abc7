"""The rules against JAX: value, tangent, adjoint and second derivative; `benchmarks/oracle.py` takes every sample."""
import re
from pathlib import Path

import oracle
import pytest

pytest.importorskip("jax")
TABLE = oracle.table()
PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "kinks.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TABLE)
def test_rule(name):
    """The first samples of a rule that JAX takes."""
    rule, function, theirs = TABLE[name]
    oracle.exact()
    compared = 0
    for k in range(len(oracle.samples_of(rule))):
        made, differences, _, _ = oracle.compare(name, k, rule, function, theirs)
        assert not oracle.unknown(differences), differences
        compared += made > 0
        if compared == 2:
            break


def test_known_differences_are_written_down():
    for heading in set(oracle.KNOWN.values()):
        assert re.search(rf"^##? {re.escape(heading)}$", PAGE, flags=re.M), heading
