import torch

from saccade.tasks import Loss, Prediction, Task, tasks
from tests.tasks.toy import NeighbourSums, SumModel, examples


def test_losses_of_batches_of_any_size_add_up_to_the_loss_of_all():
    torch.manual_seed(0)
    task, model = NeighbourSums(), SumModel()
    encoded = [task.encode(example) for example in examples(17, seed=3)]
    whole = task.loss(model, task.collate(encoded))
    pieces = [task.loss(model, task.collate(encoded[i : i + 5])) for i in range(0, 17, 5)]
    torch.testing.assert_close(sum(p.total for p in pieces), whole.total)
    assert sum(int(p.count) for p in pieces) == int(whole.count) == sum(len(e["source"]) for e in encoded)
    assert sum(int(p.parts["right"]) for p in pieces) == int(whole.parts["right"])


def test_a_loss_without_parts_has_none():
    assert Loss(torch.zeros(()), torch.ones(())).parts == {}


def test_size_is_by_default_the_length_of_the_longest_value():
    assert Task().size({"source": [1, 2, 3], "target": [1, 2, 3, 4, 5], "label": 7}) == 5
    assert Task().size({"label": 7}) == 1


def test_build_hands_its_arguments_to_the_model():
    assert Task().build(SumModel, hidden_dim=5).embedding.weight.shape == (7, 5)


def test_what_a_task_has_learnt_is_saved_and_loaded(tmp_path):
    task = NeighbourSums()
    task.fit(examples(23, seed=1))
    task.save(tmp_path)
    other = NeighbourSums()
    other.load(tmp_path)
    assert other.longest == task.longest > 0


def test_a_task_that_learns_nothing_needs_neither_fit_nor_files(tmp_path):
    class Nothing(Task):
        pass

    task = Nothing()
    task.fit([])
    task.save(tmp_path)
    task.load(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_predictions_carry_what_was_looked_at_and_their_rivals():
    second = Prediction("b", -2.0)
    first = Prediction("a", -1.0, [4], ["x", "y"], ["a"], torch.tensor([[0.25, 0.75]]), [Prediction("a", -1.0), second])
    assert first.weights.shape == (len(first.target), len(first.source))
    assert first.nbest[1].text == "b"
    assert second.weights is None
    assert second.nbest == []


def test_the_registry_holds_tasks_only():
    assert tasks.kind == "task"
    assert all(issubclass(member, Task) for _, member in tasks.items())
