"""A model in ONNX behind FastAPI, for bench/serve.py: POST /predict with a JPEG file or a row as JSON. The file is in the
variable MODEL."""

import io
import json
import os

import fastapi
import numpy as np
import onnxruntime
import PIL.Image

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(os.environ["MODEL"], options, providers=["CPUExecutionProvider"])
INPUT = session.get_inputs()[0]
TYPE = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8}[INPUT.type]
CLASSES = json.loads(session.get_modelmeta().custom_metadata_map.get("class_names", "null"))
OUTPUTS = [one.name for one in session.get_outputs()]
app = fastapi.FastAPI()


def values(body, kind):
    if kind.startswith("image/"):
        pixels = np.asarray(PIL.Image.open(io.BytesIO(body)).convert("RGB"))
        return pixels.transpose(2, 0, 1)[None].astype(TYPE)
    return np.array([[value for value in row.values()] for row in json.loads(body)], TYPE)


@app.post("/predict")
async def predict(request: fastapi.Request):
    item = values(await request.body(), request.headers["content-type"])
    shape = [len(item), *(size for size in INPUT.shape[1:])]
    outputs = session.run(OUTPUTS[:1], {INPUT.name: item.reshape(shape)})[0]
    best = int(outputs[0].argmax())
    return {"prediction": CLASSES[best] if CLASSES else best, "score": float(outputs[0][best])}
