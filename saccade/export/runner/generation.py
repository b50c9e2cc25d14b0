"""Texts that are written token by token."""

import numpy as np

from . import Answering, padded, part
from .search import EOS, FoundText, search

END = "</s>"


class Answerer(Answering):
    def __init__(self, model, about):
        super().__init__(model, about)
        self.target = part(about["target"]["kind"]).Vocabulary(about["target"]["tokeniser"])

    def encode(self, example):
        row = super().encode(example)
        if self.about["copying"]:
            row["source"].update(self.copied(row["source"], self.model.readers["source"].vocabulary))
        return row

    def copied(self, source, vocabulary):
        """The word at each position of a source, as an id of the target's vocabulary or of its unknown words."""
        extra, said = {}, []
        for unit, ids in vocabulary.units(source["text"]):
            number = self.target.ids.get(unit)
            number = len(self.target.pieces) + extra.setdefault(unit, len(extra)) if number is None else number
            said += [number] * len(ids)
        return {"said": [*said[: len(source["ids"]) - 1], EOS], "extra": list(extra)}

    def arrays(self, rows):
        words = {"source_words": padded([row["source"]["said"] for row in rows])[0]} if self.about["copying"] else {}
        return {**super().arrays(rows), **words}

    def answer(self, rows, beam=5, nbest=1, length_penalty=0.6, coverage_penalty=0.0, max_length=None):
        if not 1 <= nbest <= beam:
            raise ValueError(f"nbest must be from 1 to beam={beam}, got {nbest}.")
        readers = self.model.readers.items()
        blank = [all(self.blank(role, row[role]) for role in row) for row in rows]
        real = [row for row, empty in zip(rows, blank) if not empty]
        options = {"length_penalty": length_penalty, "coverage_penalty": coverage_penalty}
        lengths = np.array([max(reader.size(row[role]) for role, reader in readers) for row in real], dtype=np.float32)
        limits = self.limits(lengths) if max_length is None else np.full(len(real), max_length)
        found = iter(search(self.model, self.arrays(real), limits, beam, nbest, **options) if real else ())
        answers = []
        for row, empty in zip(rows, blank):
            several = [FoundText(True, 0.0, 0.0, [])] if empty else next(found)
            best = [self.written(row, each, empty) for each in several]
            answers.append(best[0] if nbest == 1 else {**best[0], "nbest": best})
        return answers

    def blank(self, role, value):
        """Whether an input asks nothing: it is missing, or a text that has an end only."""
        text = self.model.about["inputs"][role]["kind"] == "text"
        return value is None or (text and self.model.readers[role].size(value) == 1)

    def written(self, row, found, empty):
        extra = row["source"]["extra"] if self.about["copying"] else ()
        answer = {"answer": self.target.decode(found.tokens, extra), "score": found.score, "log_prob": found.log_prob}
        answer["finished"] = found.finished
        answer["queries"] = [*self.target.named(found.tokens, extra), *[END] * (found.finished and not empty)]
        if found.origins is not None:
            answer["origins"] = self.origins(row["source"], answer["queries"], found.origins)
        looked = {}
        for (role, reader), own in zip(self.model.readers.items(), found.weights or [None] * len(row)):
            looked[role] = {"keys": reader.names(row[role], None if own is None else own.shape[1]), "weights": own}
        answer.update(looked["source"])
        return answer if len(looked) == 1 else {**answer, "sources": looked}

    def origins(self, source, tokens, origins):
        """Where each token came from: the way that contributed most, its share, and the position that it used."""
        keys, words = self.model.readers["source"].spelled(source)
        said = []
        for token, (way, share, place) in zip(tokens, origins):
            used = {} if place is None else {"position": place, "key": keys[place], "word": words[place]}
            said.append({"token": token, "from": way, "share": share, **used})
        return said

    def limits(self, lengths):
        """The most tokens of an answer to sources of these lengths."""
        about = self.about
        most = 2 * np.ceil(np.float32(about["ratio"]) * lengths).astype(int) + 10
        most = np.clip(most, about["longest"] + 10, about["limit"])
        return most if about["written"] is None else np.minimum(most, about["written"])
