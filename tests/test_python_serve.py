"""quern.serve, and applications that share a model between threads."""

import concurrent.futures
import importlib
import json
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import python_package


@pytest.fixture(scope="module")
def q():
    python_package.folder()
    return importlib.import_module("quern")


@pytest.fixture(scope="module")
def model(q, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "t.csv"
    path.write_text("a,b,kind\n" + "".join(f"{i},{i * i % 7},{('no', 'yes')[i % 2]}\n" for i in range(40)))
    return q.train(path, label="kind", model="dense 2 softmax", epochs=2)


def post(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read()), answer.headers


def test_a_server_in_this_process(q, model, tmp_path):
    model.save(tmp_path / "other.safetensors")
    rows = [{"a": i, "b": 3} for i in range(30)]
    wanted = model.predict(np.array([[i, 3] for i in range(30)], "f4")).tolist()
    with q.serve({"m:2": model, "n": tmp_path / "other.safetensors"}, port=0, latency="5ms", threads=1, waiting=1000) as server:
        assert server.url == f"http://{server.address}" and repr(server) == f"<quern.Server at {server.url}>"
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            got = list(pool.map(lambda row: post(server, "/v1/predict/m/2", [row]), rows))
        assert [answer["predictions"][0]["prediction"] for answer, _ in got] == wanted
        assert got[0][1]["Quern-Model-Digest"] == model.digest
        assert [p["prediction"] for p in post(server, "/v1/predict/n", rows)[0]["predictions"]] == wanted
        with pytest.raises(q.FileError, match="cannot listen"):
            q.serve(model, port=int(server.address.rpartition(":")[2]))
    server.stop()  # again
    server.wait()
    assert repr(server).endswith("stopped>")
    with pytest.raises(urllib.error.URLError):
        post(server, "/v1/predict/n", rows)


def test_what_cannot_be_served(q, model):
    for words, error, told in ((dict(lateny=1), TypeError, "did you mean 'latency'"), (dict(latency="soon"), q.UsageError, "latency cannot be"),
                               (dict(connections=0), q.UsageError, "`connections` is 0"), (dict(port=65536), q.UsageError, "port"),
                               (dict(tls_cert=__file__, tls_key=__file__), q.FileError, "cannot use this certificate and key")):
        with pytest.raises(error, match=told):
            q.serve(model, **{"port": 0, **words})
    with pytest.raises(q.FileError, match="none.safetensors"):
        q.serve("none.safetensors", port=0)


def test_a_script_may_end_without_stopping_its_server(model, tmp_path):
    model.save(tmp_path / "m.safetensors")
    python_package.python("import quern, sys\nserver = quern.serve(sys.argv[1], port=0)", tmp_path / "m.safetensors")


def test_an_application_of_fastapi(model, tmp_path, monkeypatch):
    testing = pytest.importorskip("fastapi.testclient")
    pytest.importorskip("pandas")
    model.save(tmp_path / "m.safetensors")
    monkeypatch.setenv("MODEL", str(tmp_path / "m.safetensors"))
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "examples"))
    client = testing.TestClient(importlib.import_module("fastapi_app").app)
    rows = [{"a": i, "b": 3} for i in range(20)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda row: client.post("/predict", json=[row]).json(), rows))
    assert got == [[name] for name in model.predict(np.array([[row["a"], 3] for row in rows], "f4")).tolist()]
