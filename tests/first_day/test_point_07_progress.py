"""The printed loss is a mean on the scale of validation, and what happens first is printed first."""

import io
from types import SimpleNamespace

from saccade.runs.stages import Stage
from saccade.training.progress import PlainProgress, StepReport


def test_the_mean_since_the_last_line() -> None:
    stream = io.StringIO()
    progress = PlainProgress(every=2, stream=stream)
    for step, (loss, tokens) in enumerate([(4.0, 1), (2.0, 3), (1.0, 2), (1.0, 2)], start=1):
        progress.step(StepReport(step, 1, loss, 0.1, tokens, 0.1, step / 4, None))
    lines = stream.getvalue().splitlines()
    assert [line.split("loss ")[1].split()[0] for line in lines] == ["2.5000", "1.0000"]


def test_label_smoothing_does_not_change_the_scale(train, work) -> None:
    plain = train("--trainer.log_every", "1", "--trainer.max_steps", "1")[2]
    (work / "run").rename(work / "plain")
    smooth = train("--trainer.log_every", "1", "--trainer.max_steps", "1", "--task.label_smoothing", "0.3")[2]
    losses = [float(err.split("step 1 ")[1].split("loss ")[1].split()[0]) for err in (plain, smooth)]
    assert losses[0] == losses[1]


def test_what_is_read_and_learned_is_said_first(train) -> None:
    err = train()[2]
    assert err.splitlines()[0] == "Reading rivers.tsv ..."
    assert "nan" not in err


def test_the_size_of_a_small_file(train, call) -> None:
    assert train()[0] == 0
    err = call("explain", "run", "--input", "bado", "--output", "page.json")[2]
    assert "Wrote page.json (" in err
    assert "0.0 MB" not in err


def test_slow_steps_are_not_silent(monkeypatch) -> None:
    now = 0.0
    monkeypatch.setattr("saccade.training.progress.time.monotonic", lambda: now)
    stream = io.StringIO()
    progress = PlainProgress(every=50, stream=stream)
    for step in range(1, 8):
        now += 10.0
        progress.step(StepReport(step, 1, 2.0, 0.1, 1, 10.0, step / 100, None))
    assert [line.split()[1] for line in stream.getvalue().splitlines()] == ["3", "6"]


def test_each_stage_is_named(train) -> None:
    stages = [line for line in train()[2].splitlines() if line.endswith(" ...")]
    assert stages == [
        "Reading rivers.tsv ...",
        "Learning vocabularies and scales ...",
        "Encoding and storing examples ...",
    ]


def test_a_long_stage_is_not_silent(monkeypatch, capsys) -> None:
    now = 0.0
    monkeypatch.setattr("saccade.runs.stages.time.monotonic", lambda: now)
    with Stage("Reading", range(200), total=200) as examples:
        for _ in examples:
            now += 0.5
    assert capsys.readouterr().err.splitlines() == [
        "Reading ...",
        "  64 of 200 examples",
        "  128 of 200 examples",
        "  192 of 200 examples",
    ]
    with Stage("Reading", range(200), main=False) as examples:
        assert sum(1 for _ in examples) == 200
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_a_bar(monkeypatch) -> None:
    shown = io.StringIO()
    shown.isatty = lambda: True
    now = 0.0
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr("saccade.runs.stages.time", SimpleNamespace(monotonic=lambda: now))
    with Stage("Learning", range(100), total=100) as examples:
        for _ in range(2):  # as for two vocabularies
            for _ in examples:
                now += 0.01
    assert shown.getvalue().startswith("Learning ...\n")
    assert "64 examples" in shown.getvalue()
