"""The devices of a machine as its user meets them: `quern devices`, and --devices of the commands
that compute. Libraries that a machine lacks or has are stood in for by fakes where that is said."""

import json
import os
import re
from pathlib import Path

import pytest

import builds
import machine
import recipes


def events(text):
    return [json.loads(line) for line in text.splitlines()]


def of(kind, listed):
    return [e for e in listed if e["event"] == kind]


@pytest.fixture(scope="session")
def fake_gpu(quern):
    """fake_gpu("devices=2,alloc=3") -> the environment in which the program finds a CUDA driver
    that computes with the kernel text compiled as C (tests/emulated_gpu), set up so."""
    folder = builds.beside(quern, "fakes", "fake_gpu")

    def environment(plan="", part=""):
        paths = [str(folder / part)] * bool(part) + [str(folder)]
        return dict(os.environ, LD_LIBRARY_PATH=":".join(paths), QN_FAKE_CUDA=plan)

    return environment


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of programs of the test's own."""
    monkeypatch.setenv("QUERN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


# ---------------------------------------------------------------- the list

def test_the_cpu_is_measured(run_quern):
    cpu = of("device", events(run_quern("devices", "--json", "--devices", "cpu").stdout))[0]
    assert cpu["id"] == cpu["kind"] == "cpu" and cpu["type"] == "CPU" and cpu["index"] == 0
    assert cpu["automatic"] is True and cpu["refused"] is False and cpu["reason"] == ""
    assert 1 <= cpu["cores"] <= os.cpu_count() and cpu["memory"] > 1 << 20
    for key in "matmul_flop_per_s tanh_per_s copy_bytes_per_s".split():
        assert cpu[key] > 1e5, key
    for key in "matmul_i7_op_per_s matmul_i14_op_per_s matmul_i21_op_per_s".split():
        assert 1e5 < cpu[key] < 1e16, key
    assert cpu["integers_by"] == cpu["isa"] != ""


def test_measured_or_not(run_quern):
    listed = of("device", events(run_quern("devices", "--json", "--measure", "none").stdout))
    for device in listed:
        assert device["matmul_flop_per_s"] is device["tanh_per_s"] is None
        assert device["copy_bytes_per_s"] is device["matmul_i14_op_per_s"] is None
        assert device["integers_by"] == ""
    assert len({d["id"] for d in listed}) == len(listed)


def test_the_table_is_readable(run_quern):
    text = run_quern("devices").stdout
    lines = text.splitlines()
    assert lines[0].split() == "device type units memory matmul tanh copy name".split()
    assert re.match(r"cpu +CPU +\d+ +[\d.]+ [KMGT]iB +[\d.]+ [kMGT]?FLOP/s ", lines[1]), text
    name = of("device", events(run_quern("devices", "--json", "--measure", "none").stdout))[0]["name"]
    assert lines[1].index(name) == lines[0].index("name"), text
    assert re.search(r"^ +instruction set (\w+); supported: .*scalar", text, re.M)
    assert re.search(r"^ +integer matmul with \w+: i7 [\d.]+ [kMGT]?op/s, i14 ", text, re.M)
    # What is not there is told with a reason, each kind in a line of its own.
    listed = events(run_quern("devices", "--json", "--measure", "none").stdout)
    for kind in ("cuda", "opencl"):
        here = [d for d in of("device", listed) if d["kind"] == kind]
        absent = [a for a in of("absence", listed) if a["kind"] == kind]
        assert bool(here) != bool(absent)
        assert bool(absent) == bool(re.search(rf"^no {kind} +\S.{{20,}}", text, re.M))


def test_a_gpu_is_measured(run_quern, fake_gpu, cache):
    listed = events(run_quern("devices", "--json", "--devices", "cuda:all", env=fake_gpu("memory=32")).stdout)
    gpus = [d for d in of("device", listed) if d["kind"] == "cuda"]
    assert [g["id"] for g in gpus] == ["cuda:0"]
    for gpu in gpus:
        assert gpu["type"] == "GPU" and gpu["automatic"] is True and gpu["refused"] is False
        assert gpu["cores"] > 0 and gpu["memory"] == 32 << 20 and gpu["driver"] and gpu["platform"]
        assert min(gpu["matmul_flop_per_s"], gpu["tanh_per_s"], gpu["copy_bytes_per_s"]) > 1e4
    assert "cuda" not in [a["kind"] for a in of("absence", listed)]


# What the list says where something is wrong with a device or its libraries, and words of the
# remedy. The messages of `train` are further down.
@pytest.mark.parametrize("plan, part, says, remedy", [
    ("devices=0", "", "sees no NVIDIA GPU", "nvidia-smi"),
    ("driver=10020", "", "driver is too old: it knows CUDA 10.2", "install driver 450"),
    ("init=803", "", "does not fit the kernel's NVIDIA driver", "start the machine again"),
    ("init=999", "", "the CUDA driver does not start", "nvidia-smi"),
    ("", "bare", "is too old or no CUDA driver", "install NVIDIA's driver"),
])
def test_absence_is_explained(run_quern, fake_gpu, plan, part, says, remedy):
    env = fake_gpu(plan, part)
    listed = events(run_quern("devices", "--json", "--measure", "none", env=env).stdout)
    assert not [d for d in of("device", listed) if d["kind"] == "cuda"]
    reason = [a["reason"] for a in of("absence", listed) if a["kind"] == "cuda"][0]
    assert says in reason and remedy in reason
    assert f"no cuda     {reason}\n" in run_quern("devices", "--measure", "none", env=env).stdout


@pytest.mark.parametrize("plan, refused, says, remedy", [
    ("prohibited=1", True, 'compute mode is "prohibited"', "nvidia-smi -c DEFAULT"),
    pytest.param("flush=1", True, "flushes subnormal numbers to zero", "--devices", marks=machine.LONG),
    pytest.param("retain=2", False, "CUDA_ERROR_OUT_OF_MEMORY", "nvidia-smi", marks=machine.LONG),
    pytest.param("alloc=3", False, "is out of memory", "end other programs on that GPU",
                 marks=machine.LONG),
    ("hang=2", False, "did not end its work within 1 s", "a longer time limit"),
    ("capability=30", False, "knows no device as old as", "NVRTC of an older CUDA version"),
])
def test_a_device_that_fails_is_explained(run_quern, fake_gpu, cache, plan, refused, says, remedy):
    env, limit = fake_gpu(plan), 1 if "hang" in plan else 20
    options = ["--device-timeout", limit, *([] if refused else ["--devices", "cuda:0"])]
    done = run_quern("devices", "--json", *options, env=env)
    gpu = [d for d in of("device", events(done.stdout)) if d["id"] == "cuda:0"][0]
    assert gpu["refused"] is refused and gpu["matmul_flop_per_s"] is None
    assert says in gpu["reason"] and remedy in gpu["reason"]
    text = run_quern("devices", *options, env=env).stdout
    assert re.search(rf"^ +(failed|cannot be used): .*{re.escape(says)}", text, re.M)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Words that train a tiny network on a tiny table."""
    table = tmp_path_factory.mktemp("tiny") / "tiny.csv"
    table.write_text("label,a,b\n" + "".join(f"{i % 3},{i * 7 % 11},{i}\n" for i in range(24)))
    return ["--data", table, "--model", "dense 4 tanh; dense 3 softmax", "--epochs", "2",
            "--batch", "8", "--grain", "2"]


def test_a_broken_cache_is_told_and_mended(run_quern, fake_gpu, cache, tiny, tmp_path):
    def notes():
        done = run_quern("train", *tiny, "--devices", "cuda:0", "--json", "-o", tmp_path / "m",
                         env=fake_gpu())
        listed = events(done.stdout)
        assert [w["name"] for w in of("end", listed)[0]["workers"]] == ["cuda:0"]
        return [n["text"] for n in of("note", listed)]

    assert notes() == []
    files = [f for f in cache.iterdir() if f.is_file()]
    assert files
    assert notes() == []
    for f in files:
        f.write_bytes(f.read_bytes()[:-1] + b"?")
    told = notes()
    assert len(told) == len(files) and "ignored and is built again" in told[0], told
    assert notes() == []
    cache.chmod(0o777)
    assert "others may write" in notes()[0]


# ---------------------------------------------------------------- would a run use them

def test_the_instruction_set_that_is_asked_for_is_told(run_quern):
    told = events(run_quern("devices", "--json", "--isa", "scalar").stdout)[0]
    assert told["isa"] == told["integers_by"] == "scalar" and "scalar" in told["isas"]


TRIAL = ["--model", "dense 20 tanh; dense 4 softmax", "--features", "30", "--batch", "16",
         "--seconds", "0.3", "--measure", "none"]


def test_advice_on_the_cpu_alone(run_quern):
    listed = events(run_quern("devices", "--json", "--devices", "cpu", *TRIAL).stdout)
    advice = {a["id"]: a for a in of("advice", listed)}
    assert set(advice) == {d["id"] for d in of("device", listed)}
    assert advice["cpu"]["used"] is True and advice["cpu"]["share"] == 1
    assert advice["cpu"]["items_per_s"] > 0 and advice["cpu"]["why"] == ""
    others = [a for a in advice.values() if a["id"] != "cpu"]
    assert all(a["used"] is False and a["why"] and a["share"] == 0 for a in others)
    trial = of("trial", listed)[0]
    assert trial["features"] == 30 and trial["batch"] == 16 and trial["items_per_s"] > 0
    text = run_quern("devices", "--devices", "cpu", "--arith", "i7", *TRIAL).stdout
    assert ", 30 features, batches of 16, i7, tried for 0.3 s on random items\n" in text
    assert re.search(r"^  cpu +used: 100 % of the items, [\d.]+[kM]? items/s$", text, re.M)


def test_advice_about_a_gpu(run_quern, fake_gpu, cache):
    """One that computes with the kernel text in C is slower than any CPU; alone it has to do."""
    def advice(devices):
        listed = events(run_quern("devices", "--json", "--devices", devices, *TRIAL,
                                  env=fake_gpu()).stdout)
        return {a["id"]: a for a in of("advice", listed)}

    alone = advice("cuda:0")
    for _ in range(5):  # they are measured, on a machine that may have other things to do
        both = advice("cpu,cuda:0")
        if both["cpu"]["used"] and not both["cuda:0"]["used"]:
            break
    assert both["cpu"]["used"] is True and both["cuda:0"]["used"] is False
    assert both["cuda:0"]["why"].startswith("not used: ")
    assert alone["cuda:0"]["used"] is True and alone["cuda:0"]["share"] == 1
    assert alone["cpu"]["used"] is False and alone["cpu"]["why"]


@pytest.mark.parametrize("words, says", [
    (["--features", "3"], "--features needs --model"),
    (["--batch", "3"], "--batch needs --model"),
    (["--model", "dense 3 softmax", "--seconds", "0"], "from 0.1 to 3600"),
    (["--model", "dens 3 softmax"], "dens"),
    (["--devices", "none"], "no device is left"),
    (["--measure", "some"], "auto, all or none"),
])
def test_bad_usage(run_quern, words, says):
    done = run_quern("devices", "--measure", "none", *words, status=2) \
        if "--measure" not in words else run_quern("devices", *words, status=2)
    assert says in done.stderr


# ---------------------------------------------------------------- --devices in a run

SMALL = [*recipes.DIGITS, "--model", "dense 12 tanh; dense 10 softmax", "--epochs", "1", "--quiet"]


@pytest.mark.parametrize("how", [["--devices", "cpu"], ["--devices", "cpu:1"],
                                 ["--devices", "cpu:all", "--threads", "2"],
                                 ["--devices", "auto", "--device-timeout", "5"],
                                 ["--devices", "cpu", "--shares", "1"]])
def test_who_computes_does_not_matter(run_quern, tmp_path, how):
    plain, other = tmp_path / "plain", tmp_path / "other"
    run_quern("train", *SMALL, "--devices", "cpu", "--threads", 1, "-o", plain)
    run_quern("train", *SMALL, *how, "-o", other)
    assert plain.read_bytes() == other.read_bytes()
    assert b"devices" not in other.read_bytes()[:4096]


def test_cores_of_the_list_count_before_threads(run_quern, tmp_path):
    done = run_quern("train", *SMALL[:-1], "--json", "--devices", "cpu:3", "--threads", 1,
                     "-o", tmp_path / "m")
    assert of("start", events(done.stdout))[0]["threads"] == 3


# ---------------------------------------------------------------- lists, and devices that fail at
# the start of a run or in the middle of it

@pytest.fixture(scope="module")
def plain(run_quern, tiny, tmp_path_factory):
    """The bytes that the CPU alone writes."""
    out = tmp_path_factory.mktemp("plain") / "m"
    run_quern("train", *tiny, "--devices", "cpu", "--quiet", "-o", out)
    return out.read_bytes()


def refused(run_quern, tiny, tmp_path, devices, env, status=1):
    """The message, of which every part is there; nothing was written."""
    done = run_quern("train", *tiny, "--devices", devices, "--device-timeout", 1, "--json",
                     "-o", tmp_path / "m", env=env, status=status)
    assert not (tmp_path / "m").exists()
    error = of("error", events(done.stdout))[0]
    assert error["what"] and error["remedy"]
    return error


@pytest.mark.parametrize("devices", ["cuda:1", "cpu,cuda:7", "cuda:0,cuda:1"])
def test_a_list_names_what_is_not_there(run_quern, fake_gpu, tiny, tmp_path, devices):
    error = refused(run_quern, tiny, tmp_path, devices, fake_gpu())
    assert error["what"] == f'there is no device "{devices.split(",")[-1]}"'
    assert error["where"] == f'--devices "{devices}"'
    assert re.match(r'this machine has cpu, cuda:0[,;]', error["remedy"])


@pytest.mark.parametrize("plan, part, remedy", [
    ("devices=0", "", "nvidia-smi"), ("driver=10020", "", "install driver 450"),
    ("", "bare", "install NVIDIA's driver 450")])
@pytest.mark.parametrize("devices", ["cuda:0", "cuda:all", "cpu,cuda"])
def test_a_list_names_a_kind_that_is_absent(run_quern, fake_gpu, tiny, tmp_path, devices, plan,
                                            part, remedy):
    error = refused(run_quern, tiny, tmp_path, devices, fake_gpu(plan, part))
    assert "there is no device" in error["what"] and "cuda" in error["what"]
    assert remedy in error["remedy"] and "this machine has cpu" in error["remedy"]


@pytest.mark.parametrize("broken, says", [
    ({"library": "not a library"}, "libOpenCL.so.1"),
    ({"OCL_ICD_VENDORS": "/nowhere", "OCL_ICD_FILENAMES": ""}, "platform"),
])
def test_opencl_is_not_there(run_quern, tiny, tmp_path, broken, says):
    env = dict(os.environ, **{k: v for k, v in broken.items() if k != "library"})
    if "library" in broken:
        (tmp_path / "libOpenCL.so.1").write_text(broken["library"])
        (tmp_path / "libOpenCL.so").write_text(broken["library"])
        env["LD_LIBRARY_PATH"] = str(tmp_path)
    listed = events(run_quern("devices", "--json", "--measure", "none", env=env).stdout)
    absent = [a["reason"] for a in of("absence", listed) if a["kind"] == "opencl"]
    if not absent:
        pytest.skip("this OpenCL loader finds its drivers in another way")
    if "platform" in says and "no OpenCL library" in absent[0]:
        pytest.skip("there is no OpenCL library on this machine")
    assert says in absent[0] and "install" in absent[0]
    error = refused(run_quern, tiny, tmp_path, "opencl:0", env)
    assert error["what"] == 'there is no device "opencl:0"' and absent[0] in error["remedy"]
    # What nobody asked for by name is not a reason to stop.
    run_quern("train", *tiny, "--quiet", "-o", tmp_path / "m", env=env)


@pytest.mark.parametrize("plan, says, remedy", [
    ("retain=2", "CUDA_ERROR_OUT_OF_MEMORY", "end other programs on that GPU"),
    ("alloc=9", "is out of memory", "end other programs on that GPU"),
    ("flush=1", "it flushes subnormal numbers to zero", "leave it out of --devices"),
    ("prohibited=1", 'compute mode is "prohibited"', "leave cuda:0 out"),
])
def test_a_device_that_cannot_start(run_quern, fake_gpu, cache, tiny, plain, tmp_path, plan, says,
                                    remedy):
    """Asked for by name it ends the run before it begins; otherwise the others go on without."""
    for devices in ("cuda:0", "cpu,cuda:0"):
        error = refused(run_quern, tiny, tmp_path, devices, fake_gpu(plan))
        assert says in error["what"] and remedy in error["remedy"]
    done = run_quern("train", *tiny, "--json", "-o", tmp_path / "m", env=fake_gpu(plan))
    assert (tmp_path / "m").read_bytes() == plain
    listed = events(done.stdout)
    assert of("start", listed)[0]["workers"] == ["cpu"]
    if "prohibited" not in plan:  # that is known before anybody tries
        assert any("cuda:0 is not used" in n["text"] and says in n["text"]
                   for n in of("note", listed))
        worker = [w for w in of("end", listed)[0]["workers"] if w["name"] == "cuda:0"][0]
        assert worker["grains"] == 0 and says in worker["note"]


@pytest.mark.parametrize("plan", ["launch=30", "hang=30"])
def test_a_device_that_fails_on_the_way(run_quern, fake_gpu, cache, tiny, plain, tmp_path, plan):
    out = tmp_path / "m"
    how = ["--devices", "cpu,cuda:0", "--shares", "1,3", "--device-timeout", 1]
    done = run_quern("train", *tiny, *how, "--json", "-o", out, env=fake_gpu(plan))
    assert out.read_bytes() == plain
    listed = events(done.stdout)
    workers = {w["name"]: w for w in of("end", listed)[0]["workers"]}
    if not workers["cuda:0"]["lost"]:
        pytest.fail(f"{plan} did not happen: {workers['cuda:0']}")
    assert "cuda:0" in workers["cuda:0"]["note"] and workers["cpu"]["grains"] > 0
    assert any("worker cuda:0 failed" in n["text"] for n in of("note", listed))
    text = run_quern("train", *tiny, *how, "-o", out, env=fake_gpu(plan)).stdout
    assert re.search(r"^  cuda:0 .*, failed\n +failed: ", text, re.M), text


def test_no_worker_is_left(run_quern, fake_gpu, cache, tiny, plain, tmp_path):
    error = refused(run_quern, tiny, tmp_path, "cuda:0", fake_gpu("launch=30"))
    assert error["what"] == "no worker is left" and "--checkpoint" in error["remedy"]
    state = ["--checkpoint", tmp_path / "state"]
    done = run_quern("train", *tiny, *state, "--devices", "cuda:0", "-o", tmp_path / "m",
                     env=fake_gpu("launch=30"), status=1)
    assert "start again with --resume" in done.stderr
    run_quern("train", *tiny, *state, "--resume", "--devices", "cpu", "-o", tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == plain


def test_predict_on_devices(run_quern, fake_gpu, cache, tiny, tmp_path):
    """The same table from every device; one that cannot be had is told and left out."""
    model = tmp_path / "m"
    run_quern("train", *tiny, "--devices", "cpu", "--quiet", "-o", model)
    data = ["predict", model, *tiny[:2], "--outputs"]
    expected = run_quern(*data, "--devices", "cpu").stdout
    assert expected.startswith("item,")
    for devices in ("cuda:0", "cpu,cuda:0"):
        done = run_quern(*data, "--devices", devices, env=fake_gpu())
        assert done.stdout == expected and "note:" not in done.stderr
    done = run_quern(*data, env=fake_gpu("retain=2"))
    assert done.stdout == expected and "note: cuda:0 is not used" in done.stderr
    done = run_quern(*data, "--devices", "cuda:0", env=fake_gpu("retain=2"), status=1)
    assert "CUDA_ERROR_OUT_OF_MEMORY" in done.stderr and done.stdout == ""


def test_replay_on_devices(run_quern, fake_gpu, cache, tiny, tmp_path):
    run_quern("train", *tiny, "--devices", "cpu", "--quiet", "-o", tmp_path / "m")
    done = run_quern("replay", tmp_path / "m", *tiny[:2], "--devices", "cuda:0", env=fake_gpu())
    assert "replay: identical" in done.stdout
    assert re.search(r"^  cuda:0 +100.0 % of the items", done.stdout, re.M)
    # The fake NVML counts joules.
    assert re.search(r"^ +energy [\d.]+ [mun]?J, [\d.e+]+ [mun]?J an item$", done.stdout, re.M)
