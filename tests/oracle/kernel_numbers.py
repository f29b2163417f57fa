"""Section 22 of the contract: the numbers of kernels.

Real numbers are numpy.float32 and numpy.float64, whose operations round once. Integers are Python's,
cut to their type after each operation (22.4).
"""

import functools as tools
import re
from fractions import Fraction
from pathlib import Path

import numpy as np

import binary32
import draws
import functions
import philox

TEXT = Path(__file__).resolve().parents[2] / "docs" / "exactness.md"
REALS = {"float": np.float32, "double": np.float64}
INTEGERS = {f"{u}int{w}_t": (w, u == "") for u in ("", "u") for w in (8, 16, 32, 64)}
TYPES = {**{t: t for t in (*REALS, *INTEGERS)}, "int": "int32_t",
         "unsigned": "uint32_t"}


class Refused(Exception):
    """The text is not in the language."""


class Fault(Exception):
    """22.7: the run ends with this item (None: a sum as a whole) of this iteration."""

    def __init__(self, why, item=None, iteration=0):
        super().__init__(why, item, iteration)
        self.why, self.item, self.iteration = why, item, iteration


def dtype(kind):
    return np.dtype(REALS.get(kind) or kind.removesuffix("_t"))


# 22.2: types

def promoted(kind):
    return "int32_t" if kind in INTEGERS and INTEGERS[kind][0] < 32 else kind


def common(*kinds):
    def two(a, b):
        if "double" in (a, b) or "float" in (a, b):
            return "double" if "double" in (a, b) else "float"
        # the wider one, and of equal widths the one without a sign
        return max(a, b, key=lambda k: (INTEGERS[k][0], not INTEGERS[k][1]))
    return tools.reduce(two, map(promoted, kinds))


def wrap(kind, n):
    """22.4: modulo 2^w."""
    bits, signed = INTEGERS[kind]
    n %= 1 << bits
    return n - (1 << bits) if signed and n >> bits - 1 else n


def convert(value, kind):
    """22.3, 22.4: a number of any type to `kind`."""
    if kind in REALS:
        if isinstance(value, int):  # rounded once
            return binary32.nearest(value) if kind == "float" else np.float64(value)
        return REALS[kind](value)
    if isinstance(value, int):
        return wrap(kind, value)
    if np.isnan(value):
        return 0
    bits, signed = INTEGERS[kind]
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if np.isinf(value):
        return most if value > 0 else least
    return min(max(int(value), least), most)


def literal(text):
    """22.2: (type, value) of a number of the text."""
    lower = text.lower()
    if re.match(r"0\d", lower) or not re.fullmatch(
            r"(0x[0-9a-f]+|\d+)(u|ll|ull|llu)?|0x[0-9a-f.]+p[+-]?\d+f?|"
            r"(\d+\.\d*|\.\d+|\d+(?=e))(e[+-]?\d+)?f?", lower):
        raise Refused(text)
    kind, value = number(lower)
    if kind in REALS and np.isinf(value):
        raise Refused("beyond the range")
    return kind, value


def number(lower):
    if "p" in lower:  # 0x1.8p3; the value of a binary64 is exact
        bits = float.fromhex(lower.removesuffix("f"))
        return ("float", np.float32(bits)) if lower.endswith("f") else ("double", np.float64(bits))
    if not lower.startswith("0x") and re.search(r"[.e]", lower):
        if lower.endswith("f"):
            return "float", binary32.nearest(Fraction(lower[:-1]))
        return "double", np.float64(lower)
    digits = lower.rstrip("ul")
    value, suffix = int(digits, 16 if lower.startswith("0x") else 10), lower[len(digits):]
    fitting = ["int32_t", "uint32_t", "int64_t", "uint64_t"]
    if "u" not in suffix and not lower.startswith("0x"):
        fitting = ["int32_t", "int64_t"]
    for kind in fitting:
        if ("u" in suffix) <= (not INTEGERS[kind][1]) and ("ll" in suffix) <= ("64" in kind):
            if wrap(kind, value) == value:
                return kind, value
    raise Refused("beyond 64 bits")


# 22.4: integers; 22.3: real numbers

def quotient(a, b):
    if b == 0:
        raise Fault("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


ARITHMETIC = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: quotient(a, b) if isinstance(a, int) else a / b}
BITS = {"&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
        "%": lambda a, b: a - quotient(a, b) * b}
COMPARISONS = {"<": lambda a, b: a < b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b,
               ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b}
PRECEDENCE = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", ">", "<=", ">="],
              ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]


@tools.cache
def formats():
    """Section 21 in both formats."""
    text = TEXT.read_text()
    return dict(zip(("float", "double"), functions.formats(text[text.index("## 21. "):])))


@tools.lru_cache(maxsize=100000)
def elementary(name, kind, *arguments):
    """21, of the bits of the arguments, so that zeros keep their sign and NaNs are found."""
    form = formats()[kind]
    return getattr(form, name)(*(form.of(np.array([a])) for a in arguments))[0]


def fused(kind, a, b, c):
    return REALS[kind](functions.fma64(a, b, c) if kind == "double" else binary32.fma(a, b, c))


EXACT = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "fabs": np.fabs}
ELEMENTARY = {"sqrt": 1, "cbrt": 1, "exp": 1, "log": 1, "pow": 2, "sin": 1, "cos": 1, "tan": 1,
              "atan": 1, "atan2": 2, "erf": 1, "erfc": 1, "normcdf": 1, "tanh": 1, "exp2": 1, "expm1": 1,
              "log2": 1, "log10": 1, "log1p": 1, "asin": 1, "acos": 1, "sinh": 1, "cosh": 1, "hypot": 2}
CHOICES = {"fmin": lambda a, b: b if b < a or np.isnan(a) else a,
           "fmax": lambda a, b: b if b > a or np.isnan(a) else a,
           "min": lambda a, b: b if b < a else a, "max": lambda a, b: b if b > a else a}
ARGUMENTS = {**ELEMENTARY, **dict.fromkeys(EXACT, 1), **dict.fromkeys(CHOICES, 2), "fma": 3}


# 22.10

def random_word(m, kind, element):
    return int(philox.word(m.seed, 10, kind, m.iteration % 2**32, m.item, element))


def random32(m, k):
    return random_word(m, 0, k)


def uniformf(m, k):
    return np.float32((random_word(m, 2, k) >> 8) * 2.0**-24)


def uniform(m, k):
    a, b = random_word(m, 1, 2 * k), random_word(m, 1, 2 * k + 1)
    return np.float64(((a >> 5) * 2**26 + (b >> 6)) * 2.0**-53)


def gauss(kind, u, quarter, f, k):
    form = formats()[kind]
    return draws.pair(form, form.number([u]), np.array([quarter]), form.number([f]), k)[0]


def normal(m, k):
    a, b, c, d = (random_word(m, 3, k // 2 * 4 + i) for i in range(4))
    u = ((a >> 6) * 2**27 + 2 * (b >> 6) + 1) * 2.0**-53
    f = (c % 2**30 * 2**23 + 2 * (d >> 10) + 1 - 2**52) * 2.0**-53
    return gauss("double", u, c >> 30, f, k)


def normalf(m, k):
    a, b = (random_word(m, 4, k // 2 * 2 + i) for i in range(2))
    u = (2 * (a >> 9) + 1) * 2.0**-24
    f = (2 * ((b >> 7) % 2**23) + 1 - 2**23) * 2.0**-24
    return gauss("float", u, b >> 30, f, k)


DRAWS = {"uniform": (uniform, "double"), "uniformf": (uniformf, "float"),
         "normal": (normal, "double"), "normalf": (normalf, "float"),
         "random32": (random32, "uint32_t")}
