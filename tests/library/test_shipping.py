"""Functions as text: what is sent gives what the function gives here, or is refused."""
import functools
import pickle
import random
import subprocess
import sys
import textwrap
import threading
from typing import NamedTuple

import numpy as np
import pytest

import gradscribe as gs
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.map_over import map_over
from gradscribe.shipping import digest, function_of, program_of

pytestmark = pytest.mark.compiled

X = np.array([0.3, -1.2, 2.0])
LARGE = np.linspace(0.0, 1.0, 10_000)
SCALE, TABLE = 3.0, {"w": np.array([1.0, 2.0, 3.0]), "k": 2}
input = np.array([5.0, 6.0, 7.0])       # noqa: A001  (a user's name that is also Python's)


def sent(f, *args):
    """What the function gives after it was sent."""
    return function_of(pickle.loads(pickle.dumps(program_of(f, args))))(*args)


def same(a, b):
    ours, theirs = (gs.tree_util.tree_flatten(v) for v in (a, b))
    assert ours[1] == theirs[1]
    for p, q in zip(ours[0], theirs[0]):
        assert type(p) is type(q) and np.asarray(p).dtype == np.asarray(q).dtype
        np.testing.assert_array_equal(p, q)


class Pair(NamedTuple):
    a: np.ndarray
    b: float


def helper(x, power=2):
    return np.sum(x ** power) * SCALE


def uses_helper(x):
    return helper(x) + helper(x, power=3) + np.sum(x * TABLE["w"]) ** TABLE["k"]


def shadows(x):
    return np.sum(x * input)


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def keywords(x, *, shift=X, **more):
    return x + shift


def timed(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args) + 100.0
    return wrapper


@timed
def decorated(x):
    return np.sum(x)


def bare(x):
    return np.sum(x) * 2


renamed = timed(bare)
energy = gs.grad(lambda x: np.sum(x ** 4))


def calls_transformed(x):
    return energy(x) * 2


@gs.jit
def compiled_helper(x):
    return np.sum(np.sin(x))


def calls_compiled(x):
    return compiled_helper(x) + 1.0


def closure(k, shift):
    def inner(x):
        return k * np.sum(x) + shift
    return inner


def gives_pair(x):
    return Pair(x * 2, 1.5)


PLAIN = [
    (uses_helper, X), (shadows, X), (factorial, 6), (keywords, X), (decorated, X), (renamed, X),
    (calls_transformed, X), (calls_compiled, X), (closure(2.0, np.ones(3)), X), (gives_pair, X), (np.sin, X),
    (functools.partial(helper, power=5), X), (functools.partial(closure(3.0, 1.0)), X),
    (lambda x: [x, {"n": len(x)}], X), (len, X), (abs, -2.0), (str.upper, "a"), (TABLE.get, "k"),
]


@pytest.mark.parametrize("f, x", PLAIN, ids=[getattr(f, "__name__", "partial") for f, _ in PLAIN])
def test_plain_functions(f, x):
    same(sent(f, x), f(x))


def test_defaults_are_those_of_the_function():
    functions = [lambda x, k=k: k * x for k in range(4)]
    k = 17                              # what a text would read
    assert [sent(f, 1.0) for f in functions] == [0.0, 1.0, 2.0, 3.0] and k == 17

    def f(x, scale=SCALE, name="a", *, shift=k):
        return x * scale + shift
    f.__defaults__ = (7.0, "b")
    assert sent(f, 2.0) == 31.0


def test_values_are_those_of_the_call():
    box = [1.0]

    def f(x):
        return x * box[0]
    program = program_of(f, (1.0,))
    content = pickle.dumps(program)
    box[0] = 2.0
    assert function_of(pickle.loads(content))(1.0) == 1.0


def squares(w, x):
    return np.sum((np.tanh(x * w) - 1) ** 2)


def of_tree(params, x):
    return {"loss": np.sum(params["w"] * x) ** 2 + params["layers"][0][1] ** 3, "n": 3}["loss"]


def with_loop(x, n):
    for _ in range(n):
        x = x - 0.1 * np.sin(x)
    return np.sum(x ** 2)


def reads_large(x):
    return np.sum(np.interp(x, LARGE, LARGE ** 2)) + np.sum(LARGE * x[0])


def aux(x):
    return np.sum(x ** 2), {"size": len(x), "y": x * 2}


TREE = {"w": X, "layers": [(np.ones(2), 2.0)]}
MADE = [
    (gs.grad(squares), (X, X * 2)), (gs.value_and_grad(squares, argnums=(0, 1)), (X, X * 2)),
    (gs.grad(of_tree), (TREE, X)), (gs.grad(with_loop), (X, 5)), (gs.grad(with_loop), (X, 0)),
    (gs.hessian(squares), (X, X * 2)),
    (gs.vmap(gs.grad(squares), in_axes=(None, 0)), (X, np.ones((4, 3)))), (gs.grad(lambda x: x ** 3), (2.0,)),
    (gs.grad(reads_large), (X,)), (gs.value_and_grad(aux, has_aux=True), (X,)), (gs.grad(squares), (np.float32(X), X)),
    (gs.grad(squares), (np.ones(0), np.ones(0))), (gs.grad(squares), (np.ones(1), np.ones(3))),
    (gs.grad(lambda z: np.sum(np.abs(z) ** 2)), (X + 1j,)), (gs.jacrev(lambda x: x ** 2), (X,)),
    (gs.grad(gs.grad(lambda t: np.sin(t) * t)), (0.5,)), (gs.vmap(lambda x: (x, [x * 2])), (X,)),
    (gs.jacfwd(np.tanh), (X,)), (gs.grad(shadows), (X,)), (gs.grad(uses_helper), (X,)),
]


@pytest.mark.parametrize("number", range(len(MADE)))
@pytest.mark.parametrize("compiled", [False, True])
def test_transformed_functions(number, compiled):
    f, args = MADE[number]
    f = gs.jit(f) if compiled else f
    same(sent(f, *args), f(*args))


def test_a_python_int_that_is_differentiated():
    same(sent(gs.grad(lambda x: x ** 3), 2), 12.0)


def test_compiled_plain_functions():
    for f, args in [(squares, (X, X)), (lambda x: (x * 2, len(x)), (X,)), (reads_large, (X,)),
                    (lambda x: [x, (x + 1, 2)], (X,)), (factorial, (5,))]:
        fast = gs.jit(f)
        same(sent(fast, *args), fast(*args))
    fast = gs.jit(with_loop, static_argnums=1, fastmath=False)
    same(sent(fast, X, 3), fast(X, 3))


def test_a_fresh_process_reads_the_machine_code(tmp_path, monkeypatch):
    """The text and the key are all that it needs: Numba compiles nothing there, since the cache has it."""
    monkeypatch.setenv("GRADSCRIBE_CACHE", str(tmp_path / "cache"))
    f = gs.jit(gs.grad(squares))
    program = program_of(f, (X, X))
    assert len(program.machine.key) == 40 and "def grad_squares" in program.text
    assert (tmp_path / "cache" / f"{program.machine.key}.bin").exists()
    (tmp_path / "program").write_bytes(pickle.dumps(program))
    code = textwrap.dedent("""
        import pickle, sys, numpy as np
        from gradscribe.codegen import jit_cpu
        from gradscribe.shipping import function_of
        made, compiled = [], jit_cpu._compiled
        jit_cpu._compiled = lambda *args: made.append(1) or compiled(*args)
        x = np.array([0.3, -1.2, 2.0])
        for _ in range(2):
            g = function_of(pickle.load(open(sys.argv[1], 'rb')))(x, x)
        print(len(made), g.tolist())
        """)

    def fresh():
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "program")], capture_output=True, text=True)
        assert not done.returncode, done.stderr
        return done.stdout.strip()
    assert fresh() == f"0 {f(X, X).tolist()}"
    for entry in (tmp_path / "cache").glob("*.bin"):
        entry.unlink()
    assert fresh() == f"1 {f(X, X).tolist()}"           # compiled from the text, once for two functions
    assert (tmp_path / "cache" / f"{program.machine.key}.bin").exists()


# what is refused

class Counter:
    def __init__(self):
        self.n = 0


COUNTER, SEEN, RNG = Counter(), [], np.random.default_rng(0)


def counts(x):
    COUNTER.n += 1
    return np.sum(x ** 2)


def appends(x):
    SEEN.append(np.sum(x))
    return np.sum(x ** 2)


def sets(x):
    TABLE["seen"] = 1.0
    return np.sum(x ** 2)


def draws(x):
    return x + RNG.normal()


def prints(x):
    print("x is", x)
    return np.sum(x)


def writes(x):
    x[0] = 1.0
    return np.sum(x)


def generator(n):
    total = 0

    def add(x):
        nonlocal total
        total += x
        return total
    return add


@gs.custom_vjp
def ruled(x):
    return np.sum(x)


def local_rule():
    @gs.custom_jvp
    def local(x):
        return np.sum(x)
    return lambda x: gs.grad(local)(x)


space: dict = {}
exec("def made(x):\n    return x", space)
LOCK = threading.Lock()

REFUSED = [
    (gs.grad(sets), X, "container"), (gs.grad(counts), X, "changes"), (gs.grad(appends), X, "changes"),
    (gs.jit(counts), X, "changes"), (draws, X, "random generator"), (gs.jit(draws), X, "random generator"),
    (gs.vmap(lambda x: x + RNG.normal()), X, "random"),
    (gs.jit(prints), X, "prints"), (gs.jit(writes), X, "changes"), (generator(1), 1.0, "assigns to a variable"),
    (local_rule(), X, "rule of its own"), (space["made"], X, "has no text"), (3.0, X, "not a function"),
    (gs.pmap(lambda x: x), np.ones((1, 3)), "devices"), (lambda x: x + random_stream.random(), 1.0, "random generator"),
    (lambda x: x + not_defined, X, "not_defined"),      # noqa: F821
]
random_stream = random.Random(0)


@pytest.mark.parametrize("f, x, words", REFUSED, ids=range(len(REFUSED)))
def test_refused(f, x, words):
    with pytest.raises(gs.TransformError, match=words):
        sent(f, x)


def test_a_value_that_cannot_be_pickled_is_named():
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(1) as pool, pytest.raises(KindError, match="LOCK, which the function reads, is a lock"):
        map_over(pool, lambda x: x if LOCK else x, [1.0])


def test_a_rule_is_kept_where_the_function_is_imported():
    """A text without its decorator would have another derivative: it is imported by its name."""
    def f(x):
        return gs.grad(ruled)(x)
    ruled.defvjp(lambda x: (np.sum(x), x), lambda x, dy: (dy * np.full(x.shape, 42.0),))
    same(sent(f, X), np.full(3, 42.0))


def test_digests():
    assert digest([1.0, X]) == digest([1.0, X.copy()]) != digest([1.0, X * 2])
    assert digest(np.zeros(0)) != digest(np.zeros((0, 1))) and digest(0.0) != digest(-0.0)
    assert digest(np.ones((2, 3)).T) == digest(np.ones((3, 2))) and digest(np.float32(1)) != digest(1.0)
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest({"a": 1, "b": (2,)}) != digest({"a": 1, "b": [2]})
