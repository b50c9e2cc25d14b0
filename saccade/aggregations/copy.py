"""Copying source tokens."""

import torch
from torch import Tensor

from saccade.aggregations.base import MarginalAggregation, aggregations


@aggregations.register("copy")
class Copy(MarginalAggregation):
    r"""Turns weights over positions into probabilities of the tokens at these positions.

    .. math:: c_i(w) = \sum_{j : x_j = w} p_{ij}

    The values are the token ids x_j. Ids from `vocab_size` on are out-of-vocabulary words, numbered separately for each
    example. Mix the result with a generator's distribution using `saccade.losses.pointer_generator_log_probs`. Ids
    cannot be projected, so this does not work inside `MultiHead`.

    Shapes:
        weights (*batch, queries, keys), values (*batch, keys, 1) of whole numbers
        -> context (*batch, queries, vocab_size + extra_ids), a distribution if the weights are one.

    Reference:
        See et al. (2017), arXiv:1704.04368, equation 9; Gu et al. (2016), arXiv:1603.06393.

    Args:
        vocab_size: the size of the shared vocabulary.
        extra_ids: the maximum number of out-of-vocabulary words in one example.
    """

    reads_ids: bool = True

    def __init__(self, *, vocab_size: int, extra_ids: int = 0) -> None:
        super().__init__()
        if vocab_size < 1 or extra_ids < 0:
            raise ValueError(
                f"vocab_size must be 1 or more and extra_ids 0 or more, got vocab_size={vocab_size} and "
                f"extra_ids={extra_ids}."
            )
        self.vocab_size = vocab_size
        self.extra_ids = extra_ids

    def output_dim(self, value_dim: int) -> int:
        if value_dim != 1:
            raise ValueError(
                f"Copy reads one token id per key, so value_dim must be 1, got {value_dim}. MultiHead projects its "
                "values, but ids cannot be projected: use Copy in a separate Attention, or "
                "copy_distribution(reading.weights.mean(-3), ids, size=...) on the mean of the heads' weights."
            )
        return self.vocab_size + self.extra_ids

    def forward(
        self,
        weights: Tensor,
        values: Tensor,
        *,
        query: Tensor | None = None,
        scores: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if values.shape[-1] != 1 or not _whole(values):
            raise TypeError(
                f"Copy reads token ids: values must be (*batch, keys, 1) of whole numbers, got {tuple(values.shape)} "
                f"of {values.dtype}. Pass values=ids.unsqueeze(-1) to an Attention outside MultiHead."
            )
        return copy_distribution(weights, values.squeeze(-1), size=self.vocab_size + self.extra_ids, mask=mask)


def copy_distribution(weights: Tensor, ids: Tensor, *, size: int, mask: Tensor | None = None) -> Tensor:
    """The weight on each of `size` token ids: (*batch, queries, size).

    Args:
        weights: (*batch, queries, keys).
        ids: whole numbers (*batch, keys), from 0 to size - 1 at attendable keys.
        size: the number of ids, including those of the extended vocabulary.
        mask: bool, broadcastable to the weights; the ids of masked keys are ignored.
    """
    if not _whole(ids):
        raise TypeError(f"ids must be whole numbers, got {ids.dtype}; use ids.long().")
    index = ids.long().unsqueeze(-2)
    if mask is not None:
        index = torch.where(mask, index, 0)
    _check_range(index, size)
    # In half precision, sums of many small weights on one id would stall.
    mass = weights.to(torch.promote_types(weights.dtype, torch.float32))
    empty = mass.new_zeros(*weights.shape[:-1], size)
    return empty.scatter_add(-1, index.expand(weights.shape), mass).to(weights.dtype)


def _whole(ids: Tensor) -> bool:
    return not (ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool)


def _check_range(index: Tensor, size: int) -> None:
    """Only on the CPU and outside compiled code: elsewhere this would synchronise the device or break the graph."""
    if torch.compiler.is_compiling() or index.device.type != "cpu":
        return
    wrong = (index < 0) | (index >= size)
    if bool(wrong.any()):
        raise ValueError(
            f"ids must be from 0 to {size - 1} (vocab_size + extra_ids is {size}), got {int(index[wrong][0])}: "
            "increase extra_ids, or map unknown words to the id of the unknown word."
        )
