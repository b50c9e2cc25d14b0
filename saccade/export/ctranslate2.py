"""CTranslate2: Transformers for that engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from saccade.data.special import BOS, EOS, NAMES, PAD, UNK
from saccade.decoders.heads import LinearHead
from saccade.export.base import Format, formats, required
from saccade.fields import Text
from saccade.layers import TokenEmbedding
from saccade.layers.positions import LearnedPositions
from saccade.models import Transformer
from saccade.models.quantised import is_quantised
from saccade.multihead import MultiHead
from saccade.runs import Run
from saccade.scores import ScaledDotScore
from saccade.tasks import Generation

POSITIONS = 1024
"""How many sinusoidal positions are written: that engine looks them up."""
NEVER = -1e9
"""The bias of tokens that are never generated."""


@formats.register("ctranslate2")
class CTranslate2(Format):
    """A folder for `ctranslate2.Translator`, which gives the same translations.

    For Transformers from text to text with softmax over scaled inner products, and sinusoidal or learned positions.
    Beside the model are `source.json` and `target.json`, the tokenisers, which
    `saccade.data.tokenisers.Tokeniser.load` reads.
    """

    def check(self, run: Run) -> None:
        required("ctranslate2", "ctranslate2")
        check_ctranslate2(run)

    def write(self, run: Run, output: Path) -> None:
        task, model = run.task, run.model
        assert isinstance(task, Generation)
        assert isinstance(model, Transformer)
        assert isinstance(task.source, Text)
        tokenisers = {"source": task.source.tokeniser, "target": task.target.tokeniser}
        names = [each.pieces(range(each.size)) for each in tokenisers.values()]
        transformer_spec(model, *names).save(str(output))
        for name, tokeniser in tokenisers.items():
            tokeniser.save(output / f"{name}.json")


def check_ctranslate2(run: Run) -> None:
    """Raises `ValueError`, naming the part of a run that CTranslate2 does not have."""
    task, model = run.task, run.model
    if not isinstance(task, Generation) or type(model) is not Transformer:
        raise ValueError(
            f"CTranslate2 cannot run {type(model).__name__} for {type(task).__name__}: it runs Transformers that write "
            "texts. Use --format onnx."
        )
    for role, field in {"source": task.source, "target": task.target}.items():
        if not isinstance(field, Text):
            raise ValueError(f"CTranslate2 reads and writes tokens, but the {role} is {type(field).__name__}.")
    if not isinstance(model.head, LinearHead):
        raise ValueError(
            f"CTranslate2 has no {type(model.head).__name__} (model.decoder.head): it only generates words."
        )
    if is_quantised(model):
        raise ValueError(
            "The weights are already 8-bit: export the original run; CTranslate2 quantises by compute_type='int8'."
        )
    for name, part in model.named_modules():
        if not isinstance(part, MultiHead):
            continue
        attention = part.attention
        if type(attention.score) is not ScaledDotScore:
            raise ValueError(
                f"CTranslate2 has no {type(attention.score).__name__} (model.{name}): it only has scaled_dot, with "
                "sinusoidal or learned positions."
            )
        if not attention.selection.plain_softmax:
            raise ValueError(f"CTranslate2 has no {type(attention.selection).__name__} (model.{name}): it has softmax.")


def transformer_spec(model: Transformer, source: Sequence[str], target: Sequence[str]) -> Any:
    """CTranslate2's specification of the model, to be saved in a folder.

    Args:
        model: what `check_ctranslate2` accepts.
        source, target: the names of all ids, which differ from each other.
    """
    from ctranslate2.specs import TransformerSpec  # type: ignore[import-untyped]
    from ctranslate2.specs.common_spec import Activation  # type: ignore[import-untyped]

    encoder: Any = model.encoder
    decoder: Any = model.decoder
    first = encoder.layers[0]
    before, heads = first.around_attention.before, first.self_attention.num_heads
    activation = Activation.RELU if first.feed_forward.activation is F.relu else Activation.GELU
    counts = (len(encoder.layers), len(decoder.layers))
    spec = TransformerSpec.from_config(counts, heads, pre_norm=before, activation=activation)
    for part, module in ((spec.encoder, encoder), (spec.decoder, decoder)):
        tables = part.embeddings if part is spec.decoder else part.embeddings[0]
        tables.weight = _array(module.embedding.weight)
        part.scale_embeddings = module.embedding.factor != 1.0
        part.position_encodings.encodings = _array(_positions(module.embedding))
        if before:
            _norm(part.layer_norm, module.final_norm)
    for to, layer in zip(spec.encoder.layer, encoder.layers, strict=True):
        _attend(to.self_attention, layer.self_attention, layer.around_attention)
        _feed(to.ffn, layer)
    for to, layer in zip(spec.decoder.layer, decoder.layers, strict=True):
        _attend(to.self_attention, layer.self_attention, layer.around_self)
        _attend(to.attention, layer.cross_attention, layer.around_cross, across=True)
        _feed(to.ffn, layer)
    spec.decoder.projection.weight = _array(decoder.head.proj.weight)
    bias = torch.zeros(decoder.vocab_size)
    bias[[PAD, BOS]] = NEVER
    spec.decoder.projection.bias = _array(bias)
    spec.register_source_vocabulary(list(source))
    spec.register_target_vocabulary(list(target))
    config = spec.config
    config.unk_token, config.bos_token, config.eos_token = NAMES[UNK], NAMES[BOS], NAMES[EOS]
    config.decoder_start_token, config.add_source_eos = NAMES[BOS], True
    spec.validate()
    return spec


def _array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    return tensor.detach().float().cpu().contiguous().numpy()


def _positions(embedding: TokenEmbedding) -> torch.Tensor:
    positions = embedding.positions
    assert positions is not None
    count = positions.max_length if isinstance(positions, LearnedPositions) else POSITIONS
    table: torch.Tensor = positions(count, 0)
    return table


def _norm(to: Any, norm: nn.LayerNorm) -> None:
    to.gamma, to.beta = _array(norm.weight), _array(norm.bias)


def _linear(to: Any, *layers: nn.Linear) -> None:
    to.weight = _array(torch.cat([layer.weight for layer in layers]))
    to.bias = _array(torch.cat([layer.bias for layer in layers]))


def _attend(to: Any, heads: MultiHead, around: Any, *, across: bool = False) -> None:
    _norm(to.layer_norm, around.norm)
    inputs = (heads.query_proj, heads.key_proj, heads.value_proj)
    for place, parts in enumerate([inputs[:1], inputs[1:]] if across else [inputs]):
        _linear(to.linear[place], *parts)
    _linear(to.linear[-1], heads.output_proj)


def _feed(to: Any, layer: Any) -> None:
    _norm(to.layer_norm, layer.around_feed_forward.norm)
    _linear(to.linear_0, layer.feed_forward.hidden_proj)
    _linear(to.linear_1, layer.feed_forward.output_proj)
