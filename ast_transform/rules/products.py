# SPDX-License-Identifier: Apache-2.0
"""Products of arrays: matmul, dot and similar.  Adjoints are transposes without conjugates, also for complex arrays.

If leading axes of stacked operands broadcast, a rule returns the adjoint of the full stack, and its caller sums it to
the operand's shape (`unbroadcast`).
"""
import operator

import numpy as np

from gradscribe.ast_transform.core.kinds import Array, spelled_shape
from gradscribe.ast_transform.core.memory import ALIAS, FRESH, PART, VIEW
from gradscribe.ast_transform.core.rule import bilinear, general, static
from gradscribe.ast_transform.rules import array_samples as samples
from gradscribe.ast_transform.rules.batching import by_example


def transposed(a):
    if a.ndim == 2:
        return a.T
    return np.swapaxes(a, -1, -2)


@static
def leading(n):
    return tuple(range(n))


@static
def all_but(ndim, axis):
    return tuple(i for i in range(ndim) if i != axis % ndim)


@static
def last_axes(ndim, n):
    return tuple(range(ndim - n, ndim))


def summed_together(a, b, last=False):
    """Require equal lengths of the axes that are summed: the last of a, and the last but one of b (or its only one)."""
    if isinstance(a, Array) and isinstance(b, Array) and a.rank and b.rank:
        m, n = a.dims[-1], b.dims[-1 if last or b.rank == 1 else -2]
        yield m, n, (f"shapes {spelled_shape(a.dims)} and {spelled_shape(b.dims)} do not multiply: "
                     f"{m.size} and {n.size} differ")


def _of_matmul(a, b):
    yield from summed_together(a, b)
    if isinstance(a, Array) and isinstance(b, Array) and a.rank > 2 and b.rank > 2:
        yield a.dims[:-2], b.dims[:-2]


def batched_product(a, b, batched):
    if "b" not in batched:
        if a.ndim > 3 or b.ndim > 2:
            by_example("more than two axes")
        return a @ b
    if "a" not in batched:
        if a.ndim > 2 or b.ndim > 3:
            by_example("more than two axes")
        if b.ndim == 2 and a.ndim == 2:
            return b @ np.transpose(a)
        if b.ndim == 2:
            return b @ a
        return a @ b
    if a.ndim > 3 or b.ndim > 3:
        by_example("more than two axes")
    if a.ndim == 2 and b.ndim == 2:
        return np.sum(a * b, axis=1)
    if a.ndim == 2:
        return (a[:, None, :] @ b)[:, 0, :]
    if b.ndim == 2:
        return (a @ b[:, :, None])[:, :, 0]
    return a @ b


@bilinear(operator.matmul, "a", "b", alias=(np.matmul,), samples=samples.matmul_ranks, unbroadcast=True,
          algebra="matrix product", word="prod",
          order="matrices", lengths=_of_matmul, memory=FRESH)
class matmul:
    def primal(a, b):
        return a @ b

    def vjp_a(dy, a, b):
        if a.ndim == 1 and b.ndim == 1:         # (k,) with (k,)
            return dy * b
        if a.ndim == 1 and b.ndim == 2:         # (k,) with (k, n)
            return b @ dy
        if a.ndim == 1:                         # (k,) with (..., k, n)
            return np.tensordot(b, dy, (all_but(b.ndim, -2), leading(dy.ndim)))
        if a.ndim == 2 and b.ndim == 1:         # (m, k) with (k,)
            return np.outer(dy, b)
        if b.ndim == 1:                         # (..., m, k) with (k,)
            return dy[..., None] * b
        if a.ndim == 2 and b.ndim > 2:          # (m, k) with (..., k, n)
            return np.tensordot(dy, b, (all_but(dy.ndim, -2), all_but(b.ndim, -2)))
        return dy @ transposed(b)

    def vjp_b(dy, a, b):
        if a.ndim == 1 and b.ndim == 1:
            return dy * a
        if a.ndim == 2 and b.ndim == 1:
            return a.T @ dy
        if b.ndim == 1:
            return np.tensordot(dy, a, dy.ndim)
        if a.ndim == 1 and b.ndim == 2:
            return np.outer(a, dy)
        if a.ndim == 1:
            return a[:, None] * dy[..., None, :]
        if a.ndim > 2 and b.ndim == 2:          # (..., m, k) with (k, n)
            return np.tensordot(a, dy, (leading(a.ndim - 1), leading(a.ndim - 1)))
        return transposed(a) @ dy

    def stacks(a, b):
        return a.ndim > 2 and b.ndim > 2

    batch = batched_product


@bilinear(np.dot, "a", "b", samples=samples.dot_ranks, memory=FRESH, order="matrices",
          lengths=summed_together)
class dot:
    def primal(a, b):
        return np.dot(a, b)

    def vjp_a(dy, a, b):
        if b.ndim == 0:
            return dy * b
        if a.ndim == 0:
            return np.sum(dy * b)
        if a.ndim == 1 and b.ndim == 1:
            return dy * b
        if a.ndim == 1 and b.ndim == 2:
            return b @ dy
        if a.ndim == 2 and b.ndim == 1:
            return np.outer(dy, b)
        if a.ndim == 2 and b.ndim == 2:
            return dy @ b.T
        if b.ndim == 1:
            return dy[..., None] * b
        return np.tensordot(dy, b, (last_axes(dy.ndim, b.ndim - 1), all_but(b.ndim, -2)))

    def vjp_b(dy, a, b):
        if a.ndim == 0:
            return dy * a
        if b.ndim == 0:
            return np.sum(dy * a)
        if a.ndim == 1 and b.ndim == 1:
            return dy * a
        if a.ndim == 2 and b.ndim <= 2:
            return a.T @ dy
        if a.ndim == 1 and b.ndim == 2:
            return np.outer(a, dy)
        if b.ndim == 1:
            return np.tensordot(dy, a, dy.ndim)
        both = np.tensordot(a, dy, (leading(a.ndim - 1), leading(a.ndim - 1)))
        return np.moveaxis(both, 0, -2)         # (k, ..., n) to (..., k, n)

    def stacks():
        return False

    batch = batched_product


def _of_inner(a, b):
    return summed_together(a, b, last=True)


@bilinear(np.inner, "a", "b", samples=samples.inner_ranks, memory=FRESH, lengths=_of_inner)
class inner:
    def primal(a, b):
        return np.inner(a, b)

    def vjp_a(dy, a, b):
        if b.ndim == 0:
            return dy * b
        if a.ndim == 0:
            return np.sum(dy * b)
        if a.ndim == 1 and b.ndim == 1:
            return dy * b
        if a.ndim == 2 and b.ndim == 1:
            return np.outer(dy, b)
        if a.ndim <= 2 and b.ndim == 2:
            return dy @ b
        return np.tensordot(dy, b, b.ndim - 1)

    def vjp_b(dy, a, b):
        if a.ndim == 0:
            return dy * a
        if b.ndim == 0:
            return np.sum(dy * a)
        if a.ndim == 1 and b.ndim == 1:
            return dy * a
        if a.ndim == 1 and b.ndim == 2:
            return np.outer(dy, a)
        if a.ndim == 2 and b.ndim == 1:
            return a.T @ dy
        if a.ndim == 2 and b.ndim == 2:
            return dy.T @ a
        return np.tensordot(dy, a, (leading(a.ndim - 1), leading(a.ndim - 1)))

    def stacks():
        return False

    def batch(a, b, batched):
        if "a" in batched and "b" in batched:
            if a.ndim != 2 or b.ndim != 2:
                by_example("more than one axis")
            return np.sum(a * b, axis=1)
        if "a" in batched:
            if a.ndim != 2 or b.ndim != 1:
                by_example("more than one axis")
            return a @ b
        if b.ndim != 2 or a.ndim != 1:
            by_example("more than one axis")
        return b @ a


@bilinear(np.outer, "a", "b", samples=samples.outer_ranks, memory=FRESH, order="rows", algebra="outer product")
class outer:
    def primal(a, b):
        return np.outer(a, b)

    def vjp_a(dy, a, b):
        if a.ndim == 1 and b.ndim == 1:
            return dy @ b
        return np.reshape(dy @ np.ravel(b), a.shape)

    def vjp_b(dy, a, b):
        if a.ndim == 1 and b.ndim == 1:
            return dy.T @ a
        return np.reshape(dy.T @ np.ravel(a), b.shape)

    def batch(a, b, batched):
        if "a" not in batched:
            if a.ndim != 1 or b.ndim != 2:
                by_example("np.outer of more than one axis")
            return a[:, None] * b[:, None, :]
        if "b" not in batched:
            if a.ndim != 2 or b.ndim != 1:
                by_example("np.outer of more than one axis")
            return a[:, :, None] * b
        if a.ndim != 2 or b.ndim != 2:
            by_example("np.outer of more than one axis")
        return a[:, :, None] * b[:, None, :]


@general(np.vdot, samples=samples.vdot_ranks, rewrite=True, arrays=("a", "b"), memory=FRESH)
class vdot:
    def primal(a, b):
        if a.dtype.kind == "c":
            return np.dot(np.conj(np.ravel(a)), np.ravel(b))
        return np.dot(np.ravel(a), np.ravel(b))


# --- contractions over chosen axes ------------------------------------------------------------------------------------

@static
def contracted(a, b, axes):
    """The contracted axes of a and of b, in pairs, as non-negative numbers."""
    if isinstance(axes, (tuple, list)):
        of_a, of_b = axes
        of_a = tuple(of_a) if isinstance(of_a, (tuple, list)) else (of_a,)
        of_b = tuple(of_b) if isinstance(of_b, (tuple, list)) else (of_b,)
    else:
        of_a, of_b = tuple(range(np.ndim(a) - axes, np.ndim(a))), tuple(range(axes))
    return tuple(i % np.ndim(a) for i in of_a), tuple(i % np.ndim(b) for i in of_b)


@static
def free(x, axes):
    return tuple(i for i in range(np.ndim(x)) if i not in axes)


@static
def tensordot_adjoint(a, b, axes, wanted):
    """(axes of dy, axes of the other operand) to contract, and the transposition of the result (None: none)."""
    of_a, of_b = contracted(a, b, axes)
    free_a, free_b = free(a, of_a), free(b, of_b)
    if wanted == "a":
        pairs = tuple(range(len(free_a), len(free_a) + len(free_b))), free_b
        comes = free_a + tuple(of_a[of_b.index(i)] for i in sorted(of_b))
    else:
        pairs = tuple(range(len(free_a))), free_a
        comes = free_b + tuple(of_b[of_a.index(i)] for i in sorted(of_a))
    permutation = tuple(comes.index(i) for i in range(len(comes)))
    return pairs, None if permutation == tuple(range(len(comes))) else permutation


def _of_tensordot(a, b, axes=2):
    """Require equal lengths of the axes that are summed together."""
    if isinstance(axes, int):
        pairs = [(k - axes, k) for k in range(axes)]
    else:
        pairs = list(zip(*(p if isinstance(p, (tuple, list)) else (p,) for p in axes)))
    for i, j in pairs:
        if not (-a.rank <= i < a.rank and -b.rank <= j < b.rank):
            raise ValueError(f"tensordot sums over axes {i} and {j} of arrays of rank {a.rank} and {b.rank}")
        yield a.dims[i], b.dims[j]


@static
def contraction(first, second, axes, batched):
    """Subscripts for a batched np.tensordot, from the ranks of one example, the summed axes, and what is batched."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    if isinstance(axes, int):
        pairs = [(first - axes + k, k) for k in range(axes)]
    else:
        left, right = ((n,) if isinstance(n, int) else tuple(n) for n in axes)
        pairs = [(i % first, j % second) for i, j in zip(left, right)]
    if first + second > 20:
        by_example("many axes")
    one, two = letters[:first], list(letters[first:first + second])
    for i, j in pairs:
        two[j] = one[i]
    two = "".join(two)
    summed = {one[i] for i, _ in pairs}
    out = "".join(c for c in one + two if c not in summed)
    return f"{'z' * ('a' in batched)}{one},{'z' * ('b' in batched)}{two}->z{out}"


@static
def ranks(a, b, batched):
    return a - ("a" in batched), b - ("b" in batched)


@bilinear(np.tensordot, "a", "b", samples=samples.tensordots, memory=FRESH, cell=True, lengths=_of_tensordot)
class tensordot:
    def primal(a, b, axes=2):
        return np.tensordot(a, b, axes=axes)

    def vjp_a(dy, a, b, axes=2):
        pairs, permutation = tensordot_adjoint(a, b, axes, "a")
        if permutation is None:
            return np.tensordot(dy, b, axes=pairs)
        return np.transpose(np.tensordot(dy, b, axes=pairs), permutation)

    def vjp_b(dy, a, b, axes=2):
        pairs, permutation = tensordot_adjoint(a, b, axes, "b")
        if permutation is None:
            return np.tensordot(dy, a, axes=pairs)
        return np.transpose(np.tensordot(dy, a, axes=pairs), permutation)

    def stacks():
        return False

    def batch(a, b, batched, axes=2):
        first, second = ranks(a.ndim, b.ndim, batched)
        return np.einsum(contraction(first, second, axes, batched), a, b)


# --- einsum: the adjoint of an operand is an einsum of dy and the other operands --------------------------------------

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@static
def einsum_labels(subscripts, operands):
    """The labels of each operand and of the result; an ellipsis becomes unused labels."""
    if not isinstance(subscripts, str):
        raise ValueError("np.einsum takes its subscripts as text here")
    text = subscripts.replace(" ", "")
    terms, arrow, result = text.partition("->")
    terms = terms.split(",")
    if len(terms) != len(operands):
        raise ValueError(f"np.einsum: {len(terms)} terms for {len(operands)} operands")
    fresh = [c for c in reversed(LETTERS) if c not in text]
    hidden = [o.ndim - len(t.replace("...", "")) if "..." in t else 0 for t, o in zip(terms, operands)]
    dots = "".join(reversed(fresh[:max(hidden, default=0)]))
    labels = [t.replace("...", dots[len(dots) - n:]) for t, n in zip(terms, hidden)]
    for term, o in zip(labels, operands):
        if len(term) != o.ndim:
            raise ValueError(f"np.einsum: the term {term} is for rank {len(term)}, the operand has rank {o.ndim}")
    if not arrow:
        every = "".join(terms).replace("...", "")
        result = ("..." if dots else "") + "".join(sorted(c for c in set(every) if every.count(c) == 1))
    return tuple(labels), result.replace("...", dots)


@static
def einsum_adjoint(subscripts, k, operands):
    """Subscripts of the adjoint (None: it is dy), repeated axes of operand k, and the index that adds summed axes."""
    labels, result = einsum_labels(subscripts, operands)
    used = set("".join(labels) + result)
    fresh = [c for c in LETTERS if c not in used]
    wanted, repeats = "", []                    # a repeated label: a new one, tied to the first by an identity matrix
    for position, label in enumerate(labels[k]):
        if label in wanted:
            new = fresh.pop(0)
            repeats.append((labels[k].index(label), position, label + new))
            label = new
        wanted += label
    sources = (result, *(t for i, t in enumerate(labels) if i != k), *(pair for *_, pair in repeats))
    known = "".join(sources)
    kept = "".join(c for c in wanted if c in known)
    index = tuple(slice(None) if c in known else None for c in wanted)
    terms = None if sources == (kept,) else ",".join(sources) + "->" + kept
    return terms, tuple(repeats), None if kept == wanted else index


@static
def one_term(subscripts):
    """The labels of a one-operand einsum and of its result; None if they are not just letters."""
    given, arrow, out = subscripts.replace(" ", "").partition("->") if isinstance(subscripts, str) else (".", "", "")
    if not given.isalpha() or out and not out.isalpha():
        return None, None
    return given, out if arrow else "".join(sorted(c for c in given if given.count(c) == 1))


def identities(x, repeats):
    if len(repeats) == 0:
        return ()
    return (np.eye(x.shape[repeats[0][0]], dtype=x.dtype),) + identities(x, repeats[1:])


def _of_einsum(subscripts, operands=(), **others):
    """Require equal lengths of axes with the same label."""
    if not isinstance(subscripts, str) or "." in subscripts:
        return
    labels = {}
    for term, a in zip(subscripts.replace(" ", "").split("->")[0].split(","), operands):
        if isinstance(a, Array) and len(term) == a.rank:
            for c, d in zip(term, a.dims):
                if not d.is_unit:
                    yield labels.setdefault(c, d), d


@static
def with_batch(subscripts, flags):
    """The subscripts with one more letter in the batched operands and in the result."""
    if not isinstance(subscripts, str):
        by_example("subscripts that are no text")
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    letter = next(c for c in "nbzyxwvutsrqponmlkjihgfedcaABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in text)
    if not arrow:
        if "..." in inputs:
            by_example("an ellipsis without an arrow")
        letters = inputs.replace(",", "")
        output = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    terms = inputs.split(",")
    return ",".join(letter + t if f else t for t, f in zip(terms, flags)) + "->" + letter + output


@bilinear(np.einsum, "operands", samples=samples.einsums, unbroadcast=True, lengths=_of_einsum)
class einsum:
    def primal(subscripts, *operands, optimize=False):
        if optimize is False:
            return np.einsum(subscripts, *operands)
        return np.einsum(subscripts, *operands, optimize=optimize)

    def memory(subscripts, *operands):
        if len(operands) > 1:
            return FRESH
        given, out = one_term(subscripts)
        if given is None:
            return ALIAS
        if set(given) - set(out):       # a sum
            return FRESH
        return VIEW if len(given) == len(set(given)) else PART

    def stacks(subscripts, *operands):
        labels, result = einsum_labels(subscripts, operands)
        return None if len(labels) == 1 else any(sum(c in term for term in labels) > 1 for c in result)

    def vjp_operands(dy, k, subscripts, *operands, optimize=False):
        adjoint, repeats, index = einsum_adjoint(subscripts, k, operands)
        factors = operands[:k] + operands[k + 1:] + identities(operands[k], repeats)
        if adjoint is None:
            dx = dy
        elif optimize is False and len(factors) > 1:    # in one go, the product of three costs all lengths at once
            dx = np.einsum(adjoint, dy, *factors, optimize=True)
        elif optimize is False or len(factors) < 2:
            dx = np.einsum(adjoint, dy, *factors)
        else:
            dx = np.einsum(adjoint, dy, *factors, optimize=optimize)
        if index is None or np.ndim(dx) == 0:
            return dx
        return dx[index]

    def batch(subscripts, *operands, batched, flags, optimize=False):
        if optimize:
            return np.einsum(with_batch(subscripts, flags), *operands, optimize=optimize)
        return np.einsum(with_batch(subscripts, flags), *operands)


# --- special products -------------------------------------------------------------------------------------------------

@static
def kron_adjoint(a, b, wanted):
    """Subscripts for the adjoint of one factor, whose axes alternate with the other's in dy, from the last axis on."""
    of_a, of_b = "ijklmno"[:np.ndim(a)], "pqrstuv"[:np.ndim(b)]
    rank = max(len(of_a), len(of_b))
    if len(of_a) == len(of_b) == 1 or not of_a or not of_b:
        return None
    pairs = zip(of_a.rjust(rank), of_b.rjust(rank))
    own, other = (of_a, of_b) if wanted == "a" else (of_b, of_a)
    return "".join(p + q for p, q in pairs).replace(" ", "") + f",{other}->{own}"


def blocks(dy, a, b):
    """dy with the axes of a and b separated."""
    return np.reshape(dy, taking_turns(a, b, -a.ndim if a.ndim > b.ndim else -b.ndim))


def taking_turns(a, b, k):
    if k == 0:
        return ()
    if a.ndim < -k:
        return (b.shape[k],) + taking_turns(a, b, k + 1)
    if b.ndim < -k:
        return (a.shape[k],) + taking_turns(a, b, k + 1)
    return (a.shape[k], b.shape[k]) + taking_turns(a, b, k + 1)


@bilinear(np.kron, "a", "b", samples=samples.krons, memory=FRESH)
class kron:
    def primal(a, b):
        return np.kron(a, b)

    def vjp_a(dy, a, b):
        subscripts = kron_adjoint(a, b, "a")
        if a.ndim == 0:
            return np.sum(dy * b)
        if b.ndim == 0:
            return dy * b
        if subscripts is None:
            return blocks(dy, a, b) @ b
        return np.einsum(subscripts, blocks(dy, a, b), b)

    def vjp_b(dy, a, b):
        subscripts = kron_adjoint(a, b, "b")
        if b.ndim == 0:
            return np.sum(dy * a)
        if a.ndim == 0:
            return dy * a
        if subscripts is None:
            return a @ blocks(dy, a, b)
        return np.einsum(subscripts, blocks(dy, a, b), a)

    def batch(a, b, batched):
        if len(batched) == 2:
            if a.ndim != 2 or b.ndim != 2:
                by_example("matrices")
            return np.reshape(a[:, :, None] * b[:, None, :], (a.shape[0], a.shape[1] * b.shape[1]))
        if "a" in batched:
            if a.ndim != 2 or b.ndim != 1:
                by_example("matrices")
            return np.reshape(a[:, :, None] * b, (a.shape[0], a.shape[1] * b.shape[0]))
        if a.ndim != 1 or b.ndim != 2:
            by_example("matrices")
        return np.reshape(a[:, None] * b[:, None, :], (b.shape[0], a.shape[0] * b.shape[1]))


@static
def cross_axes(dy, a, b, axisa, axisb, axisc, axis):
    """The negative axes of the vectors in a, b and the result, and whether all are two-dimensional."""
    if axis is not None:
        axisa = axisb = axisc = axis
    planar = np.ndim(dy) != max(a.ndim, b.ndim)
    axisa, axisb = (k - x.ndim if k >= 0 else k for k, x in ((axisa, a), (axisb, b)))
    if not planar and axisc >= 0:
        axisc -= np.ndim(dy)
    return axisa, axisb, axisc, planar


def flat_part(da, a, axis):
    """The first two of three components, if a has only two."""
    if a.shape[axis] == 2:
        return np.take(da, (0, 1), axis=axis)
    return da


def component(v, k, axis):
    return np.take(v, k, axis=axis)


def crossed(a, b, axisa, axisb, axisc):
    if axisa == -1 and axisb == -1 and axisc == -1:
        return np.cross(a, b)
    if axisa == axisb and axisa == axisc:
        return np.cross(a, b, axis=axisa)
    return np.cross(a, b, axisa=axisa, axisb=axisb, axisc=axisc)


@bilinear(np.cross, "a", "b", samples=samples.crosses, unbroadcast=True, memory=FRESH, cell=True)
class cross:
    def primal(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
        return np.cross(a, b, axisa=axisa, axisb=axisb, axisc=axisc, axis=axis)

    def vjp_a(dy, a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
        axisa, axisb, axisc, planar = cross_axes(dy, a, b, axisa, axisb, axisc, axis)
        if planar:
            return np.stack((dy * component(b, 1, axisb), -dy * component(b, 0, axisb)), axis=axisa)
        return flat_part(crossed(b, dy, axisb, axisc, axisa), a, axisa)

    def vjp_b(dy, a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
        axisa, axisb, axisc, planar = cross_axes(dy, a, b, axisa, axisb, axisc, axis)
        if planar:
            return np.stack((-dy * component(a, 1, axisa), dy * component(a, 0, axisa)), axis=axisb)
        return flat_part(crossed(dy, a, axisc, axisa, axisb), b, axisb)

    def batch(a, b, batched):
        if "a" in batched and "b" in batched and a.ndim != b.ndim:
            by_example("ranks that differ")
        return np.cross(a, b)


@static
def convolve_mode(mode):
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"np.convolve: mode {mode!r} is not 'full', 'same' or 'valid'")


def to_full(dy, a, v, mode):
    """The adjoint of the full convolution, with zeros for the part that the mode cuts off."""
    convolve_mode(mode)
    if mode == "full":
        return dy
    cut = np.zeros(min(a.shape[0], v.shape[0]) - 1, dtype=dy.dtype)
    if mode == "valid":
        return np.concatenate((cut, dy, cut))
    half = cut.shape[0] // 2
    return np.concatenate((cut[:half], dy, cut[half:]))


@bilinear(np.convolve, "a", "v", samples=samples.convolutions, memory=FRESH, raises=True)
class convolve:
    def primal(a, v, mode="full"):
        return np.convolve(a, v, mode=mode)

    def vjp_a(dy, a, v, mode="full"):
        return np.convolve(to_full(dy, a, v, mode), v[::-1], mode="valid")

    def vjp_v(dy, a, v, mode="full"):
        return np.convolve(to_full(dy, a, v, mode), a[::-1], mode="valid")

    def stacks():                               # an entry of the result is a place in both
        return True


@general(np.correlate, samples=samples.correlations, rewrite=True, arrays=("a", "v"), memory=FRESH)
class correlate:
    def primal(a, v, mode="valid"):
        correlate_mode(mode)
        if v.dtype.kind == "c":
            return np.convolve(a, np.conj(v)[::-1], mode=mode)
        return np.convolve(a, v[::-1], mode=mode)


@static
def correlate_mode(mode):
    """np.convolve swaps a shorter first operand with the second, np.correlate does not cut alike."""
    if mode not in ("full", "valid"):
        raise ValueError(f"np.correlate in mode {mode!r} has no derivative rule",
                         'Use mode="full", and cut the result.')
