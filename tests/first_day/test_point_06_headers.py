"""`--data.header yes` alone skips the header and counts columns."""

import pytest

from tests.first_day.conftest import PAIRS, write


def test_names_that_are_not_roles(train, work) -> None:
    write(work / "named.tsv", [("latin", "cyrillic"), *PAIRS])
    code, _, err = train("--data.header", "yes", data="named.tsv")
    assert code == 0, err
    assert f"Read {len(PAIRS)} examples" in err
    assert "  Columns, in their order: 'latin' as source, 'cyrillic' as target. If that is wrong, name them" in err


@pytest.mark.parametrize(("header", "code"), [(("source", "cyrillic"), 0), (("cyrillic", "source"), 2)])
def test_a_header_of_which_one_name_is_a_role(header, code, train, work) -> None:
    write(work / "named.tsv", [header, *PAIRS])
    found, _, err = train("--data.header", "yes", data="named.tsv")
    assert found == code
    assert (
        "'cyrillic' as target" if code == 0 else "say which, as --data.columns source=source,target=cyrillic"
    ) in err


def test_how_to_name_them(train, work) -> None:
    write(work / "named.csv", [("id", "latin", "cyrillic"), *(("1", *pair) for pair in PAIRS)], between=",")
    code, _, err = train("--data.header", "yes", data="named.csv")
    assert code == 2
    assert "3 columns in its header ('id', 'latin', 'cyrillic'), and 2 are needed (source, target)" in err
    assert "--data.columns source=latin,target=cyrillic" in err
    assert train("--data.columns", "source=latin,target=cyrillic", data="named.csv")[0] == 0


def test_how_to_name_those_of_objects(train, work) -> None:
    (work / "named.jsonl").write_text('{"latin": "bado", "cyrillic": "бадо"}\n' * 3)
    code, _, err = train(data="named.jsonl")
    assert code == 2
    assert "Say which is which, as --data.columns source=latin,target=cyrillic." in err


def test_an_undeclared_header_is_named_as_it_was_given(train, work) -> None:
    write(work / "named.tsv", [("cyrillic", "id", "latin"), *((b, "7", a) for a, b in PAIRS)])
    code, _, err = train("--data.columns", "source=2,target=0", data="named.tsv")
    assert code == 0, err
    assert "line 1 looks like a header" in err
    assert "Name the columns, as --data.columns source=latin,target=cyrillic" in err


def test_a_column_that_is_not_there(train) -> None:
    code, _, err = train("--data.columns", "source=0,target=5")
    assert code == 2
    assert "rivers.tsv, line 1: there is no column 5. It has 2 columns, counted from 0." in err


def test_files_are_read_with_the_options_of_training(train, work, call) -> None:
    assert train()[0] == 0
    write(work / "named.tsv", [("x", "cyrillic", "latin"), *(("1", b, a) for a, b in PAIRS[:5])])
    options = ("--data.columns", "source=2,target=1", "--data.header", "yes", "--data.bad_rows", "skip")
    code, out, err = call("evaluate", "run", "--data", "named.tsv", *options)
    assert code == 0, err
    assert "5 examples" in out


def test_the_advice_about_a_wide_table_differs_from_what_is_done(train, work) -> None:
    write(work / "wide.tsv", [(a, "7", b) for a, b in PAIRS])
    code, _, err = train(data="wide.tsv")
    assert code == 0, err
    assert "wide.tsv has 3 columns, and the first are read as source and target" in err
    assert "as --data.columns source=0,target=2; 0+1 reads two as one text." in err


def test_the_advice_about_a_wide_header_can_be_followed(train, work) -> None:
    write(work / "wide.tsv", [("amount", "unit", "target"), *((a, "7 kg", b) for a, b in PAIRS)])
    warning = next(line for line in train(data="wide.tsv")[2].splitlines() if "looks like a header" in line)
    assert "--data.columns source=amount,target=target; if it is an example, set --data.header no" in warning
    assert "--data.header yes" not in warning
