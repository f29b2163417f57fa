#!/usr/bin/env python3
"""Four tables of src/data/tokens/unicode, such as canonical_table.c, from Python's unicodedata.

    scripts/unicode_tables.py FOLDER          then clang-format -i

They are those of Unicode 9.0, which the package tokenizers has: what came later is left out. Of characters
that were there the newer versions of unicodedata say the same.
"""

import sys
import unicodedata

# Marks and compositions that came after Unicode 9.0.
LATER = [
    (0x7FD, 0x7FD), (0x898, 0x89F), (0x8CA, 0x8D3), (0x9FE, 0x9FE), (0xAFA, 0xAFF), (0xB55, 0xB55), (0xC04, 0xC04),
    (0xC3C, 0xC3C), (0xD00, 0xD00), (0xD3B, 0xD3C), (0xD81, 0xD81), (0xEBA, 0xEBA), (0x1715, 0x1715),
    (0x180F, 0x180F), (0x1ABF, 0x1ACE), (0x1CF7, 0x1CF7), (0x1DF6, 0x1DFA), (0x32FF, 0x32FF), (0xA7F2, 0xA7F4),
    (0xA82C, 0xA82C), (0xA8FF, 0xA8FF), (0xAB69, 0xAB69), (0x10781, 0x107BA), (0x10D24, 0x10D27),
    (0x10EAB, 0x10EAC), (0x10F46, 0x10F50), (0x10F82, 0x10F85), (0x11070, 0x11070), (0x11073, 0x11074),
    (0x110C2, 0x110C2), (0x11145, 0x11146), (0x111C9, 0x111C9), (0x111CE, 0x111CF), (0x1133B, 0x1133B),
    (0x1145E, 0x1145E), (0x1182C, 0x1183A), (0x11930, 0x1193E), (0x11940, 0x11940), (0x11942, 0x11943),
    (0x119D1, 0x119E0), (0x119E4, 0x119E4), (0x11A01, 0x11A0A), (0x11A33, 0x11A39), (0x11A3B, 0x11A3E),
    (0x11A47, 0x11A47), (0x11A51, 0x11A5B), (0x11A8A, 0x11A99), (0x11D31, 0x11D45), (0x11D47, 0x11D47),
    (0x11D8A, 0x11D97), (0x11EF3, 0x11EF6), (0x16F4F, 0x16F4F), (0x16F7F, 0x16F87), (0x16FE4, 0x16FF1),
    (0x1CF00, 0x1CF46), (0x1E130, 0x1E136), (0x1E2AE, 0x1E2AE), (0x1E2EC, 0x1E2EF), (0x1F16C, 0x1F16C),
    (0x1FBF0, 0x1FBF9)]
MARKS_THEN = (0x1CF2, 0x1CF3)  # letters since Unicode 12

NEW = {c for a, b in LATER for c in range(a, b + 1)}
KNOWN = [c for c in range(0x110000) if c not in NEW]


def parts(c):
    """How a character is composed, and whether it is only similar to it."""
    words = unicodedata.decomposition(chr(c)).split()
    similar = bool(words) and words[0].startswith("<")
    return tuple(int(word, 16) for word in words[similar:]), similar


def runs(pairs):
    """Pairs of neighbours with one value, as (first, last, value)."""
    found = []
    for c, value in pairs:
        if found and found[-1][1] == c - 1 and found[-1][2] == value:
            found[-1][1] = c
        else:
            found.append([c, c, value])
    return found


def table(numbers):
    return ", ".join("0" if n == 0 else f"{n:#X}".replace("X", "x") for n in numbers)


def array(name, note, numbers, width):
    """A flat list of rows of `width` numbers, and how many there are."""
    return f"""
/* {note} */
const uint32_t qn__unicode_{name}[] = {{{table(numbers)}}};
const size_t qn__unicode_{name}_count =
    sizeof qn__unicode_{name} / sizeof *qn__unicode_{name} / {width};
"""


def canonical():
    pairs, singles, alone = [], [], []
    for c in KNOWN:
        found, similar = parts(c)
        if len(found) == 1 and not similar:
            singles += [c, *found]
        elif found and not similar:
            pairs += [c, *found]
            alone += [c] * (unicodedata.normalize("NFC", "".join(map(chr, found))) != chr(c))
    return (array("pairs", "A character and the two of which it is composed.", pairs, 3)
            + array("alone", "Those that are not composed again.", alone, 1)
            + array("singles", "A character, and the one that always stands for it.", singles, 2))


def marks():
    classes = runs((c, unicodedata.combining(chr(c))) for c in KNOWN if unicodedata.combining(chr(c)))
    found = runs((c, 0) for c in KNOWN if unicodedata.category(chr(c))[0] == "M" or c in MARKS_THEN)
    rows = ", ".join(f"{{{a:#x}, {b:#x}}}" for a, b, _ in found)
    return (array("classes", "First and last of characters, and their class of combination.",
                  (n for run in classes for n in run), 3)
            + f"""
/* All marks, also those with a width. */
const qn__character_range qn__unicode_marks[] = {{{rows}, {{0, 0}}}};
""")


def similar_ones():
    return [(c, parts(c)[0]) for c in KNOWN if parts(c)[1]]


def similar():
    rows = []
    for c, found in similar_ones():
        if len(found) > 1:
            continue
        if rows and rows[-1][1] == c - 1 and rows[-1][2] + c - rows[-1][0] == found[0]:
            rows[-1][1] = c
        else:
            rows.append([c, c, found[0]])
    return array("similar", "First and last of characters, and for which one the first stands; the others follow it.",
                 (n for row in rows for n in row), 3)


def several():
    return array("several", "A character, for how many others it stands, and these.",
                 (n for c, found in similar_ones() if len(found) > 1 for n in (c, len(found), *found)), 1)


def main():
    for make, note in ((canonical, "Compositions"), (marks, "Marks"), (similar, "Characters that stand for another"),
                       (several, "Characters that stand for several others")):
        with open(f"{sys.argv[1]}/{make.__name__}_table.c", "w") as file:
            file.write(f"/* {note}, of Unicode 9.0, by scripts/unicode_tables.py; in ascending order. */\n"
                       '#include "data/tokens/unicode/unicode_forms.h"\n' + make())


if __name__ == "__main__":
    main()
