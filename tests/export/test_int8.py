"""Runs with weights of 8 bits load, predict and say what they lost."""

import csv
from functools import partial

import pytest
import torch

import saccade
from saccade.decoders.fused import FusedState
from saccade.export import export
from saccade.export.int8 import FigureChange, card
from saccade.fields import Text
from saccade.kernels import native
from saccade.kernels.linear import packs
from saccade.kernels.modes import plainly
from saccade.models import Bert, Transformer
from saccade.models.quantised import is_quantised
from saccade.tasks import Classification, Generation

from .conftest import LABELLED, PAIRS, SOURCES

SIZES = {"dim": 24, "num_heads": 3, "encoder_layers": 2, "feed_forward_dim": 41}


@pytest.fixture(scope="module")
def translator(trained):
    task = partial(Generation, source=partial(Text, tokeniser="char"), metrics=["exact_match", "chrf"])
    return trained(task, Transformer, PAIRS, **SIZES)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "test.tsv"
    with path.open("w") as file:
        csv.writer(file, delimiter="\t").writerows(PAIRS)
    return str(path)


@pytest.fixture(scope="module")
def rounded(translator, table, tmp_path_factory):
    return saccade.load(export(translator, tmp_path_factory.mktemp("int8") / "run", format="int8", data=table))


def test_it_is_a_run(translator, rounded):
    assert is_quantised(rounded.model)
    assert not is_quantised(translator.model)
    sizes = [(each.folder / "model.safetensors").stat().st_size for each in (translator, rounded)]
    assert sizes[1] < 0.6 * sizes[0]
    answers = rounded.predict(SOURCES[:5], beam=3, max_length=7)
    assert len(answers) == 5
    assert answers[0].weights is not None


def test_logits_stay_close(translator, rounded):
    def logits(run):
        mask = torch.ones(2, 5, dtype=torch.bool)
        source = torch.tensor([[4, 5, 6, 7, 2], [5, 4, 8, 6, 2]])
        with torch.no_grad():
            return run.model.head.logits(run.model(source, mask, torch.tensor([[1, 4, 5], [1, 6, 7]])).features)

    one, other = logits(translator), logits(rounded)
    assert float((one - other).abs().max()) < 0.05 * float(one.abs().max())
    with plainly():
        torch.testing.assert_close(logits(rounded), other, rtol=0, atol=0.02)


def test_the_kernel_decodes_it(rounded):
    if native.library() is None or not packs(rounded.model.head.proj):
        pytest.skip("needs a C compiler and a processor with VNNI")
    mask = torch.ones(2, 5, dtype=torch.bool)
    with torch.no_grad():
        encoded = rounded.model.encode(torch.tensor([[4, 5, 6, 7, 2], [5, 4, 8, 6, 2]]), mask)
        state = rounded.model.begin(encoded)
        assert type(state) is FusedState
        step = rounded.model.step(torch.tensor([1, 1]), state)
        again = rounded.model.step(torch.tensor([4, 5]), step.state)
        with plainly():
            step = rounded.model.step(torch.tensor([1, 1]), rounded.model.begin(encoded))
            wanted = rounded.model.step(torch.tensor([4, 5]), step.state)
    torch.testing.assert_close(again.logits, wanted.logits, rtol=0, atol=0.02)


def test_the_card_has_the_figures(translator, rounded):
    text = (rounded.folder / "README.md").read_text()
    assert "| on `test.tsv` | float32 | int8 |" in text
    assert "| exact_match |" in text
    assert "0.5 points" in text
    bad = card(translator, [FigureChange("chrf", 50.0, 49.0, 1.0)], "x.tsv")
    assert "**These figures lost more than 0.5 points:** chrf (1.00)." in bad


def test_refusals(writer, translator, rounded, table, tmp_path):
    with pytest.raises(ValueError, match="already 8-bit"):
        export(rounded, tmp_path / "x", format="int8", data=table)
    with pytest.raises(ValueError, match="Add --data"):
        export(translator, tmp_path / "x", format="int8")
    with pytest.raises(ValueError, match="already 8-bit"):
        export(rounded, tmp_path / "x", format="ctranslate2")


def test_damaged_weights_are_refused(rounded, tmp_path):
    file = rounded.folder / "model.safetensors"
    content = file.read_bytes()
    try:
        file.write_bytes(content[:-8])
        with pytest.raises(saccade.artifacts.ArtifactError):
            saccade.load(rounded.folder)
    finally:
        file.write_bytes(content)


def test_bert(trained, tmp_path):
    task = partial(Classification, inputs={"text": {"class": "wordpieces", "vocab_size": 61, "max_length": 31}})
    run = trained(task, Bert, LABELLED, dim=22, num_heads=2, num_layers=2, feed_forward_dim=29, max_length=31)
    path = tmp_path / "test.tsv"
    with path.open("w") as file:
        csv.writer(file, delimiter="\t").writerows(LABELLED)
    small = saccade.load(export(run, tmp_path / "small", format="int8", data=str(path)))
    before, after = (each.encode(SOURCES[:7]) for each in (run, small))
    assert float((before - after).abs().max()) < 0.05 * float(before.abs().max())
    scores = [[answer.score for answer in each.predict(SOURCES[:7])] for each in (run, small)]
    assert scores[1] == pytest.approx(scores[0], abs=0.05)
