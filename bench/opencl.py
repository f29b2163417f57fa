"""Training on an OpenCL device that is a CPU beside Quern's own CPU worker on the same cores.

    python bench/opencl.py --threads 2 --batches 32,128,1024 --markdown opencl.md --json opencl.json

784-500-10, tanh, softmax cross-entropy, SGD with momentum, on MNIST as it is and on MNIST without
zeros (81 % of its pixels are zero, and the CPU worker leaves them out of the first layer). Both
write their model first, and only equal bytes are timed. The contenders take turns, each time in a
fresh process held to its cores; medians over all epochs but the first of all rounds are reported.
`--device` names another device than opencl:0; on a busy machine look at the best epoch as well.
"""

import hashlib
import os
import pathlib
import statistics
import sys
import tempfile

import common


def turn(files, batch, threads, device, chosen, scratch):
    """One process: (items per second of every epoch after the first, digest of the model)."""
    model = scratch / "model.safetensors"
    extra = ["--devices", device]
    command = common.training(files, batch, threads, chosen.epochs + 1, model, extra)
    rows = common.json_lines(common.call(command, threads).stdout)
    rates = [row["items_per_s"] for row in rows if row.get("event") == "epoch"]
    if len(rates) != chosen.epochs + 1:
        raise common.Failed(f"{device}: {len(rates)} epochs reported, not {chosen.epochs + 1}")
    return rates[1:], hashlib.sha256(model.read_bytes()).hexdigest()


def contest(files, batch, threads, chosen, scratch):
    """All rounds: {device: rates}, once every model was seen to have the same bytes."""
    rates, digests = {"cpu": [], chosen.device: []}, set()
    for _ in range(chosen.rounds):
        for device in rates:
            some, digest = turn(files, batch, threads, device, chosen, scratch)
            digests.add(digest)
            rates[device] += some
            if len(digests) != 1:
                raise common.Failed(f"batch {batch}: the model of {device} has other bytes")
    return rates, digests.pop()


HEAD = ["", "items/s", "spread", "of cpu", "best epoch", "of cpu", "GFLOP/s", "of peak"]


def lines(rates, peak):
    own = rates["cpu"]
    for device, values in rates.items():
        rate = statistics.median(values)
        gflops = rate * common.TRAIN_FLOP / 1e9
        yield [
            device,
            f"{rate:,.0f}",
            common.spread(values),
            f"{rate / statistics.median(own):.2f}",
            f"{max(values):,.0f}",
            f"{max(values) / max(own):.2f}",
            f"{gflops:.1f}",
            f"{gflops / peak:.0%}" if peak else "-",
        ]


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[len(common.allowed_cores())])
    parser.add_argument("--batches", type=common.numbers, default=[32, 128, 1024])
    parser.add_argument("--epochs", type=int, default=3, help="timed epochs of one turn")
    parser.add_argument("--device", default="opencl:0")
    chosen = parser.parse_args()
    facts = common.hardware()
    facts["quern"] = common.quern_version() or sys.exit(f"no {common.quern_path()}: build it first")
    peaks = common.peak(common.quern_path().parent / "bench/peak", chosen.threads)
    facts["peak_GFLOP/s"] = ", ".join(f"{t}: {peaks[t]:.0f}" for t in peaks) or "not measured"
    facts["flop_an_item"] = f"{common.TRAIN_FLOP:,}"
    facts["devices"] = f"cpu and {chosen.device}, in turn, {chosen.rounds} rounds"
    sections, failed = [], False
    with tempfile.TemporaryDirectory() as folder:
        for data in ("as it is", "without zeros"):
            scratch = pathlib.Path(folder) / data.replace(" ", "-")
            scratch.mkdir()
            files, facts["data"] = common.data(scratch)
            if data == "without zeros":
                common.fill_zeros(files)
            for threads in chosen.threads:
                # PoCL's names, old and new, for the cores that it takes.
                for name in ("POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT"):
                    os.environ[name] = str(threads)
                for batch in chosen.batches:
                    heading = f"data {data}, batch {batch}, threads {threads}"
                    try:
                        rates, digest = contest(files, batch, threads, chosen, scratch)
                    except common.Failed as failure:
                        failed = True
                        sections.append((heading, f"FAILED: {failure}", {}))
                    else:
                        text = common.table(HEAD, lines(rates, peaks.get(threads)))
                        text += f"\n\nBoth wrote {digest}."
                        sections.append((heading, text, rates))
                    print(sections[-1][0], sections[-1][1], sep="\n", file=sys.stderr, flush=True)
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("OpenCL on the CPU's own cores", facts, sections, chosen)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
