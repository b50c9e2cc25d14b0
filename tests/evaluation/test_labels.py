"""Figures of labels, against definitions written out as loops."""

import math
import random

import pytest

from saccade.evaluation.labels import METRICS, Labelled, score_labels

NAMES = ["a", "b", "c", "d"]
ALL = list(METRICS)


def answers(count: int, seed: int) -> tuple[list[str], list[str], list[list[float]]]:
    """Labels, true labels and probabilities, with ties, of three of four classes."""
    draws = random.Random(seed)
    wanted = draws.choices(NAMES[:3], k=count)
    probabilities = []
    for label in wanted:
        raw = [draws.randint(1, 4) + 2 * (name == label) for name in NAMES]
        probabilities.append([value / sum(raw) for value in raw])
    predicted = [NAMES[max(range(4), key=lambda k: p[k])] for p in probabilities]
    return predicted, wanted, probabilities


def f1(predicted, wanted, name) -> float | None:
    true = sum(p == w == name for p, w in zip(predicted, wanted, strict=True))
    found, real = predicted.count(name), wanted.count(name)
    if not found and not real:
        return None
    precision, recall = true / max(found, 1), true / max(real, 1)
    return 0.0 if not true else 2 * precision * recall / (precision + recall)


def area(scores, positive) -> float | None:
    """The share of pairs of a positive and a negative example in the right order; ties count half."""
    pairs = [
        (s > r) + 0.5 * (s == r)
        for s, yes in zip(scores, positive, strict=True)
        for r, no in zip(scores, positive, strict=True)
        if yes and not no
    ]
    return sum(pairs) / len(pairs) if pairs else None


@pytest.mark.parametrize("seed", range(3))
def test_one_label(seed):
    predicted, wanted, probabilities = answers(67, seed)
    figures = score_labels(predicted, wanted, probabilities, NAMES, ALL)
    right = [p == w for p, w in zip(predicted, wanted, strict=True)]
    known = [score for name in NAMES if (score := f1(predicted, wanted, name)) is not None]
    areas = [area([p[k] for p in probabilities], [w == name for w in wanted]) for k, name in enumerate(NAMES)]
    rated = [a for a in areas if a is not None]
    assert figures["accuracy"].value == pytest.approx(100 * sum(right) / 67)
    assert figures["micro_f1"].value == pytest.approx(figures["accuracy"].value)  # with one label they are the same
    assert figures["macro_f1"].value == pytest.approx(100 * sum(known) / len(known))
    assert figures["auroc"].value == pytest.approx(100 * sum(rated) / len(rated))
    distance = [abs(NAMES.index(p) - NAMES.index(w)) for p, w in zip(predicted, wanted, strict=True)]
    assert figures["mean_absolute_error"].value == pytest.approx(sum(distance) / 67)
    bins: dict[int, list[tuple[float, bool]]] = {}
    for p, yes in zip(probabilities, right, strict=True):
        bins.setdefault(min(int(max(p) * 15), 14), []).append((max(p), yes))
    gaps = [abs(sum(c for c, _ in b) - sum(y for _, y in b)) for b in bins.values()]
    assert figures["ece"].value == pytest.approx(100 * sum(gaps) / 67)
    assert all(figure.signature for figure in figures.values())


@pytest.mark.parametrize("seed", range(3))
def test_kappa_by_its_definition(seed):
    predicted, wanted, probabilities = answers(67, seed)
    observed = expected = 0.0
    for one in wanted:
        observed += sum((NAMES.index(p) - NAMES.index(one)) ** 2 for p in predicted) / 67  # each with each
    for p, w in zip(predicted, wanted, strict=True):
        expected += (NAMES.index(p) - NAMES.index(w)) ** 2
    figures = score_labels(predicted, wanted, probabilities, NAMES, ALL)
    assert figures["quadratic_weighted_kappa"].value == pytest.approx(1 - expected / observed)


def test_tables_of_one_label():
    predicted, wanted, probabilities = answers(67, 1)
    confusion, classes, bins = Labelled.of(predicted, wanted, probabilities, NAMES).tables()
    pairs = list(zip(wanted, predicted, strict=True))
    assert confusion.rows == {w: [pairs.count((w, p)) for p in NAMES] for w in NAMES}
    assert confusion.printed
    for name in NAMES:
        precision, recall, score, count = classes.rows[name]
        true, found = pairs.count((name, name)), predicted.count(name)
        assert count == wanted.count(name)
        assert precision == pytest.approx(100 * true / found) if found else math.isnan(precision)
        assert recall == pytest.approx(100 * true / count) if count else math.isnan(recall)
        assert score == pytest.approx(100 * f1(predicted, wanted, name)) if found or count else math.isnan(score)
    counts, confidence, right = (
        sum(row[0] * (row[place] if place else 1) for row in bins.rows.values() if row[0]) for place in range(3)
    )
    assert counts == 67
    assert confidence == pytest.approx(100 * sum(map(max, probabilities)))
    assert right == pytest.approx(100 * sum(w == p for w, p in pairs))


def test_tables_of_several_labels():
    wanted, predicted = [["a", "b"], [], ["c"], ["a"]], [["a"], [], ["c", "b"], ["a"]]
    confusion, classes, bins = Labelled.of(predicted, wanted, [[0.6, 0.1, 0.5, 0.2]] * 4, NAMES, several=True).tables()
    assert confusion.rows == {"a": [2, 0, 0, 2], "b": [0, 1, 1, 2], "c": [1, 0, 0, 3], "d": [0, 0, 0, 4]}
    assert classes.rows["a"] == [100, 100, 100, 2]
    assert sum(row[0] for row in bins.rows.values()) == 16  # decisions


def test_a_matrix_of_many_classes_is_not_printed():
    names = [f"class {n}" for n in range(31)]
    tables = Labelled.of(names, names, [[1.0] * 31] * 31, names).tables()
    assert [table.printed for table in tables] == [False, True, False]
    assert tables[1].lines()[-1] == "... and 1 more rows: see --json"


def test_several_labels():
    wanted = [["a", "b"], [], ["c"], ["a"]]
    predicted = [["a"], [], ["c", "b"], ["a"]]
    probabilities = [[0.9, 0.4, 0.1, 0.2], [0.2, 0.1, 0.3, 0.0], [0.1, 0.6, 0.8, 0.1], [0.7, 0.2, 0.3, 0.4]]
    figures = score_labels(predicted, wanted, probabilities, NAMES, ["accuracy", "micro_f1", "macro_f1"], several=True)
    assert figures["accuracy"].value == 50.0  # of whole sets
    assert figures["micro_f1"].value == pytest.approx(100 * 2 * 3 / (4 + 4))
    assert figures["macro_f1"].value == pytest.approx(100 * (1 + 0 + 1) / 3)  # nothing is known of d
    certain = [[float(name in labels) for name in NAMES] for labels in wanted]
    assert score_labels(wanted, wanted, certain, NAMES, ["ece"], several=True)["ece"].value == 0.0


def test_a_perfect_and_sure_answer_has_perfect_figures():
    certain = [[float(name == label) for name in NAMES] for label in NAMES]
    figures = score_labels(NAMES, NAMES, certain, NAMES, ALL)
    assert figures.pop("quadratic_weighted_kappa").value == 1.0
    for name, figure in figures.items():
        assert figure.value == pytest.approx(100.0 if METRICS[name].higher else 0.0), name


def test_what_cannot_be_measured():
    metrics = ["auroc", "quadratic_weighted_kappa"]
    one_class = score_labels(["a"], ["a"], [[1.0, 0.0, 0.0, 0.0]], NAMES, metrics)
    assert all(math.isnan(figure.value) for figure in one_class.values())
    for predicted, wanted in ([], []), (["a"], ["a", "b"]):
        with pytest.raises(ValueError, match="cannot be compared"):
            score_labels(predicted, wanted, [], NAMES, ["accuracy"])
