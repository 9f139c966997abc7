"""Random programs of the accepted language: their gradients must be right.

    python benchmarks/fuzz.py --count 5000 --jobs 2 --jit 5
    python benchmarks/fuzz.py --seed-only 17 -v         the program, what is emitted, the outcome
    python benchmarks/fuzz.py --shrink 17               a smaller program that fails in the same way
    python benchmarks/fuzz.py --wide --count 5000       another family: writes, aliases and views, exits of loops
    python benchmarks/fuzz.py --mixed --count 5000      odd seeds are of the wide family

Each program is checked six ways: gradient against complex step (or differences), jvp, jvp of the gradient, gradient
of the gradient times a vector, float32, structure; and, for a share of them, compiled. A program near a kink is
discarded, one refused by a TransformError is counted with its reason, everything else is a fault of ours.
"""
import argparse
import ast
import collections
import concurrent.futures
import contextlib
import copy
import functools
import linecache
import math
import os
import random
import re
import signal
import sys
import time
import traceback
import warnings

import numpy as np

NAMES = ("u", "v", "w", "p", "q", "h", "z", "g", "e", "m1", "x", "y", "acc", "out", "val", "r2", "tmp")
HOSTILE = ("dx", "da", "db", "ds", "dy", "x_saved", "u_saved", "a_dot", "s_dot", "t", "t_1", "y_1", "grad_f", "i_1",
           "count", "f_1")
ARITHMETIC = {"tanh", "sin", "cos", "arctan", "square", "exp", "sqrt", "log1p", "log", "abs", "sinh", "expm1", "add",
              "multiply", "maximum",
              "minimum", "hypot", "logaddexp", "power", "where", "cumsum", "outer", "zeros", "ones", "full"}


# -- the generator -------------------------------------------------------------------------------------------

class Writer:
    """Writes one program. Shapes are followed as concrete tuples; `()` is a scalar of any kind."""

    def __init__(self, r):
        self.r = r
        self.vars, self.boxes, self.ints = {}, {}, {}       # to a shape; to a tree of shapes; to (lowest, highest)
        self.lambdas, self.owned, self.apart, self.locked = {}, set(), set(), set()
        self.lines, self.helpers, self.preamble, self.fresh_count = [], {}, [], 0
        self.inside_helper = False

    # names and leaves

    def chance(self, p):
        return self.r.random() < p

    def fresh(self):
        for _ in range(8):
            name = self.r.choice(HOSTILE if self.chance(0.12) else NAMES)
            if name not in self.taken():
                return name
        self.fresh_count += 1
        return f"n{self.fresh_count}"

    def taken(self):
        return {*self.vars, *self.boxes, *self.ints, *self.lambdas, *self.locked, *self.helpers}

    def paths(self, tree, text):
        if isinstance(tree, tuple) and (not tree or isinstance(tree[0], int)):
            yield text, tree
        elif isinstance(tree, dict):
            for key, value in tree.items():
                yield from self.paths(value, f"{text}[{key!r}]")
        else:
            for k, value in enumerate(items(tree)):
                k = k - len(items(tree)) if self.chance(0.15) else k
                yield from self.paths(value, f"{text}[{k}]")

    def leaves(self):
        yield from self.vars.items()
        for name, tree in self.boxes.items():
            yield from self.paths(tree, name)

    def of(self, shape):
        return [text for text, s in self.leaves() if s == shape]

    def likely(self, shape):
        return shape in {s for _, s in self.leaves()} or self.chance(0.12)

    def length(self, n):
        if self.chance(0.3):
            found = [f"{t}.shape[{k}]" for t, s in self.leaves() for k, length in enumerate(s) if length == n]
            if found:
                return self.r.choice(found)
        return str(n)

    def dims(self, shape):
        if len(shape) == 1 and self.chance(0.5):
            return self.length(shape[0])
        return "(" + ", ".join(self.length(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"

    def number(self):
        return self.r.choice(["0.7", "1.3", "0.25", "2", "-0.4", "3", "0.9", "1.0", "0.5"])

    def leaf(self, shape):
        found = self.of(shape)
        if found and self.chance(0.94):
            return self.r.choice(found)
        if shape == ():
            if self.ints and self.chance(0.4):
                name = self.r.choice(sorted(self.ints))
                return self.r.choice([f"{name} * 0.3", f"({name} + 1)", f"0.2 * {name}"])
            return self.number()
        smaller = [t for t, s in self.leaves() if s != shape and broadcasts(s, shape)]
        if smaller and self.chance(0.85):
            t = self.r.choice(smaller)
            return self.r.choice([f"np.broadcast_to({t}, {self.dims(shape)})", f"{t} * np.ones({self.dims(shape)})",
                                  f"np.zeros({self.dims(shape)}) + {t}"])
        if len(shape) == 1 and self.chance(0.5):
            n = self.length(shape[0])
            return self.r.choice([f"np.linspace(0.1, 0.9, {n})", f"np.arange({n}) * 0.2", f"np.ones({n}) * 0.6"])
        if len(shape) == 2 and shape[0] == shape[1] and self.chance(0.4):
            return f"np.eye({self.length(shape[0])})"
        return f"np.full({self.dims(shape)}, {self.r.choice(['0.4', '1.1', '-0.3'])})"

    # expressions

    def expr(self, shape, depth):
        if depth > 0 and not self.chance(0.15):
            kinds = [self.unary, self.unary, self.binary, self.binary, self.binary, self.mixed, self.reduction,
                     self.product,
                     self.layout, self.layout, self.choice_between, self.call]
            for _ in range(4):
                text = self.r.choice(kinds)(shape, depth - 1)
                if text:
                    return text
        return self.leaf(shape)

    def unary(self, shape, depth):
        e = self.expr(shape, depth)
        p = par(e)
        forms = [f"np.tanh({e})", f"np.sin({e})", f"np.cos({e})", f"np.arctan({e})", f"np.exp(np.sin({e}))",
                 f"np.exp(-{p}**2)",
                 f"np.sqrt(1.0 + {p}**2)", f"np.log1p({p}**2)", f"np.log(2.0 + np.cos({e}))", f"-{p}",
                 f"np.sin({e})**2",
                 f"np.tanh({e})**3", f"np.abs({e})", f"np.sinh(np.tanh({e}))", f"np.square({e})",
                 f"np.expm1(np.tanh({e}))",
                 f"1 / (1 + np.exp(-{p}))", f"2.0**np.tanh({e})", f"abs({e})", f"np.sign({e}) * 0.3"]
        if shape == ():
            forms += [f"math.sin({e})", f"math.exp(math.tanh({e}))"]
        if self.ints and self.chance(0.2):
            i = self.r.choice(sorted(self.ints))
            forms = [f"np.tanh({e})**{i}", f"np.sin({e}) * {i}", f"{p} / ({i} + 1)"]
        return self.r.choice(forms)

    def part(self, shape):
        """A shape that broadcasts to `shape`."""
        cut = self.r.randint(0, len(shape)) if self.chance(0.4) else 0
        return tuple(1 if self.chance(0.2) else n for n in shape[cut:])

    def binary(self, shape, depth):
        left, right = shape, self.part(shape)
        if len(shape) == 2 and self.chance(0.25):
            left, right = (shape[0], 1), self.r.choice([(shape[1],), (1, shape[1])])
        a, b = self.expr(left, depth), self.expr(right, depth)
        if self.chance(0.5):
            a, b = b, a
        p, q = par(a), par(b)
        return self.r.choice([f"{p} + {q}", f"{p} - {q}", f"{p} * {q}", f"{p} * {q}", f"{p} / (2.0 + np.cos({b}))",
                              f"np.maximum({a}, {b})",
                              f"np.minimum({a}, {b})", f"np.hypot({a}, 1.0 + {q}**2)", f"np.logaddexp({a}, {b})",
                              f"np.add({a}, {b})",
                              f"np.multiply({a}, {b})", f"(1.5 + np.sin({a}))**{q}",
                              f"np.arctan2({a}, 2.0 + np.sin({b}))",
                              f"{p} * {q} + {p}", f"np.where({a} > {b}, {a}, {b})" if shape else f"{p} * {q} - {q}"])

    def mixed(self, shape, depth):
        e, n = par(self.expr(shape, depth)), self.number()
        return self.r.choice([f"{e} * {n}", f"{n} * {e}", f"{n} - {e}", f"{e} + {n}", f"{e} / 2", f"{e} / 1.5",
                              f"{e} - {n}"])

    def reduction(self, shape, depth):
        if len(shape) > 2:
            return None
        if shape == () and self.chance(0.75):
            sources = [s for _, s in self.leaves() if s] or [(3,)]
            source, how = self.r.choice(sources), ""
            lost = math.prod(source)
            if len(source) == 2 and self.chance(0.3):
                how = ", axis=(0, 1)" if self.chance(0.5) else ", axis=None"
        else:
            n, k, unit = self.some_length(), self.r.randint(0, len(shape)), [k for k, s in enumerate(shape) if s == 1]
            if unit and self.chance(0.7):
                k = self.r.choice(unit)
                source, how = shape[:k] + (n,) + shape[k + 1:], ", keepdims=True"
            else:
                source, how = shape[:k] + (n,) + shape[k:], ""
            if not self.likely(source):
                return None
            k = k - len(source) if self.chance(0.3) else k
            how, lost = f", axis={k}{how}", n
        e = self.expr(source, depth)
        names = ["sum", "sum", "sum"] + (["mean", "mean", "max", "min", "var", "prod"]
                                         if lost and 0 not in source else [])
        if lost > 1 and e in self.vars and 0 not in source:
            names.append("std")
        name = self.r.choice(names)
        if name == "prod":
            e = f"1.2 + 0.3 * np.sin({e})"
        if name == "sum" and source == shape[:0] and how == "":
            return f"np.sum({e})"
        return f"{par(e)}.{name}({how[2:]})" if self.chance(0.3) else f"np.{name}({e}{how})"

    def some_length(self):
        lengths = sorted({n for _, s in self.leaves() for n in s} | {2, 3})
        return self.r.choice(lengths)

    def contracted(self, shape):
        """The length of the axis that a product sums over: one that some operand has, as a rule."""
        shapes = [s for _, s in self.leaves()]
        fits = [s[-1] for s in shapes if s
                and s[:-1] == shape[:-1]] + [s[-2] for s in shapes if len(s) == 2 and shape[-1:] == s[-1:]]
        return self.r.choice(fits) if fits else self.some_length() if len(shape) > 1 or self.chance(0.15) else None

    def product(self, shape, depth):
        k = self.contracted(shape)
        if k is None:
            return None
        e = lambda *s: self.expr(s, depth)      # noqa: E731 (a one-line shorthand)
        if shape == ():
            a, b = e(k), e(k)
            return self.r.choice([f"{par(a)} @ {par(b)}", f"np.dot({a}, {b})", f"np.inner({a}, {b})",
                                  f"np.einsum('i,i->', {a}, {b})",
                                  f"np.vdot({a}, {b})"])
        if len(shape) == 1:
            n = shape[0]
            if self.chance(0.5):
                a, b = e(n, k), e(k)
                return self.r.choice([f"{par(a)} @ {par(b)}", f"np.dot({a}, {b})", f"np.einsum('ij,j->i', {a}, {b})",
                                      f"{par(a)}.dot({b})"])
            a, b = e(k), e(k, n)
            return self.r.choice([f"{par(a)} @ {par(b)}", f"np.dot({a}, {b})", f"np.matmul({a}, {b})",
                                  f"np.einsum('i,ij->j', {a}, {b})",
                                  f"np.tensordot({a}, {b}, axes=1)"])
        if len(shape) == 2:
            m, n = shape
            if self.chance(0.4):
                a, b = e(m), e(n)
                return self.r.choice([f"np.outer({a}, {b})", f"np.einsum('i,j->ij', {a}, {b})",
                                      f"{par(a)}[:, None] * {par(b)}"])
            a, b = e(m, k), e(k, n)
            return self.r.choice([f"{par(a)} @ {par(b)}", f"np.dot({a}, {b})", f"np.matmul({a}, {b})",
                                  f"np.einsum('ij,jk->ik', {a}, {b})",
                                  f"({par(b)}.T @ {par(a)}.T).T"])
        if len(shape) == 3 and depth >= 0:
            b, m, n = shape
            x, w, v = e(b, m, k), e(k, n), e(b, k, n)
            return self.r.choice([f"{par(x)} @ {par(w)}", f"{par(x)} @ {par(v)}",
                                  f"np.einsum('bij,bjk->bik', {x}, {v})"])
        return None

    def layout(self, shape, depth):
        r = self.r
        if shape == ():
            found = [(t, s) for t, s in self.leaves() if s and 0 not in s]
            if not found:
                return None
            t, s = r.choice(found)
            i = self.index(s[0])
            if len(s) == 1:
                return r.choice([f"{t}[{i}]", f"{t}[{i}]", f"{t}.size * 0.1", f"len({t}) * 0.2", f"{t}.shape[0] * 0.1",
                                 f"np.sum({t}[{t} > 0.1])"])
            if len(s) == 2:
                j = self.index(s[1])
                return r.choice([f"{t}[{i}, {j}]", f"{t}[{i}][{j}]", f"np.sum({t}[{i}])", f"np.sum({t}[:, {j}])"])
            return f"np.sum({t}[{i}])"
        k = r.randint(0, len(shape) - 1)
        n, kind, at = shape[k], r.randint(0, 9), lambda length: shape[:k] + (length,) + shape[k + 1:]
        if kind == 0:                                       # joined of two
            cut = r.randint(0, n)
            a, b = self.expr(at(cut), depth), self.expr(at(n - cut), depth)
            axis = "" if k == 0 and self.chance(0.6) else f", axis={k}"
            return r.choice([f"np.concatenate([{a}, {b}]{axis})", f"np.concatenate(({a}, {b}), axis={k - len(shape)})"])
        if kind == 1 and 1 <= n <= 3:                       # stacked
            rows = ", ".join(self.expr(shape[:k] + shape[k + 1:], depth - 1) for _ in range(n))
            if len(shape) == 1:
                return r.choice([f"np.array([{rows}])", f"np.stack([{rows}])"])
            return f"np.stack([{rows}], axis={k})" if k or self.chance(0.3) else f"np.stack(({rows},))"
        if kind == 2:                                       # a slice of something longer
            longer = [s[k] for _, s in self.leaves() if len(s) == len(shape) and s[k] > n and at(s[k]) == s]
            more = r.choice(longer) - n if longer else r.randint(1, 2)
            if not longer and self.chance(0.8):
                return None
            e, before = par(self.expr(at(n + more), depth)), ":, " * k
            return r.choice([f"{e}[{before}{more}:]", f"{e}[{before}:-{more}]", f"{e}[{before}:{n}]"])
        if kind == 3:                                       # every second, backwards
            e, before = par(self.expr(at(n), depth)), ":, " * k
            if n and self.chance(0.3):
                return f"{par(self.expr(at(2 * n), depth))}[{before}::2]"
            return r.choice([f"{e}[{before}::-1]", f"np.flip({e}, axis={k})", f"np.roll({e}, 1, axis={k})",
                             f"np.cumsum({e}, axis={k})"])
        if kind == 4:                                       # one row of a matrix
            length = max(1, self.some_length())
            if not self.likely(shape[:k] + (length,) + shape[k:]):
                return None
            e = par(self.expr(shape[:k] + (length,) + shape[k:], depth))
            return f"{e}[{':, ' * k}{self.index(length)}]"
        if kind == 5 and n:                                 # an index array
            length = max(1, self.some_length())
            if not self.likely(at(length)):
                return None
            index = "[" + ", ".join(str(r.randint(-length, length - 1)) for _ in range(n)) + "]"
            e = par(self.expr(at(length), depth))
            return f"{e}[{':, ' * k}np.array({index})]"
        if kind == 6 and len(shape) >= 2:
            e = self.expr(shape[::-1], depth)
            return r.choice([f"{par(e)}.T", f"np.transpose({e})", f"{par(e)}.transpose()"])
        if kind == 7 and len(shape) == 2 and len(shape) < 3:
            if shape[1] == 1 and self.chance(0.8):
                e = self.expr(shape[:1], depth)
                return r.choice([f"{par(e)}[:, None]", f"np.expand_dims({e}, 1)", f"{par(e)}[:, np.newaxis]",
                                 f"np.reshape({e}, (-1, 1))"])
            e = self.expr(shape[1:], depth)
            return f"{par(e)}[None, :]" if shape[0] == 1 else f"np.broadcast_to({e}, {self.dims(shape)})"
        if kind == 8:
            size = math.prod(shape)
            source = r.choice([(size,), shape[::-1], (1,) + shape[:2]] if len(shape) < 3 else [(size,)])
            if math.prod(source) != size:
                source = (size,)
            e = self.expr(source, depth)
            if len(shape) == 1:
                return r.choice([f"{par(e)}.reshape(-1)" if size else f"np.ravel({e})", f"np.ravel({e})",
                                 f"np.reshape({e}, {self.dims(shape)})",
                                 f"{par(e)}.flatten()"])
            to = self.dims(shape)
            return r.choice([f"np.reshape({e}, {to})", f"{par(e)}.reshape{to}"])
        if kind == 9:
            e = self.expr(shape, depth)
            forms = [f"np.copy({e})", f"{par(e)}.copy()"]
            if n and n % 2 == 0:
                half = self.expr(at(n // 2), depth)
                forms += [f"np.repeat({half}, 2, axis={k})"] + ([f"np.tile({half}, 2)"] if len(shape) == 1 else [])
            if len(shape) == 1:
                forms += [f"np.squeeze({self.expr((1,) + shape, depth)}, axis=0)"]
                if n > 2:
                    forms += [f"np.pad({self.expr((n - 2,), depth)}, 1)"]
            return r.choice(forms)
        return None

    def index(self, length):
        names = [i for i, (low, high) in self.ints.items() if low >= 0 and high < length]
        if names and self.chance(0.5):
            return self.r.choice(sorted(names))
        return str(self.r.randint(-length, length - 1))

    def choice_between(self, shape, depth):
        a, b = self.expr(shape, depth), self.expr(shape, depth)
        kind = self.r.randint(0, 3)
        if kind == 0:
            low, high = self.r.choice([("-0.6", "0.8"), ("0.0", "0.9"), ("-0.35", "0.35")])
            return self.r.choice([f"np.clip({a}, {low}, {high})", f"np.clip({a}, {low}, None)"])
        if kind == 1 or shape == ():           # np.where of scalars is an array of rank 0, which `+=` would write into
            return f"({a} if {self.test()} else {b})"
        t = self.expr(self.part(shape), depth)
        return f"np.where({par(t)} > {self.r.choice(['0.1', '-0.2', '0.43'])}, {a}, {self.part_text(shape, b)})"

    def part_text(self, shape, text):
        return self.number() if self.chance(0.2) else text

    def call(self, shape, depth):
        known = [(n, ps, d) for n, (ps, s, d) in {**self.helpers, **self.lambdas}.items() if s == shape]
        if known and self.chance(0.7):
            name, params, default = self.r.choice(known)
        elif not self.inside_helper and len(self.helpers) < 3:
            name = self.helper(shape)
            params, _, default = self.helpers[name]
        else:
            return None
        values = [self.expr(s, depth - 1) for s in params.values()]
        names = list(params)
        named = self.r.randint(0, len(names)) if self.chance(0.3) else len(names)
        texts = values[:named] + [f"{n}={v}" for n, v in zip(names[named:], values[named:])]
        if default and self.chance(0.5):
            texts.append(f"{default}={self.leaf(())}")
        return f"{name}({', '.join(texts)})"

    def helper(self, shape):
        """Write a function to the preamble, which returns something of the given shape."""
        name = f"helper_{len(self.helpers) + 1}"
        shapes = [self.r.choice([s for _, s in self.leaves()] + [(), shape]) for _ in range(self.r.randint(1, 3))]
        params = dict(zip(self.r.sample(["x", "y", "a", "b", "w", "dx", "t"], 3), shapes))
        default = "c" if self.chance(0.5) else None
        kept = self.__dict__.copy()
        self.vars, self.boxes, self.ints, self.lines = dict(params), {}, {}, []
        self.lambdas, self.owned, self.apart, self.locked, self.inside_helper = {}, set(), set(), set(), True
        if default:
            self.vars["c"] = ()
        head = list(params) + ([f"c={self.number()}"] if default else [])
        self.block(4, 1, 2)
        if self.chance(0.2):
            self.lines += [f"    if {self.test()}:", f"        return {self.expr(shape, 1)}"]
        self.lines.append(f"    return {self.expr(shape, 2)}")
        text = [f"def {name}({', '.join(head)}):"] + self.lines
        self.__dict__.update({k: v for k, v in kept.items() if k != "fresh_count"})
        self.preamble.append("\n".join(text))
        self.helpers[name] = (params, shape, default)
        return name

    # tests and statements

    def test(self):
        r, c = self.r, self.r.choice(["0.13", "0.37", "-0.21", "0.6", "0.02"])
        leaves = [(t, s) for t, s in self.leaves()]
        t, s = r.choice(leaves) if leaves else ("0.3", ())
        value = t if s == () else r.choice([f"np.sum({t})", f"np.sum({t} * {t})",
                                            f"np.sum({t}**2)"] + ([f"np.max({t})"] if 0 not in s else []))
        forms = [f"{value} > {c}", f"{value} > {c}", f"{value} < {c}", f"-0.3 < {value} < 0.8", f"not {value} > {c}"]
        if s:
            forms += [f"np.any({t} > {c})", f"{t}.ndim == {r.randint(1, 2)}", f"{t}.shape[0] > {r.randint(1, 3)}",
                      f"np.all({t} < {c})", f"len({t}) > 2"]
        if self.ints:
            i = r.choice(sorted(self.ints))
            forms += [f"{i} % 2 == 0", f"{i} < 1", f"{i} > 0 and {value} > {c}", f"{i} == 1 or {value} < {c}"] * 2
        return r.choice(forms)

    def tame(self, name, shape, depth=2):
        e = self.expr(shape, depth)
        return self.r.choice([f"np.tanh({e})", f"np.sin({e})", f"0.5 * {name} + 0.3 * np.sin({e})",
                              f"{name} * 0.8 + 0.2 * np.tanh({e})",
                              f"np.cos({e}) * {name}", f"{name} - 0.1 * {par(e)}", f"np.arctan({e}) * 0.7"])

    def put(self, pad, line):
        self.lines.append(" " * pad + line)

    def assign(self, pad, name, shape, text):
        owned = arithmetic(text)
        if not owned and any(re.search(rf"\b{re.escape(a)}\b", text) for a in self.apart):
            text, owned = f"np.copy({text})", True
        if not owned:
            self.owned -= set(re.findall(r"\w+", text))
        self.put(pad, f"{name} = {text}")
        if self.vars.get(name) != shape:
            self.lambdas = {n: x for n, x in self.lambdas.items() if name not in x[0]}
            self.captured_changed(name)
        self.vars[name] = shape
        self.apart.discard(name)
        (self.owned.add if owned else self.owned.discard)(name)

    def captured_changed(self, name):
        self.lambdas = {n: x for n, x in self.lambdas.items() if name not in self.captures.get(n, ())}

    captures = {}

    def free(self, shape=None):
        """Variables that may be assigned here."""
        return [v for v,
                s in self.vars.items() if v not in self.locked
                and v not in self.apart and (shape is None or s == shape)]

    def a_shape(self):
        shapes = [s for _, s in self.leaves()] + [()]
        s = self.r.choice(shapes)
        if self.chance(0.15):
            s = self.r.choice([s[:-1], s[1:], s[::-1], s[:1] + s[:1], s[:1] + (1,), (1,) + s[-1:]])
        return s[:3]

    def block(self, pad, level, budget):
        for _ in range(self.r.randint(1, budget)):
            kind = self.r.random()
            if level >= 3 or self.inside_helper and level >= 2:
                kind *= 0.5
            if kind < 0.14 and (self.free() or level):
                names = self.free()
                if names:
                    v = self.r.choice(names)
                    self.assign(pad, v, self.vars[v], self.tame(v, self.vars[v]))
            elif kind < 0.30:
                names = self.free()
                shape = self.a_shape()
                v = self.r.choice(names) if names and level == 0 and self.chance(0.3) else self.fresh()
                self.assign(pad, v, shape, self.tame_new(shape))
            elif kind < 0.37:
                self.augment(pad)
            elif kind < 0.42:
                self.pair(pad)
            elif kind < 0.46:
                self.box(pad)
            elif kind < 0.48 and not self.inside_helper:
                self.local_function(pad)
            elif kind < 0.50:
                found = [(t, s) for t, s in self.leaves()]
                if found:
                    t, s = self.r.choice(found)
                    self.assign(pad, self.fresh(), s, t)           # an alias
            elif kind < 0.72:
                self.for_loop(pad, level)
            elif kind < 0.80:
                self.while_loop(pad, level)
            else:
                self.branch(pad, level)

    def tame_new(self, shape):
        e = self.expr(shape, 3)
        return self.r.choice([e, e, f"np.tanh({e})", f"np.sin({e})"])

    def augment(self, pad):
        names = [v for v in self.vars if v not in self.locked
                 and (self.vars[v] == () or v in self.owned or v in self.apart)]
        if not names:
            return
        v = self.r.choice(names)
        shape = self.vars[v]
        e = self.expr(shape if shape == () else self.part(shape), 2)
        self.put(pad,
                 self.r.choice([f"{v} += 0.3 * np.sin({e})", f"{v} -= 0.2 * np.tanh({e})", f"{v} *= 0.9",
                                f"{v} *= np.cos({e})", f"{v} /= 1.5"]))

    def pair(self, pad):
        by_shape = collections.defaultdict(list)
        for v in self.free():
            by_shape[self.vars[v]].append(v)
        pairs = [vs for vs in by_shape.values() if len(vs) > 1]
        if not pairs:
            return
        a, b = self.r.sample(self.r.choice(pairs), 2)
        shape = self.vars[a]
        self.owned -= {a, b}
        if self.chance(0.5):
            self.put(pad, f"{a}, {b} = {b}, {a}")
        else:
            self.put(pad, f"{a}, {b} = {self.tame(a, shape, 1)}, {self.tame(b, shape, 1)}")

    def box(self, pad):
        found = [(t, s) for t, s in self.leaves() if t.split("[")[0] not in self.apart]
        mine = [b for b in self.boxes if b not in self.locked]
        if len(found) < 2:
            return
        if mine and self.chance(0.4):
            name = self.r.choice(mine)
            tree = self.boxes[name]
            new = lambda t, s: self.r.choice([t, f"np.tanh({self.expr(s, 1)})", f"{t} * 0.9"])      # noqa: E731
            text = self.spell(tree, name, new)
            self.owned -= set(re.findall(r"\w+", text))
            self.put(pad, f"{name} = {text}")
            return
        name = self.fresh()
        kind = self.r.choice(["list", "tuple", "dict", "pairs"])
        if kind == "dict":
            tree = {k: self.r.choice(found) for k in self.r.sample(["w", "b", "scale", "x"], 2)}
            text = "{" + ", ".join(f"{k!r}: {t}" for k, (t, _) in tree.items()) + "}"
            self.boxes[name] = {k: s for k, (_, s) in tree.items()}
        elif kind == "pairs":
            (t1, s1), (t2, s2) = self.r.choice(found), self.r.choice(found)
            text, self.boxes[name] = f"[({t1}, {t2}), ({t1} * 0.5, {t2})]", [Tup([s1, s2]), Tup([s1, s2])]
        else:
            shape = self.r.choice(found)[1]
            picked = [self.r.choice(self.of(shape))
                      if self.chance(0.8) else self.expr(shape, 1) for _ in range(self.r.randint(2, 3))]
            text = ", ".join(picked)
            if kind == "list":
                text, self.boxes[name] = f"[{text}]", [shape] * len(picked)
            else:
                text, self.boxes[name] = f"({text})", Tup([shape] * len(picked))
        self.owned -= set(re.findall(r"\w+", text))
        self.put(pad, f"{name} = {text}")

    def spell(self, tree, path, new):
        if is_shape(tree):
            return new(path, tree)
        if isinstance(tree, dict):
            return "{" + ", ".join(f"{k!r}: {self.spell(v, f'{path}[{k!r}]', new)}" for k, v in tree.items()) + "}"
        parts = [self.spell(v, f"{path}[{k}]", new) for k, v in enumerate(items(tree))]
        inside = ", ".join(parts)
        if not isinstance(tree, Tup):
            return f"[{inside}]"
        return f"({inside},)" if len(parts) == 1 else f"({inside})"

    def local_function(self, pad):
        name, param = self.r.choice(["act", "step", "cell", "inner"]), self.r.choice(["t", "x", "z", "dx"])
        if name in self.taken():
            return
        shape, out = self.a_shape(), self.a_shape()
        kept, lambdas = dict(self.vars), self.lambdas
        boxes, ints = dict(self.boxes), dict(self.ints)
        for d in (self.boxes, self.ints):
            d.pop(param, None)
        self.vars[param], self.lambdas = shape, {}
        body = self.expr(out, 2)
        self.vars, self.lambdas, self.boxes, self.ints = kept, lambdas, boxes, ints
        if "helper_" not in body and self.chance(0.5):
            self.put(pad, f"{name} = lambda {param}: {body}")
        else:
            self.put(pad, f"def {name}({param}):")
            self.put(pad + 4, f"return {body}")
        self.lambdas[name] = ({param: shape}, out, None)
        self.captures = {**self.captures, name: set(re.findall(r"\w+", body))}

    # control flow: what may be used after a block is what was there before, unless the block surely ran

    def inner(self, pad, level, budget, locked=(), surely=True):
        kept = dict(self.vars), dict(self.boxes), dict(self.ints), dict(self.lambdas), set(self.locked)
        self.owned = {v for v in self.owned if v in self.apart}           # in a second pass the value may be shared
        self.locked |= set(locked)
        at = len(self.lines)
        self.block(pad, level, budget)
        if len(self.lines) == at:
            v = self.r.choice(self.free() or [None])
            self.put(pad, f"{v} = {self.tame(v, self.vars[v])}" if v else "pass")
        after = self.vars, self.boxes
        self.vars, self.boxes, self.ints, self.lambdas, self.locked = kept
        self.owned = {v for v in self.owned if v in self.apart}
        if surely and self.chance(0.6):
            self.vars = {**after[0], **{v: s for v, s in self.vars.items()}}
        return after

    def for_loop(self, pad, level):
        r, i = self.r, self.r.choice(["i", "j", "k"])
        while i in self.taken():
            i += "i"
        accumulator = None
        if self.chance(0.25):
            accumulator = self.fresh()
            shape = self.a_shape()
            zero = self.chance(0.4) or shape == ()
            self.assign(pad, accumulator, () if zero else shape,
                        r.choice(["0.0", "0.0", "0"]) if zero else f"np.zeros({self.dims(shape)})")
            if not zero:
                self.apart.add(accumulator)
            else:
                self.vars.pop(accumulator)
                self.locked.add(accumulator)
        arrays = [(t, s) for t, s in self.leaves() if s and t not in self.apart]
        boxes = [(b, t) for b,
                 t in self.boxes.items() if isinstance(t, (list, Tup)) and all(same(x, items(t)[0]) for x in items(t))]
        kind = r.choice(["range", "range", "range", "rows", "rows", "box", "box", "zip", "enumerate"])
        kept_ints = dict(self.ints)
        bound, trips = {}, 1
        if kind in ("rows", "zip", "enumerate") and arrays or kind == "box" and not boxes and arrays:
            t, s = r.choice(arrays)
            trips, row = s[0], self.fresh()
            bound[row] = s[1:]
            back = self.chance(0.2)
            if kind == "enumerate":
                head, self.ints[i] = f"{i}, {row} in enumerate({t})", (0, max(0, trips - 1))
            elif kind == "zip":
                u, su = r.choice([(u, su) for u, su in arrays if su[0] == s[0]])
                other = self.fresh()
                if other == row:
                    other += "_b"
                bound[other] = su[1:]
                head = f"{row}, {other} in zip({t}, {u})"
            else:
                head = f"{row} in {t}" if not back else f"{row} in reversed({t})"
        elif kind in ("box", "enumerate", "zip") and boxes:
            b, tree = r.choice(boxes)
            trips, element = len(items(tree)), items(tree)[0]
            over = f"reversed({b})" if self.chance(0.2) else (f"{b}[1:]" if trips > 1 and self.chance(0.15) else b)
            trips -= over.endswith("[1:]")
            if isinstance(element, Tup):
                names = self.r.sample(["W", "bias", "c1", "c2"], len(items(element)))
                bound.update(zip(names, items(element)))
                head = ", ".join(names)
                head = f"{i}, ({head}) in enumerate({over})" if kind == "enumerate" else f"{head} in {over}"
                if kind == "enumerate":
                    self.ints[i] = (0, max(0, trips - 1))
            elif is_shape(element):
                row = self.fresh()
                bound[row] = element
                head = f"{i}, {row} in enumerate({over})" if kind == "enumerate" else f"{row} in {over}"
                if kind == "enumerate":
                    self.ints[i] = (0, max(0, trips - 1))
            else:
                head, trips, self.ints[i] = f"{i} in range(2)", 2, (0, 1)
        else:
            n = r.choice([0, 1, 2, 3, 3, 4])
            start, step = r.choice([(0, 1), (0, 1), (0, 1), (1, 1), (1, 2), (n, -1)])
            span = range(start, n, step) if step > 0 else range(n - 1, -1, -1)
            text = f"{span.start}, {span.stop}" + (f", {step}" if step != 1 else "")
            if (start, step) == (0, 1):
                text = self.length(n) if n else "0"
            if not len(span):
                text, span = "0" if self.chance(0.2) else "2", range(2)
                span = range(int(text))
            trips = len(span)
            self.ints[i] = (min(span, default=0), max(span, default=0))
            head = f"{i} in reversed(range({text}))" if self.chance(0.12) else f"{i} in range({text})"
            if accumulator and self.ints[i] == (0, 0):
                self.ints.pop(i)
        self.put(pad, f"for {head}:")
        before = dict(self.vars)
        self.vars.update(bound)
        after, _ = self.inner(pad + 4, level + 1, 3, set() if self.chance(0.3) else set(bound), surely=trips > 0)
        if accumulator:
            # a sum that starts from a plain zero becomes an array in the first pass
            kept = self.vars
            self.vars = {v: s for v, s in after.items() if v != accumulator}
            term = f"0.5 * np.tanh({self.expr(shape, 2)})"
            self.vars = kept
            self.put(pad + 4, self.r.choice([f"{accumulator} += {term}", f"{accumulator} = {accumulator} + {term}"]))
            self.locked.discard(accumulator)
            self.vars.pop(accumulator, None)
            if trips > 0 or not zero:
                self.vars[accumulator] = shape
                self.apart.add(accumulator)
        self.ints = kept_ints
        for v in bound:
            if v not in before and (trips == 0 or self.chance(0.5)):
                self.vars.pop(v, None)

    def while_loop(self, pad, level):
        r = self.r
        scalars = [v for v in self.free(())]
        arrays = [v for v in self.free() if self.vars[v]]
        kind = r.choice(["count", "scalar", "array", "both"])
        if kind == "scalar" and scalars:
            v = r.choice(scalars)
            test, step = r.choice([(f"abs({v}) > 0.3", f"{v} = {v} * 0.6"),
                                   (f"{v} < 1.5", f"{v} = {v} + 0.4 + 0.1 * np.tanh({self.expr((), 1)})"),
                                   (f"{v} * {v} > 0.2", f"{v} *= 0.7")])
        elif kind == "array" and arrays:
            v = r.choice(arrays)
            test, step = f"np.sum({v} * {v}) > 0.4", f"{v} = {v} * 0.7"
        else:
            k = "step_" + str(len(self.lines))
            self.put(pad, f"{k} = 0")
            n = r.randint(0, 4)
            test, step, v = f"{k} < {n}", r.choice([f"{k} += 1", f"{k} = {k} + 1"]), k
            if kind == "both":
                test += f" and ({self.test()})"
            self.ints[k] = (0, max(0, n - 1))
        self.put(pad, f"while {test}:")
        first = self.chance(0.5) and v in self.vars
        if first:
            self.put(pad + 4, step)
        if first and self.chance(0.15):
            self.ints.pop(v, None)
            return
        self.inner(pad + 4, level + 1, 3, {v}, surely=False)
        if not first:
            self.put(pad + 4, step)
        self.ints.pop(v, None)
        self.owned.discard(v)

    def branch(self, pad, level):
        self.put(pad, f"if {self.test()}:")
        arms = [self.inner(pad + 4, level + 1, 2, surely=False)[0]]
        for _ in range(self.r.choice([0, 0, 0, 1])):
            self.put(pad, f"elif {self.test()}:")
            arms.append(self.inner(pad + 4, level + 1, 2, surely=False)[0])
        if self.chance(0.6):
            self.put(pad, "else:")
            arms.append(self.inner(pad + 4, level + 1, 2, surely=False)[0])
            if self.chance(0.5):            # a name that every arm sets
                v, shape = self.fresh(), self.a_shape()
                kept = {k: s for k, s in self.vars.items()}
                self.put(pad, f"if {self.test()}:")
                self.put(pad + 4, f"{v} = {self.tame_new(shape)}")
                self.put(pad, "else:")
                self.vars = kept
                self.put(pad + 4, f"{v} = {self.tame_new(shape)}")
                self.vars[v] = shape

    # the whole

    def arguments(self):
        """Names and shapes of the arguments; the last ones may be integers."""
        r = self.r
        n, m, k = r.sample([2, 3, 4, 5], 3)
        n, m, k = [1 if self.chance(0.08) else 0 if self.chance(0.03) else d for d in (n, m, k)]
        shapes = [(n,), (n,), (n,), (m,), (m, n), (m, n), (n, m), (m, 1), (1, n), (1,), (), (), (n, n),
                  (k, n), (2, m, n)]
        tree = {"a": r.choice(shapes), "b": r.choice(shapes)}
        if self.chance(0.8):
            tree["s"] = ()
        if self.chance(0.25):
            tree["c"] = r.choice(shapes)
        if self.chance(0.35):
            kind = r.choice(["layers", "dict", "list", "tuple", "nested"])
            tree["params"] = {"layers": [Tup([(n, k), (k,)]), Tup([(k, n), (n,)])],
                              "dict": {"w": (n,), "b": (), "m": (m, n)},
                              "list": [(n,)] * r.randint(1, 3), "tuple": Tup([(n,), (n,)]),
                              "nested": {"layers": [Tup([(n, n), (n,)])] * 2, "scale": ()}}[kind]
        return tree

    def program(self):
        tree = self.arguments()
        for name, t in tree.items():
            (self.vars if is_shape(t) else self.boxes)[name] = t
        head, extra = list(tree), {}
        if self.chance(0.25):
            count = self.r.randint(0, 3)
            extra["count"] = count
            self.lines += [f"    for _ in range({self.r.choice(['count', 'count + 1'])}):"]
            v = self.r.choice(self.free())
            self.lines += [f"        {v} = {self.tame(v, self.vars[v])}"]
            self.locked.add("count")
        if self.chance(0.12):
            found = [(v, s) for v, s in self.vars.items() if s and s[0]]
            if found:
                v, s = self.r.choice(found)
                extra["rows"] = [self.r.randint(0, s[0] - 1) for _ in range(3)]
                self.put(4, f"picked = {v}[rows]")
                self.vars["picked"] = (3,) + s[1:]
                self.locked.add("rows")
        if self.chance(0.1):
            extra["mode"] = self.r.choice(["fast", "slow"])
            v = self.r.choice(self.free())
            self.lines += ["    if mode == 'fast':", f"        {v} = {self.tame(v, self.vars[v])}"]
            self.locked.add("mode")
        self.block(4, 0, self.r.choice([1, 2, 3, 4, 5]))
        if self.chance(0.15):
            self.put(4, f"if {self.test()}:")
            self.put(8, f"return {self.total(2)}")
        self.put(4, f"return {self.total(self.r.randint(2, 5))}")
        head += list(extra)
        text = "\n\n\n".join([*self.preamble, "\n".join([f"def f({', '.join(head)}):", *self.lines])]) + "\n"
        return text, tree, extra

    def total(self, count):
        terms = []
        leaves = list(self.leaves())
        for _ in range(count):
            t, s = self.r.choice(leaves[len(leaves) // 2:] if self.chance(0.6) else leaves)
            if s == ():
                terms.append(self.r.choice([t, f"0.5 * {t}", f"np.sin({t})"]))
            else:
                terms.append(self.r.choice([f"np.sum({t} * {t})", f"np.sum({t})", f"np.sum(np.sin({t}))", f"{t}.sum()",
                                            f"0.3 * np.sum({t}**2)"]))
        if self.chance(0.3):
            terms.append(self.expr((), 2))
        return " + ".join(par(t) if "-" in t or " if " in t else t for t in terms)


class Wide(Writer):
    """Writes into arrays, other names and views of them, and ways out of loops, among what a `Writer` draws."""

    def __init__(self, r):
        super().__init__(r)
        self.result, self.loop = None, ""                   # what `return` gives; the exits that the loop here allows
        self.setters, self.touched = {}, []                 # helpers that write into their argument; arrays written

    def taken(self):
        return super().taken() | set(self.setters)

    def helper(self, shape):
        kept = self.result, self.loop, self.touched
        self.result, self.loop, self.touched = shape, "", []
        name = super().helper(shape)
        self.result, self.loop, self.touched = kept
        return name

    def total(self, count):
        text = super().total(count)
        seen = [v for v in dict.fromkeys(self.touched) if v in self.vars]
        for v in self.r.sample(seen, min(len(seen), 2)):
            s = self.vars[v]
            weights = f"np.linspace(0.5, 1.5, {math.prod(s)})" + (f".reshape{s}" if len(s) > 1 else "")
            text += self.r.choice([f" + np.sum({v} * {weights})", f" + np.sum(np.sin({v}) * {weights})",
                                   f" + np.sum({v} * {v})"])
        return text

    # statements

    def block(self, pad, level, budget):
        if level == 0:
            self.wide(pad, level)
        for _ in range(self.r.randint(1, budget)):
            if self.chance(0.42):
                self.wide(pad, level)
            else:
                super().block(pad, level, 1)

    def wide(self, pad, level):
        kinds = [self.buffer] * 3 + [self.write] * 7 + [self.alias] * 3 + [self.augment] + [self.setter] * 2
        deep = []
        if self.loop:
            deep += [self.exit] * 6
        if level < 2:
            deep += [self.fill] * 3 + [self.rows] * 2 + [self.arms] * 2 + [self.forever, self.for_loop, self.while_loop]
        kind = self.r.choice(kinds + deep)
        kind(pad, level) if kind in deep else kind(pad)

    def arrays(self, rank=1):
        """Names of the arrays that may be written."""
        return [v for v, s in self.vars.items() if len(s) >= rank and 0 not in s and v not in self.locked]

    def an_array(self, pad, rank=1):
        found, seen = self.arrays(rank), [v for v in self.arrays(rank) if v in self.touched]
        if not found or self.chance(0.1):
            return self.buffer(pad, rank)
        return self.r.choice(seen if seen and self.chance(0.5) else found)

    def bind(self, pad, name, shape, text):
        """Like `assign`, for a name that may show the storage of another."""
        self.put(pad, f"{name} = {text}")
        if self.vars.get(name) != shape:
            self.lambdas = {n: x for n, x in self.lambdas.items() if name not in x[0]}
            self.captured_changed(name)
        self.vars[name] = shape
        self.apart.discard(name)
        self.owned -= set(re.findall(r"\w+", text)) | {name}

    def buffer(self, pad, rank=1):
        shapes = [s for _, s in self.leaves() if len(s) >= rank and 0 not in s]
        shape = self.r.choice(shapes) if shapes else (3, 2)[:rank] if rank < 3 else (2, 3, 2)
        forms = [f"np.zeros({self.dims(shape)})"]
        for t in self.r.sample(self.of(shape), min(2, len(self.of(shape)))):
            forms += [f"np.zeros_like({t})", f"{t} * 1.0", f"{t}.copy()", self.r.choice([f"np.copy({t})",
                                                                                        f"np.array({t})",
                                                                                        f"np.ones_like({t})"])]
        name = self.fresh()
        self.bind(pad, name, shape, self.r.choice(forms))
        self.touched.append(name)
        return name

    def value(self, shape):
        if self.chance(0.12):
            return self.number()
        e = self.expr(self.part(shape), 2)
        return self.r.choice([e, e, f"np.tanh({e})", f"0.5 * np.sin({e})"])

    def target(self, t, s):
        """A part of the array and its shape."""
        r, n, rest = self.r, s[0], s[1:]
        i, k = self.index(n), self.r.randint(1, 3)
        picked = [r.randint(-n, n - 1) if self.chance(0.3) else r.randint(0, n - 1) for _ in range(k)]
        array = f"np.array({picked})" if self.chance(0.8) else str(picked)
        forms = [(f"[{i}]", rest)] * 4 + [("[:]", s), ("[...]", s), ("[::-1]", s), ("[::-1][0]", rest),
                                          ("[::2]", ((n + 1) // 2,) + rest), (f"[{array}]", (k,) + rest),
                                          (f"[{array}]", (k,) + rest)]
        if n > 1:
            forms += [("[1:]", (n - 1,) + rest)] * 2 + [("[:-1]", (n - 1,) + rest), ("[1:][0]", rest)]
        if len(s) > 1:
            m, after = s[1], s[2:]
            j = self.index(m)
            others = [r.randint(0, m - 1) for _ in range(k)]
            forms += [(f"[{i}, {j}]", after)] * 4 + [(f"[:, {j}]", (n,) + after)] * 2
            forms += [(f"[{i}][{j}]", after), (f"[{i}, 1:]", (m - 1,) + after), ("[:, ::-1]", s),
                      (f"[:, np.array({others})]", (n, k) + after), (f"[{array}, np.array({others})]", (k,) + after),
                      (f"[{array}, {j}]", (k,) + after), (f"[..., {self.index(s[-1])}]", s[:-1]),
                      (f".T[{self.index(s[-1])}]", s[:-1][::-1])]
        text, shape = r.choice(forms)
        return t + text, shape

    def store(self, pad, text, shape):
        op = self.r.choice(["=", "=", "=", "=", "+=", "+=", "-=", "*=", "/="])
        e = self.value(shape)
        if op == "/=":
            e = "1.5" if self.chance(0.4) else f"2.0 + np.cos({e})"
        self.put(pad, f"{text} {op} {e}")

    def write(self, pad, t=None):
        t = t or self.an_array(pad)
        s = self.vars[t]
        self.touched.append(t)
        kind = self.r.random()
        if kind < 0.22:
            self.masked(pad, t, s)
        elif kind < 0.29 and s[0] > 1:                      # rows are views: the second is written with the first
            i, j = self.r.sample(range(s[0]), 2)
            self.put(pad, f"{t}[{i}], {t}[{j}] = {t}[{j}], {t}[{i}]")
        elif kind < 0.34:
            one, shape = self.target(t, s)
            other = self.r.choice(self.arrays() or [t])
            more = [x for x in (self.target(other, self.vars[other]) for _ in range(4)) if x[1] == shape]
            self.touched.append(other)
            self.put(pad, " = ".join([one, *[x for x, _ in more[:1]], self.value(shape)]))
        else:
            self.store(pad, *self.target(t, s))

    def masked(self, pad, t, s):
        r, c = self.r, self.r.choice(["0.31", "0.12", "-0.23", "0.57"])
        u = r.choice(self.of(s))
        test = r.choice([f"{t} > {c}", f"{t} > {c}", f"{t} < {c}", f"np.abs({t}) > 0.41", f"{u} > {c}",
                         f"({t} > -0.33) & ({u} < 0.64)", f"~({u} > {c})"])
        if len(s) > 1 and self.chance(0.25):
            test = f"{t}[:, {self.index(s[1])}] > {c}" if len(s) == 2 else f"{t}[:, 0, 0] > {c}"
            values = [self.value(())]
        else:
            values = [self.value(()), self.value(())]
            if self.chance(0.35):
                e = self.r.choice(self.of(s))
                values = [f"{e}[{test}]", f"np.tanh({e}[{test}])"]
        if self.chance(0.4):
            name = self.r.choice([n for n in ("mask", "keep", "m", "on") if n not in self.taken()] or [self.fresh()])
            self.put(pad, f"{name} = {test}")
            values, test = [v.replace(f"[{test}]", f"[{name}]") for v in values], name
        op, value = r.choice(["=", "=", "=", "+=", "-=", "*=", "/="]), r.choice(values)
        value = ("1.5" if self.chance(0.5) else f"2.0 + np.cos({value})") if op == "/=" else value
        self.put(pad, f"{t}[{test}] {op} {value}")

    def view(self, t, s):
        """Another name's value for the array or a part of it."""
        n, rest, i = s[0], s[1:], self.index(s[0])
        forms = [(t, s)] * 4 + [(f"{t}[::-1]", s), (f"{t}[:]", s), (f"{t}[::2]", ((n + 1) // 2,) + rest),
                                (f"np.asarray({t})", s)]
        if n > 1:
            forms += [(f"{t}[1:]", (n - 1,) + rest)] * 2 + [(f"{t}[:-1]", (n - 1,) + rest)]
        if len(s) == 1:
            forms += [(f"{t}[:, None]", (n, 1)), (f"{t}[None]", (1, n))]
        else:
            j = self.index(s[1])
            forms += [(f"{t}[{i}]", rest)] * 3 + [(f"{t}.T", s[::-1])] * 3 + [(f"{t}[:, {j}]", (n,) + s[2:])] * 2
            forms += [(f"np.transpose({t})", s[::-1]), (f"{t}[:, :1]", (n, 1) + s[2:])]
            forms += [(f"{t}.reshape(-1)", (math.prod(s),))] * self.chance(0.1)
        return self.r.choice(forms)

    def alias(self, pad):
        t = self.an_array(pad)
        s, name = self.vars[t], self.fresh()
        text, shape = self.view(t, s)
        if self.chance(0.12):
            others = [u for u in self.arrays() if self.vars[u] == shape]
            text = f"{text} if {self.test()} else {self.r.choice(others)}" if others else text
        self.bind(pad, name, shape, text)
        self.touched += [t, name]
        if shape and 0 not in shape and self.chance(0.8):
            where = name if self.chance(0.7) else t
            if self.chance(0.25):
                self.put(pad, f"{where} {self.r.choice(['+=', '-=', '*='])} {self.value(self.vars[where])}")
            else:
                self.write(pad, where)

    def augment(self, pad):
        """Of any array, whoever else has it."""
        names = [v for v in self.vars if v not in self.locked]
        if names:
            v = self.r.choice(names)
            e = self.expr(self.part(self.vars[v]), 2)
            self.put(pad, self.r.choice([f"{v} += 0.3 * np.sin({e})", f"{v} -= 0.2 * np.tanh({e})", f"{v} *= 0.9",
                                         f"{v} *= np.cos({e})", f"{v} /= 1.5", f"{v} /= 2.0 + np.cos({e})"]))

    def setter(self, pad):
        """A call of a function that writes into its argument."""
        t = self.an_array(pad)
        text, s = self.view(t, self.vars[t])
        if not s or 0 in s or self.inside_helper:
            return self.write(pad, t)
        self.touched.append(t)
        known = [n for n, (params, _) in self.setters.items() if params["y"] == s]
        if known and (self.chance(0.6) or len(self.setters) > 2):
            name = self.r.choice(known)
        else:
            name = self.new_setter(s)
        params, result = self.setters[name]
        given = [text] + [self.r.choice(self.of(p) or [self.expr(p, 1)]) for p in list(params.values())[1:]]
        call = f"{name}({', '.join(given)})"
        if result == "none" or self.chance(0.2):
            self.put(pad, call)
        else:
            self.bind(pad, self.fresh(), result, call)

    def new_setter(self, shape):
        name = f"set_{len(self.setters) + 1}"
        shapes = [self.r.choice([s for _, s in self.leaves()] + [()]) for _ in range(self.r.randint(0, 2))]
        params = {"y": shape, **dict(zip(["v", "dx"], shapes))}
        result = self.r.choice(["none", "none", shape, shape, ()])
        kept = self.__dict__.copy()
        self.vars, self.boxes, self.ints, self.lines = dict(params), {}, {}, []
        self.lambdas, self.owned, self.apart, self.locked, self.inside_helper = {}, set(), set(), set(), True
        self.result, self.loop, self.touched = result, "", []
        if self.chance(0.4):
            self.fill(4, 1, "y")
        else:
            self.write(4, "y")
        if self.chance(0.5):
            self.block(4, 1, 1)
        if self.chance(0.2):
            self.put(4, f"if {self.test()}:")
            self.leave(8)
        if result != "none":
            self.put(4, "return y" if result == shape and self.vars["y"] == shape and self.chance(0.7)
                     else f"return {self.expr(result, 1)}")
        text = [f"def {name}({', '.join(params)}):"] + self.lines
        self.__dict__.update({k: v for k, v in kept.items() if k != "fresh_count"})
        self.preamble.append("\n".join(text))
        self.setters[name] = params, result
        return name

    # loops and ways out of them

    def inner(self, pad, level, budget, locked=(), surely=True):
        opening = next(line for line in reversed(self.lines) if len(line) - len(line.lstrip()) == pad - 4)
        head = opening.split()[0]
        kept, before, at = self.loop, set(self.locked), len(self.lines)
        self.locked = before | set(locked)
        if head in ("for", "while"):                        # no `continue` before the step that ends a loop
            self.loop = "break" if head == "while" and self.lines[-1] is opening else "break continue"
            if self.chance(0.25):
                self.exit(pad, level)
        after = super().inner(pad, level, budget, locked, surely=False)
        if head in ("if", "elif", "else:") and kept and self.chance(0.1):
            self.leave(pad)
        exits = any(line.split()[0] in ("break", "continue", "return") for line in self.lines[at:])
        self.loop, self.locked = kept, before
        if surely and not exits and self.chance(0.6):
            self.vars = {**after[0], **self.vars}
        return after

    def exit(self, pad, level):
        self.put(pad, f"if {self.test()}:")
        if self.chance(0.4):
            self.inner(pad + 4, level + 1, 1, surely=False)
        if self.lines[-1].split()[0] not in ("break", "continue", "return"):
            self.leave(pad + 4)

    def leave(self, pad):
        how = self.r.choice(self.loop.split() * 3 + ["return"])
        if how == "return" and self.result != "none":
            how += f" {self.total(2) if self.result is None else self.expr(self.result, 1)}"
        self.put(pad, how)

    def otherwise(self, pad, level):
        if self.chance(0.15):
            self.put(pad, "else:")
            self.inner(pad + 4, level + 1, 1, surely=False)

    def for_loop(self, pad, level):
        super().for_loop(pad, level)
        self.otherwise(pad, level)

    def while_loop(self, pad, level):
        super().while_loop(pad, level)
        self.otherwise(pad, level)

    def counter(self):
        i = self.r.choice(["i", "j", "k"])
        while i in self.taken():
            i += "i"
        return i

    def fill(self, pad, level, t=None):
        """A loop that writes the items of an array, one after the other."""
        t = t or (self.buffer(pad) if self.chance(0.6) else self.an_array(pad))
        s, i, r = self.vars[t], self.counter(), self.r
        n, rest = s[0], s[1:]
        self.touched.append(t)
        u, su = r.choice([(u, su) for u, su in self.leaves() if su and su[0] == n])
        head, span = r.choice([(f"range({self.length(n)})", (0, n - 1)), (f"range(len({t}))", (0, n - 1)),
                               (f"range(1, {self.length(n)})", (1, n - 1)), (f"range({n - 1}, -1, -1)", (0, n - 1)),
                               (f"range(0, {n}, 2)", (0, n - 1)), ("", (0, n - 1))])
        kept, bound = dict(self.ints), {}
        if head:
            head = f"{i} in {head}"
        else:
            row = self.fresh()
            head, bound = f"{i}, {row} in enumerate({u})", {row: su[1:]}
        outer = dict(self.vars)
        self.vars.update(bound)
        self.ints[i] = span
        self.put(pad, f"for {head}:")
        spare, loop = set(self.locked), self.loop
        self.loop = "break continue"
        self.locked = spare | set(bound) | {t}
        if self.chance(0.35):
            self.exit(pad + 4, level + 1)
        if self.chance(0.25):
            self.inner(pad + 4, level + 1, 1, bound, surely=False)
        if span[0] == 1 and self.chance(0.6):
            self.put(pad + 4, f"{t}[{i}] = {r.choice(['0.6', '0.9'])} * {t}[{i} - 1] + {par(self.value(rest))}")
        elif rest and self.chance(0.3):
            j = self.counter()
            self.put(pad + 4, f"for {j} in range({self.length(rest[0])}):")
            self.ints[j] = (0, rest[0] - 1)
            if self.chance(0.3):
                self.exit(pad + 8, level + 2)
            self.store(pad + 8, f"{t}[{i}, {j}]", rest[1:])
        else:
            self.store(pad + 4, r.choice([f"{t}[{i}]", f"{t}[{i}]", f"{t}[{i}:{i} + 1]"]), rest)
        if self.chance(0.15):
            self.exit(pad + 4, level + 1)
        self.ints, self.locked, self.loop, self.vars = kept, spare, loop, outer
        self.otherwise(pad, level)

    def rows(self, pad, level):
        """A loop over the rows of a matrix that writes into them."""
        t = self.an_array(pad, 2)
        s, row = self.vars[t], self.fresh()
        self.touched.append(t)
        kept, outer, spare, loop = dict(self.ints), dict(self.vars), set(self.locked), self.loop
        kind = self.r.choice(["plain", "plain", "enumerate", "zip"])
        if kind == "enumerate":
            i = self.counter()
            self.put(pad, f"for {i}, {row} in enumerate({t}):")
            self.ints[i] = (0, s[0] - 1)
        elif kind == "zip":
            u, su = self.r.choice([(u, su) for u, su in self.leaves() if su and su[0] == s[0]])
            other = "with_" + row
            self.put(pad, f"for {row}, {other} in zip({t}, {u}):")
            self.vars[other] = su[1:]
            self.locked |= {other}
        else:
            self.put(pad, f"for {row} in {t}:")
        self.vars[row] = s[1:]
        self.locked = self.locked | {t}
        self.loop = "break continue"
        if self.chance(0.3):
            self.exit(pad + 4, level + 1)
        if self.chance(0.35):
            self.put(pad + 4, f"{row} {self.r.choice(['+=', '-=', '*='])} {self.value(s[1:])}")
        else:
            self.write(pad + 4, row)
        if self.chance(0.3):
            self.inner(pad + 4, level + 1, 1, {row}, surely=False)
        self.ints, self.locked, self.loop, self.vars = kept, spare, loop, outer
        self.otherwise(pad, level)

    def arms(self, pad, level):
        """Both arms of a branch write, or give another array the name."""
        t = self.an_array(pad)
        s, name = self.vars[t], None
        self.touched.append(t)
        if self.chance(0.25):
            name = self.fresh()
        for head in (f"if {self.test()}:", "else:"):
            self.put(pad, head)
            kept = dict(self.vars), set(self.locked)
            if name:
                u = self.r.choice(self.of(s))
                self.put(pad + 4, f"{name} = {self.r.choice([t, t, u, f'{u} * 1.0', f'{t}.copy()', f'{t}[::-1]'])}")
            if not name or self.chance(0.3):
                self.write(pad + 4, t)
            if level < 2 and self.chance(0.25):
                self.inner(pad + 4, level + 1, 1, {t}, surely=False)
            self.vars, self.locked = kept
        if name:
            self.vars[name] = s
            self.owned -= {name, t}
            self.touched.append(name)
            self.write(pad, self.r.choice([name, name, t]))

    def forever(self, pad, level):
        """A loop that only a `break` or `return` ends."""
        k = f"step_{len(self.lines)}"
        n = self.r.randint(1, 4)
        self.put(pad, f"{k} = 0")
        self.put(pad, "while True:")
        kept, spare, loop = dict(self.vars), set(self.locked), self.loop
        self.loop = "break continue"
        self.put(pad + 4, f"if {k} >= {n}" + (f" or {self.test()}:" if self.chance(0.5) else ":"))
        self.put(pad + 8, "break") if self.chance(0.8) else self.leave_for_good(pad + 8)
        self.put(pad + 4, f"{k} += 1")
        if self.chance(0.7):
            self.write(pad + 4)
        self.ints[k] = (0, n)
        self.locked = spare | {k}
        self.inner(pad + 4, level + 1, 2, {k}, surely=False)
        self.ints.pop(k, None)
        self.vars, self.locked, self.loop = kept, spare, loop

    def leave_for_good(self, pad):
        loop, self.loop = self.loop, ""
        self.leave(pad)
        self.loop = loop


class Tup(list):
    """The shapes of a tuple's items (a bare tuple is a shape)."""


def items(tree):
    return list(tree)


def is_shape(tree):
    return isinstance(tree, tuple)


def same(a, b):
    return type(a) is type(b) and a == b


def broadcasts(small, big):
    return len(small) <= len(big) and all(s in (1, b) for s, b in zip(small[::-1], big[::-1]))


def par(text):
    """In parentheses, unless an operand by itself."""
    depth = 0
    for c in text:
        depth += c in "([{"
        depth -= c in ")]}"
        if depth == 0 and c in " *-+/":
            return f"({text})"
    return text if not text[0].isdigit() or text.replace(".", "").isdigit() else f"({text})"


def arithmetic(text):
    """Whether the value surely has memory of its own."""
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return isinstance(node.func.value, ast.Name) and node.func.value.id == "np" and node.func.attr in ARITHMETIC
    return isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Constant))


def draw(shape_tree, rng):
    if is_shape(shape_tree):
        x = rng.standard_normal(shape_tree) * 0.6
        return x if shape_tree else float(x)
    if isinstance(shape_tree, dict):
        return {k: draw(v, rng) for k, v in shape_tree.items()}
    return (tuple if isinstance(shape_tree, Tup) else list)(draw(v, rng) for v in shape_tree)


Case = collections.namedtuple("Case", "seed source args argnums extra dtype")


def make(seed, wide=False):
    """The program of a seed: the first drawn that runs and stays tame. `wide` is a family of its own."""
    r = random.Random(f"wide {seed}" if wide else seed)
    for attempt in range(60):
        writer = (Wide if wide else Writer)(r)
        try:
            source, tree, extra = writer.program()
        except RecursionError:
            continue
        rng = np.random.default_rng(seed)
        args = [draw(t, rng) for t in tree.values()]
        dtype = r.choice(["float64", "float64", "float64", "float32"])
        extra = {k: np.array(v) if isinstance(v, list) else v for k, v in extra.items()}
        case = Case(seed, source, args, tuple(range(len(args))), extra, dtype)
        if len(source) > 6000:
            continue
        try:
            with deadline(2), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                value = compiled(case)["f"](*copy.deepcopy(args), **extra)
        except (ZeroDivisionError, OverflowError, FloatingPointError):
            continue
        except Exception as e:
            if os.environ.get("FUZZ_STRICT"):
                print(seed, attempt, type(e).__name__, e, file=sys.stderr)
                print(source, file=sys.stderr)
            continue
        if np.ndim(value) == 0 and np.isfinite(value) and abs(value) < 1e3:
            return case
    raise RuntimeError(f"no program for seed {seed}")


def register(source, name):
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    return compile(source, name, "exec")


class ComplexBuffers:
    """NumPy, whose new arrays are complex unless a dtype is named: a complex step survives a write into them."""

    def __getattr__(self, name):
        fn = getattr(np, name)
        if name not in ("zeros", "ones", "full", "eye", "linspace", "zeros_like", "ones_like", "full_like"):
            return fn
        return lambda *args, **named: fn(*args, **named) if "dtype" in named else fn(*args, **named).astype(complex)


def compiled(case, source=None, numpy=np):
    space = {"np": numpy, "math": math, "__name__": f"program_{case.seed}"}
    exec(register(source or case.source, f"<program {case.seed}>"), space)
    return space


# -- reference derivatives ---------------------------------------------------------------------------------------------

def leaves_of(tree):
    if isinstance(tree, dict):
        return [leaf for k in tree for leaf in leaves_of(tree[k])]
    if isinstance(tree, (list, tuple)):
        return [leaf for t in tree for leaf in leaves_of(t)]
    return [tree]


def like(tree, leaves):
    """The tree with other leaves, taken from an iterator."""
    if isinstance(tree, dict):
        return {k: like(v, leaves) for k, v in tree.items()}
    if hasattr(tree, "_fields"):
        return type(tree)(*(like(v, leaves) for v in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(like(v, leaves) for v in tree)
    return next(leaves)


def flat(tree):
    parts = [np.ravel(np.asarray(leaf)) for leaf in leaves_of(tree)]
    return np.concatenate(parts) if parts else np.zeros(0)


def unflat(tree, vector):
    out, at = [], 0
    for leaf in leaves_of(tree):
        n = np.size(leaf)
        part = vector[at:at + n].reshape(np.shape(leaf))
        if np.ndim(leaf) == 0 and not isinstance(leaf, np.ndarray):
            part = part[()]
            part = float(part) if isinstance(leaf, float) and not np.iscomplexobj(part) else part
        out.append(part)
        at += n
    return like(tree, iter(out))


class Kink(Exception):
    """Differences are not to be trusted here."""


def five_point(f, x, v, h):
    return (f(x - 2 * h * v) - 8 * f(x - h * v) + 8 * f(x + h * v) - f(x + 2 * h * v)) / (12 * h)


def difference(f, x, v):
    """Directional derivative and its error, from two steps; Kink where the second difference does not settle."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        f0 = f(x)
        estimates = [five_point(f, x, v, h) for h in (2e-3, 1e-3, 2e-4)]
        bends = [(f(x + h * v) - 2 * f0 + f(x - h * v)) / h ** 2 for h in (2e-3, 1e-4, 1e-6)]
    scale = 1 + np.max(np.abs(estimates[-1]), initial=0)
    error = min(np.max(np.abs(estimates[0] - estimates[1]), initial=0),
                np.max(np.abs(estimates[1] - estimates[2]), initial=0))
    noise = 1e-14 * (1 + np.max(np.abs(f0), initial=0))
    if not np.all(np.isfinite(estimates)) or error > 1e-6 * scale:
        raise Kink
    for b, h in zip(bends[1:], (1e-4, 1e-6)):
        if np.max(np.abs(b), initial=0) > 8 * np.max(np.abs(bends[0]), initial=0) + 1e-2 * scale + 20 * noise / h ** 2:
            raise Kink
    best = 0 if np.max(np.abs(estimates[0] - estimates[1]), initial=0) <= np.max(np.abs(estimates[1] - estimates[2]),
                                                                                 initial=0) else 1
    return estimates[best + 1], error


def gradient(f, x, sizes, rng):
    """Gradient of a scalar function of a vector, and how far to trust it."""
    directions, at = [], 0
    for n in sizes:
        v = np.zeros(x.size)
        v[at:at + n] = rng.standard_normal(n)
        directions.append(v)
        at += n
    checks = [difference(f, x, v) for v in directions if np.any(v)]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            g = np.array([np.imag(f(x + 1e-30j * e)) / 1e-30 for e in np.eye(x.size)]).reshape(x.size)
        scale = 1 + np.max(np.abs(g), initial=0)
        live = [v for v in directions if np.any(v)]
        if np.all(np.isfinite(g)) and all(abs(g @ v - d) < 1e-8 * scale + 20 * err for v,
                                          (d, err) in zip(live, checks)):
            return g, 1e-9 * scale
    except Exception:                                       # not made for complex numbers
        pass
    pairs = [difference(f, x, e) for e in np.eye(x.size)]
    g = np.array([p[0] for p in pairs]).reshape(x.size)
    return g, 1e-7 * (1 + np.max(np.abs(g), initial=0)) + 20 * max((p[1] for p in pairs), default=0)


# -- one program, six checks ---------------------------------------------------------------------------------

Outcome = collections.namedtuple("Outcome", "kind detail seconds")


class Wrong(Exception):
    pass


def structure(tree):
    if isinstance(tree, dict):
        return {k: structure(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree).__name__, [structure(v) for v in tree]
    return np.shape(tree)


def expect(got, want, tolerance, what):
    got, want = flat(got), np.ravel(want)
    if got.shape != want.shape:
        raise Wrong(f"{what}: {got.size} numbers, expected {want.size}")
    if got.dtype.kind != "f":
        raise Wrong(f"{what}: dtype {got.dtype}")
    with np.errstate(all="ignore"):
        off = np.max(np.abs(got - want), initial=0) if np.all(np.isfinite(got)) else np.inf
    if not off <= tolerance:
        raise Wrong(f"{what}: off by {off:.2g} (tolerance {tolerance:.1g}), got {brief(got)}, expected {brief(want)}")


def brief(v):
    with np.printoptions(precision=5, threshold=8, edgeitems=3):
        return np.array2string(np.asarray(v)).replace("\n", "")


def check(case, jit=False, only=None):
    """-> Outcome; kinds: right, refused, discarded, wrong, failed."""
    import gradscribe as gs
    start, stage = time.time(), ["reference"]
    try:
        with deadline(120), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            examine(gs, case, jit, stage)
        kind, detail = "right", ""
    except Kink:
        kind, detail = "discarded", "near a kink"
    except gs.TransformError as e:
        kind, detail = "refused", reason(e, stage[0])
    except Wrong as e:
        kind, detail = "wrong", str(e)
    except Exception as e:
        at = traceback.extract_tb(e.__traceback__)[-1]
        line = (str(e).strip().splitlines() or [""])[0][:150]
        place = f"{os.path.basename(at.filename)}:{at.lineno}"
        kind, detail = "failed", f"{stage[0]}: {type(e).__name__}: {line} at {place}"
    return Outcome(kind, detail, time.time() - start)


def examine(gs, case, jit, stage):
    space = compiled(case)
    f, args, argnums = space["f"], case.args, case.argnums
    rng = np.random.default_rng(case.seed + 1)
    x = flat(args)
    scalar = of_a_vector(case)
    sizes = [flat(a).size for a in args]
    want, tolerance = gradient(scalar, x, sizes, rng)
    v = rng.standard_normal(x.size)
    tangents = unflat(args, v)

    stage[0] = "grad"
    df = gs.grad(f, argnums)
    got = untouched(df, args, case.extra, "grad")
    same_structure(got, args, "grad")
    expect(got, want, tolerance, "grad")

    stage[0] = "jvp"
    h = functools.partial(f, **case.extra) if case.extra else f
    value, dot = gs.jvp(h, tuple(copy.deepcopy(args)), tuple(tangents))
    expect(value, scalar(x), 1e-9 * (1 + abs(scalar(x))), "jvp's value")
    expect(dot, want @ v, tolerance * (1 + np.sum(np.abs(v))), "jvp")

    def first(vector):
        return flat(df(*unflat(args, vector), **case.extra))

    stage[0] = "jvp of grad"
    hvp, error = difference(first, x, v)
    loose = 1e-6 * (1 + np.max(np.abs(hvp), initial=0)) + 20 * error
    dh = gs.grad(h, argnums)
    value, dot = gs.jvp(dh, tuple(copy.deepcopy(args)), tuple(tangents))
    expect(value, want, tolerance, "value of the jvp of grad")
    expect(dot, hvp, loose, "jvp of grad")

    stage[0] = "grad of grad"
    names = [f"x{k}" for k in range(len(args))]
    terms, consts = [], []
    for k, (arg, tangent) in enumerate(zip(args, tangents)):
        for path in spelled(arg, f"d[{k}]"):
            terms.append(f"np.sum({path} * v[{len(terms)}])")
        consts += leaves_of(tangent)
    text = f"def dotted({', '.join(names)}):\n    d = df({', '.join(names)})\n    return {' + '.join(terms)}\n"
    local = {"np": np, "df": dh, "v": tuple(consts)}
    exec(register(text, f"<dotted {case.seed}>"), local)
    got = gs.grad(local["dotted"], argnums)(*copy.deepcopy(args))
    expect(got, hvp, loose, "grad of grad")

    if case.dtype == "float32":
        stage[0] = "float32"
        single = [like(a,
                       iter([np.float32(leaf)
                             if np.ndim(leaf) == 0 else leaf.astype(np.float32) for leaf in leaves_of(a)]))
                  for a in args]
        if case.seed % 3 == 0:                              # some arguments only, and plain floats
            single = [a if k % 2 else b for k, (a, b) in enumerate(zip(args, single))]
        rounded = flat(single).astype(float)
        got = untouched(df, single, case.extra, "grad in float32")
        same_structure(got, single, "grad in float32")
        scale = 1 + np.max(np.abs(want), initial=0)
        near = [first(rounded * (1 + 1e-5 * rng.standard_normal(x.size))) for _ in range(4)]
        if any(np.max(np.abs(g - want), initial=0) > 1e-3 * scale for g in near):
            raise Kink
        expect(flat(got).astype(float), want, 2e-3 * scale, "grad in float32")
        kinds = [np.asarray(leaf).dtype for leaf in leaves_of(got)], [np.asarray(leaf).dtype
                                                                      for leaf in leaves_of(single)]
        if kinds[0] != kinds[1]:
            got, given = ([str(k) for k in ks] for ks in kinds)
            raise Wrong(f"float32: gradient dtypes {got}, arguments have {given}")
        dots = [like(t, iter([np.asarray(d, dtype=np.asarray(leaf).dtype)[()] for d,
                              leaf in zip(leaves_of(t), leaves_of(one))]))
                for t, one in zip(tangents, single)]
        value, dot = gs.jvp(h, tuple(copy.deepcopy(single)), tuple(dots))
        expect(np.float64(dot), want @ v, 2e-3 * scale * (1 + np.sum(np.abs(v))), "jvp in float32")

    if jit:
        stage[0] = "jit"
        got = untouched(gs.jit(gs.grad(f, argnums)), args, case.extra, "jit")
        same_structure(got, args, "jit")
        expect(got, want, tolerance + 1e-9 * (1 + np.max(np.abs(want), initial=0)), "jit")
        if case.dtype == "float32":
            eager, fast = df(*copy.deepcopy(single), **case.extra), untouched(gs.jit(gs.grad(f, argnums)), single,
                                                                              case.extra, "jit in float32")
            expect(flat(fast).astype(float), flat(eager).astype(float), 2e-3 * scale, "jit in float32")


def untouched(fn, args, extra, what):
    given = copy.deepcopy(args)
    got = fn(*given, **extra)
    if structure(given) != structure(args) or not all(np.array_equal(a, b) for a,
                                                      b in zip(leaves_of(given), leaves_of(args))):
        raise Wrong(f"{what}: the arguments were changed")
    return got


def same_structure(got, args, what):
    if structure(got) != structure(tuple(args)):
        raise Wrong(f"{what}: structure {structure(got)}, expected {structure(tuple(args))}")


def spelled(tree, text):
    """The expression of each leaf."""
    if isinstance(tree, dict):
        return [x for k, t in tree.items() for x in spelled(t, f"{text}[{k!r}]")]
    if isinstance(tree, (list, tuple)):
        return [x for k, t in enumerate(tree) for x in spelled(t, f"{text}[{k}]")]
    return [text]


@contextlib.contextmanager
def deadline(seconds):
    def stop(signum, frame):
        raise TimeoutError(f"over {seconds} s")
    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


def reason(error, stage):
    """The first line of a message, without the names and numbers of this program."""
    line = (str(error).strip().splitlines() or [""])[0]
    line = re.sub(r"\b(" + "|".join(NAMES + HOSTILE + ("a", "b", "c", "s", "params", r"n\d+", "i+", "j", "k",
                                                       r"step_\d+")) + r")(_\d+)?\b", "_", line)
    line = re.sub(r"\d+", "N", line)[:110]
    return f"{type(error).__name__} {line}" if stage == "grad" else f"{stage}: {type(error).__name__} {line}"


# -- shrinking -----------------------------------------------------------------------------------------------

def smaller(source):
    """Programs with one part less."""
    count = sum(1 for _ in ast.walk(ast.parse(source)))
    for k in range(count):
        for how in range(4):
            tree = ast.parse(source)
            nodes = list(ast.walk(tree))
            if k < len(nodes) and cut(nodes[k], how, tree):
                try:
                    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
                except Exception:
                    continue
                if text != source and len(text) < len(source):
                    yield text


def cut(node, how, tree):
    if isinstance(node, (ast.For, ast.While, ast.If)) and how < 2:
        parent, field = owner(tree, node)
        body = node.body if how == 0 else node.orelse
        at = field.index(node)
        field[at:at + 1] = body
        return bool(field)
    if isinstance(node, ast.stmt) and how == 2:
        parent, field = owner(tree, node)
        if field is None or (len(field) == 1 and isinstance(parent, (ast.FunctionDef, ast.Module))):
            return False
        field.remove(node)
        if not field and getattr(parent, "body", None) is field:
            field.append(ast.Pass())
        return True
    if isinstance(node, ast.expr):
        parts = {ast.BinOp: lambda n: [n.left, n.right], ast.UnaryOp: lambda n: [n.operand],
                 ast.Call: lambda n: n.args[:2],
                 ast.IfExp: lambda n: [n.body, n.orelse], ast.Subscript: lambda n: [n.value],
                 ast.BoolOp: lambda n: n.values[:2],
                 ast.Attribute: lambda n: [n.value]}.get(type(node), lambda n: [])(node)
        if how < len(parts):
            swap(tree, node, parts[how])
            return True
        if how == 3 and isinstance(node, (ast.BinOp, ast.Call, ast.Subscript)):
            swap(tree, node, ast.Constant(0.7))
            return True
    return False


def owner(tree, node):
    for parent in ast.walk(tree):
        for name in ("body", "orelse"):
            field = getattr(parent, name, None)
            if isinstance(field, list) and any(n is node for n in field):
                return parent, field
    return None, None


def swap(tree, old, new):
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list):
                value[:] = [new if v is old else v for v in value]


def shrink(case, jit, seconds=240):
    first = check(case, jit)
    if first.kind not in ("wrong", "failed", "refused"):
        return case, first
    mark = signature(first)
    until, again = time.time() + seconds, True
    while again and time.time() < until:
        again = False
        for text in smaller(case.source):
            if time.time() > until:
                break
            smaller_case = case._replace(source=text)
            try:
                with deadline(10), warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    value = compiled(smaller_case)["f"](*copy.deepcopy(case.args), **case.extra)
                if np.ndim(value) or not np.isfinite(value):
                    continue
            except Exception:
                continue
            outcome = check(smaller_case, jit)
            if signature(outcome) == mark:
                case, first, again = smaller_case, outcome, True
                break
    return case, first


def signature(outcome):
    detail = re.sub(r"off by.*|at \w+\.py:\d+|[\d.]+", "", outcome.detail)
    return outcome.kind, detail[:60] if outcome.kind != "wrong" else outcome.detail.split(":")[0]


# -- many programs -------------------------------------------------------------------------------------------

def is_wide(seed, family):
    return family == "wide" or family == "mixed" and seed % 2 == 1


def run(seed, percent, family="plain"):
    case = make(seed, is_wide(seed, family))
    return seed, check(case, jit=random.Random(seed * 7 + 1).random() * 100 < percent)


def outcomes(seeds, jobs, percent, family="plain"):
    if jobs == 1:
        yield from (run(seed, percent, family) for seed in seeds)
        return
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, seed, percent, family) for seed in seeds]):
            yield done.result()


def show(case, outcome):
    import gradscribe as gs
    print(case.source)
    print("arguments:", {k: v for k, v in zip("abscp", case.args)}, case.extra, case.dtype, "\n")
    try:
        print(gs.grad(compiled(case)["f"], case.argnums).source_for(*copy.deepcopy(case.args), **case.extra))
    except Exception:
        traceback.print_exc(limit=-4)
    print(outcome.kind.upper(), outcome.detail, f"({outcome.seconds:.2f} s)")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed-only", type=int)
    parser.add_argument("--shrink", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--wide", action="store_true", help="programs that write into arrays and leave loops")
    parser.add_argument("--mixed", action="store_true", help="odd seeds are wide")
    parser.add_argument("--jit", type=float, default=0, help="per cent of the programs that are compiled, too")
    parser.add_argument("--generator", action="store_true", help="only check the programs and their reference")
    parser.add_argument("-v", action="store_true", help="show the program and what is emitted")
    options = parser.parse_args(argv)
    family = "wide" if options.wide else "mixed" if options.mixed else "plain"
    if options.generator:
        return generator(range(options.start, options.start + options.count), options.v, family)
    if options.shrink is not None:
        case, outcome = shrink(make(options.shrink, is_wide(options.shrink, family)), options.jit > 0)
        show(case, outcome)
        return 1
    if options.seed_only is not None:
        case = make(options.seed_only, is_wide(options.seed_only, family))
        outcome = check(case, options.jit > 0)
        if options.v:
            show(case, outcome)
        print(outcome.kind, outcome.detail)
        return outcome.kind in ("wrong", "failed")
    tally, reasons, start = collections.Counter(), collections.Counter(), time.time()
    seeds = range(options.start, options.start + options.count)
    for done, (seed, outcome) in enumerate(outcomes(seeds, options.jobs, options.jit, family), 1):
        tally[outcome.kind] += 1
        if outcome.kind == "refused":
            reasons[outcome.detail] += 1
        if outcome.kind in ("wrong", "failed") or options.v and outcome.kind == "refused":
            name = f"{seed} (wide)" if is_wide(seed, family) else seed
            print(f"{outcome.kind.upper()} seed {name}: {outcome.detail}", flush=True)
        if done % 500 == 0:
            print(f"  {done} programs, {time.time() - start:.0f} s, {dict(tally)}", flush=True)
    for text, n in reasons.most_common():
        print(f"  {n:5} refused: {text}")
    print(f"{tally['right']} right, {tally['refused']} refused ({len(reasons)} reasons), {tally['wrong']} wrong, "
          f"{tally['failed']} failed, {tally['discarded']} near a kink, {time.time() - start:.0f} s")
    return bool(tally["wrong"] + tally["failed"])


def of_a_vector(case):
    """The program as a function of all its numbers in a row."""
    f, g = compiled(case)["f"], compiled(case, numpy=ComplexBuffers())["f"]
    return lambda x: (g if np.iscomplexobj(x) else f)(*copy.deepcopy(unflat(case.args, x)), **case.extra)


def generator(seeds, verbose, family="plain"):
    tally = collections.Counter()
    for seed in seeds:
        case = make(seed, is_wide(seed, family))
        if verbose:
            print(case.source)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                sizes = [flat(a).size for a in case.args]
                g, tolerance = gradient(of_a_vector(case), flat(case.args), sizes, np.random.default_rng(1))
            tally["complex step" if tolerance <= 1e-9 * (1 + np.max(np.abs(g), initial=0)) else "differences"] += 1
            tally["zero gradient"] += not np.any(g)
        except Kink:
            tally["kink"] += 1
    print(dict(tally))
    return 0


if __name__ == "__main__":
    sys.exit(main())
