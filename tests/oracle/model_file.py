"""Sections 11 and 12 of the contract: the recipe and the model file."""

import numpy as np

from binary32 import to_text

# 11.1, the keys in their order.
KEYS = """contract arith data items features valid scale model init loss optimizer momentum
beta1 beta2 epsilon weight_decay lr schedule lr_step lr_gamma warmup batch grain epochs seed
unit""".split()


def json_value(value):
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, np.float32):
        return to_text(value)
    return str(value)


def recipe_text(recipe):
    """11.1: the recipe, a dictionary with exactly the keys of the table."""
    assert set(recipe) == set(KEYS)
    return "{" + ",".join(f'"{key}":{json_value(recipe[key])}' for key in KEYS) + "}"


def model_bytes(recipe, tensors):
    """12.1, 12.2: the file; `tensors` is a list of (name, array of float32) in its order."""
    escaped = recipe_text(recipe).replace('"', '\\"')
    header = f'{{"__metadata__":{{"format":"quern-model-1","recipe":"{escaped}"}}'
    begin = 0
    for name, array in tensors:
        end = begin + 4 * array.size
        shape = ",".join(str(size) for size in array.shape)
        header += f',"{name}":{{"dtype":"F32","shape":[{shape}],"data_offsets":[{begin},{end}]}}'
        begin = end
    header = (header + "}").encode("utf-8")
    header += b" " * (-len(header) % 8)
    body = b"".join(array.astype("<f4").tobytes() for _, array in tensors)
    return len(header).to_bytes(8, "little") + header + body


def tensors_of(layers, stats):
    """12.2: names and arrays; `stats` is (mean, deviation, inverse) or None."""
    tensors = []
    for l, layer in enumerate(layers):
        tensors.append((f"layer{l}.weight", layer.weight))
        tensors.append((f"layer{l}.bias", layer.bias))
    if stats is not None:
        tensors.append(("scale.mean", stats[0]))
        tensors.append(("scale.deviation", stats[1]))
    return tensors
