"""Messages of a first day that name the setting to change, the next command and the right number of things."""

import json
import warnings

import pytest

import saccade
from saccade.data.cell import Cell
from saccade.data.errors import DataError
from saccade.fields import Image, OptionalField, Text
from saccade.fields.links import Links
from saccade.interpretation.alignments import read_alignments
from saccade.training.processes import check_device_name
from tests.first_day.conftest import PAIRS, write

REVIEWS = [{"body": f"{'good' if n % 2 else 'bad'} {n % 7}", "stars": str(n % 2)} for n in range(40)]
TINY = ["--model.embedding_dim", "4", "--trainer.max_steps", "2", "--trainer.validate_every", "2"]


def write_rows(path, rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_a_lost_model_is_made_again_from_its_checkpoint(train, work, call) -> None:
    assert train()[0] == 0
    model = work / "run" / "model.safetensors"
    whole = model.read_bytes()
    for damage in (model.unlink, lambda: model.write_bytes(whole[:100])):
        damage()
        code, _, err = call("predict", "run", "--input", "ba")
        assert code == 2
        assert "Make it again from the last checkpoint (saccade train --resume run), or copy the run again;" in err
        assert call("train", "--resume", "run")[0] == 0
        assert model.read_bytes() == whole
    (work / "run" / "task" / "source" / "tokeniser.json").write_text("{}")
    assert "Copy the run again from its origin;" in call("predict", "run", "--input", "ba")[2]


def test_the_role_of_a_lost_column(work, call) -> None:
    write_rows(work / "reviews.jsonl", REVIEWS)
    columns = ["--data.text", "body", "--data.label", "stars"]
    code, _, err = call(
        "train", "classification/pooling", "--data.train", "reviews.jsonl", "--output", "run", *columns, *TINY
    )
    assert code == 0, err
    write_rows(work / "in.jsonl", [{"text": "good 3"}])
    code, _, err = call("predict", "run", "in.jsonl")
    assert code == 2
    assert "has no column 'body'. Choose from: 'text'. Say which to read, as --columns text=text." in err
    assert call("predict", "run", "in.jsonl", "--columns", "text=text")[0] == 0
    write_rows(work / "renamed.jsonl", [{"text": row["body"], "stars": row["stars"]} for row in REVIEWS])
    again = ["train", "classification/pooling", "--data.train", "renamed.jsonl", "--output", "other", *columns]
    assert "Say which to read, as --data.columns text=text,label=stars." in call(*again)[2]


def test_a_role_without_its_column(work, call) -> None:
    write_rows(work / "reviews.jsonl", REVIEWS)
    err = call("train", "classification/pooling", "--data.train", "reviews.jsonl", "--data.text", "body")[2]
    assert "which column is the label. It has: text. Add label=COLUMN" in err
    assert "(in training, --data.label COLUMN does the same)." in err


@pytest.mark.parametrize("skip", [[], ["--data.bad_rows", "skip"]])
def test_a_join_that_does_not_fit_is_an_error_of_the_setting(skip, train, work) -> None:
    write(work / "forms.tsv", [(s, "V;PST", t) for s, t in PAIRS])
    join = ["--task.source", "{class: text, tokeniser: char, join: '{} <{}> {}'}"]
    code, _, err = train(*join, "--data.columns", "source=0+1,target=2", *skip, data="forms.tsv")
    assert code == 2
    assert "join of the source is '{} <{}> {}', which has 3 places for 2 columns: write one {} for each column." in err
    assert "line 1" not in err
    assert "bad_rows" not in err


@pytest.mark.parametrize(("given", "meant"), [("gpu", "cuda"), ("GPU:1", "cuda:1"), ("CUDA", "cuda")])
def test_a_gpu_is_called_cuda(given, meant) -> None:
    with pytest.raises(ValueError, match=rf"got '{given}'\. Did you mean {meant}\?$"):
        check_device_name(given)


def test_a_word_among_links() -> None:
    with pytest.raises(ValueError, match=r"^a\.tsv, line 3: 'das' in the alignment is not a link\. Write links as 0-2"):
        Links().read("0-0 das", Cell("a.tsv", 3, "alignment"))


def test_json_that_ends_within_a_string(train, work) -> None:
    (work / "cut.jsonl").write_text('{"source": "ab\n', encoding="utf-8")
    assert "not JSON (Unterminated string starting at column 12)" in train(data="cut.jsonl")[2]


def test_one_is_singular(train, work, call) -> None:
    write(work / "one.align", [("0-0",)])
    with pytest.raises(ValueError, match=r"has alignments of 1 sentence pair, not of 2\."):
        read_alignments(work / "one.align", sentences=2)
    assert train()[0] == 0
    run = saccade.load("run")
    with pytest.raises(ValueError, match=r"Give a target for each input: inputs 1, targets 2\."):
        run.explain(["ba"], ["a", "b"])
    write(work / "strange.tsv", [("xq", PAIRS[0][1])])
    assert "1 of 1 input has parts" in call("evaluate", "run", "--data", "strange.tsv")[2]
    card = (work / "run" / "README.md").read_text(encoding="utf-8")
    assert "After 2 steps and " in card
    assert " seconds (ended by max_steps)" in card


def test_a_prefix_is_said_once(train) -> None:
    err = train("--data.held_out", "2")[2]
    assert "data: held_out must be a share from 0 to less than 1, got 2" in err
    assert "data: data." not in err


def test_a_long_name_of_a_column_keeps_its_quotes(train, work) -> None:
    write(work / "long.tsv", [("The name of the river in Latin letters here", "cyrillic"), *PAIRS])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        err = train("--data.header", "yes", data="long.tsv")[2]
    assert "'The name of the river in Latin letters h'... as source" in err


def test_data_is_missed_before_a_folder_is_named(work, call) -> None:
    code, _, err = call("train", "translation/rnnsearch")
    assert code == 2
    assert "data.train is missing" in err
    assert "Writing the run" not in err


def test_a_configuration_is_not_a_member(call) -> None:
    code, _, err = call("show", "translation/rnnsearch")
    assert code == 2
    assert "translation/rnnsearch is a configuration: saccade copy translation/rnnsearch my.yaml" in err


def test_examples_without_links_are_counted(train, work) -> None:
    write(work / "linked.tsv", [(s, t, "0-0" if n % 3 else "") for n, (s, t) in enumerate(PAIRS)])
    more = ["--data.held_out", "0", "--trainer.metric", "loss"]
    code, _, err = train(*more, data="linked.tsv", config="translation/rnnsearch-supervised")
    assert code == 0, err
    assert "  alignment: 20 of 60 examples have no links" in err


def test_a_join_is_checked_for_optional_sources_too() -> None:
    source = OptionalField(Text(join="{} <{}> {}"), role="source")
    with pytest.raises(DataError, match="has 3 places for 2 columns"):
        source.check_columns("source", 2)
    OptionalField(Image(size=16), role="picture").check_columns("picture", 2)  # any number of columns
