"""Predictions over HTTP: the answers of `quern predict`, in every form of request, while models change."""

import concurrent.futures
import contextlib
import csv
import functools
import hashlib
import http.server
import json
import os
import shutil
import signal
import struct
import subprocess
import threading

import numpy as np
import pytest

import serving

CITIES = ["bern", "oslo", "rome"]
ROWS = [{"age": 20 + 7 * i % 60, "city": CITIES[i % 3], "size": i * 0.3125} for i in range(40)]


def table(rows, labels=True):
    lines = ["age,city,size" + ",label" * labels]
    for row in rows:
        lines.append("{age},{city},{size}".format(**row) + (",yes" if row["age"] > 45 else ",no") * labels)
    return "\n".join(lines) + "\n"


def train(quern, folder, name, *words):
    done = subprocess.run([quern, "train", "--data", folder / "d.csv", "--label", "label", "--quiet", "--epochs", "2",
                           "-o", folder / name, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / name


@pytest.fixture(scope="module")
def place(quern, tmp_path_factory):
    """A folder with two models, and what they predict."""
    folder = tmp_path_factory.mktemp("inference")
    (folder / "d.csv").write_text(table(ROWS))
    for name, seed in (("a", "1"), ("b", "2")):
        model = train(quern, folder, f"{name}.safetensors", "--seed", seed)
        done = subprocess.run([quern, "predict", model, "--data", folder / "d.csv", "--outputs", "-o", folder / f"{name}.csv",
                               "--json"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder


def predicted(place, name):
    with (place / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def server(quern, place):
    with serving.serve(quern, f"m={place / 'a.safetensors'}", f"m:2={place / 'b.safetensors'}", "--latency", "5ms") as server:
        yield server
        assert server.end()[0] == 0


def answer(got, digest):
    status, headers, body = got
    assert status == 200, body
    assert headers["Quern-Model-Digest"] == digest
    assert headers["Quern-Answer-Digest"] == hashlib.sha256(body).hexdigest()
    return json.loads(body)


def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("path, name", [("m/1", "a"), ("m/2", "b"), ("m", "b")])
def test_rows_as_csv_and_json(server, place, path, name):
    digest = digest_of(place / f"{name}.safetensors")
    want = [{"prediction": row["prediction"], "score": float(row["score"]), "outputs": [float(row["p0"]), float(row["p1"])]}
            for row in predicted(place, name)]
    as_csv = server.post(f"/v1/predict/{path}?outputs=1", table(ROWS, labels=False).encode(), {"Content-Type": "text/csv"})
    assert answer(as_csv, digest) == {"model": "m", "version": "1" if name == "a" else "2", "predictions": want}
    assert answer(server.post(f"/v1/predict/{path}?outputs=1", ROWS), digest)["predictions"] == want
    alone = [answer(server.post(f"/v1/predict/{path}", row), digest)["predictions"][0] for row in ROWS[:3]]
    assert alone == [{key: row[key] for key in ("prediction", "score")} for row in want[:3]]


def columns(rows, binary=False):
    """The inputs of a request of version 2, and their bytes."""
    values = {"age": np.array([row["age"] for row in rows], "<i8"), "size": np.array([row["size"] for row in rows], "<f8")}
    inputs = [{"name": "age", "datatype": "INT64", "shape": [len(rows), 1], "data": [[row["age"]] for row in rows]},
              {"name": "city", "datatype": "BYTES", "shape": [len(rows)], "data": [row["city"] for row in rows]},
              {"name": "size", "datatype": "FP64", "shape": [len(rows)], "data": [row["size"] for row in rows]}]
    if not binary:
        return inputs, b""
    texts = b"".join(struct.pack("<I", len(row["city"])) + row["city"].encode() for row in rows)
    blocks = [values["age"].tobytes(), texts, values["size"].tobytes()]
    for one, block in zip(inputs, blocks):
        del one["data"]
        one["parameters"] = {"binary_data_size": len(block)}
    return inputs, b"".join(blocks)


def infer(server, path, request, block=b""):
    head = json.dumps(request).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))} if block else {}
    return server.post(f"/v2/models/{path}/infer", head + block, headers)


def binary_outputs(headers, body):
    size = int(headers["Inference-Header-Content-Length"])
    told, at, found = json.loads(body[:size]), size, {}
    for one in told["outputs"]:
        count = one["parameters"]["binary_data_size"]
        found[one["name"]] = body[at:at + count]
        at += count
    assert at == len(body) and headers["Content-Type"] == "application/octet-stream"
    return told, found


def test_layers_are_those_of_predict(quern, server, place, tmp_path):
    """Also together with predictions, and while others ask for other layers."""
    def features(*words):
        done = subprocess.run([quern, "predict", place / "b.safetensors", "--data", place / "d.csv", "--quiet", "-o",
                               tmp_path / "f.npy", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return np.load(tmp_path / "f.npy")

    first, body, last = (features("--layer", layer) for layer in ("0", "body", "-1"))
    digest = digest_of(place / "b.safetensors")
    got = answer(server.post("/v1/predict/m?layer=0", ROWS), digest)
    assert (got["layer"], got["shape"], "predictions" in got) == (0, [first.shape[1]], False)
    assert np.array_equal(np.array(got["outputs"], np.float32), first)
    inputs, block = columns(ROWS, binary=True)
    wanted = [{"name": name, "parameters": {"binary_data": True}} for name in ("layer0", "score", "layer-1", "layer0:max")]
    told, found = binary_outputs(*infer(server, "m", {"inputs": inputs, "outputs": wanted}, block)[1:])
    assert [one["shape"] for one in told["outputs"]] == [[40, first.shape[1]], [40], [40, 2], [40, first.shape[1]]]
    assert found["layer0"] == found["layer0:max"] == first.tobytes() and found["layer-1"] == last.tobytes()
    alone = infer(server, "m", {"inputs": inputs, "outputs": [wanted[2], wanted[0]]}, block)
    assert binary_outputs(*alone[1:])[1] == {"layer-1": last.tobytes(), "layer0": first.tobytes()}
    chances = np.exp(last - last.max(1, keepdims=True))  # the last layer is that before softmax
    assert np.allclose(np.frombuffer(found["score"], "<f4"), (chances / chances.sum(1, keepdims=True)).max(1), rtol=1e-5)

    def ask(k, summaries=("none", "mean", "max", "first", "last")):
        rows, layer = ROWS[k % 5:k % 5 + 1 + k % 4], ("0", "-1", "body")[k % 3]
        summary = summaries[k // 3 % len(summaries)]  # those of one position are the position
        own = answer(server.post(f"/v1/predict/m?layer={layer}&pool={summary}", rows), digest)["outputs"]
        return np.array_equal(np.array(own, np.float32), (first, last, body)[k % 3][k % 5:k % 5 + len(rows)])

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert all(pool.map(lambda k: ask(k, ["none"]), range(30)))
    with concurrent.futures.ThreadPoolExecutor(3) as pool:  # 15 layers with their pools, of which 8 are kept
        assert all(pool.map(ask, range(30)))
    for path, said in (("m?layer=9", "the model has the layers 0 to 2: give"), *((f"m?layer={layer}", "the model has the layers 0 to 2: give")
                        for layer in (2**24, -2**24, 2**24 + 2)), *((f"m?layer={layer}", "does not name a layer")
                        for layer in (2**32, 2**32 + 1, -2**32 - 1, 2**64, 2**64 + 1, 10**22, "0" * 24)), ("m?layer=x", "does not name a layer"),
                       ("m?pool=mean", "without"), ("m?layer=0&outputs=1", "beside"), ("m?outputs=no", "write outputs=1"), ("m?layer=0&pool=sum", "does not name a layer")):
        status, _, body = server.post(f"/v1/predict/{path}", ROWS)
        assert status == 400 and said in json.loads(body)["error"], body
    assert "those of layers are layer0" in json.loads(infer(server, "m", {"inputs": columns(ROWS)[0], "outputs": [{"name": "x"}]})[2])["error"]


@pytest.mark.parametrize("binary", [False, True])
def test_version_2(server, place, binary):
    want = predicted(place, "a")
    inputs, block = columns(ROWS, binary)
    status, headers, body = infer(server, "m/versions/1", {"id": "7 ä", "inputs": inputs}, block)
    told = json.loads(body)
    assert status == 200 and (told["id"], told["model_name"], told["model_version"]) == ("7 ä", "m", "1")
    found = {one["name"]: one for one in told["outputs"]}
    assert found["prediction"] == {"name": "prediction", "datatype": "BYTES", "shape": [40],
                                   "data": [row["prediction"] for row in want]}
    outputs = np.array(found["outputs"]["data"], "f4").reshape(found["outputs"]["shape"])
    assert np.array_equal(outputs, np.array([[row["p0"], row["p1"]] for row in want], "f4"))
    wanted = [{"name": "outputs", "parameters": {"binary_data": True}}, {"name": "prediction", "parameters": {"binary_data": True}}]
    status, headers, body = infer(server, "m/versions/1", {"inputs": inputs, "outputs": wanted}, block)
    told, found = binary_outputs(headers, body)
    assert found["outputs"] == outputs.astype("<f4").tobytes()
    assert found["prediction"].startswith(struct.pack("<I", len(want[0]["prediction"])) + want[0]["prediction"].encode())


def test_the_most_probable_classes(server, place):
    """Triton's "classification": texts of value, class and name, the largest first."""
    inputs, _ = columns(ROWS)
    names = json.loads(server.post("/v1/predict/m/1?outputs=1", ROWS)[2])["predictions"]
    order = [int(np.argmax(one["outputs"])) for one in names]
    label = {k: one["prediction"] for k, one in zip(order, names)}
    want = [f"{np.float32(one['outputs'][k]):f}:{k}:{label[k]}" for first, one in zip(order, names) for k in (first, 1 - first)]
    for binary in (False, True):
        wanted = [{"name": "outputs", "parameters": {"classification": 5, "binary_data": binary}}]
        _, headers, body = infer(server, "m/versions/1", {"inputs": inputs, "outputs": wanted})
        told = json.loads(body[:int(headers["Inference-Header-Content-Length"])] if binary else body)["outputs"][0]
        assert (told["datatype"], told["shape"]) == ("BYTES", [40, 2])
        texts = b"".join(struct.pack("<I", len(text)) + text.encode() for text in want)
        assert binary_outputs(headers, body)[1]["outputs"] == texts if binary else told["data"] == want
    one = infer(server, "m/versions/1", {"inputs": inputs, "outputs": [{"name": "outputs", "parameters": {"classification": 1}}]})
    assert json.loads(one[2])["outputs"][0]["data"] == want[::2]


def test_metadata_and_repository(server):
    told = json.loads(server.get("/v2/models/m")[2])
    assert told["versions"] == ["1", "2"] and [one["name"] for one in told["inputs"]] == ["age", "city", "size"]
    assert "binary_tensor_data" in json.loads(server.get("/v2")[2])["extensions"]
    assert server.get("/v2/health/live")[0] == server.get("/v2/health/ready")[0] == server.get("/v2/models/m/ready")[0] == 200
    assert server.post("/v2/repository/models/m/unload", {})[0] == 200
    assert server.get("/v2/models/m/ready")[0] == server.post("/v1/predict/m", ROWS)[0] == 404
    assert [one["state"] for one in json.loads(server.post("/v2/repository/index", {})[2])] == ["UNAVAILABLE"] * 2
    assert server.post("/v2/repository/models/nothing/load", {})[0] == 400
    assert server.post("/v2/repository/models/m/load", {})[0] == 200
    assert server.get("/v2/models/m/versions/2/ready")[0] == 200


@pytest.mark.parametrize("request_, told", [
    ({}, "the request has not a list of inputs"), ([], "not a JSON object"), ("{", "invalid JSON"),
    ({"inputs": [{"name": "age", "datatype": "FP32", "shape": [2], "data": [1]}]}, "is not 2 values of FP32"),
    ({"inputs": [{"name": "age", "datatype": "UINT8", "shape": [1], "data": [256]}]}, "is not 1 values of UINT8"),
    ({"inputs": [{"name": "age", "datatype": "FP99", "shape": [1], "data": [1]}]}, "the datatype of an input"),
    ({"inputs": [{"name": "age", "datatype": "FP32", "shape": [4294967296], "data": [1]}]}, "the shape of an input"),
    ({"inputs": [{"name": "age", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 9}}]}, "0 are left"),
    ({"inputs": [{"name": "age", "datatype": "FP32", "shape": [1], "data": [1]}]}, "lacks the columns \"city\", \"size\""),
    ({"inputs": columns(ROWS)[0], "outputs": [{"name": "outputs", "parameters": {"classification": 0}}]}, "not a number above 0"),
    ({"inputs": columns(ROWS)[0], "outputs": [{"name": "score", "parameters": {"classification": 1}}]}, "\"score\" has no classes"),
    ({"inputs": columns(ROWS)[0], "outputs": [{"name": "score", "parameters": {"shared_memory_region": "a"}}]}, "no shared memory"),
    ({"inputs": [{"name": "age", "datatype": "FP32", "shape": [1], "parameters": {"shared_memory_region": "a"}}]}, "no shared memory"),
    ({"inputs": columns(ROWS)[0], "outputs": [{"name": "loss"}]}, "the model has no output \"loss\"")])
def test_requests_that_are_refused(server, request_, told):
    status, _, body = server.post("/v2/models/m/infer", request_.encode() if request_ == "{" else request_)
    assert status == 400 and told in json.loads(body)["error"], body


def test_a_body_of_another_type_is_refused(server):
    status, _, body = server.post("/v1/predict/m", b"hello", {"Content-Type": "text/html"})
    assert status == 400 and b"send application/json" in body
    assert server.post("/v1/predict/none", ROWS)[0] == server.post("/v1/predict/m/3", ROWS)[0] == 404


def test_models_change_without_a_lost_request(quern, place, tmp_path):
    """Of a folder whose file is replaced again and again while clients ask: every answer is that of one of the models."""
    want = {digest_of(place / f"{name}.safetensors"): [float(row["score"]) for row in predicted(place, name)] for name in "ab"}
    shutil.copy(place / "a.safetensors", tmp_path / "m.safetensors")
    with serving.serve(quern, tmp_path, "--reload-seconds", "0.01") as server:
        seen, wrong, stop = set(), [], threading.Event()

        def ask():
            while not stop.is_set():
                status, headers, body = server.post("/v1/predict/m", ROWS[:5])
                digest = headers["Quern-Model-Digest"]
                scores = [one["score"] for one in json.loads(body)["predictions"]] if status == 200 else body
                if status != 200 or scores != want[digest][:5]:
                    wrong.append((status, scores))
                seen.add(digest)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for name in "babab":
            shutil.copy(place / f"{name}.safetensors", tmp_path / "new")
            (tmp_path / "new").rename(tmp_path / "m.safetensors")
            digest = digest_of(place / f"{name}.safetensors")
            while server.get("/v2/models/m")[1]["Quern-Model-Digest"] != digest:
                pass
        shutil.copy(place / "b.safetensors", tmp_path / "n.safetensors")
        while server.get("/v2/models/n/ready")[0] != 200:
            pass
        (tmp_path / "n.safetensors").unlink()
        while server.get("/v2/models/n/ready")[0] != 404:
            pass
        stop.set()
        for thread in threads:
            thread.join()
        (tmp_path / "m.safetensors").write_bytes(b"not a model")
        assert any("is not served as it is now" in line for line in iter(server.process.stderr.readline, ""))
        assert server.post("/v1/predict/m", ROWS)[0] == 200
        assert not wrong and seen == set(want)


def test_a_version_goes_on_with_a_file_of_another_name(quern, place, tmp_path):
    """What is wrong in a folder is told once, file by file, and stops nothing else."""
    folder = tmp_path / "v" / "1"
    folder.mkdir(parents=True)
    shutil.copy(place / "a.safetensors", folder / "a.safetensors")
    with serving.serve(quern, tmp_path, "--reload-seconds", "0.01") as server:
        shutil.copy(place / "b.safetensors", tmp_path / "new")
        (folder / "a.safetensors").unlink()
        (tmp_path / "new").rename(folder / "c.safetensors")
        while server.get("/v2/models/v")[1]["Quern-Model-Digest"] != digest_of(place / "b.safetensors"):
            pass
        shutil.copy(place / "a.safetensors", folder / "d.safetensors")
        (tmp_path / "a b.safetensors").write_bytes(b"")
        for name in ("y", "z"):
            shutil.copy(place / "a.safetensors", tmp_path / f"{name}.safetensors")
            while server.get(f"/v2/models/{name}/ready")[0] != 200:
                pass
        said = server.end()[1]
    assert said.count('the name "a b" of a model is not valid') == 1
    assert said.count(f'there are two models "v" of version 1, at {folder}/c.safetensors, {folder}/d.safetensors') == 1


def test_an_answer_does_not_depend_on_the_others(quern, place):
    """Of many clients at once, each answer has the bytes that its row has alone."""
    with serving.serve(quern, f"m={place / 'a.safetensors'}", "--latency", "50ms", "--waiting", "2400") as server:
        alone = [server.post("/v1/predict/m?outputs=1", row)[1]["Quern-Answer-Digest"] for row in ROWS]
        wrong = []

        def ask(first):
            with contextlib.closing(server.connection()) as connection:
                for k in range(len(ROWS)):
                    at = (7 * k + first) % len(ROWS)
                    connection.request("POST", "/v1/predict/m?outputs=1", json.dumps(ROWS[at]))
                    answer = connection.getresponse()
                    body = answer.read()
                    if (answer.headers["Quern-Answer-Digest"], hashlib.sha256(body).hexdigest()) != (alone[at], alone[at]):
                        wrong.append((at, body))

        threads = [threading.Thread(target=ask, args=(first,)) for first in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        items = 'quern_model_items_total{model="m",version="1"} '
        while f"{items}{9 * len(ROWS)}\n" not in (text := server.get("/metrics")[2].decode()):
            assert int(text.partition(items)[2].partition("\n")[0]) < 9 * len(ROWS)  # counted after the answer
        some, many = (json.loads(server.post("/v1/predict/m?outputs=1", rows)[2])["predictions"] for rows in (ROWS, ROWS * 60))
        assert many == some * 60
        some, many = (binary_outputs(*infer(server, "m", {"inputs": inputs, "parameters": {"binary_data_output": True}}, block)[1:])[1]
                      for inputs, block in (columns(ROWS, True), columns(ROWS * 60, True)))
        assert many == {name: block * 60 for name, block in some.items()} and len(many["outputs"]) == 2400 * 8
        status, _, body = server.post("/v1/predict/m", ROWS * 60 + ROWS[:1])
        assert status == 400 and "the request has 2401 items, and one may have 2400" in json.loads(body)["error"]


def test_models_of_addresses_are_read_again_at_a_signal(quern, place, tmp_path):
    """--reload-seconds 0 and addresses: only where SIGHUP asks for it."""
    for name in ("m", "far"):
        shutil.copy(place / "a.safetensors", tmp_path / f"{name}.safetensors")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=files.serve_forever, daemon=True).start()
    far = f"http://127.0.0.1:{files.server_port}/far.safetensors"
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with serving.serve(quern, tmp_path / "m.safetensors", far, "--reload-seconds", "0", env=env) as server:
        for name in ("m", "far"):
            shutil.copy(place / "b.safetensors", tmp_path / "new")
            (tmp_path / "new").rename(tmp_path / f"{name}.safetensors")
        digests = [digest_of(place / f"{name}.safetensors") for name in "ab"]
        assert [server.get(f"/v2/models/{name}")[1]["Quern-Model-Digest"] for name in ("m", "far")] == digests[:1] * 2
        server.process.send_signal(signal.SIGHUP)
        for name in ("m", "far"):
            while server.get(f"/v2/models/{name}")[1]["Quern-Model-Digest"] != digests[1]:
                pass
    files.shutdown()
    files.server_close()
