"""stax and optimizers as JAX's tutorials have them, typed word for word, beside JAX."""
import itertools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.example_libraries import optimizers as theirs_o
from jax.example_libraries import stax as theirs_s

import gradscribe as gs
from gradscribe import example_libraries
from gradscribe.example_libraries import optimizers, stax

jax.config.update("jax_enable_x64", True)
PARAMS = {"w": [np.array([[0.5, -1.5, 2.0], [1.0, 0.0, -3.0]]), np.array(0.75)], "b": (np.array([1.0, 2.0]),)}


def near(ours, theirs):
    np.testing.assert_allclose(ours, np.asarray(theirs), rtol=1e-12, atol=1e-14)


def quadratic(params):
    (w, s), (b,) = params["w"], params["b"]
    return (w ** 2 * s).sum() + (b ** 4).sum() + s ** 2


@pytest.mark.parametrize("ours,theirs", [(stax, theirs_s), (optimizers, theirs_o)], ids=["stax", "optimizers"])
def test_names(ours, theirs):
    public = {n for n, v in vars(theirs).items() if not n.startswith("_") and not isinstance(v, types.ModuleType)}
    others = {"Callable", "Any", "NamedTuple", "namedtuple", "partial", "safe_map", "safe_zip", "unzip2", "map", "zip",
              "annotations", "Array", "Params", "State", "Updates", "InitFn", "Step", "UpdateFn", "ParamsFn",
              "Schedule"}
    assert public - others - set(ours.__all__) == set()


@pytest.mark.parametrize("name,args", [
    ("sgd", (0.1,)), ("momentum", (0.01, 0.9)), ("nesterov", (0.01, 0.8)), ("adagrad", (0.1,)), ("adagrad", (0.1, 0.5)),
    ("rmsprop", (0.01, 0.8, 1e-6)), ("rmsprop_momentum", (0.01,)), ("adam", (0.05,)), ("adam", (0.05, 0.8, 0.99, 1e-6)),
    ("adamax", (0.02,)), ("sm3", (0.1,)),
    ("sgd", ("inverse_time_decay", 0.1, 3, 0.5)), ("sgd", ("inverse_time_decay", 0.1, 3, 0.5, True)),
    ("adam", ("exponential_decay", 0.1, 3, 0.5)), ("momentum", ("polynomial_decay", 0.1, 3, 0.01, 2.0)),
    ("nesterov", ("piecewise_constant", [1, 3], [0.1, 0.01, 0.001])), ("sgd", ("constant", 0.1)),
])
def test_optimizers(name, args):
    """Five steps from a point, among them one whose number is not the count."""
    found = []
    for module, o in ((gs, optimizers), (jax, theirs_o)):
        given = args if not isinstance(args[0], str) else (getattr(o, args[0])(*args[1:]),)
        given += (0.9,) if name in ("momentum", "nesterov") and len(given) == 1 else ()
        opt_init, opt_update, get_params = getattr(o, name)(*given)

        def step(i, state, opt_update=opt_update, get_params=get_params, module=module):
            return opt_update(i, module.grad(quadratic)(get_params(state)), state)
        updates = (step,) if module is jax and name == "sm3" else (step, module.jit(step))     # JAX does not compile it
        for update in updates:
            state = opt_init(PARAMS if module is gs else jax.tree.map(jnp.asarray, PARAMS))
            for i in (0, 1, 2, 7, 4):
                state = update(i, state)
            found.append(get_params(state))
    for params in found[:2]:
        jax.tree.map(near, params, found[2])


def test_states():
    opt_init, opt_update, get_params = optimizers.adam(0.1)
    state = opt_update(0, PARAMS, opt_init(PARAMS))
    again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    jax.tree.map(near, get_params(opt_update(1, PARAMS, again)), get_params(opt_update(1, PARAMS, state)))
    with pytest.raises(TypeError, match="another structure"):
        opt_update(1, PARAMS["w"], state)
    with pytest.raises(TypeError, match="JoinPoint"):
        optimizers.pack_optimizer_state(PARAMS)
    near(optimizers.l2_norm(PARAMS), theirs_o.l2_norm(PARAMS))
    jax.tree.map(near, optimizers.clip_grads(PARAMS, 1.5), theirs_o.clip_grads(PARAMS, 1.5))
    jax.tree.map(near, optimizers.clip_grads(PARAMS, 150.0), theirs_o.clip_grads(PARAMS, 150.0))


def network(s):
    return s.serial(s.Conv(4, (3, 3), padding="SAME"), s.BatchNorm(), s.Relu, s.MaxPool((2, 2), strides=(2, 2)),
                    s.FanOut(2), s.parallel(s.serial(s.Flatten, s.Dense(8), s.Tanh), s.serial(s.Flatten, s.Dense(8))),
                    s.FanInSum, s.Dropout(0.9), s.Dense(10, W_init=s.glorot(), b_init=s.randn()), s.LogSoftmax)


def test_a_network():
    x = np.random.default_rng(0).normal(size=(2, 8, 8, 1))
    init, apply = network(stax)
    theirs_init, theirs_apply = network(theirs_s)
    shape, params = init(gs.random.key(3), (2, 8, 8, 1))
    theirs_shape, theirs_params = theirs_init(jax.random.PRNGKey(3), (2, 8, 8, 1))
    assert shape == theirs_shape
    theirs_params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), theirs_params)
    assert [np.shape(leaf) for leaf in jax.tree.leaves(params)] == [leaf.shape for leaf in
                                                                     jax.tree.leaves(theirs_params)]
    ours = apply(theirs_params, x, rng=gs.random.key(5))
    near(ours, theirs_apply(theirs_params, x, rng=jax.random.PRNGKey(5)))


def tutorial(jax, np, numpy):
    """The classifier of handwritten digits of JAX's examples, on numbers of a generator."""
    jit, grad, random = jax.jit, jax.grad, jax.random
    stax, optimizers = jax.example_libraries.stax, jax.example_libraries.optimizers
    Dense, Relu, LogSoftmax = stax.Dense, stax.Relu, stax.LogSoftmax

    def loss(params, batch):
        inputs, targets = batch
        preds = predict(params, inputs)
        return -np.mean(np.sum(preds * targets, axis=1))

    def accuracy(params, batch):
        inputs, targets = batch
        target_class = np.argmax(targets, axis=1)
        predicted_class = np.argmax(predict(params, inputs), axis=1)
        return np.mean(predicted_class == target_class)

    init_random_params, predict = stax.serial(Dense(32), Relu, Dense(16), Relu, Dense(10), LogSoftmax)
    rng = random.PRNGKey(0)
    draws = numpy.random.RandomState(0)
    images = draws.rand(40, 28 * 28)
    labels = numpy.eye(10)[draws.randint(0, 10, 40)]
    opt_init, opt_update, get_params = optimizers.momentum(0.02, mass=0.9)

    @jit
    def update(i, opt_state, batch):
        params = get_params(opt_state)
        return opt_update(i, grad(loss)(params, batch), opt_state)
    _, init_params = init_random_params(rng, (-1, 28 * 28))
    opt_state = opt_init(init_params)
    itercount = itertools.count()
    losses = []
    for _ in range(25):
        opt_state = update(next(itercount), opt_state, (images, labels))
        losses.append(float(loss(get_params(opt_state), (images, labels))))
    return losses, float(accuracy(get_params(opt_state), (images, labels)))


def test_the_tutorial():
    assert gs.example_libraries is example_libraries
    losses, right = tutorial(gs, np, np)
    theirs, theirs_right = tutorial(jax, jnp, np)
    np.testing.assert_allclose(losses, theirs, rtol=2e-5)       # JAX draws the first weights in float32 or float64
    assert abs(right - theirs_right) < 1e-6 and losses[-1] < losses[0]
