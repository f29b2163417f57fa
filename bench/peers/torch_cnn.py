"""PyTorch with convolutions, eager, channels_last: images resident, batches by index."""

import cnnlib
import peerlib
import torch_mlp


class TorchCnn(torch_mlp.Torch, cnnlib.Cnn):
    name = "torch"
    devices = ("cpu", "cuda")

    def version(self):
        return f"torch {self.torch.__version__}, eager, channels_last"

    def modules(self, layers, image):
        """nn modules for a list of layers, and the shape after them."""
        nn, found = self.torch.nn, []
        for layer in layers:
            kind = layer["kind"]
            if kind == "conv":
                found.append(nn.Conv2d(image[0], layer["out"], layer["kernel"], layer["stride"], layer["pad"],
                                       groups=image[0] if layer["depthwise"] else 1, bias=not layer["nobias"]))
            elif kind == "maxpool":
                found.append(nn.MaxPool2d(layer["kernel"], layer["stride"], layer["pad"]))
            elif kind == "globalpool":
                found.append(nn.AdaptiveAvgPool2d(1))
            elif kind == "batchnorm":
                found.append(nn.BatchNorm2d(image[0]))
            elif kind == "dense":
                found += [nn.Flatten(), nn.Linear(image[0] * image[1] * image[2], layer["out"])]
            else:
                found.append(self.block(layer, image))
            image = cnnlib.after(layer, image)
            if layer["activation"] in ("relu", "relu6", "tanh", "sigmoid"):
                found.append({"relu": nn.ReLU, "relu6": nn.ReLU6, "tanh": nn.Tanh,
                              "sigmoid": nn.Sigmoid}[layer["activation"]]())
        return nn.Sequential(*found)

    def block(self, layer, image):
        torch = self.torch
        main, shortcut = self.modules(layer["main"], image), self.modules(layer["shortcut"], image)

        class Residual(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.main, self.shortcut = main, shortcut

            def forward(self, x):
                return self.main(x) + self.shortcut(x)

        return Residual()

    def network(self):
        layers, image = self.network_of()
        return self.modules(layers, image).to(self.device, memory_format=self.torch.channels_last)

    def begin(self, images, labels, batch, seed):
        torch = self.torch
        torch.manual_seed(seed)
        _, image = self.network_of()
        self.images = torch.from_numpy(images.reshape(-1, *image)).to(self.device, memory_format=torch.channels_last)
        self.labels = torch.from_numpy(labels).to(self.device)
        self.batch, self.model = batch, self.network()
        parameters = list(self.model.parameters())
        if self.frozen:
            self.model.eval()
            for parameter in parameters[:-2]:
                parameter.requires_grad = False
            parameters = parameters[-2:]
        self.optimiser = torch.optim.SGD(parameters, self.rate, peerlib.MOMENTUM, fused=True)
        self.criterion = torch.nn.CrossEntropyLoss()
        self.prepare()

    def loss(self):
        """Over batches of one fixed shuffled order. In a file whose items are sorted by class each
        batch would have one class: its batchnorms would see other means than in training."""
        torch = self.torch
        order = torch.randperm(len(self.labels), generator=torch.Generator().manual_seed(0)).to(self.device)
        with torch.inference_mode():
            parts = [self.criterion(self.model(self.images[chosen]), self.labels[chosen]) * len(chosen)
                     for chosen in order.split(self.batch)]
            return float(sum(parts) / len(self.labels))


if __name__ == "__main__":
    peerlib.run(TorchCnn)
