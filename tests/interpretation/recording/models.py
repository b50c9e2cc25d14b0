"""Small models that attend in one way each, and what they attended to, computed plainly."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.functional import scaled_dot_product_attention

BATCH, HEADS, QUERIES, KEYS, DIM = 2, 3, 5, 7, 11


def plain_weights(query, key, mask=None, scale=None, causal=False):
    """The definition, one query at a time, in double precision."""
    query, key = query.double(), key.double()
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    rows = []
    for i in range(query.shape[-2]):
        scores = (query[..., i, None, :] * key).sum(-1) * scale
        if mask is not None:
            row = mask.expand(*scores.shape[:-1], query.shape[-2], key.shape[-2])[..., i, :]
            scores = scores.masked_fill(~row, -torch.inf) if row.dtype == torch.bool else scores + row
        if causal:
            scores = torch.where(torch.arange(key.shape[-2]) <= i, scores, -torch.inf)
        top = scores.amax(-1, keepdim=True)
        powers = torch.where(top == -torch.inf, 0.0, (scores - top.clamp(min=-1e300)).exp())
        rows.append(powers / powers.sum(-1, keepdim=True).clamp(min=1e-300))
    return torch.stack(rows, dim=-2)


class Fused(nn.Module):
    """Calls the fused kernel with what it is given."""

    def forward(self, query, key, value, *args, **kwargs):
        return scaled_dot_product_attention(query, key, value, *args, **kwargs)


class Layer(nn.Module):
    """Self-attention of heads by the fused kernel."""

    def __init__(self, dim=12, heads=3):
        super().__init__()
        self.heads = heads
        self.proj = nn.Linear(dim, 3 * dim)

    def split(self, x):
        return self.proj(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)

    def forward(self, x, **kwargs):
        return scaled_dot_product_attention(*self.split(x), **kwargs).transpose(1, 2).flatten(2)

    def weights(self, x, **kwargs):
        query, key, _ = self.split(x)
        return plain_weights(query, key, **kwargs)


class Eager(Layer):
    """The same with a softmax of its own and dropout after it, as models write it by hand."""

    def __init__(self, style, dropout=0.0):
        super().__init__()
        self.style, self.dropout = style, nn.Dropout(dropout)

    def forward(self, x):
        query, key, value = self.split(x)
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        if self.style == "functional":
            weights = self.dropout(F.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype))
            context = torch.matmul(weights, value)
        elif self.style == "method":
            context = self.dropout(scores.softmax(-1)) @ value
        elif self.style == "einsum":
            context = torch.einsum("bhqk,bhkd->bhqd", self.dropout(torch.softmax(scores, 3)), value)
        else:  # heads joined with the batch, as torch.bmm needs them
            flat = nn.Softmax(dim=-1)(scores.flatten(0, 1))
            context = torch.bmm(self.dropout(flat), value.flatten(0, 1)).view_as(value)
        return context.transpose(1, 2).flatten(2)


class Stack(nn.Module):
    """Two layers, the first run twice, and an output layer whose softmax is not attention."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Layer(), Layer()
        self.output = nn.Linear(12, 17)

    def forward(self, x):
        return F.softmax(self.output(self.second(self.first(self.first(x)))), dim=-1)


class Cached(Layer):
    """Reads one token after another, and keeps its keys and values: all of them, or those of a window."""

    is_causal = True

    def __init__(self, window=None, eager=False):
        super().__init__()
        self.window, self.eager, self.past = window, eager, None

    def forward(self, x):
        query, *new = self.split(x)
        both = new if self.past is None else [torch.cat(pair, dim=2) for pair in zip(self.past, new, strict=True)]
        self.past = [part[:, :, -self.window + 1 :] if self.window else part for part in both]
        key, value = both
        if self.eager:
            return (torch.softmax(query @ key.mT / 2, -1) @ value).transpose(1, 2).flatten(2)
        return scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)

    def steps(self, x):
        """The outputs of a text that is read token by token."""
        self.past = None
        return torch.cat([self(x[:, place : place + 1].contiguous()) for place in range(x.shape[1])], dim=1)
