"""The options of `saccade evaluate`."""

import json

import pytest

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


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--columns", "source=in"], "say which column is the target"),
        (["--columns", "source=in,targt=out"], "Did you mean 'target'"),
        (["--columns", "in,out"], "as source=en,target=de; got 'in,out'"),
        (["--columns", "source=in,target=ot"], "Did you mean 'out'"),
        (["--header", "maybe"], "--header is yes or no, got 'maybe'"),
        (["--bad-rows", "ignore"], "data.bad_rows must be 'error' or 'skip', got 'ignore'"),
        (["--beam", "0"], "beam must be 1 or more"),
        (["--plot", "a.gif", "--by-length", "3"], "no picture has the suffix '.gif'"),
        (["--plot", "a.png"], "--by-length"),
    ],
)
def test_wrong_options_exit_with_2(flags, message, run, call, table) -> None:
    code, out, err = call("evaluate", run, "--data", table, *flags)
    assert (code, out) == (2, "")
    assert message in err
