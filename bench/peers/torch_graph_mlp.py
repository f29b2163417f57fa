"""PyTorch with a CUDA graph: one step recorded, then repeated with other items."""

import peerlib
import torch_mlp

WARMUPS = 3  # steps before the recording, which the libraries need to choose their kernels


class TorchGraph(torch_mlp.Torch):
    name = "torch-graph"
    devices = ("cuda",)

    def version(self):
        return f"torch {self.torch.__version__}, eager step in a CUDA graph"

    def step(self):
        self.forward_loss(self.images[self.chosen], self.labels[self.chosen]).backward()
        self.optimiser.step()

    def prepare(self):
        super().prepare()
        torch = self.torch
        first = [parameter.detach().clone() for parameter in self.model.parameters()]
        self.chosen = torch.arange(self.batch, device=self.device)
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARMUPS):
                self.optimiser.zero_grad(set_to_none=True)
                self.step()
        torch.cuda.current_stream().wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        self.optimiser.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            self.step()
        # The steps so far were for the libraries: training starts from the first weights.
        with torch.no_grad():
            for parameter, values in zip(self.model.parameters(), first):
                parameter.copy_(values)
                self.optimiser.state[parameter]["momentum_buffer"].zero_()

    def epoch(self):
        """A last short batch is left out, since the graph's shapes are fixed."""
        order = self.torch.randperm(len(self.labels), device=self.device)
        steps = len(order) // self.batch
        for chosen in order[: steps * self.batch].split(self.batch):
            self.chosen.copy_(chosen)
            self.graph.replay()
        self.wait()
        return steps * self.batch


if __name__ == "__main__":
    peerlib.run(TorchGraph)
