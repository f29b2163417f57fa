"""Reading a Parquet or Arrow file of 60,000 x 785 whole numbers, as pandas would write MNIST.

    QUERN_LIBRARY=libquern.so PYTHONPATH=python python bench/read_table.py --threads 2

Quern's time is quern.open: values as bytes in rows, labels, and the digest. pyarrow's is read_table
and a copy of each column into an array of bytes in rows, the least that training needs. Both run in
one process in turns, after one round that does not count. The files are in the page cache. The
values are compared first.
"""

import argparse
import os
import pathlib
import statistics
import tempfile
import time

import numpy as np

ITEMS, FEATURES = 60_000, 784


def write(folder, values, labels):
    """The files by name."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table([pa.array(labels)] + [pa.array(values[:, i].astype("i8")) for i in range(FEATURES)],
                     names=["label"] + [f"pixel{i}" for i in range(FEATURES)])
    paths = {}
    for codec in "snappy", "zstd":
        paths[f"Parquet, {codec}"] = folder / f"{codec}.parquet"
        parquet.write_table(table, paths[f"Parquet, {codec}"], compression=codec)
    paths["Arrow IPC, LZ4"] = folder / "table.arrow"
    with pa.ipc.new_file(paths["Arrow IPC, LZ4"], table.schema,
                         options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return paths


def by_pyarrow(path):
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
    values = np.empty((table.num_rows, FEATURES), np.uint8)
    for i in range(FEATURES):
        values[:, i] = table.column(i + 1).to_numpy()
    return values, table.column(0).to_numpy()


def by_quern(path, threads):
    import quern

    data = quern.open(str(path), label="label", threads=threads)
    return data.values, data.labels, data


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])
    import pyarrow as pa

    pa.set_cpu_count(given.threads)
    pa.set_io_thread_count(given.threads)
    random = np.random.default_rng(1)
    ink = random.integers(0, 256, (ITEMS, FEATURES)) * (random.random((ITEMS, FEATURES)) < 0.19)
    values, labels = ink.astype(np.uint8), random.integers(0, 10, ITEMS)
    with tempfile.TemporaryDirectory() as folder:
        for name, path in write(pathlib.Path(folder), values, labels).items():
            times = {"quern": [], "pyarrow": []}
            for contender in (lambda: by_quern(path, given.threads)[:2]), (lambda: by_pyarrow(path)):
                read, known = contender()
                assert np.array_equal(read, values) and np.array_equal(known, labels)
            for _ in range(given.rounds):
                for who, read in (("quern", lambda: by_quern(path, given.threads)), ("pyarrow", lambda: by_pyarrow(path))):
                    start = time.perf_counter()
                    read()
                    times[who].append(time.perf_counter() - start)
            told = ", ".join(f"{who} {statistics.median(t):.3f} s" for who, t in times.items())
            ratio = statistics.median(times["pyarrow"]) / statistics.median(times["quern"])
            print(f"{name:16} {path.stat().st_size / 1e6:6.1f} MB   {told}   {ratio:.2f} times", flush=True)


if __name__ == "__main__":
    main()
