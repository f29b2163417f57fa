"""A GPT of PyTorch that generates with a cache of keys and values, beside bench/generate.py.

    python bench/peers/torch_generate.py generate --model quern.safetensors --prompts prompts.txt --tokens 32 \
        --heads 12 --threads 2

It has the weights of Quern's model file, and takes the most probable token. The cache is there from the start, and
each step writes its place in it; attention is scaled_dot_product_attention.
"""

import argparse
import json
import struct
import time


def tensors(torch, path):
    """{name: tensor} of a safetensors file of float32."""
    import numpy as np

    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        rest = np.frombuffer(file.read(), np.float32)
    return {name: torch.from_numpy(rest[entry["data_offsets"][0] // 4 : entry["data_offsets"][1] // 4].copy())
            .reshape([n for n in entry["shape"] if n > 1] or [1])
            for name, entry in header.items() if name != "__metadata__"}


class Gpt:
    """The network of bench/train_text.py: a block has ten layers, of which six have weights."""

    def __init__(self, torch, chosen, prompts):
        self.torch, self.heads = torch, chosen.heads
        own = tensors(torch, chosen.model)
        self.tokens, self.positions = own["layer0.weight"], own["layer1.weight"]
        self.layers = [(own[f"layer{l}.weight"], own[f"layer{l}.bias"]) for l in
                       sorted({int(name.split(".")[0][5:]) for name in own} - {0, 1})]
        width, blocks = self.tokens.shape[1], (len(self.layers) - 2) // 6
        shape = (2, blocks, len(prompts), self.heads, len(prompts[0]) + chosen.tokens, width // self.heads)
        self.cache, self.seen = torch.zeros(shape), 0

    def attend(self, x, block):
        functional = self.torch.nn.functional
        items, count, width = x.shape[0], x.shape[1], x.shape[2] // 3
        q, k, v = (part.view(items, count, self.heads, width // self.heads).transpose(1, 2)
                   for part in x.view(items, count, 3, width).unbind(2))
        end = self.seen + count
        self.cache[0, block][:, :, self.seen : end] = k
        self.cache[1, block][:, :, self.seen : end] = v
        y = functional.scaled_dot_product_attention(q, self.cache[0, block][:, :, :end], self.cache[1, block][:, :, :end],
                                                    is_causal=count > 1)
        return y.transpose(1, 2).reshape(items, count, width)

    def next(self, row):
        """The most probable token after each row, whose tokens follow those that were read."""
        linear, norm = self.torch.nn.functional.linear, self.torch.nn.functional.layer_norm
        at = iter(self.layers)
        x = self.tokens[row] + self.positions[self.seen : self.seen + row.shape[1]]
        for block in range(self.cache.shape[1]):
            y = linear(norm(x, x.shape[-1:], *next(at)), *next(at))
            x = x + linear(self.attend(y, block), *next(at))
            y = linear(norm(x, x.shape[-1:], *next(at)), *next(at))
            x = x + linear(self.torch.nn.functional.gelu(y), *next(at))
        self.seen += row.shape[1]
        x = norm(x[:, -1], x.shape[-1:], *next(at))
        return linear(x, *next(at)).argmax(-1, keepdim=True)


def generate(torch, chosen):
    with open(chosen.prompts) as file:
        prompts = [[int(word) for word in line.split()] for line in file]
    rates, answers = [], []
    with torch.no_grad():
        gpt = Gpt(torch, chosen, prompts)
        row = gpt.next(torch.tensor(prompts))
        for _ in range(chosen.tokens - 1):
            answers.append(row)
            begun = time.perf_counter()
            row = gpt.next(row)
            rates.append(len(prompts) / (time.perf_counter() - begun))
    return {"chunks": rates, "first": answers[0].flatten().tolist()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=["generate"])
    parser.add_argument("--model", required=True, help="a model file of bench/generate.py")
    parser.add_argument("--prompts", required=True, help="a file with the numbers of a prompt's tokens in each line")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--heads", type=int, required=True)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    try:
        import torch
    except (ImportError, OSError) as error:
        print(json.dumps({"peer": "torch", "skip": f"cannot be used: {error}"}))
        return
    torch.set_num_threads(chosen.threads)
    head = {"peer": "torch", "version": f"torch {torch.__version__}", "threads": chosen.threads}
    print(json.dumps({**head, **generate(torch, chosen)}))


if __name__ == "__main__":
    main()
