"""The job of the tests in which ranks die, stop or are cut off: long enough to hit, and with all
that a run does: steps, a validation in each epoch, checkpoints, the model at the end."""

import hashlib
import subprocess
import time
from pathlib import Path

NETWORK = "dense 60 tanh dropout 0.2; dense 10 softmax"
# Kinds of layers with a state or a geometry of their own, and images that change in each epoch.
LAYERS = ("conv 6 5x5 stride 4; batchnorm relu; residual { conv 6 3x3 relu; batchnorm } relu; maxpool 2; "
          "dense 10 softmax")
# The same in integers, and products of floats (groups) between them.
INTEGER_LAYERS = ("conv 8 5x5 stride 4; batchnorm relu; residual { conv 8 3x3 relu; conv 16 3x3 depthwise;"
                  " batchnorm | conv 16 1x1 groups 4 } relu; maxpool 2; conv 12 1x1 tanh; dense 10 softmax")
AUGMENT = ["--augment", "pad 2; crop; flip; cutout 6", "--cutmix", "0.5"]


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class Job:
    """The arguments of one recipe, the digest of its model, and the seconds one process takes. With `freeze` these
    layers are those of a model that was trained before."""

    def __init__(self, quern, folder, items=1000, epochs=30, batch=100, network=NETWORK, grain=10,
                 valid="0.5", every=7, arith="f32", more=(), freeze=""):
        self.quern, self.folder = quern, Path(folder)
        self.images, self.labels = self.folder / "images.idx", self.folder / "labels.idx"
        self.batch, self.epochs, self.every = batch, epochs, every
        self._run("data", "synth", "digits", "--items", items, "--quiet", "-o", self.images,
                  "--labels", self.labels)
        self.recipe = ["--model", network, "--optimizer", "adam", "--schedule", "cosine",
                       "--batch", batch, "--grain", grain, "--valid", valid, "--epochs", epochs,
                       "--arith", arith, *more]
        if freeze:
            start = self.folder / "start"
            self._run("train", *self.data(), "--model", network, "--epochs", 1, "--quiet", "-o", start)
            self.recipe += ["--init-from", start, "--freeze", freeze]
        began = time.monotonic()
        self._run("train", *self.data(), *self.recipe, "--quiet", "-o", self.folder / "alone")
        self.seconds = time.monotonic() - began
        self.digest = digest(self.folder / "alone")

    def _run(self, *args):
        done = subprocess.run([self.quern, *map(str, args)], capture_output=True, text=True,
                              timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr

    def data(self, images=None, labels=None):
        return ["--data", images or self.images, "--labels", labels or self.labels]

    def train(self, out, *more):
        """The words after `quern` that train it into the file `out`, telling of it in JSON."""
        return ["train", *self.data(), *self.recipe, "--json", *more, "-o", out]

    def made(self, out):
        """Whether that file is the model, whole and byte for byte."""
        return Path(out).exists() and digest(out) == self.digest
