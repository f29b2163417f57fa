from typing import Any, Callable, Optional, Sequence

import distributed

from . import Epoch, Model, Path
from . import estimator

TOPIC: str

def train(client: Optional[distributed.Client], data: Any, labels: Any = None, weights: Any = None, *,
          workers: Optional[Sequence[str]] = None, folder: Optional[Path] = None,
          on_epoch: Optional[Callable[[Epoch], Any]] = None, on_note: Optional[Callable[[str], Any]] = None,
          max_restarts: int = 3, copies: int = 1, part_cache: int = 0, **options: Any) -> Model: ...
def predict(model: Model, data: Any, *, outputs: bool = False, **options: Any) -> Any: ...

class _Distributed:
    client: Optional[distributed.Client]
    workers: Optional[Sequence[str]]
    folder: Optional[Path]
    max_restarts: int
    copies: int
    part_cache: int
    model_: Model
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any: ...
    def predict(self, X: Any) -> Any: ...

class Classifier(_Distributed, estimator.Classifier):
    def predict_proba(self, X: Any) -> Any: ...
    def score(self, X: Any, y: Any) -> float: ...  # type: ignore[override]

class Regressor(_Distributed, estimator.Regressor):
    def score(self, X: Any, y: Any) -> float: ...  # type: ignore[override]
