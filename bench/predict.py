"""Prediction by Quern and its peers: items/s at a batch size, and the cold start.

    python bench/predict.py --threads 1,2 --markdown predict.md --json predict.json

Two tables. The throughput is for 60,000 images in memory. The peers hold them as float32 already
scaled, and their clock stops at the classes; Quern holds the bytes, and the seconds that it reports
include the written CSV, which is to its disadvantage. The cold start is the wall time of a
whole process that reads a model and 10,000 images from files and ends when the last class is
written: the program's start, imports, compilation, everything. The files are in the page cache for
all of them. A time counts only when the classes written are right for most images.
"""

import os
import pathlib
import statistics
import sys
import tempfile

import common

LOWEST_ACCURACY = 0.80


def saved_model(name, files, threads, scratch):
    """Train one epoch and save the model in the contender's own form: {"model": path} or a skip."""
    path = scratch / ("quern.safetensors" if name == "quern" else f"{name}.model")
    try:
        if name == "quern":
            common.call(common.training(files, 128, threads, 1, path), threads)
            return {"model": path}
        row = common.peer(
            common.PEERS[name], "save", threads, model=path, batch=128,
            images=files["train-images"], labels=files["train-labels"],
        )  # fmt: skip
        return row if "skip" in row else {"model": path}
    except common.Failed as failure:
        return {"skip": f"FAILED: {failure}"}


def proved(out, labels):
    accuracy = common.accuracy(out, labels)
    if accuracy < LOWEST_ACCURACY:
        raise common.Failed(f"only {accuracy:.1%} of the predictions are right")
    return accuracy


def speed(name, files, threads, model, batch, scratch):
    """One turn of the throughput: (rates, accuracy)."""
    if name == "quern":
        out = scratch / "speed.csv"
        command = common.predicting(files, threads, model, out, "train")
        rows = common.json_lines(common.call(command, threads).stdout)
        done = [row for row in rows if row.get("event") == "predictions"]
        if not done:
            raise common.Failed("quern predict --json printed no line about its predictions")
        rate = done[0]["items"] / done[0]["seconds"]
        return [rate], proved(out, files["train-labels"])
    row = common.peer(
        common.PEERS[name], "speed", threads, model=model, batch=batch,
        images=files["train-images"], labels=files["train-labels"],
    )  # fmt: skip
    if row["accuracy"] < LOWEST_ACCURACY:
        raise common.Failed(f"only {row['accuracy']:.1%} of the predictions are right")
    return row["chunks"], row["accuracy"]


def cold(name, files, threads, model, batch, scratch):
    """One cold start: ([seconds], accuracy)."""
    out, clock = scratch / "cold.csv", []
    out.unlink(missing_ok=True)
    if name == "quern":
        common.call(common.predicting(files, threads, model, out), threads, clock)
    else:
        common.peer(
            common.PEERS[name], "predict", threads, clock, model=model, batch=batch,
            images=files["test-images"], out=out,
        )  # fmt: skip
    return clock, proved(out, files["test-labels"])


def contest(turn, saved, files, threads, chosen, scratch):
    """Rounds of one kind of turn over all contenders: {name: chunks and accuracy, or skip}."""
    rows = {name: {"chunks": [], **{k: v for k, v in s.items() if k == "skip"}}
            for name, s in saved.items()}  # fmt: skip
    for _ in range(chosen.rounds):
        for name, row in rows.items():
            if "skip" in row:
                continue
            try:
                model = saved[name]["model"]
                values, row["accuracy"] = turn(name, files, threads, model, chosen.batch, scratch)
                row["chunks"] += values
            except common.Failed as failure:
                row["skip"] = f"FAILED: {failure}"
                print(f"{name}: {row['skip']}", file=sys.stderr)
    return rows


def gflops(rate):
    return f"{rate * common.PREDICT_FLOP / 1e9:.1f}"


def section(heading, unit, rows, faster, extra):
    """One section of the report; `faster` is min or max and picks the best peer."""
    good = {name: row for name, row in rows.items() if "skip" not in row}
    medians = {name: statistics.median(row["chunks"]) for name, row in good.items()}
    peers = [value for name, value in medians.items() if name != "quern"]
    best = faster(peers) if peers else None
    lines = []
    for name, row in rows.items():
        if name not in good:
            lines.append([name, "-", "-", "-", "-", row["skip"].splitlines()[0]])
            continue
        value = medians[name]
        shown = f"{value:,.0f}" if value > 100 else f"{value:.3f}"
        ratio = f"{value / best:.2f}" if best else "-"
        noise = common.spread(row["chunks"])
        lines.append([name, shown, noise, ratio, extra(value), f"accuracy {row['accuracy']:.1%}"])
    head = ["", unit, "spread", "of best peer", "GFLOP/s", "verified by"]
    return heading, common.table(head, lines), rows


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[2], rounds=5)
    parser.add_argument("--batch", type=int, default=1024, help="images in one prediction")
    chosen = parser.parse_args()
    facts = common.hardware()
    facts["quern"] = common.quern_version() or "SKIPPED: no " + str(common.quern_path())
    names = (["quern"] if common.quern_version() else []) + chosen.peers
    sections = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        files, facts["data"] = common.data(scratch)
        most = max(chosen.threads)
        saved = {name: saved_model(name, files, most, scratch) for name in names}
        for threads in chosen.threads:
            where = f"{threads} thread{'s' if threads > 1 else ''}"
            rows = contest(speed, saved, files, threads, chosen, scratch)
            title = f"Throughput, batch {chosen.batch}, {where}"
            sections.append(section(title, "items/s", rows, max, gflops))
            rows = contest(cold, saved, files, threads, chosen, scratch)
            title = f"Cold start to 10,000 predictions written, {where}"
            sections.append(section(title, "seconds", rows, min, lambda _: "-"))
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("Prediction", facts, sections, chosen)
    every = [row for _, _, rows in sections for row in rows.values()]
    failed = any("FAILED" in row.get("skip", "") for row in every)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
