"""GPT-2 folders against the `transformers` library: logits, tokens, generation; and hostile folders."""

import json
import shutil

import pytest
import torch

import saccade
from saccade import gpt2
from saccade.artifacts import ArtifactError
from saccade.data.special import BOS

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

TEXTS = ["the cat sees the dog.\n\nthe dog sees the cat, too!", "  It's 3.14 naïve — 日本語", "the the  the"]
SIZES = {"n_embd": 24, "n_head": 3, "n_layer": 2, "n_positions": 40}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A small random GPT-2 with a tokeniser of its own, as that library saves them."""
    folder = tmp_path_factory.mktemp("gpt2")
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(TEXTS * 5, vocab_size=290, special_tokens=["<|endoftext|>"], show_progress=False)
    trained.save_model(str(folder))
    theirs = transformers.GPT2Tokenizer.from_pretrained(str(folder))
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=len(theirs), bos_token_id=0, eos_token_id=0, **SIZES)
    model = transformers.GPT2LMHeadModel(config).eval()
    for parameter in model.parameters():  # biases and gains that differ
        parameter.data.normal_(std=0.3)
    model.save_pretrained(folder)
    theirs.save_pretrained(folder)
    return folder, model, theirs


def test_the_logits_are_those_of_transformers(saved) -> None:
    folder, model, tokeniser = saved
    ours = gpt2.load(folder)
    for text in TEXTS:
        wanted = tokeniser.encode(text)
        ids = ours.tokeniser.encode(text)
        assert ours.ids[ids].tolist() == wanted
        assert ours.tokeniser.decode(ids) == text
        with torch.no_grad():
            theirs = model(torch.tensor([[0, *wanted]])).logits[0]
            tokens = torch.tensor([[BOS, *ids]])
            found = ours.model.head.logits(ours.model(tokens, tokens > 0))[0]
        known = [number for number, each in enumerate(ours.ids.tolist()) if each >= 0 and number != BOS]
        assert sorted(ours.ids[known].tolist()) == list(range(len(tokeniser)))
        torch.testing.assert_close(found[:, known], theirs[:, ours.ids[known]], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(
            found.log_softmax(-1)[:, known], theirs.log_softmax(-1)[:, ours.ids[known]], rtol=1e-4, atol=1e-4
        )


def test_a_vocabulary_in_tokenizer_json_and_a_model_without_a_head(saved, tmp_path) -> None:
    folder, model, _ = saved
    model.transformer.save_pretrained(tmp_path)
    merges = [line.split(" ") for line in (folder / "merges.txt").read_text().splitlines()[1:] if line]
    content = {"model": {"vocab": json.loads((folder / "vocab.json").read_text()), "merges": merges}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    one, other = gpt2.load(folder), gpt2.load(tmp_path)
    assert other.tokeniser.dumps() == one.tokeniser.dumps()
    assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True))


def test_the_whole_way_on_the_command_line(saved, call) -> None:
    folder, model, tokeniser = saved
    wanted = model.generate(
        torch.tensor([[0, *tokeniser.encode("the cat")]]), max_new_tokens=6, do_sample=False, pad_token_id=0
    )[0, 1:]
    code, out, err = call("predict", str(folder), "--input", "the cat", "--max-length", "6", "--format", "jsonl")
    assert code == 0, err
    assert json.loads(out)["answer"] == tokeniser.decode(wanted, skip_special_tokens=True)
    code, out, err = call("score", str(folder), "--input", TEXTS[2])
    assert code == 0, err
    ids = torch.tensor([[0, *tokeniser.encode(TEXTS[2]), 0]])
    with torch.no_grad():
        each = model(ids).logits.log_softmax(-1)[0, :-1].gather(1, ids[0, 1:, None])
    assert float(out) == pytest.approx(float(each.sum()), abs=1e-3)
    code, out, err = call("explain", str(folder), "--input", "the cat sees", "--format", "json")
    assert code == 0, err
    shown = json.loads(out)["items"][0]["maps"]
    assert len(shown) == SIZES["n_layer"]
    with torch.no_grad():
        model.set_attn_implementation("eager")
        looked = model(torch.tensor([[0, *tokeniser.encode("the cat sees")]]), output_attentions=True).attentions
    (item,) = saccade.load(folder).explain(["the cat sees"])
    for own, theirs in zip(item.maps, looked, strict=True):
        torch.testing.assert_close(own.weights, theirs[0], rtol=1e-4, atol=1e-5)
    assert "".join(item.maps[0].keys.names[1:]) == "the cat sees"


WRONG = {
    "n_head": (5, "n_head does not divide n_embd=24"),
    "activation_function": ("swish", "activation_function is 'swish'"),
    "scale_attn_by_inverse_layer_idx": (True, "scale_attn_by_inverse_layer_idx False only, not True"),
    "n_layer": (3, r"h\.2\.attn\.c_attn\.weight is missing"),
    "n_positions": (41, r"wpe\.weight is torch\.float32 of shape \(40, 24\)"),
    "n_embd": ("24", "n_embd"),
    "vocab_size": (10, "vocab.json"),
}


@pytest.mark.parametrize("key", WRONG)
def test_hostile_folders_are_refused_by_name(saved, tmp_path, key) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(saved[0], folder)
    value, complaint = WRONG[key]
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, key: value}))
    with pytest.raises(ArtifactError, match=complaint):
        gpt2.load(folder)


def test_other_damage_is_named(saved, tmp_path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(saved[0], folder)
    (folder / "merges.txt").write_text("#version: 0.2\nzz y\n")
    with pytest.raises(ArtifactError, match="merge 1, 'zz y', is not two pieces of a third"):
        gpt2.load(folder)
    (folder / "merges.txt").unlink()
    (folder / "tokenizer.json").unlink(missing_ok=True)
    with pytest.raises(ArtifactError, match=r"has neither vocab\.json and merges\.txt nor tokenizer\.json"):
        gpt2.load(folder)
    shutil.copy(saved[0] / "merges.txt", folder / "merges.txt")
    (folder / "vocab.json").write_text('{"a": 0}')
    with pytest.raises(ArtifactError, match="not a vocabulary of GPT-2: it lacks the byte"):
        gpt2.load(folder)
    shutil.copy(saved[0] / "vocab.json", folder / "vocab.json")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ArtifactError, match=r"has no model\.safetensors"):
        gpt2.load(folder)
