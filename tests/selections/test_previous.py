"""What is carried from step to step keeps its digits in half precision."""

import pytest
import torch

from saccade.selections import MoChA, Monotonic, NTMAddressing, Windowed

SELECTIONS = {
    "monotonic": lambda: Monotonic(noise=0.0),
    "mocha": lambda: MoChA(noise=0.0),
    "windowed": lambda: Windowed(half_width=2),
    "ntm_addressing": lambda: NTMAddressing(query_dim=3),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("make", SELECTIONS.values(), ids=SELECTIONS)
def test_step_by_step_is_all_at_once_and_both_are_single_precision(make, dtype):
    selection = make()
    scores, query = torch.randn(3, 17, 11).to(dtype), torch.randn(3, 17, 3)
    together = selection(scores, query=query)
    assert together.marginals.dtype == dtype
    final = selection.advance(None, together)
    assert final.dtype == torch.float32
    state, parts = None, []
    for i in range(17):
        parts.append(selection(scores[:, i : i + 1], query=query[:, i : i + 1], state=state))
        state = selection.advance(state, parts[-1])
    torch.testing.assert_close(state, final, atol=1e-6, rtol=0)
    joined = type(parts[0]).cat(parts)
    torch.testing.assert_close(joined.marginals, together.marginals, atol=0, rtol=torch.finfo(dtype).eps)
    torch.testing.assert_close(selection.advance(None, joined), final, atol=1e-6, rtol=0)
    exact = selection(scores.float(), query=query)
    torch.testing.assert_close(selection.advance(None, exact), final, atol=1e-6, rtol=0)


def test_full_precision_is_kept_once():
    assert Monotonic(noise=0.0)(torch.randn(3, 5, 7)).exact is None
