"""Scaling by extremes and quartiles, by both programs (docs/exactness.md 17.16)."""

import numpy as np
import pytest

from test_oracle import options, scale, sets, train  # noqa: F401

JOBS = {
    "float-minmax": (
        "csv-f32",
        {"--scale": "minmax", "--model": "dense 6 tanh; dense 4 softmax", "--loss": "cross-entropy", "--lr": "0.2",
         "--label": "kind", "--valid": "0.25"},
    ),
    "bytes-robust": (
        "idx",
        {"--scale": "robust", "--model": "dense 10 softmax", "--loss": "cross-entropy", "--lr": "0.01"},
    ),
    "typed-robust": (
        "csv-typed",
        {"--scale": "robust", "--model": "dense 6 tanh; dense 4 softmax", "--loss": "cross-entropy", "--lr": "0.05",
         "--label": "kind", "--missing": "mean", "--weight": "size", "--valid": "0.2"},
    ),
}


@pytest.mark.parametrize("job", JOBS)
def test_model_files_are_the_same(job, sets, tmp_path):  # noqa: F811
    train(options(sets, JOBS[job]), tmp_path / "model.st")


def test_scaling_by_order():
    """Quartiles are NumPy's; constant features and those with equal quartiles have their own numbers."""
    table = np.random.default_rng(3).standard_normal((23, 4)).astype(np.float32)
    table[:, 1] = 7
    table[:, 2] = 0
    table[3, 2] = -5
    weights = np.ones(23, np.float32)
    weights[[0, 5]] = 0
    for own, rows in ((None, table), (weights, table[weights > 0])):
        low, middle, high = np.percentile(rows.astype(np.float64), [25, 50, 75], axis=0)
        mean, deviation, inverse = scale.by_order(table, "robust", own)
        assert np.allclose(mean, middle, rtol=1e-7) and np.allclose(deviation[[0, 3]], (high - low)[[0, 3]], rtol=1e-7)
        assert deviation[1] == 0 and inverse[1] == 0 and deviation[2] == 1 and mean[2] == 0
        mean, deviation, _ = scale.by_order(table, "minmax", own)
        assert np.array_equal(mean, rows.min(0)) and np.allclose(deviation, np.ptp(rows.astype(float), axis=0), rtol=1e-7)
        x = scale.inputs(rows, "minmax", scale.by_order(table, "minmax", own))
        assert x.min() == 0 and x.max() == 1 and not x[:, 1].any()
