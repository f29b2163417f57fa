"""The command over several ranks, started by hand with --meet: the same bytes, one voice, one exit
code, and plain words when something is wrong. Launchers, hosts and random deaths have tests of
their own (test_cluster*.py)."""

import json
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time

import pytest

import devices
import builds
import hosts
import midprint
import midwrite
import machine
import ranks
import recipes


@pytest.fixture(scope="session")
def files(quern, tmp_path_factory):
    return recipes.make_data([quern], tmp_path_factory.mktemp("data"))


def words_of(name, files):
    return ["train", *(a.format(**files) for a in shlex.split(recipes.RECIPES[name])),
            "--threads", "1"]


SMALL = ["train", *recipes.DIGITS, "--epochs", "1", "--batch", "160", "--model", "dense 10 softmax",
         "--threads", "1"]


def said(done, *texts, at=0, own=()):
    """All texts stand in what rank `at` printed on stderr. Of the others only the ranks `own` printed
    anything: one line, with their name and one of the texts after the first."""
    for text in texts:
        assert text in done[at][2]
    for i, (_, out, err) in enumerate(done):
        if i in own:
            assert out == "" and len(err.splitlines()) == 1, err
            assert re.match(rf"quern \w+: rank {i} on [^ ]+: ", err), err
            assert any(text in err for text in texts[1:]), err
        elif i != at:
            assert (out, err) == ("", "")


# ---------------------------------------------------------------- the same bytes, one voice

def test_features_are_told_by_name(quern, tmp_path):
    """The ranks share values, and whoever has read the file knows what its columns are called."""
    (tmp_path / "t.csv").write_text("sick,dose,rate\n" + "".join(
        f"{i % 2},{5000 + i * 37 % 900}.5,{i * 13 % 50 / 1000}\n" for i in range(80)))
    for more in ([], ["--data-from-rank0"], ["--valid", "0.5"]):
        done = ranks.run(quern, 2, "train", "--data", tmp_path / "t.csv", "--arith", "i14", "--scale",
                         "none", "--epochs", "1", "--model", "dense 2 softmax", *more, "-o",
                         tmp_path / "m")
        said(done, "these keep fewer than three bits (1 of 2): rate;")


@pytest.mark.parametrize("count, name", [
    pytest.param(count, name, id=f"{name}-{count}", marks=[machine.LONG] * ((i + k) % 2))
    for i, name in enumerate(recipes.FLOATS) for k, count in enumerate((1, 2, 3, 5))])
def test_training(quern, files, tmp_path, count, name):
    out = tmp_path / "m.safetensors"
    done = ranks.run(quern, count, *words_of(name, files), "--quiet", "-o", out)
    assert recipes.sha256(out) == recipes.table()[name]
    assert done[0][1].split() == [recipes.table()[name], str(out)]
    assert all(o == e == "" for _, o, e in done[1:])


@pytest.mark.parametrize("build", ["asan", "tsan"])
def test_sanitizer_builds(build, files, tmp_path):
    """Whole ranks are clean, from the meeting to the model."""
    program = builds.command(build, builds.ready(build) / "quern")
    ranks.run(None, 3, *words_of("batch-50-grain-7", files), "--quiet", "-o", tmp_path / "m",
              programs={i: program for i in range(3)}, env=builds.environment(build))
    assert recipes.sha256(tmp_path / "m") == recipes.table()["batch-50-grain-7"]


@pytest.mark.parametrize("name", ["dropout", "batch-50-grain-7"])
def test_arm_beside_intel(name, quern, files, tmp_path):
    """Processors of two makes in one step, one of them emulated; they even share their memory."""
    program = builds.command("aarch64-quick", builds.ready("aarch64-quick") / "quern")
    done = ranks.run(quern, 3, *words_of(name, files), "--json", "-o", tmp_path / "m",
                     programs={1: program})
    assert recipes.sha256(tmp_path / "m") == recipes.table()[name]
    end = json.loads(done[0][1].splitlines()[-1])
    assert [r["rank"] for r in end["ranks"] if r["items"] > 0] == [0, 1, 2]


def test_report(quern, tmp_path):
    """One report: its ranks are all there, and what they did adds up."""
    words = [w if w != "1" or SMALL[i - 1] != "--epochs" else "2" for i, w in enumerate(SMALL)]
    done = ranks.run(quern, 3, *words, "-o", tmp_path / "m", "--json")
    assert all(o == e == "" for _, o, e in done[1:])
    events = [json.loads(line) for line in done[0][1].splitlines()]
    assert [e["event"] for e in events] == ["start", "epoch", "epoch", "end"]
    assert [n.split(" on ")[0] for n in events[0]["ranks"]] == ["rank 0", "rank 1", "rank 2"]
    end = events[-1]
    assert end["items"] == 2 * recipes.FEW_ITEMS and [r["rank"] for r in end["ranks"]] == [0, 1, 2]
    assert sum(r["items"] for r in end["ranks"]) == 2 * recipes.FEW_ITEMS
    assert sum(w["items"] for w in end["workers"]) == 2 * recipes.FEW_ITEMS
    assert [w["rank"] for w in end["workers"]] == [0, 1, 2]
    for r in end["ranks"]:
        assert r["lost"] is False and r["recoveries"] == 0
        assert r["workers"] == 1 and r["worker_names"] == "cpu"
        assert r["items_per_s"] > 0 and 0 < r["busy"] <= 1 and 0 <= r["waiting"] < 1
    assert 0 < end["bound_over_T"] <= 1.05


def test_report_for_people(quern, tmp_path):
    done = ranks.run(quern, 2, *SMALL, "-o", tmp_path / "m")
    said(done, "ranks   2: rank 0 on ")
    text = done[0][1]
    assert "\nranks\n" in text and "waiting" in text and "\n  0/cpu " in text
    assert "\n  1/cpu " in text


@pytest.mark.parametrize("count", [1, 2, 3])
def test_prediction(quern, files, tmp_path, run_quern, count):
    model = tmp_path / "m"
    run_quern(*words_of("tanh-mse-sgd", files), "-o", model, "--quiet")
    words = ["predict", model, "--data", files["images"], "--labels", files["labels"], "--outputs"]
    run_quern(*words, "-o", tmp_path / "alone.csv")
    done = ranks.run(quern, count, *words, "-o", tmp_path / "ranks.csv")
    assert (tmp_path / "ranks.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()
    assert "accuracy" in done[0][1] and all(o == "" for _, o, _ in done[1:])
    done = ranks.run(quern, count, *words)
    assert done[0][1] == (tmp_path / "alone.csv").read_text()
    assert all(o == e == "" for _, o, e in done[1:])


@pytest.mark.parametrize("count", [2, 3])
def test_replay(quern, files, tmp_path, run_quern, count):
    model = tmp_path / "m"
    run_quern(*words_of("tanh-mse-sgd", files), "-o", model, "--quiet")
    words = ["replay", model, "--data", files["images"], "--labels", files["labels"]]
    done = ranks.run(quern, count, *words, "--quiet", "-o", tmp_path / "again")
    assert done[0][1].startswith("replay: identical, ")
    assert (tmp_path / "again").read_bytes() == model.read_bytes()
    changed = bytearray(model.read_bytes())
    changed[-2] ^= 1
    model.write_bytes(changed)
    done = ranks.run(quern, count, *words, status=3)
    said(done, "the replay differs: ")


def test_more_ranks_than_grains(quern, files, tmp_path):
    out = tmp_path / "m"
    ranks.run(quern, 5, *words_of("batch-1", files), "--quiet", "-o", out)
    assert recipes.sha256(out) == recipes.table()["batch-1"]


# ---------------------------------------------------------------- what ranks must have in common

def test_another_option_on_one_rank(quern, files, tmp_path):
    words = words_of("tanh-mse-sgd", files)
    done = ranks.run(quern, 3, *words, "-o", tmp_path / "m", own={1: ["--unit", "40"]}, status=1)
    said(done, "rank 1 on ", "differs from rank 0 on ", "in the recipe: unit 40 and 44",
         "start all ranks with the same options", own=[1])
    assert not (tmp_path / "m").exists()
    # Two against one: rank 0 is the odd one, and says so.
    done = ranks.run(quern, 3, *words, "-o", tmp_path / "m", own={0: ["--grain", "8"]}, status=1)
    said(done, "rank 0 on ", "differs from rank 1 on ", "in the recipe: grain 8 and 32")


def test_another_arithmetic_on_one_rank(quern, files, tmp_path):
    done = ranks.run(quern, 2, *words_of("tanh-mse-sgd", files), "-o", tmp_path / "m",
                     own={1: ["--arith", "i14"]}, status=1)
    said(done, "rank 1 on ", "differs from rank 0 on ", 'in the recipe: arith "i14" and "f32"',
         "start all ranks with the same options", own=[1])
    assert not (tmp_path / "m").exists()


def test_other_files_on_one_machine(quern, tmp_path):
    """One rank of a machine reads for all, so other files would be dropped. A file may have two names."""
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("y,x\n0,1\n1,2\n")
    (tmp_path / "link.csv").symlink_to("b.csv")
    words = ["data", "stats", "--json", "a.csv"]
    done = ranks.run(quern, 2, *words, cwd=tmp_path, own={0: ["b.csv"], 1: [tmp_path / "link.csv"]})
    assert '"count":4' in done[0][1].replace(" ", "")
    done = ranks.run(quern, 2, *words, cwd=tmp_path, own={0: ["[b]*.csv"], 1: ["c.csv"]}, status=1)
    for text in ("rank 1 on ", " names the data a.csv c.csv, and rank 0 on ", " a.csv [b]*.csv\n",
                 "name the same files on all ranks of a machine", "can be read in parts"):
        assert text in done[0][2]
    assert "names the data a.csv c.csv" in done[1][2]


def test_every_rank_that_differs_says_so(quern, tmp_path):
    done = ranks.run(quern, 5, *SMALL, "-o", tmp_path / "m", own={1: ["--seed", "8"], 3: ["--seed", "9"]},
                     status=1)
    said(done, "rank 1 on ", " (and 1 more rank) differs from rank 0 on ", "in the recipe: seed ",
         own=[1, 3])
    assert "seed 8 and 1" in done[1][2] and "seed 9 and 1" in done[3][2]
    done = ranks.run(quern, 4, *SMALL, "-o", tmp_path / "m", own={1: ["--seed", "x"], 3: ["--lr", "y"]},
                     status=2)
    said(done, "rank 1 on ", '--seed cannot be "x" (and 1 more rank failed)', " cannot be ", own=[1, 3])
    assert "--lr cannot be" in done[3][2]


ENDS_TOO = ": ends too: the rank that writes the files failed, and says why\n"
FULL = r"""
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static int is_full(int file) {
    char link[40], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    return readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/full/");
}
ssize_t write(int file, const void *bytes, size_t size) {
    if (!is_full(file))
        return syscall(SYS_write, file, bytes, size);
    errno = ENOSPC;
    return -1;
}
"""


def test_files_that_rank_0_cannot_write(quern, tmp_path, monkeypatch):
    """The others are well, and say in one line why they end."""
    (tmp_path / "full").mkdir()
    monkeypatch.setenv("LD_PRELOAD", str(midwrite.compiled(tmp_path, "full", FULL)))
    short = ["train", "--data", tmp_path / "t.csv", "--model", "dense 2 softmax", "--epochs", "1"]
    (tmp_path / "t.csv").write_text("".join(f"{i % 2},{i * 7 % 31}\n" for i in range(60)))
    done = ranks.run(quern, 3, *short, "-o", tmp_path / "m", "--run-dir", tmp_path / "full" / "r", status=1)
    said(done, "rank 0 on ", "No space left on device", own=[1, 2])
    assert all(re.search(r": ends too: rank 0 on \S+: cannot write ", text) for _, _, text in done[1:])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = ranks.run(quern, 3, *short, "-o", tmp_path / "full" / "m", status=1)
    said([(code, "", text) for code, _, text in done], "the model for ", "", own=[1, 2])
    assert all(text.endswith(ENDS_TOO) for _, _, text in done[1:])


@pytest.mark.parametrize("extra, says", [
    (["--test", "{images}", "--test-labels", "{labels}"], " in --test: "),
    (["--valid", "0.1"], " in --valid: "),
    (["--checkpoint", "state"], " in --checkpoint: "),
    (["--data-from-rank0"], " in --data-from-rank0: "),
])
def test_an_option_that_one_rank_lacks(quern, files, tmp_path, extra, says):
    done = ranks.run(quern, 2, *words_of("tanh-mse-sgd", files), "-o", tmp_path / "m", status=1,
                     own={1: [w.format(**files) for w in extra]}, cwd=tmp_path)
    said(done, "rank 1 on ", says, own=[1])


@pytest.mark.parametrize("extra, status, says", [
    (["--lerning-rate", "1"], 2, ['there is no option "--lerning-rate"']),
    (["--devices", "cuda:77"], 1, ["cuda:77"]),
    (["--checkpoint-every", "3"], 2, ["--checkpoint-every needs --checkpoint"]),
])
def test_a_slip_on_one_rank(quern, tmp_path, extra, status, says):
    done = ranks.run(quern, 3, *SMALL, "-o", tmp_path / "m", own={2: extra}, status=status)
    said(done, "rank 2 on ", *says, own=[2])


@pytest.mark.parametrize("words, status, says", [
    (["--lerning-rate", "1"], 2, 'there is no option "--lerning-rate"'),
    (["--data", "missing.csv"], 1, "missing.csv"),
    (["--model", "dense 3 cube"], 2, "cube"),
])
def test_a_slip_on_all_ranks_is_told_once(quern, tmp_path, words, status, says):
    done = ranks.run(quern, 3, "train", *words, "-o", tmp_path / "m", status=status, cwd=tmp_path)
    said(done, says)


def test_failures_of_all_name_nobody(quern, tmp_path):
    done = ranks.run(quern, 2, "train", "--batch", "0", "-o", tmp_path / "m", status=2)
    said(done, "quern train: --batch cannot be \"0\"\n")


def test_a_number_that_leaves_the_range(quern, files, tmp_path):
    """The step is named once, by the rank that speaks, and no file is written."""
    words = words_of("none", files)
    words[words.index("--lr") + 1] = "1e30"
    done = ranks.run(quern, 3, *words, "-o", tmp_path / "m", status=1)
    assert "step" in done[0][2] and not (tmp_path / "m").exists()
    assert all(o == e == "" for _, o, e in done[1:])


def test_an_output_that_cannot_be_written(quern, tmp_path):
    done = ranks.run(quern, 2, *SMALL, "-o", tmp_path / "no" / "m", status=1)
    said(done, "rank 0 on ", "cannot write", "make that folder first", own=[1])


@pytest.mark.parametrize("count", [None, 2])
@pytest.mark.parametrize("words", [
    SMALL, [*SMALL, "--json"], ["predict"], ["predict", "--outputs"], ["predict", "-o"]])
def test_a_standard_output_that_is_full(words, count, quern, files, tmp_path, run_quern):
    """The rank that speaks says so with its name and the reason; all end with 1. Its files are
    written all the same."""
    out = tmp_path / "m"
    if words[0] == "predict":
        many = tmp_path / "many.idx"  # a table of more than a block
        run_quern("data", "synth", "digits", "--items", "4000", "-o", many, "--labels",
                  tmp_path / "labels.idx", "--quiet")
        words = [words[0], out, "--data", many, *words[1:]]
        run_quern(*words_of("tanh-mse-sgd", files), "-o", out, "--quiet")
        words += [tmp_path / "table"] if words[-1] == "-o" else []
    else:
        words = [*words, "-o", out]
    name = f"rank 0 on {socket.gethostname()}: " if count else ""
    says = f"quern {words[0]}: {name}cannot write to the standard output: No space left on device\n"
    wrap = ["sh", "-c", 'exec "$@" >/dev/full', "sh"]
    if count:
        done = ranks.run(quern, count, *words, wrap=lambda i: wrap if i == 0 else [], status=1)
        assert done[1][1] == "" and done[1][2].endswith(ENDS_TOO)
        err = done[0][2]
    else:
        done = subprocess.run([*wrap, quern, *map(str, words)], capture_output=True, text=True,
                              timeout=60)
        assert done.returncode == 1
        err = done.stderr
    assert err.count("cannot write") == 1 and says in err
    assert out.exists() and (words[-2] != "-o" or words[-1].exists())


# ---------------------------------------------------------------- how ranks find each other

@pytest.mark.parametrize("words, status, says", [
    (["--meet", "127.0.0.1:5000"], 2, "--meet needs --ranks"),
    (["--meet", "127.0.0.1:5000", "--ranks", "2"], 2, "--meet needs --rank"),
    (["--meet", "127.0.0.1:5000", "--ranks", "2", "--rank", "2"], 2, "there is no rank 2 of 2"),
    (["--meet", "127.0.0.1:5000", "--ranks", "2", "--rank", "0", "--min-ranks", "3"], 2, "--min-ranks cannot be 3"),
    (["--ranks", "2"], 2, "--ranks needs --meet"),
    (["--min-ranks", "2"], 2, "--min-ranks needs --meet"),
    (["--rank", "0"], 2, "--rank needs --meet"),
    (["--key-file", "key"], 2, "--key-file needs --meet"),
    (["--meet", "127.0.0.1:5000", "--alone"], 2, "--alone contradicts --meet"),
    (["--meet", "127.0.0.1:5000", "--ranks", "2", "--rank", "x"], 2, "--rank cannot be"),
    (["--meet", "127.0.0.1:5000", "--ranks", "2", "--rank", "0", "--rank-timeout", "-3"], 2,
     "--rank-timeout cannot be"),
    (["--meet", "192.0.2.1:5000", "--ranks", "2", "--rank", "1"], 2, "key"),
    (["--meet", "nonsense", "--ranks", "2", "--rank", "1"], 2, "nonsense"),
])
def test_wrong_words(run_quern, tmp_path, words, status, says):
    done = run_quern(*SMALL, "-o", tmp_path / "m", *words, status=status, timeout=50)  # it may wait for 60 s
    assert says in done.stderr


def test_keys(quern, run_quern, tmp_path):
    key = tmp_path / "key"
    words = [*SMALL, "-o", tmp_path / "m", "--meet", "127.0.0.1:1", "--ranks", "2", "--rank", "1",
             "--key-file", key]
    absent = run_quern(*words, status=1).stderr
    assert "cannot open the file of the key: No such file" in absent and "make one with" in absent
    key.write_text("0123456789abcdef\n")
    key.chmod(0o640)
    assert f"chmod 600 {key}" in run_quern(*words, status=2).stderr
    key.chmod(0o600)
    key.write_text("short\n")
    assert "less than 16 characters" in run_quern(*words, status=2).stderr
    key.write_text("0123456789abcdef\n" * 2)
    assert "not one line" in run_quern(*words, status=2).stderr
    key.write_bytes(b"0123456789\0abcdefghijkl\n")
    assert "not one line" in run_quern(*words, status=2).stderr
    key.write_text("0123456789abcdef" * 200)
    assert "not one line" in run_quern(*words, status=2).stderr
    key.write_text("0123456789abcdef\n")
    done = ranks.run(quern, 2, *SMALL, "--quiet", "-o", tmp_path / "m", "--key-file", key)
    assert done[0][1].endswith(f"{tmp_path / 'm'}\n")


def test_the_wrong_key(quern, tmp_path):
    for name, text in (("key", "0123456789abcdef"), ("other", "0123456789abcdeg")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    done = ranks.run(quern, 2, *SMALL, "-o", tmp_path / "m", "--meet-timeout", "3", status=1,
                     own={0: ["--key-file", tmp_path / "key"], 1: ["--key-file", tmp_path / "other"]})
    assert all(e.startswith("quern train: ") for _, _, e in done)
    assert not (tmp_path / "m").exists()


def test_a_rank_that_does_not_come(run_quern, tmp_path):
    done = run_quern(*SMALL, "-o", tmp_path / "m", "--meet", f"127.0.0.1:{ranks.free_port()}",
                     "--ranks", "3", "--rank", "0", "--meet-timeout", "1", status=1, timeout=50)
    assert "ranks 1, 2 did not come" in done.stderr


def test_alone_whatever_the_launcher_says(run_quern, tmp_path):
    env = dict(os.environ, OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_RANK="1", PMI_SIZE="4",
               PMI_RANK="1")
    run_quern(*SMALL, "--quiet", "-o", tmp_path / "m", "--alone", env=env)
    assert (tmp_path / "m").exists()


# ---------------------------------------------------------------- interruptions and deaths

LONG = ["train", *recipes.DIGITS, "--epochs", "5000", "--model", "dense 64 relu; dense 10 softmax", "--threads", "1"]


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.002)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_an_interruption_of_one_stops_all(quern, run_quern, tmp_path, number):
    words = [*LONG, "-o", "m", "--checkpoint", "state"]
    with ranks.Ranks(quern, 3, *words, "--checkpoint-every", "10", cwd=tmp_path) as job:
        wait_for(lambda: (tmp_path / "state").is_dir()
                 and any(f.name.startswith("checkpoint-") for f in (tmp_path / "state").iterdir()))
        job.rank[1].send_signal(number)
        done = job.wait()
    assert [code for code, _, _ in done] == [130] * 3
    assert "interrupted: " in done[0][2] and "--resume" in done[0][2]
    assert "saved in state" in done[0][2]
    assert all("interrupted" not in e for _, _, e in done[1:])
    assert not (tmp_path / "m").exists()


def test_going_on_with_other_counts(quern, files, tmp_path):
    """Stopped by steps' count on 3 ranks, gone on with on 2, then alone: the usual bytes."""
    words = ["train", *(a.format(**files) for a in shlex.split(recipes.RECIPES["adam"])),
             "--threads", "1", "-o", "m", "--checkpoint", "state", "--checkpoint-every", "1"]
    with ranks.Ranks(quern, 3, *words, "--resume", cwd=tmp_path) as job:
        wait_for(lambda: (tmp_path / "state").is_dir() and any(
            f.name.startswith("checkpoint-") for f in (tmp_path / "state").iterdir()))
        for r in job.rank:
            r.kill()
    ranks.run(quern, 2, *words, "--resume", "--quiet", cwd=tmp_path)
    assert recipes.sha256(tmp_path / "m") == recipes.table()["adam"]


def test_the_next_rank_speaks_when_the_first_dies(quern, run_quern, tmp_path):
    words = ["train", *recipes.DIGITS, "--epochs", "8", "--model", "dense 32 relu; dense 10 softmax",
             "--threads", "1", "--batch", "160", "--json"]
    run_quern(*words, "-o", tmp_path / "alone")
    trace = tmp_path / "trace.json"
    env = dict(os.environ, **midprint.environment(midprint.library(tmp_path), "after", '"event":"epoch","epoch":2,'))
    with ranks.Ranks(quern, 3, *words, "-o", tmp_path / "m", "--trace", trace, env=env) as job:
        wait_for(lambda: midwrite.stopped(job.rank[0].pid))
        job.rank[0].kill()
        done = job.wait()
    assert [code for code, _, _ in done] == [-9, 0, 0]
    assert (tmp_path / "m").read_bytes() == (tmp_path / "alone").read_bytes()
    events = [json.loads(line) for line in done[1][1].splitlines()]
    assert events[0]["event"] == "ranks" and "rank 0 on " in events[0]["text"]
    assert events[0]["alive"] == 2 and events[-1]["event"] == "end"
    epochs = [e["epoch"] for e in events if e["event"] == "epoch"]
    assert epochs == list(range(epochs[0], 9))
    assert [r["lost"] for r in events[-1]["ranks"]] == [True, False, False]
    assert max(r["recoveries"] for r in events[-1]["ranks"]) == 1
    assert done[2][1] == ""
    # When the others noticed and when the round was whole again, on the time line of both.
    marks = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "i"]
    lost, whole = ({e["pid"]: e["ts"] for e in marks if e["name"] == name}
                   for name in ("loss", "made up"))
    assert set(lost) == set(whole) == {2, 3}
    for r in (1, 2):
        seconds = events[-1]["ranks"][r]["longest_recovery"]
        assert 0 < seconds <= 1e-6 * (whole[r + 1] - lost[r + 1]) + 1e-6


@pytest.mark.parametrize("launch", [9, 40])
@pytest.mark.parametrize("who", [0, 1])
def test_a_rank_whose_device_fails_leaves(quern, run_quern, files, tmp_path, who, launch):
    """While it is opened (9) or in a step; it says so and ends with 0, so that no launcher ends the
    others, and they go on."""
    def with_broken_device(rank, launch=2):
        _, there = devices.emulated_cuda(environment=dict(os.environ))
        path = there["LD_LIBRARY_PATH"]
        return ["env", f"LD_LIBRARY_PATH={path}", f"QN_FAKE_CUDA=devices=1,launch={launch}"] \
            if rank == who else []

    out, own = tmp_path / "m", {who: ["--devices", "cuda:0"]}
    done = ranks.run(quern, 3, *words_of("tanh-mse-sgd", files), "-o", out, own=own,
                     wrap=lambda rank: with_broken_device(rank, launch))
    assert recipes.sha256(out) == recipes.table()["tanh-mse-sgd"]
    assert f"rank {who} on " in done[who][2]
    assert "the other ranks continue without this one" in done[who][2]
    assert recipes.table()["tanh-mse-sgd"] in done[0 if who else 1][1]
    words = ["predict", out, "--data", files["images"], "-o"]
    run_quern(*words, tmp_path / "alone.csv")
    done = ranks.run(quern, 3, *words, tmp_path / "p.csv", own=own, wrap=with_broken_device)
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()
    assert "the other ranks continue without this one" in done[who][2]


def test_death_while_the_model_is_written(quern, files, tmp_path):
    """Rank 0 is killed as its file stands beside the model's place; the next one writes it, the
    same."""
    folder = tmp_path / "out"
    folder.mkdir()
    env = dict(os.environ, **midwrite.environment(midwrite.library(tmp_path), folder))
    with ranks.Ranks(quern, 2, *words_of("relu", files), "-o", folder / "m", env=env) as job:
        wait_for(lambda: midwrite.stopped(job.rank[0].pid))
        assert list(folder.iterdir()) == list(folder.glob(f".quern-{job.rank[0].pid}-*"))
        job.rank[0].kill()
        done = job.wait()
    assert [code for code, _, _ in done] == [-9, 0]
    digest = recipes.table()["relu"]
    assert recipes.sha256(folder / "m") == digest
    assert done[1][1].endswith(f"{digest}  {folder / 'm'}\n")


def test_a_killed_ranks_file_is_cleared(quern, tmp_path):
    """What a process leaves beside the model that it was writing goes with the next start, before
    that trains; a file of a process that lives stays."""
    folder = tmp_path / "out"
    folder.mkdir()
    env = dict(os.environ, **midwrite.environment(midwrite.library(tmp_path), folder))
    words = [*SMALL, "--quiet", "-o", folder / "m"]
    with ranks.Ranks(quern, 1, *words, env=env) as job:
        wait_for(lambda: midwrite.stopped(job.rank[0].pid))
        left = next(folder.glob(".quern-*"))
        ranks.run(quern, 1, *SMALL, "--quiet", "-o", folder / "n")
        assert left.exists()
        job.rank[0].kill()
        job.wait()
    assert left.exists()
    with ranks.Ranks(quern, 1, *LONG, "--quiet", "-o", folder / "m"):
        wait_for(lambda: not left.exists())


def events_of(done, kind):
    """Of all ranks, in their order."""
    return [e for _, out, _ in done for e in map(json.loads, out.splitlines()) if e["event"] == kind]


TOLD = [w if w != "1" or SMALL[i - 1] != "--epochs" else "6" for i, w in enumerate(SMALL)] + ["--json"]


@pytest.mark.parametrize("when, text", [("before", '"event":"epoch","epoch":3,'),
                                        ("after", '"event":"epoch","epoch":3,'),
                                        ("before", '"event":"end"'), ("after", '"event":"end"')])
def test_an_event_outlives_the_rank_that_told_it(quern, tmp_path, when, text):
    """Rank 0 is killed beside its line. What it did not write the next rank does. What it wrote and
    could not confirm is written again, with the same number: docs/formats.md says so."""
    env = dict(os.environ, **midprint.environment(midprint.library(tmp_path), when, text))
    with ranks.Ranks(quern, 3, *TOLD, "-o", tmp_path / "m", env=env) as job:
        wait_for(lambda: midwrite.stopped(job.rank[0].pid))
        job.rank[0].kill()
        done = job.wait()
    assert [code for code, _, _ in done] == [-9, 0, 0]
    told, ends = events_of(done, "epoch"), events_of(done, "end")
    again = when == "after"
    repeated = [3] if again and "epoch" in text else []
    assert [e["epoch"] for e in told] == sorted([1, 2, 3, 4, 5, 6, *repeated])
    assert len(ends) == 1 + (again and "end" in text)
    assert all(e["digest"] == ends[0]["digest"] and e["exit"] == 0 for e in ends)
    assert len({(e["epoch"], e["train_loss"], e["test_loss"]) for e in told}) == 6
    assert done[2][1] == ""


@pytest.mark.parametrize("seed", range(6))
def test_no_event_is_missing_whenever_rank_0_dies(quern, tmp_path, seed):
    """Killed at chance near the end of an epoch or of the run. The line that it wrote last may come
    twice, no other one does."""
    dice = random.Random(seed)
    after = dice.randint(1, 6)
    with ranks.Ranks(quern, 3, *TOLD, "-o", tmp_path / "m") as job:
        lines = []
        for line in job.rank[0].stdout:
            lines.append(line)
            if f'"epoch":{after},' in line:
                break
        time.sleep(dice.choice([0, 0, dice.uniform(0, 0.02)]))
        job.rank[0].kill()
        done = job.wait()
    done[0] = (done[0][0], "".join(lines) + done[0][1], done[0][2])
    first, rest = events_of(done[:1], "epoch"), events_of(done[1:], "epoch")
    assert [e["epoch"] for e in first] == list(range(1, len(first) + 1))
    assert [e["epoch"] for e in rest] in ([*range(len(first) + i, 7)] for i in (0, 1))
    assert len(events_of(done, "end")) in (1, 2) and len(events_of(done[1:], "end")) <= 1


def test_a_model_that_cannot_be_written_is_kept(quern, run_quern, tmp_path):
    """Its folder is gone by then: it goes to the checkpoints, else to the temporary folder, and
    replaces nothing there. The exit code is 1, and the place is told in the error and in `end`."""
    run_quern(*TOLD, "-o", tmp_path / "right")
    wanted = recipes.sha256(tmp_path / "right")
    spare = tmp_path / "spare"
    spare.mkdir()
    (spare / "rescued-m").write_text("somebody's")
    for more, place in ((["--checkpoint", tmp_path / "state"], tmp_path / "state" / "rescued-m"),
                        ([], spare / "rescued-m.2")):
        (tmp_path / "out").mkdir()
        with ranks.Ranks(quern, 2, *TOLD, *more, "-o", tmp_path / "out" / "m",
                         env=dict(os.environ, TMPDIR=str(spare))) as job:
            line = job.rank[0].stdout.readline()
            shutil.rmtree(tmp_path / "out")
            done = job.wait()
        assert [code for code, _, _ in done] == [1, 1]
        error, end = events_of(done, "error")[0], json.loads(done[0][1].splitlines()[-1])
        assert recipes.sha256(place) == wanted
        assert error["where"] == end["file"] == str(place) and error["exit"] == end["exit"] == 1
        assert end["event"] == "end" and end["digest"] == wanted and '"start"' in line
        assert "No such file or directory" in error["what"] and f"is in {place}" in error["what"]
        assert f"mv {place} {tmp_path / 'out' / 'm'}" in error["remedy"]
        assert done[1][1] == "" and done[1][2].endswith(ENDS_TOO)
    assert (spare / "rescued-m").read_text() == "somebody's"


# ---------------------------------------------------------------- several hosts

@pytest.fixture
def net():
    with hosts.Hosts(2) as made:
        yield made


def over_hosts(net, quern, tmp_path, *words, **more):
    key = net.folder / "key"
    key.write_text("a secret of this test alone\n")
    key.chmod(0o600)
    return ranks.run(quern, 2, *words, "--key-file", key, wrap=lambda i: net.on(i, []),
                     meet=f"{net.addresses[0]}:{ranks.free_port()}", **more)


def give(net, host, files, names):
    """Copies of those files into the host's own folder."""
    for name in names:
        subprocess.run(net.on(host, ["cp", str(files[name]), f"{net.own}/"]), check=True)


def test_data_from_rank_0(net, quern, files, tmp_path):
    """The files are on the first host alone; the second has neither data nor model."""
    give(net, 0, files, ["images", "labels"])
    own = {**files, "images": net.own / files["images"].name,
           "labels": net.own / files["labels"].name}
    words = words_of("valid", own)
    out = net.own / "m"
    done = over_hosts(net, quern, tmp_path, *words, "--quiet", "--data-from-rank0", "-o", out)
    assert done[0][1].split()[0] == recipes.table()["valid"]
    done = over_hosts(net, quern, tmp_path, "predict", out, "--data", own["images"], "--labels",
                      own["labels"], "--data-from-rank0", "-o", net.own / "p.csv")
    assert "accuracy" in done[0][1]
    done = over_hosts(net, quern, tmp_path, *words, "-o", out, status=1)
    said(done, "rank 1 on host-b: ", str(own["images"]), own=[1])


def test_other_data_on_one_host(net, quern, files, tmp_path):
    give(net, 0, files, ["images", "labels"])
    give(net, 1, files, ["images", "labels"])
    label = net.own / files["labels"].name
    other = (files["labels"].read_bytes()[20] + 1) % 10
    subprocess.run(net.on(1, ["sh", "-c", f"printf '\\{other}' | dd of={label} bs=1 seek=20"
                                          " conv=notrunc"]), check=True, capture_output=True)
    own = {**files, "images": net.own / files["images"].name, "labels": label}
    done = over_hosts(net, quern, tmp_path, *words_of("valid", own), "-o", net.own / "m", status=1)
    said(done, "rank 1 on host-b differs from rank 0 on host-a in the training data: ", "digest",
         "--data-from-rank0", own=[1])


def test_another_host_writes_the_model(net, quern, tmp_path):
    """Where the first host has lost the folder, the second one writes there, and says so."""
    out = net.own / "out"
    for host in (0, 1):
        subprocess.run(net.on(host, ["mkdir", str(out)]), check=True)
    key = net.folder / "key"
    key.write_text("a secret of this test alone\n")
    key.chmod(0o600)
    env = dict(os.environ, **midprint.environment(midprint.library(tmp_path), "after", '"event":"start"'))
    with ranks.Ranks(quern, 2, *TOLD, "-o", out / "m", "--key-file", key, env=env,
                     wrap=lambda i: net.on(i, []),
                     meet=f"{net.addresses[0]}:{ranks.free_port()}") as job:
        wait_for(lambda: midwrite.stopped(job.rank[0].pid))
        subprocess.run(net.on(0, ["rmdir", str(out)]), check=True)
        job.rank[0].send_signal(signal.SIGCONT)
        done = job.wait()
    assert [code for code, _, _ in done] == [0, 0]
    end, note = events_of(done, "end")[0], events_of(done, "note")[-1]["text"]
    assert end["file"] == str(out / "m") and end["exit"] == 0
    assert "rank 0 on host-a: cannot open the folder" in note
    assert "rank 1 on host-b has written the model there" in note
    told = subprocess.run(net.on(1, ["sha256sum", str(out / "m")]), capture_output=True, text=True)
    assert told.stdout.split()[0] == end["digest"]


# ---------------------------------------------------------------- ranks that are started again

class Rendezvous:
    """Ranks of one run that are started one by one, and again."""

    def __init__(self, quern, count, folder):
        self.port = ranks.free_port()
        self.words = [quern, *SMALL, "-o", folder / "m", "--meet", f"127.0.0.1:{self.port}",
                      "--ranks", count]
        self.rank = {}
        self.started = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.started:
            p.kill()
            p.communicate()

    def start(self, *which, more=()):
        for i in which:
            self.rank[i] = subprocess.Popen([*map(str, [*self.words, *more]), "--rank", str(i)], text=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.started.append(self.rank[i])

    def kill(self, *which):
        for i in which:
            self.rank[i].kill()
            self.rank[i].wait()

    def wait_until(self, connections):
        """Rank 0 listens, and so many others have told it where they are."""
        wait_for(lambda: ranks.have_come(self.port, connections))

    def all_meet(self, run_quern, folder):
        assert [p.wait(timeout=60) for p in self.rank.values()] == [0] * len(self.rank)
        run_quern(*SMALL, "-o", folder / "alone")
        assert recipes.sha256(folder / "m") == recipes.sha256(folder / "alone")


@pytest.mark.parametrize("come", [[], [1], [2, 1]])
def test_rank_0_is_started_again_in_the_rendezvous(quern, run_quern, tmp_path, come):
    """Rank 0 is killed before the others have come, or after some have: the next rank 0 meets
    them all."""
    with Rendezvous(quern, 4, tmp_path) as job:
        job.start(0, *come)
        job.wait_until(len(come))
        job.kill(0)
        job.start(*(r for r in (1, 2) if r not in come))
        job.start(0)
        job.wait_until(2)
        job.start(3)
        job.all_meet(run_quern, tmp_path)


def test_rank_0_is_killed_again_and_again(quern, run_quern, tmp_path):
    with Rendezvous(quern, 3, tmp_path) as job:
        job.start(1)
        for _ in range(3):
            job.start(0)
            job.wait_until(1)
            job.kill(0)
        job.start(0, 2)
        job.all_meet(run_quern, tmp_path)


def test_ranks_0_and_1_are_started_again(quern, run_quern, tmp_path):
    """Rank 1 is killed and started again between two lives of rank 0, and while rank 0 waits."""
    with Rendezvous(quern, 4, tmp_path) as job:
        job.start(0, 1, 2)
        job.wait_until(2)
        job.kill(1)
        job.kill(0)
        job.start(1, 0)
        job.wait_until(2)
        job.kill(1)
        job.start(1, 3)
        job.all_meet(run_quern, tmp_path)


def test_rank_0_is_killed_while_ranks_connect(quern, run_quern, tmp_path):
    """All ranks have come, and one stands still, so the others wait for its connections with the
    addresses of a rank 0 that then is killed."""
    with Rendezvous(quern, 3, tmp_path) as job:
        job.start(0, 2)
        job.wait_until(1)
        job.rank[2].send_signal(signal.SIGSTOP)
        job.start(1)
        wait_for(lambda: ranks.sockets_at(job.port) == -1)  # rank 0 listens no more: all have come
        wait_for(lambda: [sent > 3 * ranks.ENDPOINT for sent, _ in ranks.passed_at(job.port)] == [True, True])
        job.kill(0)
        job.start(0)
        job.wait_until(1)
        job.rank[2].send_signal(signal.SIGCONT)
        job.all_meet(run_quern, tmp_path)


def test_rank_0_that_is_not_started_again(quern, tmp_path):
    """The others wait for it as long as they wait for each other, and say so."""
    with Rendezvous(quern, 3, tmp_path) as job:
        job.start(0)
        job.wait_until(0)
        job.start(1, more=["--meet-timeout", 3])
        job.wait_until(1)
        job.kill(0)
        out, err = job.rank[1].communicate(timeout=60)
        assert job.rank[1].returncode == 1 and not out
        assert f"rank 0 at 127.0.0.1:{job.port} ended before all ranks were connected" in err
        assert "within 3 seconds" in err and "started again" in err
