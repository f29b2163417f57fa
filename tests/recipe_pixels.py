"""Recipes of windows over pixels (docs/exactness.md 16): those of tests/recipes.py without blocks and normalisations."""


def pixels(model, more):
    """The recipe of a model, with other options in place of the usual ones."""
    own = more.split()
    options = {"--scale": "unit", "--epochs": "1", "--seed": "3", "--batch": "64",
               "--loss": "cross-entropy", "--lr": "0.05", **dict(zip(own[::2], own[1::2]))}
    model = model.replace("{", "{{").replace("}", "}}")  # of residual blocks; {words} are files
    return (f'--data {{images}} --labels {{labels}} --model "{model}; dense 10 softmax" '
            + " ".join(f"{option} {value}" for option, value in options.items()))


WINDOWS = {f"pixels-{name}": pixels(model, more) for name, model, more in [
    ("lenet", "conv 8 5x5 relu; maxpool 2; conv 16 5x5 relu; maxpool 2; dense 32 relu", "--momentum 0.9"),
    ("one-channel", "conv 1 3x3 relu; maxpool 4", ""),
    ("panels", "conv 33 3x3 stride 4 relu; conv 17 3x3 tanh", ""),
    ("same-as-dense", "conv 12 28x28 pad none tanh", ""),
    ("one-by-one", "conv 5 3x3 stride 3 relu; conv 7 1x1 sigmoid; conv 3 1x1 none", ""),
    ("strided-one-by-one", "conv 6 3x3 stride 2 relu; conv 9 1x1 stride 2 tanh", ""),
    ("stride-2", "conv 6 3x3 stride 2 relu; conv 8 3x3 stride 2 relu", "--optimizer adam --lr 0.002"),
    ("stride-3x2", "conv 6 4x5 stride 3x2 pad none tanh; conv 4 2x2 stride 1x3 tanh", ""),
    ("even", "conv 6 2x2 relu; conv 6 4x4 pad 2 stride 2 tanh", ""),
    ("wide-pad", "conv 4 3x3 pad 4 stride 2 relu; conv 5 3x3 pad 3x2 stride 4 relu", ""),
    ("long", "conv 4 1x7 stride 2 relu; conv 6 7x1 stride 2 relu", ""),
    ("dilated", "conv 4 3x3 dilation 2 stride 2 relu; conv 6 3x3 dilation 3x2 relu", ""),
    ("dilated-none", "conv 4 3x3 dilation 5 pad none relu; conv 6 2x3 dilation 4 pad none tanh", ""),
    ("maxpool-overlap", "conv 4 3x3 stride 2 relu; maxpool 3 stride 2; maxpool 2 stride 1", ""),
    ("maxpool-gap", "conv 4 3x3 tanh; maxpool 2x3 stride 5x4", ""),
    ("maxpool-first", "maxpool 3; conv 4 3x3 relu", ""),
    ("avgpool", "conv 4 3x3 relu; avgpool 2; conv 17 3x3 tanh; avgpool 3 stride 2", ""),
    ("avgpool-overlap", "avgpool 3 stride 2; conv 6 3x3 relu; avgpool 5x3 stride 1", ""),
    ("globalpool", "conv 6 3x3 stride 2 relu; conv 20 3x3 stride 2 relu; globalpool", ""),
    ("globalpool-first", "globalpool; dense 5 tanh", ""),
    ("behind-features", "dense 18 relu; globalpool; conv 7 1x1 tanh", ""),
    ("dropout", "conv 6 3x3 stride 2 relu dropout 0.3; maxpool 2; conv 8 3x3 tanh dropout 0.5;"
                " dense 16 sigmoid dropout 0.2", ""),
    ("standard", "conv 6 3x3 stride 2 relu; maxpool 2", "--scale standard"),
    ("scale-none", "conv 6 3x3 stride 2 tanh", "--scale none --lr 0.0005"),
    ("mse", "conv 6 3x3 stride 2 tanh", "--loss mse"),
    ("adamw", "conv 6 3x3 stride 2 relu; maxpool 2", "--optimizer adamw --lr 0.002 --weight-decay 0.1"),
    ("decay", "conv 6 3x3 stride 2 relu; maxpool 2", "--weight-decay 0.01 --momentum 0.5"),
    ("grain-1", "conv 4 3x3 stride 2 relu; maxpool 2", "--grain 1"),
    ("grain-7", "conv 4 3x3 stride 2 relu; maxpool 2", "--batch 50 --grain 7"),
    ("grain-beyond", "conv 18 3x3 stride 3 relu", "--batch 300 --grain 1000"),
    ("batch-1", "conv 4 3x3 stride 4 relu", "--batch 1"),
    ("batch-5", "conv 16 3x3 stride 3 relu; conv 16 3x3 relu", "--batch 5 --grain 2"),
    ("best", "conv 4 3x3 stride 2 relu", "--epochs 4 --lr 2 --valid 0.3 --keep best"),
    ("lecun", "conv 4 3x3 stride 2 relu; conv 4 3x3 sigmoid", "--init lecun"),
    ("glorot", "conv 4 3x5 stride 2 relu", "--init glorot"),
    ("weights", "conv 4 3x3 stride 2 relu", "--class-weight balanced"),
    ("deep", "; ".join(["conv 9 3x3 stride 3 relu"] + ["conv 9 3x3 relu"] * 6), "--lr 0.01"),
    ("colours", "conv 7 3x3 relu; maxpool 2; conv 5 3x3 relu", "--shape 4x14x14"),
    ("many-channels", "conv 20 3x3 relu; maxpool 3", "--shape 49x4x4"),
    ("one-row", "conv 6 1x5 relu; maxpool 1x4", "--shape 7x1x112"),
]}

# Products of integers over pixels (docs/exactness.md 17.12).
INTEGER_WINDOWS = {f"pixels-{name}": f"{pixels(model, more)} --arith {name.split('-')[0]}"
                   for name, model, more in [
    ("i14-lenet", "conv 8 5x5 relu; maxpool 4; conv 16 5x5 relu; maxpool 2; dense 32 relu", "--momentum 0.9"),
    ("i7-dropout", "conv 6 3x3 stride 2 relu dropout 0.3; maxpool 2; conv 18 3x3 tanh dropout 0.5;"
                   " dense 16 sigmoid dropout 0.2", "--optimizer adam --lr 0.002"),
    ("i21-dilated", "conv 4 3x3 dilation 2 stride 2 relu; conv 6 3x3 dilation 3x2 relu", ""),
    ("i14-wide-pad", "conv 4 3x3 pad 4 stride 2 sigmoid; conv 5 3x3 pad 3x2 stride 4 relu", ""),
    ("i7-standard", "avgpool 3 stride 2; conv 17 3x3 stride 2 tanh; conv 33 3x3 stride 2 none; globalpool",
     "--scale standard"),
    ("i21-grain-7", "conv 5 3x3 stride 3 relu; conv 7 1x1 sigmoid; conv 3 1x1 none", "--batch 50 --grain 7"),
    ("i14-features", "dense 18 relu; globalpool; conv 7 1x1 tanh", ""),
    ("i14-fraction", "maxpool 2; conv 20 3x3 stride 2 relu; conv 20 3x3 stride 2 tanh",
     "--scale fraction --optimizer adamw --lr 0.002 --weight-decay 0.1 --unit 20"),
]}
