"""Steps of skip-gram against loops, autograd and the plain form."""

import pytest
import torch

from saccade.kernels.skip_gram import coefficients, gradients, loss, skip_gram_, skip_gram_reference_

CENTRES, CONTEXTS, NEGATIVES, DIM = 5, 7, 3, 11


def some_batch():
    generator = torch.Generator().manual_seed(1)
    contexts = torch.randint(6, (CENTRES, CONTEXTS), generator=generator)
    real = torch.rand(CENTRES, CONTEXTS, generator=generator) < 0.6
    return contexts, real, torch.randint(6, (CENTRES, NEGATIVES), generator=generator)


def test_loss_is_a_sum_over_contexts_and_their_negatives():
    contexts, real, negatives = some_batch()
    v, table = torch.randn(CENTRES, DIM).double(), torch.randn(6, DIM).double()
    wanted = 0.0
    for row in range(CENTRES):
        for context in contexts[row][real[row]]:
            wanted -= torch.sigmoid(v[row] @ table[context]).log()
            for negative in negatives[row]:
                if negative != context:
                    wanted -= torch.sigmoid(-v[row] @ table[negative]).log()
    targets = torch.cat([contexts, negatives], dim=1)
    found = loss(v, table[targets], *coefficients(contexts, real, negatives))
    assert found.item() == pytest.approx(wanted.item(), rel=1e-6)


def test_gradients_are_those_of_autograd():
    contexts, real, negatives = some_batch()
    sides = coefficients(contexts, real, negatives)
    v = torch.randn(CENTRES, DIM, dtype=torch.float64, requires_grad=True)
    u = torch.randn(CENTRES, CONTEXTS + NEGATIVES, DIM, dtype=torch.float64, requires_grad=True)
    loss(v, u, *sides).backward()
    for_v, for_u = gradients(v.detach(), u.detach(), *(side.double() for side in sides))
    torch.testing.assert_close(for_v, v.grad)
    torch.testing.assert_close(for_u, u.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("dim", "batch", "drawn"), [(3, 7, 5), (100, 29, 1), (101, 2, 13)])
def test_the_kernel_takes_the_steps_of_the_plain_form(dtype, dim, batch, drawn):
    generator = torch.Generator().manual_seed(2)
    inner, outer = (torch.randn(13, dim, generator=generator, dtype=dtype) for _ in range(2))
    centres, contexts, negatives = (
        torch.randint(13, shape, generator=generator) for shape in [(31,), (31, 10), (31, drawn)]
    )
    real = torch.rand(31, 10, generator=generator) < 0.5
    real[4] = False  # a centre without contexts learns nothing
    rates = torch.linspace(0.05, 0.01, -(-31 // batch))
    found, wanted = (inner.clone(), outer.clone()), (inner.clone(), outer.clone())
    skip_gram_(*found, centres, contexts, real, negatives, rates, batch)
    skip_gram_reference_(*wanted, centres, contexts, real, negatives, rates, batch)
    assert not torch.equal(wanted[0], inner)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4 if dtype == torch.float32 else 1e-9, atol=1e-5)


def test_saturated_scores_stay_finite():
    inner, outer = torch.full((2, 100), 90.0), torch.full((2, 100), -90.0)
    targets = torch.tensor([[1]])
    skip_gram_(inner, outer, torch.tensor([0]), targets, targets > 0, 1 - targets, torch.tensor([0.1]), 4)
    torch.testing.assert_close(inner[0], torch.full((100,), 81.0))  # the context pulls with all its force
    torch.testing.assert_close(outer[0], torch.full((100,), -90.0))  # the negative is already far


def test_ids_outside_the_vocabulary_are_refused():
    inner, outer = torch.zeros(2, 3), torch.zeros(2, 3)
    far = torch.tensor([[2]])
    with pytest.raises(IndexError):
        skip_gram_(inner, outer, torch.tensor([0]), far, far > 0, far - 1, torch.tensor([0.1]), 1)


def test_no_centres():
    inner, outer = torch.ones(2, 3), torch.ones(2, 3)
    none = torch.zeros(0, 4, dtype=torch.long)
    skip_gram_(inner, outer, none[:, 0], none, none > 0, none, torch.zeros(0), 5)
    assert inner.eq(1).all()
