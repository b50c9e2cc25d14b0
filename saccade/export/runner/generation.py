"""Texts that are written token by token."""

import numpy as np

from . import Answering, part
from .search import search

END = "</s>"


class Task(Answering):
    def __init__(self, model, about):
        super().__init__(model, about)
        self.target = part(about["target"]["kind"]).Vocabulary(about["target"]["tokeniser"])

    def answer(self, rows, beam=5, nbest=1, length_penalty=0.6, coverage_penalty=0.0, max_length=None):
        if not 1 <= nbest <= beam:
            raise ValueError(f"nbest must be from 1 to beam={beam}, got {nbest}.")
        reader = self.model.readers["source"]
        blank = [self.about["texts"] and reader.size(row["source"]) == 1 for row in rows]  # nothing was asked
        real = [row for row, empty in zip(rows, blank) if not empty]
        options = {"length_penalty": length_penalty, "coverage_penalty": coverage_penalty}
        lengths = np.array([reader.size(row["source"]) for row in real], dtype=np.float32)
        limits = self.limits(lengths) if max_length is None else np.full(len(real), max_length)
        found = iter(search(self.model, self.arrays(real), limits, beam, nbest, **options) if real else ())
        answers = []
        for row, empty in zip(rows, blank):
            several = [(True, 0.0, 0.0, [], None)] if empty else next(found)
            best = [self.written(row, *each, empty) for each in several]
            answers.append(best[0] if nbest == 1 else {**best[0], "nbest": best})
        return answers

    def written(self, row, finished, score, log_prob, tokens, weights, empty):
        answer = {"answer": self.target.decode(tokens), "score": score, "log_prob": log_prob, "finished": finished}
        queries = [*(self.target.pieces[number] for number in tokens), *[END] * (finished and not empty)]
        keys = self.model.readers["source"].names(row["source"], None if weights is None else weights.shape[1])
        return {**answer, "queries": queries, "keys": keys, "weights": weights}

    def limits(self, lengths):
        """The most tokens of an answer to sources of these lengths."""
        about = self.about
        most = 2 * np.ceil(np.float32(about["ratio"]) * lengths).astype(int) + 10
        most = np.clip(most, about["longest"] + 10, about["limit"])
        return most if about["written"] is None else np.minimum(most, about["written"])
