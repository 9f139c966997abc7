"""docs/coverage.md says what is so."""
import covered
import pytest

pytest.importorskip("jax")


def test_the_page_is_fresh():
    assert covered.FILE.read_text(encoding="utf-8") == covered.text(covered.table()), "run `make rules`"


def test_the_bars():
    rows = covered.table()
    understood = [r for r in rows if r.value == "yes"]
    active = [r for r in rows if r.vjp or r.jvp]
    batch = [r for r in understood if r.batch]
    assert len(understood) >= 400
    assert sum(r.jvp == "yes" for r in active) >= 0.98 * len(active)
    assert sum(r.vjp == "yes" for r in active) >= 0.98 * len(active)
    assert sum(r.numba == "yes" for r in understood) >= 0.95 * len(understood)
    assert sum(r.batch in ("form", "some") for r in batch) >= 0.9 * len(batch)
