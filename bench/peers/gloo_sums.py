"""Sums of 64-bit integers by gloo, over loopback TCP, as PyTorch's all_reduce calls it.

Each rank is a process: python gloo_sums.py WORDS COUNT PORT RANKS RANK. Rank 0 prints the median
and the least seconds of an all-reduce, as JSON. The total is verified.
"""

import json
import statistics
import sys
import time

import torch
import torch.distributed


def main():
    words, count, port, ranks, rank = map(int, sys.argv[1:])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    part = torch.full((words,), rank + 1, dtype=torch.int64)
    seconds = []
    for turn in range(count + 1):
        begun = time.perf_counter()
        torch.distributed.all_reduce(part)
        seconds.append(time.perf_counter() - begun)
        if turn == 0 and not bool((part == ranks * (ranks + 1) // 2).all()):
            sys.exit("the total is wrong")
    if rank == 0:
        print(json.dumps({"median": statistics.median(seconds[1:]), "least": min(seconds[1:]), "version": torch.__version__}))
    torch.distributed.destroy_process_group()


main()
