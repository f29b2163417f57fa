"""Bad input: a clear error with place and remedy, exit status 1 or 2, no output file touched.

A case is what is written, how the command is called, the status it ends with, and words that its
message must hold. Each runs twice: with nothing at the place of the output, and with a file there
that must stay as it was.
"""

import gzip
import os
import re
import resource
import struct
import subprocess

import pytest

PRECIOUS = b"a file that was there before"
CSV = "label,a,b,c,d\n" + "".join(f"{i % 3},{i}.5,{i * i % 7},{i % 5},-{i}\n" for i in range(30))
NET = ["--model", "dense 3 softmax", "--epochs", "1"]


def idx(dimensions, body, kind=8):
    head = struct.pack(">BBBB", 0, 0, kind, len(dimensions))
    return head + b"".join(struct.pack(">I", d) for d in dimensions) + body


IMAGES = idx([6, 2, 2], bytes(range(24)))
LABELS = idx([6], bytes([0, 1, 2, 0, 1, 2]))


def a_gigabyte():
    resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))


@pytest.fixture(scope="module")
def little_memory(quern):
    """How to run where a header alone cannot ask for more than a gigabyte. A sanitizer's shadow
    needs the address space, so it is asked to hold its own allocator to the limit."""
    with open(quern, "rb") as program:
        code = program.read()
    if b"__asan_init" in code:
        options = os.environ.get("ASAN_OPTIONS", "")
        limit = "max_allocation_size_mb=1024:allocator_may_return_null=1"
        return {"env": dict(os.environ, ASAN_OPTIONS=f"{options}:{limit}".lstrip(":"))}
    return {} if b"__tsan_init" in code else {"preexec_fn": a_gigabyte}


@pytest.fixture
def refuse(quern, tmp_path):
    """refuse(["train", ...], 1, "words", ...): runs with -o and looks at all that is promised."""
    folder = tmp_path / "out"
    folder.mkdir()
    out = folder / "output"

    def run(args, status, *words, output=out, **kwargs):
        for there in (False, True):
            if there and output == out:
                out.write_bytes(PRECIOUS)
            before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
            done = subprocess.run([quern, *map(str, args), "-o", str(output)], text=True,
                                  timeout=60, capture_output=True, cwd=tmp_path, **kwargs)
            assert done.returncode == status, done.stderr
            assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before
            if there and output == out:
                assert out.read_bytes() == PRECIOUS
            message = re.search(r"^quern [a-z ]+: .*", done.stderr, re.M | re.S)[0]
            lines = message.rstrip("\n").split("\n")
            assert len(lines) >= 2 and all(x.startswith("  ") for x in lines[1:]), message
            assert not lines[-1].startswith("  at "), f"no remedy in: {message}"
            for word in words:
                assert word in message, message
            assert done.stdout == ""
        return message

    return run


def changed(line, column, cell, text=CSV):
    """The table with one cell replaced; lines from 1, as in messages, columns from 0."""
    rows = [r.split(",") for r in text.splitlines()]
    rows[line - 1][column] = cell
    return "\n".join(",".join(r) for r in rows) + "\n"


# ---------------------------------------------------------------- tables

TABLES = {
    "empty": ("", ["empty"]),
    "header only": ("label,a,b\n", ["no items"]),
    "ragged, short": (CSV.replace("\n1,1.5,", "\n1,", 1), ["line 3"]),
    "ragged, long": (CSV.replace("\n2,2.5,", "\n2,2.5,9,", 1), ["line 4"]),
    "text for a number": (changed(6, 2, "many"), ["line 6", "column 3", "many"]),
    "infinity": (changed(9, 4, "-inf"), ["line 9", "column 5"]),
    "too large": (changed(9, 4, "1e39"), ["line 9", "column 5"]),
    "no label": (changed(5, 0, "NA"), ["line 5", "column 1"]),
    "label beyond 32 bits": (changed(5, 0, "9999999999"), ["line 5", "column 1"]),
    "label is text": (changed(5, 0, "cat"), ["line 5", "column 1", "cat"]),
    "quote left open": (changed(7, 1, '"7.5'), []),
    "control characters": (changed(6, 2, "\x1b[31mred\x07"), ["line 6"]),
}


# What can be read, but not trained on.
UNFIT = {
    "nothing for a number": (changed(6, 2, ""), ["missing", '"b"', "item 4", "--drop"]),
    "NaN": (changed(9, 1, "nan"), ["missing", '"a"', "item 7"]),
    "label that counts": ("id,x\n" + "".join(f"{i},{i % 7}\n" for i in range(200)),
                          ['"id"', "200 different", "--task"]),
    "label that names": ("id,x\n" + "".join(f"n{i},{i % 7}\n" for i in range(200)),
                         ['"id"', "each of the 200 items", "--label"]),
}


@pytest.mark.parametrize("case", UNFIT)
def test_unfit_table(refuse, tmp_path, case):
    text, words = UNFIT[case]
    (tmp_path / "unfit.csv").write_text(text)
    refuse(["train", "--data", "unfit.csv", "--epochs", "1"], 1, *words)


@pytest.mark.parametrize("case", TABLES)
def test_table(refuse, tmp_path, case):
    text, words = TABLES[case]
    (tmp_path / "bad.csv").write_text(text)
    message = refuse(["train", "--data", "bad.csv", *NET], 1, "bad.csv", *words)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", message)  # nothing that drives a terminal


def test_nul_bytes_and_noise(refuse, tmp_path):
    (tmp_path / "bad.csv").write_bytes(CSV.encode().replace(b"4.5", b"4\0005", 1))
    refuse(["train", "--data", "bad.csv", *NET], 1, "bad.csv")
    (tmp_path / "bad.csv").write_bytes(bytes((i * 7919 >> 3) & 255 for i in range(5000)))
    refuse(["train", "--data", "bad.csv", *NET], 1, "bad.csv")


def test_missing_file_and_folder(refuse, tmp_path):
    refuse(["train", "--data", "gone.csv", *NET], 1, "gone.csv", "no such file")
    (tmp_path / "folder").mkdir()
    refuse(["train", "--data", "folder", *NET], 1, "folder")
    (tmp_path / "good.csv").write_text(CSV)
    refuse(["train", "--data", "good.csv", "--test", "gone.csv", *NET], 1, "gone.csv")


def test_label_column(refuse, tmp_path):
    (tmp_path / "good.csv").write_text(CSV)
    refuse(["train", "--data", "good.csv", "--label", "lable", *NET], 1, "lable", "good.csv")
    refuse(["train", "--data", "good.csv", "--label", "9", *NET], 1, "9", "good.csv")


def test_unequal_sets(refuse, tmp_path):
    (tmp_path / "good.csv").write_text(CSV)
    narrow = "".join(line.rsplit(",", 1)[0] + "\n" for line in CSV.splitlines())
    (tmp_path / "narrow.csv").write_text(narrow)
    for option in ("--test", "--valid"):
        refuse(["train", "--data", "good.csv", option, "narrow.csv", *NET], 1, '"d"')
    (tmp_path / "more.csv").write_text(changed(5, 0, "3"))
    refuse(["train", "--data", "good.csv", "--test", "more.csv", *NET], 1, "3")


def test_valid_fraction(refuse, tmp_path):
    (tmp_path / "good.csv").write_text(CSV)
    for fraction in ("0", "1", "1.5", "-0.1"):
        refuse(["train", "--data", "good.csv", "--valid", fraction, *NET], 2, fraction)
    refuse(["train", "--data", "good.csv", "--valid", "0.001", *NET], 2, "0.001")


# ---------------------------------------------------------------- IDX and gzip

IDX = {
    "wrong magic": (b"\1\2\3\4" + IMAGES[4:], LABELS, "images"),
    "another type": (idx([6, 2, 2], bytes(96), kind=13), LABELS, "images"),
    "no type": (idx([6, 2, 2], bytes(24), kind=7), LABELS, "images"),
    "one byte short": (IMAGES[:-1], LABELS, "images"),
    "one byte long": (IMAGES + b"x", LABELS, "images"),
    "header cut": (IMAGES[:9], LABELS, "images"),
    "claims 2^40 bytes": (idx([1 << 20, 1 << 10, 1 << 10], bytes(24)), LABELS, "images"),
    "claims 2^96 bytes": (idx([0xffffffff] * 3, bytes(24)), LABELS, "images"),
    "no items": (idx([0, 2, 2], b""), idx([0], b""), "images"),
    "no features": (idx([6, 0, 2], b""), LABELS, "images"),
    "fewer labels": (IMAGES, idx([5], bytes(5)), "labels"),
    "labels of two dimensions": (IMAGES, idx([6, 1], bytes(6)), "labels"),
    "labels cut": (IMAGES, LABELS[:-1], "labels"),
    "labels are a table": (IMAGES, b"0\n1\n2\n0\n1\n2\n", "labels"),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("case", IDX)
def test_idx(refuse, tmp_path, case, packed, little_memory):
    images, labels, guilty = IDX[case]
    pack = gzip.compress if packed else bytes
    (tmp_path / "images").write_bytes(pack(images))
    (tmp_path / "labels").write_bytes(pack(labels))
    refuse(["train", "--data", "images", "--labels", "labels", *NET], 1, guilty,
           **little_memory)


def test_idx_without_labels(refuse, tmp_path):
    (tmp_path / "images").write_bytes(IMAGES)
    refuse(["train", "--data", "images", *NET], 1, "images", "--labels")
    refuse(["train", "--data", "images", "--labels", "gone", *NET], 1, "gone")


GZIP = {
    "truncated": lambda z: z[:len(z) // 2],
    "without its last byte": lambda z: z[:-1],
    "checksum": lambda z: z[:-8] + bytes([z[-8] ^ 1]) + z[-7:],
    "length": lambda z: z[:-1] + bytes([z[-1] ^ 1]),
    "body": lambda z: z[:20] + bytes(b ^ 0x55 for b in z[20:40]) + z[40:],
    "header only": lambda z: z[:10],
    "followed by noise": lambda z: z + b"noise",
}


@pytest.mark.parametrize("case", GZIP)
def test_gzip(refuse, tmp_path, case):
    (tmp_path / "bad.csv.gz").write_bytes(GZIP[case](gzip.compress(CSV.encode())))
    refuse(["train", "--data", "bad.csv.gz", *NET], 1, "bad.csv.gz")


def test_gzip_bomb(refuse, tmp_path, little_memory):
    """A small file that unpacks to more than the memory, one number that never ends."""
    block = gzip.compress(b"1" * (1 << 24), 9)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"label,a\n1,") + block * 80)
    refuse(["train", "--data", "bomb.gz", *NET], 1, "bomb.gz", **little_memory)


# ---------------------------------------------------------------- recipe

@pytest.mark.parametrize("model, words", [
    ("dence 3 softmax", ["dence", "dense"]),
    ("dense 3 sofmax", ["sofmax", "softmax"]),
    ("dense 5 tahn; dense 3 softmax", ["tahn", "tanh"]),
    ("dense 0 softmax", ["0"]),
    ("dense 5 tanh; dense 0 softmax", ["0"]),
    ("dense -3 softmax", ["-3"]),
    ("dense 99999999999999999999 softmax", ["99999999999999999999"]),
    ("dense 4000000000 tanh; dense 3 softmax", []),
    ("dense 3 softmax; dense 3 softmax", ["softmax"]),
    ("dense 5 tanh dropout 1; dense 3 softmax", ["1"]),
    ("dense 5 tanh dropout nan; dense 3 softmax", ["nan"]),
    ("dense 5 tanh; dense 3 softmax dropout 0.5", ["dropout"]),
    ("dense 5 tanh; ; dense 3 softmax", []),
    ("dense", []),
    (";", []),
    ("   ", []),
    ("dense 3 softmax please", ["please"]),
    ("dense 3 tanh", ["softmax"]),  # the loss is cross-entropy
    ("dense 2 softmax", ["2"]),     # the data has labels up to 2
])
def test_model_text(refuse, tmp_path, model, words):
    (tmp_path / "good.csv").write_text(CSV)
    refuse(["train", "--data", "good.csv", "--epochs", "1", "--model", model], 2, *words)


@pytest.mark.parametrize("option, value", [
    ("batch", "0"), ("batch", "-1"), ("batch", "1.5"), ("batch", "99999999999"), ("grain", "0"),
    ("epochs", "0"), ("lr", "nan"), ("lr", "inf"), ("lr", "0x1p-3"), ("lr", "1e99"), ("lr", "-0.1"),
    ("lr", "0"), ("lr", "fast"), ("lr", "0.1x"), ("momentum", "1"), ("momentum", "-0.5"),
    ("weight-decay", "-1"), ("seed", "18446744073709551616"), ("unit", "61"), ("threads", "4097"),
    ("isa", "mmx"), ("gpu-isa", "mma"), ("loss", "mes"), ("optimizer", "adma"), ("schedule", "cosin"),
    ("init", "xavier"), ("scale", "units"), ("arith", "i15"), ("batc", "3"),
])
def test_option(refuse, tmp_path, option, value):
    (tmp_path / "good.csv").write_text(CSV)
    refuse(["train", "--data", "good.csv", *NET[:2], f"--{option}", value], 2, option)


@pytest.mark.parametrize("option, value", [("beta1", "1"), ("beta2", "1"), ("epsilon", "-1")])
def test_option_of_adam(refuse, tmp_path, option, value):
    (tmp_path / "good.csv").write_text(CSV)
    refuse(["train", "--data", "good.csv", *NET, "--optimizer", "adam", f"--{option}", value], 2,
           option)


@pytest.mark.parametrize("scale", ["unit", "fraction"])
def test_bytes_scale_of_floats(refuse, tmp_path, scale):
    (tmp_path / "good.csv").write_text(CSV)
    refuse(["train", "--data", "good.csv", *NET, "--scale", scale], 2, f'"{scale}"', "standard")


def test_isa_that_the_machine_lacks(refuse, quern, tmp_path):
    there = subprocess.run([quern, "devices"], capture_output=True, text=True).stdout
    lacking = [i for i in ("avx2", "avx512", "neon") if i not in there]
    assert lacking  # no machine has all three
    (tmp_path / "good.csv").write_text(CSV)
    refuse(["train", "--data", "good.csv", *NET, "--isa", lacking[0]], 1, lacking[0])


# ---------------------------------------------------------------- numbers out of range

ARITHMETICS = ["f32", "i7", "i14", "i21"]
# Grains of one item whose partial gradients of a weight are 2^61 and -2^61 or nearly so, one of
# them too large; added they are small. Weights of so many inputs are small from the start.
CANCELLING = "".join(f"1,{x}{',0' * 30}\n" for x in (2, -2))


@pytest.mark.parametrize("arith", ARITHMETICS)
def test_loss_becomes_nan(refuse, tmp_path, arith):
    (tmp_path / "good.csv").write_text(CSV)
    refuse(["train", "--data", "good.csv", "--model", "dense 3 none", "--loss", "mse", "--scale",
            "none", "--lr", "1e30", "--batch", "10", "--arith", arith], 1, "step", "--scale")


@pytest.mark.parametrize("rate, says", [("1e10", "outputs of layer 2 are too large"),
                                        ("1e30", "outputs of layer 1 are not finite")])
@pytest.mark.parametrize("arith", ["f32", "i14"])
def test_lost_loss_names_its_layer(refuse, tmp_path, arith, rate, says):
    """The first layer that went wrong; outputs that are finite are not said to be anything else."""
    (tmp_path / "good.csv").write_text(CSV)
    refuse(["train", "--data", "good.csv", "--model", "dense 4; dense 4; dense 3", "--loss", "mse",
            "--lr", rate, "--batch", "10", "--devices", "cpu", "--arith", arith], 1, "step 2", says)


@pytest.mark.parametrize("size, words", [("1e30", ["the loss became"]),
                                         ("1e5", ["a gradient of layer 0"])])
@pytest.mark.parametrize("arith", ARITHMETICS)
def test_a_column_that_is_too_large(refuse, tmp_path, arith, size, words):
    rows = [f"{i % 3},{i % 4},{(i + 1) * float(size)},{i % 5}" for i in range(30)]
    (tmp_path / "large.csv").write_text("\n".join(rows) + "\n")
    refuse(["train", "--data", "large.csv", "--model", "dense 3 softmax", "--scale", "none",
            "--arith", arith], 1, "step 1", "--scale standard", *words)


@pytest.mark.parametrize("arith", ARITHMETICS)
def test_partials_out_of_range_that_cancel(refuse, run_quern, tmp_path, arith):
    (tmp_path / "cancelling.csv").write_text(CANCELLING)
    job = ["train", "--data", "cancelling.csv", "--model", "dense 2 none", "--loss", "mse",
           "--scale", "none", "--batch", "2", "--grain", "1", "--epochs", "1", "--seed", "5",
           "--arith", arith, "--unit"]
    refuse([*job, "59"], 1, "gradient of layer 0", "step 1")
    run_quern(*job, "58", "--quiet", "-o", tmp_path / "m", cwd=tmp_path)


# ---------------------------------------------------------------- outputs

@pytest.mark.parametrize("command", ["train", "predict", "synth"])
def test_unwritable_output(refuse, quern, model, tmp_path, command):
    (tmp_path / "good.csv").write_text(CSV)
    args = {"train": ["train", "--data", "good.csv", *NET],
            "predict": ["predict", model, "--data", "good.csv"],
            "synth": ["data", "synth", "digits", "--items", "5", "--labels", "labels.idx"]}[command]
    refuse(args, 1, "no/such/folder", output=tmp_path / "no/such/folder/m")
    refuse(args, 1, "folder", output=tmp_path)
    refuse(args, 1, "not a regular file", output="/dev/null")
    if command == "train":
        refuse(args, 1, "standard output", output="-")
    assert not os.path.isfile("/dev/null") and not (tmp_path / "labels.idx").exists()


def test_output_without_permission(refuse, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    (tmp_path / "good.csv").write_text(CSV)
    (tmp_path / "locked").mkdir(mode=0o500)
    refuse(["train", "--data", "good.csv", *NET], 1, "locked", output=tmp_path / "locked" / "m")


def test_output_over_an_input(refuse, model, tmp_path):
    (tmp_path / "good.csv").write_text(CSV)
    refuse(["train", "--data", "good.csv", *NET], 2, "good.csv", output=tmp_path / "good.csv")
    refuse(["predict", model, "--data", "good.csv"], 2, output=model)
    assert (tmp_path / "good.csv").read_text() == CSV


def test_disk_full_at_the_end(refuse, tmp_path):
    """The model file (5 KB of it) does not fit; what was there before stays."""
    (tmp_path / "good.csv").write_text(CSV)
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
    refuse(["train", "--data", "good.csv", "--epochs", "1", "--model",
            "dense 200 tanh; dense 3 softmax", "--quiet"], 1, "output", preexec_fn=limit)


# ---------------------------------------------------------------- models

@pytest.fixture(scope="module")
def model(run_quern, tmp_path_factory):
    d = tmp_path_factory.mktemp("model")
    (d / "good.csv").write_text(CSV)
    run_quern("train", "--data", d / "good.csv", *NET, "--quiet", "-o", d / "model")
    return d / "model"


def header_of(data):
    return data[8:8 + struct.unpack("<Q", data[:8])[0]]


def with_header(data, header):
    """The file with another header, padded as safetensors is."""
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + data[8 + len(header_of(data)):]


def replaced(before, after):
    def change(data):
        header = header_of(data)
        assert before in header
        return with_header(data, header.replace(before, after, 1).rstrip(b" "))
    return change


MODELS = {
    "empty": lambda d: b"",
    "cut in the length": lambda d: d[:5],
    "cut in the header": lambda d: d[:100],
    "cut in the tensors": lambda d: d[:-3],
    "longer than it says": lambda d: d + bytes(8),
    "not a model at all": lambda d: CSV.encode(),
    "header of 2^63 bytes": lambda d: struct.pack("<Q", 1 << 63) + d[8:],
    "header of 2^40 bytes": lambda d: struct.pack("<Q", 1 << 40) + d[8:],
    "header beyond the file": lambda d: struct.pack("<Q", len(d)) + d[8:],
    "header is not JSON": lambda d: d[:8] + b"x" + d[9:],
    "deep JSON": lambda d: with_header(d, b"[" * 100000),
    "future format": replaced(b"quern-model-1", b"quern-model-2"),
    "future contract": replaced(rb'\"contract\":2', rb'\"contract\":6'),
    "another arithmetic": replaced(rb"\"arith\":\"f32\"", rb"\"arith\":\"f64\""),
    "hostile network": replaced(rb"dense 3 softmax", rb"dense 4000000000 softmax"),
    "wider network": replaced(rb"dense 3 softmax", rb"dense 4 softmax"),
    "no recipe": replaced(b'"recipe"', b'"recipes"'),
    "tensor missing": replaced(b'"layer0.bias"', b'"layer7.bias"'),
    "offsets overlap": replaced(b'"data_offsets":[48,60]', b'"data_offsets":[40,52]'),
    "offsets beyond": replaced(b'"data_offsets":[48,60]', b'"data_offsets":[48,6000000000000]'),
    "another type": replaced(b'"F32"', b'"F16"'),
    "shape of 2^62": replaced(b'"shape":[3]', b'"shape":[4611686018427387904]'),
    "a weight is NaN": lambda d: d[:-4 * 8 - 60] + b"\0\0\xc0\x7f" + d[-4 * 8 - 56:],
}


@pytest.mark.parametrize("case", MODELS)
def test_model_file(refuse, model, tmp_path, case, little_memory):
    (tmp_path / "good.csv").write_text(CSV)
    (tmp_path / "bad.model").write_bytes(MODELS[case](model.read_bytes()))
    for command in ("predict", "replay"):
        refuse([command, "bad.model", "--data", "good.csv"], 1, "bad.model",
               **little_memory)


def test_model_missing(refuse, tmp_path):
    (tmp_path / "good.csv").write_text(CSV)
    refuse(["predict", "gone", "--data", "good.csv"], 1, "gone")
    refuse(["predict", ".", "--data", "good.csv"], 2, "looks like data, not like a model")


def test_predict_of_other_columns(refuse, model, tmp_path):
    (tmp_path / "wide.csv").write_text("".join(f"{x},7\n" for x in CSV.splitlines()[1:]))
    refuse(["predict", model, "--data", "wide.csv"], 1, "wide.csv", "5", "4")


def test_replay_whose_data_changed(refuse, run_quern, model, tmp_path):
    (tmp_path / "other.csv").write_text(changed(9, 1, "0.25"))
    told = run_quern("data", "info", tmp_path / "other.csv").stdout
    digest = re.search(r"digest +(\w{64})", told)
    refuse(["replay", model, "--data", "other.csv"], 1, digest[1])


# ---------------------------------------------------------------- checkpoints

@pytest.fixture
def state(run_quern, tmp_path):
    """A folder of checkpoints of a finished run, and the command that made them."""
    (tmp_path / "good.csv").write_text(CSV)
    job = ["train", "--data", "good.csv", *NET[:2], "--epochs", "4", "--batch", "4",
           "--checkpoint", "state", "--checkpoint-every", "3"]
    run_quern(*job, "--quiet", "-o", tmp_path / "reference", cwd=tmp_path)
    files = sorted((tmp_path / "state").glob("checkpoint-*"))
    assert files
    return job, files


@pytest.mark.parametrize("case", ["empty", "cut in the header", "cut in the tensors",
                                  "header of 2^63 bytes", "not a model at all", "deep JSON"])
def test_checkpoints_all_damaged(refuse, state, case, little_memory):
    job, files = state
    for file in files:
        file.write_bytes(MODELS[case](file.read_bytes()))
    refuse([*job, "--resume"], 1, "checkpoint", **little_memory)


def test_checkpoint_of_the_future(refuse, state):
    job, files = state
    for file in files:
        data = file.read_bytes()
        name = re.search(rb"quern-checkpoint-(\d+)", header_of(data))
        file.write_bytes(replaced(name[0], name[0][:-1] + b"9")(data))
    refuse([*job, "--resume"], 1, "checkpoint")


def test_last_checkpoint_damaged(run_quern, state, tmp_path):
    """The one before it is taken, and the bytes of the model are the same."""
    job, files = state
    files[-1].write_bytes(files[-1].read_bytes()[:-100])
    done = run_quern(*job, "--resume", "-o", tmp_path / "m", cwd=tmp_path)
    assert files[-1].name in done.stderr
    assert (tmp_path / "m").read_bytes() == (tmp_path / "reference").read_bytes()


def test_checkpoint_of_another_recipe(refuse, state):
    job, files = state
    before = [f.read_bytes() for f in files]
    refuse([*job, "--resume", "--seed", "2"], 1, "seed")
    assert [f.read_bytes() for f in files] == before


def test_checkpoint_folder_is_a_file(refuse, tmp_path):
    (tmp_path / "good.csv").write_text(CSV)
    refuse(["train", "--data", "good.csv", *NET, "--checkpoint", "good.csv"], 1, "good.csv")
    refuse(["train", "--data", "good.csv", *NET, "--checkpoint", "no/such/parent"], 1, "no/such")
    refuse(["train", "--data", "good.csv", *NET, "--run-dir", "good.csv"], 1, "good.csv")


def test_fields_are_told_as_options(run_quern, tmp_path):
    """The library names members of structs, `train.learning_rate`; the command names options, in its
    messages and in the events of --json alike."""
    done = run_quern("train", "--lr", "-1", "--json", "-o", tmp_path / "m", status=2)
    assert "at --lr\n" in done.stderr and '"where":"--lr"' in done.stdout
    assert "`" not in done.stderr + done.stdout


def test_labels_that_the_model_does_not_have(run_quern, tmp_path):
    """Another column was taken for the labels: predictions from shifted columns would be wrong."""
    rows = "".join(f"{20 + i},{i % 2},{i % 7}\n" for i in range(40))
    (tmp_path / "t.csv").write_text("age,sick,pain\n" + rows)
    model = tmp_path / "m"
    run_quern("train", "--data", tmp_path / "t.csv", "--label", "sick", "--epochs", 1, "--model",
              "dense 2 softmax", "--quiet", "-o", model)
    done = run_quern("predict", model, "--data", tmp_path / "t.csv", "--label", "age", status=1)
    assert "labels up to 59, but the model has 2 outputs" in done.stderr
    assert "--label" in done.stderr and "--unlabelled" in done.stderr
    run_quern("predict", model, "--data", tmp_path / "t.csv", "--label", "sick")
    (tmp_path / "n.csv").write_text(rows)  # without names nothing tells which column it is
    run_quern("predict", model, "--data", tmp_path / "n.csv", status=1)


def test_data_in_the_place_of_a_model(refuse, tmp_path):
    (tmp_path / "good.csv").write_text(CSV)
    refuse(["predict", "good.csv", "--data", "good.csv"], 1, "not a model", "CSV", "--data")
    refuse(["predict", "good.csv"], 2, "looks like data", "quern predict MODEL --data good.csv")
    refuse(["predict", "x.npz"], 2, "looks like data", "quern predict MODEL --data x.npz")
