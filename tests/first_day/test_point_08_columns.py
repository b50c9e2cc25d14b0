"""Several input columns need no script of one's own."""

from tests.first_day.conftest import PAIRS, write

ROWS = [
    (f"ba{letter}", tag, f"ba{letter}{'i' if tag == 'PL' else 'o'}") for letter in "dgklmnprst" for tag in ("PL", "SG")
]


def test_lemma_features_form(train, work, call) -> None:
    write(work / "forms.tsv", ROWS)
    code, _, err = train("--data.columns", "source=0+1,target=2", data="forms.tsv")
    assert code == 0, err
    assert call("evaluate", "run", "--data", "forms.tsv")[0] == 0
    code, out, err = call("predict", "run", "forms.tsv", "--columns", "source=0+1")
    assert (code, out.count("\n")) == (0, len(ROWS)), err


def test_a_role_that_the_model_does_not_have(train, call) -> None:
    assert train()[0] == 0
    for command in (["evaluate", "run", "--data", "rivers.tsv"], ["predict", "run", "rivers.tsv"]):
        code, _, err = call(*command, "--columns", "source=0,targte=1")
        assert code == 2
        assert "no 'targte'. Did you mean 'target'?" in err


def test_the_hint_for_a_file_without_a_header_counts_columns_of_several_parts(train, work, call) -> None:
    write(work / "forms.tsv", [("lemma", "tag", "form"), *ROWS])
    assert train("--data.columns", "source=lemma+tag,target=form", data="forms.tsv")[0] == 0
    write(work / "bare.tsv", ROWS)
    code, _, err = call("evaluate", "run", "--data", "bare.tsv")
    assert code == 2
    assert "source=0+1,target=2" in err


def test_a_folder_is_not_a_text(train, work, call) -> None:
    assert train()[0] == 0
    (work / "texts").mkdir()
    (work / "texts" / "a.txt").write_text("bado\n")
    code, out, err = call("predict", "run", "texts")
    assert (code, out) == (2, "")
    assert "texts is a folder" in err
    code, out, _ = call("predict", "run", "texts", "--columns", "source=name")
    assert (code, out.count("\n")) == (0, 1)


def test_a_text_file_has_the_joined_text_itself(train, call, work) -> None:
    write(work / "three.tsv", [(latin, f"T{number % 3}", cyrillic) for number, (latin, cyrillic) in enumerate(PAIRS)])
    assert train("--data.columns", "source=0+1,target=2", data="three.tsv")[0] == 0
    (work / "lines.txt").write_text("bado T0\nkilu T1\n", encoding="utf-8")
    code, out, err = call("predict", "run", "lines.txt")
    assert code == 0, err
    assert len(out.splitlines()) == 2
