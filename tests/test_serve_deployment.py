"""What deploy/ has for quern serve and quern watch: the options are those of the commands, the parts name each
other, and systemd and KServe take the files. tests/test_kubernetes.py has the schemas of Kubernetes."""

import re
import shutil
import subprocess
import textwrap

import pytest

from builds import ROOT

yaml = pytest.importorskip("yaml", reason="scripts/setup.sh installs it")

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())


def documents(name):
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def commands():
    """Where it stands, and what follows `quern`."""
    for name in ("kubernetes/serve.yaml", "kubernetes/watch.yaml"):
        yield name, documents(name)[0]["spec"]["template"]["spec"]["containers"][0]["args"]
    yield "kserve/serving_runtime.yaml", documents("kserve/serving_runtime.yaml")[0]["spec"]["containers"][0]["args"]
    for unit in UNITS:
        for words in re.findall(r"^ExecStart=\S+/quern (.*)", unit.read_text(), re.M):
            yield f"systemd/{unit.name}", words.split()


@pytest.mark.parametrize("name, args", [pytest.param(*c, id=c[0]) for c in commands()])
def test_the_options_are_those_of_the_command(run_quern, name, args):
    done = run_quern("help", args[0], status=None)
    if done.returncode:
        pytest.skip(f"this build has no command {args[0]}")
    known = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", done.stdout))
    if args[0] == "serve" and not {"--insecure", "--tls-cert"} & known:
        pytest.skip("this build's server has no TLS")
    assert {a for a in args if re.fullmatch("--?[a-z-]+", a)} <= known


def test_the_parts_of_the_server_name_each_other():
    deployment, service, scaler, budget, policy = documents("kubernetes/serve.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    assert budget["spec"]["selector"]["matchLabels"] == labels == policy["spec"]["podSelector"]["matchLabels"]
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"]  # an apply would undo what the scaler has done
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    [port] = container["ports"]
    assert f"0.0.0.0:{port['containerPort']}" in container["args"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["port"] == port["name"]
    volumes = {v["name"] for v in pod["volumes"]}
    mounts = [m["mountPath"] for m in container["volumeMounts"]]
    assert {m["name"] for m in container["volumeMounts"]} == volumes
    for path in re.findall(r"/run/secrets/\w+", " ".join(container["args"])):
        assert path in mounts
    stop = int(container["args"][container["args"].index("--stop-seconds") + 1])
    waits = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > stop + waits
    metric = scaler["spec"]["metrics"][0]["pods"]["metric"]["name"]
    assert f'as: "{metric}"' in (DEPLOY / "kubernetes" / "README.md").read_text()


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: u.name)
def test_systemd_takes_the_units(tmp_path, unit):
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze (Debian: systemd)")
    for other in UNITS:  # the program is not installed there
        (tmp_path / other.name).write_text(other.read_text().replace("/usr/local/bin/quern", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", tmp_path / unit.name], capture_output=True, text=True)
    told = [line for line in done.stderr.splitlines() if str(tmp_path) in line or unit.name in line]
    assert not told, told


def test_kserve_takes_the_runtime_and_the_service():
    """By the classes of the package kserve, which are made of its schemas."""
    python = ROOT / ".venv-peers" / "bin" / "python"
    if not python.exists() or subprocess.run([python, "-c", "import kserve"], capture_output=True).returncode:
        pytest.skip("the package kserve is not there (make peers): KServe's manifests are not validated")
    script = textwrap.dedent("""
        import re, sys, yaml
        import kserve.models, kubernetes.client
        def build(kind, value, place):
            if match := re.fullmatch(r"[Ll]ist\\[(.*)\\]", kind):
                return [build(match[1], v, f"{place}[{i}]") for i, v in enumerate(value)]
            if match := re.fullmatch(r"[Dd]ict.str, (.*).", kind):
                return {k: build(match[1], v, f"{place}.{k}") for k, v in value.items()}
            if kind in ("str", "int", "bool", "object", "float"):
                assert kind == "object" or type(value).__name__ == kind, (place, value)
                return value
            of = getattr(kserve.models, kind, None) or getattr(kubernetes.client, kind)
            unknown = set(value) - set(of.attribute_map.values())
            assert not unknown, (place, unknown)
            return of(**{name: build(of.openapi_types[name], value[key], f"{place}.{key}")
                         for name, key in of.attribute_map.items() if key in value})
        for path in sys.argv[1:]:
            for document in yaml.safe_load_all(open(path)):
                version = document["apiVersion"].split("/")[1].capitalize()
                build(version + document["kind"], document, document["kind"])
                print(document["kind"])
        """)
    done = subprocess.run([python, "-c", script, *sorted((DEPLOY / "kserve").glob("*.yaml"))], capture_output=True,
                          text=True)
    assert done.stdout.split() == ["InferenceService", "ServingRuntime"], done.stderr
