"""Training runs as jobs of a real Slurm: stopped, requeued, robbed of their nodes, and the same bytes.

What is in deploy/slurm is run as it stands, but for the program, its arguments and the size of the
nodes.
"""

import hashlib
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import numpy
import pytest

import builds
import machine
import recipes
from builds import ROOT
from slurm import NODES, Slurm

DEPLOY = ROOT / "deploy" / "slurm"
# Half a second on a core, in small steps, with a checkpoint now and then.
JOB = [*recipes.DIGITS, "--model", "dense 60 tanh; dense 10 softmax", "--batch", "16", "--epochs", "15",
       "--threads", "1", "--json"]
# For what is interrupted: it must not be over before that.
LONGER = [a if a != "15" else "60" for a in JOB]
# The same with several ranks, which take three times as long for a step, since all wait for each.
SEVERAL = [a if a != "15" else "20" for a in JOB]
OFTEN = ["--checkpoint-every", "200"]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with Slurm(tmp_path_factory.mktemp("slurm") / "s") as slurm:
        yield slurm


@pytest.fixture(autouse=True)
def nothing_left(request):
    """No job of a test that failed takes the nodes from the next one."""
    yield
    if "slurm" in request.fixturenames:
        request.getfixturevalue("slurm").run("scancel", "--user=root")


@pytest.fixture(scope="module")
def wanted(run_quern, tmp_path_factory):
    """The bytes of a seed's model, from a run that no batch system knows of."""
    folder, known = tmp_path_factory.mktemp("wanted"), {}

    def of(seed=1, job=LONGER):
        if (seed, *job) not in known:
            run_quern("train", *job, "--seed", seed, "-o", folder / "m")
            known[seed, *job] = digest(folder / "m")
        return known[seed, *job]

    return of


@pytest.fixture
def script(quern, tmp_path):
    """script(name, ...): a script of deploy/slurm in the test's folder, with our arguments.

    `nodes`: how many, for each part of the job; a rank on each."""
    def make(name, arguments=None, nodes=(1,), **changes):
        arguments = arguments or (SEVERAL if sum(nodes) > 1 else LONGER) + OFTEN
        text = (DEPLOY / name).read_text()
        seed = "--seed" in text
        words = ["train", *arguments] + (["--seed", '"$seed"'] if seed else [])
        quoted = " ".join(f"'{w}'" if " " in w else w for w in words)
        text, n = re.subn(r"arguments=\(.*?\)\n", f'arguments=({quoted} -o "$result" --checkpoint '
                          '"$checkpoint" --resume)\n', text, flags=re.DOTALL)
        assert n == 1
        if not seed:  # they are used by the arguments now, so they come first
            block = re.search(r"result=.*\ncheckpoint=.*\n", text)[0]
            text = text.replace(block, "").replace("program=quern\n", f"program=quern\n{block}")
        text = text.replace("program=quern\n", f"program={quern}\n")
        text = re.sub(r"#SBATCH --exclusive.*\n", "#SBATCH --cpus-per-task=2\n", text)
        parts = text.split("#SBATCH hetjob\n")
        for i, count in enumerate(nodes):
            parts[i] = re.sub(r"--nodes=\d+-\d+", f"--nodes={max(count - 1, 1)}-{count}", parts[i])
            parts[i] = re.sub(r"--nodes=\d+\n", f"--nodes={count}\n", parts[i])
        text = "#SBATCH hetjob\n".join(parts)
        for old, new in {"--cpus-per-task=\\d+": "--cpus-per-task=2", "#SBATCH --gpus.*\n": "",
                         **changes}.items():
            text = re.sub(old, new, text)
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return make


@pytest.fixture
def until_checkpoint(tmp_path):
    def wait(name="digits.safetensors", seconds=40):
        end = time.monotonic() + seconds * machine.PATIENCE
        while not list((tmp_path / f"{name}.checkpoint").glob("checkpoint-*")):
            assert time.monotonic() < end, "there never was a checkpoint"
            time.sleep(0.01)

    return wait


def log_of(folder):
    return "\n".join(f.read_text(errors="replace") for f in folder.glob("*.log"))


def went_on(folder):
    """Whether a run in that folder began with a checkpoint."""
    return re.search(r'"resumed_from":\s*[1-9]', log_of(folder))


def ranks_in(folder):
    """How many ranks the first start had."""
    event = next(json.loads(line) for line in log_of(folder).splitlines() if '"event":"start"' in line)
    return len(event["ranks"])


def start_now(slurm, job):
    """Instead of waiting until Slurm lets a requeued job start.

    A node takes no orders for a job that are of the same second as those that ended it."""
    end = time.monotonic() + 90 * machine.PATIENCE
    while (told := slurm.job(job)).get("Restarts") == "0" or told.get("JobState") == "COMPLETING":
        assert time.monotonic() < end, f"never queued again\n{slurm.logs()}"
        time.sleep(0.1)
    time.sleep(2)
    slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")


# ---------------------------------------------------------------- without a Slurm

@pytest.mark.parametrize("name, more", [("train.sbatch", []),
                                        ("train_mpirun.sbatch", ["--launcher", "mpirun"])])
def test_the_scripts_are_what_submit_writes(run_quern, name, more):
    out = run_quern("submit", "--slurm", *more, "--ranks", 4, "--time", "04:00:00", "--program",
                    "quern", "--dry-run", "train", "--data", "train.csv", "--test", "test.csv",
                    "--epochs", 100, "-o", "digits.safetensors").stdout
    assert out == (DEPLOY / name).read_text()


def test_the_script_of_a_kernel_is_what_submit_writes(run_quern, tmp_path):
    out = run_quern("submit", "--slurm", "--ranks", 4, "--time", "04:00:00", "--program", "quern", "--dry-run",
                    "run", "--kernel", "heat.c", "--in", "u=u.npy", "--out", "u_new=end.npy", "--iterations",
                    100000, cwd=tmp_path).stdout
    assert out == (DEPLOY / "kernel.sbatch").read_text()


def test_the_script_of_a_search_is_what_submit_writes(run_quern):
    out = run_quern("submit", "--slurm", "--array", 8, "--cpus", 4, "--time", "04:00:00", "--program", "quern", "--dry-run",
                    "search", "--data", "train.csv", "--grid", "lr 0.01,0.1 batch 32,64", "--epochs", 20,
                    "--run-dir", "tries").stdout
    assert out == (DEPLOY / "search.sbatch").read_text()


@pytest.mark.parametrize("name", sorted(p.name for p in DEPLOY.glob("*.sbatch")))
def test_the_scripts_are_clean(name):
    builds.require("shellcheck")
    done = subprocess.run(["shellcheck", DEPLOY / name], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


# ---------------------------------------------------------------- one rank

def test_submit_to_the_end(slurm, quern, wanted, tmp_path):
    env = {"QUERN_JOBS": str(tmp_path / "jobs")}
    out = slurm.ask(quern, "submit", "--slurm", "--cpus", "2", "--name", "mine", "--json", "train",
                    *JOB, "-o", "it's a model", cwd=tmp_path, env=env)
    job = json.loads(out)["id"]
    slurm.until(job, "COMPLETED")
    assert digest(tmp_path / "it's a model") == wanted(job=JOB)
    listed = json.loads(slurm.ask(quern, "jobs", "--json", env=env))
    assert listed["state"] == "done" and listed["id"] == job
    assert wanted(job=JOB) in (tmp_path / f"mine-{job}.log").read_text()


def test_a_notice_of_the_time_limit(slurm, script, wanted, tmp_path, until_checkpoint):
    """Slurm's own notice: the run stops, the job queues itself again and ends with the same bytes.

    A limit is at least a minute, and Slurm looks twice a minute; the run is halted meanwhile."""
    job = slurm.submit(script("train.sbatch", **{"--time=.*": "--time=2", "USR1@120": "USR1@110"}),
                       cwd=tmp_path)
    until_checkpoint()
    [run] = slurm.processes("quern")
    os.kill(run, signal.SIGSTOP)

    def noticed():
        status = open(f"/proc/{run}/status").read()
        return int(re.search(r"ShdPnd:\s*(\w+)", status)[1], 16) >> (signal.SIGUSR2 - 1) & 1

    end = time.monotonic() + 70 * machine.PATIENCE
    while not noticed():
        assert time.monotonic() < end, slurm.logs()
        time.sleep(0.2)
    os.kill(run, signal.SIGCONT)
    start_now(slurm, job)
    ended = slurm.until(job, "COMPLETED", seconds=60)
    assert ended["Restarts"] == "1" and digest(tmp_path / "digits.safetensors") == wanted()
    log = log_of(tmp_path)
    assert "interrupted" in log and "time limit reached; requeued" in log


def test_requeued_by_hand(slurm, script, wanted, tmp_path, until_checkpoint):
    job = slurm.submit(script("train.sbatch"), cwd=tmp_path)
    until_checkpoint()
    slurm.ask("scontrol", "requeue", job)
    start_now(slurm, job)
    assert slurm.until(job, "COMPLETED")["Restarts"] == "1"
    assert digest(tmp_path / "digits.safetensors") == wanted() and went_on(tmp_path)


def test_killed_and_queued_again(slurm, script, wanted, tmp_path, until_checkpoint):
    """The process alone: the job's script sees that the model is not there."""
    job = slurm.submit(script("train.sbatch"), cwd=tmp_path)
    until_checkpoint()
    [run] = slurm.processes("quern")
    os.kill(run, signal.SIGKILL)
    start_now(slurm, job)
    assert slurm.until(job, "COMPLETED")["Restarts"] == "1"
    assert digest(tmp_path / "digits.safetensors") == wanted() and went_on(tmp_path)
    assert "exited with 137" in log_of(tmp_path)


@pytest.mark.parametrize("how", ["taken", "lost"])
def test_its_node_goes(slurm, script, wanted, tmp_path, until_checkpoint, how):
    """Taken by the administrator, or gone with all that ran on it: another node goes on."""
    job = slurm.submit(script("train.sbatch"), cwd=tmp_path)
    until_checkpoint()
    node = slurm.job(job)["NodeList"]
    if how == "lost":
        slurm.lose_node(node)
    slurm.ask("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
    try:
        start_now(slurm, job)
        ended = slurm.until(job, "COMPLETED")
        assert ended["NodeList"] != node and ended["Restarts"] == "1" and went_on(tmp_path)
        assert digest(tmp_path / "digits.safetensors") == wanted()
    finally:
        slurm.mend_node(node) if how == "lost" else slurm.ask(
            "scontrol", "update", f"NodeName={node}", "State=RESUME")


def test_cancelled_it_stays_so(slurm, quern, script, tmp_path, until_checkpoint):
    env = {"QUERN_JOBS": str(tmp_path / "jobs")}
    args = [a if a != "15" else "2000" for a in JOB]
    out = slurm.ask(quern, "submit", "--slurm", "--cpus", "2", "--json", "train", *args, *OFTEN, "-o",
                    "m", cwd=tmp_path, env=env)
    job = json.loads(out)["id"]
    until_checkpoint("m")
    assert json.loads(slurm.ask(quern, "jobs", "--json", env=env))["state"] == "running"
    slurm.ask("scancel", job)
    slurm.until(job, "CANCELLED")
    assert json.loads(slurm.ask(quern, "jobs", "--json", env=env))["state"] == "stopped"
    assert not (tmp_path / "m").exists()


def test_a_wrong_option_is_not_tried_again(slurm, script, tmp_path):
    job = slurm.submit(script("train.sbatch", ["--data", "absent.csv"]), cwd=tmp_path)
    assert slurm.until(job, "FAILED")["ExitCode"] == "1:0"
    assert "absent.csv" in log_of(tmp_path) and "Restarts=0" in slurm.ask("scontrol", "show", "job", job)


def test_an_array_of_seeds(slurm, script, wanted, tmp_path):
    job = slurm.submit(script("seeds.sbatch", JOB, **{"--array=.*": "--array=1-3%2"}), cwd=tmp_path)
    for seed in (1, 2, 3):
        slurm.until(f"{job}_{seed}", "COMPLETED")
        assert digest(tmp_path / f"digits-{seed}.safetensors") == wanted(seed, JOB)


def test_an_array_divides_a_search(slurm, quern, run_quern, tmp_path):
    """A job after the array prints the table of one process."""
    env = {"QUERN_JOBS": str(tmp_path / "jobs")}
    search = ["search", *recipes.DIGITS[:4], "--model", "dense 10 softmax", "--epochs", "1", "--folds", "2", "--threads", "1",
              "--grid", "lr 0.1,0.3", "--run-dir", "tries", "--quiet"]
    out = slurm.ask(quern, "submit", "--slurm", "--array", "3", "--cpus", "1", "--json", *search, cwd=tmp_path, env=env)
    told = json.loads(out)
    slurm.until(told["id"], "COMPLETED")
    wanted = run_quern(*["alone" if word == "tries" else word for word in search], cwd=tmp_path).stdout
    assert (tmp_path / f"tries-{told['id']}_0.log").read_text() == wanted.replace("--run-dir alone", "--run-dir tries")
    assert told["log"].endswith(f"tries-{told['id']}_0.log") and told["array"] != told["id"]
    assert json.loads(slurm.ask(quern, "jobs", "--json", env=env))["state"] == "done"
    assert sorted(path.suffix for path in (tmp_path / "jobs").iterdir()) == [".ended", ".json", ".sh"]


# ---------------------------------------------------------------- several ranks

@pytest.mark.parametrize("name", ["train.sbatch", "train_mpirun.sbatch"])
def test_a_rank_dies_and_the_others_go_on(slurm, script, wanted, tmp_path, until_checkpoint, name):
    slurm.until_idle()
    job = slurm.submit(script(name, nodes=[3]), cwd=tmp_path)
    until_checkpoint()
    ranks = sorted(slurm.processes("quern"))
    assert len(ranks) == 3
    os.kill(ranks[-1], signal.SIGKILL)
    assert slurm.until(job, "COMPLETED")["Restarts"] == "0"
    assert "has died" in log_of(tmp_path)
    assert digest(tmp_path / "digits.safetensors") == wanted(job=SEVERAL)


def test_a_node_of_several_goes_and_the_others_go_on(slurm, script, wanted, tmp_path, until_checkpoint):
    """Not that of the job's script: Slurm's --no-kill leaves the rest of the job alone."""
    slurm.until_idle()
    job = slurm.submit(script("train.sbatch", nodes=[3]), cwd=tmp_path)
    until_checkpoint()
    node = next(n for n in NODES if n != slurm.job(job)["BatchHost"])
    slurm.lose_node(node)
    slurm.ask("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
    try:
        assert slurm.until(job, "COMPLETED")["Restarts"] == "0"
        assert digest(tmp_path / "digits.safetensors") == wanted(job=SEVERAL)
    finally:
        slurm.mend_node(node)


# Long: Slurm allocates a heterogeneous job anew so slowly that a busy machine exceeds the time limit.
# It waits for its own time limits before it gives a lost node up, and then does not always say why
# the job ended.
@pytest.mark.parametrize("name, nodes, how", [
    ("train.sbatch", [3], "taken"),
    ("train.sbatch", [3], "lost"),
    pytest.param("train_mpirun.sbatch", [3], "taken", marks=machine.LONG),
    pytest.param("heterogeneous.sbatch", [2, 1], "taken", marks=machine.LONG)])
def test_the_first_node_of_several_goes(slurm, script, wanted, tmp_path, until_checkpoint, name, nodes, how):
    """The job's script ends with it. The job is requeued and finished, by the nodes that are left.

    A lost node is down for Slurm after a time limit; the other ranks are halted until then."""
    changes = {"sleep 60": "sleep 1"}
    if name == "heterogeneous.sbatch":  # nodes of two kinds, n3 and the others; here one fewer will do
        changes |= {"--nodes=2\n": "--nodes=1-2\n#SBATCH --exclude=n3\n",
                    "#SBATCH hetjob\n": "#SBATCH hetjob\n#SBATCH --exclude=n[1-2]\n"}
    slurm.until_idle()
    job = slurm.submit(script(name, nodes=nodes, **changes), cwd=tmp_path)
    until_checkpoint()
    node = slurm.job(job)["BatchHost"]
    if how == "lost":
        slurm.lose_node(node)
        for rank in slurm.processes("quern"):
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(rank, signal.SIGSTOP)
    else:
        slurm.ask("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
    try:
        start_now(slurm, job)
        ended = slurm.until(job, "COMPLETED")
        # One that starts while ranks of a lost node are still ending queues itself once more.
        assert ended["Restarts"] in (("1", "2") if how == "lost" else ("1",))
        assert ended["BatchHost"] != node and went_on(tmp_path)
        assert digest(tmp_path / "digits.safetensors") == wanted(job=SEVERAL)
        assert f"node {node} has failed; requeuing" in log_of(tmp_path)
    finally:
        if how == "lost":
            slurm.mend_node(node)
        else:
            slurm.run("scontrol", "update", f"NodeName={node}", "State=RESUME")


def test_stopped_and_started_on_fewer_nodes(slurm, script, wanted, tmp_path, until_checkpoint):
    slurm.until_idle()
    batch = script("train.sbatch", nodes=[3])
    job = slurm.submit(batch, cwd=tmp_path)
    until_checkpoint()
    slurm.ask("scancel", job)
    slurm.until(job, "CANCELLED")
    assert not (tmp_path / "digits.safetensors").exists()
    job = slurm.submit(batch, "--nodes=2", cwd=tmp_path)
    assert slurm.until(job, "COMPLETED")["NumNodes"] == "2"
    assert digest(tmp_path / "digits.safetensors") == wanted(job=SEVERAL) and went_on(tmp_path)


def test_all_ranks_die(slurm, script, wanted, tmp_path, until_checkpoint):
    slurm.until_idle()
    job = slurm.submit(script("train.sbatch", nodes=[3]), cwd=tmp_path)
    until_checkpoint()
    for rank in slurm.processes("quern"):
        os.kill(rank, signal.SIGKILL)
    start_now(slurm, job)
    assert slurm.until(job, "COMPLETED")["Restarts"] == "1"
    assert digest(tmp_path / "digits.safetensors") == wanted(job=SEVERAL) and went_on(tmp_path)


def test_parts_of_a_heterogeneous_job(slurm, script, wanted, tmp_path):
    """Two nodes of one kind, one of another."""
    slurm.until_idle()
    job = slurm.submit(script("heterogeneous.sbatch", JOB, nodes=[2, 1]), cwd=tmp_path)
    slurm.until(job, "COMPLETED")
    assert digest(tmp_path / "digits.safetensors") == wanted(job=JOB) and ranks_in(tmp_path) == 3


def test_srun_alone(slurm, quern, wanted, tmp_path):
    """No MPI, no rendezvous address, no key: what srun says, and a credential of MUNGE, are enough."""
    out = slurm.ask("srun", "--nodes=3", "--ntasks=3", quern, "train", *JOB, "-o", "m", cwd=tmp_path,
                    timeout=60, env={"QUERN_MUNGE_SOCKET": str(slurm.folder / "munge" / "socket")})
    (tmp_path / "srun.log").write_text(out)
    assert digest(tmp_path / "m") == wanted(job=JOB) and ranks_in(tmp_path) == 3


@pytest.mark.parametrize("name, nodes", [("train.sbatch", [3]), ("train_mpirun.sbatch", [3]),
                                         ("heterogeneous.sbatch", [2, 1])])
def test_ranks_are_given_notice(slurm, script, wanted, tmp_path, until_checkpoint, name, nodes):
    """The signal that Slurm sends before the time limit, without waiting for the limit."""
    slurm.until_idle()
    job = slurm.submit(script(name, nodes=nodes), cwd=tmp_path)
    until_checkpoint()
    slurm.ask("scancel", "--batch", "--signal=USR1", job)
    start_now(slurm, job)
    assert slurm.until(job, "COMPLETED")["Restarts"] == "1"
    assert digest(tmp_path / "digits.safetensors") == wanted(job=SEVERAL) and went_on(tmp_path)
    assert "time limit reached; requeued" in log_of(tmp_path)


# ---------------------------------------------------------------- kernels

KERNEL = """INDEX(y, x); HALO(float, u, 1, wrap); SCALAR(int, work, 300); OUTPUT(float, v); NEXT(v, u);
KERNEL {
    float s = 0;
    for (int k = 0; k < work; k++) s = s * 0.5f + u(0, 1);
    v = 0.25f * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1)) + 1e-3f * s;
}
"""
RUN = ["run", "--kernel", "k.c", "--in", "u=u.npy", "--out", "v=v.npy", "--iterations", "3000", "--threads", "1"]


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_kernel_whose_ranks_die(slurm, quern, run_quern, tmp_path, monkeypatch):
    """srun starts the ranks of kernel.sbatch. One dies, then all; the next start ends with the same bytes."""
    monkeypatch.setenv("QUERN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "k.c").write_text(KERNEL)
    numpy.save(tmp_path / "u.npy", numpy.random.default_rng(1).random((40, 40), "float32"))
    run_quern(*RUN, cwd=tmp_path)
    wanted = digest(tmp_path / "v.npy"), digest(tmp_path / "v.recipe.json")
    (tmp_path / "v.npy").unlink(), (tmp_path / "v.recipe.json").unlink()
    text = (DEPLOY / "kernel.sbatch").read_text()
    words = " ".join([*RUN, "--checkpoint", "state", "--checkpoint-every", "50", "--resume"])
    for old, new in {r"arguments=\(.*?\)\n": f"arguments=({words})\n", "result=.*": "result=v.recipe.json",
                     "checkpoint=.*": "checkpoint=state", "program=quern": f"program={quern}",
                     "#SBATCH --exclusive.*": "#SBATCH --cpus-per-task=2", "--nodes=3-4": "--nodes=2-3"}.items():
        text, n = re.subn(old, new, text, count=1, flags=re.DOTALL if "arguments" in old else 0)
        assert n == 1
    (tmp_path / "kernel.sbatch").write_text(text)
    slurm.until_idle()
    job = slurm.submit(tmp_path / "kernel.sbatch", cwd=tmp_path)
    end = time.monotonic() + 40 * machine.PATIENCE
    while not (tmp_path / "state").exists():
        assert time.monotonic() < end, log_of(tmp_path)
        time.sleep(0.01)
    ranks = sorted(slurm.processes("quern"))
    assert len(ranks) == 3
    os.kill(ranks[-1], signal.SIGKILL)
    before = (tmp_path / "state").stat().st_ino
    while (tmp_path / "state").stat().st_ino == before:
        assert time.monotonic() < end, log_of(tmp_path)
        time.sleep(0.01)
    for rank in slurm.processes("quern"):
        os.kill(rank, signal.SIGKILL)
    start_now(slurm, job)
    assert slurm.until(job, "COMPLETED")["Restarts"] == "1"
    log = log_of(tmp_path)
    assert (digest(tmp_path / "v.npy"), digest(tmp_path / "v.recipe.json")) == wanted
    assert "has died" in log and "requeued, to continue from state" in log and "continued after iteration" in log
