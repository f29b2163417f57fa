"""PyTorch and ONNX Runtime predict with the weights of a Quern model, for bench/predict_cnn.py.

    predict_cnn_peer.py torch|onnxruntime one|folder --network TEXT --shape CxHxW --model FILE
                        --images IDX|FOLDER --threads N

Inputs are bytes divided by 256. Prints one JSON object.
"""

import argparse
import json
import pathlib
import statistics
import struct
import sys
import time

import cnnlib
import numpy as np
import peerlib


def tensors(path):
    """The float32 tensors of a safetensors file, by name."""
    raw = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    head = json.loads(raw[8 : 8 + size])
    return {name: np.frombuffer(raw, "<f4", (end - start) // 4, 8 + size + start).reshape(told["shape"]).copy()
            for name, told in head.items() if name != "__metadata__"
            for start, end in [told["data_offsets"]]}


def network(options, last=True):
    """The network in PyTorch, with the weights of the file; without `last` the last layer keeps its first
    ones. Layers with weights have the same order."""
    import torch
    import torch_cnn

    torch.set_num_threads(options.threads)
    peer = torch_cnn.TorchCnn(options.threads)
    peer.text, peer.shape = options.network, options.shape
    module = peer.network().eval()
    found = tensors(options.model)
    numbers = sorted({int(name[5:].split(".")[0]) for name in found if name.startswith("layer")})
    layers = [m for m in module.modules() if isinstance(m, (torch.nn.Conv2d, torch.nn.Linear, torch.nn.BatchNorm2d))]
    if len(numbers) != len(layers):
        sys.exit(f"{len(numbers)} layers in the file, {len(layers)} in the network")
    for number, layer in list(zip(numbers, layers))[:None if last else -1]:
        for word in ("weight", "bias", "running_mean", "running_var"):
            value = found.get(f"layer{number}.{word}")
            if value is not None:
                getattr(layer, word).data = torch.from_numpy(value)
    return torch, module


def timed(predict, images):
    """Milliseconds (median, least) of an image alone, and its classes."""
    times, classes = [], []
    for image in images:
        start = time.perf_counter()
        scores = predict(image[None])
        times.append(1e3 * (time.perf_counter() - start))
        classes.append(int(np.argmax(np.asarray(scores))))
    return {"median_ms": statistics.median(times), "least_ms": min(times), "classes": classes}


def images_of(options):
    shape = tuple(int(n) for n in options.shape.split("x"))
    return peerlib.read_images(options.images)[: options.count].reshape(-1, *shape)


def torch_one(options):
    torch, module = network(options)
    with torch.inference_mode():
        return timed(lambda x: module(torch.from_numpy(x)), images_of(options))


def onnx_one(options):
    import tempfile

    import onnxruntime

    torch, module = network(options)
    images = images_of(options)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/network.onnx"
        torch.onnx.export(module, (torch.from_numpy(images[:1]),), path, verbose=False)
        choices = onnxruntime.SessionOptions()
        choices.intra_op_num_threads = choices.inter_op_num_threads = options.threads
        session = onnxruntime.InferenceSession(path, choices, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return timed(lambda x: session.run(None, {name: x})[0], images)


def torch_folder(options):
    torch, module = network(options)
    from PIL import Image

    files = sorted(p for p in pathlib.Path(options.images).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))

    class Folder(torch.utils.data.Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, i):
            pixels = np.asarray(Image.open(files[i]).convert("RGB"), np.float32) / np.float32(256)
            return torch.from_numpy(pixels).permute(2, 0, 1)

    loader = torch.utils.data.DataLoader(Folder(), batch_size=256, num_workers=options.threads)
    start, classes = time.perf_counter(), []
    with torch.inference_mode():
        for batch in loader:
            classes += module(batch.contiguous(memory_format=torch.channels_last)).argmax(1).tolist()
    return {"seconds": time.perf_counter() - start, "classes": classes, "names": [f"{f.parent.name}/{f.name}" for f in files]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=("torch", "onnxruntime"))
    parser.add_argument("verb", choices=("one", "folder"))
    for word in ("network", "shape", "model", "images"):
        parser.add_argument(f"--{word}", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    try:
        if options.verb == "folder":
            result = torch_folder(options)
        else:
            result = torch_one(options) if options.peer == "torch" else onnx_one(options)
    except ImportError as error:
        result = {"skip": f"cannot be used: {error}"}
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    main()
