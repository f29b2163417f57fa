"""Predictions in an application of FastAPI whose threads share one model (docs/serve.md, "From Python").

    pip install fastapi uvicorn pandas
    MODEL=flats.safetensors uvicorn --app-dir examples fastapi_app:app
    curl localhost:8000/predict --json '[{"rooms": 3, "city": "Bern"}]'
"""

import os

import fastapi
import pandas
import quern

app, model = fastapi.FastAPI(), quern.load(os.environ["MODEL"])


@app.post("/predict")
def predict(rows: list[dict]) -> list:
    return model.predict(pandas.DataFrame(rows), threads=1).tolist()
