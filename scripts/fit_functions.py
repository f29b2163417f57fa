#!/usr/bin/env python3
"""The polynomials EXP, LOG, ERF and ERFC of src/kernels/runtime/math_coefficients_f32.inc and _f64.inc.

    scripts/fit_functions.py          needs mpmath; takes two minutes

Each is the polynomial whose largest weighted error is least (Remez). Then its coefficients are rounded
to the format one after another, from the lowest power, and the others move so that the polynomial
stays near the first one where that has no error. Before each list stands the largest weighted error.
"""

from mpmath import cos, erfc, exp, expm1, frexp, ldexp, log, lu_solve, matrix, mp, mpf, nint, pi, sqrt

mp.prec = 200


def rounded(x, bits):
    m, e = frexp(x)
    return ldexp(nint(ldexp(m, bits)), e - bits)


def value(coefficients, x):
    return sum(c * x**p for p, c in coefficients.items())


def nodes(a, b, count):
    """Numbers from a to b, denser at both ends."""
    return [a + (b - a) * (1 - cos(pi * i / count)) / 2 for i in range(count + 1)]


def extremes(error):
    """The place of the largest error of each run of one sign."""
    found = [0]
    for i in range(1, len(error)):
        if (error[i] > 0) != (error[found[-1]] > 0):
            found.append(i)
        elif abs(error[i]) > abs(error[found[-1]]):
            found[-1] = i
    return found


def remez(f, weight, powers, a, b):
    """The coefficients by power. f and weight are functions on a to b."""
    n = len(powers)
    count = 24 * (n + 2)
    xs = [a + (b - a) * (1 - cos(pi * (i + mpf(1) / 2) / count)) / 2 for i in range(count)]
    fs, ws = [f(x) for x in xs], [weight(x) for x in xs]
    places = [int((count - 1) * (1 - float(cos(pi * i / n))) / 2) for i in range(n + 1)]
    for i in range(1, n + 1):
        places[i] = max(places[i], places[i - 1] + 1)
    best = None
    for _ in range(30):
        m, r = matrix(n + 1, n + 1), matrix(n + 1, 1)
        for row, i in enumerate(places):
            for column, p in enumerate(powers):
                m[row, column] = xs[i]**p
            m[row, n], r[row] = (-1)**row / ws[i], fs[i]
        solution = lu_solve(m, r)
        now = {p: solution[k] for k, p in enumerate(powers)}
        error = [(y - value(now, x)) * w for x, y, w in zip(xs, fs, ws)]
        worst = max(abs(e) for e in error)
        if best is None or worst < best[0]:
            best = worst, now
        found = extremes(error)
        while len(found) > n + 1:
            found.pop(0 if abs(error[found[0]]) < abs(error[found[-1]]) else -1)
        if worst <= abs(solution[n]) * mpf("1.002") or len(found) < n + 1 or found == places:
            break
        places = found
    return best[1]


def fit(f, weight, powers, a, b, bits, fixed=None):
    """(coefficients of the format, the largest weighted error)."""
    fixed, todo, a, b = dict(fixed or {}), list(powers), mpf(a), mpf(b)
    known = dict(fixed)
    target = remez(lambda x: f(x) - value(known, x), weight, todo, a, b)
    xs = nodes(a, b, 40 * len(todo))
    error = [f(x) - value(known, x) - value(target, x) for x in xs]
    zeros = [(x + y) / 2 for x, y, d, e in zip(xs, xs[1:], error, error[1:]) if (d > 0) != (e > 0)]
    weights, left = [weight(x) for x in zeros], [value(target, x) for x in zeros]
    while todo:
        m, r = matrix(len(zeros), len(todo)), matrix(len(zeros), 1)
        for i, x in enumerate(zeros):
            for k, p in enumerate(todo):
                m[i, k] = weights[i] * x**p
            r[i] = weights[i] * left[i]
        p = todo.pop(0)
        fixed[p] = rounded(lu_solve(m, r)[0], bits)
        left = [y - fixed[p] * x**p for x, y in zip(zeros, left)]
    return fixed, max(abs(f(x) - value(fixed, x)) * weight(x) for x in nodes(a, b, 3000))


def show(name, bits, f, weight, degree, a, b, fixed=None):
    powers = range(1 if fixed else 0, degree + 1)
    coefficients, worst = fit(f, weight, powers, a, b, bits, fixed)
    print(f"{name}, {bits} bits: 2^{float(log(worst, 2)):.2f}")
    for p in reversed(powers):
        digits, _, exponent = float(coefficients[p]).hex().partition("p")
        print(f"    {digits.rstrip('0')}p{exponent}")


def exp_tail(r):
    """(e^r - 1 - r) / r^2"""
    return mpf(1) / 2 + r / 6 + r * r / 24 if abs(r) < mpf(10)**-12 else (exp(r) - 1 - r) / r**2


def log_tail(z):
    """(log((1 + s) / (1 - s)) - 2 s) / s^3 with s^2 = z"""
    s = sqrt(z)
    return mpf(2) / 3 + mpf(2) / 5 * z if z < mpf(10)**-12 else (log((1 + s) / (1 - s)) / s - 2) / z


def minus_log_erfc(a):
    return -log(erfc(a))


def show_erf(bits, degree, most):
    """The error is that of erf relative to it. The first coefficient is 2 / sqrt pi in two numbers."""
    first = 2 / sqrt(pi)
    high = rounded(first, bits)
    fixed = {0: high + rounded(first - high, bits)}
    show("ERF", bits, lambda a: minus_log_erfc(a) / a, lambda a: a / expm1(minus_log_erfc(a)),
         degree, mpf("1e-12"), most, fixed)


def grown_erfc(q):
    """(1 + 1.5 a) e^(a^2) erfc a with q = (a - 4) / (a + 4)"""
    a = 4 * (1 + q) / (1 - q)
    return (1 + a * 3 / 2) * exp(a * a) * erfc(a)


def show_erfc(bits, degree, most):
    """The first coefficient is its value for a = 4 in two numbers."""
    first = grown_erfc(mpf(0))
    high = rounded(first, bits)
    fixed = {0: high + rounded(first - high, bits)}
    show("ERFC", bits, grown_erfc, lambda q: 1 / grown_erfc(q), degree, -1, (most - 4) / (most + 4), fixed)


HALF = log(2) / 2 * mpf("1.0005")
STEEP = ((sqrt(2) - 1) / (sqrt(2) + 1))**2 * mpf("1.0005")
show("EXP", 24, exp_tail, lambda r: r * r / abs(expm1(r)) if r else mpf(0), 5, -HALF, HALF)
show_erf(24, 9, 4)
show_erfc(24, 11, mpf(11))
show("EXP", 53, exp_tail, lambda r: r * r * exp(-r), 9, -HALF, HALF)
show("LOG", 53, log_tail, lambda z: z / 2, 6, mpf(10)**-15, STEEP)
show_erf(53, 24, 6)
show_erfc(53, 24, mpf("28.3"))
