"""The field of pictures."""

import copy
import csv
import io
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from saccade.data.cell import Cell
from saccade.data.corpus import Corpus
from saccade.data.errors import BadRow, DataError
from saccade.data.marks import mark
from saccade.data.pictures import as_png, read_picture
from saccade.data.storage import store
from saccade.fields import Image, Text, fields
from saccade.fields.image import DEVIATION, MEAN
from saccade.interpretation.explorer import ImageAxis, TextAxis
from saccade.tasks import Generation

Pillow = pytest.importorskip("PIL.Image")
NOISE = np.random.default_rng(0).integers(0, 256, (12, 12, 3), dtype=np.uint8)
WIDE = np.random.default_rng(1).integers(0, 256, (12, 20, 3), dtype=np.uint8)


def cell(folder: Path = Path()) -> Cell:
    return Cell("table.csv", 7, "source", folder)


def encoded(field: Image, *pictures) -> list:
    return [field.encode(field.read(picture, cell())) for picture in pictures]


def pixels_of(values: torch.Tensor, patch: int) -> np.ndarray:
    """What the patches show, by loops."""
    grid = round(len(values) ** 0.5)
    found = np.zeros((grid * patch, grid * patch, 3))
    for place, vector in enumerate(values.numpy()):
        line, column = divmod(place, grid)
        part = vector.reshape(3, patch, patch).transpose(1, 2, 0) * DEVIATION + MEAN
        found[line * patch : (line + 1) * patch, column * patch : (column + 1) * patch] = 255 * part
    return np.round(found).astype(np.uint8)


def test_a_picture_becomes_normalised_patches_line_by_line() -> None:
    field = Image(size=12, patch=4)
    batch = field.pad(encoded(field, NOISE, NOISE[::-1]))
    assert batch["values"].shape == (2, 9, 48)
    assert batch["values"].dtype == torch.float32
    assert batch["mask"].shape == (2, 9)
    assert batch["mask"].all()
    assert (pixels_of(batch["values"][0], 4) == NOISE).all()
    assert (pixels_of(batch["values"][1], 4) == NOISE[::-1]).all()
    assert field.sizes() == {"dim": 48}
    assert field.size(encoded(field, NOISE)[0]) == field.longest == 9
    assert field.learned() == "3 x 3 patches of pictures of 12 x 12 pixels"


def test_everything_that_can_be_a_picture_gives_the_same_patches(tmp_path) -> None:
    field, content = Image(size=12, patch=6), as_png(NOISE)
    (tmp_path / "a.png").write_bytes(content)
    given = [
        "a.png",
        tmp_path / "a.png",
        {"path": "a.png", "bytes": None},
        Pillow.open(tmp_path / "a.png"),
        content,
        bytearray(content),
        {"bytes": content, "path": "b.png"},
        {"bytes": content},
        NOISE,
        NOISE / 255,
        torch.tensor(NOISE),
        Pillow.fromarray(NOISE),
    ]
    values = [field.read(raw, cell(tmp_path)) for raw in given]
    found = field.pad([field.encode(value) for value in values])["values"]
    assert all(torch.equal(each, found[0]) for each in found)
    names = [field.show(value) for value in values]
    here = str(tmp_path / "a.png")
    assert names == ["a.png", here, "a.png", here, *["picture 7"] * 2, "b.png", *["picture 7"] * 5]


def test_the_middle_is_read_or_all_of_it() -> None:
    field = Image(size=12, patch=4)
    found = field.pad(encoded(field, WIDE))["values"][0]
    assert (pixels_of(found, 4) == WIDE[:, 4:16]).all()
    tall = field.pad(encoded(field, WIDE.transpose(1, 0, 2)))["values"][0]
    assert (pixels_of(tall, 4) == WIDE.transpose(1, 0, 2)[4:16]).all()
    whole = Image(size=12, patch=4, square="stretch")
    assert (
        pixels_of(whole.pad(encoded(whole, WIDE))["values"][0], 4)
        == read_picture(as_png(WIDE), shorter=12, square="stretch")
    ).all()
    closer = Image(size=8, patch=4, resize=12)
    assert (pixels_of(closer.pad(encoded(closer, NOISE))["values"][0], 4) == NOISE[2:10, 2:10]).all()


def test_augmentation_follows_from_the_generator_alone_and_needs_one() -> None:
    field = Image(size=8, patch=4, resize=12, random_crop=True, flip=True)
    plain = Image(size=8, patch=4, resize=12)
    rows = encoded(field, NOISE, NOISE)

    def drawn(seed: int) -> torch.Tensor:
        return field.pad(rows, torch.Generator().manual_seed(seed))["values"]

    assert torch.equal(field.pad(rows)["values"], plain.pad(rows)["values"])
    assert torch.equal(plain.pad(rows, torch.Generator())["values"], plain.pad(rows)["values"])
    assert torch.equal(drawn(1), drawn(1))
    places = set()
    for seed in range(60):
        shown = pixels_of(drawn(seed)[0], 4)
        places |= {
            (top, left, way)
            for top in range(5)
            for left in range(5)
            for way in (1, -1)
            if (shown == NOISE[top : top + 8, left : left + 8][:, ::way]).all()
        }
    assert len(places) > 30
    assert {top for top, _, _ in places} == {left for _, left, _ in places} == set(range(5))
    assert {way for _, _, way in places} == {1, -1}


def test_pictures_are_decoded_once_unless_they_change(monkeypatch, tmp_path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(as_png(NOISE))
    field = Image(size=12, patch=4)
    rows = encoded(field, str(path))
    first = field.pad(rows)["values"]
    monkeypatch.setattr(field, "_decoded", lambda *a: pytest.fail("decoded again"))
    assert torch.equal(field.pad(rows)["values"], first)
    monkeypatch.undo()
    path.write_bytes(as_png(255 - NOISE // 2))
    assert not torch.equal(field.pad(rows)["values"], first)
    for other in (copy.deepcopy(field), pickle.loads(pickle.dumps(field))):
        assert other._cache.bytes == 0
        assert torch.equal(other.pad(rows)["values"], field.pad(rows)["values"])


def test_a_picture_with_several_captions_is_checked_once(monkeypatch, tmp_path) -> None:
    (tmp_path / "a.png").write_bytes(as_png(NOISE))
    checked, field = [], Image()
    monkeypatch.setattr("saccade.fields.image.check_picture", checked.append)
    for _ in range(5):
        field.read("a.png", cell(tmp_path))
    assert checked == [str(tmp_path / "a.png")]


def test_arrow_keeps_rows_as_they_were(tmp_path) -> None:
    (tmp_path / "a.png").write_bytes(as_png(NOISE))
    field = Image()
    values = [field.read("a.png", cell(tmp_path)), field.read(NOISE, cell()), field.read(WIDE, cell())]
    rows = [{"source": field.encode(value), "value": value} for value in values]
    assert list(store(rows, tmp_path / "rows.arrow")) == rows
    assert len({mark({"source": value}, ["source"]) for value in values}) == 3


def test_tables_with_bytes_and_datasets_with_pictures(tmp_path) -> None:
    datasets = pytest.importorskip("datasets")
    pyarrow = pytest.importorskip("pyarrow")
    contents = [as_png(NOISE), as_png(WIDE)]
    pictures = [{"bytes": contents[0], "path": "a.png"}, {"bytes": contents[1], "path": None}]
    datasets.Dataset.from_dict({"image": pictures}).cast_column("image", datasets.Image()).save_to_disk(
        str(tmp_path / "set")
    )
    found = list(Corpus(columns={"source": "image"}).read(f"hf:{tmp_path / 'set'}", {"source": Image()}))
    assert [example["source"]["bytes"] for example in found] == contents
    assert [example["source"]["name"] for example in found] == ["a.png", "picture 2"]
    table = str(tmp_path / "table.parquet")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"source": contents}), table)
    assert [example["source"]["bytes"] for example in Corpus().read(table, {"source": Image()})] == contents


def test_captions_of_equal_bytes_belong_to_one_picture() -> None:
    task = Generation(source=Image(size=32, patch=8), target=Text(tokeniser="word"))
    raws = [as_png(NOISE), as_png(WIDE), as_png(NOISE)]
    values = [task.source.read(raw, Cell("table.parquet", line, "source")) for line, raw in enumerate(raws, start=1)]
    assert len({task.mark({"source": value}) for value in values}) == 2  # a split keeps the rows of each together
    joined = task.joined({"source": value, "target": f"caption {n}"} for n, value in enumerate(values))
    assert [example["target"] for example in joined] == [["caption 0", "caption 2"], ["caption 1"]]


def test_the_explorer_draws_what_the_model_read() -> None:
    field = Image(size=12, patch=4)
    value = field.read(WIDE, cell())
    axis = field.axis(value)
    assert isinstance(axis, ImageAxis)
    assert axis.grid == (3, 3)
    assert (read_picture(axis.png) == WIDE[:, 4:16]).all()
    assert axis.names == field.position_names(value)
    assert field.axis(value, 4).grid == (2, 2)
    joined = field.axis(value, 5)
    assert isinstance(joined, TextAxis)
    assert joined.names == field.position_names(value, 5) == ["1", "2", "3", "4", "5"]


def test_a_large_picture_is_drawn_in_more_pixels_than_the_model_reads() -> None:
    big = np.kron(NOISE, np.ones((50, 60, 1), np.uint8))
    field = Image(size=24, patch=8, resize=32)
    drawn = read_picture(field.axis(field.read(big, cell())).png)
    assert drawn.shape == (256, 256, 3)
    small = read_picture(field.axis(field.read(NOISE, cell())).png)
    assert small.shape == (24, 24, 3)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"size": 0}, "size"),
        ({"patch": 0}, "patch"),
        ({"size": 10, "patch": 4}, "multiple of patch"),
        ({"resize": 100}, "resize must be from size=128 to 1024, got 100"),
        ({"resize": 5000}, "resize"),
        ({"square": "squash"}, "square must be"),
    ],
)
def test_arguments_that_make_no_sense(arguments, problem) -> None:
    with pytest.raises(ValueError, match=problem):
        fields.create("image", **arguments)


def jpeg() -> bytes:
    file = io.BytesIO()
    Pillow.fromarray(np.kron(NOISE, np.ones((8, 8, 1), np.uint8))).save(file, "JPEG")
    return file.getvalue()


BAD = {
    "gone.jpg": (None, "it does not exist. Check the path; relative ones start from the table's folder."),
    "short.jpg": (jpeg()[:-900], "it is damaged (image file is truncated"),
    "empty.png": (b"", "it is an empty file. Copy it again."),
    "text.png": (b"hello there", "it is not a picture (it begins with b'hello th'). Give JPEG, PNG, WebP"),
}


def manifest(folder: Path, names) -> str:
    for name in names:
        content = BAD[name][0] if name in BAD else jpeg()
        if content is not None:
            (folder / name).write_bytes(content)
    with open(folder / "table.csv", "w", newline="") as file:
        csv.writer(file).writerows([name] for name in names)
    return str(folder / "table.csv")


@pytest.mark.parametrize("name", BAD)
def test_a_bad_picture_is_named_with_its_line(name, tmp_path) -> None:
    table = manifest(tmp_path, ["good.jpg", name])
    with pytest.raises(BadRow) as caught:
        list(Corpus().read(table, {"source": Image()}))
    assert str(caught.value).startswith(f"{table}, line 2: the source {name!r} cannot be used: {BAD[name][1]}")


def test_bad_pictures_are_skipped_and_counted(tmp_path) -> None:
    table = manifest(tmp_path, ["good.jpg", *BAD, "fine.jpg"])
    examples = Corpus(bad_rows="skip").read(table, {"source": Image()})
    assert [example["source"]["name"] for example in examples] == ["good.jpg", "fine.jpg"]
    assert examples.skipped.count == len(BAD)
    assert [row.line for row in examples.skipped.first] == list(range(2, 2 + len(BAD)))


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("", "the source is empty"),
        (None, "the source is empty"),
        (3, "is not a picture but 3"),
        (["a.png"], "is not a picture but of length 1"),
        ({"height": 3}, "a dictionary without a picture"),
        ({"path": None, "bytes": None}, "a dictionary without a picture"),
        (np.zeros((2, 2, 2, 2)), "shape"),
        (np.full((2, 2), 300), "out of range"),
    ],
)
def test_cells_that_hold_no_picture(raw, problem) -> None:
    with pytest.raises(BadRow, match=problem) as caught:
        Image().read(raw, cell())
    assert str(caught.value).startswith("table.csv, line 7: ")


def test_a_picture_that_vanishes_or_breaks_while_training_is_named(tmp_path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(as_png(NOISE))
    field = Image(size=12, patch=4)
    rows = encoded(field, str(path))
    path.write_bytes(as_png(NOISE)[:60])
    with pytest.raises(DataError, match=r"a\.png cannot be used: it is"):
        field.pad(rows)
    path.unlink()
    with pytest.raises(DataError, match=r"a\.png cannot be used: it does not exist"):
        field.pad(rows)


def test_several_captions_in_a_row_of_jsonl(tmp_path) -> None:
    (tmp_path / "a.png").write_bytes(as_png(NOISE))
    rows = [{"source": "a.png", "target": ["a dog", "a brown dog"]}, {"source": "a.png", "target": "it runs"}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    from saccade.tasks import tasks

    task = tasks.create("generation", source=Image())
    read = list(Corpus().read(str(tmp_path / "t.jsonl"), task.fields))
    assert [example["target"] for example in read] == [["a dog", "a brown dog"], "it runs"]
    task.fit(read)
    assert [len(task.rows(example)) for example in read] == [2, 1]
    joined = task.joined(read)
    assert [example["target"] for example in joined] == [["a dog", "a brown dog", "it runs"]]
