"""The steps of gpu_check.py: each compares a device with the processor, or measures it."""

import hashlib
import os
import platform
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import device_kernels
import gpu_check_data as data
import gpu_check_speed as speed
import recipes
from gpu_check_run import ROOT, StepEnds

TOGETHER = max(1, min(6, (os.cpu_count() or 2) // 2))  # commands at the same time that wait for the device
# One recipe for each kind of program that a device compiles: an arithmetic, without and with pixels.
PROGRAMS = ["tanh-mse-sgd", "pixels-maxpool-first", "batchnorm-grain-1", "groupnorm-first", "residual-dense",
            "i7-one-layer", "i14-batch-50-grain-7", "i21-one-layer", "pixels-i7-standard", "pixels-i14-features",
            "pixels-i21-grain-7", "groups-first"]
BESIDE = ["dropout", "adamw", "batch-50-grain-7", "i14-batch-50-grain-7", "pixels-dropout", "batchnorm-dense"]


def kind_of(check):
    return check.device.partition(":")[0]


def words_of(name, files):
    return [word.format(**files) for word in shlex.split(recipes.RECIPES[name])]


def small_training(check):
    """What a device is measured by: a second or two, most of it to begin, and 0.6 G operations."""
    return [check.program, "train", "--data", check.files["images"], "--labels", check.files["labels"], "--model",
            "dense 512 tanh; dense 10 softmax", "--lr", "0.1", "--batch", "50", "--epochs", "1", "--devices", check.device,
            "--device-timeout", f"{max(1, check.base_limit / 3):g}", "--quiet", "-o", check.folder / "small.model"]


def waiting(check):
    """After so many seconds Quern itself gives a silent device up, before the command's limit."""
    return ["--device-timeout", f"{max(1, check.limit / 3):g}"]


# ---------------------------------------------------------------- the machine

FIELDS = ("name driver_version vbios_version pstate compute_mode mig.mode.current ecc.mode.current "
          "persistence_mode memory.total memory.used utilization.gpu temperature.gpu power.draw power.limit "
          "clocks.sm clocks.mem clocks.max.sm clocks.max.mem pcie.link.gen.current pcie.link.width.current").split()


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def system():
    try:
        with open("/etc/os-release") as file:
            return re.search(r'^PRETTY_NAME="?([^"\n]*)', file.read(), re.M)[1]
    except (OSError, TypeError):
        return platform.system()


def release():
    """Without what somebody who has built a kernel calls it."""
    return re.match(r"[\d.]*", platform.release())[0]


def machine(check):
    """What this machine is, without what names it."""
    facts = check.facts
    version = check.quern("version", limit=30)
    if check.works(version, "quern version"):
        check.passes()
        facts.append(("quern", "; ".join(line for line in version.out.splitlines()
                                         if re.match(r"quern|exact|compiler|flags|build|optional", line))))
    facts += [("source", source()), ("processor", f"{processor()}, {os.cpu_count()} cores"),
              ("memory", f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"),
              ("system", f"{system()}, kernel {release()}, Python {platform.python_version()}"),
              ("load", " ".join(f"{one:.1f}" for one in os.getloadavg()))]
    for row in check.devices:
        facts.append((f"device {row['id']}", "; ".join(filter(None, [
            row["name"], row["platform"], row["driver"], f"{row['cores']} units", f"{row['memory'] / 2**30:.1f} GiB",
            "automatic" if row["automatic"] else "", row["reason"]]))))
    facts += [(f"no {kind}", reason) for kind, reason in check.absent.items()]
    seen = [v for v in os.environ if v.startswith(("QUERN_", "QN_", "CUDA_", "NVIDIA_", "POCL_", "OCL_", "HIP_", "ROCR_"))]
    facts.append(("variables that are set", " ".join(sorted(seen)) or "none"))
    if shutil.which("nvidia-smi"):
        facts.extend(nvidia_smi(check))
    else:
        facts.append(("nvidia-smi", "not there: no clocks, temperature and power"))


def source():
    """The commit, if git tells; nothing of a branch's name."""
    try:
        done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True,
                              timeout=20) if shutil.which("git") else None
    except subprocess.TimeoutExpired:
        done = None
    return f"commit {done.stdout.strip()}" if done and done.returncode == 0 else "no commit known"


def nvidia_smi(check):
    """Each field by itself where the driver does not know one of them."""
    for fields in [FIELDS], [[one] for one in FIELDS]:
        found = []
        for some in fields:
            done = check.run("nvidia-smi", f"--query-gpu={','.join(some)}", "--format=csv,noheader", limit=20)
            for i, line in enumerate(done.out.splitlines() if done.status == 0 else []):
                found += [(f"nvidia-smi {i}: {name}", value.strip()) for name, value in zip(some, line.split(","))]
        if found:
            return found
    return [("nvidia-smi", "it does not answer")]


# ---------------------------------------------------------------- self-tests and programs

def selftests(check):
    """Opens the device with every kind of integer instructions: each compiles and tests its kernels."""
    kinds = ["auto"] + (["dp4a"] if kind_of(check) == "cuda" else []) + ["plain"]

    def open_with(kind):
        what = f"self-test with --gpu-isa {kind}"
        done = check.quern("devices", "--devices", check.device, "--json", "--gpu-isa", kind, limit=4 * check.limit,
                           what=what)
        if not check.works(done, what):
            return
        for row in done.rows():
            if row.get("id") == check.device and row["event"] == "device":
                if row["refused"]:
                    check.fault(f"{what}: the device is refused: {row['reason']}")
                elif row["matmul_flop_per_s"] is None:
                    check.fault(f"{what}: the device was not measured: {row['reason']}")
                else:
                    check.passes()
                    if kind == "auto":
                        check.measured("opened and compiled in", f"{done.seconds:.1f} s")
            elif row["event"] == "note":
                check.note(f"{what}: {row.get('text', row)}")

    check.each(kinds, open_with, TOGETHER)
    done = check.quern("devices", "--devices", check.device, "--json", limit=4 * check.limit)
    for row in done.rows():
        if row.get("id") == check.device and row["event"] == "device" and not row["refused"]:
            for key, unit in (("matmul_flop_per_s", "flop/s"), ("matmul_i7_op_per_s", "op/s"), ("matmul_i14_op_per_s", "op/s"),
                              ("matmul_i21_op_per_s", "op/s"), ("tanh_per_s", "values/s"), ("copy_bytes_per_s", "bytes/s")):
                if row[key]:
                    check.measured(key, f"{row[key]:.4g} {unit}")
            check.measured("integers by", row["integers_by"])


def programs(check):
    """Compiles the programs of all arithmetics and layers side by side, for the steps that follow."""
    def one(name):
        done = check.quern("train", *words_of(name, check.files), "--devices", check.device, *waiting(check), "--quiet",
                           "-o", check.folder / f"program-{name}.model", limit=4 * check.limit, what=name)
        if check.works(done, f"{name}: its program"):
            check.passes()

    check.each(PROGRAMS[:2] if check.quick else PROGRAMS, one, TOGETHER)


# ---------------------------------------------------------------- kernels and conformance

def suite(check, target, cases, tests):
    """A C test program for this device; what it says of a failure is in the fault. Its tests share the
    time of the step, but for some of it: the last case of each begins in time and may end later."""
    program = ROOT / "build" / "tests" / target
    if not os.access(program, os.X_OK):
        check.note(f"{target} was not built")
        return
    seconds = max(1, int(0.7 * check.left() / tests))
    # It tells a device that hangs by itself; a slow one is ended by the time of the step.
    done = check.run(program, limit=float("inf"), partly=True, what=target, more={
        "QN_TEST_DEVICE": check.device, "QN_TEST_CASES": str(cases), "QN_TEST_SECONDS": str(seconds),
        "QN_TEST_TIMEOUT": str(max(1, int(check.limit / 3)))})
    text = done.out + done.err
    wrong = sorted(set(re.findall(r"^KERNEL (\w+) (is wrong|failed): (.*)", text, re.M)))
    for name, what, how in wrong[:20]:
        check.fault(f"kernel {name} {what}: {how}")
    passed = len(re.findall(r"^\[ +OK +\]", text, re.M)) + len(re.findall(r"^kernel \w+: \d+ launches, 0 wrong", text, re.M))
    check.passes(passed)
    for line in re.findall(r"^ *(SKIPPED: .*)", text, re.M):
        check.note(f"{target}: {line}")
    failed = re.findall(r"^\[ +FAILED +\] (?!\d+ test)(\w+)", text, re.M)
    failed = [name for name in failed if name != "GROUP"]  # the end of a suite with wrong kernels
    if failed:
        check.fault(f"{target}: {', '.join(dict.fromkeys(failed))}", "\n".join(reasons(text)))
    if done.left_out:
        begun = re.findall(r"^\[ RUN +\] (\w+)", text, re.M)
        raise StepEnds(done.left_out, f"from {begun[-1] if begun else 'its beginning'} on")
    if done.status != 0 and not wrong and not failed:
        check.fault(f"{target}: {done.how_it_ended()}", done.last_lines())


def reasons(text):
    """The lines in which a test program says why it fails."""
    lines = [line for line in text.splitlines() if re.search(r"differs first|expected|case:|error", line, re.I)]
    return [line[:600] for line in lines[:8]]


def kernels(check):
    """Each kernel of a training beside the same text compiled as C, launch by launch."""
    suite(check, "tests.gpu_kernels", 3 if check.quick else 400, 1)


def conformance(check):
    suite(check, "device.conformance", 1 if check.quick else 100, 10)


# ---------------------------------------------------------------- recipes

def usable(name):
    """Recipes of compressed files need a build with zlib."""
    return "_gz}" not in recipes.RECIPES[name] or "zlib" in usable.features


usable.features = ""


def train(check, name, model, devices, *more):
    return check.quern("train", *words_of(name, check.files), "--devices", devices, *waiting(check), *more, "--json",
                       "-o", model, what=name)


def compare_recipe(check, name, devices, *more):
    """A fault says whether the wrong model comes again, and whether the processor is right."""
    want, model = recipes.table()[name], check.folder / f"{name}-{devices.replace(',', '+')}.model"
    what = f"recipe {name}" + (f" with --devices {devices}" if devices != check.device else "")
    done = train(check, name, model, devices, *more)
    if not check.works(done, what):
        return
    workers = [worker for row in done.rows() if row["event"] == "end" for worker in row["workers"]]
    for worker in workers:
        if worker["lost"]:
            check.fault(f"{what}: {worker['name']} was lost on the way: {worker['note']}", done.last_lines())
            return
    got = recipes.sha256(model)
    model.unlink()
    if got == want:
        check.passes()
        return
    again, own = (recipes.sha256(model) if train(check, name, model, which, *some).status == 0 else "no model"
                  for which, some in ((devices, more), ("cpu", [])))
    repeated = "the same again" if again == got else f"another one again ({again[:12]}), so the error is not always the same"
    check.fault(f"{what} has another model: {got[:12]} instead of {want[:12]}; {repeated}; the processor "
                f"{'is right' if own == want else f'is WRONG too ({own[:12]})'}")


def all_recipes(check):
    names = [name for name in recipes.RECIPES if usable(name)]
    if left := [name for name in recipes.RECIPES if not usable(name)]:
        check.note(f"built without zlib, so not trained: {', '.join(left)}")
    # In an order of its own, so that what a short time reaches is of every kind.
    random.Random(1).shuffle(names)
    if check.quick:
        names = ["tanh-mse-sgd", "adamw", "i14-batch-50-grain-7"]
    check.each(names, lambda name: compare_recipe(check, name, check.device), TOGETHER)


def beside(check):
    """Steps that the device shares with the processor, and with the machine's other GPUs."""
    jobs = [(name, f"cpu,{check.device}", "--shares", shares) for name in (BESIDE[:1] if check.quick else BESIDE)
            for shares in ("3,2", "1,5")[:1 if check.quick else 2]]
    others = [row["id"] for row in check.devices if row["automatic"] and row["kind"] == kind_of(check) and not row["refused"]]
    if len(others) > 1:
        jobs += [(name, ",".join(others)) for name in BESIDE]
    check.each(jobs, lambda job: compare_recipe(check, *job), TOGETHER)


# ---------------------------------------------------------------- kernels of users

ARRAYS = re.compile(r"\b(?:OUTPUT|SCAN)\(\w+, (\w+)|\b(?:SUM|MIN|MAX|ARGMIN|ARGMAX)\(\w+, (\w+), \d+\)|"
                    r"\bCOUNT\((\w+), \d+\)")


def outputs(text):
    """An --out for each array that the kernel writes."""
    names = ["".join(found) for found in ARRAYS.findall(text)]
    return [word for name in names for word in ("--out", f"{name}=o-{name}.npy")]


def inputs(**files):
    return [word for name, file in files.items() for word in ("--in", f"{name}={file}.npy")]


def example(name):
    return (ROOT / "examples" / "kernels" / f"{name}.c").read_text()


def user_cases(quick):
    """(name, text, words)"""
    found = [
        ("every declaration and function", device_kernels.MANY,
         [*inputs(x0="x", x1="x", f="f", b="b", n="n", m="m", w="w"), "--seed", 5, "--set", "half=0.3"]),
        ("bins and running sums", device_kernels.BINS, inputs(n="n1", f="f1")),
        ("whole array and sum", device_kernels.SMALL, [*inputs(w="s"), "--shape", 300_000]),
        ("iterations in one dimension", device_kernels.heat("x", "wrap", [(-1,), (1,)]),
         [*inputs(u="u1d", q="q1d"), "--iterations", 200, "--series", "heat=o-series.npy"]),
        ("iterations in two dimensions", device_kernels.heat("y, x", "nearest", [(-1, 1), (1, 0)]),
         [*inputs(u="u2d", q="q2d"), "--iterations", 50]),
        ("iterations in three dimensions", device_kernels.heat("z, y, x", "zero", [(0, -1, 1), (1, 0, -1)]),
         [*inputs(u="u3d", q="q3d"), "--iterations", 50]),
        ("mandelbrot", example("mandelbrot"), ["--shape", "240x320"]),
        ("black_scholes", example("black_scholes"), inputs(price="price", strike="strike", years="years")),
        ("asian_option", example("asian_option"), ["--shape", 20000]),
        ("path_tracer", example("path_tracer"), ["--shape", "30x40", "--set", "samples=4"]),
        ("galaxies", example("galaxies"), ["--shape", 2000]),
        ("nbody", example("nbody"), [*inputs(x="bx", y="by", z="bz", mass="mass", vx="bvx", vy="bvy", vz="bvz"),
                                     "--iterations", 5]),
        ("kmeans", example("kmeans"), inputs(x="price", y="strike", centre="centre")),
    ]
    return found[:3] if quick else found


def run_kernel(check, place, text, devices, words, **how):
    """Results and bytes of a kernel in a folder of its own: (Done, what it gave)."""
    folder = check.folder / place
    folder.mkdir(exist_ok=True)
    for file in folder.glob("o-*"):
        file.unlink()
    (folder / "k.c").write_text(text)
    moved = [re.sub(r"=(?=\w+\.npy$)", "=../", w) if i and words[i - 1] == "--in" else w for i, w in enumerate(words)]
    done = check.quern("run", "--kernel", "k.c", "--devices", devices, *moved, *outputs(text), *waiting(check),
                       "--json", folder=folder, **how)
    if done.status != 0 or not done.rows():
        return done, None
    files = {file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in sorted(folder.glob("o-*.npy"))}
    return done, (done.rows()[-1]["results"], files)


def compare_kernel(check, name, text, words):
    place = re.sub(r"\W+", "-", name)
    want = run_kernel(check, place, text, "cpu", words, what=name)
    if not check.works(want[0], f"kernel {name} on the processor"):
        return
    for devices, more in ((check.device, []), (f"cpu:1,{check.device}", ["--grain", 64])):
        what = f"user kernel {name} with --devices {devices}"
        done, got = run_kernel(check, place, text, devices, [*words, *more], what=name)
        if not check.works(done, what):
            return
        if got == want[1]:
            check.passes()
            continue
        differ = [file for file in got[1] if got[1][file] != want[1][1].get(file)] or \
            [key for key in got[0] if got[0][key] != want[1][0].get(key)]
        check.fault(f"{what}: other results than the processor's: {', '.join(differ)}")


def user_kernels(check):
    data.for_kernels(check.folder)
    jobs = [lambda case=case: compare_kernel(check, *case) for case in user_cases(check.quick)]
    jobs += [lambda mode=mode: user_fault(check, mode) for mode in range(1 if check.quick else 7)]
    check.each(jobs, lambda job: job(), TOGETHER)


def user_fault(check, mode):
    """The first faulty item of many, with the processor's words."""
    words = [*inputs(x="y", h="h", w="h"), "--set", f"mode={mode}"]
    said = []
    for devices in ("cpu", check.device):
        done, _ = run_kernel(check, f"faults-{mode}", device_kernels.FAULTS, devices, words)
        said.append((done.status, [row.get("what") for row in done.rows()], done.err))
    if said[0] == said[1] and said[0][0] == 1:
        check.passes()
    else:
        check.fault(f"user kernel with a faulty item ({mode}): other words than the processor's",
                    "\n".join(f"{devices}: {one}" for devices, one in zip(("processor", "device"), said)))


# ---------------------------------------------------------------- statistics

def statistics(check):
    cases = []
    for name, (file, words) in data.tables(check.folder, 2**12 + 60 if check.quick else 2**14 + 300).items():
        pairs = [] if name == "classes" else [["--correlation"]]
        for more in [*pairs, ["--histograms", "--quantiles", "0,0.37,1"]]:
            cases.append((name, file, [*words, *more]))

    def one(case):
        name, file, words = case
        told = [check.quern("data", "stats", file, *words, "--json", "--no-cache", "--devices", devices, *waiting(check),
                            what=name) for devices in ("cpu", check.device, f"cpu:1,{check.device}")]
        for done, devices in zip(told, ("the processor", check.device, f"cpu:1,{check.device}")):
            if not check.works(done, f"statistics of {name} on {devices}"):
                return
        for done in told[1:]:
            if done.out == told[0].out:
                check.passes()
            else:
                check.fault(f"statistics of {name} ({' '.join(words)}): other numbers than the processor's")

    check.each(cases[:3] if check.quick else cases, one, TOGETHER)


# ---------------------------------------------------------------- a lost device

LONG_LOOP = """INDEX(i);
SCALAR(int, rounds);
OUTPUT(float, o); SUM(double, all);
KERNEL { float a = (float)i; for (int k = 0; k < rounds; k++) a = a * 0.5f + 1; o = a; all = a; }
"""


def lost(check):
    """A device that is too slow for its time limit counts as lost, and the processor computes its part;
    and what a killed process has begun, another one completes."""
    rounds = 100_000 if check.quick else 30_000_000
    words = ["--shape", 64, "--set", f"rounds={rounds}", "--grain", 4]
    want = run_kernel(check, "lost", LONG_LOOP, "cpu", words)
    if check.works(want[0], "a long kernel on the processor"):
        short = ["--device-timeout", 0.05]
        folder = check.folder / "lost"
        done = check.quern("run", "--kernel", "k.c", "--devices", f"cpu,{kind_of(check)}", *words, *outputs(LONG_LOOP), *short,
                           "--json", folder=folder, what="a lost device")
        if check.works(done, "a device that is lost"):
            got = hashlib.sha256((folder / "o-o.npy").read_bytes()).hexdigest()[:16]
            if {"o-o.npy": got} != want[1][1] or done.rows()[-1]["results"] != want[1][0]:
                check.fault("a device that is lost: other results than the processor's", done.last_lines())
            else:
                check.passes()
                gone = re.search(r"failed|is not used|did not end|hangs", done.err)
                check.measured("a device with a limit of 0.05 s", "was lost, as intended" if gone
                               else "answered in time, so the loss was not tried")
    killed(check)
    done, got = run_kernel(check, "lost", device_kernels.SMALL, check.device,
                           ["--in", "w=s.npy", "--shape", 300_000]) \
        if (check.folder / "s.npy").exists() else (None, None)
    if done and check.works(done, "the device after it was lost, and after a process was killed"):
        check.passes()


def killed(check):
    """kill -9 in the middle of a training, then --resume."""
    # Begun by Popen, since it is to be stopped at an event: its first checkpoint.
    words = [*words_of("adam", check.files), *waiting(check), "--quiet"]
    words[words.index("--epochs") + 1] = "4" if check.quick else "40"
    model, state = check.folder / "killed.model", check.folder / "killed-state"
    want = check.quern("train", *words, "--devices", "cpu", "-o", model)
    if not check.works(want, "a training on the processor"):
        return
    digest = recipes.sha256(model)
    model.unlink()
    resumed = [*words, "--devices", check.device, "--checkpoint", state, "--checkpoint-every", "1", "--resume", "-o", model]
    child = subprocess.Popen([str(w) for w in (check.program, "train", *resumed)], cwd=check.folder, env=check.environment,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             start_new_session=True)
    ends = time.monotonic() + min(check.limit, max(1.0, check.left()))
    while child.poll() is None and not list(state.glob("checkpoint-*")) and time.monotonic() < ends:
        time.sleep(0.005)
    begun = child.poll() is None
    if not check.processes.kill(child):
        check.fault("a training that was killed: not even SIGKILL ended it: the driver holds it")
        return
    done = check.quern("train", *resumed, what="a resumed training")
    if check.works(done, f"a training that goes on after kill -{signal.SIGKILL.value}"):
        if recipes.sha256(model) == digest:
            check.passes()
            check.measured("kill -9 of a training", "in the middle" if begun else "it had ended before")
        else:
            check.fault("a training that goes on after kill -9 has another model")


# ---------------------------------------------------------------- copies

WORK = """INDEX(i);
INPUT(double, x); INPUT(float, f); INPUT(int8_t, b); WHOLE(float, w, 1);
SCALAR(int, rounds);
OUTPUT(double, o);
KERNEL { double a = x; for (int k = 0; k < rounds; k++) a = a * 0.5 + f; o = a + w(0) * b; }
"""


FEW_ITEMS, MANY_ITEMS = 500_000, 16_000_000


def copies(check):
    """Copies go on while the device computes: the bytes are right, and how much time it saves. First with
    few items, which say how long many would take."""
    words = inputs(x="sx", f="sf", b="sb", w="sw")
    data.streamed(check.folder, 150_000 if check.quick else FEW_ITEMS)
    compare_kernel(check, "parts under way", device_kernels.STREAMED, words)
    if check.quick:
        return
    # The processor and the device compute each map, so three times as long is a safe guess.
    expected = {rounds: 3 * MANY_ITEMS / FEW_ITEMS * timed_map(check, words, FEW_ITEMS, rounds) for rounds in (1, 400, 4000)}
    done = [rounds for rounds, seconds in expected.items() if seconds < check.left() / 2]
    if 1 in done:
        data.streamed(check.folder, MANY_ITEMS)
        compare_kernel(check, "parts under way", device_kernels.STREAMED, words)
    for rounds in done:
        timed_map(check, words, MANY_ITEMS, rounds)
    if len(done) < len(expected):
        check.step.left_out.append(f"{MANY_ITEMS:,} items with {', '.join(str(r) for r in expected if r not in done)} rounds")


def timed_map(check, words, count, rounds):
    """The seconds in which the device computes a map, or the processor, whichever takes longer."""
    what, results, rows = f"a map of {count:,} items, {rounds} rounds", [], []
    for devices in ("cpu", check.device, check.device):
        done, got = run_kernel(check, "work", WORK, devices, [*words, "--set", f"rounds={rounds}"], what=what)
        if not check.works(done, f"copies during launches: {what} on {devices}"):
            return float("inf")
        results.append(got)
        rows.append(done.rows()[-1])
    if results[0] == results[1] == results[2]:
        check.passes()
    else:
        check.fault(f"copies during launches: {what}: other bytes than the processor's")
    seconds, worker = rows[-1]["seconds"], rows[-1]["workers"][0]
    moved = worker["bytes_up"] + worker["bytes_down"]
    check.measured(f"map of {count:,} items, {rounds} rounds of fma",
                   f"{seconds:.4f} s (the processor {rows[0]['seconds']:.4f} s), {moved / seconds / 1e9:.2f} GB/s, "
                   f"up {worker['seconds_up']:.4f} s, down {worker['seconds_down']:.4f} s, busy {worker['busy']:.2f}")
    return max(row["seconds"] for row in rows)


STEPS = [  # name, title, seconds at most, what
    ("machine", "the machine", 60, machine),
    ("self-tests", "the device's self-tests", 180, selftests),
    ("programs", "compiling the kernels of all kinds of networks", 150, programs),
    ("kernels", "each kernel beside the same text on the processor", 90, kernels),
    ("recipes", "the recipes of the matrix beside their digests", 200, all_recipes),
    ("beside", "steps shared with the processor and other GPUs", 60, beside),
    ("user", "kernels of users beside the processor", 90, user_kernels),
    ("statistics", "statistics beside the processor", 60, statistics),
    ("lost", "a lost device, a killed process", 60, lost),
    ("copies", "copies during launches", 60, copies),
    ("conformance", "the conformance suite", 150, conformance),
    ("training", "speed of training", 120, speed.training),
    ("products", "speed of the products", 60, speed.products),
]
