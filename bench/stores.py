#!/usr/bin/env python3
"""The first epoch from a store beside a local file, both held to the same rate.

    sudo bench/stores.py --quern build/quern --rate 200

nginx in a network namespace serves a bucket to anybody; `tc` holds its side of the connection to
--rate MB/s. The local file is read in a control group that gets as much from its disk, with an empty
file cache. Quern trains one epoch from each, in turns, with empty caches of its own; the models must
have the same bytes. Needs the rights of root, nginx, `ip` and `tc`.
"""

import argparse
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import from_disk
import numpy as np

SPACE, NEAR, FAR = "quern-store", "10.87.65.1", "10.87.65.2"

NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen {far}:80; root {folder}/store; }} }}
"""


def run(*words, check=True):
    return subprocess.run([str(word) for word in words], check=check, capture_output=True, text=True)


class Server:
    """nginx beyond a connection of so many MB/s."""

    def __init__(self, folder, rate):
        run("ip", "netns", "del", SPACE, check=False)
        run("ip", "netns", "add", SPACE)
        run("ip", "link", "add", "quern0", "type", "veth", "peer", "name", "quern1", "netns", SPACE)
        run("ip", "addr", "add", f"{NEAR}/30", "dev", "quern0")
        run("ip", "link", "set", "quern0", "up")
        inside = ["ip", "netns", "exec", SPACE]
        run(*inside, "ip", "addr", "add", f"{FAR}/30", "dev", "quern1")
        run(*inside, "ip", "link", "set", "quern1", "up")
        # Of what is sent, 1448 of 1514 bytes are the file's.
        bits = int(rate * 8_000_000 * 1514 / 1448)
        run(*inside, "tc", "qdisc", "add", "dev", "quern1", "root", "tbf", "rate", f"{bits}bit",
            "burst", "2mb", "latency", "50ms")
        settings = folder / "nginx.conf"
        settings.write_text(NGINX.format(folder=folder, far=FAR))
        self.process = subprocess.Popen([*inside, "nginx", "-c", str(settings), "-p", str(folder)])
        for _ in range(200):
            if run("curl", "-sfo", "/dev/null", f"http://{FAR}/b/small", check=False).returncode == 0:
                return
            time.sleep(0.05)
        sys.exit("nginx does not answer")

    def seconds(self):
        """Processor time of nginx so far."""
        total = 0
        for process in run("pgrep", "-P", self.process.pid, check=False).stdout.split():
            fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return total

    def close(self):
        self.process.terminate()
        self.process.wait()
        run("ip", "netns", "del", SPACE)


def make_data(folder, megabytes):
    features = 1024
    items = megabytes * 1_000_000 // (4 * features)
    draw = np.random.default_rng(1)
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (items, features))
    for at in range(0, items, 4096):
        x[at:at + 4096] = draw.random(x[at:at + 4096].shape, dtype=np.float32)
    x.flush()
    np.save(folder / "y.npy", (np.arange(items) % 10).astype(np.uint8))
    (folder / "small").write_text("small")


def train(options, data, model, cache, groups):
    """Seconds of a whole training of one epoch, and its processor time."""
    words = [options.quern, "train", "--data", f"{data}/x.npy", "--labels", f"{data}/y.npy", "--model",
             "dense 10 softmax", "--epochs", "1", "--batch", "256", "--scale", "none", "--quiet", "-o", model]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= {"QUERN_CACHE": str(cache), "AWS_ENDPOINT_URL_S3": f"http://{FAR}",
                    "AWS_EC2_METADATA_DISABLED": "true", "HOME": str(cache)}

    def enter():
        for group in groups:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(mode=0o700)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    done = subprocess.run([str(word) for word in words], env=environment, preexec_fn=enter, capture_output=True,
                          text=True, timeout=600)
    seconds = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def forget(path):
    """The file leaves the file cache of the system."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quern", default=os.environ.get("QUERN", "build/quern"))
    parser.add_argument("--rate", type=int, default=200, help="MB/s")
    parser.add_argument("--megabytes", type=int, default=1000, help="of the data")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--folder", help="on a disk; the default is a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        local, store = folder / "local", folder / "store" / "b"
        local.mkdir()
        store.mkdir(parents=True)
        make_data(local, options.megabytes)
        for path in local.iterdir():
            shutil.copy(path, store)
        os.sync()
        group = from_disk.make_groups(1 << 16, options.rate, folder)[1:]
        server = Server(folder, options.rate)
        ratios = []
        try:
            for _ in range(options.pairs):
                forget(local / "x.npy")
                near, near_cpu = train(options, local, folder / "near", folder / "cache", group)
                before = server.seconds()
                far, far_cpu = train(options, "s3://b", folder / "far", folder / "cache", [])
                served = server.seconds() - before
                if (folder / "near").read_bytes() != (folder / "far").read_bytes():
                    sys.exit("the models differ")
                ratios.append(far / near)
                print(f"local {near:.2f} s ({near_cpu:.2f} s of processors), store {far:.2f} s ({far_cpu:.2f}; "
                      f"nginx {served:.2f}), ratio {far / near:.3f}", flush=True)
        finally:
            server.close()
            for one in from_disk.make_groups(1 << 16, options.rate, folder):
                one.rmdir()
    floor = options.megabytes / options.rate
    print(f"{options.megabytes} MB at {options.rate} MB/s ({floor:.2f} s): the first epoch from the store takes "
          f"{statistics.median(ratios):.3f} times that from the file, median of {options.pairs}")


if __name__ == "__main__":
    main()
