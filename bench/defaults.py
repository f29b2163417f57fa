"""What the defaults for tables reach, beside gradient boosting: small tables of seaborn and of
scikit-learn, split several times.

    PYTHONPATH=BUILD/python .venv/bin/python bench/defaults.py [--tables ../shared/data/tables]
        [--seeds 6] [--json FILE] [--option epochs=20 ...]

Each table is split into three quarters for training and one for the score: accuracy of classes, R2 of
numbers, at least -1. `--option` sets an option of `quern train` beside the defaults, to try another
rule. The peer is LightGBM where it is installed, else scikit-learn's HistGradientBoosting.
"""

import argparse
import json
import pathlib
import time
import warnings

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

ROOT = pathlib.Path(__file__).resolve().parent.parent
# file, label, columns to leave out, classes or not
TABLES = [("titanic.csv", "survived", ["alive"], True), ("penguins.csv", "species", [], True),
          ("iris.csv", "species", [], True), ("mpg.csv", "origin", ["name"], True),
          ("mpg.csv", "mpg", ["name"], False), ("tips.csv", "tip", [], False),
          ("tips.csv", "smoker", [], True), ("taxis.csv.gz", "tip", ["pickup", "dropoff"], False),
          ("exercise.csv", "pulse", ["Unnamed: 0", "id"], False), ("fmri.csv", "signal", [], False),
          ("car_crashes.csv", "total", ["abbrev"], False), ("flights.csv", "passengers", [], False),
          ("healthexp.csv", "Life_Expectancy", [], False)]
LARGE = [("diamonds.csv.gz", "cut", [], True), ("diamonds.csv.gz", "price", [], False)]
DRAWN = [("friedman1", datasets.make_friedman1(500, noise=1, random_state=0), False),
         ("friedman2", datasets.make_friedman2(300, noise=50, random_state=0), False),
         ("sparse", datasets.make_sparse_uncorrelated(200, 10, random_state=0), False),
         ("moons", datasets.make_moons(300, noise=0.25, random_state=0), True),
         ("hastie", datasets.make_hastie_10_2(3000, random_state=0), True),
         ("classification", datasets.make_classification(1000, 30, n_informative=8, n_classes=3,
                                                         flip_y=0.05, random_state=0), True)]


def tables(folder, large):
    """(name, whether its labels are classes, features, labels)"""
    for name, label, drop, classes in TABLES + (LARGE if large else []):
        if not (folder / name).exists():
            continue
        frame = pd.read_csv(folder / name).drop(columns=drop)
        y = frame.pop(label)
        for column in frame:
            if not pd.api.types.is_numeric_dtype(frame[column]) or frame[column].dtype == bool:
                frame[column] = frame[column].astype("category")
        y = y.astype("category").cat.codes.to_numpy() if classes else y.to_numpy(np.float64)
        yield f"{name.split('.')[0]} {label}", classes, frame, y
    for name in ("wine", "breast_cancer", "digits", "diabetes"):
        bunch = getattr(datasets, f"load_{name}")(as_frame=True)
        yield name, name != "diabetes", bunch.data, bunch.target.to_numpy()
    for name, (values, y), classes in DRAWN:
        yield name, classes, pd.DataFrame(values).rename(columns=str), (y > 0) * 1 if name == "hastie" else y


def peer(classes):
    try:
        import lightgbm
        kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
        return "LightGBM", kind(verbose=-1)
    except ImportError:
        from sklearn import ensemble
        kind = ensemble.HistGradientBoostingClassifier if classes else ensemble.HistGradientBoostingRegressor
        return "HistGradientBoosting", kind(categorical_features="from_dtype")


def encoded(frame):
    """Numbers, medians for missing ones, and one-hot columns, for every split alike."""
    numbers = frame.select_dtypes("number").columns
    return pd.get_dummies(frame.fillna(frame[numbers].median()), dtype=np.float32).to_numpy(np.float32)


def score(model, train, test, y, classes):
    begun = time.perf_counter()
    model.fit(train[0], train[1])
    spent = time.perf_counter() - begun
    told = model.predict(test)
    return float(np.mean(told == y) if classes else max(-1.0, r2_score(y, told))), spent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", type=pathlib.Path, default=ROOT.parent / "shared/data/tables")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--large", action="store_true", help="diamonds too, with 53,940 items")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    import quern  # after --help, which needs no package

    warnings.filterwarnings("ignore")
    options = dict(word.split("=", 1) for word in given.option)
    options = {k: v if not v.replace(".", "").isdigit() else float(v) if "." in v else int(v)
               for k, v in options.items()}
    rows, name_of_peer = [], peer(True)[0]
    print(f"{'table':28s} {'items':>7s} {'quern':>8s} {name_of_peer:>12s} {'seconds':>8s} {'peer s':>8s}")
    for name, classes, frame, y in tables(given.tables, given.large):
        values, found = encoded(frame), []
        for seed in range(given.seeds):
            a, b = train_test_split(np.arange(len(y)), test_size=0.25, random_state=seed,
                                    stratify=y if classes else None)
            own = (quern.Classifier if classes else quern.Regressor)(seed=seed + 1, options=options)
            found.append([*score(own, (values[a], y[a]), values[b], y[b], classes),
                          *score(peer(classes)[1], (frame.iloc[a], y[a]), frame.iloc[b], y[b], classes)])
        ours, own_time, theirs, their_time = np.mean(found, axis=0)
        rows.append({"table": name, "items": len(y), "quern": ours, "peer": theirs, "runs": found})
        print(f"{name:28s} {len(y):7d} {ours:8.4f} {theirs:12.4f} {own_time:8.3f} {their_time:8.3f}", flush=True)
    print(f"{'mean':36s} {np.mean([r['quern'] for r in rows]):8.4f} {np.mean([r['peer'] for r in rows]):12.4f}")
    if given.json:
        given.json.write_text(json.dumps({"peer": name_of_peer, "options": options, "tables": rows}, indent=1))


if __name__ == "__main__":
    main()
