"""A branch of which a derivative keeps nothing but comments is no branch: an `else` without a body was printed."""
import fuzz
import fuzz_lowered

from gradscribe.codegen import jit_cpu


def test_second_derivatives_of_a_random_program(monkeypatch):
    """Its first branch ends in writes through views in a dictionary, its second one in what no derivative needs."""
    monkeypatch.setattr(jit_cpu, "compiled_text", fuzz_lowered.plain)
    found = fuzz.check(fuzz.make(460000039, "mixed"), jit=True)
    assert found.kind == "right", found.detail
