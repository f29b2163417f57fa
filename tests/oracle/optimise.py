"""Sections 9 and 10 of the contract: optimisers and the learning rate."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import elementary
import norms
from binary32 import F, ONE, fma, integer, nearest_root


@dataclass
class Settings:
    """The numbers of section 9, as floats."""

    optimizer: str
    momentum: np.float32
    beta1: np.float32
    beta2: np.float32
    epsilon: np.float32
    decay: np.float32
    nesterov: bool = False  # 17.5
    clip: np.float32 = F(0)  # 17.4
    on: tuple = ("weight",)  # 25.16: the rules of what decays


class Optimiser:
    """One optimiser for all parameters of a network."""

    def __init__(self, settings, parameters):
        """`parameters` is a list of arrays; each gets state of its shape, from +0."""
        self.settings = settings
        self.m = [np.zeros_like(p) for p in parameters]
        self.v = [np.zeros_like(p) for p in parameters]
        self.power1 = ONE
        self.power2 = ONE

    def step(self, parameters, sums, rules, count, unit, step_lr, factors=None):
        """9.1 to 9.6: the new parameters after a step over `count` items. `rules`: for each array
        "weight", "bias", or the momentum of running averages (17.8); `factors`: of its rate (24.62)."""
        kind = self.settings.optimizer
        decay = self.settings.decay
        c = (ONE / integer(count)) * F(2.0**-unit)
        if self.settings.clip != 0:
            clipped = (array for array, rule in zip(sums, rules) if isinstance(rule, str))
            root = nearest_root(Fraction(sum(int(s) ** 2 for array in clipped for s in array.flat)))
            c = self.settings.clip / root if root * c > self.settings.clip else c
        if kind in ("adam", "adamw"):
            self.begin_adam(step_lr)
        factors = factors or [ONE] * len(parameters)
        result = []
        for p, w in enumerate(parameters):
            if not isinstance(rules[p], str):
                result.append(norms.running(w, sums[p], count, rules[p]))
                continue
            g = integer(sums[p]) * c
            lr = step_lr * factors[p]
            decays = decay != 0 and rules[p] in self.settings.on
            if decays and kind == "adamw":
                w = fma(-(lr * decay), w, w)
            elif decays:
                g = fma(decay, w, g)
            if kind == "sgd":
                w = fma(-lr, g, w)
            elif kind == "momentum":
                self.v[p] = fma(self.settings.momentum, self.v[p], g)
                ahead = fma(self.settings.momentum, self.v[p], g) if self.settings.nesterov else self.v[p]
                w = fma(-lr, ahead, w)
            else:
                w = self.adam(p, w, g, factors[p])
            result.append(w)
        return result

    def begin_adam(self, lr):
        """9.5: what is done once for each step."""
        self.power1 = self.power1 * self.settings.beta1
        self.power2 = self.power2 * self.settings.beta2
        self.a = lr / (ONE - self.power1)
        self.r = ONE / (ONE - self.power2)

    def adam(self, p, w, g, factor):
        """9.5: what is done for each parameter."""
        s = self.settings
        self.m[p] = fma(s.beta1, self.m[p], (ONE - s.beta1) * g)
        self.v[p] = fma(s.beta2, self.v[p], ((ONE - s.beta2) * g) * g)
        d = np.sqrt(self.v[p] * self.r) + s.epsilon
        return w - (self.a * factor * self.m[p]) / d


@dataclass
class Schedule:
    """The numbers of section 10; `rate` and `gamma` are floats."""

    kind: str
    rate: np.float32
    warmup: int
    every: int
    gamma: np.float32
    steps: int  # T
    least: np.float32 = F(0)  # 25.17

    def lr(self, t, epoch):
        """10.1: the learning rate of step t, counted over the whole run."""
        if t < self.warmup:
            return self.rate * (integer(t + 1) / integer(self.warmup))
        if self.kind == "constant":
            factor = ONE
        elif self.kind == "step":
            factor = ONE
            for _ in range(epoch // self.every):
                factor = factor * self.gamma
        elif self.kind == "exponential":  # 24.34
            factor, power, times = ONE, self.gamma, t - self.warmup
            while times:
                factor = factor * power if times % 2 else factor
                power, times = power * power, times // 2
        else:
            part = integer(t - self.warmup) / integer(self.steps - self.warmup)
            factor = F(0.5) * (ONE + elementary.cospi(part))
            if self.least:
                return self.least + (self.rate - self.least) * factor
        return self.rate * factor
