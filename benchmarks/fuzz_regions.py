"""Random programs of the regions family: nested loops that write tables in place, entry by entry, row by row, block by
block, and read parts of them whose bounds are sums of loop indices: before, after and across what they write.
"""

SIZE = 4


class Regions:
    def __init__(self, r):
        self.r, self.depth, self.loops, self.names = r, 0, 0, []

    # whole numbers

    def index(self):
        """A loop's index, or one near it, or a number; perhaps negative: it counts from the back then."""
        part = self.r.random()
        if not self.names or part < 0.12:
            return self.r.choice(["0", "1", "2", "-1", "-2", "n - 1", "n - 2"])
        i = self.r.choice(self.names)
        return i if part < 0.72 else self.r.choice([f"{i} - 1", f"{i} - 2", f"n - 1 - {i}", f"-{i} - 1", f"{i} // 2",
                                                    f"({i} + 1) % n"])

    def bound(self):
        part = self.r.random()
        if not self.names or part < 0.15:
            return self.r.choice(["0", "1", "2", "n", "-1", "n - 1"])
        i = self.r.choice(self.names)
        return i if part < 0.65 else self.r.choice([f"{i} + 1", f"{i} - 1", f"n - {i}", f"n - {i} - 1"])

    def piece(self):
        return self.r.choice([f":{self.bound()}", f"{self.bound()}:", f"{self.bound()}:{self.bound()}", ":",
                              f":{self.bound()}:2", f"{self.bound()}::-1", "::-1"])

    # values

    def entry(self):
        return self.r.choice([f"A[{self.index()}, {self.index()}]"] * 3 + [f"v[{self.index()}]"] * 3 +
                             [f"B[{self.index()}, {self.index()}]", f"w[{self.index()}]", f"x[{self.index()}]"])

    def part(self):
        """An array of unknown length, for sums."""
        return self.r.choice([f"A[{self.index()}, {self.piece()}]", f"A[{self.piece()}, {self.index()}]",
                              f"v[{self.piece()}]", f"v[{self.piece()}]", f"w[{self.piece()}]", f"A[{self.piece()}]",
                              f"A[{self.index()}]", f"B[{self.piece()}, {self.index()}]", "v", "A"])

    def number(self):
        e, part = self.entry(), self.r.random()
        if part < 0.25:
            return self.r.choice([e, f"np.sin({e})", f"0.5 * {e}"])
        if part < 0.5:
            return self.r.choice([f"{e} * {self.entry()}", f"{e} - 0.5 * {self.entry()}",
                                  f"{e} / (2.0 + {self.entry()} ** 2)"])
        if part < 0.7:
            return f"{e} - 0.3 * np.sum({self.part()})"
        if part < 0.85:
            k = self.bound()
            a, b = self.r.choice([(f"A[{self.index()}, :{k}]", f"v[:{k}]"), (f"A[{self.index()}, :{k}]", f"A[:{k}, 0]"),
                                  (f"A[{k}:, {self.index()}]", f"w[{k}:]"), (f"A[:{k}, {self.index()}]", f"x[:{k}]")])
            return f"{e} + 0.2 * {a} @ {b}"
        return f"np.sum({self.part()}) * 0.3"

    def row(self):
        """Whole rows; those that may cross what they are put into are copies: NumPy reads what it has just written."""
        return self.r.choice(["x", "v", "w", f"A[{self.index()}].copy()", f"A[:, {self.index()}].copy()", "1.0 * B[0]",
                              f"0.5 * A[{self.index()}] + v", "np.sin(w)", f"v * {self.entry()}", "v[::-1].copy()"])

    # statements

    def statement(self, pad):
        choose, part = self.r.choice, self.r.random()
        op = choose(["=", "=", "=", "+=", "-=", "*="])
        if part < 0.42:
            place = choose([f"A[{self.index()}, {self.index()}]", f"v[{self.index()}]", f"v[{self.index()}]",
                            f"w[{self.index()}]"])
            return [f"{pad}{place} {op} {self.number()}"]
        if part < 0.6:
            place = choose([f"A[{self.index()}]", f"A[:, {self.index()}]", "v[:]", "w[:]"])
            return [f"{pad}{place} {op} {self.row()}"]
        if part < 0.72:
            place = choose([f"v[{self.piece()}]", f"A[{self.index()}, {self.piece()}]", f"A[{self.piece()}]", "w[1:]"])
            return [f"{pad}{place} {op} {choose([self.number(), '0.3', self.entry()])}"]
        if part < 0.76:
            return [f"{pad}v, w = w, v"]
        if part < 0.8:
            return [f"{pad}A[[{self.index()}, {self.index()}]] = A[[{self.index()}, {self.index()}]]"]
        if part < 0.88 and len(pad) < 16:
            test = choose([f"{self.entry()} > 0.1", f"{choose(self.names)} > 1" if self.names else "n > 2",
                           f"{choose(self.names)} % 2 == 0" if self.names else "x[0] < 0.4"])
            return [f"{pad}if {test}:", *self.block(pad + "    ", 2)]
        if self.loops < 4 and len(pad) < 16:
            return self.loop(pad)
        return [f"{pad}t = 0.5 * t + {self.number()}"]

    def loop(self, pad):
        self.loops += 1
        i = f"i{self.loops}"
        b = self.bound()
        head = self.r.choice([f"{i} in range(n)", f"{i} in range({b})", f"{i} in range({b}, n)", f"{i} in range(1, n)",
                              f"{i} in range(n - 1, -1, -1)", f"{i} in reversed(range({b}))", f"{i} in range(0, n, 2)",
                              f"{i} in range(1, n - 1)"])
        self.names.append(i)
        lines = [f"{pad}for {head}:", *self.block(pad + "    ", 3)]
        self.names.pop()
        return lines

    def block(self, pad, most):
        return [line for _ in range(self.r.randint(1, most)) for line in self.statement(pad)]

    def program(self):
        choose, pad = self.r.choice, "    "
        lines = [f"{pad}n = len(x)", f"{pad}A = {choose(['M.copy()', 'M * 0.5', 'np.zeros_like(M)', 'np.sin(M)'])}",
                 f"{pad}B = {choose(['M', 'M', 'A'])}", f"{pad}v = {choose(['x.copy()', 'np.zeros(n)', '0.5 * x'])}",
                 f"{pad}w = {choose(['np.zeros(n)', 'M[0].copy()', 'v', 'np.ones(n)'])}", f"{pad}t = 0.0"]
        for _ in range(self.r.randint(1, 3)):
            lines += self.loop(pad) if self.loops < 3 else self.statement(pad)
        terms = ["t", "np.sum(A * A)", "np.sum(v * 1.3)", "np.sum(np.sin(w))", "np.sum(A[1] * x)", "v[-1]"]
        kept = [term for term in terms if self.r.random() < 0.6] or ["np.sum(A)"]
        source = "\n".join(["def f(M, x):", *lines, f"{pad}return {' + '.join(kept)}", ""])
        return source, {"M": (SIZE, SIZE), "x": (SIZE,)}, {}
