"""The printed loss is a mean on the scale of validation, and what happens first is printed first."""

import io

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
