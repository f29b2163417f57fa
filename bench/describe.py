"""Statistics of columns: Data.describe beside DataFrame.describe and DataFrame.corr of pandas.

    pip install . pandas
    python bench/describe.py --items 1000000 --columns 50 --rounds 3
    python bench/describe.py --items 20000 --columns 400 --devices cpu,opencl:0

Both get the same table of normal numbers, once as float32 and once as float64. `make` is quern.Data of
the DataFrame, which checks, copies and, where they are float64, rounds the values; `quern` is
describe. The results are compared first. `copy` is the time of a copy of the float32 values. The last
two columns say how many times faster than pandas describe is, without and with `make`. With --devices
only describe with covariances is timed, of floats and of bytes, by the CPU and by these devices.
"""

import argparse
import time


def seconds(call, rounds):
    """The shortest of some times."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def pairs(given, random, np, quern):
    """Covariances by the CPU and by devices; the bytes are compared first."""
    shape = given.items, given.columns
    for table in (random.normal(3, 2, shape).astype(np.float32), random.integers(0, 256, shape, np.uint8)):
        data = quern.Data(table)
        jobs = {d: (lambda d=d: data.describe((), correlation=True, devices=d)) for d in ("cpu", given.devices)}
        found = [job()["covariance"].tobytes() for job in jobs.values()]
        assert found[0] == found[1]
        times = ", ".join(f"{name} {seconds(job, given.rounds):.3f} s" for name, job in jobs.items())
        print(f"{table.dtype} {shape[0]} x {shape[1]}: {times}", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--items", type=int, default=1000000)
    options.add_argument("--columns", type=int, default=50)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--correlation", action="store_true", help="also pandas' corr, which is slow")
    options.add_argument("--devices", help="time covariances by these devices")
    given = options.parse_args()

    import numpy as np

    try:
        import quern
    except ImportError as missing:
        print(f"SKIPPED: {missing}; pip install . in the source tree")
        return

    random = np.random.default_rng(1)
    if given.devices:
        return pairs(given, random, np, quern)
    import pandas

    values = random.normal(3, 2, (given.items, given.columns)).astype(np.float32)
    print(f"copy of {values.nbytes / 1e6:.0f} MB: {seconds(values.copy, given.rounds):.3f} s")
    print(f"{'':24}{'pandas':>10}{'make':>10}{'quern':>10}{'1 thread':>10}{'times':>8}{'with':>8}")
    for kind in (np.float32, np.float64):
        frame = pandas.DataFrame(values.astype(kind))
        wanted = frame.astype(np.float64).describe().loc["std"].to_numpy()
        data = quern.Data(frame)
        np.testing.assert_allclose(data.describe()["deviation"], wanted, rtol=1e-5)
        make = seconds(lambda: quern.Data(frame), given.rounds)
        jobs = {"describe": (frame.describe, {})}
        if given.correlation:
            jobs["corr"] = (frame.corr, {"correlation": True})
        for name, (theirs, more) in jobs.items():
            peer = seconds(theirs, given.rounds)
            ours, alone = (seconds(lambda: data.describe(threads=n, **more), given.rounds)
                           for n in (0, 1))
            print(f"{name + ' ' + np.dtype(kind).name:24}{peer:10.3f}{make:10.3f}{ours:10.3f}"
                  f"{alone:10.3f}{peer / ours:8.1f}{peer / (ours + make):8.1f}", flush=True)


if __name__ == "__main__":
    main()
