"""What a model looked at, as items of the explorer."""

import pytest
import torch

from saccade.data.special import BOS, EOS
from saccade.evaluation import CAUTION, MEANINGS, coverage, mean_blur
from saccade.fields import Text
from saccade.interpretation.alignments import Alignment, merge_words
from saccade.models import Cho, HardMonotonic, Luong, RNNSearch, Transformer
from saccade.tasks import Generation

PAIRS = [("a small house .", "ein kleines Haus ."), ("the cat", "die Katze da")]
SOURCES, TARGETS = ([pair[side] for pair in PAIRS] for side in (0, 1))
SIZES = {"embedding_dim": 7, "hidden_dim": 5}
LAYERS = {"encoder_layers": 2, "decoder_layers": 3}
TINY = {"dim": 12, "num_heads": 3, "feed_forward_dim": 17, "dropout": 0.0, **LAYERS}


def made(model=RNNSearch, kind="char", **arguments):
    task = Generation(source=Text(tokeniser=kind))
    task.fit([{"source": source, "target": target} for source, target in PAIRS])
    return task, task.build(model, **(arguments or SIZES)).eval()


def explain_texts(task, model, sources, targets=None, **options):
    wanted = [{}] * len(sources) if targets is None else [{"target": target} for target in targets]
    return task.explain(model, [{"source": s, **t} for s, t in zip(sources, wanted, strict=True)], **options)


def values(item) -> dict[str, object]:
    return {measure.name: measure.value for measure in item.measures}


@pytest.mark.parametrize(
    ("model", "arguments"), [(RNNSearch, {}), (Luong, {}), (Luong, {**SIZES, "selection": "local_p", "half_width": 3})]
)
def test_one_map_with_one_head_that_is_what_the_decoder_reports(model, arguments) -> None:
    task, model = made(model, **arguments)
    item = explain_texts(task, model, SOURCES, TARGETS)[0]
    (only,) = item.maps
    source = torch.tensor([[*task.source.tokeniser.encode(SOURCES[0]), EOS]])
    target = task.target.tokeniser.encode(TARGETS[0])
    decoded = model(source, source > 0, torch.tensor([[BOS, *target]]))
    assert torch.allclose(only.weights, decoded.weights, atol=1e-6)
    assert "".join(only.keys.pieces) == SOURCES[0] + "</s>"
    assert "".join(only.queries.pieces) == TARGETS[0] + "</s>"
    assert (only.keys.special, only.queries.special) == ([15], [18])
    assert only.keys.words == [[0], [2, 3, 4, 5, 6], [8, 9, 10, 11, 12], [14]]
    chances = model.head.logits(decoded.features).log_softmax(-1)[0].gather(1, torch.tensor([*target, EOS])[:, None])
    assert values(item)["mean log-probability"] == pytest.approx(chances.mean().item(), abs=1e-5)


def test_a_prediction_shows_what_the_search_looked_at() -> None:
    task, model = made()
    found = task.predict(model, SOURCES, beam=3, max_length=7)
    for item, prediction in zip(explain_texts(task, model, SOURCES, beam=3, max_length=7), found, strict=True):
        assert item.maps[0].queries.pieces == prediction.attention.queries
        assert torch.allclose(item.maps[0].weights[0], prediction.weights, atol=1e-5)
        assert values(item)["output"] == prediction.text


def test_every_attention_of_a_transformer() -> None:
    task, model = made(Transformer, "word", **TINY)
    item = explain_texts(task, model, SOURCES, TARGETS)[1]
    shapes = {each.name: tuple(each.weights.shape) for each in item.maps}
    assert shapes == {
        **{f"encoder.layers.{n}.self_attention": (3, 3, 3) for n in range(2)},
        **{f"decoder.layers.{n}.self_attention": (3, 4, 4) for n in range(3)},
        **{f"decoder.layers.{n}.cross_attention": (3, 4, 3) for n in range(3)},
    }
    by_name = {each.name: each for each in item.maps}
    begun = by_name["decoder.layers.2.self_attention"]
    assert begun.queries is begun.keys
    assert begun.keys.pieces == ["<s>", "die", "Katze", "da"]
    assert begun.keys.words == [[1], [2], [3]]
    assert bool((begun.weights.triu(1) == 0).all())  # it looks back alone
    assert item.maps[-1].name == "decoder.layers.2.cross_attention"  # what a page opens with
    assert [each.layer for each in item.maps[-3:]] == [0, 1, 2]
    for each in item.maps:
        assert torch.allclose(each.weights.sum(-1), torch.ones(()), atol=1e-5)
    few = explain_texts(task, model, SOURCES, TARGETS, keep="*.1.cross_attention")[0]
    assert [each.name for each in few.maps] == ["decoder.layers.1.cross_attention"]
    with pytest.raises(ValueError, match=r"keep='nope' fits none of encoder.layers.0"):
        explain_texts(task, model, SOURCES, TARGETS, keep="nope")


def test_measures_are_of_the_attention_that_was_chosen() -> None:
    task, model = made(Transformer, "word", **TINY)
    gold = [[(0, 0), (1, 1), (2, 2), (3, 3)], Alignment.of([(0, 0), (1, 1)])]
    options = {"gold": gold, "layer": 1, "head": 2}
    item = explain_texts(task, model, SOURCES, TARGETS, **options)[0]
    across = next(each for each in item.maps if each.name == "decoder.layers.1.cross_attention")
    words = across.weights[2, :-1, :-1]
    found = values(item)
    assert found["read off"] == "decoder.layers.1.cross_attention, head 2; words"
    assert found["blur"] == pytest.approx(mean_blur([words]))
    assert found["coverage"] == pytest.approx(coverage(words).share)
    assert found["mass"] == pytest.approx(float(words.diagonal().mean()))
    assert found["aer"] == pytest.approx(100 * float((words.argmax(-1) != torch.arange(4)).float().mean()))
    assert item.links == sorted(gold[0])
    later = values(explain_texts(task, model, SOURCES, TARGETS, shift=1)[0])
    assert later["read off"].endswith("mean of 3 heads, a step later; words")
    assert "aer" not in later
    for measure in item.measures:
        assert measure.meaning.count(". ") >= 1 or measure.meaning == CAUTION
    assert {"comprehensiveness", "uniform flips"} <= found.keys()
    assert {name.replace(" ", "_") for name in found} - {*MEANINGS} == {
        "output",
        "mean_log-probability",
        "read_off",
        "caution",
    }


def test_words_are_made_of_pieces() -> None:
    task, model = made()
    item = explain_texts(task, model, SOURCES, TARGETS)[0]
    weights = item.maps[0].weights[0]
    merged = merge_words(weights, item.maps[0].keys.words, item.maps[0].queries.words)
    assert merged.shape == (4, 4)
    assert values(item)["blur"] == pytest.approx(mean_blur([merged]), rel=1e-5)


def test_a_single_word_is_shown_and_measured_in_pieces() -> None:
    task, model = made()
    item = explain_texts(task, model, ["a small house"], ["Haus"])[0]
    (only,) = item.maps
    assert only.queries.words is None
    assert only.keys.words is None  # or one side would hide which letters of the other belong to it
    assert values(item)["read off"] == "decoder.attention; pieces"
    letters = [place for place, piece in enumerate(only.keys.pieces[:-1]) if piece.isalpha()]
    assert values(item)["blur"] == pytest.approx(mean_blur([only.weights[0, :4, letters]]), rel=1e-5)
    linked = explain_texts(task, model, ["a small house"], ["Haus"], gold=[[(2, 0)]])[0]
    assert linked.maps[0].queries.words == [[0, 1, 2, 3]]  # links count words
    assert linked.links == [(2, 0)]


def test_models_that_sum_over_alignments() -> None:
    task, model = made(HardMonotonic)
    forced = explain_texts(task, model, SOURCES, TARGETS)[0]
    assert [each.name for each in forced.maps] == ["alignment"]
    assert forced.maps[0].weights.shape == (1, 19, 16)
    found = task.predict(model, SOURCES, max_length=5)
    for item, prediction in zip(explain_texts(task, model, SOURCES, max_length=5), found, strict=True):
        assert torch.allclose(item.maps[0].weights[0], prediction.weights)
        assert "comprehensiveness" not in values(item)


def test_unknown_pieces_are_shown_as_written_and_named() -> None:
    task, model = made()
    item = explain_texts(task, model, ["a <é> house"], ["ein Haus"])[0]
    assert "".join(item.maps[0].keys.pieces) == "a <é> house</s>"
    assert values(item)["unknown"] == "3: < é >"
    assert item.title == "a <é> house → ein Haus"
    assert "unknown" not in values(explain_texts(task, model, SOURCES, TARGETS)[0])


def test_faithfulness_where_it_is_cheap() -> None:
    task, model = made()
    long = " ".join(["the small cat"] * 5)
    assert "uniform" not in values(explain_texts(task, model, [long], [long])[0])
    assert "uniform" in values(explain_texts(task, model, SOURCES[1:], TARGETS[1:])[0])
    assert "uniform" not in values(explain_texts(task, model, SOURCES[1:], TARGETS[1:], faithfulness=False)[0])


def test_what_cannot_be_explained_is_named() -> None:
    task, model = made()
    blind = made(Cho)[1]
    for targets in (TARGETS, None):
        with pytest.raises(ValueError, match="Cho has no attention"):
            explain_texts(task, blind, SOURCES, targets)
    for message, inputs, targets, options in (
        ("There is nothing to explain", [], None, {}),
        ("source of input 2 is empty", ["a", " "], None, {}),
        ("target of input 1 is empty", ["a"], [""], {}),
        ("inputs 2, alignments 1", SOURCES, TARGETS, {"gold": [[]]}),
        ("give the targets", SOURCES, None, {"gold": [[], []]}),
        ("beam changes the search, but the targets are given", SOURCES, TARGETS, {"beam": 2}),
        ("no option 'beems'.* 'beam'", SOURCES, None, {"beems": 2}),
        ("layer must be from 0 to 0", SOURCES, TARGETS, {"layer": 3}),
        ("link 9-0", SOURCES, TARGETS, {"gold": [[(9, 0)], []]}),
    ):
        with pytest.raises(ValueError, match=message):
            explain_texts(task, model, inputs, targets, **options)
    short = made(Transformer, "word", **TINY, positions="learned", max_length=3)[1]
    with pytest.raises(ValueError, match="Input 1 has 4 tokens, but the model only reads the first 2"):
        explain_texts(made(kind="word")[0], short, SOURCES)
    with pytest.raises(ValueError, match="target of input 1 has more tokens than the 2 that the model can write"):
        explain_texts(made(kind="word")[0], short, ["a"], ["ein kleines Haus"])
    assert not model.training


def test_what_is_not_read_to_its_end_is_not_explained() -> None:
    task, model = made(score="location", max_length=11, **SIZES)
    with pytest.raises(ValueError, match=r"Input 1 has 15 tokens, but the model only reads the first 10\. Split it"):
        explain_texts(task, model, SOURCES)
    assert len(task.predict(model, SOURCES, max_length=3)) == 2
