"""Answers over HTTP beside ONNX Runtime served by FastAPI and uvicorn: requests a second, and their times.

    python bench/serve.py --clients 1,8,64,512 --seconds 3

resnet20   a JPEG file of 32 x 32 pixels is the body; the answer is the class
table      a row of 16 numbers as JSON with the names of columns; the answer is the class

Both servers have the same model: `quern model export` writes the peer's. The peer is one process for each thread, whose
session computes with one thread. Its workers decode with Pillow and answer from an async handler, as FastAPI's users
write it. The load is that of wrk with one thread on the same machine. A time counts only if both servers give the same
class for the body. `at 20 ms` is the highest rate of all numbers of clients with 99 % of answers within 20 ms.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import common

BOUND = 20.0  # ms
ROWS, COLUMNS, IMAGES, SIDE = 2000, 16, 8, 32
LUA = 'wrk.method = "POST"; wrk.headers["Content-Type"] = "%s"; local f = io.open("%s", "rb"); wrk.body = f:read("*a"); f:close()'


def table_model(scratch):
    """A network for rows of numbers, as a model and as ONNX, and a body."""
    import numpy as np

    values = np.random.default_rng(1).normal(size=(ROWS, COLUMNS)).astype(np.float32)
    labels = np.where(values[:, :4].sum(1) > 0, "yes", "no")
    names = [f"c{k}" for k in range(COLUMNS)]
    lines = [",".join([*names, "label"])] + [",".join([*map(str, row), label]) for row, label in zip(values, labels)]
    (scratch / "rows.csv").write_text("\n".join(lines) + "\n")
    model = scratch / "table.safetensors"
    common.call([common.quern_path(), "train", "--data", scratch / "rows.csv", "--label", "label", "--epochs", 2,
                 "--quiet", "-o", model], 2)
    body = scratch / "row.json"
    body.write_text(json.dumps([dict(zip(names, map(float, values[0])))]))
    return model, body, "application/json"


def image_model(scratch):
    """resnet20 after an epoch of few images."""
    import numpy as np
    import PIL.Image

    random = np.random.default_rng(1)
    for label in range(10):
        folder = scratch / "images" / f"class{label}"
        folder.mkdir(parents=True)
        for k in range(IMAGES):
            pixels = random.integers(0, 256, (SIDE, SIDE, 3), np.uint8) // 2 + 12 * label
            PIL.Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{k}.jpg", quality=90)
    model = scratch / "resnet20.safetensors"
    common.call([common.quern_path(), "train", "--data", scratch / "images", "--model", "resnet20", "--epochs", 1,
                 "--batch", 16, "--quiet", "-o", model], 2)
    return model, scratch / "images" / "class3" / "0.jpg", "image/jpeg"


SETTINGS = {"resnet20": image_model, "table": table_model}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def wait_for(port, process):
    for _ in range(600):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        if process.poll() is not None:
            raise common.Failed("the server ended")
        time.sleep(0.1)
    raise common.Failed("the server does not listen")


@contextlib.contextmanager
def quern_server(model, threads):
    port = free_port()
    words = [common.quern_path(), "serve", f"m={model}", "--listen", f"127.0.0.1:{port}", "--threads", threads, "--quiet",
             "--connections", 4096]
    process = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        yield f"http://127.0.0.1:{port}/v1/predict/m"
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def peer_server(model, threads):
    onnx = model.with_suffix(".onnx")
    if not onnx.exists():
        common.call([common.quern_path(), "model", "export", model, "-o", onnx], 1)
    port = free_port()
    words = [sys.executable, "-m", "uvicorn", "fastapi_onnx:app", "--host", "127.0.0.1", "--port", port, "--workers", threads,
             "--log-level", "error", "--no-access-log"]
    process = subprocess.Popen(list(map(str, words)), cwd=common.HERE / "peers",
                               env={**os.environ, "MODEL": str(onnx)}, start_new_session=True)
    try:
        wait_for(port, process)
        time.sleep(3)  # all workers have their session
        yield f"http://127.0.0.1:{port}/predict"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        process.wait()


SERVERS = {"quern": quern_server, "onnxruntime, fastapi": peer_server}


def ask(url, body, kind):
    request = urllib.request.Request(url, body.read_bytes(), {"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=60) as answer:
        told = json.load(answer)
    return str(told["predictions"][0]["prediction"] if "predictions" in told else told["prediction"])


def milliseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text).groups()
    return float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}[unit]


def load(url, body, kind, clients, seconds, scratch):
    """Requests a second, and the medians and 99 % of their times in ms, by wrk."""
    script = scratch / "load.lua"
    script.write_text(LUA % (kind, body))
    told = subprocess.run(["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--latency", "--timeout", "20s", "-s", script, url],
                          capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in told or "Socket errors" in told and not re.search(r"connect 0, read 0, write 0", told):
        raise common.Failed(f"not all requests were answered: {told[-300:]}")
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", told)[1])
    return rate, *(milliseconds(re.search(rf"^ +{part}% +(\S+)", told, re.M)[1]) for part in (50, 99))


def measure(name, model, body, kind, chosen, scratch):
    """Rows of each server and number of clients, in turns: a later round has both again."""
    found, classes = {}, {}
    for _ in range(chosen.rounds):
        for server, start in SERVERS.items():
            with start(model, chosen.threads[0]) as url:
                classes[server] = ask(url, body, kind)
                load(url, body, kind, 8, 1, scratch)  # warm
                for clients in chosen.clients:
                    found.setdefault((server, clients), []).append(load(url, body, kind, clients, chosen.seconds, scratch))
    if len(set(classes.values())) != 1:
        raise common.Failed(f"{name}: the servers give different classes: {classes}")
    return {key: [statistics.median(values) for values in zip(*rows)] for key, rows in found.items()}


def table(found, clients):
    lines = []
    for count in clients:
        ours = found["quern", count]
        for server in SERVERS:
            rate, half, most = found[server, count]
            lines.append([str(count), server, f"{rate:,.0f}", f"{half:.2f}", f"{most:.2f}", f"{ours[0] / rate:.2f}"])
    best = {server: max((found[server, count][0] for count in clients if found[server, count][2] <= BOUND), default=0)
            for server in SERVERS}
    for server, rate in best.items():
        lines.append(["at 20 ms", server, f"{rate:,.0f}", "", "", f"{best['quern'] / rate:.2f}" if rate else "-"])
    return common.table(["clients", "server", "requests/s", "p50 ms", "p99 ms", "quern's rate over it"], lines)


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[2], peers=())
    parser.add_argument("--settings", type=lambda text: text.split(","), default=list(SETTINGS))
    parser.add_argument("--clients", type=common.numbers, default=[1, 8, 64, 512])
    parser.add_argument("--seconds", type=int, default=3)
    chosen = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("bench/serve.py needs wrk (Debian: wrk)")
    facts = {**common.hardware(), "quern": common.quern_version() or sys.exit(f"there is no {common.quern_path()}")}
    sections = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for name in chosen.settings:
            found = measure(name, *SETTINGS[name](scratch), chosen, scratch)
            sections.append((name, table(found, chosen.clients), {f"{server}, {count}": {"rate": values}
                                                                  for (server, count), values in found.items()}))
            print(name, sections[-1][1], sep="\n", file=sys.stderr, flush=True)
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("Answers over HTTP", facts, sections, chosen)


if __name__ == "__main__":
    main()
