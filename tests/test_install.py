"""What a packager does: build with other options, install, and use it from another project.

The build is a shared library without zlib, made by clang, the other way round from the one that all
other tests use, so each option is tried both ways.
"""

import gzip
import os
import re
import subprocess

import pytest

import builds
from builds import ROOT
from test_house import public_functions

USER = """
#include <quern/quern.h>
#include <stdio.h>

int main(void) {
    qn_data *data = NULL;
    if (qn_data_synth_digits(1, 0, 3, &data, NULL) != QN_OK)
        return 1;
    printf("%llu\\n", (unsigned long long)qn_data_items(data));
    qn_data_close(data);
    return 0;
}
"""

PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(user C)
find_package(quern REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE quern::quern)
"""


def run(*command, **kwargs):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **kwargs)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The preset `clang`, installed; then the installation is moved."""
    folder = tmp_path_factory.mktemp("shared")
    build = builds.ready("clang", "all")
    run("cmake", "--install", build, "--prefix", folder / "first")
    return (folder / "first").rename(folder / "prefix")


@pytest.fixture
def user(tmp_path):
    (tmp_path / "user.c").write_text(USER)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    return tmp_path


def test_the_installed_program_runs(shared):
    version = run(shared / "bin" / "quern", "version")
    header = (ROOT / "include" / "quern" / "version.h").read_text()
    number = ".".join(re.search(rf"QN_VERSION_{part}\s+(\d+)", header)[1]
                      for part in ("MAJOR", "MINOR", "PATCH"))
    assert number in version


def test_manual_pages_and_completions_are_installed(shared):
    """One page for each command, and the program's own; where man, bash, zsh and fish look for them."""
    program = shared / "bin" / "quern"
    commands = re.findall(r"^  ([a-z]+(?: [a-z]+)*)  ", run(program), re.M)
    assert "train" in commands and "data synth digits" in commands
    pages = {"quern.1": []} | {f"quern-{c.replace(' ', '-')}.1": c.split() for c in commands}
    found = shared / "share" / "man" / "man1"
    assert {p.name for p in found.iterdir()} == set(pages)
    for page, command in pages.items():
        assert (found / page).read_text() == run(program, "help", "--man", *command)
    for shell, place in (("bash", "bash-completion/completions/quern"),
                         ("zsh", "zsh/site-functions/_quern"),
                         ("fish", "fish/vendor_completions.d/quern.fish")):
        assert (shared / "share" / place).read_text() == run(program, "help", "--completion", shell)


def test_without_zlib_gzip_is_refused_by_name(shared, tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"label,f0\n1,2\n"))
    done = subprocess.run([shared / "bin" / "quern", "data", "info", tmp_path / "a.csv.gz"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "zlib" in done.stderr


def exported(library):
    """Symbols of a shared library's dynamic table that it defines: name -> version."""
    lines = run("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines()
    symbols = [line.split()[1:] for line in lines]
    return {name.split("@")[0]: name.partition("@@")[2]
            for kind, name in symbols if kind != "A"}


def test_the_shared_library_exports_what_the_headers_declare(shared):
    """Neither a function of the library's own nor one of the headers that was forgotten."""
    builds.require("nm")
    symbols = exported(next(shared.rglob("libquern.so")))
    assert set(symbols) == public_functions(ROOT)
    assert set(symbols.values()) == {"QUERN_0.1"}


def test_make_install_takes_prefix_and_destdir(shared, tmp_path):
    """Of a tree that is built: make calls the build, which has nothing to do, and installs."""
    builds.require("make", "cmake")
    build = builds.directory("clang")
    done = run("make", "-n", "--no-print-directory", "-C", ROOT, "install", "PREFIX=/opt/q", f"DESTDIR={tmp_path}")
    line = done.strip().splitlines()[-1]
    assert f'DESTDIR="{tmp_path}"' in line and "--prefix" in line
    run("sh", "-c", line.replace("--install build", f"--install {build}"))
    assert (tmp_path / "opt" / "q" / "bin" / "quern").exists()
    assert (tmp_path / "opt" / "q" / "include" / "quern" / "quern.h").exists()
    assert (tmp_path / "opt" / "q" / "share" / "man" / "man1" / "quern-train.1").exists()


def test_pkg_config(shared, user):
    builds.require("pkg-config", "cc")
    library = next(shared.rglob("libquern.so")).parent
    env = {**os.environ, "PKG_CONFIG_PATH": str(next(shared.rglob("quern.pc")).parent)}
    flags = run("pkg-config", "--cflags", "--libs", "quern", env=env).split()
    run("cc", "-std=c17", user / "user.c", "-o", user / "user", *flags, f"-Wl,-rpath,{library}")
    assert run(user / "user") == "3\n"


def test_find_package(shared, user):
    builds.require("cmake", "ninja")
    run("cmake", "-S", user, "-B", user / "b", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={shared}")
    run("cmake", "--build", user / "b")
    assert run(user / "b" / "user") == "3\n"


def test_find_package_static(quern, user):
    """The default build, a static library with whatever it needs, installed in the same way."""
    builds.require("cmake", "ninja")
    prefix = user / "prefix"
    run("cmake", "--install", builds.ready("release", "quern-manual"), "--prefix", prefix)
    run("cmake", "-S", user, "-B", user / "b", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", user / "b")
    assert run(user / "b" / "user") == "3\n"


def test_nothing_names_the_place_of_the_build(quern):
    """Built elsewhere, the program would have the same bytes."""
    folder = builds.ready("release")
    for path in (folder / "quern", folder / "libquern.a", folder / "generated" / "build_info.h"):
        assert str(ROOT).encode() not in path.read_bytes(), path.name
