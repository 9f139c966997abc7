"""PTX run by NumPy: all threads of a launch side by side, in the host's memory, as a device would run them.

A thread has a place in the program; those at the lowest place that is not behind a wait take the next instruction
together.  A shuffle waits for its warp and a barrier for its block.  Every address is looked up among the arrays that
the kernel was given, and every two threads that come to one address in one launch, one of them to write there, are an
error unless both are atomic or a barrier of their block lies between them.

Source: NVIDIA, PTX ISA 9.x, instruction set and memory consistency.
"""
import ctypes
import functools
import re

import numpy as np

BASE = 4096
MEMORY = np.frombuffer((ctypes.c_uint8 * ((1 << 47) - BASE)).from_address(BASE), np.uint8)
TYPES = {"pred": np.dtype(bool)} | {f"{k}{n}": np.dtype(f"{'i' if k == 's' else 'u'}{n // 8}") for k in "usb" for n in (
    8, 16, 32, 64)} | {f"f{n}": np.dtype(f"f{n // 8}") for n in (16, 32, 64)}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">",
           "hs": ">="}
WARP = 32


class Fault(AssertionError):
    """A kernel that does what a device does not allow, or that threads do in no certain order."""


def bits(value):
    """A literal of PTX as (number, how many bytes it has; 0 of a whole number)."""
    if value[:2].lower() == "0f":
        return np.uint32(int(value[2:], 16)).view(np.float32), 4
    if value[:2].lower() == "0d":
        return np.uint64(int(value[2:], 16)).view(np.float64), 8
    return int(value.rstrip("U"), 0), 0


# --- the text ---------------------------------------------------------------------------------------------------------

def bare(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def variables(text):
    """{name: (bytes, size)} of a module's own memory."""
    found = {}
    for size, name, count, values in re.findall(
            r"\.(?:const|global|shared)\s+(?:\.align \d+ )?\.[a-z](\d+) (\w+)(?:\[(\d+)\])?(?:\s*=\s*\{([^}]*)\})?;",
            text):
        width = int(size) // 8
        data = np.zeros(width * int(count or 1), np.uint8)
        if values:
            numbers = np.array([int(v, 0) for v in values.split(",")], object)
            given = np.array([n % (1 << 8 * width) for n in numbers], f"u{width}").view(np.uint8)
            data[:len(given)] = given
        found[name] = data
    return found


@functools.lru_cache(maxsize=4096)
def program_of(text):
    return Program(text)


class Program:
    """steps: (guard, name, types and other words, operands); labels: {name: place}; params: {name: offset}; sizes: of
    what threads have for themselves; registers: {name: dtype}.
    """

    def __init__(self, text):
        text = bare(text)
        self.own, self.shared_names = variables(text), set(re.findall(r"\.shared\s[^;]*?(\w+)(?:\[\d+\])?;", text))
        self.functions = {m[2]: m for m in re.finditer(
            r"\.func\s*(\(.*?\))?\s*([\w$]+)\s*\((.*?)\)\s*(?:\.noreturn)?\s*(\{.*?\n\})", text, re.S)}
        entry = re.search(r"\.entry ([\w$]+)\((.*?)\)[^{]*(\{.*\n\})", text, re.S)
        self.entry, self.params, end = entry[1], {}, 0
        for aligned, kind, name, count in re.findall(
                r"\.param (?:\.align (\d+) )?\.\w(\d+) ([\w$]+)(?:\[(\d+)\])?", entry[2]):
            size = int(kind) // 8
            unit = int(aligned or size)
            end = -(-end // unit) * unit
            self.params[name] = end
            end += size * int(count or 1)
        self.steps, self.labels, self.sizes, self.registers, self.inlined = [], {}, {}, {}, 0
        self.read(entry[3], "")
        self.stops = set(self.labels.values())
        self.run = [compiled(self, step) for step in self.steps]

    def read(self, body, suffix, names=None, end=None):
        """A body; suffix: of what it names; names: others, by what they are here; end: where it returns to."""
        scopes = [dict(names or {})]

        def here(text):
            def word(m):
                for scope in reversed(scopes):
                    if m[0] in scope:
                        return scope[m[0]]
                return m[0]
            return re.sub(r"[%$A-Za-z_][\w$]*(?:\.[xyz]\b)?", word, text)
        depth = 0
        for part in re.findall(r"\s*([{}](?!\s*%)|[%$\w]+:|[^;{}]*(?:\{[^{};]*\}[^;{}]*)*;)", body[1:-1]):
            part = part.strip()
            if part == "{":
                scopes.append({})
                depth += 1
            elif part == "}":
                scopes.pop()
            elif part.endswith(":"):
                self.labels[part[:-1] + suffix] = len(self.steps)
            elif part.startswith((".reg", ".local", ".shared", ".param")):
                self.declare(part, scopes[-1], suffix if len(scopes) == 1 else f"{suffix}_{depth}")
            elif part not in (";", "") and not part.startswith((".pragma", ".loc")):
                self.step(here(part.rstrip("; \n\t")), suffix, end)

    def declare(self, part, scope, suffix):
        kind = re.match(r"\.(\w+)", part)[1]
        for name, *counts in re.findall(r"([%$A-Za-z_][\w$]*)(?:<(\d+)>|\[(\d+)\])?\s*[,;]", part):
            count = counts[0] or counts[1] or None
            dtype = TYPES[re.findall(r"\.([a-z]\d+|pred)\b", part)[0]]
            if kind == "reg":
                width = dtype if dtype.kind == "b" else np.dtype(f"u{max(dtype.itemsize, 2)}")
                for k in [""] if count is None else range(int(count)):
                    self.registers[f"{name}{k}{suffix}"] = width
                    if suffix:
                        scope[f"{name}{k}"] = f"{name}{k}{suffix}"
            else:
                size = dtype.itemsize * int(count or 1)
                if kind == "shared":
                    self.own[name + suffix] = np.zeros(size, np.uint8)
                    self.shared_names.add(name + suffix)
                else:
                    self.sizes[name + suffix] = size
                if suffix:
                    scope[name] = name + suffix

    def step(self, text, suffix, end):
        text = " ".join(text.split())
        guard = re.match(r"@(!?)([%\w$]+) ", text)
        if guard:
            text = text[guard.end():]
        guard = guard and (guard[2], bool(guard[1]))
        name, _, rest = text.partition(" ")
        if name.startswith("call"):
            return self.inline(rest, guard)
        operands = tuple(o.strip() for o in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]]+", rest) if o.strip(" ,"))
        words = name.split(".")
        if words[0] == "bra":
            operands = (operands[0] + suffix,)
        if words[0] == "ret" and end is not None:
            words, operands = ["bra"], (end,)
        self.steps.append((guard, words[0], tuple(words[1:]), operands))

    def inline(self, rest, guard):
        assert guard is None, "a call that some threads take"
        m = re.match(r"(?:\((.*?)\),\s*)?([\w$]+),?\s*(?:\((.*?)\))?", rest)
        function = self.functions[m[2]]
        self.inlined += 1
        suffix = f"__{self.inlined}"
        named = [*re.findall(r"([\w$]+)(?:\[\d+\])?\s*[,)]", (function[1] or "") + ","),
                 *re.findall(r"([\w$]+)(?:\[\d+\])?\s*,", function[3] + ",")]
        given = [g.strip() for g in (f"{m[1]}," if m[1] else "").split(",")[:-1] + (m[3] or "").split(",") if g.strip()]
        self.read(function[4], suffix, dict(zip(named, given)), f"end{suffix}")
        self.labels[f"end{suffix}"] = len(self.steps)


# --- a launch ---------------------------------------------------------------------------------------------------------

class Launch:
    """blocks, threads: of a grid, three of each; spans: of the memory that the kernel may reach."""

    def __init__(self, text, blocks, threads, data, spans):
        self.program, self.given = program_of(text), [(a, b) for a, b in spans if b > a]
        program = self.program
        self.block, self.count = int(np.prod(threads)), int(np.prod(blocks) * np.prod(threads))
        thread = np.arange(self.count)
        self.thread, self.of_block, self.warp = thread, thread // self.block, thread % self.block // WARP
        self.special, at, of = {}, thread % self.block, self.of_block
        for axis, n, m in zip("xyz", threads, blocks):
            self.special |= {f"%tid.{axis}": at % n, f"%ctaid.{axis}": of % m, f"%ntid.{axis}": n, f"%nctaid.{axis}": m}
            at, of = at // n, of // m
        self.special["%laneid"] = thread % self.block % WARP
        self.registers = {n: np.zeros(self.count, dtype) for n, dtype in program.registers.items()}
        self.keep = [np.frombuffer(bytes(data) + b"\0" * 8, np.uint8).copy()]
        own = [(self.keep[0].ctypes.data, self.keep[0].nbytes)]
        self.symbols = {n: np.full(self.count, own[0][0] + at, np.int64) for n, at in program.params.items()}
        for n, size in program.sizes.items():
            own.append(self.room(n, size, thread, self.count))
        for n, value in program.own.items():
            shared = n in program.shared_names
            own.append(self.room(n, value.nbytes, self.of_block if shared else thread * 0, int(np.prod(blocks)) if (
                shared) else 1))
            if not shared:
                self.keep[-1][:value.nbytes] = value
        self.starts, self.ends = (np.array(sorted(k), np.int64) for k in zip(*(
            self.given + [(a, a + n) for a, n in own if n])))
        self.private = sorted((a, a + n) for a, n in own if n)
        self.pc, self.alive, self.waits = (np.zeros(self.count, k) for k in (np.int64, bool, bool))
        self.alive[:] = True
        self.carry, self.epoch, self.seen = np.zeros(self.count, bool), np.zeros(self.count, np.int64), []

    def room(self, name, size, place, count):
        size = -(-size // 16) * 16
        self.keep.append(np.zeros(size * count, np.uint8))
        start = self.keep[-1].ctypes.data
        self.symbols[name] = start + place * size
        return start, size * count

    def run(self):
        with np.errstate(all="ignore"):
            while self.alive.any():
                ready = np.flatnonzero(self.alive & ~self.waits)
                if not len(ready):
                    self.release()
                    continue
                place = self.pc[ready].min()
                self.together(int(place), ready[self.pc[ready] == place])
        self.races()

    def together(self, place, who):
        """Threads at one place go on until they part, wait, or meet others."""
        steps, run, stops = self.program.steps, self.program.run, self.program.stops
        first = True
        while True:
            if place in stops and not first or place == len(steps):
                self.pc[who] = place
                if place == len(steps):
                    self.alive[who] = False
                return
            first = False
            guard, name, _, operands = steps[place]
            some = who
            if guard is not None:
                held = self.registers[guard[0]][who]
                some = who[~held if guard[1] else held]
            if name == "bra":
                self.pc[who] = place + 1
                self.pc[some] = self.program.labels[operands[0]]
                return
            if name in ("ret", "exit"):
                self.pc[who] = place + 1
                self.alive[some] = False
                return
            if name in ("bar", "barrier", "shfl", "vote", "match"):
                if len(some) != len(who):
                    raise Fault(f"{name} under a condition")
                self.pc[who] = place
                self.waits[who] = True
                if len(who) == self.alive.sum():
                    self.release()
                return
            if len(some):
                run[place](self, some)
            place += 1

    def release(self):
        """Those go on for whom all are there that they wait for."""
        waiting, done = np.flatnonzero(self.waits), 0
        for place in np.unique(self.pc[waiting]):
            _, name, words, _ = self.program.steps[place]
            if name in ("bar", "barrier") and "warp" not in words:
                group = self.of_block
            else:
                group = self.of_block * (-(-self.block // WARP)) + self.warp
            there = self.waits & (self.pc == place)
            counts = np.bincount(group, there), np.bincount(group, self.alive)
            whole = (counts[0] == counts[1]) & (counts[0] > 0)
            some = np.flatnonzero(there & whole[group])
            if not len(some):
                continue
            done += len(some)
            if group is self.of_block:
                self.epoch[some] += 1
            elif name != "bar":
                if np.any(np.bincount(group)[group[some]] != counts[1][group[some]]):
                    raise Fault("a shuffle with threads of the warp that are gone")
                self.program.run[place](self, some)
            self.waits[some], self.pc[some] = False, place + 1
        if not done:
            raise Fault("threads wait for others that never come")

    # memory

    def address(self, operand, who):
        m = re.fullmatch(r"\[\s*([%$\w]+)\s*(?:\+\s*(-?\w+))?\s*\]", operand)
        base = self.registers[m[1]][who].astype(np.int64) if m[1] in self.registers else self.symbols[m[1]][who] \
            if m[1] in self.symbols else np.full(len(who), int(m[1], 0))
        return base + int(m[2] or "0", 0)

    def reach(self, address, dtype, who, way):
        """The entries of memory at addresses, which must be the kernel's to reach; way: 'r', 'w', 'a'."""
        k = np.searchsorted(self.starts, address, side="right") - 1
        if np.any(k < 0) or np.any(address + dtype.itemsize > self.ends[k]):
            raise Fault(f"memory that no argument has: {dtype} at {hex(int(address[0]))}")
        if np.any(address % dtype.itemsize):
            raise Fault("an address that is not a multiple of the entry's size")
        self.seen.append([address, who, np.full(len(who), "rwa".index(way)), self.epoch[who], np.zeros(len(who), "u8")])
        return MEMORY[:len(MEMORY) // dtype.itemsize * dtype.itemsize].view(dtype), (address - BASE) // dtype.itemsize

    def races(self):
        if not self.seen:
            return
        address, who, way, epoch, value = map(np.concatenate, zip(*self.seen))
        private = np.zeros(len(address), bool)
        for a, b in self.private:
            if any(n not in self.program.shared_names and self.symbols[n][0] in range(a, b) for n in self.symbols):
                private |= (address >= a) & (address < b)
        address, who, way, epoch, value = (k[~private] for k in (address, who, way, epoch, value))
        order = np.lexsort((who, address))          # in the order of time, for each thread
        address, who, way, epoch, value = (k[order] for k in (address, who, way, epoch, value))
        begins = np.flatnonzero(np.r_[True, address[1:] != address[:-1]]) if len(address) else []
        for a, b in zip(begins, [*begins[1:], len(address)]):
            if who[a] == who[b - 1] or not way[a:b].any() or np.all(way[a:b] == 2):
                continue
            stages = {}
            for k in range(a, b):
                key = (self.of_block[who[k]], epoch[k])
                stages.setdefault(key, []).append((who[k], way[k], value[k]))
            if len({block for block, _ in stages}) > 1:
                raise Fault(f"threads of several blocks at one entry: {sorted({int(t) for t in who[a:b]})[:4]}")
            for found in stages.values():
                if len({t for t, _, _ in found}) > 1 and any(w for _, w, _ in found) and not alike(found):
                    raise Fault(f"threads {sorted({int(t) for t, _, _ in found})[:4]} at one entry without a wait")

    # operands

    def get(self, operand, dtype, who):
        if operand in self.registers:
            held = self.registers[operand][who]
            if dtype.kind == "b":
                return held
            if held.dtype.kind == "b":
                return held.astype(dtype)
            if held.itemsize == dtype.itemsize:
                return held.view(dtype)
            return held.astype(f"u{dtype.itemsize}").view(dtype)
        if operand in self.special:
            return np.broadcast_to(np.asarray(self.special[operand])[who] if np.ndim(self.special[operand]) else
                                   self.special[operand], len(who)).astype(dtype)
        if operand in self.symbols:
            return self.symbols[operand][who].astype(dtype)
        value, size = bits(operand)
        if size:
            value = np.asarray(value)
            return np.full(len(who), value.view(f"u{size}").view(dtype) if dtype.kind != "f" else value, dtype)
        if dtype.kind == "f":
            return np.full(len(who), np.array([value], f"u{dtype.itemsize}").view(dtype)[0])
        if dtype.kind == "b":
            return np.full(len(who), bool(value))
        return np.full(len(who), np.array([value % (1 << 8 * dtype.itemsize)], f"u{dtype.itemsize}").view(dtype)[0])

    def put(self, name, who, value):
        if name == "_":
            return
        held = self.registers[name]
        if "b" in (held.dtype.kind, value.dtype.kind):
            held[who] = value
        elif value.itemsize == held.itemsize:
            held[who] = value.view(held.dtype)
        elif value.dtype.kind == "i":
            held[who] = value.astype(f"i{held.itemsize}").view(held.dtype)
        else:
            held[who] = value.view(f"u{value.itemsize}").astype(held.dtype)


def alike(found):
    """Whether threads set an entry to one number, and those that read it have set it before."""
    done = set()
    for thread, way, _ in found:
        if way == 1:
            done.add(thread)
        elif way == 2 or thread not in done:
            return False
    return len({value for _, way, value in found if way == 1}) == 1


# --- instructions -----------------------------------------------------------------------------------------------------

def compiled(program, step):
    """What a step does: a function of the launch and of the threads that take it."""
    _, name, words, operands = step
    kinds = [TYPES[w] for w in words if w in TYPES]
    if name in ("bra", "ret", "exit", "bar", "barrier", "membar", "fence", "trap", "activemask"):
        if name == "trap":
            def stopped(s, who):
                raise Fault("trap")
            return stopped
        return lambda s, who: None
    made = globals().get(f"do_{name}")
    if made is None:
        raise NotImplementedError(f"{name}.{'.'.join(words)}")
    return lambda s, who: made(s, who, words, kinds, operands)


def parts(operand):
    return [p.strip() for p in operand.strip("{} ").split(",")]


def do_ld(s, who, words, kinds, operands):
    address, dtype = s.address(operands[1], who), kinds[-1]
    for k, name in enumerate(parts(operands[0])):
        memory, at = s.reach(address + k * dtype.itemsize, dtype, who, "r")
        s.put(name, who, memory[at])


def do_st(s, who, words, kinds, operands):
    address, dtype = s.address(operands[0], who), kinds[-1]
    for k, name in enumerate(parts(operands[1])):
        memory, at = s.reach(address + k * dtype.itemsize, dtype, who, "w")
        memory[at] = value = s.get(name, dtype, who)
        s.seen[-1][-1] = value.view(f"u{dtype.itemsize}").astype("u8")


def do_atom(s, who, words, kinds, operands, result=True):
    dtype, (to, place, *values) = kinds[-1], operands if result else ("_", *operands)
    memory, at = s.reach(s.address(place, who), dtype, who, "a")
    given, old = [s.get(v, dtype, who) for v in values], np.empty(len(who), dtype)
    word = next(w for w in words if w in ("add", "exch", "cas", "min", "max", "and", "or", "xor"))
    step = {"add": np.add, "exch": lambda now, new: new, "min": min, "max": max, "and": np.bitwise_and,
            "or": np.bitwise_or, "xor": np.bitwise_xor}.get(word)
    for k in range(len(who)):
        old[k] = now = memory[at[k]]
        memory[at[k]] = step(now, given[0][k]) if step else given[1][k] if now == given[0][k] else now
    if to != "_":
        s.put(to, who, old)


def do_red(s, who, words, kinds, operands):
    do_atom(s, who, words, kinds, operands, False)


def do_mov(s, who, words, kinds, operands):
    to, value = operands
    dtype = kinds[-1]
    if value.startswith("{"):
        given = parts(value)
        size = dtype.itemsize // len(given)
        total = np.zeros(len(who), f"u{dtype.itemsize}")
        for k, g in enumerate(given):
            total |= s.get(g, np.dtype(f"u{size}"), who).astype(total.dtype) << np.array(8 * size * k, total.dtype)
        s.put(to, who, total)
    elif to.startswith("{"):
        names = parts(to)
        size = dtype.itemsize // len(names)
        whole = s.get(value, np.dtype(f"u{dtype.itemsize}"), who)
        for k, n in enumerate(names):
            s.put(n, who, (whole >> np.array(8 * size * k, whole.dtype)).astype(f"u{size}"))
    else:
        s.put(to, who, s.get(value, dtype, who))


def do_cvta(s, who, words, kinds, operands):
    s.put(operands[0], who, s.get(operands[1], kinds[-1], who))


def do_cvt(s, who, words, kinds, operands):
    to, of = kinds
    x = s.get(operands[1], of, who)
    if of.kind == "f":
        rounding = next((w for w in words if w in ("rni", "rzi", "rmi", "rpi")), None)
        if rounding:
            x = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[rounding](x)
        if to.kind in "iu":
            low, high = np.iinfo(to).min, np.iinfo(to).max
            wide = np.where(np.isnan(x), 0, x).astype(np.longdouble)
            y = np.array([min(max(int(v), low), high) if np.isfinite(v) else high if v > 0 else low for v in wide], to)
        else:
            y = x.astype(to)
        if "sat" in words and to.kind == "f":
            y = np.clip(np.nan_to_num(y), 0, 1).astype(to)
    else:
        y = x.astype(to)
        if "sat" in words:
            y = np.clip(x, np.iinfo(to).min, np.iinfo(to).max).astype(to)
    s.put(operands[0], who, y)


def values(s, who, kind, operands):
    return [s.get(o, kind, who) for o in operands]


def wide(x):
    """Whole numbers of any size, as Python has them."""
    return np.array(x.tolist(), object)


def whole(x, dtype):
    """Those as a dtype holds them."""
    n = 8 * dtype.itemsize
    return np.array([int(v) % (1 << n) for v in x], f"u{n // 8}").view(dtype)


def do_add(s, who, words, kinds, operands):
    a, b = values(s, who, kinds[-1], operands[1:])
    y = a + b
    if "cc" in words:
        u = f"u{y.itemsize}"
        s.carry[who] = y.view(u) < a.view(u)
    s.put(operands[0], who, y)


def do_addc(s, who, words, kinds, operands):
    a, b = values(s, who, kinds[-1], operands[1:])
    total = wide(a.view(f"u{a.itemsize}")) + wide(b.view(f"u{a.itemsize}")) + s.carry[who].astype(int)
    if "cc" in words:
        s.carry[who] = np.array([bool(v >> (8 * a.itemsize)) for v in total], bool)
    s.put(operands[0], who, whole(total, kinds[-1]))


def do_sub(s, who, words, kinds, operands):
    a, b = values(s, who, kinds[-1], operands[1:])
    if "cc" in words:
        u = f"u{a.itemsize}"
        s.carry[who] = a.view(u) < b.view(u)
    s.put(operands[0], who, a - b)


def do_subc(s, who, words, kinds, operands):
    a, b = values(s, who, kinds[-1], operands[1:])
    total = wide(a.view(f"u{a.itemsize}")) - wide(b.view(f"u{a.itemsize}")) - s.carry[who].astype(int)
    if "cc" in words:
        s.carry[who] = np.array([v < 0 for v in total], bool)
    s.put(operands[0], who, whole(total, kinds[-1]))


def multiplied(a, b, words):
    """The product of whole numbers: its lower half, its upper one, or both."""
    dtype = a.dtype
    if "wide" in words:
        double = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
        return a.astype(double) * b.astype(double)
    if "hi" in words:
        n = 8 * dtype.itemsize
        if n < 64:
            double = np.dtype(f"{dtype.kind}8")
            return (a.astype(double) * b.astype(double) >> np.array(n, double)).astype(dtype)
        return whole((wide(a) * wide(b)) // (1 << n), dtype)
    return a * b


def do_mul(s, who, words, kinds, operands):
    a, b = values(s, who, kinds[-1], operands[1:])
    s.put(operands[0], who, a * b if kinds[-1].kind == "f" else multiplied(a, b, words))


def do_mad(s, who, words, kinds, operands):
    if kinds[-1].kind == "f":
        return do_fma(s, who, words, kinds, operands)
    a, b = values(s, who, kinds[-1], operands[1:3])
    y = multiplied(a, b, words)
    c = s.get(operands[3], y.dtype, who)
    total = y + c
    if "cc" in words:
        u = f"u{y.itemsize}"
        s.carry[who] = total.view(u) < y.view(u)
    s.put(operands[0], who, total)


def do_madc(s, who, words, kinds, operands):
    a, b, c = values(s, who, kinds[-1], operands[1:])
    y = multiplied(a, b, words)
    u = f"u{y.itemsize}"
    total = wide(y.view(u)) + wide(c.view(u)) + s.carry[who].astype(int)
    if "cc" in words:
        s.carry[who] = np.array([bool(v >> (8 * y.itemsize)) for v in total], bool)
    s.put(operands[0], who, whole(total, kinds[-1]))


def do_fma(s, who, words, kinds, operands):
    a, b, c = values(s, who, kinds[-1], operands[1:])
    more = np.longdouble if kinds[-1].itemsize == 8 else np.float64
    s.put(operands[0], who, (a.astype(more) * b.astype(more) + c.astype(more)).astype(kinds[-1]))


def do_div(s, who, words, kinds, operands):
    a, b = values(s, who, kinds[-1], operands[1:])
    if kinds[-1].kind == "f":
        y = a / b
    else:
        y = whole([abs(int(p)) // abs(int(q)) * (-1 if (p < 0) != (q < 0) else 1) if q else -1 for p, q in zip(a, b)],
                  kinds[-1])
    s.put(operands[0], who, y)


def do_rem(s, who, words, kinds, operands):
    a, b = values(s, who, kinds[-1], operands[1:])
    s.put(operands[0], who, whole([int(np.sign(int(p))) * (abs(int(p)) % abs(int(q))) if q else int(p)
                                   for p, q in zip(a, b)], kinds[-1]))


def one(function):
    def do(s, who, words, kinds, operands):
        s.put(operands[0], who, function(s.get(operands[1], kinds[-1], who)).astype(kinds[-1]))
    return do


do_neg, do_abs = one(np.negative), one(np.abs)
do_sqrt, do_rcp, do_rsqrt = one(np.sqrt), one(lambda x: 1 / x), one(lambda x: 1 / np.sqrt(x))
do_ex2, do_lg2, do_sin, do_cos, do_tanh = (one(f) for f in (np.exp2, np.log2, np.sin, np.cos, np.tanh))
do_brev = one(lambda x: np.array([int(f"{int(v):0{8 * x.itemsize}b}"[::-1], 2) for v in x], x.dtype))


def do_not(s, who, words, kinds, operands):
    s.put(operands[0], who, ~s.get(operands[1], kinds[-1], who))


def counted(function):
    def do(s, who, words, kinds, operands):
        x = s.get(operands[1], kinds[-1], who)
        s.put(operands[0], who, np.array([function(int(v), 8 * x.itemsize) for v in x], np.uint32))
    return do


do_clz = counted(lambda v, n: n - v.bit_length())
do_popc = counted(lambda v, n: v.bit_count())


def two(function):
    def do(s, who, words, kinds, operands):
        a, b = values(s, who, kinds[-1], operands[1:])
        s.put(operands[0], who, function(a, b))
    return do


do_and, do_or, do_xor = two(lambda a, b: a & b), two(lambda a, b: a | b), two(lambda a, b: a ^ b)


def do_copysign(s, who, words, kinds, operands):
    sign, size = values(s, who, kinds[-1], operands[1:])
    s.put(operands[0], who, np.copysign(size, sign))


def do_min(s, who, words, kinds, operands):
    a, b = values(s, who, kinds[-1], operands[1:])
    s.put(operands[0], who, (np.minimum if "NaN" in words or kinds[-1].kind != "f" else np.fmin)(a, b))


def do_max(s, who, words, kinds, operands):
    a, b = values(s, who, kinds[-1], operands[1:])
    s.put(operands[0], who, (np.maximum if "NaN" in words or kinds[-1].kind != "f" else np.fmax)(a, b))


def do_shl(s, who, words, kinds, operands):
    x, k = s.get(operands[1], kinds[-1], who), s.get(operands[2], np.dtype("u4"), who)
    n = 8 * x.itemsize
    s.put(operands[0], who, np.where(k < n, x << np.minimum(k, n - 1).astype(x.dtype), np.array(0, x.dtype)))


def do_shr(s, who, words, kinds, operands):
    x, k = s.get(operands[1], kinds[-1], who), s.get(operands[2], np.dtype("u4"), who)
    n = 8 * x.itemsize
    y = x >> np.minimum(k, n - 1).astype(x.dtype)
    s.put(operands[0], who, y if x.dtype.kind == "i" else np.where(k < n, y, np.array(0, x.dtype)))


def do_shf(s, who, words, kinds, operands):
    low, high, k = values(s, who, np.dtype("u4"), operands[1:])
    k = (k & 31 if "wrap" in words else np.minimum(k, 32)).astype(np.uint64)
    both = (high.astype(np.uint64) << np.uint64(32)) | low
    y = (both << k) >> np.uint64(32) if "l" in words else both >> k
    s.put(operands[0], who, y.astype(np.uint32))


def do_bfe(s, who, words, kinds, operands):
    x, at, n = s.get(operands[1], kinds[-1], who), *values(s, who, np.dtype("u4"), operands[2:])
    out = [(int(v) >> int(a & 255)) & ((1 << int(m & 255)) - 1) for v, a, m in zip(x, at, n)]
    if kinds[-1].kind == "i":
        out = [v - (1 << int(m & 255)) if m and v >> int((m & 255) - 1) else v for v, m in zip(out, n)]
    s.put(operands[0], who, whole(out, kinds[-1]))


def do_bfi(s, who, words, kinds, operands):
    dtype = np.dtype(f"u{kinds[-1].itemsize}")
    part, x, at, n = *values(s, who, dtype, operands[1:3]), *values(s, who, np.dtype("u4"), operands[3:])
    out = []
    for p, v, a, m in zip(wide(part), wide(x), wide(at), wide(n)):
        mask = ((1 << (m & 255)) - 1) << (a & 255)
        out.append((v & ~mask) | ((p << (a & 255)) & mask))
    s.put(operands[0], who, whole(out, dtype))


def do_prmt(s, who, words, kinds, operands):
    a, b, c = values(s, who, np.dtype("u4"), operands[1:])
    out = []
    for p, q, m in zip(wide(a), wide(b), wide(c)):
        data = [(p >> 8 * k) & 255 for k in range(4)] + [(q >> 8 * k) & 255 for k in range(4)]
        total = 0
        for k in range(4):
            way = (m >> 4 * k) & 15
            byte = data[way & 7]
            total |= ((255 if byte >> 7 else 0) if way & 8 else byte) << 8 * k
        out.append(total)
    s.put(operands[0], who, whole(out, np.dtype("u4")))


def do_lop3(s, who, words, kinds, operands):
    a, b, c, table = values(s, who, np.dtype("u4"), operands[1:])
    total = np.zeros(len(who), np.uint32)
    for k in range(8):
        if int(table[0]) >> k & 1:
            total |= (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
    s.put(operands[0], who, total)


def compared(word, a, b):
    none = np.isnan(a) | np.isnan(b) if a.dtype.kind == "f" else np.zeros(len(a), bool)
    if word in ("num", "nan"):
        return ~none if word == "num" else none
    plain = word.removesuffix("u") if word not in COMPARE else word
    found = {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[COMPARE[plain]]
    return found | none if word != plain else found & ~none


def do_setp(s, who, words, kinds, operands):
    a, b = values(s, who, kinds[-1], operands[1:3])
    found = compared(words[0], a, b)
    both = operands[0].split("|")
    other = ~found
    if len(operands) > 3:
        negated = operands[3].startswith("!")
        p = s.get(operands[3].lstrip("!"), np.dtype(bool), who) ^ negated
        found, other = ({"and": f & p, "or": f | p, "xor": f ^ p}[words[1]] for f in (found, other))
    s.put(both[0].strip(), who, found)
    if len(both) > 1:
        s.put(both[1].strip(), who, other)


def do_set(s, who, words, kinds, operands):
    a, b = values(s, who, kinds[-1], operands[1:3])
    found = compared(words[0], a, b)
    s.put(operands[0], who, found.astype(kinds[0]) if kinds[0].kind == "f" else np.where(
        found, np.array(-1).astype(kinds[0]), np.array(0, kinds[0])))


def do_selp(s, who, words, kinds, operands):
    a, b = values(s, who, kinds[-1], operands[1:3])
    s.put(operands[0], who, np.where(s.get(operands[3], np.dtype(bool), who), a, b))


def do_slct(s, who, words, kinds, operands):
    a, b = values(s, who, kinds[0], operands[1:3])
    s.put(operands[0], who, np.where(s.get(operands[3], kinds[1], who) >= 0, a, b))


def do_testp(s, who, words, kinds, operands):
    x = s.get(operands[1], kinds[-1], who)
    s.put(operands[0], who, {"finite": np.isfinite, "infinite": np.isinf, "number": lambda x: ~np.isnan(x),
                             "notanumber": np.isnan}[words[0]](x))


def do_shfl(s, who, words, kinds, operands):
    """Whole warps, whose threads stand in order."""
    to, *valid = (p.strip() for p in operands[0].split("|"))
    value, by, clamp, mask = values(s, who, np.dtype("u4"), operands[1:])
    if np.any(mask != 0xFFFFFFFF) or len(who) % WARP or np.any(clamp & 0x1F00):
        raise Fault("a shuffle of a part of a warp")
    lane, high = np.arange(len(who)) % WARP, (clamp & 31).astype(np.int64)
    by = by.astype(np.int64)
    source = {"down": lane + by, "up": lane - by, "bfly": lane ^ by, "idx": by & 31}[words[1]]
    fits = source <= high if words[1] != "up" else source >= 0
    source = np.where(fits, source, lane)
    s.put(to, who, value[np.arange(len(who)) // WARP * WARP + source])
    if valid:
        s.put(valid[0], who, fits)


def launched(text, blocks, threads, data, spans):
    """Run a kernel's PTX; data: its parameters; spans: the memory that it may reach, as pairs of addresses."""
    Launch(text, blocks, threads, data, spans).run()
