"""Tokenizers from docs/exactness.md 25.50 to 25.52 and 25.55: characters, words, and learning a byte-level BPE. The
ranges of characters are read from the contract itself."""

import hashlib
import pathlib
import re
from collections import Counter

BROKEN = 0x110000
REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


def ranges():
    text = (pathlib.Path(__file__).parents[2] / "docs" / "exactness.md").read_text()
    table = text[text.index("25.52 **Words.**"):text.index("With `words` a text is cut")]
    found = re.findall(r"\b([0-9A-F]{4,6})(?:-([0-9A-F]{4,6}))?\b", table.split("(hexadecimal):")[1])
    return [(int(first, 16), int(last or first, 16)) for first, last in found]


ALONE = ranges()


def characters(text):
    """The values of a text's characters, broken bytes among them."""
    values, at = [], 0
    while at < len(text):
        for length in (1, 2, 3, 4):
            try:
                values.append(ord(text[at:at + length].decode()))
                break
            except (UnicodeDecodeError, TypeError):
                continue
        else:
            length = 1
            values.append(BROKEN + text[at])
        at += length
    return values


def bytes_of(value):
    return chr(value).encode() if value < BROKEN else bytes([value - BROKEN])


def of_word(value):
    return value < BROKEN and not any(first <= value <= last for first, last in ALONE)


def words(text):
    """Pairs: whether a token is a word, and its bytes."""
    runs = []
    for value in characters(text):
        word = of_word(value)
        if word and runs and runs[-1][0]:
            runs[-1] = (True, runs[-1][1] + bytes_of(value))
        else:
            runs.append((word, bytes_of(value)))
    return [run for k, run in enumerate(runs)
            if not (run[1] == b" " and 0 < k < len(runs) - 1 and runs[k - 1][0] and runs[k + 1][0])]


class Chars:
    def __init__(self, files):
        self.values = sorted({value for text in files for value in characters(text)})
        self.number = {value: k for k, value in enumerate(self.values)}
        self.size = len(self.values) + 1
        self.json = '{"kind": "chars", "vocabulary": [' + ", ".join(map(str, self.values)) + "]}"

    def encode(self, text):
        return [self.number.get(value, self.size - 1) for value in characters(text)]

    def decode(self, numbers):
        return b"".join(REPLACEMENT if k == self.size - 1 else bytes_of(self.values[k]) for k in numbers)


class Words:
    def __init__(self, files, most=None):
        counts = Counter(token for text in files for token in words(text))
        order = sorted(counts, key=lambda token: (-counts[token], token[1]))
        self.tokens = order[:most - 1] if most else order
        self.number = {token: k for k, token in enumerate(self.tokens)}
        self.size = len(self.tokens) + 1
        entries = [f'"{token.decode()}"' if word else str(characters(token)[0]) for word, token in self.tokens]
        self.json = '{"kind": "words", "vocabulary": [' + ", ".join(entries) + "]}"

    def encode(self, text):
        return [self.number.get(token, self.size - 1) for token in words(text)]

    def decode(self, numbers):
        text, before = b"", False
        for k in numbers:
            word, token = (True, REPLACEMENT) if k == self.size - 1 else self.tokens[k]
            text += (b" " if before and word else b"") + token
            before = word
        return text


def letters():
    """The character that stands for each byte in a tokenizer.json."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {**{byte: chr(byte) for byte in seen}, **{byte: chr(0x100 + k) for k, byte in enumerate(hidden)}}


def pieces_of_ascii(text):
    """The words of the expression of GPT-2, of a text of ASCII."""
    return re.findall(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", text, re.A)


def learn_bpe(files, wanted):
    """Tokens as bytes, and merges as pairs of their numbers: recounted in each step."""
    order = sorted(letters().items(), key=lambda item: item[1])
    tokens = [b"<|endoftext|>", *(bytes([byte]) for byte, _ in order)]
    number = {token: k for k, token in enumerate(tokens)}
    counts = Counter(word for text in files for word in pieces_of_ascii(text))
    spelled = [([number[bytes([byte])] for byte in word.encode()], times) for word, times in counts.items()]
    merges = []
    while len(tokens) < wanted:
        pairs = Counter()
        for word, times in spelled:
            for pair in zip(word, word[1:]):
                pairs[pair] += times
        best = min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)
        if best is None or pairs[best] < 2:
            break
        both = tokens[best[0]] + tokens[best[1]]
        if both not in number:
            number[both] = len(tokens)
            tokens.append(both)
        merges.append(best)
        for word, _ in spelled:
            k = 0
            while k + 1 < len(word):
                if (word[k], word[k + 1]) == best:
                    word[k:k + 2] = [number[both]]
                k += 1
    return tokens, merges


def digest(json):
    return hashlib.sha256(json.encode()).hexdigest()
