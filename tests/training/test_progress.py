import io

from rich.console import Console

from saccade.training.progress import BarProgress, PlainProgress, Progress, StepReport, duration, make_progress

REPORT = StepReport(step=30, epoch=2, loss=3.14159, learning_rate=5e-4, tokens=900, seconds=0.5, done=0.25, left=3723.0)


def test_plain_lines_come_every_so_many_steps():
    out = io.StringIO()
    progress = PlainProgress(every=10, stream=out)
    progress.step(REPORT._replace(step=29))
    assert out.getvalue() == ""
    progress.step(REPORT)
    progress.validation(30, {"loss": 2.5, "bleu": 31.25}, best="bleu")
    assert out.getvalue() == (
        "step 30  epoch 2  loss 3.1416  learning rate 0.0005  1,800 tokens/s  1:02:03 left\n"
        "step 30  validation: loss 2.5  bleu 31.25  (best bleu so far)\n"
    )


def test_the_bar_shows_loss_speed_time_left_and_scores():
    out = io.StringIO()
    progress = BarProgress(console=Console(file=out, force_terminal=True, width=150, color_system=None))
    progress.step(REPORT)
    progress.validation(30, {"bleu": 31.25}, best=None)
    progress._refreshed = 0.0
    progress.step(REPORT._replace(step=31, loss=2.0, tokens=300, seconds=0.1667))
    progress.close()
    shown = out.getvalue()
    for part in ("step 31", "25%", "loss 3.1416", "loss 2.8562", "1,800 tokens/s", "1:02:03 left", "bleu 31.25"):
        assert part in shown


def test_other_processes_and_pipes(capsys):
    assert type(make_progress(every=3, unit="tokens", main=False)) is Progress
    assert isinstance(make_progress(every=3, unit="tokens", main=True), PlainProgress)
    Progress().step(REPORT)
    assert capsys.readouterr() == ("", "")


def test_durations():
    assert [duration(s) for s in (0.4, 59.6, 3599.0, 7322.0)] == ["0:00", "1:00", "59:59", "2:02:02"]
