"""scikit-learn's MLPClassifier: partial_fit over the training data is one shuffled epoch."""

import pickle
import warnings

import numpy as np
import peerlib


class Sklearn(peerlib.Peer):
    name = "scikit-learn"

    def __init__(self, threads):
        import sklearn
        import sklearn.neural_network
        import threadpoolctl

        self.sklearn = sklearn
        # Its loop is one thread; the products are the BLAS library's, held to `threads` here.
        self.limit = threadpoolctl.threadpool_limits(threads)
        self.libraries = sorted({pool["internal_api"] for pool in threadpoolctl.threadpool_info()})
        warnings.filterwarnings("ignore", category=UserWarning)

    def version(self):
        return f"scikit-learn {self.sklearn.__version__}, {' + '.join(self.libraries)}"

    def begin(self, images, labels, batch, seed):
        self.images, self.labels = images, labels
        # The input is float32, so the whole estimator works in float32. No L2, no Nesterov.
        self.model = self.sklearn.neural_network.MLPClassifier(
            hidden_layer_sizes=self.sizes[1:-1],
            activation="tanh",
            solver="sgd",
            alpha=0.0,
            batch_size=batch,
            learning_rate_init=self.rate,
            momentum=peerlib.MOMENTUM,
            nesterovs_momentum=False,
            random_state=seed,
        )
        # The estimator makes its weights at its first call, which also learns the classes.
        self.model.partial_fit(images[:batch], labels[:batch], classes=np.arange(self.sizes[-1]))
        for layer, weights in enumerate(peerlib.first_weights(seed, self.sizes)[::2]):
            self.model.coefs_[layer][:] = weights
            self.model.intercepts_[layer][:] = 0
        for velocity in self.model._optimizer.velocities:
            velocity[:] = 0

    def epoch(self):
        self.model.partial_fit(self.images, self.labels)
        return len(self.labels)

    def loss(self):
        rows = np.arange(len(self.labels))
        chances = self.model.predict_proba(self.images)[rows, self.labels]
        return float(-np.log(np.maximum(chances, 1e-30)).mean())

    def save(self, path):
        with open(path, "wb") as file:
            pickle.dump(self.model, file)

    def load(self, path):
        with open(path, "rb") as file:
            self.model = pickle.load(file)

    def predict(self, images, batch):
        starts = range(0, len(images), batch)
        return np.concatenate([self.model.predict(images[s : s + batch]) for s in starts])


if __name__ == "__main__":
    peerlib.run(Sklearn)
