"""The layers of a Transformer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from saccade import masks
from saccade.attention import check_growing, check_one_by_one
from saccade.masks import Mask
from saccade.memory import Memory
from saccade.multihead import MultiHead
from saccade.reading import Reading, State
from saccade.registry import nearest

NormPlace = Literal["pre", "post"]
Activation = Literal["relu", "gelu", "gelu_tanh"]


def gelu_tanh(inputs: Tensor) -> Tensor:
    """GELU as GPT-2 approximates it."""
    return F.gelu(inputs, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": gelu_tanh}


class FeedForward(nn.Module):
    r"""Two linear layers with a nonlinearity between them, applied at every position.

    .. math:: W_2\, f(W_1 x + b_1) + b_2

    Shapes:
        (*, dim) -> (*, dim).

    Reference:
        Vaswani et al. (2017), arXiv:1706.03762, section 3.3.
    """

    quantisable = True
    """Whether its linear layers are only called, so that `saccade.models.quantised` may replace them."""

    def __init__(self, *, dim: int, hidden_dim: int, activation: Activation = "relu") -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"Unknown activation {activation!r}.{nearest(activation, ACTIVATIONS)}")
        self.activation = ACTIVATIONS[activation]
        self.hidden_proj = nn.Linear(dim, hidden_dim)
        self.output_proj = nn.Linear(hidden_dim, dim)
        for linear in (self.hidden_proj, self.output_proj):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.output_proj(self.activation(self.hidden_proj(inputs)))
        return outputs


class Residual(nn.Module):
    r"""A residual connection around a sublayer, with normalisation before the sublayer or after the sum.

    .. math:: x + \mathrm{drop}(f(\mathrm{norm}(x))) \quad\text{or}\quad \mathrm{norm}(x + \mathrm{drop}(f(x)))

    Reference:
        Vaswani et al. (2017), arXiv:1706.03762, section 3.1 (after); Xiong et al. (2020), arXiv:2002.04745 (before).
    """

    def __init__(self, *, dim: int, norm: NormPlace = "pre", dropout: float = 0.0, epsilon: float = 1e-5) -> None:
        super().__init__()
        if norm not in ("pre", "post"):
            raise ValueError(f"norm must be 'pre' or 'post', got {norm!r}.")
        self.before = norm == "pre"
        self.norm = nn.LayerNorm(dim, eps=epsilon)
        self.dropout = dropout

    def forward(self, inputs: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        changed = sublayer(self.norm(inputs) if self.before else inputs)
        summed = inputs + F.dropout(changed, self.dropout, self.training)
        return summed if self.before else self.norm(summed)


class TransformerEncoderLayer(nn.Module):
    """Self-attention and a feed-forward network, each with a residual connection.

    Shapes:
        inputs (batch, length, dim), mask broadcastable to (batch, length, length) -> (batch, length, dim).

    Reference:
        Vaswani et al. (2017), arXiv:1706.03762, section 3.1.
    """

    def __init__(
        self,
        *,
        self_attention: MultiHead,
        feed_forward: FeedForward,
        norm: NormPlace = "pre",
        dropout: float = 0.0,
        epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        dim = self_attention.query_dim
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.around_attention = Residual(dim=dim, norm=norm, dropout=dropout, epsilon=epsilon)
        self.around_feed_forward = Residual(dim=dim, norm=norm, dropout=dropout, epsilon=epsilon)

    def forward(self, inputs: Tensor, mask: Tensor | Mask | None = None) -> Tensor:
        attended = self.around_attention(inputs, lambda x: self.self_attention(x, mask=mask).context)
        outputs: Tensor = self.around_feed_forward(attended, self.feed_forward)
        return outputs

    def step(
        self, inputs: Tensor, cache: Memory, state: State | None, *, rows: Tensor | None = None
    ) -> tuple[Tensor, Memory, State]:
        """One step of inputs (batch, 1, dim) that attends to the past only; also returns the next cache and state.

        See `check_growing` for the attentions that can do this, `empty_cache` for the first cache, and
        `TransformerDecoderLayer.step` for `rows`.
        """
        past = PastAttention(self.self_attention, cache, state, rows)
        outputs = self.around_feed_forward(self.around_attention(inputs, past), self.feed_forward)
        return outputs, past.cache, past.reading.state


class PastAttention:
    """Self-attention of one step to the steps before it, as a sublayer; calling it moves `cache` on by one step."""

    reading: Reading

    def __init__(self, attention: MultiHead, cache: Memory, state: State | None, rows: Tensor | None) -> None:
        self.attention, self.cache, self.state, self.rows = attention, cache, state, rows

    def __call__(self, inputs: Tensor) -> Tensor:
        self.cache = self.cache.append(inputs, rows=self.rows)
        self.reading = self.attention.read(inputs, self.cache, state=self.state)
        return self.reading.context


def empty_cache(attention: MultiHead, like: Tensor) -> Memory:
    """The memory of the past before the first step; `like` has the batch and device of the inputs."""
    return attention.prepare(like.new_zeros(like.shape[0], 0, attention.query_dim))


class TransformerDecoderLayer(nn.Module):
    """Self-attention to the past, attention to the memory, and a feed-forward network.

    Shapes:
        inputs (batch, steps, dim), a memory prepared by `cross_attention` -> (batch, steps, dim).

    Reference:
        Vaswani et al. (2017), arXiv:1706.03762, section 3.1.
    """

    def __init__(
        self,
        *,
        self_attention: MultiHead,
        cross_attention: MultiHead,
        feed_forward: FeedForward,
        norm: NormPlace = "pre",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_one_by_one(cross_attention.attention)
        check_growing(self_attention.attention)
        dim = self_attention.query_dim
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.around_self = Residual(dim=dim, norm=norm, dropout=dropout)
        self.around_cross = Residual(dim=dim, norm=norm, dropout=dropout)
        self.around_feed_forward = Residual(dim=dim, norm=norm, dropout=dropout)

    def forward(self, inputs: Tensor, memory: Memory) -> tuple[Tensor, Reading]:
        """All steps at once; also returns the reading of the memory."""
        outputs = self.around_self(inputs, lambda x: self.self_attention(x, mask=masks.causal()).context)
        return self._after_self(outputs, memory, None)

    def step(
        self,
        inputs: Tensor,
        memory: Memory,
        cache: Memory,
        states: tuple[State | None, State | None],
        *,
        rows: Tensor | None = None,
    ) -> tuple[Tensor, Reading, Memory, tuple[State, State]]:
        """One step of inputs (batch, 1, dim); also returns the reading, and the cache and states for the next step.

        `rows` (batch,) is the row of the cache that each input continues, if not its own.
        """
        past = PastAttention(self.self_attention, cache, states[0], rows)
        outputs, reading = self._after_self(self.around_self(inputs, past), memory, states[1])
        return outputs, reading, past.cache, (past.reading.state, reading.state)

    def _after_self(self, inputs: Tensor, memory: Memory, state: State | None) -> tuple[Tensor, Reading]:
        readings: list[Reading] = []

        def look_across(x: Tensor) -> Tensor:
            # With fewer memories than rows, neighbouring rows are hypotheses of one sentence: queries of one memory.
            rows = memory.values.shape[0]
            queries = x if x.shape[0] == rows else x.reshape(rows, -1, x.shape[-1])
            readings.append(self.cross_attention.read(queries, memory, state=state))
            return readings[0].context.reshape(x.shape)

        outputs = self.around_cross(inputs, look_across)
        return self.around_feed_forward(outputs, self.feed_forward), readings[0]
