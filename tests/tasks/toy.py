"""A small task for the tests of training."""

import json
import random
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional as F

from saccade.tasks import GeneratedText, Loss, Task

VOCABULARY = 7


class NeighbourSums(Task):
    """For each digit, its sum with the digit before it, modulo 7."""

    metrics: ClassVar = {"accuracy": True, "errors": False}

    def __init__(self, *, offset: int = 0) -> None:
        self.offset = offset
        self.longest = 0

    def fit(self, examples):
        self.longest = max(len(example["source"]) for example in examples)

    def encode(self, example):
        encoded = {"source": [int(c) for c in example["source"]]}
        if "target" in example:
            encoded["target"] = [int(c) for c in example["target"]]
        return encoded

    def size(self, encoded):
        return len(encoded["source"])

    def collate(self, encoded, *, generator=None):
        length = max(len(e["source"]) for e in encoded)
        padded = {key: torch.tensor([e[key] + [-1] * (length - len(e[key])) for e in encoded]) for key in encoded[0]}
        return {**padded, "mask": padded["source"] >= 0}

    def loss(self, model, batch):
        logits = model.output(model(batch["source"].clamp_min(0)))
        valid = batch["mask"]
        total = F.cross_entropy(logits[valid].float(), batch["target"][valid], reduction="sum")
        return Loss(total, valid.sum(), {"right": (logits[valid].argmax(-1) == batch["target"][valid]).sum()})

    def predict(self, model, inputs, **options):
        predictions = []
        for text in inputs:
            logits = model.output(model(torch.tensor([[int(c) for c in text]])))
            tokens = logits[0].argmax(-1).tolist()
            predictions.append(GeneratedText("".join(map(str, tokens)), logits.max().item(), tokens=tokens))
        return predictions

    def evaluate(self, model, examples, **options):
        random.random()  # figures may be random: that must not change how training goes on
        torch.rand(3)
        predictions = self.predict(model, [e["source"] for e in examples])
        right = [p.text == e["target"] for p, e in zip(predictions, examples, strict=True)]
        return {"accuracy": sum(right) / len(right), "errors": float(len(right) - sum(right))}

    def save(self, folder):
        (Path(folder) / "sums.json").write_text(json.dumps({"longest": self.longest}))

    def load(self, folder):
        self.longest = json.loads((Path(folder) / "sums.json").read_text())["longest"]


class SumModel(nn.Module):
    """A GRU whose output layer, called by the task and not by `forward`, is tied to the embedding."""

    def __init__(self, *, hidden_dim: int = 11, dropout: float = 0.0, unused: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, hidden_dim)
        self.recurrent = nn.GRU(hidden_dim, hidden_dim, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.tied = nn.Linear(hidden_dim, VOCABULARY, bias=False)
        self.tied.weight = self.embedding.weight
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.unused = nn.Parameter(torch.ones(3)) if unused else None

    def forward(self, tokens):
        self.calls += self.training
        return self.dropout(self.recurrent(self.embedding(tokens))[0])

    def output(self, features):
        return self.tied(features)


def examples(count: int, seed: int, longest: int = 13) -> list[dict[str, str]]:
    generator = random.Random(seed)
    made = []
    for _ in range(count):
        digits = [generator.randrange(VOCABULARY) for _ in range(generator.randint(1, longest))]
        sums = [sum(digits[max(0, i - 1) : i + 1]) % VOCABULARY for i in range(len(digits))]
        made.append({"source": "".join(map(str, digits)), "target": "".join(map(str, sums))})
    return made
