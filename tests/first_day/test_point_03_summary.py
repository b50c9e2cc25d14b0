"""No silent loss of data: what was read, left out and learned is printed before training."""

import re

from tests.first_day.conftest import PAIRS, write


def test_the_summary_counts_what_is_left_out(train) -> None:
    code, _, err = train("--task.source", "{class: text, tokeniser: char, max_length: 5}")
    assert code == 0, err
    long = sum(len(source) > 5 for source, _ in PAIRS)
    assert f"Read {len(PAIRS)} examples from rivers.tsv." in err
    left_out = int(re.search(r"Left out (\d+): source longer than max_length=5 tokens", err)[1])
    assert 0 < left_out <= long
    assert "WARNING: " in err
    assert "of the training examples are left out" in err
    assert re.search(r"source: \d+ pieces \(char\)", err)
    assert re.search(r"Model: RNNSearch, [\d,]+ parameters", err)


def test_a_vocabulary_larger_than_the_data(train) -> None:
    err = train("--task.source", "{class: text, tokeniser: {class: bpe, vocab_size: 20000}}")[2]
    assert re.search(r"WARNING: source.*: the data yields \d+ pieces, not vocab_size=20,000", err)


def test_a_vocabulary_that_both_sides_share_gets_one_warning(train) -> None:
    err = train("--task.source", "{class: text, tokeniser: bpe}", "--task.joint", "true")[2]
    assert err.count("not vocab_size=8,000") == 1
    assert "WARNING: source and target: the data yields" in err


def test_how_many_are_held_out_is_not_a_share_that_differs(train) -> None:
    err = train()[2]
    assert re.search(r"validating on \d+ \(held out from the training examples\)", err)


def test_unknown_pieces(train, call) -> None:
    assert train()[0] == 0
    err = call("predict", "run", given="bado\nbaßdo\n")[2]
    assert "1 input has parts that the model has never seen and reads as unknown: 'ß'" in err


def test_an_undeclared_header(train, work) -> None:
    write(work / "named.tsv", [("source", "target"), *PAIRS])
    err = train(data="named.tsv")[2]
    assert "WARNING: named.tsv, line 1 looks like a header but is read as an example: 'source', 'target'." in err
    assert "Name the columns, as --data.columns source=source,target=target, or set --data.header yes" in err


def test_columns_that_are_not_read_are_reported(train, work) -> None:
    wide = (work / "rivers.tsv").read_text().replace("\n", "\textra\n")
    (work / "wide.tsv").write_text(wide)
    err = train("--data.train", "wide.tsv")[2]
    assert "WARNING: wide.tsv has 3 columns; the first are read as source and target" in err
    assert "To read others, give their numbers, counted from 0, as --data.columns source=COLUMN,target=COLUMN;" in err


def test_a_header_above_numbers_is_reported_in_a_wide_table(train, work) -> None:
    rows = [(str(n), ("km", "cm")[n % 2], str(n * 10)) for n in range(60)]
    write(work / "units.tsv", [("quantity", "unit", "metres"), *rows])
    err = train(data="units.tsv")[2]
    assert "WARNING: units.tsv, line 1 looks like a header but is read as an example: 'quantity', 'unit'," in err


def test_a_header_of_words_above_words_is_reported(train, work) -> None:
    write(work / "plurals.tsv", [("singular", "plural"), *((latin, f"{latin}s") for latin, _ in PAIRS)])
    err = train(data="plurals.tsv")[2]
    assert "WARNING: plurals.tsv, line 1 looks like a header but is read as an example: 'singular', 'plural'." in err


def test_too_few_examples(train, work) -> None:
    said = "WARNING: That is enough to try out the command, but too little to learn from."
    write(work / "tiny.tsv", PAIRS[:3])
    code, _, err = train(data="tiny.tsv")
    assert code == 0, err
    assert said in err
    write(work / "small.tsv", PAIRS[:20])
    assert said not in train("--output", "small", data="small.tsv")[2]
