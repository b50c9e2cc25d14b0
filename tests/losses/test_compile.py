"""Every loss is one graph, and the same number compiled."""

import torch

from saccade.distributions import Categorical
from saccade.losses import (
    GlobalFertility,
    agreement_bonus,
    coverage_loss,
    doubly_stochastic_loss,
    entropy_bonus,
    pointer_generator_log_likelihood,
    pointer_generator_log_probs,
    reinforce_loss,
    supervised_attention_loss,
)

from .examples import BATCH, KEYS, STEPS, example


def test_all_losses_compile_without_a_break():
    weights, steps, keys = example()
    fertility = GlobalFertility(key_dim=11, hidden_dim=13).double()
    annotations = torch.randn(BATCH, KEYS, 11, dtype=torch.float64)
    gate, vocab = torch.randn(BATCH, STEPS, 1).double(), torch.randn(BATCH, STEPS, 17).double().log_softmax(-1)
    source, targets = torch.randint(19, (BATCH, KEYS)), torch.randint(17, (BATCH, STEPS))

    def losses(weights):
        masks = {"step_mask": steps, "key_mask": keys}
        selection = Categorical(weights)
        return (
            coverage_loss(weights, **masks),
            doubly_stochastic_loss(weights, tau="ratio", **masks),
            fertility(weights, annotations, **masks),
            supervised_attention_loss(weights, weights.detach().square(), unaligned="inherit", smoothing=1.5, **masks),
            agreement_bonus(weights, weights.transpose(-1, -2), target_mask=steps, source_mask=keys),
            entropy_bonus(selection, step_mask=steps),
            *reinforce_loss(selection, weights.sum((-1, -2)), -1.0, step_mask=steps, entropy_weight=0.1),
            pointer_generator_log_probs(vocab, vocab.exp(), gate),
            pointer_generator_log_likelihood(vocab, weights, source, gate, targets),
        )

    compiled = torch.compile(losses, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(weights), losses(weights))
