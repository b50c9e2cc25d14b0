"""One factory per registered member, and what is declared about it.

A member that is registered without a factory here fails `test_registered.py` by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from saccade import Attention, MultiHead
from saccade.aggregations import Aggregation, aggregations
from saccade.distributions import Distribution
from saccade.history import ConvolvedWeights, Coverage, NeuralCoverage
from saccade.scores import Score, scores
from saccade.selections import Selection, selections


def registered(name: str) -> str:
    """The member of a factory: `local_p(renormalised)` is one more way to build `local_p`."""
    return name.partition("(")[0]


def covered(registry: Any, factories: dict[str, Any]) -> list[str]:
    """The members that the contracts are about; those of self-attention alone have contracts of their own."""
    return [
        name
        for name, member in factories.items()
        if registered(name) in registry.names()
        and not getattr(member, "self_attention", False)
        and not getattr(member, "joint", False)
    ]


@dataclass(frozen=True)
class Sizes:
    """Distinct primes, so that no two axes can be confused."""

    batch: tuple[int, ...] = (2,)
    queries: int = 3
    query_dim: int = 5
    key_dim: int = 7
    value_dim: int = 11
    keys: int = 13
    hidden_dim: int = 17
    heads: int = 1

    @property
    def rows(self) -> tuple[int, ...]:
        return (*self.batch, self.queries)

    @property
    def weights(self) -> tuple[int, ...]:
        return (*self.rows, self.keys)


SIZES = Sizes()
SMALL = Sizes(batch=(), queries=2, query_dim=2, key_dim=3, value_dim=2, keys=5, hidden_dim=2)
"""For gradcheck, whose cost grows with the number of inputs."""


@dataclass(frozen=True)
class ScoreMember:
    build: Callable[[Sizes], Score]
    same_dim: bool = False
    """Whether queries and keys must have the same size."""
    by_position: bool = False
    """Whether scores depend on where a query stands among the queries, so that one query alone is another question."""
    selection: Callable[[Sizes], Selection] | None = None
    """The selection that goes with it, if not the default one."""
    any_query: bool = False
    any_key: bool = False
    """Whether queries, or keys, of any size are taken."""

    def sizes(self, sizes: Sizes) -> Sizes:
        return replace(sizes, query_dim=sizes.key_dim) if self.same_dim else sizes


@dataclass(frozen=True)
class SelectionMember:
    build: Callable[[Sizes], Selection]
    mass: str = "one"
    """'one'; 'one or none'; 'at most one'; 'any': up to the number of keys. Rows without keys always have none."""
    positional: bool = False
    """Whether weights depend on where keys stand, so that only keys at the end can be removed without a trace."""
    differentiable: bool = True
    """Whether the marginals are a smooth function of the scores, up to kinks."""
    draws: bool = False
    """Whether the context is read from a draw, so that its gradient is none or an estimator's."""
    self_attention: bool = False
    """Whether it needs as many queries as keys, all of them at once (tests/contracts/test_self_attention.py)."""
    joint: bool = False
    """Whether all queries are one structure, so that one alone is another question (tests/selections/)."""

    def sizes(self, sizes: Sizes) -> Sizes:
        return sizes


@dataclass(frozen=True)
class AggregationMember:
    build: Callable[[Sizes], Aggregation]
    score: str = "additive"
    differentiable: bool = True
    """Whether the context is a smooth function of the weights."""
    one_context: bool = False
    """Whether all queries together read one context."""
    token_ids: int | None = None
    """How many token ids there are, if the values are such."""
    self_attention: bool = False
    """Whether it needs as many queries as keys (tests/contracts/test_self_attention.py)."""

    @property
    def works_in_heads(self) -> bool:
        return self.token_ids is None

    def sizes(self, sizes: Sizes) -> Sizes:
        sizes = SCORES[self.score].sizes(sizes)
        return sizes if self.token_ids is None else replace(sizes, value_dim=1)


def sized(name: str, **arguments: Any) -> Callable[[Sizes], Score]:
    """A factory of the score that takes query_dim and key_dim from the sizes, and the rest from here."""
    return lambda sizes: scores.create(name, query_dim=sizes.query_dim, key_dim=sizes.key_dim, **arguments)


def hidden(name: str, **arguments: Any) -> Callable[[Sizes], Score]:
    """The same for scores with a hidden layer."""
    return lambda sizes: sized(name, hidden_dim=sizes.hidden_dim, **arguments)(sizes)


def history(sizes: Sizes) -> Score:
    features = [
        Coverage(),
        ConvolvedWeights(num_filters=3, width=5),
        NeuralCoverage(query_dim=sizes.query_dim, key_dim=sizes.key_dim, feature_dim=3),
    ]
    return hidden("history", features=features)(sizes)


def per_head(name: str, **arguments: Any) -> Callable[[Sizes], Score]:
    return lambda sizes: scores.create(name, num_heads=sizes.heads, **arguments)


def sum_of_scores(sizes: Sizes) -> Score:
    return scores.create("sum", scores=[scores.create("scaled_dot"), SCORES["additive"].build(sizes)])


def sum_with_positions(sizes: Sizes) -> Score:
    positions = scores.create("alibi", num_heads=sizes.heads)
    return scores.create("sum", scores=[scores.create("scaled_dot"), positions])


def sum_with_history(sizes: Sizes) -> Score:
    positions = scores.create("learned_relative_bias", max_distance=3, num_heads=sizes.heads)
    return scores.create("sum", scores=[SCORES["coverage"].build(sizes), positions])


SCORES: dict[str, ScoreMember] = {
    "activated_general": ScoreMember(sized("activated_general")),
    "additive": ScoreMember(hidden("additive")),
    "additive(bias)": ScoreMember(hidden("additive", bias=True)),
    "additive(activation)": ScoreMember(hidden("additive", activation=nn.Tanh())),
    "alibi": ScoreMember(per_head("alibi"), by_position=True, any_query=True, any_key=True),
    "biaffine": ScoreMember(sized("biaffine")),
    "biased_general": ScoreMember(sized("biased_general")),
    "bilinear": ScoreMember(sized("bilinear")),
    "cohn": ScoreMember(hidden("cohn")),
    "concat": ScoreMember(hidden("concat")),
    "convolutional": ScoreMember(hidden("convolutional", widths=(3, 5, 2))),
    "cosine": ScoreMember(lambda sizes: scores.create("cosine"), same_dim=True),
    "coverage": ScoreMember(hidden("coverage")),
    "coverage_embedding": ScoreMember(hidden("coverage_embedding", feature_dim=3)),
    "coverage_embedding(subtraction)": ScoreMember(hidden("coverage_embedding", feature_dim=3, update="subtraction")),
    "dot": ScoreMember(lambda sizes: scores.create("dot"), same_dim=True),
    "feature_wise": ScoreMember(lambda sizes: hidden("feature_wise", num_channels=sizes.value_dim)(sizes)),
    "gat": ScoreMember(lambda sizes: scores.create("gat", dim=sizes.key_dim, num_heads=sizes.heads), same_dim=True),
    "gatv2": ScoreMember(lambda sizes: scores.create("gatv2", dim=sizes.key_dim, num_heads=sizes.heads), same_dim=True),
    "history": ScoreMember(history),
    "kernel": ScoreMember(lambda sizes: scores.create("kernel"), same_dim=True),
    "learned_relative_bias": ScoreMember(
        per_head("learned_relative_bias", max_distance=3), by_position=True, any_query=True, any_key=True
    ),
    "linguistic_coverage": ScoreMember(hidden("linguistic_coverage")),
    "location": ScoreMember(
        lambda sizes: scores.create("location", query_dim=sizes.query_dim, max_keys=31), any_key=True
    ),
    "location_aware": ScoreMember(hidden("location_aware", num_filters=3, width=5)),
    "low_rank_bilinear": ScoreMember(sized("low_rank_bilinear", rank=3)),
    "mlp": ScoreMember(hidden("mlp", num_layers=3)),
    "mlp_dot": ScoreMember(hidden("mlp_dot")),
    "monotonic_energy": ScoreMember(hidden("monotonic_energy")),
    "negative_distance": ScoreMember(lambda sizes: scores.create("negative_distance", bandwidth=1.7), same_dim=True),
    "neural_coverage": ScoreMember(hidden("neural_coverage", feature_dim=3)),
    "neural_tensor": ScoreMember(sized("neural_tensor", num_slices=3)),
    "ntm_content": ScoreMember(sized("ntm_content"), same_dim=True),
    "query_free(linear)": ScoreMember(lambda sizes: scores.create("query_free", key_dim=sizes.key_dim), any_query=True),
    "query_free": ScoreMember(
        lambda sizes: scores.create("query_free", key_dim=sizes.key_dim, hidden_dim=sizes.hidden_dim), any_query=True
    ),
    "rbf_kernel": ScoreMember(lambda sizes: scores.create("rbf_kernel", bandwidth=1.7), same_dim=True),
    "rotary": ScoreMember(lambda sizes: scores.create("rotary", dim=2), same_dim=True, by_position=True),
    "scaled_dot": ScoreMember(lambda sizes: scores.create("scaled_dot"), same_dim=True),
    "sum": ScoreMember(sum_of_scores, same_dim=True),
    "sum(positions)": ScoreMember(sum_with_positions, same_dim=True, by_position=True),
    "sum(history)": ScoreMember(sum_with_history, by_position=True),
    "t5_relative_bias": ScoreMember(
        per_head("t5_relative_bias", num_buckets=8, max_distance=11), by_position=True, any_query=True, any_key=True
    ),
}


def plain(name: str, **arguments: Any) -> Callable[[Sizes], Selection]:
    return lambda sizes: selections.create(name, **arguments)


def from_query(name: str, **arguments: Any) -> Callable[[Sizes], Selection]:
    return lambda sizes: selections.create(name, query_dim=sizes.query_dim, **arguments)


def mocha(sizes: Sizes) -> Selection:
    return selections.create(
        "mocha", width=3, chunk_score=SCORES["bilinear"].build(sizes), noise=0.0, hard_at_eval=False, learn_offset=True
    )


SELECTIONS: dict[str, SelectionMember] = {
    "binary_concrete": SelectionMember(plain("binary_concrete", temperature=0.7), mass="any", draws=True),
    "binary_concrete(straight through)": SelectionMember(
        plain("binary_concrete", straight_through=True), mass="any", draws=True
    ),
    "binary_concrete(share)": SelectionMember(
        plain("binary_concrete", straight_through=True, share=0.4), mass="any", draws=True
    ),
    "continuous_softmax": SelectionMember(plain("continuous_softmax", num_basis=16), mass="at most one"),
    "continuous_softmax(query)": SelectionMember(from_query("continuous_softmax", num_basis=16), mass="at most one"),
    "continuous_sparsemax": SelectionMember(plain("continuous_sparsemax", num_basis=16), mass="at most one"),
    "continuous_sparsemax(query)": SelectionMember(
        from_query("continuous_sparsemax", num_basis=16), mass="at most one"
    ),
    "entmax": SelectionMember(plain("entmax", alpha=1.3, learn_alpha=False)),
    "entmax(learned)": SelectionMember(plain("entmax", alpha=1.7)),
    "entmax15": SelectionMember(plain("entmax15")),
    "fusedmax": SelectionMember(plain("fusedmax", strength=0.2)),
    "gumbel_softmax": SelectionMember(plain("gumbel_softmax"), draws=True),
    "gumbel_softmax(straight through)": SelectionMember(plain("gumbel_softmax", straight_through=True), draws=True),
    "hard": SelectionMember(plain("hard", temperature=0.7), draws=True),
    "hard(expectation)": SelectionMember(plain("hard", evaluate_with="expectation")),
    "k_subset": SelectionMember(plain("k_subset", k=3), mass="any"),
    "linear_chain": SelectionMember(plain("linear_chain"), mass="any"),
    "local_m": SelectionMember(plain("local_m", half_width=2)),
    "local_p": SelectionMember(from_query("local_p", half_width=2), mass="at most one"),
    "local_p(renormalised)": SelectionMember(from_query("local_p", half_width=2, renormalize=True)),
    "mocha": SelectionMember(mocha, mass="at most one"),
    "mocha(hard)": SelectionMember(plain("mocha", width=3), mass="at most one", differentiable=False),
    "monotonic": SelectionMember(
        plain("monotonic", noise=0.0, hard_at_eval=False, learn_offset=True), mass="at most one"
    ),
    "monotonic(hard)": SelectionMember(plain("monotonic"), mass="at most one", differentiable=False),
    "non_projective_tree": SelectionMember(plain("non_projective_tree"), self_attention=True),
    "non_projective_tree(roots)": SelectionMember(plain("non_projective_tree", single_root=False), self_attention=True),
    "normalized_sigmoid": SelectionMember(plain("normalized_sigmoid")),
    "ntm_addressing": SelectionMember(from_query("ntm_addressing")),
    "projective_tree": SelectionMember(plain("projective_tree"), self_attention=True),
    "projective_tree(roots)": SelectionMember(plain("projective_tree", single_root=False), self_attention=True),
    "relu_normalized": SelectionMember(plain("relu_normalized"), mass="one or none"),
    "semi_markov": SelectionMember(plain("semi_markov", longest=3), mass="any"),
    "sigmoid": SelectionMember(plain("sigmoid", temperature=0.7), mass="any"),
    "softmax": SelectionMember(plain("softmax")),
    "softmax(temperature)": SelectionMember(plain("softmax", temperature=0.7, learn_temperature=True)),
    "sparsemax": SelectionMember(plain("sparsemax")),
    "step_chain": SelectionMember(
        lambda sizes: selections.create("step_chain", following=scores.create("scaled_dot")), joint=True
    ),
    "top_k": SelectionMember(plain("top_k", k=3)),
    "windowed": SelectionMember(plain("windowed", half_width=2, inverse_temperature=1.3)),
}

AGGREGATIONS: dict[str, AggregationMember] = {
    "attention_over_attention": AggregationMember(
        lambda sizes: aggregations.create("attention_over_attention"), one_context=True
    ),
    "concat_picks": AggregationMember(lambda sizes: aggregations.create("concat_picks", k=3)),
    "copy": AggregationMember(lambda sizes: aggregations.create("copy", vocab_size=19, extra_ids=4), token_ids=23),
    "expectation": AggregationMember(lambda sizes: aggregations.create("expectation")),
    "feature_wise": AggregationMember(lambda sizes: aggregations.create("feature_wise"), score="feature_wise"),
    "gated": AggregationMember(
        lambda sizes: aggregations.create("gated", query_dim=sizes.query_dim, value_dim=sizes.value_dim)
    ),
    "log_sum_exp": AggregationMember(lambda sizes: aggregations.create("log_sum_exp", sharpness=1.7)),
    "max_pool": AggregationMember(lambda sizes: aggregations.create("max_pool")),
    "pairwise": AggregationMember(
        lambda sizes: aggregations.create("pairwise", value_dim=sizes.value_dim, output_dim=29)
    ),
    "renormalized_mean": AggregationMember(lambda sizes: aggregations.create("renormalized_mean", scale=2.0)),
    "sample": AggregationMember(lambda sizes: aggregations.create("sample"), differentiable=False),
    "soft_children": AggregationMember(lambda sizes: aggregations.create("soft_children"), self_attention=True),
    "sum": AggregationMember(lambda sizes: aggregations.create("sum")),
    "top_k_mean": AggregationMember(lambda sizes: aggregations.create("top_k_mean", k=3)),
}


@dataclass(frozen=True)
class Inputs:
    query: Tensor
    keys: Tensor
    values: Tensor
    mask: Tensor

    def to(self, dtype: torch.dtype) -> Inputs:
        values = self.values.to(dtype) if self.values.is_floating_point() else self.values
        return Inputs(self.query.to(dtype), self.keys.to(dtype), values, self.mask)


def inputs(sizes: Sizes = SIZES, *, dtype: torch.dtype = torch.float64, seed: int = 0) -> Inputs:
    """Queries, keys and values, and a suffix mask (*batch, 1, keys) that leaves each row at least two keys."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    lengths = torch.randint(2, max(sizes.keys, 3), sizes.batch, generator=generator)
    return Inputs(
        query=random(*sizes.rows, sizes.query_dim),
        keys=random(*sizes.batch, sizes.keys, sizes.key_dim),
        values=random(*sizes.batch, sizes.keys, sizes.value_dim),
        mask=torch.arange(sizes.keys) < lengths[..., None, None],
    )


def build(member: Any, sizes: Sizes = SIZES, *, dtype: torch.dtype = torch.float64, seed: int = 0) -> Any:
    """A member in evaluation mode, its parameters random but the same for the same seed, none of them zero."""
    torch.manual_seed(seed)
    module = member.build(member.sizes(sizes))
    return randomise(module, seed).to(dtype).eval()


def randomise(module: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """Moves every parameter a little, so that biases that begin at zero take part."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return module


def select(
    selection: Selection,
    scores: Tensor,
    mask: Tensor | None = None,
    *,
    query: Tensor | None = None,
    keys: Tensor | None = None,
    state: Any = None,
) -> Distribution:
    """A selection as `Attention` calls it, for scores (*batch, queries, keys)."""
    sizes = SIZES
    if query is None:
        query = torch.linspace(-1, 1, sizes.query_dim, dtype=scores.dtype).expand(*scores.shape[:-1], -1)
    if keys is None:
        keys = scores.new_zeros(*scores.shape[:-2], scores.shape[-1], sizes.key_dim)
    over_keys = None
    if mask is not None and mask.dim() >= 2 and mask.shape[-2] == 1:
        over_keys = mask.squeeze(-2)
    prepared = selection.prepare(keys, mask=over_keys)
    return selection(scores, mask, query=query, prepared=prepared, state=state)


@dataclass(frozen=True)
class Assembly:
    """An attention in which one part is the member under test."""

    kind: str
    name: str

    @property
    def member(self) -> Any:
        return {"score": SCORES, "selection": SELECTIONS, "aggregation": AGGREGATIONS}[self.kind][self.name]

    def sizes(self, sizes: Sizes = SIZES) -> Sizes:
        return self.member.sizes(sizes)

    def attention(self, sizes: Sizes = SIZES, *, dtype: torch.dtype = torch.float64) -> Attention:
        """The attention; `sizes` are those of `self.sizes`."""
        torch.manual_seed(0)
        if self.kind == "score":
            wanted = self.member.selection
            attention = Attention(score=self.member.build(sizes), selection=None if wanted is None else wanted(sizes))
        elif self.kind == "selection":
            attention = Attention(score=SCORES["additive"].build(sizes), selection=self.member.build(sizes))
        else:
            attention = Attention(score=SCORES[self.member.score].build(sizes), aggregation=self.member.build(sizes))
        return randomise(attention).to(dtype).eval()

    def inputs(self, sizes: Sizes = SIZES, *, dtype: torch.dtype = torch.float64, seed: int = 0) -> Inputs:
        made = inputs(sizes, dtype=dtype, seed=seed)
        ids = getattr(self.member, "token_ids", None)
        if ids is not None:
            generator = torch.Generator().manual_seed(seed)
            made = replace(made, values=torch.randint(ids, made.values.shape, generator=generator))
        return made

    def contexts(self, queries: int) -> int:
        """How many contexts so many queries read."""
        return 1 if getattr(self.member, "one_context", False) else queries

    @property
    def differentiable(self) -> bool:
        """Whether the gradient is that of the reading, not an estimator's."""
        return getattr(self.member, "differentiable", True) and not getattr(self.member, "draws", False)

    @property
    def works_in_heads(self) -> bool:
        return getattr(self.member, "works_in_heads", True)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ASSEMBLIES = [
    Assembly(kind, name)
    for kind, registry, factories in (
        ("score", scores, SCORES),
        ("selection", selections, SELECTIONS),
        ("aggregation", aggregations, AGGREGATIONS),
    )
    for name in covered(registry, factories)
]


def multihead(assembly: Assembly, sizes: Sizes, *, dtype: torch.dtype = torch.float64, **arguments: Any) -> MultiHead:
    """The assembly's attention in three heads, built for the sizes of a head."""
    head = assembly.sizes(replace(sizes, query_dim=19, key_dim=19, value_dim=23, heads=3))
    attention = assembly.attention(head)
    module = MultiHead(
        attention=attention,
        num_heads=3,
        query_dim=sizes.query_dim,
        key_dim=sizes.key_dim,
        value_dim=sizes.value_dim,
        output_dim=29,
        head_dim=19,
        value_head_dim=23,
        **arguments,
    )
    return randomise(module).to(dtype).eval()
