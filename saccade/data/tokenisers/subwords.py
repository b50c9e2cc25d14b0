"""Tokenisers that learn parts of words: BPE and unigram, trained by the `tokenizers` library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from saccade.data.extra import required
from saccade.data.special import NAMES, UNK
from saccade.data.tokenisers.base import Tokeniser, check_size, tokenisers

T = TypeVar("T", bound="SubwordTokeniser")
SPACE = "▁"
HIDDEN = [f"{name}{SPACE}" for name in NAMES]
"""Names of the special ids inside the model, which no text can contain: "<s>" in a text is text."""


class SubwordTokeniser(Tokeniser):
    """Frequent words are whole, rare ones fall into parts; a mark at its first part says that a word begins.

    Signs of punctuation are parted from words, so that "dog" and "dog." share a piece. Only characters that were not
    in the training texts become `<unk>`.

    Args:
        vocab_size: how many ids there may be, the four special ones included.
        lowercase: whether upper case is folded to lower case.
    """

    reserved: ClassVar[str] = SPACE

    def __init__(self, *, vocab_size: int = 8000, lowercase: bool = False) -> None:
        super().__init__(lowercase=lowercase)
        check_size(vocab_size, 1)
        self.vocab_size = vocab_size
        self._model: Any = None

    def fit(self: T, texts: Iterable[str]) -> T:
        alphabet: set[str] = set()

        def normalised() -> Iterator[str]:
            for text in texts:
                text = self.normalise(text)
                alphabet.update(text)
                yield text

        model = self._train(normalised())
        needed = len(alphabet - {" "}) + 1 + len(NAMES)
        if alphabet and needed > self.vocab_size:
            raise ValueError(
                f"vocab_size={self.vocab_size} leaves no room for joined parts: the characters and special ids alone "
                f"are {needed}. Take more, or clean rare characters out of the text."
            )
        self._set(model)
        return self

    def encode(self, text: str) -> list[int]:
        if self._model is None:
            raise RuntimeError(f"This {type(self).__name__} has no vocabulary yet: call fit(texts) first.")
        ids: list[int] = self._model.encode(self.normalise(text)).ids
        return ids

    def join(self, pieces: Iterable[str]) -> str:
        return "".join(pieces).replace(SPACE, " ").strip()

    def touches(self, before: str, piece: str) -> bool:
        return not piece.startswith(SPACE)

    def _train(self, texts: Iterator[str]) -> Any:
        """The trained `tokenizers.Tokenizer`."""
        raise NotImplementedError

    def _set(self, model: Any) -> None:
        self._model = model
        entries = model.get_vocab()
        self._pieces = sorted(entries, key=entries.__getitem__)
        self._pieces[: len(NAMES)] = NAMES

    def _state(self) -> dict[str, Any]:
        return {"model": json.loads(self._model.to_str())}

    def _restore(self, found: dict[str, Any]) -> None:
        self._set(required("tokenizers").Tokenizer.from_str(json.dumps(found["model"])))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_model": None if self._model is None else self._model.to_str()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._model is not None:
            self._model = required("tokenizers").Tokenizer.from_str(self._model)


def empty_tokenizer(model: Any) -> Any:
    """A `tokenizers.Tokenizer` that parts words at spaces and signs of punctuation from words."""
    tokenizers = required("tokenizers")
    parts = tokenizers.pre_tokenizers
    tokenizer = tokenizers.Tokenizer(model)
    words = parts.Metaspace(replacement=SPACE, prepend_scheme="always", split=True)
    signs = parts.Split(tokenizers.Regex(rf"{SPACE}?[\p{{P}}\p{{S}}&&[^{SPACE}_]]+"), "isolated")
    tokenizer.pre_tokenizer = parts.Sequence([words, signs])
    return tokenizer


@tokenisers.register("bpe")
class BpeTokeniser(SubwordTokeniser):
    """Byte-pair encoding over characters: the most frequent pair of neighbours is joined, again and again.

    Args:
        vocab_size: how many ids there may be, the four special ones included.
        min_frequency: how often two parts must meet to be joined.
        lowercase: whether upper case is folded to lower case.

    Reference:
        Sennrich et al. (2016), arXiv:1508.07909.
    """

    kind = "bpe"

    def __init__(self, *, vocab_size: int = 8000, min_frequency: int = 2, lowercase: bool = False) -> None:
        super().__init__(vocab_size=vocab_size, lowercase=lowercase)
        check_size(vocab_size, min_frequency)
        self.min_frequency = min_frequency

    def _train(self, texts: Iterator[str]) -> Any:
        tokenizers = required("tokenizers")
        tokenizer = empty_tokenizer(tokenizers.models.BPE(unk_token=HIDDEN[UNK]))
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=self.vocab_size,
            min_frequency=self.min_frequency,
            special_tokens=HIDDEN,
            initial_alphabet=[SPACE],
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return tokenizer


@tokenisers.register("unigram")
class UnigramTokeniser(SubwordTokeniser):
    """A language model over parts of words, from which the likeliest split is taken.

    Args:
        vocab_size: how many ids there may be, the four special ones included.
        lowercase: whether upper case is folded to lower case.

    Reference:
        Kudo (2018), arXiv:1804.10959.
    """

    kind = "unigram"

    def _train(self, texts: Iterator[str]) -> Any:
        tokenizers = required("tokenizers")
        tokenizer = empty_tokenizer(tokenizers.models.Unigram())
        trainer = tokenizers.trainers.UnigramTrainer(
            vocab_size=self.vocab_size,
            special_tokens=HIDDEN,
            unk_token=HIDDEN[UNK],
            initial_alphabet=[SPACE],
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        trained = json.loads(tokenizer.to_str())["model"]["vocab"]
        return empty_tokenizer(tokenizers.models.Unigram(settled(trained), unk_id=UNK, byte_fallback=False))


def settled(trained: list[tuple[str, float | None]]) -> list[tuple[str, float]]:
    """The trained pieces in an order, and with scores, that are the same in every run.

    The trainer sums in several threads, and gives the characters that it would have dropped the lowest score, 0.0001
    more for each of them in the order of a hash table. Here these share one score, and scores are rounded.
    """
    pieces = {piece: score or 0.0 for piece, score in trained if piece not in HIDDEN}  # no score: there was no text
    lowest = min(pieces.values())
    leftover = lowest + 0.0001 * sum(len(piece) == 1 for piece in pieces)
    scores = {
        piece: round(lowest if len(piece) == 1 and score < leftover else score, 6) for piece, score in pieces.items()
    }
    return [(name, 0.0) for name in HIDDEN] + sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))
