"""quern serve: connections, limits, the end."""

import json
import socket
import subprocess

import pytest

import serving


@pytest.fixture(scope="module")
def model(quern, tmp_path_factory):
    folder = tmp_path_factory.mktemp("serve")
    (folder / "d.csv").write_text("a,b,label\n" + "".join(f"{i},{i * i % 7},{i % 2}\n" for i in range(40)))
    done = subprocess.run([quern, "train", "--data", folder / "d.csv", "--label", "label", "--model", "dense 2 softmax", "--epochs", "1",
                           "--quiet", "-o", folder / "m.safetensors"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "m.safetensors"


@pytest.fixture(scope="module")
def server(quern, model):
    with serving.serve(quern, model, "--read-seconds", "0.2", "--most-body", "1000") as server:
        yield server
        code, said = server.end()
        assert code == 0 and "after the requests in progress" in said


def error_of(answer):
    status, headers, body = answer
    assert headers["Content-Type"] == "application/json"
    return status, json.loads(body)["error"]


def test_health_and_refusals(server):
    assert server.get("/healthz")[::2] == (200, b"ok\n")
    assert server.get("/readyz")[::2] == (200, b"ready\n")
    assert server.ask("HEAD", "/readyz")[::2] == (200, b"")
    assert error_of(server.get("/nothing")) == (404, "there is nothing at this path")
    status, headers, _ = server.post("/healthz", {})
    assert status == 405 and headers["Allow"] == "GET"
    assert error_of(server.post("/healthz", b"a" * 1001)) == (405, "this path takes GET, not POST")
    assert error_of(server.ask("GET", "/healthz", b"a" * 1001)) == (413, "the body has more than 1000 bytes")
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (1001, b"a" * 1001)
    head = b"GET /healthz HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n"
    assert server.raw(head % b"Connection: close\r\nTransfer-Encoding: chunked" + chunks).startswith(b"HTTP/1.1 413 ")
    assert server.raw(head % (b"X: " + b"a" * 40000)).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("headers", [
    b"Content-Length: 2\r\nContent-Length: 3", b"Content-Length: 2\r\nTransfer-Encoding: chunked",
    b"Content-Length: -1", b"Content-Length: 99999999999999999999", b"Transfer-Encoding: gzip",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"Host: b"])
def test_a_request_without_a_clear_end_is_refused(server, headers):
    got = server.raw(b"GET /healthz HTTP/1.1\r\nHost: a\r\n%s\r\n\r\nabGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" % headers)
    assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ")) and got.count(b"HTTP/1.1 200") == 0


def test_clients_that_do_not_go_on(server):
    for begun in (b"GET /hea", b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"):
        assert server.raw(begun).startswith(b"HTTP/1.1 408 ")
    assert server.raw(b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", shut=True)[:13] in (b"", b"HTTP/1.1 408 ")
    assert server.get("/healthz")[0] == 200


def test_the_end_waits_for_a_request_that_has_begun(quern, model):
    with serving.serve(quern, model) as server:
        with socket.create_connection((server.host, server.port)) as begun, server.process.stderr as said:
            begun.sendall(b"GET /readyz HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
            assert server.get("/healthz")[0] == 200  # the server has accepted the first one
            server.process.terminate()
            assert "after the requests" in said.readline()
            with pytest.raises(ConnectionRefusedError):
                while True:
                    server.get("/healthz")
            begun.sendall(b"b")
            got = begun.recv(10000)
            assert got.startswith(b"HTTP/1.1 503 ") and b"Connection: close" in got
            assert server.process.wait(60) == 0


@pytest.mark.parametrize("words, told", [
    (["MODEL", "--listen", "nowhere"], "--listen is \"nowhere\", which is not an address"),
    (["MODEL", "MODEL"], "there are two models \"m\" of version 1"),
    (["a b=MODEL"], "the name \"a b\" of a model is not valid"),
    (["nothing.safetensors"], "nothing.safetensors"),
    ([], "MODEL")])
def test_what_cannot_be_served(quern, model, words, told):
    listen = [] if "--listen" in words else ["--listen", "127.0.0.1:0"]
    done = subprocess.run([quern, "serve", *[word.replace("MODEL", str(model)) for word in words], *listen],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and told in done.stderr, done.stderr
