"""Small runs to export, trained for a moment."""

from functools import partial

import pytest

import saccade
from saccade.fields import Text
from saccade.models import AttentionPooling, RNNSearch
from saccade.tasks import Classification, Generation

WORDS = ["ba", "dodo", "kelu", "minamo", "su", "tarifa", "we,"]
SOURCES = [" ".join(WORDS[(n + k * k) % 7] for k in range(1 + n % 4)) for n in range(60)]
PAIRS = [(source, source[::-1]) for source in SOURCES]
LABELLED = [(source, "even" if len(source) % 2 else "odd") for source in SOURCES]
BRIEF = {"max_steps": 3, "batch_tokens": 130, "validate_examples": 3}


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Trains a run with arguments of its model."""

    def train(task, model, data, **arguments):
        return saccade.train(
            task=task,
            model=partial(model, **arguments),
            data={"train": data},
            trainer=BRIEF,
            output=tmp_path_factory.mktemp("runs") / "run",
        )

    return train


@pytest.fixture(scope="session")
def writer(trained):
    task = partial(Generation, source=partial(Text, tokeniser="char"), metrics=["exact_match"])
    return trained(task, RNNSearch, PAIRS, embedding_dim=7, hidden_dim=11)


@pytest.fixture(scope="session")
def labeller(trained):
    task = partial(Classification, inputs={"text": {"class": "text", "tokeniser": "word"}})
    return trained(task, AttentionPooling, LABELLED, embedding_dim=7, hidden_dim=11, encoder="embedding")
