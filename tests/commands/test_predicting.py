"""The options of `saccade predict`."""

import json

import pytest
import torch

import saccade

LINES = "minamo su\nkelu\n\ndodo ba tarifa\n"


def word_weights(prediction) -> list[list[float]]:
    """Attention between words, added up piece by piece."""
    return [
        [
            sum(float(prediction.weights[p, q]) for p in target for q in source) / len(target)
            for source in prediction.source_words
        ]
        for target in prediction.target_words
    ]


def test_alignments_are_between_words(run, call) -> None:
    code, out, _ = call("predict", run, "--alignments", "--max-length", "9", given=LINES)
    assert code == 0
    predictions = saccade.load(run).predict(LINES.splitlines(), max_length=9)
    for line, row, prediction in zip(LINES.splitlines(), out.splitlines(), predictions, strict=True):
        text, column = row.split("\t")
        assert len(prediction.source_words) == len(line.split())
        assert len(prediction.target_words) == len(text.split())
        expected = word_weights(prediction)
        for pair in column.split():
            source, target = map(int, pair.split("-"))
            assert expected[target][source] == pytest.approx(max(expected[target]), abs=1e-6)
        assert len(column.split()) == len(text.split())


def test_alignments_between_pieces_are_asked_for(run, call) -> None:
    code, out, _ = call("predict", run, "--alignments", "--subwords", "--max-length", "9", given=LINES)
    assert code == 0
    for row, prediction in zip(
        out.splitlines(), saccade.load(run).predict(LINES.splitlines(), max_length=9), strict=True
    ):
        assert len(row.split("\t")[1].split()) == len(prediction.tokens)
    code, _, err = call("predict", run, "--subwords", given=LINES)
    assert code == 2
    assert "--alignments" in err


def test_workers_write_the_same_in_the_same_order(run, call) -> None:
    options = ("--scores", "--batch-size", "2", "--max-length", "9")
    alone = call("predict", run, *options, given=LINES * 3)
    assert alone[0] == 0
    assert call("predict", run, *options, "--workers", "2", given=LINES * 3) == alone


def test_json_has_both_alignments(run, call) -> None:
    code, out, _ = call("predict", run, "--jsonl", "--nbest", "2", given=LINES)
    assert code == 0
    for line, found in zip(LINES.splitlines(), map(json.loads, out.splitlines()), strict=True):
        words = ["".join(found["source"][place] for place in word).strip("▁") for word in found["source_words"]]
        assert words == line.split()
        for hypothesis in found["nbest"] if line else ():
            pieces = len(hypothesis["weights"]) - hypothesis["finished"]
            assert [target for _, target in hypothesis["alignment"]] == list(range(pieces))
            words = len(hypothesis["text"].split())
            assert [target for _, target in hypothesis["word_alignment"]] == list(range(words))


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        (["--beam", "3", "--length-penalty", "0.2"], {"beam": 3, "length_penalty": 0.2}),
        (["--coverage-penalty", "0.7", "--max-length=8"], {"coverage_penalty": 0.7, "max_length": 8}),
        (["--min-length", "6", "--max-length", "8"], {"min_length": 6, "max_length": 8}),
        (["--no-repeat-ngram", "2", "--min-length=5"], {"no_repeat_ngram": 2, "min_length": 5}),
        (["--prefix", "us omanim"], {"prefix": "us omanim"}),
        (["--forbidden", "ab", "--forbidden", "u"], {"forbidden": ["ab", "u"]}),
        (["--forced", "0=o", "--forced", "2=a"], {"forced": {0: "o", 2: "a"}}),
        (["--sample", "--seed=5"], {"sample": True, "seed": 5}),
        (
            ["--sample", "--seed=5", "--nbest=3", "--top-k=4", "--temperature=0.5"],
            {"sample": True, "seed": 5, "nbest": 3, "top_k": 4, "temperature": 0.5},
        ),
        (["--sample", "--seed=5", "--top-p=0.3"], {"sample": True, "seed": 5, "top_p": 0.3}),
    ],
)
def test_flags_are_the_options_of_python(flags, options, run, call) -> None:
    lines = ["minamo su", "kelu"]
    code, out, err = call("predict", run, *flags, "--scores", given="\n".join(lines))
    assert code == 0, err
    expected = [h for p in saccade.load(run).predict(lines, **options) for h in p.nbest or [p]]
    rows = [line.split("\t")[-2:] for line in out.splitlines()]
    assert rows == [[h.text, f"{h.score:.4f}"] for h in expected]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--top-p", "0.9"], "--top-p needs --sample"),
        (["--beam", "5", "--top-p", "0.9"], "--top-p needs --sample"),
        (["--top-k", "3"], "--top-k needs --sample"),
        (["--seed", "3"], "--seed needs --sample"),
        (["--sample", "--beam", "5"], "give one of the two"),
        (["--sample", "--top-p", "2"], "top_p is above 0 and at most 1"),
        (["--nbest", "6"], "nbest=6 hypotheses need a beam"),
        (["--min-length", "9", "--max-length", "3"], "min_length=9 is more than max_length=3"),
        (["--prefix", "XYZ"], "cannot write 'XYZ'"),
        (["--forced", "The"], "as 0=The; got 'The'"),
        (["--jsonl", "--draw"], "do not go together"),
        (["--plot", "a.gif"], "no picture has the suffix '.gif'"),
        (["--plot", "nowhere/a.png"], "there is no folder nowhere"),
    ],
)
def test_impossible_options_are_refused_without_any_input(flags, message, run, call) -> None:
    code, out, err = call("predict", run, *flags)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("option", ["--alignments", "--draw", "--plot=a.png"])
def test_a_model_without_attention_shows_none(option, blind, call, tmp_path, monkeypatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    code, out, err = call("predict", blind, option, given="\nkelu\n")
    assert (code, out) == (2, "")
    assert f"{option.partition('=')[0]} shows what a model looked at, and Cho has no attention" in err
    assert not any(tmp_path.iterdir())
    code, out, _ = call("predict", blind, "--jsonl", given="kelu\n")
    assert code == 0
    assert json.loads(out)["nbest"][0]["weights"] is None


def test_pictures_need_matplotlib_before_any_work(call, monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, out, err = call("predict", "nowhere", "--plot", "a.png")
    assert (code, out) == (2, "")
    assert 'pip install "saccade[plots]"' in err


def test_python_takes_texts_for_each_input(run) -> None:
    model = saccade.load(run)
    found = model.predict(["kelu", "su ba"], prefix=["ulek", "us"], beam=2)
    assert [p.text[:n] for p, n in zip(found, (4, 2), strict=True)] == ["ulek", "us"]
    assert torch.isfinite(torch.tensor([p.score for p in found])).all()
