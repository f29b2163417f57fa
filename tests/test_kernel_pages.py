"""The pages of examples/: their commands run as they stand, and on every kind of place they write the
same bytes."""

import os
import re
import shutil
import subprocess
import sys

import pytest

import builds
import devices
import launch
import machine
from builds import ROOT
from test_kernel import cache, quick  # noqa: F401: fixtures

sys.path.insert(0, str(ROOT / "examples"))
import pictures  # noqa: E402

EXAMPLES = ROOT / "examples"

# A little less work than in the text of the page.
DRAWN = {"nbody": [("4000", "50"), ("300 400 500", "3 4 5"), ("every 50", "every 2"),
                   (r"(\w)(3|4|5)00\.npy", r"\1\2.npy")],
         "plate": [("120x180", "20x30"), ("500 5000 50000", "5 6 7"), ("u500.npy", "u5.npy"),
                   ("u5000.npy", "u6.npy"), ("u50000.npy", "u7.npy")],
         "shallow_water": [("160x240", "16x24"), ("4800", "8")],
         "path_tracer": [("240x360", "8x12"), ("samples=1024", "samples=2")]}
OTHERS = {"smith_waterman": [], "black_scholes": [], "asian_option": [("1000 10000 100000 1000000", "100 1000")],
          "tfidf": []}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with what the commands need, for all pages."""
    folder = tmp_path_factory.mktemp("pages") / "examples"
    folder.mkdir()
    for file in EXAMPLES.glob("*.py"):
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "kernels").symlink_to(EXAMPLES / "kernels")
    return folder


def block_of(page):
    """The first block of commands that begins in the folder examples, and the page's pictures."""
    text = (EXAMPLES / f"{page}.md").read_text()
    blocks = re.findall(r"(?:^    .*\n)+", text, re.M)
    first = next(i for i, block in enumerate(blocks) if "cd examples\n" in block)
    commands = "".join(b for b in blocks[first:] if re.search(r"^    (cd|quern|python3) ", b, re.M))
    for old, new in {**DRAWN, **OTHERS}[page]:
        assert re.search(old, commands), old
        commands = re.sub(old, new, commands)
    return commands, re.findall(r"!\[.+\]\((.+)\)", text)


def play(place, commands, quern, python, env):
    """Runs the commands with these words in place of `quern` and `python3`."""
    script = f'set -e\nquern() {{ {quern}; }}\npython3() {{ {python}; }}\n{commands}'
    done = subprocess.run(["sh", "-c", script], cwd=place.parent, capture_output=True, text=True,
                          env={**os.environ, **env})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", ["nbody", "plate", *(pytest.param(page, marks=machine.LONG)
                                                       for page in ("shallow_water", "path_tracer"))])
def test_pictures(quern, place, cache, quick, monkeypatch, page):  # noqa: F811
    """What the commands write is drawn; the page's own pictures are small."""
    commands, shown = block_of(page)
    assert shown and all((EXAMPLES / p).stat().st_size < 150_000 for p in shown)
    play(place, commands, f'{quern} "$@"', 'echo "$@" >> drawn', {"QUERN_CACHE": str(cache), "CC": quick})
    monkeypatch.chdir(place)
    drawn = [line.split() for line in (place / "drawn").read_text().splitlines()]
    (place / "drawn").unlink()
    assert len(drawn) == len(shown)
    for words in drawn:
        monkeypatch.setattr(sys, "argv", words)
        pictures.main()
        data = (place / words[-1]).read_bytes()
        assert data[1:4] == b"PNG" or data[:4] == b"<svg"
    if page == "plate":
        assert int.from_bytes(data[16:20], "big") == 3 * 30 + 2 * 6


# ---------------------------------------------------------------- the same bytes everywhere

WAYS = ["O0", "gcc", "clang", "x86-64", "opencl", "cpu and opencl", "cuda", "three ranks", "aarch64"]


def compiler(folder, words):
    path = folder / f"cc{len(list(folder.iterdir()))}"
    path.write_text(f"#!/bin/sh\nexec {words}\n")
    path.chmod(0o755)
    return str(path)


def way(which, quern, folder, quick):  # noqa: F811
    """(what stands for `quern`, environment) of a way."""
    run = f'{quern} "$@"'
    if which in ("O0", "x86-64"):
        return run, {"CC": compiler(folder, f'cc "$@" {"-O0" if which == "O0" else "-O2 -march=x86-64"}')}
    if which in ("gcc", "clang"):
        builds.require(which)
        return run, {"CC": which}
    if which in ("opencl", "cpu and opencl"):
        names, env = devices.pocl()
        return f'{quern} "$@" --devices {"cpu:1," if " " in which else ""}{names[0]}', {**env, "CC": quick}
    if which == "cuda":
        fakes = builds.beside(quern, "fakes", "fake_gpu")
        return f'{quern} "$@" --devices cuda:0', {"LD_LIBRARY_PATH": str(fakes), "QN_FAKE_CUDA": "memory=64"}
    if which == "three ranks":
        launch.need("openmpi4")
        mpi = launch.MPIS["openmpi4"]
        return f'{mpi["program"]} {" ".join(mpi["crowded"])} -n 3 {quern} "$@"', launch.clean_environment(CC=quick)
    builds.require("aarch64-linux-gnu-gcc", "qemu-aarch64")
    # The program is static, and a kernel may need memset of the C library.
    return (f'qemu-aarch64 {builds.ready("aarch64-quick")}/quern "$@"',
            {"CC": "aarch64-linux-gnu-gcc", "QEMU_LD_PREFIX": "/usr/aarch64-linux-gnu"})


def written(place):
    """Arrays and recipes; nothing else is of quern."""
    return {f.name: f.read_bytes() for f in place.iterdir() if f.suffix in (".npy", ".json")}


@pytest.fixture(scope="module")
def wanted(quern, place, tmp_path_factory, quick):  # noqa: F811
    """What one core writes from a page's commands, in a folder of the page."""
    env, known = {"CC": quick, "QUERN_CACHE": str(tmp_path_factory.mktemp("one"))}, {}

    def call(page):
        if page not in known:
            folder = place.parent / page / "examples"
            shutil.copytree(place, folder, symlinks=True)
            play(folder, block_of(page)[0], f'{quern} "$@" --threads 1', f'{sys.executable} "$@"', env)
            known[page] = folder, written(folder)
        return known[page]
    return call


@machine.LONG
@pytest.mark.parametrize("which", WAYS)
def test_same_bytes(quern, wanted, tmp_path, tmp_path_factory, quick, which):  # noqa: F811
    """The inputs stay; what quern wrote is written again."""
    run, env = way(which, quern, tmp_path, quick)
    env = {**env, "QUERN_CACHE": str(tmp_path_factory.mktemp("other"))}
    for page in [*DRAWN, *OTHERS]:
        folder, files = wanted(page)
        for name in files:
            if name.endswith(".json"):
                (folder / name).unlink()
        for state in folder.glob("*.state"):
            state.unlink()
        play(folder, block_of(page)[0], run, ":", env)
        again = written(folder)
        assert sorted(again) == sorted(files), page
        assert not [name for name in files if again[name] != files[name]], page
