"""`quern plan`: a simulated training, on devices that the machine need not have."""

import json
import re
import time

import pytest

HOSTS = "4*host(cpu 60k) 2*host(cpu 80k + gpu 400k start 50us)"
NET = "net 10us 10GB/s"


def events(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def plan(run_quern):
    """plan("host(cpu 60k)", "--batch", 128) -> the plan, its ranks, and what one more would bring."""
    def run(*words):
        out = events(run_quern("plan", "--json", "--team", *map(str, words)).stdout)
        (made,) = [e for e in out if e["event"] == "plan"]
        return (made, [e for e in out if e["event"] == "rank"],
                [e for e in out if e["event"] == "more"])
    return run


# ---------------------------------------------------------------- what comes out

def test_shares_and_times(plan):
    made, ranks, more = plan(f"{HOSTS}; {NET}", "--batch", 8192, "--items", 800000)
    assert made["ranks"] == made["hosts"] == len(ranks) == 6 and made["devices"] == 8
    assert made["bound_s"] < made["seconds"] < made["equal_s"]
    assert abs(sum(r["share"] for r in ranks) - 1) < 1e-6
    for r in ranks:
        spent = sum(r[k] for k in "computing waiting exchanging updating recovering".split())
        assert abs(spent - 1) < 0.01, r
    assert ranks[5]["share"] > 5 * ranks[0]["share"]
    assert {m["name"] for m in more} == {"host(cpu 60k)",
                                         "host(cpu 80k + gpu 400k start 50us)"}


def test_tokens_that_come_next(plan, run_quern, tmp_path):
    """As a training counts them: items of T + 1 tokens, memory, parameters, the epochs that were not named."""
    text = tmp_path / "t.txt"
    text.write_text("to be or not to be\n" * 60)
    job = ["--data", text, "--tokens", "bytes", "--context", 8, "--task", "next", "--valid", "0.25", "--batch", 16,
           "--model", "embedding 128 6; position learned; conv 128 1x1 softmax"]
    made, _, _ = plan("host(cpu 1k)", *job)
    done = run_quern("train", *job, "--epochs", 1, "--json", "-o", tmp_path / "m.st")
    start = next(e for e in events(done.stdout) if e["event"] == "start")
    assert made["parameters"] == 128 * 6 + 8 * 6 + 129 * 6 + 122 and made["memory_bytes"] == start["memory_bytes"]
    epochs = made["items_per_s"] * made["seconds"] / start["items"]
    assert abs(epochs - round(epochs)) < 1e-6 and made["steps"] == -(-round(epochs) * start["items"] // 16)
    assert plan("host(cpu 1k)", "--features", 9, "--items", 100, *job[-4:])[0]["parameters"] == made["parameters"]


def test_the_same_every_time(run_quern):
    words = ["plan", "--json", "--batch", "8192", "--team",
             f"{HOSTS}; slow 2 at 0.2s x0.5; die 3 at 1s; {NET}"]
    assert run_quern(*words).stdout == run_quern(*words).stdout


def test_deaths_and_changes(plan):
    calm, _, _ = plan(f"{HOSTS}; {NET}", "--batch", 8192)
    changed, ranks, _ = plan(f"{HOSTS}; die 3 at 0.1s; slow 4 at 0.1s x0.25; {NET}", "--batch",
                             8192)
    assert changed["deaths"] == 1 and [r["died"] for r in ranks] == [False] * 3 + [True] + [False] * 2
    assert changed["bound_s"] > calm["bound_s"] and changed["seconds"] > calm["seconds"]


def test_events_that_come_too_late(run_quern, plan):
    team = "2*host(cpu 60k); net 10us 1GB/s; die 1 at 1h; slow 0 at 1ms x0.5"
    made, _, _ = plan(team, "--epochs", 1)
    assert made["late_events"] == 1 and made["deaths"] == 0 and made["seconds"] < 10
    text = run_quern("plan", "--epochs", "1", "--team", team).stdout
    assert "too late      1 of the 2 events described comes after the end and changes nothing" in text
    assert "too late" not in run_quern("plan", "--epochs", "1", "--team", team.replace("1h", "2ms")).stdout


def test_one_machine_more_brings_less_over_a_slow_wire(plan):
    fast, _, (more,) = plan("4*host(cpu 60k); net 1us 100GB/s; memory 1TB/s", "--batch", 4096)
    assert more["seconds"] < 0.85 * fast["seconds"]
    slow, _, (more,) = plan("4*host(cpu 60k); net 1ms 10MB/s; memory 1TB/s", "--batch", 4096)
    assert more["seconds"] > 0.95 * slow["seconds"]
    assert slow["exchanging"] > 0.5


def test_thousands_of_workers_in_seconds(plan):
    begun = time.monotonic()
    made, ranks, _ = plan("1000*host(cpu 60k + 4*gpu 400k start 50us); net 10us 10GB/s", "--batch",
                          2 << 20, "--items", 1 << 27)
    assert made["devices"] == 5000 and len(ranks) == 1000
    assert time.monotonic() - begun < 60


def test_the_text_for_a_person(run_quern):
    text = run_quern("plan", "--team", f"{HOSTS}; die 3 at 0.1s; {NET}", "--batch", "8192").stdout
    for pattern in (r"^time +\S+ s, \S+ items/s; a step takes", r"^efficiency +\d+\.\d %: all devices at full speed",
                    r"^equal shares +\S+ s, efficiency", r"^of the time .*all-reduce .*, lost ranks \d+\.\d %",
                    r"^failures +1 rank;", r"^  0-2 +60\.0k .*host\(cpu 60k\)$", r"^  3 .*, died$",
                    r"^with one more host$", r"^ +hosts +time +speed +efficiency$", r"^ +512 .* 0\.\d %$"):
        assert re.search(pattern, text, re.M), (pattern, text)


def test_where_it_stops_what_it_takes_and_what_it_costs(run_quern):
    team = "100*host(cpu 60k power 90W idle 40W) power 30W price 36/h; net 20us 10Gbit/s; sums 5B; parts 784B"
    words = ["plan", "--batch", "8192", "--team", team]
    text = run_quern(*words).stdout
    for pattern in (r"^energy +[\d.]+ kJ$", r"^price +[\d.]+$", r"^ +hosts .* energy +price$", r"^ +64 .* kJ +[\d.]+$",
                    r"^stops scaling at 64 hosts: more shorten"):
        assert re.search(pattern, text, re.M), (pattern, text)
    out = events(run_quern(*words, "--json").stdout)
    scale, made = [e for e in out if e["event"] == "scale"], out[-1]
    assert [e["hosts"] for e in scale] == [2 ** n for n in range(11)] and made["enough_hosts"] == 64
    assert made["price"] == pytest.approx(made["seconds"]) and 70 < made["joules"] / made["seconds"] / 100 < 120
    assert scale[0]["joules"] / scale[0]["seconds"] == pytest.approx(120) and scale[0]["price"] < scale[5]["price"]
    line = [*words[:4], team.replace("; parts 784B", ""), "--data-parts", "x*", "--items", "20000", "--json"]
    without = events(run_quern(*line).stdout)
    assert without[0]["bytes_out"] < out[0]["bytes_out"] and without[-1]["seconds"] == pytest.approx(made["seconds"])


def test_many_unlike_ranks_are_cut_short(run_quern):
    team = " ".join(f"host(cpu {10 + n}k)" for n in range(40))
    text = run_quern("plan", "--team", f"{team}; {NET}", "--batch", "65536").stdout
    assert "more ranks, which --json lists" in text and text.count("host(cpu") < 40


def test_data_says_how_many_items(run_quern, tmp_path):
    file = tmp_path / "d.csv"
    file.write_text("".join(f"{n % 3},{n},{n}\n" for n in range(300)))
    text = run_quern("plan", "--team", "host(cpu 1k)", "--data", file).stdout
    assert text.startswith("dense 64 relu; dense 32 relu; dense 3 softmax: 2,371 parameters\n53 epochs of 300 items")
    text = run_quern("plan", "--team", "host(cpu 1k)", "--data", file, "--weight", 2).stdout
    assert "softmax: 2,307 parameters\n" in text  # the column of weights is not a feature


def test_every_option_of_train_is_known(run_quern):
    names = re.findall(r"^  (?:-\w, )?--([a-z0-9-]+)", run_quern("train", "--help").stdout, re.M)
    assert {"lr", "augment", "nesterov", "output", "meet", "trace"} < set(names) and len(names) > 55
    for name in set(names) - {"help"}:
        said = run_quern("plan", "--" + name, status=2).stderr
        assert "requires a value" in said or "--team is required" in said or name == "nesterov", said
    for wrong, said in (["--nesterov"], "does nothing"), (["--test", "x"], "needs --data"), (["--seed", "x"], "--seed"), (
            ["--augment", "flip", "--features", "9"], "no pixels"), (["--features", "2-5"], "columns need --data"):
        assert said in run_quern("plan", "--team", "host(cpu 1k)", *wrong, status=2).stderr


def test_a_line_of_train_can_be_copied(run_quern, tmp_path):
    """What counts in the job counts in the plan."""
    file = tmp_path / "d.csv"
    file.write_text("y,a,b,c,d,e\n" + "".join(f"{n % 3},{n},{n},{n},{n},{n}\n" for n in range(300)))
    line = ["--data", file, "--features", "2-5", "--shape", "1x2x2", "--valid", "0.1", "--test", file, "--model",
            "conv 4 3 relu; dense 3 softmax", "--augment", "flip", "--scale", "channel", "--clip", "2", "--smoothing",
            "0.1", "--lr", "0.02", "--threads", "1", "--epochs", "2", "--seed", "7", "--schedule", "cosine",
            "--momentum", "0.8", "--nesterov", "-o", tmp_path / "m", "--quiet"]
    run_quern("train", *line)
    planned = run_quern("plan", *line, "--team", "host(cpu 1k)").stdout
    assert "\n2 epochs of 270 items" in planned and ": 91 parameters\n" in planned
    memory = [json.loads(run_quern("plan", "--json", "--team", "host(cpu 1k)", *more).stdout.splitlines()[-1])
              ["memory_bytes"] for more in ([], ["--momentum", "0.8"], ["--optimizer", "momentum"])]
    assert memory[0] + 4 * 397510 < memory[1] == memory[2]
    assert "1 sigmoid" in run_quern("plan", "--team", "host(cpu 1k)", "--loss", "binary", "--classes", 2).stdout


def test_a_machine_as_it_was_measured(run_quern, tmp_path):
    job = ["--model", "dense 24 tanh; dense 10 softmax", "--batch", "128"]
    file = tmp_path / "here.json"
    file.write_text(run_quern("devices", "--json", "--costs", "--devices", "cpu", "--seconds", "0.2",
                              *job).stdout)
    cost = json.loads(file.read_text())
    assert cost["grains"] == [1, 2, 3, 4] and min(cost["seconds"]) > 0 and cost["update_s"] > 0
    assert 2 < cost["word_bytes"] < 8 and cost["pack_s"] > 0 and cost["unpack_s"] > 0
    out = events(run_quern("plan", "--json", *job, "--team", file).stdout)
    assert 0 < out[-1]["bound_s"] <= 1.01 * out[-1]["seconds"]
    made = events(run_quern("plan", "--json", *job, "--team", f"3*host({file})", "--team",
                            "net 10us 1GB/s").stdout)[-1]
    assert made["ranks"] == 3 and made["seconds"] > 0
    spaced = ["--model", "dense  24 tanh;dense 10 softmax", *job[2:]]
    assert events(run_quern("plan", "--json", *spaced, "--team", file).stdout)[-1] == out[-1]
    file.write_text(file.read_text().replace("dense 24 tanh; dense", "dense  24 tanh;dense"))
    assert events(run_quern("plan", "--json", *job, "--team", file).stdout)[-1] == out[-1]
    # Beside a machine that was measured as a third as fast, it gets three of the four grains.
    cost |= {"seconds": [0.001, 0.002, 0.003, 0.004]}
    file.write_text(json.dumps(cost))
    slower = tmp_path / "there.json"
    slower.write_text(json.dumps(cost | {"seconds": [3 * s for s in cost["seconds"]]}))
    both = events(run_quern("plan", "--json", *job, "--team", file, "--team", slower,
                            "--team", "net 1us 10GB/s").stdout)
    shares = [e["share"] for e in both if e["event"] == "rank"]
    assert shares == pytest.approx([0.75, 0.25], abs=0.001)
    done = run_quern("plan", "--batch", "64", "--team", file, status=1)
    assert "quern devices --json --costs" in done.stderr
    # What integers take is measured for itself.
    done = run_quern("plan", *job, "--arith", "i14", "--team", file, status=1)
    assert "measured with arith f32, the plan is for i14" in done.stderr
    assert re.search("--costs .* --arith i14 > ", done.stderr)
    file.write_text(json.dumps(cost | {"arith": "i14"}))
    text = run_quern("plan", *job, "--arith", "i14", "--team", file).stdout
    assert text.startswith("dense 24 tanh; dense 10 softmax in i14: ")


def test_a_machine_as_it_was_measured_with_images(run_quern, tmp_path):
    """The command that a message gives is taken, also for a network on pixels and a long one."""
    run_quern("data", "synth", "digits", "--items", 64, "--quiet", "-o", tmp_path / "d.tar")
    line = ["--data", tmp_path / "d.tar", "--resize", "9x8", "--batch", "32"]
    for model, named in (("conv 2 3; globalpool; dense 10", '"conv 2 3x3 none; globalpool; dense 10 none"'),
                         ("conv 2 3; " * 30 + "dense 10", "MODEL")):
        run = ["--model", model, *line]
        (tmp_path / "a.json").write_text("{}\n")
        said = run_quern("plan", *run, "--team", tmp_path / "a.json", status=1).stderr
        assert f"--costs --model {named} --shape 1x9x8 --batch 32 --grain 32 --optimizer sgd > " in said, said
        for how in (run[:2] + ["--shape", "1x9x8", "--batch", "32"], run):
            (tmp_path / "a.json").write_text(run_quern("devices", "--json", "--costs", "--devices", "cpu:1", "--seconds",
                                                       "0.1", *how).stdout)
            assert "64 items" in run_quern("plan", *run, "--team", tmp_path / "a.json").stdout


# ---------------------------------------------------------------- what is refused

@pytest.mark.parametrize("team, complaint, column", [
    ("host(cpu 60q)", "rate", 10),
    ("4 host(cpu 60k)", "needs a star", 3),
    ("host(cpu 60k", "a closing bracket", 13),
    ("host(cpu 60k); slow 0 at 1s 2", "change of speed", 29),
    ("host(cpu 60k); die 0.x at 1s", "number of a host", 20),
    ("0*host(cpu 60k)", "number of copies", 1),
])
def test_nonsense_is_pointed_at(run_quern, team, complaint, column):
    done = run_quern("plan", "--team", team, status=2)
    assert complaint in done.stderr, done.stderr
    line, caret = done.stderr.splitlines()[-3:-1] if "^" in done.stderr else ("", "")
    assert f"column {column}" in done.stderr
    assert caret.strip() == "^" and team[:9] in line


@pytest.mark.parametrize("words, complaint", [
    ([], "--team is required"),
    (["--team", ""], "the value of --team is empty"),
    (["--team", "2*host(cpu 1k)"], "network"),
    (["--team", "host(cpu 1k)", "--model", "dense 5 tan"], "tan"),
    (["--team", "host(cpu 1k)", "--data", "x", "--items", "5"], "exclude"),
    (["--team", "host(cpu 1k)", "--labels", "x"], "needs --data"),
    (["--team", "host(cpu 1k)", "--data-parts", "x"], "does not open the files of --data-parts"),
    (["--team", "host(cpu 1k)", "--weight", "w"], "--weight needs --data"),
    (["--team", "host(cpu 1k)"] * 65, "more than 64 times"),
    (["--team", "host(cpu 1k); die 1 at 1s"], "no host 1"),
    (["--team", "host(cpu 1k | cpu 1k); die 0.2 at 1s"], "host 0 has no rank 2"),
    (["--team", "host(cpu 1k)", "--batch", "0"], "--batch"),
])
def test_other_nonsense(run_quern, words, complaint):
    assert complaint in run_quern("plan", *words, status=2).stderr


@pytest.mark.parametrize("text, complaint", [
    (None, "cannot open"),
    ("", "has the cost of no device"),
    ("{}\n", "has the cost of no device"),
    ("[[[[", "not JSON"),
    ('{"event":"cost","model":"dense 5"}\n', "measured with model dense 5"),
])
def test_files_that_are_none(run_quern, tmp_path, text, complaint):
    file = tmp_path / "a.json"
    if text is not None:
        file.write_text(text)
    for team in (str(file), f"2*host({file})"):
        done = run_quern("plan", "--team", team, status=1)
        assert complaint in done.stderr, done.stderr


def test_layers_that_do_not_train(run_quern, tmp_path):
    """They are not in the sums, take less memory, and a machine is measured without them."""
    job = ["--model", "dense 400 relu; dense 90 tanh; dense 10 softmax", "--batch", 64]
    team = ["--team", "2*host(cpu 60k); net 10us 10MB/s"]
    whole, frozen = (events(run_quern("plan", "--json", *job, *more, *team).stdout)[-1]
                     for more in ([], ["--freeze", "0", "--init-from", tmp_path / "not read"]))
    assert frozen["parameters"] == whole["parameters"] and frozen["memory_bytes"] < whole["memory_bytes"]
    assert frozen["exchange_s"] < 0.2 * whole["exchange_s"] and frozen["seconds"] < whole["seconds"]
    file = tmp_path / "m.json"
    for more, step in ((["--freeze", "0,1", "--cache-features"], 0), (["--freeze", "all-but-last"], 1)):
        costs = run_quern("devices", "--json", "--costs", "--devices", "cpu", "--seconds", "0.1", *job, *more).stdout
        file.write_text(costs)
        again = ["--freeze", "0..1", *more[2:]]
        assert events(run_quern("plan", "--json", *job, *again, "--team", file).stdout)[-1]["seconds"] > 0
    said = run_quern("plan", *job, "--team", file, status=1).stderr
    assert "measured with freeze 0..1, the plan is for none" in said
    said = run_quern("plan", *job, *again, "--cache-features", "--team", file, status=1).stderr
    assert "measured with cache_features 0" in said and "--freeze 0..1 --cache-features > " in said
    for more, words in ((["--freeze", "0..2"], "one of them must train"), (["--cache-features"], "all layers do"),
                        (["--freeze", "5"], "layers 0 to 2")):
        assert words in run_quern("plan", *job, *more, *team, status=2).stderr
    said = run_quern("plan", "--init-from", "m", *team, status=2).stderr
    assert "opens no model" in said and "quern model show" in said
