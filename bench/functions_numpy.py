"""Nanoseconds an element of NumPy's functions, for a look beside build/bench/functions_speed.

The arguments and the measure are those of functions_speed.c: 2,048 elements in the first-level cache,
one thread, processor time, the median and the fastest of 11 samples. NumPy has no erf.
"""

import argparse
import statistics
import time

import numpy as np

N, ROUNDS, SAMPLES = 2048, 20, 11
POSITIVE = ("log", "sqrt", "power")


def nanoseconds(function, *arrays):
    out = np.empty_like(arrays[0])
    samples = []
    for _ in range(SAMPLES):
        begun = time.thread_time_ns()
        for _ in range(ROUNDS):
            function(*arrays, out=out)
        samples.append((time.thread_time_ns() - begun) / (ROUNDS * N))
    return statistics.median(samples), min(samples)


def main():
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    generator = np.random.default_rng(20261124)
    print(f"NumPy {np.__version__}, median ns of processor time per element (fastest sample)")
    for name in ("sqrt", "cbrt", "exp", "log", "sin", "cos", "tan", "arctan", "tanh", "power", "arctan2"):
        for real in (np.float32, np.float64):
            x = generator.uniform(0.1, 10, N) if name in POSITIVE else generator.uniform(-8, 8, N)
            arrays = [x.astype(real)]
            if name in ("power", "arctan2"):
                arrays.append(generator.uniform(-4, 4, N).astype(real))
            median, least = nanoseconds(getattr(np, name), *arrays)
            print(f"{name:8} {np.dtype(real).name}  {median:6.2f} ({least:.2f})")


if __name__ == "__main__":
    main()
