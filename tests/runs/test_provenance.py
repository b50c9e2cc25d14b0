"""The record of a run's starts: damage is named, kept, and no reason to stop."""

import json

import pytest

from saccade.runs.provenance import Provenance, Start

WHOLE = Provenance({"train": "a.tsv"}, 5, 1, {"too long": 3}, 2, [Start("saccade train x", {"torch": "2"})])


def test_it_comes_back(tmp_path):
    assert Provenance.read(tmp_path) is None
    WHOLE.save(tmp_path)
    assert Provenance.read(tmp_path) == WHOLE
    cut = WHOLE._replace(truncated={"text with more than max_sentences=7 sentences": 3})
    cut.save(tmp_path)
    assert Provenance.read(tmp_path) == cut


def test_records_of_earlier_versions_lack_what_was_truncated(tmp_path):
    WHOLE.save(tmp_path)
    path = tmp_path / "provenance.json"
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "truncated"}))
    assert Provenance.read(tmp_path) == WHOLE


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: {k: v for k, v in d.items() if k != "train"}, "train is missing"),
        (lambda d: {k: v for k, v in d.items() if k != "starts"}, "starts is missing"),
        (lambda d: {**d, "train": "5"}, 'train is "5", not a whole number'),
        (lambda d: {**d, "train": -5}, "train is -5, not 0 or more"),
        (lambda d: {**d, "truncated": {"long": -1}}, "truncated.long is -1, not 0 or more"),
        (lambda d: {**d, "extra": 5}, "extra is not a key that belongs there"),
        (lambda d: {**d, "sources": []}, "sources is a list, not an object"),
        (lambda d: {**d, "sources": {"train": 7}}, "sources.train is 7, not a string"),
        (lambda d: {**d, "starts": [7]}, r"starts\[0\] is 7, not an object"),
        (lambda d: {**d, "starts": [{"command": "x"}]}, r"starts\[0\].versions is missing"),
        (lambda d: {**d, "starts": [{"command": None, "versions": {}}]}, r"starts\[0\].command is null"),
        (lambda d: [], "its content is a list, not an object"),
    ],
)
def test_damage_is_named_and_kept(tmp_path, change, complaint):
    WHOLE.save(tmp_path)
    path = tmp_path / "provenance.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    damaged = path.read_text()
    with pytest.warns(UserWarning, match=rf"provenance.json is damaged: {complaint}.*A new record begins"):
        assert Provenance.read(tmp_path) is None
    assert (tmp_path / "provenance.json.damaged").read_text() == damaged
