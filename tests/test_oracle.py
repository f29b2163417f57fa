"""The proof of docs/exactness.md: `quern train` against a second program written from that text.

Small jobs are trained by the program named by the environment variable QUERN and by
tests/oracle/oracle.py, and the model files must be the same byte for byte. Before that, the
oracle itself is checked against fractions, published test vectors and numerical derivatives.
"""

import gzip
import json
import math
import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

ORACLE = Path(__file__).resolve().parent / "oracle"
TEXT = ORACLE.parent.parent / "docs" / "exactness.md"
sys.path.insert(0, str(ORACLE))

import binary32  # noqa: E402
import data  # noqa: E402
import elementary  # noqa: E402
import network  # noqa: E402
import optimise  # noqa: E402
import order  # noqa: E402
import philox  # noqa: E402
import scale  # noqa: E402
from oracle_runs import run_oracle  # noqa: E402

F = np.float32


# ---- The oracle's own arithmetic ----


def random_floats(generator, count):
    """Random bit patterns: every exponent is as likely as any other, the special ones included."""
    return generator.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)


def fma_by_fractions(a, b, c):
    """The exact fma of three finite floats, by rational numbers."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return None  # the sign of a zero is tested on its own
    return binary32.nearest(exact)


def check_fma(a, b, c):
    got = binary32.fma(a, b, c)
    for i in range(len(a)):
        want = fma_by_fractions(a[i], b[i], c[i])
        if want is None:
            assert got[i] == 0
        else:
            assert got[i].view(np.uint32) == want.view(np.uint32), (a[i], b[i], c[i])


def finite(values):
    return np.where(np.isfinite(values), values, F(1))


def test_fma_on_random_bit_patterns():
    generator = np.random.default_rng(1)
    check_fma(*(finite(random_floats(generator, 4000)) for _ in range(3)))


def test_fma_where_the_terms_are_of_like_size():
    """Cancellation, and sums that lie near half way points."""
    generator = np.random.default_rng(2)
    a, b = (generator.standard_normal(4000).astype(np.float32) for _ in range(2))
    c = -(a * b) * F(2) ** generator.integers(-26, 27, 4000).astype(np.float32)
    check_fma(a, b, c)


def test_fma_of_few_bits_meets_ties():
    """Operands of a few bits at distant exponents: the sum is often half way, or just beside."""
    generator = np.random.default_rng(3)
    a, b, c = (
        (generator.integers(-33, 34, 4000) * 2.0 ** generator.integers(-30, 31, 4000)).astype(
            np.float32
        )
        for _ in range(3)
    )
    check_fma(a, b, c)
    tiny = F(2.0**-120)
    check_fma(a * tiny, b * F(2.0**-14), c * tiny * F(2.0**-13))  # subnormal results


def test_fma_a_hair_beside_ties():
    """Exact sums so near to a half way point that float64 alone cannot tell them from it."""
    generator = np.random.default_rng(7)
    count = 4000
    signs = generator.choice([-1, 1], (3, count))
    scales = 2.0 ** generator.integers(-60, 50, (2, count))
    # (1 + i/2^23) (1 - i/2^23) = 1 - i^2/2^46 beside c = 2^24 + 2j, whose half way point is c + 1.
    i = generator.integers(0, 40, count) / 2.0**23
    c = (2.0**24 + 2 * generator.integers(0, 2**23, count)) * scales[0] * scales[1]
    hair = [(1 + i) * scales[0] * signs[0], (1 - i) * scales[1] * signs[1], c * signs[2]]
    check_fma(*(part.astype(np.float32) for part in hair))
    # The same shifted down, so that the half way points are those of subnormal numbers.
    a, b, c = hair[0] / scales[0], hair[1] / scales[1], hair[2] / scales[0] / scales[1]
    low = generator.integers(0, 2**20, count) * 2.0**-149 * signs[2]
    check_fma(*(part.astype(np.float32) for part in (a * 2.0**-100, b * 2.0**-50, low)))
    # A product of 25 bits, half way itself, beside a tiny addend.
    a = (2 * generator.integers(2**11, 2**12, count) + 1) * signs[0]
    b = (2 * generator.integers(2**10, 2**11, count) + 1) * signs[1]
    c = signs[2] * 2.0 ** generator.integers(-149, -20, count)
    check_fma(*(part.astype(np.float32) for part in (a, b, c)))


def test_fma_at_the_extremes():
    top = np.finfo(np.float32).max
    least = F(2.0**-149)
    special = np.array(
        [
            0.0,
            -0.0,
            1,
            -1,
            top,
            -top,
            least,
            -least,
            2.0**-126,
            2.0**-127,
            0.5,
            2,
            2.0**103,
            1 + 2.0**-23,
        ],
        dtype=np.float32,
    )
    a, b, c = (grid.ravel() for grid in np.meshgrid(special, special, special))
    check_fma(a, b, c)


def test_fma_has_zeros_infinities_and_nans_of_ieee():
    inf, nan = F(np.inf), F(np.nan)
    assert np.signbit(binary32.fma(F(-0.0), F(1), F(-0.0)))
    assert not np.signbit(binary32.fma(F(-0.0), F(1), F(0.0)))
    assert not np.signbit(binary32.fma(F(1), F(1), F(-1)))
    assert np.signbit(binary32.fma(F(-(2.0**-149)), F(2.0**-149), F(0)))  # rounded to -0
    assert binary32.fma(inf, F(1), F(-1)) == inf
    assert binary32.fma(F(1e38), F(-10), F(1)) == -inf
    assert binary32.fma(F(1e38), F(10), -inf) == -inf
    for a, b, c in [(inf, F(0), F(1)), (inf, F(1), -inf), (nan, F(1), F(1)), (F(1), F(1), nan)]:
        assert np.isnan(binary32.fma(a, b, c))


def test_nearest_agrees_with_numpy_and_rounds_once():
    generator = np.random.default_rng(4)
    doubles = generator.standard_normal(2000) * 2.0 ** generator.integers(-160, 130, 2000)
    for value in doubles:
        assert binary32.nearest(Fraction(value)) == F(value)
    # Slightly above the middle of 1 and the next float: by way of a double it would become 1.
    text = "1.00000005960464477539062500000000000001"
    assert binary32.from_text(text) == F(1 + 2.0**-23)
    assert F(float(text)) == F(1)


def test_nearest_root_is_rounded_once():
    generator = np.random.default_rng(5)
    for _ in range(2000):
        numerator, denominator = (int(v) for v in generator.integers(1, 2**60, 2))
        real = Fraction(numerator, denominator) * Fraction(4) ** int(generator.integers(-150, 60))
        root = binary32.nearest_root(real)
        below = (Fraction(float(np.nextafter(root, F(0)))) + Fraction(float(root))) / 2
        above = (Fraction(float(np.nextafter(root, F(np.inf)))) + Fraction(float(root))) / 2
        assert below**2 <= real <= above**2
    middle = Fraction(2**24 + 1, 2**24)  # an exact tie between 1 and the next float
    assert binary32.nearest_root(middle**2) == F(1)
    assert binary32.nearest_root(middle**2 + Fraction(1, 2**200)) == F(1 + 2.0**-23)


def test_text_of_floats():
    for text in ["0", "1", "0.1", "1e-08", "0.999", "16777216", "3.4028235e+38", "1e-45", "-2.5"]:
        assert binary32.to_text(binary32.from_text(text)) == text


def test_philox_gives_the_published_words():
    """The known answers that come with the Random123 distribution."""
    ones = 0xFFFFFFFF
    cases = [
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((ones,) * 4, (ones, ones), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ]
    for counter, key, words in cases:
        got = philox.philox4x32(counter, key)
        assert " ".join(f"{int(w):08x}" for w in got) == words


def test_permutation_visits_every_item_once():
    for n in [1, 2, 3, 4, 5, 17, 64, 65, 1000]:
        seen = order.permutation(99, n, philox.ORDER, 3)
        assert sorted(seen.tolist()) == list(range(n))
    assert (order.permutation(1, 1000, 2, 0) != order.permutation(1, 1000, 2, 1)).any()


def test_constants_of_the_text_are_consistent_and_those_of_the_oracle():
    """13.2: each constant stands in the text with its bits; the oracle has no other."""
    text = TEXT.read_text()
    constants = re.findall(r"(-?0x1\.?[0-9a-f]*p[+-]\d+) \[([0-9a-f]{8})\]", text)
    assert len(constants) > 60
    for written, pattern in constants:
        assert f"{int(elementary.bits(elementary.hexadecimal(written))):08x}" == pattern, written
    used = re.findall(r'X\("(.*?)"\)', (ORACLE / "elementary.py").read_text())
    assert set(used) <= {written for written, _ in constants}


def test_elementary_functions_give_the_results_in_the_text():
    """The tables of 13.14 and 17.2."""
    text = TEXT.read_text()
    later = text.index("17.2 **")
    rows = list(re.finditer(r"^\| `([0-9a-f]{8})` \|(.*)\|$", text, re.MULTILINE))
    assert len(rows) > 40
    for row in rows:
        argument, results = row.groups()
        wanted = [result.strip(" `") for result in results.split("|")]
        names = {1: ["cospi"], 2: ["gelu_tanh", "gelu_tanh_slope"], 4: ["exp", "log", "tanh", "sigmoid"]}[len(wanted)]
        names = ["gelu", "gelu_slope", "silu", "silu_slope"] if row.start() > later and len(wanted) == 4 else names
        for name, want in zip(names, wanted, strict=True):
            got = getattr(elementary, name)(elementary.from_bits(int(argument, 16)))
            assert ("NaN" if np.isnan(got) else f"{int(elementary.bits(got)):08x}") == want, (
                name,
                argument,
            )


def test_elementary_functions_are_near_mathematics():
    """13.12: no result is further off than 1.2 units of its last place."""
    generator = np.random.default_rng(8)
    wide = random_floats(generator, 40000)
    some = np.concatenate([wide[np.isfinite(wide)], generator.uniform(-105, 89, 40000).astype(F)])
    circle = generator.random(100000, dtype=np.float32)

    def far(got, want):
        place = np.maximum(np.spacing(np.abs(want.astype(F))).astype(np.float64), 2.0**-149)
        with np.errstate(all="ignore"):
            return np.nanmax(np.where(np.isfinite(got), np.abs(got - want) / place, 0))

    exact = some.astype(np.float64)
    with np.errstate(all="ignore"):
        assert far(elementary.exp(some), np.exp(exact)) < 1
        assert far(elementary.log(abs(some)), np.log(abs(exact))) < 1
        assert far(elementary.tanh(some), np.tanh(exact)) < 1.2
        assert far(elementary.sigmoid(some), 1 / (1 + np.exp(-exact))) < 1.2
    angle = circle.astype(np.float64)
    near = np.where(abs(angle - 0.5) < 0.3, np.sin(np.pi * (0.5 - angle)), np.cos(np.pi * angle))
    assert far(elementary.cospi(circle), near) < 1


def test_elementary_functions_at_special_arguments():
    """13.4."""
    special = np.array([np.inf, -np.inf, 0, -0.0, 2.0**-149, -(2.0**-149)], dtype=np.float32)
    assert elementary.exp(special).tolist() == [np.inf, 0, 1, 1, 1, 1]
    assert elementary.sigmoid(special).tolist() == [1, 0, 0.5, 0.5, 0.5, 0.5]
    assert (elementary.bits(elementary.tanh(special))[2:] == elementary.bits(special)[2:]).all()
    assert elementary.tanh(special)[:2].tolist() == [1, -1]
    assert elementary.log(special)[[0, 2, 3]].tolist() == [np.inf, -np.inf, -np.inf]
    assert np.isnan(elementary.log(special)[[1, 5]]).all()
    edges = elementary.from_bits([0x42B17218, 0x42B17217, 0xC2CFF1B5, 0xC2CFF1B4])
    assert np.isfinite(elementary.exp(edges)).tolist() == [False, True, True, True]
    assert (elementary.exp(edges)[2:] > 0).tolist() == [False, True]


def test_standard_scaling_of_constant_and_tiny_features():
    table = np.array([[3, 0.25, 2.0**-149], [3, 0.75, 0]], dtype=np.float32)
    mean, deviation, inverse = scale.statistics(table)
    assert deviation[0] == 0 and inverse[0] == 0 and mean[0] == 3
    assert mean[1] == 0.5 and deviation[1] == 0.25 and inverse[1] == 4
    assert deviation[2] == 0 and inverse[2] == 0


def network_in_doubles(layers, x, labels, loss):
    """The mean loss as mathematics has it, in float64; for numerical derivatives."""
    a = x.astype(np.float64)
    for weight, bias, activation in layers:
        z = a @ weight.T + bias
        a = {
            **{"none": z, "relu": np.maximum(z, 0), "tanh": np.tanh(z)},
            "sigmoid": 1 / (1 + np.exp(-z)),
            "softmax": np.exp(z) / np.exp(z).sum(axis=1, keepdims=True),
            "leaky_relu": np.where(z > 0, z, 0.01 * z),
            "gelu": z * np.vectorize(math.erfc)(-z / math.sqrt(2)) / 2,
            "gelu-tanh": z / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))),
            **{"silu": z / (1 + np.exp(-z)), "hardswish": z * np.clip(z / 6 + 0.5, 0, 1)},
            **{"relu6": np.clip(z, 0, 6), "hardsigmoid": np.clip(z / 6 + 0.5, 0, 1)},
        }[activation]
    rows = np.arange(len(x))
    if loss == "cross-entropy":
        return -np.log(a[rows, labels]).sum()
    if loss == "binary":
        return -np.log(np.where(labels == 1, a[:, 0], 1 - a[:, 0])).sum()
    target = np.zeros_like(a)
    if labels.dtype == np.float32:
        target[:, 0] = labels
    else:
        target[rows, labels] = 1
    d = np.abs(a - target)
    if loss == "huber":
        return np.where(d < DELTA, d * d / 2, DELTA * (d - DELTA / 2)).sum()
    return (d if loss == "mae" else d**2).sum()


DELTA = F(0.3)  # of huber


@pytest.mark.parametrize("hidden", [a for a in network.ACTIVATIONS if a not in ("none", "softmax")])
@pytest.mark.parametrize(
    "last,loss",
    [("softmax", "cross-entropy"), ("sigmoid", "binary"), ("none", "real mae"), ("tanh", "real huber"),
     ("none", "real mse"), ("softmax", "mae"), ("sigmoid", "huber"), ("softmax", "huber")]
    + [(a, "mse") for a in ("none", "relu", "tanh", "sigmoid", "softmax", "leaky_relu")],
)
def test_gradients_are_derivatives(hidden, last, loss):
    """The text's formulas are the gradient's; two programs would agree on a fault in them."""
    generator = np.random.default_rng(6)
    real, loss = loss.startswith("real "), loss.removeprefix("real ")
    outputs = 1 if real or loss == "binary" else 3
    layers = network.parse_model(f"dense 5 {hidden}; dense {outputs} {last}", 4)
    network.initialise(layers, 11, "glorot")
    x = generator.standard_normal((7, 4)).astype(np.float32)
    labels = generator.integers(0, 2 if loss == "binary" else 3, 7)
    labels = generator.standard_normal(7).astype(np.float32) if real else labels
    passes = network.forward(layers, x)
    deltas = network.deltas(loss, layers, passes, labels, 30, delta=DELTA)
    sums = network.sums(layers, passes, deltas, 3, F(2.0**60))

    doubles = [
        [l.weight.astype(np.float64), l.bias.astype(np.float64), l.activation] for l in layers
    ]
    for l in range(2):
        for t in range(2):
            for at in np.ndindex(doubles[l][t].shape):
                kept = doubles[l][t][at]
                ends = []
                for step in (1e-5, -1e-5):
                    doubles[l][t][at] = kept + step
                    ends.append(network_in_doubles(doubles, x, labels, loss))
                doubles[l][t][at] = kept
                assert sums[l][t][at] / 2.0**30 == pytest.approx(
                    (ends[0] - ends[1]) / 2e-5, abs=1e-4
                )


def test_adam_moves_by_the_rate_at_first():
    """The first step moves every parameter by about the rate, against its gradient's sign."""
    settings = optimise.Settings("adam", F(0), F(0.9), F(0.999), F(1e-8), F(0))
    sums = [np.array([5, -7000, 123456], dtype=np.int64) * 2**30]
    new = optimise.Optimiser(settings, [np.zeros(3, F)]).step(
        [np.zeros(3, F)], sums, ["weight"], 4, 40, F(0.01)
    )
    assert new[0] == pytest.approx([-0.01, 0.01, -0.01], rel=1e-3)


# ---- The two programs ----

ITEMS = 150

BASE = {"--batch": 32, "--grain": 8, "--epochs": 2, "--seed": 20, "--lr": "0.05"}

# Each job: the data it takes, and its options beside BASE. `data` names are those of make_data.
JOBS = {
    "softmax-sgd": (
        "idx",
        {"--scale": "unit", "--model": "dense 10 softmax", "--loss": "cross-entropy"},
    ),
    "relu-dropout-momentum": (
        "idx",
        {
            "--scale": "unit",
            "--model": "dense 20 relu dropout 0.25; dense 10 softmax",
            "--loss": "cross-entropy",
            "--momentum": "0.9",
            "--optimizer": "momentum",
            "--schedule": "step",
            "--lr-step": 1,
            "--lr-gamma": "0.3",
            "--warmup": 3,
            "--init": "he",
            "--epochs": 4,
            "--unit": 40,
        },
    ),
    "two-hidden-adam-valid": (
        "idx",
        {
            "--scale": "standard",
            "--model": "dense 12 tanh dropout 0.1; dense 9 sigmoid dropout 0.5; dense 10 softmax",
            "--loss": "cross-entropy",
            "--optimizer": "adam",
            "--weight-decay": "0.001",
            "--lr": "0.003",
            "--schedule": "cosine",
            "--warmup": 2,
            "--valid": "0.17",
            "--init": "glorot",
            "--batch": 30,
            "--grain": 7,
            "--unit": 30,
        },
    ),
    "best-of-all": (
        "idx",
        {
            "--scale": "unit",
            "--model": "dense 12 relu dropout 0.2; dense 10 softmax",
            "--loss": "mse",
            "--lr": "4",
            "--epochs": 6,
            "--valid": "0.3",
            "--keep": "best",
            "--grain": 600,
        },
    ),
    "typed-mean": (
        "csv-typed",
        {
            "--scale": "standard",
            "--model": "dense 7 relu; dense 4 softmax",
            "--loss": "mse",
            "--lr": "0.2",
            "--label": "kind",
            "--missing": "mean",
            "--valid": "0.25",
        },
    ),
    "typed-median": (
        "csv-empty",
        {
            "--scale": "none",
            "--model": "dense 4 softmax",
            "--loss": "cross-entropy",
            "--lr": "0.01",
            "--label": "kind",
            "--missing": "median",
        },
    ),
    "typed-zero": (
        "csv-typed",
        {
            "--scale": "standard",
            "--model": "dense 6 tanh; dense 4 softmax",
            "--loss": "mse",
            "--lr": "0.2",
            "--label": "kind",
            "--missing": "zero",
            "--arith": "i14",
        },
    ),
    "typed-drop": (
        "csv-typed",
        {
            "--scale": "standard",
            "--model": "dense 6 tanh; dense 4 softmax",
            "--loss": "cross-entropy",
            "--label": "kind",
            "--missing": "drop",
            "--valid": "0.4",
            "--early-stopping": 1,
        },
    ),
    "early-stopping": (
        "idx",
        {
            "--scale": "unit",
            "--model": "dense 15 tanh; dense 10 softmax",
            "--loss": "cross-entropy",
            "--lr": "0.8",
            "--epochs": 50,
            "--valid": "0.4",
            "--early-stopping": 2,
        },
    ),
    "float-table-adamw": (
        "csv-f32",
        {
            "--scale": "standard",
            "--model": "dense 11 sigmoid; dense 4 softmax",
            "--loss": "mse",
            "--optimizer": "adamw",
            "--beta1": "0.8",
            "--beta2": "0.99",
            "--epsilon": "1e-5",
            "--weight-decay": "0.1",
            "--lr": "0.01", "--lr-gamma": "0.96",
            "--schedule": "exponential",
            "--init": "lecun",
            "--label": "kind",
            "--unit": 50,
        },
    ),
    "float-table-mse-none": (
        "csv-f32",
        {
            "--scale": "none",
            "--model": "dense 6 none; dense 5 tanh; dense 4 none",
            "--loss": "mse",
            "--weight-decay": "0.01",
            "--lr": "0.0005",
            "--warmup": 40,
            "--label": "kind",
            "--seed": 18446744073709551615,
            "--valid": "0.5",
        },
    ),
    "gz-table-mse-sigmoid": (
        "csv-u8-gz",
        {
            "--scale": "fraction",
            "--model": "dense 8 relu; dense 4 sigmoid",
            "--loss": "mse",
            "--optimizer": "adam",
            "--lr": "0.004",
            "--schedule": "constant",
            "--warmup": 5,
            "--batch": 19,
            "--grain": 5,
            "--unit": 20,
        },
    ),
    "gz-table-mse-tanh": (
        "csv-u8-gz",
        {
            "--scale": "standard",
            "--model": "dense 7 relu dropout 0.4; dense 4 tanh",
            "--loss": "mse",
            "--momentum": "0.5",
            "--optimizer": "momentum",
            "--weight-decay": "0.003",
            "--lr": "0.02",
            "--schedule": "step",
            "--lr-step": 2,
            "--lr-gamma": "0.7",
            "--epochs": 5,
            "--batch": 1000,
            "--grain": 13,
            "--label": 1,
        },
    ),
    "stages": ("idx", {"--scale": "unit", "--model": "dense 12 relu; dense 10 softmax", "--loss": "cross-entropy",
                       "--optimizer": "adam", "--epochs": 6,
                       "--stages": "epochs 2 lr 0.01 warmup 3; epochs 3 lr 0.004 schedule cosine warmup 2;"
                                   " epochs 1 schedule step lr-step 1 lr-gamma 0.50 lr .002;"}),
    "gated-smoothing-clip-nesterov": (
        "idx",
        {
            "--scale": "unit",
            "--model": "dense 17 gelu; dense 9 silu dropout 0.3; dense 10 softmax",
            "--loss": "cross-entropy",
            "--smoothing": "0.1",
            **{"--momentum": "0.8", "--nesterov": None, "--clip": "0.7"},
            **{"--weight-decay": "0.002", "--lr": "0.3", "--optimizer": "momentum"},
        },
    ),
    "hard-activations": ("csv-f32", {
        "--model": "dense 8 hardswish; dense 7 relu6 dropout 0.2; dense 5 gelu-tanh; dense 4 hardsigmoid",
        "--scale": "standard", "--loss": "mse", "--lr": "0.2", "--label": "kind"}),
    "leaky-clip-integers": (
        "csv-f32",
        {
            "--scale": "standard",
            "--model": "dense 8 silu; dense 7 gelu dropout 0.2; dense 4 leaky_relu",
            "--loss": "huber",
            "--optimizer": "adamw",
            "--clip": "0.05",
            "--lr": "0.01",
            "--label": "kind",
            "--arith": "i14",
            "--grain": 5,
        },
    ),
    "raw-bytes-mse-relu": (
        "csv-odd",
        {
            **{"--label": "last", "--scale": "none", "--model": " Dense 4\tRELU ; ", "--loss": "mse"},
            **{"--lr": "1e-7", "--batch": 7, "--grain": 100, "--seed": 0, "--unit": 10},
        },
    ),
}


def write(path, content):
    with (gzip.open if path.suffix == ".gz" else open)(path, "wb") as file:
        file.write(content)
    return path


def idx(array):
    """An IDX file of unsigned bytes."""
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


@pytest.fixture(scope="session")
def sets(tmp_path_factory):
    """Data sets, as options. Classes have centres, so that something can be learned."""
    folder = tmp_path_factory.mktemp("oracle")
    generator = np.random.default_rng(2026)

    labels = generator.integers(0, 10, ITEMS).astype(np.uint8)
    centres = generator.integers(0, 256, (10, 7, 6))
    images = centres[labels] // 2 + generator.integers(0, 128, (ITEMS, 7, 6))
    images[:, 0] = 0  # constant features
    images[:, 1, 1] = 77
    found = {
        "idx": {
            "--data": write(folder / "images.idx.gz", idx(images.astype(np.uint8))),
            "--labels": write(folder / "labels.idx", idx(labels)),
        }
    }

    kinds = generator.integers(0, 4, ITEMS)
    floats = generator.standard_normal((4, 9))[kinds] + 0.5 * generator.standard_normal((ITEMS, 9))
    floats *= 10.0 ** np.array([0, 0, 0, 1, -3, 0, 0, -25, 0])
    floats[:, 5] = 1.5
    rows = ["a,b,c,kind,d,e,f,g,h,i"]
    for value, kind in zip(floats, kinds):
        fields = [f"{v:.12g}" for v in value]
        rows.append(",".join(fields[:3] + [str(kind)] + fields[3:]))
    found["csv-f32"] = {"--data": write(folder / "floats.csv", ("\n".join(rows) + "\n").encode())}

    small = generator.integers(0, 200, (4, 8))[kinds] + generator.integers(0, 56, (ITEMS, 8))
    rows = [",".join(map(str, [kind, *row])) for row, kind in zip(small, kinds)]
    found["csv-u8-gz"] = {
        "--data": write(folder / "bytes.csv.gz", ("\n".join(rows) + "\n").encode())
    }

    # Numbers and texts, each missing here and there; `twos` holds both zeros and a subnormal number.
    # A second file has one more column, in which nothing stands that could be fitted.
    towns = ["Ulm", "Bern", "\u00c5bo", "none", "7"]
    rows = ["a,town,twos,kind,size"]
    for i, (value, kind) in enumerate(zip(floats, kinds)):
        town = towns[(int(kind) + generator.integers(0, 2)) % 5]
        cells = [f"{value[0]:.9g}", town, ["-0", "0.1", "1e-45", "-2"][i % 4]]
        cells = [cell if (i + k) % 9 else ["", "NA", "?"][i % 3] for k, cell in enumerate(cells)]
        rows.append(",".join([*cells, str(kind), str(i % 7)]))
    content = "\n".join(rows) + "\n"
    found["csv-typed"] = {"--data": write(folder / "typed.csv", content.encode())}
    content = "\n".join("," + row if i else "empty," + row for i, row in enumerate(rows)) + "\n"
    found["csv-empty"] = {"--data": write(folder / "empty.csv", content.encode())}

    # What CSV allows beside: a byte order mark, semicolons, CR LF, quotes, blanks, leading zeros,
    # 3.0 for a label.
    rows = [f'"{r[0]}"; {r[1]} ;{r[2]:05};{r[3]};{r[4]};{kind}.0' for r, kind in zip(small, kinds)]
    content = "\ufeff" + "\r\n".join(rows) + "\r\n\r\n"
    found["csv-odd"] = {"--data": write(folder / "odd.csv", content.encode())}
    return found


def options(sets, job):
    name, own = job if isinstance(job, tuple) else JOBS[job]
    merged = {**BASE, "--init": "auto", "--unit": 44, **sets[name], **own}
    return [str(part) for pair in merged.items() for part in pair if part is not None]


def tensors(content):
    """(header text, {name: array}) of a model file."""
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length]
    found = {}
    for name, entry in json.loads(header).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            found[name] = np.frombuffer(
                content[8 + length + begin : 8 + length + end], "<f4"
            ).reshape(entry["shape"])
    return header, found


def difference(quern, oracle):
    """The first difference of two model files, in words."""
    (header, ours), (wanted_header, theirs) = tensors(quern), tensors(oracle)
    lines = []
    if header != wanted_header:
        lines.append(f"headers:\n  quern  {header.decode()}\n  oracle {wanted_header.decode()}")
    for name in theirs:
        if name not in ours or ours[name].shape != theirs[name].shape:
            lines.append(f"{name}: missing, or of another shape")
            continue
        unlike = np.argwhere(ours[name].view(np.uint32) != theirs[name].view(np.uint32))
        if len(unlike):
            at = tuple(int(i) for i in unlike[0])
            lines.append(
                f"{name}: {len(unlike)} of {theirs[name].size} elements, first {at}: "
                f"quern {ours[name][at]!r}, oracle {theirs[name][at]!r}"
            )
    return "\n".join(lines) or "the files differ outside header and tensors"


def train(arguments, output):
    """By both programs: the same file. Returns what Quern said. The oracle's own optimiser is sgd."""
    if not {"--optimizer", "--momentum"} & set(map(str, arguments)):
        arguments = [*arguments, "--optimizer", "sgd"]
    program = os.environ.get("QUERN")
    if not program or not Path(program).exists():
        pytest.skip("QUERN does not name the program; nothing to compare the oracle with")
    run_oracle(arguments, output.with_suffix(".oracle"))
    done = subprocess.run(
        [program, "train", *arguments, "-o", output], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    ours, theirs = (path.read_bytes() for path in (output, output.with_suffix(".oracle")))
    assert ours == theirs, difference(ours, theirs)
    return done.stdout + done.stderr


@pytest.mark.parametrize("job", JOBS)
def test_model_files_are_the_same(job, sets, tmp_path):
    train(options(sets, job), tmp_path / "model.st")


def test_training_from_another_model(sets, tmp_path):
    """The start, the training from it, and the same without it, which is something else."""
    start, model, plain = (tmp_path / name for name in ("start.st", "model.st", "plain.st"))
    arguments = options(sets, "float-table-adamw")
    other = ["4" if before == "--seed" else word for before, word in zip(["", *arguments], arguments)]
    train(arguments, start)
    train([*other, "--init-from", start], model)
    train(other, plain)
    assert not np.array_equal(*(tensors(path.read_bytes())[1]["layer0.weight"] for path in (model, plain)))
    wider = [str(word).replace("dense 4 softmax", "dense 9 softmax") for word in other]
    train([*wider, "--init-from", start, "--new-last"], model)  # 24.60


def test_the_best_epoch_is_not_the_last(sets, tmp_path):
    """The jobs above would say nothing if it were."""
    assert "the model is that of epoch" in train(options(sets, "best-of-all"), tmp_path / "a.st")
    said = train(options(sets, "early-stopping"), tmp_path / "b.st")
    assert "stopped early, after epoch" in said and "the model is that of epoch" in said
    last = train([*options(sets, "early-stopping"), "--keep", "last"], tmp_path / "c.st")
    assert "stopped early" in last and "the model is that of epoch" not in last


def test_the_oracle_learns(sets, tmp_path):
    """The loss falls to less than half: two programs that agree could both do nothing. Here it runs as a
    program of its own."""
    arguments = options(sets, "float-table-adamw") + ["--epochs", "12", "--lr", "0.05"]
    done = subprocess.run([sys.executable, ORACLE / "oracle.py", *arguments, "-o", tmp_path / "model.st"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    losses = [float(line.split()[3]) for line in lines if line.startswith("epoch")]
    assert len(losses) == 12 and losses[-1] < 0.5 * losses[0]


def test_the_jobs_reach_everything_the_text_defines():
    """Every word that the recipe and the model text can hold is in at least one job."""
    jobs = [{**BASE, "--unit": 44, **own} for _, own in JOBS.values()]
    models = " ; ".join(job["--model"] for job in jobs)
    for activation in network.ACTIVATIONS:
        assert activation in models
    reached = {
        "--loss": {"mse", "cross-entropy"},
        "--optimizer": {None, "momentum", "adam", "adamw"},
        "--schedule": {"constant", "step", "cosine", "exponential"},
        "--scale": {"none", "unit", "fraction", "standard"},
        "--init": {None, "he", "glorot", "lecun"},
        "--missing": {None, "mean", "median", "zero", "drop"},
    }
    for option, values in reached.items():
        assert values <= {job.get(option) for job in jobs}, option
    assert any("dropout" in job["--model"] for job in jobs)
    assert any(job["--model"].count("dense") == 3 for job in jobs)
    assert any("--weight-decay" in job for job in jobs) and any("--valid" in job for job in jobs)
    assert any("--warmup" in job for job in jobs) and any(job["--unit"] != 44 for job in jobs)
    assert any(job["--batch"] % job["--grain"] for job in jobs)
    assert any(ITEMS % job["--batch"] % job["--grain"] for job in jobs)
    # Both types of data come in, and the digest of the data tells them apart.
    assert {name for name, _ in JOBS.values()} == {
        "idx", "csv-f32", "csv-u8-gz", "csv-odd", "csv-typed", "csv-empty"
    }


def test_the_digest_depends_on_content_alone(tmp_path):
    """The same bytes as IDX and as CSV are one data set; the same numbers as floats are another."""
    table = np.arange(12, dtype=np.uint8).reshape(4, 3)
    labels = np.array([0, 1, 1, 0], dtype=np.uint8)
    images, own = write(tmp_path / "i.idx", idx(table)), write(tmp_path / "l.idx.gz", idx(labels))
    rows = ["x,y,z,label"] + [",".join(map(str, [*row, c])) for row, c in zip(table, labels)]
    whole = write(tmp_path / "t.csv", "\n".join(rows).encode())
    pointed = write(tmp_path / "u.csv", "\n".join(rows).replace("5,", "5.0,").encode())
    same = data.digest(*data.read(images, own)[:2])
    assert same == data.digest(*data.read(whole, label="last")[:2])
    assert same != data.digest(*data.read(pointed, label="last")[:2])
