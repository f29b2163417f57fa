"""A GPT of PyTorch beside that of bench/train_text.py: eager or compiled, float32 or bfloat16 autocast.

    python bench/peers/torch_gpt.py train --tokens T.npy --words 65 --width 384 --layers 6 --heads 6 \
        --context 256 --batch 16 --threads 2 --kind torch-compile

It is the same network: layers as in GPT-2, without dropout, the last one with weights of its own. Attention is
scaled_dot_product_attention, the optimiser AdamW, fused. With `--kind torch-ddp` it is one rank of several over
gloo, each with its part of each batch (torch_ddp.py).
"""

import argparse
import json
import resource
import time

import torch_ddp


def network(torch, chosen):
    nn, functional = torch.nn, torch.nn.functional
    width, heads = chosen.width, chosen.heads

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mix, self.give = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attend(self, x):
            items, positions, _ = x.shape
            parts = (part.view(items, positions, heads, width // heads).transpose(1, 2)
                     for part in self.mix(x).split(width, 2))
            y = functional.scaled_dot_product_attention(*parts, is_causal=True)
            return self.give(y.transpose(1, 2).reshape(items, positions, width))

        def forward(self, x):
            x = x + self.attend(self.first(x))
            return x + self.narrow(functional.gelu(self.widen(self.second(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(chosen.words, width), nn.Embedding(chosen.context, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(chosen.layers)))
            self.last, self.head = nn.LayerNorm(width), nn.Linear(width, chosen.words)
            for module in self.modules():
                if isinstance(module, (nn.Linear, nn.Embedding)):
                    nn.init.normal_(module.weight, 0.0, 0.02)

        def forward(self, row):
            x = self.blocks(self.tokens(row[:, :-1]) + self.positions.weight)
            return functional.cross_entropy(self.head(self.last(x)).flatten(0, 1), row[:, 1:].flatten())

    return Gpt()


def step_of(torch, chosen, model):
    optimiser = torch.optim.AdamW(model.parameters(), chosen.rate, weight_decay=0.1, fused=True)
    bfloat16 = chosen.kind.endswith("bf16")

    def loss_of(row):
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            return model(row)

    if "compile" in chosen.kind:
        loss_of = torch.compile(loss_of, dynamic=False)

    def step(row):
        loss = loss_of(row)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return float(loss.detach())

    return step


def train(torch, chosen):
    import numpy as np

    row = torch.from_numpy(np.load(chosen.tokens).astype(np.int64))
    items = (len(row) - 1) // chosen.context
    batches = torch.stack([row[i * chosen.context : (i + 1) * chosen.context + 1] for i in range(items)])
    batches = batches.split(chosen.batch)
    model = network(torch, chosen)
    if "ddp" in chosen.kind:
        rank, ranks = torch_ddp.join()
        model = torch_ddp.shared(model)
        batches = [batch.tensor_split(ranks)[rank] for batch in batches]
    step = step_of(torch, chosen, model)
    losses, rates = [[step(batch) for batch in batches]], []
    busy, wall = time.process_time(), time.perf_counter()
    for _ in range(chosen.epochs):
        begun = time.perf_counter()
        losses.append([step(batch) for batch in batches])
        rates.append(items * chosen.context / (time.perf_counter() - begun))
    cores = (time.process_time() - busy) / (time.perf_counter() - wall)
    means = [sum(part) / len(part) for part in losses]
    return {"chunks": rates, "busy_cores": cores, "loss_before": means[0], "loss_after": means[-1],
            "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=["train"])
    parser.add_argument("--tokens", required=True, help="NPY file with one row of tokens")
    for name in ("words", "width", "layers", "heads", "context", "batch"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--kind", default="torch", help="torch, with -ddp, or -compile and then -bf16, if wanted")
    parser.add_argument("--rate", type=float, default=0.001)
    parser.add_argument("--epochs", type=int, default=2, help="timed epochs, after one that is not")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    try:
        import torch
    except (ImportError, OSError) as error:
        print(json.dumps({"peer": chosen.kind, "skip": f"cannot be used: {error}"}))
        return
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(1)
    head = {"peer": chosen.kind, "version": f"torch {torch.__version__}", "threads": chosen.threads}
    print(json.dumps({**head, **train(torch, chosen)}))


if __name__ == "__main__":
    main()
