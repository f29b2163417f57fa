"""Generation by GPTs beside PyTorch with a cache of keys and values: tokens a second.

    python bench/generate.py --settings gpt2,gpt --prompts 1,32

gpt2    GPT-2 of 12 layers, 12 heads, width 768, 50,257 words, the last layer with weights of its own
gpt     6 layers, 6 heads, width 384, 65 words
tiny    one layer of width 32, to see that all of them begin

The weights are those of one step of training from random ones; both programs have the same. Prompts have 16 tokens.
The most probable token is taken. A time counts only if both agree on the first token of every answer. Reading the
prompts and the first token do not count.

One prompt reads each weight once a token. So bytes of weights by time are compared with the speed at which the cores
read memory (a sum over 512 MiB by the same threads, by PyTorch).
"""

import os
import pathlib
import statistics
import sys
import tempfile

import common
import train_text

SETTINGS = {name: {**train_text.SETTINGS[name], "context": context, "batch": 1, "steps": 1}
            for name, context in (("gpt2", 256), ("gpt", 256), ("tiny", 64))}
START = 16  # tokens of a prompt


def model_file(own, scratch, threads):
    """A model after one step of training."""
    path, _ = train_text.tokens(own, scratch)
    made = scratch / "model.safetensors"
    common.call([common.quern_path(), "train", "--data", path, "--tokens", "ids", "--context", own["context"], "--task",
                 "next", "--model", train_text.model_of(own), "--optimizer", "sgd", "--lr", 0.01, "--batch", 1,
                 "--epochs", 1, "--quiet", "-o", made], threads)  # fmt: skip
    return made


def prompt_file(own, scratch, count):
    path = scratch / "prompts.txt"
    path.write_text("".join(" ".join(str((17 * i + 3 * k) % own["words"]) for k in range(START)) + "\n"
                            for i in range(count)))
    return path


def turn_of_quern(model, prompts, count, chosen, threads):
    told = common.call([common.quern_path(), "generate", model, "--prompts", prompts, "--temperature", 0, "--tokens",
                        chosen.tokens, "--threads", threads, "--batch", count, "--json"], threads)
    *answers, end = common.json_lines(told.stdout)
    rate = count * (chosen.tokens - 1) / (end["seconds"] - end["first_seconds"])
    return {"chunks": [rate], "first": [answer["tokens"][0] for answer in answers], "version": "quern"}


def contest(own, model, prompts, count, chosen, threads):
    def turn(name, rows):
        row = turn_of_quern(model, prompts, count, chosen, threads) if name == "quern" else common.peer(
            "torch_generate.py", "generate", threads, model=model, prompts=prompts, tokens=chosen.tokens,
            heads=own["heads"])
        if "skip" not in row and row["first"] != rows.get("quern", row).get("first"):
            raise common.Failed("the first tokens differ from those of Quern")
        return row

    return common.contest(["quern", *(peer for peer in ("torch",) if peer in chosen.peers)], chosen.rounds, turn)


def table(rows, weights, count):
    head = ["", "tokens/s", "spread", "quern's rate over it", "GB/s of weights"]
    lines, ours = [], rows["quern"]["chunks"] and statistics.median(rows["quern"]["chunks"])
    for name, row in rows.items():
        if not row["chunks"]:
            lines.append([name, *"----"])
            continue
        rate = statistics.median(row["chunks"])
        lines.append([name, f"{rate:,.1f}", common.spread(row["chunks"]), f"{ours / rate:.2f}" if ours else "-",
                      f"{4e-9 * weights * rate / count:.1f}"])
    return common.table(head, lines)


READ = """
import sys, time, torch
torch.set_num_threads(int(sys.argv[1]))
values, times = torch.ones(1 << 27), []
for _ in range(9):
    begun = time.perf_counter()
    values.sum()
    times.append(time.perf_counter() - begun)
print(4e-9 * len(values) / sorted(times)[4])
"""


def read_speed(threads):
    try:
        return f"{float(common.call([sys.executable, '-c', READ, threads], threads).stdout):.1f}"
    except (common.Failed, ValueError):
        return "not measured"


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[2], peers=("torch",))
    parser.add_argument("--settings", type=lambda text: text.split(","), default=["gpt2", "gpt"])
    parser.add_argument("--prompts", type=common.numbers, default=[1, 32], help="prompts at once")
    parser.add_argument("--tokens", type=int, default=24, help="timed tokens of an answer")
    chosen = parser.parse_args()
    facts = {**common.hardware(), "quern": common.quern_version() or sys.exit(f"there is no {common.quern_path()}")}
    sections = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for name in chosen.settings:
            own = SETTINGS[name]
            weights, _ = train_text.work_of(own)
            facts[name] = f"{weights / 1e6:.1f} M weights of products, prompts of {START} tokens"
            model = model_file(own, scratch, max(chosen.threads))
            for threads in chosen.threads:
                facts[f"read_GB/s, {threads} threads"] = read_speed(threads)
                for count in chosen.prompts:
                    rows = contest(own, model, prompt_file(own, scratch, count), count, chosen, threads)
                    heading = f"{name}, {count} prompts at once, {threads} threads"
                    sections.append((heading, table(rows, weights, count), rows))
                    print(heading, sections[-1][1], sep="\n", file=sys.stderr, flush=True)
    facts["load_at_end"] = round(os.getloadavg()[0], 2)
    common.publish("Generation", facts, sections, chosen)
    every = [row for _, _, rows in sections for row in rows.values()]
    sys.exit(any("FAILED" in row.get("skip", "") for row in every))


if __name__ == "__main__":
    main()
