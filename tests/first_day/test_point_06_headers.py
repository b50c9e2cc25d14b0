"""`--data.header yes` alone skips the header and counts columns."""

import json

import pyarrow
import pytest

import saccade
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


def test_the_training_file_can_be_predicted_as_it_was_read(train, work, call) -> None:
    write(work / "named.tsv", [("latin", "cyrillic"), *PAIRS])
    assert train("--data.header", "yes", data="named.tsv")[0] == 0
    code, out, err = call("predict", "run", "named.tsv")
    assert code == 0, err
    assert out.count("\n") == len(PAIRS)
    assert "named.tsv has 2 columns, and the first is read as source: 'latin', 'cyrillic'." in err
    code, out, err = call("predict", "run", "rivers.tsv", "--header", "no")
    assert code == 0, err
    assert out.count("\n") == len(PAIRS)
    code, _, err = call("predict", "run", "rivers.tsv", "--header", "no", "--columns", "cyrillic")
    assert "--columns takes roles with their columns, as source=cyrillic; got 'cyrillic'." in err


EMPTY_LINES = {
    "a.tsv": "bado\tx\n\ngeki\tx\n",
    "a.csv": "bado,x\n\ngeki,x\n",
    "a.jsonl": '{"source": "bado"}\n\n{"source": "geki"}\n',
}


def test_an_empty_line_of_a_table_is_named_in_predict_too(train, work, call) -> None:
    assert train()[0] == 0
    for name, text in EMPTY_LINES.items():
        (work / name).write_text(text)
        code, out, err = call("predict", "run", name)
        assert (code, out) == (2, "")
        assert f"{name}, line 2: the line is empty. --bad-rows skip leaves such lines out." in err
        code, out, err = call("predict", "run", name, "--bad-rows", "skip")
        assert (code, out.count("\n")) == (0, 2), err
        assert f"Skipped 1 bad row:\n  {name}, line 2: the line is empty" in err
    (work / "a.txt").write_text("bado\n\ngeki\n")
    code, out, err = call("predict", "run", "a.txt")
    assert (code, out.splitlines()[1]) == (0, "")
    assert out.count("\n") == 3
    assert "Input 2 is empty, so its answer is empty too." in err


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
    assert "wide.tsv has 3 columns; the first are read as source and target" in err
    assert "as --data.columns source=0,target=2; 0+1 reads two as one text." in err


def test_the_advice_about_a_wide_header_can_be_followed(train, work) -> None:
    write(work / "wide.tsv", [("amount", "unit", "target"), *((a, "7 kg", b) for a, b in PAIRS)])
    warning = next(line for line in train(data="wide.tsv")[2].splitlines() if "looks like a header" in line)
    assert "--data.columns source=amount,target=target; if it is an example, set --data.header no" in warning
    assert "--data.header yes" not in warning


TICKETS = [
    {"ticket": f"T-{n}", "opened": f"2024-0{1 + n % 9}-1{n % 7}", "message": f"{latin} is late", "team": "AB"[n % 2]}
    for n, (latin, _) in enumerate(PAIRS)
]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_advice_names_columns_that_fit(suffix, work, call) -> None:
    if suffix == "csv":
        write(work / "tickets.csv", [TICKETS[0].keys(), *(row.values() for row in TICKETS)], between=",")
    elif suffix == "jsonl":
        (work / "tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TICKETS))
    else:
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(TICKETS), "tickets.parquet")
    header = ["--data.header", "yes"] if suffix == "csv" else []
    code, _, err = call("validate", "classification/pooling", "--data.train", f"tickets.{suffix}", *header)
    assert code == 2
    assert "as --data.columns text=message,label=team." in err


def test_a_column_that_is_not_there_gets_the_same_advice(work, call) -> None:
    write(work / "tickets.csv", [TICKETS[0].keys(), *(row.values() for row in TICKETS)], between=",")
    columns = ["--data.text", "body", "--data.label", "queue"]
    code, _, err = call("validate", "classification/pooling", "--data.train", "tickets.csv", *columns)
    assert code == 2
    assert "tickets.csv has no column 'body' or 'queue'." in err
    assert "Name the columns, as --data.columns text=message,label=team." in err


def test_a_misspelt_column_is_no_reason_to_doubt_the_header(work, call) -> None:
    write(work / "tickets.csv", [TICKETS[0].keys(), *(row.values() for row in TICKETS)], between=",")
    columns = ["--data.text", "mesage", "--data.label", "team"]
    err = call("validate", "classification/pooling", "--data.train", "tickets.csv", *columns)[2]
    assert "has no column 'mesage'. Did you mean 'message'? Its header has: 'ticket'," in err
    assert "no header" not in err


def test_the_advice_by_number(work, call) -> None:
    write(work / "tickets.csv", [row.values() for row in TICKETS], between=",")
    small = ["--model.embedding_dim", "4", "--model.hidden_dim", "4", "--trainer.max_steps", "1", "--output", "run"]
    err = call("train", "classification/pooling", "--data.train", "tickets.csv", *small)[2]
    assert "tickets.csv has 4 columns; the first are read as text and label: 'T-0'," in err
    assert "give their numbers, counted from 0, as --data.columns text=2,label=3;" in err


def test_a_wide_header_gets_one_warning(work, call) -> None:
    write(work / "tickets.csv", [TICKETS[0].keys(), *(row.values() for row in TICKETS)], between=",")
    small = ["--model.embedding_dim", "4", "--model.hidden_dim", "4", "--trainer.max_steps", "1", "--output", "run"]
    err = call("train", "classification/pooling", "--data.train", "tickets.csv", *small)[2]
    said = "Of its 4 columns the first are read as text and label. Name the columns, as --data.columns text=message,"
    assert said in err
    assert "tickets.csv has 4 columns" not in err


def test_the_advice_in_memory(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"columns=\{'text': 'message', 'label': 'team'\}"):
        saccade.train("classification/pooling", data=TICKETS, output=tmp_path / "run")


def test_a_first_line_that_is_no_header_is_not_suggested_as_one(train, work) -> None:
    rows = "".join(f"{n}\tthe screen is still not repaired, {n} days on\t{n % 2}\n" for n in range(20))
    (work / "bare.tsv").write_text(rows)
    code, _, err = train("--data.columns", "source=message,target=topic", data="bare.tsv")
    assert code == 2
    assert "has no column 'message' or 'topic'." in err
    assert "If the file has no header, give numbers counted from 0: --data.columns source=" in err
    assert "Name the columns" not in err


def test_columns_of_a_run_that_another_file_lacks(train, work, call) -> None:
    write(work / "three.tsv", [(a, a, b) for a, b in PAIRS])
    assert train("--data.columns", "source=0+1,target=2", data="three.tsv")[0] == 0
    (work / "one.tsv").write_text("bado\n")
    code, _, err = call("predict", "run", "one.tsv")
    assert code == 2
    assert "one.tsv, line 1: 1 column, but at least 2 are needed. Separate columns by one tab." in err
    assert call("predict", "run", "one.tsv", "--columns", "source=0")[0] == 0
    (work / "named.jsonl").write_text('{"source": "bado", "target": "x"}\n')
    code, _, err = call("evaluate", "run", "--data", "named.jsonl")
    assert code == 2
    assert "have names: give them in place of numbers, as --columns source=COLUMN,target=COLUMN." in err


def test_the_advice_keeps_columns_that_are_read_as_one_text(train, call, work) -> None:
    rows = [(latin, f"T{number % 3}", cyrillic) for number, (latin, cyrillic) in enumerate(PAIRS)]
    write(work / "three.tsv", rows)
    write(work / "head.tsv", [("name", "tag", "written"), *rows])
    assert train("--data.columns", "source=0+1,target=2", data="three.tsv")[0] == 0
    code, _, err = call("evaluate", "run", "--data", "head.tsv")
    assert code == 0
    assert "looks like a header" in err
    assert "Name the columns, as --columns source=name+tag,target=written" in err
