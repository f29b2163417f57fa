"""Reviews classified by the words of a column of texts, beside scikit-learn: accuracy and time of both.

    python bench/texts.py [--program build/quern] [--data ../shared/data/text] [--rounds 5] [--features words,chars]

The peer is TfidfVectorizer of words and pairs with LogisticRegression of C = 10. `--features` chooses other features
of both: words, chars, chars-across, or several. The rounds alternate
between both programs. Of each the whole process is timed, from the compressed file to the accuracy of
the test set; of scikit-learn also the part after its imports. Times are medians.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEER = """
import csv, gzip, sys, time
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
begun = time.perf_counter()
sets = [list(csv.reader(gzip.open(path, "rt", encoding="utf-8")))[1:] for path in sys.argv[1:3]]
(x, y), (u, v) = (zip(*rows) for rows in sets)
vectors = {"words": TfidfVectorizer(ngram_range=(1, 2)),
           "chars": TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5)),
           "chars-across": TfidfVectorizer(analyzer="char", ngram_range=(3, 5))}
features = make_union(*(vectors[word] for word in sys.argv[3].split(",")))
found = make_pipeline(features, LogisticRegression(C=10, max_iter=1000)).fit(x, y)
print(f"test accuracy {100 * found.score(u, v):.2f} after {time.perf_counter() - begun:.3f}")
"""


def run(command):
    begun = time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - begun
    return seconds, re.search(r"test accuracy ([0-9.]+)(?:.* after ([0-9.]+))?", done.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--program", default=ROOT / "build" / "quern")
    p.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared" / "data" / "text")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--features", default="words")
    args = p.parse_args()
    train, test = args.data / "reviews-train.csv.gz", args.data / "reviews-test.csv.gz"
    ours, theirs, inner = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.rounds):
            seconds, own = run([args.program, "train", "--data", train, "--test", test, "--label", "sentiment",
                                "--text-features", args.features,
                                "-o", pathlib.Path(folder) / "m.st"])
            ours.append(seconds)
            seconds, peer = run([sys.executable, "-c", PEER, train, test, args.features])
            theirs.append(seconds)
            inner.append(float(peer[2]))
    print(f"quern         {own[1]} %  {statistics.median(ours):.2f} s")
    print(f"scikit-learn  {peer[1]} %  {statistics.median(theirs):.2f} s, of which {statistics.median(inner):.2f} s "
          "after its imports")


if __name__ == "__main__":
    main()
