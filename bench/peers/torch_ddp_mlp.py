"""PyTorch's DistributedDataParallel over gloo: a process for each thread, each held to a core.

The process that is started is rank 0 and starts the others itself, as torchrun would. Every rank
takes its part of each batch, the same for all: DDP shares equally.
"""

import os
import socket
import subprocess
import sys

import peerlib
from torch_mlp import Torch

RANK, RANKS, PORT = "QN_DDP_RANK", "QN_DDP_RANKS", "QN_DDP_PORT"


class Ddp(Torch):
    name = "torch-ddp"
    devices = ("cpu",)

    def __init__(self, threads):
        if RANK not in os.environ:
            start_the_others(threads)
        self.rank, self.ranks = int(os.environ[RANK]), int(os.environ[RANKS])
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[self.rank % len(cores)]})
        super().__init__(1)
        import torch.distributed

        if not torch.distributed.is_gloo_available():
            raise RuntimeError("this torch has no gloo")
        torch.distributed.init_process_group(
            "gloo", init_method=f"tcp://127.0.0.1:{os.environ[PORT]}", rank=self.rank,
            world_size=self.ranks)  # fmt: skip

    def version(self):
        return f"torch {self.torch.__version__}, DDP over gloo, {self.ranks} processes of 1 thread"

    def prepare(self):
        from torch.nn.parallel import DistributedDataParallel

        # With gradients as views of its buckets it saves one copy of all of them.
        self.shared = DistributedDataParallel(self.model, gradient_as_bucket_view=True)
        self.forward_loss = lambda x, y: self.criterion(self.shared(x), y)

    def epoch(self):
        order = self.torch.randperm(len(self.labels))  # the same on all ranks: one seed
        for batch in order.split(self.batch):
            chosen = batch.tensor_split(self.ranks)[self.rank]
            self.optimiser.zero_grad(set_to_none=False)
            self.forward_loss(self.images[chosen], self.labels[chosen]).backward()
            self.optimiser.step()
        return len(self.labels)


def start_the_others(ranks):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update({RANKS: str(ranks), PORT: str(port), RANK: "0"})
    for rank in range(1, ranks):
        subprocess.Popen([sys.executable, *sys.argv], stdout=subprocess.DEVNULL,
                         env={**os.environ, RANK: str(rank)})  # fmt: skip


if __name__ == "__main__":
    peerlib.run(Ddp)
