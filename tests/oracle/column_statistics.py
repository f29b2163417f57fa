"""Statistics of columns by long fractions, from docs/exactness.md 18 alone."""

import math
from fractions import Fraction
from numbers import Rational

NAN = math.nan


def exact(value):
    """Of a whole number of any length or a fraction, or of a binary64 or a shorter one."""
    return Fraction(value) if isinstance(value, Rational) else Fraction(float(value))


def root(square):
    """The binary64 nearest to the root of a fraction."""
    if square == 0:
        return 0.0
    up = max(0, 140 - (square.numerator.bit_length() - square.denominator.bit_length()))
    scaled = Fraction(square * 4**up)
    whole = math.isqrt(scaled.numerator // scaled.denominator)
    more = whole * whole != scaled
    return float(Fraction(2 * whole + more, 2**(up + 1)))


def central(values, power):
    mean = sum(values) / len(values)
    return sum((v - mean)**power for v in values) / len(values)


def moments(values):
    """Of finite numbers, as a dict."""
    x, n = [exact(v) for v in values], len(values)
    answer = dict.fromkeys(("sum", "mean", "variance", "deviation", "population_deviation",
                            "skewness", "minimum", "maximum"), NAN)
    if n == 0:
        return answer
    m2 = central(x, 2)
    answer.update(sum=float(sum(x)), mean=float(sum(x) / n), population_deviation=root(m2),
                  minimum=float(min(x)), maximum=float(max(x)))
    if n > 1:
        answer.update(variance=float(m2 * n / (n - 1)), deviation=root(m2 * n / (n - 1)))
    if n > 2 and m2 > 0:
        m3 = central(x, 3)
        square = Fraction(n * (n - 1), (n - 2)**2) * m3**2 / m2**3
        answer["skewness"] = math.copysign(root(square), m3) if m3 else 0.0
    return answer


def quantile(values, q):
    x = sorted(exact(v) for v in values)
    if not x:
        return NAN
    place = Fraction(q) * (len(x) - 1)
    low = math.floor(place)
    high = min(low + 1, len(x) - 1)
    return float(x[low] + (x[high] - x[low]) * (place - low))


def bins_of(count):
    return 1 + math.ceil(math.log2(count)) if count else 0


def histogram(values, bins=None):
    """(counts, edges)."""
    x = [exact(v) for v in values]
    low, high = min(x), max(x)
    bins = 1 if low == high else bins or bins_of(len(x))
    edges = [float(low + (high - low) * Fraction(i, bins)) for i in range(bins + 1)]
    counts = [sum(1 for v in x if (i == 0 or edges[i] <= v) and (i + 1 == bins or v < edges[i + 1]))
              for i in range(bins)]
    return counts, edges


def pair(left, right):
    """Covariance and correlation of the pairs that have both numbers."""
    both = [(exact(a), exact(b)) for a, b in zip(left, right)
            if a == a and b == b]
    n = len(both)
    if n < 2:
        return NAN, NAN
    x, y = [a for a, _ in both], [b for _, b in both]
    mx, my = sum(x) / n, sum(y) / n
    sxy = sum((a - mx) * (b - my) for a, b in both)
    sxx, syy = sum((a - mx)**2 for a in x), sum((b - my)**2 for b in y)
    if not sxx or not syy:
        return float(sxy / (n - 1)), NAN
    r = root(sxy * sxy / (sxx * syy))
    return float(sxy / (n - 1)), -r if sxy < 0 else r
