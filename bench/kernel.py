#!/usr/bin/env python3
"""Kernels of users beside the same loop in C with OpenMP, in one run: mandelbrot, black_scholes and
smith_waterman.

    bench/kernel.py [build/quern] [--threads 2] [--repeats 7]

Results are compared first. The peer is gcc -O3 -march=native -fopenmp, with dynamic schedule for
mandelbrot and smith_waterman, its time is that of the loop alone. Quern's is that of its report, the checks of each item
included. Both are the median of repeats that alternate.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[1]
CC = "gcc"

MAIN = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
static double *read_all(const char *path, long n) {
    double *x = malloc(n * sizeof *x);
    FILE *f = fopen(path, "rb");
    if (!f || fread(x, 8, n, f) != (size_t)n)
        exit(1);
    fclose(f);
    return x;
}
"""

MANDELBROT = MAIN + r"""
int main(int argc, char **argv) {
    const long height = atol(argv[1]), width = atol(argv[2]);
    const double left = -2.25, size = atof(argv[3]);
    int32_t *steps = malloc(height * width * sizeof *steps);
    for (long k = 0; k < height * width; k++)
        steps[k] = 0; /* its pages are there */
    const double begin = now();
#pragma omp parallel for schedule(dynamic)
    for (long y = 0; y < height; y++)
        for (long x = 0; x < width; x++) {
            const double cx = left + size * x, cy = size * (y - height / 2);
            double a = 0, b = 0;
            int n = 0;
            for (; n < 1000 && a * a + b * b <= 4; n++) {
                const double next = a * a - b * b + cx;
                b = 2 * a * b + cy;
                a = next;
            }
            steps[y * width + x] = n;
        }
    printf("%.9f\n", now() - begin);
    FILE *f = fopen(argv[4], "wb");
    fwrite(steps, 4, height * width, f);
    fclose(f);
    return 0;
}
"""

OPTIONS = MAIN + r"""
static double normal(double x) { return 0.5 * (1 + erf(x * 0.7071067811865476)); }
int main(int argc, char **argv) {
    const long n = atol(argv[1]);
    double *price = read_all(argv[2], n), *strike = read_all(argv[3], n), *years = read_all(argv[4], n);
    double *call = calloc(n, 8), *put = calloc(n, 8);
    const double rate = 0.02, sigma = 0.3;
    double value = 0;
    for (long i = 0; i < n; i++)
        call[i] = put[i] = 1; /* their pages are there */
    const double begin = now();
#pragma omp parallel for reduction(+ : value)
    for (long i = 0; i < n; i++) {
        const double spread = sigma * sqrt(years[i]);
        const double up = (log(price[i] / strike[i]) + (rate + sigma * sigma / 2) * years[i]) / spread;
        const double today = strike[i] * exp(-rate * years[i]);
        const double c = price[i] * normal(up) - today * normal(up - spread);
        call[i] = c;
        put[i] = c + today - price[i];
        value += c;
    }
    printf("%.9f\n", now() - begin);
    FILE *f = fopen(argv[5], "wb");
    fwrite(call, 8, n, f);
    fclose(f);
    return value < 0;
}
"""


SEQUENCES = r"""
#define max(a, b) ((a) > (b) ? (a) : (b))
static void *read_bytes(const char *path, long size) {
    char *x = malloc(size);
    FILE *f = fopen(path, "rb");
    if (!f || fread(x, 1, size, f) != (size_t)size)
        exit(1);
    fclose(f);
    return x;
}
int main(int argc, char **argv) {
    const long n = atol(argv[1]), all = atol(argv[2]), columns = atol(argv[3]);
    const uint8_t *letters = read_bytes("letters.raw", all), *query = read_bytes("query.raw", columns);
    const int64_t *start = read_bytes("start.raw", 8 * n), *size = read_bytes("size.raw", 8 * n);
    int32_t *score = calloc(n, 4);
    const int open = 11, extend = 1;
    if (columns > 512)
        return 1;
    const double begin = now();
#pragma omp parallel for schedule(dynamic, 16)
    for (long s = 0; s < n; s++) {
        int letter[512], h[512] = {0}, before[512] = {0}, e[512] = {0}, t[512];
        int most = 0;
        for (int j = 0; j < columns; j++)
            letter[j] = query[j];
        for (int64_t i = start[s]; i < start[s] + size[s]; i++) {
            const int row = 24 * letters[i];
            for (int j = 0; j < columns; j++) {
                e[j] = max(e[j], h[j] - open) - extend;
                t[j] = max(max(0, before[j] + BLOSUM62[row + letter[j]]), e[j]);
                most = max(most, t[j]);
            }
            int f = 0, last = 0;
            for (int j = 0; j < columns; j++) {
                before[j] = last;
                last = max(t[j], f);
                h[j] = last;
                f = max(f, t[j] - open) - extend;
            }
        }
        score[s] = most;
    }
    printf("%.9f\n", now() - begin);
    FILE *f = fopen("score.raw", "wb");
    fwrite(score, 4, n, f);
    fclose(f);
    return 0;
}
"""


def build(folder, name, text, *flags):
    (folder / f"{name}.c").write_text(text)
    subprocess.run([CC, "-O3", "-march=native", "-fopenmp", *flags, "-w", f"{name}.c", "-o", name, "-lm"],
                   cwd=folder, check=True)


def quern(folder, args, *words):
    done = subprocess.run([args.quern, "run", "--json", "--threads", str(args.threads), *map(str, words)],
                          cwd=folder, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def peer(folder, args, *words):
    done = subprocess.run([str(w) for w in words], cwd=folder, check=True, capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": str(args.threads)})
    return float(done.stdout)


def compare(title, args, ours, theirs):
    times = {"quern": [], **{name: [] for name in theirs}}
    for _ in range(args.repeats):
        times["quern"].append(ours()["seconds"])
        for name, call in theirs.items():
            times[name].append(call())
    own = statistics.median(times["quern"])
    for name, all_of in times.items():
        middle = statistics.median(all_of)
        print(f"{title:15} {name:34} {1e3 * middle:9.2f} ms  {min(all_of) * 1e3:9.2f} to {max(all_of) * 1e3:9.2f}"
              f"  quern is {middle / own:5.2f} times as fast")


def mandelbrot(folder, args):
    height, width, size = 960, 1280, 0.0025
    kernel = ROOT / "examples" / "kernels" / "mandelbrot.c"
    def ours():
        return quern(folder, args, "--kernel", kernel, "--shape", f"{height}x{width}", "--set", "left=-2.25",
                     "--set", f"size={size}", "--out", "steps=steps.npy")
    theirs = {}
    for name, flags in (("gcc -ffp-contract=off", ["-ffp-contract=off"]), ("gcc", [])):
        program = f"mandelbrot{len(flags)}"
        build(folder, program, MANDELBROT, *flags)
        theirs[name] = lambda p=program: peer(folder, args, f"./{p}", height, width, size, "steps.raw")
    ours()
    theirs["gcc -ffp-contract=off"]()
    same = numpy.load(folder / "steps.npy").ravel() == numpy.fromfile(folder / "steps.raw", "int32")
    assert same.all(), "the peer computes other numbers"
    compare("mandelbrot", args, ours, theirs)


def options(folder, args):
    count = 2_000_000
    draw = numpy.random.default_rng(1)
    words = ["--kernel", ROOT / "examples" / "kernels" / "black_scholes.c", "--out", "call=call.npy",
             "--out", "put=put.npy"]
    for name, low, high in (("price", 5, 30), ("strike", 1, 100), ("years", 0.25, 10)):
        array = draw.uniform(low, high, count)
        numpy.save(folder / f"{name}.npy", array)
        array.tofile(folder / f"{name}.raw")
        words += ["--in", f"{name}={name}.npy"]
    build(folder, "options", OPTIONS)
    def theirs():
        return peer(folder, args, "./options", count, "price.raw", "strike.raw", "years.raw", "call.raw")
    quern(folder, args, *words)
    theirs()
    close = abs(numpy.load(folder / "call.npy") - numpy.fromfile(folder / "call.raw"))
    assert close.max() < 1e-11, "the peer computes other numbers"
    compare("black_scholes", args, lambda: quern(folder, args, *words), {"gcc with glibc's functions": theirs})


def sequences(folder, args):
    """5,000 proteins and a query of 142 letters: 253 million cells."""
    words = ["proteins.fasta", "query.fasta"]
    script = [sys.executable, ROOT / "examples" / "smith_waterman.py"]
    subprocess.run([*script, "make", *words, "--sequences", "5000"], cwd=folder, check=True)
    subprocess.run([*script, "arrays", *words], cwd=folder, check=True)
    names = ["letters", "start", "size", "query"]
    arrays = {name: numpy.load(folder / f"{name}.npy") for name in names}
    for name, array in arrays.items():
        array.tofile(folder / f"{name}.raw")
    kernel = ROOT / "examples" / "kernels" / "smith_waterman.c"
    text = kernel.read_text()
    table = text[text.index("static const int BLOSUM62"):]
    build(folder, "sequences", MAIN + table[:table.index("};") + 2] + SEQUENCES)
    def ours():
        return quern(folder, args, "--kernel", kernel, "--out", "score=score.npy", "--out", "histogram=h.npy",
                     *[word for name in names for word in ("--in", f"{name}={name}.npy")])
    def theirs():
        return peer(folder, args, "./sequences", *[len(arrays[name]) for name in ("start", "letters", "query")])
    ours()
    theirs()
    assert (numpy.load(folder / "score.npy") == numpy.fromfile(folder / "score.raw", "int32")).all()
    compare("smith_waterman", args, ours, {"gcc": theirs})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("quern", nargs="?", default=ROOT / "build" / "quern", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    args.quern = args.quern.resolve()
    with tempfile.TemporaryDirectory() as folder:
        mandelbrot(Path(folder), args)
        options(Path(folder), args)
        sequences(Path(folder), args)


if __name__ == "__main__":
    main()
