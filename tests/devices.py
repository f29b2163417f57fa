"""Devices that tests may use on any machine: PoCL's OpenCL devices, which are processors, and the
CUDA devices of tests/emulated_gpu, which are the kernel text compiled as C.

Both give (names, environment): what --devices takes, and the environment in which it is there.
"""

import json
import os
import subprocess

import pytest

import builds

POCL = "Portable Computing Language"


def listed(command, environment):
    """What `quern devices --json` says: ({id: row}, {kind: why there is none})."""
    done = subprocess.run([*command, "devices", "--json", "--measure", "none"], text=True,
                          capture_output=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return ({row["id"]: row for row in rows if row["event"] == "device"},
            {row["kind"]: row["reason"] for row in rows if row["event"] == "absence"})


def pocl(count=1, build="release", environment=None):
    """`count` devices of PoCL; skips the test where there is no PoCL.

    Only PoCL not being there is a reason to skip: when it is there, its devices must be usable.
    """
    environment = dict(environment or os.environ, POCL_DEVICES=" ".join(["pthread"] * count))
    program = builds.ready(build) / "quern"
    found, absent = listed(builds.command(build, program), environment)
    names = [name for name, row in found.items() if row["platform"] == POCL]
    if not names:
        pytest.skip(f"no PoCL here: {absent.get('opencl', 'other OpenCL devices only')}; "
                    "scripts/setup.sh says how to get it")
    for name in names:
        assert not found[name]["refused"], found[name]["reason"]
    assert len(names) >= count, f"PoCL shows {names} for POCL_DEVICES={environment['POCL_DEVICES']}"
    compile_once(names[0])
    return names[:count], environment


def compile_once(name):
    """Compiles the kernels for PoCL before several tests do it side by side: it takes a while, and
    the caches that conftest.py names keep them. Measuring needs most of them, a trial the others. By the release build: the compiler is LLVM, which
    no sanitizer needs to watch."""
    program = builds.ready("release") / "quern"
    session, stamp = os.environ["QUERN_TEST_SESSION"], builds.CACHE / "pocl.stamp"
    with builds.untimed(), builds.alone("pocl"):
        if not stamp.exists() or stamp.read_text() != session:
            subprocess.run([program, "devices", "--devices", name, "--model", "dense 10 softmax",
                            "--seconds", "0.1"], timeout=600,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stamp.write_text(session)


def emulated_cuda(count=1, build="release", environment=None):
    """`count` emulated devices, whose driver and compiler stand in for NVIDIA's."""
    environment = dict(environment or os.environ, QN_FAKE_CUDA=f"devices={count}")
    folder = builds.ready(build, "fakes") / "fake_gpu"
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(
        filter(None, [str(folder), environment.get("LD_LIBRARY_PATH")]))
    return [f"cuda:{i}" for i in range(count)], environment


KINDS = {"opencl": pocl, "cuda": emulated_cuda}
