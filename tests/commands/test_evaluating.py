"""The options of `saccade evaluate`."""

import json

import pytest

from saccade.commands.evaluating import evaluation_json
from saccade.evaluation import Figure
from saccade.runs import Evaluation
from tests.commands.conftest import PAIRS


@pytest.fixture
def table(tmp_path) -> str:
    rows = [f"{number},{target},{source}" for number, (source, target) in enumerate(PAIRS[:17])]
    (tmp_path / "test.csv").write_text("\n".join(["id,out,in", *rows]) + "\n")
    (tmp_path / "bad.csv").write_text("\n".join(["id,out,in", *rows[:5], "5,x"]) + "\n")
    (tmp_path / "plain.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS[:17]))
    return str(tmp_path / "test.csv")


def figures(out: str) -> dict:
    found = json.loads(out)
    del found["seconds"]
    return found


@pytest.mark.parametrize(
    "flags",
    [
        ["--columns", "source=in,target=out"],
        ["--columns", "source=2, target=1", "--header", "yes"],
    ],
)
def test_columns_by_name_and_number(flags, run, call, table) -> None:
    code, out, err = call("evaluate", run, "--data", table, *flags, "--json")
    assert code == 0, err
    plain = call("evaluate", run, "--data", table.replace("test.csv", "plain.tsv"), "--json")
    assert figures(out) == figures(plain[1])


def test_bad_rows(run, call, table) -> None:
    arguments = [
        "evaluate",
        run,
        "--data",
        table.replace("test.csv", "bad.csv"),
        "--columns=source=in,target=out",
        "--json",
    ]
    code, _, err = call(*arguments)
    assert code == 2
    assert "line 7" in err
    code, out, err = call(*arguments, "--bad-rows", "skip")
    assert code == 0
    assert (figures(out)["examples"], figures(out)["skipped"]) == (5, 1)
    assert "Skipped 1 bad row" in err


def test_search_options(run, call, table) -> None:
    data = ["--data", table.replace("test.csv", "plain.tsv"), "--json"]
    code, out, _ = call("evaluate", run, *data, "--max-length", "1", "--length-penalty", "0", "--coverage-penalty=0.2")
    assert code == 0
    assert figures(out)["figures"]["exact_match"] == 0


def test_other_figures_than_those_of_the_run(run, call, table) -> None:
    data = ["--data", table.replace("test.csv", "plain.tsv")]
    code, out, err = call("evaluate", run, *data, "--metrics", "chrf, exact_match", "--json")
    assert code == 0, err
    assert list(figures(out)["figures"]) == ["chrf", "exact_match"]
    code, _, err = call("evaluate", run, *data, "--metrics", "aer")
    assert code == 2
    assert "aer needs a column 'alignment'" in err
    assert "2 columns, but at least 3 are needed (source, target, alignment)" in err


def test_a_figure_may_need_a_column_that_training_did_not(run, call, tmp_path) -> None:
    rows = [f"{source},{target},0-0" for source, target in PAIRS[:3]]
    (tmp_path / "links.csv").write_text("\n".join(["in,out,links", *rows]) + "\n")
    data = ["--data", str(tmp_path / "links.csv"), "--columns", "source=in,target=out,alignment=links", "--json"]
    code, out, err = call("evaluate", run, *data, "--metrics", "aer")
    assert code == 0, err
    assert list(figures(out)["figures"]) == ["aer"]
    code, _, err = call("evaluate", run, *data)
    assert code == 2
    assert "reads no 'alignment'" in err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--columns", "source=in"], "say which column is the target"),
        (["--columns", "source=in,targt=out"], "generation reads no 'targt'. Did you mean 'target'?"),
        (["--columns", "in,out"], "--columns takes roles with their columns, as source=in,target=out"),
        (["--columns", "source=in,target=ot"], "Did you mean 'out'"),
        (["--header", "no", "--columns", "source=in,target=out"], "test.csv is read without a header"),
        (["--header", "maybe"], "--header must be yes or no, got 'maybe'"),
        (["--bad-rows", "ignore"], "--bad-rows must be error or skip, got 'ignore'"),
        (["--beam", "0"], "beam must be from 1 to 1000, got 0"),
        (["--vary", "beam=3,0"], "beam must be from 1 to 1000, got 0"),
        (["--vary", "beam=3,x"], "--vary takes an option and numbers, as in beam=1,5,10; got 'beam=3,x'"),
        (["--metrics", "blue,chfr"], "Unknown metrics 'blue', 'chfr'. Did you mean 'bleu', 'chrf'?"),
        (["--metrics", ""], "Unknown metric ''. Choose from"),
        (["--by-length", "0"], "--by-length must be 1 or more, got 0"),
        (["--workers", "0"], "--workers must be 1 or more, got 0"),
        (["--batch-size", "0"], "--batch-size must be 1 or more, got 0"),
        (["--max-length", "0"], "max_length must be from 1 to 10000, got 0"),
        (["--max-length", "-3"], "max_length must be from 1 to 10000, got -3"),
        (["--length-penalty", "-1"], "length_penalty must be from 0.0 to 100.0, got -1.0"),
        (["--length-penalty", "nan"], "length_penalty: nan is not a finite number"),
        (["--coverage-penalty", "inf"], "coverage_penalty: inf is not a finite number"),
        (["--plot", "a.gif", "--by-length", "3"], "no picture has the suffix '.gif'"),
        (["--plot", "a.png"], "--by-length"),
    ],
)
def test_wrong_options_exit_with_2(flags, message, run, call, table) -> None:
    code, out, err = call("evaluate", run, "--data", table, *flags)
    assert (code, out) == (2, "")
    assert message in err


def test_names_for_the_columns_of_a_file_without_a_header(run, call, table) -> None:
    plain = table.replace("test.csv", "plain.tsv")
    code, out, err = call("evaluate", run, "--data", plain, "--columns", "source=en,target=de")
    assert (code, out) == (2, "")
    assert "plain.tsv has no column 'en'" in err
    assert repr(PAIRS[0][0]) in err  # what was taken for the header
    assert "source=0,target=1" in err
    assert call("evaluate", run, "--data", plain, "--columns", "source=0,target=1")[0] == 0


def test_json_says_how_it_was_searched(run, call, table) -> None:
    plain = table.replace("test.csv", "plain.tsv")
    flags = ["--beam", "3", "--length-penalty", "0.2", "--max-length", "4"]
    found = json.loads(call("evaluate", run, "--data", plain, *flags, "--json")[1])
    assert found["search"] == "beam search (beam 3, length penalty 0.2, max length 4)"
    assert found["remarks"] == ["17 of 17 answers were cut at their maximum length: see max_length."]


def test_sources_that_are_not_read_to_their_end_are_told(run, call, tmp_path) -> None:
    (tmp_path / "long.tsv").write_text(f"{'dodo su ' * 700}\todod\nsu\tus\n")
    code, out, err = call("evaluate", run, "--data", str(tmp_path / "long.tsv"), "--max-length", "3", "--json")
    assert code == 0
    assert json.loads(out)["remarks"][-1:] == ["1 of 2 inputs was too long and was truncated."]
    assert "1 of 2 inputs was too long" in err


def test_json_has_null_for_a_figure_that_is_undefined() -> None:
    found = Evaluation({"r2": Figure(float("nan"), "of constants")}, 1, 0.0, [], 0, [], {})
    assert json.loads(json.dumps(evaluation_json(found), allow_nan=False))["figures"] == {"r2": None}
