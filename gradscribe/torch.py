# SPDX-License-Identifier: Apache-2.0
"""gs.to_torch: a NumPy function as a function of PyTorch tensors, differentiated by Gradscribe."""
from collections.abc import Callable
from typing import Any

import numpy as np

from gradscribe.api import vjp_of
from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.frames import public
from gradscribe.jit import jit as compiled
from gradscribe.tree_util import tree_flatten, tree_leaves, tree_unflatten


def to_torch(fun: Callable, *, jit: bool = False) -> Callable:
    """The function fun of arrays as a function of tensors, which PyTorch differentiates by gs.vjp.

    Arguments are CPU tensors, numbers, or lists, tuples and dicts of them; the result is a tensor or such a container.
    jit: values and gradients are compiled.  PyTorch can differentiate the gradient again.

    Raises KindError for a tensor on a device.  Needs PyTorch: https://pytorch.org/docs/stable/notes/extending.html.

    >>> import torch
    >>> norm = to_torch(lambda x: np.sum(x ** 2))
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> norm(x).backward()
    >>> x.grad
    tensor([2., 4.])
    """
    return _Bridge(fun, vjp_of(fun), jit)


class _Bridge:
    """A function of tensors, whose pullback is another _Bridge."""

    def __init__(self, fun, pullback, jit):
        self.fun, self.pullback, self.jit = fun, pullback, jit
        self.value = compiled(fun) if jit else fun

    @public
    def __call__(self, *args: Any) -> Any:
        import torch
        leaves, structure = tree_flatten(args)
        places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        found = {}

        def filled(tensors):
            return tree_unflatten(structure, _replaced(leaves, places, tensors))

        def conjugate(tensor):          # PyTorch's complex gradients are the conjugates of JAX's
            return tensor.conj().resolve_conj() if tensor is not None and tensor.is_complex() else tensor

        class Call(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *tensors):
                ctx.save_for_backward(*tensors)
                outs, found["structure"] = tree_flatten(self.value(*filled([_array(t) for t in tensors])))
                made = tuple(torch.as_tensor(out) for out in outs)
                ctx.mark_non_differentiable(*(m for m in made if not (m.is_floating_point() or m.is_complex())))
                return made

            @staticmethod
            def backward(ctx, *dys):
                bridge = _Bridge(self.pullback, vjp_of(self.pullback), self.jit)
                dy = tree_unflatten(found["structure"], list(map(conjugate, dys)))
                adjoints = bridge(dy, *filled(ctx.saved_tensors))
                whole = tree_leaves(adjoints, lambda leaf: leaf is None)
                return tuple(conjugate(_as_given(whole[k], t)) for k, t in zip(places, ctx.saved_tensors))

        made = Call.apply(*[leaves[k] for k in places])
        return tree_unflatten(found["structure"], list(made))


def _replaced(leaves, places, values):
    out = list(leaves)
    for k, value in zip(places, values):
        out[k] = value
    return out


def _array(tensor):
    if tensor.device.type != "cpu":
        raise KindError(f"a tensor on {tensor.device} is given", None, "Move it to the host's memory: tensor.cpu().")
    array = tensor.detach().resolve_conj().resolve_neg().numpy()
    return array[()] if array.ndim == 0 else np.ascontiguousarray(array)


def _as_given(adjoint, tensor):
    """An adjoint for PyTorch; None for an argument without one."""
    if adjoint is None or not (tensor.is_floating_point() or tensor.is_complex()):
        return None
    return adjoint
