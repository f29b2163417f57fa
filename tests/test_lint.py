"""What other people's tools find in the sources: layout, cppcheck, clang-tidy, clang for the OpenCL
kernels, shellcheck."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess

import pytest

import builds
from builds import ROOT

C_CODE = sorted(f for folder in ("include", "src", "app", "bench", "examples", "tests")
                for f in (ROOT / folder).rglob("*") if f.suffix in (".c", ".h", ".inc", ".cl"))
# kernels.c holds the text of all kernels as numbers, on which cppcheck spends many minutes.
CHECKED = sorted(f for folder in ("src", "app") for f in (ROOT / folder).rglob("*.c")
                 if not f.name.endswith("_test.c") and f.name != "kernels.c")


def clean(command):
    done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]


def test_layout():
    builds.require("clang-format")
    files = touched(C_CODE, len(C_CODE), C_CODE)
    if not files:
        pytest.skip(f"no file has changed in {COMMITS} commits; make lint looks at all")
    clean(["clang-format", "--dry-run", "-Werror", *files])


def test_cppcheck():
    # Its parser stumbles over compound literals, and it takes a buffer that a call in the same
    # argument list fills for one that nobody does, and loses track of "!a || f(a)"; clang-tidy and
    # the sanitizers watch these.
    builds.require("cppcheck")
    files = touched(CHECKED)
    if not files:
        pytest.skip(f"no file has changed in {COMMITS} commits; make lint looks at all")
    clean(["cppcheck", "--quiet", "--std=c11", "--enable=warning,performance,portability",
           "--inline-suppr", "--suppress=missingIncludeSystem",
           "--suppress=internalAstError", "--suppress=uninitvar",
           "--suppress=nullPointer", "--error-exitcode=1",
           f"-j{builds.JOBS}", "-Iinclude", "-Isrc", f"-I{builds.directory('release')}/generated",
           "-D_GNU_SOURCE", "-DQN_HAVE_ZLIB=1", *files])


def folder_of(path):
    """src/device/cpu/tile.c -> src/device/cpu"""
    return str(path.parent.relative_to(ROOT))


# The analyzer inside clang-tidy spends 5 to 15 times longer when it follows calls from function to
# function. `make lint` lets it (QUERN_LINT=deep), a test run only in files that have just changed.
# Of the files of so many last commits, those with the most changed lines are looked at, and fewer of
# them deeply; make lint looks at all.
COMMITS = 4
MOST, MOST_DEEP = 12, 3

SHALLOW = ["--extra-arg=-Xclang", "--extra-arg=-analyzer-config", "--extra-arg=-Xclang",
           "--extra-arg=mode=shallow"]


def changed(commits, most, among=CHECKED):
    """The `most` files of which the last commits, and what differs from them, changed most lines; a file
    that moved counts by its other lines. None where git cannot say."""
    if shutil.which("git") is None:
        return None
    asked = [subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
             for words in (["diff", "--numstat", "-z", "-M50%", "-l9999", f"HEAD~{commits}"],
                           ["ls-files", "-o", "--exclude-standard"])]
    if any(done.returncode for done in asked):
        return None
    new = {ROOT / name for name in asked[1].stdout.splitlines()}
    lines = {}
    # lines, lines, name NUL; of a file that moved: lines, lines NUL old name NUL new name NUL
    for more, less, path, moved in re.findall(r"(\d+|-)\t(\d+|-)\t(?:([^\0]+)|\0[^\0]*\0([^\0]+))\0",
                                              asked[0].stdout):
        lines[ROOT / (path or moved)] = sum(int(n) for n in (more, less) if n != "-")
    code = [f for f in lines if f in among]
    return new | set(sorted(code, key=lambda f: (-lines[f], f))[:most])


def touched(files, most=MOST, among=CHECKED):
    """Those of the last commits. What was not touched lately was looked at before."""
    lately = None if os.environ.get("QUERN_LINT") == "deep" else changed(COMMITS, most, among)
    return files if lately is None else [f for f in files if f in lately]


@pytest.fixture(scope="session")
def database(tmp_path_factory):
    """The commands of the release build, as clang-tidy reads them: their folder, and each file's."""
    entries = json.loads((builds.ready("release") / "compile_commands.json").read_text())
    for entry in entries:  # a warning of clang alone is not what this test is about
        entry["command"] = re.sub(r" -W(no-)?error\S*", "", entry["command"])
    folder = tmp_path_factory.mktemp("database")
    (folder / "compile_commands.json").write_text(json.dumps(entries))
    return folder, {entry["file"]: entry for entry in entries}


def stamp(entry, options):
    """The file that says, once it exists, that clang-tidy found nothing in this text, headers and all. So
    `make lint`, which takes an hour, goes on where it was interrupted."""
    words = [word for word in shlex.split(entry["command"]) if word not in ("-c", "ccache")]
    if "-o" in words:
        del words[words.index("-o"):words.index("-o") + 2]
    read = subprocess.run([*words, "-E", "-C"], cwd=entry["directory"], capture_output=True)
    told = subprocess.run(["clang-tidy", "--version"], capture_output=True).stdout
    digest = hashlib.sha256()
    for part in (told, (ROOT / ".clang-tidy").read_bytes(), repr(options).encode(), read.stdout):
        digest.update(hashlib.sha256(part).digest())
    return builds.CACHE / "tidy" / digest.hexdigest()


@pytest.mark.parametrize("folder", sorted({folder_of(f) for f in CHECKED}))
def test_clang_tidy(folder, database):
    builds.require("clang-tidy")
    commands, entries = database  # without files for other processors
    files = [f for f in CHECKED if folder_of(f) == folder and str(f) in entries]
    if not files:
        pytest.skip(f"no file of {folder} is built on this processor")
    files = touched(files)
    all_deep = os.environ.get("QUERN_LINT") == "deep"
    deep = files if all_deep else changed(1, MOST_DEEP) or ()
    if not files:
        pytest.skip(f"no file of {folder} has changed in {COMMITS} commits; make lint looks at all")
    said = []
    for file in files:
        options = [] if file in deep else SHALLOW
        seen = stamp(entries[str(file)], options)
        if seen.exists():
            continue
        with builds.untimed():
            done = subprocess.run(["clang-tidy", "--quiet", *options, "-p", commands, file], cwd=ROOT,
                                  capture_output=True, text=True)
        if done.returncode == 0:
            seen.parent.mkdir(parents=True, exist_ok=True)
            seen.touch()
        else:
            said.append(done.stdout + done.stderr)
    assert not said, "\n".join(said)[-8000:]


def kernel_text(*files):
    """The files as cmake/QuernKernels.cmake puts them together: what each names in its place."""
    include = re.compile(r'^#include "(.+)"$', re.M)
    return "".join(include.sub(lambda m: kernel_text(m[1]), (ROOT / "src" / file).read_text())
                   for file in files)


@pytest.mark.parametrize("vectors", [[], ["-DQN_VECTORS=1"]], ids=["gpu", "cpu"])
def test_opencl_compiler_has_nothing_to_say(vectors, tmp_path):
    # PoCL hands on to the user's terminal how many warnings its compiler, which is clang, had.
    builds.require("clang")
    text = tmp_path / "kernels.cl"
    text.write_text(kernel_text("kernels/runtime/prelude_opencl.cl", "kernels/training/program.cl",
                                "kernels/training/program_opencl.cl"))
    clean(["clang", "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header",
           "-fsyntax-only", "-Werror", "-DQN_ATOMICS64=1", *vectors, text])


def test_shell():
    builds.require("shellcheck")
    clean(["shellcheck", ".ci/run", *sorted((ROOT / "scripts").glob("*.sh"))])
