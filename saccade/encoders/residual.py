"""A small residual network for pictures."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.encoders.base import encoders
from saccade.encoders.grid import GridEncoder, GridPositions


@encoders.register("residual")
class ResidualEncoder(GridEncoder):
    r"""Residual blocks of 3 x 3 convolutions; each stage halves the picture.

    .. math:: y = f(x' + N(W_2 * f(N(W_1 * x)))), \qquad x' = x \text{ or } N(W_s * x)

    N normalises groups of channels within each picture, so that a batch never changes what the model sees of a picture.
    The first convolution halves the picture, and so does each stage but the first: with three stages a picture of 64 x
    64 pixels has 8 x 8 annotations.

    Shapes:
        source (batch, patches, 3 patch²), mask bool (batch, patches) -> states (batch, places, dim), summary (batch,
        dim), the mean of the states.

    Reference:
        He et al. (2016), arXiv:1512.03385; Wu & He (2018), arXiv:1803.08494, for N.

    Args:
        patch: the side of the patches that the source consists of, in pixels.
        dim: features of an annotation.
        channels: of each stage.
        blocks: how many blocks a stage has.
        positions: whether annotations know their place.
    """

    def __init__(
        self,
        *,
        patch: int,
        dim: int,
        channels: Sequence[int] = (32, 64, 128),
        blocks: int = 1,
        positions: bool = True,
    ) -> None:
        super().__init__(patch=patch)
        check_count("dim", dim)
        check_count("blocks", blocks)
        if not channels:
            raise ValueError("channels must name at least one stage.")
        for count in channels:
            check_count("channels", count)
        self.stem = nn.Conv2d(3, channels[0], 3, stride=2, padding=1, bias=False)
        self.stem_norm = _norm(channels[0])
        before = [channels[0], *channels[:-1]]
        self.blocks = nn.ModuleList(
            _Block(wide if n else narrow, wide, stride=2 if stage and not n else 1)
            for stage, (narrow, wide) in enumerate(zip(before, channels, strict=True))
            for n in range(blocks)
        )
        self.output_proj = nn.Conv2d(channels[-1], dim, 1)
        self.places = GridPositions(dim=dim) if positions else None
        self.halvings = len(channels)
        self.output_dim = self.summary_dim = dim

    def annotate(self, pictures: Tensor) -> Tensor:
        states: Tensor = F.relu(self.stem_norm(self.stem(pictures)))
        for block in self.blocks:
            states = block(states)
        states = self.output_proj(states)
        return states if self.places is None else states + self.places(*states.shape[2:])

    def grid(self, side: int) -> int:
        for _ in range(self.halvings):
            side = (side + 1) // 2
        return side


class _Block(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, before: int, after: int, *, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        self.second = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.first_norm, self.second_norm = _norm(after), _norm(after)
        nn.init.zeros_(self.second_norm.weight)  # a block begins as its shortcut
        same = before == after and stride == 1
        self.shortcut = None if same else nn.Conv2d(before, after, 1, stride=stride, bias=False)

    def forward(self, states: Tensor) -> Tensor:
        changed = self.second_norm(self.second(F.relu(self.first_norm(self.first(states)))))
        kept = states if self.shortcut is None else self.shortcut(states)
        return F.relu(kept + changed)


def _norm(channels: int) -> nn.GroupNorm:
    groups = next(count for count in (8, 4, 2, 1) if channels % count == 0)
    return nn.GroupNorm(groups, channels)
