"""Texts to ids and back, as the exported model was trained, with Python's standard library alone."""

import re
import unicodedata
from itertools import pairwise

NAMES = ("<pad>", "<s>", "</s>", "<unk>")
PAD, BOS, EOS, UNK = range(4)
SPACE, JOINER = "▁", "￭"
CHINESE = "\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002ceaf\U0002f800-\U0002fa1f"


def is_sign(letter, but="_"):
    return letter not in but and unicodedata.category(letter)[0] in "PS"


class Vocabulary:
    """One of Saccade's tokenisers, from the JSON that it wrote."""

    def __init__(self, saved):
        self.kind, self.options = saved.get("kind", "wordpiece"), saved["options"]
        skipped = 0 if self.kind in ("bpe", "unigram", "wordpiece") else len(NAMES)
        self.pieces = [*NAMES[:skipped], *saved["vocabulary"]]
        self.ids = {piece: number for number, piece in enumerate(self.pieces) if number >= skipped}
        self.ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(saved.get("merges", ()))}
        self.scores = saved.get("scores", ())
        if self.kind in ("bpe", "unigram"):
            self.pieces[: len(NAMES)] = NAMES

    def encode(self, text):
        if self.kind == "wordpiece":
            return self._wordpieces(text)
        words = self._split(self._normalised(text))
        if self.kind in ("bpe", "unigram"):
            return [
                number for word in words for number in (self._merged if self.kind == "bpe" else self._likeliest)(word)
            ]
        return [self.ids.get(word, UNK) for word in words]

    def decode(self, ids):
        pieces = [self.pieces[number] for number in ids]
        if self.kind == "word":
            text = " ".join(pieces)
            return text.replace(f" {JOINER}", "").replace(f"{JOINER} ", "").replace(JOINER, "")
        if self.kind == "pretokenised":
            return " ".join(pieces)
        return "".join(pieces).replace(SPACE, " ").strip() if self.kind in ("bpe", "unigram") else "".join(pieces)

    def _normalised(self, text):
        text = unicodedata.normalize("NFC", text.lower() if self.options["lowercase"] else text)
        mark = {"word": JOINER, "bpe": SPACE, "unigram": SPACE}.get(self.kind)
        return " ".join((text.replace(mark, "_") if mark else text).split())

    def _split(self, text):
        if self.kind == "char":
            return list(text)
        if self.kind == "pretokenised":
            return text.split()
        if self.kind == "word":
            return re.sub(r"[^\w\s]", self._detached, text).split()
        return [part for word in text.split() for part in self._apart(SPACE + word)]

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

    def _wordpieces(self, text):
        special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
        found = []
        for part in re.split(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])", text):
            words = [part] if part in special else self._bert_words(part)
            for word in words:
                found += [self.ids[word]] if part in special else self._longest(word)
        return found

    def _bert_words(self, text):
        kept = (" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
        text = "".join(c for c in kept if c not in "\0\ufffd")
        if self.options["split_chinese"]:
            text = re.sub(f"([{CHINESE}])", r" \1 ", text)
        strip = self.options["strip_accents"]
        if self.options["lowercase"] if strip is None else strip:
            text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        text = text.lower() if self.options["lowercase"] else text
        ascii_signs = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
        return "".join(f" {c} " if c in ascii_signs or unicodedata.category(c)[0] == "P" else c for c in text).split()

    def _longest(self, word):
        found, begin = [], 0
        while begin < len(word) <= 100:
            mark = "##" if begin else ""
            end = next((e for e in range(len(word), begin, -1) if mark + word[begin:e] in self.ids), None)
            if end is None:
                return [self.ids["[UNK]"]]
            found.append(self.ids[mark + word[begin:end]])
            begin = end
        return found if len(word) <= 100 else [self.ids["[UNK]"]]
