"""Folders in the TU format."""

import pytest

from saccade.data.errors import BadRow, DataError
from saccade.data.readers import TU, FolderOfFiles
from saccade.data.readers.columns import Columns
from saccade.data.readers.sources import reader_for

FILES = {
    "A": "1, 2\n2, 1\n3, 4\n4, 5\n",
    "graph_indicator": "1\n1\n3\n3\n3\n",
    "graph_labels": "1\n-1\n1\n",
    "node_labels": "0\n7\n0\n0\n1\n",
    "node_attributes": "0.5, 1\n2, 3\n4, 5\n6, 7\n8, 9\n",
    "edge_labels": "0\n0\n1\n2\n",
}


def folder(path, **changes):
    for name, text in {**FILES, **changes}.items():
        if text is not None:
            (path / f"TOY_{name}.txt").write_text(text)
    return str(path)


def rows(source):
    return list(TU(source, Columns(None, ["graph", "label"])).rows())


def test_graphs_with_their_labels(tmp_path):
    source = folder(tmp_path)
    assert reader_for(source) is TU
    first, second, third = rows(source)
    assert first == (
        1,
        {
            "graph": {
                "nodes": 2,
                "edges": [[0, 1], [1, 0]],
                "tags": ["0", "7"],
                "features": [[0.5, 1.0], [2.0, 3.0]],
                "edge_tags": ["0", "0"],
            },
            "label": "1",
        },
    )
    assert (second[1]["graph"]["nodes"], second[1]["label"]) == (0, "-1")
    assert third[1]["graph"]["edges"] == [[0, 1], [1, 2]]
    assert third[1]["graph"]["edge_tags"] == ["1", "2"]


def test_only_two_files_are_needed(tmp_path):
    source = folder(tmp_path, **dict.fromkeys(list(FILES)[2:]))
    assert rows(source)[0] == (1, {"graph": {"nodes": 2, "edges": [[0, 1], [1, 0]]}})


def test_other_folders_are_folders(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    assert reader_for(str(tmp_path)) is FolderOfFiles


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": "1, 2\n2, 9\n", "edge_labels": None}, "TOY_A.txt, line 2: an edge from 2 to 9"),
        ({"A": "1, 2\n2, 3\n", "edge_labels": None}, "line 2: an edge from 2 to 3.*within one graph"),
        ({"A": "1, 2\n2\n", "edge_labels": None}, "line 2: 1 columns"),
        ({"A": "1, x\n", "edge_labels": None}, "line 1: 'x' is not a whole number"),
        ({"graph_indicator": "1\n3\n1\n"}, "must list the graphs of all nodes in order"),
        ({"graph_labels": "1\n"}, "TOY_graph_labels.txt has 1 lines instead of 3"),
        ({"node_attributes": "a\n"}, "line 1: not numbers"),
    ],
)
def test_damage(tmp_path, changes, message):
    with pytest.raises((BadRow, DataError), match=message):
        rows(folder(tmp_path, **changes))


def test_a_huge_number_of_a_graph_takes_no_memory(tmp_path):
    with pytest.raises(DataError, match="names graph 900000000000, but has 5 nodes"):
        rows(folder(tmp_path, graph_indicator="1\n1\n3\n3\n900000000000\n"))
