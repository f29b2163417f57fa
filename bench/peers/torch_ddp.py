"""DistributedDataParallel over gloo on CPUs: the process group, and a mixin for the Torch peers.

Every rank takes its part of each batch, the same for all: DDP shares equally.
"""

import os
import socket
import subprocess
import sys

HOST, PORT, RANK, RANKS = "QN_DDP_HOST", "QN_DDP_PORT", "QN_DDP_RANK", "QN_DDP_RANKS"


def given(host, port, ranks, rank):
    """The variables of the environment that tell a rank its number and where to meet."""
    return {HOST: host, PORT: str(port), RANKS: str(ranks), RANK: str(rank)}


def start_the_others(ranks):
    """Where nobody has started ranks: the others run on this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update(given("127.0.0.1", port, ranks, 0))
    for rank in range(1, ranks):
        subprocess.Popen([sys.executable, *sys.argv], stdout=subprocess.DEVNULL,
                         env={**os.environ, RANK: str(rank)})  # fmt: skip


def join():
    """(rank, ranks) after all have met; gloo uses the interface of GLOO_SOCKET_IFNAME."""
    import torch.distributed

    if not torch.distributed.is_gloo_available():
        raise RuntimeError("this torch has no gloo")
    rank, ranks = int(os.environ[RANK]), int(os.environ[RANKS])
    torch.distributed.init_process_group("gloo", init_method=f"tcp://{os.environ[HOST]}:{os.environ[PORT]}",
                                         rank=rank, world_size=ranks)
    return rank, ranks


def shared(model):
    from torch.nn.parallel import DistributedDataParallel

    # With gradients as views of its buckets it saves one copy of all of them.
    return DistributedDataParallel(model, gradient_as_bucket_view=True)


class Ddp:
    """Before a peer of torch in the list of bases: `class Rank(Ddp, Torch)`."""

    name = "torch-ddp"
    devices = ("cpu",)

    def __init__(self, threads):
        if RANK not in os.environ:
            start_the_others(threads)
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(os.environ[RANK]) % len(cores)]})
        super().__init__(1)
        self.rank, self.ranks = join()

    def version(self):
        return f"torch {self.torch.__version__}, DDP over gloo, {self.ranks} processes of 1 thread"

    def prepare(self):
        self.shared = shared(self.model)
        self.forward_loss = lambda x, y: self.criterion(self.shared(x), y)

    def epoch(self):
        order = self.torch.randperm(len(self.labels))  # the same on all ranks: one seed
        for batch in order.split(self.batch):
            chosen = batch.tensor_split(self.ranks)[self.rank]
            self.optimiser.zero_grad(set_to_none=False)
            self.forward_loss(self.images[chosen], self.labels[chosen]).backward()
            self.optimiser.step()
        return len(self.labels)
