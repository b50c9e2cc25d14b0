"""The part of a text that answers a question."""

import numpy as np

from . import Answering, log_softmax


class Answerer(Answering):
    @property
    def empty_answer(self):
        return {"answer": "", "score": 0.0, "start": None, "end": None}

    def answer(self, rows, max_answer=30):
        given = self.arrays(rows)
        mask, segments = given["text_mask"], given["text_segments"]
        possible = mask & (segments == segments.max(1, keepdims=True))
        possible[:, 0] = True  # no answer
        logits = self.model.run("model", given)["logits"].astype(np.float32)
        starts, ends = np.moveaxis(log_softmax(np.where(possible[..., None], logits, -np.inf), axis=1), -1, 0)
        ones = np.ones((mask.shape[1], mask.shape[1]), dtype=bool)
        fits = np.triu(ones) & ~np.triu(ones, max_answer)
        fits[0, 1:] = False
        together = np.where(fits, starts[:, :, None] + ends[:, None], -np.inf).reshape(len(rows), -1)
        answers = []
        for row, scores in zip((row["text"] for row in rows), together):
            best = int(scores.argmax())
            first, last = (row["places"][p] if p < len(row["ids"]) else None for p in divmod(best, mask.shape[1]))
            begin, end = (None, None) if first is None or last is None else (first[0], last[1])
            text = "" if begin is None else row["texts"][-1][begin:end]
            answers.append({"answer": text, "score": float(scores[best]), "start": begin, "end": end})
        return answers
