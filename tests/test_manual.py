"""Help, manual pages and completions: all of them come from the tables of options, so each must name
every option and every word that an option takes."""

import functools
import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

COMMANDS = ["train", "predict", "replay", "launch", "submit", "jobs", "data info", "data stats", "data head", "data convert", "data split", "data tokenize", "data synth digits",
            "model list", "model show", "model export", "model import", "devices", "plan", "runs export", "version", "help"]
# What other sources say a recipe can name (docs/exactness.md), not what the help prints.
WORDS = {"loss": ["cross-entropy", "mse", "mae", "huber", "binary"], "optimizer": ["sgd", "momentum", "adam", "adamw", "lbfgs"],
         "init": ["auto", "glorot", "he", "lecun"], "schedule": ["constant", "step", "cosine", "exponential"],
         "scale": ["none", "unit", "fraction", "standard", "channel", "imagenet", "minmax", "robust"], "arith": ["f32", "i7", "i14", "i21"],
         "missing": ["error", "mean", "median", "zero", "drop"]}
ACTIVATIONS = ["none", "relu", "tanh", "sigmoid", "softmax", "leaky_relu", "gelu", "gelu-tanh", "silu", "relu6",
               "hardswish", "hardsigmoid"]
WIDTH = 80


def need(program):
    if shutil.which(program) is None:
        pytest.skip(f"{program} not installed; scripts/setup.sh says how to get it")


def options_of(run_quern, command):
    """The options that a command has, by what it says to each name that any command has."""
    names = re.findall(r"^  (?:-\w, )?--([a-z0-9-]+)",
                       run_quern(*command.split(), "--help").stdout, re.M)
    assert len(names) == len(set(names))
    return names


# ---------------------------------------------------------------- help

@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_terminal(run_quern, command):
    text = run_quern(*command.split(), "--help").stdout
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []
    lines = text.splitlines()
    assert lines[0].startswith(f"quern {command}: ") and lines[1] == ""
    assert lines[2].startswith(f"usage: quern {command}")
    examples = re.search(r"^Examples:\n((?:  .*\n)+)", text, re.M)[1]
    assert examples.startswith("  quern ")
    # The examples stand before the options: a long help is read from the top.
    assert text.index("Examples:") < text.index("--help")


@pytest.mark.parametrize("words", [[], ["help"], ["help", "data"], ["--help"]])
def test_list_of_commands_fits_a_terminal(run_quern, words):
    assert [line for line in run_quern(*words).stdout.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("group", ["data", "data synth", "model", "runs"])
def test_help_of_a_group_lists_its_commands(run_quern, group):
    every = re.findall(r"^  (\w[\w ]*?)  ", run_quern("help").stdout, re.M)
    shown = re.findall(r"^  (\w[\w ]*?)  ", run_quern("help", *group.split()).stdout, re.M)
    assert shown == [c for c in every if c.startswith(f"{group} ")] != []


@functools.cache
def long_texts(quern):
    """The texts of the program, each as the source has it but for tabs and line ends."""
    with open(quern, "rb") as file:
        data = file.read()
    return "\n".join(" ".join(t.decode().split())
                     for t in re.findall(rb"[\x09\x0a\x20-\x7e]{2,}", data))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_breaks_no_word(run_quern, quern, command):
    """Where a line of the help was broken, the program's own text has a blank."""
    known = long_texts(quern)
    lines = run_quern(*command.split(), "--help").stdout.splitlines()
    broken = depth = 0
    for line, following in zip(lines, lines[1:]):
        depth = max(0, depth + line.count("[") - line.count("]")) if line.startswith(" " * 27) else (
            line.count("[") - line.count("]"))
        if len(line) < 60 or not following.strip() or line.endswith("\\"):
            continue
        last, first = line.split()[-1], following.split()[0]
        if line.startswith("  ") and not following.startswith(" " * 27):
            continue  # an example, or the next option
        broken += 1
        # A default, which stands in brackets, is a text of its own.
        pair = f"{last} {first}".replace("[", "").replace("]", "")
        assert pair in known or depth > 0 or "[" in line.split("  ")[-1] + first, pair
        assert not re.match(r"[A-Z]+$", first) or not re.match(r"--[a-z-]+$", last), pair
    assert broken > 0 or command in ("version", "jobs")


def test_common_options_come_first(run_quern):
    names = options_of(run_quern, "train")
    common = ["data", "test", "model", "epochs", "batch", "lr", "optimizer", "seed", "output"]
    rare = ["momentum", "beta1", "epsilon", "grain", "unit", "isa", "shares", "meet", "rank-timeout"]
    assert max(map(names.index, common)) < min(map(names.index, rare))


def test_rows_of_the_tables_supply_the_help(run_quern):
    text = run_quern("train", "--help").stdout
    for option, words in (*WORDS.items(), ("model", ACTIVATIONS)):
        block = re.search(rf"^  --{option} .*\n((?:   .*\n)+)", text, re.M)[1]
        assert re.findall(r"^      ([a-z0-9_-]+)  +\S", block, re.M) == words, option
    for command in ("plan", "devices"):
        text = " ".join(run_quern(command, "--help").stdout.split())
        assert "sgd, momentum, adam, adamw, lbfgs [sgd; real labels: adam; tables: adamw; with texts: lbfgs]" in text and "f32, i7, i14, i21 [f32]" in text


# ---------------------------------------------------------------- manual pages

def page(run_quern, command):
    return run_quern("help", "--man", *command.split()).stdout


def rendered(text):
    need("groff")
    done = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou", "-ww", "-rLL=78n"], input=text,
                          capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_manual_page(run_quern, tmp_path, command):
    text = page(run_quern, command)
    shown = rendered(text)
    name = "-".join(["quern", *command.split()])
    assert re.search(rf"^NAME\n +{name} - \S", shown, re.M)
    for heading in ("SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"):
        assert re.search(rf"^{heading}$", shown, re.M), heading
    if command:
        for option in options_of(run_quern, command):
            assert re.search(rf"^ +(-\w, )?--{option}\b", shown, re.M), option
        # What the help says, the page says: the same words in the same order.
        about = run_quern(*command.split(), "--help").stdout.split("\n\n")[2]
        assert "".join(about.split()) in "".join(shown.split())
    else:
        assert all(re.search(rf"^ +{c}\b", shown, re.M) for c in COMMANDS)
    file = tmp_path / f"{name}.1"
    file.write_text(text)
    if shutil.which("man"):
        done = subprocess.run(["man", "--warnings", "-l", file], capture_output=True, text=True,
                              env=os.environ | {"LC_ALL": "C", "MANPAGER": "cat"})
        assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_manual_page_passes_mandoc(run_quern, tmp_path, command):
    need("mandoc")
    file = tmp_path / "page.1"
    file.write_text(page(run_quern, command))
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", file], capture_output=True, text=True)
    # The page has no date, so that two builds of one version give one page.
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []


def test_manual_page_lists_the_words(run_quern):
    shown = rendered(page(run_quern, "train"))
    for option, words in (*WORDS.items(), ("model", ACTIVATIONS)):
        rest = re.split(rf"^ +--{option} ", shown, maxsplit=1, flags=re.M)[1]
        block = re.split(r"^ +--[a-z]", rest, maxsplit=1, flags=re.M)[0]
        for word in words:
            assert re.search(rf"^ +{word}\b", block, re.M), (option, word)


# ---------------------------------------------------------------- completions

SHELLS = ["bash", "zsh", "fish"]
# Command lines that end at the cursor.
LINES = ([f"quern {command} --" for command in COMMANDS] +
         [f"quern train --{option} " for option in [*WORDS, "data", "checkpoint", "devices"]] +
         ["quern train --loss=c", "quern plan --optimizer m", "quern predict ", "quern ",
          "quern data ", "quern data synth ", "quern submit --local ",
          "quern submit --local train --opt", "quern submit --kubernetes serve --lis", "quern launch --hosts a fi",
          "quern launch --hosts a train --opt", "quern help "])


@pytest.fixture(scope="module")
def completion(run_quern, tmp_path_factory):
    """The files of completions, and a folder with files to complete."""
    folder = tmp_path_factory.mktemp("completion")
    for shell, name in (("bash", "quern"), ("zsh", "_quern"), ("fish", "quern.fish")):
        (folder / name).write_text(run_quern("help", "--completion", shell).stdout)
    (folder / "here").mkdir()
    (folder / "here" / "digits.csv").write_text("")
    (folder / "here" / "my file.csv").write_text("")
    (folder / "here" / "state").mkdir()
    return folder


def from_script(folder, *command):
    """What a shell prints: after each line of LINES, what it offers, and a line with END."""
    done = subprocess.run([*command], capture_output=True, text=True, cwd=folder / "here",
                          env=os.environ | {"HOME": str(folder), "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split("END\n")[:-1]


def from_bash(folder):
    script = """
        source "$1/quern"
        for line in "${@:2}"; do
            # As readline cuts the line: blanks, and = as a word of its own.
            words=${line//=/ = }
            read -ra COMP_WORDS <<<"$words"
            [[ $line == *' ' ]] && COMP_WORDS+=('')
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _quern
            printf '%s\n' "${COMPREPLY[@]}" END
        done
    """
    return from_script(folder, "bash", "--norc", "-c", script, "bash", folder, *LINES)


def from_fish(folder):
    script = "source $argv[1]/quern.fish; for line in $argv[2..]; complete -C $line; echo END; end"
    return from_script(folder, "fish", "--no-config", "-c", script, folder, *LINES)


def from_zsh(folder):
    """An interactive zsh on a terminal of its own, and its lists of matches."""
    (folder / ".zshrc").write_text(f"""
        PS1='READY> '; fpath=({folder} $fpath); cd {folder}/here
        autoload -U compinit; compinit -u -D
        zstyle ':completion:*' verbose false
        LISTMAX=10000
        bindkey '^I' list-choices
        stty cols 200 rows 400
    """)
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe("zsh", ["zsh", "-i"], os.environ | {"ZDOTDIR": str(folder), "TERM": "dumb"})
    offers, rest = [], [""]
    try:
        for line in LINES:
            # Until the shell reads keys itself, the terminal would take Ctrl-U for its own.
            read_until(terminal, "READY> ", rest)
            # Typed after the list: a command that prints where the list ends.
            os.write(terminal, line.encode() + b"\t\x15print -r E''ND\r")
            offers.append(read_until(terminal, "END\r\n", rest))
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    return offers


def read_until(terminal, mark, rest):
    """What the terminal shows up to a mark; what came after it stays in rest[0]."""
    shown, end = rest[0], time.monotonic() + 60
    while mark not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 65536).decode(errors="replace")
    assert mark in shown, shown
    shown, rest[0] = shown.split(mark, 1)
    return shown


@pytest.fixture(scope="module", params=SHELLS)
def offers(request, completion):
    """What a shell offers for each of LINES: a set of words."""
    need(request.param)
    read = {"bash": from_bash, "zsh": from_zsh, "fish": from_fish}[request.param](completion)
    assert len(read) == len(LINES)
    # A file or a folder can end in a sign, a description stands after a tab or blanks.
    return {line: {w.rstrip("/") for w in re.findall(r"[\w.@/-]+", text)}
            for line, text in zip(LINES, read)}


@pytest.mark.parametrize("command", COMMANDS)
def test_completion_names_every_option(run_quern, offers, command):
    names = {f"--{name}" for name in options_of(run_quern, command)}
    assert names - offers[f"quern {command} --"] == set()


def test_completion_of_values(offers):
    for option, words in WORDS.items():
        assert set(words) <= offers[f"quern train --{option} "], option
    assert any("cross-entropy" in word for word in offers["quern train --loss=c"])
    assert "momentum" in offers["quern plan --optimizer m"]
    assert {"auto", "cpu", "cuda", "opencl"} <= offers["quern train --devices "]
    assert {"digits.csv", "state"} <= offers["quern train --data "]
    assert "state" in offers["quern train --checkpoint "]
    assert "digits.csv" not in offers["quern train --checkpoint "]
    assert "digits.csv" in offers["quern predict "]


def test_completion_of_commands(offers):
    assert {c.split()[0] for c in COMMANDS} <= offers["quern "]
    assert {"info", "synth"} <= offers["quern data "]
    assert "digits" in offers["quern data synth "]
    assert {"train", "run", "serve", "watch"} <= offers["quern submit --local "]
    assert "--listen" in offers["quern submit --kubernetes serve --lis"]
    assert "--optimizer" in offers["quern submit --local train --opt"] & offers["quern launch --hosts a train --opt"]
    assert "fit" in offers["quern launch --hosts a fi"]
    assert {"plan", "train"} <= offers["quern help "]


def test_bash_completes_on_a_terminal(completion):
    """A whole bash with readline: one word is left, so it is written out."""
    (completion / "rc").write_text(f"PS1='> '; source {completion}/quern; cd {completion}/here\n")
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe("bash", ["bash", "--noprofile", "--rcfile", str(completion / "rc"), "-i"],
                   os.environ | {"TERM": "dumb"})
    try:
        read_until(terminal, "> ", [""])
        os.write(terminal, b"quern train --optimizer=m\t --data my\t")
        shown = ""
        while "my\\ file.csv" not in shown and select.select([terminal], [], [], 20)[0]:
            shown += os.read(terminal, 65536).decode(errors="replace")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    assert "--optimizer=momentum" in shown and "my\\ file.csv" in shown


@pytest.mark.parametrize("words, says", [
    (["--completion", "tcsh"], "bash, zsh or fish"),
    (["--completion", "bash", "train"], "for all commands together"),
    (["--man", "trane"], 'no help on "trane"'),
])
def test_bad_help(run_quern, words, says):
    assert says in run_quern("help", *words, status=2).stderr
