"""Documents: texts as sentences of words."""

import re

import numpy as np

from .text import Vocabulary


class InputReader:
    def __init__(self, about):
        self.about, self.vocabulary = about, Vocabulary(about["tokeniser"])

    def encode(self, value, most=None):
        """The ids of each sentence; one without any is passed over, as the model does."""
        sentences = self.sentences(value)[: self.about["max_sentences"]]
        ids = [self.vocabulary.encode(sentence)[: self.about["max_words"]] for sentence in sentences]
        kept = [(each, sentence) for each, sentence in zip(ids, sentences) if each]
        if not kept:
            raise ValueError(f"{value!r:.60} has no words.")
        return {"ids": [each for each, _ in kept], "sentences": [sentence for _, sentence in kept]}

    def sentences(self, value):
        texts = [value] if isinstance(value, str) else list(value)
        if self.about["sentences"] == "lines":
            return [line for text in texts for line in text.splitlines() if line.strip()]
        if self.about["sentences"] == "given":
            if isinstance(value, str):
                raise ValueError(f"This model reads lists of sentences, not {value!r:.60}.")
            return texts
        return [sentence for text in texts for sentence in self.split(text)]

    def split(self, text):
        try:
            from sentencex import segment
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("This model splits texts into sentences: pip install sentencex") from error
        found = []
        for sentence in segment(self.about["language"], re.sub(r"[^\S\n]", " ", text)):
            parts = [sentence]
            if len(sentence.split()) > 60:  # a stray mark may have joined several
                parts = segment(self.about["language"], re.sub(r'["“”„«»()\[\]{}]', " ", sentence))
            start = 0
            for part in parts:
                found.append(sentence[start : start + len(part)].strip())
                start += len(part)
        return [sentence for sentence in found if sentence]

    def size(self, encoded):
        return sum(map(len, encoded["ids"]))

    def pad(self, several):
        shape = [max(len(each["ids"]) for each in several), max(len(ids) for each in several for ids in each["ids"])]
        values = np.zeros((len(several), *shape), dtype=np.int64)
        mask = np.zeros(values.shape, dtype=bool)
        for row, each in enumerate(several):
            for place, ids in enumerate(each["ids"]):
                values[row, place, : len(ids)], mask[row, place, : len(ids)] = ids, True
        return {"values": values, "mask": mask}

    def seen(self, encoded, weights):
        """Of each word in the whole document; of each sentence, if the model attends to sentences alone."""
        if weights.ndim == 1:
            return weights[: len(encoded["sentences"])], encoded["sentences"]
        rows = [row[: len(ids)] for row, ids in zip(weights, encoded["ids"])]
        return np.concatenate(rows), [self.vocabulary.pieces[number] for ids in encoded["ids"] for number in ids]
