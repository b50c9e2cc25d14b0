"""Language models: how a text continues, what fills its blanks, or how likely it is."""

import numpy as np

from . import Answering, log_softmax, padded
from .search import BOS, EOS, search

BLANK = "[MASK]"


class Answerer(Answering):
    def encode(self, example):
        text = example["text"]
        first, *others = map(self.vocabulary.encode, [text] if self.about["causal"] else text.split(BLANK))
        ids = [*first, *(token for other in others for token in (self.about["mask_id"], *other))]
        return {"text": text, "ids": ids}

    @property
    def vocabulary(self):
        return self.model.readers["text"].vocabulary

    def size(self, row):
        return len(row["ids"])

    def answer(self, rows, score=False, **options):
        if score and self.about["contiguous"]:
            raise ValueError("This model scores texts as parts of one, which needs Saccade: see `saccade score`.")
        if score:
            return [self.measured(row) for row in rows]
        return self.continued(rows, **options) if self.about["causal"] else [self.filled(row) for row in rows]

    def log_probs(self, several):
        """(texts, positions, tokens) of texts that begin with the start."""
        values, mask = padded(several)
        return log_softmax(self.model.run("model", {"text": values, "text_mask": mask})["logits"].astype(np.float32))

    def measured(self, row):
        """The log-probability of a text, piece by piece; of a masked model, with each token hidden once."""
        ids, most, every = [BOS, *row["ids"], EOS], self.about["piece"], self.about["every"]
        total, tokens = 0.0, 0
        for start in range(0, len(ids) - 1, most):
            piece = ids[start : start + most + 1]
            if self.about["causal"]:
                found = self.log_probs([piece[:-1]])[0]
                total += sum(float(found[place, token]) for place, token in enumerate(piece[1:]))
                tokens += len(piece) - 1
                continue
            open_to_guess = [n for n, token in enumerate(piece) if n and token not in (EOS, self.about["mask_id"])]
            for first in range(1, every + 1):
                hidden = {place for place in open_to_guess if (place - first) % every == 0}
                given = [self.about["mask_id"] if place in hidden else token for place, token in enumerate(piece)]
                found = self.log_probs([given])[0] if hidden else None
                total += sum(float(found[place, piece[place]]) for place in hidden)
                tokens += len(hidden)
        return {"answer": total, "score": total / max(1, tokens), "tokens": tokens}

    def continued(self, rows, beam=1, nbest=1, length_penalty=0.0, max_length=None):
        """The texts with what follows; of those that are too long, only the end is read."""
        most = self.about["most"]
        prompts = [row["ids"][max(0, len(row["ids"]) - (most // 2 if most else len(row["ids"]))) :] for row in rows]
        lengths = np.array([len(prompt) for prompt in prompts])
        limit = lengths + (max_length or self.about["added"])
        limit = limit if most is None else np.minimum(limit, most - 1)
        given = {"tokens": np.full(len(rows), BOS)}
        found = search(self.model, given, limit, beam, nbest, length_penalty, prefix=prompts)
        before = self.log_probs([[BOS, *prompt] for prompt in prompts])
        answers = []
        for row, prompt, known, several in zip(rows, prompts, before, found):
            known = sum(float(known[place, token]) for place, token in enumerate(prompt))
            texts = []
            for finished, _, total, tokens, *_ in several:
                steps, log_prob = len(tokens) - len(prompt) + finished, total - known
                score = log_prob / ((5 + steps) / 6) ** length_penalty
                about = {"score": score, "log_prob": log_prob, "finished": finished}
                texts.append({"answer": self.joined(row["text"], prompt, tokens), **about})
            texts.sort(key=lambda each: -each["score"])
            answers.append(texts[0] if nbest == 1 else {**texts[0], "nbest": texts})
        return answers

    def joined(self, text, prompt, tokens):
        whole, begun = self.vocabulary.decode(tokens), self.vocabulary.decode(prompt)
        return self.vocabulary._normalised(text) + whole[len(begun) :] if whole.startswith(begun) else whole

    def filled(self, row):
        """The text with the likeliest token in each blank."""
        most, mask_id = self.about["most"], self.about["mask_id"]
        ids = [*row["ids"], EOS]
        ids = [BOS, *ids[max(0, len(ids) - (len(ids) if most is None else most - 1)) :]]
        places = [place for place, token in enumerate(ids) if token == mask_id]
        if not places:
            raise ValueError(f"{row['text']!r:.60} has no {BLANK} to fill in: write one, or ask for score.")
        found = self.log_probs([ids])[0][places, 4:mask_id]
        for place, token in zip(places, found.argmax(1)):
            ids[place] = int(token) + 4
        return {"answer": self.vocabulary.decode(ids), "score": float(found.max(1).mean())}
