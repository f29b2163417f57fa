"""Sums of 64-bit integers by MPI_Allreduce of Open MPI, which is called by ctypes.

mpirun starts it: mpirun -n 2 python mpi_sums.py WORDS COUNT. Rank 0 prints the median and the least
seconds of an all-reduce, as JSON. The total is verified.
"""

import ctypes
import json
import statistics
import sys
import time


def main():
    words, count = int(sys.argv[1]), int(sys.argv[2])
    mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
    world, integer, add = (ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_" + name))
                           for name in ("comm_world", "int64_t", "op_sum"))  # fmt: skip
    rank, ranks = ctypes.c_int(), ctypes.c_int()
    mpi.MPI_Init(None, None)
    mpi.MPI_Comm_rank(world, ctypes.byref(rank))
    mpi.MPI_Comm_size(world, ctypes.byref(ranks))
    part, total = ((ctypes.c_int64 * words)() for _ in range(2))
    ctypes.memset(part, rank.value + 1, 8 * words)
    seconds = []
    for _ in range(count + 1):
        begun = time.perf_counter()
        mpi.MPI_Allreduce(part, total, words, integer, add, world)
        seconds.append(time.perf_counter() - begun)
    of_one = int.from_bytes(b"\1" * 8, "little")
    if {total[0], total[words // 2], total[words - 1]} != {of_one * ranks.value * (ranks.value + 1) // 2}:
        sys.exit("the total is wrong")
    if rank.value == 0:
        print(json.dumps({"median": statistics.median(seconds[1:]), "least": min(seconds[1:])}))
    mpi.MPI_Finalize()


main()
