"""The tokeniser files of a Hugging Face BERT folder, read and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from saccade.artifacts import ArtifactError, JsonObject, open_regular, read_json
from saccade.data.tokenisers.wordpiece import SPECIAL, WordPiece, checked

MOST_BYTES = 64 * 2**20
MOST_PIECES = 2_000_000


def read_wordpiece(folder: Path) -> WordPiece:
    """The tokeniser of a folder: `vocab.txt`, or the vocabulary in `tokenizer.json`.

    From the other files, only the switches of BERT's normaliser and the number of embeddings are used; ids that the
    vocabulary does not use are named `[unused ...]`.
    """
    settings = _document(folder / "tokenizer_config.json")
    saved = _document(folder / "tokenizer.json")
    normaliser = _inner(saved, "normalizer")

    def switch(name: str, other: str, usual: bool | None) -> bool | None:
        for document, key in ((settings, name), (normaliser, other)):
            if document.values.get(key) is not None:
                return bool(document.take(key, bool))
        return usual

    where = folder / "vocab.txt"
    if where.is_file():
        vocabulary = _lines(where)
    else:
        where = folder / "tokenizer.json"
        vocabulary = _listed(_inner(_inner(saved, "model"), "vocab"))
        if not vocabulary:
            raise ArtifactError(f"{folder} has neither vocab.txt nor a vocabulary in tokenizer.json: copy one there.")
    size = _document(folder / "config.json").take("vocab_size", int, least=1, most=MOST_PIECES)
    if len(vocabulary) > size:
        raise ArtifactError(f"{where} has {len(vocabulary):,} pieces, but the model has only {size:,} embeddings.")
    vocabulary += [f"[unused {number}]" for number in range(len(vocabulary), size)]
    made = WordPiece(
        vocab_size=max(len(vocabulary), len(SPECIAL) + 1),
        lowercase=switch("do_lower_case", "lowercase", True) is not False,
        strip_accents=switch("strip_accents", "strip_accents", None),
        split_chinese=switch("tokenize_chinese_chars", "handle_chinese_chars", True) is not False,
    )
    return checked(made, vocabulary, str(where))


def wordpiece_files(tokeniser: WordPiece, max_length: int) -> dict[str, bytes]:
    """The files that describe the tokeniser to the `transformers` library."""
    settings: dict[str, Any] = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": tokeniser.lowercase,
        "strip_accents": tokeniser.strip_accents,
        "tokenize_chinese_chars": tokeniser.split_chinese,
        "model_max_length": max_length,
    }
    settings |= {f"{name.strip('[]').lower()}_token": name for name in SPECIAL}
    lines = "".join(f"{piece}\n" for piece in tokeniser.vocabulary)
    return {"vocab.txt": lines.encode(), "tokenizer_config.json": (json.dumps(settings, indent=2) + "\n").encode()}


def _document(path: Path) -> JsonObject:
    """A JSON file; empty if there is none."""
    return JsonObject(read_json(path) if path.is_file() else {}, str(path))


def _inner(document: JsonObject, key: str) -> JsonObject:
    found = document.values.get(key)
    return JsonObject({}, document.where) if found is None else document.inner(key)


def _lines(path: Path) -> list[str]:
    """The pieces of a file that has one on each line."""
    with open_regular(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES or data.count(b"\n") > MOST_PIECES:
        raise ArtifactError(f"{path} is too large: more than {MOST_BYTES:,} bytes or {MOST_PIECES:,} pieces.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ArtifactError(f"{path} is damaged: it is not valid UTF-8 ({error.reason}).") from None
    pieces = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    return _different(pieces, path)


def _listed(vocabulary: JsonObject) -> list[str]:
    """The pieces of a mapping to their ids, which must be the numbers from 0."""
    ids = {piece: vocabulary.take(piece, int, least=0, most=MOST_PIECES) for piece in vocabulary.values}
    if sorted(ids.values()) != list(range(len(ids))):
        raise ArtifactError(f"{vocabulary.where} is damaged: its ids are not the numbers from 0 to {len(ids) - 1}.")
    return _different(sorted(ids, key=ids.__getitem__), vocabulary.where)


def _different(pieces: list[str], where: Any) -> list[str]:
    if len(set(pieces)) < len(pieces):
        seen: set[str] = set()
        twice = next(piece for piece in pieces if piece in seen or seen.add(piece))  # type: ignore[func-returns-value]
        raise ArtifactError(f"{where} is damaged: it has the piece {twice[:40]!r} twice.")
    if "" in pieces:
        raise ArtifactError(f"{where} is damaged: it has an empty piece.")
    return pieces
