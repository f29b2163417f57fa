"""Sections 11 and 12 of the contract: the recipe and the model file."""

import json
import re

import numpy as np

import augment
import texts
from binary32 import to_text

# 11.1, the keys in their order.
KEYS = """contract arith data items features valid scale model init loss optimizer momentum
beta1 beta2 epsilon weight_decay lr schedule lr_step lr_gamma warmup batch grain epochs seed
unit""".split()

# 11.5, those of contract 2 and what they are where nothing is said.
MORE = {"task": "classify", "delta": 0, "missing": "error", "table": None, "keep": "last",
        "patience": 0, "init_from": ""}
# 11.8, those of contract 3.
THIRD = {"weight": None, "class_weight": "", "init_scale": "fit"}
# 11.9, that of contract 4.
FOURTH = {"valid_data": ""}
# 16.8: that of contract 5, which a recipe has where a layer is not dense.
FIFTH = {"shape"}
# 17.1: those of contract 6, which a recipe has where they differ from this.
SIXTH = {"smoothing": 0, "clip": 0, "nesterov": 0, "augment": "", "resize": "", "l1": 0, "tolerance": 0, "no_intercept": 0, "stages": ""}
# 23.1: those of contract 7.
SEVENTH = {"rules": "", "date_format": ""}
# 24.1: those of contract 8, and its words.
EIGHTH = {"scale_numbers": "", "freeze": "", "new_last": 0, "lr_depth": 0, "mixup": 0, "cutmix": 0, "ema": 0}
EIGHTH_WORDS = re.compile("|".join((
    r"\b(relu6|hardswish|hardsigmoid|eps|momentum|nobias|channels|layerscale|droppath)\b",
    r"pool [^;]*\b(pad|ceil|to)\b",
    r"{[^}]*{",  # a block in a block
    r"\b(product|concat|upsample|convtranspose)\b",
)))
# 25.1: those of contract 9, and its words.
NINTH = {
    "tokens": "",
    "decay_on": "weights",
    "lr_min": 0,
    "lora": "",
    "attention_arith": "float32",
    "group_lengths": 0,
}
NINTH_WORDS = re.compile(r"\b(" + "|".join((
    "embedding",
    "position",
    "attention",
    "gelu-tanh",
    "tied",
    "rmsnorm",
    "pool",
    "recurrent",
)) + r")\b")
# A factor above 1.
NINTH_FACTOR = re.compile(r"\blayerscale ([^ ;|}]+)")
# Words of section 17 in a model text.
SIXTH_WORDS = re.compile(r"\b(batchnorm|groupnorm|layernorm|residual|groups|depthwise|leaky_relu|gelu|silu)\b")
# 17.8
NAMES = ("weight", "bias", "running_mean", "running_var")
ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def quoted(text):
    """11.6: a text in JSON."""
    cells = (ESCAPES.get(c) or (c if c >= " " else f"\\u{ord(c):04x}") for c in text)
    return '"' + "".join(cells) + '"'


def table_text(table):
    """11.6: {"label": ..., "target": ..., "classes": [...], "features": [...]}, or None."""
    if table is None:
        return "null"
    return "{" + ",".join(f"{quoted(key)}:{names_text(table[key])}"
                          for key in ("label", "target", "classes", "values", "features") if key in table) + "}"


def names_text(names):
    if names is None:
        return "null"
    if isinstance(names, str):
        return quoted(names)
    if isinstance(names, dict) and "exact" in names:  # 23.6: a wide column
        return f'{{"name":{names_text(names["name"])},"exact":"{names["exact"]}"}}'
    if isinstance(names, dict) and "dates" in names:  # 23.12
        return f'{{"name":{names_text(names["name"])},"dates":{names_text(names["dates"])}}}'
    if isinstance(names, dict) and "text" in names:  # 25.60
        return f'{{"name":{names_text(names["name"])},"text":{texts.value_text(names["text"])}}}'
    if isinstance(names, dict):  # a category column
        return f'{{"name":{names_text(names["name"])},"categories":{names_text(names["categories"])}}}'
    return "[" + ",".join(names_text(name) for name in names) + "]"


def is_trivial(table):
    """11.6: whether there is nothing to remember."""
    def generic(name, k):
        if isinstance(name, dict):
            return False
        return name in (None, f"f{k}") or re.fullmatch(r"r[0-9]+c[0-9]+", name) is not None
    return (table is None or table["target"] == "index" and table["label"] in (None, "label")
            and all(generic(name, k) for k, name in enumerate(table["features"])))


def json_value(value):
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, np.float32):
        return to_text(value)
    return str(value)


def recipe_text(recipe):
    """11.1, 11.5, 11.8, 11.9, 17.1, 23.1: the recipe, a dictionary with the keys of 11.1 but `contract`, and any
    of the others."""
    third = {key: recipe.get(key, default) for key, default in THIRD.items()}
    more = {key: recipe.get(key, default) for key, default in MORE.items()}
    if is_trivial(more["table"]):
        more["table"] = None
    second = more != MORE or recipe["loss"] not in ("cross-entropy", "mse")
    fourth = {key: recipe.get(key, default) for key, default in FOURTH.items()}
    sixth = {key: recipe[key] for key, default in SIXTH.items() if recipe.get(key, default) != default}
    seventh = {key: recipe[key] for key, default in SEVENTH.items() if recipe.get(key, default) != default}
    eighth = {key: recipe[key] for key, default in EIGHTH.items() if recipe.get(key, default) != default}
    ninth = {key: recipe[key] for key, default in NINTH.items() if recipe.get(key, default) != default}
    assert (set(recipe) - set(MORE) - set(THIRD) - set(FOURTH) - FIFTH - set(SIXTH) - set(SEVENTH) - set(EIGHTH) - set(NINTH)
            == set(KEYS) - {"contract"})
    integer_pixels = "shape" in recipe and recipe["arith"] != "f32"
    words = SIXTH_WORDS.search(recipe["model"])
    later = recipe["scale"] in ("channel", "minmax", "robust")
    is_sixth = sixth or words or later or integer_pixels
    last = recipe["model"].split(";")[-1].strip()
    is_eighth = "exponential" in recipe["schedule"] + recipe.get("stages", "") or more["task"] in ("segment", "multilabel") or last.startswith("conv ") or augment.is_eighth(recipe.get("augment", "")) or EIGHTH_WORDS.search(recipe["model"]) or len(re.findall("[;|}]", recipe["model"])) + 1 > 255
    recipe = {**recipe, "contract": 9 if ninth or "lr-min" in recipe.get("stages", "") or eighth.get("new_last") == 2 or not re.fullmatch(r"(0\.\.\d+)?", eighth.get("freeze", "")) or texts.columns_of(more["table"]) or NINTH_WORDS.search(recipe["model"])
              or any(float(x) > 1 for x in NINTH_FACTOR.findall(recipe["model"])) else 8 if eighth or is_eighth else 7 if seventh else 6 if is_sixth else 5 if "shape" in recipe else 4 if fourth != FOURTH else
              3 if third != THIRD else 2 if second else 1}
    pairs = [f'"{key}":{json_value(recipe[key])}' for key in KEYS]
    if recipe["contract"] >= 2:
        pairs += [f'"{key}":{table_text(value) if key == "table" else json_value(value)}'
                  for key, value in more.items()]
    if recipe["contract"] >= 3:
        pairs += [f'"{key}":{names_text(value)}' for key, value in third.items()]
    if recipe["contract"] >= 4:
        pairs += [f'"{key}":{names_text(value)}' for key, value in fourth.items()]
    if recipe["contract"] >= 5:
        pairs.append(f'"shape":{names_text(recipe.get("shape", ""))}')
    pairs += [f'"{key}":{json_value(value)}' for key, value in sixth.items()]
    pairs += [f'"{key}":{names_text(value)}' for key, value in seventh.items()]
    pairs += [f'"{key}":{json_value(value)}' for key, value in eighth.items()]
    pairs += [f'"{key}":{json_value(value)}' for key, value in ninth.items()]
    return "{" + ",".join(pairs) + "}"


def model_bytes(recipe, tensors):
    """12.1, 12.2: the file; `tensors` is a list of (name, array of float32) in its order."""
    escaped = recipe_text(recipe).replace("\\", "\\\\").replace('"', '\\"')
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


def to_file(layer):
    """16.9: the weights as the file has them."""
    if layer.window and layer.window.kind == "convtranspose":  # 24.42
        return np.ascontiguousarray(layer.weight[:, ::-1, ::-1].transpose(3, 0, 1, 2))
    if layer.window:
        return np.ascontiguousarray(layer.weight.transpose(0, 3, 1, 2))
    channels, height, width = layer.shape
    own = layer.weight.reshape(-1, height, width, channels)
    return np.ascontiguousarray(own.transpose(0, 3, 1, 2)).reshape(layer.weight.shape)


def from_file(layer, array):
    """The other way."""
    if layer.window and layer.window.kind == "convtranspose":
        return np.ascontiguousarray(array.transpose(1, 2, 3, 0)[:, ::-1, ::-1])
    if layer.window:
        return np.ascontiguousarray(array.transpose(0, 2, 3, 1))
    own = array.reshape(-1, *layer.shape)
    return np.ascontiguousarray(own.transpose(0, 2, 3, 1)).reshape(array.shape)


def tensors_of(layers, left_out, stats, target=None, fill=None, offsets=None, idf=None):
    """12.2: names and arrays; 25.87: without the layers that are `left_out`; `stats` is (mean, deviation, inverse) or None, `target` is (mean,
    deviation) of real labels or None, `fill` that of 2.6 or None."""
    tensors = []
    for l, layer in enumerate(layers):
        if left_out[l]:
            continue
        if layer.normalises:
            tensors += [(f"layer{l}.{name}", array) for name, array in zip(NAMES, layer.arrays)]
        elif layer.has_parameters:
            tensors.append((f"layer{l}.weight", to_file(layer)))
            if layer.biased:
                tensors.append((f"layer{l}.bias", layer.bias))
    if stats is not None:
        tensors.append(("scale.mean", stats[0]))
        tensors.append(("scale.deviation", stats[1]))
    if fill is not None:
        tensors.append(("table.fill", fill))
    if offsets:  # 23.6
        tensors.append(("table.offset", np.array([offsets[k] for k in sorted(offsets)], np.float32)))
    if idf:  # 25.64
        tensors.append(("table.idf", np.concatenate(idf)))
    if target is not None:
        tensors.append(("target.mean", target[0]))
        tensors.append(("target.deviation", target[1]))
    return tensors


def tensors_in(path):
    """12.1, 12.2: the tensors of a model file, by their names."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = file.read()
    del header["__metadata__"]
    return {name: np.frombuffer(body[slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
            for name, t in header.items()}
