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


# ---------------------------------------------------------------- llama, qwen2

LLAMA = {"model_type": "llama", "vocab_size": 40, "hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2,
         "num_hidden_layers": 2, "max_position_embeddings": 10, "intermediate_size": 20, "hidden_act": "silu",
         "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "attention_bias": False, "tie_word_embeddings": False}
QWEN2 = {**{k: v for k, v in LLAMA.items() if k != "attention_bias"}, "model_type": "qwen2", "rope_theta": 1e6}


def llama(generator, config=LLAMA):
    """Names and values of its tensors, with a table that old files have."""
    def some(*shape):
        return generator.normal(0, 0.4, shape)
    n, v, f = config["hidden_size"], config["vocab_size"], config["intermediate_size"]
    d = config.get("head_dim") or n // config["num_attention_heads"]
    q, k = config["num_attention_heads"] * d, config["num_key_value_heads"] * d
    qwen = config["model_type"] == "qwen2"
    t = {"embed_tokens.weight": some(v, n), "norm.weight": some(n)}
    for b in range(config["num_hidden_layers"]):
        shapes = {"q_proj": (q, n), "k_proj": (k, n), "v_proj": (k, n), "o_proj": (n, q)}
        for name, shape in shapes.items():
            t[f"layers.{b}.self_attn.{name}.weight"] = some(*shape)
            if config.get("attention_bias", qwen and name != "o_proj"):
                t[f"layers.{b}.self_attn.{name}.bias"] = some(shape[0])
        for name, shape in {"gate_proj": (f, n), "up_proj": (f, n), "down_proj": (n, f)}.items():
            t[f"layers.{b}.mlp.{name}.weight"] = some(*shape)
        for name in ("input_layernorm", "post_attention_layernorm"):
            t[f"layers.{b}.{name}.weight"] = some(n)
        t[f"layers.{b}.self_attn.rotary_emb.inv_freq"] = some(d // 2)
    t = {f"model.{name}": value for name, value in t.items()}
    return t if config["tie_word_embeddings"] else t | {"lm_head.weight": some(v, n)}


def frequencies(d, config):
    """Of the pairs of a head, with the two rules of rope_scaling that Quern has."""
    f = config["rope_theta"] ** (-np.arange(0, d, 2) / d)
    rule = config.get("rope_scaling") or {"rope_type": "default"}
    if rule["rope_type"] == "linear":
        return f / rule["factor"]
    if rule["rope_type"] == "llama3":
        low, high, first = (rule[k] for k in ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings"))
        s = np.clip((first * f / (2 * math.pi) - low) / (high - low), 0, 1)
        return (1 - s) * f / rule["factor"] + s * f
    return f


def turned(x, f):
    """[heads][T][d], whose channels c and c + d/2 are a pair."""
    angle = np.arange(x.shape[1])[:, None] * f
    a, b = np.split(x, 2, -1)
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)


def llama_logits(t, tokens, config=LLAMA):
    body = {name.removeprefix("model."): np.asarray(value, float) for name, value in t.items()}
    eps, count, groups = config["rms_norm_eps"], config["num_attention_heads"], config["num_key_value_heads"]
    f = frequencies(config.get("head_dim") or config["hidden_size"] // count, config)
    def norm(a, name):
        return a / np.sqrt((a**2).mean(-1, keepdims=True) + eps) * body[f"{name}.weight"]
    def linear(a, name):
        return a @ body[f"{name}.weight"].T + body.get(f"{name}.bias", 0)
    x = body["embed_tokens.weight"][tokens]
    for b in range(config["num_hidden_layers"]):
        own, a = f"layers.{b}.self_attn", norm(x, f"layers.{b}.input_layernorm")
        q, k, v = (heads(linear(a, f"{own}.{w}_proj"), c) for w, c in (("q", count), ("k", groups), ("v", groups)))
        x = x + linear(attention(turned(q, f), turned(k, f), v, True), f"{own}.o_proj")
        a = norm(x, f"layers.{b}.post_attention_layernorm")
        x = x + linear(silu(linear(a, f"layers.{b}.mlp.gate_proj")) * linear(a, f"layers.{b}.mlp.up_proj"), f"layers.{b}.mlp.down_proj")
    last = body["embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"]
    return norm(x, "norm") @ last.T


# ---------------------------------------------------------------- bert, distilbert, heads

BERT = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": 40, "hidden_size": 12,
        "num_attention_heads": 3, "num_hidden_layers": 2, "max_position_embeddings": 10, "intermediate_size": 20,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "type_vocab_size": 2, "id2label": {"0": "bad", "1": "fair", "2": "good"}}
DISTILBERT = {"model_type": "distilbert", "architectures": ["DistilBertForSequenceClassification"], "vocab_size": 40, "dim": 12,
              "n_heads": 3, "n_layers": 2, "max_position_embeddings": 10, "hidden_dim": 20, "activation": "gelu",
              "id2label": BERT["id2label"]}

# Ours: names of bert and distilbert.
_ENCODER = {
    "query": ("encoder.layer.#.attention.self.query", "transformer.layer.#.attention.q_lin"),
    "key": ("encoder.layer.#.attention.self.key", "transformer.layer.#.attention.k_lin"),
    "value": ("encoder.layer.#.attention.self.value", "transformer.layer.#.attention.v_lin"),
    "mix": ("encoder.layer.#.attention.output.dense", "transformer.layer.#.attention.out_lin"),
    "norm1": ("encoder.layer.#.attention.output.LayerNorm", "transformer.layer.#.sa_layer_norm"),
    "up": ("encoder.layer.#.intermediate.dense", "transformer.layer.#.ffn.lin1"),
    "down": ("encoder.layer.#.output.dense", "transformer.layer.#.ffn.lin2"),
    "norm2": ("encoder.layer.#.output.LayerNorm", "transformer.layer.#.output_layer_norm")}


def _encoder(config):
    """0 for bert, 1 for distilbert; width, inner width, heads, blocks, activation."""
    bert = config["model_type"] == "bert"
    keys = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "hidden_act") if bert else \
        ("dim", "hidden_dim", "n_heads", "n_layers", "activation")
    return 0 if bert else 1, *(config[k] for k in keys)


def encoder(generator, config=BERT):
    """Names and values of the tensors of bert or distilbert, with the head of its class."""
    def some(*shape):
        return generator.normal(0, 0.4, shape)
    which, n, inner, _, blocks, _ = _encoder(config)
    t = {"embeddings.word_embeddings.weight": some(config["vocab_size"], n),
         "embeddings.position_embeddings.weight": some(config["max_position_embeddings"], n),
         "embeddings.LayerNorm.weight": some(n), "embeddings.LayerNorm.bias": some(n)}
    if which == 0:
        t["embeddings.token_type_embeddings.weight"] = some(config["type_vocab_size"], n)
    for b in range(blocks):
        for part, names in _ENCODER.items():
            shape = (n,) if "norm" in part else (inner, n) if part == "up" else (n, inner) if part == "down" else (n, n)
            name = names[which].replace("#", str(b))
            t |= {f"{name}.weight": some(*shape), f"{name}.bias": some(shape[0])}
    t = {f"{config['model_type']}.{name}": value for name, value in t.items()}
    outputs = len(config["id2label"])
    if "Sequence" in config["architectures"][0]:
        pooler = ("bert.pooler.dense", "pre_classifier")[which]
        t |= {f"{pooler}.weight": some(n, n), f"{pooler}.bias": some(n)}
    return t | {"classifier.weight": some(outputs, n), "classifier.bias": some(outputs)}


def encoder_logits(t, tokens, config=BERT):
    """Of one item: [C], or [T][C] of a class for each token."""
    which, _, _, count, blocks, activation = _encoder(config)
    body = {name.removeprefix(config["model_type"] + "."): np.asarray(value, float) for name, value in t.items()}
    act = {"gelu": gelu, "gelu_new": gelu_new, "relu": lambda z: np.maximum(z, 0)}[activation]
    eps = config.get("layer_norm_eps", 1e-12)
    def linear(a, name):
        return a @ body[f"{name}.weight"].T + body[f"{name}.bias"]
    x = body["embeddings.word_embeddings.weight"][tokens] + body["embeddings.position_embeddings.weight"][:len(tokens)]
    x = x + (body["embeddings.token_type_embeddings.weight"][0] if which == 0 else 0)
    x = layer_norm(x, body, "embeddings.LayerNorm", eps)
    for b in range(blocks):
        of = {part: names[which].replace("#", str(b)) for part, names in _ENCODER.items()}
        q, k, v = (heads(linear(x, of[part]), count) for part in ("query", "key", "value"))
        x = layer_norm(x + linear(attention(q, k, v, False), of["mix"]), body, of["norm1"], eps)
        x = layer_norm(x + linear(act(linear(x, of["up"])), of["down"]), body, of["norm2"], eps)
    if "Sequence" in config["architectures"][0]:
        first = linear(x[0], ("pooler.dense", "pre_classifier")[which])
        x = np.maximum(first, 0) if which else np.tanh(first)
    return linear(x, "classifier")
