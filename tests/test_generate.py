"""Generation: against the oracle's whole passes, and whatever is computed at the same time."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))

import generate as oracle  # noqa: E402

MODEL = """embedding {V} 12; position learned; layerscale 0.9;
    residual {{ layernorm channels; conv 24 1x1; attention 4 causal kv 2; conv 12 1x1 dropout 0.1 }};
    product {{ conv 12 1x1 silu | conv 12 1x1 sigmoid }};
    residual {{ layernorm channels; conv 36 1x1; attention 2 causal window 5; conv 12 1x1 }};
    layernorm channels; conv {V} 1x1 softmax"""
TEXT = "the cat sees the sea. a dog hears the moon. the king likes an apple.\n" * 20


def run(quern, *words, **more):
    return subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60, **more)


def train(quern, folder, *more, model=MODEL, tokens="chars", name="m.st"):
    (folder / "text.txt").write_text(TEXT)
    size = len(set(TEXT)) + 1
    done = run(quern, "train", "--data", folder / "text.txt", "--tokens", tokens, "--context", 7, "--task", "next",
               "--model", model.format(V=size), "--optimizer", "adamw", "--lr", "0.01", "--batch", 16, "--epochs", 4,
               "--quiet", "-o", folder / name, *more)
    assert done.returncode == 0, done.stderr
    return folder / name


@pytest.fixture(scope="module")
def model(quern, tmp_path_factory):
    return train(quern, tmp_path_factory.mktemp("generate"))


def generate(quern, model, *words):
    done = run(quern, "generate", model, "--json", "--logprobs", *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


OPTIONS = {
    "greedy": dict(temperature=0),
    "all": dict(temperature=1.5, seed=7),
    "top-p": dict(temperature=0.7, top_p=0.6, repetition=1.3),
    "both": dict(top_k=6, top_p=0.75, repetition=0.9, seed=2**40 + 5),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_answers_are_those_of_the_text(quern, model, name):
    """25.70 to 25.75. An answer is longer than the context of 7, so the text slides."""
    given = dict(seed=1, temperature=0.8, top_k=0, top_p=1, repetition=1) | OPTIONS[name]
    words = [word for key, value in OPTIONS[name].items() for word in ("--" + key.replace("_", "-"), value)]
    network = oracle.Network(model)
    vocabulary = json.loads(network.notes["tokenizer"])["vocabulary"]
    prompt = "the cat" if name != "both" else "a dog hears the moon"
    got = generate(quern, model, "--prompt", prompt, "--tokens", 9, "--answers", 2, *words)
    for number, answer in enumerate(got):
        tokens, scores = oracle.generate(network, [vocabulary.index(ord(c)) for c in prompt], 9, len(vocabulary) + 1,
                                         number, **given)
        assert answer["tokens"] == tokens and answer["slid"]
        assert answer["text"] == "".join(chr(([*vocabulary, 0xFFFD])[t]) for t in tokens)
        assert [float(f"{x:.9g}") for x in answer["log_probabilities"]] == [float(f"{x:.9g}") for x in scores]


def test_answers_depend_on_their_prompt_alone(quern, model, tmp_path):
    """Not on other prompts, their order, how many are computed at once, the threads."""
    prompts = ["the cat", "a", "the king likes an apple.", "sea", "the cat sees the sea. a dog hears"]
    alone = {p: generate(quern, model, "--prompt", p, "--tokens", 15, "--threads", 1)[0] for p in prompts}
    for seed in range(4):
        draw = random.Random(seed)
        order = draw.choices(prompts, k=9)
        (tmp_path / "p.txt").write_text("\n".join(order) + "\n")
        got = generate(quern, model, "--prompts", tmp_path / "p.txt", "--tokens", 15, "--batch", draw.randint(1, 9),
                       "--threads", draw.randint(1, 3))
        assert got == [alone[p] for p in order]
