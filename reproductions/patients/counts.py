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


def fitted(paths: dict[str, str], samples: int) -> dict[str, Any]:
    """Trains on one file and tests on another, both with outcomes of two classes; ImportError without scikit-learn."""
    from sklearn.linear_model import LogisticRegression

    started = time.process_time()
    field = Visits()
    parts = {name: _read(field, paths[name]) for name in ("train", "test")}
    field.fit(record for record, _ in parts["train"])
    features, wanted, _ = _matrix(field, parts["train"])
    model = LogisticRegression(C=0.1, max_iter=300).fit(features, wanted)
    minutes = (time.process_time() - started) / 60
    features, wanted, counts = _matrix(field, parts["test"])
    yes = model.predict_proba(features)[:, 1]
    names = [NAMES[int(each)] for each in wanted]
    found = Labelled.of(
        [NAMES[int(p >= 0.5)] for p in yes], names, np.stack([1 - yes, yes], 1).tolist(), NAMES, positive="yes"
    )
    metrics = ["auroc", "auprc", "ece"]
    known = bootstrap(
        lambda chosen: {n: f.value for n, f in found.take(rows_of(counts, chosen)).figures(metrics).items()},
        len(counts),
        samples,
    )
    figures = {n: {"value": f.value, "interval": known[n]} for n, f in found.figures(metrics).items()}
    return {"figures": figures, "examples": len(counts), "steps": int(model.n_iter_[0]), "minutes": minutes}


def _read(field: Visits, path: str) -> list[tuple[Any, list[str | None]]]:
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    found = []
    for number, row in enumerate(rows, start=1):
        record = field.read(row["record"], Cell(path, number, "record"))
        single = isinstance(row["label"], str)
        found.append((record, [None] * (len(record["visits"]) - 1) + [row["label"]] if single else row["label"]))
    return found


def _matrix(field: Visits, records: list[tuple[Any, list[str | None]]]) -> tuple[Any, Any, list[int]]:
    """A row of counts for each visit whose outcome is known, these outcomes, and how many each record has."""
    from scipy.sparse import csr_array

    width = field.book.size
    data, columns, starts, wanted, counts = list[float](), list[int](), [0], list[bool](), list[int]()
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
                wanted.append(outcome == "yes")
    shape = (len(wanted), width + field.static.size)
    return csr_array((data, columns, starts), shape=shape), np.array(wanted), counts


def _added(one: dict[int, float], two: dict[int, float]) -> dict[int, float]:
    return {key: one.get(key, 0.0) + two.get(key, 0.0) for key in {**one, **two}}
