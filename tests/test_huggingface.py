"""BERT folders of the `transformers` library: written, read, and refused when they are damaged or hostile."""

import json

import pytest
import torch

from saccade import huggingface
from saccade.artifacts import ArtifactError, pack_tensors, read_tensors
from saccade.data.tokenisers.wordpiece import WordPiece
from saccade.models import Bert

SIZES = {"dim": 22, "num_heads": 2, "num_layers": 3, "feed_forward_dim": 29, "max_length": 17}


@pytest.fixture
def saved(tmp_path):
    torch.manual_seed(7)
    tokeniser = WordPiece(vocab_size=31).fit(["low lower tower", "a new low"])
    model = Bert(vocab=tokeniser.size, head="none", **SIZES).eval()
    return huggingface.save(tmp_path / "bert", model, tokeniser), model, tokeniser


def change(folder, file, **values):
    content = json.loads((folder / file).read_text()) | values
    (folder / file).write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def change_weights(folder, change):
    tensors = read_tensors(folder / "model.safetensors")
    (folder / "model.safetensors").write_bytes(pack_tensors(change(tensors)))


def test_what_is_saved_is_read_back(saved):
    folder, model, tokeniser = saved
    assert huggingface.is_folder(folder)
    again = huggingface.load(folder)
    assert again.tokeniser.vocabulary == tokeniser.vocabulary
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], tensor), name
    assert not again.model.training


def test_names_of_other_times_and_classes_are_known(saved):
    folder, model, _ = saved

    def older(tensors):
        names = {name: name.replace("LayerNorm.weight", "LayerNorm.gamma") for name in tensors}
        found = {f"bert.{names[name].replace('LayerNorm.bias', 'LayerNorm.beta')}": t for name, t in tensors.items()}
        return found | {"bert.embeddings.position_ids": torch.arange(17), "cls.other": torch.zeros(1)}

    change_weights(folder, older)
    again = huggingface.load(folder).model
    assert all(torch.equal(a, b) for a, b in zip(again.state_dict().values(), model.state_dict().values(), strict=True))


def test_half_precision_becomes_single(saved):
    folder, model, _ = saved
    change_weights(folder, lambda tensors: {name: tensor.bfloat16() for name, tensor in tensors.items()})
    found = huggingface.load(folder).model.embedding.weight
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, model.embedding.weight, rtol=0.01, atol=0)


def test_heads_start_anew_where_the_folder_has_none(saved):
    folder, _, _ = saved
    model = huggingface.load(folder, head="label", classes=3, pooling="mean").model
    assert model.classifier.out_features == 3
    assert model.pooler is None


@pytest.mark.parametrize("pooling", ["mean", "attention"])
def test_a_classifier_of_means_is_saved_without_its_head(saved, tmp_path, pooling):
    folder, _, tokeniser = saved
    model = huggingface.load(folder, head="label", classes=3, pooling=pooling).model
    written = huggingface.save(tmp_path / pooling, model, tokeniser)
    assert json.loads((written / "config.json").read_text())["architectures"] == ["BertModel"]
    again = huggingface.load(written).model
    torch.testing.assert_close(again.layers[0].state_dict(), model.layers[0].state_dict())


def test_only_what_that_library_has_can_be_saved(saved, tmp_path):
    _, _, tokeniser = saved
    sparse = Bert(vocab=tokeniser.size, head="none", selection="sparsemax", **SIZES)
    with pytest.raises(ValueError, match="only Softmax over ScaledDotScore"):
        huggingface.save(tmp_path / "sparse", sparse, tokeniser)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="full already exists"):
        huggingface.save(tmp_path / "full", sparse, tokeniser)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "roberta"}, "model_type 'bert' only, not 'roberta'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type 'absolute' only"),
        ({"is_decoder": True}, "is_decoder False only"),
        ({"hidden_act": "silu"}, "hidden_act is 'silu', not gelu or relu"),
        ({"hidden_size": "22"}, 'hidden_size is "22", not a whole number'),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": 10**12}, "hidden_size is 1000000000000"),
        ({"num_attention_heads": 3}, "num_attention_heads does not divide hidden_size=22"),
        ({"num_hidden_layers": 100_000}, "num_hidden_layers is 100,000"),
        ({"num_hidden_layers": 4}, "encoder.layer.3.attention.self.query.weight is missing"),
        ({"intermediate_size": 30}, r"intermediate.dense.weight is torch.float32 of shape \(29, 22\)"),
        ({"layer_norm_eps": -1.0}, "layer_norm_eps is -1.0"),
        ({"hidden_size": 2**20, "intermediate_size": 2**20}, "word_embeddings.weight is torch"),  # not allocated
        ({"vocab_size": 40_000}, r"word_embeddings.weight is torch.float32 of shape \(25, 22\)"),
    ],
)
def test_configurations_that_do_not_fit_are_refused(saved, values, message):
    folder, _, _ = saved
    change(folder, "config.json", **values)
    with pytest.raises(ArtifactError, match=message):
        huggingface.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {**t, "embeddings.LayerNorm.weight": torch.full((22,), torch.nan)}, "LayerNorm.weight contains NaN"),
        (lambda t: {**t, "embeddings.LayerNorm.weight": torch.ones(22, dtype=torch.long)}, "is torch.int64"),
        (lambda t: {"x": torch.zeros(3)}, "is missing"),
    ],
)
def test_weights_that_do_not_fit_are_refused(saved, change, message):
    folder, _, _ = saved
    change_weights(folder, change)
    with pytest.raises(ArtifactError, match=message):
        huggingface.load(folder)


def test_other_kinds_of_weights_are_named(saved):
    folder, _, _ = saved
    (folder / "model.safetensors").unlink()
    with pytest.raises(ArtifactError, match=r"bert has no model\.safetensors\.$"):
        huggingface.load(folder)
    (folder / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(ArtifactError, match="in several files"):
        huggingface.load(folder)
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04")
    with pytest.raises(ArtifactError, match="weights of another kind"):
        huggingface.load(folder)


def test_a_damaged_folder_is_refused(saved):
    folder, _, _ = saved
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-5])
    with pytest.raises(ArtifactError, match="damaged"):
        huggingface.load(folder)
    (folder / "config.json").write_text("[1, 2")
    with pytest.raises(ArtifactError, match="not valid JSON"):
        huggingface.load(folder)


def test_windows_read_what_positions_do_not_reach(tmp_path):
    torch.manual_seed(3)
    tokeniser = WordPiece(vocab_size=40).fit(["the eye rests", "the eye jumps"])
    model = Bert(vocab=tokeniser.size, head="none", dim=22, num_heads=2, num_layers=1, max_length=13).eval()
    folder = huggingface.save(tmp_path / "bert", model, tokeniser)
    text = "the eye rests " * 20
    whole = huggingface.load(folder, pooling="mean")
    torch.testing.assert_close(*(whole.encode([text + end]) for end in ("", "jumps")))  # which is not read
    windows = huggingface.load(folder, pooling="mean", window=7)
    one, other = (windows.encode([text + end]) for end in ("", "jumps"))
    assert not torch.allclose(one, other)
    torch.testing.assert_close(windows.encode([text], max_length=13), windows.encode([text + "jumps"], max_length=13))
