"""The options of `saccade predict`."""

import json
import re

import pytest
import torch

import saccade
from saccade.data.special import EOS

LINES = "minamo su\nkelu\n\ndodo ba tarifa\n"


def word_weights(prediction) -> list[list[float]]:
    """Attention between words, added up piece by piece."""
    return [
        [
            sum(float(prediction.weights[p, q]) for p in target for q in source) / len(target)
            for source in prediction.attention.key_words
        ]
        for target in prediction.attention.query_words
    ]


def test_alignments_are_between_words(run, call) -> None:
    code, out, _ = call("predict", run, "--alignments", "--max-length", "9", given=LINES)
    assert code == 0
    predictions = saccade.load(run).predict(LINES.splitlines(), max_length=9)
    for line, row, prediction in zip(LINES.splitlines(), out.splitlines(), predictions, strict=True):
        text, column = row.split("\t")
        assert len(prediction.attention.key_words) == len(line.split())
        assert len(prediction.attention.query_words) == len(text.split())
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
    assert "subwords only affects alignments: set alignments as well" in err


def test_workers_write_the_same_in_the_same_order(run, call) -> None:
    options = ("--scores", "--batch-size", "2", "--max-length", "9")
    alone = call("predict", run, *options, given=LINES * 3)
    assert alone[0] == 0
    assert call("predict", run, *options, "--workers", "2", given=LINES * 3) == alone


def test_json_has_both_alignments(run, call) -> None:
    code, out, _ = call("predict", run, "--format", "jsonl", "--nbest", "2", given=LINES)
    assert code == 0
    for line, found in zip(LINES.splitlines(), map(json.loads, out.splitlines()), strict=True):
        words = ["".join(found["keys"][place] for place in word).strip("▁") for word in found["nbest"][0]["key_words"]]
        assert words == line.split()
        for hypothesis in found["nbest"] if line else ():
            pieces = len(hypothesis["weights"]) - hypothesis["finished"]
            assert [target for _, target in hypothesis["alignment"]] == list(range(pieces))
            words = len(hypothesis["answer"].split())
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
    expected = [h for p in saccade.load(run).predict(lines, **options) for h in p.alternatives or [p]]
    rows = [line.split("\t")[-2:] for line in out.splitlines()]
    assert rows == [[h.text, f"{h.score:.4f}"] for h in expected]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--top-p", "0.9"], "top_p only affects sampling: set sample as well"),
        (["--beam", "5", "--top-p", "0.9"], "top_p only affects sampling: set sample as well"),
        (["--top-k", "3"], "top_k only affects sampling: set sample as well"),
        (["--seed", "3"], "seed only affects sampling: set sample as well"),
        (["--sample", "--beam", "5"], "exclude each other"),
        (["--sample", "--top-p", "2"], "top_p must be above 0 and at most 1"),
        (["--nbest", "6"], "nbest=6 needs a beam of at least 6"),
        (["--min-length", "9", "--max-length", "3"], "min_length=9 is more than max_length=3"),
        (["--prefix", "XYZ"], "cannot write 'XYZ'"),
        (["--max-length", "0"], "max_length must be from 1 to 10000, got 0"),
        (["--min-length", "-1"], "min_length must be from 0 to 10000, got -1"),
        (["--no-repeat-ngram", "-2"], "no_repeat_ngram must be from 0 to 10000, got -2"),
        (["--beam", "0"], "beam must be from 1 to 1000, got 0"),
        (["--nbest", "0"], "nbest must be from 1 to 1000, got 0"),
        (["--batch-size", "-1"], "--batch-size must be 1 or more, got -1"),
        (["--workers", "0"], "--workers must be 1 or more, got 0"),
        (["--length-penalty", "nan"], "length_penalty: nan is not a finite number"),
        (["--coverage-penalty", "-0.1"], "coverage_penalty must be from 0.0 to 1000000.0, got -0.1"),
        (["--sample", "--temperature", "nan"], "temperature: nan is not a finite number"),
        (["--sample", "--temperature", "inf"], "temperature: inf is not a finite number"),
        (["--sample", "--top-k", "0"], "top_k must be from 1 to 2147483647, got 0"),
        (["--sample", "--top-p", "nan"], "top_p: nan is not a finite number"),
        (["--sample", "--seed", "-1"], "seed must be from 0 to 2147483647, got -1"),
        (["--sample", "--seed", str(2**64)], "got 18446744073709551616"),
        (["--forced", "3=a", "--max-length", "3"], "positions are counted from 0 and must be below 3, got 3"),
        (["--forced", "The"], "as in 0=The; got 'The'"),
        (["--format", "jsonl", "--draw"], "cannot be combined"),
        (["--plot", "a.gif"], "no picture has the suffix '.gif'"),
        (["--plot", "nowhere/a.png"], "there is no folder nowhere"),
        (["--details", "--engine", "ray"], "Only --data takes --engine or --details"),
        (["--data", "big.csv", "--output", "out", "--scores", "--lm", "x"], "--data takes no --scores or --lm"),
        (["--stream", "--workers", "2", "--format", "csv"], "--stream takes no --format csv or --workers"),
    ],
)
def test_impossible_options_are_refused_before_any_answer(flags, message, run, call) -> None:
    code, out, err = call("predict", run, *flags, given="su\n")
    assert (code, out) == (2, "")
    assert message in err


def test_scores_are_log_probabilities_that_the_length_divides(run, call) -> None:
    """Against the loss, which sums log-probabilities by itself."""
    model = saccade.load(run)
    options = {"nbest": 3, "max_length": 9, "length_penalty": 0.7}
    (prediction,) = model.predict(["minamo su"], **options)
    for hypothesis in prediction.alternatives:
        written = [*hypothesis.tokens, *([EOS] if hypothesis.finished else [])]
        with torch.no_grad():
            row = {**model.task.encode({"source": "minamo su"}), "target": written}
            loss = model.task.loss(model.model, model.task.collate([row]))
        assert hypothesis.log_prob == pytest.approx(-loss.total.item(), abs=1e-4)
        assert hypothesis.score == pytest.approx(hypothesis.log_prob / ((5 + len(written)) / 6) ** 0.7, abs=1e-5)
    flags = ["--format", "jsonl", "--nbest", "3", "--max-length", "9", "--length-penalty", "0.7"]
    found = json.loads(call("predict", run, *flags, given="minamo su\n")[1])["nbest"]
    assert [h["log_prob"] for h in found] == pytest.approx([h.log_prob for h in prediction.alternatives])
    (plain,) = model.predict(["minamo su"], length_penalty=0.0, max_length=9)
    assert plain.score == pytest.approx(plain.log_prob, abs=1e-6)


def test_options_may_come_before_the_run(run, call) -> None:
    after = call("predict", run, "--format", "jsonl", "--beam", "2", given="su\n")
    assert after[0] == 0
    assert call("predict", "--format", "jsonl", "--beam", "2", run, given="su\n") == after


def test_an_input_is_not_overwritten(run, call, tmp_path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("su\n")
    code, _, err = call("predict", run, str(file), "--output", str(tmp_path / "." / "in.txt"))
    assert (code, file.read_text()) == (2, "su\n")
    assert "is also an input and would be overwritten: name another file" in err


def test_help_gives_the_defaults_of_the_search(run, call) -> None:
    assert "--beam" not in call("predict", "--help")[1]  # which task it is depends on the run
    _, out, _ = call("predict", run, "--help")
    entries = re.split(r"\s--(?=[a-z-]+ [A-Z]+\s)", out.partition("\noptions:")[2])
    helps = {entry.split()[0]: " ".join(entry.split()) for entry in entries}
    search = ["beam", "nbest", "length-penalty", "coverage-penalty", "min-length", "max-length", "no-repeat-ngram"]
    for option in (*search, "temperature", "top-k", "top-p", "seed", "batch-size", "workers"):
        assert "(default:" in helps[option], option


@pytest.mark.parametrize("workers", ["1", "2"])
def test_of_a_huge_line_the_beginning_is_read(workers, run, call) -> None:
    long = "dodo minamo " * 9000
    flags = ["--max-length", "5", "--format", "jsonl", "--workers", workers]
    code, out, err = call("predict", run, *flags, given=f"su\n{long}\nkelu\n")
    assert code == 0
    read = max(1000, 4 * saccade.load(run).task.source.max_length)
    (told,) = [line for line in err.splitlines() if "tokens" in line]
    assert told.startswith("Input 2 has ")
    assert f"but the model only reads the first {read:,}" in told
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines[1]["keys"]) == read + 1
    assert lines[1]["nbest"][0]["key_words"][-1][-1] == read - 1
    assert len(lines[1]["nbest"][0]["weights"][0]) == read + 1
    assert lines[2]["answer"] == saccade.load(run).predict(["kelu"], max_length=5)[0].text


def test_python_is_warned_of_a_huge_text(run) -> None:
    with pytest.warns(UserWarning, match=r"Input 1, counted from 0, has [\d,]+ tokens, but the model only reads"):
        saccade.load(run).predict(["su", "dodo " * 2000], beam=1, max_length=2)


@pytest.mark.parametrize("option", ["--alignments", "--draw", "--plot=a.png"])
def test_a_model_without_attention_shows_none(option, blind, call, tmp_path, monkeypatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    code, out, err = call("predict", blind, option, given="\nkelu\n")
    assert (code, out) == (2, "")
    assert option.partition("=")[0].strip("-") in err
    assert "what a model looked at, but Cho has no attention" in err
    assert not any(tmp_path.iterdir())
    code, out, _ = call("predict", blind, "--format", "jsonl", given="kelu\n")
    assert code == 0
    assert "weights" not in json.loads(out)["nbest"][0]


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
