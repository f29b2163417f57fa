#!/usr/bin/env python3
"""Kernels of users beside the same loops in C with OpenMP, Numba and OpenCL, in one run.

    bench/kernel.py [build/quern] [--cases mandelbrot,nbody] [--threads 2] [--rounds 7] [--markdown FILE]

Peers are `gcc -O3 -march=native -fopenmp`, the same with the flag that relaxes arithmetic, Numba
(parallel=True), and each OpenCL device that is a CPU (PoCL, Intel's), as far as they are here: numba
and pyopencl come from PyPI. An OpenCL device has three rows: the loop as OpenCL compiles it, which
fuses products with sums; the loop without that ("no fusing"); and the text that Quern gives it as a
device of Quern's ("Quern's text"), with Quern's own functions, checks and sums.

Inputs are in memory, and the memory of the outputs has been used before: Quern's loop is run by
`build/bench/kernel_job`, which `make bench` builds. With --fresh the outputs of Quern and of gcc are new
memory, as `quern run` has it.

Results are compared first; of kernels without functions of the C library all bits must be equal, but
where the peer relaxes or fuses, and always those of Quern's text. Then all take turns. A time is that
of the loop alone, in Quern with its checks and exact sums; the table has medians, and the least of
all rounds, which other programs of the machine disturb less. The last line is the time of a whole
`quern run` of one item, with its process, from the cache of compiled kernels.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench" / "peers"))
from kernel_cases import CASES  # noqa: E402

RELAXED = "-ff" "ast-math"
C_TYPES = {"float64": "double", "float32": "float", "int64": "long", "int32": "int", "uint8": "uchar"}

MAIN = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define G
typedef unsigned char uchar;
%(item)s
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
static void *take(const char *path, size_t size) {
    char *x = malloc(size);
    FILE *f = fopen(path, "rb");
    if (!f || fread(x, 1, size, f) != size)
        exit(1);
    fclose(f);
    return x;
}
int main(void) {
%(declarations)s
    const double begin = now();
    for (int iteration = 0; iteration < %(iterations)d; iteration++) {
%(carry)s
#pragma omp parallel for schedule(%(schedule)s)
        for (long i = 0; i < %(items)d; i++)
            item(i%(arguments)s);
    }
    printf("%%.9f\n", now() - begin);
%(write)s
    return 0;
}
"""


def number(value):
    return f"{float(value)!r}f" if getattr(value, "dtype", None) == np.float32 else repr(value.item() if hasattr(value, "item")
                                                                                         else value)


def c_program(case, fresh):
    lines, write, carry = [], [], []
    for name, array in case.arrays.items():
        lines.append(f'    {C_TYPES[str(array.dtype)]} *{name} = take("{name}.raw", {array.nbytes});')
    for name, kind in case.outputs.items():
        size = np.dtype(kind).itemsize * case.items
        memory = f"malloc({size})"
        lines.append(f"    {C_TYPES[np.dtype(kind).name]} *{name} = {memory if fresh else f'memset({memory}, 1, {size})'};")
        write.append(f'    FILE *f_{name} = fopen("{name}.out", "wb"); fwrite({name}, 1, {size}, f_{name}); fclose(f_{name});')
    for output, source in case.carried:
        carry.append(f"        if (iteration > 0) {{ void *kept = {output}; {output} = {source}; {source} = kept; }}")
    arguments = [*case.arrays, *map(number, case.scalars.values()), *case.outputs]
    return MAIN % {"item": case.item, "declarations": "\n".join(lines), "iterations": case.iterations, "carry": "\n".join(carry),
                   "schedule": case.schedule, "items": case.items, "arguments": "".join(f", {a}" for a in arguments),
                   "write": "\n".join(write)}


class OpenMP:
    def __init__(self, case, args, folder, *flags):
        self.case, self.folder = case, folder
        self.env = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
        self.program = folder / f"peer{len(flags)}"
        (folder / "peer.c").write_text(c_program(case, args.fresh))
        subprocess.run(["gcc", "-O3", "-march=native", "-fopenmp", "-w", *flags, "peer.c", "-o", self.program, "-lm"],
                       cwd=folder, check=True)

    def run(self):
        done = subprocess.run([self.program], cwd=self.folder, env=self.env, check=True, capture_output=True, text=True)
        return float(done.stdout)

    def results(self):
        return {name: np.fromfile(self.folder / f"{name}.out", kind) for name, kind in self.case.outputs.items()}


class Numba:
    def __init__(self, case, args):
        import numba

        numba.set_num_threads(args.threads)
        self.case, self.function = case, case.numba(numba)
        self.made = {name: np.ones(case.items, kind) for name, kind in case.outputs.items()}

    def run(self):
        given = {name: array.reshape(-1).copy() if self.case.carried else array.reshape(-1)
                 for name, array in self.case.arrays.items()}
        made, begin = dict(self.made), time.perf_counter()
        for iteration in range(self.case.iterations):
            for output, source in self.case.carried if iteration else ():
                made[output], given[source] = given[source], made[output]
            self.function(*given.values(), *self.case.scalars.values(), *made.values())
        seconds = time.perf_counter() - begin
        self.last = made
        return seconds

    def results(self):
        return self.last


class OpenCL:
    def __init__(self, case, args, device, pragma=""):
        import pyopencl

        self.cl, self.case = pyopencl, case
        self.context = pyopencl.Context([device])
        self.queue = pyopencl.CommandQueue(self.context)
        parameters = [f"__global const {C_TYPES[str(a.dtype)]} *{name}" for name, a in case.arrays.items()]
        parameters += [f"const {C_TYPES[np.asarray(value).dtype.name]} {name}" for name, value in case.scalars.items()]
        parameters += [f"__global {C_TYPES[np.dtype(kind).name]} *{name}" for name, kind in case.outputs.items()]
        names = ", ".join([*case.arrays, *case.scalars, *case.outputs])
        text = (f"#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n{pragma}\n#define G __global\n"
                f"{case.item}\n__kernel void run({', '.join(parameters)}) {{ item(get_global_id(0), {names}); }}\n")
        self.kernel = pyopencl.Kernel(pyopencl.Program(self.context, text).build(), "run")
        flags = pyopencl.mem_flags
        self.given = {name: pyopencl.Buffer(self.context, flags.READ_WRITE, a.nbytes) for name, a in case.arrays.items()}
        self.made = {name: pyopencl.Buffer(self.context, flags.READ_WRITE, np.dtype(kind).itemsize * case.items)
                     for name, kind in case.outputs.items()}
        self.scalars = [np.asarray(value)[()] for value in case.scalars.values()]

    def run(self):
        for name, array in self.case.arrays.items():
            self.cl.enqueue_copy(self.queue, self.given[name], np.ascontiguousarray(array))
        self.queue.finish()
        given, made, begin = dict(self.given), dict(self.made), time.perf_counter()
        for iteration in range(self.case.iterations):
            for output, source in self.case.carried if iteration else ():
                made[output], given[source] = given[source], made[output]
            self.kernel(self.queue, (self.case.items,), None, *given.values(), *self.scalars, *made.values())
        self.queue.finish()
        seconds = time.perf_counter() - begin
        self.last = made
        return seconds

    def results(self):
        found = {}
        for name, kind in self.case.outputs.items():
            found[name] = np.empty(self.case.items, kind)
            self.cl.enqueue_copy(self.queue, found[name], self.last[name])
        return found


class Quern:
    def __init__(self, case, args, folder, device=None):
        self.case, self.folder = case, folder
        (folder / "kernel.c").write_text(case.kernel)
        where = ["--devices", device] if device else ["--threads", str(args.threads)]
        self.words = [args.quern, "run", "--json", *where, "--kernel", "kernel.c"]
        declared = [name for name in case.arrays if name != "matrix"]
        for name in declared:
            np.save(folder / f"{name}.npy", case.arrays[name])
            self.words += ["--in", f"{name}={name}.npy"]
        for name, value in case.scalars.items():
            self.words += ["--set", f"{name}={value}"]
        for name in [*case.outputs, *case.totals]:
            self.words += ["--out", f"{name}=o-{name}.npy"]
        self.words += ["--shape", "x".join(map(str, case.space))]
        if case.iterations > 1:
            self.words += ["--iterations", str(case.iterations)]

    def run(self):
        done = subprocess.run(self.words, cwd=self.folder, check=True, capture_output=True, text=True)
        return json.loads(done.stdout)["seconds"]

    def results(self):
        return {name: np.load(self.folder / f"o-{name}.npy").reshape(-1) for name in self.case.outputs}


class QuernInMemory:
    """The library with arrays of the caller, as the other contenders have them."""

    def __init__(self, case, args, folder):
        self.case, self.folder = case, folder
        (folder / "kernel.c").write_text(case.kernel)
        shape = "x".join(map(str, case.space))
        self.words = [args.quern_job, "kernel.c", str(args.threads), str(case.iterations), shape]
        for name, array in case.arrays.items():
            if name != "matrix":
                array.tofile(folder / f"q-{name}.raw")
                self.words.append(f"{name}=q-{name}.raw:{'x'.join(map(str, array.shape))}")
        self.words += [f"{name}={value}" for name, value in case.scalars.items()]
        self.words += [f"{name}=q-{name}.out" for name in [*case.outputs, *case.totals]]

    def run(self):
        return float(subprocess.run(self.words, cwd=self.folder, check=True, capture_output=True, text=True).stdout)

    def results(self):
        return {name: np.fromfile(self.folder / f"q-{name}.out", kind) for name, kind in self.case.outputs.items()}


def peers_of(case, args, folder):
    for name, array in case.arrays.items():
        np.ascontiguousarray(array).tofile(folder / f"{name}.raw")
    found = {"gcc, OpenMP": OpenMP(case, args, folder), f"gcc, OpenMP, {RELAXED}": OpenMP(case, args, folder, RELAXED)}
    try:
        found["Numba, parallel"] = Numba(case, args)
    except ImportError:
        print("Numba is not here")
    found.update(opencl_peers(case, args, folder))
    return found


def quern_devices(args):
    """The names that Quern has for OpenCL devices which are CPUs, by their platform."""
    done = subprocess.run([args.quern, "devices", "--json"], check=True, capture_output=True, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["platform"]: row["id"] for row in rows
            if row["event"] == "device" and row["kind"] == "opencl" and row["type"] == "CPU"}


def opencl_peers(case, args, folder):
    try:
        import pyopencl
    except ImportError:
        print("pyopencl is not here")
        return {}
    found, own = {}, quern_devices(args)
    for platform in pyopencl.get_platforms():
        for device in platform.get_devices(pyopencl.device_type.CPU):
            name = "PoCL" if "Portable" in platform.name else platform.name.split("(")[0]
            if "FPGA" in platform.name:
                continue
            found[f"{name}, OpenCL"] = OpenCL(case, args, device)
            found[f"{name}, no fusing"] = OpenCL(case, args, device, "#pragma OPENCL FP_CONTRACT OFF")
            if args.threads == os.cpu_count() and platform.name in own:
                found[f"{name}, Quern's text"] = Quern(case, args, folder, own[platform.name])
    return found


def verify(case, quern, peers):
    """Whoever computes the same bits is said to; others must be close."""
    quern.run()
    ours = quern.results()
    for name, peer in peers.items():
        peer.run()
        theirs, worst = peer.results(), 0.0
        for output, array in ours.items():
            difference = abs(array.astype(float) - theirs[output].astype(float))
            if case.tolerance:
                worst = max(worst, float((difference / (1 + abs(array))).max()))
            else:  # a step more or less where the peer contracts
                worst = max(worst, float((difference != 0).mean()))
        same = all(array.tobytes() == theirs[output].tobytes() for output, array in ours.items())
        print(f"{case.name}: {name}: {'the same bits' if same else f'{worst:.1e}'}")
        assert same or not isinstance(peer, Quern), name
        assert worst <= max(case.tolerance, 0.0 if case.name == "smith_waterman" else 2e-2), name


def measure(case, args, rows):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        quern, peers = (Quern if args.fresh else QuernInMemory)(case, args, folder), peers_of(case, args, folder)
        verify(case, quern, peers)
        contenders = {"Quern": quern, **peers}
        times = {name: [] for name in contenders}
        for _ in range(args.rounds):
            for name, contender in contenders.items():
                times[name].append(contender.run())
    for name, seconds in times.items():
        middle = statistics.median(seconds)
        by_middle = middle / statistics.median(times["Quern"])
        by_least = min(seconds) / min(times["Quern"])
        rows.append((case.name, name, f"{1e3 * middle:.2f}", f"{by_middle:.2f}", f"{1e3 * min(seconds):.2f}", f"{by_least:.2f}"))
        print("{:15} {:26} median {:>9} ms  ratio {:>5}   least {:>9} ms  ratio {:>5}".format(*rows[-1]), flush=True)


def overhead(args):
    """Seconds of a whole job of one item: process, kernel from the cache, file, recipe."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "k.c").write_text("INDEX(i); OUTPUT(double, o); KERNEL { o = 1; }")
        words = [args.quern, "run", "--kernel", "k.c", "--shape", "1", "--out", "o=o.npy", "--quiet"]
        seconds = []
        for _ in range(21):
            begin = time.perf_counter()
            subprocess.run(words, cwd=folder, check=True)
            seconds.append(time.perf_counter() - begin)
        print(f"a job of one item: median {1e3 * statistics.median(seconds[1:]):.1f} ms, least {1e3 * min(seconds):.1f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("quern", nargs="?", default=ROOT / "build" / "quern", type=Path)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--fresh", action="store_true",
                        help="the outputs of Quern and of gcc are new memory; else somebody has used it before")
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    job = args.quern.resolve().parent / "bench" / "kernel_job"
    if not args.fresh and not job.exists():
        sys.exit(f"there is no {job}: run make bench")
    args.quern, args.quern_job = str(args.quern.resolve()), str(job)
    rows = []
    for name in args.cases.split(","):
        measure(CASES[name](), args, rows)
    overhead(args)
    if args.markdown:
        head = "| kernel | | median, ms | / Quern | least, ms | / Quern |\n| --- | --- | --- | --- | --- | --- |\n"
        args.markdown.write_text(head + "".join(f"| {' | '.join(row)} |\n" for row in rows))


if __name__ == "__main__":
    main()
