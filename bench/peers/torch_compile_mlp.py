"""PyTorch with torch.compile over the forward pass and the loss (its backward pass with it)."""

import shutil

import peerlib
import torch_mlp


class TorchCompile(torch_mlp.Torch):
    name = "torch-compile"

    def __init__(self, threads):
        if not (shutil.which("g++") or shutil.which("clang++")):
            raise ImportError("torch.compile needs a C++ compiler (g++)")
        super().__init__(threads)

    def version(self):
        return f"torch {self.torch.__version__}, torch.compile"

    def prepare(self):
        # A last short batch would compile a second time; dynamic=False keeps the first one fast.
        super().prepare()
        self.forward_loss = self.torch.compile(self.forward_loss, dynamic=False)


if __name__ == "__main__":
    peerlib.run(TorchCompile)
