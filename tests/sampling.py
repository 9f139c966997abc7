"""Which tests run in `make test`, and which of them compile: as many as a few minutes hold, other ones each time.

`make check` runs a twentieth of that, another after each commit (`--part`); `make test-all` every test as it stands.
With `--sample N` a test function runs for as many of its parameter sets as its share of time allows, at least for one;
N chooses which.  What is lowered for Numba runs as plain Python, which takes a fraction of the time and notices an
entry beyond the end of an array; one test in a few compiles it.

- `tests/costs.txt` holds what each costly test function takes, in seconds of one core: plain, and compiled.
  `make costs` measures it.  A function that is not in it is new or cheap: all of it runs.
- `@pytest.mark.compiled`: about machine code; it is never run as plain Python.
- The tests made from the records of rules (`tests/rules`) always run in full: they are what `make mutations` measures.

    python tests/sampling.py COMPILED PLAIN     write costs.txt from what `--costs` has written in two runs
"""
import collections
import contextlib
import math
import sys
import zlib
from pathlib import Path

COSTS = Path(__file__).with_name("costs.txt")
WHOLE = ("tests/rules/",)
SHARE = 0.1                     # seconds for a test function
LONGEST = 1.0                   # seconds: a single test above it runs in few samples
RARE = 0.4                      # seconds for a test above it, on average over the samples
COMPILED = 0.1                  # seconds for a test function: what compiling it may take on average


def function_of(nodeid: str) -> str:
    """A test without its parameters."""
    return nodeid.partition("[")[0]


def costs() -> dict[str, tuple[float, float]]:
    """Seconds that one test of a function takes: plain, and compiled."""
    found = {}
    for line in COSTS.read_text(encoding="utf-8").splitlines():
        plain, compiled, name = line.split(maxsplit=2)
        found[name] = float(plain), float(compiled)
    return found


def number(name: str, sample: int) -> int:
    """The same for a name in each process, and another in each sample."""
    return zlib.crc32(f"{name} {sample}".encode())


def chosen(items: list, sample: int, part: float = 1.0) -> tuple[list, list]:
    """(those that run, those that do not); each says in `plain` whether it runs without compiling.

    part: of the test functions; of one that runs whole, of its parameter sets.
    """
    known, groups, kept, left = costs(), {}, [], []
    for item in items:
        groups.setdefault(function_of(item.nodeid), []).append(item)
    for name, group in groups.items():
        plain, compiled = known.get(name, (0.0, 0.0))
        must = any(item.get_closest_marker("compiled") for item in group)
        cost = compiled if must else plain
        if cost > LONGEST and number(name, sample) % 1000 >= 1000 * RARE / cost:
            left += group
            continue
        whole = name.startswith(WHOLE)
        if not whole and number(f"part {name}", sample) % 1000 >= 1000 * part:
            left += group
            continue
        count = math.ceil(part * len(group)) if whole else max(1, int(SHARE / cost)) if cost else len(group)
        order = sorted(group, key=lambda item: number(item.nodeid, sample))
        kept += order[:count]
        left += order[count:]
        extra = compiled - plain
        compiles = extra <= 0 or number(name, sample) % 1000 < 1000 * COMPILED / extra
        for k, item in enumerate(order[:count]):
            item.plain = not must and not (compiles and k == 0)
    place = {item: k for k, item in enumerate(items)}
    return sorted(kept, key=place.__getitem__), left


@contextlib.contextmanager
def lowered_text_runs_as_python():
    """What is lowered for Numba runs as plain Python meanwhile."""
    from fuzz_lowered import plain

    from gradscribe.codegen import jit_cpu
    before, jit_cpu.compiled_text = jit_cpu.compiled_text, plain
    try:
        yield
    finally:
        jit_cpu.compiled_text = before


LEAST = 0.05                    # seconds: what costs less is not noted


def averages(prefix: str) -> dict[str, float]:
    """Seconds of processor time for one test of each function, from what `--costs` has written."""
    spent = collections.defaultdict(list)
    for path in Path(prefix).parent.glob(f"{Path(prefix).name}.*"):
        for line in path.read_text(encoding="utf-8").splitlines():
            seconds, nodeid = line.split(" ", 1)
            spent[function_of(nodeid)].append(float(seconds))
    return {name: sum(each) / len(each) for name, each in spent.items()}


def main(compiled: str, plain: str) -> None:
    with_code, without = averages(compiled), averages(plain)
    lines = [f"{without.get(name, seconds):.2f} {seconds:.2f} {name}" for name, seconds in sorted(with_code.items())
             if max(seconds, without.get(name, 0)) >= LEAST]
    COSTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
