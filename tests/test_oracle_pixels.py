"""Sections 16 and 17 of docs/exactness.md: `quern train` against the oracle, on networks with pixels."""

import re

import pytest

from test_oracle import options, sets, train  # noqa: F401

JOBS = {
    "conv-pool-dropout": (
        "idx",
        {
            "--shape": "1x7x6",
            "--scale": "unit",
            "--model": "conv 5 3x3 relu dropout 0.2; maxpool 2; conv 19 3x2 stride 2x1 pad 1 tanh dropout 0.25; "
                       "dense 10 softmax",
            "--loss": "cross-entropy",
            "--optimizer": "momentum",
            "--momentum": "0.9",
            "--weight-decay": "0.001",
        },
    ),
    "conv-colour-means": (
        "csv-u8-gz",
        {
            "--shape": "2x2x2",
            "--scale": "standard",
            "--model": "conv 17 2 pad 1 sigmoid; avgpool 2 stride 1; conv 3 1 leaky_relu; globalpool; "
                       "dense 4 softmax",
            "--loss": "cross-entropy",
            "--init": "glorot",
            "--lr": "0.3",
        },
    ),
    # 25.20: heads that share keys, a window, all positions, one position; two readers of its input
    "attention": (
        "idx",
        {
            "--shape": "1x7x6",
            "--scale": "unit",
            "--model": "conv 36 3x3 stride 2 tanh dropout 0.2; residual { attention 4 kv 1 causal window 5; conv 36 1x1 }; "
                       "layernorm channels; attention 3; attention 2 kv 2; conv 30 1x1 relu; rmsnorm eps 0.01; globalpool; attention 1; "
                       "dense 10 softmax",
            "--loss": "cross-entropy",
            "--optimizer": "adam",
            "--lr": "0.02",
            "--batch": 19,
            "--grain": 5,
        },
    ),
    "pool-first": (
        "idx",
        {
            "--shape": "1x7x6",
            "--scale": "fraction",
            "--model": "maxpool 2x3 stride 2x1; dense 9 relu; dense 10 softmax",
            "--loss": "mse",
            "--lr": "0.2",
            "--batch": 19,
            "--grain": 5,
        },
    ),
    "conv-strides-best": (
        "idx",
        {
            "--shape": "1x7x6",
            "--scale": "unit",
            "--model": "conv 6 3x3 stride 2 relu; conv 4 5x4 stride 3x2 pad 3 dilation 1x2 tanh; "
                       "dense 10 sigmoid",
            "--loss": "mse",
            "--optimizer": "adam",
            "--lr": "0.02",
            "--valid": "0.3",
            "--keep": "best",
            "--epochs": 3,
        },
    ),
    "conv-dilated": (
        "csv-f32",
        {
            "--shape": "1x3x3",
            "--label": "kind",
            "--scale": "standard",
            "--model": "conv 4 2x2 dilation 2 gelu; dense 5 silu dropout 0.1; dense 4 softmax",
            "--loss": "mse",
            "--init": "lecun",
            "--lr": "0.5",
        },
    ),
    # 24.62, 24.63: parts that begin with a normalisation, a layer and a block; others end with a pool and a normalisation
    "lr-depth": (
        "idx",
        {
            "--shape": "1x7x6",
            "--scale": "unit",
            "--model": "batchnorm; conv 5 3x3 stride 3; batchnorm relu; residual { conv 5 1x1 relu | residual { "
                       "conv 5 1x1 } }; groupnorm 1; maxpool 1; dense 10 softmax",
            "--loss": "cross-entropy",
            "--optimizer": "adamw",
            "--weight-decay": "0.01",
            "--lr": "0.01",
            "--lr-depth": "0.7",
            "--ema": "0.6",
            "--valid": "0.3",
            "--keep": "best",
            "--epochs": 2,
        },
    ),
    "conv-integers": (
        "idx",
        {
            "--shape": "1x7x6",
            "--scale": "unit",
            "--arith": "i14",
            "--model": "conv 5 3x3 relu dropout 0.2; maxpool 2; conv 19 3x2 stride 2x1 pad 1 tanh dropout 0.25; "
                       "dense 10 softmax",
            "--loss": "cross-entropy",
            "--optimizer": "momentum",
            "--momentum": "0.9",
            "--batch": 19,
            "--grain": 5,
        },
    ),
    "conv-colour-integers": (
        "csv-u8-gz",
        {
            "--shape": "2x2x2",
            "--scale": "standard",
            "--arith": "i21",
            "--model": "conv 17 2 pad 1 sigmoid; avgpool 2 stride 1; conv 3 1 none; globalpool; "
                       "dense 4 softmax",
            "--loss": "mse",
            "--lr": "0.3",
        },
    ),
    "conv-strides-of-7-bits": (
        "csv-f32",
        {
            "--shape": "1x3x3",
            "--label": "kind",
            "--scale": "standard",
            "--arith": "i7",
            "--model": "conv 4 2x2 stride 2 pad 1 silu; conv 6 2x3 stride 1x2 pad 1x2 dilation 2x1 none; "
                       "dense 5 gelu; dense 4 softmax",
            "--loss": "mse",
            "--unit": 20,
            "--lr": "0.5",
        },
    ),
    "residual": (
        "idx",
        {
            "--shape": "1x7x6",
            "--scale": "unit",
            "--model": "conv 5 3x3 stride 2 relu; residual { conv 6 3x3 stride 2 relu; conv 6 3x3 dropout 0.2 "
                       "| conv 6 1x1 stride 2; batchnorm } relu dropout 0.1; residual { conv 6 3x3; batchnorm } tanh; "
                       "dense 10 softmax",
            "--loss": "cross-entropy",
            "--optimizer": "momentum",
            "--momentum": "0.9",
        },
    ),
    "groups": (
        "idx",
        {
            "--shape": "1x7x6",
            "--scale": "unit",
            "--model": "conv 6 3x3 stride 2 groups 1 relu; conv 12 3x2 pad 1 depthwise stride 2 tanh dropout 0.2; "
                       "conv 8 3x3 groups 4 relu; conv 8 1x1 depthwise; dense 10 softmax",
            "--loss": "cross-entropy",
            "--init": "glorot",
            "--optimizer": "momentum",
            "--momentum": "0.9",
        },
    ),
    "residual-first": (
        "csv-u8-gz",
        {
            "--shape": "2x2x2",
            "--scale": "standard",
            "--model": "RESIDUAL{conv 2 3 tanh;}relu;residual { conv 3 1x1; avgpool 2|maxpool 2; conv 3 1 "
                       "sigmoid dropout 0.25 }; dense 4 softmax",
            "--loss": "mse",
            "--lr": "0.3",
        },
    ),
    "residual-features": (
        "csv-f32",
        {
            "--label": "kind",
            "--scale": "standard",
            "--model": "dense 12 relu; residual { dense 7 relu; dense 12 }; residual { dense 5 | dense 5 tanh } "
                       "relu; dense 4 softmax",
            "--loss": "cross-entropy",
            "--lr": "0.1",
        },
    ),
    "pool-behind-features": (
        "csv-f32",
        {
            "--label": "kind",
            "--scale": "standard",
            "--model": "dense 12 relu; globalpool; maxpool 1; dense 4 softmax",
            "--loss": "cross-entropy",
            "--lr": "0.1",
        },
    ),
    "batchnorm": (
        "idx",
        {
            "--shape": "1x7x6",
            "--scale": "unit",
            "--model": "conv 3 3x3 stride 2; batchnorm silu dropout 0.2; groupnorm 3; dense 9; "
                       "batchnorm tanh; layernorm gelu; dense 10 softmax",
            "--loss": "cross-entropy",
            "--optimizer": "momentum",
            "--momentum": "0.5",
            "--weight-decay": "0.01",
            "--batch": 19,
            "--grain": 6,
        },
    ),
}


@pytest.mark.parametrize("job", JOBS)
def test_model_files_are_the_same(job, sets, tmp_path):  # noqa: F811
    train(options(sets, JOBS[job]), tmp_path / "model.st")


def test_the_jobs_reach_every_word():
    models = " ".join(own["--model"] for _, own in JOBS.values())
    for word in ("conv", "maxpool", "avgpool", "globalpool", "stride", "pad", "dilation", "dropout",
                 "batchnorm", "groupnorm", "layernorm", "residual",
                 "groups", "depthwise"):
        assert re.search(rf"\b{word}\b", models), word
