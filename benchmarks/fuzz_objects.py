"""Objects of small classes: methods, properties, operators, attributes that are set; dataclasses and named tuples."""
import collections

from fuzz_plain import par

Class = collections.namedtuple("Class", "name kind fixed attrs methods properties operators")
ATTRIBUTES = ("w", "b", "scale", "rate", "state")


class Objects:
    def new_class(self):
        r = self.r
        kind = r.choice(["plain", "plain", "plain", "derived", "data", "data", "tuple"])
        name = f"{r.choice(['Layer', 'Cell', 'Model', 'Point'])}{len(self.classes) + 1}"
        shapes = [s for _, s in self.leaves()] + [()]
        attrs = {a: r.choice(shapes) for a in r.sample(ATTRIBUTES, r.randint(1, 3))}
        head, lines, operators = f"class {name}:", [], []
        if kind == "plain" or kind == "derived":
            params = list(attrs)
            lines = [f"    def __init__(self, {', '.join(params)}, gain=0.8):"]
            if kind == "derived":
                if "Base" not in self.classes:
                    self.preamble.append("class Base:\n    offset = 0.25\n\n    def __init__(self, gain):\n"
                                         "        self.gain = gain\n        self.calls = 0\n\n    def shift(self, z):\n"
                                         "        self.calls += 1\n        return z * self.gain + self.offset")
                    self.classes["Base"] = None
                head = f"class {name}(Base):"
                lines.append("        super().__init__(gain)")
            else:
                lines.append("        self.gain = gain")
            lines += [f"        self.{a} = " + r.choice([a, a, f"np.tanh({a})", f"{a} * gain"]) for a in params]
            lines += [f"        self.count = {r.choice(['0', '1'])}"]
        elif kind == "data":
            head = r.choice(["@dataclasses.dataclass", "@dataclasses.dataclass(frozen=True)"]) + f"\n{head}"
            lines = [f"    {a}: {'np.ndarray' if s else 'float'}" for a, s in attrs.items()] + ["    gain: float = 0.7"]
        else:
            head = f"class {name}(typing.NamedTuple):"
            lines = [f"    {a}: {'np.ndarray' if s else 'float'}" for a, s in attrs.items()] + ["    gain: float = 0.7"]
        fixed = kind == "tuple" or "frozen" in head
        methods, properties = {}, {}
        for k in range(r.randint(1, 2)):
            method = "__call__" if k == 0 and self.chance(0.4) else ("apply", "step")[k]
            given, result = {"z": r.choice(shapes)}, r.choice(shapes)
            text = self.method(attrs, given, result, fixed)
            if kind == "derived" and self.chance(0.5):
                text[-1] = text[-1].replace("return ", "return self.shift(", 1) + ")"
            if not fixed and kind != "data" and self.chance(0.3):
                text.insert(0, "        self.count += 1")
            lines += ["", f"    def {method}(self, z):", *text]
            methods[method] = given["z"], result
        if self.chance(0.4):
            properties["norm"] = ()
            lines += ["", "    @property", "    def norm(self):", *self.method(attrs, {}, (), True)]
        if kind == "plain" and self.chance(0.4):
            s = r.choice(shapes)
            methods["act"] = s, s
            lines += ["", "    @staticmethod", "    def act(z):", *self.method({}, {"z": s}, s, True)]
        if not fixed and kind != "data" and self.chance(0.35):
            a = r.choice(sorted(attrs))
            lines += ["", "    def update(self, by):", f"        self.{a} = self.{a} - 0.1 * by * np.sin(self.{a})",
                      *r.choice([[], ["        return self"], [f"        self.{a} *= 0.9"]])]
            operators.append("update")
        if self.chance(0.5):
            both = ", ".join(f"self.{a} + {r.choice(['', '0.5 * '])}other.{a}" for a in attrs)
            lines += ["", "    def __add__(self, other):", f"        return {name}({both})"]
            operators.append("+")
        if self.chance(0.4):
            lines += ["", "    def __mul__(self, by):",
                      f"        return {name}({', '.join(f'self.{a} * by' for a in attrs)})"]
            operators.append("*")
        if self.chance(0.15) and kind != "tuple":
            a = r.choice(sorted(attrs))
            lines += ["", "    def __len__(self):", "        return 2", "", "    def __getitem__(self, k):",
                      f"        return self.{a} * (k + 1)"]
            operators.append(f"[{a}")
        self.preamble.append("\n".join([head, *lines]))
        made = Class(name, kind, fixed, attrs, methods, properties, operators)
        self.classes[name] = made
        return made

    def method(self, attrs, params, result, fixed):
        """The lines of a method's body."""
        with self.frame({**{f"self.{a}": s for a, s in attrs.items()}, **params}, result):
            if fixed:
                self.locked |= {f"self.{a}" for a in attrs}
            if self.chance(0.5):
                self.block(8, 2, 1)
            if self.chance(0.2):
                self.put(8, f"if {self.test()}:")
                self.put(12, f"return {self.expr(result, 1)}")
            self.put(8, f"return {self.expr(result, 2)}")
            lines = self.lines
        return lines

    def made(self, of, depth=1):
        values = [self.expr(s, depth) for s in of.attrs.values()]
        if self.chance(0.3):
            values = [f"{a}={v}" for a, v in zip(of.attrs, values)]
        elif self.chance(0.2):
            values.append(self.number())
        return f"{of.name}({', '.join(values)})"

    def register(self, name, of):
        self.objects[name] = of
        for a, s in {**of.attrs, **of.properties}.items():
            self.vars[f"{name}.{a}"] = s
        self.locked |= {f"{name}.{a}" for a in (of.properties if not of.fixed else {**of.attrs, **of.properties})}

    def a_class(self):
        known = [c for c in self.classes.values() if c]
        if known and (self.chance(0.6) or len(known) > 2):
            return self.r.choice(known)
        return self.new_class() if not self.inside_helper else None

    def object_name(self):
        return self.r.choice([n for n in ("cell", "model", "state", "one", "two") if n not in self.taken()] or [None])

    def new_object(self, pad):
        of = self.a_class()
        name = self.object_name()
        if of and name:
            self.put(pad, f"{name} = {self.made(of)}")
            self.register(name, of)
            for _ in range(self.r.choice([0, 0, 1, 2])):
                self.use_object(pad)

    def of_objects(self, shape, depth):
        forms = []
        for name, of in self.objects.items():
            for method, (given, result) in of.methods.items():
                if result == shape:
                    e = self.expr(given, depth)
                    forms.append(f"{name}({e})" if method == "__call__" else f"{name}.{method}({e})")
            if shape == ():
                forms += [f"{name}.gain", f"0.2 * {name}.gain"]
                if of.kind in ("plain", "derived"):
                    forms += [f"getattr({name}, 'missing', 0.4)",
                              f"{name}.count * 0.3" if of.kind == "plain" else f"{name}.calls * 0.2"]
        return self.r.choice(forms) if forms else None

    def use_object(self, pad):
        free = [n for n in self.objects if n not in self.locked]
        if not free:
            return self.new_object(pad)
        name = self.r.choice(sorted(free))
        of, v = self.objects[name], self.fresh()
        kinds = ["call"] * 3 + ["again", "alias"] + ["+",
                                                     "+"] * ("+" in of.operators) + ["*"] * ("*" in of.operators) + [
            "update"] * 3 * ("update" in of.operators) + ["replace",
                                                          "replace"] * (of.kind in ("tuple", "data")) + ["item"]
        kind = self.r.choice(kinds)
        a, s = self.r.choice(sorted(of.attrs.items()))
        if kind == "call":
            method, (given, result) = self.r.choice(sorted(of.methods.items()))
            dot = "" if method == "__call__" else f".{method}"
            self.put(pad, f"{v} = {name}{dot}({self.expr(given, 2)})")
            self.bind_only(v, result)
        elif kind in ("+", "*", "again"):
            text = {"+": f"{name} + {self.r.choice([n for n in self.objects if self.objects[n] is of])}",
                    "*": f"{name} * {par(self.leaf(()))}", "again": self.made(of)}[kind]
            if self.chance(0.3):
                self.put(pad, f"if {self.test()}:")
                self.put(pad + 4, f"{name} = {text}")
            else:
                self.put(pad, f"{name} = {text}")
        elif kind == "update":
            self.put(pad, f"{name}.update({self.leaf(())})")
        elif kind == "replace":
            text = f"{name}._replace(" if of.kind == "tuple" else f"dataclasses.replace({name}, "
            self.put(pad, f"{name} = {text}{a}={self.expr(s, 1)})")
        elif kind == "alias":
            other = self.object_name()
            if other:
                self.put(pad, f"{other} = {name}")
                self.register(other, of)
        else:
            known = [o[1:] for o in of.operators if o.startswith("[")]
            if known:
                self.put(pad, f"{v} = {name}[1] + 0.1 * len({name})")
                self.bind_only(v, of.attrs[known[0]])
            else:
                self.put(pad, f"{v} = np.sin({name}.{a})")
                self.bind_only(v, s)

    def stack(self, pad):
        """Several objects of one class, in a list."""
        of = self.a_class()
        fits = of and [(m, x) for m, x in of.methods.items() if x[0] == x[1]]
        name, v = self.fresh(), self.fresh()
        if not fits or name == v:
            return self.new_object(pad)
        method, (shape, _) = self.r.choice(fits)
        dot = "" if method == "__call__" else f".{method}"
        some = ", ".join(self.made(of) for _ in range(self.r.randint(1, 3)))
        self.put(pad, f"{name} = [{some}]" if self.chance(0.7) else f"{name} = [{self.made(of)} for _ in range(2)]")
        self.put(pad, f"{v} = {self.expr(shape, 1)}")
        self.put(pad, f"for part in {name}:")
        self.put(pad + 4, f"{v} = part{dot}({v})")
        if of.kind in ("plain", "derived") and self.chance(0.5):
            a, s = self.r.choice(sorted(of.attrs.items()))
            self.put(pad + 4, f"part.{a} = {self.r.choice([f'part.{a} * 0.9', f'np.sin(part.{a})'])}")
            if self.chance(0.5):
                other = self.fresh()
                self.put(pad, f"{other} = sum(part.{a} for part in {name})")
                self.bind_only(other, s)
        self.bind_only(v, shape)

    def object_loop(self, pad, level):
        """A loop that sets attributes."""
        free = [n for n, of in self.objects.items() if not of.fixed and n not in self.locked]
        if not free:
            return self.new_object(pad)
        name = self.r.choice(sorted(free))
        of, i = self.objects[name], self.counter()
        a, s = self.r.choice(sorted(of.attrs.items()))
        rows = [t for t, shape in self.leaves() if shape]
        kept, ints = dict(self.vars), dict(self.ints)
        head = self.r.choice([f"for {i} in range({self.r.randint(1, 3)}):", f"if {self.test()}:"] + (
            [f"for _ in {self.r.choice(rows)}:"] if rows else []) + [
            f"while np.sum({name}.{a} * {name}.{a}) > 0.4:"])
        if " in range" in head:
            self.ints[i] = (0, 2)
        self.put(pad, head)
        step = f"0.6 * {name}.{a}" if head.startswith("while") else self.tame(f"{name}.{a}", s)
        self.put(pad + 4, f"{name}.{a} = {step}")
        if of.kind == "plain" and self.chance(0.4):
            self.put(pad + 4, f"{name}.count += 1")
        if self.chance(0.5):
            self.inner(pad + 4, level + 1, 1, {f"{name}.{a}"}, surely=False)
        self.vars, self.ints = kept, ints
