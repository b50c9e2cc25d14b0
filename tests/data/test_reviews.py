"""Reviews in the layouts of Amazon and Yelp."""

import gzip
import json

import pytest

from saccade.data.errors import BadRow
from saccade.data.examples import Examples
from saccade.data.readers import absolute
from saccade.tasks import Recommendation

AMAZON = [
    {"reviewerID": "A1", "asin": "0700", "reviewText": "Fine pick.", "overall": 5.0, "unixReviewTime": 1400000000},
    {"user_id": "A2", "asin": "X", "parent_asin": "P", "text": "Bad.", "rating": 1.0, "timestamp": 1500000000123},
]
YELP = [{"user_id": "u", "business_id": "b", "stars": 3, "text": "So-so", "date": "2016-03-09 20:15:00"}]


def rows(source, **options):
    return list(Examples(source, Recommendation().fields, **options))


def test_amazon_of_all_years(tmp_path):
    path = tmp_path / "reviews.json.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in AMAZON).encode()))
    assert rows(f"amazon:{path}") == [
        {"user": "A1", "item": "0700", "rating": 5.0, "text": ["Fine pick."], "time": 1400000000.0},
        {"user": "A2", "item": "P", "rating": 1.0, "text": ["Bad."], "time": 1500000000.123},
    ]


@pytest.mark.parametrize("name", ["Books.jsonl", "Books.jsonl.gz"])
def test_the_prefix_counts_more_than_the_suffix(tmp_path, name):
    lines = "".join(json.dumps(row) + "\n" for row in AMAZON).encode()
    (tmp_path / name).write_bytes(gzip.compress(lines) if name.endswith(".gz") else lines)
    assert [row["user"] for row in rows(f"amazon:{tmp_path / name}")] == ["A1", "A2"]


def test_yelp(tmp_path):
    path = tmp_path / "review.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in YELP))
    (row,) = rows(f"yelp:{path}")
    assert row == {"user": "u", "item": "b", "rating": 3.0, "text": ["So-so"], "time": 1457554500.0}


def test_named_columns_of_tables(tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    table = "who,what,stars,said,day\nA1,B2,4,quite good,2016-03-09\nA3,B2,2,,\n"
    (tmp_path / "reviews.csv").write_text(table)
    columns = {"user": "who", "item": "what", "rating": "stars", "text": "said", "time": "day"}
    wanted = [
        {"user": "A1", "item": "B2", "rating": 4.0, "text": ["quite good"], "time": 1457481600.0},
        {"user": "A3", "item": "B2", "rating": 2.0, "text": [""], "time": None},
    ]
    assert rows(str(tmp_path / "reviews.csv"), columns=columns) == wanted
    as_text = csv.ConvertOptions(column_types={"day": "string"})
    parquet.write_table(
        csv.read_csv(tmp_path / "reviews.csv", convert_options=as_text), str(tmp_path / "reviews.parquet")
    )
    assert rows(str(tmp_path / "reviews.parquet"), columns=columns) == wanted


def test_text_and_time_may_be_missing(tmp_path):
    (tmp_path / "pairs.csv").write_text("user,item,rating\nA1,B2,4\n")
    (row,) = rows(str(tmp_path / "pairs.csv"), columns={role: role for role in Recommendation().fields})
    assert row == {"user": "A1", "item": "B2", "rating": 4.0, "text": None, "time": None}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"asin": "B2", "overall": 5}', r"line 1: the review has no user.*reviewerID or user_id"),
        ("[1]", r"line 1: a JSON list instead of an object"),
        (
            '{"reviewerID": "A1", "asin": "B2", "overall": 5, "unixReviewTime": "soon"}',
            r"not a point in time but 'soon'",
        ),
        ('{"reviewerID": "A1", "asin": "B2", "overall": "good"}', r"the rating is not a finite number"),
    ],
)
def test_bad_lines_are_named_or_skipped(line, message, tmp_path):
    path = tmp_path / "reviews.json"
    path.write_text(f"{line}\n{json.dumps(AMAZON[0])}\n")
    with pytest.raises(BadRow, match=message):
        rows(f"amazon:{path}")
    assert len(rows(f"amazon:{path}", bad_rows="skip")) == 1


def test_runs_keep_a_name_that_does_not_depend_on_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute("amazon:reviews.json") == f"amazon:{tmp_path / 'reviews.json'}"
