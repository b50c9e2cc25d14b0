"""The base class of tokenisers."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from saccade.artifacts import ArtifactError, JsonObject, parse_json, read_json, write_file
from saccade.data.special import EOS, NAMES, UNK
from saccade.registry import Registry, constructor_parameters

FORMAT = "saccade.tokeniser"
VERSION = 2
OPTIONS: dict[str, tuple[type, ...]] = {"lowercase": (bool,), "vocab_size": (int, type(None)), "min_frequency": (int,)}
"""The types of the options that Saccade's own tokenisers have."""
T = TypeVar("T", bound="Tokeniser")


class Tokeniser:
    """Text to ids and back.

    Decoding reverses encoding, up to `normalise`, as long as every piece is in the vocabulary; other pieces become
    `<unk>`. The same training texts give the same ids in every run. A new tokeniser implements `fit`, `encode`, `join`,
    `touches` if a word can have several pieces, and `_state` and `_restore` for what it has learned.

    Args:
        lowercase: whether to fold upper case to lower case.
    """

    kind: ClassVar[str]
    """The short name in the registry."""

    reserved: ClassVar[str] = ""
    """Characters that mark spaces; in texts they are replaced by underscores."""

    def __init__(self, *, lowercase: bool = False) -> None:
        self.lowercase = lowercase
        self._pieces: list[str] = []
        self._numbers: dict[str, int] = {}
        self._numbered: list[str] | None = None

    def fit(self: T, texts: Iterable[str]) -> T:
        """Learns the vocabulary in one pass over the texts, and returns the tokeniser."""
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without begin and end."""
        raise NotImplementedError

    def join(self, pieces: Iterable[str]) -> str:
        """The text that these pieces spell."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The number of ids, including the four special ones."""
        if not self._pieces:
            raise RuntimeError(f"This {type(self).__name__} has no vocabulary yet: call fit(texts) first.")
        return len(self._pieces)

    def decode(self, ids: Iterable[int], extra: Sequence[str] = ()) -> str:
        """The text up to the end-of-sentence id, if there is one, without padding and begin.

        `extra` lists what the ids from `size` on stand for, if there are any.
        """
        return self.join(self.pieces(visible(ids), extra))

    def pieces(self, ids: Iterable[int], extra: Sequence[str] = ()) -> list[str]:
        """The vocabulary entry for each id, as tables and plots show it; then those of `extra`."""
        size = self.size
        found = list(ids)
        for token in found:
            if not 0 <= token < size + len(extra):
                raise ValueError(f"Ids must be between 0 and {size + len(extra) - 1}, got {token}.")
        return [self._pieces[token] if token < size else extra[token - size] for token in found]

    def units(self, text: str) -> list[tuple[str, list[int]]]:
        """The units of a text that can be copied: each as `join` needs it, with its positions in `encode(text)`.

        By default every piece is a unit; a tokeniser that splits words has words as units.
        """
        return [(piece, [place]) for place, piece in enumerate(self.parts(text))]

    def id_of(self, unit: str) -> int:
        """The id of a unit that is a single piece of the vocabulary, else that of the unknown word."""
        if self._numbered is not self._pieces:  # fitted or loaded since
            self._numbered = self._pieces
            self._numbers = {piece: number for number, piece in enumerate(self._pieces) if number >= len(NAMES)}
        return self._numbers.get(unit, UNK)

    def words(self, text: str) -> list[list[int]]:
        """The positions in `encode(text)` of each word's ids, where words are separated by spaces.

        There are as many words as in `text.split()`, whatever the vocabulary.
        """
        return self.group(self.parts(text))

    def group(self, pieces: Sequence[str]) -> list[list[int]]:
        """The positions of each word's pieces, judged by the pieces alone, without special ones.

        If the text is available, `words` is more reliable: `<unk>` does not say whether a space is next to it.
        """
        words: list[list[int]] = []
        before = " "
        for place, piece in enumerate(pieces):
            if not piece.isspace():
                if words and not before.isspace() and self.touches(before, piece):
                    words[-1].append(place)
                else:
                    words.append([place])
            before = piece
        return words

    def parts(self, text: str) -> list[str]:
        """The pieces of a text; where possible, unknown ones as they are spelled in the text."""
        return self.pieces(self.encode(text))

    def shown(self, piece: str) -> str:
        """A piece as a picture shows it, without marks that only the tokeniser needs."""
        return piece

    def touches(self, before: str, piece: str) -> bool:
        """Whether a piece belongs to the same word as the piece before it; by default every piece is a word."""
        return False

    def normalise(self, text: str) -> str:
        """The text with single spaces and composed characters (NFC), no reserved characters, and folded if asked."""
        text = unicodedata.normalize("NFC", text.lower() if self.lowercase else text)
        for mark in self.reserved:
            text = text.replace(mark, "_")
        return " ".join(text.split())

    def options(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        return {name: getattr(self, name) for name in constructor_parameters(type(self))}

    def dumps(self) -> str:
        """The tokeniser as JSON; equal tokenisers give equal JSON."""
        if not self._pieces:
            raise RuntimeError(f"This {type(self).__name__} has nothing to save yet: call fit(texts) first.")
        head = {"format": FORMAT, "version": VERSION, "kind": self.kind, "options": self.options()}
        return json.dumps(head | self._state(), ensure_ascii=False, indent=1) + "\n"

    def save(self, path: str | Path) -> None:
        """Writes one JSON file."""
        write_file(path, self.dumps())

    @staticmethod
    def loads(text: str, name: str = "The text") -> Tokeniser:
        """The tokeniser that `dumps` wrote; `name` stands for the text in errors."""
        return _build(parse_json(text.encode(errors="surrogatepass"), name), name)

    @staticmethod
    def load(path: str | Path) -> Tokeniser:
        """The tokeniser of any kind that `save` wrote; `ArtifactError` names what is wrong with a file."""
        return _build(read_json(path), str(path))

    def _state(self) -> dict[str, Any]:
        """What it has learned, in JSON's types."""
        raise NotImplementedError

    def _restore(self, found: JsonObject) -> None:
        """Checks and takes over what `_state` returned: the file may be damaged, or come from anyone."""
        raise NotImplementedError


tokenisers: Registry[Tokeniser] = Registry("tokeniser", base=Tokeniser, home="saccade.data.tokenisers")


def _build(content: Any, name: str) -> Tokeniser:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ArtifactError(f"{name} is not a tokeniser that Saccade saved.")
    found = JsonObject(content, name)
    version = found.take("version", int)
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise ArtifactError(f"{name} was saved by {age} Saccade (format {version}, not {VERSION}): use that version.")
    kind = found.take("kind", str)
    if kind not in tokenisers.names():
        raise found.wrong("kind", f"is {kind[:40]!r}, not one of {', '.join(tokenisers.names())}")
    options = found.inner("options")
    options.only(constructor_parameters(tokenisers.get(kind)))
    for option, kinds in OPTIONS.items():
        if option in options.values:
            options.take(option, *kinds)
    try:
        tokeniser = tokenisers.create(kind, **options.values)
    except (TypeError, ValueError) as error:  # its constructor refuses them
        raise ArtifactError(f"{name} is damaged: {error}") from None
    tokeniser._restore(found)
    return tokeniser


def read_vocabulary(found: JsonObject) -> list[str]:
    """The pieces of a saved vocabulary, each of which must be there once."""
    pieces = found.take_list("vocabulary", str)
    if not all(pieces):
        raise found.wrong("vocabulary", "contains an empty piece")
    if len(set(pieces)) < len(pieces):
        raise found.wrong("vocabulary", "contains a piece twice")
    return pieces


def visible(ids: Iterable[int]) -> Iterator[int]:
    """The ids of text before the end of the sentence."""
    for token in ids:
        if token == EOS:
            return
        if token > EOS:
            yield token


def check_size(vocab_size: int | None, min_frequency: int) -> None:
    """Rejects limits that leave no room for pieces."""
    if vocab_size is not None and vocab_size <= len(NAMES):
        raise ValueError(f"vocab_size includes the {len(NAMES)} special ids and must be larger, got {vocab_size}.")
    if min_frequency < 1:
        raise ValueError(f"min_frequency must be 1 or more, got {min_frequency}.")


def most_frequent(counts: dict[str, int], vocab_size: int | None, min_frequency: int) -> Sequence[str]:
    """The pieces of a vocabulary, the most frequent first, and equally frequent ones in alphabetical order."""
    kept = sorted((piece for piece, count in counts.items() if count >= min_frequency), key=lambda p: (-counts[p], p))
    return kept if vocab_size is None else kept[: vocab_size - len(NAMES)]
