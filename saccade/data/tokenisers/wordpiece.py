"""WordPiece: the tokeniser of BERT, with BERT's own special tokens."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from saccade.artifacts import ArtifactError, JsonObject, read_json, write_file
from saccade.data.extra import required
from saccade.data.tokenisers.base import read_vocabulary
from saccade.data.tokenisers.subwords import in_order
from saccade.registry import constructor_parameters

FORMAT = "saccade.wordpiece"
VERSION = 1
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""The names of the special tokens; the vocabulary determines their ids."""

PREFIX = "##"
LONGEST_WORD = 100
"""Characters of the longest word that is split into pieces; a longer one is unknown, as in Hugging Face."""


class SplitText(NamedTuple):
    """A text in pieces."""

    ids: list[int]
    spans: list[tuple[int, int]]
    """Where each piece stands in the text, as start and end, counted in characters."""


class WordPiece:
    """Splits words into the longest pieces in the vocabulary, from left to right; all but the first carry `##`.

    Control characters are removed, and punctuation marks and Chinese characters are separate words. A word that
    cannot be split, or that is very long, is `[UNK]`. As in Hugging Face, the name of a special token in a text, like
    `[MASK]`, is that token.

    Unlike Saccade's other tokenisers, it has no fixed ids for padding, begin and end: they are where the vocabulary has
    them, so that ids match the pre-trained weights.

    Args:
        vocab_size: the largest number of pieces that `fit` learns, including the special ones.
        lowercase: whether to fold upper case to lower case.
        strip_accents: whether to remove accents; by default if lower case is folded.
        split_chinese: whether each Chinese character is a word.

    Reference:
        Schuster and Nakajima (2012), "Japanese and Korean voice search"; Devlin et al. (2019), arXiv:1810.04805.
    """

    def __init__(
        self,
        *,
        vocab_size: int = 30_000,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
    ) -> None:
        if vocab_size <= len(SPECIAL):
            raise ValueError(
                f"vocab_size includes the {len(SPECIAL)} special tokens and must be larger, got {vocab_size}."
            )
        self.vocab_size = vocab_size
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.split_chinese = split_chinese
        self.vocabulary: list[str] = []
        """The pieces, in the order of their ids."""
        self._model: Any = None

    def fit(self, texts: Iterable[str]) -> WordPiece:
        """Learns the vocabulary in one pass over the texts, and returns the tokeniser.

        It starts from letters, at the beginning of a word and inside it, and repeatedly joins the most frequent pair of
        neighbouring pieces. If letters would take more than half of the vocabulary, rare ones become unknown.
        """
        counts = self._words(texts)
        letters: Counter[str] = Counter()
        for word, count in counts.items():
            letters.update(dict.fromkeys(word[:1], count))
            for letter in word[1:]:
                letters[PREFIX + letter] += count
        room = max(1, self.vocab_size // 2 - len(SPECIAL))
        known = sorted(sorted(letters, key=lambda letter: (-letters[letter], letter))[:room])
        lacking = letters.keys() - set(known)

        def repeated() -> Iterator[str]:
            for word, count in counts.items():
                if word[0] not in lacking and not any(PREFIX + letter in lacking for letter in word[1:]):
                    yield " ".join([word] * count)

        tokenizers = required("tokenizers")
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token=SPECIAL[1]))
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
        trainer = tokenizers.trainers.WordPieceTrainer(
            vocab_size=self.vocab_size,
            special_tokens=[*SPECIAL, *known],  # in this order, which would otherwise differ from run to run
            continuing_subword_prefix=PREFIX,
            show_progress=False,
        )
        tokenizer.train_from_iterator(repeated(), trainer)
        return self.set(in_order(tokenizer.get_vocab()))

    def _words(self, texts: Iterable[str]) -> Counter[str]:
        """How often each word occurs, without those that are too long to be split."""
        tokenizer = self._tokenizer(required("tokenizers").models.WordPiece(unk_token=SPECIAL[1]))
        normalise, split = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(word for word, _ in split(normalise(text)))
        return Counter({word: count for word, count in counts.items() if len(word) <= LONGEST_WORD})

    def set(self, vocabulary: Sequence[str]) -> WordPiece:
        """Takes a vocabulary, whose pieces have their places as ids, and returns the tokeniser."""
        self.vocabulary = list(vocabulary)
        self._places = {piece: place for place, piece in enumerate(self.vocabulary)}
        for name in SPECIAL:
            if name not in self._places:
                raise ValueError(f"The vocabulary has no {name}.")
        models = required("tokenizers").models
        model = models.WordPiece(self._places, unk_token=SPECIAL[1], max_input_chars_per_word=LONGEST_WORD)
        self._model = self._tokenizer(model)
        self._model.add_special_tokens(list(SPECIAL))
        return self

    def _tokenizer(self, model: Any) -> Any:
        """Built from its parts and never from the library's own files: see `subwords.bpe_tokenizer`."""
        tokenizers = required("tokenizers")
        tokenizer = tokenizers.Tokenizer(model)
        tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.split_chinese,
            strip_accents=self.strip_accents,
            lowercase=self.lowercase,
        )
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        return tokenizer

    @property
    def size(self) -> int:
        """The number of ids."""
        if self._model is None:
            raise RuntimeError("This WordPiece has no vocabulary yet: call fit(texts) first.")
        return len(self.vocabulary)

    def special(self, name: str) -> int:
        """The id of a special token."""
        return self._places[name]

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without `[CLS]` and `[SEP]`."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of several texts, on all cores."""
        return [encoded.ids for encoded in self._encoded(texts)]

    def split(self, text: str) -> SplitText:
        """The pieces of a text and where they stand in it."""
        (encoded,) = self._encoded([text])
        return SplitText(encoded.ids, encoded.offsets)

    def _encoded(self, texts: Sequence[str]) -> list[Any]:
        assert self.size
        found: list[Any] = self._model.encode_batch(list(texts), add_special_tokens=False)
        return found

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The vocabulary entry for each id."""
        return [self.vocabulary[number] for number in ids]

    def join(self, pieces: Iterable[str]) -> str:
        """The words that these pieces spell, with spaces between them."""
        return " ".join(pieces).replace(f" {PREFIX}", "")

    def dumps(self) -> str:
        """The tokeniser as JSON; equal tokenisers give equal JSON."""
        assert self.size
        head = {"format": FORMAT, "version": VERSION, "options": self.options()}
        return json.dumps({**head, "vocabulary": self.vocabulary}, ensure_ascii=False, indent=1) + "\n"

    def options(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        return {name: getattr(self, name) for name in constructor_parameters(WordPiece)}

    def save(self, path: str | Path) -> None:
        """Writes one JSON file."""
        write_file(path, self.dumps())

    @staticmethod
    def load(path: str | Path) -> WordPiece:
        """The tokeniser that `save` wrote; `ArtifactError` names what is wrong with a file."""
        content = read_json(path)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ArtifactError(f"{path} is not a WordPiece tokeniser that Saccade saved.")
        found = JsonObject(content, str(path))
        found.take("version", int, least=VERSION, most=VERSION)
        options = found.inner("options")
        options.only(constructor_parameters(WordPiece))
        made = WordPiece(
            vocab_size=options.take("vocab_size", int, least=len(SPECIAL) + 1),
            lowercase=options.take("lowercase", bool),
            strip_accents=options.take("strip_accents", bool, type(None)),
            split_chinese=options.take("split_chinese", bool),
        )
        return checked(made, read_vocabulary(found), str(path))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_model": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.vocabulary:
            self.set(self.vocabulary)


def checked(tokeniser: WordPiece, vocabulary: Sequence[str], where: str) -> WordPiece:
    """The tokeniser with a vocabulary that was read from a file; `where` names it in errors."""
    try:
        return tokeniser.set(vocabulary)
    except ValueError as error:
        raise ArtifactError(f"{where} is not a vocabulary of BERT: {error}") from None
