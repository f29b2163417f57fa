"""Interruptions: whatever stops a run, the one that goes on ends with the same bytes."""

import hashlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import time

import pytest

import machine

SEEDS = range(20) if "QUERN_LONG_TESTS" in os.environ else range(7)


@pytest.fixture(scope="module")
def job(run_quern, tmp_path_factory):
    """(folder, arguments, digest of the uninterrupted run, its seconds): a third of a second."""
    d = tmp_path_factory.mktemp("interrupt")
    run_quern("data", "synth", "digits", "--items", 1000, "--quiet", "-o", d / "train.idx",
              "--labels", d / "labels.idx")
    args = ["train", "--data", str(d / "train.idx"), "--labels", str(d / "labels.idx"), "--model",
            "dense 60 tanh dropout 0.2; dense 10 softmax", "--optimizer", "adam", "--schedule",
            "cosine", "--batch", "20", "--valid", "0.1"]
    began = time.monotonic()
    run_quern(*args, "--epochs", 4, "--quiet", "-o", d / "first")
    # As many epochs as make a run of about a third of a second here: enough to hit, soon done.
    epochs = str(max(4, min(200, round(4 * 0.3 / (time.monotonic() - began)))))
    args += ["--epochs", epochs]
    began = time.monotonic()
    run_quern(*args, "--quiet", "-o", d / "reference")
    return d, args, digest(d / "reference"), time.monotonic() - began


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def attentive():
    """A shell that runs tests in the background may have had SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def start(quern, *args, **kwargs):
    kwargs.setdefault("preexec_fn", attentive)
    return subprocess.Popen([quern, *map(str, args)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **kwargs)


def wait_for(process, seconds=30):
    try:
        return process.communicate(timeout=seconds * machine.PATIENCE)
    finally:
        process.kill()


def is_pending(process, number):
    """Whether the process has not yet taken that signal: a second one would be the same."""
    text = open(f"/proc/{process.pid}/status").read()
    return any(int(word, 16) >> (number - 1) & 1 for word in re.findall(r"(?:Sig|Shd)Pnd:\s*(\w+)", text))


def computed(process):
    """Seconds of processor time that the process has used."""
    words = open(f"/proc/{process.pid}/stat").read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def checkpoints(folder):
    return sorted(folder.glob("checkpoint-*.safetensors"))


def until(condition, seconds=30):
    end = time.monotonic() + seconds * machine.PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.002)


# ---------------------------------------------------------------- signals

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP,
                                    signal.SIGUSR1],
                         ids=lambda n: n.name)
@pytest.mark.parametrize("seed", range(3))
def test_signal_then_the_command_it_prints(quern, job, tmp_path, seed, number):
    """At a random step; without --checkpoint, the state goes beside the output. A space and a
    quote in the name ask for a shell's quoting."""
    _, args, wanted, seconds = job
    out = tmp_path / "it's a model"
    args = [*args, "-o", str(out)]
    process = start(quern, *args, "--json")
    assert '"start"' in process.stdout.readline()
    time.sleep(random.Random(seed).uniform(0, 0.5 * seconds))
    process.send_signal(number)
    _, stderr = wait_for(process)
    if process.returncode == 0:  # it was in time
        assert digest(out) == wanted
        return
    assert process.returncode == 130 and not out.exists(), stderr
    assert re.search(r"interrupted: .*step \d+ of \d+; state saved in .*it's a model\.checkpoint", stderr)
    command = re.search(r"continue with: (.*)", stderr)[1]
    again = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert again.returncode == 0, again.stderr
    assert digest(out) == wanted


def test_a_notice_of_the_time_limit_may_come_often(quern, job, tmp_path):
    """A launcher and a batch system may both pass it on: the second does not end the run."""
    _, args, _, _ = job
    process = start(quern, *args[:-1], "100000", "-o", str(tmp_path / "m"), "--json")
    assert '"start"' in process.stdout.readline()
    for i in range(6):
        process.send_signal((signal.SIGUSR1, signal.SIGUSR2)[i % 2])
    _, stderr = wait_for(process)
    assert process.returncode == 130 and "saved in" in stderr


def test_signal_with_a_checkpoint_folder(quern, run_quern, job, tmp_path):
    _, args, wanted, _ = job
    args = [*args, "--checkpoint", tmp_path / "state", "-o", tmp_path / "m"]
    process = start(quern, *args, "--quiet")
    until(lambda: (tmp_path / "state").exists())
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = wait_for(process)
    if process.returncode == 0:  # it was in time
        assert digest(tmp_path / "m") == wanted
        return
    assert process.returncode == 130 and stderr.rstrip().endswith("--resume")
    assert stderr.count("--checkpoint") == 1 and checkpoints(tmp_path / "state")
    run_quern(*args, "--quiet", "--resume")
    assert digest(tmp_path / "m") == wanted


def test_checkpoints_take_a_hundredth_of_the_time(quern, run_quern, job, tmp_path):
    """By default. Before any was measured one counts as 0.02 s and its bytes at 100 MB/s, here
    0.0257 s: the first is due after 2.57 s of steps."""
    assert "at most 1 % of the time" in " ".join(run_quern("train", "--help").stdout.split())
    folder, args, _, _ = job
    began = time.monotonic()
    process = start(quern, *args[:-1], "100000", "-o", tmp_path / "m", "--checkpoint",
                    tmp_path / "state", cwd=folder)
    try:
        until(lambda: checkpoints(tmp_path / "state"))
        assert 2.5 < time.monotonic() - began
    finally:
        process.kill()
        process.wait()


def test_second_signal_ends_it_at_once(quern, job, tmp_path):
    """One step here takes seconds; who presses Ctrl-C twice does not wait for it."""
    _, args, _, _ = job
    process = start(quern, "train", "--data", args[2], "--labels", args[4], "--batch", "1000",
                    "--model", "dense 20000 tanh; dense 2000 tanh; dense 10 softmax", "--threads",
                    "1", "--json", "-o", tmp_path / "m")
    assert '"start"' in process.stdout.readline()
    before = computed(process)
    until(lambda: computed(process) > before + 0.2)  # it is in the step
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        until(lambda: process.poll() is not None or not is_pending(process, signal.SIGINT))
    _, stderr = wait_for(process)
    # After the end of the step it would have saved its state and said so.
    assert process.returncode == 130 and "saved" not in stderr
    assert not os.listdir(tmp_path)


def with_epochs(model, count, to):
    """A copy whose recipe has so many epochs: its training would not end."""
    content = model.read_bytes()
    size = int.from_bytes(content[:8], "little")
    head = json.loads(content[8:8 + size])
    recipe = re.sub(r'"epochs":\d+', f'"epochs":{count}', head["__metadata__"]["recipe"])
    head["__metadata__"]["recipe"] = recipe
    made = json.dumps(head).encode()
    made += b" " * (-len(made) % 8)
    to.write_bytes(len(made).to_bytes(8, "little") + made + content[8 + size:])
    return to


def test_signal_while_replaying(quern, job, tmp_path):
    d, args, _, _ = job
    endless = with_epochs(d / "reference", 100_000, tmp_path / "endless")
    process = start(quern, "replay", endless, "--data", args[2], "--labels", args[4],
                    "--json", "-o", tmp_path / "m")
    assert '"start"' in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    wait_for(process)
    assert process.returncode == 130 and not (tmp_path / "m").exists()


# ---------------------------------------------------------------- kill -9

@pytest.mark.parametrize("seed", SEEDS)
def test_kill_at_any_instant(quern, run_quern, job, tmp_path, seed):
    """Killed twice at random instants, then left to finish."""
    _, args, wanted, seconds = job
    dice = random.Random(seed)
    state, out = tmp_path / "state", tmp_path / "m"
    args = [*args, "--checkpoint", state, "--checkpoint-every", dice.choice([1, 3, 11, 40]),
            "--resume", "--quiet", "--threads", dice.choice([1, 2, 3]), "-o", out]
    for _ in range(2):
        process = start(quern, *args)
        time.sleep(dice.uniform(0, seconds))
        process.kill()
        process.communicate()
        assert process.returncode in (-signal.SIGKILL, 0)
    run_quern(*args)
    assert digest(out) == wanted
    left = [p.name for p in tmp_path.iterdir() if p not in (state, out)]
    assert not [n for n in left if not n.startswith(".")], left


# ---------------------------------------------------------------- full disk

@pytest.fixture
def small_disk(tmp_path):
    """A file system of three megabytes, where the machine lets us mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    machine.need("mounting a disk")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_disk_full_while_checkpointing(run_quern, job, small_disk, tmp_path):
    """There is space for the first checkpoint and not for the second."""
    _, args, wanted, _ = job
    state = small_disk / "state"
    args = [*args, "--checkpoint-every", 50, "-o", tmp_path / "m"]
    run_quern(*args, "--quiet", "--checkpoint", tmp_path / "trial")
    size = checkpoints(tmp_path / "trial")[0].stat().st_size
    disk = os.statvfs(small_disk)
    (small_disk / "filler").write_bytes(bytes(disk.f_bavail * disk.f_bsize - 3 * size // 2))
    args += ["--checkpoint", state]
    stderr = run_quern(*args).stderr
    assert digest(tmp_path / "m") == wanted
    # Once when it begins, and once at the end.
    assert stderr.count("note: cannot") <= 2 and "No space left" in stderr
    assert re.search(r"the last good checkpoint is of step \d+", stderr) and checkpoints(state)
    (small_disk / "filler").unlink()
    run_quern(*args, "--quiet", "--resume")
    assert digest(tmp_path / "m") == wanted


def test_file_size_limit_while_checkpointing(quern, run_quern, job, tmp_path):
    """The same where nothing can be mounted: a checkpoint may not grow beyond 100 KB."""
    _, args, wanted, _ = job
    state = tmp_path / "state"
    args = [*args, "--checkpoint", state, "--checkpoint-every", 50, "-o", tmp_path / "m"]
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    process = start(quern, *args, preexec_fn=limit)
    _, stderr = wait_for(process)
    assert process.returncode == 1 and "File too large" in stderr  # of the model, everywhere
    assert stderr.count("note: cannot write") == 2 and "there is no good checkpoint" in stderr
    assert not (tmp_path / "m").exists() and not checkpoints(state)
    assert not [p for p in state.glob("*") if p.stat().st_size >= 100_000], "a part was left behind"
    run_quern(*args, "--quiet", "--resume")
    assert digest(tmp_path / "m") == wanted


# ---------------------------------------------------------------- what is not a file

@pytest.mark.parametrize("name", ["checkpoint-000000000012.safetensors", "lock"])
def test_a_fifo_in_the_folder_is_refused(run_quern, job, tmp_path, name):
    _, args, _, _ = job
    state = tmp_path / "state"
    state.mkdir()
    os.mkfifo(state / name)
    done = run_quern(*args, "--checkpoint", state, "--resume", "-o", tmp_path / "m", status=1,
                     timeout=60)
    assert f"cannot use {state / name}: it is a FIFO, not a file" in done.stderr
    assert "remove it, or use another folder (--checkpoint)" in done.stderr
    assert not (tmp_path / "m").exists()


# ---------------------------------------------------------------- two at once

def test_two_on_one_folder(quern, run_quern, job, tmp_path):
    _, args, wanted, _ = job

    def attempt(size):
        state, words = tmp_path / f"state-{size}", [*args[:-1], size * int(args[-1]), "--quiet"]
        save = ["--checkpoint", state, "--checkpoint-every", 5]
        first = start(quern, *words, *save, "-o", tmp_path / "first")
        until(lambda: len(checkpoints(state)) > 0)
        first.send_signal(signal.SIGSTOP)
        if first.poll() is not None:  # it had ended
            return None
        try:
            second = run_quern(*words, *save, "--resume", "-o", tmp_path / "second", status=1)
            assert str(first.pid) in second.stderr and str(state) in second.stderr
            assert not (tmp_path / "second").exists()
        finally:
            first.send_signal(signal.SIGCONT)
        _, stderr = wait_for(first)
        assert first.returncode == 0, stderr
        if size > 1:
            run_quern(*words, "-o", tmp_path / "alone")
        assert digest(tmp_path / "first") == (digest(tmp_path / "alone") if size > 1 else wanted)
        return True

    machine.caught(attempt)


def test_two_started_at_the_same_moment(quern, run_quern, job, tmp_path):
    """Whoever comes first works; the other is refused or comes after it. No byte is mixed."""
    _, args, wanted, _ = job
    args = [*args, "--checkpoint", tmp_path / "state", "--checkpoint-every", 3, "--quiet",
            "--resume"]
    both = [start(quern, *args, "-o", tmp_path / name) for name in ("a", "b")]
    for process in both:
        wait_for(process)
    codes = [p.returncode for p in both]
    assert 0 in codes and set(codes) <= {0, 1}
    for name, code in zip("ab", codes):
        if code == 0:
            assert digest(tmp_path / name) == wanted
    run_quern(*args, "-o", tmp_path / "c")
    assert digest(tmp_path / "c") == wanted


def test_two_with_one_record(quern, run_quern, job, tmp_path):
    """The second run is refused, however the first is held up; a killed one is not an obstacle."""
    _, args, _, _ = job
    record, args = tmp_path / "record", [*args[:-1], "100000", "--run-dir", tmp_path / "record",
                                         "--quiet", "-o", tmp_path / "m"]
    first = start(quern, *args)
    try:
        until(lambda: (record / "metrics.csv").exists()
              and (record / "metrics.csv").read_text().count("\n") > 1)
        first.send_signal(signal.SIGSTOP)
        before = (record / "metrics.csv").read_bytes()
        second = run_quern(*args, status=1, timeout=60)
        assert f"in use by process {first.pid}" in second.stderr and "--run-dir" in second.stderr
        assert (record / "metrics.csv").read_bytes() == before
        assert not (record / "previous-metrics.csv").exists()
    finally:
        first.kill()
        first.wait()
    run_quern(*args[:-6], "1", *args[-5:], timeout=60)
    assert (record / "previous-metrics.csv").read_bytes().startswith(before)


@pytest.mark.parametrize("name, option", [("lock", "--checkpoint"), ("run.lock", "--run-dir"),
                                          ("metrics.csv", "--run-dir"), ("run.json", "--run-dir"),
                                          ("previous-run.json", "--run-dir")])
def test_a_file_of_the_user_stays(run_quern, job, tmp_path, name, option):
    _, args, _, _ = job
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / name).write_text("precious\n")
    done = run_quern(*args, option, tmp_path / "d", "-o", tmp_path / "m", status=1)
    assert f"d/{name}" in done.stderr and option in done.stderr
    assert os.listdir(tmp_path / "d") == [name] and os.listdir(tmp_path) == ["d"]
    assert (tmp_path / "d" / name).read_text() == "precious\n"
