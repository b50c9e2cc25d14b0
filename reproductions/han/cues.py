"""Synthetic documents of real sentences: the label is decided by the one sentence that holds a cue word."""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import saccade
from saccade.interpretation.explorer import Item

DOCUMENTS, TESTS = 3000, 500
CUES = {
    "yes": ["certainly", "indeed", "granted", "agreed", "accepted"],
    "no": ["refused", "denied", "rejected", "declined", "never"],
}
"""The words that decide; they are taken out of all other sentences."""

LENGTHS = range(5, 26)
"""The numbers of words of the sentences that are used."""

SIZES = {"embedding_dim": 50, "hidden_dim": 25, "dropout": 0.2}
TRAINER = {"batch_tokens": 4096, "learning_rate": 3e-3, "max_steps": 400, "validate_every": 100, "max_epochs": None}
MODELS = {
    "HAN, attention": {"class": "han", "word_pooling": "attention", "sentence_pooling": "attention"},
    "HAN, average": {"class": "han", "word_pooling": "average", "sentence_pooling": "average"},
    "HAN, max": {"class": "han", "word_pooling": "max", "sentence_pooling": "max"},
    "flat GRU, attention": {"class": "pooling", "score": "query_free"},
}


NONE = "none"
"""The label of a third of the documents, without a cue: otherwise one label could be the rest, and need no look."""


class Cued(NamedTuple):
    """A document with the place of its cue, sentence and word counted from 0; -1 without one."""

    sentences: list[str]
    label: str
    sentence: int = -1
    word: int = -1


def make_documents(sentences: Sequence[str], count: int, seed: int) -> list[Cued]:
    """Documents of 5 to 10 sentences; in two thirds of them, a cue stands at a random place of a random one."""
    draw = random.Random(seed)
    taken = {word for words in CUES.values() for word in words}
    usable = [s for s in sentences if len(s.split()) in LENGTHS and not taken.intersection(s.split())]
    found = []
    for _ in range(count):
        chosen = [draw.choice(usable).split() for _ in range(draw.randint(5, 10))]
        label, place = draw.choice([*sorted(CUES), NONE]), -1
        word = -1
        if label != NONE:
            place = draw.randrange(len(chosen))
            word = draw.randrange(len(chosen[place]) + 1)
            chosen[place].insert(word, draw.choice(CUES[label]))
        found.append(Cued([" ".join(words) for words in chosen], label, place, word))
    return found


def measured(name: str, sentences: Sequence[str], documents: int, folder: Path) -> dict[str, Any]:
    """Trains a model, and measures how often it is right and how often it looks at the cue."""
    train, valid, test = (make_documents(sentences, n, seed) for seed, n in enumerate((documents, 200, TESTS)))
    hierarchical = MODELS[name]["class"] == "han"

    def rows(cued: list[Cued]) -> list[dict[str, Any]]:
        return [{"text": c.sentences if hierarchical else " ".join(c.sentences), "label": c.label} for c in cued]

    field = {"class": "document", "sentences": "given"} if hierarchical else {"class": "text", "max_length": 500}
    shutil.rmtree(folder, ignore_errors=True)  # what an interrupted run left
    run = saccade.train(
        task={"class": "classification", "inputs": {"text": {**field, "tokeniser": "pretokenised"}}},
        model={**MODELS[name], **SIZES},
        data={"train": rows(train), "valid": rows(valid)},
        trainer=TRAINER,
        output=folder,
    )
    accuracy = run.evaluate(rows(test)).figures["accuracy"].value
    found: dict[str, Any] = {"accuracy": accuracy, "sentence": None, "word": None}
    if "attention" in name:
        cued = [each for each in test if each.label != NONE]
        items = run.explain([row["text"] for row in rows(cued)])
        hits = [looked(item, each) for item, each in zip(items, cued, strict=True)]
        found["sentence"], found["word"] = (100 * sum(each) / len(hits) for each in zip(*hits, strict=True))
    shutil.rmtree(folder)
    print(f"synthetic documents, {name}: {found}", flush=True)
    return found


def looked(item: Item, cued: Cued) -> tuple[bool, bool]:
    """Whether the largest weight is on the sentence of the cue and, within that sentence, on the cue."""
    weights = {each.name: each.weights[0, 0] for each in item.maps}
    start = sum(len(sentence.split()) for sentence in cued.sentences[: cued.sentence])
    end = start + len(cued.sentences[cued.sentence].split())
    words = weights["pooling"] if "pooling" in weights else weights["words.pooling"]
    word = int(words[start:end].argmax()) == cued.word
    if "pooling" in weights:
        return start <= int(words.argmax()) < end, word
    return int(weights["sentences.pooling"].argmax()) == cued.sentence, word
