import errno
import os
import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch

from saccade import artifacts
from saccade.artifacts import ArtifactError, read_tensors, weights_of
from saccade.configuration import ConfigError
from saccade.configuration.build import check_part
from saccade.tasks import Loss
from saccade.training import Adam, Checkpoints, Cosine, Plateau, Trainer, read_metrics
from saccade.training.learner import Learner
from tests.tasks.toy import NeighbourSums, SumModel, examples
from tests.training.run_toy import train


def losses(folder, split="train"):
    return {r["step"]: r["loss"] for r in read_metrics(folder / "metrics.jsonl") if r["split"] == split}


def test_it_learns(tmp_path):
    model, result = train(
        tmp_path, max_steps=150, validate_every=50, learning_rate=0.03, hidden_dim=31, dropout=0.0, count=300,
        metric="accuracy", batch_tokens=300, schedule="cosine",
    )  # fmt: skip
    assert result.scores["accuracy"] >= 0.9
    assert result.chosen == "best"
    assert NeighbourSums().predict(model, ["1234"])[0].text == "1350"


def test_one_step_is_the_gradient_of_the_mean_over_all_items(tmp_path):
    """Three accumulated batches, SGD: the update must be that of one plain computation over their union."""
    torch.manual_seed(5)
    model, reference = SumModel(), SumModel()
    reference.load_state_dict(model.state_dict())
    task = NeighbourSums()
    encoded = [task.encode(e) for e in examples(29, seed=9)]
    trainer = Trainer(
        max_epochs=1, batch_tokens=80, accumulate=1000, optimiser="sgd", learning_rate=0.5, clip_norm=None
    )
    result = trainer.fit(task=task, model=model, train=encoded, output=tmp_path)
    assert result.step == 1
    loss = task.loss(reference, task.collate(encoded))
    mean = loss.total / loss.count
    mean.backward()
    assert losses(tmp_path)[1] == pytest.approx(mean.item(), rel=1e-6)
    for (name, after), before in zip(model.named_parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(after, before - 0.5 * before.grad, msg=name)


def test_clipping_bounds_the_update(tmp_path):
    torch.manual_seed(5)
    model = SumModel()
    before = [p.detach().clone() for p in model.parameters()]
    trainer = Trainer(max_steps=1, optimiser="sgd", learning_rate=1.0, clip_norm=1e-3)
    task = NeighbourSums()
    encoded = [task.encode(e) for e in examples(29, seed=9)]
    trainer.fit(task=task, model=model, train=encoded, output=tmp_path)
    moved = sum(float((p.detach() - b).square().sum()) for p, b in zip(model.parameters(), before, strict=True)) ** 0.5
    assert moved == pytest.approx(1e-3, rel=1e-2)
    assert read_metrics(tmp_path / "metrics.jsonl")[0]["gradient_norm"] > 1e-3


def test_every_step_is_logged_once_with_its_learning_rate(tmp_path):
    train(tmp_path, max_steps=17, schedule=Cosine(warmup=3), learning_rate=0.01, validate_every=5)
    records = read_metrics(tmp_path / "metrics.jsonl")
    steps = [r for r in records if r["split"] == "train"]
    assert [r["step"] for r in steps] == list(range(1, 18))
    assert [r["learning_rate"] for r in steps] == [0.01 * Cosine(warmup=3).factor(s, 17) for s in range(1, 18)]
    assert all(0 <= r["right"] <= 1 and r["tokens"] > 0 for r in steps)
    assert [r["step"] for r in records if r["split"] == "valid"] == [5, 10, 15, 17]


def test_an_epoch_sees_every_item_once_and_is_followed_by_a_validation(tmp_path, monkeypatch):
    monkeypatch.setattr("saccade.training.loop.SHORTEST_EPOCH", 1)
    _, result = train(tmp_path, max_epochs=3)
    records = read_metrics(tmp_path / "metrics.jsonl")
    items = sum(len(e["source"]) for e in examples(61, seed=1))
    for epoch in range(3):
        assert sum(r["tokens"] for r in records if r["split"] == "train" and r["epoch"] == epoch) == items
    assert len([r for r in records if r["split"] == "valid"]) == 3
    assert result.reason == "max_epochs"


def test_resuming_gives_the_same_numbers_bit_for_bit(tmp_path):
    options = {
        "validate_every": 7, "average": "ema", "schedule": Plateau(), "weight_decay": 0.1, "optimiser": "adamw",
        "accumulate": 2,
    }  # fmt: skip
    model, whole = train(tmp_path / "whole", max_steps=40, **options)
    train(tmp_path / "parts", max_steps=19, **{**options, "schedule": Plateau()})
    # what the shorter training did at its end is no part of the longer one
    checkpoints = Checkpoints(tmp_path / "parts" / "checkpoints")
    checkpoints.drop_after(14)
    other, parts = train(tmp_path / "parts", max_steps=40, resume=True, **{**options, "schedule": Plateau()})
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert losses(tmp_path / "parts", "valid") == losses(tmp_path / "whole", "valid")
    assert parts[:5] == whole[:5]
    for name, tensor in weights_of(model).items():
        assert torch.equal(tensor, weights_of(other)[name]), name


def test_validation_does_not_change_training(tmp_path):
    train(tmp_path / "often", max_steps=20, validate_every=1)
    train(tmp_path / "never", max_steps=20, validate=False)
    assert losses(tmp_path / "often") == losses(tmp_path / "never")


def test_the_seed_decides(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(tmp_path / name, max_steps=5, seed=seed)
    assert losses(tmp_path / "a") == losses(tmp_path / "b") != losses(tmp_path / "c")


class Scripted(NeighbourSums):
    """Its figures come from a list."""

    def __init__(self, accuracies):
        super().__init__()
        self.accuracies = list(accuracies)

    def evaluate(self, model, some, **options):
        self.weights = {n: t.clone() for n, t in weights_of(model).items()} if self.accuracies else {}
        return {"accuracy": self.accuracies.pop(0), "errors": 1.0}


def fit(task, tmp_path, model=None, valid=None, **options):
    trainer = Trainer(**{"batch_tokens": 97, **options})
    model = model or SumModel()
    encoded = [task.encode(e) for e in examples(31, seed=1)]
    valid = examples(5, seed=2) if valid is None else valid
    return model, trainer.fit(task=task, model=model, train=encoded, valid=valid, output=tmp_path)


@pytest.mark.parametrize("cut", [14, 21, 28])  # before the average begins, where it does, and after it
def test_nt_asgd_resumes_bit_for_bit(tmp_path, cut):
    accuracies = [0.3, 0.4, 0.2, 0.5, 0.6, 0.1]

    def train_on(folder, accuracies, *, max_steps, resume=False):
        torch.manual_seed(3)
        model, task = SumModel(), Scripted(accuracies)
        trainer = Trainer(
            max_steps=max_steps, batch_tokens=97, optimiser="sgd", learning_rate=0.5, validate_every=7, keep=9,
            metric="accuracy", average="triggered", average_after=1,
        )  # fmt: skip
        encoded = [task.encode(e) for e in examples(31, seed=1)]
        valid = examples(5, seed=2)
        return model, trainer.fit(task=task, model=model, train=encoded, valid=valid, output=folder, resume=resume)

    model, whole = train_on(tmp_path / "whole", accuracies, max_steps=40)
    train_on(tmp_path / "parts", [*accuracies[:4], 0.0], max_steps=30)
    checkpoints = Checkpoints(tmp_path / "parts" / "checkpoints")
    checkpoints.drop_after(cut)
    other, parts = train_on(tmp_path / "parts", accuracies[cut // 7 :], max_steps=40, resume=True)
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert losses(tmp_path / "parts", "valid") == losses(tmp_path / "whole", "valid")
    assert parts[:5] == whole[:5]
    for name, tensor in weights_of(model).items():
        assert torch.equal(tensor, weights_of(other)[name]), name
    before, after = checkpoints.load(14), checkpoints.load(28)
    assert before.average is None
    assert not torch.equal(after.average["embedding.weight"], after.weights["embedding.weight"])


def test_patience_ends_it_and_the_best_weights_are_kept(tmp_path):
    task = Scripted([0.1, 0.5, 0.4, float("nan"), 0.3])
    model, result = fit(task, tmp_path, metric="accuracy", patience=3, validate_every=2)
    assert result[:4] == (10, "patience", "best", 4)
    assert result.scores["accuracy"] == 0.5
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    assert checkpoints.steps() == [4, 8, 10]
    for weights in (checkpoints.load(4).weights, read_tensors(tmp_path / "model.safetensors")):
        for name, tensor in weights_of(model).items():
            assert torch.equal(tensor, weights[name])
    assert not torch.equal(checkpoints.load(10).weights["embedding.weight"], model.embedding.weight)
    assert not model.training


def test_short_epochs_are_validated_together(tmp_path, monkeypatch):
    monkeypatch.setattr("saccade.training.loop.SHORTEST_EPOCH", 5)
    fit(Scripted([0.0] * 9), tmp_path, max_steps=13)
    log = read_metrics(tmp_path / "metrics.jsonl")
    ends = [a["step"] for a, b in pairwise([r for r in log if r["split"] == "train"]) if b["epoch"] > a["epoch"]]
    assert len(ends) > 2, "epochs are short here"
    wanted, last = [], 0
    for end in ends:
        if end - last >= 5:
            wanted.append(last := end)
    assert [r["step"] for r in log if r["split"] == "valid"] == [*wanted, 13]


def test_the_loss_decides_between_equals(tmp_path):
    rising = {"learning_rate": 3.0, "metric": "accuracy", "validate_every": 2, "max_steps": 4}
    for name, options in (("falls", {**rising, "learning_rate": 1e-2}), ("rises", rising)):
        result = fit(Scripted([0.0, 0.0]), tmp_path / name, **options)[1]
        log = read_metrics(tmp_path / name / "metrics.jsonl")
        first, last = (record["loss"] for record in log if record["split"] == "valid")
        assert (last < first) == (name == "falls")
        assert result.chosen_step == (4 if name == "falls" else 2)


def test_lower_is_better_where_the_task_says_so(tmp_path):
    class Errors(Scripted):
        def evaluate(self, model, some, **options):
            return {"errors": self.accuracies.pop(0), "accuracy": 0.0}

    assert fit(Errors([3.0, 1.0, 2.0]), tmp_path, metric="errors", max_steps=3, validate_every=1)[1].chosen_step == 2


def test_the_average_of_the_last_is_taken_if_it_does_better(tmp_path):
    for name, final, chosen in (("better", 0.9, "averaged"), ("worse", 0.2, "best")):
        task = Scripted([0.1, 0.2, 0.5, 0.3, final])
        model, result = fit(
            task, tmp_path / name, metric="accuracy", max_steps=4, validate_every=1, average="last", average_last=3
        )
        assert result.chosen == chosen
        folder = tmp_path / name / "checkpoints"
        several = [Checkpoints(folder).load(step).weights for step in (2, 3, 4)]
        artifacts.verify(folder / "averaged", required=["model.safetensors"])
        averaged = read_tensors(folder / "averaged" / "model.safetensors")
        for key in ("embedding.weight", "recurrent.bias_hh_l0"):
            mean = torch.stack([weights[key] for weights in several]).mean(dim=0)
            torch.testing.assert_close(averaged[key], mean)
            torch.testing.assert_close(weights_of(model)[key], mean if chosen == "averaged" else several[1][key])


def test_the_moving_average_is_what_is_validated_and_kept(tmp_path):
    task = Scripted([0.1, 0.2])
    model, result = fit(task, tmp_path, metric="accuracy", max_steps=4, validate_every=2, average="ema")
    last = Checkpoints(tmp_path / "checkpoints").load(4)
    assert not torch.equal(last.average["embedding.weight"], last.weights["embedding.weight"])
    assert torch.equal(last.average["embedding.weight"], model.embedding.weight)
    assert result.chosen_step == 4


@pytest.mark.parametrize(("average", "chosen"), [("none", "last"), ("ema", "averaged"), ("last", "averaged")])
def test_without_validation_data(tmp_path, average, chosen):
    model, result = train(tmp_path, validate=False, max_steps=9, validate_every=3, average=average)
    assert (result.chosen, result.scores) == (chosen, {})
    assert torch.equal(read_tensors(tmp_path / "model.safetensors")["embedding.weight"], model.embedding.weight)


def test_minutes_count_what_came_before(tmp_path):
    _, result = train(tmp_path, max_minutes=0.01, pause=0.05)
    assert result.reason == "max_minutes"
    assert result.step > 1
    _, again = train(tmp_path, max_minutes=0.01, pause=0.05, resume=True)
    assert again.step == result.step


def rates(folder):
    return [r["learning_rate"] for r in read_metrics(folder / "metrics.jsonl") if r["split"] == "train"]


def test_a_schedule_that_ends_follows_the_clock(tmp_path, monkeypatch):
    """Steps that become twice as fast after the speed was first measured must not be made at a rate of zero."""
    now = 0.0
    update = Learner.update

    def timed(learner, step, **options):
        nonlocal now
        now += 2.0 if step <= 20 else 1.0
        return update(learner, step, **options)

    monkeypatch.setattr(Learner, "update", timed)
    monkeypatch.setattr("saccade.training.loop.time", SimpleNamespace(monotonic=lambda: now))
    _, result = train(tmp_path, max_minutes=1.5, schedule="linear", learning_rate=0.01)
    assert result.step == 20 + 50 + 1  # the step after the limit notices it
    found = rates(tmp_path)
    assert min(found[:-20]) > 0.001
    assert found[-1] < 0.001


def test_a_schedule_ends_with_the_last_epoch(tmp_path):
    _, result = train(tmp_path, max_epochs=3, schedule="linear", learning_rate=0.01)
    assert rates(tmp_path) == [pytest.approx(0.01 * (1 - s / result.step)) for s in range(1, result.step + 1)]


def test_bf16_trains_close_to_float32(tmp_path):
    train(tmp_path / "a", max_steps=10, dropout=0.0, precision="bf16")
    train(tmp_path / "b", max_steps=10, dropout=0.0)
    low, full = losses(tmp_path / "a"), losses(tmp_path / "b")
    assert low != full
    assert low == pytest.approx(full, rel=0.03)


def test_a_loss_that_is_not_finite_stops_before_it_spoils_the_weights(tmp_path):
    class Exploding(NeighbourSums):
        calls = 0

        def loss(self, model, batch):
            self.calls += 1
            loss = super().loss(model, batch)
            return Loss(loss.total * (float("nan") if self.calls == 5 else 1.0), loss.count)

    model = SumModel()
    with pytest.raises(FloatingPointError, match=r"nan at step 5.*learning_rate"):
        fit(Exploding(), tmp_path, model, valid=[], max_steps=9, validate_every=2)
    assert all(p.isfinite().all() for p in model.parameters())
    assert Checkpoints(tmp_path / "checkpoints").latest().step == 4


def test_a_full_disk_keeps_the_last_good_checkpoint_and_training_can_go_on(tmp_path, monkeypatch):
    real = artifacts.folders.write_synced

    def write(path, data):
        if "step-00000006" in str(path) and path.name == "optimiser.safetensors":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, data)

    monkeypatch.setattr(artifacts.folders, "write_synced", write)
    with pytest.raises(ArtifactError, match=r"step 6: No space left on device.*step-00000004"):
        train(tmp_path / "a", max_steps=8, validate_every=2)
    monkeypatch.undo()
    train(tmp_path / "a", max_steps=8, validate_every=2, resume=True)
    train(tmp_path / "b", max_steps=8, validate_every=2)
    assert losses(tmp_path / "a") == losses(tmp_path / "b")


def test_a_torn_checkpoint_is_passed_over(tmp_path):
    train(tmp_path / "a", max_steps=6, validate_every=2)
    torn = tmp_path / "a" / "checkpoints" / "step-00000006" / "model.safetensors"
    torn.write_bytes(torn.read_bytes()[:-5])
    with pytest.warns(UserWarning, match="damaged"):
        train(tmp_path / "a", max_steps=8, validate_every=2, resume=True)
    train(tmp_path / "b", max_steps=8, validate_every=2)
    assert losses(tmp_path / "a") == losses(tmp_path / "b")


@pytest.mark.parametrize("every", [2, 5])  # the validation of a milestone, and that of the end
def test_a_validation_that_fails_costs_no_step(tmp_path, monkeypatch, every):
    def fail(*_, **__):
        raise RuntimeError("the figures failed")

    options = {"max_steps": 4, "validate_every": every, "schedule": "plateau"}
    monkeypatch.setattr(NeighbourSums, "evaluate", fail)
    with pytest.raises(RuntimeError, match="the figures failed"):
        train(tmp_path / "a", **options)
    monkeypatch.undo()
    assert Checkpoints(tmp_path / "a" / "checkpoints").steps() == [min(every, 4)]
    train(tmp_path / "a", resume=True, **options)
    train(tmp_path / "b", **options)
    for split in ("train", "valid"):
        steps = [r["step"] for r in read_metrics(tmp_path / "a" / "metrics.jsonl") if r["split"] == split]
        assert steps == list(losses(tmp_path / "b", split))
        assert losses(tmp_path / "a", split) == losses(tmp_path / "b", split)


def test_a_crash_after_a_validation_repeats_it_once(tmp_path, monkeypatch):
    real, saves = Checkpoints.save, []

    def save(self, checkpoint):
        saves.append(checkpoint.step)
        if saves == [2, 2]:
            raise KeyboardInterrupt  # like a kill
        return real(self, checkpoint)

    monkeypatch.setattr(Checkpoints, "save", save)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, max_steps=4, validate_every=2)
    monkeypatch.undo()
    train(tmp_path, max_steps=4, validate_every=2, resume=True)
    assert [r["step"] for r in read_metrics(tmp_path / "metrics.jsonl") if r["split"] == "valid"] == [2, 4]


@pytest.mark.parametrize("damaged", [(2,), (1, 2, 3)])
def test_damaged_checkpoints_are_left_out_of_the_average(tmp_path, damaged):
    options = {"validate": False, "validate_every": 1, "average": "last", "average_last": 3}
    train(tmp_path, max_steps=3, **options)
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    for step in damaged:
        (checkpoints.path(step) / "model.safetensors").write_bytes(b"torn")
    if len(damaged) == 3:
        with (
            pytest.raises(ArtifactError, match="None of the 3 checkpoints"),
            pytest.warns(UserWarning, match="damaged"),
        ):
            train(tmp_path, max_steps=3, resume=True, **options)
        return
    with pytest.warns(UserWarning, match=r"step-00000002.*damaged.*Averaging the other checkpoints"):
        model, result = train(tmp_path, max_steps=3, resume=True, **options)
    assert result.chosen == "averaged"
    mean = torch.stack([checkpoints.load(step).weights["embedding.weight"] for step in (1, 3)]).mean(dim=0)
    torch.testing.assert_close(model.embedding.weight.detach(), mean)


def test_a_model_without_checkpoints_is_not_overwritten(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"precious")
    with pytest.raises(FileExistsError, match="contains a trained model"):
        train(tmp_path, max_steps=2)
    with pytest.raises(FileNotFoundError, match="no checkpoint to continue from"):
        train(tmp_path, max_steps=2, resume=True)
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_a_checkpoint_that_was_being_replaced_comes_back(tmp_path):
    train(tmp_path, max_steps=2)
    path = Checkpoints(tmp_path / "checkpoints").path(2)
    path.rename(path.with_name(f".{path.name}.previous"))
    assert Checkpoints(tmp_path / "checkpoints").latest().step == 2
    path.rename(path.with_name(f".{path.name}.previous"))
    assert train(tmp_path, max_steps=3, resume=True)[1].step == 3


def test_resuming_nothing_begins(tmp_path, capsys):
    _, result = train(tmp_path, max_steps=2, resume=True)
    assert result.step == 2
    assert "no checkpoint yet" in capsys.readouterr().err


def test_a_trained_folder_is_not_overwritten(tmp_path):
    train(tmp_path, max_steps=2)
    with pytest.raises(FileExistsError, match="or choose another folder"):
        train(tmp_path, max_steps=2)


def test_tensorboard_gets_the_figures(tmp_path):
    pytest.importorskip("tensorboard")
    train(tmp_path, max_steps=4, log_every=2, validate_every=2, trackers=["tensorboard"])
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "logs" / "saccade")).Reload()
    assert [e.step for e in events.Scalars("train/loss")] == [2, 4]
    logged = [e.value for e in events.Scalars("valid/loss")]
    assert logged == pytest.approx(list(losses(tmp_path, "valid").values()))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "would never end"),
        ({"max_steps": 0}, "max_steps must be positive"),
        ({"max_steps": 1, "learning_rate": -1.0}, "learning_rate must be positive"),
        ({"max_steps": 1, "optimiser": "adamm"}, "Did you mean 'adamw'|Did you mean 'adam'"),
        ({"max_steps": 1, "schedule": "cosin"}, "Did you mean 'cosine'"),
        ({"max_steps": 1, "precision": "bf61"}, "Did you mean 'bf16'"),
        ({"max_steps": 1, "keep": 1}, "keep must be 2 or more"),
        ({"patience": 1, "schedule": "cosine"}, "give it steps, or set max_steps, max_epochs or max_minutes"),
        ({"max_steps": 1, "average_decay": 1.0}, "average_decay"),
        ({"max_steps": 1, "weight_decay": -0.1}, "weight_decay"),
    ],
)
def test_impossible_trainers_are_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        Trainer(**options)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"validate": False, "patience": 3}, "patience needs validation data"),
        ({"validate": False, "max_steps": 1, "metric": "accuracy"}, "metric='accuracy' needs validation data"),
        ({"validate": False, "max_steps": 1, "average": "triggered"}, "average='triggered' needs validation data"),
        ({"validate": False, "max_steps": 1, "schedule": "plateau"}, "the plateau schedule needs validation data"),
        ({"max_steps": 1, "metric": "acuracy"}, "Did you mean 'accuracy'"),
        ({"max_steps": 1, "metric": "accuracy", "validate_examples": 0}, "needs predictions"),
        ({"max_steps": 1, "trackers": ["tensorbord"]}, "Did you mean 'tensorboard'"),
        ({"max_steps": 1, "count": 0}, "no examples"),
    ],
)
def test_what_cannot_work_fails_before_any_work(tmp_path, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        train(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_a_tracker_that_is_not_installed_is_named(tmp_path, monkeypatch):
    import accelerate.tracking

    monkeypatch.setattr(accelerate.tracking, "get_available_trackers", list)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "saccade\[train\]"'):
        train(tmp_path, max_steps=1, trackers=["tensorboard"])


def test_options_of_the_optimiser_are_used(tmp_path):
    train(tmp_path, max_steps=1, optimiser=Adam(betas=(0.7, 0.8), epsilon=1e-5))
    group = Checkpoints(tmp_path / "checkpoints").latest().optimiser["param_groups"][0]
    assert (group["betas"], group["eps"]) == ((0.7, 0.8), 1e-5)


def test_unused_parameters_are_left_alone(tmp_path):
    model, _ = train(tmp_path, max_steps=3, unused=True, weight_decay=0.5)
    assert torch.equal(model.unused, torch.ones(3))


def test_the_missing_extra_is_named_and_nothing_heavy_is_imported_before(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(ModuleNotFoundError, match=r'accelerate.*pip install "saccade\[train\]"'):
        train(tmp_path, max_steps=1)
    code = "import sys, saccade.training.trainer; print([m for m in ('accelerate', 'rich') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_configuration_is_checked_against_the_constructor():
    config = {
        "max_steps": 5,
        "optimiser": {"class": "adam", "betas": [0.9, 0.98]},
        "schedule": {"class": "noam", "model_dim": 32},
        "trackers": ["tensorboard"],
    }
    trainer = check_part(Trainer, config, "trainer").make()
    assert trainer.optimiser.betas == (0.9, 0.98)
    assert trainer.schedule.factor(4000) == 32**-0.5 * 4000**-0.5
    by_name = check_part(Trainer, {"max_steps": "3", "schedule": "cosine"}, "trainer").make()
    assert isinstance(by_name.schedule, Cosine)
    with pytest.raises(ConfigError, match="max_stpes"):
        check_part(Trainer, {"max_stpes": 5}, "trainer")
