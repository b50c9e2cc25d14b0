"""Every model in small, by name."""

from saccade import selections
from saccade.encoders import ConvolutionalEncoder
from saccade.layers import TokenEmbedding
from saccade.models import (
    Cho,
    HardMonotonic,
    Kim,
    ListenAttendSpell,
    Luong,
    Multimodal,
    MultiSource,
    RNNSearch,
    SegmentToSegment,
    Sutskever,
    Transformer,
)

VOCAB = {"source_vocab": 13, "target_vocab": 11}
SMALL = {**VOCAB, "embedding_dim": 5, "hidden_dim": 8}
SPOKEN = {"embedding_dim": 5, "listener_dim": 3, "hidden_dim": 7, "sampling": 0.0}
TINY = {**VOCAB, "dim": 12, "num_heads": 2, "encoder_layers": 2, "feed_forward_dim": 17, "dropout": 0.0}

LUONG = {
    "global_location": {"score": "location"},
    "global_dot": {"score": "dot"},
    "global_general": {"score": "general"},
    "global_concat": {"score": "concat"},
    "local_m_dot": {"score": "dot", "selection": "local_m", "half_width": 1},
    "local_m_general": {"score": "general", "selection": "local_m", "half_width": 1},
    "local_p_dot": {"score": "dot", "selection": "local_p", "half_width": 1},
    "local_p_general": {"score": "general", "selection": "local_p", "half_width": 1},
}

FAMILY = {
    "cho": lambda: Cho(**SMALL, maxout_dim=7),
    "cho_low_rank": lambda: Cho(**SMALL, maxout_dim=7, output_rank=3),
    "sutskever": lambda: Sutskever(**SMALL, num_layers=2),
    **{
        f"rnnsearch_{cell}_{readout}": lambda cell=cell, readout=readout: RNNSearch(
            **SMALL, cell=cell, readout_state=readout, alignment_dim=7, maxout_dim=3
        )
        for cell in ("paper", "fast")
        for readout in ("previous", "current")
    },
    "rnnsearch_token_query": lambda: RNNSearch(**SMALL, query="state_and_token"),
    "rnnsearch_convolutional": lambda: RNNSearch(**SMALL, encoder="convolutional"),
    "rnnsearch_embedding": lambda: RNNSearch(**SMALL, encoder="embedding"),
    "rnnsearch_sparsemax": lambda: RNNSearch(**SMALL, selection=selections.Sparsemax()),
    "rnnsearch_linear_chain": lambda: RNNSearch(**SMALL, selection="linear_chain"),
    "rnnsearch_sigmoid": lambda: RNNSearch(**SMALL, selection=selections.Sigmoid(mass=2.0)),
    "rnnsearch_semi_markov": lambda: RNNSearch(**SMALL, selection=selections.SemiMarkov(longest=3)),
    "rnnsearch_monotonic": lambda: RNNSearch(**SMALL, selection="monotonic", online=True),
    "rnnsearch_mocha": lambda: RNNSearch(**SMALL, selection="mocha"),
    "rnnsearch_coverage": lambda: RNNSearch(**SMALL, score="neural_coverage"),
    "rnnsearch_location_aware": lambda: RNNSearch(**SMALL, score="location_aware"),
    "las_flat": lambda: ListenAttendSpell(**VOCAB, **SPOKEN, pyramid=()),
    "las_gru_summary": lambda: ListenAttendSpell(
        **VOCAB, **SPOKEN, pyramid=(), cell="gru", start="summary", score="location_aware"
    ),
    "exact_hard": lambda: HardMonotonic(**SMALL, order=None),
    "hard_monotonic_0": lambda: HardMonotonic(**SMALL, order=0, score="additive", cell="gru"),
    "hard_monotonic_1": lambda: HardMonotonic(**SMALL, width=3, decoder_layers=2),
    "hard_monotonic_1_online": lambda: HardMonotonic(**SMALL, width=3, online=True),
    "ssnt": lambda: SegmentToSegment(**SMALL, online=False),
    "ssnt_online": lambda: SegmentToSegment(**SMALL),
    **{
        f"luong_{name}_{'feeding' if feeding else 'parallel'}": lambda options=options, feeding=feeding: Luong(
            **SMALL, **options, num_layers=2, input_feeding=feeding
        )
        for name, options in LUONG.items()
        for feeding in (True, False)
    },
    "luong_bidirectional": lambda: Luong(**SMALL, bidirectional=True),
    "luong_reversed_gru": lambda: Luong(**SMALL, reversed=True, cell="gru"),
    "luong_short_location": lambda: Luong(**SMALL, score="location", max_source_length=3),
    "luong_convolutional": lambda: Luong(
        **SMALL, encoder=ConvolutionalEncoder(embedding=TokenEmbedding(vocab_size=13, dim=7), dim=7)
    ),
    "multi_source_each": lambda: MultiSource(**SMALL, selection="local_p", half_width=1),
    "multi_source_all": lambda: MultiSource(**SMALL, attention="all", bidirectional=True, cell="gru"),
    "multi_source_hierarchical": lambda: MultiSource(
        **SMALL, attention="hierarchical", combination="child_sum", input_feeding=False
    ),
    "multi_source_convolutional": lambda: MultiSource(**SMALL, score="location", encoders=["convolutional"]),
    "multi_source_none": lambda: MultiSource(**SMALL, attention="none"),
    "multimodal": lambda: Multimodal(**SMALL),
    "multimodal_threads": lambda: Multimodal(**SMALL, threads=True, place="tail"),
    "kim_trees": lambda: Kim(**SMALL, parser_dim=7),
    "kim_crossing_trees": lambda: Kim(**SMALL, selection=selections.NonProjectiveTree()),
    "kim_softmax": lambda: Kim(**SMALL, selection="softmax", score="concat", input_feeding=False),
    "kim_nothing": lambda: Kim(**SMALL, selection=None),
    **{
        f"transformer_{positions}_{norm}": lambda positions=positions, norm=norm: Transformer(
            **TINY, positions=positions, norm=norm, tied="none" if norm == "post" else "target"
        )
        for positions in ("sinusoidal", "learned", "rotary", "relative", "alibi")
        for norm in ("pre", "post")
    },
    "transformer_additive": lambda: Transformer(**TINY, score="additive"),
    "transformer_additive_alibi": lambda: Transformer(**TINY, score="additive", positions="alibi"),
    "transformer_sparsemax": lambda: Transformer(**TINY, selection="sparsemax"),
    "transformer_entmax15": lambda: Transformer(**TINY, selection=selections.Entmax15()),
    "transformer_trees": lambda: Transformer(**TINY, encoder_selection="projective_tree"),
    "transformer_crossing_trees": lambda: Transformer(**TINY, encoder_selection="non_projective_tree"),
    "transformer_local_m": lambda: Transformer(**TINY, selection=selections.LocalM(half_width=2)),
    "transformer_cross_windowed": lambda: Transformer(**TINY, cross_selection="windowed"),
}

ANY_MASS = ("local_p", "multi_source_each", "linear_chain", "sigmoid", "semi_markov", "rnnsearch_monotonic", "mocha")
"""Selections whose weights need not sum to one."""
