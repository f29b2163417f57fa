#!/usr/bin/env python3
"""The layer `attention` beside PyTorch's scaled_dot_product_attention, in one run: causal, heads of 64.

    bench/attention.py [build/bench/attention] [--positions 256,2048] [--heads 6] [--threads 1,2] [--repeats 15]

A batch has 2,048 positions, or one item for each thread. Milliseconds are medians of processor time: of the
thread that has the most in Quern, of all threads divided by their number in PyTorch.
"""

import argparse
import re
import statistics
import subprocess
import time


def measured(call, threads):
    begun = time.process_time()
    result = call()
    return result, 1e3 * (time.process_time() - begun) / threads


def pytorch(positions, items, heads, threads, repeats):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    torch.set_num_threads(threads)
    parts = [torch.randn(items, heads, positions, 64, requires_grad=True) for _ in range(3)]
    times = []
    for _ in range(repeats):
        z, forward = measured(lambda: scaled_dot_product_attention(*parts, is_causal=True), threads)
        delta = torch.randn_like(z)
        _, backward = measured(lambda: torch.autograd.grad(z, parts, delta), threads)
        times.append((forward, backward))
    return [statistics.median(column) for column in zip(*times)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?", default="build/bench/attention")
    parser.add_argument("--positions", default="256,2048")
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    print("| positions | batch | threads | forward | backward | PyTorch forward | backward |\n" + "| --- " * 7 + "|")
    for positions in map(int, args.positions.split(",")):
        for threads in map(int, args.threads.split(",")):
            items = max(2048 // positions, threads)
            own = subprocess.run([args.program, *map(str, (positions, items, threads, args.heads))], check=True,
                                 capture_output=True, text=True).stdout
            forward, backward = re.findall(r"([\d.]+) ms .* (\d+) %", own)
            peer = pytorch(positions, items, args.heads, threads, args.repeats)
            print(f"| {positions:,} | {items} | {threads} | {forward[0]} ms, {forward[1]} % of the peak "
                  f"| {backward[0]} ms, {backward[1]} % | {peer[0]:.3f} ms | {peer[1]:.3f} ms |", flush=True)


if __name__ == "__main__":
    main()
