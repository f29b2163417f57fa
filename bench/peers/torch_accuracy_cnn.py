"""Trains a network of train_cnn.py in PyTorch by the recipe of accuracy_cnn.py, and says what it reaches.

    python bench/peers/torch_accuracy_cnn.py --train train.npz --test test.npz --network TEXT --epochs 10

A line of JSON after each epoch: loss of the epoch, and the accuracy on the test set in percent. The
files have `images`, uint8 [items][channels][height][width], and `labels`. Means and deviations of
the channels are those of the training images. Weights decay, biases and normalisations do not.
"""

import argparse
import json
import math
import sys
import time

import cnnlib
import numpy as np
import torch_cnn

try:
    import torch
except ImportError as error:
    print(json.dumps({"skip": f"cannot be used: {error}"}))
    sys.exit()

TEST_BATCH = 500


def network(text, shape):
    peer = torch_cnn.TorchCnn.__new__(torch_cnn.TorchCnn)
    peer.torch, peer.text, peer.shape = torch, text, "x".join(map(str, shape))
    return peer.network()


def read(path):
    with np.load(path) as file:
        return torch.from_numpy(file["images"]), torch.from_numpy(file["labels"].astype(np.int64))


class Training:
    def __init__(self, options):
        self.options = options
        torch.manual_seed(options.seed)
        self.random = np.random.default_rng(options.seed)
        torch.set_num_threads(options.threads)
        self.images, self.labels = read(options.train)
        self.test = read(options.test)
        values = self.images.double().div(255)
        self.mean = values.mean((0, 2, 3)).float().view(1, -1, 1, 1)
        self.deviation = values.permute(1, 0, 2, 3).reshape(values.shape[1], -1).std(1, unbiased=False)
        self.deviation = self.deviation.float().view(1, -1, 1, 1)
        self.model = network(options.network, self.images.shape[1:])
        weights = [p for p in self.model.parameters() if p.dim() > 1]
        others = [p for p in self.model.parameters() if p.dim() <= 1]
        groups = [{"params": weights, "weight_decay": options.decay}, {"params": others, "weight_decay": 0}]
        self.optimiser = torch.optim.SGD(groups, options.lr, 0.9, fused=True)
        self.steps = options.epochs * math.ceil(len(self.labels) / options.batch)
        self.step = 0

    def scaled(self, images):
        values = (images.float() / 255 - self.mean) / self.deviation
        return values.to(memory_format=torch.channels_last)

    def rate(self):
        """Rises over the warm-up, then falls along half a cosine wave, as Quern's does."""
        warmup = self.options.warmup
        if self.step < warmup:
            return self.options.lr * (self.step + 1) / warmup
        share = (self.step - warmup) / (self.steps - warmup)
        return self.options.lr * (1 + math.cos(math.pi * share)) / 2

    def epoch(self):
        self.model.train()
        total = 0.0
        for part in torch.randperm(len(self.labels)).split(self.options.batch):
            for group in self.optimiser.param_groups:
                group["lr"] = self.rate()
            self.optimiser.zero_grad(set_to_none=True)
            outputs = self.model(self.scaled(torch.from_numpy(cnnlib.augmented(self.images[part].numpy(), self.random))))
            loss = torch.nn.functional.cross_entropy(outputs, self.labels[part])
            loss.backward()
            self.optimiser.step()
            total += float(loss.detach()) * len(part)
            self.step += 1
        return total / len(self.labels)

    @torch.inference_mode()
    def accuracy(self):
        self.model.eval()
        images, labels = self.test
        right = sum(int((self.model(self.scaled(x)).argmax(1) == y).sum())
                    for x, y in zip(images.split(TEST_BATCH), labels.split(TEST_BATCH)))
        return 100 * right / len(labels)


def main():
    parser = argparse.ArgumentParser()
    for name in ("train", "test", "network"):
        parser.add_argument(f"--{name}", required=True)
    for name, kind, usual in (("epochs", int, 10), ("batch", int, 128), ("lr", float, 0.1), ("seed", int, 1),
                              ("decay", float, 0.0005), ("warmup", int, 0), ("threads", int, 2)):
        parser.add_argument(f"--{name}", type=kind, default=usual)
    options = parser.parse_args()
    training = Training(options)
    for epoch in range(1, options.epochs + 1):
        begun = time.monotonic()
        loss, seconds = training.epoch(), time.monotonic() - begun
        row = {"epoch": epoch, "loss": loss, "accuracy": training.accuracy(), "seconds": seconds}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
