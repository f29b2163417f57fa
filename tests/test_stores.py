"""Files at addresses: what is read, what is fetched for it, and what happens when a store fails."""

import contextlib
import gzip
import io
import json
import os
import random
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import tarfile
import threading
from pathlib import Path

import checkpoints as cp
import http_server
import machine
import numpy as np
import pytest
import serving
import store_server

SMALL = "".join(["a,b,y\n", *(f"{i},{i * 7 % 11},{'no' if i % 3 else 'yes'}\n" for i in range(60))]).encode()
NUMBERS = random.Random(36)
LARGE = "".join(["a,b,y\n", *(f"{NUMBERS.random()},{NUMBERS.random()},{i % 2}\n"
                              for i in range(40_000))]).encode()  # 1.6 MB


@pytest.fixture
def s3():
    with store_server.S3(buckets=["b"], public=["open"], regions={"b": "eu-north-1"}) as server:
        yield server


@pytest.fixture
def own(s3, tmp_path):
    """The environment of a user who has nothing but what the store needs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, "HOME": str(tmp_path / "home"), "QUERN_CACHE": str(tmp_path / "cache"),
            "QUERN_STORE_PAUSE_MS": "0", **s3.environment}


@pytest.fixture
def digest(run_quern, own):
    """The digest of a table, as Quern reads it."""
    def read(*paths, status=0, **env):
        done = run_quern("data", "info", "--json", *paths, status=status, env={**own, **env})
        return json.loads(done.stdout)["digest"] if status == 0 else done.stderr
    return read


def fetched(server, key):
    return sum(request.sent for request in server.requests("GET", key))


def test_tables_and_lists_of_them(s3, digest, tmp_path):
    """The bucket is in another region than the environment says, which the store tells."""
    for i in range(3):
        s3.put(f"b/t/part-{i}.csv", SMALL)
        (tmp_path / f"part-{i}.csv").write_bytes(SMALL)
    s3.put("b/t/_SUCCESS", b"")
    s3.put("b/t/", b"")
    s3.put("b/large.csv", LARGE)
    names = ["with space+.csv", "up/../t.csv", "[a]*.csv", "per%20cent.csv", "\u00fc/\u6f22?#.csv"]
    for name in names:
        s3.put(f"b/{name}", SMALL)
    s3.put("open/t.csv", SMALL)
    (tmp_path / "large.csv").write_bytes(LARGE)
    s3.page = 2  # keys of a list
    one, all_three = digest(tmp_path / "part-0.csv"), digest(tmp_path / "part-*.csv")
    assert digest("s3://b/t/part-0.csv") == one
    assert {digest(f"s3://b/{name}") for name in names} == {one}
    assert digest("s3://b/t/part-*.csv") == digest("s3://b/t/") == digest("s3://b/t") == all_three
    assert digest(f"{s3.address}/open/t.csv?versionId=secret") == one
    assert digest("s3://b/large.csv", "--no-cache") == digest(tmp_path / "large.csv")
    assert fetched(s3, "large.csv") == len(LARGE)
    s3.forget()  # now it is in the cache, and the list has told that it is the same
    assert digest("s3://b/large.csv", "--no-cache") == digest(tmp_path / "large.csv")
    assert fetched(s3, "large.csv") == 0
    s3.put("open/large.csv", LARGE)
    for status in 206, 304:
        s3.forget()
        assert digest(f"{s3.address}/open/large.csv", "--no-cache") == digest(tmp_path / "large.csv")
        assert s3.requests("GET", "large.csv")[0].status == status
    assert fetched(s3, "large.csv") == 0


@pytest.mark.parametrize("fault, times", [
    (dict(kind="cut", after=100_000), 3), (dict(kind="truncate", after=70_000), 2),
    (dict(kind="length", add=7), 1), (dict(kind="lose"), 1),
    (dict(kind="status", status=503, headers={"Retry-After": "9"}), 2), (dict(kind="status", status=429), 1)])
def test_a_store_that_fails_for_a_while(s3, digest, tmp_path, fault, times):
    s3.put("b/large.csv", LARGE)
    (tmp_path / "large.csv").write_bytes(LARGE)
    kind = fault.pop("kind")
    s3.fault(kind, method="GET", key="large.csv", skip=1, times=times, **fault)
    assert digest("s3://b/large.csv", "--no-cache") == digest(tmp_path / "large.csv")


def wait_for_four(server):
    """No request for the files 10 to 19 is answered before four of them are there at once."""
    guard, now, together = threading.Lock(), set(), threading.Event()

    def arrive():
        with guard:
            now.add(threading.get_ident())
            if len(now) >= 4:
                together.set()
        assert together.wait(20), "files are asked for one after the other"
        with guard:
            now.discard(threading.get_ident())
    server.fault("do", method="GET", key="/1", times=10_000, action=arrive)
    return together


def test_files_of_a_set_are_asked_for_at_once(s3, run_quern, digest, tmp_path):
    """Of each kind, in the order of their names. A file is asked for once, even where a set is read
    several times; only the first ones may be opened by themselves, too."""
    (tmp_path / "t.csv").write_bytes(SMALL)
    run_quern("data", "convert", tmp_path / "t.csv", "-o", tmp_path / "t.parquet")
    run_quern("data", "synth", "digits", "--items", 40, "-o", tmp_path / "d.tar")
    bodies = {"csv": lambda i: SMALL + b"%d,7,no\n" % i, "txt": lambda i: b"the text %d" % i,
              "jsonl": lambda i: b'{"a": %d, "y": 1}\n' % i * 3,
              "parquet": lambda i: (tmp_path / "t.parquet").read_bytes()}
    with tarfile.open(tmp_path / "d.tar") as tar:
        images = [tar.extractfile(member).read() for member in tar if member.isfile()]
    bodies["png"] = lambda i: images[i]
    for kind, body in bodies.items():
        s3.buckets["b"].clear()
        for i in range(40):
            name = f"set/{'ab'[i % 2]}/{i:02}.{kind}" if kind in ("png", "txt") else f"set/{i:02}.{kind}"
            s3.put(f"b/{name}", body(i))
            (tmp_path / kind / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / kind / name).write_bytes(body(i))
        s3.forget()
        s3.faults.clear()
        together = wait_for_four(s3)
        assert digest("s3://b/set/") == digest(tmp_path / kind / "set"), kind
        assert together.is_set(), kind
        asked = [len(s3.requests("GET", name.partition("/")[2])) for name in s3.names()]
        assert asked.count(1) >= 38, kind


def test_processes_share_what_is_fetched(s3, own, quern, digest, tmp_path):
    """Each block is fetched once. After a restart of the machine a block whose bytes were lost, which
    its digest tells, is fetched again."""
    s3.put("b/large.csv", LARGE)
    words = [quern, "data", "info", "--json", "--no-cache", "s3://b/large.csv"]
    running = [subprocess.Popen(words, env=own, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    (tmp_path / "large.csv").write_bytes(LARGE)
    expected = digest(tmp_path / "large.csv")
    assert [json.loads(process.communicate()[0])["digest"] for process in running] == 3 * [expected]
    assert fetched(s3, "large.csv") == len(LARGE)
    assert digest("s3://b/large.csv", "--no-cache", QUERN_CACHE="/dev/null/none") == expected  # in TMPDIR
    s3.forget()
    # The parts are removed from the cache at each request of three readers.
    cache = tmp_path / "removed"
    cache.mkdir(mode=0o700)
    s3.fault("do", method="GET", key="large.csv", times=99, action=lambda: [
        path.unlink(missing_ok=True) for path in cache.glob("*.*") if path.suffix in (".stored", ".blocks")])
    running = [subprocess.Popen(words, env={**own, "QUERN_CACHE": str(cache)}, stdout=subprocess.PIPE, text=True)
               for _ in range(3)]
    assert [json.loads(process.communicate()[0])["digest"] for process in running] == 3 * [expected]
    s3.forget()
    part, = (tmp_path / "cache").glob("*.stored")
    with open(part, "r+b") as data, open(part.with_suffix(".blocks"), "r+b") as blocks:
        data.seek(3 * 65_536 + 5)
        data.write(bytes(100))
        head = blocks.read(512)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().encode()
        blocks.seek(head.index(boot))
        blocks.write(b"another!")
    assert digest("s3://b/large.csv", "--no-cache") == expected
    assert fetched(s3, "large.csv") == 65_536


def test_a_file_that_changes(s3, digest):
    s3.put("b/large.csv", LARGE)
    s3.fault("do", method="GET", key="large.csv", skip=2, action=lambda: s3.put("b/large.csv", LARGE[:-99] + b"\n"))
    told = digest("s3://b/large.csv", "--no-cache", status=1)
    assert "the file changed while it was read\n  at s3://b/large.csv" in told


def test_a_full_cache_folder(s3, own, quern, tmp_path):
    machine.need("mounting a disk")
    (tmp_path / "disk").mkdir()
    s3.put("b/t.csv", LARGE)
    done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=600k tmpfs disk; exec "$@"', "sh",
                           quern, "data", "info", "s3://b/t.csv"], cwd=tmp_path, capture_output=True, text=True,
                          env={**own, "QUERN_CACHE": "disk", "TMPDIR": "disk"})
    assert done.returncode == 1 and "has no space for the file" in done.stderr, done.stderr


def test_refusals(s3, digest, tmp_path):
    s3.put("b/t.csv", SMALL)

    def told(address, **env):
        text = digest(address, status=1, **env)
        assert f"at {address.partition('?')[0]}" in text and s3.SECRET not in text
        return text

    assert "there is no such file in the store" in told("s3://b/none.csv")
    assert "there is no such bucket" in told("s3://none/t.csv")
    assert "of the environment (AWS_ACCESS_KEY_ID)" in told("s3://b/t.csv", AWS_SECRET_ACCESS_KEY="wrong")
    assert "without credentials" in told("s3://b/t.csv", AWS_ACCESS_KEY_ID="")
    assert "no file in the store has an address of this pattern" in told("s3://b/x*.csv")
    s3.put("b/empty.csv", b"")
    assert "the file is empty" in told("s3://b/empty.csv")
    for code, said in (("ExpiredToken", "log in again"), ("RequestTimeTooSkewed", "minutes slow for the store")):
        s3.fault("status", key="t.csv", status=403 if said[0] == "m" else 400, times=2, headers={"Date": "Sat, 01 Jan 2050 00:00:00 GMT"},
                 body=f"<Error><Code>{code}</Code></Error>".encode())
        assert code in (refused := told("s3://b/t.csv")) and said in refused
        s3.forget()
    s3.fault("status", query=("list-type",), status=200, times=9, body=b"<ListBucketResult><IsTruncated>true</IsTruncated>"
             b"<NextContinuationToken>x</NextContinuationToken></ListBucketResult>")
    assert "list of files cannot be read" in told("s3://b/t/")  # the same page again and again
    s3.forget()
    closed = told("http://127.0.0.1:1/t.csv?X-Amz-Signature=secret")
    assert "in 4 attempts" in closed and "that the server runs" in closed and "secret" not in closed
    s3.fault("status", key="t.csv", status=500, times=99)
    assert "status 500, after 4 attempts" in told("s3://b/t.csv")
    assert "has no name of a bucket" in told("s3:///t.csv")


@contextlib.contextmanager
def agent(documents):
    """A service that hands out credentials; it answers 401 where a header is not as it should be."""
    class Agent(http_server.Server):
        def answer(self, request):
            wanted, text = documents.get((request.method, request.target), ({}, None))
            if text is None:
                return http_server.Answer(404)
            good = all(request.headers.get(name) == value for name, value in wanted.items())
            return http_server.Answer(200, text.encode()) if good else http_server.Answer(401)

    with Agent() as server:
        yield server


def test_credentials(s3, digest, tmp_path):
    """Of each place where the AWS command finds them."""
    s3.put("b/t.csv", SMALL)
    home = tmp_path / "home" / ".aws"
    (home / "sso" / "cache").mkdir(parents=True)
    bare = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_REGION": ""}
    expected = digest("s3://b/t.csv")
    (home / "credentials").write_text(f"# a comment\n[other]\naws_access_key_id = x\n[work]\naws_access_key_id={s3.KEY}\n"
                                      f"aws_secret_access_key = {s3.SECRET}\n")
    (home / "config").write_text("[profile  work]\nregion = eu-north-1\ns3 =\n  aws_access_key_id = no\n"
                                 "[profile login]\nsso_session = s\nsso_account_id = 1\nsso_role_name = r\n"
                                 "[sso-session s]\nsso_start_url = https://start\nsso_region = eu-west-1\n"
                                 "[profile run]\ncredential_process = /bin/false\n")
    assert digest("s3://b/t.csv", AWS_PROFILE="work", **bare) == expected
    assert "failed with exit code 1" in digest("s3://b/t.csv", status=1, AWS_PROFILE="run", **bare)
    assert "aws sso login" in digest("s3://b/t.csv", status=1, AWS_PROFILE="login", **bare)
    assert "the configuration of AWS has no such profile\n  at wrok (AWS_PROFILE)" in digest("s3://b/t.csv", status=1, AWS_PROFILE="wrok", **bare)
    (home / "sso" / "cache" / "0.json").write_text(json.dumps(
        {"startUrl": "https://start", "accessToken": "sso-token", "expiresAt": "2999-01-01T00:00:00Z"}))
    role = json.dumps({"AccessKeyId": s3.KEY, "SecretAccessKey": s3.SECRET, "Token": "",
                       "Expiration": "2999-01-01T00:00:00Z"})
    login = json.dumps({"roleCredentials": {"accessKeyId": s3.KEY, "secretAccessKey": s3.SECRET,
                                            "sessionToken": "t", "expiration": 32472144000000}})
    path = "/latest/meta-data/iam/security-credentials/"
    with agent({("GET", "/federation/credentials?role_name=r&account_id=1"):
                ({"x-amz-sso_bearer_token": "sso-token"}, login),
                ("GET", "/container"): ({"authorization": "pass"}, role),
                ("PUT", "/latest/api/token"): ({"x-aws-ec2-metadata-token-ttl-seconds": "21600"}, "imds"),
                ("GET", path): ({"x-aws-ec2-metadata-token": "imds"}, "r"),
                ("GET", path + "r"): ({"x-aws-ec2-metadata-token": "imds"}, role)}) as server:
        assert digest("s3://b/t.csv", AWS_CONTAINER_CREDENTIALS_FULL_URI=server.address + "/container",
                      AWS_CONTAINER_AUTHORIZATION_TOKEN="pass", **bare) == expected
        assert digest("s3://b/t.csv", AWS_EC2_METADATA_SERVICE_ENDPOINT=server.address, **bare) == expected
        s3.keys[s3.KEY] = (s3.SECRET, "t")
        assert digest("s3://b/t.csv", AWS_PROFILE="login", AWS_ENDPOINT_URL_SSO=server.address,
                      **bare) == expected
        s3.keys[s3.KEY] = (s3.SECRET, "")
        s3.buckets["g"], s3.regions["g"] = dict(s3.buckets["b"]), "auto"
        assert digest("gs://g/t.csv", QUERN_GS_ENDPOINT_URL=s3.address, GS_ACCESS_KEY_ID=s3.KEY,
                      GS_SECRET_ACCESS_KEY=s3.SECRET, **bare) == expected
        for host in "10.0.0.1", "127.evil.example", "localhost.evil.example", "x@127.0.0.1":
            assert "from another machine" in digest("s3://b/t.csv", status=1, **bare,
                                                    AWS_CONTAINER_CREDENTIALS_FULL_URI=f"http://{host}/c")


def test_no_core_file_has_a_secret(s3, own, quern, tmp_path):
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern != "core":
        pytest.skip(f"core files go to {pattern}")
    s3.put("b/t.csv", SMALL)
    s3.fault("hold", method="GET", key="t.csv")  # the request was signed

    def keep_core():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    process = subprocess.Popen([quern, "data", "info", "s3://b/t.csv"], env=own, cwd=tmp_path, preexec_fn=keep_core)
    assert s3.held.wait(60)
    process.send_signal(signal.SIGABRT)
    process.wait()
    s3.release()
    core = next(tmp_path.glob("core*")).read_bytes()
    assert s3.KEY.encode() in core and s3.SECRET.encode() not in core


class Web(http_server.Server):
    """A web server that knows no ranges, and tells no size where `sized` is 0."""
    files, sized = {}, 1

    def answer(self, request):
        data = self.files.get(request.path)
        if data is None:
            return http_server.Answer(404)
        if self.sized:
            return http_server.Answer(200, data)
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in
                        (data[at:at + 99_999] for at in range(0, len(data), 99_999))) + b"0\r\n\r\n"
        return http_server.Answer(200, body, {"Transfer-Encoding": "chunked"})


def test_a_web_server_without_ranges(digest, tmp_path):
    (tmp_path / "large.csv").write_bytes(LARGE)
    with Web() as server:
        server.files = {"/large.csv": LARGE}
        for sized in 1, 0:
            server.sized = sized
            assert digest(server.address + "/large.csv", "--no-cache") == digest(tmp_path / "large.csv")


def test_models_images_and_arrays(s3, own, run_quern, tmp_path, digest):
    import PIL.Image
    with tarfile.open(tmp_path / "p.tar", "w") as tar:
        for i in range(6):
            picture = io.BytesIO()
            PIL.Image.fromarray(np.full((4, 4, 3), 40 * i, np.uint8)).save(picture, "PNG")
            name = f"{'ab'[i % 2]}/{i}.png"
            s3.put(f"b/images/{name}", picture.getvalue())
            entry = tarfile.TarInfo(name)
            entry.size = len(picture.getvalue())
            tar.addfile(entry, io.BytesIO(picture.getvalue()))
    s3.put("b/p.tar", (tmp_path / "p.tar").read_bytes())
    assert digest("s3://b/images/") == digest("s3://b/p.tar") == digest(tmp_path / "p.tar")
    s3.put("b/t.csv", SMALL)
    s3.put("open/t.csv", SMALL)
    run_quern("train", "--data", "s3://b/t.csv", "--label", "y", "--model", "dense 4 tanh; dense 2 softmax", "--epochs", "1",
              "-o", tmp_path / "m.safetensors", env=own)
    s3.put("b/m.safetensors", (tmp_path / "m.safetensors").read_bytes())
    run_quern("train", "--data", f"{s3.address}/open/t.csv?sig=hidden", "--label", "y", "--model", "dense 2 softmax",
              "--epochs", "1", "-o", tmp_path / "n.safetensors", "--run-dir", tmp_path / "run", env=own)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"hidden" in path.read_bytes()]
    told = [run_quern("predict", model, "s3://b/t.csv", env=own).stdout
            for model in ("s3://b/m.safetensors", tmp_path / "m.safetensors")]
    assert told[0] == told[1]
    assert "parameters 22" in run_quern("model", "show", "s3://b/m.safetensors", env=own).stdout
    for folder in ("s3://b/images/", "s3://b/images"):
        assert f'"{folder}" looks like data, not like a model' in run_quern("predict", folder, "s3://b/t.csv", status=2, env=own).stderr


def test_a_folder_of_models_is_served(s3, own, quern, run_quern, tmp_path):
    """It is listed again at SIGHUP: a new model is served and told, and one that is gone is not."""
    (tmp_path / "t.csv").write_bytes(SMALL)
    run_quern("train", "--data", tmp_path / "t.csv", "--label", "y", "--model", "dense 2 softmax", "--epochs", "1", "-o", tmp_path / "m")
    model = (tmp_path / "m").read_bytes()
    for name in "one.safetensors", "two/7/model.safetensors", "two/8/model.safetensors", "notes.txt":
        s3.put(f"b/models/{name}", model)

    def answers(server):
        return [server.get(f"/v2/models/{name}")[0]
                for name in ("one", "two/versions/7", "two/versions/8", "new")]

    with serving.serve(quern, "s3://b/models", env={**own, "QUERN_STORE_STALL": "3000"}) as server:
        assert answers(server) == [200, 200, 200, 404]
        s3.put("b/models/new.safetensors", model)
        del s3.buckets["b"]["models/one.safetensors"]
        server.process.send_signal(signal.SIGHUP)
        while answers(server) != [404, 200, 200, 200]:
            assert server.process.poll() is None
        s3.fault("status", status=503, times=99)
        server.process.send_signal(signal.SIGHUP)
        while not any(request.status == 503 for request in s3.log):
            assert server.process.poll() is None
        assert answers(server) == [404, 200, 200, 200]
        s3.forget()
        s3.fault("hold", method="GET", times=99)
        server.process.send_signal(signal.SIGHUP)
        assert s3.held.wait(60)
        code, said = server.end()  # although the answer never comes
        assert code == 0 and said.count(" is served from its new file") == said.count("new version 1 is served") == 1


def test_databases_packed_files_and_kernels(s3, own, run_quern, tmp_path, digest):
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db")) as base:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("CREATE TABLE t (a REAL, y INT)")
        base.executemany("INSERT INTO t VALUES (?, ?)", [(i / 7, i % 2) for i in range(500)])
        base.commit()
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(LARGE))
    for name in "t.db", "t.csv.gz":
        s3.put(f"b/{name}", (tmp_path / name).read_bytes())
        assert digest(f"s3://b/{name}", "--no-cache") == digest(tmp_path / name, "--no-cache")
    (tmp_path / "k.c").write_text("INDEX(i);\nINPUT(float, x);\nOUTPUT(float, y);\nKERNEL { y = 2 * x; }\n")
    np.save(tmp_path / "x.npy", np.arange(100_000, dtype=np.float32))
    s3.put("b/x.npy", (tmp_path / "x.npy").read_bytes())
    run_quern("run", "--kernel", tmp_path / "k.c", "--in", "x=s3://b/x.npy", "--out", f"y={tmp_path}/y.npy", env=own)
    assert (np.load(tmp_path / "y.npy") == 2 * np.load(tmp_path / "x.npy")).all()


def test_what_options_name(s3, own, run_quern, tmp_path):
    """Files that are read as a whole: a job and what it names beside it, prompts, a tokenizer, a
    checkpoint in several files, adapters in a folder. Addresses of folders need no slash."""
    def run(*words, **more):
        return run_quern(*words, env=own, cwd=tmp_path, **more)

    def upload(folder):
        for path in folder.iterdir():
            s3.put(f"b/{folder.name}/{path.name}", path.read_bytes())

    s3.put("b/job/k.c", b"INDEX(i);\nINPUT(float, x);\nOUTPUT(float, y);\nKERNEL { y = 2 * x; }\n")
    array = io.BytesIO()
    np.save(array, np.arange(9, dtype=np.float32))
    s3.put("b/x.npy", array.getvalue())
    s3.put("b/job/job.toml", b'kernel = "k.c"\n[in]\nx = "s3://b/x.npy"\n[out]\ny = "y.npy"\n')
    run("run", "s3://b/job/job.toml")
    assert (np.load(io.BytesIO(s3.get("b/job/y.npy"))) == 2 * np.arange(9)).all()
    cp.shard(tmp_path / "gpt", cp.GPT2, cp.gpt2(np.random.default_rng(4)), 3)
    (tmp_path / "corpus.txt").write_text("abcdefghij " * 9)
    run("data", "tokenize", "corpus.txt", "--tokens", "chars", "-o", "t.npy", "--save-tokenizer", "gpt/tokenizer.json")
    upload(tmp_path / "gpt")
    run("model", "import", "gpt", "-o", "local.st")
    run("model", "import", "s3://b/gpt", "-o", "far.st")
    local, far = ((tmp_path / name).read_bytes().replace(b"s3://b/gpt", b"gpt") for name in ("local.st", "far.st"))
    assert far[-400:] == local[-400:]
    run("train", "--init-from", "far.st", "--data", "corpus.txt", "--lora", "2 on all", "--epochs", "1", "-o", "a.st")
    run("model", "export", "far.st", "--adapter", "a.st", "--names", "peft", "-o", "peft")
    upload(tmp_path / "peft")
    s3.put("b/p.txt", b"abc\n")
    s3.put("b/p.jsonl", b'{"prompt": "abc"}\n')
    words = ["generate", "far.st", "--tokens", "3", "--adapter"]
    answer = run(*words, "peft", "--prompt", "abc").stdout
    assert run(*words, "s3://b/peft", "--prompts", "s3://b/p.txt").stdout == answer
    assert run(*words, "s3://b/peft/", "--prompts", "s3://b/p.jsonl").stdout == answer[3:]
    assert "no such file in the store\n  at s3://b/q.txt" in run(*words, "peft", "--prompts", "s3://b/q.txt", status=1).stderr


def test_what_is_read_in_ranges_fetches_nothing_else(s3, digest, tmp_path):
    np.savez(tmp_path / "z.npz", a=np.arange(40_000.0).reshape(-1, 4),
             other=np.random.default_rng(9).integers(0, 256, 3_000_000).astype(np.uint8))
    s3.put("b/z.npz", (tmp_path / "z.npz").read_bytes())
    assert digest("s3://b/z.npz:a") == digest(f"{tmp_path}/z.npz:a")
    assert fetched(s3, "z.npz") < 650_000


def test_columns_of_parquet_files_from_their_footers(s3, own, run_quern, digest, tmp_path):
    """A description fetches the last bytes of each file alone; a column, its chunks."""
    x = np.random.default_rng(3).random((60_000, 5))
    np.savetxt(tmp_path / "t.csv", x, delimiter=",", header="a,b,c,d,label", comments="")
    run_quern("data", "convert", tmp_path / "t.csv", "--label", "label", "-o", tmp_path / "t.parquet")
    data = (tmp_path / "t.parquet").read_bytes()
    for year in 2025, 2026:
        s3.put(f"b/t/year={year}/t.parquet", data)
    told = json.loads(run_quern("data", "info", "--json", "--schema", "s3://b/t/", env=own).stdout)
    assert (told["files"], told["items"], told["digest"]) == (2, 120_000, None)
    assert [(c["name"], c["type"]) for c in told["columns"]] == [
        *((name, "float") for name in ["label", *"abcd"]), ("year", "key of a folder")]
    assert len(data) > 1_000_000 and fetched(s3, ".parquet") <= 4 * 65_536
    assert "digest    not computed" in run_quern("data", "info", "--schema", tmp_path / "t.parquet").stdout
    s3.forget()
    assert digest("s3://b/t/year=2025/t.parquet", "--drop", "b,c,d", "--label", "label") == \
        digest(tmp_path / "t.parquet", "--drop", "b,c,d", "--label", "label")
    assert fetched(s3, ".parquet") < 0.4 * len(data) + 200_000
    s3.put("b/u/1.parquet", data)
    s3.put("b/u/2.csv", SMALL)
    assert "only Parquet files have a description of their columns\n  at s3://b/u/2.csv" in \
        digest("s3://b/u/", "--schema", status=1)
    assert "goes with --json alone" in digest(tmp_path / "t.parquet", "--schema", "--drop", "a", status=2)


def test_nginx(digest, tmp_path):
    """A server that is used in earnest. Its socket is made here, so that the port is the system's choice."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if not program:
        pytest.skip("there is no nginx here")
    (tmp_path / "large.csv").write_bytes(LARGE)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        (tmp_path / "nginx.conf").write_text(f"""
            {"user root;" if os.geteuid() == 0 else ""}
            daemon off; worker_processes 1; pid {tmp_path}/pid; error_log {tmp_path}/errors;
            events {{}}
            http {{ log_format ranges "$uri $status $body_bytes_sent"; access_log {tmp_path}/log ranges;
                    server {{ listen {address}; root {tmp_path}; }} }}""")
        server = subprocess.Popen([program, "-p", tmp_path, "-c", tmp_path / "nginx.conf"],
                                  pass_fds=[listener.fileno()], stderr=subprocess.PIPE,
                                  env={**os.environ, "NGINX": f"{listener.fileno()};"})
        try:
            for _ in range(2):  # the second time from the cache
                assert digest(f"http://{address}/large.csv", "--no-cache") == digest(tmp_path / "large.csv")
        finally:
            server.terminate()
            server.wait()
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert {(name, status) for name, status, _ in lines[:-1]} == {("/large.csv", "206")}
    assert lines[-1] == ["/large.csv", "304", "0"]
    assert sum(int(size) for _, _, size in lines) == len(LARGE)
