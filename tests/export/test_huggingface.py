"""BERT runs as folders of the `transformers` library."""

from functools import partial

import pytest
import torch

from saccade import huggingface
from saccade.export import export
from saccade.models import Bert
from saccade.tasks import Classification

from .conftest import LABELLED, SOURCES

TASK = partial(Classification, inputs={"text": {"class": "wordpieces", "vocab_size": 61, "max_length": 31}})
SIZES = {"dim": 22, "num_heads": 2, "num_layers": 2, "feed_forward_dim": 29, "max_length": 31}


@pytest.fixture(scope="module")
def bert(trained):
    return trained(TASK, Bert, LABELLED, **SIZES)


def test_the_library_predicts_the_same(bert, tmp_path):
    transformers = pytest.importorskip("transformers")
    folder = export(bert, tmp_path / "exported", format="huggingface")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokeniser = transformers.AutoTokenizer.from_pretrained(folder)
    texts = SOURCES[:7]
    with torch.no_grad():
        found = model(**tokeniser(texts, padding=True, return_tensors="pt")).logits.softmax(-1)
    for answer, row in zip(bert.predict(texts), found, strict=True):
        assert answer.value == model.config.id2label[int(row.argmax())]
        assert answer.score == pytest.approx(float(row.max()), abs=1e-4)


def test_we_read_it_back(bert, tmp_path):
    folder = export(bert, tmp_path / "exported", format="huggingface")
    again = huggingface.load(folder)
    for name, tensor in again.model.state_dict().items():
        assert torch.equal(tensor, bert.model.state_dict()[name]), name


def test_other_models_are_refused(labeller, trained, tmp_path):
    with pytest.raises(ValueError, match="AttentionPooling is not a BERT"):
        export(labeller, tmp_path / "exported", format="huggingface")
    with pytest.raises(ValueError, match="Sparsemax over ScaledDotScore cannot be saved"):
        export(trained(TASK, Bert, LABELLED, **SIZES, selection="sparsemax"), tmp_path / "x", format="huggingface")
