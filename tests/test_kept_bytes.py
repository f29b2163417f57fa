"""What each layer keeps for the backward pass: the table in docs/layers.md against the memory of plans."""

import json
import math
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TABLE = (ROOT / "docs/layers.md").read_text().split("**What a layer keeps.**")[1].split("\n\n")[1]
# A layer, and how often 4 bytes are not its own: those of a convolution before or inside. (A globalpool has one
# value of 64: nearly all is that of the upsample after it, which is said to be the same.)
PIXELS = {"conv": ("conv 16 3x3 relu", 0), "convtranspose": ("convtranspose 16 3x3 pad 1", 0), "maxpool": ("maxpool 1x1", 0),
          "avgpool": ("avgpool 1x1", 0), "globalpool": ("globalpool; upsample 8", 0), "upsample": ("upsample 1", 0),
          "layerscale": ("layerscale 0.1", 0), "position": ("position learned", 0),
          "sinusoid": ("position sinusoid", 0), "rotary": ("position rotary 2 kv 1", 0),
          "batchnorm": ("batchnorm", 0), "groupnorm": ("groupnorm 4", 0), "layernorm": ("layernorm", 0), "rmsnorm": ("rmsnorm", 0),
          "residual": ("residual { conv 16 3x3 relu }", 1), "product": ("product { conv 16 3x3 }", 1),
          "concat": ("concat { conv 8 1x1 relu | conv 8 1x1 relu }", 2), "dropout": ("conv 16 3x3 relu dropout 0.2", 1), "droppath": ("conv 16 3x3 relu droppath 0.2", 1),
          "gelu": ("conv 16 3x3 gelu", 1)}


def table():
    """{layer: bytes of a value in f32, i14 and i21}"""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in TABLE.splitlines()[2:]]
    return {name: [float(cell or "nan") for cell in cells] for layers, *cells in rows for name in re.findall("`([a-z]+)`", layers)}


def of_an_item(quern, model, shape, arith):
    """Bytes of the estimate that an item of a batch adds."""
    def memory(batch):
        told = subprocess.run([quern, "plan", "--team", "host(cpu 20k)", "--model", model, "--shape", shape, "--items", "9999", "--batch", str(batch),
                               "--arith", arith, "--threads", "1", "--json"], capture_output=True, text=True, check=True).stdout
        return next(json.loads(line)["memory_bytes"] for line in told.splitlines() if "memory_bytes" in line)
    return (memory(4096) - memory(2048)) / 2048


def kept(quern, layers, arith, dense=False):
    """Bytes of each value that the layers add to a network, before others that take turns with the errors."""
    shape, each, more = ("512x1x1", 512, "dense 512 relu; ") if dense else ("16x8x8", 1024, "conv 16 3x3 relu; ")
    net = more + "%s" + 3 * more + "%sdense 2 softmax" % ("" if dense else "globalpool; ")
    return (of_an_item(quern, net % "".join(f"{layer}; " for layer in layers), shape, arith) - of_an_item(quern, net % "", shape, arith)) / each


def test_the_table_names_all():
    """A kind of layers that is new has a row, too."""
    kinds = set(re.findall(r"^    KIND\(\w+, (\w+)\)", (ROOT / "src/num/program.h").read_text(), re.M)) - {"multiply", "pooled"}
    assert kinds | {"product", "pool", "dropout", "droppath", "gelu"} == set(table()) == {*PIXELS, "dense", "embedding", "attention", "pool", "recurrent"}


@pytest.mark.parametrize("arith", ["f32", "i14", "i21"])
def test_dense_layers(quern, arith):
    found, said = kept(quern, ["dense 512 relu"], arith, dense=True), table()["dense"][("f32", "i14", "i21").index(arith)]
    assert abs(found - said) <= (0.1 if arith == "f32" else said / 4), found  # how integers are packed depends on the processor


@pytest.mark.parametrize("place, arith", enumerate(["f32", "i14", "i21"]))
def test_each_layer(quern, place, arith):
    said = {name: cells[place] for name, cells in table().items() if name in PIXELS and not math.isnan(cells[place])}
    assert len(said) > 10
    for name, told in said.items():
        layer, others = PIXELS[name]
        assert abs(kept(quern, [layer], arith) - 4 * others - told) < 0.25, name
