"""Labels: one, several or ordered ones, or one for each word."""

import numpy as np

from . import Answering, log_softmax


class Task(Answering):
    def answer(self, rows, threshold=0.5):
        found = self.model.run("model", self.arrays(rows))
        if self.about["form"] == "tags":
            return [self.tagged(found, row, number) for number, row in enumerate(rows)]
        chances = self.probabilities(found["logits"].astype(np.float32))
        return [
            {**self.decided(each, threshold), **self.looked(found, row, number)}
            for number, (row, each) in enumerate(zip(rows, chances))
        ]

    @property
    def empty_answer(self):
        if self.about["form"] == "tags":
            return {"answer": [], "score": 1.0}
        return {"answer": [] if self.about["form"] == "several" else None, "score": 0.0, "probabilities": {}}

    def probabilities(self, logits):
        if self.about["form"] in ("one", "tags"):
            return np.exp(log_softmax(logits))
        single = 1 / (1 + np.exp(-logits))
        if self.about["form"] == "several":
            return single
        ends = np.ones_like(single[:, :1])
        edges = np.concatenate([ends, single, 0 * ends], axis=1)
        grades = np.maximum(edges[:, :-1] - edges[:, 1:], 0)
        return grades / grades.sum(1, keepdims=True)

    def decided(self, chances, threshold):
        probabilities = dict(zip(self.about["labels"], chances.tolist()))
        if self.about["form"] == "several":
            answer = [name for name, p in probabilities.items() if p >= threshold]
            score = min(max(p, 1 - p) for p in probabilities.values())
        else:
            answer = max(probabilities, key=probabilities.get)
            score = probabilities[answer]
        return {"answer": answer, "score": score, "probabilities": probabilities}

    def tagged(self, found, row, number):
        """The tag of each word, which its first piece decides about."""
        role, reader = next(iter(self.model.readers.items()))
        words, places = reader.word_starts(row[role])
        chances = self.probabilities(found["logits"][number, places].astype(np.float32))
        tags = [self.about["labels"][each] for each in chances.argmax(1)]
        answer = {"answer": tags, "score": float(chances.max(1).min()) if places else 1.0, "queries": words}
        looked = self.looked(found, row, number)
        return {**looked, **answer, **({"weights": looked["weights"][places]} if looked else {})}
