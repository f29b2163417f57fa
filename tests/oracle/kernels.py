"""Section 22 of the contract: kernels of users, item by item.

`run` reads a kernel of docs/kernels.md and computes it. The reader turns each expression into a
type and a Python function of the machine, each statement into such a function; there is no tree in
between. `kernel_numbers.py` has the arithmetic.
"""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, product

import numpy as np

import binary32
from kernel_numbers import (ARGUMENTS, ARITHMETIC, BITS, CHOICES, COMPARISONS, DRAWS, ELEMENTARY, EXACT,
                            INTEGERS, PRECEDENCE, REALS, TYPES, Fault, Refused, common, convert, dtype,
                            elementary, formats, fused, literal, promoted, wrap)

INDEX_TYPE = "int64_t"


@dataclass
class Expression:
    kind: str
    run: object  # of the machine

    def to(self, kind):
        if kind == self.kind:
            return self.run
        run = self.run
        return lambda m: convert(run(m), kind)


@dataclass
class Name:
    """What a name means: `use` is index, extent, variable, table, function or a declaration's word."""
    use: str
    kind: str
    name: str
    constant: bool = True
    length: int = 0  # of an array or table; bins
    more: object = None  # reach and border; dimensions; parameters and body; a number
    slot: int = 0


@dataclass
class Machine:
    """One item of one iteration."""
    shape: tuple
    seed: int = 1
    iteration: int = 0
    item: int = 0
    index: tuple = ()
    arrays: dict = field(default_factory=dict)
    scalars: dict = field(default_factory=dict)
    results: dict = field(default_factory=dict)
    variables: dict = field(default_factory=dict)
    old: object = None  # the value that a compound assignment changes


TOKEN = re.compile(r"""\s+|//[^\n]*|/\*.*?\*/|
    (0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+[fF]?)?[uUlL]*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[uUlLfF]*|[A-Za-z_]\w*|
     <<=|>>=|\+\+|--|[-+*/%&|^<>=!]=|<<|>>|&&|\|\||[-+*/%&|^~!<>=?:;,(){}\[\]])""", re.S | re.X)
ARRAYS = ("INPUT", "HALO", "WHOLE")
OUTPUTS = ("OUTPUT", "SCAN")
TOTALS = ("SUM", "COUNT", "MIN", "MAX", "ARGMIN", "ARGMAX")


class Reader:
    def __init__(self, text):
        self.tokens, self.at, self.scopes, self.slots = [], 0, [{}], 0
        self.function = None  # its type while its body is read; "" is the kernel
        self.random, self.next, self.loops, place = False, {}, 0, 0
        text = re.sub(r"^\s*#\s*include[^\n]*", "", text, flags=re.M)
        while place < len(text):
            match = TOKEN.match(text, place)
            if not match:
                raise Refused(text[place:place + 20])
            self.tokens += filter(None, match.groups())
            place = match.end()
        self.tokens.append("")
        self.body = None
        while self.body is None:
            self.declaration()
        if self.tokens[self.at]:
            raise Refused("text after the kernel")

    # tokens and names

    @property
    def token(self):
        return self.tokens[self.at]

    def take(self, *words):
        """The next token, if it is one of these."""
        if self.token in words:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def need(self, *words):
        if words and self.token not in words:
            raise Refused(f"{self.token} instead of {words}")
        self.at += 1
        return self.tokens[self.at - 1]

    def type(self):
        if self.token not in TYPES:
            raise Refused(f"{self.token} is not a type")
        word = self.need()
        if word == "unsigned":
            self.take("int")
        return TYPES[word]

    def declare(self, name):
        if not re.fullmatch(r"[A-Za-z_]\w*", name.name) or any(
                name.name in s for s in self.scopes):
            raise Refused(f"{name.name} cannot be declared")
        self.slots += 1
        name.slot = self.slots
        self.scopes[-1][name.name] = name
        return name

    def lookup(self, word):
        for scope in reversed(self.scopes):
            if word in scope:
                if self.function and scope[word].use in (*ARRAYS, "INDEX", "EXTENT", "ITERATION", "SCALAR"):
                    raise Refused(f"a function does not see {word}")
                return scope[word]
        raise Refused(f"{word} is unknown")

    def named(self, *uses):
        return [n for n in self.scopes[0].values() if n.use in uses]

    def constant(self, kind=None):
        """A number of a declaration, in this type: a literal, or its negative; of bins also a name."""
        minus, word = self.take("-"), self.need()
        if word in self.scopes[0] and self.scopes[0][word].use == "CONSTANT":
            return self.scopes[0][word].more
        own, value = literal(word)
        if kind in INTEGERS and own in REALS:
            raise Refused("a real number stands where an integer belongs")
        if minus:
            value = -value if own in REALS else wrap(own, -value)
        return convert(value, kind) if kind else value

    # declarations

    def declaration(self):
        word = self.need()
        if word == "static":
            return self.static()
        if word == "KERNEL":
            self.function = ""
            self.body = self.statement()
            return None
        if word == "RANDOM":
            self.random = True
            return self.need(";")
        self.need("(")
        if word in ("INDEX", "EXTENT"):
            for d in range(3):
                self.declare(Name(word, INDEX_TYPE, self.need(), more=d))
                if self.need(",", ")") == ")":
                    break
        elif word == "ITERATION":
            self.declare(Name(word, INDEX_TYPE, self.need()))
            self.need(")")
        elif word == "NEXT":
            output = self.need()
            self.need(",")
            self.next[self.need()] = output
            self.need(")")
        else:
            self.part(word)
        return self.need(";")

    def part(self, word):
        """What has a type and a name, and maybe more."""
        if word not in (*ARRAYS, *OUTPUTS, *TOTALS, "SCALAR"):
            raise Refused(word)
        kind = "uint64_t" if word == "COUNT" else self.type()
        if word != "COUNT":
            self.need(",")
        n = Name(word, kind, self.need(), word not in (*OUTPUTS, *TOTALS))
        if self.take(","):
            if word == "HALO":
                n.more = [self.constant()]
                self.need(",")
                n.more.append(self.need("zero", "nearest", "wrap"))
            elif word == "SCALAR":
                n.more = self.default(kind)
            elif word == "WHOLE":
                n.more = self.constant()
            elif word == "SCAN":
                n.more = self.need("exclusive", "inclusive")
            else:
                n.length = self.constant()
        if word in ("ARGMIN", "ARGMAX") and not n.length:
            raise Refused(f"{word} without bins")
        self.need(")")
        self.declare(n)

    def default(self, kind):
        """22.2: a float is rounded once, as by --set."""
        words = self.tokens[self.at:self.at + 2]
        text = "".join(words) if words[0] == "-" else words[0]
        value = self.constant(kind)
        return binary32.from_text(text) if kind == "float" and re.search(r"^-?[\d.e+-]+$", text, re.I) else value

    def static(self):
        """A constant, a table or a function."""
        constant, kind, name = self.take("const"), self.type(), self.need()
        if constant and self.take("["):
            n = Name("TABLE", kind, name, length=self.constant())
            self.need("]")
            self.need("=")
            n.more = self.list(n.length, lambda: self.constant(kind), convert(0, kind))
        elif constant:
            self.need("=")
            n = Name("CONSTANT", kind, name, more=self.constant(kind))
        else:
            return self.define(kind, name)
        self.need(";")
        return self.declare(n)

    def define(self, kind, name):
        self.need("(")
        self.scopes.append({})
        parameters = []
        if not self.take(")"):
            while not (self.take("void") and self.need(")")):
                constant = bool(self.take("const"))
                parameters.append(self.declare(
                    Name("VARIABLE", self.type(), self.need(), constant)))
                if self.need(",", ")") == ")":
                    break
        self.function = kind
        body = self.statement()
        self.scopes.pop()
        return self.declare(Name("FUNCTION", kind, name, more=(parameters, body)))

    def list(self, length, read, zero):
        """{a, b, ...}; what is missing is 0."""
        self.need("{")
        numbers = []
        while not self.take("}"):
            numbers.append(read())
            if not self.take(","):
                self.need("}")
                break
        if len(numbers) > length:
            raise Refused("too many numbers")
        return numbers + [zero] * (length - len(numbers))

    # statements: functions of the machine that give None, "break", "continue" or ("return", x)

    def statement(self):
        word = self.token
        if word in ("if", "while", "do", "for", "return", "break", "continue", "{"):
            self.need()
            return getattr(self, "block" if word == "{" else word + "_")()
        if self.take(";"):
            return lambda m: None
        s = self.variable() if word in TYPES or word == "const" else self.assignment()
        self.need(";")
        return s

    def block(self):
        self.scopes.append({})
        statements = []
        while not self.take("}"):
            statements.append(self.statement())
        self.scopes.pop()

        def run(m):
            for s in statements:
                if end := s(m):
                    return end
            return None
        return run

    def inner(self):
        self.scopes.append({})
        s = self.statement()
        self.scopes.pop()
        return s

    def condition(self):
        self.need("(")
        e = self.ternary()
        self.need(")")
        return e.run

    def if_(self):
        c, yes = self.condition(), self.inner()
        no = self.inner() if self.take("else") else lambda m: None
        return lambda m: yes(m) if c(m) != 0 else no(m)

    @staticmethod
    def loop(before, c, step, body, first=False):
        def run(m):
            before(m)
            skip = first
            while skip or c(m) != 0:
                skip = False
                end = body(m)
                if end == "break":
                    break
                if end and end != "continue":
                    return end
                step(m)
            return None
        return run

    def while_(self):
        c = self.condition()
        return self.loop(lambda m: None, c, lambda m: None, self.repeated())

    def do_(self):
        body = self.repeated()
        self.need("while")
        c = self.condition()
        self.need(";")
        return self.loop(lambda m: None, c, lambda m: None, body, first=True)

    def for_(self):
        self.need("(")
        self.scopes.append({})
        before, c, step = lambda m: None, lambda m: 1, lambda m: None
        if self.token != ";":
            declared = self.token in TYPES or self.token == "const"
            before = self.variable() if declared else self.assignments()
        self.need(";")
        if self.token != ";":
            c = self.ternary().run
        self.need(";")
        if self.token != ")":
            step = self.assignments()
        self.need(")")
        body = self.repeated()
        self.scopes.pop()
        return self.loop(before, c, step, body)

    def return_(self):
        if self.take(";"):
            if self.function:
                raise Refused("return without a number")
            return lambda m: ("return", None)
        if not self.function:
            raise Refused("the kernel returns nothing")
        e = self.ternary().to(self.function)
        self.need(";")
        return lambda m: ("return", e(m))

    def repeated(self):
        self.loops += 1
        s = self.inner()
        self.loops -= 1
        return s

    def leave(self, word):
        self.need(";")
        if not self.loops:
            raise Refused(f"{word} outside of a loop")
        return lambda m: word

    def break_(self):
        return self.leave("break")

    def continue_(self):
        return self.leave("continue")

    def variable(self):
        """int a = 1, b[3] = {0}: variables with their first values."""
        constant = bool(self.take("const"))
        kind, parts = self.type(), []
        while True:
            n = Name("VARIABLE", kind, self.need(), constant)
            if self.take("["):
                if constant:
                    raise Refused("a const array")
                n.use, n.length = "ARRAY", self.constant()
                self.need("]")
                self.need("=")
                value = self.list(n.length, lambda: self.ternary().to(kind),
                                  lambda m: convert(0, kind))
            else:
                self.need("=")
                value = self.ternary().to(kind)
            parts.append((self.declare(n).slot, value))
            if not self.take(","):
                break

        def run(m):
            for slot, value in parts:
                m.variables[slot] = [v(m) for v in value] if isinstance(value, list) else value(m)
        return run

    def assignments(self):
        parts = [self.assignment()]
        while self.take(","):
            parts.append(self.assignment())

        def run(m):
            for p in parts:
                p(m)
        return run

    def assignment(self):
        before = self.take("++", "--")
        n, index = self.lookup(self.need()), None
        if n.constant or n.use == "FUNCTION":
            raise Refused(f"{n.name} cannot be assigned")
        if self.take("["):
            index = self.place(self.ternary())
            self.need("]")
        if index and self.token != "=":
            raise Refused("an element is assigned with =")
        word = before or self.need("=", "++", "--", *(x + "=" for x in (*ARITHMETIC, *BITS, "<<", ">>")))
        if n.use in (*OUTPUTS, *TOTALS):
            return self.result(n, index, self.ternary()) if word == "=" else self.no_reading(n)
        old = Expression(n.kind, lambda m: m.old)
        new = Expression("int32_t", lambda m: 1) if word in ("++", "--") else self.ternary()
        if word != "=":
            new = self.binary(word[0] if word in ("++", "--") else word[:-1], old, new)
        value = new.to(n.kind)

        def run(m):
            place, key = m.variables, n.slot
            if index:
                place, key = place[key], inside(index(m), n.length)
            m.old = place[key]
            place[key] = value(m)
        return run

    @staticmethod
    def no_reading(n):
        raise Refused(f"{n.name} cannot be read")

    @staticmethod
    def result(n, index, e):
        """22.6: the last assignment counts. A count gets a condition."""
        value = (lambda m: int(e.run(m) != 0)) if n.use == "COUNT" else e.to(n.kind)

        def run(m):
            bin = inside(index(m), n.length) if index else 0
            if n.use == "OUTPUT" and n.length:
                m.results.setdefault(n.name, ([convert(0, n.kind)] * n.length, 0))[0][bin] = value(m)
            else:
                m.results[n.name] = (value(m), bin)
        return run

    # expressions

    def ternary(self):
        c = self.level(0)
        if not self.take("?"):
            return c
        a = self.ternary()
        self.need(":")
        b = self.ternary()
        kind = common(a.kind, b.kind)
        yes, no = a.to(kind), b.to(kind)
        return Expression(kind, lambda m: yes(m) if c.run(m) != 0 else no(m))

    def level(self, k):
        if k == len(PRECEDENCE):
            return self.unary()
        a = self.level(k + 1)
        while word := self.take(*PRECEDENCE[k]):
            a = self.binary(word, a, self.level(k + 1))
        return a

    @staticmethod
    def binary(word, a, b):
        if word in ("&&", "||"):
            yes, no = (lambda m: int(b.run(m) != 0)), (lambda m: int(word == "||"))
            if word == "||":
                yes, no = no, yes
            return Expression("int32_t", lambda m: yes(m) if a.run(m) != 0 else no(m))
        kind = common(a.kind, b.kind)
        if word in COMPARISONS:
            x, y, f = a.to(kind), b.to(kind), COMPARISONS[word]
            return Expression("int32_t", lambda m: int(f(x(m), y(m))))
        if word not in ARITHMETIC and not {a.kind, b.kind} <= set(INTEGERS):
            raise Refused(f"{word} of real numbers")
        if word in ("<<", ">>"):  # 22.4: the promoted type of a; n modulo w
            kind = promoted(a.kind)
            x, y, bits = a.to(kind), b.run, INTEGERS[kind][0]
            if word == "<<":
                return Expression(kind, lambda m: wrap(kind, x(m) << y(m) % bits))
            return Expression(kind, lambda m: x(m) >> y(m) % bits)
        x, y, f = a.to(kind), b.to(kind), {**ARITHMETIC, **BITS}[word]
        if kind in REALS:
            return Expression(kind, lambda m: f(x(m), y(m)))
        return Expression(kind, lambda m: wrap(kind, f(x(m), y(m))))

    def unary(self):
        word = self.take("-", "+", "~", "!")
        if word:
            a = self.unary()
            kind = promoted(a.kind)
            x = a.to(kind)
            if word == "!":
                return Expression("int32_t", lambda m: int(x(m) == 0))
            if word == "~" and kind in REALS:
                raise Refused("~ of a real number")
            change = {"-": lambda v: -v, "+": lambda v: v, "~": lambda v: ~v}[word]
            if kind in REALS:
                return Expression(kind, lambda m: change(x(m)))
            return Expression(kind, lambda m: wrap(kind, change(x(m))))
        if self.token == "(" and self.tokens[self.at + 1] in TYPES:
            self.need("(")
            kind = self.type()
            self.need(")")
            return Expression(kind, self.unary().to(kind))
        return self.primary()

    def primary(self):
        if self.take("("):
            e = self.ternary()
            self.need(")")
            return e
        word = self.need()
        if re.match(r"\.?\d", word):
            kind, value = literal(word)
            return Expression(kind, lambda m: value)
        if word == "length":
            return self.length()
        if word in ARGUMENTS:
            return self.standard(word, self.arguments(ARGUMENTS[word]))
        if word in DRAWS and self.random:
            draw, kind = DRAWS[word]
            k = self.arguments(1)[0]
            self.place(k)
            k = k.to("uint32_t")
            return Expression(kind, lambda m: draw(m, k(m)))
        n = self.lookup(word)
        if n.use in (*OUTPUTS, *TOTALS):
            self.no_reading(n)
        return getattr(self, "of_" + n.use.lower())(n)

    def arguments(self, count):
        self.need("(")
        found = []
        while not self.take(")"):
            found.append(self.ternary())
            if self.token != ")":
                self.need(",")
        if len(found) != count:
            raise Refused(f"{count} arguments")
        return found

    def standard(self, word, given):
        """22.3: the functions of the language."""
        kind = common(*(e.kind for e in given))
        if word not in ("min", "max") and kind in INTEGERS:
            kind = "double"
        given = [e.to(kind) for e in given]
        if word in ELEMENTARY:
            bits = formats()[kind].bits
            return Expression(kind, lambda m: elementary(word, kind, *(int(bits(g(m))) for g in given)))
        if word == "fma":
            return Expression(kind, lambda m: fused(kind, *(g(m) for g in given)))
        f = {**EXACT, **CHOICES}[word]
        return Expression(kind, lambda m: f(*(g(m) for g in given)))

    @staticmethod
    def place(e):
        """An index is an integer."""
        if e.kind in REALS:
            raise Refused("an index is a real number")
        return e.run

    def length(self):
        self.need("(")
        n = self.lookup(self.need())
        self.need(",")
        d = self.constant("int32_t")
        self.need(")")
        return Expression(INDEX_TYPE, lambda m: m.arrays[n.name].shape[d])

    # what a name gives

    def of_index(self, n):
        return Expression(n.kind, lambda m: m.index[n.more])

    def of_extent(self, n):
        return Expression(n.kind, lambda m: m.shape[n.more])

    def of_iteration(self, n):
        return Expression(n.kind, lambda m: m.iteration)

    def of_scalar(self, n):
        return Expression(n.kind, lambda m: m.scalars[n.name])

    def of_constant(self, n):
        return Expression(n.kind, lambda m: n.more)

    def of_variable(self, n):
        return Expression(n.kind, lambda m: m.variables[n.slot])

    def of_input(self, n):
        return Expression(n.kind, lambda m: number(m.arrays[n.name][m.index]))

    def of_table(self, n):
        self.need("[")
        at = self.place(self.ternary())
        self.need("]")
        return Expression(n.kind, lambda m: n.more[inside(at(m), n.length)])

    def of_array(self, n):
        self.need("[")
        at = self.place(self.ternary())
        self.need("]")
        return Expression(n.kind, lambda m: m.variables[n.slot][inside(at(m), n.length)])

    def of_whole(self, n):
        places = [self.place(e) for e in self.arguments(n.more)]

        def run(m):
            a = m.arrays[n.name]
            return number(a[tuple(inside(p(m), length) for p, length in zip(places, a.shape))])
        return Expression(n.kind, run)

    def of_halo(self, n):
        """22.5."""
        offsets = [self.place(e) for e in self.arguments(len(self.named("INDEX")))]
        reach, border = n.more

        def run(m):
            place = []
            for i, d, length in zip(m.index, [o(m) for o in offsets], m.shape):
                if abs(d) > reach:
                    raise Fault("beyond the halo")
                if border == "zero" and not 0 <= i + d < length:
                    place = None
                if place is not None:
                    place.append((i + d) % length if border == "wrap"
                                 else min(max(i + d, 0), length - 1))
            return convert(0, n.kind) if place is None else number(m.arrays[n.name][tuple(place)])
        return Expression(n.kind, run)

    def of_function(self, n):
        parameters, body = n.more
        given = [e.to(p.kind) for e, p in zip(self.arguments(len(parameters)), parameters)]

        def run(m):
            variables = {p.slot: g(m) for p, g in zip(parameters, given)}
            m.variables, mine = variables, m.variables
            end = body(m)
            m.variables = mine
            return end[1] if end else convert(0, n.kind)
        return Expression(n.kind, run)


def number(x):
    """An element of an array as a number of the machine."""
    return x if isinstance(x, np.floating) else int(x)


def inside(i, length):
    """22.7"""
    if not 0 <= i < length:
        raise Fault("index out of range")
    return i


def rounded(exact, kind):
    """22.6: a sum, rounded once to its type; None beyond its range."""
    if kind in INTEGERS:
        return exact if wrap(kind, exact) == exact else None
    if kind == "float":
        value = binary32.nearest(exact)
    else:
        try:
            value = np.float64(exact.numerator / exact.denominator)
        except OverflowError:
            return None
    return None if np.isinf(value) else value


def exactly(x):
    return x if isinstance(x, int) else Fraction(float(x))


def combine(n, given, shape):
    """22.6: the result of a part from what each item assigned, None where it did not."""
    flat = [value[0] if value else None for value in given]
    if n.use == "OUTPUT":
        none, more = convert(0, n.kind), (n.length,) if n.length else ()
        return np.array([([none] * n.length if more else none) if x is None else x for x in flat],
                        dtype(n.kind)).reshape(*shape, *more)
    if n.use == "SCAN":
        sums = list(accumulate((exactly(x or 0) for x in flat), initial=exactly(convert(0, n.kind))))
        numbers = [rounded(s, n.kind) for s in (sums[:-1] if n.more == "exclusive" else sums[1:])]
        if None in numbers:
            raise Fault("a sum beyond its type", numbers.index(None))
        return np.array(numbers, dtype(n.kind)).reshape(shape)
    if n.length and n.use not in ("SUM", "COUNT"):
        return extremes(n, given)
    if n.use in ("MIN", "MAX"):
        best = None
        for i, x in enumerate(flat):
            if x is not None and (best is None or (x < best[0] if n.use == "MIN" else x > best[0])):
                best = x, i
        return best and (best[0], tuple(int(p) for p in np.unravel_index(best[1], shape)))
    sums = [exactly(convert(0, n.kind))] * (n.length or 1)
    for value in filter(None, given):
        sums[value[1]] += exactly(value[0])
    numbers = [rounded(s, n.kind) for s in sums]
    if None in numbers:
        raise Fault("a sum beyond its type")
    return np.array(numbers, dtype(n.kind)) if n.length else numbers[0]


def extremes(n, given):
    """22.6: the least or greatest number of each bin, or the first item with it."""
    best = [None] * n.length
    for i, value in enumerate(given):
        if value and (not (old := best[value[1]]) or (value[0] < old[0] if "MIN" in n.use else value[0] > old[0])):
            best[value[1]] = value[0], i
    if "ARG" in n.use:
        return np.array([b[1] if b else -1 for b in best], "i8")
    kind = np.dtype(dtype(n.kind))
    ends = (-np.inf, np.inf) if n.kind in REALS else (np.iinfo(kind).min, np.iinfo(kind).max)
    return np.array([b[0] if b else ends[n.use == "MIN"] for b in best], kind)


def check(given):
    """22.7, at the end of an item."""
    for use, (value, _) in given:
        if any(map(np.isnan, value if isinstance(value, list) else [value])):
            raise Fault("not a number")
        if use in ("SUM", "SCAN") and np.isinf(value):
            raise Fault("infinity in a sum")


def iteration(reader, m):
    """The results of one iteration, by name."""
    parts, fault = reader.named(*OUTPUTS, *TOTALS), None
    given = {n.name: [] for n in parts}
    for m.item, m.index in enumerate(product(*map(range, m.shape))):
        m.results, m.variables = {}, {}
        try:
            reader.body(m)
            check((n.use, m.results[n.name]) for n in parts if n.name in m.results)
        except Fault as f:
            fault = Fault(f.why, m.item, m.iteration)
            break
        for n in parts:
            given[n.name].append(m.results.get(n.name))
    # A SCAN can fail at an item before that one; a SUM as a whole counts only if all items are possible.
    results = {}
    for n in sorted(parts, key=lambda n: n.use != "SCAN"):
        if not fault or n.use == "SCAN":
            try:
                results[n.name] = combine(n, given[n.name], m.shape if not fault else -1)
            except Fault as f:
                if fault is None or f.item is not None and f.item < fault.item:
                    fault = Fault(f.why, f.item, m.iteration)
    if fault:
        raise fault
    return results


def from_text(text, kind):
    """22.2: a scalar's number, rounded once."""
    if kind in INTEGERS:
        return int(text)
    return binary32.from_text(text) if kind == "float" and text.lstrip("-") != "inf" else REALS[kind](text)


def run(text, shape, arrays=None, scalars=None, seed=1, iterations=1):
    """The results of each iteration: a list of dicts of arrays, numbers and (number, place)."""
    reader, series = Reader(text), []
    m = Machine(tuple(shape), seed, arrays=dict(arrays or {}))
    for n in reader.named("SCALAR"):
        given = (scalars or {}).get(n.name)
        m.scalars[n.name] = n.more if given is None else from_text(given, n.kind)
    for m.iteration in range(iterations):
        series.append(iteration(reader, m))
        for name, output in reader.next.items():
            m.arrays[name] = series[-1][output]
    return series
