"""Trains the GPT of accuracy_text.py in PyTorch by its recipe, and says what loss it reaches.

    python bench/peers/torch_accuracy_text.py train --train T.npy --valid V.npy --seed 1 --batch 12 --rate 1e-3

The files have items of tokens, each with the one after its last. Weights begin with Quern's distributions: tables
with a deviation of 0.02, layers before a GELU as He et al., others as Glorot and Bengio. Matrices and tables decay.
"""

import argparse
import json
import math
import types

import torch_gpt

SIZES = {"width": 128, "layers": 4, "heads": 4}


def begin_as_quern(torch, model, tied):
    """Biases are 0; the last layer has none, and with `tied` the embedding's table."""
    nn = torch.nn
    model.head = nn.Linear(model.tokens.embedding_dim, model.tokens.num_embeddings, bias=False)
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias) if module.bias is not None else None
            outputs, inputs = module.weight.shape
            limit = math.sqrt(6 / inputs if name.endswith("widen") else 6 / (inputs + outputs))
        elif isinstance(module, nn.Embedding):
            limit = 0.02 * math.sqrt(3)
        else:
            continue
        nn.init.uniform_(module.weight, -limit, limit)
    if tied:
        model.head.weight = model.tokens.weight
    return model


def rate_of(step, steps, chosen):
    if step < chosen.warmup:
        return chosen.rate * (step + 1) / chosen.warmup
    share = (step - chosen.warmup) / (steps - chosen.warmup)
    return chosen.least + (chosen.rate - chosen.least) * (1 + math.cos(math.pi * share)) / 2


def train(torch, chosen):
    import numpy as np

    items, valid = (torch.from_numpy(np.load(path).astype(np.int64)) for path in (chosen.train, chosen.valid))
    sizes = types.SimpleNamespace(words=int(items.max()) + 1, context=items.shape[1] - 1, **SIZES)
    model = begin_as_quern(torch, torch_gpt.network(torch, sizes), chosen.head == "tied")
    parts = {chosen.decay: [p for p in model.parameters() if p.dim() > 1],
             0.0: [p for p in model.parameters() if p.dim() < 2]}
    optimiser = torch.optim.AdamW([{"params": part, "weight_decay": decay} for decay, part in parts.items()],
                                  betas=(0.9, chosen.beta2), fused=True)
    batches = items[torch.randperm(len(items))].split(chosen.batch)
    for step, batch in enumerate(batches):
        for group in optimiser.param_groups:
            group["lr"] = rate_of(step, len(batches), chosen)
        optimiser.zero_grad(set_to_none=True)
        model(batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), chosen.clip)
        optimiser.step()
    with torch.inference_mode():
        return {"loss": sum(float(model(part)) * len(part) for part in valid.split(200)) / len(valid)}


def tell(train, chosen):
    """Prints what train(torch, chosen) gives, with the threads and the seed that were chosen."""
    try:
        import torch
    except (ImportError, OSError) as error:
        print(json.dumps({"skip": f"cannot be used: {error}"}))
        return
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(chosen.seed)
    print(json.dumps({"version": f"torch {torch.__version__}", **train(torch, chosen)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=["train"])
    for name in ("train", "valid"):
        parser.add_argument(f"--{name}", required=True, help="NPY file of items of tokens")
    parser.add_argument("--head", choices=["tied", "own"], default="tied")
    for name, kind, usual in (("seed", int, 1), ("batch", int, 12), ("rate", float, 1e-3), ("least", float, 1e-4),
                              ("warmup", int, 100), ("decay", float, 0.1), ("beta2", float, 0.99), ("clip", float, 1.0),
                              ("threads", int, 1)):
        parser.add_argument(f"--{name}", type=kind, default=usual)
    tell(train, parser.parse_args())


if __name__ == "__main__":
    main()
