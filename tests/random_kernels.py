"""Random kernels for the oracle: many expressions in each, from a seed.

Most divisors are odd and most results are tested for NaN, since an item that fails ends a run. A
part of the kernels leaves such a test out, so that failing items are compared too.
"""

import random
from dataclasses import dataclass, field

import numpy as np

INTEGERS = [f"{u}int{w}_t" for u in ("", "u") for w in (8, 16, 32, 64)]
TYPES = [*INTEGERS, "int", "unsigned", "float", "double", "double", "float"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-45, -1e-40, 1.1754944e-38, 5e-324, 3e-310, 1e10, -1e10,
           2147483647.0, 2147483648.0, -2147483649.0, 4294967296.0, 9.223372036854775e18,
           9.223372036854775807e18, 1.8446744073709552e19, 1e30, -3e38, 3.4028235677973366e38, 1e300,
           float("inf"), float("-inf"), float("nan"), 0.1, 255.5, -0.5, 16777217.0, 127.5, 3.0]
WHOLES = ["0", "1", "2", "3", "7", "31", "33", "64", "100", "127", "128", "255", "256", "32767", "65535",
          "65536", "16777217", "2147483647", "2147483648", "4294967295", "4294967296",
          "9007199254740993", "9223372036854775807", "9223372036854775807u", "18446744073709551615u",
          "0xff", "0x7fffffff", "0x80000000", "0xffffffff", "0x100000000", "0x8000000000000000",
          "5u", "1ll", "3ull", "4294967295u", "0x10ll", "0xffffffffffffffffull"]
FRACTIONS = ["0.0", "0.1", "0.1f", "1.0f", "1e30f", "3.4028235e38f", "1e308", "1e-40f", "1e-45f", "5e-324",
             "1e-310", "16777217.0", "16777217.0f", ".5", "1.", "1.5e3", "2.5f", "0.3333333333333333",
             "4294967296.0", "0x1.8p3", "0x1.fffffep127f", "9.3e18", "1e-7", "1.1754943e-38f", "8388607.5f", "0.49999999999999994"]
ONE = ["sqrt", "cbrt", "exp", "log", "sin", "cos", "tan", "atan", "erf", "erfc", "normcdf", "tanh",
       "exp2", "expm1", "log2", "log10", "log1p", "asin", "acos", "sinh", "cosh"]
EXACT = ["floor", "ceil", "trunc", "rint", "fabs"]
TWO = ["min", "max", "fmin", "fmax", "min", "max"]
COMPARE = ["<", ">", "<=", ">=", "==", "!="]


@dataclass
class Kernel:
    text: str
    shape: tuple
    arrays: dict
    scalars: dict
    outputs: list
    seed: int
    iterations: int
    lines: list = field(default_factory=list)


def numbers(r, kind, shape):
    """An array of the type with many special values."""
    count = int(np.prod(shape))
    if kind in ("float", "double"):
        pick = [r.choice(SPECIAL) if r.random() < 0.5 else r.uniform(-9, 9) * 10.0 ** r.randint(-3, 3)
                for _ in range(count)]
        with np.errstate(all="ignore"):
            return np.array(pick).astype("f4" if kind == "float" else "f8").reshape(shape)
    kind = {"int": "int32", "unsigned": "uint32"}.get(kind, kind.removesuffix("_t"))
    info = np.iinfo(kind)
    pick = [r.choice([info.min, info.max, 0, 1, info.max - 1, info.min + 1]) if r.random() < 0.4
            else r.randint(max(info.min, -1000), min(info.max, 1000)) if r.random() < 0.5
            else r.randint(info.min, info.max) for _ in range(count)]
    return np.array(pick, kind).reshape(shape)


class Writer:
    def __init__(self, seed, long):
        self.r = random.Random(seed)
        self.wild = self.r.random() < 0.2  # items may fail
        self.reals, self.wholes = [], []  # what an expression can read, by kind
        self.writable, self.arrays = [], []  # (name, kind); (name, kind, length)
        self.functions = []  # (name, number of arguments, kind)
        self.calls, self.count, self.long = [], 0, long
        self.random = False
        self.costs = 24  # functions of section 21 that the oracle computes slowly

    def fresh(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def note(self, name, kind):
        (self.reals if kind in ("float", "double") else self.wholes).append(name)

    def leaf(self, whole):
        r = self.r
        if r.random() < 0.35:
            text = r.choice(WHOLES if whole or r.random() < 0.4 else FRACTIONS)
            return f"(-{text})" if r.random() < 0.2 else text
        names = self.wholes if whole or r.random() < 0.5 and self.wholes else self.reals
        return r.choice(names) if names else "1"

    def index(self, depth, length):
        """An index below a power of two, or sometimes any."""
        if self.wild and self.r.random() < 0.03:
            return self.whole(depth - 1)
        return f"({self.whole(depth - 1)} & {length - 1})"

    def any(self, depth):
        r = self.r
        if depth <= 0 or r.random() < 0.08:
            return self.leaf(False)
        if r.random() < 0.3:
            return self.whole(depth)
        a, b = self.any(depth - 1), self.any(depth - 1)
        kind = r.randrange(13)
        if kind < 4:
            return f"({a} {r.choice('+-*')} {b})"
        if kind == 4:
            c = self.leaf(False)
            return f"({a} / {b})" if self.is_real(b) else f"({a} / ({c} + 0.5f))"
        if kind == 5:
            return f"{r.choice(['-', '+', '-'])}({a})"
        if kind == 6:
            return f"({self.test(depth - 1)} ? {a} : {b})"
        if kind == 7:
            return f"({r.choice(TYPES)}){self.wrapped(a)}"
        if kind == 8:
            return f"{r.choice(EXACT)}({a})"
        if kind == 9:
            return f"{r.choice(TWO)}({a}, {b})"
        if kind == 10 and self.costs > 0:
            self.costs -= 1
            choice = r.random()
            if choice < 0.2:
                return f"{r.choice(['pow', 'atan2', 'hypot'])}({a}, {b})"
            if choice < 0.5:
                return f"fma({a}, {b}, {self.leaf(False)})"
            return f"{r.choice(ONE)}({a})"
        if kind == 11 and self.functions:
            name, count, _ = r.choice(self.functions)
            return f"{name}({', '.join(self.any(depth - 2) for _ in range(count))})"
        if self.calls:
            return r.choice(self.calls)(depth)
        return a

    @staticmethod
    def wrapped(a):
        return a if a.startswith("(") or a.isalnum() else f"({a})"

    @staticmethod
    def is_real(text):
        """Surely real: a literal with a point."""
        return "." in text and text.replace(".", "").rstrip("f").isdigit()

    def whole(self, depth):
        r = self.r
        if depth <= 0 or r.random() < 0.08:
            return self.leaf(True)
        a, b = self.whole(depth - 1), self.whole(depth - 1)
        kind = r.randrange(12)
        if kind < 3:
            return f"({a} {r.choice(['+', '-', '*', '&', '|', '^'])} {b})"
        if kind == 3:
            return f"({a} {r.choice(['<<', '>>'])} {b})"
        if kind == 4:
            if self.wild and r.random() < 0.2:
                return f"({a} {r.choice('/%')} {b})"
            return f"({a} {r.choice('/%')} ({b} | 1))"
        if kind == 5:
            return f"{r.choice('-~+')}({a})"
        if kind == 6:
            return f"({self.test(depth - 1)} ? {a} : {b})"
        if kind < 9:
            return f"({r.choice([*INTEGERS, 'int', 'unsigned'])}){self.wrapped(self.any(depth - 1))}"
        if kind == 9:
            return f"({self.any(depth - 1)} {r.choice(COMPARE)} {self.any(depth - 1)})"
        if kind == 10:
            return f"{r.choice(['min', 'max'])}({a}, {b})"
        if self.random and r.random() < 0.5:
            return f"random32({self.whole(depth - 2)})"
        return a

    def test(self, depth):
        r = self.r
        kind = r.randrange(6)
        a, b = self.any(depth - 1), self.any(depth - 1)
        if kind < 3:
            return f"{a} {r.choice(COMPARE)} {b}"
        if kind == 3:
            return f"!({a})"
        if kind == 4:
            return f"({a} {r.choice(COMPARE)} {b}) {r.choice(['&&', '||'])} {self.any(depth - 1)}"
        return a

    # statements

    def statement(self, depth, pad):
        r = self.r
        kind = r.randrange(10 if depth > 0 else 6)
        if kind < 2 or not self.writable:
            name, kind = self.fresh("v"), r.choice(TYPES)
            line = f"{pad}{kind} {name} = {self.any(4)};"
            self.note(name, kind)
            self.writable.append((name, kind))
            return [line]
        if kind < 5:
            return [f"{pad}{self.change()};"]
        if kind == 5:
            if self.arrays and r.random() < 0.6:
                name, real, length = r.choice(self.arrays)
                return [f"{pad}{name}[{self.index(3, length)}] = {self.any(3)};"]
            name, kind = self.fresh("a"), r.choice(TYPES)
            given = [self.any(2) for _ in range(r.randint(1, 4))]
            self.arrays.append((name, kind, 4))
            self.calls.append(lambda d, n=name: f"{n}[{self.index(d, 4)}]")
            return [f"{pad}{kind} {name}[4] = {{{', '.join(given)}}};"]
        if kind < 8:
            lines = [f"{pad}if ({self.test(3)}) {{", *self.inside(depth, pad)]
            if r.random() < 0.5:
                lines += [f"{pad}}} else {{", *self.inside(depth, pad)]
            return [*lines, f"{pad}}}"]
        i = self.fresh("i")
        leave = [f"{pad}    if ({self.test(2)}) {r.choice(['break', 'continue'])};"]
        if kind == 8:
            head = f"for ({r.choice(['int', 'uint8_t', 'int64_t'])} {i} = {r.choice('01')}; {i} < {r.choice('234')}; "
            head += r.choice([f"{i}++", f"++{i}", f"{i} += 2"]) + ")"
            self.wholes.append(i)
            lines = [f"{pad}{head} {{", *self.inside(depth, pad), *leave, *self.inside(depth, pad), f"{pad}}}"]
            self.wholes.remove(i)
            return lines
        self.wholes.append(i)
        body = [f"{pad}    {i}--;", *self.inside(depth, pad), *leave]
        if r.random() < 0.5:
            return [f"{pad}int16_t {i} = 3;", f"{pad}do {{", *body, f"{pad}}} while ({i} > 0);"]
        return [f"{pad}int16_t {i} = 3;", f"{pad}while ({i} > 0) {{", *body, f"{pad}}}"]

    def change(self):
        """An assignment to a variable."""
        r = self.r
        name, kind = r.choice(self.writable)
        if r.random() < 0.15:
            return f"{name}{r.choice(['++', '--'])}"
        if kind not in ("float", "double") and r.random() < 0.5:
            word = r.choice(["&=", "|=", "^=", "<<=", ">>=", "%="])
            return f"{name} {word} {self.whole(3)}" + (" | 1" if word == "%=" else "")
        word = r.choice(["=", "+=", "-=", "*=", "/="])
        value = self.any(3)
        return f"{name} {word} " + (f"({value}) + 0.5" if word == "/=" else value)

    def inside(self, depth, pad):
        """The statements of a block, whose names end with it."""
        kept = [list(x) for x in (self.reals, self.wholes, self.writable, self.arrays, self.calls)]
        lines = [line for _ in range(self.r.randint(1, 2))
                 for line in self.statement(depth - 1, pad + "    ")]
        self.reals, self.wholes, self.writable, self.arrays, self.calls = kept
        return lines

    def function(self):
        """A function of parameters alone, and of what stands before it."""
        r = self.r
        kept = [list(x) for x in (self.reals, self.wholes, self.writable, self.arrays, self.calls)]
        self.writable, self.arrays, self.calls = [], [], []
        self.reals = [n for n in self.reals if n.startswith("C")]
        self.wholes = [n for n in self.wholes if n.startswith("C")]
        name, kind, parameters = self.fresh("f"), r.choice(TYPES), []
        for _ in range(r.randint(1, 3)):
            p, t = self.fresh("p"), r.choice(TYPES)
            self.note(p, t)
            self.writable.append((p, t))
            parameters.append(f"{t} {p}")
        lines = [f"static {kind} {name}({', '.join(parameters)}) {{",
                 *[line for _ in range(2) for line in self.statement(1, "    ")]]
        if r.random() < 0.5:
            lines.append(f"    if ({self.test(2)}) return {self.any(3)};")
        if r.random() < 0.85:
            lines.append(f"    return {self.any(3)};")
        self.functions.append((name, len(parameters), kind))
        self.reals, self.wholes, self.writable, self.arrays, self.calls = kept
        return [*lines, "}"]

    def finish(self, use, name, kind, bins):
        """Assigns a result, guarded against what would make the item fail."""
        r, v = self.r, self.fresh("r")
        lines = [f"    {'double' if kind == 'double' else 'float' if kind == 'float' else kind} {v} = {self.any(4)};"]
        place = f"{name}[{self.index(3, 4)}]" if bins else name
        limit = {"double": "1e300", "float": "1e37f"}
        if kind in limit and not (self.wild and r.random() < 0.1):
            ok = f"fabs({v}) < {limit[kind]}" if use in ("SUM", "SCAN") else f"{v} == {v}"
            if r.random() < 0.3:
                return [*lines, f"    if ({ok}) {place} = {v};"]
            v = f"{ok} ? {v} : {r.choice(['1', '-0.0f', '2.5f'])}"
        elif use in ("SUM", "SCAN") and kind not in limit and not self.wild:
            v = f"{v} / 64"
        elif r.random() < 0.3:
            return [*lines, f"    if ({self.test(2)}) {place} = {v};"]
        return [*lines, f"    {place} = {v};"]


def kernel(seed, long=False):
    """Kernel number `seed`."""
    w = Writer(seed, long)
    r = w.r
    dimensions = r.choice([1, 2, 2, 3])
    shape = {1: (r.randint(1, 19),), 2: (r.randint(1, 4), r.randint(1, 5)),
             3: (2, r.randint(1, 3), r.randint(1, 3))}[dimensions]
    axes = ["z", "y", "x"][3 - dimensions:]
    head, arrays, scalars, outputs, body = [f"INDEX({', '.join(axes)});"], {}, {}, [], []
    w.wholes += axes
    if r.random() < 0.7:
        names = ["depth", "height", "width"][3 - dimensions:]
        head.append(f"EXTENT({', '.join(names)});")
        w.wholes += names
    for _ in range(r.randint(3, 5)):
        name, kind = w.fresh("in"), r.choice(TYPES)
        head.append(f"INPUT({kind}, {name});")
        arrays[name] = numbers(r, kind, shape)
        w.note(name, kind)
    inputs = [(n, a) for n, a in arrays.items()]
    if r.random() < 0.8:
        name, kind, reach = w.fresh("halo"), r.choice(TYPES), r.choice([1, 2, 5])
        head.append(f"HALO({kind}, {name}, {reach}, {r.choice(['zero', 'nearest', 'wrap'])});")
        arrays[name] = numbers(r, kind, shape)

        def near(d, name=name):
            offsets = [r.choice(["0", "1", "-1", str(reach), f"-{reach}", f"({w.whole(d - 2)} & 1)"])
                       for _ in axes]
            return f"{name}({', '.join(offsets)})"
        w.calls.append(near)
    if r.random() < 0.8:
        whole, kind, count = w.fresh("all"), r.choice(TYPES), r.randint(1, 3)
        head.append(f"WHOLE({kind}, {whole}, {count});")
        arrays[whole] = numbers(r, kind, (4,) * count)
        w.calls.append(lambda d: f"{whole}({', '.join(w.index(d - 1, 4) for _ in range(count))})")
        w.wholes.append(f"length({whole}, 0)")
    for _ in range(2):
        name, kind = w.fresh("s"), r.choice(TYPES)
        head.append(f"SCALAR({kind}, {name}, {r.choice(['3', '-2' if kind[0] != 'u' else '2', '100'])});")
        w.note(name, kind)
        if r.random() < 0.5 and kind in ("float", "double"):
            scalars[name] = r.choice(["0.1", "1e-40", "-0.0", "3.25e5"])
        elif r.random() < 0.5:
            scalars[name] = r.choice(["5", "127"])
    iterations = 1
    if r.random() < 0.3:
        iterations, name = r.randint(2, 3), w.fresh("t")
        head.append(f"ITERATION({name});")
        w.wholes.append(name)
    if r.random() < 0.4:
        w.random = True
        head.append("RANDOM;")
    parts = []
    for _ in range(r.randint(5, 7)):
        components = 4 if dimensions < 3 and r.random() < 0.2 else 0
        parts.append(("OUTPUT", w.fresh("out"), r.choice(TYPES), components))
    sums = ["double", "float", "int64_t", "uint64_t"]
    for use in r.sample(["SUM", "SUM", "SCAN", "MIN", "MAX", "COUNT"], 5):
        kind = r.choice(TYPES if use in ("MIN", "MAX") else sums) if use != "COUNT" else "int"
        bins = 4 if use != "SCAN" and r.random() < 0.4 else 0
        if bins and use in ("MIN", "MAX") and r.random() < 0.5:
            use = f"ARG{use}"
        parts.append((use, w.fresh(use.lower()), kind, bins))
    for use, name, kind, bins in parts:
        more = ", 4" if bins else ", exclusive" if use == "SCAN" and r.random() < 0.5 else ""
        head.append(f"{use}({'' if use == 'COUNT' else kind + ', '}{name}{more});")
        if use in ("OUTPUT", "SCAN") or bins:
            outputs.append(name)
    if iterations > 1:
        name, a = r.choice(inputs)
        kind = next(t for t in INTEGERS + ["float", "double"] if np.dtype(t.removesuffix("_t")
                    if t[-1] == "t" and t != "float" else {"float": "f4", "double": "f8"}[t]) == a.dtype)
        out = w.fresh("next")
        head += [f"OUTPUT({kind}, {out});", f"NEXT({out}, {name});"]
        parts.append(("OUTPUT", out, kind, 0))
        outputs.append(out)
    for _ in range(2):
        name, kind = w.fresh("C"), r.choice(TYPES)
        real = kind in ("float", "double")
        first = r.choice(["3", "-1", "200", "0xffffffff", *(["0.75", "1e3f", "-0.0"] if real else [])])
        head.append(f"static const {kind} {name} = {first};")
        w.note(name, kind)
    name, kind = w.fresh("C"), r.choice(TYPES)
    head.append(f"static const {kind} {name}[4] = {{1, 250, -3}};")
    w.calls.append(lambda d, n=name: f"{n}[{w.index(d - 1, 4)}]")
    if w.random:
        def draw(d):
            if w.costs <= 0:
                return f"uniformf({w.leaf(True)})"
            w.costs -= 1
            return f"{r.choice(['uniform', 'uniformf', 'normal', 'normalf'])}({w.whole(d - 2)})"
        w.calls.append(draw)
    for _ in range(2):
        head += w.function()
    for _ in range(r.randint(6, 10) if not long else r.randint(8, 16)):
        body += w.statement(2, "    ")
    for part in parts:
        body += w.finish(*part)
    text = "\n".join([*head, "KERNEL {", *body, "}", ""])
    seed = r.choice([1, 7, 2**40 + 3]) if w.random else 1
    return Kernel(text, shape, arrays, scalars, outputs, seed, iterations)
