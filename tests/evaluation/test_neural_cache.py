import torch

from saccade.evaluation.neural_cache import NeuralCache


def test_an_unlikely_token_keeps_a_finite_log_probability():
    logits = torch.tensor([[0.0, 200.0], [0.0, 200.0]])
    states, targets = torch.zeros(1, 2, 3), torch.tensor([[1, 1]])
    mixed, _ = NeuralCache(size=2, weight=0.1).mixed(logits, states, targets, targets.bool(), None)
    torch.testing.assert_close(mixed[1, 0], torch.tensor(-200.0) + torch.tensor(0.9).log())
    torch.testing.assert_close(mixed.exp().sum(-1), torch.ones(2))
