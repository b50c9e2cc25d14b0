"""Logistic regression by scikit-learn, on the codes of all visits so far, counted."""

import json
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from saccade.data.cell import Cell
from saccade.evaluation.bootstrap import bootstrap, rows_of
from saccade.evaluation.labels import Labelled
from saccade.fields import Visits

NAMES = ["no", "yes"]
METRICS = ["auroc", "auprc", "ece"]


def fitted(paths: dict[str, str], samples: int) -> dict[str, Any]:
    """Trains on one file and tests on another; of several outcomes each has a regression of its own.

    ImportError without scikit-learn.
    """
    from sklearn.linear_model import LogisticRegression

    started = time.process_time()
    field = Visits()
    parts = {name: _read(field, paths[name]) for name in ("train", "test")}
    field.fit(record for record, _ in parts["train"])
    features, outcomes, _ = _matrix(field, parts["train"])
    several = not isinstance(outcomes[0], str)
    classes = sorted({name for outcome in outcomes for name in outcome}) if several else ["yes"]
    models = [
        LogisticRegression(C=0.1, max_iter=300).fit(features, [_has(outcome, name) for outcome in outcomes])
        for name in classes
    ]
    minutes = (time.process_time() - started) / 60
    features, outcomes, counts = _matrix(field, parts["test"])
    yes = np.stack([model.predict_proba(features)[:, 1] for model in models], axis=1)
    if several:
        known = [[name for name in outcome if name in classes] for outcome in outcomes]
        decided = [[name for name, p in zip(classes, row, strict=True) if p >= 0.5] for row in yes]
        found = Labelled.of(decided, known, yes.tolist(), classes, several=True)
    else:
        both = np.concatenate([1 - yes, yes], axis=1)
        found = Labelled.of([NAMES[p] for p in both.argmax(1)], outcomes, both.tolist(), NAMES, positive="yes")
    intervals = bootstrap(
        lambda chosen: {n: f.value for n, f in found.take(rows_of(counts, chosen)).figures(METRICS).items()},
        len(counts),
        samples,
    )
    figures = {n: {"value": f.value, "interval": intervals[n]} for n, f in found.figures(METRICS).items()}
    most = max(int(model.n_iter_[0]) for model in models)
    return {"figures": figures, "examples": len(counts), "steps": most, "minutes": minutes}


def _has(outcome: str | list[str], name: str) -> bool:
    return outcome == name if isinstance(outcome, str) else name in outcome


def _read(field: Visits, path: str) -> list[tuple[Any, list[Any]]]:
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    found = []
    for number, row in enumerate(rows, start=1):
        record = field.read(row["record"], Cell(path, number, "record"))
        single = isinstance(row["label"], str)
        found.append((record, [None] * (len(record["visits"]) - 1) + [row["label"]] if single else row["label"]))
    return found


def _matrix(field: Visits, records: list[tuple[Any, list[Any]]]) -> tuple[Any, list[Any], list[int]]:
    """A row of counts for each visit whose outcome is known, these outcomes, and how many each record has."""
    from scipy.sparse import csr_array

    width = field.book.size
    data, columns, starts, wanted, counts = list[float](), list[int](), [0], list[Any](), list[int]()
    for record, outcomes in records:
        encoded = field.encode(record)
        visits = [dict(zip(*pair, strict=True)) for pair in zip(encoded["codes"], encoded["amounts"], strict=True)]
        static = {width + key: value for key, value in zip(encoded["static"], encoded["static_amounts"], strict=True)}
        counts.append(sum(outcome is not None for outcome in outcomes))
        for so_far, outcome in zip(accumulate(visits, _added), outcomes, strict=True):
            if outcome is not None:
                columns += [*so_far, *static]
                data += [*so_far.values(), *static.values()]
                starts.append(len(columns))
                wanted.append(outcome)
    shape = (len(wanted), width + field.static.size)
    return csr_array((data, columns, starts), shape=shape), wanted, counts


def _added(one: dict[int, float], two: dict[int, float]) -> dict[int, float]:
    return {key: one.get(key, 0.0) + two.get(key, 0.0) for key in {**one, **two}}
