"""Alignments are written and read."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.interpretation.alignments import FORMATS, Alignment, format_alignment, read_alignments

LINKS = st.sets(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=7)


def written(tmp_path, text: str, name: str = "a.align"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_pharaoh(tmp_path) -> None:
    path = written(tmp_path, "0-0 2p1  1-1 \n\n3-3")
    first, empty, last = read_alignments(path)
    assert first == Alignment.of([(0, 0), (1, 1)], [(2, 1)])
    assert first.possible == {(0, 0), (1, 1), (2, 1)}
    assert empty == Alignment.of([])
    assert last == Alignment.of([(3, 3)])
    with pytest.raises(ValueError, match=r"a\.align, line 1: '0-0' has a word 0, but .* omit one_based"):
        read_alignments(path, one_based=True)
    assert read_alignments(written(tmp_path, "1-1 3p2 2-2"), one_based=True) == [first]


def test_naacl(tmp_path) -> None:
    text = "0001 1 1 S\n0001 3 2 P 0.7\n1 2 2\n\n3 4 4 S\n3 0 2 S\n"
    found = read_alignments(written(tmp_path, text, "a.naacl"))
    assert found == [Alignment.of([(0, 0), (1, 1)], [(2, 1)]), Alignment.of([]), Alignment.of([(3, 3)])]
    assert read_alignments(tmp_path / "a.naacl", sentences=5)[3:] == [Alignment.of([])] * 2
    with pytest.raises(ValueError, match=r"a\.naacl, line 5: sentence 3 must be from 1 to 2"):
        read_alignments(tmp_path / "a.naacl", sentences=2)


@given(pairs=st.lists(st.tuples(LINKS, LINKS), min_size=1, max_size=5))
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("one_based", [False, True])
def test_what_is_written_is_read(tmp_path_factory, format, one_based, pairs) -> None:
    alignments = [Alignment.of(sure, possible) for sure, possible in pairs]
    lines = (format_alignment(a, format, number=n, one_based=one_based) for n, a in enumerate(alignments, start=1))
    path = written(tmp_path_factory.mktemp("alignments"), "".join(f"{line}\n" for line in lines))
    assert read_alignments(path, format=format, one_based=one_based, sentences=len(pairs)) == alignments


def test_a_link_that_is_sure_and_possible_is_sure(tmp_path) -> None:
    assert read_alignments(written(tmp_path, "0p0 0-0")) == [Alignment.of([(0, 0)])]
    assert format_alignment(Alignment.of([(0, 0)], [(0, 0)])) == "0-0"


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("a.align", "0-0 1:2", "line 2: '1:2' is not a link. Write links as 0-2"),
        ("a.align", "0-0 -1-2", "line 2: '-1-2' is not a link"),
        ("a.align", "0-0 1-2-3", "line 2: '1-2-3' is not a link"),
        ("a.talp", "0--1", "line 2: '0--1' is not a link"),
        ("a.naacl", "1 1", "line 2: '1 1' is not a link in NAACL format"),
        ("a.wa", "1 1 x S", "line 2: '1 1 x S' is not a link in NAACL format"),
        ("a.naacl", "1 1 1 Q", "line 2: '1 1 1 Q' is not a link in NAACL format"),
        ("a.naacl", "0 1 1 S", "line 2: sentence 0 must be from 1 to 1000000"),
        ("a.json", '{"possible": []}', "line 2 is not an alignment. Each line must be"),
        ("a.jsonl", '{"sure": [[0]]}', "line 2 is not an alignment"),
        ("a.jsonl", '{"sure": [[0, -1]]}', "line 2 is not an alignment"),
        ("a.jsonl", "[1, 2]", "line 2 is not an alignment"),
        ("a.jsonl", "{", "line 2 is not an alignment"),
    ],
)
def test_bad_lines_are_named_with_the_fix(tmp_path, name, line, message) -> None:
    good = {"a.naacl": "1 1 1 S", "a.wa": "1 1 1 S", "a.json": '{"sure": []}', "a.jsonl": '{"sure": []}'}
    path = written(tmp_path, f"{good.get(name, '0-0')}\n{line}\n", name)
    with pytest.raises(ValueError, match=re.escape(f"{path}, {message}")):
        read_alignments(path)


def test_other_mistakes(tmp_path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"0-0\n\xff\xfe\n")
    with pytest.raises(ValueError, match="binary, line 2: the alignment is not UTF-8"):
        read_alignments(path)
    with pytest.raises(ValueError, match="Did you mean 'naacl'"):
        read_alignments(path, format="nacl")
    with pytest.raises(ValueError, match="of 2 sentence pairs, not of 3"):
        read_alignments(written(tmp_path, "0-0\n1-1\n"), sentences=3)
