"""The space that a value lies in: its structure, and shape and dtype of each leaf."""
import numpy as np

import gradscribe as gs

NUMBERS = (np.ndarray, np.floating, np.complexfloating, float, complex)


class VSpace:
    """Sums, multiples and products of values of one structure; complex entries count as pairs of real ones."""

    def __init__(self, value):
        leaves, self.structure = gs.tree_util.tree_flatten(value)
        for leaf in leaves:
            if not isinstance(leaf, NUMBERS):
                raise TypeError(f"no vector space holds {leaf!r} of {type(leaf)}")
        self.shapes = [np.shape(leaf) for leaf in leaves]
        self.dtypes = [np.asarray(leaf).dtype for leaf in leaves]

    def __eq__(self, other):
        return (self.structure, self.shapes, self.dtypes) == (other.structure, other.shapes, other.dtypes)

    def __repr__(self):
        return f"VSpace({self.structure}, {self.shapes}, {self.dtypes})"

    @property
    def size(self):
        return sum(int(np.prod(s)) * (2 if d.kind == "c" else 1) for s, d in zip(self.shapes, self.dtypes))

    @property
    def iscomplex(self):
        return any(d.kind == "c" for d in self.dtypes)

    def of(self, make):
        """A value of the space: make(shape) for each real leaf, and for both parts of a complex one."""
        leaves = [np.asarray(make(s) + 1j * make(s) if d.kind == "c" else make(s)).astype(d)
                  for s, d in zip(self.shapes, self.dtypes)]
        return gs.tree_util.tree_unflatten(self.structure, leaves)

    def zeros(self):
        return self.of(np.zeros)

    def ones(self):
        return self.of(np.ones)

    def randn(self):
        return self.of(lambda shape: np.random.randn(*shape))

    def standard_basis(self):
        for k, (shape, dtype) in enumerate(zip(self.shapes, self.dtypes)):
            for place in np.ndindex(*shape):
                for one in (1.0, 1.0j) if dtype.kind == "c" else (1.0,):
                    leaves = [np.zeros(s, d) for s, d in zip(self.shapes, self.dtypes)]
                    leaves[k][place] = one
                    yield gs.tree_util.tree_unflatten(self.structure, leaves)

    @staticmethod
    def add(x, y):
        return gs.tree_util.tree_map(lambda a, b: a + b, x, y)

    @staticmethod
    def scalar_mul(x, factor):
        return gs.tree_util.tree_map(lambda a: a * factor, x)

    @staticmethod
    def covector(x):
        return gs.tree_util.tree_map(lambda a: np.conj(a) if np.iscomplexobj(a) else a, x)

    @staticmethod
    def inner_prod(x, y):
        parts = gs.tree_util.tree_map(lambda a, b: np.real(np.dot(np.conj(np.ravel(a)), np.ravel(b))), x, y)
        return sum(gs.tree_util.tree_leaves(parts))


def vspace(value):
    return VSpace(value)
