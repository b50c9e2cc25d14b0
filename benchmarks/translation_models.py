"""Models of equal size with random weights: ours, JoeyNMT's, Hugging Face's and CTranslate2's."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from benchmarks.multi30k import VOCAB
from saccade.models import models
from saccade.models.quantised import quantisable, quantise_layers

RNN = {"embedding_dim": 256, "hidden_dim": 256, "dropout": 0.3}
TRANSFORMER = {"dim": 128, "num_heads": 4, "encoder_layers": 4, "feed_forward_dim": 512, "dropout": 0.1}
PAD, BOS, EOS = 0, 1, 2
NAMES = ["<pad>", "<s>", "</s>", "<unk>", *(f"w{i}" for i in range(4, VOCAB))]
"""The names of all ids, for CTranslate2."""


def ours(kind: str) -> Any:
    torch.manual_seed(1)
    sizes = {"source_vocab": VOCAB, "target_vocab": VOCAB}
    if kind == "int8":
        model = ours("transformer")
        return quantise_layers(model, quantisable(model))
    if kind == "rnn":
        return models.create("rnnsearch", **sizes, **RNN, cell="fast")
    return models.create("transformer", **sizes, **TRANSFORMER, tied="all")


def joeynmt_ids(ids: list[int]) -> list[int]:
    """Our ids in JoeyNMT's numbering: unknown 0, padding 1, start 2, end 3; the others are the same."""
    return [{PAD: 1, BOS: 2, EOS: 3, 3: 0}.get(i, i) for i in ids]


def joeynmt(kind: str) -> Any:
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    torch.manual_seed(1)
    special = SimpleNamespace(
        unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None, lang_tags=[],
        unk_id=0, pad_id=1, bos_id=2, eos_id=3, sep_id=None,
    )  # fmt: skip
    vocabulary = Vocabulary([f"w{i}" for i in range(VOCAB - 4)], special)
    if kind == "rnn":
        size, dropout = RNN["hidden_dim"], RNN["dropout"]
        embeddings = {"embedding_dim": RNN["embedding_dim"], "dropout": dropout}
        encoder = {
            "type": "recurrent", "rnn_type": "gru", "embeddings": embeddings, "hidden_size": size,
            "bidirectional": True, "num_layers": 1, "dropout": dropout,
        }  # fmt: skip
        decoder = {
            "type": "recurrent", "rnn_type": "gru", "embeddings": embeddings, "hidden_size": size, "num_layers": 1,
            "dropout": dropout, "hidden_dropout": dropout, "attention": "bahdanau", "input_feeding": True,
            "init_hidden": "bridge",
        }  # fmt: skip
        return build_model({"encoder": encoder, "decoder": decoder}, vocabulary, vocabulary)
    size, dropout = TRANSFORMER["dim"], TRANSFORMER["dropout"]
    part = {
        "type": "transformer", "num_layers": TRANSFORMER["encoder_layers"], "num_heads": TRANSFORMER["num_heads"],
        "embeddings": {"embedding_dim": size, "scale": True, "dropout": dropout}, "hidden_size": size,
        "ff_size": TRANSFORMER["feed_forward_dim"], "dropout": dropout, "layer_norm": "pre",
    }  # fmt: skip
    config = {"encoder": part, "decoder": part, "tied_embeddings": True, "tied_softmax": True}
    return build_model(config, vocabulary, vocabulary)


def marian() -> Any:
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(1)
    layers, heads = TRANSFORMER["encoder_layers"], TRANSFORMER["num_heads"]
    config = MarianConfig(
        vocab_size=VOCAB, decoder_vocab_size=VOCAB, d_model=TRANSFORMER["dim"], encoder_layers=layers,
        decoder_layers=layers, encoder_attention_heads=heads, decoder_attention_heads=heads,
        encoder_ffn_dim=TRANSFORMER["feed_forward_dim"], decoder_ffn_dim=TRANSFORMER["feed_forward_dim"],
        activation_function="relu", scale_embedding=True, pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS,
        decoder_start_token_id=BOS, forced_eos_token_id=None, max_position_embeddings=512,
    )  # fmt: skip
    return MarianMTModel(config).eval()


def write_ctranslate2(model: Any, to: Path) -> None:
    """Writes our Transformer's weights in CTranslate2's format."""
    from saccade.export.ctranslate2 import transformer_spec

    spec = transformer_spec(model, NAMES, NAMES)
    to.mkdir()
    spec.save(str(to))
