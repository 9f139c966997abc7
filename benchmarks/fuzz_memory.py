"""Random programs of the memory family: short ones about what shares memory with what, sequences inside sequences,
dtypes that meet, and derivatives given by the user.

A program is written by running it: a statement is drawn from what the names hold so far, and stays if NumPy runs it
without a warning and all numbers stay tame.  So a new form is one more line of a list here, and needs no shapes.
"""
import math
import warnings

import numpy as np

GIVEN = {
    "same": ("@gs.custom_vjp", "def same(v):", "    return v", "", "",
             "same.defvjp(lambda v: (v, None), lambda kept, dy: (dy,))"),
    "later": ("@gs.custom_vjp", "def later(v):", "    return v[1:]", "", "",
              "later.defvjp(lambda v: (v[1:], v), lambda kept, dy: (np.concatenate([np.zeros_like(kept[:1]), dy]),))"),
    "turned": ("@gs.custom_jvp", "def turned(v):", "    return v[::-1]", "", "",
               "turned.defjvp(lambda v, v_dot: (v[0][::-1], v_dot[0][::-1]))"),
    "passed": ("@gs.custom_jvp", "def passed(v):", "    return v", "", "",
               "passed.defjvp(lambda v, v_dot: (v[0], v_dot[0]))"),
    "squared": ("@gs.custom_vjp", "def squared(v):", "    return v * v", "", "",
                "squared.defvjp(lambda v: (v * v, v), lambda v, dy: (2.0 * v * dy,))"),
    "tripled": ("@gs.custom_jvp", "def tripled(v):", "    return 3 * v", "", "",
                "tripled.defjvp(lambda v, v_dot: (3 * v[0], 3 * v_dot[0]))"),
    "known": ("def known(v):", "    return v[:]", "", "", '@gs.rule.linear(known, "v")', "class known_rule:",
              "    def vjp_v(dy, v):", "        return dy"),
    "first": ("def first(v):", "    return v[:1]", "", "", '@gs.rule.linear(first, "v")', "class first_rule:",
              "    def vjp_v(dy, v):", "        return np.concatenate((dy, np.zeros_like(v[1:])))"),
    "cubed": ("def cubed(v):", "    return v ** 3", "", "", "@gs.rule.elementwise(cubed)", "class cubed_rule:",
              "    def partial_v(v):", "        return 3.0 * v ** 2"),
}
HELPERS = {
    "put_first": ("def put_first(v, c):", "    v[0] = c * c"),
    "shift": ("def shift(v):", "    v[1:] += 0.5 * v[:-1]", "    return v"),
    "mix": ("def mix(v, u):", "    v += 0.5 * u", "    u *= 0.7"),
    "head": ("def head(v):", "    return v[:2]"),
    "keep": ("def keep(v, c):", "    if c > 0.1:", "        return v", "    return v * 1.0"),
    "renew": ("def renew(v):", "    v = v * 2.0", "    v[0] = 0.3", "    return v"),
    "clear": ("def clear(v, k=0):", "    v[k] = 0.0", "    return np.sum(v ** 2)"),
    "pair": ("def pair(v):", "    return v, v"),
    "record": ("def record(rows, v):", "    rows.append(v)", "    v *= 0.5", "    return rows"),
    "swap": ("def swap(v, u):", "    return u, v"),
}
OWN = ("W", "rows", "row", "box", "pile", "cur")


class Memory:
    """Writes one program. `state` is what the names hold after the lines so far."""

    def __init__(self, r):
        self.r, self.lines = r, []
        self.hidden, self.indices, self.depth = set(), [], 0

    def chance(self, p):
        return self.r.random() < p

    def of(self, *forms):
        return self.r.choice(forms)

    # the program

    def program(self):
        r = self.r
        n = r.choice([1, 2, 3, 4, 4, 5, 5, 0]) if self.chance(0.5) else r.choice([3, 4])
        self.n = n
        tree = {"x": (n,)}
        if self.chance(0.5):
            tree["t"] = ()
        if self.chance(0.4):
            tree["m"] = r.choice([(2, 3), (3, 3), (2, 2), (2, max(n, 1)), (max(n, 1), max(n, 1)), (1, 3)])
        if self.chance(0.3):
            tree["y"] = (n,)
        rng = np.random.default_rng(r.randrange(10 ** 6))
        self.given = {k: rng.standard_normal(s) * 0.6 if s else float(rng.standard_normal() * 0.6)
                      for k, s in tree.items()}
        self.mutates = self.chance(0.2)
        self.preamble, self.functions, self.globals_ = [], {"np": np, "math": math}, []
        self.state = self.run([])
        if self.chance(0.3):
            self.whole_constant()
        themes = [self.sequence, self.view, self.written, self.typed, self.spectrum, self.custom, self.held,
                  self.helper,
                  self.loop, self.branch, self.read]
        weights = [r.choice([0, 0, 1, 4]) for _ in themes]
        weights[1:3] = [w + 1 for w in weights[1:3]]
        weights[-1] = 1.5
        self.themes = themes, weights
        if self.chance(0.6):
            self.put(f"s = {self.of('0.0', 'np.sum(x ** 2)', 'np.sum(np.sin(x))')}")
        if self.chance(0.25):
            self.put(self.of("n = x.shape[0]", "n = len(x)", "n = x.size"))
        if not self.mutates:
            self.put(self.of("a = x.copy()", "a = x * 1.0", "a = np.sin(x)", "a = np.zeros_like(x)", "a = np.array(x)"))
        for _ in range(r.choice([1, 2, 3, 3, 4, 5, 6, 8])):
            self.statement()
        self.put(f"return {self.result()}", last=True)
        body = "\n".join("    " + line for line in self.lines)
        text = "\n\n\n".join([*self.globals_, *self.preamble, f"def f({', '.join(tree)}):\n{body}"]) + "\n"
        return text, tree, {}

    def statement(self):
        for _ in range(6):
            kind = self.r.choices(*self.themes)[0]
            if kind():
                return True
        return False

    def run(self, lines):
        """What the names hold after the lines; None if they do not run."""
        space = {**self.functions, **{k: np.copy(v) if isinstance(v, np.ndarray) else v for k, v in self.given.items()}}
        for name, text in self.constants().items():
            space[name] = eval(text, {"np": np})
        own = set(space) - set(self.given) - set(self.constants())
        first = dict(space)
        from fuzz_programs import deadline
        try:
            with deadline(2), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("error")
                exec("\n".join(lines), space)
        except Exception:
            return None
        kept = {k: eval(text, {"np": np}) for k, text in self.constants().items()}
        if not self.mutates:
            kept.update(self.given)
        if not all(np.array_equal(first[k], v) for k, v in kept.items()):
            return None
        state = {k: v for k, v in space.items() if k not in own and not k.startswith("__")}
        return state if all(tame(v) for v in state.values()) else None

    def constants(self):
        return dict(line.split(" = ", 1) for line in self.globals_)

    def put(self, *lines, last=False):
        """The lines stay if NumPy runs them."""
        state = self.run(self.lines + [line.removeprefix("return ") if last else line for line in lines])
        if state is None:
            return False
        self.state = {k: v for k, v in state.items() if k not in self.hidden}
        self.lines += lines
        return True

    def whole_constant(self):
        n = self.n
        text = self.of(f"np.arange({n})", f"np.linspace(0.5, 1.5, {n})", f"np.array({[0.3 * k for k in range(n)]})",
                       f"np.ones({n})", f"np.array({list(range(1, n + 1))})", "np.array([1, 2, 3])")
        self.globals_.append(f"W = {text}")
        self.state = self.run(self.lines)

    # what the names hold

    def arrays(self, kinds="f", rank=None, shape=None):
        return [k for k, v in self.state.items() if isinstance(v, np.ndarray) and v.dtype.kind in kinds
                and (rank is None or v.ndim == rank) and (shape is None or v.shape == shape)]

    def numbers(self):
        return [k for k, v in self.state.items() if isinstance(v, (float, np.floating)) and k != "W"]

    def containers(self):
        return [k for k, v in self.state.items() if isinstance(v, (list, tuple, dict)) and len(v)
                and all(isinstance(u, np.ndarray) for u in (v.values() if isinstance(v, dict) else v))]

    def a(self, kinds="f", rank=None, shape=None):
        """The name of an array; late ones are likelier."""
        found = self.arrays(kinds, rank, shape)
        if not found:
            return None
        return self.r.choice(found[-2:] if self.chance(0.5) else found)

    def name(self):
        if self.chance(0.15):
            found = [k for k in self.arrays() if k != "W"]
            if found:
                return self.r.choice(found)
        for name in ("a", "b", "c", "d", "u", "v", "w", "p", "q", "g", "h", "z"):
            if name not in self.state and name not in self.hidden:
                return name
        return self.of("a", "b", "c", "d")

    def index(self, n):
        if n <= 0:
            return "0"
        forms = [str(self.r.randrange(n)), "0", "-1"]
        if self.indices:
            i = self.r.choice(self.indices)
            forms += [i, i, i, f"{i} - 1"]
        return self.r.choice(forms)

    def scalar(self, depth=1):
        forms = [self.of("0.5", "1.0", "2.0", "0.0", "3", "-0.7")] if depth else ["t"] if "t" in self.state else ["1.5"]
        names = self.numbers()
        if names:
            forms += [self.r.choice(names)] * 3
        v = self.a(self.of("f", "f", "f", "fi"), 1)
        if v and np.size(self.state[v]):
            forms += [f"{v}[{self.index(np.size(self.state[v]))}]"] * 4
        m = self.a("f", 2)
        if m and np.size(self.state[m]):
            i, j = (self.index(k) for k in self.state[m].shape)
            forms += [f"{m}[{i}, {j}]"] * 2
        if depth:
            e = self.scalar(0)
            forms += [f"np.sin({e})", f"{e} * {self.scalar(0)}", f"{e} ** 2", f"np.cos({e})", f"{e} + {self.scalar(0)}"]
            if v:
                forms += [f"np.sum({v})", f"np.sum({v} ** 2)"]
        return self.r.choice(forms)

    def listed(self, n):
        """A list of n numbers, written out."""
        inner = ", ".join(self.scalar() for _ in range(n))
        if self.chance(0.25):
            return f"({inner},)" if n == 1 else f"({inner})"
        return f"[{inner}]"

    def vector(self, n, kinds="f"):
        forms = self.arrays(kinds, shape=(n,)) * 3
        for v in self.arrays(kinds, 1):
            size = np.size(self.state[v])
            if size == n + 1:
                forms += [f"{v}[1:]", f"{v}[:-1]"]
            if size > n >= 1:
                forms += [f"{v}[:{n}]"]
        for m in self.arrays(kinds, 2):
            p, q = self.state[m].shape
            forms += [f"{m}[{self.index(p)}]"] * (q == n and p > 0) + [f"{m}[:, {self.index(q)}]"] * (p == n and q > 0)
        if n <= 5:
            forms += [self.listed(n)] * 3
        forms += [f"np.ones({n})", f"np.arange({n})"]
        return self.r.choice(forms)

    def size(self):
        v = self.a("f", 1)
        return np.size(self.state[v]) if v and self.chance(0.8) else self.r.choice([2, 3])

    def value(self, shape, kinds="f"):
        """Something that may be written into a place of this shape."""
        if shape == () or self.chance(0.3):
            return self.scalar()
        found = self.arrays(kinds, shape=shape)
        forms = []
        for v in self.r.sample(found, min(2, len(found))):
            forms += [v, f"{v} * 0.5", f"np.sin({v})", f"{v} * {v}", f"{v}[::-1]"]
        if len(shape) == 1:
            forms += [self.vector(shape[0], kinds)] * 2
        if len(shape) == 2:
            forms += [self.vector(shape[1], kinds)]
        return self.r.choice(forms or [self.scalar()])

    # statements

    def bind(self, text):
        return self.put(f"{self.name()} = {text}")

    def whole(self, text):
        """The value of an expression is bound, or read at once."""
        if self.chance(0.6) or not self.numbers():
            return self.bind(text)
        return self.put(f"{self.r.choice([k for k in self.numbers()])} += np.sum(({text}) ** 2)")

    def read(self):
        v = self.a(self.of("f", "f", "fib"))
        c = self.state.get("s")
        if not v:
            return False
        w = self.weighted(v)
        if c is not None and "s" in self.numbers():
            return self.put(f"s {self.of('+=', '+=', '= s +', '-=')} {w}")
        return self.put(f"s = {w}")

    def weighted(self, v):
        forms = [f"np.sum({v} ** 2)", f"np.sum(np.sin({v}))", f"0.5 * np.sum({v} * {v})", f"{v}.sum()",
                 f"np.sum(np.cos({v}) * {v})"]
        shape = self.state[v].shape
        if len(shape) == 1:
            forms += [f"3 * np.sum({v} * np.arange({shape[0]}))", f"np.sum({v} * {self.vector(shape[0], 'fi')})",
                      f"{v} @ np.linspace(0.5, 1.5, {shape[0]})",
                      f"2 * np.sum(np.array({list(range(1, shape[0] + 1))}) * {v})"]
        if len(shape) == 2:
            forms += [f"np.sum({v} * np.arange({shape[1]}))", f"np.sum({v}[0] ** 2)", f"np.trace({v})"]
        return self.r.choice(forms)

    def sequence(self):
        n, k = self.size(), self.r.choice([1, 2, 2, 3])
        s, s2, row, row2 = self.scalar(), self.scalar(), self.listed(n), self.vector(n)
        v, u = self.a("f", 1) or "x", self.vector(n)
        size = np.size(self.state[v])
        rows = ", ".join(self.listed(n) for _ in range(k))
        m = self.a("f", 2)
        forms = [f"np.concatenate([{v}, [{s}]])", f"np.concatenate(([{s}], {v}))", f"np.concatenate([{u}, {row}])",
                 f"np.concatenate([{v}, ({s}, {s2})])", f"np.concatenate([[{s}], {v}, [{s2}]])",
                 f"np.concatenate([[{row}], [{u}]])",
                 f"np.concatenate([[{row}, {row2}], [{u}]], axis={self.of(0, 1, -1)})",
                 f"np.vstack([{rows}])", f"np.vstack([{u}, {row}])", f"np.vstack(({row}, {u}))",
                 f"np.stack([{rows}])", f"np.stack([{u}, {row}])", f"np.stack([{u}, {row}], axis={self.of(1, -1)})",
                 f"np.hstack([{v}, [{s}]])", f"np.hstack([{s}, {v}])", f"np.hstack(({row}, {u}))",
                 f"np.column_stack([{u}, {row}])", f"np.column_stack(({row}, {row2}))", f"np.array([{u}, {row}])",
                 f"np.array([{rows}])", f"np.array([[{s}, 1.0], [{s2}, {s}]])", f"np.array([{s}, [{s2}][0], 1])",
                 f"np.array([({s}, {s2}), ({s2}, 0)])", f"np.append({v}, {row})", f"np.append({v}, {s})",
                 f"np.append([{row}], [{u}], axis=0)", f"np.einsum('i,i->', {row}, {u})",
                 f"np.einsum('i,i', {u}, {row})",
                 f"np.einsum('i,j->ij', {row}, {u})", f"np.einsum('ij,j->i', [{rows}], {u})", f"np.dot({row}, {u})",
                 f"np.inner({u}, {row})", f"np.outer({row}, {u})", f"np.meshgrid({u}, [{s}, {s2}])[{self.of(0, 1)}]",
                 f"np.choose({[j % 2 for j in range(n)]}, [{u}, {row}])", f"np.choose({self.of(0, 1)}, [{u}, {row}])",
                 f"np.select([{v} > 0.2, {v} > -0.3], [{self.vector(size)}, {self.vector(size)}], {s})",
                 f"np.select([{[j % 2 == 0 for j in range(n)]}, {[j % 3 == 0 for j in range(n)]}], [{row}, {u}])",
                 f"np.where({v} > 0.1, {self.vector(size)}, {self.listed(size)})",
                 f"np.where({[j % 2 == 0 for j in range(n)]}, {row}, {u})", f"np.sum([{u}, {row}], axis=0)",
                 f"np.sum([{s}, {s2}])", f"np.mean([{s}, {s2}, 1.0])", f"np.mean([{rows}], axis={self.of(0, 1)})",
                 f"np.prod([{s}, {s2}])", f"np.var([{s}, {s2}, 1])", f"np.max([{s}, {s2}])", f"np.cumsum({row})",
                 f"np.linalg.norm([{s}, {s2}, 1.0])", f"np.cross([{s}, {s2}, 1.0], [0.3, {s}, {s2}])",
                 f"np.interp({s}, [-9.0, 0.1, 9.0], [{s}, {s2}, 1.0])", f"np.polyval([{s}, {s2}, 0.5], {v})",
                 f"np.average({u}, weights={[j + 1 for j in range(n)]})", f"np.add({row}, {u})",
                 f"{v} * {self.vector(size)}",
                 f"{v} + {self.listed(size)}", f"{self.listed(size)} * {v}", f"np.maximum({v}, {self.listed(size)})",
                 f"np.full({n}, {s})", f"np.full((2, {n}), {row})", f"np.tile({row}, 2)", f"np.repeat({row}, 2)",
                 f"np.broadcast_to({row}, (2, {n}))", f"np.asarray({row})", f"np.asarray([{rows}]).T",
                 f"sum([{u}, {row2}])",
                 f"np.r_[{s}, {v}]", f"np.r_[{v}, {row}]", f"np.c_[{v}, {self.vector(size)}]",
                 f"np.insert({v}, 0, {s})",
                 f"np.block([[{v}, {row}]])", f"np.diag({row})", f"np.trapezoid({row})", f"np.flip({row})",
                 f"np.dstack([{u}, {row}])", f"np.multiply.outer({row}, {v})", f"np.kron({row}, [{s}, 1.0])",
                 f"np.convolve({v}, [{s}, {s2}])", f"np.roll({row}, 1)", f"np.pad({row}, 1)", f"np.diff({row})",
                 f"np.array({row})[{[0] * min(n, 1)}]", f"np.matmul([[{s}, {s2}], [1.0, {s}]], [{s2}, 2.0])",
                 f"[{u}, {row}][{self.of(0, 1, -1)}]", f"np.array([{s}, {s2}]) @ np.array([[1, 2], [3, 4]])"]
        if m:
            p, q = self.state[m].shape
            wide, tall = self.listed(q), self.listed(p)
            forms += [f"np.concatenate([{m}, [{wide}]])", f"np.vstack([{m}, {wide}])",
                      f"np.append({m}, [{wide}], axis=0)",
                      f"np.vstack(({wide}, {m}, {self.vector(q)}))", f"np.column_stack([{m}, {tall}])", f"{m} @ {wide}",
                      f"np.dot({tall}, {m})", f"np.einsum('ij,j->i', {m}, {wide})", f"np.array([*{m}, {wide}])",
                      f"np.stack([{m}, [{', '.join(self.listed(q) for _ in range(p))}]])", f"{m} + {wide}",
                      f"np.linalg.solve([[2.0, {s}], [0.1, 3.0]], {self.listed(2)})",
                      f"np.where({m} > 0.1, {wide}, {m})"]
        if self.chance(0.15):
            return self.rows()
        return self.whole(self.r.choice(forms))

    def rows(self):
        """Rows that are lists, appended one by one."""
        name, k = self.name(), self.r.choice([2, 3])
        j = self.of("i", "j")
        self.indices.append(j)
        row = self.of(self.listed(2), self.listed(3), f"[{self.scalar()}, {j}]", f"({self.scalar()}, 1)", self.scalar(),
                      self.vector(self.size()))
        self.indices.pop()
        done = self.of("np.array(rows)", "np.stack(rows)", "np.vstack(rows)", "np.concatenate(rows)", "np.sum(rows)",
                       "np.column_stack(rows)", "np.sum(rows, axis=0)", "np.hstack(rows)")
        if self.chance(0.4):
            return self.put(f"{name} = {done.replace('rows', f'[{row} for {j} in range({k})]')}")
        return self.put("rows = []", f"for {j} in range({k}):", f"    rows.append({row})", f"{name} = {done}")

    def view(self):
        """Another name for an array or a part of it, or for a copy."""
        v = self.a(self.of("f", "f", "f", "f", "fic"))
        if not v:
            return False
        rank, shape = self.state[v].ndim, self.state[v].shape
        u = self.a("f", shape=shape) or v
        forms = [v, f"{v}[:]", f"{v}[...]", f"np.asarray({v})", f"np.real({v})", f"{v}.real", f"np.array({v})",
                 f"{v}.copy()", f"np.copy({v})", f"np.asarray({v}, dtype=float)", f"{v}.astype(float)",
                 f"{v}.astype(float, copy=False)", f"np.asanyarray({v})", f"np.ascontiguousarray({v})",
                 f"{v}.reshape(-1)",
                 f"{v}.ravel()", f"np.ravel({v})", f"{v}.flatten()", f"np.squeeze({v})", f"np.expand_dims({v}, 0)",
                 f"{v}[None]", f"{v}.T", f"np.transpose({v})", f"np.atleast_1d({v})", f"np.atleast_2d({v})", f"+{v}",
                 f"np.diff({v}, n=0)", f"{v} if {self.test()} else {u}", f"({v}, {u})[{self.of(0, 1)}]",
                 f"np.flip({v})",
                 f"{{'k': {v}, 'l': {u}}}['k']", f"[{v}, {u}][{self.of(0, 1, -1)}]", f"{v} * 1.0", f"np.positive({v})",
                 f"np.broadcast_to({v}, (2,) + {v}.shape)", f"np.where({v} > 0, {v}, {u})", f"np.array({v}, copy=True)",
                 f"np.nan_to_num({v}, copy=False)", f"np.clip({v}, -5.0, 5.0)", f"{v}.view()", f"np.conj({v})",
                 f"{v}.conj()", f"{v}.squeeze()", f"np.require({v})", f"np.reshape({v}, -1)", f"np.array({v}, ndmin=2)",
                 f"np.broadcast_arrays({v}, {u})[0]", f"np.resize({v}, {v}.shape)", f"np.tile({v}, 1)",
                 f"np.roll({v}, 1)",
                 f"np.copy({v}[::2])", f"np.array([{v}])[0]", f"np.stack([{v}, {u}])[0]", f"np.sort({v})"]
        if rank:
            forms += [f"{v}[1:]", f"{v}[:-1]", f"{v}[::2]", f"{v}[::-1]", f"{v}[::-2]", f"{v}[1:][::-1]",
                      f"{v}[::-1][1:]",
                      f"{v}[{v} > 0.0]", f"{v}[[0, -1]]", f"np.split({v}, [1])[{self.of(0, 1)}]", f"{v}[:0]",
                      f"{v}[-2:]",
                      f"np.array_split({v}, 2)[{self.of(0, 1)}]", f"np.take({v}, [0])", f"np.flipud({v})", f"{v}[:2]",
                      f"np.moveaxis({v}, 0, -1)", f"np.rollaxis({v}, 0)", f"np.swapaxes({v}, 0, -1)", f"{v}[0:1]"] * 2
        if rank == 1:
            forms += [f"{v}[:, None]", f"{v}.reshape(1, -1)", f"np.reshape({v}, (-1, 1))", f"{v}.reshape(2, -1)",
                      f"np.lib.stride_tricks.sliding_window_view({v}, 2)", f"np.diag({v})", f"np.einsum('i->i', {v})"]
            forms += [f"{v}[..., {self.index(shape[0])}]", f"{v}[..., 0]", f"np.reshape({v}[:1], ())"] * 2
        if rank == 2:
            i, j = self.index(shape[0]), self.index(shape[1])
            forms += [f"{v}[{i}]", f"{v}[:, {j}]", f"{v}.T[{j}]", f"np.einsum('ij->ji', {v})",
                      f"np.diagonal({v}).copy()",
                      f"np.einsum('ii->i', {v})", f"np.diag({v}).copy()", f"{v}.swapaxes(0, 1)", f"{v}.transpose()",
                      f"{v}[:, ::-1]", f"{v}[::-1, 1:]", f"{v}.reshape({v}.shape[::-1])", f"np.swapaxes({v}, 0, 1)",
                      f"np.rot90({v})", f"np.rot90({v}, 2)", f"np.fliplr({v})", f"{v}.T.reshape(-1)", f"{v}.T.ravel()",
                      f"{v}[1:].T", f"np.hsplit({v}, [1])[0]", f"np.vsplit({v}, [1])[1]", f"np.moveaxis({v}, 0, 1)",
                      f"{v}[:, :1]", f"{v}[{i}][1:]", f"{v}.T.T", f"np.tril({v})", f"np.diagonal({v})", f"np.triu({v})",
                      f"np.einsum('ij->ij', {v})", f"np.matrix_transpose({v})", f"np.permute_dims({v}, (1, 0))"] * 2
        before, name = len(self.lines), self.name()
        if not self.put(f"{name} = {self.r.choice(forms)}"):
            return False
        if self.chance(0.75):
            target = self.of(v, name, name)
            if isinstance(self.state.get(target), np.ndarray):
                self.written(target)
        return len(self.lines) > before

    def test(self):
        forms = [f"{self.scalar(0)} > {self.of('0.2', '-0.3', '0.05')}"]
        forms += [f"{self.r.choice(self.indices)} > 0"] if self.indices else []
        return self.r.choice(forms)

    def place(self, v):
        """A part of an array, as a target."""
        shape = self.state[v].shape
        if not shape:
            return "[...]", ()
        n, rest = shape[0], shape[1:]
        i = self.index(n)
        forms = [(f"[{i}]", rest)] * 5 + [("[:]", shape), ("[...]", shape), ("[1:]", (n - 1,) + rest),
                                          ("[:-1]", (n - 1,) + rest),
                                          ("[::2]", ((n + 1) // 2,) + rest), ("[::-1]", shape), ("[1:][0]", rest),
                                          ("[[0, -1]]", (2,) + rest), (f"[{v} > 0.1]", ()), ("[:1]", (1,) + rest)]
        if rest:
            j = self.index(shape[1])
            forms += [(f"[{i}, {j}]", ()), (f"[:, {j}]", (n,)), (f"[{i}][{j}]", ()), (f".T[{j}]", (n,)),
                      (f"[{i}, 1:]", (shape[1] - 1,)),
                      (f"[..., {j}]", (n,)), ("[:, ::-1]", shape), (".reshape(-1)[0]", ())]
        return self.r.choice(forms)

    def written(self, v=None):
        v = v or self.a(self.of("f", "f", "f", "fic"))
        if not v:
            return False
        place, shape = self.place(v)
        op = self.of("=", "=", "=", "+=", "-=", "*=")
        rank, whole = self.state[v].ndim, self.state[v].shape
        kinds = self.of("f", "f", "fi", "f")
        e = self.value(shape, kinds)
        e = f"+{e}" if place == "[::2]" else e          # NumPy copies a[::2] = a[:3] entry by entry, changed ones too
        forms = [f"{v}{place} {op} {e}"] * 10
        forms += [f"{v} {self.of('+=', '-=', '*=')} {self.value(whole, kinds)}"] * 3
        u = self.a("f", shape=whole) or v
        if rank:
            i, j = self.index(whole[0]), self.index(whole[0])
            forms += [f"{v}[1:] += {self.of('', '0.5 * ')}{v}[:-1]", f"{v}[:-1] *= {v}[1:]", f"{v}[1:] = {v}[:-1]",
                      f"{v}[:] = {v}[::-1]",
                      f"{v}[{i}], {v}[{j}] = {v}[{j}], {v}[{i}]", f"{v}[[0, 1]] = {v}[[1, 0]]", f"{v}[::-1] += {v}",
                      f"{v}.fill({self.scalar()})",
                      f"np.copyto({v}, {u})", f"np.add({v}, {u}, out={v})", f"np.multiply({v}, 0.5, out={v})",
                      f"np.sin({u}, out={v})", f"np.add.at({v}, [0, 0], {self.scalar()})",
                      f"np.multiply({u}, {u}, out={v})",
                      f"{v}[{i}] = {v}[{j}] * {self.scalar()}", f"{v}[{i}] = {u}[{j}] ** 2",
                      f"{v}[{i}] += {v}[{i}] * {u}[{j}]",
                      f"np.cumsum({u}, out={v})", f"np.put({v}, [0], {self.scalar()})",
                      f"{v}[{v} > {u}] = {self.scalar()}",
                      f"{v}[{v} > 0.2] *= {self.scalar()}", f"{v}[...] = {u} * {v}",
                      f"np.clip({v}, -0.5, 0.5, out={v})", f"{v}.sort()"]
        if rank == 2:
            forms += [f"np.fill_diagonal({v}, {self.scalar()})", f"{v}[:] = {v}.T", f"{v} += {v}.T",
                      f"{v}[0] += {v}[1]", f"{v}[:, 0] = {v}[:, -1]"]
        if u != v:
            forms += [f"{v}, {u} = {u}, {v}"] * 2 + [f"{u} = {v}", f"{v} = {u}"]
        if not self.put(self.r.choice(forms)):
            return False
        if self.chance(0.35):
            self.read()
        return True

    def typed(self):
        """Arrays of one dtype meet those of another."""
        n = self.size()
        v = self.a("f", 1) or "x"
        size, s = np.size(self.state[v]), self.scalar()
        ints = list(range(1, size + 1))
        w = self.a("ib", shape=(size,))
        forms = [f"np.zeros({n}, dtype=int)", f"np.zeros({n}, dtype=np.float32)", f"np.arange({n})",
                 f"np.array({ints})", f"{v} > 0.1",
                 f"{v} * np.array({ints})", f"3 * np.sum({v} * np.array({ints}))", f"np.dot({v}, {ints})",
                 f"{v} @ np.arange({size})", f"np.ones({n}, dtype=int)",
                 f"{v} * ({v} > 0.1)", f"({v} > 0.1) * 2", f"np.sum({v} > 0.1) * {s}", f"{v}.astype(np.float32)",
                 f"np.float32({s}) * {v}",
                 f"np.full({n}, 2)", f"{v} ** np.arange({size})", f"np.power({v}, {ints})", f"np.arange({size}) * {s}",
                 f"{v} / np.array({ints})",
                 f"np.where({v} > 0.1, np.arange({size}), {v})", f"np.array([1, 2, {s}])", f"{v}.astype(int)",
                 f"np.zeros_like(np.arange({n}))",
                 f"np.zeros(({n}, 2), dtype=np.float32)", f"np.sum({v}, dtype=np.float32)",
                 f"np.cumsum({v} > 0.1) * {v}", f"np.full({n}, {s}, dtype=np.float32)",
                 f"np.arange({n}, dtype=float)", f"np.zeros({n}, dtype=bool)", f"np.array({v}, dtype=np.float32)",
                 f"np.float32(0.5) * {v}", f"True * {v}",
                 f"np.array({ints}, dtype=np.float32) * {v}", f"np.arange({size})[::-1] * {v}",
                 f"np.outer(np.arange(3), {v})", f"np.eye({size}, dtype=int) @ {v}",
                 f"np.zeros_like({v})", f"np.zeros_like({v}, dtype=np.float32)", f"np.ones_like({v}, dtype=int)",
                 f"np.tri({size}, dtype=int) @ {v}"]
        if w:
            forms += [f"{w} * {v}", f"{v}[{w} > 0]", f"np.sum({w} * {v})", f"{v} - {w}", f"{w} @ {v}",
                      f"np.where({w} > 1, {v}, {w})", f"{w} / 2"] * 4
        name = self.name()
        if not self.put(f"{name} = {self.r.choice(forms)}"):
            return False
        if isinstance(self.state.get(name), np.ndarray) and self.chance(0.6):
            held = self.state[name]
            if held.size and held.ndim == 1 and self.chance(0.6):
                return self.put(self.of(f"{name}[:] = {self.vector(held.size)}",
                                        f"{name}[{self.index(held.size)}] = {self.scalar()}",
                                        f"{name}[:] = {self.of('2', '3')} * {self.a('f', shape=held.shape) or 1}",
                                        f"{name}[0] += {self.of('1', self.scalar())}",
                                        f"{name} = {name} * {self.scalar()}", f"{name} *= 2")) or True
            self.written(name)
        return True

    def spectrum(self):
        """Complex arrays: made, written into and read."""
        z = self.a("c")
        v = self.a("f", 1) or "x"
        size, s = np.size(self.state[v]), self.scalar()
        if not z or self.chance(0.35):
            return self.bind(self.of(f"np.fft.fft({v})", f"np.fft.rfft({v})", f"{v} + 0j", f"{v} * 1j",
                                     f"{v}.astype(complex)", f"np.zeros({size}, dtype=complex)",
                                     f"np.exp(1j * {v})", f"np.fft.ifft({v})", f"{v} + 2j * {v}[::-1]",
                                     f"np.array([{s}, 1j * {self.scalar()}])",
                                     f"np.fft.fft([{s}, 1.0, {self.scalar()}])", f"np.zeros_like({v}, dtype=complex)",
                                     f"complex({s}, 2.0) * {v}",
                                     f"np.fft.fft({v} + 1j * {v})", f"np.full({size}, 1j * {s})",
                                     f"np.asarray({v}, dtype=complex)"))
        shape = self.state[z].shape
        i = self.index(shape[0] if shape else 0)
        j = self.index(shape[0] if shape else 0)
        y = self.a("c", shape=shape)
        real = self.value(shape)
        if self.chance(0.55):
            done = self.put(self.of(f"{z}[{i}] = {z}[{j}] * 1j", f"{z}[{i}] = {s}", f"{z}[:] = {real}",
                                    f"{z} *= np.exp(1j * {s})", f"{z} *= {real}", f"{z} += {real}",
                                    f"{z}[1:] = {z}[:-1] * 2j", f"{z}.real[{i}] = {s}", f"{z}.imag[{i}] = {s}",
                                    f"{z}.imag = {real}", f"{z}.real *= 0.5", f"{z}[{i}] += 1j * {s}",
                                    f"{z}[1:] += {z}[:-1]", f"{z}[{i}] = np.conj({z}[{j}])", f"{z}[::2] = {s}",
                                    f"{z} -= {y} * {s}", f"{z}[{i}] *= {y}[{j}]", f"{z}[:] = {y}[::-1]",
                                    f"{z}[np.abs({z}) > 0.5] = {s}", f"np.multiply({z}, 1j, out={z})",
                                    f"{z}[{i}], {z}[{j}] = {z}[{j}], {z}[{i}]", f"{z}[...] = np.conj({y})"))
            if not done:
                return False
        if self.chance(0.6):
            return self.whole(self.of(f"{z}.real", f"{z}.imag", f"np.real({z})", f"np.imag({z})", f"np.abs({z}) ** 2",
                                      f"np.abs({z} + 2.0)", f"({z} * np.conj({z})).real",
                                      f"np.fft.ifft({z}).real", f"np.fft.ifft({z}).imag", f"np.fft.irfft({z}, {size})",
                                      f"np.vdot({z}, {y}).real", f"({z} @ {y}).imag", f"np.sum({z}).real",
                                      f"np.fft.fft({z}).real", f"({z} * {real}).real", f"{z}.real + {z}.imag",
                                      f"np.abs({z}.sum())", f"np.real({z}[::-1])", f"({z} ** 2).real",
                                      f"{z}.conj().imag",
                                      f"np.abs(np.fft.fft({v})) ** 2", f"np.fft.fftshift({z}).real",
                                      f"np.dot({z}, {real}).real", f"np.where({z}.real > 0.1, {z}, 1j).imag"))
        return self.bind(self.of(f"np.conj({z})", f"{z}.conj()", f"{z}[::-1]", f"{z} * {s}", f"{z}", f"{z}[1:]",
                                 f"{z}.copy()", f"np.fft.ifft({z})", f"{z} * {y}", f"np.fft.fft({z})",
                                 f"{z} + {real}", f"np.concatenate([{z}, [{s}]])", f"np.exp({z})", f"{z}.T",
                                 f"{z} / (1.0 + {s} ** 2)", f"np.stack([{z}, {y}])", f"{z}[None]"))

    def call(self, names):
        found = [k for k in names if self.chance(0.5) or k in self.functions] or list(names)
        name = self.r.choice(found)
        if name not in self.functions:
            lines = GIVEN.get(name) or HELPERS[name]
            space = {"np": np}
            if name in GIVEN:
                import gradscribe as gs
                space["gs"] = gs
            source = "\n".join(lines) + "\n"
            if "gs.rule" in source:                         # a trial needs no derivative
                source = source[:source.index("@gs.rule")]
            exec(source, space)
            self.functions[name] = space[name]
            self.preamble.append("\n".join(lines))
        return name

    def custom(self):
        v = self.a("f", 1) or self.a("f")
        if not v:
            return False
        form = self.of(v, v, v, f"{v}[::-1]", f"{v} * 1.0", f"{v}[1:]")
        name = self.name()
        if not self.put(f"{name} = {self.call(tuple(GIVEN))}({form})"):
            return False
        if self.chance(0.7):
            self.written(self.of(v, name) if isinstance(self.state.get(name), np.ndarray) else v)
        return True

    def helper(self):
        v = self.a("f", 1) or self.a("f")
        if not v:
            return False
        u = self.a("f", shape=np.shape(self.state[v])) or v
        name = self.call(tuple(HELPERS))
        text = {"put_first": f"put_first({v}, {self.scalar()})", "shift": f"shift({v})", "mix": f"mix({v}, {u})",
                "head": f"head({v})",
                "keep": f"keep({v}, {self.scalar()})", "renew": f"renew({v})", "clear": f"clear({v})",
                "pair": f"pair({v})",
                "record": f"record([{u}], {v})", "swap": f"swap({v}, {u})"}[name]
        if name in ("pair", "swap"):
            done = self.put(f"{self.name()}, {self.of('q', 'r')} = {text}")
        elif name in ("put_first", "mix") or self.chance(0.3):
            done = self.put(text)
        else:
            done = self.bind(text)
        if done and self.chance(0.6):
            self.written()
        return done

    def held(self):
        """Containers that hold arrays, one of them many times."""
        found = self.containers()
        v = self.a("f")
        if not v:
            return False
        u = self.a("f", shape=np.shape(self.state[v])) or v
        if not found or self.chance(0.3):
            name = self.of("rows", "box", "pile")
            if not self.put(f"{name} = " + self.of(f"[{v}, {u}]", f"[{v}, {v}]", f"[{v}, {v} * 2.0, {v}]",
                                                   f"({v}, {u})", f"{{'k': {v}, 'l': {u}}}", f"[{v}] * 3",
                                                   f"({v}, {v}[::-1])", f"[{v}[1:], {u}]", f"list({v})", f"[*{v}]",
                                                   f"[{v}.copy() for _ in range(2)]",
                                                   f"tuple(w * 2.0 for w in ({v}, {u}))",
                                                   f"dict(k={v}, l={u})", f"[[{v}, {u}], [{u}]][0]",
                                                   f"tuple(w for w in {v})", f"[w for w in {v}]",
                                                   f"[{v}[..., k] for k in range(2)]", f"list(reversed({v}))",
                                                   f"list(({v}, {u}))")):
                return False
            if self.chance(0.6):
                self.written(self.of(v, u))
            return True
        box = self.r.choice(found)
        held = self.state[box]
        if isinstance(held, dict):
            key, other = (repr(self.r.choice(list(held))) for _ in range(2))
        else:
            key, other = (str(self.r.randrange(len(held))) for _ in range(2))
        item = f"{box}[{key}]"
        swap = f"{box}[{key}], {box}[{other}] = {box}[{other}], {box}[{key}]"
        forms = [f"{item}[0] {self.of('=', '+=', '*=')} {self.scalar()}"] * 3
        forms += [f"{item} += {v}", f"{item} *= 0.5", f"{item}[1:] = {self.scalar()}", f"{item} = {v}", swap,
                  f"{item} = {item} * 2.0", f"{self.name()} = {item}", f"{item}[:] = {v}"]
        if isinstance(held, list):
            forms += [f"{box}.append({v})", f"{box}.append({v} * 2.0)", f"{box} = {box} + [{v}]",
                      f"{box}.insert(0, {v})", f"{self.name()} = np.sum({box}, axis=0)",
                      f"{self.name()} = np.stack({box})", f"{self.name()} = sum({box})",
                      f"{self.name()} = np.concatenate({box})", f"{self.name()} = {box}.pop()",
                      f"{box}.reverse()", f"{self.name()} = np.array({box})", f"{box} += [{v}, {u}]",
                      f"{box}[:1] = [{v}]", f"{self.name()} = {box}[-1]", f"{box}.extend([{u}])",
                      f"turned = list(reversed({box}))", f"fixed = tuple({box})",
                      f"{self.name()} = max({box}, key=lambda w: np.sum(w))",
                      f"ordered = sorted({box}, key=lambda w: np.sum(w))", f"copied = list({box})",
                      f"{self.name()}, *rest = {box}", f"{self.name()} = np.sum({box})"]
            block = self.of([f"for _ in range({self.of(2, 3)}):",
                             f"    {v} {self.of('+=', '*=')} {self.value(np.shape(self.state[v]))}",
                             f"    {box}.append({v})"],
                            [f"for item in {box}:", f"    item {self.of('+=', '*=', '-=')} {self.scalar()}"],
                            [f"for item in {box}:", f"    item[0] = {self.scalar()}"],
                            [f"for k, item in enumerate({box}):", f"    {box}[k] = item {self.of('* 0.5', '+ ' + v)}"],
                            [f"for item in {box}:", "    s = s + np.sum(item ** 2)"])
            if self.chance(0.3):
                return self.put(*block)
        if isinstance(held, tuple):
            forms += [f"{self.name()}, rest = {box}", f"{self.name()} = np.stack({box})",
                      f"{self.name()} = np.concatenate({box})", f"{box} = {box} + ({v},)"]
        if isinstance(held, dict):
            forms += [f"{box}['new'] = {v}", f"{self.name()} = sum(np.sum(w ** 2) for w in {box}.values())",
                      f"{box}.update(k={v})",
                      f"{self.name()} = np.stack(list({box}.values()))", f"{box} = {{**{box}, 'k': {v}}}"]
        if not self.put(self.r.choice(forms)):
            return False
        if self.chance(0.3):
            self.written(v)
        return True

    def nested(self, binding, count):
        """Statements that run after the lines of a binding, to be put into a block."""
        lines, state, hidden = self.lines, self.state, set(self.hidden)
        self.lines, self.depth = lines + binding, self.depth + 1
        body = []
        self.state = self.run(self.lines)
        if self.state is not None:
            self.state = {k: v for k, v in self.state.items() if k not in self.hidden}
            for _ in range(count):
                self.statement()
            body = self.lines[len(lines) + len(binding):]
        self.lines, self.state, self.hidden, self.depth = lines, state, hidden, self.depth - 1
        return ["    " + line for line in body]

    def loop(self):
        if self.depth > 1:
            return False
        v, k, i = self.a("f") or "x", self.of(2, 3), "ijk"[self.depth]
        m = self.a("f", 2)
        kind = self.of("range", "range", "size", "alias", "swap", "row", "zip", "while", "down")
        before = []
        if kind in ("range", "size", "down", "alias", "swap"):
            head = {"size": self.of(f"range(len({v}))", f"range({v}.shape[0])", f"range(1, len({v}))",
                                    f"range(len({v}) - 1)"),
                    "down": f"range({k} - 1, -1, -1)"}.get(kind, f"range({k})")
            head, binding = f"for {i} in {head}:", [f"{i} = {'1' if 'range(1' in head else '0'}"]
        elif kind == "while":
            before, head, binding = [f"{i} = 0"], f"while {i} < {k}:", [f"{i} = 0"]
        elif kind == "row":
            m = m or v
            head, binding = f"for row in {m}:", [f"row = {m}[0]"]
            if self.chance(0.4):
                head, binding = f"for {i}, row in enumerate({m}):", [f"{i} = 0", f"row = {m}[0]"]
        else:
            u = self.a("f", shape=np.shape(self.state[v])) or v
            head, binding = f"for p, q in zip({v}, {u}):", [f"p = {v}[0]", f"q = {u}[0]"]
        if any(line.startswith(i + " ") for line in binding):
            self.indices.append(i)
        extra = []
        if kind == "alias":
            before = [f"last = {self.of(v, v + ' * 1.0', v + '[::-1]')}"]
            extra = [f"    {self.of('cur = last', 'cur = last * 0.5', 'cur = last[::-1]', 'cur = last.copy()')}"]
            binding = binding + ["cur = last"]
        if kind == "swap":
            u = self.a("f", shape=np.shape(self.state[v])) or v
            before = [f"old = {self.of(v, v + '.copy()')}", f"new = {self.of(u, f'np.zeros_like({v})', u + '.copy()')}"]
        body = self.nested(before + binding, self.of(1, 2, 2, 3))
        if kind == "alias":
            body = extra + body + ["    last = cur"]
        if kind == "swap":
            line = self.of("new[1:] = 0.5 * old[:-1]", "new[:] = old * 0.9", "new[0] = old[-1]", "new += old")
            body = body + [f"    {line}", "    old, new = new, old"]
        if kind == "while":
            body = body + [f"    {i} += 1"]
        if i in self.indices:
            self.indices.remove(i)
        self.hidden |= {"row", "item", "p", "q"} - set(self.state)
        return bool(body) and self.put(*before, head, *body)

    def branch(self):
        v = self.a("f")
        if not v or self.depth > 1:
            return False
        test, name = self.test(), self.name()
        u = self.a("f", shape=np.shape(self.state[v])) or v
        if self.chance(0.6):
            arms = v, v, u, f"{v} * 1.0", f"{v}.copy()", f"{v}[::-1]", f"np.sin({u})", f"{v}[1:]", f"{v}[{v} > 0.0]"
            values = [self.of(*arms) for _ in range(2)]
            done = self.put(f"if {test}:", f"    {name} = {values[0]}", "else:", f"    {name} = {values[1]}")
            if done and self.chance(0.8):
                self.written(self.of(name, v))
            return done
        first = self.nested([], self.of(1, 2))
        other = self.nested([], 1) if self.chance(0.5) else []
        if not first:
            return False
        known = set(self.state)
        done = self.put(f"if {test}:", *first, *(["else:", *other] if other else []))
        if done and self.chance(0.5):       # otherwise other passes, and what follows, read what the run has set
            self.hidden |= set(self.state) - known
            self.state = {k: w for k, w in self.state.items() if k in known}
        return done

    # what is returned

    def result(self):
        names = self.arrays("f")
        late = names[-3:] + self.r.sample(names, min(2, len(names)))
        terms = [self.weighted(v) for v in dict.fromkeys(late)] + [f"0.5 * {s}" for s in self.numbers()[-2:]]
        for box in self.containers()[:1]:
            held = self.state[box]
            terms += [f"np.sum({box}[{0 if not isinstance(held, dict) else repr(next(iter(held)))}] ** 2)"]
        z = self.a("c")
        if z:
            terms += [self.of(f"np.sum(np.abs({z}) ** 2)", f"np.sum({z}.real)", f"np.sum({z}.imag * {z}.real)")]
        total = " + ".join(terms) or "0.0"
        own = [v for v in names if self.state[v].dtype == np.float64] or ["x"]
        if self.chance(0.65):
            return total
        late, any_, more = self.r.choice(own[-3:]), self.r.choice(own), self.r.choice(own)
        return self.of(late, late, f"({any_}, {more})", f"({total}, {late})", f"[{any_}, {total}]",
                       f"{{'k': {any_}, 'l': {more}}}", f"{any_}[::-1]")


def tame(value):
    """Finite numbers of moderate size, in containers too."""
    if isinstance(value, dict):
        return all(tame(v) for v in value.values())
    if isinstance(value, (list, tuple)):
        return all(tame(v) for v in value)
    if isinstance(value, (np.ndarray, float, complex, int, np.generic)):
        value = np.asarray(value)
        small = value.dtype.kind in "fcbiu" and value.size < 200
        return small and bool(np.all(np.isfinite(value)) and np.all(np.abs(value.astype(complex)) < 300))
    return True
