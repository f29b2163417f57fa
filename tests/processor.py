"""Which instruction sets of `--isa` the processor here has, by what the system says of it.

Not by what the program says: a set that it wrongly refuses must fail a test, not skip it.
"""

import functools
import platform
import re
from pathlib import Path

AVX512 = {"avx512f", "avx512dq", "avx512vl", "avx512bw"}
WANTS = {"avx2": {"avx2", "fma"}, "avx512": AVX512}
# Sets that integers alone have; float32 takes the next below.
WANTS_FOR_INTEGERS = {"vnni": AVX512 | {"avx512_vnni"},
                      "amx": AVX512 | {"avx512vbmi", "amx_tile", "amx_int8"}}


@functools.cache
def _has(flag):
    info = Path("/proc/cpuinfo")
    return flag in re.findall(r"\w+", info.read_text() if info.exists() else "")


def instruction_sets(arm=False, integers=False):
    """[(name, what this machine lacks for it or None)]; `arm`: of programs for Arm under qemu."""
    if arm or platform.machine() in ("aarch64", "arm64"):
        more = [("dotprod", None if arm or _has("asimddp") else "asimddp")] if integers else []
        return [("scalar", None), ("neon", None), *more]
    if platform.machine() not in ("x86_64", "AMD64"):
        return [("scalar", None)]
    wants = WANTS | WANTS_FOR_INTEGERS if integers else WANTS
    return [("scalar", None)] + [(isa, ", ".join(sorted(f for f in flags if not _has(f))) or None)
                                 for isa, flags in wants.items()]


def here(integers=False):
    """The names of those that this machine has."""
    return [isa for isa, lacking in instruction_sets(integers=integers) if not lacking]
