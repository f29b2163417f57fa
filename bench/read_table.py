"""Reading a CSV, Parquet or Arrow file of 60,000 x 785 whole numbers, as pandas would write MNIST.

    QUERN_LIBRARY=libquern.so PYTHONPATH=python python bench/read_table.py --threads 2

Quern's time is quern.open: values as bytes in rows, labels, and the digest. Of a CSV file it is
measured twice: of the text (no_cache), and of the table in the cache. A peer's time of a CSV file is
that of its own table in memory: read_csv of pandas and pyarrow, CREATE TABLE of DuckDB. Of the other
files it is that of read_table, or of fetchnumpy in DuckDB, and of a copy of each column into an array
of bytes in rows, the least that training needs. All run in one process in turns, after one round that
does not count. The files are in the page cache. The values are compared first. A peer that is not
installed is left out.
"""

import argparse
import importlib.util
import os
import pathlib
import statistics
import tempfile
import time

import numpy as np

ITEMS, FEATURES = 60_000, 784
DUCKDB = None  # a connection


NAMES = ["label"] + [f"pixel{i}" for i in range(FEATURES)]


def write(folder, values, labels):
    """The files by name."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    table = pa.table([pa.array(labels)] + [pa.array(values[:, i].astype("i8")) for i in range(FEATURES)],
                     names=NAMES)
    paths = {"CSV": folder / "table.csv"}
    csv.write_csv(table, paths["CSV"], csv.WriteOptions(quoting_header="none"))
    for codec in "snappy", "zstd":
        paths[f"Parquet, {codec}"] = folder / f"{codec}.parquet"
        parquet.write_table(table, paths[f"Parquet, {codec}"], compression=codec)
    paths["Arrow IPC, LZ4"] = folder / "table.arrow"
    with pa.ipc.new_file(paths["Arrow IPC, LZ4"], table.schema,
                         options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return paths


def in_rows(column_of):
    """Values and labels of a table, of which column_of(name) is an array."""
    values = np.empty((ITEMS, FEATURES), np.uint8)
    for i, name in enumerate(NAMES[1:]):
        values[:, i] = column_of(name)
    return values, column_of("label")


def by_pyarrow(path):
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
    return in_rows(lambda name: table.column(name).to_numpy())


def by_duckdb(path):
    columns = DUCKDB.sql(f"SELECT * FROM '{path}'").fetchnumpy()
    return in_rows(columns.__getitem__)


def text_by_pandas(path):
    import pandas

    return pandas.read_csv(path)


def text_by_pyarrow(path):
    from pyarrow import csv

    return csv.read_csv(path)


def text_by_duckdb(path):
    DUCKDB.execute(f"CREATE OR REPLACE TEMP TABLE made AS SELECT * FROM read_csv('{path}')")


def by_quern(path, threads, **more):
    import quern

    data = quern.open(str(path), label="label", threads=threads, **more)
    return data.values, data.labels, data


def contenders_for(path, threads):
    """(name, what is timed, what values and labels are made of its result) of each."""
    def whole(read):
        return read[0], read[1]

    if path.suffix != ".csv":
        found = [("quern", lambda: by_quern(path, threads), whole), ("pyarrow", lambda: by_pyarrow(path), whole)]
        if DUCKDB and path.suffix == ".parquet":
            found.append(("duckdb", lambda: by_duckdb(path), whole))
        return found
    found = [("quern", lambda: by_quern(path, threads, no_cache=True), whole),
             ("quern from the cache", lambda: by_quern(path, threads), whole),
             ("pyarrow", lambda: text_by_pyarrow(path), lambda table: in_rows(lambda k: table.column(k).to_numpy()))]
    if importlib.util.find_spec("pandas"):
        found.append(("pandas", lambda: text_by_pandas(path), lambda frame: in_rows(lambda k: frame[k].to_numpy())))
    if DUCKDB:
        found.append(("duckdb", lambda: text_by_duckdb(path),
                      lambda _: in_rows(DUCKDB.sql("SELECT * FROM made").fetchnumpy().__getitem__)))
    return found


def measure(path, values, labels, threads, rounds):
    """Median seconds of each contender."""
    contenders = contenders_for(path, threads)
    times = {name: [] for name, _, _ in contenders}
    for _, read, taken in contenders:
        read, known = taken(read())
        assert np.array_equal(read, values) and np.array_equal(known, labels)
        del read, known
    for _ in range(rounds):
        for name, read, _ in contenders:
            start = time.perf_counter()
            read()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in times.items()}


def main():
    global DUCKDB
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])
    try:
        import pyarrow as pa
        import quern  # noqa: F401
    except ImportError as missing:
        print(f"SKIPPED: {missing}; bench/README.md says what this needs")
        return

    pa.set_cpu_count(given.threads)
    pa.set_io_thread_count(given.threads)
    if importlib.util.find_spec("duckdb"):
        import duckdb

        DUCKDB = duckdb.connect(config={"threads": given.threads})
    random = np.random.default_rng(1)
    ink = random.integers(0, 256, (ITEMS, FEATURES)) * (random.random((ITEMS, FEATURES)) < 0.19)
    values, labels = ink.astype(np.uint8), random.integers(0, 10, ITEMS)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["QUERN_CACHE"] = f"{folder}/cache"
        paths = write(pathlib.Path(folder), values, labels)
        time.sleep(2.1)  # a file that was changed just now is not cached
        for name, path in paths.items():
            times = measure(path, values, labels, given.threads, given.rounds)
            told = ", ".join(f"{who} {seconds:.3f} s ({seconds / times['quern']:.2f})" for who, seconds in times.items())
            print(f"{name:16} {path.stat().st_size / 1e6:6.1f} MB   {told}", flush=True)


if __name__ == "__main__":
    main()
