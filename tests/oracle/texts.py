"""Sections 25.60 to 25.64 of the contract: columns of texts."""

from collections import Counter

import numpy as np

from binary32 import ONE, ZERO, fma
from elementary import log

NOT_OF_WORDS = """
0000-002F, 003A-0040, 005B-005E, 0060, 007B-00A9, 00AB-00B1, 00B4, 00B6-00B8, 00BB-00BF, 00D7, 00F7, 02C2-02DF, 037E,
0387, 055A-055F, 0589-058F, 05BE, 05C0, 05C3, 05F3-05F4, 0600-060F, 061B-061F, 066A-066D, 06D4, 0964-0965, 0E00-0EFF,
1000-109F, 1680, 1780-17FF, 2000-206F, 20A0-20CF, 2100-2BFF, 2E00-312F, 3190-A4CF, D800-F8FF, F900-FAFF, FE00-FE6F,
FEFF-FF0F, FF1A-FF20, FF3B-FF40, FF5B-FFFF, 1F000-10FFFF"""  # 25.52
ALONE = "0E00-0EFF, 1000-109F, 1780-17FF, 2600-27BF, 3040-312F, 3190-A4CF, F900-FAFF, 1F000-10FFFF"  # 25.62
SPACES = "0009-000D, 001C-0020, 0085, 00A0, 1680, 2000-200A, 2028, 2029, 202F, 205F, 3000"  # 24.85
MASK = 2**64 - 1


def ranges(text):
    return [tuple(int(end, 16) for end in (part.split("-") * 2)[:2]) for part in text.split(",")]


def within(c, text, known={}):  # noqa: B006
    found = known.setdefault(text, ranges(text))
    return any(low <= ord(c) <= high for low, high in found)


def fold(c):
    """25.62: a small letter for a capital one."""
    n = ord(c)
    if 0x41 <= n <= 0x5A or (0xC0 <= n <= 0xDE and n != 0xD7) or 0x391 <= n <= 0x3A9 or 0x410 <= n <= 0x42F:
        return chr(n + 32)
    return chr(n + 80) if 0x400 <= n <= 0x40F else c


def words(text):
    found, word = [], ""
    for c in text:
        if not within(c, NOT_OF_WORDS):
            word += fold(c)
            continue
        found += [word] * bool(word) + [c] * within(c, ALONE)
        word = ""
    return found + [word] * bool(word)


def grams(text):
    return part_grams(text, PAIRS)


def stretches(text):
    """24.85: runs of characters that are not spaces."""
    found = [""]
    for c in text:
        found = found + [""] if within(c, SPACES) else found[:-1] + [found[-1] + fold(c)]
    return [part for part in found if part]


def pieces(run, least, most, short=False):
    """All pieces of these lengths; `short`: there is one at least, and none longer than the first that is all."""
    found = []
    for n in range(least, most + 1):
        found += [run[i : i + n] for i in range(len(run) - n + 1)]
        if short and n >= len(run):
            return found or [run]
    return found


def part_grams(text, part):
    """24.84: those of one part of a column."""
    least, most = part["least"], part["most"]
    if part["grams"] == "words":
        return [" ".join(gram) for gram in pieces(words(text), least, most)]
    if part["grams"] == "chars":
        return [gram for own in stretches(text) for gram in pieces(f" {own} ", least, most, True)]
    return pieces(" ".join(stretches(text)), least, most)


PAIRS = {"grams": "words", "least": 1, "most": 2}


def spoken(text):
    """25.61: the characters that tell a text from an address or an identifier."""
    return sum(within(c, ALONE) or (before == " " and c not in "0123456789" and not within(c, NOT_OF_WORDS))
               for before, c in zip("." + text, text))


def siphash(key, message):
    """SipHash-2-4 (Aumasson and Bernstein, 2012)."""
    k0, k1 = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rotated(x, bits):
        return (x << bits | x >> (64 - bits)) & MASK

    def rounds(count):
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK
            v[2] = (v[2] + v[3]) & MASK
            v[1] = rotated(v[1], 13) ^ v[0]
            v[3] = rotated(v[3], 16) ^ v[2]
            v[0] = rotated(v[0], 32)
            v[2] = (v[2] + v[1]) & MASK
            v[0] = (v[0] + v[3]) & MASK
            v[1] = rotated(v[1], 17) ^ v[2]
            v[3] = rotated(v[3], 21) ^ v[0]
            v[2] = rotated(v[2], 32)

    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) % 256])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i : i + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def buckets(text, part):
    """How often each bucket occurs, by ascending bucket."""
    return sorted(Counter(siphash(bytes(range(16)), gram.encode()) % 2 ** part["bits"]
                          for gram in part_grams(text, part)).items())


def bits_of(texts, present, said):
    """25.61: B of a column with these different texts; 0: it is not one of texts."""
    number = sum(len(grams(text)) for text in texts)
    d = len(texts)
    told = sum(map(spoken, texts))
    if not said and not (d >= 10 and 2 * d > present and number >= 7 * d and told >= 3 * d):
        return 0
    return least_bits(number)


def least_bits(number):
    return next((b for b in range(10, 18) if 2**b >= 2 * number), 18)


def choose(names, listed):
    """24.84: the grams that `listed` names, for all columns of texts of a table."""
    for k in names.texts if listed else ():
        parts = []
        for word in listed.split(","):
            kind, _, own = word.partition(":")
            least, most = own.split("..") if own else (1, 2) if kind == "words" else (3, 5)
            part = {"grams": kind, "least": int(least), "most": int(most)}
            number = sum(len(part_grams(text, part)) for text in names.texts[k])
            parts.append({**part, "bits": least_bits(number)})
        usual = parts == [{**PAIRS, "bits": parts[0]["bits"]}]
        names["features"][k]["text"] = parts[0]["bits"] if usual else parts


def value_text(value):
    """That value in the recipe."""
    if isinstance(value, int):
        return str(value)
    return "[" + ",".join(f'{{"grams":"{p["grams"]}","least":{p["least"]},"most":{p["most"]},"bits":{p["bits"]}}}'
                          for p in value) + "]"


def digest_end(texts):
    """25.61: what the digest ends with; `texts` has those of each column by its number."""
    end = len(texts).to_bytes(8, "little")
    for k, column in sorted(texts.items()):
        end += k.to_bytes(8, "little") + len(column).to_bytes(8, "little")
        end += b"".join(text.encode() + b"\0" for text in column)
    return end


def columns_of(names):
    """The parts of columns of texts: pairs of the number of the column and the part."""
    features = names["features"] if names else []
    values = [(k, c["text"]) for k, c in enumerate(features) if isinstance(c, dict) and "text" in c]
    return [(k, part) for k, value in values for part in
            ([{**PAIRS, "bits": value}] if isinstance(value, int) else value)]


def idf_of(items, bits):
    """25.64: of the texts of training items."""
    found = np.zeros(2**bits, np.int64)
    for own in items:
        for bucket, _ in own:
            found[bucket] += 1
    n = np.float32(len(items) + 1)
    return (log(n / (found + 1).astype(np.float32)) + ONE).astype(np.float32)


def values_of(items, idf):
    """25.63: the inputs of each item."""
    x = np.zeros((len(items), len(idf)), np.float32)
    for i, own in enumerate(items):
        acc = ZERO
        for bucket, count in own:
            t = ONE if count == 1 else log(np.array([count], np.float32))[0] + ONE
            x[i, bucket] = t * idf[bucket]
            acc = fma(x[i, bucket], x[i, bucket], acc)
        if own:
            x[i] = x[i] / np.sqrt(acc)
    return x


def inputs(table, names, chosen):
    """The inputs of all columns of texts, and their idf; none of either without such columns."""
    all_values, all_idf = [], []
    for k, part in columns_of(names):
        own = names.texts[k]
        items = [[] if np.isnan(code) else buckets(own[int(code)], part) for code in table[:, k]]
        idf = idf_of([items[i] for i in chosen], part["bits"])
        all_values.append(values_of(items, idf))
        all_idf.append(idf)
    return all_values, all_idf
