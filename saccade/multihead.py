"""Multi-head attention."""

from dataclasses import replace

from torch import Tensor, nn

from saccade.attention import Attention
from saccade.checks import check_count
from saccade.kernels.nested import map_tensors
from saccade.masks import Mask, as_mask
from saccade.memory import Memory, check_memory, new_token
from saccade.reading import Reading, State
from saccade.scores.base import check_features


class MultiHead(nn.Module):
    r"""Projects queries, keys and values for each head, reads with one attention, and combines the heads.

    .. math:: \mathrm{out}_i = W^O [c_i^{(1)}; \dots; c_i^{(h)}], \qquad
        c_i^{(m)} = \mathrm{attention}(W_m^Q q_i, W_m^K k, W_m^V v)

    Heads are a batch dimension, so any score and any selection works; a score with parameters is built for the size of
    one head and shared by all heads. With fewer `num_key_heads`, groups of query heads share keys and values
    (with one: multi-query attention).

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim), values (*batch, keys, value_dim), mask
        broadcastable to (*batch, queries, keys), or to (*batch, heads, queries, keys) if it has a heads dimension
        -> `Reading` with context (*batch, queries, output_dim) and weights (*batch, heads, queries, keys).

    Reference:
        Vaswani et al. (2017), arXiv:1706.03762, section 3.2.2; grouped heads: Ainslie et al. (2023), arXiv:2305.13245.

    Args:
        attention: the attention of every head.
        num_heads: the number of query heads.
        query_dim: features of the queries.
        key_dim, value_dim, output_dim: features of keys (default: query_dim), values (default: key_dim) and of the
            context (default: query_dim).
        head_dim, value_head_dim: features of one head's queries and keys (default: query_dim / num_heads) and
            values (default: head_dim).
        num_key_heads: the number of key and value heads (default: num_heads).
        bias: whether the projections have a bias.
    """

    quantisable = True
    """Whether its linear layers are only called, so that `saccade.models.quantised` may replace them."""

    def __init__(
        self,
        *,
        attention: Attention,
        num_heads: int,
        query_dim: int,
        key_dim: int | None = None,
        value_dim: int | None = None,
        output_dim: int | None = None,
        head_dim: int | None = None,
        value_head_dim: int | None = None,
        num_key_heads: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if not isinstance(attention, Attention):
            raise TypeError(f"attention must be an Attention, got {attention!r}: pass Attention(score=...).")
        check_count("num_heads", num_heads)
        if head_dim is None and query_dim % num_heads:
            raise ValueError(
                f"query_dim={query_dim} is not a multiple of num_heads={num_heads}: give head_dim or change num_heads."
            )
        self.token = new_token()
        self.attention = attention
        self.num_heads = num_heads
        self.num_key_heads = num_heads if num_key_heads is None else num_key_heads
        if self.num_key_heads < 1 or num_heads % self.num_key_heads:
            raise ValueError(f"num_heads={num_heads} is not a multiple of num_key_heads={self.num_key_heads}.")
        self.query_dim = query_dim
        self.key_dim = query_dim if key_dim is None else key_dim
        self.value_dim = self.key_dim if value_dim is None else value_dim
        head_dim = query_dim // num_heads if head_dim is None else head_dim
        value_head_dim = head_dim if value_head_dim is None else value_head_dim
        output_dim = query_dim if output_dim is None else output_dim
        context_dim = attention.aggregation.output_dim(value_head_dim)
        self.query_proj = nn.Linear(query_dim, num_heads * head_dim, bias=bias)
        self.key_proj = nn.Linear(self.key_dim, self.num_key_heads * head_dim, bias=bias)
        self.value_proj = nn.Linear(self.value_dim, self.num_key_heads * value_head_dim, bias=bias)
        self.output_proj = nn.Linear(num_heads * context_dim, output_dim, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialises weights with Glorot and biases with zero."""
        for proj in (self.query_proj, self.key_proj, self.value_proj, self.output_proj):
            nn.init.xavier_uniform_(proj.weight)
            if proj.bias is not None:
                nn.init.zeros_(proj.bias)

    def forward(
        self,
        query: Tensor | None,
        keys: Tensor | None = None,
        values: Tensor | None = None,
        *,
        mask: Tensor | Mask | None = None,
        state: State | None = None,
    ) -> Reading:
        """Prepares a memory and reads it; `keys` default to the query (self-attention), `values` to the keys."""
        keys = query if keys is None else keys
        if keys is None:
            raise ValueError("query and keys are both None: pass a query for self-attention, or keys for pooling.")
        return self.read(query, self.prepare(keys, values, mask=mask), state=state)

    def prepare(
        self, keys: Tensor, values: Tensor | None = None, *, mask: Tensor | Mask | None = None, start: int = 0
    ) -> Memory:
        """Projects keys and values for each head, once."""
        own_values = values is not None
        values = keys if values is None else values
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        check_features(values, self.value_dim, "values", self, "value_dim")
        whole = None if mask is None else as_mask(mask).across_heads(keys.dim())
        memory = self.attention.prepare(
            self._split(self.key_proj(keys), self.num_key_heads),
            self._split(self.value_proj(values), self.num_key_heads),
            mask=whole,
            start=start,
        )
        return replace(memory, owner=self, own_values=own_values)

    def read(self, query: Tensor | None, memory: Memory, *, state: State | None = None) -> Reading:
        """Like `Attention.read`, with a projection of the query per head; query may be None for query-free scores."""
        check_memory(memory, self)
        heads = query
        if query is not None:
            check_features(query, self.query_dim, "query", self, "query_dim")
            heads = self._split(self.query_proj(query), self.num_heads)
        reading = self.attention.read(heads, replace(self._share_keys(memory), owner=self.attention), state=state)
        return reading.with_context(self.output_proj(reading.context.transpose(-3, -2).flatten(-2)))

    def _split(self, tensor: Tensor, heads: int) -> Tensor:
        return tensor.view(*tensor.shape[:-1], heads, tensor.shape[-1] // heads).transpose(-3, -2)

    def _share_keys(self, memory: Memory) -> Memory:
        """Each group of query heads sees its own copy of the shared keys."""
        group = self.num_heads // self.num_key_heads
        if group == 1:
            return memory

        def repeat(tensor: Tensor) -> Tensor:
            return tensor.repeat_interleave(group, dim=-3)

        return replace(memory, prepared=map_tensors(repeat, memory.prepared), values=repeat(memory.values))
