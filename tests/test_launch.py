"""quern launch: ranks on several hosts by one command, and what happens when they fall.

What is called ssh is mostly a script here; on hosts of hosts.py it enters their namespaces, and one test
has a real sshd."""

import contextlib
import hashlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

import hosts
import machine
import recipes

JOB = ["train", *recipes.DIGITS, "--model", "dense 20 tanh; dense 10 softmax", "--batch", "16", "--threads", "1", "--json"]
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def program(path, text):
    path.write_text("#!/bin/bash\n" + textwrap.dedent(text))
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def wanted(run_quern, tmp_path_factory):
    """wanted(epochs): the bytes of the job from one process."""
    known, folder = {}, tmp_path_factory.mktemp("wanted")

    def of(epochs):
        if epochs not in known:
            run_quern(*JOB, "--epochs", epochs, "-o", folder / "m")
            known[epochs] = digest(folder / "m")
        return known[epochs]

    return of


class Launch:
    """A launcher in the background, and what it says on both streams."""

    def __init__(self, quern, folder, *words, before=(), **options):
        self.said = ""
        self.process = subprocess.Popen([*before, quern, "launch", *map(str, words)], cwd=folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)

    def until(self, pattern, seconds=60):
        """Waits until it has said that."""
        end = time.monotonic() + seconds * machine.PATIENCE
        while not (found := re.search(pattern, self.said, re.M)):
            left = end - time.monotonic()
            assert left > 0, f"never {pattern}\n{self.said}"
            if select.select([self.process.stdout], [], [], left)[0]:
                more = os.read(self.process.stdout.fileno(), 65536).decode()
                assert more, f"it ended before {pattern}\n{self.said}"
                self.said += more
        return found

    def ranks(self):
        """Numbers of its ranks' processes, by rank."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if str(self.process.pid).encode() == (entry / "stat").read_bytes().rpartition(b")")[2].split()[1] and \
                        b"--rank" in words:
                    found[int(words[words.index(b"--rank") + 1])] = int(entry.name)
        return found

    def wait(self, seconds=60):
        try:
            self.said += self.process.communicate(timeout=seconds * machine.PATIENCE)[0].decode()
        except subprocess.TimeoutExpired:
            self.process.kill()
            pytest.fail(f"it hangs\n{self.said}", pytrace=False)
        return self.process.returncode


@pytest.fixture
def launch(quern, tmp_path):
    started = []

    def start(*words, **options):
        started.append(Launch(quern, options.pop("folder", tmp_path), *words, **options))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


# ---------------------------------------------------------------- without data: what is started

@pytest.mark.parametrize("hostlist, file, ranks", [
    ("a,me@b:2,[fd00::1]:1", "# all\na\n me@b:2\t# two\n\nfd00::1 slots=1", ["a", "me@b", "me@b", "fd00::1"]),
    ("a,b,a", "a\r\nb\na slots=1", ["a", "a", "b"])])
def test_hosts(run_quern, tmp_path, hostlist, file, ranks):
    """By a list and by a file: one process a rank, in the order of the hosts."""
    ssh = program(tmp_path / "agent", 'while [ "${1#-}" != "$1" ]; do shift; done; host=$1; echo "$2" >>commands\n'
                                      'eval "$(sed "s/^exec //" <<<"$2")" | sed "1s/^/$host /"\n')
    rank = program(tmp_path / "rank", r"""
        read -r key
        printf '%s ' "$@"
        echo "$key" >>keys
        printf '\n'
        printf '\036end 0\n' >&2""")
    (tmp_path / "hosts").write_text(file)
    for option, value in (("--hosts", hostlist), ("--hostfile", tmp_path / "hosts")):
        (tmp_path / "keys").unlink(missing_ok=True)
        out = run_quern("launch", option, value, "--quiet", "--meet", "h:7", "--ssh", f"{ssh} -p22", "--program", rank, "--", "train",
                        "-o", "it's \"so\" $x\n", "--", "x", cwd=tmp_path).stdout
        found = re.findall(r"^(\S+) train --meet h:7 --ranks (\d+) --rank (\d+) --key-file - (.*?) -- x", out, re.M | re.S)
        assert sorted((int(f[2]), f[0]) for f in found) == list(enumerate(ranks)), out
        assert all(f[1] == str(len(ranks)) and f[3] == "-o it's \"so\" $x\n" for f in found)
        keys = (tmp_path / "keys").read_text().split()
        assert len(keys) == len(ranks) and len(set(keys)) == 1 and len(keys[0]) == 64
        assert keys[0] not in (tmp_path / "commands").read_text()


@pytest.mark.parametrize("words, message", [
    ([], "--hosts or --hostfile is required"), (["--hosts", "a", "--hostfile", "b"], "contradict"),
    (["--hosts", ","], 'name of a host'), (["--hosts", "a,,b"], 'name of a host'), (["--hosts", "-oProxyCommand=x"], "name of a host"),
    (["--hosts", "a;b"], "name of a host"), (["--hosts", "a:0"], "number of ranks"), (["--hosts", "a:1x"], "number of ranks"),
    (["--hosts", "a:1025"], "number of ranks"), (["--hosts", "a:1000,b:25"], "more than 1024"), (["--hosts", "[a"], "not a host"),
    (["--hosts", "me@"], "name of a host"), (["--hostfile", "lines"], "lines, line 2"), (["--hostfile", "none"], "names no host")])
def test_hosts_that_cannot_be(run_quern, tmp_path, words, message):
    (tmp_path / "lines").write_text("a\nb slot=2\n")
    (tmp_path / "none").write_text("# a\n")
    assert message in run_quern("launch", *words, "--", "train", "-o", "m", cwd=tmp_path, status=2).stderr


@pytest.mark.parametrize("words, message", [
    ([], "nothing to launch"), (["devices"], "does not run on several ranks"), (["nothing"], "does not run on several ranks"),
    (["train", "--meet", "a:1"], "launch itself gives --meet"), (["train", "--key-file=k"], "launch itself gives --key-file"),
    (["train", "--data", "-"], "standard input"), (["predict", "m", "--data=-"], "standard input")])
def test_commands_that_cannot_be(run_quern, words, message):
    assert message in run_quern("launch", "--hosts", "a", "--ssh", "false", "--", *words, status=2).stderr


FAULTS = {
    "no folder": (["--directory", "/absent"], "true", r"(b|localhost) does not have the folder\n  at /absent", 1),
    "no program": (["--program", "absent-quern"], "true", "(b|localhost) does not have the command absent-quern", 1),
    "no answer": ([], 'echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255',
                  r"rank 0 on b ended with 255 (?s:.*) started again\n(?s:.*)b could not be reached by \S+\n  at ssh: connect", 1),
    "no ssh": (["--ssh", "/absent/ssh"], "true", "cannot start /absent/ssh: No such file", 1),
    "not its own key": ([], 'read -r key; eval "$1" < <(echo 0123456789abcdef0; exec sleep 4 2>/dev/null)', "rank 1 on", 1),
    "a wrong option": ([], "true", "no option \"--lrr\"", 2)}


@pytest.mark.parametrize("case", FAULTS)
def test_a_start_that_fails(run_quern, tmp_path, case):
    """Nobody waits for the rank that cannot come; one message names its host, and what to do."""
    more, script, says, code = FAULTS[case]
    ssh = program(tmp_path / "agent", 'while [ "${1#-}" != "$1" ]; do shift; done; host=$1; shift\n' + script + '\neval "$1"\n')
    hostlist = "localhost,b" if case == "not its own key" else "b,localhost"
    train = ["train", *recipes.DIGITS, *(["--lrr", 1] if case == "a wrong option" else []), "--meet-timeout", 2 if case == "not its own key" else 40, "-o", "m"]
    more = more if "--ssh" in more else ["--ssh", ssh, *more]
    done = run_quern("launch", "--hosts", hostlist, "--max-restarts", 1, "--meet", "127.0.0.1", *more, "--", *train, cwd=tmp_path,
                     status=code)
    assert re.search(says, done.stderr), done.stderr
    assert not (tmp_path / "m").exists() and len(done.stderr) < 3000


SCRIPT = r"""
read -r key
printf '\036joined\n' >&2
for i in {1..200}; do
    printf 'rank %s line %s ' "$7" "$i"
    printf '%0200d\n' "$i"
done
printf '\036step 1,000 5\n\036step 7 2000 12300\n' >&2
read -r stop
printf '\036end 0\n' >&2
"""


def test_lines_stay_whole(run_quern, tmp_path):
    """Of ranks that print in pieces at the same time; the last one has no line end."""
    rank = program(tmp_path / "rank", SCRIPT.replace("read -r stop", "printf last"))
    done = run_quern("launch", "--hosts", "localhost:3", "--program", rank, "--", "train", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert len(lines) == 603 and lines.count("last") == 3
    assert all(re.fullmatch(r"rank [012] line (\d+) 0*\1|last", line) for line in lines)
    assert re.search("quern launch: localhost: (running|ended)\n", done.stderr) and "\036" not in done.stderr


def test_on_a_terminal(quern, tmp_path):
    """One line a host, drawn again and again, with its step and the speed; Ctrl-C stops the ranks."""
    rank = program(tmp_path / "rank", SCRIPT)
    ssh = program(tmp_path / "agent", 'while [ "${1#-}" != "$1" ]; do shift; done; eval "$2"\n')
    top, end = pty.openpty()
    process = subprocess.Popen([quern, "launch", "--hosts", "localhost,b", "--ssh", ssh, "--program", rank, "--", "train"], cwd=tmp_path,
                               stdin=end, stdout=subprocess.DEVNULL, stderr=end, env={**os.environ, "TERM": "xterm"})
    os.close(end)
    said = ""
    with contextlib.suppress(OSError):  # the other end is closed
        while text := os.read(top, 65536).decode():
            said += text
            if "b " in said and re.search(r"localhost +running +step 7/2,000  12.3k items/s in all.*\n.*b +running +step 7/2,000\x1b",
                                          said):
                if "stopping all ranks" not in said:
                    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0 and "stopping all ranks" in said and "\x1b[2A" in said, said
    os.close(top)


# ---------------------------------------------------------------- trainings

def test_ranks_fall(launch, wanted, tmp_path):
    """One: the others go on, and it is started again and joins them. Then all: they start again, from their checkpoint."""
    def attempt(size):
        out, epochs = tmp_path / f"m{size}", 8 * size
        run = launch("--hosts", "localhost:2", "--", *JOB, "--epochs", epochs, "-o", out, "--checkpoint", f"{out}.saved",
                     "--checkpoint-every", 50)
        run.until('"event":"epoch"')
        ranks = run.ranks()
        assert sorted(ranks) == [0, 1], run.said
        os.kill(ranks[1], signal.SIGKILL)
        found = run.until('rank 1 on .* has joined|"event":"end"')
        if "end" not in found[0] and list(Path(f"{out}.saved").glob("checkpoint-*")):
            for rank in sorted(run.ranks().items(), reverse=True):
                os.kill(rank[1], signal.SIGKILL)
        code = run.wait()
        assert code == 0 and digest(out) == wanted(epochs), run.said
        return run if "they are started again, from the last checkpoint (1 of 3)" in run.said else None

    run = machine.caught(attempt)
    assert re.search(r'"resumed_from":\s*[1-9]', run.said), run.said


def test_ctrl_c(launch, run_quern, wanted, tmp_path):
    """Stops all with a checkpoint; the line that it prints continues."""
    def attempt(size):
        out, epochs = tmp_path / f"m{size}", 8 * size
        run = launch("--hosts", "localhost:2", "--", *[w for w in JOB if w != "--json"], "--epochs", epochs, "-o", out)
        run.until(r"^ +1/\d+ ")
        run.process.send_signal(signal.SIGINT)
        return (run, out, epochs) if run.wait() == 130 else None

    run, out, epochs = machine.caught(attempt)
    assert not out.exists() and Path(f"{out}.checkpoint").exists()
    line = re.search(r"continue with: (\S*quern launch .* --resume);", run.said)[1]
    assert " --meet " not in line and " --hosts localhost:2 -- train --data " in line
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and digest(out) == wanted(epochs), done.stdout + done.stderr


def test_the_launcher_is_killed(launch, tmp_path):
    """No rank outlives it: each stops, with a checkpoint."""
    run = launch("--hosts", "localhost:2", "--", *JOB, "--epochs", 5000, "-o", tmp_path / "m")
    run.until('"event":"epoch"')
    ranks = run.ranks()
    assert len(ranks) == 2
    run.process.kill()
    end = time.monotonic() + 60 * machine.PATIENCE
    while any(os.path.exists(f"/proc/{p}") for p in ranks.values()):
        assert time.monotonic() < end, "a rank lives on"
        time.sleep(0.02)
    assert (tmp_path / "m.checkpoint").exists() and not (tmp_path / "m").exists()


def test_a_host_is_lost(launch, wanted):
    """Three hosts, of which the first launches; all that runs on another one is killed. The others go on."""
    with hosts.Hosts(3) as net:
        def attempt(size):
            out, epochs = net.folder / f"m{size}", 3 * size
            run = launch("--hosts", "host-a,host-b:1,host-c", "--ssh", net.agent, "--directory", net.folder, "--max-restarts", 0, "--",
                         *JOB, "--epochs", epochs, "-o", out.name, before=net.on(0, []),
                         env={**os.environ, "QUERN_TEST_RUN": "x"}, folder="/")
            run.until('"event":"epoch"')
            net.kill_all(2)
            assert run.wait() == 0, run.said
            assert digest(out) == wanted(epochs)
            return run if "has died" in run.said else None

        run = machine.caught(attempt)
        assert "host-a: running" in run.said and "host-c: " in run.said


@pytest.mark.skipif(SSHD is None, reason="no sshd here; Debian's openssh-server has it")
def test_by_a_real_ssh(launch, wanted, tmp_path):
    """Two hosts with OpenSSH between them; a host that knows another key is not reached."""
    with hosts.Hosts(2) as net:
        for name in ("host", "mine", "other"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", net.folder / name], check=True)
        (net.folder / "known").write_text("host-b " + (net.folder / "host.pub").read_text())
        shutil.copy(net.folder / "mine.pub", net.folder / "allowed")
        server = subprocess.Popen(net.on(1, ["sh", "-ec", f"mkdir -p /run/sshd; exec {SSHD} -D -e -h {net.folder}/host -p 22 "
                                                          f"-o AuthorizedKeysFile={net.folder}/allowed -o StrictModes=no "
                                                          "-o UsePAM=no -o PidFile=none -f /dev/null"]),
                                  stderr=subprocess.PIPE, text=True, preexec_fn=hosts.die_with_parent)
        assert "listening" in server.stderr.readline()

        def start(key):
            ssh = f"ssh -F none -i {net.folder}/{key} -o IdentityAgent=none -o UserKnownHostsFile={net.folder}/known"
            return launch("--hosts", "localhost,host-b", "--ssh", ssh, "--directory", net.folder, "--max-restarts", 0, "--",
                          *JOB, "--epochs", 2, "-o", "m", before=net.on(0, []), folder="/")

        run = start("mine")
        assert run.wait() == 0 and digest(net.folder / "m") == wanted(2), run.said
        assert "host-b: running" in run.said and "host-a" in run.said
        run = start("other")
        assert run.wait() == 1, run.said
        assert "host-b could not be reached by ssh" in run.said and "Permission denied" in run.said
        assert "must work without a password" in run.said
        server.terminate()
        server.communicate()


