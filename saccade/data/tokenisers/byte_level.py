"""Byte-pair encoding of bytes, as in GPT-2."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, ClassVar, TypeVar

from saccade.artifacts import JsonObject
from saccade.data.extra import required
from saccade.data.special import NAMES, UNK
from saccade.data.tokenisers.base import check_size, tokenisers
from saccade.data.tokenisers.subwords import HIDDEN, SubwordTokeniser, in_order, read_merges, read_subwords

T = TypeVar("T", bound="ByteBpeTokeniser")
BYTES = 256


@tokenisers.register("byte_bpe")
class ByteBpeTokeniser(SubwordTokeniser):
    """Byte-pair encoding of UTF-8: nothing is unknown, and texts keep their spaces and line breaks.

    A piece is written with a letter for each byte, of which "Ġ" is a space.

    Args:
        vocab_size: the largest number of ids, including the four special ones and the 256 bytes.
        min_frequency: the number of times two parts must be neighbours to be joined.
        lowercase: whether to fold upper case to lower case.

    Reference:
        Radford et al. (2019), "Language models are unsupervised multitask learners", section 2.2.
    """

    kind = "byte_bpe"
    reserved: ClassVar[str] = ""

    def __init__(self, *, vocab_size: int = 8000, min_frequency: int = 2, lowercase: bool = False) -> None:
        super().__init__(vocab_size=vocab_size, lowercase=lowercase)
        check_size(vocab_size, min_frequency)
        if vocab_size < BYTES + len(NAMES):
            raise ValueError(f"vocab_size must be {BYTES + len(NAMES)} or more, for all bytes, got {vocab_size}.")
        self.min_frequency = min_frequency

    def fit(self: T, texts: Iterable[str]) -> T:
        tokenizers = required("tokenizers")
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=self.vocab_size,
            min_frequency=self.min_frequency,
            special_tokens=HIDDEN,
            initial_alphabet=sorted(letters().values()),
            show_progress=False,
        )
        tokenizer = byte_tokenizer([*HIDDEN, *letters().values()], [])
        tokenizer.train_from_iterator(map(self.normalise, texts), trainer)
        learned = json.loads(tokenizer.to_str())["model"]
        self.take(in_order(learned["vocab"]), [tuple(merge) for merge in learned["merges"]])
        return self

    def take(self, vocabulary: list[str], merges: list[tuple[str, str]]) -> None:
        """Uses these pieces, the hidden names of the special ids first, and these merges."""
        self._set(byte_tokenizer(vocabulary, merges))

    def normalise(self, text: str) -> str:
        return text.lower() if self.lowercase else text

    def join(self, pieces: Iterable[str]) -> str:
        return as_bytes("".join(pieces)).decode(errors="replace")

    def shown(self, piece: str) -> str:
        return as_bytes(piece).decode(errors="replace")

    def words(self, text: str) -> list[list[int]]:
        normal = self.normalise(text)
        starts = [word.start() for word in re.finditer(r"\S+", normal)]
        found: list[list[int]] = [[] for _ in starts]
        for place, (start, end) in enumerate(self._model.encode(normal).offsets):
            while start < end and normal[start].isspace():
                start += 1
            if start < end:
                found[bisect_right(starts, start) - 1].append(place)
        return found

    def group(self, pieces: Sequence[str]) -> list[list[int]]:
        return super().group([self.shown(piece) for piece in pieces])

    def touches(self, before: str, piece: str) -> bool:
        return not piece[:1].isspace()

    def _state(self) -> dict[str, Any]:
        learned = self._learned()
        return {"vocabulary": in_order(learned["vocab"]), "merges": [" ".join(merge) for merge in learned["merges"]]}

    def _restore(self, found: JsonObject) -> None:
        vocabulary = read_subwords(found)
        missing = set(letters().values()) - {*vocabulary}
        if missing:
            raise found.wrong("vocabulary", f"lacks the byte {min(missing)!r}")
        self.take(vocabulary, read_merges(found, vocabulary))


@cache
def letters() -> dict[int, str]:
    """The letter that stands for each byte: itself if it is visible, otherwise one of those from U+0100 on."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others: Iterator[int] = (byte for byte in range(BYTES) if byte not in visible)
    return {byte: chr(byte) for byte in visible} | {byte: chr(BYTES + n) for n, byte in enumerate(others)}


@cache
def _bytes() -> dict[str, int]:
    return {letter: byte for byte, letter in letters().items()}


def as_bytes(text: str) -> bytes:
    """What letters stand for; others, such as those of special names, stand for themselves."""
    known = _bytes()
    return b"".join(bytes([known[letter]]) if letter in known else letter.encode() for letter in text)


def byte_tokenizer(vocabulary: list[str], merges: list[tuple[str, str]]) -> Any:
    """A `tokenizers.Tokenizer` with these pieces and merges; see `bpe_tokenizer`."""
    tokenizers = required("tokenizers")
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=ids, merges=merges, unk_token=HIDDEN[UNK]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return tokenizer
