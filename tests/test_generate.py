"""Generation: against the oracle's whole passes, and whatever is computed at the same time."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))

import chat_tokenizer  # noqa: E402
import devices  # noqa: E402
import generate as oracle  # noqa: E402
import python_package as package  # noqa: E402
import ranks  # noqa: E402

MODEL = """embedding {V} 12; position learned; position sinusoid; layerscale 0.9;
    residual {{ layernorm channels; conv 32 1x1; position rotary 4 kv 2 base 50; attention 4 causal kv 2;
    conv 12 1x1 dropout 0.1 }}; gated 12 silu;
    residual {{ rmsnorm; conv 192 1x1; position rotary 2; attention 2 causal window 5; conv 12 1x1 }};
    layernorm channels; conv {V} 1x1 softmax"""
TEXT = "the cat sees the sea. a dog hears the moon. the king likes an apple.\n" * 20


def run(quern, *words, **more):
    return subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=300, **more)


def train(quern, folder, *more, model=MODEL, tokens="chars", name="m.st"):
    (folder / "text.txt").write_text(TEXT)
    size = len(set(TEXT)) + 1
    done = run(quern, "train", "--data", folder / "text.txt", "--tokens", tokens, "--context", 7, "--task", "next",
               "--model", model.format(V=size), "--optimizer", "adamw", "--lr", "0.01", "--batch", 16, "--epochs", 4,
               "--quiet", "-o", folder / name, *more)
    assert done.returncode == 0, done.stderr
    return folder / name


@pytest.fixture(scope="module")
def model(quern, tmp_path_factory):
    return train(quern, tmp_path_factory.mktemp("generate"))


def generate(quern, model, *words):
    done = run(quern, "generate", model, "--json", "--logprobs", *words)
    assert done.returncode == 0, done.stderr
    *answers, end = map(json.loads, done.stdout.splitlines())
    assert end["event"] == "end" and end["answers"] == len(answers)
    assert end["tokens"] == sum(len(answer["tokens"]) for answer in answers) and 0 < end["first_seconds"] <= end["seconds"]
    return answers


def has_opencl(quern):
    listed = run(quern, "devices", "--json", "--measure", "none").stdout.splitlines()
    here = any(entry.get("kind") == "opencl" and "id" in entry for entry in map(json.loads, listed))
    if here:
        devices.compile_once("opencl:0")
    return here or print("SKIPPED: no OpenCL device")


OPTIONS = {
    "greedy": dict(temperature=0),
    "all": dict(temperature=1.5, seed=7),
    "top-p": dict(temperature=0.7, top_p=0.6, repetition=1.3),
    "both": dict(top_k=6, top_p=0.75, repetition=0.9, seed=2**40 + 5),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_answers_are_those_of_the_text(quern, model, name):
    """25.70 to 25.75. An answer is longer than the context of 7, so the text slides."""
    given = dict(seed=1, temperature=0.8, top_k=0, top_p=1, repetition=1) | OPTIONS[name]
    words = [word for key, value in OPTIONS[name].items() for word in ("--" + key.replace("_", "-"), value)]
    network = oracle.Network(model)
    vocabulary = json.loads(network.notes["tokenizer"])["vocabulary"]
    prompt = "the cat" if name != "both" else "a dog hears the moon"
    got = generate(quern, model, "--prompt", prompt, "--tokens", 6, "--answers", 1 + (name == "both"), *words)
    for number, answer in enumerate(got):
        tokens, scores = oracle.generate(network, [vocabulary.index(ord(c)) for c in prompt], 6, len(vocabulary) + 1,
                                         number, **given)
        assert answer["tokens"] == tokens and answer["slid"]
        assert answer["text"] == "".join(chr(([*vocabulary, 0xFFFD])[t]) for t in tokens)
        assert [float(f"{x:.9g}") for x in answer["log_probabilities"]] == [float(f"{x:.9g}") for x in scores]


def test_states_write(quern, tmp_path):
    """25.34 to 25.36, a text that slides, beside others and alone."""
    model = train(quern, tmp_path, model="embedding {V} 12; lstm 18; residual {{ gru 18 tanh }}; conv {V} 1x1 softmax")
    network = oracle.Network(model)
    vocabulary = json.loads(network.notes["tokenizer"])["vocabulary"]
    got = generate(quern, model, "--prompt", "the cat", "--prompt", "a", "--tokens", 6, "--seed", 3, "--threads", 3)
    tokens, scores = oracle.generate(network, [vocabulary.index(ord(c)) for c in "the cat"], 6, len(vocabulary) + 1, 0,
                                     seed=3, temperature=0.8, top_k=0, top_p=1, repetition=1)
    assert got[0]["tokens"] == tokens and got[0]["slid"]
    assert [float(f"{x:.9g}") for x in got[0]["log_probabilities"]] == [float(f"{x:.9g}") for x in scores]
    assert got[1] == generate(quern, model, "--prompt", "a", "--tokens", 6, "--seed", 3, "--threads", 1)[0]


def test_integers_write(quern, tmp_path):
    """25.77: one by one as in a pass over the whole text, and beside others."""
    tied = MODEL.replace("conv {V} 1x1 softmax", "conv {V} 1x1 tied softmax")
    model = train(quern, tmp_path, "--arith", "i14", "--attention-arith", "integers", model=tied)
    network = oracle.Network(model)
    vocabulary = json.loads(network.notes["tokenizer"])["vocabulary"]
    got = generate(quern, model, "--prompt", "the cat", "--prompt", "a", "--tokens", 6, "--seed", 3, "--threads", 3)
    tokens, scores = oracle.generate(network, [vocabulary.index(ord(c)) for c in "the cat"], 6, len(vocabulary) + 1, 0,
                                     seed=3, temperature=0.8, top_k=0, top_p=1, repetition=1)
    assert got[0]["tokens"] == tokens
    assert [float(f"{x:.9g}") for x in got[0]["log_probabilities"]] == [float(f"{x:.9g}") for x in scores]
    assert got[1] == generate(quern, model, "--prompt", "a", "--tokens", 6, "--seed", 3, "--threads", 1)[0]


def test_prompts_of_json(quern, model, tmp_path):
    """25.78. A line has options of its own, and keys that come back; the file is replayed."""
    lines = [{"id": 7, "prompt": "the cat"}, {"prompt": "a \u0064og", "tokens": 3, "seed": 9, "more": {"x": [1]}}]
    path, answers = tmp_path / "p.jsonl", tmp_path / "a.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    got = generate(quern, model, "--prompts", path, "--tokens", 8)
    alone = [generate(quern, model, "--prompt", "the cat", "--tokens", 8)[0],
             generate(quern, model, "--prompt", "a dog", "--tokens", 3, "--seed", 9)[0]]
    assert [answer.pop("line") for answer in got] == lines
    assert got == [{key: value for key, value in answer.items() if key != "prompt"} for answer in alone]
    assert run(quern, "generate", model, "--prompts", path, "--tokens", 8, "-o", answers).returncode == 0
    assert json.loads(answers.read_text())["options"]["lines"] is True
    done = run(quern, "replay", answers, "--model", model)
    assert done.returncode == 0 and "identical" in done.stdout, done.stderr


@pytest.mark.parametrize("line, said", [
    ('{"prompt": "a"', "invalid JSON"), ('{"text": "a"}', 'either "prompt" or "messages"'), ("[1]", "not an object"),
    ('{"prompt": 5}', "is not a text"), ('{"prompt": "a", "tokens": 0}', '"tokens" of the line'),
    ('{"prompt": "a", "seed": -1}', '"seed" of the line'), ('{"messages": []}', "--chat"),
    ('{"prompt": "a", "messages": []}', 'either "prompt"')])
def test_lines_of_nonsense_are_refused(quern, model, tmp_path, line, said):
    (tmp_path / "p.jsonl").write_text('{"prompt": "a"}\n\n' + line + "\n")
    done = run(quern, "generate", model, "--prompts", tmp_path / "p.jsonl")
    assert done.returncode != 0 and not done.stdout and said in done.stderr, done.stderr
    assert "p.jsonl, line 3\n" in done.stderr, done.stderr


@pytest.mark.parametrize("name, marked, plain", [
    ("p.jsonl", '\ufeff{"prompt": "a"}\r\n \n{"prompt": "d"}\n\n', '{"prompt": "a"}\n{"prompt": "d"}\n'),
    ("p.txt", "\ufeffa\r\nd", "a\nd\n")])
def test_marks_of_editors_and_empty_lines_of_json_are_no_prompts(quern, model, tmp_path, name, marked, plain):
    path, got = tmp_path / name, []
    for text in (marked, plain):
        path.write_bytes(text.encode())
        got.append(generate(quern, model, "--prompts", path, "--tokens", 3))
    assert len(got[0]) == 2 and got[0] == got[1]


CHATS = {
    "chatml": "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in
                      (("system", "be kind"), ("user", "the cat"), ("assistant", "sees"), ("user", "a dog")))
              + "<|im_start|>assistant\n",
    "llama3": "<|begin_of_text|>" + "".join(
        f"<|start_header_id|>{role}<|end_header_id|>\n\n{text}<|eot_id|>" for role, text in
        (("system", "be kind"), ("user", "the cat"), ("assistant", "sees"), ("user", "a dog")))
              + "<|start_header_id|>assistant<|end_header_id|>\n\n"}


@pytest.mark.parametrize("kind", CHATS)
def test_a_conversation_is_written_with_its_marks(quern, tmp_path, kind):
    """The marks are tokens of a tokenizer.json, as others train them."""
    marks = [mark for mark in chat_tokenizer.MARKS if mark in CHATS[kind]]
    letters = chat_tokenizer.write(tmp_path / "tokenizer.json", marks)
    size = len(letters) + len(marks)
    model = train(quern, tmp_path, tokens=f"bpe:{tmp_path / 'tokenizer.json'}",
                  model=f"embedding {size} 4; conv {size} 1x1 softmax")
    messages = [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": "sees"},
                {"role": "user", "content": "a dog"}]
    (tmp_path / "p.jsonl").write_text(json.dumps({"messages": messages}) + "\n" + json.dumps(
        {"messages": [{"role": "system", "content": "be kind"}, *messages]}) + "\n")
    words = ["--tokens", 2, "--prompts", tmp_path / "p.jsonl", "-o", tmp_path / "a.json", "--system"]
    read = []
    for system in ("be kind", "never said"):
        done = run(quern, "generate", model, "--chat", kind, *words, system)
        assert done.returncode == 0, done.stderr
        read += [a["prompt_tokens"] for a in json.loads((tmp_path / "a.json").read_text())["answers"]]
    text, expected = CHATS[kind], []
    while text:
        mark = next((i for i, mark in enumerate(marks) if text.startswith(mark)), None)
        expected.append(len(letters) + mark if mark is not None else letters.index({" ": "\u0120", "\n": "\u010a"}.get(text[0], text[0])))
        text = text[len(marks[mark]) if mark is not None else 1:]
    assert read[0] == read[1] == read[3] == expected and read[2] != expected


def test_answers_depend_on_their_prompt_alone(quern, model, tmp_path):
    """Not on other prompts, their order, how many are computed at once, the threads, the devices."""
    prompts = ["the cat", "a", "the king likes an apple.", "sea", "the cat sees the sea. a dog hears"]
    alone = {p: generate(quern, model, "--prompt", p, "--tokens", 15, "--threads", 1)[0] for p in prompts}
    gpus = ["opencl:0", "cpu,opencl:0"] if has_opencl(quern) else []
    for seed in range(4):
        draw = random.Random(seed)
        order = draw.choices(prompts, k=9)
        (tmp_path / "p.txt").write_text("\n".join(order) + "\n")
        got = generate(quern, model, "--prompts", tmp_path / "p.txt", "--tokens", 15, "--batch", draw.randint(1, 9),
                       "--threads", draw.randint(1, 3), "--devices", ["cpu", "auto", *gpus][seed % (2 + len(gpus))])
        assert got == [alone[p] for p in order]


def test_python_gives_the_same_answers(quern, model):
    """Whole, in pieces, and of several prompts at once; in a process that trusts no state of the other."""
    pytest.importorskip("numpy")
    said = package.python("""
import sys, quern
model = quern.load(sys.argv[1])
options = dict(tokens=12, seed=5, top_p=0.9, stop=["xyz", "zzz"])
whole = model.generate("the cat", log_probabilities=True, **options)
assert "".join(model.stream("the cat", **options)) == whole.text == str(whole)
assert [a.text for a in model.generate(["a", "the cat"], answers=2, **options)][2] == whole.text
assert whole.end == "length" and len(whole.tokens) == len(whole.log_probabilities) == 12 and whole.slid
for wrong, error in ((dict(temperature=-1), quern.UsageError), (dict(nonsense=1), TypeError),
                     (dict(tokens="many"), quern.UsageError)):
    try:
        model.generate("a", **wrong)
        raise SystemExit("accepted: " + str(wrong))
    except error:
        pass
print(*whole.tokens)
""", model)
    got, = generate(quern, model, "--prompt", "the cat", "--tokens", 12, "--seed", 5, "--top-p", 0.9, "--stop", "xyz")
    assert list(map(int, said.split())) == got["tokens"]


def test_an_answer_ends_before_a_text(quern, model):
    """Also where it is not shown yet that this text has begun."""
    whole, = generate(quern, model, "--prompt", "the cat", "--tokens", 30)
    stop = whole["text"][7:10]
    cut, = generate(quern, model, "--prompt", "the cat", "--tokens", 30, "--stop", stop, "--stop", "never")
    assert cut["end"] == "stop" and cut["text"] == whole["text"][:whole["text"].index(stop)]
    assert cut["tokens"] == whole["tokens"][:len(cut["tokens"])]
    done = run(quern, "generate", model, "--prompt", "the cat", "--tokens", 30, "--stop", stop, "--quiet")
    assert done.stdout == "the cat" + cut["text"] + "\n"


def test_numbers_of_tokens_go_on_after_a_space(quern, tmp_path):
    (tmp_path / "ids.bin").write_bytes(bytes(n for i in range(200) for n in (i * i % 13, 0)))
    done = run(quern, "train", "--data", tmp_path / "ids.bin", "--tokens", "ids", "--context", 7, "--task", "next",
               "--model", "embedding 13 4; conv 13 1x1 softmax", "--epochs", 1, "-o", tmp_path / "m.st")
    assert done.returncode == 0, done.stderr
    asked = ["generate", tmp_path / "m.st", "--prompt", "1 2", "--tokens", 5]
    told = json.loads(run(quern, *asked, "--json").stdout.split("\n")[0])
    assert run(quern, *asked).stdout.split() == ["1", "2", *map(str, told["tokens"])]


@pytest.mark.parametrize("words, said", [
    ([], "a prompt is required"),
    (["--prompt", "Zoo"], 'has never seen the character "Z"'),
    (["--prompt", "a\udcff"], "not UTF-8 from byte 1 on"),
    (["--prompt", "a", "--stop", "\udcff"], "--stop is not UTF-8 from byte 0 on"),
    (["--prompt", "a", "--temperature", "-1"], "--temperature is -1"),
    (["--prompt", "a", "--top-p", "0"], "--top-p is 0"),
    (["--prompt", "a", "--devices", "opencl:99"], "opencl:99"),
    (["--prompt", "a", "--chat", "irc"], "chatml"),
    (["--prompt", "a", "--system", "x"], "--system is for a chat"),
    (["--prompts", "missing.txt"], "missing.txt"),
    (["--prompts", "."], "it is a folder\n  name a file in it"),
    (["--prompt", "a", "--logprobs"], "--logprobs"),
])
def test_nonsense_is_refused(quern, model, words, said):
    done = run(quern, "generate", model, *words)
    assert done.returncode != 0 and not done.stdout and said in done.stderr, done.stderr


def test_an_empty_line_and_another_model_are_refused(quern, model, tmp_path):
    (tmp_path / "p.txt").write_text("a\n\nb\n")
    done = run(quern, "generate", model, "--prompts", tmp_path / "p.txt")
    assert done.returncode != 0 and "the prompt is empty" in done.stderr and "p.txt, line 2" in done.stderr
    (tmp_path / "x.csv").write_text("a,label\n1,0\n2,1\n3,0\n4,1\n")
    assert run(quern, "train", "--data", tmp_path / "x.csv", "--epochs", 1, "-o", tmp_path / "m.st").returncode == 0
    done = run(quern, "generate", tmp_path / "m.st", "--prompt", "a")
    assert done.returncode != 0 and "does not tell which token comes next" in done.stderr


def test_a_file_of_answers_is_replayed(quern, model, tmp_path):
    """With other threads and ranks; a changed answer, another model and another file are told."""
    path = tmp_path / "answers.json"
    words = ["--prompt", "the cat", "--prompt", "a dog", "--answers", 2, "--tokens", 10]
    done = run(quern, "generate", model, *words, "--logprobs", "--stop", "zz", "--top-p", 0.8, "-o", path)
    assert done.returncode == 0 and not done.stderr.replace("note:", "").startswith("quern"), done.stderr
    whole = json.loads(path.read_text())
    assert whole["format"] == "quern-answers-1" and [a["number"] for a in whole["answers"]] == [0, 1, 0, 1]
    done = run(quern, "replay", path, "--model", model, "--threads", 2)
    assert done.returncode == 0 and done.stdout == f"replay: identical, {path}\n", done.stderr
    (tmp_path / "p.jsonl").write_text('{"prompt": "the cat"}\n\n{"prompt": "a dog", "tokens": 3}\n')
    asked = ["generate", model, "--prompts", tmp_path / "p.jsonl", "--answers", 5, "--tokens", 12]
    alone = run(quern, *asked)
    (_, shown, said), *others = ranks.run(quern, 3, *asked, own={1: ["--threads", 2]})
    assert shown == alone.stdout and "10 answers" in said and all(o == e == "" for _, o, e in others)
    ranks.run(quern, 2, *asked, "-o", tmp_path / "ranks.json", "--quiet")
    (_, shown, _), _ = ranks.run(quern, 2, "replay", tmp_path / "ranks.json", "--model", model)
    assert shown == f"replay: identical, {tmp_path / 'ranks.json'}\n"
    for own, words in ((["--seed", 2], "differs from rank 0 .* in the options: seed 2 and 1"),
                       (["--tokens", 0], "tokens"), (["--prompts", "-"], "--prompts is given twice")):
        done = ranks.run(quern, 2, *asked[:4], own={1: own}, status=None)
        assert all(code != 0 for code, _, _ in done) and re.search(words, done[0][2]), done
    text = path.read_text().split("\n")
    text[2] = text[2].replace('"tokens": [', '"tokens": [1, ')
    (tmp_path / "changed.json").write_text("\n".join(text))
    done = run(quern, "replay", tmp_path / "changed.json", "--model", model)
    assert done.returncode == 3 and "answer 1 is another one now" in done.stderr
    done = run(quern, "replay", path)
    assert done.returncode == 2 and "--model MODEL" in done.stderr
    done = run(quern, "replay", tmp_path / "none.json", "--model", model)
    assert done.returncode == 1 and "none.json: No such file" in done.stderr
    (tmp_path / "other.json").write_text(path.read_text().replace(whole["model"], "0" * 64))
    done = run(quern, "replay", tmp_path / "other.json", "--model", model)
    assert done.returncode != 0 and "another model" in done.stderr and "0" * 64 in done.stderr
    for wrong in ('"seed": "x"', '"answers": 3'):
        key = wrong.split(":")[0]
        broken = path.read_text().replace(f'{key}: {whole["options"][key.strip(chr(34))]}', wrong, 1)
        (tmp_path / "broken.json").write_text(broken)
        done = run(quern, "replay", tmp_path / "broken.json", "--model", model)
        assert done.returncode != 0 and "lacks an option or an answer" in done.stderr, wrong
