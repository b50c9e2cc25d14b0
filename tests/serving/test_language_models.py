"""Language models behind the server: continuations, drawn ones among them, and scores."""

from functools import partial

import pytest

pytest.importorskip("fastapi_offline", reason="needs the extra serve")

from fastapi.testclient import TestClient

import saccade
from saccade.models import PointerSentinel
from saccade.serving.app import make_app
from tests.serving.conftest import TRAINER
from tests.serving.test_app import LOCAL


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "book"
    text = {"class": "text", "tokeniser": "word", "max_length": 6}
    data = {"train": [{"text": "the cat sees the dog ."}, {"text": "the dog sees the cat ."}] * 9, "held_out": 0.0}
    saccade.train(
        task={"class": "language_modelling", "text": text, "contiguous": True},
        model=partial(PointerSentinel, dim=9, num_layers=1, window=5),
        data=data,
        trainer={**TRAINER, "batch_tokens": 24},
        output=folder,
    )
    return folder


def test_continuations_and_scores_are_those_of_the_run(book) -> None:
    run = saccade.load(book)
    texts = ["the cat", "the dog sees the"]
    with TestClient(make_app({"book": book}), LOCAL) as client:
        for options in ({"max_length": 4}, {"sample": True, "seed": 7, "max_length": 4}, {"score": True}):
            answer = client.post("/predict", json={"inputs": texts, "model": "book", "options": options})
            assert answer.status_code == 200, answer.text
            wanted = [run.predict([text], **options)[0] for text in texts]
            for found, own in zip(answer.json()["predictions"], wanted, strict=True):
                assert found["answer"] == (pytest.approx(own.value, rel=1e-5) if options.get("score") else own.value)
        shown = client.post("/explain", json={"input": texts[0], "model": "book"})
        assert shown.status_code == 200, shown.text
