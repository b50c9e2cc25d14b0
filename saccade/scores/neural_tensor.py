"""Neural tensor score."""

from typing import Any

import torch
from torch import Tensor, nn

from saccade.checks import check_count
from saccade.scores.base import Prepared, Score, check_features, scores


@scores.register("neural_tensor")
class NeuralTensorScore(Score):
    r"""Combines several bilinear forms and a linear layer in one hidden layer.

    .. math:: s_{ij} = w^\top \tanh(q_i^\top W^{[1..r]} k_j + V [q_i; k_j] + b)

    r is `num_slices`; V is `query_proj` and `key_proj` concatenated, b is the bias of the latter, w is `hidden_proj`.

    Shapes:
        query (*batch, queries, query_dim), keys (*batch, keys, key_dim) -> scores (*batch, queries, keys).

    Reference:
        Socher et al. (2013), "Reasoning with neural tensor networks for knowledge base completion", equation 1; w, r
        are u_R, k.
    """

    def __init__(self, *, query_dim: int, key_dim: int, num_slices: int = 4) -> None:
        super().__init__()
        check_count("num_slices", num_slices)
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.weight = nn.Parameter(torch.empty(num_slices, query_dim, key_dim))
        self.query_proj = nn.Linear(query_dim, num_slices, bias=False)
        self.key_proj = nn.Linear(key_dim, num_slices)
        self.hidden_proj = nn.Linear(num_slices, 1, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialises each slice with Glorot and leaves the other layers at their defaults."""
        for form in self.weight:
            nn.init.xavier_uniform_(form)

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Prepared:
        check_features(keys, self.key_dim, "keys", self, "key_dim")
        return keys, self.key_proj(keys)

    def compare(self, query: Tensor, prepared: Prepared, state: Any = None) -> Tensor:
        check_features(query, self.query_dim, "query", self, "query_dim")
        keys, projected = prepared
        forms = torch.einsum("...qd,rde->...rqe", query, self.weight) @ keys.transpose(-1, -2).unsqueeze(-3)
        from_query = self.query_proj(query).transpose(-1, -2).unsqueeze(-1)
        from_keys = projected.transpose(-1, -2).unsqueeze(-2)
        hidden = (forms + from_query + from_keys).tanh()
        return torch.einsum("...rqk,r->...qk", hidden, self.hidden_proj.weight.squeeze(0))
