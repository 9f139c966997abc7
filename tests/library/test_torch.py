"""gs.to_torch: PyTorch differentiates a NumPy function by the gradient that the compiler writes."""
import numpy as np
import pytest

import gradscribe as gs

torch = pytest.importorskip("torch")


def energy(x, w):
    total = 0.0
    for i in range(1, len(x)):
        total += np.sin(x[i] * x[i - 1]) * w[i]
    return total


def in_torch(x, w):
    return torch.sum(torch.sin(x[1:] * x[:-1]) * w[1:])


@pytest.mark.parametrize("jit", [False, True])
def test_gradients(jit):
    rng = np.random.default_rng(0)
    x, w = (torch.tensor(rng.standard_normal(5), requires_grad=True) for _ in range(2))
    ours, theirs = gs.to_torch(energy, jit=jit)(x, w), in_torch(x, w)
    assert float(ours) == pytest.approx(float(theirs), rel=1e-14)
    for a, b in zip(torch.autograd.grad(ours * 2, (x, w)), torch.autograd.grad(theirs * 2, (x, w))):
        torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-14)


def test_gradients_of_gradients():
    x, w = (torch.linspace(0.1, k, 4, dtype=torch.float64, requires_grad=True) for k in (1.0, 2.0))
    assert torch.autograd.gradgradcheck(gs.to_torch(energy), (x, w))


def test_containers_and_modules():
    layer = torch.nn.Linear(3, 2).double()
    ours = gs.to_torch(lambda p, x: {"y": np.tanh(x @ p["w"].T + p["b"]), "n": np.sum(x)})
    x = torch.ones(4, 3, dtype=torch.float64)
    out = ours({"w": layer.weight, "b": layer.bias}, x)
    out["y"].sum().backward()
    expected = torch.autograd.grad(torch.tanh(layer(x)).sum(), (layer.weight, layer.bias))
    torch.testing.assert_close(layer.weight.grad, expected[0], rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(layer.bias.grad, expected[1], rtol=1e-13, atol=1e-14)
    assert float(out["n"]) == 12.0


def test_arguments_without_a_gradient():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    k = torch.tensor([0, 2])
    out = gs.to_torch(lambda x, k, s: np.sum(x[k]) * s)(x, k, 2.0)
    out.backward()
    assert x.grad.tolist() == [2.0, 0.0, 2.0] and x.grad.dtype == torch.float32


def test_training_with_a_torch_optimizer():
    target = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    loss = gs.to_torch(lambda x, t: np.sum((x - t) ** 2), jit=True)
    optimizer = torch.optim.SGD([x], lr=0.25)
    for _ in range(60):
        optimizer.zero_grad()
        loss(x, target).backward()
        optimizer.step()
    torch.testing.assert_close(x, target, rtol=0, atol=1e-12)


def test_complex_gradients_are_those_of_torch():
    z = torch.tensor([[1 + 1j, -1], [1, 1]], dtype=torch.complex128, requires_grad=True)
    ours = gs.to_torch(lambda a: np.max(np.abs(np.linalg.eigvals(a))))(z)
    theirs = torch.max(torch.abs(torch.linalg.eigvals(z)))
    dz, expected = torch.autograd.grad(ours, z)[0], torch.autograd.grad(theirs, z)[0]
    torch.testing.assert_close(dz, expected, rtol=1e-12, atol=1e-13)
    w = torch.tensor([1 + 2j, 0.5j], dtype=torch.complex128, requires_grad=True)
    ours, theirs = gs.to_torch(lambda a: np.exp(a) * a)(w), torch.exp(w) * w
    seed = torch.tensor([2 - 1j, 1j], dtype=torch.complex128)
    torch.testing.assert_close(torch.autograd.grad(ours, w, seed)[0], torch.autograd.grad(theirs, w, seed)[0])
