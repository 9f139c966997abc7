"""Random programs of the loops family: short ones whose loops go over rows, change them in place and are left, with a
few names for many arrays, so that what shares memory with what depends on the pass.
"""

NAMES = ["g", "h", "w"]


class Loops:
    def __init__(self, r):
        self.r, self.loops = r, 0
        self.first = []                 # names that a loop sets in its first pass, or in every other
        self.ran = False                # whether a loop of the function's own has had its passes: its index stays
        self.boxes = []                 # items of a list or of a dict

    def vector(self, depth):
        """Two entries: an argument, a row or a column of one, or what a name holds."""
        return self.r.choice(["y", *NAMES, *self.first * 3, *self.boxes, "x[0]", "x[1]", "x[-1]", "x[:, 0][:2]",
                              "x[1:, 0]"] + [f"x[i{depth}]"] * 3 * bool(depth) + ["x[i1]"] * (self.ran and not depth))

    def value(self, depth):
        a, b = self.vector(depth), self.vector(depth)
        return self.r.choice([a, f"{a}.copy()", f"{a} * 0.5", f"{a} + {b}", f"{a} * {b}", f"np.sin({a})", f"{a}[::-1]",
                              f"{a} * s"])

    def test(self, depth):
        return self.r.choice(["s > 0.1", f"{self.vector(depth)}[0] > 0.05", "np.sum(y) < 0.9",
                              f"i{depth} == 1" if depth else "s < 2"])

    def statement(self, depth, pad):
        choose, part = self.r.choice, self.r.random()
        if part < 0.26:
            return [f"{pad}{choose([*NAMES, *self.first * 3, *self.boxes, 'y'])} = {self.value(depth)}"]
        if part < 0.46:
            target = choose([*NAMES, *self.first * 3, *self.boxes, "y", "x", f"x[i{depth}]" if depth else "x[1]"])
            return [f"{pad}{target} {choose(['+=', '-=', '*='])} {self.value(depth)}"]
        if part < 0.56:
            number = choose(["s", "0.3", f"np.sum({self.vector(depth)}) * 0.2", f"{self.vector(depth)}[1]"])
            return [f"{pad}{self.vector(depth)}[{choose(['0', '1', '-1', ':1'])}] {choose(['=', '+=', '*='])} {number}"]
        if part < 0.66:
            return [f"{pad}s = {choose(['s + ', '0.7 * ', ''])}np.sum({self.value(depth)})"]
        if part < 0.74 and len(pad) < 12:
            inner = pad + "    "
            other = [f"{pad}else:", *self.block(depth, inner, 2)] if self.r.random() < 0.4 else []
            return [f"{pad}if {self.test(depth)}:", *self.block(depth, inner, 2), *other]
        if part < 0.77 and depth:
            return [f"{pad}if {self.vector(depth)}[0] > 0.4:", f"{pad}    {choose(['break', 'continue'])}"]
        if part < 0.8:
            a, b = self.r.sample([*NAMES, "y"], 2)
            return [choose([f"{pad}{a}, {b} = {b}, {a}",
                            f"{pad}{choose(NAMES)}, {choose(NAMES)} = {self.vector(depth)}, {self.vector(depth)}"])]
        if len(pad) < 12 and self.loops < 3:
            self.loops += 1
            return self.loop(depth + 1, pad)
        return [f"{pad}s = s * 0.9 + {self.vector(depth)}[0]"]

    def loop(self, depth, pad):
        a, b = self.r.sample(NAMES, 2)
        i = f"i{depth}"
        head = self.r.choice([f"{i}, {a} in enumerate(x)", f"{i}, ({a}, {b}) in enumerate(zip(x, x[::-1]))",
                              f"{i} in range(2)", f"{i} in range(len(x))", f"{i}, {a} in enumerate([y, x[0]])",
                              f"{i}, {a} in enumerate(x[1:])", f"{i}, {a} in enumerate(x.copy())",
                              f"{i}, {a} in enumerate((g, h))", f"{i} in range({12 if depth == 1 else 2})"])
        lines, held = [f"{pad}for {head}:"], list(self.first)
        if self.r.random() < 0.3:
            name, inner = f"p{depth}", pad + "    "
            lines += [f"{inner}if {i} {self.r.choice(['== 0', '== 0', '% 2 == 0'])}:",
                      f"{inner}    {name} = {self.value(depth)}"]
            self.first.append(name)
        lines += self.block(depth, pad + "    ", 4)
        if len(pad) > 4:                # there it may have no pass
            self.first = held
        else:
            self.ran = True
        return lines

    def block(self, depth, pad, most):
        return [line for _ in range(self.r.randint(1, most)) for line in self.statement(depth, pad)]

    def program(self):
        choose, pad = self.r.choice, "    "
        lines = []
        if self.r.random() < 0.8:
            lines.append(f"{pad}g = {choose(['x[0]', 'y.copy()', 'x[1] * y', 'y', 'x[0].copy()'])}")
        if self.r.random() < 0.7:
            lines.append(f"{pad}h = {choose(['x[1]', 'y * 2.0', 'x[0]', *['g'] * len(lines)])}")
        if self.r.random() < 0.6:
            lines.append(f"{pad}w = np.ones(2)")
        if self.r.random() < 0.3:
            a, b = self.vector(0), self.vector(0)
            box = choose([f"[{a}, {b}]", f"{{'k': {a}, 'l': {b}}}"])
            lines += [f"{pad}h, w, g = x[0], y * 0.5, x[1] * y", f"{pad}box = {box}"]
            self.boxes = ["box[0]", "box[1]"] if box[0] == "[" else ["box['k']", "box['l']"]
        lines.append(f"{pad}s = {choose(['0.0', '0.5', 'np.sum(y)'])}")
        for _ in range(self.r.randint(3, 6)):
            lines += self.statement(0, pad)
        terms = ["s", "np.sum(x * x)", "np.sum(y)", "np.sum(g * 1.3)", "np.sum(h * 0.7)", "np.sum(w * 0.4)"]
        terms += [f"np.sum({n} * 0.9)" for n in (*self.first, *self.boxes)]
        kept = [t for t in terms if self.r.random() < 0.75] or ["s"]
        name = choose(["f", "f", "f", "inner"])
        lines = [f"def {name}(x, y):", *lines, f"{pad}return {' + '.join(kept)}", ""]
        if name == "inner":             # a helper, which changes what its caller goes on with
            lines += ["", "def f(x, y):", f"{pad}a, b = x * 0.9, y * 1.1",
                      f"{pad}{choose(['s = inner(a, b)', 's = inner(x, b)', 's = inner(a, y)'])}",
                      f"{pad}return s + np.sum(a * b) + np.sum(x * y)", ""]
        source = "\n".join(lines)
        return source, {"x": (3, 2), "y": (2,)}, {}
