"""PyTorch's DistributedDataParallel over gloo: a process for each thread, each held to a core.

The process that is started is rank 0 and starts the others itself, as torchrun would, unless it was
told which rank it is (torch_ddp.py).
"""

import peerlib
from torch_ddp import Ddp
from torch_mlp import Torch


class DdpMlp(Ddp, Torch):
    pass


if __name__ == "__main__":
    peerlib.run(DdpMlp)
