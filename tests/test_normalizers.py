"""Forms of Unicode and other normalisers of a tokenizer.json, beside Python's unicodedata."""

import importlib.util
import json
import random
import unicodedata

import pytest

import builds
from python_package import folder


@pytest.fixture(scope="module")
def known():
    """The characters whose forms are those of Unicode 9.0, as those of Python are."""
    path = builds.ROOT / "scripts" / "unicode_tables.py"
    spec = importlib.util.spec_from_file_location("unicode_tables", path)
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    return [c for c in map(chr, tables.KNOWN) if c != "\0" and unicodedata.category(c) not in ("Cn", "Co", "Cs")]


@pytest.fixture(scope="module")
def normal():
    """What a normaliser makes of a text: a model whose tokens are bytes shows it."""
    folder()
    import quern

    vocab = {"<unk>": 0, **{f"<0x{byte:02X}>": byte + 1 for byte in range(256)}}

    def make(**normalizer):
        t = quern.Tokenizer.from_json(json.dumps({"normalizer": normalizer, "model": {
            "type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "vocab": vocab, "merges": []}}))
        assert quern.Tokenizer.from_json(t.json).json == t.json
        return lambda text: bytes(number - 1 for number in t.encode(text).tolist())

    return make


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_forms_are_those_of_unicode(normal, known, form):
    generator, own = random.Random(3), normal(type=form)
    marks = [c for c in known if unicodedata.combining(c)]
    letters = [c for c in known if unicodedata.decomposition(c)] + ["a", "o", "\u1100", "\u1161", "\u11a8", "\uac00"]
    rows = ["".join(generator.choice(generator.choice((marks, letters))) for _ in range(6)) for _ in range(4000)]
    rows += known + ["o" + "".join(generator.choices(marks, k=90)), "", "a\u0301", "\u0301"]
    text = "\n".join(rows)
    assert own(text) == unicodedata.normalize(form, text).encode()
    assert own(b"e\xcc\x81\xff\xcc\x81\xcc") == (b"\xc3\xa9" if form[-1] == "C" else b"e\xcc\x81") + b"\xff\xcc\x81\xcc"


def test_other_steps(normal, known):
    text = "".join(c for c in known if ord(c) < 0x10000)
    assert normal(type="StripAccents")(text).decode() == "".join(
        c for c in text if unicodedata.category(c)[0] != "M" and c not in "\u1cf2\u1cf3")
    assert normal(type="Lowercase")("AbC \u0130\u0394\u03a3").decode() == "abc i\u0307\u03b4\u03c3"
    assert normal(type="Strip", strip_left=True, strip_right=False)(" \u2003a b ") == b"a b "
    assert normal(type="Strip", strip_left=True, strip_right=True)(" \n") == b""
    assert normal(type="Prepend", prepend="_")("a") == b"_a" and normal(type="Prepend", prepend="_")("") == b""
    assert normal(type="Replace", pattern={"String": "aa"}, content="b")("aaaaa") == b"bba"
    assert normal(type="Sequence", normalizers=[{"type": "Prepend", "prepend": "A "}, {"type": "Lowercase"},
                                                {"type": "Replace", "pattern": {"String": " "}, "content": "__"}])(
        "B C") == b"a__b__c"
    expression = normal(type="Replace", pattern={"Regex": " {2,}"}, content="_")
    assert expression(b"a   b c  \xff  d") == b"a_b c_\xff_d"
