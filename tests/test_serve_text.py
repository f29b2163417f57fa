"""Completions and conversations over HTTP, and of quern watch: answers are those of quern generate for each prompt alone."""

import base64
import concurrent.futures
import contextlib
import csv
import json
import socket
import subprocess
from pathlib import Path

import numpy as np
import pytest

import chat_tokenizer
import serving

TEXT = "the cat sees the sea. a dog hears the moon. the king likes an apple.\n" * 20
MODEL = "embedding {V} 12; residual {{ layernorm channels; conv 36 1x1; attention 3 causal; conv 12 1x1 }}; conv {V} 1x1 softmax"
PEER = Path(__file__).resolve().parents[1] / ".venv-peers" / "bin" / "python"


def run(quern, *words):
    done = subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def models(quern, tmp_path_factory):
    """One of characters, and one of a tokenizer with the marks of a chat."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "text.txt").write_text(TEXT)
    letters = chat_tokenizer.write(folder / "tokenizer.json", chat_tokenizer.MARKS[:2])
    made = {}
    for name, tokens, size in (("plays", "chars", len(set(TEXT)) + 1),
                               ("talks", f"bpe:{folder / 'tokenizer.json'}", len(letters) + 2)):
        made[name] = folder / f"{name}.safetensors"
        run(quern, "train", "--data", folder / "text.txt", "--tokens", tokens, "--context", 40, "--task", "next", "--model",
            MODEL.format(V=size), "--optimizer", "adamw", "--lr", "0.01", "--batch", 16, "--epochs", 2, "--quiet", "-o", made[name])
    (folder / "kinds.csv").write_text("text,kind\n" + "".join(f"the {animal} sees,{animal}\n" for animal in ("cat", "dog") * 9))
    made["kinds"] = folder / "kinds.safetensors"
    run(quern, "train", "--data", folder / "kinds.csv", "--label", "kind", "--tokens", "words:20", "--context", 8, "--model",
        "embedding 10 8; position learned; pool mean; dense 2 softmax", "--epochs", 2, "--quiet", "-o", made["kinds"])
    return made


@pytest.fixture(scope="module")
def server(quern, models):
    with serving.serve(quern, *models.values(), "--text-batch", "5", "--text-waiting", "20", "--text-length", "3000000") as server:
        yield server


def generated(quern, model, *words):
    path = model.with_suffix(".json")
    run(quern, "generate", model, "--logprobs", "--quiet", "-o", path, *words)
    return json.loads(path.read_text())["answers"]


def post(server, path, **body):
    status, headers, answer = server.post(path, body)
    return status, headers, json.loads(answer)


def events(server, path, **body):
    """The events of a stream but for the last one, which says that it is done."""
    status, headers, answer = server.post(path, {"stream": True, **body})
    assert status == 200 and headers["Content-Type"] == "text/event-stream", answer
    assert "Content-Length" not in headers
    *all_events, end, nothing = answer.decode().split("\n\n")
    assert end == "data: [DONE]" and nothing == ""
    return [json.loads(event.removeprefix("data: ")) for event in all_events]


ASKED = {"max_tokens": 30, "n": 2, "seed": 5, "temperature": 0.9, "top_p": 0.95, "top_k": 9, "repetition_penalty": 1.1,
         "stop": ["zz", "q"], "logprobs": 2}
WORDS = ["--tokens", 30, "--answers", 2, "--seed", 5, "--temperature", 0.9, "--top-p", 0.95, "--top-k", 9, "--repetition", 1.1,
         "--stop", "zz", "--stop", "q"]


def test_completions_are_those_of_generate(quern, models, server):
    status, headers, got = post(server, "/v1/completions", model="plays", prompt=["the cat", "a"], **ASKED)
    alone = generated(quern, models["plays"], "--prompt", "the cat", "--prompt", "a", *WORDS)
    assert status == 200 and got["object"] == "text_completion" and got["model"] == "plays"
    digest = json.loads(server.get("/v1/models/plays")[2])["digest"]
    assert headers["Quern-Model-Digest"] == digest and got["system_fingerprint"] == f"quern-{digest[:16]}"
    for index, (choice, answer) in enumerate(zip(got["choices"], alone, strict=True)):
        assert (choice["index"], choice["text"]) == (index, answer["text"])
        assert choice["finish_reason"] == {"length": "length", "stop": "stop", "end": "stop"}[answer["end"]]
        assert choice["logprobs"]["token_logprobs"] == answer["log_probabilities"]
        assert choice["logprobs"]["text_offset"] == list(range(len(answer["tokens"])))
        assert "".join(choice["logprobs"]["tokens"]).startswith(choice["text"])
        for token, value, top in zip(choice["logprobs"]["tokens"], answer["log_probabilities"], choice["logprobs"]["top_logprobs"],
                                     strict=True):
            assert top[token] == value and max(top.values()) == next(iter(top.values())) and len(top) in (2, 3)
    count = sum(len(answer["tokens"]) for answer in alone)
    assert got["usage"] == {"prompt_tokens": 8, "completion_tokens": count, "total_tokens": 8 + count}
    _, _, again = post(server, "/v1/completions", prompt=alone[0]["prompt_tokens"], model="plays:1", **ASKED)
    assert [choice["text"] for choice in again["choices"]] == [answer["text"] for answer in alone[:2]]
    _, _, echoed = post(server, "/v1/completions", model="plays", prompt="the cat", echo=True, max_tokens=4, temperature=0)
    assert echoed["choices"][0]["text"] == "the cat" + generated(quern, models["plays"], "--prompt", "the cat", "--tokens", 4,
                                                                  "--temperature", 0)[0]["text"]


def embedded(server, **body):
    """The embeddings as bytes, which must be the same in both formats."""
    status, headers, got = post(server, "/v1/embeddings", encoding_format="base64", **body)
    assert status == 200 and headers["Quern-Model-Digest"], got
    plain = post(server, "/v1/embeddings", **body)[2]
    assert [one["index"] for one in got["data"]] == list(range(len(got["data"]))) and got["usage"] == plain["usage"]
    values = [base64.b64decode(one["embedding"]) for one in got["data"]]
    assert [np.array(one["embedding"], "<f4").tobytes() for one in plain["data"]] == values
    return values, got["usage"]


def test_embeddings_are_those_of_predict(quern, models, server, tmp_path):
    texts = ["the cat sees", "dog", "sees the dog the cat sees the cat"]
    (tmp_path / "t.csv").write_text("text\n" + "".join(f"{text}\n" for text in texts))

    def features(model, *words):
        run(quern, "predict", models[model], "--data", tmp_path / "t.csv", "--quiet", "--header", "yes", "-o", tmp_path / "f.npy", *words)
        return [row.tobytes() for row in np.load(tmp_path / "f.npy")]

    of_predict = features("kinds", "--unlabelled", "--layer", "2")
    assert embedded(server, model="kinds", input=texts) == (of_predict, {"prompt_tokens": 12, "total_tokens": 12})
    of_letters = features("plays", "--item", "row", "--text", "text", "--layer", "body", "--pool", "mean")
    assert embedded(server, model="plays", input=texts)[0] == of_letters
    tokens = json.loads(server.post("/v1/completions", {"model": "plays", "prompt": texts[1], "max_tokens": 1})[2])["usage"]["prompt_tokens"]
    assert embedded(server, model="plays", input=texts[1]) == (of_letters[1:2], {"prompt_tokens": tokens, "total_tokens": tokens})
    numbers = generated(quern, models["plays"], "--prompt", texts[1], "--tokens", 1)[0]["prompt_tokens"]
    assert embedded(server, model="plays:1", input=[numbers, numbers])[0] == of_letters[1:2] * 2
    for pool in ("max", "first"):  # two of one layer
        got = json.loads(server.post(f"/v1/predict/kinds?layer=0&pool={pool}", [{"text": text} for text in texts])[2])["outputs"]
        assert [np.array(row, "<f4").tobytes() for row in got] == features("kinds", "--unlabelled", "--layer", "0", "--pool", pool)
    asked = [("kinds" if k % 2 else "plays", k % 3) for k in range(24)]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:  # together with others
        made = list(pool.map(lambda own: embedded(server, model=own[0], input=texts[own[1]])[0][0], asked))
    assert made == [(of_predict if model == "kinds" else of_letters)[k] for model, k in asked]
    with serving.serve(quern, models["kinds"], "--embeddings", "-4:max") as other:
        assert embedded(other, input=texts)[0] == features("kinds", "--unlabelled", "--layer", "0", "--pool", "max")
    with serving.serve(quern, models["kinds"], "--embeddings", "0") as other:
        assert "from \"0:mean\"" in post(other, "/v1/embeddings", input="dog")[2]["error"]["message"]


def test_a_stream_has_the_same_text(quern, models, server):
    whole = post(server, "/v1/completions", model="plays", prompt="the cat", **ASKED)[2]
    got = events(server, "/v1/completions", model="plays", prompt="the cat", stream_options={"include_usage": True}, **ASKED)
    assert len(got) > 20 and got[-1]["choices"] == [] and got[-1]["usage"] == whole["usage"]
    for index, choice in enumerate(whole["choices"]):
        parts = [event["choices"][0] for event in got[:-1] if event["choices"][0]["index"] == index]
        assert "".join(part["text"] for part in parts) == choice["text"]
        assert [part["finish_reason"] for part in parts] == [None] * (len(parts) - 1) + [choice["finish_reason"]]
        for member in ("tokens", "token_logprobs", "text_offset"):
            assert sum((part["logprobs"][member] for part in parts), []) == choice["logprobs"][member]


def test_a_conversation_is_that_of_generate(quern, models, server, tmp_path):
    messages = [{"role": "developer", "content": "be kind"}, {"role": "user", "content": [{"type": "text", "text": "a "},
                                                                                        {"type": "text", "text": "dog"}]}]
    plain = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "a dog"}]
    (tmp_path / "p.jsonl").write_text(json.dumps({"messages": plain}))
    alone, = generated(quern, models["talks"], "--prompts", tmp_path / "p.jsonl", "--chat", "chatml", "--tokens", 20, "--seed", 7,
                       "--temperature", 1)
    asked = {"model": "talks", "messages": messages, "max_completion_tokens": 20, "seed": 7}
    _, _, got = post(server, "/v1/chat/completions", logprobs=True, top_logprobs=1, **asked)
    choice, = got["choices"]
    assert choice["message"] == {"role": "assistant", "content": alone["text"], "refusal": None}
    assert [token["logprob"] for token in choice["logprobs"]["content"]] == alone["log_probabilities"]
    assert all(len(token["top_logprobs"]) == 1 and bytes(token["bytes"]).decode() == token["token"]
               for token in choice["logprobs"]["content"])
    assert got["usage"]["prompt_tokens"] == len(alone["prompt_tokens"])
    parts = [event["choices"][0] for event in events(server, "/v1/chat/completions", **asked)]
    assert parts[0]["delta"]["role"] == "assistant" and "".join(part["delta"]["content"] for part in parts) == alone["text"]
    # Without a number of tokens, an answer has what the context has room for.
    filled = post(server, "/v1/chat/completions", model="talks", messages=[{"role": "user", "content": "a"}])[2]
    assert filled["usage"]["total_tokens"] == 40 or filled["choices"][0]["finish_reason"] == "stop"


def test_many_at_once_get_what_each_gets_alone(quern, models, server):
    prompts = ["the cat", "a", "the king likes", "moon" * 20, "s", "an apple.", "dog", "the sea " * 9]
    words = [word for prompt in prompts for word in ("--prompt", prompt)]
    alone = [answer["text"] for answer in generated(quern, models["plays"], *words, "--tokens", 25, "--seed", 3)]

    def ask(index):
        asked = {"model": "plays", "prompt": prompts[index % 8], "max_tokens": 25, "seed": 3, "temperature": 0.8}
        if index % 2:
            return post(server, "/v1/completions", **asked)[2]["choices"][0]["text"]
        return "".join(event["choices"][0]["text"] for event in events(server, "/v1/completions", **asked))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(16))) == 2 * alone


def begin(server, **body):
    """A connection that has sent a request."""
    data = json.dumps({"model": "plays", "prompt": "the", "max_tokens": 2999990, **body}).encode()
    connection = socket.create_connection((server.host, server.port), timeout=60)
    connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data))
    return connection


def test_clients_that_leave_free_their_places(server):
    """All places have answers that would take minutes."""
    every = {"model": "plays", "prompt": "a", "n": 25}  # needs all places
    for stream in (True, False):
        with contextlib.ExitStack() as clients:
            assert clients.enter_context(begin(server, stream=True)).recv(100)
            for _ in range(24):
                clients.enter_context(begin(server, stream=stream))
            status, headers, refused = server.post("/v1/completions", every)
            assert status == 429 and headers["Retry-After"] and json.loads(refused)["error"]["type"] == "rate_limit_error"
        while (status := post(server, "/v1/completions", **every)[0]) == 429:
            pass
        assert status == 200
    told = server.get("/metrics")[2].decode()
    assert "quern_text_growing_answers{model=\"plays\",version=\"1\"} 0\n" in told
    left = int(told.split("quern_text_left_total{model=\"plays\",version=\"1\"} ")[1].split("\n")[0])
    assert 2 <= left <= 50  # others may have left before they were read


def test_late_answers(quern, models):
    """They would take minutes. The words are those that the clients of a route read."""
    with serving.serve(quern, models["plays"], "--text-length", "3000000", "--answer-seconds", "0.2") as server:
        body = {"prompt": "a", "max_tokens": 2999990}
        status, headers, answer = post(server, "/v1/completions", **body)
        error = answer["error"]
        assert (status, error["type"], headers["Content-Type"]) == (503, "server_error", "application/json")
        assert "took longer than 0.2 seconds: ask for less at once" in error["message"]
        status, headers, stream = server.post("/v1/completions", {**body, "stream": True})
        *parts, last, nothing = stream.decode().split("\n\n")
        assert status == 200 and json.loads(last.removeprefix("data: ")) == {"error": error} and nothing == ""
        assert all(json.loads(part.removeprefix("data: "))["choices"] for part in parts) and parts
        told = server.get("/metrics")[2].decode()
        assert "\nquern_requests_late_total 2\n" in told and "quern_text_left_total{model=\"plays\",version=\"1\"} 2\n" in told
        assert post(server, "/v1/completions", prompt="a", max_tokens=2)[0] == 200
        assert post(server, "/v1/completions", **body)[0] == 503
        assert server.end()[0] == 0  # while the model may not have noticed it


def rows_of(text):
    return [(row["file"], row["item"], row["text"], row["end"], row["error"]) for row in csv.DictReader(text.splitlines())]


def test_a_watch_continues_prompts(quern, models, tmp_path):
    """Of texts, lines and lines of JSON, each once, although the watch is killed."""
    here, out, words = tmp_path / "in", tmp_path / "r.csv", ["--tokens", 20, "--seed", 3, "--top-k", 9]
    here.mkdir()
    prompts = {f"{k}.txt": f"the cat {'sees the ' * k}" for k in range(25)}
    for name, prompt in prompts.items():
        (here / name).write_text(prompt + "\r\n\n")
    lines = [{"prompt": "moon", "seed": 9}, {"prompt": "dog", "tokens": 4}]
    (here / "l.jsonl").write_text("\n\n".join(map(json.dumps, lines)))
    (here / "bad.txt").write_text("\u00e9")
    (here / "bad.bin").write_text("dog")
    command = [str(word) for word in (quern, "watch", here, "--model", models["plays"], "-o", out, *words)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as watch:
        while not out.exists() or out.read_bytes().count(b"\n") < 3:
            assert watch.poll() is None
        watch.kill()
    run(quern, *command[1:], "--once")
    assert "0 answers" in run(quern, *command[1:], "--once")
    good = generated(quern, models["plays"], *[word for prompt in prompts.values() for word in ("--prompt", prompt)], *words)
    of_lines = generated(quern, models["plays"], "--prompts", here / "l.jsonl", *words)
    want = [(name, "0", answer["text"], answer["end"], "") for name, answer in zip(prompts, good, strict=True)]
    want += [("l.jsonl", str(k), answer["text"], answer["end"], "") for k, answer in enumerate(of_lines)]
    want += [("bad.bin", "0", "", "", "the file is neither a text (.txt) nor prompts as lines of JSON"),
             ("bad.txt", "0", "", "", "the model has never seen the character \"\u00e9\"")]
    assert sorted(rows_of(out.read_text())) == sorted(want)
    talk = json.dumps({"messages": [{"role": "user", "content": "a dog"}]})
    (tmp_path / "t.jsonl").write_text(talk)
    chat = ["--chat", "chatml", "--tokens", 12]
    said, = generated(quern, models["talks"], "--prompts", tmp_path / "t.jsonl", *chat)
    with subprocess.Popen([quern, "watch", "-", "--model", models["talks"], "-o", "-", "--quiet", *map(str, chat)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as watch:
        heard = watch.communicate(f"{talk}\n\n{{}}\n{talk}")[0]
    assert [row[1:4] for row in rows_of(heard)] == [("0", said["text"], said["end"]), ("1", "", ""), ("2", said["text"], said["end"])]
    for model, more, what in (("plays", ["--outputs"], "the answers are texts"), ("kinds", ["--seed", 2], "not texts that go on"),
                              ("plays", ["--temperature", -1], "--temperature is -1"), ("plays", ["--stop", "a"] * 17, "too many --stop")):
        done = subprocess.run([quern, "watch", here, "--model", models[model], "-o", tmp_path / "w.csv", "--once", *map(str, more)],
                              capture_output=True, text=True)
        assert done.returncode == 2 and what in done.stderr and not (tmp_path / "w.csv").exists()


@pytest.mark.parametrize("path, body, status, param, said", [
    ("completions", b"{", 400, None, "not JSON"),
    ("completions", {"model": "plays"}, 400, "prompt", "\"prompt\" is missing"),
    ("completions", {"model": "none", "prompt": "a"}, 404, "model", "no model \"none\""),
    ("completions", {"prompt": "a"}, 404, "model", "\"model\" is missing"),
    ("completions", {"model": "plays", "prompt": ""}, 400, None, "prompt is empty"),
    ("completions", {"model": "plays", "prompt": ["a", "\u00e9"]}, 400, None, "never seen the character \"\u00e9\", at prompt 1"),
    ("completions", {"model": "plays", "prompt": [1, 999]}, 400, None, "token that the network lacks"),
    ("completions", {"model": "plays", "prompt": "a", "temprature": 1}, 400, None, "did you mean \"temperature\"?"),
    ("completions", {"model": "plays", "prompt": "a", "temperature": -1}, 400, "temperature", "\"temperature\" is -1"),
    ("completions", {"model": "plays", "prompt": "a", "max_tokens": 0}, 400, "max_tokens", "whole number from 1"),
    ("completions", {"model": "plays", "prompt": "a", "max_tokens": 3000000}, 400, None, "may have 3000000"),
    ("completions", {"model": "plays", "prompt": "a", "n": 100}, 400, None, "at most 25"),
    ("completions", {"model": "plays", "prompt": "a", "logit_bias": {"5": 1}}, 400, "logit_bias", "not supported"),
    ("completions", {"model": "plays", "prompt": "a", "stop": ["a", ""]}, 400, "stop", "text 1 of \"stop\" has 0 bytes"),
    ("completions", {"model": "plays", "prompt": "a", "echo": True, "logprobs": 1}, 400, "echo", "no log-probabilities"),
    ("embeddings", {"model": "kinds"}, 400, "input", "\"input\" is missing"),
    ("embeddings", {"model": "kinds", "input": "a b c d e f g h i"}, 400, None, "more than the 8 tokens"),
    ("embeddings", {"model": "plays", "input": "a" * 41}, 400, None, "more than the 40 tokens"),
    ("embeddings", {"model": "plays", "input": ["a", ""]}, 400, None, "text 1 (from 0) has no tokens"),
    ("embeddings", {"model": "plays", "input": [["a"], [1]]}, 400, "input", "token 0 of a prompt"),
    ("embeddings", {"model": "plays", "input": [[999]]}, 400, None, "999 is not the number of a token"),
    ("embeddings", {"model": "kinds", "input": "a", "dimensions": 4}, 400, None, "have 8"),
    ("embeddings", {"model": "kinds", "input": "a", "encoding_format": "int8"}, 400, "encoding_format", "neither \"float\""),
    ("chat/completions", {"model": "talks", "messages": []}, 400, "messages", "at least one message"),
    ("chat/completions", {"model": "talks", "messages": [{"role": "tool", "content": "a"}]}, 400, "messages", "role of message 0"),
    ("chat/completions", {"model": "talks", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "messages",
     "content of message 0"),
    ("chat/completions", {"model": "talks", "messages": [{"role": "user", "content": "a"}], "tools": [{}]}, 400, "tools",
     "not supported"),
    ("chat/completions", {"model": "talks", "messages": [{"role": "user", "content": "a"}], "top_logprobs": 1}, 400, "top_logprobs",
     "needs \"logprobs\""),
    ("chat/completions", {"model": "plays", "messages": [{"role": "user", "content": "a"}]}, 400, None, "complete a text instead, or begin the server with its option chat")])
def test_bad_requests_are_refused(server, path, body, status, param, said):
    got, headers, answer = server.post(f"/v1/{path}", body)
    error = json.loads(answer)["error"]
    assert (got, error["param"], headers["Content-Type"]) == (status, param, "application/json")
    assert said in error["message"] and error["type"] == "invalid_request_error"


def test_what_changes_nothing_is_taken(server):
    status, _, got = post(server, "/v1/chat/completions", model="talks", messages=[{"role": "user", "content": "a", "name": None}],
                          max_tokens=2, user="u", metadata={"a": "b"}, store=False, tools=[], tool_choice="auto", logit_bias={},
                          presence_penalty=0, frequency_penalty=0.0, response_format={"type": "text"}, seed=None, stop=None)
    assert status == 200, got


def test_models_are_listed(server):
    listed = json.loads(server.get("/v1/models")[2])
    assert [(model["id"], model["object"], model["max_model_len"]) for model in listed["data"]] == [
        ("plays", "model", 40), ("talks", "model", 40), ("kinds", "model", 8)]
    assert server.get("/v1/models/none")[0] == 404


OPENAI = """
import sys, numpy, openai
client = openai.OpenAI(base_url=f"http://{sys.argv[1]}/v1", api_key="none", max_retries=0)
assert [model.id for model in client.models.list()] == ["plays", "talks", "kinds"]
made = [client.embeddings.create(model="kinds", input=["the cat", "a dog"], **more) for more in ({}, {"encoding_format": "float"})]
assert len(made[0].data[1].embedding) == 8 and made[0].usage.prompt_tokens == 4
assert [numpy.float32(one.embedding).tobytes() for one in made[0].data] == [numpy.float32(one.embedding).tobytes() for one in made[1].data]
asked = dict(model="plays", prompt="the cat", max_tokens=20, seed=4, logprobs=1)
whole = client.completions.create(**asked)
assert "".join(part.choices[0].text for part in client.completions.create(**asked, stream=True)) == whole.choices[0].text
assert len(whole.choices[0].logprobs.tokens) == whole.usage.completion_tokens
asked = dict(model="talks", messages=[{"role": "user", "content": "a dog"}], max_completion_tokens=12, seed=4)
talk = client.chat.completions.create(**asked, logprobs=True, top_logprobs=2)
with client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}) as parts:
    *parts, last = list(parts)
assert last.usage == talk.usage and talk.choices[0].message.role == "assistant"
assert "".join(part.choices[0].delta.content for part in parts) == talk.choices[0].message.content
for wrong, kind in ((dict(model="none"), openai.NotFoundError), (dict(temperature=-1), openai.BadRequestError)):
    try:
        client.chat.completions.create(**{**asked, **wrong})
        sys.exit(f"{wrong} was taken")
    except kind as error:
        assert error.body["message"] and error.param in ("model", "temperature"), error
print("agreed")
"""


def test_the_package_openai(server):
    """In the peers' environment, where `make peers` made it."""
    if not PEER.exists() or subprocess.run([PEER, "-c", "import openai"], capture_output=True).returncode:
        pytest.skip("the package openai is not installed: make peers")
    done = subprocess.run([PEER, "-c", OPENAI, f"{server.host}:{server.port}"], capture_output=True, text=True, timeout=120)
    assert done.stdout == "agreed\n", done.stderr
