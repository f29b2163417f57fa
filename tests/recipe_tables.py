"""Tables of numbers for tests/recipes.py, made from pixels by Python alone."""

import csv
from fractions import Fraction


def write_real(files, pixels, kinds):
    """Features with decimals, and as labels prices far from 0, whole numbers that may be negative,
    and two classes."""
    cells = [[f"{(row[k] - 80) / 10:.2f}" for k in range(8, 784, 32)] for row in pixels]
    ink = [sum(row) for row in pixels]
    labels = {"real": [f"{200000 + n * 3.7 - 9000 * kind:.2f}" for n, kind in zip(ink, kinds)],
              "whole": [str(n // 50 - 600) for n in ink],
              "pair": [str(kind % 2) for kind in kinds]}
    for name, column in labels.items():
        with open(files[name], "w", newline="") as out:
            csv.writer(out).writerows([label, *row] for label, row in zip(column, cells))


def write_weighed(files, pixels, kinds, names):
    """Decimals with weights: of named classes, some values missing; of real labels, without names."""
    forms = ["1", "0.5", "0", "2.25e-3", "1e4", "3", "0.1", "-0", "1e-42", "7.000001"]
    weights = [forms[(row[300] + row[412] + i) % len(forms)] for i, row in enumerate(pixels)]
    with open(files["weighed"], "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow([*(f"c{k}" for k in range(0, 400, 16)), "w",
                         *(f"c{k}" for k in range(400, 784, 16)), "kind"])
        for i, (kind, row, weight) in enumerate(zip(kinds, pixels, weights)):
            cells = ["" if i % 5 == 2 and (i + k) % 4 == 0 and k % 96 == 0
                     else f"{row[k] / 8 - 3:.3f}" for k in range(0, 784, 16)]
            writer.writerow([*cells[:25], weight, *cells[25:], names[kind]])
    with open(files["weighed_real"], "w", newline="") as out:
        csv.writer(out).writerows(
            [f"{200000 + sum(row) * 3.7 - 9000 * kind:.2f}",
             *(f"{(row[k] - 80) / 10:.2f}" for k in range(8, 784, 32)), weight]
            for kind, row, weight in zip(kinds, pixels, weights))


def hard_cells(row):
    """Numbers that lie on the middle between two floats, or beside it where no double can tell; -0
    for +0 here and there; and numbers up to the one that is rounded to the greatest float."""
    cells = []
    for k in range(200, 584, 16):
        # A float of 24 bits from four pixels, in (1, 2) times a power of two, and half a unit more.
        bits = row[k] << 16 | row[k + 1] << 8 | row[k + 2] | 1 << 23
        power = row[k + 3] % 60 - 50
        middle = Fraction(2 * bits + 1) * Fraction(2) ** power
        text = decimal_of(middle, power - 1)
        forms = (text, text + "0" * 9 + "1", nearly(text), f"{nineteen(middle)}", "-0", "0.0")
        cells.append(forms[(row[k + 1] + k // 16) % len(forms)])
    cells.append("3.4028235677973365e38" if row[300] > 99 else "1e38")
    return cells


def decimal_of(value, power):
    """A fraction with a power of two below the line, as a decimal with a point and all digits."""
    places = max(1, -power)
    digits = str(value.numerator * 10 ** places // value.denominator).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}"


def nearly(text):
    """The decimal just below, with seven more digits."""
    digits = text.replace(".", "")
    below = str(int(digits + "0000000") - 1).rjust(len(digits) + 7, "0")
    point = text.index(".")
    return f"{below[:point]}.{below[point:]}"


def nineteen(value):
    """19 digits of it, and an exponent: the last digit is cut off, so it lies on either side."""
    exponent = 0
    while value >= 10 ** 19:
        value, exponent = value / 10, exponent + 1
    while value < 10 ** 18:
        value, exponent = value * 10, exponent - 1
    return f"{value.numerator // value.denominator}e{exponent}"


def tiny_cells(row):
    """Subnormal floats and those just above; features whose squares are subnormal; both zeros."""
    return [*(f"{'-' if row[k + 2] % 3 == 1 else ''}{row[k] + 1}.{row[k + 1]:03d}e"
              f"{(-41, -40, -39)[k % 3]}" for k in range(200, 360, 16)),
            *(f"{'-' if row[k + 1] % 2 else ''}{row[k]}.5e-19" for k in range(360, 520, 16)),
            *("-0" if row[k] > 127 else "0" for k in range(520, 560, 16)),
            *(f"{row[k] / 255:.9f}" for k in range(300, 500, 50))]


WORDS = """the The a_b 7 don't ZW\u00d6LF Gr\u00f6\u00dfe \u03a9mega \u0401\u043b\u043a\u0430 \u041f\u0418\u0420
\u65e5\u672c \U0001f600 \u0e44\u0e17 caf\u00e9 caf\u00e9 very very very not good bad \u00abso\u00bb x\u00d7y end. -- (fine)
""".split()


def write_texts(path, pixels, kinds):
    """Notes of several words, most of them different, beside numbers, a title of few words, and the class; one of
    eight is missing."""
    with open(path, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["note", "size", "kind", "title"])
        for i, (kind, row) in enumerate(zip(kinds, pixels)):
            draw = [row[(k * 97 + i % 170 * 31) % 784] + i % 170 * (k + 1) for k in range(8)]
            note = " ".join([*(WORDS[d % len(WORDS)] for d in draw[: 4 + i % 2]), f"w{kind}"])
            cells = [note, f"{row[400] / 8:.2f}", kind, f"No. {i % 6}, {WORDS[i % 5]}"]
            writer.writerow(["" if (i + k) % 8 == 1 and k != 2 else cell for k, cell in enumerate(cells)])
