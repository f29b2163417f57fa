"""Quern: neural networks whose bytes do not depend on the devices that trained them.

    import quern
    model = quern.train("train.csv", label="sick", epochs=20)
    classes = model.predict(table)
    model.save("model.safetensors")

The words are those of the command `quern`, with underscores: ``--weight-decay`` is
``weight_decay=``. docs/python.md describes everything.
"""

__all__ = ["Answer", "Classifier", "Data", "Epoch", "Job", "Kernel", "KMeans", "Lasso", "LearningRates", "LogisticRegression", "Model", "PCA", "Parts", "Regressor", "Ridge", "Score", "Search", "Server",
           "StandardScaler", "Tokenizer", "build_info", "devices", "digits", "evaluate", "fit", "import_pretrained", "import_state", "jobs", "load", "lr_range", "open", "options", "ranks", "replay",
           "report", "runs", "search", "serve", "submit", "train",
           "version",
           "QuernError", "UsageError", "InputError", "FileError", "OutOfMemory", "FormatError",
           "MismatchError", "NumericError", "UnsupportedError", "BusyError", "DeviceError",
           "DiffersError", "ClusterError"]

# The library and NumPy are loaded at the first use of a name, so that the import is fast.
_HOMES = {"Classifier": "estimator", "Regressor": "estimator", "LogisticRegression": "linear",
          "Kernel": "kernel", "Answer": "generating",
          "KMeans": "decomposition", "PCA": "decomposition", "Lasso": "regression", "Ridge": "regression", "StandardScaler": "preprocessing",
          "Data": "data", "digits": "data", "open": "data",
          "evaluate": "evaluation", "Parts": "parts", "fit": "model", "Model": "model", "import_pretrained": "importing", "import_state": "importing", "load": "model",
          "Epoch": "training", "Score": "training", "options": "training", "train": "training",
          "Job": "submitting", "jobs": "submitting", "submit": "submitting",
          "Server": "answering", "serve": "answering",
          "replay": "training", "report": "records", "runs": "records", "Search": "searching",
          "Tokenizer": "tokenizing", "LearningRates": "searching", "lr_range": "searching", "search": "searching",
          "build_info": "device", "devices": "device", "version": "device"}


def __getattr__(name):
    import importlib

    if name == "ranks" or name in _HOMES.values():
        return importlib.import_module(f"quern.{name}")
    home = _HOMES.get(name, "errors" if name in __all__ else None)
    if name == "__version__":
        return importlib.import_module("quern.device").version()
    if home is None:
        raise AttributeError(f"module 'quern' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"quern.{home}"), name)
    return value


def __dir__():
    return sorted(__all__)
