"""Adapts a model file of Quern to other classes in PyTorch, for bench/fine_tuning.py.

    torch_fine_tuning.py --train F.npz --test F.npz --start MODEL --network TEXT [--frozen 1 | --depth X]

All layers but the last one begin with the weights of the file. A new last layer has PyTorch's own
first weights. Weights decay, biases and normalisations do not. Prints one JSON object.
"""

import argparse
import json
import math
import sys

import cnnlib
import numpy as np
import predict_cnn_peer
import torch_cnn

try:
    import torch
except ImportError as error:
    print(json.dumps({"skip": f"cannot be used: {error}"}))
    sys.exit()

TEST_BATCH = 500


def read(path):
    with np.load(path) as file:
        return file["images"], file["labels"].astype(np.int64)


def factors(layers, depth):
    """A factor of the learning rate for each layer: 1 in the last part. Each convolution, dense layer or
    block begins a part, whose factor is `depth` times that of the next one."""
    parts = np.cumsum([layer["kind"] in ("conv", "dense", "residual") for layer in layers])
    return [depth ** float(parts[-1] - max(part, 1)) for part in parts]


class Training:
    def __init__(self, options):
        self.options, self.random = options, np.random.default_rng(options.seed)
        torch.manual_seed(options.seed)
        torch.set_num_threads(options.threads)
        self.images, self.labels = read(options.train)
        self.model = predict_cnn_peer.network(options, last=False)[1]
        self.model.train()
        if options.frozen:
            self.model.eval()
        self.groups = self.groups_of(cnnlib.parse(options.network))
        self.optimiser = torch.optim.SGD([{k: g[k] for k in ("params", "weight_decay")} for g in self.groups],
                                         options.lr, 0.9, fused=True)
        self.criterion = torch.nn.CrossEntropyLoss()
        self.step, self.steps = 0, options.epochs * math.ceil(len(self.labels) / options.batch)

    def groups_of(self, layers):
        """Parameters of each layer that trains, with its factor of the rate: weights decay, others do not."""
        found = []
        modules = [m for m in self.model.children() if list(m.parameters())]
        rates = [f for layer, f in zip(layers, factors(layers, self.options.depth or 1))
                 if layer["kind"] in ("conv", "dense", "batchnorm", "residual")]
        for module, rate in list(zip(modules, rates))[-1 if self.options.frozen else 0:]:
            parameters = list(module.parameters())
            for decays in (True, False):
                found.append({"params": [p for p in parameters if (p.dim() > 1) == decays], "rate": rate,
                              "weight_decay": self.options.decay if decays else 0})
        return [group for group in found if group["params"]]

    def inputs(self, images):
        values = (images.astype(np.float32) / 255 - self.options.mean) / self.options.deviation
        return torch.from_numpy(values.astype(np.float32)).to("cpu", memory_format=torch.channels_last)

    def epoch(self):
        order, batch = self.random.permutation(len(self.labels)), self.options.batch
        for part in (order[i:i + batch] for i in range(0, len(order), batch)):
            rate = self.options.lr * (1 + math.cos(math.pi * self.step / self.steps)) / 2
            for told, group in zip(self.optimiser.param_groups, self.groups):
                told["lr"] = rate * group["rate"]
            self.optimiser.zero_grad(set_to_none=True)
            outputs = self.model(self.inputs(cnnlib.augmented(self.images[part], self.random)))
            self.criterion(outputs, torch.from_numpy(self.labels[part])).backward()
            self.optimiser.step()
            self.step += 1

    def accuracy(self, path):
        images, labels = read(path)
        self.model.eval()
        with torch.inference_mode():
            parts = [self.model(self.inputs(images[i:i + TEST_BATCH])).numpy() for i in range(0, len(images), TEST_BATCH)]
        return 100 * float(np.mean(np.argmax(np.concatenate(parts), 1) == labels))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("train", "test", "start", "network"):
        parser.add_argument(f"--{name}", required=True)
    for name, kind, usual in (("epochs", int, 10), ("batch", int, 64), ("lr", float, 0.05), ("seed", int, 1),
                              ("decay", float, 0.0005), ("frozen", int, 0), ("depth", float, 0), ("mean", float, 0.5),
                              ("deviation", float, 0.25), ("threads", int, 2)):
        parser.add_argument(f"--{name}", type=kind, default=usual)
    options = parser.parse_args()
    options.model = options.start
    options.shape = "x".join(map(str, read(options.train)[0].shape[1:]))
    training = Training(options)
    for _ in range(options.epochs):
        training.epoch()
    print(json.dumps({"accuracy": training.accuracy(options.test), "version": f"torch {torch.__version__}"}))


if __name__ == "__main__":
    main()
