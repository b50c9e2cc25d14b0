"""BERT folders of the `transformers` library, with config.json, model.safetensors and a vocabulary.

The library itself is not needed. Everything in a folder is treated as data: its configuration is checked key by key,
the header of its weights is compared with the model before any tensor is read, and pickles are never opened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.artifacts import (
    ArtifactError,
    JsonObject,
    pack_tensors,
    read_header,
    read_json,
    read_tensors,
    weights_of,
    write_folder,
)
from saccade.data.tokenisers.bert_folder import read_wordpiece, wordpiece_files
from saccade.data.tokenisers.wordpiece import SPECIAL, WordPiece
from saccade.layers import TransformerEncoderLayer
from saccade.layers.limits import fewest, most_positions
from saccade.models.bert import Bert

CONFIG, WEIGHTS = "config.json", "model.safetensors"

SIZES = {
    "dim": "hidden_size",
    "num_heads": "num_attention_heads",
    "num_layers": "num_hidden_layers",
    "feed_forward_dim": "intermediate_size",
    "num_segments": "type_vocab_size",
    "max_length": "max_position_embeddings",
}
"""Arguments of our model, and their names in config.json."""

ENCODER = {
    "embedding.table.": "embeddings.word_embeddings.",
    "embedding.positions.table": "embeddings.position_embeddings.weight",
    "segments.": "embeddings.token_type_embeddings.",
    "norm.": "embeddings.LayerNorm.",
    "pooler.": "pooler.dense.",
    "self_attention.query_proj.": "attention.self.query.",
    "self_attention.key_proj.": "attention.self.key.",
    "self_attention.value_proj.": "attention.self.value.",
    "self_attention.output_proj.": "attention.output.dense.",
    "around_attention.norm.": "attention.output.LayerNorm.",
    "feed_forward.hidden_proj.": "intermediate.dense.",
    "feed_forward.output_proj.": "output.dense.",
    "around_feed_forward.norm.": "output.LayerNorm.",
}
"""How names of our weights begin, after the number of the layer, and how theirs do."""

HEADS = {
    "masked.proj.": "cls.predictions.transform.dense.",
    "masked.norm.": "cls.predictions.transform.LayerNorm.",
    "masked.bias": "cls.predictions.bias",
    "next_sentence.": "cls.seq_relationship.",
    "classifier.": "classifier.",
}
OURS = "reader."
"""How names of weights begin for which that library has no place: pooling by attention."""

OPTIONAL = ("pooler.", OURS, *HEADS)
"""Weights that a folder may lack."""

CLASSES = {
    "label": "BertForSequenceClassification",
    "tokens": "BertForTokenClassification",
    "span": "BertForQuestionAnswering",
    "pretraining": "BertForPreTraining",
    "none": "BertModel",
}
"""Their class for each head of ours."""


class PretrainedBert(NamedTuple):
    """A model with its tokeniser."""

    model: Bert
    tokeniser: WordPiece

    def encode(self, texts: Sequence[str], *, max_length: int | None = None) -> Tensor:
        """(texts, dim): each text as one vector; long texts are truncated, by default to the model's maximum length."""
        cls, sep = (self.tokeniser.special(name) for name in ("[CLS]", "[SEP]"))
        read = most_positions(self.model) if self.model.window is None else None
        most = fewest([max_length, read])
        kept = slice(None if most is None else most - 2)
        return self.model.vectors([[cls, *ids[kept], sep] for ids in self.tokeniser.encode_all(texts)])


def is_folder(folder: str | os.PathLike[str]) -> bool:
    """Whether this is a folder of that kind, judged by its configuration."""
    return (Path(folder) / CONFIG).is_file()


def load(folder: str | os.PathLike[str], **arguments: Any) -> PretrainedBert:
    """Loads the BERT in a folder, in evaluation mode.

    Args:
        folder: what `save_pretrained` wrote.
        arguments: those of `Bert` that a folder leaves open, such as `pooling="mean"`, or `head="label", classes=3`.
            By default there is no head. Parts that the folder lacks keep their initial weights.
    """
    path = Path(folder)
    sizes, tokeniser = read_arguments(path), read_wordpiece(path)
    given = {"vocab": tokeniser.size, "head": "none", **sizes, **arguments}
    with torch.device("meta"):
        outline = Bert(**given)
    weights = read_weights(path, outline)  # before anything of that size is allocated
    model = Bert(**given)
    own = weights_of(model)
    for name, tensor in weights.items():
        own[name].copy_(tensor)
    return PretrainedBert(model.eval(), tokeniser)


def read_arguments(folder: Path) -> dict[str, Any]:
    """The arguments of `Bert` that config.json decides."""
    found = JsonObject(read_json(folder / CONFIG), str(folder / CONFIG))
    for key, usual in (("model_type", "bert"), ("position_embedding_type", "absolute"), ("is_decoder", False)):
        value = found.values.get(key, usual)
        if value != usual:
            raise ArtifactError(f"{found.where}: Saccade reads folders with {key} {usual!r} only, not {value!r:.40}.")
    sizes: dict[str, Any] = {ours: found.take(theirs, int, least=1, most=2**20) for ours, theirs in SIZES.items()}
    if sizes["dim"] % sizes["num_heads"]:
        raise found.wrong("num_attention_heads", f"does not divide hidden_size={sizes['dim']}")
    if sizes["num_layers"] > 1024:
        raise found.wrong("num_hidden_layers", f"is {sizes['num_layers']:,}, more than 1,024")
    activation = found.take("hidden_act", str)
    if activation not in ("gelu", "relu"):
        raise found.wrong("hidden_act", f"is {activation[:40]!r}, not gelu or relu")
    return {**sizes, "activation": activation, "epsilon": found.take("layer_norm_eps", float, least=0.0, most=1.0)}


def read_weights(folder: Path, outline: Bert) -> dict[str, Tensor]:
    """The weights of a folder under our names, in float32.

    Args:
        folder: the folder.
        outline: the model that they are for, perhaps on the meta device. All of its encoder must be in the folder; a
            pooler or a head is read if it is there and fits.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        pickles = any((folder / name).exists() for name in ("pytorch_model.bin", "tf_model.h5", "flax_model.msgpack"))
        parts = (folder / f"{WEIGHTS}.index.json").exists()
        why = " It has weights of another kind," if pickles else " They are in several files," if parts else ""
        fix = f"{why} which Saccade does not read: save them as one safetensors file." if why else ""
        raise ArtifactError(f"{folder} has no {WEIGHTS}.{fix}")
    header = read_header(path)
    wanted = {}
    for name, tensor in weights_of(outline).items():
        theirs = next((spelling for spelling in _spellings(name) if spelling in header), None)
        fits = theirs is not None and header[theirs][0] == tuple(tensor.shape) and header[theirs][1].is_floating_point
        if theirs is not None and fits:
            wanted[name] = theirs
        elif not name.startswith(OPTIONAL):
            found = "is missing" if theirs is None else f"is {header[theirs][1]} of shape {header[theirs][0]}"
            asked = f"{CONFIG} and the vocabulary ask for floating point of shape {tuple(tensor.shape)}"
            raise ArtifactError(f"{path}: {theirs or _spellings(name)[0]} {found}, and {asked}.")
    tensors = read_tensors(path)
    weights = {name: tensors[theirs].to(torch.float32) for name, theirs in wanted.items()}
    for name, tensor in weights.items():
        if not bool(tensor.isfinite().all()):
            raise ArtifactError(f"{path} is damaged: {wanted[name]} contains NaN or infinite values.")
    return weights


def save(
    folder: str | os.PathLike[str], model: Bert, tokeniser: WordPiece, *, labels: Sequence[str] | None = None
) -> Path:
    """Writes a folder that the `transformers` library loads, and returns its path.

    Args:
        folder: the folder to create.
        model: with softmax over scaled inner products. Its head is written too, unless it classifies a mean of the
            states, for which that library has no class.
        tokeniser: that of the model.
        labels: the names of the classes, if there is one for each output.
    """
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} already exists: choose another folder.")
    return write_folder(path, files_of(model, tokeniser, labels=labels))


def files_of(model: Bert, tokeniser: WordPiece, *, labels: Sequence[str] | None = None) -> dict[str, bytes]:
    """The content of each file of such a folder; for the arguments see `save`."""
    check_savable(model)
    head = "none" if model.head == "label" and model.pooler is None else model.head
    settings = _settings(model, tokeniser, CLASSES[head])
    if labels is not None and model.classifier is not None and len(labels) == model.classifier.out_features:
        settings |= {"id2label": dict(enumerate(labels)), "label2id": {name: n for n, name in enumerate(labels)}}
    tensors = {}
    for name, tensor in weights_of(model).items():
        own = name.startswith(tuple(HEADS))
        if (not own or head != "none") and not name.startswith(OURS):
            theirs = _renamed(name).replace("classifier.", "qa_outputs." if head == "span" else "classifier.")
            tensors[theirs if own or head == "none" else f"bert.{theirs}"] = tensor
    files = {CONFIG: (json.dumps(settings, indent=2) + "\n").encode(), WEIGHTS: pack_tensors(tensors)}
    return {**files, **wordpiece_files(tokeniser, settings["max_position_embeddings"])}


def check_savable(model: Bert) -> None:
    """Raises `ValueError` if the `transformers` library's BERT cannot compute what the model computes."""
    for layer in model.layers:
        assert isinstance(layer, TransformerEncoderLayer)
        heads, attention = layer.self_attention, layer.self_attention.attention
        dim = heads.query_dim // heads.num_heads
        scaled = attention.score.inner_product_scale(dim) == dim**-0.5
        if not scaled or not attention.selection.plain_softmax or not attention.aggregation.weighted_sum:
            raise ValueError(
                f"{type(attention.selection).__name__} over {type(attention.score).__name__} cannot be saved in this "
                "form, only Softmax over ScaledDotScore: that library's BERT has no other."
            )


def _settings(model: Bert, tokeniser: WordPiece, architecture: str) -> dict[str, Any]:
    """The content of config.json."""
    layer = model.layers[0]
    assert isinstance(layer, TransformerEncoderLayer)
    heads, inner = layer.self_attention, layer.feed_forward
    return {
        "architectures": [architecture],
        "model_type": "bert",
        "vocab_size": tokeniser.size,
        "hidden_size": heads.query_dim,
        "num_attention_heads": heads.num_heads,
        "num_hidden_layers": len(model.layers),
        "intermediate_size": inner.hidden_proj.out_features,
        "hidden_act": "gelu" if inner.activation is F.gelu else "relu",
        "type_vocab_size": model.segments.num_embeddings,
        "max_position_embeddings": most_positions(model),
        "layer_norm_eps": model.norm.eps,
        "hidden_dropout_prob": model.dropout,
        "attention_probs_dropout_prob": heads.attention.dropout,
        "initializer_range": 0.02,
        "pad_token_id": tokeniser.special(SPECIAL[0]),
        "position_embedding_type": "absolute",
    }


def _renamed(name: str) -> str:
    """The library's name of a weight of ours, in a model without a head."""
    place = ""
    if name.startswith("layers."):
        _, number, name = name.split(".", 2)
        place = f"encoder.layer.{number}."
    ours, theirs = next(pair for pair in (ENCODER | HEADS).items() if name.startswith(pair[0]))
    return place + theirs + name.removeprefix(ours)


def _spellings(name: str) -> list[str]:
    """What a weight of ours may be called in a folder, the usual name first."""
    if name.startswith(OURS):
        return []
    usual = _renamed(name)
    names = [usual, f"bert.{usual}", usual.replace("classifier.", "qa_outputs.")]
    old = [
        each.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        for each in names
    ]
    return [*names, *old]
