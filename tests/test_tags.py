"""A class for each token, and tags of the words of texts (docs/exactness.md 25.39, 25.47, 25.48)."""

import csv
import json

import numpy as np
import pytest

import checkpoints as cp
import parquet_writer
import python_package
import ranks
import recipes
from test_pretrained import run, tensors_of
from test_state_dict import read

WORDS = ["Anna", "in", "Paris", "unhappily", "Ber-lin", "\x07", "the"]
TAGS = ["PER", "O", "LOC", "O", "LOC", "O", "-100"]


def rows(count=30):
    """Texts of 1 to 9 words; U+0007 has no token, Ber-lin has three."""
    of = [[(i * 5 + k * 3) % 7 for k in range(1 + i * 4 % 9)] for i in range(count)]
    return [(" ".join(WORDS[k] for k in row), " ".join(TAGS[k] for k in row)) for row in of]


def write(path, lines, head=("text", "tags")):
    with open(path, "w", newline="") as out:
        csv.writer(out).writerows([head, *lines])
    return path


def cells(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def tokenizer(tmp_path):
    """WordPiece with [CLS] before a text and [SEP] after it."""
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "anna", "in", "paris", "un", "##happy", "##happ", "##ily", "ber", "lin", "-", "the"]
    special = [{"id": k, "content": vocab[k], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for k in range(4)]
    around = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
    text = {"version": "1.0", "added_tokens": special, "post_processor": around, "pre_tokenizer": {"type": "BertPreTokenizer"},
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                           "lowercase": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "vocab": {word: k for k, word in enumerate(vocab)}}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(text))
    return tmp_path / "tokenizer.json"


PIECES = {"Anna": [4], "in": [5], "Paris": [6], "unhappily": [7, 9, 10], "Ber-lin": [11, 13, 12], "\x07": [], "the": [14]}


def expected(lines, context):
    """Tokens and targets by the definition: the first token of a word has its tag."""
    tokens, targets = np.full((len(lines), context), 65535, "<u2"), np.full((len(lines), 1, context), 255, np.uint8)
    names = ["LOC", "O", "PER"]
    for i, (text, tags) in enumerate(lines):
        numbers, own = [2], [255]
        for word, tag in zip(text.split(" "), tags.split(" "), strict=True):
            own += [names.index(tag) if tag in names and k == 0 else 255 for k in range(len(PIECES[word]))]
            numbers += PIECES[word]
        numbers, own = numbers[:context - 1] + [3], own[:context - 1] + [255]
        tokens[i, :len(numbers)] = numbers
        targets[i, 0, :len(own)] = own
    return tokens, targets


@pytest.mark.parametrize("context", [24, 9])
def test_the_first_token_of_a_word_has_its_tag(run_quern, tokenizer, tmp_path, context):
    """The digest is that of the tokens and the classes of tokens, as it would be of arrays."""
    table = write(tmp_path / "t.csv", rows())
    words = ["--label", "tags", "--tokens", f"wordpiece:{tokenizer}", "--context", str(context)]
    found = json.loads(run_quern("data", "info", table, *words, "--json").stdout)
    tokens, targets = expected(rows(), context)

    np.save(tmp_path / "x.npy", tokens)
    np.save(tmp_path / "y.npy", np.where(targets[:, 0] == 255, -100, targets[:, 0].astype(int)))
    arrays = json.loads(run_quern("data", "info", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", "--tokens", "ids", "--json").stdout)
    assert found["digest"] == arrays["digest"]
    assert found["tokens"].endswith(" words") and found["tokens"].startswith("wordpiece ")


def write_lists(path, lines, of=str):
    path.write_text("".join(json.dumps({"n": 1, "text": text.split(" "), "tags": [of(tag) for tag in tags.split(" ")]}) + "\n"
                            for text, tags in lines))
    return path


def test_lists_of_words_and_tags_in_json(run_quern, tokenizer, tmp_path):
    """They are texts with spaces between. U+0007 is written as an escape, which is longer than the character."""
    words = ["--label", "tags", "--tokens", f"wordpiece:{tokenizer}", "--context", 24, "--json"]
    found = [json.loads(run_quern("data", "info", path, *words).stdout)["digest"]
             for path in (write(tmp_path / "t.csv", rows()), write_lists(tmp_path / "t.jsonl", rows()),
                          write_lists(tmp_path / "n.jsonl", rows(), NUMBERS.get))]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("value, byte, said", [
    ('["Anna", "the Anna"]', 39, "here a word has white space inside"),
    ('["\\t"]', 31, "here a word has white space inside"),
    ('["Anna", ""]', 39, "here a word is empty"),
    ('["Anna", 1.5]', 39, "here a value is neither a text nor a whole number"),
    ('[["Anna"]]', 31, "here a value is neither a text nor a whole number"),
    ('[null]', 31, "here a value is neither a text nor a whole number"),
    ('["Anna" 7]', 38, "an array has neither ',' nor ']' after a value"),
    ('["Anna",]', 38, "this is not a value of JSON")])
def test_lists_that_are_no_words(quern, tmp_path, value, byte, said):
    (tmp_path / "t.jsonl").write_text('{"y": 1, "x": ["Anna"]}\n{"x": ' + value + "}\n")
    done = run(quern, "data", "info", tmp_path / "t.jsonl", "--label", "y", "--tokens", "words", "--context", 3)
    assert done.returncode == 1 and said in done.stderr and f"line 2, byte {byte}\n" in done.stderr, done.stderr


NUMBERS = {"LOC": 0, "O": 1, "PER": 2, "-100": -100}


def columns_of_lists(lines):
    words, tags = [text.split(" ") for text, _ in lines], [tag.split(" ") for _, tag in lines]
    return {"text": words, "tags": tags}, {"text": words, "tags": [[NUMBERS[tag] for tag in of] for of in tags]}


def test_lists_of_words_and_tags_in_parquet(run_quern, tokenizer, tmp_path):
    words = ["--label", "tags", "--tokens", f"wordpiece:{tokenizer}", "--context", 24, "--json"]
    named, numbered = columns_of_lists(rows())
    parquet_writer.write(tmp_path / "t.parquet", named, 30)
    parquet_writer.write(tmp_path / "n.parquet", numbered, 7)
    found = [json.loads(run_quern("data", "info", path, *words).stdout)["digest"]
             for path in (write(tmp_path / "t.csv", rows()), tmp_path / "t.parquet", tmp_path / "n.parquet")]
    assert found[0] == found[1] == found[2]


def test_lists_of_words_and_tags_in_arrow(run_quern, quern, tokenizer, tmp_path):
    """What pyarrow writes, of all types, with lists that are null, and over two files."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install pyarrow)")
    from pyarrow import feather, parquet
    words = ["--label", "tags", "--text", "text", "--tokens", f"wordpiece:{tokenizer}", "--context", 24]
    named, numbered = columns_of_lists(rows())
    want = json.loads(run_quern("data", "info", write(tmp_path / "t.csv", rows()), *words, "--json").stdout)["digest"]
    narrow = {"text": pa.array(named["text"], pa.list_(pa.string())), "tags": pa.array(numbered["tags"], pa.list_(pa.int8()))}
    wide = {"text": pa.array(named["text"], pa.large_list(pa.large_string())),
            "tags": pa.array(numbered["tags"], pa.large_list(pa.int64()))}
    views = {"text": pa.array(named["text"], pa.list_(pa.string_view())), "tags": pa.array(named["tags"])}
    for columns in (narrow, wide, views):
        table = pa.table({"odd": pa.array([None, ["a"], []] * 10), **columns})
        feather.write_feather(table, tmp_path / "t.arrow", compression="zstd")
        parquet.write_table(table, tmp_path / "t.parquet", data_page_version="2.0", row_group_size=11)
        parquet.write_table(table.slice(0, 7), tmp_path / "a.parquet", use_dictionary=False)
        parquet.write_table(table.slice(7), tmp_path / "b.parquet")
        for files in (["t.arrow"], ["t.parquet"], ["a.parquet", "b.parquet"]):
            done = run_quern("data", "info", *(tmp_path / name for name in files), *words, "--json")
            assert json.loads(done.stdout)["digest"] == want, (files, columns)
    for bad, said in ((["a", None], "a word is missing: number 1"), (["the Anna"], "white space inside: number 0"),
                      (["a", ""], "a word is empty: number 1")):
        table = pa.table({"text": [["in"], bad], "tags": [["O"], ["O"] * len(bad)]})
        parquet.write_table(table, tmp_path / "t.parquet")
        feather.write_feather(table, tmp_path / "t.arrow")
        for name in ("t.parquet", "t.arrow"):
            done = run(quern, "data", "info", tmp_path / name, *words)
            assert done.returncode == 1 and said in done.stderr and "item 1, column 1, text" in done.stderr, done.stderr


MODEL = "embedding 15 12; position learned; residual { conv 36 1x1; attention 3; conv 12 1x1 }; layernorm channels; conv 3 1x1 softmax"


def trained(quern, folder, tokenizer, *more):
    write(folder / "t.csv", rows(60))
    done = run(quern, "train", "--data", folder / "t.csv", "--label", "tags", "--tokens", f"wordpiece:{tokenizer}", "--context", 12,
               "--model", MODEL, "--epochs", 8, "--lr", 0.02, "-o", folder / "m.st", *more)
    assert done.returncode == 0 and "tags of 3 classes of column \"tags\"" in done.stderr, done.stderr
    return folder / "m.st"


def test_tags_are_learned_and_told_for_each_word(quern, tokenizer, tmp_path):
    """Words without a token, and those that were cut, have -100. Without labels the words are the same."""
    model = trained(quern, tmp_path, tokenizer, "--valid", "0.2")
    recipe = read(model)[0]
    assert recipe["task"] == "segment" and recipe["table"]["classes"] == ["LOC", "O", "PER"] and recipe["table"]["label"] == "tags"
    done = run(quern, "predict", model, "--data", tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    assert done.returncode == 0 and "accuracy 100.00 %" in done.stdout, done.stderr
    own = cells(tmp_path / "p.csv")
    for line, (text, tags) in zip(own, rows(60), strict=True):
        want, at = [], 1
        for word, tag in zip(text.split(" "), tags.split(" "), strict=True):
            want.append(tag if PIECES[word] and at < 11 else "-100")
            at += len(PIECES[word])
        assert line["label"].split(" ") == want
        told = line["prediction"].split(" ")
        assert [t if w != "-100" else w for t, w in zip(told, want, strict=True)] == want
    write(tmp_path / "u.csv", [[text] for text, _ in rows(60)], ["text"])
    done = run(quern, "predict", model, "--data", tmp_path / "u.csv", "-o", tmp_path / "q.csv")
    assert done.returncode == 0, done.stderr
    assert [line["prediction"] for line in cells(tmp_path / "q.csv")] == [line["prediction"] for line in own]
    python_package.folder()
    import quern as package
    of_python = package.load(model)
    assert of_python.predict(tmp_path / "u.csv") == [line["prediction"].split(" ") for line in own]
    assert of_python.predict(tmp_path / "u.csv", outputs=True).shape == (60, 1, 12, 3)
    done = run(quern, "evaluate", model, "--data", tmp_path / "t.csv")
    table = [line.split() for line in done.stdout.splitlines()]
    assert ["class", "tokens", "precision", "recall", "F1", "IoU"] in table and "accuracy 100.00 %" in done.stdout, done.stdout
    assert [line[0] for line in table if line[2:] == ["1.0000"] * 4] == ["LOC", "O", "PER", "mean"]


def test_ranks_share_the_words_of_a_table(quern, tokenizer, tmp_path):
    """The second rank gets the table from the first one, with the places of its words and its tags."""
    model = trained(quern, tmp_path, tokenizer, "--grain", 8)
    (tmp_path / "r").mkdir()
    write(tmp_path / "r" / "t.csv", rows(60))
    words = ["train", "--data", tmp_path / "r" / "t.csv", "--label", "tags", "--tokens", f"wordpiece:{tokenizer}", "--context", 12,
             "--model", MODEL, "--epochs", 8, "--lr", 0.02, "--grain", 8]
    ranks.run(quern, 2, *words, "--threads", 1, "-o", tmp_path / "r" / "m.st")
    assert recipes.sha256(tmp_path / "r" / "m.st") == recipes.sha256(model)
    done = run(quern, "predict", model, "--data", tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    assert done.returncode == 0, done.stderr
    ranks.run(quern, 2, "predict", model, "--data", tmp_path / "t.csv", "--threads", 1, "-o", tmp_path / "q.csv")
    assert (tmp_path / "q.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()


def test_tags_are_those_of_the_model_by_name(quern, tokenizer, tmp_path):
    model = trained(quern, tmp_path, tokenizer)
    few = write(tmp_path / "few.csv", [("Anna the", "PER O"), ("the Anna", "-100 PER")])
    done = run(quern, "evaluate", model, "--data", few)
    assert done.returncode == 0 and "(2 of 3)" in done.stdout, done.stdout + done.stderr
    for lines, said in (([("Anna the", "PER DATE")], "labels that the model is not trained on: \"DATE\""),
                        ([("Anna the", "PER O"), ("in Paris", "O")], "a text has 2 words, and its label 1 tag")):
        done = run(quern, "evaluate", model, "--data", write(tmp_path / "no.csv", lines))
        assert done.returncode == 1 and said in done.stderr, done.stderr


def test_labels_with_other_numbers_of_words_are_classes(run_quern, quern, tokenizer, tmp_path):
    """One text of another number is a mistake among tags; --task classify makes classes of them."""
    words = ["--label", "tags", "--tokens", f"wordpiece:{tokenizer}", "--context", 12]
    classes = write(tmp_path / "c.csv", [(text, ("very good", "bad")[i % 2]) for i, (text, _) in enumerate(rows())])
    found = json.loads(run_quern("data", "info", classes, *words, "--json").stdout)
    assert found["classes"] == 2 and not found["tokens"].endswith(" words")
    lines = rows()
    lines[7] = (lines[7][0], lines[7][1] + " O")
    table = write(tmp_path / "t.csv", lines)
    done = run(quern, "data", "info", table, *words)
    assert done.returncode == 1 and "item 7 (from 0)" in done.stderr and "`" not in done.stderr, done.stderr
    assert run(quern, "data", "info", table, *words, "--task", "classify").returncode == 0


@pytest.mark.parametrize("kind", ["chars", "bytes", "words"])
def test_other_tokenizers_have_the_space_before_a_word(quern, tmp_path, kind):
    """It belongs to the word after it; for words there is none."""
    table = write(tmp_path / "t.csv", [("ab c", "X Y"), ("c ab", "Y X")] * 4)
    done = run(quern, "train", "--data", table, "--label", "tags", "--tokens", kind, "--context", 6, "--model",
               "embedding 256 4; conv 2 1x1 softmax", "--epochs", 1, "-o", tmp_path / "m.st")
    assert done.returncode == 0, done.stderr
    done = run(quern, "predict", tmp_path / "m.st", "--data", table, "-o", tmp_path / "p.csv")
    assert [line["label"] for line in cells(tmp_path / "p.csv")][:2] == ["X Y", "Y X"]
    assert f"of {8 * 2}" in done.stdout.replace(",", ""), done.stdout


def test_arrays_of_tags(quern, tmp_path):
    """As many classes as tokens; another number of columns is several labels."""
    x = np.random.default_rng(1).integers(0, 20, (40, 7))
    np.save(tmp_path / "x.npy", x)
    y = (x % 3)
    y[:, ::3] = -100
    model = ["--tokens", "ids", "--model", "embedding 20 8; conv 3 1x1 softmax", "--epochs", 6, "--lr", 0.05, "-o", tmp_path / "m.st"]
    digests = []
    for ignored in (-100, 255, 65535):
        np.save(tmp_path / "y.npy", np.where(y < 0, ignored, y))
        done = run(quern, "train", "--data", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", *model)
        assert done.returncode == 0, done.stderr
        digests.append((tmp_path / "m.st").read_bytes())
    assert digests[0] == digests[1] == digests[2]
    done = run(quern, "predict", tmp_path / "m.st", "--data", tmp_path / "x.npy", "-o", tmp_path / "p.csv")
    told = np.array([line["prediction"].split(" ") for line in cells(tmp_path / "p.csv")], int)
    assert (told == x % 3).all()
    np.save(tmp_path / "y.npy", y[:, :5])
    done = run(quern, "train", "--data", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", *model)
    assert done.returncode == 1 and "not a whole number from 0 to 255" in done.stderr, done.stderr
    y[3, 1] = 300
    np.save(tmp_path / "y.npy", y)
    done = run(quern, "train", "--data", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", *model)
    assert done.returncode == 1 and "item 3 (from 0)" in done.stderr and "nor -100" in done.stderr, done.stderr


def test_an_imported_model_learns_tags_and_goes_back(quern, tokenizer, tmp_path):
    config = {**cp.BERT, "architectures": ["BertModel"], "vocab_size": 15, "max_position_embeddings": 16}
    tensors = {k: v for k, v in cp.encoder(np.random.default_rng(2), config | {"architectures": ["BertForTokenClassification"]}).items()
               if not k.startswith("classifier")}
    cp.save(tmp_path / "c", config, tensors)
    (tmp_path / "c" / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    done = run(quern, "model", "import", tmp_path / "c", "--task", "tags", "-o", tmp_path / "m.st")
    assert done.returncode == 0 and "begins with random weights" in done.stderr, done.stderr
    assert read(tmp_path / "m.st")[0]["tokens"].endswith(" words")
    done = run(quern, "train", "--data", write(tmp_path / "t.csv", rows(60)), "--label", "tags", "--init-from", tmp_path / "m.st",
               "--new-last", "--epochs", 6, "--lr", 0.01, "-o", tmp_path / "on.st")
    assert done.returncode == 0, done.stderr
    done = run(quern, "model", "export", tmp_path / "on.st", "--names", "transformers", "-o", tmp_path / "back")
    assert done.returncode == 0, done.stderr
    said = json.loads((tmp_path / "back" / "config.json").read_text())
    assert said["architectures"] == ["BertForTokenClassification"] and said["id2label"] == {"0": "LOC", "1": "O", "2": "PER"}
    assert "bert.embeddings.token_type_embeddings.weight" in tensors_of(tmp_path / "back" / "model.safetensors")


def test_messages_speak_of_tokens(quern, tmp_path):
    table = write(tmp_path / "t.csv", [("ab c", "X Y"), ("c ab", "Y X")] * 4)
    words = ["train", "--data", table, "--label", "tags", "--tokens", "words", "--context", 6, "--epochs", 1, "-o", tmp_path / "m.st"]
    for more, said in ((["--class-weight", "X=2"], "for items with one label, and here each token has a tag"),
                       (["--model", "embedding 8 4; dense 2 softmax"], "each token has a tag, and the last layer"),
                       (["--model", "embedding 8 4; pool mean; conv 2 1x1 softmax"], "has tags for 6 tokens, and the last layer gives 1")):
        done = run(quern, *words, "--model", "embedding 8 4; conv 2 1x1 softmax", *more) if "--model" not in more else run(quern, *words, *more)
        assert done.returncode != 0 and said in done.stderr, done.stderr
    assert run(quern, *words, "--model", "embedding 8 4; conv 2 1x1 softmax").returncode == 0
    done = run(quern, "evaluate", tmp_path / "m.st", "--data", write(tmp_path / "x.csv", [("ab c", "-100 -100")] * 2))
    assert done.returncode != 0 and "at least one of them is not -100" in done.stderr, done.stderr
