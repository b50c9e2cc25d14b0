"""CTC against the sum over all its paths, written out."""

import itertools
import math

import pytest
import torch

from saccade.decoders.ctc import BLANK, CTC, CTCPrefixes

EOS, VOCAB, POSITIONS = 2, 5, 4


def log_probs(seed: int, sentences: int = 1) -> torch.Tensor:
    draws = torch.Generator().manual_seed(seed)
    return torch.randn(sentences, POSITIONS, VOCAB, dtype=torch.float64, generator=draws).log_softmax(-1)


def written(path) -> tuple:
    """What a path stands for: without repetitions and blanks."""
    return tuple(token for token, _ in itertools.groupby(path) if token != BLANK)


def outputs(table: torch.Tensor) -> dict[tuple, float]:
    """The probability of everything that CTC can write, given (positions, vocab)."""
    found: dict[tuple, float] = {}
    for path in itertools.product(range(VOCAB), repeat=len(table)):
        probability = math.exp(sum(float(table[t, token]) for t, token in enumerate(path)))
        found[written(path)] = found.get(written(path), 0.0) + probability
    return found


def test_prefix_probabilities() -> None:
    table = log_probs(0, 2)
    mask = torch.tensor([[True] * POSITIONS, [True, True, False, False]])
    prefixes = CTCPrefixes(table, mask, eos=EOS)
    sentences = torch.arange(2)
    for prefix in ((), (3,), (3, 3), (3, 4), (4, 3, 4), (1, 4)):
        gamma, last = prefixes.begin(), torch.full((2,), -1)
        for token in prefix:
            tokens = torch.full((2,), token)
            gamma, last = prefixes.advance(gamma, last, tokens, sentences), tokens
        found = prefixes.scores(gamma, last.clamp(min=0), sentences).exp()
        for row, length in enumerate(mask.sum(1).tolist()):
            known = outputs(table[row, :length])
            for token in range(1, VOCAB):
                longer = (*prefix, token)
                wanted = sum(p for text, p in known.items() if text[: len(longer)] == longer)
                if token == EOS:
                    wanted = known.get(prefix, 0.0)
                assert float(found[row, token]) == pytest.approx(wanted, abs=1e-12)
            assert not found[row, BLANK]


def test_the_loss_is_that_of_all_paths() -> None:
    torch.manual_seed(0)
    ctc = CTC(input_dim=3, vocab_size=VOCAB, weight=0.25).double()
    states = torch.randn(3, POSITIONS, 3).double()
    mask = torch.tensor([[True] * 4, [True, True, False, False], [True] * 4])
    target = torch.tensor([[3, 3, EOS], [4, EOS, 0], [EOS, 0, 0]])
    real = torch.tensor([[True] * 3, [True, True, False], [True, False, False]])
    with torch.no_grad():
        known = [outputs(ctc(states)[row, : int(mask[row].sum())].double()) for row in range(3)]
    wanted = -sum(math.log(table[text]) for table, text in zip(known, ((3, 3), (4,), ()), strict=True))
    found = ctc.added_loss(states, mask, target, real)
    assert float(found.detach()) == pytest.approx(wanted * 0.25 / 0.75, rel=1e-5)
    found.backward()
    assert ctc.proj.weight.grad.abs().sum() > 0


def test_a_target_longer_than_the_source_adds_nothing() -> None:
    ctc = CTC(input_dim=3, vocab_size=VOCAB, weight=0.5)
    states = torch.randn(1, 1, 3, requires_grad=True)
    target = torch.tensor([[3, 4, EOS]])
    found = ctc.added_loss(states, torch.ones(1, 1, dtype=torch.bool), target, torch.ones(1, 3, dtype=torch.bool))
    found.backward()
    assert float(found.detach()) == 0.0
    assert torch.isfinite(states.grad).all()


@pytest.mark.parametrize("weight", [1.0, -0.1, math.nan])
def test_weights_out_of_range(weight) -> None:
    with pytest.raises(ValueError, match="ctc_weight must be from 0"):
        CTC(input_dim=3, vocab_size=5, weight=weight)
