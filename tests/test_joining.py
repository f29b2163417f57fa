"""Ranks on their way to each other: what they say while they wait, and torchrun, which starts them.

More of how they find each other is in test_ranks.py, and what goes wrong in test_bad_launch.py."""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time

import pytest

import launch
import python_package
import ranks
import recipes
from test_ranks import SMALL, files, words_of  # noqa: F401  (files is a fixture)


def lines_until(process, text, seconds=60):
    """What the process prints on stderr, up to the line with that text."""
    lines, until = [], time.monotonic() + seconds
    while not lines or text not in lines[-1]:
        assert select.select([process.stderr], [], [], max(0, until - time.monotonic()))[0], lines
        lines.append(process.stderr.readline())
        assert lines[-1], lines
    return lines


def test_ranks_say_what_they_wait_for(quern, tmp_path):
    """On stderr, after a moment; with --json nothing else than events is on stdout."""
    port = ranks.free_port()

    def start(rank, *more):
        words = [*SMALL, "--json", "-o", tmp_path / "m", "--meet", f"127.0.0.1:{port}", "--ranks", 3,
                 "--rank", rank, *more]
        return subprocess.Popen([quern, *map(str, words)], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    started = [start(1)]
    try:
        (line,) = lines_until(started[0], "waits")
        assert line.startswith(f"quern train: rank 1 waits for rank 0 to listen at 127.0.0.1:{port}; ")
        assert "the limit is 60 seconds (--meet-timeout)" in line
        started.append(start(0))
        lines_until(started[1], f"rank 0 waits at 127.0.0.1:{port} for rank 2: 2 of 3 ranks are there; ")
        (line,) = lines_until(started[0], "waits")
        assert f"rank 1 is connected to rank 0 at 127.0.0.1:{port} and waits for other ranks of 3" in line
        started.append(start(2))
        done = [p.communicate(timeout=60) for p in started]
    finally:
        for p in started:
            p.kill()
    assert [p.returncode for p in started] == [0, 0, 0]
    assert all("waits" in line for _, err in done for line in err.splitlines())  # on a busy machine
    assert [json.loads(line)["event"] for line in done[1][0].splitlines()] == ["start", "epoch", "end"]
    assert done[0][0] == done[2][0] == ""


def test_a_quiet_rank_waits_in_silence(run_quern, tmp_path):
    done = run_quern(*SMALL, "-o", tmp_path / "m", "--meet", f"127.0.0.1:{ranks.free_port()}",
                     "--ranks", "2", "--rank", "0", "--meet-timeout", "4", "--quiet", status=1)
    assert "waits" not in done.stderr and "rank 1 did not come" in done.stderr


SEARCH = """
import quern
quern.ranks.join(meet={meet!r}, ranks=2, rank=1)
try:
    quern.search(quern.digits(20), grid={{"lr": [0.1, 0.2]}}, epochs=1)
except quern.ClusterError as error:
    print(error)
"""


def test_another_command_cannot_join_a_training(quern, run_quern, tmp_path):
    """It would compute alone, or wait for the other ranks for ever; also from Python."""
    meet = f"127.0.0.1:{ranks.free_port()}"
    place = ["--meet", meet, "--ranks", 2, "--rank"]
    words = [*SMALL]
    words[words.index("--epochs") + 1] = 10**6
    words += ["-o", tmp_path / "m", *place, 0, "--min-ranks", 1]
    training = subprocess.Popen([quern, *map(str, words)], text=True, stderr=subprocess.PIPE)
    try:
        lines_until(training, "items/s")
        done = run_quern("data", "info", recipes.FEW["data"], *place, 1, status=1)
        late = subprocess.run([sys.executable, "-c", SEARCH.format(meet=meet)], text=True, capture_output=True,
                              timeout=60, env={**os.environ, "PYTHONPATH": str(python_package.folder())})
    finally:
        training.kill()
        training.communicate()
    assert done.stdout == ""
    assert "has begun, and this command cannot join it" in done.stderr
    assert "has begun, and a search cannot join it" in late.stdout, late.stderr


def start_torchrun(quern, count, port, *words, **more):
    """The ranks as torchrun with this MASTER_PORT starts them on one machine."""
    run = []
    for rank in range(count):
        env = launch.clean_environment(TORCHELASTIC_RUN_ID="none", RANK=str(rank), LOCAL_RANK=str(rank),
                                       WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count),
                                       MASTER_ADDR="some-name", MASTER_PORT=str(port), **more)
        run.append(subprocess.Popen([quern, *map(str, words)], text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, env=env))
    return run


def under_torchrun(quern, count, *words, port=None, **more):
    """Starts them and waits for them. Returns [(exit code, stderr)]."""
    run = start_torchrun(quern, count, port or ranks.free_port() - 1, *words, **more)
    try:
        texts = [p.communicate(timeout=60)[1] for p in run]
    finally:
        for p in run:
            p.kill()
    return [(p.returncode, text) for p, text in zip(run, texts)]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("key", [False, True])
def test_torchrun(quern, files, tmp_path, count, key):
    words = [*words_of("dropout", files), "-o", tmp_path / "m"]
    if key:
        (tmp_path / "key").write_text("0123456789abcdef\n")
        (tmp_path / "key").chmod(0o600)
        words += ["--key-file", tmp_path / "key"]
    done = under_torchrun(quern, count, *words)
    assert [code for code, _ in done] == [0] * count, done
    assert recipes.sha256(tmp_path / "m") == recipes.table()["dropout"]
    assert (f"ranks   {count}: rank 0 on" in done[0][1]) == (count > 1)
    assert all(text == "" for _, text in done[1:])


def test_torchrun_beside_a_program_at_its_port(quern, files, tmp_path):
    """The ranks meet at one of the next ports. Whoever listens at the first one, and does not
    answer, costs a moment."""
    words = [*words_of("dropout", files), "-o", tmp_path / "m", "--quiet"]
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", ranks.free_port()))
        holder.listen()
        done = under_torchrun(quern, 2, *words, port=holder.getsockname()[1] - 1)
    assert [code for code, _ in done] == [0, 0], done
    assert recipes.sha256(tmp_path / "m") == recipes.table()["dropout"]


def test_two_runs_of_torchrun_at_ports_side_by_side(quern, files, tmp_path):
    """The store of the second one listens where the first would meet. Ranks of both come to the
    ports after it, and each finds its own rank 0."""
    runs = []
    with socket.socket() as store:
        store.bind(("127.0.0.1", ranks.free_port()))
        store.listen()
        port = store.getsockname()[1]
        try:
            for i in range(2):
                runs.append(start_torchrun(quern, 2, port - 1 + i, *words_of("dropout", files), "-o",
                                           tmp_path / f"m{i}", "--quiet"))
            texts = [p.communicate(timeout=60) for run in runs for p in run]
        finally:
            for p in sum(runs, []):
                p.kill()
    assert [p.returncode for run in runs for p in run] == [0] * 4, texts
    assert {recipes.sha256(tmp_path / f"m{i}") for i in range(2)} == {recipes.table()["dropout"]}


def hold_ports(held, count):
    """Listens at so many ports side by side until `held` ends; returns the first. Another test that has
    one of them for a moment would let it go again, so these are looked for elsewhere."""
    for _ in range(100):
        first = ranks.free_port()
        with contextlib.ExitStack() as mine, contextlib.suppress(OSError):
            for port in range(first, first + count):
                holder = mine.enter_context(socket.socket())
                holder.bind(("127.0.0.1", port))
                holder.listen()
            held.push(mine.pop_all())
            return first
    raise OSError(f"no {count} ports side by side are free")


def test_torchrun_without_a_free_port(quern, tmp_path):
    """Rank 0 names the ports at once; the other rank names them at the end of its time."""
    with contextlib.ExitStack() as held:
        first = hold_ports(held, 8)
        done = under_torchrun(quern, 2, *SMALL, "-o", tmp_path / "m", "--meet-timeout", "4",
                              port=first - 1)
    assert [code for code, _ in done] == [1, 1]
    assert f"the ports {first} to {first + 7} were tried" in done[0][1]
    assert f"127.0.0.1, ports {first} to {first + 7}, within 4 seconds" in done[1][1]
