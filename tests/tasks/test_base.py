from typing import ClassVar

import pytest
import torch

from saccade.fields import Text
from saccade.tasks import Answer, Attended, Generation, Loss, Task, tasks
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


def test_the_size_of_an_example_is_that_of_each_of_its_fields():
    task = Generation(source=Text(tokeniser="char"))
    assert task.size({"source": [1, 2, 3], "target": [1, 2, 3, 4, 5]}) == (3, 5)
    assert task.size({"source": [1, 2, 3]}) == (3,)


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


def test_answers_carry_what_was_looked_at_and_their_alternatives():
    second = Answer("b", -2.0)
    first = Answer("a", -1.0, Attended(torch.tensor([[0.25, 0.75]]), ["a"], ["x", "y"]), [Answer("a", -1.0), second])
    assert first.weights.shape == (len(first.attention.queries), len(first.attention.keys))
    assert first.alternatives[1].text == "b"
    assert second.weights is None
    assert second.alternatives == []
    doubled = first.with_weights(lambda weights: 2 * weights)
    assert doubled.weights.tolist() == [[0.5, 1.5]]
    assert first.weights.tolist() == [[0.25, 0.75]]


@pytest.mark.parametrize(("value", "text"), [("a b", "a b"), (["x", "y"], "x, y"), (3.25, "3.25"), (7, "7")])
def test_the_text_of_an_answer_is_what_its_user_reads(value, text):
    assert Answer(value, 0.0).text == text


def test_options_are_checked_where_they_enter():
    with pytest.raises(ValueError, match=r"no option 'baem'\. Did you mean 'beam'"):
        Generation.options.of({"baem": 3})
    with pytest.raises(ValueError, match="beam must be"):
        Generation.options.of({"beam": "many"})
    assert Generation.options.of({"beam": None}).beam is None
    assert Generation.options.of({"beam": "3"}).beam == 3  # as the command line writes it


def test_the_registry_holds_tasks_only():
    assert tasks.kind == "task"
    assert all(issubclass(member, Task) for _, member in tasks.items())


def test_an_example_is_one_row_unless_the_task_cuts_it_up():
    task, example = NeighbourSums(), examples(1, seed=3)[0]
    assert task.rows(example) == [task.encode(example)]


def test_an_evaluation_sets_its_own_options():
    class Counting(Task):
        evaluate_options: ClassVar = {"top": 2}
        asked: ClassVar[list[dict[str, object]]] = []

        def predict(self, model, inputs, **options):
            self.asked.append(options)
            return []

        def score(self, answers, examples):
            return {}

    Counting().evaluate(SumModel(), [], top=None, beam=3)
    assert Counting.asked == [{"top": 2, "beam": 3}]
