"""A served language model: tokens a second of 1 and of 8 streams at once, and memory.

    python bench/serve_text.py --settings gpt2 --streams 1,8

The settings are those of bench/generate.py. Each stream is a client of `quern serve` that reads server-sent events. A
time begins with the requests, so it has the prompts' reading, and ends with the last event. Afterwards a prompt
of a whole context joins streams: the longest time between two events of a stream tells how long it stops the others.
"""

import concurrent.futures
import http.client
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import common
from generate import SETTINGS, START, model_file


def stream(port, own, index, count, tokens=START, model="m"):
    """The times of the events."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    prompt = [(17 * index + 3 * k) % own["words"] for k in range(tokens)]
    connection.request("POST", "/v1/completions", json.dumps({"model": model, "prompt": prompt, "max_tokens": count,
                                                              "temperature": 0, "stream": True}))
    answer, times = connection.getresponse(), []
    if answer.status != 200:
        raise common.Failed(answer.read().decode())
    while line := answer.readline():
        if line.startswith(b"data: {"):
            times.append(time.perf_counter())
    connection.close()
    return times


def rate(port, own, streams, count):
    """Tokens a second of all streams, from the first request to the last event."""
    begun = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(streams) as pool:
        every = list(pool.map(lambda i: stream(port, own, i, count), range(streams)))
    return sum(map(len, every)) / (max(times[-1] for times in every) - begun)


def longest_gap(port, own, streams, count, long):
    """Milliseconds between two events of a stream, while a prompt of `long` tokens is read."""
    with concurrent.futures.ThreadPoolExecutor(streams + 1) as pool:
        every = [pool.submit(stream, port, own, i, count) for i in range(streams)]
        if long:
            pool.submit(stream, port, own, 99, 1, long).result()
        gaps = [b - a for times in every for a, b in zip(times.result(), times.result()[1:], strict=False)]
    return 1e3 * max(gaps), 1e3 * statistics.median(gaps)


def memory(process):
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def measure(own, model, chosen, threads):
    words = [common.quern_path(), "serve", f"m={model}", "--listen", "127.0.0.1:0", "--threads", str(threads)]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True) as process:
        try:
            port = int(process.stdout.readline().rsplit(":", 1)[1])
            stream(port, own, 0, 2)
            rows, before = [], memory(process)
            for _ in range(chosen.rounds):
                rows.append([rate(port, own, streams, chosen.tokens) for streams in chosen.streams])
            gaps = [longest_gap(port, own, 4, chosen.tokens, long) for long in (0, own["context"] - 2)]
            return rows, gaps, (before, memory(process))
        finally:
            process.terminate()


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[2], peers=())
    parser.add_argument("--settings", type=lambda text: text.split(","), default=["gpt2"])
    parser.add_argument("--streams", type=common.numbers, default=[1, 8], help="streams at once")
    parser.add_argument("--tokens", type=int, default=48, help="tokens of an answer")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.settings:
            own = SETTINGS[name]
            model = model_file(own, pathlib.Path(folder), max(chosen.threads))
            for threads in chosen.threads:
                rows, gaps, resident = measure(own, model, chosen, threads)
                medians = [statistics.median(row[i] for row in rows) for i in range(len(chosen.streams))]
                print(f"{name}, {threads} threads")
                for streams, value in zip(chosen.streams, medians, strict=True):
                    print(f"  {streams} streams: {value:,.1f} tokens/s, {value / medians[0]:.2f} times those of the first row")
                print(f"  longest and median gap of 4 streams: {gaps[0][0]:.0f} and {gaps[0][1]:.0f} ms; while a prompt of "
                      f"{own['context'] - 2} tokens joins: {gaps[1][0]:.0f} and {gaps[1][1]:.0f} ms")
                print(f"  memory: {resident[0]:.0f} MiB before, {resident[1]:.0f} MiB after", flush=True)


if __name__ == "__main__":
    try:
        main()
    except common.Failed as failed:
        sys.exit(str(failed))
