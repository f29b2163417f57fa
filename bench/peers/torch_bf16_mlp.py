"""PyTorch with bfloat16 autocast: its products take the processor's matrix units where it has them."""

import peerlib
import torch_mlp


class TorchBfloat16(torch_mlp.Torch):
    name = "torch-bf16"

    def version(self):
        return f"torch {self.torch.__version__}, eager, bfloat16 autocast"

    def prepare(self):
        def forward_loss(x, y):
            with self.torch.autocast(self.device, dtype=self.torch.bfloat16):
                return self.criterion(self.model(x), y)

        self.forward_loss = forward_loss


if __name__ == "__main__":
    peerlib.run(TorchBfloat16)
