"""Generation: models of next tokens continue texts."""

import ctypes as C
import dataclasses

from . import _abi, ranks
from ._library import assign, call, library, owned, sized, text
from ._options import fill_compute
from .errors import UsageError

_ENDS = {1: "length", 2: "end", 3: "stop"}
_OPTIONS = ("tokens", "answers", "temperature", "top_k", "top_p", "repetition", "seed", "chat", "system",
            "log_probabilities", "batch")


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a model adds to a prompt; `str(answer)` is its text.

    Attributes
    ----------
    text : str
        Without a text of `stop`, and without a token that ends texts.
    tokens, prompt_tokens : list of int
        Those of the answer, and those that the network read first.
    end : str
        Why it ended: "length", "end" (a token that ends a text) or "stop".
    slid : bool
        Whether prompt and answer became longer than the model's context.
    log_probabilities : list of float or None
        Of each token, before temperature and other options.
    """

    text: str
    tokens: list
    prompt_tokens: list
    end: str
    slid: bool
    log_probabilities: list = None

    def __str__(self):
        return self.text


class _Generator:
    """The library's generator, step by step."""

    def __init__(self, model, prompts, options, stop, cluster=None):
        self._model, self._kept, own = model, [], sized(_abi.qn_generate_options)
        library().qn_generate_options_init(own)
        compute = sized(_abi.qn_compute)
        self._kept.append(fill_compute(compute, {word: value for word, value in options.items() if word not in _OPTIONS}))
        compute.cluster = cluster
        own.compute = C.pointer(compute)
        for word in _OPTIONS:
            if options.get(word) is not None:
                self._set(own, word, options[word])
        stops = [stop] if isinstance(stop, str) else list(stop)
        own.stop, own.stops = (C.c_char_p * max(len(stops), 1))(*map(text, stops)), len(stops)
        names = (C.c_char_p * max(len(prompts), 1))(*map(text, prompts))
        made = C.c_void_p()
        call("qn_generator_open", model._address, names, len(prompts), own, C.byref(made))
        self._address = made.value
        self._release = owned(self, "qn_generator_close", made.value)

    def _set(self, own, word, value):
        try:
            self._kept.append(assign(own, word, value))
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"{word} cannot be {value!r}") from None

    def step(self):
        more = C.c_int()
        call("qn_generator_step", self._address, more)
        return bool(more.value)

    def __len__(self):
        return library().qn_generator_answers(self._address)

    def raw(self, index):
        found = sized(_abi.qn_answer)
        call("qn_generator_answer", self._address, index, found)
        return found

    def text(self, found, begin=0):
        # Python would end the text at a zero byte, which it may have.
        address = C.c_void_p.from_buffer(found, _abi.qn_answer.text.offset).value
        return C.string_at(address + begin, found.bytes - begin).decode("utf-8", "replace")

    def answer(self, index):
        found = self.raw(index)
        scores = found.log_probabilities[:found.count] if found.log_probabilities else None
        return Answer(self.text(found), found.tokens[:found.count], found.prompt_tokens[:found.prompt_count],
                      _ENDS[found.end], bool(found.slid), scores)


def _texts(prompts):
    if isinstance(prompts, str):
        return [prompts]
    return [prompt if isinstance(prompt, str) else " ".join(str(int(token)) for token in prompt) for prompt in prompts]


def generate(model, prompts, stop, options):
    """For `Model.generate`."""
    running = _Generator(model, _texts(prompts), options, stop, ranks.current())
    while running.step():
        pass
    answers = [running.answer(index) for index in range(len(running))]
    return answers[0] if isinstance(prompts, str) and len(answers) == 1 else answers


def stream(model, prompt, stop, options):
    """For `Model.stream`."""
    running, shown, more = _Generator(model, [prompt], {**options, "answers": 1}, stop), 0, True
    while more:
        more = running.step()
        found = running.raw(0)
        if found.bytes > shown:
            piece, shown = running.text(found, shown), found.bytes
            yield piece
