"""Convolutional networks by DistributedDataParallel over gloo; started as torch_ddp_mlp.py is."""

import peerlib
from torch_cnn import TorchCnn
from torch_ddp import Ddp


class DdpCnn(Ddp, TorchCnn):
    pass


if __name__ == "__main__":
    peerlib.run(DdpCnn)
