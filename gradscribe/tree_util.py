# SPDX-License-Identifier: Apache-2.0
"""gs.tree_util: trees of containers, flattened into leaves and rebuilt, under the names of jax.tree_util.

Lists, tuples, named tuples, dicts (in the order of their sorted keys), ordered and default dicts, None and objects of
registered classes are containers.  Everything else is a leaf.  The functions are ordinary Python, which the compiler
reads and evaluates while transforming: emitted source does not contain them.
"""
import collections
import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradscribe.ast_transform.core.children import REGISTRY
from gradscribe.jax_names import missing
from gradscribe.tree_nodes import (
    BUILT_IN,
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    SequenceKey,
    apart,
    keys_of,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    together,
)

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "Partial", "PyTreeDef", "SequenceKey", "all_leaves", "build_tree",
    "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node", "keystr", "ravel_pytree", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast", "tree_flatten",
    "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce",
    "tree_reduce_associative", "tree_structure", "tree_transpose", "tree_unflatten", "treedef_children",
    "treedef_is_leaf", "treedef_tuple"]


class _Leaf:
    """The kind of a leaf."""


class PyTreeDef:
    """The structure of a tree without its leaves; tree_structure and tree_flatten make it."""

    def __init__(self, kind, data, children):
        self.kind, self.data, self.branches = kind, data, children

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.kind is _Leaf else sum(child.num_leaves for child in self.branches)

    @property
    def num_nodes(self) -> int:
        """The number of containers and leaves."""
        return 1 + sum(child.num_nodes for child in self.branches)

    def children(self) -> list["PyTreeDef"]:
        """The structures of the outermost container's children."""
        return list(self.branches)

    def node_data(self):
        """The class and the auxiliary data of the outermost container; None for a leaf."""
        return None if self.kind is _Leaf else (self.kind, self.data)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with these leaves."""
        return tree_unflatten(self, leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of a tree at the leaves of this structure."""
        found: list[Any] = []
        _up_to(self, tree, found, "")
        return found

    def walk(self, f_node: Callable, f_leaf: Callable | None, leaves: Iterable[Any]) -> Any:
        """Walk the structure in postorder: f_node(results of the children, auxiliary data) for each container.

        leaves: one for each leaf; its result is f_leaf(leaf), or the leaf itself if f_leaf is None.

        >>> tree_structure({"a": 0, "b": (0, 0)}).walk(lambda parts, data: sum(parts), None, [1, 2, 3])
        6
        """
        left = iter(leaves)

        def visit(treedef):
            if treedef.kind is _Leaf:
                leaf = next(left)
                return leaf if f_leaf is None else f_leaf(leaf)
            return f_node(tuple([visit(child) for child in treedef.branches]), treedef.data)
        return visit(self)

    def compose(self, inner: "PyTreeDef") -> "PyTreeDef":
        """This structure with each leaf replaced by another structure."""
        if self.kind is _Leaf:
            return inner
        return PyTreeDef(self.kind, self.data, [child.compose(inner) for child in self.branches])

    def __eq__(self, other):
        return isinstance(other, PyTreeDef) and _same(self, other)

    def __hash__(self):
        return hash((self.kind, repr(self)))

    def __repr__(self):
        return f"PyTreeDef({_spelled(self)})"


def _same(a, b):
    if a.kind is not b.kind or a.data != b.data or len(a.branches) != len(b.branches):
        return False
    return all([_same(x, y) for x, y in zip(a.branches, b.branches)])


def _spelled(treedef):
    kind, parts = treedef.kind, [_spelled(child) for child in treedef.branches]
    if kind is _Leaf:
        return "*"
    if kind is type(None):
        return "None"
    if kind is tuple:
        return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
    if kind is list:
        return "[" + ", ".join(parts) + "]"
    if kind is dict:
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(treedef.data, parts)) + "}"
    name = f"namedtuple[{kind.__name__}]" if kind is treedef.data else f"{kind.__name__}[{treedef.data}]"
    return f"CustomNode({name}, [{', '.join(parts)}])"


def _flatten(tree, leaves, is_leaf):
    if is_leaf is None or not is_leaf(tree):
        taken = apart(tree)
        if taken is not None:
            kind, data, children = taken
            return PyTreeDef(kind, data, [_flatten(child, leaves, is_leaf) for child in children])
    leaves.append(tree)
    return PyTreeDef(_Leaf, None, [])


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree, from left to right, and its structure.

    is_leaf(subtree): whether to treat a container as a leaf.

    >>> tree_flatten({"b": (1, None), "a": [2.0]})
    ([2.0, 1], PyTreeDef({'a': [*], 'b': (*, None)}))
    """
    leaves: list[Any] = []
    treedef = _flatten(tree, leaves, is_leaf)
    return leaves, treedef


def _unflatten(treedef, leaves):
    if treedef.kind is _Leaf:
        return leaves.pop(0)
    return together(treedef.kind, treedef.data, [_unflatten(child, leaves) for child in treedef.branches])


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree with a structure and leaves.  ValueError for too few or too many leaves.

    >>> tree_unflatten(tree_structure({"a": 0, "b": (0, 0)}), [1, 2, 3])
    {'a': 1, 'b': (2, 3)}
    """
    left = list(leaves)
    if len(left) != treedef.num_leaves:
        raise ValueError(f"the structure has {treedef.num_leaves} leaves, {len(left)} are given")
    return _unflatten(treedef, left)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree, from left to right.

    >>> tree_leaves([1, (2, {"k": 3}), None])
    [1, 2, 3]
    """
    leaves: list[Any] = []
    _flatten(tree, leaves, is_leaf)
    return leaves


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure of a tree.

    >>> tree_structure((1, [2, 3]))
    PyTreeDef((*, [*, *]))
    """
    return _flatten(tree, [], is_leaf)


def _mismatch(treedef, tree, path):
    where = f" at {path}" if path else ""
    return ValueError(f"the trees differ{where}: {_spelled(treedef)} is expected, {type(tree).__name__} is given")


def _up_to(treedef, tree, found, path):
    """Add to found the subtrees of a tree at the leaves of treedef."""
    if treedef.kind is _Leaf:
        found.append(tree)
        return
    taken = apart(tree)
    if taken is None or taken[0] is not treedef.kind or len(taken[2]) != len(treedef.branches):
        raise _mismatch(treedef, tree, path)
    if taken[1] != treedef.data:
        raise ValueError(f"the trees differ{' at ' + path if path else ''}: {taken[1]!r} instead of {treedef.data!r}")
    for k, (branch, child) in enumerate(zip(treedef.branches, taken[2])):
        _up_to(branch, child, found, f"{path}[{k}]")


def tree_map(f: Callable, tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree of f(leaf, ...) for each leaf of a tree, with the subtrees of the other trees at its place.

    Raises ValueError if the other trees do not have the first one's structure down to its leaves.

    >>> tree_map(lambda w, dw: w - 0.1 * dw, {"w": 1.0, "b": [2.0]}, {"w": 10.0, "b": [0.0]})
    {'b': [2.0], 'w': 0.0}
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    others = [treedef.flatten_up_to(other) for other in rest]
    return _unflatten(treedef, [f(*parts) for parts in zip(leaves, *others)])


def tree_reduce(function: Callable, tree: Any, *initializer: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The leaves reduced from left to right: function(function(initializer, leaf), leaf)...

    >>> tree_reduce(lambda total, leaf: total + leaf, {"a": 1, "b": [2, 3]}, 10)
    16
    """
    return functools.reduce(function, tree_leaves(tree, is_leaf), *initializer)


def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """True if all leaves are true.

    >>> tree_all([True, (1, {"k": True})])
    True
    """
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of the inner structure with trees of the outer one as leaves, from an outer tree of inner trees.

    Raises TypeError for a tree of another structure.

    >>> tree_transpose(tree_structure([0, 0, 0]), tree_structure(("a", "b")), [(1, 2), (3, 4), (5, 6)])
    ([1, 3, 5], [2, 4, 6])
    """
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    rows, columns = outer_treedef.num_leaves, inner_treedef.num_leaves
    if len(leaves) != rows * columns:
        raise TypeError(f"the tree to transpose is {treedef}, and {outer_treedef.compose(inner_treedef)} is expected")
    return tree_unflatten(inner_treedef, [
        tree_unflatten(outer_treedef, [leaves[row * columns + k] for row in range(rows)]) for k in range(columns)])


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """A tree that is a prefix of another, with its leaves repeated to the structure of the other.

    >>> tree_broadcast((1, 2), ((0, 0), {"k": 0}))
    ((1, 1), {'k': 2})
    """
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    parts = [tree_map(lambda _, leaf=leaf: leaf, part, is_leaf=is_leaf)
             for leaf, part in zip(leaves, treedef.flatten_up_to(full_tree))]
    return _unflatten(treedef, parts)


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """True if none of the elements is a container.

    >>> all_leaves([1, 2.0]), all_leaves([1, (2,)])
    (True, False)
    """
    return all([treedef_is_leaf(tree_structure(element, is_leaf)) for element in iterable])


def tree_reduce_associative(operation: Callable, tree: Any, *, identity: Any = None,
                            is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The leaves reduced by halves, as a balanced tree; for no leaves identity, or TypeError without it.

    >>> tree_reduce_associative(lambda a, b: f"({a} {b})", [1, 2, 3, 4])
    '((1 2) (3 4))'
    """
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is None:
            raise TypeError("a tree without leaves is joined to its identity: name one")
        return identity
    return _halves(operation, leaves)


def _halves(operation, leaves):
    if len(leaves) == 1:
        return leaves[0]
    k = len(leaves) // 2
    return operation(_halves(operation, leaves[:k]), _halves(operation, leaves[k:]))


def flatten_one_level(tree: Any) -> tuple[Any, Any]:
    """The children and the auxiliary data of the outermost container.  ValueError for a leaf.

    >>> flatten_one_level({"b": [1, 2], "a": 0.0})
    ((0.0, [1, 2]), ('a', 'b'))
    """
    kind, data, children = _container(tree)
    if kind is dict or kind is collections.OrderedDict:
        data = tuple(data)
    if kind in REGISTRY:
        return REGISTRY[kind].flatten(tree)[0], data
    return children if kind is list or kind is data else tuple(children), data


def flatten_one_level_with_keys(tree: Any) -> tuple[Any, Any]:
    """(key, child) pairs and the auxiliary data of the outermost container.  ValueError for a leaf.

    >>> flatten_one_level_with_keys([1.5])
    (((SequenceKey(idx=0), 1.5),), None)
    """
    children, data = flatten_one_level(tree)
    return tuple(zip(keys_of(tree, apart(tree)), children)), data


def _container(tree):
    taken = apart(tree)
    if taken is None:
        raise ValueError(f"{type(tree).__name__} is not a container")
    return taken


def is_tree_node(typ: type) -> bool:
    """Whether objects of a class are containers.

    >>> is_tree_node(dict), is_tree_node(float)
    (True, False)
    """
    return typ in BUILT_IN or typ in REGISTRY or issubclass(typ, tuple) and hasattr(typ, "_fields")


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children."""
    return list(treedef.branches)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is that of a single leaf."""
    return treedef.kind is _Leaf


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees with these structures."""
    return PyTreeDef(tuple, None, list(treedefs))


def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """The tree of a structure, from its leaves in nested sequences of the same shape."""
    if treedef.kind is _Leaf:
        return xs
    return together(treedef.kind, treedef.data, [build_tree(child, x) for child, x in zip(treedef.branches, xs)])


def _with_paths(tree, path, found, is_leaf, takes_path):
    """Add (path, leaf) of each leaf to found, and return the structure."""
    ends = is_leaf is not None and (is_leaf(path, tree) if takes_path else is_leaf(tree))
    taken = None if ends else apart(tree)
    if taken is None:
        found.append((path, tree))
        return PyTreeDef(_Leaf, None, [])
    return PyTreeDef(taken[0], taken[1], [_with_paths(child, (*path, key), found, is_leaf, takes_path)
                                          for key, child in zip(keys_of(tree, taken), taken[2])])


def tree_leaves_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None,
                          is_leaf_takes_path: bool = False) -> list[tuple[tuple, Any]]:
    """(path, leaf) of each leaf; a path is a tuple of keys, and keystr(path) its text.

    is_leaf(subtree), or is_leaf(path, subtree) with is_leaf_takes_path: whether to treat a container as a leaf.

    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"w": [1, 2]})]
    [("['w'][0]", 1), ("['w'][1]", 2)]
    """
    found: list[Any] = []
    _with_paths(tree, (), found, is_leaf, is_leaf_takes_path)
    return found


def tree_flatten_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None,
                           is_leaf_takes_path: bool = False) -> tuple[list[tuple[tuple, Any]], "PyTreeDef"]:
    """The leaves with their paths, and the structure."""
    found: list[Any] = []
    treedef = _with_paths(tree, (), found, is_leaf, is_leaf_takes_path)
    return found, treedef


def tree_map_with_path(f: Callable, tree: Any, *rest: Any, is_leaf: Callable[..., bool] | None = None,
                       is_leaf_takes_path: bool = False) -> Any:
    """The tree of f(path, leaf, ...) for each leaf of a tree.

    >>> tree_map_with_path(lambda path, leaf: keystr(path), {"w": (0, 0)})
    {'w': ("['w'][0]", "['w'][1]")}
    """
    paths, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [treedef.flatten_up_to(other) for other in rest]
    return _unflatten(treedef, [f(path, leaf, *parts) for (path, leaf), *parts in zip(paths, *others)])


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """A path as text: ['w'][0].name.  simple: without brackets and quotes; separator: the text between keys.

    >>> keystr((DictKey("w"), SequenceKey(0)), simple=True, separator="/")
    'w/0'
    """
    return separator.join([_simple(key) if simple else _in_full(key) for key in keys])


def _in_full(key):
    if isinstance(key, SequenceKey):
        return f"[{key.idx!r}]"
    if isinstance(key, DictKey):
        return f"[{key.key!r}]"
    if isinstance(key, GetAttrKey):
        return f".{key.name}"
    if isinstance(key, FlattenedIndexKey):
        return f"[<flat index {key.key!r}>]"
    return str(key)


def _simple(key):
    if isinstance(key, SequenceKey):
        return f"{key.idx}"
    if isinstance(key, GetAttrKey):
        return key.name
    if isinstance(key, (DictKey, FlattenedIndexKey)):
        return f"{key.key}"
    return str(key)


class _Whole:
    """A partial function inside another one: functools.partial would merge the arguments of both."""

    def __init__(self, fun):
        self.fun = fun

    def __call__(self, *args, **kwargs):
        return self.fun(*args, **kwargs)

    def __eq__(self, other):
        return self.fun == (other.fun if isinstance(other, _Whole) else other)

    def __hash__(self):
        return hash(self.fun)

    def __repr__(self):
        return repr(self.fun)


class Partial(functools.partial):
    """functools.partial as a container of its arguments, which can be passed through transformations.

    If the function is itself a partial function, the arguments of that one are not children.
    """

    def __new__(cls, func, /, *args, **keywords):
        """A partial function of `func` as a whole, even if that is one itself."""
        return super().__new__(cls, _Whole(func) if isinstance(func, functools.partial) else func, *args, **keywords)


register_pytree_node(Partial, lambda p: ((p.args, p.keywords), p.func),
                     lambda func, children: Partial(func, *children[0], **children[1]))


def ravel_pytree(pytree: Any) -> tuple[np.ndarray, Callable[[np.ndarray], Any]]:
    """All entries of a tree as one vector, and the function from such a vector to a tree.

    Leaves of several dtypes are promoted to one; the function restores shapes and dtypes, and raises TypeError for a
    vector of another dtype.  If all leaves have one dtype, the function keeps the dtype of the vector.

    >>> flat, back = ravel_pytree({"w": np.ones((2, 2)), "b": np.zeros(1)})
    >>> flat, back(2 * flat)["w"].shape
    (array([0., 1., 1., 1., 1.]), (2, 2))
    """
    leaves, treedef = tree_flatten(pytree)
    if not leaves:
        return np.zeros(0), lambda flat: _unflatten(treedef, [])
    flat = np.concatenate([np.ravel(leaf) for leaf in leaves])
    shapes = [np.shape(leaf) for leaf in leaves]
    sizes = [np.size(leaf) for leaf in leaves]
    dtypes, whole = [np.asarray(leaf).dtype for leaf in leaves], flat.dtype

    def unravel(flat):
        at, parts = 0, []
        for shape, n in zip(shapes, sizes):
            parts.append(np.reshape(flat[at:at + n], shape))
            at += n
        return _unflatten(treedef, parts)

    def unravel_each(flat):
        if flat.dtype != whole:
            raise TypeError(f"a vector of dtype {whole} goes back to these leaves, not one of dtype {flat.dtype}")
        at, parts = 0, []
        for shape, n, dtype in zip(shapes, sizes, dtypes):
            parts.append(np.reshape(flat[at:at + n], shape).astype(dtype))
            at += n
        return _unflatten(treedef, parts)
    return flat, unravel if all([dtype == whole for dtype in dtypes]) else unravel_each


def __getattr__(name):
    raise missing(__name__, name)
