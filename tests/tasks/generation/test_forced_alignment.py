"""How a model aligns two texts that are both given."""

import pytest
import torch

from saccade.data.special import BOS, EOS
from saccade.evaluation import score_alignments
from saccade.fields import Text
from saccade.interpretation.alignments import Alignment, align, merge_words
from saccade.models import Cho, Luong, RNNSearch, Transformer
from saccade.tasks import Generation
from saccade.tasks.generation.forced_alignment import HeadChoice, align_pairs, best_choice, too_long, word_maps

PAIRS = [
    ("a small house .", "ein kleines Haus ."),
    ("", "nichts"),
    ("the cat", "die Katze da"),
    ("a cat , a house and a small cat", "Katze"),
]
SIZES = {"embedding_dim": 7, "hidden_dim": 5}
TINY = {"dim": 12, "num_heads": 3, "encoder_layers": 2, "feed_forward_dim": 17, "dropout": 0.0}


def fitted(kind: str = "char"):
    task = Generation(source=Text(tokeniser=kind))
    task.fit([{"source": source, "target": target} for source, target in PAIRS])
    return task


def test_words_of_every_pair_in_order() -> None:
    task = fitted()
    model = task.build(RNNSearch, **SIZES).eval()
    found = align_pairs(task, model, PAIRS, batch_size=2)
    for (source, target), aligned in zip(PAIRS, found, strict=True):
        assert (aligned.source, aligned.target) == (source.split(), target.split())
        assert aligned.weights.shape == (len(target.split()), len(source.split()))
        assert aligned.links == align(aligned.weights)
    assert found[1].links == []
    # One pair by hand, alone: batches and padding change nothing.
    source, target = task.source.tokeniser.encode(PAIRS[0][0]), task.target.tokeniser.encode(PAIRS[0][1])
    decoded = model(
        torch.tensor([[*source, EOS]]), torch.ones(1, len(source) + 1, dtype=torch.bool), torch.tensor([[BOS, *target]])
    )
    words = [[0], [2, 3, 4, 5, 6], [8, 9, 10, 11, 12], [14]], [[0, 1, 2], range(4, 11), [12, 13, 14, 15], [17]]
    wanted = merge_words(decoded.weights[0, : len(target)], *words)
    assert torch.allclose(found[0].weights, wanted, atol=1e-6)
    assert not model.training


def test_pieces() -> None:
    task = fitted()
    aligned = align_pairs(task, task.build(RNNSearch, **SIZES), PAIRS[2:3], subwords=True)[0]
    assert aligned.source == list("the cat")
    assert aligned.weights.shape == (len("die Katze da"), len("the cat"))


def test_layers_heads_and_steps() -> None:
    task = fitted("word")
    model = task.build(Transformer, **TINY).eval()
    maps = next(word_maps(task, model, PAIRS[:1]))
    later = next(word_maps(task, model, PAIRS[:1], shift=1))
    assert [tuple(weights.shape) for weights in maps.values()] == [(3, 4, 4)] * 2
    first, last = maps.values()

    def read(**options):
        return align_pairs(task, model, PAIRS[:1], choice=HeadChoice(**options))[0].weights

    assert torch.allclose(read(), last.mean(0))
    assert torch.allclose(read(layer=0, head=2), first[2])
    assert torch.allclose(read(head=1, shift=1), list(later.values())[1][1])
    assert torch.allclose(next(iter(later.values()))[:, :3], first[:, 1:])  # with words of one piece: the next row
    with pytest.raises(ValueError, match="layer must be from 0 to 1"):
        read(layer=2)
    with pytest.raises(ValueError, match="head must be from 0 to 2, got 3"):
        read(head=3)
    with pytest.raises(ValueError, match="shift must be 0 or 1"):
        HeadChoice(shift=2)


def test_the_reader_with_the_lowest_error_is_chosen() -> None:
    task = fitted("word")
    model = task.build(Transformer, **TINY).eval()
    wanted = HeadChoice(layer=0, head=2, shift=1)
    gold = [Alignment.of(aligned.links) for aligned in align_pairs(task, model, PAIRS, choice=wanted)]
    chosen, aer = best_choice(task, model, PAIRS, gold)
    assert aer == 0
    again = [aligned.links for aligned in align_pairs(task, model, PAIRS, choice=chosen)]
    assert score_alignments(again, gold).aer == 0
    with pytest.raises(ValueError, match="no pair of texts could be aligned"):
        best_choice(task, model, [("", "a")], [Alignment.of([])])


def test_two_directions() -> None:
    task, back = fitted(), Generation(source=Text(tokeniser="word"))
    back.fit([{"source": target, "target": source} for source, target in PAIRS])
    model, other = task.build(RNNSearch, **SIZES), back.build(Luong, **SIZES)
    turned = [(target, source) for source, target in PAIRS]
    there = [set(aligned.links) for aligned in align_pairs(task, model, PAIRS)]
    returned = [{(s, t) for t, s in aligned.links} for aligned in align_pairs(back, other, turned)]

    def both(method, **options):
        found = align_pairs(task, model, PAIRS, reverse=(back, other), method=method, **options)
        return [set(aligned.links) for aligned in found]

    assert (
        both("intersection") == [a & b for a, b in zip(there, returned, strict=True)] == both("union", extract="mutual")
    )
    assert both("union") == [a | b for a, b in zip(there, returned, strict=True)]
    backward = align_pairs(task, model, PAIRS, reverse=(back, other))[0].backward
    assert backward is not None
    assert backward.shape == (4, 4)
    with pytest.raises(ValueError, match="different pieces"):
        both("union", subwords=True)


def test_thresholds_and_sinks() -> None:
    task = fitted()
    model = task.build(RNNSearch, **SIZES)
    low = align_pairs(task, model, PAIRS[:1], extract="threshold", threshold=1e-6)[0]
    assert len(low.links) == 16
    spread = align_pairs(task, model, PAIRS[:1], sink="redistribute")[0].weights
    assert torch.allclose(spread.sum(-1), torch.ones(4), atol=1e-5)
    with pytest.raises(ValueError, match="Did you mean 'max'"):
        align_pairs(task, model, PAIRS, extract="maxx")


def test_what_is_longer_than_the_positions_has_no_links() -> None:
    task = fitted("word")
    model = task.build(Transformer, **TINY, positions="learned", max_length=6)
    assert too_long(task, model, PAIRS) == [3]
    found = align_pairs(task, model, PAIRS, choice=HeadChoice(layer=1))
    assert found[3].links == []
    assert found[3].weights.shape == (1, 9)
    assert len(found[0].links) == 4
    alone = align_pairs(task, model, PAIRS[3:], choice=HeadChoice(layer=1))[0]
    assert alone.links == []


def test_models_without_attention_are_refused() -> None:
    task = fitted()
    with pytest.raises(ValueError, match="Cho does not attend to its source"):
        align_pairs(task, task.build(Cho, **SIZES), PAIRS)
    with pytest.raises(TypeError, match="Word alignments need two texts, and this int task"):
        align_pairs(3, None, PAIRS)
