import math

import pytest
import torch

from saccade.losses import supervised_attention_loss
from saccade.losses.supervised import inherit_rows

from .examples import BATCH, KEYS, STEPS, assert_padding_does_not_matter, assert_reductions, example, valid

DISTANCES = ("cross_entropy", "squared", "log_product")


def alignment():
    """Links (sentence, step, key): unaligned steps between, before and after aligned ones, and links at padding."""
    gold = torch.zeros(BATCH, STEPS, KEYS, dtype=torch.bool)
    for b, t, i in ((0, 1, 0), (0, 1, 4), (0, 3, 6), (1, 1, 1), (1, 0, 5), (1, 4, 0), (2, 2, 1)):
        gold[b, t, i] = True
    return gold


def gold_row(b, t, unaligned, smoothing):
    """The normalised gold row of one step, or None."""
    links = {u: [i for i in valid(b)[1] if alignment()[b, u, i]] for u in valid(b)[0]}
    aligned = [u for u in links if links[u]]
    source = t
    if not links[t]:
        if unaligned == "skip" or not aligned:
            return None
        source = min(aligned, key=lambda u: (abs(u - t), u))
    row = torch.zeros(KEYS, dtype=torch.float64)
    for i in valid(b)[1]:
        for j in links[source]:
            row[i] += math.exp(-((i - j) ** 2) / (2 * smoothing**2)) if smoothing else float(i == j)
    return row / row.sum()


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("unaligned", ["skip", "inherit"])
@pytest.mark.parametrize("smoothing", [0.0, 1.3])
def test_equals_the_literal_distance(distance, unaligned, smoothing):
    weights, steps, keys = example()
    items = torch.zeros(BATCH, STEPS, dtype=torch.float64)
    count = 0
    for b in range(BATCH):
        for t in valid(b)[0]:
            row = gold_row(b, t, unaligned, smoothing)
            if row is None:
                continue
            count += 1
            pairs = [(row[i].item(), weights[b, t, i].item()) for i in valid(b)[1]]
            items[b, t] = {
                "cross_entropy": -sum(g * math.log(a) for g, a in pairs if g > 0),
                "squared": sum((g - a) ** 2 for g, a in pairs),
                "log_product": -math.log(sum(g * a for g, a in pairs)),
            }[distance]
    assert count == (3 if unaligned == "skip" else 8)
    assert_reductions(
        lambda reduction: supervised_attention_loss(
            weights,
            alignment(),
            distance=distance,
            unaligned=unaligned,
            smoothing=smoothing,
            step_mask=steps,
            key_mask=keys,
            reduction=reduction,
        ),
        items,
        count,
    )


def test_the_earlier_of_two_equally_near_rows_is_inherited():
    gold = torch.zeros(5, 3)
    gold[0, 0], gold[4, 2] = 1.0, 1.0
    inherited = inherit_rows(gold, torch.ones(5, dtype=torch.bool))
    assert inherited.argmax(-1).tolist() == [0, 0, 0, 2, 2]
    assert (inherit_rows(torch.zeros(5, 3), torch.ones(5, dtype=torch.bool)) == 0).all()


@pytest.mark.parametrize("distance", DISTANCES)
def test_gradcheck_and_padding(distance):
    weights, steps, keys = example()

    def loss(w):
        return supervised_attention_loss(
            w, alignment(), distance=distance, unaligned="inherit", smoothing=0.7, step_mask=steps, key_mask=keys
        )

    given = (weights + 0.01).requires_grad_()
    assert torch.autograd.gradcheck(loss, [given])
    assert_padding_does_not_matter(loss, *example())


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_no_weight_on_the_gold_position_is_finite(distance, dtype):
    weights = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=dtype, requires_grad=True)
    loss = supervised_attention_loss(weights, torch.tensor([[True, False], [True, False]]), distance=distance)
    loss.backward()
    assert loss.isfinite()
    assert loss > 0
    assert weights.grad.isfinite().all()


def test_nothing_aligned_is_zero():
    weights = torch.rand(3, 5, requires_grad=True)
    loss = supervised_attention_loss(weights, torch.zeros(3, 5), unaligned="inherit", smoothing=2.0)
    loss.backward()
    assert loss == 0
    assert (weights.grad == 0).all()
    for shape in ((3, 0, 7), (3, 5, 0)):
        assert supervised_attention_loss(torch.rand(shape), torch.rand(shape), unaligned="inherit", smoothing=1.0) == 0


def test_refuses_unknown_options():
    weights = torch.rand(3, 5)
    with pytest.raises(ValueError, match="distance must be one of cross_entropy, squared, log_product, got 'kl'"):
        supervised_attention_loss(weights, weights, distance="kl")
    with pytest.raises(ValueError, match="unaligned must be one of skip, inherit"):
        supervised_attention_loss(weights, weights, unaligned="drop")
    with pytest.raises(ValueError, match=r"gold must have the weights' shape \(3, 5\)"):
        supervised_attention_loss(weights, weights.T)
    with pytest.raises(ValueError, match="smoothing must be 0 or more, got -1"):
        supervised_attention_loss(weights, weights, smoothing=-1)
