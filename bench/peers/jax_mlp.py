"""JAX: a whole epoch under one jit, the steps in a lax.scan."""

import functools
import os

import numpy as np

import peerlib


class JaxScan(peerlib.Peer):
    name = "jax"
    devices = ("cpu", "cuda")

    def __init__(self, threads):
        # XLA sizes its pool by the cores the process may use, so the caller's affinity holds it.
        os.environ["JAX_PLATFORMS"] = self.device
        import jax

        # Unless told otherwise a GPU would take TF32 for float32.
        products = "tensorfloat32" if self.tf32 else "highest"
        jax.config.update("jax_default_matmul_precision", products)
        try:
            jax.devices()
        except (AssertionError, RuntimeError):
            raise RuntimeError(f"jax sees no {self.device} device") from None
        self.jax = jax

    def version(self):
        return f"jax {self.jax.__version__}, one jit an epoch (lax.scan)"

    def logits(self, parameters, images):
        *hidden, weights, biases = parameters
        for layer in range(0, len(hidden), 2):
            images = self.jax.numpy.tanh(images @ hidden[layer] + hidden[layer + 1])
        return images @ weights + biases

    def mean_loss(self, parameters, images, labels):
        scores = self.jax.nn.log_softmax(self.logits(parameters, images))
        return -self.jax.numpy.take_along_axis(scores, labels[:, None], 1).mean()

    def update(self, state, images, labels):
        """One step of SGD with momentum; state is (parameters, velocities)."""
        parameters, velocities = state
        gradients = self.jax.grad(self.mean_loss)(parameters, images, labels)
        velocities = [peerlib.MOMENTUM * v + g for v, g in zip(velocities, gradients)]
        parameters = [p - self.rate * v for p, v in zip(parameters, velocities)]
        return parameters, velocities

    def begin(self, images, labels, batch, seed):
        jax = self.jax
        self.images = jax.numpy.asarray(images)
        self.labels = jax.numpy.asarray(labels.astype(np.int32))
        self.batch, self.steps = batch, len(labels) // batch
        self.key = jax.random.PRNGKey(seed)
        parameters = [jax.numpy.asarray(a) for a in peerlib.first_weights(seed, self.sizes)]
        self.state = parameters, [jax.numpy.zeros_like(p) for p in parameters]
        self.prepare()

    def prepare(self):
        self.whole = self.jax.jit(self.scanned, donate_argnums=0)

    def scanned(self, state, key, images, labels):
        """One epoch as one program. A last short batch is left out, so shapes are fixed."""
        order = self.jax.random.permutation(key, len(labels))[: self.steps * self.batch]

        def step(state, chosen):
            return self.update(state, images[chosen], labels[chosen]), None

        return self.jax.lax.scan(step, state, order.reshape(self.steps, self.batch))[0]

    def epoch(self):
        self.key, key = self.jax.random.split(self.key)
        self.state = self.whole(self.state, key, self.images, self.labels)
        self.jax.block_until_ready(self.state)
        return self.steps * self.batch

    def loss(self):
        return float(self.mean_loss(self.state[0], self.images, self.labels))

    def save(self, path):
        with open(path, "wb") as file:
            np.savez(file, *[np.asarray(p) for p in self.state[0]])

    def load(self, path):
        with np.load(path) as arrays:
            self.state = [self.jax.numpy.asarray(arrays[name]) for name in arrays.files], None

    @functools.cached_property
    def classify(self):
        return self.jax.jit(lambda p, x: self.jax.numpy.argmax(self.logits(p, x), axis=1))

    def predict(self, images, batch):
        found = [
            self.classify(self.state[0], images[start : start + batch])
            for start in range(0, len(images), batch)
        ]
        return np.concatenate([np.asarray(part) for part in found])


if __name__ == "__main__":
    peerlib.run(JaxScan)
