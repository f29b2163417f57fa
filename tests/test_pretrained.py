"""`quern model import` of checkpoints of transformers: GPT-2, Llama, Qwen2. Networks in doubles are the oracle."""

import json
import subprocess

import numpy as np
import pytest

import checkpoints as cp
from onnx_reader import Graph
from test_state_dict import read, write


def run(quern, *words):
    return subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60)


def taken(quern, source, folder, *more):
    """Imports and returns the file; without notes but that of the tokenizer."""
    model = folder / "m.st"
    done = run(quern, "model", "import", source, "-o", model, *more)
    assert done.returncode == 0, done.stderr
    assert not [line for line in done.stderr.splitlines() if "no tokenizer.json lies beside" not in line], done.stderr
    return model


def measured(quern, model, items, folder):
    """The loss of the model on items of tokens: that of a training which does not change it."""
    np.save(folder / "x.npy", items.astype(np.uint16))
    done = run(quern, "train", "--data", folder / "x.npy", "--tokens", "ids", "--task", "next", "--init-from", model, "--test",
               folder / "x.npy", "--epochs", 1, "--lr", "1e-30", "--optimizer", "sgd", "--weight-decay", 0, "-o", folder / "o.st",
               "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if '"test_loss"' in line][-1]["test_loss"]


def check_graph(quern, model, folder, items, logits):
    """The ONNX file gives the probabilities of each token at each position, for any number of items."""
    done = run(quern, "model", "export", model, "-o", folder / "m.onnx")
    assert done.returncode == 0, done.stderr
    graph = Graph((folder / "m.onnx").read_bytes())
    want = np.array([cp.softmax(z) for z in logits])
    assert graph.inputs == {"input": (None, want.shape[1])}
    assert graph.outputs == {"output": (None, *want.shape[1:]), "class": (None, want.shape[1])}
    got = graph.run(items[:, :-1])
    assert np.abs(got["output"] - want).max() < 1e-6 and (got["class"] == want.argmax(-1)).all()
    assert np.allclose(graph.run(items[:1, :-1])["output"], got["output"][:1], rtol=1e-9)


@pytest.mark.parametrize("change", [{}, {"n_inner": 20, "activation_function": "gelu", "layer_norm_epsilon": 0.01}, {"n_head": 1}])
@pytest.mark.parametrize("dtype", ["F32", "BF16"])
def test_gpt2_computes_as_in_doubles(quern, tmp_path, change, dtype):
    config = {**cp.GPT2, **change, "tie_word_embeddings": not change}
    generator = np.random.default_rng(3)
    kept = cp.save(tmp_path / "c", config, cp.gpt2(generator, config, tied=not change), dtype)
    model = taken(quern, tmp_path / "c", tmp_path)
    items = generator.integers(0, 40, (3, 11))
    logits = [cp.gpt2_logits(kept, item[:-1], config) for item in items]
    assert measured(quern, model, items, tmp_path) == pytest.approx(cp.loss(logits, items), rel=2e-6)
    check_graph(quern, model, tmp_path, items, logits)


LLAMAS = {
    "llama": cp.LLAMA,
    "tied": {**cp.LLAMA, "tie_word_embeddings": True, "attention_bias": True, "num_key_value_heads": 4, "rms_norm_eps": 0.01},
    "llama3": {**cp.LLAMA, "head_dim": 6, "rope_theta": 500000.0, "max_position_embeddings": 5000,
               "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                "original_max_position_embeddings": 16}},
    "linear": {**cp.LLAMA, "rope_scaling": {"rope_type": "linear", "factor": 4.0}, "num_key_value_heads": 1},
    "qwen2": cp.QWEN2}


@pytest.mark.parametrize("name", LLAMAS)
def test_llama_and_qwen2_compute_as_in_doubles_and_go_back(quern, tmp_path, name):
    config, generator = LLAMAS[name], np.random.default_rng(3)
    kept = cp.save(tmp_path / "c", config, cp.llama(generator, config))
    model = taken(quern, tmp_path / "c", tmp_path, "--context", 10)
    items = generator.integers(0, 40, (3, 11))
    logits = [cp.llama_logits(kept, item[:-1], config) for item in items]
    assert measured(quern, model, items, tmp_path) == pytest.approx(cp.loss(logits, items), rel=2e-6)
    check_graph(quern, model, tmp_path, items, logits)
    said, tensors = written_back(quern, model, tmp_path / "back")
    assert tensors == {k: v for k, v in tensors_of(tmp_path / "c" / "model.safetensors").items() if "inv_freq" not in k}
    given = {**config, "max_position_embeddings": 10}
    assert {k: said.get(k) for k in given} == given


def test_new_and_old_words_of_rotary_positions(quern, tmp_path):
    """rope_parameters has what rope_theta and rope_scaling had. Long networks get short items."""
    tensors = cp.llama(np.random.default_rng(4))
    scaling = {"type": "linear", "factor": 2}
    def text(**change):
        cp.save(tmp_path, {k: v for k, v in {**cp.LLAMA, **change}.items() if v is not None}, tensors)
        done = run(quern, "model", "import", tmp_path, "-o", tmp_path / "m.st")
        assert done.returncode == 0, done.stderr
        return read(tmp_path / "m.st")[0], done.stderr
    new = text(rope_theta=None, rope_parameters={"rope_theta": 5e5, "rope_type": "linear", "factor": 2})[0]
    assert new["model"] == text(rope_theta=5e5, rope_scaling=scaling)[0]["model"] and "base 5e+05 scale 2;" in new["model"]
    recipe, notes = text(max_position_embeddings=100000)
    assert recipe["context"] == 2048 and "2048 of the 100000 positions" in notes


@pytest.mark.parametrize("change, said", [
    ({"rope_scaling": {"rope_type": "yarn", "factor": 2}}, "rotary positions of the type \"yarn\" are not possible"),
    ({"rope_scaling": {"rope_type": "linear"}}, "\"factor\" is missing"),
    ({"rope_theta": 0}, "\"rope_theta\" is 0"),
    ({"num_key_value_heads": 3}, "4 heads cannot be divided among 3 heads of keys"),
    ({"mlp_bias": True}, "\"mlp_bias\" is true"),
    ({"attention_bias": "no"}, "\"attention_bias\" is \"no\", not true or false"),
    ({"attention_bias": True}, "no tensor \"layers.0.self_attn.q_proj.bias\""),
    ({"num_key_value_heads": 4}, "tensor \"model.layers.0.self_attn.k_proj.weight\" of 8x16"),
    ({"hidden_act": "gelu_10"}, "an activation that Quern does not have"),
    ({"tie_word_embeddings": True}, None),
])
def test_what_config_json_of_llama_cannot_say(quern, tmp_path, change, said):
    cp.save(tmp_path, {**cp.LLAMA, **change}, cp.llama(np.random.default_rng(6)))
    done = run(quern, "model", "import", tmp_path, "-o", tmp_path / "m.st")
    assert (done.returncode == 0) == (said is None) and (said or "") in done.stderr, done.stderr


def test_files_of_all_kinds_give_one_model(quern, tmp_path):
    """Several files with an index, the file alone, names without a prefix; a context cuts the positions."""
    tensors = cp.gpt2(np.random.default_rng(4))
    cp.save(tmp_path / "one", cp.GPT2, tensors)
    cp.shard(tmp_path / "many", cp.GPT2, tensors, 3)
    cp.save(tmp_path / "bare", cp.GPT2, {name.removeprefix("transformer."): t for name, t in tensors.items()})
    def of(path, *more):
        recipe, parameters = read(taken(quern, path, tmp_path, *more))
        return {**recipe, "init_from": ""}, {name: value.tobytes() for name, value in parameters.items()}
    whole = of(tmp_path / "one")
    assert of(tmp_path / "one" / "model.safetensors") == of(tmp_path / "bare") == whole
    assert of(tmp_path / "many") == of(tmp_path / "many" / "model.safetensors.index.json") == whole
    (tmp_path / "bare" / "config.json").write_text(json.dumps({**cp.GPT2, "model_type": "mine"}))
    assert of(tmp_path / "bare", "--as", "gpt2") == of(tmp_path / "bare", "--config", tmp_path / "one" / "config.json") == whole
    recipe, parameters = of(tmp_path / "one", "--context", 4)
    assert recipe["context"] == 4 and recipe["features"] == 5 and recipe["task"] == "next"
    assert parameters == {**whole[1], "layer1.weight": whole[1]["layer1.weight"][:4 * 12 * 4]}


def test_the_tokenizer_is_taken_along(quern, tmp_path):
    """A vocabulary that is padded to a multiple of 64 has more tokens than it; a smaller one is refused."""
    text = tmp_path / "t.txt"
    text.write_text("to be or not to be, that is the question " * 30)
    config = {**cp.GPT2, "vocab_size": 320}
    cp.save(tmp_path / "c", config, cp.gpt2(np.random.default_rng(5), config))
    assert run(quern, "data", "tokenize", text, "--train-bpe", 270, "-o", tmp_path / "c" / "tokenizer.json").returncode == 0
    model = taken(quern, tmp_path / "c", tmp_path)
    shown = run(quern, "model", "show", model).stdout
    assert "tokens     bpe, 270 of them\n" in shown and "context    10\n" in shown, shown
    done = run(quern, "train", "--data", text, "--tokens", f"bpe:{tmp_path}/c/tokenizer.json", "--context", 10, "--init-from", model, "--task", "next", "--epochs", 1, "--batch", 8, "-o",
               tmp_path / "on.st", "--freeze", "0..6", "--lr", "0.001")
    assert done.returncode == 0 and "perplexity" in done.stderr, done.stderr
    before, after = read(model)[1], read(tmp_path / "on.st")[1]
    assert before["layer3.weight"].tobytes() == after["layer3.weight"].tobytes()
    assert before["layer8.weight"].tobytes() != after["layer8.weight"].tobytes()
    assert run(quern, "model", "import", tmp_path / "c", "--tokenizer", "none", "-o", model).returncode == 0
    assert read(model)[0]["tokens"] == "ids"
    cp.save(tmp_path / "c", cp.GPT2, cp.gpt2(np.random.default_rng(5)))
    done = run(quern, "model", "import", tmp_path / "c", "-o", model)
    assert done.returncode != 0 and "the tokenizer has 270 tokens, and the network knows 40" in done.stderr


def written_back(quern, model, folder):
    """The folder that an export writes, and its tensors."""
    done = run(quern, "model", "export", model, "--names", "transformers", "-o", folder)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "config.json").read_text()), tensors_of(folder / "model.safetensors")


def tensors_of(path):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__")
    return {name: (tuple(t["shape"]), content[8 + size:][slice(*t["data_offsets"])]) for name, t in header.items()}


@pytest.mark.parametrize("tied", [True, False])
def test_gpt2_goes_back_as_it_came(quern, tmp_path, tied):
    """Bit by bit, but for the masks; what config.json says is the same. Another import gives the same bytes."""
    config = {**cp.GPT2, "tie_word_embeddings": tied, "n_inner": 30, "layer_norm_epsilon": 1e-12}
    cp.save(tmp_path / "c", config, cp.gpt2(np.random.default_rng(7), config, tied))
    model = taken(quern, tmp_path / "c", tmp_path)
    said, tensors = written_back(quern, model, tmp_path / "back")
    first = model.read_bytes()
    assert tensors == {k: v for k, v in tensors_of(tmp_path / "c" / "model.safetensors").items() if not k.endswith(".attn.bias")}
    assert said["architectures"] == ["GPT2LMHeadModel"] and {k: said.get(k) for k in config} == config
    assert read(taken(quern, tmp_path / "back", tmp_path))[1].keys() == read(model)[1].keys()
    assert len(first) == len(model.read_bytes())


def test_what_transformers_does_not_have(quern, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(60).reshape(6, 10).astype(np.uint8) % 40)
    text = ("embedding 40 12; position learned; residual { layernorm channels; conv 36 1x1; attention 3 causal; conv 12 1x1 };"
            " conv 40 1x1 softmax")
    done = run(quern, "train", "--data", tmp_path / "x.npy", "--tokens", "ids", "--task", "next", "--model", text, "--epochs", 1,
               "-o", tmp_path / "m.st")
    assert done.returncode == 0, done.stderr
    done = run(quern, "model", "export", tmp_path / "m.st", "--names", "transformers", "-o", tmp_path / "back")
    assert done.returncode == 1 and "these are known: gpt2" in done.stderr and not (tmp_path / "back").exists()
    assert 'layer 7, "conv 40 1x1 softmax", where gpt2 differs' in done.stderr, done.stderr


@pytest.mark.parametrize("change, said", [
    ({"model_type": "bloom"}, "a network of the type \"bloom\" is not known"),
    ({"model_type": "bloom"}, "these are known: gpt2"),
    ({"n_embd": None}, "\"n_embd\" is missing"),
    ({"n_embd": -12}, "\"n_embd\" is -12, not a whole number from 1"),
    ({"n_layer": 10**30}, "\"n_layer\" is "),
    ({"n_layer": 5000}, "5000 blocks are more than a network can have"),
    ({"n_layer": 200}, "more than 1023 layers"),
    ({"n_positions": 1 << 24, "n_embd": 1 << 24, "n_head": 1}, "number of channels is above"),
    ({"n_head": "three"}, "\"n_head\" is \"three\""),
    ({"n_head": 5}, "12 channels cannot be divided among 5 heads"),
    ({"layer_norm_epsilon": 0}, "\"layer_norm_epsilon\" is 0, not a number above 0"),
    ({"activation_function": "quick_gelu"}, "an activation that Quern does not have"),
    ({"activation_function": []}, "\"activation_function\" is a list"),
    ({"scale_attn_weights": False}, "\"scale_attn_weights\" is false, and only true is possible"),
    ({"add_cross_attention": True}, "\"add_cross_attention\" is true"),
    ({"vocab_size": 48}, "tensor \"transformer.wte.weight\" of 40x12"),
    ({"n_positions": 12}, "has 12x12 numbers"),
    ({"n_inner": 30}, "tensor \"transformer.h.0.mlp.c_fc.weight\" of 12x48"),
    ({"n_layer": 3}, "no tensor \"h.2.ln_1.weight\""),
    ({"n_layer": 1}, "tensor \"transformer.h.1.attn.c_attn.bias\" of 36"),
])
def test_what_config_json_cannot_say(quern, tmp_path, change, said):
    cp.save(tmp_path, cp.GPT2, cp.gpt2(np.random.default_rng(6)))
    (tmp_path / "config.json").write_text(json.dumps({k: v for k, v in {**cp.GPT2, **change}.items() if v is not None}))
    done = run(quern, "model", "import", tmp_path, "-o", tmp_path / "m.st")
    assert done.returncode == 1 and said in done.stderr, done.stderr
    assert not (tmp_path / "m.st").exists()


@pytest.mark.parametrize("text", ["", "{\"model_type\": \"gpt", "[" * 1000])
def test_a_broken_config_json_is_named(quern, tmp_path, text):
    cp.save(tmp_path, cp.GPT2, cp.gpt2(np.random.default_rng(6)))
    (tmp_path / "config.json").write_text(text)
    done = run(quern, "model", "import", tmp_path, "-o", tmp_path / "m.st")
    assert done.returncode == 1 and "config.json" in done.stderr and "as save_pretrained wrote it" in done.stderr, done.stderr


@pytest.mark.parametrize("change, said", [
    ({"wte.weight": None}, "no tensor is called \"wte.weight\""),
    ({"h.1.attn.c_proj.bias": None}, "no tensor \"h.1.attn.c_proj.bias\""),
    ({"h.1.attn.c_proj.bias": np.zeros(13)}, "tensor \"transformer.h.1.attn.c_proj.bias\" of 13"),
    ({"h.1.attn.c_attn.weight": np.zeros((36, 12))}, "has 12x36 numbers"),
    ({"h.1.ln_1.weight": np.full(12, np.nan)}, "not a finite float32 number"),
    ({"h.0.ln_1.weight": np.zeros(12, np.int64)}, "I64"),
    ({"score.weight": np.zeros((2, 12))}, "tensor \"transformer.score.weight\" of 2x12"),
])
def test_tensors_that_do_not_belong_to_it(quern, tmp_path, change, said):
    tensors = cp.gpt2(np.random.default_rng(6)) | {f"transformer.{name}": value for name, value in change.items()}
    cp.save(tmp_path, cp.GPT2, {name: value for name, value in tensors.items() if value is not None})
    done = run(quern, "model", "import", tmp_path, "-o", tmp_path / "m.st")
    assert done.returncode == 1 and said in done.stderr, done.stderr


@pytest.mark.parametrize("more, said", [
    (["--context", 11], "the network has 10 positions"),
    (["--as", "gpt5"], "\"gpt5\" is not known"),
    (["--input", 10], "--input is not for a checkpoint of transformers"),
    (["--tokenizer", "absent.json"], "absent.json"),
])
def test_options_that_do_not_fit(quern, tmp_path, more, said):
    cp.save(tmp_path, cp.GPT2, cp.gpt2(np.random.default_rng(6)))
    done = run(quern, "model", "import", tmp_path, "-o", tmp_path / "m.st", *more)
    assert done.returncode != 0 and said in done.stderr, done.stderr


def test_options_for_checkpoints_alone(quern, tmp_path):
    write(tmp_path / "net.st", {"0.weight": np.zeros((2, 3)), "0.bias": np.zeros(2)})
    done = run(quern, "model", "import", tmp_path / "net.st", "--model", "dense 2 softmax", "--input", 3, "--context", 5, "-o",
               tmp_path / "m.st")
    assert done.returncode == 2 and "--context is for checkpoints of transformers" in done.stderr
