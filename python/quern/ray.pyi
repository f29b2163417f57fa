from typing import Any, Callable, Dict, Mapping, Optional, Union

import ray.data
import ray.train

from . import Epoch, Items, Model, Path

MODEL: str

def train(dataset: ray.data.Dataset, *, ranks: Optional[int] = None, cpus: float = 1, gpus: float = 0,
          resources: Optional[Mapping[str, float]] = None, strategy: str = "SPREAD",
          folder: Optional[Path] = None, on_epoch: Optional[Callable[[Epoch], Any]] = None,
          on_note: Optional[Callable[[str], Any]] = None, max_restarts: int = 3, timeout: float = 300,
          copies: int = 1, part_cache: int = 0, **options: Any) -> Model: ...
def predict(model: Model, dataset: ray.data.Dataset, *, outputs: bool = False, column: str = "prediction",
            batch_size: int = 4096, **more: Any) -> ray.data.Dataset: ...
def metrics(epoch: Epoch) -> Dict[str, Union[int, float]]: ...
def trainable(data: Union[ray.data.Dataset, Items], labels: Any = None,
              **options: Any) -> Callable[[Dict[str, Any]], Any]: ...

class Trainer:
    def __init__(self, datasets: Mapping[str, ray.data.Dataset], *,
                 scaling_config: Optional[ray.train.ScalingConfig] = None,
                 run_config: Optional[ray.train.RunConfig] = None, **options: Any) -> None: ...
    def fit(self) -> ray.train.Result: ...
