"""A branch of which a derivative keeps nothing but comments is no branch: an `else` without a body was printed."""
import fuzz


def test_second_derivatives_of_a_random_program():
    """Its first branch ends in writes through views in a dictionary, its second one in what no derivative needs."""
    found = fuzz.check(fuzz.make(460000039, "mixed"))
    assert found.kind == "right", found.detail
