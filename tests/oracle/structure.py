"""docs/exactness.md 20.5 and 20.6 in Python, in binary64 in the written order."""

import math

import linear
import philox


def components(columns):
    """20.5: the variances, and the components as rows."""
    _, A = linear.means_and_covariances(columns)
    p = len(columns)
    V = [[float(i == k) for k in range(p)] for i in range(p)]
    for _ in range(60):
        if not sweep(A, V):
            break
    order = sorted(range(p), key=lambda i: -A[i][i])
    rows = []
    for i in order:
        largest = max(range(p), key=lambda k: (abs(V[i][k]), -k))
        rows.append([-v for v in V[i]] if V[i][largest] < 0 else V[i])
    return [max(A[i][i], 0.0) for i in order], rows


def sweep(A, V):
    found = False
    for p in range(len(A)):
        for q in range(p + 1, len(A)):
            x, a, b = A[p][q], A[p][p], A[q][q]
            if x == 0:
                continue
            found = True
            if abs(a) + abs(x) == abs(a) and abs(b) + abs(x) == abs(b):
                A[p][q] = A[q][p] = 0.0
                continue
            r = (b - a) / (2 * x)
            t = 1 / (abs(r) + math.sqrt(r * r + 1))
            t = -t if r < 0 else t
            c = 1 / math.sqrt(t * t + 1)
            s = t * c
            for M in A, V:
                for k in range(len(A)):
                    g, h = M[p][k], M[q][k]
                    M[p][k], M[q][k] = c * g - s * h, s * g + c * h
            A[p][p], A[q][q], A[p][q], A[q][p] = a - t * x, b + t * x, 0.0, 0.0
            for k in range(len(A)):
                A[k][p], A[k][q] = A[p][k], A[q][k]
    return found


def square(item, centre):
    sum = 0.0
    for x, c in zip(item, centre):
        sum = sum + (x - c) * (x - c)
    return sum


def chain(numbers):
    sum = 0.0
    for number in numbers:
        sum = sum + number
    return sum


def first_centres(items, K, seed):
    n = len(items)

    def draw(j, t):
        w = [philox.word(seed, 9, 0, j, t, e) for e in (0, 1)]
        return math.floor((w[0] * 2**32 + w[1]) / 2**11) * 2.0**-53

    def at(v):
        return min(math.floor(v * float(n)), n - 1)

    def candidate(N, part):
        sum, wanted = 0.0, part * chain(N)
        for i in range(n):
            sum = sum + N[i]
            if sum > wanted:
                return i
        return at(part)

    centres = [items[at(draw(0, 0))]]
    N = [square(item, centres[0]) for item in items]
    for j in range(1, K):
        trials = []
        for t in range(2 + math.floor(math.log(K))):
            new = items[candidate(N, draw(j, t))]
            less = [min(old, square(item, new)) for item, old in zip(items, N)]
            trials.append((chain(less), t, less, new))
        _, _, N, new = min(trials)
        centres.append(new)
    return centres


def nearest(items, centres):
    all = [[square(item, c) for c in centres] for item in items]
    return [row.index(min(row)) for row in all], [min(row) for row in all]


def kmeans(items, K, seed, tol, most):
    """Centres, clusters, inertia and iterations; items are lists of numbers."""
    n, p = len(items), len(items[0])
    centres, before, moves = first_centres(items, K, seed), None, 0
    columns = [[item[k] for item in items] for k in range(p)]
    W = chain(deviation(column) * deviation(column) for column in columns)
    while True:
        cluster, N = nearest(items, centres)
        for c in range(K):
            if c not in cluster:
                far = max((i for i in range(n) if cluster.count(cluster[i]) > 1), key=lambda i: (N[i], -i))
                cluster[far], N[far] = c, 0.0
        if cluster == before or moves == most:
            break
        before, moves, S = cluster, moves + 1, 0.0
        moved = []
        for c in range(K):
            own = [[item[k] for item, at in zip(items, cluster) if at == c] for k in range(p)]
            moved.append(linear.means_and_covariances(own)[0])
            for new, old in zip(moved[c], centres[c]):
                S = S + (new - old) * (new - old)
        centres = moved
        if S <= tol * (W / float(p)):
            break
    cluster, N = nearest(items, centres)
    return centres, cluster, chain(N), moves


def deviation(column):
    """18.2, by a root of twice as many bits as binary64 has."""
    from decimal import Decimal, localcontext
    from fractions import Fraction

    n, exact = len(column), [Fraction(float(v)) for v in column]
    value = (n * sum(v * v for v in exact) - sum(exact) ** 2) / n**2
    with localcontext() as context:
        context.prec = 60
        return float((Decimal(value.numerator) / Decimal(value.denominator)).sqrt())
