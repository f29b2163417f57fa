"""What the benchmarks share: the data, the machine, processes held to their cores, tables.

Nothing here is timed inside Python. A contender is always a process of its own, held to its
cores before it starts, so that no library's threads linger while the next one runs.
"""

import argparse
import csv
import gzip
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
MODEL = "dense 500 tanh; dense 10 softmax"
INPUTS, HIDDEN, CLASSES = 784, 500, 10
# Multiplications and additions of one training step, per item. Forward, and the weights' gradient:
# one product each for both layers. The error reaches back through the second layer only, because
# nobody asks for the images' gradient. Activations and the update are left out.
FIRST, SECOND = 2 * INPUTS * HIDDEN, 2 * HIDDEN * CLASSES
TRAIN_FLOP = 2 * FIRST + 3 * SECOND
PREDICT_FLOP = FIRST + SECOND
# The networks of train.py and gpu_train.py: hidden layers and the learning rate, which belongs to
# batches of 128 and more.
NETWORKS = {"small": ([500], 0.1), "large": ([4096, 4096], 0.01)}
# Libraries size their pools by these where they do not look at the affinity.
POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
MNIST = {
    "train-images": "train-images-idx3-ubyte",
    "train-labels": "train-labels-idx1-ubyte",
    "test-images": "t10k-images-idx3-ubyte",
    "test-labels": "t10k-labels-idx1-ubyte",
}


def flop(hidden):
    """Operations of a training step, per item: nobody asks for the errors of the images."""
    sizes = [INPUTS, *hidden, CLASSES]
    products = [2 * a * b for a, b in zip(sizes, sizes[1:])]
    return 3 * sum(products) - products[0]


def first_flop(hidden):
    """Those of the first layer's products: forward, and its gradient."""
    return 2 * 2 * INPUTS * hidden[0]


def network_of(name, batch):
    """Hidden layers and the learning rate at this batch. Smaller batches have a smaller rate, in
    proportion: at 0.1 and batch 32 the small network stays below 94 % right."""
    hidden, rate = NETWORKS[name]
    return hidden, rate * min(1, batch / 128)


def model_of(hidden):
    """The network as --model takes it."""
    return "; ".join([f"dense {units} tanh" for units in hidden] + ["dense 10 softmax"])


class Failed(Exception):
    """A contender that did not do its work; its time must not count."""


# ---- the data


def data(scratch):
    """Raw IDX files in `scratch` under the keys of MNIST, and a sentence that says which data.

    Unpacked beforehand, because nobody's gzip is to be measured.
    """
    folder = pathlib.Path(os.environ.get("QUERN_MNIST", ROOT.parent / "shared/data/mnist"))
    files = {key: scratch / name for key, name in MNIST.items()}
    sources = {key: folder / (name + ".gz") for key, name in MNIST.items()}
    if all(source.is_file() for source in sources.values()):
        for key, source in sources.items():
            with gzip.open(source) as packed, open(files[key], "wb") as raw:
                shutil.copyfileobj(packed, raw)
        return files, "MNIST, 60,000 and 10,000 images of 28 x 28 bytes"
    for part, items, seed in (("train", 60_000, 1), ("test", 10_000, 2)):
        synthetic(files[f"{part}-images"], files[f"{part}-labels"], items, seed)
    return files, "SYNTHETIC bytes of MNIST's shape (set QUERN_MNIST to the folder with MNIST)"


def fill_zeros(files):
    """Turns every pixel of 0 into 1, for the speed on data that holds no zeros: nearly the same
    images to learn from, but none of their inputs can be left out."""
    for key in ("train-images", "test-images"):
        raw = bytearray(files[key].read_bytes())
        files[key].write_bytes(bytes(raw[:16]) + bytes(raw[16:]).replace(b"\0", b"\1"))


def cut(files, items):
    """The first `items` training images, for a small try-out."""
    for key, head in (("train-images", 16), ("train-labels", 8)):
        raw = files[key].read_bytes()
        size = (len(raw) - head) // int.from_bytes(raw[4:8], "big")
        kept = raw[:4] + items.to_bytes(4, "big") + raw[8 : head + size * items]
        files[key].write_bytes(kept)


def synthetic(images_path, labels_path, items, seed):
    """Ten fixed patterns, of which each image keeps three quarters, under specks.

    Like MNIST mostly zeros and easily learnt, so that a loss that does not fall means a fault.
    """
    import numpy as np

    fixed = np.random.default_rng(0)
    patterns = fixed.integers(1, 256, (CLASSES, INPUTS)) * (fixed.random((CLASSES, INPUTS)) < 0.2)
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, items)
    kept = patterns[labels] * (random.random((items, INPUTS), np.float32) < 0.75)
    specks = random.integers(1, 256, (items, INPUTS), np.uint8)
    specks[random.random((items, INPUTS), np.float32) > 0.05] = 0
    images = np.maximum(kept, specks).astype(np.uint8)
    with open(images_path, "wb") as file:
        file.write(b"\0\0\x08\3" + np.array([items, 28, 28], ">u4").tobytes() + images.tobytes())
    with open(labels_path, "wb") as file:
        file.write(b"\0\0\x08\1" + np.array([items], ">u4").tobytes())
        file.write(labels.astype(np.uint8).tobytes())


# ---- the machine


def allowed_cores():
    """One processor of each physical core that this process may use, in ascending order."""
    seen, cores = set(), []
    for cpu in sorted(os.sched_getaffinity(0)):
        topology = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        siblings = topology.read_text().strip() if topology.is_file() else str(cpu)
        if siblings not in seen:
            seen.add(siblings)
            cores.append(cpu)
    return cores


def hardware():
    """The processor's name, the cores that may be used, and what is known of clock and load."""
    name = platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
            break
    governor = pathlib.Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {
        "processor": name,
        "cores": len(allowed_cores()),
        "governor": governor.read_text().strip() if governor.is_file() else "unknown",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def peak(program, threads, amx=False):
    """The highest measured float32 fma rate in GFLOP/s for each number of threads, or {}; `amx`: of
    products of bytes by AMX.

    The highest sample, not the median: a ceiling is not lowered by what else ran meanwhile.
    """
    if not os.access(program, os.X_OK):
        print(f"SKIPPED: fraction of peak: no {program}; build it with cmake", file=sys.stderr)
        return {}
    text = call([program, "--json", str(max(threads))], max(threads)).stdout
    rates = {}
    for row in json_lines(text):
        if (row["set"] == "amx") == amx:
            rates[row["threads"]] = max(row["highest"], rates.get(row["threads"], 0.0))
    return rates


def training(files, batch, threads, epochs, model, extra=(), network=MODEL, rate=0.1, scale="fraction"):
    """The words of the `quern train` that every benchmark times; `extra` are added to them. Inputs
    are those of peers/peerlib.py, bytes divided by 256, unless `scale` says otherwise."""
    return [
        quern_path(), "train", "--data", files["train-images"], "--labels", files["train-labels"],
        "--scale", scale, "--model", network, "--loss", "cross-entropy", "--batch", batch,
        "--lr", rate, "--momentum", 0.9, "--epochs", epochs, "--seed", 1, "--threads", threads,
        "--json", "-o", model, *extra,
    ]  # fmt: skip


def predicting(files, threads, model, out, part="test"):
    """The words of a `quern predict` over the test or the training images."""
    return [
        quern_path(), "predict", model, "--data", files[f"{part}-images"],
        "--labels", files[f"{part}-labels"], "--threads", threads, "--json", "-o", out,
    ]  # fmt: skip


def quern_path():
    return pathlib.Path(os.environ.get("QUERN", ROOT / "build/quern")).resolve()


def quern_version():
    """What `quern version` prints (its compiler, flags and optional parts) as one line, or None."""
    if not os.access(quern_path(), os.X_OK):
        return None
    told = subprocess.run([quern_path(), "version"], capture_output=True, text=True).stdout
    return "; ".join(told.split("\n")).strip("; ")


# ---- processes


def outputs_of(running, limit):
    """What processes that run side by side print, in their order; all are ended after `limit` seconds.

    Raises Failed where one of them takes longer or fails.
    """
    try:
        told = [process.communicate(timeout=limit) for process in running]
    except subprocess.TimeoutExpired:
        raise Failed(f"no end after {limit} s") from None
    finally:
        for process in running:
            process.kill()
    for process, (out, err) in zip(running, told):
        if process.returncode != 0:
            raise Failed(f"ended with {process.returncode}: {(err or out)[-600:]}")
    return [out for out, _ in told]


def call(command, threads, clock=None):
    """Run a command on exactly `threads` cores. Returns what subprocess.run returns.

    Raises Failed with the end of its messages where it fails. `clock`, a list, gets the wall
    seconds from before the start to after the end.
    """
    cores = allowed_cores()[:threads]
    if len(cores) < threads:
        raise Failed(f"{threads} threads asked for, {len(cores)} cores here")
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    environment.update({name: str(threads) for name in POOLS})
    start = time.perf_counter()
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        env=environment,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    if clock is not None:
        clock.append(time.perf_counter() - start)
    if done.returncode != 0:
        ending = "\n".join((done.stderr or done.stdout).strip().splitlines()[-6:])
        raise Failed(f"'{' '.join(map(str, command))}' ended with {done.returncode}:\n{ending}")
    return done


def json_lines(text):
    """The JSON objects among the lines of a text."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
    return found


def peer(script, verb, threads, clock=None, **options):
    """Run one peer's script; its one JSON line as a dict (with "skip" where it cannot run)."""
    words = [f"--{key}={value}" for key, value in options.items()]
    command = [sys.executable, HERE / "peers" / script, verb, f"--threads={threads}", *words]
    rows = json_lines(call(command, threads, clock).stdout)
    if len(rows) != 1:
        raise Failed(f"{script} printed {len(rows)} results instead of one")
    return rows[0]


PEERS = {
    "jax": "jax_mlp.py",
    "jax-step": "jax_step_mlp.py",
    "torch": "torch_mlp.py",
    "torch-compile": "torch_compile_mlp.py",
    "torch-bf16": "torch_bf16_mlp.py",
    "scikit-learn": "sklearn_mlp.py",
}
# Those that compute on a GPU too, and what only a GPU can do.
GPU_PEERS = {name: PEERS[name] for name in ("jax", "jax-step", "torch", "torch-compile")}
GPU_PEERS["torch-graph"] = "torch_graph_mlp.py"
# The same with TF32 in their products, which rounds operands to 11 bits: only CUDA devices have it.
TF32 = "-tf32"
TF32_PEERS = {name + TF32: script for name, script in GPU_PEERS.items()}


# ---- numbers and tables


def accuracy(classes_path, labels_path):
    """The share of items whose `prediction` column is their label; checks that none is missing."""
    with open(classes_path, newline="", encoding="utf-8") as file:
        classes = [int(row["prediction"]) for row in csv.DictReader(file)]
    labels = pathlib.Path(labels_path).read_bytes()[8:]
    if len(classes) != len(labels):
        raise Failed(f"{classes_path} has {len(classes)} predictions for {len(labels)} items")
    return sum(a == b for a, b in zip(classes, labels)) / len(labels)


def spread(values):
    """Half the distance of the quartiles over the median as text: how noisy a median is."""
    if len(values) < 4:
        return "-"
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{50.0 * (high - low) / middle:.0f} %"


def table(head, rows):
    """A Markdown table whose columns also line up as plain text."""
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def options(description, **defaults):
    """The arguments that every benchmark has; a caller may add its own before parsing."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--threads", type=numbers, default=defaults.get("threads", [1, 2]))
    parser.add_argument(
        "--rounds",
        type=int,
        default=defaults.get("rounds", 3),
        help="turns that every contender gets, one after the other",
    )
    parser.add_argument(
        "--peers",
        type=lambda text: text.split(","),
        default=list(defaults.get("peers", PEERS)),
        help="which peers, of " + ",".join(defaults.get("peers", PEERS)),
    )
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the report here")
    parser.add_argument("--json", type=pathlib.Path, help="also write every number here")
    return parser


def numbers(text):
    return [int(word) for word in text.split(",")]


def contest(names, rounds, turn):
    """{who: row} after so many rounds in turns: `turn(name, rows)` gives a row with the rates `chunks`.

    Who is skipped once, or fails, is not asked again.
    """
    rows = {}
    for _ in range(rounds):
        for name in names:
            if "skip" in rows.get(name, {}):
                continue
            try:
                row = turn(name, rows)
            except Failed as failure:
                row = {"skip": f"FAILED: {failure}"}
            if "skip" in row:
                print(f"SKIPPED: {name}: {row['skip'].splitlines()[-1]}", file=sys.stderr)
            rows[name] = {**row, "chunks": rows.get(name, {}).get("chunks", []) + row.get("chunks", [])}
    return rows


def publish(title, facts, sections, chosen):
    """Print the report; write it as Markdown and every number as JSON where asked to."""
    lines = [f"# {title}", ""]
    lines += [f"- {key.replace('_', ' ')}: {value}" for key, value in facts.items()]
    for heading, text, _ in sections:
        lines += ["", f"## {heading}", "", text]
    report = "\n".join(lines) + "\n"
    print(report, end="")
    if chosen.markdown:
        chosen.markdown.write_text(report)
    if chosen.json:
        everything = {"facts": facts, "results": {name: rows for name, _, rows in sections}}
        chosen.json.write_text(json.dumps(everything, indent=1) + "\n")
