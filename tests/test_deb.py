"""The Debian package of `make deb`: what is in it, and that a Debian takes it and is as before when it
is removed."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import builds
import machine
from builds import ROOT

pytestmark = machine.LONG

# In the Debian whose root folder is the first argument; every path of it is listed before and after.
INSIDE = r"""
cd "$1"
list() { find . -xdev -not -path './proc/*' -not -path './tmp/*' | sort; }
list >../before
chroot . dpkg -i /tmp/quern.deb
chroot . dpkg -V quern
chroot . quern --version
chroot . ldconfig -p | grep libquern.so.0
chroot . sh -ec 'cd /tmp; quern data synth digits --items 300 -o d.csv
    quern train --data d.csv --epochs 1 --quiet --model "dense 10 softmax" -o m; quern replay m --data d.csv --quiet'
chroot . dpkg --purge quern
list >../after
diff ../before ../after
"""


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package():
    builds.require("cpack", "dpkg-deb", "dpkg-shlibdeps")
    run("make", "-C", ROOT, "deb")
    found, = (ROOT / "dist").glob("quern_*.deb")
    return found


def test_what_the_package_says_and_holds(package):
    about = dict(re.findall(r"^ *([\w-]+): (.*)", run("dpkg-deb", "-I", package), re.M))
    assert about["Package"] == "quern" and re.search(r"\blibc6\b.*\bzlib1g\b", about["Depends"])
    assert all(name in about["Recommends"] for name in ("libturbojpeg0", "libpng16-16", "libwebp7", "libgif7",
                                                     "libtiff6", "ocl-icd-libopencl1"))
    lines = [line.split() for line in run("dpkg-deb", "-c", package).splitlines()]
    files = {line[5]: line[:2] for line in lines}
    pages = {Path(name).name for name in files if "/man/man1/" in name} - {"man1"}
    commands = {file.name.removesuffix("_command.c") for file in (ROOT / "app").glob("*_command.c")}
    assert pages == {"quern.1.gz"} | {f"quern-{name.replace('_', '-')}.1.gz" for name in commands}
    for part in ("bin/quern", "include/quern/quern.h", "share/bash-completion/completions/quern",
                 "share/zsh/site-functions/_quern", "share/doc/quern/copyright"):
        assert f"./usr/{part}" in files
    for ending in ("/libquern.so", "/libquern.so.0", "/pkgconfig/quern.pc", "/cmake/quern/quernConfig.cmake"):
        assert any(name.endswith(ending) for name in files), ending
    assert all(owner == "root/root" and mode[5] == "-" for mode, owner in files.values() if mode[0] != "l")


def test_a_debian_takes_it_and_is_as_before(package, tmp_path):
    builds.require("debootstrap", "chroot")
    if os.geteuid():
        pytest.skip("debootstrap and chroot need root")
    done = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", tmp_path / "debian"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"Debian's packages cannot be had: {done.stdout.splitlines()[-1:]}")
    run("cp", package, tmp_path / "debian" / "tmp" / "quern.deb")
    said = run("sh", "-ec", INSIDE, "sh", tmp_path / "debian")
    assert "replay: identical" in said and "Purging" in said
