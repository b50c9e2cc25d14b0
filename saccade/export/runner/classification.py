"""Labels: one, several or ordered ones, or one for each word."""

import numpy as np

from . import Answering, log_softmax

VISITS = "visits_"


class Answerer(Answering):
    @property
    def form(self):
        """What is chosen for an input, or for each of its visits."""
        return self.about["form"].removeprefix(VISITS)

    def answer(self, rows, threshold=0.5):
        found = self.model.run("model", self.arrays(rows))
        if self.about["form"] == "tags":
            return [self.tagged(found, row, number) for number, row in enumerate(rows)]
        if self.about["form"].startswith(VISITS):
            return [self.at_each_visit(found, row, number, threshold) for number, row in enumerate(rows)]
        chances = self.probabilities(found["logits"].astype(np.float32))
        return [
            {**self.decided(each, threshold), **self.looked(found, row, number)}
            for number, (row, each) in enumerate(zip(rows, chances))
        ]

    @property
    def empty_answer(self):
        if self.about["form"] == "tags":
            return {"answer": [], "score": 1.0}
        return {"answer": [] if self.form == "several" else None, "score": 0.0, "probabilities": {}}

    def probabilities(self, logits):
        if self.form in ("one", "tags"):
            return np.exp(log_softmax(logits))
        single = 1 / (1 + np.exp(-logits))
        if self.form == "several":
            return single
        ends = np.ones_like(single[:, :1])
        edges = np.concatenate([ends, single, 0 * ends], axis=1)
        grades = np.maximum(edges[:, :-1] - edges[:, 1:], 0)
        return grades / grades.sum(1, keepdims=True)

    def decided(self, chances, threshold):
        probabilities = dict(zip(self.about["labels"], chances.tolist()))
        if self.form == "several":
            answer = [name for name, p in probabilities.items() if p >= threshold]
            score = min(max(p, 1 - p) for p in probabilities.values())
        else:
            positive, answer = self.about.get("positive"), max(probabilities, key=probabilities.get)
            if positive is not None:
                answer = self.about["labels"][positive if chances[positive] >= threshold else 1 - positive]
            score = probabilities[answer]
        return {"answer": answer, "score": score, "probabilities": probabilities}

    def at_each_visit(self, found, row, number, threshold):
        """The answer at each visit, from that visit and those before it."""
        role, reader = next(iter(self.model.readers.items()))
        names = reader.names(row[role])
        chances = self.probabilities(found["logits"][number, : len(names)].astype(np.float32))
        each = [self.decided(one, threshold) for one in chances]
        probabilities = [one["probabilities"] for one in each]
        answer = {"answer": [one["answer"] for one in each], "score": min(one["score"] for one in each)}
        return {**answer, "visits": names, "probabilities": probabilities, **self.looked(found, row, number)}

    def tagged(self, found, row, number):
        """The tag of each word, which its first piece decides about."""
        role, reader = next(iter(self.model.readers.items()))
        words, places = reader.word_starts(row[role])
        chances = self.probabilities(found["logits"][number, places].astype(np.float32))
        tags = [self.about["labels"][each] for each in chances.argmax(1)]
        answer = {"answer": tags, "score": float(chances.max(1).min()) if places else 1.0, "queries": words}
        looked = self.looked(found, row, number)
        return {**looked, **answer, **({"weights": looked["weights"][places]} if looked else {})}
