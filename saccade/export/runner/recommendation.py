"""Ratings of items by users, from the reviews of both, and the best items for a user."""

import numpy as np

from . import Answering
from .text import JOINER, Vocabulary

SIDES = ("user", "item")


class Answerer(Answering):
    def __init__(self, model, about):
        super().__init__(model, about)
        self.vocabulary, reviews = Vocabulary(about["tokeniser"]), about["reviews"]
        self.of = {side: np.array(reviews[side], dtype=np.int64) for side in SIDES}
        self.times = np.array([np.nan if time is None else time for time in reviews["time"]], dtype=float)
        self.tokens, self.texts = reviews["tokens"], reviews["text"]
        self.worded = np.array([bool(each) for each in self.tokens], dtype=bool)
        self.rows = {side: grouped(self.of[side], self.times) for side in SIDES}
        self.items = model.about["inputs"]["item"]["names"]
        self.shapes = {given.name: given.shape for given in model.graphs["model"].get_inputs()}

    def encode(self, example):
        found = {role: reader.encode(example[role]) for role, reader in self.model.readers.items() if role != "item"}
        asked = example["item"] is not None
        return {**found, "item": self.model.readers["item"].encode(example["item"]) if asked else None}

    def size(self, row):
        return 1

    def answer(self, rows, top=10, seen=False):
        rated = iter(self.rated([row for row in rows if row["item"] is not None]))
        return [self.recommended(row, top, seen) if row["item"] is None else next(rated) for row in rows]

    def recommended(self, row, top, seen):
        """The items with the highest ratings for a user; by default only those that the user has not reviewed."""
        known = set() if seen or not row["user"] else set(self.of["item"][self.rows["user"].get(row["user"], [])])
        items = [number for number in range(1, len(self.items) + 1) if number not in known]
        if not items:
            return {"answer": None, "score": 0.0}
        every = [{**row, "item": item} for item in items]
        several = [every[start : start + 256] for start in range(0, len(every), 256)]
        scores = np.concatenate([self.model.run("model", self.given(each))["logits"][:, 0] for each in several])
        best = np.argsort(-scores.astype(np.float64), kind="stable")[:top]
        found = [
            {**answer, "answer": self.items[items[place] - 1], "rating": answer["answer"]}
            for place, answer in zip(best, self.rated([every[place] for place in best]))
        ]
        return {**found[0], "nbest": found}

    def rated(self, rows):
        if not rows:
            return []
        given = self.given(rows)
        found, answers = self.model.run("model", given), []
        for number, row in enumerate(rows):
            cold = not row["user"] and not row["item"]
            score = 0.0 if cold else float(found["logits"][number, 0])
            answer = {"answer": score * self.about["deviation"] + self.about["mean"], "score": score}
            looks = {side: self.looked_at(found, given, row, number, side) for side in SIDES}
            reasons = {side: look["reason"] for side, look in looks.items() if look}
            shown = next((looks[side] for side in reversed(SIDES) if looks[side]), {})
            answer |= {name: shown[name] for name in ("weights", "keys", "picked") if name in shown}
            answers.append({**answer, **({"reasons": reasons} if reasons else {})})
        return answers

    def history(self, side, row):
        """The latest reviews of a user or an item that may be read, none of them by this user of this item."""
        other = SIDES[side == "user"]
        rows = self.rows[side].get(row[side], np.zeros(0, dtype=np.int64))
        kept = (self.of[other][rows] != row[other]) & self.worded[rows]
        if self.about["earlier"] and row["time"] is not None and not np.isnan(self.times).all():
            kept &= self.times[rows] < row["time"]
        return rows[kept][-self.about["max_reviews"] :].tolist()

    def given(self, rows):
        """What the graph takes."""
        found = {side: np.array([row[side] for row in rows], dtype=np.int64) for side in SIDES}
        for side in SIDES:
            several = [[self.tokens[number] for number in self.history(side, row)] for row in rows]
            sizes = max(1, 1, *map(len, several)), max(1, 1, *(len(ids) for each in several for ids in each))
            fixed = self.shapes.get(f"{side}_words", (None, None, None))[1:]
            shape = [own if isinstance(own, int) else size for own, size in zip(fixed, sizes)]
            words = np.zeros((len(rows), *shape), dtype=np.int64)
            mask = np.zeros(words.shape, dtype=bool)
            for row, each in enumerate(several):
                for place, ids in enumerate(each):
                    words[row, place, : len(ids)], mask[row, place, : len(ids)] = ids, True
            found |= {f"{side}_words": words, f"{side}_mask": mask}
        return found

    def looked_at(self, found, given, row, number, side):
        """The words of one side that decided, and the review that is the reason; nothing without attention."""
        lengths = given[f"{side}_mask"][number].sum(1)
        read, total = self.history(side, row), int(lengths.sum())
        names = [name for name in found if name.startswith("weights_") and side in name.split("_")]
        pointing = [name for name in names if "reviews" in name.split("_")]
        if not names or not total:
            return {}
        rows = {name: found[name][number].mean((0, 1)) for name in names}
        starts = np.concatenate([[0], lengths.cumsum()])
        picked, weights = [], np.zeros(total, dtype=np.float32)
        for name in pointing:
            review = int(rows[name].argmax())
            words = rows[name.replace(f"reviews_{side}", f"words_{side}")][: lengths[review]]
            weights[starts[review] : starts[review + 1]] += words / len(pointing)
            picked.append(review)
        if not pointing:
            weights = rows[names[0]][:total]
        pieces = [self.vocabulary.pieces[token] for review in read for token in self.tokens[review]]
        keys = [piece.replace(JOINER, "") or piece for piece in pieces]
        review = picked[0] if picked else int(np.searchsorted(starts, weights.argmax(), side="right")) - 1
        places = sorted(range(starts[review], starts[review + 1]), key=lambda place: -weights[place])
        words = list(dict.fromkeys(keys[place] for place in places if weights[place] > 0))[:3]
        text = " ".join(self.texts[read[review]].split())
        reason = {"review": text if len(text) <= 200 else f"{text[:197]}...", "words": words}
        chosen = sorted({place for each in picked for place in range(starts[each], starts[each + 1])})
        return {"weights": weights[None], "keys": keys, "reason": reason, **({"picked": chosen} if chosen else {})}


def grouped(owners, times):
    """The reviews of each owner, from the earliest to the latest."""
    order = np.lexsort((times, owners))
    found, starts = np.unique(owners[order], return_index=True)
    return dict(zip(found.tolist(), np.split(order, starts[1:]))) if len(order) else {}
