"""Random programs of the wide family: they write into arrays and views of them, and leave loops."""
import math
import re

from fuzz_plain import Writer, par


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
