#!/usr/bin/env python3
"""Iterated stencils beside the same loop in C with OpenMP, in one run: heat and hotspot.

    bench/stencil.py [build/quern] [--threads 2] [--repeats 5] [--sizes 512,2048,8192]

Results are compared first, byte by byte. The peer is gcc -O3 -march=native -fopenmp; each of its
iterations goes over the whole array. Times are those of an iteration: the difference of a long run
and a short one, medians of repeats that alternate. On a machine that does other things too, the
ratio of processor times (--cpu) says more than that of times: a thread of OpenMP waits by spinning.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[1]

QUERN = {
    "heat": """INDEX(y, x);
HALO(float, u, 1, nearest); INPUT(float, power); OUTPUT(float, u_new); NEXT(u_new, u);
KERNEL { u_new = u(0, 0) + 0.2f * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - 4 * u(0, 0)) + 0 * power; }
""",
    "hotspot": """INDEX(y, x);
HALO(float, u, 1, nearest); INPUT(float, power); OUTPUT(float, u_new); NEXT(u_new, u);
KERNEL {
    u_new = u(0, 0) + 0.01f * (power + (u(-1, 0) + u(1, 0) - 2 * u(0, 0)) * 0.1f
                               + (u(0, -1) + u(0, 1) - 2 * u(0, 0)) * 0.1f + (80.0f - u(0, 0)) * 0.05f);
}
""",
}
QUERN["heat"] = QUERN["heat"].replace("INPUT(float, power); ", "").replace(" + 0 * power", "")
ITEM = {
    "heat": "c + 0.2f * (n + s + w + e - 4 * c)",
    "hotspot": "c + 0.01f * (p[k] + (n + s - 2 * c) * 0.1f + (w + e - 2 * c) * 0.1f + (80.0f - c) * 0.05f)",
}
PEER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static float item(const float *p, long k, float c, float n, float s, float w, float e) {
    (void)p;
    return ITEM;
}
static void step(const float *restrict u, const float *restrict p, float *restrict v, long n) {
#pragma omp parallel for schedule(static)
    for (long y = 0; y < n; y++) {
        const float *c = u + y * n, *up = y > 0 ? c - n : c, *down = y + 1 < n ? c + n : c;
        float *to = v + y * n;
        to[0] = item(p, y * n, c[0], up[0], down[0], c[0], c[1]);
        for (long x = 1; x < n - 1; x++)
            to[x] = item(p, y * n + x, c[x], up[x], down[x], c[x - 1], c[x + 1]);
        to[n - 1] = item(p, y * n + n - 1, c[n - 1], up[n - 1], down[n - 1], c[n - 2], c[n - 1]);
    }
}
static float *load(const char *path, long count) {
    float *a = malloc(count * sizeof *a);
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 128, SEEK_SET) || fread(a, 4, count, f) != (size_t)count)
        exit(1);
    fclose(f);
    return a;
}
int main(int argc, char **argv) {
    const long n = atol(argv[1]), iterations = atol(argv[2]);
    float *u = load("u.npy", n * n), *p = load("p.npy", n * n), *v = load("u.npy", n * n);
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (long t = 0; t < iterations; t++) {
        step(u, p, v, n);
        float *kept = u;
        u = v;
        v = kept;
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%.9f\n", (b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec));
    FILE *f = fopen("peer.bin", "wb");
    fwrite(u, 4, n * n, f);
    fclose(f);
    return 0;
}
"""


def timed(cpu, folder, words, env):
    """What a command prints, and the processor time that it took if that is wanted."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(w) for w in words], cwd=folder, check=True, capture_output=True, text=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, used if cpu else None


def measure(args, folder, name, size):
    steps = max(40, int(4e9 / size**2 / 10))
    env = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
    quern = [args.quern, "run", "--json", "--kernel", f"{name}.c", "--threads", args.threads, "--in", "u=u.npy",
             "--out", "u_new=quern.npy", "--recipe", "r.json"]
    if name == "hotspot":
        quern += ["--in", "power=p.npy"]

    def one(which, count):
        if which == "peer":
            out, cpu = timed(args.cpu, folder, [f"./{name}", size, count], env)
            return cpu if args.cpu else float(out)
        out, cpu = timed(args.cpu, folder, [*quern, "--iterations", count], env)
        return cpu if args.cpu else json.loads(out)["seconds"]
    for which in ("peer", "quern"):
        one(which, 7)
    got = (folder / "quern.npy").read_bytes()[128:]
    assert got == (folder / "peer.bin").read_bytes(), f"{name}: the results differ"
    times = {"peer": [], "quern": []}
    for _ in range(args.repeats):
        for which in times:
            times[which].append((one(which, steps) - one(which, steps // 4)) / (steps - steps // 4))
    peer, own = (statistics.median(times[w]) for w in ("peer", "quern"))
    print(f"{name:8} {size:5}^2  OpenMP {peer * 1e6:9.1f} us  quern {own * 1e6:9.1f} us  ratio {peer / own:.2f}",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("quern", nargs="?", default=str(ROOT / "build" / "quern"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sizes", default="512,2048,8192")
    parser.add_argument("--cpu", action="store_true", help="processor time in place of time")
    args = parser.parse_args()
    args.quern = str(Path(args.quern).resolve())
    for size in map(int, args.sizes.split(",")):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            draw = numpy.random.default_rng(1)
            for name in "up":
                numpy.save(folder / f"{name}.npy", draw.uniform(0, 100, (size, size)).astype("float32"))
            for name, text in QUERN.items():
                (folder / f"{name}.c").write_text(text)
                (folder / "peer.c").write_text(PEER.replace("ITEM", ITEM[name]))
                subprocess.run(["gcc", "-O3", "-march=native", "-fopenmp", "-ffp-contract=off", "-w", "peer.c",
                                "-o", name], cwd=folder, check=True)
                measure(args, folder, name, size)


if __name__ == "__main__":
    main()
