"""One text or a pair of texts as BERT reads them: ids, and where each stands in its text."""

import re
import unicodedata

import numpy as np

from . import padded

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CHINESE = re.compile("[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002ceaf\U0002f800-\U0002fa1f]")
SIGNS = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class InputReader:
    def __init__(self, about):
        self.about, self.pieces = about, Splitter(about["tokeniser"])

    def encode(self, value, most=None):
        texts = [value] if isinstance(value, str) else list(value)
        if not 1 <= len(texts) <= 2 or not all(isinstance(text, str) for text in texts):
            raise TypeError(f"This model reads a text or a pair of texts, got {value!r:.60}.")
        if len(texts) > 1 and not self.about["pairs"]:
            texts = [" ".join(texts)]
        split = [self.pieces.split(text) for text in texts]
        kept = shares([len(part) for part in split], self.about["max_length"] - 1 - len(texts))
        cls, sep = ((self.pieces.ids[name], None) for name in ("[CLS]", "[SEP]"))
        whole, starts = [cls], []
        for part, room in zip(split, kept):
            head = {"end": room, "middle": room // 4, "start": 0}[self.about["cut"]]
            starts.append(len(whole))
            whole += [*(part if len(part) <= room else part[:head] + part[len(part) - (room - head) :]), sep]
        ids = [number for number, _ in whole]
        return {"texts": texts, "ids": ids, "places": [place for _, place in whole], "starts": [*starts, len(ids)]}

    def size(self, encoded):
        return len(encoded["ids"])

    def pad(self, several):
        values, mask = padded([each["ids"] for each in several], self.pieces.ids["[PAD]"])
        first = np.array([each["starts"][1] for each in several])[:, None]
        return {
            "values": values,
            "mask": mask,
            "segments": (mask & (np.arange(mask.shape[1]) >= first)).astype(np.int64),
        }

    def names(self, encoded, count=None):
        return [self.pieces.vocabulary[number] for number in encoded["ids"]]

    def seen(self, encoded, weights):
        return weights[..., : len(encoded["ids"])], self.names(encoded)

    def word_starts(self, encoded):
        """The words of the text, and the place of the first piece of each that is read."""
        places, words, place = encoded["places"][1:-1], [], 0
        starts, whole = [], len(places) == len(self.pieces.split(encoded["texts"][0]))
        for word in re.finditer(r"\S+", encoded["texts"][0]):
            while place < len(places) and places[place][1] <= word.start():
                place += 1
            if place == len(places) and not whole:
                break
            own = place < len(places) and places[place][0] < word.end()
            starts.append(1 + place - (not own))
            words.append(word[0])
        fit = sum(start < len(encoded["ids"]) - 1 for start in starts)
        return words[:fit], starts[:fit]


def shares(lengths, most):
    """How many pieces of one text or two are read if there is room for `most`: the longer one is cut first."""
    if sum(lengths) <= most or len(lengths) == 1:
        return [min(length, most) for length in lengths]
    one, other = lengths
    if one <= most // 2:
        return [one, most - one]
    return [most - other, other] if other <= most // 2 else [most - most // 2, most // 2]


class Splitter:
    """The tokeniser, from the JSON that it wrote."""

    def __init__(self, saved):
        self.options, self.vocabulary = saved["options"], saved["vocabulary"]
        self.ids = {piece: number for number, piece in enumerate(self.vocabulary)}

    def split(self, text):
        """(id, (start, end)) of each piece, in characters of the text."""
        found, start = [], 0
        for part in re.split(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])", text):
            if part in SPECIAL:
                found.append((self.ids[part], (start, start + len(part))))
            else:
                found += [piece for word in self.words(part, start) for piece in self.longest(word)]
            start += len(part)
        return found

    def words(self, text, start):
        """Words as lists of letters, each with its place."""
        strip = self.options["lowercase"] if self.options["strip_accents"] is None else self.options["strip_accents"]
        found = [[]]
        for place, letter in enumerate(text, start):
            if letter in "\0\ufffd" or (unicodedata.category(letter)[0] == "C" and letter not in "\t\n\r"):
                continue
            several = [letter]
            if strip:
                several = [each for each in unicodedata.normalize("NFD", letter) if unicodedata.category(each) != "Mn"]
            for each in "".join(several).lower() if self.options["lowercase"] else several:
                alone = each in SIGNS or unicodedata.category(each)[0] == "P"
                alone = alone or (self.options["split_chinese"] and CHINESE.match(letter))
                if each.isspace() or alone:
                    found += [[(each, place)], []] if alone else [[]]
                else:
                    found[-1].append((each, place))
        return [word for word in found if word]

    def longest(self, word):
        """The longest pieces that the vocabulary has, from the first letter on."""
        text, places = "".join(letter for letter, _ in word), [place for _, place in word]
        found, begin = [], 0
        while begin < len(text) <= 100:
            mark = "##" if begin else ""
            end = next((e for e in range(len(text), begin, -1) if mark + text[begin:e] in self.ids), None)
            if end is None:
                found = []
                break
            found.append((self.ids[mark + text[begin:end]], (places[begin], places[end - 1] + 1)))
            begin = end
        return found or [(self.ids["[UNK]"], (places[0], places[-1] + 1))]
