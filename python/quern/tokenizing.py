"""Tokenizers: texts as numbers, and back."""

import contextlib
import ctypes as C
import os

from ._library import call, library, new, owned
from ._library import text as _text


@contextlib.contextmanager
def _opened(corpus, column, threads):
    """The documents of files, or of a column of tables."""
    paths = [corpus] if isinstance(corpus, (str, os.PathLike)) else list(corpus)
    names = (C.c_char_p * max(len(paths), 1))(*map(_text, paths))
    documents = new("qn_corpus_open", names, len(paths), None if column is None else _text(column), threads or 0)
    try:
        yield documents
    finally:
        library().qn_corpus_close(documents)


class Tokenizer:
    """From texts to the numbers of their tokens, and back. It never changes, and what it gives does
    not depend on the number of threads.

    Parameters
    ----------
    which : str
        ``"bytes"``, ``"chars"``, ``"words"``, ``"words:20000"``, ``"bpe:8000"``,
        ``"bpe:tokenizer.json"``, ``"wordpiece:tokenizer.json"``, ``"unigram:tokenizer.json"`` or
        ``"file:saved.json"`` (docs/tokens.md).
    corpus : bytes or str, path, or list of paths, optional
        From which ``chars``, ``words`` and ``bpe:N`` learn their vocabulary: bytes are a text, a
        str or a path is the name of a file.
    text : str, optional
        The files are tables: the documents are the texts of this column.
    threads : int, optional
        Cores of the CPU. They do not change the result.

    Examples
    --------
    >>> from quern import Tokenizer
    >>> t = Tokenizer("chars", b"hello")
    >>> t.encode("hole")
    array([1, 3, 2, 0], dtype=uint32)
    >>> t.decode([1, 0, 2, 2, 3])
    'hello'
    """

    def __init__(self, which, corpus=None, *, text=None, threads=None):
        if isinstance(corpus, (bytes, bytearray, memoryview)):
            corpus = bytes(corpus)
            address = new("qn_tokenizer_learn", _text(which), corpus, len(corpus), threads or 0)
        elif corpus is None:
            address = new("qn_tokenizer_open", _text(which), None, 0, threads or 0)
        else:
            with _opened(corpus, text, threads) as documents:
                address = new("qn_tokenizer_from_corpus", _text(which), documents, threads or 0)
        self._take(address, threads)

    def _take(self, address, threads=None):
        self._address = address
        self._threads = threads or 0
        self._release = owned(self, "qn_tokenizer_free", address)

    @classmethod
    def from_json(cls, json):
        """A tokenizer from the text that `json` gave, or from that of a tokenizer.json."""
        made = cls.__new__(cls)
        whole = _text(json)
        made._take(new("qn_tokenizer_from_json", whole, len(whole)))
        return made

    @property
    def kind(self):
        """The kind: "bytes", "chars" and so on."""
        return library().qn_tokenizer_kind(self._address).decode()

    @property
    def size(self):
        """How many tokens its vocabulary has."""
        return library().qn_tokenizer_size(self._address)

    def __len__(self):
        return self.size

    @property
    def unknown(self):
        """The number of the token for all that the vocabulary lacks; None where every text can be
        encoded."""
        number = library().qn_tokenizer_unknown(self._address)
        return None if number == self.size else number

    @property
    def json(self):
        """Its text, from which `from_json` makes it again. Of ``bpe`` it is a tokenizer.json."""
        return library().qn_tokenizer_json(self._address, None).decode()

    @property
    def digest(self):
        """The SHA-256 of that text."""
        return library().qn_tokenizer_digest(self._address).decode()

    @property
    def frame(self):
        """What a whole text has around it by the post-processor of a tokenizer.json, such as [CLS]
        and [SEP]: the tokens before it and those after it."""
        before, after = C.c_uint32(), C.c_uint32()
        numbers = library().qn_tokenizer_frame(self._address, before, after)
        found = numbers[:before.value + after.value]
        return found[:before.value], found[before.value:]

    def encode(self, text, *, special=False):
        """The numbers of a text's tokens, as an array of uint32.

        Parameters
        ----------
        text : str or bytes
            A str is encoded as UTF-8; bytes may be anything.
        special : bool
            Also those of `frame`.
        """
        if special:
            import numpy as np

            before, after = self.frame
            return np.concatenate([before, self.encode(text), after]).astype(np.uint32)
        import numpy as np

        whole = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(memoryview(text))
        tokens = new("qn_tokenizer_encode", self._address, whole, len(whole), self._threads)
        try:
            count = library().qn_tokens_count(tokens)
            if not count:
                return np.zeros(0, np.uint32)
            return np.ctypeslib.as_array(library().qn_tokens_numbers(tokens), (count,)).copy()
        finally:
            library().qn_tokens_free(tokens)

    def decode_bytes(self, tokens):
        """The bytes of tokens, in any array or list of whole numbers."""
        import numpy as np

        given = np.asarray(tokens)
        if given.size and given.dtype.kind not in "ui":
            raise TypeError(f"tokens are whole numbers, and not {given.dtype}")
        if given.size and (given.min() < 0 or given.max() >= 1 << 32):
            raise ValueError("a token is not from 0 to 2^32 - 1")
        numbers = np.ascontiguousarray(given.reshape(-1), np.uint32)
        address = numbers.ctypes.data_as(C.POINTER(C.c_uint32))
        size = C.c_size_t()
        call("qn_tokenizer_decode", self._address, address, len(numbers), None, 0, size)
        made = C.create_string_buffer(size.value + 1)
        call("qn_tokenizer_decode", self._address, address, len(numbers), made, size.value, size)
        return made.raw[:size.value]

    def decode(self, tokens):
        """The text of tokens. Bytes that are not UTF-8 become U+FFFD; `decode_bytes` keeps them."""
        return self.decode_bytes(tokens).decode("utf-8", "replace")

    def save(self, path):
        """Writes its text to a file. Of ``bpe`` the package `tokenizers` reads it, too."""
        call("qn_tokenizer_save", self._address, _text(path))

    def write(self, corpus, output, *, text=None):
        """Encodes files, each by itself, to a file of numbers that ends in .npy or .bin.

        Parameters
        ----------
        corpus : path or list of paths
            Files, folders or patterns.
        output : path
            The file to write.
        text : str, optional
            The files are tables: the texts of this column are encoded, each by itself.

        Returns
        -------
        int
            How many tokens it has. NumPy reads it: ``numpy.load(output, mmap_mode="r")``, or
            ``numpy.memmap(output, numpy.uint16)`` for .bin.
        """
        count = C.c_uint64()
        with _opened(corpus, text, self._threads) as documents:
            call("qn_tokenizer_write_corpus", self._address, documents, self._threads, _text(output), count)
        return count.value

    @classmethod
    def train_bpe(cls, corpus, size=8000, *, threads=None):
        """Learns a byte-level BPE with `size` tokens from bytes or files, as ``"bpe:8000"`` does."""
        return cls(f"bpe:{int(size)}", corpus, threads=threads)

    def __repr__(self):
        return f"<quern.Tokenizer {self.kind}, {self.size} tokens>"
