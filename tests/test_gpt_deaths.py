"""Ranks of a GPT's training die ten times at drawn moments, on a processor, OpenCL and CUDA at once: the model has
the bytes of a process that was alone."""

import random

import numpy as np
import pytest

import devices
import launch
import machine
import recipes

BLOCK = "residual {{ layernorm channels; {} }}"
MODEL = "; ".join(["embedding 40 16; position learned", BLOCK.format("conv 48 1x1; attention 2 causal; conv 16 1x1"),
                   BLOCK.format("conv 32 1x1 gelu dropout 0.1; conv 16 1x1"), "layernorm channels",
                   "conv 40 1x1 tied softmax"])
EPOCHS = 24
LIVES = [4, 4, 2]  # deaths in the lives of a job of four ranks: nobody is left of the first two


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "tokens.npy"
    np.save(path, (np.arange(16 * 50 + 1) ** 2 % 39).astype(np.uint16))
    return path


def words(text, size, out, *more):
    return ["train", "--data", text, "--tokens", "ids", "--context", 16, "--task", "next", "--model", MODEL, "--optimizer",
            "adamw", "--weight-decay", 0.1, "--lr", 0.01, "--lr-min", 0.001, "--schedule", "cosine", "--warmup", 5,
            "--clip", 1, "--batch", 12, "--grain", 2, "--valid", 0.2, "--epochs", EPOCHS * size, *more, "-o", out]


def live(run, deaths, draw):
    """Kills so many ranks one after the other, some epochs after the life's begin or the death before. The events of its
    end; None where it was over before."""
    told = run.text
    for rank in draw.sample(range(run.ranks), deaths):
        seen = told().count('"event":"epoch"') + draw.randint(1, 2)
        run.until(lambda: told().count('"event":"epoch"') >= seen or run.over())
        if not run.kill(rank):
            return None
    codes = run.wait()
    assert sorted(codes) == [-9] * deaths + [0] * (run.ranks - deaths), run.story()
    return run.events("end")


def test_ten_deaths(quern, run_quern, text, tmp_path):
    (one, *_), opencl = devices.pocl()
    (two, *_), both = devices.emulated_cuda(environment=opencl)
    team = {1: ["--devices", two], 2: ["--devices", one], 3: ["--devices", f"cpu,{two}", "--shares", "1,1"]}
    draw = random.Random()
    seed = draw.randrange(10**6)
    print("seed", seed)
    draw.seed(seed)

    def attempt(size):
        alone, out, state = (tmp_path / f"{name}-{size}" for name in ("alone", "out", "state"))
        run_quern(*words(text, size, alone), "--quiet", "--devices", "cpu", "--threads", 1)
        for deaths in LIVES:
            with launch.Run(quern, "meet", 4, words(text, size, out, "--json", "--device-timeout", 600, "--checkpoint", state,
                                                    "--checkpoint-every", 2, "--resume"), each=team, environment=both) as run:
                end = live(run, deaths, draw)
            if end is None:
                return None
        assert len(end) == 1 and end[0]["resumed_from"] > 0
        return recipes.sha256(out) == recipes.sha256(alone)

    assert machine.caught(attempt)
