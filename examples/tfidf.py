#!/usr/bin/env python3
"""Inputs and results of kernels/tfidf_*.c.

    tfidf.py docstrings documents.txt       the texts in the sources of Python's library, one a line
    tfidf.py arrays documents.txt           writes start.npy, size.npy, terms.npy, counts.npy, vocabulary.txt
    tfidf.py query "which words"            writes query.npy
    tfidf.py show documents.txt             the nearest documents of cosine.npy

DOCUMENTS is a file with a document a line, "NAME<tab>TEXT" or a text alone, or a folder with a document a
file. A word has two letters or digits or more; upper case does not matter.
"""

import argparse
import ast
import re
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import numpy

WORD = re.compile(r"\b\w\w+\b")  # as in TfidfVectorizer
MOST_TERMS = 262_144  # bins of tfidf_counts.c; of more the most frequent ones are taken


def read_documents(path):
    """[(name, text)]"""
    path = Path(path)
    if path.is_dir():
        found = [(str(f.relative_to(path)), f.read_text(encoding="utf-8", errors="replace"))
                 for f in sorted(path.rglob("*")) if f.is_file()]
    else:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        found = [line.split("\t", 1) if "\t" in line else (f"line {k}", line)
                 for k, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise SystemExit(f"{path}: there is no document in it")
    return found


def words_of(text):
    return WORD.findall(text.lower())


def docstrings(args):
    """Modules, classes and functions of the library beside this Python, by their full names."""
    library, seen = Path(sysconfig.get_path("stdlib")), set()
    with open(args.documents, "w", encoding="utf-8") as out:
        for file in sorted(library.rglob("*.py")):
            module = ".".join(file.relative_to(library).with_suffix("").parts)
            if re.search(r"(^|\.)(_|tests?\b|idlelib|lib2to3|site-packages|dist-packages)", module):
                continue
            try:
                tree = ast.parse(file.read_bytes())
            except (SyntaxError, ValueError):
                continue
            for name, node in named(tree, module):
                text = " ".join((ast.get_docstring(node) or "").split())
                if len(words_of(text)) >= 12 and text not in seen:
                    seen.add(text)
                    out.write(f"{name}\t{text}\n")


def named(node, name):
    yield name, node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from named(child, f"{name}.{child.name}")


def arrays(args):
    counted = [Counter(words_of(text)) for _, text in read_documents(args.documents)]
    having = Counter(word for counts in counted for word in counts)
    kept = sorted(sorted(having, key=lambda word: (-having[word], word))[:MOST_TERMS])
    if not kept:
        raise SystemExit(f"{args.documents}: there is no word in the documents")
    number = {word: k for k, word in enumerate(kept)}
    rows = [sorted((number[word], count) for word, count in counts.items() if word in number) for counts in counted]
    size = numpy.array([len(row) for row in rows], "int64")
    flat = numpy.array([pair for row in rows for pair in row], "int32").reshape(-1, 2)
    numpy.save("size.npy", size)
    numpy.save("start.npy", numpy.cumsum(size) - size)
    numpy.save("terms.npy", numpy.ascontiguousarray(flat[:, 0]))
    numpy.save("counts.npy", numpy.ascontiguousarray(flat[:, 1]))
    Path("vocabulary.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
    print(f"{len(rows):,} documents, {len(kept):,} terms, {len(flat):,} counts")


def query(args):
    known = Path("vocabulary.txt").read_text(encoding="utf-8").split("\n")[:-1]
    number = {word: k for k, word in enumerate(known)}
    counts = numpy.zeros(len(known), "int32")
    for word in words_of(args.documents):
        if word in number:
            counts[number[word]] += 1
        else:
            print(f"no document has the word \"{word}\"", file=sys.stderr)
    numpy.save("query.npy", counts)


def show(args):
    documents = read_documents(args.documents)
    cosine = numpy.load("cosine.npy")
    if len(cosine) != len(documents):
        raise SystemExit(f"cosine.npy has {len(cosine)} numbers, and {args.documents} {len(documents)} documents")
    for k in numpy.argsort(-cosine, kind="stable")[:args.nearest]:
        name, text = documents[k]
        print(f"{cosine[k]:.3f}  {name:34} {text[:62]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["docstrings", "arrays", "query", "show"])
    parser.add_argument("documents")
    parser.add_argument("--nearest", type=int, default=8, help="of show: how many are printed; default 8")
    args = parser.parse_args()
    {"docstrings": docstrings, "arrays": arrays, "query": query, "show": show}[args.what](args)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        raise SystemExit(f"{error.filename}: {error.strerror}") from None
