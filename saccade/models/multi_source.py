"""Multi-source translation: one text from several texts, or from texts and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, get_args

from torch import Tensor

from saccade.attention import Attention
from saccade.decoders import CopyStates, Decoder, LuongDecoder, ProjectSummary, RecurrentDecoder, SourceAttentions
from saccade.decoders.combination import CombinationName, make_combination
from saccade.encoders import EncodedSources, Encoder, JoinedSources, RecurrentEncoder, SeveralEncoders
from saccade.layers import RecurrentStack, TokenEmbedding, initialisation
from saccade.layers.choices import make_score, make_selection
from saccade.layers.recurrent import CellName
from saccade.models.base import EncoderDecoder, models
from saccade.models.sources import Sizes, all_sizes, embed_source
from saccade.models.text_encoders import make_encoder
from saccade.registry import nearest
from saccade.scores import Score
from saccade.selections import Selection

AttentionName = Literal["each", "all", "hierarchical", "none"]
EncoderName = Literal["recurrent", "convolutional", "embedding", "residual", "patches", "projected", "given"]


@models.register("multi_source")
class MultiSource(EncoderDecoder):
    r"""An encoder for each source, and a Luong decoder that starts from all of them and attends to all of them.

    .. math:: \tilde h_t = \tanh(W_c [c_t^{(1)}; \dots; c_t^{(K)}; h_t])

    The final states of the encoders are combined layer by layer: see `BasicCombination` and `ChildSumCombination`. A
    missing source has zero states and a zero context.

    Shapes:
        source (batch, length), or (batch, length, source_dim), source_mask bool (batch, length), target_in (batch,
        steps), values and mask of each further source -> features (batch, steps, hidden_dim). The paper: two sources,
        four layers of 1000 units, local-p attention to each with input feeding, dropout 0.2.

    Reference:
        Zoph & Knight (2016), arXiv:1601.00710. attention="hierarchical": Libovický & Helcl (2017), arXiv:1704.06567.

    Args:
        source_vocab, source_dim: of the first source, exactly one: the number of tokens, or the size of its vectors.
        other_sources: the same of each further source, as `{vocab: 5000}` or `{dim: 48}`.
        encoders: for each source "recurrent", "convolutional", "embedding" (no context); for pictures "residual",
            "patches", and for the vectors of a backbone "projected" or "given" (as they are). All are recurrent by
            default.
        combination: how the final states become the decoder's first: "basic" or "child_sum".
        attention: "each" concatenates the contexts of one attention per source, "hierarchical" reads them by a second
            one, "all" attends to the states of all sources together, "none" has no attention.
        score, selection: the score and selection of all attentions, each a short name or an instance.
        half_width: D, how far local attention sees on each side.
        max_source_length: the number of positions that "location" scores; it ignores those beyond.
        input_feeding: feeds the attentional vector to the next step; without it all steps are computed at once.
        bidirectional: reads sources in both directions, each with half the units; reversed: reads them backwards.
        dropout: applied to embeddings, between layers, and to features.
        paper_start: initialises all weights from U(-0.1, 0.1), for plain gradient descent.
    """

    encoder: SeveralEncoders

    def __init__(
        self,
        *,
        source_vocab: int | None = None,
        source_dim: int | None = None,
        other_sources: Sequence[Sizes] = (),
        target_vocab: int,
        embedding_dim: int = 128,
        hidden_dim: int = 256,
        num_layers: int = 2,
        encoders: list[EncoderName] | None = None,
        combination: CombinationName = "basic",
        attention: AttentionName = "each",
        score: str | Score | partial[Score] = "general",
        selection: str | Selection | partial[Selection] = "softmax",
        half_width: int = 10,
        max_source_length: int = 128,
        input_feeding: bool = True,
        cell: CellName = "lstm",
        bidirectional: bool = False,
        reversed: bool = False,
        dropout: float = 0.0,
        paper_start: bool = False,
    ) -> None:
        if attention not in get_args(AttentionName):
            raise ValueError(f"Unknown attention {attention!r}.{nearest(attention, get_args(AttentionName))}")
        if bidirectional and hidden_dim % 2:
            raise ValueError(f"bidirectional=True halves hidden_dim, which must be even, got {hidden_dim}.")
        sizes = all_sizes(source_vocab, source_dim, other_sources)
        names = encoders or ["recurrent"] * len(sizes)
        if len(names) != len(sizes):
            raise ValueError(f"encoders must name one for each of {len(sizes)} sources, got {len(names)}.")

        def recurrent(vocab: int | None = None, dim: int | None = None) -> Encoder:
            embedding = embed_source(
                vocab=vocab,
                features=dim,
                stride=1,
                dim=embedding_dim,
                positions=None,
                max_length=max_source_length,
                dropout=dropout,
            )
            return RecurrentEncoder(
                embedding=embedding,
                input_dim=embedding_dim,
                hidden_dim=hidden_dim // 2 if bidirectional else hidden_dim,
                num_layers=num_layers,
                cell=cell,
                bidirectional=bidirectional,
                reversed=reversed,
                dropout=dropout,
            )

        def other(name: Any, vocab: int | None = None, dim: int | None = None) -> Encoder:
            return make_encoder(
                name,
                vocab=vocab,
                features=dim,
                embedding_dim=embedding_dim,
                hidden_dim=hidden_dim,
                num_layers=num_layers,
                dropout=dropout,
                max_length=max_source_length,
            )

        made = [
            recurrent(**own) if name == "recurrent" else other(name, **own)
            for name, own in zip(names, sizes, strict=True)
        ]
        stack = RecurrentStack(
            input_dim=embedding_dim, hidden_dim=hidden_dim, num_layers=num_layers, cell=cell, dropout=dropout
        )
        states = {"hidden_dim": hidden_dim, "num_layers": num_layers, "num_states": stack.num_states}
        starts = [
            CopyStates()
            if isinstance(each, RecurrentEncoder)
            else ProjectSummary(summary_dim=each.summary_dim, all_states=True, bias=False, **states)
            for each in made
        ]
        parts: dict[str, Any] = {
            "embedding": TokenEmbedding(vocab_size=target_vocab, dim=embedding_dim, dropout=dropout),
            "stack": stack,
            "bridge": make_combination(combination, starts=starts, **states),
            "dropout": dropout,
        }

        def attention_to(dim: int) -> Attention:
            given = {
                "query_dim": hidden_dim,
                "key_dim": dim,
                "hidden_dim": hidden_dim,
                "max_keys": max_source_length,
                "half_width": half_width,
            }
            return Attention(score=make_score(score, **given), selection=make_selection(selection, **given))

        dims = [each.output_dim for each in made]
        decoder: Decoder
        if attention == "none":
            decoder = RecurrentDecoder(**parts)
        elif attention == "all":
            if len(set(dims)) > 1:
                raise ValueError(
                    f"attention='all' needs states of one size, but those of the sources have {dims} features: choose "
                    "other encoders, or attention='each'."
                )
            decoder = LuongDecoder(
                **parts, attention=attention_to(dims[0]), context_dim=dims[0], input_feeding=input_feeding
            )
        else:
            second = None
            if attention == "hierarchical":
                second = Attention(
                    score=make_score("additive", query_dim=hidden_dim, key_dim=hidden_dim, hidden_dim=hidden_dim)
                )
            reader = SourceAttentions(
                attentions=[attention_to(dim) for dim in dims], context_dims=dims, second=second, dim=hidden_dim
            )
            decoder = LuongDecoder(
                **parts, attention=reader, context_dim=reader.output_dim, input_feeding=input_feeding
            )
        super().__init__(encoder=SeveralEncoders(encoders=made), decoder=decoder)
        self.joined = attention == "all"
        if paper_start:
            initialisation.uniform(self, 0.1)

    def encode(self, source: Tensor, source_mask: Tensor, *others: Tensor) -> JoinedSources | EncodedSources:  # type: ignore[override]
        encoded: EncodedSources = self.encoder(source, source_mask, *others)
        return encoded.joined() if self.joined else encoded
