#!/usr/bin/env python3
"""Draws docs/training.svg: a real training run as a terminal showed it, in the middle of an epoch.

    python3 scripts/picture.py [PROGRAM [ARGUMENT ...]]

Runs PROGRAM (default build/quern) with the arguments in a pseudo-terminal to its end, and draws the
screen at three quarters of the run. The default arguments are the README's job if MNIST is
available, otherwise the built-in digits.
"""

import html
import os
import pty
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 100
CELL, LINE, MARGIN = 8.43, 19, 18  # pixels: a character's width, a line's height, the frame
COLOURS = {"36": "#56b6c2", "32": "#98c379", "31": "#e06c75", "33": "#e5c07b", "1": "#ffffff"}


def record(command):
    """The bytes that the command writes to its terminal, in pieces as they came."""
    pieces = []

    def read(descriptor):
        data = os.read(descriptor, 65536)
        pieces.append(data)
        return data

    os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8", COLUMNS=str(COLUMNS))
    quiet, keep = os.open(os.devnull, os.O_WRONLY), os.dup(1)
    os.dup2(quiet, 1)
    try:
        pty.spawn(command, read)
    finally:
        os.dup2(keep, 1)
    return pieces


def screen(text):
    """Lines of (colour, text) runs after `text`: knows carriage return, erase to the line's end, colour."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        shown = re.split(r"\x1b\[K\r|\r", line)[-1] if "\r" in line else line
        if shown in ("", "\x1b[K") and "\r" in line:
            shown = line.rstrip("\r\x1b[K").split("\r")[-1]
        runs, colour = [], None
        for part in re.split(r"(\x1b\[[0-9;]*[mK])", shown):
            code = re.fullmatch(r"\x1b\[([0-9;]*)([mK])", part)
            if code and code[2] == "m":
                colour = COLOURS.get(code[1])
            elif not code and part:
                runs.append((colour, part))
        lines.append(runs)
    return lines


def draw(lines, prompt):
    lines = [[("#98c379", "$ "), (None, part)] if i == 0 else [(None, "      " + part)]
             for i, part in enumerate(prompt)] + lines
    width = max(sum(len(text) for _, text in line) for line in lines) * CELL + 2 * MARGIN
    height = len(lines) * LINE + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
           f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
           'aria-label="A training run of Quern in a terminal">',
           f'<rect width="100%" height="100%" rx="8" fill="#21252b"/>',
           '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" '
           'fill="#d7dae0" xml:space="preserve">']
    for row, line in enumerate(lines):
        column, y = 0, MARGIN + (row + 0.75) * LINE
        for colour, text in line:
            fill = f' fill="{colour}"' if colour else ""
            out.append(f'<text x="{MARGIN + column * CELL:.1f}" y="{y:.1f}" textLength='
                       f'"{len(text) * CELL:.1f}"{fill}>{html.escape(text)}</text>')
            column += len(text)
    return "\n".join(out + ["</g>", "</svg>", ""])


def standing_job(program):
    data = Path(os.environ.get("QUERN_MNIST", ROOT.parent / "shared" / "data" / "mnist"))
    job = ["--loss", "mse", "--batch", "64", "--lr", "0.1", "--momentum", "0.9", "--epochs", "8",
           "--seed", "1", "-o", "digits.safetensors"]
    if not (data / "train-images-idx3-ubyte.gz").exists():
        return [program, "train", *job]
    names = {f"{part}-{kind}.gz": data / f"{stem}-{kind}-ubyte.gz"
             for part, stem in (("train", "train"), ("test", "t10k"))
             for kind in ("images-idx3", "labels-idx1")}
    for name, path in names.items():
        os.symlink(path, name)
    return [program, "train", "--data", "train-images-idx3.gz", "--labels", "train-labels-idx1.gz",
            "--test", "test-images-idx3.gz", "--test-labels", "test-labels-idx1.gz",
            "--model", "dense 500 tanh; dense 10 softmax", *job]


def main():
    program = str(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "quern").resolve())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        command = [program, *sys.argv[2:]] if len(sys.argv) > 2 else standing_job(program)
        pieces = record(command)
    words = ['"' + word + '"' if " " in word else word for word in ["quern", *command[1:]]]
    prompt = [""]
    for word in words:
        if len(prompt[-1]) + len(word) > COLUMNS - 12:
            prompt[-1] += " \\"
            prompt.append("")
        prompt[-1] += (" " if prompt[-1] else "") + word
    epochs = [i for i, piece in enumerate(pieces) if b"epoch " in piece]
    middle = b"".join(pieces[:epochs[len(epochs) * 3 // 4] + 1]).decode(errors="replace")
    (ROOT / "docs" / "training.svg").write_text(draw(screen(middle), prompt))


if __name__ == "__main__":
    main()
