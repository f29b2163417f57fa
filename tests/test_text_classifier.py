"""quern.Classifier of texts as tokens."""

import numpy as np
import pytest

from python_package import folder


@pytest.fixture(scope="module")
def q():
    folder()
    import quern
    return quern


def reviews(count=60):
    draw = np.random.default_rng(2)
    kinds = np.array(["bad", "fine"])[np.arange(count) % 2]
    words = [[*draw.choice(["the", "film", "was", "so"], draw.integers(2, 6)), kind, "in", "all"] for kind in kinds]
    return [" ".join(map(str, own)) for own in words], kinds


def classifier(q, **more):
    return q.Classifier("embedding 20 8; pool mean; dense {classes} softmax", tokens="words:20", context=12, epochs=30,
                        batch=10, lr=0.05, **more)


def test_texts_are_classified(q):
    """Of a list or an array."""
    texts, kinds = reviews()
    found = classifier(q).fit(texts, kinds)
    assert found.score(texts, kinds) == 1 and list(found.classes_) == ["bad", "fine"]
    assert found.predict(["so fine", "it was bad"]).tolist() == ["fine", "bad"]
    shown = found.predict_proba(np.array(["the film was fine"]))
    assert shown.shape == (1, 2) and shown[0, 1] > 0.9
    again = classifier(q).fit(np.array(texts)[:, None], kinds)
    assert again.model_.digest == found.model_.digest
    assert q.replay(found.model_, found.data(texts, kinds)).digest == found.model_.digest


def test_weights_and_parameters(q):
    texts, kinds = reviews()
    weights = np.ones(len(texts))
    weights[40:] = 0
    few = classifier(q).fit(texts, kinds, sample_weight=weights)
    assert few.model_.recipe["items"] == 40
    assert few.get_params()["tokens"] == "words:20" and few.get_params()["context"] == 12
    balanced = classifier(q, class_weight={"bad": 3}).fit(texts, kinds)
    assert balanced.model_.digest != classifier(q).fit(texts, kinds).model_.digest


@pytest.mark.parametrize("given, said", [([[1.0, 2.0]], "tokens are those of texts"), ([], "tokens are those of texts"),
                                         (["one", "two", "three"], "y has 2")])
def test_what_is_not_a_text_is_named(q, given, said):
    with pytest.raises((ValueError, q.InputError), match=said):
        classifier(q).fit(given, ["a", "b"])
    with pytest.raises(ValueError, match="use fit"):
        classifier(q).partial_fit(["one", "two"], ["a", "b"], classes=["a", "b"])
    with pytest.raises(q.InputError, match="tokens="):
        q.Classifier().fit([["one"], ["two"]], ["a", "b"])


def test_a_column_of_pandas(q):
    pandas = pytest.importorskip("pandas")
    texts, kinds = reviews()
    found = classifier(q).fit(pandas.Series(texts, name="text"), pandas.Series(kinds))
    assert found.score(pandas.DataFrame({"text": texts}), kinds) == 1
    assert found.model_.digest == classifier(q).fit(texts, kinds).model_.digest
