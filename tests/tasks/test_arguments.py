"""Arguments that tasks share."""

import typing

import pytest

from saccade.configuration.hints import hint_of, words_of
from saccade.evaluation import labels, tags
from saccade.fields import Label, Labels, Number
from saccade.tasks import tasks
from saccade.tasks.arguments import chosen_metrics, field_of


def test_a_field_by_its_name_or_as_it_is() -> None:
    given = Labels()
    assert field_of("label", given, Label) is given
    assert isinstance(field_of("label", "tags", Label), Label)
    with pytest.raises(
        ValueError, match=r"label must be the field label, labels, tags, visit_label or visit_labels, got Number\."
    ):
        field_of("label", Number(), Label)
    with pytest.raises(ValueError, match="number must be the field number, got Label"):
        field_of("number", "label", Number)


def test_metrics_by_name() -> None:
    assert chosen_metrics(["b"], {"a": True, "b": False}) == {"b": False}
    with pytest.raises(ValueError, match=r"Unknown metric 'acuracy'\. Did you mean 'accuracy'"):
        chosen_metrics(["acuracy"], {"accuracy": True})
    with pytest.raises(ValueError, match=r"Unknown metrics 'blue', 'x', 'chfr'\. Did you mean 'bleu', 'chrf'\?"):
        chosen_metrics(["blue", "ter", "x", "chfr"], {"bleu": True, "chrf": True, "ter": False})


def test_a_configuration_can_name_every_metric_and_no_other() -> None:
    for name, task in tasks.load().items():
        known = task.known_metrics or labels.HIGHER_IS_BETTER | tags.HIGHER_IS_BETTER
        assert set(words_of(typing.get_args(hint_of(task, "metrics"))[0])) == set(known), name
