"""Numbers, as models see them."""

import json
import random
import statistics
from pathlib import Path

import pytest
import torch

from saccade.artifacts import ArtifactError
from saccade.data.cell import Cell
from saccade.data.errors import BadRow
from saccade.fields import Number, fields

CELL = Cell("prices.csv", 5, "price", Path())


def test_reachable_by_short_name():
    assert fields.get("number") is Number


@pytest.mark.parametrize(("raw", "value"), [("3.5", 3.5), (" -2e3 ", -2000.0), (7, 7.0), (0.25, 0.25)])
def test_cells_that_are_numbers(raw, value):
    assert Number().read(raw, CELL) == value


@pytest.mark.parametrize("raw", ["", "3,5", "many", None, "nan", "inf", float("nan"), 10**400, True, [1.0]])
def test_cells_that_are_not(raw):
    with pytest.raises(
        BadRow, match=r"prices\.csv, line 5: the price is not a finite number .*such as 3\.5.*bad_rows skip"
    ):
        Number().read(raw, CELL)


@pytest.mark.parametrize("raw", ["1e300", -2e30])
def test_cells_that_are_too_large_to_compute_with(raw):
    with pytest.raises(BadRow, match=r"prices\.csv, line 5: the price .* is too large: numbers may be from -1e30"):
        Number().read(raw, CELL)
    assert Number().read("1e30", CELL) == 1e30


def test_models_see_mean_zero_and_deviation_one():
    draws = random.Random(3)
    values = [1e6 + draws.gauss(3.0, 0.7) for _ in range(301)]
    field = Number()
    field.fit(iter(values))  # one pass
    assert field.mean == pytest.approx(statistics.fmean(values), rel=1e-12)
    assert field.deviation == pytest.approx(statistics.pstdev(values), rel=1e-6)
    encoded = field.pad([field.encode(value) for value in values])["values"]
    assert encoded.dtype == torch.float32
    assert encoded.mean().item() == pytest.approx(0.0, abs=1e-5)
    assert encoded.std(correction=0).item() == pytest.approx(1.0, rel=1e-5)
    assert field.decode(field.encode(values[0])) == pytest.approx(values[0], rel=1e-12)


@pytest.mark.parametrize("values", [[], [5.0], [5.0, 5.0]])
def test_numbers_that_do_not_differ_are_not_scaled(values):
    field = Number()
    field.fit(values)
    assert field.deviation == 1.0
    assert field.encode(6.0) == 6.0 - (5.0 if values else 0.0)


def test_saved_and_loaded(tmp_path):
    field = Number()
    field.fit([1.0, 2.0, 4.0])
    field.save(tmp_path)
    other = Number()
    other.load(tmp_path)
    assert (other.mean, other.deviation) == (field.mean, field.deviation)
    assert field.learned() == "mean 2.333, deviation 1.247"


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        json.dumps({"mean": 1.0}),
        json.dumps({"mean": "1", "deviation": 1.0}),
        '{"mean": NaN, "deviation": 1.0}',
        json.dumps({"mean": 1.0, "deviation": 0.0}),
        json.dumps({"mean": 1.0, "deviation": -1.0}),
    ],
)
def test_a_damaged_file_is_refused(content, tmp_path):
    (tmp_path / "number.json").write_text(content)
    with pytest.raises(ArtifactError, match=r"number\.json is damaged"):
        Number().load(tmp_path)
