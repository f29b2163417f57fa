"""`quern serve` at full load for a time: whether its memory grows, and whether each answer stays the same.

    python bench/serve_soak.py --minutes 60

One server has a table model, resnet20 and a small GPT. wrk asks the first two with 64 connections each; 8 clients read
streams of tokens, and every tenth of their streams is left after some events. Bodies that are not valid are among the
requests, and the table's model is written again every 10 seconds, so the server loads it. A checker asks each model for
a fixed body: an answer whose bytes differ from the first one ends the run. Each line gives the minutes, the memory of
the process, and the requests so far.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import common
import serve
from generate import SETTINGS, model_file
from serve_text import memory, stream

CONNECTIONS, STREAMS, TOKENS, LINE = 64, 8, 32, 60.0
BAD = [b"", b"[", b"[]", b"\xff\xd8\xff\xe0 not a picture", b'[{"c0": "x"}]', b"{}" * 5000]


class Soak:
    """What the threads of the load share."""

    def __init__(self, port, own):
        self.port, self.own = port, own
        self.ends, self.lock, self.failed = threading.Event(), threading.Lock(), []
        self.counts = dict.fromkeys(("checked", "bad", "streams", "left", "reloads"), 0)

    def count(self, name):
        with self.lock:
            self.counts[name] += 1

    def run(self, work, *words):
        """Calls the function again and again; its first failure ends the run."""
        turn = 0
        while not self.ends.is_set():
            try:
                work(self, turn, *words)
            except Exception as failure:  # of any kind: it belongs to the report
                self.failed.append(f"{work.__name__}: {failure!r}")
                self.ends.set()
            turn += 1

    def ask(self, name, body, kind):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(connection):
            connection.request("POST", f"/v1/predict/{name}", body, {"Content-Type": kind})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers.get("Quern-Answer-Digest")


def check(soak, _, bodies, first):
    for name, (body, kind) in bodies.items():
        status, text, digest = soak.ask(name, body, kind)
        if status == 429:
            continue
        answer = (status, text, digest)
        if status != 200 or first.setdefault(name, answer) != answer:
            raise common.Failed(f"{name}: {answer} where {first.get(name)} was the first answer")
        soak.count("checked")


def misuse(soak, turn):
    status, text, _ = soak.ask(("table", "resnet20")[turn % 2], BAD[turn % len(BAD)], "application/json")
    if status not in (400, 413, 415, 422, 429):
        raise common.Failed(f"a bad body was answered with {status}: {text[:200]!r}")
    soak.count("bad")


def read_stream(soak, turn, index, first):
    if turn % 10 == 9:
        connection = http.client.HTTPConnection("127.0.0.1", soak.port)
        connection.request("POST", "/v1/completions", json.dumps({"model": "gpt", "prompt": [1, 2, 3], "stream": True,
                                                                  "max_tokens": 200, "temperature": 0}))
        connection.getresponse().readline()
        connection.close()
        soak.count("left")
        return
    events = len(stream(soak.port, soak.own, index, TOKENS, model="gpt"))
    if first.setdefault(index, events) != events:
        raise common.Failed(f"stream {index} had {events} events for {first[index]}")
    soak.count("streams")


def reload(soak, _, model):
    if soak.ends.wait(10):
        return
    fresh = model.with_suffix(".fresh")
    shutil.copy(model, fresh)
    os.replace(fresh, model)
    soak.count("reloads")


def start_wrk(port, name, body, kind, seconds, scratch):
    script = scratch / f"{name}.lua"
    script.write_text(serve.LUA % (kind, body))
    return subprocess.Popen(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "60s", "-s", script,
                             f"http://127.0.0.1:{port}/v1/predict/{name}"], stdout=subprocess.PIPE, text=True)


def told_by(load):
    text = load.communicate()[0]
    requests, bad, errors = (re.search(sought, text) for sought in (r"(\d+) requests in", r"3xx responses: (\d+)",
                                                                    r"Socket errors: .*"))
    return f"{requests[1]} requests, {bad[1] if bad else 0} refused{', ' + errors[0] if errors else ''}"


def soak_server(process, soak, models, seconds, scratch):
    bodies = {name: (body.read_bytes(), kind) for name, (_, body, kind) in models.items()}
    works = [(check, bodies, {}), (misuse,), (reload, models["table"][0])]
    first = {}
    works += [(read_stream, index, first) for index in range(STREAMS)]
    threads = [threading.Thread(target=soak.run, args=work) for work in works]
    loads = {name: start_wrk(soak.port, name, body, kind, seconds, scratch) for name, (_, body, kind) in models.items()}
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    while not soak.ends.wait(min(LINE, max(0.1, begun + seconds - time.monotonic()))):
        if process.poll() is not None:
            soak.failed.append(f"the server ended with {process.returncode}")
        print(f"{(time.monotonic() - begun) / 60:5.1f} min  {memory(process):7.1f} MiB  {soak.counts}", flush=True)
        if time.monotonic() - begun >= seconds or process.poll() is not None:
            soak.ends.set()
    for thread in threads:
        thread.join()
    for name, load in loads.items():
        if soak.failed:
            load.kill()
        else:
            print(f"wrk, {name}: {told_by(load)}", flush=True)
    print(f"at the end, without load: {memory(process):.1f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("bench/serve_soak.py needs wrk (Debian: wrk)")
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        models = {name: make(scratch) for name, make in serve.SETTINGS.items()}
        text = model_file(SETTINGS["tiny"], scratch, chosen.threads)
        words = [common.quern_path(), "serve", *(f"{name}={model}" for name, (model, _, _) in models.items()), f"gpt={text}",
                 "--listen", "127.0.0.1:0", "--threads", chosen.threads]
        with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True) as process:
            try:
                soak = Soak(int(process.stdout.readline().rsplit(":", 1)[1]), SETTINGS["tiny"])
                soak_server(process, soak, models, round(60 * chosen.minutes), scratch)
            finally:
                process.terminate()
        if process.returncode != 0:
            soak.failed.append(f"the server ended with {process.returncode}")
    sys.exit("\n".join(soak.failed) or None)


if __name__ == "__main__":
    main()
