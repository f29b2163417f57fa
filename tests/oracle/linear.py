"""docs/exactness.md 20 in Python: Fractions for the exact sums, then binary64 in the written order."""

import math
from fractions import Fraction


def means_and_covariances(columns):
    """18.2 and 18.5 of columns of numbers."""
    n = len(columns[0])
    exact = [[Fraction(float(v)) for v in column] for column in columns]
    sums = [sum(column) for column in exact]

    def covariance(i, k):
        products = sum(a * b for a, b in zip(exact[i], exact[k]))
        return float((n * products - sums[i] * sums[k]) / (n * (n - 1))) if n > 1 else 0.0

    return [float(s / n) for s in sums], [[covariance(i, k) for k in range(len(columns))]
                                          for i in range(len(columns))]


def sums(columns, intercept):
    n = float(len(columns[0]))
    m, c = means_and_covariances(columns)
    every = range(len(columns))
    return m, [[(n - 1) * c[i][k] + (0.0 if intercept else (n * m[min(i, k)]) * m[max(i, k)])
                for k in every] for i in every]


def intercept_of(m, w, intercept):
    b = m[-1]
    for mean, weight in zip(m, w):
        b = b - mean * weight
    return b if intercept else 0.0


def ridge(columns, alpha, intercept=True):
    m, G = sums(columns, intercept)
    p = len(columns) - 1
    A = [row[:p] for row in G[:p]]
    for i in range(p):
        A[i][i] = A[i][i] + alpha
    for j in range(p):
        for i in range(j, p):
            s = A[i][j]
            for k in range(j):
                s = s - A[i][k] * A[j][k]
            A[i][j] = math.sqrt(s) if i == j else s / A[j][j]
    w = [G[i][p] for i in range(p)]
    for i in range(p):
        for k in range(i):
            w[i] = w[i] - A[i][k] * w[k]
        w[i] = w[i] / A[i][i]
    for i in reversed(range(p)):
        for k in range(i + 1, p):
            w[i] = w[i] - A[k][i] * w[k]
        w[i] = w[i] / A[i][i]
    return w, intercept_of(m, w, intercept)


def gap_of(G, g, Y, L, w, h):
    f = r = a = 0.0
    for i in range(len(w)):
        f, r, a = f + w[i] * h[i], r + w[i] * g[i], a + abs(w[i])
    u = max(abs(g[i] - h[i]) for i in range(len(w)))
    R = (Y + f) - 2 * r
    q = L / u if u > L else 1.0
    return (0.5 * (R + R * (q * q)) + L * a) - q * (Y - r)


def lasso(columns, alpha, tolerance, most, intercept=True):
    m, G = sums(columns, intercept)
    p, L = len(columns) - 1, alpha * float(len(columns[0]))
    g, Y = [G[i][p] for i in range(p)], G[p][p]
    w, h = [0.0] * p, [0.0] * p
    for iteration in range(1, most + 1):
        moved = largest = 0.0
        for i in (i for i in range(p) if G[i][i] > 0):
            s = (g[i] - h[i]) + G[i][i] * w[i]
            z = abs(s) - L
            v = math.copysign(z, s) / G[i][i] if z > 0 else 0.0
            d, w[i] = v - w[i], v
            for k in range(p):
                h[k] = h[k] + d * G[i][k]
            moved, largest = max(moved, abs(d)), max(largest, abs(v))
        if moved <= tolerance * largest or iteration == most:
            gap = gap_of(G, g, Y, L, w, h)
            if gap <= tolerance * Y:
                break
    return w, intercept_of(m, w, intercept), iteration, gap / float(len(columns[0]))
