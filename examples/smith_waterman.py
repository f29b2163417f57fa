#!/usr/bin/env python3
"""Inputs and results of kernels/smith_waterman.c.

    smith_waterman.py make proteins.fasta query.fasta     a made-up database with relatives of the query
    smith_waterman.py arrays proteins.fasta query.fasta   writes letters.npy, start.npy, size.npy, query.npy
    smith_waterman.py show proteins.fasta query.fasta     the best of score.npy; draws histogram.npy: scores.svg
"""

import argparse
import math
from pathlib import Path

import numpy

LETTERS = "ARNDCQEGHILKMFPSTWYVBZX*"
# How often each of the first 20 letters occurs in proteins (Robinson and Robinson, 1991), in 100,000.
OFTEN = [7805, 5129, 4487, 5364, 1925, 4264, 6295, 7377, 2199, 5142,
         9019, 5744, 2243, 3856, 5203, 7120, 5841, 1330, 3216, 6441]
# Human globins, of UniProt.
GLOBINS = {
    "HBA_HUMAN": "MVLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHFDLSHGSAQVKGHGKKVADALTNAVAHVDDMPNALSALSDLHAHKLRVDPVNFKLL"
                 "SHCLLVTLAAHLPAEFTPAVHASLDKFLASVSTVLTSKYR",
    "HBB_HUMAN": "MVHLTPEEKSAVTALWGKVNVDEVGGEALGRLLVVYPWTQRFFESFGDLSTPDAVMGNPKVKAHGKKVLGAFSDGLAHLDNLKGTFATLSELHCDKLHVDPE"
                 "NFRLLGNVLVCVLAHHFGKEFTPPVQAAYQKVVAGVANALAHKYH",
    "MYG_HUMAN": "MGLSDGEWQLVLNVWGKVEADIPGHGQEVLIRLFKGHPETLEKFDKFKHLKSEDEMKASEDLKKHGATVLTALGGILKKKGHHEAEIKPLAQSHATKHKIPV"
                 "KYLEFISECIIQVLQSKHPGDFGADAQGAMNKALELFRKDMASNYKELGFQG"}
# Of a gap of k letters at 11 + k and BLOSUM62 (Altschul and Gish, 1996).
LAMBDA, K = 0.267, 0.041


def read_fasta(path):
    """[(name, letters)]; the name is the first word after >."""
    found = []
    for number, line in enumerate(Path(path).read_text(encoding="latin-1").splitlines(), 1):
        if line.startswith(">"):
            found.append(((line[1:].split() or [f"line {number}"])[0], []))
        elif line.strip() and not found:
            raise SystemExit(f"{path}, line {number}: letters stand before the first line with >")
        elif found:
            found[-1][1].append(line.strip())
    if not found:
        raise SystemExit(f"{path}: there is no sequence in it; each begins with a line >NAME")
    return [(name, "".join(parts)) for name, parts in found]


def write_fasta(path, sequences):
    with open(path, "w", encoding="ascii") as out:
        for name, letters in sequences:
            lines = [letters[k:k + 60] for k in range(0, len(letters), 60)]
            out.write("\n".join([f">{name}", *lines]) + "\n")


def mutated(draw, letters, kept):
    """A relative: letters are replaced, and a few short pieces are lost or put in."""
    made = [c if draw.random() < kept else LETTERS[draw.choice(20, p=numpy.array(OFTEN) / sum(OFTEN))]
            for c in letters]
    for _ in range(int(4 * (1 - kept))):
        at = int(draw.integers(5, len(made) - 5))
        if draw.random() < 0.5:
            del made[at:at + int(draw.integers(1, 6))]
        else:
            made[at:at] = list("GSAEK")[:int(draw.integers(1, 6))]
    return "".join(made)


def make(args):
    draw = numpy.random.default_rng(args.seed)
    sizes = numpy.clip(numpy.exp(draw.normal(math.log(290), 0.65, args.sequences)), 30, 5000).astype(int)
    text = numpy.frombuffer(LETTERS.encode(), "u1")
    codes = text[draw.choice(20, p=numpy.array(OFTEN) / sum(OFTEN), size=sizes.sum())]
    ends = numpy.cumsum(sizes)
    made = [(f"random{k}", codes[end - size:end].tobytes().decode()) for k, (end, size) in enumerate(zip(ends, sizes))]
    query = GLOBINS["HBA_HUMAN"]
    relatives = [(f"relative{percent}", mutated(draw, query, percent / 100)) for percent in (80, 60, 45, 35)]
    for name, letters in [*GLOBINS.items(), *relatives]:
        made.insert(int(draw.integers(len(made))), (name, letters))
    write_fasta(args.database, made)
    write_fasta(args.query, [("HBA_HUMAN", query)])


def numbers(letters):
    """The letters as numbers; those that stand for no amino acid of the table become X."""
    table = numpy.full(256, LETTERS.index("X"), "u1")
    for k, letter in enumerate(LETTERS):
        table[ord(letter)] = table[ord(letter.lower())] = k
    return table[numpy.frombuffer(letters.encode("latin-1"), "u1")]


def arrays(args):
    query = read_fasta(args.query)[0][1]
    if not 1 <= len(query) <= 512:
        raise SystemExit(f"{args.query}: the query has {len(query)} letters, and the kernel takes 1 to 512")
    database = read_fasta(args.database)
    size = numpy.array([len(letters) for _, letters in database], "int64")
    numpy.save("query.npy", numbers(query))
    numpy.save("letters.npy", numbers("".join(letters for _, letters in database)))
    numpy.save("start.npy", numpy.cumsum(size) - size)
    numpy.save("size.npy", size)


def show(args):
    from chart import COLOURS, Chart
    database = read_fasta(args.database)
    query_name, query = read_fasta(args.query)[0]
    score = numpy.load("score.npy")
    if len(score) != len(database):
        raise SystemExit(f"score.npy has {len(score)} scores, and {args.database} {len(database)} sequences")
    size = numpy.array([len(letters) for _, letters in database])
    by_chance = K * len(query) * size.sum() * numpy.exp(-LAMBDA * score)
    best = numpy.argsort(-score, kind="stable")[:args.best]
    print(f"{'sequence':12} {'letters':>7} {'score':>5} {'bits':>6}  expected by chance")
    for k in best:
        bits = (LAMBDA * score[k] - math.log(K)) / math.log(2)
        print(f"{database[k][0]:12} {size[k]:7} {score[k]:5} {bits:6.1f}  {by_chance[k]:.2g}")
    most = int(score.max())
    count = numpy.load("histogram.npy")
    # The share of sequences of each length with a score of at least s, by the statistics of BLAST.
    reach = [(-numpy.expm1(-K * len(query) * size * math.exp(-LAMBDA * s))).sum() for s in range(most + 2)]
    expected = -numpy.diff(reach)
    low, high = int(score.min()), int(2.5 * max(numpy.flatnonzero(expected > 0.8)))
    picture = Chart(f"{query_name} against {len(score):,} sequences", "score of the best local alignment",
                    (0, high), "sequences", (0.8, 2 * count.max()), log="y")
    picture.bars(range(low, high + 1), 1, count[low:high + 1], COLOURS[0], "sequences with this score")
    shown = [s for s in range(low, most + 1) if expected[s] > 0.8]
    picture.line([s + 0.5 for s in shown], expected[shown], COLOURS[1], "expected without relatives")
    for k in best:
        if by_chance[k] < 1e-3 and score[k] < high:
            picture.text(picture.x.at(score[k] + 0.5), picture.y.at(1) - 22, database[k][0], "middle")
    picture.save(args.picture)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "arrays", "show"])
    parser.add_argument("database")
    parser.add_argument("query")
    parser.add_argument("--sequences", type=int, default=20_000, help="of make; default 20000")
    parser.add_argument("--seed", type=int, default=1, help="of make; default 1")
    parser.add_argument("--best", type=int, default=10, help="of show: how many are printed; default 10")
    parser.add_argument("--picture", default="scores.svg", help="of show; default scores.svg")
    args = parser.parse_args()
    {"make": make, "arrays": arrays, "show": show}[args.what](args)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        raise SystemExit(f"{error.filename}: {error.strerror}") from None
