"""Tokenizers beside the oracle, and beside numbers that the package `tokenizers` gave."""

import bz2
import json
import random
import re
import unicodedata

import numpy as np
import pytest

import builds
import test_oracle  # adds the oracle's folder to the path
import tokens as oracle
from python_package import folder

ROOT = builds.ROOT
FILES = {name: ROOT / "tests" / "fuzz" / "corpus" / "tokenizer" / f"{name}.json"
         for name in ("gpt2", "llama", "prefix", "expression", "uncased", "cased", "sentencepiece", "unigram", "split",
                      "affixes", "pieces", "twice")}


@pytest.fixture(scope="module")
def q():
    folder()
    import quern

    return quern


def random_text(seed, size):
    generator = random.Random(seed)
    parts = ["the", "cat", "Ünïcode", "x_1", "Привет", " ", " ", " ", "  ", "\n", ",", "...", "日本", "\0",
             b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", "€", "😀", "\u00a0", "\u2028", "e\u0301", "'s"]
    chosen = (generator.choice(parts) for _ in range(size))
    return b"".join(part if isinstance(part, bytes) else part.encode() for part in chosen)


# ---------------------------------------------------------------- bytes, characters, words

@pytest.mark.parametrize("which", ["chars", "words", "words:9"])
def test_characters_and_words_are_those_of_the_oracle(q, which, tmp_path):
    texts = [random_text(seed, 400) for seed in (1, 2)]
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path, text in zip(paths, texts):
        path.write_bytes(text)
    most = int(which.partition(":")[2] or 0)
    wanted = oracle.Chars(texts) if which == "chars" else oracle.Words(texts, most)
    t = q.Tokenizer(which, paths)
    assert (t.json, t.size, t.unknown) == (wanted.json, wanted.size, wanted.size - 1)
    assert t.digest == oracle.digest(wanted.json) == q.Tokenizer.from_json(t.json).digest
    for text in (*texts, random_text(3, 300), "other: Ω no\t".encode(), b""):
        numbers = t.encode(text)
        assert numbers.tolist() == wanted.encode(text)
        assert t.decode_bytes(numbers) == wanted.decode(numbers.tolist())
    if which != "words:9":
        assert t.decode_bytes(t.encode(texts[0])) == texts[0]


def test_each_character_is_of_a_word_or_not(q):
    """A run of two is one token where it is of a word."""
    values = [*range(1, 0xD800), *range(0xE000, 0x32000, 7), 0xE0001, 0x10FFFF]
    text = "\n".join(chr(value) * 2 for value in values if value != 10).encode()
    t = q.Tokenizer("words", text)
    counts = [1 if oracle.of_word(value) else 2 for value in values if value != 10]
    assert len(t.encode(text)) == sum(counts) + len(counts) - 1
    assert t.decode_bytes(t.encode(text)) == text


# ---------------------------------------------------------------- a tokenizer.json

@pytest.mark.parametrize("name", FILES)
def test_tokens_are_those_of_the_package(q, name):
    """tests/token_numbers has what `tokenizers` 0.23 gave."""
    t = q.Tokenizer(f"file:{FILES[name]}")
    again = q.Tokenizer.from_json(t.json)
    assert again.json == t.json
    for text, wanted in json.loads((ROOT / "tests" / "token_numbers" / f"{name}.json").read_text()):
        assert t.encode(text).tolist() == again.encode(text).tolist() == wanted, text
        if name in ("gpt2", "llama", "expression", "sentencepiece") and not re.search("mask|snake|<s>|\u2581", text):
            assert t.decode(wanted) == text


def test_a_written_expression_keeps_its_behavior(q):
    """Also where ByteLevel has the same expression, which leaves nothing out."""
    content = json.loads(FILES["gpt2"].read_text())
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    step = {"type": "Split", "pattern": {"Regex": pattern}, "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    found = {}
    for behavior in "Isolated", "Removed":
        content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{**step, "behavior": behavior}, level]}
        t = q.Tokenizer.from_json(json.dumps(content))
        found[behavior] = t.encode("the code").tolist()
        assert q.Tokenizer.from_json(t.json).encode("the code").tolist() == found[behavior]
    assert found["Isolated"] and not found["Removed"]


BERT = {"type": "TemplateProcessing", "single": [
    {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
    {"SpecialToken": {"id": "[SEP]", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                                                              {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                       "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}}


@pytest.mark.parametrize("processor, frame", [
    (BERT, ([2], [3])), ({"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}, ([2], [3])),
    ({"type": "RobertaProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2], "trim_offsets": True}, ([2], [3])),
    ({"type": "Sequence", "processors": [{"type": "ByteLevel"}, BERT, BERT]}, ([2, 2], [3, 3])),
    ({"type": "ByteLevel", "trim_offsets": False}, ([], []))])
def test_tokens_around_a_text(q, processor, frame):
    content = json.loads(FILES["uncased"].read_text())
    plain = q.Tokenizer.from_json(json.dumps(content))
    t = q.Tokenizer.from_json(json.dumps({**content, "post_processor": processor}))
    assert t.frame == frame and (t.json == plain.json) == (frame == ([], [])) and plain.frame == ([], [])
    alone = plain.encode("the heart").tolist()
    assert t.encode("the heart").tolist() == alone
    assert t.encode("the heart", special=True).tolist() == [*frame[0], *alone, *frame[1]]
    again = q.Tokenizer.from_json(t.json)
    assert again.json == t.json and again.frame == frame


def test_the_package_reads_what_stands_around_a_text(q):
    tokenizers = pytest.importorskip("tokenizers")
    t = q.Tokenizer.from_json(json.dumps({**json.loads(FILES["uncased"].read_text()), "post_processor": BERT}))
    there = tokenizers.Tokenizer.from_str(t.json)
    assert there.encode("The heart").ids == t.encode("The heart", special=True).tolist()


def test_wordpiece_decodes_to_words(q):
    t = q.Tokenizer(f"wordpiece:{FILES['uncased']}", threads=3)
    text = "The HEART, the code. " * 60000
    assert t.decode(t.encode("The heart,  THE code.")) == "the heart , the code ."
    assert np.array_equal(t.encode(text), q.Tokenizer(f"file:{FILES['uncased']}", threads=1).encode(text))
    assert t.encode(b"\xff\xfea").tolist() == t.encode("a").tolist()
    affixes = q.Tokenizer(f"bpe:{FILES['affixes']}")
    assert affixes.decode(affixes.encode("The heart  of the code")) == "the heart of the code"
    with pytest.raises(q.FormatError, match="a tokenizer of wordpiece, not of bpe"):
        q.Tokenizer(f"bpe:{FILES['cased']}")


@pytest.mark.parametrize("name", ["gpt2", "llama", "sentencepiece"])
def test_any_bytes_come_back_and_threads_do_not_matter(q, name):
    t = q.Tokenizer(f"bpe:{FILES[name]}", threads=3)
    one = q.Tokenizer(f"bpe:{FILES[name]}", threads=1)
    text = b"".join(random_text(seed, 300) for seed in range(40)) * 60
    assert len(text) > 3 << 19
    numbers = t.encode(text)
    assert np.array_equal(numbers, one.encode(text))
    assert t.decode_bytes(numbers) == text


@pytest.mark.parametrize("name", ["unigram", "split"])
def test_cuts_of_a_long_text_do_not_matter(q, name):
    text = (random_text(1, 3000) + b" and the code of the heart goes on. ") * 200
    three, one = (q.Tokenizer(f"unigram:{FILES[name]}", threads=threads) for threads in (3, 1))
    assert len(text) > 3 << 19 and np.array_equal(three.encode(text), one.encode(text))


def test_scores_are_read_as_the_package_reads_them(q):
    """Of -3.9961860717170197 it makes -3.99618607171702, so that both ways are equally good."""
    def numbers(first, whole):
        vocab = '[["<unk>", 0], ["a", %s], ["b", 0], ["ab", %s]]' % (first, whole)
        t = q.Tokenizer.from_json('{"model": {"type": "Unigram", "unk_id": 0, "vocab": %s}}' % vocab)
        assert f'["a", {first}]' in t.json and q.Tokenizer.from_json(t.json).json == t.json
        return t.encode("ab").tolist()

    assert numbers("-3.9961860717170197", "-3.99618607171702") == numbers("3E-1", "0.3") == [3]
    assert numbers("0.3", "0.29999999999999993") == numbers("30", "299E-1") == [1, 2]


def test_letters_and_numbers_are_those_of_unicode(q):
    """Where Python's version of Unicode has the character: a letter, a number or neither between two others."""
    t = q.Tokenizer(f"bpe:{FILES['llama']}")
    source = (ROOT / "src" / "data" / "tokens" / "unicode" / "character_ranges.c").read_text()
    for name, first in (("letters", "L"), ("numbers", "N")):
        body = source[source.index(f"qn__character_{name}[]"):].split(";")[0]
        there = set()
        for part in body.split("{")[2:]:
            low, high = (int(word, 16) for word in part.split("}")[0].split(","))
            there.update(range(low, high + 1))
        for value in range(1, 0x110000):
            category = unicodedata.category(chr(value))
            assert category == "Cn" or (value in there) == (category[0] == first), hex(value)
    assert t.encode("a\u0e01b").size >= 1
    body = (ROOT / "src" / "data" / "tokens" / "unicode" / "word_ranges.c").read_text()
    ends = [int(word, 16) for word in re.findall(r"0x[0-9A-F]+", body)]
    others = {value for low, high in zip(ends[::2], ends[1::2]) for value in range(low, high + 1)}
    for value in range(1, 0x110000):
        category = unicodedata.category(chr(value))
        wanted = category in ("Mn", "Mc", "Me", "Nd", "Nl", "Pc")
        assert category in ("Cn", "So", "Cf") or (value in others) == wanted, hex(value)
    assert {0x200C, 0x200D, 0x24B6, 0x1F130} <= others and 0x200E not in others


# ---------------------------------------------------------------- learning

def test_learned_tokens_are_those_of_the_oracle(q, tmp_path):
    texts = ["the cat's hat, that cat sat. " * 3 + "aaaa aaa aaaaaaa abababab bcbcbc aabb x10 x10\n\n\n  do\n  do\n" * 4,
             (ROOT / "docs" / "tutorial.md").read_text().encode("ascii", "ignore").decode()[:6000]]
    paths = [tmp_path / f"{k}.txt" for k in range(2)]
    for path, text in zip(paths, texts):
        path.write_text(text)
    for wanted in (257, 300, 420, 5000):
        tokens, merges = oracle.learn_bpe(texts, wanted)
        t = q.Tokenizer.train_bpe(paths, wanted, threads=1)
        assert t.size == len(tokens) and q.Tokenizer(f"bpe:{wanted}", paths, threads=3).json == t.json
        assert [t.decode_bytes([k]) for k in range(t.size)] == tokens
        model, letter = json.loads(t.json)["model"], oracle.letters()
        spelled = ["".join(map(letter.get, token)) for token in tokens]
        assert model["merges"] == [[spelled[left], spelled[right]] for left, right in merges]
        assert t.decode_bytes(t.encode(texts[1])) == texts[1].encode()
    assert t.encode("a<|endoftext|>b").tolist()[1] == 0


def test_the_package_reads_what_was_learned(q):
    tokenizers = pytest.importorskip("tokenizers")
    text = (ROOT / "docs" / "tables.md").read_text()
    t = q.Tokenizer.train_bpe(text.encode(), 1000)
    there = tokenizers.Tokenizer.from_str(t.json)
    assert there.encode(text + " <|endoftext|> ünï").ids == t.encode(text + " <|endoftext|> ünï").tolist()


# ---------------------------------------------------------------- the command, and files of tokens

def test_the_command_writes_what_python_gives(q, run_quern, tmp_path):
    texts = [random_text(seed, 2000) for seed in (5, 6)]
    (tmp_path / "a.txt").write_bytes(texts[0])
    (tmp_path / "b.txt.bz2").write_bytes(bz2.compress(texts[1]))
    corpus = [tmp_path / "a.txt", tmp_path / "b.txt.bz2"]
    made = run_quern("data", "tokenize", *corpus, "--train-bpe", 400, "-o", tmp_path / "t.json").stdout
    t = q.Tokenizer(f"bpe:{tmp_path / 't.json'}")
    assert t.json == q.Tokenizer.train_bpe(corpus, 400).json and made.startswith(f"{t.size} tokens in ")
    wanted = np.concatenate([t.encode(texts[0]), t.encode("<|endoftext|>"), t.encode(texts[1])])
    for threads, name in ((1, "n.npy"), (3, "n.bin")):
        run_quern("data", "tokenize", *corpus, "--tokens", f"bpe:{tmp_path / 't.json'}", "-o", tmp_path / name,
                  "--threads", threads)
        numbers = np.load(tmp_path / name) if name.endswith("npy") else np.fromfile(tmp_path / name, "<u2")
        assert numbers.dtype == np.uint16 and np.array_equal(numbers, wanted)
        run_quern("data", "tokenize", tmp_path / name, "--decode", "--tokens", f"file:{tmp_path / 't.json'}",
                  "-o", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == b"<|endoftext|>".join(texts)
    said = run_quern("data", "tokenize", "-", "--tokens", "words", "-o", tmp_path / "w.npy", "--json",
                     "--save-tokenizer", tmp_path / "w.json", input="a piped text\n" * 3).stdout
    words = q.Tokenizer(f"file:{tmp_path / 'w.json'}")
    assert json.loads(said) == {"tokens": 12, "vocabulary": 5, "tokenizer": "words", "digest": words.digest}
    assert words.decode(np.load(tmp_path / "w.npy")) == "a piped text\n" * 3
    assert t.write(corpus, tmp_path / "p.npy") == len(wanted)
    assert (tmp_path / "p.npy").read_bytes() == (tmp_path / "n.npy").read_bytes()


def test_many_tokens_take_32_bits(q, tmp_path):
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 20000))) + "".join(map(chr, range(0x20000, 0x20000 + 45535)))
    for characters, width in (65534, 2), (65535, 4):
        (tmp_path / "a.txt").write_text(text[:characters])
        t = q.Tokenizer("chars", tmp_path / "a.txt")
        assert t.size == characters + 1  # one for other characters
        assert t.write(tmp_path / "a.txt", tmp_path / "a.npy") == characters
        numbers = np.load(tmp_path / "a.npy")
        assert numbers.itemsize == width and np.array_equal(numbers, np.arange(characters))
    with pytest.raises(q.UsageError, match="16 bits for each, and the vocabulary has 65536 tokens"):
        t.write(tmp_path / "a.txt", tmp_path / "a.bin")
    assert not (tmp_path / "a.bin").exists()


@pytest.mark.parametrize("words, said", [
    ([], "CORPUS is missing"), (["a.txt"], "-o FILE is required"), (["a.txt", "-o", "a.npy"], "--tokens WHICH is required"),
    (["a.txt", "-o", "a.txt.npy", "--tokens", "chars", "--train-bpe", 300], "two different tasks"),
    (["a.txt", "-o", "a.json", "--train-bpe", 300, "--decode"], "--decode does nothing"),
    (["a.txt", "-o", "a.csv", "--tokens", "bytes"], "neither in .npy nor in .bin"),
    (["none.txt", "-o", "a.txt.gz", "--tokens", "words"], "neither in .npy nor in .bin"),  # said before it learns
    (["a.txt", "-o", "a.npy", "--train-bpe", 300], "writes a tokenizer"),
    (["a.txt", "-o", "b", "--tokens", "chars", "--decode"], "is learned from a corpus"),
    (["a.txt", "-o", "b", "--tokens", "bpe:300", "--decode"], "save the tokenizer with --save-tokenizer"),
    (["a.txt", "-o", "b", "--tokens", "bpe:8000", "--decode"], "is learned from a corpus"),
    (["a.txt", "-o", "b", "--tokens", "file:t.json", "--decode"], "the file has 3 bytes"),
    (["none.txt", "-o", "a.npy", "--tokens", "bytes"], "there is no such file")])
def test_the_command_says_what_is_wrong(run_quern, tmp_path, words, said):
    (tmp_path / "a.txt").write_text("abc")
    (tmp_path / "t.json").write_text('{"kind": "bytes"}')
    done = run_quern("data", "tokenize", *words, cwd=tmp_path, status=None)
    assert done.returncode in (1, 2) and said in done.stderr, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "t.json"]


BAD = {
    "cut": ('{"model": {"type": "BPE"', "was expected here"),
    "other": ('{"model": {"type": "WordLevel"}}', "of the type WordLevel"),
    "no list": ('{"model": {"type": "Unigram"}}', "is not a list of tokens"),
    "no score": ('{"model": {"type": "Unigram", "vocab": [["a", "b"]]}}', "token 0 of"),
    "no such token": ('{"model": {"type": "Unigram", "unk_id": 1, "vocab": [["a", 0]]}}', "unk_id"),
    "map": ('{"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}, "model": {"type": "Unigram", '
            '"vocab": [["a", 0]]}}', "precompiled_charsmap"),
    "none": ("{}", "not the text of a tokenizer"),
    "no vocabulary": ('{"model": {"type": "BPE"}}', '"model.vocab" is not an object'),
    "two numbers": ('{"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}}}', "two tokens have the number 0"),
    "far": ('{"model": {"type": "BPE", "vocab": {"a": 16777215}}}', "their numbers go to 16777215"),
    "too far": ('{"model": {"type": "BPE", "vocab": {"a": 16777216}}}', "the most is 16777215"),
    "no merges": ('{"model": {"type": "BPE", "vocab": {"a": 0}}}', '"model.merges" is not a list'),
    "missing": ('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}', 'the token "b"'),
    "made": ('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "a"]]}}', 'the token "aa"'),
    "circle": ('{"model": {"type": "BPE", "vocab": {"a": 0, "": 1}, "merges": [["a", ""]]}}', "not a pair"),
    "twice": ('{"model": {"type": "BPE", "vocab": {"a": 0, "aa": 1}, "merges": ["a a", "a a"]}}', "there before"),
    "dropout": ('{"model": {"type": "BPE", "dropout": 0.1}}', "draws tokens at random"),
    "affix": ('{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"], '
              '"continuing_subword_prefix": "@@"}}', "merge 0 is not a pair"),
    "long affix": ('{"model": {"type": "BPE", "vocab": {"a": 0}, "end_of_word_suffix": "' + 40 * "w" + '"}}',
                   "longer than 31 bytes"),
    "step": ('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "pre_tokenizer": {"type": "Other"}}',
             "Other is not supported"),
    "pattern": ('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "pre_tokenizer": {"type": "Sequence", '
                '"pretokenizers": [{"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"}]}}',
                "the expression of the pre-tokeniser is wrong"),
    "unknown": ('{"model": {"type": "WordPiece", "vocab": {"a": 0}}}', '"model.unk_token" is not'),
    "processor": ('{"post_processor": {"type": "Other"}, "pre_tokenizer": {"type": "BertPreTokenizer"}, "model": '
                  '{"type": "WordPiece", "unk_token": "a", "vocab": {"a": 0}}}', "the post-processor Other is not"),
    "around": ('{"post_processor": {"type": "BertProcessing", "sep": ["a", 0], "cls": ["b", 1]}, "pre_tokenizer": '
               '{"type": "BertPreTokenizer"}, "model": {"type": "WordPiece", "unk_token": "a", "vocab": {"a": 0}}}',
               "or a number that is not in the vocabulary"),
    "level": ('{"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "WordPiece", "unk_token": "a", '
              '"vocab": {"a": 0}}}', "ByteLevel is not supported with WordPiece"),
    "normalizer": ('{"normalizer": {"type": "Other"}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}',
                   "the normaliser Other is not supported"),
    "added": ('{"added_tokens": [{"id": 5, "content": "a"}], "model": {"type": "BPE", "vocab": {"a": 0}}}',
              "has two numbers"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_says_what_is_wrong(q, name, tmp_path):
    text, said = BAD[name]
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(q.QuernError) as caught:
        q.Tokenizer(f"file:{path}")
    assert said in str(caught.value) and "t.json" in str(caught.value), caught.value


def test_arguments_of_a_tokenizer(q):
    with pytest.raises(q.UsageError, match="is not a tokenizer"):
        q.Tokenizer("letters")
    with pytest.raises(q.InputError, match="none was given"):
        q.Tokenizer("words")
    t = q.Tokenizer("bytes")
    with pytest.raises(q.InputError, match="has the number 256"):
        t.decode([0, 256])
    with pytest.raises(TypeError, match="whole numbers"):
        t.decode([0.5])
    with pytest.raises(ValueError):
        t.decode([-1])
    with pytest.raises(TypeError):
        t.encode(5)  # not five zero bytes
    assert (t.decode([]), t.encode("").dtype, len(t), t.kind) == ("", np.uint32, 256, "bytes")
