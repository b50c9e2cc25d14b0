"""The base class of scores."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor, nn

from saccade.checks import keep_declared
from saccade.registry import Registry

Prepared = Any
"""What `prepare` returns: a tensor, or nested tuples of tensors, each with keys on its second-to-last axis."""


class DotProduct(NamedTuple):
    """Scores as `scale * query @ keys^T + bias`: the form that fused kernels accept."""

    query: Tensor
    keys: Tensor
    scale: float
    bias: Tensor | None = None

    def scores(self) -> Tensor:
        scores = self.scale * (self.query @ self.keys.transpose(-1, -2))
        return scores if self.bias is None else scores + self.bias


class HiddenLayer(NamedTuple):
    """Scores as `output @ tanh(query_weight @ query + key_weight @ key)`: the form that kernels for many steps accept.

    Args:
        query_weight: (hidden_dim, query_dim).
        key_weight: (hidden_dim, key_dim).
        output: (hidden_dim,).
    """

    query_weight: Tensor
    key_weight: Tensor
    output: Tensor


class Score(nn.Module):
    """How well a query matches a key: (*batch, queries, keys), neither masked nor normalised.

    A new score implements `compare`, or `as_dot_product` if it is an inner product, and `prepare` if part of the work
    depends on the keys alone. A score that depends on earlier steps is `stateful` and also implements `begin` and
    `advance`; it compares one query at a time.
    """

    stateful: bool = False
    """Whether the scores of a step depend on earlier steps."""

    pairwise: bool = True
    """Whether the score of a pair depends on that query and key alone, so that keys can be scored in blocks."""

    feature_wise: bool = False
    """Whether there is one score per value channel: (*batch, channels, queries, keys)."""

    query_free: bool = False
    """Whether the query is ignored, so that `attention(None, keys)` pools the keys."""

    same_features: bool = False
    """Whether queries and keys are compared feature by feature, and so must have the same size."""

    appendable: bool = True
    """Whether keys that are appended later can be prepared on their own."""

    max_keys: int | None = None
    """The maximum number of keys that it can score, if limited."""

    default_selection: str = "softmax"
    """The short name of the selection that `Attention` uses if none is given."""

    query_dim: int | None = None
    key_dim: int | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        computes = ("prepare", "compare", "as_dot_product", "begin", "advance", "forward")
        keep_declared(cls, "inner_product_scale", computes, otherwise=Score.inner_product_scale)
        keep_declared(cls, "hidden_layer", computes, otherwise=Score.hidden_layer)
        keep_declared(cls, "along", computes, otherwise=Score.along)
        keep_declared(cls, "same_features", computes)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        """Computes the query-independent half, once per memory.

        Args:
            keys: (*batch, keys, key_dim).
            mask: (*batch, keys), True where a key may be attended; for scores that mix neighbouring keys.
            start: the position of the first of these keys in a growing memory.
        """
        return keys

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        """Scores query (*batch, queries, query_dim) against prepared keys; `state` is only for stateful scores."""
        dot = self.as_dot_product(query, prepared)
        if dot is None:
            raise NotImplementedError(f"{type(self).__name__} must implement compare or as_dot_product.")
        return dot.scores()

    def begin(self, query: Tensor, prepared: Prepared, mask: Tensor | None = None) -> Any:
        """The state before the first step; mask (*batch, keys). None by default."""
        return None

    def advance(self, state: Any, weights: Tensor, query: Tensor, prepared: Prepared) -> Any:
        """The state after a step that read `weights` (*batch, 1, keys) for `query` (*batch, 1, query_dim)."""
        return state

    def as_dot_product(self, query: Tensor, prepared: Prepared) -> DotProduct | None:
        """The same scores as an inner product, if they are one."""
        return None

    def inner_product_scale(self, dim: int) -> float | None:
        """The factor of `query @ keys^T`, if the scores are that and nothing else; None for other scores.

        Kernels for many steps compute such scores themselves. A subclass that overrides any part of the computation
        must declare this itself; it does not inherit it.

        Args:
            dim: features of queries and keys.
        """
        return None

    def hidden_layer(self) -> HiddenLayer | None:
        """The weights of one hidden layer, if the scores are that and nothing else; None for other scores.

        Inherited like `inner_product_scale`.
        """
        return None

    def along(
        self, query: Tensor, keys: Tensor, edges: Tensor | None, starts: Tensor, neighbours: Tensor
    ) -> Tensor | None:
        """The scores of a graph's edges alone, by a kernel: (edges, heads); None for scores without one.

        Inherited like `inner_product_scale`.

        Args:
            query, keys: (nodes, heads, dim).
            edges: (edges, heads, dim), added to the key at their end; or None.
            starts, neighbours: node i attends to neighbours[starts[i]:starts[i + 1]].
        """
        return None

    def start_as_paper(self) -> None:
        """Draws the weights as the paper of the score did; leaves them as they are by default."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores of a stateless score, or of the first step of a stateful one."""
        prepared = self.prepare(keys)
        return self.compare(query, prepared, self.begin(query, prepared))

    def __add__(self, other: Score) -> Score:
        if not isinstance(other, Score):
            return NotImplemented
        return scores.create("sum", scores=[self, other])


scores: Registry[Score] = Registry("score", base=Score, home="saccade.scores")


def check_features(tensor: Tensor, expected: int | None, argument: str, owner: object, parameter: str) -> None:
    """Rejects a tensor whose last axis is not `expected`, naming the argument and the fix."""
    if expected is not None and tensor.shape[-1] != expected:
        raise ValueError(
            f"{argument} of shape {tuple(tensor.shape)} has {tensor.shape[-1]} features, but "
            f"{type(owner).__name__} was built with {parameter}={expected}: build it with "
            f"{parameter}={tensor.shape[-1]}, or pass {argument} with {expected} features."
        )


def check_same_features(query: Tensor, keys: Tensor, owner: object) -> None:
    """Rejects queries and keys of different sizes, for scores that compare them feature by feature."""
    if query.shape[-1] != keys.shape[-1]:
        raise ValueError(
            f"{type(owner).__name__} needs queries and keys of the same size, got query {tuple(query.shape)} and keys "
            f"{tuple(keys.shape)}: project one of them, or use BilinearScore."
        )
