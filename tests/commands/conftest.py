"""A model of words that is trained for a moment, and one without attention."""

import random
from functools import partial

import pytest

import saccade
from saccade.fields import Text
from saccade.models import Cho, RNNSearch
from saccade.tasks import Generation

LETTERS = random.Random(11)
WORDS = ["ba", "dodo", "kelu", "minamo", "su", "tarifa", "we"]
SOURCES = [" ".join(LETTERS.choices(WORDS, k=LETTERS.randint(1, 4))) for _ in range(130)]
PAIRS = [(source, " ".join(word[::-1] for word in source.split())) for source in SOURCES]


def train(folder, model, **arguments) -> str:
    saccade.train(
        task=partial(
            Generation, source=partial(Text, tokeniser={"class": "bpe", "vocab_size": 29}), metrics=["exact_match"]
        ),
        model=partial(model, embedding_dim=7, hidden_dim=11),
        data={"train": PAIRS, **arguments},
        trainer={"max_steps": 3, "batch_tokens": 130, "validate_examples": 3},
        output=folder,
    )
    return str(folder)


@pytest.fixture(scope="session")
def run(tmp_path_factory) -> str:
    return train(tmp_path_factory.mktemp("runs") / "words", RNNSearch)


@pytest.fixture(scope="session")
def blind(tmp_path_factory) -> str:
    return train(tmp_path_factory.mktemp("runs") / "blind", Cho)
