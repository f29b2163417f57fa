"""Recipes of kernels that come from somebody else."""

import json

import numpy

from test_kernel import cache, quick, run  # noqa: F401: fixtures


def test_a_recipe_opens_no_other_files(run, tmp_path):
    """Somebody else's recipe may name any file. Those below its folder are opened, whatever `..` and
    links say; others only where they are named."""
    own, theirs, link = tmp_path / "own", tmp_path / "theirs", tmp_path / "theirs" / "link.npy"
    (theirs / "data").mkdir(parents=True)
    own.mkdir()
    for place in (own / "x.npy", theirs / "data" / "x.npy"):
        numpy.save(place, numpy.arange(5.0))
    run("INDEX(i); INPUT(double, x); SUM(double, all); KERNEL { all = x; }", "--in", "x=theirs/data/x.npy", "--recipe",
        "theirs/r.json")
    recipe = json.loads((theirs / "r.json").read_text())
    replay = dict(command=["replay"])
    link.symlink_to(own / "x.npy")
    (theirs / "up").symlink_to("..")
    (theirs / "inside.npy").symlink_to("data/x.npy")
    (tmp_path / "theirs-too").mkdir()
    numpy.save(tmp_path / "theirs-too" / "x.npy", numpy.arange(5.0))
    for good in ("theirs/data/x.npy", "theirs/../theirs/data/x.npy", theirs / "inside.npy", theirs / "up/theirs/data/x.npy"):
        recipe["inputs"]["x"]["file"] = str(good)
        (theirs / "r.json").write_text(json.dumps(recipe))
        run(None, "theirs/r.json", **replay)
    for bad in ("own/x.npy", own / "x.npy", link, theirs / "data/../../own/x.npy", theirs / "up/own/x.npy",
                "theirs-too/x.npy", "/etc/passwd", "/dev/zero"):
        recipe["inputs"]["x"]["file"] = str(bad)
        (theirs / "r.json").write_text(json.dumps(recipe))
        done = run(None, "theirs/r.json", status=2, **replay)
        assert f'the recipe names {bad} for "x", which is not below the folder of the recipe' in done.stderr
        assert "add --allow-path with the folder" in done.stderr and "--in x=FILE.npy" in done.stderr
        run(None, "theirs/r.json", "--in", "x=own/x.npy", **replay)
        run(None, "theirs/r.json", "--allow-path", "theirs/data", status=2, **replay)
        if str(bad).endswith("x.npy"):
            run(None, "theirs/r.json", "--allow-path", "theirs/data", "--allow-path", ".", **replay)
    run(None, "theirs/r.json", "--allow-path", "/", status=1, **replay)  # it is not an array
    recipe["inputs"]["x"]["file"] = "own/x.npy"
    (tmp_path / "r.json").write_text(json.dumps(recipe))
    run(None, "r.json", **replay)
    run(None, "theirs/r.json", "--allow-path", "nowhere", status=1, **replay)
