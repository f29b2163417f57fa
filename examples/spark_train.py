"""Trains and predicts with Spark's ML library, here on two cores of this machine.

    pip install . "pyspark[sql]"
    python examples/spark_train.py
"""

import os
import sys

import numpy as np
import pandas
from pyspark.ml import Pipeline
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession

from quern.spark import Classifier


def main():
    points = np.random.default_rng(1).uniform(-1, 1, (4000, 2))
    rows = pandas.DataFrame({"x": points[:, 0], "y": points[:, 1], "inside": ((points**2).sum(1) < 0.6) * 1.0})
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # tasks have the packages of this program
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    frame = spark.createDataFrame(rows)
    steps = [VectorAssembler(inputCols=["x", "y"], outputCol="features"),
             Classifier(labelCol="inside", model="dense 16 relu; dense 2 softmax", epochs=20, valid=0.2)]
    model = Pipeline(stages=steps).fit(frame)
    found = model.transform(frame)
    right = found.filter("prediction = inside").count() / found.count()
    print(f"accuracy {right:.3f}, of the validation set {model.stages[1].report.valid.accuracy:.3f}")
    spark.stop()


if __name__ == "__main__":
    main()
