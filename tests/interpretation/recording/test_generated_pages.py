"""Pages of what `generate` wrote: every map is that of its own sentence and hypothesis."""

import pytest
import torch

import saccade
from tests.interpretation.recording.pages import Page, lively, tokeniser, transformers

TEXTS = ["the old cat sat on a red mat", "two dogs slept", "one bird sang near its door"]


def gpt2(**options):
    config = transformers.GPT2Config(
        vocab_size=24, n_embd=24, n_layer=2, n_head=3, n_positions=41, eos_token_id=1, bos_token_id=2, pad_token_id=0
    )
    return lively(transformers.GPT2LMHeadModel._from_config(config, **options))


def t5(**options):
    config = transformers.T5Config(
        vocab_size=24,
        d_model=24,
        d_kv=7,
        d_ff=31,
        num_layers=2,
        num_heads=3,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )
    return lively(transformers.T5ForConditionalGeneration._from_config(config, **options), std=0.5)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(7)


def names(tokenizer, ids):
    return tokenizer.convert_ids_to_tokens(ids)


@pytest.mark.parametrize("cached", [True, False])
def test_decoder_only_with_padded_prompts(tmp_path, cached):
    tokenizer = tokeniser("left")
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    model, eager = gpt2(attn_implementation="sdpa"), gpt2(attn_implementation="eager")
    eager.load_state_dict(model.state_dict())
    with saccade.record(model) as trace:
        output = model.generate(**batch, max_new_tokens=5, min_new_tokens=5, do_sample=False, use_cache=cached)
    for row, text in enumerate(TEXTS):
        trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=batch, generated=output, row=row)
        page = Page(tmp_path / "page.html")
        alone = output[row, batch["attention_mask"][row].argmax() :]  # without padding
        expected = names(tokenizer, alone[:-1].tolist())  # the last token is written, but never read
        assert expected[: len(text.split())] == [f"\u2581{word}" for word in text.split()]
        again = eager(input_ids=alone[None, :-1], output_attentions=True)
        for layer in range(2):
            assert page.pieces(f"transformer.h.{layer}.attn") == (expected, expected)
            found = page.weights(f"transformer.h.{layer}.attn", len(expected), len(expected))
            torch.testing.assert_close(found, again.attentions[layer][0], rtol=0, atol=2e-4)
        assert page.notes == []


def test_a_row_that_ended_early_ends_on_the_page(tmp_path):
    tokenizer = tokeniser("left")
    batch = tokenizer(TEXTS[:2], return_tensors="pt", padding=True)
    model = gpt2()
    with saccade.record(model) as trace:
        output = model.generate(**batch, max_new_tokens=6, min_new_tokens=6, do_sample=False)
    output[1, -4:] = torch.tensor([1, 0, 0, 0])  # as generate fills it
    trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=batch, generated=output, row=1)
    rows, _ = Page(tmp_path / "page.html").pieces("transformer.h.1.attn")
    assert rows == names(tokenizer, output[1, 5:-4].tolist())


@pytest.mark.parametrize("per_input", [1, 2, 3])
def test_encoder_decoder_with_beams(tmp_path, per_input):
    tokenizer = tokeniser()
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    model, eager = t5(attn_implementation="sdpa"), t5(attn_implementation="eager")
    eager.load_state_dict(model.state_dict())
    options = {**batch, "num_beams": 3, "num_return_sequences": per_input, "max_new_tokens": 7, "do_sample": False}
    with saccade.record(model) as trace:
        output = model.generate(**options, return_dict_in_generate=True)
    assert len(output.sequences) == 3 * per_input
    moved = [len(set(row[row >= 0].tolist())) > 1 for row in output.beam_indices]
    assert any(moved), "hypotheses should change their rows, otherwise this shows little"
    for row, sequence in enumerate(output.sequences):
        trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=batch, generated=output, row=row)
        page = Page(tmp_path / "page.html")
        source = TEXTS[row // per_input].split()
        ids = batch["input_ids"][row // per_input, : len(source)]
        steps = int((output.beam_indices[row] >= 0).sum())
        read, written = sequence[:steps], sequence[1 : steps + 1]
        again = eager(input_ids=ids[None], decoder_input_ids=read[None], output_attentions=True)
        source = [f"\u2581{word}" for word in source]
        for layer in range(2):
            for path, rows, columns, weights in (
                (f"encoder.block.{layer}.layer.0.SelfAttention", source, source, again.encoder_attentions),
                (f"decoder.block.{layer}.layer.0.SelfAttention", read, read, again.decoder_attentions),
                (f"decoder.block.{layer}.layer.1.EncDecAttention", written, source, again.cross_attentions),
            ):
                expected = tuple(
                    each if isinstance(each, list) else names(tokenizer, each.tolist()) for each in (rows, columns)
                )
                assert page.pieces(path) == expected
                found = page.weights(path, len(expected[0]), len(expected[1]))
                torch.testing.assert_close(found, weights[layer][0], rtol=0, atol=2e-4)


def test_beams_need_to_be_told(tmp_path):
    """A tensor does not say which row of the batch a hypothesis was in, nor that there was a beam search."""
    tokenizer = tokeniser()
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    model = t5()
    for per_input, message in ((2, "9 rows, but generated has 6 sequences"), (3, "9 sequences for 3 inputs")):
        with saccade.record(model) as trace:
            output = model.generate(**batch, num_beams=3, num_return_sequences=per_input, max_new_tokens=5)
        with pytest.raises(ValueError, match=f"{message}.*return_dict_in_generate=True"):
            trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=batch, generated=output)
        with pytest.raises(ValueError, match="return_dict_in_generate=True"):
            trace.explore(tmp_path / "page.html", tokenizer=tokenizer, generated=output)
    assert not (tmp_path / "page.html").exists()


def test_samples_show_their_own_sentence(tmp_path):
    tokenizer = tokeniser("left")
    batch = tokenizer(TEXTS[:2], return_tensors="pt", padding=True)
    model = gpt2()
    with saccade.record(model) as trace:
        output = model.generate(
            **batch,
            do_sample=True,
            num_return_sequences=3,
            max_new_tokens=4,
            min_new_tokens=4,
            return_dict_in_generate=True,
        )
    trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=batch, generated=output, row=4)
    rows, _ = Page(tmp_path / "page.html").pieces("transformer.h.0.attn")
    assert rows == names(tokenizer, output.sequences[4, 5:-1].tolist())
    assert rows[:3] == ["\u2581two", "\u2581dogs", "\u2581slept"]


def test_wrong_lengths_say_what_fits(tmp_path):
    tokenizer = tokeniser("left")
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    model = gpt2()
    with saccade.record(model) as trace:
        output = model.generate(**batch, max_new_tokens=5, min_new_tokens=5, do_sample=False)
    page = tmp_path / "page.html"
    for wrong in (output[:, :-1], torch.cat([output, output[:, :1]], 1)):
        with pytest.raises(ValueError, match=r"fit 13 \(a prompt of 8 and 5 more\), or 5 without the prompt"):
            trace.explore(page, tokenizer=tokenizer, inputs=batch, generated=wrong)
    with pytest.raises(ValueError, match="row=3, but 3 sequences"):
        trace.explore(page, tokenizer=tokenizer, inputs=batch, generated=output, row=3)
    with pytest.raises(TypeError, match="generated must be what generate returned"):
        trace.explore(page, tokenizer=tokenizer, inputs=batch, generated=["the", "cat"])
    with pytest.raises(TypeError, match="inputs must be a tokeniser's"):
        trace.explore(page, tokenizer=tokenizer, inputs="the cat", generated=output)
    with pytest.raises(TypeError, match="tokenizer must be a Hugging Face tokeniser"):
        trace.explore(page, tokenizer="gpt2", inputs=batch, generated=output)
    with pytest.raises(ValueError, match="tokenizer= needs something to name"):
        trace.explore(page, tokenizer=tokenizer)
    with pytest.raises(ValueError, match="queries= cannot be given with inputs="):
        trace.explore(page, inputs=batch, queries=["a"])
    with pytest.raises(ValueError, match="generated does not continue inputs"):
        trace.explore(page, tokenizer=tokenizer, inputs=batch, generated=output.flip(0))
    assert not page.exists()
    trace.explore(page, tokenizer=tokenizer, inputs=batch, generated=output[:, 8:])  # without the prompt
    rows, _ = Page(page).pieces("transformer.h.0.attn")
    assert rows == names(tokenizer, output[0, :-1].tolist())


def test_numbers_without_a_tokeniser_and_words_of_the_encoding(tmp_path):
    tokenizer = tokeniser()
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    config = transformers.BertConfig(
        vocab_size=24, hidden_size=24, num_hidden_layers=1, num_attention_heads=3, intermediate_size=31
    )
    model = lively(transformers.BertModel(config))
    with torch.no_grad(), saccade.record(model) as trace:
        model(**batch)
    trace.explore(tmp_path / "page.html", inputs=batch["input_ids"][:, :], row=1)
    name = "encoder.layer.0.attention.self"
    assert Page(tmp_path / "page.html").pieces(name)[0] == [str(each) for each in batch["input_ids"][1].tolist()]
    trace.explore(tmp_path / "page.html", inputs=batch, row=1)
    rows, _ = Page(tmp_path / "page.html").axes(name)
    assert rows["pieces"] == ["\u2581two", "\u2581dogs", "\u2581slept"]  # without padding
    assert rows["words"] == [[0], [1], [2]]


def test_what_is_left_out_is_on_the_page(tmp_path):
    tokenizer = tokeniser()
    batch = tokenizer(TEXTS[:1], return_tensors="pt")
    model = t5()
    target = torch.tensor([[0, 5, 6, 7]])
    with torch.no_grad(), saccade.record(model) as trace:
        model(**batch, decoder_input_ids=target)
    trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=batch)
    page = Page(tmp_path / "page.html")
    assert page.names == [f"encoder.block.{layer}.layer.0.SelfAttention" for layer in range(2)]
    assert len(page.notes) == 1
    assert "decoder.block.1.layer.1.EncDecAttention" in page.notes[0]
    assert "decoder_input_ids are not in inputs" in page.notes[0]
    trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs={**batch, "decoder_input_ids": target})
    page = Page(tmp_path / "page.html")
    assert len(page.names) == 6
    assert page.notes == []
    assert page.pieces("decoder.block.1.layer.1.EncDecAttention")[0] == names(tokenizer, target[0].tolist())
    with pytest.raises(ValueError, match="it has 8 tokens of the input, but 5 are given"):
        trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=batch["input_ids"][:, :5])


def test_tokens_are_no_names(tmp_path):
    batch = tokeniser()(TEXTS[:1], return_tensors="pt")
    model = gpt2()
    with torch.no_grad(), saccade.record(model) as trace:
        model(**batch)
    for wrong, kind in ((batch, "BatchEncoding"), (batch["input_ids"][0], "Tensor"), ("the old cat", "str")):
        with pytest.raises(TypeError, match=f"queries must be a list of names.*got {kind}: give what a tokeniser"):
            trace.explore(tmp_path / "page.html", queries=wrong)


def test_names_that_do_not_fit_are_told(tmp_path):
    batch = tokeniser()(TEXTS[:1], return_tensors="pt")
    model = t5()
    with torch.no_grad(), saccade.record(model) as trace:
        model(**batch, decoder_input_ids=torch.tensor([[0, 5, 6]]))
    trace.explore(tmp_path / "page.html", queries=[str(number) for number in range(8)])
    (note,) = Page(tmp_path / "page.html").notes
    assert "decoder.block.0.layer.1.EncDecAttention (3, 8)" in note
    assert "the 8 names of queries do not fit" in note


def mistral(**options):
    config = transformers.MistralConfig(
        vocab_size=24,
        hidden_size=24,
        intermediate_size=31,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=5,
        eos_token_id=1,
        bos_token_id=2,
        pad_token_id=0,
    )
    return lively(transformers.MistralForCausalLM._from_config(config, **options))


@pytest.mark.parametrize("beams", [1, 3])
def test_sliding_windows_stand_at_their_own_keys(tmp_path, beams):
    tokenizer = tokeniser()
    batch = tokenizer(TEXTS[2:], return_tensors="pt")
    model, eager = mistral(attn_implementation="sdpa"), mistral(attn_implementation="eager")
    eager.load_state_dict(model.state_dict())
    options = {**batch, "max_new_tokens": 9, "min_new_tokens": 9, "do_sample": False, "num_beams": beams}
    with saccade.record(model) as trace:
        output = model.generate(**options, return_dict_in_generate=True)
    trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=batch, generated=output)
    page = Page(tmp_path / "page.html")
    read = output.sequences[:1, :-1]
    again = eager(input_ids=read, output_attentions=True)
    for layer in range(2):
        name = f"model.layers.{layer}.self_attn"
        assert page.pieces(name)[1] == names(tokenizer, read[0].tolist())
        found = page.weights(name, read.shape[1], read.shape[1])
        torch.testing.assert_close(found, again.attentions[layer][0], rtol=0, atol=2e-4)
        assert (found[:, -1, :-5] == 0).all()


def test_assisted_generation(tmp_path):
    tokenizer = tokeniser()
    batch = tokenizer(TEXTS[2:], return_tensors="pt")
    model, eager = gpt2(attn_implementation="sdpa"), gpt2(attn_implementation="eager")
    eager.load_state_dict(model.state_dict())
    with pytest.warns(UserWarning, match="GPT2LMHeadModel"), saccade.record(model) as trace:
        output = model.generate(**batch, max_new_tokens=9, min_new_tokens=9, do_sample=False, assistant_model=gpt2())
    trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=batch, generated=output)
    page = Page(tmp_path / "page.html")
    again = eager(input_ids=output[:, :-1], output_attentions=True)
    assert page.pieces("transformer.h.1.attn")[0] == names(tokenizer, output[0, :-1].tolist())
    found = page.weights("transformer.h.1.attn", output.shape[1] - 1, output.shape[1] - 1)
    torch.testing.assert_close(found, again.attentions[1][0], rtol=0, atol=2e-4)


def test_two_runs_are_told_apart(tmp_path):
    tokenizer = tokeniser()
    batches = [tokenizer([text], return_tensors="pt") for text in TEXTS[:2]]
    model = gpt2()
    with saccade.record(model) as trace:
        outputs = [model.generate(**batch, max_new_tokens=4, min_new_tokens=4) for batch in batches]
    given = {"tokenizer": tokenizer, "inputs": batches[1], "generated": outputs[1]}
    with pytest.raises(ValueError, match=r"ran 2 times in the block.*from run=0 to run=1"):
        trace.explore(tmp_path / "page.html", **given)
    with pytest.raises(ValueError, match="run=2, but the model ran 2 times"):
        trace.explore(tmp_path / "page.html", **given, run=2)
    trace.explore(tmp_path / "page.html", **given, run=1)
    rows, _ = Page(tmp_path / "page.html").pieces("transformer.h.0.attn")
    assert rows == names(tokenizer, outputs[1][0, :-1].tolist())


class HiddenAttention(torch.nn.Module):
    """Weights that are normalised in a way that is not seen."""

    def forward(self, x):
        scores = (x @ x.transpose(1, 2)).exp()
        return (scores / scores.sum(-1, keepdim=True)) @ x


def test_what_was_not_recorded_is_on_the_page(tmp_path):
    model = torch.nn.Sequential(torch.nn.TransformerEncoderLayer(14, 2, 17, batch_first=True), HiddenAttention()).eval()
    with pytest.warns(UserWarning, match="not in the trace"), torch.no_grad(), saccade.record(model) as trace:
        model(torch.randn(1, 5, 14))
    trace.explore(tmp_path / "page.html")
    (note,) = Page(tmp_path / "page.html").notes
    assert note.startswith("Not recorded: 1: HiddenAttention ran")


def test_inputs_of_another_run(tmp_path):
    model, batch = t5(), tokeniser()(TEXTS, return_tensors="pt", padding=True)
    with saccade.record(model) as trace:
        output = model.generate(**batch, max_new_tokens=4, min_new_tokens=4, do_sample=False)
    with pytest.raises(ValueError, match=r"inputs do not fit the recording: encoder.* but 3 are given"):
        trace.explore(tmp_path / "page.html", inputs=batch["input_ids"][:, :3], generated=output)
    assert not (tmp_path / "page.html").exists()
