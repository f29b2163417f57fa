from typing import Any, List

from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param
from pyspark.ml.param.shared import (HasFeaturesCol, HasInputCols, HasLabelCol, HasPredictionCol,
                                     HasProbabilityCol, HasWeightCol)
from pyspark.ml.util import MLReadable, MLReader, MLWritable, MLWriter

import quern

OPTIONS: List[str]

class _Trained(HasFeaturesCol, HasInputCols, HasPredictionCol, HasLabelCol, HasWeightCol):
    numWorkers: Param[int]
    folder: Param[str]
    copies: Param[int]
    part_cache: Param[int]
    def __getattr__(self, option: str) -> Param[Any]: ...

class _Model(_Trained, Model, MLReadable[Any], MLWritable):
    history: List[quern.Epoch]
    report: Any
    @property
    def native(self) -> quern.Model: ...
    def write(self) -> MLWriter: ...
    @classmethod
    def read(cls) -> MLReader[Any]: ...

class ClassifierModel(_Model, HasProbabilityCol): ...
class RegressorModel(_Model): ...

class _Estimator(_Trained, MLReadable[Any], MLWritable):
    def __init__(self, **params: Any) -> None: ...
    def setParams(self, **params: Any) -> Any: ...
    def write(self) -> MLWriter: ...
    @classmethod
    def read(cls) -> MLReader[Any]: ...

class Classifier(_Estimator, Estimator[ClassifierModel], HasProbabilityCol): ...
class Regressor(_Estimator, Estimator[RegressorModel]): ...
