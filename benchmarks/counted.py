"""Arrays that count: the entries that NumPy computes, copies, reads and writes, for programs as they are.

    count(function, *args)                  entries that a call computes or moves
    growth(source, name, emitted, ...)      what a derivative costs for each entry that its function costs

A ufunc counts the larger of its operands and its result, a product its multiplications and additions, a read or a write
the entries that it moves; a view counts 1, as an entry does.  So the cost of a gradient can be compared with that of
its function at two lengths without a clock.
"""
import math

import numpy as np


class Tally:
    entries = 0                         # computed, read or written


def tell(n):
    Tally.entries += int(n)


class Counted(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **words):
        plain = [bare(x) for x in inputs]
        if out is not None:
            words["out"] = tuple(bare(x) for x in out)
        if method == "at":                          # np.add.at(x, index, v) moves the entries that the index names
            tell(size_of(plain[0][plain[1]]))
            return getattr(ufunc, method)(*plain, **words)
        made = getattr(ufunc, method)(*plain, **words)
        sizes = [size_of(x) for x in plain] + [size_of(m) for m in (made if isinstance(made, tuple) else (made,))]
        tell(product_size(*plain) if ufunc is np.matmul else max(sizes))
        if out is not None:
            return out[0]
        return tuple(map(counted, made)) if isinstance(made, tuple) else counted(made)

    def __array_function__(self, function, types, args, words):
        made = function(*map(bare_all, args), **{k: bare_all(v) for k, v in words.items()})
        if function in (np.dot, np.inner):
            tell(product_size(*map(bare, args)))
        elif function is not np.empty_like and not is_view(made, args):
            tell(sum(size_of(x) for x in args if isinstance(x, np.ndarray)) + size_of(made))
        return tuple(map(counted, made)) if isinstance(made, tuple) else counted(made)

    def __getitem__(self, index):
        made = super().__getitem__(bare_all(index))
        tell(1 if not isinstance(made, np.ndarray) or np.may_share_memory(bare(made), bare(self)) else made.size)
        return made

    def __setitem__(self, index, value):
        place = bare(self)[bare_all(index)]
        if not is_same(place, bare(value)):         # x[i] += v has added to the view x[i]: NumPy moves nothing then
            tell(size_of(place))
            bare(self)[bare_all(index)] = bare(value)

    def copy(self, order="C"):
        tell(self.size)
        return counted(bare(self).copy(order))

    def sum(self, *args, **words):
        tell(self.size)
        return counted(bare(self).sum(*args, **words))


def bare(x):
    return x.view(np.ndarray) if isinstance(x, Counted) else x


def bare_all(x):
    if isinstance(x, (tuple, list)):
        return type(x)(map(bare_all, x))
    return bare(x)


def counted(x):
    return x.view(Counted) if isinstance(x, np.ndarray) else x


def size_of(x):
    return sum(map(size_of, x)) if isinstance(x, (tuple, list)) else np.size(bare(x))


def is_view(made, args):
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    return isinstance(made, np.ndarray) and any(np.may_share_memory(bare(made), bare(a)) for a in arrays)


def is_same(a, b):
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.__array_interface__ == b.__array_interface__


def product_size(a, b):
    return 2 * np.size(a) * (np.shape(b)[-1] if np.ndim(b) > 1 else 1)


class CountingNumPy:
    """NumPy whose new arrays count."""

    def __getattr__(self, name):
        found = getattr(np, name)
        if name not in ("zeros", "ones", "full", "empty", "arange", "eye", "linspace"):
            return found

        def made(*args, **words):
            new = found(*map(bare_all, args), **words)
            if name != "empty":
                tell(new.size)
            return counted(new)
        return made


def count(function, *args):
    """The entries that a call computes or moves."""
    Tally.entries = 0
    function(*[counted(np.array(a)) if np.ndim(a) else a for a in args])
    return Tally.entries


def growth(source, function, emitted, label, arguments):
    """The cost of a derivative over that of its function, at each of several sizes of arguments.

    source, function: the text of a program and its name; emitted, label: those of the derivative
    """
    ratios = []
    for args in arguments:
        costs = []
        for text, name in ((source, function), (emitted, label)):
            space = {"np": CountingNumPy(), "math": math, "__name__": "counted"}
            exec(compile(text.replace("import numpy as np\n", ""), "<counted>", "exec"), space)
            costs.append(count(space[name], *args))
        ratios.append(costs[1] / max(costs[0], 1))
    return ratios
