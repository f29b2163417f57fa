"""Tokenizers from docs/exactness.md 25.50 to 25.52: characters and words. The ranges of characters are read from the
contract itself."""

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


def digest(json):
    return hashlib.sha256(json.encode()).hexdigest()
