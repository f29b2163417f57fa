"""Speed, for gpu_check.py: training of each network, beside PyTorch where it is installed, the products,
and what nvidia-smi tells of clocks, power and memory meanwhile."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading

import gpu_check_data as data
import networks
from gpu_check_run import KILLED, ROOT, StepEnds

BATCH = 1024
FIRST_ITEMS = 256
MOMENT = 15  # seconds; where four epochs of so few items take longer, the first one is the measurement
# Dense networks of bench/gpu_train.py: hidden layers and the rate.
DENSE = {"784-500-10": ([500], 0.1), "784-4096-4096-10": ([4096, 4096], 0.01)}
FIELDS = ["clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "memory.used", "utilization.gpu"]


class Watch:
    """Samples of nvidia-smi, twice a second, while a block runs: least and most of each field."""

    def __init__(self, check, what):
        self.check, self.what, self.child, self.lines = check, what, None, []

    def __enter__(self):
        if shutil.which("nvidia-smi"):
            self.child = subprocess.Popen(
                ["nvidia-smi", f"--query-gpu=index,{','.join(FIELDS)}", "--format=csv,noheader,nounits", "-lms", "500"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                start_new_session=True)
            self.reader = threading.Thread(target=lambda: self.lines.extend(self.child.stdout), daemon=True)
            self.reader.start()
        return self

    def __exit__(self, *_):
        if not self.child:
            return
        self.check.processes.kill(self.child)
        self.reader.join(KILLED)
        found = {}
        for line in self.lines:
            index, *values = (word.strip() for word in line.split(","))
            for name, value in zip(FIELDS, values):
                if re.fullmatch(r"\d+(\.\d+)?", value):
                    found.setdefault(index, {}).setdefault(name, []).append(float(value))
        for index, fields in sorted(found.items()):
            self.check.measured(f"GPU {index} during {self.what}", ", ".join(
                f"{name} {min(values):g} to {max(values):g}" for name, values in fields.items()))


def model_of(hidden):
    return "; ".join([f"dense {units} tanh" for units in hidden] + ["dense 10 softmax"])


def cases(quick):
    """(name, model text, shape, learning rate)"""
    found = [(name, model_of(hidden), (1, 28, 28), rate) for name, (hidden, rate) in DENSE.items()]
    found += [(name, text, networks.SHAPES[kind], rate) for name, (text, kind, rate) in networks.NETWORKS.items()]
    return found[:1] if quick else found


def images(check, shape, items):
    name = f"{'x'.join(map(str, shape))}-{items}"
    files = [check.folder / f"{name}.{part}" for part in ("images", "labels")]
    if not files[1].exists():
        data.idx_images(*files, shape, items)
    return files


def quern(check, case, arith, items, epochs, devices, batch=BATCH):
    name, text, shape, rate = case
    pictures, labels = images(check, shape, items)
    model = check.folder / "speed.model"
    done = check.quern("train", "--data", pictures, "--labels", labels, "--scale", "fraction", "--shape",
                       "x".join(map(str, shape)), "--model", text, "--loss", "cross-entropy", "--batch", min(batch, items),
                       "--lr", rate, "--momentum", 0.9, "--epochs", epochs, "--seed", 1, "--arith", arith, "--devices", devices,
                       "--json", "-o", model, what=f"{name} {arith}")
    if not check.works(done, f"training of {name} in {arith} on {devices}"):
        return None
    rows = done.rows()
    end = next(row for row in rows if row["event"] == "end")
    rates = [row["items_per_s"] for row in rows if row["event"] == "epoch"]
    return end["digest"], rates, end["workers"][0]


def train_one(check, case, arith):
    """The same model as the processor's with few items; then as many as take a moment."""
    name, items = case[0], 64 if check.quick else FIRST_ITEMS
    found = [quern(check, case, arith, items, 1, devices) for devices in ("cpu", check.device)]
    if None in found:
        return
    if found[0][0] != found[1][0]:
        check.fault(f"training of {name} in {arith}: another model than the processor's")
        return
    check.passes()
    rate = found[1][1][-1]
    if check.quick or 4 * FIRST_ITEMS / rate > MOMENT:
        check.measured(f"training of {name}, {arith}, its first {items} items", f"{rate:,.1f} items/s")
        return
    # Four epochs, of which the first one does not count.
    items = max(FIRST_ITEMS, min(16384, int(rate * MOMENT / 4) // BATCH * BATCH))
    with Watch(check, f"{name} {arith}"):
        found = quern(check, case, arith, items, 4, check.device)
    if not found:
        return
    rate, joules = max(found[1][1:]), found[2]["joules"]
    energy = f", {joules / (4 * items) * 1000:.3f} mJ an item" if joules else ""
    check.measured(f"training of {name}, {arith}, batch {min(BATCH, items)}", f"{rate:,.0f} items/s{energy}")
    if arith == "f32" and check.device.startswith("cuda"):
        torch(check, case, items)


def torch(check, case, items):
    """PyTorch on the same GPU, where the Python that runs this has it."""
    if not all(importlib.util.find_spec(package) for package in ("torch", "numpy")):
        return
    name, text, shape, rate = case
    pictures, labels = images(check, shape, items)
    dense = name in DENSE
    script = ROOT / "bench" / "peers" / ("torch_mlp.py" if dense else "torch_cnn.py")
    own = ["--hidden", ",".join(map(str, DENSE[name][0]))] if dense else ["--network", text, "--shape", "x".join(map(str, shape))]
    for products in ("float32", "tf32"):
        done = check.run(sys.executable, script, "train", "--images", pictures, "--labels", labels, "--batch", min(BATCH, items),
                         "--epochs", 3, "--rate", rate, "--device", "cuda", "--products", products, "--threads",
                         os.cpu_count() or 1, *own, what=f"PyTorch, {name}")
        row = next(iter(done.rows()), {"skip": done.how_it_ended() if done.status else "no result"})
        told = row.get("skip") or f"{row['items_per_s']:,.0f} items/s ({row['version']})"
        check.measured(f"PyTorch on the first CUDA device, {name}, {products}", told)


def training(check):
    """One training of each network; a fault of one does not end the others."""
    jobs = [(case, arith) for arith in ("f32", "i14") for case in cases(check.quick)]
    if check.device.startswith("cuda") and not importlib.util.find_spec("torch"):
        check.note(f"PyTorch is not installed for {os.path.basename(sys.executable)}, so nothing was measured beside it")
    check.each(jobs[:1] if check.quick else jobs, lambda job: train_one(check, *job))


def products(check):
    """bench/gpu_matmul: each variant of the products, verified by bits, beside cuBLAS."""
    program = ROOT / "build" / "bench" / "gpu_matmul"
    if not os.access(program, os.X_OK):
        check.note("bench/gpu_matmul was not built")
        return
    if check.quick:
        products_of(check, program, "70", "--arith", "f32", "--seconds", "0")
        return
    with Watch(check, "products"):
        for size in ("1024", "4096"):
            products_of(check, program, size, "--seconds", "0.02")


def products_of(check, program, size, *more):
    done = check.run(program, check.device, size, *more, "--products", "forward,errors,gradient", limit=float("inf"),
                     partly=True, what="gpu_matmul")
    for line in done.out.splitlines():
        if re.search(r"\b(bits verified|near)\b", line):
            check.passes()
    if done.out.strip():
        check.measured("gpu_matmul", "\n" + "\n".join(f"    {line}" for line in done.out.splitlines()))
    if done.left_out:
        raise StepEnds(done.left_out, f"from a product of {size} on")
    check.works(done, "gpu_matmul")


def memory_used():
    """MiB of all GPUs by nvidia-smi, or None."""
    if not shutil.which("nvidia-smi"):
        return None
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, timeout=20)
        return [int(line) for line in done.stdout.split()]
    except (ValueError, subprocess.TimeoutExpired):
        return None

