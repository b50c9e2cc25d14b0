"""Every prefix read backwards, all at once, against one prefix at a time."""

import pytest
import torch

from saccade.kernels.prefixes import Prefixes, prefix_gru, prefix_gru_reference
from saccade.layers.gru import gru_sequence_reference

LENGTHS = [4, 2, 5, 1]


def masked(lengths: list[int]) -> torch.Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def weights(hidden: int, elements: int) -> list[torch.Tensor]:
    made = torch.Generator().manual_seed(3)
    shapes = [(elements, 3 * hidden), (3 * hidden, hidden), (hidden,)]
    return [torch.randn(*shape, generator=made, dtype=torch.double, requires_grad=True) for shape in shapes]


def test_rows_are_the_steps_of_each_prefix() -> None:
    prefixes = Prefixes.of(masked(LENGTHS))
    starts = [0, 4, 6, 11]
    expected = {
        (start + end, step): start + end - step
        for start, length in zip(starts, LENGTHS, strict=True)
        for end in range(length)
        for step in range(end + 1)
    }
    steps = [step for step, count in enumerate(prefixes.counts) for _ in range(count)]
    ends = prefixes.ends[prefixes.prefixes].tolist()
    assert dict(zip(zip(ends, steps, strict=True), prefixes.elements.tolist(), strict=True)) == expected


def test_states_are_those_of_each_prefix_alone() -> None:
    projected, weight, inner = weights(7, sum(LENGTHS))
    prefixes = Prefixes.of(masked(LENGTHS))
    found = prefix_gru(projected, weight, inner, prefixes)
    for number, end in enumerate(prefixes.ends.tolist()):
        own = prefixes.prefixes == number
        inputs = projected[prefixes.elements[own]].unsqueeze(1)
        alone = gru_sequence_reference(inputs, torch.zeros(1, 7, dtype=torch.double), weight, inner)
        assert prefixes.elements[own][0] == end
        torch.testing.assert_close(found[own], alone[:, 0])


def test_gradients() -> None:
    given = weights(5, sum(LENGTHS))
    prefixes = Prefixes.of(masked(LENGTHS))
    assert torch.autograd.gradcheck(lambda *tensors: prefix_gru(*tensors, prefixes), given)
    grads = [
        torch.autograd.grad(run(*given, prefixes).square().sum(), given) for run in (prefix_gru, prefix_gru_reference)
    ]
    for fast, plain in zip(*grads, strict=True):
        torch.testing.assert_close(fast, plain)


@pytest.mark.parametrize("lengths", [[1], [1, 1, 1]])
def test_sequences_of_one(lengths) -> None:
    projected, weight, inner = weights(3, sum(lengths))
    prefixes = Prefixes.of(masked(lengths))
    torch.testing.assert_close(
        prefix_gru(projected, weight, inner, prefixes), prefix_gru_reference(projected, weight, inner, prefixes)
    )


def test_nothing_to_read() -> None:
    projected, weight, inner = weights(3, 0)
    prefixes = Prefixes.of(torch.zeros(2, 4, dtype=torch.bool))
    assert prefix_gru(projected, weight, inner, prefixes).shape == (0, 3)
