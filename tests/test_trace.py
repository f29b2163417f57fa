"""--trace writes what the trace event format asks for: every span closed, spans of a track nested or
apart, each on its worker's track, moments in order."""

import json
import re

import pytest


def spans_by_track(events):
    tracks = {}
    for e in events:
        if e["ph"] == "X":
            tracks.setdefault(e["tid"], []).append(e)
    return tracks


def check_format(trace):
    """What the format says of every event; returns the names of the tracks."""
    events = trace["traceEvents"]
    assert isinstance(events, list) and events
    names, last = {}, 0.0
    for e in events:
        assert e["ph"] in ("X", "i", "M"), e
        assert isinstance(e["pid"], int) and isinstance(e["tid"], int) and e["name"]
        if e["ph"] == "M":
            if e["name"] == "thread_name":
                assert e["tid"] not in names
                names[e["tid"]] = e["args"]["name"]
            continue
        assert e["tid"] in names, "a track without a name"
        assert isinstance(e["ts"], (int, float)) and e["ts"] >= last, "moments out of order"
        last = e["ts"]
        if e["ph"] == "X":
            assert e["dur"] >= 0
        else:
            assert e["s"] in ("t", "p", "g")
    return names


def check_nesting(events):
    # Whole nanoseconds: sums of the decimal numbers in the file are not exact.
    for spans in spans_by_track(events).values():
        open_ends = []
        for e in spans:
            begin = round(e["ts"] * 1000)
            end = begin + round(e["dur"] * 1000)
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1], f"{e} reaches over the end of another"
            open_ends.append(end)


@pytest.fixture(scope="module")
def digits(tmp_path_factory, run_quern):
    path = tmp_path_factory.mktemp("trace") / "train.csv"
    run_quern("data", "synth", "digits", "--items", 600, "-o", path)
    return path


def train(run_quern, digits, trace, *more, **kwargs):
    return run_quern("train", "--data", digits, "--model", "dense 24 tanh; dense 10 softmax",
                     "--epochs", 3, "--batch", 64, "--valid", 0.2, "-o",
                     digits.with_suffix(".model"), "--trace", trace, *more, **kwargs)


def test_a_run_on_the_cpu(run_quern, digits, tmp_path):
    path = tmp_path / "trace.json"
    train(run_quern, digits, path, "--checkpoint", tmp_path / "ckpt")
    trace = json.loads(path.read_text())
    names = check_format(trace)
    check_nesting(trace["traceEvents"])
    assert trace["otherData"]["dropped"] == 0
    assert sorted(names.values()) == ["cpu", "job", "team"]
    by_name = {}
    for e in trace["traceEvents"]:
        if e["ph"] == "X":
            by_name.setdefault((names[e["tid"]], e["name"]), []).append(e)
    steps = 3 * -(-480 // 64)
    assert len(by_name["job", "epoch"]) == 3
    assert len(by_name["job", "validation"]) == 3
    assert len(by_name["job", "checkpoint"]) >= 1
    assert [e["args"]["step"] for e in by_name["cpu", "step"]] == list(range(1, steps + 1))
    assert by_name["cpu", "apply"]
    assert sum(e["args"]["grains"] for e in by_name["cpu", "step"]) == 3 * (7 * 2 + 1)


def test_a_file_that_cannot_be_written(run_quern, digits, tmp_path):
    """Told before the work begins, with a remedy."""
    path = tmp_path / "nowhere" / "trace.json"
    done = train(run_quern, digits, path, status=None)
    assert done.returncode == 1
    assert "nowhere" in done.stderr and "--trace" in done.stderr


def test_workers_have_tracks_of_their_own(run_quern, digits, tmp_path):
    listed = run_quern("devices", "--json", "--measure", "none").stdout
    if not re.search(r'"id": ?"opencl:0"', listed):
        pytest.skip("no PoCL here; scripts/setup.sh says how to get it")
    path = tmp_path / "two.json"

    def spans():
        """What the workers did, by name."""
        train(run_quern, digits, path, "--devices", "cpu,opencl:0", "--shares", "1,1")
        events = json.loads(path.read_text())["traceEvents"]
        names = check_format(json.loads(path.read_text()))
        check_nesting(events)
        assert sorted(names.values()) == ["cpu", "job", "opencl:0", "team"]
        return [[e for e in events if names.get(e["tid"]) == worker and e["ph"] == "X"]
                for worker in ("cpu", "opencl:0")]

    # On a busy machine one of them may get no work in a step: one good run of several is enough.
    for _ in range(4):
        both = spans()
        if all({"load", "grains", "collect", "update"} <= {e["name"] for e in own} for own in both):
            break
    for own in both:
        assert {"load", "grains", "collect", "update"} <= {e["name"] for e in own}
        # No worker does two things at once.
        ends = [round(e["ts"] * 1000) + round(e["dur"] * 1000) for e in own]
        begins = [round(e["ts"] * 1000) for e in own]
        assert all(b >= a for a, b in zip(ends, begins[1:]))
