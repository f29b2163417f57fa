"""Tokens: a tokenizer by Quern beside the package tokenizers, on the same text with the same threads.

    pip install . tokenizers
    python bench/tokens.py corpus.txt --tokenizer tokenizer.json --megabytes 100 --rounds 3
    python bench/tokens.py corpus.txt --train 8000 --megabytes 20

Without --tokenizer a tokenizer with --train tokens is learned first, by both, and compared. Each
contender is a process of its own, held to as many cores as it has threads. Quern gets the whole text.
tokenizers gets it in parts of about 10,000 characters, since it takes much longer for one large text:
with encode_batch_fast, which leaves the places of tokens out. The parts are cut before a space between
two letters of ASCII, where no word is cut, so the tokens are those of the whole text: all are compared.
Times are those of encoding alone, without reading the text.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

PART = 10000


def read(path, megabytes):
    """The beginning of a text, repeated where it is shorter."""
    with open(path, "rb") as file:
        text = file.read(megabytes * 1000000).decode("utf-8", "ignore")
    return (text * (1 + megabytes * 1000000 // max(1, len(text.encode()))))[:megabytes * 1000000]


def parts_of(text):
    """The text in parts of PART characters or more."""
    place, begin, parts = re.compile("(?<=[A-Za-z]) (?=[A-Za-z])"), 0, []
    while (found := place.search(text, begin + PART)):
        parts.append(text[begin:found.start()])
        begin = found.start()
    return [*parts, text[begin:]]


def contender(name, tokenizer, path, megabytes, threads, output):
    """One measurement, in this process: prints seconds and tokens. All numbers go to `output`."""
    import numpy as np

    text = read(path, megabytes)
    size = len(text.encode())
    if name == "quern":
        import quern

        whole, t = text.encode(), quern.Tokenizer(f"file:{tokenizer}", threads=threads)
        t.encode(whole[:100000])
        start = time.perf_counter()
        numbers = t.encode(whole)
        seconds = time.perf_counter() - start
    else:
        from tokenizers import Tokenizer

        t = Tokenizer.from_file(tokenizer)
        parts = parts_of(text)
        t.encode_batch_fast(parts[:10], add_special_tokens=False)
        start = time.perf_counter()
        encoded = t.encode_batch_fast(parts, add_special_tokens=False)
        seconds = time.perf_counter() - start
        numbers = np.concatenate([np.array(part.ids, np.uint32) for part in encoded])
    np.save(output, numbers)
    print(json.dumps({"seconds": seconds, "tokens": len(numbers), "bytes": size}))


def train(name, path, megabytes, tokens, threads):
    """One training, in this process: prints seconds and the vocabulary."""
    text = read(path, megabytes)
    start = time.perf_counter()
    if name == "quern":
        import quern

        made = quern.Tokenizer.train_bpe(text.encode(), tokens, threads=threads).json
    else:
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        t = Tokenizer(models.BPE())
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        t.train_from_iterator(parts_of(text), trainers.BpeTrainer(
            vocab_size=tokens, min_frequency=2, special_tokens=["<|endoftext|>"], show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        made = t.to_str()
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "model": json.loads(made)["model"]["vocab"], "json": made}))


def held(threads, *words):
    """Runs this file again on so many cores."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    env = {**os.environ, "RAYON_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true"}
    done = subprocess.run([sys.executable, __file__, *map(str, words)], env=env, stdout=subprocess.PIPE, text=True,
                          check=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    return json.loads(done.stdout)


def compare(outputs):
    """Both gave the same numbers."""
    import numpy as np

    ours, theirs = (np.load(path, mmap_mode="r") for path in outputs)
    assert np.array_equal(ours, theirs)
    print(f"all {len(ours)} tokens are equal", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--tokenizer")
    parser.add_argument("--train", type=int, default=8000)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contender", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    given = parser.parse_args()
    threads = [int(word) for word in given.threads.split(",")]
    if given.contender:
        name, job = given.contender
        if job == "train":
            return train(name, given.corpus, given.megabytes, given.train, threads[0])
        return contender(name, given.tokenizer, given.corpus, given.megabytes, threads[0], given.output)
    common = [given.corpus, "--megabytes", given.megabytes, "--train", given.train]
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = given.tokenizer or os.path.join(folder, "t.json")
        if not given.tokenizer:
            made = {name: held(threads[-1], *common, "--threads", threads[-1], "--contender", name, "train")
                    for name in ("quern", "tokenizers")}
            assert made["quern"]["model"] == made["tokenizers"]["model"]
            print(f"learning {given.train} tokens, {threads[-1]} threads: quern {made['quern']['seconds']:.2f} s, "
                  f"tokenizers {made['tokenizers']['seconds']:.2f} s", flush=True)
            with open(tokenizer, "w") as file:
                file.write(made["quern"]["json"])
        outputs = {name: os.path.join(folder, f"{name}.npy") for name in ("quern", "tokenizers")}
        for count in threads:
            speeds = {"quern": [], "tokenizers": []}
            for _ in range(given.rounds):
                for name, found in speeds.items():
                    one = held(count, *common, "--tokenizer", tokenizer, "--threads", count, "--output",
                               outputs[name], "--contender", name, "encode")
                    found.append(one["bytes"] / one["seconds"] / 1e6)
            ours, theirs = (statistics.median(found) for found in speeds.values())
            print(f"{count} threads: quern {ours:.1f} MB/s, tokenizers {theirs:.1f} MB/s, {ours / theirs:.1f} times",
                  flush=True)
            compare(outputs.values())
    return None


if __name__ == "__main__":
    main()
