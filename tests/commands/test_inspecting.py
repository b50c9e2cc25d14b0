"""`saccade inspect` opens folders of Hugging Face models, and nothing else."""

import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from saccade.cli import main
from saccade.commands.inspecting import _matters
from saccade.data.recordings import as_wav
from tests.interpretation.recording.pages import Page, tokeniser, transformers
from tests.interpretation.recording.test_generated_pages import gpt2, t5
from tests.interpretation.recording.test_media_pages import vision, whisper


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    torch.manual_seed(11)
    folder = tmp_path_factory.mktemp("models")
    made = {"gpt2": gpt2(), "t5": t5(), "clip": vision("clip"), "whisper": whisper()}
    for name, model in made.items():
        model.save_pretrained(folder / name)
        if name != "clip":
            tokeniser().save_pretrained(folder / name)
    size = {"height": 20, "width": 20}
    transformers.CLIPImageProcessor(size={"shortest_edge": 20}, crop_size=size).save_pretrained(folder / "clip")
    transformers.WhisperFeatureExtractor(feature_size=13, chunk_length=1).save_pretrained(folder / "whisper")
    tone = np.sin(np.arange(7000) * 0.1).astype(np.float32)
    (folder / "speech.wav").write_bytes(as_wav(tone, 8000))  # the model wants 16 kHz
    return folder


@pytest.fixture
def inspect(models, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("SACCADE_TRACEBACK", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def run(name, *options):
        code = main(["inspect", str(models / name), "--output", str(tmp_path / "page.html"), *options])
        return code, capsys.readouterr().err

    return run


def test_decoder(inspect, tmp_path):
    code, said = inspect("gpt2", "--input", "the old cat sat", "--generate", "3", "--title", "Cats")
    assert code == 0, said
    assert "2 attention modules" in said
    page = Page(tmp_path / "page.html")
    assert page.data["title"] == "Cats"
    assert page.pieces("transformer.h.1.attn")[0][:4] == ["\u2581the", "\u2581old", "\u2581cat", "\u2581sat"]
    assert len(page.pieces("transformer.h.1.attn")[0]) <= 6
    assert inspect("gpt2", "--input", "the old cat")[0] == 0  # it only reads
    assert page.names == Page(tmp_path / "page.html").names


def test_encoder_decoder_with_beams(inspect, tmp_path):
    code, said = inspect("t5", "--input", "two dogs slept", "--beams", "3", "--generate", "5")
    assert code == 0, said
    page = Page(tmp_path / "page.html")
    assert len(page.names) == 6
    assert page.pieces("decoder.block.1.layer.1.EncDecAttention")[1] == ["\u2581two", "\u2581dogs", "\u2581slept"]


def test_picture(inspect, tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (53, 31), "green").save(tmp_path / "photo.png")
    code, said = inspect("clip", "--input", str(tmp_path / "photo.png"))
    assert code == 0, said
    (axis,) = Page(tmp_path / "page.html").data["axes"]
    assert (axis["grid"], axis["leading"]) == ([5, 5], ["[CLS]"])


def test_recording(inspect, models, tmp_path):
    code, said = inspect("whisper", "--input", str(models / "speech.wav"), "--generate", "5")
    assert code == 0, said
    _, sound = Page(tmp_path / "page.html").axes("model.decoder.layers.0.encoder_attn")
    assert (sound["kind"], sound["frames"], sound["seconds"]) == ("sound", 50, 1.0)
    assert sound["wav"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--input", "a"], "there is no such folder"),
        (["speech.wav", "--input", "a"], "that is a file"),
        ([".", "--input", "a"], "config.json is missing"),
        (["gpt2"], 'reads a text (--input "some words"), and --input is missing'),
        (["clip", "--input", "a cat"], "reads a picture (--input photo.jpg), and --input is a text"),
        (["clip", "--input", "cat.png"], "--input cat.png: there is no such file"),
        (["clip", "--input", "a cat", "--generate", "3"], "does not write"),
        (["gpt2", "--input", "a", "--input", "b"], "A page shows a text, got 2"),
        (["gpt2", "--input", " "], "--input is an empty text"),
        (["gpt2", "--input", "a", "--generate", "0"], "--generate must be at least 1, got 0"),
    ],
)
def test_errors(inspect, tmp_path, arguments, message):
    code, said = inspect(*arguments)
    assert code == 2
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


class Marker:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_pickles_are_never_opened(inspect, models, tmp_path):
    marker = tmp_path / "opened"
    for kept in (False, True):
        folder = tmp_path / f"model-{kept}"
        shutil.copytree(models / "gpt2", folder)
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Marker(marker)))
        if not kept:
            (folder / "model.safetensors").unlink()
        code, said = inspect(str(folder), "--input", "the cat")
        assert (code == 0) == kept
        assert kept or "pytorch_model.bin, a pickle, which can run any code" in said
        assert not marker.exists()


def test_code_of_the_folder_is_never_run(inspect, models, tmp_path):
    marker = tmp_path / "ran"
    folder = tmp_path / "model"
    shutil.copytree(models / "gpt2", folder)
    (folder / "modeling_own.py").write_text(f"import os\nos.mkdir({str(marker)!r})\n")
    settings = json.loads((folder / "config.json").read_text())
    settings["auto_map"] = {"AutoModel": "modeling_own.OwnModel", "AutoConfig": "modeling_own.OwnConfig"}
    for architecture, model_type, expected in (("OwnModel", "own", 2), ("GPT2LMHeadModel", "gpt2", 0)):
        (folder / "config.json").write_text(
            json.dumps({**settings, "architectures": [architecture], "model_type": model_type})
        )
        code, said = inspect(str(folder), "--input", "the cat")
        assert code == expected, said
        assert expected == 0 or "brings its own code (OwnModel), which is not run" in said
        assert not marker.exists()


@pytest.mark.parametrize("content", ["", "[]", '{"model_type": "gpt2", "n_embd": "many"}', '{"model_type": "what"}'])
def test_damaged_configurations(inspect, models, tmp_path, content):
    folder = tmp_path / "model"
    shutil.copytree(models / "gpt2", folder)
    (folder / "config.json").write_text(content)
    code, said = inspect(str(folder), "--input", "the cat")
    assert code == 2
    assert "Traceback" not in said


def test_missing_tokeniser(inspect, models, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(models / "gpt2", folder, ignore=shutil.ignore_patterns("*token*"))
    code, said = inspect(str(folder), "--input", "the cat")
    assert code == 2
    assert "has no files of its tokeniser" in said


def test_weights_that_would_be_random(inspect, models, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    folder = tmp_path / "model"
    shutil.copytree(models / "gpt2", folder)
    file = folder / "model.safetensors"
    whole = safetensors.load_file(file)
    some = {name: each for name, each in whole.items() if "c_attn.weight" not in name}
    safetensors.save_file(some, file, metadata={"format": "pt"})
    code, said = inspect(str(folder), "--input", "the cat")
    assert code == 2
    assert "lack transformer.h.0.attn.c_attn.weight, transformer.h.1.attn.c_attn.weight, which would be random" in said
    name = "transformer.h.1.mlp.c_fc.bias"
    safetensors.save_file({**whole, name: torch.zeros(5)}, file, metadata={"format": "pt"})
    code, said = inspect(str(folder), "--input", "the cat")
    assert code == 2
    assert f"the weights do not fit config.json: {name} (5,) instead of" in said


def test_a_tokeniser_of_another_model(inspect, models, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(models / "gpt2", folder)
    tokens = tokeniser()
    tokens.add_tokens([f"word{number}" for number in range(999)])
    tokens.save_pretrained(folder)
    code, said = inspect(str(folder), "--input", "the word998")
    assert code == 2
    assert "they do not belong together" in said


def test_a_class_of_another_model_type(inspect, models, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(models / "gpt2", folder)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "model_type": "own"}))
    code, said = inspect(str(folder), "--input", "the cat")
    assert code == 2
    assert "model_type is 'own', and that of GPT2LMHeadModel 'gpt2'" in said


@pytest.mark.parametrize(
    ("name", "matters"),
    [
        ("transformer.h.1.attn.c_attn.weight", True),
        ("model.embed_tokens.weight", True),
        ("wav2vec2.masked_spec_embed", False),
        ("embeddings.mask_token", False),
        ("logit_scale", False),
        ("pooler.dense.weight", False),
        ("lm_head.dense.weight", False),
        ("classifier.0.weight", False),
    ],
)
def test_which_missing_weights_matter(name, matters):
    assert _matters(name) == matters
