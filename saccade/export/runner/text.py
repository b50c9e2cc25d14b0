"""Texts: ids and back, as the model was trained."""

import re
import unicodedata
from itertools import pairwise, takewhile

from . import padded

NAMES = ("<pad>", "<s>", "</s>", "<unk>")
PAD, BOS, EOS, UNK = range(4)
SPACE, JOINER = "▁", "￭"
KINDS = ("bpe", "char", "pretokenised", "tagged", "unigram", "word")


class InputReader:
    """A text as the ids of its pieces and an end."""

    def __init__(self, about):
        self.vocabulary = Vocabulary(about["tokeniser"])

    def encode(self, text, most=None):
        if not isinstance(text, str):
            raise TypeError(f"A text is a string, got {text!r:.60}.")
        return {"text": text, "ids": [*self.vocabulary.encode(text)[:most], EOS]}

    def size(self, encoded):
        return len(encoded["ids"])

    def pad(self, several):
        values, mask = padded([each["ids"] for each in several])
        return {"values": values, "mask": mask}

    def names(self, encoded, count=None):
        return [*(self.vocabulary.pieces[number] for number in encoded["ids"][:-1]), NAMES[EOS]]

    def spelled(self, encoded):
        """The positions as the text spells them, and the number of the word that each belongs to, if any."""
        count = len(encoded["ids"]) - 1
        pieces, words = self.vocabulary.words(encoded["text"])
        shown = [piece.replace(JOINER, "") or piece if self.vocabulary.kind == "word" else piece for piece in pieces]
        return [*shown[:count], NAMES[EOS]], [*words[:count], None]

    def seen(self, encoded, weights):
        """The weights of the positions of a value, and the names of these."""
        keys = self.names(encoded)
        return weights[..., : len(keys)], keys

    def word_starts(self, encoded):
        """The words of the text, and where each begins among the ids that are read."""
        places, place = [], 0
        for word in encoded["text"].split():
            places.append(place)
            place += len(self.vocabulary.encode(word)) + (self.vocabulary.kind == "char")  # and the space after it
        places = [place for place in places if place < len(encoded["ids"]) - 1]
        return encoded["text"].split()[: len(places)], places


def is_sign(letter, but="_"):
    return letter not in but and unicodedata.category(letter)[0] in "PS"


def is_tag(piece):
    return len(piece) > 1 and piece not in NAMES


class Vocabulary:
    """One of Saccade's tokenisers, from the JSON that it wrote."""

    def __init__(self, saved):
        self.kind, self.options = saved["kind"], saved["options"]
        skipped = 0 if self.kind in ("bpe", "unigram") else len(NAMES)
        self.pieces = [*NAMES[:skipped], *saved["vocabulary"]]
        self.ids = {piece: number for number, piece in enumerate(self.pieces) if number >= skipped}
        self.ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(saved.get("merges", ()))}
        self.scores = saved.get("scores", ())
        if self.kind in ("bpe", "unigram"):
            self.pieces[: len(NAMES)] = NAMES

    def encode(self, text):
        return [number for _, ids in self.units(text) for number in ids]

    def units(self, text):
        """The parts of a text that can be copied, each with its ids."""
        split = {"bpe": self._merged, "unigram": self._likeliest}.get(self.kind, lambda word: [self.ids.get(word, UNK)])
        return [(word, split(word)) for word in self._split(self._normalised(text))]

    def words(self, text):
        """The pieces of a text, unknown ones as it spells them where it can be told, and the word of each, if any."""
        pieces, words, number, before = [], [], -1, " "
        for unit, ids in self.units(text):
            pieces += self.named(ids) if self.kind in ("bpe", "unigram") else [unit]
        for piece in pieces:
            number += not piece.isspace() and (number < 0 or before.isspace() or not self._touches(before, piece))
            words.append(None if piece.isspace() else number)
            before = piece
        return pieces, words

    def _touches(self, before, piece):
        """Whether a piece belongs to the same word as the one before it."""
        if self.kind == "word":
            return before.endswith(JOINER) or piece.startswith(JOINER)
        if self.kind == "tagged":
            return is_tag(before) == is_tag(piece)
        return not piece.startswith(SPACE) if self.kind in ("bpe", "unigram") else self.kind == "char"

    def named(self, ids, extra=()):
        """The piece for each id; from the size of the vocabulary on, those of `extra`."""
        size = len(self.pieces)
        return [self.pieces[number] if number < size else extra[number - size] for number in ids]

    def decode(self, ids, extra=()):
        pieces = self.named([number for number in takewhile(lambda number: number != EOS, ids) if number > EOS], extra)
        if self.kind == "word":
            text = " ".join(pieces)
            return text.replace(f" {JOINER}", "").replace(f"{JOINER} ", "").replace(JOINER, "")
        if self.kind == "pretokenised":
            return " ".join(pieces)
        if self.kind == "tagged":
            return self._with_tags(pieces)
        return "".join(pieces).replace(SPACE, " ").strip() if self.kind in ("bpe", "unigram") else "".join(pieces)

    def _normalised(self, text):
        text = unicodedata.normalize("NFC", text.lower() if self.options["lowercase"] else text)
        mark = {"word": JOINER, "bpe": SPACE, "unigram": SPACE}.get(self.kind)
        return " ".join((text.replace(mark, "_") if mark else text).split())

    def _split(self, text):
        if self.kind == "char":
            return list(text)
        if self.kind == "tagged":
            return self._tagged(text)
        if self.kind == "pretokenised":
            return text.split()
        if self.kind == "word":
            return re.sub(r"[^\w\s]", self._detached, text).split()
        return [part for word in text.split() for part in self._apart(SPACE + word)]

    @staticmethod
    def _tagged(text):
        pieces = []
        for word in text.split(" ") if text else []:
            found = re.fullmatch(r"<([^<>\s]+)>", word)
            tags = [f"<{tag}>" for tag in found[1].split(";")] if found else []
            tags = tags if all(map(is_tag, tags)) else []
            if pieces and (not tags or is_tag(pieces[-1])):
                pieces.append(" ")
            pieces += tags or word
        return pieces

    @staticmethod
    def _with_tags(pieces):
        text, before = "", ""
        for piece in pieces:
            if not is_tag(piece):
                text += piece
            elif is_tag(before):
                text = f"{text[:-1]};{piece[1:]}"
            else:
                text += f" {piece}" if before not in ("", " ") else piece
            before = piece
        return text

    @staticmethod
    def _detached(match):
        sign, text = match[0], match.string
        if not is_sign(sign):
            return sign
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        left = match.start() > 0 and before != " "
        right = after not in ("", " ") and not is_sign(after)
        return (f" {JOINER}" if left else "") + sign + (f"{JOINER} " if right else "")

    @staticmethod
    def _apart(word):
        """Runs of signs, with the mark of a space before them, and what is between them."""
        kinds = ["s" if is_sign(letter, but=f"_{SPACE}") else "w" for letter in word]
        kinds[0] = "s" if kinds[1:2] == ["s"] else "w"
        parts, begin = [], 0
        for end in range(1, len(word) + 1):
            if end == len(word) or kinds[end] != kinds[end - 1]:
                parts.append(word[begin:end])
                begin = end
        return parts

    def _merged(self, word):
        parts = list(word)
        while len(parts) > 1:
            pairs = [(self.ranks.get(pair, len(self.ranks)), place) for place, pair in enumerate(pairwise(parts))]
            rank, place = min(pairs)
            if rank == len(self.ranks):
                break
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        return [self.ids.get(part, UNK) for part in parts]

    def _likeliest(self, word):
        unknown = min(self.scores[len(NAMES) :], default=0.0) - 10.0
        best = [(0.0, [])] + [(float("-inf"), [])] * len(word)
        for end in range(1, len(word) + 1):
            for begin in range(end):
                number = self.ids.get(word[begin:end])
                if number is None and end - begin > 1:
                    continue
                total = best[begin][0] + (unknown if number is None else self.scores[number])
                if total > best[end][0]:
                    best[end] = (total, [*best[begin][1], UNK if number is None else number])
        ids = best[-1][1]
        return [number for place, number in enumerate(ids) if number != UNK or ids[place - 1 : place] != [UNK]]
