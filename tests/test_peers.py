"""The clients of Triton and KServe ask a server; they are in .venv-peers (`make peers`)."""

import subprocess
from pathlib import Path

import pytest

import serving
from test_inference import ROWS, place, predicted  # noqa: F401  (`place` is a fixture)

PYTHON = Path(__file__).resolve().parent.parent / ".venv-peers" / "bin" / "python"

TRITON = """
import sys
import numpy as np
import tritonclient.http as triton
client = triton.InferenceServerClient(sys.argv[1])
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("m")
assert [one["name"] for one in client.get_model_metadata("m")["inputs"]] == ["age", "city", "size"]
assert client.get_model_repository_index()[0]["state"] == "READY"
for binary in (False, True):
    columns = {"age": np.array(AGE, "i8"), "city": np.array(CITY, object), "size": np.array(SIZE, "f8")}
    inputs = []
    for name, values in columns.items():
        one = triton.InferInput(name, [len(values), 1], triton.np_to_triton_dtype(values.dtype))
        one.set_data_from_numpy(values.reshape(-1, 1), binary_data=binary)
        inputs.append(one)
    outputs = [triton.InferRequestedOutput(name, binary_data=binary) for name in ("prediction", "outputs")]
    result = client.infer("m", inputs, outputs=outputs, request_id="9")
    assert result.get_response()["id"] == "9"
    assert result.as_numpy("outputs").astype("f4").tolist() == np.array(WANT, "f4").tolist()
    names = [one.decode() if isinstance(one, bytes) else one for one in result.as_numpy("prediction").tolist()]
    assert names == NAMES, names
    for coding, other in (("gzip", "deflate"), ("deflate", "gzip")):
        packed = client.infer("m", inputs, outputs=outputs, request_compression_algorithm=coding, response_compression_algorithm=other)
        assert packed.as_numpy("outputs").tobytes() == result.as_numpy("outputs").tobytes()
client.unload_model("m")
assert not client.is_model_ready("m")
client.load_model("m")
assert client.is_model_ready("m")
try:
    client.infer("none", inputs)
    raise SystemExit("an unknown model was answered")
except triton.InferenceServerException as error:
    assert "there is no model" in str(error), error
print("ok")
"""

KSERVE = """
import asyncio, sys
import numpy as np
from kserve import InferInput, InferRequest, InferenceRESTClient
from kserve.inference_client import RESTConfig
async def main():
    client = InferenceRESTClient(RESTConfig(protocol="v2"))
    base = "http://" + sys.argv[1]
    assert await client.is_server_live(base) and await client.is_server_ready(base)
    assert await client.is_model_ready(base, "m")
    inputs = [InferInput("age", [len(AGE), 1], "INT64", data=AGE), InferInput("city", [len(AGE), 1], "BYTES", data=CITY),
              InferInput("size", [len(AGE), 1], "FP64", data=SIZE)]
    result = await client.infer(base, InferRequest(model_name="m", infer_inputs=inputs), model_name="m")
    found = {one.name: one for one in result.outputs}
    assert np.array(found["outputs"].data, "f4").reshape(-1, 2).tolist() == np.array(WANT, "f4").tolist()
    assert found["prediction"].data == NAMES
    print("ok")
asyncio.run(main())
"""


@pytest.mark.parametrize("script", [TRITON, KSERVE], ids=["triton", "kserve"])
def test_clients(quern, place, script):  # noqa: F811
    if not PYTHON.exists():
        pytest.skip("there is no .venv-peers: make peers")
    want = predicted(place, "a")
    head = "\n".join(f"{name} = {value!r}" for name, value in {
        "AGE": [row["age"] for row in ROWS], "CITY": [row["city"] for row in ROWS], "SIZE": [row["size"] for row in ROWS],
        "WANT": [[float(row["p0"]), float(row["p1"])] for row in want], "NAMES": [row["prediction"] for row in want]}.items())
    with serving.serve(quern, f"m={place / 'a.safetensors'}") as server:
        done = subprocess.run([PYTHON, "-c", head + script, f"{server.host}:{server.port}"], capture_output=True, text=True,
                              timeout=120)
    assert done.stdout == "ok\n", done.stderr[-2000:]
