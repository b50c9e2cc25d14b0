"""Numbers."""

from . import Answering


class Answerer(Answering):
    @property
    def empty_answer(self):
        return {"answer": None, "score": 0.0}

    def answer(self, rows):
        found = self.model.run("model", self.arrays(rows))
        answers = []
        for number, (row, (score,)) in enumerate(zip(rows, found["logits"].tolist())):
            value = score * self.about["deviation"] + self.about["mean"]
            answers.append({"answer": value, "score": score, **self.looked(found, row, number)})
        return answers
