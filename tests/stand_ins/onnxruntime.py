"""Stands for ONNX Runtime where it is not installed: what a network gives for an image is its first 10
inputs."""

import types

SessionOptions = types.SimpleNamespace


class InferenceSession:
    def __init__(self, path, choices, providers):
        assert choices.intra_op_num_threads == 1 and providers == ["CPUExecutionProvider"]

    def get_inputs(self):
        return [types.SimpleNamespace(name="x")]

    def run(self, outputs, inputs):
        return [inputs["x"].reshape(1, -1)[:, :10]]
