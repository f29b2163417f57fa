"""deploy/Containerfile: an image is built from it, and what is in it trains.

buildah builds it on a base that debootstrap makes, since no registry need be reachable: only Debian's
packages. The build is not optimised, which takes half the time; the bytes are the same. All of it runs
in namespaces of its own and lies in a folder that is removed.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import builds
import hosts
import machine
from builds import ROOT

JOB = ["train", "--model", "dense 60 tanh; dense 10 softmax", "--epochs", "1", "--quiet", "-o", "m"]

# The base is what Debian's own images are: the least that is Debian, and dpkg that trusts its caller
# to start again after a crash.
BUILD = r"""
set -eu
export TMPDIR=$PWD/tmp
mkdir tmp data
debootstrap --variant=minbase bookworm base >debootstrap.log 2>&1 || { echo "no base"; exit 9; }
echo force-unsafe-io >base/etc/dpkg/dpkg.cfg.d/unsafe-io
rm -rf base/var/cache/apt/archives/*.deb base/var/lib/apt/lists/*
buildah --storage-driver vfs --root store --runroot run from --name base scratch
buildah --storage-driver vfs --root store --runroot run add base base /
buildah --storage-driver vfs --root store --runroot run commit --rm base localhost/base
rm -rf base
buildah --storage-driver vfs --root store --runroot run build --isolation chroot --network host \
    --pull-never --build-arg BASE=localhost/base \
    --build-arg CMAKE_OPTIONS=-DCMAKE_BUILD_TYPE=Debug -t quern -f "$SOURCE/deploy/Containerfile" "$SOURCE"
buildah --storage-driver vfs --root store --runroot run from --pull-never --name made quern
"""


def inside(folder, command, **options):
    """Runs a shell command there; whatever it started ends with it."""
    return subprocess.run(
        ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "bash", "-c", command],
        cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=hosts.die_with_parent, env={**os.environ, "SOURCE": str(ROOT)}, **options)


@pytest.fixture
def image():
    """image(script): what a shell in a container says to it; `image.data` is its folder /data."""
    builds.require("buildah", "debootstrap")
    machine.need("chroot")
    folder = Path(tempfile.mkdtemp(prefix="quern-image-"))
    try:
        done = inside(folder, BUILD, timeout=600)
        if done.returncode == 9:
            log = (folder / "debootstrap.log").read_text().splitlines()
            pytest.skip(f"Debian's packages cannot be had: {log[-1] if log else 'debootstrap failed'}")
        assert done.returncode == 0, "\n".join(done.stdout.splitlines()[-30:])

        def run(script):
            done = inside(folder, f"buildah --storage-driver vfs --root store --runroot run run "
                          f"--isolation chroot --volume {folder}/data:/data --workingdir /data made -- "
                          f"sh -c '{script}'", timeout=120)
            assert done.returncode == 0, done.stdout
            return done.stdout

        run.data = folder / "data"
        yield run
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_the_copied_folders_configure(tmp_path):
    """The image is built from some folders only, and its test takes long."""
    builds.require("cmake", "ninja")
    text = (ROOT / "deploy" / "Containerfile").read_text()
    copied = re.findall(r"^COPY (\S+) /source/", text, re.M)
    assert "src" in copied and "tests" not in copied
    for name in copied:
        (tmp_path / name).symlink_to(ROOT / name)
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", "-DBUILD_TESTING=OFF"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


# One test, since the image is built for each.
@machine.LONG
def test_the_image(image, run_quern, tmp_path):
    said = image("quern version && mpirun --version && /usr/sbin/sshd -t")
    assert "Open MPI) 4" in said and all(f"{name} " in said for name in ("libcurl", "libmicrohttpd", "libpq"))
    said = image("quern-mpirun || ls -d /source || true")
    assert "usage: quern-mpirun RESULT" in said
    assert said.count("No such file or directory") == 1, "the sources are left out"
    (image.data / "k.c").write_text("INDEX(i); COUNT(even); KERNEL { even = i % 2 == 0; }")
    assert "50000" in image("quern run --kernel k.c --shape 100000 --devices cpu")

    run_quern(*JOB, cwd=tmp_path)
    wanted = hashlib.sha256((tmp_path / "m").read_bytes()).hexdigest()
    words = " ".join(f'"{word}"' for word in JOB)
    image(f"quern {words}")
    assert hashlib.sha256((image.data / "m").read_bytes()).hexdigest() == wanted
    (image.data / "m").unlink()
    (image.data / "hosts").write_text("localhost slots=2\n")
    image(f"OMPI_MCA_orte_default_hostfile=hosts quern-mpirun m quern {words}")
    assert hashlib.sha256((image.data / "m").read_bytes()).hexdigest() == wanted
