"""Functions that bring their own derivative."""
import gradscribe as gs
from autograd.spaces import VSpace, vspace

__all__ = ["VSpace", "defvjp", "primitive", "vspace"]


class primitive(gs.custom_vjp):
    """autograd's primitive: gs.custom_vjp, its rule given by one maker(value, *args) -> pullback for each argument."""

    def __init__(self, fun):
        super().__init__(fun)
        self.makers = {}

    def check(self, place):
        if not self.makers:
            raise NotImplementedError(f"VJP of {self.__name__} not defined")

    def set_maker(self, number, maker):
        makers = self.makers = {**self.makers, number: maker}
        fun = self.fun

        def forward(*args):
            y = fun(*args)
            return y, (y, args)

        def backward(kept, dy):
            y, args = kept
            return tuple(makers[k](y, *args)(dy) if makers.get(k) is not None else None for k in range(len(args)))
        self.defvjp_(forward, backward)

    def defvjp_(self, forward, backward):
        super().defvjp(forward, backward)

    # The three older words, each for one argument at a time.

    def defgrad(self, maker, argnum=0):
        self.set_maker(argnum, maker)

    def defvjp(self, adjoint, argnum=0):
        self.set_maker(argnum, lambda y, *args: lambda dy: adjoint(dy, y, None, None, *args))

    def defvjp_is_zero(self, argnums=(0,)):
        for k in argnums:
            self.set_maker(k, None)


def defvjp(fun, *makers, argnums=None):
    for k, maker in zip(range(len(makers)) if argnums is None else argnums, makers):
        fun.set_maker(k, maker)
