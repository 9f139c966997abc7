"""Statements on containers: methods of lists and dictionaries, lists of running length, unpacking."""
from fuzz_plain import Tup, is_shape, items, par

KEYS = ("w", "b", "scale", "x", "k")


class Data:
    # containers of known structure

    def new_box(self, pad):
        name, kind = self.fresh(), self.r.choice(["list", "list", "dict", "dict", "zip", "keyword", "nested", "copy"])
        shape = self.a_shape()
        parts = [self.expr(shape, 1) for _ in range(self.r.randint(1, 3))]
        keys = self.r.sample(KEYS, len(parts))
        mine = [b for b in self.boxes if b not in self.locked]
        if kind == "list":
            text, tree = f"[{', '.join(parts)}]", [shape] * len(parts)
        elif kind == "nested":
            text, tree = f"{{'in': [{', '.join(parts)}], 'one': {parts[0]}}}", {"in": [shape] * len(parts),
                                                                                "one": shape}
        elif kind == "copy" and mine:
            other = self.r.choice(mine)
            tree = self.boxes[other]
            text = {dict: f"dict({other})", list: f"list({other})"}.get(type(tree), other)
            if type(tree) is dict and self.chance(0.4):
                text = self.r.choice([f"{{**{other}}}", f"{other}.copy()", f"{other} | {{}}"])
            if type(tree) is list and self.chance(0.4):
                text = self.r.choice([f"[*{other}]", f"{other}[:]", f"{other}.copy()", other])
            tree = tree.copy() if type(tree) in (dict, list) else tree
        else:
            tree = dict.fromkeys(keys, shape)
            text = {"zip": f"dict(zip({keys}, [{', '.join(parts)}]))",
                    "keyword": f"dict({', '.join(f'{k}={e}' for k, e in zip(keys, parts))})"}.get(
                kind, "{" + ", ".join(f"{k!r}: {e}" for k, e in zip(keys, parts)) + "}")
        self.put(pad, f"{name} = {text}")
        self.boxes[name] = tree
        for _ in range(self.r.choice([0, 0, 1, 2, 3])):
            self.change_box(pad)

    def boxes_of(self, kind):
        return [b for b, t in self.boxes.items() if type(t) is kind and b not in self.locked]

    def change_box(self, pad):
        lists, dicts = self.boxes_of(list), self.boxes_of(dict)
        if not lists and not dicts:
            return self.new_box(pad)
        name = self.r.choice(lists + dicts)
        self.boxes[name] = tree = self.boxes[name].copy()
        (self.change_list if name in lists else self.change_dict)(pad, name, tree, deep=pad > 4)

    def change_list(self, pad, name, tree, deep):
        """Only what keeps the structure, where a block may not run or run again."""
        shape = next((t for t in tree if is_shape(t)), ())
        k = self.r.randint(0, max(len(tree) - 1, 0))
        kinds = ["set", "set", "augment", "swap"] if deep and not self.chance(0.15) else [
            "append", "append", "insert", "extend", "pop", "pop", "reverse", "del", "add", "set", "sort", "slice"]
        kind, e = self.r.choice(kinds), self.expr(shape, 2)
        if kind in ("append", "insert", "extend", "add"):
            self.put(pad,
                     {"append": f"{name}.append({e})", "insert": f"{name}.insert({k}, {e})", "add": f"{name} += [{e}]",
                           "extend": f"{name}.extend([{e}])"}[kind])
            tree.insert(k if kind == "insert" else len(tree), shape)
        elif not all(map(is_shape, tree)) or len(tree) < 2 and kind in ("pop", "del"):
            return
        elif kind in ("pop", "del"):
            v = self.fresh()
            gone = tree.pop(k)
            if kind == "del":
                self.put(pad, f"del {name}[{k}]")
            else:
                self.put(pad, f"{v} = {name}.pop({k if k != len(tree) or self.chance(0.3) else ''})")
                self.bind_only(v, gone)
        elif kind == "reverse":
            self.put(pad,
                     self.r.choice([f"{name}.reverse()", f"{name} = {name}[::-1]", f"{name} = list(reversed({name}))"]))
            tree.reverse()
        elif kind == "sort":
            n = len(tree)
            self.put(pad, f"{name} = [{name}[{n - 1} - k] for k in sorted(range({n}), key=lambda k: -k * 2 % 3)]")
            self.boxes[name] = [tree[n - 1 - k] for k in sorted(range(n), key=lambda k: -k * 2 % 3)]
        elif kind == "swap" and len(set(tree)) == 1 or kind == "slice":
            self.put(pad, f"{name}[0], {name}[-1] = {name}[-1], {name}[0]")
            tree[0], tree[-1] = tree[-1], tree[0]
        elif kind == "augment":
            self.put(pad, f"{name}[{k}] {self.r.choice(['+=', '*='])} {self.expr(self.part(tree[k]), 1)}")
        else:
            self.put(pad, f"{name}[{k}] = {self.tame(f'{name}[{k}]', tree[k])}")

    def change_dict(self, pad, name, tree, deep):
        r, key = self.r, self.r.choice(KEYS)
        have = [k for k in tree if is_shape(tree[k])]
        if not have or len(tree) < 2:
            return
        old, shape = r.choice(have), self.a_shape()
        kind = r.choice(["set", "augment", "update"] if deep and not self.chance(0.15) else
                        ["new", "new", "set", "update", "setdefault", "pop", "get", "or", "del", "popitem"])
        if kind in ("set", "augment"):
            self.put(pad, f"{name}[{old!r}] = {self.tame(f'{name}[{old!r}]', tree[old])}" if kind == "set" else
                     f"{name}[{old!r}] {r.choice(['+=', '*='])} {self.expr(self.part(tree[old]), 1)}")
        elif kind == "update":
            e = self.expr(tree[old], 1)
            self.put(pad, r.choice([f"{name}.update({{{old!r}: {e}}})", f"{name}.update({old}={e})",
                                    f"{name} |= {{{old!r}: {e}}}", f"{name}.update([({old!r}, {e})])"]))
        elif kind == "new":
            self.put(pad, f"{name}[{key!r}] = {self.expr(shape, 2)}")
            tree[key] = shape
        elif kind == "or":
            self.put(pad, f"{name} = {name} | {{{key!r}: {self.expr(shape, 1)}}}")
            tree[key] = shape
        elif kind in ("setdefault", "get"):
            v = self.fresh()
            shape = tree.get(key, shape)
            if not is_shape(shape):
                return
            self.put(pad, f"{v} = {name}.{kind}({key!r}, {self.expr(shape, 1)})")
            self.bind_only(v, shape)
            if kind == "setdefault":
                tree[key] = shape
        elif kind == "popitem":
            last = list(tree)[-1]
            gone = tree.pop(last)
            v = self.fresh()
            self.put(pad, f"_, {v} = {name}.popitem()")
            if is_shape(gone):
                self.bind_only(v, gone)
        elif kind == "del":
            self.put(pad, f"del {name}[{old!r}]")
            tree.pop(old)
        else:
            v = self.fresh()
            self.put(pad, f"{v} = {name}.pop({old!r}{self.r.choice(['', ', None'])})")
            self.bind_only(v, tree.pop(old))

    def of_boxes(self, shape, depth):
        """An expression of a container's items."""
        forms = []
        for name, tree in self.boxes.items():
            have = list(tree.values()) if isinstance(tree, dict) else items(tree)
            if not have or not all(is_shape(s) for s in have):
                continue
            values = f"{name}.values()" if isinstance(tree, dict) else name
            if all(s == shape for s in have):
                forms += [f"sum({values})", f"sum(v * 0.5 for v in {values})", f"sum(map(np.sin, {values}))",
                          f"np.sum([np.tanh(v) for v in {values}], axis=0)" if shape else f"max({values})",
                          f"list({values})[-1]", f"[v for v in {values}][0]", f"next(iter({values}))",
                          f"sum(k * v for k, v in enumerate({values}, 1))", f"np.stack(list({values})).mean(axis=0)",
                          f"sum(p * q for p, q in zip({values}, reversed(list({values}))))"]
                if isinstance(tree, dict):
                    forms += [f"sum(v * len(k) for k, v in {name}.items())",
                              f"sum({name}[k] for k in sorted({name}))",
                              f"sum(j * v for j, (k, v) in enumerate(sorted({name}.items(), key=lambda kv: kv[0]), 1))"]
            elif shape == ():
                forms += [f"sum(np.sum(v) for v in {values})",
                          f"sum(np.sum(v * v) for v in {values} if np.ndim(v) > 0)",
                          f"0.3 * len({name})",
                          f"sum(float(np.sum(v)) for v in filter(lambda v: np.size(v) > 1, {values}))",
                          f"sum([np.sum(v) for v in {values}][1:])", f"max(np.sum(v) for v in {values})"]
        return self.r.choice(forms) if forms else None

    def items(self, pad, level):
        """A loop over a container's items, or a comprehension of them."""
        found = [(b, t) for b, t in self.boxes.items()
                 if len(set(map(str, t.values() if isinstance(t, dict) else t))) == 1]
        found = [(b, t) for b, t in found if is_shape(next(iter(t.values() if isinstance(t, dict) else t)))]
        if not found:
            return self.new_box(pad)
        name, tree = self.r.choice(found)
        v, i = self.fresh(), self.counter()
        shape = next(iter(tree.values() if isinstance(tree, dict) else tree))
        kept, ints = dict(self.vars), dict(self.ints)
        changes = None
        if isinstance(tree, dict):
            head, key = self.r.choice([(f"key, {v} in {name}.items()", "key"), (f"{v} in {name}.values()", None),
                                       (f"key, {v} in sorted({name}.items())", "key"),
                                       (f"{i}, {v} in enumerate({name}.values())", None),
                                       (f"key, {v} in zip({name}, {name}.values())", "key")])
            if head.startswith(i + ","):
                self.ints[i] = (0, len(tree) - 1)
            if key and self.chance(0.4) and name not in self.locked:
                changes = f"{name}[key] = "
        else:
            head = self.r.choice([f"{i}, {v} in enumerate({name})", f"{v} in {name}", f"{v} in reversed({name})",
                                  f"{i}, {v} in enumerate(map(np.sin, {name}))", f"{v} in list({name})[::-1]",
                                  f"{v} in filter(lambda one: np.size(one) > 0, {name})",
                                  f"{i}, ({v}, _) in enumerate(zip({name}, {name}))"])
            if head.startswith(i + ","):
                self.ints[i] = (0, max(len(tree) - 1, 0))
                if self.chance(0.4) and type(tree) is list and name not in self.locked:
                    changes = f"{name}[{i}] = "
        self.put(pad, f"for {head}:")
        self.vars[v] = shape
        spare, self.locked = set(self.locked), self.locked | {name, v}
        if changes:
            self.put(pad + 4, changes + self.tame(v, shape))
        self.inner(pad + 4, level + 1, 2, {v, name}, surely=False)
        self.vars, self.ints, self.locked = kept, ints, spare

    def unpack(self, pad):
        found = [(b, t) for b, t in self.boxes.items() if not isinstance(t, dict) and len(t) > 1]
        names = list(dict.fromkeys(self.fresh() for _ in range(3)))
        if len(names) < 3:
            return
        a, b, c = names
        if found and self.chance(0.7):
            name, tree = self.r.choice(found)
            kind = self.r.choice(["first", "last", "ends", "all"])
            targets = {"first": f"{a}, *{b}", "last": f"*{b}, {a}", "ends": f"{a}, *{b}, {c}",
                       "all": f"[{a}, {b}]"}[kind]
            bound = {"first": [(a, tree[0]), (b, list(tree[1:]))], "last": [(a, tree[-1]), (b, list(tree[:-1]))],
                     "ends": [(a, tree[0]), (b, list(tree[1:-1])), (c, tree[-1])],
                     "all": [(a, tree[0]), (b, tree[1])]}[kind]
            self.put(pad, f"{targets} = {name}")
        else:
            shapes = [self.a_shape() for _ in range(3)]
            e1, e2, e3 = (self.expr(s, 1) for s in shapes)
            targets, text, bound = self.r.choice([
                (f"({a}, {b}), {c}", f"({e1}, {e2}), {e3}", list(zip(names, shapes))),
                (f"{a}, *{b}", f"{e1}, {e2}, {e3}", [(a, shapes[0]), (b, shapes[1:])]),
                (f"{a}, ({b}, {c})", f"{e1}, [{e2}, {e3}]", list(zip(names, shapes))),
                (f"{a} = {b}, {c}", f"{e1}, {e2}", [(a, Tup(shapes[:2])), (b, shapes[0]), (c, shapes[1])])])
            self.put(pad, f"{targets} = {text}")
        for name, tree in bound:
            if is_shape(tree):
                self.bind_only(name, tree)
            elif tree:
                self.boxes[name] = tree

    def collected(self, pad):
        """Containers of `collections`, and iterators."""
        name, shape = self.fresh(), self.a_shape()
        a, b, c = (self.expr(shape, 1) for _ in range(3))
        one, two = self.r.sample(KEYS, 2)
        lines, text = self.r.choice([
            (["d_1 = collections.defaultdict(float)", f"d_1[{one!r}] += {a}", f"d_1[{two!r}] += {b}",
              f"d_1[{one!r}] *= {self.number()}"], "sum(d_1.values())"),
            (["d_2 = collections.defaultdict(list)", f"d_2[{one!r}].append({a})", f"d_2[{two!r}].append({b})",
              f"d_2[{one!r}].append({c})"], f"sum(d_2[{one!r}]) - d_2[{two!r}][0]"),
            ([f"d_3 = collections.OrderedDict([({one!r}, {a}), ({two!r}, {b})])", f"d_3.move_to_end({one!r})"],
             "sum(k * v for k, v in enumerate(d_3.values()))"),
            ([f"d_4 = collections.deque([{a}], maxlen=2)", f"d_4.append({b})", f"d_4.append({c})"],
             "d_4[0] - d_4.popleft()"
             " * d_4[-1]"),
            ([f"d_5 = collections.deque([{a}, {b}])", "d_5.rotate(1)", f"d_5.appendleft({c})"],
             "d_5.pop() - 0.3 * sum(d_5)"),
            ([f"d_6 = iter([{a}, {b}, {c}])", "first = next(d_6)"], "first * sum(d_6)"),
            ([], f"sum(itertools.chain([{a}], ({b}, {c})))"), ([], f"list(itertools.accumulate([{a}, {b}, {c}]))[-1]"),
            ([], f"sum(p * q for p, q in itertools.pairwise([{a}, {b}, {c}]))"),
            ([f"d_7 = {{f'layer_{{k}}': v for k, v in enumerate([{a}, {b}])}}"], "d_7['layer_0'] - d_7[f'layer_{1}']"),
            ([f"d_8 = {{'%s_%d' % ({one!r}, 1): {a}}}", f"d_8['{{}}'.format({two!r})] = {b}"],
             f"d_8['{one}_1'] * d_8[{two!r}]"),
            ([f"d_9 = [{a}]", "d_10 = d_9", f"d_10.append({b})"], "d_9[-1] - d_9[0]")])
        for line in lines:
            self.put(pad, line)
        self.put(pad, f"{name} = {text}")
        self.bind_only(name, shape)

    def comprehension(self, pad):
        """A list or dictionary of known length."""
        name, shape, n = self.fresh(), self.a_shape(), self.r.randint(1, 3)
        kept = dict(self.ints), dict(self.vars)
        self.ints["k"] = (0, n - 1)
        form = self.r.choice(["range", "range", "dict", "zip", "walrus"])
        e = self.expr(shape, 2)
        if form == "zip":
            self.vars["one"] = ()
            e = self.expr(shape, 2)
        self.ints, self.vars = kept
        text = {"range": f"[{e} for k in range({n})]", "dict": f"{{str(k): {e} for k in range({n})}}",
                "zip": f"[{e} for k, one in zip(range({n}), (0.2, {self.leaf(())}, 0.5))]",
                "walrus": f"[(last := {e}) for k in range({n}) if k != 7]"}[form]
        self.put(pad, f"{name} = {text}")
        self.boxes[name] = {str(k): shape for k in range(n)} if form == "dict" else [shape] * n

    # lists of running length

    def an_element(self, shape):
        e = self.expr(shape, 2)
        return self.r.choice([e, f"np.tanh({e})", f"0.5 * {par(e)}"])

    def grow(self, pad, level):
        name, shape = self.fresh(), self.a_shape()[:2]
        arrays = [(t, s) for t, s in self.leaves() if s]
        t, s = self.r.choice(arrays) if arrays else ("np.arange(3.0)", (3,))
        row, kind = "item", self.r.choice(["comprehension", "comprehension", "for", "for", "for", "while", "branch"])
        kept, ints, spare = dict(self.vars), dict(self.ints), set(self.locked)
        if kind == "comprehension":
            self.vars[row] = s[1:]
            e, test = self.an_element(shape), self.test()
            if self.chance(0.2):
                self.put(pad, f"{name} = [other * {par(e)} for {row} in {t} for other in ({self.number()}, 0.3)]")
            else:
                head = self.r.choice([f"{row} in {t}", f"k, {row} in enumerate({t})", f"{row}, _ in zip({t}, {t})",
                                      f"{row} in {t}[::-1]"])
                self.put(pad, f"{name} = [{e} for {head}" + (f" if {test}]" if self.chance(0.4) else "]"))
            self.vars = kept
        else:
            self.put(pad, f"{name} = " + self.r.choice(["[]", "[]", "list()", f"[{self.expr(shape, 1)}]"]))
            if kind == "for":
                self.vars[row] = s[1:]
                self.put(pad, "for " + self.r.choice([f"{row} in {t}:", f"k, {row} in enumerate({t}):",
                                                      f"{row} in reversed({t}):"]))
            elif kind == "while":
                k = f"step_{len(self.lines)}"
                self.put(pad, f"{k} = 0")
                self.put(pad,
                         f"while {k} < {self.r.randint(1, 4)}" + (f" and {self.test()}:" if self.chance(0.6) else ":"))
                self.put(pad + 4, f"{k} += 1")
                self.ints[k] = (0, 4)
                self.locked |= {k}
            else:
                self.put(pad, f"if {self.test()}:")
            self.locked |= {name, row}
            state = self.own()
            if self.chance(0.4) and kind != "comprehension":
                self.inner(pad + 4, level + 1, 1, {row, name}, surely=False)
            self.locked |= {name, row}
            if self.chance(0.25):
                self.put(pad + 4, f"if {self.test()}:")
                self.put(pad + 8, self.r.choice([f"{name}.append({self.an_element(shape)})", "continue", "break"])
                         if kind == "for" else f"{name}.append({self.an_element(shape)})")
            self.put(pad + 4, self.r.choice([f"{name}.append({self.an_element(shape)})"] * 4 + [
                f"{name} += [{self.an_element(shape)}]",
                f"{name}.extend([{self.an_element(shape)}, {self.leaf(shape)}])",
                f"{name}.append({self.an_element(shape)} if not {name} else {name}[-1] * 0.7)",
                f"{name} = {name} + [{self.an_element(shape)}]"]))
            if self.chance(0.12):
                self.put(pad + 4, f"if len({name}) > 2:")
                self.put(pad + 8, f"{name}.pop()")
            if kind == "branch" and self.chance(0.5):
                self.put(pad, "else:")
                self.put(pad + 4, f"{name}.append({self.leaf(shape)})")
                self.put(pad + 4, f"{name}.append({self.leaf(shape)})")
            self.vars, self.ints, self.locked = kept, ints, spare
            self.__dict__.update(state)
        self.grown[name] = shape
        for _ in range(self.r.randint(0, 2)):
            self.use_grown(pad)

    def of_grown(self, shape, depth):
        forms = []
        for name, s in self.grown.items():
            if s == shape:
                forms += [f"{name}[-1]", f"{name}[-1]", f"{name}[0]", f"sum({name})", f"np.sum({name}, axis=0)",
                          f"np.mean(np.array({name}), axis=0)", f"np.stack({name}).sum(axis=0)",
                          f"({name}[-1] - {name}[0])",
                          f"sum(np.tanh(v) for v in {name})", f"np.max(np.stack({name}), axis=0)",
                          f"np.asarray({name})[-1]"]
            if shape == ():
                forms += [f"np.sum({name})", f"np.sum(np.array({name})**2)", f"len({name}) * 0.1", f"np.max({name})",
                          f"sum(np.sum(v) for v in {name})", f"np.sum(np.sin(np.stack({name})))", f"np.sum({name}[-1])"]
        return self.r.choice(forms) if forms else None

    def use_grown(self, pad):
        names = [n for n in self.grown if n not in self.locked]
        if not names:
            return
        name, v = self.r.choice(sorted(names)), self.fresh()
        shape = self.grown[name]
        e = self.an_element(shape)
        kind = self.r.choice(["read", "read", "read", "append", "pop", "set", "add", "copy", "slice", "array",
                              "insert", "map",
                              "guard", "reverse", "alias", "drain", "augment"])
        forms = {"append": f"{name}.append({e})", "set": f"{name}[{self.r.choice([0, -1])}] = {e}",
                 "add": f"{name} += [{e}]",
                 "insert": f"{name}.insert(0, {e})", "reverse": f"{name}.reverse()",
                 "augment": f"{name}[-1] {self.r.choice(['+=', '*='])} {self.expr(self.part(shape), 1)}"}
        if kind in forms:
            self.put(pad, forms[kind])
        elif kind == "pop":
            self.put(pad, f"{v} = {name}.pop({self.r.choice(['', '', '0', '-1'])})")
            self.bind_only(v, shape)
        elif kind in ("copy", "slice", "map", "alias"):
            self.put(pad, {"copy": f"{v} = {self.r.choice([f'list({name})', f'{name}.copy()', f'[*{name}]'])}",
                           "slice": f"{v} = {name}{self.r.choice(['[1:]', '[::-1]', '[:-1]', '[::2]'])}",
                           "alias": f"{v} = {name}",
                           "map": f"{v} = " + self.r.choice([f"[np.sin(w) for w in {name}]",
                                                             f"list(map(np.tanh, {name}))",
                                                             f"[w * k for k, w in enumerate({name})]"])}[kind])
            self.grown[v] = shape
        elif kind == "array":                               # its length is not known, so it is summed at once
            self.put(pad, f"{v} = np.array({name})")
            self.put(pad, f"{v} = np.sum({v}{self.r.choice(['', '[1:]', ' * ' + v, '[::-1]'])}, axis=0)")
            self.bind_only(v, shape)
        elif kind == "guard":
            self.put(pad, f"{v} = {name}[-1] if {self.r.choice([name, f'len({name}) > 1'])} else {self.leaf(shape)}")
            self.bind_only(v, shape)
        elif kind == "drain":
            self.put(pad, f"{v} = {self.leaf(shape)}")
            self.put(pad, f"while {self.r.choice([name, f'len({name}) > 0', f'len({name}) > 1'])}:")
            self.put(pad + 4, f"{v} = 0.7 * {v} + 0.3 * np.sin({name}.pop({self.r.choice(['', '', '0'])}))")
            self.bind_only(v, shape)
        else:
            out = self.r.choice([shape, shape, ()])
            text = self.of_grown(out, 1)
            self.put(pad, f"{v} = {text}")
            self.bind_only(v, out)

    def grown_loop(self, pad, level):
        """A loop over a list of running length."""
        if not self.grown:
            return self.grow(pad, level)
        name = self.r.choice(sorted(self.grown))
        shape, v = self.grown[name], self.fresh()
        kept, ints, spare = dict(self.vars), dict(self.ints), set(self.locked)
        i = self.counter()
        head = self.r.choice([f"{v} in {name}", f"{i}, {v} in enumerate({name})", f"{v}, _ in zip({name}, {name}[1:])",
                              f"{v} in reversed({name})", f"{v} in list({name})", f"{i} in range(len({name}))"])
        total = self.r.choice([n for n in self.vars if self.vars[n] == shape and n not in self.locked] or [None])
        self.put(pad, f"for {head}:")
        if " in range" in head:
            self.put(pad + 4, f"{name}[{i}] = {name}[{i}] * 0.8 + 0.1 * {self.leaf(shape)}" if name not in spare and
                     self.chance(0.5) else f"{v} = {name}[{i}] * 1.1")
            if not self.lines[-1].startswith(" " * (pad + 4) + v):
                self.put(pad + 4, f"{v} = {name}[{i}]")
        self.vars[v] = shape
        self.locked |= {name, v}
        if total and total != v:
            self.put(pad + 4, f"{total} = {total} + 0.3 * np.sin({v})")
        if self.chance(0.6) or not total:
            self.inner(pad + 4, level + 1, 2, {v, name, i}, surely=False)
        self.vars, self.ints, self.locked = kept, ints, spare
