"""quern serve: connections, limits, the end."""

import contextlib
import functools
import gzip
import hashlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import zlib

import pytest

import builds
import serving
import store_server
from machine import PATIENCE


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
    with serving.serve(quern, model, "--read-seconds", "0.2", "--most-body", "1000", "--access-log",
                       model.with_name("log")) as server:
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
    away = {"Sec-Fetch-Site": "cross-site"}
    for other in (away, {"Origin": "http://other.example"}, {"Origin": "null"}):
        assert error_of(server.post("/v2/repository/models/m/unload", {}, other))[0] == 403 and server.get("/v2/models/m", other)[0] == 200
    for own in ({"Origin": "http://127.0.0.1:%d" % server.port}, {"Sec-Fetch-Site": "same-origin", "Origin": "https://proxy.example"}):
        assert server.post("/v2/repository/index", {}, own)[0] == 200
    assert error_of(server.get("/nothing")) == (404, "there is nothing at this path")
    status, headers, _ = server.post("/healthz", {})
    assert status == 405 and headers["Allow"] == "GET"
    assert error_of(server.post("/healthz", b"a" * 1001)) == (405, "this path takes GET, not POST")
    assert error_of(server.ask("GET", "/healthz", b"a" * 1001)) == (413, "the body has more than 1000 bytes")
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (1001, b"a" * 1001)
    head = b"GET /healthz HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n"
    assert server.raw(head % b"Connection: close\r\nTransfer-Encoding: chunked" + chunks).startswith(b"HTTP/1.1 413 ")
    for size in (17000, 40000):
        assert server.raw(head % (b"X: " + b"a" * size)).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("start, headers, status, says", [
    (b"GET /healthz HTTP/1.1", b"", 400, "exactly one header \"Host\""), (b"GET /healthz HTTP/1.1", b"Host: a\r\nHost: a\r\n", 400, "\"Host\""),
    (b"GET /healthz HTTP/1.0", b"", 200, None), (b"GET /he%61lthz HTTP/1.0", b"", 200, None),
    (b"GET /healthz%00x HTTP/1.0", b"", 404, "nothing at this path"), (b"GET /v2%2fhealth/live HTTP/1.0", b"", 404, "nothing at this path"),
    (b"GET /v2/models/m%00 HTTP/1.0", b"", 404, "no model \"m%00\""), (b"GET /a b HTTP/1.0", b"", 404, "nothing at this path"),
    (b"GET http://x/healthz HTTP/1.0", b"", 200, None), (b"GET http://x HTTP/1.0", b"", 200, None),
    (b"GET /healthz HTTP/1.0", b"X: " + b"a" * 16000 + b"\r\n", 200, None), (b"GET /healthz HTTP/1.0", b"X: " + b"a" * 17000 + b"\r\n", 431, "head of the request"),
    (b"POST /v1/predict/m?output=1 HTTP/1.0", b"", 400, "the query has \"output\", which this path does not take: it takes \"outputs layer pool\""),
    (b"POST /v2/models/m/infer?a HTTP/1.0", b"", 400, "the query has \"a\""), (b"GET /healthz?a=1 HTTP/1.0", b"", 200, None)])
def test_heads(server, start, headers, status, says):
    got = server.raw(start + b"\r\n" + headers + b"\r\n")
    head, _, body = got.partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status and got.count(b"HTTP/1.1 ") == 1
    assert says is None or says in json.loads(body)["error"]


packed = functools.partial(gzip.compress, mtime=0)
PACKED = packed(b'{"a": 1, "b": 2}')
DEFLATED = zlib.compress(b'{"a": 1, "b": 2}')


@pytest.mark.parametrize("coding, body, status", [
    ("gzip", PACKED, 200), ("X-GZIP", PACKED * 2, 200), ("identity", b'{"a": 1, "b": 2}', 200),
    ("gzip", b'{"a": 1, "b": 2}', 400), ("gzip", PACKED[:-3], 400), ("gzip", PACKED + b"abc", 400),
    ("gzip", packed(b" " * 990 + b'{"a": 1, "b": 2}'), 413), ("gzip", packed(bytes(10_000_000))[:900], 413),
    ("br", b"{}", 415), ("gzip, gzip", PACKED, 415), ("deflate", DEFLATED, 200), ("deflate", DEFLATED[:-3], 400), ("deflate", DEFLATED[2:-4], 400),
    ("deflate", DEFLATED * 2, 400), ("deflate", PACKED, 400), ("deflate", zlib.compress(bytes(10_000_000))[:900], 413)], ids=range(16))
def test_packed_bodies(server, coding, body, status):
    got = server.post("/v1/predict/m", body, {"Content-Type": "application/json", "Content-Encoding": coding})
    assert got[0] == status, got
    if status == 200:
        one = server.post("/v1/predict/m", {"a": 1, "b": 2})
        assert json.loads(got[2])["predictions"] == json.loads(one[2])["predictions"] * (2 if len(body) == 2 * len(PACKED) else 1)
    assert got[1]["Accept-Encoding"] == ("gzip, deflate" if status == 415 else None)
    assert status != 400 or "what gzip or zlib writes" in error_of(got)[1]


def test_packed_answers(server):
    """Of version 2 alone: many clients take packed answers of the other routes, too, without asking for them."""
    asked = {"inputs": [{"name": name, "datatype": "FP32", "shape": [27, 1], "data": 3 * list(range(9))} for name in "ab"]}
    plain = server.post("/v2/models/m/infer", asked)
    assert plain[0] == 200 and len(plain[2]) > 1024 and plain[1]["Content-Encoding"] is None
    for taken, coding, unpack in [("gzip", "gzip", gzip.decompress), ("deflate", "deflate", zlib.decompress), ("br, GZIP;q=0.5", "gzip", gzip.decompress),
                                  ("gzip;q=0, deflate", "deflate", zlib.decompress), ("gzip;q=0.0", None, bytes), ("gzipped, br", None, bytes)]:
        status, headers, body = server.post("/v2/models/m/infer", asked, {"Accept-Encoding": taken})
        assert (status, headers["Content-Encoding"], unpack(body)) == (200, coding, plain[2])
        assert headers["Quern-Answer-Digest"] == plain[1]["Quern-Answer-Digest"] == hashlib.sha256(plain[2]).hexdigest()
    for path, body in (("/v2/models/m/infer", {}), ("/v1/predict/m", [{"a": 1, "b": 2}] * 30)):
        assert server.post(path, body, {"Accept-Encoding": "gzip"})[1]["Content-Encoding"] is None


@pytest.mark.parametrize("kind, body, says", [
    ("json", b" [ ]", "a list without rows: send a list of objects"), ("json", b"[[1, 2]]", "not rows as JSON: send a list of objects"),
    ("json", b'[{"a": 1}]', "lacks the column \"b\" of the model: give all columns of the training data, in any order, with their names"),
    ("json", b'[{"a": 1, "b": "x"}]', "send in each column what the training data has there"),
    ("csv", b"a,b\n", "the body has a header and no rows, at the body, line 1: send a line for each row"),
    ("csv", b"a;b\n1;2,5\n3;x\n", "decimal point, and thousands without a mark")])
def test_messages_name_what_a_client_can_do(server, kind, body, says):
    status, words = error_of(server.post("/v1/predict/m", body, {"Content-Type": {"json": "application/json", "csv": "text/csv"}[kind]}))
    assert status == 400 and says in words and not set("`/") & set(words) and "header;" not in words, words


@pytest.mark.parametrize("headers", [
    b"Content-Length: 2\r\nContent-Length: 3", b"Content-Length: 2\r\nTransfer-Encoding: chunked",
    b"Content-Length: -1", b"Content-Length: 99999999999999999999", b"Transfer-Encoding: gzip",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"Host: b",
    b"Content-Length: 2\0 3", b"Content-Length: 2\r\nContent-Length: 2", b"Content-Length: 2, 2", b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding: chunked ", b"Transfer-Encoding: ",
    b"Content-Length : 2", b"Content-Length:\r\n 2", b"Content-Length: 0\r\n 2", b"Transfer-Encoding:\r\n chunked", b" X: a"])
def test_a_request_without_a_clear_end_is_refused(server, headers):
    got = server.raw(b"GET /healthz HTTP/1.1\r\nHost: a\r\n%s\r\n\r\nabGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" % headers)
    assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ")) and got.count(b"HTTP/1.1 200") == 0


def test_clients_that_do_not_go_on(server):
    for begun in (b"GET /hea", b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"):
        assert server.raw(begun).startswith(b"HTTP/1.1 408 ")
    assert server.raw(b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", shut=True)[:13] in (b"", b"HTTP/1.1 408 ")
    assert server.get("/healthz")[0] == 200


def test_clients_that_go_away_within_a_request(quern, model):
    """Seen long before --read-seconds, however much had come."""
    with serving.serve(quern, model, "--read-seconds", "3600") as server:
        gone = []
        for begun in (b"", b"GET /hea", b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"):
            for shut in (True, False):
                gone.append(socket.create_connection((server.host, server.port)))
                gone[-1].sendall(begun)
                gone[-1].shutdown(socket.SHUT_WR) if shut else gone[-1].close()
        patience = time.monotonic() + 30 * PATIENCE
        while b"\nquern_requests_active 1\n" not in server.get("/metrics")[2]:
            assert time.monotonic() < patience
        for connection in gone:
            connection.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_while_models_load(quern, model, number):
    """The server reads a model of a store, which does not answer yet."""
    with store_server.S3() as s3:
        s3.put("b/m.safetensors", model.read_bytes())
        s3.fault("hold", key="m.safetensors")
        process = subprocess.Popen([quern, "serve", model, "far=s3://b/m.safetensors", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env={**os.environ, **s3.environment})
        with process:
            assert s3.held.wait(30 * PATIENCE)
            process.send_signal(number)
            if number == signal.SIGHUP:
                s3.release()
                assert process.stdout.readline().startswith("listening on")
                process.terminate()
            assert process.wait(30 * PATIENCE) == 0


def test_the_end_waits_for_a_request_that_has_begun(quern, model):
    with serving.serve(quern, model) as server:
        with socket.create_connection((server.host, server.port)) as begun, server.process.stderr as said:
            begun.sendall(b"GET /readyz HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
            assert server.get("/healthz")[0] == 200  # the server has accepted the first one
            server.process.terminate()
            assert "after the requests" in said.readline()
            with pytest.raises(ConnectionRefusedError):
                while True:
                    with contextlib.suppress(ConnectionResetError):  # it waited to be accepted
                        server.get("/healthz")
            begun.sendall(b"b")
            got = begun.recv(10000)
            assert got.startswith(b"HTTP/1.1 503 ") and b"Connection: close" in got
            while server.process.poll() is None:  # a hangup does not end it before its time
                server.process.send_signal(signal.SIGHUP)
            assert server.process.returncode == 0


@pytest.mark.parametrize("words, told", [
    (["MODEL", "--listen", "nowhere"], "--listen is \"nowhere\", which is not an address"),
    (["MODEL", "--listen", "127.0.0.1:65536"], "--listen is \"127.0.0.1:65536\", which is not an address"),
    (["MODEL", "MODEL"], "there are two models \"m\" of version 1"),
    (["a b=MODEL"], "the name \"a b\" of a model is not valid"),
    (["nothing.safetensors"], "nothing.safetensors"),
    ([], "MODEL"), (["MODEL", "--listen", "0.0.0.0:0"], "neither TLS nor a token protects it"),
    (["MODEL", "--tls-cert", "MODEL"], "TLS needs --tls-cert and --tls-key"),
    (["MODEL", "--tls-cert", "MODEL", "--tls-key", "MODEL"], "cannot use this certificate and key"),
    (["MODEL", "--embeddings", "body:sum"], "\"body:sum\" does not name a layer"),
    (["MODEL", "--embeddings", "fifth:mean"], "\"fifth:mean\" does not name a layer"),
    (["MODEL", "--latency", "soon"], "--latency is \"soon\", which is not a time"),
    (["MODEL", "--chat", "foo"], "--chat is \"chatml\" or \"llama3\"")])
def test_what_cannot_be_served(quern, model, words, told):
    listen = [] if "--listen" in words else ["--listen", "127.0.0.1:0"]
    done = subprocess.run([quern, "serve", *[word.replace("MODEL", str(model)) for word in words], *listen],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and told in done.stderr and not done.stdout, done.stderr


def test_metrics_and_log(server, model):
    """A request is counted, and then logged, after its answer."""
    predict = 'quern_requests_total{route="/v1/predict/{model}",model="m",version="1",status="%d"}'
    items = 'quern_model_items_total{model="m",version="1"}'

    def lines():
        return [line for line in map(json.loads, model.with_name("log").read_text().splitlines()) if "v1" in line["path"]]

    def counts():
        rows = [line.rsplit(" ", 1) for line in server.get("/metrics")[2].decode().splitlines() if line[0] != "#"]
        return {name: float(value) for name, value in rows}

    def until(name, value):
        while counts().get(name, 0) < value:
            pass
        assert counts()[name] == value

    before, logged = counts(), len(lines())
    server.post("/v1/predict/m", [{"a": 3, "b": 4}])
    until(predict % 200, before.get(predict % 200, 0) + 1)
    until(items, before[items] + 1)
    server.post("/v1/predict/m", [{"a": "secret"}])
    until(predict % 400, before.get(predict % 400, 0) + 1)
    found = counts()
    buckets = [value for name, value in found.items() if "_bucket" in name and 'model="m",version="1",status="400"' in name and "v1" in name]
    assert buckets == sorted(buckets) and buckets[-1] == found[predict % 400]
    sizes = [value for name, value in found.items() if name.startswith("quern_batch_items_bucket")]
    batch = {name.split("{")[0]: value for name, value in found.items() if name.startswith(("quern_batch_items_", "quern_model_batches"))}
    assert sizes == sorted(sizes) and sizes[-1] == batch["quern_batch_items_count"] == batch["quern_model_batches_total"]
    assert batch["quern_batch_items_sum"] == found[items] and len(sizes) == 12
    while len(lines()) < logged + 2:
        pass
    told = lines()[logged:]
    assert [(line["path"], line["status"], line["model"]) for line in told] == [
        ("/v1/predict/m", 200, "m"), ("/v1/predict/m", 400, "m")]
    assert told[0]["received"] == 18 and told[0]["whole"] and "secret" not in json.dumps(told)
    server.post("/v1/predict/m", [{"a": 3, "b": 4}] * 3)  # of at most 4 items
    until('quern_batch_items_bucket{model="m",version="1",le="4"}', sizes[2] + 1)
    assert counts()['quern_batch_items_bucket{model="m",version="1",le="2"}'] == sizes[1]


def test_clients_that_have_left_are_counted(quern, model):
    """Of a model and its layers. A request waits longer than this latency, so it is not computed then."""
    body = b'[{"a": 3, "b": 4}]'
    head = "POST /v1/predict/m%s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with serving.serve(quern, model, "--latency", "0.001ms") as server:
        def told(name):
            return int(server.get("/metrics")[2].decode().split(f'{name}{{model="m",version="1"}} ')[1].split("\n")[0])

        sent, left = 0, 0
        for query in ("", "?layer=0"):
            status = 200
            while status == 200:
                status = int(server.raw(b"%s%s" % ((head % (query, len(body))).encode(), body), shut=True).split()[1])
                sent, left = sent + 1, left + (status == 503)
        while told("quern_model_requests_total") < sent:  # counted after the answer
            pass
        assert [told(f"quern_model_{name}_total") for name in ("left", "failed", "items")] == [left, left, sent - left] and left == 2


def test_the_log_is_opened_again(server, model):
    """As logrotate does it: another name, and SIGHUP."""
    log, old = model.with_name("log"), model.with_name("log.1")
    server.get("/healthz")
    log.rename(old)
    server.process.send_signal(signal.SIGHUP)
    while not log.exists() or "again" not in log.read_text():
        server.get("/v2/models/again")
    size = old.stat().st_size
    server.get("/healthz")
    assert old.stat().st_size == size and {json.loads(line)["path"] for line in log.read_text().splitlines()} >= {"/v2/models/again"}


def test_a_full_disk_and_a_token_that_is_too_long(quern, model):
    with serving.serve(quern, model, "--access-log", "/dev/full") as server:
        assert [server.get("/healthz")[0] for _ in range(2)] == [200, 200]
        assert server.end()[1].count("lines of the access log are lost: No space left on device\n") == 1
    done = subprocess.run([quern, "serve", model], env={**os.environ, "QUERN_TOKEN": "a" * 1024}, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 2 and "the token has more than 1,023 characters" in done.stderr


def test_tls_and_token(quern, model, tmp_path):
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", tmp_path / "key", "-out", tmp_path / "cert", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    (tmp_path / "token").write_text("a token of the test\n".replace(" ", "-"))
    (tmp_path / "token").chmod(0o600)
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", tmp_path / "other"],
                   check=True, capture_output=True)
    done = subprocess.run([quern, "serve", model, "--listen", "127.0.0.1:0", "--tls-cert", tmp_path / "cert", "--tls-key", tmp_path / "other"],
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "") and "key do not match" in done.stderr
    trust = ssl.create_default_context(cafile=tmp_path / "cert")
    with serving.serve(quern, model, "--tls-cert", tmp_path / "cert", "--tls-key", tmp_path / "key", "--token-file",
                       tmp_path / "token") as server:
        server.connection = lambda: http.client.HTTPSConnection(server.host, server.port, timeout=60, context=trust)
        assert server.get("/healthz")[0] == server.get("/readyz")[0] == server.get("/v2/health/live")[0] == 200
        for wrong in ({}, {"Authorization": "Bearer a-token-of-the-tesT"}, {"Authorization": "Bearer "},
                      {"Authorization": "Bearer a-token-of-the-test-"}, {"Authorization": "Basic a-token-of-the-test"}):
            for path in ("/v2/models/m", "/metrics"):
                status, headers, _ = server.get(path, wrong)
                assert status == 401 and headers["WWW-Authenticate"] == "Bearer"
        assert server.get("/v2/models/m", {"Authorization": "Bearer a-token-of-the-test"})[0] == 200
        assert b"HTTP/1.1" not in server.raw(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")


def test_a_socket_of_systemd(quern, model):
    for more in ((), ("--quiet",)):  # which does not print the address
        with socket.create_server(("127.0.0.1", 0)) as listener:
            script = f'exec 3<&{listener.fileno()}; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" "$@"'
            process = subprocess.Popen(["bash", "-c", script, quern, "serve", model, *more], stdout=subprocess.PIPE, text=True,
                                       stderr=subprocess.PIPE, pass_fds=[listener.fileno()])
            line = "" if more else process.stdout.readline()
            host, port = listener.getsockname()
            with process:
                if not more and "needs libmicrohttpd" in (line or process.stderr.readline()):
                    pytest.skip("libmicrohttpd is not installed")
                assert more or line == f"listening on http://{host}:{port}\n"
                assert serving.Server(process, host, port).get("/readyz")[0] == 200
                process.terminate()
                assert process.wait(60) == 0 and process.stdout.read() == ""
            listener.settimeout(0)  # it still listens, for the next server
            with pytest.raises(BlockingIOError):
                listener.accept()


BODIES = [b"", b"{", b'[{"a":1,"b":2}]', b'{"inputs":[]}', b"a,b\n1,x\n", b"\x89PNG\r\n\x1a\n" + bytes(range(40)), b"[" * 200, PACKED, PACKED[:-9],
          b'{"inputs":[{"name":"a","datatype":"FP32","shape":[1e9],"data":[]}]}', b'{"messages":[{"role":"user","content":"a"}],"stream":true}',
          packed(bytes(100_000)), b"3\r\nabc\r\n0\r\n\r\n", b"ffffffffffffffff\r\na", b"-1\r\n\r\n", b"3;" + b"x" * 3000 + b"\r\nabc\r\n"]
PATHS = [b"/healthz", b"/v1/predict/m", b"/v1/predict/m?outputs=1", b"/v2/models/m/infer", b"/v2/repository/index", b"/v1/completions", b"/" * 9,
         b"/%00%ff", b"*", b"/v1/predict/m%2f1?%zz&a=b", b"http://b/healthz", b"/" + b"a" * 40000]
HEADERS = [b"X: y", b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked, identity", b"Transfer-Encoding:\tchunked\r\nTransfer-Encoding: x",
           b"Expect: 100-continue", b"Content-Length: 3", b"Content-Length: 3\0 4", b" folded", b"Connection: close", b"a" * 3000, b": no name",
           b"Content-Encoding: gzip", b"Content-Encoding: br", b"Cookie: " + b"a=b;" * 500, b"Host: c", b"Content-Length:\r\n 9", b"\xff\x00: \x7f"]


def bad_request(draw):
    """Bytes that are nearly a request, and whether the client then closes its side."""
    body = draw.choice([*BODIES, draw.randbytes(60)])
    size = len(body) + draw.choice([0, 0, 0, 1, 50, -1])
    headers = [b"Host: a", b"Content-Type: " + draw.choice([b"text/csv", b"image/png", b"application/json", b"x"]),
               *draw.sample([*HEADERS, b"Inference-Header-Content-Length: %d" % draw.randrange(300)], draw.choice([0, 1, 1, 2]))]
    if draw.random() < 0.8:
        headers.insert(draw.randrange(len(headers) + 1), b"Content-Length: %d" % size)
    data = draw.choice([b"POST ", b"GET ", b"PUT ", b"P\0ST "]) + draw.choice(PATHS) + b" HTTP/1." + draw.choice([b"1", b"1", b"0", b"9"]) + b"\r\n"
    data = bytearray(data + draw.choice([b"\r\n"] * 9 + [b"\n"]).join(headers) + b"\r\n\r\n" + body)
    for _ in range(draw.choice([0, 0, 1, 4])):
        data[draw.randrange(len(data))] = draw.randrange(256)
    if draw.random() < 0.2:
        data = data[:draw.randrange(len(data))]
    elif draw.random() < 0.1:  # another request after it, which must not be taken for a part of it
        data += b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
    return bytes(data), draw.random() < 0.3


@pytest.mark.parametrize("count", [200, 10000], ids=["few", "many"])
def test_bad_requests(quern, model, count):
    """None ends the server, and none holds a thread: others are answered meanwhile. Many go to a server with sanitizers."""
    draw, more = random.Random(7), {}
    if count > 1000:
        quern, more = builds.ready("asan") / "quern", {"env": builds.environment("asan")}
    requests = [bad_request(draw) for _ in range(count)]
    words = [model, "--read-seconds", "0.2", "--most-body", "5000", "--http-threads", "2", "--threads", "1"]
    with serving.serve(quern, *words, **more) as server:
        open_ends = []

        def send(some):
            for number, (data, shut) in enumerate(some):
                with contextlib.suppress(OSError):
                    connection = socket.create_connection((server.host, server.port))
                    for piece in [data] if number % 8 else [data[i:i + 9] for i in range(0, min(len(data), 900), 9)] + [data[900:]]:
                        connection.sendall(piece)
                    if shut:
                        connection.shutdown(socket.SHUT_WR)
                    open_ends.append(connection)
                if len(open_ends) > 200:
                    open_ends.pop(0).close()

        threads = [threading.Thread(target=send, args=(requests[i::4],)) for i in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert server.get("/healthz")[0] == 200
        assert server.post("/v1/predict/m", [{"a": 1, "b": 2}])[0] == 200
        for connection in open_ends:  # each is answered or ended, by the time limit
            connection.settimeout(60)
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while connection.recv(65536):
                    pass
            connection.close()
        assert server.get("/metrics")[0] == 200
        code, said = server.end()
        assert code == 0 and said == "the server ends after the requests in progress\n", said


@pytest.mark.parametrize("rows", [
    [{"a": 1, "b": 2}], [{"b": 0.1, "a": 255}, {"a": 3, "b": -16777216}], [{"a": 0.345584183931350708, "b": 1e-30}],
    [{"a": 16777217, "b": 1.00000005960464477539}], [{"a": -0.0, "b": 3}] * 5, [{"a": 33.0, "b": 12345678.9}]])
def test_json_rows_of_numbers_are_those_of_csv(server, rows):
    table_ = "a,b\n" + "".join(f"{row['a']!r},{row['b']!r}\n" for row in rows)
    as_csv = server.post("/v1/predict/m?outputs=1", table_.encode(), {"Content-Type": "text/csv"})
    as_json = server.post("/v1/predict/m?outputs=1", rows)
    assert as_csv[0] == as_json[0] == 200 and as_csv[2] == as_json[2]
    if len(rows) == 1:
        assert server.post("/v1/predict/m?outputs=1", rows[0])[2] == as_csv[2]


@pytest.mark.parametrize("body, status", [
    (b'{"a":1,"b":2} ', 200), (b'[{"a":1,"b":2,"c":3}]', 200), (b'{"a":1,"b":2}\n{"a":1,"b":2}', 200),
    (b'[{"a":1,"b":2}', 400), (b'[{"a":1,"a":1,"b":2}]', 400), (b'[{"a":1}]', 400), (b'[{"a":01,"b":2}]', 400),
    (b'[{"a":1,"b":2},]', 400), (b'[{"a":1,"b":2}]]', 400), (b'[{"a":1,"b":2,}]', 400), (b'[{"a":[1],"b":2}]', 400)])
def test_json_that_is_nearly_rows(server, body, status):
    assert server.post("/v1/predict/m", body, {"Content-Type": "application/json"})[0] == status
