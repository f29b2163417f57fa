"""quern submit and quern jobs: what they hand over, and what they tell of it afterwards.

The batch systems here are small scripts that behave as the real ones do; test_slurm.py has a real
Slurm. Jobs on this machine are real everywhere.
"""

import functools
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

import builds
import launch
import machine

EVIL = ["it's", 'a "quote"', "$(touch pwned)", "`touch pwned`", "back\\slash", "new\nline", "*", "-x y",
        "; touch pwned #", "tab\there", "ümlaut", "${HOME}", "!!", "&& touch pwned"]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def until(condition, seconds=40):
    end = time.monotonic() + seconds * machine.PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)
    return found


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to work in; what is submitted is remembered in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUERN_JOBS", str(tmp_path / "jobs"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    yield tmp_path
    for job in jobs_in(tmp_path):  # whatever a test left running
        if "process" in job and job.get("began") == began(job["process"]):
            os.killpg(int(job["process"]), signal.SIGKILL)


def jobs_in(folder):
    return [json.loads(f.read_text()) for f in sorted((folder / "jobs").glob("*-*.json"))]


def began(process):
    try:
        with open(f"/proc/{process}/stat") as f:
            return f.read().rpartition(")")[2].split()[19]
    except OSError:
        return None


@pytest.fixture
def fake(here, monkeypatch):
    """fake(name, script): a program of that name stands first on the PATH."""
    folder = here / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def make(name, script):
        path = folder / name
        path.write_text("#!/bin/bash\n" + script)
        path.chmod(0o755)
        return path

    return make


def listed(run_quern, *more):
    out = run_quern("jobs", "--json", *more).stdout
    return [json.loads(line) for line in out.splitlines()]


# ---------------------------------------------------------------- what is handed over

ENGINES = {"slurm": ["--slurm"], "slurm-ranks": ["--slurm", "--ranks", "3"],
           "slurm-mpirun": ["--slurm", "--ranks", "3", "--launcher", "mpirun"],
           "local": ["--local"], "local-ranks": ["--local", "--ranks", "2"],
           "local-hosts": ["--local", "--ranks", "2", "--hostfile", "my hosts"]}


@pytest.mark.parametrize("engine", ENGINES)
def test_scripts_are_clean(run_quern, here, engine):
    builds.require("shellcheck", "bash")
    script = here / "job.sh"
    script.write_text(run_quern("submit", *ENGINES[engine], "--dry-run", "train", "--data",
                                "it's.csv", "-o", "m.safetensors").stdout)
    done = subprocess.run(["shellcheck", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert not (here / "jobs").exists()


@pytest.mark.parametrize("engine", ["local", "slurm"])
def test_every_argument_arrives_as_it_was(run_quern, fake, here, engine):
    """Whatever stands in it: the job's script is run with a program that notes what it got."""
    builds.require("bash")
    program = fake("noting", 'printf "%s\\0" "$@" >got; echo x >"my model"; mkdir -p state\n')
    arguments = ["--data", EVIL[0]]
    for option, value in zip(["--labels", "--test", "--test-labels", "--valid", "--valid-labels",
                              "--model", "--label", "--trace", "--run-dir", "--devices", "--shares",
                              "--device-timeout"], EVIL[1:]):
        arguments += [f"{option}={value}"]
    arguments += ["-o", "my model", "--checkpoint", "state"]
    script = run_quern("submit", f"--{engine}", "--dry-run", "--program", program, "train",
                       *arguments).stdout
    env = {**os.environ, "SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "1"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=env,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    got = (here / "got").read_bytes().decode().split("\0")[:-1]
    assert got == ["train", *arguments, "--resume"]
    assert not (here / "pwned").exists()


def test_train_is_found_behind_values_that_look_like_it(run_quern, here):
    out = run_quern("submit", "--slurm", "--partition", "train", "--name=train", "--dry-run", "--",
                    "train", "-o", "m").stdout
    assert "#SBATCH --partition=train\n" in out and "arguments=(train\n    -o m\n" in out


def test_checkpoints_are_added_only_where_they_lack(run_quern, here):
    given = ["train", "-o", "m", "--resume", "--checkpoint", "mine"]
    out = run_quern("submit", "--local", "--dry-run", *given).stdout
    assert out.count("--resume") == out.count("--checkpoint ") == 1 and "checkpoint=mine\n" in out
    out = run_quern("submit", "--local", "--dry-run", "train", "-o", "a b").stdout
    assert "--checkpoint 'a b.checkpoint'\n    --resume)" in out


@pytest.mark.parametrize("options", ["--constraint=avx512 --qos=long", "--qos=long", "-C avx512"])
def test_options_for_sbatch_as_the_help_writes_them(run_quern, options):
    script = run_quern("submit", "--slurm", "--sbatch", options, "--dry-run", "train", "-o", "m").stdout
    assert f"\n#SBATCH {options}\n" in script


@pytest.mark.parametrize("words, message", [
    (["train", "-o", "m"], "--slurm, --kubernetes or --local is required"),
    (["--local", "--slurm", "train", "-o", "m"], "a job runs in one place, not in 2"),
    (["--local"], "nothing to submit"),
    (["--local", "predict", "m"], "only train, run, search, serve and watch can be submitted, not \"predict\""),
    (["--local", "train"], "-o FILE is required"),
    (["--local", "search", "--run-dir", "d"], "submitted to Slurm, as a job array"),
    (["--slurm", "--array", "2", "search"], "need a folder"),
    (["--slurm", "--array", "2", "search", "--run-dir", "d", "--grid", "lr x"], "--lr cannot be"),
    (["--slurm", "--array", "2", "search", "--run-dir", "d", "--part", "1/2"], "--part is not for it"),
    (["--slurm", "--array", "2", "--ranks", "2", "search", "--run-dir", "d"], "is one process"),
    (["--slurm", "--array", "2", "train", "-o", "m"], "--array divides a search"),
    (["--local", "--array", "2", "train", "-o", "m"], "--array belongs to --slurm"),
    (["--slurm", "run", "--kernel", "k.c"], "the job would write no file"),
    (["--slurm", "run", "--kernel", "k.c", "--out", "a=b", "--ranks", "2"], '--ranks before "run"'),
    (["--slurm", "run", "--kernel", "k.c", "--out", "a=b", "--itre", "2"], 'no option "--itre"'),
    (["--local", "train", "-o", "m", "--lrr", "1"], "did you mean --lr?"),
    (["--local", "train", "-o", "m", "--batch", "0"], "--batch cannot be \"0\""),
    (["--local", "train", "-o", "m", "--beta1", "0.5"], "--beta1 does nothing with"),
    (["--local", "--tiem", "3", "train", "-o", "m"], "did you mean --time?"),
    (["--local", "--time", "3", "train", "-o", "m"], "--time belongs to --slurm"),
    (["--slurm", "--image", "x", "train", "-o", "m"], "--image belongs to --kubernetes"),
    (["--slurm", "--partition", "a b", "train", "-o", "m"], "--partition cannot be"),
    (["--slurm", "--sbatch", "a\nb", "train", "-o", "m"], "line break"),
    (["--slurm", "--ranks", "0", "train", "-o", "m"], "--ranks cannot be"),
    (["--slurm", "--ranks", "2", "--launcher", "none", "train", "-o", "m"], "several ranks need a launcher"),
    (["--slurm", "--name", "a;b", "train", "-o", "m"], "--name cannot be"),
    (["--kubernetes", "train", "-o", "m"], "needs an image"),
    (["--kubernetes", "--image", "x", "--launcher", "srun", "train", "-o", "m"], "leave --launcher"),
    (["--local", "--cpus", "3", "train", "-o", "m"], "--threads"),
    (["--local", "--hostfile", "absent", "train", "-o", "m"], "cannot read the hostfile absent: No"),
])
def test_refused_before_anything_is_submitted(run_quern, here, words, message):
    done = run_quern("submit", *words, status=2)
    assert message in done.stderr and not (here / "jobs").exists()


# Minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS; and what Slurm would take for something else
# or refuse.
@pytest.mark.parametrize("good, bad", [
    ("90", ["0", "1.5", "-5", "+5", "4h", "12345678"]),
    ("90:30", ["90:", ":30", "1:60", "1:030", "00:00"]),
    ("100:00:59", ["1:60:00", "1:00:00:00", "1:00:00:"]),
    ("2-0", ["2-", "2-24", "-12", "2-0-0", "0-0"]),
    ("1-23:59", ["1-1:60", "1-1:"]),
    ("1-23:59:00", ["1-23:59:00 ", " 90", "unlimited:", "1-00:00:00:00"]),
])
def test_time_limits(run_quern, here, good, bad):
    words = "--slurm", "--dry-run", "train", "-o", "m"
    assert f"#SBATCH --time={good}\n" in run_quern("submit", "--time", good, *words).stdout
    for text in bad:
        done = run_quern("submit", f"--time={text}", *words, status=2)
        assert f'--time cannot be "{text}"' in done.stderr and "days-hours" in done.stderr


# ---------------------------------------------------------------- exit codes that say nothing

FAILING = {"local": ["--local", "--ranks", "2", "--hostfile", "hosts"],
           "slurm": ["--slurm", "--ranks", "2", "--launcher", "mpirun"], "kubernetes": None}


@pytest.mark.parametrize("engine, model", [("local", "old"), ("slurm", "absent"),
                                           ("kubernetes", "old")])
def test_an_mpirun_that_hides_a_failure(run_quern, quern, fake, here, engine, model):
    """Open MPI 4.1 with --enable-recovery returns 0 although all ranks failed; the scripts do not."""
    builds.require("bash", "mpirun.openmpi")
    fake("mpirun", f'exec -a mpirun {shutil.which("mpirun.openmpi")} "$@"\n')
    fake("srun", "exit 0\n")
    (here / "hosts").write_text("localhost slots=2\n")
    if model == "old":
        (here / "m").write_text("a model of another run")
    command = [quern, "train", "--data", "absent.csv", "-o", "m"]
    env = launch.clean_environment(OMPI_MCA_rmaps_base_oversubscribe="1")
    plain = subprocess.run(["mpirun", "--enable-recovery", "-n", "2", *command], env=env,
                           capture_output=True, text=True, timeout=60)
    assert plain.returncode == 0 and "absent.csv" in plain.stderr
    script = ["bash", builds.ROOT / "deploy" / "kubernetes" / "mpirun.sh", "m", *command]
    if engine == "kubernetes":
        env["OMPI_MCA_orte_default_hostfile"] = str(here / "hosts")
    else:
        env = {k: v for k, v in env.items() if k not in launch.AS_ROOT}  # the script sets what root needs
        script = ["bash", "-c", run_quern("submit", *FAILING[engine], "--dry-run", *command[1:]).stdout]
        env |= {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURMD_NODENAME": "localhost"}
    done = subprocess.run(script, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "absent.csv" in done.stderr
    assert re.search("ended with 1|given up|before m was written", done.stdout + done.stderr)
    assert (here / "m").exists() == (model == "old")


# ---------------------------------------------------------------- engines that are not there

@pytest.mark.parametrize("words, program", [(["--slurm"], "sbatch"),
                                            (["--kubernetes", "--image", "i"], "kubectl")])
def test_an_absent_engine_is_named_with_a_way_out(quern, here, words, program):
    done = subprocess.run([quern, "submit", *words, "train", "-o", "m"], capture_output=True,
                          text=True, env={**os.environ, "PATH": str(here)})
    assert done.returncode == 1 and f'there is no command "{program}"' in done.stderr
    assert "--local" in done.stderr and not jobs_in(here)
    assert not list((here / "jobs").iterdir())


def test_what_the_engine_complains_of_is_told(run_quern, fake, here):
    fake("sbatch", "echo 'sbatch: error: invalid partition specified: fast' >&2; exit 1\n")
    done = run_quern("submit", "--slurm", "train", "-o", "m", status=1)
    assert "invalid partition specified: fast" in done.stderr and not jobs_in(here)


def test_jobs_without_the_engine(run_quern, fake, here, monkeypatch):
    sbatch = fake("sbatch", "echo 41\n")
    run_quern("submit", "--slurm", "train", "-o", "m")
    sbatch.unlink()
    fake("squeue", "echo 'squeue: error: Unable to contact slurm controller' >&2; exit 1\n")
    fake("sacct", "exit 1\n")
    [job] = listed(run_quern)
    assert job["state"] == "unknown" and "does not answer" in job["detail"]


# ---------------------------------------------------------------- engines that answer

SLURM = [("PENDING", "queued"), ("RUNNING", "running"), ("REQUEUED", "queued"),
         ("COMPLETED", "done"), ("CANCELLED", "stopped"), ("TIMEOUT", "failed"),
         ("NODE_FAIL", "failed"), ("OUT_OF_MEMORY", "failed")]


@pytest.mark.parametrize("word, state", SLURM)
def test_slurm_states(run_quern, fake, here, word, state):
    fake("sbatch", 'cp "$2" given; echo "12;cluster"\n')
    fake("squeue", f'[ "${{@: -1}}" = 12 ] && echo {word}\n')
    out = run_quern("submit", "--slurm", "--json", "train", "-o", "m").stdout
    assert json.loads(out)["id"] == "12"
    assert (here / "given").read_text() == run_quern("submit", "--slurm", "--dry-run", "train", "-o",
                                                     "m").stdout
    [job] = listed(run_quern)
    assert job["state"] == state and job["detail"] == word.lower() and job["model"] == "m"
    assert "slurm 12" in run_quern("jobs").stdout


def test_slurm_forgets_but_the_job_left_its_code(run_quern, fake, here):
    fake("sbatch", "echo 12\n")
    fake("squeue", "exit 1\n")
    fake("sacct", "exit 1\n")
    run_quern("submit", "--slurm", "train", "-o", "m")
    (here / "jobs" / "slurm-12.ended").write_text("0\n")
    assert listed(run_quern)[0]["state"] == "done"
    (here / "jobs" / "slurm-12.ended").write_text("130\n")
    assert listed(run_quern)[0]["state"] == "stopped"
    fake("sacct", "echo 'CANCELLED by 0'\n")
    (here / "jobs" / "slurm-12.ended").unlink()
    assert listed(run_quern, "--forget")[0]["state"] == "stopped"
    assert listed(run_quern) == [] and not list((here / "jobs").iterdir())
    assert "there are no jobs" in run_quern("jobs").stdout


KUBERNETES = [("Created ", "queued"), ("Created Running ", "running"),
              ("Created Succeeded ", "done"), ("Created Failed ", "failed")]


@pytest.mark.parametrize("conditions, state", KUBERNETES)
def test_kubernetes_states(run_quern, fake, here, conditions, state):
    fake("kubectl", f"""echo "$@" >>asked
if [ "$1" = create ]; then cp "$3" given; echo created; else printf '{conditions}'; fi
""")
    words = ["submit", "--kubernetes", "--ranks", "2", "--image", "i", "--namespace", "lab"]
    run_quern(*words, "train", "-o", "My Model.safetensors")
    [job] = listed(run_quern)
    assert (job["state"], job["id"], job["kind"]) == (state, "lab/my-model", "mpijob")
    asked = (here / "asked").read_text()
    assert "get mpijob my-model -n lab" in asked
    assert (here / "given").read_text() == (here / "jobs" / "kubernetes-lab.my-model.yaml").read_text()


def test_a_slow_engine_is_not_waited_for_for_ever(run_quern, fake, here):
    fake("sbatch", "echo 12\n")
    fake("sacct", "exit 1\n")
    run_quern("submit", "--slurm", "train", "-o", "m")
    fake("squeue", "exec sleep 600\n")
    start = time.monotonic()
    assert listed(run_quern)[0]["state"] == "unknown"
    assert 8 < time.monotonic() - start


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"engine":"local"}', '{"engine": 3, "id": "1"}',
                                  '{"engine":"local","id":"1"', '{"engine":"\\ud800","id":"1"}',
                                  "\0" * 100, "{" * 10000, '{"a":"' + "b" * 2000000 + '"}'])
def test_files_that_are_no_jobs_are_left_out(run_quern, here, text):
    (here / "jobs").mkdir()
    (here / "jobs" / "x.json").write_text(text)
    assert listed(run_quern) == []


def test_texts_in_files_do_not_drive_the_terminal(run_quern, here):
    (here / "jobs").mkdir()
    (here / "jobs" / "x.json").write_text(
        '{"engine":"other\\u001b[31m","id":"1","name":"\\u001b[2J","model":"m"}')
    out = run_quern("jobs").stdout
    assert "\x1b" not in out and "another version" in out


# ---------------------------------------------------------------- this machine

QUICK = ["train", "--model", "dense 30 tanh; dense 10 softmax", "--epochs", "3", "--quiet"]


def long(size):
    """Half a second on a core, and more for a larger size."""
    return ["train", "--model", "dense 40 tanh; dense 10 softmax", "--epochs", 6 * size, "--batch", "16", "--quiet"]


@pytest.fixture(scope="module")
def wanted(run_quern, tmp_path_factory):
    """wanted(words): the bytes of such a run, from train itself."""
    @functools.cache
    def of(*words):
        out = tmp_path_factory.mktemp("wanted") / "m"
        run_quern(*words, "-o", out)
        return digest(out)

    return lambda words: of(*words)


def state(run_quern):
    return listed(run_quern)[0]["state"]


def test_in_the_background(run_quern, here, wanted):
    out = run_quern("submit", "--local", *QUICK, "-o", "my model").stdout
    assert "submitted local job" in out
    until(lambda: state(run_quern) == "done")
    assert digest(here / "my model") == wanted(QUICK)
    assert wanted(QUICK) in (here / "jobs" / f"local-{listed(run_quern)[0]['id']}.log").read_text()


def children(process):
    try:
        with open(f"/proc/{process}/task/{process}/children") as f:
            return [int(c) for c in f.read().split()]
    except OSError:  # it has ended
        return []


def program_of(process):
    """Its name, or "" when it has ended meanwhile."""
    try:
        return os.path.basename(os.readlink(f"/proc/{process}/exe"))
    except OSError:
        return ""


def submit_long(run_quern, here, size):
    """Submits such a run, and waits for its first checkpoint. Returns the job and the model."""
    out = f"m{size}"
    run_quern("submit", "--local", *long(size), "--checkpoint-every", "200", "-o", out)
    [job] = [j for j in jobs_in(here) if out in j.values()]
    until(lambda: list((here / f"{out}.checkpoint").glob("checkpoint-*")))
    return job, here / out


def test_killed_it_starts_again_by_itself(run_quern, here, wanted):
    """kill -9 on the run, twice: nobody does anything, the model is the same."""
    def attempt(size):
        job, out = submit_long(run_quern, here, size)
        for kills in range(2):
            found = until(lambda: [c for c in children(job["process"]) if program_of(c) == "quern"] or out.exists())
            if found is True:
                break
            os.kill(found[0], signal.SIGKILL)
            until(lambda: found[0] not in children(job["process"]))
        until(lambda: listed(run_quern)[-1]["state"] == "done")
        assert digest(out) == wanted(long(size))
        log = (here / "jobs" / f"local-{job['id']}.log").read_text()
        return log.count("exited with 137 before the end of the run") == 2 or None

    machine.caught(attempt)


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_kernel(run_quern, here):
    """In the background, from a file of options; what cannot run is refused first."""
    (here / "k.c").write_text("INDEX(i); OUTPUT(int, o); SUM(double, s); KERNEL { o = (int)i; s = i; }")
    (here / "j.toml").write_text('kernel = "k.c"\nshape = 9\n[out]\no = "o.npy"\n')
    done = run_quern("submit", "--local", "run", "j.toml", "--set", "a=1", status=2)
    assert 'no scalar "a"' in done.stderr and not jobs_in(here)
    assert "o.recipe.json" in run_quern("submit", "--local", "run", "j.toml").stdout
    until(lambda: listed(run_quern)[0]["state"] == "done")
    run_quern("replay", "o.recipe.json")


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_kernel_that_is_killed(run_quern, here):
    """It goes on with the items that are left, and has the same bytes."""
    (here / "k.c").write_text("INDEX(i); RANDOM; OUTPUT(double, o); SUM(double, s);\n"
                              "KERNEL { double a = 0; for (int k = 0; k < 9000; k++) a = a * 0.5 + uniform(k); o = a; s = a; }")

    def attempt(size):
        words = ["run", "--kernel", "k.c", "--shape", 9000 * size, "--threads", 1, "--out"]
        run_quern("submit", "--local", *words, f"o=o{size}.npy", "--checkpoint-every", "0.01s")
        [job] = [j for j in jobs_in(here) if f"o{size}.recipe.json" in json.dumps(j)]
        saved = here / f"o{size}.checkpoint"
        until(lambda: saved.exists() and re.search(rb"\0items [1-9]", saved.read_bytes()))
        for run in [c for c in children(job["process"]) if program_of(c) == "quern"]:
            os.kill(run, signal.SIGKILL)
        until(lambda: listed(run_quern)[-1]["state"] == "done")
        log = (here / "jobs" / f"local-{job['id']}.log").read_text()
        return (words, size, log) if "exited with 137 before the end of the run" in log else None

    words, size, log = machine.caught(attempt)
    assert int(re.search(r"continued after (\d+) items", log)[1]) > 0
    run_quern(*words, "o=p.npy")
    assert digest(here / f"o{size}.npy") == digest(here / "p.npy")


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_how_often_a_kernel_saves(run_quern, here):
    """It may be given, since submit adds where; by a number only where there are iterations."""
    (here / "k.c").write_text("INDEX(i); INPUT(float, a); OUTPUT(float, b); NEXT(b, a); KERNEL { b = a; }")
    words = ["submit", "--slurm", "--dry-run", "run", "--kernel", "k.c", "--in", "a=a.npy", "--out", "b=b.npy",
             "--checkpoint-every", 5]
    assert "--checkpoint-every" in run_quern(*words, "--iterations", 9).stdout
    assert "the kernel runs once" in run_quern(*words, status=2).stderr
    given = run_quern(*words[:-1], "5m").stdout
    assert "checkpoint=b.checkpoint\n" in given and "--checkpoint b.checkpoint\n    --resume)" in given


def test_stopped_and_submitted_again(run_quern, here, wanted):
    def attempt(size):
        job, out = submit_long(run_quern, here, size)
        os.kill(int(job["process"]), signal.SIGTERM)
        until(lambda: listed(run_quern)[-1]["state"] in ("stopped", "done"))
        return (size, out) if listed(run_quern)[-1]["state"] == "stopped" else None

    size, out = machine.caught(attempt)
    assert not out.exists()
    run_quern("submit", "--local", *long(size), "--checkpoint-every", "200", "-o", out.name)
    until(lambda: listed(run_quern)[-1]["state"] == "done")
    assert digest(out) == wanted(long(size))


def test_given_up_when_nothing_moves(run_quern, here):
    run_quern("submit", "--local", "train", "--data", "absent.csv", "-o", "m")
    until(lambda: state(run_quern) == "failed")
    log = next((here / "jobs").glob("*.log")).read_text()
    assert log.count("absent.csv") >= 3 and "given up" in log
    assert listed(run_quern)[0]["detail"] == "exit code 1"


def test_lost_with_everything(run_quern, here):
    run_quern("submit", "--local", *long(1000), "-o", "m")
    job = jobs_in(here)[0]
    assert state(run_quern) == "running"
    os.killpg(int(job["process"]), signal.SIGKILL)
    until(lambda: began(job["process"]) is None)
    assert state(run_quern) == "lost"


def test_a_later_process_of_the_same_number_is_not_the_job(run_quern, here):
    (here / "jobs").mkdir()
    (here / "jobs" / "one.json").write_text(json.dumps(
        {"engine": "local", "id": "1", "name": "n", "model": "m", "process": str(os.getpid()),
         "began": str(int(began(os.getpid())) - 1)}))
    assert state(run_quern) == "lost"


def test_nowhere_to_remember(run_quern, here, monkeypatch):
    (here / "file").write_text("")
    monkeypatch.setenv("QUERN_JOBS", str(here / "file" / "jobs"))
    done = run_quern("submit", "--local", *QUICK, "-o", "m", status=1)
    assert "QUERN_JOBS" in done.stderr
    monkeypatch.delenv("QUERN_JOBS")
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "state"))
    run_quern("submit", "--local", *QUICK, "-o", "m")
    until(lambda: state(run_quern) == "done")
    assert len(list((here / "state" / "quern" / "jobs").glob("*.json"))) == 1
