"""What is recorded of some eighty families of Hugging Face models is what their eager attention says.

Generation is compared with one forward pass over the whole text, which has no cache and so knows every position.
"""

import inspect
import os
import warnings

import pytest
import torch

import saccade

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when it is first imported; nothing here is fetched
pytest.importorskip("transformers", reason="the peer `transformers` is not installed")

from tests.parity.families import FAMILIES, build

BY_NAME = {family.name: family for family in FAMILIES}
FEW = (
    "GPT2",
    "Llama",
    "Bloom",
    "Bert",
    "DebertaV2",
    "Bart",
    "T5",
    "ViT",
    "Swin",
    "Wav2Vec2",
    "SpeechT5",
    "LED",
    "BigBird",
)
FEW_GENERATE = ("GPT2", "Mistral", "Gemma2", "GptOss", "Marian", "Whisper")
SUPPORTED = [family for family in FAMILIES if family.warning is None]
OTHERS = ("ConvBert", "SiglipVision")
TOKENS = 7
LEFT = torch.tensor([[5, 7, 11, 13, 17, 19, 23, 29], [0, 0, 0, 31, 37, 41, 43, 47]])
RIGHT = torch.tensor([[5, 7, 11, 13, 17, 19, 23, 29], [31, 37, 41, 43, 47, 0, 0, 0]])
TARGET = torch.tensor([[3, 8, 9, 10, 12], [3, 14, 15, 16, 18]])
CLOSE = {"rtol": 0, "atol": 1e-5}


def split(names, few):
    """All of them, those that are not among a few as slow tests."""
    return [pytest.param(name, marks=() if name in few else pytest.mark.slow) for name in names]


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def inputs_of(family, model, padded="right"):
    if family.kind == "picture":
        size = model.config.image_size
        return {"pixel_values": noise(2, 3, size, size)}
    if family.kind == "speech":
        return {"input_values": noise(2, 400)}
    if family.kind == "sounds to text":
        named = "input_features" if family.name == "Whisper" else "input_values"
        return {named: noise(2, 8, 26) if family.name == "Whisper" else noise(2, 400)}
    ids = LEFT if padded == "left" else RIGHT
    if family.name == "BigBird":
        ids = torch.arange(3, 43).view(1, 40)
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def tensors(output):
    return [value for value in output.values() if isinstance(value, torch.Tensor)]


def groups(output, trace, family):
    """The weights of each stack of layers, and the calls that should have them."""
    if family.kind not in ("seq2seq", "sounds to text"):
        return [(output.attentions, trace.calls)]
    decoder = [call for call in trace.calls if "decoder" in call.path]
    return [
        (output.encoder_attentions, [call for call in trace.calls if "decoder" not in call.path]),
        (output.decoder_attentions, [call for call in decoder if call.kind != "cross"]),
        (output.cross_attentions, [call for call in decoder if call.kind == "cross"]),
    ]


@torch.no_grad()
def forward(family, padded):
    model = build(family, family.attention)
    inputs = inputs_of(family, model, padded)
    if family.kind in ("seq2seq", "sounds to text"):
        inputs["decoder_input_ids"] = TARGET
    alone = model(**inputs)
    with saccade.record(model) as trace:
        output = model(**inputs)
    for found, expected in zip(tensors(output), tensors(alone), strict=True):
        assert torch.equal(found, expected)
    return trace, inputs


def visible(weights, inputs):
    """Rows of queries that are not padding: kinds of masks differ in what others attend."""
    mask = inputs.get("attention_mask")
    if mask is None or weights.shape[0] != mask.shape[0] or weights.shape[2] != mask.shape[1]:
        return weights
    return weights.transpose(1, 2)[mask.bool()]


@torch.no_grad()
@pytest.mark.parametrize("padded", ["right", "left"])
@pytest.mark.parametrize("name", split([family.name for family in SUPPORTED], FEW))
def test_forward(name, padded):
    family = BY_NAME[name]
    if padded == "left" and family.kind != "decoder":
        padded = "right"
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Attention that is not in the trace")
        trace, inputs = forward(family, padded)
    assert trace.missing == []
    expected = build(family, "eager")(**inputs, output_attentions=True)
    for layers, calls in groups(expected, trace, family):
        layers = [weights.flatten(0, 1) if weights.dim() == 5 else weights for weights in layers]  # blocks of queries
        if name in OTHERS:  # convolutions of the same modules, or a pooling head
            calls = [call for call in calls if call.shape[1:] == layers[0].shape[1:]][: len(layers)]
        assert len(calls) == len(layers) == 2
        for call, weights in zip(calls, layers, strict=True):
            found = call.weights
            if name == "WavLM":  # it returns the mean of the heads as each of them
                found = found.mean(1, keepdim=True).expand_as(weights)
            assert found.shape == weights.shape
            torch.testing.assert_close(visible(found, inputs), visible(weights, inputs), **CLOSE)


@torch.no_grad()
@pytest.mark.parametrize("name", split([family.name for family in FAMILIES if family.warning], FEW))
def test_what_is_not_seen_is_told(name):
    family = BY_NAME[name]
    with pytest.warns(UserWarning, match=f"Attention that is not in the trace.*{family.warning}"):
        trace, _ = forward(family, "right")
    assert trace.missing
    recorded = {call.path for call in trace.calls}
    assert not recorded & {path for path, _ in trace.missing}


def whole(family, output, inputs):
    """The weights of one forward pass over a text that was generated, by eager attention and without a cache."""
    model = build(family, "eager")
    ids = output.sequences[:, :-1]
    if family.kind in ("seq2seq", "sounds to text"):
        inputs = {name: value.repeat_interleave(len(ids) // len(value), 0) for name, value in inputs.items()}
        return model(**inputs, decoder_input_ids=ids, output_attentions=True, use_cache=False)
    prompt = inputs["attention_mask"].repeat_interleave(len(ids) // len(inputs["attention_mask"]), 0)
    mask = torch.cat([prompt, prompt.new_ones(len(ids), ids.shape[1] - prompt.shape[1])], 1)
    options = {"input_ids": ids, "attention_mask": mask, "output_attentions": True, "use_cache": False}
    if "position_ids" in inspect.signature(model.forward).parameters:
        options["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)
    return model(**options)


def generated(family, way):
    """The trace of a generation and its output; one sentence for assisted generation, two otherwise."""
    model = build(family, family.attention)
    inputs = inputs_of(family, model, "left")
    options = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False, "return_dict_in_generate": True}
    if way == "beams":
        options |= {"num_beams": 3, "num_return_sequences": 2}
    elif way == "static":
        options["cache_implementation"] = "static"
    elif way == "assisted":
        inputs = {name: value[:1] for name, value in inputs.items()}
        options["assistant_model"] = build(family, family.attention)
        with torch.no_grad():
            for parameter in options["assistant_model"].parameters():
                parameter.mul_(0.8)  # so that it is right sometimes
    with warnings.catch_warnings():
        if way != "assisted":
            warnings.filterwarnings("error", message="Attention that is not in the trace")
        alone = model.generate(**inputs, **options).sequences
        with saccade.record(model) as trace:
            output = model.generate(**inputs, **options)
    assert torch.equal(output.sequences, alone)
    return trace, output, inputs


GENERATING = [family.name for family in SUPPORTED if family.kind in ("decoder", "seq2seq", "sounds to text")]


@torch.no_grad()
@pytest.mark.parametrize("way", ["greedy", "beams", "static", "assisted"])
@pytest.mark.parametrize("name", split(GENERATING, FEW_GENERATE))
def test_generate(name, way):
    family = BY_NAME[name]
    if way in family.cannot:
        pytest.skip(f"transformers does not do this for {name}")
    if way == "assisted":
        with pytest.warns(UserWarning, match=f"{family.model} .it is not part of the model"):
            trace, output, inputs = generated(family, way)
    else:
        trace, output, inputs = generated(family, way)
    rows = output.beam_indices if way == "beams" else None
    padding = (output.sequences[:, :-1] == 0) if family.kind == "decoder" else None
    stacks = groups(whole(family, output, inputs), trace, family)
    for layers, calls in stacks if family.kind == "decoder" else stacks[1:]:
        paths = list(dict.fromkeys(call.path for call in calls))
        assert len(paths) == len(layers) == 2
        for path, weights in zip(paths, layers, strict=True):
            joined = trace.joined(path, rows=rows)
            queries, keys = weights.shape[2:]
            assert (joined[:, :, :queries, keys:] == 0).all()
            found = joined[:, :, :queries, :keys]
            if padding is not None:
                hidden = padding[:, None, :, None]
                found, weights = found.masked_fill(hidden, 0), weights.masked_fill(hidden, 0)
            torch.testing.assert_close(found, weights, **CLOSE)
