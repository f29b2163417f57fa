"""What is done to training items, by both programs (docs/exactness.md 24.52 to 24.58)."""

import pytest

from test_oracle import options, sets, train  # noqa: F401

JOBS = {
    "words-colours": (
        "idx",
        {
            "--shape": "3x7x2",
            "--scale": "fraction",
            "--model": "conv 4 3x1 relu; dense 10 softmax",
            "--loss": "cross-entropy",
            "--epochs": 1,
            "--augment": "Jitter saturation 1 hue .5 brightness 0.2; resizedcrop ratio 0.1 2; blur 3 sigma 0.5 2.50;"
                         "pad 1; flip; crop; rotate 180 fill 7 bilinear",
        },
    ),
    # the last batch and its grains are smaller
    "mixup": (
        "idx",
        {"--scale": "unit", "--model": "dense 8 relu dropout 0.2; dense 10 softmax", "--loss": "cross-entropy",
         "--mixup": "0.20", "--smoothing": "0.1", "--batch": 19, "--grain": 6},
    ),
    "mixup-floats": (
        "csv-f32",
        {"--label": "kind", "--scale": "standard", "--model": "dense 4 softmax", "--loss": "cross-entropy",
         "--mixup": "1", "--valid": "0.2", "--epochs": 1},
    ),
    "cutmix": (
        "idx",
        {"--shape": "3x7x2", "--scale": "fraction", "--model": "conv 4 3x1 relu; batchnorm; dense 10 softmax",
         "--loss": "cross-entropy", "--augment": "flip; blur 3", "--cutmix": "1", "--epochs": 1},
    ),
}


@pytest.mark.parametrize("job", JOBS)
def test_model_files_are_the_same(job, sets, tmp_path):  # noqa: F811
    train(options(sets, JOBS[job]), tmp_path / "model.st")
