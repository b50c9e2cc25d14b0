"""The base class of structures."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.structures.backend import FORBIDDEN, Backend, Potentials, gradient
from saccade.structures.semiring import Plus, log_plus, max_plus, sample_plus


class Structure:
    r"""A set of structures made of parts; the weight of a structure is the sum of its parts' potentials.

    .. math:: p(z) = \frac{\exp \langle \theta, z \rangle}{Z(\theta)}, \qquad
        \mathbb{E}[z] = \frac{\partial \log Z}{\partial \theta}

    A new structure implements `log_partition` alone, as a differentiable program over `plus`: marginals, mode, samples
    and entropy follow. Potentials are float64, those of forbidden parts `FORBIDDEN`; where every structure is
    forbidden, nothing is picked: all parts are zero. `inference` takes float32, too. A structure with native kernels
    also names its `backend`.
    """

    event_dims: int = 1
    """The number of trailing axes of the first potentials that one structure spans."""

    marginal_error: float = 0.0
    """Up to what the marginals of parts that cannot be used may differ from zero."""

    def log_partition(self, potentials: Potentials, plus: Plus = log_plus) -> Tensor:
        """(*batch,): the log of the sum over all structures of the exponential of their weight.

        Every sum over alternatives is `plus(alternatives, dim)`; the weights of parts that occur together are added. No
        alternative may be counted twice.
        """
        raise NotImplementedError

    def backend(self) -> Backend:
        """What computes log-partition and marginals; by default autograd."""
        return Backend(type(self).__name__, self.log_partition)

    def inference(self, potentials: Potentials) -> tuple[Tensor, Potentials]:
        """The log-partition, and P(part is used) for every part; both can be differentiated repeatedly.

        Where no structure exists, the log-partition is below `FORBIDDEN` / 10 and the marginals are zero. All
        computation is in float64, as is the log-partition; the marginals have the dtype of the potentials.
        """
        return self.backend().inference(potentials)

    def best(self, potentials: Potentials) -> Potentials:
        """The parts of a structure of the largest weight, as zeros and ones."""
        return gradient(self.log_partition, potentials, max_plus)[1]

    def sample(self, potentials: Potentials, n: int) -> Potentials:
        """The parts of `n` exact samples, on a new first axis."""
        return gradient(self.log_partition, tuple(t.expand(n, *t.shape) for t in potentials), sample_plus)[1]

    def weight(self, potentials: Potentials, parts: Potentials) -> Tensor:
        """(*batch,): the weight of the structure with these parts."""
        batch_dims = potentials[0].dim() - self.event_dims
        totals = [
            torch.where(part != 0, part * theta, 0.0).flatten(batch_dims - theta.dim()).sum(-1)
            for part, theta in zip(parts, potentials, strict=True)
        ]
        return torch.stack(torch.broadcast_tensors(*totals)).sum(0)

    def contains(self, parts: Potentials) -> Tensor:
        """(*batch,) bool: whether these parts, zeros and ones, form a structure of the set."""
        # The best structure for these parts as potentials reaches their number only if it is this one.
        only = tuple(torch.where(part == 1, 1.0, FORBIDDEN).to(torch.float64) for part in parts)
        batch_dims = parts[0].dim() - self.event_dims
        wanted = torch.stack([(part == 1).flatten(batch_dims).sum(-1) for part in parts]).sum(0)
        return self.log_partition(only, max_plus) == wanted
