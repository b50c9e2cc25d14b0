"""Parts are swapped by name, by a mapping or by an instance, and all misspelt names are listed at once."""

import re
from functools import partial

import pytest
from torch import nn

import saccade
from saccade.configuration import ConfigError
from saccade.fields import Text
from saccade.models import RNNSearch
from saccade.runs.plan import Plan
from saccade.scores import DotScore
from saccade.selections import TopK
from saccade.tasks import Generation
from saccade.training import Trainer
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
    wrong = ["--model.hidden_dim", "many", "--data.columns", "7", "--trainer.seed", "-1"]
    code, _, err = call("validate", "translation/rnnsearch", *wrong, "--task.label_smoothing", "7")
    assert code == 2
    assert "4 problems" in err
    assert "model.hidden_dim must be a whole number, got 'many'." in err
    assert "data: --data.columns takes roles with their columns" in err
    assert "task: label_smoothing must be" in err
    assert "trainer: seed must be" in err


def test_misspelt_words_are_in_the_same_list_as_misspelt_members(call) -> None:
    wrong = ["--model.encoder", "birn", "--model.score", "genral", "--model.cell", "papr"]
    wrong += ["--task.source.class", "txt", "--task.target", "txet", "--task.metrics", "blue,eaxct_match"]
    wrong += [
        "--model.hidden_dim",
        "many",
        "--trainer.metric",
        "bleuu",
        "--trainer.schedule",
        "cosin",
        "--data.bad_rows",
        "skp",
    ]
    code, _, err = call("validate", "translation/rnnsearch", *wrong)
    assert code == 2
    assert "11 problems" in err
    assert "model.hidden_dim must be a whole number, got 'many'." in err
    for key, right in [
        ("model.encoder", "birnn"),
        ("model.score", "general"),
        ("model.cell", "paper"),
        ("task.source", "text"),
        ("task.target", "text"),
        ("task.metrics[0]", "bleu"),
        ("task.metrics[1]", "exact_match"),
        ("trainer.metric", "bleu"),
        ("trainer.schedule", "cosine"),
        ("data.bad_rows", "skip"),
    ]:
        line = next(line for line in err.splitlines() if line.strip().startswith(key))
        assert f"Did you mean {right!r}?" in line
    encoder = next(line for line in err.splitlines() if "model.encoder" in line)
    assert "birnn, convolutional, embedding, given, patches" in encoder


def test_options_of_validation_are_in_the_same_list(call) -> None:
    wrong = ["--model.selction", "softmax", "--trainer.validate_options", "{bem: 2}"]
    code, _, err = call("validate", "translation/rnnsearch", *wrong)
    assert code == 2
    assert "2 problems" in err
    assert "Did you mean 'selection'?" in err
    assert "predictions of this task have no option 'bem'. Did you mean 'beam'?" in err


def test_arguments_of_a_misspelt_class_are_those_of_the_one_that_was_meant(call) -> None:
    code, _, err = call("validate", "translation/rnnsearch", "--model.score", "{class: addtive, hiden_dim: 64}")
    assert code == 2
    assert "Did you mean 'additive'?" in err
    assert "model.score (additive) has no argument 'hiden_dim'. Did you mean 'hidden_dim'?" in err


def test_a_score_and_a_selection_in_each_other_s_place(call) -> None:
    code, _, err = call("validate", "translation/rnnsearch", "--model.score", "sparsemax", "--model.selection", "dot")
    assert code == 2
    assert "model.score: 'sparsemax' is a selection, not a score." in err
    assert "model.selection: 'dot' is a score, not a selection." in err


def test_a_class_that_is_called_as_in_python(call) -> None:
    code, _, err = call("validate", "translation/rnnsearch", "--model.selection", "top_k(k=3)")
    assert code == 2
    assert "model.selection: write 'top_k(k=3)' as {class: top_k, k: 3}." in err


def test_a_whole_number_as_a_power_of_ten() -> None:
    config = {"model": "rnnsearch", "trainer": {"max_steps": "1e3"}}
    assert Plan(config).trainer.max_steps == 1000
    with pytest.raises(ConfigError, match="max_steps must be a whole number or null, got '1e-3'"):
        Plan({**config, "trainer": {"max_steps": "1e-3"}})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RNNSearch(hidden_dim=16), "RNNSearch needs target_vocab; its signature is RNNSearch("),
        (lambda: RNNSearch(hidden_dim=16), "give functools.partial(RNNSearch, hidden_dim=16)."),
        (lambda: RNNSearch(16), "RNNSearch takes its arguments by name: RNNSearch(source_vocab=None"),
        (lambda: TopK(kk=3), "TopK has no argument 'kk'. Did you mean 'k'?"),
    ],
)
def test_constructors_say_how_to_call_them(make, message) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        make()


def test_arguments_without_their_class_name_the_fix(call) -> None:
    code, _, err = call("validate", "translation/rnnsearch", "--task.sources.fr.tokeniser", "word")
    assert code == 2
    assert "task.sources.fr: these arguments need a class as well: document" in err
    assert "On the command line: --task.sources.fr.class text" in err


def test_arguments_of_the_target_are_those_of_a_text(call) -> None:
    code, _, err = call("validate", "translation/rnnsearch", "--task.target.tokeniser", "word")
    assert code == 0, err
    code, _, err = call("validate", "translation/rnnsearch", "--task.target.tokenizr", "word")
    assert code == 2
    assert "task.target (text) has no argument 'tokenizr'. Did you mean 'tokeniser'?" in err


def test_a_joint_vocabulary_may_be_described_on_both_sides(call) -> None:
    small = ("validate", "translation/rnnsearch-small", "--task.target.tokeniser", "char")
    code, _, err = call(*small, "--task.source.tokeniser", "char")
    assert code == 0, err
    text = {"class": "text", "tokeniser": "char"}
    config = {"task": {"source": {**text, "max_length": 31}, "target": text, "joint": True}, "model": "rnnsearch"}
    again = Plan(Plan({**config, "trainer": {"max_steps": 1}}).plain)  # as a run folder holds it, with all defaults
    assert again.task.target.max_length == 31
    code, _, err = call(*small)
    assert code == 2
    assert "leave target out, or set joint to no (--task.joint no) for two." in err
    assert call(*small, "--task.joint", "no")[0] == 0


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"epochs": 3}, "no argument 'epochs'. Did you mean trainer={'max_epochs': 3}?"),
        ({"max_steps": 3}, "Did you mean trainer={'max_steps': 3}?"),
        ({"outputs": "run"}, "Did you mean 'output'?"),
    ],
)
def test_keywords_that_train_does_not_have(given, hint) -> None:
    with pytest.raises(TypeError, match=re.escape(hint)):
        saccade.train(**given)


def test_sections_as_instances(tmp_path) -> None:
    run = saccade.train(
        task=Generation(source=Text(tokeniser="char"), metrics=["exact_match"]),
        model=partial(RNNSearch, embedding_dim=8, hidden_dim=8),
        data=PAIRS,
        trainer=Trainer(max_steps=1, batch_tokens=200),
        output=tmp_path / "run",
    )
    assert run.plan.plain["trainer"]["batch_tokens"] == 200
    assert saccade.load(tmp_path / "run").plan.plain["task"]["metrics"] == ["exact_match"]


def test_dictionaries_with_other_names(tmp_path) -> None:
    rows = [{"id": n, "latin": a, "cyrillic": b} for n, (a, b) in enumerate(PAIRS)]
    with pytest.raises(ValueError, match=r"Say which is which: columns=\{'source': 'latin', 'target': 'cyrillic'\}\."):
        saccade.train("translation/rnnsearch", data=rows, output=tmp_path / "run")


def test_a_metric_that_is_no_longer_computed(call) -> None:
    code, _, err = call("validate", "translation/rnnsearch", "--task.metrics", "exact_match,cer")
    assert code == 2
    assert "'bleu' is not among task.metrics. Add it, as --task.metrics exact_match,cer,bleu, or choose by" in err
    assert call("validate", "translation/rnnsearch", "--task.metrics", "cer", "--trainer.metric", "cer")[0] == 0


def test_a_model_of_another_task_names_those_that_fit() -> None:
    with pytest.raises(ConfigError, match=r"models of this task take vocab and classes: .*pooling"):
        Plan({"task": "classification", "model": "rnnsearch", "trainer": {"max_steps": 1}})


def test_a_misspelt_option_does_not_hide_misspelt_arguments(call) -> None:
    wrong = ["--outptu", "run", "--data.trian", "rivers.tsv", "--model.hidden_dim", "many"]
    for command in (["translation/rnnsearch", *wrong], [*wrong, "translation/rnnsearch"]):
        code, _, err = call("train", *command)
        assert code == 2
        assert "train has no option --outptu. Did you mean --output?" in err
        assert "data (Corpus) has no argument 'trian'. Did you mean 'train'?" in err
        assert "model.hidden_dim must be a whole number, got 'many'." in err


def test_misspelt_arguments_do_not_hide_misspelt_roles(call) -> None:
    wrong = ["--model.hiden_dim", "8", "--data.txet", "body", "--data.lable", "kind"]
    code, _, err = call("validate", "classification/pooling", *wrong)
    assert code == 2
    assert "3 problems" in err
    assert "data has no argument 'txet', and the task no column of that name. Did you mean 'text'?" in err
    assert "data has no argument 'lable', and the task no column of that name. Did you mean 'label'?" in err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("embedding_dim", "dim"),
        ("heads", "num_heads"),
        ("dropout_rate", "dropout"),
        ("encoder_layer", "encoder_layers"),
    ],
)
def test_the_argument_that_was_meant(given, meant, call) -> None:
    err = call("validate", "translation/transformer", f"--model.{given}", "8")[2]
    assert f"model (transformer) has no argument {given!r}. Did you mean {meant!r}?" in err


@pytest.mark.parametrize(
    ("config", "given", "advice"),
    [
        ("classification/pooling", "message", "text=message,label=COLUMN"),
        ("classification/pooling", "message,team", "text=message,label=team"),
        ("classification/pooling", "text=message,team", "text=COLUMN,label=COLUMN"),
        ("rating/pooling", "review", "text=review,number=COLUMN"),
    ],
)
def test_columns_without_roles_get_those_of_the_task(config, given, advice, call) -> None:
    code, _, err = call("validate", config, "--data.columns", given)
    assert code == 2
    assert f"data: --data.columns takes roles with their columns, as {advice}; got {given!r}." in err


def test_a_target_without_a_class_is_checked_with_all_the_rest(call) -> None:
    wrong = ["--task.target.tokeniser", "wrd", "--trainer.optimiser", "adamm"]
    code, _, err = call("validate", "translation/rnnsearch-small", *wrong)
    assert code == 2
    assert "2 problems" in err
    assert "task.target.tokeniser: unknown tokeniser 'wrd'. Did you mean 'word'?" in err
    assert "trainer.optimiser: unknown optimiser 'adamm'" in err


@pytest.mark.parametrize("score", ["dot", "scaled_dot", "{class: cosine}"])
def test_a_score_that_does_not_fit_the_sizes_is_known_before_training(score, call) -> None:
    code, _, err = call("validate", "translation/rnnsearch-small", "--model.score", score)
    assert code == 2
    assert "compares queries and keys feature by feature" in err
    assert "queries have 128 features and keys 256: choose bilinear or additive." in err
    assert call("validate", "translation/rnnsearch-small", "--model.score", "bilinear")[0] == 0


class KeysProjected(DotScore):
    def __init__(self, *, query_dim: int, key_dim: int) -> None:
        super().__init__()
        self.proj = nn.Linear(key_dim, query_dim)

    def prepare(self, keys, *, mask=None, start=0):
        return self.proj(keys)


def test_a_dot_product_that_projects_its_keys_fits_all_sizes() -> None:
    model = RNNSearch(source_vocab=9, target_vocab=9, embedding_dim=4, hidden_dim=6, score=partial(KeysProjected))
    assert isinstance(model.decoder.attention.score, KeysProjected)
