"""Small recipes, and the digests of the models that they must give, on any machine.

RECIPES names each recipe; tests/digests.txt holds the SHA-256 of each model file, one line
`name sha256` each. tests/test_matrix.py trains them in every build, with every instruction set
and with several numbers of threads. The table changes only on purpose:

    python3 tests/recipes.py --update [PROGRAM]

trains all of them with PROGRAM (build/quern) and rewrites it. A changed line means that the
contract in docs/exactness.md changed, and its version with it, or that there is a fault.
"""

import csv
import gzip
import hashlib
import shlex
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import recipe_arrays
import recipe_tables
from recipe_pixels import INTEGER_WINDOWS, WINDOWS, pixels

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "digests.txt"
ITEMS = 300  # no multiple of any batch below but 50 and 300, nor of the usual grain of 32

IDX = "--data {images} --labels {labels} --scale unit "
SMALL = "--epochs 2 --seed 3 --batch 64 "
TWO = '--model "dense 24 tanh; dense 10 softmax" '

REAL = '--model "dense 24 relu; dense 1" --data {real} --scale standard '

# name: what follows `quern train`, as one would type it; {words} are files of make_data.
RECIPES = {
    # losses and activations
    "tanh-mse-sgd": IDX + SMALL + TWO + "--loss mse --optimizer sgd --lr 0.5",
    "tanh-cross-entropy-sgd": IDX + SMALL + TWO + "--loss cross-entropy --optimizer sgd --lr 0.2",
    "relu": IDX + SMALL + '--model "dense 24 relu; dense 10 softmax" --loss cross-entropy --lr 0.1',
    "sigmoid": IDX + SMALL + '--model "dense 24 sigmoid; dense 10 sigmoid" --loss mse --lr 0.5',
    "none": IDX + SMALL + '--model "dense 24 none; dense 10 none" --loss mse --lr 0.01',
    "relu-last": IDX + SMALL + '--model "dense 24 tanh; dense 10 relu" --loss mse --lr 0.05',
    "tanh-last": IDX + SMALL + '--model "dense 24 relu; dense 10 tanh" --loss mse --lr 0.05',
    "one-layer": IDX + SMALL + '--model "dense 10 softmax" --loss cross-entropy --lr 0.1',
    "deep": IDX + SMALL + '--model "dense 33 relu; dense 17 tanh; dense 9 sigmoid; dense 10 softmax"'
            " --loss cross-entropy --lr 0.1",
    # optimisers
    "momentum": IDX + SMALL + TWO + "--loss mse --optimizer momentum --momentum 0.9 --lr 0.1",
    "adam": IDX + SMALL + TWO + "--loss cross-entropy --optimizer adam --lr 0.002",
    "adamw": IDX + SMALL + TWO + "--loss cross-entropy --optimizer adamw --lr 0.002"
             " --weight-decay 0.05",
    "sgd-decay": IDX + SMALL + TWO + "--loss mse --optimizer sgd --lr 0.2 --weight-decay 0.001",
    # schedules
    "step": IDX + TWO + "--epochs 4 --seed 3 --batch 64 --loss mse --lr 0.4 --schedule step"
            " --lr-step 1 --lr-gamma 0.3",
    "cosine-warmup": IDX + TWO + "--epochs 3 --seed 3 --batch 64 --loss mse --lr 0.4"
                     " --schedule cosine --warmup 5",
    "stages": IDX + TWO + "--seed 3 --batch 64 --loss mse --momentum 0.9 --stages 'epochs 2 lr 0.4 warmup 3;"
              " epochs 2 lr 0.1 schedule cosine; epochs 2 lr 0.05 schedule step lr-step 1 lr-gamma 0.5'",
    # dropout
    "dropout": IDX + SMALL + '--model "dense 24 relu dropout 0.2; dense 16 tanh dropout 0.5;'
               ' dense 10 softmax" --loss cross-entropy --momentum 0.9 --lr 0.05',
    # initial weights, seeds, units
    "init-lecun": IDX + SMALL + TWO + "--loss mse --lr 0.2 --init lecun",
    "init-he": IDX + SMALL + TWO + "--loss mse --lr 0.2 --init he",
    "init-glorot-seed": IDX + TWO + "--loss mse --lr 0.2 --init glorot --epochs 1 --batch 64"
                        " --seed 18446744073709551615",
    "unit-30": IDX + SMALL + TWO + "--loss mse --lr 0.2 --unit 30",
    # sizes that do not divide one another
    "batch-50-grain-7": IDX + TWO + "--loss mse --lr 0.2 --epochs 2 --seed 3 --batch 50 --grain 7",
    "batch-37": IDX + TWO + "--loss mse --lr 0.2 --epochs 2 --seed 3 --batch 37",
    "batch-300-grain-1": IDX + TWO + "--loss mse --lr 0.2 --epochs 2 --seed 3 --batch 300"
                         " --grain 1",
    "batch-1": IDX + '--model "dense 10 softmax" --loss mse --lr 0.02 --epochs 1'
               " --seed 3 --batch 1",
    "batch-beyond": IDX + TWO + "--loss mse --lr 0.2 --epochs 3 --seed 3 --batch 1000"
                    " --grain 600",
    "valid": IDX + SMALL + TWO + "--loss mse --lr 0.2 --valid 0.2",
    # the best epoch instead of the last, and a stop after it; the learning rate makes them differ
    "best": IDX + TWO + "--loss mse --lr 4 --epochs 6 --seed 3 --batch 64 --valid 0.3 --keep best",
    "early-stopping": IDX + TWO + "--loss cross-entropy --lr 0.8 --epochs 50 --seed 3 --batch 64"
                      " --valid 0.4 --early-stopping 2",
    # the same by files of validation items
    "best-file": IDX + TWO + "--loss mse --lr 4 --epochs 6 --seed 3 --batch 64 --valid {images_gz}"
                 " --valid-labels {labels_gz} --keep best",
    "early-stopping-file": TWO + "--data {typed} --label kind --missing drop --valid {typed} --lr 2"
                           " --loss cross-entropy --scale standard --epochs 50 --seed 3 --batch 64"
                           " --early-stopping 2",
    # scalings
    "scale-none": SMALL + TWO + "--data {images} --labels {labels} --scale none --loss mse"
                  " --lr 0.001",
    "scale-standard": SMALL + TWO + "--data {images} --labels {labels} --scale standard"
                      " --loss cross-entropy --lr 0.02",
    "scale-fraction": '--epochs 1 --seed 3 --batch 64 --model "dense 10 softmax" --data {images}'
                      " --labels {labels} --scale fraction --loss cross-entropy --lr 0.1",
    "decimals-standard": SMALL + TWO + "--data {decimals} --label last --scale standard"
                         " --loss cross-entropy --lr 0.05",
    "decimals-none": SMALL + TWO + "--data {decimals} --label label --scale none"
                     " --loss cross-entropy --lr 0.01",
    # decimals beside the middle of two floats, both zeros, and the greatest number
    "hard-standard": SMALL + TWO + "--data {hard} --label last --scale standard"
                     " --loss cross-entropy --lr 0.05",
    # subnormal numbers: as inputs, as their mean, deviation and inverse; as slots of adam
    "tiny-standard": SMALL + TWO + "--data {tiny} --scale standard --loss cross-entropy --lr 0.1",
    "tiny-adam": SMALL + TWO + "--data {tiny} --scale none --loss cross-entropy --lr 0.01"
                 " --optimizer adam --epsilon 1e-25 --unit 57",
    # numbers as options that lie beside the middle of two floats, or are subnormal
    "hard-options": IDX + TWO + "--epochs 3 --seed 3 --batch 64 --loss mse --schedule step"
                    " --lr 0.1000000089406967163085937499 --lr-step 1 --lr-gamma"
                    " 0.30000002682209014892578125001 --momentum 0.899999976158142089843750001"
                    " --weight-decay 1e-41",
    # losses of other sums, with classes and with real labels; one output for two classes
    "mae-classes": IDX + SMALL + TWO + "--loss mae --lr 0.2",
    "huber-classes": IDX + SMALL + '--model "dense 24 relu; dense 10 sigmoid" --loss huber'
                     " --delta 0.25 --lr 0.2",
    "real-mse-valid": SMALL + REAL + "--loss mse --optimizer adam --lr 0.02 --valid 0.2",
    "real-mae": SMALL + REAL + "--loss mae --lr 0.02 --momentum 0.9 --grain 7",
    "real-huber": SMALL + '--model "dense 24 tanh dropout 0.2; dense 1 tanh" --data {real} --scale'
                  " standard --loss huber --delta 0.3 --optimizer adam --lr 0.003",
    "real-whole": SMALL + REAL.replace("real", "whole") + "--task regress --loss mse --lr 0.02"
                  " --optimizer sgd",
    "binary": SMALL + '--model "dense 24 tanh dropout 0.2; dense 1 sigmoid" --data {pair} --scale'
              " standard --loss binary --lr 0.2",
    "binary-one-layer": '--epochs 2 --seed 3 --model "dense 1 sigmoid" --data {pair} --scale none'
                        " --loss binary --optimizer adamw --lr 0.01 --batch 50 --grain 7",
    # the same data in other clothes: the same models as tanh-mse-sgd
    "from-idx-gz": SMALL + TWO + "--data {images_gz} --labels {labels_gz} --scale unit --loss mse"
                   " --optimizer sgd --lr 0.5",
    "from-csv": SMALL + TWO + "--data {csv} --scale unit --loss mse --optimizer sgd --lr 0.5",
    "from-csv-gz": SMALL + TWO + "--data {csv_gz} --label 1 --scale unit --loss mse"
                   " --optimizer sgd --lr 0.5",
}
# Products of integers (docs/exactness.md 15). Sizes are not multiples of what a kernel takes at once.
WIDE = '--model "dense 70 relu; dense 10 softmax" --loss cross-entropy '
INTEGERS = {
    "i14-tanh-mse": IDX + SMALL + TWO + "--loss mse --optimizer sgd --lr 0.5",
    "i14-relu-momentum": IDX + SMALL + WIDE + "--momentum 0.9 --lr 0.05",
    "i14-deep-dropout": IDX + SMALL + '--model "dense 33 relu dropout 0.2; dense 17 tanh dropout'
                        ' 0.5; dense 9 sigmoid; dense 10 softmax" --loss cross-entropy'
                        " --optimizer adam --lr 0.003",
    "i7-adamw": IDX + SMALL + WIDE + "--optimizer adamw --lr 0.002 --weight-decay 0.05"
                " --grain 9",
    "i21-none-mse": IDX + SMALL + '--model "dense 19 none; dense 10 none" --loss mse --lr 0.01',
    "i7-one-layer": IDX + SMALL + '--model "dense 10 softmax" --loss cross-entropy --lr 0.1',
    "i21-one-layer": IDX + SMALL + '--model "dense 10 softmax" --loss cross-entropy --lr 0.1',
    # grains of one batch with exponents of their own, and steps of one item
    "i14-batch-50-grain-7": IDX + TWO + "--loss mse --lr 0.2 --epochs 2 --seed 3 --batch 50"
                            " --grain 7",
    "i21-batch-300-grain-1": IDX + TWO + "--loss mse --lr 0.2 --epochs 2 --seed 3 --batch 300"
                             " --grain 1",
    "i14-batch-1": IDX + '--model "dense 10 softmax" --loss mse --lr 0.02 --epochs 1 --seed 3'
                   " --batch 1",
    # gradients that are rounded to units: partly, and nearly away
    "i21-unit-20": IDX + SMALL + TWO + "--loss mse --lr 0.2 --unit 20",
    "i14-unit-0": IDX + SMALL + TWO + "--loss mse --lr 0.2 --unit 0 --grain 64",
    # zeros and ones of texts beside numbers
    "i14-missing-mean": TWO + "--epochs 2 --seed 3 --batch 50 --grain 7 --data {typed} --label kind"
                        " --missing mean --scale standard --loss cross-entropy --lr 0.05",
    # features of every size in one block, and the same made equal
    "i14-sizes-none": SMALL + '--model "dense 24 tanh; dense 10 sigmoid" --data {sizes} --scale'
                      " none --loss mse --lr 0.01",
    "i7-sizes-standard": SMALL + TWO + "--data {sizes} --scale standard --loss mse --lr 0.1",
    "i14-bytes-none": SMALL + TWO + "--data {csv} --scale none --loss cross-entropy --lr 0.001"
                      " --valid 0.2",
    # subnormal numbers, decimals beside the middle of two floats
    "i21-tiny-standard": SMALL + TWO + "--data {tiny} --scale standard --loss mse --lr 0.1",
    "i14-hard-standard": SMALL + TWO + "--data {hard} --label last --scale standard --loss mse"
                         " --lr 0.05",
    # real labels, and one output for two classes
    "i14-real-huber": SMALL + REAL + "--loss huber --delta 0.3 --lr 0.05 --momentum 0.9",
    "i21-real-mae": SMALL + REAL + "--loss mae --optimizer adam --lr 0.02 --grain 9",
    "i7-binary": SMALL + '--model "dense 70 relu; dense 1 sigmoid" --data {pair} --scale standard'
                 " --loss binary --lr 0.1",
    # errors of very different sizes in one block
    "i14-weights": SMALL + TWO + "--data {weighed} --label kind --weight w --missing zero --scale"
                   " standard --loss cross-entropy --lr 0.05 --class-weight balanced",
    # bytes that a block of 14 bits holds exactly
    "i14-bytes-fraction": "--epochs 2 --seed 3 --batch 50 --grain 7 " + WIDE + "--data {images}"
                          " --labels {labels} --scale fraction --momentum 0.9 --lr 0.05",
}
# Names of columns and classes (docs/exactness.md 11.6); in bytewise order, unlike by number.
CLASS_NAMES = ["zero", "one", "two", "Three", "4", "f i v e", 'six "6"', "sept, 7", "\u00e8ight", "9x"]
MIXED_NAMES = ["10", "9.0", "x", "-1", "1.50", "y", "z", "09", "a", "2e-3"]
NAMES = {
    "names-texts": SMALL + TWO + '--data {named} --label "kind of \u2116" --scale standard'
                   " --loss cross-entropy --lr 0.05",
    "names-numbers": SMALL + TWO + "--data {signed} --label class --scale unit --loss mse --lr 0.2"
                     " --valid 0.2",
    "names-mixed": SMALL + '--data {mixed} --task classify --scale none --model "dense 10 softmax"'
                   " --loss cross-entropy --lr 0.001",
}
RECIPES |= NAMES
# Missing values and columns of texts (docs/exactness.md 2.6 and 2.7).
TYPED = SMALL + TWO + "--data {typed} --label kind "
RECIPES |= {
    "missing-mean": TYPED + "--missing mean --scale standard --loss cross-entropy --lr 0.05",
    "missing-median": TYPED + "--missing median --scale none --loss mse --lr 0.01 --valid 0.3",
    "missing-zero": TYPED + "--missing zero --scale standard --loss mse --lr 0.2",
    "missing-drop": TYPED + "--missing drop --scale standard --loss cross-entropy --lr 0.05"
                    " --valid 0.2",
}
# Columns that float32 cannot hold (docs/exactness.md 23.4 to 23.6).
WIDE = SMALL + TWO + "--data {wide} --label kind "
RECIPES |= {
    "wide": WIDE + "--missing mean --scale standard --loss cross-entropy --lr 0.05 --valid 0.2",
    "wide-robust": WIDE + "--missing zero --scale robust --loss mse --lr 0.05",
}
# Dates and times (docs/exactness.md 23.10 to 23.13).
DATES = SMALL + TWO + "--data {dates} --label kind --optimizer sgd "
RECIPES |= {
    "dates": DATES + "--drop form --missing mean --scale standard --loss cross-entropy --lr 0.05 --valid 0.2",
    "dates-parts": DATES + "--drop day,time --missing median --scale minmax --loss mse --lr 0.05 --date-format %d.%m.%Y "
                           "--dates quarter,day,yearday,minute,second,hour",
}
# Weights of items and classes (docs/exactness.md 7.7), some of them 0, and one large one.
WEIGHED = "--data {weighed} --label kind --weight w "
RECIPES |= {
    "weights": SMALL + TWO + WEIGHED + "--missing drop --scale standard --loss cross-entropy --lr 0.05",
    "weights-best": TWO + WEIGHED + "--scale none --loss mse --lr 0.01 --epochs 4 --seed 3 --batch 50"
                    " --grain 7 --valid 0.3 --keep best --missing median --class-weight"
                    " '\"sept, 7\"=3,\"six \"\"6\"\"\"=0.1,4=0'",
    "weights-mean": SMALL + TWO + WEIGHED + "--scale standard --missing mean --loss huber --delta 0.2"
                    " --class-weight balanced --lr 0.2",
    "weights-real": SMALL + '--model "dense 24 tanh; dense 1 tanh" --data {weighed_real} --weight last'
                    " --task regress --scale standard --loss mae --optimizer adam --lr 0.003"
                    " --valid 0.2",
    "class-weight-softmax-mse": IDX + SMALL + TWO + "--loss mse --lr 0.5 --class-weight 3=2.5,7=0.01",
    "class-weight-balanced": IDX + SMALL + TWO + "--loss cross-entropy --lr 0.2 --valid 0.2"
                             " --class-weight balanced",
    "class-weight-binary": SMALL + '--model "dense 24 tanh dropout 0.2; dense 1 sigmoid" --data {pair}'
                           " --scale standard --loss binary --lr 0.2 --class-weight 1=0.3",
}
FLOATS = list(RECIPES)  # names of those above
# Pixels (docs/exactness.md 16): few and many channels, windows of all shapes, borders.
RECIPES |= WINDOWS | INTEGER_WINDOWS
# Normalisation over grains (docs/exactness.md 17.8).
NORMS = {f"batchnorm-{name}": pixels(model, more) for name, model, more in [
    ("conv", "conv 20 3x3 stride 3; batchnorm relu; conv 17 3x3; batchnorm tanh", "--grain 16 --momentum 0.9"),
    ("adam", "conv 6 3x3 stride 3; batchnorm relu dropout 0.3; maxpool 2; batchnorm",
     "--optimizer adam --lr 0.002 --weight-decay 0.01"),
    ("dense", "dense 20; batchnorm relu; dense 17; batchnorm sigmoid", "--batch 50 --grain 7 --clip 0.4"),
    ("first", "batchnorm; conv 4 3x3 stride 4 relu", "--scale none --init glorot"),
    ("grain-1", "conv 4 3x3 stride 4; batchnorm relu; dense 9; batchnorm", "--batch 5 --grain 1"),
    ("best", "conv 4 3x3 stride 4; batchnorm relu; globalpool", "--epochs 3 --valid 0.3 --keep best"),
    ("weights", "conv 33 5x5 stride 5; batchnorm tanh", "--class-weight balanced --unit 30"),
    ("grain-beyond", "conv 3 4x4 stride 4; batchnorm relu", "--batch 150 --grain 1000 --optimizer adamw"
     " --weight-decay 0.1 --lr 0.002"),
    ("i14", "conv 18 3x3 stride 4; batchnorm relu dropout 0.2; conv 5 3x3; batchnorm; dense 9; batchnorm tanh",
     "--arith i14 --grain 16"),
]}
# Normalisation of each item (17.9): groups inside panels, across them and of several.
NORMS |= {f"groupnorm-{name}": pixels(model, more) for name, model, more in [
    ("conv", "conv 20 3x3 stride 3; groupnorm 5 relu; conv 33 3x3; groupnorm 3 tanh", "--grain 16 --momentum 0.9"),
    ("adam", "conv 32 3x3 stride 3; groupnorm 2 relu dropout 0.3; maxpool 2; layernorm; globalpool",
     "--optimizer adam --lr 0.002 --weight-decay 0.01 --batch 37 --grain 5"),
    ("first", "groupnorm 1; conv 4 3x3 stride 4; groupnorm 4 sigmoid; dense 48; groupnorm 3 relu", "--scale none"),
    ("residual", "conv 6 3x3 stride 4; groupnorm 3 relu; residual { layernorm relu; conv 6 3x3; groupnorm 2 |"
                 " groupnorm 1 } relu; globalpool", ""),
    ("layernorm", "dense 40; layernorm relu; dense 17; layernorm tanh", "--clip 0.4 --batch 50 --grain 7"),
    ("i14", "conv 18 3x3 stride 4; groupnorm 3 relu; conv 5 3x3; layernorm; dense 9; layernorm tanh", "--arith i14"),
]}
RECIPES |= NORMS
RECIPES |= {name: f"{words} --arith {name.split('-')[0]}" for name, words in INTEGERS.items()}
# Contract 6 (docs/exactness.md 17).
FULL = "--optimizer lbfgs --epochs 12 --seed 3 "
SIXTH = {
    # over all items (17.14): without and with hidden layers, L2 and L1
    "lbfgs": IDX + FULL + '--model "dense 10 softmax" --loss cross-entropy --weight-decay 0.003',
    "lbfgs-hidden": IDX + FULL + TWO + "--loss mse --valid 0.2 --keep best --grain 7",
    "lbfgs-l1": FULL + '--model "dense 10 softmax" --data {weighed} --label kind --weight w --missing zero'
                " --scale standard --loss cross-entropy --l1 0.02 --weight-decay 0.001 --tolerance 0.01"
                " --class-weight balanced --arith i14 --grain 32",
    "lbfgs-real": FULL + '--model "dense 1" --data {real} --scale standard --loss huber --delta 0.3'
                  " --l1 0.01 --tolerance 0.001 --grain 32",
    "smoothing": IDX + SMALL + TWO + "--loss cross-entropy --smoothing 0.1 --lr 0.2"
                 " --class-weight 3=2.5,7=0.01",
    "leaky-relu": IDX + SMALL + '--model "dense 33 leaky_relu dropout 0.2; dense 10 leaky_relu" --loss mse'
                  " --lr 0.1",
    "gelu": IDX + SMALL + '--model "dense 33 gelu; dense 19 gelu dropout 0.2; dense 10 softmax"'
            " --loss cross-entropy --lr 0.2",
    "silu": IDX + SMALL + '--model "dense 33 silu dropout 0.2; dense 19 silu; dense 10 softmax"'
            " --loss cross-entropy --optimizer adam --lr 0.005",
    "pixels-gelu": pixels("conv 6 3x3 stride 2 gelu dropout 0.2; maxpool 2; conv 9 3x3 leaky_relu; dense 16 silu", "--lr 0.1"),
    "i14-silu": IDX + SMALL + '--model "dense 33 silu; dense 18 gelu dropout 0.2; dense 10 softmax"'
                " --loss cross-entropy --lr 0.2 --arith i14",
    "batchnorm-silu": pixels("conv 5 3x3 stride 3; batchnorm silu; maxpool 2; dense 12; batchnorm gelu", "--lr 0.1"),
    "residual-gelu": pixels("conv 5 3x3 stride 3 silu; residual { conv 5 3x3 leaky_relu; conv 5 3x3 } gelu;"
                            " dense 12 gelu", "--lr 0.1"),
    "clip": IDX + SMALL + TWO + "--loss cross-entropy --clip 1 --lr 0.5 --weight-decay 0.001",
    "clip-adam": IDX + SMALL + '--model "dense 10 softmax" --loss cross-entropy --clip 1.1 --optimizer'
                 " adam --lr 0.002 --unit 53 --grain 7",
    "nesterov": IDX + SMALL + TWO + "--loss cross-entropy --momentum 0.8 --nesterov --lr 0.05"
                " --weight-decay 0.001",
    # pictures changed in each epoch: bytes and floats, dense networks, windows, integers
    "augment-conv": pixels("conv 4 3x3 stride 4 relu", "--shape 1x28x28 --epochs 2")
                    + " --augment 'pad 4; crop; flip; cutout 8'",
    "augment-order": pixels("conv 5 3x3 stride 3 relu", "--shape 4x14x14 --scale fraction --arith i14")
                     + " --augment 'cutout 5; flip; pad 3; crop'",
    "augment-dense": IDX + TWO + "--shape 1x28x28 --loss cross-entropy --lr 0.1 --epochs 3 --seed 5"
                     " --batch 50 --grain 7 --valid 0.2 --augment 'pad 27; cutout 28; crop'",
    "augment-floats": SMALL + TWO + "--data {decimals} --label last --shape 1x7x7 --scale standard"
                      " --loss cross-entropy --lr 0.05 --augment 'flip; pad 2; cutout 3; crop'",
    "augment-i14": IDX.replace("unit", "fraction") + SMALL + TWO + "--shape 1x28x28 --loss cross-entropy --lr 0.2"
                   " --arith i14 --augment 'flip; pad 2; crop'",
    # a mean and a deviation for each channel: bytes and floats, with weights, integers
    "channel-conv": pixels("conv 5 3x3 stride 2 relu; maxpool 2", "--shape 4x14x14 --scale channel --valid 0.3")
                    + " --augment 'pad 2; crop; flip'",
    "channel-dense": IDX.replace("unit", "channel") + SMALL + TWO + "--shape 98x4x2 --loss cross-entropy"
                     " --lr 0.05 --class-weight 3=2.5,7=0.01",
    "channel-floats": SMALL + TWO + "--data {decimals} --label last --shape 7x7x1 --scale channel"
                      " --loss cross-entropy --lr 0.05",
    "channel-i7": pixels("conv 5 3x3 stride 2 relu", "--shape 1x28x28 --scale channel --arith i7"),
    # extremes and quartiles: bytes and floats, columns of equal values, weights, integers
    "minmax": IDX.replace("unit", "minmax") + SMALL + TWO + "--loss cross-entropy --lr 0.1",
    "minmax-floats": SMALL + TWO + "--data {decimals} --label last --scale minmax --loss cross-entropy"
                     " --lr 0.1 --valid 0.3",
    "minmax-i14": IDX.replace("unit", "minmax") + SMALL + TWO + "--loss cross-entropy --lr 0.1 --arith i14",
    "robust": IDX.replace("unit", "robust") + SMALL + TWO + "--loss cross-entropy --lr 0.01",
    "robust-real": SMALL + REAL.replace("standard", "robust") + "--loss mse --optimizer adam --lr 0.01 --valid 0.2",
    "robust-weights": SMALL + TWO + "--data {weighed} --label kind --weight w --missing zero --scale robust"
                      " --loss cross-entropy --lr 0.05",
}
# Residual blocks (17.7): at both ends of a network, with and without layers in the shortcut, an
# activation at the end of a path, dropout in all places.
BLOCKS = {f"residual-{name}": pixels(model, more) for name, model, more in [
    ("identity", "conv 8 3x3 stride 4 relu; residual { conv 8 3x3 relu; conv 8 3x3 } relu; globalpool",
     "--momentum 0.9"),
    ("strided", "conv 6 3x3 stride 4 relu; residual { conv 20 3x3 stride 2 relu; conv 20 3x3 | conv 20 1x1"
                " stride 2 } relu; residual { conv 20 3x3 relu; conv 20 1x3 } relu; globalpool", ""),
    ("first", "residual { conv 3 3x3 stride 4 tanh | conv 3 1x1 stride 4 }; dense 9 tanh", ""),
    ("input", "residual { conv 4 3x3 tanh } tanh; avgpool 2; dense 9 tanh",
     "--scale standard --shape 4x14x14"),
    ("pools", "maxpool 2; conv 5 3x3 relu; residual { maxpool 3 stride 2 | avgpool 3 stride 2 }; globalpool",
     ""),
    ("activations", "conv 7 3x3 stride 4; residual { conv 7 3x3 tanh | conv 7 1x3 sigmoid; conv 7 1x1 relu }"
                    " tanh; residual { conv 7 3x3 relu } none; maxpool 3", "--optimizer adam --lr 0.002"),
    ("dropout", "conv 17 3x3 stride 5 relu dropout 0.2; residual { conv 17 1x3 dropout 0.1 } relu dropout"
                " 0.3; residual { conv 9 3x3 stride 2 | conv 9 1x1 stride 2 tanh dropout 0.2 } dropout 0.1",
     "--grain 7 --batch 50"),
    ("dense", "dense 24 tanh; residual { dense 24 relu; dense 24 } relu; residual { dense 9 | dense 9 tanh }",
     ""),
    ("batchnorm", "conv 8 3x3 stride 4; batchnorm relu; residual { conv 8 3x3; batchnorm relu; conv 8 3x3;"
                  " batchnorm } relu; residual { conv 17 3x3 stride 2; batchnorm relu; conv 17 3x3; batchnorm |"
                  " conv 17 1x1 stride 2; batchnorm } relu; residual { batchnorm relu; conv 17 3x3 | batchnorm }"
                  " dropout 0.2; globalpool", "--momentum 0.9 --epochs 2 --valid 0.2"),
]}
# The same of integers: a block's input is that of the network, bytes too; dense and other layers in one.
INTEGER_BLOCKS = {f"residual-{name}": f"{pixels(model, more)} --arith {name.split('-')[0]}"
                  for name, model, more in [
    ("i14-batchnorm", "conv 8 3x3 stride 4; batchnorm relu; residual { conv 8 3x3; batchnorm relu; conv 8 3x3;"
                      " batchnorm } relu; residual { conv 17 3x3 stride 2; batchnorm relu; conv 17 3x3 | conv 17"
                      " 1x1 stride 2; batchnorm } relu; globalpool", "--momentum 0.9 --grain 16 --valid 0.2"),
    ("i21-dropout", "conv 17 3x3 stride 5 relu dropout 0.2; residual { conv 17 1x3 dropout 0.1 } relu dropout"
                    " 0.3; residual { maxpool 2; conv 9 1x1 | conv 9 1x1 stride 2 tanh dropout 0.2 } sigmoid",
     "--grain 7 --batch 50"),
    ("i7-input", "residual { conv 4 3x3 tanh } tanh; avgpool 2; dense 9 tanh", "--scale standard --shape 4x14x14"),
    ("i14-first", "residual { conv 9 28x28 pad none tanh | dense 9 silu }; dense 17 tanh", "--scale fraction"),
    ("i14-dense", "residual { dense 20 | conv 20 1x1 tanh }; residual { dense 20 relu; dense 20 } relu;"
                  " residual { dense 9 | dense 9 tanh }", "--scale fraction --optimizer adam --lr 0.002"),
]}
# Convolutions with groups (17.6): few and many channels of a group, several outputs of each channel.
GROUPS = {f"groups-{name}": pixels(model, more) for name, model, more in [
    ("depthwise", "conv 20 3x3 stride 4 relu; conv 20 3x3 depthwise tanh; conv 9 1x1 relu; globalpool",
     "--momentum 0.9"),
    ("multiplier", "conv 5 3x3 stride 4 relu; conv 35 3x2 stride 2 pad 1 depthwise relu dropout 0.2; maxpool 2",
     "--optimizer adam --lr 0.002"),
    ("few", "conv 12 3x3 stride 3 relu; conv 18 3x3 groups 3 relu; conv 20 1x1 groups 2 tanh; maxpool 3", ""),
    ("first", "conv 4 5x5 stride 3 depthwise relu; conv 6 3x3 stride 2 dilation 2 groups 2 tanh",
     "--shape 4x14x14 --grain 7 --batch 50"),
    ("many-taps", "conv 34 1x1 stride 7 relu; conv 34 6x6 pad 3 groups 2 relu; globalpool", "--scale standard"),
    ("residual", "conv 16 3x3 stride 4 relu; residual { conv 32 1x1; batchnorm relu; conv 32 3x3 stride 2 depthwise;"
                 " batchnorm relu; conv 24 1x1; batchnorm | conv 24 1x1 stride 2 groups 8 } relu; globalpool",
     "--momentum 0.9 --valid 0.2"),
]}
# Products of floats, since they have groups, between products of integers (17.12).
INTEGER_BLOCKS |= {f"groups-{name}": f"{pixels(model, more)} --arith {name.split('-')[0]}"
                   for name, model, more in [
    ("i14-depthwise", "conv 20 3x3 stride 4 relu; conv 20 3x3 depthwise tanh dropout 0.2; conv 9 1x1 relu;"
                      " globalpool", "--momentum 0.9"),
    ("i7-first", "conv 4 5x5 stride 3 depthwise sigmoid; conv 6 3x3 stride 2 dilation 2 groups 2; conv 18 2x2 relu",
     "--shape 4x14x14 --grain 7 --batch 50"),
    ("i21-residual", "conv 16 3x3 stride 4 relu; residual { conv 32 1x1; batchnorm relu; conv 32 3x3 stride 2"
                     " depthwise; batchnorm relu; conv 24 1x1 | conv 24 1x1 stride 2 groups 8 } relu; globalpool",
     "--momentum 0.9 --valid 0.2"),
]}
# Layers of another model, {start}, at the beginning (24.61).
START = pixels("conv 5 3x3 stride 4; batchnorm relu dropout 0.4; residual { conv 6 3x3 relu; batchnorm dropout 0.2 | conv 6"
               " 1x1 }; globalpool; dense 9 tanh dropout 0.1", "--shape 1x7x7 --scale standard")
START = START.replace("{images} --labels {labels}", "{decimals} --label last")
FROM_START = START.replace("--seed 3", "--seed 5") + " --init-from {start} "
# Contract 8.
EIGHTH = {
    "pools-pad": pixels("conv 5 3x3 stride 4 relu; maxpool 3 stride 2 pad 1; avgpool 3x2 stride 1 pad 1x0 uncounted;"
                        " maxpool 3x2 ceil; avgpool 2 stride 1 pad 1; avgpool 2 ceil; dense 9 tanh", "--lr 0.1"),
    # 24.40, 24.41: sizes that divide, that do not, that are larger; both directions; features
    "pools-to": pixels("conv 5 3x3 stride 4 relu; maxpool to 5x9; upsample 1x2; avgpool to 3x7; avgpool to 4x7; upsample 2;"
                       " maxpool to 3x2; globalpool; maxpool to 2x1; dense 9 tanh", "--lr 0.1"),
    "i14-pools-to": pixels("avgpool to 9x10; conv 18 3x3 stride 3 tanh; upsample 3x2; conv 4 3x3 stride 3 relu",
                           "--arith i14 --scale fraction"),
    # 24.43: even and uneven factors, one direction, a single pixel; 24.33 with integers
    "bilinear": pixels("conv 5 3x3 stride 9 tanh; upsample 2x3 bilinear; conv 6 3x3 stride 2 relu; residual { upsample 1"
                       " bilinear; conv 6 1x1 droppath 0.2 }; globalpool; upsample 1x4 bilinear; dense 9 tanh", "--lr 0.1"),
    "i14-bilinear": pixels("avgpool to 3x4; upsample 2 bilinear; conv 18 3x3 stride 2 tanh droppath 0.3; upsample 5x2"
                           " bilinear; conv 4 5x5 stride 5 relu", "--arith i14 --scale fraction"),
    # 24.42: as the first layer, with each word, windows smaller than the stride, after one pixel
    "transposed": pixels("convtranspose 3 2x3 stride 2x1 pad 1x0 relu; conv 5 3x3 stride 4 relu; convtranspose 18 3x3 stride 2"
                         " tanh dropout 0.1; convtranspose 4 2x1 stride 3 pad none outpad 2x0 dilation 2x1 nobias relu; conv 3"
                         " 5x5 stride 5; globalpool; convtranspose 2 4x4 stride 2 tanh", "--shape 4x14x14 --momentum 0.9"),
    "i14-transposed": pixels("conv 5 3x3 stride 9 relu; convtranspose 18 3x3 stride 2 tanh; convtranspose 4 2x1 stride 3"
                             " nobias relu", "--arith i14 --scale fraction"),
    "i7-transposed": pixels("convtranspose 3 2x2 stride 2 tanh; conv 3 4x4 stride 4 relu", "--arith i7 --shape 4x14x14"),
    "layers-300": IDX + "--seed 3 --batch 150 --epochs 1 --lr 0.1 --loss mse --model '"
                  + "dense 4 none; " * 290 + "dense 4 tanh dropout 0.2; " * 9 + "dense 10 none'",
    # Outputs that two to five layers read; three normalisations share the errors of a sum.
    "blocks-nested": pixels("conv 6 3x3 stride 9 tanh dropout 0.1; residual { residual { residual { conv 6 3x3 relu | "
                            "conv 6 1x3; batchnorm }; batchnorm | conv 6 1x1 silu; residual { batchnorm } relu }; "
                            "batchnorm | residual { conv 6 1x1 } relu dropout 0.2; conv 6 1x1; batchnorm } relu",
                            "--momentum 0.9 --grain 20"),
    # given means and deviations of channels: bytes and floats
    "scale-numbers": pixels("conv 5 3x3 stride 4 relu; maxpool 2", "--shape 4x14x14"
                            " --scale 0.5,0.25,0,0.485/0.25,0.5,1,0.229"),
    "scale-numbers-floats": SMALL + TWO + "--data {decimals} --label last --shape 1x7x7 --scale 0.125/3"
                            " --loss cross-entropy --lr 0.05",
    # 24.10: with dropout, before pixels and in the last layer; in integers, whose padding is not 0
    "hard": pixels("conv 6 3x3 stride 6 hardswish dropout 0.2; maxpool 2; conv 9 3x3 relu6; dense 16 hardsigmoid",
                   "--lr 0.1"),
    # 24.11: averages of validation with their own momentum
    "norm-words": pixels("conv 6 3x3 stride 7; batchnorm momentum 0.3 eps 0.01 relu; groupnorm 3 eps 1e-3 relu; globalpool;"
                         " layernorm eps 1e-6", "--valid 0.2"),
    # 24.12
    "nobias": pixels("conv 6 3x3 stride 7 nobias; batchnorm relu; conv 12 3x3 depthwise nobias tanh; dense 9 nobias tanh;"
                     " dense 7 relu; dense 6 nobias", "--weight-decay 0.01"),
    "i14-nobias": pixels("conv 6 3x3 stride 7 nobias; batchnorm relu; conv 6 3x3 nobias relu; dense 9 nobias tanh",
                         "--arith i14 --momentum 0.9"),
    # 24.13
    "norm-channels": pixels("conv 20 3x3 stride 6; layernorm channels eps 0.01 gelu dropout 0.1; conv 7 3x3 stride 2;"
                            " layernorm channels eps 0.1; globalpool; layernorm channels", "--batch 50 --grain 20"),
    # 24.14
    "layerscale": pixels("layerscale 0.5; conv 20 3x3 stride 7 tanh dropout 0.1; residual { layerscale 0.25 };"
                         " conv 7 3x3 stride 2; layerscale 0.75 relu dropout 0.2; globalpool; layerscale 1",
                         "--batch 50 --grain 20 --weight-decay 0.01"),
    # 24.33: at the end of paths, of features and of a block
    "droppath": pixels("conv 6 3x3 stride 7 relu droppath 0.3; residual { conv 6 3x3; batchnorm; layerscale 0.5 droppath"
                       " 0.4 } relu; residual { conv 6 1x1 gelu droppath 0.5 | batchnorm } droppath 0.1; dense 19 tanh"
                       " droppath 0.2", "--batch 50 --grain 20"),
    "i14-hard": IDX + SMALL + '--model "dense 33 hardswish dropout 0.2; dense 18 hardsigmoid; dense 12 relu6; dense 10'
                ' hardsigmoid" --loss mse --lr 0.2 --arith i14',
    "blocks-product-concat": pixels("conv 20 3x3 stride 9 tanh; product { globalpool; conv 4 1x1 relu; conv 20 1x1 "
                                    "sigmoid dropout 0.1 }; concat { conv 5 3x3 relu | product { conv 20 1x3 | conv 20 "
                                    "1x1 silu } }; residual { product { batchnorm | conv 25 1x1; globalpool } } relu; "
                                    "concat { concat { conv 3 1x1 } gelu | maxpool 1 } dropout 0.2",
                                    "--momentum 0.9 --grain 20"),
    # 24.52, 24.58: windows, turns, brightness and blur; a view between words that make new bytes; a box
    "augment-cutmix": pixels("conv 4 5x5 stride 5 relu", "--shape 4x14x14 --cutmix 1")
                      + " --augment 'jitter brightness 0.4 contrast 0.5; rotate 20 bilinear fill 9; pad 2; crop;"
                        " resizedcrop scale 0.3 1; blur 5'",
    # 24.34: after a warm-up, and in stages
    "exponential": SMALL + "--model 'dense 10 softmax' --data {decimals} --label last --scale standard --loss cross-entropy"
                   " --momentum 0.9 --schedule exponential --lr 0.001 --lr-gamma 1.3 --warmup 2",
    "exponential-stages": "--seed 3 --batch 64 --model 'dense 10 softmax' --data {decimals} --label last --scale standard"
                          " --loss cross-entropy --optimizer sgd --stages 'epochs 2 lr 0.01 schedule exponential lr-gamma 1.3"
                          " warmup 3; epochs 1 lr 0.1 schedule exponential lr-gamma 0.75'",
    # 24.57
    "mixup": SMALL + "--model 'dense 10 softmax' --data {decimals} --label last --scale standard --loss cross-entropy"
             " --optimizer sgd --lr 0.05 --mixup 0.4 --smoothing 0.1",
    # 24.61: a batchnorm before a block that trains, and the whole block
    "frozen": FROM_START.replace("--epochs 1", "--epochs 2") + "--freeze 0..1 --lr-depth 0.5 --ema 0.75 --weight-decay 0.01"
              " --clip 0.5 --valid 0.5 --grain 20",
    # 24.83: the start has this seed, too
    "new-last": START.replace("--epochs 1", "--epochs 2") + " --init-from {start} --new-last --keep last",
    "i14-frozen": FROM_START + "--freeze 0..5 --arith i14 --momentum 0.9 --grain 20",
    # 24.62, 24.63: averages decide the best epoch; a block is a part, and running averages have averages, too
    "lr-depth-ema": pixels("conv 6 3x3 stride 7 relu; batchnorm; residual { conv 6 1x1 tanh; conv 6 3x3 }; globalpool;"
                           " dense 19 gelu dropout 0.1", "--lr-depth 0.4 --ema 0.875 --optimizer adam --valid 0.3 --epochs 2 --keep"
                           " best"),
    # 24.70 to 24.76: targets that do not count; the first item has no others
    "segment": "--data {small} --labels {masks} --scale unit --shape 1x7x7 --model 'conv 2 3x3 stride 2 relu; upsample 2;"
               " conv 3 2x2 pad none tanh dropout 0.1; conv 18 1x1 softmax' --loss cross-entropy --smoothing 0.1 --seed 3"
               " --lr 0.5 --valid 0.2 --keep best --grain 20 --epochs 2 --batch 120",
    # 24.22, 24.23: a window, a turn with pixels from outside, and a box of the partner
    "segment-augment": "--data {small} --labels {masks} --scale unit --shape 1x7x7 --model 'conv 2 3x3 relu; conv 18 1x1"
                       " softmax' --loss cross-entropy --seed 3 --lr 0.5 --epochs 1 --batch 120 --grain 20 --augment 'rotate 30"
                       " bilinear; flip; resizedcrop ratio 0.4 1.4; pad 1; crop; cutout 2' --cutmix 0.5",
    "i14-segment": SMALL + "--data {small} --labels {halves} --scale fraction --shape 1x7x7 --model 'conv 5 3x3 relu;"
                   " conv 1 1x1 sigmoid' --loss binary --lr 0.5 --arith i14",
    "multilabel": SMALL + "--data {small} --labels {flags} --scale standard --model 'dense 9 tanh dropout 0.2; dense 17"
                  " sigmoid' --loss binary --optimizer adam --lr 0.01 --valid 0.2",
    "i7-multilabel": SMALL + "--data {small} --labels {flags} --scale unit --model 'dense 17 sigmoid' --loss binary"
                     " --optimizer sgd --lr 0.1 --arith i7",
    "blocks-i14-joined": pixels("product { conv 4 7x7 stride 7 sigmoid | concat { conv 3 7x7 stride 7 | conv 1 7x7 "
                                "stride 7 } }; concat { conv 13 1x1 relu } tanh; globalpool; product { dense 17 } "
                                "relu; concat { dense 3 tanh }", "--arith i14 --scale fraction"),
}

IDS = SMALL + "--optimizer sgd --scale none --tokens ids --labels {ids_labels} --lr 1e-3 "
TOKENS = SMALL + "--data {tokens} --label kind --scale none --loss cross-entropy --optimizer "
NEXT = SMALL + "--data {next} --tokens ids --task next --scale none --loss cross-entropy "
LENGTHS = (SMALL + "--data {lengths} --labels {ids_labels} --tokens ids --scale none --loss cross-entropy --grain 20 ")
TEXTS = "--data {texts} --label kind --loss cross-entropy --seed 3 "
# Contract 9.
NINTH = {
    # 25.85: a first layer and its norm, both branches of a block but for a norm, and the last layer
    "freeze-single": FROM_START + "--freeze 0..2,4..4,8..8 --ema 0.75 --weight-decay 0.01 --decay-on all --clip 0.5 --momentum 0.9"
                     " --grain 20",
    # 25.86: a factor other than 1; 25.87
    "lora": FROM_START.replace("dense 9 tanh dropout 0.1", "residual {{ dense 9 none | dense 3 nobias none; layerscale 1.5"
                               " none; dense 9 nobias none }} tanh dropout 0.1") + "--lora '3 alpha 4.5 on 7' --grain 20",
    "i14-freeze-single": FROM_START + "--freeze 2..2,7..7 --arith i14 --momentum 0.9 --grain 20",
    # 25.40: a dense first layer takes them as numbers; the second table has numbers that float32 rounds
    "tokens": IDS + "--data {ids} --loss cross-entropy --model 'dense 24 tanh; dense 10 softmax' --valid 0.2",
    "tokens-32": IDS + "--data {ids32} --loss mse --model 'dense 24 sigmoid; dense 10 tanh'",
    # 25.10: tokens that occur several times in an item and in a grain; channels of more than a panel
    "embedding": TOKENS + "momentum --momentum 0.9 --lr 0.1 --grain 20 --model 'embedding 300 20 dropout 0.2; conv 6 1x3 relu;"
                 " layernorm channels; globalpool; dense 10 softmax'",
    "embedding-adamw": TOKENS + "adamw --weight-decay 0.1 --decay-on weights --lr 0.01 --model 'embedding 300 3 tanh; dense 10 softmax'"
                       " --clip 0.5 --ema 0.75 --lr-depth 0.5 --valid 0.3",
    # 25.20: of all positions, and heads that are no multiples of a vector; after dropout
    "attention": pixels("conv 36 4x4 stride 4 tanh dropout 0.2; attention 2; conv 30 1x1 nobias; attention 3 causal kv 1"
                        " window 20; conv 12 1x1 tanh", "--batch 50 --grain 20 --momentum 0.9"),
    # as the first layer, with two readers, a head of more than four vectors, and of one position
    "attention-blocks": SMALL + "--data {decimals} --label last --shape 7x1x7 --scale standard --loss cross-entropy --lr 0.05"
                        " --model 'attention 5 kv 1 causal; conv 210 1x2 stride 2; residual {{ attention 1 causal; conv 210"
                        " 1x1 }}; residual {{ layernorm channels; conv 48 1x1; attention 4 kv 2 causal window 2; conv 210 1x1"
                        " }}; globalpool; attention 10 kv 10; dense 10 softmax'",
    # 25.12: after tokens, after pixels of several rows, in a block, of features
    "position": TOKENS + "sgd --lr 0.1 --grain 20 --model 'embedding 300 20; position learned tanh dropout 0.2; residual {{ conv"
                " 20 1x1; position learned }}; globalpool; position learned; dense 10 softmax' --weight-decay 0.1 --decay-on weights",
    "position-pixels": pixels("conv 5 3x3 stride 7; position learned relu; globalpool", "--momentum 0.9"),
    # 25.80: before and after a normalisation, and with integers
    "gelu-tanh": pixels("conv 6 3x3 stride 3 gelu-tanh dropout 0.2; batchnorm gelu-tanh; dense 16 gelu-tanh", "--lr 0.1"),
    "i14-gelu-tanh": IDX + SMALL + '--model "dense 33 gelu-tanh; dense 18 gelu-tanh dropout 0.2; dense 10 softmax"'
                     " --loss cross-entropy --lr 0.2 --arith i14",
    # 25.30: of pixels, of features, of more than a panel, in a block, with dropout; and with integers
    "rmsnorm": pixels("conv 20 3x3 stride 6; rmsnorm eps 0.01 gelu dropout 0.1; conv 7 3x3 stride 2; residual { rmsnorm; conv"
                      " 7 1x1 }; globalpool; rmsnorm tanh", "--batch 50 --grain 20 --momentum 0.9"),
    "rmsnorm-i14": pixels("conv 18 3x3 stride 4; rmsnorm relu; conv 5 3x3; rmsnorm eps 0.1; dense 9; rmsnorm tanh",
                          "--arith i14"),
    # 25.31: heads that are no multiples of a vector, by the rule of Llama 3; heads of two panels; in a block
    "rotary": pixels("conv 48 4x4 stride 4 tanh dropout 0.2; position rotary 2 kv 1 base 500 scale 2 llama3 0.5 4 30; attention"
                     " 2 kv 1 causal; conv 96 1x1 nobias; residual { position rotary 1 }; attention 1; conv 12 1x1 tanh",
                     "--batch 50 --grain 20 --momentum 0.9"),
    # 25.13: after tokens, and of features; 25.31: a factor for all frequencies
    "sinusoid": TOKENS + "sgd --lr 0.1 --grain 20 --model 'embedding 300 24; position sinusoid tanh dropout 0.2; position rotary 2"
                " scale 4; attention 2; conv 8 1x1; globalpool; position sinusoid; dense 10 softmax'",
    # 25.14: targets that do not count, and inputs that are not tokens
    # 25.15: the table has two partials, of tokens and of channels that fill no panel
    "tied": SMALL + "--data {next} --tokens ids --task next --scale none --loss cross-entropy --optimizer adamw --lr 0.01"
            " --weight-decay 0.1 --decay-on matrices --grain 20 --clip 0.5 --ema 0.75 --lr-depth 0.5 --model 'embedding 40 20 dropout 0.1; residual"
            " {{ layernorm channels; conv 20 1x1 gelu }}; conv 40 1x1 tied softmax'",
    # 25.16, 25.17
    "decay-all": TOKENS + "adamw --weight-decay 0.1 --decay-on all --lr 0.01 --model 'embedding 300 20; layernorm channels; position"
                 " learned; layerscale 0.5; conv 9 1x1 relu; globalpool; dense 8 tanh; dense 10 softmax'",
    "lr-min": IDX + TWO + SMALL + "--loss mse --lr 0.4 --schedule cosine --lr-min 0.07 --warmup 2",
    "lr-min-stages": IDX + TWO + "--seed 3 --batch 64 --loss mse --stages 'epochs 1 lr 0.4; epochs 2 lr 0.1 schedule cosine lr-min 0.01'",
    "next": NEXT + "--optimizer adam --lr 0.01 --grain 20 --valid 0.2 --keep best --smoothing 0.1 --model 'embedding"
            " 40 20; conv 17 1x1 gelu dropout 0.1; residual {{ layernorm channels; conv 17 1x1 }}; conv 40 1x1 softmax'",
    # 25.24: integers of positions, between attention and others of floats; a dense layer reads the whole sequence
    "attention-i14": NEXT + "--arith i14 --optimizer adam --lr 0.01 --grain 20 --model 'embedding 40 20; position learned;"
                     " residual {{ layernorm channels; conv 60 1x1; attention 4 causal; product {{ conv 20 1x1 nobias | conv 20"
                     " 1x1 sigmoid dropout 0.1 }} }}; conv 40 1x1 softmax'",
    "attention-i7-pixels": pixels("conv 35 4x4 stride 4 tanh; position learned; attention 3 kv 1; conv 21 1x1 tanh; attention 1"
                                  " kv 1; globalpool", "--arith i7 --grain 20 --momentum 0.9"),
    # 25.25: heads of more than a panel, which share keys, in a window; of one position; of items of all lengths
    "attention-integers": NEXT + "--arith i14 --attention-arith integers --optimizer adam --lr 0.01 --grain 20 --model 'embedding 40"
                          " 20; position learned; residual {{ layernorm channels; conv 100 1x1; attention 3 kv 1 causal window 9; conv"
                          " 20 1x1 }}; residual {{ conv 60 1x1; attention 4 causal; conv 20 1x1 }}; conv 40 1x1 softmax'",
    "attention-integers-i7": pixels("conv 36 6x6 stride 6 tanh; attention 1 kv 1; conv 72 1x1; attention 4 kv 2 causal;"
                                    " globalpool; attention 1", "--arith i7 --attention-arith integers --grain 20 --batch 50"),
    "attention-integers-i21": LENGTHS + "--arith i21 --attention-arith integers --optimizer adam --lr 0.01 --model 'embedding 40 18;"
                              " position learned; residual {{ layernorm channels; conv 64 1x1; attention 4 kv 2; conv 18 1x1 }};"
                              " globalpool; dense 10 softmax'",
    "embedding-i21": TOKENS + "momentum --momentum 0.9 --lr 0.1 --arith i21 --model 'embedding 300 20; conv 18 1x1 relu; conv 8"
                     " 1x1 groups 2; dense 9 tanh; dense 10 softmax' --weight-decay 0.1 --decay-on weights --grain 20",
    # 25.27: windows that reach over the ends, with gaps, that skip positions, and back to more of them
    "windows-i7": LENGTHS + "--arith i7 --optimizer momentum --momentum 0.9 --lr 0.1 --model 'embedding 40 20 dropout 0.2;"
                  " position sinusoid; concat {{ concat {{ conv 18 1x3 relu; pool max | conv 5 1x5 dilation 2 tanh; pool last }}"
                  " | concat {{ conv 6 1x2 stride 3; convtranspose 7 1x4 stride 1x2; pool mean | pool first }} }}; dense 10 softmax'",
    # 25.28, and angles between products of integers
    "tied-i14": NEXT + "--arith i14 --optimizer adam --lr 0.01 --grain 20 --model 'embedding 40 20 dropout 0.1; residual {{ conv 60 1x1"
                " nobias; position rotary 2; attention 2 causal; conv 20 1x1 }}; conv 20 1x3; conv 40 1x1 tied softmax'",
    # 25.37, 25.38: items of all lengths; a pool of pixels, also as the first layer
    "lengths": LENGTHS + "--optimizer momentum --momentum 0.9 --lr 0.1 --model 'embedding 40 20 dropout 0.2; concat {{ concat {{ conv"
               " 18 1x3 relu; pool max | pool first }} | concat {{ conv 5 1x1; pool mean | pool last }} }}; dense 10 softmax'",
    "lengths-attention": LENGTHS + "--optimizer adam --lr 0.01 --valid 0.2 --model 'embedding 40 18; position learned; residual {{"
                         " layernorm channels; conv 64 1x1; attention 4 kv 2; conv 18 1x1 }}; residual {{ conv 54 1x1 tanh;"
                         " attention 3 causal window 4 }}; pool mean; dense 10 softmax'",
    "group-lengths": LENGTHS + "--group-lengths 3 --optimizer adam --lr 0.01 --model"  # 25.89: one window has a rest
                     " 'embedding 40 18 dropout 0.2; pool mean; dense 10 softmax'",
    # 25.39: a class for each token
    "tags": SMALL + "--data {lengths} --labels {tags} --tokens ids --scale none --loss cross-entropy --grain 20 --optimizer adam"
            " --lr 0.01 --valid 0.2 --smoothing 0.1 --model 'embedding 40 18; position learned; residual {{ conv 54 1x1;"
            " attention 3; conv 18 1x1 dropout 0.1 }}; layernorm channels; conv 5 1x1 softmax'",
    # 25.34: states in both directions, of items of all lengths and of pixels; widths that fill panels and not
    "lstm": LENGTHS + "--optimizer adam --lr 0.02 --model 'embedding 40 18; concat {{ lstm 16 dropout 0.2 | gru 9 reverse relu"
            " }}; lstm 13; pool last; dense 10 softmax'",
    "gru": pixels("conv 8 7x7 stride 7 tanh; gru 17 reverse; residual { lstm 17 dropout 0.1 }; conv 32 1x1; recurrent lstm tanh;"
                  " gru 16; pool last", "--grain 20 --momentum 0.9 --lr 0.05"),
    "pool-pixels": pixels("concat { pool max | conv 3 5x5 stride 9 tanh; pool mean }; dense 9 tanh", "--lr 0.1"),
    "pool-places": pixels("conv 18 3x3 stride 7 tanh; concat { concat { pool last | pool first } |"
                          " concat { pool mean | pool max } }", "--lr 0.1"),
    # 25.60: lists of inputs, beside numbers and categories; a second column of texts; networks that write all inputs out
    "texts": TEXTS + "--scale standard --missing mean --model 'dense 10 softmax' --optimizer lbfgs --epochs 4"
             " --weight-decay 1e-3",
    "texts-steps": TEXTS + "--scale none --missing zero --text title --drop size --model 'dense 10 softmax' --momentum 0.9"
                   " --lr 0.5 --batch 64 --epochs 2 --valid 0.2",
    "texts-hidden": TEXTS + "--scale robust --missing zero --model 'dense 9 tanh dropout 0.2; dense 10 softmax'"
                    " --optimizer adamw --lr 0.01 --batch 64 --epochs 2",
    "texts-chars": TEXTS + "--scale none --missing zero --text-features chars:2..3,words --model 'dense 10 softmax'"
                   " --momentum 0.9 --lr 0.5 --batch 64 --epochs 1",  # 24.84
}

RECIPES |= SIXTH | BLOCKS | GROUPS | INTEGER_BLOCKS | EIGHTH | NINTH
# Recipes of tables name the optimiser: the one that a table has by default is tuned to its size.
for _name in """early-stopping-file decimals-standard decimals-none hard-standard tiny-standard binary
             names-texts missing-mean missing-median missing-zero missing-drop weights weights-best
             weights-mean class-weight-binary i14-missing-mean i14-sizes-none i7-sizes-standard
             i21-tiny-standard i14-hard-standard i7-binary i14-weights minmax-floats
             robust-weights wide wide-robust""".split():
    RECIPES[_name] += " --optimizer sgd"
SAME_AS = {name: "tanh-mse-sgd" for name in ("from-idx-gz", "from-csv", "from-csv-gz")}


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def synth(command, folder):
    """Let the program draw the digits into IDX files: (images, labels)."""
    images, labels = folder / "digits-images.idx", folder / "digits-labels.idx"
    _run([*command, "data", "synth", "digits", "--items", str(ITEMS), "--seed", "11",
          "-o", str(images), "--labels", str(labels)])
    return images, labels


# Words for a training of few digits, from files. A process without --data draws 20,000 of them first,
# which takes half a second: longer than what most tests let it do with them.
FEW = {name: ROOT / ".cache" / "tests" / f"few-{name}.idx" for name in ("data", "labels", "test", "test-labels")}
DIGITS = [word for name, path in FEW.items() for word in (f"--{name}", str(path))]
FEW_ITEMS = 4000


def make_few_digits(command):
    """The files of DIGITS, which stay from run to run; one process at a time."""
    if FEW["test-labels"].exists():
        return
    for first, items, images, labels in ((0, FEW_ITEMS, "data", "labels"), (FEW_ITEMS, 500, "test", "test-labels")):
        made = [FEW[name].with_suffix(".made") for name in (images, labels)]
        _run([*command, "data", "synth", "digits", "--items", str(items), "--first", str(first),
              "-o", str(made[0]), "--labels", str(made[1])])
        for path, name in zip(made, (images, labels)):
            path.rename(FEW[name])


def make_data(command, folder):
    """Every file that the recipes name, made from the program's digits by Python alone."""
    images, labels = synth(command, folder)
    raw, kinds = images.read_bytes(), labels.read_bytes()
    _, count, rows, columns = struct.unpack(">IIII", raw[:16])
    size = rows * columns
    pixels = [raw[16 + i * size:16 + (i + 1) * size] for i in range(count)]
    files = {name: folder / f"digits.{name.replace('_', '.')}"
             for name in ("csv", "csv_gz", "images_gz", "labels_gz", "decimals", "sizes", "hard",
                          "tiny", "named", "signed", "mixed", "real", "whole", "pair", "typed",
                          "weighed", "weighed_real", "wide", "dates", "texts", "small", "masks", "halves", "flags", "tokens",
                          "ids", "ids32", "ids_labels", "next", "lengths", "tags")}

    with open(files["csv"], "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["label"] + [f"f{k}" for k in range(size)])
        writer.writerows([kind, *row] for kind, row in zip(kinds[8:], pixels))
    # Every 16th value, written with decimals, signs and exponents; the label comes last.
    with open(files["decimals"], "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([f"f{k}" for k in range(size // 16)] + ["label"])
        writer.writerows([*(f"{(row[k] - 80) / 10:.2f}" if k % 3 else f"{row[k] / 7:.6e}"
                            for k in range(0, size, 16)), kind]
                         for kind, row in zip(kinds[8:], pixels))
    # Numbers of 300 tokens.
    with open(files["tokens"], "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["kind", *(f"t{k}" for k in range(11))])
        writer.writerows([kind, *((row[180 + 37 * k] * 7 + k // 4) % 300 for k in range(11))]
                         for kind, row in zip(kinds[8:], pixels))
    # The same in sizes from 1e-7 to 1e5, and a feature that is tiny.
    with open(files["sizes"], "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerows([kind, f"{(row[8] + 1) * 1e-30:.3e}",
                          *(f"{row[k]}.5e{k // 16 % 11 - 7}"
                            for k in range(0, size, 16))] for kind, row in zip(kinds[8:], pixels))
    with open(files["hard"], "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerows([*recipe_tables.hard_cells(row), kind] for kind, row in zip(kinds[8:], pixels))
    with open(files["tiny"], "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerows([kind, *recipe_tables.tiny_cells(row)] for kind, row in zip(kinds[8:], pixels))
    # Names of columns and classes; the label stands between them.
    with open(files["named"], "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        head = [f"pixel {k}" for k in range(0, size, 16)]
        head[:5] = ['comma, "quote"', "back\\slash", "\u00fcber", "tab\there", "f0"]
        writer.writerow([*head[:20], "kind of \u2116", *head[20:]])
        writer.writerows([*cells[:20], CLASS_NAMES[kind], *cells[20:]]
                         for kind, row in zip(kinds[8:], pixels)
                         for cells in [[f"{row[k] / 8 - 3:.3f}" for k in range(0, size, 16)]])
    # Numbers and texts, some missing in every fourth item.
    words = ["low", "Mid", "h\u00f6her", "4"]
    with open(files["typed"], "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow([f"c{k}" for k in range(0, size, 16)] + ["kind"])
        for i, (kind, row) in enumerate(zip(kinds[8:], pixels)):
            cells = [words[row[k] // 64] if k % 80 == 0 else f"{row[k] / 7 - 9:.6g}"
                     for k in range(0, size, 16)]
            gaps = [""] * 2 + ["NA", "?", "-nan"]
            writer.writerow([gaps[(i + k) % 5] if i % 4 == 1 and (i + k) % 3 == 0 else cell
                             for k, cell in enumerate(cells)] + [kind])
    # Whole numbers that float32 cannot hold: days, nanoseconds, and both signs; one of eight is missing.
    with open(files["wide"], "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["day", "kind", "time", "far", *(f"p{k}" for k in range(0, size, 49))])
        for i, (kind, row) in enumerate(zip(kinds[8:], pixels)):
            cells = [20230100 + kind * 10 + row[180] % 10, kind, 1_700_000_000_123_456_789 + i * 10**9,
                     (-1) ** row[401] * (2**53 + row[400] * 2**40), *row[::49]]
            writer.writerow(["" if i % 8 == 1 and k != 1 else cell for k, cell in enumerate(cells)])
    # Days, moments in two zones, and days in another form, from year 1 to 9999; one of eight is missing.
    with open(files["dates"], "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["day", "kind", "time", "form", *(f"p{k}" for k in range(0, size, 49))])
        for i, (kind, row) in enumerate(zip(kinds[8:], pixels)):
            date = f"{1 + (i * 17 + row[180]) % 9999:04d}-{1 + kind:02d}-{1 + row[401] % 28:02d}"
            zone = "+05:30" if i % 3 else "Z"
            cells = [date, kind, f"{2000 + kind}-02-28T{row[400] % 24:02d}:{i % 60:02d}:{row[180] % 60:02d}.{i:06d}{zone}",
                     f"{1 + i % 28}.{1 + kind}.{1900 + row[400]}", *row[::49]]
            writer.writerow(["" if i % 8 == 1 and k != 1 else cell for k, cell in enumerate(cells)])
    # Bytes, and classes with numbers that are not those from 0.
    with open(files["signed"], "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([f"p{k}" for k in range(0, size, 8)] + ["class"])
        writer.writerows([*row[::8], 40 * kind - 100] for kind, row in zip(kinds[8:], pixels))
    recipe_tables.write_real(files, pixels, kinds[8:])
    recipe_tables.write_texts(files["texts"], pixels, kinds[8:])
    recipe_tables.write_weighed(files, pixels, kinds[8:], CLASS_NAMES)
    recipe_arrays.write(files, pixels)
    recipe_arrays.write_tokens(files, pixels, kinds[8:])
    # Numbers and texts as classes, two of them the same number.
    with open(files["mixed"], "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["class", *(f"f{k}" for k in range(size // 8))])
        writer.writerows([MIXED_NAMES[kind], *row[::8]] for kind, row in zip(kinds[8:], pixels))
    for plain, packed in ((files["csv"], "csv_gz"), (images, "images_gz"), (labels, "labels_gz")):
        files[packed].write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    return {**files, "images": images, "labels": labels, "start": make_start(command, folder / "start", files)}


def make_start(command, model, files):
    """A model of a few steps, whose running averages are not those of a new network."""
    words = shlex.split(START.format(**files))
    _run([*command, "train", *words, "--quiet", "-o", str(model)])
    return model


def train(command, name, files, model, *more):
    """Train the recipe into the file `model`; return the file's SHA-256."""
    arguments = [a.format(**files) for a in shlex.split(RECIPES[name])]
    _run([*command, "train", *arguments, *more, "--quiet", "-o", str(model)])
    return sha256(model)


def table():
    """tests/digests.txt as {name: sha256}."""
    lines = [line.split() for line in TABLE.read_text().splitlines()
             if line and not line.startswith("#")]
    return {name: digest for name, digest in lines}


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}\nended with {done.returncode}\n"
                             f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}")


def update(program):
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        files = make_data([program], folder)
        rows = {"data-images": sha256(files["images"]), "data-labels": sha256(files["labels"])}
        for name in RECIPES:
            rows[name] = train([program], name, files, folder / "model")
    TABLE.write_text("# SHA-256 of what tests/recipes.py makes; see there before changing a line.\n"
                     + "".join(f"{name} {digest}\n" for name, digest in rows.items()))
    print(f"{len(rows)} digests written to {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1] != "--update":
        sys.exit(__doc__.strip())
    update(sys.argv[2] if len(sys.argv) == 3 else str(ROOT / "build" / "quern"))
