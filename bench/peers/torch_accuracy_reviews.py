"""Trains text-cnn or bert-mini in PyTorch by the recipe of accuracy_reviews.py: the accuracy that it reaches, and how fast.

    python bench/peers/torch_accuracy_reviews.py text-cnn --train x.npy --train_labels y.npy --test t.npy \
        --test_labels u.npy --words 8000 --rate 1e-3 --epochs 5

Positions after the last token are not read, and those after the longest text of a batch not computed. With
--group_lengths texts of like lengths come together, as Quern groups them. Weights begin with Quern's
distributions: tables with a deviation of 0.02, layers before a GELU or a ReLU as He et al., others as Glorot and
Bengio. Matrices and tables decay.
"""

import argparse
import math
import time
import types

import torch_accuracy_text

PADDING = 65535
WIDTH, HEADS, BLOCKS, WINDOWS, FILTERS = 256, 4, 4, (3, 5, 7), 100


def text_cnn(torch, words, positions):
    nn = torch.nn
    del positions

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(words, 128)
            self.narrow = nn.ModuleList(nn.Conv1d(128, FILTERS, size, padding=size // 2) for size in WINDOWS)
            self.last = nn.Linear(FILTERS * len(WINDOWS), 2)
            self.before_relu = set(self.narrow)

        def forward(self, x, there):
            x = (self.tokens(x) * there[..., None]).transpose(1, 2)
            kept = [torch.relu(window(x)).masked_fill(~there[:, None], -math.inf).amax(2) for window in self.narrow]
            return self.last(nn.functional.dropout(torch.cat(kept, 1), 0.5, self.training))

    return Network()


def bert_mini(torch, words, positions):
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix, self.give = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

        def forward(self, x, there):
            items, count, _ = x.shape
            parts = (part.view(items, count, HEADS, WIDTH // HEADS).transpose(1, 2)
                     for part in self.mix(x).split(WIDTH, 2))
            seen = functional.scaled_dot_product_attention(*parts, attn_mask=there[:, None, None])
            seen = self.give(seen.transpose(1, 2).reshape(items, count, WIDTH))
            x = self.first(x + functional.dropout(seen, 0.1, self.training))
            more = self.narrow(functional.gelu(self.widen(x)))
            return self.second(x + functional.dropout(more, 0.1, self.training))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(words, WIDTH), nn.Embedding(positions, WIDTH)
            self.first = nn.LayerNorm(WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
            self.last = nn.Linear(WIDTH, 2)
            self.before_relu = {block.widen for block in self.blocks}

        def forward(self, x, there):
            x = functional.dropout(self.first(self.tokens(x) + self.positions.weight[: x.shape[1]]), 0.1, self.training)
            for block in self.blocks:
                x = block(x, there)
            return self.last((x * there[..., None]).sum(1) / there.sum(1, keepdim=True))

    return Network()


def begin_as_quern(torch, model):
    nn = torch.nn
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            limit = 0.02 * math.sqrt(3)
        elif isinstance(module, (nn.Linear, nn.Conv1d)):
            nn.init.zeros_(module.bias)
            inputs = module.weight[0].numel()
            outputs = module.weight.shape[0] * module.weight[0, 0].numel()
            limit = math.sqrt(6 / inputs if module in model.before_relu else 6 / (inputs + outputs))
        else:
            continue
        nn.init.uniform_(module.weight, -limit, limit)
    return model


def read(torch, path, labels):
    import numpy as np

    x = torch.from_numpy(np.load(path).astype(np.int64))
    there = x != PADDING
    return x.masked_fill(~there, 0), there, torch.from_numpy(np.load(labels).astype(np.int64))


def up_to_longest(x, there, *others):
    longest = int(there.sum(1).max())
    return x[:, :longest], there[:, :longest], *others


def batches(torch, lengths, chosen):
    """The batches of an epoch: with --group_lengths N those of N batches are sorted by length, and drawn."""
    order = torch.randperm(len(lengths))
    if not chosen.group_lengths:
        return order.split(chosen.batch)
    found = []
    for window in order.split(chosen.batch * chosen.group_lengths):
        own = window[lengths[window].argsort(stable=True)].split(chosen.batch)
        found += [own[k] for k in torch.randperm(len(own))]
    return found


def train(torch, chosen):
    items, test = read(torch, chosen.train, chosen.train_labels), read(torch, chosen.test, chosen.test_labels)
    make = {"text-cnn": text_cnn, "bert-mini": bert_mini}[chosen.network]
    model = begin_as_quern(torch, make(torch, chosen.words, items[0].shape[1]))
    parts = {chosen.decay: [p for p in model.parameters() if p.dim() > 1],
             0.0: [p for p in model.parameters() if p.dim() < 2]}
    groups = [{"params": part, "weight_decay": decay} for decay, part in parts.items()]
    optimiser = torch.optim.AdamW(groups, fused=True)
    orders = [batches(torch, items[1].sum(1), chosen) for _ in range(chosen.epochs)]
    schedule = types.SimpleNamespace(rate=chosen.rate, least=0.0, warmup=chosen.warmup)
    model.train()
    begun = time.perf_counter()
    for step, part in enumerate(part for order in orders for part in order):
        for group in optimiser.param_groups:
            group["lr"] = torch_accuracy_text.rate_of(step, chosen.epochs * len(orders[0]), schedule)
        optimiser.zero_grad(set_to_none=True)
        x, there, y = up_to_longest(*(whole[part] for whole in items))
        torch.nn.functional.cross_entropy(model(x, there), y).backward()
        optimiser.step()
    rate = chosen.epochs * len(items[0]) / (time.perf_counter() - begun)
    model.eval()
    with torch.inference_mode():
        right = [(model(x, there).argmax(1) == y).sum() for x, there, y in zip(*(whole.split(200) for whole in test))]
    return {"accuracy": 100 * float(sum(right)) / len(test[0]), "rate": rate}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=["text-cnn", "bert-mini"])
    for name in ("train", "train_labels", "test", "test_labels"):
        parser.add_argument(f"--{name}", required=True, help="NPY file")
    for name, kind, usual in (("words", int, 8000), ("seed", int, 1), ("batch", int, 64), ("rate", float, 1e-3),
                              ("epochs", int, 3), ("warmup", int, 100), ("decay", float, 0.1), ("threads", int, 1),
                              ("group_lengths", int, 0)):
        parser.add_argument(f"--{name}", type=kind, default=usual)
    torch_accuracy_text.tell(train, parser.parse_args())


if __name__ == "__main__":
    main()
