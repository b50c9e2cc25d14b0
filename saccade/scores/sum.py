"""Sums of scores."""

from typing import Any, cast

from torch import Tensor, nn

from saccade.scores.base import DotProduct, Prepared, Score, scores
from saccade.scores.position_bias import PositionBias


@scores.register("sum")
class SumScore(Score):
    r"""A sum of scores, such as `ScaledDotScore() + ALiBi(num_heads=8)`.

    .. math:: s_{ij} = \sum_m s^{(m)}_{ij}

    Shapes:
        those of its terms, which must agree.
    """

    def __init__(self, *, scores: list[Score]) -> None:
        super().__init__()
        if not scores:
            raise ValueError("SumScore needs at least one score, got an empty list.")
        flat = [m for s in scores for m in (s.members if isinstance(s, SumScore) else [s])]
        if len({m.feature_wise for m in flat}) > 1:
            raise ValueError("A feature-wise score cannot be added to a score with one value per key.")
        self.scores = nn.ModuleList(flat)
        self.query_dim = next((m.query_dim for m in flat if m.query_dim is not None), None)
        self.key_dim = next((m.key_dim for m in flat if m.key_dim is not None), None)
        self.stateful = any(m.stateful for m in flat)
        self.pairwise = all(m.pairwise for m in flat)
        self.feature_wise = flat[0].feature_wise
        self.query_free = all(m.query_free for m in flat)
        self.max_keys = min((m.max_keys for m in flat if m.max_keys is not None), default=None)
        self.appendable = all(m.appendable for m in flat)

    @property
    def members(self) -> list[Score]:
        return cast(list[Score], list(self.scores))

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        return tuple(m.prepare(keys, mask=mask, start=start) for m in self.members)

    def begin(self, query: Tensor, prepared: Prepared, mask: Tensor | None = None) -> Any:
        return tuple(m.begin(query, p, mask) for m, p in zip(self.members, prepared, strict=True))

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        states = (None,) * len(self.members) if state is None else state
        total = self.members[0].compare(query, prepared[0], states[0])
        for member, part, member_state in zip(self.members[1:], prepared[1:], states[1:], strict=True):
            total = total + member.compare(query, part, member_state)
        return total

    def advance(self, state: Any, weights: Tensor, query: Tensor, prepared: Prepared) -> Any:
        return tuple(m.advance(s, weights, query, p) for m, s, p in zip(self.members, state, prepared, strict=True))

    def as_dot_product(self, query: Tensor, prepared: Prepared) -> DotProduct | None:
        if self.stateful:
            return None
        found: DotProduct | None = None
        bias: Tensor | None = None
        for member, part in zip(self.members, prepared, strict=True):
            dot = member.as_dot_product(query, part)
            if dot is not None and found is None:
                found = dot
            else:
                # Without expanding, applying a mask does not copy a position bias for every batch row.
                scores = member.bias(query, part) if isinstance(member, PositionBias) else member.compare(query, part)
                bias = scores if bias is None else bias + scores
        if found is None:
            return None
        if found.bias is not None:
            bias = found.bias if bias is None else found.bias + bias
        return found._replace(bias=bias)
