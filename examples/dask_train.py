"""Trains and predicts on the workers of a Dask cluster, here two processes of this machine.

    pip install . "dask[dataframe,distributed]" pyarrow
    python examples/dask_train.py
"""

import dask.dataframe
import numpy as np
import pandas
from distributed import Client, LocalCluster

import quern
import quern.dask

OPTIONS = {"label": "inside", "model": "dense 16 relu; dense 2 softmax", "epochs": 20, "valid": 0.2}


def main():
    points = np.random.default_rng(1).uniform(-1, 1, (4000, 2))
    rows = pandas.DataFrame({"x": points[:, 0], "y": points[:, 1], "inside": (points**2).sum(1) < 0.6})
    frame = dask.dataframe.from_pandas(rows, npartitions=4)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        model = quern.dask.train(client, frame, **OPTIONS)
        found = quern.dask.predict(model, frame).compute()
    print(f"accuracy {(found == rows['inside']).mean():.3f}, of the validation set {model.report.valid.accuracy:.3f}")
    print("the bytes of one process:", model.digest == quern.train(rows, progress=False, **OPTIONS).digest)


if __name__ == "__main__":
    main()
