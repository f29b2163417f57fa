"""JAX: one jit a step, the loop over steps in Python.

XLA's CPU loops keep some thunks from running side by side, so that this form can be the faster
one; the honest peer is the better of the two.
"""

import jax_mlp
import numpy as np
import peerlib


class JaxStep(jax_mlp.JaxScan):
    name = "jax-step"

    def version(self):
        return f"jax {self.jax.__version__}, one jit a step"

    def prepare(self):
        self.random = np.random.default_rng(1)
        self.one = self.jax.jit(self.chosen, donate_argnums=0)

    def chosen(self, state, chosen, images, labels):
        return self.update(state, images[chosen], labels[chosen])

    def epoch(self):
        order = self.random.permutation(len(self.labels)).astype(np.int32)
        used = self.steps * self.batch
        for chosen in order[:used].reshape(self.steps, self.batch):
            self.state = self.one(self.state, chosen, self.images, self.labels)
        self.jax.block_until_ready(self.state)
        return used


if __name__ == "__main__":
    peerlib.run(JaxStep)
