"""The page of nearest neighbours: its commands give the lines that it shows, and its script the nearest items."""

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
COMMAND = re.compile(r"(quern|python3) ")


def test_the_page_shows_what_its_commands_print(quern, tmp_path):
    page = (EXAMPLES / "neighbours.md").read_text()
    commands, shown, said = [], [], ""
    for line in re.findall(r"^    (.*)", page, re.MULTILINE):
        (commands if COMMAND.match(line) else shown).append(line)
    for command in commands:
        program, *words = shlex.split(command)
        first = [quern] if program == "quern" else [sys.executable, EXAMPLES / words.pop(0)]
        done = subprocess.run([*first, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (command, done.stderr)
        said += done.stdout
    assert len(commands) == 13 and len(shown) == 5
    for line in shown:
        assert f"{line}\n" in said, line
    assert (tmp_path / "near.png").read_bytes()[:4] == b"\x89PNG"


def test_neighbours_are_the_nearest():
    spec = importlib.util.spec_from_file_location("neighbours", EXAMPLES / "neighbours.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.BLOCK = 100  # several blocks
    train, test = (np.random.default_rng(seed).integers(0, 6, (40, 2, 3)).astype("float32") for seed in (1, 2))
    apart = [[float(((a - b) ** 2).sum()) for b in train] for a in test]
    assert script.nearest(train, test, 7).tolist() == [sorted(range(40), key=lambda k: (row[k], k))[:7] for row in apart]
    assert script.vote(np.array([[3, 1, 1, 2], [2, 5, 5, 2]])).tolist() == [1, 2]
    with pytest.raises(SystemExit, match="outputs of one layer"):
        script.nearest(train, test[:, :1], 1)
