"""PyTorch with convolutions, channels_last, bfloat16 autocast."""

import peerlib
import torch_bf16_mlp
import torch_cnn


class TorchBfloat16Cnn(torch_cnn.TorchCnn):
    name = "torch-bf16"
    prepare = torch_bf16_mlp.TorchBfloat16.prepare

    def version(self):
        return f"torch {self.torch.__version__}, eager, channels_last, bfloat16 autocast"


if __name__ == "__main__":
    peerlib.run(TorchBfloat16Cnn)
