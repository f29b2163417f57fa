"""Logistic regression of two classes: quern.LogisticRegression beside scikit-learn's.

    pip install . scikit-learn
    python bench/logistic.py --items 1000000 --columns 50 --rounds 3

Both fit the same float32 array with the same penalty and tolerance, with the same number of threads.
The coefficients are compared first. A time is that of `fit`, with all that it does with the arrays.
"""

import argparse
import os
import time


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--items", type=int, default=1000000)
    options.add_argument("--columns", type=int, default=50)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options.add_argument("--tol", type=float, default=1e-5)
    given = options.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(given.threads)

    import numpy as np

    try:
        import quern
        from sklearn.linear_model import LogisticRegression
    except ImportError as missing:
        print(f"SKIPPED: {missing}; bench/README.md says what this needs")
        return

    random = np.random.default_rng(1)
    values = random.normal(size=(given.items, given.columns)).astype(np.float32)
    labels = values @ random.normal(size=given.columns) + 2 * random.normal(size=given.items) > 0
    labels = labels.astype(np.int32)
    jobs = {"quern": quern.LogisticRegression(tol=given.tol, threads=given.threads, devices="cpu"),
            "scikit-learn": LogisticRegression(tol=given.tol)}
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(given.rounds):
        for name, job in jobs.items():
            start = time.perf_counter()
            job.fit(values, labels)
            best[name] = min(best[name], time.perf_counter() - start)
    ours, theirs = jobs.values()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    for name, job in jobs.items():
        print(f"{name:14}{best[name]:8.3f} s, {job.n_iter_[0]} iterations")
    print(f"{'times':14}{best['scikit-learn'] / best['quern']:8.2f}")


if __name__ == "__main__":
    main()
