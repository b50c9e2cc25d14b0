"""The advice on columns names likely ones, judged by names and by what they hold, and no others."""

import pytest

from saccade.data.readers.likely import likely_columns

REVIEW = {"text": "text", "label": "label"}
PAIR = {"source": "text", "target": "text"}
TEXTS = [f"the {thing} broke after {days} days" for thing in ("lid", "lamp", "cable") for days in range(2, 9)]
HEADER = ["ticket", "message", "team", "minutes"]
ROWS = [(f"T-{n}", text, ("sales", "stores")[n % 2], 7 * n % 11) for n, text in enumerate(TEXTS)]


@pytest.mark.parametrize(
    ("kinds", "header", "found"),
    [
        (REVIEW, HEADER, {"text": "message", "label": "team"}),
        ({"text": "text", "number": "number"}, HEADER, {"text": "message", "number": "minutes"}),
        (PAIR, HEADER, {"source": "COLUMN", "target": "COLUMN"}),  # identifiers, or messages?
        ({"source": "file", "target": "text"}, HEADER, {"source": "COLUMN", "target": "message"}),
        (REVIEW, ["id", "Text", "team", "minutes"], {"text": "Text", "label": "team"}),
        (REVIEW, ["text_label", "message", "team_label", "minutes"], {"text": "text_label", "label": "team_label"}),
        ({"user": "", "item": ""}, ["userId", "text", "item_id", "stars"], {"user": "userId", "item": "item_id"}),
    ],
)
def test_columns_that_fit(kinds, header, found) -> None:
    assert likely_columns(kinds, header, ROWS) == found


def test_several_columns_that_fit_as_well_are_not_guessed() -> None:
    rows = [(*row, ("UK", "US", "FR")[n % 3]) for n, row in enumerate(ROWS)]
    assert likely_columns(REVIEW, [*HEADER, "country"], rows) == {"text": "message", "label": "COLUMN"}


def test_labels_may_be_numbers_where_no_words_are() -> None:
    rows = [(text, n % 2) for n, text in enumerate(TEXTS)]
    assert likely_columns(REVIEW, ["said", "spam"], rows) == {"text": "said", "label": "spam"}


def test_numbers_that_count_rows_are_not_meant() -> None:
    rows = [(100 + n, text, n % 5) for n, text in enumerate(TEXTS)]
    kinds = {"text": "text", "number": "number"}
    assert likely_columns(kinds, ["review", "said", "grade"], rows) == {"text": "said", "number": "grade"}


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (["latin", "cyrillic"], {"source": "latin", "target": "cyrillic"}),
        (["id", "latin", "cyrillic"], {"source": "latin", "target": "cyrillic"}),
        (["latin", "greek", "cyrillic"], {"source": "COLUMN", "target": "COLUMN"}),
        (["target", "note"], {"source": "note", "target": "target"}),
    ],
)
def test_without_rows_columns_are_taken_in_their_order(header, found) -> None:
    assert likely_columns(PAIR, header) == found
