"""17.14 of the contract: L-BFGS over all items. Vectors are of binary64; sums go from the first
element to the last, as NumPy's accumulate does."""

import numpy as np

F, D = np.float32, np.float64
PAIRS, TRIALS = 10, 30


def total(values):
    """The chain of a sum, from +0."""
    return np.add.accumulate(np.concatenate([[D(0)], values]))[-1]


def dot(a, b):
    return total(a.astype(D) * b.astype(D))


class Lbfgs:
    """`evaluate` takes a point, an array of floats, and gives mean loss and gradient, or None where a
    number left its range. `penal` says for each parameter whether penalties act on it."""

    def __init__(self, point, penal, evaluate, decay, l1, tolerance):
        self.penal, self.evaluate = penal, evaluate
        self.l2, self.l1, self.tolerance = D(decay), D(l1), D(tolerance)
        self.pairs = []
        self.point = point
        self.value, self.gradient = self.at(point)
        self.slopes()

    def at(self, point):
        """Value with penalties, gradient with the L2 penalty."""
        found = self.evaluate(point)
        if found is None:
            return D(np.inf), None
        value, gradient = found
        x = point.astype(D)
        gradient = np.where(self.penal, gradient + self.l2 * x, gradient)
        value = value + (D(0.5) * self.l2) * total((x * x)[self.penal])
        return value + self.l1 * total(np.abs(x)[self.penal]), gradient

    def slopes(self):
        g, x, self.slope = self.gradient, self.point, self.gradient.copy()
        if self.l1 != 0:
            left, right = g - self.l1, g + self.l1
            side = np.where(x > 0, right, np.where(x < 0, left, np.where(
                right < 0, right, np.where(left > 0, left, D(0)))))
            self.slope = np.where(self.penal, side, g)
        self.largest = np.abs(self.slope).max()

    @property
    def converged(self):
        return self.largest <= self.tolerance

    def direction(self):
        d, along = self.slope.copy(), {}
        for k in reversed(range(len(self.pairs))):
            s, y, rho = self.pairs[k]
            along[k] = rho * dot(s, d)
            d = d + (-along[k]) * y.astype(D)
        if self.pairs:
            s, y, rho = self.pairs[-1]
            scale = D(1) / (rho * dot(y, y))
        else:
            length = np.sqrt(dot(self.slope, self.slope))
            scale = D(1) / length if length > 1 else D(1)
        d = d * scale
        for k, (s, y, rho) in enumerate(self.pairs):
            d = d + (along[k] - rho * dot(y, d)) * s.astype(D)
        d = D(0) - d
        if self.l1 != 0:
            d = np.where(self.penal & (d * self.slope >= 0), D(0), d)
        return d

    def trial(self, direction, length):
        x = self.point.astype(D)
        to = (x + length * direction).astype(F)
        if self.l1 != 0:
            side = np.where(x != 0, np.sign(x), np.sign(D(0) - self.slope))
            to = np.where(self.penal & ~(to.astype(D) * side > 0), F(0), to)
        return to

    def judge(self, trial, direction, length, along, value, gradient):
        """-1: too short, 0: good, 1: too long."""
        noise = D(2.0**-20) * abs(self.value) + D(2.0**-24)
        hoped = length * along
        if self.l1 != 0:
            hoped = total(self.slope * (trial.astype(D) - self.point.astype(D)))
        if not np.isfinite(value) or value > self.value + D(1e-4) * hoped + noise:
            return 1
        if self.l1 != 0:
            return 0
        there = dot(gradient, direction)
        return -1 if there < D(0.9) * along else int(there > -(D(0.9) * along))

    def search(self, direction, along):
        low, high, length = D(0), D(np.inf), D(1)
        for _ in range(TRIALS):
            trial = self.trial(direction, length)
            if (trial == self.point).all():
                break
            value, gradient = self.at(trial)
            sign = self.judge(trial, direction, length, along, value, gradient)
            if sign == 0:
                self.move(trial, value, gradient)
                return True
            low, high = (low, length) if sign > 0 else (length, high)
            length = D(2) * length if np.isinf(high) else D(0.5) * (low + high)
        if low > 0:
            trial = self.trial(direction, low)
            self.move(trial, *self.at(trial))
        return bool(low > 0)

    def move(self, trial, value, gradient):
        s = (trial.astype(D) - self.point.astype(D)).astype(F)
        y = (gradient - self.gradient).astype(F)
        self.pairs = self.pairs[-(PAIRS - 1):]
        product = dot(s, y)
        if product > D(2.0**-30) * dot(y, y):
            self.pairs.append((s, y, D(1) / product))
        self.point, self.value, self.gradient = trial, value, gradient
        self.slopes()

    def iterate(self):
        """Whether a better point was found."""
        while True:
            direction = self.direction()
            along = dot(self.slope, direction)
            if along < 0 and self.search(direction, along):
                return True
            if not self.pairs:
                return False
            self.pairs = []
