"""PyTorch, eager: tensors resident, batches by index, no DataLoader."""

import numpy as np
import peerlib


class Torch(peerlib.Peer):
    name = "torch"
    devices = ("cpu", "cuda")

    def __init__(self, threads):
        import torch

        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        torch.set_float32_matmul_precision("high" if self.tf32 else "highest")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise RuntimeError("torch sees no CUDA device")
        self.torch = torch

    def version(self):
        return f"torch {self.torch.__version__}, eager"

    def network(self):
        nn = self.torch.nn
        layers = []
        for inputs, outputs in zip(self.sizes, self.sizes[1:]):
            layers += [nn.Linear(inputs, outputs), nn.Tanh()]
        return nn.Sequential(*layers[:-1]).to(self.device)

    def begin(self, images, labels, batch, seed):
        torch = self.torch
        torch.manual_seed(seed)
        self.images = torch.from_numpy(images).to(self.device)
        self.labels = torch.from_numpy(labels).to(self.device)
        self.batch, self.model = batch, self.network()
        arrays = [torch.from_numpy(a.T.copy()) for a in peerlib.first_weights(seed, self.sizes)]
        with torch.no_grad():
            for parameter, values in zip(self.model.parameters(), arrays):
                parameter.copy_(values)
        # fused: one pass over each parameter instead of three.
        self.optimiser = torch.optim.SGD(
            self.model.parameters(), self.rate, peerlib.MOMENTUM, fused=True
        )
        self.criterion = torch.nn.CrossEntropyLoss()
        self.prepare()

    def prepare(self):
        self.forward_loss = lambda x, y: self.criterion(self.model(x), y)

    def wait(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def epoch(self):
        order = self.torch.randperm(len(self.labels), device=self.device)
        for chosen in order.split(self.batch):
            self.optimiser.zero_grad(set_to_none=True)
            self.forward_loss(self.images[chosen], self.labels[chosen]).backward()
            self.optimiser.step()
        self.wait()
        return len(self.labels)

    def loss(self):
        with self.torch.inference_mode():
            return float(self.criterion(self.model(self.images), self.labels))

    def save(self, path):
        self.torch.save(self.model.state_dict(), path)

    def load(self, path):
        self.model = self.network()
        self.model.load_state_dict(self.torch.load(path, self.device, weights_only=True))

    def predict(self, images, batch):
        with self.torch.inference_mode():
            parts = self.torch.from_numpy(images).to(self.device).split(batch)
            return np.concatenate([self.model(x).argmax(1).cpu().numpy() for x in parts])


if __name__ == "__main__":
    peerlib.run(Torch)
