"""Configurations are checked against constructors, and the message says what would be right."""

import sys
from functools import partial

import pytest

from saccade.configuration import ConfigError, override, read_config, write_config
from saccade.configuration.spelling import check_spelling
from saccade.configuration.yaml_files import parse_yaml
from saccade.data.tokenisers import BpeTokeniser
from saccade.fields import Text
from saccade.models import RNNSearch, Transformer
from saccade.runs.plan import Plan
from saccade.scores import AdditiveScore, BilinearScore
from saccade.selections import Sparsemax, TopK
from saccade.tasks import Generation
from saccade.training import Adam, Noam

SMALL = {"model": {"class": "rnnsearch", "hidden_dim": 7}, "trainer": {"max_steps": 3}}
TRANSFORMER = {
    "task": {"joint": True},
    "model": {"class": "transformer", "dim": 12, "num_heads": 3, "encoder_layers": 1, "tied": "all"},
    "trainer": {"max_steps": 3},
}


def changed(config, **changes):
    return override(config, {key.replace("__", "."): value for key, value in changes.items()})


def test_short_names_and_defaults() -> None:
    plan = Plan(SMALL)
    assert isinstance(plan.task, Generation)
    assert plan.model.kind is RNNSearch
    assert plan.plain["model"]["hidden_dim"] == 7
    assert plan.plain["model"]["embedding_dim"] == 128
    assert plan.trainer.max_steps == 3


def test_what_is_saved_reads_as_the_same_plan() -> None:
    config = changed(
        TRANSFORMER,
        model__selection={"class": "entmax", "alpha": 1.3, "learn_alpha": False},
        trainer__optimiser={"class": "adam", "betas": [0.9, 0.98]},
        trainer__schedule={"class": "noam", "model_dim": 12},
        task__source={"class": "text", "tokeniser": {"class": "bpe", "vocab_size": 31}},
    )
    plan = Plan(config)
    assert isinstance(plan.trainer.optimiser, Adam)
    assert plan.trainer.optimiser.betas == (0.9, 0.98)
    assert isinstance(plan.trainer.schedule, Noam)
    assert isinstance(plan.task.source.tokeniser, BpeTokeniser)
    assert plan.model.arguments()["selection"].keywords == {"alpha": 1.3, "learn_alpha": False}
    again = Plan(plan.plain)
    assert again.plain == plan.plain
    assert plan.plain["trainer"]["schedule"] == {"class": "noam", "model_dim": 12, "warmup": 4000}


def test_yaml_round_trip(tmp_path) -> None:
    plan = Plan(SMALL)
    (tmp_path / "a.yaml").write_text(write_config(plan.plain, heading="Two\nlines."))
    assert (tmp_path / "a.yaml").read_text().startswith("# Two\n# lines.\n")
    assert Plan(read_config(tmp_path / "a.yaml")).plain == plan.plain


def test_python_says_it_with_classes_and_partials() -> None:
    plan = Plan(
        {
            "task": partial(Generation, source=partial(Text, tokeniser=partial(BpeTokeniser, vocab_size=31))),
            "model": partial(RNNSearch, hidden_dim=7, selection=Sparsemax),
            "trainer": {"max_steps": 3},
        }
    )
    assert plan.plain["task"]["source"]["tokeniser"]["vocab_size"] == 31
    assert plan.plain["model"]["selection"] == {"class": "sparsemax"}
    assert Plan(plan.plain).plain == plan.plain


def test_a_class_of_ones_own_by_dotted_path(tmp_path, monkeypatch) -> None:
    (tmp_path / "my_models.py").write_text(
        "from saccade.models import RNNSearch\n\n\n"
        "class Deep(RNNSearch):\n"
        "    def __init__(self, *, source_vocab: int, target_vocab: int, depth: int = 2) -> None:\n"
        "        super().__init__(source_vocab=source_vocab, target_vocab=target_vocab, hidden_dim=5 * depth)\n"
    )
    monkeypatch.chdir(tmp_path)  # the file in the current folder is found
    path = list(sys.path)
    plan = Plan({"model": {"class": "my_models.Deep", "depth": 3}, "trainer": {"max_steps": 3}}, trust=True)
    assert sys.path == path
    assert plan.plain["model"] == {"class": "my_models.Deep", "depth": 3}
    with pytest.raises(ConfigError, match=r"model\.depth must be a whole number, got 'x'"):
        Plan({"model": {"class": "my_models.Deep", "depth": "x"}, "trainer": {"max_steps": 3}}, trust=True)


def test_command_line_values_are_texts() -> None:
    plan = Plan(
        override(
            SMALL,
            {
                "model.hidden_dim": "11",
                "trainer.learning_rate": "1e-4",
                "trainer.clip_norm": "null",
                "trainer.optimiser.betas": "[0.9, 0.98]",
                "data.train": "[a.tsv, b.tsv]",
                "task.metrics": "[ter]",
            },
        )
    )
    assert plan.plain["model"]["hidden_dim"] == 11
    assert plan.trainer.learning_rate == pytest.approx(1e-4)
    assert plan.trainer.clip_norm is None
    assert plan.trainer.optimiser.options()["betas"] == (0.9, 0.98)
    assert plan.data.train == ["a.tsv", "b.tsv"]
    assert plan.task.metrics == {"ter": False}
    assert SMALL["model"]["hidden_dim"] == 7


def test_arguments_of_a_part_that_was_a_name() -> None:
    config = changed(TRANSFORMER, model__selection="entmax")
    assert override(config, {"model.selection.alpha": 2})["model"]["selection"] == {"class": "entmax", "alpha": 2}
    config = changed(TRANSFORMER, model__selection={"class": "entmax", "alpha": 2})
    assert override(config, {"model.selection": "softmax"})["model"]["selection"] == "softmax"


ONE_STEP = {"trainer": {"max_steps": 1}}


def test_parts_in_a_list() -> None:
    scores = ["scaled_dot", {"class": "alibi", "num_heads": 2}]
    model = {"class": "transformer", "dim": 10, "num_heads": 2, "score": {"class": "sum", "scores": scores}}
    misspelled = {"class": "alibi", "num_heds": 2}
    plan = Plan({"model": model, **ONE_STEP})
    saved = plan.plain["model"]["score"]
    assert saved == {"class": "sum", "scores": [{"class": "scaled_dot"}, {"class": "alibi", "num_heads": 2}]}
    assert Plan(plan.plain).plain == plan.plain
    with pytest.raises(ConfigError, match=r"model\.score\.scores\[1\] \(alibi\) has no argument 'num_heds'.*num_heads"):
        Plan({"model": model | {"score": {"class": "sum", "scores": ["dot", misspelled]}}, **ONE_STEP})


@pytest.mark.parametrize(
    "model",
    [
        "calendar.Calendar",
        {"class": "rnnsearch", "selection": "calendar.Calendar"},
        {"class": "rnnsearch", "selection": {"class": "calendar.Calendar"}},
        {"class": "transformer", "score": {"class": "sum", "scores": ["dot", "calendar.Calendar"]}},
        {"class": "transformer", "score": {"class": "sum", "scores": [{"class": "calendar.Calendar"}]}},
    ],
)
def test_classes_of_others_need_trust(model) -> None:
    with pytest.raises(ConfigError, match=r"'calendar\.Calendar' is not a class that comes with Sac.*--trust-classes"):
        Plan({"model": model, **ONE_STEP})
    with pytest.raises(ConfigError, match=r"calendar\.Calendar is not a kind of"):
        Plan({"model": model, **ONE_STEP}, trust=True)


def test_classes_of_saccade_may_be_dotted_without_trust() -> None:
    for path in ("saccade.selections.Sparsemax", "saccade.selections.sparsemax.Sparsemax"):
        plan = Plan(changed(SMALL, model__selection=path))
        assert plan.plain["model"]["selection"] == {"class": "sparsemax"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**SMALL, "trainr": {}}, r"no section 'trainr'\. Did you mean 'trainer'"),
        ({"trainer": {"max_steps": 3}}, r"Name the model.*saccade list models"),
        (
            changed(SMALL, model__hiden_dim=3),
            r"model \(rnnsearch\) has no argument 'hiden_dim'\. Did you mean 'hidden_dim'",
        ),
        (changed(SMALL, trainer__max_stepz=3), r"trainer \(Trainer\) .*'max_stepz'\. Did you mean 'max_steps'"),
        (changed(SMALL, model__hidden_dim="many"), r"model\.hidden_dim must be a whole number, got 'many'"),
        (changed(SMALL, model__hidden_dim=2.5), r"model\.hidden_dim must be a whole number, got 2\.5"),
        (changed(SMALL, model__cell="quick"), r"model\.cell must be 'paper' or 'fast', got 'quick'"),
        (changed(SMALL, model__source_vocab=3), r"model\.source_vocab follows from the task and the data"),
        (changed(SMALL, model__class="rnsearch"), r"unknown model 'rnsearch'\. Did you mean 'rnnsearch'"),
        (changed(SMALL, model__class="nowhere.Model"), r"'nowhere\.Model' is not a class that comes with Saccade"),
        (changed(SMALL, model__class="saccade.tasks.Task"), r"'saccade\.tasks\.Task' is not a class that comes with"),
        (changed(SMALL, model__selection="sparsmax"), r"'sparsmax'\. Did you mean 'sparsemax'"),
        (
            changed(TRANSFORMER, model__selection={"class": "entmax", "alpha": "x"}),
            r"model\.selection\.alpha must be a num",
        ),
        (
            changed(TRANSFORMER, model__selection={"class": "entmax", "beta": 1}),
            r"model\.selection \(entmax\) .* 'beta'",
        ),
        (changed(TRANSFORMER, model__selection={"class": "entmax", "alpha": 0.5}), r"model\.selection: alpha .* 0\.5"),
        (changed(TRANSFORMER, model__num_heads=5), r"model: dim=12 is not a multiple of num_heads=5"),
        (changed(TRANSFORMER, task__joint=False), r"model: tied='all' needs one vocabulary"),
        (changed(TRANSFORMER, task__target={"class": "text", "tokeniser": "char"}), r"task: joint=True"),
        (
            changed(
                TRANSFORMER,
                task__source={"class": "text", "max_length": 30},
                model__positions="learned",
                model__max_length=30,
            ),
            r"30 learned positions are too few .* model\.max_length to 31",
        ),
        (changed(TRANSFORMER, model__dropout=1.5), r"model: dropout must be from 0 to less than 1, got 1\.5"),
        (changed(SMALL, model__dropout=-0.1), r"model: dropout must be"),
        (changed(SMALL, trainer__max_steps=None), r"never end"),
        (changed(SMALL, trainer__metric="blue"), r"trainer\.metric: .*'blue'\. Did you mean 'bleu'"),
        (changed(SMALL, trainer__schedule={"class": "plateau", "decay": 3}), r"trainer\.schedule: decay .* got 3"),
        (changed(SMALL, trainer__schedule="noam"), r"trainer: .*model_dim"),
        (changed(SMALL, data__bad_rows="drop"), r"data\.bad_rows must be 'error' or 'skip', got 'drop'"),
        ({**SMALL, "model": 3}, r"model must be a class"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(config, message) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        Plan(config)
    assert "\n" not in str(raised.value)


def test_every_problem_is_listed_at_once() -> None:
    config = {
        "taks": {},
        "task": {"label_smoothing": 3},  # which is wrong too
        "model": {"class": "rnnsearch", "hiden_dim": 3, "selection": {"class": "entmax", "alfa": 1.3}},
        "data": {"bad_row": "skip"},
        "trainer": {"max_stepz": 3, "schedule": {"class": "cosin"}},  # and would never end
    }
    with pytest.raises(ConfigError) as raised:
        Plan(config)
    first, *rest = str(raised.value).splitlines()
    assert first == "7 problems:"
    assert any("label_smoothing must be from 0 to less than 1" in line for line in rest)
    wanted = [("taks", "task"), ("hiden_dim", "hidden_dim"), ("alfa", "alpha"), ("bad_row", "bad_rows")]
    wanted += [("max_stepz", "max_steps"), ("cosin", "cosine")]
    for wrong, right in wanted:
        assert any(f"{wrong!r}. Did you mean {right!r}?" in line for line in rest), wrong
    assert len(rest) == len(wanted) + 1


def test_what_follows_from_the_data_is_no_choice() -> None:
    with pytest.raises(ConfigError) as raised:
        Plan(changed(SMALL, model__hiden_dim=3))
    assert "source_vocab" not in str(raised.value)


def test_checking_makes_no_weights() -> None:
    config = changed(TRANSFORMER, model__dim=6 * 1024, model__feed_forward_dim=60_000)  # tens of gigabytes
    assert Plan(config).model.kind is Transformer


def test_luongs_names_work_wherever_a_score_is_named() -> None:
    for model in ("rnnsearch", "luong", "kim", "hard_monotonic"):
        assert Plan({"model": {"class": model, "score": "general"}, **ONE_STEP}).plain["model"]["score"] == "general"
    plan = Plan({"model": {"class": "rnnsearch", "score": {"class": "general"}}, **ONE_STEP})
    assert isinstance(plan.outline().decoder.attention.score, BilinearScore)
    assert plan.plain["model"]["score"] == {"class": "bilinear"}


def test_a_part_needs_only_what_its_owner_does_not_fill_in() -> None:
    plan = Plan(changed(SMALL, model__score={"class": "additive", "hidden_dim": 64}))
    score = plan.outline().decoder.attention.score
    assert (score.query_dim, score.key_dim, score.hidden_proj.in_features) == (7, 14, 64)
    assert plan.plain["model"]["score"]["hidden_dim"] == 64
    assert Plan(plan.plain).plain == plan.plain
    history = {"class": "history", "features": ["coverage", {"class": "neural_coverage", "feature_dim": 3}]}
    score = Plan(changed(SMALL, model__score=history)).outline().decoder.attention.score
    assert [feature.feature_dim for feature in score.members] == [1, 3]
    with pytest.raises(ConfigError, match="model: HistoryScore needs features"):
        Plan(changed(SMALL, model__score={"class": "history"}))
    with pytest.raises(ConfigError, match=r"trainer\.schedule \(noam\) needs model_dim"):
        Plan(changed(SMALL, trainer__schedule={"class": "noam"}))


def test_instances_are_written_as_what_made_them() -> None:
    config = {
        "task": {"source": Text(tokeniser=BpeTokeniser(vocab_size=31))},
        "model": {"class": "rnnsearch", "selection": TopK(k=3), "score": AdditiveScore(**SCORE_SIZES)},
        "trainer": {"max_steps": 3, "optimiser": Adam(betas=(0.5, 0.6)), "schedule": Noam(model_dim=12)},
    }
    plan = Plan(config)
    assert plan.plain["task"]["source"]["tokeniser"]["vocab_size"] == 31
    assert plan.plain["model"]["selection"] == {"class": "top_k", "k": 3}
    assert plan.plain["trainer"]["optimiser"]["betas"] == [0.5, 0.6]
    assert plan.trainer.schedule.model_dim == 12
    assert Plan(parse_yaml(write_config(plan.plain), "saved")).plain == plan.plain


SCORE_SIZES = {"query_dim": 256, "key_dim": 512, "hidden_dim": 64}


class Frames(Generation):
    """Reads features where the model reads tokens."""

    def sizes(self) -> dict[str, int]:
        return {"source_dim": 40, "target_vocab": 13}


def test_a_model_that_cannot_take_the_input_is_named() -> None:
    with pytest.raises(ConfigError) as raised:
        Plan({"task": Frames, "model": "cho", **ONE_STEP})
    assert str(raised.value) == (
        "model cho has no argument 'source_dim': it reads tokens, and this task's source gives features."
    )


def test_each_part_is_built_once() -> None:
    made = []

    class Counted(Generation):
        def __init__(self, *, joint: bool = False) -> None:
            made.append(joint)
            super().__init__(joint=joint)

    Plan({"task": Counted, "model": "rnnsearch", **ONE_STEP})
    assert made == [False]


def test_all_numbers_out_of_range_and_options_of_other_tasks_are_listed() -> None:
    config = {
        "task": {"class": "classification", "inputs": {"text": "text"}, "target": "text"},
        "model": {"class": "pooling", "heads": 4},
        "trainer": {"max_steps": -5, "learning_rate": "fast", "log_every": 0, "validate_options": {"beam": 3}},
    }
    with pytest.raises(ConfigError, match="4 problems:"):
        check_spelling(config)  # without torch, which knows ranges
    with pytest.raises(ConfigError) as error:
        Plan(config)
    said = str(error.value).splitlines()
    assert said[0] == "6 problems:"
    for wanted in (
        "task (classification) has no argument 'target'",
        "model (pooling) has no argument 'heads'",
        "trainer.learning_rate must be a number, got 'fast'",
        "trainer: max_steps must be positive, got -5.",
        "trainer: log_every must be positive, got 0.",
        "trainer.validate_options: predictions of this task have no option 'beam'.",
    ):
        assert sum(line.startswith(wanted) for line in said) == 1, said


def test_a_recurrent_encoder_has_another_name() -> None:
    config = {"task": "generation", "model": {"class": "rnnsearch", "encoder": "recurent"}}
    with pytest.raises(ConfigError, match=r"model\.encoder: unknown encoder 'recurent'\. Did you mean 'birnn'\?"):
        check_spelling(config)
