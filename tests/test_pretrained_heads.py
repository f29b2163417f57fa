"""Checkpoints of transformers that tell classes of texts or of tokens. Networks in doubles are the oracle."""

import csv

import numpy as np
import pytest

import checkpoints as cp
from onnx_reader import Graph
from test_pretrained import run, taken, tensors_of, written_back
from test_state_dict import read

NOT_A_TOKEN = 65535


def texts(generator, items=7, most=10):
    """Tokens of texts of unequal length, and the table of them: one is as long as it, one has one token."""
    of = [generator.integers(0, 40, n) for n in (most, 1, *generator.integers(2, most, items - 2))]
    table = np.full((items, most), NOT_A_TOKEN, np.uint16)
    for row, tokens in zip(table, of, strict=True):
        row[:len(tokens)] = tokens
    return of, table


def predicted(quern, model, table, folder):
    """The outputs of `quern predict`, and the names of their columns."""
    np.save(folder / "x.npy", table)
    done = run(quern, "predict", model, "--data", folder / "x.npy", "--tokens", "ids", "--outputs", "-o", folder / "p.csv")
    assert done.returncode == 0, done.stderr
    with open(folder / "p.csv", newline="") as file:
        return list(csv.DictReader(file))


LABELS = {str(k): f"LABEL_{k}" for k in range(2)}
CLASSIFIERS = {
    "bert": cp.BERT,
    "numbers": {**cp.BERT, "hidden_act": "gelu_new", "layer_norm_eps": 0.01, "id2label": LABELS, "type_vocab_size": 1},
    "distilbert": cp.DISTILBERT,
    "relu": {**cp.DISTILBERT, "activation": "relu", "id2label": {"1": "no", "0": "yes"}}}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_encoders_tell_classes_as_in_doubles_and_go_back(quern, tmp_path, name):
    config, generator = CLASSIFIERS[name], np.random.default_rng(8)
    kept = cp.save(tmp_path / "c", config, cp.encoder(generator, config))
    model = taken(quern, tmp_path / "c", tmp_path)
    of, table = texts(generator)
    rows = predicted(quern, model, table, tmp_path)
    want = np.array([cp.softmax(cp.encoder_logits(kept, tokens, config)) for tokens in of])
    got = np.array([[float(row[f"p{k}"]) for k in range(want.shape[1])] for row in rows])
    assert np.abs(got - want).max() < 2e-6
    names = [str(k) if name == "numbers" else config["id2label"][str(k)] for k in range(want.shape[1])]
    assert [row["prediction"] for row in rows] == [names[k] for k in want.argmax(-1)]
    check_back(quern, model, tmp_path, config)


def check_back(quern, model, folder, config):
    """All comes back but the tables of positions and types, whose first rows are one table now."""
    said, tensors = written_back(quern, model, folder / "back")
    first = tensors_of(folder / "c" / "model.safetensors")
    positions, types = "bert.embeddings.position_embeddings.weight", "bert.embeddings.token_type_embeddings.weight"
    if types in first:
        shape, bits = first.pop(types)
        sums = np.frombuffer(first.pop(positions)[1], "<f4").reshape(-1, shape[1]) + np.frombuffer(bits, "<f4")[:shape[1]]
        assert tensors.pop(positions)[1] == sums.tobytes()
        assert tensors.pop(types) == ((2, shape[1]), bytes(4 * 2 * shape[1]))
    assert tensors == first
    usual = {"type_vocab_size": 2} if "type_vocab_size" in config else {}
    assert {k: said.get(k) for k in config} == {**config, **usual}
    assert said["label2id"] == {v: int(k) for k, v in config["id2label"].items()}


TAGGERS = {"bert": {**cp.BERT, "architectures": ["BertForTokenClassification"], "hidden_act": "relu", "layer_norm_eps": 1e-5},
           "distilbert": {**cp.DISTILBERT, "architectures": ["DistilBertForTokenClassification"]}}


@pytest.mark.parametrize("name", TAGGERS)
def test_encoders_tell_tags_as_in_doubles(quern, tmp_path, name):
    config, generator = TAGGERS[name], np.random.default_rng(9)
    kept = cp.save(tmp_path / "c", config, cp.encoder(generator, config))
    model = taken(quern, tmp_path / "c", tmp_path)
    recipe = read(model)[0]
    assert recipe["task"] == "segment" and recipe["table"]["classes"] == ["bad", "fair", "good"]
    of, table = texts(generator)
    done = run(quern, "model", "export", model, "-o", tmp_path / "m.onnx")
    assert done.returncode == 0, done.stderr
    got = Graph((tmp_path / "m.onnx").read_bytes()).run(table.astype(float))["output"]
    for tokens, out in zip(of, got, strict=True):
        want = cp.softmax(cp.encoder_logits(kept, tokens, config))
        assert np.abs(out[:, 0, :len(tokens)].T - want).max() < 1e-6
    if name == "bert":
        check_back(quern, model, tmp_path, config)


def test_decoders_tell_classes_by_their_last_token(quern, tmp_path):
    """The head has no bias and reads the last token, which padding does not follow."""
    generator = np.random.default_rng(10)
    config = {**cp.GPT2, "architectures": ["GPT2ForSequenceClassification"], "id2label": cp.BERT["id2label"],
              "problem_type": "multi_label_classification"}
    tensors = cp.gpt2(generator) | {"score.weight": generator.normal(0, 0.4, (3, 12))}
    kept = cp.save(tmp_path / "c", config, tensors)
    model = taken(quern, tmp_path / "c", tmp_path)
    of, table = texts(generator)
    rows = predicted(quern, model, table, tmp_path)
    as_lm = {**kept, "lm_head.weight": kept["score.weight"]}
    want = np.array([1 / (1 + np.exp(-cp.gpt2_logits(as_lm, tokens)[-1])) for tokens in of])
    got = np.array([[float(row[k]) for k in ("bad", "fair", "good")] for row in rows])
    assert np.abs(got - want).max() < 2e-6
    said, back = written_back(quern, model, tmp_path / "back")
    assert said["problem_type"] == "multi_label_classification" and said["architectures"] == config["architectures"]
    assert back == {k: v for k, v in tensors_of(tmp_path / "c" / "model.safetensors").items() if not k.endswith(".attn.bias")}
    # A new last layer has no bias either, so the network goes back.
    np.save(tmp_path / "x.npy", table)
    np.save(tmp_path / "y.npy", np.arange(len(table)) % 4)
    done = run(quern, "train", "--data", tmp_path / "x.npy", "--tokens", "ids", "--labels", tmp_path / "y.npy", "--init-from",
               model, "--new-last", "--epochs", 1, "-o", tmp_path / "n.st")
    assert done.returncode == 0, done.stderr
    said, back = written_back(quern, tmp_path / "n.st", tmp_path / "new")
    assert said["problem_type"] == "single_label_classification" and len(said["id2label"]) == 4 and "score.bias" not in back


def test_one_output_is_a_real_number(quern, tmp_path):
    generator, config = np.random.default_rng(11), {**cp.BERT, "id2label": {"0": "LABEL_0"}}
    kept = cp.save(tmp_path / "c", config, cp.encoder(generator, config))
    model = taken(quern, tmp_path / "c", tmp_path)
    of, table = texts(generator)
    got = [float(row["prediction"]) for row in predicted(quern, model, table, tmp_path)]
    assert np.allclose(got, [cp.encoder_logits(kept, tokens, config)[0] for tokens in of], atol=1e-5)
    assert written_back(quern, model, tmp_path / "back")[0]["problem_type"] == "regression"


def test_a_checkpoint_without_the_head(quern, tmp_path):
    """Other heads are left out; layers that are missing begin with random weights. Old files say gamma and beta."""
    tensors = cp.encoder(np.random.default_rng(12))
    body = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t
            for name, t in tensors.items() if not name.startswith("classifier")}
    body |= {"cls.seq_relationship.weight": np.zeros((2, 12)), "bert.embeddings.position_ids": np.arange(10)}
    cp.save(tmp_path / "c", {**cp.BERT, "architectures": ["BertForPreTraining"]}, body)
    def of(*more):
        done = run(quern, "model", "import", tmp_path / "c", "-o", tmp_path / "m.st", *more)
        assert done.returncode == 0, done.stderr
        return done.stderr, *read(tmp_path / "m.st")
    notes, recipe, parameters = of()
    assert "no head for this task: layer 23 begins with random weights" in notes
    assert recipe["model"].endswith("pool first; dense 12 tanh; dense 3 softmax") and recipe["task"] == "classify"
    assert parameters["layer23.weight"].tobytes() != bytes(4 * 36)
    notes, tags, _ = of("--task", "tags")
    assert tags["model"].endswith("; conv 3 1x1 softmax") and tags["task"] == "segment" and "layer 21 begins" in notes
    del body["bert.pooler.dense.weight"]
    cp.save(tmp_path / "c", {**cp.BERT, "architectures": ["BertForMaskedLM"]}, body)
    assert "layers 22 and 23 begin with random weights" in of()[0]


def test_a_language_model_gets_another_head(quern, tmp_path):
    tensors = cp.gpt2(np.random.default_rng(12), tied=False)
    cp.save(tmp_path / "c", {**cp.GPT2, "architectures": ["GPT2LMHeadModel"], "tie_word_embeddings": False}, tensors)
    done = run(quern, "model", "import", tmp_path / "c", "-o", tmp_path / "m.st", "--task", "classify")
    assert done.returncode == 0 and "layer 22 begins with random weights" in done.stderr, done.stderr
    assert read(tmp_path / "m.st")[0]["model"].endswith("pool last; dense 2 nobias softmax")


def test_heads_of_one_name_differ_by_their_biases(quern, tmp_path):
    """The head of classes of a Llama has no bias, that of tags has one: neither is half of the other."""
    generator = np.random.default_rng(12)
    body = {name: t for name, t in cp.llama(generator).items() if name != "lm_head.weight"}
    width = body["model.norm.weight"].shape[0]
    head = {"score.weight": generator.normal(size=(2, width))}
    for task, other, tensors in (("tags", "Sequence", head), ("classify", "Token", head | {"score.bias": np.ones(2)})):
        cp.save(tmp_path / task, {**cp.LLAMA, "architectures": [f"LlamaFor{other}Classification"]}, body | tensors)
        done = run(quern, "model", "import", tmp_path / task, "-o", tmp_path / "m.st", "--task", task)
        assert done.returncode == 0 and "begins with random weights" in done.stderr, done.stderr


@pytest.mark.parametrize("change, more, said", [
    ({"position_embedding_type": "relative_key"}, [], "\"position_embedding_type\" is \"relative_key\""),
    ({"type_vocab_size": 3}, [], "tensor \"bert.embeddings.token_type_embeddings.weight\" of 2x12"),
    ({"id2label": {"0": "a", "1": "b"}}, [], "tensor \"classifier.weight\" of 3x12"),
    ({"id2label": {"0": "a", "2": "b"}}, [], "\"id2label\""),
    ({"problem_type": "regression"}, [], "the network has 3 outputs, each a real number"),
    ({}, ["--task", "next"], "bert reads whole texts"),
    ({"architectures": ["BertForTokenClassification"], "id2label": {"0": "a"}}, [], "2 to 255 classes of tokens"),
    ({"architectures": ["BertForTokenClassification"]}, ["--context", 11], "the network has 10 positions"),
])
def test_what_config_json_of_bert_cannot_say(quern, tmp_path, change, more, said):
    cp.save(tmp_path, {**cp.BERT, **change}, cp.encoder(np.random.default_rng(6)))
    done = run(quern, "model", "import", tmp_path, "-o", tmp_path / "m.st", *more)
    assert done.returncode in (1, 2) and said in done.stderr, done.stderr


def test_a_head_that_should_be_there_is_missing(quern, tmp_path):
    tensors = cp.encoder(np.random.default_rng(6))
    del tensors["classifier.weight"]
    cp.save(tmp_path, cp.BERT, tensors)
    done = run(quern, "model", "import", tmp_path, "-o", tmp_path / "m.st")
    assert done.returncode == 1 and "no tensor \"classifier.weight\"" in done.stderr, done.stderr


def test_tied_layers_stay_tied(quern, tmp_path):
    """The last layer has the weights of the embedding, and training changes both as one."""
    cp.save(tmp_path / "c", cp.GPT2, cp.gpt2(np.random.default_rng(7)))
    model = taken(quern, tmp_path / "c", tmp_path)
    recipe, parameters = read(model)
    assert recipe["model"].endswith("; conv 40 1x1 tied softmax") and "layer21.weight" not in parameters
    np.save(tmp_path / "x.npy", np.random.default_rng(1).integers(0, 40, (8, 11)).astype(np.uint16))
    done = run(quern, "train", "--data", tmp_path / "x.npy", "--tokens", "ids", "--task", "next", "--init-from", model, "--epochs", 1,
               "-o", tmp_path / "on.st")
    assert done.returncode == 0, done.stderr
    said, tensors = written_back(quern, tmp_path / "on.st", tmp_path / "back")
    assert said["tie_word_embeddings"] is True and "lm_head.weight" not in tensors
