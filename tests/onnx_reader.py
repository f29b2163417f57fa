"""A reader of ONNX files that needs neither onnx nor onnxruntime, and an evaluation of their graphs in
NumPy, in doubles: what the operators mean by ONNX's own specification, for those that Quern writes."""

import struct
from math import erf

import numpy as np


def fields(content):
    """The fields of a protobuf message: pairs of a number and an integer, or bytes."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = content[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(content):
        key = varint()
        if key & 7 == 0:
            value = varint()
            value -= (value >> 63) << 64  # int64
        else:
            size = {1: 8, 2: None, 5: 4}[key & 7]
            size = varint() if size is None else size
            assert at + size <= len(content)
            value, at = content[at:at + size], at + size
        found.append((key >> 3, value))
    return found


def of(message, field):
    return [value for number, value in message if number == field]


def text(message, field):
    return of(message, field)[0].decode()


def tensor(content):
    """Name and array of a TensorProto."""
    m = fields(content)
    kind = of(m, 2)[0]
    if kind == 7:
        values = np.array(of(m, 7), np.int64)
    elif of(m, 9):
        values = np.frombuffer(of(m, 9)[0], "<f4").astype(float)
    else:
        values = np.array([struct.unpack("<f", v)[0] for v in of(m, 4)])
    return text(m, 8), values.reshape(of(m, 1))


def attribute(content):
    m = fields(content)
    kind = of(m, 20)[0]
    value = {3: lambda: text(m, 4), 1: lambda: struct.unpack("<f", of(m, 2)[0])[0], 2: lambda: of(m, 3)[0], 7: lambda: of(m, 8)}[kind]()
    return text(m, 1), value


class Graph:
    """`inputs` and `outputs`: shapes by name, with None for any number. `notes`: the metadata."""

    def __init__(self, content):
        model = fields(content)
        graph = fields(of(model, 7)[0])
        self.ir = of(model, 1)[0]
        self.opsets = [(text(fields(o), 1), of(fields(o), 2)[0]) for o in of(model, 8)]
        self.notes = {text(fields(n), 1): text(fields(n), 2) for n in of(model, 14)}
        self.constants = dict(map(tensor, of(graph, 5)))
        self.nodes = []
        for node in map(fields, of(graph, 1)):
            self.nodes.append((text(node, 4), [i.decode() for i in of(node, 1)], text(node, 2),
                               dict(map(attribute, of(node, 5)))))
        self.inputs, self.outputs = ({text(fields(v), 1): self.shape(fields(v)) for v in of(graph, field)}
                                     for field in (11, 12))

    @staticmethod
    def shape(value):
        kind = fields(of(fields(of(value, 2)[0]), 1)[0])
        sides = [fields(d) for d in of(fields(of(kind, 2)[0]), 1)]
        return tuple(of(s, 1)[0] if of(s, 1) else None for s in sides)

    def run(self, x):
        """The values of all outputs."""
        values = {**self.constants, "input": np.asarray(x, float)}
        for op, inputs, output, given in self.nodes:
            assert output not in values, "a name twice"
            values[output] = OPERATORS[op](*[values[name] if name else None for name in inputs], **given)
        return {name: values[name] for name in self.outputs}


def windows(x, shape, strides, dilations=(1, 1)):
    """items x channels x rows x columns x taps of what each output pixel reads."""
    reach = [d * (k - 1) + 1 for k, d in zip(shape, dilations)]
    every = np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
    return every[:, :, ::strides[0], ::strides[1], ::dilations[0], ::dilations[1]]


def conv(x, w, b=None, *, dilations, group, kernel_shape, pads, strides):
    x = padded(x, pads)
    parts = [np.einsum("ncyxij,ocij->noyx", windows(part, kernel_shape, strides, dilations), kernel)
             for part, kernel in zip(np.split(x, group, 1), np.split(w, group))]
    return np.concatenate(parts, 1) + (0 if b is None else b[:, None, None])


def conv_transpose(x, w, b=None, *, dilations, kernel_shape, output_padding, pads, strides):
    """What each input pixel adds to the output, which is cut at last."""
    size = [(x.shape[2 + d] - 1) * strides[d] + dilations[d] * (kernel_shape[d] - 1) + 1 + output_padding[d] for d in (0, 1)]
    out = np.zeros((len(x), w.shape[1], *size))
    for y, i, k, j in np.ndindex(x.shape[2], kernel_shape[0], x.shape[3], kernel_shape[1]):
        out[:, :, y * strides[0] + i * dilations[0], k * strides[1] + j * dilations[1]] += x[:, :, y, k] @ w[:, :, i, j]
    out = out[:, :, pads[0]:size[0] - pads[2], pads[1]:size[1] - pads[3]]
    return out if b is None else out + b[:, None, None]


def padded(x, pads, value=0):
    return np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=value)


def average_pool(x, kernel_shape, pads, strides, count_include_pad=0):
    sums = windows(padded(x, pads), kernel_shape, strides).sum((4, 5))
    inside = windows(padded(np.ones_like(x), pads, count_include_pad), kernel_shape, strides)
    return sums / inside.sum((4, 5))


def each(vector, x):
    return vector.reshape(-1, *[1] * (x.ndim - 2))


def instance_norm(x, weight, bias, epsilon):
    axes = tuple(range(2, x.ndim))
    standard = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    return standard * each(weight, x) + each(bias, x)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def reshape(x, shape):
    return x.reshape([x.shape[k] if side == 0 else side for k, side in enumerate(shape)])


def resize(x, region, scales, coordinate_transformation_mode, mode, nearest_mode):
    if mode == "linear":
        assert coordinate_transformation_mode == "half_pixel"
        for axis, scale in enumerate(scales):
            n = x.shape[axis]
            place = np.clip((np.arange(int(n * scale)) + 0.5) / scale - 0.5, 0, n - 1)
            first = place.astype(int)
            share = (place - first).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
            x = np.take(x, first, axis) * (1 - share) + np.take(x, np.minimum(first + 1, n - 1), axis) * share
        return x
    assert (region, coordinate_transformation_mode, mode, nearest_mode) == (None, "asymmetric", "nearest", "floor")
    for axis, scale in enumerate(scales):
        x = np.take(x, np.floor(np.arange(int(x.shape[axis] * scale)) / scale).astype(int), axis)
    return x


def unrolled(step):
    """LSTM or GRU in one direction: the states [positions][1][items][channels], 0 from an item's length on."""
    def states(x, w, r, b, lengths=None, *, hidden_size, direction, **given):
        out, gates = np.zeros((len(x), 1, x.shape[1], hidden_size)), len(w[0]) // hidden_size
        b = b[0].reshape(2, gates, hidden_size)
        for i in range(x.shape[1]):
            length = len(x) if lengths is None else int(lengths[i])
            kept = [np.zeros(hidden_size)] * 2
            for t in range(length) if direction == "forward" else range(length - 1, -1, -1):
                outside = (w[0] @ x[t, i]).reshape(gates, -1) + b[0]
                inside = (r[0] @ kept[0]).reshape(gates, -1) + b[1]
                kept = step(outside, inside, *kept, **given)
                out[t, 0, i] = kept[0]
        return out
    return states


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(outside, inside, state, cell):
    i, o, f = sigmoid((outside + inside)[:3])
    cell = f * cell + i * np.tanh(outside[3] + inside[3])
    return o * np.tanh(cell), cell


def gru_step(outside, inside, state, unused, linear_before_reset):
    assert linear_before_reset == 1
    z, r = sigmoid((outside + inside)[:2])
    return (1 - z) * np.tanh(outside[2] + r * inside[2]) + z * state, unused


OPERATORS = {
    "LSTM": unrolled(lstm_step), "GRU": unrolled(gru_step),
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide,
    "Equal": np.equal, "Greater": np.greater, "Less": np.less, "Min": np.minimum, "Max": np.maximum, "Tile": np.tile, "Where": np.where, "IsNaN": np.isnan,
    "Relu": lambda x: np.maximum(x, 0), "Tanh": np.tanh, "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Clip": lambda x, low, high: np.clip(x, low, high),
    "HardSigmoid": lambda x, alpha, beta: np.clip(x * alpha + beta, 0, 1),
    "LeakyRelu": lambda x, alpha: np.where(x < 0, x * alpha, x), "Erf": np.vectorize(erf),
    "Resize": resize, "MatMul": np.matmul, "Transpose": lambda x, perm: x.transpose(perm),
    "Gather": lambda x, indices, axis=0: np.take(x, indices, axis),
    "Softmax": softmax, "Identity": lambda x: x, "Reshape": reshape,
    "Flatten": lambda x: x.reshape(len(x), -1),
    "Gemm": lambda a, b, c=0, *, transB: a @ b.T + c if transB else a @ b + c,
    "Conv": conv, "ConvTranspose": conv_transpose,
    "MaxPool": lambda x, kernel_shape, pads, strides:
        windows(padded(x, pads, -np.inf), kernel_shape, strides).max((4, 5)),
    "AveragePool": average_pool,
    "GlobalMaxPool": lambda x: x.max((2, 3), keepdims=True),
    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdims=True),
    "BatchNormalization": lambda x, weight, bias, mean, variance, epsilon:
        (x - each(mean, x)) / np.sqrt(each(variance, x) + epsilon) * each(weight, x) + each(bias, x),
    "InstanceNormalization": instance_norm,
    "ArgMax": lambda x, axis, keepdims: x.argmax(axis, keepdims=bool(keepdims)),
    "ReduceMax": lambda x, axes, keepdims=1: x.max(tuple(axes), keepdims=bool(keepdims)),
    "ReduceMean": lambda x, axes, keepdims: x.mean(tuple(axes), keepdims=bool(keepdims)), "Sqrt": np.sqrt,
    "Cast": lambda x, to: x.astype({1: float, 6: np.int32, 7: np.int64, 9: bool}[to]),
    "Concat": lambda *parts, axis: np.concatenate(parts, axis),
    "Slice": lambda x, first, end, axis: np.take(x, range(first[0], end[0]), axis[0]),
}
