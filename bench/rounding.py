"""How large the rounding of each arithmetic is: float32's chains, exact integers, bfloat16.

    python bench/rounding.py --items 256 --grain 32

The network is one that Quern has trained in float32. Each product of one of its training steps is
computed from the same float32 operands in each arithmetic and in float64, which counts as exact
here. Told is the root of the mean square of the difference over that of the result. Rounding of
what lies between the products is the same for all, and left out.

Integers follow docs/exactness.md 15, with float64 holding them: a sum of products of i21 stays below
2^53 here. bfloat16 stands for what matrix units do with it: operands of 8 bits, exact products,
float32 sums.
"""

import json
import pathlib
import tempfile

import common
import numpy as np

BITS = {"i7": 7, "i14": 14, "i21": 21}
WAYS = ["f32", "i21", "i14", "bf16", "i7"]


def step_of(values, bits, axis):
    """2^t of each block (15.2): a block is everything along `axis`, or all with None."""
    greatest = np.abs(values).max(axis=axis, keepdims=True).astype(np.float32)
    raised = greatest.view(np.int32) + (1 << (24 - bits))
    exponent = np.maximum(32, raised >> 23) - 125 - bits
    return np.ldexp(1.0, exponent)


def integers(values, bits, axis):
    """The integers of each block and its power of two."""
    step = step_of(values, bits, axis)
    return np.rint(values.astype(np.float64) / step), step


def bfloat16(values):
    """Rounded to 8 significant bits, ties to even."""
    word = values.astype(np.float32).view(np.uint32)
    kept = word + 0x7FFF + (word >> 16 & 1) & np.uint32(0xFFFF0000)
    return kept.astype(np.uint32).view(np.float32)


def chain(left, right):
    """left (m x k) times right (k x n) as chains of float32 in ascending k. The sum in float64 has
    more than twice the bits, so rounding it once more is nearly always the fma's rounding."""
    acc = np.zeros((left.shape[0], right.shape[1]), np.float32)
    for k in range(left.shape[1]):
        product = left[:, k : k + 1].astype(np.float64) * right[k].astype(np.float64)
        acc = (acc + product).astype(np.float32)
    return acc


def fixed(left, right, bits, blocks):
    """The product from integers. `blocks`: along which axis of each a block runs; None: all of it,
    as in gradients, whose integers are not rounded to float32 on the way."""
    a, ta = integers(left, bits, blocks[0])
    b, tb = integers(right, bits, blocks[1])
    n = a @ b if blocks[0] is None else (a @ b).astype(np.float32)
    return n * ta * tb


def ways(left, right, blocks):
    """The same product in every arithmetic."""
    yield "f32", chain(left, right)
    yield "bf16", chain(bfloat16(left), bfloat16(right))
    for name, bits in BITS.items():
        yield name, fixed(left, right, bits, blocks)


def backward(delta, weights, bits):
    """15.5: the factors of the weights' blocks go into the errors first."""
    w, tw = integers(weights, bits, 1)
    c, tc = integers((delta * tw[:, 0]).astype(np.float32), bits, 1)
    return (c @ w).astype(np.float32) * tc


def size(values):
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))


def error(value, exact):
    return size(value.astype(np.float64) - exact) / size(exact)


def forward(x, layers):
    """Inputs of each layer and the last output, in float64 rounded to float32 where Quern does."""
    inputs = [x]
    for i, (w, b) in enumerate(layers):
        z = inputs[-1].astype(np.float64) @ w.astype(np.float64).T + b
        if i + 1 < len(layers):
            inputs.append(np.tanh(z).astype(np.float32))
    q = np.exp(z - z.max(axis=1, keepdims=True))
    return inputs, (q / q.sum(axis=1, keepdims=True)).astype(np.float32)


def measure(x, labels, layers, grain):
    """Errors of each product of a step, by name and way. Gradients: the mean over the grains."""
    (first, hidden), y = forward(x, layers)
    delta = y.copy()
    delta[np.arange(len(y)), labels] -= 1
    (w1, _), (w2, _) = layers
    rows = {}

    def compare(name, left, right, blocks):
        exact = left.astype(np.float64) @ right.astype(np.float64)
        rows[name] = {way: error(value, exact) for way, value in ways(left, right, blocks)}
        return exact

    compare("z of layer 1", first, w1.T, (1, 0))
    compare("z of layer 2", hidden, w2.T, (1, 0))
    e = compare("e of layer 1", delta, w2, (1, 0))
    for name, bits in BITS.items():  # the blocks of weights run along k, not along the sum
        rows["e of layer 1"][name] = error(backward(delta, w2, bits), e)
    below = (e * (1 - np.square(hidden.astype(np.float64)))).astype(np.float32)
    for name, d, a in (("gradient of layer 1", below, first), ("gradient of layer 2", delta, hidden)):
        grains = []
        for at in range(0, len(x) - grain + 1, grain):
            part = slice(at, at + grain)
            compare(name, np.ascontiguousarray(d[part].T), a[part], (None, None))
            grains.append(rows[name])
        rows[name] = {way: float(np.mean([g[way] for g in grains])) for way in WAYS}
    return rows


def tensors(path):
    """The float32 tensors of a safetensors file."""
    raw = pathlib.Path(path).read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    found = {}
    for name, about in json.loads(raw[8:begin]).items():
        if name != "__metadata__":
            low, high = about["data_offsets"]
            found[name] = np.frombuffer(raw[begin + low : begin + high], "<f4").reshape(about["shape"])
    return found


def main():
    parser = common.options(__doc__.splitlines()[0], threads=[2], rounds=1)
    parser.add_argument("--items", type=int, default=256, help="of the training images, looked at")
    parser.add_argument("--grain", type=int, default=32)
    parser.add_argument("--epochs", type=common.numbers, default=[1, 10], help="of training before")
    chosen = parser.parse_args()
    if not common.quern_version():
        print(f"SKIPPED: no {common.quern_path()}; build it, or name it in QUERN")
        return
    facts = {"quern": common.quern_version(), "network": common.MODEL, "items": chosen.items}
    facts["grain"] = chosen.grain
    sections = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        files, facts["data"] = common.data(scratch)
        images = np.frombuffer(files["train-images"].read_bytes(), np.uint8, offset=16)
        labels = np.frombuffer(files["train-labels"].read_bytes(), np.uint8, offset=8)
        x = images.reshape(len(labels), -1)[: chosen.items].astype(np.float32) / np.float32(255)
        for epochs in chosen.epochs:
            model = scratch / "model.safetensors"
            threads = chosen.threads[0]  # v / 255, as no integers hold it: the usual case
            words = common.training(files, 128, threads, epochs, model, scale="unit")
            common.call(words, threads)
            found = tensors(model)
            layers = [(found[f"layer{i}.weight"], found[f"layer{i}.bias"]) for i in (0, 1)]
            rows = measure(x, labels[: chosen.items], layers, chosen.grain)
            lines = [[name, *(f"{row[way]:.1e}" for way in WAYS)] for name, row in rows.items()]
            text = common.table(["product", *WAYS], lines)
            sections.append((f"Relative error after {epochs} epochs", text, rows))
    common.publish("Rounding of one product", facts, sections, chosen)


if __name__ == "__main__":
    main()
