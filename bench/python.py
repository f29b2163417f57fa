"""The Python package: fit beside scikit-learn's MLPClassifier, and what it adds to the command.

    pip install . scikit-learn
    python bench/python.py --rounds 3

Both train the network 784-500-10 with tanh on MNIST at batch 128 with the same rate and momentum,
from the same float32 array. `train` is the same training by quern.train and by `quern train`, which
take turns: the seconds of the whole call and of the whole process, from the files to the model's
file. `small` is Classifier.fit on 100 rows of 4 columns. `import` is what `import quern` adds to the
start of Python, and what it adds with the library and NumPy, which the first use loads; `numpy` is
what NumPy alone adds. `pandas` is quern.Data of 100,000 x 50 float32 values, and says by their
address whether they were copied.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import common

EPOCHS, BATCH, RATE, MOMENTUM = 3, 128, 0.1, 0.9


def seconds(call, rounds):
    """The median time of a call, and what the last one returned."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def fits(files, rounds):
    """Rows of fit on MNIST: who, seconds, accuracy on the test set."""
    import numpy as np
    import quern

    train = quern.open(files["train-images"], labels=files["train-labels"])
    test = quern.open(files["test-images"], labels=files["test-labels"])
    values, labels = train.values.astype(np.float32) / 255, np.array(train.labels)
    others = test.values.astype(np.float32) / 255
    ours = quern.Classifier("dense 500 tanh; dense {classes} softmax", epochs=EPOCHS, batch=BATCH,
                            lr=RATE, optimizer="momentum", options={"momentum": MOMENTUM},
                            scale="none")
    contenders = {"quern.Classifier": ours}
    try:
        from sklearn.neural_network import MLPClassifier

        contenders["MLPClassifier"] = MLPClassifier(
            (500,), activation="tanh", solver="sgd", alpha=0, batch_size=BATCH, momentum=MOMENTUM,
            nesterovs_momentum=False, learning_rate_init=RATE, max_iter=EPOCHS, n_iter_no_change=99)
    except ImportError:
        print("SKIPPED: no scikit-learn here")
    for name, estimator in contenders.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            took, _ = seconds(lambda: estimator.fit(values, labels), rounds)
        yield name, took, np.mean(estimator.predict(others) == test.labels)


def overhead(files, scratch, rounds):
    """Median seconds of whole calls of quern.train and of whole processes of the command."""
    import quern

    options = {"model": common.MODEL, "epochs": EPOCHS, "batch": BATCH, "lr": RATE}
    command = [common.quern_path(), "train", "--data", files["train-images"], "--labels",
               files["train-labels"], "--quiet", "-o", scratch / "m"]
    command += [word for key, value in options.items() for word in (f"--{key}", value)]
    calls, processes = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        model = quern.train(files["train-images"], files["train-labels"], progress=False,
                            output=scratch / "p", **options)
        middle = time.perf_counter()
        subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, check=True)
        processes.append(time.perf_counter() - middle)
        calls.append(middle - start)
    assert quern.load(scratch / "m").digest == model.digest
    return statistics.median(calls), statistics.median(processes)


def small(rounds):
    """Median and least seconds of fit on 100 rows."""
    import numpy as np
    import quern

    values = np.random.default_rng(1).normal(size=(100, 4))
    times = [seconds(lambda: quern.Classifier().fit(values, values[:, 0] > 0), 1)[0]
             for _ in range(max(50 * rounds, 9))]
    return statistics.median(times), min(times)


def starts(rounds):
    """Seconds that an import adds to the start of Python."""
    def took(script):
        return seconds(lambda: subprocess.run([sys.executable, "-c", script], check=True),
                       5 * rounds)[0]

    bare = took("pass")
    return (took("import quern") - bare, took("import quern; quern.digits(1).values") - bare,
            took("import numpy") - bare)


def pandas_table(rounds):
    """Seconds of Data on 100,000 x 50 float32 values by pandas, and whether they were copied."""
    import numpy as np
    import quern

    try:
        import pandas
    except ImportError:
        print("SKIPPED: no pandas here")
        return
    values = np.random.default_rng(1).normal(size=(100_000, 50)).astype(np.float32)
    names = [f"c{k}" for k in range(50)]
    by_items = pandas.DataFrame(values, columns=names, copy=False)
    by_columns = pandas.DataFrame({name: values[:, k].copy() for k, name in enumerate(names)})
    for what, frame in (("lie together", by_items), ("by columns", by_columns)):
        took, data = seconds(lambda frame=frame: quern.Data(frame), rounds)
        place = data.values.ctypes.data
        yield what, took, "not copied" if place == values.ctypes.data else "copied"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="turns that each measurement gets")
    chosen = parser.parse_args()
    try:
        import quern
    except ImportError:
        print("SKIPPED: no quern here; pip install . in the source tree")
        return
    print(f"quern {quern.version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        files, which = common.data(scratch)
        print(which)
        for name, took, right in fits(files, chosen.rounds):
            print(f"fit    {name:18} {took:7.2f} s  {100 * right:.2f} % right")
        if common.quern_version():
            call, process = overhead(files, scratch, chosen.rounds)
            print(f"train  quern.train {call:.3f} s, the command {process:.3f} s: "
                  f"{100 * (call / process - 1):+.1f} %")
    median, least = small(chosen.rounds)
    print(f"small  {1000 * median:.2f} ms, at least {1000 * least:.2f} ms")
    bare, whole, numpy = starts(chosen.rounds)
    print(f"import {1000 * bare:.1f} ms, with the library and NumPy {1000 * whole:.1f} ms; numpy "
          f"{1000 * numpy:.1f} ms")
    for what, took, copied in pandas_table(chosen.rounds):
        print(f"pandas {what:13} {1000 * took:7.1f} ms  {copied}")


if __name__ == "__main__":
    sys.exit(main())
