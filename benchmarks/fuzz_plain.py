"""Random programs of the plain family: arithmetic, containers, branches, loops and functions."""
import ast
import collections
import math
import re

NAMES = ("u", "v", "w", "p", "q", "h", "z", "g", "e", "m1", "x", "y", "acc", "out", "val", "r2", "tmp")
HOSTILE = ("dx", "da", "db", "ds", "dy", "x_saved", "u_saved", "a_dot", "s_dot", "t", "t_1", "y_1", "grad_f", "i_1",
           "count", "f_1")
ARITHMETIC = {"tanh", "sin", "cos", "arctan", "square", "exp", "sqrt", "log1p", "log", "abs", "sinh", "expm1", "add",
              "multiply", "maximum",
              "minimum", "hypot", "logaddexp", "power", "where", "cumsum", "outer", "zeros", "ones", "full"}


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
        """An expression of a shape that moves, joins or selects entries; None if there is none."""
        if shape == ():
            return self.entry()
        axis = self.r.randint(0, len(shape) - 1)
        forms = [self.joined, self.stacked, self.sliced, self.reordered, self.one_row, self.gathered, self.transposed,
                 self.widened, self.reshaped, self.copied]
        return forms[self.r.randint(0, 9)](shape, axis, depth)

    def entry(self):
        """A number from an array."""
        r = self.r
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

    def joined(self, shape, k, depth):
        """Two parts, joined."""
        r, n, at = self.r, shape[k], lambda length: shape[:k] + (length,) + shape[k + 1:]
        cut = r.randint(0, n)
        a, b = self.expr(at(cut), depth), self.expr(at(n - cut), depth)
        axis = "" if k == 0 and self.chance(0.6) else f", axis={k}"
        return r.choice([f"np.concatenate([{a}, {b}]{axis})", f"np.concatenate(({a}, {b}), axis={k - len(shape)})"])

    def stacked(self, shape, k, depth):
        r, n = self.r, shape[k]
        if not 1 <= n <= 3:
            return None
        rows = ", ".join(self.expr(shape[:k] + shape[k + 1:], depth - 1) for _ in range(n))
        if len(shape) == 1:
            return r.choice([f"np.array([{rows}])", f"np.stack([{rows}])"])
        return f"np.stack([{rows}], axis={k})" if k or self.chance(0.3) else f"np.stack(({rows},))"

    def sliced(self, shape, k, depth):
        """A slice of something longer."""
        r, n, at = self.r, shape[k], lambda length: shape[:k] + (length,) + shape[k + 1:]
        longer = [s[k] for _, s in self.leaves() if len(s) == len(shape) and s[k] > n and at(s[k]) == s]
        more = r.choice(longer) - n if longer else r.randint(1, 2)
        if not longer and self.chance(0.8):
            return None
        e, before = par(self.expr(at(n + more), depth)), ":, " * k
        return r.choice([f"{e}[{before}{more}:]", f"{e}[{before}:-{more}]", f"{e}[{before}:{n}]"])

    def reordered(self, shape, k, depth):
        """Every second row, or the rows in another order."""
        r, n, at = self.r, shape[k], lambda length: shape[:k] + (length,) + shape[k + 1:]
        e, before = par(self.expr(at(n), depth)), ":, " * k
        if n and self.chance(0.3):
            return f"{par(self.expr(at(2 * n), depth))}[{before}::2]"
        return r.choice([f"{e}[{before}::-1]", f"np.flip({e}, axis={k})", f"np.roll({e}, 1, axis={k})",
                         f"np.cumsum({e}, axis={k})"])

    def one_row(self, shape, k, depth):
        """One row of an array with one more axis."""
        length = max(1, self.some_length())
        if not self.likely(shape[:k] + (length,) + shape[k:]):
            return None
        e = par(self.expr(shape[:k] + (length,) + shape[k:], depth))
        return f"{e}[{':, ' * k}{self.index(length)}]"

    def gathered(self, shape, k, depth):
        """Rows by an array of indices."""
        r, n, at = self.r, shape[k], lambda length: shape[:k] + (length,) + shape[k + 1:]
        if not n:
            return None
        length = max(1, self.some_length())
        if not self.likely(at(length)):
            return None
        index = "[" + ", ".join(str(r.randint(-length, length - 1)) for _ in range(n)) + "]"
        e = par(self.expr(at(length), depth))
        return f"{e}[{':, ' * k}np.array({index})]"

    def transposed(self, shape, k, depth):
        r = self.r
        if len(shape) < 2:
            return None
        e = self.expr(shape[::-1], depth)
        return r.choice([f"{par(e)}.T", f"np.transpose({e})", f"{par(e)}.transpose()"])

    def widened(self, shape, k, depth):
        r = self.r
        if len(shape) != 2:
            return None
        if shape[1] == 1 and self.chance(0.8):
            e = self.expr(shape[:1], depth)
            return r.choice([f"{par(e)}[:, None]", f"np.expand_dims({e}, 1)", f"{par(e)}[:, np.newaxis]",
                             f"np.reshape({e}, (-1, 1))"])
        e = self.expr(shape[1:], depth)
        return f"{par(e)}[None, :]" if shape[0] == 1 else f"np.broadcast_to({e}, {self.dims(shape)})"

    def reshaped(self, shape, k, depth):
        r = self.r
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

    def copied(self, shape, k, depth):
        r, n, at = self.r, shape[k], lambda length: shape[:k] + (length,) + shape[k + 1:]
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
            new = lambda t, s: self.r.choice([t, f"np.tanh({self.expr(s, 1)})", f"{t} * 0.9"])      # noqa: E731 (a one-line shorthand)
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
        if kind in ("rows", "zip", "enumerate") and arrays or kind == "box" and not boxes and arrays:
            head, trips, bound = self.over_array(kind, i, arrays)
        elif kind in ("box", "enumerate", "zip") and boxes:
            head, trips, bound = self.over_box(kind, i, boxes)
        else:
            head, trips, bound = *self.over_range(i, accumulator), {}
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

    def over_array(self, kind, i, arrays):
        """(head, number of passes, {name: shape}) of a loop over the rows of an array; i: a name for its index."""
        r = self.r
        t, s = r.choice(arrays)
        trips, row = s[0], self.fresh()
        bound = {row: s[1:]}
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
        return head, trips, bound

    def over_box(self, kind, i, boxes):
        """The same of a loop over a container of equal elements."""
        r, bound = self.r, {}
        b, tree = r.choice(boxes)
        trips, element = len(items(tree)), items(tree)[0]
        over = f"reversed({b})" if self.chance(0.2) else (f"{b}[1:]" if trips > 1 and self.chance(0.15) else b)
        trips -= over.endswith("[1:]")
        if isinstance(element, Tup):
            names = r.sample(["W", "bias", "c1", "c2"], len(items(element)))
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
        return head, trips, bound

    def over_range(self, i, accumulator):
        """(head, number of passes) of a loop over a range."""
        r = self.r
        n = r.choice([0, 1, 2, 3, 3, 4])
        start, step = r.choice([(0, 1), (0, 1), (0, 1), (1, 1), (1, 2), (n, -1)])
        span = range(start, n, step) if step > 0 else range(n - 1, -1, -1)
        text = f"{span.start}, {span.stop}" + (f", {step}" if step != 1 else "")
        if (start, step) == (0, 1):
            text = self.length(n) if n else "0"
        if not len(span):
            text, span = "0" if self.chance(0.2) else "2", range(2)
            span = range(int(text))
        self.ints[i] = (min(span, default=0), max(span, default=0))
        head = f"{i} in reversed(range({text}))" if self.chance(0.12) else f"{i} in range({text})"
        if accumulator and self.ints[i] == (0, 0):
            self.ints.pop(i)
        return head, len(span)

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
