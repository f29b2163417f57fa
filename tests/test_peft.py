"""`quern model export --names peft`: adapters of a checkpoint of transformers, as the package peft loads them."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import checkpoints as cp
from test_pretrained import run, taken

PREFIX = "base_model.model."


def adapted(quern, folder, config, tensors, lora, *more):
    """The base, its adapter, and the predictions of both."""
    cp.save(folder / "c", config, tensors)
    base, items = taken(quern, folder / "c", folder, "--context", 10), np.random.default_rng(2).integers(0, 40, (12, 11))
    np.save(folder / "x.npy", items.astype(np.uint16))
    data = ["--data", folder / "x.npy", "--tokens", "ids"]
    done = run(quern, "train", *data, "--task", "next", "--init-from", base, "--lora", lora, "--optimizer", "adam", "--lr",
               "0.05", "--epochs", 3, "--batch", 4, "-o", folder / "a.st", *more)
    assert done.returncode == 0, done.stderr
    done = run(quern, "predict", base, "--adapter", folder / "a.st", *data, "--logprobs", "-o", folder / "p.csv")
    assert done.returncode == 0, done.stderr
    return base, items, np.genfromtxt(folder / "p.csv", delimiter=",", names=True)["logprob"].reshape(12, 10)


def with_adapters(folder, kept):
    """The weights of the checkpoint with those of the folder added as peft does it, and the modules."""
    said, a = json.loads((folder / "adapter_config.json").read_text()), load_file(folder / "adapter_model.safetensors")
    assert said["peft_type"] == "LORA" and said["bias"] == "none" and said["task_type"] == "CAUSAL_LM"
    sum_of = {name: np.asarray(value, np.float64) for name, value in kept.items()}
    for module in said["target_modules"]:
        down, up = (a.pop(f"{PREFIX}{module}.lora_{part}.weight").astype(float) for part in "AB")
        assert len(down) == said["r"] == up.shape[1]
        delta = said["lora_alpha"] / said["r"] * (up @ down)
        sum_of[f"{module}.weight"] = sum_of[f"{module}.weight"] + (delta.T if said["fan_in_fan_out"] else delta)
    assert not a
    return sum_of, said["target_modules"], said


@pytest.mark.parametrize("name, lora, modules", [
    ("gpt2", "4", ["transformer.h.0.attn.c_attn", "transformer.h.1.attn.c_attn"]),
    ("gpt2", "2 alpha 3 on 8", ["transformer.h.0.mlp.c_fc"]),
    ("llama", "3 alpha 3 on attention", [f"model.layers.{b}.self_attn.{m}_proj" for b in (0, 1) for m in "qkv"]),
    ("qwen2", "2 on all", [f"model.layers.{b}.{m}_proj" for b in (0, 1) for m in (
        "self_attn.q", "self_attn.k", "self_attn.v", "self_attn.o", "mlp.gate", "mlp.up", "mlp.down")])])
def test_adapters_for_peft(quern, tmp_path, name, lora, modules):
    """Queries, keys and values of Llama get copies of one matrix. The network in doubles predicts alike."""
    config = {"gpt2": cp.GPT2, "llama": cp.LLAMA, "qwen2": cp.QWEN2}[name]
    kept = (cp.gpt2 if name == "gpt2" else cp.llama)(np.random.default_rng(3), config)
    base, items, want = adapted(quern, tmp_path, config, kept, lora)
    done = run(quern, "model", "export", base, "--adapter", tmp_path / "a.st", "--names", "peft", "-o", tmp_path / "peft")
    assert done.returncode == 0 and "adapters for peft" in done.stdout, done.stderr
    both, targets, said = with_adapters(tmp_path / "peft", kept)
    assert targets == modules and said["fan_in_fan_out"] == (name == "gpt2")
    logits = cp.gpt2_logits if name == "gpt2" else cp.llama_logits
    told, before = ([np.log(cp.softmax(logits(t, item[:-1], config)))[np.arange(10), item[1:]] for item in items]
                    for t in (both, kept))
    assert np.abs(want - told).max() < 1e-5 and np.abs(want - before).max() > 0.01
    # The folder back: the bytes of a merge of the adapters' own file, but for where they came from.
    for adapter, out in ("a.st", "n.st"), ("peft", "p.st"):
        done = run(quern, "model", "merge", base, tmp_path / adapter, "-o", tmp_path / out)
        assert done.returncode == 0, done.stderr
    one, other = load_file(tmp_path / "n.st"), load_file(tmp_path / "p.st")
    assert sorted(one) == sorted(other) and all(np.array_equal(one[k].view(np.uint32), other[k].view(np.uint32)) for k in one)


def test_what_peft_cannot_have(quern, tmp_path):
    base = adapted(quern, tmp_path, cp.GPT2, cp.gpt2(np.random.default_rng(3)), "2")[0]
    for words, said in ((["--names", "peft"], "needs --adapter"),
                        (["--names", "peft", "--adapter", base], "leave --adapter out")):
        done = run(quern, "model", "export", base, *words, "-o", tmp_path / "peft")
        assert done.returncode != 0 and said in done.stderr and not (tmp_path / "peft").exists(), done.stderr


def test_what_a_folder_of_peft_cannot_say(quern, tmp_path):
    cp.save(tmp_path / "c", cp.GPT2, cp.gpt2(np.random.default_rng(3)))
    base, folder = taken(quern, tmp_path / "c", tmp_path, "--context", 10), tmp_path / "peft"
    folder.mkdir()
    good, width = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none"}, cp.GPT2["n_embd"]
    half = {PREFIX + "transformer.h.0.attn.c_attn.lora_A.weight": np.ones((2, width), np.float32)}
    whole = {**half, PREFIX + "transformer.h.0.attn.c_attn.lora_B.weight": np.ones((3 * width, 2), np.float32)}
    for config, tensors, said in (
            ({**good, "peft_type": "IA3"}, whole, "not LORA"), ({**good, "use_dora": True}, whole, '"use_dora" is set'),
            ({**good, "bias": "all"}, whole, '"bias" is not none'), ({**good, "r": 0}, whole, '"r" is not a rank'),
            ({**good, "rank_pattern": {"c_attn": 4}}, whole, '"rank_pattern" is set'), ({**good, "r": 3}, whole, "not the sides"),
            (good, half, "the other half"), (good, {**whole, PREFIX + "x": np.ones(1, np.float32)}, "no layer for this")):
        (folder / "adapter_config.json").write_text(json.dumps(config))
        save_file(tensors, folder / "adapter_model.safetensors")
        done = run(quern, "model", "merge", base, folder, "-o", tmp_path / "n.st")
        assert done.returncode == 1 and said in done.stderr and not (tmp_path / "n.st").exists(), (said, done.stderr)
