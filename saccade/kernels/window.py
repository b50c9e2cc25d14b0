"""Reading a few keys for each query instead of all of them."""

from jaxtyping import Int, Shaped
from torch import Tensor, arange


def gather_keys(tensor: Shaped[Tensor, "*b k d"], index: Int[Tensor, "*b q w"]) -> Shaped[Tensor, "*b q w d"]:
    """The rows `index` of a (*batch, keys, dim) tensor, for each query its own; costs nothing per key left out."""
    batch = index.shape[:-2]
    rows = tuple(
        arange(size, device=index.device).view(size, *(1,) * (index.dim() - axis - 1))
        for axis, size in enumerate(batch)
    )
    return tensor[(*rows, index)]
