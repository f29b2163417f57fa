"""The manifests against the schemas of Kubernetes and of the MPI operator, and what they start.

No cluster is needed: the operator is imitated. It makes a pod of each worker, in which sshd runs, and
one for the launcher, and tells mpirun by a file and by its environment who they are; here the pods are
hosts of hosts.py, and what is called ssh enters them.
"""

import functools
import gzip
import hashlib
import os
import re
import shutil
import signal
import subprocess
import textwrap
import time

import pytest

import builds
import hosts
import launch
import machine
import recipes
from builds import ROOT

yaml = pytest.importorskip("yaml", reason="scripts/setup.sh installs it")
jsonschema = pytest.importorskip("jsonschema", reason="scripts/setup.sh installs it")
kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="scripts/setup.sh installs it")

DEPLOY = ROOT / "deploy" / "kubernetes"
SCHEMAS = ROOT.parent / "shared" / "data" / "kubernetes"
# Resources of operators, and the files with their schemas.
KINDS = {"MPIJob": "kubeflow.org_mpijobs.yaml", "JobSet": "jobset.x-k8s.io_jobsets.yaml.gz",
         "TrainJob": "trainer.kubeflow.org_trainjobs.yaml.gz",
         "ClusterTrainingRuntime": "trainer.kubeflow.org_clustertrainingruntimes.yaml.gz"}
MANIFESTS = sorted(p.name for p in DEPLOY.glob("*.yaml"))
# Kubernetes' own kinds: the oldest whose schema of the pod failure policy is right, and the newest known.
VERSIONS = ["1.29", kubernetes_validate.latest_version()]
ARGUMENTS = ["train", "--data", "train.csv", "--test", "test.csv", "--epochs", "100", "-o", "digits.safetensors"]
RUN = ["run", "--kernel", "heat.c", "--in", "u=u.npy", "--out", "u_new=end.npy", "--iterations", "100000"]
SUBMIT = ["submit", "--kubernetes", "--image", "registry.example/quern", "--cpus", "8"]
# A second or two on a core, in small steps, with a checkpoint now and then.
JOB = ["train", *(w for name, path in recipes.FEW.items() for w in (f"--{name}", path.name)), "--model",
       "dense 60 tanh; dense 10 softmax", "--batch", "16", "--epochs", "20", "--json", "--threads", "1", "-o", "m"]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---------------------------------------------------------------- schemas

def closed(schema):
    """The schema, with no field allowed that it does not name: Kubernetes would drop it silently."""
    if isinstance(schema, list):
        return [closed(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {k: closed(v) for k, v in schema.items()}
    if isinstance(out.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        out.setdefault("additionalProperties", False)
    if out.get("x-kubernetes-int-or-string"):
        out.pop("type", None)
    return out


@functools.cache
def schema_of(kind, version):
    """A validator of a resource of an operator."""
    path = SCHEMAS / KINDS[kind]
    if not path.exists():
        pytest.skip(f"no {path.name} in shared/data/kubernetes beside the repository")
    with gzip.open(path) if path.suffix == ".gz" else open(path) as f:
        crd = yaml.load(f, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    [found] = [v for v in crd["spec"]["versions"] if v["name"] == version]
    schema = closed(found["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    return jsonschema.Draft202012Validator(schema)


def check_pod(template):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template["spec"]}
    kubernetes_validate.validate(pod, VERSIONS[-1], strict=True)


def check(text):
    """Every document in it is what Kubernetes, or an operator, takes."""
    for document in yaml.safe_load_all(text):
        kind, spec = document["kind"], document.get("spec", {})
        if kind not in KINDS:
            # A policy for success came with 1.31.
            for version in VERSIONS[1:] if "successPolicy" in spec else VERSIONS:
                kubernetes_validate.validate(document, version, strict=True)
            continue
        schema_of(kind, document["apiVersion"].partition("/")[2]).validate(document)
        for role, replica in spec.get("mpiReplicaSpecs", {}).items():
            assert role in ("Launcher", "Worker")
            assert replica["restartPolicy"] in ("Always", "OnFailure", "Never", "ExitCode")
            check_pod(replica["template"])
        for jobs in spec.get("template", document).get("spec", {}).get("replicatedJobs", []):
            kubernetes_validate.validate({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
                                          "spec": jobs["template"]["spec"]}, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_fit_the_schemas(name):
    check((DEPLOY / name).read_text())


@pytest.mark.parametrize("more", [[], ["--ranks", 3], ["--ranks", 2, "--gpus", 2, "--memory", "8Gi",
                                                       "--namespace", "lab", "--name", "other"]])
def test_what_submit_writes_fits_the_schemas(run_quern, more):
    arguments = ["train", "--data", "a b: {c}.csv", "-o", "it's \"so\"\n- odd"]
    text = run_quern(*SUBMIT, *more, "--dry-run", *arguments).stdout
    check(text)
    spec = yaml.safe_load(text)["spec"]
    template = spec["template"] if "template" in spec else spec["mpiReplicaSpecs"]["Launcher"]["template"]
    [container] = template["spec"]["containers"]
    assert container["args"][:len(arguments)] == arguments


@pytest.mark.parametrize("arguments, kinds, port", [
    (["serve", "models", "--insecure"], ["Deployment", "Service"], 8080),
    (["serve", "a b.st", "--tls-cert=c", "--tls-key", "k", "--token-file", "t", "--listen", ":8444"], ["Deployment", "Service"],
     8444),
    (["watch", "in \"x\"", "--model", "m", "-o", "postgresql://h/d?table=t"], ["Deployment"], None)])
def test_what_submit_writes_of_servers_fits_the_schemas(run_quern, arguments, kinds, port):
    text = run_quern(*SUBMIT, "--name", "other", "--dry-run", *arguments).stdout
    check(text)
    made = list(yaml.safe_load_all(text))
    assert [d["kind"] for d in made] == kinds
    pod = made[0]["spec"]["template"]
    assert made[0]["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    [container] = pod["spec"]["containers"]
    assert container["args"][:len(arguments)] == arguments
    if port:
        assert container["args"][-1].endswith(f":{port}") and made[1]["spec"]["ports"] == [{"port": port}]
        probe = container["readinessProbe"]["httpGet"]
        assert probe["port"] == port and probe.get("scheme") == ("HTTPS" if port == 8444 else None)
        assert made[1]["spec"]["selector"] == made[0]["spec"]["selector"]["matchLabels"]
    refused = run_quern("submit", "--slurm", "--dry-run", *arguments, status=None)
    assert refused.returncode == 2 and "to Kubernetes only" in refused.stderr


def test_a_server_of_the_cluster_needs_protection(run_quern):
    told = run_quern(*SUBMIT, "--dry-run", "serve", "m.st", status=None)
    assert told.returncode == 2 and "without TLS and a token" in told.stderr and "--insecure" in told.stderr


def test_the_schemas_find_a_wrong_field():
    text = (DEPLOY / "mpijob.yaml").read_text()
    for wrong in (text.replace("slotsPerWorker: 1", "slotsPerWorker: one"),
                  text.replace("runPolicy:", "runPolicies:"), text.replace("workingDir:", "workDir:"),
                  (DEPLOY / "jobset.yaml").read_text().replace("maxRestarts: 20", "maxRestarts: often"),
                  (DEPLOY / "trainjob.yaml").read_text().replace("numNodes:", "nodes:")):
        assert wrong != text
        with pytest.raises(jsonschema.ValidationError):
            check(wrong)


@pytest.mark.parametrize("kind, arguments", [("", ARGUMENTS), ("kernel_", RUN)])
@pytest.mark.parametrize("name, more", [
    ("job.yaml", ["--memory", "8Gi"]),
    ("mpijob.yaml", ["--ranks", 4, "--gpus", 1, "--memory", "16Gi"])])
def test_the_manifests_are_what_submit_writes(run_quern, tmp_path, kind, arguments, name, more):
    text = "".join(line for line in (DEPLOY / (kind + name)).open() if not line.startswith("#"))
    assert run_quern(*SUBMIT, *more, "--dry-run", *arguments, cwd=tmp_path).stdout == text


@pytest.mark.parametrize("kind, name", [("indexed", "indexed_job.yaml"), ("jobset", "jobset.yaml"), ("trainjob", "trainjob.yaml")])
def test_the_manifests_with_a_key_are_what_submit_writes(run_quern, kind, name):
    """The key is another one each time, so the files are without it. Queue and rack stand where they belong."""
    words = [*SUBMIT, "--kind", kind, "--ranks", 4, "--gpus", 1, "--memory", "16Gi", "--dry-run"]
    text = "".join(line for line in (DEPLOY / name).open() if not line.startswith("#"))
    secrets = [run_quern(*words, *ARGUMENTS).stdout.partition("---\n") for _ in range(2)]
    assert secrets[0][2] == secrets[1][2] == text
    keys = {yaml.safe_load(s[0])["stringData"]["key"] for s in secrets}
    assert len(keys) == 2 and all(re.fullmatch("[0-9a-f]{64}", k) for k in keys)
    near = [] if kind == "trainjob" else ["--topology", "example.com/rack"]
    for more in ([*near, "--namespace", "lab"], [*near, "--queue", "team"]):
        text = run_quern(*words[:-1], *more, "--dry-run", *ARGUMENTS).stdout
        check(text)
        job = list(yaml.safe_load_all(text))[-1]
        assert (job["metadata"]["labels"].get("kueue.x-k8s.io/queue-name") == "team") == ("--queue" in more)
        assert text.count("example.com/rack") == bool(near)
        assert ("podset-preferred-topology" in text) == ("--queue" in more and bool(near))


@pytest.mark.parametrize("words, message", [
    (["--slurm", "--kind", "jobset"], "--kind belongs to --kubernetes"), (["--slurm", "--queue", "q"], "--queue belongs to"),
    ([*SUBMIT[1:], "--kind", "mpijob"], "an mpijob has several ranks"), ([*SUBMIT[1:], "--topology", "r"], "--topology needs"),
    ([*SUBMIT[1:], "--kind", "trainjob", "--claim", "c"], "--claim of a trainjob"),
    ([*SUBMIT[1:], "--queue", "a b"], "--queue cannot be")])
def test_kinds_that_cannot_be(run_quern, words, message):
    assert message in run_quern("submit", *words, "--dry-run", *ARGUMENTS, status=2).stderr


@pytest.mark.parametrize("name", ["mpirun.sh", "rank.sh"])
def test_the_scripts_are_clean(name):
    builds.require("shellcheck")
    done = subprocess.run(["shellcheck", DEPLOY / name], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


# ---------------------------------------------------------------- as the operator would

class Operator:
    """Makes the pods of an MPIJob and starts its launcher, again whenever that fails."""

    def __init__(self, manifest, net, mpirun):
        self.spec, self.net = manifest["spec"], net
        name = manifest["metadata"]["name"]
        service = f"{name}-worker.default.svc"
        pods = [n for n in net.names if "worker" in n]
        if self.spec.get("runLauncherAsWorker"):
            pods.insert(0, net.names[0])
        bin_, slots = net.folder / "bin", self.spec["slotsPerWorker"]
        bin_.mkdir()
        (net.folder / "hostfile").write_text("".join(f"{p}.{service} slots={slots}\n" for p in pods))
        with open(net.folder / "hosts", "a") as f:
            f.writelines(f"{a} {n}.{service}\n" for a, n in zip(net.addresses, net.names))
        (bin_ / "ssh").write_text(textwrap.dedent(f"""\
            #!/bin/sh
            while :; do
                case $1 in
                -o) shift 2 ;;
                -*) shift ;;
                *) break ;;
                esac
            done
            host=${{1%%.*}}
            shift
            exec {net.agent} "$host" "$@"
            """))
        (bin_ / "ssh").chmod(0o755)
        (bin_ / "mpirun").symlink_to(shutil.which(mpirun))
        shutil.copy(DEPLOY / "mpirun.sh", bin_ / "quern-mpirun")
        self.environment = launch.clean_environment(
            PATH=f"{bin_}:{os.environ['PATH']}", K_MPI_JOB_ROLE="launcher",
            OMPI_MCA_orte_keep_fqdn_hostnames="true",
            OMPI_MCA_orte_default_hostfile=str(net.folder / "hostfile"),
            OMPI_MCA_plm_rsh_args="-o ConnectionAttempts=10",
            OMPI_MCA_orte_set_default_slots=str(slots), NVIDIA_VISIBLE_DEVICES="",
            NVIDIA_DRIVER_CAPABILITIES="")
        self.log = net.folder / "log"

    def start(self):
        """The launcher's container, in its pod."""
        [container] = self.spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
        return subprocess.Popen(
            self.net.on(0, [*container["command"], *container["args"]], container["workingDir"]),
            env=self.environment, stdin=subprocess.DEVNULL, stdout=open(self.log, "ab"),
            stderr=subprocess.STDOUT, preexec_fn=hosts.die_with_parent)

    def wait(self, process, seconds=60):
        try:
            return process.wait(seconds * machine.PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            pytest.fail(f"it hangs after {seconds} s\n{self.log.read_text()}", pytrace=False)

    def went_on(self):
        """Whether a launcher's ranks began with a checkpoint."""
        return re.search(r'"resumed_from":\s*[1-9]', self.log.read_text())

    def ranks(self, pod):
        """Processes of Quern in the pod."""
        found = []
        for pid in self.net.processes_on(pod):
            try:
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "quern":
                    found.append(pid)
            except OSError:
                pass  # it ended meanwhile
        return found


def give(folder):
    """The data of JOB, in the folder where it begins."""
    for path in recipes.FEW.values():
        shutil.copy(path, folder)


@pytest.fixture
def operator(run_quern, quern):
    """operator(mpirun): an MPIJob of three workers that submit wrote, and `folder`, which its pods see."""
    launch.need("openmpi4")
    with hosts.Hosts(4, names=["m-launcher", *(f"m-worker-{i}" for i in range(3))]) as net:
        folder = net.folder / "data"
        folder.mkdir()
        give(folder)

        def make(mpirun="mpirun.openmpi", mixed=False, words=(*JOB, "--checkpoint", "m.checkpoint",
                                                              "--checkpoint-every", 200)):
            text = run_quern("submit", "--kubernetes", "--image", "quern", "--ranks", 3, "--program", quern,
                             "--mount", folder, "--dry-run", *words).stdout
            manifest = yaml.safe_load(text)
            if mixed:
                manifest["spec"]["runLauncherAsWorker"] = True
            made = Operator(manifest, net, mpirun)
            made.folder = folder
            return made

        yield make


@pytest.fixture(scope="module")
def wanted(run_quern, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wanted")
    give(folder)
    run_quern(*JOB, cwd=folder)
    return digest(folder / "m")


def until_checkpoint(job, process, seconds=120):
    end = time.monotonic() + seconds * machine.PATIENCE
    while not list((job.folder / "m.checkpoint").glob("checkpoint-*")):
        assert time.monotonic() < end and process.poll() is None, job.log.read_text()
        time.sleep(0.01)


@pytest.mark.parametrize("mpirun, mixed", [pytest.param("mpirun.openmpi", False, marks=machine.LONG), ("mpirun.openmpi", True),
                                           (launch.MPIS["openmpi5"]["program"], False)],
                         ids=["openmpi4", "launcher-works-too", "openmpi5"])
def test_the_launcher_starts_a_rank_in_each_pod(operator, wanted, mpirun, mixed):
    job = operator(mpirun, mixed)
    process = job.start()
    until_checkpoint(job, process)
    assert [len(job.ranks(pod)) for pod in range(4)] == [int(mixed), 1, 1, 1]
    assert job.wait(process) == 0, job.log.read_text()
    assert digest(job.folder / "m") == wanted


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_the_launcher_runs_a_kernel(operator, run_quern):
    """A rank in each pod; the launcher's code is that of the recipe: a run that fails writes none."""
    words = ["run", "--kernel", "k.c", "--shape", "300x400", "--out", "v=v.npy", "--threads", "1"]
    job = operator(words=words)
    job.environment["QUERN_CACHE"] = str(job.folder / "cache")
    (job.folder / "k.c").write_text("INDEX(y, x); OUTPUT(double, v); SUM(double, s); KERNEL { v = y * 0.1 + x; s = v_(y); }")
    assert job.wait(job.start()) != 0 and "not declared" in job.log.read_text()
    (job.folder / "k.c").write_text("INDEX(y, x); OUTPUT(double, v); SUM(double, s); KERNEL { v = y * 0.1 + x; s = y; }")
    assert job.wait(job.start()) == 0, job.log.read_text()
    assert "120,000 items" in job.log.read_text()
    run_quern("replay", "v.recipe.json", cwd=job.folder)


def test_a_rank_dies_in_its_pod(operator, wanted):
    """The others go on, and the job is done."""
    job = operator()
    process = job.start()
    until_checkpoint(job, process)
    os.kill(job.ranks(1)[0], signal.SIGKILL)
    assert job.wait(process) == 0, job.log.read_text()
    assert "has died" in job.log.read_text()
    assert digest(job.folder / "m") == wanted


def test_a_pod_dies(operator, wanted):
    """All that runs in it: the launcher fails, is started again, and goes on from the checkpoint.
    Where the launcher lets the others finish, nothing is left to do again."""
    job = operator()
    process = job.start()
    until_checkpoint(job, process)
    job.net.kill_all(2)
    code, finished = job.wait(process), (job.folder / "m").exists()
    if not finished:
        assert code != 0, job.log.read_text()
        assert job.wait(job.start()) == 0, job.log.read_text()
    assert finished or job.went_on(), job.log.read_text()
    assert digest(job.folder / "m") == wanted


@pytest.mark.parametrize("writes, code, says", [
    (True, 0, "m is written, and mpirun has not ended within 1 s"),
    (False, 7, r"the ranks ended \(7\) before m was written")])
def test_an_mpirun_that_does_not_end(tmp_path, writes, code, says):
    """After a lost pod it may hang although all work is done; before that nobody ends it."""
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(textwrap.dedent(f"""\
        #!/bin/sh
        [ "$1" != --version ] || exec echo "mpirun (Open MPI) 4.1.4"
        {"echo new > m; exec sleep 100" if writes else "sleep 2.5; exit 7"}
        """))
    mpirun.chmod(0o755)
    done = subprocess.run(["bash", DEPLOY / "mpirun.sh", "m", "quern"], cwd=tmp_path, timeout=60,
                          env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "QUERN_MPIRUN_LINGER": "1"},
                          capture_output=True, text=True)
    assert done.returncode == code and re.search(says, done.stderr), done


def test_the_launcher_is_evicted(operator, wanted):
    """Kubernetes says TERM: the ranks stop with a checkpoint, and the next launcher goes on from it."""
    job = operator()
    process = job.start()
    until_checkpoint(job, process)
    # Its watcher of the model bears the same name, and began later.
    script = min(p for p in job.net.processes_on(0) if b"quern-mpirun" in open(f"/proc/{p}/cmdline", "rb").read())
    os.kill(script, signal.SIGTERM)
    assert job.wait(process) != 0
    assert "interrupted" in job.log.read_text() and not (job.folder / "m").exists()
    assert job.wait(job.start()) == 0, job.log.read_text()
    assert job.went_on() and digest(job.folder / "m") == wanted


# ---------------------------------------------------------------- without an operator

@pytest.mark.parametrize("writes, ends, code", [(True, 0, 0), (True, 137, 0), (False, 0, 1), (False, 2, 2)])
def test_a_pod_of_a_rank_tells_of_the_result(tmp_path, writes, ends, code):
    """A rank that ends without the result is no success, whatever its code; the key is not in its environment."""
    program = tmp_path / "program"
    program.write_text(f"""#!/bin/bash
        read -r key; echo "$key $*" >got; env >environment
        {"echo new >m" if writes else ""}
        exit {ends}""")
    program.chmod(0o755)
    (tmp_path / "m").write_text("old")
    os.utime(tmp_path / "m", (1, 1))
    done = subprocess.run(["bash", DEPLOY / "rank.sh", "m", "j-0.j:29400", "3", program, "train", "-o", "m"], cwd=tmp_path, timeout=60,
                          env={"PATH": os.environ["PATH"], "JOB_COMPLETION_INDEX": "1", "QUERN_KEY": "secret"}, capture_output=True)
    assert done.returncode == code, done
    words = "train --meet j-0.j:29400 --ranks 3 --rank 1 --key-file - --meet-timeout 900 -o m"
    assert (tmp_path / "got").read_text() == f"secret {words}\n" and "secret" not in (tmp_path / "environment").read_text()


class Pods:
    """The pods of an indexed Job or a JobSet on hosts of their own names, as its controller would start them."""

    def __init__(self, text, net):
        *_, job = documents = list(yaml.safe_load_all(text))
        self.net, self.log = net, net.folder / "log"
        self.key = documents[0]["stringData"]["key"]
        if job["kind"] == "JobSet":
            [jobs] = job["spec"]["replicatedJobs"]
            prefix, job_spec = f"{job['metadata']['name']}-{jobs['name']}-0", jobs["template"]["spec"]
            service = job["metadata"]["name"]
        else:
            prefix, job_spec = job["metadata"]["name"], job["spec"]
            service = job_spec["template"]["spec"]["subdomain"]
            assert documents[1]["metadata"]["name"] == service and documents[1]["spec"]["clusterIP"] == "None"
        assert net.names == [f"{prefix}-{i}" for i in range(job_spec["completions"])]
        with open(net.folder / "hosts", "a") as f:
            f.writelines(f"{a} {n}.{service}\n" for a, n in zip(net.addresses, net.names))
        [self.container] = job_spec["template"]["spec"]["containers"]
        bin_ = net.folder / "bin"
        bin_.mkdir()
        shutil.copy(DEPLOY / "rank.sh", bin_ / "quern-rank")
        self.path = f"{bin_}:{os.environ['PATH']}"
        self.pods = {}

    def start(self, i):
        self.pods[i] = subprocess.Popen(
            self.net.on(i, [*self.container["command"], *self.container["args"]], self.container["workingDir"]),
            env=launch.users_environment(PATH=self.path, JOB_COMPLETION_INDEX=str(i), QUERN_KEY=self.key),
            stdin=subprocess.DEVNULL, stdout=open(self.log, "ab"), stderr=subprocess.STDOUT, preexec_fn=hosts.die_with_parent)

    def until(self, condition, seconds=60):
        end = time.monotonic() + seconds * machine.PATIENCE
        while not (found := condition()):
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.02)
        return found

    def kill_rank(self, i):
        for pid in self.net.processes_on(i):
            try:
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "quern":
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it ended meanwhile
        return self.pods[i].wait(60 * machine.PATIENCE)


@pytest.mark.parametrize("kind, names", [("indexed", ["m-0", "m-1"]), ("jobset", ["m-rank-0-0", "m-rank-0-1"])])
def test_pods_with_an_index(run_quern, quern, tmp_path, kind, names):
    """They find each other by the service. One falls, its pod starts again, and the rank joins the other; then both fall and
    go on from the checkpoint."""
    with hosts.Hosts(2, names=names) as net:
        folder = net.folder / "data"
        folder.mkdir()
        give(folder)
        words = [{"16": "64", "20": "4"}.get(word, word) for word in JOB]
        text = run_quern("submit", "--kubernetes", "--kind", kind, "--image", "quern", "--ranks", 2, "--program", quern, "--mount", folder,
                         "--dry-run", *words, "--checkpoint", "m.checkpoint", "--checkpoint-every", 10).stdout
        job = Pods(text, net)
        job.start(1)
        job.start(0)
        if kind == "indexed":
            job.until(lambda: list((folder / "m.checkpoint").glob("checkpoint-*")))
            assert job.kill_rank(1) != 0
            job.start(1)
            job.until(lambda: " has joined" in job.log.read_text())
            assert job.kill_rank(1) != 0 and job.kill_rank(0) != 0 and not (folder / "m").exists()
            job.start(1)
            job.start(0)
        codes = [job.pods[i].wait(60 * machine.PATIENCE) for i in (0, 1)]
        give(tmp_path)
        run_quern(*words, cwd=tmp_path)
        assert 0 in codes and digest(folder / "m") == digest(tmp_path / "m"), job.log.read_text()
        assert kind != "indexed" or re.search(r'"resumed_from":\s*[1-9]', job.log.read_text())
