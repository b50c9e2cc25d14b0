"""CTranslate2 translates as we do, and refuses what it lacks by name."""

from functools import partial

import pytest

from saccade.data.tokenisers import Tokeniser
from saccade.export import export
from saccade.fields import Text
from saccade.models import Transformer
from saccade.tasks import Generation

from .conftest import PAIRS, SOURCES

ctranslate2 = pytest.importorskip("ctranslate2")
TASK = partial(Generation, source=partial(Text, tokeniser="char"), metrics=["exact_match"])
SIZES = {"dim": 24, "num_heads": 3, "encoder_layers": 2, "decoder_layers": 1, "feed_forward_dim": 41}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "post", "activation": "gelu", "positions": "learned", "max_length": 263, "tied": "none"},
    ],
)
def test_translations(trained, tmp_path, changes):
    run = trained(TASK, Transformer, PAIRS, **SIZES, **changes)
    folder = export(run, tmp_path / "exported", format="ctranslate2")
    translator = ctranslate2.Translator(str(folder), compute_type="float32")
    source, target = (Tokeniser.load(folder / f"{name}.json") for name in ("source", "target"))
    pieces = [source.pieces(source.encode(text)) for text in SOURCES]
    found = translator.translate_batch(pieces, beam_size=1, max_decoding_length=13)
    for one, other in zip(run.predict(SOURCES, beam=1, max_length=13), found, strict=True):
        assert target.pieces(one.tokens) == other.hypotheses[0]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"score": "bilinear"}, "BilinearScore"),
        ({"positions": "alibi"}, "SumScore"),
        ({"selection": "sparsemax"}, "Sparsemax"),
    ],
)
def test_other_attention_is_refused(trained, tmp_path, changes, named):
    run = trained(TASK, Transformer, PAIRS, **SIZES, **changes)
    with pytest.raises(ValueError, match=f"CTranslate2 has no {named}"):
        export(run, tmp_path / "exported", format="ctranslate2")
    assert not (tmp_path / "exported").exists()


def test_other_models_are_refused(writer, tmp_path):
    with pytest.raises(ValueError, match="cannot run RNNSearch for Generation"):
        export(writer, tmp_path / "exported", format="ctranslate2")
