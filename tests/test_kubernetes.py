"""The manifests against the schemas of Kubernetes and of the MPI operator, and what they start.

No cluster is needed: the operator is imitated. It makes a pod of each worker, in which sshd runs, and
one for the launcher, and tells mpirun by a file and by its environment who they are; here the pods are
hosts of hosts.py, and what is called ssh enters them.
"""

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
CRD = ROOT.parent / "shared" / "data" / "kubernetes" / "kubeflow.org_mpijobs.yaml"
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


@pytest.fixture(scope="module")
def mpi_job_schema():
    if not CRD.exists():
        pytest.skip(f"no {CRD.name} in shared/data/kubernetes beside the repository")
    with open(CRD) as f:
        crd = yaml.load(f, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    [version] = [v for v in crd["spec"]["versions"] if v["name"] == "v2beta1"]
    schema = closed(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture
def check(request):
    """check(text): every document in it is what Kubernetes, or the operator, takes."""
    def validate(text):
        for document in yaml.safe_load_all(text):
            if document["kind"] != "MPIJob":
                for version in VERSIONS:
                    kubernetes_validate.validate(document, version, strict=True)
                continue
            request.getfixturevalue("mpi_job_schema").validate(document)
            for role, replica in document["spec"]["mpiReplicaSpecs"].items():
                assert role in ("Launcher", "Worker")
                assert replica["restartPolicy"] in ("Always", "OnFailure", "Never", "ExitCode")
                pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                       "spec": replica["template"]["spec"]}
                kubernetes_validate.validate(pod, VERSIONS[-1], strict=True)

    return validate


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_fit_the_schemas(check, name):
    check((DEPLOY / name).read_text())


@pytest.mark.parametrize("more", [[], ["--ranks", 3], ["--ranks", 2, "--gpus", 2, "--memory", "8Gi",
                                                       "--namespace", "lab", "--name", "other"]])
def test_what_submit_writes_fits_the_schemas(run_quern, check, more):
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
def test_what_submit_writes_of_servers_fits_the_schemas(run_quern, check, arguments, kinds, port):
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


def test_the_schemas_find_a_wrong_field(check):
    text = (DEPLOY / "mpijob.yaml").read_text()
    for wrong in (text.replace("slotsPerWorker: 1", "slotsPerWorker: one"),
                  text.replace("runPolicy:", "runPolicies:"), text.replace("workingDir:", "workDir:")):
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


def test_the_launcher_is_clean():
    builds.require("shellcheck")
    done = subprocess.run(["shellcheck", DEPLOY / "mpirun.sh"], capture_output=True, text=True)
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
