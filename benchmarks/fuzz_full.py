"""Random programs of the full family: the rest of the language, among what the wide family draws."""
import contextlib

from fuzz_arrays import Arrays
from fuzz_data import Data
from fuzz_objects import Objects
from fuzz_plain import is_shape, par
from fuzz_wide import Wide

OWN = ("grown", "generators", "masks", "picks", "objects")      # what a `Full` writer knows of names, beside the others

DECORATORS = {
    "halved": ["def halved(fn):", "    @functools.wraps(fn)", "    def inner(*args, **named):",
               "        return 0.5 * fn(*args, **named)", "    return inner"],
    "scaled": ["def scaled(by):", "    def decorate(fn):", "        def inner(*args, **named):",
               "            return by * fn(*args, **named)", "        return inner", "    return decorate"],
    "plain": ["def plain(fn):", "    fn.known = True", "    return fn"],
}


class Full(Objects, Data, Arrays, Wide):
    """Draws from the whole language. Names of a kind of their own: see `OWN`."""

    def __init__(self, r):
        super().__init__(r)
        self.grown = {}                                     # lists of running length: to the shape of an element
        self.generators = {}
        self.masks, self.picks = {}, {}                     # arrays of flags: to a shape; of indices: to (count, limit)
        self.objects, self.classes = {}, {}
        self.imports, self.recursive = set(), {}

    # what is known of names

    def taken(self):
        names = super().taken() | set(self.classes) | set(self.recursive)
        for own in OWN:
            names |= set(getattr(self, own))
        return {n.split(".")[0] for n in names} | {"np", "math"}

    def own(self):
        return {name: dict(getattr(self, name)) for name in OWN}

    @contextlib.contextmanager
    def frame(self, params, result="none"):
        """The body of another function; `self.lines` is its text."""
        kept = self.__dict__.copy()
        self.vars, self.boxes, self.ints, self.lines = dict(params), {}, {}, []
        self.lambdas, self.owned, self.apart, self.locked, self.inside_helper = {}, set(), set(), set(), True
        self.result, self.loop, self.touched = result, "", []
        for name in OWN:
            setattr(self, name, {})
        yield
        self.__dict__.update({k: v for k, v in kept.items() if k != "fresh_count"})

    def helper(self, shape):
        kept = self.own()
        for name in OWN:
            setattr(self, name, {})
        name = super().helper(shape)
        self.__dict__.update(kept)
        if self.chance(0.2):
            decorator = self.r.choice(sorted(DECORATORS))
            text = "\n".join(DECORATORS[decorator])
            if text not in self.preamble:
                self.preamble.insert(0, text)
            self.imports.add("functools")
            head = f"@{decorator}(0.7)" if decorator == "scaled" else f"@{decorator}"
            self.preamble[-1] = f"{head}\n{self.preamble[-1]}"
        return name

    def new_setter(self, shape):
        kept = self.own()
        for name in OWN:
            setattr(self, name, {})
        name = super().new_setter(shape)
        self.__dict__.update(kept)
        return name

    def assign(self, pad, name, shape, text):
        if "." in name and self.vars.get(name) != shape:
            name = self.fresh()
        super().assign(pad, name, shape, text)

    def inner(self, pad, level, budget, locked=(), surely=True):
        kept = self.own()
        after = super().inner(pad, level, budget, locked, surely)
        self.__dict__.update(kept)
        return after

    # expressions

    def expr(self, shape, depth):
        if depth > 0 and self.chance(0.13):
            kinds = [self.of_objects, self.of_draws, self.of_grown, self.of_grown, self.of_flags, self.of_boxes,
                     self.recursion, self.other]
            for _ in range(3):
                text = self.r.choice(kinds)(shape, depth - 1)
                if text:
                    return text
        return super().expr(shape, depth)

    def other(self, shape, depth):
        """Functions that the other families leave out."""
        e, p = self.expr(shape, depth), par(self.expr(shape, depth))
        if shape == ():
            whole = self.r.choice(["0", "1", "-1"])
            power = f"{self.r.choice(['2', '3'])} ** -{self.r.choice(list(self.ints))}" if self.ints else "2 ** -1"
            return self.r.choice([f"max({e}, {self.number()})", f"min({e}, {p}, {self.number()})", f"float({e})",
                                  f"max({whole}, {e})", f"min({e}, {whole})", f"min({whole}, {e}, {p})",
                                  f"{power} * {p}", f"max({whole}, {power}, {p})",
                                  f"math.tanh({e})", f"pow({p}, 2)", f"abs({p}) % 1.7", f"math.hypot({e}, 1.2)",
                                  f"np.float64({e})", f"math.fsum([{e}, {p}, 0.5])", f"sum([{e}, {p}])",
                                  f"({p} > 0.2) * {p}", f"functools.reduce(lambda a, b: a * b, [{e}, {p}])"
                                  if "functools" in self.imports else f"np.prod([{e}, 1.3])"])
        n = shape[-1]
        forms = [f"np.swapaxes({self.expr(shape[:-2] + shape[-2:][::-1], depth)}, -1, -2)" if len(shape) > 1 else p,
                 f"{p} % 1.3", f"np.mod({e}, 0.9)", f"np.fmax({e}, {p})", f"np.atleast_1d({e})", f"np.nan_to_num({e})",
                 f"({p} > 0.1) * {p}", f"np.cumprod(1.1 + 0.2 * np.sin({e}), axis=-1)", f"np.array({e})",
                 f"np.select([{p} > 0.4, {p} > -0.2], [{e}, 0.3 * {p}], 0.1)", f"{p}.astype(float)",
                 f"np.asarray({e}, dtype=np.float64)", f"np.ascontiguousarray({e})", f"np.reciprocal(2.0 + {p}**2)",
                 f"np.add.reduce([{e}, {p}])", f"np.diff({self.expr(shape[:-1] + (n + 1,), 1)}, axis=-1)"]
        if len(shape) == 1:
            forms += [f"np.hstack([{self.expr((n - 1,), 1)}, {self.leaf(())}])" if n else p,
                      f"np.r_[{self.leaf(())}, {self.expr((n - 1,), 1)}]" if n else p,
                      f"np.append({self.expr((n - 1,), 1)}, {self.leaf(())})" if n else p,
                      f"np.diag({self.expr((n, n), 1)})",
                      f"np.linalg.solve({self.expr((n, n), 1)} + 4.0 * np.eye({n}), {e})",
                      f"np.convolve({e}, [0.5, 0.2], 'same')" if n > 1 else p,
                      f"np.sort({e})"]
        if len(shape) == 2:
            forms += [f"np.vstack([{p}[:1], {p}[1:]])", f"np.tril({e})", f"np.triu({e}, 1)", f"np.rot90({e}, 2)",
                      f"np.moveaxis({p}[None], 0, -1)[:, :, 0]", f"np.column_stack([{p}[:, k] for k in range({n})])"
                      if n else p, f"np.stack([row * 0.5 for row in {p}])" if shape[0] else p]
        return self.r.choice(forms)

    def recursion(self, shape, depth):
        known = [n for n, s in self.recursive.items() if s == shape]
        if self.inside_helper:
            return None
        if not known and len(self.recursive) < 2:
            name = f"again_{len(self.recursive) + 1}"
            with self.frame({"x": shape, "y": ()}):
                step, end, test = self.tame("x", shape, 1), self.expr(shape, 1), self.test()
                more = self.r.choice([f"{name}({step}, y, n - 1)", f"{name}({step}, n=n - 1, y=0.5 * y) * 0.9",
                                      f"x + 0.5 * {name}({step}, 0.8 * y, n - 1)"])
                lines = [f"def {name}(x, y, n):", f"    if {self.r.choice(['n == 0', 'n <= 0', 'not n'])}:",
                         f"        return {end}"]
                if self.chance(0.3):
                    lines += [f"    if {test}:", f"        x = {self.tame('x', shape, 1)}"]
                lines += [f"    return {more}"]
            self.preamble.append("\n".join(lines))
            self.recursive[name] = shape
            known = [name]
        if not known:
            return None
        return f"{self.r.choice(known)}({self.expr(shape, depth)}, {self.leaf(())}, {self.r.choice('0122')})"

    # statements

    def block(self, pad, level, budget):
        for _ in range(self.r.randint(1, budget) + (level == 0)):
            kind = self.r.random()
            if kind < 0.55:
                self.full(pad, level)
            elif kind < 0.68:
                self.wide(pad, level)
            else:
                super(Wide, self).block(pad, level, 1)

    def full(self, pad, level):
        flat = [self.new_object, self.use_object, self.use_object, self.stack, self.new_box, self.change_box,
                self.change_box, self.use_grown, self.use_grown, self.unpack, self.fill_call, self.fill_call,
                self.add_at, self.copy_to, self.through, self.flags, self.random_numbers, self.random_numbers,
                self.walrus, self.comprehension, self.variadic, self.collected]
        deep = [self.context, self.attempt, self.matching, self.walrus_while, self.grow, self.grow, self.grow,
                self.items,
                self.items, self.grown_loop, self.axes, self.axes, self.nested, self.object_loop, self.draws_loop]
        if level >= 2 or self.inside_helper and level >= 1:
            deep = []
        kind = self.r.choice(flat + deep * (2 if level == 0 else 1))
        kind(pad, level) if kind in deep else kind(pad)

    def context(self, pad, level):
        self.put(pad,
                 "with " + self.r.choice(["np.errstate(all='ignore'):", "np.errstate(divide='ignore', over='ignore'):",
                                               "np.errstate(invalid='raise'):", "contextlib.nullcontext():",
                                               "warnings.catch_warnings():",
                                               "np.errstate(all='ignore'), contextlib.nullcontext():"]))
        self.imports |= {"contextlib", "warnings"}
        if "catch" in self.lines[-1]:
            self.put(pad + 4, "warnings.simplefilter('ignore')")
        self.inner(pad + 4, level + 1, 2)

    def attempt(self, pad, level):
        raising = ["except ValueError as error:", "except (ValueError, ZeroDivisionError):", "except Exception:",
                   "except np.linalg.LinAlgError:", "except KeyError:"]
        head = self.r.choice(raising)
        self.put(pad, "try:")
        if self.chance(0.3):
            self.put(pad + 4, f"if not {self.test()} and {self.leaf(())} > 1e6:")
            self.put(pad + 8, "raise ValueError('too large')")
        self.inner(pad + 4, level + 1, 2)
        self.put(pad, head)
        self.put(pad + 4, "raise RuntimeError('no value')" + (" from error" if "error:" in head else
                                                              self.r.choice(["", " from None"])))
        if self.chance(0.3):
            self.put(pad, "else:")
            self.inner(pad + 4, level + 1, 1)
        if self.chance(0.2):
            self.put(pad, "finally:")
            v = self.fresh()
            self.put(pad + 4, f"{v} = {self.expr((), 1)}")
            self.bind_only(v, ())

    def bind_only(self, name, shape):
        """Note a name that a line just written has set."""
        if self.vars.get(name) != shape:
            self.lambdas = {n: x for n, x in self.lambdas.items() if name not in x[0]}
            self.captured_changed(name)
        self.vars[name] = shape
        self.apart.discard(name)
        self.owned.discard(name)

    def matching(self, pad, level):
        r = self.r
        found = [(t, s) for t, s in self.leaves() if s]
        t, s = r.choice(found) if found else ("np.ones(3)", (3,))
        kinds = {"rank": (f"{t}.ndim", ["1", "2", "3 | 4"]),
                 "shape": (f"{t}.shape", ["(n_0,)", "(n_0, n_1)", "[n_0, *others]"]),
                 "number": (r.choice(["2", "len(" + t + ")", *sorted(self.ints)]),
                            ["0", "1 | 2", "3 if True", "n_0 if n_0 > 2"]),
                 "word": (r.choice(["'fast'", "mode" if "mode" in self.locked else "'slow'"]),
                          ["'fast'", "'slow' | 'none'"]),
                 "pair": (f"({r.choice([0, 1, 2])}, 'up')", ["(0, 'up')", "(n_0, 'up' | 'down')", "(1, word)"]),
                 "type": (t, ["np.ndarray()", "float()", "list()"]),
                 "dict": ("{'kind': 'a', 'n': 2}", ["{'kind': 'b'}", "{'kind': 'a', 'n': n_0}"])}
        subject, patterns = kinds[r.choice(sorted(kinds))]
        self.put(pad, f"match {subject}:")
        for pattern in r.sample(patterns, r.randint(1, len(patterns))):
            self.put(pad + 4, f"case {pattern}:")
            kept = dict(self.ints)
            if "n_0" in pattern:
                self.ints["n_0"] = (0, 9)
            self.inner(pad + 8, level + 1, 1, surely=False)
            self.ints = kept
        if self.chance(0.8):
            self.put(pad + 4, "case _:")
            self.inner(pad + 8, level + 1, 1, surely=False)

    def walrus(self, pad):
        name, shape = self.fresh(), self.a_shape()
        if self.chance(0.5):
            self.put(pad, f"if ({name} := {self.expr((), 2)}) > {self.r.choice(['0.13', '-0.22'])}:")
            v = self.r.choice(self.free() or [self.buffer(pad + 4)])
            self.put(pad + 4, f"{v} = {self.tame(v, self.vars[v])}")
            self.bind_only(name, ())
        else:
            other = self.fresh()
            if other != name:
                self.put(pad, f"{other} = ({name} := {self.expr(shape, 2)}) * 0.5 + {name}")
                self.bind_only(name, shape)
                self.bind_only(other, shape)

    def walrus_while(self, pad, level):
        v = self.r.choice([v for v in self.free() if "." not in v] or [self.buffer(pad)])
        name, shape = self.fresh(), self.vars[v]
        value = f"abs({v})" if shape == () else f"np.sum({v} * {v})"
        kind, step = self.r.choice(["norm", "count", "both"]), f"{v} = {v} * 0.6"
        k = f"step_{len(self.lines)}"
        if kind != "norm":
            self.put(pad, f"{k} = 0")
            self.ints[k] = (0, 4)
        self.put(pad, {"norm": f"while ({name} := {value}) > 0.35:", "count": f"while ({k} := {k} + 1) < 4:",
                       "both": f"while ({k} := {k} + 1) < 5 and ({name} := {value}) > 0.31:"}[kind])
        kept = dict(self.vars)
        if kind != "count":
            self.vars[name] = ()
        if kind == "norm" or self.chance(0.5):
            self.put(pad + 4, step)
        self.inner(pad + 4, level + 1, 2, {v, k}, surely=False)
        self.vars = kept
        self.ints.pop(k, None)
        if kind == "norm":
            self.bind_only(name, ())

    def nested(self, pad, level):
        """A function inside, with statements and names of its own and of the function around it."""
        name = self.r.choice([n for n in ("act", "cell", "inner", "visit") if n not in self.taken()] or ["other"])
        if name in self.taken():
            return
        shape, out, param = self.a_shape(), self.a_shape(), "point"
        kept, spare = dict(self.vars), set(self.locked)
        state = self.loop, self.result, dict(self.boxes), dict(self.ints)
        own, lambdas = self.own(), self.lambdas
        self.locked = set(self.vars) | set(self.boxes) | spare | set(self.generators)
        self.loop, self.result, self.lambdas, self.generators = "", out, {}, {}
        self.put(pad, f"def {name}({param}, by={self.number()}):")
        at = len(self.lines)
        self.vars[param], self.vars["by"] = shape, ()
        self.block(pad + 4, 2, 1)
        self.put(pad + 4, f"return {self.expr(out, 2)}")
        body = "\n".join(self.lines[at:])
        self.vars, self.locked, (self.loop, self.result, self.boxes, self.ints) = kept, spare, state
        self.__dict__.update(own)
        self.lambdas = {**lambdas, name: ({param: shape}, out, "by" if self.chance(0.5) else None)}
        self.captures = {**self.captures, name: set(body.replace("(", " ").replace(")", " ").split())}

    def variadic(self, pad):
        """Functions that take starred and named arguments."""
        name = self.fresh()
        shape = self.a_shape()
        parts = [self.expr(shape, 1) for _ in range(self.r.randint(1, 3))]
        form = self.r.choice(["star", "named", "map", "partial", "functional"])
        if form == "star" and "gather" not in self.taken():
            self.preamble.append("def gather(*parts, by=0.5):\n    total = by\n    for part in parts:\n"
                                 "        total = total + np.sin(part)\n    return total")
            self.classes["gather"] = None
        if form == "named" and "blend" not in self.taken():
            self.preamble.append("def blend(first, **named):\n    for name, value in named.items():\n"
                                 "        first = first + value * len(name)\n    return first")
            self.classes["blend"] = None
        self.imports.add("functools")
        text = {"star": f"gather(*[{', '.join(parts)}], by={self.leaf(())})",
                "named": f"blend({parts[0]}, " + ", ".join(f"{n}={e}" for n, e in zip(["one", "other"], parts)) + ")",
                "map": f"sum(map(np.tanh, [{', '.join(parts)}]))",
                "partial": f"functools.partial(np.multiply, {parts[0]})({parts[-1]})",
                "functional": f"functools.reduce(lambda p, q: np.sin(p) * q + p, [{', '.join(parts)}])"}[form]
        self.put(pad, f"{name} = {text}")
        self.bind_only(name, shape)

    # draws

    def draw_of(self, rng, shape, depth):
        e, n = self.expr(shape, depth), self.dims(shape)
        of = f", size={n}" if shape else ""
        scale = f"np.abs({self.leaf(shape)}) + 1"
        return self.r.choice([
            f"{rng}.normal({e}, {scale})", f"{rng}.normal({e}, 0.4)", f"{rng}.normal(0.3, {scale})",
            f"{rng}.normal({self.leaf(())}, 0.5{of})", f"{rng}.normal(loc={e}, scale={scale})",
            f"{rng}.standard_normal({n if shape else ''})", f"{rng}.uniform(-0.5, 0.9{of})",
            f"{rng}.random({n if shape else ''})",
            f"{rng}.uniform({e}, 2.0 + {par(scale)})", f"{rng}.exponential({scale})", f"{rng}.laplace({e}, 0.3)",
            f"{rng}.gumbel({e}, {scale})", f"{rng}.logistic({e}, 0.2)", f"{rng}.integers(0, 3{of}) * {par(e)}",
            f"({rng}.random({n if shape else ''}) < 0.5) * {par(e)}", f"{rng}.lognormal(0.1 * np.sin({e}), 0.2)"])

    def of_draws(self, shape, depth):
        if not self.generators:
            return None
        return self.draw_of(self.r.choice(sorted(self.generators)), shape, depth)

    def random_numbers(self, pad):
        if self.generators and self.chance(0.75):
            rng = self.r.choice(sorted(self.generators))
        else:
            rng = self.r.choice(["rng", "rng_2", "gen", "noise"])
            if rng in self.taken() - set(self.generators):
                return
            seed = self.r.randint(0, 99)
            self.put(pad, f"{rng} = " + self.r.choice([f"np.random.default_rng({seed})"] * 4 + [
                f"np.random.Generator(np.random.PCG64({seed}))"]))
            self.generators[rng] = True
        name, shape = self.fresh(), self.a_shape()
        found = [(t, s) for t, s in self.leaves() if s and 0 not in s]
        if self.chance(0.2) and found:
            t, s = self.r.choice(found)
            text, shape = self.r.choice([(f"{t}[{rng}.permutation({s[0]})]", s),
                                         (f"{t}[{rng}.integers({s[0]})]", s[1:]),
                                         (f"{rng}.permutation({t})", s), (f"{rng}.choice({t}, 2)", (2,) + s[1:]),
                                         (f"{t}[{rng}.integers(0, {s[0]}, size=3)]", (3,) + s[1:])])
        else:
            text = self.draw_of(rng, shape, 1)
        self.put(pad, f"{name} = {text}")
        self.bind_only(name, shape)

    def draws_loop(self, pad, level):
        """Draws in a loop, as often as a test says."""
        if not self.generators:
            self.random_numbers(pad)
        if not self.generators:
            return
        rng, name, shape = self.r.choice(sorted(self.generators)), self.fresh(), self.a_shape()
        self.put(pad, f"{name} = {self.expr(shape, 1)}")
        self.bind_only(name, shape)
        head = self.r.choice(["for _ in range(3):", f"while {rng}.random() < 0.6:", f"if {self.test()}:",
                              f"while np.sum({name} * {name}) > 0.9 and {rng}.uniform() < 0.8:"])
        self.put(pad, head)
        step = self.draw_of(rng, shape, 1)
        self.put(pad + 4,
                 self.r.choice([f"{name} = 0.6 * {name} + 0.2 * {par(step)}", f"{name} = np.tanh({step}) * 0.4"]))
        if self.chance(0.5):
            self.inner(pad + 4, level + 1, 1, {name, rng}, surely=False)

    # the whole

    def arguments(self):
        tree = super().arguments()
        r = self.r
        if self.chance(0.25):
            odd = [(0,), (1,), (1, 1), (2, 0), (3, 1, 2), (2, 3, 2), (1, 3), (0, 2), (2, 2, 2), (), (1, 2, 1)]
            name = r.choice([n for n, t in tree.items() if is_shape(t)])
            tree[name] = r.choice(odd)
        return tree

    def total(self, count):
        text = super().total(count)
        for name in self.r.sample(sorted(self.grown), min(len(self.grown), 1)):
            text += f" + {self.r.choice(['0.2 * len({0})', 'np.sum({0})', 'np.sum(np.array({0}))']).format(name)}"
        return text

    def program(self):
        text, tree, extra = super().program()
        used = [m for m in ("collections", "contextlib", "copy", "dataclasses", "functools", "itertools", "typing",
                            "warnings")
                if f"{m}." in text]
        if used:
            text = "\n".join(f"import {m}" for m in used) + "\n\n\n" + text
        return text, tree, extra


