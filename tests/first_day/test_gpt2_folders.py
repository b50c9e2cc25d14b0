"""GPT-2 folders: what is cut is said, and every damage gives one clear error with the file and the fix."""

import json

import pytest
import torch

from saccade import gpt2
from saccade.artifacts import pack_tensors, read_tensors
from saccade.data.tokenisers.byte_level import letters
from saccade.models import TransformerLanguageModel

CONFIG = {
    "model_type": "gpt2",
    "n_embd": 6,
    "n_head": 2,
    "n_layer": 1,
    "n_positions": 11,
    "vocab_size": 257,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
}


@pytest.fixture
def folder(tmp_path):
    """A small random GPT-2 whose pieces are bytes."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    pieces = [*letters().values(), gpt2.END]
    (tmp_path / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    with torch.device("meta"):
        outline = TransformerLanguageModel(vocab=260, causal=True, **gpt2.read_arguments(tmp_path))
    shapes = gpt2._shapes(outline, CONFIG["vocab_size"])
    (tmp_path / "model.safetensors").write_bytes(
        pack_tensors({name: torch.randn(shape) for name, shape in shapes.items()})
    )
    return tmp_path


def test_explain_says_how_much_it_reads(folder, call) -> None:
    code, out, err = call("explain", str(folder), "--input", "thirteen long", "--format", "json")
    assert code == 0, err
    assert "WARNING: Input 1 has 13 tokens, but the explanation only reads the first 10." in err
    (item,) = json.loads(out)["items"]
    assert len(item["maps"][0]["keys"]["pieces"]) == 1 + 10  # the start of the text is read, too
    assert "read in part" in [measure["name"] for measure in item["measures"]]
    code, _, err = call("explain", str(folder), "--input", "ten tokens", "--format", "json")
    assert (code, err) == (0, "")
    assert call("score", str(folder), "--input", "thirteen long")[2].startswith("1 text, 14 tokens")


def changed(name, change):
    """Damage to a JSON file."""

    def damage(folder):
        found = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(change(found)))

    return damage


def cut(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-7])


def not_a_number(folder):
    tensors = read_tensors(folder / "model.safetensors")
    tensors["wpe.weight"][0, 0] = torch.nan
    (folder / "model.safetensors").write_bytes(pack_tensors(tensors))


DAMAGE = {
    "no JSON": (lambda folder: (folder / "config.json").write_text("{"), "config.json is damaged: line 1"),
    "a text for a size": (changed("config.json", lambda c: c | {"n_embd": "6"}), "config.json is damaged: n_embd"),
    "no true or false": (changed("config.json", lambda c: c | {"tie_word_embeddings": "no"}), "tie_word_embeddings"),
    "enormous": (
        changed("config.json", lambda c: c | {"n_embd": 2**20, "n_layer": 1024}),
        "model.safetensors and config.json do not fit: wte.weight",
    ),
    "another name": (lambda folder: (folder / "vocab.json").rename(folder / "v.json"), "has neither vocab.json"),
    "one id twice": (changed("vocab.json", lambda v: v | {"a": v["b"]}), "vocab.json is damaged: it gives two pieces"),
    "a reserved piece": (changed("vocab.json", lambda v: v | {"<s>▁": v.pop(gpt2.END)}), "vocab.json is damaged"),
    "a list": (changed("vocab.json", list), "vocab.json is damaged: its content is a list"),
    "a special merge": (
        lambda folder: (folder / "merges.txt").write_text("<|endoftext |>\n"),
        "merges.txt is damaged: merge 1, '<|endoftext |>'",
    ),
    "half a line": (lambda folder: (folder / "merges.txt").write_text("a\n"), "merges.txt is damaged: merge 1, 'a'"),
    "an end that is missing": (cut, "model.safetensors is damaged"),
    "not a number": (not_a_number, "model.safetensors is damaged: wpe.weight contains NaN"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "has no model.safetensors"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_told_in_one_line_with_the_file_and_the_fix(damage, folder, call) -> None:
    change, said = DAMAGE[damage]
    change(folder)
    code, out, err = call("score", str(folder), "--input", "a text")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert str(folder) in err
    assert said in err
    assert "save the model again with save_pretrained" in err


def test_a_model_of_another_kind(folder, call) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    code, _, err = call("score", str(folder), "--input", "a text")
    assert code == 2
    assert 'config.json must have "model_type": "gpt2". `saccade inspect` shows' in err
