"""Statements that fill arrays: `out=`, `at`, copies, views, and loops over indices of several axes."""
import math

from fuzz_plain import par


class Arrays:
    def flags(self, pad):
        """Arrays of flags, of indices and of counts."""
        found = [(t, s) for t, s in self.leaves() if s and 0 not in s]
        if not found:
            return
        t, s = self.r.choice(found)
        kind = self.r.choice(["mask", "mask", "picks", "picks", "order", "where", "counts", "first"])
        if kind == "mask":
            name = self.r.choice(["mask", "keep", "near"])
            if name in self.taken() - set(self.masks):
                return
            u = self.r.choice(self.of(s))
            self.put(pad,
                     f"{name} = " + self.r.choice([f"{t} > 0.17", f"np.abs({t}) < 0.63", f"({t} > -0.4) & ({u} < 0.7)",
                                                        f"np.logical_or({t} > 0.52, {u} < -0.11)", f"~({t} < 0.08)",
                                                        f"np.isfinite({t}) & ({t} > {u} - 0.31)",
                                                   f"np.zeros({s}, dtype=bool)",
                                                        f"np.arange({s[-1]}) % 2 == 0 * np.ones({s})"]))
            self.masks[name] = s
        elif kind in ("picks", "order"):
            name = self.r.choice(["order", "at", "where"])
            if name in self.taken() - set(self.picks):
                return
            count = self.r.randint(1, 4)
            text = f"np.array({[self.r.randint(0, s[0] - 1) for _ in range(count)]})"
            if kind == "order":
                text, count = self.r.choice([(f"np.arange({s[0]})[::-1]", s[0]), (f"np.arange(3) % {s[0]}", 3),
                                             (f"np.argsort({t})" if len(s) == 1 else f"np.argsort({t}, axis=0)[..., 0]"
                                               if len(s) == 2 else f"np.arange({s[0]})", s[0]),
                                             (f"np.zeros(2, dtype=int) + {s[0] - 1}", 2)])
            self.put(pad, f"{name} = {text}")
            self.picks[name] = (count, s[0])
        elif kind == "counts":
            name = self.fresh()
            self.put(pad, f"{name} = " + self.r.choice([f"({t} > 0.2).astype(float)", f"np.arange({s[0]}, dtype=float)",
                                                        f"np.sum({t} > 0.1) * 0.3", f"({t} > 0).sum(axis=0) * 1.0",
                                                        f"np.arange({s[0]}) // 2 * 0.5",
                                                        f"np.count_nonzero({t} > 0.1) / 2"]))
            text = self.lines[-1]
            shape = s if "astype" in text else (s[0],) if "arange" in text else s[1:] if "axis" in text else ()
            self.bind_only(name, shape)
        elif kind == "first" and len(s) == 1:
            name = self.fresh()
            self.put(pad, f"{name} = " + self.r.choice([f"np.argmax({t})", f"int(np.argmin({t}))",
                                                        f"int(np.sum({t} > 9.0))"]))
            self.ints[name] = (0, s[0] - 1)
        else:
            name = self.fresh()
            self.put(pad, f"{name} = np.sum({t}[np.nonzero({t} > 0.1)])")
            self.bind_only(name, ())

    def of_flags(self, shape, depth):
        forms = []
        for name, s in self.masks.items():
            if s == shape:
                e, other = self.expr(shape, depth), self.leaf(shape)
                forms += [f"np.where({name}, {e}, {other})", f"{par(e)} * {name}", f"np.where(~{name}, {e}, 0.2)"]
            if shape == () and self.of(s):
                e = self.r.choice(self.of(s))
                forms += [f"np.sum({e}[{name}])", f"np.sum({e}, where={name})", f"np.sum({name}) * 0.2"]
        for name, (count, limit) in self.picks.items():
            if shape and shape[0] == count:
                have = [t for t, s in self.leaves() if s and s[0] == limit and s[1:] == shape[1:]]
                forms += [f"{self.r.choice(have)}[{name}]",
                          f"np.take({self.r.choice(have)}, {name}, axis=0)"] if have else []
        return self.r.choice(forms) if forms else None

    def out_of(self, t, s):
        """Where a function may write: the array or a view of it, and its shape."""
        forms = [(t, s)] * 5 + [(f"{t}[::-1]", s), (f"{t}[:]", s)]
        if s[0] > 1:
            forms += [(f"{t}[1:]", (s[0] - 1,) + s[1:])]
        if len(s) > 1:
            forms += [(f"{t}[{self.index(s[0])}]", s[1:]), (f"{t}.T", s[::-1]),
                      (f"{t}[:, {self.index(s[1])}]", s[:1] + s[2:])]
        return self.r.choice(forms)

    def fill_call(self, pad):
        t = self.an_array(pad)
        where, s = self.out_of(t, self.vars[t])
        self.touched.append(t)
        a, b = self.expr(s, 2), self.expr(self.part(s), 1)
        out = self.r.choice([f"out={where}", f"out={where}", where, f"out=({where},)"])
        mask = self.r.choice([f", where={u} > 0.15" for u in self.of(s)] + [f", where={m}" for m,
                                                                            k in self.masks.items() if k == s]
                             or [""]) if self.chance(0.25) and s else ""
        forms = [f"np.multiply({a}, {b}, {out}{mask})", f"np.add({a}, {b}, {out}{mask})", f"np.tanh({a}, {out}{mask})",
                 f"np.subtract({b}, {a}, {out}{mask})", f"np.sin({where}, {out}{mask})",
                 f"np.add({where}, {b}, {out}{mask})",
                 f"np.multiply({where}, {self.number()}, {out})", f"np.maximum({a}, {b}, {out})",
                 f"np.negative({a}, {out})",
                 f"np.divide({a}, 2.0 + np.cos({b}), {out})", f"np.square({a}, {out}{mask})"]
        if s:
            n, k = self.r.choice([1, 2, 3]), self.r.randint(0, len(s))
            named = f"out={where}"
            forms += [f"np.clip({a}, -0.3, 0.8, {named})", f"np.cumsum({a}, axis=0, {named})"]
            if len(s) < 3:
                e = self.expr(s[:k] + (n,) + s[k:], 1)
                forms += [f"np.sum({e}, axis={k}, {named})", f"np.mean({e}, axis={k}, {named})",
                          f"{par(e)}.sum(axis={k}, {named})", f"np.add.reduce({e}, axis={k}, {named})",
                          f"np.prod(1.1 + 0.2 * np.sin({e}), axis={k}, {named})", f"np.max({e}, axis={k}, {named})"]
            if where == t:
                if len(s) < 3:
                    forms.append(f"np.dot({self.expr((s[0], 2), 1)}, {self.expr((2,) + s[1:], 1)}, {named})")
                forms += [f"np.concatenate([{par(a)}[:1], {par(a)}[1:]], {named})",
                          f"np.stack([{', '.join([self.expr(s[1:], 1)] * s[0])}], {named})"]
        text = self.r.choice(forms)
        if self.chance(0.15) and "[" not in where and ".T" not in where:
            name = self.fresh()
            self.put(pad, f"{name} = {text}")
            self.bind_only(name, s)
            self.touched.append(name)
        elif s or where == t:
            self.put(pad, text)

    def add_at(self, pad):
        t = self.an_array(pad)
        s, k = self.vars[t], self.r.randint(1, 4)
        self.touched.append(t)
        where = f"np.array({[self.r.randint(-s[0], s[0] - 1) for _ in range(k)]})"
        known = [(n, c) for n, (c, limit) in self.picks.items() if limit == s[0]]
        if known and self.chance(0.5):
            where, k = self.r.choice(known)
        shape = (k,) + s[1:]
        if len(s) > 1 and self.chance(0.4):
            where, shape = f"({where}, {self.index(s[1])})", (k,) + s[2:]
        elif self.chance(0.2):
            where, shape = self.r.choice([(self.index(s[0]), s[1:]), ("slice(None)", s)])
        name = self.r.choice(["add", "add", "add", "subtract"])
        self.put(pad, f"np.{name}.at({t}, {where}, {self.value(shape)})")

    def copy_to(self, pad):
        r, t = self.r, self.an_array(pad)
        s = self.vars[t]
        self.touched.append(t)
        n, e, one = math.prod(s), self.value(s), self.expr((), 2)
        k = r.randint(0, n - 1)
        forms = [f"np.copyto({t}, {e})", f"np.copyto({t}, {self.expr(self.part(s), 1)}, where={t} > 0.21)",
                 f"{t}.fill({one})",
                 f"{t}.flat[{k}] = {one}", f"{t}.flat[{k}] += {one}", f"{t}.flat[::2] = {one}", f"{t}.flat = {one}",
                 f"{t}.flat[:] = {self.expr((n,), 1)}", f"np.putmask({t}, {t} > 0.3, {self.expr(s, 1)})",
                 f"np.place({t}, {t} > 0.44, [{one}])", f"np.put({t}, [{k}, 0], {one})", f"{t} **= 2", f"{t} %= 1.7",
                 f"np.copyto({t}[:1], {self.expr(s[1:], 1)})", f"{t}.put({k}, {one})", f"{t}[...] = {e}"]
        if len(s) == 2:
            forms += [f"np.fill_diagonal({t}, {one})"] * 3 + [f"np.fill_diagonal({t}, {self.expr((min(s),), 1)})"]
            if s[0] == s[1]:
                forms += [f"{t} @= {self.expr(s, 1)}", f"{t}[np.diag_indices({s[0]})] = {one}",
                          f"{t}[np.tril_indices({s[0]})] *= 0.5", f"np.einsum('ii->i', {t})[:] = {one}"]
        self.put(pad, r.choice(forms))

    def through(self, pad):
        """Writes through other shapes of a fresh array, and into copies that leave it alone."""
        r, s = self.r, self.r.choice([s for _, s in self.leaves() if s and 0 not in s] or [(2, 3)])
        t = self.fresh()
        fresh = r.choice([f"np.zeros({s})", f"np.array({self.expr(s, 1)})", f"{par(self.expr(s, 1))} * 1.0"])
        self.put(pad, f"{t} = {fresh}")
        self.bind_only(t, s)
        self.touched.append(t)
        n = math.prod(s)
        k = r.randint(0, n - 1)
        forms = [(f"{t}.reshape(-1)", (n,)), (f"{t}.ravel()", (n,)), (f"np.ravel({t})", (n,)), (f"{t}.flatten()", (n,)),
                 (f"np.reshape({t}, ({n}, 1))", (n, 1)), (f"{t}.reshape(1, {n})", (1, n)),
                 (f"np.expand_dims({t}, 0)", (1,) + s),
                 (f"np.atleast_2d({t})", (1,) * (2 - len(s)) + s), (f"{t}.astype(float, copy=False)", s),
                 (f"np.squeeze({t}[None], 0)", s), (f"np.flip({t}, 0)", s)]
        if len(s) > 1:
            forms += [(f"np.swapaxes({t}, 0, 1)", s[1::-1] + s[2:]), (f"np.moveaxis({t}, 0, -1)", s[1:] + s[:1])]
        text, shape = r.choice(forms)
        if r.random() < 0.5:
            self.put(pad,
                     f"{text}[{', '.join(str(self.r.randint(0, m - 1)) for m in shape)}] {r.choice(['=', '+=', '*='])} "
                          f"{self.expr((), 1)}")
        else:
            name = self.fresh()
            if name == t:
                return
            self.put(pad, f"{name} = {text}")
            self.bind_only(name, shape)
            self.touched.append(name)
            self.write(pad, name)
            if self.chance(0.4):
                self.put(pad, f"{t}.flat[{k}] *= 0.7")

    def axes(self, pad, level):
        """A loop over the indices of several axes."""
        r = self.r
        found = [(t, s) for t, s in self.leaves() if s and math.prod(s) < 13]
        if not found:
            return
        t, s = r.choice(found)
        names = ["i_a", "i_b", "i_c"][:len(s)]
        entry, bound = f"{t}[{', '.join(names)}]", {}
        where = ", ".join(names) + ("," if len(s) == 1 else "")
        kind = r.choice(["ndindex", "ndindex", "whole", "ndenumerate", "ndenumerate", "product", "pairs",
                         "combinations"])
        buffer, kept, ints, spare = None, dict(self.vars), dict(self.ints), set(self.locked)
        if self.chance(0.6):
            buffer = self.fresh()
            self.put(pad, f"{buffer} = np.zeros({self.dims(s)})")
            self.touched.append(buffer)
        total = self.fresh()
        if total == buffer:
            total += "_s"
        self.put(pad, f"{total} = 0.0")
        if kind == "ndindex":
            lengths = r.choice([f"{t}.shape", f"np.shape({t})", ", ".join(map(str, s))])
            self.put(pad, f"for {where} in np.ndindex({lengths}):")
        elif kind == "whole":
            self.put(pad, f"for where in np.ndindex({t}.shape):")
            entry = f"{t}[where]"
        elif kind == "ndenumerate":
            self.put(pad, f"for ({where}), entry in np.ndenumerate({t}):")
            bound = {"entry": ()}
            entry = r.choice(["entry", entry])
        elif kind == "product":
            self.put(pad, f"for {where} in itertools.product({', '.join(f'range({n})' for n in s)}):")
        elif kind == "pairs" and len(s) == 1:
            entry, buffer = "one", None
            self.put(pad, f"for one, two in {r.choice([f'zip({t}, {t}[1:])', f'zip({t}[:-1], {t}[1:])'])}:")
            bound, names = {"one": (), "two": ()}, []
        else:
            self.put(pad, f"for {names[0]}, other in itertools.combinations(range({s[0]}), 2):")
            entry, names, buffer = f"np.sum({t}[{names[0]}])", names[:1], None
        if kind != "whole":
            for name, n in zip(names, s):
                self.ints[name] = (0, n - 1)
        self.vars.update(bound)
        self.locked |= {*bound, total, t} | ({buffer} if buffer else set())
        e = self.expr((), 2)
        if self.chance(0.25) and kind in ("ndindex", "ndenumerate", "product"):
            self.put(pad + 4, f"if {names[0]} {r.choice(['> 0', '== 0', '% 2 == 1'])}:")
            self.put(pad + 8, r.choice(["continue", f"{total} += {e}"]))
        if buffer:
            at = "where" if kind == "whole" else ", ".join(names)
            self.put(pad + 4, f"{buffer}[{at}] {r.choice(['=', '+='])} np.sin({entry}) * {par(e)}")
        self.put(pad + 4, f"{total} {r.choice(['+=', '-='])} 0.3 * {entry} * {par(e)}")
        if self.chance(0.3):
            self.inner(pad + 4, level + 1, 1, set(bound), surely=False)
        self.vars, self.ints, self.locked = kept, ints, spare
        self.bind_only(total, ())
        if buffer:
            self.bind_only(buffer, s)
