"""Names of users and items."""

import json
from pathlib import Path

import pytest

from saccade.artifacts import ArtifactError
from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.fields import Identity, fields

CELL = Cell("reviews.csv", 3, "user", Path())


@pytest.fixture
def field():
    made = Identity()
    made.fit(["bo", "al", "bo", "cy"])
    return made


def test_known_names_are_numbered_from_one_and_others_are_zero(field):
    assert fields.get("identity") is Identity
    assert [field.encode(name) for name in ("al", "bo", "cy", "di")] == [1, 2, 3, 0]
    assert field.sizes() == {"names": 4}
    assert (field.unknown("al"), field.unknown("di")) == ([], ["di"])
    assert field.pad([2, 0])["values"].tolist() == [2, 0]


def test_numbers_and_spaces_are_read():
    assert [Identity().read(raw, CELL) for raw in (" al ", 17, 17.0)] == ["al", "17", "17"]
    with pytest.raises(BadRow, match="the user is empty"):
        Identity().read(" ", CELL)


def test_saved_and_loaded(field, tmp_path):
    field.save(tmp_path)
    loaded = Identity()
    loaded.load(tmp_path)
    assert loaded.names == field.names
    assert loaded.encode("cy") == 3


@pytest.mark.parametrize("content", [{}, [], ["a", 1], ["a", "a"]])
def test_damage_is_named(content, tmp_path):
    (tmp_path / "names.json").write_text(json.dumps(content))
    with pytest.raises(ArtifactError, match=r"names\.json is damaged"):
        Identity().load(tmp_path)
