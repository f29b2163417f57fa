"""Runs of several ranks that are started wrongly: a plain word from each process, a sane exit code,
and no hang. What ranks must have in common is in test_ranks.py, readers in test_bad_input.py."""

import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

import builds
import launch
import machine
import ranks
from test_ranks import SMALL, said, wait_for

LIBRARY = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
char ompi_mpi_comm_world[512], ompi_mpi_byte[512], ompi_mpi_errors_return[512];
int MPI_Init_thread(void) { if (HOW == 2) sleep(1000); return HOW == 1 ? 16 : 0; }
int MPI_Initialized(int *flag) { *flag = 0; return 0; }
int MPI_Finalized(int *flag) { *flag = 0; return 0; }
int MPI_Finalize(void) { return 0; }
int MPI_Comm_size(void *c, int *n) { *n = SIZE; return 0; }
int MPI_Comm_rank(void *c, int *n) { *n = 0; return 0; }
int MPI_Comm_set_errhandler(void) { return 0; }
int MPI_Allgather(void *own, int n, void *type, char *all) { memset(all, 90, n * SIZE); return 0; }
int MPI_Bcast(void) { return 0; }
int MPI_Get_library_version(char *to, int *n) {
    strcpy(to, VERSION);
    *n = (int)strlen(to);
    return 0;
}
"""
FOUR = "Open MPI v4.1.4"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Makes an MPI library that is not what it should be; its path."""
    builds.require("cc")
    folder = tmp_path_factory.mktemp("mpi")

    def make(version=FOUR, how=0, size=2, text=LIBRARY):
        file = folder / f"lib-{abs(hash((version, how, size, text)))}.so"
        (folder / "mpi.c").write_text(text)
        subprocess.run(["cc", "-w", "-shared", "-fPIC", f'-DVERSION="{version}"', f"-DHOW={how}",
                        f"-DSIZE={size}", "-o", file, folder / "mpi.c"], check=True)
        return file
    return make


@pytest.mark.parametrize("made, says", [
    (dict(text="int MPI_Init_thread(void) { return 0; } int ompi_mpi_comm_world;"),
     "does not have all required functions"),
    (dict(version="Open MPI v1.10.7"), "Open MPI 1.10.7 .* too old"),
    (dict(version="Open MPI v5.0.11"), "Open MPI 5.0.11 .* does not go with mpirun"),
    (dict(how=1), "MPI_Init_thread of Open MPI 4.1.4 .* failed with code 16"),
    (dict(how=2), "did not bring the ranks together within 3 seconds"),
    (dict(size=1), "the library reports 1 rank, the launcher started 2"),
    (dict(), "rank 0 is another program, or another Quern"),
    (None, "not an MPI library that can be used"),
])
def test_an_mpi_that_will_not_do(quern, library, tmp_path, made, says):
    file = tmp_path / "no.so" if made is None else library(**made)
    words = [*SMALL, "-o", tmp_path / "m", "--meet-timeout", 3 if made and made.get("how") == 2 else 60]
    with launch.Run(quern, "openmpi4", 2, words, environment={"QUERN_MPI": str(file)}) as run:
        codes, text = run.wait(30), run.text()
    assert re.search(f"quern train: rank [01] on .*: .*{says}", text), text
    assert 0 not in codes and not (tmp_path / "m").exists()


@pytest.mark.parametrize("variables, status, says", [
    ("OMPI_COMM_WORLD_SIZE=4", 2, "OMPI_COMM_WORLD_RANK do not say"),
    ("OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1", 1, "rank 1 on .*PMIX_SERVER_URI"),
    ("OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1 PMIX_RANK=1 "
     "PMIX_SERVER_URI4=a.0;tcp4://127.0.0.1:1", 1, "rank 1 on .*no process listens"),
    ("OMPI_COMM_WORLD_SIZE=many OMPI_COMM_WORLD_RANK=1", 2, "\"many\", which is not a number"),
    ("PMI_SIZE=4 PMI_RANK=3", 1, "rank 3 on .*PMI_FD"),
    ("PMI_SIZE=4 PMI_RANK=3 PMI_FD=77", 1, "rank 3 on .*not open"),
    ("PMI_SIZE=4 PMI_RANK=3 PMI_PORT=127.0.0.1:1", 1, "rank 3 on .*no process listens"),
    ("PMI_RANK=3", 0, ""),
    ("SLURM_JOB_ID=1 SLURM_NTASKS=4 SLURM_PROCID=2", 0, ""),  # as in a batch script
    ("SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=4", 2, "do not say which"),
    ("SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=2 SLURM_STEP_NODELIST=[x]", 1,
     "rank 2 on .*not a list of nodes"),
    ("WORLD_SIZE=4 RANK=1 MASTER_ADDR=localhost MASTER_PORT=29500", 0, ""),  # not torchrun's
    ("TORCHELASTIC_RUN_ID=x WORLD_SIZE=4 RANK=1 MASTER_PORT=29500", 2, 'MASTER_ADDR is ""'),
    ("TORCHELASTIC_RUN_ID=x WORLD_SIZE=4 RANK=1 MASTER_ADDR=192.0.2.1 MASTER_PORT=29500", 2,
     "without a key"),
])
def test_a_launchers_variables_without_the_launcher(run_quern, tmp_path, variables, status, says):
    env = launch.clean_environment(**dict(v.split("=", 1) for v in variables.split()))
    wait = ["--meet-timeout", "2"] if status else []  # which a single process refuses
    done = run_quern(*SMALL, "--quiet", "-o", tmp_path / "m", *wait, env=env, status=status,
                     timeout=60)
    assert re.search(says, done.stderr)
    assert status == 0 or (says and not (tmp_path / "m").exists())


@pytest.mark.parametrize("launcher", ["openmpi5", "openmpi4"])
def test_a_host_that_is_not_there(launcher, quern, tmp_path):
    """The launcher says so and ends (MPICH's does not: it waits for ever), nothing is written."""
    mpi = launch.MPIS[launcher]
    hosts = tmp_path / "hosts"
    hosts.write_text(mpi["form"].format("no-such-host.invalid", 2) + "\n")
    with launch.Run(quern, launcher, 2, [*SMALL, "-o", tmp_path / "m"],
                    options=[mpi["hostfile"], hosts]) as run:
        assert 0 not in run.wait(60), run.story()
    assert not (tmp_path / "m").exists()


def another_version(quern, folder):
    """The same program with another number in it."""
    version = subprocess.run([quern, "version"], capture_output=True, text=True,
                             check=True).stdout.split()[1]
    other = ("9" if version[0] != "9" else "8") + version[1:]
    file = folder / "other"
    file.write_bytes(Path(quern).read_bytes().replace(version.encode() + b"\0", other.encode() + b"\0"))
    file.chmod(0o755)
    shown = subprocess.run([file, "version"], capture_output=True, text=True, check=True).stdout
    assert shown.split()[1] == other
    return file, version, other


@pytest.mark.parametrize("launcher", launch.LAUNCHERS)
def test_another_version_on_one_host(launcher, quern, tmp_path):
    other, version, wrong = another_version(quern, tmp_path)
    script = tmp_path / "either"
    script.write_text(f"""#!/bin/sh
rank=${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}
case "$rank $*" in "1 "*|*"--rank 1"*) exec {other} "$@";; *) exec {quern} "$@";; esac
""")
    script.chmod(0o755)
    with launch.Run(script, launcher, 3, [*SMALL, "-o", tmp_path / "m"]) as run:
        codes, text = run.wait(60), run.text()
    assert 0 not in codes and not (tmp_path / "m").exists()
    assert re.search(f"rank 1 on \\S+ runs Quern {re.escape(wrong)}", text), text
    assert version in text


# ---------------------------------------------------------------- by hand

def test_a_port_that_is_taken(quern, tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        done = ranks.run(quern, 2, *SMALL, "-o", tmp_path / "m", "--meet-timeout", "2", status=1,
                         meet=f"127.0.0.1:{s.getsockname()[1]}")
    assert "rank 0 on" in done[0][2] and "another program holds this port" in done[0][2]
    assert "rank 1 on" in done[1][2]


def test_one_number_twice(quern, tmp_path):
    """Of three ranks two say that they are rank 1: one of these is told at once, rank 0 when the
    time is over."""
    wrap = ["sh", "-c", 'for w; do shift; [ "$w" = 2 ] && w=1; set -- "$@" "$w"; done; exec "$@"',
            "sh"]
    done = ranks.run(quern, 3, *SMALL, "-o", tmp_path / "m", "--meet-timeout", "3", status=1,
                     wrap=lambda i: wrap if i == 2 else [])
    assert "rank 2 did not come" in done[0][2]
    assert sum("rank 1 is there already" in e for _, _, e in done) == 1
    assert not (tmp_path / "m").exists()


def test_other_counts(quern, tmp_path):
    own = {1: ["--meet-timeout", "5"]}
    wrap = ["sh", "-c", 'for w; do shift; [ "$w" = 2 ] && w=3; set -- "$@" "$w"; done; exec "$@"',
            "sh"]
    done = ranks.run(quern, 2, *SMALL, "-o", tmp_path / "m", status=1, own=own,
                     wrap=lambda i: wrap if i == 1 else [])
    assert "as one of 3" in done[0][2] and "as one of 3" in done[1][2]


def test_two_runs_at_one_place(quern, tmp_path):
    """Each with a key of its own: one of them meets, or neither does; none mixes with the other."""
    meet = f"127.0.0.1:{ranks.free_port()}"
    runs = []
    for name in ("a", "b"):
        key = tmp_path / f"key-{name}"
        key.write_text(f"the secret of run {name}\n")
        key.chmod(0o600)
        runs.append(ranks.Ranks(quern, 2, *SMALL, "--quiet", "-o", tmp_path / name, "--key-file",
                                key, "--meet-timeout", "3", meet=meet, timeout=60))
    with runs[0], runs[1]:
        done = [run.wait() for run in runs]
    for name, ended in zip("ab", done):
        assert len({code for code, _, _ in ended}) == 1, ended
        assert (tmp_path / name).exists() == (ended[0][0] == 0)
        assert ended[0][0] == 0 or all(e.startswith("quern train: rank ") for _, _, e in ended)


@pytest.mark.parametrize("who, number", [(0, signal.SIGKILL), (1, signal.SIGKILL),
                                         (0, signal.SIGINT), (1, signal.SIGINT)])
def test_a_rank_that_ends_while_others_wait_for_a_third(quern, tmp_path, who, number):
    port = ranks.free_port()
    words = [*SMALL, "-o", tmp_path / "m", "--meet-timeout", "3", "--meet", f"127.0.0.1:{port}", "--ranks", "3",
             "--rank"]
    both = [subprocess.Popen([quern, *map(str, words), str(r)], stdout=subprocess.PIPE, text=True,
                             stderr=subprocess.PIPE) for r in range(2)]
    try:
        wait_for(lambda: ranks.have_come(port, 1) or None not in [p.poll() for p in both])
        both[who].send_signal(number)
        text = [p.communicate(timeout=60)[1] for p in both]
    finally:
        for p in both:
            p.kill()
            p.wait()
    assert both[who].returncode == (130 if number == signal.SIGINT else -number)
    assert both[1 - who].returncode == 1
    assert f"rank {1 - who} on" in text[1 - who]
    assert list(tmp_path.iterdir()) == []


def full_disk(kilobytes):
    """A wrapper under which the folder `disk` is one of its own, that small."""
    return ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size={kilobytes}k tmpfs disk; exec "$@"',
            "sh"]


@pytest.mark.parametrize("words, what, kilobytes", [
    (["-o", "disk/m"], "disk/m", 16),
    (["-o", "m", "--trace", "disk/trace.json"], "disk/trace.json", 16),
    (["-o", "m", "--run-dir", "disk/run"], "disk/run/run.json", 8),
])
def test_a_full_disk_on_rank_0_alone(quern, tmp_path, words, what, kilobytes):
    """The others end alike, and say nothing as --quiet asks; the model is written, where need be elsewhere."""
    machine.need("mounting a disk")
    (tmp_path / "disk").mkdir()
    words = [*SMALL, "--quiet", *words]
    done = ranks.run(quern, 3, *words, cwd=tmp_path, status=1, env=dict(os.environ, TMPDIR="."),
                     wrap=lambda i: full_disk(kilobytes) if i == 0 else [])
    assert f"quern train: rank 0 on {socket.gethostname()}: cannot write {what}" in done[0][2]
    assert "the disk is full" in done[0][2]
    assert all(o == e == "" for _, o, e in done[1:])
    assert (tmp_path / ("rescued-m" if what == "disk/m" else "m")).exists()
    assert not [f for f in tmp_path.rglob(".quern-*")]


def test_a_full_disk_of_checkpoints_on_rank_0_alone(quern, tmp_path):
    """It is told once in the run and once at its end, and the run goes on."""
    machine.need("mounting a disk")
    (tmp_path / "disk").mkdir()
    words = [*SMALL, "-o", "m", "--checkpoint", "disk/state", "--checkpoint-every", "5"]
    done = ranks.run(quern, 3, *words, cwd=tmp_path,
                     wrap=lambda i: full_disk(16) if i == 0 else [])
    told = f"note: rank 0 on {socket.gethostname()}: cannot write disk/state/checkpoint"
    assert done[0][2].count(told) == 2 and "there is no good checkpoint" in done[0][2]
    assert all(o == e == "" for _, o, e in done[1:]) and (tmp_path / "m").exists()
    assert not [f for f in tmp_path.rglob(".quern-*")]


def test_a_checkpoint_folder_that_cannot_be_made(quern, tmp_path):
    for _ in range(5):
        done = ranks.run(quern, 3, *SMALL, "-o", tmp_path / "m", "--quiet", "--checkpoint",
                         tmp_path / "no" / "state", status=1)
        said(done, "rank 0 on ", "cannot write", "make that folder first")


def test_nothing_is_left_behind(quern, tmp_path):
    """Sockets and shared memory have no names on any file system."""
    places = ["/dev/shm", tmp_path]
    before = {p: set(os.listdir(p)) for p in places}
    with ranks.Ranks(quern, 3, *SMALL, "-o", tmp_path / "m") as job:
        time.sleep(0.2)
        job.rank[1].kill()
        job.wait()
    for p in places:
        new = {f for f in set(os.listdir(p)) - before[p] if "quern" in f and p != tmp_path}
        assert not new
    assert {f.name for f in tmp_path.iterdir()} <= {"m"}
