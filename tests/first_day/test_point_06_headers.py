"""`--data.header yes` alone skips the header and counts columns."""

from tests.first_day.conftest import PAIRS, write


def test_names_that_are_not_roles(train, work) -> None:
    write(work / "named.tsv", [("latin", "cyrillic"), *PAIRS])
    code, _, err = train("--data.header", "yes", data="named.tsv")
    assert code == 0, err
    assert f"Read {len(PAIRS)} examples" in err


def test_how_to_name_them(train, work) -> None:
    write(work / "named.csv", [("id", "latin", "cyrillic"), *(("1", *pair) for pair in PAIRS)], between=",")
    code, _, err = train("--data.header", "yes", data="named.csv")
    assert code == 2
    assert "3 columns in its header ('id', 'latin', 'cyrillic'), and 2 are needed (source, target)" in err
    assert "--data.columns source=" in err
    assert train("--data.columns", "source=latin,target=cyrillic", data="named.csv")[0] == 0


def test_how_to_name_those_of_objects(train, work) -> None:
    (work / "named.jsonl").write_text('{"latin": "bado", "cyrillic": "бадо"}\n' * 3)
    code, _, err = train(data="named.jsonl")
    assert code == 2
    assert "Say which is which, as --data.columns source=latin,target=cyrillic." in err
