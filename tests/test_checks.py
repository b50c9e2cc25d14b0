"""Counts that are none are refused where they are given."""

import numpy as np
import pytest
import torch

from saccade.aggregations import Pairwise, TopKMean
from saccade.checks import check_count, keep_declared
from saccade.distributions import Subset
from saccade.models import HardMonotonic, RNNSearch, SegmentToSegment
from saccade.selections import KSubset, LinearChain, LocalM, MoChA, SemiMarkov, Softmax, StepChain, TopK


@pytest.mark.parametrize("wrong", [1.5, float("nan"), "3", None, True])
def test_a_count_is_a_whole_number(wrong):
    with pytest.raises(TypeError, match=f"k must be a whole number, 1 or more, got {wrong!r}"):
        check_count("k", wrong)


def test_a_count_has_a_least_value():
    check_count("k", 1)
    check_count("k", np.int64(3))
    check_count("half_width", 0, least=0)
    with pytest.raises(ValueError, match="k must be 1 or more, got 0"):
        check_count("k", 0)


def test_sizes_that_are_exported_are_counts():
    class Pick(torch.nn.Module):
        def forward(self, scores):
            return Subset.of(scores, scores.shape[-2], torch.ones_like(scores, dtype=torch.bool)).marginals

    rows = torch.export.Dim("rows", min=2, max=4)
    program = torch.export.export(Pick(), (torch.randn(3, 5),), dynamic_shapes={"scores": {0: rows}}, strict=False)
    scores = torch.randn(2, 5)
    torch.testing.assert_close(program.module()(scores), Pick()(scores))


def test_a_linear_chain_is_built_without_memory():
    with torch.device("meta"):
        assert LinearChain().transitions.is_meta


def test_no_selection_is_that_of_the_score():
    model = RNNSearch(source_vocab=9, target_vocab=9, selection=None)
    assert isinstance(model.decoder.attention.selection, Softmax)


@pytest.mark.parametrize(
    ("make", "name"),
    [(KSubset, "k"), (TopK, "k"), (TopKMean, "k"), (SemiMarkov, "longest"), (MoChA, "width"), (LocalM, "half_width")],
)
def test_selections_refuse_what_is_no_count(make, name):
    with pytest.raises(TypeError, match=f"{name} must be a whole number"):
        make(**{name: 1.5})


SIZES = {"source_vocab": 9, "target_vocab": 9}


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: Pairwise(value_dim=0), ValueError, "value_dim must be 1 or more, got 0"),
        (lambda: Pairwise(value_dim=4, output_dim=-1), ValueError, "output_dim must be 1 or more, got -1"),
        (lambda: HardMonotonic(**SIZES, width=2.5), TypeError, "width must be a whole number, 2 or more, got 2.5"),
        (lambda: HardMonotonic(**SIZES, width=1), ValueError, "width must be 2 or more, got 1"),
        (lambda: HardMonotonic(**SIZES, hidden_dim=-3), ValueError, "hidden_dim must be 1 or more, got -3"),
        (lambda: HardMonotonic(**SIZES, embedding_dim=0), ValueError, "dim must be 1 or more, got 0"),
        (
            lambda: SegmentToSegment(**SIZES, score=None),
            TypeError,
            "score must be a registered name or a Score, got None",
        ),
        (lambda: LinearChain(transitions=None), ValueError, "transitions must be finite"),
        (lambda: LinearChain(transitions=(0, 0, 0, 0)), ValueError, "transitions must be finite"),
        (lambda: LinearChain(mass=float("inf")), ValueError, "mass must be above 0 and finite"),
        (lambda: StepChain(following=None), TypeError, "following must be a Score"),
    ],
)
def test_wrong_arguments_are_told(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_a_trait_is_inherited_unless_what_it_describes_is_overridden():
    class Base:
        fast = True

        def __init_subclass__(cls):
            keep_declared(cls, "fast", ("compute",))

        def compute(self): ...

    class Same(Base):
        def other(self): ...

    class Different(Base):
        def compute(self): ...

    class Further(Different): ...

    class Declared(Base):
        fast = True

        def compute(self): ...

    assert [kind.fast for kind in (Base, Same, Different, Further, Declared)] == [True, True, False, False, True]
