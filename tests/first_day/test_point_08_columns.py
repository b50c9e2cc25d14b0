"""Several input columns need no script of one's own."""

from tests.first_day.conftest import write

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
