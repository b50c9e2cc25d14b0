"""Figures of attention maps, and what they mean."""

import math
import re

import pytest
import torch

from saccade.evaluation.attention import agreement, blur, coverage, mean_blur, soft_agreement
from saccade.evaluation.meanings import CAUTION, MEANINGS, meaning


def test_blur() -> None:
    weights = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.25] * 4, [0.1, 0.1, 0.0, 0.0], [0.0] * 4])
    found = blur(weights).tolist()
    assert found[:3] == pytest.approx([0, math.log(4), math.log(2)])
    assert math.isnan(found[3])
    assert mean_blur([weights[:2], weights[2:]]) == pytest.approx((math.log(4) + math.log(2)) / 3)
    assert math.isnan(mean_blur([torch.zeros(2, 3)]))
    rows = torch.rand(2, 5, 7).softmax(-1)
    assert torch.allclose(blur(rows), torch.distributions.Categorical(probs=rows).entropy(), atol=1e-6)


def test_coverage() -> None:
    found = coverage(torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.6, 0.0, 0.4]]))
    assert found.totals == pytest.approx([2.5, 0.1, 0.4])
    assert (found.dropped, found.repeated) == ([1], [0])
    assert found.share == pytest.approx((1 + 0.1 + 0.4) / 3)
    assert coverage(torch.eye(5)).share == 1
    assert coverage(torch.zeros(3, 0)).share == 0
    with pytest.raises(ValueError, match=r"low=0\.5 and high=0\.1"):
        coverage(torch.eye(3), low=0.5, high=0.1)


def test_agreement() -> None:
    assert agreement([(0, 0), (1, 1), (2, 1)], [(0, 0)]) == pytest.approx(2 / 4)
    assert agreement([], []) == 1
    assert agreement([(0, 0)], []) == 0
    assert soft_agreement(torch.eye(5), torch.eye(5)) == 1
    forward, backward = torch.rand(5, 7), torch.rand(7, 5)
    assert soft_agreement(forward, backward) == pytest.approx(float(torch.trace(forward @ backward)) / 5)
    with pytest.raises(ValueError, match=r"\(5, 7\), got \(5, 7\)"):
        soft_agreement(forward, forward)


@pytest.mark.parametrize("name", [*MEANINGS, "caution"])
def test_two_sentences(name) -> None:
    text = CAUTION if name == "caution" else meaning(name)
    assert len(re.findall(r"[.](?= [A-Z]|$)", text)) == 2, text
    assert text.endswith(".")


def test_unknown_measures_are_named() -> None:
    with pytest.raises(ValueError, match="Did you mean 'blur'"):
        meaning("blurr")
    assert "not alignment" in CAUTION
