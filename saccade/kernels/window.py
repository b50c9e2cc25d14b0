"""Reading a few keys for each query instead of all of them."""

from jaxtyping import Int, Shaped
from torch import Tensor, arange


def gather_keys(tensor: Shaped[Tensor, "*b k d"], index: Int[Tensor, "*b q w"]) -> Shaped[Tensor, "*b q w d"]:
    """Gathers the rows `index` of a (*batch, keys, dim) tensor for each query, at no cost for other keys."""
    batch = index.shape[:-2]
    if tensor.is_contiguous():  # whole rows of one matrix are the fastest to copy
        keys, dim = tensor.shape[-2:]
        first = (arange(batch.numel(), device=index.device) * keys).view(*batch, 1, 1)
        return tensor.view(-1, dim).index_select(0, (index + first).flatten()).view(*index.shape, dim)
    rows = tuple(
        arange(size, device=index.device).view(size, *(1,) * (index.dim() - axis - 1))
        for axis, size in enumerate(batch)
    )
    return tensor[(*rows, index)]
