"""JAX with convolutions, NHWC: a whole epoch under one jit, the steps in a lax.scan."""

import cnnlib
import jax_mlp
import numpy as np
import peerlib


class JaxCnn(jax_mlp.JaxScan, cnnlib.Cnn):
    name = "jax"
    devices = ("cpu",)

    def version(self):
        return f"jax {self.jax.__version__}, one jit an epoch (lax.scan), NHWC"

    def weights(self, layers, image, random):
        """First parameters of a list of layers, in the order in which `forward` takes them."""
        found = []
        for layer in layers:
            if layer["kind"] == "residual":
                found += self.weights(layer["main"], image, random)
                found += self.weights(layer["shortcut"], image, random)
            elif layer["kind"] == "batchnorm":
                found += [np.ones(image[0], np.float32), np.zeros(image[0], np.float32)]
            elif layer["kind"] in ("conv", "dense"):
                area = image[1] * image[2] if layer["kind"] == "dense" else np.prod(layer["kernel"])
                fan_in = int(area) * image[0]
                scale = np.sqrt(6.0 / fan_in) / np.sqrt(2.0)
                shape = ((fan_in, layer["out"]) if layer["kind"] == "dense"
                         else (*layer["kernel"], image[0], layer["out"]))
                found += [random.uniform(-scale, scale, shape).astype(np.float32),
                          np.zeros(layer["out"], np.float32)]
            image = cnnlib.after(layer, image)
        return found

    def forward(self, layers, parameters, x):
        """Takes the parameters that it uses from the list's front."""
        jnp, lax = self.jax.numpy, self.jax.lax
        for layer in layers:
            kind = layer["kind"]
            if kind == "conv":
                weights, bias = parameters.pop(0), parameters.pop(0)
                pad = [(p, p) for p in layer["pad"]]
                x = lax.conv_general_dilated(x, weights, layer["stride"], pad,
                                             dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias
            elif kind == "maxpool":
                x = lax.reduce_window(x, -jnp.inf, lax.max, (1, *layer["kernel"], 1),
                                      (1, *layer["stride"], 1), "VALID")
            elif kind == "globalpool":
                x = x.mean((1, 2), keepdims=True)
            elif kind == "batchnorm":
                gamma, beta = parameters.pop(0), parameters.pop(0)
                mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
                x = (x - mean) * lax.rsqrt(variance + 1e-5) * gamma + beta
            elif kind == "dense":
                x = x.reshape(len(x), -1) @ parameters.pop(0) + parameters.pop(0)
            else:
                main = self.forward(layer["main"], parameters, x)
                x = main + self.forward(layer["shortcut"], parameters, x)
            if layer["activation"] in ("relu", "tanh", "sigmoid"):
                x = {"relu": self.jax.nn.relu, "tanh": jnp.tanh,
                     "sigmoid": self.jax.nn.sigmoid}[layer["activation"]](x)
        return x

    def logits(self, parameters, images):
        return self.forward(self.layers, list(parameters), images)

    def begin(self, images, labels, batch, seed):
        jax = self.jax
        self.layers, image = self.network_of()
        pictures = np.ascontiguousarray(images.reshape(-1, *image).transpose(0, 2, 3, 1))
        self.images = jax.numpy.asarray(pictures)
        self.labels = jax.numpy.asarray(labels.astype(np.int32))
        self.batch, self.steps = batch, len(labels) // batch
        self.key = jax.random.PRNGKey(seed)
        random = np.random.default_rng(seed)
        parameters = [jax.numpy.asarray(a) for a in self.weights(self.layers, image, random)]
        self.state = parameters, [jax.numpy.zeros_like(p) for p in parameters]
        self.prepare()

    def loss(self):
        first = self.images[:1024], self.labels[:1024]  # a large batch would take much memory
        return float(self.mean_loss(self.state[0], *first))


if __name__ == "__main__":
    peerlib.run(JaxCnn)
