"""Python under launchers of several ranks: the bytes of one process, and one file."""

import subprocess
import sys

import pytest

import launch
import machine
import python_package
import ranks

np = pytest.importorskip("numpy")

SCRIPT = """
import os, sys, zlib, numpy as np, quern
data = quern.digits(300)
model = quern.train(data, model="dense 20 tanh; dense 10 softmax", epochs=2, batch=32, threads=1,
                    devices="cpu", output=sys.argv[1])
same = quern.replay(model, data, threads=1, devices="cpu").digest == model.digest
line = f"{quern.ranks.index()} {quern.ranks.count()} {model.digest} {model.predict(data)[:4].tolist()}"
found = quern.Data(data.values[:, 300:330], data.labels).describe(by_class=True, correlation=True)
sums = repr([found[k].tolist() for k in ("mean", "skewness", "quantiles", "covariance")])
table = data.values[:, 300:320] + 1e-3 * data.values[:, 400:420]
writer = quern.train((np.arange(200) ** 2 % 11).astype(np.uint16), tokens="ids", context=8, task="next", epochs=1, threads=1,
                     model="embedding 11 4; conv 11 1x1 softmax")
said = [answer.tokens for answer in writer.generate([[1, 2], [3], [4, 5]], tokens=12, answers=3)]
fitted = (quern.Ridge(0.1).fit(table, data.labels).coef_, quern.PCA(2).fit(table).components_,
          quern.KMeans(4).fit(table).cluster_centers_) if "FITTED" in os.environ else ()
line += f" {zlib.crc32(repr([sums, said]).encode())} {found['by_class']['maximum'].sum()} {[f.sum().hex() for f in fitted]}"
k = quern.Kernel(text="INDEX(i); OUTPUT(int, o); SUM(double, s); KERNEL { o = (int)i * 3; s = 1.0 / (i + 1); }")
r = k.run(shape=50000)
line += f" {zlib.crc32(r.o.tobytes())} {r.s}"
if quern.ranks.is_writer():
    model.save(sys.argv[1] + "-saved")
print(f"{line} {same}\\n", end="", flush=True)
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What each of so many ranks says, by what one process trains; and the file's bytes."""
    folder = tmp_path_factory.mktemp("alone")

    def says(ranks, **more):
        said = python_package.python(SCRIPT, folder / "m", env=launch.clean_environment(**more))
        start, count, rest = said.split(" ", 2)
        assert (start, count) == ("0", "1")
        return [f"{rank} {ranks} {rest.strip()}" for rank in range(ranks)]

    says(1)
    return says, (folder / "m").read_bytes()


def environment(**more):
    return launch.clean_environment(PYTHONPATH=str(python_package.folder()), **more)


# test_cluster.py has each launcher; here the package under one of them is enough, and the estimators, whose
# processes read scikit-learn for two seconds.
@pytest.mark.parametrize("launcher", [name if name == "openmpi5" else pytest.param(name, marks=machine.LONG)
                                      for name in launch.MPIS])
def test_mpirun(alone, tmp_path, launcher):
    launch.need(launcher)
    mpi = launch.MPIS[launcher]
    done = subprocess.run([mpi["program"], *mpi["crowded"], "-n", "3", sys.executable, "-c", SCRIPT,
                           str(tmp_path / "m")], env=environment(FITTED="yes"), text=True, capture_output=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    says, content = alone
    assert sorted(done.stdout.splitlines()) == says(3, FITTED="yes"), done.stderr
    assert (tmp_path / "m").read_bytes() == content == (tmp_path / "m-saved").read_bytes()


def started(count, own, script=SCRIPT, arguments=()):
    """[(exit code, stdout, stderr)] of ranks; own(rank): the environment of each."""
    run = [subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], env=own(rank),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
           for rank in range(count)]
    try:
        texts = [p.communicate(timeout=120) for p in run]
    finally:
        for p in run:
            p.kill()
    return [(p.returncode, *text) for p, text in zip(run, texts)]


def test_torchrun(alone, tmp_path):
    """By the environment that torchrun gives to the processes of one machine."""
    port = ranks.free_port() - 1
    done = started(2, lambda rank: environment(
        TORCHELASTIC_RUN_ID="none", RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2",
        MASTER_ADDR="some-name", MASTER_PORT=str(port)), arguments=[tmp_path / "m"])
    says, content = alone
    assert [text.strip() for _, text, _ in done] == says(2), done
    assert (tmp_path / "m").read_bytes() == content


def test_ranks_that_meet_at_an_address(alone, tmp_path):
    port = ranks.free_port()
    script = ("import quern, os\n"
              f"assert quern.ranks.join('127.0.0.1:{port}', 2, int(os.environ['OWN'])) == 2\n" + SCRIPT)
    done = started(2, lambda rank: environment(OWN=str(rank)), script, [tmp_path / "m"])
    says, content = alone
    assert [text.strip() for _, text, _ in done] == says(2), done
    assert (tmp_path / "m").read_bytes() == content
