"""Parts are swapped by name, by a mapping or by an instance, and all misspelt names are listed at once."""

import pytest

import saccade
from saccade.runs.plan import Plan
from saccade.selections import TopK
from tests.first_day.conftest import PAIRS


@pytest.mark.parametrize("score", ["general", {"class": "additive", "hidden_dim": 64}])
def test_scores_of_rnnsearch(score) -> None:
    plan = Plan({"model": {"class": "rnnsearch", "score": score}, "trainer": {"max_steps": 1}})
    assert plan.outline() is not None


def test_an_instance_from_python(tmp_path) -> None:
    run = saccade.train(
        task={"source": {"class": "text", "tokeniser": "char"}, "metrics": ["exact_match"]},
        model={"class": "rnnsearch", "embedding_dim": 8, "hidden_dim": 8, "selection": TopK(k=3)},
        data={"train": PAIRS},
        trainer={"max_steps": 1, "batch_tokens": 200},
        output=tmp_path / "run",
    )
    assert run.plan.plain["model"]["selection"] == {"class": "top_k", "k": 3}


def test_all_misspelt_members_at_once(train) -> None:
    code, _, err = train("--model.selection", "sparsmax", "--model.score", "aditive")
    assert code == 2
    assert "Did you mean 'sparsemax'?" in err
    assert "Did you mean 'additive'?" in err


def test_all_wrong_values_at_once(work, call) -> None:
    wrong = ["--model.hidden_dim", "many", "--data.columns", "7", "--task.metrics", "[blue, eaxct_match]"]
    code, _, err = call("validate", "translation/rnnsearch", *wrong, "--trainer.max_steps", "-3")
    assert code == 2
    assert "4 problems" in err
    assert "model.hidden_dim must be a whole number, got 'many'." in err
    assert "data: --data.columns takes roles with their columns" in err
    assert "task: Unknown metrics 'blue', 'eaxct_match'. Did you mean 'bleu', 'exact_match'?" in err
    assert "trainer: max_steps must be" in err
