"""Threads that meet: what is given to plain programs that run side by side, and how each fault ends."""
import threading
import time

import numpy as np
import pytest

from gradscribe.runtime import teams
from gradscribe.runtime.groups import Lost

DEADLINE = 1.0
SUM = "psum over 'i'"
rng = np.random.default_rng(3)


def together(count, program, deadline=DEADLINE):
    """The results of program(rank, member) on so many threads."""
    grid = teams.Grid(["i"], [count], deadline)

    def piece(rank):
        return lambda: program(rank, grid.members(rank)["i"])
    return teams.side_by_side([piece(rank) for rank in range(count)], grid, deadline)


def in_order(parts, apply=np.add):
    """The sum in the order of ranks, bit for bit."""
    total = parts[0].copy()
    for x in parts[1:]:
        total = apply(total, x)
    return total


# --- what they give ---------------------------------------------------------------------------------------------------

# below and above the 128 KiB from which the threads share the work; lengths that no number of threads divides
SHAPES = [(), (1,), (7,), (3, 5), (0,), (0, 4), (16383,), (16385,), (131, 129), (50001,)]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_are_taken_in_the_order_of_ranks(count, shape):
    parts = [np.asarray(rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 8, shape)) for _ in range(count)]

    def program(rank, member):
        return [member.reduce(parts[rank], operation, operation) for operation in ("sum", "max", "min")]
    for _ in range(3):
        for found in together(count, program):
            for got, apply in zip(found, (np.add, np.maximum, np.minimum)):
                assert got.tobytes() == in_order(parts, apply).tobytes() and got.shape == shape


@pytest.mark.parametrize("late", range(4))
def test_who_comes_last_does_not_matter(late):
    parts = [rng.standard_normal(1001) * 10.0 ** (5 * k) for k in range(4)]

    def program(rank, member):
        if rank == late:
            time.sleep(0.02)
        return member.reduce(parts[rank], "sum", SUM)
    for got in together(4, program):
        assert got.tobytes() == in_order(parts).tobytes()


@pytest.mark.parametrize("size", [20, 300])
@pytest.mark.parametrize("lay", [np.asfortranarray, lambda x: x[::2], lambda x: x[:, ::-1], lambda x: x.T,
                                 lambda x: np.broadcast_to(x[0], x.shape)],
                         ids=["fortran", "every other", "backward", "transposed", "the same row"])
def test_arrays_that_are_laid_otherwise(size, lay):
    parts = [lay(rng.standard_normal((size, size))) for _ in range(3)]
    for got in together(3, lambda rank, member: member.reduce(parts[rank], "sum", SUM)):
        assert np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(in_order(parts)).tobytes()


def test_into_an_array_that_is_there():
    parts = [rng.standard_normal((200, 200)) for _ in range(3)]
    goals = [np.zeros((200, 400))[:, ::2] for _ in range(3)]
    together(3, lambda rank, member: member.reduce(parts[rank], "sum", SUM, goals[rank]))
    for goal in goals:
        assert np.array_equal(goal, in_order(parts))


@pytest.mark.parametrize("size", [5, 20000])
@pytest.mark.parametrize("count", [2, 4])
def test_several_sums_at_once(count, size):
    parts = [[rng.standard_normal(size), rng.standard_normal((3, 2)), np.asarray(float(rank))]
             for rank in range(count)]

    def program(rank, member):
        own = [x.copy() for x in parts[rank]]
        outs = [np.empty_like(x) for x in own]
        member.reduce_all(own, outs, "sum", SUM)
        member.reduce_all(own, own, "sum", SUM)                 # where they are
        return outs, own
    for outs, own in together(count, program):
        for k in range(3):
            expected = in_order([p[k] for p in parts])
            assert np.array_equal(outs[k], expected) and np.array_equal(own[k], expected)


def test_what_is_moved():
    parts = [rng.standard_normal((4, 3)) for _ in range(4)]

    def program(rank, member):
        x = parts[rank]
        return (member.gather(x, "g"), member.scatter(x, "s"), member.exchange(x, "e"),
                member.permute(x, ((0, 1), (1, 2)), "p"))
    for rank, (gathered, scattered, exchanged, sent) in enumerate(together(4, program)):
        assert np.array_equal(gathered, np.stack(parts))
        assert scattered.tobytes() == in_order([p[rank] for p in parts]).tobytes()
        assert np.array_equal(exchanged, np.stack([p[rank] for p in parts]))
        assert np.array_equal(sent, parts[rank - 1] if rank in (1, 2) else np.zeros((4, 3)))


def test_what_was_given_may_be_written_to_at_once():
    """Nobody reads another's array after its owner has gone on."""
    def program(rank, member):
        x, found = np.full(30000, float(rank)), []
        for _ in range(20):
            found.append([member.reduce(x, "sum", SUM)[-1], member.gather(x[:2], "g")[1, 0],
                          member.permute(x[:1], ((0, 1), (1, 0)), "p")[0]])
            x += 1.0
        return found
    zero, one = together(2, program)
    assert zero == [[1.0 + 2 * k, 1.0 + k, 1.0 + k] for k in range(20)]
    assert one == [[1.0 + 2 * k, 1.0 + k, 0.0 + k] for k in range(20)]


def test_two_axes():
    grid = teams.Grid(["a", "b"], [2, 3], DEADLINE)

    def piece(rank):
        own = grid.members(rank)
        return lambda: (own["a"].rank, own["b"].rank, own["a"].reduce(np.array(float(rank)), "sum", "a").item(),
                        own["b"].reduce(np.array(float(rank)), "sum", "b").item())
    found = teams.side_by_side([piece(rank) for rank in range(6)], grid, DEADLINE)
    assert found == [(r // 3, r % 3, float(2 * (r % 3) + 3), float(3 + 9 * (r // 3))) for r in range(6)]


# --- how faults end ---------------------------------------------------------------------------------------------------

class Stop(BaseException):
    """Nothing that `except Exception` catches."""


def raised(kind, value):
    def act(member):
        raise kind(value)
    return act


V = np.arange(3.0)
WAITING = "psum over 'i' with float64[3]"
# what one does, the class and the message of what is raised; `bad`: its rank
FAULTS = {
    "raise": (raised(ValueError, "too hot"), ValueError, "^too hot"),
    "exit": (raised(SystemExit, 3), SystemExit, "^3"),
    "interrupt": (raised(KeyboardInterrupt, "now"), KeyboardInterrupt, "^now"),
    "base": (raised(Stop, "at once"), Stop, "^at once"),
    "early end": (lambda member: 5, Lost, "^rank {bad} has ended, and rank [0-3] waits in psum over 'i'$"),
    "other shape": (lambda member: member.reduce(np.ones(4), "sum", SUM), Lost,
                    r"rank {bad} (?:is )?in psum over 'i' with float64\[4\]"),
    "other rank of array": (lambda member: member.reduce(np.ones((3, 1)), "sum", SUM), Lost,
                            r"rank {bad} (?:is )?in psum over 'i' with float64\[3, 1\]"),
    "other dtype": (lambda member: member.reduce(np.ones(3, np.float32), "sum", SUM), Lost,
                    r"rank {bad} (?:is )?in psum over 'i' with float32\[3\]"),
    "other function": (lambda member: member.gather(V, "all_gather over 'i'"), Lost,
                       r"rank {bad} (?:is )?in all_gather over 'i' with float64\[3\]"),
}


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault, count, last):
    """The error names the rank; all others are told; the threads go on with the next."""
    act, kind, message = FAULTS[fault]
    bad, told = (count - 1 if last else 0), [None] * count

    def program(rank, member):
        try:
            member.reduce(V, "sum", SUM)
            return act(member) if rank == bad else member.reduce(V, "sum", SUM)
        except Lost as error:
            told[rank] = str(error)
            raise
    begun = time.monotonic()
    with pytest.raises(kind, match=message.format(bad=bad)) as caught:
        together(count, program)
    assert time.monotonic() - begun < DEADLINE
    if kind is not Lost:
        assert caught.value.__notes__ == [f"raised on rank {bad} of {count} of the axis 'i'"]
        words = f"rank {bad} of {count}: {kind.__name__}: {caught.value}"
    else:
        words = f"rank {bad} "
    assert all(words in told[rank] for rank in range(count) if rank != bad)
    for got in together(count, lambda rank, member: member.reduce(V, "sum", SUM)):
        assert np.array_equal(got, count * V)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("before", [True, False], ids=["before the meeting", "at the end"])
def test_a_thread_that_hangs(count, before):
    """It is left to itself: the error comes without it."""
    free, bad = threading.Event(), count - 1

    def program(rank, member):
        if rank == bad and before:
            free.wait(60)
        found = member.reduce(V, "sum", SUM)
        if rank == bad and not before:
            free.wait(60)
        return found
    begun = time.monotonic()
    try:
        with pytest.raises(Lost) as caught:
            together(count, program)
        assert DEADLINE <= time.monotonic() - begun < DEADLINE + 3
    finally:
        free.set()
    assert str(caught.value) == (
        f"rank {bad} of {count} has not come to psum over 'i' within 1 s" if before else
        f"rank {bad} of {count} has not ended within 1 s of the others")
    assert caught.value.rank == bad
    for got in together(count, lambda rank, member: member.reduce(V, "sum", SUM)):
        assert np.array_equal(got, count * V)


@pytest.mark.parametrize("count", [2, 4])
def test_the_first_is_the_thread_that_calls(count):
    """The others do not wait for it longer than the deadline; the call ends when it does."""
    seconds, ended = [0.0] * count, [threading.Event() for _ in range(count)]

    def program(rank, member):
        begun = time.monotonic()
        if rank == 0:
            assert all(other.wait(60) for other in ended[1:])       # they end while this one is away
        try:
            return member.reduce(V, "sum", SUM)
        finally:
            seconds[rank] = time.monotonic() - begun
            ended[rank].set()
    with pytest.raises(Lost, match=f"^rank 0 of {count} has not come to psum over 'i' within 1 s$"):
        together(count, program)
    assert max(seconds[1:]) >= DEADLINE         # the one that came first; who came later leaves with it


def test_a_long_deadline_is_not_waited_for_twice():
    """Who fails while another works on ends the call soon, whatever the deadline."""
    free = threading.Event()

    def program(rank, member):
        if rank == 1:
            free.wait(60)
        if rank == 2:
            raise ValueError("no more")
        return member.reduce(V, "sum", SUM)
    begun = time.monotonic()
    with pytest.raises(ValueError, match="no more"):
        together(3, program, deadline=120.0)
    free.set()
    assert time.monotonic() - begun < 5


def test_the_error_itself_is_raised_not_what_follows_from_it():
    def program(rank, member):
        if rank == 2:
            time.sleep(0.05)
            raise ZeroDivisionError("the cause")
        return member.reduce(V, "sum", SUM)
    with pytest.raises(ZeroDivisionError, match="the cause"):
        together(4, program)


def test_no_deadline_is_waiting_for_ever():
    def program(rank, member):
        if rank == 1:
            time.sleep(0.3)
        return member.reduce(V, "sum", SUM)
    for got in together(2, program, deadline=None):
        assert np.array_equal(got, 2 * V)


def test_threads_are_used_again():
    together(4, lambda rank, member: member.reduce(V, "sum", SUM))
    before = threading.active_count()
    for k in range(50):
        if k % 5 == 0:
            with pytest.raises(KeyError):
                together(4, lambda rank, member: {}["nothing"])
        together(2 + k % 3, lambda rank, member: member.reduce(V, "sum", SUM))
    assert threading.active_count() == before
