"""Trains and predicts with two actors of Ray, on this machine.

    pip install . "ray[data]"
    python examples/ray_train.py
"""

import numpy as np
import pandas
import ray

import quern
import quern.ray

OPTIONS = {"label": "inside", "model": "dense 16 relu; dense 2 softmax", "epochs": 20, "valid": 0.2}


def main():
    points = np.random.default_rng(1).uniform(-1, 1, (4000, 2))
    rows = pandas.DataFrame({"x": points[:, 0], "y": points[:, 1], "inside": ((points**2).sum(1) < 0.6).astype(int)})
    ray.init(num_cpus=3, include_dashboard=False)
    dataset = ray.data.from_pandas([rows[:1500], rows[1500:]])
    model = quern.ray.train(dataset, ranks=2, **OPTIONS)
    found = quern.ray.predict(model, dataset).to_pandas()
    print(f"accuracy {(found['prediction'] == found['inside']).mean():.3f}")
    print("the bytes of one process:", model.digest == quern.train(rows, progress=False, **OPTIONS).digest)


if __name__ == "__main__":
    main()
