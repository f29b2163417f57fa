"""Stands for PyTorch where it is not installed, so that tests reach the peers of bench/.

Tensors are NumPy's. Networks do not learn: what each gives for an image is its first 10 inputs, and the
loss is halved by each step of an optimiser. A name that is missing here is an error of the peer.
"""

import contextlib
import sys
import types

import numpy as np

STEPS = []
WITH_WEIGHTS = "Conv2d", "Linear", "BatchNorm2d"


class Tensor(np.ndarray):
    def to(self, device=None, memory_format=None):
        return self

    def split(self, count):
        return [self[i:i + count] for i in range(0, len(self), count)]

    def tensor_split(self, parts):
        return np.array_split(self, parts)

    def copy_(self, other):
        self[...] = other

    def cpu(self):
        return self

    def numpy(self):
        return self.view(np.ndarray)

    def backward(self):
        pass


class Parameter:
    def copy_(self, values):
        pass

    def dim(self):
        return 2

    def detach(self):
        return self

    clone = zero_ = detach


class Module:
    def __init__(self, *parts, **options):
        self.parts = parts
        self.weight, self.bias, self.running_mean, self.running_var = (Parameter() for _ in range(4))

    def __call__(self, x):
        return x.reshape(len(x), -1)[:, :10]

    def children(self):
        return [part for part in [*self.parts, *vars(self).values()] if isinstance(part, Module)]

    def modules(self):
        return [self, *(m for part in self.children() for m in part.modules())]

    def parameters(self):
        return [p for m in self.modules() if type(m).__name__ in WITH_WEIGHTS for p in (m.weight, m.bias)]

    def to(self, device, memory_format=None):
        return self

    def eval(self):
        return self

    train = eval

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        assert state == {}


class CrossEntropyLoss:
    def __call__(self, outputs, labels):
        assert outputs.shape == (len(labels), 10)
        return from_numpy(np.array(2.3 * 0.5 ** len(STEPS)))


class Sgd:
    def __init__(self, parameters, rate, momentum, fused):
        groups = [g if isinstance(g, dict) else {"params": [g]} for g in parameters]
        self.param_groups = [{"lr": rate, **group} for group in groups]
        self.state = {p: {"momentum_buffer": Parameter()} for group in groups for p in group["params"]}

    def zero_grad(self, set_to_none):
        pass

    def step(self=None):
        STEPS.append(1)


class Stream:
    def wait_stream(self, other):
        pass


class Graph:
    replay = Sgd.step


def nothing(*_, **__):
    return contextlib.nullcontext()


def from_numpy(array):
    return array.view(Tensor)


def arange(count, device=None, generator=None):
    return from_numpy(np.arange(count))


class Generator:
    """Of random numbers, of which randperm takes none here."""

    def manual_seed(self, seed):
        return self


def save(state, path):
    open(path, "wb").close()


def load(path, device, weights_only):
    return {}


def module(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)
    return sys.modules[name]


__version__ = "0 (stand-in)"
bfloat16 = channels_last = None
manual_seed = set_num_threads = set_num_interop_threads = set_float32_matmul_precision = nothing
autocast = inference_mode = no_grad = nothing
randperm = arange
compile = lambda function, dynamic: function
optim = types.SimpleNamespace(SGD=Sgd)
cuda = types.SimpleNamespace(is_available=lambda: True, synchronize=nothing, Stream=Stream, current_stream=Stream,
                             stream=nothing, graph=nothing, CUDAGraph=Graph)
layers = ("AdaptiveAvgPool2d", "BatchNorm2d", "Conv2d", "Flatten", "Linear", "MaxPool2d", "ReLU", "ReLU6", "Sequential", "Sigmoid",
          "Tanh")
nn = module("torch.nn", Module=Module, CrossEntropyLoss=CrossEntropyLoss,
            **{name: type(name, (Module,), {}) for name in layers})
nn.parallel = module("torch.nn.parallel", DistributedDataParallel=lambda model, gradient_as_bucket_view: model)
onnx = types.SimpleNamespace(export=lambda module, inputs, path, verbose: open(path, "wb").close())
distributed = module("torch.distributed", is_gloo_available=lambda: True, init_process_group=nothing)
