"""Random kernels with loops of unequal length, branches and ways out of them, from a seed."""

import random
import re

TYPES = ["int", "int64_t", "float", "double", "uint8_t", "unsigned", "int16_t", "uint64_t"]
HEAD = """INDEX(y, i); INPUT(int32_t, a); INPUT(double, b); WHOLE(float, w, 1); SCALAR(int32_t, s, 4); SCALAR(int, n, 3);
OUTPUT(double, o1); OUTPUT(int64_t, o2); SUM(int64_t, total, 4); MIN(int, least); COUNT(c);
static const int TABLE[4] = {3, 1, 4, 1};
static double f(double x, int k) {
    double t = x;
    for (int q = 0; q < k; q++) { if (t > 100) return t / 2; t = t + k; }
    return t;
}
KERNEL {
    double x = b; int m = a; int64_t z = i;
"""
TAIL = """    o1 = x == x ? x : 1;
    if (m & 1) o2 = z;
    total[m & 3] = z % 1000;
    if (m > 3) least = m;
    c = x > 2;
}
"""


class Writer:
    def __init__(self, seed, counters):
        self.r, self.count, self.counters = random.Random(seed), 0, counters

    def fresh(self):
        self.count += 1
        return f"v{self.count}"

    def value(self, names, depth):
        r = self.r
        if depth == 0 or r.random() < 0.2:
            return r.choice([*names, *names, "a", "b", "s", "i", str(r.randint(0, 9)), "0.5", "2.5f"])
        a, b = self.value(names, depth - 1), self.value(names, depth - 1)
        return r.choice([
            f"({a} {r.choice('+-*')} {b})", f"({a} {r.choice('+-*')} {b})", f"({a} {r.choice('+-*')} {b})",
            f"({a} {r.choice(['<', '<=', '==', '!=', '>'])} {b})", f"({self.test(names, depth - 1)} ? {a} : {b})",
            f"{r.choice(['min', 'max', 'fmin', 'fmax'])}({a}, {b})", f"w((int)({a}) & {r.choice([7, 7, 7, 7, 8])})",
            f"({r.choice(TYPES)})({a})", f"((int64_t)({a}) {r.choice('/%')} ((int)({b}) | {r.choice([1, 1, 1, 0])}))",
            f"TABLE[(int)({a}) & 3]", f"f({a}, (int)({b}) & 7)",
            f"((int)({a}) {r.choice(['&', '|', '^', '<<', '>>'])} (int)({b}))"])

    def test(self, names, depth):
        text = f"{self.value(names, depth)} {self.r.choice(['<', '<=', '>', '!=', '=='])} {self.value(names, depth)}"
        kind = self.r.random()
        if kind < 0.2:
            return f"{text} {self.r.choice(['&&', '||'])} {self.value(names, depth)}"
        return f"!({text})" if kind < 0.3 else text

    def loop(self, names, changed, depth):
        """The lines of a loop, and the name of its counter where the loop does not end it."""
        r, k = self.r, self.fresh()
        most, inside = r.choice(["3", "n", "(a & 7)", "(i % 5)", "s"]), [*names, k]
        if self.counters and r.random() < 0.7:
            return self.counted(k, most, inside, changed, depth)
        kind = r.randrange(3)
        if kind == 0:
            more = f" && {self.test(inside, 1)}" if r.random() < 0.3 else ""
            return [f"for (int {k} = 0; {k} < {most}{more}; {k}++) {{", *self.block(inside, changed, depth, True), "}"], []
        body = [f"{k}++;", *self.block(inside, changed, depth, True)]
        if kind == 1:
            return [f"int {k} = 0;", f"while ({k} < {most}) {{", *body, "}"], [k]
        return [f"int {k} = 0;", "do {", *body, f"}} while ({k} < {most});"], [k]

    def counted(self, k, most, inside, changed, depth):
        """A loop with a counter that is read after it, and a variable that may be read in the loop alone."""
        r, own = self.r, self.fresh()
        step = r.choice(["{0}++", "{0}++", "{0} += 2", "{0} = {0} + 1", "{0} -= -1", "{0} += 5u - 4"]).format(k)
        tests = [f"{k} < {most}", *(f"({self.test([*inside, own], 1)})" for _ in range(r.randrange(3)))]
        r.shuffle(tests)
        begin = r.choice(["", f"{k} = 1", f"{k} = 250"])
        body = self.block([*inside, own], [*changed, own, own], depth, True)
        lines = [f"{r.choice(TYPES[:2] + TYPES[4:])} {k} = {r.choice(['0', '0', '0', 'a', 'n'])};",
                 f"{r.choice(TYPES)} {own} = {r.choice(inside[:3])};"]
        where = r.random()
        if where < 0.2:
            return [lines[1], f"for ({lines[0]} {' && '.join(tests)}; {step}) {{", *body, "}"], []
        if where < 0.6:
            lines += [f"for ({begin}; {' && '.join(tests)}; {step}) {{", *body, "}"]
        else:
            lines += [f"{begin};" if begin else "", "do {", f"{step};", *body, f"}} while ({' && '.join(tests)});"]
        lines.append(f"{r.choice(changed)} += {k};")
        return lines, [k, own] if r.random() < 0.5 else [k]

    def block(self, names, changed, depth, in_loop):
        r, names, changed, lines = self.r, list(names), list(changed), []
        for _ in range(r.randint(1, 4)):
            kind = r.randrange(12)
            if kind < 2:
                lines.append(f"{r.choice(TYPES)} {self.fresh()} = {self.value(names, 2)};")
                names.append(f"v{self.count}")
                changed.append(names[-1])
            elif kind < 6:
                lines.append(f"{r.choice(changed)} {r.choice(['=', '+=', '-='])} {self.value(names, 2)};")
            elif kind < 8 and depth:
                lines += [f"if ({self.test(names, 2)}) {{", *self.block(names, changed, depth - 1, in_loop), "}"]
                if r.random() < 0.4:
                    lines += ["else {", *self.block(names, changed, depth - 1, in_loop), "}"]
            elif kind == 8 and in_loop:
                lines.append(f"if ({self.test(names, 1)}) {r.choice(['break', 'continue'])};")
            elif kind == 9 and r.random() < 0.4:
                lines.append(f"if ({self.test(names, 1)}) return;" if not in_loop or r.random() < 0.6
                             else r.choice(["break;", "continue;"]))
            elif kind == 10:
                lines.append(f"o1 = {self.value(names, 2)};")
            elif depth:
                more, left = self.loop(names, changed, depth - 1)
                lines += more
                names += left
        return lines


def kernel(seed, counters=False, narrow=False):
    """The text of kernel number `seed`, whose arrays are those of HEAD; `w` has 8 elements.

    counters: most loops have a counter that is declared before them. narrow: no value in a loop has 64 bits.
    """
    w = Writer(seed, counters)
    body = w.block(["x", "m", "z"], ["x", "m", "z"], 3, False)
    text = HEAD + "\n".join("    " + line for line in body) + "\n" + TAIL
    if not narrow:
        return text
    declared, inside = text.split("KERNEL {\n")
    for wide, other in (("uint64_t", "uint16_t"), ("int64_t", "int"), ("double", "float")):
        inside = inside.replace(wide, other)
        declared = re.sub(rf"\b{wide}(?= |, o)", other, declared)
    inside = re.sub(r"\bi\b", "column", re.sub(r"\bb\b", "part", inside.replace("0.5", "0.5f")))
    return f"{declared}KERNEL {{\n    const int column = (int)i; const float part = (float)b;\n{inside}"
