"""Small checkpoints as transformers' save_pretrained writes them, and their networks in doubles."""

import json
import math

import numpy as np

from test_state_dict import write

GPT2 = {"model_type": "gpt2", "vocab_size": 40, "n_embd": 12, "n_head": 3, "n_layer": 2, "n_positions": 10, "n_inner": None,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True, "scale_attn_weights": True}


def save(folder, config, tensors, dtype="F32"):
    """Returns the float32 values that the file holds."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return write(folder / "model.safetensors", tensors, dtype)


def shard(folder, config, tensors, files):
    """The same in several files with an index, each with every so many tensors."""
    save(folder, config, tensors)
    (folder / "model.safetensors").unlink()
    names = [f"model-{k + 1:05}-of-{files:05}.safetensors" for k in range(files)]
    parts = [{name: tensors[name] for name in sorted(tensors)[k::files]} for k in range(files)]
    for name, part in zip(names, parts, strict=True):
        write(folder / name, part)
    index = {"metadata": {"total_size": 1}, "weight_map": {t: n for n, part in zip(names, parts, strict=True) for t in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


# ---------------------------------------------------------------- parts of networks

def layer_norm(x, t, name, epsilon):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * t[f"{name}.weight"] + t[f"{name}.bias"]


def gelu_new(z):
    return 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))


def gelu(z):
    return z * np.vectorize(math.erfc)(-z / math.sqrt(2)) / 2


def silu(z):
    return z / (1 + np.exp(-z))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def heads(x, count):
    """[T][count * d] to [count][T][d]."""
    return x.reshape(len(x), count, -1).transpose(1, 0, 2)


def attention(q, k, v, causal):
    """[heads][T][d] each; keys and values may be those of several heads. Gives [T][heads * d]."""
    k, v = (np.repeat(a, len(q) // len(a), 0) for a in (k, v))
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    return (softmax(scores) @ v).transpose(1, 0, 2).reshape(q.shape[1], -1)


def loss(logits, tokens):
    """The mean cross-entropy of the tokens that follow."""
    of = [-np.log(softmax(z))[np.arange(len(z)), t[1:]].mean() for z, t in zip(logits, tokens, strict=True)]
    return float(np.mean(of))


# ---------------------------------------------------------------- gpt2

def gpt2(generator, config=GPT2, tied=True):
    """Names and values of its tensors, with the masks that old files have."""
    def some(*shape):
        return generator.normal(0, 0.4, shape)
    n, v, p = config["n_embd"], config["vocab_size"], config["n_positions"]
    inner = config["n_inner"] or 4 * n
    t = {"wte.weight": some(v, n), "wpe.weight": some(p, n), "ln_f.weight": some(n), "ln_f.bias": some(n)}
    for b in range(config["n_layer"]):
        shapes = {"attn.c_attn": (n, 3 * n), "attn.c_proj": (n, n), "mlp.c_fc": (n, inner), "mlp.c_proj": (inner, n)}
        for name, shape in shapes.items():
            t |= {f"h.{b}.{name}.weight": some(*shape), f"h.{b}.{name}.bias": some(shape[1])}
        for name in ("ln_1", "ln_2"):
            t |= {f"h.{b}.{name}.weight": some(n), f"h.{b}.{name}.bias": some(n)}
        t[f"h.{b}.attn.bias"] = np.tril(np.ones((1, 1, p, p)))
    t = {f"transformer.{name}": value for name, value in t.items()}
    return t if tied else t | {"lm_head.weight": some(v, n)}


def gpt2_logits(t, tokens, config=GPT2):
    """[T][V] of one item."""
    body = {name.removeprefix("transformer."): np.asarray(value, float) for name, value in t.items()}
    eps, count = config["layer_norm_epsilon"], config["n_head"]
    act = {"gelu_new": gelu_new, "gelu": gelu}[config["activation_function"]]
    x = body["wte.weight"][tokens] + body["wpe.weight"][:len(tokens)]
    def conv1d(a, name):
        return a @ body[f"{name}.weight"] + body[f"{name}.bias"]
    for b in range(config["n_layer"]):
        q, k, v = np.split(conv1d(layer_norm(x, body, f"h.{b}.ln_1", eps), f"h.{b}.attn.c_attn"), 3, -1)
        mixed = attention(heads(q, count), heads(k, count), heads(v, count), True)
        x = x + conv1d(mixed, f"h.{b}.attn.c_proj")
        x = x + conv1d(act(conv1d(layer_norm(x, body, f"h.{b}.ln_2", eps), f"h.{b}.mlp.c_fc")), f"h.{b}.mlp.c_proj")
    last = body.get("lm_head.weight", body["wte.weight"])
    return layer_norm(x, body, "ln_f", eps) @ last.T
