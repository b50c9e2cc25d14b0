"""Weights and their files: what fits comes back exactly, what does not is refused before it is read."""

import json
import resource

import pytest
import torch
from torch import nn

from saccade.artifacts import (
    ArtifactError,
    check_header,
    load_weights,
    pack_tensors,
    read_header,
    read_tensors,
    save_weights,
    set_weights,
    shapes_of,
    weights_of,
    write_file,
)


class Tied(nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.embedding = nn.Embedding(7, width)
        self.output = nn.Linear(width, 7)
        self.output.weight = self.embedding.weight
        self.register_buffer("seen", torch.tensor(3))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)


def test_tensors_of_every_kind_come_back(tmp_path):
    tensors = {
        "half": torch.randn(3, 5).bfloat16(),
        "turned": torch.randn(3, 5).t(),
        "number": torch.tensor(7),
        "none": torch.zeros(0, 3),
        "flags": torch.tensor([True, False]),
    }
    write_file(tmp_path / "t.safetensors", pack_tensors(tensors))
    read = read_tensors(tmp_path / "t.safetensors")
    assert read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert read[name].dtype == tensor.dtype
        assert torch.equal(read[name], tensor)


def test_a_torn_tensor_file_is_an_error(tmp_path):
    path = write_file(tmp_path / "t.safetensors", pack_tensors({"a": torch.randn(5)})[:-3])
    with pytest.raises(ArtifactError, match="damaged"):
        read_tensors(path)


def test_tied_weights_are_stored_once_and_stay_tied(tmp_path):
    model, other = Tied(), Tied()
    other.seen.fill_(11)
    assert sorted(weights_of(model)) == ["embedding.weight", "output.bias", "seen"]
    save_weights(model, tmp_path / "model.safetensors")
    load_weights(other, tmp_path / "model.safetensors")
    assert torch.equal(other.output.weight, model.embedding.weight)
    assert other.output.weight is other.embedding.weight
    assert other.seen == 3


def test_the_weights_of_another_model_are_refused():
    with pytest.raises(
        ArtifactError, match=r"missing: embedding.weight, output.bias, seen; not in the model: bias, weight"
    ):
        set_weights(Tied(), weights_of(nn.Linear(3, 2)))
    with pytest.raises(ArtifactError, match=r"embedding.weight has the shape \(7, 3\) there but \(7, 5\) in the model"):
        set_weights(Tied(), weights_of(Tied(width=3)))


def packed(header, data=b"\0" * 24, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(shape=(2, 3), begin=0, end=24, dtype="F32", **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end], **more}


def test_the_hand_made_file_is_right_without_damage(tmp_path):
    path = write_file(tmp_path / "t", packed({"a": entry(), "__metadata__": {"format": "pt"}}))
    assert read_header(path) == {"a": ((2, 3), torch.float32)}
    assert torch.equal(read_tensors(path)["a"], torch.zeros(2, 3))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not a safetensors file"),
        (b"\0" * 7, "not a safetensors file"),
        (packed({}, b"", length=2**63), "its end is missing"),
        (packed({}, b"", length=3), "its end is missing"),
        (packed(b" " * (2**24 + 1)), "its header has 16,777,217 bytes"),
        (packed(b"[" * 2**20), "nested more than 4 levels"),
        (packed(b"[]"), "not an object"),
        (packed(b"\xff\xff"), "not valid UTF-8"),
        (packed(b'{"a": 1, "a": 2}'), "the key 'a' appears twice"),
        (packed({"a": 7}), "a is 7, not an object"),
        (packed({"a": {"dtype": "F32", "shape": [6]}}), "a.data_offsets is missing"),
        (packed({"a": entry(dtype="F8_E4M3")}), "a.dtype is 'F8_E4M3'"),
        (packed({"a": entry(dtype=32)}), "a.dtype is 32, not a string"),
        (packed({"a": entry(code="x")}), "a.code is not a key that belongs there"),
        (packed({"a": entry(shape=[2, -3])}), r"a.shape\[1\] is -3, not between"),
        (packed({"a": entry(shape=[2, 3.0])}), r"a.shape\[1\] is 3.0, not a whole number"),
        (packed({"a": entry(shape=[10**15])}), "a.data_offsets does not fit the shape"),
        (packed({"a": entry(shape=[2**40, 2**40])}), "a.data_offsets does not fit the shape"),
        (packed(b'{"a": {"dtype": "F32", "shape": [' + b"9" * 5000 + b'], "data_offsets": [0, 24]}}'), "5000 digits"),
        (packed({"a": entry(end=2**40)}), r"a.data_offsets\[1\] is 1099511627776, not between"),
        (packed({"a": entry(begin=24, end=0)}), "does not fit the shape"),
        (packed({"a": entry(), "b": entry()}), "overlap or leave a gap"),
        (packed({"a": entry(begin=4, end=28)}, b"\0" * 28), "overlap or leave a gap"),
        (packed({"a": entry()}, b"\0" * 25), "take 24 bytes, but 25 follow"),
        (packed({"a": entry()}, b"\0" * 23), r"data_offsets|take 24 bytes, but 23 follow"),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path, content, complaint):
    path = write_file(tmp_path / "t.safetensors", content)
    for read in (read_header, read_tensors):
        with pytest.raises(ArtifactError, match=complaint) as caught:
            read(path)
        assert "t.safetensors" in str(caught.value)


def test_a_huge_file_is_refused_without_reading_it(tmp_path):
    header = json.dumps({"embedding.weight": entry((2**36,), 0, 2**38)}).encode()
    path = tmp_path / "huge.safetensors"
    with open(path, "wb") as file:  # sparse: 256 GiB that take no space
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 2**38)
    with torch.device("meta"):
        model = Tied()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ArtifactError, match=r"missing: output.bias, seen"):
        check_header(path, shapes_of(model))
    with pytest.raises(ArtifactError, match="belongs to another model"):
        load_weights(Tied(), path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KB


def test_a_model_on_the_meta_device_is_compared(tmp_path):
    save_weights(Tied(), tmp_path / "t")
    with torch.device("meta"):
        check_header(tmp_path / "t", shapes_of(Tied()))
        with pytest.raises(ArtifactError, match=r"embedding.weight has the shape \(7, 5\) there but \(7, 900\)"):
            check_header(tmp_path / "t", shapes_of(Tied(width=900)))


def test_another_type_is_refused_with_the_way_to_convert(tmp_path):
    save_weights(Tied().bfloat16(), tmp_path / "t")
    with pytest.raises(ArtifactError, match=r"embedding.weight is bfloat16 there but float32 in the model.*float32"):
        load_weights(Tied(), tmp_path / "t")
    converted = {n: t.float() if t.is_floating_point() else t for n, t in read_tensors(tmp_path / "t").items()}
    load_weights(Tied(), write_file(tmp_path / "t", pack_tensors(converted)))  # as the message says


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_not_finite_are_refused_by_name(tmp_path, value):
    model, other = Tied(), Tied()
    with torch.no_grad():
        model.output.bias[3] = value
    before = other.embedding.weight.detach().clone()
    save_weights(model, tmp_path / "t")
    with pytest.raises(ArtifactError, match=r"t is damaged: output.bias contains NaN or infinite values"):
        load_weights(other, tmp_path / "t")
    assert torch.equal(other.embedding.weight, before)
