"""Subword tokenisers: BPE and unigram, trained by the `tokenizers` library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from saccade.artifacts import JsonObject
from saccade.data.extra import required
from saccade.data.special import NAMES, UNK
from saccade.data.tokenisers.base import Tokeniser, check_size, read_vocabulary, tokenisers

T = TypeVar("T", bound="SubwordTokeniser")
SPACE = "▁"
HIDDEN = [f"{name}{SPACE}" for name in NAMES]
"""The names of the special ids inside the model, which no text can contain: "<s>" in a text is text."""


class SubwordTokeniser(Tokeniser):
    """Frequent words stay whole, rare ones are split into parts; the first part of a word carries a mark.

    Punctuation is separated from words, so that "dog" and "dog." share a piece. Only characters that never occur in the
    training texts become `<unk>`.

    Args:
        vocab_size: the largest number of ids, including the four special ones.
        lowercase: whether to fold upper case to lower case.
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
                f"take {needed}. Choose a larger one, or remove rare characters from the texts."
            )
        self._set(model)
        return self

    def encode(self, text: str) -> list[int]:
        if self._model is None:
            raise RuntimeError(f"This {type(self).__name__} has no vocabulary yet: call fit(texts) first.")
        ids: list[int] = self._model.encode(self.normalise(text)).ids
        return ids

    def units(self, text: str) -> list[tuple[str, list[int]]]:
        text = self.normalise(text)
        words = [word for word, _ in self._model.pre_tokenizer.pre_tokenize_str(text)]
        found: list[tuple[str, list[int]]] = [(word, []) for word in words]
        for place, number in enumerate(self._model.encode(text).word_ids):
            found[number][1].append(place)
        return [unit for unit in found if unit[1]]

    def join(self, pieces: Iterable[str]) -> str:
        return "".join(pieces).replace(SPACE, " ").strip()

    def touches(self, before: str, piece: str) -> bool:
        return not piece.startswith(SPACE)

    def _train(self, texts: Iterator[str]) -> Any:
        """The trained `tokenizers.Tokenizer`."""
        raise NotImplementedError

    def _set(self, model: Any) -> None:
        self._model = model
        self._pieces = in_order(model.get_vocab())
        self._pieces[: len(NAMES)] = NAMES

    def _learned(self) -> dict[str, Any]:
        """The library's own description of the model."""
        learned: dict[str, Any] = json.loads(self._model.to_str())["model"]
        return learned

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_model": None if self._model is None else self._model.to_str()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._model is not None:
            self._model = required("tokenizers").Tokenizer.from_str(self._model)


def empty_tokenizer(model: Any) -> Any:
    """A `tokenizers.Tokenizer` that splits texts at spaces and separates punctuation from words."""
    tokenizers = required("tokenizers")
    parts = tokenizers.pre_tokenizers
    tokenizer = tokenizers.Tokenizer(model)
    words = parts.Metaspace(replacement=SPACE, prepend_scheme="always", split=True)
    signs = parts.Split(tokenizers.Regex(rf"{SPACE}?[\p{{P}}\p{{S}}&&[^{SPACE}_]]+"), "isolated")
    tokenizer.pre_tokenizer = parts.Sequence([words, signs])
    return tokenizer


@tokenisers.register("bpe")
class BpeTokeniser(SubwordTokeniser):
    """Byte-pair encoding of characters: joins the most frequent pair of neighbours, again and again.

    Args:
        vocab_size: the largest number of ids, including the four special ones.
        min_frequency: the number of times two parts must be neighbours to be joined.
        lowercase: whether to fold upper case to lower case.

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
        learned = json.loads(tokenizer.to_str())["model"]
        return bpe_tokenizer(in_order(learned["vocab"]), [tuple(merge) for merge in learned["merges"]])

    def _state(self) -> dict[str, Any]:
        learned = self._learned()
        return {"vocabulary": in_order(learned["vocab"]), "merges": [" ".join(merge) for merge in learned["merges"]]}

    def _restore(self, found: JsonObject) -> None:
        vocabulary = read_subwords(found)
        self._set(bpe_tokenizer(vocabulary, read_merges(found, vocabulary)))


@tokenisers.register("unigram")
class UnigramTokeniser(SubwordTokeniser):
    """A unigram language model of parts of words, which splits a word in the most probable way.

    Args:
        vocab_size: the largest number of ids, including the four special ones.
        lowercase: whether to fold upper case to lower case.

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
        return unigram_tokenizer(settled(json.loads(tokenizer.to_str())["model"]["vocab"]))

    def _state(self) -> dict[str, Any]:
        pieces, scores = zip(*self._learned()["vocab"], strict=True)
        return {"vocabulary": pieces, "scores": scores}

    def _restore(self, found: JsonObject) -> None:
        vocabulary = read_subwords(found)
        scores = found.take_list("scores", float, length=len(vocabulary), least=-1e6, most=1e6)
        self._set(unigram_tokenizer(list(zip(vocabulary, map(float, scores), strict=True))))


def bpe_tokenizer(vocabulary: list[str], merges: list[tuple[str, str]]) -> Any:
    """A `tokenizers.Tokenizer` with these pieces, whose ids are their positions, and these merges, most frequent first.

    Built from lists and never from the library's own files, in which someone could hide a slow regular expression.
    """
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    return empty_tokenizer(required("tokenizers").models.BPE(vocab=ids, merges=merges, unk_token=HIDDEN[UNK]))


def unigram_tokenizer(scored: list[tuple[str, float]]) -> Any:
    """A `tokenizers.Tokenizer` with these pieces and their log-probabilities."""
    return empty_tokenizer(required("tokenizers").models.Unigram(scored, unk_id=UNK, byte_fallback=False))


def read_subwords(found: JsonObject) -> list[str]:
    """A saved vocabulary that begins with the special names."""
    vocabulary = read_vocabulary(found)
    if vocabulary[: len(HIDDEN)] != HIDDEN:
        raise found.wrong("vocabulary", f"does not begin with {', '.join(HIDDEN)}")
    return vocabulary


def read_merges(found: JsonObject, vocabulary: list[str]) -> list[tuple[str, str]]:
    """Saved merges, each of two pieces that make a third."""
    known, merges = set(vocabulary), []
    for place, text in enumerate(found.take_list("merges", str)):
        left, _, right = text.partition(" ")
        if not {left, right, left + right} <= known:
            raise found.wrong(f"merges[{place}]", f"is {text[:40]!r}, not two pieces that make a third")
        merges.append((left, right))
    return merges


def in_order(ids: dict[str, int]) -> list[str]:
    """The pieces in the order of their ids."""
    return sorted(ids, key=ids.__getitem__)


def settled(trained: list[tuple[str, float | None]]) -> list[tuple[str, float]]:
    """The trained pieces with an order and scores that are the same in every run.

    The trainer sums in several threads, and gives the characters that it would have dropped the lowest score, plus
    0.0001 for each in the order of a hash table. Here they share one score, and all scores are rounded.
    """
    pieces = {
        piece: score or 0.0 for piece, score in trained if piece not in HIDDEN
    }  # without texts there are no scores
    lowest = min(pieces.values())
    leftover = lowest + 0.0001 * sum(len(piece) == 1 for piece in pieces)
    scores = {
        piece: round(lowest if len(piece) == 1 and score < leftover else score, 6) for piece, score in pieces.items()
    }
    return [(name, 0.0) for name in HIDDEN] + sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))
